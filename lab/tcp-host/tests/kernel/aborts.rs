//! Connections that one end aborts at a drawn moment: the other end learns of it, and nothing is
//! left.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use comity_tcp_host::net::{Stack, TcpListener, TcpStream};
use comity_tcp_host::{Config, KeepAlive};
use comity_units::Span;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::task::JoinSet;

use super::lossy::{Disturbance, Lossy};
use super::{beside_kernel, config, host, kernel};

/// The port of all listeners.
const PORT: u16 = 6_001;

/// How a connection ends.
#[derive(Clone, Copy, Debug)]
struct Plan {
    is_v4: bool,
    kernel_opens: bool,
    /// Whether the end that accepts aborts.
    acceptor_aborts: bool,
    /// Whether it closes with unread data instead of a plain abort.
    is_close: bool,
    /// How many bytes it reads before.
    after: u32,
}

impl Plan {
    fn draw(number: u64) -> Self {
        let drawn = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
        let bit = |index: u32| drawn >> index & 1 == 0;
        let after = (drawn >> 8) as u32 % 100_000;
        Self {
            is_v4: bit(0),
            kernel_opens: bit(1),
            acceptor_aborts: bit(2),
            is_close: bit(3),
            // Some end as soon as they are open.
            after: if bit(4) && bit(5) { 0 } else { after },
        }
    }

    /// What the opener tells the acceptor.
    fn header(self) -> [u8; 6] {
        let [a, b, c, d] = self.after.to_be_bytes();
        [
            self.acceptor_aborts.into(),
            self.is_close.into(),
            a,
            b,
            c,
            d,
        ]
    }
}

/// A stream that can be reset.
trait Abort: AsyncRead + AsyncWrite + Unpin {
    fn abort(self);
}

impl Abort for TcpStream {
    fn abort(self) {
        Self::abort(&self);
    }
}

impl Abort for tokio::net::TcpStream {
    fn abort(self) {
        self.set_zero_linger().unwrap();
    }
}

/// Reads `after` bytes of the endless stream and ends the connection.
async fn end(mut stream: impl Abort, is_close: bool, after: u32) -> Result<(), String> {
    let mut buffer = [0; 4_096];
    let mut left = after as usize;
    while left > 0 {
        let length = left.min(buffer.len());
        match stream.read(&mut buffer[..length]).await {
            Ok(0) => return Err("the endless stream ended".into()),
            Ok(length) => left -= length,
            Err(error) => return Err(format!("{left} bytes before the end: {error}")),
        }
    }
    if !is_close {
        stream.abort();
    }
    Ok(())
}

/// Writes until the peer resets the connection.
async fn survive(mut stream: impl AsyncWrite + Unpin) -> Result<(), String> {
    loop {
        if let Err(error) = stream.write_all(&[0; 4_096]).await {
            return match error.kind() {
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Ok(()),
                _ => Err(format!("expected a reset: {error}")),
            };
        }
    }
}

async fn accept(mut stream: impl Abort) -> Result<(), String> {
    let mut header = [0; 6];
    if let Err(error) = stream.read_exact(&mut header).await {
        // The opener was faster.
        return match error.kind() {
            ErrorKind::ConnectionReset => Ok(()),
            _ => Err(format!("header: {error}")),
        };
    }
    let [acceptor_aborts, is_close, after @ ..] = header;
    if acceptor_aborts == 1 {
        end(stream, is_close == 1, u32::from_be_bytes(after)).await
    } else {
        survive(stream).await
    }
}

async fn open<S: Abort>(
    connection: impl Future<Output = std::io::Result<S>>,
    plan: Plan,
) -> Result<(), String> {
    let mut stream = connection
        .await
        .map_err(|error| format!("connect: {error}"))?;
    let header = stream.write_all(&plan.header()).await;
    header.map_err(|error| format!("header: {error}"))?;
    if plan.acceptor_aborts {
        survive(stream).await
    } else {
        end(stream, plan.is_close, plan.after).await
    }
}

/// How both ends find out that a reset was lost: who waits for data would wait for ever.
const PROBES: KeepAlive = KeepAlive {
    idle: Span::from_secs(2),
    interval: Span::from_secs(1),
    probes: 8,
};

fn probe(stream: &tokio::net::TcpStream) {
    let probes = TcpKeepalive::new()
        .with_time(PROBES.idle.into())
        .with_interval(PROBES.interval.into())
        .with_retries(PROBES.probes);
    SockRef::from(stream).set_tcp_keepalive(&probes).unwrap();
}

fn probing() -> Config {
    Config {
        keep_alive: Some(PROBES),
        ..config()
    }
}

/// Sockets of the kernel in this namespace that are no listeners.
fn kernel_connections() -> usize {
    const LISTEN: &str = "0A";
    let tables = ["tcp", "tcp6"].map(|name| {
        let table = std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap();
        let states = table
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().nth(3));
        states.filter(|state| *state != LISTEN).count()
    });
    tables.iter().sum()
}

/// Opens and aborts `count` connections, `at_once` at a time, and waits until both ends have
/// forgotten them. Returns the failures.
async fn run(stack: &Stack, count: u64, at_once: usize, seed: u64) -> Vec<String> {
    let (sender, mut results) = tokio::sync::mpsc::unbounded_channel();
    let mut servers = JoinSet::new();
    for is_v4 in [true, false] {
        let listener = TcpListener::bind(stack, SocketAddr::new(host(is_v4), PORT), 256).unwrap();
        let ours = sender.clone();
        servers.spawn(async move {
            let mut serving = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let sender = ours.clone();
                serving.spawn(async move { sender.send(accept(stream).await) });
            }
        });
        let address = SocketAddr::new(kernel(is_v4), PORT);
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let theirs = sender.clone();
        servers.spawn(async move {
            let mut serving = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                probe(&stream);
                let sender = theirs.clone();
                serving.spawn(async move { sender.send(accept(stream).await) });
            }
        });
    }
    let permits = Arc::new(tokio::sync::Semaphore::new(at_once));
    let mut clients = JoinSet::new();
    for number in 0..count {
        let (stack, permits) = (stack.clone(), Arc::clone(&permits));
        clients.spawn(async move {
            let _permit = permits.acquire_owned().await.unwrap();
            let plan = Plan::draw(number + seed);
            let result = if plan.kernel_opens {
                let address = SocketAddr::new(host(plan.is_v4), PORT);
                open(tokio::net::TcpStream::connect(address), plan).await
            } else {
                let address = SocketAddr::new(kernel(plan.is_v4), PORT);
                open(TcpStream::connect(&stack, address), plan).await
            };
            result.map_err(|reason| format!("{number} {plan:?}: {reason}"))
        });
    }
    let mut failures = Vec::new();
    while let Some(result) = clients.join_next().await {
        failures.extend(result.unwrap().err());
    }
    while stack.connections() > 0 || kernel_connections() > 0 {
        tokio::task::yield_now().await;
    }
    while let Ok(result) = results.try_recv() {
        failures.extend(result.err().map(|reason| format!("acceptor: {reason}")));
    }
    failures
}

const CLEAN: Disturbance = Disturbance {
    lost: 0,
    repeated: 0,
    overtaken: 0,
    damaged: 0,
};
const CHAOTIC: Disturbance = Disturbance {
    lost: 30,
    repeated: 20,
    overtaken: 30,
    damaged: 10,
};

#[test]
fn aborted_connections_end_at_both_ends_and_leave_nothing() {
    for (seed, disturbance) in [(1, CLEAN), (2, CHAOTIC)] {
        let wrap = |tun| Lossy::new(tun, disturbance, seed);
        beside_kernel(probing(), &[], wrap, async move |stack| {
            let failures = run(&stack, 300, 50, seed * 1_000).await;
            assert_eq!(failures, [""; 0], "{disturbance:?}");
            assert!(stack.statistics().resets > 0);
        });
    }
}

/// Ten thousand connections that one end aborts:
///
/// ```text
/// cargo test -p comity-tcp-host --test it -- --ignored ten_thousand
/// ```
#[test]
#[ignore = "takes minutes"]
fn ten_thousand_aborted_connections_leave_nothing() {
    for seed in 1..=10 {
        let disturbance = if seed % 2 == 0 { CHAOTIC } else { CLEAN };
        let wrap = |tun| Lossy::new(tun, disturbance, seed);
        beside_kernel(probing(), &[], wrap, async move |stack| {
            let failures = run(&stack, 1_000, 100, seed * 10_000).await;
            assert_eq!(failures, [""; 0], "{seed} {disturbance:?}");
        });
    }
}
