//! Why connections fail and calls return errors.

use std::net::{IpAddr, SocketAddr};

/// Why a connection ended before both sides had closed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum End {
    /// This side aborted it.
    #[error("connection aborted by this side")]
    Aborted,
    /// The peer acknowledged data that had not been sent, and thus hides losses.
    #[error("connection aborted by this side: the peer acknowledged data that was not sent")]
    FalseFeedback,
    /// The peer refused the handshake.
    #[error("connection refused")]
    Refused,
    /// The peer reset it.
    #[error("connection reset by peer")]
    Reset,
    /// The peer did not respond.
    #[error("connection timed out")]
    TimedOut,
    /// The network cannot reach the peer.
    #[error("peer unreachable")]
    Unreachable,
}

/// Why a read or a write had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// A section has no bytes.
    #[error("section: 0 bytes, expected at least 1")]
    Empty,
    /// The connection has ended.
    #[error(transparent)]
    Ended(#[from] End),
    /// The next piece is a gap, which only [`Host::receive`](crate::Host::receive) reports.
    #[error("the peer skipped the next bytes of its stream; expected a reader of gaps")]
    Gap,
    /// The stream has sections, so bytes cannot be written without one.
    #[error("the stream carries sections; expected a section instead of bytes")]
    InSections,
    /// The writing side is shut down.
    #[error("the stream is shut down for writing")]
    ShutDown,
    /// A section is larger than the send buffer.
    #[error("section: {bytes} bytes, expected at most the send buffer's {limit}")]
    TooLarge {
        /// The length of the section.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// No connection has this identifier.
    #[error("no such connection")]
    Unknown,
    /// There is nothing to read, or no room to write.
    #[error("the operation would block")]
    WouldBlock,
}

/// Why a connection cannot begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The local address does not belong to the host.
    #[error("{0} is not an address of this host")]
    NotLocal(IpAddr),
    /// The host has no address of the peer's family.
    #[error("this host has no address to reach {0}")]
    NoAddress(SocketAddr),
    /// The peer's address or port does not identify a single host.
    #[error("cannot connect to {0}: expected a unicast address and a port")]
    NoPeer(SocketAddr),
    /// All ports to this peer, or all connections, are in use.
    #[error("no free port or connection for {0}")]
    Exhausted(SocketAddr),
}

/// Why a host cannot listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// The address does not belong to the host.
    #[error("{0} is not an address of this host")]
    NotLocal(IpAddr),
    /// Another listener has the address.
    #[error("{0} is in use")]
    InUse(SocketAddr),
    /// The port is zero.
    #[error("port 0, expected 1 to 65535")]
    NoPort,
}
