//! Handshakes, and clear reasons when they fail.

use std::collections::BTreeSet;

use crate::session::network::{
    CALLER, LISTENER, Path, World, address, caller_config, listener_config, shared,
};
use comity::session::{
    Allow, CallError, CallerConfig, CallerCredentials, CallerEvent, Cipher, Closed, Event,
    ListenerCredentials, ListenerEvent, Pattern, RefusedCaller, StaticKey,
};
use comity_units::{Span, Time};

const INITIAL: u8 = 1;
const RETRY: u8 = 2;
const ANSWER: u8 = 3;

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

#[test]
fn a_shared_secret_opens_a_connection_in_two_round_trips() {
    let mut world = World::with_shared_secret(1, Path::GOOD);
    world.run_for(Span::from_millis(79));
    assert_eq!(world.caller_events, []);
    world.run_for(Span::from_millis(1));
    let established = Event::Established {
        peer_key: None,
        cipher: Some(Cipher::Aes128Gcm),
    };
    assert_eq!(
        world.caller_events,
        [(0, CallerEvent::Session(established))]
    );
    assert_eq!(world.listener_events, []);
    assert_eq!(world.listener.half_open(), 1);
    world.run_for(Span::from_millis(20));
    assert_eq!(world.listener.half_open(), 0);
    assert!(matches!(
        world.listener_events[..],
        [ListenerEvent::Session(_, event)] if event == established
    ));
    assert_eq!(world.sent(INITIAL).len(), 2);
    assert_eq!(world.sent(RETRY).len(), 1);
    assert_eq!(world.sent(ANSWER).len(), 1);
    exchange(&mut world);
    assert_eq!(world.listener_core().peer_parameters, b"caller's");
    assert_eq!(world.caller_core(0).peer_parameters, b"listener's");
    assert_eq!(world.caller_core(0).overhead, 13 + 16);
}

#[test]
fn static_keys_tell_each_end_who_the_other_is() {
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
}

#[test]
fn nothing_is_protected_when_both_ask_for_that_and_it_is_told() {
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
    assert_eq!(readable(b"caller's"), 2);
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
    let mut initials = 0;
    for seed in 0..200 {
        let mut world = World::with_shared_secret(seed, path);
        world.run_for(Span::from_secs(12));
        assert_eq!(world.failure(0), None, "seed {seed}");
        assert_eq!(world.listener.half_open(), 0, "seed {seed}");
        assert_eq!(world.listener.connections(), 1, "seed {seed}");
        initials += world.sent(INITIAL).len();
    }
    // One exchange in two fails (0.7² = 0.49 succeed): on average four Initials for two exchanges.
    assert!((600..1100).contains(&initials), "{initials}");
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
        let next = world.callers[0].1.next_timer();
        assert!(next > world.now && !next.is_never());
        world.run_until(next);
        world.drain();
    }
    let Some(ListenerEvent::Refused { from, why }) = world.listener_events.first() else {
        panic!("{:?}", world.listener_events);
    };
    assert_eq!(*from, address(CALLER));
    assert_eq!(world.listener.connections(), 0);
    (
        world.failure(0).unwrap(),
        *why,
        world.now.saturating_since(start),
    )
}

fn mismatch(
    listener: ListenerCredentials,
    caller: CallerCredentials,
) -> (CallError, RefusedCaller) {
    let mut world = World::new(1, Path::GOOD, listener_config(listener));
    world.call(CALLER, caller_config(caller));
    let (error, why, after) = fails_with(world);
    // Two round trips, and a second in which a genuine answer could still have come.
    assert_eq!(after, Span::from_millis(1080));
    (error, why)
}

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

    let (error, why) = mismatch(
        ListenerCredentials::Shared(shared(7)),
        CallerCredentials::Shared(shared(8)),
    );
    assert_eq!(error, CallError::Passphrase { address: to });
    assert_eq!(why, RefusedCaller::Unproven);

    let unknown = mismatch(with_list(&caller), by_key(&stranger, &listener));
    assert_eq!(unknown.1, RefusedCaller::UnknownKey(stranger.public()));
    let other_listener = mismatch(with_list(&caller), by_key(&caller, &stranger));
    assert_eq!(other_listener.1, RefusedCaller::Unproven);
    assert!(matches!(unknown.0, CallError::StaticKey { own, .. } if own == stranger.public()));
    assert!(matches!(other_listener.0, CallError::StaticKey { own, .. } if own == caller.public()));

    let expectations = [
        (
            ListenerCredentials::Shared(shared(7)),
            CallerCredentials::Insecure,
        ),
        (
            ListenerCredentials::Insecure,
            CallerCredentials::Shared(shared(7)),
        ),
        (with_list(&caller), CallerCredentials::Shared(shared(7))),
    ];
    for (listener, caller) in expectations {
        let (ours, theirs) = (caller.pattern(), listener.pattern());
        let (error, why) = mismatch(listener, caller);
        assert_eq!(
            error,
            CallError::Pattern {
                address: to,
                ours,
                theirs
            }
        );
        assert_eq!(why, RefusedCaller::Pattern(ours));
    }
    let error = CallError::Pattern {
        address: to,
        ours: Pattern::Insecure,
        theirs: Pattern::NNpsk0,
    };
    assert_eq!(
        error.to_string(),
        "192.0.2.1:5000: was called with no protection; expected a passphrase"
    );
}

#[test]
fn transport_parameters_that_are_not_accepted_are_told_by_either_end() {
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
    let (error, why, _) = fails_with(world);
    assert_eq!(error, CallError::Parameters { address: to });
    assert_eq!(why, RefusedCaller::Parameters);

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

/// The refusals of two callers, as an attacker sees them.
fn refusal_of(listener: ListenerCredentials, caller: CallerCredentials) -> Vec<u8> {
    let mut world = World::new(1, Path::GOOD, listener_config(listener));
    world.call(CALLER, caller_config(caller));
    world.run_for(Span::from_millis(100));
    world.sent(ANSWER)[0].bytes.clone()
}

#[test]
fn a_refusal_does_not_tell_a_wrong_key_from_an_unknown_one() {
    let (caller, listener) = static_keys();
    let stranger = StaticKey::new([3; 32]);
    let credentials = ListenerCredentials::Static {
        own: listener.clone(),
        allow: Allow::Only(BTreeSet::from([caller.public()])),
    };
    let wrong = CallerCredentials::Static {
        own: caller,
        listener: stranger.public(),
    };
    let unknown = CallerCredentials::Static {
        own: stranger,
        listener: listener.public(),
    };
    assert_eq!(
        refusal_of(credentials.clone(), wrong),
        refusal_of(credentials, unknown)
    );
}

#[test]
fn another_version_is_named_and_a_made_up_refusal_is_outlived() {
    // The listener's reply to an Initial of a future version.
    let mut world = World::with_shared_secret(1, Path::GOOD);
    world.drain();
    let mut future = world.sent(INITIAL)[0].bytes.clone();
    future[4] = 2;
    world.inject(address("203.0.113.9:1"), address(LISTENER), future);
    world.run_for(Span::from_millis(20));
    world.drain();
    let id = world.callers[0].1.id().get().to_be_bytes();
    let expected = [&[0x50][..], &id, &[0, 0, 0, 1]].concat();
    assert_eq!(world.sent(5)[0].bytes, expected);
    assert_eq!(world.sent(5)[0].to, address("203.0.113.9:1"));

    // Somebody on the path reports other versions to the caller, or refuses it.
    let other_version = [&[0x50][..], &id, &[0, 0, 0, 2, 0, 0, 0, 9]].concat();
    let refusal = [&[0x30, 0, 0, 0, 1][..], &id, &[0; 8], &[1]].concat();
    for made_up in [&other_version, &refusal] {
        let mut world = World::with_shared_secret(1, Path::GOOD);
        world.inject(address(LISTENER), address(CALLER), made_up.clone());
        world.run_for(Span::from_secs(5));
        assert_eq!(world.failure(0), None);
        exchange(&mut world);
    }

    // The same with a listener that never sends another reply.
    let mut world = World::with_shared_secret(1, Path::GOOD);
    world.inject(address(LISTENER), address(CALLER), other_version);
    world.run_for(Span::from_millis(20));
    world.dead.insert(address(LISTENER));
    world.run_for(Span::from_secs(2));
    let error = world.failure(0).unwrap();
    assert_eq!(
        error,
        CallError::Version {
            address: address(LISTENER),
            theirs: 9
        }
    );
}

#[test]
fn whatever_of_the_handshake_is_changed_on_the_way_no_other_connection_comes_about() {
    // Authenticated bytes of the Initial with the cookie: version, source, pattern, message.
    let mut honest = World::with_shared_secret(1, Path::GOOD);
    honest.run_for(Span::from_secs(1));
    let initial = honest.sent(INITIAL)[1].bytes.clone();
    let answer = honest.sent(ANSWER)[0].bytes.clone();
    let message_end = initial.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    for at in (0..message_end).chain([message_end + 5, 1199]) {
        let mut world = World::with_shared_secret(1, Path::GOOD);
        let mut changed = initial.clone();
        changed[at] ^= 1;
        // The caller's second Initial is lost, so only the changed one arrives.
        world.run_for(Span::from_millis(39));
        world.dead.insert(address(CALLER));
        world.run_for(Span::from_millis(2));
        world.dead.clear();
        world.inject(address(CALLER), address(LISTENER), changed);
        world.dead.insert(address(CALLER));
        world.run_for(Span::from_millis(500));
        assert_eq!(world.listener.connections(), 0, "byte {at} is not bound");
        assert_eq!(
            world.listener.statistics().retries,
            1 + u64::from((5..13).contains(&at) || (15..51).contains(&at))
        );
    }
    // The same for the Answer: a changed copy must not hinder the genuine one.
    for at in 0..answer.len() {
        let mut world = World::with_shared_secret(1, Path::GOOD);
        world.run_for(Span::from_millis(61));
        world.dead.insert(address(LISTENER));
        let mut changed = answer.clone();
        changed[at] ^= 1;
        let (to, caller) = &mut world.callers[0];
        assert_eq!(*to, address(CALLER));
        caller.handle_datagram(
            world.now,
            address(LISTENER),
            comity::session::Ecn::NotCapable,
            &mut changed,
        );
        // The source in the header serves refusals alone. The valid one is inside the message.
        let in_the_source = (13..21).contains(&at);
        assert_eq!(caller.session().is_some(), in_the_source, "byte {at}");
        let mut genuine = answer.clone();
        caller.handle_datagram(
            world.now,
            address(LISTENER),
            comity::session::Ecn::NotCapable,
            &mut genuine,
        );
        assert!(
            caller.session().is_some(),
            "byte {at}: the genuine answer is still taken"
        );
    }
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
