//! The outstanding packets, and the acknowledgements after the oldest of them.

use alloc::collections::VecDeque;

/// Packet numbers from the oldest missing one on, each with whether it is acknowledged.
///
/// Invariant: the oldest packet is missing.
#[derive(Clone, Debug, Default)]
pub(super) struct Outstanding {
    packets: VecDeque<(u64, bool)>,
    /// How many of the packets are acknowledged.
    acked: usize,
}

impl Outstanding {
    pub(super) fn on_sent(&mut self, number: u64) {
        if self.packets.back().is_some_and(|(last, _)| *last >= number) {
            return;
        }
        if self.packets.len() >= MAX_PACKETS {
            self.packets.pop_front();
            self.settle();
        }
        self.packets.push_back((number, false));
    }

    /// Records an acknowledgement. Returns whether the packet was missing.
    pub(super) fn on_acked(&mut self, number: u64) -> bool {
        let at = self.packets.partition_point(|(other, _)| *other < number);
        match self.packets.get_mut(at) {
            Some((found, acked)) if *found == number && !*acked => *acked = true,
            _ => return false,
        }
        self.acked += 1;
        self.settle();
        true
    }

    /// Abandons the packets up to `number`.
    pub(super) fn forget_through(&mut self, number: u64) {
        while let Some((front, acked)) = self.packets.front()
            && *front <= number
        {
            self.acked -= usize::from(*acked);
            self.packets.pop_front();
        }
        self.settle();
    }

    pub(super) fn clear(&mut self) {
        self.packets.clear();
        self.acked = 0;
    }

    /// The oldest missing packet.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.packets.front().map(|(number, _)| *number)
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.packets.is_empty()
    }

    /// The number of acknowledged packets after the oldest missing one.
    pub(super) const fn acked_behind_missing(&self) -> usize {
        self.acked
    }

    /// Restores the invariant that the oldest packet is missing.
    fn settle(&mut self) {
        while let Some((_, true)) = self.packets.front() {
            self.packets.pop_front();
            self.acked -= 1;
        }
    }
}

/// The most packets in memory, more than a round trip holds, also if a peer acknowledges nothing.
const MAX_PACKETS: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_behind_the_oldest_missing_are_counted() {
        let mut packets = Outstanding::default();
        for number in [1, 2, 4, 5, 6] {
            packets.on_sent(number);
        }
        assert!(packets.on_acked(1));
        assert!(!packets.on_acked(1), "once");
        assert!(!packets.on_acked(3), "never sent");
        assert_eq!(
            (packets.oldest(), packets.acked_behind_missing()),
            (Some(2), 0)
        );
        assert!(packets.on_acked(5) && packets.on_acked(6));
        assert_eq!(packets.acked_behind_missing(), 2);
        // 2 arrives late. Now 4 is the oldest, and two packets after it have arrived.
        assert!(packets.on_acked(2));
        assert_eq!(
            (packets.oldest(), packets.acked_behind_missing()),
            (Some(4), 2)
        );
        packets.forget_through(4);
        assert!(!packets.is_waiting());
        assert_eq!(packets.acked_behind_missing(), 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "too long for an interpreter")]
    fn the_record_of_what_is_never_acknowledged_is_bounded() {
        let mut packets = Outstanding::default();
        for number in 0..=MAX_PACKETS as u64 {
            packets.on_sent(number);
        }
        assert_eq!(packets.oldest(), Some(1));
    }
}
