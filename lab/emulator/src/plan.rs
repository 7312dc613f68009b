//! Plans when each packet is released: a link and the packets on it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

use comity_link::{ConfigError, DropCause, Link, LinkConfig, LinkSeed, Outcome, Packet};
use comity_units::{DataSize, Time};

use crate::counts::PacketCounts;

/// The memory of a held packet in addition to its bytes, rounded up.
const ENTRY: u64 = 128;

/// One direction: a link of `comity-link` and the packets on it, without a clock and sockets.
///
/// The host offers each packet with its arrival time, waits until [`next_due`](Self::next_due), and
/// then calls [`release`](Self::release) until it returns `None`. The link decides fates and times.
/// The lane holds the packets' bytes, up to a limit.
#[derive(Debug)]
pub struct Lane<T> {
    link: Link<u64>,
    /// The packets whose fate the link has not decided yet, by number.
    undecided: BTreeMap<u64, Held<T>>,
    pending: BinaryHeap<Pending<T>>,
    offered: u64,
    /// The number of the next release. It orders releases with the same due time.
    order: u64,
    held_bytes: u64,
    memory: u64,
    /// The earliest time at which a packet can still be offered.
    horizon: Time,
    counts: PacketCounts,
    record: Vec<Record>,
    record_most: usize,
}

/// A packet that leaves the lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release<T> {
    /// The time at which it arrives at the end of the link.
    pub due: Time,
    /// Its size on the wire.
    pub wire_bytes: u32,
    /// Whether the queue marked it (CE).
    pub marked: bool,
    /// Whether it is a duplicate of a packet that was already released.
    pub is_copy: bool,
    /// The offered item.
    pub item: T,
}

/// An offer and its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The time of the offer.
    pub at: Time,
    /// The packet.
    pub packet: Packet,
    /// Its fate; `None` while the link has not decided.
    pub outcome: Option<Outcome>,
}

#[derive(Debug)]
struct Held<T> {
    item: T,
    wire_bytes: u32,
    record: Option<usize>,
}

#[derive(Debug)]
struct Pending<T> {
    order: u64,
    release: Release<T>,
}

impl<T: Clone> Lane<T> {
    /// Creates a lane without packets. `seed` seeds its random streams, and `memory` bounds its
    /// packets.
    ///
    /// # Errors
    /// If the link's configuration is invalid.
    pub fn new(
        config: &LinkConfig,
        seed: impl Into<LinkSeed>,
        memory: DataSize,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            link: Link::new(config, seed)?,
            undecided: BTreeMap::new(),
            pending: BinaryHeap::new(),
            offered: 0,
            order: 0,
            held_bytes: 0,
            memory: memory.get(),
            horizon: Time::ZERO,
            counts: PacketCounts::default(),
            record: Vec::new(),
            record_most: 0,
        })
    }

    /// Keeps the first `most` offers and their outcomes, for [`record`](Self::record).
    #[must_use]
    pub const fn recording(mut self, most: usize) -> Self {
        self.record_most = most;
        self
    }

    /// Offers a packet that arrived at `at`, with an item that is no larger than the packet.
    ///
    /// If a later packet was offered or a later decision was made first, the packet counts as
    /// arriving at that time. A packet for which the memory has no room is not offered to the link.
    pub fn offer(&mut self, at: Time, packet: Packet, item: T) {
        self.counts.arrived.add(packet.bytes);
        let at = at.max(self.horizon);
        self.horizon = at;
        if !self.has_room(at, packet) {
            self.counts.dropped_memory.add(packet.bytes);
            return;
        }
        let record = (self.record.len() < self.record_most).then(|| {
            self.record.push(Record {
                at,
                packet,
                outcome: None,
            });
            self.record.len() - 1
        });
        let held = Held {
            item,
            wire_bytes: packet.bytes,
            record,
        };
        self.held_bytes += ENTRY + u64::from(packet.bytes);
        let number = self.offered;
        self.offered += 1;
        match self.link.offer(at, packet, number) {
            Some(outcome) => self.decide(outcome, held),
            None => {
                self.undecided.insert(number, held);
            }
        }
    }

    /// The time of the next work of [`release`](Self::release), unless another packet is offered
    /// before.
    pub fn next_due(&self) -> Option<Time> {
        let pending = self.pending.peek().map(|pending| pending.release.due);
        match (pending, self.link.next_wakeup()) {
            (Some(pending), Some(decision)) => Some(pending.min(decision)),
            (one, other) => one.or(other),
        }
        .filter(|due| !due.is_never())
    }

    /// The next packet that is due by `now`, in the order of due times.
    pub fn release(&mut self, now: Time) -> Option<Release<T>> {
        self.decide_until(now);
        if self.pending.peek()?.release.due > now || now.is_never() {
            return None;
        }
        let release = self.pending.pop()?.release;
        self.held_bytes -= ENTRY + u64::from(release.wire_bytes);
        if release.is_copy {
            self.counts.copies.add(release.wire_bytes);
        } else {
            self.counts.released.add(release.wire_bytes);
        }
        Some(release)
    }

    /// The number of packets by their fate.
    pub fn counts(&self) -> &PacketCounts {
        &self.counts
    }

    /// The memory of the packets on the link.
    pub fn held(&self) -> DataSize {
        DataSize::new(self.held_bytes)
    }

    /// The first offers, in order, up to the number that [`recording`](Self::recording) set.
    pub fn record(&self) -> &[Record] {
        &self.record
    }

    /// Whether the memory has room for another packet.
    fn has_room(&mut self, at: Time, packet: Packet) -> bool {
        // An analytic link remembers packets until they depart, including packets lost on the wire,
        // which are no longer held here.
        let known = match &mut self.link {
            Link::Analytic(link) => link.backlog(at).packets.unwrap_or(0),
            Link::Queued(_) => 0,
        };
        let held = self.held_bytes.max(u64::from(known) * ENTRY);
        held + ENTRY + u64::from(packet.bytes) <= self.memory
    }

    /// Makes the decisions of a link with a real queue up to `now`.
    fn decide_until(&mut self, now: Time) {
        if self.link.decides_at_once() {
            return;
        }
        self.horizon = self.horizon.max(now);
        while let Some(decision) = self.link.poll(self.horizon) {
            if let Some(held) = self.undecided.remove(&decision.token) {
                self.decide(decision.outcome, held);
            }
        }
    }

    fn decide(&mut self, outcome: Outcome, held: Held<T>) {
        let Held {
            item,
            wire_bytes,
            record,
        } = held;
        if let Some(record) = record.and_then(|index| self.record.get_mut(index)) {
            record.outcome = Some(outcome);
        }
        let tally = match outcome {
            Outcome::Carried(passage) => {
                if let Some(due) = passage.duplicate {
                    self.held_bytes += ENTRY + u64::from(wire_bytes);
                    self.schedule(Release {
                        due,
                        wire_bytes,
                        marked: passage.marked,
                        is_copy: true,
                        item: item.clone(),
                    });
                }
                self.schedule(Release {
                    due: passage.arrival,
                    wire_bytes,
                    marked: passage.marked,
                    is_copy: false,
                    item,
                });
                return;
            }
            Outcome::Lost { .. } => &mut self.counts.lost,
            Outcome::Dropped(DropCause::EarlyDrop) => &mut self.counts.dropped_early,
            Outcome::Dropped(DropCause::Loss) => &mut self.counts.dropped_loss,
            Outcome::Dropped(DropCause::QueueFull) => &mut self.counts.dropped_full,
            Outcome::Dropped(DropCause::TooLarge) => &mut self.counts.dropped_large,
        };
        tally.add(wire_bytes);
        self.held_bytes -= ENTRY + u64::from(wire_bytes);
    }

    fn schedule(&mut self, release: Release<T>) {
        let order = self.order;
        self.order += 1;
        self.pending.push(Pending { order, release });
    }
}

impl<T> Pending<T> {
    fn key(&self) -> (Time, bool, u64) {
        (self.release.due, self.release.is_copy, self.order)
    }
}

// The order is reversed, so that the first release is the greatest in the heap.
impl<T> Ord for Pending<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<T> PartialOrd for Pending<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Pending<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Pending<T> {}
