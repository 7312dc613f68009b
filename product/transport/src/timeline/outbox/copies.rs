//! Duplicate transmissions: chunks sent twice because a retransmission would be late.

use comity_units::{Span, Time};

use super::entry::Stage;
use super::{Chunk, Outbox, PathEstimate};
use crate::timeline::section::{Meta, Payload, Reliability, SectionId};
use crate::timeline::tokens::Borrowing;

impl<P: Payload> Outbox<P> {
    /// Whether a piece that leaves now could not be repaired in time, and is worth a duplicate
    /// transmission: it is a repair itself and other sections need its section, or its section has
    /// the highest importance and the path loses packets. Two lost bytes pay for one duplicate
    /// byte. Otherwise, sections that are late for lack of rate would take twice the rate, and
    /// delay those behind them.
    ///
    /// A section of the highest importance needs no such payment if its duplicate is worth it by
    /// itself:
    ///
    /// ```text
    /// share of lost bytes · length of the section > length of the piece
    /// ```
    ///
    /// The loss of one piece costs the whole section, and duplicates are charged to the token
    /// bucket.
    pub(super) fn is_last_chance(&self, now: Time, chunk: &Chunk, estimate: &PathEstimate) -> bool {
        if !self.enforces() || self.config.reliability == Reliability::None {
            return false;
        }
        let Some(entry) = self.entries.get(&(chunk.stream, chunk.section)) else {
            return false;
        };
        let (deadline, borrowing) = (entry.meta.deadline, entry.borrowing);
        if deadline.is_never() {
            return false;
        }
        let is_beyond_repair =
            |wait: Span| now + estimate.repair + estimate.one_way + wait > deadline;
        let is_paid_for = u64::from(chunk.length) <= self.duplication;
        let is_worth_it = borrowing > Borrowing::NONE
            && (chunk.is_retransmission
                || borrowing == Borrowing::ALL && estimate.lost_permille >= LOSSY_PERMILLE);
        let at_risk = u64::from(estimate.lost_permille) * u64::from(entry.meta.length) / 1_000;
        let pays_for_itself = entry.stands_out && at_risk > u64::from(chunk.length);
        is_paid_for && is_worth_it && is_beyond_repair(Span::ZERO)
            || pays_for_itself && is_beyond_repair(estimate.wait)
    }

    /// The next duplicate that is still worth sending, for a packet without other pieces of
    /// sections: the first transmission and the duplicate must not be lost together. For the same
    /// reason, a duplicate waits until all waiting pieces of its section have left. `room` is as
    /// with [`next_chunk_with`](Self::next_chunk_with); pieces that do not fit have no duplicate.
    pub fn next_copy(
        &mut self,
        now: Time,
        estimate: &PathEstimate,
        room: impl Fn(&Meta, SectionId, u32) -> u32,
    ) -> Option<Chunk> {
        if self.copies.is_empty() {
            return None;
        }
        self.look_ahead(now, estimate);
        let mut index = 0;
        while let Some(copy) = self.copies.get(index).copied() {
            let entry = self.entries.get(&(copy.stream, copy.section));
            if entry.is_some_and(|entry| entry.left() > 0) {
                index += 1;
                continue;
            }
            self.copies.remove(index);
            let Some(entry) = entry else {
                continue;
            };
            let meta = &entry.meta;
            let is_missing = !entry.acked.missing(copy.range()).is_empty();
            // Looking ahead has removed the duplicates of sections whose deadline has passed.
            if entry.stage == Stage::Live
                && is_missing
                && !self.is_out_of_reach(now, meta.deadline)
                && estimate.allows(entry.borrowing())
                && room(meta, self.floor(copy.stream), copy.offset) >= copy.length
            {
                return Some(self.hand_out_again(copy));
            }
        }
        None
    }

    fn hand_out_again(&mut self, copy: Chunk) -> Chunk {
        if let Some(entry) = self.entries.get_mut(&(copy.stream, copy.section)) {
            entry.twice.push(copy.range());
        }
        self.counters.sent_again += u64::from(copy.length);
        copy
    }
}

/// The share of lost packets from which the most important sections are sent twice if no repair is
/// possible.
const LOSSY_PERMILLE: u32 = 5;
