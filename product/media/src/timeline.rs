//! The source's clock: maps time stamps that wrap and jump to a monotonic time.

pub(crate) use comity_frames::stamp::{WRAP, difference};
use comity_units::{Span, Time};

/// Two time stamps of one program that differ by more than this belong to different clocks.
const JUMP: i64 = 10 * 90_000;

/// Ticks of 90 kHz as a span: 100 000 / 9 nanoseconds each.
pub(crate) const fn ticks(ticks: u64) -> Span {
    Span::from_nanos((ticks as u128 * 100_000 / 9) as u64)
}

/// How far the decoding times of one stream may go back without a jump. The standard does not allow
/// this, but some sources time their first units inexactly.
const SLACK: i64 = 45_000;

/// A sequence of time stamps without a jump.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    id: u64,
    /// Its latest time stamp, and the corresponding position on the source's clock, in ticks.
    stamp: u64,
    position: i64,
}

/// The latest time stamp of one stream, and the stretch that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    stretch: u64,
    stamp: u64,
}

/// The position of a time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) time: Time,
    /// If the time stamp begins a new stretch: its distance, in ticks, from the latest time stamp
    /// of its own stream, or else of any stream.
    pub(crate) jump: Option<i64>,
    /// The mark that the caller passes with the next time stamp of the same stream.
    pub(crate) mark: Mark,
}

impl Stretch {
    /// The position of `stamp`, if it can belong to this stretch.
    fn locate(&mut self, stamp: u64, before: Option<Mark>) -> Option<i64> {
        let step = difference(stamp, self.stamp);
        let own = before.filter(|before| before.stretch == self.id);
        // A stream never returns to a stretch that it has left.
        let has_left = before.is_some_and(|before| before.stretch > self.id);
        let goes_back = own.is_some_and(|before| difference(stamp, before.stamp) < -SLACK);
        if step.abs() > JUMP || goes_back || has_left {
            return None;
        }
        let position = self.position + step;
        if step > 0 {
            (self.stamp, self.position) = (stamp, position);
        }
        Some(position)
    }
}

/// Maps the time stamps of one program to the source's clock.
///
/// While only some of the streams have jumped, both stretches are active. Each time stamp belongs
/// to the newest stretch that it is near to and in which its own stream does not go back.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    newest: Option<Stretch>,
    last: Option<Stretch>,
    /// The furthest position so far, in ticks. A new stretch begins there.
    furthest: i64,
    stretches: u64,
}

impl Timeline {
    /// Maps the next time stamp of a stream. `before` is the mark of its previous one.
    pub(crate) fn locate(&mut self, stamp: u64, before: Option<Mark>) -> Placed {
        let stretches = [self.newest.as_mut(), self.last.as_mut()];
        let known = stretches.into_iter().flatten().find_map(|stretch| {
            let position = stretch.locate(stamp, before)?;
            Some((position, stretch.id))
        });
        let (position, stretch, jump) = match known {
            Some((position, stretch)) => (position, stretch, None),
            None => {
                let position = self.furthest;
                let id = self.stretches;
                self.stretches += 1;
                self.last = self.newest.replace(Stretch {
                    id,
                    stamp,
                    position,
                });
                let last =
                    { before.map(|before| before.stamp) }.or(self.last.map(|last| last.stamp));
                let jump = self.last.and(last).map(|last| difference(stamp, last));
                (position, id, jump)
            }
        };
        self.furthest = self.furthest.max(position);
        let mark = Mark { stretch, stamp };
        Placed {
            time: at(position),
            jump,
            mark,
        }
    }

    /// Advances the clock by a time without time stamps. If the source does not jump, its next time
    /// stamp is near the new position.
    pub(crate) fn go_on(&mut self, passed: Span) {
        let passed = ticks_in(passed);
        if let Some(newest) = &mut self.newest {
            newest.stamp = newest.stamp.wrapping_add(passed.unsigned_abs()) % WRAP;
            newest.position += passed;
        }
        self.furthest += passed;
    }

    /// The furthest time so far, which applies to data without a time stamp.
    pub(crate) fn now(&self) -> Time {
        at(self.furthest)
    }
}

/// The time of a position. Data with a decoding time before that of the first unit is also due at
/// the beginning.
fn at(position: i64) -> Time {
    Time::ZERO + ticks(u64::try_from(position).unwrap_or(0))
}

/// A span as whole ticks of 90 kHz.
pub(crate) fn ticks_in(span: Span) -> i64 {
    let nanos = u128::from(span.as_nanos());
    i64::try_from(nanos * 9 / 100_000).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_exact() {
        assert_eq!(ticks(90_000), Span::from_secs(1));
        assert_eq!(ticks(3_600), Span::from_millis(40));
        assert_eq!(ticks(WRAP).as_secs_f64(), 95_443.717_688_888);
    }

    /// Maps time stamps of the form (stream, stamp) to their time, and to whether each was a jump.
    fn positions(stamps: &[(usize, u64)]) -> Vec<(Time, bool)> {
        let mut timeline = Timeline::default();
        let mut marks = [None; 2];
        stamps
            .iter()
            .map(|&(stream, stamp)| {
                let placed = timeline.locate(stamp, marks[stream]);
                marks[stream] = Some(placed.mark);
                assert!(timeline.now() >= placed.time);
                (placed.time, placed.jump.is_some())
            })
            .collect()
    }

    #[test]
    fn the_clock_continues_over_the_wrap() {
        assert_eq!(
            positions(&[(0, WRAP - 90_000), (0, 90_000), (1, WRAP - 45_000)]),
            [
                (Time::ZERO, false),
                (Time::from_secs(2), false),
                (Time::from_millis(500), false)
            ]
        );
    }

    #[test]
    fn a_jump_begins_a_new_stretch_once_for_all_streams() {
        let positions = positions(&[
            (0, 900_000),
            (0, 990_000),
            (0, 9_000_000),
            (1, 1_000_000),
            (0, 9_000_900),
            (1, 1_000_900),
            (1, 9_090_000),
            (1, 0),
        ]);
        // 1 s after the first, then the jump. The rest of the old stretch keeps its own clock.
        assert_eq!(positions[1], (Time::from_secs(1), false));
        assert_eq!(positions[2], (Time::from_secs(1), true));
        assert_eq!(positions[3], (Time::ZERO + ticks(100_000), false));
        assert_eq!(positions[4], (Time::from_millis(1_010), false));
        assert_eq!(positions[5], (Time::ZERO + ticks(100_900), false));
        assert_eq!(positions[6], (Time::from_secs(2), false));
        // Backwards is a jump as well.
        assert_eq!(positions[7], (Time::from_secs(2), true));
    }

    #[test]
    fn a_short_step_back_is_a_jump_within_a_stream_but_not_between_streams() {
        let stamps = [
            (0, 900_000),
            (1, 720_000),
            (0, 720_000),
            (1, 722_000),
            (1, 720_000),
        ];
        let jumps: Vec<_> = positions(&stamps).iter().map(|&(_, jump)| jump).collect();
        assert_eq!(jumps, [false, false, true, false, false]);
    }

    #[test]
    fn a_reported_time_without_stamps_is_no_jump() {
        let next = |passed: u64, stamp: u64| {
            let mut timeline = Timeline::default();
            let before = timeline.locate(WRAP - 9_000, None);
            timeline.go_on(Span::from_secs(passed));
            assert_eq!(timeline.now(), Time::from_secs(passed));
            let next = timeline.locate(stamp, Some(before.mark));
            (next.time, next.jump.is_some())
        };
        let second = |seconds: u64| (WRAP - 9_000 + 90_000 * seconds) % WRAP;
        assert_eq!(next(0, second(20)), (Time::ZERO, true));
        assert_eq!(next(20, second(20)), (Time::from_secs(20), false));
        assert_eq!(next(20, second(29)), (Time::from_secs(29), false));
        // A distant stamp continues from the present time of the clock.
        assert_eq!(next(20, second(1_000)), (Time::from_secs(20), true));
    }

    #[test]
    fn stamps_before_the_first_are_due_at_once() {
        assert_eq!(
            positions(&[(0, 90_000), (1, 45_000), (0, 180_000)]),
            [
                (Time::ZERO, false),
                (Time::ZERO, false),
                (Time::from_secs(1), false)
            ]
        );
    }
}
