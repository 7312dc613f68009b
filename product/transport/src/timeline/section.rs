//! A section: the bytes that share a deadline, and their description in packets.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use comity_congestion::table::Row;
use comity_units::Time;

pub use comity_frames::{Importance, Reason};

pub use crate::wire::parameters::{Deliver, Reliability};

/// One of several independent sequences of sections in a connection, such as a video and its sound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u16);

/// The number of a section in its stream: 0, 1, 2, … in the order of submission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectionId(pub u64);

impl SectionId {
    /// The numbers of `count` sections from this one on.
    pub fn run(self, count: u64) -> impl Iterator<Item = Self> {
        (self.0..self.0.saturating_add(count)).map(Self)
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream {}", self.0)
    }
}

impl fmt::Display for SectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "section {}", self.0)
    }
}

/// The content of a section: real bytes, or a length alone in the simulator.
pub trait Payload: Clone + fmt::Debug {
    /// The buffer in which the receiver collects the payload.
    type Buffer: fmt::Debug;
    /// Whether the payload is a length without bytes.
    const ELIDED: bool;
    /// The length in bytes.
    fn len(&self) -> u32;
    /// Whether it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Appends the bytes of `range`, as far as they exist; an elided payload appends nothing.
    fn append_to(&self, range: Range<u32>, out: &mut Vec<u8>);
    /// Whether no other reference to it exists and it has room for `length` bytes.
    fn is_spare(&self, length: u32) -> bool;
    /// A buffer for `length` bytes, in the memory of a [spare](Self::is_spare) payload unless that
    /// is far too large.
    fn buffer(length: u32, spare: Option<Self>) -> Self::Buffer;
    /// Writes `bytes` at `offset`, without the part outside of the buffer.
    fn write_at(buffer: &mut Self::Buffer, offset: u32, bytes: &[u8]);
    /// The collected payload, with zeros for missing bytes.
    fn finish(buffer: Self::Buffer) -> Self;
}

/// The bytes of a section up to the last received one, with zeros for missing ones.
#[derive(Debug)]
pub struct Collected {
    bytes: Vec<u8>,
    length: usize,
}

impl Payload for bytes::Bytes {
    type Buffer = Collected;
    const ELIDED: bool = false;

    fn len(&self) -> u32 {
        u32::try_from(self.as_ref().len()).unwrap_or(u32::MAX)
    }

    fn append_to(&self, range: Range<u32>, out: &mut Vec<u8>) {
        let end = (range.end as usize).min(self.as_ref().len());
        let start = (range.start as usize).min(end);
        out.extend_from_slice(self.as_ref().get(start..end).unwrap_or_default());
    }

    fn is_spare(&self, length: u32) -> bool {
        Payload::len(self) >= length && self.is_unique()
    }

    fn buffer(length: u32, spare: Option<Self>) -> Collected {
        let length = length as usize;
        let bytes = match spare.map(Self::try_into_mut) {
            Some(Ok(mut spare)) if spare.capacity() / 2 < length => {
                spare.clear();
                Vec::from(spare)
            }
            _ => Vec::with_capacity(length),
        };
        Collected { bytes, length }
    }

    fn write_at(buffer: &mut Collected, offset: u32, bytes: &[u8]) {
        let Collected {
            bytes: there,
            length,
        } = buffer;
        let offset = (offset as usize).min(*length);
        let bytes = bytes.get(..*length - offset).unwrap_or(bytes);
        // Bytes that arrive in order are appended, without being set to zero first.
        if there.len() < offset {
            there.resize(offset, 0);
        }
        let (over, behind) = bytes.split_at(bytes.len().min(there.len() - offset));
        if let Some(write_at) = there.get_mut(offset..offset + over.len()) {
            write_at.copy_from_slice(over);
        }
        there.extend_from_slice(behind);
    }

    fn finish(mut buffer: Collected) -> Self {
        buffer.bytes.resize(buffer.length, 0);
        Self::from(buffer.bytes)
    }
}

/// A payload of this many bytes without content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elided(pub u32);

impl Payload for Elided {
    type Buffer = u32;
    const ELIDED: bool = true;

    fn len(&self) -> u32 {
        self.0
    }

    fn append_to(&self, _: Range<u32>, _: &mut Vec<u8>) {}

    fn is_spare(&self, _: u32) -> bool {
        false
    }

    fn buffer(length: u32, _: Option<Self>) -> u32 {
        length
    }

    fn write_at(_: &mut u32, _: u32, _: &[u8]) {}

    fn finish(buffer: u32) -> Self {
        Self(buffer)
    }
}

/// A section as the application submits it. It gets its number when it is accepted.
#[derive(Clone, Debug)]
pub struct Outgoing<P> {
    /// The stream that it continues.
    pub stream: StreamId,
    /// How much it matters.
    pub importance: Importance,
    /// Its capture time, on the sender's clock.
    pub source_time: Time,
    /// The time by which it must arrive, on the sender's clock; [`Time::MAX`] for never.
    pub deadline: Time,
    /// An earlier section of the stream without which this one is worthless.
    pub needs: Option<SectionId>,
    /// Its bytes, at least one.
    pub payload: P,
}

/// The description of a section in every packet with its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Its stream.
    pub stream: StreamId,
    /// Its number in the stream.
    pub section: SectionId,
    /// Its length in bytes, at least 1.
    pub length: u32,
    /// How much it matters.
    pub importance: Importance,
    /// Its capture time, on the sender's clock.
    pub source_time: Time,
    /// The time by which it must arrive, on the sender's clock; [`Time::MAX`] for never.
    pub deadline: Time,
    /// The earlier section that it needs.
    pub needs: Option<SectionId>,
}

impl Reliability {
    /// The default with this controller: until the deadline, but never if the paper of the
    /// controller retransmits nothing.
    pub fn usual(row: &Row) -> Self {
        match row.repeats_losses {
            true => Self::Timeline,
            false => Self::None,
        }
    }
}

/// When a sender gives up sections by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DropPolicy {
    /// When their deadline has passed.
    Expired,
    /// Also when they cannot arrive in time with the present queue, rate and one-way delay.
    #[default]
    Infeasible,
    /// Never: bytes that are sent late are counted.
    Never,
}
