//! The receiver's half: reassembles sections, enforces deadlines, and reports each exactly once.

mod assembly;
mod counters;
mod spares;
mod streams;

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use comity_units::{Span, Time};

pub use counters::{Counters, GapCounters, Slack};
pub use streams::Inbox;

use super::section::{Deliver, Meta, Reason, SectionId, StreamId};
use super::{DEFAULT_BUFFER, DEFAULT_MAX_LATENCY, DEFAULT_SECTIONS, MAX_STREAMS};

/// The behaviour and limits of an [`Inbox`]. The limits hold whatever the peer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// When sections are delivered to the application.
    pub deliver: Deliver,
    /// Whether an incomplete section becomes a gap at its deadline. Otherwise (reliability `full`,
    /// or `drop = never`) it waits until it is complete, even if late, or until the sender gives it
    /// up.
    pub enforce_deadlines: bool,
    /// The maximum number of payload bytes held at once. A section counts with its whole length
    /// from its first byte on.
    pub max_bytes: u64,
    /// How far a section may lie beyond the first unsettled section of its stream.
    pub max_sections: u64,
    /// The maximum number of streams of a connection.
    pub max_streams: usize,
    /// The maximum number of separate pieces of one section.
    pub max_fragments: usize,
    /// The maximum number of unsettled sections that have begun to arrive, over all streams. Each
    /// takes a record of some hundred bytes in addition to its payload.
    pub max_records: usize,
    /// The maximum time from the arrival of a section's first byte to its deadline. A later
    /// deadline counts as this one.
    pub max_latency: Span,
}

impl Default for Config {
    /// Paced, with deadlines of at most a minute; 16 MiB, 4,096 sections of each of 64 streams,
    /// 65,536 in all.
    fn default() -> Self {
        Self {
            deliver: Deliver::Paced,
            enforce_deadlines: true,
            max_bytes: DEFAULT_BUFFER,
            max_sections: DEFAULT_SECTIONS.into(),
            max_streams: MAX_STREAMS,
            max_fragments: 2_048,
            max_records: 1 << 16,
            max_latency: DEFAULT_MAX_LATENCY,
        }
    }
}

/// Why a section was not delivered whole: the [`Reason`] of its sender, or what the receiver found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GapReason {
    /// The connection ended before it was complete.
    Closed,
    /// The sender gave it up and stated a reason.
    Dropped(Reason),
    /// The sender abandoned it without a reason.
    Obsolete,
    /// Its deadline, or that of the next known section, has passed.
    Overdue,
}

/// One or more sections for the application, whole or as a gap. Each section of a stream is in
/// exactly one delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery<P> {
    /// A whole section.
    Section(Received<P>),
    /// An incomplete section, or a run of sections without any bytes.
    Gap(Gap<P>),
}

/// A section that arrived whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received<P> {
    /// The sender's description.
    pub meta: Meta,
    /// Its bytes.
    pub payload: P,
    /// When its last byte arrived, on the receiver's clock.
    pub completed: Time,
    /// Whether that was after its deadline.
    pub is_late: bool,
}

/// An incomplete section, or a run of sections without any arrived bytes.
///
/// A peer can skip 2^48 - 1 sections with one frame, so a run is one gap however long it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap<P> {
    /// Its stream.
    pub stream: StreamId,
    /// Its number; the first number of a run.
    pub section: SectionId,
    /// The number of sections, at least 1.
    pub count: u64,
    /// Why it is incomplete.
    pub reason: GapReason,
    /// The part that arrived; `None` if only its number is known.
    pub partial: Option<Partial<P>>,
}

impl<P> Gap<P> {
    /// The numbers of its sections. With a hostile peer, these can be all numbers that exist.
    pub fn sections(&self) -> impl Iterator<Item = SectionId> + use<P> {
        self.section.run(self.count)
    }

    /// Splits the gap into one for each section.
    pub fn each(self) -> impl Iterator<Item = Self> {
        let sections = self.sections();
        let mut partial = self.partial;
        sections.map(move |section| Self {
            stream: self.stream,
            section,
            count: 1,
            reason: self.reason,
            partial: partial.take(),
        })
    }
}

impl<P> Delivery<P> {
    /// Splits the delivery into one for each section. With a hostile peer, there can be one for
    /// each number that exists.
    pub fn each(self) -> impl Iterator<Item = Self> {
        let (section, gap) = match self {
            Self::Section(section) => (Some(Self::Section(section)), None),
            Self::Gap(gap) => (None, Some(gap)),
        };
        let gaps = gap.into_iter().flat_map(Gap::each).map(Self::Gap);
        section.into_iter().chain(gaps)
    }
}

/// The part of a section that arrived. Some media can use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial<P> {
    /// The sender's description.
    pub meta: Meta,
    /// Its bytes, with zeros for missing ones.
    pub payload: P,
    /// The missing byte ranges, in order.
    pub missing: Vec<Range<u32>>,
}

/// A violation by the peer: a contradiction, or more than it was allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Packets of one section contradict each other.
    Contradiction {
        /// Its stream.
        stream: StreamId,
        /// The section.
        section: SectionId,
    },
    /// A stream was ended twice with different counts, or continued beyond its end.
    End {
        /// The stream.
        stream: StreamId,
        /// The announced number of sections.
        sections: u64,
    },
    /// A section needs itself or a later one.
    NeedsLater {
        /// Its stream.
        stream: StreamId,
        /// The section.
        section: SectionId,
    },
    /// A piece is empty, lies outside of its section, or has an inconsistent length.
    Range {
        /// Its stream.
        stream: StreamId,
        /// The section.
        section: SectionId,
        /// The offset of the piece.
        offset: u32,
        /// Its end.
        end: u32,
        /// The length of the section.
        length: u32,
    },
    /// Too many bytes in the buffer.
    TooManyBytes {
        /// The limit.
        limit: u64,
    },
    /// Too many pieces of one section.
    TooManyFragments {
        /// Its stream.
        stream: StreamId,
        /// The section.
        section: SectionId,
        /// The limit.
        limit: usize,
    },
    /// Too many sections with bytes in the buffer.
    TooManyRecords {
        /// The limit.
        limit: usize,
    },
    /// A section too far ahead of the first unsettled one.
    TooManySections {
        /// Its stream.
        stream: StreamId,
        /// The section.
        section: SectionId,
        /// The first number that is too far ahead.
        limit: u64,
    },
    /// Too many streams.
    TooManyStreams {
        /// The first stream beyond the limit.
        stream: StreamId,
        /// The limit.
        limit: usize,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contradiction { stream, section } => write!(
                f,
                "{stream}, {section}: two packets differ in what they say of it, expected the same in all"
            ),
            Self::End { stream, sections } => write!(
                f,
                "{stream}: contradicts its end after {sections} sections, expected one end and nothing beyond it"
            ),
            Self::NeedsLater { stream, section } => write!(
                f,
                "{stream}, {section}: needs itself or a later section, expected an earlier one"
            ),
            Self::Range {
                stream,
                section,
                offset,
                end,
                length,
            } => write!(
                f,
                "{stream}, {section}: got a piece {offset}..{end}, expected at least one byte, all there and within 0..{length}"
            ),
            Self::TooManyBytes { limit } => {
                write!(
                    f,
                    "inbox: expected at most {limit} bytes of unsettled sections"
                )
            }
            Self::TooManyFragments {
                stream,
                section,
                limit,
            } => write!(
                f,
                "{stream}, {section}: expected at most {limit} separate pieces"
            ),
            Self::TooManyRecords { limit } => {
                write!(f, "inbox: expected at most {limit} unsettled sections")
            }
            Self::TooManySections {
                stream,
                section,
                limit,
            } => write!(f, "{stream}, {section}: expected a number below {limit}"),
            Self::TooManyStreams { stream, limit } => {
                write!(f, "{stream}: expected at most {limit} streams")
            }
        }
    }
}

impl core::error::Error for Violation {}
