//! Where a receiver begins when it joins a running source.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use comity::StreamId;
use comity_media::{
    Entry, Header, LatestTables, SectionName, current_table, is_announcement, is_layouts,
    named_sections, section_name,
};

use crate::unit::{Due, MediaUnit};

/// The minimum time for which a receiver waits for a picture from which decoding can begin. A
/// source without such pictures uses gradual refresh.
const PATIENCE: Duration = Duration::from_secs(2);
/// The maximum of that time, for a source whose pictures of this kind are so far apart.
const MAX_PATIENCE: Duration = Duration::from_secs(10);
/// How much longer than their usual distance a receiver waits.
const MORE: Duration = Duration::from_millis(500);
/// A stream of an unknown kind has pictures if its source marked at least so many of its units as
/// those from which decoding can begin, and others not.
const MARKED: u32 = 2;
/// How much earlier than that picture the tables are due.
const BEFORE: Duration = Duration::from_millis(20);
/// The maximum number of remembered layouts: at least one second of them.
const MAX_LAYOUTS: usize = 64;
/// The maximum number of bytes of the remembered layouts, 4 MiB: a sender ends a layout at 64 KiB
/// outside of packets, and the rest of a layout is far shorter.
const MAX_LAYOUT_BYTES: usize = MAX_LAYOUTS * (64 << 10);

/// The state of the source that joining receivers need.
#[derive(Debug, Default)]
pub(crate) struct Background {
    /// The streams that have had pictures, or units of an unknown kind.
    streams: BTreeMap<StreamId, Entries>,
    /// The latest version of each table.
    tables: LatestTables<MediaUnit>,
    /// The announcement of layouts, and the latest layouts. A layout may arrange the beginning of a
    /// picture whose deadline is later than its own.
    announcement: Option<MediaUnit>,
    layouts: VecDeque<Layout>,
    layout_bytes: usize,
    /// The shortest time from the source time of a section to its own deadline.
    shortest: Option<Duration>,
}

/// A layout, and the sections that it names, once they are needed.
#[derive(Debug)]
struct Layout {
    unit: MediaUnit,
    names: Option<BTreeSet<SectionName>>,
}

impl Layout {
    fn names(&mut self, section: &SectionName) -> bool {
        let names = &mut self.names;
        names
            .get_or_insert_with(|| named_sections(&self.unit.payload))
            .contains(section)
    }
}

/// The pictures of a stream from which decoding can begin.
#[derive(Clone, Copy, Debug, Default)]
struct Entries {
    /// Whether the stream is of a known kind.
    is_known: bool,
    /// Whether it has had other pictures, and how many of these.
    has_others: bool,
    count: u32,
    latest: Option<Instant>,
    /// The longest time from one to the next.
    distance: Duration,
}

impl Entries {
    fn see(&mut self, entry: Entry, at: Instant) {
        if entry == Entry::No {
            self.has_others = true;
            return;
        }
        self.count = self.count.saturating_add(1);
        if let Some(latest) = self.latest.replace(at) {
            let distance = at.saturating_duration_since(latest);
            self.distance = self.distance.max(distance);
        }
    }

    /// How long a receiver waits for the next one; `None` if the stream has no pictures.
    fn patience(&self) -> Option<Duration> {
        let has_pictures = self.is_known || self.has_others && self.count >= MARKED;
        let usual = match self.distance.is_zero() {
            true => Duration::ZERO,
            false => self.distance + MORE,
        };
        has_pictures.then(|| usual.clamp(PATIENCE, MAX_PATIENCE))
    }
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
            if let Ok((Header::Layout, _)) = Header::decode(&unit.payload) {
                self.add_layout(unit);
            }
        } else if let Some((pid, section)) = current_table(&unit.payload) {
            self.tables.insert(pid, section, unit.clone());
        } else if let Some((entry, is_known)) = entry_of(&unit.payload) {
            let entries = self.streams.entry(unit.stream).or_default();
            entries.is_known |= is_known;
            entries.see(entry, unit.source_time);
        }
    }

    fn add_layout(&mut self, unit: &MediaUnit) {
        self.layout_bytes += unit.payload.len();
        self.layouts.push_back(Layout {
            unit: unit.clone(),
            names: None,
        });
        while (self.layouts.len() > MAX_LAYOUTS || self.layout_bytes > MAX_LAYOUT_BYTES)
            && let Some(oldest) = self.layouts.pop_front()
        {
            self.layout_bytes -= oldest.unit.payload.len();
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
        let name = section_name(first.stream.0, &first.payload);
        let mut layouts = self.layouts.iter_mut();
        let begin = name.and_then(|name| layouts.position(|layout| layout.names(&name)));
        let layouts = self.layouts.iter().skip(begin.unwrap_or(usize::MAX));
        let layouts = layouts.map(|layout| &layout.unit);
        let all = self
            .tables
            .values()
            .chain(&self.announcement)
            .chain(layouts);
        all.map(|unit| MediaUnit {
            source_time,
            due,
            ..unit.clone()
        })
        .collect()
    }
}

/// Whether decoding can begin with a picture, or with a unit of an unknown kind, and whether the
/// kind is known.
fn entry_of(payload: &[u8]) -> Option<(Entry, bool)> {
    let known = Entry::of(payload).map(|entry| (entry, true));
    known.or_else(|| Entry::of_opaque(payload).map(|entry| (entry, false)))
}

/// Holds back sections that a decoder could not use: in each stream of pictures, those before the
/// first picture from which decoding can begin; in other streams, those before the first such
/// picture of any stream.
#[derive(Debug)]
pub(crate) struct Joining {
    /// The streams whose first picture has not come, and how long each is awaited.
    awaited: BTreeMap<StreamId, Duration>,
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
    pub(crate) fn new(background: &Background) -> Self {
        let awaited = { background.streams.iter() }
            .filter_map(|(&stream, entries)| Some((stream, entries.patience()?)))
            .collect();
        Self {
            awaited,
            has_begun: false,
            since: None,
        }
    }

    /// Whether the receiver gets this section. `background` is that of the sections before it.
    pub(crate) fn admit(&mut self, unit: &MediaUnit, background: &mut Background) -> Admission {
        if self.awaited.is_empty() && self.has_begun {
            return Admission::Yes(Vec::new());
        }
        let since = *self.since.get_or_insert(unit.source_time);
        let waited = unit.source_time.saturating_duration_since(since);
        self.awaited.retain(|_, patience| waited < *patience);
        if self.awaited.contains_key(&unit.stream) {
            if entry_of(&unit.payload).is_none_or(|(entry, _)| entry == Entry::No) {
                return Admission::No;
            }
            self.awaited.remove(&unit.stream);
        } else if !self.has_begun && !self.awaited.is_empty() {
            if Entry::of(&unit.payload).is_some() {
                self.awaited.insert(unit.stream, PATIENCE);
            }
            return Admission::No;
        }
        match std::mem::replace(&mut self.has_begun, true) {
            false => Admission::Yes(background.preface(unit)),
            true => Admission::Yes(Vec::new()),
        }
    }

    /// Whether missing sections of this stream are reported to the receiver.
    pub(crate) fn has_joined(&self, stream: StreamId) -> bool {
        (self.has_begun || self.awaited.is_empty()) && !self.awaited.contains_key(&stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;
    use bytes::Bytes;
    use comity::{Importance, SectionId};
    use comity_media::{FrameType, Times, Unit};

    #[derive(Clone, Copy)]
    enum Kind {
        Key,
        Predicted,
        /// A picture of AV1, from which decoding can begin or cannot.
        Marked,
        Unmarked,
        Sound,
        Table,
        Layout,
    }

    fn unit(stream: u16, millis: u64, kind: Kind, began: Instant) -> MediaUnit {
        let mut payload = Vec::new();
        let frame = match kind {
            Kind::Key => FrameType::Key,
            Kind::Predicted => FrameType::Predicted { referenced: true },
            Kind::Marked | Kind::Unmarked => FrameType::Opaque,
            _ => FrameType::Audio,
        };
        let header = match kind {
            Kind::Table => Header::Table {
                pid: 0,
                repeated: true,
            },
            Kind::Layout => Header::Layout,
            _ => Header::Unit(Unit {
                pid: 256 + stream,
                stream_type: match frame {
                    FrameType::Audio => 3,
                    FrameType::Opaque => 6,
                    _ => 0x1b,
                },
                stream_id: 0xe0,
                frame,
                times: Times::None,
                random_access: matches!(kind, Kind::Key | Kind::Marked),
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

    /// A receiver that joins, and the source.
    type Join = (Joining, Background);

    fn join(background: Background) -> Join {
        (Joining::new(&background), background)
    }

    /// The streams of the units that the receiver gets when this section is admitted.
    fn admitted((joining, background): &mut Join, unit: &MediaUnit) -> Vec<u16> {
        let admission = joining.admit(unit, background);
        background.see(unit);
        match admission {
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
        let mut joining = join(background);
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
            assert_eq!(joining.0.has_joined(unit.stream), !expected.is_empty());
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
        let (mut joining, mut background) = join(background);
        let first = MediaUnit {
            due: due(40, 300),
            ..unit(1, 40, Kind::Key, began)
        };
        let Admission::Yes(before) = joining.admit(&first, &mut background) else {
            panic!("it begins with that")
        };
        let dues: Vec<Due> = before.iter().map(|unit| unit.due).collect();
        assert_eq!(dues, [due(20, 200)]);
    }

    #[test]
    fn it_waits_for_two_seconds_and_only_for_pictures() {
        let began = now() + Duration::from_secs(1);
        let mut joining = join(Background::default());
        assert!(joining.0.has_joined(StreamId(1)));
        assert_eq!(admitted(&mut joining, &unit(2, 0, Kind::Sound, began)), [2]);
        assert_eq!(
            admitted(&mut joining, &unit(1, 0, Kind::Predicted, began)),
            [1]
        );
        // Sound alone still needs its tables.
        let with_table = || {
            let mut background = Background::default();
            background.see(&unit(0, 0, Kind::Table, began));
            background
        };
        let mut joining = join(with_table());
        assert_eq!(
            admitted(&mut joining, &unit(2, 0, Kind::Sound, began)),
            [0, 2]
        );
        assert_eq!(admitted(&mut joining, &unit(2, 0, Kind::Sound, began)), [2]);
        let mut background = with_table();
        background.see(&unit(1, 0, Kind::Predicted, began));
        let mut joining = join(background);
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

    /// A source with a picture of this kind every four seconds, of 25 pictures a second.
    fn four_seconds_apart(kinds: [Kind; 2], began: Instant) -> Background {
        let mut background = Background::default();
        for number in 0..=210_u64 {
            let [entry, other] = kinds;
            let kind = if number % 100 == 0 { entry } else { other };
            background.see(&unit(1, 40 * number, kind, began));
            background.see(&unit(2, 40 * number, Kind::Sound, began));
        }
        background.see(&unit(0, 8_400, Kind::Table, began));
        background
    }

    #[test]
    fn it_waits_as_long_as_entries_are_usually_apart() {
        let began = now() + Duration::from_secs(1);
        for kinds in [[Kind::Key, Kind::Predicted], [Kind::Marked, Kind::Unmarked]] {
            let [entry, other] = kinds;
            let mut joining = join(four_seconds_apart(kinds, began));
            for (stream, millis, kind, expected) in [
                (1, 8_440, other, &[][..]),
                (2, 8_440, Kind::Sound, &[]),
                (1, 10_480, other, &[]),
                (1, 11_960, other, &[]),
                (1, 12_000, entry, &[0, 1]),
                (1, 12_040, other, &[1]),
                (2, 12_040, Kind::Sound, &[2]),
            ] {
                let unit = unit(stream, millis, kind, began);
                assert_eq!(admitted(&mut joining, &unit), expected, "{unit:?}");
            }
            // The next one does not come.
            let mut joining = join(four_seconds_apart(kinds, began));
            for (millis, expected) in [(8_440, &[][..]), (12_920, &[]), (12_960, &[0, 1])] {
                let unit = unit(1, millis, other, began);
                assert_eq!(admitted(&mut joining, &unit), expected, "{millis}");
            }
        }
    }

    #[test]
    fn it_never_waits_longer_than_ten_seconds() {
        let began = now() + Duration::from_secs(1);
        let mut background = Background::default();
        for (millis, kind) in [(0, Kind::Key), (40, Kind::Predicted), (60_000, Kind::Key)] {
            background.see(&unit(1, millis, kind, began));
        }
        let mut joining = join(background);
        for (millis, expected) in [(60_040, &[][..]), (70_000, &[]), (70_040, &[1])] {
            let unit = unit(1, millis, Kind::Predicted, began);
            assert_eq!(admitted(&mut joining, &unit), expected, "{millis}");
        }
    }

    /// Sound, subtitles and data: all of the units are marked, none is, or one at the beginning.
    #[test]
    fn units_of_an_unknown_kind_that_are_no_pictures_are_not_awaited() {
        let began = now() + Duration::from_secs(1);
        for (first, others) in [
            (Kind::Marked, Kind::Marked),
            (Kind::Unmarked, Kind::Unmarked),
            (Kind::Marked, Kind::Unmarked),
        ] {
            let mut background = Background::default();
            background.see(&unit(1, 0, first, began));
            for number in 1..200 {
                background.see(&unit(1, 40 * number, others, began));
            }
            let mut joining = join(background);
            let next = unit(1, 8_000, others, began);
            assert_eq!(admitted(&mut joining, &next), [1]);
        }
    }

    #[test]
    fn a_joining_receiver_gets_the_latest_tables_alone() {
        let began = now() + Duration::from_secs(1);
        // The PAT of transport stream 2.
        let other = [
            0x12, 1, 0, 0, 0, 0xb0, 0x0d, 0, 2, 0xc1, 0, 0, 0, 1, 0xf0, 0, 0xc6, 0x53, 0x61, 0xec,
        ];
        let table = unit(0, 0, Kind::Table, began);
        let latest = MediaUnit {
            payload: Bytes::from(other.to_vec()),
            ..table
        };
        let mut background = Background::default();
        for table in [&table, &latest] {
            background.see(table);
        }
        let sound = unit(2, 40, Kind::Sound, began);
        let Admission::Yes(before) = Joining::new(&background).admit(&sound, &mut background)
        else {
            panic!("sound is not held back")
        };
        let payloads: Vec<_> = before.into_iter().map(|unit| unit.payload).collect();
        assert_eq!(payloads, [latest.payload]);
    }

    /// A section of the stream of layouts, with this payload.
    fn layout(payload: Vec<u8>, began: Instant) -> MediaUnit {
        MediaUnit {
            payload: Bytes::from(payload),
            ..unit(16_383, 0, Kind::Layout, began)
        }
    }

    #[test]
    fn layouts_are_remembered_up_to_a_number_of_bytes() {
        let began = now() + Duration::from_secs(1);
        let mut background = Background::default();
        let held = |background: &Background| {
            let layouts = background.layouts.iter();
            let bytes: usize = layouts.map(|layout| layout.unit.payload.len()).sum();
            assert_eq!(bytes, background.layout_bytes);
            bytes
        };
        // Garbage, and then what begins as a layout does.
        for (first, expected) in [(0xff, 0), (0x16, MAX_LAYOUT_BYTES)] {
            for _ in 0..MAX_LAYOUTS {
                background.see(&layout([&[first], &[1; (1 << 20) - 1][..]].concat(), began));
            }
            assert_eq!(held(&background), expected);
        }
        // One that is longer than all may be, and then short ones.
        background.see(&layout(vec![0x16; MAX_LAYOUT_BYTES + 1], began));
        assert_eq!(held(&background), 0);
        for _ in 0..2 * MAX_LAYOUTS {
            background.see(&layout(vec![0x16, 0xdc, 0x6b], began));
        }
        assert_eq!(held(&background), 3 * MAX_LAYOUTS);
    }

    #[test]
    fn layouts_are_read_once_for_all_receivers_that_join() {
        let began = now() + Duration::from_secs(1);
        let mut background = Background::default();
        for _ in 0..MAX_LAYOUTS {
            // Three null packets: the example of the protocol.
            background.see(&layout(vec![0x16, 0xdc, 0x6b], began));
        }
        let read = |background: &Background| {
            let layouts = background.layouts.iter();
            layouts.filter(|layout| layout.names.is_some()).count()
        };
        assert_eq!(read(&background), 0, "nobody has asked");
        let sound = unit(2, 40, Kind::Sound, began);
        for number in 0..100 {
            let mut joining = Joining::new(&background);
            let Admission::Yes(before) = joining.admit(&sound, &mut background) else {
                panic!("sound is not held back")
            };
            assert!(before.is_empty(), "no layout names the section");
            assert_eq!(read(&background), MAX_LAYOUTS);
            // The names of each stay as they were read, also if they are false.
            let known = background.layouts[63].names.as_mut().unwrap();
            assert_eq!(known.is_empty(), number == 0);
            known.insert(section_name(3, &sound.payload).unwrap());
        }
    }
}
