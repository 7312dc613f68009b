//! The sections of tables that a reader has sent, for the recognition of repetitions.

use std::collections::BTreeMap;

use bytes::Bytes as Payload;
use comity_units::{Span, Time};

/// The maximum number of table sections remembered for comparison. Other sections are always sent.
const REMEMBERED: usize = 1024;

/// The last sent version of each repeated table.
#[derive(Debug)]
pub(super) struct SentTables {
    next: u64,
    latest: BTreeMap<Key, (Sent, Payload)>,
}

/// The PID of a section, and its identity there.
type Key = (u16, [u8; 4]);

/// The section that contains a table: its number, and when it was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) number: u64,
    pub(super) when: Time,
}

impl SentTables {
    /// Begins with the section of this number.
    pub(super) const fn new(next: u64) -> Self {
        Self {
            next,
            latest: BTreeMap::new(),
        }
    }

    /// Finds the section of a table, which is refreshed after this time. Returns it, and whether it
    /// is to be sent now. A table without a key is never compared.
    pub(super) fn find(
        &mut self,
        key: Option<Key>,
        payload: &Payload,
        now: Time,
        refresh: Span,
    ) -> (Sent, bool) {
        let last = key.and_then(|key| self.latest.get(&key));
        if let Some((sent, known)) = last
            && known == payload
            && now.saturating_since(sent.when) < refresh
        {
            return (*sent, false);
        }
        let sent = Sent {
            number: self.next,
            when: now,
        };
        let has_room = last.is_some() || self.latest.len() < REMEMBERED;
        if let Some(key) = key.filter(|_| has_room) {
            self.latest.insert(key, (sent, payload.clone()));
        }
        self.next += 1;
        (sent, true)
    }
}
