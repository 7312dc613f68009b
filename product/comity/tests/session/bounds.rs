//! The queues of a listener do not grow with the number of strangers.

use std::net::SocketAddr;

use comity::session::{
    CallerConfig, CallerCredentials, Closed, ConnectionId, Ecn, Event, ListenerCredentials,
    ListenerEvent, Pattern,
};
use comity_transport::wire::header::{self, Initial, Packet};
use comity_units::Span;

use super::network::{
    CONFIRM, DATA, LISTENER, Path, World, address, caller_config, listener_config, passphrase,
    shared,
};

/// One stranger in each /24.
fn stranger(at: u32) -> SocketAddr {
    let [_, _, high, low] = at.to_be_bytes();
    ([10, high, low, 1], 9).into()
}

fn initial(at: u32, cookie: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let message: &[u8] = if cookie.is_empty() { &[] } else { &[7; 60] };
    Initial {
        source: ConnectionId::new(u64::from(at) + 1),
        pattern: Pattern::NNpsk0,
        cookie,
        message,
    }
    .encode(&mut out)
    .expect("within the format");
    out
}

fn besieged() -> World {
    let config = listener_config(ListenerCredentials::Shared(shared(7)));
    World::new(1, Path::GOOD, config)
}

impl World {
    fn take(&mut self, at: u32, mut packet: Vec<u8>) {
        let (now, from) = (self.now, stranger(at));
        let listener = &mut self.listener;
        listener.handle_datagram(now, from, Ecn::NotCapable, &mut packet);
    }

    /// The cookie in the next reply.
    fn cookie(&mut self) -> Vec<u8> {
        let mut reply = Vec::new();
        self.listener.poll_reply(&mut reply).expect("a Retry");
        match header::decode(&reply) {
            Ok(Packet::Retry(retry)) => retry.cookie.to_vec(),
            other => panic!("{other:?}"),
        }
    }
}

/// If the host's socket is blocked, the listener keeps 256 replies and counts the others.
#[test]
fn replies_wait_up_to_a_bound() {
    let mut world = besieged();
    for at in 0..10_000 {
        world.take(at, initial(at, &[]));
    }
    let mut out = Vec::new();
    let waiting = std::iter::from_fn(|| world.listener.poll_reply(&mut out)).count();
    assert_eq!(waiting, 256);
    let statistics = world.listener.statistics();
    assert_eq!(statistics.retries, 256);
    assert_eq!(statistics.replies_dropped, 10_000 - 256);
    // After they have left, there is room again.
    world.take(1, initial(1, &[]));
    assert!(!world.cookie().is_empty());
}

/// If the host does not poll events, the listener keeps 4,096 events of refused callers.
#[test]
fn events_of_refused_callers_wait_up_to_a_bound() {
    let mut world = besieged();
    for at in 0..20_000 {
        world.take(at, initial(at, &[]));
        let cookie = world.cookie();
        world.take(at, initial(at, &cookie));
        world.listener.poll_reply(&mut Vec::new());
        world.now += Span::from_micros(500);
    }
    assert!(world.listener.statistics().refused > 15_000);
    let events: Vec<_> = std::iter::from_fn(|| world.listener.poll_event()).collect();
    assert_eq!(events.len(), 4_096);
    // The first events are kept, each with its caller.
    for (at, event) in (0..).zip(&events) {
        assert!(
            matches!(event, ListenerEvent::Refused { from, .. } if *from == stranger(at)),
            "{at}: {event:?}"
        );
    }
}

/// The common tokens grant 300 key exchanges at once, and each could test a guess. The rate of
/// tested guesses is that of the network, or of the address.
#[test]
fn simultaneous_guesses_are_limited_too() {
    for (addresses, at_once, in_all) in [(250, 64..=80, 250..=500), (1, 4..=5, 6..=8)] {
        let config = listener_config(ListenerCredentials::Passphrase(passphrase(7)));
        let mut world = World::new(1, Path::GOOD, config);
        for guess in 0..300_u16 {
            let credentials = CallerCredentials::Passphrase(passphrase(8 + (guess % 200) as u8));
            let from = format!("203.0.113.{}:{}", guess % addresses, 1 + guess);
            world.call(&from, caller_config(credentials));
        }
        world.run_for(Span::from_millis(200));
        assert_eq!(world.listener.statistics().answers, 300);
        let refused = world.listener.statistics().refused;
        assert!(at_once.contains(&refused), "{addresses}: {refused}");
        world.run_for(Span::from_millis(9_800));
        let statistics = world.listener.statistics();
        assert!(
            in_all.contains(&statistics.refused),
            "{addresses}: {statistics:?}"
        );
        // Each of the others waits, and its Confirms have no effect.
        assert!(statistics.deferred > 300 - refused, "{statistics:?}");
        // Other callers are not affected, in the same network or in another.
        for from in ["203.0.113.251:1", "198.51.100.8:1"] {
            let credentials = CallerCredentials::Passphrase(passphrase(7));
            let honest = world.call(from, caller_config(credentials));
            world.run_for(Span::from_millis(120));
            assert!(world.callers[honest].1.session().is_some(), "{from}");
        }
    }
}

/// If there is no room for a caller, connections of its host get a challenge: 64 each time, and
/// none of another host.
#[test]
fn a_call_without_room_challenges_a_limited_number_of_connections() {
    let mut config = listener_config(ListenerCredentials::Shared(shared(7)));
    config.max_served = 110;
    let mut world = World::new(1, Path::GOOD, config);
    let call = |world: &mut World, host: &str, port: u16| {
        let credentials = CallerCredentials::Shared(shared(7));
        world.call(&format!("{host}:{port}"), caller_config(credentials))
    };
    for port in 1..=10 {
        call(&mut world, "203.0.113.5", port);
        world.run_for(Span::from_millis(125));
    }
    for port in 1..=100 {
        call(&mut world, "198.51.100.7", port);
        world.run_for(Span::from_millis(125));
    }
    world.run_for(Span::from_secs(1));
    assert_eq!(world.listener.connections(), 110);
    let (before, confirms) = (world.log.len(), world.sent(CONFIRM).len());
    let late = call(&mut world, "198.51.100.7", 200);
    world.run_for(Span::from_secs(1));
    let challenged: Vec<_> = { world.log[before..].iter() }
        .filter(|flight| flight.from == address(LISTENER) && flight.bytes[0] >> 4 == DATA)
        .map(|flight| flight.to)
        .collect();
    let tries = world.sent(CONFIRM).len() - confirms;
    assert!((2..=4).contains(&tries), "{tries}");
    assert!(
        (64..=64 * tries).contains(&challenged.len()),
        "{}",
        challenged.len()
    );
    let host = address("198.51.100.7:1").ip();
    assert!(
        challenged.iter().all(|to| to.ip() == host),
        "{challenged:?}"
    );
    assert!(world.callers[late].1.session().is_none());
}

/// A caller has all connections of a listener. Others still get in, until nobody has two more than
/// another one would have. A caller with other parameters takes no room.
#[test]
fn a_caller_with_all_connections_makes_room_for_others() {
    let mut config = listener_config(ListenerCredentials::Shared(shared(7)));
    config.max_served = 8;
    let mut world = World::new(1, Path::GOOD, config);
    let call = |world: &mut World, from: String, parameters: &[u8]| {
        let config = CallerConfig {
            timeout: Span::from_secs(2),
            parameters: parameters.to_vec(),
            ..caller_config(CallerCredentials::Shared(shared(7)))
        };
        let call = world.call(&from, config);
        world.run_for(Span::from_millis(2_500));
        world.callers[call].1.session().is_some() && world.failure(call).is_none()
    };
    for port in 1..=8_u8 {
        // Other parameters do not make it another caller.
        assert!(call(&mut world, format!("203.0.113.5:{port}"), &[port]));
    }
    assert!(!call(&mut world, "203.0.113.5:9".into(), b"more"));
    assert!(!call(&mut world, "198.51.100.1:1".into(), b"unacceptable"));
    let displaced = |world: &World| {
        let displaced = Event::Closed(Closed::Displaced);
        let is_displaced = |event: &&ListenerEvent| matches!(event, ListenerEvent::Session(_, event) if *event == displaced);
        world.listener_events.iter().filter(is_displaced).count()
    };
    assert_eq!(displaced(&world), 0);
    for (host, expected) in [
        (1, true),
        (2, true),
        (3, true),
        (4, true),
        (5, true),
        (6, true),
    ] {
        let is_in = call(&mut world, format!("198.51.100.{host}:1"), b"caller's");
        assert_eq!(is_in, expected, "{host}");
        assert_eq!((displaced(&world), world.listener.connections()), (host, 8));
    }
    // Two are left, and then one: as many as each other caller has.
    assert!(call(&mut world, "198.51.100.7:1".into(), b"caller's"));
    assert!(!call(&mut world, "198.51.100.8:1".into(), b"caller's"));
    assert!(!call(&mut world, "203.0.113.5:10".into(), b"caller's"));
    assert_eq!((displaced(&world), world.listener.connections()), (7, 8));
}
