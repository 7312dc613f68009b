//! Sorted ranges of offsets: out-of-order arrivals, selective acknowledgements, gaps.

use alloc::vec::Vec;
use core::ops::Range;

/// Ranges `[start, end)`, each with a note: ascending, neither touching nor overlapping.
#[derive(Debug)]
pub(super) struct Ranges<N = ()> {
    list: Vec<(u64, u64, N)>,
}

impl<N> Default for Ranges<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<N> Ranges<N> {
    pub(super) const fn new() -> Self {
        Self { list: Vec::new() }
    }

    /// Adds a range and joins it with those that it touches; the joined range has `note`. Returns
    /// whether any of it is new.
    pub(super) fn insert(&mut self, mut start: u64, mut end: u64, note: N) -> bool {
        let first = self.list.partition_point(|range| range.1 < start);
        let last = self.list.partition_point(|range| range.0 <= end);
        let joined = self.list.get(first..last).unwrap_or(&[]);
        let is_new = match joined {
            [(from, to, _)] => start < *from || *to < end,
            _ => true,
        };
        if let ([lowest, ..], [.., highest]) = (joined, joined) {
            start = start.min(lowest.0);
            end = end.max(highest.1);
        }
        self.list.splice(first..last, [(start, end, note)]);
        is_new
    }

    /// Removes offsets below `to`.
    pub(super) fn drop_below(&mut self, to: u64) {
        let passed = self.list.partition_point(|range| range.1 <= to);
        self.list.drain(..passed);
        if let Some(first) = self.list.first_mut() {
            first.0 = first.0.max(to);
        }
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
    }

    /// The ranges, ascending.
    #[inline]
    pub(super) fn as_slice(&self) -> &[(u64, u64, N)] {
        &self.list
    }

    /// The ranges that end after `from`, ascending.
    #[inline]
    pub(super) fn ending_after(&self, from: u64) -> &[(u64, u64, N)] {
        let first = self.list.partition_point(|range| range.1 <= from);
        self.list.get(first..).unwrap_or(&[])
    }

    /// How many offsets of `within` lie in ranges.
    pub(super) fn covered(&self, within: Range<u64>) -> u64 {
        self.ending_after(within.start)
            .iter()
            .take_while(|range| range.0 < within.end)
            .map(|range| range.1.min(within.end) - range.0.max(within.start))
            .sum()
    }

    pub(super) fn heap_memory(&self) -> usize {
        self.list.capacity() * size_of::<(u64, u64, N)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OFFSETS: u64 = 8;

    fn of(bits: u64) -> Ranges {
        let mut ranges = Ranges::new();
        for at in (0..OFFSETS).filter(|at| bits >> at & 1 == 1) {
            ranges.insert(at, at + 1, ());
        }
        ranges
    }

    fn mask(start: u64, end: u64) -> u64 {
        (start..end).map(|at| 1 << at).sum()
    }

    fn bits(ranges: &[(u64, u64, ())]) -> u64 {
        ranges
            .iter()
            .map(|&(start, end, ())| mask(start, end))
            .sum()
    }

    /// Every set of eight offsets, with every range and operation. A set has only one
    /// representation, so that this holds for every sequence of operations.
    #[test]
    #[cfg_attr(miri, ignore = "too many cases for an interpreter")]
    fn every_operation_on_every_small_set_is_that_of_sets() {
        for before in 0..1 << OFFSETS {
            let set = of(before);
            assert_eq!(bits(set.as_slice()), before);
            let apart = set.as_slice().windows(2).all(|pair| pair[0].1 < pair[1].0);
            assert!(apart, "{set:?}");
            for start in 0..=OFFSETS {
                let mut left = of(before);
                left.drop_below(start);
                let kept = before & !mask(0, start);
                assert_eq!(left.as_slice(), of(kept).as_slice());
                let after = bits(set.ending_after(start)) & !mask(0, start);
                assert_eq!(after, kept);
                for end in start + 1..=OFFSETS {
                    let within = mask(start, end);
                    let covered = set.covered(start..end);
                    assert_eq!(covered, u64::from((before & within).count_ones()));
                    let mut more = of(before);
                    assert_eq!(more.insert(start, end, ()), within & !before != 0);
                    assert_eq!(more.as_slice(), of(before | within).as_slice());
                }
            }
        }
    }

    proptest! {
        /// The ranges agree with a table of offsets.
        #[test]
        fn ranges_agree_with_a_table(
            inserts in prop::collection::vec((0_u64..100, 1_u64..20), 0..20),
            dropped in 0_u64..120,
            (from, length) in (0_u64..120, 0_u64..60),
        ) {
            let mut ranges = Ranges::new();
            let mut table = [false; 120];
            for (start, length) in inserts {
                let end = start + length;
                let within = &mut table[start as usize..end as usize];
                let is_new = within.iter().any(|&is_in| !is_in);
                within.fill(true);
                prop_assert_eq!(ranges.insert(start, end, ()), is_new);
            }
            ranges.drop_below(dropped);
            table[..dropped as usize].fill(false);
            let mut expected = [false; 120];
            for &(start, end, ()) in ranges.as_slice() {
                prop_assert!(start < end);
                expected[start as usize..end as usize].fill(true);
            }
            prop_assert_eq!(expected, table);
            let are_apart = ranges.as_slice().windows(2).all(|pair| pair[0].1 < pair[1].0);
            prop_assert!(are_apart);
            let end = (from + length).min(120);
            let count = table[from.min(end) as usize..end as usize].iter().filter(|&&is_in| is_in).count();
            prop_assert_eq!(ranges.covered(from.min(end)..end), count as u64);
            let first = ranges.ending_after(from).first().map(|range| range.0.max(from));
            let is_in = |at: &u64| table[*at as usize];
            prop_assert_eq!(first, (from..120).find(is_in));
        }
    }
}
