//! The path MTU, and errors of the network.

use std::net::SocketAddr;

use comity_tcp_host::{Config, ConnectionId, End};
use comity_units::Span;
use etherparse::{Icmpv4Type, PacketBuilder, icmpv4};

use crate::world::{App, PORT, World, bytes, config, read, v4};

/// The largest packet with payload that `from` sent after `index` packets.
fn largest(world: &World, from: usize, index: usize) -> usize {
    let sent = world.records.iter().skip(index);
    let own = sent.filter(|(_, sender, _)| *sender == from);
    own.map(|(_, _, packet)| packet.len()).max().unwrap()
}

#[test]
fn full_packets_have_the_size_of_the_interface() {
    for (is_v4, mtu) in [(true, 1_500), (false, 1_500), (true, 9_000), (false, 1_280)] {
        for timestamps in [true, false] {
            let with = |host: usize| {
                let mut config = Config {
                    mtu,
                    ..config(host)
                };
                config.tcp.timestamps = timestamps;
                config
            };
            let mut world = World::with([with(0), with(1)]);
            world.open(
                0,
                is_v4,
                App::sending(&bytes(1, 200_000)),
                App::sending(b""),
            );
            world.run_for(Span::from_secs(5));
            let (syn, _) = read(&world.records[0].2);
            let header = if is_v4 { 20 } else { 40 };
            assert!(
                format!("{syn:?}").contains(&format!("MaximumSegmentSize({})", mtu - header - 20))
            );
            assert_eq!(largest(&world, 0, 0), mtu as usize, "{is_v4} {timestamps}");
        }
    }
}

/// The wave option of TCP-Real counts as part of the packet: no segment leaves in two.
#[test]
fn the_options_of_a_controller_have_their_room() {
    for controller in ["cubic", "real"] {
        let with = |host: usize| Config {
            controller: controller.into(),
            ..config(host)
        };
        let mut world = World::with([with(0), with(1)]);
        let data = bytes(1, 200_000);
        world.open(0, true, App::sending(&data), App::sending(b""));
        world.run_for(Span::from_secs(5));
        assert_eq!(world.apps[1].first_key_value().unwrap().1.received, data);
        assert_eq!(largest(&world, 0, 0), 1_500, "{controller}");
        let sent = world.records.iter().filter(|(_, sender, _)| *sender == 0);
        // 139 full segments, the handshake and the end.
        let packets = sent.count();
        assert!((139..150).contains(&packets), "{controller}: {packets}");
    }
}

#[test]
fn a_host_sends_no_larger_segments_than_the_peer_accepts() {
    let small = Config {
        mtu: 1_280,
        ..config(1)
    };
    let mut world = World::with([config(0), small]);
    let data = bytes(1, 100_000);
    world.open(0, true, App::sending(&data), App::sending(b""));
    world.run_for(Span::from_secs(5));
    assert_eq!(world.apps[1].first_key_value().unwrap().1.received, data);
    assert_eq!(largest(&world, 0, 0), 1_280, "options included");
}

#[test]
fn a_connection_learns_the_mtu_of_its_path_and_later_ones_know_it() {
    for (is_v4, mtu) in [(true, 1_000), (false, 1_300)] {
        let mut world = World::new();
        world.path_mtu = mtu;
        let (there, back) = (bytes(1, 300_000), bytes(2, 300_000));
        let id = world.open(0, is_v4, App::sending(&there), App::sending(&back));
        world.run_for(Span::from_secs(60));
        assert_eq!(world.apps[0][&id].received, back);
        assert_eq!(world.apps[1].first_key_value().unwrap().1.received, there);
        for host in &world.hosts {
            let statistics = host.statistics();
            assert!(statistics.icmp >= 1, "{statistics:?}");
        }
        let before = world.records.len();
        world.open(0, is_v4, App::sending(&there), App::sending(b""));
        world.run_for(Span::from_secs(60));
        assert_eq!(largest(&world, 0, before), mtu);
    }
}

#[test]
fn reports_about_segments_that_are_not_in_flight_are_ignored() {
    let mut world = World::new();
    let id = world.open(0, true, App::sending(b"short"), App::default());
    world.run_for(Span::from_secs(1));
    let (local, remote) = world.hosts[0].addresses(id).unwrap();
    let connection = world.hosts[0].connection(id).unwrap();
    let sequence = connection.config().initial_sequence.get();
    let report = |sequence: u32, reason| {
        let mut quoted = vec![
            0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        quoted.extend(local.port().to_be_bytes());
        quoted.extend(remote.port().to_be_bytes());
        quoted.extend(sequence.to_be_bytes());
        let mut packet = Vec::new();
        PacketBuilder::ipv4([192, 0, 2, 1], [10, 0, 0, 1], 64)
            .icmpv4(Icmpv4Type::DestinationUnreachable(reason))
            .write(&mut packet, &quoted)
            .unwrap();
        packet
    };
    let too_big = || icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 600 };
    for offset in [0, 6, 7, 100, u32::MAX] {
        world.inject(0, &report(sequence.wrapping_add(offset), too_big()));
        world.inject(0, &report(sequence, icmpv4::DestUnreachableHeader::Port));
    }
    assert_eq!(world.hosts[0].statistics().icmp, 0, "all is acknowledged");
    let mss = world.hosts[0].connection(id).unwrap().config().mss;
    assert_eq!(mss, 1_448);
}

#[test]
fn a_host_that_is_unreachable_ends_the_handshake_and_nothing_else() {
    let mut world = World::new();
    let unreachable = |world: &World, index: usize, reason| {
        let (_, _, quoted) = &world.records[index];
        let mut packet = Vec::new();
        PacketBuilder::ipv4([192, 0, 2, 1], [10, 0, 0, 1], 64)
            .icmpv4(Icmpv4Type::DestinationUnreachable(reason))
            .write(&mut packet, &quoted[..28])
            .unwrap();
        packet
    };
    let now = world.now;
    let stranger = SocketAddr::from(([10, 9, 9, 9], PORT));
    for (reason, end) in [
        (icmpv4::DestUnreachableHeader::Host, None),
        (icmpv4::DestUnreachableHeader::Port, Some(End::Unreachable)),
    ] {
        let id = world.hosts[0].connect(now, stranger, None).unwrap();
        let index = world.records.len();
        world.run(now);
        let packet = unreachable(&world, index, reason.clone());
        world.inject(0, &packet);
        assert_eq!(world.hosts[0].end(id), end, "{reason:?}");
    }
    let kept = App {
        shuts_down: false,
        ..App::sending(b"data")
    };
    let id = world.open(0, true, kept, App::default());
    let index = world.records.len();
    world.run_for(Span::from_millis(25));
    let data = index
        + world.records[index..]
            .iter()
            .position(|(_, from, packet)| *from == 0 && packet.ends_with(b"data"))
            .expect("data left");
    let packet = unreachable(&world, data, icmpv4::DestUnreachableHeader::Port);
    let before = world.hosts[0].statistics().icmp;
    world.inject(0, &packet);
    assert_eq!(world.hosts[0].statistics().icmp, before + 1);
    world.run_for(Span::from_secs(1));
    assert_eq!(world.hosts[0].end(id), None);
    assert_eq!(world.hosts[0].acknowledged(id), Ok(()));
    assert_eq!(
        world.hosts[0].addresses(id).unwrap().1,
        SocketAddr::new(v4(1), PORT)
    );
}

#[test]
fn data_in_flight_is_cut_when_the_path_shrinks() {
    let mut world = World::new();
    let data = bytes(1, 2_000_000);
    let id = world.open(0, true, App::sending(&data), App::sending(b""));
    world.run_for(Span::from_millis(150));
    assert!(world.hosts[0].connection(id).unwrap().in_flight() > 50_000);
    world.path_mtu = 1_006;
    world.run_for(Span::from_secs(30));
    assert_eq!(world.apps[1].first_key_value().unwrap().1.received, data);
    assert!(world.hosts[0].statistics().cut > 0);
}

/// A connection that sends 20 kB every 100 ms for `seconds`; all of it arrives.
fn send_steadily(world: &mut World, is_v4: bool, seconds: u64) -> ConnectionId {
    let open = App {
        shuts_down: false,
        ..App::sending(b"")
    };
    let id = world.open(0, is_v4, open, App::sending(b""));
    for _ in 0..seconds * 10 {
        let app = world.apps[0].get_mut(&id).unwrap();
        app.to_send.extend(bytes(1, 20_000));
        world.run_for(Span::from_millis(100));
    }
    world.run_for(Span::from_secs(10));
    let sent = &world.apps[0][&id].to_send;
    let received = &world.apps[1].last_key_value().unwrap().1.received;
    assert!(received == sent, "{} of {}", received.len(), sent.len());
    id
}

#[test]
fn a_connection_finds_the_mtu_of_a_path_without_reports() {
    for (is_v4, mtu, falls) in [
        (true, 1_492, 1),
        (true, 1_400, 1),
        (true, 1_030, 1),
        (true, 900, 2),
        (false, 1_420, 1),
        (false, 1_280, 1),
    ] {
        let mut world = World::new();
        (world.path_mtu, world.is_black_hole) = (mtu, true);
        let id = send_steadily(&mut world, is_v4, 60);
        let statistics = *world.hosts[0].statistics();
        assert_eq!((statistics.black_holes, statistics.icmp), (falls, 0));
        let found = world.hosts[0].path_mtu(id).unwrap() as usize;
        assert!(found <= mtu && mtu - found < 16, "{found} of {mtu}");
        let sent = world.records.iter().filter(|(_, sender, _)| *sender == 0);
        let too_large = sent.filter(|(_, _, packet)| packet.len() > mtu).count();
        assert!(too_large < 40, "{too_large}");
        let timeouts = world.hosts[0].connection(id).unwrap().statistics().timeouts;
        assert_eq!(u64::from(timeouts), 2 + falls, "probes cost none");
        // A later connection knows the size.
        let before = world.records.len();
        world.open(0, is_v4, App::sending(&bytes(1, 20_000)), App::sending(b""));
        world.run_for(Span::from_secs(5));
        assert_eq!(largest(&world, 0, before), found);
    }
}

/// What looks like a black hole and is none: the first probe brings the former size back.
#[test]
fn after_an_outage_packets_are_as_large_as_before() {
    let mut world = World::new();
    world.is_black_hole = true;
    let open = App {
        shuts_down: false,
        ..App::sending(b"")
    };
    let id = world.open(0, true, open, App::sending(b""));
    world.run_for(Span::from_secs(1));
    world.path_mtu = 0;
    let extend = |world: &mut World| {
        let app = world.apps[0].get_mut(&id).unwrap();
        app.to_send.extend(bytes(1, 20_000));
        world.run_for(Span::from_millis(100));
    };
    for _ in 0..50 {
        extend(&mut world);
    }
    assert_eq!(world.hosts[0].path_mtu(id), Some(552));
    world.path_mtu = usize::MAX;
    for _ in 0..100 {
        extend(&mut world);
    }
    assert_eq!(world.hosts[0].path_mtu(id), Some(1_500));
    assert_eq!(world.hosts[0].statistics().path_probes, 1);
    let received = &world.apps[1].first_key_value().unwrap().1.received;
    assert!(*received == world.apps[0][&id].to_send);
}
