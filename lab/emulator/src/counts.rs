//! Counts packets by their fate.

use comity_units::DataSize;

/// Packets and their bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of packets.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: DataSize,
}

impl Tally {
    pub(crate) fn add(&mut self, wire_bytes: u32) {
        self.packets += 1;
        self.bytes = DataSize::new(self.bytes.get() + u64::from(wire_bytes));
    }
}

/// The packets of one direction, by their fate.
///
/// ```text
/// arrived = released + dropped_early + dropped_full + dropped_large + dropped_loss + dropped_memory + lost + held()
/// ```
///
/// This holds in packets and in bytes, at any time. `copies` are not part of the sum. `unsent`
/// counts packets that `released` or `copies` counts too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Packets that arrived at the emulator.
    pub arrived: Tally,
    /// Packets that crossed the link, without duplicates.
    pub released: Tally,
    /// Duplicates that crossed the link.
    pub copies: Tally,
    /// Packets dropped by active queue management.
    pub dropped_early: Tally,
    /// Packets dropped because the queue was full.
    pub dropped_full: Tally,
    /// Packets dropped because they exceed the maximum size of the link.
    pub dropped_large: Tally,
    /// Packets that a loss model dropped before the queue.
    pub dropped_loss: Tally,
    /// Packets that were not offered to the link because the emulator's own memory was full: a sign
    /// of overload.
    pub dropped_memory: Tally,
    /// Packets that a loss model dropped on the wire.
    pub lost: Tally,
    /// Released packets that the system did not accept, or whose caller was forgotten.
    pub unsent: Tally,
}

impl PacketCounts {
    /// The packets on the link.
    pub fn held(&self) -> Tally {
        let gone = [
            self.released,
            self.dropped_early,
            self.dropped_full,
            self.dropped_large,
            self.dropped_loss,
            self.dropped_memory,
            self.lost,
        ];
        gone.iter().fold(self.arrived, |held, gone| Tally {
            packets: held.packets.saturating_sub(gone.packets),
            bytes: held.bytes.saturating_sub(gone.bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_packets_are_the_rest() {
        let tally = |packets| Tally {
            packets,
            bytes: DataSize::new(packets * 100),
        };
        let counts = PacketCounts {
            arrived: tally(100),
            released: tally(40),
            copies: tally(7),
            dropped_early: tally(1),
            dropped_full: tally(2),
            dropped_large: tally(6),
            dropped_loss: tally(3),
            dropped_memory: tally(4),
            lost: tally(5),
            unsent: tally(40),
        };
        assert_eq!(
            counts.held(),
            tally(39),
            "copies and unsent ones are no part"
        );
    }
}
