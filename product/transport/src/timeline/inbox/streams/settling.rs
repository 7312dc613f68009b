//! Settles sections: in order, at their deadlines or at the end of the connection, each whole or as
//! a gap.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use comity_units::Time;

use super::{Inbox, Ready, Slot};
use crate::timeline::clock::ClockMap;
use crate::timeline::inbox::spares::Spares;
use crate::timeline::inbox::{Delivery, GapReason};
use crate::timeline::section::{Deliver, Meta, Payload, StreamId};

/// The number of runs of gaps that each stream remembers, to distinguish late bytes from
/// duplicates.
const REMEMBERED_GAPS: usize = 256;

impl<P: Payload> Inbox<P> {
    /// Ends the connection: settles every known section, as a gap if it is not complete, and makes
    /// it ready at once.
    pub fn close(&mut self) {
        self.plays_out_until = None;
        // In the order of deadlines, across the streams. A section without a known deadline is
        // settled with its predecessor in the stream.
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

    /// As [`close`](Self::close), but with paced delivery each section is still delivered at its
    /// deadline, or at the local time `until` if that is earlier.
    pub fn play_out(&mut self, until: Time) {
        self.close();
        self.plays_out_until = (self.config.deliver == Deliver::Paced).then_some(until);
    }

    /// As [`close`](Self::close), but every undelivered section becomes a gap without any bytes,
    /// which frees its memory at once.
    pub fn discard(&mut self) {
        self.close();
        let closed = GapReason::Closed;
        for ready in core::mem::take(&mut self.ready) {
            let (stream, sections, reason) = match ready {
                Ready::Unseen(stream, sections, reason) => (stream, sections, reason),
                Ready::Delivery(Delivery::Gap(gap), _) => {
                    let sections = gap.section.0..gap.section.0 + gap.count;
                    (gap.stream, sections, gap.reason)
                }
                Ready::Delivery(Delivery::Section(section), _) => {
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

    /// Processes one changed stream, or one section whose deadline has passed. Returns whether
    /// there was one.
    pub(super) fn advance(&mut self, now: Time, clock: &ClockMap) -> bool {
        if let Some(stream) = self.changed.pop_first() {
            self.settle_first(stream);
            return true;
        }
        if let Some(&(deadline, stream, number)) = self.due.first()
            && clock.to_local(deadline) <= now
        {
            self.due.pop_first();
            self.on_due(stream, number);
            return true;
        }
        // The sender's clock shows less than it would have to.
        if let Some(&(latest, stream, number)) = self.latest.front()
            && latest <= now
        {
            self.latest.pop_front();
            if let Some(Slot::Open(assembly)) =
                { self.streams.get(&stream) }.and_then(|state| state.slots.get(&number))
            {
                self.due.remove(&(assembly.meta.deadline, stream, number));
            }
            self.on_due(stream, number);
            return true;
        }
        false
    }

    /// Handles a section whose deadline has passed.
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
            self.trim_latest();
            return;
        }
        // The sections that it needs are useless after it, even if their deadlines are later.
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

    /// Settles, in order, all sections that need not wait for a deadline.
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

    /// Without enforced deadlines, settles sections whose deadlines have passed and that will
    /// receive no more data. An unsettled earlier section holds them up, unless its deadline is
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

    /// Settles the unsettled ones among these sections, and makes them ready in order.
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
                    self.pieces -= assembly.have.as_slice().len();
                    let gap = assembly.dropped.map_or(gap, GapReason::Dropped);
                    let (had, latest) = (u64::from(assembly.have.total()), assembly.latest);
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
                    self.ready.push_back(Ready::Delivery(delivery, latest));
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
        self.trim_latest();
    }
}

/// Adds a run, or extends the last one.
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
