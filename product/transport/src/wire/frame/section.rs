//! Bytes of a section.

use alloc::vec::Vec;

use comity_units::{Span, Time};

use super::super::cursor::{Reader, Sink, Writer, within};
use super::super::kinds::FrameKind;
use super::super::limits::{DEFAULT_IMPORTANCE, MAX_SECTION, MAX_SECTION_ID, MAX_TIME_US};
use super::super::{DecodeError, EncodeError, Part, Problem, varint};
use super::types::SECTION;

/// The frame has a length; without it the data extends to the end of the payload.
const HAS_LENGTH: u8 = 1;
/// The bytes were sent before.
const IS_RETRANSMISSION: u8 = 2;
/// The frame has importance and dependency; without them the section has [`DEFAULT_IMPORTANCE`] and
/// no dependency.
const HAS_IMPORTANCE: u8 = 4;
/// The deadline counts milliseconds instead of microseconds.
const IN_MILLISECONDS: u8 = 8;

/// Whether the bytes of sections follow their lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Content {
    /// They follow, as on every network.
    #[default]
    Present,
    /// They are only counted, as in the simulator. Every section frame then has its length, even if
    /// its data would extend to the end of the payload.
    Elided,
}

/// The bytes of a section, or their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data<'a> {
    /// The bytes.
    Bytes(&'a [u8]),
    /// Only their number.
    Elided(u32),
}

impl Data<'_> {
    /// The number of bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Elided(length) => *length as usize,
        }
    }

    /// Whether it has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How a section frame marks the end of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The frame has the length of its data.
    Length,
    /// The data extends to the end of the payload, so the frame is the last one.
    ToEnd,
}

impl Framing {
    /// The bytes that a frame with `length` bytes of data has on a network beyond its encoding with
    /// elided data. This is the data, minus the length field that elision adds to a frame at the
    /// end. The simulator adds them, so a simulated packet counts as large as a real one.
    #[must_use]
    pub fn elided(self, length: u32) -> usize {
        let field = match self {
            Self::Length => 0,
            Self::ToEnd => varint::size(u64::from(length)),
        };
        (length as usize).saturating_sub(field)
    }
}

/// The fields of a section frame beside its data.
///
/// ```text
/// type : u8 0x20, +1 with a length, +2 for retransmitted bytes,
///                      +4 with importance and needs, +8 with a deadline in milliseconds
/// stream : varint      at most 65,535
/// section : varint     at most MAX_SECTION_ID
/// floor : varint       how far below this section the floor of the stream lies, at most `section`
/// offset : varint      of the first byte of the data in the section
/// total : varint       length of the section, 1 to MAX_SECTION
/// source time : varint [us] of the sender's clock, at most MAX_TIME_US
/// deadline : varint    0 = none, else 1 + [us] or [ms] after the source time;
///                      1 + [us] at most MAX_TIME_US
/// importance : u8      only with importance and needs, else DEFAULT_IMPORTANCE
/// needs : varint       only with importance and needs; 0 = none, else the distance down to the
///                      section that it depends on
/// length : varint      only with a length
/// data                 at least one byte, within the section
/// ```
///
/// Times are whole microseconds of the sender's clock, rounded down. A writer uses the shortest
/// equivalent form; a reader accepts any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionHeader {
    /// The stream.
    pub stream: u16,
    /// Which section of the stream.
    pub section: u64,
    /// All sections of the stream below this one are obsolete for the sender. At most `section`.
    pub floor: u64,
    /// The offset of the data in the section. Below `total`.
    pub offset: u32,
    /// The length of the whole section in bytes, at least 1: an empty section could be neither
    /// acknowledged nor lost.
    pub total: u32,
    /// When the media were captured, on the sender's clock.
    pub source_time: Time,
    /// When the section must arrive, on the sender's clock; [`Time::MAX`] without a deadline. Not
    /// before `source_time`.
    pub deadline: Time,
    /// A higher value is more important. [`DEFAULT_IMPORTANCE`] is not encoded if the section has
    /// no dependency.
    pub importance: u8,
    /// An earlier section of the stream that this one depends on.
    pub needs: Option<u64>,
    /// Whether these bytes were sent before.
    pub is_retransmission: bool,
}

impl SectionHeader {
    /// The size of the frame on the wire without its data.
    ///
    /// * `length`: the number of data bytes in the frame.
    ///
    /// Meaningless for a header that [`encode`](Self::encode) refuses.
    #[must_use]
    pub fn size(&self, length: u32, framing: Framing) -> usize {
        self.begin().map_or(0, |begun| begun.size(length, framing))
    }

    /// How many bytes of the section, from `offset`, fit into `room` bytes together with this
    /// header.
    ///
    /// `None` if not even one byte does.
    #[must_use]
    pub fn fitting(&self, room: usize, framing: Framing) -> Option<u32> {
        self.begin().ok()?.fitting(room, framing)
    }

    /// Appends the frame without its data. The caller appends the data: `length` bytes of the
    /// section from `offset`, or nothing if `content` is elided.
    ///
    /// # Errors
    /// [`EncodeError`] if [`decode`](super::decode) would refuse a value; nothing is appended then.
    pub fn encode(
        &self,
        length: u32,
        framing: Framing,
        content: Content,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        self.begin()?.encode(length, framing, content, out)
    }

    /// Writes everything except the length of the data.
    ///
    /// # Errors
    /// As [`encode`](Self::encode), but for the length.
    pub fn begin(&self) -> Result<BegunHeader, EncodeError> {
        let mut fields = Fields::default();
        self.write(&mut Writer::new(&mut fields, PART))?;
        Ok(BegunHeader {
            fields,
            left: self.total.saturating_sub(self.offset),
        })
    }

    fn write(&self, out: &mut Writer<'_, Fields>) -> Result<(), EncodeError> {
        let source_time = self.source_time.as_nanos() / 1_000;
        let deadline = (!self.deadline.is_never()).then(|| self.deadline.as_nanos() / 1_000);
        let after = deadline.map(|deadline| deadline.saturating_sub(source_time));
        let in_milliseconds = after.is_some_and(|after| after % 1_000 == 0);
        let has_importance = self.importance != DEFAULT_IMPORTANCE || self.needs.is_some();
        let kind = [
            (IS_RETRANSMISSION, self.is_retransmission),
            (HAS_IMPORTANCE, has_importance),
            (IN_MILLISECONDS, in_milliseconds),
        ]
        .into_iter()
        .fold(SECTION, |kind, (bit, is_set)| {
            kind | (u8::from(is_set) * bit)
        });
        out.u8(kind);
        out.small(u32::from(self.stream));
        out.varint_in("section", self.section, 0..=MAX_SECTION_ID)?;
        let floor = out.check("floor", self.floor, 0..=self.section)?;
        out.varint("floor", self.section.saturating_sub(floor))?;
        let total = u64::from(self.total);
        out.check("total", total, 1..=u64::from(MAX_SECTION))?;
        let offset = u64::from(self.offset);
        out.varint_in("offset", offset, 0..=total.saturating_sub(1))?;
        out.small(self.total);
        out.varint_in("source time", source_time, 0..=MAX_TIME_US)?;
        if let Some(deadline) = deadline {
            let latest = source_time + MAX_TIME_US - 1;
            out.check("deadline", deadline, source_time..=latest)?;
        }
        out.varint(
            "deadline",
            match after {
                None => 0,
                Some(after) if in_milliseconds => 1 + after / 1_000,
                Some(after) => 1 + after,
            },
        )?;
        match has_importance {
            true => self.write_importance(out),
            false => Ok(()),
        }
    }

    fn write_importance(&self, out: &mut Writer<'_, Fields>) -> Result<(), EncodeError> {
        out.u8(self.importance);
        let Some(needs) = self.needs else {
            out.u8(0);
            return Ok(());
        };
        match self.section.checked_sub(needs) {
            None | Some(0) => {
                let problem = Problem::NotAscending {
                    value: self.section,
                    previous: needs,
                };
                Err(out.error("needs", problem))
            }
            Some(distance) => out.varint("needs", distance),
        }
    }

    /// The allowed numbers of data bytes.
    fn lengths(&self) -> core::ops::RangeInclusive<u64> {
        1..=u64::from(self.total.saturating_sub(self.offset))
    }

    fn read(input: &mut Reader<'_>, kind: u8) -> Result<Self, DecodeError> {
        let stream = input.varint_u32("stream", u32::from(u16::MAX))? as u16;
        let section = input.varint_in("section", 0..=MAX_SECTION_ID)?;
        let floor = section - input.varint_in("floor", 0..=section)?;
        let offset_position = input.offset();
        let offset = input.varint("offset")?;
        let total = input.varint_in("total", 1..=u64::from(MAX_SECTION))? as u32;
        let offset = within(offset, 0..=u64::from(total - 1))
            .map_err(|problem| input.error_at(offset_position, "offset", problem))?
            as u32;
        let source_time = Time::from_micros(input.varint_in("source time", 0..=MAX_TIME_US)?);
        let unit = if kind & IN_MILLISECONDS == 0 {
            1
        } else {
            1_000
        };
        let deadline = match input.varint_in("deadline", 0..=1 + (MAX_TIME_US - 1) / unit)? {
            0 => Time::MAX,
            after => source_time + Span::from_micros((after - 1) * unit),
        };
        let (importance, needs) = if kind & HAS_IMPORTANCE == 0 {
            (DEFAULT_IMPORTANCE, 0)
        } else {
            let importance = input.u8("importance")?;
            (importance, input.varint_in("needs", 0..=section)?)
        };
        Ok(Self {
            stream,
            section,
            floor,
            offset,
            total,
            source_time,
            deadline,
            importance,
            needs: (needs > 0).then(|| section - needs),
            is_retransmission: kind & IS_RETRANSMISSION != 0,
        })
    }
}

/// A header written without the length of its data, because the number of bytes that fit depends on
/// the size of the header.
#[derive(Clone, Copy, Debug)]
pub struct BegunHeader {
    fields: Fields,
    /// The maximum number of data bytes.
    left: u32,
}

impl BegunHeader {
    /// As [`SectionHeader::size`].
    #[must_use]
    pub fn size(&self, length: u32, framing: Framing) -> usize {
        let field = match framing {
            Framing::Length => varint::size(u64::from(length)),
            Framing::ToEnd => 0,
        };
        self.fields.length + field
    }

    /// As [`SectionHeader::fitting`].
    #[must_use]
    pub fn fitting(&self, room: usize, framing: Framing) -> Option<u32> {
        let room = u32::try_from(room.checked_sub(self.fields.length)?).unwrap_or(u32::MAX);
        let length = match framing {
            Framing::ToEnd => self.left.min(room),
            // The length field needs room itself, and more for longer data.
            Framing::Length => [1, 2, 4]
                .into_iter()
                .filter_map(|size| {
                    let longest = (1_u32 << (8 * size - 2)) - 1;
                    Some(self.left.min(room.checked_sub(size)?).min(longest))
                })
                .max()?,
        };
        (length >= 1).then_some(length)
    }

    /// The same header with this retransmission flag; its size stays the same.
    #[must_use]
    pub fn retransmitted(mut self, is_retransmission: bool) -> Self {
        self.fields.set(IS_RETRANSMISSION, is_retransmission);
        self
    }

    /// As [`SectionHeader::encode`].
    ///
    /// # Errors
    /// [`EncodeError`] if `length` is zero or exceeds the rest of the section; nothing is appended
    /// then.
    pub fn encode(
        self,
        length: u32,
        framing: Framing,
        content: Content,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        out.extend_from_slice(self.end(length, framing, content)?.bytes());
        Ok(())
    }

    fn end(
        mut self,
        length: u32,
        framing: Framing,
        content: Content,
    ) -> Result<Fields, EncodeError> {
        let mut out = Writer::new(&mut self.fields, PART);
        out.check("data", u64::from(length), 1..=u64::from(self.left))?;
        if framing == Framing::Length || content == Content::Elided {
            out.small(length);
        }
        self.fields.set(HAS_LENGTH, framing == Framing::Length);
        Ok(self.fields)
    }
}

/// The fields of a header, stored in place. This is cheaper than a vector, which may have to grow
/// for each.
#[derive(Clone, Copy, Debug)]
struct Fields {
    bytes: [u8; MAX_FIELDS + 8],
    length: usize,
}

/// Type, stream, section, floor, offset, total, source time, deadline, importance, needs and
/// length.
const MAX_FIELDS: usize = 1 + 4 + 8 + 8 + 4 + 4 + 8 + 8 + 1 + 8 + 4;

impl Default for Fields {
    fn default() -> Self {
        Self {
            bytes: [0; MAX_FIELDS + 8],
            length: 0,
        }
    }
}

impl Fields {
    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Sets a bit of the type.
    fn set(&mut self, bit: u8, is_set: bool) {
        if let Some(kind) = self.bytes.first_mut() {
            *kind = *kind & !bit | (u8::from(is_set) * bit);
        }
    }
}

impl Sink for Fields {
    fn put(&mut self, bytes: &[u8]) {
        let end = self.length.saturating_add(bytes.len());
        if let Some(target) = self.bytes.get_mut(self.length..end) {
            target.copy_from_slice(bytes);
            self.length = end;
        }
    }

    /// Writes eight bytes for every size, which is cheaper. The next field overwrites the rest.
    fn varint(&mut self, value: u64) {
        let (bytes, size) = varint::aligned(value);
        let target = self.bytes.get_mut(self.length..);
        if let Some(target) = target.and_then(<[u8]>::first_chunk_mut) {
            *target = bytes;
            self.length += size;
        }
    }

    fn elide(&mut self, _: usize) {}

    fn zeros(&mut self, _: usize) {}
}

const PART: Part = Part::Frame(FrameKind::Section);

/// Bytes of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// The other fields of the frame.
    pub header: SectionHeader,
    /// How the frame marks the end of the data.
    pub framing: Framing,
    /// The bytes.
    pub data: Data<'a>,
}

impl<'a> Section<'a> {
    pub(super) fn write<S: Sink>(&self, out: &mut Writer<'_, S>) -> Result<(), EncodeError> {
        let length = u32::try_from(self.data.len()).unwrap_or(u32::MAX);
        let content = match self.data {
            Data::Bytes(_) => Content::Present,
            Data::Elided(_) => Content::Elided,
        };
        let header = self.header.begin()?.end(length, self.framing, content)?;
        out.bytes(header.bytes());
        match self.data {
            Data::Bytes(bytes) => out.bytes(bytes),
            Data::Elided(length) => out.elide(self.framing.elided(length)),
        }
        Ok(())
    }

    pub(super) fn read(
        input: &mut Reader<'a>,
        kind: u8,
        content: Content,
    ) -> Result<Self, DecodeError> {
        let header = SectionHeader::read(input, kind)?;
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
            (Framing::ToEnd, Content::Present) => {
                let rest = input.rest();
                within(rest.len() as u64, header.lengths())
                    .map_err(|problem| input.error("data", problem))?;
                Data::Bytes(input.bytes("data", rest.len())?)
            }
            (_, Content::Elided) => {
                let length = input.varint_in("length", header.lengths())?;
                if framing == Framing::ToEnd {
                    input.end("data")?;
                }
                Data::Elided(length as u32)
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
