//! Flows of plain UDP: datagrams as the workload gives them, without feedback.

use std::net::{SocketAddr, UdpSocket};
use std::thread::JoinHandle;
use std::time::Duration;

use comity_sim::host::{FlowPlan, Source};
use comity_units::Time;

use crate::clock::Clock;
use crate::router::Interval;
use crate::tcp::{Ends, wait_until};

/// How long a read may block before the thread looks whether the run is over.
const PATIENCE: Duration = Duration::from_millis(100);
/// What IPv4 and UDP take of each packet.
const HEADERS: usize = 28;
/// The largest datagram.
const LARGEST: usize = 65_507;

/// A flow of datagrams that runs. Its packets are counted by the router, its payload here.
#[derive(Debug)]
pub(crate) struct UdpFlow {
    receiver: JoinHandle<std::io::Result<(u64, u64)>>,
    sender: JoinHandle<std::io::Result<()>>,
}

impl UdpFlow {
    /// Starts both ends on threads of their own.
    pub(crate) fn start(
        ends: Ends,
        mut source: Source,
        plan: &FlowPlan,
        clock: Clock,
        interval: Interval,
    ) -> Self {
        let Ends {
            source: near,
            destination: far,
            address,
            port,
        } = ends;
        let address = SocketAddr::new(address, port);
        let receiver = std::thread::spawn(move || {
            far.enter().map_err(std::io::Error::other)?;
            let socket = UdpSocket::bind(address)?;
            receive(&socket, clock, interval)
        });
        let (from, until) = (plan.started_at, plan.stopped_at);
        let sender = std::thread::spawn(move || {
            near.enter().map_err(std::io::Error::other)?;
            let socket = UdpSocket::bind(SocketAddr::new(any(address), 0))?;
            wait_until(clock, from);
            socket.connect(address)?;
            let zeros = vec![0; LARGEST];
            loop {
                let next = source.peek();
                if next >= until {
                    return Ok(());
                }
                wait_until(clock, next);
                let Some((bytes, _)) = source.next_section() else {
                    return Ok(());
                };
                let payload = (bytes as usize).saturating_sub(HEADERS).min(LARGEST);
                // A full device or a closed port is the network's doing.
                let _ = socket.send(&zeros[..payload]);
            }
        });
        Self { receiver, sender }
    }

    /// Waits for both ends. Returns the payload received, measured and since the start, and what failed.
    pub(crate) fn finish(self) -> (u64, u64, Option<String>) {
        let sent = self.sender.join();
        let received = self.receiver.join();
        let failure = match sent {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("its sender panicked".into()),
        };
        match received {
            Ok(Ok((measured, total))) => (measured, total, failure),
            Ok(Err(error)) => (0, 0, Some(error.to_string())),
            Err(_) => (0, 0, Some("its receiver panicked".into())),
        }
    }
}

fn any(like: SocketAddr) -> std::net::IpAddr {
    if like.is_ipv4() {
        std::net::Ipv4Addr::UNSPECIFIED.into()
    } else {
        std::net::Ipv6Addr::UNSPECIFIED.into()
    }
}

fn receive(socket: &UdpSocket, clock: Clock, interval: Interval) -> std::io::Result<(u64, u64)> {
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut buffer = vec![0; LARGEST];
    let (mut measured, mut total) = (0, 0);
    while clock.now() < interval.end {
        // Nothing for a while, or an interrupt: the clock decides.
        let Ok(length) = socket.recv(&mut buffer) else {
            continue;
        };
        let now: Time = clock.now();
        if now > interval.end {
            break;
        }
        total += length as u64;
        if now >= interval.warmup {
            measured += length as u64;
        }
    }
    Ok((measured, total))
}
