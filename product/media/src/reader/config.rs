//! The configuration of a reader.

use comity_frames::DeadlineRule;
use comity_units::{Bytes, Rate, Span};

/// The policy for damaged access units: some bytes are missing at the source, or may be wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Damaged {
    /// It is sent as it is, with half the importance of a whole one: a player shows more of it than
    /// of a gap.
    #[default]
    Pass,
    /// It is not sent, and its number is that of an [`Event::Missing`](crate::Event::Missing).
    Drop,
}

/// How a [`Reader`](crate::Reader) reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderConfig {
    /// Which deadlines pictures get.
    pub deadlines: DeadlineRule,
    /// The duration of a slice of an unknown format. A live source has at most half of it to be
    /// recognised (20 ms).
    pub slice: Span,
    /// The assumed rate of a stored source of an unknown format (4 Mb/s).
    pub assumed_rate: Rate,
    /// The interval after which an unchanged table is retransmitted (400 ms): a receiver that lost
    /// it, or has just been connected, writes nothing before it.
    pub table_refresh: Span,
    /// What becomes of damaged units ([`Damaged::Pass`]).
    pub damaged: Damaged,
    /// Whether layouts describe the packets of a transport stream (false). A
    /// [`TsWriter`](crate::TsWriter) restores the packets from them, byte for byte.
    pub layouts: bool,
    /// Whether the source is carried as bytes, whatever it is (false). Each piece of a live source,
    /// such as a datagram, is then a section of its own.
    pub opaque: bool,
    /// The longest access unit, and the memory limit of each stream (16 MiB).
    pub longest_unit: Bytes,
    /// The most bytes of units whose end has not come, over all streams (32 MiB). Beyond it, the
    /// longest is abandoned.
    pub open_units: Bytes,
}

impl Default for ReaderConfig {
    fn default() -> Self {
        Self {
            deadlines: DeadlineRule::Each,
            slice: Span::from_millis(20),
            assumed_rate: Rate::from_mbps(4),
            table_refresh: Span::from_millis(400),
            damaged: Damaged::Pass,
            layouts: false,
            opaque: false,
            longest_unit: Bytes::new(16 << 20),
            open_units: Bytes::new(32 << 20),
        }
    }
}
