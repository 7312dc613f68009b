//! The fraction of the bytes that was lost.

use comity_units::{DataSize, Span, Time};

/// The lost fraction of the settled (acknowledged or lost) bytes, by period.
///
/// ```text
/// period : ends with 200,000 settled bytes, or with `shortest` after half a second
/// mean   = mean + ( last − mean ) / 4
/// surely over a bound : lost / settled > bound + 3 · sqrt( bound · (1 − bound) · mss / settled )
/// ```
#[derive(Clone, Copy, Debug)]
pub(super) struct LossRatio {
    /// The minimum settled bytes of a period.
    shortest: u64,
    /// Settled and lost bytes before the period, and when it began.
    before: (u64, u64),
    began_at: Time,
    /// Settled and lost bytes of the period so far.
    settled: u64,
    lost: u64,
    last: f64,
    mean: f64,
}

impl LossRatio {
    pub(super) const fn new(shortest: u64) -> Self {
        Self {
            shortest,
            before: (0, 0),
            began_at: Time::ZERO,
            settled: 0,
            lost: 0,
            last: 0.0,
            mean: 0.0,
        }
    }

    /// Takes the bytes settled and lost since the beginning.
    pub(super) fn on_progress(&mut self, now: Time, settled: u64, lost: u64) {
        self.settled = settled.saturating_sub(self.before.0);
        self.lost = lost.saturating_sub(self.before.1);
        let has_lasted = now.saturating_since(self.began_at) >= SHORT_TIME;
        if self.settled >= PERIOD || self.settled >= self.shortest && has_lasted {
            // Losses count at their verdict, which can come a period later than their bytes.
            self.last = (self.lost as f64 / self.settled as f64).min(1.0);
            self.mean += (self.last - self.mean) / 4.0;
            (self.before, self.began_at) = ((settled, lost), now);
            (self.settled, self.lost) = (0, 0);
        }
    }

    /// The ratio of the last period.
    pub(super) const fn last(&self) -> f64 {
        self.last
    }

    /// The exponentially weighted mean over periods.
    pub(super) const fn mean(&self) -> f64 {
        self.mean
    }

    /// The ratio of this period so far; zero while nothing has settled.
    pub(super) fn so_far(&self) -> f64 {
        self.lost as f64 / self.settled.max(1) as f64
    }

    /// Whether more packets of `mss` bytes were lost in this period so far than random losses with
    /// the probability `bound` would explain: by three standard errors.
    pub(super) fn is_surely_over(&self, bound: f64, mss: DataSize) -> bool {
        let variance = bound * (1.0 - bound) * mss.get() as f64 / self.settled.max(1) as f64;
        self.so_far() > bound + 3.0 * libm::sqrt(variance)
    }
}

/// The longest period: about 150 full packets, which give a ratio of 0.05 to within a third.
pub(super) const PERIOD: u64 = 200_000;

/// The minimum bytes of a period: 20 full packets, which show a ratio of a sixth.
pub(super) const SHORT_PERIOD: u64 = 28_000;

/// The minimum time of a period with fewer bytes than [`PERIOD`].
const SHORT_TIME: Span = Span::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: DataSize = DataSize::new(1_000);

    #[test]
    fn a_period_ends_with_its_bytes_or_after_half_a_second() {
        for (shortest, settled, millis, ends) in [
            (PERIOD, 199_999, 9_000, false),
            (PERIOD, 200_000, 1, true),
            (SHORT_PERIOD, 28_000, 499, false),
            (SHORT_PERIOD, 27_999, 9_000, false),
            (SHORT_PERIOD, 28_000, 500, true),
            (SHORT_PERIOD, 200_000, 1, true),
        ] {
            let mut ratio = LossRatio::new(shortest);
            ratio.on_progress(Time::from_millis(millis), settled, settled / 4);
            let case = (shortest, settled, millis);
            match ends {
                true => assert!((ratio.last() - 0.25).abs() < 1e-4, "{case:?}"),
                false => assert_eq!(ratio.last(), 0.0, "{case:?}"),
            }
            let open = if ends { 0.0 } else { 0.25 };
            assert!((ratio.so_far() - open).abs() < 1e-4, "{case:?}");
        }
    }

    #[test]
    fn the_mean_moves_by_a_quarter_and_each_period_counts_for_itself() {
        let mut ratio = LossRatio::new(PERIOD);
        ratio.on_progress(Time::ZERO, 200_000, 100_000);
        assert_eq!((ratio.last(), ratio.mean()), (0.5, 0.125));
        ratio.on_progress(Time::ZERO, 400_000, 100_000);
        assert_eq!((ratio.last(), ratio.mean()), (0.0, 0.093_75));
    }

    #[test]
    fn losses_of_an_earlier_period_count_as_all_of_this_one_at_most() {
        let mut ratio = LossRatio::new(SHORT_PERIOD);
        ratio.on_progress(Time::ZERO, 200_000, 0);
        ratio.on_progress(Time::from_millis(600), 228_000, 200_000);
        assert_eq!((ratio.last(), ratio.mean()), (1.0, 0.25));
    }

    #[test]
    fn few_packets_show_a_high_ratio_and_not_a_slight_one() {
        // Of ten packets, 0.3 and three standard errors of 0.145: 7.3 packets.
        for (lost, is_over) in [(7_000, false), (8_000, true)] {
            let mut ratio = LossRatio::new(PERIOD);
            ratio.on_progress(Time::ZERO, 10_000, lost);
            assert_eq!(ratio.is_surely_over(0.3, MSS), is_over, "{lost}");
        }
        assert!(!LossRatio::new(PERIOD).is_surely_over(0.3, MSS), "nothing");
    }
}
