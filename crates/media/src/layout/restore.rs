//! Layouts and sections, to packets.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use super::model::{Layout, MAX_PACKETS, Null, Packet, Run, STEP_SHIFT, SectionRef, TABLES, hash};
use super::packet::{CLOCK_WRAP, null_packet, put_together, without_payload};
use super::part::PesPacket;
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

/// The maximum number of null packets in the place of missing layouts.
const MAX_NULLS: u64 = 4 * MAX_PACKETS as u64;

/// What to write next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A packet of the source.
    Packet([u8; PACKET]),
    /// Bytes of the source outside of packets.
    Outside(Vec<u8>),
    /// A packet in the place of one whose section is missing. If it has no payload and announces
    /// nothing, its counter is that of the packet before.
    Replacement([u8; PACKET]),
    /// A section of this stream whose layout is missing.
    Remultiplex(u16, Bytes),
    /// Packets of the source are left out here, and the counters jump.
    Break,
    /// A layout is missing before this clock reference, in a multiplex of constant rate.
    Resume(Resume),
}

/// The first clock reference behind a missing layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resume {
    pub(crate) pid: u16,
    /// In ticks of 27 MHz.
    pub(crate) clock: u64,
    /// How many packets come before it.
    before: u64,
    step: u32,
    /// The counter of the first packet with payload of each PID.
    pub(crate) counters: BTreeMap<u16, u8>,
}

impl Resume {
    /// How many null packets restore the distance from a clock reference of the same PID, whose
    /// packet was the last but `since` - 1; 0 if that is no distance of missing packets.
    pub(crate) fn nulls(&self, clock: u64, since: u64) -> u64 {
        let ticks = u128::from((self.clock + CLOCK_WRAP - clock) % CLOCK_WRAP);
        let step = u128::from(self.step.max(1));
        let distance = ((ticks << STEP_SHIFT) + step / 2) / step;
        let nulls = distance.saturating_sub(u128::from(since + self.before));
        let nulls = u64::try_from(nulls).unwrap_or(u64::MAX);
        if nulls <= MAX_NULLS { nulls } else { 0 }
    }
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
    /// By PID.
    pes: BTreeMap<u16, PesPacket>,
    queue: VecDeque<Queued>,
    head: Option<Head>,
    latest: Option<u64>,
    /// Whether a layout is missing behind the latest clock reference.
    has_gap: bool,
    /// Whether the source has ended.
    has_ended: bool,
    held: usize,
    arrivals: u64,
}

#[derive(Debug)]
struct Queued {
    layout: Layout,
    /// What it takes of the memory.
    cost: usize,
    /// Whether one before it is missing.
    follows_gap: bool,
}

/// The layout at hand, and how far it is written.
#[derive(Debug)]
struct Head {
    layout: Layout,
    cost: usize,
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
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// The packet, or the part of it whose sections arrived.
    Here {
        bytes: [u8; PACKET],
        has_header: bool,
    },
    Missing,
    /// Its section was written before its layout came.
    Written,
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

    /// Whether this section was written without a layout.
    fn is_written(&self, number: u64) -> bool {
        let held = self.held.get(&number);
        held.is_some_and(|held| held.state == State::Remultiplexed)
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
        let cost = cost(&layout);
        self.held += cost;
        orient(&mut self.streams, &layout);
        self.queue.push_back(Queued {
            layout,
            cost,
            follows_gap,
        });
        self.advance(false, out);
    }

    /// Learns that sections will not come.
    pub(crate) fn miss(&mut self, stream: u16, first: u64, count: u64, out: &mut Vec<Action>) {
        if count == 0 {
            return;
        }
        if stream != super::model::LAYOUTS {
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
            self.held -= head.cost;
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
            cost,
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
                    // One that begins in a missing layout comes whole, too.
                    first.insert(stream, number + u64::from(run.from > 0));
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
            self.pes.clear();
            out.push(Action::Break);
        }
        self.has_gap |= follows_gap;
        if self.has_gap
            && let Some(resume) = resume(&layout)
        {
            out.push(Action::Resume(resume));
            self.has_gap = false;
        }
        self.has_ended |= layout.is_last;
        Some(Head {
            layout,
            cost,
            at: 0,
            furthest: BTreeMap::new(),
        })
    }

    /// Writes the packets of a layout up to the first that has to wait; returns whether none has.
    fn write(&mut self, head: &mut Head, is_forced: bool, out: &mut Vec<Action>) -> bool {
        while let Some(packet) = head.layout.packets.get(head.at) {
            let Some(places) = self.places(packet, is_forced) else {
                return false;
            };
            let has_header = match self.fate(packet, &places, &mut head.furthest) {
                Fate::Here { bytes, has_header } => {
                    let outside = head.layout.outside.remove(&head.at);
                    out.extend(outside.map(Action::Outside));
                    out.push(Action::Packet(bytes));
                    has_header
                }
                fate @ (Fate::Written | Fate::Missing) => {
                    if fate == Fate::Written && out.last() != Some(&Action::Break) {
                        out.push(Action::Break);
                    }
                    let Some(replacement) = self.replacement(head, is_forced) else {
                        return false;
                    };
                    // Where nothing replaces the packet, nothing belongs to it either.
                    let outside = head.layout.outside.remove(&head.at);
                    if let Some(packet) = replacement {
                        out.extend(outside.map(Action::Outside));
                        out.push(Action::Replacement(packet));
                    }
                    false
                }
            };
            if let Packet::Made(made) = packet {
                let is_here: Vec<bool> = places.iter().map(Option::is_some).collect();
                let pes = self.pes.entry(made.pid).or_default();
                pes.pass(made, &is_here, has_header);
            }
            head.at += 1;
        }
        let rest = head.layout.outside.remove(&head.at);
        out.extend(rest.map(Action::Outside));
        true
    }

    /// Where the sections of a packet are, `None` for those that are missing; `None` while that is
    /// unknown of some.
    fn places(&mut self, packet: &Packet, is_forced: bool) -> Option<Vec<Option<u64>>> {
        let is_late = is_forced || self.queue.len() >= PATIENCE;
        let places = packet.runs().iter().map(|run| {
            let stream = self.streams.get_mut(&run.section.stream);
            let found = stream.map(|stream| (stream.find(&run.section), stream));
            let found = found.map(|(place, stream)| match place {
                // A table may be there once more.
                Place::Here(number)
                    if run.section.stream != TABLES && stream.is_written(number) =>
                {
                    (Place::Missing, true)
                }
                place => (place, stream.is_oriented()),
            });
            match found {
                Some((Place::Here(number), _)) => Some(Some(number)),
                Some((Place::Missing, _)) => Some(None),
                Some((Place::Unknown, true)) => is_forced.then_some(None),
                Some((Place::Unknown, false)) | None => is_late.then_some(None),
            }
        });
        places.collect()
    }

    fn fate(
        &mut self,
        packet: &Packet,
        places: &[Option<u64>],
        furthest: &mut BTreeMap<u16, u64>,
    ) -> Fate {
        let runs = packet.runs();
        for (run, number) in runs.iter().zip(places) {
            let Some(number) = *number else { continue };
            let furthest = furthest.entry(run.section.stream).or_insert(number);
            *furthest = number.max(*furthest);
            if let Some(stream) = self.streams.get_mut(&run.section.stream)
                && let Some(held) = stream.held.get_mut(&number)
            {
                held.state = State::Used;
            }
        }
        let held = |run: &Run| {
            let at = runs.iter().position(|other| other == run)?;
            self.held_at(run, *places.get(at)?)
        };
        let content = |run: &Run| held(run)?.content(run);
        let written = match packet {
            Packet::Null(null) => Some((null_packet(*null), false)),
            Packet::Whole { run, .. } => content(run)
                .filter(|bytes| bytes.first() == Some(&0x47))
                .and_then(|bytes| bytes.first_chunk().copied())
                .map(|bytes| (bytes, false)),
            Packet::Made(made) if places.iter().all(Option::is_some) => {
                let first = runs.iter().find(|run| run.from == 0).and_then(held);
                let unit = first.and_then(|held| held.unit.as_ref());
                put_together(made, unit, content).map(|bytes| (bytes, made.begins))
            }
            Packet::Made(made) => {
                let pes = self.pes.get(&made.pid).copied().unwrap_or_default();
                pes.part(made, |run| held(run)?.unit.as_ref(), content)
            }
        };
        match written {
            Some((bytes, has_header)) => Fate::Here { bytes, has_header },
            None if self.has_written(runs) => Fate::Written,
            // A hostile layout may describe what is no packet.
            None => Fate::Missing,
        }
    }

    /// The section of a run, in its place.
    fn held_at(&self, run: &Run, place: Option<u64>) -> Option<&Held> {
        self.streams.get(&run.section.stream)?.held.get(&place?)
    }

    /// Whether one of these sections was written without a layout.
    fn has_written(&mut self, runs: &[Run]) -> bool {
        runs.iter().any(|run| {
            let stream = self.streams.get_mut(&run.section.stream);
            stream.is_some_and(|stream| match stream.find(&run.section) {
                Place::Here(number) => stream.is_written(number),
                Place::Missing | Place::Unknown => false,
            })
        })
    }

    /// What stands in the place of the missing packet at hand.
    ///
    /// The last one before another packet of its PID announces the gap in the counters, and has
    /// the PES header that this other one needs. One before it has its clock reference, or is
    /// nothing: a null packet in a multiplex of constant rate. `None` while the sections of the
    /// other one may still come.
    fn replacement(&mut self, head: &Head, is_forced: bool) -> Option<Option<[u8; PACKET]>> {
        let Some(packet) = head.layout.packets.get(head.at) else {
            return Some(None);
        };
        let (pid, clock, has_payload) = (packet.pid(), packet.clock(), packet.counter().is_some());
        let counter = match packet {
            Packet::Null(_) => return Some(None),
            Packet::Whole { counter, .. } => *counter,
            Packet::Made(made) => made.counter,
        };
        let behind = head.layout.packets.get(head.at + 1..).unwrap_or_default();
        let next = { behind.iter() }.find(|next| next.pid() == pid && next.counter().is_some());
        let places = next.and_then(|next| self.places(next, is_forced));
        if let (Packet::Made(made), Some(Packet::Made(next))) = (packet, next)
            && made.has_payload
            && !next.begins
        {
            let places = places.as_ref()?;
            let pes = self.pes.get(&pid).copied().unwrap_or_default();
            let first = places.iter().position(Option::is_some);
            let unit = first.and_then(|first| {
                let held = self.held_at(next.runs.get(first)?, *places.get(first)?)?;
                held.unit.as_ref()
            });
            if let Some(bytes) = unit.and_then(|unit| pes.before(made, next, first?, unit)) {
                self.pes.entry(pid).or_default().mend();
                return Some(Some(bytes));
            }
        }
        // One without payload has the counter of the missing one, too.
        let next = behind.iter().find(|next| next.pid() == pid);
        let places = next.and_then(|next| self.places(next, is_forced));
        let is_next_missing = next.is_some_and(|next| !next.runs().is_empty())
            && places.is_some_and(|places| places.iter().all(Option::is_none));
        let announces = has_payload && !is_next_missing;
        if pid != super::model::NULL && (announces || clock.is_some()) {
            // Without payload, the counter does not advance.
            let counter = match announces || !has_payload {
                true => counter,
                false => counter.wrapping_sub(1) & 0x0f,
            };
            return Some(Some(without_payload(pid, counter, announces, clock)));
        }
        Some(head.layout.step.map(|_| null_packet(Null::PLAIN)))
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
    let outside: usize = layout
        .outside
        .values()
        .map(|bytes| EACH + bytes.len())
        .sum();
    EACH * (1 + layout.packets.len()) + outside
}

/// Where the clock of a multiplex of constant rate goes on.
fn resume(layout: &Layout) -> Option<Resume> {
    let step = layout.step?;
    let mut clocks = (0..).zip(&layout.packets);
    let (before, pid, clock) =
        clocks.find_map(|(before, packet)| Some((before, packet.pid(), packet.clock()?)))?;
    let mut counters = BTreeMap::new();
    for packet in &layout.packets {
        if let Some(counter) = packet.counter() {
            counters.entry(packet.pid()).or_insert(counter);
        }
    }
    Some(Resume {
        pid,
        clock,
        before,
        step,
        counters,
    })
}

/// In the order of arrival.
fn write_stale(mut stale: Vec<(u64, u16, Bytes)>, out: &mut Vec<Action>) {
    stale.sort_by_key(|&(arrival, ..)| arrival);
    let written = stale.into_iter();
    out.extend(written.map(|(_, stream, payload)| Action::Remultiplex(stream, payload)));
}
