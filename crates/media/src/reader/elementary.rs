//! MPEG-1 and MPEG-2 video without a transport stream: pictures, and times from their order.

use std::collections::VecDeque;

use super::ReaderConfig;
use super::slices::payload;
use crate::codec::{
    Codec, ExtraSliceBits, Headers, PictureCoding, classify, picture_coding, picture_header,
    sequence_header, start_codes,
};
use crate::header::Header;
use crate::section::{Event, MediaSection};
use crate::timeline::{WRAP, ticks};
use comity_frames::{Arrival, FrameType, Group, Importance};

/// How many bytes behind a start code are looked at.
const LOOKED_AT: usize = 8;
/// How much is looked through at once: what lies behind the end of a unit is moved to the front.
const PIECE: usize = 64 << 10;

/// An elementary stream that went on for too long without a picture.
pub(super) struct Unpictured {
    /// What was held.
    pub(super) rest: Vec<u8>,
    /// The number of the next section.
    pub(super) next_number: u64,
}

/// Parts an elementary stream into access units: a picture (both of its fields) with the headers before it.
///
/// Its times follow from the frame rate: the n-th picture of the file is decoded n intervals after the first;
/// it is presented one interval after its place in the order of presentation, which `temporal_reference` gives
/// within its group.
#[derive(Debug)]
pub(super) struct Elementary {
    longest: usize,
    /// The unit at hand, up to where it is known to end; and how far it has been looked through.
    held: Vec<u8>,
    looked: usize,
    unit: Contents,
    /// Frames per second, as a fraction.
    rate: (u32, u32),
    /// Pictures before the unit at hand, and before its group.
    decoded: u64,
    before_group: u64,
    group: Group,
    next_number: u64,
}

/// What has been seen of the unit at hand.
#[derive(Clone, Copy, Debug, Default)]
struct Contents {
    temporal_reference: Option<u16>,
    has_slices: bool,
    fields: u8,
    begins_group: bool,
}

impl Elementary {
    pub(super) fn new(config: ReaderConfig) -> Self {
        Self {
            longest: usize::try_from(config.longest_unit.get()).unwrap_or(usize::MAX - 1),
            held: Vec::new(),
            looked: 0,
            unit: Contents::default(),
            rate: (25, 1),
            decoded: 0,
            before_group: 0,
            group: Group::new(config.deadlines),
            next_number: 0,
        }
    }

    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        events: &mut VecDeque<Event>,
    ) -> Result<(), Unpictured> {
        let mut rest = bytes;
        while !rest.is_empty() {
            // The limit is met at the same byte however the bytes were cut.
            let room = (self.longest + 1)
                .saturating_sub(self.held.len())
                .min(PIECE);
            let (piece, behind) = rest.split_at(room.min(rest.len()));
            self.held.extend(piece);
            rest = behind;
            self.look(LOOKED_AT, events);
            if self.held.len() > self.longest {
                let mut held = core::mem::take(&mut self.held);
                held.extend(rest);
                return Err(Unpictured {
                    rest: held,
                    next_number: self.next_number,
                });
            }
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, events: &mut VecDeque<Event>) -> Result<(), Unpictured> {
        self.look(0, events);
        let rest = core::mem::take(&mut self.held);
        if self.next_number == 0 && self.unit.temporal_reference.is_none() {
            return Err(Unpictured {
                rest,
                next_number: 0,
            });
        }
        if !rest.is_empty() {
            self.give(&rest, events);
        }
        Ok(())
    }

    /// Looks at the start codes that have so many bytes behind them.
    fn look(&mut self, behind: usize, events: &mut VecDeque<Event>) {
        loop {
            let fresh = self.held.get(self.looked..).unwrap_or_default();
            let Some(at) = start_codes(fresh).next().map(|at| at + self.looked) else {
                // A prefix may be cut: its first two bytes stay to be looked at.
                self.looked = self.looked.max(self.held.len().saturating_sub(2));
                return;
            };
            let start = self.held.get(at..).unwrap_or_default();
            let Some((&code, rest)) = start.split_first() else {
                return;
            };
            if rest.len() < behind {
                return;
            }
            if self.ends_before(code, rest) {
                let tail = self.held.split_off(at - 3);
                let unit = core::mem::replace(&mut self.held, tail);
                self.give(&unit, events);
                self.unit = Contents::default();
                self.looked = 0;
                continue;
            }
            self.looked = at;
            self.note(at);
        }
    }

    /// Whether the unit at hand ends before this start code.
    fn ends_before(&self, code: u8, rest: &[u8]) -> bool {
        if !self.unit.has_slices {
            return false;
        }
        match code {
            Headers::SEQUENCE | Headers::GROUP => true,
            Headers::PICTURE => {
                let reference = picture_header(rest).map(|(reference, _)| reference);
                let second_field =
                    self.unit.fields == 1 && reference == self.unit.temporal_reference;
                !second_field
            }
            _ => false,
        }
    }

    /// Notes what the start code before `at` says.
    fn note(&mut self, at: usize) {
        let Some((&code, rest)) = self.held.get(at..).and_then(<[u8]>::split_first) else {
            return;
        };
        match code {
            Headers::SEQUENCE => self.rate = sequence_header(rest).unwrap_or(self.rate),
            Headers::GROUP => self.unit.begins_group = true,
            Headers::PICTURE if self.unit.temporal_reference.is_none() => {
                self.unit.temporal_reference = picture_header(rest).map(|(reference, _)| reference);
            }
            Headers::EXTENSION if picture_coding(rest) == Some(PictureCoding::Field) => {
                self.unit.fields = self.unit.fields.saturating_add(1);
            }
            code if Headers::SLICES.contains(&code) => self.unit.has_slices = true,
            _ => {}
        }
    }

    fn give(&mut self, unit: &[u8], events: &mut VecDeque<Event>) {
        let frame = classify(Codec::Mpeg2, unit, false, &mut ExtraSliceBits::default())
            .unwrap_or(FrameType::Parameters);
        if self.unit.begins_group {
            self.before_group = self.decoded;
        }
        // `temporal_reference` has ten bits: the one of those that lies nearest to the picture's own place.
        let expected = self.decoded - self.before_group;
        let reference = u64::from(self.unit.temporal_reference.unwrap_or(0));
        let ahead = reference.wrapping_sub(expected) % 1024;
        let shown = if ahead < 512 {
            self.decoded + ahead
        } else {
            (self.decoded + ahead).saturating_sub(1024)
        };
        let (decoding, presentation) = (self.at(self.decoded), self.at(shown + 1));
        let place = self.group.place(Arrival {
            number: self.next_number,
            frame_type: frame,
            presentation: Some(presentation % WRAP),
            source_time: comity_units::Time::ZERO + ticks(decoding),
            reordering: ticks(presentation.saturating_sub(decoding)),
        });
        events.push_back(Event::Section(MediaSection {
            stream: 0,
            number: self.next_number,
            source_time: place.source_time,
            deadline: place.deadline,
            importance: Importance::of(frame, place.position),
            frame,
            position: place.position,
            needs: place.needs,
            payload: payload(Header::Picture(frame), unit),
        }));
        self.next_number += 1;
        if frame.is_picture() {
            self.decoded += 1;
        }
    }

    /// The time of the n-th picture, in ticks of 90 kHz.
    fn at(&self, index: u64) -> u64 {
        let (frames, seconds) = self.rate;
        index.saturating_mul(90_000 * u64::from(seconds)) / u64::from(frames)
    }
}
