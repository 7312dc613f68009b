//! The sections of all streams at the receiver: reassembly, deadlines, delivery and gaps.

mod settling;

use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::ops::Range;

use comity_units::Time;

use super::assembly::{Assembly, Runs, limit_deadline};
use super::spares::Spares;
use super::{Config, Counters, Delivery, Gap, GapReason, Violation};
use crate::timeline::clock::ClockMap;
use crate::timeline::section::{Deliver, Meta, Payload, Reason, SectionId, StreamId};

/// The memory that [`Inbox::memory`] counts for a record, for a piece of a section and for a run of
/// numbers, in bytes: the largest sizes in measurements, rounded up.
const RECORD: u64 = 512;
const PIECE: u64 = 16;
const RUN: u64 = 48;
/// Below twice this length, the list of the latest deadlines is not searched for settled sections.
const MIN_LATEST: usize = 32;
/// The reciprocal of the part of the memory limit that delivered sections, kept for later ones, may
/// use.
const SPARE_PART: u64 = 8;

/// The receiver's half of the timeline.
///
/// [`on_chunk`](Self::on_chunk) accepts pieces of sections in any order, with duplicates and
/// overlaps. [`on_floor`](Self::on_floor), [`on_drop`](Self::on_drop) and [`on_end`](Self::on_end)
/// report which sections will not come. The caller processes the frames of one packet in the order
/// floor, drop, chunk. [`poll`](Self::poll) returns every section of a stream exactly once; call it
/// after every event and at [`next_wakeup`](Self::next_wakeup).
///
/// * `deliver = early`: in order, once a section is complete and all before it are settled. At its
///   deadline a section is delivered in any case, even if an earlier one with a later deadline is
///   not settled.
/// * `deliver = paced`: each section at its deadline on the receiver's clock, whole or not. A
///   section without a deadline is delivered as with `early`. The complete sections that it needs
///   are delivered before it, whatever their deadlines. Without enforced deadlines, an incomplete
///   section holds up the later ones.
///
/// A higher number reveals that an unseen section exists, but not its deadline. The deadline of the
/// next seen section is an upper bound, so the unseen section becomes a gap when that section is
/// delivered.
///
/// A [`Violation`] is a reason to close the connection. The limits still hold after it, and the
/// counters still sum up.
#[derive(Debug)]
pub struct Inbox<P: Payload> {
    config: Config,
    streams: BTreeMap<StreamId, Stream<P>>,
    /// Unsettled sections by their deadlines, on the sender's clock.
    due: BTreeSet<(Time, StreamId, u64)>,
    /// The same sections by their latest deadlines, on this end's clock, and settled ones among
    /// them. The first is unsettled.
    latest: VecDeque<(Time, StreamId, u64)>,
    /// Streams whose first sections may have become settled.
    changed: BTreeSet<StreamId>,
    ready: VecDeque<Ready<P>>,
    spares: Spares<P>,
    /// Bytes reserved for undelivered sections.
    reserved: u64,
    /// The lengths of all admitted sections, and of settled sections once for each late piece.
    admitted: u64,
    /// Slots of all streams.
    records: usize,
    /// The pieces of all unsettled sections.
    pieces: usize,
    /// The present limit of its memory.
    limit: u64,
    /// Whether data was refused because of `limit`.
    was_short: bool,
    counters: Counters,
    /// Complete but unsettled sections.
    ahead: Complete,
    /// Set when no more packets come: until this time, ready sections are still delivered at their
    /// deadlines.
    plays_out_until: Option<Time>,
}

/// The numbers of complete sections.
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
    /// All sections below it are settled.
    next: u64,
    /// The first section that is not known. No later one is known either.
    known: u64,
    /// All sections below it are obsolete for the sender.
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

/// Deliveries to poll. Sections without any bytes are kept as runs: a peer can skip many at once.
/// No run is empty.
#[derive(Debug)]
enum Ready<P> {
    /// A section that began to arrive, and its latest deadline on this end's clock.
    Delivery(Delivery<P>, Time),
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

    /// The description of a section that is complete and unsettled.
    fn complete(&self, section: u64) -> Option<&Meta> {
        match self.slots.get(&section)? {
            Slot::Open(assembly) if assembly.is_complete() => Some(&assembly.meta),
            _ => None,
        }
    }

    /// Unsettled sections that the sender abandoned before they were complete.
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

    /// The first section that exceeds the limits.
    fn limit(&self, config: &Config) -> u64 {
        self.next
            .max(self.floor)
            .saturating_add(config.max_sections)
    }
}

impl<P: Payload> Inbox<P> {
    /// Creates an inbox without sections.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            streams: BTreeMap::new(),
            due: BTreeSet::new(),
            latest: VecDeque::new(),
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

    /// Processes a piece of a section: `length` bytes from `offset` on. `bytes` is ignored if
    /// payloads are elided.
    ///
    /// # Errors
    /// If the piece is inconsistent with itself or with earlier ones, or exceeds the limits of
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
                let pieces = assembly.have.len_with(offset..end);
                if pieces > assembly.have.as_slice().len() && memory < PIECE {
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
            let latest = now + config.max_latency;
            let buffer = self.spares.buffer(meta.length);
            let state = self.stream(stream)?;
            let (dropped, is_first) = match state.slots.remove(&number) {
                Some(Slot::Dropped(reason)) => (Some(reason), false),
                _ => (None, true),
            };
            let assembly = Assembly::new(*meta, clock, latest, buffer, dropped);
            let deadline = assembly.meta.deadline;
            state.slots.insert(number, Slot::Open(assembly));
            state.known = state.known.max(number + 1);
            self.records += usize::from(is_first);
            self.reserved += u64::from(meta.length);
            self.admitted += u64::from(meta.length);
            let waits = config.enforce_deadlines || config.deliver == Deliver::Paced;
            if waits && !deadline.is_never() {
                self.due.insert((deadline, stream, number));
                self.push_latest(latest, stream, number);
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
        let pieces = assembly.have.as_slice().len();
        let new = assembly.write_at(offset..end, bytes);
        self.pieces = self.pieces + assembly.have.as_slice().len() - pieces;
        self.counters.received += u64::from(length);
        self.counters.held += u64::from(new);
        self.counters.duplicate += u64::from(length - new);
        if assembly.is_complete() && !was_complete {
            let deadline = clock.to_local(assembly.meta.deadline).min(assembly.latest);
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

    /// Records that a piece of a section arrived and was refused. The section becomes a gap unless
    /// its pieces are accepted later.
    ///
    /// # Errors
    /// If the section is beyond the end of the stream, or too far ahead.
    pub fn on_refused(&mut self, stream: StreamId, section: SectionId) -> Result<(), Violation> {
        let config = self.config;
        let state = self.stream(stream)?;
        check_end(state, stream, section.0)?;
        check_limit(state, &config, stream, section)?;
        state.known = state.known.max(section.0 + 1);
        Ok(())
    }

    /// Processes the floor of a stream: all sections below it are obsolete for the sender.
    ///
    /// The floor may lie any number of sections ahead: those without any bytes are one gap.
    ///
    /// # Errors
    /// If the floor is beyond the end of the stream, or the stream exceeds the limit.
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

    /// Records that the sender will not send the rest of a section. If the section is too far
    /// ahead, a later floor covers it.
    ///
    /// # Errors
    /// If the section is beyond the end of the stream, or there are too many records.
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

    /// Records the number of sections in the whole stream.
    ///
    /// # Errors
    /// If more sections are known already, or another number was announced.
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

    /// Whether no delivery is ready, not even one that waits for its deadline.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Whether ready sections wait for their deadlines.
    pub fn is_playing_out(&self) -> bool {
        self.plays_out_until.is_some() && !self.ready.is_empty()
    }

    /// The local time at which the first ready section is due.
    fn plays_at(&self, clock: &ClockMap) -> Option<Time> {
        let until = self.plays_out_until?;
        match self.ready.front()? {
            Ready::Delivery(Delivery::Section(section), latest)
                if !section.meta.deadline.is_never() =>
            {
                let deadline = clock.to_local(section.meta.deadline);
                Some(deadline.min(*latest).min(until))
            }
            _ => None,
        }
    }

    /// Returns the next section or gap. Call it until it returns `None`.
    pub fn poll(&mut self, now: Time, clock: &ClockMap) -> Option<Delivery<P>> {
        while self.ready.is_empty() && self.advance(now, clock) {}
        if self.plays_at(clock).is_some_and(|at| at > now) {
            return None;
        }
        let delivery = match self.ready.pop_front()? {
            Ready::Delivery(mut delivery, latest) => {
                let meta = match &mut delivery {
                    Delivery::Section(received) => Some(&mut received.meta),
                    Delivery::Gap(gap) => gap.partial.as_mut().map(|partial| &mut partial.meta),
                };
                if let Some(meta) = meta {
                    *meta = limit_deadline(*meta, clock, latest);
                }
                delivery
            }
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

    /// When [`poll`](Self::poll) may next return a delivery without another packet.
    pub fn next_wakeup(&self, clock: &ClockMap) -> Time {
        if let Some(at) = self.plays_at(clock) {
            return at;
        }
        if !self.ready.is_empty() || !self.changed.is_empty() {
            return Time::ZERO;
        }
        let due = { self.due.first() }.map(|&(deadline, ..)| clock.to_local(deadline));
        let latest = { self.latest.front() }.map(|&(latest, ..)| latest);
        due.into_iter().chain(latest).min().unwrap_or(Time::MAX)
    }

    /// Adds an unsettled section to `latest`. Settled sections are removed before they outnumber
    /// the records.
    fn push_latest(&mut self, latest: Time, stream: StreamId, number: u64) {
        if self.latest.len() >= 2 * self.records.max(MIN_LATEST) {
            let streams = &self.streams;
            self.latest.retain(|entry| waits(streams, entry));
        }
        self.latest.push_back((latest, stream, number));
    }

    /// Removes settled sections from the front of `latest`.
    fn trim_latest(&mut self) {
        while { self.latest.front() }.is_some_and(|entry| !waits(&self.streams, entry)) {
            self.latest.pop_front();
        }
    }

    /// Whether the stream has ended and all of it was delivered.
    pub fn is_finished(&self, stream: StreamId) -> bool {
        let waits = self.ready.iter().any(|ready| match ready {
            Ready::Delivery(Delivery::Section(received), _) => received.meta.stream == stream,
            Ready::Delivery(Delivery::Gap(gap), _) => gap.stream == stream,
            Ready::Unseen(unseen, _, _) => *unseen == stream,
        });
        let state = self.streams.get(&stream);
        !waits && state.is_some_and(|state| state.end == Some(state.next))
    }

    /// Unreserved bytes of the buffer, as far as memory permits: the credit of the peer.
    pub fn free_bytes(&self) -> u64 {
        let free = self.config.max_bytes.saturating_sub(self.reserved);
        free.min(self.memory_left())
    }

    /// The memory in use, in bytes: an upper bound.
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

    /// Sets the memory limit from now on. Existing data stays, and data without room is refused as
    /// by a full buffer.
    pub fn set_memory_limit(&mut self, limit: u64) {
        self.limit = limit;
        self.spares.limit(limit / SPARE_PART);
    }

    /// Whether data was refused for lack of memory since the last call.
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

    /// The maximum that the peer may have counted against its credit since the beginning: the
    /// lengths of the sections that began to arrive. A settled section counts again with each new
    /// piece, because the peer may not have counted it before.
    pub const fn admitted(&self) -> u64 {
        self.admitted
    }

    /// The first section of the stream that the peer may not send yet.
    pub fn section_limit(&self, stream: StreamId) -> SectionId {
        let state = self.streams.get(&stream);
        SectionId(state.map_or(self.config.max_sections, |state| state.limit(&self.config)))
    }

    /// The sections that were complete by their deadline, and those that were complete later,
    /// settled or not.
    pub const fn complete(&self) -> (u64, u64) {
        (
            self.counters.on_time + self.ahead.on_time,
            self.counters.complete_late + self.ahead.late,
        )
    }

    /// The sections that are gaps, settled or not.
    pub fn gaps(&self) -> u64 {
        let abandoned: u64 = self.streams.values().map(Stream::abandoned).sum();
        self.counters.gaps.sum() + abandoned
    }

    /// Whether at least one stream is known and the sender has ended all known ones.
    pub fn has_ended(&self) -> bool {
        let mut ends = self.streams.values().map(|state| state.end);
        !self.streams.is_empty() && ends.all(|end| end.is_some())
    }

    /// All counters.
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
}

/// Whether a section waits for its deadline.
fn waits<P: Payload>(
    streams: &BTreeMap<StreamId, Stream<P>>,
    (_, stream, number): &(Time, StreamId, u64),
) -> bool {
    let slot = { streams.get(stream) }.and_then(|state| state.slots.get(number));
    matches!(slot, Some(Slot::Open(assembly)) if !assembly.is_overdue)
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
