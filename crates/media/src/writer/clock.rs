//! The clock of a program: clock references from decoding times.

use comity_units::Span;

use crate::timeline::{WRAP, difference};

/// Beyond this, the clock is not led over a gap in small steps but jumps.
const JUMP: i64 = 10 * 90_000;

/// References closer than 10 ms serve nobody, and would fill the stream.
const SHORTEST: u64 = 900;
/// For how long after a jump units of the old clock may come.
const SOON: u64 = 2 * 90_000;

/// A clock reference to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The writer's own time, in ticks of 90 kHz since it began.
    pub(super) at: u64,
    /// The reference, in ticks of 90 kHz, 33 bits.
    pub(super) clock: u64,
    pub(super) discontinuity: bool,
}

/// Follows the latest decoding time, a constant lead behind it.
#[derive(Debug)]
pub(super) struct Clock {
    /// In ticks, as is all here.
    lead: u64,
    /// The latest decoding time.
    stamp: Option<u64>,
    /// How far the clock has come, over all jumps.
    place: u64,
    /// Where the latest reference was written.
    referenced: u64,
    /// The latest decoding time before the last jump, and where that was.
    left: Option<(u64, u64)>,
}

impl Clock {
    pub(super) fn new(lead: Span) -> Self {
        Self {
            lead: in_ticks(lead),
            stamp: None,
            place: 0,
            referenced: 0,
            left: None,
        }
    }

    pub(super) const fn now(&self) -> u64 {
        self.place
    }

    /// Whether a unit with this decoding time comes when the clock has passed it.
    pub(super) fn is_late(&self, stamp: u64) -> bool {
        let lead = i64::try_from(self.lead).unwrap_or(i64::MAX);
        self.stamp
            .is_some_and(|latest| difference(latest, stamp) > lead)
    }

    /// Moves the clock to a unit's decoding time; gives the references due up to there, at most `interval`
    /// apart.
    pub(super) fn advance(&mut self, stamp: u64, discontinuity: bool, interval: Span) -> Vec<Step> {
        let interval = in_ticks(interval).max(SHORTEST);
        let Some(latest) = self.stamp else {
            self.stamp = Some(stamp);
            return vec![self.step(self.place, false)];
        };
        let step = difference(stamp, latest);
        // A mark alone, without a jump of the times, is one of the source's counters: ours have no gap.
        if step.abs() > JUMP || (discontinuity && step < 0) {
            // One stream jumps before the others do: their last units still belong to the old clock.
            if self
                .left
                .is_some_and(|(stamp_left, _)| self.belongs(stamp, stamp_left))
            {
                return Vec::new();
            }
            self.left = Some((latest, self.place));
            self.stamp = Some(stamp);
            self.referenced = self.place;
            return vec![self.step(self.place, true)];
        }
        if self.left.is_some_and(|(left, _)| self.belongs(stamp, left)) {
            return Vec::new();
        }
        let Ok(step) = u64::try_from(step) else {
            return Vec::new();
        };
        self.stamp = Some(stamp);
        self.place += step;
        let mut due = Vec::new();
        while self.place - self.referenced > interval {
            self.referenced += interval;
            due.push(self.referenced);
        }
        // The last of them rides with the unit itself, when the next unit could be too late for it.
        if self.place - self.referenced >= interval / 4 * 3 {
            self.referenced = self.place;
            due.push(self.referenced);
        }
        due.into_iter().map(|at| self.step(at, false)).collect()
    }

    /// Whether, soon after a jump, a decoding time is nearer to the clock that was left than to the new one.
    fn belongs(&self, stamp: u64, left: u64) -> bool {
        let is_soon = self
            .left
            .is_some_and(|(_, place)| self.place - place < SOON);
        let distance = |other: u64| difference(stamp, other).abs();
        is_soon
            && self
                .stamp
                .is_some_and(|latest| distance(left) < distance(latest))
    }

    fn step(&self, at: u64, discontinuity: bool) -> Step {
        let back = self.place - at + self.lead;
        let clock = self.stamp.unwrap_or(0).wrapping_sub(back) % WRAP;
        Step {
            at,
            clock,
            discontinuity,
        }
    }
}

/// Whole ticks of 90 kHz.
pub(super) fn in_ticks(span: Span) -> u64 {
    u64::try_from(u128::from(span.as_nanos()) * 9 / 100_000).unwrap_or(u64::MAX) % WRAP
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Span = Span::from_millis(90);

    fn clocks(steps: &[Step]) -> Vec<(u64, bool)> {
        steps
            .iter()
            .map(|step| (step.clock, step.discontinuity))
            .collect()
    }

    #[test]
    fn references_follow_the_decoding_times_and_fill_gaps() {
        let mut clock = Clock::new(Span::from_secs(1));
        assert_eq!(
            clocks(&clock.advance(90_000, false, INTERVAL)),
            [(0, false)]
        );
        // 40 ms on: it can wait. 80 ms on: it is time.
        assert_eq!(clocks(&clock.advance(93_600, false, INTERVAL)), []);
        assert_eq!(
            clocks(&clock.advance(97_200, false, INTERVAL)),
            [(7_200, false)]
        );
        // Back, within the order of several streams: nothing.
        assert_eq!(clocks(&clock.advance(95_000, false, INTERVAL)), []);
        assert!(!clock.is_late(95_000) && clock.is_late(97_200 - 90_001));
        // A gap of 200 ms: every 8100 ticks, and the rest can wait.
        assert_eq!(
            clocks(&clock.advance(97_200 + 18_000, false, INTERVAL)),
            [(15_300, false), (23_400, false)]
        );
    }

    #[test]
    fn a_jump_is_marked_and_the_wrap_is_none() {
        let mut clock = Clock::new(Span::from_secs(1));
        clock.advance(WRAP - 3_600, false, INTERVAL);
        assert_eq!(
            clocks(&clock.advance(3_600, false, INTERVAL)),
            [(WRAP + 3_600 - 90_000, false)]
        );
        assert_eq!(
            clocks(&clock.advance(9_000_000, false, INTERVAL)),
            [(8_910_000, true)]
        );
        assert_eq!(
            clocks(&clock.advance(8_999_000, true, INTERVAL)),
            [(8_909_000, true)]
        );
        assert_eq!(clock.now(), 7_200);
        // What another stream still has of the clock before the jump does not move the new one.
        assert_eq!(clocks(&clock.advance(9_000_100, false, INTERVAL)), []);
        assert_eq!(clock.now(), 7_200);
        assert_eq!(
            clocks(&clock.advance(8_999_000 + 7_200, false, INTERVAL)),
            []
        );
    }
}
