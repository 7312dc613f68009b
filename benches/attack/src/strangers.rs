//! A socket with every address of 127.0.0.0/8.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};

/// The longest reply of interest.
const LONGEST: usize = 2_048;
/// Room for the replies of some milliseconds.
const RECEIVE_BUFFER: usize = 32 << 20;

/// Packets and their bytes, each way.
#[derive(Clone, Copy, Default)]
pub(crate) struct Traffic {
    pub(crate) sent: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received: u64,
    pub(crate) received_bytes: u64,
}

/// Sends from any address of 127.0.0.0/8, all with one port, and gets what comes back to them.
pub(crate) struct Strangers {
    socket: UdpSocket,
    state: UdpSocketState,
    buffers: Vec<u8>,
    pub(crate) traffic: Traffic,
}

impl Strangers {
    pub(crate) fn bind() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        // The system grants what it allows.
        let _ = state.set_recv_buffer_size(UdpSockRef::from(&socket), RECEIVE_BUFFER);
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            state,
            buffers: vec![0; BATCH_SIZE * LONGEST],
            traffic: Traffic::default(),
        })
    }

    pub(crate) fn send(&mut self, from: Ipv4Addr, to: SocketAddr, packet: &[u8]) -> io::Result<()> {
        let transmit = Transmit {
            destination: to,
            ecn: None,
            contents: packet,
            segment_size: None,
            src_ip: Some(IpAddr::V4(from)),
        };
        match self
            .state
            .try_send(UdpSockRef::from(&self.socket), &transmit)
        {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
        self.traffic.sent += 1;
        self.traffic.sent_bytes += packet.len() as u64;
        Ok(())
    }

    /// Gives each waiting packet with the address that it came to.
    pub(crate) fn receive(&mut self, mut each: impl FnMut(Ipv4Addr, &mut [u8])) -> io::Result<()> {
        loop {
            let mut meta = [RecvMeta::default(); BATCH_SIZE];
            let mut chunks = self.buffers.chunks_exact_mut(LONGEST);
            let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
                std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
            let socket = UdpSockRef::from(&self.socket);
            let count = match self.state.recv(socket, &mut slices, &mut meta) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            for (meta, slice) in meta[..count].iter().zip(&mut slices) {
                let Some(IpAddr::V4(to)) = meta.dst_ip else {
                    continue;
                };
                for packet in slice[..meta.len].chunks_mut(meta.stride.max(1)) {
                    self.traffic.received += 1;
                    self.traffic.received_bytes += packet.len() as u64;
                    each(to, packet);
                }
            }
        }
    }
}
