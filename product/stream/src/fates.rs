//! The fates of sections that were submitted to a peer.

use std::collections::BTreeMap;

use comity::{Outcome, SectionId, StreamId};

use crate::missing::{Missing, MissingReason};
use crate::unit::MediaUnit;

/// Follows each section until its fate is known.
#[derive(Debug, Default)]
pub(crate) struct Fates {
    /// Sections by their number in the connection.
    open: BTreeMap<(StreamId, SectionId), Entries>,
    /// Sections that are known to be missing or damaged, until [`take`](Self::take).
    missing: Vec<Missing>,
}

/// The entries of a section for a list of gaps.
#[derive(Debug)]
struct Entries {
    if_lost: Missing,
    if_arrived: Option<Missing>,
}

impl Fates {
    /// Follows a section that has this number in the connection.
    pub(crate) fn follow(&mut self, id: SectionId, unit: &MediaUnit) {
        let entries = Entries {
            if_lost: unit.missing(MissingReason::Closed),
            if_arrived: unit.is_damaged.then(|| unit.damaged()),
        };
        self.open.insert((unit.stream, id), entries);
    }

    /// Records the fate of a section. Returns whether it is listed as a gap.
    pub(crate) fn on_outcome(&mut self, outcome: &Outcome) -> bool {
        let Some(entries) = self.open.remove(&(outcome.stream, outcome.section)) else {
            return false;
        };
        let arrived = u64::from(outcome.acknowledged);
        let missing = match MissingReason::of_fate(outcome.fate) {
            Some(reason) => Some(Missing {
                reason,
                missing_bytes: { entries.if_lost.length }
                    .map(|length| length.saturating_sub(arrived)),
                ..entries.if_lost
            }),
            None => entries.if_arrived,
        };
        let is_listed = missing.is_some();
        self.missing.extend(missing);
        is_listed
    }

    /// The sections that were found to be missing since the last call.
    pub(crate) fn take(&mut self) -> Vec<Missing> {
        std::mem::take(&mut self.missing)
    }

    /// Like [`take`](Self::take), with the sections whose fate will never be known.
    pub(crate) fn close(self) -> Vec<Missing> {
        let mut missing = self.missing;
        missing.extend(self.open.into_values().map(|entries| entries.if_lost));
        missing
    }
}
