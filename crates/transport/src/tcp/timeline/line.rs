//! The sender's side of a time-lined stream: the list of deadlines, the jumps, and what obsolete
//! data holds.

use alloc::collections::VecDeque;
use core::cmp::Ordering;

use comity_units::{SeqNo, Span, Time};

use super::super::ranges::Ranges;
use super::{
    DeadlineClock, MAX_REACH, SectionError, SeqUpdate, TimelineConfig, TimelineStatistics,
};

/// How many jumps below the acknowledgement are kept.
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
    /// The place at which it lies, which belongs to the byte behind it.
    at: u64,
    /// The wire offsets of the first discarded byte and of the byte behind the last.
    from: u64,
    to: u64,
}

/// Places between two jumps, which numbers follow without a hole.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// Its first place, and the wire offset of that.
    at: u64,
    wire: u64,
    /// The place of the next jump; `u64::MAX` for none.
    end: u64,
}

/// Where the stream stands, in places.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Standing {
    pub(in crate::tcp) una: u64,
    pub(in crate::tcp) next: u64,
    pub(in crate::tcp) max: u64,
    pub(in crate::tcp) end: u64,
}

/// What became of the stream when the lifetime timer expired, in places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) struct Moved {
    pub(in crate::tcp) next: u64,
    pub(in crate::tcp) end: u64,
}

/// The time-line list, and the translation between places and wire offsets.
///
/// Invariants: sections ascend and do not overlap; jumps ascend in `at` and in wire offsets, with
/// sent bytes between any two; `floor ≤ obsolete ≤ max` of the stream; nothing from `obsolete` on
/// is obsolete, nor free; all that is sent next or retransmitted in order lies behind what is free.
#[derive(Debug)]
pub(in crate::tcp) struct Line {
    config: TimelineConfig,
    sections: VecDeque<Section>,
    jumps: VecDeque<Jump>,
    /// A copy of the last jump; of no length at the place 0 before the first.
    last: Jump,
    /// The stretch that the acknowledgement has come to. With the one behind the last jump, in
    /// which new data is sent, these are the places that nearly every segment asks for; the list is
    /// searched for others.
    here: Stretch,
    /// By how much wire offsets are ahead of places below the first jump.
    base_skip: u64,
    /// The wire offset after the last byte given.
    wire_end: u64,
    /// The highest wire offset that the peer acknowledged.
    confirmed: u64,
    /// Every place below is obsolete or acknowledged.
    obsolete: u64,
    /// Every place below is given up towards the peer. With the blind spot this is `obsolete`.
    floor: u64,
    /// Outstanding obsolete places that hold nothing any more: another packet took the place, or a
    /// timeout took them for lost, and they are not retransmitted.
    free: Ranges,
    /// The place after the last packet of this recovery that answered a loss of obsolete data.
    repeated: u64,
    /// The place after the last packet of this recovery that was retransmitted as it was.
    resent: u64,
    /// In this recovery an acknowledgement has led over obsolete data: the receiver may have
    /// jumped.
    has_passed: bool,
    /// When the window was moved last.
    pub(in crate::tcp) moved_at: Time,
    /// What is taken off a deadline.
    margin: Span,
    /// When the lifetime timer expires.
    lifetime: Time,
    /// Whether no deadline of the list is earlier than the one before.
    is_in_order: bool,
    pub(in crate::tcp) statistics: TimelineStatistics,
}

impl Line {
    pub(in crate::tcp) fn new(config: TimelineConfig) -> Self {
        Self {
            config,
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
            free: Ranges::new(),
            repeated: 0,
            resent: 0,
            has_passed: false,
            moved_at: Time::ZERO,
            margin: Span::ZERO,
            lifetime: Time::MAX,
            is_in_order: true,
            statistics: TimelineStatistics::default(),
        }
    }

    // ---------------------------------------------------------------- translation

    /// The wire offset of a place. The place of a jump is that of the byte behind it.
    #[inline]
    pub(in crate::tcp) fn wire(&self, place: u64) -> u64 {
        if self.last.at <= place {
            self.last.to + (place - self.last.at)
        } else if self.here.at <= place && place < self.here.end {
            self.here.wire + (place - self.here.at)
        } else {
            self.wire_of_another(place)
        }
    }

    #[inline(never)]
    fn wire_of_another(&self, place: u64) -> u64 {
        let stretch = self.stretch_of(place);
        stretch.wire + (place - stretch.at)
    }

    /// The stretch that a place lies in.
    fn stretch_of(&self, place: u64) -> Stretch {
        let (passed, ahead) = self.around(|jump| jump.at <= place);
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

    /// The last jump at or before a place.
    fn jump_before(&self, place: u64) -> Option<&Jump> {
        self.around(|jump| jump.at <= place).0
    }

    /// The last jump that is passed, and the first that is not.
    fn around(&self, is_passed: impl Fn(&Jump) -> bool) -> (Option<&Jump>, Option<&Jump>) {
        let after = self.jumps.partition_point(is_passed);
        let passed = after.checked_sub(1).and_then(|last| self.jumps.get(last));
        (passed, self.jumps.get(after))
    }

    /// The place of a wire offset; that of a discarded byte is the place of its jump.
    #[inline]
    pub(in crate::tcp) fn place(&self, wire: u64) -> u64 {
        let here = self.here;
        if here.wire <= wire && wire - here.wire <= here.end - here.at {
            return here.at + (wire - here.wire);
        }
        self.place_of_another(wire)
    }

    #[inline(never)]
    fn place_of_another(&self, wire: u64) -> u64 {
        let (passed, ahead) = self.around(|jump| jump.to <= wire);
        let place = match passed {
            Some(jump) => jump.at + (wire - jump.to),
            None => wire.saturating_sub(self.base_skip),
        };
        ahead.map_or(place, |next| place.min(next.at))
    }

    /// The place after the section that `place` lies in.
    pub(in crate::tcp) fn section_end(&self, place: u64) -> u64 {
        let wire = self.wire(place);
        if let Some(first) = self.sections.front()
            && first.start <= wire
            && wire < first.end
        {
            return place + (first.end - wire);
        }
        let at = self.sections.partition_point(|section| section.end <= wire);
        self.sections
            .get(at)
            .map_or(u64::MAX, |section| place + (section.end - wire))
    }

    // ---------------------------------------------------------------- application

    /// Takes a section of `bytes` bytes.
    pub(in crate::tcp) fn add(&mut self, bytes: u64, deadline: Time) -> Result<(), SectionError> {
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

    /// Forgets what lies from the place `end` on.
    pub(in crate::tcp) fn truncate(&mut self, end: u64) {
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

    /// Takes half a round trip off the deadlines that are meant at the receiver.
    pub(in crate::tcp) fn on_round_trip(&mut self, smoothed: impl FnOnce() -> Option<Span>) {
        if self.config.clock == DeadlineClock::Receiver {
            self.margin = smoothed().unwrap_or(Span::ZERO) / 2;
            self.renew_lifetime();
        }
    }

    /// When the lifetime timer expires: the deadline of the oldest data that is not obsolete.
    #[inline]
    pub(in crate::tcp) const fn lifetime(&self) -> Time {
        self.lifetime
    }

    /// The list begins with another section, or the margin is another.
    fn renew_lifetime(&mut self) {
        let first = self.sections.front();
        self.lifetime = first.map_or(Time::MAX, |section| self.expiry(section));
    }

    fn expiry(&self, section: &Section) -> Time {
        if section.deadline.is_never() {
            return Time::MAX;
        }
        section.deadline.saturating_sub(self.margin)
    }

    /// The lifetime timer expired (figure 1): takes expired sections off the list, keeps what is
    /// outstanding of them in mind, and moves the window to the lowest number that is not obsolete.
    pub(in crate::tcp) fn on_lifetime(&mut self, now: Time, stream: Standing) -> Moved {
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
                self.obsolete = self.obsolete.max(self.place(section.end));
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
            self.free.insert(stream.next, self.obsolete, ());
            self.give_up_free(stream.una);
        }
        Moved { next, end }
    }

    /// Passes over what would be sent next and is worth nothing any more, while older data is
    /// current. Returns the place after the last byte that there is to send.
    pub(in crate::tcp) fn discard_stale(&mut self, now: Time, stream: Standing) -> u64 {
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

    /// The acknowledgement stands at the place `una`, or there is another jump. Of those that are
    /// passed, some are kept for acknowledgements that come late.
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

    /// Whether all that there is to send is current, so that the windows alone decide.
    #[inline]
    pub(in crate::tcp) fn is_quiet(&self, now: Time) -> bool {
        self.is_in_order && now < self.lifetime
    }

    // ---------------------------------------------------------------- the logical window

    /// The place that the congestion window is counted from: the oldest outstanding one, moved up
    /// by the free ones behind it, so that as many places are outstanding as lie between it and the
    /// highest that was sent.
    #[inline]
    pub(in crate::tcp) fn base(&self, una: u64) -> u64 {
        if self.free.as_slice().is_empty() {
            una
        } else {
            una + self.count_free(una, u64::MAX)
        }
    }

    /// The place that the peer's window is counted from. The peer makes up only for what it was
    /// told will not come.
    #[inline]
    pub(in crate::tcp) fn peer_base(&self, una: u64) -> u64 {
        if self.free.as_slice().is_empty() {
            una
        } else {
            una + self.count_free(una, self.floor)
        }
    }

    /// How many of the places in `[start, end)` are free.
    #[inline(never)]
    pub(in crate::tcp) fn count_free(&self, start: u64, end: u64) -> u64 {
        self.free.covered(start..end.max(start))
    }

    /// How many of the free places in `[start, end)` are so according to `acknowledged_below`,
    /// which counts them up to a place: what was taken for lost may have arrived after all.
    pub(in crate::tcp) fn count_free_arrived(
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

    /// The same below the place up to which the peer was told what will not come: for these it does
    /// not make up.
    pub(in crate::tcp) fn count_not_missing(
        &self,
        una: u64,
        acknowledged_below: impl Fn(u64) -> u64,
    ) -> u64 {
        self.count_free_arrived(una, self.floor, acknowledged_below)
    }

    /// Gives free places up towards the peer once nothing lies before them that may still arrive:
    /// nothing else would tell it of those whose loss was answered with a timeout.
    fn give_up_free(&mut self, una: u64) {
        while let Some(&(from, to, ())) = self.free.ending_after(una.max(self.floor)).first()
            && from <= una.max(self.floor)
        {
            self.floor = to;
        }
    }

    /// The place that sending begins again with when everything outstanding is taken for lost.
    #[inline]
    pub(in crate::tcp) fn lowest_current(&self, una: u64) -> u64 {
        una.max(self.obsolete)
    }

    /// Whether the oldest outstanding place is obsolete.
    #[inline]
    pub(in crate::tcp) fn is_obsolete(&self, place: u64) -> bool {
        place < self.obsolete
    }

    /// Everything outstanding is taken for lost: obsolete data is given up.
    pub(in crate::tcp) fn give_up_obsolete(&mut self, una: u64) {
        self.floor = self.obsolete;
        self.repeated = 0;
        self.free.insert(una, self.obsolete, ());
    }

    /// A recovery begins.
    pub(in crate::tcp) fn begin_recovery(&mut self) {
        self.repeated = 0;
        self.resent = 0;
        self.has_passed = false;
    }

    /// In a recovery, what was lost up to `end` left again.
    pub(in crate::tcp) fn on_resent(&mut self, end: u64) {
        self.resent = end;
    }

    /// In a recovery, an acknowledgement leads on from `una`. Whether it answers what this recovery
    /// sent: what is obsolete is not retransmitted, and behind it the packets that were in flight
    /// are acknowledged one by one. Without the blind spot the receiver passes over nothing whose
    /// loss was not answered, so that whatever leads on is led on by an answer.
    pub(in crate::tcp) fn is_repair(&mut self, una: u64) -> bool {
        if !self.config.blind_spot {
            return true;
        }
        let is_passed = self.is_obsolete(una);
        self.has_passed |= is_passed;
        !is_passed && (!self.has_passed || una < self.resent)
    }

    /// An obsolete packet up to `lost_end` was lost, and this is the answer.
    pub(in crate::tcp) fn on_obsolete_loss(&mut self, una: u64, lost_end: u64) {
        self.floor = self.floor.max(lost_end.min(self.obsolete));
        self.give_up_free(una);
    }

    /// The lowest current place to send in its stead; with a scoreboard, the lowest that was not
    /// chosen before in this recovery.
    pub(in crate::tcp) fn substitute(&self, by_scoreboard: bool) -> u64 {
        if by_scoreboard {
            self.obsolete.max(self.repeated)
        } else {
            self.obsolete
        }
    }

    /// `length` bytes at the place `start` leave again.
    #[inline(never)]
    pub(in crate::tcp) fn on_repeated(&mut self, now: Time, start: u64, length: u64) {
        let wire = self.wire(start);
        let at = self.sections.partition_point(|section| section.end <= wire);
        let is_over = |section: &Section| section.start <= wire && self.expiry(section) <= now;
        if self.sections.get(at).is_some_and(is_over) {
            self.statistics.retransmitted_obsolete_bytes += length;
        }
    }

    /// The answer had been sent before.
    pub(in crate::tcp) fn on_pseudo_retransmission(&mut self, end: u64) {
        self.repeated = end;
        self.statistics.pseudo_retransmissions += 1;
    }

    /// The answer, up to `end`, had not been sent before: it takes the place of what was lost of
    /// `[start, lost_end)`.
    pub(in crate::tcp) fn on_replacement(&mut self, (start, lost_end): (u64, u64), end: u64) {
        self.repeated = end;
        self.free.insert(start, lost_end, ());
        self.statistics.replacements += 1;
    }

    /// The peer acknowledged up to a wire offset. How that compares with the most that it ever did.
    pub(in crate::tcp) fn on_confirmed(&mut self, wire: u64) -> Ordering {
        let order = wire.cmp(&self.confirmed);
        self.confirmed = self.confirmed.max(wire);
        order
    }

    /// The acknowledgement moved on to the place `una`. Returns how many of the places that it
    /// passed were free: what took the place of a lost packet is acknowledged on its own, and what
    /// was given up is not acknowledged.
    pub(in crate::tcp) fn on_advance(&mut self, una: u64) -> u64 {
        let mut free = 0;
        if !self.free.as_slice().is_empty() {
            free = self.count_free(0, una);
            self.free.drop_below(una);
            self.give_up_free(una);
        }
        if una >= self.here.end {
            self.find_here(una);
        }
        let confirmed = self.wire(una);
        // A section that lies ahead of a jump at `una` is done as well.
        while self
            .sections
            .front()
            .is_some_and(|section| section.end <= confirmed)
        {
            self.sections.pop_front();
            self.renew_lifetime();
        }
        free
    }

    // ---------------------------------------------------------------- the option

    /// The lowest number that may still be sent, as far as the peer may know it: where the first
    /// section begins that is not obsolete, or what an acknowledged byte is followed by. However
    /// long ago the last jump, never so far behind what was acknowledged that it could be taken for
    /// one ahead.
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

    /// Whether the peer does not know yet how far the stream has jumped.
    pub(in crate::tcp) fn is_unconfirmed(&self, una: u64) -> bool {
        self.confirmed < self.expected(una)
    }

    /// What a segment carries that begins at the place `start`.
    pub(in crate::tcp) fn update(&self, una: u64, start: u64, initial: SeqNo) -> SeqUpdate {
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

    pub(in crate::tcp) fn heap_memory(&self) -> usize {
        size_of::<Self>()
            + self.sections.capacity() * size_of::<Section>()
            + self.jumps.capacity() * size_of::<Jump>()
            + self.free.heap_memory()
    }
}
