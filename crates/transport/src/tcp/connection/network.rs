//! What a host on a real network needs beyond a simulated one.

use alloc::sync::Arc;

use comity_units::Time;

use super::super::config::Config;
use super::super::segment::{Flags, Segment};
use super::super::state::State;
use super::Connection;

impl Connection {
    /// Limits the payload of later segments to `mss` bytes, because the path carries no larger
    /// packets. Data in flight keeps its segment boundaries: the host cuts a retransmission that no
    /// longer fits. Does nothing if segments are as small already.
    pub fn limit_mss(&mut self, mss: u32) {
        if mss < self.config.mss {
            self.config = Arc::new(Config {
                mss: mss.max(1),
                ..*self.config
            });
        }
    }

    /// A keep-alive probe: an acknowledgement numbered before the first unacknowledged byte, which
    /// the peer has to answer (RFC 9293, section 3.8.4). Returns `None` outside of the synchronized
    /// states, and in TIME-WAIT.
    pub fn keep_alive(&mut self, now: Time) -> Option<Segment> {
        let is_open =
            self.is_synchronized() && !matches!(self.state, State::SynReceived | State::TimeWait);
        let before = self.sender.stream.una.saturating_sub(1);
        is_open.then(|| self.segment(now, before, 0, Flags::ACK))
    }
}
