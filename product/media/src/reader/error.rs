//! Why a reader stops, and the limits that make it stop.

use core::fmt;

/// The maximum number of bytes without a packet in a stored source: more than a second of most
/// streams, and sixteen times the search range of ffmpeg.
pub(super) const SEARCHED: u64 = 1 << 20;

/// The maximum number of bytes without progress in time: at 96 Mb/s, time stamps may be 700 ms
/// apart.
pub(super) const STILL: u64 = 8 << 20;

/// Why a source cannot be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// A stored transport stream contains no packet in more than 1,048,576 bytes.
    NoPacket {
        /// The source position of the first of these bytes.
        at: u64,
        /// The byte at this position, where a sync byte was expected.
        found: u8,
    },
    /// Neither time stamps nor clock references of a transport stream advanced in 8,388,608 bytes
    /// of its streams.
    NoTime {
        /// The source position of the last of these packets.
        at: u64,
    },
    /// No picture of an elementary stream ends within the maximum length of an access unit.
    NoPicture {
        /// The source position of the first searched byte.
        at: u64,
        /// The number of searched bytes.
        bytes: u64,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPacket { at, found } => write!(
                out,
                "transport stream, byte {at}: found {found:#04x} and no packet in the next {SEARCHED} bytes; \
                 expected the sync byte 0x47 at the beginning of each packet"
            ),
            Self::NoTime { at } => write!(
                out,
                "transport stream, byte {at}: found no time stamp (PTS) and no advancing clock reference (PCR) in the \
                 last {STILL} bytes of its streams; expected one every 700 ms"
            ),
            Self::NoPicture { at, bytes } => write!(
                out,
                "MPEG video, byte {at}: found no end of a picture in the next {bytes} bytes; expected one"
            ),
        }
    }
}

impl core::error::Error for ReadError {}

/// Why the reader gives up its assumption about a source.
pub(super) enum Stop {
    /// The source has another format, and nothing was returned so far. Contains all of its bytes.
    Unknown(Vec<u8>),
    Failed(ReadError),
}
