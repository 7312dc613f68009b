//! Packets of arbitrary content.

use std::net::SocketAddr;

use comity_units::{Span, Time};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::world::{App, PORT, World, bytes, forge, v4, v6};

/// An arbitrary packet, most often one that passes the first checks.
#[derive(Clone, Debug)]
enum Hostile {
    Noise(Vec<u8>),
    /// A valid packet of the host's connections or to its listener, with random fields.
    Segment {
        to: usize,
        is_v4: bool,
        port: u16,
        sequence: u32,
        acknowledgement: u32,
        flags: u8,
        window: u16,
        options: Vec<u8>,
        payload: usize,
    },
    /// A packet that one host sent, with damaged bytes.
    Replay {
        index: usize,
        damage: Vec<(usize, u8)>,
        to: usize,
    },
}

fn hostile() -> impl Strategy<Value = Hostile> {
    let segment = (
        (0..2_usize, any::<bool>(), any::<u16>()),
        any::<u32>(),
        any::<u32>(),
        any::<u8>(),
        any::<u16>(),
        vec(any::<u8>(), 0..40),
        0..1_400_usize,
    );
    prop_oneof![
        vec(any::<u8>(), 0..120).prop_map(Hostile::Noise),
        segment.prop_map(
            |((to, is_v4, port), sequence, acknowledgement, flags, window, options, payload)| {
                Hostile::Segment {
                    to,
                    is_v4,
                    port,
                    sequence,
                    acknowledgement,
                    flags,
                    window,
                    options,
                    payload,
                }
            }
        ),
        (
            any::<usize>(),
            vec((0..80_usize, any::<u8>()), 0..4),
            0..2_usize
        )
            .prop_map(|(index, damage, to)| Hostile::Replay { index, damage, to }),
    ]
}

impl Hostile {
    fn inject(&self, world: &mut World) {
        match self {
            Self::Noise(noise) => {
                world.inject(0, noise);
                world.inject(1, noise);
            }
            Self::Segment {
                to,
                is_v4,
                port,
                sequence,
                acknowledgement,
                flags,
                window,
                options,
                payload,
            } => {
                let of = |host| if *is_v4 { v4(host) } else { v6(host) };
                let source = SocketAddr::new(of(1 - to), *port);
                let destination = SocketAddr::new(of(*to), PORT);
                let header = |tcp: &mut etherparse::TcpHeader| {
                    tcp.sequence_number = *sequence;
                    tcp.acknowledgment_number = *acknowledgement;
                    tcp.window_size = *window;
                    (tcp.fin, tcp.syn) = (flags & 1 != 0, flags & 2 != 0);
                    (tcp.rst, tcp.psh) = (flags & 4 != 0, flags & 8 != 0);
                    (tcp.ack, tcp.urg) = (flags & 16 != 0, flags & 32 != 0);
                    tcp.set_options_raw(options).unwrap();
                };
                let packet = forge(source, destination, header, &bytes(0, *payload));
                world.inject(*to, &packet);
            }
            Self::Replay { index, damage, to } => {
                if world.records.is_empty() {
                    return;
                }
                let (_, _, packet) = &world.records[index % world.records.len()];
                let mut packet = packet.clone();
                let length = packet.len();
                for (offset, value) in damage {
                    packet[offset % length] = *value;
                }
                world.inject(*to, &packet);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// No packet panics, every packet is counted once, connections stay within the limits, and a
    /// connection whose packets nobody can guess carries its bytes.
    #[test]
    fn any_packet_is_handled(packets in vec((hostile(), 0..30_u64), 1..80)) {
        let mut world = World::new();
        let (there, back) = (bytes(1, 60_000), bytes(2, 60_000));
        let id = world.open(0, true, App::sending(&there), App::sending(&back));
        for (packet, wait) in &packets {
            world.run_for(Span::from_millis(*wait));
            packet.inject(&mut world);
        }
        world.run_for(Span::from_secs(60));
        let own = &world.apps[0][&id];
        prop_assert!(own.received == back && own.has_finished);
        prop_assert!(world.apps[1].values().any(|app| app.received == there));
        for host in &world.hosts {
            let statistics = host.statistics();
            let counted = statistics.accepted + statistics.icmp + statistics.dropped();
            prop_assert_eq!(statistics.received, counted);
            prop_assert!(host.connections() <= 120);
        }
        world.run(Time::from_secs(86_400));
    }
}
