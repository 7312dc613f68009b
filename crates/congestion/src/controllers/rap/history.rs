//! What left, and what of it arrived.

use alloc::collections::VecDeque;

use comity_units::{PacketNumber, Time};

/// The packets in flight in the order of their numbers, and those that arrived after one that is
/// missing.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    packets: VecDeque<Departure>,
    /// How many of them arrived: all of those left after the oldest.
    arrived: usize,
}

#[derive(Clone, Copy, Debug)]
struct Departure {
    number: PacketNumber,
    at: Time,
    has_arrived: bool,
}

impl History {
    /// A packet left, with a larger number than those before.
    pub(super) fn on_sent(&mut self, now: Time, number: PacketNumber) {
        self.packets.push_back(Departure {
            number,
            at: now,
            has_arrived: false,
        });
        if self.packets.len() > MOST {
            self.forget_oldest();
            self.forget_arrived();
        }
    }

    /// This packet arrived; one that is not known changes nothing.
    pub(super) fn on_arrived(&mut self, number: PacketNumber) {
        let place = self
            .packets
            .partition_point(|packet| packet.number < number);
        let Some(packet) = self.packets.get_mut(place) else {
            return;
        };
        if packet.number != number || packet.has_arrived {
            return;
        }
        packet.has_arrived = true;
        self.arrived += 1;
        self.forget_arrived();
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.packets.pop_front()
            && oldest.has_arrived
        {
            self.arrived -= 1;
        }
    }

    /// The oldest is always one that is missing.
    fn forget_arrived(&mut self) {
        while self
            .packets
            .front()
            .is_some_and(|packet| packet.has_arrived)
        {
            self.forget_oldest();
        }
    }

    /// How many packets arrived of those that left after the oldest in flight.
    pub(super) fn arrived_after_oldest(&self) -> usize {
        self.arrived
    }

    /// When the oldest one in flight left.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.packets.front().map(|packet| packet.at)
    }

    /// Nothing of what has left counts any more.
    pub(super) fn clear(&mut self) {
        self.packets.clear();
        self.arrived = 0;
    }
}

/// More than any path holds: a peer that answers nothing makes this grow no further.
const MOST: usize = 1 << 20;

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
        // The second hole has one arrival behind it.
        arrive(1, Some(30), 1);
        arrive(0, Some(30), 1);
        arrive(3, Some(50), 0);
        arrive(5, None, 0);
    }

    #[test]
    fn a_peer_that_answers_nothing_takes_no_more_memory() {
        let mut history = history(MOST as u64);
        history.on_arrived(PacketNumber::new(1));
        let next = MOST as u64;
        history.on_sent(at(10 * next), PacketNumber::new(next));
        assert_eq!(history.packets.len(), MOST - 1);
        assert_eq!(history.oldest(), Some(at(20)));
        assert_eq!(history.arrived_after_oldest(), 0);
        history.clear();
        assert_eq!(history.oldest(), None);
    }
}
