//! Somebody on the path who injects packets.

use comity::session::{
    CallerCredentials, CallerEvent, Closed, Ecn, Event, Listener, ListenerConfig,
    ListenerCredentials, Randomness,
};
use comity_units::{Seed, Span};

use super::network::{
    CALLER, Flight, LISTENER, Path, World, address, caller_config, listener_config, opener,
    passphrase,
};

/// Another listener has the same passphrase. It does not know the connection, and what it says to a
/// packet of it does not end it.
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
