//! A listener or a caller that was restarted, and the Resets that report it.

use comity::session::{
    CallerCredentials, CallerEvent, Closed, Event, Listener, ListenerConfig, ListenerCredentials,
    ListenerEvent, Randomness,
};
use comity_units::{Seed, Span};

use super::hostile::{captured, deliver, open};
use crate::session::network::{
    ACCEPT, ANSWER, CALLER, CONFIRM, Flight, INITIAL, LISTENER, Path, RESET, World, address,
    caller_config, listener_config, passphrase, shared,
};

/// Replaces the listener by another one with the same configuration and no state.
fn restart(world: &mut World, config: ListenerConfig) {
    world.listener = Listener::new(
        world.now,
        config,
        crate::session::network::opener(),
        Randomness::seeded(Seed::new(4242)),
    )
    .expect("it was valid before");
}

#[test]
fn a_caller_learns_within_a_round_trip_that_the_listener_was_restarted() {
    let (shared_key, phrase) = (shared(7), passphrase(7));
    let own = comity::session::StaticKey::new([2; 32]);
    let calling = comity::session::StaticKey::new([1; 32]);
    let kinds = [
        (
            ListenerCredentials::Shared(shared_key.clone()),
            CallerCredentials::Shared(shared_key),
        ),
        (
            ListenerCredentials::Passphrase(phrase.clone()),
            CallerCredentials::Passphrase(phrase),
        ),
        (
            ListenerCredentials::Static {
                own: own.clone(),
                allow: comity::session::Allow::Anyone,
            },
            CallerCredentials::Static {
                own: calling,
                listener: own.public(),
            },
        ),
        (ListenerCredentials::Insecure, CallerCredentials::Insecure),
    ];
    for (listener, caller) in kinds {
        let config = listener_config(listener);
        let mut world = World::new(1, Path::GOOD, config.clone());
        world.call(CALLER, caller_config(caller));
        world.run_for(Span::from_secs(1));
        restart(&mut world, config);
        world.caller_core(0).send(b"is anybody there?");
        world.run_for(Span::from_millis(39));
        assert!(!world.callers[0].1.is_over());
        world.run_for(Span::from_millis(1));
        assert_eq!(
            world.caller_events.last(),
            Some(&(0, CallerEvent::Session(Event::Closed(Closed::Reset))))
        );
        assert_eq!(world.listener.statistics().resets, 1);
    }
}

/// The listener has closed the connection with a reason and forgotten it. The caller delivers the
/// sections that arrived, and one of its packets on the way causes a Reset.
#[test]
fn a_reset_after_the_close_of_the_peer_is_ignored() {
    let config = listener_config(ListenerCredentials::Shared(shared(7)));
    let mut world = World::new(1, Path::GOOD, config.clone());
    world.call(CALLER, caller_config(CallerCredentials::Shared(shared(7))));
    world.run_for(Span::from_secs(1));
    restart(&mut world, config);
    world.caller_core(0).has_ended = true;
    world.caller_core(0).send(b"on the way");
    world.run_for(Span::from_secs(1));
    assert_eq!(world.listener.statistics().resets, 1);
    assert!(!world.callers[0].1.is_over());
    world.caller_core(0).closing = true;
    world.drain();
    assert_eq!(
        world.caller_events.last(),
        Some(&(0, CallerEvent::Session(Event::Closed(Closed::ByProtocol))))
    );
}

/// Only the token of the connection ends it. Neither the token of another one does, nor one that
/// the listener gave away before the connection existed.
#[test]
fn a_reset_without_the_token_ends_nothing() {
    let mut world = open();
    let data = captured(&mut world, b"something").bytes;
    let id = &data[1..9];
    // The listener knows the connection, so it reveals no token.
    let mut forged = data.clone();
    *forged.last_mut().unwrap() ^= 1;
    deliver(&mut world, "203.0.113.5:1", &forged);
    assert_eq!(world.sent(RESET).len(), 0);
    // The token of another connection, which the listener does not know.
    let mut stranger = data.clone();
    stranger[1] ^= 1;
    deliver(&mut world, "203.0.113.5:1", &stranger);
    let mut reset = world.sent(RESET)[0].bytes.clone();
    assert_eq!(reset.len(), 25);
    for forged_id in [&stranger[1..9], id] {
        reset[1..9].copy_from_slice(forged_id);
        world.inject(address(LISTENER), address(CALLER), reset.clone());
        world.run_for(Span::from_millis(100));
        assert!(!world.callers[0].1.is_over());
    }
    // No packet before message 4, which is sealed, contains the id.
    for kind in [INITIAL, 2, ANSWER, CONFIRM, ACCEPT] {
        for flight in world.sent(kind) {
            assert!(
                !flight.bytes.windows(8).any(|window| window == id),
                "kind {kind}"
            );
        }
    }
    // A Data packet that is no longer than a Reset causes none: otherwise two ends could answer
    // each other for ever.
    let resets = world.sent(RESET).len();
    deliver(&mut world, "203.0.113.5:1", &stranger[..25]);
    assert_eq!(world.sent(RESET).len(), resets);
}

/// A killed caller that calls again replaces its own connection. Another caller does not.
#[test]
fn a_caller_that_was_restarted_replaces_its_silent_predecessor() {
    let mut config = listener_config(ListenerCredentials::Passphrase(passphrase(7)));
    config.max_served = 1;
    let credentials = || CallerCredentials::Passphrase(passphrase(7));
    let mut world = World::new(1, Path::GOOD, config);
    world.call(CALLER, caller_config(credentials()));
    world.run_for(Span::from_secs(1));
    assert!(world.callers[0].1.session().is_some());
    world.caller_core(0).send(b"the last words");
    world.run_for(Span::from_millis(30));
    // The first caller is killed: no packet of it arrives any more.
    let silent_since = world.now;
    world.dead.insert(address(CALLER));
    world.run_for(Span::from_millis(100));
    let other = world.call("203.0.113.5:1", caller_config(credentials()));
    let again = world.call("198.51.100.7:4001", caller_config(credentials()));
    let called_at = world.now;
    while world.callers[again].1.session().is_none() {
        world.run_for(Span::from_millis(1));
        let silent_for = world.now.saturating_since(silent_since);
        assert!(silent_for < Span::from_secs(1), "{silent_for}");
    }
    // Its first Confirm arrived after 100 ms, the second one 250 ms later. Two probe timeouts are
    // 300 ms.
    let called_for = world.now.saturating_since(called_at);
    assert!(called_for > Span::from_millis(100 + 300), "{called_for}");
    assert!(world.listener_events.iter().any(|event| matches!(
        event,
        ListenerEvent::Session(_, Event::Closed(Closed::Replaced))
    )));
    world.run_for(Span::from_secs(1));
    assert_eq!(world.listener.connections(), 1);
    assert!(world.callers[other].1.session().is_none());
    // A live caller is not replaced, although it has nothing to send.
    let third = world.call("198.51.100.7:4002", caller_config(credentials()));
    world.run_for(Span::from_secs(5));
    assert!(world.callers[third].1.session().is_none());
    assert!(!world.callers[again].1.is_over());
}

/// A caller repeats its Confirm at a listener without room. Each Confirm is a reason to ask whether
/// an older connection of this host is still alive.
#[test]
fn a_repeated_confirm_makes_no_flood_for_the_connections_of_its_host() {
    let mut config = listener_config(ListenerCredentials::Passphrase(passphrase(7)));
    config.max_served = 1;
    let credentials = || CallerCredentials::Passphrase(passphrase(7));
    let mut world = World::new(1, Path::GOOD, config);
    world.call(CALLER, caller_config(credentials()));
    world.run_for(Span::from_secs(2));
    let second = "198.51.100.7:4001";
    world.call(second, caller_config(credentials()));
    let is_confirm = |flight: &&Flight| {
        flight.from == address(second)
            && flight
                .bytes
                .first()
                .is_some_and(|kind| kind >> 4 == CONFIRM)
    };
    while !world.log.iter().any(|flight| is_confirm(&flight)) {
        world.run_for(Span::from_millis(1));
    }
    let confirm = world.log.iter().rfind(is_confirm).unwrap().bytes.clone();
    world.traffic.clear();
    for _ in 0..900 {
        world.inject(address(second), address(LISTENER), confirm.clone());
        world.run_for(Span::from_millis(1));
    }
    let (_, sent) = world.traffic[&address(CALLER)];
    // One short challenge in two probe timeouts, which are 300 ms, and nothing else.
    assert!((42..=4 * 42).contains(&sent), "{sent} bytes");
    assert!(!world.callers[0].1.is_over());
}
