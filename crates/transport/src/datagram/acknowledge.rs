//! Acknowledgement of arrived packets, once the application accepts their sections.

use comity_units::Time;

use super::connection::Connection;
use crate::timeline::Payload;

impl<P: Payload> Connection<P> {
    /// From now on sections are kept, but not acknowledged before
    /// [`take_sections`](Self::take_sections). To be called before anything arrives.
    pub fn await_taker(&mut self) {
        self.reception.await_taker();
    }

    /// Whether sections wait for somebody to take them.
    pub const fn awaits_taker(&self) -> bool {
        self.reception.awaits_taker()
    }

    /// There is somebody who takes sections: what came so far is acknowledged.
    pub fn take_sections(&mut self, now: Time) {
        if self.reception.take_sections(now) {
            // To the peer these sections take their room only now.
            self.advertised.demand();
        }
    }

    /// From now on nobody takes what arrives: no packet with sections is acknowledged, and the peer
    /// learns that there is no room. What has come stays, to be polled; what is not whole, and
    /// what is heard of from now on, becomes a gap.
    pub fn refuse_sections(&mut self) {
        if self.reception.refuse_sections() {
            self.advertised.demand();
        }
    }
}
