//! How fast data has arrived of late.

use comity_units::{Bytes, Rate, Span, Time, TwoWindows};

/// The rate at which data was acknowledged: over the last round trip, and the most of the last
/// seconds.
///
/// A pause in which nothing was under way is left out, from [`MEMORY`] on: divided by it what
/// arrived would be next to nothing. Shorter ones count, and what came before them is still
/// remembered.
///
/// Source: `X_recv` and the set of its last values of RFC 5348, sections 4.3 and 6.2; measured at
/// the sender.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivered {
    amount: u64,
    began_at: Option<Time>,
    latest: Rate,
    /// The most of the current and of the last window of [`MEMORY`].
    most: TwoWindows<Rate>,
}

impl Delivered {
    /// So much was acknowledged. A measurement takes a round trip.
    pub(super) fn on_acked(&mut self, now: Time, acked: Bytes, rtt: Span) {
        let Some(began_at) = self.began_at else {
            self.began_at = Some(now);
            return;
        };
        self.amount = self.amount.saturating_add(acked.get());
        let elapsed = now.saturating_since(began_at);
        if elapsed < rtt.max(LEAST) {
            return;
        }
        self.latest = Rate::of(Bytes::new(self.amount), elapsed);
        (self.amount, self.began_at) = (0, Some(now));
        self.most.raise(now, MEMORY, self.latest);
    }

    /// Whether what is being measured began so long ago that a pause is in it.
    pub(super) fn is_old(&self, now: Time) -> bool {
        self.began_at
            .is_some_and(|began_at| now.saturating_since(began_at) > MEMORY)
    }

    /// Sending begins again after a pause, which is no slowness of the path.
    pub(super) fn restart(&mut self, now: Time) {
        (self.amount, self.began_at) = (0, None);
        self.most.turn(now, MEMORY);
    }

    /// Over the last whole round trip that was measured.
    pub(super) const fn latest(&self) -> Rate {
        self.latest
    }

    /// The most of a round trip in the last seconds.
    pub(super) fn most(&self) -> Rate {
        self.most.most()
    }
}

/// A window: a group of pictures or two, so that the largest picture stays in memory until the
/// next.
const MEMORY: Span = Span::from_secs(2);

/// Shorter than this no rate is measured: acknowledgements come in lumps.
const LEAST: Span = Span::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_of_a_few_seconds_is_remembered_and_then_forgotten() {
        let mut delivered = Delivered::default();
        let rtt = Span::from_millis(100);
        // 12.5 kB each 100 ms, one round trip of 50 kB at 3 s.
        for step in 0..100_u64 {
            let acked = if step == 30 { 50_000 } else { 12_500 };
            delivered.on_acked(Time::from_millis(step * 100), Bytes::new(acked), rtt);
            let most = delivered.most().as_bps();
            match step {
                2..=29 | 75.. => assert_eq!(most, 1_000_000, "step {step}"),
                30..=50 => assert_eq!(most, 4_000_000, "step {step}"),
                _ => {}
            }
        }
        assert_eq!(delivered.latest(), Rate::from_mbps(1));
    }

    #[test]
    fn a_pause_is_no_slow_delivery() {
        let rtt = Span::from_millis(100);
        for (pause, is_old) in [(1_900, false), (10_000, true)] {
            let mut delivered = Delivered::default();
            let acked = Bytes::new(12_500);
            for step in 0..=20 {
                delivered.on_acked(Time::from_millis(step * 100), acked, rtt);
            }
            let again = 2_000 + pause;
            assert_eq!(delivered.is_old(Time::from_millis(again)), is_old);
            if is_old {
                delivered.restart(Time::from_millis(again));
                assert_eq!(delivered.most(), Rate::ZERO, "too long ago");
            }
            for step in 1..=3 {
                delivered.on_acked(Time::from_millis(again + step * 100), acked, rtt);
                let is_slow = delivered.latest() < Rate::from_kbps(100);
                assert_eq!(is_slow, !is_old && step == 1, "{pause}, {step}");
            }
            assert_eq!(delivered.latest(), Rate::from_mbps(1));
            assert_eq!(delivered.most(), Rate::from_mbps(1));
        }
    }
}
