//! What a reader makes of media: sections with a time, a deadline and an importance.

use bytes::Bytes;
use comity_frames::{Frame, FrameType, Importance};
use comity_units::{Span, Time};

/// What has one deadline: an access unit, a table, or a slice of what is not understood.
///
/// It must have arrived by `source_time + deadline + latency`, where the latency is the transport's
/// to choose and the source's clock is laid on the sender's by a
/// [`SourceClock`](crate::SourceClock).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaSection {
    /// The stream: 0 for the tables of a transport stream, then one for each elementary stream in
    /// the order of their first appearance in a program map. Other sources have stream 0 alone.
    pub stream: u16,
    /// Its number within the stream, from 0, without holes but for those that an [`Event::Missing`]
    /// names.
    pub number: u64,
    /// When the source has it: its decoding time on the source's clock, which begins at zero.
    pub source_time: Time,
    /// By how much its deadline lies behind `source_time`, before the latency is added.
    pub deadline: Span,
    /// How much it matters.
    pub importance: Importance,
    /// What it holds.
    pub frame: FrameType,
    /// How many referenced P pictures its group has had, itself included; zero for an intra picture
    /// and for what is not video.
    pub position: u8,
    /// The number of an earlier section of the same stream without which this one is worthless.
    pub needs: Option<u64>,
    /// What is sent: a [`Header`](crate::Header) and what follows it.
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
            source_time: self.source_time,
            size: comity_units::Bytes::new(self.payload.len() as u64),
        }
    }
}

/// What the reader says about its source, besides sections. None of these ends the reading.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The source is no transport stream with a program, and no MPEG-1 or MPEG-2 elementary stream
    /// with a picture: it is cut into slices of bytes, whose times follow from the assumed rate, or
    /// from their arrival.
    UnknownFormat,
    /// A stream whose kind is unknown: its packets are sent whole, without frame types.
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
    /// Packets that no program names are left out.
    Unreferenced {
        /// Their packet identifier.
        pid: u16,
    },
    /// The end of a source that had packets which no program names: how much of it they were.
    UnreferencedInAll {
        /// For how many streams [`Unreferenced`](Self::Unreferenced) was told.
        streams: u64,
        /// How many bytes their packets had, until a program named them or to the end.
        bytes: u64,
    },
    /// The end of a source of 65,536 bytes and more whose time never moved: all of it was due at
    /// once.
    Untimed {
        /// How many bytes its streams had.
        bytes: u64,
    },
    /// The packets of a transport stream stand so many bytes apart, 192 or 204: what stands beside
    /// them, a time stamp or parity, is left out.
    PacketsApart {
        /// From the beginning of one packet to that of the next.
        bytes: u64,
    },
    /// No packet began where one had to: `skipped` bytes were left out up to the next one, or at
    /// the end of the source.
    LostSync {
        /// How many bytes were left out.
        skipped: u64,
    },
    /// Part of an access unit, or of a table, is missing from the source: all of it is left out.
    Damaged {
        /// The packet identifier of its stream.
        pid: u16,
    },
    /// The continuity counter of a stream has a gap between two access units: the source was
    /// spliced there, or units are missing from it, which cannot be told apart. No unit is cut.
    Break {
        /// The packet identifier of the stream.
        pid: u16,
    },
    /// A stream of sound whose frames were understood has something that is none: the rest of its
    /// PES packet is sent as one unit, as are PES packets without frames. Told once for each
    /// stream.
    NoFrames {
        /// Its packet identifier.
        pid: u16,
    },
    /// An access unit was longer than the reader may hold, and is left out.
    Oversized {
        /// The packet identifier of its stream.
        pid: u16,
        /// How many bytes had been collected.
        bytes: u64,
    },
    /// The times of the source jumped: the source's clock goes on from where it was.
    Discontinuity {
        /// The packet identifier of the stream in which it was seen first.
        pid: u16,
    },
}

/// An access unit that the source has only a part of, and that is left out, or one that is longer
/// than the reader may hold. It has a number like any other, so that a receiver can be told of it.
/// Of frames of sound that share a PES packet, there may be several under one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingUnit {
    /// Its stream.
    pub stream: u16,
    /// Its number within the stream.
    pub number: u64,
    /// How far the clock of its program had come when that was seen.
    pub source_time: Time,
}

/// What a reader gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A section.
    Section(MediaSection),
    /// There is no section with this number.
    Missing(MissingUnit),
    /// Something that the source is told to be, or to have lost.
    Notice(Notice),
}
