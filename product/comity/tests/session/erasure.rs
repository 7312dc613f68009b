//! Expired secrets are erased even if no packet arrives.

use comity::session::{
    CallerCredentials, Closed, Event, KeyLimits, ListenerCredentials, ListenerEvent,
};
use comity_units::{Span, Time};

use super::network::{Path, World, caller_config, listener_config, shared};

/// After one call, the listener wakes up to erase the key of the ticket, 16 s after the beginning
/// of its slot, and the secret of the cookie, an hour after it was made.
#[test]
fn a_listener_wakes_up_to_erase_expired_secrets() {
    let mut world = World::with_shared_secret(1, Path::GOOD);
    assert_eq!(world.listener.next_timer(), Time::MAX);
    world.run_for(Span::from_secs(1));
    // The sealing key of the connection is replaced meanwhile, two minutes after its first packet.
    let update = Span::from_secs(120);
    for (due, later) in [
        (1_016, Span::ZERO),
        (1_120, Span::from_secs(1)),
        (1_000 + 3_600, Span::ZERO),
        (1_000 + 3_608, Span::ZERO),
    ] {
        let (due, next) = (Time::from_secs(due), world.listener.next_timer());
        assert!(due <= next && next <= due + later, "{next}, not {due}");
        world.run_until(next);
    }
    assert_eq!(KeyLimits::default().update_after, update);
    assert_eq!(world.listener.next_timer(), Time::MAX);
}

/// A key is used for at most two minutes, however little is sent: memory stolen from an end opens
/// only the packets since then.
#[test]
fn keys_change_with_time_too() {
    let mut world = World::with_shared_secret(1, Path::GOOD);
    let phase = |world: &World| {
        let id = world.listener.ids().next().expect("a connection");
        let ends = [world.listener.session(id), world.callers[0].1.session()];
        ends.map(|session| session.expect("open").protection().phase())
    };
    world.run_for(Span::from_secs(1));
    let mut changed = Vec::new();
    for second in 1..=370_u64 {
        world.caller_core(0).send(b"up");
        world.listener_core().send(b"down");
        world.run_for(Span::from_secs(1));
        let [at_listener, at_caller] = phase(&world);
        assert_eq!(at_listener, at_caller, "{second} s");
        if at_caller > changed.len() as u64 {
            changed.push(second);
        }
    }
    let expected = [120, 240, 360];
    assert_eq!(changed.len(), expected.len(), "{changed:?}");
    for (changed, expected) in changed.iter().zip(expected) {
        assert!(
            changed.abs_diff(expected) <= 4,
            "{changed}, not {expected} s"
        );
    }
    let id = world.listener.ids().next().expect("a connection");
    let session = world.listener.session(id).expect("open");
    assert_eq!(session.statistics().forged_packets, 0);
    // Both ends wake up to erase the keys of the last phase and, two minutes after the first packet
    // under them, the sealing keys of the present one. They go on from there.
    let before = phase(&world);
    let silence = world.run_to_silence();
    assert!((Span::from_secs(100)..=Span::from_secs(120)).contains(&silence));
    assert_eq!(phase(&world), before.map(|phase| phase + 1));
    world.caller_core(0).received.clear();
    world.caller_core(0).send(b"up");
    world.listener_core().send(b"down");
    world.run_for(Span::from_secs(1));
    assert_eq!(world.caller_core(0).received, [b"down"]);
    let received = world.listener_core().received.len();
    assert_eq!(received, 371);
}

/// The output of an end is stuck: its transport has ended, and sections still wait for delivery.
/// The keys are erased, and a packet from before cannot be opened.
#[test]
fn keys_do_not_outlive_the_end_while_something_waits_for_delivery() {
    for is_silent in [false, true] {
        let mut world = World::with_shared_secret(1, Path::GOOD);
        world.run_for(Span::from_secs(1));
        world.caller_core(0).send(b"before the end");
        world.run_for(Span::from_secs(1));
        world.listener_core().silent = is_silent;
        world.drain();
        let before = world.listener_core().received.len();
        world.caller_core(0).send(b"after the end");
        world.run_for(Span::from_secs(1));
        let after = world.listener_core().received.len();
        assert_eq!(after - before, usize::from(!is_silent));
        let id = world.listener.ids().next().expect("a connection");
        let session = world.listener.session(id).expect("open");
        let statistics = session.statistics();
        assert_eq!(statistics.stale_packets, u64::from(is_silent));
        assert_eq!(statistics.forged_packets, 0);
        assert!(session.closed().is_none() && session.protection().cipher().is_some());
    }
}

/// A challenge that is due does not end a connection without keys, whose output is stuck. Its
/// caller replaces it as any other silent one.
#[test]
fn a_challenge_after_the_end_does_not_discard_what_waits_for_delivery() {
    let mut config = listener_config(ListenerCredentials::Shared(shared(7)));
    config.max_connections = 1;
    let mut world = World::new(1, Path::GOOD, config);
    let credentials = CallerCredentials::Shared(shared(7));
    world.call("198.51.100.7:1", caller_config(credentials.clone()));
    world.run_for(Span::from_secs(1));
    world.listener_core().silent = true;
    let late = world.call("198.51.100.7:2", caller_config(credentials));
    world.run_for(Span::from_millis(200));
    let id = world.listener.ids().next().expect("a connection");
    let closed = world.listener.session(id).expect("open").closed();
    assert_eq!(closed, None);
    world.run_for(Span::from_secs(2));
    assert!(world.callers[late].1.session().is_some());
    let closed = { world.listener_events.iter() }.filter_map(|event| match event {
        ListenerEvent::Session(_, Event::Closed(closed)) => Some(*closed),
        _ => None,
    });
    assert_eq!(closed.collect::<Vec<_>>(), [Closed::Replaced]);
}

impl World {
    /// Runs until neither end of the only call has a timer. Returns the elapsed time.
    fn run_to_silence(&mut self) -> Span {
        let start = self.now;
        let mut last = start;
        loop {
            let id = self.listener.ids().next().expect("a connection");
            let session = self.listener.session(id).expect("open");
            let due = session.next_timer().min(self.callers[0].1.next_timer());
            if due.is_never() {
                return last.saturating_since(start);
            }
            last = due;
            self.run_until(due);
            self.drain();
        }
    }
}
