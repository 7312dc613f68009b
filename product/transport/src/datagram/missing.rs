//! The receiver's count of lost packets, from missing packet numbers.
//!
//! A number is missing from the arrival of a higher number until its own arrival. Peers skip single
//! numbers on purpose, with at least [`MIN_DISTANCE`] other numbers in between, to detect receivers
//! that acknowledge packets without having received them. A skipped number looks like a loss. This
//! count therefore excuses a hole of one number if it lies more than that distance above the last
//! excused hole. On a path without losses, the count is then zero. On other paths, it excuses some
//! losses instead of skipped numbers nearby. The count is too low by less than one in 128 numbers,
//! and by half of that on paths that lose 5 %.

use alloc::collections::VecDeque;
use core::ops::Range;

use comity_units::PacketNumber;

/// The minimum number of used numbers between two skipped numbers.
pub(super) const MIN_DISTANCE: u64 = 128;
/// The maximum number of remembered holes. Late packets fill them.
const MAX_HOLES: usize = 64;

/// Counts the missing numbers.
#[derive(Debug)]
pub(super) struct MissingPackets {
    /// One more than the largest received number.
    next: u64,
    /// The latest holes, in order.
    holes: VecDeque<Hole>,
    /// The first number that may be excused.
    excused_from: u64,
    missing: u64,
}

/// Consecutive missing numbers.
#[derive(Debug)]
struct Hole {
    numbers: Range<u64>,
    /// The value of [`MissingPackets::excused_from`] before this hole was excused, if it was.
    excused: Option<u64>,
}

impl Default for MissingPackets {
    fn default() -> Self {
        Self {
            next: 0,
            holes: VecDeque::new(),
            excused_from: MIN_DISTANCE,
            missing: 0,
        }
    }
}

impl MissingPackets {
    /// The present number of missing packets.
    pub(super) const fn count(&self) -> u64 {
        self.missing
    }

    /// A packet arrived that is not a duplicate.
    pub(super) fn on_packet(&mut self, number: PacketNumber) {
        let number = number.get();
        if number < self.next {
            return self.take_back(number);
        }
        let numbers = self.next..number;
        self.next = number + 1;
        if numbers.is_empty() {
            return;
        }
        let is_left_out = numbers.end - numbers.start == 1 && numbers.start >= self.excused_from;
        let excused = is_left_out.then_some(self.excused_from);
        if is_left_out {
            self.excused_from = numbers.end + MIN_DISTANCE;
        } else {
            self.missing += numbers.end - numbers.start;
        }
        if self.holes.len() == MAX_HOLES {
            self.holes.pop_front();
        }
        self.holes.push_back(Hole { numbers, excused });
    }

    /// A missing number arrived late.
    fn take_back(&mut self, number: u64) {
        let at = self
            .holes
            .iter()
            .position(|hole| hole.numbers.contains(&number));
        let Some((at, hole)) = at.and_then(|at| Some((at, self.holes.get_mut(at)?))) else {
            return;
        };
        match hole.excused {
            // Another number of this hole may be the skipped one.
            Some(before) if self.excused_from == hole.numbers.end + MIN_DISTANCE => {
                self.excused_from = before;
            }
            Some(_) => {}
            None => self.missing -= 1,
        }
        let above = Hole {
            numbers: number + 1..hole.numbers.end,
            excused: None,
        };
        hole.numbers.end = number;
        if !above.numbers.is_empty() {
            self.holes.insert(at + 1, above);
        }
        self.holes.retain(|hole| !hole.numbers.is_empty());
        if self.holes.len() > MAX_HOLES {
            self.holes.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn count(numbers: impl IntoIterator<Item = u64>) -> u64 {
        let mut missing = MissingPackets::default();
        for number in numbers {
            missing.on_packet(PacketNumber::new(number));
        }
        missing.count()
    }

    #[test]
    fn skipped_numbers_are_not_missing() {
        // The minimum distances, and the maximum.
        let left_out = [128, 257, 641, 1_025];
        assert_eq!(count((0..1_100).filter(|n| !left_out.contains(n))), 0);
        // A nearer one was lost, and so were two adjacent ones.
        assert_eq!(count((0..1_100).filter(|n| ![128, 256].contains(n))), 1);
        assert_eq!(count((0..1_100).filter(|n| ![500, 501].contains(n))), 2);
        assert_eq!(count(5..10), 5);
    }

    #[test]
    fn late_packets_are_no_longer_missing() {
        assert_eq!(count([0, 4]), 3);
        assert_eq!(count([0, 4, 2]), 2);
        assert_eq!(count([0, 4, 2, 1, 3]), 0);
        // A late number was not skipped: the next hole is excused.
        let late = (0..300).filter(|n| ![150, 200].contains(n));
        let numbers: Vec<u64> = late
            .flat_map(|n| if n == 151 { vec![151, 150] } else { vec![n] })
            .collect();
        assert_eq!(count(numbers), 0);
        let kept = (0..300).filter(|n| ![150, 200].contains(n));
        assert_eq!(count(kept), 1);
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many packets for an interpreter")]
    fn almost_all_losses_are_counted() {
        // Every twentieth is lost, and every 256th is skipped.
        let numbers = (0..100_000_u64).filter(|n| n % 20 != 7 && n % 256 != 200);
        let missing = count(numbers);
        assert!((4_600..=5_100).contains(&missing), "{missing} for 5,000");
    }
}
