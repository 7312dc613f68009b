//! The record of segments in flight, for controllers that measure the delivery rate.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use comity_congestion::{DeliveryRate, Departure, PacketLoss, RateSample};
use comity_units::{Span, Time};

/// Every outstanding segment and its state: in the network, delivered or lost.
///
/// Without selective acknowledgements, only the cumulative acknowledgement delivers a segment.
#[derive(Debug)]
pub(super) struct Delivery {
    rate: DeliveryRate,
    /// In ascending order of offsets. The only gaps between them are data that a time-line
    /// discarded.
    segments: VecDeque<Record>,
    /// Bytes that are neither delivered nor lost.
    in_flight: u64,
    /// Bytes that are lost and not retransmitted since.
    lost: u64,
    /// Segments up to this offset were checked for their first loss.
    judged: u64,
    /// A recovery from a timeout lasts until this offset is acknowledged.
    repaired_at: u64,
    min_rtt: Span,
    /// Losses not yet reported to the controller.
    losses: Vec<PacketLoss>,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    start: u64,
    end: u64,
    departure: Departure,
    fate: Fate,
    is_retransmitted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InFlight,
    Delivered,
    Lost,
}

impl Record {
    const fn length(&self) -> u64 {
        self.end - self.start
    }
}

impl Delivery {
    pub(super) const fn new() -> Self {
        Self {
            rate: DeliveryRate::new(Time::ZERO),
            segments: VecDeque::new(),
            in_flight: 0,
            lost: 0,
            judged: 0,
            repaired_at: 0,
            min_rtt: Span::MAX,
            losses: Vec::new(),
        }
    }

    /// Records that `[start, end)` leaves; `max` is the end of the data sent earlier.
    pub(super) fn on_sent(&mut self, now: Time, start: u64, end: u64, max: u64) {
        let is_first = self.segments.is_empty();
        if start < max {
            let first = self.first_ending_after(start);
            for record in self.segments.range_mut(first..) {
                if record.start >= end {
                    break;
                }
                if record.fate == Fate::Delivered {
                    continue;
                }
                if record.fate == Fate::Lost {
                    record.fate = Fate::InFlight;
                    self.in_flight += record.length();
                    self.lost -= record.length();
                }
                record.is_retransmitted = true;
                record.departure = self.rate.on_sent(now, self.in_flight, false);
            }
        }
        let start = start.max(max);
        if start < end {
            self.in_flight += end - start;
            self.segments.push_back(Record {
                start,
                end,
                departure: self.rate.on_sent(now, self.in_flight, is_first),
                fate: Fate::InFlight,
                is_retransmitted: false,
            });
        }
    }

    fn first_ending_after(&self, offset: u64) -> usize {
        self.segments.partition_point(|record| record.end <= offset)
    }

    /// Records the arrival of everything before `una` and of the ranges `sacked`.
    pub(super) fn on_arrival(&mut self, now: Time, una: u64, sacked: &[(u64, u64)]) {
        let covered = self.first_ending_after(una);
        for at in 0..covered {
            self.deliver(now, at);
        }
        self.segments.drain(..covered);
        for &(start, end) in sacked {
            let first = self.segments.partition_point(|record| record.start < start);
            for at in first..self.segments.len() {
                if self.segments.get(at).is_none_or(|record| record.end > end) {
                    break;
                }
                self.deliver(now, at);
            }
        }
    }

    fn deliver(&mut self, now: Time, at: usize) {
        let Some(record) = self.segments.get_mut(at) else {
            return;
        };
        let length = record.length();
        match record.fate {
            Fate::Delivered => return,
            Fate::InFlight => self.in_flight -= length,
            Fate::Lost => self.lost -= length,
        }
        record.fate = Fate::Delivered;
        let (departure, is_retransmitted) = (record.departure, record.is_retransmitted);
        if !is_retransmitted {
            let rtt = now.saturating_since(departure.sent_at());
            self.min_rtt = self.min_rtt.min(rtt);
        }
        self.rate
            .on_delivered(now, &departure, length, is_retransmitted);
    }

    /// Marks as lost every segment below `offset` that was sent once and has not arrived.
    /// `is_skipped` returns whether a range was not sent at all.
    pub(super) fn on_lost_below(&mut self, offset: u64, is_skipped: impl Fn(u64, u64) -> bool) {
        for at in self.first_ending_after(self.judged)..self.first_ending_after(offset) {
            if self.segments.get(at).is_some_and(|record| {
                !record.is_retransmitted && !is_skipped(record.start, record.end)
            }) {
                self.lose(at);
            }
        }
        self.judged = self.judged.max(offset);
    }

    /// Marks the segment that holds `offset` as lost.
    pub(super) fn on_lost_at(&mut self, offset: u64) {
        self.lose(self.first_ending_after(offset));
    }

    /// Handles an expiry of the retransmission timer, with `max` as the end of the data sent:
    /// everything undelivered is lost.
    pub(super) fn on_timeout(&mut self, max: u64) {
        for at in 0..self.segments.len() {
            self.lose(at);
        }
        self.repaired_at = max;
    }

    fn lose(&mut self, at: usize) {
        let Some(record) = self.segments.get_mut(at) else {
            return;
        };
        if record.fate == Fate::InFlight {
            record.fate = Fate::Lost;
            let length = record.length();
            self.in_flight -= length;
            self.lost += length;
            let loss = self.rate.on_lost(&record.departure, length);
            self.losses.push(loss);
        }
    }

    /// Losses that were not reported to the controller yet.
    pub(super) fn take_losses(&mut self) -> Vec<PacketLoss> {
        core::mem::take(&mut self.losses)
    }

    /// Whether the recovery from a timeout lasts while `una` is the first unacknowledged offset.
    pub(super) const fn is_repairing(&self, una: u64) -> bool {
        una < self.repaired_at
    }

    /// Bytes that are neither delivered nor lost.
    pub(super) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Marks samples as application-limited if the application leaves room in the window: less than
    /// a segment is unsent, and nothing lost awaits retransmission. A sender that waits for its
    /// pacer or for the peer's window is not limited by its application.
    pub(super) fn check_app_limited(&mut self, unsent: u64, window: u64, mss: u32) {
        if unsent < u64::from(mss) && self.in_flight < window && self.lost == 0 {
            self.rate.on_app_limited(self.in_flight);
        }
    }

    /// The rate sample of an acknowledgement; `prior_in_flight` was in flight before it.
    pub(super) fn sample(&mut self, now: Time, prior_in_flight: u64) -> RateSample {
        let sample = self.rate.sample(now, prior_in_flight, self.in_flight);
        match self.min_rtt {
            Span::MAX => sample,
            least => sample.without_rate_below(least),
        }
    }

    pub(super) fn heap_memory(&self) -> usize {
        self.segments.capacity() * size_of::<Record>()
            + self.losses.capacity() * size_of::<PacketLoss>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_units::DataSize;

    const MSS: u64 = 1_000;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// Ten segments from offset 1 on, a millisecond apart.
    fn ten() -> Delivery {
        let mut delivery = Delivery::new();
        for segment in 0..10 {
            let start = 1 + segment * MSS;
            delivery.on_sent(at(segment), start, start + MSS, start);
        }
        delivery
    }

    #[test]
    fn each_segment_is_delivered_once() {
        let mut delivery = ten();
        delivery.on_arrival(at(40), 1 + 2 * MSS, &[(1 + 4 * MSS, 1 + 6 * MSS)]);
        let sample = delivery.sample(at(40), 10 * MSS);
        assert_eq!(sample.newly_delivered, DataSize::new(4 * MSS));
        assert_eq!(sample.in_flight, DataSize::new(6 * MSS));
        assert_eq!(
            sample.rtt,
            Some(Span::from_millis(35)),
            "segment 5 is the newest"
        );
        // The same range again, and half of the next segment.
        let sacked = [(1 + 4 * MSS, 1 + 6 * MSS + MSS / 2)];
        delivery.on_arrival(at(41), 1 + 2 * MSS, &sacked);
        let sample = delivery.sample(at(41), 6 * MSS);
        assert_eq!(sample.newly_delivered, DataSize::ZERO);
        assert!(!sample.has_rate());
        delivery.on_arrival(at(50), 1 + 10 * MSS, &[]);
        let sample = delivery.sample(at(50), 6 * MSS);
        assert_eq!(sample.newly_delivered, DataSize::new(6 * MSS));
        assert_eq!(sample.total_delivered, DataSize::new(10 * MSS));
        assert_eq!((delivery.in_flight, delivery.segments.len()), (0, 0));
    }

    #[test]
    fn a_lost_segment_leaves_the_network_until_its_retransmission() {
        let mut delivery = ten();
        delivery.on_arrival(at(40), 1, &[(1 + 3 * MSS, 1 + 7 * MSS)]);
        delivery.on_lost_below(1 + 3 * MSS, |_, _| false);
        let sample = delivery.sample(at(40), 10 * MSS);
        assert_eq!(sample.newly_lost, DataSize::new(3 * MSS));
        assert_eq!(
            sample.in_flight,
            DataSize::new(3 * MSS),
            "segments 7, 8 and 9"
        );
        assert_eq!(delivery.lost, 3 * MSS);
        delivery.on_sent(at(41), 1, 1 + MSS, 1 + 10 * MSS);
        assert_eq!((delivery.in_flight, delivery.lost), (4 * MSS, 2 * MSS));
        // The scoreboard reports the hole while it exists; that does not make the retransmission
        // lost.
        delivery.on_lost_below(1 + 3 * MSS, |_, _| false);
        assert_eq!(delivery.in_flight, 4 * MSS);
        delivery.on_arrival(at(81), 1 + MSS, &[]);
        let sample = delivery.sample(at(81), 4 * MSS);
        assert_eq!(sample.rtt, None, "either copy may have arrived");
        assert_eq!(sample.lost, DataSize::ZERO, "none since its retransmission");
        // A timeout marks everything as lost, retransmissions included.
        delivery.on_sent(at(82), 1 + MSS, 1 + 2 * MSS, 1 + 10 * MSS);
        delivery.on_timeout(1 + 10 * MSS);
        assert_eq!((delivery.in_flight, delivery.lost), (0, 5 * MSS));
        let sample = delivery.sample(at(300), 5 * MSS);
        assert_eq!(sample.newly_lost, DataSize::new(4 * MSS));
    }
    #[test]
    fn samples_are_application_limited_only_without_other_work() {
        // The window, the unsent bytes, and whether a segment is lost.
        for (window, unsent, has_loss, expected) in [
            (20 * MSS, 0, false, true),
            (20 * MSS, MSS, false, false),
            (10 * MSS, 0, false, false),
            (20 * MSS, 0, true, false),
        ] {
            let mut delivery = ten();
            if has_loss {
                delivery.on_lost_at(1);
            }
            delivery.check_app_limited(unsent, window, MSS as u32);
            delivery.on_sent(at(10), 1 + 10 * MSS, 1 + 11 * MSS, 1 + 10 * MSS);
            delivery.on_arrival(at(50), 1 + 11 * MSS, &[]);
            let sample = delivery.sample(at(50), 11 * MSS);
            assert_eq!(sample.app_limited, expected, "{window} {unsent} {has_loss}");
        }
    }

    #[test]
    fn the_recovery_from_a_timeout_ends_with_everything_sent_before_it() {
        let mut delivery = ten();
        assert!(!delivery.is_repairing(1));
        delivery.on_timeout(1 + 10 * MSS);
        assert_eq!(delivery.take_losses().len(), 10);
        assert_eq!(delivery.take_losses().len(), 0, "each is reported once");
        assert!(delivery.is_repairing(10 * MSS));
        assert!(!delivery.is_repairing(1 + 10 * MSS));
    }
}
