//! A TCP host in user space: it runs the state machine of [`comity_tcp`], which the
//! simulator also runs, on real packets.
//!
//! A [`Host`] is a pure machine without sockets and clocks. Its inputs are IP packets and times,
//! and its outputs are IP packets and events. It adds to the state machine what a network needs:
//! bytes, many connections, listeners with a bounded backlog, resets, errors of the network (ICMP),
//! path MTU discovery, keep-alive and TIME-WAIT.
//!
//! [`net`] runs a host in real time over a TUN device, with the interface of [`tokio::net`].
//!
//! Source: RFC 9293; RFC 5961 for forged segments, RFC 6528 for sequence numbers, RFC 6056 for
//! ports, RFC 1191, RFC 8201 and RFC 4821 for the path MTU, RFC 5927 for forged ICMP errors, RFC
//! 6191 for new connections in TIME-WAIT.
//!
//! Differs from RFC 9293 as [`comity_tcp::Connection`] does, and in two points: 1.
//! fragments of IP packets are dropped, since all hosts discover the path MTU; 2. an error of the
//! network ends a connection only during its handshake (RFC 5461).
#![deny(unsafe_code)]

mod ahead;
mod budget;
mod buffer;
mod config;
mod error;
pub mod framing;
mod host;
mod icmp;
mod id;
mod ledger;
mod mtu;
pub mod net;
mod packet;
mod queue;
mod secret;
mod section;
mod sections;
mod socket;
mod statistics;
mod tuple;

pub use config::{Config, ConfigError, KeepAlive, MIN_MTU, MIN_MTU_V6};
pub use error::{ConnectError, End, ListenError, StreamError};
pub use host::{Event, Host};
pub use id::{ConnectionId, ListenerId};
pub use section::{Delivery, Framing, Piece, PieceKind, Section, SectionStatistics};
pub use statistics::{Info, Statistics};
