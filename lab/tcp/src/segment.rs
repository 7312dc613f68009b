//! Segments as the state machines handle them.

use core::fmt;
use core::num::NonZeroU16;
use core::ops::{BitOr, BitOrAssign};

use comity_congestion::Ecn;
use comity_units::SeqNo;

use super::timeline::SeqUpdate;

/// The IP header in the wire sizes that controllers and meters receive.
pub(super) const IP_HEADER: u32 = 20;

/// A TCP segment without its payload bytes.
///
/// The state machines count payload but do not carry it. Bytes exist only at the edges, where the
/// codec reads and writes the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Segment {
    /// The sequence number of the first payload byte (of the SYN, when that flag is set).
    pub sequence: SeqNo,
    /// The next sequence number that the sender of this segment expects; valid with [`Flags::ACK`].
    pub acknowledgement: SeqNo,
    /// The length of the payload in bytes.
    pub payload: u32,
    /// The receive window field of the header, before scaling.
    pub window: u16,
    /// The control flags.
    pub flags: Flags,
    /// The options.
    pub options: Options,
    /// The ECN codepoint of the IP header around the segment. It is not part of TCP's header: the
    /// [codec](super::codec) neither writes nor reads it.
    pub ecn: Ecn,
}

impl Segment {
    /// The sequence numbers that the segment consumes: its payload, and one each for SYN and FIN.
    pub fn sequence_length(&self) -> u32 {
        self.payload
            .wrapping_add(u32::from(self.flags.contains(Flags::SYN)))
            .wrapping_add(u32::from(self.flags.contains(Flags::FIN)))
    }

    /// The sequence number after the segment.
    pub fn sequence_end(&self) -> SeqNo {
        self.sequence + self.sequence_length()
    }
}

/// The control flags of a segment, as in the header (RFC 9293, section 3.1; RFC 3168, section 6.1).
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(u8);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// The sender has no more data.
    pub const FIN: Self = Self(0x01);
    /// Synchronises sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Resets the connection.
    pub const RST: Self = Self(0x04);
    /// Requests that the receiver hand data over at once.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field is valid.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is valid; Comity never sets it and ignores it.
    pub const URG: Self = Self(0x20);
    /// Congestion was experienced (echo).
    pub const ECE: Self = Self(0x40);
    /// The congestion window was reduced.
    pub const CWR: Self = Self(0x80);

    /// The flags of a header byte.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The header byte.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether all of `flags` are set.
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Whether any of `flags` is set.
    pub const fn intersects(self, flags: Self) -> bool {
        self.0 & flags.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// The names of the set flags, as in `SYN|ACK`.
impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        let mut first = true;
        for (bit, name) in NAMES.iter().enumerate() {
            if self.0 & (1 << bit) != 0 {
                if !first {
                    f.write_str("|")?;
                }
                f.write_str(name)?;
                first = false;
            }
        }
        if first { f.write_str("none") } else { Ok(()) }
    }
}

/// The options of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Options {
    /// The largest payload that the sender of this segment accepts (SYN only; RFC 9293, section
    /// 3.7.1).
    pub mss: Option<u16>,
    /// The shift of the sender's later windows in bits (SYN only; RFC 7323, section 2).
    pub window_scale: Option<u8>,
    /// Whether the sender understands SACK (SYN only; RFC 2018, section 2).
    pub sack_permitted: bool,
    /// Timestamps (RFC 7323, section 3).
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgements (RFC 2018, section 3).
    pub sack: SackBlocks,
    /// The wave of TCP-Real that the payload belongs to.
    pub wave: Option<Wave>,
    /// The level that TCP-Real's receiver requests for the next wave: its option TCP_REAL.
    pub level: Option<NonZeroU16>,
    /// The position of the sender of a time-lined stream.
    pub seq_update: Option<SeqUpdate>,
}

/// The timestamps option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Timestamps {
    /// The sender's clock, TSval.
    pub value: u32,
    /// The latest timestamp of the peer, TSecr; valid with [`Flags::ACK`].
    pub echo: u32,
}

/// The position of a segment in a wave of TCP-Real: see [`comity_congestion::Tag::Wave`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wave {
    /// The number of the wave in its connection, wrapping.
    pub wave: u16,
    /// The segments in the wave.
    pub segments: NonZeroU16,
    /// The position of this segment, from 1 to `segments`.
    pub position: u16,
}

/// A range of sequence numbers that arrived above the cumulative acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SackBlock {
    /// The first number of the range.
    pub start: SeqNo,
    /// The number after the last of the range.
    pub end: SeqNo,
}

/// Up to four SACK blocks, the maximum that fits into the option space of a header.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [SackBlock; Self::CAPACITY],
    count: u8,
}

impl SackBlocks {
    /// The maximum number of blocks in a segment (three beside timestamps).
    pub const CAPACITY: usize = 4;

    /// No blocks.
    pub const EMPTY: Self = Self {
        blocks: [SackBlock {
            start: SeqNo::ZERO,
            end: SeqNo::ZERO,
        }; Self::CAPACITY],
        count: 0,
    };

    /// Adds a block; returns `false` if no room is left.
    pub fn push(&mut self, block: SackBlock) -> bool {
        match self.blocks.get_mut(usize::from(self.count)) {
            Some(slot) => {
                *slot = block;
                self.count += 1;
                true
            }
            None => false,
        }
    }

    /// Keeps only the first `count` blocks.
    pub fn truncate(&mut self, count: usize) {
        self.count = self.count.min(u8::try_from(count).unwrap_or(u8::MAX));
        for unused in self.blocks.iter_mut().skip(usize::from(self.count)) {
            *unused = SackBlock::default();
        }
    }

    /// The blocks in the order of the header: the most recent first.
    pub fn as_slice(&self) -> &[SackBlock] {
        self.blocks.get(..usize::from(self.count)).unwrap_or(&[])
    }

    /// How many blocks there are.
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Whether it has no blocks.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}
