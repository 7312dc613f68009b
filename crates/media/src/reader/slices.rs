//! Sections of what is not understood: so much of it as belongs to one short stretch of time.

use std::collections::VecDeque;

use bytes::Bytes;
use comity_units::{Rate, Span, Time};

use super::ReaderConfig;
use super::tempo::{References, Yardstick};
use crate::header::{Header, PACKET};
use crate::section::{Event, Found, MediaSection, Notice};
use comity_frames::{FrameType, Importance};

/// No slice is longer, whatever its time: packets of a burst do not need to wait for each other.
const LONGEST: usize = 348 * PACKET;

/// Cuts bytes, or whole packets, into slices: by the clock references that come with them, else by their arrival,
/// else by the assumed rate.
#[derive(Debug)]
pub(super) struct Slicer {
    header: Header,
    /// Bytes, or packets, are never cut.
    grain: usize,
    span: Span,
    rate: Rate,
    clock: Option<Clock>,
    held: Vec<u8>,
    /// Where the slice at hand begins.
    begin: Time,
    /// How much came so far, and when.
    yardstick: Yardstick,
    /// The source's time was this when that much had come.
    anchor: Option<(Time, Yardstick)>,
    next_number: u64,
    /// How many bytes of a break between packets came so far.
    broken: Option<u64>,
}

/// The clock references of the first stream that has some.
#[derive(Debug)]
struct Clock {
    pid: u16,
    references: References,
    /// Whether slices are cut by them.
    is_followed: bool,
    /// The source's time was this when that was the references'.
    anchor: (Time, Time),
}

impl Clock {
    fn now(&self) -> Time {
        let (time, reference) = self.anchor;
        time + self.references.now().saturating_since(reference)
    }
}

impl Slicer {
    pub(super) fn bytes(config: &ReaderConfig, next_number: u64) -> Self {
        Self::new(config, Header::Raw, 1, next_number)
    }

    pub(super) fn packets(config: &ReaderConfig) -> Self {
        Self::new(config, Header::Packets, PACKET, 0)
    }

    /// Bytes in the place of packets that cannot be found, from `begin` on, at this rate where they do not tell when they
    /// come.
    pub(super) fn of_break(
        config: &ReaderConfig,
        next_number: u64,
        begin: Time,
        rate: Rate,
    ) -> Self {
        Self {
            begin,
            rate,
            ..Self::bytes(config, next_number)
        }
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
            yardstick: Yardstick::default(),
            anchor: None,
            next_number,
            broken: None,
        }
    }

    /// Takes the next packet of a stream without programs, and the clock reference that it has.
    pub(super) fn packet(
        &mut self,
        packet: &[u8; PACKET],
        reference: Option<(u16, u64)>,
        arrival: Option<Time>,
        events: &mut VecDeque<Event>,
    ) {
        if let Some(bytes) = self.broken.take() {
            self.finish(events);
            (self.header, self.grain) = (Header::Packets, PACKET);
            self.begin = self.now();
            if let Some(clock) = &mut self.clock {
                let behind = self.begin.saturating_since(clock.now());
                clock.references.resume_behind(behind);
            }
            events.push_back(Event::Notice(Notice::PacketsAgain { bytes }));
        }
        if let Some((pid, stamp)) = reference {
            self.on_clock(pid, stamp, events);
        }
        self.push(packet, arrival, events);
    }

    /// Takes the next bytes of a break between packets.
    pub(super) fn raw(
        &mut self,
        bytes: &[u8],
        arrival: Option<Time>,
        events: &mut VecDeque<Event>,
    ) {
        if self.broken.is_none() {
            let clock = self.clock.as_ref().filter(|clock| clock.is_followed);
            if let Some(now) = clock.map(Clock::now) {
                self.anchor = Some((now.max(self.begin), self.yardstick));
            }
            let now = self.now();
            self.cut(self.held.len(), now, events);
            (self.header, self.grain) = (Header::Raw, 1);
            events.push_back(Event::Notice(Notice::NoPackets));
        }
        *self.broken.get_or_insert(0) += bytes.len() as u64;
        self.push(bytes, arrival, events);
    }

    /// When what comes next is there, where no clock references tell it.
    pub(super) fn now(&self) -> Time {
        let passed = self.anchor.map(|(time, yardstick)| {
            let passed = self.yardstick.since(&yardstick, self.rate);
            time + passed
        });
        passed.unwrap_or(self.begin).max(self.begin)
    }

    /// The number of the next slice, when what is held is one.
    pub(super) const fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Notes a clock reference of the packet that is pushed next: the first stream that has one gives the
    /// time from then on, for as long as its references move.
    fn on_clock(&mut self, pid: u16, stamp: u64, events: &mut VecDeque<Event>) {
        let clock = self.clock.get_or_insert_with(|| Clock {
            pid,
            references: References::default(),
            is_followed: true,
            anchor: (self.begin, Time::ZERO),
        });
        if clock.pid != pid {
            return;
        }
        clock.references.on_reference(stamp, self.yardstick);
        let alive = clock.references.are_alive(&self.yardstick, self.rate);
        if !clock.is_followed && alive {
            clock.is_followed = true;
            clock.anchor = (self.begin, clock.references.now());
            events.push_back(Event::Notice(Notice::TimedAgain { pid }));
        }
        let now = clock.now();
        if clock.is_followed && now.saturating_since(self.begin) >= self.span {
            self.cut(self.held.len(), now, events);
        }
    }

    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        arrival: Option<Time>,
        events: &mut VecDeque<Event>,
    ) {
        self.yardstick.arrival = arrival;
        self.anchor.get_or_insert((self.begin, self.yardstick));
        let is_clocked = self.broken.is_none() && {
            self.look_at_clock(events);
            self.clock.as_ref().is_some_and(|clock| clock.is_followed)
        };
        if !is_clocked && arrival.is_some() {
            let now = self.now();
            if now.saturating_since(self.begin) >= self.span {
                self.cut(self.held.len(), now, events);
            }
        }
        let by_rate = usize::try_from(self.rate.amount_in(self.span).get()).unwrap_or(LONGEST);
        let is_timed = is_clocked || arrival.is_some();
        let length = match is_timed {
            true => LONGEST,
            false => by_rate.clamp(self.grain, LONGEST) / self.grain * self.grain,
        };
        let mut rest = bytes;
        while !rest.is_empty() {
            let (piece, behind) =
                rest.split_at(rest.len().min(length.saturating_sub(self.held.len())));
            self.held.extend(piece);
            self.yardstick.bytes += piece.len() as u64;
            rest = behind;
            if self.held.len() >= length {
                let next = match is_timed {
                    true => self.begin,
                    false => self.now(),
                };
                self.cut(length, next, events);
            }
        }
    }

    /// Leaves clock references that stand still, and goes on from where they moved last.
    fn look_at_clock(&mut self, events: &mut VecDeque<Event>) {
        let Some(clock) = &mut self.clock else {
            return;
        };
        let alive = clock.references.are_alive(&self.yardstick, self.rate);
        if !clock.is_followed || alive {
            return;
        }
        clock.is_followed = false;
        let stood = clock.references.moved().unwrap_or(self.yardstick);
        self.anchor = Some((clock.now().max(self.begin), stood));
        events.push_back(Event::Notice(Notice::Untimed {
            pid: clock.pid,
            found: Found::Still,
            by: self.yardstick.time_source(self.rate),
        }));
        // What is held has no length that the rate would give.
        let (begin, held) = (self.begin, self.held.len());
        self.cut(held, begin, events);
    }

    pub(super) fn finish(&mut self, events: &mut VecDeque<Event>) {
        self.cut(self.held.len(), self.begin, events);
    }

    fn cut(&mut self, length: usize, next: Time, events: &mut VecDeque<Event>) {
        let rest = self.held.split_off(length);
        let slice = core::mem::replace(&mut self.held, rest);
        if !slice.is_empty() {
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
