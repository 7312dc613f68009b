//! Computes when the bytes of a stream with a clock are due, from their arrivals.

use std::collections::VecDeque;

use comity_units::{Span, Time};

/// Maps the clock of a stream to that of this host.
///
/// The bytes of a stream arrive in bursts, so their delay varies. The mapping follows the bytes
/// with the greatest delay in the last 10 s. These are due on arrival. The others are due later
/// than they arrive, by as much as their delay was smaller:
///
/// ```text
/// wait(k) = arrival(k) − time(k)
/// due(k)  = max( arrival(k),  time(k) + greatest wait of the last 10 s )
/// ```
///
/// A wait that exceeds the shortest one by 250 ms is a stall of the stream, not a burst. It affects
/// only its own bytes. From the third such wait within 10 s on, the limit is 500 ms: the key
/// pictures of an encoder with a low constant rate cause such waits. If the stream does not catch
/// up within half a second, the mapping starts anew. The mapping follows a clock that is slower
/// than the host's immediately, and a faster clock 10 s later. The two clocks may have any offset,
/// and may drift apart without limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArrivalClock {
    /// (time, wait): waits increase from front to back, so the front is the shortest.
    least: VecDeque<(Time, Wait)>,
    /// The same in decreasing order, so the front is the longest.
    greatest: VecDeque<(Time, Wait)>,
    /// When the latest waits of more than `UNEVENNESS` began, and whether the last one goes on.
    long: VecDeque<Time>,
    is_long: bool,
    /// When the stall began, if all waits since then are stalls.
    stalled: Option<Time>,
}

/// Nanoseconds; signed, because the clock of the stream may be ahead.
type Wait = i128;

/// How long waits are remembered.
const WINDOW: Span = Span::from_secs(10);
/// The limit between a burst and a stall, and the limit after so many longer waits within `WINDOW`.
const UNEVENNESS: Span = Span::from_millis(250);
const RECURRING: Span = Span::from_millis(500);
const RECURRENCES: usize = 2;
/// After a stall of this length, the mapping starts anew.
const LONGEST_STALL: Span = Span::from_millis(500);

impl ArrivalClock {
    /// When bytes are due that have this time and arrive at `now`.
    pub(crate) fn lay(&mut self, now: Time, time: Time) -> Time {
        let wait = nanos(now) - nanos(time);
        if self.has_moved(now) {
            *self = Self::default();
        }
        let least = extreme(&mut self.least, now, wait, |last| last >= wait);
        let most = least + i128::from(self.unevenness(now, wait - least).as_nanos());
        let greatest = match wait <= most {
            true => {
                self.stalled = None;
                extreme(&mut self.greatest, now, wait, |last| last <= wait)
            }
            false => {
                self.stalled.get_or_insert(now);
                self.greatest.front().map_or(wait, |&(_, front)| front)
            }
        };
        let due = nanos(time) + greatest.min(most);
        now.max(Time::from_nanos(u64::try_from(due).unwrap_or(0)))
    }

    /// The limit between a burst and a stall, if a wait exceeds the shortest one by this much.
    fn unevenness(&mut self, now: Time, beyond: Wait) -> Span {
        let is_past = |when: &Time| now.saturating_since(*when) > WINDOW;
        while self.long.front().is_some_and(is_past) {
            self.long.pop_front();
        }
        let was_long = core::mem::replace(
            &mut self.is_long,
            beyond > i128::from(UNEVENNESS.as_nanos()),
        );
        let recurs = self.long.len() >= RECURRENCES;
        if self.is_long && !was_long {
            if recurs {
                self.long.pop_front();
            }
            self.long.push_back(now);
        }
        match recurs {
            true => RECURRING,
            false => UNEVENNESS,
        }
    }

    fn has_moved(&self, now: Time) -> bool {
        let stalled = self.stalled.map(|since| now.saturating_since(since));
        stalled.is_some_and(|lasted| lasted >= LONGEST_STALL)
    }
}

fn nanos(time: Time) -> i128 {
    i128::from(time.as_nanos())
}

/// Adds a wait to the candidates for the extreme, removes the candidates that are no longer
/// possible, and returns the extreme.
fn extreme(
    waits: &mut VecDeque<(Time, Wait)>,
    now: Time,
    wait: Wait,
    is_surpassed: impl Fn(Wait) -> bool,
) -> Wait {
    while waits.back().is_some_and(|&(_, last)| is_surpassed(last)) {
        waits.pop_back();
    }
    waits.push_back((now, wait));
    while waits
        .front()
        .is_some_and(|&(when, _)| now.saturating_since(when) > WINDOW)
    {
        waits.pop_front();
    }
    waits.front().map_or(wait, |&(_, front)| front)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn bytes_follow_those_that_came_latest_for_their_time() {
        let mut clock = ArrivalClock::default();
        // Waits of 1.05, 1.02, 1.05 and 1.03 s.
        assert_eq!(clock.lay(at(1_050), at(0)), at(1_050));
        assert_eq!(clock.lay(at(1_060), at(40)), at(1_090));
        assert_eq!(clock.lay(at(1_130), at(80)), at(1_130));
        assert_eq!(clock.lay(at(1_150), at(120)), at(1_170));
        // 10 s later, the wait of 1.05 s is outdated; the longest since is 1.03 s.
        assert_eq!(clock.lay(at(11_120), at(10_090)), at(11_140));
        assert_eq!(clock.lay(at(11_140), at(10_130)), at(11_160));
    }

    #[test]
    fn a_stall_delays_only_its_own_bytes() {
        let mut clock = ArrivalClock::default();
        assert_eq!(clock.lay(at(100), at(0)), at(100));
        assert_eq!(clock.lay(at(2_100), at(40)), at(2_100), "2.06 s: held up");
        assert_eq!(clock.lay(at(2_100), at(2_000)), at(2_100));
        assert_eq!(clock.lay(at(2_130), at(2_040)), at(2_140), "100 ms again");
        // A wait less than 250 ms above the shortest is unevenness.
        assert_eq!(clock.lay(at(2_400), at(2_080)), at(2_400));
        assert_eq!(clock.lay(at(2_400), at(2_290)), at(2_610));
    }

    #[test]
    fn a_stall_that_stays_is_a_new_distance() {
        let mut clock = ArrivalClock::default();
        // Bursts of four parts, one every 40 ms; from the hundredth burst on, all are 3 s later.
        for burst in 0..200_u64 {
            let came = at(40 * burst + if burst < 100 { 0 } else { 3_000 });
            for part in 0..4 {
                let due = clock.lay(came, at(40 * burst + 10 * part));
                let is_spread = !(100..113).contains(&burst);
                let expected = if is_spread { 10 * part } else { 0 };
                let waited = due.saturating_since(came);
                assert_eq!(waited, Span::from_millis(expected), "{burst}, {part}");
            }
        }
    }

    #[test]
    fn a_slow_stream_is_followed_at_once_and_a_fast_one_behind() {
        // For two hours, slower or faster than the host's clock by one part in a thousand. The
        // host's clock begins behind that of the stream.
        for (second_here, at_once) in [(1_001, true), (999, false)] {
            let mut clock = ArrivalClock::default();
            for second in 1..7_200 {
                let came = at(second_here * second);
                let time = at(1_000 * second + 500);
                let late = clock.lay(came, time).saturating_since(came);
                let expected = match at_once {
                    true => 0,
                    false => (second - 1).min(10),
                };
                assert_eq!(late, Span::from_millis(expected), "second {second}");
            }
        }
    }
}
