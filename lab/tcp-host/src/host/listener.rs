//! Listeners and their bounded backlog.

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::id::ConnectionId;

/// Connections in the handshake, at least. At a megabit of false SYNs in a second, the oldest of so
/// many came 300 ms ago.
pub(super) const HALF_OPEN: usize = 1_024;

/// A port that accepts connections.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) local: SocketAddr,
    /// The maximum number of connections not accepted.
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

    /// Whether it takes one more connection request.
    pub(super) fn has_room(&self) -> bool {
        self.queue.len() < self.backlog
    }

    /// The connection that has to make room for one more request: the one whose handshake takes
    /// longest.
    pub(super) fn surplus(&self) -> Option<ConnectionId> {
        match self.half_open.len() < self.backlog.max(HALF_OPEN) {
            true => None,
            false => self.oldest(),
        }
    }

    /// The connection whose handshake takes longest.
    pub(super) fn oldest(&self) -> Option<ConnectionId> {
        self.half_open.front().copied()
    }

    pub(super) fn on_request(&mut self, id: ConnectionId) {
        self.half_open.push_back(id);
    }

    /// The handshake is complete; returns whether the connection can wait to be accepted.
    pub(super) fn on_connected(&mut self, id: ConnectionId) -> bool {
        self.half_open.retain(|known| *known != id);
        let has_room = self.has_room();
        if has_room {
            self.queue.push_back(id);
        }
        has_room
    }

    /// A connection ended before it was accepted.
    pub(super) fn forget(&mut self, id: ConnectionId) {
        self.half_open.retain(|known| *known != id);
        self.queue.retain(|known| *known != id);
    }

    pub(super) fn accept(&mut self) -> Option<ConnectionId> {
        self.queue.pop_front()
    }
}
