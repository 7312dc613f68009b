//! The source's clock: from time stamps that wrap and jump to a time that only goes on.

use comity_units::{Span, Time};

/// Time stamps count modulo 2^33.
pub(crate) const WRAP: u64 = 1 << 33;
/// Beyond this distance, two time stamps of one program are taken for ones of different clocks.
const JUMP: i64 = 10 * 90_000;

/// `later - earlier` on the circle of 33 bits, the shorter way round.
pub(crate) const fn difference(later: u64, earlier: u64) -> i64 {
    let forward = later.wrapping_sub(earlier) % WRAP;
    if forward < WRAP / 2 {
        forward as i64
    } else {
        forward as i64 - WRAP as i64
    }
}

/// Ticks of 90 kHz as a span: 100 000 / 9 nanoseconds each.
pub(crate) const fn ticks(ticks: u64) -> Span {
    Span::from_nanos((ticks as u128 * 100_000 / 9) as u64)
}

/// One stretch of time stamps without a jump.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// The latest time stamp of it, and its place on the source's clock, in ticks.
    stamp: u64,
    place: i64,
}

impl Stretch {
    /// The place of `stamp`, when it is near enough to belong to this stretch.
    fn place(&mut self, stamp: u64) -> Option<i64> {
        let step = difference(stamp, self.stamp);
        if step.abs() > JUMP {
            return None;
        }
        let place = self.place + step;
        if step > 0 {
            *self = Self { stamp, place };
        }
        Some(place)
    }
}

/// Maps the time stamps of one program to the source's clock.
///
/// While one stream has jumped already and another has not, both stretches are known: each time stamp
/// belongs to the newest that it is near to.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    newest: Option<Stretch>,
    last: Option<Stretch>,
    /// The furthest place so far, in ticks: where a new stretch begins.
    furthest: i64,
}

impl Timeline {
    /// The place of a time stamp, and whether a new stretch begins with it.
    pub(crate) fn place(&mut self, stamp: u64) -> (Time, bool) {
        let stretches = [self.newest.as_mut(), self.last.as_mut()];
        let known = stretches
            .into_iter()
            .flatten()
            .find_map(|stretch| stretch.place(stamp));
        let (place, jumped) = match known {
            Some(place) => (place, false),
            None => {
                let place = self.furthest;
                self.last = self.newest.replace(Stretch { stamp, place });
                (place, self.last.is_some())
            }
        };
        self.furthest = self.furthest.max(place);
        (at(place), jumped)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_exact() {
        assert_eq!(ticks(90_000), Span::from_secs(1));
        assert_eq!(ticks(3_600), Span::from_millis(40));
        assert_eq!(ticks(WRAP).as_secs_f64(), 95_443.717_688_888);
    }

    #[test]
    fn the_clock_goes_on_over_the_wrap() {
        let mut timeline = Timeline::default();
        assert_eq!(timeline.place(WRAP - 90_000), (Time::ZERO, false));
        assert_eq!(timeline.place(90_000), (Time::from_secs(2), false));
        assert_eq!(
            timeline.place(WRAP - 45_000),
            (Time::from_millis(500), false)
        );
        assert_eq!(timeline.now(), Time::from_secs(2));
    }

    #[test]
    fn a_jump_begins_a_new_stretch_once_for_all_streams() {
        let mut timeline = Timeline::default();
        let stamps = [
            900_000, 990_000, 9_000_000, 1_000_000, 9_000_900, 990_900, 9_090_000,
        ];
        let places: Vec<_> = stamps.map(|stamp| timeline.place(stamp)).to_vec();
        // 1 s after the first, then the jump; what is left of the old stretch keeps its own clock.
        assert_eq!(places[1], (Time::from_secs(1), false));
        assert_eq!(places[2], (Time::from_secs(1), true));
        assert_eq!(places[3], (Time::ZERO + ticks(100_000), false));
        assert_eq!(places[4], (Time::from_millis(1_010), false));
        assert_eq!(places[5], (Time::from_millis(1_010), false));
        assert_eq!(places[6], (Time::from_secs(2), false));
        // Backwards is a jump as well.
        assert_eq!(timeline.place(0), (Time::from_secs(2), true));
    }

    #[test]
    fn what_lies_before_the_first_is_due_at_once() {
        let mut timeline = Timeline::default();
        timeline.place(90_000);
        assert_eq!(timeline.place(45_000), (Time::ZERO, false));
        assert_eq!(timeline.place(180_000), (Time::from_secs(1), false));
    }
}
