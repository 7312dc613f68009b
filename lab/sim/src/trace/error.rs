//! Why traces cannot be written.

use std::fmt;
use std::io;

use super::pcapng::PcapngError;

/// Why a trace could not be written.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// The capture cannot be written.
    Capture(PcapngError),
    /// The table of events cannot be written.
    Events(csv::Error),
    /// The log of a sender cannot be written.
    Log(io::Error),
    /// The network has more nodes or flows than there are addresses and ports for a capture.
    TooLarge,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capture(error) => write!(f, "the capture of links: {error}"),
            Self::Events(error) => write!(f, "the table of events: {error}"),
            Self::Log(error) => write!(f, "the log of a sender: {error}"),
            Self::TooLarge => f.write_str(
                "the network has more nodes or flows than a capture has addresses and ports for",
            ),
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Capture(error) => Some(error),
            Self::Events(error) => Some(error),
            Self::Log(error) => Some(error),
            Self::TooLarge => None,
        }
    }
}

impl From<PcapngError> for TraceError {
    fn from(error: PcapngError) -> Self {
        Self::Capture(error)
    }
}

impl From<csv::Error> for TraceError {
    fn from(error: csv::Error) -> Self {
        Self::Events(error)
    }
}

impl From<io::Error> for TraceError {
    fn from(error: io::Error) -> Self {
        Self::Log(error)
    }
}
