//! Media with deadlines over best-effort networks, sharing them fairly with TCP.
//!
//! [`session`] is the secure half of the library without any socket: handshake, packet protection, address
//! validation and the routing of datagrams to connections, as state machines that time and datagrams
//! are handed to. [`uri`] reads what people write to say where media comes from and goes to.
#![forbid(unsafe_code)]

pub mod session;
pub mod uri;
