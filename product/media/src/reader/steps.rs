//! Jumps among the times of a live source, which its arrivals reveal.

use comity_units::{Span, Time};

use crate::section::Jump;
use crate::timeline::{difference, ticks, ticks_in};

/// How much longer than expected a step is that is a jump ahead, in ticks: 120 ms.
const AHEAD: i64 = 10_800;
/// How far back a jump goes: 250 ms. Some sources have pictures without decoding times.
const BACK: i64 = 22_500;
/// By one in so many parts of the time passed, a source may be slower than this host.
const DRIFT: i64 = 100;

/// The times of one stream beside their arrivals.
///
/// A source may be held up and then deliver at once what it gathered. Its times then advance faster
/// than the arrivals, but never further ahead of them than before. A jump ahead does that in one
/// step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps {
    latest: Option<Latest>,
    /// The progress without the jumps, in ticks since the first time stamp.
    progress: i64,
}

#[derive(Clone, Copy, Debug)]
struct Latest {
    stamp: u64,
    arrival: Time,
    /// How far the times were ahead of the arrivals: now, and at most.
    ahead: i64,
    furthest: i64,
    /// The latest step.
    interval: i64,
}

impl Steps {
    /// Processes the next time stamp of the stream. Returns how far it jumped, if it did.
    pub(super) fn on_stamp(&mut self, stamp: u64, arrival: Time) -> Option<Jump> {
        let Some(latest) = &mut self.latest else {
            self.latest = Some(Latest {
                stamp,
                arrival,
                ahead: 0,
                furthest: 0,
                interval: 0,
            });
            return None;
        };
        let step = difference(stamp, latest.stamp);
        let passed = ticks_in(arrival.saturating_since(latest.arrival));
        let beyond = step - passed.max(latest.interval);
        let furthest = latest.furthest - passed / DRIFT;
        let is_ahead = beyond > AHEAD && latest.ahead + step - passed > furthest + AHEAD;
        let is_jump = is_ahead || step < -BACK;
        let jumped = step - latest.interval;
        let taken = if is_jump { latest.interval } else { step };
        let ahead = latest.ahead + taken - passed;
        *latest = Latest {
            stamp,
            arrival,
            ahead,
            furthest: furthest.max(ahead),
            interval: taken.max(0),
        };
        self.progress += taken;
        is_jump.then(|| Jump::of(jumped))
    }

    /// How far the stream has come since its first time stamp, without the jumps.
    pub(super) fn progress(&self) -> Span {
        ticks(u64::try_from(self.progress).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The jumps among time stamps and arrivals, both in milliseconds, by the index of the stamp.
    fn jumps(times: impl IntoIterator<Item = (u64, u64)>) -> Vec<(usize, Jump)> {
        let mut steps = Steps::default();
        let found = |(index, (stamp, arrival))| {
            let jump = steps.on_stamp(90 * stamp, Time::from_millis(arrival))?;
            Some((index, jump))
        };
        times.into_iter().enumerate().filter_map(found).collect()
    }

    #[test]
    fn a_step_that_no_arrival_explains_is_a_jump() {
        let moved = |by: i64| {
            let stamp = move |number: u64| match number < 50 {
                true => 90_000 + 40 * number,
                false => (90_000 + 40 * number).wrapping_add_signed(by),
            };
            jumps((0..100).map(|number| (stamp(number), 40 * number)))
        };
        for millis in [130, 500, 9_000] {
            let by = Span::from_millis(millis);
            assert_eq!(moved(millis as i64), [(50, Jump::Ahead(by))]);
        }
        for millis in [300, 500, 9_000] {
            let by = Span::from_millis(millis);
            assert_eq!(moved(-(millis as i64)), [(50, Jump::Back(by))]);
        }
        assert_eq!(moved(110), []);
    }

    #[test]
    fn uneven_arrivals_are_no_jumps() {
        // Sixteen frames of sound in a packet.
        assert_eq!(
            jumps((0..800).map(|frame| (20 * frame, frame / 16 * 320))),
            []
        );
        // A pause of 3 s in the arrivals, which the source then makes up for.
        let held = |time: u64| {
            if (4_000..7_000).contains(&time) {
                7_000
            } else {
                time
            }
        };
        assert_eq!(
            jumps((0..500).map(|frame| (40 * frame, held(40 * frame)))),
            []
        );
        // A picture a second, held up as well; and one that shows nothing for 3 s.
        assert_eq!(
            jumps((0..60).map(|frame| (1_000 * frame, held(1_000 * frame)))),
            []
        );
        let pausing = |frame: u64| 40 * frame + if frame < 50 { 0 } else { 3_000 };
        assert_eq!(
            jumps((0..100).map(|frame| (pausing(frame), pausing(frame)))),
            []
        );
        // All of a file at once.
        assert_eq!(jumps((0..100).map(|frame| (40 * frame, 0))), []);
    }

    #[test]
    fn the_progress_has_no_jumps() {
        let mut steps = Steps::default();
        for number in 0..100_u64 {
            let jumped = if number < 50 { 0 } else { 900_000 };
            steps.on_stamp(3_600 * number + jumped, Time::from_millis(40 * number));
        }
        assert_eq!(steps.progress(), Span::from_millis(99 * 40));
    }
}
