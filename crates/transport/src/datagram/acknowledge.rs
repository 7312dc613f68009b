//! When what arrives is acknowledged: once somebody takes it.

use alloc::collections::BTreeMap;

use comity_units::{PacketNumber, Time};

use super::connection::Connection;
use super::received::Ecn;
use super::taking::Taking;
use crate::timeline::Payload;

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
        let Some(withheld) = self.taking.take() else {
            return;
        };
        for (number, packet) in &withheld {
            self.received
                .on_packet(packet.arrived_at, *number, packet.ecn, true);
        }
        if !withheld.is_empty() {
            self.received.demand(now);
            // To the peer these sections take their room only now.
            self.advertised.demand();
        }
    }

    /// From now on nobody takes what arrives: no packet with sections is acknowledged, and the peer
    /// learns that there is no room. What has come stays, to be polled; what is not whole, and
    /// what is heard of from now on, becomes a gap.
    pub fn refuse_sections(&mut self) {
        if !self.taking.is_over() {
            self.taking = Taking::NoMore;
            self.advertised.demand();
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
        if has_sections && let Some(has_room) = self.taking.withhold(now, number, ecn) {
            return has_room;
        }
        self.received.on_packet(now, number, ecn, wants_answer);
        true
    }
}
