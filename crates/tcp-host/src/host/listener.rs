//! Listeners and their bounded backlog.

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::id::ConnectionId;

/// A port that accepts connections.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) local: SocketAddr,
    /// The maximum number of connections in the handshake, and that of connections not accepted.
    backlog: usize,
    /// Connections whose handshake is not complete.
    half_open: usize,
    /// Established connections in order, until the application accepts them.
    queue: VecDeque<ConnectionId>,
}

impl Listener {
    pub(super) const fn new(local: SocketAddr, backlog: usize) -> Self {
        Self {
            local,
            backlog,
            half_open: 0,
            queue: VecDeque::new(),
        }
    }

    /// Whether it takes one more connection request. All of them may complete, so the queue limits
    /// both.
    pub(super) fn has_room(&self) -> bool {
        self.half_open < self.backlog && self.queue.len() < self.backlog
    }

    pub(super) const fn on_request(&mut self) {
        self.half_open += 1;
    }

    pub(super) fn on_connected(&mut self, id: ConnectionId) {
        self.half_open = self.half_open.saturating_sub(1);
        self.queue.push_back(id);
    }

    /// A connection ended before it was accepted.
    pub(super) fn forget(&mut self, id: ConnectionId) {
        match self.queue.iter().position(|queued| *queued == id) {
            Some(at) => drop(self.queue.remove(at)),
            None => self.half_open = self.half_open.saturating_sub(1),
        }
    }

    pub(super) fn accept(&mut self) -> Option<ConnectionId> {
        self.queue.pop_front()
    }
}
