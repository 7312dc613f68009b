//! Two ends with clocks of their own, the path between them, and their applications.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use comity::parts::{Seed, Time};
use comity::session::{
    Caller, CallerConfig, CallerCredentials, Closed, ConnectionId, Ecn, Event, KeyLimits, Listener,
    ListenerConfig, ListenerCredentials, ListenerEvent, PresharedKey, Randomness, Session,
};
use comity::transport::{Outgoing, Transport};
use comity::{CloseCode, Config, Importance, SendError, Span, StreamId};

use crate::counts::{Counts, Totals, payload};
use crate::faults::{Faults, Link};
use crate::side::Side;

pub(crate) const START: Time = Time::from_secs(1_000);
/// From a section's source time to its deadline.
const LATENCY: Span = Span::from_millis(400);
/// After a lost connection, or a failed call, the caller calls again.
const BEFORE_A_CALL: Span = Span::from_millis(250);
/// The time in which everything is settled over a good path: a suspended end, a lost connection, a
/// call, and the deadlines. It is also enough for a young connection to learn its path, before
/// which it holds less memory.
const CALM: Span = Span::from_secs(120);
/// The datagrams that wait for a suspended end, at most.
const SYSTEM_BUFFER: usize = 2_000;

/// The clock of an end, with its own start and speed.
#[derive(Clone, Copy, Debug)]
struct Clock {
    ahead: Span,
    faster_ppb: i128,
}

impl Clock {
    /// The time on the clock at a time of the world.
    fn local(self, at: Time) -> Time {
        let nanos = i128::from(at.as_nanos());
        let shown = nanos + nanos * self.faster_ppb / 1_000_000_000;
        Time::from_nanos(u64::try_from(shown).expect("no clock runs back")) + self.ahead
    }

    /// The time of the world at which the clock shows this time, or a nanosecond later.
    fn world(self, local: Time) -> Time {
        if local.is_never() {
            return Time::MAX;
        }
        let shown = i128::from(local.saturating_sub(self.ahead).as_nanos());
        let nanos = shown * 1_000_000_000 / (1_000_000_000 + self.faster_ppb);
        let mut at = Time::from_nanos(nanos as u64);
        while self.local(at) < local {
            at += Span::from_nanos(1);
        }
        at
    }
}

/// A datagram on its way.
#[derive(Debug)]
struct Flight {
    to: Side,
    from: SocketAddr,
    /// The number of the caller's call.
    call: u64,
    bytes: Vec<u8>,
}

/// One connection, by the call that opened it.
#[derive(Debug, Default)]
struct Connection {
    /// By sender.
    counts: [Counts; 2],
    /// Whether each end is over.
    is_over: [bool; 2],
    was_killed: [bool; 2],
    /// Its identifier at the listener, if the listener knows the caller.
    id: Option<ConnectionId>,
}

impl Connection {
    /// Checks that every end that was not killed has reported all sections.
    fn check(&self) {
        for side in Side::BOTH {
            let counts = &self.counts[side as usize];
            if !self.was_killed[side as usize] {
                counts.check_sender();
            }
            if !self.was_killed[side.peer() as usize] {
                counts.check_receiver();
            }
        }
    }
}

pub(crate) struct World {
    now: Time,
    clocks: [Clock; 2],
    suspended_until: [Time; 2],
    pub(crate) link: Link,
    caller: Caller<Transport>,
    /// The address of the caller, and the number of its call.
    caller_address: SocketAddr,
    call: u64,
    call_at: Time,
    listener: Listener<Transport>,
    listeners: u64,
    connections: BTreeMap<u64, Connection>,
    /// The calls of the listener's connections.
    owners: BTreeMap<ConnectionId, u64>,
    /// The connection that was opened last.
    open: Option<ConnectionId>,
    flights: BTreeMap<(Time, u64), Flight>,
    sequence: u64,
    seed: Seed,
    faults: Option<Faults>,
    totals: Totals,
}

fn config() -> Config {
    Config::builder()
        .preshared_key(PresharedKey::new([1; 32]))
        .latency(LATENCY.into())
        .idle_timeout(Duration::from_secs(5))
        .build()
        .expect("valid options")
}

fn parameters() -> Vec<u8> {
    let mut parameters = Vec::new();
    config()
        .parameters()
        .encode(&mut parameters)
        .expect("valid");
    parameters
}

fn limits() -> KeyLimits {
    KeyLimits {
        update_after_packets: 2_000,
        ..KeyLimits::default()
    }
}

fn listener_address() -> SocketAddr {
    ([192, 0, 2, 1], 5_000).into()
}

fn caller(now: Time, seed: Seed) -> Caller<Transport> {
    let credentials = CallerCredentials::Shared(PresharedKey::new([1; 32]));
    let calling = CallerConfig {
        key_limits: limits(),
        ..CallerConfig::new(credentials, parameters())
    };
    let opener = Transport::opener(config(), seed.derive("transport"));
    let randomness = Randomness::seeded(seed.derive("session"));
    Caller::new(now, listener_address(), calling, opener, randomness).expect("valid")
}

fn listener(now: Time, seed: Seed) -> Listener<Transport> {
    let credentials = ListenerCredentials::Shared(PresharedKey::new([1; 32]));
    let listening = ListenerConfig {
        instance: Some(b"the listener".to_vec()),
        key_limits: limits(),
        ..ListenerConfig::new(credentials, parameters())
    };
    let opener = Transport::opener(config(), seed.derive("transport"));
    let randomness = Randomness::seeded(seed.derive("session"));
    Listener::new(now, listening, opener, randomness).expect("valid")
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let seed = Seed::new(seed);
        let clocks = [
            Clock {
                ahead: Span::from_secs(5_000),
                faster_ppb: 40_000,
            },
            Clock {
                ahead: Span::from_secs(7),
                faster_ppb: -30_000,
            },
        ];
        let [calling, listening] = clocks;
        Self {
            now: START,
            clocks,
            suspended_until: [START; 2],
            link: Link::GOOD,
            caller: caller(calling.local(START), seed.derive("caller").index(1)),
            caller_address: ([198, 51, 100, 7], 4_000).into(),
            call: 1,
            call_at: Time::MAX,
            listener: listener(listening.local(START), seed.derive("listener").index(1)),
            listeners: 1,
            connections: BTreeMap::from([(1, Connection::default())]),
            owners: BTreeMap::new(),
            open: None,
            flights: BTreeMap::new(),
            sequence: 0,
            seed,
            faults: None,
            totals: Totals::default(),
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    fn local(&self, side: Side) -> Time {
        self.clocks[side as usize].local(self.now)
    }

    // ---------------------------------------------------------------- chance

    fn draw(&mut self) -> u64 {
        self.sequence += 1;
        self.seed.index(self.sequence).get()
    }

    fn chance(&mut self, share: f64) -> bool {
        ((self.draw() >> 11) as f64 / (1_u64 << 53) as f64) < share
    }

    /// A number from the first to the last.
    pub(crate) fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.draw() % (last - first + 1)
    }

    /// A length in milliseconds, both bounds included.
    pub(crate) fn span(&mut self, shortest: u64, longest: u64) -> Span {
        Span::from_millis(self.between(shortest, longest))
    }

    pub(crate) fn either(&mut self) -> Side {
        Side::BOTH[self.between(0, 1) as usize]
    }

    // ---------------------------------------------------------------- faults

    /// Packets of the caller come from another address from now on, and the old one stops working.
    pub(crate) fn relocate(&mut self) {
        let port = 4_000 + (self.draw() % 50_000) as u16;
        self.caller_address = ([198, 51, 100, 7], port).into();
        if self.chance(0.5)
            && let Some(session) = self.caller.session_mut()
        {
            // Otherwise a translator on the path changes the address, and the caller does not know.
            session.on_moved();
        }
        self.totals.moves += 1;
    }

    /// An end is inactive for a while and its clock goes on, as if its host were suspended or its
    /// clock jumped.
    pub(crate) fn suspend(&mut self, side: Side, length: Span) {
        self.suspended_until[side as usize] = self.now + length;
        self.totals.suspended += 1;
    }

    /// Kills the caller's process and starts another one.
    pub(crate) fn restart_caller(&mut self) {
        self.totals.killed += 1;
        // It may be waiting for its next call.
        if self.call_at.is_never() {
            self.leave_call(true);
        }
        self.suspended_until[Side::Caller as usize] = self.now;
        self.call();
    }

    /// Kills the listener's process and starts another one.
    pub(crate) fn restart_listener(&mut self) {
        self.totals.killed += 1;
        // A call that the listener does not know reaches the new one.
        let known = |connection: &&mut Connection| connection.id.is_some();
        for connection in self.connections.values_mut().filter(known) {
            let side = Side::Listener as usize;
            connection.was_killed[side] |= !connection.is_over[side];
            connection.is_over[side] = true;
        }
        self.owners.clear();
        self.open = None;
        self.suspended_until[Side::Listener as usize] = self.now;
        self.listeners += 1;
        let seed = self.seed.derive("listener").index(self.listeners);
        self.listener = listener(self.local(Side::Listener), seed);
        self.forget();
    }

    /// Ends the caller's part of the present call.
    fn leave_call(&mut self, was_killed: bool) {
        if let Some(session) = self.caller.session() {
            let now = self.clocks[0].local(self.now);
            let statistics = session.protocol().stats(now, &session.statistics());
            self.totals.black_holes += statistics.sent.counters.black_holes;
            self.totals.key_updates += statistics.protection.key_updates;
            assert_eq!(statistics.sent.counters.late_bytes, 0);
        }
        let connection = self.connections.get_mut(&self.call).expect("it calls");
        connection.is_over[Side::Caller as usize] = true;
        connection.was_killed[Side::Caller as usize] = was_killed;
        if connection.id.is_none() {
            connection.is_over[Side::Listener as usize] = true;
        }
        self.forget();
    }

    fn call(&mut self) {
        self.call += 1;
        self.call_at = Time::MAX;
        let seed = self.seed.derive("caller").index(self.call);
        self.caller = caller(self.local(Side::Caller), seed);
        self.connections.insert(self.call, Connection::default());
    }

    /// Adds up and removes connections that have ended at both ends.
    fn forget(&mut self) {
        let totals = &mut self.totals;
        self.connections.retain(|_, connection| {
            let is_over = connection.is_over == [true; 2];
            if is_over {
                totals.connections += u64::from(connection.id.is_some());
                connection.check();
                for counts in &connection.counts {
                    counts.add_to(totals);
                }
            }
            !is_over
        });
    }

    /// The sums of a settled world.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = self.totals;
        for connection in self.connections.values() {
            totals.connections += u64::from(connection.id.is_some());
            for counts in &connection.counts {
                counts.add_to(&mut totals);
            }
        }
        totals
    }

    // ---------------------------------------------------------------- time

    /// Runs the applications and the faults until this time.
    pub(crate) fn live(&mut self, until: Time) {
        let mut faults = match self.faults.take() {
            Some(faults) => faults,
            None => Faults::new(self),
        };
        while self.now < until {
            let pause = Span::from_millis(self.between(20, 200));
            self.run(self.now + pause);
            let idle_until = faults.inject(self).min(until);
            if self.now < idle_until {
                self.run(idle_until);
            }
            // Three of four sections are the caller's.
            let side = match self.between(0, 3) {
                0 => Side::Listener,
                _ => Side::Caller,
            };
            self.submit(side);
        }
        self.faults = Some(faults);
    }

    /// Lets everything arrive over a good path, and checks that nothing is open.
    pub(crate) fn settle_all(&mut self) {
        let link = std::mem::replace(&mut self.link, Link::GOOD);
        self.run(self.now + CALM);
        self.link = link;
        assert_eq!(self.connections.len(), 1, "{:?}", self.connections);
        let connection = self.connections.get(&self.call).expect("it calls");
        assert!(connection.id.is_some() && connection.is_over == [false; 2]);
        for counts in &connection.counts {
            counts.check_settled();
        }
    }

    fn run(&mut self, until: Time) {
        self.serve();
        loop {
            let flight = self.flights.keys().next().map_or(Time::MAX, |key| key.0);
            let timers = Side::BOTH.map(|side| {
                let timer = match side {
                    Side::Caller => self.caller.next_timer(),
                    Side::Listener => self.listener.next_timer(),
                };
                let clock = self.clocks[side as usize];
                clock.world(timer).max(self.suspended_until[side as usize])
            });
            let call = self
                .call_at
                .max(self.suspended_until[Side::Caller as usize]);
            let next = flight.min(timers[0]).min(timers[1]).min(call);
            if next > until {
                self.now = until;
                return;
            }
            // A late pacer requests a time in the past.
            self.now = self.now.max(next);
            while let Some(entry) = self.flights.first_entry()
                && entry.key().0 <= self.now
            {
                let flight = entry.remove();
                self.arrive(flight);
            }
            if self.is_awake(Side::Caller) {
                if self.call_at <= self.now {
                    self.call();
                }
                let now = self.local(Side::Caller);
                if self.caller.next_timer() <= now {
                    self.caller.on_timer(now);
                }
            }
            let now = self.local(Side::Listener);
            if self.is_awake(Side::Listener) && self.listener.next_timer() <= now {
                self.listener.on_timer(now);
            }
            self.serve();
        }
    }

    fn is_awake(&self, side: Side) -> bool {
        self.suspended_until[side as usize] <= self.now
    }

    // ---------------------------------------------------------------- path

    fn send(&mut self, from: Side, to: SocketAddr, bytes: &[u8]) {
        let link = self.link;
        let is_swallowed = bytes.len() > link.size || self.now < link.outage_until;
        let is_gone = from == Side::Listener && to != self.caller_address;
        if is_swallowed || is_gone || self.chance(link.loss) {
            return;
        }
        let copies = 1 + usize::from(self.chance(link.duplication));
        for _ in 0..copies {
            let jitter = Span::from_nanos(self.between(0, link.jitter.as_nanos()));
            let address = match from {
                Side::Caller => self.caller_address,
                Side::Listener => listener_address(),
            };
            let flight = Flight {
                to: from.peer(),
                from: address,
                call: self.call,
                bytes: bytes.to_vec(),
            };
            // Each draw increments the sequence.
            let at = (self.now + link.delay + jitter, self.sequence);
            self.flights.insert(at, flight);
        }
    }

    fn arrive(&mut self, mut flight: Flight) {
        if !self.is_awake(flight.to) {
            if self.flights.len() < SYSTEM_BUFFER {
                self.sequence += 1;
                let at = (self.suspended_until[flight.to as usize], self.sequence);
                self.flights.insert(at, flight);
            }
            return;
        }
        let now = self.local(flight.to);
        let Flight {
            to,
            from,
            call,
            bytes,
        } = &mut flight;
        match to {
            Side::Caller => self
                .caller
                .handle_datagram(now, *from, Ecn::NotCapable, bytes),
            Side::Listener => {
                let before = self.listener.connections();
                self.listener
                    .handle_datagram(now, *from, Ecn::NotCapable, bytes);
                if self.listener.connections() > before {
                    let new = self.listener.ids().find(|id| !self.owners.contains_key(id));
                    self.owners.insert(new.expect("it was just opened"), *call);
                }
            }
        }
    }

    // ---------------------------------------------------------------- ends

    fn serve(&mut self) {
        if self.is_awake(Side::Caller) {
            self.serve_caller();
        }
        if self.is_awake(Side::Listener) {
            self.serve_listener();
        }
    }

    fn serve_caller(&mut self) {
        let now = self.local(Side::Caller);
        if let Some(session) = self.caller.session_mut()
            && let Some(connection) = self.connections.get_mut(&self.call)
        {
            let is_cut = session
                .closed()
                .is_some_and(|closed| closed != Closed::ByProtocol);
            serve(
                now,
                session.protocol_mut(),
                &mut connection.counts,
                Side::Caller,
                is_cut,
            );
        }
        let mut out = Vec::new();
        while let Some(datagram) = self.caller.poll_transmit(now, &mut out) {
            self.send(Side::Caller, datagram.to, &out);
            out.clear();
        }
        while self.caller.poll_event().is_some() {}
        if self.caller.is_over() && self.call_at.is_never() {
            self.leave_call(false);
            self.call_at = self.now + BEFORE_A_CALL;
        }
    }

    fn serve_listener(&mut self) {
        let now = self.local(Side::Listener);
        let ids: Vec<_> = self.listener.ids().collect();
        self.owners.retain(|id, _| ids.contains(id));
        for id in ids {
            let call = self.owners.get(&id);
            let connection = call.and_then(|call| self.connections.get_mut(call));
            let (Some(connection), Some(session)) = (connection, self.listener.session_mut(id))
            else {
                continue;
            };
            let is_cut = session
                .closed()
                .is_some_and(|closed| closed != Closed::ByProtocol);
            serve(
                now,
                session.protocol_mut(),
                &mut connection.counts,
                Side::Listener,
                is_cut,
            );
            self.listener.make_ready(id);
        }
        let mut out = Vec::new();
        while let Some(datagram) = self.listener.poll_transmit(now, &mut out) {
            self.send(Side::Listener, datagram.to, &out);
            out.clear();
        }
        while let Some(event) = self.listener.poll_event() {
            let ListenerEvent::Session(id, event) = event else {
                continue;
            };
            let call = self.owners.get(&id);
            let Some(connection) = call.and_then(|call| self.connections.get_mut(call)) else {
                continue;
            };
            match event {
                Event::Established { .. } => {
                    connection.id = Some(id);
                    self.open = Some(id);
                }
                Event::Closed(_) => connection.is_over[Side::Listener as usize] = true,
                _ => {}
            }
        }
        self.forget();
    }

    /// The application of an end submits a section, if it has a connection with room.
    fn submit(&mut self, from: Side) {
        if !self.is_awake(from) {
            return;
        }
        let (now, length) = (self.local(from), self.between(1, 2_500) as usize);
        let (call, transport) = match from {
            Side::Caller => {
                let session = self.caller.session_mut().map(Session::protocol_mut);
                (Some(self.call), session)
            }
            Side::Listener => {
                let id = self.open.unwrap_or(ConnectionId::new(0));
                let call = self.owners.get(&id).copied();
                (call, self.listener.protocol_mut(id))
            }
        };
        let connection = call.and_then(|call| self.connections.get_mut(&call));
        let (Some(connection), Some(transport)) = (connection, transport) else {
            return;
        };
        let counts = &mut connection.counts[from as usize];
        let section = Outgoing {
            stream: StreamId(0),
            importance: Importance(0),
            source_time: now,
            deadline: now + LATENCY,
            needs: None,
            payload: Bytes::from(payload(counts.submitted(), length)),
        };
        match transport.submit(now, section) {
            Ok(number) => counts.submit(self.now, number.0),
            // Nothing was acknowledged for a long time, or the connection is closing.
            Err(SendError::Full { .. } | SendError::Closed(_)) => {}
            Err(error) => panic!("{error}"),
        }
        self.serve();
    }
}

/// Handles the reports of an end's transport. If its connection was cut, the transport is closed,
/// as by the endpoint.
fn serve(now: Time, transport: &mut Transport, counts: &mut [Counts; 2], side: Side, is_cut: bool) {
    if is_cut {
        transport.close(now, CloseCode::SHUTDOWN, "");
    }
    counts[side.peer() as usize].receive(now, transport);
    counts[side as usize].gather(now, transport);
}
