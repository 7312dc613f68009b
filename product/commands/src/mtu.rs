//! The maximum size of packets that leave this host.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use comity::parts::{DEFAULT_DATAGRAM, MIN_INITIAL, UDP_IPV4, UDP_IPV6};

/// The UDP payload of the first packets of a connection. A path that cannot carry this size carries
/// no connection (`docs/protocol/core.md`).
const FIRST: u32 = MIN_INITIAL as u32;
/// The default UDP payload of full packets.
const FULL: u32 = DEFAULT_DATAGRAM as u32;

/// The MTU of a path, according to the system: that of the interface, or of the route if that is
/// smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mtu {
    /// The largest IP packet.
    pub(crate) bytes: u32,
    /// The IP and UDP headers of a packet.
    headers: u32,
}

impl Mtu {
    #[cfg(test)]
    pub(crate) const fn of_ipv4(bytes: u32) -> Self {
        Self {
            bytes,
            headers: UDP_IPV4,
        }
    }

    /// The MTU on the path to an address; `None` if there is no route or the system does not report
    /// it. Connecting a UDP socket sends nothing.
    pub(crate) fn towards(address: SocketAddr) -> Option<Self> {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).ok()?;
        socket.connect(address).ok()?;
        let (bytes, headers) = match address {
            SocketAddr::V4(_) => (rustix::net::sockopt::ip_mtu(&socket).ok()?, UDP_IPV4),
            SocketAddr::V6(_) => (rustix::net::sockopt::ipv6_mtu(&socket).ok()?, UDP_IPV6),
        };
        Some(Self { bytes, headers })
    }

    /// The MTU of the default route.
    pub(crate) fn of_default_route() -> Option<Self> {
        // Documentation addresses, which belong to no closer network.
        let elsewhere = [
            SocketAddr::from(([192, 0, 2, 1], 9)),
            SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 9)),
        ];
        elsewhere.into_iter().find_map(Self::towards)
    }

    /// This MTU, if it is too small for the first packets of a connection.
    pub(crate) fn too_small(self) -> Option<Self> {
        (self.bytes < self.first()).then_some(self)
    }

    /// The minimum MTU for a connection.
    pub(crate) const fn first(self) -> u32 {
        FIRST + self.headers
    }

    /// The minimum MTU for full packets.
    pub(crate) const fn full(self) -> u32 {
        FULL + self.headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mtu_to_this_host_is_known() {
        let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mtu = Mtu::towards(listener.local_addr().unwrap()).unwrap();
        let interface = std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap();
        let interface: u32 = interface.trim().parse().unwrap();
        // IPv4 packets cannot be longer.
        assert_eq!(mtu.bytes, interface.min(65_535));
        assert_eq!((mtu.first(), mtu.full()), (1_228, 1_480));
    }
}
