//! The transports' treatment of frames, without their measurement.

pub mod comity;
pub mod quic;
pub mod srt;
pub mod tcp;
pub mod udp;

use std::net::{SocketAddr, UdpSocket};

use bytes::Bytes;
use serde_json::Value;
use socket2::SockRef;

use crate::arguments::Common;
use crate::chunk::Frame;
use crate::failure::{Context, Failure, Result};

/// The encryption passphrase of Comity and SRT; it protects nothing, and costs as much as any.
const PASSPHRASE: &str = "a passphrase for measurements";
/// The requested buffer size of UDP sockets, which prevents local losses of large frames.
const SOCKET_BUFFER: usize = 4 << 20;

/// A connected transport that accepts frames.
pub trait Outgoing {
    /// Accepts all chunks of a frame. It never waits: data that cannot leave yet is queued.
    fn give(&mut self, frame: &Frame, payload: Bytes, deadline_ns: u64) -> Result<()>;

    /// Why no more frames can be submitted.
    fn broken(&self) -> Option<String>;

    /// Waits until everything has left or `until_ns`, ends the connection, and returns statistics.
    async fn finish(self, until_ns: u64) -> Result<Value>;
}

/// How a transport's receiver ended.
pub struct Ended {
    pub why: String,
    pub statistics: Value,
}

fn nobody_called(common: &Common) -> Failure {
    Failure(format!(
        "no sender connected within {:?}; start `compare send --transport {}` at the other end, or raise --wait",
        common.wait,
        common.transport.name()
    ))
}

/// Any port, for a socket that calls `peer`.
fn any_port(peer: SocketAddr) -> SocketAddr {
    match peer.is_ipv4() {
        true => ([0, 0, 0, 0], 0).into(),
        false => ([0_u16; 8], 0).into(),
    }
}

/// A socket with the largest buffer that the system allows.
fn udp_socket(address: SocketAddr) -> Result<tokio::net::UdpSocket> {
    let socket = UdpSocket::bind(address).context(format!(
        "cannot bind {address}; choose an address of this host and a free port"
    ))?;
    let options = SockRef::from(&socket);
    options
        .set_recv_buffer_size(SOCKET_BUFFER)
        .context("cannot set SO_RCVBUF")?;
    options
        .set_send_buffer_size(SOCKET_BUFFER)
        .context("cannot set SO_SNDBUF")?;
    socket
        .set_nonblocking(true)
        .context("cannot make a socket non-blocking")?;
    tokio::net::UdpSocket::from_std(socket).context("cannot use a UDP socket")
}

/// Datagrams that the kernel dropped because the socket at this local port was full.
fn udp_drops(port: u16) -> Option<u64> {
    drops_in(&std::fs::read_to_string("/proc/self/net/udp").ok()?, port)
}

/// As `proc(5)` describes the table: the second column is the local address, the last one the
/// drops.
fn drops_in(table: &str, port: u16) -> Option<u64> {
    let rows = table.lines().skip(1);
    let mut drops = rows.filter_map(|row| {
        let columns: Vec<&str> = row.split_whitespace().collect();
        let (_, local_port) = columns.get(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(local_port, 16) == Ok(port);
        is_it.then(|| columns.last()?.parse().ok()).flatten()
    });
    drops.next()
}

#[cfg(test)]
mod tests {
    use super::drops_in;

    #[test]
    fn drops_are_read_from_the_row_of_the_port() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
 1017: 0100007F:1388 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4711 2 0000000000000000 12
 1018: 0100007F:1389 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4712 2 0000000000000000 0
";
        assert_eq!(
            (
                drops_in(table, 5_000),
                drops_in(table, 5_001),
                drops_in(table, 5_002)
            ),
            (Some(12), Some(0), None)
        );
    }
}
