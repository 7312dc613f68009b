//! The sections that use the peer's credit.
//!
//! The peer sets room aside for a whole section when its first byte arrives. Its credit is the
//! room that it had not set aside when it reported the credit. Every section that is begun must
//! find its room. The sender therefore counts the whole length of two kinds of section against the
//! credit:
//!
//! * sections that are begun without any acknowledgement: the peer may have set their room aside;
//! * sections whose first acknowledgement came after the credit.
//!
//! The rest of a section that is begun needs no credit: its room is set aside.
//!
//! The peer also reports how many sections it keeps apart. Sections of all streams count that are
//! begun and have no outcome.

use super::entry::Entry;

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
    /// Of sections that are begun, without any acknowledgement.
    pub(super) open: u64,
    /// Of all sections with an acknowledgement so far.
    pub(super) answered: u64,
    /// How many sections are begun and have no outcome.
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
