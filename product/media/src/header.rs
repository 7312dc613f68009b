//! The header at the beginning of each section's payload, from which a receiver restores the
//! stream.
//!
//! All integers are big-endian. The first byte holds the version (high four bits, 1) and the kind
//! (low four).
//!
//! ```text
//! kind 1, Unit:    flags u8 | PID u16 | stream_type u8 | stream_id u8 | frame u8 | [PTS] | [DTS] | access unit, or payload of a PES packet
//!     flags: 1 PTS present, 2 DTS present too, 4 random access, 8 discontinuity, 16 aligned
//!     PTS, DTS: 5 bytes each, 33 bits, ticks of 90 kHz
//! kind 2, Table:   flags u8 | PID u16 | one section of a table, with its CRC
//!     flags: 1 the writer repeats it
//! kind 3, Packets: whole transport packets of 188 bytes
//! kind 4, Raw:     bytes
//! kind 5, Picture: frame u8 | an access unit of an elementary stream
//! kind 6, Layout:  the coded order of packets
//!     frame of kinds 1 and 5: 1 key, 2 intra, 3 predicted, 4 predicted and not referenced, 5 bidirectional and referenced,
//!            6 bidirectional, 7 audio, 8 parameters, 9 opaque
//! ```
//!
//! Every unassigned bit is zero, so each header has exactly one encoding.

use core::fmt;

use crate::psi;
use comity_frames::FrameType;

const VERSION: u8 = 1;
const TIMESTAMP: u64 = (1 << 33) - 1;

/// Length of a packet of a transport stream.
pub const PACKET: usize = 188;

/// Whether these bytes are whole transport packets. Without bytes, they are.
pub fn is_packets(bytes: &[u8]) -> bool {
    let (packets, rest) = bytes.as_chunks::<PACKET>();
    rest.is_empty() && packets.iter().all(|packet| packet[0] == 0x47)
}

const HAS_PTS: u8 = 1;
const HAS_DTS: u8 = 2;
const RANDOM_ACCESS: u8 = 4;
const DISCONTINUITY: u8 = 8;
const ALIGNED: u8 = 16;
const REPEATED: u8 = 1;

/// The description of an access unit in a transport stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Packet identifier of its stream, 13 bits.
    pub pid: u16,
    /// Kind of its stream, ISO/IEC 13818-1 table 2-34.
    pub stream_type: u8,
    /// Stream identifier of its PES packet, table 2-22.
    pub stream_id: u8,
    /// Its frame type.
    pub frame: FrameType,
    /// Its presentation and decoding times.
    pub times: Times,
    /// Whether decoding can begin with it.
    pub random_access: bool,
    /// Whether the source's clock or its counters jumped before it.
    pub discontinuity: bool,
    /// Whether the source marked the PES packet as aligned with the access unit. If several
    /// pictures begin in the packet, only the first has the mark.
    pub aligned: bool,
}

/// The time stamps of an access unit: 33 bits, ticks of 90 kHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// It has none.
    None,
    /// Decoded at its presentation time.
    Presentation(u64),
    /// Decoded before its presentation.
    Both {
        /// When it is presented.
        presentation: u64,
        /// When it is decoded.
        decoding: u64,
    },
}

impl Times {
    /// When the unit is presented.
    pub const fn presentation(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Presentation(presentation) | Self::Both { presentation, .. } => {
                Some(presentation)
            }
        }
    }

    /// When the unit is decoded.
    pub const fn decoding(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Presentation(time) | Self::Both { decoding: time, .. } => Some(time),
        }
    }

    /// Returns the times advanced by this many ticks.
    pub(crate) const fn later(self, ticks: u64) -> Self {
        const fn add(stamp: u64, ticks: u64) -> u64 {
            stamp.wrapping_add(ticks) & TIMESTAMP
        }
        match self {
            Self::None => Self::None,
            Self::Presentation(presentation) => Self::Presentation(add(presentation, ticks)),
            Self::Both {
                presentation,
                decoding,
            } => Self::Both {
                presentation: add(presentation, ticks),
                decoding: add(decoding, ticks),
            },
        }
    }
}

/// The header of a section's payload, which determines the rest of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// An access unit follows, or the payload of a PES packet if its units are unknown.
    Unit(Unit),
    /// A section of a table follows.
    Table {
        /// Packet identifier, 13 bits.
        pid: u16,
        /// Whether the writer repeats the table. If not, it is an event and is written once.
        repeated: bool,
    },
    /// Whole transport packets follow, which the writer copies.
    Packets,
    /// Bytes follow, written as they are.
    Raw,
    /// An access unit of an elementary stream follows, which the writer copies.
    Picture(FrameType),
    /// A layout follows: the order of the packets of a transport stream.
    Layout,
}

/// Why a payload is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderError {
    /// The payload ends within the header.
    Truncated {
        /// How many bytes the header needs.
        expected: usize,
        /// The number of bytes.
        actual: usize,
    },
    /// The version is unknown.
    Version(u8),
    /// The kind is unknown.
    Kind(u8),
    /// An unassigned bit is set.
    Reserved {
        /// The offset of the byte.
        at: usize,
    },
    /// The frame type is unknown, or not allowed for this kind.
    Frame(u8),
    /// The rest is not a table section, or its checksum is wrong.
    Table,
    /// The rest is not whole transport packets.
    Packets,
    /// The rest is not a layout.
    Layout,
    /// A transport stream continues with raw bytes or pictures of an elementary stream, or another
    /// stream continues with units, tables or packets.
    Mixed,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { expected, actual } => {
                write!(
                    out,
                    "media header: {actual} bytes, expected at least {expected}"
                )
            }
            Self::Version(version) => {
                write!(out, "media header: version {version}, expected {VERSION}")
            }
            Self::Kind(kind) => write!(out, "media header: kind {kind}, expected 1 to 6"),
            Self::Reserved { at } => {
                write!(
                    out,
                    "media header: byte {at} has a bit set that must be zero"
                )
            }
            Self::Frame(frame) => {
                write!(
                    out,
                    "media header: frame type {frame}, expected 1 to 9 as the kind has it"
                )
            }
            Self::Table => write!(
                out,
                "media header: the rest is not a table section, expected one with its length and CRC"
            ),
            Self::Packets => write!(
                out,
                "media header: the rest is not whole packets, expected packets of {PACKET} bytes that begin with 0x47"
            ),
            Self::Layout => write!(
                out,
                "media header: the rest is no layout, expected the packets that it announces"
            ),
            Self::Mixed => write!(
                out,
                "media header: its kind differs from the stream so far, expected 1 to 3 or 6 in a transport stream, 4 or 5 in another"
            ),
        }
    }
}

impl core::error::Error for HeaderError {}

impl Header {
    /// Appends the header, with the lower 13 bits of the PID and the lower 33 bits of each time
    /// stamp.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let first = |kind: u8| VERSION << 4 | kind;
        match *self {
            Self::Unit(unit) => {
                let (timed, pts, dts) = match unit.times {
                    Times::None => (0, None, None),
                    Times::Presentation(pts) => (HAS_PTS, Some(pts), None),
                    Times::Both {
                        presentation,
                        decoding,
                    } => (HAS_PTS | HAS_DTS, Some(presentation), Some(decoding)),
                };
                let flag = |set: bool, bit: u8| if set { bit } else { 0 };
                let flags = timed
                    | flag(unit.random_access, RANDOM_ACCESS)
                    | flag(unit.discontinuity, DISCONTINUITY)
                    | flag(unit.aligned, ALIGNED);
                out.extend([first(1), flags]);
                out.extend((unit.pid & 0x1fff).to_be_bytes());
                out.extend([unit.stream_type, unit.stream_id, frame_code(unit.frame)]);
                for time in [pts, dts].into_iter().flatten() {
                    out.extend(&(time & TIMESTAMP).to_be_bytes()[3..]);
                }
            }
            Self::Table { pid, repeated } => {
                out.extend([first(2), if repeated { REPEATED } else { 0 }]);
                out.extend((pid & 0x1fff).to_be_bytes());
            }
            Self::Packets => out.push(first(3)),
            Self::Raw => out.push(first(4)),
            Self::Picture(frame) => out.extend([first(5), frame_code(frame)]),
            Self::Layout => out.push(first(6)),
        }
    }

    /// Reads the header of a payload. Returns it with the rest, whose form is checked as far as the
    /// kind permits.
    ///
    /// # Errors
    /// A [`HeaderError`] that describes the fault.
    pub fn decode(payload: &[u8]) -> Result<(Self, &[u8]), HeaderError> {
        let mut input = Input {
            all: payload,
            at: 0,
        };
        let first = input.byte()?;
        if first >> 4 != VERSION {
            return Err(HeaderError::Version(first >> 4));
        }
        let header = match first & 0x0f {
            1 => Self::Unit(decode_unit(&mut input)?),
            2 => {
                let flags = input.flags(REPEATED)?;
                let pid = input.pid()?;
                if !psi::is_whole_section(input.rest()) {
                    return Err(HeaderError::Table);
                }
                Self::Table {
                    pid,
                    repeated: flags & REPEATED != 0,
                }
            }
            3 => {
                if input.rest().is_empty() || !is_packets(input.rest()) {
                    return Err(HeaderError::Packets);
                }
                Self::Packets
            }
            4 => Self::Raw,
            5 => {
                let code = input.byte()?;
                let frame = frame_of(code)
                    .filter(|frame| frame.is_picture() || matches!(frame, FrameType::Parameters));
                Self::Picture(frame.ok_or(HeaderError::Frame(code))?)
            }
            6 => Self::Layout,
            kind => return Err(HeaderError::Kind(kind)),
        };
        Ok((header, input.rest()))
    }
}

fn decode_unit(input: &mut Input<'_>) -> Result<Unit, HeaderError> {
    let flags = input.flags(HAS_PTS | HAS_DTS | RANDOM_ACCESS | DISCONTINUITY | ALIGNED)?;
    if flags & (HAS_PTS | HAS_DTS) == HAS_DTS {
        return Err(HeaderError::Reserved { at: 1 });
    }
    let pid = input.pid()?;
    let stream_type = input.byte()?;
    let stream_id = input.byte()?;
    let code = input.byte()?;
    let frame = frame_of(code).ok_or(HeaderError::Frame(code))?;
    let times = match flags & (HAS_PTS | HAS_DTS) {
        0 => Times::None,
        HAS_PTS => Times::Presentation(input.timestamp()?),
        _ => Times::Both {
            presentation: input.timestamp()?,
            decoding: input.timestamp()?,
        },
    };
    Ok(Unit {
        pid,
        stream_type,
        stream_id,
        frame,
        times,
        random_access: flags & RANDOM_ACCESS != 0,
        discontinuity: flags & DISCONTINUITY != 0,
        aligned: flags & ALIGNED != 0,
    })
}

/// The code of a frame type. Tables and slices have kinds of their own, so their frame types are
/// written as opaque.
const fn frame_code(frame: FrameType) -> u8 {
    match frame {
        FrameType::Key => 1,
        FrameType::Intra => 2,
        FrameType::Predicted { referenced: true } => 3,
        FrameType::Predicted { referenced: false } => 4,
        FrameType::Bidirectional { referenced: true } => 5,
        FrameType::Bidirectional { referenced: false } => 6,
        FrameType::Audio => 7,
        FrameType::Parameters => 8,
        FrameType::Opaque | FrameType::Table | FrameType::Layout | FrameType::Slice => 9,
    }
}

const fn frame_of(code: u8) -> Option<FrameType> {
    Some(match code {
        1 => FrameType::Key,
        2 => FrameType::Intra,
        3 => FrameType::Predicted { referenced: true },
        4 => FrameType::Predicted { referenced: false },
        5 => FrameType::Bidirectional { referenced: true },
        6 => FrameType::Bidirectional { referenced: false },
        7 => FrameType::Audio,
        8 => FrameType::Parameters,
        9 => FrameType::Opaque,
        _ => return None,
    })
}

struct Input<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], HeaderError> {
        let taken = self.rest().first_chunk::<N>().copied();
        let truncated = HeaderError::Truncated {
            expected: self.at + N,
            actual: self.all.len(),
        };
        self.at += N;
        taken.ok_or(truncated)
    }

    fn byte(&mut self) -> Result<u8, HeaderError> {
        self.take().map(|[byte]| byte)
    }

    fn flags(&mut self, known: u8) -> Result<u8, HeaderError> {
        let at = self.at;
        let flags = self.byte()?;
        if flags & !known == 0 {
            Ok(flags)
        } else {
            Err(HeaderError::Reserved { at })
        }
    }

    fn pid(&mut self) -> Result<u16, HeaderError> {
        let at = self.at;
        let pid = u16::from_be_bytes(self.take()?);
        if pid <= 0x1fff {
            Ok(pid)
        } else {
            Err(HeaderError::Reserved { at })
        }
    }

    fn timestamp(&mut self) -> Result<u64, HeaderError> {
        let at = self.at;
        let [a, b, c, d, e] = self.take()?;
        let time = u64::from_be_bytes([0, 0, 0, a, b, c, d, e]);
        if time <= TIMESTAMP {
            Ok(time)
        } else {
            Err(HeaderError::Reserved { at })
        }
    }

    fn rest(&self) -> &'a [u8] {
        self.all.get(self.at..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unit() -> Unit {
        Unit {
            pid: 0x100,
            stream_type: 0x1b,
            stream_id: 0xe0,
            frame: FrameType::Bidirectional { referenced: false },
            times: Times::Both {
                presentation: 0x1_0203_0405,
                decoding: 0x1_0203_0000,
            },
            random_access: false,
            discontinuity: true,
            aligned: true,
        }
    }

    #[test]
    fn a_unit_has_the_bytes_of_the_table() {
        let mut bytes = Vec::new();
        Header::Unit(unit()).encode(&mut bytes);
        assert_eq!(
            bytes,
            [
                0x11, 0x1b, 0x01, 0x00, 0x1b, 0xe0, 6, 0x01, 0x02, 0x03, 0x04, 0x05, 0x01, 0x02,
                0x03, 0x00, 0x00
            ]
        );
        bytes.push(42);
        assert_eq!(
            Header::decode(&bytes),
            Ok((Header::Unit(unit()), &[42][..]))
        );
    }

    #[test]
    fn every_cut_is_refused_with_the_expected_length() {
        let mut bytes = Vec::new();
        Header::Unit(unit()).encode(&mut bytes);
        for length in 0..bytes.len() {
            let error = Header::decode(&bytes[..length]).expect_err("a cut header");
            let HeaderError::Truncated { expected, actual } = error else {
                panic!("{error}")
            };
            assert!(actual == length && expected > length && expected <= bytes.len());
        }
        assert_eq!(
            HeaderError::Truncated {
                expected: 4,
                actual: 3
            }
            .to_string(),
            "media header: 3 bytes, expected at least 4"
        );
    }

    #[test]
    fn malformed_headers_are_refused() {
        for (bytes, error) in [
            (&[0x21][..], HeaderError::Version(2)),
            (&[0x10], HeaderError::Kind(0)),
            (&[0x17], HeaderError::Kind(7)),
            (&[0x11, 0x20], HeaderError::Reserved { at: 1 }),
            (
                &[0x11, 0x02, 0, 0, 0, 0, 1],
                HeaderError::Reserved { at: 1 },
            ),
            (&[0x11, 0x00, 0x20, 0], HeaderError::Reserved { at: 2 }),
            (&[0x11, 0x00, 0, 0, 0, 0, 10], HeaderError::Frame(10)),
            (
                &[0x11, 0x01, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0],
                HeaderError::Reserved { at: 7 },
            ),
            (&[0x12, 0x01, 0, 0, 0, 0xb0, 1, 0], HeaderError::Table),
            (&[0x13], HeaderError::Packets),
            (&[0x13, 0x47], HeaderError::Packets),
            (&[0x15, 7], HeaderError::Frame(7)),
        ] {
            assert_eq!(Header::decode(bytes), Err(error), "{bytes:?}");
        }
        let mut packets = vec![0x13];
        packets.extend([0x47; 2 * PACKET]);
        assert_eq!(
            Header::decode(&packets).map(|(header, _)| header),
            Ok(Header::Packets)
        );
        packets[1 + PACKET] = 0x46;
        assert_eq!(Header::decode(&packets), Err(HeaderError::Packets));
    }

    proptest! {
        #[test]
        fn what_is_taken_has_one_form(mut bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(first) = bytes.first_mut() {
                *first = 0x10 | (*first % 7);
            }
            if let Some(flags) = bytes.get_mut(1) {
                *flags &= 0x1f;
            }
            if let Ok((header, rest)) = Header::decode(&bytes) {
                let mut again = Vec::new();
                header.encode(&mut again);
                again.extend(rest);
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
