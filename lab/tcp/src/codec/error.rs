//! Why a segment cannot be read or written.

use core::error::Error;
use core::fmt;

use comity_units::SeqNo;

use super::format;
use crate::segment::Wave;

/// An invalid TCP segment. Positions are counted in bytes from the start of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The checksum does not match the segment and its addresses.
    Checksum {
        /// The checksum in the header.
        found: u16,
        /// The checksum that the rest of the segment requires.
        expected: u16,
    },
    /// The header claims to be longer than the input.
    DataOffsetBeyondBuffer {
        /// The claimed length of the header.
        header: usize,
        /// The length of the input.
        available: usize,
    },
    /// The header claims to be shorter than its fixed part.
    DataOffsetTooSmall {
        /// The length of the header in 32-bit words.
        words: u8,
    },
    /// An option appears twice that may appear once.
    DuplicateOption {
        /// The kind of the option.
        kind: u8,
        /// The position of the second one.
        offset: usize,
    },
    /// The input is shorter than the fixed part of a header.
    HeaderTruncated {
        /// The length of the input.
        available: usize,
    },
    /// A wave level is zero.
    Level {
        /// The position of the option.
        offset: usize,
    },
    /// An option reaches beyond the end of the header.
    OptionBeyondHeader {
        /// The kind of the option.
        kind: u8,
        /// Its claimed length.
        length: u8,
        /// Its position.
        offset: usize,
        /// The bytes from there to the end of the header.
        available: usize,
    },
    /// The header ends after the kind of an option that has a length.
    OptionLengthMissing {
        /// The kind of the option.
        kind: u8,
        /// Its position.
        offset: usize,
    },
    /// An option claims to be shorter than its own kind and length.
    OptionTooShort {
        /// The kind of the option.
        kind: u8,
        /// Its claimed length: 0 or 1.
        length: u8,
        /// Its position.
        offset: usize,
    },
    /// The length of an option does not match its kind.
    OptionWrongLength {
        /// The kind of the option.
        kind: u8,
        /// Its claimed length.
        length: u8,
        /// Its position.
        offset: usize,
    },
    /// A SACK block is empty, or ends before it begins.
    SackBlock {
        /// The left edge.
        start: SeqNo,
        /// The right edge.
        end: SeqNo,
        /// The position of the option.
        offset: usize,
    },
    /// The segment is longer than IP can carry without jumbograms.
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// The position of a segment lies outside its wave.
    Wave {
        /// The segments of the wave.
        segments: u16,
        /// The position of this segment.
        position: u16,
        /// The position of the option.
        offset: usize,
    },
    /// The void of a `seq_update` is empty, or ends before it begins.
    Void {
        /// The first number.
        start: SeqNo,
        /// The number after the last.
        end: SeqNo,
        /// The position of the option.
        offset: usize,
    },
}

impl Error for DecodeError {}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Checksum { found, expected } => {
                write!(
                    f,
                    "TCP header, byte 16: checksum {found:#06x}, expected {expected:#06x}"
                )
            }
            Self::DataOffsetBeyondBuffer { header, available } => write!(
                f,
                "TCP header, byte 12: a header of {header} bytes, expected at most the {available} available"
            ),
            Self::DataOffsetTooSmall { words } => {
                write!(
                    f,
                    "TCP header, byte 12: data offset {words}, expected at least 5 words"
                )
            }
            Self::DuplicateOption { kind, offset } => write!(
                f,
                "TCP header, byte {offset}: option kind {kind} again, expected it once at most"
            ),
            Self::HeaderTruncated { available } => {
                write!(f, "TCP header: {available} bytes, expected at least 20")
            }
            Self::Level { offset } => write!(
                f,
                "TCP header, byte {offset}: wave level 0, expected at least 1"
            ),
            Self::OptionBeyondHeader {
                kind,
                length,
                offset,
                available,
            } => write!(
                f,
                "TCP header, byte {offset}: option kind {kind} of {length} bytes, expected at most the \
                 {available} to the end of the header"
            ),
            Self::OptionLengthMissing { kind, offset } => write!(
                f,
                "TCP header, byte {offset}: option kind {kind} at the end of the header, expected a \
                 length behind it"
            ),
            Self::OptionTooShort {
                kind,
                length,
                offset,
            } => write!(
                f,
                "TCP header, byte {offset}: option kind {kind} of {length} bytes, expected at least 2"
            ),
            Self::OptionWrongLength {
                kind,
                length,
                offset,
            } => write!(
                f,
                "TCP header, byte {offset}: option kind {kind} of {length} bytes, expected {}",
                match kind {
                    format::MSS => "4",
                    format::REAL => "4 or 8",
                    format::SACK => "10, 18, 26 or 34",
                    format::SACK_PERMITTED => "2",
                    format::TIMESTAMPS => "10",
                    format::WINDOW_SCALE => "3",
                    format::EXPERIMENT => "8 or 16",
                    _ => "another",
                }
            ),
            Self::SackBlock { start, end, offset } => write!(
                f,
                "TCP header, byte {offset}: SACK block from {start} to {end}, expected it to end after \
                 it begins"
            ),
            Self::TooLong { length } => {
                write!(f, "TCP segment: {length} bytes, expected at most 65535")
            }
            Self::Wave {
                segments,
                position,
                offset,
            } => write!(
                f,
                "TCP header, byte {offset}: segment {position} of a wave of {segments}, expected one from 1 \
                 to the wave's last"
            ),
            Self::Void { start, end, offset } => write!(
                f,
                "TCP header, byte {offset}: void from {start} to {end}, expected it to end after it begins"
            ),
        }
    }
}

/// Why a segment cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// The buffer is shorter than the header.
    BufferTooSmall {
        /// The length of the header in bytes.
        needed: usize,
        /// The length of the buffer in bytes.
        available: usize,
    },
    /// The options take more than 40 bytes.
    OptionsTooLong {
        /// Their length, padding included.
        length: usize,
    },
    /// A SACK block is empty, or ends before it begins.
    SackBlock {
        /// The left edge.
        start: SeqNo,
        /// The right edge.
        end: SeqNo,
    },
    /// Header and payload together are longer than IP can carry without jumbograms.
    TooLong {
        /// Their length in bytes.
        length: u64,
    },
    /// The position of a segment lies outside its wave.
    Wave {
        /// The wave, and the position in it.
        wave: Wave,
    },
    /// The void of a `seq_update` ends before it begins.
    Void {
        /// The first number.
        start: SeqNo,
        /// The number after the last.
        end: SeqNo,
    },
    /// The window scale is larger than a peer accepts.
    WindowScale {
        /// The shift.
        shift: u8,
    },
}

impl Error for EncodeError {}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BufferTooSmall { needed, available } => {
                write!(
                    f,
                    "buffer for a TCP header: {available} bytes, expected at least {needed}"
                )
            }
            Self::OptionsTooLong { length } => {
                write!(
                    f,
                    "options of a TCP header: {length} bytes, expected at most 40"
                )
            }
            Self::SackBlock { start, end } => {
                write!(
                    f,
                    "SACK block: from {start} to {end}, expected it to end after it begins"
                )
            }
            Self::TooLong { length } => {
                write!(f, "TCP segment: {length} bytes, expected at most 65535")
            }
            Self::Wave { wave } => write!(
                f,
                "wave option: segment {} of a wave of {}, expected one from 1 to the wave's last",
                wave.position, wave.segments
            ),
            Self::Void { start, end } => {
                write!(
                    f,
                    "void of seq_update: from {start} to {end}, expected it to end after it begins"
                )
            }
            Self::WindowScale { shift } => {
                write!(f, "window scale option: shift {shift}, expected at most 14")
            }
        }
    }
}
