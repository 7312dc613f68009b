//! The sections of all streams at the receiver: reassembly, deadlines, delivery and gaps.

use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use comity_units::Time;

use super::assembly::{Assembly, Runs};
use super::spares::Spares;
use super::{Config, Counters, Delivery, Gap, GapReason, Violation};
use crate::timeline::clock::ClockMap;
use crate::timeline::section::{Deliver, Meta, Payload, Reason, SectionId, StreamId};

/// How many runs of gaps each stream remembers, to tell late bytes from duplicates.
const REMEMBERED_GAPS: usize = 256;

/// What [`Inbox::memory`] counts for a record, for a piece of a section and for a run of numbers,
/// in bytes: the largest sizes that the tests measured, rounded up.
const RECORD: u64 = 512;
const PIECE: u64 = 16;
const RUN: u64 = 48;
/// The part of the limit of memory that may be memory of delivered sections, kept for later ones.
const SPARE_PART: u64 = 8;

/// The receiver's half of the timeline.
///
/// [`on_chunk`](Self::on_chunk) takes pieces of sections in any order, with duplicates and
/// overlaps. [`on_floor`](Self::on_floor), [`on_drop`](Self::on_drop) and [`on_end`](Self::on_end)
/// tell which sections will not come. The caller processes the frames of one packet in the order
/// floor, drop, chunk. [`poll`](Self::poll) gives every section of a stream exactly once; call it
/// after every event and at [`next_wakeup`](Self::next_wakeup).
///
/// * `deliver = early`: in order, once a section is complete and all before it are settled. At its
///   deadline a section is handed out in any case, even if an earlier one with a later deadline is
///   not settled.
/// * `deliver = paced`: each section at its deadline on the receiver's clock, whole or not. A
///   section without a deadline is handed out as with `early`. The whole ones among the sections
///   that it needs go before it, whatever their deadlines. Without enforced deadlines, an
///   incomplete section holds up the later ones.
///
/// A section that was never seen is known from a higher number. Its deadline is unknown. The
/// deadline of the next section that was seen bounds it, so it becomes a gap when that section is
/// handed out.
///
/// A [`Violation`] is a reason to close the connection. The limits still hold after it, and the
/// counters still sum up.
#[derive(Debug)]
pub struct Inbox<P: Payload> {
    config: Config,
    streams: BTreeMap<StreamId, Stream<P>>,
    /// Unsettled sections by the deadline that they wait for, on the sender's clock.
    due: BTreeSet<(Time, StreamId, u64)>,
    /// Streams whose first sections may have become settled.
    changed: BTreeSet<StreamId>,
    ready: VecDeque<Ready<P>>,
    spares: Spares<P>,
    /// Bytes reserved for sections that were not handed out yet.
    reserved: u64,
    /// The lengths of all sections that were admitted, and of settled sections, once for each late
    /// piece.
    admitted: u64,
    /// Slots of all streams.
    records: usize,
    /// Pieces of all sections that are not settled.
    pieces: usize,
    /// The most memory that it may take at present.
    limit: u64,
    /// Whether something found no room because of `limit`.
    was_short: bool,
    counters: Counters,
    /// Complete sections that are not settled.
    ahead: Complete,
    /// No packet comes any more, and until this time ready sections are still handed out at their
    /// deadlines.
    plays_out_until: Option<Time>,
}

/// How many sections are complete.
#[derive(Debug, Default)]
struct Complete {
    on_time: u64,
    late: u64,
}

impl Complete {
    const fn count(&mut self, is_late: bool) -> &mut u64 {
        match is_late {
            false => &mut self.on_time,
            true => &mut self.late,
        }
    }
}

#[derive(Debug)]
struct Stream<P: Payload> {
    /// All below are settled.
    next: u64,
    /// No section from here on is known.
    known: u64,
    /// All below are obsolete for the sender.
    floor: u64,
    end: Option<u64>,
    slots: BTreeMap<u64, Slot<P>>,
    /// Settled sections from `next` on.
    settled: Runs,
    /// The latest gaps.
    gaps: Runs,
}

#[derive(Debug)]
enum Slot<P: Payload> {
    /// Some of it has arrived.
    Open(Assembly<P>),
    /// Nothing of it has arrived, and the sender abandoned it.
    Dropped(Reason),
}

/// What waits to be polled. Sections without any bytes are kept as runs: a peer can skip many at
/// once. No run is empty.
#[derive(Debug)]
enum Ready<P> {
    Delivery(Delivery<P>),
    Unseen(StreamId, Range<u64>, GapReason),
}

impl<P: Payload> Default for Stream<P> {
    fn default() -> Self {
        Self {
            next: 0,
            known: 0,
            floor: 0,
            end: None,
            slots: BTreeMap::new(),
            settled: Runs::default(),
            gaps: Runs::default(),
        }
    }
}

impl<P: Payload> Stream<P> {
    fn is_settled(&self, section: u64) -> bool {
        section < self.next || self.settled.contains(section)
    }

    /// What is known of a section that is whole and not settled.
    fn complete(&self, section: u64) -> Option<&Meta> {
        match self.slots.get(&section)? {
            Slot::Open(assembly) if assembly.is_complete() => Some(&assembly.meta),
            _ => None,
        }
    }

    /// Sections that are not settled, and that the sender abandoned before they were complete.
    fn abandoned(&self) -> u64 {
        let below = self.floor.saturating_sub(self.next) - self.settled.below(self.floor);
        self.slots.iter().fold(below, |sum, (&number, slot)| {
            let is_below = number < self.floor;
            match slot {
                Slot::Open(assembly) if assembly.is_complete() => sum - u64::from(is_below),
                Slot::Open(assembly) if assembly.dropped.is_none() => sum,
                _ => sum + u64::from(!is_below),
            }
        })
    }

    fn runs(&self) -> usize {
        self.settled.len() + self.gaps.len()
    }

    /// The first section that may not be held yet.
    fn limit(&self, config: &Config) -> u64 {
        self.next
            .max(self.floor)
            .saturating_add(config.max_sections)
    }
}

impl<P: Payload> Inbox<P> {
    /// An inbox without sections.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            streams: BTreeMap::new(),
            due: BTreeSet::new(),
            changed: BTreeSet::new(),
            ready: VecDeque::new(),
            spares: Spares::default(),
            reserved: 0,
            admitted: 0,
            records: 0,
            pieces: 0,
            limit: u64::MAX,
            was_short: false,
            counters: Counters::default(),
            ahead: Complete::default(),
            plays_out_until: None,
        }
    }

    /// A piece of a section has arrived: `length` bytes from `offset` on. `bytes` is ignored if
    /// payloads are elided.
    ///
    /// # Errors
    /// When the piece contradicts itself or what came before, or goes beyond the limits of
    /// [`Config`].
    pub fn on_chunk(
        &mut self,
        now: Time,
        clock: &ClockMap,
        meta: &Meta,
        offset: u32,
        length: u32,
        bytes: &[u8],
    ) -> Result<(), Violation> {
        let Meta {
            stream, section, ..
        } = *meta;
        let end = offset.saturating_add(length);
        let is_elsewhere = length == 0 || end - offset != length || end > meta.length;
        if is_elsewhere || !P::ELIDED && bytes.len() != length as usize {
            return Err(Violation::Range {
                stream,
                section,
                offset,
                end,
                length: meta.length,
            });
        }
        if meta.needs.is_some_and(|needs| needs >= section) {
            return Err(Violation::NeedsLater { stream, section });
        }
        let config = self.config;
        let free = config.max_bytes.saturating_sub(self.reserved);
        let has_record = self.records < config.max_records;
        let memory = self.memory_left();
        let state = self.stream(stream)?;
        let number = section.0;
        check_end(state, stream, number)?;
        if state.is_settled(number) {
            let was_gap = state.gaps.contains(number);
            self.admitted += u64::from(meta.length);
            let counters = &mut self.counters;
            counters.received += u64::from(length);
            *(if was_gap {
                &mut counters.late
            } else {
                &mut counters.duplicate
            }) += u64::from(length);
            return Ok(());
        }
        check_limit(state, &config, stream, section)?;
        let is_new = match state.slots.get(&number) {
            Some(Slot::Open(assembly)) if !assembly.agrees(meta) => {
                return Err(Violation::Contradiction { stream, section });
            }
            Some(Slot::Open(assembly)) => {
                let pieces = assembly.have.fragments_with(offset..end);
                if pieces > assembly.have.len() && memory < PIECE {
                    return Err(self.out_of_memory());
                }
                if pieces > config.max_fragments {
                    return Err(Violation::TooManyFragments {
                        stream,
                        section,
                        limit: config.max_fragments,
                    });
                }
                false
            }
            None if !has_record => {
                return Err(Violation::TooManyRecords {
                    limit: config.max_records,
                });
            }
            Some(Slot::Dropped(_)) | None => true,
        };
        if is_new && u64::from(meta.length) > free {
            return Err(Violation::TooManyBytes {
                limit: config.max_bytes,
            });
        }
        if is_new && u64::from(meta.length) + RECORD + PIECE > memory {
            return Err(self.out_of_memory());
        }
        if is_new {
            let latest = clock.to_sender(now + config.max_latency);
            let buffer = self.spares.buffer(meta.length);
            let state = self.stream(stream)?;
            let (dropped, is_first) = match state.slots.remove(&number) {
                Some(Slot::Dropped(reason)) => (Some(reason), false),
                _ => (None, true),
            };
            let assembly = Assembly::new(*meta, latest, buffer, dropped);
            let deadline = assembly.meta.deadline;
            state.slots.insert(number, Slot::Open(assembly));
            state.known = state.known.max(number + 1);
            self.records += usize::from(is_first);
            self.reserved += u64::from(meta.length);
            self.admitted += u64::from(meta.length);
            let waits = config.enforce_deadlines || config.deliver == Deliver::Paced;
            if waits && !deadline.is_never() {
                self.due.insert((deadline, stream, number));
            }
        }
        let Some(Slot::Open(assembly)) = self
            .streams
            .get_mut(&stream)
            .and_then(|state| state.slots.get_mut(&number))
        else {
            return Ok(());
        };
        let was_complete = assembly.is_complete();
        let pieces = assembly.have.len();
        let new = assembly.place(offset..end, bytes);
        self.pieces = self.pieces + assembly.have.len() - pieces;
        self.counters.received += u64::from(length);
        self.counters.held += u64::from(new);
        self.counters.duplicate += u64::from(length - new);
        if assembly.is_complete() && !was_complete {
            let deadline = clock.to_local(assembly.meta.deadline);
            let is_late = now > deadline;
            assembly.completed = Some((now, is_late));
            *self.ahead.count(is_late) += 1;
            if !meta.deadline.is_never() {
                self.counters.slack.record(deadline, now);
            }
        }
        self.changed.insert(stream);
        Ok(())
    }

    /// A piece of a section arrived and was refused. The section is known from now on: it becomes a
    /// gap unless its pieces are accepted later.
    ///
    /// # Errors
    /// When the section is beyond the end of the stream or too far ahead.
    pub fn on_refused(&mut self, stream: StreamId, section: SectionId) -> Result<(), Violation> {
        let config = self.config;
        let state = self.stream(stream)?;
        check_end(state, stream, section.0)?;
        check_limit(state, &config, stream, section)?;
        state.known = state.known.max(section.0 + 1);
        Ok(())
    }

    /// All sections of the stream below `floor` are obsolete for the sender.
    ///
    /// It may lie any number of sections ahead: those without any bytes are one gap.
    ///
    /// # Errors
    /// When the floor is beyond the end of the stream, or the stream is one too many.
    pub fn on_floor(&mut self, stream: StreamId, floor: SectionId) -> Result<(), Violation> {
        let state = self.stream(stream)?;
        if let Some(end) = state.end
            && floor.0 > end
        {
            let sections = end;
            return Err(Violation::End { stream, sections });
        }
        if floor.0 > state.floor {
            state.floor = floor.0;
            state.known = state.known.max(floor.0);
            self.changed.insert(stream);
        }
        Ok(())
    }

    /// The sender will not send the rest of a section. Of one that is too far ahead to be held the
    /// floor says so later.
    ///
    /// # Errors
    /// When the section is beyond the end of the stream, or there are too many records.
    pub fn on_drop(
        &mut self,
        stream: StreamId,
        section: SectionId,
        reason: Reason,
    ) -> Result<(), Violation> {
        let config = self.config;
        let has_record = self.records < config.max_records;
        let memory = self.memory_left();
        let state = self.stream(stream)?;
        let number = section.0;
        check_end(state, stream, number)?;
        if state.is_settled(number) || number >= state.limit(&config) {
            return Ok(());
        }
        match state.slots.get_mut(&number) {
            Some(Slot::Open(assembly)) => assembly.dropped = Some(reason),
            Some(Slot::Dropped(_)) => {}
            None if !has_record => {
                return Err(Violation::TooManyRecords {
                    limit: config.max_records,
                });
            }
            None if memory < RECORD => return Err(self.out_of_memory()),
            None => {
                state.known = state.known.max(number + 1);
                state.slots.insert(number, Slot::Dropped(reason));
                self.records += 1;
            }
        }
        self.changed.insert(stream);
        Ok(())
    }

    /// The stream has this many sections in all.
    ///
    /// # Errors
    /// When it has more already, or was said to have another number.
    pub fn on_end(&mut self, stream: StreamId, sections: u64) -> Result<(), Violation> {
        let state = self.stream(stream)?;
        if state.known > sections || state.end.is_some_and(|end| end != sections) {
            return Err(Violation::End { stream, sections });
        }
        state.end = Some(sections);
        state.known = sections;
        self.changed.insert(stream);
        Ok(())
    }

    /// The connection has ended. Every known section is settled, as a gap if it is not complete,
    /// and ready at once.
    pub fn close(&mut self) {
        self.plays_out_until = None;
        // By deadline, across the streams. An unknown section goes with the one before it in its
        // stream.
        let mut open = Vec::new();
        for (&stream, state) in &self.streams {
            let (mut begin, mut latest) = (state.next, Time::ZERO);
            for (&number, slot) in state.slots.range(state.next..) {
                if let Slot::Open(assembly) = slot {
                    open.push((latest, stream, begin..number));
                    latest = latest.max(assembly.meta.deadline);
                    begin = number;
                }
            }
            open.push((latest, stream, begin..state.known));
        }
        open.sort_by_key(|&(latest, ..)| latest);
        for (_, stream, sections) in open {
            self.settle(stream, sections, GapReason::Closed);
        }
    }

    /// As [`close`](Self::close), but with paced delivery each section is still handed out at its
    /// deadline, or at the local time `until` if that is earlier.
    pub fn play_out(&mut self, until: Time) {
        self.close();
        self.plays_out_until = (self.config.deliver == Deliver::Paced).then_some(until);
    }

    /// As [`close`](Self::close), but every section that was not handed out becomes a gap without
    /// any bytes: its memory is free at once.
    pub fn discard(&mut self) {
        self.close();
        let closed = GapReason::Closed;
        for ready in core::mem::take(&mut self.ready) {
            let (stream, sections, reason) = match ready {
                Ready::Unseen(stream, sections, reason) => (stream, sections, reason),
                Ready::Delivery(Delivery::Gap(gap)) => {
                    let sections = gap.section.0..gap.section.0 + gap.count;
                    (gap.stream, sections, gap.reason)
                }
                Ready::Delivery(Delivery::Section(section)) => {
                    let Meta { stream, length, .. } = section.meta;
                    let number = section.meta.section.0;
                    self.counters.delivered -= u64::from(length);
                    self.counters.partial += u64::from(length);
                    *match section.is_late {
                        false => &mut self.counters.on_time,
                        true => &mut self.counters.complete_late,
                    } -= 1;
                    self.counters.gaps.add(closed, 1);
                    (stream, number..number + 1, closed)
                }
            };
            push_unseen(&mut self.ready, stream, sections, reason);
        }
        self.reserved = 0;
        self.spares = Spares::default();
    }

    /// Whether everything was handed out of what is ready or waits to be run out.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Whether what is ready waits for its deadline.
    pub fn is_playing_out(&self) -> bool {
        self.plays_out_until.is_some() && !self.ready.is_empty()
    }

    /// The local time that the first of what is ready waits for.
    fn plays_at(&self, clock: &ClockMap) -> Option<Time> {
        let until = self.plays_out_until?;
        match self.ready.front()? {
            Ready::Delivery(Delivery::Section(section)) if !section.meta.deadline.is_never() => {
                Some(clock.to_local(section.meta.deadline).min(until))
            }
            _ => None,
        }
    }

    /// The next section or gap; poll until there is none.
    pub fn poll(&mut self, now: Time, clock: &ClockMap) -> Option<Delivery<P>> {
        while self.ready.is_empty() && self.advance(now, clock) {}
        if self.plays_at(clock).is_some_and(|at| at > now) {
            return None;
        }
        let delivery = match self.ready.pop_front()? {
            Ready::Delivery(delivery) => delivery,
            Ready::Unseen(stream, sections, reason) => Delivery::Gap(Gap {
                stream,
                section: SectionId(sections.start),
                count: sections.end - sections.start,
                reason,
                partial: None,
            }),
        };
        let length = match &delivery {
            Delivery::Section(received) => received.meta.length,
            Delivery::Gap(gap) => gap
                .partial
                .as_ref()
                .map_or(0, |partial| partial.meta.length),
        };
        self.reserved -= u64::from(length);
        Some(delivery)
    }

    /// When [`poll`](Self::poll) may next give something, even if no packet arrives.
    pub fn next_wakeup(&self, clock: &ClockMap) -> Time {
        if let Some(at) = self.plays_at(clock) {
            return at;
        }
        if !self.ready.is_empty() || !self.changed.is_empty() {
            return Time::ZERO;
        }
        self.due
            .first()
            .map_or(Time::MAX, |&(deadline, _, _)| clock.to_local(deadline))
    }

    /// Whether the stream has ended and all of it was handed out.
    pub fn is_finished(&self, stream: StreamId) -> bool {
        let waits = self.ready.iter().any(|ready| match ready {
            Ready::Delivery(Delivery::Section(received)) => received.meta.stream == stream,
            Ready::Delivery(Delivery::Gap(gap)) => gap.stream == stream,
            Ready::Unseen(unseen, _, _) => *unseen == stream,
        });
        let state = self.streams.get(&stream);
        !waits && state.is_some_and(|state| state.end == Some(state.next))
    }

    /// Bytes of the buffer that no section has reserved, as far as the memory is there: the credit
    /// of the peer.
    pub fn free_bytes(&self) -> u64 {
        let free = self.config.max_bytes.saturating_sub(self.reserved);
        free.min(self.memory_left())
    }

    /// The memory that it takes, in bytes: an upper bound.
    pub fn memory(&self) -> u64 {
        let records = self.records + self.ready.len();
        let streams = self.streams.values();
        let runs: usize = streams.map(|state| state.runs()).sum();
        self.reserved
            + self.spares.bytes()
            + records as u64 * RECORD
            + self.pieces as u64 * PIECE
            + runs as u64 * RUN
    }

    /// Sets the most memory that it may take from now on. What it holds stays, and whatever finds
    /// no room is refused as by a full buffer.
    pub fn set_memory_limit(&mut self, limit: u64) {
        self.limit = limit;
        self.spares.limit(limit / SPARE_PART);
    }

    /// Whether something was refused because of the limit of memory since the last call.
    pub const fn take_shortage(&mut self) -> bool {
        core::mem::replace(&mut self.was_short, false)
    }

    fn memory_left(&self) -> u64 {
        match self.limit {
            u64::MAX => u64::MAX,
            limit => limit.saturating_sub(self.memory()),
        }
    }

    fn out_of_memory(&mut self) -> Violation {
        self.was_short = true;
        Violation::TooManyBytes {
            limit: self.config.max_bytes.min(self.limit),
        }
    }

    /// The most that the peer may have counted against its credit since the beginning: the lengths
    /// of the sections that began to arrive. A settled section counts again with each new piece,
    /// because the peer may not have counted it before.
    pub const fn admitted(&self) -> u64 {
        self.admitted
    }

    /// The first section of the stream that may not be sent yet.
    pub fn section_limit(&self, stream: StreamId) -> SectionId {
        let state = self.streams.get(&stream);
        SectionId(state.map_or(self.config.max_sections, |state| state.limit(&self.config)))
    }

    /// Sections that were complete by their deadline, and those that were complete later, whether
    /// they are settled or not.
    pub const fn complete(&self) -> (u64, u64) {
        (
            self.counters.on_time + self.ahead.on_time,
            self.counters.complete_late + self.ahead.late,
        )
    }

    /// Sections that are gaps, whether they are settled or not.
    pub fn gaps(&self) -> u64 {
        let abandoned: u64 = self.streams.values().map(Stream::abandoned).sum();
        self.counters.gaps.sum() + abandoned
    }

    /// Whether the sender has ended all known streams, and there is one.
    pub fn has_ended(&self) -> bool {
        let mut ends = self.streams.values().map(|state| state.end);
        !self.streams.is_empty() && ends.all(|end| end.is_some())
    }

    /// What became of everything.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    fn stream(&mut self, stream: StreamId) -> Result<&mut Stream<P>, Violation> {
        let limit = self.config.max_streams;
        let is_full = self.streams.len() >= limit;
        match self.streams.entry(stream) {
            Entry::Vacant(_) if is_full => Err(Violation::TooManyStreams { stream, limit }),
            entry => Ok(entry.or_default()),
        }
    }

    /// Makes at least one section ready, or finds that none can be now.
    fn advance(&mut self, now: Time, clock: &ClockMap) -> bool {
        if let Some(stream) = self.changed.pop_first() {
            self.settle_first(stream);
            return true;
        }
        match self.due.first() {
            Some(&(deadline, stream, number)) if clock.to_local(deadline) <= now => {
                self.due.pop_first();
                self.on_due(stream, number);
                true
            }
            _ => false,
        }
    }

    /// The deadline of a section has come.
    fn on_due(&mut self, stream: StreamId, number: u64) {
        let enforce = self.config.enforce_deadlines;
        let Some(state) = self.streams.get_mut(&stream) else {
            return;
        };
        if let Some(Slot::Open(assembly)) = state.slots.get_mut(&number)
            && !enforce
        {
            assembly.is_overdue = true;
            self.changed.insert(stream);
            return;
        }
        // A section that it needs is of no use after it, even if that is due later.
        let mut chain = vec![number];
        let mut at = number;
        while let Some(needed) = state.complete(at).and_then(|meta| meta.needs)
            && state.complete(needed.0).is_some()
        {
            at = needed.0;
            chain.push(at);
        }
        for number in chain.into_iter().rev() {
            self.settle_up_to(stream, number);
        }
        self.changed.insert(stream);
    }

    /// Settles a section and the sections before it, back to the last one that began to arrive.
    fn settle_up_to(&mut self, stream: StreamId, number: u64) {
        let Some(state) = self.streams.get(&stream) else {
            return;
        };
        let last_seen = state
            .slots
            .range(..number)
            .rev()
            .find(|(_, slot)| matches!(slot, Slot::Open(_)))
            .map_or(0, |(&seen, _)| seen + 1);
        let last_settled = state.settled.last_end(number).unwrap_or(0);
        let first = state.next.max(last_seen).max(last_settled);
        self.settle(stream, first..number + 1, GapReason::Overdue);
    }

    /// Settles what can be settled in order without waiting for a deadline.
    fn settle_first(&mut self, stream: StreamId) {
        let paced = self.config.deliver == Deliver::Paced;
        while let Some(state) = self.streams.get(&stream)
            && state.next < state.known
        {
            let next = state.next;
            let (until, can_go) = match state.slots.get(&next) {
                Some(Slot::Open(assembly)) => {
                    let is_decided =
                        assembly.is_complete() || assembly.dropped.is_some() || next < state.floor;
                    let waits = paced && !assembly.meta.deadline.is_never() && !assembly.is_overdue;
                    (next + 1, is_decided && !waits)
                }
                Some(Slot::Dropped(_)) => (next + 1, true),
                None => {
                    let seen = state.slots.range(next..).next().map(|(&seen, _)| seen);
                    let settled = state.settled.next_start(next);
                    let until = [seen, settled].into_iter().flatten().min();
                    let until = until.unwrap_or(u64::MAX).min(state.floor);
                    (until, next < state.floor)
                }
            };
            if !can_go {
                break;
            }
            self.settle(stream, next..until, GapReason::Obsolete);
        }
        if paced && !self.config.enforce_deadlines {
            self.settle_overdue(stream);
        }
    }

    /// Without enforced deadlines, settles sections whose deadlines have come and that nothing more
    /// is expected of. An earlier section that is not settled holds them up, unless its deadline is
    /// later.
    fn settle_overdue(&mut self, stream: StreamId) {
        let Some(state) = self.streams.get(&stream) else {
            return;
        };
        let (mut expected, mut earliest) = (state.next, Time::MAX);
        let mut ready = Vec::new();
        for (&number, slot) in state.slots.range(state.next..) {
            let settled = state.settled.end_of_run(expected).unwrap_or(expected);
            if number > settled.max(state.floor) {
                break;
            }
            if let Slot::Open(assembly) = slot {
                let is_decided =
                    assembly.is_complete() || assembly.dropped.is_some() || number < state.floor;
                let deadline = assembly.meta.deadline;
                if assembly.is_overdue && is_decided && deadline < earliest {
                    ready.push(number);
                } else {
                    earliest = earliest.min(deadline);
                }
            }
            expected = number + 1;
        }
        for number in ready {
            self.settle(stream, number..number + 1, GapReason::Overdue);
        }
    }

    /// Makes the unsettled ones of these sections ready, in order.
    fn settle(&mut self, stream: StreamId, sections: Range<u64>, reason: GapReason) {
        let Some(state) = self.streams.get_mut(&stream) else {
            return;
        };
        let mut at = sections.start.max(state.next);
        while at < sections.end {
            if let Some(end) = state.settled.end_of_run(at) {
                at = end;
                continue;
            }
            let is_obsolete = at < state.floor;
            let gap = if is_obsolete && reason != GapReason::Closed {
                GapReason::Obsolete
            } else {
                reason
            };
            let slot = state.slots.remove(&at);
            self.records -= usize::from(slot.is_some());
            let until = match slot {
                Some(Slot::Open(assembly)) => {
                    self.due.remove(&(assembly.meta.deadline, stream, at));
                    self.pieces -= assembly.have.len();
                    let gap = assembly.dropped.map_or(gap, GapReason::Dropped);
                    let had = u64::from(assembly.have.total());
                    self.counters.held -= had;
                    let delivery = match assembly.finish(gap) {
                        Ok(received) => {
                            self.spares.keep(&received.payload);
                            self.counters.delivered += had;
                            *self.ahead.count(received.is_late) -= 1;
                            self.counters.on_time += u64::from(!received.is_late);
                            self.counters.complete_late += u64::from(received.is_late);
                            Delivery::Section(received)
                        }
                        Err(found) => {
                            self.counters.partial += had;
                            self.counters.gaps.add(found.reason, 1);
                            state.gaps.insert(at..at + 1);
                            Delivery::Gap(found)
                        }
                    };
                    self.ready.push_back(Ready::Delivery(delivery));
                    at + 1
                }
                Some(Slot::Dropped(dropped)) => {
                    let gap = GapReason::Dropped(dropped);
                    self.counters.gaps.add(gap, 1);
                    state.gaps.insert(at..at + 1);
                    push_unseen(&mut self.ready, stream, at..at + 1, gap);
                    at + 1
                }
                None => {
                    let seen = state.slots.range(at..).next().map(|(&seen, _)| seen);
                    let settled = state.settled.next_start(at);
                    let floor = is_obsolete.then_some(state.floor);
                    let until = [seen, settled, floor]
                        .into_iter()
                        .flatten()
                        .fold(sections.end, u64::min);
                    self.counters.gaps.add(gap, until - at);
                    state.gaps.insert(at..until);
                    push_unseen(&mut self.ready, stream, at..until, gap);
                    until
                }
            };
            state.settled.insert(at..until);
            at = until;
        }
        state.gaps.keep_latest(REMEMBERED_GAPS);
        if let Some(end) = state.settled.take_run(state.next) {
            state.next = end;
        }
    }
}

/// Adds a run, or makes the last one longer.
fn push_unseen<P>(
    ready: &mut VecDeque<Ready<P>>,
    stream: StreamId,
    sections: Range<u64>,
    reason: GapReason,
) {
    match ready.back_mut() {
        Some(Ready::Unseen(last, run, because))
            if (*last, run.end, *because) == (stream, sections.start, reason) =>
        {
            run.end = sections.end;
        }
        _ => ready.push_back(Ready::Unseen(stream, sections, reason)),
    }
}

fn check_end<P: Payload>(
    state: &Stream<P>,
    stream: StreamId,
    number: u64,
) -> Result<(), Violation> {
    match state.end {
        Some(sections) if number >= sections => Err(Violation::End { stream, sections }),
        _ => Ok(()),
    }
}

fn check_limit<P: Payload>(
    state: &Stream<P>,
    config: &Config,
    stream: StreamId,
    section: SectionId,
) -> Result<(), Violation> {
    let limit = state.limit(config);
    if section.0 < limit {
        return Ok(());
    }
    Err(Violation::TooManySections {
        stream,
        section,
        limit,
    })
}
