//! Acknowledgement of arrived packets, once the application accepts their sections.

use comity_units::Time;

use super::connection::Connection;
use crate::timeline::Payload;

impl<P: Payload> Connection<P> {
    /// Keeps sections from now on, but does not acknowledge them before
    /// [`take_sections`](Self::take_sections). Call this before anything arrives.
    pub fn await_taker(&mut self) {
        self.reception.await_taker();
    }

    /// Whether sections wait for [`take_sections`](Self::take_sections).
    pub const fn awaits_taker(&self) -> bool {
        self.reception.awaits_taker()
    }

    /// Accepts sections from now on, and acknowledges those that have arrived.
    pub fn take_sections(&mut self, now: Time) {
        if self.reception.take_sections(now) {
            // For the peer, these sections take up room only now.
            self.advertised.demand();
        }
    }

    /// Accepts no more sections: packets with sections are not acknowledged from now on, and the
    /// peer gets a credit of zero. Sections that have arrived can still be polled. Incomplete
    /// sections, and sections announced from now on, become gaps.
    pub fn refuse_sections(&mut self) {
        if self.reception.refuse_sections() {
            self.advertised.demand();
        }
    }
}
