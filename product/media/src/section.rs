//! The output of a reader: sections with a time, a deadline and an importance.

use bytes::Bytes;
use comity_frames::{Frame, FrameType, Importance};
use comity_units::{Span, Time};

use crate::timeline::ticks;

/// A unit of media with one deadline: an access unit, a table, or a slice of an unknown format.
///
/// It must arrive by `source_time + deadline + latency`. The transport chooses the latency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaSection {
    /// The stream: 0 for the tables of a transport stream, then one for each elementary stream in
    /// the order of their first appearance in a program map. Other sources have only stream 0.
    pub stream: u16,
    /// Its number within the stream, from 0. Only an [`Event::Missing`] skips a number.
    pub number: u64,
    /// For a stored source, the decoding time on the source's clock, which begins at zero. For a
    /// live source, the arrival time.
    pub source_time: Time,
    /// The time from `source_time` to its deadline, without the latency.
    pub deadline: Span,
    /// Its priority.
    pub importance: Importance,
    /// Whether the source has only a part of it, or some of its bytes may be wrong.
    pub is_damaged: bool,
    /// Its frame type.
    pub frame: FrameType,
    /// The number of referenced P pictures in its group so far, including itself; zero for an intra
    /// picture and for other media.
    pub position: u8,
    /// The number of an earlier section in the same stream that this one depends on.
    pub needs: Option<u64>,
    /// Whether it is worthless without that section.
    pub is_bound: bool,
    /// The payload to send: a [`Header`](crate::Header) and the data after it.
    pub payload: Bytes,
}

impl MediaSection {
    /// The section as the frame policy sees it.
    pub fn to_frame(&self) -> Frame {
        Frame {
            stream: self.stream,
            number: self.number,
            frame_type: self.frame,
            position: self.position,
            needs: self.needs,
            is_bound: self.is_bound,
            source_time: self.source_time,
            size: comity_units::DataSize::new(self.payload.len() as u64),
        }
    }
}

/// The maximum extension of a live section's deadline for the time that it took to arrive.
const GRACE: Span = Span::from_millis(15);

/// The time from the source time of a live section to its deadline, over a connection with this
/// latency and this minimum round-trip time. [`MediaSection::deadline`] is added to it.
///
/// ```text
/// network  = max( 3/4 · latency,  min( latency, 5/2 · round trip ) )
/// deadline = max( latency + min( arriving, 15 ms ),  arriving + network )
/// ```
///
/// The source time is when the section began to arrive, and `arriving` is how long this took. The
/// first 15 ms of `arriving` extend the deadline. The rest reduces the time that remains for the
/// connection. This time is at least three quarters of the latency, and, up to the latency, as long
/// as two transmissions may take.
pub fn live_deadline(arriving: Span, latency: Span, round_trip: Span) -> Span {
    let network = (latency / 4 * 3).max(latency.min(round_trip * 5 / 2));
    (latency + arriving.min(GRACE)).max(arriving + network)
}

/// A report of the reader about its source. The reader continues after it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The source is neither a transport stream, with a program if it is stored, nor an MPEG-1 or
    /// MPEG-2 elementary stream with a picture. It is cut into slices of bytes, timed by the
    /// assumed rate or by their arrival.
    UnknownFormat,
    /// A stream of unknown type, which its map does not describe as sound or data: its packets are
    /// sent whole, without frame types.
    UnsupportedCodec {
        /// Its packet identifier.
        pid: u16,
        /// Its stream type of ISO/IEC 13818-1, table 2-34.
        stream_type: u8,
    },
    /// The programs have more streams than can have sections of their own. The packets of the
    /// others are treated like those of no program. Reported once.
    TooManyStreams {
        /// The packet identifier of the first stream beyond the limit.
        pid: u16,
        /// The limit.
        most: u16,
    },
    /// A stream is scrambled: its transport packets are sent as they are, in slices.
    Scrambled {
        /// Its packet identifier.
        pid: u16,
    },
    /// Packets that belong to no program were dropped. With
    /// [`layouts`](crate::ReaderConfig::layouts), they are kept.
    Unreferenced {
        /// Their packet identifier.
        pid: u16,
    },
    /// The totals of packets that belong to no program, reported at the end of the source.
    UnreferencedInAll {
        /// The number of streams reported as [`Unreferenced`](Self::Unreferenced).
        streams: u64,
        /// The bytes of their packets, until a program listed the stream or to the end.
        bytes: u64,
    },
    /// A source of 65,536 bytes or more made no progress in time, so all of it was due at once.
    /// Reported at the end of the source.
    Untimed {
        /// The number of bytes in its streams.
        bytes: u64,
    },
    /// The packets of a transport stream are 192 or 204 bytes apart. Without
    /// [`layouts`](crate::ReaderConfig::layouts), the time stamp or parity between them is dropped.
    PacketsApart {
        /// The distance between the beginnings of two packets.
        bytes: u64,
    },
    /// No packet began at the expected position. `skipped` bytes, up to the next packet or to the
    /// end of the source, belong to no packet. In a live source, each 1,048,576 of them are
    /// reported. Without [`layouts`](crate::ReaderConfig::layouts), they are dropped.
    LostSync {
        /// The number of bytes.
        skipped: u64,
    },
    /// Part of an access unit is missing from the source, or marked as wrong: the unit is
    /// [sent as it is, or dropped](crate::ReaderConfig::damaged). A table is dropped, and so is a
    /// unit without the header of its PES packet.
    Damaged {
        /// The packet identifier of its stream.
        pid: u16,
    },
    /// The continuity counter of a stream has a gap between two access units. Either the source was
    /// spliced there or units are missing, which cannot be distinguished. No unit is incomplete.
    Break {
        /// The packet identifier of the stream.
        pid: u16,
    },
    /// A stream of known audio frames contains data that is not a frame. The rest of its PES packet
    /// is sent as one unit, as are PES packets without frames. Reported once for each stream.
    NoFrames {
        /// Its packet identifier.
        pid: u16,
    },
    /// The length of a PES packet differs from its header. The packet ends where the next one
    /// begins. Reported once for each stream.
    WrongLength {
        /// The packet identifier of the stream.
        pid: u16,
    },
    /// An access unit exceeded the reader's limit and was dropped.
    Oversized {
        /// The packet identifier of its stream.
        pid: u16,
        /// The number of bytes collected so far.
        bytes: u64,
    },
    /// The times of the source jumped. Those of its sections do not: a stored source continues from
    /// its last time, and a live source follows its arrivals.
    Discontinuity {
        /// The packet identifier of the stream that jumped; for a stored source, the first that
        /// did.
        pid: u16,
        /// Which times jumped.
        times: JumpedTimes,
        /// How far they jumped.
        by: Jump,
    },
}

/// The times in a transport stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JumpedTimes {
    /// The time stamps of PES packets: DTS, or else PTS.
    Stamps,
    /// The clock references: PCR.
    References,
}

/// How far times jumped, beyond the expected step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// Into the future.
    Ahead(Span),
    /// Into the past.
    Back(Span),
}

impl Jump {
    /// A jump of this many ticks of 90 kHz.
    pub(crate) const fn of(step: i64) -> Self {
        let span = ticks(step.unsigned_abs());
        match step < 0 {
            true => Self::Back(span),
            false => Self::Ahead(span),
        }
    }
}

/// An access unit that was dropped. It is [damaged](crate::ReaderConfig::damaged), lacks the header
/// of its PES packet, or exceeds the reader's limit. It has a number like any other unit, so that a
/// receiver can learn of it. One number may stand for several audio frames that share a PES packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingUnit {
    /// Its stream.
    pub stream: u16,
    /// Its number within the stream.
    pub number: u64,
    /// The time of its program's clock at that moment; for a live source, the arrival that revealed
    /// it.
    pub source_time: Time,
}

/// The output of a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A section.
    Section(MediaSection),
    /// No section has this number.
    Missing(MissingUnit),
    /// A property of the source, or a loss in the source.
    Notice(Notice),
}

impl Event {
    /// Sets the source time of a section, or of a missing one.
    pub(crate) const fn set_source_time(&mut self, time: Time) {
        match self {
            Self::Section(section) => section.source_time = time,
            Self::Missing(missing) => missing.source_time = time,
            Self::Notice(_) => {}
        }
    }
}
