//! The tables of flows, workloads and readers.

use comity_congestion::RttConfig;
use comity_congestion::recovery::{PipeRule, RecoveryConfig};
use comity_tcp::DelayedAck;
use comity_tcp::timeline::DeadlineClock;
use comity_units::{DataSize, Rate, Span};

use crate::network::Stack;

use super::super::kinds::{
    Amount, Choice, Count, Either, Extent, ExtentKind, Flag, List, Name, NameTemplate, PACKET,
    POSITIVE_BYTES, POSITIVE_SPAN, RATE, Real, SPAN, TICK, Template, Text, Word,
};
use super::super::parameters::{ControllerName, ParameterTable, ParametersKind};
use super::super::schema::{At, Default, Keys, Nested, Optional, Required, table, tagged};
use super::sections::{EncoderTable, FramesTable, SectionsTable, VideoTable};
use super::topology::{Access, host_link};
use super::transfers::{FileTable, TmixTable};

/// The most flows of one run.
pub(in crate::scenario) const MAX_FLOWS: u32 = 100_000;

/// The default of a key that the preset sets.
const FROM_PRESET: &str = "as in the preset";

table! {
    /// A group of equal flows.
    struct FlowTable ("[[flow]]") {
        /// The name of the group in results. Groups whose names are equal up to a `+` also appear
        /// together under that prefix: `net+long` and `net+short` also as `net`.
        group: String = Required(Name("a short name"));
        /// The number of flows; a sweep may omit the group with 0. Without it, a workload `tmix`
        /// has a flow for each connection of the trace.
        count: u32 = Default(Count { min: 0, max: MAX_FLOWS }, "1");
        /// The name of each flow. `{i}` is its number in the group from 0, `{i+1}` from 1. The
        /// random numbers of a flow depend on its name.
        name: Option<Template> = Optional(NameTemplate("a name with {i}"), "the group, a dash and {i}");
        /// The node that sends the data, or the node to which the source's host is linked. It may
        /// contain `{i}`.
        from: Option<Template> = Optional(
            NameTemplate("the name of a node, which may have {i}"),
            "`left` in a dumbbell, or its next host where it has `pairs`; required elsewhere",
        );
        /// The node that receives the data, or the node to which the destination's host is linked.
        /// It may contain `{i}`.
        to: Option<Template> = Optional(
            NameTemplate("the name of a node, which may have {i}"),
            "`right` in a dumbbell, or its next host where it has `pairs`; required elsewhere",
        );
        /// The base round-trip time: the propagation delays of all links in both directions, at the
        /// start. One for all flows, or a list for the flows in turn, as with
        /// `["20ms", "80ms", "200ms"]`. The link of the source's host gets the missing delay, half
        /// of it in each direction. This is the link `access`, which must not have a `delay`, or
        /// the one of the topology, or else a link of unlimited rate.
        rtt: Option<Turns> = Optional(
            Either::<Turns, _, _>::of(
                POSITIVE_SPAN,
                List { item: POSITIVE_SPAN, min: 1, max: 100_000 },
            ),
            "the delays of the links",
        );
        /// The link between the source's own host and `from`, or `"none"`.
        access: Option<Access> = Optional(host_link(), "as in the topology");
        /// The link between `to` and the destination's own host, or `"none"`.
        access_to: Option<Access> = Optional(
            host_link(),
            "`access_to` of the topology; where it has none, as `access` of this flow without `rtt`, \
             else as `access` of the topology",
        );
        /// The delays of the source's access link in both directions, for the flows in turn: each
        /// flow has a round trip of its own, as with `["2ms", "20ms", "80ms"]`.
        access_delays: Option<Vec<Span>> = Optional(
            List { item: SPAN, min: 1, max: 100_000 },
            "the delay of `access`",
        );
        /// When the flows start: all at one time, each at a random time, as in
        /// `{ at = "0s", spread = "1s" }`, or one after another, as in `{ arrivals = "50ms" }`.
        start: StartTable = Default(Either::<StartTable, _, _>::of(SPAN, Nested::<StartTable>::KIND), "\"0s\"");
        /// When the source stops producing data.
        stop: Option<Span> = Optional(POSITIVE_SPAN, "at the end of the run");
        /// The data that the source produces.
        workload: Option<WorkloadTable> = Optional(
            Nested::<WorkloadTable>::KIND,
            "`{ kind = \"greedy\" }`; datagrams require one",
        );
        /// The transport.
        transport: TransportTable = Keys::<TransportTable>::OF;
    }
}

impl FlowTable {
    /// Whether the source produces frames.
    pub(in crate::scenario) const fn has_frames(&self) -> bool {
        matches!(
            self.workload,
            Some(WorkloadTable::Video(_) | WorkloadTable::Encoder(_) | WorkloadTable::Frames(_))
        )
    }
}

/// Times for the flows of a group in turn.
#[derive(Clone, Debug)]
pub(in crate::scenario) struct Turns(pub(in crate::scenario) Vec<Span>);

impl From<Span> for Turns {
    fn from(span: Span) -> Self {
        Self(vec![span])
    }
}

impl From<Vec<Span>> for Turns {
    fn from(spans: Vec<Span>) -> Self {
        Self(spans)
    }
}

table! {
    /// When flows start.
    struct StartTable ("a start") {
        /// The earliest start.
        at: Span = Default(SPAN, "\"0s\"");
        /// The width of the interval after `at` from which each start is drawn uniformly.
        spread: Span = Default(SPAN, "\"0s\"");
        /// The mean time from one start to the next: the flows arrive as a Poisson process that
        /// begins at `at`. A `count` somewhat above duration / `arrivals` lasts for the whole run;
        /// a flow that arrives after its end sends nothing.
        arrivals: Option<Span> = Optional(POSITIVE_SPAN, "starts are drawn from `spread`");
    }
}

impl From<Span> for StartTable {
    fn from(at: Span) -> Self {
        Self {
            written: At::nowhere(),
            at,
            spread: Span::ZERO,
            arrivals: None,
        }
    }
}

tagged! {
    /// The transport of a flow.
    enum TransportTable ("a transport") by transport or "tcp" {
        "tcp" => Tcp(TcpTable);
        "datagram" => Datagram(DatagramTable);
        "sections" => Sections(SectionsTable);
        "command" => Command(CommandTable);
    }
}

/// A preset: settings that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scenario) enum Preset {
    Modern,
    Ns2Release,
    Ns2Era2000,
}

/// The presets by name.
pub(in crate::scenario) const PRESETS: &[(&str, Preset, &str)] = &[
    (
        "modern",
        Preset::Modern,
        "what Linux 6 does: RACK-TLP, SACK, timestamps, window scaling, delayed acknowledgements \
         after quick ones, its CUBIC and Reno, an initial window of 10 packets, real headers",
    ),
    (
        "ns2-2.35",
        Preset::Ns2Release,
        "the defaults of ns-2's last release: Reno, ticks of 10 ms, a minimum RTO of \
         200 ms, limited transmit, an initial window of 2, a window of 20 packets, \
         40-byte headers",
    ),
    (
        "ns2-2000",
        Preset::Ns2Era2000,
        "ns-2 as in 1999 to 2001: the same without handshake and limited transmit, ticks of \
         100 ms, no minimum RTO, an initial window of 1",
    ),
];

/// A recovery by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scenario) enum RecoveryName {
    Tahoe,
    Reno,
    NewReno,
    Sack,
    Rack,
}

impl RecoveryName {
    /// The recovery in its current form, or in that of ns-2.
    pub(in crate::scenario) const fn config(self, of_ns2: bool) -> RecoveryConfig {
        match (self, of_ns2) {
            (Self::Tahoe, _) => RecoveryConfig::TAHOE,
            (Self::Reno, _) => RecoveryConfig::RENO,
            (Self::NewReno, false) => RecoveryConfig::NEW_RENO,
            (Self::NewReno, true) => RecoveryConfig::NEW_RENO_NS2,
            (Self::Sack, false) => RecoveryConfig::SACK,
            (Self::Sack, true) => RecoveryConfig::SACK_NS2,
            (Self::Rack, _) => RecoveryConfig::RACK,
        }
    }
}

const WINDOW: ExtentKind = ExtentKind {
    min: 1,
    unlimited: false,
};

table! {
    /// TCP.
    struct TcpTable ("TCP") {
        /// Settings that belong together. Every other key of this table overrides one of them.
        preset: Preset = Default(
            Choice(PRESETS),
            "\"modern\"",
        );
        /// The size of a full segment on the wire, headers included.
        packet: Option<DataSize> = Optional(PACKET, "1500 bytes, or what `mss` and the headers make");
        /// The payload of a full segment; instead of `packet`.
        mss: Option<DataSize> = Optional(
            Amount { min: DataSize::new(1), max: DataSize::new(65_495) },
            "what `packet` and the headers leave",
        );
        /// The size of headers on the wire: `"real"` for IPv4 and TCP with their options, one size
        /// for every segment such as `"40B"`, or a table.
        headers: Option<HeadersTable> = Optional(
            Either::<HeadersTable, _, _>::of(
                Word("real", HeadersTable::REAL),
                Either::<HeadersTable, _, _>::of(
                    Amount { min: DataSize::ZERO, max: DataSize::new(1_000) },
                    Nested::<FixedHeadersTable>::KIND,
                ),
            ),
            FROM_PRESET,
        );
        /// The receive buffer. It bounds the receive window, and so the rate to `rwnd` per round
        /// trip. The 6 MiB of preset "modern" carry 252 Mb/s at 200 ms.
        rwnd: Option<Extent> = Optional(WINDOW, FROM_PRESET);
        /// The initial congestion window.
        initial_window: Option<Extent> = Optional(WINDOW, FROM_PRESET);
        /// The initial slow-start threshold.
        ssthresh: Option<Extent> = Optional(
            ExtentKind { min: 1, unlimited: true },
            "unlimited in preset \"modern\", the receive buffer in the others",
        );
        /// The congestion controller. A run from Python may add controllers of other names: see
        /// docs/guide/python-controller.md.
        controller: Option<String> = Optional(
            ControllerName,
            "\"cubic\" in preset \"modern\", \"reno\" in the others",
        );
        /// The parameters of the controller. The ns-2 presets set `increase`, `decrease_basis`,
        /// `rounding` and `grow_when_limited` as ns-2 does, if the controller has them. Preset
        /// "modern" sets the parameters of "cubic" and "reno" as Linux does.
        parameters: Option<ParameterTable> = Optional(
            ParametersKind,
            "the controller's defaults",
        );
        /// The loss recovery.
        recovery: Option<RecoveryName> = Optional(
            Choice(&[
                ("tahoe", RecoveryName::Tahoe, "fast retransmit, then slow start"),
                ("reno", RecoveryName::Reno, "fast recovery until new data is acknowledged"),
                ("newreno", RecoveryName::NewReno, "fast recovery until all data is acknowledged"),
                ("sack", RecoveryName::Sack, "selective acknowledgements"),
                ("rack", RecoveryName::Rack, "time-based loss detection (RACK-TLP, RFC 8985)"),
            ]),
            "as in the preset; \"sack\" in place of \"rack\" with a time-line",
        );
        /// Whether recovery "rack" sends a tail loss probe (TLP) after two round trips without an
        /// acknowledgement.
        tail_loss_probe: Option<bool> = Optional(Flag, "true with recovery \"rack\"");
        /// Whether recovery "rack" reduces the window in proportion to the delivered data (PRR, RFC
        /// 9937), or at once.
        prr: Option<bool> = Optional(Flag, "true with recovery \"rack\"");
        /// Whether recovery "rack" reports spurious losses to the controller, which timestamps (RFC
        /// 3522) or duplicate SACKs (RFC 3708) reveal.
        undo: Option<bool> = Optional(Flag, "true with recovery \"rack\"");
        /// Whether NewReno restarts its timer only at the first partial acknowledgement (the
        /// impatient variant of RFC 6582).
        impatient: Option<bool> = Optional(Flag, "true with recovery \"newreno\"");
        /// Whether a partial acknowledgement deflates NewReno's window permanently, if it covers
        /// more than the inflation.
        deflate_window: Option<bool> = Optional(
            Flag,
            "false in preset \"modern\", true in the others, with recovery \"newreno\"",
        );
        /// How recovery "sack" counts the data in flight (`pipe`).
        pipe: Option<PipeRule> = Optional(
            Choice(&[
                ("scoreboard", PipeRule::Scoreboard, "from the scoreboard (RFC 6675)"),
                ("counter", PipeRule::Counter, "a counter, as in ns-2"),
            ]),
            "\"scoreboard\" in preset \"modern\", \"counter\" in the others",
        );
        /// The number of duplicate acknowledgements that mean a loss.
        duplicate_threshold: Option<u32> = Optional(Count { min: 1, max: 255 }, FROM_PRESET);
        /// Whether the sender ignores duplicate acknowledgements for data sent before its last
        /// reaction (ns-2's `bugFix_`).
        bugfix: Option<bool> = Optional(Flag, FROM_PRESET);
        /// Whether the receiver delays acknowledgements: `false`, `true` for every second segment
        /// or 40 ms, `"bsd"` for every second segment or 200 ms, or a table.
        delayed_ack: Option<DelayedAckTable> = Optional(
            Either::<DelayedAckTable, _, _>::of(
                Flag,
                Either::<DelayedAckTable, _, _>::of(
                    Choice(&[("bsd", DelayedAck::BSD, "every second segment, or after 200 ms")]),
                    Nested::<DelayedAckSettings>::KIND,
                ),
            ),
            FROM_PRESET,
        );
        /// Whether segments carry timestamps.
        timestamps: Option<bool> = Optional(Flag, FROM_PRESET);
        /// The tick of the receiver's timestamps. The sender's tick is a microsecond.
        timestamp_tick: Option<Span> = Optional(TICK, FROM_PRESET);
        /// Whether both ends use selective acknowledgements.
        sack: Option<bool> = Optional(
            Flag,
            "true with `recovery` \"sack\" or \"rack\", false with another, else as in the preset",
        );
        /// Whether SACK blocks report segments that arrived twice (RFC 2883).
        duplicate_sack: Option<bool> = Optional(Flag, FROM_PRESET);
        /// Whether the connection uses ECN (RFC 3168): queues may mark data segments instead of
        /// dropping them, and both ends react. The link's queue needs `ecn` too.
        ecn: Option<bool> = Optional(Flag, FROM_PRESET);
        /// Whether a pause halves the window for each retransmission timeout after the first, down
        /// to the initial window.
        restart_after_idle: Option<bool> = Optional(Flag, FROM_PRESET);
        /// Whether receive windows may exceed 65,535 bytes (window scaling).
        window_scaling: Option<bool> = Optional(Flag, FROM_PRESET);
        /// Whether each of the first two duplicate acknowledgements releases a new segment (limited
        /// transmit, RFC 3042).
        limited_transmit: Option<bool> = Optional(Flag, FROM_PRESET);
        /// Whether the connection begins with a handshake.
        handshake: Option<bool> = Optional(Flag, FROM_PRESET);
        /// The initial sequence number.
        initial_sequence: Option<u32> = Optional(Count { min: 0, max: u32::MAX }, FROM_PRESET);
        /// Whether an acknowledgement restarts the retransmission timer before its round-trip
        /// sample updates the timeout (ns-2 before 2001).
        restart_timer_before_sample: Option<bool> = Optional(Flag, FROM_PRESET);
        /// The number of consecutive expiries of the retransmission or persist timer that end the
        /// connection (R2 of RFC 9293).
        give_up_after: Option<u32> = Optional(Count { min: 1, max: 1_000 }, "never");
        /// How long a closed connection keeps its sequence numbers (TIME-WAIT). In the simulator no
        /// receiver closes, so no connection enters TIME-WAIT.
        time_wait: Option<Span> = Optional(SPAN, FROM_PRESET);
        /// The most segments sent after one event.
        max_burst: Option<u32> = Optional(Count { min: 1, max: 1_000_000 }, "no limit");
        /// The round-trip estimator and the retransmission timer: `"bsd"` (ticks of 500 ms, at
        /// least 1 s, at most 64 s), `"ns2-2000"` and `"ns2-2.35"` as in these presets, `"rfc6298"`
        /// (no ticks, at least 1 s), `"linux"` as in preset "modern", or a table.
        rto: Option<RtoValue> = Optional(
            Either::<RtoValue, _, _>::of(Choice(TIMERS), Nested::<RtoTable>::KIND),
            FROM_PRESET,
        );
        /// Sections with deadlines: time-lined TCP (TLTCP). The workload must be greedy, periodic
        /// (one section each time), `video` or `frames` (one section for each frame).
        timeline: Option<TimelineTable> = Optional(Nested::<TimelineTable>::KIND, "none: plain TCP");
        /// Whose TCP runs the flow in the lab. In the simulator it is always Comity's.
        stack: Stack = Default(
            Choice(&[
                ("kernel", Stack::Kernel, "the Linux kernel's"),
                ("comity", Stack::Comity, "Comity's, on real packets"),
            ]),
            "\"kernel\"",
        );
        /// How the receiving application reads the data.
        reader: Option<ReaderTable> = Optional(
            Nested::<ReaderTable>::KIND,
            "`{ kind = \"immediate\" }`",
        );
    }
}

table! {
    /// Time-lined TCP. With a greedy source, section k (from 0) expires k + 1 deadlines after the
    /// start. With other sources, a section expires one deadline after its creation. An intra frame
    /// and the predicted frames that depend on it share one deadline. A bidirectional frame has the
    /// earlier deadline of its two references.
    struct TimelineTable ("a time-line") {
        /// The size of a section; frames have their own sizes.
        section: DataSize = Default(
            Amount { min: DataSize::new(1), max: DataSize::new(16 << 20) },
            "\"700000B\"",
        );
        /// The lifetime of a section.
        deadline: Span = Required(POSITIVE_SPAN);
        /// Whether the sender drops expired data. If not, the flow is plain TCP, and its sections
        /// are counted by the same deadlines.
        drop_expired: bool = Default(Flag, "true");
        /// Whether losses of obsolete data remain undetected after the receiver has skipped them,
        /// as in the paper.
        blind_spot: bool = Default(Flag, "true");
        /// With the blind spot, and without SACK: whether obsolete data that its own section's
        /// acknowledgements have not passed keeps its place in the window until a timeout. A
        /// reading of section 5.4 of the TLTCP paper.
        holds_passed: bool = Default(Flag, "false");
        /// Whether acknowledgements of obsolete data give round-trip samples. The TLTCP paper does
        /// not say.
        samples_obsolete: bool = Default(Flag, "true");
        /// Whether sections expire on the ticks of the retransmission timer (`rto.tick`), at the
        /// first one from the deadline on. A reading of section 5.2 of the TLTCP paper.
        lifetime_on_tick: bool = Default(Flag, "false");
        /// The end to which deadlines refer.
        relative_to: DeadlineClock = Default(
            Choice(&[
                ("sender", DeadlineClock::Sender, "the time after which data is not sent"),
                (
                    "receiver",
                    DeadlineClock::Receiver,
                    "the time after which arriving data is useless: the sender stops half a smoothed \
                     round trip earlier",
                ),
            ]),
            "\"sender\"",
        );
        /// How often the reader reports the share of frames on time. Below 95 %, the source omits
        /// bidirectional frames, then also predicted ones. After five consecutive reports without a
        /// missed frame, it adds one type again. A choice is judged only by frames that did not
        /// queue behind frames of an earlier choice. A report has the delay of the reverse links,
        /// and uses no capacity.
        feedback: Option<Span> = Optional(POSITIVE_SPAN, "never: the source sends all frames");
    }
}

/// The size of headers, as written.
#[derive(Clone, Debug)]
pub(in crate::scenario) enum HeadersTable {
    Real,
    Fixed {
        bytes: DataSize,
        per_sack_block: DataSize,
    },
}

impl HeadersTable {
    const REAL: Self = Self::Real;
}

impl From<DataSize> for HeadersTable {
    fn from(bytes: DataSize) -> Self {
        Self::Fixed {
            bytes,
            per_sack_block: DataSize::ZERO,
        }
    }
}

impl From<FixedHeadersTable> for HeadersTable {
    fn from(table: FixedHeadersTable) -> Self {
        Self::Fixed {
            bytes: table.bytes,
            per_sack_block: table.per_sack_block,
        }
    }
}

table! {
    /// One size for every header.
    struct FixedHeadersTable ("fixed headers") {
        /// The size of every header.
        bytes: DataSize = Default(Amount { min: DataSize::ZERO, max: DataSize::new(1_000) }, "\"40B\"");
        /// The size of each SACK block.
        per_sack_block: DataSize = Default(Amount { min: DataSize::ZERO, max: DataSize::new(100) }, "\"0B\"");
    }
}

/// Delayed acknowledgements, as written.
#[derive(Clone, Debug)]
pub(in crate::scenario) enum DelayedAckTable {
    Flag(bool),
    Named(DelayedAck),
    Settings(DelayedAckSettings),
}

impl From<bool> for DelayedAckTable {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<DelayedAck> for DelayedAckTable {
    fn from(named: DelayedAck) -> Self {
        Self::Named(named)
    }
}

impl From<DelayedAckSettings> for DelayedAckTable {
    fn from(settings: DelayedAckSettings) -> Self {
        Self::Settings(settings)
    }
}

table! {
    /// When the receiver delays acknowledgements.
    struct DelayedAckSettings ("delayed acknowledgements") {
        /// The number of full segments for each acknowledgement.
        segments: u32 = Default(Count { min: 2, max: 255 }, "2");
        /// The longest delay of an acknowledgement.
        timeout: Span = Default(POSITIVE_SPAN, "\"40ms\"");
        /// The number of acknowledgements without delay at the beginning of a flow, after a pause,
        /// and after a segment that is marked or arrives twice.
        quick: Option<u32> = Optional(Count { min: 0, max: 255 }, "16 in preset \"modern\", else 0");
    }
}

/// The retransmission timers by name.
const TIMERS: &[(&str, RttConfig, &str)] = &[
    ("bsd", RttConfig::BSD, "4.4BSD"),
    ("ns2-2000", RttConfig::NS2_2000, "ns-2 in 1999 to 2001"),
    ("ns2-2.35", RttConfig::NS2_2_35, "ns-2's last release"),
    ("rfc6298", RttConfig::RFC6298, "RFC 6298"),
    ("linux", RttConfig::LINUX, "Linux"),
];

/// A retransmission timer, as written.
#[derive(Clone, Debug)]
pub(in crate::scenario) enum RtoValue {
    Named(RttConfig),
    Settings(RtoTable),
}

impl From<RttConfig> for RtoValue {
    fn from(named: RttConfig) -> Self {
        Self::Named(named)
    }
}

impl From<RtoTable> for RtoValue {
    fn from(settings: RtoTable) -> Self {
        Self::Settings(settings)
    }
}

table! {
    /// The round-trip estimator and the retransmission timer. Missing keys are as in the preset.
    struct RtoTable ("a retransmission timer") {
        /// The resolution of round-trip samples.
        tick: Option<Span> = Optional(POSITIVE_SPAN, FROM_PRESET);
        /// The origin of the ticks.
        phase: Option<Span> = Optional(SPAN, FROM_PRESET);
        /// The minimum of 4 · RTTVAR in the timeout (G in RFC 6298).
        granularity: Option<Span> = Optional(SPAN, FROM_PRESET);
        /// The timeout before the first measurement.
        initial_timeout: Option<Span> = Optional(POSITIVE_SPAN, FROM_PRESET);
        /// The minimum timeout.
        min_timeout: Option<Span> = Optional(SPAN, FROM_PRESET);
        /// The maximum timeout.
        max_timeout: Option<Span> = Optional(POSITIVE_SPAN, FROM_PRESET);
        /// The most consecutive doublings of the timeout.
        max_doublings: Option<u32> = Optional(Count { min: 0, max: 63 }, FROM_PRESET);
        /// Whether the minimum timeout applies before the back-off.
        floor_before_backoff: Option<bool> = Optional(Flag, FROM_PRESET);
        /// Whether four consecutive back-offs reset the estimate.
        forget_after_backoff: Option<bool> = Optional(Flag, FROM_PRESET);
    }
}

table! {
    /// Two programs, each in its own network namespace at one end of the path. Only the lab runs
    /// them (`comity lab run`); `comity sim run` refuses them. `sh` runs the commands. `{address}`
    /// stands for the destination's IPv4 address, `{source}` for the source's, `{address6}` and
    /// `{source6}` for those of IPv6, `{port}` for a port that no other flow has, `{seconds}` for
    /// the duration of the flow, `{seed}` for the seed of the run. At the end of the run the lab
    /// sends SIGINT, and SIGKILL 3 s later. The flow has no `workload`.
    struct CommandTable ("commands") {
        /// The command at the source, from `start` on, such as
        /// `"iperf3 -c {address} -p {port} -t {seconds}"`.
        sender: String = Required(Text("a command"));
        /// The command at the destination, from the beginning of the run, such as
        /// `"iperf3 -s -p {port}"`.
        receiver: Option<String> = Optional(Text("a command"), "nothing runs there");
    }
}

table! {
    /// Datagrams without feedback.
    struct DatagramTable ("datagrams") {
        /// The size of a full packet on the wire, headers included.
        packet: DataSize = Default(PACKET, "\"1500B\"");
    }
}

tagged! {
    /// The data that a source produces. Amounts are payload for TCP and sections, and bytes on the
    /// wire for datagrams. Workloads without frames produce packets or sections of one size.
    enum WorkloadTable ("a workload") by kind {
        "greedy" => Greedy(GreedyTable);
        "file" => File(FileTable);
        "tmix" => Tmix(TmixTable);
        "cbr" => Cbr(CbrTable);
        "on_off" => OnOff(OnOffTable);
        "token_bucket" => TokenBucket(TokenBucketTable);
        "poisson" => Poisson(PoissonTable);
        "video" => Video(VideoTable);
        "encoder" => Encoder(EncoderTable);
        "frames" => Frames(FramesTable);
    }
}

table! {
    /// Unlimited data.
    struct GreedyTable ("a greedy source") {}
}

table! {
    /// Packets at a constant rate, set by exactly one of `rate`, `interval` and `gap`. With a gap
    /// of 0s, a source of datagrams sends at the rate of its first link.
    struct CbrTable (
        "a constant rate",
        from "ns-2's CBR; for gaps Feng, Feng and Belford, Packet Spacing, section 3.2"
    ) {
        /// The rate.
        rate: Option<Rate> = Optional(RATE, "set by `interval` or `gap`");
        /// The time from the start of one packet to the start of the next.
        interval: Option<Span> = Optional(POSITIVE_SPAN, "set by `rate` or `gap`");
        /// The time from the end of one packet on the first link to the start of the next.
        gap: Option<Span> = Optional(SPAN, "set by `rate` or `interval`");
        /// The width of the random variation of intervals, as a share of the interval: with 1,
        /// intervals have 0.5 to 1.5 times their length, as with `random_` of ns-2.
        jitter: f64 = Default(Real { min: 0.0, max: 1.0 }, "0");
    }
}

table! {
    /// A constant rate while on, and nothing while off. Both states last an exponentially
    /// distributed time.
    struct OnOffTable ("an on-off source") {
        /// The rate while on.
        rate: Rate = Required(RATE);
        /// The mean time on.
        mean_on: Span = Required(POSITIVE_SPAN);
        /// The mean time off.
        mean_off: Span = Required(POSITIVE_SPAN);
    }
}

table! {
    /// Tokens arrive in a bucket at a constant rate; the source sends as tokens allow.
    struct TokenBucketTable ("a token bucket", from "Zhang and Tsaoussidis, TCP-Real, NOSSDAV 2001, sections 3 and 4.4") {
        /// The depth of the bucket.
        depth: DataSize = Required(POSITIVE_BYTES);
        /// The tokens of each interval, in bytes.
        refill: DataSize = Required(POSITIVE_BYTES);
        /// The interval.
        interval: Span = Required(POSITIVE_SPAN);
    }
}

table! {
    /// Packets with exponentially distributed times between them.
    struct PoissonTable ("a Poisson source") {
        /// The mean rate.
        rate: Rate = Required(RATE);
    }
}

tagged! {
    /// How the receiving application reads data.
    enum ReaderTable ("a reader") by kind {
        "immediate" => Immediate(ImmediateTable);
        "playback" => Playback(PlaybackTable);
    }
}

table! {
    /// Reads data at once.
    struct ImmediateTable ("an immediate reader") {}
}

table! {
    /// Reads a piece of the stream at every interval. If bytes of it are missing, it reads nothing
    /// and tries again an interval later: playback stalls. It stores no more than the receive
    /// window.
    struct PlaybackTable ("a playback", from "Zhang and Tsaoussidis, TCP-Real, NOSSDAV 2001, sections 3 and 4.2") {
        /// The bytes of one read.
        bytes: Option<DataSize> = Optional(POSITIVE_BYTES, "the sizes in `frames`");
        /// A file of frames: each read takes the bytes of one, and the last frame ends playback.
        frames: Option<String> = Optional(Text("the name of a file of frames"), "set by `bytes`");
        /// The time between reads.
        interval: Span = Required(POSITIVE_SPAN);
        /// The time from the first byte to the first read.
        delay: Span = Default(SPAN, "\"0s\"");
        /// The first read, and a read after a failed one, wait for this many bytes, or for the rest
        /// of the file.
        buffer: Option<DataSize> = Optional(POSITIVE_BYTES, "the bytes of the read");
    }
}
