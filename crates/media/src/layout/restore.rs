//! Layouts and sections, to packets.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use super::packet::{self, null_packet, put_together, without_payload};
use super::{Layout, Null, Packet, Run, SectionRef, TABLES, hash};
use crate::header::{PACKET, Unit};

/// How much may wait for sections and layouts. Then the oldest layout does without what it lacks.
const MAX_HELD: usize = 64 << 20;
/// How many bytes and sections may wait for a layout if none is there. Then they are written
/// without one.
const MAX_BYTES_WITHOUT: usize = 32 << 20;
const MAX_SECTIONS_WITHOUT: usize = 4_096;
/// What a packet of a layout, and a section, take beside their bytes.
const EACH: usize = 128;
/// How many layouts may wait behind one that names sections of a stream without any so far.
const PATIENCE: usize = 8;
/// The number of tables kept for packets that repeat them.
const MAX_TABLES: usize = 256;
/// The number of sections of a stream remembered that were written before the first layout.
const MAX_REMEMBERED: usize = 64;
/// The number of gaps remembered in a stream.
const MAX_GAPS: usize = 1_024;

/// What to write next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A packet of the source.
    Packet([u8; PACKET]),
    /// A packet in the place of one whose section is missing. If it has no payload and announces
    /// nothing, its counter is that of the packet before.
    Replacement([u8; PACKET]),
    /// A section of this stream whose layout is missing.
    Remultiplex(u16, Bytes),
    /// Packets of the source are left out here, and the counters jump.
    Break,
}

/// A section that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    pub(crate) stream: u16,
    /// Its number as the receiver sees it.
    pub(crate) number: u64,
    pub(crate) payload: Bytes,
    /// The length of its media header.
    pub(crate) header: usize,
    pub(crate) unit: Option<Unit>,
}

/// Writes packets as layouts describe them, from sections in any order.
///
/// A packet waits until each of its sections has arrived or is known to be missing. The numbers in
/// layouts are those of the source; a relay or a late receiver sees others, at a constant distance.
/// The first section of a stream that a layout names gives that distance away, by its hash.
#[derive(Debug, Default)]
pub(crate) struct Restorer {
    is_on: bool,
    streams: BTreeMap<u16, Stream>,
    queue: VecDeque<Queued>,
    head: Option<Head>,
    latest: Option<u64>,
    /// Whether the source has ended.
    has_ended: bool,
    held: usize,
    arrivals: u64,
}

#[derive(Debug)]
struct Queued {
    layout: Layout,
    /// Whether one before it is missing.
    follows_gap: bool,
}

/// The layout at hand, and how far it is written.
#[derive(Debug)]
struct Head {
    layout: Layout,
    at: usize,
    /// The furthest section used of each stream.
    furthest: BTreeMap<u16, u64>,
}

#[derive(Debug, Default)]
struct Stream {
    held: BTreeMap<u64, Held>,
    /// First and count of the missing ones.
    gaps: BTreeMap<u64, u64>,
    highest: Option<u64>,
    /// All up to here are done with.
    done: Option<u64>,
    /// The distance from the numbers here to those of the source.
    distance: Option<u16>,
}

#[derive(Debug)]
struct Held {
    payload: Bytes,
    header: usize,
    length: u32,
    hash: u16,
    unit: Option<Unit>,
    arrival: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fresh,
    Used,
    /// Written without a layout.
    Remultiplexed,
}

/// Where a section is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Here(u64),
    Missing,
    Unknown,
}

/// What becomes of a packet.
#[derive(Debug)]
enum Fate {
    Whole([u8; PACKET]),
    Missing,
    /// Its section was written before its layout came.
    Written,
    Waiting,
}

impl Held {
    fn is(&self, section: &SectionRef) -> bool {
        (self.length, self.hash) == (section.length, section.hash)
    }

    fn content(&self, run: &Run) -> Option<&[u8]> {
        let content = self.payload.get(self.header..)?;
        content.get(run.from as usize..run.to as usize)
    }

    fn cost(&self) -> usize {
        self.payload.len() + EACH
    }
}

impl Stream {
    fn is_gone(&self, number: u64) -> bool {
        let is_done = self.done.is_some_and(|done| number <= done);
        let gap = self.gaps.range(..=number).next_back();
        is_done || gap.is_some_and(|(&first, &count)| number - first < count)
    }

    /// Whether the number was seen before: the connection is another.
    fn has_seen(&self, number: u64) -> bool {
        self.held.contains_key(&number) || self.is_gone(number)
    }

    fn see(&mut self, number: u64) {
        self.highest = self.highest.max(Some(number));
    }

    /// The number here of a section, if the distance is known.
    fn number_of(&self, section: &SectionRef) -> Option<i128> {
        let highest = self.highest?;
        let number = section.number.wrapping_sub(self.distance?);
        let step = number.wrapping_sub((highest & 0xffff) as u16) as i16;
        Some(i128::from(highest) + i128::from(step))
    }

    /// Finds a section, and learns the distance of the numbers.
    fn find(&mut self, section: &SectionRef) -> Place {
        let number = self.number_of(section);
        let here = number.and_then(|number| u64::try_from(number).ok());
        if let Some(here) = here
            && self.held.get(&here).is_some_and(|held| held.is(section))
        {
            return Place::Here(here);
        }
        let is_other = here.is_some_and(|here| self.held.contains_key(&here));
        // The source repeats its tables: an equal one will do.
        if number.is_none() || is_other || section.stream == TABLES {
            let mut held = self.held.iter();
            if let Some((&here, _)) = held.find(|(_, held)| held.is(section)) {
                self.distance = Some(section.number.wrapping_sub((here & 0xffff) as u16));
                return Place::Here(here);
            }
        }
        match (number, here) {
            (Some(_), None) => Place::Missing,
            (Some(_), Some(here)) if is_other || self.is_gone(here) => Place::Missing,
            _ => Place::Unknown,
        }
    }

    /// Whether it can be known of each section whether it will come.
    const fn is_oriented(&self) -> bool {
        self.distance.is_some()
    }

    /// Lets go of all sections below this number.
    fn pass(&mut self, number: u64) -> usize {
        let kept = self.held.split_off(&number);
        let passed = core::mem::replace(&mut self.held, kept);
        self.gaps
            .retain(|&first, count| first.saturating_add(*count) > number);
        self.done = self.done.max(number.checked_sub(1));
        passed.values().map(Held::cost).sum()
    }
}

impl Restorer {
    /// Whether layouts come: sections wait for them.
    pub(crate) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether anything waits.
    pub(crate) fn is_holding(&self) -> bool {
        self.head.is_some() || !self.queue.is_empty() || {
            let mut held = self
                .streams
                .values()
                .flat_map(|stream| stream.held.values());
            held.any(|held| held.state == State::Fresh)
        }
    }

    /// The PIDs of the units that wait.
    pub(crate) fn held_pids(&self) -> BTreeSet<u16> {
        let held = self
            .streams
            .values()
            .flat_map(|stream| stream.held.values());
        held.filter(|held| held.state == State::Fresh)
            .filter_map(|held| Some(held.unit?.pid))
            .collect()
    }

    /// Learns that layouts will come.
    pub(crate) const fn expect(&mut self) {
        self.is_on = true;
    }

    /// Keeps a section until it is known whether layouts will come.
    pub(crate) fn keep(&mut self, arrived: &Arrived, out: &mut Vec<Action>) {
        self.hold(arrived, State::Fresh, out);
    }

    /// Writes what was kept, without layouts.
    pub(crate) fn release(&mut self, out: &mut Vec<Action>) {
        self.remultiplex_all(out);
    }

    /// How many bytes wait.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    /// Takes a section that has a layout, or will have one.
    pub(crate) fn section(&mut self, arrived: &Arrived, out: &mut Vec<Action>) {
        self.hold(arrived, State::Fresh, out);
        self.advance(false, out);
    }

    /// Remembers a section that is written without a layout.
    pub(crate) fn remember(&mut self, arrived: &Arrived, out: &mut Vec<Action>) {
        self.hold(arrived, State::Remultiplexed, out);
        if let Some(stream) = self.streams.get_mut(&arrived.stream)
            && stream.held.len() > MAX_REMEMBERED
            && let Some((&first, _)) = stream.held.first_key_value()
        {
            self.held -= stream.pass(first + 1);
        }
    }

    fn hold(&mut self, arrived: &Arrived, state: State, out: &mut Vec<Action>) {
        self.restart_at(arrived.stream, arrived.number, out);
        let length = arrived.payload.len().saturating_sub(arrived.header);
        let held = Held {
            hash: hash(&arrived.payload),
            payload: match state {
                State::Remultiplexed if arrived.stream != TABLES => Bytes::new(),
                _ => arrived.payload.clone(),
            },
            header: arrived.header,
            length: u32::try_from(length).unwrap_or(u32::MAX),
            unit: arrived.unit,
            arrival: self.arrivals,
            state,
        };
        self.arrivals += 1;
        self.held += held.cost();
        let stream = self.streams.entry(arrived.stream).or_default();
        stream.see(arrived.number);
        stream.held.insert(arrived.number, held);
        if !stream.is_oriented() {
            let layouts = { self.head.iter() }.map(|head| &head.layout);
            for layout in layouts.chain(self.queue.iter().map(|queued| &queued.layout)) {
                orient(&mut self.streams, layout);
            }
        }
    }

    /// Takes a layout, the `number`-th of its stream.
    pub(crate) fn layout(&mut self, number: u64, layout: Layout, out: &mut Vec<Action>) {
        if self.latest.is_some_and(|latest| number <= latest) {
            self.restart(out);
        }
        self.is_on = true;
        let follows_gap = self.latest.map_or(0, |latest| latest + 1) != number;
        self.latest = Some(number);
        self.held += cost(&layout);
        orient(&mut self.streams, &layout);
        self.queue.push_back(Queued {
            layout,
            follows_gap,
        });
        self.advance(false, out);
    }

    /// Learns that sections will not come.
    pub(crate) fn miss(&mut self, stream: u16, first: u64, count: u64, out: &mut Vec<Action>) {
        if count == 0 {
            return;
        }
        if stream != super::LAYOUTS {
            self.restart_at(stream, first, out);
            let stream = self.streams.entry(stream).or_default();
            stream.see(first.saturating_add(count - 1));
            stream.gaps.insert(first, count);
            if stream.gaps.len() > MAX_GAPS {
                stream.gaps.pop_first();
            }
        }
        self.advance(false, out);
    }

    /// Writes all that waits, without what is missing.
    pub(crate) fn finish(&mut self, out: &mut Vec<Action>) {
        self.advance(true, out);
        if self.has_ended {
            // No layout names what is left.
            self.streams.clear();
            self.held = 0;
        }
        self.remultiplex_all(out);
    }

    /// Numbers begin anew with each connection, which hands over all of its sections first.
    fn restart_at(&mut self, stream: u16, number: u64, out: &mut Vec<Action>) {
        let has_seen = |stream: &Stream| stream.has_seen(number);
        if self.streams.get(&stream).is_some_and(has_seen) {
            self.restart(out);
        }
    }

    fn restart(&mut self, out: &mut Vec<Action>) {
        self.finish(out);
        out.push(Action::Break);
        *self = Self {
            is_on: self.is_on,
            ..Self::default()
        };
    }

    /// Writes what can be written; everything, if `is_end`.
    fn advance(&mut self, is_end: bool, out: &mut Vec<Action>) {
        while let Some(mut head) = self.head.take().or_else(|| self.next(out)) {
            let is_forced = is_end || self.held > MAX_HELD;
            if !self.write(&mut head, is_forced, out) {
                self.head = Some(head);
                return;
            }
            self.held -= cost(&head.layout);
            self.let_go(&head);
        }
        let sections: usize = { self.streams.values() }
            .map(|stream| stream.held.len())
            .sum();
        if self.held > MAX_BYTES_WITHOUT || sections > MAX_SECTIONS_WITHOUT {
            self.remultiplex_all(out);
        }
    }

    /// Begins the next layout. Where one is missing before it, the sections that it would have
    /// ordered come first.
    fn next(&mut self, out: &mut Vec<Action>) -> Option<Head> {
        let Queued {
            layout,
            follows_gap,
        } = self.queue.pop_front()?;
        let mut first: BTreeMap<u16, u64> = BTreeMap::new();
        if follows_gap {
            for run in layout.packets.iter().flat_map(Packet::runs) {
                let stream = run.section.stream;
                if stream != TABLES
                    && !first.contains_key(&stream)
                    && let Some(Place::Here(number)) =
                        { self.streams.get_mut(&stream) }.map(|stream| stream.find(&run.section))
                {
                    first.insert(stream, number);
                }
            }
        }
        let mut stale = Vec::new();
        for (id, number) in first {
            let Some(stream) = self.streams.get_mut(&id) else {
                continue;
            };
            for held in stream.held.range_mut(..number).map(|(_, held)| held) {
                if held.state == State::Fresh {
                    held.state = State::Remultiplexed;
                    stale.push((held.arrival, id, held.payload.clone()));
                }
            }
        }
        write_stale(stale, out);
        if follows_gap {
            out.push(Action::Break);
        }
        self.has_ended |= layout.is_last;
        Some(Head {
            layout,
            at: 0,
            furthest: BTreeMap::new(),
        })
    }

    /// Writes the packets of a layout up to the first that has to wait; returns whether none has.
    fn write(&mut self, head: &mut Head, is_forced: bool, out: &mut Vec<Action>) -> bool {
        while let Some(packet) = head.layout.packets.get(head.at) {
            match self.fate(packet, &mut head.furthest) {
                Fate::Waiting if !is_forced => return false,
                Fate::Whole(bytes) => out.push(Action::Packet(bytes)),
                Fate::Written => {
                    if out.last() != Some(&Action::Break) {
                        out.push(Action::Break);
                    }
                }
                Fate::Missing | Fate::Waiting => {
                    out.extend(self.replacement(head).map(Action::Replacement));
                }
            }
            head.at += 1;
        }
        true
    }

    fn fate(&mut self, packet: &Packet, furthest: &mut BTreeMap<u16, u64>) -> Fate {
        if let Packet::Null(null) = packet {
            return Fate::Whole(null_packet(*null));
        }
        let runs = packet.runs();
        let mut numbers = Vec::with_capacity(runs.len());
        let mut is_waiting = false;
        for run in runs {
            let stream = run.section.stream;
            let found = self.streams.get_mut(&stream).map(|stream| {
                let found = stream.find(&run.section);
                (found, stream.is_oriented())
            });
            match found {
                Some((Place::Here(number), _)) => {
                    let furthest = furthest.entry(stream).or_insert(number);
                    *furthest = number.max(*furthest);
                    numbers.push(number);
                }
                Some((Place::Missing, _)) => return Fate::Missing,
                Some((Place::Unknown, true)) => is_waiting = true,
                Some((Place::Unknown, false)) | None if self.queue.len() < PATIENCE => {
                    is_waiting = true;
                }
                Some((Place::Unknown, false)) | None => return Fate::Missing,
            }
        }
        if is_waiting {
            return Fate::Waiting;
        }
        for (run, number) in runs.iter().zip(&numbers) {
            if let Some(stream) = self.streams.get_mut(&run.section.stream)
                && let Some(held) = stream.held.get_mut(number)
            {
                // A table may be there once more.
                if held.state == State::Remultiplexed && run.section.stream != TABLES {
                    return Fate::Written;
                }
                held.state = State::Used;
            }
        }
        let held = |run: &Run| {
            let at = runs.iter().position(|other| other == run)?;
            let stream = self.streams.get(&run.section.stream)?;
            stream.held.get(numbers.get(at)?)
        };
        let whole = match packet {
            Packet::Null(_) => None,
            Packet::Whole { run, .. } => held(run)
                .and_then(|held| held.content(run))
                .filter(|bytes| bytes.first() == Some(&0x47))
                .and_then(|bytes| bytes.first_chunk().copied()),
            Packet::Made(made) => {
                let first = runs.iter().find(|run| run.from == 0).and_then(held);
                let unit = first.and_then(|held| held.unit.as_ref());
                put_together(made, unit, |run| held(run)?.content(run))
            }
        };
        // A hostile layout may describe what is no packet.
        whole.map_or(Fate::Missing, Fate::Whole)
    }

    /// What stands in the place of a missing packet: its clock reference, if it has one; the
    /// announcement of a gap in the counters before the next packet of its PID; or nothing, which
    /// is a null packet in a multiplex of constant rate.
    fn replacement(&mut self, head: &Head) -> Option<[u8; PACKET]> {
        let packet = head.layout.packets.get(head.at)?;
        let (pid, counter, has_payload, clock) = match packet {
            Packet::Null(_) => return None,
            Packet::Whole { pid, counter, .. } => (*pid, *counter, true, None),
            Packet::Made(made) => {
                let clock = made.field.as_ref().and_then(|field| field.clock);
                (made.pid, made.counter, made.has_payload, clock)
            }
        };
        let next = {
            head.layout
                .packets
                .get(head.at + 1..)
                .unwrap_or_default()
                .iter()
        }
        .find(|next| next.pid() == pid && packet::counts(next));
        let is_next_missing =
            next.is_some_and(|next| matches!(self.fate(next, &mut BTreeMap::new()), Fate::Missing));
        let announces = has_payload && !is_next_missing;
        if pid != super::NULL && (announces || clock.is_some()) {
            // Without payload, the counter does not advance.
            let counter = match announces || !has_payload {
                true => counter,
                false => counter.wrapping_sub(1) & 0x0f,
            };
            return Some(without_payload(pid, counter, announces, clock));
        }
        head.layout.step.map(|_| null_packet(Null::PLAIN))
    }

    /// Lets go of the sections before those that a written layout used last. Tables stay for
    /// packets that repeat them.
    fn let_go(&mut self, head: &Head) {
        for (&number, &furthest) in &head.furthest {
            let Some(stream) = self.streams.get_mut(&number) else {
                continue;
            };
            let passed = match number {
                TABLES => {
                    let excess = stream.held.len().saturating_sub(MAX_TABLES);
                    let first = stream.held.keys().nth(excess).copied();
                    first.filter(|_| excess > 0).unwrap_or(0)
                }
                _ => furthest,
            };
            self.held -= stream.pass(passed);
        }
    }

    /// Writes all sections that wait, without a layout.
    fn remultiplex_all(&mut self, out: &mut Vec<Action>) {
        let mut stale = Vec::new();
        for (&id, stream) in &mut self.streams {
            for held in stream.held.values_mut() {
                if held.state == State::Fresh {
                    stale.push((held.arrival, id, held.payload.clone()));
                }
                let before = held.cost();
                held.state = State::Remultiplexed;
                if id != TABLES {
                    held.payload = Bytes::new();
                }
                self.held -= before - held.cost();
            }
            while stream.held.len() > MAX_REMEMBERED
                && let Some((&first, _)) = stream.held.first_key_value()
            {
                self.held -= stream.pass(first + 1);
            }
        }
        write_stale(stale, out);
    }
}

/// Learns the distance of numbers from the sections that a layout names. A receiver that joins gets
/// no section that precedes its first, and need not wait for it.
fn orient(streams: &mut BTreeMap<u16, Stream>, layout: &Layout) {
    for run in layout.packets.iter().flat_map(Packet::runs) {
        if let Some(stream) = streams.get_mut(&run.section.stream)
            && !stream.is_oriented()
        {
            stream.find(&run.section);
        }
    }
}

fn cost(layout: &Layout) -> usize {
    EACH * (1 + layout.packets.len())
}

/// In the order of arrival.
fn write_stale(mut stale: Vec<(u64, u16, Bytes)>, out: &mut Vec<Action>) {
    stale.sort_by_key(|&(arrival, ..)| arrival);
    let written = stale.into_iter();
    out.extend(written.map(|(_, stream, payload)| Action::Remultiplex(stream, payload)));
}
