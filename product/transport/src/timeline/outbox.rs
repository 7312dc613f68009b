//! The sender's sections: which to send next, and which to abandon.

mod admission;
mod claims;
mod copies;
mod counters;
mod credit;
mod entry;
mod feasibility_check;
mod intake;
mod look_ahead;
mod queue;
#[cfg(test)]
mod tests;

use core::fmt;

use comity_units::{Rate, Span};

pub use counters::{ByteCounters, Counters, SectionCounters};
pub use queue::Outbox;

use super::section::{DropPolicy, Reason, Reliability, SectionId, StreamId};
use super::tokens::{Borrowing, Tokens};
use super::{DEFAULT_BUFFER, DEFAULT_SECTIONS, MAX_STREAMS};

/// The memory that [`Outbox::memory`] counts for a section, in bytes. A section took 1,334 bytes at
/// most where twelve or more waited, with the records that `comity` keeps of its payload. A lone
/// one took 4,945 bytes.
pub const RECORD: u64 = 1_536;

/// The behaviour and limits of an [`Outbox`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long lost bytes are retransmitted.
    pub reliability: Reliability,
    /// When sections are abandoned.
    pub drop: DropPolicy,
    /// The maximum number of payload bytes held at once.
    pub max_bytes: u64,
    /// The maximum number of sections held at once.
    pub max_sections: usize,
    /// The maximum number of streams of a connection.
    pub max_streams: usize,
    /// How far the predicted time of a section may exceed the time to its deadline before it is
    /// infeasible, in hundredths of that time.
    ///
    /// A predicted rate is off by some percent at any moment, and the error averages out over a
    /// long time. The tolerance therefore grows with the time to the deadline. At 12, a section due
    /// in 1 s may look 120 ms too late, and one due in 10 ms only 1.2 ms.
    pub tolerance_percent: u32,
    /// The change of the predicted rate, in hundredths, that makes the outbox check the queue
    /// again.
    pub rate_change_percent: u32,
}

impl Default for Config {
    /// Reliable until the deadline, without infeasible sections; 16 MiB in 4,096 sections of 64
    /// streams.
    fn default() -> Self {
        Self {
            reliability: Reliability::Timeline,
            drop: DropPolicy::Infeasible,
            max_bytes: DEFAULT_BUFFER,
            max_sections: DEFAULT_SECTIONS as usize,
            max_streams: MAX_STREAMS,
            tolerance_percent: 12,
            rate_change_percent: 5,
        }
    }
}

/// The sender's forecast at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathEstimate {
    /// The predicted rate of payload bytes (the controller's rate less headers and repairs); `None`
    /// while nothing is known.
    pub rate: Option<Rate>,
    /// The growth of that rate in a second, in bit/s.
    pub growth: Rate,
    /// The rate at which bytes may leave for a short time; [`Rate::MAX`] if only `rate` counts.
    pub peak: Rate,
    /// The controller's token bucket. Sections that may not spend its tokens are held back. `None`
    /// if the controller has no bucket.
    pub tokens: Option<Tokens>,
    /// The time from handing out a byte to its arrival: propagation and queueing.
    pub one_way: Span,
    /// The safety margin in `one_way`: data that leaves that much later may still be on time.
    pub caution: Span,
    /// The time to detect the loss of bytes and to retransmit them.
    pub repair: Span,
    /// How much longer than the latest packet the next packets may be queued, if the queue fills as
    /// it did in the last seconds.
    pub wait: Span,
    /// The share of sent bytes that are lost, in thousandths.
    pub lost_permille: u32,
    /// Whether the next packet is a probe, which no token bucket holds back.
    pub is_probe: bool,
    /// The peer's credit, less the lengths of sections whose first acknowledgement came after it.
    /// It bounds the total length of begun sections without an acknowledgement. A begun section
    /// needs no more credit.
    pub credit: u64,
}

impl PathEstimate {
    /// Whether the token bucket allows a section with this borrowing to leave now.
    pub(super) fn allows(&self, borrowing: Borrowing) -> bool {
        let may_spend = |tokens: Tokens| tokens.allow(borrowing);
        self.is_probe || self.tokens.is_none_or(may_spend)
    }

    /// Nothing is known, and the peer sets no limit.
    pub const UNKNOWN: Self = Self {
        rate: None,
        growth: Rate::ZERO,
        peak: Rate::MAX,
        tokens: None,
        one_way: Span::ZERO,
        caution: Span::ZERO,
        repair: Span::ZERO,
        wait: Span::ZERO,
        lost_permille: 0,
        is_probe: false,
        credit: u64::MAX,
    };
}

/// A piece of one section for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The stream of the section.
    pub stream: StreamId,
    /// The section.
    pub section: SectionId,
    /// The offset of the piece in the section.
    pub offset: u32,
    /// Its length, at least 1.
    pub length: u32,
    /// Whether the piece was sent before and lost.
    pub is_retransmission: bool,
}

impl Chunk {
    /// The byte range of the piece in its section.
    pub const fn range(&self) -> core::ops::Range<u32> {
        self.offset..self.offset + self.length
    }
}

/// The fate of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// All of it was acknowledged, and on time as far as the sender can know.
    Acknowledged,
    /// It was abandoned for this reason; for [`Reason::Expired`], before all of it was sent.
    Dropped(Reason),
    /// All of it was sent, but not acknowledged when its deadline had passed and an acknowledgement
    /// was due.
    ExpiredInNetwork,
    /// Some of it was lost and is not retransmitted.
    Lost,
}

/// The outcome of a submitted section. Each section gets exactly one, once nothing of it is in
/// flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// Its stream.
    pub stream: StreamId,
    /// Its number.
    pub section: SectionId,
    /// Its fate.
    pub fate: Fate,
    /// Its length in bytes.
    pub length: u32,
    /// The number of bytes that were sent at least once.
    pub sent: u32,
    /// The number of bytes that were acknowledged.
    pub acknowledged: u32,
}

/// A notice for the peer that nothing more of a section follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The stream of the section.
    pub stream: StreamId,
    /// The section.
    pub section: SectionId,
    /// Why it was abandoned.
    pub reason: Reason,
}

/// What is wrong with a section, a skipped number or the end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgumentError {
    /// The section has no bytes.
    Empty {
        /// Its stream.
        stream: StreamId,
    },
    /// The section exceeds the maximum length, of the send buffer or of the peer.
    TooLong {
        /// Its stream.
        stream: StreamId,
        /// Its length in bytes, at most `u32::MAX`.
        length: u32,
        /// The length of the longest section that can be sent.
        max: u64,
    },
    /// The section needs itself or a later one.
    NeedsLater {
        /// Its stream.
        stream: StreamId,
        /// The number that it would have.
        section: SectionId,
        /// The section that it names as its dependency.
        needs: SectionId,
    },
    /// The stream is finished already.
    Finished {
        /// The stream.
        stream: StreamId,
    },
    /// The connection already has the maximum number of streams.
    TooManyStreams {
        /// The stream beyond the limit.
        stream: StreamId,
        /// The limit.
        max: usize,
    },
    /// The stream has too few section numbers left.
    StreamUsedUp {
        /// The stream.
        stream: StreamId,
    },
}

/// Why a section, a skipped number or the end of a stream is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitError {
    /// The argument is invalid.
    Argument(ArgumentError),
    /// There is no room for the bytes of the section now.
    TooManyBytes {
        /// Bytes held.
        held: u64,
        /// Bytes of the section.
        length: u32,
        /// The limit.
        limit: u64,
    },
    /// There is no room for one more section now.
    TooManySections {
        /// The limit.
        limit: u64,
    },
    /// All streams have ended, including those that never began.
    Finishing,
    /// The connection is over.
    Closed,
}

impl From<ArgumentError> for SubmitError {
    fn from(error: ArgumentError) -> Self {
        Self::Argument(error)
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { stream } => write!(
                f,
                "{stream}: a section of 0 bytes was submitted; expected at least 1"
            ),
            Self::TooLong {
                stream,
                length,
                max,
            } => write!(
                f,
                "{stream}: a section of {length} bytes was submitted; expected at most {max}"
            ),
            Self::NeedsLater {
                stream,
                section,
                needs,
            } => write!(
                f,
                "{stream}, {section}: depends on {needs}; expected an earlier section"
            ),
            Self::Finished { stream } => write!(f, "{stream} is already finished"),
            Self::TooManyStreams { stream, max } => write!(
                f,
                "{stream}: too many streams; expected at most {max} in a connection"
            ),
            Self::StreamUsedUp { stream } => write!(
                f,
                "{stream}: too many sections; expected at most 2^48 - 1 in a stream"
            ),
        }
    }
}

impl core::error::Error for ArgumentError {}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(error) => error.fmt(f),
            Self::TooManyBytes {
                held,
                length,
                limit,
            } => write!(
                f,
                "outbox: {held} bytes are held and {length} more were submitted, expected at most {limit}"
            ),
            Self::TooManySections { limit } => {
                write!(f, "outbox: expected at most {limit} sections at once")
            }
            Self::Finishing => write!(f, "the connection is being finished"),
            Self::Closed => write!(f, "the connection is closed"),
        }
    }
}

impl core::error::Error for SubmitError {}
