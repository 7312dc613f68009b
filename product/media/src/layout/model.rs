//! The content of layouts, and how they name sections.

use std::collections::BTreeMap;

use twox_hash::XxHash64;

/// The stream of the tables.
pub(crate) const TABLES: u16 = 0;
/// The stream of the layouts.
pub(crate) const LAYOUTS: u16 = 0x3fff;
/// The stream of carried packets that do not belong to an elementary stream.
pub(crate) const CARRIED: u16 = 0x3ffe;
/// The stream of carried packets of elementary streams that are scrambled.
pub(crate) const SCRAMBLED: u16 = 0x3ffd;
/// The stream of other carried packets of elementary streams: damaged or not understood.
pub(crate) const DAMAGED: u16 = 0x3ffc;

/// The maximum number of packets in a layout.
pub(crate) const MAX_PACKETS: usize = 4_096;
/// The maximum number of PIDs in a layout, without that of null packets. A packet is coded with a
/// bit for each PID that had a packet more recently than its own.
pub(crate) const MAX_PIDS: usize = 256;

/// The PID of null packets.
pub(crate) const NULL: u16 = 0x1fff;

/// A run of consecutive packets.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Layout {
    /// In a multiplex of constant rate: by how much the clock advances with each packet, in units
    /// of 2^-12 ticks of 27 MHz.
    pub(crate) step: Option<u32>,
    /// In a live source without a constant rate: the time in milliseconds over which the packets
    /// arrived.
    pub(crate) lasted: Option<u8>,
    /// Whether it is the last layout of its source.
    pub(crate) is_last: bool,
    pub(crate) packets: Vec<Packet>,
    /// Bytes of the source outside of packets, by the number of packets before them.
    pub(crate) outside: BTreeMap<usize, Vec<u8>>,
}

/// The number of bits by which a tick of 27 MHz is shifted in [`Layout::step`].
pub(crate) const STEP_SHIFT: u32 = 12;

/// A packet without the bytes that are in sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    /// A null packet whose payload repeats one byte.
    Null(Null),
    /// A packet that a section contains whole.
    Whole { pid: u16, counter: u8, run: Run },
    /// A packet that contains parts of sections.
    Made(Made),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Null {
    /// The three high bits of the second byte.
    pub(crate) flags: u8,
    /// The fourth byte.
    pub(crate) control: u8,
    pub(crate) fill: u8,
}

impl Null {
    /// The usual null packet.
    pub(crate) const PLAIN: Self = Self {
        flags: 0,
        control: 0x10,
        fill: 0xff,
    };
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Made {
    pub(crate) pid: u16,
    pub(crate) counter: u8,
    pub(crate) begins: bool,
    pub(crate) priority: bool,
    pub(crate) scrambling: u8,
    pub(crate) has_payload: bool,
    pub(crate) field: Option<Field>,
    pub(crate) prefix: Prefix,
    /// The payload after the prefix. If there is room for more, the adaptation field is stuffed,
    /// or, without a field, the payload.
    pub(crate) runs: Vec<Run>,
}

/// An adaptation field.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Field {
    /// The flags; zero if the field contains only stuffing.
    pub(crate) flags: u8,
    /// The program clock reference in ticks of 27 MHz, if the flags announce it.
    pub(crate) clock: Option<u64>,
    /// The bytes between the clock reference and the stuffing.
    pub(crate) rest: Vec<u8>,
}

/// The payload of a packet before its parts of sections.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) enum Prefix {
    #[default]
    Nothing,
    /// The pointer to the first table section.
    Pointer(u8),
    /// The header of the PES packet of the first unit that begins in the packet.
    Pes {
        /// Its PES_packet_length.
        length: u16,
        /// Its seventh byte; `None` if the unit determines it.
        flags: Option<u8>,
        /// Its PES_header_data_length.
        data: u8,
    },
    Literal(Vec<u8>),
}

/// A part of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) section: SectionRef,
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl Run {
    pub(crate) const fn len(&self) -> usize {
        (self.to - self.from) as usize
    }
}

/// How a layout names a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct SectionRef {
    pub(crate) stream: u16,
    /// The low 16 bits of its number at the source.
    pub(crate) number: u16,
    /// The length of its payload after the media header.
    pub(crate) length: u32,
    /// The low bits of a hash of the payload. From it, a receiver finds the distance between its
    /// numbers and those at the source.
    pub(crate) hash: u16,
}

impl SectionRef {
    /// Names the section with this payload, which has `length` bytes after the media header.
    pub(crate) fn new(stream: u16, number: u64, payload: &[u8], length: usize) -> Self {
        Self {
            stream,
            number: (number & 0xffff) as u16,
            length: u32::try_from(length).unwrap_or(u32::MAX),
            hash: hash(payload),
        }
    }
}

/// The low 16 bits of XXH64 with seed 0.
pub(crate) fn hash(payload: &[u8]) -> u16 {
    (XxHash64::oneshot(0, payload) & 0xffff) as u16
}

impl Packet {
    /// The memory that it uses in addition to its own size, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let Self::Made(made) = self else { return 0 };
        let prefix = match &made.prefix {
            Prefix::Literal(bytes) => bytes.capacity(),
            Prefix::Nothing | Prefix::Pointer(_) | Prefix::Pes { .. } => 0,
        };
        let rest = made.field.as_ref().map_or(0, |field| field.rest.capacity());
        made.runs.capacity() * size_of::<Run>() + prefix + rest
    }

    pub(crate) const fn pid(&self) -> u16 {
        match self {
            Self::Null(_) => NULL,
            Self::Whole { pid, .. } => *pid,
            Self::Made(made) => made.pid,
        }
    }

    /// The counter of a packet that advances the counter of its PID.
    pub(crate) const fn counter(&self) -> Option<u8> {
        match self {
            Self::Whole { counter, .. } => Some(*counter),
            Self::Made(made) if made.has_payload => Some(made.counter),
            Self::Null(_) | Self::Made(_) => None,
        }
    }

    /// The clock reference, in ticks of 27 MHz.
    pub(crate) fn clock(&self) -> Option<u64> {
        match self {
            Self::Made(made) => made.field.as_ref()?.clock,
            Self::Null(_) | Self::Whole { .. } => None,
        }
    }

    pub(crate) fn runs(&self) -> &[Run] {
        match self {
            Self::Null(_) => &[],
            Self::Whole { run, .. } => core::slice::from_ref(run),
            Self::Made(made) => &made.runs,
        }
    }
}
