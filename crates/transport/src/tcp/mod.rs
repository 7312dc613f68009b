//! TCP: a byte sequence in segments.

pub mod codec;
mod config;
mod connection;
mod ranges;
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
