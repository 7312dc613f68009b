//! The rules for single segments, listeners and timers.

use std::net::SocketAddr;

use comity_tcp_host::{
    Config, ConnectError, ConnectionId, End, Event, Host, KeepAlive, ListenError,
};
use comity_units::{DataSize, Span, Time};
use etherparse::TcpOptionElement;

use crate::world::{App, PORT, World, config, forge, read, v4};

/// The packets that `from` sent since `index`.
fn sent(world: &World, from: usize, index: usize) -> Vec<(etherparse::TcpHeader, Vec<u8>)> {
    let own = world.records[index..]
        .iter()
        .filter(|(_, sender, _)| *sender == from);
    own.map(|(_, _, packet)| read(packet)).collect()
}

/// An idle connection from host 0 to host 1, as each end names it.
fn idle(world: &mut World) -> (ConnectionId, ConnectionId) {
    let quiet = || App {
        shuts_down: false,
        ..App::sending(b"")
    };
    let id = world.open(0, true, quiet(), quiet());
    world.run_for(Span::from_secs(1));
    (id, *world.apps[1].last_key_value().unwrap().0)
}

#[test]
fn a_segment_of_no_connection_gets_the_reset_of_the_rfc() {
    let mut world = World::new();
    let (from, to) = (SocketAddr::new(v4(1), 9_999), SocketAddr::new(v4(0), 7));
    world.inject(
        0,
        &forge(from, to, |tcp| tcp.sequence_number = 500, b"four"),
    );
    world.inject(
        0,
        &forge(
            from,
            to,
            |tcp| (tcp.sequence_number, tcp.ack, tcp.acknowledgment_number) = (500, true, 77),
            b"four",
        ),
    );
    world.inject(
        0,
        &forge(from, to, |tcp| (tcp.rst, tcp.ack) = (true, true), b""),
    );
    world.run(world.now);
    let answers = sent(&world, 0, 0);
    assert_eq!(answers.len(), 2, "a reset is not answered");
    let (first, second) = (&answers[0].0, &answers[1].0);
    assert!(first.rst && first.ack && second.rst && !second.ack);
    assert_eq!(
        (first.sequence_number, first.acknowledgment_number),
        (0, 504)
    );
    assert_eq!(second.sequence_number, 77);
    assert_eq!((first.source_port, first.destination_port), (7, 9_999));
}

#[test]
fn resets_of_unknown_connections_are_limited() {
    let mut world = World::new();
    let to = SocketAddr::new(v4(0), 7);
    for port in 1..5_000 {
        let from = SocketAddr::new(v4(1), port);
        world.inject(0, &forge(from, to, |tcp| tcp.ack = true, b""));
    }
    world.run(world.now);
    assert_eq!(sent(&world, 0, 0).len(), 1_000);
    assert_eq!(world.hosts[0].statistics().dropped_unknown, 4_999);
}

#[test]
fn a_closed_port_refuses_a_connection() {
    let mut world = World::new();
    let now = world.now;
    let closed = SocketAddr::new(v4(1), 81);
    let id = world.hosts[0].connect(now, closed, None).unwrap();
    world.run_for(Span::from_secs(1));
    assert_eq!(world.hosts[0].end(id), Some(End::Refused));
    assert_eq!(world.events[0], [Event::Ended(id)]);
    world.hosts[0].release(world.now, id);
    assert_eq!(world.hosts[0].connections(), 0);
}

#[test]
fn a_peer_that_does_not_answer_times_out() {
    let mut world = World::new();
    let now = world.now;
    let nobody = SocketAddr::from(([10, 0, 0, 77], PORT));
    world.path_mtu = 0;
    world.is_black_hole = true;
    let id = world.hosts[0].connect(now, nobody, None).unwrap();
    world.run_for(Span::from_secs(59));
    assert_eq!(world.hosts[0].end(id), None);
    let attempts = world.records.len();
    assert!((5..8).contains(&attempts), "{attempts} SYNs in a minute");
    world.run_for(Span::from_secs(2));
    assert_eq!(world.hosts[0].end(id), Some(End::TimedOut));
}

#[test]
fn only_the_exact_number_resets_a_connection() {
    let mut world = World::new();
    let (id, other) = idle(&mut world);
    let (local, remote) = world.hosts[0].addresses(id).unwrap();
    // Its last segment was its SYN.
    let next = sent(&world, 1, 0).last().unwrap().0.sequence_number + 1;
    let reset = |offset: u32| {
        let sequence = next.wrapping_add(offset);
        forge(
            remote,
            local,
            |tcp| (tcp.sequence_number, tcp.rst) = (sequence, true),
            b"",
        )
    };
    let index = world.records.len();
    for (offset, answers) in [(1, 1), (1_000_000, 1), (2_000_000, 0), (u32::MAX, 0)] {
        let index = world.records.len();
        world.inject(0, &reset(offset));
        world.run(world.now);
        assert_eq!(sent(&world, 0, index).len(), answers, "{offset}");
        assert_eq!(world.hosts[0].end(id), None);
    }
    // A forged SYN is challenged too (RFC 5961, section 4).
    world.inject(0, &forge(remote, local, |tcp| tcp.syn = true, b""));
    world.run_for(Span::from_secs(1));
    assert_eq!(sent(&world, 0, index).len(), 3);
    assert_eq!(sent(&world, 1, index).len(), 0, "the true peer is content");
    world.inject(0, &reset(0));
    assert_eq!(world.hosts[0].end(id), Some(End::Reset));
    assert_eq!(world.hosts[1].end(other), None);
}

#[test]
fn challenges_are_limited() {
    let mut world = World::new();
    let (id, _) = idle(&mut world);
    let (local, remote) = world.hosts[0].addresses(id).unwrap();
    let index = world.records.len();
    for sequence in 0..500 {
        let syn = forge(
            remote,
            local,
            |tcp| (tcp.syn, tcp.sequence_number) = (true, sequence),
            b"",
        );
        world.inject(0, &syn);
        world.run(world.now);
    }
    assert_eq!(sent(&world, 0, index).len(), 32);
    assert_eq!(world.hosts[0].statistics().suppressed_acks, 468);
    assert_eq!(world.hosts[0].end(id), None);
}

/// Requests that nobody completes: the oldest make room, for each other and for one that is meant.
#[test]
fn a_flood_of_requests_keeps_nobody_out() {
    const HALF_OPEN: usize = 1_024;
    let mut world = World::new();
    let listener = SocketAddr::new(v4(0), PORT);
    for number in 0..10_000_u32 {
        let from = SocketAddr::from(([172, 16, (number >> 8) as u8, number as u8], 1_000));
        world.inject(0, &forge(from, listener, |tcp| tcp.syn = true, b""));
    }
    assert_eq!(world.hosts[0].connections(), HALF_OPEN);
    let statistics = world.hosts[0].statistics();
    assert_eq!(statistics.ended_handshakes, 10_000 - HALF_OPEN as u64);
    assert_eq!((statistics.accepted, statistics.dropped()), (10_000, 0));
    let id = world.open(1, true, App::sending(b"hello"), App::sending(b""));
    world.run_for(Span::from_secs(1));
    assert_eq!(world.hosts[1].acknowledged(id), Ok(()));
    // Nobody completes the others.
    world.path_mtu = 0;
    world.is_black_hole = true;
    world.run_for(Span::from_secs(121));
    assert_eq!(world.hosts[0].connections(), 1);
}

/// At the limit of connections, those in the handshake make room too.
#[test]
fn requests_that_nobody_completes_make_room_at_the_limit() {
    let narrow = Config {
        max_connections: 3,
        ..config(0)
    };
    let mut world = World::with([narrow, config(1)]);
    let listener = SocketAddr::new(v4(0), PORT);
    for number in 0..50 {
        let from = SocketAddr::from(([172, 16, 0, number], 1_000));
        world.inject(0, &forge(from, listener, |tcp| tcp.syn = true, b""));
        assert!(world.hosts[0].connections() <= 3);
    }
    let id = world.open(1, true, App::sending(b"hello"), App::sending(b""));
    world.run_for(Span::from_secs(1));
    assert_eq!(world.hosts[1].acknowledged(id), Ok(()));
}

/// Peers that read nothing: the send buffers of all hold their share of the limit, and a peer whose
/// window stays closed is reset.
#[test]
fn peers_that_read_nothing_take_bounded_memory_and_time() {
    let narrow = Config {
        max_send_memory: 200_000,
        zero_window_timeout: Span::from_secs(60),
        ..config(0)
    };
    let mut world = World::with([narrow, config(1)]);
    let deaf = || App {
        read: 0,
        shuts_down: false,
        ..App::sending(b"")
    };
    let eager = || App {
        shuts_down: false,
        ..App::sending(&vec![7; 4 << 20])
    };
    let ids: Vec<_> = (0..10)
        .map(|_| world.open(0, true, eager(), deaf()))
        .collect();
    world.run_for(Span::from_secs(30));
    let unsent: u64 = { ids.iter() }
        .filter_map(|id| world.hosts[0].connection(*id))
        .map(|connection| connection.unsent() + connection.in_flight())
        .sum();
    // The first ones began with larger shares.
    assert!((20_000..=600_000).contains(&unsent), "{unsent}");
    for id in &ids {
        assert_eq!(world.hosts[0].end(*id), None);
    }
    world.run_for(Span::from_secs(60));
    for id in &ids {
        assert_eq!(world.hosts[0].end(*id), Some(End::TimedOut));
    }
}

/// Peers that send to an application that reads nothing.
#[test]
fn receive_buffers_share_a_limit() {
    const LIMIT: usize = 512 << 10;
    const WHOLE: u64 = 256 << 10;
    const PEERS: usize = 20;
    let mut narrow = Config {
        max_receive_memory: LIMIT,
        ..config(0)
    };
    narrow.tcp.receive_buffer = DataSize::new(WHOLE);
    let mut world = World::with([narrow, config(1)]);
    let deaf = || App {
        read: 0,
        shuts_down: false,
        ..App::sending(b"")
    };
    let eager = || App {
        shuts_down: false,
        ..App::sending(&vec![7; 300_000])
    };
    let held = |world: &World, ids: &[ConnectionId]| -> Vec<u64> {
        let connections = ids.iter().filter_map(|id| world.hosts[0].connection(*id));
        connections
            .map(|connection| connection.readable())
            .collect()
    };
    let accepted = |world: &World| world.apps[0].keys().copied().collect::<Vec<_>>();
    for _ in 0..PEERS {
        world.open(1, true, eager(), deaf());
        world.run_for(Span::from_millis(100));
    }
    world.run_for(Span::from_secs(10));
    let ids = accepted(&world);
    let all = held(&world, &ids);
    assert_eq!(all.len(), PEERS);
    let sum: u64 = all.iter().sum();
    let most = (LIMIT + PEERS * (16 << 10)) as u64;
    assert!((most / 4..=most).contains(&sum), "{sum}");
    assert!(all.iter().all(|bytes| *bytes >= 14_000), "{all:?}");
    // The memory of released connections is free again.
    for id in ids {
        world.apps[0].remove(&id);
        let now = world.now;
        world.hosts[0].release(now, id);
    }
    world.run_for(Span::from_secs(1));
    world.open(1, true, eager(), deaf());
    world.run_for(Span::from_secs(10));
    let last = held(&world, &accepted(&world));
    assert!(last.len() == 1 && last[0] * 2 > WHOLE, "{last:?}");
}

/// A peer that acknowledges one more byte every ten seconds, and the host that sends to it.
struct Miser {
    host: Host,
    now: Time,
    id: Option<ConnectionId>,
    /// The host's initial sequence number, and the bytes that it sent and that are acknowledged,
    /// from there on.
    initial: u32,
    sent: u32,
    acknowledged: u32,
}

const MISER: u16 = 9_999;

impl Miser {
    /// Connects, and is sent 100 kB.
    fn new(timeout: Span) -> Self {
        let mut settings = Config {
            zero_window_timeout: timeout,
            orphan_timeout: timeout,
            ..config(0)
        };
        // It acknowledges without looking at what it gets.
        settings.tcp.skip_segments = None;
        let mut host = Host::new(settings, [1; 32]).unwrap();
        let listener = host.listen(SocketAddr::new(v4(0), PORT), 10).unwrap();
        let mut miser = Self {
            host,
            now: Time::from_secs(1),
            id: None,
            initial: 0,
            sent: 0,
            acknowledged: 0,
        };
        miser.say(|tcp| (tcp.syn, tcp.sequence_number, tcp.window_size) = (true, 99, 1));
        let mut packet = Vec::new();
        assert!(miser.host.poll_transmit(miser.now, &mut packet));
        miser.initial = read(&packet).0.sequence_number;
        miser.sent = 1;
        miser.acknowledge(1, 1);
        let id = miser.host.accept(listener).expect("connected");
        miser.id = Some(id);
        miser.host.write(id, &[7; 100_000]).unwrap();
        miser
    }

    fn id(&self) -> ConnectionId {
        self.id.expect("accepted")
    }

    fn say(&mut self, header: impl FnOnce(&mut etherparse::TcpHeader)) {
        let (from, to) = (SocketAddr::new(v4(1), MISER), SocketAddr::new(v4(0), PORT));
        self.host
            .handle_packet(self.now, &forge(from, to, header, &[]));
    }

    fn take(&mut self) {
        let mut packet = Vec::new();
        while self.host.poll_transmit(self.now, &mut packet) {
            let (tcp, payload) = read(&packet);
            let end = tcp.sequence_number.wrapping_add(payload.len() as u32);
            self.sent = self.sent.max(end.wrapping_sub(self.initial));
        }
    }

    /// Acknowledges this many more bytes, if they were sent, and opens the window for `window`
    /// bytes.
    fn acknowledge(&mut self, more: u32, window: u16) {
        self.acknowledged = self.sent.min(self.acknowledged + more);
        let number = self.initial.wrapping_add(self.acknowledged);
        self.say(|tcp| {
            (tcp.sequence_number, tcp.ack, tcp.window_size) = (100, true, window);
            tcp.acknowledgment_number = number;
        });
        self.take();
    }

    /// Repeats this every ten seconds, until the connection ends. Returns after how many seconds it
    /// did; `None` after an hour.
    fn drag(&mut self, mut step: impl FnMut(&mut Self, u64)) -> Option<u64> {
        for round in 1..360 {
            let until = Time::from_secs(1 + 10 * round);
            while self.host.next_timer() <= until {
                self.now = self.now.max(self.host.next_timer());
                self.host.on_timer(self.now);
                self.take();
            }
            self.now = until;
            let is_open = self.host.connection(self.id()).is_some();
            if !is_open || self.host.end(self.id()).is_some() {
                return Some(10 * round);
            }
            step(self, round);
        }
        None
    }
}

/// A window that opens for a byte, or acknowledgements of a byte, hold no connection for ever.
#[test]
fn a_peer_that_takes_a_byte_now_and_then_is_reset() {
    let timeout = Span::from_secs(120);
    for windows in [[0, 1], [1, 1], [0, 40_000], [40_000, 40_000]] {
        let mut miser = Miser::new(timeout);
        let ended = miser.drag(|miser, round| {
            miser.acknowledge(1, windows[round as usize % 2]);
        });
        assert!(
            ended.is_some_and(|ended| (110..=150).contains(&ended)),
            "{windows:?}: {ended:?}"
        );
    }
    // A peer that takes a segment in this time is served.
    let mut miser = Miser::new(timeout);
    let ended = miser.drag(|miser, _| miser.acknowledge(200, 400));
    assert_eq!(ended, None);
}

/// The same, after the application has released the connection.
#[test]
fn a_released_connection_is_not_held_by_single_bytes() {
    let timeout = Span::from_secs(60);
    for (bytes, least, most) in [(1, 50, 80), (4_000, 200, 600)] {
        let mut miser = Miser::new(timeout);
        let (now, id) = (miser.now, miser.id());
        miser.host.release(now, id);
        let ended = miser.drag(|miser, _| {
            // In parts, so that the round trips are short.
            for part in [500; 8].iter().take(bytes as usize / 500) {
                miser.acknowledge(*part, 4_000);
            }
            miser.acknowledge(bytes % 500, 4_000);
        });
        let ended = ended.expect("within an hour");
        assert!((least..=most).contains(&ended), "{bytes}: {ended} s");
        assert!(miser.host.connection(id).is_none());
    }
}

#[test]
fn idle_connections_live_for_ever_without_probes_and_end_with_them() {
    let keep_alive = KeepAlive {
        idle: Span::from_secs(60),
        interval: Span::from_secs(10),
        probes: 3,
    };
    let probing = Config {
        keep_alive: Some(keep_alive),
        ..config(0)
    };
    let mut world = World::with([probing, config(1)]);
    let (id, other) = idle(&mut world);
    let index = world.records.len();
    world.run_for(Span::from_secs(3_600));
    let probes = sent(&world, 0, index).len();
    assert!((58..=60).contains(&probes), "{probes}, each answered");
    assert_eq!(sent(&world, 1, index).len(), probes);
    assert_eq!(world.hosts[0].end(id), None);
    world.path_mtu = 0;
    world.is_black_hole = true;
    // A stranger knows the addresses and not the numbers.
    let (local, peer) = world.hosts[0].addresses(id).unwrap();
    for _ in 0..40 {
        let stranger = |tcp: &mut etherparse::TcpHeader| {
            (tcp.ack, tcp.window_size) = (true, 1_000);
            (tcp.sequence_number, tcp.acknowledgment_number) = (1, 2);
        };
        world.inject(0, &forge(peer, local, stranger, &[]));
        world.run_for(Span::from_secs(5));
    }
    assert_eq!(world.hosts[0].end(id), Some(End::TimedOut));
    world.run_for(Span::from_secs(86_400));
    assert_eq!(world.hosts[1].end(other), None, "it has no probes");
}

#[test]
fn a_new_connection_replaces_an_old_one_in_time_wait() {
    let mut world = World::new();
    let (id, other) = idle(&mut world);
    let (local, remote) = world.hosts[0].addresses(id).unwrap();
    for (host, id) in [(1, other), (0, id)] {
        let now = world.now;
        world.hosts[host].release(now, id);
        world.run_for(Span::from_millis(100));
    }
    world.apps = Default::default();
    assert_eq!(world.hosts[0].connections(), 0);
    assert_eq!(world.hosts[1].connections(), 1, "it closed first and waits");
    // An old duplicate of the first SYN is no request.
    let (_, _, first_syn) = world.records[0].clone();
    world.inject(1, &first_syn);
    assert_eq!(world.hosts[1].statistics().opened_by_peer, 1);
    let quiet = || App {
        shuts_down: false,
        ..App::sending(b"second")
    };
    world.expected[1].insert(local, quiet());
    let now = world.now;
    let again = world.hosts[0].connect(now, remote, Some(local)).unwrap();
    world.apps[0].insert(again, quiet());
    world.run_for(Span::from_secs(1));
    assert_eq!(world.hosts[1].statistics().opened_by_peer, 2);
    assert_eq!(world.apps[0][&again].received, b"second");
    let app = world.apps[1].last_key_value().unwrap().1;
    assert_eq!(app.received, b"second");
}

#[test]
fn connections_in_time_wait_make_room_at_the_limit() {
    let narrow = Config {
        max_connections: 3,
        ..config(1)
    };
    let mut world = World::with([config(0), narrow]);
    for round in 0..10 {
        let (id, other) = idle(&mut world);
        for (host, id) in [(1, other), (0, id)] {
            let now = world.now;
            world.hosts[host].release(now, id);
            world.run_for(Span::from_millis(100));
        }
        world.apps = Default::default();
        assert_eq!(world.hosts[1].connections(), 3.min(round + 1));
    }
}

#[test]
fn unread_data_makes_the_release_a_reset() {
    let mut world = World::new();
    let deaf = App {
        read: 0,
        shuts_down: false,
        ..App::sending(b"")
    };
    let id = world.open(0, true, App::sending(b"nobody reads this"), deaf);
    world.run_for(Span::from_secs(1));
    let other = *world.apps[1].first_key_value().unwrap().0;
    world.hosts[1].release(world.now, other);
    world.apps[1].clear();
    assert_eq!(world.hosts[1].connections(), 0);
    world.run_for(Span::from_secs(1));
    assert_eq!(world.hosts[0].end(id), Some(End::Reset));
}

#[test]
fn data_for_a_released_connection_is_answered_with_a_reset() {
    let mut world = World::new();
    let (id, other) = idle(&mut world);
    world.hosts[1].release(world.now, other);
    world.apps[1].clear();
    world.run_for(Span::from_secs(1));
    assert!(world.apps[0][&id].has_finished);
    world.hosts[0].write(id, b"too late").unwrap();
    world.run_for(Span::from_secs(1));
    assert_eq!(world.hosts[0].end(id), Some(End::Reset));
    assert_eq!(world.hosts[1].connections(), 0);
}

#[test]
fn a_segment_behind_the_last_acknowledgement_is_one_of_no_connection() {
    let mut world = World::new();
    let (id, other) = idle(&mut world);
    world.hosts[0].release(world.now, id);
    world.apps[0].clear();
    world.run_for(Span::from_millis(50));
    world.hosts[1].release(world.now, other);
    world.apps[1].clear();
    world.run_for(Span::from_millis(5));
    (world.path_mtu, world.is_black_hole) = (0, true);
    world.run_for(Span::from_millis(6));
    let (_, from, last) = world.records.last().unwrap().clone();
    assert_eq!(from, 0, "the acknowledgement of the FIN");
    // Both arrive before the host can send.
    world.inject(1, &last);
    world.inject(1, &last);
    world.run_for(Span::ZERO);
    let statistics = world.hosts[1].statistics();
    assert_eq!((statistics.dropped_unknown, statistics.resets), (1, 1));
    assert_eq!(world.hosts[1].connections(), 0);
}

#[test]
fn an_orphan_does_not_wait_for_ever() {
    let mut world = World::new();
    let (_, other) = idle(&mut world);
    world.hosts[1].release(world.now, other);
    world.apps[1].clear();
    world.run_for(Span::from_secs(59));
    assert_eq!(world.hosts[1].connections(), 1, "in FIN-WAIT-2");
    world.run_for(Span::from_secs(2));
    assert_eq!(world.hosts[1].connections(), 0);
}

#[test]
fn wrong_addresses_are_refused_with_the_address() {
    let mut host = Host::new(config(0), [0; 32]).unwrap();
    let now = Time::ZERO;
    let at = |text: &str| text.parse::<SocketAddr>().unwrap();
    for peer in [
        "10.0.0.1:80",
        "224.0.0.1:80",
        "0.0.0.0:80",
        "10.0.0.2:0",
        "[::]:1",
    ] {
        let refused = host.connect(now, at(peer), None);
        assert_eq!(refused, Err(ConnectError::NoPeer(at(peer))));
    }
    let foreign = at("10.0.0.9:80");
    let not_local = ConnectError::NotLocal(foreign.ip());
    assert_eq!(
        host.connect(now, at("10.0.0.2:80"), Some(foreign)),
        Err(not_local)
    );
    assert_eq!(
        host.listen(foreign, 1),
        Err(ListenError::NotLocal(foreign.ip()))
    );
    assert_eq!(host.listen(at("10.0.0.1:0"), 1), Err(ListenError::NoPort));
    host.listen(at("10.0.0.1:80"), 1).unwrap();
    assert_eq!(
        host.listen(at("10.0.0.1:80"), 1),
        Err(ListenError::InUse(at("10.0.0.1:80")))
    );
    let only_v4 = Config::new([v4(0)]);
    let mut host = Host::new(only_v4, [0; 32]).unwrap();
    let peer = at("[2001:db8::2]:80");
    assert_eq!(
        host.connect(now, peer, None),
        Err(ConnectError::NoAddress(peer))
    );
}

#[test]
fn timestamps_measure_round_trips_without_revealing_the_hosts_clock() {
    let mut world = World::new();
    let value = |world: &World, index: usize| {
        let (header, _) = read(&world.records[index].2);
        let values = header.options_iterator().filter_map(|option| match option {
            Ok(TcpOptionElement::Timestamp(value, _)) => Some(value),
            _ => None,
        });
        values.last().unwrap()
    };
    let (id, _) = idle(&mut world);
    let now = world.now;
    let index = world.records.len();
    for port in 1_000..1_010 {
        let peer = SocketAddr::new(v4(1), port);
        world.hosts[0].connect(now, peer, None).unwrap();
    }
    world.run(now);
    let mut values: Vec<u32> = (index..index + 10).map(|at| value(&world, at)).collect();
    values.sort_unstable();
    values.dedup();
    assert_eq!(values.len(), 10, "at one instant");
    let spread = values.last().unwrap() - values.first().unwrap();
    assert!(spread > 1 << 24, "{spread}");
    let connection = world.hosts[0].connection(id).unwrap();
    let measured = connection.rtt().unwrap().latest();
    assert_eq!(measured, Some(Span::from_millis(20)));
}

#[test]
fn a_listener_that_closes_resets_what_nobody_accepted() {
    let mut world = World::new();
    let quiet = App {
        shuts_down: false,
        ..App::sending(b"")
    };
    let now = world.now;
    let port = SocketAddr::new(v4(1), 4_000);
    let listener = world.hosts[1].listen(port, 4).unwrap();
    let id = world.hosts[0].connect(now, port, None).unwrap();
    world.apps[0].insert(id, quiet);
    world.run_for(Span::from_millis(35));
    assert_eq!(world.hosts[0].end(id), None);
    // The world accepts at once: another handshake is under way.
    let second = world.hosts[0].connect(world.now, port, None).unwrap();
    world.run_for(Span::from_millis(15));
    world.hosts[1].unlisten(world.now, listener);
    world.run_for(Span::from_secs(1));
    assert_eq!(world.hosts[0].end(id), None, "it was accepted");
    assert!(matches!(
        world.hosts[0].end(second),
        Some(End::Refused | End::Reset)
    ));
    world.hosts[1].listen(port, 4).unwrap();
}
