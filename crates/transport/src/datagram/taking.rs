//! Whether the application accepts sections, and so whether the receiver acknowledges them.
//!
//! The sender counts an acknowledged section as arrived. So the receiver acknowledges sections only
//! while an application accepts them:
//!
//! ```text
//!              take_sections               refuse_sections
//! NotYet ────────────────────────► Now ────────────────────► NoMore
//! kept, not acknowledged           kept and acknowledged     refused, not acknowledged
//! ```
//!
//! A connection begins with `Now`. One that a listener has admitted and the application has not
//! accepted begins with `NotYet`: on acceptance, all packets so far are acknowledged together. A
//! caller accepted at once sees no difference; for any other its packets count as lost, as on a
//! path that carries nothing.

use alloc::collections::BTreeMap;

use comity_units::{PacketNumber, Time};

use super::received::Ecn;

/// Packets whose acknowledgement may wait. What comes beyond counts as lost.
const MAX_WITHHELD: usize = 1_024;

/// Who takes the sections that arrive.
#[derive(Debug)]
pub(super) enum Taking {
    /// Nobody yet. The packets with sections that came so far, by number.
    NotYet(BTreeMap<PacketNumber, Withheld>),
    /// The application.
    Now,
    /// Nobody any more.
    NoMore,
}

/// A packet that is not acknowledged yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Withheld {
    pub(super) arrived_at: Time,
    pub(super) token: u8,
    pub(super) ecn: Ecn,
}

impl Taking {
    /// Whether this number has come and waits to be acknowledged.
    pub(super) fn withholds(&self, number: PacketNumber) -> bool {
        matches!(self, Self::NotYet(withheld) if withheld.contains_key(&number))
    }

    pub(super) const fn is_over(&self) -> bool {
        matches!(self, Self::NoMore)
    }

    /// There is an application from now on: the packets that waited for it, by number. `None` if it
    /// was there already, or is gone.
    pub(super) fn take(&mut self) -> Option<BTreeMap<PacketNumber, Withheld>> {
        let Self::NotYet(withheld) = self else {
            return None;
        };
        let withheld = core::mem::take(withheld);
        *self = Self::Now;
        Some(withheld)
    }

    /// Keeps the acknowledgement of a packet with sections until somebody takes them. `None` if it
    /// does not wait; otherwise whether there was room to remember it.
    pub(super) fn withhold(
        &mut self,
        now: Time,
        number: PacketNumber,
        token: u8,
        ecn: Ecn,
    ) -> Option<bool> {
        let Self::NotYet(withheld) = self else {
            return None;
        };
        let has_room = withheld.len() < MAX_WITHHELD;
        if has_room {
            let packet = Withheld {
                arrived_at: now,
                token,
                ecn,
            };
            withheld.insert(number, packet);
        }
        Some(has_room)
    }
}
