//! Who takes the sections that arrive.
//!
//! An acknowledgement says that a section has arrived, and its sender counts it so. It is therefore
//! not given before there is somebody to take the section, nor once nobody will:
//!
//! ```text
//!              take_sections               refuse_sections
//! NotYet ────────────────────────► Now ────────────────────► NoMore
//! kept, not acknowledged           kept and acknowledged     refused, not acknowledged
//! ```
//!
//! A connection begins with `Now`. One that a listener has let in and nobody has accepted waits
//! with `NotYet`: what came is acknowledged together when somebody takes it, so that whoever is
//! taken at once notices nothing, and whoever is not has its packets counted as lost, as on a path
//! that carries nothing.

use alloc::collections::BTreeMap;

use comity_units::{PacketNumber, Time};

use super::connection::Connection;
use super::received::Ecn;
use crate::timeline::Payload;

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
    arrived_at: Time,
    ecn: Ecn,
}

impl Taking {
    /// Whether this number has come and waits to be acknowledged.
    pub(super) fn withholds(&self, number: PacketNumber) -> bool {
        matches!(self, Self::NotYet(withheld) if withheld.contains_key(&number))
    }

    pub(super) const fn is_over(&self) -> bool {
        matches!(self, Self::NoMore)
    }
}

impl<P: Payload> Connection<P> {
    /// From now on sections are kept, but not acknowledged before
    /// [`take_sections`](Self::take_sections). To be called before anything arrives.
    pub fn await_taker(&mut self) {
        self.taking = Taking::NotYet(BTreeMap::new());
    }

    /// Whether sections wait for somebody to take them.
    pub const fn awaits_taker(&self) -> bool {
        matches!(self.taking, Taking::NotYet(_))
    }

    /// There is somebody who takes sections: what came so far is acknowledged.
    pub fn take_sections(&mut self, now: Time) {
        let Taking::NotYet(withheld) = &mut self.taking else {
            return;
        };
        let withheld = core::mem::take(withheld);
        self.taking = Taking::Now;
        for (number, packet) in &withheld {
            self.received
                .on_packet(packet.arrived_at, *number, packet.ecn, true);
        }
        if !withheld.is_empty() {
            self.received.demand(now);
            // To the peer these sections take their room only now.
            self.control.credit = true;
        }
    }

    /// From now on nobody takes what arrives: no packet with sections is acknowledged, and the peer
    /// is told that there is no room. What has come stays, to be polled; what is not whole, and
    /// what is heard of from now on, becomes a gap.
    pub fn refuse_sections(&mut self) {
        if !self.taking.is_over() {
            self.taking = Taking::NoMore;
            self.control.credit = true;
        }
    }

    /// A packet that asks for an answer, or does not, is acknowledged in its time; returns whether
    /// there was room to remember it.
    pub(super) fn acknowledge(
        &mut self,
        now: Time,
        number: PacketNumber,
        ecn: Ecn,
        (has_sections, wants_answer): (bool, bool),
    ) -> bool {
        if has_sections && let Taking::NotYet(withheld) = &mut self.taking {
            let has_room = withheld.len() < MAX_WITHHELD;
            if has_room {
                let arrived_at = now;
                withheld.insert(number, Withheld { arrived_at, ecn });
            }
            return has_room;
        }
        self.received.on_packet(now, number, ecn, wants_answer);
        true
    }
}
