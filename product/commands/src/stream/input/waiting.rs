//! Sections that have been read and are not yet due.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use comity::StreamId;
use comity_frames::Frame;
use comity_stream::{MediaUnit, Missing, SourceItem};

/// The maximum number of bytes to read ahead in a file, regardless of its times. It holds one
/// second ([`LOOKAHEAD`]) at 256 Mb/s, or ten seconds ([`GROUP_LOOKAHEAD`]) at 25 Mb/s. The last
/// piece may exceed it.
pub(super) const READ_AHEAD: usize = 32 << 20;
/// The overhead of a section besides its payload, in bytes.
const READ_AHEAD_EACH: usize = 512;

/// Sections that are not yet due, and entries for those that are incomplete at the source, in the
/// order of their times. Within a stream, this is the order of the stream, even where its times go
/// back. Reading stops while they take [`READ_AHEAD`] bytes.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    items: BTreeMap<(Instant, u64), Waits>,
    /// The number of these bytes.
    pub(super) bytes: usize,
    pub(super) has_reported_full: bool,
    count: u64,
    latest: BTreeMap<StreamId, Instant>,
    pub(super) furthest: Option<Instant>,
    furthest_picture: Option<Instant>,
}

/// A section, or the entry for a missing one.
#[derive(Debug)]
enum Waits {
    Section(MediaUnit),
    Missing(Missing),
}

impl Waits {
    /// The number of bytes that count towards [`READ_AHEAD`].
    fn bytes(&self) -> usize {
        READ_AHEAD_EACH
            + match self {
                Self::Section(unit) => unit.payload.len(),
                Self::Missing(_) => 0,
            }
    }
}

impl From<Waits> for SourceItem {
    fn from(waits: Waits) -> Self {
        match waits {
            Waits::Section(unit) => Self::Unit(unit),
            Waits::Missing(missing) => Self::Missing(missing),
        }
    }
}

impl Waiting {
    pub(super) fn add(&mut self, unit: MediaUnit) {
        let latest = self.due_at(unit.stream, unit.source_time);
        let is_picture = |frame: &Frame| frame.frame_type.is_picture();
        if unit.frame.as_ref().is_some_and(is_picture) {
            self.furthest_picture = self.furthest_picture.max(Some(latest));
        }
        self.insert(latest, Waits::Section(unit));
    }

    pub(super) fn miss(&mut self, source_time: Instant, missing: Missing) {
        let latest = self.due_at(missing.stream, source_time);
        self.insert(latest, Waits::Missing(missing));
    }

    /// When an item of a stream with this source time is due: not before the previous item of the
    /// stream.
    fn due_at(&mut self, stream: StreamId, source_time: Instant) -> Instant {
        let latest = self.latest.entry(stream).or_insert(source_time);
        *latest = source_time.max(*latest);
        self.furthest = self.furthest.max(Some(*latest));
        *latest
    }

    fn insert(&mut self, due: Instant, waits: Waits) {
        self.bytes += waits.bytes();
        self.items.insert((due, self.count), waits);
        self.count += 1;
    }

    /// The number of payload bytes of the waiting sections.
    pub(super) fn payload(&self) -> u64 {
        (self.bytes - READ_AHEAD_EACH * self.items.len()) as u64
    }

    pub(super) const fn is_full(&self) -> bool {
        self.bytes >= READ_AHEAD
    }

    /// When the first item is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.items.first_key_value().map(|(&(due, _), _)| due)
    }

    /// The time between the first and the last item.
    pub(super) fn span(&self) -> Duration {
        let ends = self.due().zip(self.furthest);
        ends.map_or(Duration::ZERO, |(first, last)| {
            last.saturating_duration_since(first)
        })
    }

    pub(super) fn take(&mut self) -> Option<SourceItem> {
        let (_, waits) = self.items.pop_first()?;
        self.bytes -= waits.bytes();
        Some(waits.into())
    }

    /// Whether sections that are due at `moment` have been read.
    pub(super) fn reaches(&self, moment: Instant) -> bool {
        self.furthest.is_some_and(|furthest| furthest >= moment)
    }

    /// Whether pictures that are due at `moment` have been read. Without pictures, the other
    /// sections count.
    pub(super) fn reaches_picture(&self, moment: Instant) -> bool {
        match self.furthest_picture {
            Some(furthest) => furthest >= moment,
            None => self.reaches(moment),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use comity::{Importance, SectionId};
    use comity_media::{Event, Reader, ReaderConfig};
    use comity_stream::{Due, MissingReason};

    use crate::clock::now;

    #[test]
    fn sound_does_not_count_as_read_ahead_of_pictures() {
        let start = now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut reader = Reader::new(ReaderConfig::default());
        let video = include_bytes!("../../../../media/tests/vectors/mpeg1.m1v");
        reader.push(video).unwrap();
        reader.finish().unwrap();
        let picture = std::iter::from_fn(|| reader.poll()).find_map(|event| match event {
            Event::Section(section) if section.frame.is_picture() => Some(section.to_frame()),
            _ => None,
        });
        assert!(picture.is_some());
        let mut waiting = Waiting::default();
        let mut add = |stream, millis, frame| {
            waiting.add(MediaUnit {
                stream: StreamId(stream),
                id: SectionId(0),
                importance: Importance(0),
                source_time: at(millis),
                due: Due::Never,
                needs: None,
                payload: Bytes::new(),
                frame,
                is_damaged: false,
            });
            (
                waiting.reaches(at(1_000)),
                waiting.reaches_picture(at(1_000)),
            )
        };
        assert_eq!(add(2, 999, None), (false, false));
        // Without pictures, the other sections count.
        assert_eq!(add(2, 1_000, None), (true, true));
        assert_eq!(add(1, 0, picture), (true, false));
        assert_eq!(add(1, 1_000, picture), (true, true));
    }

    #[test]
    fn waiting_items_keep_the_order_of_their_times_and_of_their_stream() {
        let start = now();
        let mut waiting = Waiting::default();
        // Sound follows pictures with later times, and the times of stream 2 go back.
        for (stream, number, at) in [
            (1, 0, 0),
            (1, 1, 40),
            (1, 2, 80),
            (2, 0, 20),
            (2, 1, 10),
            (1, 3, 120),
        ] {
            waiting.add(MediaUnit {
                stream: StreamId(stream),
                id: SectionId(number),
                importance: Importance(0),
                source_time: start + Duration::from_millis(at),
                due: Due::Never,
                needs: None,
                payload: Bytes::new(),
                frame: None,
                is_damaged: false,
            });
        }
        let missing = Missing {
            stream: StreamId(2),
            id: SectionId(2),
            count: 1,
            kind: None,
            reason: MissingReason::Source,
            length: None,
            missing_bytes: None,
            source_time: None,
        };
        waiting.miss(start + Duration::from_millis(110), missing);
        assert_eq!(waiting.due(), Some(start));
        assert!(waiting.reaches(start + Duration::from_millis(120)));
        assert!(!waiting.reaches(start + Duration::from_millis(121)));
        let order: Vec<(u16, u64)> = std::iter::from_fn(|| waiting.take())
            .map(|passage| match passage {
                SourceItem::Unit(unit) => (unit.stream.0, unit.id.0),
                SourceItem::Missing(missing) => (missing.stream.0, 10 + missing.id.0),
                SourceItem::Notice(notice) => panic!("{notice:?}"),
            })
            .collect();
        // A missing section keeps its position in this order.
        assert_eq!(
            order,
            [(1, 0), (2, 0), (2, 1), (1, 1), (1, 2), (2, 12), (1, 3)]
        );
        assert_eq!((waiting.due(), waiting.bytes), (None, 0));
    }
}
