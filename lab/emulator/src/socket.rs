//! UDP sockets that send and receive in batches, and the clock for their time stamps.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant, SystemTime};

use comity_units::{Span, Time};
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};

/// The requested receive buffer of sockets, in bytes. The system may grant less.
const RECEIVE_BUFFER: usize = 8 << 20;
/// The maximum length of a UDP datagram, and of a batch of datagrams with offloads.
const DATAGRAM: usize = 65_535;
/// A time stamp older than this means that the wall clock was set, not that the packet waited.
const OLDEST: Span = Span::from_secs(1);

/// The clock of an emulator: nanoseconds since its creation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    #[allow(clippy::disallowed_methods, reason = "this is a real-time host")]
    pub(crate) fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    pub(crate) fn now(self) -> Time {
        Time::ZERO + Span::from(self.origin.elapsed())
    }

    /// The present wall-clock time, and the reading of this clock at the same moment or later.
    ///
    /// If the thread is interrupted between the two readings, both are repeated.
    #[allow(
        clippy::disallowed_methods,
        reason = "the kernel stamps packets with the time of day"
    )]
    fn reading(self) -> Reading {
        const TOGETHER: Span = Span::from_micros(2);
        const ATTEMPTS: usize = 4;
        let attempt = || {
            let before = self.now();
            let wall = SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default();
            let now = self.now();
            (now.saturating_since(before), Reading { now, wall })
        };
        let mut best = attempt();
        for _ in 1..ATTEMPTS {
            if best.0 <= TOGETHER {
                break;
            }
            let next = attempt();
            if next.0 < best.0 {
                best = next;
            }
        }
        best.1
    }
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    now: Time,
    wall: Duration,
}

impl Reading {
    /// The arrival time of a packet with this time stamp of the kernel.
    fn arrival(self, stamp: Option<Duration>) -> Time {
        let age = stamp
            .and_then(|stamp| self.wall.checked_sub(stamp))
            .map_or(Span::ZERO, Span::from);
        if age > OLDEST {
            return self.now;
        }
        self.now.saturating_sub(age)
    }
}

/// A received datagram.
#[derive(Debug)]
pub(crate) struct Incoming<'b> {
    pub(crate) arrival: Time,
    pub(crate) from: SocketAddr,
    /// Its destination address.
    pub(crate) to: Option<IpAddr>,
    pub(crate) ecn: Option<EcnCodepoint>,
    pub(crate) payload: &'b [u8],
}

/// The buffers for a batch of datagrams.
#[derive(Debug)]
pub(crate) struct Buffers {
    bytes: Vec<u8>,
}

impl Buffers {
    pub(crate) fn new() -> Self {
        // The memory is written to, so that it exists before the first packets arrive.
        Self {
            bytes: vec![1; BATCH_SIZE * DATAGRAM],
        }
    }
}

/// A UDP socket that never blocks.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    inode: Option<u64>,
}

impl Socket {
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        // The system may grant less. Drops are counted.
        let _ = state.set_recv_buffer_size(UdpSockRef::from(&socket), RECEIVE_BUFFER);
        let inode = inode(&socket);
        Ok(Self {
            socket,
            state,
            inode,
        })
    }

    /// A socket that sends to `target`, and receives only from it.
    pub(crate) fn towards(target: SocketAddr) -> io::Result<Self> {
        let any: SocketAddr = if target.is_ipv4() {
            ([0, 0, 0, 0], 0).into()
        } else {
            ([0_u16; 8], 0).into()
        };
        let socket = Self::bind(any)?;
        socket.socket.connect(target)?;
        Ok(socket)
    }

    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Its number in the system's table of sockets.
    pub(crate) const fn inode(&self) -> Option<u64> {
        self.inode
    }

    /// Receives one batch, and passes its datagrams on in order. Returns their number.
    ///
    /// # Errors
    /// The system's error, including `WouldBlock`.
    pub(crate) fn receive(
        &self,
        clock: Clock,
        buffers: &mut Buffers,
        mut take: impl FnMut(Incoming<'_>),
    ) -> io::Result<usize> {
        let mut meta = [RecvMeta::default(); BATCH_SIZE];
        let received = {
            let mut chunks = buffers.bytes.chunks_exact_mut(DATAGRAM);
            let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
                std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
            self.state
                .recv(UdpSockRef::from(&self.socket), &mut slices, &mut meta)?
        };
        let reading = clock.reading();
        let mut count = 0;
        let chunks = buffers.bytes.chunks_exact(DATAGRAM);
        for (meta, bytes) in meta.iter().zip(chunks).take(received) {
            let all = bytes.get(..meta.len).unwrap_or(bytes);
            let mut hand_over = |payload| {
                count += 1;
                take(Incoming {
                    arrival: reading.arrival(meta.timestamp),
                    from: meta.addr,
                    to: meta.dst_ip,
                    ecn: meta.ecn,
                    payload,
                });
            };
            if all.is_empty() {
                // A datagram without a payload is valid.
                hand_over(all);
            }
            for payload in all.chunks(meta.stride.max(1)) {
                hand_over(payload);
            }
        }
        Ok(count)
    }

    /// Sends one datagram.
    ///
    /// # Errors
    /// The system's error, which may concern an earlier datagram that the other end refused.
    pub(crate) fn send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.state
            .try_send(UdpSockRef::from(&self.socket), transmit)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn inode(socket: &UdpSocket) -> Option<u64> {
    use std::os::fd::AsRawFd;
    let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).ok()?;
    let name = link.to_str()?;
    name.strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

/// The number of datagrams that the system dropped at these sockets; `None` if it is not reported.
pub(crate) fn drops(inodes: &[u64]) -> Option<u64> {
    let mut found = None;
    for table in ["/proc/self/net/udp", "/proc/self/net/udp6"] {
        let Ok(text) = std::fs::read_to_string(table) else {
            continue;
        };
        found = Some(found.unwrap_or(0) + drops_in(&text, inodes));
    }
    found
}

/// The sum of the last column (drops) over the lines whose tenth column (inode) is in `inodes`.
fn drops_in(table: &str, inodes: &[u64]) -> u64 {
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut columns = line.split_whitespace();
            let inode: u64 = columns.nth(9)?.parse().ok()?;
            inodes
                .contains(&inode)
                .then(|| columns.last()?.parse::<u64>().ok())?
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_read_from_the_systems_table() {
        let table = "\
   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  120: 0100007F:2328 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 41287 2 0000000000000000 17
  121: 0100007F:2329 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 41288 2 0000000000000000 4
  122: 0100007F:232A 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 41289 2 0000000000000000 100
";
        assert_eq!(drops_in(table, &[41287, 41288]), 21);
        assert_eq!(drops_in(table, &[7]), 0);
        assert_eq!(drops_in("", &[41287]), 0);
    }

    #[test]
    fn timestamps_count_unless_the_wall_clock_was_set() {
        let reading = Reading {
            now: Time::from_secs(10),
            wall: Duration::from_secs(1_000_000),
        };
        let stamp = |nanos_before: u64| {
            Some(Duration::from_secs(1_000_000) - Duration::from_nanos(nanos_before))
        };
        assert_eq!(
            reading.arrival(stamp(250_000)),
            Time::from_nanos(9_999_750_000)
        );
        assert_eq!(reading.arrival(None), reading.now);
        assert_eq!(reading.arrival(stamp(3_600_000_000_000)), reading.now);
        let future = Some(Duration::from_secs(1_000_001));
        assert_eq!(reading.arrival(future), reading.now);
    }

    #[test]
    fn a_socket_is_found_in_the_table_and_has_dropped_nothing() {
        let socket = Socket::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let inode = socket.inode().unwrap();
        assert_eq!(drops(&[inode]), Some(0));
    }
}
