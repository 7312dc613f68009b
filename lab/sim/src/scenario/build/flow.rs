//! From flow tables to flows.

use core::num::NonZeroU32;

use comity_congestion::recovery::{RecoveryConfig, RecoveryKind};
use comity_congestion::table::{Parameters, find};
use comity_tcp as tcp;
use comity_tcp::timeline::{DeadlineClock, TimelineConfig};
use comity_units::{DataSize, SeqNo, Span, Time};

use super::super::kinds::Template;
use super::super::problem::{ProblemKind, Unfit};
use super::super::schema::{At, Context};
use super::super::tables::ScenarioTable;
use super::super::tables::flow::{
    CbrTable, DelayedAckTable, FlowTable, HeadersTable, ReaderTable, RecoveryName, RtoValue,
    TcpTable, TransportTable, WorkloadTable,
};
use super::graph::Graph;
use super::hosts::{Hosts, own_access};
use super::library::{Library, Limits};
use super::preset::PresetRest;
use super::sections;
use super::sizes::{narrow, size};
use super::topology::{Core, access_link};
use super::transfers;
use crate::custom::Names;
use crate::engine::check_flow;
use crate::network::{
    CbrSpacing, CommandSpec, DatagramSpec, FlowError, FlowSpec, Headers, NodeId, ReadSizes, Reader,
    Start, TcpSpec, TimelineSpec, TransportSpec, Workload,
};

/// The largest window without scaling.
const UNSCALED_WINDOW: u64 = 65_535;

/// Adds the flows of a group with their hosts, and reports problems.
pub(super) fn build(
    table: &FlowTable,
    scenario: &ScenarioTable,
    core: &Core,
    graph: &mut Graph,
    library: &Library,
    limits: &Limits,
    cx: &mut Context<'_>,
) {
    let written = &table.written;
    let transport = transport(table, cx);
    let workload = workload(table, library, cx);
    let trace = match &table.workload {
        Some(WorkloadTable::Tmix(trace)) => {
            transfers::of_trace(trace, table, scenario, library, cx).map(Some)
        }
        _ => Some(None),
    };
    let reader = reader(table, library, cx);
    check_times(table, scenario, cx);
    let is_whole = workload.is_some() && reader.is_some() && trace.is_some();
    let trace = trace.flatten();
    let count = trace.as_ref().map_or(table.count, |them| them.len() as u32);
    let has_workload = workload.is_some();
    let prototype = transport.map(|transport| FlowSpec {
        name: String::new(),
        group: table.group.clone(),
        source: NodeId(0),
        destination: NodeId(0),
        transport,
        workload: workload.unwrap_or(Workload::Greedy),
        reader: reader.unwrap_or_default(),
        start: Start {
            at: Time::ZERO + table.start.at,
            spread: table.start.spread,
            arrivals: table.start.arrivals,
        },
        stop: table.stop.map(|stop| Time::ZERO + stop),
    });
    if let Some(prototype) = &prototype {
        report_faults(table, prototype, has_workload, cx);
    }
    let own = own_access(table, library, cx);
    let access = match (&own, &table.rtt) {
        (Some(own), _) => own.clone(),
        (None, None) => Some(core.access.clone()),
        (None, Some(_)) => Some(core.access.clone().or_else(|| Some(Default::default()))),
    };
    let access_to = match (&table.access_to, &own) {
        (Some(access), _) => access_link(access, library, cx),
        (None, Some(own)) if table.rtt.is_none() && !core.has_access_to => own.clone(),
        (None, _) => Some(core.access_to.clone()),
    };
    let template = match &table.name {
        Some(template) if count > 1 && !template.varies() => {
            return cx.report_at(written, "name", Unfit::NameWithoutIndex.into());
        }
        Some(template) => Some(template.clone()),
        None => Some(Template::of_group(&table.group)),
    };
    let total = graph.flows.len() as u64 + u64::from(count);
    if total > u64::from(limits.flows) {
        return cx.report_at(
            written,
            "count",
            ProblemKind::TooManyThings {
                what: "flows",
                found: total,
                limit: limits.flows.into(),
            },
        );
    }
    let (Some(mut prototype), true, Some(access), Some(access_to), Some(template)) =
        (prototype, is_whole, access, access_to, template)
    else {
        return;
    };
    if table.access_delays.is_some() && access.is_none() {
        return cx.report_at(written, "access_delays", Unfit::DelaysWithoutAccess.into());
    }
    let hosts = Hosts {
        table,
        core,
        access: &access,
        access_to: &access_to,
    };
    for index in 0..count {
        if let Some(&(start, bytes)) = trace.as_ref().and_then(|them| them.get(index as usize)) {
            prototype.start.at = Time::ZERO + table.start.at + start;
            prototype.workload = Workload::File(bytes);
        }
        let added = template
            .expand(index)
            .ok_or_else(|| cx.report_at(written, "name", Unfit::IndexBelowZero.into()))
            .and_then(|name| hosts.add(index, &name, &prototype, graph, cx));
        // The flows of a group are alike, so further reports would repeat the first.
        if added.is_err() {
            return;
        }
    }
}

/// Reports the problems of the flows of a group, whatever their paths, at their keys. A missing
/// workload has been reported already, and only the rest is checked.
fn report_faults(
    table: &FlowTable,
    prototype: &FlowSpec,
    has_workload: bool,
    cx: &mut Context<'_>,
) {
    for error in check_flow(prototype, None, &Names(cx.custom)) {
        let key = match &error {
            FlowError::Parameter(error) => {
                let key = blamed(error, &table.written);
                let error = error.clone();
                cx.report_at(&table.written, key, ProblemKind::Controller { error });
                continue;
            }
            FlowError::PlaybackOfSections | FlowError::ReadInterval => "reader",
            FlowError::Controller(_) | FlowError::CustomController(_) | FlowError::NotForTcp => {
                "controller"
            }
            FlowError::NoPayload | FlowError::DatagramSize => "packet",
            FlowError::WindowBelowSegment => "rwnd",
            FlowError::BufferBelowSection => "buffer",
            FlowError::SectionSize => "section",
            FlowError::ReportInterval => "timeline",
            FlowError::UnclockedDatagrams
            | FlowError::FramesWithoutSections
            | FlowError::EncoderWithoutTarget
            | FlowError::WorkloadOfSections
            | FlowError::RefillInterval
            | FlowError::NoRate
            | FlowError::NoSpacing
            | FlowError::NeverOn
            | FlowError::Video(_)
            | FlowError::Encoder(_) => "workload",
            FlowError::Unreachable { .. }
            | FlowError::ToItself { .. }
            | FlowError::Command
            | FlowError::Standstill
            | FlowError::Sections(_) => "",
        };
        if key == "workload" && !has_workload {
            continue;
        }
        cx.report_at(&table.written, key, ProblemKind::Flow { error });
    }
}

fn check_times(table: &FlowTable, scenario: &ScenarioTable, cx: &mut Context<'_>) {
    let latest = table.start.at + table.start.spread;
    if table.start.at >= scenario.duration {
        cx.report_at(&table.written, "start", Unfit::StartAfterEnd.into());
    }
    if table.start.arrivals.is_some() && !table.start.spread.is_zero() {
        let kind = ProblemKind::Excludes { other: "spread" };
        cx.report_at(&table.start.written, "arrivals", kind);
    }
    if table.stop.is_some_and(|stop| stop <= latest) {
        cx.report_at(&table.written, "stop", Unfit::StopBeforeStart.into());
    }
}

fn workload(table: &FlowTable, library: &Library, cx: &mut Context<'_>) -> Option<Workload> {
    if table.workload.is_some() && matches!(table.transport, TransportTable::Command(_)) {
        cx.report_at(&table.written, "workload", Unfit::WorkloadOfCommand.into());
        return None;
    }
    Some(match &table.workload {
        None | Some(WorkloadTable::Greedy(_)) => Workload::Greedy,
        Some(WorkloadTable::File(file)) => transfers::file(file, library, cx)?,
        // Each flow gets the size of its connection.
        Some(WorkloadTable::Tmix(_)) => Workload::File(DataSize::new(1)),
        Some(WorkloadTable::Cbr(cbr)) => Workload::Cbr {
            spacing: spacing(cbr, cx)?,
            jitter: cbr.jitter,
        },
        Some(WorkloadTable::OnOff(table)) => Workload::OnOff {
            rate: table.rate,
            mean_on: table.mean_on,
            mean_off: table.mean_off,
        },
        Some(WorkloadTable::TokenBucket(table)) => {
            if table.refill > table.depth {
                cx.report_at(&table.written, "refill", Unfit::RefillBeyondDepth.into());
                return None;
            }
            Workload::TokenBucket {
                depth: table.depth,
                refill: table.refill,
                interval: table.interval,
            }
        }
        Some(WorkloadTable::Poisson(table)) => Workload::Poisson { rate: table.rate },
        Some(WorkloadTable::Video(table)) => Workload::Video(sections::video(table, cx)?),
        Some(WorkloadTable::Encoder(table)) => Workload::Encoder(sections::encoder(table, cx)?),
        Some(WorkloadTable::Frames(table)) => match library.frames(cx.files, &table.file) {
            Ok(frames) => Workload::Frames(frames),
            Err(kind) => {
                cx.report_at(&table.written, "file", kind);
                return None;
            }
        },
    })
}

fn spacing(table: &CbrTable, cx: &mut Context<'_>) -> Option<CbrSpacing> {
    match (table.rate, table.interval, table.gap) {
        (Some(rate), None, None) => Some(CbrSpacing::Rate(rate)),
        (None, Some(interval), None) => Some(CbrSpacing::Interval(interval)),
        (None, None, Some(gap)) => Some(CbrSpacing::Gap(gap)),
        _ => {
            cx.report_at(&table.written, "", Unfit::SpacingNotOne.into());
            None
        }
    }
}

fn reader(table: &FlowTable, library: &Library, cx: &mut Context<'_>) -> Option<Reader> {
    let TransportTable::Tcp(tcp) = &table.transport else {
        return Some(Reader::Immediate);
    };
    match &tcp.reader {
        None | Some(ReaderTable::Immediate(_)) => Some(Reader::Immediate),
        Some(ReaderTable::Playback(playback)) => {
            let written = &playback.written;
            let (sizes, key) = match (playback.bytes, &playback.frames) {
                (Some(bytes), None) => (ReadSizes::Equal(bytes), "bytes"),
                (None, Some(file)) => match library.frames(cx.files, file) {
                    Ok(frames) => (ReadSizes::Frames(frames), "frames"),
                    Err(kind) => {
                        cx.report_at(written, "frames", kind);
                        return None;
                    }
                },
                _ => {
                    cx.report_at(written, "", Unfit::ReadsNotOne.into());
                    return None;
                }
            };
            let buffer = playback.buffer.unwrap_or(DataSize::ZERO);
            let window = Packets::of(tcp, cx)?.receive_buffer;
            for (bytes, key) in [(sizes.largest(), key), (buffer, "buffer")] {
                if bytes > window {
                    cx.report_at(written, key, Unfit::ReadBeyondWindow.into());
                    return None;
                }
            }
            Some(Reader::Playback {
                sizes,
                interval: playback.interval,
                delay: playback.delay,
                buffer,
            })
        }
    }
}

fn transport(table: &FlowTable, cx: &mut Context<'_>) -> Option<TransportSpec> {
    match &table.transport {
        TransportTable::Tcp(tcp) => {
            if let Some(timeline) = &tcp.timeline {
                let (key, why) = match table.has_frames() {
                    true => ("section", "each frame is a section"),
                    false => ("feedback", "only sources of frames adapt to reports"),
                };
                cx.report_idle(&timeline.written, key, why);
            }
            tcp_spec(tcp, cx).map(TransportSpec::Tcp)
        }
        TransportTable::Datagram(datagram) => Some(TransportSpec::Datagram(DatagramSpec {
            wire: datagram.packet,
        })),
        TransportTable::Sections(table_of_sections) => {
            sections::spec(table_of_sections, table, cx).map(TransportSpec::Sections)
        }
        TransportTable::Command(command) => Some(TransportSpec::Command(CommandSpec {
            sender: command.sender.clone(),
            receiver: command.receiver.clone(),
        })),
    }
}

/// Sizes that depend on each other: packets, segments, windows.
struct Packets {
    headers: Headers,
    timestamps: bool,
    mss: u32,
    receive_buffer: DataSize,
}

impl Packets {
    fn of(table: &TcpTable, cx: &mut Context<'_>) -> Option<Self> {
        const USUAL_PACKET: DataSize = DataSize::new(1_500);
        let rest = table.preset.rest();
        let headers = match &table.headers {
            None => rest.headers,
            Some(HeadersTable::Real) => Headers::Real,
            Some(HeadersTable::Fixed {
                bytes,
                per_sack_block,
            }) => Headers::Fixed {
                bytes: narrow(*bytes),
                per_sack_block: narrow(*per_sack_block),
            },
        };
        let timestamps = table.timestamps.unwrap_or(rest.config.timestamps);
        let controller = table.controller.as_deref().unwrap_or(rest.controller);
        let metered = find(controller).is_ok_and(|row| row.has_meter());
        let weight = headers.of_data(timestamps, metered, drops_expired(table));
        let payload = match (table.packet, table.mss) {
            (Some(_), Some(_)) => {
                cx.report_at(
                    &table.written,
                    "mss",
                    ProblemKind::Excludes { other: "packet" },
                );
                return None;
            }
            (None, Some(mss)) => mss,
            (packet, None) => packet
                .unwrap_or(USUAL_PACKET)
                .saturating_sub(DataSize::new(weight.into())),
        };
        let receive_buffer = match (table.rwnd, rest.rwnd) {
            (Some(rwnd), _) => size(rwnd, payload),
            (None, Some(packets)) => payload * packets.into(),
            (None, None) => rest.config.receive_buffer,
        };
        Some(Self {
            headers,
            timestamps,
            mss: narrow(payload),
            receive_buffer,
        })
    }
}

fn tcp_spec(table: &TcpTable, cx: &mut Context<'_>) -> Option<TcpSpec> {
    let written = &table.written;
    let rest = table.preset.rest();
    let base = rest.config;
    let packets = Packets::of(table, cx);
    let recovery = recovery(table, &rest, cx);
    let rtt = rtt(table.rto.as_ref(), &base, cx);
    let by_sack = matches!(
        recovery.kind,
        RecoveryKind::Sack { .. } | RecoveryKind::Rack { .. }
    );
    let sack = match (table.sack, table.recovery) {
        (Some(sack), _) => sack,
        (None, Some(_)) => by_sack,
        (None, None) => base.sack,
    };
    if by_sack && !sack {
        cx.report_at(written, "sack", Unfit::SackRecoveryWithoutSack.into());
    }
    let packets = packets?;
    if !packets.timestamps {
        cx.report_idle(written, "timestamp_tick", "there are no timestamps");
    }
    if !sack && table.duplicate_sack == Some(true) {
        cx.report_idle(written, "duplicate_sack", "there are no SACK blocks");
    }
    if let Some(timeline) = table.timeline.as_ref().filter(|it| !it.drop_expired) {
        let why = "with drop_expired = false, the sender is that of plain TCP";
        for (key, differs) in [
            ("blind_spot", timeline.blind_spot),
            ("samples_obsolete", !timeline.samples_obsolete),
            ("lifetime_on_tick", timeline.lifetime_on_tick),
            ("relative_to", timeline.relative_to != DeadlineClock::Sender),
        ] {
            if differs {
                cx.report_idle(&timeline.written, key, why);
            }
        }
    }
    if let Some(timeline) = table.timeline.as_ref().filter(|it| it.lifetime_on_tick)
        && rtt.tick <= Span::from_nanos(1)
    {
        let why = "the retransmission timer has no ticks: expected a longer `rto.tick`";
        cx.report_idle(&timeline.written, "lifetime_on_tick", why);
    }
    let window_scaling = table.window_scaling.unwrap_or(base.window_scaling);
    if !window_scaling && packets.receive_buffer > DataSize::new(UNSCALED_WINDOW) {
        cx.report_at(written, "rwnd", Unfit::WindowNeedsScaling.into());
    }
    let config = tcp::Config {
        mss: packets.mss,
        receive_buffer: packets.receive_buffer,
        window_scaling,
        timestamps: packets.timestamps,
        timestamp_tick: table.timestamp_tick.unwrap_or(base.timestamp_tick),
        sack,
        duplicate_sack: table.duplicate_sack.unwrap_or(base.duplicate_sack),
        max_sack_blocks: base.max_sack_blocks,
        ecn: table.ecn.unwrap_or(base.ecn),
        restart_after_idle: table.restart_after_idle.unwrap_or(base.restart_after_idle),
        delayed_ack: delayed_ack(table, &base),
        segmentation_offload: base.segmentation_offload,
        limited_transmit: table.limited_transmit.unwrap_or(base.limited_transmit),
        handshake: table.handshake.unwrap_or(base.handshake),
        initial_sequence: table
            .initial_sequence
            .map_or(base.initial_sequence, SeqNo::new),
        recovery,
        rtt,
        restart_timer_before_sample: table
            .restart_timer_before_sample
            .unwrap_or(base.restart_timer_before_sample),
        max_burst: table.max_burst.or(base.max_burst),
        give_up_after: table
            .give_up_after
            .and_then(NonZeroU32::new)
            .or(base.give_up_after),
        metered: base.metered,
        skip_segments: base.skip_segments,
        time_wait: table.time_wait.unwrap_or(base.time_wait),
        timeline: table
            .timeline
            .as_ref()
            .filter(|timeline| timeline.drop_expired)
            .map(|timeline| TimelineConfig {
                blind_spot: timeline.blind_spot,
                holds_passed: timeline.holds_passed,
                samples_obsolete: timeline.samples_obsolete,
                lifetime_on_tick: timeline.lifetime_on_tick,
                clock: timeline.relative_to,
            }),
    };
    let mss = DataSize::new(packets.mss.into());
    let spec = TcpSpec {
        config,
        controller: table
            .controller
            .clone()
            .unwrap_or_else(|| rest.controller.into()),
        parameters: Parameters::new(),
        initial_window: table
            .initial_window
            .map_or(mss * rest.initial_window.into(), |window| size(window, mss)),
        initial_ssthresh: match table.ssthresh {
            Some(extent) => Some(size(extent, mss)),
            None => rest.ssthresh,
        },
        headers: packets.headers,
        timeline: table.timeline.as_ref().map(|timeline| TimelineSpec {
            section: timeline.section,
            deadline: timeline.deadline,
            feedback: timeline.feedback,
        }),
        stack: table.stack,
    };
    with_parameters(spec, table, &rest, cx)
}

/// Sets the parameters of the controller.
fn with_parameters(
    mut spec: TcpSpec,
    table: &TcpTable,
    rest: &PresetRest,
    cx: &mut Context<'_>,
) -> Option<TcpSpec> {
    let written = &table.written;
    let row = find(&spec.controller).ok();
    spec.parameters = row.map_or_else(Parameters::new, |row| rest.parameters_for(row));
    let reported = cx.problems.len();
    if let Some(table) = &table.parameters {
        let path = written.path_of("parameters");
        table.set(row, &mut spec.parameters, &path, cx);
    }
    (cx.problems.len() == reported).then_some(spec)
}

/// The key that a controller refuses.
fn blamed(error: &comity_congestion::table::ParameterError, written: &At) -> &'static str {
    use comity_congestion::table::ParameterError;
    let key = match error {
        ParameterError::OutOfRange { name, .. } => match *name {
            "mss" => "packet",
            "initial_window" => "initial_window",
            "initial_ssthresh" => "ssthresh",
            "max_window" => "rwnd",
            _ => "parameters",
        },
        _ => "parameters",
    };
    if written.has(key) { key } else { "controller" }
}

/// Whether the flow is time-lined TCP.
fn drops_expired(table: &TcpTable) -> bool {
    table
        .timeline
        .as_ref()
        .is_some_and(|timeline| timeline.drop_expired)
}

fn recovery(table: &TcpTable, rest: &PresetRest, cx: &mut Context<'_>) -> RecoveryConfig {
    let mut config = table
        .recovery
        .map_or(rest.config.recovery, |name| name.config(rest.is_ns2));
    if drops_expired(table) {
        config = config.for_timeline();
    }
    match &mut config.kind {
        RecoveryKind::NewReno {
            impatient,
            deflate_window,
        } => {
            *impatient = table.impatient.unwrap_or(*impatient);
            *deflate_window = table.deflate_window.unwrap_or(*deflate_window);
        }
        RecoveryKind::Sack { pipe } => *pipe = table.pipe.unwrap_or(*pipe),
        RecoveryKind::Rack {
            probe,
            proportional,
            undo,
        } => {
            *probe = table.tail_loss_probe.unwrap_or(*probe);
            *proportional = table.prr.unwrap_or(*proportional);
            *undo = table.undo.unwrap_or(*undo);
        }
        RecoveryKind::Tahoe | RecoveryKind::Reno => {}
    }
    let is_new_reno = matches!(config.kind, RecoveryKind::NewReno { .. });
    let is_sack = matches!(config.kind, RecoveryKind::Sack { .. });
    let is_rack = matches!(config.kind, RecoveryKind::Rack { .. });
    let timeline = table.timeline.as_ref();
    let is_blind = timeline.is_some_and(|it| it.drop_expired && it.blind_spot);
    for (key, is_given, fits, reason) in [
        (
            "impatient",
            table.impatient.is_some(),
            is_new_reno,
            Unfit::KeyOfNewReno,
        ),
        (
            "deflate_window",
            table.deflate_window.is_some(),
            is_new_reno,
            Unfit::KeyOfNewReno,
        ),
        (
            "pipe",
            table.pipe.is_some(),
            is_sack,
            Unfit::PipeWithoutSack,
        ),
        (
            "tail_loss_probe",
            table.tail_loss_probe.is_some(),
            is_rack,
            Unfit::KeyOfRack,
        ),
        ("prr", table.prr.is_some(), is_rack, Unfit::KeyOfRack),
        ("undo", table.undo.is_some(), is_rack, Unfit::KeyOfRack),
        (
            "recovery",
            drops_expired(table) && table.recovery == Some(RecoveryName::Rack),
            false,
            Unfit::RackWithTimeline,
        ),
        (
            "timeline",
            timeline.is_some_and(|it| it.holds_passed),
            is_blind && !is_sack && !is_rack,
            Unfit::NothingToHold,
        ),
    ] {
        if is_given && !fits {
            cx.report_at(&table.written, key, reason.into());
        }
    }
    config.duplicate_threshold = table
        .duplicate_threshold
        .and_then(|threshold| u8::try_from(threshold).ok())
        .unwrap_or(config.duplicate_threshold);
    config.bugfix = table.bugfix.unwrap_or(config.bugfix);
    config
}

fn delayed_ack(table: &TcpTable, base: &tcp::Config) -> Option<tcp::DelayedAck> {
    const USUAL: tcp::DelayedAck = tcp::DelayedAck {
        segments: 2,
        timeout: Span::from_millis(40),
        quick: 0,
    };
    match &table.delayed_ack {
        None => base.delayed_ack,
        Some(DelayedAckTable::Flag(false)) => None,
        Some(DelayedAckTable::Flag(true)) => Some(base.delayed_ack.unwrap_or(USUAL)),
        Some(DelayedAckTable::Named(named)) => Some(*named),
        Some(DelayedAckTable::Settings(settings)) => Some(tcp::DelayedAck {
            segments: u8::try_from(settings.segments).unwrap_or(u8::MAX),
            timeout: settings.timeout,
            quick: settings
                .quick
                .and_then(|quick| u8::try_from(quick).ok())
                .unwrap_or(base.delayed_ack.map_or(0, |delayed| delayed.quick)),
        }),
    }
}

fn rtt(
    value: Option<&RtoValue>,
    base: &tcp::Config,
    cx: &mut Context<'_>,
) -> comity_congestion::RttConfig {
    let base = base.rtt;
    let table = match value {
        None => return base,
        Some(RtoValue::Named(named)) => return *named,
        Some(RtoValue::Settings(table)) => table,
    };
    let config = comity_congestion::RttConfig {
        tick: table.tick.unwrap_or(base.tick),
        phase: table.phase.unwrap_or(base.phase),
        granularity: table.granularity.unwrap_or(base.granularity),
        initial_timeout: table.initial_timeout.unwrap_or(base.initial_timeout),
        min_timeout: table.min_timeout.unwrap_or(base.min_timeout),
        max_timeout: table.max_timeout.unwrap_or(base.max_timeout),
        max_doublings: table
            .max_doublings
            .and_then(|doublings| u8::try_from(doublings).ok())
            .unwrap_or(base.max_doublings),
        floor_before_backoff: table
            .floor_before_backoff
            .unwrap_or(base.floor_before_backoff),
        forget_after_backoff: table
            .forget_after_backoff
            .unwrap_or(base.forget_after_backoff),
    };
    if config.min_timeout > config.max_timeout {
        let key = if table.written.has("min_timeout") {
            "min_timeout"
        } else {
            "max_timeout"
        };
        cx.report_at(&table.written, key, Unfit::TimeoutFloorAboveCeiling.into());
    }
    config
}
