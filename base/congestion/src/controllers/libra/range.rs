//! The minimum and maximum round trip: RTT_min and RTT_max of equation 2.

use comity_units::{Span, Time, TwoWindows};

/// The extremes of the round trip within one window of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extremes {
    least: Span,
    most: Span,
}

/// The minimum and maximum round trip of the last one to two windows of time.
///
/// The paper keeps them for the life of the connection. After a route change one of the two is then
/// wrong for good. On a longer path β stays near one, and the window grows e^Y times too slowly. On
/// a shorter path β stays near zero, and nothing slows the growth as the queue fills. Here both
/// expire after one to two lengths of `memory`. The memory must exceed the time between two losses:
/// if it does not reach back to an empty queue, a standing queue counts as part of the path.
#[derive(Clone, Debug)]
pub(super) struct RttRange {
    memory: Span,
    windows: TwoWindows<Option<Extremes>>,
}

impl RttRange {
    pub(super) fn new(memory: Span) -> Self {
        Self {
            memory,
            windows: TwoWindows::default(),
        }
    }

    pub(super) fn on_sample(&mut self, now: Time, rtt: Span) {
        self.windows.turn(now, self.memory);
        let current = self.windows.current.map_or(
            Extremes {
                least: rtt,
                most: rtt,
            },
            |seen| Extremes {
                least: seen.least.min(rtt),
                most: seen.most.max(rtt),
            },
        );
        self.windows.current = Some(current);
    }

    /// β: the used share of the buffer, from 0 to 1.
    ///
    /// ```text
    /// β = (RTT − RTT_min) / (RTT_max − RTT_min)      0 where RTT_max = RTT_min      (2)
    /// ```
    pub(super) fn share(&self, rtt: Span) -> f64 {
        let TwoWindows {
            current, before, ..
        } = self.windows;
        let both = [current, before];
        let seen = || both.iter().flatten();
        let least = seen().map(|of| of.least).min().unwrap_or(rtt);
        let most = seen().map(|of| of.most).max().unwrap_or(rtt);
        let range = most.saturating_sub(least);
        if range.is_zero() {
            return 0.0;
        }
        (rtt.saturating_sub(least).as_secs_f64() / range.as_secs_f64()).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: Span = Span::from_secs(60);

    fn milliseconds(of: u64) -> Span {
        Span::from_millis(of)
    }

    #[test]
    fn the_share_goes_from_nothing_to_all() {
        let mut range = RttRange::new(MEMORY);
        assert_eq!(range.share(milliseconds(50)), 0.0, "no sample");
        range.on_sample(Time::from_secs(1), milliseconds(50));
        assert_eq!(range.share(milliseconds(50)), 0.0, "0/0");
        range.on_sample(Time::from_secs(2), milliseconds(130));
        assert_eq!(range.share(milliseconds(50)), 0.0);
        assert_eq!(range.share(milliseconds(70)), 0.25);
        assert_eq!(range.share(milliseconds(130)), 1.0);
    }

    /// From 40..60 ms to a path of 140..160 ms: the old minimum keeps every share near one until it
    /// expires.
    #[test]
    fn a_longer_and_a_shorter_route_are_learnt() {
        let sawtooth = |base: u64, at: u64| milliseconds(base + at % 21);
        for (first, second) in [(40, 140), (140, 40)] {
            let mut range = RttRange::new(MEMORY);
            for second in 0..100 {
                range.on_sample(Time::from_secs(second), sawtooth(first, second));
            }
            for at in 100..221 {
                range.on_sample(Time::from_secs(at), sawtooth(second, at));
                if at == 130 {
                    let share = range.share(milliseconds(second + 10));
                    assert!(!(0.2..0.8).contains(&share), "{share}");
                }
            }
            let share = range.share(milliseconds(second + 10));
            assert!((share - 0.5).abs() < 0.01, "{share}");
        }
    }

    #[test]
    fn without_a_limit_nothing_is_forgotten() {
        let mut range = RttRange::new(Span::MAX);
        range.on_sample(Time::ZERO, milliseconds(10));
        range.on_sample(Time::from_secs(1), milliseconds(110));
        range.on_sample(Time::from_secs(1_000_000), milliseconds(60));
        assert_eq!(range.share(milliseconds(60)), 0.5);
    }
}
