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
    /// Of a stored source, its decoding time on the source's clock, which begins at zero. Of a live
    /// source, its arrival.
    pub source_time: Time,
    /// The distance of its deadline from `source_time`, without the latency.
    pub deadline: Span,
    /// How much it matters.
    pub importance: Importance,
    /// Whether the source has only a part of it, or bytes of it that may be wrong.
    pub is_damaged: bool,
    /// Its frame type.
    pub frame: FrameType,
    /// How many referenced P pictures its group has had, itself included; zero for an intra picture
    /// and for other media.
    pub position: u8,
    /// The number of an earlier section in the same stream that this one depends on.
    pub needs: Option<u64>,
    /// Whether it is worthless without that.
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
            size: comity_units::Bytes::new(self.payload.len() as u64),
        }
    }
}

/// How much later what is live may come out because it took time to arrive.
const GRACE: Span = Span::from_millis(15);

/// The time from the source time of a section of a live source to its deadline, over a connection
/// with this latency and this least round trip. [`MediaSection::deadline`] comes on top.
///
/// ```text
/// network  = max( 3/4 · latency,  min( latency, 5/2 · round trip ) )
/// deadline = max( latency + min( arriving, 15 ms ),  arriving + network )
/// ```
///
/// The source time is that at which the section began to arrive. The time that this took,
/// `arriving`, makes the deadline up to 15 ms later. The rest of it is taken from the connection,
/// which has at least three quarters of the latency, and as much of it as sending twice may take.
pub fn live_deadline(arriving: Span, latency: Span, round_trip: Span) -> Span {
    let network = (latency / 4 * 3).max(latency.min(round_trip * 5 / 2));
    (latency + arriving.min(GRACE)).max(arriving + network)
}

/// A report of the reader about its source. None of them ends the reading.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The source is neither a transport stream with a program, nor an MPEG-1 or MPEG-2 elementary
    /// stream with a picture. It is cut into slices of bytes, timed by the assumed rate or by their
    /// arrival.
    UnknownFormat,
    /// A stream of unknown type: its packets are sent whole, without frame types.
    UnsupportedCodec {
        /// Its packet identifier.
        pid: u16,
        /// Its stream type of ISO/IEC 13818-1, table 2-34.
        stream_type: u8,
    },
    /// A stream is scrambled: its transport packets are sent as they are, in slices.
    Scrambled {
        /// Its packet identifier.
        pid: u16,
    },
    /// Packets that belong to no program were dropped. With
    /// [`layouts`](crate::ReaderConfig::layouts) they are not.
    Unreferenced {
        /// Their packet identifier.
        pid: u16,
    },
    /// At the end of a source with packets that belong to no program: their totals.
    UnreferencedInAll {
        /// The number of streams reported as [`Unreferenced`](Self::Unreferenced).
        streams: u64,
        /// The bytes of their packets, until a program listed them or to the end.
        bytes: u64,
    },
    /// At the end of a source of 65,536 bytes or more without any progress in time: all of it was
    /// due at once.
    Untimed {
        /// How many bytes its streams had.
        bytes: u64,
    },
    /// The packets of a transport stream are 192 or 204 bytes apart. Without
    /// [`layouts`](crate::ReaderConfig::layouts), the time stamp or parity between them is dropped.
    PacketsApart {
        /// From the beginning of one packet to that of the next.
        bytes: u64,
    },
    /// No packet began at the expected position: `skipped` bytes up to the next packet, or to the
    /// end of the source, are in no packet. Without [`layouts`](crate::ReaderConfig::layouts), they
    /// are dropped.
    LostSync {
        /// How many bytes.
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
    /// spliced there or units are missing; the two cannot be distinguished. No unit is cut.
    Break {
        /// The packet identifier of the stream.
        pid: u16,
    },
    /// A stream of recognised audio frames has data that is no frame. The rest of its PES packet is
    /// sent as one unit, as are PES packets without frames. Reported once for each stream.
    NoFrames {
        /// Its packet identifier.
        pid: u16,
    },
    /// A PES packet of a stream has another length than it says. It ends where the next one begins.
    /// Reported once for each stream.
    WrongLength {
        /// The packet identifier of the stream.
        pid: u16,
    },
    /// An access unit exceeded the reader's limit and was dropped.
    Oversized {
        /// The packet identifier of its stream.
        pid: u16,
        /// How many bytes had been collected.
        bytes: u64,
    },
    /// The times of the source jumped. Those of its sections do not: a stored source goes on from
    /// its last time, and a live one by its arrivals.
    Discontinuity {
        /// The packet identifier of the stream that jumped: of a stored source, the first.
        pid: u16,
        /// Which of its times did.
        times: JumpedTimes,
        /// How far.
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

/// How far times jumped, beyond the step that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// Into the future.
    Ahead(Span),
    /// Into the past.
    Back(Span),
}

impl Jump {
    /// So many ticks of 90 kHz.
    pub(crate) const fn of(step: i64) -> Self {
        let span = ticks(step.unsigned_abs());
        match step < 0 {
            true => Self::Back(span),
            false => Self::Ahead(span),
        }
    }
}

/// An access unit that was dropped: it is [damaged](crate::ReaderConfig::damaged), lacks the header
/// of its PES packet, or exceeds the reader's limit. It has a number like any other, so that a
/// receiver can learn of it. One number may cover several audio frames that share a PES packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingUnit {
    /// Its stream.
    pub stream: u16,
    /// Its number within the stream.
    pub number: u64,
    /// The progress of its program's clock at that moment; of a live source, the arrival that
    /// showed it.
    pub source_time: Time,
}

/// The output of a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A section.
    Section(MediaSection),
    /// No section has this number.
    Missing(MissingUnit),
    /// A property of the source, or a loss in it.
    Notice(Notice),
}

impl Event {
    /// Gives a section, or a missing one, this source time.
    pub(crate) const fn set_source_time(&mut self, time: Time) {
        match self {
            Self::Section(section) => section.source_time = time,
            Self::Missing(missing) => missing.source_time = time,
            Self::Notice(_) => {}
        }
    }
}
