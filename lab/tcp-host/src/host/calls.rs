//! The calls of applications.

use std::net::{IpAddr, SocketAddr};

use comity_tcp::{self as tcp, State};
use comity_units::Time;

use super::{Event, Host, Listener};
use crate::config::MIN_SHARE;
use crate::error::{ConnectError, End, ListenError, StreamError};
use crate::id::{ConnectionId, ListenerId};
use crate::socket::{Owner, Socket};
use crate::tuple::Tuple;

/// The share of one of `connections` connections, which hold `held` bytes together; `None` while
/// they hold less than half of the limit.
fn share(limit: usize, held: usize, connections: usize) -> Option<usize> {
    let half = limit / 2;
    match held {
        held if held < half => None,
        held if held < 2 * half => Some((half / connections.max(1)).max(MIN_SHARE)),
        _ => Some(MIN_SHARE),
    }
}

impl Host {
    /// Listens at an address of the host.
    ///
    /// At most `backlog` connections may wait for [`Host::accept`]. Further requests are dropped,
    /// and the peers repeat them. In the handshake there may be at most as many, or 1,024 if that
    /// is more. Beyond, a new request replaces the oldest one.
    ///
    /// # Errors
    /// [`ListenError`] if the address does not belong to the host or has a listener.
    pub fn listen(&mut self, local: SocketAddr, backlog: usize) -> Result<ListenerId, ListenError> {
        if !self.is_local(local.ip()) {
            return Err(ListenError::NotLocal(local.ip()));
        }
        if local.port() == 0 {
            return Err(ListenError::NoPort);
        }
        if self.by_address.contains_key(&local) {
            return Err(ListenError::InUse(local));
        }
        let id = ListenerId(self.next_id);
        self.next_id += 1;
        self.listeners.insert(id, Listener::new(local, backlog));
        self.by_address.insert(local, id);
        Ok(id)
    }

    /// Stops listening. Connections that were not accepted are reset.
    pub fn unlisten(&mut self, now: Time, id: ListenerId) {
        let Some(listener) = self.listeners.remove(&id) else {
            return;
        };
        self.by_address.remove(&listener.local);
        let is_its = |owner: Owner| owner == Owner::Listener(id);
        let sockets = self.sockets.iter();
        let waiting = sockets.filter(|(_, socket)| is_its(socket.owner));
        let waiting: Vec<ConnectionId> = waiting.map(|(id, _)| *id).collect();
        for id in waiting {
            self.abort(now, id);
        }
    }

    /// The next established connection of a listener. The application must release it.
    pub fn accept(&mut self, id: ListenerId) -> Option<ConnectionId> {
        let connection = self.listeners.get_mut(&id)?.accept()?;
        let socket = self.sockets.get_mut(&connection)?;
        socket.owner = Owner::Application;
        if socket.is_fallback() {
            self.events.push_back(Event::Plain(connection));
        }
        if socket.announced > 0 || socket.has_finished {
            self.events.push_back(Event::Readable(connection));
        }
        Some(connection)
    }

    /// Opens a connection from `local`, or from any address of the host. Port 0 stands for an
    /// ephemeral port. [`Event::Connected`] or [`Event::Ended`] follows.
    ///
    /// # Errors
    /// [`ConnectError`] if the connection cannot begin.
    pub fn connect(
        &mut self,
        now: Time,
        remote: SocketAddr,
        local: Option<SocketAddr>,
    ) -> Result<ConnectionId, ConnectError> {
        if !self.can_be_peer(remote.ip()) || remote.port() == 0 {
            return Err(ConnectError::NoPeer(remote));
        }
        let is_reachable = |address: &&IpAddr| address.is_ipv4() == remote.is_ipv4();
        let local = match local {
            Some(local) if !self.is_local(local.ip()) => {
                return Err(ConnectError::NotLocal(local.ip()));
            }
            Some(local) if local.is_ipv4() != remote.is_ipv4() => {
                return Err(ConnectError::NoAddress(remote));
            }
            Some(local) => local,
            None => {
                let own = self.config.addresses.iter().find(is_reachable);
                SocketAddr::new(*own.ok_or(ConnectError::NoAddress(remote))?, 0)
            }
        };
        let tuple = self
            .free_tuple(local, remote)
            .ok_or(ConnectError::Exhausted(remote))?;
        let id = self.begin(now, tuple, Owner::Application, None, None);
        let id = id.ok_or(ConnectError::Exhausted(remote))?;
        self.statistics.opened += 1;
        self.mark_ready(id);
        self.settle(now, id);
        Ok(id)
    }

    /// The addresses of a new connection; `None` if all ports are in use.
    fn free_tuple(&mut self, local: SocketAddr, remote: SocketAddr) -> Option<Tuple> {
        let is_free = |tuple: &Tuple| {
            !self.by_tuple.contains_key(tuple) && !self.by_address.contains_key(&tuple.local)
        };
        if local.port() != 0 {
            let tuple = Tuple { local, remote };
            return (!self.by_tuple.contains_key(&tuple)).then_some(tuple);
        }
        let tuple = self
            .secret
            .ports(local.ip(), remote, self.ports_used)
            .map(|port| Tuple {
                local: SocketAddr::new(local.ip(), port),
                remote,
            })
            .find(is_free)?;
        self.ports_used = self.ports_used.wrapping_add(1);
        Some(tuple)
    }

    /// Submits bytes to send. Returns the number that the send buffer accepted, at least one unless
    /// `bytes` is empty. During the handshake, they wait.
    ///
    /// # Errors
    /// [`StreamError::WouldBlock`] if the buffer is full; [`Event::Writable`] follows.
    /// [`StreamError::InSections`] after [`Host::send`].
    pub fn write(&mut self, id: ConnectionId, bytes: &[u8]) -> Result<usize, StreamError> {
        let (share, free) = (self.share(), self.free());
        let socket = self.sockets.get_mut(&id).ok_or(StreamError::Unknown)?;
        if let Some(end) = socket.end {
            return Err(end.into());
        }
        if is_shut(socket) {
            return Err(StreamError::ShutDown);
        }
        if socket.sections.is_in_use() {
            return Err(StreamError::InSections);
        }
        let is_empty = bytes.is_empty();
        let room = match share {
            Some(share) => share.saturating_sub(socket.send.len()),
            None => free,
        };
        let bytes = bytes.get(..room).unwrap_or(bytes);
        let length = socket.send.push(bytes);
        if length == 0 && !is_empty {
            socket.wants_room = true;
            return Err(StreamError::WouldBlock);
        }
        socket.on_call();
        socket.tcp.write(length as u64);
        self.count_memory(id);
        self.mark_ready(id);
        Ok(length)
    }

    /// The maximum number of bytes that one connection may now hold in its send buffer; `None`
    /// while less than half of the memory is used.
    fn share(&self) -> Option<usize> {
        share(
            self.config.max_send_memory,
            self.send_memory,
            self.sockets.len(),
        )
    }

    /// The maximum number of bytes that a new connection may hold in its receive buffer.
    pub(super) fn receive_share(&self) -> usize {
        let (limit, promised) = (self.config.max_receive_memory, self.receive_memory);
        let left = limit.saturating_sub(promised);
        let share = share(limit, promised, self.sockets.len());
        share.map_or(left, |share| share.min(left)).max(MIN_SHARE)
    }

    /// The number of free bytes in the memory for send buffers.
    const fn free(&self) -> usize {
        self.config.max_send_memory.saturating_sub(self.send_memory)
    }

    /// Counts the bytes in the send buffer of a connection.
    pub(super) fn count_memory(&mut self, id: ConnectionId) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            let held = socket.send.len();
            let counted = std::mem::replace(&mut socket.counted, held);
            self.send_memory = self.send_memory - counted + held;
        }
    }

    /// Reads bytes in order. Returns 0 if the peer's stream has ended, or `buffer` is empty. Data
    /// that arrived before an abnormal end can still be read.
    ///
    /// # Errors
    /// [`StreamError::WouldBlock`] if there is nothing to read; [`Event::Readable`] follows.
    /// [`StreamError::Gap`] before a gap.
    pub fn read(&mut self, id: ConnectionId, buffer: &mut [u8]) -> Result<usize, StreamError> {
        let socket = self.sockets.get_mut(&id).ok_or(StreamError::Unknown)?;
        if buffer.is_empty() {
            return Ok(0);
        }
        if socket.tcp.is_at_gap() {
            return Err(StreamError::Gap);
        }
        let length = match socket.tcp.read_piece(buffer.len() as u64) {
            Some(tcp::timeline::Piece::Data { length, .. }) => length as usize,
            _ => return nothing_to_read(socket),
        };
        socket
            .receive
            .read(buffer.get_mut(..length).unwrap_or_default());
        socket.on_call();
        self.mark_ready(id);
        Ok(length)
    }

    /// Returns `Ok` if the peer has acknowledged everything that was written, and, if the writing
    /// side is shut down, the FIN.
    ///
    /// # Errors
    /// [`StreamError::WouldBlock`] if it has not; [`Event::Writable`] follows.
    pub fn acknowledged(&mut self, id: ConnectionId) -> Result<(), StreamError> {
        let socket = self.sockets.get_mut(&id).ok_or(StreamError::Unknown)?;
        if socket.is_all_acknowledged() {
            return Ok(());
        }
        if let Some(end) = socket.end {
            return Err(end.into());
        }
        socket.wants_acknowledgement = true;
        Err(StreamError::WouldBlock)
    }

    /// Shuts down the writing side. A FIN follows the data and the sections. The peer may continue
    /// to send.
    pub fn shutdown(&mut self, now: Time, id: ConnectionId) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.on_call();
            socket.shutdown();
            self.mark_ready(id);
            self.settle(now, id);
        }
    }

    /// Releases a connection that the application no longer needs. Written data and a FIN are still
    /// sent. If some data was not read, the connection is reset, because the peer must not assume
    /// that all of it was used (RFC 2525, section 2.17). A connection that is not established ends.
    pub fn release(&mut self, now: Time, id: ConnectionId) {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        if socket.is_over() {
            return self.remove(id);
        }
        socket.owner = Owner::Nobody;
        if socket.tcp.readable() > 0 || socket.tcp.state() == State::SynSent {
            return self.abort(now, id);
        }
        socket.receive.clear();
        self.receive_memory -= std::mem::take(&mut socket.promised);
        socket.deadline = now + self.config.orphan_timeout;
        // The peer prolongs this at most eight times.
        socket.progress_step = socket.progress_step.max(socket.send.len() as u64 / 8);
        self.shutdown(now, id);
    }

    /// Resets a connection. If an application holds it, [`Event::Ended`] follows.
    pub fn abort(&mut self, now: Time, id: ConnectionId) {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        let state = socket.tcp.state();
        if !socket.is_over() {
            socket.end = Some(End::Aborted);
            // Before our SYN is acknowledged, the peer has no connection to reset. In TIME-WAIT, it
            // has closed its connection.
            if !matches!(state, State::SynSent | State::Listen | State::TimeWait) {
                self.push_reset(id);
            }
        }
        self.settle(now, id);
    }
}

/// Whether the writing side is shut down.
pub(super) fn is_shut(socket: &Socket) -> bool {
    let has_fin = matches!(
        socket.tcp.state(),
        State::FinWait1 | State::FinWait2 | State::Closing | State::LastAck | State::TimeWait
    );
    has_fin || socket.sections.is_closing || socket.is_over()
}

/// The result of a read if there is nothing to read.
pub(super) fn nothing_to_read(socket: &Socket) -> Result<usize, StreamError> {
    match socket.end {
        _ if socket.has_finished => Ok(0),
        Some(end) => Err(end.into()),
        None => Err(StreamError::WouldBlock),
    }
}
