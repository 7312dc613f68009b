//! An attacker on the path repeats the packets of a peer from its own address, faster than the
//! path, and for some time forwards the packets that it gets there (RFC 9000, section 9.3.3).

use std::net::SocketAddr;

use comity::session::{Ecn, Event, ListenerEvent};
use comity_units::Span;

use super::network::{CALLER, LISTENER, Path, World, address};

const STRANGER: &str = "203.0.113.66:6666";

/// The behaviour of the attacker.
#[derive(Clone, Copy)]
struct Stranger {
    /// The delay of its packets to the listener and to the caller.
    delay: Span,
    /// For how long it forwards packets to the caller.
    hands_on_for: Span,
}

impl World {
    /// Runs for `span` with the stranger on the path, while the listener sends a message every 10
    /// ms. Returns how many.
    fn run_with(&mut self, stranger: Stranger, span: Span, caller_sends: bool) -> usize {
        let (start, mut seen, mut sent) = (self.now, self.log.len(), 0);
        let mut under_way: Vec<(comity_units::Time, SocketAddr, SocketAddr, Vec<u8>)> = Vec::new();
        while self.now < start + span {
            if self
                .now
                .saturating_since(start)
                .as_millis()
                .is_multiple_of(10)
            {
                self.listener_core().send(b"media");
                sent += 1;
                if caller_sends {
                    self.caller_core(0).send(b"feedback");
                }
            }
            self.run_for(Span::from_millis(1));
            self.drain();
            let hands_on = self.now < start + stranger.hands_on_for;
            for flight in &self.log[seen..] {
                let arrival = self.now + stranger.delay;
                let bytes = || flight.bytes.clone();
                if flight.from == address(CALLER) && flight.to == address(LISTENER) {
                    under_way.push((arrival, address(STRANGER), address(LISTENER), bytes()));
                } else if flight.to == address(STRANGER) && hands_on {
                    under_way.push((arrival, address(LISTENER), address(CALLER), bytes()));
                }
            }
            seen = self.log.len();
            let now = self.now;
            let (due, later) = under_way.into_iter().partition(|flight| flight.0 <= now);
            under_way = later;
            let due: Vec<_> = due;
            for (_, from, to, mut bytes) in due {
                match to == address(LISTENER) {
                    true => {
                        let listener = &mut self.listener;
                        listener.handle_datagram(now, from, Ecn::NotCapable, &mut bytes);
                    }
                    false => {
                        let caller = &mut self.callers[0].1;
                        caller.handle_datagram(now, from, Ecn::NotCapable, &mut bytes);
                    }
                }
            }
        }
        sent
    }

    fn to_stranger(&self) -> usize {
        let log = self.log.iter();
        log.filter(|flight| flight.to == address(STRANGER)).count()
    }
}

fn connected(path: Path) -> World {
    let mut world = World::with_shared_secret(1, path);
    world.run_for(Span::from_secs(4));
    world
}

#[test]
fn a_stranger_that_copies_packets_diverts_nothing() {
    for (delay_ms, stranger_ms) in [(20, 1), (20, 15), (60, 1), (60, 40)] {
        for caller_sends in [true, false] {
            for hands_on_ms in [0, 300, 10_000] {
                let path = Path {
                    delay: Span::from_millis(delay_ms),
                    ..Path::GOOD
                };
                let mut world = connected(path);
                let stranger = Stranger {
                    delay: Span::from_millis(stranger_ms),
                    hands_on_for: Span::from_millis(hands_on_ms),
                };
                // A silent caller sends something at least once.
                world.caller_core(0).send(b"feedback");
                let sent = world.run_with(stranger, Span::from_secs(6), caller_sends);
                world.run_for(Span::from_secs(1));
                let of = format!("{delay_ms} {stranger_ms} {caller_sends} {hands_on_ms}");
                assert_eq!(world.caller_core(0).received.len(), sent, "{of}");
                let id = world.listener.ids().next().expect("a connection");
                let session = world.listener.session(id).expect("open");
                assert_eq!(session.address(), address(CALLER), "{of}");
                let is_move = |event: &ListenerEvent| {
                    matches!(event, ListenerEvent::Session(_, Event::PathChanged { .. }))
                };
                assert!(!world.listener_events.iter().any(is_move), "{of}");
                // The attacker gets at most one challenge a second, each one padded.
                let got = world.to_stranger();
                assert!((1..=24).contains(&got), "{of}: {got}");
            }
        }
    }
}

/// With 30 % loss, the packets that show the old address to be in use may be lost too. Later ones
/// then show it.
#[test]
fn a_diverted_path_returns_to_the_peer() {
    let (mut sent, mut arrived, mut moves) = (0, 0, 0);
    for seed in 0..30 {
        let path = Path {
            loss: 0.3,
            ..Path::GOOD
        };
        let mut world = World::with_shared_secret(seed, path);
        world.run_for(Span::from_secs(9));
        if world.listener.half_open() > 0 || world.listener.connections() == 0 {
            continue;
        }
        let before = world.caller_core(0).received.len();
        let stranger = Stranger {
            delay: Span::from_millis(1),
            hands_on_for: Span::from_millis(500),
        };
        world.caller_core(0).send(b"feedback");
        sent += world.run_with(stranger, Span::from_secs(5), false);
        world.run_for(Span::from_secs(1));
        arrived += world.caller_core(0).received.len() - before;
        let events = world.listener_events.iter();
        moves += events
            .filter(|event| matches!(event, ListenerEvent::Session(_, Event::PathChanged { .. })))
            .count();
        let id = world.listener.ids().next().expect("a connection");
        let session = world.listener.session(id).expect("open");
        assert_eq!(session.address(), address(CALLER), "{seed}");
    }
    assert!(moves > 0, "some were diverted for a while");
    let share = arrived as f64 / sent as f64;
    assert!((0.6..0.75).contains(&share), "{arrived} of {sent}");
}

/// A peer that has moved sends nothing from its old address, so the listener follows it within a
/// probe timeout after the round trip.
#[test]
fn a_moving_peer_is_followed_within_a_probe_timeout() {
    let mut world = connected(Path::GOOD);
    world.callers[0].0 = address("203.0.113.5:6000");
    world.caller_core(0).send(b"from elsewhere");
    world.run_for(Span::from_millis(20));
    let id = world.listener.ids().next().expect("a connection");
    // The probe timeout is longer than the round trip of 40 ms.
    world.run_for(super::network::PROBE);
    let session = world.listener.session(id).expect("open");
    assert_eq!(session.address(), address("203.0.113.5:6000"));
}
