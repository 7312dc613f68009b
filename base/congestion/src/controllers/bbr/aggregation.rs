//! Acknowledgement aggregation: how much more is acknowledged at once than the path delivers.

use comity_units::Time;

/// The largest excess of acknowledged data over the bandwidth.
///
/// ```text
/// excess = acknowledged since the epoch began − bandwidth · time since then
/// ```
///
/// The maximum is over 5 to 10 rounds. Amounts are bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    epoch: Epoch,
    /// The maxima of the current and of the last window.
    current: f64,
    before: f64,
    rounds: u32,
}

/// A period in which acknowledgements arrive faster than the bandwidth. It ends when the excess is
/// zero.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Epoch {
    began: Time,
    acked: f64,
}

impl Epoch {
    /// Begins a new epoch after the flow was idle.
    pub(super) const fn restart(&mut self, now: Time) {
        self.began = now;
        self.acked = 0.0;
    }

    /// Takes acknowledged bytes. Returns the excess.
    pub(super) fn on_ack(&mut self, now: Time, acked: f64, bandwidth: f64) -> f64 {
        let mut expected = bandwidth * now.saturating_since(self.began).as_secs_f64();
        if self.acked <= expected {
            self.restart(now);
            expected = 0.0;
        }
        self.acked += acked;
        self.acked - expected
    }
}

/// The length of a window of the maximum, in rounds.
const WINDOW_ROUNDS: u32 = 5;

impl Aggregation {
    /// Begins a new epoch after the flow was idle.
    pub(super) const fn restart(&mut self, now: Time) {
        self.epoch.restart(now);
    }

    /// Takes acknowledged bytes. The excess counts up to `most`, the congestion window.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        acked: f64,
        bandwidth: f64,
        most: f64,
        round_began: bool,
    ) {
        if round_began {
            self.rounds += 1;
            if self.rounds >= WINDOW_ROUNDS {
                self.rounds = 0;
                self.before = core::mem::take(&mut self.current);
            }
        }
        let excess = self.epoch.on_ack(now, acked, bandwidth);
        self.current = self.current.max(excess.min(most));
    }

    /// The largest excess in whole segments: acknowledgements count whole segments, and the
    /// expected amount is rounded down to whole segments.
    pub(super) fn segments(&self, mss: f64) -> f64 {
        libm::ceil(self.excess() / mss)
    }

    pub(super) const fn excess(&self) -> f64 {
        self.current.max(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path that carries a segment of 1,000 bytes in a millisecond. The bandwidth accounts for
    /// two segments within 2.5 ms, and five more begin an epoch. Three more come 1.5 ms later, when
    /// the bandwidth accounts for one and a half.
    #[test]
    fn an_excess_is_rounded_up_to_whole_segments() {
        let mut aggregation = Aggregation::default();
        aggregation.on_ack(Time::from_millis(10), 2_000.0, 1e6, 1e9, false);
        assert_eq!(aggregation.segments(1_000.0), 2.0);
        aggregation.on_ack(Time::from_micros(12_500), 5_000.0, 1e6, 1e9, false);
        assert_eq!(aggregation.segments(1_000.0), 5.0);
        aggregation.on_ack(Time::from_micros(14_000), 3_000.0, 1e6, 1e9, false);
        // 8 - 1.5, and for Linux 8 - 1.
        assert_eq!(aggregation.segments(1_000.0), 7.0);
    }

    /// A path that carries 1,000 bytes in a millisecond, with bursts of acknowledgements for 4,000
    /// bytes every 4 ms. The first burst of an epoch is an excess. The bandwidth accounts for the
    /// others.
    #[test]
    fn lumps_are_an_excess() {
        let mut aggregation = Aggregation::default();
        for lump in 1..=20_u64 {
            let now = Time::from_millis(4 * lump);
            aggregation.on_ack(now, 4_000.0, 1e6, 1e9, false);
            assert!((aggregation.excess() - 4_000.0).abs() < 1e-6, "{lump}");
        }
        // Two bursts at once: 8,000 bytes when the epoch is as old as the last burst.
        aggregation.on_ack(Time::from_millis(84), 8_000.0, 1e6, 1e9, false);
        assert!((aggregation.excess() - 8_000.0).abs() < 1e-6);
        // The congestion window bounds the excess, and it expires after ten rounds.
        for round in 0..10_u64 {
            let now = Time::from_millis(100 + 100 * round);
            aggregation.on_ack(now, 5_000.0, 1e6, 3_000.0, true);
        }
        assert!((aggregation.excess() - 3_000.0).abs() < 1e-6);
    }
}
