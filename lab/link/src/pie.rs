//! PIE: the proportional integral controller enhanced.
//!
//! PIE drops an arriving packet with some probability. A controller updates the probability at
//! fixed intervals, from the distance of the delay to its target and from its change since the last
//! update.
//!
//! ```text
//! p ← p + s(p) · (α · (delay − target) + β · (delay − previous delay))      every update interval
//! s(p) = 1, 1/2, 1/8, 1/32, 1/128, 1/512, 1/2048      for p ≥ 10⁻¹, below that, below 10⁻², … below 10⁻⁶
//! p ← 0.98 · p                                        after two updates without delay
//! ```
//!
//! From p = 0.1 on, an update adds at most 0.02. After a quiet period, a burst of 150 ms passes
//! without drops. Drops are spaced: the sum of p over arrivals prevents drops while it is below
//! 0.85, forces one when it reaches 8.5, and restarts after a drop or mark. No packet is dropped
//! while the last delay was below half the target and p is below 0.2, or while at most two packets
//! wait.
//!
//! The delay is that of the last packet to leave, by its time stamp, and zero if it left the queue
//! empty. RFC 8033, section 4.3 allows both, and Linux does so by default. The alternative,
//! estimating the departure rate (section 5.2), needs 16 KiB in the queue and lags behind a varying
//! rate. It saves a time stamp, which a link has anyway.
//!
//! Source: RFC 8033, sections 4, 5.1, 5.4 and 5.5. Differs from the source in: 1. an update with a
//! delay above 250 ms adds 0.02 to p, as in Linux. 2. a mark resets the sum of p, as a drop
//! does. 3. PIE is always on (section 5.3 has an option to turn it off). Differs from Linux in: 1.
//! the burst allowance falls by the update interval at each update, as in the RFC; Linux uses the
//! time between departures. 2. the delay that spares packets is that of the last update; Linux uses
//! the latest. 3. decay by 0.98, not 63/64. 4. no byte mode.

use comity_units::{Seed, Span, Time};

use crate::Random;
use crate::outcome::Packet;
use crate::queue::PieConfig;
use crate::red::Verdict;

/// The drop probability up to which packets are marked instead.
const MARK_BELOW: f64 = 0.1;
/// The sum of the drop probability below which nothing is dropped.
const MIN_SUM: f64 = 0.85;
/// The sum of the drop probability that forces a drop.
const MAX_SUM: f64 = 8.5;
/// The drop probability below which packets are spared while the delay is small.
const CALM_BELOW: f64 = 0.2;
/// The maximum increase of a high drop probability in one update.
const MAX_STEP: f64 = 0.02;
/// The drop probability from which it is high.
const HIGH_FROM: f64 = 0.1;
/// The delay above which an update adds [`EXTRA_STEP`].
const LONG_DELAY: Span = Span::from_millis(250);
/// The increase of an update at a long delay.
const EXTRA_STEP: f64 = 0.02;
/// The remaining share of the drop probability after an update without delay.
const DECAY: f64 = 0.98;
/// The scale of a step by the drop probability below which it holds, smallest first.
const SCALES: [(f64, f64); 6] = [
    (1e-6, 1.0 / 2_048.0),
    (1e-5, 1.0 / 512.0),
    (1e-4, 1.0 / 128.0),
    (1e-3, 1.0 / 32.0),
    (1e-2, 1.0 / 8.0),
    (1e-1, 1.0 / 2.0),
];

#[derive(Clone, Debug)]
pub(crate) struct Pie {
    target: Span,
    update_interval: Span,
    max_burst: Span,
    alpha: f64,
    beta: f64,
    ecn: bool,
    /// Bytes of two typical packets.
    two_packets: u64,
    next_update: Time,
    burst_allowance: Span,
    /// The delay of the last packet to leave.
    delay: Span,
    /// The delay at the last update.
    previous_delay: Span,
    probability: f64,
    /// The sum of the probability over arrivals since the last drop or mark.
    sum: f64,
    random: Random,
}

impl Pie {
    /// Creates an idle queue. Its random numbers are the stream `pie` below `seed`.
    pub(crate) fn new(config: &PieConfig, seed: Seed) -> Self {
        Self {
            target: config.target,
            update_interval: config.update_interval,
            max_burst: config.max_burst,
            alpha: config.alpha,
            beta: config.beta,
            ecn: config.ecn,
            two_packets: config.mean_packet.get().saturating_mul(2),
            next_update: Time::ZERO + config.update_interval,
            burst_allowance: config.max_burst,
            delay: Span::ZERO,
            previous_delay: Span::ZERO,
            probability: 0.0,
            sum: 0.0,
            random: Random::new(seed.derive("pie")),
        }
    }

    /// The drop probability at `now`, which must not be before the last call.
    pub(crate) fn probability_at(&mut self, now: Time) -> f64 {
        self.catch_up(now);
        self.probability
    }

    /// Decides about a packet that finds `waiting` bytes in the queue. Uses one random number if
    /// chance decides, else none.
    pub(crate) fn arrive(&mut self, now: Time, waiting: u64, packet: Packet) -> Verdict {
        self.catch_up(now);
        if !self.burst_allowance.is_zero() {
            return Verdict::Pass;
        }
        let is_calm = self.is_short(self.previous_delay) && self.probability < CALM_BELOW;
        if is_calm || waiting <= self.two_packets {
            return Verdict::Pass;
        }
        if self.probability == 0.0 {
            self.sum = 0.0;
        }
        self.sum += self.probability;
        if self.sum < MIN_SUM || self.sum < MAX_SUM && !self.random.bernoulli(self.probability) {
            return Verdict::Pass;
        }
        self.sum = 0.0;
        if self.ecn && packet.ecn_capable && self.probability < MARK_BELOW {
            Verdict::Mark
        } else {
            Verdict::Drop
        }
    }

    /// Records that the queue was full at the arrival of a packet.
    pub(crate) fn overflow(&mut self) {
        self.sum = 0.0;
    }

    /// Records that a packet leaves the queue, in which it has waited since `since` and in which
    /// `left` packets remain.
    pub(crate) fn depart(&mut self, now: Time, since: Time, left: usize) {
        self.catch_up(now);
        self.delay = match left {
            0 => Span::ZERO,
            _ => now.saturating_since(since),
        };
    }

    /// Makes the updates due by `now`, before any other event at that time.
    fn catch_up(&mut self, now: Time) {
        while let Some(behind) = now.since(self.next_update) {
            let mut updates = 1;
            if !self.update() {
                // Later updates change nothing either, until a packet moves.
                updates += behind.as_nanos() / self.update_interval.as_nanos().max(1);
            }
            self.next_update += self.update_interval * updates;
            if self.next_update.is_never() {
                return;
            }
        }
    }

    /// Updates the drop probability; returns whether it has changed.
    fn update(&mut self) -> bool {
        let before = (self.probability, self.burst_allowance, self.previous_delay);
        let (delay, previous) = (self.delay.as_secs_f64(), self.previous_delay.as_secs_f64());
        let scale = SCALES
            .iter()
            .find(|(below, _)| self.probability < *below)
            .map_or(1.0, |(_, scale)| *scale);
        let distance = delay - self.target.as_secs_f64();
        let mut step = scale * (self.alpha * distance + self.beta * (delay - previous));
        if self.probability >= HIGH_FROM {
            step = step.min(MAX_STEP);
        }
        if self.delay > LONG_DELAY {
            step += EXTRA_STEP;
        }
        self.probability += step;
        if self.delay.is_zero() && self.previous_delay.is_zero() {
            self.probability *= DECAY;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.burst_allowance = self.burst_allowance.saturating_sub(self.update_interval);
        if self.probability == 0.0
            && self.is_short(self.delay)
            && self.is_short(self.previous_delay)
        {
            self.burst_allowance = self.max_burst;
        }
        self.previous_delay = self.delay;
        before != (self.probability, self.burst_allowance, self.previous_delay)
    }

    /// Whether a delay is below half of the target.
    fn is_short(&self, delay: Span) -> bool {
        delay < self.target / 2
    }
}
