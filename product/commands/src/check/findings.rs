//! The results of a check.

use comity_media::check::Report;

/// The results of a check.
pub(super) struct Findings<'a> {
    /// The input, as on the command line.
    pub(super) input: &'a str,
    /// Whether packets have arrival times.
    pub(super) is_live: bool,
    pub(super) rtp: Option<Rtp>,
    pub(super) report: Report,
}

/// The RTP statistics of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rtp {
    pub(super) missing_packets: u64,
    pub(super) late_packets: u64,
}
