//! What the peer's credit is spent on.
//!
//! The peer sets room aside for all of a section when the first byte of it arrives. Its credit is
//! what it had not set aside when it said so. To be sure that each section that is begun finds its
//! room, the sender therefore counts against the credit the whole length of
//!
//! * every section that is begun and of which nothing is acknowledged: its room may be set aside or
//!   not;
//! * every section of which the first acknowledgement came after the credit was said.
//!
//! What of a section is left needs no credit: its room is there.
//!
//! The peer also says how many sections it keeps apart. Those that are begun and have no outcome
//! count, of all streams.

use super::Outbox;
use super::entry::{Entry, Urgency};
use super::queue::Key;
use crate::timeline::section::{Payload, SectionId};

/// What a section takes of the credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Nothing: it is not begun, or gone.
    None,
    /// The peer may have set its room aside.
    Open,
    /// The peer has set its room aside.
    Answered,
}

impl Claim {
    pub(super) fn of<P>(entry: &Entry<P>) -> Self {
        match (entry.sent, entry.acked.total()) {
            (0, _) => Self::None,
            (_, 0) => Self::Open,
            _ => Self::Answered,
        }
    }
}

/// What all sections take of the credit, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Claims {
    /// Of sections that are begun and of which nothing is acknowledged.
    open: u64,
    /// Of all sections of which something was ever acknowledged.
    answered: u64,
    /// How many sections are begun and have no outcome.
    sections: u64,
}

impl Claims {
    pub(super) fn replace(&mut self, before: Claim, after: Claim, length: u32) {
        if before == after {
            return;
        }
        let length = u64::from(length);
        match (before, after) {
            (Claim::None, _) => self.sections += 1,
            (_, Claim::None) => self.sections -= 1,
            _ => {}
        }
        match before {
            Claim::Open => self.open -= length,
            Claim::None | Claim::Answered => {}
        }
        match after {
            Claim::Open => self.open += length,
            Claim::Answered => self.answered += length,
            Claim::None => {}
        }
    }
}

impl<P: Payload> Outbox<P> {
    /// The lengths of all sections, in bytes, of which something was acknowledged since the
    /// beginning.
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

    /// The sections that may be begun with this credit, each alone, most urgent first. What is less
    /// urgent than one that may not is not among them, so that what is long has its turn.
    pub(super) fn to_begin(&self, credit: u64) -> impl Iterator<Item = (Urgency, Key)> {
        let fresh = self.fresh.iter();
        fresh.map_while(move |&(urgency, key)| Some((urgency, self.in_place_of(key, credit)?)))
    }

    /// The section to begin where `key` is to be begun; `None` when the credit does not allow it.
    ///
    /// What has no deadline is given away only when all before it in its stream was. Where the peer
    /// has not room for all that waits, such sections are begun in the order of their stream: else
    /// one that nothing but its predecessors could free might take their room.
    fn in_place_of(&self, key: Key, credit: u64) -> Option<Key> {
        if self.claims.sections >= self.intake.max_open() {
            return None;
        }
        let left = credit.saturating_sub(self.claims.open);
        let entry = self.entries.get(&key)?;
        let is_scarce = left < self.accounts.bytes.queued;
        let expires = self.enforces() && !entry.meta.deadline.is_never();
        let (key, entry) = match is_scarce && !expires {
            false => (key, entry),
            true => {
                let stream = (key.0, SectionId(0))..=key;
                let mut before = self.entries.range(stream);
                let (first, entry) = before.find(|(_, entry)| entry.waits_to_begin())?;
                (*first, entry)
            }
        };
        (u64::from(entry.meta.length) <= left).then_some(key)
    }
}
