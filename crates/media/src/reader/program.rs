//! The clock of a program.

use comity_units::{Span, Time};

use crate::timeline::{Mark, Placed, Timeline};

/// For how long by its clock references a program may be without a time stamp before its clock goes
/// by those.
const SILENCE: Span = Span::from_millis(250);

/// How far a program has come: by its decoding times, and by its clock references while it has
/// none.
#[derive(Debug, Default)]
pub(super) struct ProgramClock {
    stamps: Timeline,
    references: Timeline,
    reference: Option<Mark>,
    /// Where the references were when the clock went by the stamps last.
    since: Time,
}

impl ProgramClock {
    /// The furthest time so far: that of what carries no time stamp.
    pub(super) fn now(&self) -> Time {
        self.stamps.now() + self.silence()
    }

    /// Takes a clock reference, in ticks of 90 kHz.
    pub(super) fn on_reference(&mut self, stamp: u64) {
        self.reference = Some(self.references.place(stamp, self.reference).mark);
    }

    /// Places the next time stamp of a stream, whose latest one has the mark `before`.
    pub(super) fn place(&mut self, stamp: u64, before: Option<Mark>) -> Placed {
        let silence = self.silence();
        if silence > Span::ZERO {
            self.stamps.go_on(silence);
            self.since = self.references.now();
        }
        let now = self.stamps.now();
        let placed = self.stamps.place(stamp, before);
        if self.stamps.now() > now {
            self.since = self.references.now();
        }
        placed
    }

    /// For how long there has been no stamp, if that is long.
    fn silence(&self) -> Span {
        let passed = self.references.now().saturating_since(self.since);
        if passed >= SILENCE {
            passed
        } else {
            Span::ZERO
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 90_000;

    #[test]
    fn references_tell_the_time_while_there_are_no_stamps() {
        let mut clock = ProgramClock::default();
        clock.on_reference(500);
        let first = clock.place(SECOND, None);
        assert_eq!((first.time, clock.now()), (Time::ZERO, Time::ZERO));
        // Less than a quarter of a second is what stamps are apart.
        clock.on_reference(500 + SECOND / 5);
        assert_eq!(clock.now(), Time::ZERO);
        let next = clock.place(SECOND + SECOND / 5, Some(first.mark));
        assert_eq!(clock.now(), Time::from_millis(200));
        // Twenty seconds without a stamp are no jump for the stamp behind them.
        for passed in 1..=20 {
            clock.on_reference(500 + SECOND / 5 + passed * SECOND);
        }
        assert_eq!(clock.now(), Time::from_millis(20_200));
        let last = clock.place(21 * SECOND + SECOND / 2, Some(next.mark));
        assert_eq!(
            (last.time, last.is_jump),
            (Time::from_millis(20_500), false)
        );
        assert_eq!(clock.now(), last.time);
    }

    #[test]
    fn what_moves_neither_by_stamps_nor_by_references_stands_still() {
        let mut clock = ProgramClock::default();
        let mut mark = None;
        for stamp in [SECOND, SECOND, SECOND - 3_600] {
            clock.on_reference(0);
            mark = Some(clock.place(stamp, mark).mark);
            assert_eq!(clock.now(), Time::ZERO);
        }
        clock.place(SECOND + 900, mark);
        assert_eq!(clock.now(), Time::from_millis(10));
    }
}
