//! The configuration of queues, validated when a link is created.

use comity_units::{DataSize, Span};

use crate::error::{ConfigError, more_than_zero, probability};

/// The capacity of a link, including the packet in transmission.
///
/// An ns-2 drop-tail queue with `limit_` L is `Packets(L)`. An ns-2 **RED** queue with `limit_` L
/// holds L packets beside the one in transmission and is `Packets(L + 1)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Everything has room.
    Unlimited,
    /// At most this many packets.
    Packets(u32),
    /// At most this many bytes; a larger packet never has room.
    Bytes(DataSize),
}

impl Limit {
    #[inline]
    pub(crate) fn has_room(&self, packets: usize, bytes: u64, arriving: u32) -> bool {
        match *self {
            Self::Unlimited => true,
            Self::Packets(limit) => packets < limit as usize,
            Self::Bytes(limit) => bytes + u64::from(arriving) <= limit.get(),
        }
    }

    /// How many packets of one size find room.
    pub(crate) fn packets_of(&self, bytes: u32) -> u64 {
        match *self {
            Self::Unlimited => u64::MAX,
            Self::Packets(limit) => u64::from(limit),
            Self::Bytes(limit) => limit
                .get()
                .checked_div(u64::from(bytes))
                .unwrap_or(u64::MAX),
        }
    }
}

/// The queue of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Queue {
    /// First in, first out; packets without room are dropped.
    DropTail(Limit),
    /// Random early detection: drops or marks on arrival, by the average queue.
    Red(RedConfig),
    /// Controlled delay: drops or marks on departure, by the queueing delay. Only on a
    /// [`QueuedLink`](crate::QueuedLink).
    CoDel(CodelConfig),
    /// A queue with controlled delay for each flow, served in turn. Only on a
    /// [`QueuedLink`](crate::QueuedLink).
    FqCodel(FqCodelConfig),
    /// Proportional integral controller enhanced: drops or marks on arrival, by the queueing delay.
    /// Only on a [`QueuedLink`](crate::QueuedLink).
    Pie(PieConfig),
}

impl Queue {
    /// How much it holds.
    pub const fn limit(&self) -> Limit {
        match self {
            Self::DropTail(limit) => *limit,
            Self::Red(red) => red.limit,
            Self::CoDel(codel) => codel.limit,
            Self::FqCodel(fq_codel) => fq_codel.limit,
            Self::Pie(pie) => pie.limit,
        }
    }

    /// Whether it marks packets of ECN-capable senders.
    pub const fn marks(&self) -> bool {
        match self {
            Self::DropTail(_) => false,
            Self::Red(red) => red.ecn,
            Self::CoDel(codel) => codel.ecn,
            Self::FqCodel(fq_codel) => fq_codel.ecn,
            Self::Pie(pie) => pie.ecn,
        }
    }

    /// Whether the fate of a packet is known on arrival; an [`AnalyticLink`](crate::AnalyticLink)
    /// can then have this queue.
    pub(crate) const fn decides_on_arrival(&self) -> bool {
        matches!(self, Self::DropTail(_) | Self::Red(_))
    }
}

/// Parameters of random early detection. The default is that of ns-2 2.35 for a queue of 50
/// packets.
#[derive(Clone, Debug, PartialEq)]
pub struct RedConfig {
    /// The hard limit.
    pub limit: Limit,
    /// Average queue from which packets are dropped or marked, in packets (of `mean_packet` bytes
    /// in byte mode).
    pub min_threshold: f64,
    /// Average queue at which the probability is `max_probability`, in the same unit; the paper
    /// advises at least twice `min_threshold`.
    pub max_threshold: f64,
    /// Probability of a drop at `max_threshold`, before spacing.
    pub max_probability: f64,
    /// Weight w_q of a new sample in the average.
    pub weight: f64,
    /// Above `max_threshold`, the probability grows linearly from `max_probability` to 1 at twice
    /// the threshold, instead of jumping to 1.
    pub gentle: bool,
    /// Marks packets of ECN-capable senders instead of random drops.
    pub ecn: bool,
    /// Size of a typical packet: sets the decay of the average on an idle link, and the unit in
    /// byte mode.
    pub mean_packet: DataSize,
    /// The unit of the queue length.
    pub unit: RedUnit,
    /// Spaces drops more evenly: none for the first `1 / p` packets after a drop (ns-2's `wait_`).
    pub wait: bool,
}

impl Default for RedConfig {
    fn default() -> Self {
        Self {
            limit: Limit::Packets(51),
            min_threshold: 5.0,
            max_threshold: 15.0,
            max_probability: 0.1,
            weight: 0.002,
            gentle: true,
            ecn: false,
            mean_packet: DataSize::new(500),
            unit: RedUnit::Packets,
            wait: true,
        }
    }
}

/// The unit of random early detection's queue length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedUnit {
    /// Bytes: a small packet is dropped less often than a large one.
    Bytes,
    /// Packets, whatever their size.
    Packets,
}

/// Parameters of controlled delay. The default is that of RFC 8289.
#[derive(Clone, Debug, PartialEq)]
pub struct CodelConfig {
    /// The acceptable standing delay: 5 ms.
    pub target: Span,
    /// How long the delay must exceed the target before packets are dropped, about a worst-case
    /// round-trip time: 100 ms.
    pub interval: Span,
    /// The hard limit.
    pub limit: Limit,
    /// Marks packets of ECN-capable senders instead of dropping them.
    pub ecn: bool,
    /// The largest packet: a queue of at most this size is never too long.
    pub mtu: DataSize,
}

impl Default for CodelConfig {
    fn default() -> Self {
        Self {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            limit: Limit::Packets(1_000),
            ecn: false,
            mtu: DataSize::new(1_500),
        }
    }
}

/// Parameters of FQ-CoDel. The default is that of RFC 8290 and of Linux.
#[derive(Clone, Debug, PartialEq)]
pub struct FqCodelConfig {
    /// The acceptable standing delay of each queue: 5 ms.
    pub target: Span,
    /// How long the delay must exceed the target before packets are dropped: 100 ms.
    pub interval: Span,
    /// The hard limit over all queues: 10,240 packets.
    pub limit: Limit,
    /// Marks packets of ECN-capable senders where CoDel would drop.
    pub ecn: bool,
    /// CoDel drops nothing while all queues together hold at most this much.
    pub mtu: DataSize,
    /// The number of queues for the hash of flows: 1,024.
    pub queues: u32,
    /// How much a queue sends in a turn: 1,514 bytes.
    pub quantum: DataSize,
    /// The maximum number of packets that one arrival at the limit costs the longest queue: 64.
    pub drop_batch: u32,
}

impl Default for FqCodelConfig {
    fn default() -> Self {
        Self {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            limit: Limit::Packets(10_240),
            ecn: true,
            mtu: DataSize::new(1_500),
            queues: 1_024,
            quantum: DataSize::new(1_514),
            drop_batch: 64,
        }
    }
}

/// Parameters of PIE. The default is that of RFC 8033; the limit is that of Linux.
#[derive(Clone, Debug, PartialEq)]
pub struct PieConfig {
    /// The target delay: 15 ms.
    pub target: Span,
    /// How often the drop probability is computed: every 15 ms. At least 100 µs.
    pub update_interval: Span,
    /// The hard limit: 1,000 packets.
    pub limit: Limit,
    /// Weight of the distance to the target, per second: 0.125.
    pub alpha: f64,
    /// Weight of the change of the delay, per second: 1.25.
    pub beta: f64,
    /// How long a queue may grow after a quiet period before any drop: 150 ms.
    pub max_burst: Span,
    /// Marks packets of ECN-capable senders instead of dropping them, while the drop probability is
    /// below 0.1.
    pub ecn: bool,
    /// Size of a typical packet: nothing is dropped while at most two of them wait.
    pub mean_packet: DataSize,
}

impl Default for PieConfig {
    fn default() -> Self {
        Self {
            target: Span::from_millis(15),
            update_interval: Span::from_millis(15),
            limit: Limit::Packets(1_000),
            alpha: 0.125,
            beta: 1.25,
            max_burst: Span::from_millis(150),
            ecn: false,
            mean_packet: DataSize::new(1_500),
        }
    }
}

impl Queue {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::DropTail(limit) => limit.validate("queue limit"),
            Self::Red(red) => red.validate(),
            Self::CoDel(codel) => {
                codel.limit.validate("queue limit")?;
                more_than_zero("queue target", codel.target)?;
                more_than_zero("queue interval", codel.interval)
            }
            Self::FqCodel(fq_codel) => fq_codel.validate(),
            Self::Pie(pie) => pie.validate(),
        }
    }
}

impl FqCodelConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        self.limit.validate("queue limit")?;
        more_than_zero("queue target", self.target)?;
        more_than_zero("queue interval", self.interval)?;
        for (field, is_zero) in [
            ("queue queues", self.queues == 0),
            ("queue quantum", self.quantum == DataSize::ZERO),
            ("queue drop_batch", self.drop_batch == 0),
        ] {
            if is_zero {
                return Err(ConfigError::Zero { field });
            }
        }
        Ok(())
    }
}

impl PieConfig {
    /// The shortest update interval: an idle queue costs time at each update.
    const MIN_UPDATE_INTERVAL: Span = Span::from_micros(100);

    fn validate(&self) -> Result<(), ConfigError> {
        self.limit.validate("queue limit")?;
        more_than_zero("queue target", self.target)?;
        if self.update_interval < Self::MIN_UPDATE_INTERVAL {
            return Err(ConfigError::PieInterval {
                value: self.update_interval,
            });
        }
        for (field, value) in [("queue alpha", self.alpha), ("queue beta", self.beta)] {
            // The comparison rejects NaN.
            if !(value >= 0.0 && value.is_finite()) {
                return Err(ConfigError::PieWeight { field, value });
            }
        }
        Ok(())
    }
}

impl RedConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        self.limit.validate("queue limit")?;
        let (minimum, maximum) = (self.min_threshold, self.max_threshold);
        if !(minimum > 0.0 && minimum < maximum && maximum.is_finite()) {
            return Err(ConfigError::RedThresholds { minimum, maximum });
        }
        probability("queue max_probability", self.max_probability)?;
        if !(self.weight > 0.0 && self.weight <= 1.0) {
            return Err(ConfigError::RedWeight { value: self.weight });
        }
        if self.mean_packet == DataSize::ZERO {
            return Err(ConfigError::Zero {
                field: "queue mean_packet",
            });
        }
        Ok(())
    }
}

impl Limit {
    /// Whether the contents exceed the limit.
    pub(crate) fn is_exceeded(&self, packets: usize, bytes: u64) -> bool {
        match *self {
            Self::Unlimited => false,
            Self::Packets(limit) => packets > limit as usize,
            Self::Bytes(limit) => bytes > limit.get(),
        }
    }

    fn validate(&self, field: &'static str) -> Result<(), ConfigError> {
        match *self {
            Self::Packets(0) | Self::Bytes(DataSize::ZERO) => Err(ConfigError::NoRoom { field }),
            Self::Unlimited | Self::Packets(_) | Self::Bytes(_) => Ok(()),
        }
    }
}
