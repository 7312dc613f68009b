//! An attacker on the path that injects packets.

use comity::session::{
    Allow, CallError, CallerConfig, CallerCredentials, CallerEvent, Closed, ConnectionId, Ecn,
    Event, Listener, ListenerConfig, ListenerCredentials, Randomness, StaticKey,
};
use comity_units::{Seed, Span};

use super::network::{
    ANSWER, CALLER, Flight, LISTENER, Path, RETRY, World, address, caller_config, listener_config,
    opener, passphrase, shared,
};

/// Another listener has the same passphrase. It does not know the connection, and its Reset does
/// not end it.
#[test]
fn a_reset_of_another_listener_with_the_same_passphrase_ends_nothing() {
    let config = listener_config(ListenerCredentials::Passphrase(passphrase(7)));
    let others = [
        (None, false),
        (Some(b"another listener".to_vec()), false),
        (config.instance.clone(), true),
    ];
    for (instance, is_successor) in others {
        let mut world = World::new(1, Path::GOOD, config.clone());
        let credentials = CallerCredentials::Passphrase(passphrase(7));
        world.call(CALLER, caller_config(credentials));
        world.run_for(Span::from_secs(1));
        world.caller_core(0).send(b"seen on the way");
        world.drain();
        let Flight {
            bytes: mut seen, ..
        } = world.log.last().expect("it was just sent").clone();
        let config = ListenerConfig {
            instance,
            ..config.clone()
        };
        let randomness = Randomness::seeded(Seed::new(4242));
        let mut other = Listener::new(world.now, config, opener(), randomness).expect("valid");
        other.handle_datagram(world.now, address(CALLER), Ecn::NotCapable, &mut seen);
        let mut reset = Vec::new();
        other.poll_reply(&mut reset).expect("a Reset");
        world.inject(address(LISTENER), address(CALLER), reset);
        world.run_for(Span::from_millis(20));
        let closed = CallerEvent::Session(Event::Closed(Closed::Reset));
        let is_over = world.caller_events.last() == Some(&(0, closed));
        assert_eq!(is_over, is_successor);
    }
}

// -------------------------------------------------------------------- the caller

/// The packets that the attacker forges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forged {
    /// A Retry with another cookie each time.
    Retry,
    /// This number of Retries again and again.
    SameRetry(u16),
    /// An Answer with a share that is an element of the group.
    Answer,
    /// A genuine Answer with another ticket.
    Ticket,
    /// A genuine ticket with another share.
    Share,
    /// A refusal.
    Refusal,
    /// A list of versions.
    Versions,
    /// A message 4.
    Accept,
}

const ALL: [Forged; 10] = [
    Forged::Retry,
    Forged::SameRetry(2),
    Forged::SameRetry(5),
    Forged::SameRetry(8),
    Forged::Answer,
    Forged::Ticket,
    Forged::Share,
    Forged::Refusal,
    Forged::Versions,
    Forged::Accept,
];

/// A CPace share whose secret is unknown.
fn share(at: u64) -> [u8; 32] {
    let mut bytes = [7; 64];
    bytes[..8].copy_from_slice(&at.to_be_bytes());
    let point = curve25519_dalek::RistrettoPoint::from_uniform_bytes(&bytes);
    point.compress().to_bytes()
}

/// The `at`th packet of this kind for the caller with the identifier `id`; `None` before there is a
/// packet to change.
fn forge(kind: Forged, at: u64, id: ConnectionId, world: &World) -> Option<Vec<u8>> {
    let id = id.get().to_be_bytes();
    let versioned = |first: u8| [&[first, 0, 0, 0, 2][..], &id].concat();
    let random: Vec<u8> = (0..36).map(|byte: u8| byte ^ (at % 251) as u8).collect();
    let genuine = || {
        let sent = world.sent(ANSWER);
        let own = sent
            .iter()
            .rev()
            .find(|sent| sent.bytes[5..13] == id && sent.bytes[13] > 0);
        own.map(|sent| sent.bytes.clone())
    };
    let numbered = [&at.to_be_bytes()[..], &random].concat();
    Some(match kind {
        Forged::Retry => [versioned(0x20), vec![44], numbered].concat(),
        Forged::SameRetry(count) => {
            let cookie = (at % u64::from(count)) as u16;
            [versioned(0x20), vec![2], cookie.to_be_bytes().to_vec()].concat()
        }
        Forged::Answer => [
            &versioned(0x30)[..],
            &[8],
            &at.to_be_bytes(),
            &share(at),
            &[2],
        ]
        .concat(),
        Forged::Ticket => {
            let mut answer = genuine()?;
            answer[14..22].copy_from_slice(&at.to_be_bytes());
            answer
        }
        Forged::Share => {
            let mut answer = genuine()?;
            let message = 14 + usize::from(answer[13]);
            answer
                .get_mut(message..message + 32)?
                .copy_from_slice(&share(at));
            answer
        }
        Forged::Refusal => [versioned(0x30), vec![0, 1]].concat(),
        Forged::Versions => [&[0x50][..], &id, &[0, 0, 0, 9]].concat(),
        Forged::Accept => [&[0x70][..], &id, &numbered, &numbered].concat(),
    })
}

fn credentials() -> [(ListenerCredentials, CallerCredentials); 3] {
    let own = StaticKey::new([2; 32]);
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
                own: own.clone(),
                allow: Allow::Anyone,
            },
            CallerCredentials::Static {
                own: StaticKey::new([1; 32]),
                listener: own.public(),
            },
        ),
    ]
}

/// Calls through an attacker that injects packets, with the default time limit of 3 s: `per_second`
/// packets a second, of the kinds in turn. With `behind`, one packet of each kind follows each
/// packet of the listener.
fn call_through(
    (listener, caller): (ListenerCredentials, CallerCredentials),
    delay_ms: u64,
    kinds: &[Forged],
    (per_second, behind): (u64, bool),
) -> World {
    let path = Path {
        delay: Span::from_millis(delay_ms),
        ..Path::GOOD
    };
    let mut world = World::new(1, path, listener_config(listener));
    let config = CallerConfig {
        timeout: Span::from_secs(3),
        ..caller_config(caller)
    };
    world.call(CALLER, config);
    let id = world.callers[0].1.id();
    let (mut at, mut seen, mut owed) = (0_u64, 0, 0);
    for _ in 0..3_000 {
        world.run_for(Span::from_millis(1));
        world.drain();
        owed += per_second;
        while owed >= 1_000 {
            owed -= 1_000;
            at += 1;
            let kind = kinds[(at % kinds.len() as u64) as usize];
            if let Some(mut bytes) = forge(kind, at, id, &world) {
                let (now, caller) = (world.now, &mut world.callers[0].1);
                caller.handle_datagram(now, address(LISTENER), Ecn::NotCapable, &mut bytes);
                world.drain();
            }
        }
        let replies = { world.log[seen..].iter() }
            .filter(|sent| behind && sent.from == address(LISTENER))
            .count();
        for _ in 0..replies * kinds.len() {
            at += 1;
            let kind = kinds[(at % kinds.len() as u64) as usize];
            if let Some(bytes) = forge(kind, at, id, &world) {
                world.inject(address(LISTENER), address(CALLER), bytes);
            }
        }
        seen = world.log.len();
        if world.callers[0].1.session().is_some() || world.callers[0].1.is_over() {
            break;
        }
    }
    world
}

fn is_in(world: &mut World) -> bool {
    if world.callers[0].1.session().is_none() {
        return false;
    }
    world.caller_core(0).send(b"to the listener");
    world.run_for(Span::from_secs(1));
    let received: Vec<_> = { world.listener.ids().collect::<Vec<_>>() }
        .into_iter()
        .filter_map(|id| Some(world.listener.protocol_mut(id)?.received.clone()))
        .collect();
    received.contains(&vec![b"to the listener".to_vec()])
}

/// One forged packet after each packet of the listener does not exclude a caller, even if a
/// handshake takes most of the time limit.
#[test]
fn a_forged_packet_after_each_real_one_excludes_nobody() {
    for credentials in credentials() {
        for delay_ms in [20, 300] {
            for kind in ALL {
                let mut world = call_through(credentials.clone(), delay_ms, &[kind], (0, true));
                let pattern = credentials.1.pattern();
                let failed = world.failure(0);
                assert!(
                    is_in(&mut world),
                    "{kind:?} {pattern:?} {delay_ms}: {failed:?}"
                );
            }
        }
    }
}

/// Whether a flood of this kind uses up the caller's guesses: with a passphrase, each share for a
/// genuine ticket is a wrong guess in the caller's name.
fn uses_up_guesses(kind: Forged, caller: &CallerCredentials) -> bool {
    kind == Forged::Share && matches!(caller, CallerCredentials::Passphrase(_))
}

/// A megabit per second of forged packets of one kind, which arrive before the listener's packets:
/// 1,600 packets of some 78 bytes with their headers.
#[test]
fn a_flood_of_forged_packets_excludes_nobody() {
    for credentials in credentials() {
        for delay_ms in [20, 100] {
            for kind in ALL {
                if uses_up_guesses(kind, &credentials.1) {
                    continue;
                }
                let mut world =
                    call_through(credentials.clone(), delay_ms, &[kind], (1_600, false));
                let pattern = credentials.1.pattern();
                let failed = world.failure(0);
                assert!(
                    is_in(&mut world),
                    "{kind:?} {pattern:?} {delay_ms}: {failed:?}"
                );
                // The caller answers each forged ticket, and little else.
                let of_caller = { world.log.iter() }.filter(|sent| sent.from == address(CALLER));
                assert!(of_caller.count() <= 4_000, "{kind:?}");
            }
        }
    }
}

/// A megabit per second of Retries with few cookies, each as often as that of the listener or more
/// often: 2,800 packets of 44 bytes with their headers.
#[test]
fn cookies_that_come_again_and_again_exclude_nobody() {
    for credentials in credentials() {
        for delay_ms in [20, 100] {
            for (count, per_second) in [
                (4, 100),
                (4, 400),
                (4, 1_600),
                (8, 1_600),
                (16, 2_800),
                (40, 2_800),
                (60, 2_800),
                (100, 2_800),
                (200, 2_800),
                (400, 2_800),
            ] {
                let kind = Forged::SameRetry(count);
                let rate = (per_second, false);
                let mut world = call_through(credentials.clone(), delay_ms, &[kind], rate);
                let pattern = credentials.1.pattern();
                let failed = world.failure(0);
                assert!(
                    is_in(&mut world),
                    "{count} at {per_second}/s, {pattern:?} {delay_ms}: {failed:?}"
                );
            }
        }
    }
}

/// All kinds at once, in a flood and behind each real packet.
#[test]
fn forged_packets_of_all_kinds_exclude_nobody() {
    for credentials in credentials() {
        // With a passphrase, each Answer could belong to several exchanges: on a long path, or with
        // more cookies, forged cookies and shares together cause more guesses than the caller tests
        // in time.
        let is_passphrase = matches!(credentials.1, CallerCredentials::Passphrase(_));
        let has_many = |kind: &Forged| matches!(kind, Forged::SameRetry(3..));
        let is_good = |kind: &Forged| {
            !(uses_up_guesses(*kind, &credentials.1) || is_passphrase && has_many(kind))
        };
        let kinds: Vec<_> = ALL.into_iter().filter(is_good).collect();
        let delays: &[u64] = if is_passphrase { &[20] } else { &[20, 100] };
        for &delay_ms in delays {
            let mut world = call_through(credentials.clone(), delay_ms, &kinds, (800, true));
            let pattern = credentials.1.pattern();
            let failed = world.failure(0);
            assert!(is_in(&mut world), "{pattern:?} {delay_ms}: {failed:?}");
        }
    }
}

/// A refusal may be forged, and the caller's error says so.
#[test]
fn a_refusal_proves_nothing() {
    let mut world = call_through(
        credentials().into_iter().next().expect("three"),
        20,
        &[Forged::Retry],
        (0, false),
    );
    assert!(is_in(&mut world));
    assert!(world.sent(RETRY).len() == 1);
    for (error, is_proven) in [
        (
            CallError::Passphrase {
                address: address(LISTENER),
            },
            false,
        ),
        (
            CallError::SharedKey {
                address: address(LISTENER),
            },
            false,
        ),
        (
            CallError::Refused {
                address: address(LISTENER),
            },
            false,
        ),
        (
            CallError::Version {
                address: address(LISTENER),
                theirs: 9,
            },
            false,
        ),
        (
            CallError::Parameters {
                address: address(LISTENER),
            },
            true,
        ),
        (
            CallError::Busy {
                address: address(LISTENER),
            },
            true,
        ),
    ] {
        assert_eq!(error.is_proven(), is_proven, "{error}");
        assert_eq!(
            error.to_string().contains("on the path"),
            !is_proven,
            "{error}"
        );
    }
}
