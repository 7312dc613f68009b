//! The sender's side of a time-lined stream: the list of deadlines, the jumps, and the window space
//! of obsolete data.

use alloc::collections::VecDeque;
use core::cmp::Ordering;

use comity_congestion::{Ranges, RttConfig};
use comity_units::{SeqNo, Span, Time};

use super::{
    DeadlineClock, MAX_REACH, SectionError, SeqUpdate, TimelineConfig, TimelineStatistics,
};

/// The maximum number of jumps below the acknowledgement that the list keeps.
const KEPT_JUMPS: usize = 4;

/// A section that is not obsolete, in wire offsets.
#[derive(Clone, Copy, Debug)]
struct Section {
    start: u64,
    end: u64,
    /// [`Time::MAX`] for none.
    deadline: Time,
}

/// Bytes that were discarded before they were sent.
#[derive(Clone, Copy, Debug)]
struct Jump {
    /// The stream offset of the jump, which is that of the byte after it.
    at: u64,
    /// The wire offsets of the first discarded byte and of the byte after the last.
    from: u64,
    to: u64,
}

/// A range of stream offsets between two jumps, with consecutive sequence numbers.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// Its first stream offset, and the wire offset there.
    at: u64,
    wire: u64,
    /// The stream offset of the next jump; `u64::MAX` for none.
    end: u64,
}

/// The state of the stream, in stream offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) una: u64,
    pub(crate) next: u64,
    pub(crate) max: u64,
    pub(crate) end: u64,
}

/// The effects of an expiry of the lifetime timer on the stream, in stream offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) next: u64,
    pub(crate) end: u64,
}

/// The time-line list, and the translation between stream offsets and wire offsets.
///
/// Stream offsets do not count discarded bytes; wire offsets do. An offset without either word is a
/// stream offset.
///
/// Invariants: sections ascend and do not overlap; jumps ascend in `at` and in wire offsets, with
/// sent bytes between any two; `floor ≤ obsolete ≤ max` of the stream; no offset from `obsolete` on
/// is obsolete or free; all data to be sent next or retransmitted in order follows the free
/// offsets.
#[derive(Debug)]
pub(crate) struct Line {
    config: TimelineConfig,
    /// The clock of the lifetime timer, if it has ticks.
    ticks: Option<RttConfig>,
    sections: VecDeque<Section>,
    jumps: VecDeque<Jump>,
    /// A copy of the last jump; an empty one at offset 0 before the first.
    last: Jump,
    /// The stretch of the acknowledgement. Nearly every segment lies in it or in the stretch after
    /// the last jump, where new data is sent; other offsets need a search of the list.
    here: Stretch,
    /// How far wire offsets exceed stream offsets below the first jump.
    base_skip: u64,
    /// The wire offset after the last submitted byte.
    wire_end: u64,
    /// The highest wire offset that the peer acknowledged.
    confirmed: u64,
    /// All data below this offset is obsolete or acknowledged.
    obsolete: u64,
    /// All data below this offset is abandoned, and the sender reports it to the peer as missing.
    /// With the blind spot this is `obsolete`.
    floor: u64,
    /// Outstanding obsolete offsets without content: another packet replaced the data, or a timeout
    /// marked it lost. They are not retransmitted.
    free: Ranges<u64>,
    /// The number of offsets that acknowledgements have passed by jumps since the last timeout and
    /// that still take up the window ([`TimelineConfig::holds_passed`]).
    held: u64,
    /// The offset after the last packet of this recovery that answered a loss of obsolete data.
    answered: u64,
    /// The offset after the last packet that this recovery retransmitted unchanged.
    retransmitted: u64,
    /// Whether an acknowledgement has passed obsolete data in this recovery: the receiver may have
    /// jumped.
    has_passed: bool,
    /// When the window last moved.
    pub(crate) moved_at: Time,
    /// The margin subtracted from a deadline.
    margin: Span,
    /// When the lifetime timer expires.
    lifetime: Time,
    /// Whether no deadline of the list is earlier than the one before.
    is_in_order: bool,
    pub(crate) statistics: TimelineStatistics,
}

impl Line {
    pub(crate) fn new(config: TimelineConfig, rtt: &RttConfig) -> Self {
        Self {
            config,
            ticks: config.lifetime_on_tick.then_some(*rtt),
            sections: VecDeque::new(),
            jumps: VecDeque::new(),
            last: Jump {
                at: 0,
                from: 0,
                to: 0,
            },
            here: Stretch {
                at: 0,
                wire: 0,
                end: u64::MAX,
            },
            base_skip: 0,
            wire_end: 1,
            confirmed: 1,
            obsolete: 0,
            floor: 0,
            free: Ranges::default(),
            held: 0,
            answered: 0,
            retransmitted: 0,
            has_passed: false,
            moved_at: Time::ZERO,
            margin: Span::ZERO,
            lifetime: Time::MAX,
            is_in_order: true,
            statistics: TimelineStatistics::default(),
        }
    }

    // ---------------------------------------------------------------- translation

    /// The wire offset of a stream offset. The offset of a jump maps to the byte after it.
    #[inline]
    pub(crate) fn wire(&self, offset: u64) -> u64 {
        if self.last.at <= offset {
            self.last.to + (offset - self.last.at)
        } else if self.here.at <= offset && offset < self.here.end {
            self.here.wire + (offset - self.here.at)
        } else {
            self.search_wire(offset)
        }
    }

    #[inline(never)]
    fn search_wire(&self, offset: u64) -> u64 {
        let stretch = self.stretch_of(offset);
        stretch.wire + (offset - stretch.at)
    }

    fn stretch_of(&self, offset: u64) -> Stretch {
        let (passed, ahead) = self.around(|jump| jump.at <= offset);
        let (at, wire) = match passed {
            Some(jump) => (jump.at, jump.to),
            None => (0, self.base_skip),
        };
        Stretch {
            at,
            wire,
            end: ahead.map_or(u64::MAX, |jump| jump.at),
        }
    }

    /// The last jump at or before an offset.
    fn jump_before(&self, offset: u64) -> Option<&Jump> {
        self.around(|jump| jump.at <= offset).0
    }

    /// The last passed jump, and the first that is not passed.
    fn around(&self, is_passed: impl Fn(&Jump) -> bool) -> (Option<&Jump>, Option<&Jump>) {
        let after = self.jumps.partition_point(is_passed);
        let passed = after.checked_sub(1).and_then(|last| self.jumps.get(last));
        (passed, self.jumps.get(after))
    }

    /// The stream offset of a wire offset; that of a discarded byte is the offset of its jump.
    #[inline]
    pub(crate) fn offset(&self, wire: u64) -> u64 {
        let here = self.here;
        if here.wire <= wire && wire - here.wire <= here.end - here.at {
            return here.at + (wire - here.wire);
        }
        self.search_offset(wire)
    }

    #[inline(never)]
    fn search_offset(&self, wire: u64) -> u64 {
        let (passed, ahead) = self.around(|jump| jump.to <= wire);
        let offset = match passed {
            Some(jump) => jump.at + (wire - jump.to),
            None => wire.saturating_sub(self.base_skip),
        };
        ahead.map_or(offset, |next| offset.min(next.at))
    }

    /// The offset after the section that contains `offset`.
    pub(crate) fn section_end(&self, offset: u64) -> u64 {
        let wire = self.wire(offset);
        if let Some(first) = self.sections.front()
            && first.start <= wire
            && wire < first.end
        {
            return offset + (first.end - wire);
        }
        let at = self.sections.partition_point(|section| section.end <= wire);
        self.sections
            .get(at)
            .map_or(u64::MAX, |section| offset + (section.end - wire))
    }

    // ---------------------------------------------------------------- application

    /// Adds a section of `bytes` bytes.
    pub(crate) fn add(&mut self, bytes: u64, deadline: Time) -> Result<(), SectionError> {
        if bytes == 0 {
            return Ok(());
        }
        let end = self.wire_end.saturating_add(bytes);
        let reach = end.saturating_sub(self.confirmed);
        if reach > MAX_REACH && !deadline.is_never() {
            return Err(SectionError::TooFarAhead { reach });
        }
        self.statistics.sections += 1;
        self.is_in_order = match self.sections.back() {
            Some(last) => self.is_in_order && last.deadline <= deadline,
            None => true,
        };
        match self.sections.back_mut() {
            Some(last)
                if last.deadline.is_never() && deadline.is_never() && last.end == self.wire_end =>
            {
                last.end = end;
            }
            _ => self.sections.push_back(Section {
                start: self.wire_end,
                end,
                deadline,
            }),
        }
        self.wire_end = end;
        self.renew_lifetime();
        Ok(())
    }

    /// Removes everything from `end` on.
    pub(crate) fn truncate(&mut self, end: u64) {
        self.wire_end = self.wire(end);
        let wire_end = self.wire_end;
        while self
            .sections
            .back()
            .is_some_and(|section| section.start >= wire_end)
        {
            self.sections.pop_back();
        }
        if let Some(last) = self.sections.back_mut() {
            last.end = last.end.min(wire_end);
        }
        self.renew_lifetime();
    }

    // ---------------------------------------------------------------- the lifetime timer

    /// Subtracts half a round trip from the deadlines that refer to the receiver.
    pub(crate) fn on_round_trip(&mut self, smoothed: impl FnOnce() -> Option<Span>) {
        if self.config.clock == DeadlineClock::Receiver {
            self.margin = smoothed().unwrap_or(Span::ZERO) / 2;
            self.renew_lifetime();
        }
    }

    /// How much earlier than its deadline a section expires.
    pub(crate) const fn margin(&self) -> Span {
        self.margin
    }

    /// When the lifetime timer expires: the deadline of the oldest data that is not obsolete.
    #[inline]
    pub(crate) const fn lifetime(&self) -> Time {
        self.lifetime
    }

    /// Updates the timer after a new first section or a new margin.
    fn renew_lifetime(&mut self) {
        let first = self.sections.front();
        self.lifetime = first.map_or(Time::MAX, |section| self.expiry(section));
    }

    fn expiry(&self, section: &Section) -> Time {
        if section.deadline.is_never() {
            return Time::MAX;
        }
        let expiry = section.deadline.saturating_sub(self.margin);
        match &self.ticks {
            Some(ticks) => ticks.next_tick(expiry),
            None => expiry,
        }
    }

    /// Handles an expiry of the lifetime timer (figure 1): removes expired sections from the list,
    /// remembers their outstanding bytes, and moves the window to the lowest number that is not
    /// obsolete.
    pub(crate) fn on_lifetime(&mut self, now: Time, stream: Standing) -> Moved {
        let mut end = stream.end;
        let old = self.obsolete.max(stream.una);
        while let Some(section) = self.sections.front().copied()
            && self.expiry(&section) <= now
        {
            self.sections.pop_front();
            let fresh = stream.max.max(1);
            let fresh_wire = self.wire(fresh);
            if fresh_wire < section.end {
                let from = fresh_wire.max(section.start);
                end -= section.end - from;
                self.jump(stream.una, fresh, from, section.end);
                self.obsolete = fresh;
            } else {
                self.obsolete = self.obsolete.max(self.offset(section.end));
            }
            if section.end > self.confirmed {
                self.statistics.expired += 1;
            }
        }
        self.renew_lifetime();
        if self.config.blind_spot {
            self.floor = self.obsolete;
        }
        self.statistics.obsolete_bytes += self.obsolete.saturating_sub(old);
        self.moved_at = now;
        let next = stream.next.max(self.obsolete);
        if stream.next < self.obsolete {
            // As much stays outstanding as before.
            self.free.insert(stream.next..self.obsolete, ());
            self.abandon_free(stream.una);
        }
        Moved { next, end }
    }

    /// Passes over expired data that would be sent next, while older data is current. Returns the
    /// offset after the last byte to send.
    pub(crate) fn discard_stale(&mut self, now: Time, stream: Standing) -> u64 {
        let mut end = stream.end;
        if self.is_in_order && now < self.lifetime {
            return end;
        }
        loop {
            let fresh = self.wire(stream.max);
            let at = self
                .sections
                .partition_point(|section| section.end <= fresh);
            let Some(section) = self.sections.get(at).copied() else {
                return end;
            };
            if self.expiry(&section) > now {
                return end;
            }
            let from = fresh.max(section.start);
            end -= section.end - from;
            self.jump(stream.una, stream.max, from, section.end);
            self.statistics.expired += u64::from(from == section.start);
            if from == section.start {
                self.sections.remove(at);
            } else if let Some(section) = self.sections.get_mut(at) {
                section.end = from;
            }
            self.renew_lifetime();
        }
    }

    fn jump(&mut self, una: u64, at: u64, from: u64, to: u64) {
        self.statistics.discarded_bytes += to - from;
        match self.jumps.back_mut() {
            Some(last) if last.at == at => last.to = to,
            _ => {
                self.statistics.jumps += 1;
                self.jumps.push_back(Jump { at, from, to });
            }
        }
        self.last = self.jumps.back().copied().unwrap_or(self.last);
        self.find_here(una);
    }

    /// Finds the stretch of the acknowledgement after it moved to `una` or after another jump.
    /// Keeps some passed jumps for late acknowledgements.
    fn find_here(&mut self, una: u64) {
        while self
            .jumps
            .get(KEPT_JUMPS)
            .is_some_and(|later| later.at <= una)
            && let Some(jump) = self.jumps.pop_front()
        {
            self.base_skip = jump.to - jump.at;
        }
        self.here = self.stretch_of(una);
    }

    /// Whether all data to send is current; the windows alone then decide.
    #[inline]
    pub(crate) fn is_quiet(&self, now: Time) -> bool {
        self.is_in_order && now < self.lifetime
    }

    // ---------------------------------------------------------------- the logical window

    /// The offset at which the congestion window begins: the oldest outstanding one, moved up by
    /// the number of free offsets after it, and down by the number of held ones. The distance from
    /// there to the highest sent offset is the number of outstanding or held bytes.
    #[inline]
    pub(crate) fn base(&self, una: u64) -> u64 {
        let first = una - self.held;
        if self.free.as_slice().is_empty() {
            first
        } else {
            first + self.count_free(una, u64::MAX)
        }
    }

    /// The offset at which the peer's window begins. The peer compensates only for bytes reported
    /// as missing.
    #[inline]
    pub(crate) fn peer_base(&self, una: u64) -> u64 {
        let first = una - self.held;
        if self.free.as_slice().is_empty() {
            first
        } else {
            first + self.count_free(una, self.floor)
        }
    }

    /// Whether data that is not outstanding takes up the window.
    #[inline]
    pub(crate) fn holds_any(&self) -> bool {
        self.held > 0
    }

    /// Releases all held window space, because a timeout marks everything in the window as lost.
    pub(crate) fn release_held(&mut self) {
        self.held = 0;
    }

    /// The number of free offsets in `[start, end)`.
    #[inline(never)]
    pub(crate) fn count_free(&self, start: u64, end: u64) -> u64 {
        self.free.covered(start..end.max(start))
    }

    /// The number of free offsets in `[start, end)` that arrived according to `acknowledged_below`,
    /// which counts up to an offset: data marked lost may have arrived after all.
    pub(crate) fn count_free_arrived(
        &self,
        start: u64,
        end: u64,
        acknowledged_below: impl Fn(u64) -> u64,
    ) -> u64 {
        let free = self.free.ending_after(start).iter();
        free.take_while(|range| range.0 < end)
            .map(|&(from, to, ())| {
                acknowledged_below(to.min(end)) - acknowledged_below(from.max(start))
            })
            .sum()
    }

    /// The same up to the last offset reported as missing: the peer does not compensate for these
    /// offsets.
    pub(crate) fn count_not_missing(
        &self,
        una: u64,
        acknowledged_below: impl Fn(u64) -> u64,
    ) -> u64 {
        self.count_free_arrived(una, self.floor, acknowledged_below)
    }

    /// Reports free offsets as abandoned once no earlier data may still arrive. Otherwise, nothing
    /// would report the data that a timeout marked lost.
    fn abandon_free(&mut self, una: u64) {
        while let Some(&(from, to, ())) = self.free.ending_after(una.max(self.floor)).first()
            && from <= una.max(self.floor)
        {
            self.floor = to;
        }
    }

    /// The offset at which sending restarts when everything outstanding is marked lost.
    #[inline]
    pub(crate) fn lowest_current(&self, una: u64) -> u64 {
        una.max(self.obsolete)
    }

    #[inline]
    pub(crate) fn is_obsolete(&self, offset: u64) -> bool {
        offset < self.obsolete
    }

    /// The offset below which an acknowledgement gives no round-trip sample
    /// ([`TimelineConfig::samples_obsolete`]).
    pub(crate) const fn sampled_from(&self) -> u64 {
        if self.config.samples_obsolete {
            0
        } else {
            self.obsolete
        }
    }

    /// Abandons obsolete data when everything outstanding is marked lost.
    pub(crate) fn abandon_obsolete(&mut self, una: u64) {
        self.floor = self.obsolete;
        self.answered = 0;
        self.free.insert(una..self.obsolete, ());
    }

    pub(crate) fn begin_recovery(&mut self) {
        self.answered = 0;
        self.retransmitted = 0;
        self.has_passed = false;
    }

    /// Records that this recovery retransmitted lost data up to `end`.
    pub(crate) fn on_retransmitted(&mut self, end: u64) {
        self.retransmitted = end;
    }

    /// Whether an acknowledgement that moves from `una` answers a transmission of this recovery.
    /// Obsolete data is not retransmitted, and the packets in flight after it are acknowledged one
    /// by one. Without the blind spot, the receiver passes over nothing before the loss was
    /// answered, so every advance is an answer.
    pub(crate) fn is_repair(&mut self, una: u64) -> bool {
        if !self.config.blind_spot {
            return true;
        }
        let is_passed = self.is_obsolete(una);
        self.has_passed |= is_passed;
        !is_passed && (!self.has_passed || una < self.retransmitted)
    }

    /// Records the answer to the loss of an obsolete packet up to `lost_end`.
    pub(crate) fn on_obsolete_loss(&mut self, una: u64, lost_end: u64) {
        self.floor = self.floor.max(lost_end.min(self.obsolete));
        self.abandon_free(una);
    }

    /// The lowest current offset to send instead. With a scoreboard, the lowest that this recovery
    /// has not chosen.
    pub(crate) fn substitute(&self, by_scoreboard: bool) -> u64 {
        if by_scoreboard {
            self.obsolete.max(self.answered)
        } else {
            self.obsolete
        }
    }

    /// Records the retransmission of `length` bytes at the offset `start`.
    #[inline(never)]
    pub(crate) fn count_retransmission(&mut self, now: Time, start: u64, length: u64) {
        let wire = self.wire(start);
        let at = self.sections.partition_point(|section| section.end <= wire);
        let is_over = |section: &Section| section.start <= wire && self.expiry(section) <= now;
        if self.sections.get(at).is_some_and(is_over) {
            self.statistics.retransmitted_obsolete_bytes += length;
        }
    }

    /// Records that the answer, up to `end`, is data sent before.
    pub(crate) fn on_pseudo_retransmission(&mut self, end: u64) {
        self.answered = end;
        self.statistics.pseudo_retransmissions += 1;
    }

    /// Records that the answer, up to `end`, is new data: it replaces the lost bytes of `[start,
    /// lost_end)`.
    pub(crate) fn on_replacement(&mut self, (start, lost_end): (u64, u64), end: u64) {
        self.answered = end;
        self.free.insert(start..lost_end, ());
        self.statistics.replacements += 1;
    }

    /// Handles an acknowledgement up to a wire offset. Returns how it compares with the highest one
    /// so far.
    pub(crate) fn on_confirmed(&mut self, wire: u64) -> Ordering {
        let order = wire.cmp(&self.confirmed);
        self.confirmed = self.confirmed.max(wire);
        order
    }

    /// Handles the advance of the acknowledgement from the offset `before` to `una`. Returns how
    /// many of the passed offsets were free or are held. A packet that replaces a lost one is
    /// acknowledged on its own, and abandoned data is not acknowledged.
    pub(crate) fn on_advance(&mut self, before: u64, una: u64) -> u64 {
        let held = self.hold(before, una);
        let mut free = 0;
        if !self.free.as_slice().is_empty() {
            free = self.count_free(0, una);
            self.free.drop_below(una);
            self.abandon_free(una);
        }
        if una >= self.here.end {
            self.find_here(una);
        }
        let confirmed = self.wire(una);
        // A section before a jump at `una` is complete as well.
        while self
            .sections
            .front()
            .is_some_and(|section| section.end <= confirmed)
        {
            self.sections.pop_front();
            self.renew_lifetime();
        }
        free + held
    }

    /// Holds the window space of obsolete sections that an acknowledgement up to `una` passes, and
    /// returns its size. An acknowledgement of a section's data ends at its last byte at the
    /// latest, so an acknowledgement beyond that byte passes the section without acknowledging it.
    /// A section that was sent completely causes no jump, and its end is known only if no later
    /// section is obsolete.
    fn hold(&mut self, before: u64, una: u64) -> u64 {
        if !(self.config.blind_spot && self.config.holds_passed && self.is_obsolete(before)) {
            return 0;
        }
        let is_passed = |jump: &Jump| jump.at < una || jump.at == una && jump.from < self.confirmed;
        let passed = self.jumps.partition_point(is_passed);
        let jump = passed.checked_sub(1).and_then(|last| self.jumps.get(last));
        let end = if una > self.obsolete {
            self.obsolete
        } else {
            jump.map_or(before, |jump| jump.at)
        };
        let held = end.saturating_sub(before) - self.count_free(before, end);
        self.held += held;
        held
    }

    // ---------------------------------------------------------------- the option

    /// The number that `seq_update` reports: the byte after the abandoned data, or after the last
    /// jump at or before the acknowledgement, whichever is higher. However old the last jump, it
    /// stays close enough to the acknowledgement that the peer cannot mistake it for a number
    /// ahead.
    #[inline]
    fn expected(&self, una: u64) -> u64 {
        let nearest = self.wire(una).saturating_sub(MAX_REACH).max(1);
        let landing = if self.here.at <= una && una < self.here.end {
            self.here.wire
        } else {
            self.stretch_of(una).wire
        };
        landing.max(self.wire(self.floor)).max(nearest)
    }

    /// Whether the peer may not know the latest jump yet.
    pub(crate) fn is_unconfirmed(&self, una: u64) -> bool {
        self.confirmed < self.expected(una)
    }

    /// The update carried by a segment at the offset `start`.
    pub(crate) fn update(&self, una: u64, start: u64, initial: SeqNo) -> SeqUpdate {
        let expected = self.expected(una);
        let number = |wire: u64| initial + wire as u32;
        if self.last.to <= expected {
            return SeqUpdate::to(number(expected));
        }
        match self.jump_before(start) {
            Some(jump) if expected < jump.to => SeqUpdate {
                expected: number(expected),
                void_start: number(jump.from),
                void_end: number(jump.to),
            },
            _ => SeqUpdate::to(number(expected)),
        }
    }

    pub(crate) fn heap_memory(&self) -> usize {
        size_of::<Self>()
            + self.sections.capacity() * size_of::<Section>()
            + self.jumps.capacity() * size_of::<Jump>()
            + self.free.heap_memory()
    }
}

#[cfg(test)]
mod tests;
