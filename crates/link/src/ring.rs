//! What is queued or in service, known from departure times alone.

use alloc::vec::Vec;

use comity_units::Time;

use crate::config::Limit;

/// The departures of all packets that are still in the link, in order.
///
/// A packet is in the link until its departure, which is known when it is handed over; entries whose time
/// has passed are taken out only when somebody asks. An untracked ring stays empty and allocates nothing.
///
/// The slots are a power of two in number, so that an index wraps with one `and`.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    slots: Vec<Leaving>,
    /// The first entry and the number of entries, counted without wrapping.
    first: u32,
    count: u32,
    bytes: u64,
    limit: Limit,
    tracked: bool,
}

#[derive(Clone, Copy, Debug)]
struct Leaving {
    at: Time,
    bytes: u32,
}

impl Ring {
    /// A ring for this limit. `tracked` keeps the records also where no limit needs them.
    pub(crate) const fn new(limit: Limit, tracked: bool) -> Self {
        let tracked = tracked || !matches!(limit, Limit::Unlimited);
        Self {
            slots: Vec::new(),
            first: 0,
            count: 0,
            bytes: 0,
            limit,
            tracked,
        }
    }

    #[inline]
    pub(crate) const fn is_tracked(&self) -> bool {
        self.tracked
    }

    /// The entry `offset` places behind the first slot in use, whether it holds a packet or not.
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

    /// Forgets everything: the link has been empty since the last packet left.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.bytes = 0;
    }

    /// Forgets what has left by `now`.
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

    #[inline]
    pub(crate) fn push(&mut self, at: Time, bytes: u32) {
        if self.count as usize == self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len().wrapping_sub(1);
        let place = self.first.wrapping_add(self.count) as usize & mask;
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = Leaving { at, bytes };
        }
        self.count += 1;
        self.bytes += u64::from(bytes);
    }

    /// Doubles the slots and puts the entries in order.
    #[cold]
    fn grow(&mut self) {
        let mut slots = Vec::with_capacity((self.slots.len() * 2).max(4));
        slots.extend((0..self.count).filter_map(|offset| self.slot(offset).copied()));
        let nothing = Leaving {
            at: Time::ZERO,
            bytes: 0,
        };
        slots.resize(slots.capacity().next_power_of_two(), nothing);
        self.slots = slots;
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

    /// Packets and bytes that wait, without the packet in service.
    pub(crate) fn waiting(&self) -> (usize, u64) {
        let in_service = self.front().map_or(0, |front| u64::from(front.bytes));
        (self.packets().saturating_sub(1), self.bytes - in_service)
    }
}
