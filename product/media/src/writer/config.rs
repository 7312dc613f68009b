//! The configuration of a writer.

use comity_units::Span;

/// The output of a [`TsWriter`](crate::TsWriter) for a transport stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// The packets of the source, byte for byte, as its layouts describe them. Without layouts, the
    /// output is [`Remultiplexed`](Self::Remultiplexed).
    #[default]
    Whole,
    /// A new stream with its own continuity counters, clock references and repetitions.
    Remultiplexed,
}

/// How a [`TsWriter`](crate::TsWriter) writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterConfig {
    /// The output for a transport stream ([`Output::Whole`]).
    pub output: Output,
    /// Whether bytes of the source outside of packets are written (true), such as the time stamps
    /// of packets of 192 bytes. If not, the output consists of whole packets of 188 bytes.
    pub outside: bool,
    /// The maximum time between two clock references, and between two repetitions of PAT and PMT
    /// (90 ms; the standard allows 100 ms).
    pub interval: Span,
    /// The maximum time between two repetitions of other tables (500 ms).
    pub table_interval: Span,
    /// How long before its decoding time a unit is written, on the stream's clock (700 ms).
    pub lead: Span,
}

impl Default for WriterConfig {
    fn default() -> Self {
        Self {
            output: Output::Whole,
            outside: true,
            interval: Span::from_millis(90),
            table_interval: Span::from_millis(500),
            lead: Span::from_millis(700),
        }
    }
}
