//! TCP as a pure state machine: a byte sequence in segments with real headers and options.
//!
//! Time and segments come in as arguments; segments, events and the next wake-up come out. A
//! [`Connection`] runs any controller and recovery of `comity_congestion`, and with [`timeline`] it
//! is Time-lined TCP. [`codec`] writes and reads the headers.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod checksum;

pub mod codec;
mod config;
mod connection;
mod receiver;
mod scoreboard;
mod segment;
mod sender;
mod state;
pub mod timeline;

pub use config::{Config, DelayedAck};
pub use connection::Connection;
pub use segment::{Flags, Options, SackBlock, SackBlocks, Segment, Timestamps, Wave};
pub use sender::{SenderStatistics, Upcoming};
pub use state::State;
