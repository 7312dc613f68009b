//! The configuration of a reader.

use comity_frames::DeadlineRule;
use comity_units::{DataSize, Rate, Span};

/// The policy for damaged access units: some bytes are missing at the source, or may be wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Damaged {
    /// It is sent as it is, with half the importance of a whole one: it shows more than a gap does.
    #[default]
    Pass,
    /// It is not sent. An [`Event::Missing`](crate::Event::Missing) has its number.
    Drop,
}

/// How a [`Reader`](crate::Reader) reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderConfig {
    /// The rule for the deadlines of pictures.
    pub deadlines: DeadlineRule,
    /// The duration of a slice of an unknown format (20 ms). The format of a live source with 1,128
    /// bytes is determined within half of it.
    pub slice: Span,
    /// The assumed rate of a stored source of an unknown format (4 Mb/s).
    pub assumed_rate: Rate,
    /// The interval after which an unchanged table is retransmitted (400 ms). A receiver that lost
    /// the table, or has just connected, writes nothing until it arrives.
    pub table_refresh: Span,
    /// What happens to damaged units ([`Damaged::Pass`]).
    pub damaged: Damaged,
    /// Whether layouts describe the packets of a transport stream (false). From them, a
    /// [`TsWriter`](crate::TsWriter) restores the packets byte for byte.
    pub layouts: bool,
    /// Whether the source is carried as bytes, whatever its format (false). Each piece of a live
    /// source, such as a datagram, is then a section.
    pub opaque: bool,
    /// The maximum length of an access unit, and the memory limit of each stream (16 MiB).
    pub longest_unit: DataSize,
    /// The maximum number of bytes in incomplete units, over all streams (32 MiB). Beyond it, the
    /// longest unit is dropped.
    pub open_units: DataSize,
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
            longest_unit: DataSize::new(16 << 20),
            open_units: DataSize::new(32 << 20),
        }
    }
}
