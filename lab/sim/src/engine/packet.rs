//! Packets in flight, and the arena that holds them.

use comity_congestion::Ecn;
use comity_tcp::Segment;
use comity_units::{PacketNumber, Time};

/// A packet in flight, as observers see it.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// The flow that it belongs to, as an index into the network's flows.
    pub flow: u32,
    /// Its size on the wire in bytes.
    pub wire: u32,
    /// When its endpoint sent it.
    pub sent_at: Time,
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
    /// A packet of the deadline transport.
    Sections(SectionPacket),
}

/// A packet of the deadline transport. Its payload is stored apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionPacket {
    /// Its number in its direction.
    pub number: PacketNumber,
    /// The ECN field of its IP header, as set by the sender or changed by the network.
    pub ecn: Ecn,
}

/// The index of a packet in the arena.
pub(super) type Slot = u32;

/// No packet.
pub(super) const NONE: Slot = Slot::MAX;

/// The part of a packet that links need: half a cache line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// When it arrives; while a queued link holds it, when it was offered.
    pub(super) arrival: Time,
    pub(super) sent_at: Time,
    pub(super) flow: u32,
    pub(super) wire: u32,
    /// The next path entry.
    pub(super) at: u32,
    /// The next packet on its link, or the next free slot.
    next: Slot,
}

impl Header {
    /// A packet sent at `now` on the path that begins at the entry `at`.
    #[inline]
    pub(super) fn new(now: Time, flow: u32, wire: u32, at: u32) -> Self {
        Self {
            arrival: now,
            sent_at: now,
            flow,
            wire,
            at,
            next: NONE,
        }
    }
}

/// Holds all packets in flight, each link's as a chain through the arena.
///
/// The content of a packet is read only at the end of its path, and is stored apart from its
/// header. The arena grows to the maximum number of packets in flight. It reuses free slots last
/// in, first out, so a small simulation stays in the cache.
#[derive(Debug)]
pub(super) struct Arena {
    headers: Vec<Header>,
    bodies: Vec<Body>,
    free: Slot,
    /// The payloads of [`Body::Sections`], by slot. A slot keeps its buffer when its packet is
    /// gone, so a long run allocates none.
    payloads: Vec<Vec<u8>>,
    /// The next payload, before it has a slot.
    pub(super) draft: Vec<u8>,
}

impl Default for Arena {
    fn default() -> Self {
        Self {
            headers: Vec::new(),
            bodies: Vec::new(),
            free: NONE,
            payloads: Vec::new(),
            draft: Vec::new(),
        }
    }
}

impl Arena {
    /// Stores a packet.
    #[inline]
    pub(super) fn insert(&mut self, header: Header, body: Body) -> Slot {
        let slot = self.free;
        match (
            self.headers.get_mut(slot as usize),
            self.bodies.get_mut(slot as usize),
        ) {
            (Some(free), Some(content)) => {
                self.free = free.next;
                *free = header;
                *content = body;
                slot
            }
            _ => self.grow(header, body),
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, header: Header, body: Body) -> Slot {
        self.headers.push(header);
        self.bodies.push(body);
        (self.headers.len() - 1) as Slot
    }

    /// Frees a slot. Its packet can be read until the next insertion.
    #[inline]
    pub(super) fn free(&mut self, slot: Slot) {
        self.headers[slot as usize].next = self.free;
        self.free = slot;
    }

    #[inline]
    pub(super) fn header(&self, slot: Slot) -> &Header {
        &self.headers[slot as usize]
    }

    #[inline]
    pub(super) fn body(&self, slot: Slot) -> &Body {
        &self.bodies[slot as usize]
    }

    /// Stores a packet whose payload is the draft.
    pub(super) fn insert_draft(&mut self, header: Header, packet: SectionPacket) -> Slot {
        let slot = self.insert(header, Body::Sections(packet));
        let mut draft = std::mem::take(&mut self.draft);
        std::mem::swap(self.payload_mut(slot), &mut draft);
        draft.clear();
        self.draft = draft;
        slot
    }

    fn payload_mut(&mut self, slot: Slot) -> &mut Vec<u8> {
        let index = slot as usize;
        if index >= self.payloads.len() {
            self.payloads.resize_with(index + 1, Vec::new);
        }
        &mut self.payloads[index]
    }

    /// Stores a duplicate transmission of a packet.
    #[cold]
    pub(super) fn insert_copy(&mut self, slot: Slot) -> Slot {
        let (header, body) = (self.headers[slot as usize], self.bodies[slot as usize]);
        let copy = self.insert(header, body);
        if matches!(body, Body::Sections(_)) {
            let mut payload = std::mem::take(self.payload_mut(copy));
            payload.clear();
            payload.extend_from_slice(self.payload(slot));
            *self.payload_mut(copy) = payload;
        }
        copy
    }

    /// The payload of a packet of sections.
    pub(super) fn payload(&self, slot: Slot) -> &[u8] {
        self.payloads.get(slot as usize).map_or(&[], Vec::as_slice)
    }

    /// Whether the network may mark the packet instead of dropping it.
    pub(super) fn is_ecn_capable(&self, slot: Slot) -> bool {
        match &self.bodies[slot as usize] {
            Body::Sections(packet) => packet.ecn != Ecn::NotCapable,
            Body::Tcp(segment) => segment.ecn != Ecn::NotCapable,
            Body::Datagram(_) => false,
        }
    }

    #[cold]
    pub(super) fn mark(&mut self, slot: Slot) {
        match &mut self.bodies[slot as usize] {
            Body::Sections(packet) => packet.ecn = Ecn::CongestionExperienced,
            Body::Tcp(segment) => segment.ecn = Ecn::CongestionExperienced,
            Body::Datagram(_) => {}
        }
    }

    /// Sets the next path entry of a packet and the time of its arrival there.
    #[inline]
    pub(super) fn set_position(&mut self, slot: Slot, at: u32, arrival: Time) {
        let header = &mut self.headers[slot as usize];
        header.at = at;
        header.arrival = arrival;
        header.next = NONE;
    }

    #[inline]
    pub(super) fn arrival(&self, slot: Slot) -> Time {
        self.headers[slot as usize].arrival
    }

    #[inline]
    pub(super) fn next(&self, slot: Slot) -> Slot {
        self.headers[slot as usize].next
    }

    #[inline]
    pub(super) fn link(&mut self, slot: Slot, next: Slot) {
        self.headers[slot as usize].next = next;
    }

    /// The maximum number of packets ever stored at once, which is the number of slots.
    pub(super) fn peak(&self) -> usize {
        self.headers.len()
    }

    /// The flows of the packets that are still stored.
    pub(super) fn flows_in_use(&self) -> Vec<u32> {
        let mut is_free = vec![false; self.headers.len()];
        let mut free = self.free;
        while let Some(header) = self.headers.get(free as usize) {
            is_free[free as usize] = true;
            free = header.next;
        }
        let used = self
            .headers
            .iter()
            .zip(is_free)
            .filter(|(_, is_free)| !is_free);
        used.map(|(header, _)| header.flow).collect()
    }

    pub(super) fn memory(&self) -> usize {
        let payloads: usize = self.payloads.iter().map(Vec::capacity).sum();
        self.headers.capacity() * size_of::<Header>()
            + self.bodies.capacity() * size_of::<Body>()
            + self.payloads.capacity() * size_of::<Vec<u8>>()
            + payloads
            + self.draft.capacity()
    }
}
