//! Which sections may be begun with the credit of the peer.

use super::Outbox;
use super::entry::{Entry, Key, Urgency};
use crate::timeline::section::{Payload, SectionId, StreamId};

impl<P: Payload> Outbox<P> {
    /// The total length in bytes of all sections with an acknowledgement since the beginning.
    pub const fn answered(&self) -> u64 {
        self.claims.answered
    }

    /// Whether something may leave with this credit
    /// ([`PathEstimate::credit`](super::PathEstimate::credit)).
    pub fn has_credit(&self, credit: u64) -> bool {
        !self.begun.is_empty()
            || !self.repeats.is_empty()
            || !self.copies.is_empty()
            || self.to_begin(credit).next().is_some()
    }

    /// The sections that may be begun with this credit, each alone, most urgent first. The list
    /// ends before the first section that the credit does not allow, so that a long section has its
    /// turn.
    pub(super) fn to_begin(&self, credit: u64) -> impl Iterator<Item = (Urgency, Key)> {
        let fresh = self.fresh.iter();
        fresh.map_while(move |&(urgency, key)| Some((urgency, self.in_place_of(key, credit)?)))
    }

    /// The section to begin where `key` is to be begun; `None` when the credit does not allow it.
    ///
    /// The receiver hands out a section without a deadline only after all sections before it in its
    /// stream. If the peer lacks room for the whole queue, such sections are therefore begun in the
    /// order of their stream. Otherwise a section might take the room of the predecessors that it
    /// waits for. Sections that were begun while there was room for all may have overtaken others:
    /// these come first. The peer has room for them, and none for a long section of another stream
    /// before those that wait for them are handed out.
    fn in_place_of(&self, key: Key, credit: u64) -> Option<Key> {
        if self.claims.sections >= self.intake.max_open() {
            return None;
        }
        let left = credit.saturating_sub(self.claims.open);
        let entry = self.entries.get(&key)?;
        let is_scarce = left < self.counters.bytes.queued;
        let expires = self.enforces() && !entry.meta.deadline.is_never();
        let (key, entry) = match is_scarce && !expires {
            false => (key, entry),
            true => {
                let overtaken = self.streams.iter().find_map(|(&stream, state)| {
                    self.first_to_begin(stream, SectionId(state.begun))
                });
                overtaken.or_else(|| self.first_to_begin(key.0, SectionId(key.1.0 + 1)))?
            }
        };
        (u64::from(entry.meta.length) <= left).then_some(key)
    }

    /// The first section of a stream that waits to begin, among those before `end`.
    fn first_to_begin(&self, stream: StreamId, end: SectionId) -> Option<(Key, &Entry<P>)> {
        let mut before = self.entries.range((stream, SectionId(0))..(stream, end));
        let (key, entry) = before.find(|(_, entry)| entry.waits_to_begin())?;
        Some((*key, entry))
    }
}
