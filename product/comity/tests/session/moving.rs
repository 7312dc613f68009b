//! A caller that moves uses new ids.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use comity::session::{
    CallerCredentials, CallerEvent, Closed, ConnectionId, Ecn, Event, ListenerCredentials,
    ListenerEvent,
};
use comity_units::Span;

use super::network::{
    CALLER, Flight, LISTENER, PROBE, Path, World, address, caller_config, listener_config,
};

/// The host address of the caller after its `move`th move.
fn home(number: u8) -> SocketAddr {
    ([203, 0, 113, number], 4000).into()
}

fn is_data(flight: &&Flight) -> bool {
    flight.bytes[0] >> 4 == 4
}

fn id(flight: &Flight) -> ConnectionId {
    ConnectionId::new(u64::from_be_bytes(flight.bytes[1..9].try_into().unwrap()))
}

/// The ids in Data packets of both directions, by the address of the caller.
fn ids(log: &[Flight]) -> BTreeMap<SocketAddr, BTreeSet<(bool, ConnectionId)>> {
    let mut ids = BTreeMap::<_, BTreeSet<_>>::new();
    for flight in log.iter().filter(is_data) {
        let is_up = flight.to == address(LISTENER);
        let caller = if is_up { flight.from } else { flight.to };
        ids.entry(caller).or_default().insert((is_up, id(flight)));
    }
    ids
}

impl World {
    /// Both ends send and receive something. The listener also sends to the old address, before it
    /// learns of a move and before the new address has answered.
    fn exchange(&mut self) {
        self.caller_core(0).send(b"up");
        self.listener_core().send(b"before");
        self.run_for(Span::from_millis(21));
        self.listener_core().send(b"between");
        self.run_for(PROBE * 10);
        self.listener_core().send(b"down");
        self.run_for(PROBE);
    }

    fn caller_moves(&mut self, to: SocketAddr) -> bool {
        self.callers[0].0 = to;
        self.callers[0].1.session_mut().unwrap().on_moved()
    }

    fn changes(&self) -> usize {
        let is_change = |event: &&ListenerEvent| {
            matches!(event, ListenerEvent::Session(_, Event::PathChanged { .. }))
        };
        self.listener_events.iter().filter(is_change).count()
    }
}

fn connected(seed: u64, path: Path) -> World {
    let mut world = World::with_shared_secret(seed, path);
    world.run_for(Span::from_secs(10));
    world.exchange();
    world
}

#[test]
fn no_id_is_seen_at_two_addresses() {
    let mut world = connected(1, Path::GOOD);
    for number in 1..=8 {
        assert!(world.caller_moves(home(number)));
        world.exchange();
        assert_eq!(world.changes(), usize::from(number));
    }
    assert_eq!(world.listener_core().received.len(), 9);
    // The first "before" and "between", and every "down".
    assert_eq!(world.caller_core(0).received.len(), 11);
    let ids = ids(&world.log);
    assert_eq!(ids.len(), 9);
    // One id in each direction for each address, and none at two of them.
    assert!(ids.values().all(|ids| ids.len() == 2), "{ids:#?}");
    let distinct: BTreeSet<_> = ids.values().flatten().map(|(_, id)| id).collect();
    assert_eq!(distinct.len(), 18);
}

#[test]
fn moves_work_on_paths_that_lose_and_reorder() {
    let path = Path {
        loss: 0.2,
        duplication: 0.1,
        delay: Span::from_millis(20),
        jitter: Span::from_millis(60),
    };
    for seed in 0..20 {
        let mut world = connected(seed, path);
        let mut moves = 0;
        for number in 1..=6 {
            world.caller_moves(home(number));
            moves += 1;
            // Each message may be lost.
            for _ in 0..20 {
                world.exchange();
            }
        }
        assert!(
            world.changes() >= 5,
            "{seed}: {} of {moves}",
            world.changes()
        );
        let at = world.listener.ids().next().unwrap();
        let peer = world.listener.session(at).unwrap().address();
        assert_eq!(peer, home(6), "{seed}");
        // A late packet may still be answered to its source address. Beyond the first addresses, no
        // id is shared.
        let ids = ids(&world.log);
        let up = |of: SocketAddr| {
            ids[&of]
                .iter()
                .filter(|(is_up, _)| *is_up)
                .collect::<BTreeSet<_>>()
        };
        for number in 2..=6 {
            assert!(
                up(home(number)).is_disjoint(&up(home(number - 1))),
                "{seed}"
            );
        }
    }
}

/// A translator on the path changes the address, which the caller cannot know.
#[test]
fn a_caller_unaware_of_its_move_keeps_its_ids() {
    let mut world = connected(1, Path::GOOD);
    world.callers[0].0 = home(1);
    world.exchange();
    assert_eq!(world.changes(), 1);
    let ids = ids(&world.log);
    assert_eq!(ids[&address(CALLER)], ids[&home(1)]);
}

/// A caller that moves behind a translator keeps its address, and changes the ids of both
/// directions.
#[test]
fn ids_change_even_if_the_address_does_not() {
    let mut world = connected(1, Path::GOOD);
    let before = ids(&world.log);
    assert!(world.caller_moves(address(CALLER)));
    world.caller_core(0).send(b"up");
    world.run_for(PROBE);
    let moved = world.log.len();
    world.exchange();
    let after = ids(&world.log[moved..]);
    assert_eq!(world.changes(), 0);
    let (before, after) = (&before[&address(CALLER)], &after[&address(CALLER)]);
    assert_eq!((before.len(), after.len()), (2, 2));
    assert!(before.is_disjoint(after));
}

#[test]
fn the_ids_change_once_until_the_listener_answers() {
    let mut world = connected(1, Path::GOOD);
    world.dead.insert(home(1));
    assert!(world.caller_moves(home(1)));
    world.exchange();
    assert!(
        !world.caller_moves(home(2)),
        "the listener knows only the next ids"
    );
    world.exchange();
    assert_eq!(world.changes(), 1);
    assert!(world.caller_moves(home(3)));
    world.exchange();
    assert_eq!(world.changes(), 2);
}

#[test]
fn without_protection_the_ids_stay() {
    let mut world = World::new(
        1,
        Path::GOOD,
        listener_config(ListenerCredentials::Insecure),
    );
    world.call(CALLER, caller_config(CallerCredentials::Insecure));
    world.run_for(Span::from_secs(1));
    assert!(!world.caller_moves(home(1)));
    world.exchange();
    assert_eq!(world.changes(), 1);
}

/// An attacker that copies the first packet from the new address and sends it from another one
/// learns the id of the other direction, but does not move the connection.
#[test]
fn a_copy_of_the_first_packet_moves_nothing_for_long() {
    let mut world = connected(1, Path::GOOD);
    assert!(world.caller_moves(home(1)));
    world.caller_core(0).send(b"first");
    // The copy arrives first.
    let mut out = Vec::new();
    let now = world.now;
    world.callers[0].1.poll_transmit(now, &mut out).unwrap();
    let stranger: SocketAddr = ([192, 0, 2, 66], 6).into();
    world.inject(stranger, address(LISTENER), out.clone());
    world.run_for(PROBE);
    world.inject(home(1), address(LISTENER), out);
    for _ in 0..3 {
        world.exchange();
    }
    let at = world.listener.ids().next().unwrap();
    assert_eq!(world.listener.session(at).unwrap().address(), home(1));
    let sent: usize = { world.log.iter() }
        .filter(|flight| flight.to == stranger)
        .map(|flight| flight.bytes.len())
        .sum();
    let came: usize = { world.log.iter() }
        .filter(|flight| flight.from == stranger)
        .map(|flight| flight.bytes.len())
        .sum();
    assert!(sent <= 3 * came, "{sent} for {came}");
}

/// An address that has not answered gets at most three times the bytes that came from it:
/// challenges of 1,200 bytes if they fit, and of at least 42.
#[test]
fn an_address_gets_three_times_its_bytes_to_the_last_one() {
    for length in [36, 400, 401, 413, 414, 415, 800, 814, 1_200] {
        let mut world = connected(1, Path::GOOD);
        // Header, kind and tag around the message.
        world.caller_core(0).send(&vec![7; length - 13 - 1 - 16]);
        let mut copied = Vec::new();
        let now = world.now;
        let caller = &mut world.callers[0].1;
        caller.poll_transmit(now, &mut copied).unwrap();
        assert_eq!(copied.len(), length);
        // Otherwise the caller would answer from its old address.
        world.dead.insert(address(CALLER));
        let stranger: SocketAddr = ([192, 0, 2, 66], 6).into();
        world.inject(stranger, address(LISTENER), copied);
        world.run_for(Span::from_secs(5));
        let to_stranger = world.log.iter().filter(|flight| flight.to == stranger);
        let sizes: Vec<_> = to_stranger.map(|flight| flight.bytes.len()).collect();
        let mut left = 3 * length;
        let mut expected = Vec::new();
        for _ in 0..3 {
            let size = left.min(1_200);
            if size >= 42 {
                expected.push(size);
                left -= size;
            }
        }
        assert_eq!(sizes, expected, "for {length} bytes");
    }
}

/// The lengths of the listener's packets to the caller.
fn to_caller(world: &World) -> Vec<usize> {
    let to_caller = world
        .log
        .iter()
        .filter(|flight| flight.to == address(CALLER));
    to_caller.map(|flight| flight.bytes.len()).collect()
}

/// Neither window nor pacer limits path frames (RFC 9002, section 7.1), so short packets must not
/// be answered with long ones.
#[test]
fn challenges_without_end_are_answered_with_short_packets() {
    let mut world = connected(1, Path::GOOD);
    world.log.clear();
    for token in 0..1_000 {
        world.caller_core(0).challenge(token);
        world.run_for(Span::from_millis(1));
    }
    let lengths = to_caller(&world);
    let padded = lengths.iter().filter(|length| **length == 1_200).count();
    assert!(lengths.len() >= 950, "{} answers", lengths.len());
    assert!((10..=21).contains(&padded), "{padded} padded answers");
    let short = lengths.iter().filter(|length| **length <= 42).count();
    assert_eq!(padded + short, lengths.len());
}

/// Each packet comes from another port, and so begins another validation.
#[test]
fn moves_without_end_are_answered_with_short_packets() {
    let mut world = connected(1, Path::GOOD);
    world.log.clear();
    let home = world.callers[0].0;
    for port in 0..1_000 {
        world.caller_core(0).send(b"here");
        world.callers[0].0 = SocketAddr::new(home.ip(), 10_000 + port);
        world.run_for(Span::from_millis(1));
    }
    let lengths = to_caller(&world);
    let padded = lengths.iter().filter(|length| **length == 1_200).count();
    assert!(lengths.len() >= 500, "{} challenges", lengths.len());
    assert!((1..=21).contains(&padded), "{padded} padded challenges");
}

/// After the end of a connection, nothing links its ids.
#[test]
fn a_reset_for_a_later_id_does_not_name_the_first_one() {
    let mut world = connected(1, Path::GOOD);
    let first = world.listener.ids().next().unwrap();
    assert!(world.caller_moves(home(1)));
    world.exchange();
    let last = { world.log.iter() }
        .rfind(|flight| is_data(flight) && flight.to == address(LISTENER))
        .unwrap()
        .clone();
    assert_ne!(id(&last), first);
    world.listener_core().closing = true;
    world.drain();
    world.inject(last.from, last.to, last.bytes.clone());
    world.run_for(PROBE);
    let resets = world.sent(8);
    assert_eq!(resets.len(), 1);
    assert_eq!(id(resets[0]), id(&last));
}

/// The events of a peer that moves all the time are bounded: 64 and the end.
#[test]
fn events_of_a_peer_that_moves_wait_up_to_a_bound() {
    let mut world = connected(1, Path::GOOD);
    let mut now = world.now;
    let mut out = Vec::new();
    let mut poll = |from: &mut dyn FnMut(&mut Vec<u8>) -> bool| {
        out.clear();
        from(&mut out).then(|| out.clone())
    };
    for number in 1..=100 {
        world.listener_core().send(b"from elsewhere");
        let (listener, caller) = (&mut world.listener, &mut world.callers[0].1);
        let mut packet = poll(&mut |out| listener.poll_transmit(now, out).is_some()).unwrap();
        caller.handle_datagram(now, home(number), Ecn::NotCapable, &mut packet);
        let mut challenge = poll(&mut |out| caller.poll_transmit(now, out).is_some()).unwrap();
        listener.handle_datagram(now, address(CALLER), Ecn::NotCapable, &mut challenge);
        let mut response = poll(&mut |out| listener.poll_transmit(now, out).is_some()).unwrap();
        caller.handle_datagram(now, home(number), Ecn::NotCapable, &mut response);
        now += PROBE;
        caller.on_timer(now);
        assert_eq!(caller.session().unwrap().address(), home(number));
    }
    world.caller_core(0).closing = true;
    let caller = &mut world.callers[0].1;
    assert_eq!(caller.poll_transmit(now, &mut out), None);
    let events: Vec<_> = std::iter::from_fn(|| caller.poll_event()).collect();
    assert_eq!(events.len(), 64 + 1);
    let changed =
        |event: &CallerEvent| matches!(event, CallerEvent::Session(Event::PathChanged { .. }));
    assert!(events[..64].iter().all(changed));
    let closed = CallerEvent::Session(Event::Closed(Closed::ByProtocol));
    assert_eq!(events[64], closed);
}

/// A listener keeps the id of the handshake until it stops, so a copy of an old packet never causes
/// a Reset. After a restart it does not know later ids, and its Reset has no valid token.
#[test]
fn resets_are_for_the_id_of_the_handshake() {
    let mut world = connected(1, Path::GOOD);
    let old = { world.log.iter() }
        .find(|flight| is_data(flight) && flight.to == address(LISTENER))
        .unwrap()
        .clone();
    for number in 1..=4 {
        assert!(world.caller_moves(home(number)));
        world.exchange();
    }
    world.inject(old.from, old.to, old.bytes);
    world.exchange();
    assert_eq!(world.listener.statistics().resets, 0);
    assert_eq!(
        world.callers[0].1.session().unwrap().closed(),
        None::<Closed>
    );
}
