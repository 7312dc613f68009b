//! The clock of a program.

use comity_units::{Span, Time};

use crate::timeline::{Mark, Placed, Timeline};

/// After this time without a time stamp, measured by its clock references, the clock of a program
/// follows the clock references.
const SILENCE: Span = Span::from_millis(250);

/// The progress of a program: by its decoding times, or, while it has none, by its clock
/// references.
#[derive(Debug, Default)]
pub(super) struct ProgramClock {
    /// The PID of its clock references, once its map has come.
    pub(super) pid: Option<u16>,
    stamps: Timeline,
    references: Timeline,
    reference: Option<Mark>,
    /// The clock reference at the last time stamp.
    since: Time,
}

impl ProgramClock {
    /// The furthest time so far.
    pub(super) fn now(&self) -> Time {
        self.stamps.now() + self.silence()
    }

    /// The time of data without a time stamp. Between time stamps, it follows the clock references.
    pub(super) fn between_stamps(&self) -> Time {
        self.stamps.now() + self.references.now().saturating_since(self.since)
    }

    /// Processes a clock reference, in ticks of 90 kHz.
    pub(super) fn on_reference(&mut self, stamp: u64) {
        self.reference = Some(self.references.locate(stamp, self.reference).mark);
    }

    /// Maps the next time stamp of a stream. `before` is the mark of its previous one.
    pub(super) fn locate(&mut self, stamp: u64, before: Option<Mark>) -> Placed {
        let silence = self.silence();
        if silence > Span::ZERO {
            self.stamps.go_on(silence);
            self.since = self.references.now();
        }
        let now = self.stamps.now();
        let placed = self.stamps.locate(stamp, before);
        if self.stamps.now() > now {
            self.since = self.references.now();
        }
        placed
    }

    /// The time since the last time stamp if it is long, and otherwise zero.
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
    fn references_set_the_time_without_stamps() {
        let mut clock = ProgramClock::default();
        clock.on_reference(500);
        let first = clock.locate(SECOND, None);
        assert_eq!((first.time, clock.now()), (Time::ZERO, Time::ZERO));
        // Time stamps are normally up to a quarter of a second apart.
        clock.on_reference(500 + SECOND / 5);
        assert_eq!(clock.now(), Time::ZERO);
        let next = clock.locate(SECOND + SECOND / 5, Some(first.mark));
        assert_eq!(clock.now(), Time::from_millis(200));
        // Twenty seconds without a time stamp are no jump for the next one.
        for passed in 1..=20 {
            clock.on_reference(500 + SECOND / 5 + passed * SECOND);
        }
        assert_eq!(clock.now(), Time::from_millis(20_200));
        let last = clock.locate(21 * SECOND + SECOND / 2, Some(next.mark));
        assert_eq!((last.time, last.jump), (Time::from_millis(20_500), None));
        assert_eq!(clock.now(), last.time);
    }

    #[test]
    fn a_program_without_advancing_stamps_or_references_stands_still() {
        let mut clock = ProgramClock::default();
        let mut mark = None;
        for stamp in [SECOND, SECOND, SECOND - 3_600] {
            clock.on_reference(0);
            mark = Some(clock.locate(stamp, mark).mark);
            assert_eq!(clock.now(), Time::ZERO);
        }
        clock.locate(SECOND + 900, mark);
        assert_eq!(clock.now(), Time::from_millis(10));
    }
}
