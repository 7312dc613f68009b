//! What goes from an input to an output, whatever the two are.

use std::time::{Duration, Instant};

use bytes::Bytes;
use comity::{Importance, Section, SectionId, StreamId};
use comity_media::{FrameType, Header, MediaSection};

/// One section on its way.
#[derive(Clone, Debug)]
pub(crate) struct MediaUnit {
    /// The stream that it continues.
    pub(crate) stream: u16,
    /// Its number in that stream, at the input.
    pub(crate) number: u64,
    /// How much it matters.
    pub(crate) importance: u8,
    /// When it came into being.
    pub(crate) source_time: Instant,
    /// By when it must have arrived.
    pub(crate) due: Due,
    /// The number of an earlier section of the stream without which it is worthless.
    pub(crate) needs: Option<u64>,
    /// What is sent.
    pub(crate) payload: Bytes,
    /// What the reader made of it, where it was read here: what a shedder decides by.
    pub(crate) media: Option<MediaSection>,
}

impl MediaUnit {
    /// Whether it may wait for a connection to go to: what comes from another one has its deadline,
    /// or none.
    pub(crate) const fn may_wait(&self) -> bool {
        matches!(self.due, Due::At(_) | Due::Never)
    }

    /// What it holds, where that is known.
    pub(crate) fn kind(&self) -> Option<&'static str> {
        match &self.media {
            Some(section) => Some(kind(section.frame)),
            None => kind_of(&self.payload),
        }
    }

    /// What is given to a connection with this latency. What it needs has the number `needs` there.
    pub(crate) fn section(&self, needs: Option<SectionId>, latency: Duration) -> Section {
        Section {
            stream: StreamId(self.stream),
            importance: Importance(self.importance),
            source_time: Some(self.source_time),
            deadline: Some(self.due.after(self.source_time, latency)),
            needs,
            payload: self.payload.clone(),
        }
    }
}

/// A deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// So much and the latency of the connection after the source time.
    AfterLatency(Duration),
    /// At this moment, whatever connection it takes.
    At(Instant),
    /// Never.
    Never,
}

impl Due {
    /// How long after `source_time` that is, over a connection with this latency; [`Duration::MAX`]
    /// for never.
    pub(crate) fn after(self, source_time: Instant, latency: Duration) -> Duration {
        match self {
            Self::AfterLatency(more) => latency.saturating_add(more),
            // A section without any time left still has to have a deadline: none is `MAX`.
            Self::At(moment) => moment.saturating_duration_since(source_time),
            Self::Never => Duration::MAX,
        }
    }
}

/// What comes out of an input.
#[derive(Debug)]
pub(crate) enum Passage {
    /// A section.
    Section(MediaUnit),
    /// A section that did not arrive whole.
    Gap(Missing),
    /// Something that the source is said to be, or to have lost.
    Notice(Remark),
}

/// A notice.
#[derive(Debug)]
pub(crate) struct Remark {
    /// Those of one kind are told only so many times.
    pub(crate) kind: &'static str,
    pub(crate) text: String,
}

/// A section that is missing, or of which something is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) stream: u16,
    pub(crate) number: u64,
    /// What it holds, as [`kind`] has it; `None` when nothing arrived of it.
    pub(crate) kind: Option<&'static str>,
    pub(crate) reason: &'static str,
    /// Its length in bytes, and how many of them are missing; `None` when nothing arrived of it.
    pub(crate) length: Option<u64>,
    pub(crate) missing_bytes: Option<u64>,
    /// When it came into being, if that is known.
    pub(crate) source_time: Option<Instant>,
}

impl Missing {
    /// What arrived and could not be written.
    pub(crate) fn unwritten(passing: &MediaUnit) -> Self {
        let length = Some(passing.payload.len() as u64);
        Self {
            stream: passing.stream,
            number: passing.number,
            kind: passing.kind(),
            reason: "unwritten",
            length,
            missing_bytes: length,
            source_time: Some(passing.source_time),
        }
    }
}

/// The word for what a frame holds.
pub(crate) const fn kind(frame: FrameType) -> &'static str {
    match frame {
        FrameType::Table => "table",
        FrameType::Parameters => "parameters",
        FrameType::Audio => "audio",
        FrameType::Opaque => "opaque",
        FrameType::Key => "key",
        FrameType::Intra => "I",
        FrameType::Predicted { .. } => "P",
        FrameType::Bidirectional { .. } => "B",
        FrameType::Slice => "slice",
    }
}

/// The words of [`kind`], in the order in which they are told.
pub(crate) const KINDS: [&str; 9] = [
    "key",
    "I",
    "P",
    "B",
    "audio",
    "parameters",
    "table",
    "opaque",
    "slice",
];

/// What a payload says that it holds, as far as its first bytes are there.
pub(crate) fn kind_of(payload: &[u8]) -> Option<&'static str> {
    Some(match Header::decode(payload).ok()?.0 {
        Header::Unit(unit) => kind(unit.frame),
        Header::Table { .. } => kind(FrameType::Table),
        Header::Packets | Header::Raw => kind(FrameType::Slice),
        Header::Picture(frame) => kind(frame),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_counted_from_the_source_time() {
        let source_time = super::super::now();
        let latency = Duration::from_millis(400);
        let after = |due: Due| due.after(source_time, latency);
        assert_eq!(
            after(Due::AfterLatency(Duration::from_millis(40))),
            Duration::from_millis(440)
        );
        let moment = source_time + Duration::from_millis(150);
        assert_eq!(after(Due::At(moment)), Duration::from_millis(150));
        assert_eq!(after(Due::Never), Duration::MAX);
        let later = moment + Duration::from_secs(1);
        assert_eq!(Due::At(moment).after(later, latency), Duration::ZERO);
    }

    #[test]
    fn every_frame_type_has_a_word_in_the_list() {
        for frame in [
            FrameType::Table,
            FrameType::Parameters,
            FrameType::Audio,
            FrameType::Opaque,
            FrameType::Key,
            FrameType::Intra,
            FrameType::Predicted { referenced: true },
            FrameType::Bidirectional { referenced: false },
            FrameType::Slice,
        ] {
            assert!(KINDS.contains(&kind(frame)), "{frame:?}");
        }
        assert_eq!(kind_of(&[0x14, 1, 2]), Some("slice"));
        assert_eq!(kind_of(&[0x15, 1, 0]), Some("key"));
        assert_eq!(kind_of(&[0]), None);
    }
}
