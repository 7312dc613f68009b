//! Bytes arrive exactly, whatever the path does.

use comity_tcp_host::{Config, End, Event, StreamError};
use comity_units::{Span, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::world::{App, Fate, World, bytes, config};

#[test]
fn a_connection_opens_carries_bytes_in_both_directions_and_closes() {
    for is_v4 in [true, false] {
        let mut world = World::new();
        let (there, back) = (bytes(1, 300_000), bytes(2, 100_000));
        let id = world.open(0, is_v4, App::sending(&there), App::sending(&back));
        world.run_for(Span::from_secs(10));
        assert!(world.events[0].contains(&Event::Connected(id)));
        let own = &world.apps[0][&id];
        assert_eq!(own.received, back);
        let (&other_id, other) = world.apps[1].first_key_value().unwrap();
        assert_eq!(other.received, there);
        assert!(own.has_finished && other.has_finished);
        for (host, id) in [(0, id), (1, other_id)] {
            assert_eq!(world.hosts[host].acknowledged(id), Ok(()));
            let now = world.now;
            world.hosts[host].release(now, id);
        }
        world.run_for(Span::from_secs(61));
        let left = world.hosts.each_ref().map(|host| host.connections());
        assert_eq!(left, [0, 0], "TIME-WAIT is over");
        for host in &world.hosts {
            let statistics = host.statistics();
            assert_eq!(statistics.dropped(), 0, "{statistics:?}");
            assert_eq!(statistics.received, statistics.accepted);
            assert_eq!(statistics.resets, 0);
        }
    }
}

#[test]
fn one_direction_may_close_long_before_the_other() {
    let mut world = World::new();
    let back = bytes(2, 50_000);
    let slow = App {
        shuts_down: false,
        ..App::sending(b"")
    };
    let id = world.open(0, true, App::sending(b"the question"), slow);
    world.run_for(Span::from_secs(5));
    let (&other, app) = world.apps[1].first_key_value().unwrap();
    assert!(app.has_finished && app.received == b"the question");
    assert!(!world.apps[0][&id].has_finished);
    let app = world.apps[1].get_mut(&other).unwrap();
    (app.to_send, app.shuts_down) = (back.clone(), true);
    world.run_for(Span::from_secs(5));
    assert_eq!(world.apps[0][&id].received, back);
    assert!(world.apps[0][&id].has_finished);
    assert_eq!(
        world.hosts[0].write(id, b"x"),
        Err(StreamError::ShutDown),
        "it closed its side"
    );
}

#[test]
fn a_reset_reaches_the_peer_and_ends_both() {
    let mut world = World::new();
    let rude = App {
        aborts_at: Some(10_000),
        ..App::sending(b"")
    };
    let own = App {
        shuts_down: false,
        ..App::sending(&bytes(1, 500_000))
    };
    let id = world.open(
        0,
        true,
        own,
        App {
            shuts_down: false,
            ..rude
        },
    );
    world.run_for(Span::from_secs(5));
    assert_eq!(world.hosts[0].end(id), Some(End::Reset));
    assert_eq!(
        world.apps[0][&id].error,
        Some(StreamError::Ended(End::Reset))
    );
    let (&other, app) = world.apps[1].first_key_value().unwrap();
    assert_eq!(world.hosts[1].end(other), Some(End::Aborted));
    assert!(app.received.len() >= 10_000);
    assert!(world.events[0].contains(&Event::Ended(id)));
    let resets = world.hosts[1].statistics().resets;
    assert!((1..50).contains(&resets), "{resets}");
}

#[test]
fn a_slow_reader_holds_the_sender_back() {
    let mut world = World::new();
    let data = bytes(1, 4_000_000);
    let silent = App {
        read: 0,
        ..App::sending(b"")
    };
    let id = world.open(0, true, App::sending(&data), silent);
    world.run_for(Span::from_secs(30));
    let connection = world.hosts[0].connection(id).unwrap();
    let acknowledged = connection.acknowledged();
    assert!(
        (1 << 20..1_100_000).contains(&acknowledged),
        "{acknowledged}"
    );
    let (_, app) = world.apps[1].first_key_value().unwrap();
    assert!(app.received.is_empty());
    let id = *world.apps[1].first_key_value().unwrap().0;
    world.apps[1].get_mut(&id).unwrap().read = 1_000;
    world.run_for(Span::from_secs(120));
    assert_eq!(world.apps[1][&id].received, data);
}

/// One connection of a random world.
#[derive(Clone, Debug)]
struct Plan {
    opener: usize,
    is_v4: bool,
    there: usize,
    back: usize,
    reads: (usize, usize),
    aborts_at: Option<usize>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let length = prop_oneof![0..10_usize, 0..5_000_usize, 0..200_000_usize];
    let read = prop_oneof![1..20_usize, 1..100_000_usize];
    (
        0..2_usize,
        any::<bool>(),
        (length.clone(), length),
        (read.clone(), read),
        proptest::option::weighted(0.2, 0..50_000_usize),
    )
        .prop_map(|(opener, is_v4, (there, back), reads, aborts_at)| Plan {
            opener,
            is_v4,
            there,
            back,
            reads,
            aborts_at,
        })
}

fn fate() -> impl Strategy<Value = Fate> {
    let more = (0..200_u64).prop_map(Span::from_millis);
    prop_oneof![
        6 => Just(Fate::Arrives),
        1 => Just(Fate::Lost),
        1 => more.clone().prop_map(Fate::Late),
        1 => more.prop_map(Fate::Twice),
        1 => (0..1_500_usize).prop_map(Fate::Damaged),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Several connections through loss, reordering, duplication and damage: every stream arrives
    /// exactly, up to a reset; afterwards nothing is left, and every packet was counted once.
    #[test]
    fn streams_arrive_exactly(
        plans in vec(plan(), 1..6),
        forward in vec(fate(), 0..400),
        reverse in vec(fate(), 0..400),
    ) {
        // However many SYNs in a row are lost.
        let patient = |host| Config {
            connect_timeout: Span::from_secs(3_600),
            handshake_timeout: Span::from_secs(3_600),
            ..config(host)
        };
        let mut world = World::with([patient(0), patient(1)]);
        world.fates = [forward, reverse];
        let mut opened = Vec::new();
        for (number, plan) in plans.iter().enumerate() {
            let seed = number as u8 * 2;
            let own = App {
                read: plan.reads.0,
                ..App::sending(&bytes(seed, plan.there))
            };
            let other = App {
                read: plan.reads.1,
                aborts_at: plan.aborts_at,
                ..App::sending(&bytes(seed + 1, plan.back))
            };
            let id = world.open(plan.opener, plan.is_v4, own, other);
            opened.push((id, world.hosts[plan.opener].addresses(id).unwrap().0));
        }
        world.run_for(Span::from_secs(900));
        for (number, (plan, (id, local))) in plans.iter().zip(&opened).enumerate() {
            let seed = number as u8 * 2;
            let (there, back) = (bytes(seed, plan.there), bytes(seed + 1, plan.back));
            let own = &world.apps[plan.opener][id];
            let peers = &world.apps[1 - plan.opener];
            let other = peers.iter().find(|(id, _)| {
                let addresses = world.hosts[1 - plan.opener].addresses(**id);
                addresses.is_none_or(|(_, remote)| remote == *local)
            });
            let (_, other) = other.expect("the peer accepted it");
            if plan.aborts_at.is_some_and(|at| at <= plan.there) {
                prop_assert!(back.starts_with(&own.received));
                prop_assert!(there.starts_with(&other.received));
            } else {
                prop_assert!(own.received == back, "{} of {}", own.received.len(), back.len());
                prop_assert!(other.received == there);
                prop_assert!(own.has_finished && other.has_finished);
                prop_assert_eq!(own.error, None);
                prop_assert_eq!(other.error, None);
            }
        }
        for host in 0..2 {
            let ids: Vec<_> = world.apps[host].keys().copied().collect();
            for id in ids {
                let now = world.now;
                world.hosts[host].release(now, id);
            }
        }
        world.apps = Default::default();
        world.run(Time::MAX.saturating_sub(Span::from_secs(1)));
        prop_assert_eq!(world.in_network(), 0);
        for host in &world.hosts {
            prop_assert_eq!(host.connections(), 0);
            let statistics = host.statistics();
            let counted = statistics.accepted + statistics.icmp + statistics.dropped();
            prop_assert_eq!(statistics.received, counted);
        }
    }
}
