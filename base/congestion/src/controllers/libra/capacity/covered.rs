//! How many packets the receiver acknowledges at once.

use comity_units::PacketNumber;

/// How many ACKs show the usual number.
const RECENT: usize = 8;

/// The numbers of packets that the last ACKs covered.
///
/// A receiver that waits for f packets before it acknowledges sends an ACK for fewer if its timer
/// expires. The timer also delays the ACK, so its time is not that of an arrival.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Covered {
    /// The first packet that no ACK covers.
    first: Option<u64>,
    recent: [u64; RECENT],
    next: usize,
}

impl Covered {
    pub(super) fn on_sent(&mut self, number: PacketNumber) {
        self.first.get_or_insert(number.get());
    }

    /// Takes an ACK. Returns how many packets it covers, and whether a timer may have sent it,
    /// because one of the ACKs before covers more.
    pub(super) fn on_ack(&mut self, number: PacketNumber) -> (u64, bool) {
        let end = number.get().saturating_add(1);
        let first = self.first.replace(end).unwrap_or(end);
        let covered = end.saturating_sub(first);
        let usual = self.recent.iter().copied().max().unwrap_or(0);
        if let Some(oldest) = self.recent.get_mut(self.next) {
            *oldest = covered;
        }
        self.next = (self.next + 1) % RECENT;
        (covered, covered < usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of the ACKs, which cover these numbers of packets, a timer may have sent.
    fn by_timer<const N: usize>(covered: [u64; N]) -> [bool; N] {
        let mut acks = Covered::default();
        acks.on_sent(PacketNumber::new(100));
        acks.on_sent(PacketNumber::new(101));
        let mut first = 100;
        covered.map(|packets| {
            first += packets;
            acks.on_ack(PacketNumber::new(first - 1)).1
        })
    }

    #[test]
    fn an_ack_of_fewer_packets_than_usual_may_be_that_of_a_timer() {
        assert_eq!(by_timer([1, 1, 1]), [false; 3]);
        assert_eq!(by_timer([2, 1, 2, 1]), [false, true, false, true]);
        // An ACK was lost, and the receiver acknowledges every packet.
        let lost = by_timer([2, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
        assert_eq!(lost.map(usize::from).iter().sum::<usize>(), RECENT);
        assert!(!lost[RECENT + 1]);
    }
}
