//! The tables of links.

use comity_link::{Jitter, Limit, LossPlace, RedUnit};
use comity_units::{DataSize, Rate, Span};

use super::super::kinds::{
    Amount, Choice, Count, Either, Extent, ExtentKind, FASTEST, Flag, LONGEST, List,
    POSITIVE_BYTES, POSITIVE_SPAN, RATE, Real, SHARE, SPAN, Text, Whole, Word,
};
use super::super::schema::{At, Default, Keys, Nested, Optional, Required, table, tagged};

/// The most links or nodes that a table may request.
pub(in crate::scenario) const MAX_LINKS: u32 = 100_000;

table! {
    /// A pair of one-way links between two nodes.
    struct DuplexTable ("a link") {
        /// The forward direction.
        forward: LinkTable = Keys::<LinkTable>::OF;
        /// The reverse direction. Missing keys are as in the forward direction, except that
        /// losses, jitter and duplication are never copied. A loss may name both directions.
        reverse: Option<LinkTable> = Optional(
            Nested::<LinkTable>::KIND,
            "rate, delay, mtu and queue as in the forward direction, no losses, jitter or duplication",
        );
    }
}

table! {
    /// A one-way link.
    struct LinkTable ("a one-way link") {
        /// The rate: one rate, or steps `[{ at = "0s", rate = "1Mbps" }, ...]`.
        rate: Option<RateValue> = Optional(
            Either::<RateValue, _, _>::of(
                Word("unlimited", RateValue::Unlimited),
                Either::<RateValue, _, _>::of(
                    RATE,
                    List { item: Nested::<RateStep>::KIND, min: 1, max: 1_000_000 },
                ),
            ),
            "set by `trace`; one of the two is required",
        );
        /// A file with the rate over time, relative to the scenario file.
        trace: Option<TraceTable> = Optional(
            Either::<TraceTable, _, _>::of(Text("the name of a trace file"), Nested::<TraceTable>::KIND),
            "`rate` sets the rate",
        );
        /// The propagation delay: one delay, or steps `[{ at = "0s", delay = "20ms" }, ...]`.
        delay: Option<DelayValue> = Optional(
            Either::<DelayValue, _, _>::of(
                SPAN,
                List { item: Nested::<DelayStep>::KIND, min: 1, max: 1_000_000 },
            ),
            "required",
        );
        /// The largest packet, headers included. The link drops a larger one, as a router does that
        /// must not fragment it, and counts it as lost.
        mtu: Option<DataSize> = Optional(POSITIVE_BYTES, "any size is accepted");
        /// The queue: the limit of a drop-tail queue, including the packet in transmission, or a
        /// table with a `kind`.
        queue: Option<QueueTable> = Optional(
            Either::<QueueTable, _, _>::of(
                ExtentKind { min: 1, unlimited: true },
                Nested::<QueueTable>::KIND,
            ),
            "unlimited",
        );
        /// Random or scheduled losses.
        losses: Option<Vec<LossTable>> = Optional(
            List { item: Nested::<LossTable>::KIND, min: 0, max: 64 },
            "no losses",
        );
        /// Extra delay of single packets: the maximum of a uniform distribution, or a table with a
        /// `kind`.
        jitter: Option<JitterTable> = Optional(
            Either::<JitterTable, _, _>::of(SPAN, Nested::<JitterTable>::KIND),
            "none",
        );
        /// The probability that a packet arrives twice.
        duplication: Option<f64> = Optional(SHARE, "0");
    }
}

/// A rate, as written.
#[derive(Clone, Debug)]
pub(in crate::scenario) enum RateValue {
    Unlimited,
    Constant(Rate),
    Steps(Vec<RateStep>),
}

impl From<Rate> for RateValue {
    fn from(rate: Rate) -> Self {
        Self::Constant(rate)
    }
}

impl From<Vec<RateStep>> for RateValue {
    fn from(steps: Vec<RateStep>) -> Self {
        Self::Steps(steps)
    }
}

table! {
    /// A rate from a time on.
    struct RateStep ("a step of the rate") {
        /// The time.
        at: Span = Required(Amount { min: Span::ZERO, max: LONGEST });
        /// The rate; `"0bps"` holds every packet.
        rate: Rate = Required(Amount { min: Rate::ZERO, max: FASTEST });
    }
}

/// A delay, as written.
#[derive(Clone, Debug)]
pub(in crate::scenario) enum DelayValue {
    Constant(Span),
    Steps(Vec<DelayStep>),
}

impl From<Span> for DelayValue {
    fn from(delay: Span) -> Self {
        Self::Constant(delay)
    }
}

impl From<Vec<DelayStep>> for DelayValue {
    fn from(steps: Vec<DelayStep>) -> Self {
        Self::Steps(steps)
    }
}

table! {
    /// A delay from a time on.
    struct DelayStep ("a step of the delay") {
        /// The time.
        at: Span = Required(SPAN);
        /// The delay.
        delay: Span = Required(SPAN);
    }
}

table! {
    /// A file with the rate over time.
    struct TraceTable ("a trace") {
        /// The name of the file, relative to the scenario file.
        file: String = Required(Text("the name of a file"));
        /// The format of the file.
        format: TraceFormat = Default(TRACE_FORMAT, "\"auto\"");
    }
}

impl From<String> for TraceTable {
    fn from(file: String) -> Self {
        Self {
            written: At::nowhere(),
            file,
            format: TraceFormat::Guess,
        }
    }
}

tagged! {
    /// A queue and its drop policy.
    enum QueueTable ("a queue") by kind or "drop_tail" {
        "drop_tail" => DropTail(DropTailTable);
        "red" => Red(RedTable);
        "codel" => CoDel(CodelTable);
        "fq_codel" => FqCodel(FqCodelTable);
        "pie" => Pie(PieTable);
    }
}

impl From<Extent> for QueueTable {
    fn from(limit: Extent) -> Self {
        Self::DropTail(DropTailTable {
            written: At::nowhere(),
            limit,
        })
    }
}

/// How an [`Extent`] limits a queue.
pub(in crate::scenario) const fn limit(extent: Extent) -> Limit {
    match extent {
        Extent::Packets(packets) => Limit::Packets(packets),
        Extent::Bytes(bytes) => Limit::Bytes(bytes),
        Extent::Unlimited => Limit::Unlimited,
    }
}

const LIMIT: ExtentKind = ExtentKind {
    min: 1,
    unlimited: true,
};

table! {
    /// First in, first out. A full queue drops the arriving packet.
    struct DropTailTable ("a drop-tail queue") {
        /// The limit, including the packet in transmission.
        limit: Extent = Default(LIMIT, "\"unlimited\"");
    }
}

table! {
    /// Random early detection (Floyd and Jacobson 1993): drops or marks on arrival, by the average
    /// queue.
    struct RedTable ("a RED queue") {
        /// The limit, including the packet in transmission.
        limit: Extent = Default(LIMIT, "51");
        /// The average queue above which packets are dropped, in packets.
        min_threshold: f64 = Default(Real { min: 0.0, max: 1e9 }, "5");
        /// The average queue at which the probability reaches `max_probability`, in packets.
        max_threshold: f64 = Default(Real { min: 0.0, max: 1e9 }, "15");
        /// The probability of a drop at `max_threshold`, before drops are spaced.
        max_probability: f64 = Default(SHARE, "0.1");
        /// The weight of a new sample in the average.
        weight: f64 = Default(Real { min: 1e-9, max: 1.0 }, "0.002");
        /// Whether the probability grows to 1 at twice `max_threshold` instead of jumping to 1
        /// (gentle RED).
        gentle: bool = Default(Flag, "true");
        /// Whether the queue marks ECN-capable packets instead of dropping them at random.
        ecn: bool = Default(Flag, "false");
        /// The mean packet size.
        mean_packet: DataSize = Default(POSITIVE_BYTES, "\"500B\"");
        /// The unit of the average queue.
        unit: RedUnit = Default(
            Choice(&[
                ("packets", RedUnit::Packets, "packets, whatever their size"),
                ("bytes", RedUnit::Bytes, "bytes: a small packet is dropped less often than a large one"),
            ]),
            "\"packets\"",
        );
        /// Whether drops are spaced evenly, as with ns-2's `wait_`.
        wait: bool = Default(Flag, "true");
    }
}

table! {
    /// CoDel (RFC 8289): drops or marks on departure, by the queueing delay.
    struct CodelTable ("a CoDel queue") {
        /// The acceptable standing delay.
        target: Span = Default(POSITIVE_SPAN, "\"5ms\"");
        /// How long the delay must exceed the target before packets are dropped.
        interval: Span = Default(POSITIVE_SPAN, "\"100ms\"");
        /// The limit of the queue.
        limit: Extent = Default(LIMIT, "1000");
        /// Whether the queue marks ECN-capable packets instead of dropping them.
        ecn: bool = Default(Flag, "false");
        /// The largest packet. CoDel drops nothing while the queue holds at most this.
        mtu: DataSize = Default(POSITIVE_BYTES, "\"1500B\"");
    }
}

table! {
    /// FQ-CoDel (RFC 8290): one CoDel queue for each flow, served by deficit round robin. The two
    /// directions of a flow have separate queues.
    struct FqCodelTable ("an FQ-CoDel queue") {
        /// The acceptable standing delay in each queue.
        target: Span = Default(POSITIVE_SPAN, "\"5ms\"");
        /// How long the delay must exceed the target before packets are dropped.
        interval: Span = Default(POSITIVE_SPAN, "\"100ms\"");
        /// The limit of all queues together. Beyond it the longest queue drops from its head, and
        /// the drops count as those of a full queue.
        limit: Extent = Default(LIMIT, "10240");
        /// Whether the queue marks ECN-capable packets instead of dropping them.
        ecn: bool = Default(Flag, "true");
        /// CoDel drops nothing while all queues together hold at most this.
        mtu: DataSize = Default(POSITIVE_BYTES, "\"1500B\"");
        /// The number of queues to which flows are hashed.
        queues: u32 = Default(Count { min: 1, max: 65_536 }, "1024");
        /// The bytes that a queue may send in a round.
        quantum: DataSize = Default(POSITIVE_BYTES, "\"1514B\"");
        /// The most packets that the longest queue drops for one arrival at the limit.
        drop_batch: u32 = Default(Count { min: 1, max: 65_536 }, "64");
    }
}

table! {
    /// PIE (RFC 8033): drops or marks on arrival, by the queueing delay.
    struct PieTable ("a PIE queue") {
        /// The target delay.
        target: Span = Default(POSITIVE_SPAN, "\"15ms\"");
        /// How often the drop probability is computed.
        update_interval: Span = Default(
            Amount { min: Span::from_micros(100), max: LONGEST },
            "\"15ms\"",
        );
        /// The limit, including the packet in transmission.
        limit: Extent = Default(LIMIT, "1000");
        /// α: the weight of the distance to the target, per second.
        alpha: f64 = Default(Real { min: 0.0, max: 1e9 }, "0.125");
        /// β: the weight of the change of the delay, per second.
        beta: f64 = Default(Real { min: 0.0, max: 1e9 }, "1.25");
        /// How long PIE drops nothing after an idle time (burst allowance).
        max_burst: Span = Default(SPAN, "\"150ms\"");
        /// Whether the queue marks ECN-capable packets instead of dropping them, while the drop
        /// probability is below 0.1.
        ecn: bool = Default(Flag, "false");
        /// The mean packet size. PIE drops nothing while the queue holds at most two such packets.
        mean_packet: DataSize = Default(POSITIVE_BYTES, "\"1500B\"");
    }
}

table! {
    /// One cause of loss.
    struct LossTable ("a loss") {
        /// Where the packets are lost.
        place: LossPlace = Default(
            Choice(&[
                (
                    "after_transmission",
                    LossPlace::AfterTransmission,
                    "on the wire: the packet has used the queue and the link",
                ),
                (
                    "before_queue",
                    LossPlace::BeforeQueue,
                    "before the queue: the packet uses neither the queue nor the link",
                ),
            ]),
            "\"after_transmission\"",
        );
        /// The directions of the link in which packets are lost. Losses in `reverse` are those of
        /// the reverse direction, and have no such key.
        direction: LossDirection = Default(
            Choice(&[
                ("forward", LossDirection::Forward, "only the forward direction"),
                (
                    "both",
                    LossDirection::Both,
                    "both, with one process: on/off losses of both directions always have the same \
                     state",
                ),
                ("each", LossDirection::Each, "both, each with its own process"),
            ]),
            "\"forward\"",
        );
        /// The loss model.
        model: LossModelTable = Keys::<LossModelTable>::OF;
    }
}

/// The directions of a link in which packets are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scenario) enum LossDirection {
    Forward,
    Both,
    Each,
}

tagged! {
    /// A loss model.
    enum LossModelTable ("a loss model") by model {
        "packets" => Packets(PacketsTable);
        "bernoulli" => Bernoulli(BernoulliTable);
        "gilbert_elliott" => GilbertElliott(GilbertElliottTable);
        "on_off" => OnOff(OnOffLossTable);
        "outage" => Outage(OutageTable);
    }
}

table! {
    /// Exactly the listed packets.
    struct PacketsTable ("named packets") {
        /// The numbers of the packets among all that reach the link, from 0.
        packets: Vec<u64> = Required(List {
            item: Whole { min: 0, max: i64::MAX as u64 },
            min: 0,
            max: 1_000_000,
        });
    }
}

table! {
    /// Each packet with the same probability, independently.
    struct BernoulliTable ("independent losses") {
        /// The probability.
        probability: f64 = Required(SHARE);
    }
}

table! {
    /// A Markov chain of two states with one step for every packet (Gilbert 1960, Elliott 1963).
    struct GilbertElliottTable ("Gilbert-Elliott losses") {
        /// The probability of a step from good to bad.
        good_to_bad: f64 = Required(SHARE);
        /// The probability of a step from bad to good.
        bad_to_good: f64 = Required(SHARE);
        /// The probability of a loss in the good state.
        loss_good: f64 = Default(SHARE, "0");
        /// The probability of a loss in the bad state.
        loss_bad: f64 = Default(SHARE, "1");
    }
}

table! {
    /// Two alternating states, each for an exponentially distributed time.
    struct OnOffLossTable ("on/off losses") {
        /// The mean time in the on state.
        mean_on: Span = Required(POSITIVE_SPAN);
        /// The mean time in the off state.
        mean_off: Span = Required(POSITIVE_SPAN);
        /// The probability of a loss in the on state.
        drop_on: f64 = Required(SHARE);
        /// The probability of a loss in the off state.
        drop_off: f64 = Default(SHARE, "0");
        /// Whether the initial state is on.
        start_on: bool = Default(Flag, "true");
    }
}

table! {
    /// All packets for some time.
    struct OutageTable ("an outage") {
        /// When the outage begins.
        at: Span = Required(SPAN);
        /// The duration of the outage.
        lasts: Span = Required(POSITIVE_SPAN);
    }
}

tagged! {
    /// Extra delay of single packets.
    enum JitterTable ("jitter") by kind {
        "uniform" => Uniform(UniformTable);
        "normal" => Normal(NormalTable);
        "half_normal" => HalfNormal(HalfNormalTable);
        "exponential" => Exponential(ExponentialTable);
    }
}

impl From<Span> for JitterTable {
    fn from(max: Span) -> Self {
        Self::Uniform(UniformTable {
            written: At::nowhere(),
            max,
            reorder: false,
        })
    }
}

impl JitterTable {
    pub(in crate::scenario) fn jitter(&self) -> Jitter {
        match self {
            Self::Uniform(table) if table.max.is_zero() => Jitter::None,
            Self::Uniform(table) => Jitter::Uniform {
                max: table.max,
                reorder: table.reorder,
            },
            Self::Normal(table) => Jitter::Normal {
                mean: table.mean,
                stddev: table.stddev,
                reorder: table.reorder,
            },
            Self::HalfNormal(table) => Jitter::HalfNormal {
                stddev: table.stddev,
                max: table.max,
                reorder: table.reorder,
            },
            Self::Exponential(table) => Jitter::Exponential {
                mean: table.mean,
                reorder: table.reorder,
            },
        }
    }
}

table! {
    /// Uniform from zero to `max`.
    struct UniformTable ("uniform jitter") {
        /// The largest extra delay.
        max: Span = Required(SPAN);
        /// Whether packets may be reordered.
        reorder: bool = Default(Flag, "false");
    }
}

table! {
    /// Normally distributed; a negative value becomes zero.
    struct NormalTable ("normal jitter") {
        /// The mean of the distribution.
        mean: Span = Required(SPAN);
        /// The standard deviation of the distribution.
        stddev: Span = Required(SPAN);
        /// Whether packets may be reordered.
        reorder: bool = Default(Flag, "false");
    }
}

table! {
    /// The absolute value of a normal draw around zero, at most `max`. The defaults and `reorder =
    /// false` are what RFC 8868 recommends. Source: RFC 8868, sections 4.5.2 and 4.5.3.
    struct HalfNormalTable ("half-normal jitter") {
        /// The standard deviation of the draw.
        stddev: Span = Default(SPAN, "\"5ms\"");
        /// The largest extra delay.
        max: Span = Default(SPAN, "\"15ms\"");
        /// Whether packets may be reordered.
        reorder: bool = Default(Flag, "false");
    }
}

table! {
    /// Exponentially distributed.
    struct ExponentialTable ("exponential jitter") {
        /// The mean extra delay.
        mean: Span = Required(SPAN);
        /// Whether packets may be reordered.
        reorder: bool = Default(Flag, "false");
    }
}

/// How many links a topology has.
pub(in crate::scenario) const LINKS: Count = Count {
    min: 1,
    max: MAX_LINKS,
};

/// The format of a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::scenario) enum TraceFormat {
    /// Chosen by the name of the file.
    Guess,
    Mahimahi,
    Steps,
}

const TRACE_FORMAT: Choice<TraceFormat> = Choice(&[
    (
        "auto",
        TraceFormat::Guess,
        "steps when the file's name ends in .csv or .steps, mahimahi otherwise",
    ),
    (
        "mahimahi",
        TraceFormat::Mahimahi,
        "a millisecond in each line, at which 1504 bytes can leave; repeats",
    ),
    (
        "steps",
        TraceFormat::Steps,
        "a time, a comma and a rate in each line, such as `1.5s, 800kbps`",
    ),
]);
