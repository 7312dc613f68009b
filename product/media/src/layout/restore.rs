//! Restores packets from layouts and sections.

mod missing;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use comity_units::Span;

use super::action::{Action, Resume};
use super::carried::CarriedUnits;
use super::followers::Followers;
use super::model::{Layout, Null, Packet, Run, TABLES, hash};
use super::packet::{null_packet, put_together, without_payload};
use super::part::PesPacket;
use super::waiting::{EACH, Held, Lookup, State, Stream};
use crate::allowance::Allowances;
use crate::header::{PACKET, Unit};

/// The maximum memory of waiting sections and layouts. Beyond it, the oldest layout is written
/// without its missing sections.
const MAX_HELD: usize = 64 << 20;
/// The maximum memory and number of sections that wait while no layout does. Beyond it, they are
/// written without a layout.
const MAX_BYTES_WITHOUT: usize = 32 << 20;
const MAX_SECTIONS_WITHOUT: usize = 4_096;
/// Beyond this number of held sections, those are dropped that arrived as many sections before all
/// that begin in a written layout.
const MAX_UNNAMED: usize = MAX_SECTIONS_WITHOUT / 2;
/// How many layouts may wait after one that names sections of a stream that has had none so far.
const PATIENCE: usize = 8;
/// The number of tables kept for packets that repeat them.
const MAX_TABLES: usize = 256;
/// The number of sections remembered in a stream that were written before the first layout.
const MAX_REMEMBERED: usize = 64;
/// The number of gaps remembered in a stream.
const MAX_GAPS: usize = 1_024;

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
/// layouts are those of the source. After a relay, or at a receiver that joined late, sections have
/// other numbers, at a constant distance. The first section of a stream that a layout names gives
/// this distance, by its hash.
#[derive(Debug, Default)]
pub(crate) struct Restorer {
    is_on: bool,
    streams: BTreeMap<u16, Stream>,
    /// PES packets, by PID.
    pes: BTreeMap<u16, PesPacket>,
    carried: CarriedUnits,
    queue: VecDeque<Queued>,
    head: Option<Head>,
    latest: Option<u64>,
    /// Whether a layout is missing after the latest clock reference.
    has_gap: bool,
    /// The PIDs whose latest unit was written without a layout, until another unit begins.
    remultiplexed: BTreeSet<u16>,
    /// Whether the source has ended.
    has_ended: bool,
    held: usize,
    arrivals: u64,
    /// The latest arrival before which no written layout has a section that begins in it.
    named: u64,
    /// The arrival spacing of the packets of the latest layout, if it states it.
    spacing: Option<Span>,
    /// How many bytes of repetitions and of null packets may be written.
    allowances: Allowances,
    /// The number of packets that were omitted, because the input was too small for them.
    omitted: u64,
}

#[derive(Debug)]
struct Queued {
    layout: Layout,
    /// Its memory.
    cost: usize,
    /// Whether the layout before it is missing.
    follows_gap: bool,
}

/// The present layout, and the number of its packets that are written.
#[derive(Debug)]
struct Head {
    layout: Layout,
    cost: usize,
    at: usize,
    used: Used,
    followers: Followers,
}

/// The sections that a layout named.
#[derive(Debug, Default)]
struct Used {
    /// For each stream, the furthest one.
    furthest: BTreeMap<u16, u64>,
    /// The earliest arrival of those that begin in the layout, without tables.
    earliest: Option<u64>,
}

/// The outcome of a packet.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// The packet, or the part of it whose sections arrived.
    Here {
        bytes: [u8; PACKET],
        has_header: bool,
    },
    Missing,
    /// Its section was written before the layout arrived.
    Written,
}

impl Restorer {
    /// Whether layouts are expected, so that sections wait for them.
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

    /// The PIDs of the waiting units.
    pub(crate) fn held_pids(&self) -> BTreeSet<u16> {
        let held = self
            .streams
            .values()
            .flat_map(|stream| stream.held.values());
        held.filter(|held| held.state == State::Fresh)
            .filter_map(|held| Some(held.unit?.pid))
            .collect()
    }

    /// Makes sections wait for layouts.
    pub(crate) const fn expect(&mut self) {
        self.is_on = true;
    }

    /// Keeps a section until it is known whether there are layouts.
    pub(crate) fn keep(&mut self, arrived: &Arrived, out: &mut Vec<Action>) {
        self.hold(arrived, State::Fresh, out);
    }

    /// Writes the kept sections, without layouts.
    pub(crate) fn release(&mut self, out: &mut Vec<Action>) {
        self.remultiplex_all(out);
    }

    /// The arrival spacing of the packets of the latest layout, if it states it.
    pub(crate) const fn spacing(&self) -> Option<Span> {
        self.spacing
    }

    /// Counts bytes of sections and layouts that arrived.
    pub(crate) fn earn(&mut self, bytes: usize) {
        self.allowances.earn(bytes);
    }

    /// Spends the allowance for a null packet that no layout describes. Returns whether it may be
    /// written.
    pub(crate) const fn spend_null(&mut self) -> bool {
        let is_allowed = self.allowances.spend_null();
        self.omitted += if is_allowed { 0 } else { 1 };
        is_allowed
    }

    /// The number of packets that were omitted, because the input was too small for them.
    pub(crate) const fn omitted(&self) -> u64 {
        self.omitted
    }

    /// The number of bytes that wait.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    /// Adds a section that a layout names or will name.
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
            written: 0,
            continued: 0,
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
        if let (State::Fresh, Some(unit)) = (state, arrived.unit) {
            let name = (arrived.stream, arrived.number);
            self.carried.on_unit(unit.pid, name, &mut self.streams);
        }
    }

    /// Adds the layout with this number in its stream.
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

    /// Records that sections will not arrive.
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

    /// Writes everything that waits, without missing sections.
    pub(crate) fn finish(&mut self, out: &mut Vec<Action>) {
        self.advance(true, out);
        if self.has_ended {
            // Only a missing layout can have named the remaining sections.
            let may_be_named = |&id: &u16, stream: &mut Stream| stream.has_gap && id != TABLES;
            self.streams.retain(may_be_named);
            let held = { self.streams.values() }.flat_map(|stream| stream.held.values());
            self.held = held.map(Held::cost).sum();
        }
        self.remultiplex_all(out);
    }

    /// Restarts if the number was used before: numbers restart with each connection, and a
    /// connection delivers all of its sections before the next one does.
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
            allowances: core::mem::take(&mut self.allowances),
            omitted: self.omitted,
            ..Self::default()
        };
    }

    /// Writes everything that can be written; with `is_end`, everything.
    fn advance(&mut self, is_end: bool, out: &mut Vec<Action>) {
        let is_forced = |of: &Self| is_end || of.held > MAX_HELD;
        while let Some(mut head) = self.head.take().or_else(|| self.next(is_forced(self), out)) {
            let is_forced = is_forced(self);
            if !self.write(&mut head, is_forced, out) {
                self.head = Some(head);
                return;
            }
            self.held -= head.cost;
            self.let_go(&head);
        }
        if self.held > MAX_BYTES_WITHOUT || self.sections() > MAX_SECTIONS_WITHOUT {
            self.remultiplex_all(out);
        }
    }

    /// Begins the next layout. If a layout before it is missing, first writes the sections that it
    /// described. It waits until it is known which of the first sections of this layout have
    /// arrived.
    fn next(&mut self, is_forced: bool, out: &mut Vec<Action>) -> Option<Head> {
        let queued = self.queue.pop_front()?;
        if !self.is_settled(&queued, is_forced) {
            self.queue.push_front(queued);
            return None;
        }
        let Queued {
            layout,
            cost,
            follows_gap,
        } = queued;
        for stream in self.streams.values_mut() {
            stream.has_gap |= follows_gap;
        }
        let has_stale = self.write_stale(&layout, follows_gap, out);
        if follows_gap || has_stale {
            out.push(Action::Break);
        }
        if follows_gap {
            self.pes.clear();
            self.carried.miss_layout();
        }
        self.has_gap |= follows_gap;
        if self.has_gap
            && let Some(resume) = resume(&layout)
        {
            out.push(Action::Resume(resume));
            self.has_gap = false;
        }
        self.has_ended |= layout.is_last;
        let packets = (layout.packets.len() as u64).max(1);
        self.spacing = layout
            .lasted
            .map(|millis| Span::from_millis(millis.into()) / packets);
        Some(Head {
            layout,
            cost,
            at: 0,
            used: Used::default(),
            followers: Followers::default(),
        })
    }

    /// If a layout may be missing before this one: whether it is known, for each stream that this
    /// layout names, whether the first named section has arrived.
    fn is_settled(&mut self, queued: &Queued, is_forced: bool) -> bool {
        let mut seen = BTreeSet::from([TABLES]);
        queued.layout.packets.iter().all(|packet| {
            let mut runs = packet.runs().iter();
            let is_first = runs.any(|run| {
                let stream = self.streams.get(&run.section.stream);
                let may_have_gap = stream.is_none_or(Stream::may_have_gap);
                (queued.follows_gap || may_have_gap) && seen.insert(run.section.stream)
            });
            !is_first || self.positions(packet, is_forced).is_some()
        })
    }

    /// Writes the packets of a layout up to the first one that has to wait. Returns whether all
    /// were written.
    fn write(&mut self, head: &mut Head, is_forced: bool, out: &mut Vec<Action>) -> bool {
        while let Some(packet) = head.layout.packets.get(head.at) {
            let Some(positions) = self.positions(packet, is_forced) else {
                return false;
            };
            if !self.is_allowed(packet, &positions) {
                self.omitted += 1;
                head.at += 1;
                continue;
            }
            let mut is_mended = false;
            let fate = match self.fate(packet, &positions, &mut head.used) {
                Fate::Here { bytes, .. } if self.is_surplus(packet, &bytes) => Fate::Written,
                fate => fate,
            };
            let has_header = match fate {
                Fate::Here { bytes, has_header } => {
                    let outside = head.layout.outside.remove(&head.at);
                    out.extend(outside.map(Action::Outside));
                    out.push(Action::Packet(bytes));
                    self.on_packet(packet, &positions, &bytes);
                    has_header
                }
                fate @ (Fate::Written | Fate::Missing) => {
                    if fate == Fate::Written && out.last() != Some(&Action::Break) {
                        out.push(Action::Break);
                    }
                    let Some((replacement, mends)) = self.replacement(head, is_forced) else {
                        return false;
                    };
                    if packet.counter().is_some() {
                        self.carried.miss_packet(packet.pid());
                    }
                    is_mended = mends;
                    // If nothing replaces the packet, the bytes before it are dropped too.
                    let outside = head.layout.outside.remove(&head.at);
                    if let Some(packet) = replacement {
                        out.extend(outside.map(Action::Outside));
                        out.push(Action::Replacement(packet));
                    }
                    false
                }
            };
            if let Packet::Made(made) = packet {
                let is_here: Vec<bool> = positions.iter().map(Option::is_some).collect();
                let pes = self.pes.entry(made.pid).or_default();
                pes.pass(made, &is_here, has_header);
                if is_mended {
                    pes.mend();
                }
            }
            head.at += 1;
        }
        let rest = head.layout.outside.remove(&head.at);
        out.extend(rest.map(Action::Outside));
        true
    }

    /// Whether the packet may be written: it contains new bytes, or the allowance for repetitions
    /// suffices.
    fn is_allowed(&mut self, packet: &Packet, positions: &[Option<u64>]) -> bool {
        if matches!(packet, Packet::Null(_)) {
            return self.allowances.spend_null();
        }
        let runs = packet.runs();
        let is_new = runs.iter().zip(positions).any(|(run, position)| {
            let held = self.held_at(run, *position);
            held.is_some_and(|held| held.written < run.to as usize)
        });
        is_new || self.allowances.spend_repeat()
    }

    /// The numbers of a packet's sections, with `None` for missing ones. `None` while it is unknown
    /// whether some section will arrive.
    fn positions(&mut self, packet: &Packet, is_forced: bool) -> Option<Vec<Option<u64>>> {
        let is_late = is_forced || self.queue.len() >= PATIENCE;
        let positions = packet.runs().iter().map(|run| {
            let stream = self.streams.get_mut(&run.section.stream);
            let found = stream.map(|stream| (stream.find(&run.section), stream));
            let found = found.map(|(position, stream)| match position {
                // A table may be written again.
                Lookup::Here(number)
                    if run.section.stream != TABLES && stream.is_written(number, run) =>
                {
                    (Lookup::Missing, true)
                }
                position => (position, stream.is_oriented()),
            });
            match found {
                Some((Lookup::Here(number), _)) => Some(Some(number)),
                Some((Lookup::Missing, _)) => Some(None),
                Some((Lookup::Unknown, true)) => is_forced.then_some(None),
                Some((Lookup::Unknown, false)) | None => is_late.then_some(None),
            }
        });
        positions.collect()
    }

    fn fate(&mut self, packet: &Packet, positions: &[Option<u64>], used: &mut Used) -> Fate {
        let runs = packet.runs();
        for (run, number) in runs.iter().zip(positions) {
            let Some(number) = *number else { continue };
            let furthest = used.furthest.entry(run.section.stream).or_insert(number);
            *furthest = number.max(*furthest);
            if let Some(stream) = self.streams.get_mut(&run.section.stream)
                && let Some(held) = stream.held.get_mut(&number)
            {
                held.state = State::Used;
                if run.from == 0 && run.section.stream != TABLES {
                    let earliest = used.earliest.unwrap_or(held.arrival);
                    used.earliest = Some(earliest.min(held.arrival));
                }
            }
        }
        let held = |run: &Run| {
            let at = runs.iter().position(|other| other == run)?;
            self.held_at(run, *positions.get(at)?)
        };
        let content = |run: &Run| held(run)?.content(run);
        let written = match packet {
            Packet::Null(null) => Some((null_packet(*null), false)),
            Packet::Whole { run, .. } => content(run)
                .filter(|bytes| bytes.first() == Some(&0x47))
                .and_then(|bytes| bytes.first_chunk().copied())
                .map(|bytes| (bytes, false)),
            Packet::Made(made) if positions.iter().all(Option::is_some) => {
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
            Some((bytes, has_header)) => {
                self.on_written(runs, positions);
                Fate::Here { bytes, has_header }
            }
            None if self.has_written(runs) => Fate::Written,
            // A layout of an attacker may describe bytes that are not a packet.
            None => Fate::Missing,
        }
    }

    /// Whether a packet that is carried whole continues a unit that is already written.
    fn is_surplus(&mut self, packet: &Packet, bytes: &[u8; PACKET]) -> bool {
        let is_named = matches!(packet, Packet::Made(made) if !made.runs.is_empty());
        if is_named || bytes[1] & 0x40 != 0 {
            self.remultiplexed.remove(&packet.pid());
        }
        matches!(packet, Packet::Whole { pid, .. } if self.remultiplexed.contains(pid))
    }

    /// Follows the units of a PID through a packet that was written.
    fn on_packet(&mut self, packet: &Packet, positions: &[Option<u64>], bytes: &[u8; PACKET]) {
        let last = packet.runs().last().zip(positions.last());
        match packet {
            Packet::Null(_) => {}
            Packet::Whole { .. } => self.carried.on_carried(bytes, &mut self.streams),
            Packet::Made(made) => {
                if let Some((run, &number)) = last {
                    let stream = run.section.stream;
                    self.carried.on_described(made.pid, stream, number);
                }
            }
        }
    }

    fn on_written(&mut self, runs: &[Run], positions: &[Option<u64>]) {
        for (run, number) in runs.iter().zip(positions) {
            let stream = self.streams.get_mut(&run.section.stream);
            if let Some(held) = stream
                .zip(*number)
                .and_then(|(stream, number)| stream.held.get_mut(&number))
            {
                held.written = held.written.max(run.to as usize);
            }
        }
    }

    /// The section of a run, if it has arrived.
    fn held_at(&self, run: &Run, position: Option<u64>) -> Option<&Held> {
        self.streams.get(&run.section.stream)?.held.get(&position?)
    }

    /// Whether one of these sections was written without a layout.
    fn has_written(&mut self, runs: &[Run]) -> bool {
        runs.iter().any(|run| {
            let stream = self.streams.get_mut(&run.section.stream);
            stream.is_some_and(|stream| match stream.find(&run.section) {
                Lookup::Here(number) => stream.is_written(number, run),
                Lookup::Missing | Lookup::Unknown => false,
            })
        })
    }

    /// The packet that replaces the present, missing packet, and whether it contains a PES header.
    ///
    /// If the next packet of the PID can be written, the replacement announces the gap in the
    /// counters, and contains the PES header that the next packet needs, if any. Otherwise, it
    /// contains only the clock reference of the missing packet, if there is one. If it would be
    /// empty, it is omitted, or, in a multiplex of constant rate, replaced by a null packet. `None`
    /// while the sections of the next packet may still arrive.
    fn replacement(
        &mut self,
        head: &Head,
        is_forced: bool,
    ) -> Option<(Option<[u8; PACKET]>, bool)> {
        let Some(packet) = head.layout.packets.get(head.at) else {
            return Some((None, false));
        };
        let (pid, clock, has_payload) = (packet.pid(), packet.clock(), packet.counter().is_some());
        let counter = match packet {
            Packet::Null(_) => return Some((None, false)),
            Packet::Whole { counter, .. } => *counter,
            Packet::Made(made) => made.counter,
        };
        let (packets, at) = (&head.layout.packets, head.at);
        let next = head.followers.next_counted(packets, at);
        let positions = next.and_then(|next| self.positions(next, is_forced));
        if let (Packet::Made(made), Some(Packet::Made(next))) = (packet, next)
            && made.has_payload
            && !next.begins
        {
            let positions = positions.as_ref()?;
            let pes = self.pes.get(&pid).copied().unwrap_or_default();
            let first = positions.iter().position(Option::is_some);
            let unit = first.and_then(|first| {
                let held = self.held_at(next.runs.get(first)?, *positions.get(first)?)?;
                held.unit.as_ref()
            });
            if let Some(bytes) = unit.and_then(|unit| pes.before(made, next, first?, unit)) {
                return Some((Some(bytes), true));
            }
        }
        // A packet without payload has the counter of the missing packet, too.
        let next = head.followers.next(packets, at);
        let positions = next.and_then(|next| self.positions(next, is_forced));
        let is_next_missing = next.is_some_and(|next| !next.runs().is_empty())
            && positions.is_some_and(|positions| positions.iter().all(Option::is_none));
        let announces = has_payload && !is_next_missing;
        if pid != super::model::NULL && (announces || clock.is_some()) {
            // A packet without payload does not advance the counter.
            let counter = match announces || !has_payload {
                true => counter,
                false => counter.wrapping_sub(1) & 0x0f,
            };
            let packet = without_payload(pid, counter, announces, clock);
            return Some((Some(packet), false));
        }
        let null = head.layout.step.map(|_| null_packet(Null::PLAIN));
        Some((null, false))
    }

    /// Drops the sections before those that a written layout used last. Tables are kept for packets
    /// that repeat them.
    fn let_go(&mut self, head: &Head) {
        for (&number, &furthest) in &head.used.furthest {
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
        self.named = self.named.max(head.used.earliest.unwrap_or(0));
        if self.sections() > MAX_UNNAMED {
            self.drop_unnamed();
        }
    }

    /// Drops the sections that no layout will name, because layouts name much later ones: their
    /// packets waited too long at the sender, and were carried whole.
    fn drop_unnamed(&mut self) {
        let named = self.named;
        for (_, stream) in self.streams.iter_mut().filter(|(id, _)| **id != TABLES) {
            let is_unnamed = |held: &Held| {
                held.state == State::Fresh && held.arrival + (MAX_UNNAMED as u64) < named
            };
            let mut held = stream.held.iter().rev();
            if let Some((&last, _)) = held.find(|(_, held)| is_unnamed(held)) {
                self.held -= stream.pass(last + 1);
            }
        }
    }

    /// The number of sections that are held.
    fn sections(&self) -> usize {
        let held = self.streams.values().map(|stream| stream.held.len());
        held.sum()
    }
}

/// Finds the distance of numbers from the sections that a layout names. A receiver that joins gets
/// no section before its first one, and need not wait for it.
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
    let inside: usize = layout.packets.iter().map(Packet::memory).sum();
    EACH * (1 + layout.packets.len()) + inside + outside
}

/// Where the clock of a multiplex of constant rate continues.
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

#[cfg(test)]
mod tests;
