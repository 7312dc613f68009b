//! Bytes of a section.

use alloc::vec::Vec;

use comity_units::{Span, Time};

use super::super::cursor::{Reader, Sink, Writer, within};
use super::super::limits::{MAX_SECTION, MAX_SECTION_ID, MAX_TIME_US};
use super::super::{DecodeError, EncodeError, Part, Problem, varint};
use super::{FrameKind, SECTION};

/// The frame has a length; without it the data reach to the end of the payload.
const HAS_LENGTH: u8 = 1;
/// The bytes were sent before.
const IS_RETRANSMISSION: u8 = 2;

/// Whether the bytes of sections follow their lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Content {
    /// They do, as on every network.
    #[default]
    Present,
    /// They are counted only, as in the simulator. Every section frame has its length then.
    Elided,
}

/// The bytes of a section, or how many they would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data<'a> {
    /// The bytes.
    Bytes(&'a [u8]),
    /// How many they would be.
    Elided(u32),
}

impl Data<'_> {
    /// How many bytes there are or would be.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Elided(length) => *length as usize,
        }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How a reader knows where the data of a section frame end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The frame has their length.
    Length,
    /// They reach to the end of the payload, so the frame is the last one.
    ToEnd,
}

/// What a section frame says about its data.
///
/// ```text
/// type : u8            0x04, +1 with a length, +2 for bytes that were sent before
/// stream : varint      at most 65,535
/// section : varint     at most MAX_SECTION_ID
/// offset : varint      of the first byte of the data in the section
/// total : varint       length of the section, 1 to MAX_SECTION
/// source time : varint [us] of the sender's clock, at most MAX_TIME_US
/// deadline : varint    0 = none, else 1 + [us] after the source time, at most MAX_TIME_US
/// importance : u8
/// needs : varint       0 = none, else how far below this section the one lies that it needs
/// length : varint      only with a length
/// data                 at least one byte, within the section
/// ```
///
/// Times are written in whole microseconds of the sender's clock, rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionHeader {
    /// The stream.
    pub stream: u16,
    /// Which section of the stream.
    pub section: u64,
    /// Where the data begin in the section. Below `total`.
    pub offset: u32,
    /// The length of the whole section in bytes, at least 1: an empty section would be delivered without anything to
    /// acknowledge or to miss.
    pub total: u32,
    /// When the media were captured, on the sender's clock.
    pub source_time: Time,
    /// By when the section must have arrived, on the sender's clock; [`Time::MAX`] when it may be late.
    /// Not before `source_time`.
    pub deadline: Time,
    /// Higher matters more.
    pub importance: u8,
    /// An earlier section of the stream without which this one is worthless.
    pub needs: Option<u64>,
    /// Whether these bytes were sent before.
    pub is_retransmission: bool,
}

impl SectionHeader {
    /// How many bytes the frame takes on the wire without its data.
    ///
    /// * `length`: how many bytes of data the frame will have.
    #[must_use]
    pub fn size(&self, length: u32, framing: Framing) -> usize {
        super::measured(|count| {
            let mut out = Writer::new(count, Part::Frame(FrameKind::Section));
            self.write(length, framing, &mut out)
        })
    }

    /// How many bytes of the section, from `offset` on, fit into `room` bytes together with this header.
    ///
    /// `None` when not even one does.
    #[must_use]
    pub fn fitting(&self, room: usize, framing: Framing) -> Option<u32> {
        let left = self.total.saturating_sub(self.offset);
        let without_length = self.size(1, Framing::ToEnd);
        let room = u32::try_from(room.checked_sub(without_length)?).unwrap_or(u32::MAX);
        let length = match framing {
            Framing::ToEnd => left.min(room),
            // The length takes room itself, and the more the longer the data are.
            Framing::Length => [1, 2, 4]
                .into_iter()
                .filter_map(|size| {
                    let longest = (1_u32 << (8 * size - 2)) - 1;
                    Some(left.min(room.checked_sub(size)?).min(longest))
                })
                .max()?,
        };
        (length >= 1).then_some(length)
    }

    /// Appends the frame up to its data, which the caller appends: `length` bytes of the section from
    /// `offset` on, or nothing when data are elided.
    ///
    /// # Errors
    /// [`EncodeError`] when a value lies outside of what [`decode`](super::decode) accepts; nothing is
    /// appended then.
    pub fn encode(
        &self,
        length: u32,
        framing: Framing,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        super::appended(out, |out| {
            let mut out = Writer::new(out, Part::Frame(FrameKind::Section));
            self.write(length, framing, &mut out)
        })
    }

    fn write<S: Sink>(
        &self,
        length: u32,
        framing: Framing,
        out: &mut Writer<'_, S>,
    ) -> Result<(), EncodeError> {
        let mut kind = SECTION;
        if framing == Framing::Length {
            kind |= HAS_LENGTH;
        }
        if self.is_retransmission {
            kind |= IS_RETRANSMISSION;
        }
        out.u8(kind);
        out.small(u32::from(self.stream));
        out.varint_in("section", self.section, 0..=MAX_SECTION_ID)?;
        let total = u64::from(self.total);
        out.check("total", total, 1..=u64::from(MAX_SECTION))?;
        let offset = u64::from(self.offset);
        out.varint_in("offset", offset, 0..=total.saturating_sub(1))?;
        out.small(self.total);
        let source_time = self.source_time.as_nanos() / 1_000;
        out.varint_in("source time", source_time, 0..=MAX_TIME_US)?;
        if self.deadline.is_never() {
            out.u8(0);
        } else {
            let deadline = self.deadline.as_nanos() / 1_000;
            let latest = source_time + MAX_TIME_US - 1;
            out.check("deadline", deadline, source_time..=latest)?;
            out.varint("deadline", deadline - source_time + 1)?;
        }
        out.u8(self.importance);
        match self.needs {
            None => out.u8(0),
            Some(needs) => match self.section.checked_sub(needs) {
                None | Some(0) => {
                    let problem = Problem::NotAscending {
                        value: self.section,
                        previous: needs,
                    };
                    return Err(out.error("needs", problem));
                }
                Some(distance) => out.varint("needs", distance)?,
            },
        }
        out.check("data", u64::from(length), self.lengths())?;
        if framing == Framing::Length {
            out.small(length);
        }
        Ok(())
    }

    /// How many bytes of data the frame may have.
    fn lengths(&self) -> core::ops::RangeInclusive<u64> {
        1..=u64::from(self.total.saturating_sub(self.offset))
    }

    fn read(input: &mut Reader<'_>, is_retransmission: bool) -> Result<Self, DecodeError> {
        let stream = input.varint_u32("stream", u32::from(u16::MAX))? as u16;
        let section = input.varint_in("section", 0..=MAX_SECTION_ID)?;
        let offset_place = input.offset();
        let offset = input.varint("offset")?;
        let total = input.varint_in("total", 1..=u64::from(MAX_SECTION))? as u32;
        let offset = within(offset, 0..=u64::from(total - 1))
            .map_err(|problem| input.error_at(offset_place, "offset", problem))?
            as u32;
        let source_time = Time::from_micros(input.varint_in("source time", 0..=MAX_TIME_US)?);
        let deadline = match input.varint_in("deadline", 0..=MAX_TIME_US)? {
            0 => Time::MAX,
            after => source_time + Span::from_micros(after - 1),
        };
        let importance = input.u8("importance")?;
        let needs = match input.varint_in("needs", 0..=section)? {
            0 => None,
            distance => Some(section - distance),
        };
        Ok(Self {
            stream,
            section,
            offset,
            total,
            source_time,
            deadline,
            importance,
            needs,
            is_retransmission,
        })
    }
}

/// Bytes of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// What is said about them.
    pub header: SectionHeader,
    /// How a reader knows where they end.
    pub framing: Framing,
    /// The bytes.
    pub data: Data<'a>,
}

impl<'a> Section<'a> {
    pub(super) fn write<S: Sink>(&self, out: &mut Writer<'_, S>) -> Result<(), EncodeError> {
        let length = u32::try_from(self.data.len()).unwrap_or(u32::MAX);
        self.header.write(length, self.framing, out)?;
        match self.data {
            Data::Bytes(bytes) => out.bytes(bytes),
            Data::Elided(length) if self.framing == Framing::ToEnd => {
                // Nothing would tell where the data end.
                let problem = Problem::OutOfRange {
                    value: u64::from(length),
                    least: 0,
                    most: 0,
                };
                return Err(out.error("length", problem));
            }
            Data::Elided(length) => out.elide(length as usize),
        }
        Ok(())
    }

    pub(super) fn read(
        input: &mut Reader<'a>,
        kind: u8,
        content: Content,
    ) -> Result<Self, DecodeError> {
        let header = SectionHeader::read(input, kind & IS_RETRANSMISSION != 0)?;
        let framing = if kind & HAS_LENGTH != 0 {
            Framing::Length
        } else {
            Framing::ToEnd
        };
        let data = match (framing, content) {
            (Framing::Length, Content::Present) => {
                let length = input.varint_in("length", header.lengths())?;
                Data::Bytes(input.bytes("data", length as usize)?)
            }
            (Framing::Length, Content::Elided) => {
                let length = input.varint_in("length", header.lengths())?;
                Data::Elided(length as u32)
            }
            (Framing::ToEnd, Content::Present) => {
                let rest = input.rest();
                within(rest.len() as u64, header.lengths())
                    .map_err(|problem| input.error("data", problem))?;
                Data::Bytes(input.bytes("data", rest.len())?)
            }
            (Framing::ToEnd, Content::Elided) => {
                let problem = Problem::Truncated {
                    needed: 1,
                    available: 0,
                };
                return Err(input.error("length", problem));
            }
        };
        Ok(Self {
            header,
            framing,
            data,
        })
    }
}

const _: () = assert!(MAX_SECTION < 1 << 30, "a length takes at most 4 bytes");
const _: () = assert!(MAX_TIME_US <= varint::MAX);
