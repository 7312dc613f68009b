//! MPEG-1 and MPEG-2 video without a transport stream: pictures with times from their order.

use std::collections::VecDeque;

use comity_units::{Span, Time};

use super::config::ReaderConfig;
use super::error::{ReadError, Stop};
use super::pictures::Pictures;
use super::slices::payload;
use super::unit::Units;
use crate::codec::{
    Codec, H265State, Headers, classify, picture_header, sequence_header, start_codes,
};
use crate::header::Header;
use crate::section::{Event, MediaSection};
use crate::timeline::{WRAP, ticks};
use comity_frames::{Arrival, Group, Importance};

/// The number of bytes scanned at once.
const PIECE: usize = 64 << 10;

/// Splits an elementary stream into access units: a picture (both of its fields) with the headers
/// before it.
///
/// Its times follow from the frame rate. The n-th picture of the file is decoded n intervals after
/// the first. It is presented one interval after its position in presentation order, which
/// `temporal_reference` gives within its group.
#[derive(Debug)]
pub(super) struct Elementary {
    longest: usize,
    pictures: Pictures,
    /// The position of the present unit in the source.
    at: u64,
    /// Frames per second, as a fraction.
    rate: (u32, u32),
    /// The number of pictures before the present unit, and before its group.
    decoded: u64,
    before_group: u64,
    group: Group,
    next_number: u64,
}

impl Elementary {
    pub(super) fn new(config: ReaderConfig) -> Self {
        Self {
            longest: usize::try_from(config.longest_unit.get()).unwrap_or(usize::MAX - 1),
            pictures: Pictures::default(),
            at: 0,
            rate: (25, 1),
            decoded: 0,
            before_group: 0,
            group: Group::new(config.deadlines),
            next_number: 0,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8], events: &mut VecDeque<Event>) -> Result<(), Stop> {
        let mut rest = bytes;
        while !rest.is_empty() {
            // The limit applies at the same byte, however the input is split.
            let room = (self.longest + 1).saturating_sub(self.pictures.held());
            let (piece, behind) = rest.split_at(room.min(PIECE).min(rest.len()));
            rest = behind;
            let mut units = Units::new();
            self.pictures.extend(piece, &mut units);
            self.give(units, events);
            if self.pictures.held() <= self.longest {
                continue;
            }
            return Err(match self.next_number {
                0 => Stop::Unknown([&self.pictures.take_bytes(), rest].concat()),
                _ => Stop::Failed(ReadError::NoPicture {
                    at: self.at,
                    bytes: self.longest as u64,
                }),
            });
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, events: &mut VecDeque<Event>) -> Result<(), Stop> {
        let mut units = Units::new();
        self.pictures.look(Codec::Mpeg2, usize::MAX, &mut units);
        if self.next_number == 0 && units.is_empty() && !self.pictures.has_picture() {
            return Err(Stop::Unknown(self.pictures.take_bytes()));
        }
        self.pictures.flush(Codec::Mpeg2, &mut units);
        self.give(units, events);
        Ok(())
    }

    fn give(&mut self, units: Units, events: &mut VecDeque<Event>) {
        for unit in units.into_iter().flatten() {
            self.unit(&unit.bytes, events);
        }
    }

    fn unit(&mut self, unit: &[u8], events: &mut VecDeque<Event>) {
        let class = classify(Codec::Mpeg2, unit, false, &mut H265State::default());
        let frame = class.frame;
        let reference = self.read_headers(unit);
        // `temporal_reference` has ten bits: the value nearest to the picture's own position is
        // used.
        let expected = self.decoded - self.before_group;
        let ahead = u64::from(reference).wrapping_sub(expected) % 1024;
        let shown = if ahead < 512 {
            self.decoded + ahead
        } else {
            (self.decoded + ahead).saturating_sub(1024)
        };
        let (decoding, presentation) = (self.at(self.decoded), self.at(shown + 1));
        let member = self.group.push(Arrival {
            number: self.next_number,
            frame_type: frame,
            presentation: Some(presentation % WRAP),
            source_time: Time::ZERO + ticks(decoding),
            reordering: ticks(presentation.saturating_sub(decoding)),
            begins_refresh: class.begins_refresh,
        });
        events.push_back(Event::Section(MediaSection {
            stream: 0,
            number: self.next_number,
            source_time: member.source_time,
            deadline: member.deadline,
            importance: Importance::of(frame, member.position),
            is_damaged: false,
            frame,
            position: member.position,
            needs: member.needs,
            is_bound: member.is_bound,
            payload: payload(Header::Picture(frame), unit),
        }));
        self.next_number += 1;
        self.at += unit.len() as u64;
        self.decoded += u64::from(frame.is_picture());
    }

    /// Stores the contents of the headers before the slices. Returns the picture's
    /// `temporal_reference`, or zero without one.
    fn read_headers(&mut self, unit: &[u8]) -> u16 {
        for at in start_codes(unit) {
            let Some((&code, rest)) = unit.get(at..).and_then(<[u8]>::split_first) else {
                break;
            };
            match code {
                Headers::SEQUENCE => self.rate = sequence_header(rest).unwrap_or(self.rate),
                Headers::GROUP => self.before_group = self.decoded,
                Headers::PICTURE => {
                    return picture_header(rest).map_or(0, |(reference, _)| reference);
                }
                _ => {}
            }
        }
        0
    }

    /// The duration of the pictures so far.
    pub(super) fn progress(&self) -> Span {
        ticks(self.at(self.decoded))
    }

    /// The time of the n-th picture, in ticks of 90 kHz.
    fn at(&self, index: u64) -> u64 {
        let (frames, seconds) = self.rate;
        index.saturating_mul(90_000 * u64::from(seconds)) / u64::from(frames)
    }
}
