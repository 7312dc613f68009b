//! The receiver's side of a time-lined stream: the gaps.

use comity_congestion::Ranges;

use super::{GapStatistics, Piece};

/// The gaps that the application has not read past, in wire offsets.
#[derive(Debug)]
pub(crate) struct Gaps {
    ranges: Ranges<u64>,
    /// The wire offset of the application's next byte.
    position: u64,
    /// The end of the last gap below the expected number.
    passed_to: u64,
    /// Bytes of gaps beyond the expected number.
    pub(crate) ahead: u64,
    pub(crate) statistics: GapStatistics,
}

impl Gaps {
    /// Creates an empty list for an application at the wire offset `position`.
    pub(crate) fn new(position: u64) -> Self {
        Self {
            ranges: Ranges::default(),
            position,
            passed_to: 0,
            ahead: 0,
            statistics: GapStatistics {
                jumps: 0,
                gaps: 0,
                bytes: 0,
            },
        }
    }

    /// Records `[start, end)`, in which nothing arrived and nothing was recorded.
    pub(crate) fn record(&mut self, start: u64, end: u64) {
        self.ahead += end - start;
        self.ranges.insert(start..end, ());
    }

    /// Handles a move of the expected number from `before` to `next`. Returns the bytes of gaps
    /// between them.
    pub(crate) fn pass(&mut self, before: u64, next: u64) -> u64 {
        let mut bytes = 0;
        for &(from, to, ()) in self.ranges.ending_after(before) {
            if from >= next {
                break;
            }
            let (from, to) = (from.max(before), to.min(next));
            // A gap that continues an earlier one was counted with it, whether it has been read or
            // not.
            self.statistics.gaps += u64::from(from != self.passed_to);
            self.passed_to = to;
            bytes += to - from;
        }
        self.ahead = self.ahead.saturating_sub(bytes);
        self.statistics.bytes += bytes;
        bytes
    }

    /// Whether the application's next piece is a gap below the expected number `next`.
    pub(crate) fn has_next(&self, next: u64) -> bool {
        let first = self.ranges.as_slice().first();
        first.is_some_and(|&(start, end, ())| {
            start <= self.position && self.position < end.min(next)
        })
    }

    /// The application's next piece below the expected number `next`: a gap, or up to `limit` of
    /// the `unread` bytes of data.
    pub(crate) fn read(&mut self, limit: u64, next: u64, unread: u64) -> Option<Piece> {
        let offset = self.position - 1;
        match self.ranges.as_slice().first().copied() {
            Some((start, end, ())) if start <= self.position => {
                let length = end.min(next).saturating_sub(self.position);
                if length == 0 {
                    return None;
                }
                self.position += length;
                self.ranges.drop_below(self.position);
                Some(Piece::Gap { offset, length })
            }
            gap => {
                let to_gap = gap.map_or(u64::MAX, |(start, ..)| start - self.position);
                let length = to_gap.min(unread).min(limit);
                self.position += length;
                (length > 0).then_some(Piece::Data { offset, length })
            }
        }
    }

    pub(crate) fn heap_memory(&self) -> usize {
        size_of::<Self>() + self.ranges.heap_memory()
    }
}

#[cfg(test)]
mod tests;
