//! What is queued or in service, known from departure times alone.

use alloc::collections::VecDeque;

use comity_units::Time;

use crate::config::Limit;

/// The departures of all packets that are still in the link, in order.
///
/// A packet is in the link until its departure, which is known when it is handed over; entries whose time
/// has passed are taken out only when somebody asks. An untracked ring stays empty and allocates nothing.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    leaving: VecDeque<Leaving>,
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
            leaving: VecDeque::new(),
            bytes: 0,
            limit,
            tracked,
        }
    }

    #[inline]
    pub(crate) const fn is_tracked(&self) -> bool {
        self.tracked
    }

    /// Forgets what has left by `now`.
    #[inline]
    pub(crate) fn expire(&mut self, now: Time) {
        while let Some(first) = self.leaving.front()
            && first.at <= now
        {
            self.bytes -= u64::from(first.bytes);
            self.leaving.pop_front();
        }
    }

    /// Whether one more packet may enter.
    #[inline]
    pub(crate) fn has_room(&self, bytes: u32) -> bool {
        self.limit.has_room(self.leaving.len(), self.bytes, bytes)
    }

    #[inline]
    pub(crate) fn push(&mut self, at: Time, bytes: u32) {
        self.leaving.push_back(Leaving { at, bytes });
        self.bytes += u64::from(bytes);
    }

    /// Packets queued or in service.
    pub(crate) fn packets(&self) -> usize {
        self.leaving.len()
    }

    /// Bytes queued or in service.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets and bytes that wait, without the packet in service.
    pub(crate) fn waiting(&self) -> (usize, u64) {
        let in_service = self
            .leaving
            .front()
            .map_or(0, |first| u64::from(first.bytes));
        (
            self.leaving.len().saturating_sub(1),
            self.bytes - in_service,
        )
    }
}
