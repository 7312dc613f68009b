//! The video of the demonstration: the bundled clip or a file, and the plan of its sections.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

use comity::parts::{SEALING, UDP_IPV4};
use comity::{SectionId, StreamId};
use comity_frames::stamp::difference;
use comity_media::{
    Event, FrameType, Header, MediaSection, ReadError, Reader, ReaderConfig, Times,
};
use comity_stream::{Due, MediaUnit};
use comity_units::{DataSize, Rate, Span, Time};
use thiserror::Error;

/// Ten seconds of a synthetic picture and a tone (`experiments/demo/clip/make.sh`).
const CLIP: &[u8] = include_bytes!("../../../../experiments/demo/clip/clip.ts");

/// The number of bytes read from a file at once.
const PIECE: usize = 64 << 10;

/// The bytes on the wire that a datagram has in addition to sections: IP, UDP, header and tag,
/// about 20 for the departure and the frame, and 33 for packets without sections (measured on an
/// empty path).
const OVERHEAD: u64 = WITH_SECTIONS as u64 + 33;
/// The part of this overhead that belongs to datagrams with sections.
pub(crate) const WITH_SECTIONS: u32 = UDP_IPV4 + SEALING + 20;
/// Bytes of sections in a full datagram of 1,452 bytes.
pub(crate) const PER_DATAGRAM: u32 = 1_400;

/// The content of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A picture that depends on no other.
    Intra,
    /// A picture that depends on earlier ones.
    Predicted,
    /// A picture that depends on earlier and later ones.
    Bidirectional,
    Audio,
    /// Tables, and all other content of a transport stream.
    Other,
}

impl Kind {
    /// All kinds, in the order of the report.
    pub(crate) const ALL: [Self; 5] = [
        Self::Intra,
        Self::Predicted,
        Self::Bidirectional,
        Self::Audio,
        Self::Other,
    ];

    /// Its name in the report.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Intra => "I",
            Self::Predicted => "P",
            Self::Bidirectional => "B",
            Self::Audio => "audio",
            Self::Other => "tables",
        }
    }

    /// Whether this is a picture.
    pub(crate) const fn is_picture(self) -> bool {
        matches!(self, Self::Intra | Self::Predicted | Self::Bidirectional)
    }

    const fn of(frame: FrameType) -> Self {
        match frame {
            FrameType::Key | FrameType::Intra => Self::Intra,
            FrameType::Predicted { .. } => Self::Predicted,
            FrameType::Bidirectional { .. } => Self::Bidirectional,
            FrameType::Audio => Self::Audio,
            FrameType::Table
            | FrameType::Layout
            | FrameType::Parameters
            | FrameType::Opaque
            | FrameType::Slice => Self::Other,
        }
    }
}

/// A piece of video that can be sent repeatedly.
#[derive(Clone, Debug)]
pub(crate) struct Clip {
    sections: Vec<MediaSection>,
    /// For each section, the number of its picture in display order.
    pictures: Vec<Option<usize>>,
    /// The time until the clip repeats.
    length: Span,
    /// The time between two pictures where decoding can begin.
    group: Span,
}

/// A section, and the time to send it.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// The copy of the video that it belongs to.
    pub(crate) copy: u16,
    /// The picture of the clip, counted from 0 in display order; `None` for other content.
    pub(crate) picture: Option<usize>,
    /// Its stream; each copy has its own.
    pub(crate) stream: u16,
    /// Its number in that stream. Numbers continue when the clip repeats.
    pub(crate) number: u64,
    /// The number of the section of its stream that it needs.
    pub(crate) needs: Option<u64>,
    /// Its source time after the beginning.
    pub(crate) at: Span,
    /// When it would be shown on a path without delay.
    pub(crate) shown: Span,
    /// The section, with the numbers and times of the plan.
    pub(crate) media: MediaSection,
}

impl Planned {
    /// Its content.
    pub(crate) const fn kind(&self) -> Kind {
        Kind::of(self.media.frame)
    }

    /// The section on this host's clock, with this source time.
    pub(crate) fn unit(&self, source_time: Instant) -> MediaUnit {
        let frame = self.media.to_frame();
        MediaUnit {
            stream: StreamId(self.stream),
            id: SectionId(self.number),
            importance: self.media.importance,
            source_time,
            due: Due::AfterLatency(self.media.deadline.into()),
            needs: frame.bound_to().map(SectionId),
            payload: self.media.payload.clone(),
            frame: Some(frame),
            is_damaged: self.media.is_damaged,
        }
    }
}

/// Why a file cannot serve as the video.
#[derive(Debug, Error)]
pub(crate) enum NoClip {
    /// It cannot be read.
    #[error("cannot read {}: {reason}", file.display())]
    Unreadable { file: PathBuf, reason: io::Error },
    /// Its video becomes unreadable.
    #[error("{}: {reason}", file.display())]
    Broken { file: PathBuf, reason: ReadError },
    /// It has no pictures.
    #[error(
        "{} has no pictures; expected a transport stream with H.264, H.265 or MPEG-2 video, or an MPEG-1 or MPEG-2 elementary stream",
        .0.display()
    )]
    NoPictures(PathBuf),
}

impl Clip {
    /// The clip inside the program.
    pub(crate) fn bundled() -> Self {
        let mut reader = Reader::new(ReaderConfig::default());
        let read = reader.push(CLIP).and_then(|()| reader.finish());
        assert_eq!(read, Ok(()), "the clip is read in its tests");
        Self::of(sections(&mut reader).collect())
    }

    /// The video in a file, read up to `duration`.
    ///
    /// # Errors
    ///
    /// A [`NoClip`] if the file cannot be read, becomes unreadable, or has no pictures.
    pub(crate) fn open(file: &Path, duration: Span) -> Result<Self, NoClip> {
        let unreadable = |reason| NoClip::Unreadable {
            file: file.to_owned(),
            reason,
        };
        let broken = |reason| NoClip::Broken {
            file: file.to_owned(),
            reason,
        };
        let mut source = File::open(file).map_err(unreadable)?;
        let mut reader = Reader::new(ReaderConfig::default());
        let mut piece = vec![0; PIECE];
        let mut read = Vec::new();
        loop {
            let length = match source.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(unreadable(error)),
            };
            let bytes = piece.get(..length).unwrap_or_default();
            reader.push(bytes).map_err(broken)?;
            let before = read.len();
            read.extend(sections(&mut reader));
            let new = read.iter().skip(before);
            if new.map(|section| section.source_time).max() > Some(Time::ZERO + duration) {
                break;
            }
        }
        reader.finish().map_err(broken)?;
        read.extend(sections(&mut reader));
        let clip = Self::of(read);
        let mut kinds = clip.sections.iter().map(|section| Kind::of(section.frame));
        match kinds.any(Kind::is_picture) {
            true => Ok(clip),
            false => Err(NoClip::NoPictures(file.to_owned())),
        }
    }

    fn of(sections: Vec<MediaSection>) -> Self {
        // When the clip repeats, each stream continues one of its intervals after its last section.
        // The longest stream sets the length. Tables have no regular interval.
        let mut times: BTreeMap<u16, Vec<Time>> = BTreeMap::new();
        let timed = sections
            .iter()
            .filter(|section| Kind::of(section.frame) != Kind::Other);
        for section in timed {
            times
                .entry(section.stream)
                .or_default()
                .push(section.source_time);
        }
        let length = times.values().filter_map(|times| period(times)).max();
        let keys: Vec<Time> = sections
            .iter()
            .filter(|section| section.frame == FrameType::Key)
            .map(|section| section.source_time)
            .collect();
        let group = match keys.as_slice() {
            [first, second, ..] => second.saturating_since(*first),
            _ => Span::ZERO,
        };
        let mut shown: Vec<(Time, usize)> = (0..)
            .zip(&sections)
            .filter(|(_, section)| Kind::of(section.frame).is_picture())
            .map(|(index, section)| (section.source_time + reordering(section), index))
            .collect();
        shown.sort_unstable();
        let mut pictures = vec![None; sections.len()];
        for (number, (_, index)) in shown.into_iter().enumerate() {
            if let Some(picture) = pictures.get_mut(index) {
                *picture = Some(number);
            }
        }
        Self {
            sections,
            pictures,
            length: length.unwrap_or(Span::from_secs(1)),
            group,
        }
    }

    /// The approximate rate of one copy on the wire, with all headers.
    pub(crate) fn wire_rate(&self) -> Rate {
        let bytes = self
            .sections
            .iter()
            .map(|section| section.payload.len() as u64)
            .map(|length| length + length.div_ceil(PER_DATAGRAM.into()) * OVERHEAD)
            .sum();
        Rate::of(DataSize::new(bytes), self.length)
    }

    /// All sections of `copies` copies within `duration`, ordered by time. The copies begin one
    /// after another, so that their large pictures do not coincide.
    pub(crate) fn plan(&self, copies: u16, duration: Span) -> Vec<Planned> {
        let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
        for section in &self.sections {
            *counts.entry(section.stream).or_default() += 1;
        }
        let streams = counts.keys().max().map_or(1, |most| most + 1);
        let rounds = duration.as_nanos() / self.length.as_nanos().max(1) + 1;
        let mut plan = Vec::new();
        for copy in 0..copies {
            let offset = self.group.mul_f64(f64::from(copy) / f64::from(copies));
            for round in 0..rounds {
                for (section, picture) in self.sections.iter().zip(&self.pictures) {
                    let elapsed = Span::from_nanos(self.length.as_nanos() * round);
                    let at = section.source_time.saturating_since(Time::ZERO) + elapsed + offset;
                    if at >= duration {
                        continue;
                    }
                    let before = round * counts.get(&section.stream).copied().unwrap_or(0);
                    plan.push(Planned {
                        copy,
                        picture: *picture,
                        shown: at + reordering(section),
                        stream: copy * streams + section.stream,
                        number: before + section.number,
                        needs: section.needs.map(|needs| before + needs),
                        at,
                        media: MediaSection {
                            stream: copy * streams + section.stream,
                            number: before + section.number,
                            needs: section.needs.map(|needs| before + needs),
                            source_time: Time::ZERO + at,
                            ..section.clone()
                        },
                    });
                }
            }
        }
        // The sort is stable: sections of one stream and time keep the order of their numbers.
        plan.sort_by_key(|planned| planned.at);
        plan
    }
}

/// The sections that the reader has completed so far.
fn sections(reader: &mut Reader) -> impl Iterator<Item = MediaSection> {
    std::iter::from_fn(|| reader.poll()).filter_map(|event| match event {
        Event::Section(section) => Some(section),
        _ => None,
    })
}

/// The time between the decoding and the presentation of a section.
fn reordering(section: &MediaSection) -> Span {
    match Header::decode(&section.payload) {
        Ok((Header::Unit(unit), _)) => match unit.times {
            Times::Both {
                presentation,
                decoding,
            } => {
                let ticks = u64::try_from(difference(presentation, decoding)).unwrap_or(0);
                Span::from_nanos(ticks * 100_000 / 9)
            }
            _ => Span::ZERO,
        },
        _ => Span::ZERO,
    }
}

/// The length of a stream with these times, including one interval after the last one.
fn period(times: &[Time]) -> Option<Span> {
    let (first, last) = (times.first()?, times.last()?);
    let intervals = u64::try_from(times.len()).ok()?.checked_sub(1)?;
    let all = last.saturating_since(*first).as_nanos();
    all.checked_div(intervals)
        .map(|interval| Span::from_nanos(all + interval))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clip_is_ten_seconds_of_pictures_in_groups_of_one_second() {
        let clip = Clip::bundled();
        let within = |found: Span, millis: u64| {
            found.abs_diff(Span::from_millis(millis)) < Span::from_millis(50)
        };
        assert!(within(clip.length, 10_000), "{}", clip.length);
        assert!(within(clip.group, 1_000), "{}", clip.group);
        let count = |kind| {
            let sections = clip.sections.iter();
            sections.filter(|s| Kind::of(s.frame) == kind).count()
        };
        assert_eq!(count(Kind::Intra), 10);
        let pictures = count(Kind::Intra) + count(Kind::Predicted) + count(Kind::Bidirectional);
        assert_eq!(pictures, 250);
        // Sent as I P B B, shown as I B B P.
        let order = clip.pictures.iter().flatten().take(4).copied();
        assert_eq!(order.collect::<Vec<_>>(), [0, 3, 1, 2]);
        // The file has 668 kB; datagram headers replace those of the transport stream.
        let rate = clip.wire_rate().as_mbps_f64();
        assert!((0.45..0.65).contains(&rate), "{rate}");
    }

    #[test]
    fn a_file_is_read_up_to_the_duration() {
        let file = Path::new("../../experiments/demo/clip/clip.ts");
        let bundled = Clip::bundled();
        let whole = Clip::open(file, Span::from_secs(30)).unwrap();
        assert_eq!(whole.sections, bundled.sections);
        let part = Clip::open(file, Span::from_secs(3)).unwrap();
        assert!(part.sections.len() < bundled.sections.len() * 2 / 3);
        let planned = |clip: &Clip| {
            let plan = clip.plan(1, Span::from_secs(3));
            plan.iter()
                .map(|planned| planned.media.clone())
                .collect::<Vec<_>>()
        };
        assert!(planned(&bundled).len() > 3 * 25);
        assert_eq!(planned(&part), planned(&bundled));
    }

    #[test]
    fn every_stream_of_every_copy_counts_from_zero_without_gaps() {
        let plan = Clip::bundled().plan(3, Span::from_secs(21));
        let mut next: BTreeMap<u16, (u64, Span)> = BTreeMap::new();
        for planned in &plan {
            let (number, at) = next.entry(planned.stream).or_default();
            assert_eq!(planned.number, *number, "stream {}", planned.stream);
            assert!(planned.at >= *at && planned.at < Span::from_secs(21));
            assert!(planned.needs.is_none_or(|needs| needs < planned.number));
            (*number, *at) = (planned.number + 1, planned.at);
        }
        assert!(next.len() > 3);
        let streams = next.len() as u16 / 3;
        let pictures = |copy| {
            let of_copy = plan.iter().filter(|p| p.stream / streams == copy);
            of_copy.filter(|p| p.kind().is_picture()).count()
        };
        // 25 a second; the last copy begins two thirds of a second after the first.
        assert!((523..=525).contains(&pictures(0)), "{}", pictures(0));
        assert!((505..=510).contains(&pictures(2)), "{}", pictures(2));
    }

    #[test]
    fn a_video_of_zero_length_has_no_sections() {
        assert!(Clip::bundled().plan(2, Span::ZERO).is_empty());
    }
}
