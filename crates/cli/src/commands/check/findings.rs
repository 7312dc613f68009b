//! What was checked, and what was found.

use comity_media::check::Report;

/// What was checked, and what was found.
pub(super) struct Findings<'a> {
    /// As on the command line.
    pub(super) input: &'a str,
    /// Whether packets have the times of their arrival.
    pub(super) is_live: bool,
    pub(super) rtp: Option<Rtp>,
    pub(super) report: Report,
}

/// What RTP says of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rtp {
    pub(super) missing_packets: u64,
    pub(super) late_packets: u64,
}
