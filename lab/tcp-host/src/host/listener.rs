//! Listeners and their bounded backlog.

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::id::ConnectionId;

/// The minimum limit of connections in the handshake. With false SYNs at a megabit per second, the
/// oldest of this many arrived 300 ms ago.
pub(super) const HALF_OPEN: usize = 1_024;

/// A port that accepts connections.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) local: SocketAddr,
    /// The maximum number of connections that wait to be accepted.
    backlog: usize,
    /// Connections whose handshake is not complete, in order.
    half_open: VecDeque<ConnectionId>,
    /// Established connections in order, until the application accepts them.
    queue: VecDeque<ConnectionId>,
}

impl Listener {
    pub(super) const fn new(local: SocketAddr, backlog: usize) -> Self {
        Self {
            local,
            backlog,
            half_open: VecDeque::new(),
            queue: VecDeque::new(),
        }
    }

    /// Whether it accepts one more connection request.
    pub(super) fn has_room(&self) -> bool {
        self.queue.len() < self.backlog
    }

    /// The connection to end for one more request: the oldest one in the handshake. `None` while
    /// there is room.
    pub(super) fn surplus(&self) -> Option<ConnectionId> {
        match self.half_open.len() < self.backlog.max(HALF_OPEN) {
            true => None,
            false => self.oldest(),
        }
    }

    /// The oldest connection in the handshake.
    pub(super) fn oldest(&self) -> Option<ConnectionId> {
        self.half_open.front().copied()
    }

    pub(super) fn on_request(&mut self, id: ConnectionId) {
        self.half_open.push_back(id);
    }

    /// Records a complete handshake. Returns whether the connection can wait to be accepted.
    pub(super) fn on_connected(&mut self, id: ConnectionId) -> bool {
        self.half_open.retain(|known| *known != id);
        let has_room = self.has_room();
        if has_room {
            self.queue.push_back(id);
        }
        has_room
    }

    /// Removes a connection that ended before it was accepted.
    pub(super) fn forget(&mut self, id: ConnectionId) {
        self.half_open.retain(|known| *known != id);
        self.queue.retain(|known| *known != id);
    }

    pub(super) fn accept(&mut self) -> Option<ConnectionId> {
        self.queue.pop_front()
    }
}
