//! Packets in flight, and the arena that holds them.

use comity_transport::tcp::Segment;
use comity_units::Time;

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// The flow that it belongs to, as an index into the network's flows.
    pub flow: u32,
    /// Its size on the wire in bytes.
    pub wire: u32,
    /// When its endpoint sent it.
    pub sent_at: Time,
    /// The path entry that it goes to next.
    pub(super) at: u32,
    /// Whether it goes from the flow's destination to its source.
    pub is_return: bool,
    /// What it carries.
    pub body: Body,
}

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// A datagram with its number within the flow.
    Datagram(u64),
    /// A TCP segment.
    Tcp(Segment),
}

/// The index of a packet in the arena.
pub(super) type Slot = u32;

/// No packet.
pub(super) const NONE: Slot = Slot::MAX;

#[derive(Debug)]
struct Entry {
    packet: Packet,
    arrival: Time,
    /// The packet behind it on its link, or the next free slot.
    next: Slot,
}

/// Holds all packets in flight, each link's as a chain through the arena.
///
/// The memory is that of the most packets ever in flight at once; free slots are reused last in, first out,
/// so that a small simulation stays in the cache.
#[derive(Debug)]
pub(super) struct Arena {
    entries: Vec<Entry>,
    free: Slot,
    in_use: u32,
    peak: u32,
}

impl Default for Arena {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: NONE,
            in_use: 0,
            peak: 0,
        }
    }
}

impl Arena {
    /// Stores a packet.
    #[inline]
    pub(super) fn insert(&mut self, packet: Packet) -> Slot {
        let arrival = packet.sent_at;
        self.in_use += 1;
        self.peak = self.peak.max(self.in_use);
        let slot = self.free;
        if let Some(entry) = self.entries.get_mut(slot as usize) {
            self.free = entry.next;
            *entry = Entry {
                packet,
                arrival,
                next: NONE,
            };
            return slot;
        }
        self.entries.push(Entry {
            packet,
            arrival,
            next: NONE,
        });
        (self.entries.len() - 1) as Slot
    }

    /// Gives a slot back. Its packet can be read until the next insertion.
    #[inline]
    pub(super) fn free(&mut self, slot: Slot) {
        self.in_use -= 1;
        self.entries[slot as usize].next = self.free;
        self.free = slot;
    }

    #[inline]
    pub(super) fn packet(&self, slot: Slot) -> &Packet {
        &self.entries[slot as usize].packet
    }

    /// Puts a packet to its next place: the path entry behind the link that it travels on, and the time when
    /// it comes out there.
    #[inline]
    pub(super) fn place(&mut self, slot: Slot, at: u32, arrival: Time) {
        let entry = &mut self.entries[slot as usize];
        entry.packet.at = at;
        entry.arrival = arrival;
        entry.next = NONE;
    }

    #[inline]
    pub(super) fn arrival(&self, slot: Slot) -> Time {
        self.entries[slot as usize].arrival
    }

    #[inline]
    pub(super) fn next(&self, slot: Slot) -> Slot {
        self.entries[slot as usize].next
    }

    #[inline]
    pub(super) fn link(&mut self, slot: Slot, next: Slot) {
        self.entries[slot as usize].next = next;
    }

    pub(super) fn peak(&self) -> u32 {
        self.peak
    }

    /// The flows of the packets that are still stored.
    pub(super) fn flows_in_use(&self) -> Vec<u32> {
        let mut is_free = vec![false; self.entries.len()];
        let mut free = self.free;
        while let Some(entry) = self.entries.get(free as usize) {
            is_free[free as usize] = true;
            free = entry.next;
        }
        let used = self
            .entries
            .iter()
            .zip(is_free)
            .filter(|(_, is_free)| !is_free);
        used.map(|(entry, _)| entry.packet.flow).collect()
    }

    pub(super) fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }
}
