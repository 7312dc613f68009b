//! Packets queued or in service, derived from departure times alone.

use alloc::boxed::Box;
use alloc::vec::Vec;

use comity_units::Time;

use crate::queue::Limit;

/// The departures of all packets still in the link, in order.
///
/// A packet is in the link until its departure, which is known at the offer. Expired entries are
/// removed only on access. A ring without records stays empty and allocates nothing.
///
/// The slots are a power of two in number, so that an index wraps with one `and`.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    slots: Box<[Leaving]>,
    /// The first entry and the number of entries, counted without wrapping.
    first: u32,
    count: u32,
    /// The number of consecutive entries of one size, up to the last.
    alike: u32,
    bytes: u64,
    limit: Limit,
    records: Records,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Records {
    /// Nothing: no limit requires it.
    Nothing,
    /// Nothing so far: all packets since the link was idle have one size, so the clock alone
    /// determines their departures.
    Implied,
    Departures,
}

#[derive(Clone, Copy, Debug)]
struct Leaving {
    at: Time,
    bytes: u32,
}

/// After this many packets of one size, the next ones will probably have this size, too.
const ALIKE: u32 = 16;

impl Ring {
    /// A ring for this limit.
    pub(crate) fn new(limit: Limit, records: Records) -> Self {
        Self {
            slots: Box::default(),
            first: 0,
            count: 0,
            alike: 0,
            bytes: 0,
            limit,
            records,
        }
    }

    #[inline]
    pub(crate) const fn records(&self) -> Records {
        self.records
    }

    /// Whether the ring holds every departure.
    #[inline]
    pub(crate) fn is_tracked(&self) -> bool {
        self.records == Records::Departures
    }

    pub(crate) const fn limit(&self) -> Limit {
        self.limit
    }

    /// The entry `offset` slots behind the first one in use, whether it holds a packet or not.
    #[inline]
    fn slot(&self, offset: u32) -> Option<&Leaving> {
        let mask = self.slots.len().wrapping_sub(1);
        self.slots
            .get(self.first.wrapping_add(offset) as usize & mask)
    }

    #[inline]
    fn front(&self) -> Option<&Leaving> {
        if self.count == 0 { None } else { self.slot(0) }
    }

    /// Removes all records: the clock determines the departures for now.
    pub(crate) fn imply(&mut self) {
        self.records = Records::Implied;
        self.count = 0;
        self.bytes = 0;
    }

    /// Records every departure from now on, and those of packets of `bytes` each that are still in
    /// the link.
    pub(crate) fn record(&mut self, departures: impl Iterator<Item = Time>, bytes: u32) {
        self.records = Records::Departures;
        self.alike = 0;
        for at in departures {
            self.push(at, bytes);
        }
    }

    /// Removes departures up to `now`.
    #[inline]
    pub(crate) fn expire(&mut self, now: Time) {
        while let Some(&front) = self.front()
            && front.at <= now
        {
            self.bytes -= u64::from(front.bytes);
            self.first = self.first.wrapping_add(1);
            self.count -= 1;
        }
    }

    /// Whether one more packet may enter.
    #[inline]
    pub(crate) fn has_room(&self, bytes: u32) -> bool {
        self.limit.has_room(self.packets(), self.bytes, bytes)
    }

    /// Whether all entries have one size and the next ones will probably have it, too.
    pub(crate) fn is_uniform(&self) -> bool {
        self.alike >= self.count.max(ALIKE)
    }

    /// Records that the last packet has another size than the one before.
    pub(crate) fn change_size(&mut self) {
        self.alike = 0;
    }

    #[inline]
    pub(crate) fn push(&mut self, at: Time, bytes: u32) {
        if self.count as usize == self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len().wrapping_sub(1);
        let index = self.first.wrapping_add(self.count) as usize & mask;
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = Leaving { at, bytes };
        }
        self.count += 1;
        self.alike = self.alike.saturating_add(1);
        self.bytes += u64::from(bytes);
    }

    /// Doubles the number of slots and moves the entries to the front.
    #[cold]
    fn grow(&mut self) {
        let mut slots = Vec::with_capacity((self.slots.len() * 2).max(4));
        slots.extend((0..self.count).filter_map(|offset| self.slot(offset).copied()));
        let nothing = Leaving {
            at: Time::ZERO,
            bytes: 0,
        };
        slots.resize(slots.capacity().next_power_of_two(), nothing);
        self.slots = slots.into();
        self.first = 0;
    }

    /// Packets queued or in service.
    #[inline]
    pub(crate) const fn packets(&self) -> usize {
        self.count as usize
    }

    /// Bytes queued or in service.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Waiting packets and bytes, without the packet in service.
    pub(crate) fn waiting(&self) -> (usize, u64) {
        let in_service = self.front().map_or(0, |front| u64::from(front.bytes));
        (self.packets().saturating_sub(1), self.bytes - in_service)
    }
}
