//! The sections that use the peer's credit.
//!
//! The peer reserves room for a whole section when its first byte arrives. Its credit is the room
//! that was unreserved at its report. Every begun section must find its room. The sender therefore
//! counts the whole length of two kinds of sections against the credit:
//!
//! * begun sections without an acknowledgement: the peer may have reserved their room;
//! * sections whose first acknowledgement came after the credit.
//!
//! The rest of a begun section needs no credit: its room is reserved.
//!
//! The peer also reports how many open sections it permits. All begun sections without an outcome
//! count, over all streams.

use super::entry::Entry;

/// The credit that a section uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// None: it has not begun, or is gone.
    None,
    /// The peer may have reserved its room.
    Open,
    /// The peer has reserved its room.
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

/// The credit that all sections use, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Claims {
    /// Of begun sections without an acknowledgement.
    pub(super) open: u64,
    /// Of all sections with an acknowledgement so far.
    pub(super) answered: u64,
    /// The number of begun sections without an outcome.
    pub(super) sections: u64,
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
