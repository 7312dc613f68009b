//! The tables of links.

use comity_link::{Jitter, Limit, LossPlace, RedUnit};
use comity_units::{Bytes, Rate, Span};

use super::super::kinds::{
    Amount, Choice, Count, Either, Extent, ExtentKind, FASTEST, Flag, LONGEST, List,
    POSITIVE_BYTES, POSITIVE_SPAN, RATE, Real, SHARE, SPAN, Text, Whole, Word,
};
use super::super::schema::{At, Default, Keys, Nested, Optional, Required, table, tagged};

/// The most links or nodes that a table may ask for.
pub(in crate::scenario) const MAX_LINKS: u32 = 100_000;

table! {
    /// A pair of one-way links between two nodes.
    struct DuplexTable ("a link") {
        /// The forward direction.
        forward: LinkTable = Keys::<LinkTable>::OF;
        /// The reverse direction. Missing keys are as in the forward direction, except that
        /// losses, jitter and duplication are never copied.
        reverse: Option<LinkTable> = Optional(
            Nested::<LinkTable>::KIND,
            "rate, delay, mtu and queue as in the forward direction, no losses, jitter or duplication",
        );
    }
}

table! {
    /// A one-way link.
    struct LinkTable ("a one-way link") {
        /// How fast packets are sent: one rate, or steps `[{ at = "0s", rate = "1Mbps" }, ...]`.
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
        /// How long a packet travels: one delay, or steps `[{ at = "0s", delay = "20ms" }, ...]`.
        delay: Option<DelayValue> = Optional(
            Either::<DelayValue, _, _>::of(
                SPAN,
                List { item: Nested::<DelayStep>::KIND, min: 1, max: 1_000_000 },
            ),
            "required",
        );
        /// The largest packet that is taken, headers included; a larger one is dropped, as by a
        /// router that must not fragment it, and counts as lost.
        mtu: Option<Bytes> = Optional(POSITIVE_BYTES, "any size is taken");
        /// Where packets wait: how much has room in a drop-tail queue, the packet in transmission
        /// included, or a table with a `kind`.
        queue: Option<QueueTable> = Optional(
            Either::<QueueTable, _, _>::of(
                ExtentKind { min: 1, unlimited: true },
                Nested::<QueueTable>::KIND,
            ),
            "unlimited",
        );
        /// What destroys packets.
        losses: Option<Vec<LossTable>> = Optional(
            List { item: Nested::<LossTable>::KIND, min: 0, max: 64 },
            "nothing",
        );
        /// Extra delay of single packets: the most of a uniform distribution, or a table with a
        /// `kind`.
        jitter: Option<JitterTable> = Optional(
            Either::<JitterTable, _, _>::of(SPAN, Nested::<JitterTable>::KIND),
            "none",
        );
        /// The probability that a packet arrives twice.
        duplication: Option<f64> = Optional(SHARE, "0");
    }
}

/// A rate as written.
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
    /// From a time on, a rate.
    struct RateStep ("a step") {
        /// From when on.
        at: Span = Required(Amount { min: Span::ZERO, max: LONGEST });
        /// The rate; `"0bps"` holds every packet.
        rate: Rate = Required(Amount { min: Rate::ZERO, max: FASTEST });
    }
}

/// A delay as written.
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
    /// From a time on, a delay.
    struct DelayStep ("a step") {
        /// From when on.
        at: Span = Required(SPAN);
        /// The delay.
        delay: Span = Required(SPAN);
    }
}

table! {
    /// A file with a rate over time.
    struct TraceTable ("a trace") {
        /// The name of the file, relative to the scenario file.
        file: String = Required(Text("the name of a file"));
        /// What the file holds.
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
    /// Where packets wait, and which of them are refused.
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
    /// First in, first out; what finds no room is dropped.
    struct DropTailTable ("a drop-tail queue") {
        /// How much has room, the packet in transmission included.
        limit: Extent = Default(LIMIT, "\"unlimited\"");
    }
}

table! {
    /// Random early detection (Floyd and Jacobson 1993): drops or marks on arrival, by the average
    /// queue.
    struct RedTable ("a RED queue") {
        /// How much has room, the packet in transmission included.
        limit: Extent = Default(LIMIT, "51");
        /// The average queue from which packets are dropped, in packets.
        min_threshold: f64 = Default(Real { min: 0.0, max: 1e9 }, "5");
        /// The average queue at which the probability reaches `max_probability`, in packets.
        max_threshold: f64 = Default(Real { min: 0.0, max: 1e9 }, "15");
        /// The probability of a drop at `max_threshold`, before drops are spaced.
        max_probability: f64 = Default(SHARE, "0.1");
        /// The weight of a new sample in the average.
        weight: f64 = Default(Real { min: 1e-9, max: 1.0 }, "0.002");
        /// Whether the probability grows on to 1 at twice `max_threshold` instead of jumping to 1.
        gentle: bool = Default(Flag, "true");
        /// Whether packets of senders that understand marks are marked instead of dropped by
        /// chance.
        ecn: bool = Default(Flag, "false");
        /// The size of a typical packet.
        mean_packet: Bytes = Default(POSITIVE_BYTES, "\"500B\"");
        /// What the queue is measured in.
        unit: RedUnit = Default(
            Choice(&[
                ("packets", RedUnit::Packets, "packets, whatever their size"),
                ("bytes", RedUnit::Bytes, "bytes: a small packet is dropped less often than a large one"),
            ]),
            "\"packets\"",
        );
        /// Whether drops are spaced more evenly, as with ns-2's `wait_`.
        wait: bool = Default(Flag, "true");
    }
}

table! {
    /// Controlled delay (RFC 8289): drops or marks on departure, by the time that packets waited.
    struct CodelTable ("a CoDel queue") {
        /// The standing delay that is acceptable.
        target: Span = Default(POSITIVE_SPAN, "\"5ms\"");
        /// How long the delay has to exceed the target before packets are dropped.
        interval: Span = Default(POSITIVE_SPAN, "\"100ms\"");
        /// How much has room.
        limit: Extent = Default(LIMIT, "1000");
        /// Whether packets of senders that understand marks are marked instead of dropped.
        ecn: bool = Default(Flag, "false");
        /// The largest packet: a queue that holds no more than this is never too long.
        mtu: Bytes = Default(POSITIVE_BYTES, "\"1500B\"");
    }
}

table! {
    /// FQ-CoDel (RFC 8290): a queue with controlled delay for each flow, served in turn. The two
    /// directions of a flow have queues of their own.
    struct FqCodelTable ("an FQ-CoDel queue") {
        /// The standing delay that is acceptable in each queue.
        target: Span = Default(POSITIVE_SPAN, "\"5ms\"");
        /// How long the delay has to exceed the target before packets are dropped.
        interval: Span = Default(POSITIVE_SPAN, "\"100ms\"");
        /// How much has room in all queues. Beyond it the longest queue drops from its head; such
        /// drops count as those of a full queue.
        limit: Extent = Default(LIMIT, "10240");
        /// Whether packets of senders that understand marks are marked instead of dropped.
        ecn: bool = Default(Flag, "true");
        /// CoDel drops nothing while all queues together hold no more than this.
        mtu: Bytes = Default(POSITIVE_BYTES, "\"1500B\"");
        /// How many queues flows are hashed to.
        queues: u32 = Default(Count { min: 1, max: 65_536 }, "1024");
        /// How much a queue sends in its turn.
        quantum: Bytes = Default(POSITIVE_BYTES, "\"1514B\"");
        /// The most packets that one arrival at the limit costs the longest queue.
        drop_batch: u32 = Default(Count { min: 1, max: 65_536 }, "64");
    }
}

table! {
    /// PIE (RFC 8033): drops or marks on arrival, by the time that packets waited.
    struct PieTable ("a PIE queue") {
        /// The delay to hold.
        target: Span = Default(POSITIVE_SPAN, "\"15ms\"");
        /// How often the drop probability is computed.
        update_interval: Span = Default(
            Amount { min: Span::from_micros(100), max: LONGEST },
            "\"15ms\"",
        );
        /// How much has room, the packet in transmission included.
        limit: Extent = Default(LIMIT, "1000");
        /// The weight of the distance to the target, per second.
        alpha: f64 = Default(Real { min: 0.0, max: 1e9 }, "0.125");
        /// The weight of the change of the delay, per second.
        beta: f64 = Default(Real { min: 0.0, max: 1e9 }, "1.25");
        /// How long a queue may be built up after quiet before anything is dropped.
        max_burst: Span = Default(SPAN, "\"150ms\"");
        /// Whether packets of senders that understand marks are marked instead of dropped, while
        /// the drop probability is below 0.1.
        ecn: bool = Default(Flag, "false");
        /// The size of a typical packet: nothing is dropped while no more than two of them wait.
        mean_packet: Bytes = Default(POSITIVE_BYTES, "\"1500B\"");
    }
}

table! {
    /// One cause of loss.
    struct LossTable ("a loss") {
        /// Where packets are lost.
        place: LossPlace = Default(
            Choice(&[
                (
                    "after_transmission",
                    LossPlace::AfterTransmission,
                    "on the wire: the packet has used the queue and the link",
                ),
                ("before_queue", LossPlace::BeforeQueue, "on the way in: the packet uses nothing"),
            ]),
            "\"after_transmission\"",
        );
        /// Which packets are lost.
        model: LossModelTable = Keys::<LossModelTable>::OF;
    }
}

tagged! {
    /// Which packets are lost.
    enum LossModelTable ("a loss model") by model {
        "packets" => Packets(PacketsTable);
        "bernoulli" => Bernoulli(BernoulliTable);
        "gilbert_elliott" => GilbertElliott(GilbertElliottTable);
        "on_off" => OnOff(OnOffLossTable);
        "outage" => Outage(OutageTable);
    }
}

table! {
    /// Exactly these packets.
    struct PacketsTable ("named packets") {
        /// Their numbers among all packets offered to the link, from 0.
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
    /// A Markov chain of two states that steps with every packet (Gilbert 1960, Elliott 1963).
    struct GilbertElliottTable ("losses in bursts") {
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
    /// Two states that alternate in time, each for an exponentially distributed while.
    struct OnOffLossTable ("losses in spells") {
        /// The mean length of a stay in the on state.
        mean_on: Span = Required(POSITIVE_SPAN);
        /// The mean length of a stay in the off state.
        mean_off: Span = Required(POSITIVE_SPAN);
        /// The probability of a loss in the on state.
        drop_on: f64 = Required(SHARE);
        /// The probability of a loss in the off state.
        drop_off: f64 = Default(SHARE, "0");
        /// Whether the first state is on.
        start_on: bool = Default(Flag, "true");
    }
}

table! {
    /// Everything for a while.
    struct OutageTable ("an outage") {
        /// When it begins.
        at: Span = Required(SPAN);
        /// How long it lasts.
        lasts: Span = Required(POSITIVE_SPAN);
    }
}

tagged! {
    /// Extra delay of single packets.
    enum JitterTable ("jitter") by kind {
        "uniform" => Uniform(UniformTable);
        "normal" => Normal(NormalTable);
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
        /// Whether packets may overtake each other.
        reorder: bool = Default(Flag, "false");
    }
}

table! {
    /// Normally distributed, and zero where the draw is negative.
    struct NormalTable ("normal jitter") {
        /// The mean of the distribution.
        mean: Span = Required(SPAN);
        /// Its standard deviation.
        stddev: Span = Required(SPAN);
        /// Whether packets may overtake each other.
        reorder: bool = Default(Flag, "false");
    }
}

table! {
    /// Exponentially distributed.
    struct ExponentialTable ("exponential jitter") {
        /// The mean extra delay.
        mean: Span = Required(SPAN);
        /// Whether packets may overtake each other.
        reorder: bool = Default(Flag, "false");
    }
}

/// How many links a topology asks for.
pub(in crate::scenario) const LINKS: Count = Count {
    min: 1,
    max: MAX_LINKS,
};

/// What a trace file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::scenario) enum TraceFormat {
    /// By the name of the file.
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
