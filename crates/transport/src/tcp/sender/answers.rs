//! Which packet an acknowledgement answers, for controllers that ask.

use alloc::collections::VecDeque;

use comity_units::PacketNumber;

/// A record of each segment in flight: acknowledgements name offsets, and controllers know packets.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// In ascending order.
    sent: VecDeque<Record>,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    /// The offset after the segment.
    end: u64,
    number: PacketNumber,
    /// Whether any of it was sent again: its acknowledgement may answer either.
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

    /// Everything before `offset` is acknowledged. Returns the newest packet of it, unless a part was sent twice or
    /// the acknowledgement ends within a segment.
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
