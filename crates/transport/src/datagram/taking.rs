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
//! A connection begins with `Now`. A connection that a listener has admitted and the application
//! has not accepted begins with `NotYet`: on acceptance, all packets so far are acknowledged
//! together. A caller accepted at once sees no difference. For any other caller, its packets count
//! as lost, as on a path that carries nothing.

use alloc::collections::BTreeMap;

use comity_units::{PacketNumber, Time};

use crate::ecn::Ecn;

/// The maximum number of packets whose acknowledgement may wait. Further ones count as lost.
const MAX_WITHHELD: usize = 1_024;

/// Whether an application accepts the sections that arrive.
#[derive(Debug)]
pub(super) enum Taking {
    /// Not yet. The packets with sections that have arrived, by number.
    NotYet(BTreeMap<PacketNumber, Withheld>),
    /// Yes.
    Now,
    /// No longer.
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
    /// Whether a packet with this number has arrived and waits to be acknowledged.
    pub(super) fn withholds(&self, number: PacketNumber) -> bool {
        matches!(self, Self::NotYet(withheld) if withheld.contains_key(&number))
    }

    pub(super) const fn is_over(&self) -> bool {
        matches!(self, Self::NoMore)
    }

    /// The application accepts sections from now on. Returns the packets that waited for it, by
    /// number; `None` if it did so already, or has ended.
    pub(super) fn take(&mut self) -> Option<BTreeMap<PacketNumber, Withheld>> {
        let Self::NotYet(withheld) = self else {
            return None;
        };
        let withheld = core::mem::take(withheld);
        *self = Self::Now;
        Some(withheld)
    }

    /// Holds back the acknowledgement of a packet with sections until the application accepts them.
    /// Returns `None` if it need not wait; otherwise whether there was room to remember it.
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
