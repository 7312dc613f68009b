//! What goes from a source to a sink.

use std::time::{Duration, Instant};

use bytes::Bytes;
use comity::{Importance, Section, SectionId, StreamId};
use comity_frames::{Frame, FrameType};
use comity_media::Header;

use crate::missing::{Missing, MissingReason};

/// A section on its way from a source to a sink.
#[derive(Clone, Debug)]
pub struct MediaUnit {
    /// The stream that it continues.
    pub stream: StreamId,
    /// Its number in that stream, at the source.
    pub id: SectionId,
    /// How much it matters.
    pub importance: Importance,
    /// When it came into being.
    pub source_time: Instant,
    /// By when it must have arrived.
    pub due: Due,
    /// An earlier section of the stream, at the source, without which it is worthless.
    pub needs: Option<SectionId>,
    /// Its bytes.
    pub payload: Bytes,
    /// What a shedder decides by; `None` sends the section without asking one.
    pub frame: Option<Frame>,
}

impl MediaUnit {
    /// Whether it may wait for a connection: a section from another connection has a deadline of
    /// its own, or none.
    pub(crate) const fn may_wait(&self) -> bool {
        matches!(self.due, Due::At(_) | Due::Never)
    }

    /// The word for what it holds: that of its frame, or of the media header in its payload.
    pub fn kind(&self) -> Option<&'static str> {
        match &self.frame {
            Some(frame) => Some(kind(frame.frame_type)),
            None => kind_of(&self.payload),
        }
    }

    /// The section for a connection with this latency. `needs` is the number there of what it
    /// needs.
    pub fn section(&self, needs: Option<SectionId>, latency: Duration) -> Section {
        Section {
            stream: self.stream,
            importance: self.importance,
            source_time: Some(self.source_time),
            deadline: Some(self.due.after(self.source_time, latency)),
            needs,
            payload: self.payload.clone(),
        }
    }

    /// The entry for a gap list where nothing of this section arrived.
    pub fn missing(&self, reason: MissingReason) -> Missing {
        let length = Some(self.payload.len() as u64);
        Missing {
            stream: self.stream,
            id: self.id,
            kind: self.kind(),
            reason,
            length,
            missing_bytes: length,
            source_time: Some(self.source_time),
        }
    }
}

/// A deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// This time and the latency of the connection after the source time.
    AfterLatency(Duration),
    /// At this moment, whatever connection it takes.
    At(Instant),
    /// Never.
    Never,
}

impl Due {
    /// The time from `source_time` to the deadline over a connection with this latency;
    /// [`Duration::MAX`] for never.
    pub fn after(self, source_time: Instant, latency: Duration) -> Duration {
        match self {
            Self::AfterLatency(more) => latency.saturating_add(more),
            // A section without any time left still has a deadline: none is `MAX`.
            Self::At(moment) => moment.saturating_duration_since(source_time),
            Self::Never => Duration::MAX,
        }
    }
}

/// What a source gives.
#[derive(Debug)]
pub enum SourceItem {
    /// A section.
    Unit(MediaUnit),
    /// A section that the source has not, or not all of.
    Missing(Missing),
    /// Something that the source says of itself.
    Notice(Notice),
}

/// Something that a source says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What it is about, in a word: notices are counted by it.
    pub kind: &'static str,
    /// A sentence for people.
    pub text: String,
}

/// The word for what a frame holds.
pub const fn kind(frame: FrameType) -> &'static str {
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

/// The words of [`kind`], pictures first.
pub const KINDS: [&str; 9] = [
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

/// The word for what a payload holds, by its media header; `None` if its first bytes are no such
/// header.
pub fn kind_of(payload: &[u8]) -> Option<&'static str> {
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
        let source_time = crate::clock::now();
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
