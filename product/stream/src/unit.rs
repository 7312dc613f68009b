//! The items that go from a source to a sink.

use std::time::{Duration, Instant};

use bytes::Bytes;
use comity::{Importance, Section, SectionId, StreamId};
use comity_frames::{Frame, FrameType};
use comity_media::{Header, MediaSection, live_deadline};

use crate::missing::{Missing, MissingReason};

/// A section on its way from a source to a sink.
#[derive(Clone, Debug)]
pub struct MediaUnit {
    /// Its stream.
    pub stream: StreamId,
    /// Its number in that stream, at the source.
    pub id: SectionId,
    /// Its priority.
    pub importance: Importance,
    /// When it was captured.
    pub source_time: Instant,
    /// Its deadline.
    pub due: Due,
    /// The number, at the source, of an earlier section of the stream that it depends on.
    pub needs: Option<SectionId>,
    /// Its bytes.
    pub payload: Bytes,
    /// The frame for the shedder's decision; `None` sends the section without one.
    pub frame: Option<Frame>,
    /// Whether the source has only a part of it. The part is passed on and listed as
    /// [`MissingReason::Damaged`].
    pub is_damaged: bool,
}

impl MediaUnit {
    /// A section that a reader made, with its times on this host's clock.
    pub fn new(section: MediaSection, source_time: Instant, due: Due) -> Self {
        let frame = section.to_frame();
        Self {
            stream: StreamId(section.stream),
            id: SectionId(section.number),
            importance: section.importance,
            source_time,
            due,
            needs: frame.bound_to().map(SectionId),
            frame: Some(frame),
            is_damaged: section.is_damaged,
            payload: section.payload,
        }
    }

    /// Whether it may wait for a connection. A section from another connection has its own
    /// deadline, or none.
    pub(crate) const fn may_wait(&self) -> bool {
        matches!(self.due, Due::At(_) | Due::Never)
    }

    /// The word for its content, from its frame or from the media header in its payload.
    pub fn kind(&self) -> Option<&'static str> {
        match &self.frame {
            Some(frame) => Some(kind(frame.frame_type)),
            None => kind_of(&self.payload),
        }
    }

    /// The section for a connection with this latency and this least round-trip time. `needs` is
    /// the number of its dependency there.
    pub fn section(
        &self,
        needs: Option<SectionId>,
        latency: Duration,
        round_trip: Duration,
    ) -> Section {
        let mut section = Section::new(self.payload.clone())
            .stream(self.stream)
            .importance(self.importance)
            .source_time(self.source_time)
            .deadline(self.due.after(self.source_time, latency, round_trip));
        section.needs = needs;
        section
    }

    /// The entry in a list of gaps if this damaged section arrived.
    pub(crate) fn damaged(&self) -> Missing {
        Missing {
            missing_bytes: None,
            ..self.missing(MissingReason::Damaged)
        }
    }

    /// The entry in a list of gaps if nothing of this section arrived.
    pub fn missing(&self, reason: MissingReason) -> Missing {
        let length = Some(self.payload.len() as u64);
        Missing {
            stream: self.stream,
            id: self.id,
            count: 1,
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
    /// The source time plus this time and the connection's latency.
    AfterLatency(Duration),
    /// The deadline of a live section, whose source time is when it began to arrive: see
    /// [`live_deadline`].
    Live {
        /// Time added to that deadline.
        more: Duration,
        /// How long it took to arrive.
        arriving: Duration,
    },
    /// This moment, whatever the latency of the connection.
    At(Instant),
    /// No deadline.
    Never,
}

impl Due {
    /// The time from `source_time` to the deadline over a connection with this latency and this
    /// least round-trip time; [`Duration::MAX`] for never.
    pub fn after(self, source_time: Instant, latency: Duration, round_trip: Duration) -> Duration {
        match self {
            Self::AfterLatency(more) => latency.saturating_add(more),
            Self::Live { more, arriving } => {
                let after = live_deadline(arriving.into(), latency.into(), round_trip.into());
                Duration::from(after).saturating_add(more)
            }
            // An expired section still has a deadline: `MAX` would mean none.
            Self::At(moment) => moment.saturating_duration_since(source_time),
            Self::Never => Duration::MAX,
        }
    }
}

/// An item of a source.
#[derive(Debug)]
pub enum SourceItem {
    /// A section.
    Unit(MediaUnit),
    /// A section that the source does not have, or not completely.
    Missing(Missing),
    /// A notice of the source about itself.
    Notice(Notice),
}

/// A notice of a source about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// One word for its subject. Notices are counted by this word.
    pub kind: &'static str,
    /// A sentence for people.
    pub text: String,
}

/// The word for the content of a frame.
pub const fn kind(frame: FrameType) -> &'static str {
    match frame {
        FrameType::Table => "table",
        FrameType::Layout => "layout",
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
pub const KINDS: [&str; 10] = [
    "key",
    "I",
    "P",
    "B",
    "audio",
    "parameters",
    "table",
    "layout",
    "opaque",
    "slice",
];

/// The word for the content of a payload, from its media header; `None` if its first bytes are not
/// a media header.
pub fn kind_of(payload: &[u8]) -> Option<&'static str> {
    Some(match Header::decode(payload).ok()?.0 {
        Header::Unit(unit) => kind(unit.frame),
        Header::Table { .. } => kind(FrameType::Table),
        Header::Layout => kind(FrameType::Layout),
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
        let round_trip = Duration::from_millis(100);
        let after = |due: Due| due.after(source_time, latency, round_trip);
        assert_eq!(
            after(Due::AfterLatency(Duration::from_millis(40))),
            Duration::from_millis(440)
        );
        let live = |arriving| Due::Live {
            more: Duration::from_millis(7),
            arriving: Duration::from_millis(arriving),
        };
        for (arriving, total) in [(0, 400), (10, 410), (40, 415), (115, 415), (200, 500)] {
            assert_eq!(after(live(arriving)), Duration::from_millis(total + 7));
        }
        for (round_trip, total) in [(150, 415), (156, 430), (160, 440), (500, 440)] {
            let after = live(40).after(source_time, latency, Duration::from_millis(round_trip));
            assert_eq!(after, Duration::from_millis(total + 7), "{round_trip}");
        }
        let moment = source_time + Duration::from_millis(150);
        assert_eq!(after(Due::At(moment)), Duration::from_millis(150));
        assert_eq!(after(Due::Never), Duration::MAX);
        let later = moment + Duration::from_secs(1);
        assert_eq!(
            Due::At(moment).after(later, latency, round_trip),
            Duration::ZERO
        );
    }

    #[test]
    fn every_frame_type_has_a_word_in_the_list() {
        for frame in [
            FrameType::Table,
            FrameType::Layout,
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
