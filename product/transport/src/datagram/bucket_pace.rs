//! The token bucket of a controller, and the rate at which bursts leave.

use comity_congestion::{Pacing, TokenBucket};
use comity_units::{DataSize, Rate, Span, Time};

use crate::timeline::Tokens;

/// How long a pace is valid while the queue does not change.
pub(super) const PACE_INTERVAL: Span = Span::from_millis(2);

/// The factor by which a burst is faster than needed, so that it ends before the last moment.
const MARGIN: f64 = 1.1;

/// The multiple of the peak rate for a burst without time for a repair. At three times the peak,
/// the speed causes more losses than it saves sections.
const ONE_TRY_GAIN: f64 = 2.0;

/// The state of [`Pacing::Bucket`]: its tokens, and the pace of the present queue.
///
/// ```text
/// pace = min( gain · peak, max( rate, 1.1 · least rate at which all that waits is in time ) )
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BucketPace {
    bucket: TokenBucket,
    pace: Rate,
    gain: PacingGain,
    /// When the pace was computed; `None` if the queue has changed since.
    paced_at: Option<Time>,
}

/// The multiple of the controller's peak rate that a burst may reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PacingGain {
    /// One.
    #[default]
    Usual,
    /// [`ONE_TRY_GAIN`]: the next section has no time for a repair.
    OneTry,
}

impl PacingGain {
    pub(super) fn of(self, peak: Rate) -> Rate {
        match self {
            Self::Usual => peak,
            Self::OneTry => peak.mul_f64(ONE_TRY_GAIN),
        }
    }
}

impl BucketPace {
    /// The queue has changed, so the pace is out of date.
    pub(super) const fn on_queue_changed(&mut self) {
        self.paced_at = None;
    }

    /// Fills the bucket up to now.
    pub(super) fn fill(&mut self, now: Time, pacing: Pacing) {
        if let Pacing::Bucket { rate, depth, .. } = pacing {
            self.bucket.fill(now, rate, depth);
        }
    }

    /// Whether the pace is older than [`PACE_INTERVAL`], or for another queue.
    pub(super) fn is_stale(&self, now: Time) -> bool {
        let is_fresh = |at: Time| now.saturating_since(at) < PACE_INTERVAL;
        !self.paced_at.is_some_and(is_fresh)
    }

    /// Sets the pace from the rate that the queue needs.
    pub(super) fn set_pace(
        &mut self,
        now: Time,
        needed: Rate,
        gain: PacingGain,
        rate: Rate,
        peak: Rate,
    ) {
        self.gain = gain;
        self.pace = needed.mul_f64(MARGIN).max(rate).min(gain.of(peak));
        self.paced_at = Some(now);
    }

    /// The pace under the controller's present rate and peak, which may have changed since.
    pub(super) fn pace(&self, rate: Rate, peak: Rate) -> Rate {
        self.pace.max(rate).min(self.gain.of(peak))
    }

    /// A packet of `size` bytes leaves.
    pub(super) fn charge(&mut self, size: DataSize) {
        self.bucket.take(size);
    }

    /// The tokens in a bucket of this depth.
    pub(super) fn tokens(&self, depth: DataSize) -> Tokens {
        Tokens {
            level: self.bucket.level(),
            depth: depth.get(),
        }
    }

    /// When the bucket will contain `missing` more bytes at this rate.
    pub(super) fn filled_by(&self, rate: Rate, missing: DataSize) -> Time {
        self.bucket.filled_at() + rate.transmission_time(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_mbps(4);
    const PEAK: Rate = Rate::from_mbps(10);

    #[test]
    fn the_pace_is_the_needed_rate_within_the_controllers_rates() {
        let mut pace = BucketPace::default();
        let now = Time::from_secs(1);
        for (needed, gain, expected) in [
            (Rate::from_mbps(1), PacingGain::Usual, RATE),
            (
                Rate::from_mbps(5),
                PacingGain::Usual,
                Rate::from_kbps(5_500),
            ),
            (Rate::from_mbps(50), PacingGain::Usual, PEAK),
            (Rate::from_mbps(50), PacingGain::OneTry, Rate::from_mbps(20)),
        ] {
            pace.set_pace(now, needed, gain, RATE, PEAK);
            assert_eq!(pace.pace(RATE, PEAK), expected, "{needed} {gain:?}");
        }
        // The controller has slowed down since: its new peak applies.
        assert_eq!(
            pace.pace(Rate::ZERO, Rate::from_mbps(1)),
            Rate::from_mbps(2)
        );
    }

    #[test]
    fn a_pace_is_stale_after_its_interval_or_when_the_queue_has_changed() {
        let mut pace = BucketPace::default();
        let now = Time::from_secs(1);
        assert!(pace.is_stale(now));
        pace.set_pace(now, RATE, PacingGain::Usual, RATE, PEAK);
        assert!(!pace.is_stale(now + Span::from_micros(1_999)));
        assert!(pace.is_stale(now + PACE_INTERVAL));
        pace.on_queue_changed();
        assert!(pace.is_stale(now));
    }
}
