//! Controlled delay.
//!
//! A good queue drains within a round trip; a standing queue only adds delay. Controlled delay
//! measures the queueing delay of packets. If it has exceeded a target for a whole interval, CoDel
//! drops a packet as it leaves. It then drops more, at intervals that shrink with the square root
//! of the number of drops, until the delay is below the target.
//!
//! ```text
//! next drop = last drop + interval / √count
//! ```
//!
//! The square root is of integers, rounded down to a nanosecond. Source: RFC 8289, sections 4
//! and 5. Differs from the source in: 1. with `ecn`, a packet of an ECN-capable sender is marked
//! and sent where another would be dropped and the next one examined, as in Linux; RFC 8289 leaves
//! marking to implementations. 2. the count saturates.
//!
//! Linux (`codel_impl.h`) restarts the count as the RFC and this module do: from
//! `count − lastcount` if the previous dropping state ended within 16 intervals, else from 1. It
//! differs in: 1. 1/√count is a 16-bit fixed-point number that one Newton step moves at each drop
//! (`rec_inv_sqrt`), so drop times are off by some percent after a jump of the count; here it is
//! exact. 2. time is in units of 1,024 ns. 3. a drop may be due only after the end of the first
//! interval, not at it. 4. an empty queue keeps the time of `first_above`; here it is reset. 5. it
//! has an optional `ce_threshold`.

use comity_units::{Span, Time};

use crate::queue::CodelConfig;

/// The state of controlled delay. Field names follow the RFC, spelled out.
#[derive(Clone, Debug)]
pub(crate) struct Codel {
    target: Span,
    interval: Span,
    mtu: u64,
    ecn: bool,
    /// When the delay will have exceeded the target for an interval, if it exceeds it now.
    first_above: Option<Time>,
    is_dropping: bool,
    drop_next: Time,
    count: u32,
    /// The count at the beginning of the last dropping state.
    last_count: u32,
}

/// A queue under controlled delay.
pub(crate) trait Store {
    type Entry;
    /// Removes the first packet.
    fn take(&mut self) -> Option<Self::Entry>;
    /// Waiting bytes.
    fn bytes(&self) -> u64;
    /// When a packet came.
    fn since(entry: &Self::Entry) -> Time;
    /// Marks a packet if its sender is ECN-capable.
    fn mark(entry: &mut Self::Entry) -> bool;
    fn discard(&mut self, entry: Self::Entry);
}

impl Codel {
    pub(crate) fn new(config: &CodelConfig) -> Self {
        Self {
            target: config.target,
            interval: config.interval,
            mtu: config.mtu.get(),
            ecn: config.ecn,
            first_above: None,
            is_dropping: false,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
        }
    }

    /// Returns the packet to send now, after the drops that are due.
    pub(crate) fn dequeue<S: Store>(&mut self, now: Time, store: &mut S) -> Option<S::Entry> {
        let (mut entry, mut may_drop) = self.look(now, store);
        if self.is_dropping {
            self.is_dropping = may_drop;
            // Several drops may be overdue in a long queue.
            while self.is_dropping
                && now >= self.drop_next
                && let Some(mut victim) = entry.take()
            {
                self.count = self.count.saturating_add(1);
                if self.ecn && S::mark(&mut victim) {
                    self.drop_next = self.control_law(self.drop_next);
                    return Some(victim);
                }
                store.discard(victim);
                (entry, may_drop) = self.look(now, store);
                self.is_dropping = may_drop;
                if may_drop {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if may_drop && let Some(mut victim) = entry.take() {
            if self.ecn && S::mark(&mut victim) {
                entry = Some(victim);
            } else {
                store.discard(victim);
                (entry, _) = self.look(now, store);
            }
            self.is_dropping = true;
            // Shortly after the last dropping state, its drop rate is a better start than one drop.
            let drops = self.count.saturating_sub(self.last_count);
            let is_recent = now.saturating_since(self.drop_next) < self.interval * 16;
            self.count = if drops > 1 && is_recent { drops } else { 1 };
            self.drop_next = self.control_law(now);
            self.last_count = self.count;
        }
        entry
    }

    /// Counts drops made by another algorithm, so that the next ones come sooner.
    pub(crate) fn add_drops(&mut self, drops: u32) {
        self.count = self.count.saturating_add(drops);
    }

    /// Removes a packet, and returns whether the delay has exceeded the target for too long.
    fn look<S: Store>(&mut self, now: Time, store: &mut S) -> (Option<S::Entry>, bool) {
        let Some(entry) = store.take() else {
            self.first_above = None;
            return (None, false);
        };
        let waited = now.saturating_since(S::since(&entry));
        if waited < self.target || store.bytes() <= self.mtu {
            self.first_above = None;
            return (Some(entry), false);
        }
        let first_above = *self.first_above.get_or_insert(now + self.interval);
        (Some(entry), now >= first_above)
    }

    fn control_law(&self, from: Time) -> Time {
        let interval = u128::from(self.interval.as_nanos());
        let square = interval * interval / u128::from(self.count.max(1));
        // The root of at most the square of a `u64`.
        from + Span::from_nanos(square.isqrt() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drop_interval_shrinks_with_the_root_of_the_count() {
        let mut codel = Codel::new(&CodelConfig::default());
        // 100 ms / √n, rounded down.
        for (count, nanos) in [
            (1, 100_000_000),
            (2, 70_710_678),
            (3, 57_735_026),
            (4, 50_000_000),
            (100, 10_000_000),
        ] {
            codel.count = count;
            assert_eq!(codel.control_law(Time::ZERO), Time::from_nanos(nanos));
        }
    }
}
