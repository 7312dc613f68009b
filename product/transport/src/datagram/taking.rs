//! Whether the application accepts sections, and therefore whether the receiver acknowledges them.
//!
//! The sender counts an acknowledged section as arrived. The receiver therefore acknowledges
//! sections only while an application accepts them:
//!
//! ```text
//!              take_sections               refuse_sections
//! NotYet ────────────────────────► Now ────────────────────► NoMore
//! kept, not acknowledged           kept and acknowledged     refused, not acknowledged
//! ```
//!
//! A connection begins with `Now`. A connection that a listener has admitted and the application
//! has not accepted begins with `NotYet`. When the application accepts it, all packets so far are
//! acknowledged together. To a caller that is accepted at once, this makes no difference. To any
//! other caller, its packets count as lost, as on a path that carries nothing.

use alloc::collections::BTreeMap;

use comity_units::{PacketNumber, Time};

use comity_congestion::Ecn;

/// The maximum number of packets whose acknowledgement may wait. Further packets count as lost.
const MAX_WITHHELD: usize = 1_024;

/// Whether an application accepts the sections that arrive.
#[derive(Debug)]
pub(super) enum Taking {
    /// Not yet. The map has the packets with sections that have arrived, by number.
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

    /// The application accepts sections from now on. Returns the packets that waited for this, by
    /// number; `None` if it accepted sections already, or accepts no more.
    pub(super) fn take(&mut self) -> Option<BTreeMap<PacketNumber, Withheld>> {
        let Self::NotYet(withheld) = self else {
            return None;
        };
        let withheld = core::mem::take(withheld);
        *self = Self::Now;
        Some(withheld)
    }

    /// Withholds the acknowledgement of a packet with sections until the application accepts them.
    /// Returns `None` if the acknowledgement need not wait. Otherwise returns whether there was
    /// room to remember the packet.
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
