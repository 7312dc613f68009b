//! Departures and arrivals of packets, for controllers that measure delays.

use alloc::collections::VecDeque;

use comity_units::{DataSize, PacketNumber, Time};

use crate::Sent;

/// Pairs each acknowledged packet with its departure, and counts both.
///
/// Packets are counted in the order of departure, because the numbers of a transport have gaps.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    packets: VecDeque<Packet>,
    sent: u64,
    totals: Totals,
}

/// Counts since the beginning of the flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// The packets up to the newest that arrived.
    pub(super) expected: u64,
    /// Those that arrived.
    pub(super) arrived: u64,
}

impl Totals {
    /// The share of lost packets since `earlier` (RFC 3550, appendix A.3). `None` if no packet was
    /// expected. Zero if more arrived than were expected: late ones.
    pub(super) fn lost_since(&self, earlier: &Self) -> Option<f64> {
        let expected = self.expected.saturating_sub(earlier.expected);
        let arrived = self.arrived.saturating_sub(earlier.arrived);
        (expected > 0).then(|| expected.saturating_sub(arrived) as f64 / expected as f64)
    }
}

/// A packet that left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    number: PacketNumber,
    /// How many packets had left with this one.
    order: u64,
    /// When it left.
    pub(super) sent_at: Time,
    /// Its size on the wire.
    pub(super) size: DataSize,
    has_arrived: bool,
}

impl Arrivals {
    /// A packet left. Its number is larger than those before it.
    pub(super) fn on_sent(&mut self, sent: &Sent) {
        self.sent += 1;
        self.packets.push_back(Packet {
            number: sent.number,
            order: self.sent,
            sent_at: sent.now,
            size: sent.wire,
            has_arrived: false,
        });
        if self.packets.len() > MAX_PACKETS {
            self.packets.pop_front();
        }
    }

    /// A packet is acknowledged. Returns `None` if it is unknown, or was acknowledged before.
    pub(super) fn on_acked(&mut self, number: PacketNumber) -> Option<Packet> {
        let at = self
            .packets
            .partition_point(|packet| packet.number < number);
        let packet = self
            .packets
            .get_mut(at)
            .filter(|packet| packet.number == number && !packet.has_arrived)?;
        packet.has_arrived = true;
        let packet = *packet;
        self.totals.arrived += 1;
        self.totals.expected = self.totals.expected.max(packet.order);
        self.forget();
        Some(packet)
    }

    /// Forgets packets that arrived, and those missing for so long that they will not arrive.
    fn forget(&mut self) {
        let expected = self.totals.expected;
        while self
            .packets
            .front()
            .is_some_and(|packet| packet.has_arrived || packet.order + MAX_REORDERING < expected)
        {
            self.packets.pop_front();
        }
    }

    /// How many packets were expected and arrived so far.
    pub(super) const fn totals(&self) -> Totals {
        self.totals
    }
}

/// The most packets in memory, more than any path holds, also if a peer acknowledges nothing.
const MAX_PACKETS: usize = 1 << 20;

/// A packet that arrives after more than this many later ones is not counted.
const MAX_REORDERING: u64 = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(arrivals: &mut Arrivals, number: u64) {
        arrivals.on_sent(&Sent {
            now: Time::from_millis(number),
            payload: DataSize::new(960),
            wire: DataSize::new(1_000),
            number: PacketNumber::new(number),
            in_flight: DataSize::new(960),
            app_limited: false,
        });
    }

    fn acked(arrivals: &mut Arrivals, number: u64) -> Option<Time> {
        arrivals
            .on_acked(PacketNumber::new(number))
            .map(|packet| packet.sent_at)
    }

    #[test]
    fn the_share_of_lost_packets_is_that_of_receiver_reports() {
        let mut arrivals = Arrivals::default();
        // The transport left out number 3.
        for number in [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11] {
            sent(&mut arrivals, number);
        }
        let begin = arrivals.totals();
        assert_eq!(begin.lost_since(&begin), None);
        for number in [0, 1, 4, 5] {
            assert_eq!(
                acked(&mut arrivals, number),
                Some(Time::from_millis(number))
            );
        }
        // Of 0, 1, 2, 4 and 5 one is missing.
        let first = arrivals.totals();
        assert_eq!(first.lost_since(&begin), Some(0.2));
        // Number 2 was late; 6 and 7 are missing: 4 were expected, and 3 arrived.
        for number in [2, 8, 9] {
            assert!(acked(&mut arrivals, number).is_some());
        }
        let second = arrivals.totals();
        assert_eq!(second.lost_since(&first), Some(0.25));
        // Those two and number 10 arrive: 3 packets, where 1 was expected.
        for number in [6, 7, 10] {
            assert!(acked(&mut arrivals, number).is_some());
        }
        assert_eq!(arrivals.totals().lost_since(&second), Some(0.0));
    }

    #[test]
    fn a_packet_counts_once_and_only_if_it_left() {
        let mut arrivals = Arrivals::default();
        sent(&mut arrivals, 5);
        sent(&mut arrivals, 7);
        for (number, expected) in [(6, None), (7, Some(7)), (7, None), (5, Some(5)), (8, None)] {
            let expected = expected.map(Time::from_millis);
            assert_eq!(acked(&mut arrivals, number), expected, "{number}");
        }
        assert!(arrivals.packets.is_empty());
        let all = Totals {
            expected: 2,
            arrived: 2,
        };
        assert_eq!(arrivals.totals(), all);
    }

    #[test]
    fn what_never_arrives_is_forgotten() {
        let mut arrivals = Arrivals::default();
        for number in 0..=MAX_REORDERING + 1 {
            sent(&mut arrivals, number);
        }
        for number in 1..=MAX_REORDERING {
            assert!(acked(&mut arrivals, number).is_some());
        }
        assert_eq!(arrivals.packets.len(), MAX_REORDERING as usize + 2);
        assert!(acked(&mut arrivals, MAX_REORDERING + 1).is_some());
        assert!(arrivals.packets.is_empty());
        assert_eq!(acked(&mut arrivals, 0), None);
    }
}
