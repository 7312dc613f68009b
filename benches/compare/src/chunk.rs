//! A frame and its bytes: chunks that identify their frame on any transport.
//!
//! ```text
//! magic u32 | frame u32 | size of the frame u32 | submission time, ns u64 | index u16 |
//! chunks u16 | length of the chunk u16 | kind u8 | 0 u8 | checksum of all other bytes u32 | filler
//! ```
//! All numbers are little-endian.

use std::fmt;

use serde::Serialize;

/// The length of every chunk but a frame's last one: seven packets of an MPEG transport stream.
pub const SIZE: usize = 1_316;
pub const HEADER: usize = 32;
const MAGIC: u32 = u32::from_le_bytes(*b"FrMe");
const CHECKSUM_AT: usize = 28;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Kind {
    /// A key frame, without dependencies.
    I,
    P,
    /// No other frame needs it.
    B,
    /// A frame of a source with equal frames, without dependencies.
    Equal,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::I, Self::P, Self::B, Self::Equal];

    pub fn code(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::I => "I",
            Self::P => "P",
            Self::B => "B",
            Self::Equal => "equal",
        })
    }
}

/// One frame, in the order of coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    pub number: u32,
    pub kind: Kind,
    /// All of its bytes, the headers of its chunks included.
    pub size: u32,
    /// The frame that this one depends on.
    pub needs: Option<u32>,
    /// Its importance, on the scale of Comity's media reader: 200 for I, 190 - n for the n-th P of
    /// its group but at least 100, 20 for B.
    pub importance: u8,
}

impl Frame {
    pub fn chunks(&self) -> u16 {
        self.size.div_ceil(SIZE as u32) as u16
    }
}

/// The description of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub frame: u32,
    pub kind: u8,
    /// Bytes of the whole frame.
    pub size: u32,
    /// When the source submitted the frame, in nanoseconds of `CLOCK_MONOTONIC`.
    pub given_ns: u64,
    pub index: u16,
    pub chunks: u16,
    pub length: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than a header, or than the length in the header.
    Short,
    Magic,
    Checksum,
}

/// All chunks of a frame, concatenated.
pub fn write_frame(frame: &Frame, given_ns: u64) -> Vec<u8> {
    let size = frame.size as usize;
    let mut bytes = vec![0; size];
    for (index, chunk) in bytes.chunks_mut(SIZE).enumerate() {
        let header = Header {
            frame: frame.number,
            kind: frame.kind.code(),
            size: frame.size,
            given_ns,
            index: index as u16,
            chunks: frame.chunks(),
            length: chunk.len() as u16,
        };
        header.write(chunk);
    }
    bytes
}

impl Header {
    fn write(&self, chunk: &mut [u8]) {
        fill(chunk, (u64::from(self.frame) << 16) | u64::from(self.index));
        chunk[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        chunk[4..8].copy_from_slice(&self.frame.to_le_bytes());
        chunk[8..12].copy_from_slice(&self.size.to_le_bytes());
        chunk[12..20].copy_from_slice(&self.given_ns.to_le_bytes());
        chunk[20..22].copy_from_slice(&self.index.to_le_bytes());
        chunk[22..24].copy_from_slice(&self.chunks.to_le_bytes());
        chunk[24..26].copy_from_slice(&self.length.to_le_bytes());
        chunk[26] = self.kind;
        chunk[27] = 0;
        let sum = checksum(chunk).to_le_bytes();
        chunk[CHECKSUM_AT..HEADER].copy_from_slice(&sum);
    }

    /// Reads the header without its checksum, as soon as a stream has delivered it.
    pub fn peek(bytes: &[u8]) -> Result<Self, Malformed> {
        let header = bytes.get(..HEADER).ok_or(Malformed::Short)?;
        let four = |at: usize| header[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let two = |at: usize| header[at..at + 2].try_into().map_or(0, u16::from_le_bytes);
        if four(0) != MAGIC {
            return Err(Malformed::Magic);
        }
        let read = Self {
            frame: four(4),
            kind: header[26],
            size: four(8),
            given_ns: u64::from(four(12)) | u64::from(four(16)) << 32,
            index: two(20),
            chunks: two(22),
            length: two(24),
        };
        match usize::from(read.length) {
            HEADER..=SIZE => Ok(read),
            _ => Err(Malformed::Magic),
        }
    }

    /// Reads one whole chunk.
    pub fn read(chunk: &[u8]) -> Result<Self, Malformed> {
        let header = Self::peek(chunk)?;
        if chunk.len() != usize::from(header.length) {
            return Err(Malformed::Short);
        }
        match checksum(chunk).to_le_bytes() == chunk[CHECKSUM_AT..HEADER] {
            true => Ok(header),
            false => Err(Malformed::Checksum),
        }
    }
}

/// Pseudo-random bytes (xorshift64*, Vigna 2016), which the path cannot compress.
fn fill(bytes: &mut [u8], seed: u64) {
    let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15) | 1;
    for word in bytes.chunks_mut(8) {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let random = state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
        word.copy_from_slice(&random[..word.len()]);
    }
}

/// FNV-1a over words of eight bytes, without the bytes of the checksum itself.
fn checksum(chunk: &[u8]) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in [&chunk[..CHECKSUM_AT], &chunk[HEADER..]] {
        for word in part.chunks(8) {
            let mut eight = [0; 8];
            eight[..word.len()].copy_from_slice(word);
            hash = (hash ^ u64::from_le_bytes(eight)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    (hash ^ (hash >> 32)) as u32
}

/// Splits a stream of bytes into chunks.
#[derive(Debug, Default)]
pub struct Cutter {
    held: Vec<u8>,
}

impl Cutter {
    /// Adds bytes of a stream, and passes on each whole chunk.
    pub fn push(&mut self, bytes: &[u8], mut give: impl FnMut(&[u8])) -> Result<(), Malformed> {
        self.held.extend_from_slice(bytes);
        let mut rest = self.held.as_slice();
        while rest.len() >= HEADER {
            let length = usize::from(Header::peek(rest)?.length);
            let Some((chunk, behind)) = rest.split_at_checked(length) else {
                break;
            };
            give(chunk);
            rest = behind;
        }
        let kept = rest.len();
        self.held.drain(..self.held.len() - kept);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Frame = Frame {
        number: 7,
        kind: Kind::P,
        size: 3_000,
        needs: Some(6),
        importance: 189,
    };

    #[test]
    fn chunks_identify_their_frame() {
        let bytes = write_frame(&FRAME, 0x1234_5678_9abc);
        assert_eq!(bytes.len(), 3_000);
        let headers: Vec<_> = bytes
            .chunks(SIZE)
            .map(|chunk| Header::read(chunk).expect("whole"))
            .collect();
        let lengths: Vec<_> = headers
            .iter()
            .map(|header| (header.index, header.length))
            .collect();
        assert_eq!(lengths, [(0, 1_316), (1, 1_316), (2, 368)]);
        assert!(headers.iter().all(|header| (
            header.frame,
            header.size,
            header.chunks,
            header.given_ns,
            header.kind
        ) == (7, 3_000, 3, 0x1234_5678_9abc, 1)));
    }

    #[test]
    fn every_changed_byte_shows() {
        let bytes = write_frame(&FRAME, 5);
        for at in 0..SIZE {
            let mut chunk = bytes[..SIZE].to_vec();
            chunk[at] ^= 0x10;
            assert!(Header::read(&chunk).is_err(), "byte {at}");
        }
        assert_eq!(Header::read(&bytes[..SIZE - 1]), Err(Malformed::Short));
        assert_eq!(Header::read(&bytes[..HEADER - 1]), Err(Malformed::Short));
    }

    #[test]
    fn a_stream_is_cut_into_its_chunks_wherever_it_breaks() {
        let bytes = write_frame(&FRAME, 5);
        for piece in [1, 31, 33, 1_316, 2_999] {
            let (mut cutter, mut lengths) = (Cutter::default(), Vec::new());
            for part in bytes.chunks(piece) {
                cutter
                    .push(part, |chunk| lengths.push(chunk.len()))
                    .expect("chunks");
            }
            assert_eq!(lengths, [1_316, 1_316, 368], "in pieces of {piece}");
        }
        assert_eq!(
            Cutter::default().push(&[0; 40], |_| ()),
            Err(Malformed::Magic)
        );
    }
}
