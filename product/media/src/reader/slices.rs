//! Sections of an unknown format: slices of bytes, each for a short time.

use std::collections::VecDeque;

use bytes::Bytes;
use comity_units::{Rate, Span, Time};

use super::config::ReaderConfig;
use crate::header::{Header, PACKET};
use crate::section::{Event, MediaSection};
use comity_frames::{FrameType, Importance};

/// The maximum length of a slice, whatever its duration, so that the bytes of a burst need not wait
/// for each other.
const LONGEST: usize = 348 * PACKET;

/// Cuts bytes into slices: a live source by arrival, other sources by the assumed rate.
#[derive(Debug)]
pub(super) struct Slicer {
    span: Span,
    rate: Rate,
    /// Whether each piece of a live source is one slice.
    keeps_pieces: bool,
    held: Vec<u8>,
    /// When the present slice begins.
    begin: Time,
    /// The number of bytes in slices so far.
    cut: u64,
    next_number: u64,
}

impl Slicer {
    pub(super) fn new(config: &ReaderConfig) -> Self {
        Self {
            span: config.slice,
            rate: config.assumed_rate,
            keeps_pieces: config.opaque,
            held: Vec::new(),
            begin: Time::ZERO,
            cut: 0,
            next_number: 0,
        }
    }

    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        arrival: Option<Time>,
        events: &mut VecDeque<Event>,
    ) {
        let length = match arrival {
            Some(arrival) => {
                if self.keeps_pieces || arrival.saturating_since(self.begin) >= self.span {
                    self.give(self.held.len(), events);
                    self.begin = arrival;
                }
                LONGEST
            }
            None => usize::try_from(self.rate.amount_in(self.span).get())
                .map_or(LONGEST, |length| length.clamp(1, LONGEST)),
        };
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = length.saturating_sub(self.held.len());
            let (piece, behind) = rest.split_at(rest.len().min(room));
            self.held.extend(piece);
            rest = behind;
            if self.held.len() >= length {
                self.give(length, events);
                if arrival.is_none() {
                    let before = comity_units::DataSize::new(self.cut);
                    self.begin = Time::ZERO + self.rate.transmission_time(before);
                }
            }
        }
        if self.keeps_pieces && arrival.is_some() {
            self.give(self.held.len(), events);
        }
    }

    pub(super) fn finish(&mut self, events: &mut VecDeque<Event>) {
        self.give(self.held.len(), events);
    }

    fn give(&mut self, length: usize, events: &mut VecDeque<Event>) {
        let rest = self.held.split_off(length);
        let slice = core::mem::replace(&mut self.held, rest);
        if slice.is_empty() {
            return;
        }
        self.cut += slice.len() as u64;
        events.push_back(Event::Section(MediaSection {
            stream: 0,
            number: self.next_number,
            source_time: self.begin,
            deadline: Span::ZERO,
            importance: Importance::of(FrameType::Slice, 0),
            is_damaged: false,
            frame: FrameType::Slice,
            position: 0,
            needs: None,
            is_bound: false,
            payload: payload(Header::Raw, &slice),
        }));
        self.next_number += 1;
    }
}

/// A header and the data after it, as one piece.
pub(super) fn payload(header: Header, rest: &[u8]) -> Bytes {
    let mut payload = Vec::with_capacity(rest.len() + 17);
    header.encode(&mut payload);
    payload.extend(rest);
    payload.into()
}
