//! Where a receiver begins when it joins a running source.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use comity::StreamId;
use comity_media::{Entry, is_announcement, is_layouts, names_section, table_identity};

use crate::unit::{Due, MediaUnit};

/// How long a receiver waits for a picture from which decoding can begin. A source without such
/// pictures uses gradual refresh.
const PATIENCE: Duration = Duration::from_secs(2);
/// How much earlier than that picture the tables are due.
const BEFORE: Duration = Duration::from_millis(20);
/// The maximum number of remembered tables.
const MAX_TABLES: usize = 1_024;
/// The maximum number of remembered layouts: at least one second of them.
const MAX_LAYOUTS: usize = 64;

/// The state of the source that a joining receiver needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Background {
    /// The streams that have had pictures.
    pictures: BTreeSet<StreamId>,
    /// The latest version of each table.
    tables: BTreeMap<(u16, [u8; 4]), MediaUnit>,
    /// The announcement of layouts, and the latest layouts. A layout may arrange the beginning of a
    /// picture whose deadline is later than its own.
    announcement: Option<MediaUnit>,
    layouts: VecDeque<MediaUnit>,
    /// The shortest time from the source time of a section to its own deadline.
    shortest: Option<Duration>,
}

impl Background {
    pub(crate) fn see(&mut self, unit: &MediaUnit) {
        if let Due::At(moment) = unit.due {
            let after = moment.saturating_duration_since(unit.source_time);
            self.shortest = Some(self.shortest.map_or(after, |shortest| shortest.min(after)));
        }
        if is_announcement(unit.stream.0, &unit.payload) {
            self.announcement = Some(unit.clone());
        } else if is_layouts(unit.stream.0) {
            self.layouts.push_back(unit.clone());
            if self.layouts.len() > MAX_LAYOUTS {
                self.layouts.pop_front();
            }
        } else if let Some(table) = table_identity(&unit.payload) {
            if self.tables.len() < MAX_TABLES || self.tables.contains_key(&table) {
                self.tables.insert(table, unit.clone());
            }
        } else if !self.pictures.contains(&unit.stream) && Entry::of(&unit.payload).is_some() {
            self.pictures.insert(unit.stream);
        }
    }

    /// The units before the first section: the tables, and the layouts from the first one that
    /// names the section.
    ///
    /// A picture may be due later than the sound after it, because it is shown later. Since
    /// sections leave in the order of their deadlines, the units before the picture get the
    /// shortest time from source time to deadline that the source has had.
    fn preface(&mut self, first: &MediaUnit) -> Vec<MediaUnit> {
        let source_time = { first.source_time.checked_sub(BEFORE) }.unwrap_or(first.source_time);
        let due = match first.due {
            Due::AfterLatency(_) => Due::AfterLatency(Duration::ZERO),
            Due::Live { arriving, .. } => Due::Live {
                more: Duration::ZERO,
                arriving,
            },
            Due::At(moment) => {
                let earliest = self
                    .shortest
                    .and_then(|after| source_time.checked_add(after));
                Due::At(earliest.map_or(moment, |earliest| earliest.min(moment)))
            }
            Due::Never => Due::Never,
        };
        let tables = std::mem::take(&mut self.tables).into_values();
        let layouts = std::mem::take(&mut self.layouts).into_iter();
        let layouts = layouts
            .skip_while(|layout| !names_section(&layout.payload, first.stream.0, &first.payload));
        let all = tables.chain(self.announcement.take()).chain(layouts);
        all.map(|unit| MediaUnit {
            source_time,
            due,
            ..unit
        })
        .collect()
    }
}

/// Holds back sections that a decoder could not use: in each stream of pictures, those before the
/// first picture from which decoding can begin; in other streams, those before the first such
/// picture of any stream.
#[derive(Debug)]
pub(crate) struct Joining {
    background: Background,
    has_begun: bool,
    since: Option<Instant>,
}

/// Whether a receiver gets a section.
#[derive(Debug)]
pub(crate) enum Admission {
    No,
    /// Yes, after these units.
    Yes(Vec<MediaUnit>),
}

impl Joining {
    pub(crate) const fn new(background: Background) -> Self {
        Self {
            background,
            has_begun: false,
            since: None,
        }
    }

    pub(crate) fn admit(&mut self, unit: &MediaUnit) -> Admission {
        let waiting = &mut self.background.pictures;
        if waiting.is_empty() && self.has_begun {
            return Admission::Yes(Vec::new());
        }
        let since = *self.since.get_or_insert(unit.source_time);
        let entry = Entry::of(&unit.payload);
        if unit.source_time.saturating_duration_since(since) >= PATIENCE {
            waiting.clear();
        } else if waiting.contains(&unit.stream) {
            if entry.is_none_or(|entry| entry == Entry::No) {
                return Admission::No;
            }
            waiting.remove(&unit.stream);
        } else if !self.has_begun && !waiting.is_empty() {
            self.background.see(unit);
            return Admission::No;
        }
        match std::mem::replace(&mut self.has_begun, true) {
            false => Admission::Yes(self.background.preface(unit)),
            true => Admission::Yes(Vec::new()),
        }
    }

    /// Whether missing sections of this stream are reported to the receiver.
    pub(crate) fn has_joined(&self, stream: StreamId) -> bool {
        (self.has_begun || self.background.pictures.is_empty())
            && !self.background.pictures.contains(&stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;
    use bytes::Bytes;
    use comity::{Importance, SectionId};
    use comity_media::{FrameType, Header, Times, Unit};

    #[derive(Clone, Copy)]
    enum Kind {
        Key,
        Predicted,
        Sound,
        Table,
        Layout,
    }

    fn unit(stream: u16, millis: u64, kind: Kind, began: Instant) -> MediaUnit {
        let mut payload = Vec::new();
        let frame = match kind {
            Kind::Key => FrameType::Key,
            Kind::Predicted => FrameType::Predicted { referenced: true },
            _ => FrameType::Audio,
        };
        let header = match kind {
            Kind::Table => Header::Table {
                pid: 0,
                repeated: true,
            },
            Kind::Layout => Header::Layout,
            Kind::Key | Kind::Predicted | Kind::Sound => Header::Unit(Unit {
                pid: 256 + stream,
                stream_type: if frame == FrameType::Audio { 3 } else { 0x1b },
                stream_id: 0xe0,
                frame,
                times: Times::None,
                random_access: frame == FrameType::Key,
                discontinuity: false,
                aligned: false,
            }),
        };
        header.encode(&mut payload);
        payload.extend(match kind {
            // A PAT of one program.
            Kind::Table => &[
                0, 0xb0, 0x0d, 0, 1, 0xc1, 0, 0, 0, 1, 0xf0, 0, 0x2a, 0xb1, 4, 0xb2,
            ][..],
            _ => &[0, 0, 1, 0x65],
        });
        MediaUnit {
            stream: StreamId(stream),
            id: SectionId(0),
            importance: Importance(0),
            source_time: began + Duration::from_millis(millis),
            due: Due::AfterLatency(Duration::from_millis(stream.into())),
            needs: None,
            payload: Bytes::from(payload),
            is_damaged: false,
            frame: None,
        }
    }

    /// The streams of the units that the receiver gets when this section is admitted.
    fn admitted(joining: &mut Joining, unit: &MediaUnit) -> Vec<u16> {
        match joining.admit(unit) {
            Admission::No => Vec::new(),
            Admission::Yes(before) => {
                for earlier in &before {
                    assert_eq!(earlier.source_time + BEFORE, unit.source_time);
                    // The pictures are due some milliseconds later.
                    assert_eq!(earlier.due, Due::AfterLatency(Duration::ZERO));
                }
                { before.iter() }
                    .chain([unit])
                    .map(|unit| unit.stream.0)
                    .collect()
            }
        }
    }

    #[test]
    fn a_source_begins_with_a_picture_that_needs_none_before_it() {
        let began = now() + Duration::from_secs(1);
        let mut background = Background::default();
        for (stream, kind) in [
            (1, Kind::Predicted),
            (0, Kind::Table),
            (2, Kind::Sound),
            (3, Kind::Key),
            (0, Kind::Table),
        ] {
            background.see(&unit(stream, 0, kind, began));
        }
        let mut joining = Joining::new(background);
        for (stream, kind, expected) in [
            (1, Kind::Predicted, &[][..]),
            (2, Kind::Sound, &[]),
            (16_383, Kind::Layout, &[]),
            (0, Kind::Table, &[]),
            // The table, and then the picture.
            (1, Kind::Key, &[0, 1]),
            (2, Kind::Sound, &[2]),
            (0, Kind::Table, &[0]),
            (16_383, Kind::Layout, &[16_383]),
            (3, Kind::Predicted, &[]),
            (1, Kind::Predicted, &[1]),
            (3, Kind::Key, &[3]),
            (3, Kind::Predicted, &[3]),
        ] {
            let unit = unit(stream, 40, kind, began);
            assert_eq!(admitted(&mut joining, &unit), expected, "{unit:?}");
            assert_eq!(joining.has_joined(unit.stream), !expected.is_empty());
        }
    }

    /// Behind a relay: the picture is due 300 ms after its source time, and sound 200 ms.
    #[test]
    fn what_precedes_a_picture_is_due_before_the_sound_behind_it() {
        let began = now() + Duration::from_secs(1);
        let due = |millis: u64, after: u64| Due::At(began + Duration::from_millis(millis + after));
        let mut background = Background::default();
        for (stream, kind, after) in [
            (0, Kind::Table, 200),
            (1, Kind::Predicted, 300),
            (2, Kind::Sound, 200),
        ] {
            let unit = unit(stream, 0, kind, began);
            background.see(&MediaUnit {
                due: due(0, after),
                ..unit
            });
        }
        let mut joining = Joining::new(background);
        let first = MediaUnit {
            due: due(40, 300),
            ..unit(1, 40, Kind::Key, began)
        };
        let Admission::Yes(before) = joining.admit(&first) else {
            panic!("it begins with that")
        };
        let dues: Vec<Due> = before.iter().map(|unit| unit.due).collect();
        assert_eq!(dues, [due(20, 200)]);
    }

    #[test]
    fn it_waits_for_two_seconds_and_only_for_pictures() {
        let began = now() + Duration::from_secs(1);
        let mut joining = Joining::new(Background::default());
        assert!(joining.has_joined(StreamId(1)));
        assert_eq!(admitted(&mut joining, &unit(2, 0, Kind::Sound, began)), [2]);
        assert_eq!(
            admitted(&mut joining, &unit(1, 0, Kind::Predicted, began)),
            [1]
        );
        // Sound alone still needs its tables.
        let mut background = Background::default();
        background.see(&unit(0, 0, Kind::Table, began));
        let mut joining = Joining::new(background.clone());
        assert_eq!(
            admitted(&mut joining, &unit(2, 0, Kind::Sound, began)),
            [0, 2]
        );
        assert_eq!(admitted(&mut joining, &unit(2, 0, Kind::Sound, began)), [2]);
        background.see(&unit(1, 0, Kind::Predicted, began));
        let mut joining = Joining::new(background);
        for (stream, millis, kind, expected) in [
            (1, 40, Kind::Predicted, &[][..]),
            (2, 2_039, Kind::Sound, &[]),
            (1, 2_040, Kind::Predicted, &[0, 1]),
            (2, 2_000, Kind::Sound, &[2]),
        ] {
            let unit = unit(stream, millis, kind, began);
            assert_eq!(admitted(&mut joining, &unit), expected, "{unit:?}");
        }
    }
}
