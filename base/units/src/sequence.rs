//! Numbers of bytes and of packets.

use core::fmt;
use core::ops::{Add, AddAssign};

/// A byte sequence number of 32 bits that wraps, as in TCP.
///
/// Wrapping numbers have no total order (a < b < c < a is possible), so this type is not `Ord`.
/// [`SeqNo::precedes`] and [`SeqNo::distance_from`] compare any two that are closer than 2³¹.
/// Source: RFC 9293, section 3.4; RFC 1982.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct SeqNo(u32);

impl SeqNo {
    /// Number zero.
    pub const ZERO: Self = Self(0);

    /// The sequence number with this value.
    pub const fn new(value: u32) -> Self {
        Self(value)
    }

    /// The value as in a header.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number `count` before this one.
    pub const fn back(self, count: u32) -> Self {
        Self(self.0.wrapping_sub(count))
    }

    /// The distance from `other` to this number; negative if this one comes first.
    pub const fn distance_from(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }

    /// Whether this number comes strictly before `other`.
    pub const fn precedes(self, other: Self) -> bool {
        self.distance_from(other) < 0
    }

    /// Whether this number comes strictly after `other`.
    pub const fn follows(self, other: Self) -> bool {
        self.distance_from(other) > 0
    }

    /// Whichever of the two comes later.
    pub const fn latest(self, other: Self) -> Self {
        if self.precedes(other) { other } else { self }
    }

    /// Whichever of the two comes first.
    pub const fn earliest(self, other: Self) -> Self {
        if self.precedes(other) { self } else { other }
    }
}

impl Add<u32> for SeqNo {
    type Output = Self;
    fn add(self, count: u32) -> Self {
        Self(self.0.wrapping_add(count))
    }
}

impl AddAssign<u32> for SeqNo {
    fn add_assign(&mut self, count: u32) {
        *self = *self + count;
    }
}

impl fmt::Debug for SeqNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for SeqNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The number of a packet within one connection and direction: counts up, never repeats, never
/// wraps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct PacketNumber(u64);

impl PacketNumber {
    /// The first packet.
    pub const ZERO: Self = Self(0);

    /// The packet number with this value.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The value.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of the packet after this one.
    ///
    /// The last number has no successor but itself: at 100 million packets per second it takes
    /// 5,800 years.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Debug for PacketNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for PacketNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    #[test]
    fn sequence_numbers_compare_across_the_wrap() {
        let (before, after) = (SeqNo::new(u32::MAX - 9), SeqNo::new(10));
        assert_eq!(before + 20, after);
        assert_eq!(after.back(20), before);
        assert!(before.precedes(after) && after.follows(before));
        assert_eq!(after.distance_from(before), 20);
        assert_eq!(before.distance_from(after), -20);
        assert_eq!(before.latest(after), after);
        assert_eq!(before.earliest(after), before);
        assert!(!before.precedes(before) && !before.follows(before));
    }

    /// Every number near a power of two or its negative.
    fn borders() -> Vec<u32> {
        let mut all: Vec<u32> = (0..33)
            .map(|bit| 1_u64.wrapping_shl(bit) as u32)
            .flat_map(|power| [power, power.wrapping_neg()])
            .flat_map(|power| (0..5).map(move |at| power.wrapping_add(at).wrapping_sub(2)))
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Every pair of such numbers, against arithmetic without a wrap.
    #[test]
    #[cfg_attr(miri, ignore = "too many cases for an interpreter")]
    fn every_pair_of_borders_agrees_with_whole_numbers() {
        const WRAP: i64 = 1 << 32;
        for a in borders() {
            for b in borders() {
                let (first, second) = (SeqNo::new(a), SeqNo::new(b));
                // The distance from b to a, modulo the wrap, by the shorter way.
                let forward = (i64::from(a) - i64::from(b)).rem_euclid(WRAP);
                let shortest = if forward >= WRAP / 2 {
                    forward - WRAP
                } else {
                    forward
                };
                assert_eq!(i64::from(first.distance_from(second)), shortest);
                assert_eq!(first.precedes(second), shortest < 0);
                assert_eq!(first.follows(second), shortest > 0);
                // Two numbers that are opposite each other both come first.
                let is_opposite = forward == WRAP / 2;
                assert_eq!(second.follows(first), shortest < 0 && !is_opposite);
                let later = if shortest < 0 { b } else { a };
                let earlier = if shortest < 0 { a } else { b };
                assert_eq!(first.latest(second).get(), later);
                assert_eq!(first.earliest(second).get(), earlier);
                let sum = (i64::from(a) + i64::from(b)).rem_euclid(WRAP);
                assert_eq!(i64::from((first + b).get()), sum);
                assert_eq!(i64::from(first.back(b).get()), forward);
                let mut moved = first;
                moved += b;
                assert_eq!(moved, first + b);
            }
        }
    }
}
