//! The queue of sections at the sender: their order, and expiry at their deadline.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use comity_congestion::Ranges;
use comity_units::Time;

use super::claims::{Claim, Claims};
use super::entry::{Entry, Key, Stage, Urgency};
use super::feasibility_check::FeasibilityCheck;
use super::intake::Intake;
use super::{Chunk, Config, Counters, Fate, Notice, Outcome, PathEstimate, SubmitError};
use crate::timeline::section::{
    DropPolicy, Meta, Outgoing, Payload, Reason, Reliability, SectionId, StreamId,
};
use crate::timeline::tokens::{Borrowing, Importances};

/// The sender's half of the timeline.
///
/// [`submit`](Self::submit) accepts sections, and [`next_chunk`](Self::next_chunk) hands out their
/// bytes. For every chunk that was handed out, the caller calls either [`on_acked`](Self::on_acked)
/// or [`on_lost`](Self::on_lost) once. An acknowledgement may still follow a loss that was declared
/// too early. [`poll_outcome`](Self::poll_outcome) returns one outcome for every section.
///
/// The next chunk belongs to the section that is due first. A section is due at its deadline; the
/// most important sections are due earlier, by the time of a repair. Among sections due at the same
/// time, lost bytes go first, then higher importance, then earlier submission. Sections without a
/// deadline come last.
///
/// Unless nothing may be dropped, deadlines are checked when a section is submitted, whenever bytes
/// of it leave, and by [`expire`](Self::expire). Call that at
/// [`earliest_deadline`](Self::earliest_deadline) even if nothing can be sent. No byte is handed
/// out at or after its deadline.
#[derive(Debug)]
pub struct Outbox<P: Payload> {
    pub(super) config: Config,
    pub(super) entries: BTreeMap<Key, Entry<P>>,
    pub(super) streams: BTreeMap<StreamId, Stream>,
    /// Sections without any byte handed out.
    pub(super) fresh: BTreeSet<(Urgency, Key)>,
    /// Sections with some bytes handed out and others not.
    pub(super) begun: BTreeSet<(Urgency, Key)>,
    /// Sections with lost bytes.
    pub(super) repeats: BTreeSet<(Urgency, Key)>,
    /// Live sections whose deadline is enforced.
    pub(super) deadlines: BTreeSet<(Time, Key)>,
    /// The same in the order of sending.
    pub(super) order: BTreeSet<(Urgency, Key)>,
    /// Pieces that wait for a duplicate transmission.
    pub(super) copies: VecDeque<Chunk>,
    /// Bytes that duplicate transmissions may still take.
    pub(super) duplication: u64,
    pub(super) notices: VecDeque<Notice>,
    pub(super) outcomes: VecDeque<Outcome>,
    pub(super) moved_floors: BTreeSet<StreamId>,
    /// Payload bytes held.
    pub(super) held: u64,
    pub(super) submitted: u64,
    /// The peer's credit that sections use.
    pub(super) claims: Claims,
    pub(super) intake: Intake,
    pub(super) counters: Counters,
    pub(super) look: FeasibilityCheck,
}

/// The longest run of skipped sections whose reasons all reach the peer.
const MAX_NAMED: u64 = 64;

#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The number of the next section.
    pub(super) next: u64,
    /// All sections below are acknowledged or given up.
    floor: u64,
    /// All sections that were ever begun are below.
    pub(super) begun: u64,
    pub(super) ended: bool,
    /// The importance of its latest sections.
    importances: Importances,
    /// The latest abandoned sections. A section that needs one of them is worthless.
    given_up: Ranges<u64>,
    /// Sections from the floor on that lost bytes and are not retransmitted, or whose deadline has
    /// passed. The peer waits for them until the floor passes them. If it knows no deadline of
    /// theirs, it would otherwise wait for ever.
    lost: BTreeSet<SectionId>,
}

impl Stream {
    /// Adds `count` sections from `first` on to the abandoned ones, and keeps the latest `most` of
    /// these. A run costs as much as one section.
    fn give_up(&mut self, first: SectionId, count: u64, most: usize) {
        self.given_up.insert(first.0..first.0 + count, ());
        while self.given_up.total() > most as u64 {
            self.given_up.pop_first(self.given_up.total() - most as u64);
        }
    }

    /// The number of sections from the floor up to the latest. The peer limits it.
    pub(super) const fn span(&self) -> u64 {
        self.next - self.floor
    }
}

impl<P: Payload> Outbox<P> {
    /// Creates an outbox without sections.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            entries: BTreeMap::new(),
            streams: BTreeMap::new(),
            fresh: BTreeSet::new(),
            begun: BTreeSet::new(),
            repeats: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            order: BTreeSet::new(),
            copies: VecDeque::new(),
            duplication: FIRST_DUPLICATION,
            notices: VecDeque::new(),
            outcomes: VecDeque::new(),
            moved_floors: BTreeSet::new(),
            held: 0,
            submitted: 0,
            claims: Claims::default(),
            intake: Intake::default(),
            counters: Counters::default(),
            look: FeasibilityCheck::new(&config),
        }
    }

    pub(super) fn enforces(&self) -> bool {
        self.config.drop != DropPolicy::Never && self.config.reliability != Reliability::Full
    }

    pub(super) fn drops_infeasible(&self) -> bool {
        self.enforces() && self.config.drop == DropPolicy::Infeasible
    }

    /// Accepts a section and assigns its number.
    ///
    /// Some sections get their outcome together with their number: those whose deadline has passed
    /// or is nearer than the one-way delay, and those that need an abandoned section.
    ///
    /// # Errors
    /// [`SubmitError`]; nothing has changed then. Outcomes that were not polled yet count as held
    /// sections.
    pub fn submit(&mut self, now: Time, section: Outgoing<P>) -> Result<SectionId, SubmitError> {
        let stream = section.stream;
        let length = section.payload.len();
        let id = self.admit(stream, length, section.needs)?;
        let state = self.streams.entry(stream).or_default();
        state.next += 1;
        state.importances.on_section(now, section.importance);
        let (lowest, highest) = state.importances.range();
        let borrowing = Borrowing::of(section.importance, lowest, highest);
        let stands_out = lowest < highest && borrowing == Borrowing::ALL;
        let needs_lost = section
            .needs
            .is_some_and(|SectionId(needs)| state.given_up.covered(needs..needs + 1) > 0);
        let due = match stands_out {
            true => self.due(now, section.deadline),
            false => section.deadline,
        };
        let entry = Entry {
            meta: Meta {
                stream,
                section: id,
                length,
                importance: section.importance,
                source_time: section.source_time,
                deadline: section.deadline,
                needs: section.needs,
            },
            payload: Some(section.payload),
            stage: Stage::Live,
            due,
            borrowing,
            stands_out,
            order: self.submitted,
            sent: 0,
            acked: Ranges::default(),
            lost: Ranges::default(),
            twice: Vec::new(),
            dependents: Vec::new(),
            reliability: self.config.reliability,
        };
        self.submitted += 1;
        self.held += u64::from(length);
        self.counters.sections.submitted += 1;
        self.counters.sections.open += 1;
        self.counters.bytes.submitted += u64::from(length);
        self.counters.bytes.queued += u64::from(length);
        let key = (stream, id);
        self.fresh.insert((entry.urgency(), key));
        if self.enforces() && !section.deadline.is_never() {
            self.deadlines.insert((section.deadline, key));
            self.order.insert((entry.urgency(), key));
        }
        self.entries.insert(key, entry);
        if let Some(needs) = section.needs
            && let Some(needed) = self.entries.get_mut(&(stream, needs))
        {
            needed.dependents.push(id);
        }
        if self.enforces() && section.deadline <= now {
            self.give_up(key, Reason::Expired);
        } else if needs_lost {
            self.give_up(key, Reason::Dependency);
        } else if self.is_out_of_reach(now, section.deadline) {
            self.give_up_late(now, key, Reason::Infeasible);
        }
        self.look.is_due = true;
        Ok(id)
    }

    /// Skips the next number of a stream: the peer receives a gap with this reason. Later sections
    /// that need this number are abandoned. No outcome follows.
    ///
    /// If the number is further above the floor than the peer's limit of open sections, only the
    /// floor announces it.
    ///
    /// # Errors
    /// [`SubmitError`]; nothing has changed then.
    pub fn skip(&mut self, stream: StreamId, reason: Reason) -> Result<SectionId, SubmitError> {
        self.skip_run(stream, 1, reason)
    }

    /// Skips the next `count` numbers of a stream as [`skip`](Self::skip) does, in bounded time.
    /// Returns the first.
    ///
    /// Only the floor announces a run of more than 64, without the reason.
    ///
    /// # Errors
    /// [`SubmitError`]; nothing has changed then.
    pub fn skip_run(
        &mut self,
        stream: StreamId,
        count: u64,
        reason: Reason,
    ) -> Result<SectionId, SubmitError> {
        let first = self.next_number(stream, count)?;
        let state = self.streams.entry(stream).or_default();
        state.next += count;
        if count > MAX_NAMED {
            state.give_up(first, count, self.config.max_sections);
        } else {
            for section in first.run(count) {
                self.note_given_up((stream, section), reason);
            }
        }
        self.counters.sections.skip(reason, count);
        self.raise_floor((stream, first));
        Ok(first)
    }

    /// Ends a stream: no more sections can be submitted. Returns the number of its sections.
    ///
    /// # Errors
    /// [`SubmitError`]; nothing has changed then.
    pub fn end(&mut self, stream: StreamId) -> Result<u64, SubmitError> {
        let SectionId(next) = self.next_number(stream, 0)?;
        self.streams.entry(stream).or_default().ended = true;
        Ok(next)
    }

    /// Ends all streams, including those that have not begun. Returns each stream that had not
    /// ended, with the number of its sections.
    pub fn finish(&mut self) -> Vec<(StreamId, u64)> {
        self.intake.finish();
        let open = self.streams.iter_mut().filter(|(_, state)| !state.ended);
        open.map(|(stream, state)| {
            state.ended = true;
            (*stream, state.next)
        })
        .collect()
    }

    /// The number of sections of each stream so far, in the order of the streams.
    pub fn counts(&self) -> impl Iterator<Item = (StreamId, u64)> + '_ {
        self.streams
            .iter()
            .map(|(&stream, state)| (stream, state.next))
    }

    /// Withdraws a section and all that need it. Returns whether there was anything to withdraw.
    pub fn cancel(&mut self, stream: StreamId, section: SectionId) -> bool {
        self.give_up((stream, section), Reason::Cancelled)
    }

    /// Withdraws all sections and counts everything in flight as lost, because the connection has
    /// ended.
    pub fn close(&mut self) {
        let keys: Vec<Key> = self.entries.keys().copied().collect();
        for key in keys {
            self.give_up(key, Reason::Cancelled);
            self.change(key, |entry| entry.on_lost(&(0..u32::MAX)));
        }
        self.intake.close();
    }

    /// Returns the next piece to put into a packet with room for `most` payload bytes.
    ///
    /// [`meta`](Self::meta) and [`write`](Self::write) return its description and its bytes until
    /// the next call of another method. `None` if nothing is to be sent, or the peer's credit does
    /// not allow it.
    pub fn next_chunk(&mut self, now: Time, most: u32, estimate: &PathEstimate) -> Option<Chunk> {
        self.next_copy(now, estimate, |_, _, _| most)
            .or_else(|| self.next_chunk_with(now, estimate, |_, _, _| most))
    }

    /// As [`next_chunk`](Self::next_chunk), but without duplicate transmissions
    /// ([`next_copy`](Self::next_copy)), and for a room that depends on the header. `room` receives
    /// the section, the floor of its stream and the offset, and returns how many bytes fit. If it
    /// returns zero, nothing is handed out.
    pub fn next_chunk_with(
        &mut self,
        now: Time,
        estimate: &PathEstimate,
        room: impl FnOnce(&Meta, SectionId, u32) -> u32,
    ) -> Option<Chunk> {
        self.look_ahead(now, estimate);
        let (key, is_retransmission, entry) = loop {
            let (key, is_retransmission) = self.pick_next(estimate)?;
            let entry = self.entries.get(&key)?;
            if !self.is_out_of_reach(now, entry.meta.deadline) {
                break (key, is_retransmission, entry);
            }
            self.give_up_late(now, key, Reason::Infeasible);
        };
        let offset = match is_retransmission {
            true => entry.lost.first()?,
            false => entry.sent,
        };
        let room = room(&entry.meta, self.floor(key.0), offset);
        if room == 0 {
            return None;
        }
        let is_late = entry.meta.deadline <= now;
        let range = self.change(key, |entry| {
            if is_retransmission {
                return entry.lost.pop_first(room);
            }
            let start = entry.sent;
            entry.sent += entry.unsent().min(room);
            Some(start..entry.sent)
        })??;
        if let Some(state) = self.streams.get_mut(&key.0) {
            state.begun = state.begun.max(key.1.0 + 1);
        }
        let length = range.end - range.start;
        let sent = match is_retransmission {
            true => &mut self.counters.sent_again,
            false => &mut self.counters.sent,
        };
        *sent += u64::from(length);
        if is_late {
            self.counters.sent_late += u64::from(length);
        }
        let chunk = Chunk {
            stream: key.0,
            section: key.1,
            offset: range.start,
            length,
            is_retransmission,
        };
        if self.is_last_chance(now, &chunk, estimate) {
            self.duplication = self.duplication.saturating_sub(u64::from(length));
            self.copies.push_back(Chunk {
                is_retransmission: true,
                ..chunk
            });
        }
        Some(chunk)
    }

    /// The next section to send, and whether it retransmits lost bytes.
    fn pick_next(&self, estimate: &PathEstimate) -> Option<(Key, bool)> {
        let may_leave = |(_, key): &(Urgency, Key)| {
            let entry = self.entries.get(key);
            entry.is_some_and(|entry| estimate.allows(entry.borrowing()))
        };
        let begun = self.begun.iter().copied().find(may_leave);
        // If the most urgent section that has not begun is less urgent, all such sections are.
        let unsent = match (begun, self.fresh.first()) {
            (Some(begun), Some(first)) if begun < *first => Some(begun),
            (begun, _) => {
                let fresh = self.to_begin(estimate.credit).find(may_leave);
                begun.into_iter().chain(fresh).min()
            }
        };
        let repeat = self.repeats.iter().copied().find(may_leave);
        match (repeat, unsent) {
            (Some((repeat, key)), Some((unsent, _))) if repeat.due <= unsent.due => {
                Some((key, true))
            }
            (_, Some((_, key))) => Some((key, false)),
            (Some((_, key)), None) => Some((key, true)),
            (None, None) => None,
        }
    }

    /// The description of the chunk's section for its packet; `None` if the section is settled.
    pub fn meta(&self, chunk: &Chunk) -> Option<Meta> {
        let entry = self.entries.get(&(chunk.stream, chunk.section));
        entry.map(|entry| entry.meta)
    }

    /// Appends the bytes of a chunk. Returns whether they were still present.
    pub fn write(&self, chunk: &Chunk, out: &mut Vec<u8>) -> bool {
        let entry = self.entries.get(&(chunk.stream, chunk.section));
        let Some(payload) = entry.and_then(|entry| entry.payload.as_ref()) else {
            return false;
        };
        payload.append_to(chunk.range(), out);
        true
    }

    /// Records that a chunk was acknowledged.
    pub fn on_acked(&mut self, chunk: &Chunk) {
        self.change((chunk.stream, chunk.section), |entry| {
            entry.on_acked(&chunk.range());
        });
    }

    /// Records that chunks were acknowledged. Adjacent chunks of a repaired section are processed
    /// as one.
    pub fn on_all_acked<'a>(&mut self, chunks: impl Iterator<Item = &'a Chunk>) {
        let mut run: Option<Chunk> = None;
        let mut may_grow = false;
        for chunk in chunks {
            let key = (chunk.stream, chunk.section);
            match &mut run {
                Some(run)
                    if may_grow
                        && (run.stream, run.section) == key
                        && run.range().end == chunk.offset =>
                {
                    run.length += chunk.length;
                }
                _ => {
                    if let Some(run) = run.replace(*chunk) {
                        self.on_acked(&run);
                    }
                    // Any other section may have its outcome before the next chunk.
                    may_grow = self.entries.get(&key).is_some_and(Entry::is_repaired);
                }
            }
        }
        if let Some(run) = run {
            self.on_acked(&run);
        }
    }

    /// Records the loss of a chunk. It is retransmitted if reliability and time allow it.
    pub fn on_lost(&mut self, now: Time, chunk: &Chunk) {
        self.expire(now);
        self.duplication = (self.duplication + u64::from(chunk.length / 2)).min(MAX_DUPLICATION);
        let key = (chunk.stream, chunk.section);
        let stage = self.change(key, |entry| {
            entry.on_lost(&chunk.range());
            entry.stage
        });
        if stage == Some(Stage::Overdue) && self.config.reliability != Reliability::None {
            self.give_up(key, Reason::Expired);
        }
        self.look.is_due = true;
    }

    /// Records that a chunk may be lost, because its packet was not acknowledged for long. It is
    /// retransmitted if reliability and time allow it. Nothing is abandoned for it, because it may
    /// have arrived.
    pub fn on_doubted(&mut self, now: Time, chunk: &Chunk) {
        self.expire(now);
        if self.config.reliability == Reliability::None {
            return;
        }
        self.change((chunk.stream, chunk.section), |entry| {
            if entry.stage == Stage::Live {
                entry.on_doubted(&chunk.range());
            }
        });
        self.look.is_due = true;
    }

    /// Gives up sections at their deadline: the lifetime timer.
    ///
    /// A section that is completely in flight is not given up, because it may have arrived in time.
    pub fn expire(&mut self, now: Time) {
        while let Some(&(deadline, key)) = self.deadlines.first()
            && deadline <= now
        {
            let left = self.entries.get(&key).map_or(0, Entry::left);
            if left > 0 {
                self.give_up_late(now, key, Reason::Expired);
            } else {
                self.change(key, |entry| entry.stage = Stage::Overdue);
            }
            self.deadlines.remove(&(deadline, key));
        }
    }

    /// The floor of a stream. All sections below it are obsolete for the sender: acknowledged,
    /// given up, or beyond their deadline. Every packet with bytes of the stream states it.
    pub fn floor(&self, stream: StreamId) -> SectionId {
        SectionId(self.streams.get(&stream).map_or(0, |state| state.floor))
    }

    /// A stream whose floor has passed an unacknowledged section since the floor was last
    /// announced, and its floor.
    pub fn floor_to_tell(&self) -> Option<(StreamId, SectionId)> {
        let stream = *self.moved_floors.first()?;
        Some((stream, self.floor(stream)))
    }

    /// Records that a packet that leaves now states the floor of a stream. Returns whether the peer
    /// may not know it yet. In that case the caller [reports](Self::on_floor_lost) the loss of the
    /// packet.
    pub fn on_floor_told(&mut self, stream: StreamId) -> bool {
        self.moved_floors.remove(&stream)
    }

    /// Records the loss of the packet with the floor of a stream.
    pub fn on_floor_lost(&mut self, stream: StreamId) {
        self.moved_floors.insert(stream);
    }

    /// The next abandoned section to announce to the peer, until it is
    /// [announced](Self::on_notice_told).
    ///
    /// The floor announces the sections below it. For these, only a reason other than the deadline
    /// is still announced, once.
    pub fn notice_to_tell(&mut self) -> Option<Notice> {
        while let Some(notice) = self.notices.front().copied() {
            if notice.reason != Reason::Expired || notice.section >= self.floor(notice.stream) {
                return Some(notice);
            }
            self.notices.pop_front();
        }
        None
    }

    /// Records that the notice of [`notice_to_tell`](Self::notice_to_tell) leaves now.
    pub fn on_notice_told(&mut self) {
        self.notices.pop_front();
    }

    /// Whether there may be a floor or a notice to announce.
    pub fn has_news(&self) -> bool {
        !self.moved_floors.is_empty() || !self.notices.is_empty()
    }

    /// Records the loss of the packet with this notice.
    pub fn on_notice_lost(&mut self, notice: Notice) {
        if notice.section >= self.floor(notice.stream) {
            self.tell(notice);
        }
    }

    fn tell(&mut self, notice: Notice) {
        if self.notices.len() >= self.config.max_sections {
            // The floor or the deadline replaces the oldest notice.
            self.notices.pop_front();
        }
        self.notices.push_back(notice);
    }

    /// Returns the outcome of a section, once for each section.
    pub fn poll_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    /// When [`expire`](Self::expire) is due next; [`Time::MAX`] for never.
    pub fn earliest_deadline(&self) -> Time {
        self.deadlines
            .first()
            .map_or(Time::MAX, |&(deadline, _)| deadline)
    }

    /// Bytes that wait for their first transmission or for a retransmission, and duplicates.
    pub fn backlog(&self) -> u64 {
        let copies: u64 = self.copies.iter().map(|copy| u64::from(copy.length)).sum();
        self.counters.bytes.queued + copies
    }

    /// Whether every submitted section has its outcome.
    pub fn is_settled(&self) -> bool {
        self.entries.is_empty()
    }

    /// The counters of all outcomes.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Gives up a section that is late, and records a shortage if it has unsent bytes.
    fn give_up_late(&mut self, now: Time, key: Key, reason: Reason) {
        if self
            .entries
            .get(&key)
            .is_some_and(|entry| entry.unsent() > 0)
        {
            self.look.short_at = Some(now);
        }
        self.give_up(key, reason);
    }

    /// Gives up a section and all that need it. Returns whether it could still be abandoned.
    pub(super) fn give_up(&mut self, key: Key, reason: Reason) -> bool {
        let mut doomed = alloc::vec![(key, reason)];
        let mut found = false;
        while let Some((key, reason)) = doomed.pop() {
            let Some(entry) = self.entries.get_mut(&key) else {
                continue;
            };
            let can_go = match entry.stage {
                Stage::Live => true,
                Stage::Overdue => matches!(reason, Reason::Expired | Reason::Cancelled),
                Stage::Dropped(_) => false,
            };
            if !can_go {
                continue;
            }
            found = true;
            let dependents = core::mem::take(&mut entry.dependents).into_iter();
            doomed.extend(dependents.map(|next| ((key.0, next), Reason::Dependency)));
            self.note_given_up(key, reason);
            self.change(key, |entry| entry.stage = Stage::Dropped(reason));
        }
        found
    }

    /// Records that no more of a section is sent, and queues the notice for the peer.
    fn note_given_up(&mut self, (stream, section): Key, reason: Reason) {
        if let Some(state) = self.streams.get_mut(&stream) {
            state.give_up(section, 1, self.config.max_sections);
            if section.0.saturating_sub(state.floor) >= self.intake.max_open() {
                return;
            }
        }
        self.tell(Notice {
            stream,
            section,
            reason,
        });
    }

    /// Changes an entry, and updates everything that depends on its state.
    fn change<T>(&mut self, key: Key, change: impl FnOnce(&mut Entry<P>) -> T) -> Option<T> {
        let entry = self.entries.get_mut(&key)?;
        let before = entry.tally();
        let claimed = Claim::of(entry);
        let [had_fresh, had_begun, had_repeats] = waiting(entry);
        let result = change(entry);
        self.counters.bytes.replace(before, entry.tally());
        let (claims, length) = (Claim::of(entry), entry.meta.length);
        self.claims.replace(claimed, claims, length);
        let rank = (entry.urgency(), key);
        let [has_fresh, has_begun, has_repeats] = waiting(entry);
        for (set, had, has) in [
            (&mut self.fresh, had_fresh, has_fresh),
            (&mut self.begun, had_begun, has_begun),
            (&mut self.repeats, had_repeats, has_repeats),
        ] {
            match (had, has) {
                (false, true) => {
                    set.insert(rank);
                }
                (true, false) => {
                    set.remove(&rank);
                }
                _ => {}
            }
        }
        let (stage, fate) = (entry.stage, entry.fate());
        let deadline = entry.meta.deadline;
        if (stage != Stage::Live || fate.is_some()) && entry.payload.take().is_some() {
            self.held -= u64::from(entry.meta.length);
            self.deadlines.remove(&(deadline, key));
            self.order.remove(&rank);
            self.copies
                .retain(|copy| (copy.stream, copy.section) != key);
        }
        if let Some(fate) = fate {
            self.settle(key, fate);
        }
        if stage != Stage::Live || fate.is_some() {
            self.raise_floor(key);
        }
        Some(result)
    }

    fn settle(&mut self, key: Key, fate: Fate) {
        let Some(entry) = self.entries.remove(&key) else {
            return;
        };
        self.claims
            .replace(Claim::of(&entry), Claim::None, entry.meta.length);
        if fate == Fate::Acknowledged && matches!(entry.stage, Stage::Dropped(_)) {
            self.counters.given_up_but_arrived += 1;
        }
        if matches!(fate, Fate::Lost | Fate::ExpiredInNetwork)
            && let Some(state) = self.streams.get_mut(&key.0)
            && key.1.0 >= state.floor
        {
            state.lost.insert(key.1);
        }
        self.counters.sections.settle(fate);
        self.outcomes.push_back(Outcome {
            stream: key.0,
            section: key.1,
            fate,
            length: entry.meta.length,
            sent: entry.sent,
            acknowledged: entry.acked.total(),
        });
    }

    fn raise_floor(&mut self, (stream, section): Key) {
        let Some(state) = self.streams.get_mut(&stream) else {
            return;
        };
        if state.floor != section.0 {
            return;
        }
        let first_live = self
            .entries
            .range((stream, section)..=(stream, SectionId(u64::MAX)))
            .find(|(_, entry)| entry.stage == Stage::Live);
        let floor = first_live.map_or(state.next, |((_, first), _)| first.0);
        // A peer that has acknowledged everything below it needs no notice before the next section.
        let passed = (stream, section)..(stream, SectionId(floor));
        let is_news = state.given_up.covered(section.0..floor) > 0
            || self.entries.range(passed).next().is_some()
            || state.lost.first().is_some_and(|lost| lost.0 < floor);
        if !state.lost.is_empty() {
            state.lost = state.lost.split_off(&SectionId(floor));
        }
        state.floor = floor;
        if is_news {
            self.moved_floors.insert(stream);
        }
    }
}

/// Whether a section waits to begin, to continue, and to retransmit.
fn waiting<P>(entry: &Entry<P>) -> [bool; 3] {
    let is_live = entry.stage == Stage::Live;
    [
        entry.waits_to_begin(),
        is_live && entry.sent > 0 && entry.unsent() > 0,
        is_live && entry.to_repeat() > 0,
    ]
}

/// The bytes of duplicate transmissions that a connection may send before any loss: two packets.
const FIRST_DUPLICATION: u64 = 3_000;

/// The maximum number of bytes of duplicate transmissions that losses may earn.
const MAX_DUPLICATION: u64 = 16_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_abandoned_sections_costs_as_much_as_one() {
        let mut stream = Stream::default();
        for run in 0..500 {
            stream.give_up(SectionId(run * 5_000), 5_000, 4_096);
        }
        assert_eq!(stream.given_up.as_slice(), [(2_495_904, 2_500_000, ())]);
        stream.give_up(SectionId(2_600_000), 1, 4_096);
        let kept = [(2_495_905, 2_500_000, ()), (2_600_000, 2_600_001, ())];
        assert_eq!(stream.given_up.as_slice(), kept);
    }
}
