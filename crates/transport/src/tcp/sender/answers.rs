//! Which packet an acknowledgement answers, for controllers that ask.

use alloc::collections::VecDeque;

use comity_congestion::Arrived;
use comity_units::{PacketNumber, Span, Time};

/// A record of each segment in flight: acknowledgements name offsets, and controllers know packets.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// In ascending order.
    sent: VecDeque<Record>,
    pub(super) peer_clock: PeerClock,
}

/// The peer's clock by its timestamps. An acknowledgement leaves when the packet that it answers
/// has come, so that it tells when that was, whatever queue it meets on its way back.
///
/// RFC 7323 has clocks of anything between a millisecond and a second for a tick, and current hosts
/// those of a millisecond or a microsecond. These two are told apart by how many ticks went by
/// here: microseconds within a factor of 30, halfway to milliseconds, and milliseconds within a
/// factor of two. A queue that grows on the way back makes that much of a difference only for
/// moments, during which nothing is answered: what the clock told would not be used, and
/// acknowledgements behind such a queue are compressed. Ticks that made no sense for two seconds
/// are taken for none.
#[derive(Debug, Default)]
pub(super) struct PeerClock {
    /// When the first timestamp came.
    began_at: Option<Time>,
    last: u32,
    /// Ticks since the first.
    ticks: u64,
}

/// What a timestamp tells of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Too little was heard to know what a tick is.
    Unknown,
    /// Nothing: there is no clock, or it ticks in something else.
    Nothing,
    /// The time on the peer's clock.
    At(Arrived),
}

impl PeerClock {
    /// Takes in the timestamp of an acknowledgement that came at `now`.
    pub(super) fn read(&mut self, now: Time, value: u32) -> Reading {
        let began_at = *self.began_at.get_or_insert_with(|| {
            self.last = value;
            now
        });
        // A timestamp that is behind the newest was overtaken.
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

/// A clock of milliseconds has ten ticks in it.
const MIN_WATCHED: Span = Span::from_millis(10);

/// A queue of one second that filled on the way back is half of the time by then, which is as much
/// as may be missing from a clock of milliseconds.
const LONGEST_WATCHED: Span = Span::from_secs(2);

#[derive(Clone, Copy, Debug)]
struct Record {
    /// The offset after the segment.
    end: u64,
    number: PacketNumber,
    /// Whether any of it was retransmitted: its acknowledgement may answer either.
    is_repeated: bool,
}

impl Answers {
    /// A segment of offsets from `start` to `end` leaves; `max` is the end of what was sent before.
    pub(super) fn on_sent(&mut self, start: u64, end: u64, max: u64, number: PacketNumber) {
        if start < max {
            let first = self.sent.partition_point(|record| record.end <= start);
            for record in self.sent.iter_mut().skip(first) {
                record.is_repeated = true;
                if record.end >= end {
                    break;
                }
            }
        }
        if end > max {
            self.sent.push_back(Record {
                end,
                number,
                is_repeated: start < max,
            });
        }
    }

    /// Everything before `offset` is acknowledged. Returns the newest packet of it, unless a part
    /// was sent twice or the acknowledgement ends within a segment.
    pub(super) fn on_advance(&mut self, offset: u64) -> Option<PacketNumber> {
        let mut newest = None;
        let mut is_clean = true;
        while let Some(record) = self.sent.front().filter(|record| record.end <= offset) {
            is_clean &= !record.is_repeated;
            newest = Some(*record);
            self.sent.pop_front();
        }
        newest
            .filter(|record| is_clean && record.end == offset)
            .map(|record| record.number)
    }

    /// The memory held on the heap.
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
    fn the_newest_of_what_is_acknowledged_is_answered() {
        let mut answers = flight(6);
        assert_eq!(answers.on_advance(11), Some(number(1)));
        assert_eq!(answers.on_advance(31), Some(number(3)));
        assert_eq!(answers.on_advance(36), None, "within the fourth");
        assert_eq!(answers.on_advance(41), Some(number(4)));
        assert_eq!(answers.on_advance(41), None, "nothing new");
        assert_eq!(answers.on_advance(61), Some(number(6)));
    }

    /// Packets 20 ms apart at the receiver, acknowledgements 30 ms apart here, by clocks of several
    /// ticks: only those of microseconds and of milliseconds are believed, over their wrap, and
    /// once they were watched. The others are given up.
    #[test]
    fn only_known_clocks_tell_when_packets_arrived() {
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
            assert_eq!(read(1_009, 9), Reading::Unknown, "too early to tell");
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

    /// By a clock of milliseconds, behind 120 ms of queue that fill within 150: nothing is known
    /// until they are less than half of the time.
    #[test]
    fn a_queue_that_fills_on_the_way_back_makes_no_other_clock() {
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
    fn what_was_sent_twice_answers_for_nothing() {
        let mut answers = flight(6);
        answers.on_sent(11, 21, 61, number(7));
        assert_eq!(answers.on_advance(11), Some(number(1)));
        assert_eq!(answers.on_advance(31), None);
        assert_eq!(answers.on_advance(41), Some(number(4)));
        // A segment that repeats the end and goes on behind it.
        answers.on_sent(51, 71, 61, number(8));
        assert_eq!(answers.on_advance(51), Some(number(5)));
        assert_eq!(answers.on_advance(71), None);
    }
}
