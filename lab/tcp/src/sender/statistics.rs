//! Counters of the sending half.

use comity_units::Span;

/// Counters of the sending half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStatistics {
    /// Segments sent with payload, SYN or FIN, retransmissions included, without probes and notices
    /// of a jump. A skipped one counts twice: when it is skipped, and when it leaves.
    pub segments: u64,
    /// Segments that were skipped to test the peer ([`Config::skip_segments`]).
    ///
    /// [`Config::skip_segments`]: crate::Config::skip_segments
    pub skipped: u64,
    /// Retransmitted segments.
    pub retransmitted: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
    /// Entries into fast retransmit.
    pub fast_retransmits: u32,
    /// Window reductions caused by congestion marks.
    pub marks: u32,
    /// Round-trip samples.
    pub rtt_samples: u64,
    /// The sum of the round-trip samples.
    pub rtt_sum: Span,
}
