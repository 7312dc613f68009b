//! Many connections at once, through disturbances.

use std::net::SocketAddr;
use std::sync::Arc;

use comity_tcp_host::net::{Stack, TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::lossy::{Disturbance, Lossy};
use super::{assert_no_connection_was_reset, beside_kernel, config, exchange, host, kernel};
use crate::world::bytes;

/// The port of the listeners, those of the host and those of the kernel.
const PORT: u16 = 6_000;

/// Opens `count` connections, `at_once` at a time, of either role and family. Each carries up to
/// `largest` bytes in both directions; returns the failures.
async fn run(stack: &Stack, count: u64, at_once: usize, largest: u64, seed: u64) -> Vec<String> {
    let mut servers = JoinSet::new();
    for is_v4 in [true, false] {
        let listener = TcpListener::bind(stack, SocketAddr::new(host(is_v4), PORT), 256).unwrap();
        servers.spawn(async move {
            let mut serving = JoinSet::new();
            while let Ok((stream, peer)) = listener.accept().await {
                // The port tells both ends which bytes to send.
                serving.spawn(async move { exchange(stream, &answer(peer, largest)).await });
            }
        });
        let address = SocketAddr::new(kernel(is_v4), PORT);
        let socket = tokio::net::TcpSocket::new_v4();
        let socket = if is_v4 {
            socket
        } else {
            tokio::net::TcpSocket::new_v6()
        }
        .unwrap();
        socket.bind(address).unwrap();
        let listener = socket.listen(256).unwrap();
        servers.spawn(async move {
            let mut serving = JoinSet::new();
            while let Ok((stream, peer)) = listener.accept().await {
                serving.spawn(async move { exchange(stream, &answer(peer, largest)).await });
            }
        });
    }
    let permits = Arc::new(tokio::sync::Semaphore::new(at_once));
    let mut clients = JoinSet::new();
    for number in 0..count {
        let (stack, permits) = (stack.clone(), Arc::clone(&permits));
        clients.spawn(async move {
            let _permit = permits.acquire_owned().await.unwrap();
            let drawn = (number + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            let (is_v4, kernel_opens) = (drawn & 1 == 0, drawn & 2 == 0);
            let question = bytes(drawn as u8, (drawn >> 8) as usize % largest as usize);
            let result = if kernel_opens {
                let address = SocketAddr::new(host(is_v4), PORT);
                open(
                    tokio::net::TcpStream::connect(address),
                    |it| it.local_addr(),
                    &question,
                    largest,
                )
                .await
            } else {
                let address = SocketAddr::new(kernel(is_v4), PORT);
                let local = |it: &TcpStream| it.addresses().map(|(local, _)| local);
                open(
                    TcpStream::connect(&stack, address),
                    local,
                    &question,
                    largest,
                )
                .await
            };
            result.map_err(|reason| format!("{number} {is_v4} {kernel_opens}: {reason}"))
        });
    }
    let mut failures = Vec::new();
    while let Some(result) = clients.join_next().await {
        failures.extend(result.unwrap().err());
    }
    failures
}

/// What the end that accepts a connection from this address sends.
fn answer(peer: SocketAddr, largest: u64) -> Vec<u8> {
    let port = u64::from(peer.port());
    bytes(port as u8, (port.wrapping_mul(40_503) % largest) as usize)
}

/// Opens a connection, sends the question and compares the answer.
async fn open<S>(
    connection: impl Future<Output = std::io::Result<S>>,
    local: impl FnOnce(&S) -> std::io::Result<SocketAddr>,
    question: &[u8],
    largest: u64,
) -> Result<(), String>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite,
{
    let stream = connection
        .await
        .map_err(|error| format!("connect: {error}"))?;
    let local = local(&stream).map_err(|error| format!("address: {error}"))?;
    let received = exchange(stream, question).await;
    let received = received.map_err(|error| format!("exchange: {error}"))?;
    let expected = answer(local, largest);
    if received == expected {
        Ok(())
    } else {
        Err(format!("{} bytes of {}", received.len(), expected.len()))
    }
}

#[test]
fn connections_carry_their_bytes_through_loss_and_reordering() {
    let disturbance = Disturbance {
        lost: 20,
        repeated: 10,
        overtaken: 20,
        damaged: 5,
    };
    let wrap = |tun| Lossy::new(tun, disturbance, 1);
    beside_kernel(config(), &[], wrap, async move |stack| {
        let failures = run(&stack, 200, 50, 60_000, 1).await;
        assert_eq!(failures, [""; 0]);
        let statistics = stack.statistics();
        assert!(statistics.dropped_checksum > 0, "{statistics:?}");
    });
}

#[test]
fn hundreds_of_connections_are_open_at_once() {
    beside_kernel(
        config(),
        &[],
        |tun| tun,
        async |stack| {
            let failures = run(&stack, 1_000, 500, 20_000, 2).await;
            assert_eq!(failures, [""; 0]);
            assert_no_connection_was_reset(&stack);
            let statistics = stack.statistics();
            assert_eq!(statistics.opened + statistics.opened_by_peer, 1_000);
        },
    );
}

/// Ten thousand connections with drawn roles, families and lengths, under drawn disturbances and
/// options:
///
/// ```text
/// cargo test -p comity-tcp-host --test it -- --ignored ten_thousand
/// ```
#[test]
#[ignore = "takes minutes"]
fn ten_thousand_connections_carry_their_bytes() {
    const ALL: Settings = &[];
    const NO_SACK: Settings = &[("tcp_sack", "0")];
    const NO_TIMESTAMPS: Settings = &[("tcp_timestamps", "0")];
    const NONE: Settings = &[
        ("tcp_sack", "0"),
        ("tcp_timestamps", "0"),
        ("tcp_window_scaling", "0"),
    ];
    let clean = Disturbance {
        lost: 0,
        repeated: 0,
        overtaken: 0,
        damaged: 0,
    };
    let lossy = Disturbance {
        lost: 20,
        overtaken: 10,
        ..clean
    };
    let chaotic = Disturbance {
        lost: 50,
        repeated: 30,
        overtaken: 50,
        damaged: 20,
    };
    let cases = [
        (ALL, 1_500, clean),
        (ALL, 1_500, lossy),
        (ALL, 1_280, chaotic),
        (NO_SACK, 1_500, lossy),
        (NO_SACK, 1_500, chaotic),
        (NO_TIMESTAMPS, 1_500, chaotic),
        (NONE, 1_280, lossy),
        (NONE, 9_000, chaotic),
    ];
    for (seed, (settings, mtu, disturbance)) in (1..).zip(cases) {
        let config = comity_tcp_host::Config { mtu, ..config() };
        let wrap = |tun| Lossy::new(tun, disturbance, seed);
        beside_kernel(config, settings, wrap, async move |stack| {
            let failures = run(&stack, 1_250, 100, 100_000, seed * 10_000).await;
            assert_eq!(failures, [""; 0], "{settings:?} {mtu} {disturbance:?}");
        });
    }
}

/// Settings of the kernel.
type Settings = &'static [(&'static str, &'static str)];
