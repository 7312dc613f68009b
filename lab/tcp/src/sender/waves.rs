//! The exchange with a controller's half at the receiver: TCP-Real's waves and levels.

use core::num::NonZeroU16;

use comity_congestion::{Report, Tag};

use super::super::segment::Wave;

/// The tags of departing segments, and the level that the receiver reported.
#[derive(Debug)]
pub(super) struct Waves {
    /// The tag of the last segment.
    last: Option<Wave>,
    /// The level of the last report, if the controller has kept it since; zero for none.
    level: u16,
    /// Whether the controller has a half at the receiver and provides a tag for each segment.
    is_metered: bool,
}

impl Waves {
    pub(super) const fn new(is_metered: bool) -> Self {
        Self {
            last: None,
            level: 0,
            is_metered,
        }
    }

    #[inline]
    pub(super) const fn is_metered(&self) -> bool {
        self.is_metered
    }

    #[inline]
    pub(super) const fn last(&self) -> Option<Wave> {
        self.last
    }

    /// Records the tag of a departing segment. TCP carries waves only.
    pub(super) fn on_sent(&mut self, tag: Tag) {
        self.last = match tag {
            Tag::Wave {
                wave,
                segments,
                position,
            } => NonZeroU16::new(segments).map(|segments| Wave {
                wave,
                segments,
                position,
            }),
            _ => None,
        };
    }

    /// Whether a report is new to the controller. Every acknowledgement carries a level, which
    /// rarely changes.
    pub(super) const fn on_report(&mut self, report: &Report) -> bool {
        match *report {
            Report::Wave { level } => core::mem::replace(&mut self.level, level) != level,
            _ => true,
        }
    }

    /// Clears the level. A timeout changes the controller's window, so the next report of a level
    /// is new to it.
    pub(super) const fn on_timeout(&mut self) {
        self.level = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_reported_when_it_changes_and_after_a_timeout() {
        let mut waves = Waves::new(true);
        let report = |level| Report::Wave { level };
        assert!(waves.on_report(&report(4)));
        assert!(!waves.on_report(&report(4)));
        assert!(waves.on_report(&report(5)));
        waves.on_timeout();
        assert!(waves.on_report(&report(5)));
        assert!(waves.on_report(&Report::None), "not a level");
    }

    #[test]
    fn only_waves_are_tags_of_segments() {
        let mut waves = Waves::new(true);
        let wave = |segments| Tag::Wave {
            wave: 3,
            segments,
            position: 1,
        };
        waves.on_sent(wave(8));
        assert_eq!(waves.last().map(|wave| wave.segments.get()), Some(8));
        waves.on_sent(wave(0));
        assert_eq!(waves.last(), None);
        waves.on_sent(wave(8));
        waves.on_sent(Tag::None);
        assert_eq!(waves.last(), None);
    }
}
