//! A link in the engine: the model, the packets on it and its counters.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use comity_link::{DropCause, Link, Outcome, Packet as LinkPacket, Passage, RateProfile};
use comity_units::{Rate, Span, Time};

use super::fingerprint::Fingerprint;
use super::packet::{Arena, NONE, Slot};
use crate::histogram::Distribution;
use crate::report::LinkReport;

/// The measured interval: statistics of a run count from `warmup` to `end`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    pub(super) warmup: Time,
    pub(super) end: Time,
}

impl Watch {
    /// How much of `[from, to]` lies in the measured interval.
    fn overlap(&self, from: Time, to: Time) -> Span {
        to.min(self.end).saturating_since(from.max(self.warmup))
    }

    /// The mean rate of a link over the measured interval.
    pub(super) fn mean_rate(&self, rate: &RateProfile) -> Option<Rate> {
        let watched = self.end.saturating_since(self.warmup).as_secs_f64();
        Some(Rate::from_bps_f64(self.capacity(rate)? * 8.0 / watched))
    }

    /// The bytes that a link can carry in the measured interval.
    fn capacity(&self, rate: &RateProfile) -> Option<f64> {
        let from = match rate {
            // An opportunity at the end of the warm-up serves packets whose service begins then.
            RateProfile::Deliveries(_) => {
                Time::from_nanos(self.warmup.as_nanos().saturating_sub(1))
            }
            _ => self.warmup,
        };
        rate.bytes_between(from, self.end)
    }

    /// The part of a transmission of `wire` bytes within the measured interval, in bytes. A trace
    /// does not show which bytes each opportunity carried, so only whole transmissions count.
    fn transmitted(&self, rate: &RateProfile, (start, departure): (Time, Time), wire: u32) -> f64 {
        let is_whole = start >= self.warmup && departure <= self.end;
        let wire = f64::from(wire);
        match rate {
            _ if is_whole => wire,
            RateProfile::Deliveries(_) => 0.0,
            _ => {
                let bytes = |from, to| rate.bytes_between(from, to).unwrap_or(0.0);
                let within = bytes(start.max(self.warmup), departure.min(self.end));
                (wire * within / bytes(start, departure)).min(wire)
            }
        }
    }
}

/// How much of its capacity a link used.
#[derive(Debug, Default)]
pub(super) struct Use {
    /// The bytes of all packets that left the queue in the measured interval.
    pub(super) carried_bytes: u64,
    /// Start, departure and size of transmissions across an edge of the measured interval.
    across: Vec<(Time, Time, u32)>,
}

impl Use {
    /// Adds the transmission of a packet of `wire` bytes.
    pub(super) fn add(&mut self, start: Time, departure: Time, wire: u32, watch: &Watch) {
        let (warmup, end) = (watch.warmup, watch.end);
        if departure > warmup && departure <= end {
            self.carried_bytes += u64::from(wire);
        }
        let is_across = |edge| start < edge && departure > edge;
        if is_across(warmup) || is_across(end) {
            self.across.push((start, departure, wire));
        }
    }

    /// The bytes transmitted in the measured interval as a share of what the rate allowed. A
    /// transmission across an edge of the interval counts for its part inside. `None` without a
    /// rate, or if the rate was always zero.
    pub(super) fn utilisation(&self, rate: &RateProfile, watch: &Watch) -> Option<f64> {
        let capacity = watch.capacity(rate).filter(|capacity| *capacity > 0.0)?;
        let mut used = self.carried_bytes as f64;
        for &(start, departure, wire) in &self.across {
            if departure <= watch.end {
                used -= f64::from(wire);
            }
            used += watch.transmitted(rate, (start, departure), wire);
        }
        // Departures are whole nanoseconds, so the sum can exceed the capacity by one of them.
        Some((used / capacity).min(1.0))
    }
}

/// Packets in flight on a link.
#[derive(Debug)]
enum OnTheWire {
    /// In the order of their arrivals, chained through the arena.
    Ordered { head: Slot, tail: Slot },
    /// In any order: by arrival, then by the order of the offers.
    Unordered(BinaryHeap<Reverse<(Time, u64, Slot)>>),
}

#[derive(Debug)]
pub(super) struct LinkState {
    pub(super) link: Link<Slot>,
    wire: OnTheWire,
    /// When the next packet arrives; [`Time::MAX`] with none on the wire.
    pub(super) next_arrival: Time,
    /// When the queue is served next.
    pub(super) next_service: Time,
    /// Whether it marks packets of ECN-capable senders instead of dropping them.
    pub(super) marks: bool,
    pub(super) hash: Fingerprint,
    /// How many paths lead over the link.
    pub(super) users: u32,
    counts: Counts,
}

/// The counters of a link. Derived counts are computed at the end.
#[derive(Debug, Default)]
struct Counts {
    offered: u64,
    used: Use,
    /// The sum over packets of the measured nanoseconds between offer and departure: the integral
    /// of the queue's length.
    queue_integral: u64,
    /// The queueing delays above zero.
    queueing_delay: Distribution,
    dropped_full: u64,
    dropped_early: u64,
    lost: u64,
    dropped_measured: u64,
    /// Packets dropped or lost that came from the destination of their flow.
    dropped_acks: u64,
    marked: u64,
    duplicated: u64,
    queued_at_end: u64,
    in_flight_at_end: u64,
    /// Packets that were dropped or lost before they used the link.
    refused: u64,
    /// Packets that used the link and were offered before the end of the warm-up.
    before_warmup: u64,
    /// Packets that a queued link still holds at the end.
    held: u64,
}

impl Counts {
    /// Counts a packet at the edge of the measured interval, or a marked one. The times are
    /// separate arguments, because a struct would be written to memory for every packet.
    #[cold]
    #[inline(never)]
    fn account_at_the_edge(
        &mut self,
        (offered_at, start, departure, arrival): (Time, Time, Time, Time),
        wire: u32,
        marked: bool,
        watch: &Watch,
    ) {
        if departure > watch.end {
            self.queued_at_end += 1;
        } else if arrival > watch.end {
            self.in_flight_at_end += 1;
        }
        self.marked += u64::from(marked);
        self.account_service(offered_at, start, departure, wire, watch);
    }

    /// Counts the link time of a packet.
    fn account_service(
        &mut self,
        offered_at: Time,
        start: Time,
        departure: Time,
        wire: u32,
        watch: &Watch,
    ) {
        self.used.add(start, departure, wire, watch);
        self.queue_integral += watch.overlap(offered_at, departure).as_nanos();
        if offered_at < watch.warmup {
            self.before_warmup += 1;
        } else if start > offered_at {
            self.record_queueing_delay(start.saturating_since(offered_at));
        }
    }

    /// A separate function, so that packets without queueing delay do not pay for it.
    #[inline(never)]
    fn record_queueing_delay(&mut self, delay: Span) {
        self.queueing_delay.record(delay);
    }

    /// Packets that the link carries or has carried.
    fn carried(&self) -> u64 {
        self.offered - self.dropped_full - self.dropped_early - self.lost - self.held
    }

    /// Packets, duplicates included, that arrived by the end.
    fn delivered(&self) -> u64 {
        self.carried() + self.held + self.duplicated - self.queued_at_end - self.in_flight_at_end
    }
}

impl LinkState {
    /// Creates a link; `makes_copies` if packets may arrive twice, `marks` if some arrive marked.
    pub(super) fn new(link: Link<Slot>, makes_copies: bool, marks: bool) -> Self {
        // A duplicate arrives between its original and the next packet. A next packet computed
        // ahead would reach the following link before the duplicate.
        let wire = if !makes_copies && link.keeps_order() {
            OnTheWire::Ordered {
                head: NONE,
                tail: NONE,
            }
        } else {
            OnTheWire::Unordered(BinaryHeap::new())
        };
        Self {
            link,
            wire,
            next_arrival: Time::MAX,
            next_service: Time::MAX,
            marks,
            hash: Fingerprint::default(),
            users: 0,
            counts: Counts::default(),
        }
    }

    /// Whether packets arrive in the order of their offers, and their fate is known at the offer.
    /// Only then may the next link be computed ahead.
    pub(super) fn is_predictable(&self) -> bool {
        self.decides_at_once() && matches!(self.wire, OnTheWire::Ordered { .. })
    }

    /// Whether the fate of a packet is known at the offer.
    pub(super) fn decides_at_once(&self) -> bool {
        self.link.decides_at_once()
    }

    /// Counts an offered packet.
    #[inline]
    pub(super) fn count_offer(&mut self) {
        self.counts.offered += 1;
    }

    /// Passes and counts a packet that can only wait. `None`, without an effect, for all other
    /// packets.
    #[inline(always)]
    pub(super) fn pass(
        &mut self,
        at: Time,
        (flow, wire): (u32, u32),
        watch: &Watch,
    ) -> Option<Passage> {
        let passage = self.link.offer_another(at, wire)?;
        self.count_offer();
        self.account_passage(at, (flow, wire), passage, watch);
        Some(passage)
    }

    /// Counts the passage of a packet that was offered at `offered_at`.
    #[inline(always)]
    pub(super) fn account_passage(
        &mut self,
        offered_at: Time,
        (flow, wire): (u32, u32),
        passage: Passage,
        watch: &Watch,
    ) {
        self.hash.add(passage.arrival.as_nanos(), flow);
        let counts = &mut self.counts;
        let (start, departure, arrival) = (passage.start, passage.departure, passage.arrival);
        if offered_at < watch.warmup || arrival > watch.end || passage.marked {
            let times = (offered_at, start, departure, arrival);
            counts.account_at_the_edge(times, wire, passage.marked, watch);
            return;
        }
        counts.used.carried_bytes += u64::from(wire);
        counts.queue_integral += departure.saturating_since(offered_at).as_nanos();
        if start > offered_at {
            counts.record_queueing_delay(start.saturating_since(offered_at));
        }
    }

    /// Counts the direction of a packet that does not arrive.
    pub(super) fn account_direction(&mut self, is_return: bool) {
        self.counts.dropped_acks += u64::from(is_return);
    }

    /// Counts a packet offered at `offered_at` that does not arrive.
    pub(super) fn account_loss(
        &mut self,
        offered_at: Time,
        (flow, wire): (u32, u32),
        outcome: Outcome,
        watch: &Watch,
    ) {
        let counts = &mut self.counts;
        counts.dropped_measured += u64::from(offered_at >= watch.warmup);
        match outcome {
            Outcome::Carried(_) => {}
            Outcome::Lost {
                start, departure, ..
            } => {
                self.hash.add(!departure.as_nanos(), flow);
                counts.lost += 1;
                counts.account_service(offered_at, start, departure, wire, watch);
            }
            Outcome::Dropped(cause) => {
                self.hash.add(!offered_at.as_nanos(), flow);
                counts.refused += 1;
                match cause {
                    DropCause::QueueFull => counts.dropped_full += 1,
                    DropCause::EarlyDrop => counts.dropped_early += 1,
                    DropCause::Loss | DropCause::TooLarge => counts.lost += 1,
                }
            }
        }
    }

    pub(super) fn count_duplicate(&mut self, arrival: Time, watch: &Watch) {
        self.counts.duplicated += 1;
        self.counts.in_flight_at_end += u64::from(arrival > watch.end);
    }

    /// Packets that the link carries or has carried.
    pub(super) fn carried(&self) -> u64 {
        self.counts.carried()
    }

    /// Counts packets that a queued link still holds when the run ends.
    pub(super) fn count_held(&mut self, packets: u64) {
        self.counts.queued_at_end += packets;
        self.counts.held += packets;
    }

    /// Puts a packet on the wire. Returns whether it is the next one to arrive.
    #[inline(always)]
    pub(super) fn put(&mut self, arena: &mut Arena, slot: Slot, order: u64) -> bool {
        let arrival = arena.arrival(slot);
        match &mut self.wire {
            OnTheWire::Ordered { head, tail } => {
                let last = core::mem::replace(tail, slot);
                if *head == NONE {
                    *head = slot;
                } else {
                    arena.link(last, slot);
                }
            }
            OnTheWire::Unordered(heap) => heap.push(Reverse((arrival, order, slot))),
        }
        let is_next = arrival < self.next_arrival;
        if is_next {
            self.next_arrival = arrival;
        }
        is_next
    }

    /// The packet that arrives next.
    #[inline]
    pub(super) fn first(&self) -> Option<Slot> {
        let first = match &self.wire {
            OnTheWire::Ordered { head, .. } => *head,
            OnTheWire::Unordered(heap) => heap.peek().map_or(NONE, |Reverse((_, _, slot))| *slot),
        };
        (first != NONE).then_some(first)
    }

    /// Removes the packet that arrives next.
    #[inline(always)]
    pub(super) fn take(&mut self, arena: &Arena) -> Option<Slot> {
        let slot = self.first()?;
        match &mut self.wire {
            OnTheWire::Ordered { head, .. } => *head = arena.next(slot),
            OnTheWire::Unordered(heap) => {
                heap.pop();
            }
        }
        self.next_arrival = self.first().map_or(Time::MAX, |next| arena.arrival(next));
        Some(slot)
    }

    pub(super) fn memory(&self) -> usize {
        let wire = match &self.wire {
            OnTheWire::Ordered { .. } => 0,
            OnTheWire::Unordered(heap) => heap.capacity() * size_of::<(Time, u64, Slot)>(),
        };
        size_of::<Self>() + wire + self.counts.queueing_delay.memory()
    }

    /// The report of the link over the measured interval.
    pub(super) fn report(&self, name: &str, rate: &RateProfile, watch: &Watch) -> LinkReport {
        let counts = &self.counts;
        let seconds = watch.end.saturating_since(watch.warmup).as_secs_f64();
        let per_second = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
        let queueing_delay = counts
            .queueing_delay
            .clone()
            .with_zeros(counts.offered - counts.refused - counts.before_warmup - counts.held);
        LinkReport {
            name: name.to_owned(),
            offered_packets: counts.offered,
            delivered_packets: counts.delivered(),
            dropped_full: counts.dropped_full,
            dropped_early: counts.dropped_early,
            lost: counts.lost,
            dropped_measured: counts.dropped_measured,
            dropped_acks: counts.dropped_acks,
            marked: counts.marked,
            duplicated: counts.duplicated,
            queued_at_end: counts.queued_at_end,
            in_flight_at_end: counts.in_flight_at_end,
            carried_bytes: counts.used.carried_bytes,
            utilisation: counts.used.utilisation(rate, watch),
            mean_queue_packets: per_second(counts.queue_integral as f64 / 1e9),
            queueing_delay: queueing_delay.summary(),
            queueing_delay_distribution: queueing_delay,
        }
    }
}

/// The properties of a packet that the link models use.
#[inline]
pub(super) fn link_view(wire: u32, ecn_capable: bool, flow: u64) -> LinkPacket {
    LinkPacket {
        bytes: wire,
        ecn_capable,
        flow,
    }
}
