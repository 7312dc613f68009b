//! One end of a flow of sections: a Comity endpoint in a process that logs its events.
//!
//! The process calls [`run`]. The lab starts it and reads the log that it prints.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use comity::credentials::PresharedKey;
use comity::{
    Config, Connection, Endpoint, GapReason, Item, Qlog, Reason, Section, SectionId, StreamId,
};
use comity_frames::{Frame, FrameType, Offered, Step, Submitter};
use comity_sim::host::{FlowPlan, Source, plans};
use comity_sim::network::{FlowSpec, Network, SectionsSpec, TransportSpec};
use comity_transport::datagram;
use comity_units::{Seed, Span, Time};
use serde::{Deserialize, Serialize};

use crate::child::Role;
use crate::clock::Clock;
use crate::error::Error;

/// The number of packets in the initial window.
const FIRST_PACKETS: u64 = 10;
/// How long after the end of a run a receiver waits for late sections.
const AFTERWARDS: Span = Span::from_millis(200);
/// The interval between samples of the sender's state.
const SAMPLING: Span = Span::from_millis(20);
/// The time limit of a handshake, which is repeated on lossy paths.
const CONNECT: Duration = Duration::from_secs(10);
/// The maximum size of a qlog file.
const MAX_QLOG: u64 = 1 << 30;

/// The flow, the end of it, and the host of an endpoint process.
#[derive(Clone, Debug)]
pub struct Task {
    /// The flow, as an index into the network.
    pub flow: usize,
    /// The end.
    pub role: Role,
    /// The seed of the run.
    pub seed: Seed,
    /// The clock of the lab.
    pub clock: Clock,
    /// The address of the destination.
    pub address: IpAddr,
    /// The port of the destination.
    pub port: u16,
    /// The key of both ends.
    pub key: [u8; 32],
    /// The qlog file to write, if any.
    pub qlog: Option<PathBuf>,
}

/// The log of one end.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Log {
    /// The frames of the sender, by their numbers.
    pub(crate) frames: Vec<Given>,
    /// The fates of sections at the receiver: number, and time and bytes, or the code of the gap.
    pub(crate) settled: Vec<(u64, Fate)>,
    /// The sender's counters at the start of the measurement, and at the end.
    pub(crate) at_warmup: Counters,
    pub(crate) at_end: Counters,
    pub(crate) samples: Vec<Sample>,
    /// When it was ready; zero for before the start.
    pub(crate) ready_ns: u64,
    /// When the connection was established.
    pub(crate) connected_ns: Option<u64>,
    /// The time and reason if the connection ended before the run.
    pub(crate) closed: Option<(u64, String)>,
    /// Why the end failed.
    pub(crate) failure: Option<String>,
}

/// A frame of the sender, and its outcome at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Given {
    pub(crate) at_ns: u64,
    pub(crate) bytes: u32,
    /// Its index in [`TYPES`].
    pub(crate) frame_type: u8,
    pub(crate) needs: Option<u64>,
    pub(crate) outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    Submitted,
    /// The send buffer had no room.
    Refused,
    Shed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fate {
    /// The section arrived whole at this time, with this many bytes.
    Whole(u64, u32),
    /// The section became a gap, by the index of its reason in [`GAPS`].
    Gap(u8),
}

/// Counters of one end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Counters {
    pub(crate) late_bytes: u64,
    pub(crate) retransmitted_bytes: u64,
    pub(crate) lost_packets: u64,
    pub(crate) spurious_losses: u64,
    pub(crate) marked_packets: u64,
    pub(crate) loss_events: u64,
    pub(crate) target_bps: Option<f64>,
    pub(crate) cwnd_bytes: Option<u64>,
    pub(crate) ssthresh_bytes: Option<u64>,
    pub(crate) srtt_s: Option<f64>,
    pub(crate) min_rtt_s: Option<f64>,
}

/// The state of a sender at a time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) at_ns: u64,
    pub(crate) cwnd_bytes: u64,
    pub(crate) ssthresh_bytes: u64,
    pub(crate) srtt_ns: u64,
}

/// The reasons of gaps. Their indices are their codes in a [`Log`].
pub(crate) const GAPS: [GapReason; 8] = [
    GapReason::Closed,
    GapReason::Obsolete,
    GapReason::Overdue,
    GapReason::Dropped(Reason::Dependency),
    GapReason::Dropped(Reason::Expired),
    GapReason::Dropped(Reason::Infeasible),
    GapReason::Dropped(Reason::Cancelled),
    GapReason::Dropped(Reason::Shed),
];

/// The types of frames of sources. Their indices are their codes in a [`Log`].
pub(crate) const TYPES: [FrameType; 4] = [
    FrameType::Slice,
    FrameType::Key,
    FrameType::Predicted { referenced: true },
    FrameType::Bidirectional { referenced: false },
];

fn number_of<T: PartialEq>(list: &[T], value: &T) -> u8 {
    // The lists are short and contain all values.
    list.iter().position(|one| one == value).unwrap_or(0) as u8
}

/// The error for an unknown flow.
pub(crate) fn unknown(flow: usize) -> Error {
    Error::Flow {
        flow: flow.to_string(),
        reason: "there is no such flow".into(),
    }
}

/// Checks that endpoints can run a flow of sections.
///
/// # Errors
/// If they cannot.
pub(crate) fn check(flow: &FlowSpec, spec: &SectionsSpec) -> Result<(), Error> {
    let refuse = |reason: String| Error::Flow {
        flow: flow.name.clone(),
        reason,
    };
    let (config, usual) = (&spec.config, datagram::Config::default());
    let first_window = u64::from(config.payload) * FIRST_PACKETS;
    let keys = [
        ("overhead", config.overhead != usual.overhead),
        ("pad", config.pad),
        ("acknowledgement", spec.acknowledgement.is_some()),
        ("pace_windows", config.pace_windows != usual.pace_windows),
        ("ack_delay", config.ack_delay != usual.ack_delay),
        ("keep_alive", config.keep_alive != usual.keep_alive),
        ("initial_window", spec.initial_window.get() != first_window),
    ];
    if let Some((key, _)) = keys.iter().find(|(_, is_set)| *is_set) {
        return Err(refuse(format!(
            "Comity's endpoints do not let `{key}` be set; leave it out"
        )));
    }
    configured(spec, [0; 32], None)
        .map(|_| ())
        .map_err(|error| refuse(error.to_string()))
}

/// Runs one end until the end of the run. Returns its log as one line of JSON.
///
/// # Errors
/// If the network cannot run at all. The log contains the events of the connection.
pub fn run(network: &Network, task: &Task) -> Result<String, Error> {
    let flow = network.flows.get(task.flow);
    let (Some(flow), plans) = (flow, plans(network, task.seed)?) else {
        return Err(unknown(task.flow));
    };
    let (TransportSpec::Sections(sections), Some(plan)) = (&flow.transport, plans.get(task.flow))
    else {
        return Err(Error::Flow {
            flow: flow.name.clone(),
            reason: "it is not a flow of sections".into(),
        });
    };
    let refuse = |reason: String| Error::Flow {
        flow: flow.name.clone(),
        reason,
    };
    let qlog = match &task.qlog {
        Some(path) => Some(
            Qlog::create_over(path, MAX_QLOG)
                .map_err(Error::system(format!("cannot write {}", path.display())))?,
        ),
        None => None,
    };
    let config =
        configured(sections, task.key, qlog.clone()).map_err(|error| refuse(error.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(Error::system("cannot start a runtime"))?;
    let log = runtime.block_on(async {
        match task.role {
            Role::Source => send(network, sections, plan, task, config).await,
            Role::Destination => receive(network, task, config).await,
        }
    })?;
    if let Some(qlog) = qlog {
        let _ = qlog.finish();
    }
    serde_json::to_string(&log).map_err(|error| refuse(error.to_string()))
}

fn configured(
    spec: &SectionsSpec,
    key: [u8; 32],
    qlog: Option<Qlog>,
) -> Result<Config, comity::ConfigError> {
    let config = &spec.config;
    let mut builder = Config::builder()
        .preshared_key(PresharedKey::new(key))
        .controller(&spec.controller)
        .controller_parameters(spec.parameters.clone())
        .reliability(config.reliability)
        .drop_policy(config.drop)
        .deliver(config.deliver)
        .payload(config.payload)
        .ack_frequency(config.ack_frequency)
        .ecn(config.ecn)
        .send_buffer(config.send_buffer)
        .idle_timeout(config.idle_timeout.into())
        .connect_timeout(CONNECT);
    if let Some(latency) = spec.latency {
        builder = builder.latency(latency.into());
    }
    if let Some(qlog) = qlog {
        builder = builder.qlog(qlog);
    }
    builder.build()
}

/// Sleeps until `time`.
async fn sleep_until(clock: Clock, time: Time) {
    tokio::time::sleep_until(clock.instant(time).into()).await;
}

async fn counters(connection: &Connection) -> Counters {
    let statistics = connection.stats();
    let (sent, path) = (statistics.sent.counters, statistics.path);
    let seconds = |ms: Option<f64>| ms.map(|ms| ms / 1e3);
    Counters {
        late_bytes: sent.late_bytes,
        retransmitted_bytes: sent.retransmitted_bytes,
        lost_packets: sent.lost_packets,
        spurious_losses: sent.spurious_losses,
        marked_packets: sent.marked_packets,
        loss_events: sent.loss_events,
        target_bps: path.target_mbps.map(|mbps| mbps * 1e6),
        cwnd_bytes: path.window_bytes,
        ssthresh_bytes: path.ssthresh_bytes,
        srtt_s: seconds(path.rtt_ms),
        min_rtt_s: seconds(path.min_rtt_ms),
    }
}

async fn send(
    network: &Network,
    spec: &SectionsSpec,
    plan: &FlowPlan,
    task: &Task,
    config: Config,
) -> Result<Log, Error> {
    let clock = task.clock;
    let mut log = Log {
        ready_ns: clock.now().as_nanos(),
        ..Log::default()
    };
    sleep_until(clock, plan.started_at.min(plan.stopped_at)).await;
    let address = SocketAddr::new(task.address, task.port);
    let connection = match comity::connect(address, config).await {
        Ok(connection) => connection,
        Err(error) => {
            log.failure = Some(format!("cannot connect: {error}"));
            return Ok(log);
        }
    };
    let started = clock.now();
    log.connected_ns = Some(started.as_nanos());
    let source = Source::new(network, task.flow, task.seed, started)?;
    let warmup = Time::ZERO + network.warmup;
    let watching = async {
        let mut samples = Vec::new();
        let mut at_warmup = None;
        let mut next = clock.now();
        loop {
            sleep_until(clock, next).await;
            let counters = counters(&connection).await;
            samples.push(Sample {
                at_ns: next.as_nanos(),
                cwnd_bytes: counters.cwnd_bytes.unwrap_or(0),
                ssthresh_bytes: counters.ssthresh_bytes.unwrap_or(u64::MAX),
                srtt_ns: counters.srtt_s.map_or(0, |s| (s * 1e9) as u64),
            });
            if at_warmup.is_none() && next >= warmup {
                at_warmup = Some(counters);
            }
            next = (next + SAMPLING).max(clock.now());
            if next >= Time::ZERO + network.duration {
                return (samples, at_warmup.unwrap_or_default());
            }
        }
    };
    let mut frames = Vec::new();
    let (ended, (samples, at_warmup)) = tokio::join!(
        submit(&connection, source, spec, plan, clock, &mut frames),
        watching
    );
    log.frames = frames;
    log.samples = samples;
    log.at_warmup = at_warmup;
    sleep_until(clock, Time::ZERO + network.duration).await;
    log.at_end = counters(&connection).await;
    log.closed = ended;
    Ok(log)
}

/// Submits the source's frames until the flow stops. If the connection ended before, returns when
/// and why.
async fn submit(
    connection: &Connection,
    mut source: Source,
    spec: &SectionsSpec,
    plan: &FlowPlan,
    clock: Clock,
    frames: &mut Vec<Given>,
) -> Option<(u64, String)> {
    let target = connection.target_bitrate();
    let mut submitter = Submitter::new(spec.shedder());
    let mut payload = Bytes::new();
    while source.peek() < plan.stopped_at {
        let due = if source.is_greedy() {
            clock.now()
        } else {
            source.peek()
        };
        if due >= plan.stopped_at {
            break;
        }
        if !source.is_greedy() {
            sleep_until(clock, due).await;
        }
        let frame = source.next_frame(due, target.current())?;
        let mut at = due;
        let step = submitter.step(&Offered::from(&frame), target.offer());
        // Every frame uses a number, so that numbers of frames and sections agree.
        submitter.on_numbered(frame.stream, frame.number, frame.number);
        let (outcome, reason) = if let Step::Skip(reason) = step {
            (Outcome::Shed, Some(reason))
        } else {
            let section = section(&frame, &mut payload, clock, spec);
            let sent = if source.is_greedy() {
                let left = clock.until(plan.stopped_at);
                match tokio::time::timeout(left, connection.send(section)).await {
                    Ok(sent) => {
                        at = clock.now();
                        sent
                    }
                    // The flow has stopped.
                    Err(_) => break,
                }
            } else {
                connection.try_send(section)
            };
            match (sent, connection.close_reason()) {
                (Ok(_), _) => (Outcome::Submitted, None),
                (Err(error), Some(end)) => {
                    return Some((clock.now().as_nanos(), format!("{end}: {error}")));
                }
                (Err(_), None) => (Outcome::Refused, Some(Reason::Cancelled)),
            }
        };
        if let Some(reason) = reason
            && let Err(error) = connection.skip(StreamId(frame.stream), reason)
        {
            return Some((clock.now().as_nanos(), error.to_string()));
        }
        frames.push(Given {
            at_ns: at.as_nanos(),
            bytes: u32::try_from(frame.size.get()).unwrap_or(u32::MAX),
            frame_type: number_of(&TYPES, &frame.frame_type),
            needs: frame.needs,
            outcome,
        });
    }
    None
}

/// A section of zeros for a frame.
fn section(frame: &Frame, payload: &mut Bytes, clock: Clock, spec: &SectionsSpec) -> Section {
    let length = usize::try_from(frame.size.get()).unwrap_or(usize::MAX);
    if payload.len() < length {
        *payload = vec![0; length].into();
    }
    let mut section = Section::new(payload.slice(..length))
        .importance(frame.importance())
        .source_time(clock.instant(frame.source_time));
    if let Some(needs) = frame.bound_to() {
        section = section.needs(SectionId(needs));
    }
    if spec.latency.is_none() {
        section = section.deadline(Duration::MAX);
    }
    section
}

async fn receive(network: &Network, task: &Task, config: Config) -> Result<Log, Error> {
    let clock = task.clock;
    let mut log = Log::default();
    let address = SocketAddr::new(task.address, task.port);
    let endpoint = Endpoint::bind(address, config).map_err(|error| {
        Error::system(format!("cannot listen on {address}"))(std::io::Error::other(error))
    })?;
    log.ready_ns = clock.now().as_nanos();
    let end = Time::ZERO + network.duration + AFTERWARDS;
    let end = clock.instant(end).into();
    let Ok(Some(connection)) = tokio::time::timeout_at(end, endpoint.accept()).await else {
        log.failure = Some("nobody connected".into());
        return Ok(log);
    };
    log.connected_ns = Some(clock.now().as_nanos());
    while let Ok(Some(item)) = tokio::time::timeout_at(end, connection.recv()).await {
        match item {
            Item::Section(section) => {
                let bytes = section.payload.len() as u32;
                let fate = Fate::Whole(clock.time(section.completed).as_nanos(), bytes);
                log.settled.push((section.id.0, fate));
            }
            Item::Gap(gap) => {
                let sections = gap.sections();
                log.settled
                    .extend(sections.map(|id| (id.0, Fate::Gap(number_of(&GAPS, &gap.reason)))));
            }
        }
    }
    let statistics = connection.stats();
    log.at_end.marked_packets = statistics.received.counters.marked_packets;
    Ok(log)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_back() {
        let log = Log {
            frames: vec![Given {
                at_ns: 5,
                bytes: 1_000,
                frame_type: 1,
                needs: Some(3),
                outcome: Outcome::Refused,
            }],
            settled: vec![(0, Fate::Whole(9, 10)), (1, Fate::Gap(4))],
            ..Log::default()
        };
        let text = serde_json::to_string(&log).unwrap();
        let read: Log = serde_json::from_str(&text).unwrap();
        assert_eq!(read.frames, log.frames);
        assert_eq!(read.settled, log.settled);
    }

    #[test]
    fn every_reason_and_type_has_a_number_of_its_own() {
        for (index, reason) in GAPS.iter().enumerate() {
            assert_eq!(usize::from(number_of(&GAPS, reason)), index);
        }
        for (index, kind) in TYPES.iter().enumerate() {
            assert_eq!(usize::from(number_of(&TYPES, kind)), index);
        }
    }
}
