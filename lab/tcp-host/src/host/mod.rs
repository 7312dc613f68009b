//! The host: connections by their addresses, listeners, timers, and output.

mod calls;
mod input;
mod listener;
mod output;
mod paths;
mod sections;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use comity_congestion::table::Row;
use comity_tcp::{self as tcp, Connection, Options, State};
use comity_units::{Seed, SeqNo, Time};

use self::listener::Listener;
use self::paths::Paths;
use crate::budget::Budget;
use crate::config::{Config, ConfigError, Control};
use crate::error::End;
use crate::id::{ConnectionId, ListenerId};
use crate::secret::Secret;
use crate::socket::{Beginning, Owner, Socket, mss};
use crate::statistics::Statistics;
use crate::tuple::Tuple;

/// An event for an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// [`Host::accept`] returns a connection.
    Acceptable(ListenerId),
    /// The connection is established.
    Connected(ConnectionId),
    /// The host offered to be time-lined, but the peer of this connection does not support it:
    /// [`Delivery::Plain`](crate::Delivery::Plain). It follows [`Event::Connected`], or
    /// [`Host::accept`].
    Plain(ConnectionId),
    /// More data or gaps can be read, or the peer's stream has ended.
    Readable(ConnectionId),
    /// A write that found no room may now find room, or everything written is acknowledged.
    Writable(ConnectionId),
    /// The connection has ended: [`Host::end`] returns why. The application must still release it.
    Ended(ConnectionId),
}

/// A TCP host, as a pure machine.
///
/// # Order of calls
/// There are four kinds of method:
/// 1. inputs: [`Host::handle_packet`], [`Host::on_timer`], and the calls of applications;
/// 2. [`Host::poll_transmit`] and [`Host::poll_event`], to be called after inputs until they return
///    nothing;
/// 3. [`Host::next_timer`], to be read afterwards: the time of the next [`Host::on_timer`];
/// 4. getters.
///
/// The times of successive calls must not decrease.
#[derive(Debug)]
pub struct Host {
    config: Config,
    row: &'static Row,
    secret: Secret,
    sockets: BTreeMap<ConnectionId, Socket>,
    /// The connections that segments can reach. Connections that have ended are not in it.
    by_tuple: BTreeMap<Tuple, ConnectionId>,
    listeners: BTreeMap<ListenerId, Listener>,
    by_address: BTreeMap<SocketAddr, ListenerId>,
    timers: BTreeSet<(Time, ConnectionId)>,
    /// Connections that may have segments to send, each at most once.
    ready: VecDeque<ConnectionId>,
    /// Packets that are sent before all others.
    packets: VecDeque<Vec<u8>>,
    events: VecDeque<Event>,
    /// Connections in the order in which they entered TIME-WAIT. Some have left it since.
    time_wait: VecDeque<ConnectionId>,
    paths: Paths,
    resets: Budget,
    /// The number of bytes in send buffers.
    send_memory: usize,
    /// The number of bytes that receive buffers of connections may hold.
    receive_memory: usize,
    next_id: u64,
    /// The number of ephemeral ports used so far.
    ports_used: u32,
    statistics: Statistics,
}

impl Host {
    /// Creates a host. `key` must come from a source of randomness. Anyone who has it can forge
    /// segments.
    ///
    /// # Errors
    /// [`ConfigError`] if the settings are invalid.
    pub fn new(config: Config, key: [u8; 32]) -> Result<Self, ConfigError> {
        let row = config.check()?;
        Ok(Self {
            config,
            row,
            secret: Secret::new(key),
            sockets: BTreeMap::new(),
            by_tuple: BTreeMap::new(),
            listeners: BTreeMap::new(),
            by_address: BTreeMap::new(),
            timers: BTreeSet::new(),
            ready: VecDeque::new(),
            packets: VecDeque::new(),
            events: VecDeque::new(),
            time_wait: VecDeque::new(),
            paths: Paths::default(),
            resets: Budget::default(),
            send_memory: 0,
            receive_memory: 0,
            next_id: 0,
            ports_used: 0,
            statistics: Statistics::default(),
        })
    }

    /// The counters.
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The number of connections, including those in TIME-WAIT.
    pub fn connections(&self) -> usize {
        self.sockets.len()
    }

    /// The maximum packet size of a connection's path, as far as the host knows.
    pub fn path_mtu(&self, id: ConnectionId) -> Option<u32> {
        self.sockets.get(&id).map(Socket::path_mtu)
    }

    /// The state machine of a connection; `None` once it has been released and has ended.
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.sockets.get(&id).map(|socket| &socket.tcp)
    }

    /// Why a connection ended; `None` if it ended with a FIN in each direction.
    pub fn end(&self, id: ConnectionId) -> Option<End> {
        self.sockets.get(&id).and_then(|socket| socket.end)
    }

    /// Whether the handshake of a connection was completed.
    pub fn is_connected(&self, id: ConnectionId) -> bool {
        let socket = self.sockets.get(&id);
        socket.is_some_and(|socket| socket.is_connected)
    }

    /// The local and the remote address of a connection.
    pub fn addresses(&self, id: ConnectionId) -> Option<(SocketAddr, SocketAddr)> {
        let tuple = self.sockets.get(&id)?.tuple;
        Some((tuple.local, tuple.remote))
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    // ---------------------------------------------------------------- timers

    /// When [`Host::on_timer`] is next due; [`Time::MAX`] for never.
    pub fn next_timer(&self) -> Time {
        self.timers.first().map_or(Time::MAX, |&(at, _)| at)
    }

    /// Handles everything that is due.
    pub fn on_timer(&mut self, now: Time) {
        // A connection may immediately be due again, and must then be polled first. So each has one
        // turn.
        let due = self.timers.iter().take_while(|(at, _)| *at <= now);
        let due: Vec<ConnectionId> = due.map(|(_, id)| *id).collect();
        for id in due {
            let Some(socket) = self.sockets.get_mut(&id) else {
                continue;
            };
            if socket.tcp.next_timer() <= now {
                let timeouts = socket.tcp.statistics().timeouts;
                socket.tcp.on_timer(now);
                if socket.tcp.statistics().timeouts > timeouts && socket.on_timeout(now) {
                    self.statistics.black_holes += 1;
                }
            }
            if socket.deadline <= now && !socket.is_over() {
                self.expire(id);
            } else {
                self.probe(now, id);
            }
            self.mark_ready(id);
            self.settle(now, id);
        }
    }

    /// Ends a connection whose handshake, or whose end, took too long.
    fn expire(&mut self, id: ConnectionId) {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        socket.end = Some(socket.silence());
        if socket.is_connected {
            self.push_reset(id);
        }
    }

    /// Sends the keep-alive probe that is due, or ends the connection.
    fn probe(&mut self, now: Time, id: ConnectionId) {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        match socket.keep_alive(now) {
            Ok(None) => {}
            Ok(Some(segment)) => {
                let segment = socket.as_sent(segment);
                self.push_segment(id, &segment);
            }
            Err(end) => {
                socket.end = Some(end);
                self.push_reset(id);
            }
        }
    }

    // ---------------------------------------------------------------- connections

    /// Adds a connection. Returns `None` at the limit of connections.
    fn begin(
        &mut self,
        now: Time,
        tuple: Tuple,
        owner: Owner,
        after: Option<SeqNo>,
        request: Option<&Options>,
    ) -> Option<ConnectionId> {
        if self.sockets.len() >= self.config.max_connections
            && !self.end_oldest_time_wait()
            && !matches!(owner, Owner::Listener(listener) if self.end_oldest_half_open(listener))
        {
            return None;
        }
        let path_mtu = self.paths.mtu(now, tuple.remote.ip(), self.config.mtu);
        let mss = mss(path_mtu, &tuple, &self.agreed(request));
        let initial = self.secret.initial_sequence(now, &tuple);
        // Controllers that draw random numbers get another seed in each connection.
        let seed = Seed::new(initial.get().into());
        let Control { controller, meter } = self.config.control(self.row, mss, seed).ok()?;
        let timeout = match owner {
            Owner::Listener(_) => self.config.handshake_timeout,
            _ => self.config.connect_timeout,
        };
        let beginning = Beginning {
            tuple,
            owner,
            // After a connection in TIME-WAIT, the sequence numbers continue above its own.
            initial_sequence: after.map_or(initial, |after| after.latest(initial)),
            timestamp_offset: self.secret.timestamp_offset(&tuple),
            skip_seed: self.secret.skip_seed(&tuple, initial),
            path_mtu,
            mss,
            deadline: now + timeout,
        };
        let control = Control { controller, meter };
        let socket = Socket::new(now, &beginning, &self.config, control);
        let id = ConnectionId(self.next_id);
        self.next_id += 1;
        self.sockets.insert(id, socket);
        self.by_tuple.insert(tuple, id);
        Some(id)
    }

    /// The settings of a connection that the peer's request agrees to. `request` is `None` before
    /// the peer has answered.
    fn agreed(&self, request: Option<&Options>) -> tcp::Config {
        let own = tcp::Config {
            metered: self.row.has_meter(),
            ..self.config.tcp
        };
        match request {
            None => own,
            Some(options) => tcp::Config {
                timestamps: own.timestamps && options.timestamps.is_some(),
                timeline: own.timeline.filter(|_| options.seq_update.is_some()),
                ..own
            },
        }
    }

    /// Ends the oldest connection of a listener in the handshake. Returns `false` if there is none.
    /// A peer that still completes the handshake gets a reset.
    fn end_oldest_half_open(&mut self, listener: ListenerId) -> bool {
        let oldest = { self.listeners.get(&listener) }.and_then(Listener::oldest);
        if let Some(id) = oldest {
            self.statistics.ended_handshakes += 1;
            self.remove(id);
        }
        oldest.is_some()
    }

    /// Ends the oldest connection in TIME-WAIT that no application holds. Returns `false` if there
    /// is none.
    fn end_oldest_time_wait(&mut self) -> bool {
        let is_free = |id: &ConnectionId| {
            let socket = self.sockets.get(id);
            socket.is_some_and(|socket| socket.owner == Owner::Nobody)
        };
        let Some(at) = self.time_wait.iter().position(is_free) else {
            return false;
        };
        if let Some(id) = self.time_wait.remove(at) {
            self.remove(id);
        }
        true
    }

    /// Updates a connection after a change: its events, its timers, its end.
    fn settle(&mut self, now: Time, id: ConnectionId) {
        let receive_share = self.receive_share();
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        let mut is_surplus = false;
        if !socket.is_over() && !socket.is_connected && is_established(socket.tcp.state()) {
            socket.is_connected = true;
            socket.deadline = Time::MAX;
            self.receive_memory += socket.promise_room(receive_share);
            match socket.owner {
                Owner::Listener(listener) => {
                    let is_queued = { self.listeners.get_mut(&listener) }
                        .is_some_and(|listener| listener.on_connected(id));
                    if is_queued {
                        self.events.push_back(Event::Acceptable(listener));
                    } else {
                        // More handshakes were completed than the application accepts.
                        socket.end = Some(End::Aborted);
                        self.statistics.ended_handshakes += 1;
                        is_surplus = true;
                    }
                }
                Owner::Application => {
                    self.events.push_back(Event::Connected(id));
                    if socket.is_fallback() {
                        self.events.push_back(Event::Plain(id));
                    }
                    if std::mem::take(&mut socket.wants_room) {
                        self.events.push_back(Event::Writable(id));
                    }
                }
                Owner::Nobody => {}
            }
        }
        let has_left_out = socket.settle_sections(now);
        let has_room = socket.send.drop_below(socket.tcp.lowest_needed()) || has_left_out;
        if has_room && std::mem::take(&mut socket.wants_room) {
            self.events.push_back(Event::Writable(id));
        }
        if socket.owner == Owner::Nobody && socket.has_progressed() {
            socket.deadline = now + self.config.orphan_timeout;
        }
        if socket.wants_acknowledgement && socket.is_all_acknowledged() {
            socket.wants_acknowledgement = false;
            self.events.push_back(Event::Writable(id));
        }
        if socket.owner == Owner::Application && socket.is_connected {
            if socket.has_progressed() || socket.is_all_acknowledged() {
                socket.deadline = Time::MAX;
            }
            // RFC 6429: even a peer that answers probes of its closed window may be reset, and so
            // may one that opens it for a byte now and then.
            if socket.is_stalled() {
                let latest = now + self.config.zero_window_timeout;
                socket.deadline = socket.deadline.min(latest);
            }
        }
        let (progress, readable) = (socket.progress(), socket.tcp.readable());
        let has_finished = socket.has_finished || is_finished(socket.tcp.state());
        if (progress > socket.announced || has_finished != socket.has_finished)
            && socket.owner == Owner::Application
        {
            self.events.push_back(Event::Readable(id));
        }
        let enters_wait = socket.tcp.state() == State::TimeWait && !socket.is_waiting;
        if enters_wait {
            socket.is_waiting = true;
            socket.deadline = Time::MAX;
        }
        (socket.announced, socket.has_finished) = (progress, has_finished);
        if socket.owner == Owner::Nobody && readable > 0 && !socket.is_over() {
            // No application will read it, and the peer must not assume that it was read (RFC 2525,
            // section 2.17).
            socket.end = Some(End::Aborted);
            self.push_reset(id);
        }
        if is_surplus {
            self.push_reset(id);
        }
        self.review_feedback(id);
        if enters_wait {
            self.enter_time_wait(id);
        }
        if has_left_out {
            // A FIN may be due.
            self.mark_ready(id);
        }
        self.review_end(id);
        self.reschedule(id);
    }

    /// Resets a connection whose peer acknowledged data that was not sent.
    fn review_feedback(&mut self, id: ConnectionId) {
        if let Some(socket) = self.sockets.get_mut(&id)
            && socket.tcp.was_deceived()
            && socket.end.is_none()
        {
            socket.end = Some(End::FalseFeedback);
            self.statistics.false_feedback += 1;
            self.push_reset(id);
        }
    }

    fn enter_time_wait(&mut self, id: ConnectionId) {
        while let Some(first) = self.time_wait.front()
            && !self.sockets.contains_key(first)
        {
            self.time_wait.pop_front();
        }
        self.time_wait.push_back(id);
    }

    /// Ends a connection whose state machine has ended, or the reverse.
    fn review_end(&mut self, id: ConnectionId) {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        if !socket.is_over() {
            return;
        }
        if socket.end.is_none() {
            socket.end = if socket.tcp.gave_up() {
                Some(socket.silence())
            } else if socket.tcp.was_reset() && !socket.is_connected {
                Some(End::Refused)
            } else {
                socket.tcp.was_reset().then_some(End::Reset)
            };
        }
        // Segments that arrive from now on belong to no connection.
        if self.by_tuple.get(&socket.tuple) == Some(&id) {
            self.by_tuple.remove(&socket.tuple);
        }
        // Its last segments must still be sent, and they cannot be polled without the connection.
        if socket.is_ready && socket.end.is_none() {
            return;
        }
        if socket.owner != Owner::Application {
            self.remove(id);
        } else if !socket.is_detached {
            socket.is_detached = true;
            socket.send.clear();
            self.events.push_back(Event::Ended(id));
        }
    }

    /// Removes a connection.
    fn remove(&mut self, id: ConnectionId) {
        let Some(socket) = self.sockets.remove(&id) else {
            return;
        };
        self.send_memory -= socket.counted;
        self.receive_memory -= socket.promised;
        if socket.scheduled != Time::MAX {
            self.timers.remove(&(socket.scheduled, id));
        }
        if self.by_tuple.get(&socket.tuple) == Some(&id) {
            self.by_tuple.remove(&socket.tuple);
        }
        if let Owner::Listener(listener) = socket.owner
            && let Some(listener) = self.listeners.get_mut(&listener)
        {
            listener.forget(id);
        }
    }

    /// Updates the timers and the sum of memory.
    fn reschedule(&mut self, id: ConnectionId) {
        self.count_memory(id);
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        let next = socket.next_timer();
        if next == socket.scheduled {
            return;
        }
        if socket.scheduled != Time::MAX {
            self.timers.remove(&(socket.scheduled, id));
        }
        if next != Time::MAX {
            self.timers.insert((next, id));
        }
        socket.scheduled = next;
    }

    /// Marks a connection that may have something to send.
    fn mark_ready(&mut self, id: ConnectionId) {
        if let Some(socket) = self.sockets.get_mut(&id)
            && !socket.is_ready
        {
            socket.is_ready = true;
            self.ready.push_back(id);
        }
    }
}

/// Whether the handshake is complete.
const fn is_established(state: State) -> bool {
    !matches!(
        state,
        State::Listen | State::SynSent | State::SynReceived | State::Closed
    )
}

/// Whether the peer's FIN has arrived, and all data before it.
const fn is_finished(state: State) -> bool {
    matches!(
        state,
        State::CloseWait | State::Closing | State::LastAck | State::TimeWait
    )
}
