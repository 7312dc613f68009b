//! TCP: a byte sequence in segments.

mod segment;

pub use segment::{Flags, Options, SackBlock, SackBlocks, Segment, Timestamps};
