//! Sets of byte positions within one section.

use alloc::vec::Vec;
use core::ops::Range;

/// Byte positions as sorted ranges that neither touch nor overlap.
///
/// A section mostly has one range, so a vector is faster than a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    ranges: Vec<(u32, u32)>,
    total: u32,
}

impl Ranges {
    /// The number of bytes in the set.
    pub(crate) const fn total(&self) -> u32 {
        self.total
    }

    /// The number of ranges of the set together with `range`.
    pub(crate) fn fragments_with(&self, range: Range<u32>) -> usize {
        let first = self.ranges.partition_point(|&(_, e)| e < range.start);
        let last = self.ranges.partition_point(|&(s, _)| s <= range.end);
        self.ranges.len() + 1 - last.saturating_sub(first)
    }

    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Adds `range`. Returns how many of its bytes are new.
    pub(crate) fn insert(&mut self, range: Range<u32>) -> u32 {
        if range.is_empty() {
            return 0;
        }
        let (mut start, mut end) = (range.start, range.end);
        let first = self.ranges.partition_point(|&(_, e)| e < start);
        let last = self.ranges.partition_point(|&(s, _)| s <= end);
        let touched = self.ranges.get(first..last).unwrap_or_default();
        let known: u32 = touched.iter().map(|&(s, e)| e - s).sum();
        if let (Some(&(s, _)), Some(&(_, e))) = (touched.first(), touched.last()) {
            start = start.min(s);
            end = end.max(e);
        }
        match self.ranges.get_mut(first..last) {
            Some([only]) => *only = (start, end),
            _ => drop(self.ranges.splice(first..last, [(start, end)])),
        }
        let new = end - start - known;
        self.total += new;
        new
    }

    /// Removes `range`. Returns how many of its bytes were in the set.
    pub(crate) fn remove(&mut self, range: Range<u32>) -> u32 {
        let (start, end) = (range.start, range.end);
        let first = self.ranges.partition_point(|&(_, e)| e <= start);
        let last = self.ranges.partition_point(|&(s, _)| s < end);
        if range.is_empty() || first >= last {
            return 0;
        }
        let touched = self.ranges.get(first..last).unwrap_or_default();
        let known: u32 = touched.iter().map(|&(s, e)| e - s).sum();
        let left = touched.first().map(|&(s, _)| (s, start));
        let right = touched.last().map(|&(_, e)| (end, e));
        let rest = [left, right].into_iter().flatten().filter(|(s, e)| s < e);
        let kept: u32 = rest.clone().map(|(s, e)| e - s).sum();
        self.ranges.splice(first..last, rest);
        self.total -= known - kept;
        known - kept
    }

    /// Removes the lowest range, or its first `most` bytes.
    pub(crate) fn pop_first(&mut self, most: u32) -> Option<Range<u32>> {
        let &(start, end) = self.ranges.first()?;
        let end = end.min(start.saturating_add(most));
        self.remove(start..end);
        Some(start..end)
    }

    pub(crate) fn first(&self) -> Option<u32> {
        self.ranges.first().map(|&(start, _)| start)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        self.ranges.iter().map(|&(start, end)| start..end)
    }

    /// The parts of `within` that are not in the set.
    pub(crate) fn missing(&self, within: Range<u32>) -> Vec<Range<u32>> {
        let mut next = within.start;
        let mut missing = Vec::new();
        for range in self.iter().filter(|range| range.end > within.start) {
            if range.start >= within.end {
                break;
            }
            if range.start > next {
                missing.push(next..range.start);
            }
            next = range.end;
        }
        if next < within.end {
            missing.push(next..within.end);
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    /// The set whose positions are the bits of a number.
    fn of(bits: u32) -> Ranges {
        let mut ranges = Ranges::default();
        for at in (0..POSITIONS).filter(|at| bits >> at & 1 == 1) {
            ranges.insert(at..at + 1);
        }
        ranges
    }

    fn bits(ranges: &Ranges) -> u32 {
        ranges.iter().flatten().map(|at| 1 << at).sum()
    }

    fn mask(range: &Range<u32>) -> u32 {
        range.clone().map(|at| 1 << at).sum()
    }

    const POSITIONS: u32 = 9;

    /// Every set of nine positions, with every range and operation. A set has only one
    /// representation, so this covers every sequence of operations.
    #[test]
    #[cfg_attr(miri, ignore = "too many cases for an interpreter")]
    fn every_operation_on_every_small_set_is_that_of_sets() {
        for before in 0..1_u32 << POSITIONS {
            let set = of(before);
            assert_eq!((bits(&set), set.total()), (before, before.count_ones()));
            let apart: Vec<_> = set.iter().collect();
            assert!(apart.windows(2).all(|pair| pair[0].end < pair[1].start));
            assert_eq!(
                set.first(),
                (before != 0).then_some(before.trailing_zeros())
            );
            for most in 0..=POSITIONS {
                let mut left = set.clone();
                let popped = left.pop_first(most);
                let lowest = set.iter().next();
                let expected = lowest.map(|range| range.start..range.end.min(range.start + most));
                assert_eq!(popped, expected);
                let gone = expected.map_or(0, |range| mask(&range));
                assert_eq!(left, of(before & !gone));
            }
            for (start, end) in
                (0..=POSITIONS).flat_map(|start| (0..=POSITIONS).map(move |end| (start, end)))
            {
                let range = start..end;
                let within = mask(&range);
                let mut more = set.clone();
                assert_eq!(more.insert(range.clone()), (within & !before).count_ones());
                assert_eq!(more, of(before | within));
                assert_eq!(more.total(), (before | within).count_ones());
                let fragments = set.fragments_with(range.clone());
                assert!(range.is_empty() || fragments == more.iter().count());
                let mut less = set.clone();
                assert_eq!(less.remove(range.clone()), (within & before).count_ones());
                assert_eq!(less, of(before & !within));
                assert_eq!(less.total(), (before & !within).count_ones());
                let missing: u32 = set.missing(range).iter().map(mask).sum();
                assert_eq!(missing, within & !before);
            }
        }
    }

    proptest! {
        /// Compares with a set of single positions.
        #[test]
        fn ranges_are_sets_of_positions(
            steps in prop::collection::vec((any::<bool>(), 0_u32..60, 0_u32..20), 0..60)
        ) {
            let mut ranges = Ranges::default();
            let mut positions = BTreeSet::new();
            for (add, start, length) in steps {
                let range = start..start + length;
                let before = positions.len();
                if add {
                    let fragments = ranges.fragments_with(range.clone());
                    let is_empty = range.is_empty();
                    let new = ranges.insert(range.clone());
                    positions.extend(range);
                    prop_assert_eq!(new as usize, positions.len() - before);
                    prop_assert!(is_empty || ranges.iter().count() == fragments);
                } else {
                    let gone = ranges.remove(range.clone());
                    positions.retain(|position| !range.contains(position));
                    prop_assert_eq!(gone as usize, before - positions.len());
                }
                prop_assert_eq!(ranges.total() as usize, positions.len());
                prop_assert_eq!(ranges.first(), positions.first().copied());
                let held: BTreeSet<u32> = ranges.iter().flatten().collect();
                prop_assert_eq!(&held, &positions);
                let all: Vec<_> = ranges.iter().collect();
                prop_assert!(all.windows(2).all(|pair| pair[0].end < pair[1].start));
                let missing: BTreeSet<u32> = ranges.missing(10..70).into_iter().flatten().collect();
                let wanted: BTreeSet<u32> = (10..70).filter(|p| !positions.contains(p)).collect();
                prop_assert_eq!(missing, wanted);
            }
        }
    }
}
