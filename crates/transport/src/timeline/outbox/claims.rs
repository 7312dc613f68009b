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
    /// Of sections that are begun and of which nothing is acknowledged.
    pub(super) open: u64,
    /// Of all sections of which something was ever acknowledged.
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
