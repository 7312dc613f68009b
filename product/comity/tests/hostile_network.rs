//! Two whole ends over a network that drops, copies, delays, reorders, mangles, truncates and
//! replays datagrams. The network's record and the counters of both ends must agree.

mod actions;
mod totals;

use crate::common;
use crate::side::Side;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use comity::parts::{Seed, Time};
use comity::session::{
    Caller, CallerConfig, CallerCredentials, CallerEvent, Closed, ConnectionId, Ecn, Event,
    KeyLimits, Listener, ListenerConfig, ListenerCredentials, ListenerEvent, PresharedKey,
    Randomness, Session,
};
use comity::transport::{Delivery, Transport, TransportEvent};
use comity::{
    CloseCode, CloseReason, Config, Deliver, Outcome, Reliability, SectionId, Span, Statistics,
    StreamId,
};
use common::{Flights, Parts, World as _};
use proptest::prelude::*;

use actions::action;

const CALLER: &str = "198.51.100.7:4000";
const LISTENER: &str = "192.0.2.1:5000";
/// The source address of some copies, which receives nothing.
const ELSEWHERE: &str = "203.0.113.9:9";
const START: Time = Time::from_secs(1_000);
/// The first byte of a Data packet holds its kind in the high 4 bits.
const DATA: u8 = 4;
/// The shortest one: kind, connection id, packet number, and one byte.
const SHORTEST: usize = 14;
const ID: std::ops::Range<usize> = 1..9;

/// The network's treatment of datagrams: shares of all datagrams, and times.
#[derive(Clone, Copy, Debug)]
struct Hostility {
    drop: f64,
    copy: f64,
    mangle: f64,
    truncate: f64,
    /// The share of departures at which an earlier datagram is replayed too.
    replay: f64,
    /// The share of copies and replays that come from another address.
    elsewhere: f64,
    delay: Span,
    /// The largest extra delay: longer than the gaps between packets, it reorders them.
    jitter: Span,
}

impl Side {
    fn address(self) -> SocketAddr {
        let text = match self {
            Self::Caller => CALLER,
            Self::Listener => LISTENER,
        };
        text.parse().unwrap()
    }
}

/// A datagram on its way.
#[derive(Clone, Debug)]
struct Flight {
    from: Side,
    /// Its number in the network's record, if it is unchanged.
    unchanged: Option<usize>,
    is_elsewhere: bool,
    bytes: Vec<u8>,
}

/// A datagram that an end has sent.
#[derive(Debug)]
struct Departure {
    at: Time,
    bytes: Vec<u8>,
    /// How often it has arrived unchanged.
    arrivals: u32,
    /// Copies of it on the way.
    in_flight: u32,
    /// Whether the network dropped or changed it, rather than a copy of it.
    is_withheld: bool,
}

/// What happened to the datagrams of one direction.
#[derive(Debug, Default)]
struct Ledger {
    departures: Vec<Departure>,
    /// The Data packets among them, and among those to elsewhere.
    data: u64,
    to_elsewhere: u64,
    /// Arrivals that the receiving connection accepted, and those that it refused.
    accepted: u64,
    refused: u64,
}

/// The view of one end's application.
#[derive(Debug, Default)]
struct Application {
    /// The length, the latency and the fate of each section that got a number.
    submitted: BTreeMap<(StreamId, SectionId), (u32, Span, Option<Outcome>)>,
    cancelled: BTreeSet<(StreamId, SectionId)>,
    received: BTreeMap<StreamId, Vec<(Time, Delivery<Bytes>)>>,
    closed: Vec<CloseReason>,
}

/// Packets accepted, forged and stale: what an arrival may change at an end.
type Counts = (u64, u64, u64);

struct World {
    now: Time,
    hostility: Hostility,
    caller: Caller<Transport>,
    listener: Listener<Transport>,
    flights: Flights<Flight>,
    sequence: u64,
    random: Seed,
    ledgers: [Ledger; 2],
    applications: [Application; 2],
    connection: Option<ConnectionId>,
    established: u32,
    calls: u64,
    seed: Seed,
    config: Config,
    limits: KeyLimits,
    has_one_latency: bool,
}

fn byte(side: Side, stream: StreamId, section: SectionId, at: usize) -> u8 {
    let start = side as u64 * 101 + u64::from(stream.0) * 31 + section.0 * 7;
    (start.wrapping_add(at as u64 * 13) >> 2) as u8
}

fn id_of(delivery: &Delivery<Bytes>) -> SectionId {
    match delivery {
        Delivery::Section(section) => section.meta.section,
        Delivery::Gap(gap) => gap.section,
    }
}

fn caller(now: Time, config: &Config, limits: KeyLimits, seed: Seed) -> Caller<Transport> {
    let mut parameters = Vec::new();
    config.parameters().encode(&mut parameters).unwrap();
    let credentials = CallerCredentials::Shared(PresharedKey::new([1; 32]));
    let caller = CallerConfig {
        key_limits: limits,
        timeout: Span::from_secs(20),
        ..CallerConfig::new(credentials, parameters)
    };
    let opener = Transport::opener(config.clone(), seed.derive("caller"));
    let randomness = Randomness::seeded(seed.derive("caller's randomness"));
    Caller::new(now, Side::Listener.address(), caller, opener, randomness).unwrap()
}

impl World {
    fn new(seed: u64, hostility: Hostility, config: Config, limits: KeyLimits) -> Self {
        let seed = Seed::new(seed);
        let mut parameters = Vec::new();
        config.parameters().encode(&mut parameters).unwrap();
        let credentials = ListenerCredentials::Shared(PresharedKey::new([1; 32]));
        let listener = ListenerConfig {
            key_limits: limits,
            ..ListenerConfig::new(credentials, parameters)
        };
        let opener = Transport::opener(config.clone(), seed.derive("listener"));
        let randomness = Randomness::seeded(seed.derive("listener's randomness"));
        Self {
            now: START,
            hostility,
            caller: caller(START, &config, limits, seed.index(0)),
            listener: Listener::new(START, listener, opener, randomness).unwrap(),
            flights: Flights::new(),
            sequence: 0,
            random: seed.derive("network"),
            ledgers: Default::default(),
            applications: Default::default(),
            connection: None,
            established: 0,
            calls: 0,
            seed,
            config,
            limits,
            has_one_latency: false,
        }
    }

    fn draw(&mut self) -> u64 {
        self.sequence += 1;
        self.random.index(self.sequence).get()
    }

    fn chance(&mut self, share: f64) -> bool {
        ((self.draw() >> 11) as f64 / (1_u64 << 53) as f64) < share
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.draw() % limit as u64) as usize
    }

    fn put(&mut self, flight: Flight) {
        if let Some(number) = flight.unchanged {
            self.ledgers[flight.from as usize].departures[number].in_flight += 1;
        }
        let most = self.hostility.jitter.as_nanos() as usize + 1;
        let jitter = Span::from_nanos(self.below(most) as u64);
        let at = (self.now + self.hostility.delay + jitter, self.sequence);
        self.flights.insert(at, flight);
    }

    /// An unchanged copy of a datagram that has left.
    fn copy(&mut self, from: Side, number: usize) {
        let flight = Flight {
            from,
            unchanged: Some(number),
            is_elsewhere: self.chance(self.hostility.elsewhere),
            bytes: self.ledgers[from as usize].departures[number].bytes.clone(),
        };
        self.put(flight);
    }

    /// The datagram, cut or with some bits flipped.
    fn mangled(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut mangled = bytes.to_vec();
        if self.chance(self.hostility.truncate) {
            mangled.truncate(self.below(bytes.len()));
            return mangled;
        }
        // Distinct bits, so that the datagram does change.
        let bits = bytes.len() * 8;
        let first = self.below(bits);
        for bit in (first..bits).step_by(1 + self.below(300)).take(3) {
            mangled[bit / 8] ^= 1 << (bit % 8);
        }
        mangled
    }

    /// Sends a datagram into the network, which may treat it in any way.
    fn carry(&mut self, from: Side, to: SocketAddr, bytes: &[u8]) {
        let hostility = self.hostility;
        let ledger = &mut self.ledgers[from as usize];
        ledger.data += u64::from(bytes[0] >> 4 == DATA);
        if to != from.peer().address() {
            assert_eq!(to.to_string(), ELSEWHERE);
            ledger.to_elsewhere += u64::from(bytes[0] >> 4 == DATA);
            return;
        }
        let number = ledger.departures.len();
        let drops = self.chance(hostility.drop);
        let mangles = self.chance(hostility.mangle);
        self.ledgers[from as usize].departures.push(Departure {
            at: self.now,
            bytes: bytes.to_vec(),
            arrivals: 0,
            in_flight: 0,
            is_withheld: drops || mangles,
        });
        if !drops {
            let flight = Flight {
                from,
                unchanged: (!mangles).then_some(number),
                is_elsewhere: false,
                bytes: match mangles {
                    true => self.mangled(bytes),
                    false => bytes.to_vec(),
                },
            };
            self.put(flight);
        }
        if self.chance(hostility.copy) {
            self.copy(from, number);
        }
        if self.chance(hostility.replay) {
            let old = self.below(number + 1);
            self.copy(from, old);
        }
    }

    fn session(&self, side: Side) -> Option<&Session<Transport>> {
        match side {
            Side::Caller => self.caller.session(),
            Side::Listener => self.listener.session(self.connection?),
        }
    }

    fn transport(&mut self, side: Side) -> Option<&mut Transport> {
        match side {
            Side::Caller => self.caller.session_mut().map(Session::protocol_mut),
            Side::Listener => self.listener.protocol_mut(self.connection?),
        }
    }

    fn statistics(&self, side: Side) -> Statistics {
        let session = self.session(side).expect("it is open");
        session.protocol().stats(self.now, &session.statistics())
    }

    fn counts(&self, side: Side) -> Option<Counts> {
        let session = self.session(side)?;
        let statistics = self.statistics(side);
        (session.closed().is_none()).then_some((
            statistics.received.counters.packets,
            statistics.protection.forged_packets,
            statistics.protection.stale_packets,
        ))
    }

    fn run_for(&mut self, span: Span) {
        self.run(self.now + span);
    }

    fn open(&mut self) {
        for _ in 0..600 {
            self.run_for(Span::from_millis(100));
            if self.established == 1 && self.caller.session().is_some() {
                return;
            }
        }
        panic!("no connection within a minute");
    }

    fn finish(&mut self) {
        for side in Side::BOTH {
            let application = &self.applications[side as usize];
            let mut streams: Vec<_> = application.submitted.keys().map(|(id, _)| *id).collect();
            streams.dedup();
            let transport = self.transport(side).expect("it is open");
            for stream in streams {
                transport.finish_stream(stream).expect("not yet finished");
            }
        }
        let is_settled = |world: &Self, side| {
            let session = world.session(side).expect("it is open");
            session.protocol().is_settled()
        };
        for _ in 0..1_200 {
            self.run_for(Span::from_millis(100));
            if Side::BOTH.iter().all(|&side| is_settled(self, side)) {
                // Received sections may wait for their deadlines.
                self.run_for(Span::from_secs(2));
                return;
            }
        }
        panic!("not settled within two minutes");
    }
}

impl common::World for World {
    type Flight = Flight;

    fn parts(&mut self) -> Parts<'_, Self::Flight> {
        Parts {
            now: &mut self.now,
            flights: &mut self.flights,
            caller: &mut self.caller,
            listener: &mut self.listener,
        }
    }

    fn arrive(&mut self, mut flight: Flight) {
        let side = flight.from.peer();
        // The first packet with one of the listener's ids opens the connection.
        if side == Side::Listener && self.connection.is_none() && flight.bytes.len() >= ID.end {
            let id: [u8; 8] = flight.bytes[ID].try_into().unwrap();
            let id = ConnectionId::new(u64::from_be_bytes(id));
            self.connection = self.listener.ids().find(|&known| known == id);
        }
        let before = self.counts(side);
        let is_for_it = self.session(side).is_some_and(|session| {
            flight.bytes.len() >= SHORTEST
                && flight.bytes[0] >> 4 == DATA
                && flight.bytes[ID] == session.id().get().to_be_bytes()
        });
        let is_closing = self
            .session(side)
            .is_some_and(|session| session.protocol().close_reason().is_some());
        let from = match flight.is_elsewhere {
            true => ELSEWHERE.parse().unwrap(),
            false => flight.from.address(),
        };
        match side {
            Side::Caller => {
                self.caller
                    .handle_datagram(self.now, from, Ecn::NotCapable, &mut flight.bytes);
            }
            Side::Listener => {
                self.listener
                    .handle_datagram(self.now, from, Ecn::NotCapable, &mut flight.bytes);
            }
        }
        let ledger = &mut self.ledgers[flight.from as usize];
        let is_first = flight.unchanged.is_some_and(|number| {
            let departure = &mut ledger.departures[number];
            departure.in_flight -= 1;
            departure.arrivals += 1;
            departure.arrivals == 1
        });
        let (Some(before), Some(after)) = (before, self.counts(side)) else {
            return;
        };
        let ledger = &mut self.ledgers[flight.from as usize];
        // After this time, the receiver may have dropped the packet's key.
        let is_prompt = flight.unchanged.is_some_and(|number| {
            let sent_at = ledger.departures[number].at;
            self.now.saturating_since(sent_at) < self.limits.old_keys_for
        });
        let accepted = after.0 - before.0;
        let (forged, stale) = (after.1 - before.1, after.2 - before.2);
        ledger.accepted += accepted;
        ledger.refused += forged + stale;
        let what = format!(
            "{side:?} at {}, {:?}, {} bytes: {before:?}, then {after:?}",
            self.now,
            flight.unchanged,
            flight.bytes.len()
        );
        if !is_for_it {
            assert_eq!((accepted, forged, stale), (0, 0, 0), "not a packet: {what}");
        } else if flight.unchanged.is_none() {
            assert_eq!((accepted, forged + stale), (0, 1), "mangled: {what}");
        } else if !is_first {
            assert_eq!(accepted, 0, "replayed: {what}");
            assert_eq!(forged + stale, 1, "replayed: {what}");
        } else if is_prompt {
            let expected = (u64::from(!is_closing), 0, 0);
            assert_eq!((accepted, forged, stale), expected, "genuine: {what}");
        } else {
            assert!(accepted + forged + stale <= 1, "genuine: {what}");
        }
    }

    /// Lets both ends send, and their applications read.
    fn settle(&mut self) {
        for side in Side::BOTH {
            let now = self.now;
            let Some(transport) = self.transport(side) else {
                continue;
            };
            let (mut deliveries, mut events) = (Vec::new(), Vec::new());
            while let Some(delivery) = transport.poll_delivery(now) {
                // A run of skipped numbers is one gap.
                deliveries.extend(delivery.each());
            }
            while let Some(event) = transport.poll_event(now) {
                events.push(event);
            }
            let application = &mut self.applications[side as usize];
            for delivery in deliveries {
                let stream = match &delivery {
                    Delivery::Section(section) => section.meta.stream,
                    Delivery::Gap(gap) => gap.stream,
                };
                let received = application.received.entry(stream).or_default();
                received.push((now, delivery));
            }
            for event in events {
                match event {
                    TransportEvent::Outcome(outcome) => {
                        let id = (outcome.stream, outcome.section);
                        let section = application.submitted.get_mut(&id);
                        let (length, _, fate) = section.expect("it was submitted");
                        assert_eq!(outcome.length, *length);
                        assert_eq!(*fate, None, "a second outcome: {outcome:?}");
                        *fate = Some(outcome);
                    }
                    TransportEvent::Closed(reason) => application.closed.push(reason),
                    _ => {}
                }
            }
        }
        let mut out = Vec::new();
        while let Some(datagram) = self.caller.poll_transmit(self.now, &mut out) {
            assert!(datagram.leave_by >= self.now, "a byte leaves late");
            self.carry(Side::Caller, datagram.to, &out);
            out.clear();
        }
        while let Some(datagram) = self.listener.poll_transmit(self.now, &mut out) {
            assert!(datagram.leave_by >= self.now, "a byte leaves late");
            self.carry(Side::Listener, datagram.to, &out);
            out.clear();
        }
        while let Some(event) = self.listener.poll_event() {
            match event {
                ListenerEvent::Session(id, Event::Established { .. }) => {
                    assert_eq!(self.connection, Some(id));
                    self.established += 1;
                }
                ListenerEvent::Session(_, Event::Closed(closed)) => {
                    assert_eq!(closed, Closed::ByProtocol);
                }
                _ => {}
            }
        }
        let mut has_failed = false;
        while let Some(event) = self.caller.poll_event() {
            match event {
                // Refusals of a call carry no proof, so mangled packets can end it.
                CallerEvent::Failed(_) => has_failed = true,
                CallerEvent::Session(Event::Closed(closed)) => {
                    // The listener forgets a closed connection and answers late packets with a
                    // Reset. It also forgets one that was not confirmed in time: the caller calls
                    // again.
                    let transport = self.caller.session().expect("it was open").protocol();
                    has_failed |= self.established == 0;
                    let is_answer = transport.close_reason().is_some() || has_failed;
                    assert!(closed == Closed::ByProtocol || is_answer, "{closed}");
                }
                CallerEvent::Session(_) => {}
            }
        }
        if has_failed {
            assert_eq!(self.established, 0);
            self.calls += 1;
            self.connection = None;
            for ledger in &mut self.ledgers {
                (ledger.data, ledger.accepted, ledger.refused) = (0, 0, 0);
                ledger.to_elsewhere = 0;
            }
            let seed = self.seed.index(self.calls);
            self.caller = caller(self.now, &self.config, self.limits, seed);
        }
    }
}

fn share(most: f64) -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..most]
}

fn hostility() -> impl Strategy<Value = Hostility> {
    let shares = (
        share(0.25),
        share(0.3),
        share(0.2),
        share(1.0),
        share(0.3),
        share(1.0),
    );
    (shares, 1_u64..60, prop_oneof![Just(0), 0_u64..80]).prop_map(
        |((drop, copy, mangle, truncate, replay, elsewhere), delay_ms, jitter_ms)| Hostility {
            drop,
            copy,
            mangle,
            truncate,
            replay,
            elsewhere,
            delay: Span::from_millis(delay_ms),
            jitter: Span::from_millis(jitter_ms),
        },
    )
}

fn config(reliability: Reliability, deliver: Deliver) -> Config {
    Config::builder()
        .preshared_key(PresharedKey::new([1; 32]))
        .reliability(reliability)
        .deliver(deliver)
        .latency(Duration::from_millis(400))
        .build()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_totals_of_the_network_and_of_both_ends_agree(
        seed in any::<u64>(),
        hostility in hostility(),
        reliability in prop_oneof![
            4 => Just(Reliability::Timeline), 1 => Just(Reliability::None), 1 => Just(Reliability::Full)
        ],
        deliver in prop_oneof![Just(Deliver::Early), Just(Deliver::Paced)],
        update_after_packets in prop_oneof![Just(16_u64), Just(1 << 22)],
        old_keys_for_ms in prop_oneof![3 => Just(200_u64), 1 => Just(20)],
        one_latency_ms in prop::option::of(50_u64..800),
        mut actions in prop::collection::vec(action(), 5..80),
    ) {
        let limits = KeyLimits {
            update_after_packets,
            old_keys_for: Span::from_millis(old_keys_for_ms),
            ..KeyLimits::default()
        };
        let mut world = World::new(seed, hostility, config(reliability, deliver), limits);
        world.has_one_latency = one_latency_ms.is_some();
        for action in &mut actions {
            action.latency_ms = one_latency_ms.unwrap_or(action.latency_ms);
        }
        world.open();
        for action in &actions {
            world.run_for(Span::from_millis(action.pause_ms));
            world.act(action);
        }
        world.finish();
        for side in Side::BOTH {
            world.check_sections(side);
            world.check_packets(side);
        }
        let now = world.now;
        world.transport(Side::Caller).unwrap().close(now, CloseCode::DONE, "");
        world.run_for(Span::from_secs(40));
        prop_assert_eq!(world.established, 1);
        let closed = &world.applications[Side::Listener as usize].closed;
        prop_assert!(closed.len() == 1, "{:?}", closed);
    }
}
