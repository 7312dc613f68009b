//! Frames about streams, sections and the connection.

use comity_frames::Reason;

use super::super::cursor::{Reader, Sink, Writer};
use super::super::limits::{MAX_OPEN_SECTIONS, MAX_REASON, MAX_SECTION_COUNT, MAX_SECTION_ID};
use super::super::{CloseCode, DecodeError, EncodeError, Problem, varint};
use super::types::{CLOSE, CREDIT, DROP, END, FLOOR};

/// All sections of a stream below the floor are obsolete for the sender.
///
/// ```text
/// 0x08  stream : varint, floor : varint
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// The stream.
    pub stream: u16,
    /// The lowest section that is not obsolete; one above the last if all are.
    pub floor: u64,
}

impl Floor {
    pub(super) fn write<S: Sink>(&self, out: &mut Writer<'_, S>) -> Result<(), EncodeError> {
        out.u8(FLOOR);
        out.small(u32::from(self.stream));
        out.varint_in("floor", self.floor, 0..=MAX_SECTION_COUNT)
    }

    pub(super) fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            stream: read_stream(input)?,
            floor: input.varint_in("floor", 0..=MAX_SECTION_COUNT)?,
        })
    }
}

fn read_stream(input: &mut Reader<'_>) -> Result<u16, DecodeError> {
    input
        .varint_u32("stream", u32::from(u16::MAX))
        .map(|stream| stream as u16)
}

/// The sender will send no more data of a section.
///
/// ```text
/// 0x09  stream : varint, section : varint, reason : u8
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The stream.
    pub stream: u16,
    /// The section.
    pub section: u64,
    /// Why.
    pub reason: Reason,
}

impl Dropped {
    pub(super) fn write<S: Sink>(&self, out: &mut Writer<'_, S>) -> Result<(), EncodeError> {
        out.u8(DROP);
        out.small(u32::from(self.stream));
        out.varint_in("section", self.section, 0..=MAX_SECTION_ID)?;
        out.u8(self.reason as u8);
        Ok(())
    }

    pub(super) fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let stream = read_stream(input)?;
        let section = input.varint_in("section", 0..=MAX_SECTION_ID)?;
        let position = input.offset();
        let reason = input.u8("reason")?;
        let Some(reason) = Reason::ALL.get(usize::from(reason)).copied() else {
            let value = u64::from(reason);
            return Err(input.error_at(position, "reason", Problem::Unknown { value }));
        };
        Ok(Self {
            stream,
            section,
            reason,
        })
    }
}

/// The limit of data in flight to the sender of this frame.
///
/// The limit is relative, as TCP's receive window is. A section that the sender abandons in flight
/// releases its share, and neither end has to count data that the other never received. The frame
/// with the highest packet number applies.
///
/// ```text
/// 0x0a  bytes : varint, sections : varint
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// The receiver's room beyond the data received so far. At most this many section bytes may be
    /// in flight, retransmissions included: sent, and neither acknowledged nor declared lost.
    pub bytes: u64,
    /// The maximum number of open sections: begun, and neither complete, dropped nor below the
    /// floor.
    pub sections: u32,
}

impl Credit {
    pub(super) fn write<S: Sink>(&self, out: &mut Writer<'_, S>) -> Result<(), EncodeError> {
        out.u8(CREDIT);
        out.varint("bytes", self.bytes)?;
        out.varint_in("sections", u64::from(self.sections), 1..=MAX_OPEN_SECTIONS)
    }

    pub(super) fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            bytes: input.varint("bytes")?,
            sections: input.varint_in("sections", 1..=MAX_OPEN_SECTIONS)? as u32,
        })
    }
}

/// A stream has no more sections.
///
/// ```text
/// 0x11  stream : varint, sections : varint
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The stream.
    pub stream: u16,
    /// The number of sections: one above the last.
    pub sections: u64,
}

impl End {
    pub(super) fn write<S: Sink>(&self, out: &mut Writer<'_, S>) -> Result<(), EncodeError> {
        out.u8(END);
        out.small(u32::from(self.stream));
        out.varint_in("sections", self.sections, 0..=MAX_SECTION_COUNT)
    }

    pub(super) fn read(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            stream: read_stream(input)?,
            sections: input.varint_in("sections", 0..=MAX_SECTION_COUNT)?,
        })
    }
}

/// The connection ends.
///
/// ```text
/// 0x10  code : varint, length : u8, reason : UTF-8
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close<'a> {
    /// Why, for the program.
    pub code: CloseCode,
    /// The reason in words for people. At most [`MAX_REASON`] bytes.
    pub reason: &'a str,
}

impl<'a> Close<'a> {
    /// Creates a frame with as much of `reason` as fits.
    #[must_use]
    pub fn new(code: CloseCode, reason: &'a str) -> Self {
        let fits = (0..=reason.len().min(MAX_REASON))
            .rev()
            .find_map(|end| reason.get(..end));
        Self {
            code,
            reason: fits.unwrap_or_default(),
        }
    }

    pub(super) fn write<S: Sink>(&self, out: &mut Writer<'_, S>) -> Result<(), EncodeError> {
        out.u8(CLOSE);
        out.varint("code", self.code.get())?;
        let length = self.reason.len() as u64;
        let length = out.check("reason length", length, 0..=MAX_REASON as u64)?;
        out.u8(length as u8);
        out.bytes(self.reason.as_bytes());
        Ok(())
    }

    pub(super) fn read(input: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let code = CloseCode::new(input.varint("code")?);
        let length = input.u8("reason length")?;
        let reason = input.text("reason", usize::from(length))?;
        Ok(Self { code, reason })
    }
}

const _: () = assert!(MAX_SECTION_COUNT <= varint::MAX && MAX_REASON <= u8::MAX as usize);
