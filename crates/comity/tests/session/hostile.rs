//! Strangers and hostile peers, and the limits of what they can do.

use comity::session::{
    CallerCredentials, CallerEvent, Closed, Ecn, Event, KeyLimits, ListenerConfig,
    ListenerCredentials, ListenerEvent, RefusedCaller, Retry,
};
use comity_units::{Span, Time};

use crate::session::network::{
    CALLER, Flight, LISTENER, Path, World, address, caller_config, listener_config, shared,
};

const DATA: u8 = 4;

fn open() -> World {
    let mut world = World::with_shared_secret(1, Path::GOOD);
    world.run_for(Span::from_secs(1));
    assert_eq!(world.listener.half_open(), 0);
    world
}

/// A Data packet from the caller with `message`, removed from the network.
fn captured(world: &mut World, message: &[u8]) -> Flight {
    world.dead.insert(address(CALLER));
    world.caller_core(0).send(message);
    world.drain();
    world.dead.clear();
    let flight = world.log.last().expect("it was just sent").clone();
    assert_eq!(flight.bytes[0] >> 4, DATA);
    flight
}

fn deliver(world: &mut World, from: &str, bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    world
        .listener
        .handle_datagram(world.now, address(from), Ecn::NotCapable, &mut bytes);
    world.drain();
}

fn statistics(world: &World) -> comity::session::SessionStatistics {
    let id = world.listener.ids().next().expect("a connection");
    world
        .listener
        .session(id)
        .expect("it was just named")
        .statistics()
}

#[test]
fn a_data_packet_is_taken_once_and_unchanged_or_not_at_all() {
    let mut world = open();
    let genuine = captured(&mut world, b"genuine").bytes;
    for at in 0..genuine.len() {
        let mut forged = genuine.clone();
        forged[at] ^= 0x01;
        deliver(&mut world, CALLER, &forged);
        deliver(&mut world, CALLER, &genuine[..at]);
    }
    let mut longer = genuine.clone();
    longer.push(0);
    deliver(&mut world, CALLER, &longer);
    deliver(&mut world, CALLER, &[&genuine[..], &[0; 60_000]].concat());
    deliver(&mut world, CALLER, &[]);
    assert_eq!(world.listener_core().received, [] as [&[u8]; 0]);
    let forged = statistics(&world).forged_packets;
    assert!(forged > genuine.len() as u64, "{forged}");
    deliver(&mut world, CALLER, &genuine);
    assert_eq!(world.listener_core().received, [b"genuine"]);
    let stale = statistics(&world).stale_packets;
    deliver(&mut world, CALLER, &genuine);
    assert_eq!(statistics(&world).stale_packets, stale + 1);
    assert_eq!(world.listener_core().received, [b"genuine"]);
}

#[test]
fn reordered_packets_are_taken_within_the_window_and_refused_behind_it() {
    let mut world = open();
    let flights: Vec<_> = (0..4200_u32)
        .map(|at| captured(&mut world, &at.to_be_bytes()))
        .collect();
    // The window certainly holds the newest number and 4,032 below it.
    deliver(&mut world, CALLER, &flights[4199].bytes);
    deliver(&mut world, CALLER, &flights[4199 - 4032].bytes);
    deliver(&mut world, CALLER, &flights[0].bytes);
    let received = world.listener_core().received.clone();
    assert_eq!(received, [4199_u32.to_be_bytes(), 167_u32.to_be_bytes()]);
    for flight in flights.iter().rev() {
        deliver(&mut world, CALLER, &flight.bytes);
    }
    let received = world.listener_core().received.len();
    assert!((4033..4033 + 64).contains(&received), "{received}");
}

/// Both get the reply of callers that prove nothing: an Answer with source 0 and the message 0x01.
#[test]
fn a_first_message_that_is_malformed_or_leaves_the_version_out_is_not_accepted() {
    let changes: [(usize, u8, RefusedCaller); 6] = [
        (0, 0, RefusedCaller::Malformed),
        (0, 3, RefusedCaller::Malformed),
        (1, 0, RefusedCaller::Malformed),
        (1, 16, RefusedCaller::Malformed),
        (1, 17, RefusedCaller::Malformed),
        (5, 2, RefusedCaller::Downgrade),
    ];
    for (at, value, expected) in changes {
        let config = listener_config(ListenerCredentials::Insecure);
        let mut world = World::new(1, Path::GOOD, config);
        world.call(CALLER, caller_config(CallerCredentials::Insecure));
        // The Initial with the cookie has left, and has not arrived.
        world.run_for(Span::from_millis(50));
        let mut initial = world.log.last().expect("it was just sent").bytes.clone();
        let cookie = usize::from(initial[14]);
        assert!(initial[0] == 0x10 && cookie > 0);
        // Cipher, count and the one version, without protection.
        let message = 15 + cookie + 2;
        assert_eq!(initial[message + 1..message + 6], [1, 0, 0, 0, 1]);
        initial[message + at] = value;
        deliver(&mut world, CALLER, &initial);
        let why = match world.listener_events.as_slice() {
            [ListenerEvent::Refused { why, .. }] => *why,
            events => panic!("{events:?}"),
        };
        assert_eq!(why, expected, "byte {at} is {value}");
        let answer = &world.log.last().expect("it was just sent").bytes;
        assert_eq!(
            (answer[0], &answer[13..]),
            (0x30, [0, 0, 0, 0, 0, 0, 0, 0, 1].as_slice())
        );
        assert_eq!(world.listener.connections(), 0);
    }
}

#[test]
fn too_many_forged_packets_end_the_connection() {
    let mut config = listener_config(ListenerCredentials::Shared(shared(7)));
    config.key_limits = KeyLimits {
        max_forged: 10,
        ..KeyLimits::default()
    };
    let mut world = World::new(1, Path::GOOD, config);
    world.call(CALLER, caller_config(CallerCredentials::Shared(shared(7))));
    world.run_for(Span::from_secs(1));
    let mut forged = captured(&mut world, b"genuine").bytes;
    *forged.last_mut().unwrap() ^= 1;
    for _ in 0..9 {
        deliver(&mut world, CALLER, &forged);
    }
    assert_eq!(world.listener.connections(), 1);
    deliver(&mut world, CALLER, &forged);
    assert_eq!(world.listener.connections(), 0);
    assert!(matches!(
        world.listener_events.last(),
        Some(ListenerEvent::Session(
            _,
            Event::Closed(Closed::TooManyForged)
        ))
    ));
}

#[test]
fn keys_change_under_loss_and_reordering_both_ways_at_once() {
    let limits = KeyLimits {
        update_after_packets: 20,
        old_keys_for: Span::from_millis(400),
        max_packets_per_key: 2000,
        ..KeyLimits::default()
    };
    let path = Path {
        loss: 0.1,
        duplication: 0.1,
        delay: Span::from_millis(20),
        jitter: Span::from_millis(100),
    };
    for seed in 0..20 {
        let mut config = listener_config(ListenerCredentials::Shared(shared(7)));
        config.key_limits = limits;
        let mut world = World::new(seed, path, config);
        let mut config = caller_config(CallerCredentials::Shared(shared(7)));
        config.key_limits = limits;
        world.call(CALLER, config);
        world.run_for(Span::from_secs(8));
        for at in 0..1000_u32 {
            world.caller_core(0).send(&at.to_be_bytes());
            world.listener_core().send(&at.to_be_bytes());
            world.run_for(Span::from_millis(10));
        }
        world.run_for(Span::from_secs(1));
        let at_listener = statistics(&world);
        let at_caller = world.callers[0].1.session().unwrap().statistics();
        // Ten seconds with an update at most every 400 ms plus a one-way delay: some 20 updates.
        for (side, end) in [(at_listener, "listener"), (at_caller, "caller")] {
            assert!((12..=25).contains(&side.key_updates), "{end}: {side:?}");
            assert_eq!(side.forged_packets, 0, "{end}, seed {seed}");
        }
        assert!(at_listener.key_updates.abs_diff(at_caller.key_updates) <= 1);
        for received in [
            world.listener_core().received.len(),
            world.caller_core(0).received.len(),
        ] {
            // Nine of ten arrive. If the old key were dropped too early, the reordered ones would
            // be missing.
            assert!((850..=940).contains(&received), "{received}");
        }
    }
}

#[test]
fn a_peer_that_does_not_follow_a_key_update_is_left_before_the_key_is_used_up() {
    let mut config = caller_config(CallerCredentials::Shared(shared(7)));
    config.key_limits = KeyLimits {
        update_after_packets: 5,
        max_packets_per_key: 50,
        ..KeyLimits::default()
    };
    let mut world = World::new(
        1,
        Path::GOOD,
        listener_config(ListenerCredentials::Shared(shared(7))),
    );
    world.call(CALLER, config);
    world.run_for(Span::from_secs(1));
    world.dead.insert(address(LISTENER));
    for _ in 0..200 {
        if let Some(session) = world.callers[0].1.session_mut() {
            session.protocol_mut().send(b"one more");
        }
        world.drain();
    }
    let events = &world.caller_events;
    assert_eq!(
        events.last(),
        Some(&(0, CallerEvent::Session(Event::Closed(Closed::KeyUsedUp))))
    );
    let phases: Vec<u8> = world
        .sent(DATA)
        .iter()
        .map(|flight| flight.bytes[0] & 1)
        .collect();
    let last_phase = phases.iter().rev().take_while(|&&phase| phase == 1).count();
    assert_eq!(last_phase, 50);
}

#[test]
fn floods_of_first_packets_take_no_memory_and_are_not_amplified() {
    let mut world = open();
    world.traffic.clear();
    let mut initial = world.sent(1)[0].bytes.clone();
    for at in 0..20_000_u32 {
        initial[5..9].copy_from_slice(&at.to_be_bytes());
        let from =
            std::net::SocketAddr::from(([10, (at >> 16) as u8, (at >> 8) as u8, at as u8], 9));
        world.inject(from, address(LISTENER), initial.clone());
        if at % 100 == 0 {
            world.run_for(Span::from_millis(1));
        }
    }
    // In the middle of it, another caller connects.
    let late = world.call(
        "198.51.100.8:1",
        caller_config(CallerCredentials::Shared(shared(7))),
    );
    world.run_for(Span::from_secs(1));
    assert_eq!(world.failure(late), None);
    assert!(world.callers[late].1.session().is_some());
    assert_eq!(world.listener.connections(), 2);
    assert_eq!(world.listener.half_open(), 0);
    assert_eq!(world.listener.statistics().answers, 2);
    assert_eq!(world.traffic.len(), 20_001);
    for (to, (received, sent)) in &world.traffic {
        assert!(sent <= received, "{to}: {sent} for {received}");
    }
}

/// A listener without Retry, flooded with genuine first messages from addresses that never
/// continue.
#[test]
fn half_open_connections_are_bounded_and_make_room() {
    let config = ListenerConfig {
        retry: Retry::AboveHalfOpen(1000),
        max_half_open: 50,
        ..listener_config(ListenerCredentials::Insecure)
    };
    let mut world = World::new(1, Path::GOOD, config);
    world.call(CALLER, caller_config(CallerCredentials::Insecure));
    world.drain();
    let mut initial = world.sent(1)[0].bytes.clone();
    world.run_for(Span::from_secs(1));
    for at in 0..2000_u32 {
        initial[5..9].copy_from_slice(&(at + 1).to_be_bytes());
        let from = std::net::SocketAddr::from(([10, 0, (at >> 8) as u8, at as u8], 9));
        world.inject(from, address(LISTENER), initial.clone());
        world.run_for(Span::from_millis(2));
        assert!(world.listener.half_open() <= 50);
        if at == 1000 {
            world.call("198.51.100.8:1", caller_config(CallerCredentials::Insecure));
        }
    }
    // At 500 a second, the oldest of 50 is 100 ms old: a caller that continues within that time
    // connects.
    assert!(world.callers[1].1.session().is_some());
    assert_eq!(world.listener.connections() - world.listener.half_open(), 2);
    for (to, (received, sent)) in &world.traffic {
        assert!(*sent <= 3 * received, "{to}: {sent} for {received}");
    }
    world.run_for(Span::from_secs(6));
    assert_eq!(world.listener.half_open(), 0);
    assert_eq!(world.listener.connections(), 2);
}

#[test]
fn connections_are_bounded_and_the_next_caller_is_told() {
    let config = ListenerConfig {
        max_connections: 2,
        ..listener_config(ListenerCredentials::Shared(shared(7)))
    };
    let mut world = World::new(1, Path::GOOD, config);
    for port in 1..=3 {
        let credentials = CallerCredentials::Shared(shared(7));
        world.call(&format!("198.51.100.7:{port}"), caller_config(credentials));
        world.run_for(Span::from_secs(1));
    }
    world.run_for(Span::from_secs(10));
    assert_eq!(world.listener.connections(), 2);
    let busy = comity::session::CallError::Busy {
        address: address(LISTENER),
    };
    assert_eq!(world.failure(2), Some(busy));
}

#[test]
fn a_peer_that_moves_is_followed_once_it_has_answered() {
    let mut world = open();
    let elsewhere = "203.0.113.5:6000";
    world.traffic.clear();
    world.callers[0].0 = address(elsewhere);
    world.caller_core(0).send(b"from elsewhere");
    world.drain();
    world.listener_core().send(b"before");
    world.run_for(Span::from_millis(21));
    world.listener_core().send(b"unvalidated");
    world.drain();
    let last = world.log.last().unwrap();
    assert_eq!(last.to, address(CALLER), "data stays on the proved path");
    world.run_for(Span::from_secs(1));
    assert_eq!(world.listener_core().paths, 1);
    assert!(world.listener_events.iter().any(|event| matches!(
        event,
        ListenerEvent::Session(_, Event::PathChanged { from, to })
            if *from == address(CALLER) && *to == address(elsewhere)
    )));
    world.listener_core().send(b"after");
    world.run_for(Span::from_secs(1));
    assert_eq!(world.caller_core(0).received, [b"after"]);
    let (received, sent) = world.traffic[&address(elsewhere)];
    assert!(sent <= 3 * received, "{sent} for {received}");
}

#[test]
fn a_copied_packet_diverts_nothing() {
    let mut world = open();
    let attacker = "203.0.113.66:6666";
    // The attacker sees a packet, and its copy is faster than the network.
    let flight = captured(&mut world, b"copied");
    world.traffic.clear();
    world.inject(address(attacker), address(LISTENER), flight.bytes);
    world.run_for(Span::from_millis(21));
    for _ in 0..50 {
        world.listener_core().send(&[7; 1000]);
    }
    world.run_for(Span::from_secs(5));
    let to_attacker: Vec<_> = world
        .log
        .iter()
        .filter(|flight| flight.to == address(attacker))
        .collect();
    // The copied packet has 13 + 1 + 6 + 16 = 36 bytes, so at most 108 bytes return, all of them
    // challenges.
    let (received, sent) = world.traffic[&address(attacker)];
    assert_eq!(received, 36);
    assert!((1..=108).contains(&sent), "{sent}");
    assert!(!to_attacker.is_empty());
    assert_eq!(
        world.caller_core(0).received.len(),
        50,
        "the peer misses nothing"
    );
    let events = &world.listener_events;
    assert!(events.iter().any(|event| matches!(
        event,
        ListenerEvent::Session(_, Event::PathUnanswered { address: silent })
            if *silent == address(attacker)
    )));
    assert_eq!(world.listener_core().paths, 0);

    // An old packet, copied later, does not even cause a challenge.
    let mut world = open();
    let old = captured(&mut world, b"old");
    world.caller_core(0).send(b"newer");
    world.run_for(Span::from_millis(100));
    world.inject(address(attacker), address(LISTENER), old.bytes);
    world.run_for(Span::from_secs(5));
    assert_eq!(world.listener_core().received, [&b"newer"[..], b"old"]);
    assert!(
        !world
            .log
            .iter()
            .any(|flight| flight.to == address(attacker))
    );
}

#[test]
fn a_cookie_of_another_address_or_time_is_answered_by_another_one() {
    let mut world = World::with_shared_secret(1, Path::GOOD);
    world.run_for(Span::from_millis(41));
    let with_cookie = world.sent(1)[1].bytes.clone();
    world.run_for(Span::from_secs(1));
    let retries = world.listener.statistics().retries;
    deliver(&mut world, "203.0.113.5:1", &with_cookie);
    assert_eq!(world.listener.statistics().retries, retries + 1);
    world.run_until(Time::from_secs(1030));
    deliver(&mut world, CALLER, &with_cookie);
    assert_eq!(world.listener.statistics().retries, retries + 2);
    assert_eq!(world.listener.connections(), 1);
}
