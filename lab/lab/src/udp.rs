//! Flows of plain UDP: the datagrams of the workload, without feedback.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::thread::JoinHandle;
use std::time::Duration;

use comity_sim::host::{FlowPlan, Source};
use comity_transport::wire::limits::UDP_IPV4;

use crate::clock::RunClock;
use crate::error::Error;
use crate::router::Interval;
use crate::tcp_flow::Ends;

/// The time that a read may block before the thread checks whether the run is over.
const PATIENCE: Duration = Duration::from_millis(100);
/// The size of the headers of IPv4 and UDP in a packet.
const HEADERS: usize = UDP_IPV4 as usize;
/// The largest datagram.
const LARGEST: usize = 65_507;
/// The requested receive buffer of a socket. The system may grant less.
const RECEIVE_BUFFER: usize = 4 << 20;

/// A running flow of datagrams. The router counts its packets, and the destination counts its
/// bytes.
#[derive(Debug)]
pub(crate) struct UdpFlow {
    receiver: JoinHandle<(u64, u64)>,
    sender: JoinHandle<()>,
}

impl UdpFlow {
    /// Starts both ends on separate threads. The destination listens when this returns.
    pub(crate) fn start(
        ends: Ends<'_>,
        source: Source,
        plan: &FlowPlan,
        clock: &RunClock,
        interval: Interval,
    ) -> Result<Self, Error> {
        let address = SocketAddr::new(ends.address, ends.port);
        let purpose = || format!("cannot listen on {address}");
        let receiving = ends.destination.within(|| {
            let socket = UdpSocket::bind(address).map_err(Error::system(purpose()))?;
            socket
                .set_read_timeout(Some(PATIENCE))
                .map_err(Error::system(purpose()))?;
            // The system may grant less, and counts its drops.
            let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER);
            Ok(socket)
        })?;
        let purpose = || format!("cannot send to {address}");
        let sending = ends.source.within(|| {
            let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
            let socket = UdpSocket::bind(any).map_err(Error::system(purpose()))?;
            socket.connect(address).map_err(Error::system(purpose()))?;
            Ok(socket)
        })?;
        let (of_sender, of_receiver) = (clock.clone(), clock.clone());
        let plan = plan.clone();
        Ok(Self {
            receiver: std::thread::spawn(move || receive(&receiving, &of_receiver, interval)),
            sender: std::thread::spawn(move || send(&sending, source, &plan, &of_sender)),
        })
    }

    /// Waits for both ends. Returns the number of bytes received on the wire: during the
    /// measurement, and since the start.
    pub(crate) fn finish(self) -> (u64, u64) {
        let sent = self.sender.join();
        match (sent, self.receiver.join()) {
            (Ok(()), Ok(received)) => received,
            (Err(panic), _) | (_, Err(panic)) => std::panic::resume_unwind(panic),
        }
    }
}

fn send(socket: &UdpSocket, mut source: Source, plan: &FlowPlan, clock: &RunClock) {
    let mut payload = vec![0; LARGEST];
    let mut number = 0_u64;
    while source.peek() < plan.stopped_at {
        clock.wait_until(source.peek());
        if clock.is_off() {
            return;
        }
        let Some(bytes) = source.next_size() else {
            return;
        };
        // Makes packets distinguishable in captures.
        if let Some(first) = payload.first_chunk_mut() {
            *first = number.to_be_bytes();
        }
        number += 1;
        let length = (bytes as usize).saturating_sub(HEADERS).min(LARGEST);
        // A full device or a closed port counts as an effect of the network.
        let _ = socket.send(payload.get(..length).unwrap_or_default());
    }
}

fn receive(socket: &UdpSocket, clock: &RunClock, interval: Interval) -> (u64, u64) {
    let mut buffer = vec![0; LARGEST];
    let (mut measured, mut total) = (0, 0);
    while clock.now() < interval.end {
        // After silence or an interrupt, the clock decides.
        let Ok(length) = socket.recv(&mut buffer) else {
            continue;
        };
        let now = clock.now();
        if now > interval.end {
            break;
        }
        let bytes = (length + HEADERS) as u64;
        total += bytes;
        if now >= interval.warmup {
            measured += bytes;
        }
    }
    (measured, total)
}
