//! The sections that may begin with the peer's credit.

use super::Outbox;
use super::entry::{Entry, Key, Urgency};
use crate::timeline::section::{Payload, SectionId, StreamId};

impl<P: Payload> Outbox<P> {
    /// The total length in bytes of all sections with an acknowledgement since the beginning.
    pub const fn answered(&self) -> u64 {
        self.claims.answered
    }

    /// Whether data may leave with this credit
    /// ([`PathEstimate::credit`](super::PathEstimate::credit)).
    pub fn has_credit(&self, credit: u64) -> bool {
        !self.begun.is_empty()
            || !self.repeats.is_empty()
            || !self.copies.is_empty()
            || self.to_begin(credit).next().is_some()
    }

    /// The sections that may begin with this credit, each on its own, most urgent first. The list
    /// ends before the first section that the credit does not permit, so that a long section gets
    /// its turn.
    pub(super) fn to_begin(&self, credit: u64) -> impl Iterator<Item = (Urgency, Key)> {
        let fresh = self.fresh.iter();
        fresh.map_while(move |&(urgency, key)| Some((urgency, self.next_to_begin(key, credit)?)))
    }

    /// The section to begin at the turn of `key`; `None` if the credit does not permit it.
    ///
    /// The receiver delivers a section without a deadline only after all earlier sections of its
    /// stream. If the peer lacks room for the whole queue, such sections therefore begin in the
    /// order of their stream. Otherwise a section might take the room of its own predecessors.
    /// While there was room for all, begun sections may have overtaken others; the overtaken ones
    /// begin first. The peer has room for them, but none for a long section of another stream until
    /// the sections that wait for them are delivered.
    fn next_to_begin(&self, key: Key, credit: u64) -> Option<Key> {
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

    /// The first section of a stream that has not begun, among those before `end`.
    fn first_to_begin(&self, stream: StreamId, end: SectionId) -> Option<(Key, &Entry<P>)> {
        let mut before = self.entries.range((stream, SectionId(0))..(stream, end));
        let (key, entry) = before.find(|(_, entry)| entry.waits_to_begin())?;
        Some((*key, entry))
    }
}
