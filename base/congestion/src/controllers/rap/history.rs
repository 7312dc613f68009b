//! The packets in flight, and which of them arrived.

use alloc::collections::VecDeque;

use comity_units::{PacketNumber, Time};

/// The packets in flight in the order of their numbers, and those that arrived after a missing one.
///
/// Invariant: the oldest packet is missing.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    packets: VecDeque<Departure>,
    /// How many of the packets arrived.
    arrived: usize,
}

#[derive(Clone, Copy, Debug)]
struct Departure {
    number: PacketNumber,
    at: Time,
    has_arrived: bool,
}

impl History {
    /// Adds a sent packet. Its number is larger than those before it.
    pub(super) fn on_sent(&mut self, now: Time, number: PacketNumber) {
        self.packets.push_back(Departure {
            number,
            at: now,
            has_arrived: false,
        });
        if self.packets.len() > MAX_PACKETS {
            self.remove_oldest();
            self.remove_arrived();
        }
    }

    /// Records an arrival. An unknown packet changes nothing.
    pub(super) fn on_arrived(&mut self, number: PacketNumber) {
        let position = self
            .packets
            .partition_point(|packet| packet.number < number);
        let Some(packet) = self.packets.get_mut(position) else {
            return;
        };
        if packet.number != number || packet.has_arrived {
            return;
        }
        packet.has_arrived = true;
        self.arrived += 1;
        self.remove_arrived();
    }

    fn remove_oldest(&mut self) {
        if let Some(oldest) = self.packets.pop_front()
            && oldest.has_arrived
        {
            self.arrived -= 1;
        }
    }

    /// Restores the invariant that the oldest packet is missing.
    fn remove_arrived(&mut self) {
        while self
            .packets
            .front()
            .is_some_and(|packet| packet.has_arrived)
        {
            self.remove_oldest();
        }
    }

    /// The number of packets that left after the oldest in flight and arrived.
    pub(super) fn arrived_after_oldest(&self) -> usize {
        self.arrived
    }

    /// When the oldest packet in flight left.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.packets.front().map(|packet| packet.at)
    }

    /// Removes all packets.
    pub(super) fn clear(&mut self) {
        self.packets.clear();
        self.arrived = 0;
    }
}

/// The most packets in memory, more than any path holds, also if a peer acknowledges nothing.
const MAX_PACKETS: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn history(packets: u64) -> History {
        let mut history = History::default();
        for number in 0..packets {
            history.on_sent(at(10 * number), PacketNumber::new(number));
        }
        history
    }

    #[test]
    fn the_oldest_that_is_missing_and_what_arrived_after_it() {
        let mut history = history(6);
        let mut arrive = |number, oldest: Option<u64>, after| {
            history.on_arrived(PacketNumber::new(number));
            assert_eq!(history.oldest(), oldest.map(at), "{number}");
            assert_eq!(history.arrived_after_oldest(), after, "{number}");
        };
        arrive(0, Some(10), 0);
        arrive(2, Some(10), 1);
        arrive(2, Some(10), 1);
        arrive(9, Some(10), 1);
        arrive(4, Some(10), 2);
        // One packet after the second hole has arrived.
        arrive(1, Some(30), 1);
        arrive(0, Some(30), 1);
        arrive(3, Some(50), 0);
        arrive(5, None, 0);
    }

    #[test]
    fn a_peer_that_answers_nothing_takes_no_more_memory() {
        let mut history = history(MAX_PACKETS as u64);
        history.on_arrived(PacketNumber::new(1));
        let next = MAX_PACKETS as u64;
        history.on_sent(at(10 * next), PacketNumber::new(next));
        assert_eq!(history.packets.len(), MAX_PACKETS - 1);
        assert_eq!(history.oldest(), Some(at(20)));
        assert_eq!(history.arrived_after_oldest(), 0);
        history.clear();
        assert_eq!(history.oldest(), None);
    }
}
