//! The tables of flows, of what they send, and of how it is read.

use comity_congestion::recovery::{PipeRule, RecoveryConfig};
use comity_transport::tcp::timeline::DeadlineClock;
use comity_units::{Bytes, Rate, Span};

use super::super::kinds::{
    Amount, Choice, Count, Either, Extent, ExtentKind, Flag, Name, NameTemplate, PACKET,
    POSITIVE_BYTES, POSITIVE_SPAN, RATE, Real, SPAN, TICK, Template, Text, Word,
};
use super::super::parameters::{ControllerName, ParameterTable, ParametersKind};
use super::super::schema::{At, Default, Keys, Nested, Optional, Required, table, tagged};
use super::sections::{FramesTable, SectionsTable, VideoTable};
use super::topology::{Access, host_link};

/// The most flows of one run.
pub(in crate::scenario) const MAX_FLOWS: u32 = 100_000;

/// The default of a key that the preset sets.
const FROM_PRESET: &str = "as in the preset";

table! {
    /// A group of flows that are alike.
    struct FlowTable ("[[flow]]") {
        /// The group that the flows are counted in. Groups whose names begin alike up to a `+` are
        /// counted together as well, under that beginning: `net+long` and `net+short` also as
        /// `net`.
        group: String = Required(Name("a short name"));
        /// How many flows there are; a sweep may leave the group out with 0.
        count: u32 = Default(Count { min: 0, max: MAX_FLOWS }, "1");
        /// What each flow is called; `{i}` is its number in the group, from 0, also as `{i+1}`. The
        /// random numbers of a flow depend on its name.
        name: Option<Template> = Optional(NameTemplate("a name with {i}"), "the group, a dash and {i}");
        /// The node that the data comes from, or that its source's host is linked to; may have
        /// `{i}`.
        from: Option<Template> = Optional(
            NameTemplate("the name of a node, which may have {i}"),
            "`left` in a dumbbell, or its next host where it has `pairs`; required elsewhere",
        );
        /// The node that the data goes to, or that its destination's host is linked to; may have
        /// `{i}`.
        to: Option<Template> = Optional(
            NameTemplate("the name of a node, which may have {i}"),
            "`right` in a dumbbell, or its next host where it has `pairs`; required elsewhere",
        );
        /// The link between a host of the flow's own and `from`, or `"none"`.
        access: Option<Access> = Optional(host_link(), "as in the topology");
        /// The link between `to` and a host of the flow's own, or `"none"`.
        access_to: Option<Access> = Optional(
            host_link(),
            "as `access` of this flow, else as in the topology",
        );
        /// When the flows start: at a time, or each at a random time,
        /// `{ at = "0s", spread = "1s" }`.
        start: StartTable = Default(Either::<StartTable, _, _>::of(SPAN, Nested::<StartTable>::KIND), "\"0s\"");
        /// When the source stops giving data.
        stop: Option<Span> = Optional(POSITIVE_SPAN, "at the end of the run");
        /// What there is to send.
        workload: Option<WorkloadTable> = Optional(
            Nested::<WorkloadTable>::KIND,
            "`{ kind = \"greedy\" }`; datagrams require one",
        );
        /// How it is carried.
        transport: TransportTable = Keys::<TransportTable>::OF;
    }
}

table! {
    /// When flows start.
    struct StartTable ("a start") {
        /// The earliest start.
        at: Span = Default(SPAN, "\"0s\"");
        /// The width of the interval after it that each start is drawn from, uniformly.
        spread: Span = Default(SPAN, "\"0s\"");
    }
}

impl From<Span> for StartTable {
    fn from(at: Span) -> Self {
        Self {
            written: At::nowhere(),
            at,
            spread: Span::ZERO,
        }
    }
}

tagged! {
    /// How a flow is carried.
    enum TransportTable ("a transport") by transport or "tcp" {
        "tcp" => Tcp(TcpTable);
        "datagram" => Datagram(DatagramTable);
        "sections" => Sections(SectionsTable);
        "command" => Command(CommandTable);
    }
}

/// Settings that belong together.
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
        "the defaults of ns-2's last release: Reno, ticks of 10 ms, a least timeout of \
         200 ms, limited transmit, an initial window of 2, a window of 20 packets, \
         40-byte headers",
    ),
    (
        "ns2-2000",
        Preset::Ns2Era2000,
        "ns-2 as in 1999 to 2001: the same without handshake and limited transmit, ticks of \
         100 ms, no least timeout, an initial window of 1",
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
    /// The recovery in its present form, or in that of ns-2.
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
        /// Settings that belong together; every other key here replaces one of them.
        preset: Preset = Default(
            Choice(PRESETS),
            "\"modern\"",
        );
        /// The size of a full segment on the wire, headers included.
        packet: Option<Bytes> = Optional(PACKET, "1500 bytes, or what `mss` and the headers make");
        /// The payload of a full segment; instead of `packet`.
        mss: Option<Bytes> = Optional(
            Amount { min: Bytes::new(1), max: Bytes::new(65_495) },
            "what `packet` and the headers leave",
        );
        /// What headers weigh on the wire: `"real"` for IPv4 and TCP with their options, one size
        /// for every segment such as `"40B"`, or a table.
        headers: Option<HeadersTable> = Optional(
            Either::<HeadersTable, _, _>::of(
                Word("real", HeadersTable::REAL),
                Either::<HeadersTable, _, _>::of(
                    Amount { min: Bytes::ZERO, max: Bytes::new(1_000) },
                    Nested::<FixedHeadersTable>::KIND,
                ),
            ),
            FROM_PRESET,
        );
        /// The receive buffer, which bounds the window that the receiver offers, and with it the
        /// rate: `rwnd` in a round trip. The 6 MiB of preset "modern" carry 252 Mb/s at 200 ms.
        rwnd: Option<Extent> = Optional(WINDOW, FROM_PRESET);
        /// The first congestion window.
        initial_window: Option<Extent> = Optional(WINDOW, FROM_PRESET);
        /// The first slow-start threshold.
        ssthresh: Option<Extent> = Optional(
            ExtentKind { min: 1, unlimited: true },
            "unlimited in preset \"modern\", the receive buffer in the others",
        );
        /// The congestion control.
        controller: Option<String> = Optional(
            ControllerName,
            "\"cubic\" in preset \"modern\", \"reno\" in the others",
        );
        /// Its parameters. The ns-2 presets set `increase`, `decrease_basis`, `rounding` and
        /// `grow_when_limited` as ns-2 does, where the controller has them; preset "modern" sets
        /// those of "cubic" and "reno" as Linux does.
        parameters: Option<ParameterTable> = Optional(
            ParametersKind,
            "the controller's defaults",
        );
        /// How losses are found and repaired.
        recovery: Option<RecoveryName> = Optional(
            Choice(&[
                ("tahoe", RecoveryName::Tahoe, "fast retransmit, then slow start"),
                ("reno", RecoveryName::Reno, "fast recovery until new data is acknowledged"),
                ("newreno", RecoveryName::NewReno, "fast recovery until all data is acknowledged"),
                ("sack", RecoveryName::Sack, "selective acknowledgements"),
                ("rack", RecoveryName::Rack, "by the times of sending (RACK-TLP, RFC 8985)"),
            ]),
            "as in the preset; \"sack\" in place of \"rack\" with a time-line",
        );
        /// Whether recovery "rack" sends a probe when nothing is acknowledged for two round trips
        /// (TLP).
        tail_loss_probe: Option<bool> = Optional(Flag, "true with recovery \"rack\"");
        /// Whether recovery "rack" shrinks the window in proportion to what is delivered (PRR, RFC
        /// 9937), or at once.
        prr: Option<bool> = Optional(Flag, "true with recovery \"rack\"");
        /// Whether recovery "rack" tells the controller when timestamps (RFC 3522) or duplicate
        /// SACKs (RFC 3708) say that nothing was lost.
        undo: Option<bool> = Optional(Flag, "true with recovery \"rack\"");
        /// Whether NewReno restarts its timer at the first partial acknowledgement only.
        impatient: Option<bool> = Optional(Flag, "true with recovery \"newreno\"");
        /// Whether what a partial acknowledgement covers beyond the inflation is taken from
        /// NewReno's window for good.
        deflate_window: Option<bool> = Optional(
            Flag,
            "false in preset \"modern\", true in the others, with recovery \"newreno\"",
        );
        /// How recovery "sack" counts what is in the pipe.
        pipe: Option<PipeRule> = Optional(
            Choice(&[
                ("scoreboard", PipeRule::Scoreboard, "from the scoreboard (RFC 6675)"),
                ("counter", PipeRule::Counter, "a counter, as in ns-2"),
            ]),
            "\"scoreboard\" in preset \"modern\", \"counter\" in the others",
        );
        /// How many duplicate acknowledgements mean a loss.
        duplicate_threshold: Option<u32> = Optional(Count { min: 1, max: 255 }, FROM_PRESET);
        /// Whether duplicate acknowledgements for data sent before the last reaction are ignored
        /// (ns-2's `bugFix_`).
        bugfix: Option<bool> = Optional(Flag, FROM_PRESET);
        /// Whether acknowledgements are delayed: `false`, `true` for every second segment or 40 ms,
        /// or a table.
        delayed_ack: Option<DelayedAckTable> = Optional(
            Either::<DelayedAckTable, _, _>::of(Flag, Nested::<DelayedAckSettings>::KIND),
            FROM_PRESET,
        );
        /// Whether segments carry timestamps.
        timestamps: Option<bool> = Optional(Flag, FROM_PRESET);
        /// The tick of the receiver's timestamps; those of the sender tick in microseconds.
        timestamp_tick: Option<Span> = Optional(TICK, FROM_PRESET);
        /// Whether selective acknowledgements are offered and used.
        sack: Option<bool> = Optional(
            Flag,
            "true with `recovery` \"sack\" or \"rack\", false with another, else as in the preset",
        );
        /// Whether segments that arrive twice are reported in SACK blocks (RFC 2883).
        duplicate_sack: Option<bool> = Optional(Flag, FROM_PRESET);
        /// Whether queues may mark data segments instead of dropping them, and both ends answer to
        /// that (RFC 3168). The link's queue needs `ecn` as well.
        ecn: Option<bool> = Optional(Flag, FROM_PRESET);
        /// Whether the window halves for each retransmission timeout of a pause but the first, down
        /// to the first window.
        restart_after_idle: Option<bool> = Optional(Flag, FROM_PRESET);
        /// Whether windows above 65,535 bytes may be offered.
        window_scaling: Option<bool> = Optional(Flag, FROM_PRESET);
        /// Whether the first two duplicate acknowledgements each release a new segment.
        limited_transmit: Option<bool> = Optional(Flag, FROM_PRESET);
        /// Whether the connection begins with a handshake.
        handshake: Option<bool> = Optional(Flag, FROM_PRESET);
        /// The first sequence number.
        initial_sequence: Option<u32> = Optional(Count { min: 0, max: u32::MAX }, FROM_PRESET);
        /// Whether the retransmission timer is restarted with the timeout from before the
        /// round-trip sample of the acknowledgement that restarts it (ns-2 before 2001).
        restart_timer_before_sample: Option<bool> = Optional(Flag, FROM_PRESET);
        /// How many expiries of the retransmission or the persist timer in a row end the
        /// connection, the peer being silent (R2 of RFC 9293).
        give_up_after: Option<u32> = Optional(Count { min: 1, max: 1_000 }, "never");
        /// How long a closed connection remembers its sequence numbers.
        time_wait: Option<Span> = Optional(SPAN, FROM_PRESET);
        /// The most segments sent in answer to one event.
        max_burst: Option<u32> = Optional(Count { min: 1, max: 1_000_000 }, "no limit");
        /// How round trips are measured and when the retransmission timer expires.
        rto: Option<RtoTable> = Optional(Nested::<RtoTable>::KIND, FROM_PRESET);
        /// Sections with deadlines: time-lined TCP (TLTCP). The workload is then greedy,
        /// calendar-driven (a section each time), `video` or `frames` (a frame is a section).
        timeline: Option<TimelineTable> = Optional(Nested::<TimelineTable>::KIND, "none: plain TCP");
        /// How the receiving application takes the data.
        reader: Option<ReaderTable> = Optional(
            Nested::<ReaderTable>::KIND,
            "`{ kind = \"immediate\" }`",
        );
    }
}

table! {
    /// Time-lined TCP. Of a greedy source, section k (from 0) is over k + 1 deadlines after the
    /// start; of other sources, a section is over one deadline after it came into being. An intra
    /// frame and the predicted frames that follow from it share one deadline; a bidirectional frame
    /// has that of the earlier of its two.
    struct TimelineTable ("a time-line") {
        /// The size of a section; frames have their own.
        section: Bytes = Default(
            Amount { min: Bytes::new(1), max: Bytes::new(16 << 20) },
            "\"700000B\"",
        );
        /// How long a section is worth sending.
        deadline: Span = Required(POSITIVE_SPAN);
        /// Whether losses of obsolete data go unseen once the receiver has jumped, as in the paper.
        blind_spot: bool = Default(Flag, "true");
        /// Where deadlines are meant.
        relative_to: DeadlineClock = Default(
            Choice(&[
                ("sender", DeadlineClock::Sender, "the time after which data is not sent"),
                (
                    "receiver",
                    DeadlineClock::Receiver,
                    "the time after which data that arrives is worth nothing: half a smoothed round trip \
                     is taken off",
                ),
            ]),
            "\"sender\"",
        );
        /// How often the reader reports the share of frames that it had in time. Below 95 %, the
        /// source leaves out bidirectional frames, then also predicted ones. After five consecutive
        /// reports without a missed frame, it adds one type again. Only frames that waited behind
        /// no frame of an earlier choice judge a choice. A report takes the delay of the reverse
        /// links and no room on them.
        feedback: Option<Span> = Optional(POSITIVE_SPAN, "never: the source sends all frames");
    }
}

/// What headers weigh, as written.
#[derive(Clone, Debug)]
pub(in crate::scenario) enum HeadersTable {
    Real,
    Fixed { bytes: Bytes, per_sack_block: Bytes },
}

impl HeadersTable {
    const REAL: Self = Self::Real;
}

impl From<Bytes> for HeadersTable {
    fn from(bytes: Bytes) -> Self {
        Self::Fixed {
            bytes,
            per_sack_block: Bytes::ZERO,
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
        bytes: Bytes = Default(Amount { min: Bytes::ZERO, max: Bytes::new(1_000) }, "\"40B\"");
        /// How much each SACK block adds.
        per_sack_block: Bytes = Default(Amount { min: Bytes::ZERO, max: Bytes::new(100) }, "\"0B\"");
    }
}

/// Delayed acknowledgements, as written.
#[derive(Clone, Debug)]
pub(in crate::scenario) enum DelayedAckTable {
    Flag(bool),
    Settings(DelayedAckSettings),
}

impl From<bool> for DelayedAckTable {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<DelayedAckSettings> for DelayedAckTable {
    fn from(settings: DelayedAckSettings) -> Self {
        Self::Settings(settings)
    }
}

table! {
    /// When acknowledgements are held back.
    struct DelayedAckSettings ("delayed acknowledgements") {
        /// How many full segments are answered by one acknowledgement.
        segments: u32 = Default(Count { min: 2, max: 255 }, "2");
        /// How long an acknowledgement is held back at the most.
        timeout: Span = Default(POSITIVE_SPAN, "\"40ms\"");
        /// How many acknowledgements leave at once when a flow begins, after a pause, and after a
        /// segment that arrives twice or is marked.
        quick: Option<u32> = Optional(Count { min: 0, max: 255 }, "16 in preset \"modern\", else 0");
    }
}

table! {
    /// How round trips are measured and when the retransmission timer expires. Missing keys are as
    /// in the preset.
    struct RtoTable ("a retransmission timer") {
        /// The resolution in which round trips are counted.
        tick: Option<Span> = Optional(POSITIVE_SPAN, FROM_PRESET);
        /// Where the ticks of the clock fall.
        phase: Option<Span> = Optional(SPAN, FROM_PRESET);
        /// The minimum of 4 · RTTVAR in the timeout (G in RFC 6298).
        granularity: Option<Span> = Optional(SPAN, FROM_PRESET);
        /// The timeout before the first measurement.
        initial_timeout: Option<Span> = Optional(POSITIVE_SPAN, FROM_PRESET);
        /// The least timeout.
        min_timeout: Option<Span> = Optional(SPAN, FROM_PRESET);
        /// The largest timeout.
        max_timeout: Option<Span> = Optional(POSITIVE_SPAN, FROM_PRESET);
        /// How often in a row the back-off doubles the timeout at the most.
        max_doublings: Option<u32> = Optional(Count { min: 0, max: 63 }, FROM_PRESET);
        /// Whether the least timeout is applied before the back-off multiplies.
        floor_before_backoff: Option<bool> = Optional(Flag, FROM_PRESET);
        /// Whether four back-offs in a row make the estimate start anew.
        forget_after_backoff: Option<bool> = Optional(Flag, FROM_PRESET);
    }
}

table! {
    /// Any two programs, in the lab only (`comity lab run`; `comity sim run` refuses them): each in
    /// a network namespace of its own at the ends of the path. `sh` runs the commands. `{address}`
    /// stands for the destination's IPv4 address, `{source}` for the source's, `{address6}` and
    /// `{source6}` for those of IPv6, `{port}` for a port that no other flow has, `{seconds}` for
    /// how long the flow runs, `{seed}` for the seed of the run. The lab ends them with SIGINT at
    /// the end of the run, and 3 s later with SIGKILL. There is no `workload`.
    struct CommandTable ("commands") {
        /// What runs at the source, from `start` on, such as
        /// `"iperf3 -c {address} -p {port} -t {seconds}"`.
        sender: String = Required(Text("a command"));
        /// What runs at the destination, from the beginning of the run, such as
        /// `"iperf3 -s -p {port}"`.
        receiver: Option<String> = Optional(Text("a command"), "nothing runs there");
    }
}

table! {
    /// Datagrams without feedback.
    struct DatagramTable ("datagrams") {
        /// The size of a full packet on the wire, headers included.
        packet: Bytes = Default(PACKET, "\"1500B\"");
    }
}

tagged! {
    /// What a flow has to send. Amounts are payload for TCP and sections, bytes on the wire for
    /// datagrams. Workloads without frames of their own give packets or sections of one size.
    enum WorkloadTable ("a workload") by kind {
        "greedy" => Greedy(GreedyTable);
        "file" => File(FileTable);
        "cbr" => Cbr(CbrTable);
        "on_off" => OnOff(OnOffTable);
        "token_bucket" => TokenBucket(TokenBucketTable);
        "poisson" => Poisson(PoissonTable);
        "video" => Video(VideoTable);
        "frames" => Frames(FramesTable);
    }
}

table! {
    /// Always more.
    struct GreedyTable ("a greedy source") {}
}

table! {
    /// So much, then the end.
    struct FileTable ("a file") {
        /// How much.
        size: Bytes = Required(POSITIVE_BYTES);
    }
}

table! {
    /// Packets at a constant rate, set by exactly one of `rate`, `interval` and `gap`. With a gap
    /// of 0s, a source of datagrams sends as fast as its first link.
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
        /// By how much intervals vary at random: by up to half of this share of the interval,
        /// either way. 1 is `random_` of ns-2.
        jitter: f64 = Default(Real { min: 0.0, max: 1.0 }, "0");
    }
}

table! {
    /// Constant rate while on, nothing while off; both last an exponentially distributed time.
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
    /// Tokens fall into a bucket at a rate; data is sent as tokens allow.
    struct TokenBucketTable ("a token bucket", from "Zhang and Tsaoussidis, TCP-Real, NOSSDAV 2001, sections 3 and 4.4") {
        /// The most tokens, in bytes.
        depth: Bytes = Required(POSITIVE_BYTES);
        /// The bytes that fall at every interval.
        refill: Bytes = Required(POSITIVE_BYTES);
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
    /// How the receiving application takes data.
    enum ReaderTable ("a reader") by kind {
        "immediate" => Immediate(ImmediateTable);
        "playback" => Playback(PlaybackTable);
    }
}

table! {
    /// At once.
    struct ImmediateTable ("an immediate reader") {}
}

table! {
    /// So many bytes at every interval; a read that does not find them all takes nothing.
    struct PlaybackTable ("a playback", from "Zhang and Tsaoussidis, TCP-Real, NOSSDAV 2001, sections 3 and 4.2") {
        /// The bytes of one read.
        bytes: Bytes = Required(POSITIVE_BYTES);
        /// The time between reads.
        interval: Span = Required(POSITIVE_SPAN);
        /// How long after the first byte the first read comes.
        delay: Span = Default(SPAN, "\"0s\"");
    }
}
