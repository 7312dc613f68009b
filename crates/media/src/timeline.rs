//! The source's clock: from time stamps that wrap and jump to a time that only goes on.

pub(crate) use comity_frames::stamp::{WRAP, difference};
use comity_units::{Span, Time};

/// Beyond this distance, two time stamps of one program are taken for ones of different clocks.
const JUMP: i64 = 10 * 90_000;

/// Ticks of 90 kHz as a span: 100 000 / 9 nanoseconds each.
pub(crate) const fn ticks(ticks: u64) -> Span {
    Span::from_nanos((ticks as u128 * 100_000 / 9) as u64)
}

/// By how much the decoding times of one stream may go back without a jump: by the standard not at
/// all, but there are sources that time their first units carelessly.
const SLACK: i64 = 45_000;

/// One stretch of time stamps without a jump.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    id: u64,
    /// The latest time stamp of it, and its place on the source's clock, in ticks.
    stamp: u64,
    place: i64,
}

/// The latest time stamp of one stream, and the stretch that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    stretch: u64,
    stamp: u64,
}

/// Where a time stamp lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) time: Time,
    /// Whether a new stretch begins with it.
    pub(crate) is_jump: bool,
    /// To be given back with the next time stamp of the same stream.
    pub(crate) mark: Mark,
}

impl Stretch {
    /// The place of `stamp`, when it can belong to this stretch.
    fn place(&mut self, stamp: u64, before: Option<Mark>) -> Option<i64> {
        let step = difference(stamp, self.stamp);
        let own = before.filter(|before| before.stretch == self.id);
        // A stream does not come back to a stretch that it has left.
        let has_left = before.is_some_and(|before| before.stretch > self.id);
        let goes_back = own.is_some_and(|before| difference(stamp, before.stamp) < -SLACK);
        if step.abs() > JUMP || goes_back || has_left {
            return None;
        }
        let place = self.place + step;
        if step > 0 {
            (self.stamp, self.place) = (stamp, place);
        }
        Some(place)
    }
}

/// Maps the time stamps of one program to the source's clock.
///
/// While one stream has jumped already and another has not, both stretches are known: each time
/// stamp belongs to the newest that it is near to, and in which its own stream does not go back.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    newest: Option<Stretch>,
    last: Option<Stretch>,
    /// The furthest place so far, in ticks: where a new stretch begins.
    furthest: i64,
    stretches: u64,
}

impl Timeline {
    /// Places the next time stamp of a stream, whose latest one has the mark `before`.
    pub(crate) fn place(&mut self, stamp: u64, before: Option<Mark>) -> Placed {
        let stretches = [self.newest.as_mut(), self.last.as_mut()];
        let known = stretches.into_iter().flatten().find_map(|stretch| {
            let place = stretch.place(stamp, before)?;
            Some((place, stretch.id))
        });
        let (place, stretch, is_jump) = match known {
            Some((place, stretch)) => (place, stretch, false),
            None => {
                let place = self.furthest;
                let id = self.stretches;
                self.stretches += 1;
                self.last = self.newest.replace(Stretch { id, stamp, place });
                (place, id, self.last.is_some())
            }
        };
        self.furthest = self.furthest.max(place);
        let mark = Mark { stretch, stamp };
        Placed {
            time: at(place),
            is_jump,
            mark,
        }
    }

    /// The source has come so much further without time stamps: the next one lies near to there if
    /// it does not jump.
    pub(crate) fn go_on(&mut self, passed: Span) {
        let passed = ticks_in(passed);
        if let Some(newest) = &mut self.newest {
            newest.stamp = newest.stamp.wrapping_add(passed.unsigned_abs()) % WRAP;
            newest.place += passed;
        }
        self.furthest += passed;
    }

    /// The furthest time so far: that of what carries no time stamp.
    pub(crate) fn now(&self) -> Time {
        at(self.furthest)
    }
}

/// What comes after the first unit, but is to be decoded before it, is due at the beginning too.
fn at(place: i64) -> Time {
    Time::ZERO + ticks(u64::try_from(place).unwrap_or(0))
}

fn ticks_in(span: Span) -> i64 {
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

    /// Places time stamps given as (stream, stamp): when each is, and whether it was a jump.
    fn places(stamps: &[(usize, u64)]) -> Vec<(Time, bool)> {
        let mut timeline = Timeline::default();
        let mut marks = [None; 2];
        stamps
            .iter()
            .map(|&(stream, stamp)| {
                let placed = timeline.place(stamp, marks[stream]);
                marks[stream] = Some(placed.mark);
                assert!(timeline.now() >= placed.time);
                (placed.time, placed.is_jump)
            })
            .collect()
    }

    #[test]
    fn the_clock_goes_on_over_the_wrap() {
        assert_eq!(
            places(&[(0, WRAP - 90_000), (0, 90_000), (1, WRAP - 45_000)]),
            [
                (Time::ZERO, false),
                (Time::from_secs(2), false),
                (Time::from_millis(500), false)
            ]
        );
    }

    #[test]
    fn a_jump_begins_a_new_stretch_once_for_all_streams() {
        let places = places(&[
            (0, 900_000),
            (0, 990_000),
            (0, 9_000_000),
            (1, 1_000_000),
            (0, 9_000_900),
            (1, 1_000_900),
            (1, 9_090_000),
            (1, 0),
        ]);
        // 1 s after the first, then the jump; what is left of the old stretch keeps its own clock.
        assert_eq!(places[1], (Time::from_secs(1), false));
        assert_eq!(places[2], (Time::from_secs(1), true));
        assert_eq!(places[3], (Time::ZERO + ticks(100_000), false));
        assert_eq!(places[4], (Time::from_millis(1_010), false));
        assert_eq!(places[5], (Time::ZERO + ticks(100_900), false));
        assert_eq!(places[6], (Time::from_secs(2), false));
        // Backwards is a jump as well.
        assert_eq!(places[7], (Time::from_secs(2), true));
    }

    #[test]
    fn a_short_way_back_in_one_stream_is_a_jump_but_between_streams_is_none() {
        let stamps = [
            (0, 900_000),
            (1, 720_000),
            (0, 720_000),
            (1, 722_000),
            (1, 720_000),
        ];
        let jumps: Vec<_> = places(&stamps).iter().map(|&(_, jump)| jump).collect();
        assert_eq!(jumps, [false, false, true, false, false]);
    }

    #[test]
    fn a_while_without_stamps_is_no_jump_when_it_is_told() {
        let next = |passed: u64, stamp: u64| {
            let mut timeline = Timeline::default();
            let before = timeline.place(WRAP - 9_000, None);
            timeline.go_on(Span::from_secs(passed));
            assert_eq!(timeline.now(), Time::from_secs(passed));
            let next = timeline.place(stamp, Some(before.mark));
            (next.time, next.is_jump)
        };
        let second = |seconds: u64| (WRAP - 9_000 + 90_000 * seconds) % WRAP;
        assert_eq!(next(0, second(20)), (Time::ZERO, true));
        assert_eq!(next(20, second(20)), (Time::from_secs(20), false));
        assert_eq!(next(20, second(29)), (Time::from_secs(29), false));
        // What lies elsewhere begins where the clock has come to.
        assert_eq!(next(20, second(1_000)), (Time::from_secs(20), true));
    }

    #[test]
    fn what_lies_before_the_first_is_due_at_once() {
        assert_eq!(
            places(&[(0, 90_000), (1, 45_000), (0, 180_000)]),
            [
                (Time::ZERO, false),
                (Time::ZERO, false),
                (Time::from_secs(1), false)
            ]
        );
    }
}
