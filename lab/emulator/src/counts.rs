//! Packets by their fate.

use comity_units::Bytes;

/// Packets and their bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: Bytes,
}

impl Tally {
    pub(crate) fn add(&mut self, wire_bytes: u32) {
        self.packets += 1;
        self.bytes = Bytes::new(self.bytes.get() + u64::from(wire_bytes));
    }
}

/// The packets of one direction by their fate.
///
/// ```text
/// arrived = released + dropped_early + dropped_full + dropped_large + dropped_loss + dropped_memory + lost + held()
/// ```
///
/// This holds in packets and in bytes, at any time. `copies` are not part of the sum. `unsent`
/// counts packets that `released` or `copies` counts too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Arrived at the emulator.
    pub arrived: Tally,
    /// Crossed the link, without duplicates.
    pub released: Tally,
    /// Duplicates that crossed the link.
    pub copies: Tally,
    /// Dropped by active queue management.
    pub dropped_early: Tally,
    /// Dropped because the queue was full.
    pub dropped_full: Tally,
    /// Larger than the link takes.
    pub dropped_large: Tally,
    /// Hit by a loss model before the queue.
    pub dropped_loss: Tally,
    /// Not offered to the link, since the emulator's own memory is full: a sign of overload.
    pub dropped_memory: Tally,
    /// Hit by a loss model on the wire.
    pub lost: Tally,
    /// Released, but the system did not accept them, or their caller was forgotten.
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
            bytes: Bytes::new(packets * 100),
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
