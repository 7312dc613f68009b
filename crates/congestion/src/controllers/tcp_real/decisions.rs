//! What the paper on TCP-Real leaves open, and the settings that choose.
//!
//! # Decided where the paper is silent
//! 1. **How a level rises while the path keeps one rate.** A bottleneck delivers every wave at the
//!    same rate, the ratio is 1, and figure 1 keeps the level whatever it is: by figure 1 alone a
//!    connection that begins with two segments stays there on a clean path, while the paper's
//!    tables show one that fills it. The abstract has Slow Start for where congestion avoidance
//!    fails, and TCP-Real "extends TCP-Reno". So a connection begins with Slow Start, run by the
//!    receiver: the level doubles with every wave until it reaches the threshold or the
//!    wave-decision timer expires ([`Opening::SlowStart`]). From then on figure 1 is alone.
//!    [`Opening::Figure`] and [`Opening::Jump`] are the two readings to the letter.
//! 2. **The threshold before the first wave-decision timeout** is half of the highest level, as it
//!    would be after a timeout at that level ([`TcpRealConfig::threshold_share`]).
//! 3. **Whole levels.** Figure 1 gives fractions, the option has room for whole levels. The
//!    receiver keeps the fraction and rounds what it reports; [`LevelRounding`] has the other
//!    readings.
//! 4. **The current level** of figure 1 is the receiver's last decision, not the level of the wave
//!    that was just measured: the two differ for a round trip, in which the waves of the old level
//!    are still arriving. Taking theirs undoes every decision by the next wave, so that two levels
//!    take turns ([`TcpRealConfig::has_level_of_wave`]).
//! 5. **One wave at a time is collected.** While the last segment of a wave is missing, segments of
//!    the next one are those with whose arrival the timer is looked at. When the wave after the
//!    next arrives, the old one is over as well, whatever the timer says: after an outage the rate
//!    is so low that the timer would hold for minutes. The next wave collected is the first that
//!    begins after that: of one that had begun before, the first arrival was not noted.
//! 6. **A wave that is being sent grows with the window**, so that waves begin and end where the
//!    bursts of the acknowledgement clock do; one that straddles two of them has the idle time
//!    between them in its rate. It does not shrink with the window. A wave "fixed during each RTT",
//!    as section 1 has it of the protocol that waves are from,
//!    is [`TcpRealConfig::has_fixed_waves`]: the opening then ends at the first wave that straddles
//!    two bursts, on the network of table 1 at level 2.
//! 7. **The threshold falls when the timer expires**, so before the rate of that wave is judged by
//!    it.
//! 8. A wave without a rate before it has nothing to be compared with and keeps the level; one that
//!    takes no time at all has no rate.
//! 9. **Loss recovery** is that of the transport, after a timeout as well: it sends again from the
//!    first packet that is missing on, as Reno does, and as far as the window allows, which with
//!    the bit set is all of it. "The sender retransmits the packet" (section 2.2) could mean that
//!    packet alone while the rest of the window counts as outstanding:
//!    [`TcpRealConfig::timeout_repair`]. Then each further hole waits for a timer of its own
//!    (measured beside table 1). It is so for timeouts that keep the window alone; where two
//!    segments are left of it, what is outstanding would fill it, and the timeout is one of "Slow
//!    Start". The window is not halved on entry, so what fast recovery adds to it for duplicate
//!    acknowledgements comes on top of the whole window.
//! 10. **A timeout** that reduces the window begins a new wave of two segments. The next
//!     acknowledgement brings the receiver's level back at once, for "the identical option is
//!     repeated in every ACK": this, and no growth, is how the window recovers from a timeout.
//!     Which timeouts do so the paper says twice: always (section 2.1, footnote 3), and only
//!     without the bit (section 2.2): [`TcpRealConfig::timeout_reduction`].
//! 11. **A pause ends a wave.** The last segment before the source has no more, or before the
//!     peer's window closes, is the last of its wave, however long that was meant to be: in a wave
//!     that goes on after a pause the receiver would take the pause for congestion, and what
//!     follows for infinite speed. A window of the peer that is only smaller than the controller's
//!     moves on with every acknowledgement, and ends nothing.
//! 12. **A new path** is a new beginning of both halves. The sender numbers its waves 16,384
//!     further on, which no loss does, and the receiver forgets what it measured.
//! 13. **The rate of a wave that the timer ended** counts as any other: the next is compared with
//!     it ([`TcpRealConfig::compares_with_timeouts`]). The next wave is then many times as fast, so
//!     that figure 1 gives the highest level: every outage ends in a whole window at once, and the
//!     queue has to hold it (`experiments/tcp_real`). Without it levels only fall.
//!
//! # What the controller does not do
//! * **It does not share.** Levels move by factors in both directions, and factors keep the ratio
//!   of two windows (Chiu and Jain, 1989), and where a queue keeps the bottleneck busy they do not
//!   move at all: flows keep whatever shares they began with. Of two that are alike and start
//!   within a second, one may have twice the other's for good; where one comes late, begins with a
//!   large window or has a longer way, up to six times (`crates/sim/tests/tcp_real.rs`, and
//!   `sharing.rs` there from any start).
//! * **Noise moves it.** The two cases of one side of the threshold do not cancel. With small
//!   fluctuations x of the logarithm of the rate, a wave changes the logarithm of the level by
//!   (0.618 − 0.382)/2 · E|x| above the threshold, up, and by (0.5 − 0.618)/2 · E|x| below it,
//!   down.
//! * **Drops at a full queue look like speed**: the segments that are left of a wave take less
//!   time, and the wave counts in full.
//! * **Short waves look fast.** Between n segments lie n − 1 intervals, so that n segments over the
//!   time from the first to the last are n / (n − 1) times the rate of the path: 2 for a wave of
//!   two, 24/23 for one of 24, which is 1.92 times less. A wave of two after one of 24 raises the
//!   level by 0.382 + 0.618 · 1.92 = 1.57 above the threshold, and the next of 24 lowers it by
//!   0.618 + 0.382 / 1.92 = 0.82 only. That is the paper's "ratio of the wave size to wave
//!   receiving time"; it matters to sources that pause often, and to the first waves of a
//!   connection.

use comity_units::Bytes;

use crate::TimeoutRepair;

/// Settings of both halves of TCP-Real.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpRealConfig {
    /// The payload of a full segment.
    pub mss: Bytes,
    /// The window before the receiver's first report; rounded down to whole levels, and one at
    /// least.
    pub initial_window: Bytes,
    /// Of what the first threshold is a share, where it is less than the highest level's window.
    pub initial_ssthresh: Bytes,
    /// The window never rises above this.
    pub max_window: Bytes,
    /// The highest level: 24 in the paper.
    pub max_level: u16,
    /// How a connection begins.
    pub opening: Opening,
    /// The first threshold as a share of the highest level, or of the initial threshold if that is
    /// less.
    pub threshold_share: f64,
    /// What becomes of fractions of a level.
    pub rounding: LevelRounding,
    /// Whether the rate of a wave that the wave-decision timer ended is the one that the next wave
    /// is compared with, as any other.
    pub compares_with_timeouts: bool,
    /// Whether the current level of figure 1 is that of the wave that was measured instead of the
    /// last decision.
    pub has_level_of_wave: bool,
    /// Whether a wave keeps the length that the window had when it began instead of growing with
    /// the window.
    pub has_fixed_waves: bool,
    /// Which timeouts reduce the window to two segments.
    pub timeout_reduction: TimeoutReduction,
    /// What a byte-sequence transport sends again after a timeout that keeps the window. One that
    /// reduces it goes back to the first loss in any case.
    pub timeout_repair: TimeoutRepair,
}

impl TcpRealConfig {
    /// 24 levels that begin with the lowest.
    pub const fn new(mss: Bytes) -> Self {
        Self {
            mss,
            initial_window: Bytes::new(mss.get().saturating_mul(2)),
            initial_ssthresh: Bytes::MAX,
            max_window: Bytes::MAX,
            max_level: 24,
            opening: Opening::SlowStart,
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
    pub(super) fn level_of(&self, window: Bytes) -> u16 {
        let levels = window.get() / self.mss.get().max(1).saturating_mul(2);
        u16::try_from(levels)
            .unwrap_or(u16::MAX)
            .clamp(1, self.max_level.max(1))
    }

    /// The highest level that the largest window has room for.
    pub(super) fn highest(&self) -> u16 {
        self.level_of(self.max_window)
    }

    /// The window of a level: two segments each, and no more than there may be.
    pub(super) fn window_of(&self, level: u16) -> Bytes {
        let segments = 2 * u64::from(level);
        Bytes::new(self.mss.get().saturating_mul(segments)).min(self.max_window)
    }

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
    /// Figure 1 alone, and a first wave keeps its level.
    Figure,
    /// Figure 1 alone, and the rate before the first wave was zero: an infinite ratio, and the
    /// highest level.
    Jump,
}

/// Which timeouts reduce the window to two segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutReduction {
    /// Those without a duplicate acknowledgement since the last advance or timeout: "only if the
    /// bit is not set" (section 2.2).
    WithoutDuplicates,
    /// All: "upon a timeout TCP-Real always backs off as Tahoe and Reno" (section 2.1 and footnote
    /// 3).
    Always,
}

/// What becomes of fractions of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelRounding {
    /// The receiver keeps them and reports the nearest level.
    Kept,
    /// The nearest level is kept.
    Nearest,
    /// The next higher level is kept.
    Up,
    /// They are cut off, as an assignment to an integer does in C.
    Down,
}
