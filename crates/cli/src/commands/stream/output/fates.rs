//! What became of the sections that a peer was given.

use std::collections::BTreeMap;
use std::time::Instant;

use comity::{Connection, Event, Events, Fate, Outcome, SectionId, StreamId};

use super::super::media_unit::{MediaUnit, Missing, kind, kind_of};

/// Follows each section until it is known what became of it.
#[derive(Debug)]
pub(super) struct Fates {
    events: Events,
    open: BTreeMap<(StreamId, SectionId), Given>,
}

/// A section of which it is not known yet.
#[derive(Clone, Copy, Debug)]
struct Given {
    /// At the input.
    number: u64,
    kind: Option<&'static str>,
    length: u64,
    source_time: Instant,
}

impl Given {
    fn of(passing: &MediaUnit) -> Self {
        Self {
            number: passing.number,
            kind: match &passing.media {
                Some(section) => Some(kind(section.frame)),
                None => kind_of(&passing.payload),
            },
            length: passing.payload.len() as u64,
            source_time: passing.source_time,
        }
    }

    fn missing(self, stream: u16, reason: &'static str, arrived: u64) -> Missing {
        Missing {
            stream,
            number: self.number,
            kind: self.kind,
            reason,
            length: Some(self.length),
            missing_bytes: Some(self.length.saturating_sub(arrived)),
            source_time: Some(self.source_time),
        }
    }
}

/// A section that was given to nobody.
pub(super) fn never_given(passing: &MediaUnit, reason: &'static str) -> Missing {
    Given::of(passing).missing(passing.stream, reason, 0)
}

impl Fates {
    pub(super) fn new(connection: &Connection) -> Self {
        Self {
            events: connection.events(),
            open: BTreeMap::new(),
        }
    }

    /// Follows a section that has this number in the connection.
    pub(super) fn follow(&mut self, id: SectionId, passing: &MediaUnit) {
        self.open
            .insert((StreamId(passing.stream), id), Given::of(passing));
    }

    /// Adds those that are known by now not to have arrived whole.
    pub(super) fn settle(&mut self, missing: &mut Vec<Missing>) {
        while let Some(event) = self.events.try_next() {
            if let Event::Outcome(outcome) = event {
                missing.extend(self.on_outcome(&outcome));
            }
        }
    }

    /// Adds those of which nothing more will be known.
    pub(super) fn close(mut self, missing: &mut Vec<Missing>) {
        self.settle(missing);
        let open = std::mem::take(&mut self.open);
        missing.extend(
            open.into_iter()
                .map(|((stream, _), given)| given.missing(stream.0, "closed", 0)),
        );
    }

    fn on_outcome(&mut self, outcome: &Outcome) -> Option<Missing> {
        let given = self.open.remove(&(outcome.stream, outcome.section))?;
        let reason = reason(outcome.fate)?;
        Some(given.missing(outcome.stream.0, reason, outcome.acknowledged.into()))
    }
}

/// The word for why a section did not arrive, as far as its sender knows; `None` where it did.
const fn reason(fate: Fate) -> Option<&'static str> {
    Some(match fate {
        Fate::Acknowledged => return None,
        Fate::Cancelled => "cancelled",
        Fate::Dependency => "dependency",
        Fate::ExpiredInNetwork | Fate::ExpiredUnsent => "expired",
        Fate::Infeasible => "infeasible",
        Fate::Lost => "lost",
        Fate::Shed => "shed",
    })
}
