//! Sections in a byte stream that a receiver can locate after a gap:
//! `docs/protocol/sections-over-tcp.md`.
//!
//! Each section is sent in parts, each after a header of 40 bytes. Integers are big-endian.
//!
//! ```text
//! 0        4        8                16               24        28        32               40
//! | "CTS1" | part   | position of    | number of the  | section | offset  | due, in µs of  |
//! |        | length | this header    | section        | length  | of part | Unix time      |
//! ```
//!
//! The position is the number of bytes of the stream before the header. It distinguishes a header
//! after a gap from content that resembles one.
//!
//! ```
//! use comity_tcp_host::framing::{Header, SectionReader};
//!
//! let header = Header {
//!     part_length: 5,
//!     position: 0,
//!     number: 0,
//!     section_length: 5,
//!     part_offset: 0,
//!     due_us: 1_000,
//! };
//! let mut reader = SectionReader::new(1 << 20);
//! reader.data(&header.encode())?;
//! reader.data(b"hello")?;
//! let section = reader.poll().unwrap();
//! assert!(section.is_complete && section.bytes == b"hello");
//! # Ok::<(), comity_tcp_host::framing::FramingError>(())
//! ```

use std::collections::VecDeque;

/// The first bytes of a header.
const MAGIC: [u8; 4] = *b"CTS1";
/// The length of a header in bytes.
pub const HEADER: usize = 40;

/// The header of a part of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Header {
    /// The number of bytes in this part, at least 1.
    pub part_length: u32,
    /// The number of bytes of the stream before this header.
    pub position: u64,
    /// The number of the section, from 0. The sender omitted the missing numbers.
    pub number: u64,
    /// The number of bytes in the whole section.
    pub section_length: u32,
    /// The number of bytes of the section before this part.
    pub part_offset: u32,
    /// When the section is due, in microseconds of Unix time by the sender's clock; [`u64::MAX`]
    /// for never.
    pub due_us: u64,
}

impl Header {
    /// The encoded header.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let fields: [&[u8]; 7] = [
            &MAGIC,
            &self.part_length.to_be_bytes(),
            &self.position.to_be_bytes(),
            &self.number.to_be_bytes(),
            &self.section_length.to_be_bytes(),
            &self.part_offset.to_be_bytes(),
            &self.due_us.to_be_bytes(),
        ];
        for (target, byte) in bytes.iter_mut().zip(fields.into_iter().flatten()) {
            *target = *byte;
        }
        bytes
    }

    /// Reads a header.
    ///
    /// # Errors
    /// [`FramingError`] if the bytes are not a header, or are one without meaning.
    pub fn decode(bytes: &[u8; HEADER]) -> Result<Self, FramingError> {
        let mut rest = bytes.iter().copied();
        let mut integer = |length: usize| {
            let bytes = rest.by_ref().take(length);
            bytes.fold(0_u64, |value, byte| value << 8 | u64::from(byte))
        };
        let magic = integer(4) as u32;
        let header = Self {
            part_length: integer(4) as u32,
            position: integer(8),
            number: integer(8),
            section_length: integer(4) as u32,
            part_offset: integer(4) as u32,
            due_us: integer(8),
        };
        if magic != u32::from_be_bytes(MAGIC) {
            return Err(FramingError::Magic { found: magic });
        }
        let end = u64::from(header.part_offset) + u64::from(header.part_length);
        if header.part_length == 0 || end > u64::from(header.section_length) {
            return Err(FramingError::Part {
                number: header.number,
                offset: header.part_offset,
                length: header.part_length,
                section_length: header.section_length,
            });
        }
        Ok(header)
    }
}

/// Why a stream does not consist of sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// No header begins where one is expected.
    #[error("header: begins with {found:#010x}, expected \"CTS1\"")]
    Magic {
        /// The bytes found instead.
        found: u32,
    },
    /// A part lies beyond its section, or is empty.
    #[error(
        "header of section {number}: part of {length} bytes at {offset}, expected 1 or more within \
         the section's {section_length}"
    )]
    Part {
        /// The number of the section.
        number: u64,
        /// The offset of the part.
        offset: u32,
        /// Its length.
        length: u32,
        /// The length of the section.
        section_length: u32,
    },
    /// The position in a header is not its own.
    #[error("header of section {number}: position {found}, expected {expected}")]
    Position {
        /// The number of the section.
        number: u64,
        /// The position stated in the header.
        found: u64,
        /// The actual position of the header.
        expected: u64,
    },
    /// A section or a part is out of order.
    #[error(
        "header of section {number}: part at {offset} out of order, expected section {next} or a later one"
    )]
    Order {
        /// The number of the section.
        number: u64,
        /// The offset of the part.
        offset: u32,
        /// The lowest number of a section that may begin.
        next: u64,
    },
    /// The section is larger than the reader accepts.
    #[error("header of section {number}: {length} bytes, expected at most {limit}")]
    TooLarge {
        /// The number of the section.
        number: u64,
        /// Its length.
        length: u32,
        /// The limit.
        limit: u32,
    },
}

/// A section that arrived, or the beginning of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedSection {
    /// Its number. Numbers increase. The sender omitted the missing ones, or their headers were
    /// lost.
    pub number: u64,
    /// When it is due, in microseconds of Unix time by the sender's clock; [`u64::MAX`] for never.
    pub due_us: u64,
    /// The length of the whole section in bytes.
    pub length: u32,
    /// Whether it arrived completely.
    pub is_complete: bool,
    /// The bytes before the first missing one.
    pub bytes: Vec<u8>,
}

/// A section whose parts are arriving.
#[derive(Debug)]
struct Open {
    section: ReceivedSection,
    /// The number of content bytes that have arrived or are known to be missing.
    passed: u32,
    has_gap: bool,
}

/// The next part of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// A header.
    Header,
    /// This many bytes of the open section's part.
    Content(u32),
    /// Unknown content, until the next header.
    Unknown,
}

/// Finds the sections in the data and the gaps of a stream.
///
/// It holds the section that is arriving, up to the limit, and the sections that
/// [`poll`](Self::poll) has not yet returned.
#[derive(Debug)]
pub struct SectionReader {
    limit: u32,
    /// The number of bytes in data and gaps before the buffered bytes.
    position: u64,
    next: Next,
    /// The beginning of a header.
    buffer: Vec<u8>,
    open: Option<Open>,
    /// The lowest number of a section that may begin.
    next_number: u64,
    ready: VecDeque<ReceivedSection>,
    error: Option<FramingError>,
}

impl SectionReader {
    /// Creates a reader at the beginning of a stream, for sections of at most `limit` bytes.
    pub const fn new(limit: u32) -> Self {
        Self {
            limit,
            position: 0,
            next: Next::Header,
            buffer: Vec::new(),
            open: None,
            next_number: 0,
            ready: VecDeque::new(),
            error: None,
        }
    }

    /// The next section in order.
    pub fn poll(&mut self) -> Option<ReceivedSection> {
        self.ready.pop_front()
    }

    /// Adds data that arrived.
    ///
    /// # Errors
    /// [`FramingError`] if the stream does not consist of sections; all later calls return it too.
    pub fn data(&mut self, mut bytes: &[u8]) -> Result<(), FramingError> {
        while !bytes.is_empty() && self.error.is_none() {
            bytes = match self.next {
                Next::Content(left) => self.content(left, bytes),
                Next::Header | Next::Unknown => self.header(bytes),
            };
        }
        self.error.map_or(Ok(()), Err)
    }

    /// Skips `length` bytes that will not arrive.
    pub fn gap(&mut self, length: u64) {
        if length == 0 {
            return;
        }
        self.position = self
            .position
            .saturating_add(self.buffer.len() as u64)
            .saturating_add(length);
        self.buffer.clear();
        if let (Next::Content(left), Some(open)) = (self.next, &mut self.open) {
            open.has_gap = true;
            let inside = length.min(u64::from(left)) as u32;
            open.passed += inside;
            if inside < left {
                self.next = Next::Content(left - inside);
                return;
            }
        }
        self.next = Next::Unknown;
        self.close();
    }

    /// Ends the stream: an open section remains incomplete.
    pub fn finish(&mut self) {
        self.close();
    }

    fn content<'a>(&mut self, left: u32, bytes: &'a [u8]) -> &'a [u8] {
        let length = bytes.len().min(left as usize);
        let (content, rest) = bytes.split_at(length);
        self.position += length as u64;
        if let Some(open) = &mut self.open {
            open.passed += length as u32;
            if !open.has_gap {
                open.section.bytes.extend_from_slice(content);
            }
            if open.passed >= open.section.length {
                self.close();
            }
        }
        self.next = match left - length as u32 {
            0 => Next::Header,
            left => Next::Content(left),
        };
        rest
    }

    /// Fills the buffer until it contains a header.
    fn header<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let missing = HEADER - self.buffer.len();
        let (taken, rest) = bytes.split_at(bytes.len().min(missing));
        self.buffer.extend_from_slice(taken);
        let Ok(whole) = <[u8; HEADER]>::try_from(self.buffer.as_slice()) else {
            return rest;
        };
        match self.check(&whole) {
            Ok(header) => {
                self.buffer.clear();
                self.position += HEADER as u64;
                self.begin(&header);
            }
            Err(error) if self.next == Next::Header => self.error = Some(error),
            Err(_) => {
                // The next offset at which a header can begin.
                let found = self
                    .buffer
                    .iter()
                    .skip(1)
                    .position(|byte| *byte == MAGIC[0]);
                let skipped = found.map_or(HEADER, |at| at + 1);
                self.buffer.drain(..skipped);
                self.position += skipped as u64;
            }
        }
        rest
    }

    /// Decodes a header, which must continue the stream.
    fn check(&self, bytes: &[u8; HEADER]) -> Result<Header, FramingError> {
        let header = Header::decode(bytes)?;
        let number = header.number;
        if header.position != self.position {
            return Err(FramingError::Position {
                number,
                found: header.position,
                expected: self.position,
            });
        }
        if header.section_length > self.limit {
            return Err(FramingError::TooLarge {
                number,
                length: header.section_length,
                limit: self.limit,
            });
        }
        let continues = self.open.as_ref().is_some_and(|open| {
            open.section.number == number
                && open.passed == header.part_offset
                && open.section.length == header.section_length
        });
        let begins =
            number >= self.next_number && (header.part_offset == 0 || self.next == Next::Unknown);
        if !continues && !begins {
            return Err(FramingError::Order {
                number,
                offset: header.part_offset,
                next: self.next_number,
            });
        }
        Ok(header)
    }

    /// Begins a part.
    fn begin(&mut self, header: &Header) {
        self.next = Next::Content(header.part_length);
        let is_open = |open: &Open| open.section.number == header.number;
        if self.open.as_ref().is_some_and(is_open) {
            return;
        }
        self.close();
        self.next_number = header.number.saturating_add(1);
        self.open = Some(Open {
            section: ReceivedSection {
                number: header.number,
                due_us: header.due_us,
                length: header.section_length,
                is_complete: false,
                bytes: Vec::new(),
            },
            passed: header.part_offset,
            has_gap: header.part_offset > 0,
        });
    }

    /// Closes the open section: no more of it arrives.
    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            let is_complete = !open.has_gap && open.passed == open.section.length;
            self.ready.push_back(ReceivedSection {
                is_complete,
                ..open.section
            });
        }
    }
}

#[cfg(test)]
mod tests;
