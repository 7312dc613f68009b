//! Sets of positions: bytes of a section, offsets of a stream.

use alloc::vec::Vec;
use core::ops::{Add, AddAssign, Range, Sub, SubAssign};

/// A position, and a number of positions.
pub trait Position:
    Copy + Ord + Default + Add<Output = Self> + AddAssign + Sub<Output = Self> + SubAssign
{
}

impl Position for u32 {}
impl Position for u64 {}

/// Positions as ranges `(start, end, note)` without `end`: ascending, neither touching nor
/// overlapping.
///
/// A set mostly has one range, so a vector is faster than a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges<P, N = ()> {
    list: Vec<(P, P, N)>,
    total: P,
}

impl<P: Position, N> Default for Ranges<P, N> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            total: P::default(),
        }
    }
}

impl<P: Position, N> Ranges<P, N> {
    /// The number of positions in the set.
    pub const fn total(&self) -> P {
        self.total
    }

    /// The ranges, ascending.
    #[inline]
    pub fn as_slice(&self) -> &[(P, P, N)] {
        &self.list
    }

    /// The ranges that end after `from`, ascending.
    #[inline]
    pub fn ending_after(&self, from: P) -> &[(P, P, N)] {
        let first = self.list.partition_point(|range| range.1 <= from);
        self.list.get(first..).unwrap_or(&[])
    }

    /// The indices of the ranges that touch or overlap `start..end`.
    fn touching(&self, start: P, end: P) -> Range<usize> {
        let first = self.list.partition_point(|range| range.1 < start);
        let last = self.list.partition_point(|range| range.0 <= end);
        first..last.max(first)
    }

    /// The number of ranges of the set together with `range`.
    pub fn len_with(&self, range: Range<P>) -> usize {
        self.list.len() + 1 - self.touching(range.start, range.end).len()
    }

    /// Adds a range and joins it with those that it touches; the joined range has `note`. Returns
    /// how many of its positions are new. An empty range changes nothing.
    pub fn insert(&mut self, range: Range<P>, note: N) -> P {
        if range.is_empty() {
            return P::default();
        }
        let (mut start, mut end) = (range.start, range.end);
        let touching = self.touching(start, end);
        let joined = self.list.get(touching.clone()).unwrap_or(&[]);
        let mut known = P::default();
        for &(from, to, _) in joined {
            known += to - from;
        }
        if let ([(lowest, ..), ..], [.., (_, highest, _)]) = (joined, joined) {
            start = start.min(*lowest);
            end = end.max(*highest);
        }
        match self.list.get_mut(touching.clone()) {
            Some([only]) => *only = (start, end, note),
            _ => drop(self.list.splice(touching, [(start, end, note)])),
        }
        let new = end - start - known;
        self.total += new;
        new
    }

    /// Removes positions below `to`.
    pub fn drop_below(&mut self, to: P) {
        let passed = self.list.partition_point(|range| range.1 <= to);
        for (start, end, _) in self.list.drain(..passed) {
            self.total -= end - start;
        }
        if let Some(first) = self.list.first_mut().filter(|first| first.0 < to) {
            self.total -= to - first.0;
            first.0 = to;
        }
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.list.clear();
        self.total = P::default();
    }

    /// How many positions of `within` are in the set.
    pub fn covered(&self, within: Range<P>) -> P {
        let mut covered = P::default();
        for (start, end, _) in self.ending_after(within.start) {
            if *start >= within.end {
                break;
            }
            covered += (*end).min(within.end) - (*start).max(within.start);
        }
        covered
    }

    /// The allocated memory in bytes.
    pub const fn heap_memory(&self) -> usize {
        self.list.capacity() * size_of::<(P, P, N)>()
    }

    /// The lowest position.
    pub fn first(&self) -> Option<P> {
        self.list.first().map(|range| range.0)
    }

    /// The ranges without their notes, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Range<P>> + '_ {
        self.list.iter().map(|range| range.0..range.1)
    }

    /// The parts of `within` that are not in the set.
    pub fn missing(&self, within: Range<P>) -> Vec<Range<P>> {
        let mut next = within.start;
        let mut missing = Vec::new();
        for (start, end, _) in self.ending_after(within.start) {
            if *start >= within.end {
                break;
            }
            if *start > next {
                missing.push(next..*start);
            }
            next = *end;
        }
        if next < within.end {
            missing.push(next..within.end);
        }
        missing
    }
}

impl<P: Position> Ranges<P> {
    /// Removes `range`. Returns how many of its positions were in the set.
    pub fn remove(&mut self, range: Range<P>) -> P {
        let (start, end) = (range.start, range.end);
        let first = self.list.partition_point(|range| range.1 <= start);
        let last = self.list.partition_point(|range| range.0 < end);
        if range.is_empty() || first >= last {
            return P::default();
        }
        let gone = self.covered(range);
        let touched = self.list.get(first..last).unwrap_or(&[]);
        let left = touched.first().map(|touched| (touched.0, start, ()));
        let right = touched.last().map(|touched| (end, touched.1, ()));
        let rest = [left, right].into_iter().flatten();
        self.list
            .splice(first..last, rest.filter(|range| range.0 < range.1));
        self.total -= gone;
        gone
    }

    /// Removes the lowest range, or its first `most` positions.
    pub fn pop_first(&mut self, most: P) -> Option<Range<P>> {
        let &(start, end, ()) = self.list.first()?;
        let end = if most < end - start {
            start + most
        } else {
            end
        };
        self.remove(start..end);
        Some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    /// The set whose positions are the bits of a number.
    fn of(bits: u32) -> Ranges<u32> {
        let mut ranges = Ranges::default();
        for at in (0..POSITIONS).filter(|at| bits >> at & 1 == 1) {
            ranges.insert(at..at + 1, ());
        }
        ranges
    }

    fn bits(ranges: &Ranges<u32>) -> u32 {
        ranges.iter().flatten().map(|at| 1 << at).sum()
    }

    fn mask(range: &Range<u32>) -> u32 {
        range.clone().map(|at| 1 << at).sum()
    }

    fn are_apart<N>(ranges: &Ranges<u32, N>) -> bool {
        let mut pairs = ranges.as_slice().windows(2);
        pairs.all(|pair| pair[0].1 < pair[1].0)
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
            assert!(are_apart(&set), "{set:?}");
            let lowest = (before != 0).then_some(before.trailing_zeros());
            assert_eq!(set.first(), lowest);
            for most in 0..=POSITIONS {
                let mut left = set.clone();
                let popped = left.pop_first(most);
                let lowest = set.iter().next();
                let expected = lowest.map(|range| range.start..range.end.min(range.start + most));
                assert_eq!(popped, expected);
                let gone = expected.map_or(0, |range| mask(&range));
                assert_eq!(left, of(before & !gone));
                // The same number as a position.
                let below = mask(&(0..most));
                let mut left = set.clone();
                left.drop_below(most);
                assert_eq!(left, of(before & !below));
                let after = set.ending_after(most).iter();
                let after: u32 = after.map(|range| mask(&(range.0..range.1))).sum();
                assert_eq!(after & !below, before & !below);
            }
            let ends =
                (0..=POSITIONS).flat_map(|start| (0..=POSITIONS).map(move |end| (start, end)));
            for (start, end) in ends {
                let range = start..end;
                let within = mask(&range);
                let mut more = set.clone();
                let new = more.insert(range.clone(), ());
                assert_eq!(new, (within & !before).count_ones());
                assert_eq!(more, of(before | within));
                let length = set.len_with(range.clone());
                assert!(range.is_empty() || length == more.as_slice().len());
                let mut less = set.clone();
                let gone = less.remove(range.clone());
                assert_eq!(gone, (within & before).count_ones());
                assert_eq!(less, of(before & !within));
                if start <= end {
                    let covered = set.covered(range.clone());
                    assert_eq!(covered, (within & before).count_ones());
                }
                let missing: u32 = set.missing(range).iter().map(mask).sum();
                assert_eq!(missing, within & !before);
            }
        }
    }

    #[test]
    fn a_joined_range_has_the_last_note() {
        let mut ranges = Ranges::default();
        for (range, note) in [(0_u64..2, 'a'), (4..6, 'b'), (8..9, 'c')] {
            ranges.insert(range, note);
        }
        assert_eq!(ranges.insert(2..4, 'd'), 2);
        assert_eq!(ranges.as_slice(), [(0, 6, 'd'), (8, 9, 'c')]);
        assert_eq!(ranges.insert(1..3, 'e'), 0);
        assert_eq!(ranges.as_slice(), [(0, 6, 'e'), (8, 9, 'c')]);
        ranges.clear();
        assert_eq!((ranges.total(), ranges.as_slice().len()), (0, 0));
    }

    proptest! {
        /// Compares with a set of single positions.
        #[test]
        fn ranges_are_sets_of_positions(
            steps in prop::collection::vec((0_u8..3, 0_u32..60, 0_u32..20), 0..60)
        ) {
            let mut ranges = Ranges::default();
            let mut positions = BTreeSet::new();
            for (what, start, length) in steps {
                let range = start..start + length;
                let before = positions.len();
                match what {
                    0 => {
                        let new = ranges.insert(range.clone(), ());
                        positions.extend(range);
                        prop_assert_eq!(new as usize, positions.len() - before);
                    }
                    1 => {
                        let gone = ranges.remove(range.clone());
                        positions.retain(|position| !range.contains(position));
                        prop_assert_eq!(gone as usize, before - positions.len());
                    }
                    // A low bound, so that something is left.
                    _ => {
                        ranges.drop_below(length);
                        positions.retain(|position| *position >= length);
                    }
                }
                prop_assert_eq!(ranges.total() as usize, positions.len());
                let held: BTreeSet<u32> = ranges.iter().flatten().collect();
                prop_assert_eq!(&held, &positions);
                prop_assert!(are_apart(&ranges));
                let missing: BTreeSet<u32> = ranges.missing(10..70).into_iter().flatten().collect();
                let wanted: BTreeSet<u32> = (10..70).filter(|p| !positions.contains(p)).collect();
                prop_assert_eq!(missing, wanted);
            }
        }
    }
}
