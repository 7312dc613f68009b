//! The packets, counts and room of a listener.

use comity::session::{
    CallerCredentials, CallerEvent, Closed, Ecn, Event, ListenerCredentials, Protocol,
};
use comity_transport::wire::header::{self, Packet};
use comity_units::{Span, Time};

use super::network::{
    CALLER, CONFIRM, DATA, INITIAL, LISTENER, Path, RETRY, World, address, caller_config,
    listener_config, shared,
};

/// Delivers a datagram to the listener without polling it.
fn inject(world: &mut World, from: &str, bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    world
        .listener
        .handle_datagram(world.now, address(from), Ecn::NotCapable, &mut bytes);
}

/// The Data packets that the listener has sent.
fn data_from_listener(world: &World) -> usize {
    let sent = world.sent(DATA).into_iter();
    sent.filter(|flight| flight.from == address(LISTENER))
        .count()
}

#[test]
fn a_half_open_connection_is_silent_until_its_caller_proves_the_keys() {
    let mut world = World::with_shared_secret(1, Path::GOOD);
    world.run_for(Span::from_millis(100));
    assert_eq!(world.listener.half_open(), 1);
    world.listener_core().send(b"early");
    world.drain();
    assert_eq!(data_from_listener(&world), 0);
    // A stranger that knows only the id.
    let id = world.listener.ids().next().expect("it is half open").get();
    let noise = [&[0x40][..], &id.to_be_bytes(), &[7; 40]].concat();
    inject(&mut world, CALLER, &noise);
    world.drain();
    assert_eq!(world.listener.half_open(), 1);
    assert_eq!(data_from_listener(&world), 0);
    assert_eq!(world.listener_events, []);
    world.run_for(Span::from_millis(40));
    assert_eq!(world.listener.half_open(), 0);
    world.run_for(Span::from_secs(1));
    assert_eq!(world.caller_core(0).received, [b"early"]);
}

#[test]
fn a_closed_connection_sends_nothing() {
    let mut world = World::with_shared_secret(1, Path::GOOD);
    world.run_for(Span::from_secs(1));
    let shown = |world: &World| format!("{:?}", world.callers[0].1.session());
    assert!(shown(&world).contains("role: Caller"), "{}", shown(&world));
    assert!(shown(&world).contains("closed: None"), "{}", shown(&world));
    world.caller_core(0).closing = true;
    world.drain();
    assert!(world.callers[0].1.is_over());
    assert!(
        shown(&world).contains("closed: Some(ByProtocol)"),
        "{}",
        shown(&world)
    );
    let before = world.log.len();
    world.caller_core(0).send(b"late");
    world.run_for(Span::from_secs(1));
    assert_eq!(world.log.len(), before);

    // The timer does not run either: here that of the question, which has no answer yet.
    let mut world = World::with_shared_secret(1, Path::GOOD);
    world.run_for(Span::from_millis(130));
    let due = world.caller_core(0).next_timer();
    assert!(!due.is_never());
    assert_eq!(world.callers[0].1.next_timer(), due);
    world.caller_core(0).closing = true;
    world.drain();
    let caller = &mut world.callers[0].1;
    assert_eq!(caller.next_timer(), Time::MAX);
    caller.on_timer(due);
    assert_eq!(world.caller_core(0).next_timer(), due, "it is not touched");
}

/// Keys also change after a number of payload bytes, however few packets carry them.
#[test]
fn keys_change_after_a_number_of_bytes() {
    let mut config = listener_config(ListenerCredentials::Shared(shared(7)));
    config.key_limits.update_after_bytes = 10_000;
    let mut world = World::new(1, Path::GOOD, config);
    world.call(CALLER, caller_config(CallerCredentials::Shared(shared(7))));
    world.run_for(Span::from_secs(1));
    let updates = |world: &World| {
        let id = world.listener.ids().next().expect("a connection");
        let session = world.listener.session(id).expect("it was just named");
        session.statistics().key_updates
    };
    // Challenges and questions have a few bytes. Each message has 1,000 and its kind.
    for sent in 1..=9 {
        world.listener_core().send(&[7; 999]);
        world.run_for(Span::from_millis(50));
        assert_eq!(updates(&world), 0, "{sent}");
    }
    for _ in 10..=11 {
        world.listener_core().send(&[7; 999]);
        world.run_for(Span::from_millis(50));
    }
    assert_eq!(updates(&world), 1);
}

/// A caller that supports later versions too gets an answer in the common version. One that
/// supports only others gets a list with this one.
#[test]
fn versions_are_counted_and_the_common_one_is_chosen() {
    let config = listener_config(ListenerCredentials::Insecure);
    let mut world = World::new(1, Path::GOOD, config);
    world.call(CALLER, caller_config(CallerCredentials::Insecure));
    world.run_for(Span::from_millis(50));
    let initial = world.log.last().expect("it was just sent").bytes.clone();
    let Ok(Packet::Initial(initial)) = header::decode(&initial) else {
        panic!("{initial:x?}");
    };
    let message = [&[2, 3][..], &[0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 8]].concat();
    let both = header::Initial {
        message: &message,
        ..initial
    };
    let mut packet = Vec::new();
    both.encode(&mut packet).expect("within the format");
    let answers = |world: &World| world.listener.statistics().answers;
    inject(&mut world, CALLER, &packet);
    assert_eq!(answers(&world), 1);
    assert_eq!(world.listener.statistics().refused, 0);
    packet[4] = 9;
    for count in 1..=2 {
        inject(&mut world, CALLER, &packet);
        assert_eq!(world.listener.statistics().other_versions, count);
    }
    assert_eq!(answers(&world), 1);
}

/// Hosts with many connections serve only the connections with new events, one by one.
#[test]
fn connections_are_served_one_by_one_when_something_has_happened() {
    let config = listener_config(ListenerCredentials::Shared(shared(7)));
    let mut world = World::new(1, Path::GOOD, config);
    for port in 1..=3 {
        let credentials = CallerCredentials::Shared(shared(7));
        world.call(&format!("198.51.100.7:{port}"), caller_config(credentials));
        world.run_for(Span::from_secs(1));
    }
    let now = world.now;
    let listener = &mut world.listener;
    assert!(!listener.is_busy());
    assert_eq!(listener.next_ready(), None);
    let ids: Vec<_> = listener.ids().collect();
    for _ in 0..2 {
        // A second call has no further effect.
        listener.make_ready(ids[2]);
    }
    listener.protocol_mut(ids[0]).expect("open").send(b"one");
    assert!(listener.is_busy());
    let mut served = Vec::new();
    while let Some(id) = listener.next_ready() {
        let session = listener.session_mut(id).expect("it is ready");
        let mut out = Vec::new();
        let sends = session.poll_transmit(now, &mut out).is_some();
        assert_eq!(session.poll_transmit(now, &mut out), None);
        listener.settle(id);
        served.push((id, sends));
    }
    assert_eq!(served, [(ids[2], false), (ids[0], true)]);
    assert!(!listener.is_busy());
    // A waiting reply also makes a connection ready, until it has left.
    let mut packet = world.sent(INITIAL)[0].bytes.clone();
    let listener = &mut world.listener;
    listener.handle_datagram(now, address(CALLER), Ecn::NotCapable, &mut packet);
    assert!(listener.is_busy());
    assert!(listener.poll_reply(&mut Vec::new()).is_some());
    assert!(!listener.is_busy());
}

#[test]
fn a_panicking_core_sends_one_last_packet() {
    let mut world = World::with_shared_secret(1, Path::GOOD);
    world.run_for(Span::from_secs(1));
    let before = world.log.len();
    world.caller_core(0).panics = true;
    world.drain();
    let closed = CallerEvent::Session(Event::Closed(Closed::Internal));
    assert_eq!(world.caller_events.last(), Some(&(0, closed)));
    // It is genuine: a Data packet that the listener can open.
    assert_eq!(world.log.len(), before + 1);
    let packets = world.listener_core().numbers.len();
    world.run_for(Span::from_secs(1));
    assert_eq!(world.listener_core().numbers.len(), packets + 1);
    assert_eq!(world.log.len(), before + 1);
}

#[test]
fn datagrams_of_no_connection_are_counted() {
    let mut world = World::with_shared_secret(1, Path::GOOD);
    world.run_for(Span::from_secs(1));
    let unknown = |world: &World| world.listener.statistics().unknown;
    assert_eq!(unknown(&world), 0);
    let id = world.listener.ids().next().expect("a connection").get();
    let data = |id: u64| [&[0x40][..], &id.to_be_bytes(), &[7; 40]].concat();
    let retry = world.sent(RETRY)[0].bytes.clone();
    let mut confirm = world.sent(CONFIRM)[0].bytes.clone();
    *confirm.last_mut().expect("not empty") ^= 1;
    // Changes the ticket.
    confirm[20] ^= 1;
    for (at, packet) in (1..).zip([data(id ^ 1), vec![0xff], Vec::new(), retry, confirm]) {
        inject(&mut world, CALLER, &packet);
        assert_eq!(unknown(&world), at, "{packet:x?}");
    }
    // A forged packet belongs to a connection, which counts it.
    inject(&mut world, CALLER, &data(id));
    assert_eq!(unknown(&world), 5);
    // A Confirm of a connection that has ended.
    let confirm = world.sent(CONFIRM)[0].bytes.clone();
    inject(&mut world, CALLER, &confirm);
    assert_eq!(unknown(&world), 5, "it is open");
    world.listener_core().closing = true;
    world.drain();
    assert_eq!(world.listener.connections(), 0);
    inject(&mut world, CALLER, &confirm);
    assert_eq!(unknown(&world), 6);
}

/// A connection that has ended frees its room even before the host has polled it.
#[test]
fn a_closed_connection_frees_its_room_at_once() {
    for is_over in [true, false] {
        let mut config = listener_config(ListenerCredentials::Shared(shared(7)));
        config.max_connections = 1;
        let mut world = World::new(1, Path::GOOD, config);
        let credentials = CallerCredentials::Shared(shared(7));
        world.call(CALLER, caller_config(credentials.clone()));
        world.run_for(Span::from_secs(1));
        world.call("203.0.113.5:1", caller_config(credentials));
        world.run_for(Span::from_millis(99));
        let confirm = world.log.last().expect("it was just sent").clone();
        assert_eq!(confirm.bytes[0] >> 4, CONFIRM);
        world.caller_core(0).send(b"the last");
        world.dead.insert(address(CALLER));
        world.drain();
        let last = world.log.last().expect("it was just sent").bytes.clone();
        world.listener_core().closing = is_over;
        inject(&mut world, CALLER, &last);
        inject(&mut world, "203.0.113.5:1", &confirm.bytes);
        assert_eq!(world.listener.half_open(), usize::from(is_over));
        world.drain();
        assert_eq!(world.listener.connections(), 1);
    }
}
