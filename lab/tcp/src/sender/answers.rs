//! The packet that triggered an acknowledgement, for controllers that need it.

use alloc::collections::VecDeque;

use comity_congestion::Arrived;
use comity_units::{PacketNumber, Span, Time};

/// A record of each segment in flight, which maps acknowledged offsets to the packet numbers of
/// controllers.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// In ascending order.
    sent: VecDeque<Record>,
    pub(super) peer_clock: PeerClock,
}

/// The peer's clock, read from its timestamps. An acknowledgement leaves when the packet that
/// triggers it arrives. Its timestamp is therefore the time of that arrival, whatever the queueing
/// delay in the reverse direction.
///
/// RFC 7323 allows ticks between a millisecond and a second; current hosts tick in milliseconds or
/// microseconds. The number of ticks per elapsed time identifies the unit: microseconds within a
/// factor of 30, halfway to milliseconds, and milliseconds within a factor of two.
///
/// A growing queue in the reverse direction distorts the count that much only for a short time, in
/// which no packet is reported. The peer's clock would not help then, because acknowledgements
/// behind such a queue are compressed. Ticks that match neither clock for two seconds are ignored
/// for good.
#[derive(Debug, Default)]
pub(super) struct PeerClock {
    /// When the first timestamp came.
    began_at: Option<Time>,
    last: u32,
    /// Ticks since the first.
    ticks: u64,
}

/// The information of a timestamp about an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Too few timestamps arrived to identify the tick.
    Unknown,
    /// No information: the peer has no clock, or an unknown tick.
    Nothing,
    /// The time on the peer's clock.
    At(Arrived),
}

impl PeerClock {
    /// Processes the timestamp of an acknowledgement that arrived at `now`.
    pub(super) fn read(&mut self, now: Time, value: u32) -> Reading {
        let began_at = *self.began_at.get_or_insert_with(|| {
            self.last = value;
            now
        });
        // An acknowledgement with a timestamp behind the newest was reordered.
        let ahead = value.wrapping_sub(self.last).cast_signed();
        let Some(ticks) = self.ticks.checked_add_signed(ahead.into()) else {
            return Reading::Unknown;
        };
        if ahead > 0 {
            (self.last, self.ticks) = (value, ticks);
        }
        let elapsed = now.saturating_since(began_at);
        let micros = elapsed.as_nanos() / 1_000;
        if elapsed < MIN_WATCHED {
            Reading::Unknown
        } else if micros / 30 <= ticks && ticks / 30 <= micros {
            Reading::At(Arrived {
                at: Time::from_micros(ticks),
                tick: Span::from_micros(1),
            })
        } else if micros / 2_000 <= ticks && ticks <= micros / 500 {
            Reading::At(Arrived {
                at: Time::from_millis(ticks),
                tick: Span::from_millis(1),
            })
        } else if elapsed < LONGEST_WATCHED {
            Reading::Unknown
        } else {
            Reading::Nothing
        }
    }
}

/// A clock of milliseconds ticks ten times in this span.
const MIN_WATCHED: Span = Span::from_millis(10);

/// By then, a reverse queue of one second is half of the elapsed time, the maximum that a clock of
/// milliseconds may lack.
const LONGEST_WATCHED: Span = Span::from_secs(2);

#[derive(Clone, Copy, Debug)]
struct Record {
    /// The offset after the segment.
    end: u64,
    number: PacketNumber,
    /// Whether any of it was retransmitted, which makes its acknowledgement ambiguous.
    is_retransmitted: bool,
}

impl Answers {
    /// Records a segment with the offsets from `start` to `end`; `max` is the end of the data sent
    /// earlier.
    pub(super) fn on_sent(&mut self, start: u64, end: u64, max: u64, number: PacketNumber) {
        if start < max {
            let first = self.sent.partition_point(|record| record.end <= start);
            for record in self.sent.iter_mut().skip(first) {
                record.is_retransmitted = true;
                if record.end >= end {
                    break;
                }
            }
        }
        if end > max {
            self.sent.push_back(Record {
                end,
                number,
                is_retransmitted: start < max,
            });
        }
    }

    /// Handles the acknowledgement of everything before `offset`. Returns the newest packet in it,
    /// unless a part was retransmitted or the acknowledgement ends within a segment.
    pub(super) fn on_advance(&mut self, offset: u64) -> Option<PacketNumber> {
        let mut newest = None;
        let mut is_clean = true;
        while let Some(record) = self.sent.front().filter(|record| record.end <= offset) {
            is_clean &= !record.is_retransmitted;
            newest = Some(*record);
            self.sent.pop_front();
        }
        newest
            .filter(|record| is_clean && record.end == offset)
            .map(|record| record.number)
    }

    pub(super) fn heap_memory(&self) -> usize {
        self.sent.capacity() * size_of::<Record>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(of: u64) -> PacketNumber {
        PacketNumber::new(of)
    }

    /// Segments of 10 bytes from offset 1 on, numbered from 1.
    fn flight(segments: u64) -> Answers {
        let mut answers = Answers::default();
        for at in 0..segments {
            let start = 1 + 10 * at;
            answers.on_sent(start, start + 10, start, number(at + 1));
        }
        answers
    }

    #[test]
    fn an_acknowledgement_reports_its_newest_packet() {
        let mut answers = flight(6);
        assert_eq!(answers.on_advance(11), Some(number(1)));
        assert_eq!(answers.on_advance(31), Some(number(3)));
        assert_eq!(answers.on_advance(36), None, "within the fourth");
        assert_eq!(answers.on_advance(41), Some(number(4)));
        assert_eq!(answers.on_advance(41), None, "nothing new");
        assert_eq!(answers.on_advance(61), Some(number(6)));
    }

    /// Packets arrive 20 ms apart, acknowledgements 30 ms apart, with clocks of several ticks. Only
    /// those of microseconds and of milliseconds are accepted, over their wrap, after a time of
    /// observation. The others are rejected for good.
    #[test]
    fn only_known_clocks_give_arrival_times() {
        let clocks = [
            (1, false),
            (1_000, true),
            (100_000, false),
            (1_000_000, true),
            (4_000_000, false),
            (10_000_000, false),
        ];
        for (nanos_per_tick, is_known) in clocks {
            let mut clock = PeerClock::default();
            let begin = u32::MAX - 50;
            let mut read = |millis: u64, arrived: u64| {
                let ticks = (arrived * 1_000_000 / nanos_per_tick) as u32;
                clock.read(Time::from_millis(millis), begin.wrapping_add(ticks))
            };
            assert_eq!(read(1_000, 0), Reading::Unknown);
            assert_eq!(read(1_009, 9), Reading::Unknown, "too early to decide");
            let at = |millis| match is_known {
                true => Reading::At(Arrived {
                    at: Time::from_millis(millis),
                    tick: Span::from_nanos(nanos_per_tick),
                }),
                false => Reading::Unknown,
            };
            assert_eq!(read(1_130, 120), at(120), "{nanos_per_tick}");
            assert_eq!(read(1_160, 140), at(140), "{nanos_per_tick}");
            assert_eq!(read(1_161, 130), at(130), "overtaken");
            assert_eq!(read(2_999, 1_980), at(1_980), "{nanos_per_tick}");
            let finally = match is_known {
                true => at(2_480),
                false => Reading::Nothing,
            };
            assert_eq!(read(3_500, 2_480), finally, "{nanos_per_tick}");
        }
    }

    /// A clock of milliseconds behind a queue that grows by 120 ms within 150 ms: the tick stays
    /// unknown until the queue is less than half of the time.
    #[test]
    fn a_growing_reverse_queue_does_not_change_the_clock() {
        let mut clock = PeerClock::default();
        let mut read = |millis, ticks| clock.read(Time::from_millis(millis), ticks);
        assert_eq!(read(1_000, 7), Reading::Unknown);
        assert_eq!(read(1_150, 37), Reading::Unknown);
        assert_eq!(read(1_230, 117), Reading::Unknown);
        let expected = Arrived {
            at: Time::from_millis(120),
            tick: Span::from_millis(1),
        };
        assert_eq!(read(1_240, 127), Reading::At(expected));
    }

    #[test]
    fn retransmitted_data_reports_no_packet() {
        let mut answers = flight(6);
        answers.on_sent(11, 21, 61, number(7));
        assert_eq!(answers.on_advance(11), Some(number(1)));
        assert_eq!(answers.on_advance(31), None);
        assert_eq!(answers.on_advance(41), Some(number(4)));
        // A segment that overlaps the end and extends beyond it.
        answers.on_sent(51, 71, 61, number(8));
        assert_eq!(answers.on_advance(51), Some(number(5)));
        assert_eq!(answers.on_advance(71), None);
    }
}
