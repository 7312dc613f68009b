//! The UDP socket: batches in both directions, with their ECN marks.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};

use rustix::net::sockopt;

use crate::options::Marking;
use crate::session::Ecn;

/// What the system is asked to hold in either direction, as far as it allows.
const SYSTEM_BUFFER: usize = 4 << 20;
/// The largest UDP datagram; with offloads, so many bytes of several.
const LARGEST: usize = 65_535;

/// A UDP socket that never blocks.
#[derive(Debug)]
pub(super) struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    buffers: Vec<u8>,
    has_errors: bool,
    is_ipv6: bool,
    type_of_service: u8,
}

impl Socket {
    /// Opens it; `tells_errors`: the network's complaints are of interest.
    pub(super) fn bind(
        address: SocketAddr,
        tells_errors: bool,
        marking: Marking,
    ) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        if let Some(hops) = marking.time_to_live {
            // A socket of IPv6 may carry IPv4 too.
            sockopt::set_ip_ttl(&socket, hops.into())?;
            if address.is_ipv6() {
                sockopt::set_ipv6_unicast_hops(&socket, Some(hops))?;
            }
        }
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        // The system may allow less.
        let _ = state.set_recv_buffer_size(UdpSockRef::from(&socket), SYSTEM_BUFFER);
        let _ = state.set_send_buffer_size(UdpSockRef::from(&socket), SYSTEM_BUFFER);
        let has_errors = tells_errors
            && state
                .enable_transport_errors(UdpSockRef::from(&socket))
                .is_ok();
        Ok(Self {
            socket,
            state,
            buffers: vec![0; BATCH_SIZE * LARGEST],
            has_errors,
            is_ipv6: address.is_ipv6(),
            type_of_service: marking.type_of_service,
        })
    }

    pub(super) fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// How many datagrams one call of the system may take; 1 when it offers no such thing.
    pub(super) fn most_segments(&self) -> usize {
        self.state.max_gso_segments().max(1)
    }

    /// Receives one batch and hands over its datagrams, in order. `true`: there may be more.
    ///
    /// # Errors
    ///
    /// What the system says, among it that there is nothing.
    pub(super) fn receive(
        &mut self,
        mut take: impl FnMut(SocketAddr, Ecn, &mut [u8]),
    ) -> io::Result<bool> {
        let mut meta = [RecvMeta::default(); BATCH_SIZE];
        let received = {
            let mut chunks = self.buffers.chunks_exact_mut(LARGEST);
            let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
                std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
            self.state
                .recv(UdpSockRef::from(&self.socket), &mut slices, &mut meta)?
        };
        let chunks = self.buffers.chunks_exact_mut(LARGEST);
        for (meta, bytes) in meta.iter().zip(chunks).take(received) {
            let length = meta.len.min(bytes.len());
            let ecn = match meta.ecn {
                None => Ecn::NotCapable,
                Some(EcnCodepoint::Ect0) => Ecn::Capable0,
                Some(EcnCodepoint::Ect1) => Ecn::Capable1,
                Some(EcnCodepoint::Ce) => Ecn::CongestionExperienced,
            };
            for datagram in bytes[..length].chunks_mut(meta.stride.max(1)) {
                take(meta.addr, ecn, datagram);
            }
        }
        Ok(received == BATCH_SIZE)
    }

    /// Hands datagrams of `segment` bytes each, the last one possibly shorter, to the system.
    ///
    /// # Errors
    ///
    /// What the system says, among it that it has no room now.
    pub(super) fn send(
        &self,
        to: SocketAddr,
        ecn: Ecn,
        contents: &[u8],
        segment: usize,
    ) -> io::Result<()> {
        if self.type_of_service != 0 {
            return self.send_marked(to, ecn, contents, segment);
        }
        let transmit = Transmit {
            destination: to,
            ecn: codepoint(ecn),
            contents,
            segment_size: Some(segment),
            src_ip: None,
        };
        self.state
            .try_send(UdpSockRef::from(&self.socket), &transmit)
    }

    /// As [`send`](Self::send), with a type of service of its own: quinn-udp writes the whole byte with each datagram,
    /// and knows only the bits of ECN in it.
    fn send_marked(
        &self,
        to: SocketAddr,
        ecn: Ecn,
        contents: &[u8],
        segment: usize,
    ) -> io::Result<()> {
        let octet = self.type_of_service | codepoint(ecn).map_or(0, |codepoint| codepoint as u8);
        let class = i32::from(octet);
        let segment = u16::try_from(segment).unwrap_or(u16::MAX);
        let to = match (to, self.is_ipv6) {
            (SocketAddr::V4(to), true) => {
                SocketAddr::new(to.ip().to_ipv6_mapped().into(), to.port())
            }
            (to, _) => to,
        };
        let is_ipv4 = match to.ip() {
            IpAddr::V4(_) => true,
            IpAddr::V6(ip) => ip.to_ipv4_mapped().is_some(),
        };
        let mark = match is_ipv4 {
            true => ControlMessage::Ipv4Tos(&octet),
            false => ControlMessage::Ipv6TClass(&class),
        };
        let messages = [mark, ControlMessage::UdpGsoSegments(&segment)];
        let messages = match contents.len() > usize::from(segment) {
            true => messages.as_slice(),
            false => &messages[..1],
        };
        let fd = self.socket.as_raw_fd();
        let to = SockaddrStorage::from(to);
        sendmsg(
            fd,
            &[IoSlice::new(contents)],
            messages,
            MsgFlags::MSG_DONTWAIT,
            Some(&to),
        )
        .map(drop)
        .map_err(io::Error::from)
    }

    /// The next complaint of the network: that an address cannot be reached.
    pub(super) fn complaint(&self) -> Option<(SocketAddr, io::Error)> {
        if !self.has_errors {
            return None;
        }
        loop {
            let error = self
                .state
                .recv_transport_error(UdpSockRef::from(&self.socket))
                .ok()??;
            if let Some(address) = error.addr
                && matches!(error.payload, quinn_udp::TransportErrorPayload::Unreachable)
            {
                return Some((address, io::Error::from_raw_os_error(error.raw_errno)));
            }
        }
    }
}

const fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotCapable => None,
        Ecn::Capable0 => Some(EcnCodepoint::Ect0),
        Ecn::Capable1 => Some(EcnCodepoint::Ect1),
        Ecn::CongestionExperienced => Some(EcnCodepoint::Ce),
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
