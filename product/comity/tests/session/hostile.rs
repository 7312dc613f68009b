//! Strangers and hostile peers, and the limits of what they can do.

use comity::session::{
    BadParameters, CallError, CallerCredentials, CallerEvent, Closed, Ecn, Event, KeyLimits,
    Listener, ListenerConfig, ListenerCredentials, ListenerEvent, MAX_PARAMETERS, Opener,
    Randomness, RefusedCaller,
};
use comity_units::{Seed, Span, Time};

use crate::session::network::{
    ACCEPT, ANSWER, CALLER, CONFIRM, DATA, Flight, INITIAL, LISTENER, Path, World, address,
    caller_config, listener_config, passphrase, shared,
};

pub(super) fn open() -> World {
    let mut world = World::with_shared_secret(1, Path::GOOD);
    world.run_for(Span::from_secs(1));
    assert_eq!(world.listener.half_open(), 0);
    world
}

/// A Data packet from the caller with `message`, removed from the network.
pub(super) fn captured(world: &mut World, message: &[u8]) -> Flight {
    world.dead.insert(address(CALLER));
    world.caller_core(0).send(message);
    world.drain();
    world.dead.clear();
    let flight = world.log.last().expect("it was just sent").clone();
    assert_eq!(flight.bytes[0] >> 4, DATA);
    flight
}

pub(super) fn deliver(world: &mut World, from: &str, bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    world
        .listener
        .handle_datagram(world.now, address(from), Ecn::NotCapable, &mut bytes);
    world.drain();
}

pub(super) fn statistics(world: &World) -> comity::session::SessionStatistics {
    let id = world.listener.ids().next().expect("a connection");
    world
        .listener
        .session(id)
        .expect("it was just named")
        .statistics()
}

#[test]
fn a_data_packet_is_accepted_once_and_unchanged() {
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
    let duplicates = world.listener_core().duplicates;
    deliver(&mut world, CALLER, &genuine);
    assert_eq!(statistics(&world).stale_packets, stale + 1);
    assert_eq!(world.listener_core().duplicates, duplicates + 1);
    assert_eq!(world.listener_core().received, [b"genuine"]);
}

#[test]
fn reordered_packets_are_accepted_within_the_window_only() {
    let mut world = open();
    let flights: Vec<_> = (0..4200_u32)
        .map(|at| captured(&mut world, &at.to_be_bytes()))
        .collect();
    // The window holds at least the newest number and the 4,032 below it.
    deliver(&mut world, CALLER, &flights[4199].bytes);
    deliver(&mut world, CALLER, &flights[4199 - 4032].bytes);
    deliver(&mut world, CALLER, &flights[0].bytes);
    // A number below the window does not count as a duplicate.
    assert_eq!(world.listener_core().duplicates, 0);
    let received = world.listener_core().received.clone();
    assert_eq!(received, [4199_u32.to_be_bytes(), 167_u32.to_be_bytes()]);
    for flight in flights.iter().rev() {
        deliver(&mut world, CALLER, &flight.bytes);
    }
    let received = world.listener_core().received.len();
    assert!((4033..4033 + 64).contains(&received), "{received}");
}

/// Each gets the refusal of any unproven caller: an Answer without a ticket, and the message 0x01.
#[test]
fn a_first_message_that_is_malformed_or_leaves_the_version_out_is_not_accepted() {
    let changes: [(usize, u8, RefusedCaller); 6] = [
        (0, 0, RefusedCaller::Malformed),
        (0, 3, RefusedCaller::Malformed),
        (1, 0, RefusedCaller::Malformed),
        (1, 16, RefusedCaller::Malformed),
        (1, 17, RefusedCaller::Malformed),
        (5, 3, RefusedCaller::Downgrade),
    ];
    for (at, value, expected) in changes {
        let config = listener_config(ListenerCredentials::Insecure);
        let mut world = World::new(1, Path::GOOD, config);
        world.call(CALLER, caller_config(CallerCredentials::Insecure));
        // The Initial with the cookie is on its way.
        world.run_for(Span::from_millis(50));
        let mut initial = world.log.last().expect("it was just sent").bytes.clone();
        let cookie = usize::from(initial[14]);
        assert!(initial[0] == 0x10 && cookie > 0);
        // Cipher, count and the one version, without protection.
        let message = 15 + cookie + 2;
        assert_eq!(initial[message + 1..message + 6], [1, 0, 0, 0, 2]);
        initial[message + at] = value;
        deliver(&mut world, CALLER, &initial);
        let why = match world.listener_events.as_slice() {
            [ListenerEvent::Refused { why, .. }] => why.clone(),
            events => panic!("{events:?}"),
        };
        assert_eq!(why, expected, "byte {at} is {value}");
        let answer = &world.log.last().expect("it was just sent").bytes;
        assert_eq!((answer[0], &answer[13..]), (0x30, [0, 1].as_slice()));
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
fn a_peer_that_ignores_a_key_update_loses_the_connection() {
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
    let session = world.callers[0].1.session().expect("it was open");
    assert_eq!(session.protection().phase(), 1);
    // Five packets in the first phase, and in the second as many as its key may seal.
    let sent = world.sent(DATA).into_iter();
    let sent = sent.filter(|flight| flight.from == address(CALLER));
    assert_eq!(sent.count(), 5 + 50);
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
    // In the middle of the flood, another caller connects.
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

/// An attacker at one address with its own cookies that sends a recorded message 1.
struct Replayer {
    from: std::net::SocketAddr,
    /// An Initial with a cookie, which is replaced.
    initial: Vec<u8>,
}

impl Replayer {
    /// Fetches a cookie for the connection id of `initial`.
    fn new(world: &mut World, from: std::net::SocketAddr, initial: &[u8]) -> Self {
        let mut hello = initial.to_vec();
        hello[14..].fill(0);
        let now = world.now;
        let listener = &mut world.listener;
        listener.handle_datagram(now, from, Ecn::NotCapable, &mut hello);
        let mut retry = Vec::new();
        while let Some(datagram) = listener.poll_transmit(now, &mut retry) {
            if datagram.to == from {
                break;
            }
            retry.clear();
        }
        assert_eq!((retry[0], retry.len()), (0x20, 14 + 36));
        let mut initial = initial.to_vec();
        initial[15..51].copy_from_slice(&retry[14..]);
        Self { from, initial }
    }

    fn send(&self, world: &mut World) {
        let mut initial = self.initial.clone();
        let now = world.now;
        world
            .listener
            .handle_datagram(now, self.from, Ecn::NotCapable, &mut initial);
    }
}

/// Message 1 of an honest caller in an Initial with its cookie, as an observer on the path sees it.
fn recorded(listener: &ListenerConfig, caller: &CallerCredentials) -> Vec<u8> {
    let mut world = World::new(99, Path::GOOD, listener.clone());
    world.call(CALLER, caller_config(caller.clone()));
    world.run_for(Span::from_secs(1));
    assert_eq!(world.listener.connections(), 1);
    world.sent(INITIAL)[1].bytes.clone()
}

/// 20,000 replays a second from one /24, at round trips of 200 ms. Every honest caller connects
/// within 3 s, and the listener keeps no state for the replays.
#[test]
fn a_replayed_first_message_excludes_nobody() {
    let far = Path {
        delay: Span::from_millis(100),
        ..Path::GOOD
    };
    for (listener, caller) in [
        (
            ListenerCredentials::Shared(shared(7)),
            CallerCredentials::Shared(shared(7)),
        ),
        (
            ListenerCredentials::Passphrase(passphrase(7)),
            CallerCredentials::Passphrase(passphrase(7)),
        ),
    ] {
        let config = listener_config(listener);
        let old = recorded(&config, &caller);
        let mut world = World::new(1, far, config);
        let replayers: Vec<_> = (1..=200_u8)
            .map(|host| Replayer::new(&mut world, ([203, 0, 113, host], 9).into(), &old))
            .collect();
        let start = world.now;
        for at_ms in 0..4_000_u64 {
            for burst in 0..20 {
                replayers[(at_ms * 20 + burst) as usize % replayers.len()].send(&mut world);
            }
            if at_ms % 100 == 0 && at_ms < 1_000 {
                let from = format!("198.51.{at_ms}.7:1", at_ms = at_ms / 100);
                let config = comity::session::CallerConfig {
                    timeout: Span::from_secs(3),
                    ..caller_config(caller.clone())
                };
                world.call(&from, config);
            }
            world.run_until(start + Span::from_millis(at_ms + 1));
        }
        let inside = world
            .callers
            .iter()
            .filter(|(_, caller)| caller.session().is_some());
        assert_eq!((inside.count(), world.callers.len()), (10, 10));
        assert_eq!(world.listener.connections(), 10);
        assert_eq!(world.listener.half_open(), 0);
        let statistics = world.listener.statistics();
        // There are 80,000 replays. The budget has room for 1,016 at first and 1,008 in a second.
        assert!(statistics.deferred > 70_000, "{statistics:?}");
        if matches!(caller, CallerCredentials::Shared(_)) {
            assert_eq!(
                statistics.answers, 10,
                "with another cookie it proves nothing"
            );
        }
    }
}

/// The same number of replays from 4,096 prefixes exceeds the budget, but a caller that retries
/// connects sooner or later.
#[test]
fn replays_from_everywhere_leave_honest_callers_a_share() {
    let config = listener_config(ListenerCredentials::Passphrase(passphrase(7)));
    let caller = CallerCredentials::Passphrase(passphrase(7));
    let old = recorded(&config, &caller);
    let path = Path {
        jitter: Span::from_millis(1),
        ..Path::GOOD
    };
    let mut world = World::new(1, path, config);
    let replayers: Vec<_> = (0..4_096_u32)
        .map(|at| {
            let [_, _, high, low] = at.to_be_bytes();
            Replayer::new(&mut world, ([11, high, low, 1], 9).into(), &old)
        })
        .collect();
    for at in 0..80_000_u64 {
        replayers[at as usize % replayers.len()].send(&mut world);
        if at % 800 == 0 && (20_000..40_000).contains(&at) {
            let from = format!("198.51.{prefix}.7:1", prefix = (at - 20_000) / 800);
            world.call(&from, caller_config(caller.clone()));
        }
        // 50 us on average, not synchronised with any other interval.
        world.run_for(Span::from_micros(at * 7_919 % 61 + 20));
    }
    let inside = world
        .callers
        .iter()
        .filter(|(_, caller)| caller.session().is_some());
    let (inside, all) = (inside.count(), world.callers.len());
    assert!(
        (8..=20).contains(&inside),
        "{inside} of {all} within 2 to 3 s"
    );
    world.run_for(Span::from_secs(2));
    let inside = world
        .callers
        .iter()
        .filter(|(_, caller)| caller.session().is_some());
    assert_eq!(inside.count(), all, "when it is over all are in");
}

#[test]
fn a_recorded_confirm_opens_nothing_again() {
    let mut world = World::with_shared_secret(1, Path::GOOD);
    world.run_for(Span::from_millis(121));
    let confirm = world.sent(CONFIRM)[0].bytes.clone();
    // While the connection is half open, the listener repeats the answer.
    assert_eq!(world.listener.half_open(), 1);
    deliver(&mut world, CALLER, &confirm);
    let accepts = world.sent(ACCEPT);
    assert_eq!(accepts.len(), 2);
    assert_eq!(accepts[0].bytes, accepts[1].bytes);
    // From another address, and when the connection is open, nothing happens.
    deliver(&mut world, "203.0.113.5:1", &confirm);
    world.run_for(Span::from_secs(1));
    deliver(&mut world, CALLER, &confirm);
    assert_eq!(world.sent(ACCEPT).len(), 2);
    assert_eq!(world.listener.connections(), 1);
    // Nothing happens after the end either, while the ticket is valid and afterwards.
    world.listener_core().closing = true;
    world.drain();
    assert_eq!(world.listener.connections(), 0);
    for after in [0, 6, 6, 6, 60] {
        world.run_for(Span::from_secs(after));
        deliver(&mut world, CALLER, &confirm);
        assert_eq!(world.listener.connections(), 0, "{after} s later");
    }
    assert_eq!(world.sent(ACCEPT).len(), 2);
}

/// A replayed Confirm with the caller's address causes no more bytes than it has: neither refusals
/// with a long stream name, nor an Accept with long parameters.
#[test]
fn a_replayed_confirm_is_not_amplified() {
    for long_name in [true, false] {
        let config = ListenerConfig {
            parameters: vec![1; MAX_PARAMETERS],
            ..listener_config(ListenerCredentials::Shared(shared(7)))
        };
        let mut world = World::new(1, Path::GOOD, config.clone());
        let name = "é".repeat(256);
        if long_name {
            let own = name.clone();
            let opener: Opener<_> = Box::new(move |_, _, _, _| {
                let (requested, own) = ("other".to_owned(), own.clone());
                Err(BadParameters::Stream { requested, own })
            });
            let randomness = Randomness::seeded(Seed::new(9));
            world.listener = Listener::new(world.now, config, opener, randomness).expect("valid");
        }
        world.call(CALLER, caller_config(CallerCredentials::Shared(shared(7))));
        world.run_for(Span::from_millis(119));
        let confirm = world.sent(CONFIRM)[0].bytes.clone();
        // The caller's packets so far, and the replies.
        let (mut received, mut sent) = world.traffic[&address(CALLER)];
        assert!(sent <= received);
        for replay in 0..1_000 {
            received += confirm.len() as u64;
            deliver(&mut world, CALLER, &confirm);
            sent = world.traffic[&address(CALLER)].1;
            assert!(sent <= received, "{replay}: {sent} for {received}");
        }
        let accepts = world.sent(ACCEPT).len();
        if long_name {
            // Each is answered, with the name cut at a character.
            assert_eq!(accepts, 1_001);
            let longest = world.sent(ACCEPT).iter().map(|sent| sent.bytes.len()).max();
            assert!((confirm.len() - 1..=confirm.len()).contains(&longest.expect("some")));
            world.run_for(Span::from_millis(2));
            let Some(CallError::Stream { own, .. }) = world.failure(0) else {
                panic!("{:?}", world.failure(0));
            };
            assert!(name.starts_with(&own) && own.len() > 60, "{own}");
        } else {
            // A lost Accept still comes again.
            assert!((150..=400).contains(&accepts), "{accepts}");
            world.run_for(Span::from_secs(1));
            assert!(world.callers[0].1.session().is_some());
        }
    }
}

/// An attacker that guesses a passphrase is refused each time and gets few tries.
#[test]
fn guesses_of_a_passphrase_are_limited_and_reported() {
    let config = listener_config(ListenerCredentials::Passphrase(passphrase(7)));
    let mut world = World::new(1, Path::GOOD, config);
    for guess in 0..200_u8 {
        let credentials = CallerCredentials::Passphrase(passphrase(100 + guess % 100));
        let from = format!("203.0.113.1:{}", guess + 1);
        world.call(&from, caller_config(credentials));
        world.run_for(Span::from_millis(25));
    }
    world.run_for(Span::from_secs(12));
    assert_eq!(world.listener.connections(), 0);
    let refused = world.listener.statistics().refused;
    // Five at first, and one in four seconds.
    assert!((7..=10).contains(&refused), "{refused}");
    let unproven = world.listener_events.iter().filter(|event| {
        matches!(
            event,
            ListenerEvent::Refused {
                why: RefusedCaller::Unproven,
                ..
            }
        )
    });
    assert_eq!(unproven.count() as u64, refused, "each of them is seen");
    // An honest caller is not affected, in the same network or in another.
    for from in ["203.0.113.2:1", "198.51.100.8:1"] {
        let credentials = CallerCredentials::Passphrase(passphrase(7));
        let honest = world.call(from, caller_config(credentials));
        world.run_for(Span::from_millis(120));
        assert!(world.callers[honest].1.session().is_some(), "{from}");
    }
}

/// The form of an Answer does not depend on the caller's passphrase.
#[test]
fn an_answer_is_no_oracle_for_guesses() {
    let answer = |listener: u8, caller: u8| {
        let config = listener_config(ListenerCredentials::Passphrase(passphrase(listener)));
        let mut world = World::new(1, Path::GOOD, config);
        let credentials = CallerCredentials::Passphrase(passphrase(caller));
        world.call(CALLER, caller_config(credentials));
        world.run_for(Span::from_millis(79));
        world.sent(ANSWER)[0].bytes.clone()
    };
    // Right and wrong guesses get Answers of the same form. Only message 3, which the caller must
    // send, separates them.
    let (right, wrong) = (answer(7, 7), answer(7, 8));
    assert_eq!(right.len(), wrong.len());
    assert_eq!(right[..5], wrong[..5]);
}

#[test]
fn connections_are_bounded_and_the_next_caller_is_refused() {
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
    let busy = CallError::Busy {
        address: address(LISTENER),
    };
    assert_eq!(world.failure(2), Some(busy));
    let is_busy = |event: &&ListenerEvent| matches!(event, ListenerEvent::Refused { why, .. } if *why == RefusedCaller::Busy);
    let seen = world.listener_events.iter().filter(is_busy).count() as u64;
    assert!(seen > 1, "{seen}");
    assert_eq!(world.listener.statistics().refused, seen);
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
    // The attacker sees a packet and sends a copy that arrives before it.
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
