//! What the paper on TCP-Real leaves open, and the settings for each reading.
//!
//! # Decided where the paper is silent
//! 1. **How a level rises while the rate is constant.** A bottleneck delivers every wave at the
//!    same rate, the ratio is 1, and figure 1 keeps every level. By figure 1 alone a connection
//!    that begins with two segments stays there on a clean path, but the paper's tables show one
//!    that fills the path. The abstract mentions Slow Start, and TCP-Real "extends TCP-Reno". So a
//!    connection begins with Slow Start, run by the receiver: the level doubles with every wave
//!    until it reaches the threshold or the wave-decision timer expires ([`Opening::SlowStart`]).
//!    From then on only figure 1 applies. With [`Opening::Sender`] it is the sender's Slow Start.
//!    [`Opening::Figure`] and [`Opening::Jump`] are the two literal readings.
//! 2. **The threshold before the first wave-decision timeout** is half of the highest level, as
//!    after a timeout at that level ([`TcpRealConfig::threshold_share`]).
//! 3. **Whole levels.** Figure 1 gives fractions, and the option holds whole levels. The receiver
//!    keeps the fraction and rounds the reported level. [`LevelRounding`] has the other readings.
//! 4. **The current level** of figure 1 is the receiver's last decision, not the level of the
//!    measured wave. The two differ for a round trip, while waves of the old level still arrive.
//!    With the wave's level, each wave would undo the decision before it, and two levels would
//!    alternate ([`TcpRealConfig::has_level_of_wave`]).
//! 5. **One wave is collected at a time.** While the last segment of a wave is missing, arrivals of
//!    the next wave check the timer. The arrival of the wave after that ends the old wave, whatever
//!    the timer: after an outage the rate is so low that the timer would run for minutes. The next
//!    collected wave is the first that begins after that, because the first arrival of an earlier
//!    one was not recorded.
//! 6. **The current wave grows with the window**, so waves begin and end with the bursts of the
//!    acknowledgement clock. A wave across two bursts includes the idle time between them in its
//!    rate. A wave does not shrink with the window. Section 1 describes the protocol that waves
//!    come from, with a wave "fixed during each RTT": [`TcpRealConfig::has_fixed_waves`]. The
//!    opening then ends at the first wave across two bursts, on the network of table 1 at level 2.
//! 7. **The threshold falls when the timer expires**, before it is applied to the rate of that
//!    wave.
//! 8. A wave without a rate before it keeps the level. A wave of zero duration has no rate.
//! 9. **Loss recovery** is that of the transport. After a timeout it retransmits from the first
//!    missing packet on, as Reno does, as far as the window allows. The window is the whole one if
//!    the bit is set. "The sender retransmits the packet" (section 2.2) could also mean that packet
//!    alone, while the rest of the window counts as outstanding: [`TcpRealConfig::timeout_repair`].
//!    Then each further hole waits for its own timer (measured beside table 1). This applies only
//!    to timeouts that keep the window. After a reduction to two segments, outstanding data would
//!    fill the window, and the timeout is one of "Slow Start". The window is not halved on entry,
//!    so fast recovery adds duplicate acknowledgements to the whole window.
//! 10. **A timeout** that reduces the window begins a new wave of two segments. The next
//!     acknowledgement restores the receiver's level at once, because "the identical option is
//!     repeated in every ACK". So the window recovers from a timeout without growth. The paper has
//!     two rules for when a timeout does so: always (section 2.1, footnote 3), and only without the
//!     bit (section 2.2): [`TcpRealConfig::timeout_reduction`].
//! 11. **A pause ends a wave.** The last segment before the source is empty, or before the peer's
//!     window closes, is the last of its wave, whatever length was planned. If the wave continued
//!     after the pause, the receiver would take the pause for congestion, and the next wave for
//!     infinite speed. A peer's window that is smaller than the controller's advances with every
//!     acknowledgement, and does not end a wave.
//! 12. **A new path** restarts both halves. The sender advances its wave numbers by 16,384, which
//!     no loss does, and the receiver discards its measurements.
//! 13. **The rate of a wave that the timer ended** counts as any other: the next wave is compared
//!     with it ([`TcpRealConfig::compares_with_timeouts`]). The next wave is then many times as
//!     fast, and figure 1 gives the highest level. So every outage ends in a whole window at once,
//!     and the queue must hold it (`experiments/tcp_real`). Without this rule levels only fall.
//!
//! # What the controller does not do
//! * **Flows do not converge.** Levels change by factors in both directions, which keeps the ratio
//!   of two windows (Chiu and Jain, 1989). If a queue keeps the bottleneck busy they do not change
//!   at all. So flows keep the shares with which they began. Of two equal flows that start within a
//!   second, one may have twice the rate of the other for good. A late flow, a large initial window
//!   or a longer path can make this six times (`lab/sim/tests/tcp_real.rs`, and `sharing.rs`
//!   there from any start).
//! * **Noise moves the level.** The two cases on one side of the threshold do not cancel. With
//!   small fluctuations x of the logarithm of the rate, a wave changes the logarithm of the level
//!   by +(0.618 − 0.382)/2 · E|x| above the threshold, and by −(0.618 − 0.5)/2 · E|x| below it.
//! * **Drops at a full queue look like speed.** The remaining segments of a wave take less time,
//!   and the wave counts in full.
//! * **Short waves look fast.** Between n segments lie n − 1 intervals. So n segments over the time
//!   from the first to the last arrival are n / (n − 1) times the rate of the path: 2 for a wave of
//!   two, and 24/23 for one of 24, a ratio of 1.92. Above the threshold, a wave of two after one of
//!   24 multiplies the level by 0.382 + 0.618 · 1.92 = 1.57. The next wave of 24 multiplies it by
//!   0.618 + 0.382 / 1.92 = 0.82 only. The paper defines the rate so, as "ratio of the wave size to
//!   wave receiving time". It affects sources that pause often, and the first waves of a
//!   connection.

use comity_units::DataSize;

use crate::TimeoutRepair;

/// The configuration of [`TcpReal`](super::TcpReal) and [`WaveMeter`](super::WaveMeter).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpRealConfig {
    /// The payload of a full segment.
    pub mss: DataSize,
    /// The window before the receiver's first report, rounded down to whole levels, at least one.
    pub initial_window: DataSize,
    /// An upper bound on the window from which `threshold_share` is computed.
    pub initial_ssthresh: DataSize,
    /// The maximum window.
    pub max_window: DataSize,
    /// The highest level: 24 in the paper.
    pub max_level: u16,
    /// How a connection begins.
    pub opening: Opening,
    /// Which weights apply above the threshold.
    pub weights: Weights,
    /// The first threshold as a share of the highest level, or of the level of `initial_ssthresh`
    /// if that is lower.
    pub threshold_share: f64,
    /// How fractions of a level are rounded.
    pub rounding: LevelRounding,
    /// Whether the next wave is compared with the rate of a wave that the wave-decision timer
    /// ended.
    pub compares_with_timeouts: bool,
    /// Whether the current level of figure 1 is that of the measured wave, not the last decision.
    pub has_level_of_wave: bool,
    /// Whether a wave keeps the length of the window at its beginning, and does not grow with it.
    pub has_fixed_waves: bool,
    /// Which timeouts reduce the window to two segments.
    pub timeout_reduction: TimeoutReduction,
    /// What a byte-sequence transport retransmits after a timeout that keeps the window. After a
    /// reduction it always retransmits from the first loss on.
    pub timeout_repair: TimeoutRepair,
}

impl TcpRealConfig {
    /// The paper's 24 levels, beginning with the lowest.
    pub const fn new(mss: DataSize) -> Self {
        Self {
            mss,
            initial_window: DataSize::new(mss.get().saturating_mul(2)),
            initial_ssthresh: DataSize::MAX,
            max_window: DataSize::MAX,
            max_level: 24,
            opening: Opening::SlowStart,
            weights: Weights::Figure,
            threshold_share: 0.5,
            rounding: LevelRounding::Kept,
            compares_with_timeouts: true,
            has_level_of_wave: false,
            has_fixed_waves: false,
            timeout_reduction: TimeoutReduction::WithoutDuplicates,
            timeout_repair: TimeoutRepair::GoBackN,
        }
    }

    /// The level whose window is `window`, rounded down, from 1 to [`TcpRealConfig::max_level`].
    pub(super) fn level_of(&self, window: DataSize) -> u16 {
        let levels = window.get() / self.mss.get().max(1).saturating_mul(2);
        u16::try_from(levels)
            .unwrap_or(u16::MAX)
            .clamp(1, self.max_level.max(1))
    }

    /// The highest level whose window fits into the maximum.
    pub(super) fn highest(&self) -> u16 {
        self.level_of(self.max_window)
    }

    /// The window of a level: two segments per level, up to the maximum.
    pub(super) fn window_of(&self, level: u16) -> DataSize {
        let segments = 2 * u64::from(level);
        DataSize::new(self.mss.get().saturating_mul(segments)).min(self.max_window)
    }

    /// The threshold before the first wave-decision timeout, in levels.
    pub(super) fn first_threshold(&self) -> f64 {
        let highest = self.highest().min(self.level_of(self.initial_ssthresh));
        f64::from(highest) * self.threshold_share
    }
}

/// How a connection finds its first level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// The level doubles with every wave up to the first threshold.
    SlowStart,
    /// The sender's Slow Start, up to the window of the first threshold or the first loss. The
    /// level is that of each wave until one is not larger than the wave before it.
    Sender,
    /// Only figure 1; the first wave keeps its level.
    Figure,
    /// Only figure 1; the rate before the first wave is zero, so the infinite ratio gives the
    /// highest level.
    Jump,
}

/// Which weights apply above the threshold, and which below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// Those of figure 1: above the threshold a level falls less and rises more.
    Figure,
    /// Those of the text of section 2.2, the figure's exchanged: above it a level falls more and
    /// rises less.
    Text,
}

/// Which timeouts reduce the window to two segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutReduction {
    /// Timeouts without a duplicate acknowledgement since the last advance or timeout: "only if the
    /// bit is not set" (section 2.2).
    WithoutDuplicates,
    /// All timeouts: "upon a timeout TCP-Real always backs off as Tahoe and Reno" (section 2.1 and
    /// footnote 3).
    Always,
}

/// How fractions of a level are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelRounding {
    /// The receiver keeps the fraction and reports the nearest level.
    Kept,
    /// The nearest level is kept.
    Nearest,
    /// The next higher level is kept.
    Up,
    /// The fraction is cut off, as an assignment to an integer does in C.
    Down,
}
