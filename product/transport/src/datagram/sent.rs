//! Sent packets: in flight, acknowledged or lost.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use comity_congestion::{DeliveryRate, Departure, PacketLoss, RateSample};
use comity_units::{PacketNumber, Span, Time};

use super::events::LostPacket;
use crate::wire::frame::AckRange;

/// A packet that left, and that is neither settled nor forgotten.
#[derive(Clone, Debug)]
pub(super) struct SentPacket<C> {
    pub(super) number: PacketNumber,
    pub(super) sent_at: Time,
    /// The bytes that count against the window: the protected payload; zero for packets that are
    /// not ACK-eliciting.
    pub(super) size: u32,
    /// The contents to retransmit when the packet is lost, or to settle when it is acknowledged.
    pub(super) contents: C,
    /// Whether it is neither acknowledged nor declared lost.
    is_open: bool,
    is_acknowledged: bool,
    /// Whether a probe has retransmitted its contents.
    is_repeated: bool,
    departure: Departure,
}

/// The contents of a packet.
pub(super) trait Carried: Default {
    /// Takes the contents to retransmit when the packet is lost, and keeps those to settle if the
    /// packet is acknowledged late.
    fn repeat(&mut self) -> Self;
}

/// A packet that was declared lost, remembered for a while to detect a spurious loss.
#[derive(Clone, Debug)]
struct Missing<C> {
    number: PacketNumber,
    sent_at: Time,
    size: u32,
    contents: C,
    /// Whether it left on an earlier path. Its late arrival is then no evidence about the present
    /// path.
    is_foreign: bool,
}

/// The effects of an acknowledgement.
#[derive(Debug)]
pub(super) struct Acknowledged<C> {
    /// The contents of the newly acknowledged packets.
    pub(super) contents: Vec<C>,
    /// The number of newly acknowledged packets that had not been declared lost. `bytes` is their
    /// size.
    pub(super) packets: u32,
    pub(super) bytes: u64,
    /// The largest of these packets, and its departure time.
    pub(super) largest: Option<(PacketNumber, Time)>,
    /// The departure time of the largest packet in the acknowledgement, if this packet is newly
    /// acknowledged together with at least one of these packets. It need not be ACK-eliciting: its
    /// acknowledgement measures the round trip equally well.
    pub(super) timed: Option<Time>,
    /// The smallest of these packets.
    pub(super) least: Option<PacketNumber>,
    /// The largest of these packets, if they follow all packets acknowledged before without a gap.
    pub(super) answered: Option<PacketNumber>,
    /// The highest number among the newly acknowledged packets that are larger than the base,
    /// including packets that had been declared lost.
    pub(super) largest_above_base: Option<PacketNumber>,
    /// The contents of newly acknowledged packets that had been declared lost.
    pub(super) late_contents: Vec<C>,
    /// The maximum over the newly acknowledged packets that had been declared lost: how many later
    /// packets were acknowledged before such a packet. Zero if there is none.
    pub(super) reordering: u64,
    /// The departure times of these late packets, the oldest first.
    pub(super) late_sent_at: Vec<Time>,
    /// The bytes in flight before the acknowledgement.
    pub(super) prior_in_flight: u64,
    /// The numbers of all newly acknowledged packets, including those that had been declared lost;
    /// empty unless [`SentPackets::keep_numbers`] is set.
    pub(super) numbers: Vec<PacketNumber>,
}

/// The result of loss detection.
#[derive(Debug)]
pub(super) struct Lost<C> {
    /// The lost packets, in the order of their contents.
    pub(super) packets: Vec<LostPacket>,
    pub(super) contents: Vec<C>,
    pub(super) bytes: u64,
    /// The departure time of the newest lost packet; `None` if no packet was lost.
    pub(super) newest_sent_at: Option<Time>,
    /// The departure time of the oldest lost packet.
    pub(super) oldest_sent_at: Option<Time>,
    /// The departure times of the lost ACK-eliciting packets.
    pub(super) sent_at: Vec<Time>,
    /// The properties of each of these.
    pub(super) losses: Vec<PacketLoss>,
    /// The maximum time between the departures of two of these packets without an acknowledged
    /// packet between them.
    pub(super) spread: Span,
    /// Whether a timer declared all these losses.
    pub(super) by_delay: bool,
}

impl<C> Lost<C> {
    /// The minimum time for which the path was silent: no packet that left in this time arrived.
    /// Zero if a packet that left at `acknowledged`, later than one of these packets, had been
    /// acknowledged before.
    ///
    /// This is the rule by which a connection detects an outage. A silence longer than a round trip
    /// says nothing about the other losses of the path. A silence longer than three probe timeouts
    /// is persistent congestion (RFC 9002, section 7.6). Three other parts detect outages from
    /// other data, and their comments explain why: a controller (`Steady`) while no loss is
    /// detected, the capacity of the path (`Carried`) from queueing delays, and a host's warnings
    /// from totals.
    pub(super) fn silence(&self, acknowledged: Time) -> Span {
        match self.oldest_sent_at {
            Some(oldest) if acknowledged <= oldest => self.spread,
            _ => Span::ZERO,
        }
    }
}

/// A peer acknowledged a packet that was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NeverSent(pub(super) PacketNumber);

/// The record of sent packets, by packet number.
///
/// Numbers are assigned in order. Some are skipped on purpose ([`SentPackets::skip`]), to detect a
/// peer that acknowledges packets that it did not receive. The record holds the packets from the
/// oldest in flight to the newest, and each lost packet while it may still arrive. It holds packets
/// that are not ACK-eliciting [up to a limit](MAX_UNASKED).
#[derive(Debug)]
pub(super) struct SentPackets<C> {
    /// In ascending order of numbers, without the skipped ones.
    packets: VecDeque<SentPacket<C>>,
    /// In ascending order of numbers: packets are declared lost in this order.
    missing: VecDeque<Missing<C>>,
    next: PacketNumber,
    /// The skipped numbers within the range of `packets`.
    skipped: VecDeque<PacketNumber>,
    in_flight: u64,
    in_flight_packets: u32,
    /// The number of `packets` that are not ACK-eliciting and may still be acknowledged.
    unasked: usize,
    largest_acknowledged: Option<PacketNumber>,
    rate: DeliveryRate,
    /// Whether acknowledgements report newly acknowledged numbers.
    keeps_numbers: bool,
    /// Acknowledgements report the newest packet above this size.
    base: u32,
}

impl<C: Carried> SentPackets<C> {
    pub(super) fn new(now: Time) -> Self {
        Self {
            packets: VecDeque::new(),
            missing: VecDeque::new(),
            next: PacketNumber::ZERO,
            skipped: VecDeque::new(),
            in_flight: 0,
            in_flight_packets: 0,
            unasked: 0,
            largest_acknowledged: None,
            rate: DeliveryRate::new(now),
            keeps_numbers: false,
            base: u32::MAX,
        }
    }

    /// Acknowledgements report the newest packet above this size from now on.
    pub(super) const fn set_base(&mut self, size: u32) {
        self.base = size;
    }

    /// Sets whether acknowledgements report newly acknowledged numbers.
    pub(super) const fn keep_numbers(&mut self, keeps: bool) {
        self.keeps_numbers = keeps;
    }

    /// The number of the next packet.
    pub(super) const fn next_number(&self) -> PacketNumber {
        self.next
    }

    /// Bytes in flight.
    pub(super) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// ACK-eliciting packets in flight.
    pub(super) const fn in_flight_packets(&self) -> u32 {
        self.in_flight_packets
    }

    /// The contents of the oldest packet in flight whose contents were not retransmitted yet. The
    /// packet itself stays in flight.
    pub(super) fn repeat_oldest(&mut self) -> Option<C> {
        self.packets
            .iter_mut()
            .find(|packet| packet.is_open && packet.size > 0 && !packet.is_repeated)
            .map(|packet| {
                packet.is_repeated = true;
                packet.contents.repeat()
            })
    }

    /// The application has no data to send although the window has room.
    pub(super) fn on_app_limited(&mut self) {
        self.rate.on_app_limited(self.in_flight);
    }

    /// Takes all packets out of flight, because the path has changed, and returns their contents.
    /// Some may still arrive.
    pub(super) fn abandon(&mut self) -> Vec<C> {
        let mut contents = Vec::new();
        for packet in self.packets.drain(..) {
            if !packet.is_open || packet.size == 0 {
                continue;
            }
            let mut carried = packet.contents;
            contents.push(carried.repeat());
            self.missing.push_back(Missing {
                number: packet.number,
                sent_at: packet.sent_at,
                size: packet.size,
                contents: carried,
                is_foreign: true,
            });
        }
        self.bound_missing();
        for missing in &mut self.missing {
            missing.is_foreign = true;
        }
        (self.in_flight, self.in_flight_packets, self.unasked) = (0, 0, 0);
        contents
    }

    /// Skips the next number: no packet gets it.
    pub(super) fn skip(&mut self) {
        if self.skipped.len() >= MAX_SKIPPED_EVER {
            self.skipped.pop_front();
        }
        self.skipped.push_back(self.next);
        self.next = self.next.next();
    }

    /// A packet leaves. `size` is zero if it is not ACK-eliciting.
    pub(super) fn on_sent(&mut self, now: Time, size: u32, contents: C) {
        let is_first = self.in_flight == 0;
        let in_flight = self.in_flight + u64::from(size);
        let departure = self.rate.on_sent(now, in_flight, is_first);
        if size == 0 {
            if self.unasked >= MAX_UNASKED {
                self.next = self.next.next();
                return;
            }
            self.unasked += 1;
        }
        self.packets.push_back(SentPacket {
            number: self.next,
            sent_at: now,
            size,
            contents,
            is_open: true,
            is_acknowledged: false,
            is_repeated: false,
            departure,
        });
        self.next = self.next.next();
        self.in_flight = in_flight;
        self.in_flight_packets += u32::from(size > 0);
    }

    fn position(&self, number: PacketNumber) -> usize {
        self.packets
            .partition_point(|packet| packet.number < number)
    }

    /// The newest packet that the peer has acknowledged.
    pub(super) const fn largest_acknowledged(&self) -> Option<PacketNumber> {
        self.largest_acknowledged
    }

    /// Handles an acknowledgement of these ranges, in descending order. Takes the contents of newly
    /// acknowledged packets.
    ///
    /// # Errors
    /// [`NeverSent`] if a number was not assigned yet or was skipped; the record is unchanged then.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        ranges: impl Iterator<Item = AckRange> + Clone,
    ) -> Result<Acknowledged<C>, NeverSent> {
        for range in ranges.clone() {
            if range.last >= self.next {
                return Err(NeverSent(range.last));
            }
            let at = self.skipped.partition_point(|number| *number < range.first);
            if let Some(number) = self.skipped.get(at).filter(|number| **number <= range.last) {
                return Err(NeverSent(*number));
            }
        }
        let mut result = Acknowledged {
            contents: Vec::new(),
            packets: 0,
            bytes: 0,
            largest: None,
            timed: None,
            least: None,
            answered: None,
            largest_above_base: None,
            late_contents: Vec::new(),
            reordering: 0,
            late_sent_at: Vec::new(),
            prior_in_flight: self.in_flight,
            numbers: Vec::new(),
        };
        let expected = self
            .largest_acknowledged
            .map_or(0, |last| last.next().get());
        let first = ranges.clone().next().map(|range| range.last);
        for range in ranges {
            self.largest_acknowledged = self.largest_acknowledged.max(Some(range.last));
            self.find_missing(now, &range, &mut result);
            let mut at = self.position(range.first);
            while let Some(packet) = self.packets.get_mut(at)
                && packet.number <= range.last
            {
                at += 1;
                if !packet.is_open {
                    continue;
                }
                packet.is_open = false;
                packet.is_acknowledged = true;
                if first == Some(packet.number) {
                    result.timed = Some(packet.sent_at);
                }
                result.contents.push(core::mem::take(&mut packet.contents));
                if packet.size == 0 {
                    self.unasked -= 1;
                    continue;
                }
                let size = u64::from(packet.size);
                self.in_flight -= size;
                self.in_flight_packets -= 1;
                self.rate.on_delivered(now, &packet.departure, size, false);
                result.packets += 1;
                result.bytes += size;
                let number = packet.number;
                if packet.size > self.base {
                    result.largest_above_base = result.largest_above_base.max(Some(number));
                }
                if self.keeps_numbers {
                    result.numbers.push(number);
                }
                if result.largest.is_none_or(|(largest, _)| largest < number) {
                    result.largest = Some((number, packet.sent_at));
                }
                result.least = Some(result.least.map_or(number, |least| least.min(number)));
            }
        }
        result.timed = result.timed.filter(|_| result.packets > 0);
        if let Some((largest, _)) = result.largest
            && result.late_sent_at.is_empty()
            && largest.next().get().checked_sub(expected) == Some(u64::from(result.packets))
        {
            result.answered = Some(largest);
        }
        result.numbers.sort_unstable();
        result.late_sent_at.sort_unstable();
        self.let_go();
        Ok(result)
    }

    /// The delivery rate measured by the last acknowledgement, and the losses since the previous
    /// sample.
    pub(super) fn sample(&mut self, now: Time, prior_in_flight: u64) -> RateSample {
        self.rate.sample(now, prior_in_flight, self.in_flight)
    }

    /// Removes packets of this range from the list of missing ones: their losses were spurious.
    fn find_missing(&mut self, now: Time, range: &AckRange, result: &mut Acknowledged<C>) {
        let first = self
            .missing
            .partition_point(|missing| missing.number < range.first);
        let until = self
            .missing
            .partition_point(|missing| missing.number <= range.last);
        if first >= until {
            return;
        }
        let largest = self.largest_acknowledged;
        for missing in self.missing.drain(first..until) {
            result.late_contents.push(missing.contents);
            if missing.is_foreign {
                continue;
            }
            let behind = largest.map_or(0, |largest| {
                largest.get().saturating_sub(missing.number.get())
            });
            result.reordering = result.reordering.max(behind);
            result.late_sent_at.push(missing.sent_at);
            let large = &mut result.largest_above_base;
            if missing.size > self.base {
                *large = (*large).max(Some(missing.number));
            }
            if self.keeps_numbers {
                result.numbers.push(missing.number);
            }
            self.rate.on_late(now, u64::from(missing.size));
        }
    }

    /// Declares packets lost (RFC 9002, section 6.1): those that are at least `threshold` below the
    /// largest acknowledged packet, and those below that packet that left before `now − delay`.
    /// Returns these packets, and when the time threshold of the next packet expires.
    pub(super) fn detect_losses(
        &mut self,
        now: Time,
        threshold: u64,
        delay: Span,
    ) -> (Lost<C>, Option<Time>) {
        let mut lost = Lost {
            packets: Vec::new(),
            contents: Vec::new(),
            bytes: 0,
            newest_sent_at: None,
            oldest_sent_at: None,
            sent_at: Vec::new(),
            losses: Vec::new(),
            spread: Span::ZERO,
            by_delay: true,
        };
        // The first lost packet since which nothing was acknowledged.
        let mut run_began_at = None;
        let Some(largest) = self.largest_acknowledged else {
            return (lost, None);
        };
        let mut next_due = None;
        let below = self.position(largest);
        for packet in self.packets.iter_mut().take(below) {
            if packet.is_acknowledged && packet.size > 0 {
                run_began_at = None;
            }
            if !packet.is_open {
                continue;
            }
            let by_number = largest.get() - packet.number.get() >= threshold;
            let due = packet.sent_at + delay;
            if !by_number && due > now {
                next_due = Some(due);
                break;
            }
            lost.by_delay &= !by_number;
            packet.is_open = false;
            lost.packets.push(LostPacket {
                number: packet.number,
                payload: packet.size,
                by_delay: !by_number,
            });
            lost.contents.push(packet.contents.repeat());
            if packet.size == 0 {
                self.unasked -= 1;
            } else {
                let size = u64::from(packet.size);
                self.in_flight -= size;
                self.in_flight_packets -= 1;
                lost.losses.push(self.rate.on_lost(&packet.departure, size));
                lost.bytes += size;
                lost.newest_sent_at = Some(packet.sent_at);
                lost.oldest_sent_at = lost.oldest_sent_at.or(Some(packet.sent_at));
                lost.sent_at.push(packet.sent_at);
                let began_at = *run_began_at.get_or_insert(packet.sent_at);
                lost.spread = lost.spread.max(packet.sent_at.saturating_since(began_at));
                self.missing.push_back(Missing {
                    number: packet.number,
                    sent_at: packet.sent_at,
                    size: packet.size,
                    contents: core::mem::take(&mut packet.contents),
                    is_foreign: false,
                });
            }
        }
        self.let_go();
        self.bound_missing();
        (lost, next_due)
    }

    /// Drops the records without further effect.
    fn let_go(&mut self) {
        while let Some(first) = self.packets.front() {
            // A packet that is not ACK-eliciting is settled once a later one is acknowledged.
            let is_settled =
                !first.is_open || first.size == 0 && self.largest_acknowledged > Some(first.number);
            if !is_settled {
                break;
            }
            self.unasked -= usize::from(first.is_open && first.size == 0);
            self.packets.pop_front();
        }
        // A skipped number is remembered while an honest acknowledgement may include such low
        // numbers.
        let horizon = self.packets.front().map_or(self.next, |first| first.number);
        while self.skipped.len() > MAX_SKIPPED
            && self.skipped.front().is_some_and(|number| *number < horizon)
        {
            self.skipped.pop_front();
        }
    }

    /// Forgets the oldest lost packets beyond the limit.
    fn bound_missing(&mut self) {
        let beyond = self.missing.len().saturating_sub(MAX_MISSING);
        self.missing.drain(..beyond);
    }

    /// Forgets lost packets that left before `horizon`, because they can no longer arrive.
    pub(super) fn forget_missing(&mut self, horizon: Time) {
        while let Some(first) = self.missing.front()
            && first.sent_at < horizon
        {
            self.missing.pop_front();
        }
    }
}

/// The number of skipped numbers to remember after the packets around them are settled.
const MAX_SKIPPED: usize = 64;

/// The maximum number of skipped numbers to remember if nothing is settled.
const MAX_SKIPPED_EVER: usize = 4_096;

/// The maximum number of lost packets to remember: a round trip of 40 ms at 200,000 packets per
/// second.
const MAX_MISSING: usize = 8_192;

/// The maximum number of remembered packets that are not ACK-eliciting, for a peer that
/// acknowledges no packet. The loss of their contents matters little: each acknowledgement repeats
/// the previous ones.
const MAX_UNASKED: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec;
    use comity_units::DataSize;
    use proptest::prelude::*;

    const SIZE: u32 = 1_000;

    impl Carried for u64 {
        fn repeat(&mut self) -> Self {
            *self
        }
    }

    /// The ranges between these numbers.
    fn ranges<const N: usize>(ends: [(u64, u64); N]) -> impl Iterator<Item = AckRange> + Clone {
        ends.into_iter().map(|(first, last)| AckRange {
            first: PacketNumber::new(first),
            last: PacketNumber::new(last),
        })
    }

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// Ten packets, one per millisecond; each contains its own number.
    fn ten() -> SentPackets<u64> {
        let mut sent = SentPackets::new(Time::ZERO);
        for number in 0..10 {
            sent.on_sent(at(number), SIZE, number);
        }
        sent
    }

    #[test]
    fn packets_far_below_the_largest_acknowledged_are_lost() {
        let mut sent = ten();
        let acknowledged = sent.on_ack(at(40), ranges([(4, 4), (0, 0)]));
        let acknowledged = acknowledged.expect("all were sent");
        assert_eq!(acknowledged.contents, [4, 0]);
        assert_eq!((acknowledged.packets, acknowledged.bytes), (2, 2_000));
        assert_eq!(acknowledged.largest, Some((PacketNumber::new(4), at(4))));
        assert_eq!(acknowledged.least, Some(PacketNumber::new(0)));
        assert_eq!(sent.in_flight(), 8_000);
        // A threshold of three: 1 is lost, 2 and 3 are not yet.
        let (lost, next) = sent.detect_losses(at(40), 3, Span::from_millis(45));
        assert_eq!(lost.contents, [1]);
        assert_eq!((lost.bytes, lost.by_delay), (1_000, false));
        assert_eq!(next, Some(at(47)), "2 left at 2 ms");
        // The time threshold applies to the rest; packets above the largest acknowledged one stay.
        let (lost, next) = sent.detect_losses(at(100), 3, Span::from_millis(45));
        assert_eq!(lost.contents, [2, 3]);
        assert_eq!((lost.by_delay, next), (true, None));
        assert_eq!(
            (lost.oldest_sent_at, lost.newest_sent_at),
            (Some(at(2)), Some(at(3)))
        );
        assert_eq!((sent.in_flight(), sent.in_flight_packets()), (5_000, 5));
    }

    /// Packets 0, 6 and 9 arrive. Packets 1 to 5, 7 and 8 do not arrive.
    #[test]
    fn a_silence_lasts_while_all_packets_are_lost() {
        let mut sent = ten();
        sent.on_ack(at(40), ranges([(0, 0)])).expect("sent");
        sent.on_ack(at(50), ranges([(9, 9), (6, 6)])).expect("sent");
        let (lost, _) = sent.detect_losses(at(100), 3, Span::from_millis(45));
        assert_eq!(lost.contents, [1, 2, 3, 4, 5, 7, 8]);
        assert_eq!(lost.silence(at(0)), Span::from_millis(4));
        assert_eq!(lost.silence(at(1)), Span::from_millis(4));
        assert_eq!(lost.silence(at(2)), Span::ZERO, "one had arrived since");
    }

    #[test]
    fn a_late_packet_is_evidence_of_reordering_once() {
        let mut sent = ten();
        sent.on_ack(at(40), ranges([(5, 5)])).expect("sent");
        let (lost, _) = sent.detect_losses(at(40), 3, Span::from_secs(1));
        assert_eq!(lost.contents, [0, 1, 2]);
        let late = sent.on_ack(at(41), ranges([(5, 6), (1, 1)])).expect("sent");
        assert_eq!(
            late.reordering, 5,
            "1 was five below 6 when it was 5, now the largest is 6"
        );
        assert_eq!((late.packets, late.contents), (1, vec![6]));
        let again = sent.on_ack(at(42), ranges([(5, 6), (1, 1)])).expect("sent");
        assert_eq!((again.reordering, again.packets), (0, 0));
        assert_eq!(
            (late.late_sent_at, again.late_sent_at),
            (vec![at(1)], vec![])
        );
        sent.forget_missing(at(3));
        let forgotten = sent.on_ack(at(43), ranges([(0, 2)])).expect("sent");
        assert_eq!(forgotten.reordering, 0);
    }

    #[test]
    fn lost_packets_are_remembered_up_to_a_limit() {
        let mut sent = SentPackets::new(Time::ZERO);
        let most = MAX_MISSING as u64;
        for round in 1..=3 {
            for number in (round - 1) * most..round * most {
                sent.on_sent(at(round), SIZE, number);
            }
            let last = round * most - 1;
            sent.on_ack(at(round), ranges([(last, last)]))
                .expect("sent");
            let (lost, _) = sent.detect_losses(at(round), 1, Span::from_secs(1));
            assert_eq!(lost.contents.len() as u64, most - 1);
            assert_eq!(sent.missing.len() as u64, (round * (most - 1)).min(most));
        }
        // The oldest are forgotten, and the newest still arrive late.
        let late = sent.on_ack(at(4), ranges([(0, most - 1)])).expect("sent");
        assert!(late.late_contents.is_empty());
        let newest = (3 * most - 3, 3 * most - 2);
        let late = sent.on_ack(at(4), ranges([newest])).expect("sent");
        assert_eq!(late.late_contents, [newest.0, newest.1]);
    }

    #[test]
    fn an_acknowledgement_is_timed_by_its_largest_number() {
        let mut sent = ten();
        sent.on_sent(at(20), 0, 10);
        sent.on_sent(at(21), 0, 11);
        let mut timed = |ranges: [(u64, u64); 1]| {
            let ranges = self::ranges(ranges);
            sent.on_ack(at(40), ranges).expect("sent").timed
        };
        assert_eq!(timed([(4, 4)]), Some(at(4)));
        assert_eq!(timed([(9, 10)]), Some(at(20)), "with 9, which had asked");
        assert_eq!(timed([(11, 11)]), None, "nothing had asked");
        assert_eq!(timed([(8, 11)]), None, "11 had been acknowledged before");
    }

    #[test]
    fn acknowledging_an_unsent_packet_is_an_error() {
        let mut sent = ten();
        sent.skip();
        sent.on_sent(at(10), SIZE, 11);
        assert_eq!(sent.next_number(), PacketNumber::new(12));
        let beyond = sent.on_ack(at(50), ranges([(0, 12)])).err();
        assert_eq!(beyond, Some(NeverSent(PacketNumber::new(12))));
        let skipped = sent.on_ack(at(50), ranges([(9, 11)])).err();
        assert_eq!(skipped, Some(NeverSent(PacketNumber::new(10))));
        assert_eq!(sent.in_flight(), 11_000, "nothing was changed");
        assert!(sent.on_ack(at(50), ranges([(11, 11), (0, 9)])).is_ok());
        assert_eq!((sent.in_flight(), sent.packets.len()), (0, 0));
    }

    #[test]
    fn a_rate_sample_by_hand() {
        // Ten packets of 1,000 bytes, one per millisecond, over a path of 40 ms that carries one
        // per 2 ms. The acknowledgement of packet 3 arrives at 46 ms, that of packet 6 at 52 ms.
        let mut sent = ten();
        let sample = |sent: &mut SentPackets<u64>, now, range| {
            let news = sent.on_ack(now, ranges([range])).expect("sent");
            sent.sample(now, news.prior_in_flight)
        };
        sample(&mut sent, at(46), (0, 3));
        let second = sample(&mut sent, at(52), (4, 6));
        // All ten left before anything was delivered, so the whole flight counts: 7,000 bytes in 52
        // ms.
        assert_eq!(second.delivered, DataSize::new(7_000));
        assert_eq!(second.interval, Span::from_millis(52));
        assert_eq!(second.sending, None, "it began with nothing in flight");
        assert_eq!(second.prior_in_flight, DataSize::new(6_000));
        assert_eq!(second.in_flight, DataSize::new(3_000));
        // Packet 10 leaves at 52 ms and is acknowledged at 98 ms: the four packets acknowledged
        // since then.
        sent.on_app_limited();
        sent.on_sent(at(52), SIZE, 10);
        let third = sample(&mut sent, at(98), (7, 10));
        assert_eq!(third.delivered, DataSize::new(4_000));
        assert_eq!(third.interval, Span::from_millis(46));
        assert!(third.app_limited);
        // After packet 6, which left at 6 ms and was the newest acknowledged one when packet 10
        // left.
        assert_eq!(third.sending, Some(Span::from_millis(46)));
    }

    proptest! {
        /// Compares with a set of numbers: each packet's contents are returned at most once, and
        /// the bytes in flight are those of the remaining packets.
        #[test]
        fn each_packet_has_one_fate(
            steps in prop::collection::vec((0_u64..40, 0_u64..6, 0_u8..4), 1..120),
        ) {
            let mut sent = SentPackets::new(Time::ZERO);
            let mut open: BTreeSet<u64> = BTreeSet::new();
            let mut settled: BTreeSet<u64> = BTreeSet::new();
            let mut lost_ones: BTreeSet<u64> = BTreeSet::new();
            for (step, (start, length, kind)) in steps.into_iter().enumerate() {
                let now = at(step as u64);
                let number = sent.next_number().get();
                match kind {
                    0 | 1 => {
                        sent.on_sent(now, SIZE, number);
                        open.insert(number);
                    }
                    2 if start < number => {
                        let end = (start + length).min(number - 1);
                        let acknowledged = sent.on_ack(now, ranges([(start, end)])).expect("sent");
                        for contents in acknowledged.contents {
                            prop_assert!(open.remove(&contents) && settled.insert(contents));
                            prop_assert!((start..=end).contains(&contents));
                        }
                        let late: Vec<u64> = lost_ones.range(start..=end).copied().collect();
                        prop_assert_eq!(acknowledged.late_contents, late.clone());
                        lost_ones.retain(|number| !late.contains(number));
                        prop_assert!(open.range(start..=end).next().is_none());
                    }
                    _ => {
                        let (lost, _) = sent.detect_losses(now, 3, Span::from_millis(20));
                        for contents in lost.contents {
                            prop_assert!(open.remove(&contents) && settled.insert(contents));
                            lost_ones.insert(contents);
                        }
                    }
                }
                prop_assert_eq!(sent.in_flight(), open.len() as u64 * u64::from(SIZE));
                prop_assert_eq!(sent.in_flight_packets() as usize, open.len());
            }
        }
    }
}
