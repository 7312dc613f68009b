//! The UDP socket: batches in both directions, with their ECN marks.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::libc;
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};

use rustix::io::Errno;
use rustix::net::sockopt;

use crate::config::Settings;
use crate::session::{Addresses, Datagram, Ecn};

/// The requested size of the system's buffer in each direction, in bytes. The system may grant
/// less.
pub const SYSTEM_BUFFER: usize = 4 << 20;
/// The largest UDP datagram; with offloads, a batch of datagrams is at most as long.
const LARGEST: usize = 65_535;

/// A UDP socket that never blocks.
#[derive(Debug)]
pub(super) struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    buffers: Vec<u8>,
    has_errors: bool,
    is_ipv6: bool,
    /// Whether it is bound to all addresses of the host, so that replies must choose their source.
    has_every_address: bool,
    type_of_service: u8,
}

impl Socket {
    /// Opens the socket. With `reports_errors`, it returns network errors from [`Self::complaint`].
    pub(super) fn bind(
        address: SocketAddr,
        reports_errors: bool,
        marking: &Settings,
    ) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        if let Some(hops) = marking.time_to_live {
            // An IPv6 socket may carry IPv4 too.
            sockopt::set_ip_ttl(&socket, hops.into())?;
            if address.is_ipv6() {
                sockopt::set_ipv6_unicast_hops(&socket, Some(hops))?;
            }
        }
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        // The system may grant less.
        let _ = state.set_recv_buffer_size(UdpSockRef::from(&socket), SYSTEM_BUFFER);
        let _ = state.set_send_buffer_size(UdpSockRef::from(&socket), SYSTEM_BUFFER);
        let has_errors = reports_errors
            && state
                .enable_transport_errors(UdpSockRef::from(&socket))
                .is_ok();
        Ok(Self {
            socket,
            state,
            buffers: vec![0; BATCH_SIZE * LARGEST],
            has_errors,
            is_ipv6: address.is_ipv6(),
            has_every_address: address.ip().is_unspecified(),
            type_of_service: marking.type_of_service,
        })
    }

    pub(super) fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Whether the system chooses the source address of packets that have none.
    pub(super) fn has_every_address(&self) -> bool {
        self.has_every_address
    }

    /// An address in the form that the socket reports: an IPv6 socket maps IPv4 addresses.
    pub(super) fn reach(&self, address: SocketAddr) -> SocketAddr {
        match (address, self.is_ipv6) {
            (SocketAddr::V4(address), true) => {
                SocketAddr::new(address.ip().to_ipv6_mapped().into(), address.port())
            }
            (address, _) => address,
        }
    }

    /// The maximum number of datagrams in one system call; 1 without support for batches.
    pub(super) fn max_segments(&self) -> usize {
        self.state.max_gso_segments().max(1)
    }

    /// Receives one batch and passes on its datagrams in order. Returns whether more may follow.
    ///
    /// # Errors
    ///
    /// The system's error, `WouldBlock` included.
    pub(super) fn receive(
        &mut self,
        mut take: impl FnMut(Addresses, Ecn, &mut [u8]),
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
            // No valid packet comes from port 0. The system would refuse the reply with the error
            // for unsupported batches, and quinn-udp would then stop batching.
            if meta.addr.port() == 0 {
                continue;
            }
            let length = meta.len.min(bytes.len());
            let ecn = match meta.ecn {
                None => Ecn::NotCapable,
                Some(EcnCodepoint::Ect0) => Ecn::Capable0,
                Some(EcnCodepoint::Ect1) => Ecn::Capable1,
                Some(EcnCodepoint::Ce) => Ecn::CongestionExperienced,
            };
            let addresses = Addresses {
                peer: meta.addr,
                local: meta
                    .dst_ip
                    .filter(|local| self.has_every_address && can_be_source(*local)),
            };
            for datagram in bytes[..length].chunks_mut(meta.stride.max(1)) {
                take(addresses, ecn, datagram);
            }
        }
        Ok(received == BATCH_SIZE)
    }

    /// Hands datagrams to the system. All are as long as `first`, except that the last may be
    /// shorter.
    ///
    /// # Errors
    ///
    /// The system's error, `WouldBlock` included.
    pub(super) fn send(&self, first: &Datagram, contents: &[u8]) -> io::Result<()> {
        if self.type_of_service != 0 {
            return self.send_marked(first, contents);
        }
        let transmit = Transmit {
            destination: first.to,
            ecn: codepoint(first.ecn),
            contents,
            segment_size: Some(first.length),
            src_ip: first.source,
        };
        self.state
            .try_send(UdpSockRef::from(&self.socket), &transmit)
    }

    /// As [`send`](Self::send), with a type of service: quinn-udp writes the whole byte with each
    /// datagram, but can set only its ECN bits.
    fn send_marked(&self, first: &Datagram, contents: &[u8]) -> io::Result<()> {
        let Datagram {
            to,
            source,
            ecn,
            length,
            leave_by: _,
        } = *first;
        let octet = self.type_of_service | codepoint(ecn).map_or(0, |codepoint| codepoint as u8);
        let class = i32::from(octet);
        let segment = u16::try_from(length).unwrap_or(u16::MAX);
        let to = self.reach(to);
        let is_ipv4 = match to.ip() {
            IpAddr::V4(_) => true,
            IpAddr::V6(ip) => ip.to_ipv4_mapped().is_some(),
        };
        let mark = match is_ipv4 {
            true => ControlMessage::Ipv4Tos(&octet),
            false => ControlMessage::Ipv6TClass(&class),
        };
        let (from_ipv4, from_ipv6);
        // The marks, then other control messages.
        let mut messages = [mark; 3];
        let mut said = 1;
        let mut say = |message| {
            messages[said] = message;
            said += 1;
        };
        if contents.len() > usize::from(segment) {
            say(ControlMessage::UdpGsoSegments(&segment));
        }
        match source {
            None => {}
            Some(IpAddr::V4(source)) => {
                from_ipv4 = in_pktinfo(source);
                say(ControlMessage::Ipv4PacketInfo(&from_ipv4));
            }
            Some(IpAddr::V6(source)) => {
                from_ipv6 = in6_pktinfo(source);
                say(ControlMessage::Ipv6PacketInfo(&from_ipv6));
            }
        }
        let fd = self.socket.as_raw_fd();
        let to = SockaddrStorage::from(to);
        sendmsg(
            fd,
            &[IoSlice::new(contents)],
            &messages[..said],
            MsgFlags::MSG_DONTWAIT,
            Some(&to),
        )
        .map(drop)
        .map_err(io::Error::from)
    }

    /// The next network error that reports an address as unreachable.
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

/// Whether replies can leave from this local address. For link-local addresses the system chooses,
/// by the link of the destination.
fn can_be_source(local: IpAddr) -> bool {
    match local.to_canonical() {
        IpAddr::V4(local) => {
            !(local.is_unspecified() || local.is_multicast() || local.is_broadcast())
        }
        IpAddr::V6(local) => {
            !(local.is_unspecified() || local.is_multicast() || local.is_unicast_link_local())
        }
    }
}

const fn in_pktinfo(source: Ipv4Addr) -> libc::in_pktinfo {
    libc::in_pktinfo {
        ipi_ifindex: 0,
        ipi_spec_dst: libc::in_addr {
            s_addr: u32::from_ne_bytes(source.octets()),
        },
        ipi_addr: libc::in_addr { s_addr: 0 },
    }
}

const fn in6_pktinfo(source: Ipv6Addr) -> libc::in6_pktinfo {
    libc::in6_pktinfo {
        ipi6_addr: libc::in6_addr {
            s6_addr: source.octets(),
        },
        ipi6_ifindex: 0,
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

/// Whether a socket that fails for this reason can never receive again.
pub(super) fn is_end(reason: &io::Error) -> bool {
    let number = reason.raw_os_error().map(Errno::from_raw_os_error);
    matches!(
        number,
        Some(Errno::BADF | Errno::NOTSOCK | Errno::INVAL | Errno::FAULT | Errno::NOSYS)
    )
}

/// Whether this reason means that the called address cannot be reached.
pub(super) fn is_unreachable(reason: &io::Error) -> bool {
    matches!(
        reason.kind(),
        io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::Unsupported
            | io::ErrorKind::AddrNotAvailable
    )
}
