//! A flow in the engine: its two endpoints, its workload and its counters.

use comity_congestion::{RttConfig, RttEstimator};
use comity_link::Random;
use comity_tcp::{Connection, Segment};
use comity_units::{DataSize, Rate, Seed, Span, Time};

use super::alarm::Alarm;
use super::arrivals::Arrivals;
use super::fingerprint::Fingerprint;
use super::links::Watch;
use super::observe::SenderState;
use super::path::Path;
use super::playback::Playback;
use super::schedule::Schedule;
use super::sections::SectionFlow;
use super::streams::flow_stream;
use super::timeline::TimelineFlow;
use super::tokens::{Bucket, TokenSource};
use crate::histogram::Distribution;
use crate::network::{
    FlowSpec, Headers, IPV4_HEADER, Network, Reader, Start, TcpSpec, TransportSpec,
};
use crate::report::FlowReport;

#[derive(Debug)]
pub(super) struct Flow {
    pub(super) forward: Path,
    pub(super) backward: Path,
    pub(super) agent: Agent,
    pub(super) started_at: Time,
    pub(super) stop_at: Time,
    /// Packets on the last link of either path that wait for an event of their own.
    pub(super) waiting: [u32; 2],
    pub(super) counts: FlowCounts,
    pub(super) hash: Fingerprint,
}

/// The transport of a flow. Boxed, so that many small ones do not have the size of the largest.
#[derive(Debug)]
pub(super) enum Agent {
    Tcp(Box<TcpFlow>),
    Datagram(Box<DatagramFlow>),
    Sections(Box<SectionFlow>),
}

#[derive(Debug, Default)]
pub(super) struct FlowCounts {
    pub(super) sent_packets: u64,
    pub(super) sent_wire_bytes: u64,
    pub(super) received_packets: u64,
    pub(super) acks: u64,
    pub(super) dropped_packets: u64,
    /// The dropped packets that came from the destination.
    pub(super) dropped_acks: u64,
    pub(super) in_flight_at_end: u64,
    pub(super) duplicated_packets: u64,
    pub(super) delivered_measured: u64,
    pub(super) delivered_total: u64,
    pub(super) tokens_used: u64,
    pub(super) finished_at: Option<Time>,
    pub(super) delay: Distribution,
}

/// Datagrams without feedback.
#[derive(Debug)]
pub(super) struct DatagramFlow {
    pub(super) wire: u32,
    pub(super) source: DatagramSource,
    pub(super) next_number: u64,
    /// Whether the source emits the next packet when the previous one meets other flows.
    pub(super) is_drawn: bool,
    pub(super) arrivals: Arrivals,
}

/// The workload of a datagram flow.
#[derive(Debug)]
pub(super) enum DatagramSource {
    /// Packets at the times of a calendar.
    Schedule(Schedule),
    /// Packets as tokens allow.
    Bucket(Bucket),
}

/// A TCP connection and the applications at its ends.
#[derive(Debug)]
pub(super) struct TcpFlow {
    pub(super) source: End,
    pub(super) sink: End,
    pub(super) headers: Headers,
    pub(super) workload: TcpWorkload,
    pub(super) reader: ReaderState,
    /// The window at the last event, since when, and its integral over the watched interval so far.
    window: u64,
    window_since: Time,
    window_integral: u128,
    /// Round trips at the end of the warm-up: how many, and their sum.
    pub(super) rtt_at_warmup: (u64, Span),
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct End {
    pub(super) connection: Connection,
    pub(super) alarm: Alarm,
    /// Whether it is sending and may have more to send at this moment. It must not handle later
    /// packets yet.
    pub(super) is_sending: bool,
}

/// The workload of a TCP source. Rare variants are boxed, because there may be a hundred thousand
/// flows.
#[derive(Debug)]
pub(super) enum TcpWorkload {
    Greedy,
    File(u64),
    Schedule { schedule: Box<Schedule>, chunk: u32 },
    Bucket(Box<TokenSource>),
    Timeline(Box<TimelineFlow>),
}

/// The state of the receiving application.
#[derive(Debug)]
pub(super) enum ReaderState {
    Immediate,
    Playback(Box<Playback>),
}

impl ReaderState {
    fn new(reader: &Reader, workload: &TcpWorkload) -> Self {
        let file = match workload {
            TcpWorkload::File(bytes) => Some(*bytes),
            _ => None,
        };
        Playback::new(reader, file).map_or(Self::Immediate, |playback| {
            Self::Playback(Box::new(playback))
        })
    }
}

impl TcpFlow {
    pub(super) fn new(
        source: Connection,
        sink: Connection,
        headers: Headers,
        workload: TcpWorkload,
        reader: &Reader,
    ) -> Self {
        let end = |connection| End {
            connection,
            alarm: Alarm::new(),
            is_sending: false,
        };
        Self {
            source: end(source),
            sink: end(sink),
            headers,
            reader: ReaderState::new(reader, &workload),
            workload,
            window: 0,
            window_since: Time::ZERO,
            window_integral: 0,
            rtt_at_warmup: (0, Span::ZERO),
        }
    }

    pub(super) fn end(&mut self, at_destination: bool) -> &mut End {
        if at_destination {
            &mut self.sink
        } else {
            &mut self.source
        }
    }

    #[inline]
    pub(super) fn wire_size(&self, segment: &Segment) -> u32 {
        let headers = match self.headers {
            Headers::Fixed {
                bytes,
                per_sack_block,
            } => bytes + per_sack_block * segment.options.sack.len() as u32,
            Headers::Real => IPV4_HEADER + segment.header_length(),
        };
        segment.payload + headers
    }

    /// The headers of a data segment, for counters in bytes on the wire.
    pub(super) fn data_headers(&self) -> u32 {
        let config = self.source.connection.config();
        self.headers
            .of_data(config.timestamps, config.metered, config.timeline.is_some())
    }

    /// Records the window after an event at the source.
    #[inline]
    pub(super) fn track_window(&mut self, now: Time, warmup: Time) {
        let window = self.source.connection.congestion_window();
        if window != self.window {
            self.integrate_window(now, warmup);
            self.window = window;
        }
    }

    fn integrate_window(&mut self, now: Time, warmup: Time) {
        let watched = now.saturating_since(self.window_since.max(warmup));
        self.window_integral += u128::from(self.window) * u128::from(watched.as_nanos());
        self.window_since = now;
    }

    /// The mean window over the watched interval.
    pub(super) fn mean_window(&mut self, warmup: Time, end: Time) -> Option<f64> {
        self.integrate_window(end, warmup);
        let watched = end.since(warmup)?.as_nanos();
        (watched > 0).then(|| self.window_integral as f64 / watched as f64)
    }

    /// The sender's state, for observers.
    pub(super) fn sender_state(&self) -> SenderState {
        let connection = &self.source.connection;
        let config = &connection.config().rtt;
        let rtt = |of: fn(&RttEstimator, &RttConfig) -> Option<Span>| {
            connection
                .rtt()
                .and_then(|rtt| of(rtt, config))
                .map_or(0, Span::as_nanos)
        };
        let statistics = connection.statistics();
        SenderState {
            window: connection.congestion_window(),
            ssthresh: ssthresh(connection).unwrap_or(0),
            in_flight: connection.in_flight(),
            srtt_ns: rtt(RttEstimator::smoothed),
            rtt_variation_ns: rtt(|rtt, config| Some(rtt.variation(config))),
            min_rtt_ns: rtt(|rtt, _| rtt.min()),
            latest_rtt_ns: rtt(|rtt, _| rtt.latest()),
            retransmitted: statistics.retransmitted,
            timeouts: u64::from(statistics.timeouts),
            fast_retransmits: u64::from(statistics.fast_retransmits),
            is_recovering: connection.is_recovering(),
            capacity_bps: capacity_bps(connection).unwrap_or(0),
        }
    }

    pub(super) fn memory(&self) -> usize {
        let reader = match &self.reader {
            ReaderState::Immediate => 0,
            ReaderState::Playback(_) => size_of::<Playback>(),
        };
        size_of::<Self>()
            + self.workload.heap_memory()
            + reader
            + self.source.connection.heap_memory()
            + self.sink.connection.heap_memory()
    }
}

/// The slow-start threshold in bytes, where the controller has one.
fn ssthresh(connection: &Connection) -> Option<u64> {
    connection
        .controller()?
        .decision()
        .ssthresh
        .map(DataSize::get)
}

/// The capacity of the bottleneck, if the controller has it or an estimate of it.
fn capacity_bps(connection: &Connection) -> Option<u64> {
    connection.controller()?.capacity().map(Rate::as_bps)
}

impl TcpWorkload {
    /// Whether only packets and timers make the source act.
    pub(super) const fn acts_on_packets_alone(&self) -> bool {
        match self {
            Self::Greedy | Self::File(_) => true,
            Self::Timeline(timeline) => timeline.is_greedy(),
            Self::Schedule { .. } | Self::Bucket { .. } => false,
        }
    }

    /// Whether the source does not depend on its reader.
    pub(super) const fn is_blind_to_its_reader(&self) -> bool {
        match self {
            Self::Timeline(timeline) => timeline.is_greedy(),
            _ => true,
        }
    }

    fn heap_memory(&self) -> usize {
        match self {
            Self::Greedy | Self::File(_) => 0,
            Self::Schedule { .. } => size_of::<Schedule>(),
            Self::Bucket(_) => size_of::<TokenSource>(),
            Self::Timeline(timeline) => timeline.heap_memory(),
        }
    }
}

impl Flow {
    /// Whether a path entry is on the reverse path, which follows the forward path.
    #[inline]
    pub(super) fn is_return(&self, at: u32) -> bool {
        at >= self.backward.start
    }

    /// How many packets wait at the end of the path with the entry `at`.
    #[inline]
    pub(super) fn waiting(&mut self, at: u32) -> &mut u32 {
        &mut self.waiting[usize::from(self.is_return(at))]
    }

    /// Whether no packet waits at the end of the path with the entry `at`.
    #[inline]
    pub(super) fn is_next(&self, at: u32) -> bool {
        self.waiting[usize::from(self.is_return(at))] == 0
    }

    pub(super) fn memory(&self) -> usize {
        let agent = match &self.agent {
            Agent::Tcp(tcp) => tcp.memory(),
            Agent::Datagram(datagram) => size_of::<DatagramFlow>() + datagram.arrivals.memory(),
            Agent::Sections(sections) => sections.memory(),
        };
        size_of::<Self>() + agent + self.counts.delay.memory()
    }

    /// The report of the flow. `share` is an equal share of its path, in bytes on the wire.
    pub(super) fn report(
        &mut self,
        spec: &FlowSpec,
        watch: Watch,
        share: Option<DataSize>,
    ) -> FlowReport {
        let counts = &self.counts;
        let seconds = watch.end.saturating_since(watch.warmup).as_secs_f64();
        let per_second = |bytes: u64| {
            if seconds > 0.0 {
                bytes as f64 * 8.0 / seconds
            } else {
                0.0
            }
        };
        let mut report = FlowReport {
            name: spec.name.clone(),
            group: spec.group.clone(),
            kind: "datagram".to_owned(),
            started: self.started_at,
            finished: counts.finished_at,
            delivered_bytes: counts.delivered_measured,
            delivered_bytes_total: counts.delivered_total,
            delivered_wire_bytes: counts.delivered_measured,
            sent_packets: counts.sent_packets,
            sent_wire_bytes: counts.sent_wire_bytes,
            received_packets: counts.received_packets,
            dropped_packets: counts.dropped_packets,
            dropped_acks: counts.dropped_acks,
            in_flight_at_end: counts.in_flight_at_end,
            duplicated_packets: counts.duplicated_packets,
            acks: counts.acks,
            delay: counts.delay.summary(),
            tokens_used_bytes: counts.tokens_used,
            ..FlowReport::default()
        };
        report.delay_distribution = std::mem::take(&mut self.counts.delay);
        match (&mut self.agent, &spec.transport) {
            (Agent::Tcp(tcp), TransportSpec::Tcp(settings)) => {
                tcp.complete(&mut report, settings, watch);
            }
            (Agent::Sections(sections), TransportSpec::Sections(settings)) => {
                sections.complete(&mut report, settings, share);
                report.arrival_spacing = sections.arrivals.summary();
            }
            (Agent::Datagram(datagram), _) => {
                report.arrival_spacing = datagram.arrivals.summary();
            }
            _ => {}
        }
        report.goodput_bps = per_second(report.delivered_bytes);
        report.throughput_bps = per_second(report.delivered_wire_bytes);
        report
    }
}

impl TcpFlow {
    /// Adds the fields of a TCP sender to a report.
    fn complete(&mut self, report: &mut FlowReport, settings: &TcpSpec, watch: Watch) {
        let mean_window = self.mean_window(watch.warmup, watch.end);
        let connection = &self.source.connection;
        let config = connection.config();
        let statistics = connection.statistics();
        let seconds = |span: Option<Span>| span.map(Span::as_secs_f64);
        report.kind = format!(
            "{}/{}",
            settings.controller,
            settings.config.recovery.name()
        );
        let segments = report.delivered_bytes.div_ceil(u64::from(config.mss));
        report.delivered_wire_bytes =
            report.delivered_bytes + segments * u64::from(self.data_headers());
        report.retransmitted_packets = statistics.retransmitted;
        report.timeouts = u64::from(statistics.timeouts);
        report.fast_retransmits = u64::from(statistics.fast_retransmits);
        report.srtt_s = seconds(connection.rtt().and_then(|rtt| rtt.smoothed(&config.rtt)));
        report.min_rtt_s = seconds(connection.rtt().and_then(RttEstimator::min));
        let (samples, sum) = self.rtt_at_warmup;
        let samples = statistics.rtt_samples - samples;
        if samples > 0 {
            let sum = statistics.rtt_sum.saturating_sub(sum);
            report.mean_rtt_s = Some(sum.as_secs_f64() / samples as f64);
        }
        report.cwnd_bytes = Some(connection.congestion_window());
        report.mean_cwnd_bytes = mean_window;
        report.ssthresh_bytes = ssthresh(connection);
        report.capacity_bps = capacity_bps(connection);
        if let TcpWorkload::Bucket(source) = &mut self.workload {
            if let Some(rtt) = connection.rtt().and_then(RttEstimator::latest) {
                source.rounds.advance(watch.end, rtt);
            }
            if let Some((mean, stddev)) = source.rounds.mean_and_stddev() {
                report.tokens_per_rtt_bytes = Some(mean);
                report.tokens_per_rtt_stddev_bytes = Some(stddev);
            }
        }
        if let TcpWorkload::File(bytes) = &self.workload {
            report.size_bytes = Some(*bytes);
        }
        if let TcpWorkload::Timeline(timeline) = &self.workload {
            let sent = connection.timeline_statistics().unwrap_or_default();
            let missing = self.sink.connection.gap_statistics();
            report.timeline = Some(timeline.report(sent, missing));
            if config.timeline.is_some() {
                report.kind.push_str("/timeline");
            }
        }
        if let ReaderState::Playback(playback) = &mut self.reader {
            report.playback = Some(playback.report(report.started, watch.warmup, watch.end));
        }
    }
}

/// The start times of all flows, each drawn from the flow's own stream.
pub(super) fn start_times(network: &Network, seed: Seed) -> Vec<Time> {
    let mut times: Vec<Time> = Vec::with_capacity(network.flows.len());
    let mut before: Option<&FlowSpec> = None;
    for flow in &network.flows {
        let mut random = Random::new(flow_stream(seed, &flow.name).derive("start"));
        let Start {
            at,
            spread,
            arrivals,
        } = flow.start;
        let time = if let Some(mean) = arrivals {
            let is_next = |it: &FlowSpec| it.group == flow.group && it.start == flow.start;
            let last = times.last().filter(|_| before.is_some_and(is_next));
            let interval = random.exponential(mean.as_secs_f64());
            *last.unwrap_or(&at) + Span::from_secs_f64(interval)
        } else if spread.is_zero() {
            at
        } else {
            at + Span::from_nanos(random.below(spread.as_nanos()))
        };
        before = Some(flow);
        times.push(time);
    }
    times
}
