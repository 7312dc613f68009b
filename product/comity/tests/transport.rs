//! Two complete sessions, with the deadline transport in them, over a path in virtual time.

use crate::common;

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use comity::parts::{Seed, Time};
use comity::session::{
    CallError, Caller, CallerConfig, CallerCredentials, CallerEvent, ConnectionId, Ecn, Event,
    KeyLimits, Listener, ListenerConfig, ListenerCredentials, ListenerEvent, PresharedKey,
    Randomness, Role, Session,
};
use comity::transport::{Delivery, Outgoing, Parameters, Transport, TransportEvent};
use comity::{
    CloseCode, CloseReason, Config, Deliver, GapReason, Importance, SectionId, Span, StreamId,
};
use comity_congestion::table;
use common::{Flights, Parts, World as _};
use proptest::prelude::*;

const CALLER: &str = "198.51.100.7:4000";
const LISTENER: &str = "192.0.2.1:5000";
/// The start of the clock: not zero.
const START: Time = Time::from_secs(1_000);

#[derive(Clone, Copy, Debug)]
struct Path {
    loss: f64,
    duplication: f64,
    delay: Span,
    jitter: Span,
}

const CLEAN: Path = Path {
    loss: 0.0,
    duplication: 0.0,
    delay: Span::from_millis(20),
    jitter: Span::ZERO,
};

fn options() -> Config {
    options_with("steady")
}

fn options_with(controller: &str) -> Config {
    Config::builder()
        .controller(controller)
        .preshared_key(PresharedKey::new([1; 32]))
        .deliver(Deliver::Early)
        .latency(Duration::from_millis(400))
        .build()
        .unwrap()
}

struct World {
    now: Time,
    path: Path,
    caller: Caller<Transport>,
    listener: Listener<Transport>,
    flights: Flights<(bool, Vec<u8>)>,
    sequence: u64,
    random: Seed,
    failed: Option<CallError>,
    received: Vec<(Time, Delivery<Bytes>)>,
    closed: Vec<CloseReason>,
    /// The address from which the caller's packets reach the listener.
    caller_at: SocketAddr,
    /// How often the listener has followed its caller to another address.
    moves: usize,
}

impl World {
    fn new(seed: u64, path: Path, callers_key: u8, limits: KeyLimits) -> Self {
        Self::with(seed, path, callers_key, limits, options())
    }

    fn with(seed: u64, path: Path, callers_key: u8, limits: KeyLimits, options: Config) -> Self {
        let seed = Seed::new(seed);
        let mut randomness = Randomness::seeded(seed);
        let mut parameters = Vec::new();
        options.parameters().encode(&mut parameters).unwrap();
        let key = PresharedKey::new([callers_key; 32]);
        let caller = Caller::new(
            START,
            LISTENER.parse().unwrap(),
            CallerConfig {
                key_limits: limits,
                // Paths here lose up to a quarter of all round trips.
                timeout: Span::from_secs(8),
                ..CallerConfig::new(CallerCredentials::Shared(key), parameters.clone())
            },
            Transport::opener(options.clone(), seed.derive("caller")),
            randomness.split(),
        )
        .unwrap();
        let key = PresharedKey::new([1; 32]);
        let listener = Listener::new(
            START,
            ListenerConfig {
                key_limits: limits,
                ..ListenerConfig::new(ListenerCredentials::Shared(key), parameters)
            },
            Transport::opener(options, seed.derive("listener")),
            randomness.split(),
        )
        .unwrap();
        Self {
            now: START,
            path,
            caller,
            listener,
            flights: Flights::new(),
            sequence: 0,
            random: seed.derive("path"),
            failed: None,
            received: Vec::new(),
            closed: Vec::new(),
            caller_at: CALLER.parse().unwrap(),
            moves: 0,
        }
    }

    /// In [0, 1).
    fn draw(&mut self) -> f64 {
        self.sequence += 1;
        (self.random.index(self.sequence).get() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn carry(&mut self, to_listener: bool, bytes: &[u8], further: Span) {
        let copies = 1 + usize::from(self.draw() < self.path.duplication);
        for _ in 0..copies {
            if self.draw() < self.path.loss {
                continue;
            }
            let delay = further + self.path.delay + self.path.jitter.mul_f64(self.draw());
            let at = (self.now + delay, self.sequence);
            self.flights.insert(at, (to_listener, bytes.to_vec()));
        }
    }

    fn accepted(&self) -> Option<ConnectionId> {
        self.listener.ids().next()
    }

    fn sender(&mut self) -> Option<&mut Session<Transport>> {
        self.caller.session_mut()
    }

    fn submit(&mut self, length: usize, importance: u8, deadline: Span) -> SectionId {
        let now = self.now;
        let section = Outgoing {
            stream: StreamId(0),
            importance: Importance(importance),
            source_time: now,
            deadline: now + deadline,
            needs: None,
            payload: Bytes::from(vec![importance; length]),
        };
        let transport = self.sender().expect("open").protocol_mut();
        transport.submit(now, section).expect("there is room")
    }

    /// Submits a section of a life of one second, unless the send buffer is full.
    fn submit_at_listener(&mut self, length: usize) {
        let (now, id) = (self.now, self.accepted().expect("open"));
        let section = Outgoing {
            stream: StreamId(0),
            importance: Importance(1),
            source_time: now,
            deadline: now + Span::from_secs(1),
            needs: None,
            payload: Bytes::from(vec![1; length]),
        };
        let transport = self.listener.protocol_mut(id).expect("open");
        let _ = transport.submit(now, section);
        self.listener.make_ready(id);
    }
}

impl common::World for World {
    type Flight = (bool, Vec<u8>);

    fn parts(&mut self) -> Parts<'_, Self::Flight> {
        Parts {
            now: &mut self.now,
            flights: &mut self.flights,
            caller: &mut self.caller,
            listener: &mut self.listener,
        }
    }

    fn arrive(&mut self, (to_listener, mut bytes): Self::Flight) {
        let (now, ecn) = (self.now, Ecn::NotCapable);
        if to_listener {
            self.listener
                .handle_datagram(now, self.caller_at, ecn, &mut bytes);
        } else {
            let from: SocketAddr = LISTENER.parse().unwrap();
            self.caller.handle_datagram(now, from, ecn, &mut bytes);
        }
    }

    fn settle(&mut self) {
        let mut out = Vec::new();
        while let Some(datagram) = self.caller.poll_transmit(self.now, &mut out) {
            let start = out.len() - datagram.length;
            self.carry(true, &out[start..], Span::ZERO);
        }
        out.clear();
        if let Some(id) = self.accepted()
            && let Some(session) = self.listener.session_mut(id)
        {
            let transport = session.protocol_mut();
            while let Some(delivery) = transport.poll_delivery(self.now) {
                let now = self.now;
                self.received
                    .extend(delivery.each().map(|each| (now, each)));
            }
            while let Some(event) = transport.poll_event(self.now) {
                if let TransportEvent::Closed(reason) = event {
                    self.closed.push(reason);
                }
            }
            self.listener.make_ready(id);
        }
        while let Some(datagram) = self.listener.poll_transmit(self.now, &mut out) {
            let start = out.len() - datagram.length;
            // The caller answers challenges to two of its addresses one by one.
            let is_home = datagram.to == CALLER.parse().unwrap();
            let further = if is_home {
                Span::ZERO
            } else {
                Span::from_millis(1)
            };
            self.carry(false, &out[start..], further);
        }
        while let Some(event) = self.caller.poll_event() {
            if let CallerEvent::Failed(error) = event {
                self.failed = Some(error);
            }
        }
        while let Some(event) = self.listener.poll_event() {
            let moved = matches!(event, ListenerEvent::Session(_, Event::PathChanged { .. }));
            self.moves += usize::from(moved);
        }
    }
}

#[test]
fn a_wrong_key_opens_nothing() {
    let mut world = World::new(1, CLEAN, 2, KeyLimits::default());
    world.run(START + Span::from_secs(12));
    assert_eq!(
        world.failed,
        Some(CallError::SharedKey {
            address: LISTENER.parse().unwrap()
        })
    );
    assert_eq!(world.listener.connections(), 0);
    assert!(world.caller.session().is_none());
}

#[test]
fn the_larger_latency_and_the_smaller_datagram_apply() {
    let mut world = World::new(1, CLEAN, 1, KeyLimits::default());
    world.run(START + Span::from_millis(500));
    // The search for the packet size runs beside sections.
    world.submit(100_000, 1, Span::from_secs(2));
    world.run(START + Span::from_secs(2));
    let now = world.now;
    let session = world.sender().unwrap();
    let statistics = session.protocol().stats(now, &session.statistics());
    assert_eq!(session.protocol().latency(), Span::from_millis(400));
    assert_eq!(statistics.path.payload_bytes, 1_452 - 29);
}

/// A viewer could otherwise make a sender hold sections, and wait at its end, for 285 years.
#[test]
fn a_peers_latency_counts_up_to_the_maximum() {
    let latency = |own: u64, max: u64, peers: u64| {
        let config = Config::builder()
            .insecure()
            .latency(Duration::from_millis(own))
            .max_latency(Duration::from_millis(max))
            .build()
            .unwrap();
        let peer = Parameters {
            latency: Span::from_millis(peers),
            ..Parameters::default()
        };
        let transport = Transport::open(START, Role::Listener, &config, 29, peer, Seed::new(1));
        transport.unwrap().latency().as_millis()
    };
    assert_eq!(latency(120, 60_000, 80), 120);
    assert_eq!(latency(120, 60_000, 5_000), 5_000);
    assert_eq!(latency(120, 60_000, 3_600_000), 60_000);
    assert_eq!(latency(120, 2_000, 3_600_000), 2_000);
    // Each end's own latency is as good as its maximum.
    assert_eq!(latency(4_000, 2_000, 3_600_000), 4_000);
}

/// The receiver has acknowledged everything and sends no packet that could cause another Close.
#[test]
fn a_lost_close_is_retransmitted() {
    let mut world = World::new(1, CLEAN, 1, KeyLimits::default());
    world.run(START + Span::from_millis(500));
    world.submit(5_000, 1, Span::from_millis(400));
    world.run(START + Span::from_secs(1));
    let now = world.now;
    let sender = world.sender().unwrap().protocol_mut();
    assert!(sender.is_settled());
    sender.close(now, CloseCode::DONE, "");
    world.path.loss = 1.0;
    world.run(now + Span::from_millis(1));
    world.path.loss = 0.0;
    // Long before the idle timeout.
    world.run(now + Span::from_secs(1));
    let [CloseReason::Peer { code, .. }] = world.closed.as_slice() else {
        panic!("{:?}", world.closed);
    };
    assert_eq!(*code, CloseCode::DONE);
}

/// The receiver's half gets the sender's parameters, and refuses those that it cannot apply.
#[test]
fn the_parameters_of_a_controller_reach_its_meter() {
    let row = table::find("real").unwrap();
    let set = table::Parameters::new()
        .with("opening", row.parse("opening", "jump").unwrap())
        .with("max_level", row.parse("max_level", "48").unwrap());
    let builder = || Config::builder().insecure().controller("real");
    let given = builder().controller_parameters(set).build().unwrap();
    let parameters = given.parameters();
    assert_eq!(
        parameters.meter_parameters.as_deref(),
        Some("max_level=48&opening=jump")
    );
    let open = |peer| {
        let options = builder().build().unwrap();
        Transport::open(START, Role::Listener, &options, 29, peer, Seed::new(1))
    };
    let meter_of = |transport: &Transport| {
        let all = format!("{transport:?}");
        let at = all.find("WaveMeter").expect("there is a meter");
        let behind = all[at..].to_owned();
        (behind.contains("max_level: 48"), behind.contains("Jump"))
    };
    assert_eq!(meter_of(&open(parameters.clone()).unwrap()), (true, true));
    let usual = builder().build().unwrap().parameters();
    assert_eq!(usual.meter_parameters, None);
    assert_eq!(meter_of(&open(usual).unwrap()), (false, false));
    for refused in [
        "level=48",
        "max_level=0",
        "max_level=many",
        "max_level=48&max_level=48",
        "max_level",
        "=48",
    ] {
        let peer = Parameters {
            meter_parameters: Some(refused.to_owned()),
            ..parameters.clone()
        };
        assert!(open(peer).is_err(), "{refused}");
    }
    let without_meter = Parameters {
        meter: None,
        ..parameters
    };
    assert!(open(without_meter).is_err());
    let plain = Config::builder().insecure().controller("reno").build();
    assert_eq!(plain.unwrap().parameters().meter_parameters, None);
}

/// An older peer does not state the parameter.
#[test]
fn a_peer_without_proofs_is_served_unless_they_are_required() {
    let builder = || Config::builder().insecure();
    let own = builder().build().unwrap().parameters();
    assert!(own.proofs);
    let older = Parameters {
        proofs: false,
        ..own.clone()
    };
    for (required, peer, is_open) in [
        (false, &older, true),
        (true, &older, false),
        (true, &own, true),
    ] {
        let config = builder().require_proofs(required).build().unwrap();
        let opened = Transport::open(
            START,
            Role::Listener,
            &config,
            29,
            peer.clone(),
            Seed::new(1),
        );
        assert_eq!(opened.is_ok(), is_open, "{required}, {peer:?}");
    }
}

/// On a path of 60 ms, no section with a deadline of 40 ms is on time, and every one with 80 ms is,
/// from the first one on: the handshake has related the clocks.
#[test]
fn punctuality_is_known_from_the_first_section() {
    for (deadline_ms, on_time) in [(40, 0), (80, 10)] {
        let path = Path {
            delay: Span::from_millis(60),
            ..CLEAN
        };
        let mut world = World::new(1, path, 1, KeyLimits::default());
        while world.sender().is_none() {
            world.run(world.now + Span::from_millis(1));
        }
        for number in 0..10 {
            world.submit(50, number, Span::from_millis(deadline_ms));
        }
        world.run(world.now + Span::from_millis(90));
        let id = world.accepted().unwrap();
        let session = world.listener.session_mut(id).unwrap();
        let statistics = session.protocol().stats(world.now, &session.statistics());
        let received = &statistics.received;
        assert_eq!(received.on_time_sections, on_time, "{deadline_ms} ms");
        assert_eq!(received.late_sections + received.gaps.sum(), 10 - on_time);
        let whole = |(_, delivery): &(Time, Delivery<Bytes>)| matches!(delivery, Delivery::Section(section) if !section.is_late);
        assert_eq!(
            world.received.iter().filter(|&each| whole(each)).count() as u64,
            on_time
        );
        // Both ends share one clock here, and the caller knows the relation too.
        let transport = world.sender().unwrap().protocol();
        let (time, error) = (START, Span::from_millis(1));
        let local = transport.to_local(time);
        assert!(
            local <= time + error && time <= local + error,
            "{local} for {time}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_section_arrives_once_and_none_is_sent_late(
        seed in any::<u64>(),
        loss in prop_oneof![Just(0.0), 0.0..0.15],
        duplication in 0.0..0.05,
        delay_ms in 1_u64..60,
        jitter_ms in prop_oneof![Just(0), 0_u64..10],
        sections in prop::collection::vec((1_usize..12_000, any::<u8>(), 0_u64..40), 10..80),
    ) {
        let path = Path {
            loss,
            duplication,
            delay: Span::from_millis(delay_ms),
            jitter: Span::from_millis(jitter_ms),
        };
        let limits = KeyLimits {
            update_after_packets: 24,
            old_keys_for: Span::from_millis(200),
            ..KeyLimits::default()
        };
        let mut world = World::new(seed, path, 1, limits);
        world.run(START + Span::from_secs(9));
        prop_assert!(world.sender().is_some(), "no session: {:?}", world.failed);
        let deadline = Span::from_millis(500);
        let mut given = Vec::new();
        for (number, &(length, importance, pause_ms)) in sections.iter().enumerate() {
            let id = world.submit(length, importance, deadline);
            prop_assert_eq!(id, SectionId(number as u64));
            given.push(world.now + deadline);
            world.run(world.now + Span::from_millis(pause_ms));
        }
        world.sender().unwrap().protocol_mut().finish_stream(StreamId(0)).unwrap();
        for _ in 0..100 {
            world.run(world.now + Span::from_millis(100));
            if world.sender().unwrap().protocol().is_settled() {
                break;
            }
        }
        let now = world.now;
        let sender = world.sender().unwrap();
        prop_assert!(sender.protocol().is_settled());
        let statistics = sender.protocol().stats(now, &sender.statistics());
        prop_assert_eq!(statistics.sent.counters.late_bytes, 0);
        prop_assert_eq!(statistics.sent.sections.sum(), sections.len() as u64);
        let updates = sender.statistics().key_updates;
        sender.protocol_mut().close(now, CloseCode::DONE, "");
        world.run(now + Span::from_secs(6));

        // Each section exactly once and in order, whole ones with the right bytes.
        prop_assert_eq!(world.received.len(), sections.len());
        let error = path.delay + path.jitter * 2 + Span::from_millis(1);
        let (mut whole, mut overdue) = (0, 0);
        for (number, (at, delivery)) in world.received.iter().enumerate() {
            let (length, importance, _) = sections[number];
            match delivery {
                Delivery::Section(section) => {
                    whole += 1;
                    prop_assert_eq!(section.meta.section, SectionId(number as u64));
                    prop_assert!(section.payload == vec![importance; length]);
                    prop_assert!(section.completed <= *at);
                    // Both ends share one clock here, so the deadline is exact up to the unknown
                    // part of the delay.
                    prop_assert!(section.is_late || section.completed <= given[number] + error);
                }
                Delivery::Gap(gap) => {
                    prop_assert_eq!(gap.section, SectionId(number as u64));
                    overdue += u64::from(gap.reason == GapReason::Overdue);
                    // Reordered packets count as lost for a while, which slows the sender.
                    let is_clean = loss == 0.0 && jitter_ms == 0;
                    prop_assert!(!is_clean, "a gap on a clean path: {:?}", gap.reason);
                }
            }
        }
        let counts = statistics.sent.sections;
        // The peer has reported every whole section, except those whose arrival the sender does not
        // know yet.
        let reported = statistics.peer.unwrap().complete_sections;
        let unacknowledged = counts.submitted - counts.acknowledged;
        prop_assert!(reported <= whole && whole <= reported + unacknowledged, "{whole} of {reported}");
        // A packet that completes a section may be acknowledged after the section has become a gap.
        prop_assert!(counts.acknowledged <= whole + overdue, "{counts:?}, {whole} whole");
        prop_assert!(world.closed.len() == 1, "{:?}", world.closed);
        if statistics.sent.counters.packets > 100 {
            prop_assert!(updates >= 1, "{} packets under one key", statistics.sent.counters.packets);
        }
    }
}

/// Packet protection detects duplicates by their number, and both ends count them.
#[test]
fn duplicate_packets_are_counted_and_reported() {
    let duplicates = |duplication: f64| {
        let path = Path {
            duplication,
            ..CLEAN
        };
        let mut world = World::new(1, path, 1, KeyLimits::default());
        world.run(START + Span::from_millis(500));
        for _ in 0..20 {
            world.submit(5_000, 1, Span::from_millis(400));
            world.run(world.now + Span::from_millis(50));
        }
        world.run(world.now + Span::from_secs(1));
        let id = world.accepted().unwrap();
        let now = world.now;
        let stats =
            |session: &Session<Transport>| session.protocol().stats(now, &session.statistics());
        let reported = stats(world.sender().unwrap()).peer.unwrap().duplicates;
        let listener = world.listener.session(id).unwrap();
        let received = stats(listener).received;
        assert_eq!(
            listener.statistics().stale_packets,
            received.counters.duplicates
        );
        (
            received.counters.packets,
            received.counters.duplicates,
            reported,
        )
    };
    let (_, counted, reported) = duplicates(0.0);
    assert_eq!((counted, reported), (0, 0));
    let (packets, counted, reported) = duplicates(1.0);
    // All except the first, which opened the connection, and those still on their way.
    assert!(packets > 80 && counted + 5 >= packets && counted <= packets);
    assert!(
        reported > 80 && reported <= counted,
        "{reported} of {counted}"
    );
}

/// Sends more than a path carries that loses 5 % of its packets, for 4 s, to a viewer that moves
/// between its address and ever new `others`. Returns the bytes of sections sent, and the moves.
fn sent_to_a_viewer_that_moves(others: impl Fn(u16) -> Option<SocketAddr>) -> (u64, usize) {
    let lossy = Path {
        loss: 0.05,
        ..CLEAN
    };
    let mut world = World::with(7, lossy, 1, KeyLimits::default(), options_with("reno"));
    world.run(START + Span::from_secs(1));
    let id = world.accepted().unwrap();
    let sent = |world: &World| {
        let session = world.listener.session(id).unwrap();
        let statistics = session.protocol().stats(world.now, &session.statistics());
        statistics.sent.counters.section_bytes
    };
    let (home, before) = (world.caller_at, sent(&world));
    for step in 0..800 {
        let (now, at) = (world.now, world.moves / 2);
        world.caller_at = match world.moves % 2 {
            0 => others(at as u16).unwrap_or(home),
            _ => home,
        };
        world.submit_at_listener(20_000);
        // The viewer has something to send from each address.
        if step % 4 == 0 {
            world.submit(100, 1, Span::from_secs(1));
        }
        world.run(now + Span::from_millis(5));
        let viewer = world.sender().unwrap().protocol_mut();
        while viewer.poll_delivery(now).is_some() {}
    }
    (sent(&world) - before, world.moves)
}

/// Each move would undo the reactions to losses, and begin another slow start.
#[test]
fn a_viewer_that_moves_to_and_fro_stays_subject_to_congestion_control() {
    let (still, moves) = sent_to_a_viewer_that_moves(|_| None);
    assert_eq!(moves, 0);
    assert!(still > 200_000, "{still} bytes");
    let ports = |at| Some(SocketAddr::from(([198, 51, 100, 7], 10_000 + at)));
    let hosts = |at: u16| Some(SocketAddr::from(([203, 0, 113, at as u8], 4_000)));
    // One move to another host begins afresh.
    let cases: [&dyn Fn(u16) -> Option<SocketAddr>; 2] = [&ports, &hosts];
    for others in cases {
        let (moving, moves) = sent_to_a_viewer_that_moves(others);
        assert!(moves >= 10, "{moves} moves");
        assert!(
            still * 3 < moving * 4 && moving * 4 < still * 5,
            "{moving} bytes with {moves} moves, {still} without"
        );
    }
}

/// RFC 9000, section 9.4: another host is another path; another port is not.
#[test]
fn a_move_to_another_host_begins_afresh() {
    let ssthresh_after = |to: &str| {
        let mut world = World::with(7, CLEAN, 1, KeyLimits::default(), options_with("reno"));
        world.run(START + Span::from_secs(1));
        let id = world.accepted().unwrap();
        let mut ssthresh: Vec<u64> = Vec::new();
        for loss in [0.2, 0.0] {
            if loss == 0.0 {
                world.caller_at = to.parse().unwrap();
            }
            world.path.loss = loss;
            for _ in 0..50 {
                world.submit(100, 1, Span::from_secs(1));
                world.submit_at_listener(20_000);
                world.run(world.now + Span::from_millis(20));
            }
            let session = world.listener.session(id).unwrap();
            let statistics = session.protocol().stats(world.now, &session.statistics());
            ssthresh.push(statistics.path.ssthresh_bytes.expect("losses"));
        }
        assert_eq!(world.moves, 1);
        let [before, after] = ssthresh.try_into().unwrap();
        (before, after)
    };
    // Two losses in ten leave a window of a few packets, which a new slow start forgets.
    let (before, after) = ssthresh_after("198.51.100.7:4001");
    assert!(before < 10_000 && after < 10_000, "{before}, {after}");
    let (before, after) = ssthresh_after("203.0.113.9:4000");
    assert!(before < 10_000 && after > 20_000, "{before}, {after}");
}
