//! Detects jumps in the times of a live source, by comparing them with its arrivals.

use comity_units::{Span, Time};

use crate::section::Jump;
use crate::timeline::{difference, ticks, ticks_in};

/// How much longer than expected a step is if it counts as a jump ahead, in ticks: 120 ms.
const AHEAD: i64 = 10_800;
/// How far back a step goes if it counts as a jump: 250 ms. Some sources have pictures without
/// decoding times.
const BACK: i64 = 22_500;
/// A stream that begins or jumps further behind the others than this begins where they are.
const BEHIND: Span = Span::from_secs(2);
/// A source may be slower than this host by one part in this many.
const DRIFT: i64 = 100;

/// Compares the times of one stream with their arrivals.
///
/// A source may be delayed and then deliver everything at once. Its times then advance faster than
/// the arrivals, but never further ahead of them than before. A jump ahead exceeds this lead in one
/// step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps {
    latest: Option<Latest>,
    /// The progress without jumps, in ticks since the first time stamp.
    progress: i64,
    /// The position of the first time stamp in the source.
    base: Span,
    /// Whether it has begun or jumped since its position was last determined.
    has_jumped: bool,
}

#[derive(Clone, Copy, Debug)]
struct Latest {
    stamp: u64,
    arrival: Time,
    /// How far the times are ahead of the arrivals, and the maximum so far.
    ahead: i64,
    furthest: i64,
    /// The latest step.
    interval: i64,
}

impl Steps {
    /// Processes the next time stamp of the stream. Returns the jump, if it jumped.
    pub(super) fn on_stamp(&mut self, stamp: u64, arrival: Time) -> Option<Jump> {
        let Some(latest) = &mut self.latest else {
            self.latest = Some(Latest {
                stamp,
                arrival,
                ahead: 0,
                furthest: 0,
                interval: 0,
            });
            self.has_jumped = true;
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
        self.has_jumped |= is_jump;
        is_jump.then(|| Jump::of(jumped))
    }

    /// The progress of the stream since its first time stamp, without jumps.
    fn progress(&self) -> Span {
        ticks(u64::try_from(self.progress).unwrap_or(0))
    }

    /// The position of the stream in its source, which has reached `reached`. A file behind
    /// another one may have other PIDs, or come back to those of an earlier one.
    pub(super) fn position(&mut self, reached: Span) -> Span {
        let position = self.base + self.progress();
        if core::mem::take(&mut self.has_jumped) && position + BEHIND < reached {
            self.base += reached.saturating_sub(position);
        }
        self.base + self.progress()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_begins_far_behind_the_others_follows_them() {
        let seconds = Span::from_secs;
        let mut steps = Steps::default();
        steps.on_stamp(90_000 * 100, Time::from_secs(100));
        steps.on_stamp(90_000 * 101, Time::from_secs(101));
        // It is behind as far as streams of a multiplex may be, and later as far as it pauses.
        let mut copy = steps;
        assert_eq!(copy.position(seconds(3)), seconds(1));
        assert_eq!(copy.position(seconds(9)), seconds(1));
        assert_eq!(steps.position(seconds(9)), seconds(9));
        steps.on_stamp(90_000 * 102, Time::from_secs(102));
        assert_eq!(steps.position(seconds(9)), seconds(10));
        // Its times begin again.
        steps.on_stamp(0, Time::from_secs(102));
        assert_eq!(steps.position(seconds(11)), seconds(11));
        steps.on_stamp(0, Time::from_secs(103));
        assert_eq!(steps.position(seconds(30)), seconds(11));
        steps.on_stamp(90_000 * 50, Time::from_secs(103));
        assert_eq!(steps.position(seconds(30)), seconds(30));
    }

    /// The jumps in a sequence of time stamps and arrivals, both in milliseconds, with the index of
    /// the time stamp.
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
        // Sixteen audio frames in a packet.
        assert_eq!(
            jumps((0..800).map(|frame| (20 * frame, frame / 16 * 320))),
            []
        );
        // A pause of 3 s in the arrivals, after which the source catches up.
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
        // One picture per second, also delayed; and a source that shows nothing for 3 s.
        assert_eq!(
            jumps((0..60).map(|frame| (1_000 * frame, held(1_000 * frame)))),
            []
        );
        let pausing = |frame: u64| 40 * frame + if frame < 50 { 0 } else { 3_000 };
        assert_eq!(
            jumps((0..100).map(|frame| (pausing(frame), pausing(frame)))),
            []
        );
        // A whole file at once.
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
