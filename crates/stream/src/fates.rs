//! The fates of sections that were submitted to a peer.

use std::collections::BTreeMap;

use comity::{Connection, Event, Events, Outcome, SectionId, StreamId};

use crate::missing::{Missing, MissingReason};
use crate::unit::MediaUnit;

/// Follows each section until its fate is known.
#[derive(Debug)]
pub(crate) struct Fates {
    events: Events,
    /// The entry for a list of gaps if the section does not arrive, by its number in the
    /// connection.
    open: BTreeMap<(StreamId, SectionId), Missing>,
}

impl Fates {
    pub(crate) fn new(connection: &Connection) -> Self {
        Self {
            events: connection.events(),
            open: BTreeMap::new(),
        }
    }

    /// Follows a section that has this number in the connection.
    pub(crate) fn follow(&mut self, id: SectionId, unit: &MediaUnit) {
        let missing = unit.missing(MissingReason::Closed);
        self.open.insert((unit.stream, id), missing);
    }

    /// Adds the sections that are now known to be missing.
    pub(crate) fn settle(&mut self, missing: &mut Vec<Missing>) {
        while let Some(event) = self.events.try_next() {
            if let Event::Outcome(outcome) = event {
                missing.extend(self.on_outcome(&outcome));
            }
        }
    }

    /// Adds the sections whose fate will never be known, too.
    pub(crate) fn close(mut self, missing: &mut Vec<Missing>) {
        self.settle(missing);
        missing.extend(self.open.into_values());
    }

    fn on_outcome(&mut self, outcome: &Outcome) -> Option<Missing> {
        let missing = self.open.remove(&(outcome.stream, outcome.section))?;
        let arrived = u64::from(outcome.acknowledged);
        Some(Missing {
            reason: MissingReason::of_fate(outcome.fate)?,
            missing_bytes: missing.length.map(|length| length.saturating_sub(arrived)),
            ..missing
        })
    }
}
