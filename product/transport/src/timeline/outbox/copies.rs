//! Duplicate transmissions: chunks sent twice because a retransmission would be late.

use comity_units::{Span, Time};

use super::entry::Stage;
use super::{Chunk, Outbox, PathEstimate};
use crate::timeline::section::{Meta, Payload, Reliability, SectionId};
use crate::timeline::tokens::Borrowing;

impl<P: Payload> Outbox<P> {
    /// Whether a piece that leaves now is worth a duplicate transmission, because a repair would be
    /// late. This holds for a repair of a section above the lowest importance of its stream, and
    /// for any piece of a section of the highest importance if the path loses packets. Two lost
    /// bytes pay for one duplicate byte. Without this bound, sections that are late for lack of
    /// rate would take twice the rate and delay those behind them.
    ///
    /// A section of the highest importance is exempt from this bound if its duplicate is worth it
    /// by itself:
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

    /// Returns the next duplicate that is still worth sending. It belongs in a packet without other
    /// pieces of sections, so that the first transmission and the duplicate are not lost together.
    /// For the same reason, a duplicate waits until all waiting pieces of its section have left.
    /// `room` is as with [`next_chunk_with`](Self::next_chunk_with); pieces that do not fit have no
    /// duplicate.
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
            // `look_ahead` has already removed the duplicates of sections whose deadline has
            // passed.
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

/// The share of lost bytes from which the most important sections are sent twice if no repair is
/// possible.
const LOSSY_PERMILLE: u32 = 5;
