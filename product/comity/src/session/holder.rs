//! Who shares a limit: all connections of one peer.

use std::net::{IpAddr, Ipv6Addr};

use super::PublicKey;

/// The owner of the connections that share a limit: a static key, or else a host. A host is an
/// address of IPv4 or a /64 of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holder {
    Key(PublicKey),
    Host(IpAddr),
}

impl Holder {
    /// The owner of a connection to a peer with this key, if static keys are used, and this
    /// address.
    pub(crate) fn new(key: Option<PublicKey>, address: IpAddr) -> Self {
        match (key, address.to_canonical()) {
            (Some(key), _) => Self::Key(key),
            (None, IpAddr::V6(address)) => {
                Self::Host(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into())
            }
            (None, address @ IpAddr::V4(_)) => Self::Host(address),
        }
    }
}
