//! One connection at a time: every role, both families, every way to end.

use std::io::ErrorKind;
use std::net::SocketAddr;

use comity_tcp_host::Config;
use comity_tcp_host::net::{TcpListener, TcpStream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{
    Joined, assert_no_connection_was_reset, beside_kernel, config, exchange, host, ip, join, kernel,
};
use crate::world::bytes;

/// Both roles over both families.
const ROLES: [(bool, bool); 4] = [(true, true), (true, false), (false, true), (false, false)];

#[test]
fn megabytes_arrive_in_both_directions_whoever_opens() {
    beside_kernel(
        config(),
        &[],
        |tun| tun,
        async |stack| {
            for (number, (is_v4, kernel_opens)) in ROLES.into_iter().enumerate() {
                let (there, back) = (bytes(number as u8, 5_000_000), bytes(100, 4_000_000));
                let Joined { ours, theirs } = join(&stack, is_v4, kernel_opens, 5_000).await;
                let (at_kernel, at_host) =
                    tokio::join!(exchange(theirs, &back), exchange(ours, &there));
                assert!(at_kernel.unwrap() == there, "{is_v4} {kernel_opens}");
                assert!(at_host.unwrap() == back, "{is_v4} {kernel_opens}");
            }
            let statistics = stack.statistics();
            assert_no_connection_was_reset(&stack);
            assert_eq!(
                statistics.dropped_malformed_tcp + statistics.dropped_checksum,
                0
            );
            assert_eq!((statistics.opened, statistics.opened_by_peer), (2, 2));
        },
    );
}

/// The kernel gives the device packets of more segments than it has room for at first.
#[test]
fn small_segments_arrive_in_large_packets() {
    beside_kernel(
        config(),
        &[],
        |tun| tun,
        async |stack| {
            ip("route replace 10.77.0.0/24 dev comity0 mtu lock 300\n");
            let data = bytes(5, 3_000_000);
            let Joined { ours, theirs } = join(&stack, true, true, 5_006).await;
            let (at_kernel, at_host) = tokio::join!(exchange(theirs, &data), exchange(ours, b"ok"));
            assert!(at_host.unwrap() == data);
            assert_eq!(at_kernel.unwrap(), b"ok");
            let received = stack.statistics().received;
            assert!(received > 3_000_000 / 260, "{received} packets");
            assert_no_connection_was_reset(&stack);
        },
    );
}

#[test]
fn either_side_may_close_its_direction_first() {
    beside_kernel(
        config(),
        &[],
        |tun| tun,
        async |stack| {
            for (is_v4, kernel_opens) in ROLES {
                let Joined {
                    mut ours,
                    mut theirs,
                } = join(&stack, is_v4, kernel_opens, 5_001).await;
                let mut text = Vec::new();
                theirs.write_all(b"question").await.unwrap();
                theirs.shutdown().await.unwrap();
                ours.read_to_end(&mut text).await.unwrap();
                ours.write_all(b"answer").await.unwrap();
                ours.shutdown().await.unwrap();
                theirs.read_to_end(&mut text).await.unwrap();
                assert_eq!(text, b"questionanswer");
                let Joined {
                    mut ours,
                    mut theirs,
                } = join(&stack, is_v4, !kernel_opens, 5_002).await;
                let mut text = Vec::new();
                ours.write_all(b"question").await.unwrap();
                ours.shutdown().await.unwrap();
                theirs.read_to_end(&mut text).await.unwrap();
                theirs.write_all(b"answer").await.unwrap();
                drop(theirs);
                ours.read_to_end(&mut text).await.unwrap();
                assert_eq!(text, b"questionanswer");
            }
            assert_no_connection_was_reset(&stack);
        },
    );
}

#[test]
fn resets_reach_the_other_side() {
    beside_kernel(
        config(),
        &[],
        |tun| tun,
        async |stack| {
            for (is_v4, kernel_opens) in ROLES {
                let Joined { mut ours, theirs } = join(&stack, is_v4, kernel_opens, 5_003).await;
                theirs.set_zero_linger().unwrap();
                drop(theirs);
                let error = ours.read_u8().await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                let Joined { ours, mut theirs } = join(&stack, is_v4, kernel_opens, 5_004).await;
                ours.abort();
                let error = theirs.read_u8().await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                // Data that nobody read.
                let Joined { ours, mut theirs } = join(&stack, is_v4, kernel_opens, 5_005).await;
                let before = stack.statistics().accepted;
                theirs.write_all(b"unread").await.unwrap();
                while stack.statistics().accepted == before {
                    tokio::task::yield_now().await;
                }
                drop(ours);
                let error = theirs.read_u8().await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
            }
        },
    );
}

#[test]
fn closed_ports_refuse() {
    beside_kernel(
        config(),
        &[],
        |tun| tun,
        async |stack| {
            for is_v4 in [true, false] {
                let closed = SocketAddr::new(kernel(is_v4), 9);
                let error = TcpStream::connect(&stack, closed).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
                let closed = SocketAddr::new(host(is_v4), 9);
                let error = tokio::net::TcpStream::connect(closed).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
            }
            assert_eq!(stack.connections(), 0);
        },
    );
}

#[test]
fn a_listener_that_is_gone_refuses_and_may_come_back() {
    beside_kernel(
        config(),
        &[],
        |tun| tun,
        async |stack| {
            let address = SocketAddr::new(host(true), 5_006);
            for _ in 0..3 {
                let listener = TcpListener::bind(&stack, address, 1).unwrap();
                assert_eq!(listener.local_addr(), address);
                drop(listener);
                let error = tokio::net::TcpStream::connect(address).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
            }
        },
    );
}

/// Settings of the kernel, and the same features of the host.
type Features = (&'static [(&'static str, &'static str)], fn(&mut Config));

#[test]
fn options_are_negotiated_whoever_lacks_them() {
    const ALL: &[(&str, &str)] = &[];
    const NONE: &[(&str, &str)] = &[
        ("tcp_sack", "0"),
        ("tcp_timestamps", "0"),
        ("tcp_window_scaling", "0"),
    ];
    const NO_SACK: &[(&str, &str)] = &[("tcp_sack", "0")];
    const NO_TIMESTAMPS: &[(&str, &str)] = &[("tcp_timestamps", "0")];
    const ECN: &[(&str, &str)] = &[("tcp_ecn", "1")];
    let cases: [Features; 8] = [
        (NONE, |_| {}),
        (NO_SACK, |_| {}),
        (NO_TIMESTAMPS, |_| {}),
        (ECN, |config| config.tcp.ecn = true),
        (ALL, |config| {
            config.tcp.sack = false;
            config.tcp.timestamps = false;
            config.tcp.window_scaling = false;
        }),
        (ALL, |config| config.tcp.sack = false),
        (ALL, |config| config.mtu = 576),
        (NO_TIMESTAMPS, |config| config.mtu = 9_000),
    ];
    for (settings, change) in cases {
        let mut config = Config::new([host(true)]);
        change(&mut config);
        let mtu = config.mtu;
        beside_kernel(
            config,
            settings,
            |tun| tun,
            async |stack| {
                for kernel_opens in [true, false] {
                    let (there, back) = (bytes(1, 1_000_000), bytes(2, 1_000_000));
                    let Joined { ours, theirs } = join(&stack, true, kernel_opens, 5_007).await;
                    let (at_kernel, at_host) =
                        tokio::join!(exchange(theirs, &back), exchange(ours, &there));
                    assert!(at_kernel.unwrap() == there, "{settings:?} {mtu}");
                    assert!(at_host.unwrap() == back, "{settings:?} {mtu}");
                }
                assert_no_connection_was_reset(&stack);
            },
        );
    }
}
