//! Handshakes, and clear reasons when they fail.

use std::collections::BTreeSet;

use crate::session::network::{
    ACCEPT, ANSWER, CALLER, CONFIRM, INITIAL, LISTENER, Path, RETRY, World, address, caller_config,
    listener_config, passphrase, shared,
};
use comity::session::{
    Allow, CallError, CallerConfig, CallerCredentials, CallerEvent, Cipher, Closed, Ecn, Event,
    ListenerCredentials, ListenerEvent, RefusedCaller, StaticKey,
};
use comity_units::{Span, Time};

/// Messages in both directions over an open connection.
fn exchange(world: &mut World) {
    world.caller_core(0).send(b"to the listener");
    world.run_for(Span::from_secs(1));
    world.listener_core().send(b"to the caller");
    world.run_for(Span::from_secs(1));
    assert_eq!(world.listener_core().received, [b"to the listener"]);
    assert_eq!(world.caller_core(0).received, [b"to the caller"]);
}

fn static_keys() -> (StaticKey, StaticKey) {
    (StaticKey::new([1; 32]), StaticKey::new([2; 32]))
}

fn static_world(allow: Allow, listener_known_by: &StaticKey) -> World {
    let (caller, listener) = static_keys();
    let credentials = ListenerCredentials::Static {
        own: listener,
        allow,
    };
    let mut world = World::new(1, Path::GOOD, listener_config(credentials));
    let credentials = CallerCredentials::Static {
        own: caller,
        listener: listener_known_by.public(),
    };
    world.call(CALLER, caller_config(credentials));
    world
}

/// Matching credentials of both ends, of each kind.
fn fitting() -> [(ListenerCredentials, CallerCredentials); 4] {
    let (caller, listener) = static_keys();
    [
        (
            ListenerCredentials::Passphrase(passphrase(7)),
            CallerCredentials::Passphrase(passphrase(7)),
        ),
        (
            ListenerCredentials::Shared(shared(7)),
            CallerCredentials::Shared(shared(7)),
        ),
        (
            ListenerCredentials::Static {
                own: listener.clone(),
                allow: Allow::Only(BTreeSet::from([caller.public()])),
            },
            CallerCredentials::Static {
                own: caller,
                listener: listener.public(),
            },
        ),
        (ListenerCredentials::Insecure, CallerCredentials::Insecure),
    ]
}

#[test]
fn a_connection_opens_in_three_round_trips() {
    for (listener, caller) in fitting() {
        let mut world = World::new(1, Path::GOOD, listener_config(listener));
        let is_protected = !matches!(caller, CallerCredentials::Insecure);
        world.call(CALLER, caller_config(caller));
        world.run_for(Span::from_millis(99));
        assert_eq!(world.listener.connections(), 0);
        world.run_for(Span::from_millis(20));
        assert_eq!(world.caller_events, []);
        world.run_for(Span::from_millis(1));
        let cipher = is_protected.then_some(Cipher::Aes128Gcm);
        assert!(matches!(
            world.caller_events[..],
            [(0, CallerEvent::Session(Event::Established { cipher: found, .. }))] if found == cipher
        ));
        assert_eq!(world.listener_events, []);
        assert_eq!(world.listener.half_open(), 1);
        world.run_for(Span::from_millis(20));
        assert_eq!(world.listener.half_open(), 0);
        assert!(matches!(
            world.listener_events[..],
            [ListenerEvent::Session(_, Event::Established { cipher: found, .. })]
                if found == cipher
        ));
        for (kind, count) in [
            (INITIAL, 2),
            (RETRY, 1),
            (ANSWER, 1),
            (CONFIRM, 1),
            (ACCEPT, 1),
        ] {
            assert_eq!(world.sent(kind).len(), count, "kind {kind}");
        }
        exchange(&mut world);
        assert_eq!(world.listener_core().peer_parameters, b"caller's");
        assert_eq!(world.caller_core(0).peer_parameters, b"listener's");
        let overhead = if is_protected { 13 + 16 } else { 13 };
        assert_eq!(world.caller_core(0).overhead, overhead);
    }
}

#[test]
fn static_keys_identify_each_end_to_the_other() {
    let (caller, listener) = static_keys();
    let allow = Allow::Only(BTreeSet::from([caller.public()]));
    let mut world = static_world(allow, &listener);
    world.run_for(Span::from_secs(1));
    exchange(&mut world);
    assert!(matches!(
        world.caller_events[..],
        [(0, CallerEvent::Session(Event::Established { peer_key: Some(key), .. }))]
            if key == listener.public()
    ));
    assert!(matches!(
        world.listener_events[..],
        [ListenerEvent::Session(_, Event::Established { peer_key: Some(key), .. })]
            if key == caller.public()
    ));
    let id = world.listener.ids().next().unwrap();
    let at_listener = world.listener.session(id).unwrap().peer_key();
    assert_eq!(at_listener, Some(caller.public()));
    let at_caller = world.callers[0].1.session().unwrap().peer_key();
    assert_eq!(at_caller, Some(listener.public()));
}

#[test]
fn unprotected_connections_need_both_ends_and_cause_a_warning() {
    let config = listener_config(ListenerCredentials::Insecure);
    assert!(
        config
            .credentials
            .warning()
            .is_some_and(|text| text.starts_with("insecure: "))
    );
    let mut world = World::new(1, Path::GOOD, config);
    world.call(CALLER, caller_config(CallerCredentials::Insecure));
    world.run_for(Span::from_secs(1));
    exchange(&mut world);
    let established = Event::Established {
        peer_key: None,
        cipher: None,
    };
    assert_eq!(
        world.caller_events,
        [(0, CallerEvent::Session(established))]
    );
    let readable = |text: &[u8]| {
        let log = world.log.iter();
        log.filter(|flight| {
            flight
                .bytes
                .windows(text.len())
                .any(|window| window == text)
        })
        .count()
    };
    assert_eq!(readable(b"to the listener"), 1);
    assert_eq!(readable(b"caller's"), 1);
    let mut secure = World::with_shared_secret(1, Path::GOOD);
    secure.run_for(Span::from_secs(1));
    exchange(&mut secure);
    for text in [
        &b"to the listener"[..],
        b"to the caller",
        b"caller's",
        b"listener's",
    ] {
        let mut log = secure.log.iter();
        assert!(!log.any(|f| f.bytes.windows(text.len()).any(|window| window == text)));
    }
}

#[test]
fn aes_is_used_only_when_both_ends_are_fast_with_it() {
    use Cipher::{Aes128Gcm, ChaCha20Poly1305};
    for (caller, listener, expected) in [
        (Aes128Gcm, Aes128Gcm, Aes128Gcm),
        (Aes128Gcm, ChaCha20Poly1305, ChaCha20Poly1305),
        (ChaCha20Poly1305, Aes128Gcm, ChaCha20Poly1305),
        (ChaCha20Poly1305, ChaCha20Poly1305, ChaCha20Poly1305),
    ] {
        let mut config = listener_config(ListenerCredentials::Shared(shared(7)));
        config.cipher = listener;
        let mut world = World::new(1, Path::GOOD, config);
        let mut config = caller_config(CallerCredentials::Shared(shared(7)));
        config.cipher = caller;
        world.call(CALLER, config);
        world.run_for(Span::from_secs(1));
        exchange(&mut world);
        let session = world.callers[0].1.session().unwrap();
        assert_eq!(session.protection().cipher(), Some(expected));
    }
}

#[test]
fn it_completes_under_loss_reordering_and_duplication() {
    let path = Path {
        loss: 0.3,
        duplication: 0.2,
        delay: Span::from_millis(30),
        jitter: Span::from_millis(50),
    };
    let (mut initials, mut confirms) = (0, 0);
    for seed in 0..200 {
        let (listener, caller) = fitting()[seed as usize % 4].clone();
        let mut world = World::new(seed, path, listener_config(listener));
        world.call(CALLER, caller_config(caller));
        world.run_for(Span::from_secs(12));
        assert_eq!(world.failure(0), None, "seed {seed}");
        assert_eq!(world.listener.half_open(), 0, "seed {seed}");
        assert_eq!(world.listener.connections(), 1, "seed {seed}");
        initials += world.sent(INITIAL).len();
        confirms += world.sent(CONFIRM).len();
    }
    // One exchange in two fails, since 0.7² = 0.49 succeed. So the average is four Initials for two
    // exchanges, and two Confirms for one.
    assert!((600..1100).contains(&initials), "{initials}");
    assert!((300..550).contains(&confirms), "{confirms}");
}

/// Of nine or ten exchanges in 3 s, three must succeed.
#[test]
fn few_calls_fail_in_the_default_time_with_a_fifth_lost() {
    for (loss, may_fail) in [(0.1, 0..=1), (0.2, 1..=8), (0.45, 130..=200)] {
        let path = Path {
            loss,
            delay: Span::from_millis(25),
            ..Path::GOOD
        };
        let failed = (0..400).filter(|&seed| {
            let (listener, caller) = fitting()[seed as usize % 4].clone();
            let mut world = World::new(seed, path, listener_config(listener));
            let mut config = caller_config(caller);
            config.timeout = Span::from_secs(3);
            world.call(CALLER, config);
            world.run_for(Span::from_secs(4));
            world.failure(0).is_some()
        });
        let failed = failed.count();
        assert!(may_fail.contains(&failed), "{loss}: {failed}");
    }
}

/// Only the empty Initial is retransmitted before an answer can arrive: its answer costs the
/// listener next to nothing.
#[test]
fn on_a_long_path_each_key_exchange_leaves_once() {
    for (one_way, empty_ones) in [(100, 1), (150, 2), (300, 2), (400, 3)] {
        let path = Path {
            delay: Span::from_millis(one_way),
            ..Path::GOOD
        };
        for (listener, caller) in fitting() {
            let mut world = World::new(1, path, listener_config(listener));
            world.call(CALLER, caller_config(caller));
            world.run_for(Span::from_millis(6 * one_way + 50));
            assert_eq!(world.listener.connections(), 1);
            assert_eq!(world.sent(INITIAL).len(), empty_ones + 1, "{one_way} ms");
            assert_eq!(world.sent(CONFIRM).len(), 1, "{one_way} ms");
        }
    }
}

#[test]
fn without_an_answer_it_backs_off_and_gives_up_in_time() {
    let mut world = World::with_shared_secret(1, Path::GOOD);
    world.dead.insert(address(LISTENER));
    let start = world.now;
    world.run_for(Span::from_nanos(9_999_999_999));
    assert_eq!(world.failure(0), None);
    // 0, 250, 625, 1125 ms and every half second until 10 s.
    assert_eq!(world.sent(INITIAL).len(), 3 + 18);
    world.run_for(Span::from_nanos(1));
    assert_eq!(world.now, start + Span::from_secs(10));
    let error = world.failure(0).unwrap();
    assert_eq!(
        error.to_string(),
        "192.0.2.1:5000: no answer within 10s; expected a listener there, and UDP to pass in both directions"
    );
    assert!(world.callers[0].1.is_over());
    world.run_for(Span::from_secs(60));
    assert_eq!(world.sent(INITIAL).len(), 21);
}

#[test]
fn the_back_off_has_the_documented_times() {
    let usual = CallerConfig::new(CallerCredentials::Insecure, Vec::new());
    assert_eq!(usual.timeout, Span::from_secs(3));
    let mut world = World::with_shared_secret(1, Path::GOOD);
    world.dead.insert(address(LISTENER));
    let mut sent = 0;
    for due in [0, 250_000, 625_000, 1_125_000, 1_625_000, 2_125_000] {
        let due = Time::from_secs(1000) + Span::from_micros(due);
        assert_eq!(world.callers[0].1.next_timer(), due);
        world.run_until(due);
        world.drain();
        sent += 1;
        assert_eq!(world.sent(INITIAL).len(), sent);
    }
}

fn fails_with(mut world: World) -> (CallError, RefusedCaller, Span) {
    let start = world.now;
    world.drain();
    while world.failure(0).is_none() {
        assert!(!world.callers[0].1.next_timer().is_never());
        world.run_for(Span::from_millis(5));
        world.drain();
    }
    let Some(ListenerEvent::Refused { from, why }) = world.listener_events.first() else {
        panic!("{:?}", world.listener_events);
    };
    assert_eq!(*from, address(CALLER));
    assert_eq!(world.listener.connections(), 0);
    (
        world.failure(0).unwrap(),
        why.clone(),
        world.now.saturating_since(start),
    )
}

fn mismatch(
    listener: ListenerCredentials,
    caller: CallerCredentials,
) -> (CallError, RefusedCaller, Span) {
    let mut world = World::new(1, Path::GOOD, listener_config(listener));
    world.call(CALLER, caller_config(caller));
    fails_with(world)
}

/// Two round trips, and the first retransmission three seconds later: its refusal is believed.
const AFTER_THE_ANSWER: Span = Span::from_millis(80 + 3125);
/// With a passphrase the caller must prove itself first.
const AFTER_THE_PROOF: Span = Span::from_millis(120 + 3125);

#[test]
fn each_reason_has_its_own_error() {
    let (caller, listener) = static_keys();
    let stranger = StaticKey::new([3; 32]);
    let to = address(LISTENER);
    let by_key = |own: &StaticKey, known: &StaticKey| CallerCredentials::Static {
        own: own.clone(),
        listener: known.public(),
    };
    let with_list = |allowed: &StaticKey| ListenerCredentials::Static {
        own: listener.clone(),
        allow: Allow::Only(BTreeSet::from([allowed.public()])),
    };

    let found = mismatch(
        ListenerCredentials::Passphrase(passphrase(7)),
        CallerCredentials::Passphrase(passphrase(8)),
    );
    let error = CallError::Passphrase { address: to };
    assert_eq!(found, (error, RefusedCaller::Unproven, AFTER_THE_PROOF));

    let found = mismatch(
        ListenerCredentials::Shared(shared(7)),
        CallerCredentials::Shared(shared(8)),
    );
    let error = CallError::SharedKey { address: to };
    assert_eq!(found, (error, RefusedCaller::Unproven, AFTER_THE_ANSWER));

    let unknown = mismatch(with_list(&caller), by_key(&stranger, &listener));
    assert_eq!(unknown.1, RefusedCaller::UnknownKey(stranger.public()));
    let other_listener = mismatch(with_list(&caller), by_key(&caller, &stranger));
    assert_eq!(other_listener.1, RefusedCaller::Unproven);
    assert!(matches!(unknown.0, CallError::StaticKey { own, .. } if own == stranger.public()));
    assert!(matches!(other_listener.0, CallError::StaticKey { own, .. } if own == caller.public()));

    // The caller does not learn which kind the listener accepts. The listener's log has both.
    let kinds = fitting();
    for (at, (listener, _)) in kinds.iter().enumerate() {
        for (_, caller) in kinds[..at].iter().chain(&kinds[at + 1..]) {
            let (error, why, after) = mismatch(listener.clone(), caller.clone());
            assert_eq!(why, RefusedCaller::Pattern(caller.pattern()));
            assert_eq!(after, AFTER_THE_ANSWER);
            assert!(matches!(
                (caller, error),
                (CallerCredentials::Insecure, CallError::Refused { .. })
                    | (
                        CallerCredentials::Passphrase(_),
                        CallError::Passphrase { .. }
                    )
                    | (CallerCredentials::Shared(_), CallError::SharedKey { .. })
                    | (
                        CallerCredentials::Static { .. },
                        CallError::StaticKey { .. }
                    )
            ));
        }
    }
    assert_eq!(
        RefusedCaller::Pattern(kinds[0].1.pattern()).to_string(),
        "the caller uses a passphrase"
    );
}

#[test]
fn transport_parameters_that_are_not_accepted_are_reported_by_either_end() {
    let to = address(LISTENER);
    let mut world = World::new(
        1,
        Path::GOOD,
        listener_config(ListenerCredentials::Shared(shared(7))),
    );
    let config = CallerConfig {
        parameters: b"unacceptable".to_vec(),
        ..caller_config(CallerCredentials::Shared(shared(7)))
    };
    world.call(CALLER, config);
    let (error, why, after) = fails_with(world);
    assert_eq!(error, CallError::Parameters { address: to });
    assert_eq!(why, RefusedCaller::Parameters);
    // With a proof, a refusal is accepted at once.
    assert!(after < Span::from_millis(400), "{after}");

    let mut config = listener_config(ListenerCredentials::Shared(shared(7)));
    config.parameters = b"unacceptable".to_vec();
    let mut world = World::new(1, Path::GOOD, config);
    world.call(CALLER, caller_config(CallerCredentials::Shared(shared(7))));
    world.run_for(Span::from_secs(10));
    assert_eq!(
        world.failure(0),
        Some(CallError::Parameters { address: to })
    );
    assert_eq!(
        world.listener.connections(),
        0,
        "the half-open one has timed out"
    );
    assert_eq!(world.listener.statistics().given_up, 1);
}

/// A caller without valid credentials learns only that there is a listener.
#[test]
fn every_caller_that_proves_nothing_gets_the_same_refusal() {
    let (caller, listener) = static_keys();
    let stranger = StaticKey::new([3; 32]);
    let mut callers = fitting().map(|(_, caller)| caller).to_vec();
    callers.push(CallerCredentials::Shared(shared(8)));
    callers.push(CallerCredentials::Passphrase(passphrase(8)));
    callers.push(CallerCredentials::Static {
        own: caller,
        listener: stranger.public(),
    });
    callers.push(CallerCredentials::Static {
        own: stranger,
        listener: listener.public(),
    });
    let mut refusals = BTreeSet::new();
    for (listener, _) in fitting() {
        for caller in &callers {
            let mut world = World::new(1, Path::GOOD, listener_config(listener.clone()));
            world.call(CALLER, caller_config(caller.clone()));
            world.run_for(Span::from_millis(200));
            if world.listener.connections() == 0 {
                let refusal = world
                    .sent(ANSWER)
                    .last()
                    .expect("it was sent")
                    .bytes
                    .clone();
                refusals.insert(refusal);
            }
        }
    }
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    let refusal = refusals.first().expect("there is one");
    let id = World::with_shared_secret(1, Path::GOOD).callers[0].1.id();
    let expected = [&[0x30, 0, 0, 0, 2][..], &id.get().to_be_bytes(), &[0, 1]].concat();
    assert_eq!(*refusal, expected);
}

#[test]
fn another_version_is_reported_and_a_forged_refusal_is_survived() {
    // The listener's reply to an Initial of a future version.
    let mut world = World::with_shared_secret(1, Path::GOOD);
    world.drain();
    let mut future = world.sent(INITIAL)[0].bytes.clone();
    future[4] = 3;
    world.inject(address("203.0.113.9:1"), address(LISTENER), future);
    world.run_for(Span::from_millis(20));
    world.drain();
    let id = world.callers[0].1.id().get().to_be_bytes();
    let expected = [&[0x50][..], &id, &[0, 0, 0, 2]].concat();
    assert_eq!(world.sent(5)[0].bytes, expected);
    assert_eq!(world.sent(5)[0].to, address("203.0.113.9:1"));

    // An attacker on the path sends other versions or a refusal to a caller.
    let other_version = [&[0x50][..], &id, &[0, 0, 0, 1, 0, 0, 0, 9]].concat();
    let refusal = [&[0x30, 0, 0, 0, 2][..], &id, &[0, 1]].concat();
    for made_up in [&other_version, &refusal] {
        let mut world = World::with_shared_secret(1, Path::GOOD);
        world.inject(address(LISTENER), address(CALLER), made_up.clone());
        world.run_for(Span::from_secs(5));
        assert_eq!(world.failure(0), None);
        exchange(&mut world);
    }

    // Refusals that are forged for less than three seconds exclude nobody, however late the
    // listener answers within the time-out.
    for made_up in [&other_version, &refusal] {
        let mut world = World::with_shared_secret(1, Path::GOOD);
        world.dead.insert(address(LISTENER));
        for _ in 0..119 {
            world.inject(address(LISTENER), address(CALLER), made_up.clone());
            world.run_for(Span::from_millis(25));
        }
        world.run_for(Span::from_millis(1_500));
        assert_eq!(world.failure(0), None);
        world.dead.clear();
        world.run_for(Span::from_millis(400));
        exchange(&mut world);
    }

    // If the listener never sends another reply, the caller reports the reason at the time-out.
    let mut world = World::with_shared_secret(1, Path::GOOD);
    world.inject(address(LISTENER), address(CALLER), other_version);
    world.run_for(Span::from_millis(20));
    world.dead.insert(address(LISTENER));
    world.run_for(Span::from_millis(9_975));
    assert_eq!(world.failure(0), None);
    world.run_for(Span::from_millis(10));
    let error = world.failure(0).unwrap();
    assert_eq!(
        error,
        CallError::Version {
            address: address(LISTENER),
            theirs: 9
        }
    );
}

/// Delivers a datagram of the listener to one of the callers.
fn inject_packet(world: &mut World, bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    let now = world.now;
    let caller = &mut world.callers[0].1;
    caller.handle_datagram(now, address(LISTENER), Ecn::NotCapable, &mut bytes);
}

/// In `world`, the packets of a handshake are lost. A copy with one changed byte arrives instead,
/// and then the genuine packet.
#[test]
fn a_changed_handshake_opens_no_other_connection() {
    for (listener, caller) in fitting().into_iter().take(3) {
        let start = || {
            let mut world = World::new(1, Path::GOOD, listener_config(listener.clone()));
            world.call(CALLER, caller_config(caller.clone()));
            world
        };
        let mut honest = start();
        honest.run_for(Span::from_secs(1));
        let initial = honest.sent(INITIAL)[1].bytes.clone();
        let confirm = honest.sent(CONFIRM)[0].bytes.clone();
        // The Initial with the cookie, and the Confirm, to the listener.
        for (packet, sent_at) in [(&initial, 40), (&confirm, 80)] {
            let end = packet.iter().rposition(|&byte| byte != 0).unwrap() + 1;
            for at in (0..end).chain([packet.len() - 1]) {
                let mut world = start();
                let mut changed = packet.clone();
                changed[at] ^= 1;
                world.run_for(Span::from_millis(sent_at - 1));
                world.dead.insert(address(CALLER));
                world.run_for(Span::from_millis(2));
                world.dead.clear();
                world.inject(address(CALLER), address(LISTENER), changed);
                world.dead.insert(address(CALLER));
                world.run_for(Span::from_millis(500));
                assert_eq!(world.listener.connections(), 0, "byte {at}");
            }
        }
        // The Answer and the Accept go to the caller: a changed copy must not prevent the genuine
        // one.
        for at in 0..honest.sent(ANSWER)[0].bytes.len() {
            let mut world = start();
            world.run_for(Span::from_millis(79));
            let mut changed = world.sent(ANSWER)[0].bytes.clone();
            changed[at] ^= 1;
            inject_packet(&mut world, &changed);
            world.run_for(Span::from_secs(2));
            assert_eq!(world.failure(0), None, "byte {at}");
            exchange(&mut world);
        }
        for at in 0..honest.sent(ACCEPT)[0].bytes.len() {
            let mut world = start();
            world.run_for(Span::from_millis(119));
            let genuine = world.sent(ACCEPT)[0].bytes.clone();
            let mut changed = genuine.clone();
            changed[at] ^= 1;
            inject_packet(&mut world, &changed);
            assert!(world.callers[0].1.session().is_none(), "byte {at}");
            inject_packet(&mut world, &genuine);
            assert!(world.callers[0].1.session().is_some(), "byte {at}");
        }
    }
}

/// An attacker that sees an Initial can send useless Answers before the listener's arrives.
#[test]
fn forged_answers_do_not_exclude_the_genuine_one() {
    for (listener, caller) in fitting() {
        let is_protected = !matches!(caller, CallerCredentials::Insecure);
        let mut world = World::new(1, Path::GOOD, listener_config(listener));
        world.call(CALLER, caller_config(caller));
        world.run_for(Span::from_millis(61));
        let id = world.callers[0].1.id().get().to_be_bytes();
        for made_up in 1..=3_u8 {
            // An Answer to another caller has a share that is an element of the group.
            let mut other = World::new(
                made_up.into(),
                Path::GOOD,
                listener_config(ListenerCredentials::Passphrase(passphrase(made_up))),
            );
            let credentials = CallerCredentials::Passphrase(passphrase(made_up));
            other.call(CALLER, caller_config(credentials));
            other.run_for(Span::from_millis(79));
            let mut answer = other.sent(ANSWER)[0].bytes.clone();
            answer[5..13].copy_from_slice(&id);
            inject_packet(&mut world, &answer);
        }
        world.run_for(Span::from_secs(2));
        if is_protected {
            assert_eq!(world.failure(0), None);
            exchange(&mut world);
        }
    }
}

/// Each forged share tests a guess of the passphrase, so the caller tests 16 in a call at once and
/// 64 a second. A forged ticket tests none.
#[test]
fn a_caller_tests_a_limited_number_of_shares() {
    for forges_tickets in [true, false] {
        let listener = ListenerCredentials::Passphrase(passphrase(7));
        let mut world = World::new(1, Path::GOOD, listener_config(listener));
        let caller = CallerCredentials::Passphrase(passphrase(7));
        world.call(CALLER, caller_config(caller));
        world.run_for(Span::from_millis(79));
        let genuine = world.sent(ANSWER)[0].bytes.clone();
        world.run_for(Span::from_millis(10));
        world.dead.insert(address(LISTENER));
        let start = world.sent(CONFIRM).len();
        for made_up in 0..2_000_u64 {
            let mut answer = genuine.clone();
            if forges_tickets {
                answer[20..28].copy_from_slice(&made_up.to_be_bytes());
            } else {
                let message = 14 + usize::from(answer[13]);
                let mut bytes = [7; 64];
                bytes[..8].copy_from_slice(&made_up.to_be_bytes());
                let share = curve25519_dalek::RistrettoPoint::from_uniform_bytes(&bytes);
                answer[message..message + 32].copy_from_slice(share.compress().as_bytes());
            }
            inject_packet(&mut world, &answer);
            world.drain();
        }
        let prompt = world.sent(CONFIRM).len() - start;
        // The genuine one was tested first. Three wait.
        let expected = if forges_tickets { 2_000 - 3 } else { 15 };
        assert_eq!(prompt, expected);
        world.run_for(Span::from_secs(2));
        let sent = world.sent(CONFIRM);
        let confirms: BTreeSet<_> = sent[start..].iter().map(|sent| &sent.bytes).collect();
        let more = confirms.len() - prompt;
        let expected = if forges_tickets { 0..=3 } else { 120..=131 };
        assert!(expected.contains(&more), "{more}");
    }
}

/// A ticket is valid for 8 to 16 s. A caller that is not admitted by then begins again.
#[test]
fn a_caller_that_waits_for_room_outlives_its_ticket() {
    let mut config = listener_config(ListenerCredentials::Passphrase(passphrase(7)));
    config.max_connections = 1;
    let mut world = World::new(1, Path::GOOD, config);
    let patient = CallerConfig {
        timeout: Span::from_secs(60),
        ..caller_config(CallerCredentials::Passphrase(passphrase(7)))
    };
    world.call("198.51.100.8:1", patient.clone());
    world.run_for(Span::from_secs(1));
    world.call(CALLER, patient);
    world.run_for(Span::from_secs(40));
    assert!(world.callers[1].1.session().is_none());
    assert!(matches!(
        world.listener_events.last(),
        Some(ListenerEvent::Refused {
            why: RefusedCaller::Busy,
            ..
        })
    ));
    world.caller_core(0).closing = true;
    world.listener_core().closing = true;
    world.run_for(Span::from_secs(10));
    assert_eq!(world.failure(1), None);
    assert!(world.callers[1].1.session().is_some());
}

#[test]
fn a_closed_core_ends_the_connection() {
    let mut world = World::with_shared_secret(1, Path::GOOD);
    world.run_for(Span::from_secs(1));
    world.listener_core().closing = true;
    world.drain();
    assert_eq!(world.listener.connections(), 0);
    assert!(matches!(
        world.listener_events.last(),
        Some(ListenerEvent::Session(_, Event::Closed(Closed::ByProtocol)))
    ));
    world.caller_core(0).closing = true;
    world.drain();
    assert!(world.callers[0].1.is_over());
}
