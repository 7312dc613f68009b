//! The sections that a list of gaps already contains.

use std::collections::{BTreeMap, BTreeSet};

use comity::{SectionId, StreamId};

use crate::missing::Missing;

/// The maximum number of remembered sections per stream: far more than can be in flight.
const REMEMBERED: usize = 4_096;

/// The sections that a sink reported as missing, so that a list contains each of them once. Several
/// receivers may miss the same section, and a damaged section may also be unwritten.
#[derive(Debug, Default)]
pub(crate) struct Named(BTreeMap<StreamId, BTreeSet<SectionId>>);

impl Named {
    /// Notes a section from the source, or the first section of a missing run. Number 0 means a new
    /// connection of the source, which restarts the numbers.
    pub(crate) fn see(&mut self, stream: StreamId, first: SectionId) {
        if first == SectionId(0) {
            self.0.remove(&stream);
        }
    }

    /// Whether a missing section is reported for the first time.
    pub(crate) fn is_first(&mut self, missing: &Missing) -> bool {
        let named = self.0.entry(missing.stream).or_default();
        let is_first = named.insert(missing.id);
        if named.len() > REMEMBERED {
            named.pop_first();
        }
        is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::missing::MissingReason;

    fn missing(stream: u16, id: u64) -> Missing {
        Missing {
            stream: StreamId(stream),
            id: SectionId(id),
            count: 1,
            kind: None,
            reason: MissingReason::Lost,
            length: None,
            missing_bytes: None,
            source_time: None,
        }
    }

    #[test]
    fn each_section_is_named_once_until_its_source_begins_anew() {
        let mut named = Named::default();
        for (stream, id) in [(1, 7), (1, 5), (2, 7)] {
            assert!(named.is_first(&missing(stream, id)));
            assert!(!named.is_first(&missing(stream, id)));
        }
        named.see(StreamId(1), SectionId(8));
        assert!(!named.is_first(&missing(1, 7)));
        named.see(StreamId(1), SectionId(0));
        assert!(named.is_first(&missing(1, 7)) && !named.is_first(&missing(2, 7)));
        for id in 0..3 * REMEMBERED as u64 {
            named.is_first(&missing(3, id));
        }
        assert_eq!(named.0[&StreamId(3)].len(), REMEMBERED);
    }
}
