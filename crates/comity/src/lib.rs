//! Media with deadlines over best-effort networks, sharing them fairly with TCP.
//!
//! [`session`] is the secure half of the library without any socket: handshake, packet protection, address
//! validation and the routing of datagrams to connections, as state machines that time and datagrams
//! are handed to.
#![forbid(unsafe_code)]

pub mod session;
