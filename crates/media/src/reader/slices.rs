//! Sections of what is not understood: so much of it as belongs to one short stretch of time.

use std::collections::VecDeque;

use bytes::Bytes;
use comity_units::{Bytes as Amount, Rate, Span, Time};

use super::ReaderConfig;
use crate::header::{Header, PACKET};
use crate::section::{Event, FrameType, Importance, MediaSection};
use crate::timeline::Timeline;

/// No slice is longer, whatever its time: packets of a burst do not need to wait for each other.
const LONGEST: usize = 348 * PACKET;

/// Cuts bytes, or whole packets, into slices.
#[derive(Debug)]
pub(super) struct Slicer {
    header: Header,
    /// Bytes, or packets, are never cut.
    grain: usize,
    span: Span,
    rate: Rate,
    clock: Option<(u16, Timeline)>,
    held: Vec<u8>,
    /// Where the slice at hand begins.
    begin: Time,
    /// How much came before it.
    before: u64,
    next_number: u64,
}

impl Slicer {
    pub(super) fn bytes(config: &ReaderConfig, next_number: u64) -> Self {
        Self::new(config, Header::Raw, 1, next_number)
    }

    pub(super) fn packets(config: &ReaderConfig) -> Self {
        Self::new(config, Header::Packets, PACKET, 0)
    }

    fn new(config: &ReaderConfig, header: Header, grain: usize, next_number: u64) -> Self {
        Self {
            header,
            grain,
            span: config.slice,
            rate: config.assumed_rate,
            clock: None,
            held: Vec::new(),
            begin: Time::ZERO,
            before: 0,
            next_number,
        }
    }

    /// Notes a clock reference of the packet that is pushed next: the first stream that has one gives the
    /// time from then on.
    pub(super) fn on_clock(&mut self, pid: u16, stamp: u64, events: &mut VecDeque<Event>) {
        let (clock_pid, timeline) = self.clock.get_or_insert_with(|| (pid, Timeline::default()));
        if *clock_pid != pid {
            return;
        }
        let now = timeline.place(stamp, None).time.max(self.begin);
        if now.saturating_since(self.begin) >= self.span {
            self.cut(self.held.len(), now, events);
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8], events: &mut VecDeque<Event>) {
        self.held.extend(bytes);
        let by_rate = usize::try_from(self.rate.amount_in(self.span).get()).unwrap_or(LONGEST);
        let length = match self.clock {
            Some(_) => LONGEST,
            None => by_rate.clamp(self.grain, LONGEST) / self.grain * self.grain,
        };
        while self.held.len() >= length {
            let amount = Amount::new(self.before.saturating_add(length as u64));
            let next = match self.clock {
                Some(_) => self.begin,
                None => (Time::ZERO + self.rate.transmission_time(amount)).max(self.begin),
            };
            self.cut(length, next, events);
        }
    }

    pub(super) fn finish(&mut self, events: &mut VecDeque<Event>) {
        self.cut(self.held.len(), self.begin, events);
    }

    fn cut(&mut self, length: usize, next: Time, events: &mut VecDeque<Event>) {
        let rest = self.held.split_off(length);
        let slice = core::mem::replace(&mut self.held, rest);
        if !slice.is_empty() {
            self.before += slice.len() as u64;
            events.push_back(Event::Section(MediaSection {
                stream: 0,
                number: self.next_number,
                source_time: self.begin,
                deadline: Span::ZERO,
                importance: Importance::of(FrameType::Slice, 0),
                frame: FrameType::Slice,
                position: 0,
                needs: None,
                payload: payload(self.header, &slice),
            }));
            self.next_number += 1;
        }
        self.begin = next;
    }
}

/// A header and what follows it, as one piece.
pub(super) fn payload(header: Header, rest: &[u8]) -> Bytes {
    let mut payload = Vec::with_capacity(rest.len() + 17);
    header.encode(&mut payload);
    payload.extend(rest);
    payload.into()
}
