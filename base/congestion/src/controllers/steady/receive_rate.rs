//! The rate at which data arrives at the receiver.

use comity_units::{DataSize, Rate, Span, Time, TwoWindows};

/// The rate of acknowledged data, over the last round trip and its maximum over the last seconds.
///
/// A pause longer than [`MEMORY`] with nothing in flight is left out, because the measured rate
/// would be nearly zero. Shorter pauses count; the maximum still covers the time before them.
///
/// Source: `X_recv` and `X_recv_set` of RFC 5348, sections 4.3 and 6.2, measured at the sender.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceiveRate {
    amount: u64,
    began_at: Option<Time>,
    latest: Rate,
    /// The maxima of the current and of the previous window of [`MEMORY`].
    most: TwoWindows<Rate>,
}

impl ReceiveRate {
    /// Takes acknowledged bytes. One measurement lasts a round trip.
    pub(super) fn on_acked(&mut self, now: Time, acked: DataSize, rtt: Span) {
        let Some(began_at) = self.began_at else {
            self.began_at = Some(now);
            return;
        };
        self.amount = self.amount.saturating_add(acked.get());
        let elapsed = now.saturating_since(began_at);
        if elapsed < rtt.max(MIN_MEASUREMENT) {
            return;
        }
        self.latest = Rate::of(DataSize::new(self.amount), elapsed);
        (self.amount, self.began_at) = (0, Some(now));
        self.most.raise(now, MEMORY, self.latest);
    }

    /// Whether the current measurement is so old that it contains a pause.
    pub(super) fn is_old(&self, now: Time) -> bool {
        self.began_at
            .is_some_and(|began_at| now.saturating_since(began_at) > MEMORY)
    }

    /// Starts a new measurement after a pause.
    pub(super) fn restart(&mut self, now: Time) {
        (self.amount, self.began_at) = (0, None);
        self.most.turn(now, MEMORY);
    }

    /// The rate over the last measured round trip.
    pub(super) const fn latest(&self) -> Rate {
        self.latest
    }

    /// The maximum rate over a round trip in the last seconds.
    pub(super) fn most(&self) -> Rate {
        self.most.most()
    }
}

/// The length of a window: one or two groups of pictures, so the maximum keeps the rate of a key
/// frame until the next one.
const MEMORY: Span = Span::from_secs(2);

/// The shortest measurement, because acknowledgements arrive in bursts.
const MIN_MEASUREMENT: Span = Span::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_of_a_few_seconds_is_kept_and_then_expires() {
        let mut rate = ReceiveRate::default();
        let rtt = Span::from_millis(100);
        // 12.5 kB in each 100 ms, except for 50 kB in the one at 3 s.
        for step in 0..100_u64 {
            let acked = if step == 30 { 50_000 } else { 12_500 };
            rate.on_acked(Time::from_millis(step * 100), DataSize::new(acked), rtt);
            let most = rate.most().as_bps();
            match step {
                2..=29 | 75.. => assert_eq!(most, 1_000_000, "step {step}"),
                30..=50 => assert_eq!(most, 4_000_000, "step {step}"),
                _ => {}
            }
        }
        assert_eq!(rate.latest(), Rate::from_mbps(1));
    }

    #[test]
    fn a_pause_is_not_a_slow_path() {
        let rtt = Span::from_millis(100);
        for (pause, is_old) in [(1_900, false), (10_000, true)] {
            let mut rate = ReceiveRate::default();
            let acked = DataSize::new(12_500);
            for step in 0..=20 {
                rate.on_acked(Time::from_millis(step * 100), acked, rtt);
            }
            let again = 2_000 + pause;
            assert_eq!(rate.is_old(Time::from_millis(again)), is_old);
            if is_old {
                rate.restart(Time::from_millis(again));
                assert_eq!(rate.most(), Rate::ZERO, "too long ago");
            }
            for step in 1..=3 {
                rate.on_acked(Time::from_millis(again + step * 100), acked, rtt);
                let is_slow = rate.latest() < Rate::from_kbps(100);
                assert_eq!(is_slow, !is_old && step == 1, "{pause}, {step}");
            }
            assert_eq!(rate.latest(), Rate::from_mbps(1));
            assert_eq!(rate.most(), Rate::from_mbps(1));
        }
    }
}
