//! The endpoint's thread.

mod waiting;

use std::io;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, Weak};

use comity_transport::wire::CloseCode;
use comity_transport::wire::header::{self, Packet};
use comity_units::{Seed, Span, Time};
use rustix::io::Errno;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::callers::Callers;
use super::calls::{CallRequest, CallRequests, Waiting};
use super::connection::Connection;
use super::connection_driver::{ConnectionDriver, Scratch, Served};
use super::connection_shared::{ConnectionShared, Facts, SharedTransport};
use super::events::EndpointEvent;
use super::routes::{self, Routes};
use super::shared::{EndpointShared, Handle};
use super::socket::{Socket, is_end, is_unreachable};
use crate::contain::contain;
use crate::error::ConnectError;
use crate::memory::MemoryBudget;
use crate::session::{
    Addresses, CallError, Caller, CallerConfig, CallerEvent, Closed, ConnectionId, Datagram, Ecn,
    IdMap, Listener, ListenerEvent, Opener, Randomness, Session, lock, whole,
};
use crate::statistics::EndpointStatistics;
use crate::transport::Transport;

/// Batches to receive before connections are served again.
const MAX_BATCHES: usize = 4;
/// Connections to serve before the socket is polled again.
const MAX_SERVED: usize = 64;
/// Wake-ups within `BUSY_WINDOW` that switch the endpoint to batching.
const BUSY_WAKEUPS: usize = 4;
/// The maximum number of connections with exact timers. With more, timers wait for the next batch,
/// too: there are fewer system calls, and paced packets leave up to `BATCH_PAUSE` late.
const MAX_EXACT: usize = 8;
/// How long a closed endpoint waits for its connections to end.
const LINGER: Span = Span::from_secs(1);

/// The work after a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// A request or a timer is due, and the socket has nothing.
    Serve,
    /// The socket may have datagrams: they come first, then requests and timers.
    Receive,
    /// The same, but the thread then stays awake until this time: the next timer must be exact, and
    /// is too near for a sleep.
    ReceiveUntil(Time),
}

pub(super) struct Driver {
    shared: Arc<EndpointShared>,
    calls: Arc<CallRequests>,
    socket: Socket,
    listener: Option<Listener<SharedTransport>>,
    callers: Callers,
    /// Opened for the first call without a fixed local address.
    routes: Option<Routes>,
    connections: IdMap<ConnectionDriver>,
    accepting: Accepting,
    memory: Arc<MemoryBudget>,
    handle: Weak<Handle>,
    randomness: Randomness,
    scratch: Scratch,
    /// Empty between two rounds.
    scheduled: Vec<ConnectionId>,
    /// The times of the last wake-ups, and the index of the oldest.
    woken: [Time; BUSY_WAKEUPS],
    oldest: usize,
    /// The time limit of an ending thread.
    until: Option<Time>,
    counts: EndpointStatistics,
}

impl Driver {
    pub(super) fn new(
        shared: Arc<EndpointShared>,
        calls: Arc<CallRequests>,
        socket: Socket,
        (listener, memory): (Option<Listener<SharedTransport>>, Arc<MemoryBudget>),
        accepting: Accepting,
        handle: Weak<Handle>,
        randomness: Randomness,
    ) -> Self {
        Self {
            shared,
            calls,
            socket,
            listener,
            callers: Callers::default(),
            routes: None,
            connections: IdMap::default(),
            accepting,
            memory,
            handle,
            randomness,
            scratch: Scratch::default(),
            scheduled: Vec::new(),
            woken: [Time::ZERO; BUSY_WAKEUPS],
            oldest: 0,
            until: None,
            counts: EndpointStatistics::default(),
        }
    }

    /// Runs until no handle to the endpoint is left.
    pub(super) fn run(mut self) {
        // This fails only on systems without timer slack; packets then leave up to 50 us later.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        loop {
            self.take_requests();
            let is_blocked = !self.flush();
            let now = self.now();
            if let Some(listener) = &mut self.listener
                && listener.next_timer() <= now
            {
                listener.on_timer(now);
            }
            if self.callers.next_timer() <= now {
                self.callers.on_timer(now);
            }
            if let Some(routes) = &self.routes {
                self.callers.follow(routes);
            }
            if !is_blocked {
                self.serve_ready();
            }
            for connection in self.scratch.arrived.drain(..) {
                connection.inbound.notify();
            }
            if let Some(until) = self.until
                && (now >= until || !self.has_peers())
            {
                break;
            }
            if self.memory.take_freed() {
                self.offer_room();
            }
            self.publish();
            let next = self.wait();
            if !matches!(next, Next::Serve) && self.receive().is_err() {
                // The socket is broken. The thread ends, and with it all connections, instead of
                // spinning.
                break;
            }
            if self.memory.take_evictions() {
                self.evict();
            }
            if let Next::ReceiveUntil(departure) = next {
                while self.now() < departure {
                    std::hint::spin_loop();
                }
            }
        }
    }

    fn now(&self) -> Time {
        self.shared.clock.now()
    }

    /// Whether a peer may consider itself connected. A caller does as soon as the Accept arrives.
    fn has_peers(&self) -> bool {
        let half_open = self.listener.as_ref().map_or(0, Listener::half_open);
        !self.connections.is_empty() || self.callers.len() > 0 || half_open > 0
    }

    // ---------------------------------------------------------------- requests

    fn take_requests(&mut self) {
        let mut scheduled = std::mem::take(&mut self.scheduled);
        if self.shared.sleep.take(&mut scheduled) {
            for request in self.calls.take() {
                self.call(request);
            }
            if self.shared.accepts_nobody() {
                self.stop_answering();
            }
            if self.shared.is_shut_down() {
                self.shut_down();
            }
        }
        for id in scheduled.drain(..) {
            self.make_ready(id);
        }
        self.scheduled = scheduled;
    }

    fn make_ready(&mut self, id: ConnectionId) {
        if self.callers.contains(id) {
            self.callers.make_ready(id);
        } else if let Some(listener) = &mut self.listener {
            listener.make_ready(id);
        }
    }

    /// Updates the counters that [`Endpoint::stats`](super::Endpoint::stats) reads.
    fn publish(&self) {
        *lock(&self.shared.statistics) = self.statistics();
    }

    fn statistics(&self) -> EndpointStatistics {
        let counts = EndpointStatistics {
            connections: self.connections.len() as u64,
            memory: self.memory.held(),
            datagrams_sent: self.scratch.out.counts.datagrams,
            batches_sent: self.scratch.out.counts.batches,
            datagrams_unsent: self.scratch.out.counts.unsent,
            datagrams_expired: self.scratch.out.counts.expired,
            ..self.counts
        };
        match &self.listener {
            None => counts,
            Some(listener) => counts.with_listener(&listener.statistics()),
        }
    }

    /// Closes the connections that hold too much memory.
    fn evict(&mut self) {
        let now = self.now();
        let is_evicted = |driver: &ConnectionDriver| driver.shared.memory.is_evicted();
        let evicted: Vec<_> = { self.connections.iter() }
            .filter(|(_, driver)| is_evicted(driver))
            .map(|(id, _)| *id)
            .collect();
        for id in evicted {
            if let Some(session) = session_mut(&mut self.callers, &mut self.listener, id)
                && session.closed().is_none()
            {
                session.contain(now, |session| whole(session.protocol(), now).evict(now));
                self.counts.connections_evicted += 1;
                self.make_ready(id);
            }
        }
    }

    /// Wakes the tasks that wait for room: memory has become free.
    fn offer_room(&self) {
        let now = self.now();
        for driver in self.connections.values() {
            driver.offer_room(now);
        }
    }

    fn stop_answering(&mut self) {
        if let Some(listener) = &mut self.listener {
            listener.stop_answering();
        }
    }

    fn shut_down(&mut self) {
        if self.until.is_some() {
            return;
        }
        // A new caller would be connected and closed at once.
        self.stop_answering();
        let now = self.now();
        self.until = Some(now + LINGER);
        let (closed, _) = mpsc::channel(1);
        self.accepting = closed;
        let ids: Vec<_> = self.connections.keys().copied().collect();
        for id in ids {
            let session = match self.callers.get_mut(id) {
                Some(call) => call.caller.session_mut(),
                None => self
                    .listener
                    .as_mut()
                    .and_then(|listener| listener.session_mut(id)),
            };
            if let Some(session) = session {
                session.contain(now, |session| {
                    whole(session.protocol(), now).close(now, CloseCode::SHUTDOWN, "");
                });
            }
            self.make_ready(id);
        }
    }

    fn call(&mut self, request: CallRequest) {
        let CallRequest {
            address,
            config,
            waiting,
        } = request;
        let now = self.now();
        let address = self.socket.reach(address);
        let fail = |waiting: Waiting, error| {
            // It fails if nobody waits any more.
            let _ = waiting.reply.send(Err(error));
        };
        if self.until.is_some() {
            return fail(waiting, ConnectError::EndpointClosed);
        }
        let credentials = match config.caller_credentials() {
            Ok(credentials) => credentials,
            Err(error) => return fail(waiting, error.into()),
        };
        let mut parameters = Vec::new();
        config
            .parameters()
            .encode(&mut parameters)
            .expect("a valid configuration gives valid parameters");
        let caller = CallerConfig {
            timeout: config.settings().connect_timeout.into(),
            key_log: config.key_log().cloned(),
            ..CallerConfig::new(credentials, parameters)
        };
        let seed = Seed::new(u64::from_be_bytes(self.randomness.bytes()));
        let opener = Transport::opener_within(*config, seed, self.memory.clone());
        let opener = shared(opener, false);
        match Caller::new(now, address, caller, opener, self.randomness.split()) {
            Ok(caller) => {
                if self.routes.is_none() && self.socket.has_every_address() {
                    // Without netlink, the ids do not change with the routes.
                    self.routes = Routes::open().ok();
                }
                let source = self.routes.as_ref().and_then(|_| routes::source(address));
                self.callers.insert(caller, address, waiting, source);
            }
            Err(error) => fail(waiting, error.into()),
        }
    }

    // ---------------------------------------------------------------- connections

    /// Serves the connections with work while the system accepts their packets.
    fn serve_ready(&mut self) {
        for _ in 0..MAX_SERVED {
            let Some(listener) = &mut self.listener else {
                break;
            };
            while let Some(reply) = listener.poll_reply(&mut self.scratch.out.bytes) {
                self.scratch.out.push(None, reply, 1);
            }
            let Some(id) = listener.next_ready() else {
                break;
            };
            self.serve_accepted(id);
            if self.scratch.out.is_large() && !self.flush() {
                return;
            }
        }
        self.report_refusals();
        for _ in 0..MAX_SERVED {
            let Some(id) = self.callers.next_ready() else {
                break;
            };
            self.serve_call(id);
            if self.scratch.out.is_large() && !self.flush() {
                return;
            }
        }
        self.flush();
    }

    fn serve_accepted(&mut self, id: ConnectionId) {
        let now = self.shared.clock.now();
        let Some(session) = self.listener.as_mut().and_then(|some| some.session_mut(id)) else {
            return;
        };
        if session.is_confirmed() && !self.connections.contains_key(&id) {
            let driver = connection_driver(session);
            let connection = driver.shared.clone();
            self.connections.insert(id, driver);
            self.offer(id, connection);
        }
        let Some(listener) = &mut self.listener else {
            return;
        };
        if let Some(session) = listener.session_mut(id)
            && session.is_confirmed()
            && let Some(driver) = self.connections.get_mut(&id)
        {
            let served = driver.serve(
                now,
                self.shared.clock,
                session,
                &mut self.scratch,
                self.socket.max_segments(),
            );
            if served == Served::Busy {
                listener.make_ready(id);
            }
        }
        if listener.session(id).is_some_and(has_panicked) {
            self.counts.internal_errors += 1;
        }
        listener.settle(id);
        if listener.session(id).is_none()
            && let Some(mut driver) = self.connections.swap_remove(&id)
        {
            driver.forget(now);
        }
    }

    /// Offers a new connection to the accepting task; closes it if too many wait.
    ///
    /// The statistics count it first, so that they include it when the application receives it.
    fn offer(&mut self, id: ConnectionId, connection: Arc<ConnectionShared>) {
        self.publish();
        let Some(session) = self.listener.as_ref().and_then(|some| some.session(id)) else {
            return;
        };
        let now = self.shared.clock.now();
        let close = |code, reason| whole(session.protocol(), now).close(now, code, reason);
        let Some(handle) = self.handle.upgrade() else {
            return close(CloseCode::SHUTDOWN, "");
        };
        // Dropping a refused connection closes it, too. The explicit close comes first, and its
        // reason counts.
        match self.accepting.try_send(Connection::new(connection, handle)) {
            Ok(()) => {}
            // Nobody accepts connections any more.
            Err(TrySendError::Closed(_refused)) => close(CloseCode::SHUTDOWN, ""),
            Err(TrySendError::Full(_refused)) => {
                close(
                    CloseCode::REFUSED,
                    "too many connections wait to be accepted",
                );
                self.counts.connections_unaccepted += 1;
                let from = session.address();
                // It fails if there is no subscriber.
                let _ = self.shared.events.send(EndpointEvent::Unaccepted { from });
            }
        }
    }

    fn serve_call(&mut self, id: ConnectionId) {
        let now = self.shared.clock.now();
        let Some(call) = self.callers.get_mut(id) else {
            return;
        };
        if let Some(reason) = call.believed(now) {
            return self.fail(id, reason);
        }
        let mut is_busy = false;
        let mut opened = None;
        match call.caller.session_mut() {
            None => {
                while let Some(datagram) =
                    call.caller.poll_transmit(now, &mut self.scratch.out.bytes)
                {
                    self.scratch.out.push(None, datagram, 1);
                }
                while let Some(event) = call.caller.poll_event() {
                    if let CallerEvent::Failed(error) = event
                        && let Some(waiting) = call.waiting.take()
                    {
                        let error = match (error, call.take_complaint()) {
                            (CallError::NoAnswer { address, .. }, Some(reason)) => {
                                ConnectError::Unreachable { address, reason }
                            }
                            (error, _) => error.into(),
                        };
                        // It fails if nobody waits any more.
                        let _ = waiting.reply.send(Err(error));
                    }
                }
            }
            Some(session) => {
                if let Some(waiting) = call.waiting.take() {
                    let driver = connection_driver(session);
                    opened = Some((waiting, driver.shared.clone()));
                    self.connections.insert(id, driver);
                }
                if let Some(driver) = self.connections.get_mut(&id) {
                    let served = driver.serve(
                        now,
                        self.shared.clock,
                        session,
                        &mut self.scratch,
                        self.socket.max_segments(),
                    );
                    is_busy = served == Served::Busy;
                }
                if has_panicked(session) {
                    self.counts.internal_errors += 1;
                }
            }
        }
        if let Some((waiting, connection)) = opened {
            self.callers.on_open(id);
            // As in [`Self::offer`]: the statistics count it first.
            self.publish();
            let connection = Connection::new(connection, waiting.handle);
            // If nobody waits any more, this drops the connection, which closes it.
            let _ = waiting.reply.send(Ok(connection));
        }
        if is_busy {
            self.callers.make_ready(id);
        }
        if self.callers.settle(id)
            && let Some(mut driver) = self.connections.swap_remove(&id)
        {
            driver.forget(now);
        }
    }

    fn report_refusals(&mut self) {
        let Some(listener) = &mut self.listener else {
            return;
        };
        while let Some(event) = listener.poll_event() {
            if let ListenerEvent::Refused { from, why } = event {
                // It fails if there is no subscriber.
                let _ = self
                    .shared
                    .events
                    .send(EndpointEvent::Refused { from, why });
            }
        }
    }

    // ---------------------------------------------------------------- socket

    /// Hands waiting datagrams to the system; `false` if it has no room now.
    fn flush(&mut self) -> bool {
        // The counters must include these datagrams before a peer can see them.
        self.publish();
        let mut failed = Vec::new();
        let mut too_large = Vec::new();
        let (socket, clock) = (&self.socket, self.shared.clock);
        let send = |datagram: &Datagram, contents: &[u8]| socket.send(datagram, contents);
        let complain = |connection, datagram: &Datagram, reason: io::Error| {
            let is_too_large = reason.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error());
            if let Some(id) = connection
                && is_too_large
            {
                too_large.push((id, datagram.length));
            } else if is_unreachable(&reason) && failed.len() < MAX_SERVED {
                failed.push((datagram.to, reason));
            }
        };
        let is_flushed = self.scratch.out.flush(|| clock.now(), send, complain);
        for (id, length) in too_large {
            self.on_too_large(id, length);
        }
        for (address, reason) in failed {
            let now = self.now();
            self.callers.on_unsent(now, address, &reason);
        }
        self.note_sent();
        is_flushed
    }

    /// Handles the system's refusal of a datagram of this length as too large for the interface.
    fn on_too_large(&mut self, id: ConnectionId, length: usize) {
        let now = self.now();
        if let Some(session) = session_mut(&mut self.callers, &mut self.listener, id) {
            session.contain(now, |session| {
                whole(session.protocol(), now).on_too_large(now, length);
            });
            // A smaller datagram may leave at once.
            self.make_ready(id);
        }
    }

    /// Records that the endpoint has just handed paced packets to the system.
    fn note_sent(&mut self) {
        if self.scratch.planned.is_empty() {
            return;
        }
        let now = self.now();
        let mut planned = std::mem::take(&mut self.scratch.planned);
        for id in planned.drain(..) {
            if let Some(driver) = self.connections.get(&id) {
                driver.on_sent(now);
            }
        }
        self.scratch.planned = planned;
    }

    /// Fails a call to an address that the network reports as unreachable.
    fn fail(&mut self, id: ConnectionId, reason: io::Error) {
        let Some(mut call) = self.callers.remove(id) else {
            return;
        };
        if let Some(waiting) = call.waiting.take() {
            let address = call.address;
            let error = ConnectError::Unreachable { address, reason };
            // It fails if nobody waits any more.
            let _ = waiting.reply.send(Err(error));
        }
    }

    /// Whether some controller sets when each packet leaves, and connections are few enough for
    /// exact timers.
    fn times_departures(&self) -> bool {
        self.connections.len() <= MAX_EXACT
            && self
                .connections
                .values()
                .any(|driver| driver.times_departures)
    }

    /// Receives datagrams.
    ///
    /// # Errors
    ///
    /// The system's error if the socket is broken. Network errors about earlier datagrams do not
    /// count: anybody can forge them, and the system may return them from any later call.
    fn receive(&mut self) -> io::Result<()> {
        for _ in 0..MAX_BATCHES {
            let now = self.shared.clock.now();
            let (callers, listener) = (&mut self.callers, &mut self.listener);
            let counts = &mut self.counts;
            let received = self.socket.receive(|from, ecn, datagram| {
                counts.datagrams_received += 1;
                let listener = listener.as_mut();
                // Sessions contain their own panics. This call contains those of packets that
                // belong to no session.
                let routed = contain(|| route(now, callers, listener, from, ecn, datagram, counts));
                if routed.is_none() {
                    counts.internal_errors += 1;
                }
            });
            match received {
                Ok(true) => {}
                Ok(false) => break,
                Err(reason) if reason.kind() == io::ErrorKind::WouldBlock => break,
                Err(reason) if is_end(&reason) => return Err(reason),
                Err(_) => self.handle_complaints(),
            }
        }
        Ok(())
    }

    /// Handles network errors.
    fn handle_complaints(&mut self) {
        while let Some((address, reason)) = self.socket.complaint() {
            if is_unreachable(&reason) {
                let now = self.now();
                self.callers.on_complaint(now, address.ip(), &reason);
            }
        }
    }
}

/// Wakes all waiting tasks when the thread ends, even by a panic.
impl Drop for Driver {
    fn drop(&mut self) {
        let now = self.now();
        for driver in self.connections.values_mut() {
            driver.forget(now);
        }
        self.connections.clear();
        self.publish();
        self.calls.end();
        self.shared.is_over.send_replace(true);
    }
}

/// The session of a connection, opened here or accepted.
fn session_mut<'a>(
    callers: &'a mut Callers,
    listener: &'a mut Option<Listener<SharedTransport>>,
    id: ConnectionId,
) -> Option<&'a mut Session<SharedTransport>> {
    match callers.get_mut(id) {
        Some(call) => call.caller.session_mut(),
        None => listener.as_mut()?.session_mut(id),
    }
}

fn has_panicked(session: &Session<SharedTransport>) -> bool {
    session.closed() == Some(Closed::Internal)
}

/// Routes a datagram to its connection.
fn route(
    now: Time,
    callers: &mut Callers,
    listener: Option<&mut Listener<SharedTransport>>,
    from: Addresses,
    ecn: Ecn,
    datagram: &mut [u8],
    counts: &mut EndpointStatistics,
) {
    if callers.len() > 0 {
        let destination = match header::decode(datagram) {
            Ok(Packet::Data { header, .. }) => Some(header.destination),
            Ok(Packet::Retry(retry)) => Some(retry.destination),
            Ok(Packet::Answer(answer)) => Some(answer.destination),
            Ok(Packet::Accept(accept)) => Some(accept.destination),
            Ok(Packet::Reset(reset)) => callers.to_peer(from.peer, reset.source),
            Ok(Packet::VersionNegotiation { destination, .. }) => Some(destination),
            _ => None,
        };
        if let Some(id) = destination.and_then(|id| callers.receiver(id))
            && let Some(call) = callers.get_mut(id)
        {
            if from.peer == call.address {
                call.on_received();
            }
            // The system chooses the local address of a call, also after the routes have changed.
            call.caller.handle_datagram(now, from.peer, ecn, datagram);
            callers.learn_ids(id);
            callers.make_ready(id);
            return;
        }
    }
    match listener {
        Some(listener) => listener.handle_datagram(now, from, ecn, datagram),
        None => counts.datagrams_unknown += 1,
    }
}

fn connection_driver(session: &Session<SharedTransport>) -> ConnectionDriver {
    let transport = session.protocol();
    let facts = {
        let mut transport = lock(transport);
        transport.set_peer_address(session.address().ip());
        Facts {
            id: session.id(),
            peer_address: session.address(),
            peer_key: session.peer_key(),
            cipher: session.protection().cipher(),
            stream_name: transport.peer().stream_name.clone(),
            peer_features: transport.peer().features,
            latency: transport.latency(),
        }
    };
    let shared = ConnectionShared::new(facts, transport.clone());
    ConnectionDriver::new(Arc::new(shared))
}

/// Wraps an opener so that handles can share its transports. With `awaits_taker`, a transport
/// acknowledges no sections before its connection is accepted.
pub(super) fn shared(mut opener: Opener<Transport>, awaits_taker: bool) -> Opener<SharedTransport> {
    Box::new(move |now, role, overhead, parameters| {
        let mut transport = opener(now, role, overhead, parameters)?;
        if awaits_taker {
            transport.await_taker();
        }
        Ok(Arc::new(Mutex::new(transport)))
    })
}

/// The queue of open connections to accept.
type Accepting = mpsc::Sender<Connection>;
