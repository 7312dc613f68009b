//! TCP: a byte sequence in segments.

mod config;
mod segment;

pub use config::{Config, DelayedAck};
pub use segment::{Flags, Options, SackBlock, SackBlocks, Segment, Timestamps};
