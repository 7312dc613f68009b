//! Which packets a caller accepts as genuine, and when it sends.

use std::collections::BTreeSet;

use comity::session::{
    CallError, Caller, CallerConfig, CallerCredentials, ConnectionId, Ecn, Listener,
    ListenerConfig, ListenerConfigError, ListenerCredentials, MAX_PARAMETERS, Randomness,
};
use comity_transport::wire::header::Retry;
use comity_units::{Seed, Span, Time};

use super::network::{
    ACCEPT, CALLER, CONFIRM, INITIAL, LISTENER, Path, World, address, caller_config,
    listener_config, opener, shared,
};

/// A caller whose listener receives no packet.
fn unanswered() -> World {
    let mut world = World::with_shared_secret(1, Path::GOOD);
    world.dead.insert(address(LISTENER));
    world.drain();
    world
}

/// Delivers a datagram to a caller and sends its reply.
fn inject(world: &mut World, caller: usize, from: &str, bytes: &[u8]) {
    let now = world.now;
    let caller = &mut world.callers[caller].1;
    caller.handle_datagram(now, address(from), Ecn::NotCapable, &mut bytes.to_vec());
    world.drain();
}

/// An Answer that refuses the call with this id.
fn refusal(id: ConnectionId) -> Vec<u8> {
    [&[0x30, 0, 0, 0, 2][..], &id.get().to_be_bytes(), &[0, 1]].concat()
}

fn version_negotiation(id: ConnectionId, versions: &[u32]) -> Vec<u8> {
    let versions = versions.iter().flat_map(|version| version.to_be_bytes());
    [0x50]
        .into_iter()
        .chain(id.get().to_be_bytes())
        .chain(versions)
        .collect()
}

fn retry(id: ConnectionId, cookie: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let destination = id;
    let retry = Retry {
        destination,
        cookie,
    };
    retry.encode(&mut out).expect("within the format");
    out
}

#[test]
fn before_the_connection_only_the_called_address_is_accepted() {
    let mut world = World::with_shared_secret(1, Path::GOOD);
    world.run_for(Span::from_millis(119));
    let accept = world.sent(ACCEPT)[0].bytes.clone();
    inject(&mut world, 0, "192.0.2.1:5001", &accept);
    assert!(world.callers[0].1.session().is_none());
    inject(&mut world, 0, LISTENER, &accept);
    assert!(world.callers[0].1.session().is_some());
}

#[test]
fn a_refusal_of_another_call_or_of_the_supported_version_is_ignored() {
    let own = unanswered().callers[0].1.id();
    let other = ConnectionId::new(own.get() ^ 1);
    let to = address(LISTENER);
    let version = CallError::Version {
        address: to,
        theirs: 9,
    };
    for (packet, expected) in [
        (version_negotiation(own, &[9, 1]), Some(version)),
        (version_negotiation(own, &[9, 2]), None),
        (version_negotiation(other, &[9, 1]), None),
        (refusal(own), Some(CallError::SharedKey { address: to })),
        (refusal(other), None),
    ] {
        let mut world = unanswered();
        for _ in 0..3 {
            inject(&mut world, 0, LISTENER, &packet);
            world.run_for(Span::from_millis(1_600));
        }
        assert_eq!(world.failure(0), expected, "{packet:x?}");
    }
}

/// Different made-up reasons do not make a refusal credible sooner than a single one.
#[test]
fn a_refusal_is_believed_only_if_it_repeats() {
    let mut world = unanswered();
    let own = world.callers[0].1.id();
    let reasons = [
        version_negotiation(own, &[9]),
        refusal(own),
        version_negotiation(own, &[9]),
        refusal(own),
    ];
    for packet in &reasons {
        inject(&mut world, 0, LISTENER, packet);
        assert_eq!(world.failure(0), None);
        world.run_for(Span::from_millis(2_200));
    }
    assert_eq!(world.failure(0), None);
    world.run_for(Span::from_millis(1_000));
    inject(&mut world, 0, LISTENER, &refusal(own));
    let expected = CallError::SharedKey {
        address: address(LISTENER),
    };
    assert_eq!(world.failure(0), Some(expected));
}

/// Listener and caller have the same key, and the listener has room for one connection, which
/// another caller has.
fn busy(timeout: Span) -> (World, usize) {
    let mut config = listener_config(ListenerCredentials::Shared(shared(7)));
    config.max_connections = 1;
    let mut world = World::new(1, Path::GOOD, config);
    let credentials = CallerCredentials::Shared(shared(7));
    world.call("198.51.100.8:1", caller_config(credentials.clone()));
    world.run_for(Span::from_secs(1));
    let config = CallerConfig {
        timeout,
        ..caller_config(credentials)
    };
    let late = world.call(CALLER, config);
    (world, late)
}

/// Forged refusals before and after the listener proved that it is busy: the caller waits for room.
#[test]
fn forged_refusals_end_no_call_whose_listener_has_proved_itself() {
    for forged_at in [[0, 3, 6], [1, 4, 7]] {
        let (mut world, late) = busy(Span::from_secs(30));
        let packet = refusal(world.callers[late].1.id());
        let start = world.now;
        for at in forged_at {
            world.run_until(start + Span::from_secs(at));
            inject(&mut world, late, LISTENER, &packet);
            world.run_for(Span::from_millis(1));
            inject(&mut world, late, LISTENER, &packet);
        }
        assert!(world.sent(ACCEPT).len() > 10, "it was busy meanwhile");
        world.run_until(start + Span::from_secs(10));
        assert_eq!(world.failure(late), None);
        world.caller_core(0).closing = true;
        world.listener_core().closing = true;
        world.run_for(Span::from_secs(2));
        assert!(world.callers[late].1.session().is_some());
    }
}

/// At the time limit, a proved reason counts more than a forged one, also after its ticket.
#[test]
fn a_proved_reason_is_reported_instead_of_a_forged_one() {
    let (mut world, late) = busy(Span::from_secs(10));
    world.run_for(Span::from_millis(9_000));
    let packet = refusal(world.callers[late].1.id());
    world.dead.insert(address(LISTENER));
    for _ in 0..9 {
        world.run_for(Span::from_millis(100));
        inject(&mut world, late, LISTENER, &packet);
    }
    assert_eq!(world.failure(late), None);
    world.run_for(Span::from_millis(100));
    let expected = CallError::Busy {
        address: address(LISTENER),
    };
    assert_eq!(world.failure(late), Some(expected));
}

/// A listener with another key takes the place of a busy one: its refusals count when the ticket of
/// the busy one has expired.
#[test]
fn a_refusal_counts_again_when_the_proof_has_expired() {
    let (mut world, late) = busy(Span::from_secs(60));
    world.run_for(Span::from_secs(1));
    let config = listener_config(ListenerCredentials::Shared(shared(8)));
    let randomness = Randomness::seeded(Seed::new(4_242));
    world.listener = Listener::new(world.now, config, opener(), randomness).expect("valid");
    world.run_for(Span::from_secs(20));
    let expected = CallError::SharedKey {
        address: address(LISTENER),
    };
    assert_eq!(world.failure(late), Some(expected));
}

/// Anybody who sees an Initial can forge Retries. The caller answers eight of them at once, and
/// then one every 20 ms.
#[test]
fn beyond_eight_retries_a_caller_answers_fifty_per_second() {
    let mut world = unanswered();
    let own = world.callers[0].1.id();
    for made_up in 1..=100 {
        inject(&mut world, 0, LISTENER, &retry(own, &[made_up; 36]));
        let expected = 1 + usize::from(made_up).min(8);
        assert_eq!(world.sent(INITIAL).len(), expected);
    }
    // A Retry that arrived twice is answered first, and then the others from the last to the first.
    inject(&mut world, 0, LISTENER, &retry(own, &[50; 36]));
    for (at, cookie) in [50, 100, 99].into_iter().enumerate() {
        world.run_for(Span::from_millis(19));
        assert_eq!(world.sent(INITIAL).len(), 9 + at);
        world.run_for(Span::from_millis(1));
        let sent = world.sent(INITIAL);
        assert_eq!(sent.len(), 10 + at);
        let last = &sent[9 + at].bytes;
        assert!(last.windows(36).any(|window| window == [cookie; 36]));
    }
    // All of them have been answered after two seconds. After that, the timer repeats four or five
    // at a time.
    world.run_for(Span::from_secs(2));
    let sent = world.sent(INITIAL);
    let cookies: BTreeSet<_> = sent.iter().map(|sent| &sent.bytes[15..51]).collect();
    assert_eq!(cookies.len(), 1 + 100);
    let count = world.sent(INITIAL).len();
    world.run_for(Span::from_secs(2));
    let more = world.sent(INITIAL).len() - count;
    assert!((16..=25).contains(&more), "{more}");
}

/// A message is not retransmitted before its answer can arrive. On a path of more than 250 ms, the
/// first Retry alone may answer either Initial; a second one resolves that.
#[test]
fn after_a_retry_a_caller_waits_for_longer_than_a_round_trip() {
    for (delay_ms, another, waits_us) in [
        (20, false, [250_000, 375_000]),
        (150, false, [312_500, 468_750]),
        (150, true, [375_000, 468_750]),
        (1_000, true, [1_000_000, 1_000_000]),
    ] {
        let delay = Span::from_millis(delay_ms);
        let mut world = World::with_shared_secret(
            1,
            Path {
                delay,
                ..Path::GOOD
            },
        );
        world.run_for(delay * 2);
        let mut sent_at = world.now;
        // The second Initial reaches the listener in this time, and the one with a cookie does not.
        world.run_for(Span::from_millis(if another { 101 } else { 0 }));
        world.dead.insert(address(LISTENER));
        world.run_for(Span::from_millis(if another { 150 } else { 0 }));
        for wait_us in waits_us {
            let due = sent_at + Span::from_micros(wait_us);
            assert_eq!(world.callers[0].1.next_timer(), due, "{delay_ms} ms");
            world.run_until(due);
            sent_at = due;
        }
    }
}

/// The answer to a message that left once gives the round trip, even if the Retry did not.
#[test]
fn after_an_answer_a_caller_waits_by_the_round_trip_of_the_answer() {
    let path = Path {
        delay: Span::from_millis(150),
        ..Path::GOOD
    };
    let mut world = World::with_shared_secret(1, path);
    // The second Initial, which left after 250 ms, is lost.
    world.run_for(Span::from_millis(399));
    world.dead.insert(address(LISTENER));
    world.run_for(Span::from_millis(2));
    world.dead.clear();
    world.run_for(Span::from_millis(199));
    assert_eq!(world.sent(CONFIRM).len(), 1);
    let due = world.now + Span::from_millis(375);
    assert_eq!(world.callers[0].1.next_timer(), due);
}

/// Both ends measure the round trip, unless a retransmitted message may have ended it (Karn's
/// rule).
#[test]
fn the_handshake_measures_the_round_trip_if_that_is_certain() {
    let measured = |delay_ms: u64, loses_accept: bool| {
        let delay = Span::from_millis(delay_ms);
        let path = Path {
            delay,
            ..Path::GOOD
        };
        let mut world = World::with_shared_secret(1, path);
        if loses_accept {
            world.run_for(Span::from_millis(delay_ms * 5 - 1));
            world.dead.insert(address(CALLER));
            world.run_for(Span::from_millis(2));
            world.dead.clear();
        }
        world.run_for(Span::from_secs(5));
        let confirms = world.sent(CONFIRM).len();
        assert_eq!(confirms, 1 + usize::from(loses_accept));
        (
            world.caller_core(0).round_trip.map(Span::as_millis),
            world.listener_core().round_trip.map(Span::as_millis),
        )
    };
    assert_eq!(measured(20, false), (Some(40), Some(40)));
    assert_eq!(measured(20, true), (None, Some(40)));
    // The listener does not see whether a Confirm came a second time. None does within 250 ms.
    assert_eq!(measured(124, false), (Some(248), Some(248)));
    assert_eq!(measured(125, false), (Some(250), None));
}

#[test]
fn parameters_of_the_greatest_length_reach_the_other_end_whole() {
    let longest = |byte: u8| vec![byte; MAX_PARAMETERS];
    let config = ListenerConfig {
        parameters: longest(1),
        ..listener_config(ListenerCredentials::Shared(shared(7)))
    };
    let mut world = World::new(1, Path::GOOD, config.clone());
    let calling = CallerConfig {
        parameters: longest(2),
        ..caller_config(CallerCredentials::Shared(shared(7)))
    };
    world.call(CALLER, calling.clone());
    world.run_for(Span::from_secs(1));
    assert_eq!(world.caller_core(0).peer_parameters, longest(1));
    assert_eq!(world.listener_core().peer_parameters, longest(2));

    let longer = vec![0; MAX_PARAMETERS + 1];
    let (now, random) = (world.now, || Randomness::seeded(Seed::new(1)));
    let config = ListenerConfig {
        parameters: longer.clone(),
        ..config
    };
    let refused = Listener::new(now, config, opener(), random()).err();
    let expected = ListenerConfigError::ParametersLong(longer.len());
    assert_eq!(refused, Some(expected));
    let config = CallerConfig {
        parameters: longer.clone(),
        ..calling
    };
    let refused = Caller::new(now, address(LISTENER), config, opener(), random()).err();
    let expected = CallError::ParametersLong(longer.len());
    assert_eq!(refused, Some(expected));
}

/// Without protection, only the id identifies the connection of a packet.
#[test]
fn data_with_another_id_is_ignored() {
    let config = listener_config(ListenerCredentials::Insecure);
    let mut world = World::new(1, Path::GOOD, config);
    world.call(CALLER, caller_config(CallerCredentials::Insecure));
    world.run_for(Span::from_secs(1));
    world.dead.insert(address(CALLER));
    world.listener_core().send(b"down");
    world.drain();
    let genuine = world.log.last().expect("it was just sent").bytes.clone();
    let mut other = genuine.clone();
    other[8] ^= 1;
    inject(&mut world, 0, LISTENER, &other);
    assert_eq!(world.caller_core(0).received, [] as [&[u8]; 0]);
    inject(&mut world, 0, LISTENER, &genuine);
    assert_eq!(world.caller_core(0).received, [b"down"]);
}

#[test]
fn a_caller_gives_up_at_its_time_limit() {
    let mut world = World::new(
        1,
        Path::GOOD,
        listener_config(ListenerCredentials::Shared(shared(7))),
    );
    world.dead.insert(address(LISTENER));
    let config = CallerConfig {
        timeout: Span::from_millis(700),
        ..caller_config(CallerCredentials::Shared(shared(7)))
    };
    world.call(CALLER, config);
    world.run_for(Span::from_millis(699));
    assert_eq!(world.failure(0), None);
    // 0, 250 and 625 ms; the next one would be later than the limit.
    assert_eq!(world.sent(INITIAL).len(), 3);
    assert_eq!(
        world.callers[0].1.next_timer(),
        world.now + Span::from_millis(1)
    );
    world.run_for(Span::from_millis(1));
    let expected = CallError::NoAnswer {
        address: address(LISTENER),
        within: Span::from_millis(700),
    };
    assert_eq!(world.failure(0), Some(expected));
    assert_eq!(world.callers[0].1.next_timer(), Time::MAX);
    assert_eq!(world.sent(INITIAL).len(), 3);
}
