//! The source address of a call's packets, and its changes.
//!
//! A call leaves the choice of its local address to the system, which changes it with the routes. A
//! netlink socket reports each change.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

/// The groups of links, addresses, routes and rules of IPv4 and IPv6 (`rtnetlink(7)`).
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | 1 << 18;

/// Receives notifications of changed routes.
#[derive(Debug)]
pub(super) struct Routes(OwnedFd);

impl Routes {
    /// # Errors
    ///
    /// The system's error. Some sandboxes have no netlink.
    pub(super) fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let netlink = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&netlink, &SocketAddrNetlink::new(0, GROUPS))?;
        Ok(Self(netlink))
    }

    /// Whether something has changed since the last call.
    pub(super) fn have_changed(&self) -> bool {
        let mut has_changed = false;
        let mut message = [0; 4_096];
        loop {
            match recv(&self.0, &mut message, RecvFlags::empty()) {
                // With `NOBUFS`, more notifications came than the socket could hold.
                Ok(_) | Err(Errno::NOBUFS) => has_changed = true,
                Err(Errno::INTR) => {}
                Err(_) => return has_changed,
            }
        }
    }
}

/// The source address of packets to `to` at present; `None` if there is no route.
pub(super) fn source(to: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    // This sends nothing.
    socket.connect(to).ok()?;
    Some(socket.local_addr().ok()?.ip())
}
