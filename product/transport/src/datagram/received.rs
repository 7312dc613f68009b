//! The ranges of received packet numbers, and when an acknowledgement is due.

use alloc::vec::Vec;

use comity_congestion::Ecn;
use comity_units::{PacketNumber, Span, Time};

use crate::wire::frame::{AckRange, EcnCounts};

/// The received packet numbers, and when to acknowledge them.
///
/// An acknowledgement is due at once when a packet arrives out of order or marked, and with every
/// `frequency`-th ACK-eliciting packet. Otherwise it is due `delay` after the first unacknowledged
/// ACK-eliciting packet.
#[derive(Debug)]
pub(super) struct ReceivedPackets {
    /// Disjoint ranges that are not adjacent, from the largest numbers down.
    ranges: Vec<AckRange>,
    /// For each range, the exclusive or of its tokens.
    proofs: Vec<u8>,
    largest_arrived_at: Time,
    ecn: EcnCounts,
    /// ACK-eliciting packets since the last acknowledgement.
    unanswered: u32,
    due_at: Time,
    frequency: u32,
    delay: Span,
}

impl ReceivedPackets {
    pub(super) const fn new(frequency: u32, delay: Span) -> Self {
        Self {
            ranges: Vec::new(),
            proofs: Vec::new(),
            largest_arrived_at: Time::ZERO,
            ecn: EcnCounts {
                ect0: 0,
                ect1: 0,
                ce: 0,
            },
            unanswered: 0,
            due_at: Time::MAX,
            frequency,
            delay,
        }
    }

    /// Whether a packet with this number arrived already.
    pub(super) fn is_known(&self, number: PacketNumber) -> bool {
        let nearest = self.ranges.iter().find(|range| range.first <= number);
        nearest.is_some_and(|range| number <= range.last)
    }

    /// Whether this number is below all kept ranges and no further range can be kept, so that its
    /// arrival is unknown.
    pub(super) fn is_forgotten(&self, number: PacketNumber) -> bool {
        let oldest = self.ranges.get(MAX_RANGES - 1);
        oldest.is_some_and(|oldest| number < oldest.first)
    }

    /// A packet with this token arrived that is neither [known](Self::is_known) nor
    /// [forgotten](Self::is_forgotten).
    pub(super) fn on_packet(
        &mut self,
        now: Time,
        number: PacketNumber,
        token: u8,
        ecn: Ecn,
        wants_answer: bool,
    ) {
        let largest_before = self.largest();
        self.insert(number, token);
        let is_largest = largest_before.is_none_or(|largest| number > largest);
        if is_largest {
            self.largest_arrived_at = now;
        }
        match ecn {
            Ecn::NotCapable => {}
            Ecn::Capable0 => self.ecn.ect0 += 1,
            Ecn::Capable1 => self.ecn.ect1 += 1,
            Ecn::CongestionExperienced => self.ecn.ce += 1,
        }
        if !wants_answer {
            return;
        }
        self.unanswered += 1;
        // Peers skip numbers occasionally. One missing number among many costs only an unnecessary
        // acknowledgement.
        let is_in_order = match largest_before {
            None => true,
            Some(largest) => number.get() == largest.get() + 1,
        };
        if !is_in_order || ecn == Ecn::CongestionExperienced || self.unanswered >= self.frequency {
            self.due_at = now;
        } else {
            self.due_at = self.due_at.min(now + self.delay);
        }
    }

    fn insert(&mut self, number: PacketNumber, token: u8) {
        let at = self
            .ranges
            .iter()
            .position(|range| range.first <= number.next())
            .unwrap_or(self.ranges.len());
        let Some(range) = self
            .ranges
            .get_mut(at)
            .filter(|range| range.last.next() >= number)
        else {
            let alone = AckRange {
                first: number,
                last: number,
            };
            self.ranges.insert(at, alone);
            self.proofs.insert(at, token);
            self.truncate(MAX_RANGES);
            return;
        };
        if let Some(proof) = self.proofs.get_mut(at) {
            *proof ^= token;
        }
        range.first = range.first.min(number);
        range.last = range.last.max(number);
        let first = range.first;
        let Some(below) = self
            .ranges
            .get(at + 1)
            .copied()
            .filter(|below| below.last.next() >= first)
        else {
            return;
        };
        self.ranges.remove(at + 1);
        let proof_below = self.proofs.remove(at + 1);
        if let (Some(range), Some(proof)) = (self.ranges.get_mut(at), self.proofs.get_mut(at)) {
            range.first = below.first;
            *proof ^= proof_below;
        }
    }

    fn truncate(&mut self, count: usize) {
        self.ranges.truncate(count);
        self.proofs.truncate(count);
    }

    pub(super) fn largest(&self) -> Option<PacketNumber> {
        self.ranges.first().map(|range| range.last)
    }

    /// The ranges, from the largest numbers down.
    pub(super) fn ranges(&self) -> &[AckRange] {
        &self.ranges
    }

    /// The proof that the packets of the newest `count` ranges arrived.
    pub(super) fn proof(&self, count: usize) -> u8 {
        let newest = self.proofs.iter().take(count);
        newest.fold(0, |proof, range| proof ^ range)
    }

    /// When the packet with the largest number arrived.
    pub(super) const fn largest_arrived_at(&self) -> Time {
        self.largest_arrived_at
    }

    pub(super) const fn ecn(&self) -> EcnCounts {
        self.ecn
    }

    /// When the next acknowledgement is due; [`Time::MAX`] if none is.
    pub(super) const fn due_at(&self) -> Time {
        self.due_at
    }

    /// Whether a packet arrived since the last acknowledgement.
    pub(super) const fn has_news(&self) -> bool {
        self.unanswered > 0
    }

    /// Makes an acknowledgement due now.
    pub(super) fn demand(&mut self, now: Time) {
        self.due_at = now;
    }

    /// An acknowledgement leaves.
    pub(super) fn on_acknowledged(&mut self) {
        self.unanswered = 0;
        self.due_at = Time::MAX;
    }

    /// The peer has received an acknowledgement with this largest number. Ranges more than
    /// [`REPEATED`] numbers below it need not be acknowledged again.
    pub(super) fn on_seen(&mut self, largest: PacketNumber) {
        let Some(floor) = largest.get().checked_sub(REPEATED) else {
            return;
        };
        // Keeps at least one range, to detect duplicates.
        let kept = self
            .ranges
            .iter()
            .take_while(|range| range.last.get() >= floor)
            .count();
        self.truncate(kept.max(1));
    }
}

/// The maximum number of remembered and sent ranges: an acknowledgement with all of them fits into
/// a packet of 1,200 bytes.
pub(super) const MAX_RANGES: usize = 64;

/// Ranges within this distance below the largest number of an acknowledged Ack frame are reported
/// again.
pub(super) const REPEATED: u64 = 1_024;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    fn packets() -> ReceivedPackets {
        ReceivedPackets::new(2, Span::from_millis(5))
    }

    fn acknowledged(received: &ReceivedPackets) -> Vec<(u64, u64)> {
        let ends = |range: &AckRange| (range.first.get(), range.last.get());
        received.ranges().iter().map(ends).collect()
    }

    /// An arbitrary token.
    const fn token(number: u64) -> u8 {
        (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61) as u8
    }

    fn arrive(received: &mut ReceivedPackets, at_ms: u64, number: u64) {
        let now = Time::from_millis(at_ms);
        let token = token(number);
        received.on_packet(now, PacketNumber::new(number), token, Ecn::NotCapable, true);
    }

    #[test]
    fn every_second_packet_is_acknowledged_and_a_single_one_after_the_delay() {
        let mut received = packets();
        arrive(&mut received, 10, 0);
        assert_eq!(received.due_at(), Time::from_millis(15));
        arrive(&mut received, 12, 1);
        assert_eq!(received.due_at(), Time::from_millis(12));
        received.on_acknowledged();
        assert_eq!(received.due_at(), Time::MAX);
        arrive(&mut received, 20, 2);
        assert_eq!(received.due_at(), Time::from_millis(25));
        // A hole is acknowledged at once, and so is the packet that fills it.
        received.on_acknowledged();
        arrive(&mut received, 21, 4);
        assert_eq!(received.due_at(), Time::from_millis(21));
        received.on_acknowledged();
        arrive(&mut received, 22, 3);
        assert_eq!(received.due_at(), Time::from_millis(22));
        assert_eq!(acknowledged(&received), [(0, 4)]);
        assert_eq!(received.largest_arrived_at(), Time::from_millis(21));
    }

    #[test]
    fn a_mark_is_acknowledged_at_once_and_counted() {
        let mut received = packets();
        let marks = [Ecn::Capable0, Ecn::Capable0, Ecn::CongestionExperienced];
        for (number, ecn) in marks.into_iter().enumerate() {
            received.on_acknowledged();
            let number = PacketNumber::new(number as u64);
            received.on_packet(Time::from_millis(1), number, 0, ecn, true);
        }
        assert_eq!(received.due_at(), Time::from_millis(1));
        assert_eq!((received.ecn().ect0, received.ecn().ce), (2, 1));
    }

    #[test]
    fn ranges_that_the_peer_knows_are_dropped() {
        let mut received = packets();
        for number in [0, 2, 4, 2_000, 2_001] {
            arrive(&mut received, 0, number);
        }
        received.on_seen(PacketNumber::new(900));
        assert_eq!(received.ranges().len(), 4);
        received.on_seen(PacketNumber::new(1_027));
        assert_eq!(acknowledged(&received), [(2_000, 2_001), (4, 4)]);
        received.on_seen(PacketNumber::new(9_000));
        assert_eq!(acknowledged(&received), [(2_000, 2_001)]);
    }

    /// The oldest of 65 ranges is forgotten. A packet below the other ranges may be a duplicate,
    /// but is not counted as one.
    #[test]
    fn numbers_below_the_kept_ranges_are_forgotten() {
        let mut received = packets();
        for range in 0..=MAX_RANGES as u64 {
            let oldest = PacketNumber::new(10 + 2 * range.saturating_sub(MAX_RANGES as u64 - 1));
            assert!(!received.is_forgotten(oldest));
            arrive(&mut received, 0, 10 + 2 * range);
        }
        let known = |number| received.is_known(PacketNumber::new(number));
        let forgotten = |number| received.is_forgotten(PacketNumber::new(number));
        assert_eq!((known(10), forgotten(10)), (false, true));
        assert_eq!((known(11), forgotten(11)), (false, true));
        assert_eq!((known(12), forgotten(12)), (true, false));
        assert_eq!((known(13), forgotten(13)), (false, false));
    }

    /// Every order of arrival of seven packets, for every subset of them. Each proof is that of the
    /// packets in the newest ranges.
    #[test]
    #[cfg_attr(miri, ignore = "too many cases for an interpreter")]
    fn every_order_of_arrival_gives_the_same_ranges_and_proofs() {
        fn go(set: u32, order: &mut Vec<u64>, ranges: &mut [Option<Vec<(u64, u64)>>]) {
            let mut received = packets();
            for &number in order.iter() {
                assert!(!received.is_known(PacketNumber::new(number)));
                arrive(&mut received, 0, number);
                assert!(received.is_known(PacketNumber::new(number)));
            }
            let acknowledged = acknowledged(&received);
            let numbers = acknowledged.iter().flat_map(|&(first, last)| first..=last);
            assert_eq!(numbers.map(|number| 1 << number).sum::<u32>(), set);
            assert!(
                acknowledged
                    .windows(2)
                    .all(|pair| pair[1].1 + 1 < pair[0].0)
            );
            for count in 0..=acknowledged.len() + 1 {
                let newest = acknowledged.iter().take(count);
                let numbers = newest.flat_map(|&(first, last)| first..=last);
                let proof = numbers.fold(0, |proof, number| proof ^ token(number));
                assert_eq!(received.proof(count), proof, "{order:?}");
            }
            let expected = ranges[set as usize].get_or_insert_with(|| acknowledged.clone());
            assert_eq!(acknowledged, *expected, "{order:?}");
            for number in (0..PACKETS).filter(|number| set >> number & 1 == 0) {
                order.push(number);
                go(set | 1 << number, order, ranges);
                order.pop();
            }
        }
        const PACKETS: u64 = 7;
        go(0, &mut Vec::new(), &mut alloc::vec![None; 1 << PACKETS]);
    }

    proptest! {
        #[test]
        fn ranges_are_the_set_of_received_numbers(numbers in prop::collection::vec(0_u64..120, 1..100)) {
            let mut received = packets();
            let mut set = BTreeSet::new();
            for number in numbers {
                prop_assert_eq!(received.is_known(PacketNumber::new(number)), set.contains(&number));
                if set.insert(number) {
                    arrive(&mut received, 0, number);
                }
                let ranges = acknowledged(&received);
                let numbers: Vec<u64> = ranges.iter().flat_map(|&(first, last)| (first..=last).rev()).collect();
                let expected: Vec<u64> = set.iter().rev().copied().collect();
                prop_assert_eq!(numbers, expected);
                prop_assert!(ranges.windows(2).all(|pair| pair[1].1 + 1 < pair[0].0));
                let newest = ranges.len().div_ceil(2);
                let tokens = ranges.iter().take(newest).flat_map(|&(first, last)| first..=last);
                let proof = tokens.fold(0, |proof, number| proof ^ token(number));
                prop_assert_eq!(received.proof(newest), proof);
            }
        }
    }
}
