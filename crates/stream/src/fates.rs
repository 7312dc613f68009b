//! The fates of sections that were submitted to a peer.

use std::collections::BTreeMap;

use comity::{Outcome, SectionId, StreamId};

use crate::missing::{Missing, MissingReason};
use crate::unit::MediaUnit;

/// Follows each section until its fate is known.
#[derive(Debug, Default)]
pub(crate) struct Fates {
    /// The entry for a list of gaps if the section does not arrive, by its number in the
    /// connection.
    open: BTreeMap<(StreamId, SectionId), Missing>,
    /// Sections that are known to be missing, until [`take`](Self::take).
    missing: Vec<Missing>,
}

impl Fates {
    /// Follows a section that has this number in the connection.
    pub(crate) fn follow(&mut self, id: SectionId, unit: &MediaUnit) {
        let missing = unit.missing(MissingReason::Closed);
        self.open.insert((unit.stream, id), missing);
    }

    /// The fate of a section is known. Returns whether it is missing.
    pub(crate) fn on_outcome(&mut self, outcome: &Outcome) -> bool {
        let Some(missing) = self.open.remove(&(outcome.stream, outcome.section)) else {
            return false;
        };
        let Some(reason) = MissingReason::of_fate(outcome.fate) else {
            return false;
        };
        let arrived = u64::from(outcome.acknowledged);
        self.missing.push(Missing {
            reason,
            missing_bytes: missing.length.map(|length| length.saturating_sub(arrived)),
            ..missing
        });
        true
    }

    /// The sections that were found to be missing since the last call.
    pub(crate) fn take(&mut self) -> Vec<Missing> {
        std::mem::take(&mut self.missing)
    }

    /// As [`take`](Self::take), with the sections whose fate will never be known.
    pub(crate) fn close(self) -> Vec<Missing> {
        let mut missing = self.missing;
        missing.extend(self.open.into_values());
        missing
    }
}
