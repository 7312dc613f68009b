//! The operations that a host on a real network needs in addition to a simulated one.

use alloc::sync::Arc;

use comity_units::{DataSize, Time};

use super::super::config::Config;
use super::super::segment::{Flags, Segment};
use super::super::sender::Upcoming;
use super::super::state::State;
use super::Connection;

impl Connection {
    /// Sets the payload of later segments when the path MTU changes. Data in flight keeps its
    /// segment boundaries: the host cuts a retransmission that no longer fits.
    pub fn set_mss(&mut self, mss: u32) {
        let mss = mss.max(1);
        if mss != self.config.mss {
            self.config = Arc::new(Config {
                mss,
                ..*self.config
            });
        }
    }

    /// Sets the receive buffer from now on. The scale of windows stays, and so do the windows that
    /// were offered: call it before the SYN leaves, or to enlarge the buffer.
    pub fn set_receive_buffer(&mut self, receive_buffer: DataSize) {
        if receive_buffer != self.config.receive_buffer {
            self.config = Arc::new(Config {
                receive_buffer,
                ..*self.config
            });
        }
    }

    /// Announces the data that the application is about to submit. Only [`Config::skip_segments`]
    /// needs it.
    pub fn set_upcoming(&mut self, upcoming: Upcoming) {
        self.sender.set_upcoming(upcoming);
    }

    /// Returns the first `length` bytes in flight as one segment, which may be larger than others:
    /// a probe of the path MTU. It does not count as a retransmission. A peer that has the bytes
    /// reports them as a duplicate (RFC 2883).
    ///
    /// Returns `None` without duplicate SACKs and with a timeline, and while fewer bytes are in
    /// flight, one of them was skipped, or a loss is under repair.
    pub fn path_probe(&mut self, now: Time, length: u32) -> Option<Segment> {
        let stream = &self.sender.stream;
        let is_in_flight = stream.max.min(stream.end) >= stream.una + u64::from(length);
        let is_quiet = stream.expiries == 0 && !self.sender.is_recovering();
        let is_open = self.is_synchronized() && stream.una > 0;
        let is_understood = self.config.sack && self.config.timeline.is_none();
        let una = stream.una;
        let has_left = !self.sender.holds(una, una + u64::from(length));
        let may_probe =
            is_in_flight && has_left && is_quiet && is_open && is_understood && length > 0;
        may_probe.then(|| self.segment(now, una, length, Flags::ACK))
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
