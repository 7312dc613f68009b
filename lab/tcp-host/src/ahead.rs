//! Data of a time-lined stream that arrived out of order.

use std::collections::{BTreeMap, VecDeque};

/// Data after a hole, until it is in order. Gaps take no memory.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// Chunks by the offset of their first byte. They do not overlap, and none begins below `next`.
    chunks: BTreeMap<u64, Vec<u8>>,
    /// The offset below which everything arrived or is a gap.
    next: u64,
}

impl Ahead {
    pub(crate) const fn new(next: u64) -> Self {
        Self {
            chunks: BTreeMap::new(),
            next,
        }
    }

    /// Stores the new parts of `source`, which begins at the offset `start`.
    pub(crate) fn insert(&mut self, start: u64, source: &[u8]) {
        let end = start + source.len() as u64;
        let mut at = start.max(self.next);
        while at < end {
            let before = self.chunks.range_mut(..=at).next_back();
            let held_to = |(from, chunk): (&u64, &Vec<u8>)| from + chunk.len() as u64;
            let mut previous = None;
            if let Some((from, chunk)) = before {
                let to = held_to((from, chunk));
                if to > at {
                    at = to;
                    continue;
                }
                previous = (to == at).then_some(*from);
            }
            let until = self.chunks.range(at..).next();
            let until = until.map_or(end, |(&from, _)| from.min(end));
            let range = (at - start) as usize..(until - start) as usize;
            let new = source.get(range).unwrap_or_default();
            let key = previous.unwrap_or(at);
            self.chunks.entry(key).or_default().extend_from_slice(new);
            at = until;
        }
    }

    /// Moves the data below `next` to the end of `in_order`: every byte below `next` has arrived or
    /// is in a gap.
    pub(crate) fn advance(&mut self, next: u64, in_order: &mut VecDeque<u8>) {
        while let Some(first) = self.chunks.first_entry()
            && *first.key() < next
        {
            in_order.extend(first.remove());
        }
        self.next = self.next.max(next);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const LENGTH: u64 = 60;

    proptest! {
        /// Each byte of the stream is derived from its offset, so the output shows the order.
        #[test]
        fn bytes_come_out_once_and_in_order(
            arrivals in vec((0..LENGTH, 1..12_u64, 0..LENGTH), 1..40),
        ) {
            let mut ahead = Ahead::new(0);
            let mut arrived = [false; 1_024];
            let (mut next, mut in_order) = (0, VecDeque::new());
            for (start, length, to) in arrivals {
                // The state machine accepts no byte below the expected number.
                let start = start.max(next);
                let end = start + length;
                let bytes: Vec<u8> = (start..end).map(|at| at as u8).collect();
                ahead.insert(start, &bytes);
                arrived[start as usize..end as usize].fill(true);
                // It skips all data that continues the skipped data.
                next = next.max(to);
                while arrived[next as usize] {
                    next += 1;
                }
                ahead.advance(next, &mut in_order);
                let expected: Vec<u8> =
                    (0..next).filter(|at| arrived[*at as usize]).map(|at| at as u8).collect();
                prop_assert_eq!(in_order.make_contiguous(), &expected[..]);
            }
            let held: usize = ahead.chunks.values().map(Vec::len).sum();
            let expected = (next as usize..arrived.len()).filter(|at| arrived[*at]).count();
            prop_assert_eq!(held, expected, "nothing is held twice");
        }
    }
}
