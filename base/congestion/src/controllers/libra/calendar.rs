//! When each group of packets leaves: the burstiness control of section 4.

use comity_units::{Seed, Span, Time};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Consecutive intervals. In each, one group of packets leaves together at a random time.
///
/// ```text
/// |--- interval k ---|--- interval k+1 ---|
///        ^^                          ^^       a pair at a random time in each
/// ```
///
/// The time is uniform in its interval. If the window delays a group beyond its interval, the next
/// intervals move: at most one interval is caught up, so no burst follows a pause.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    random: Xoshiro256PlusPlus,
    /// The end of the interval that the current group belongs to.
    interval_end: Time,
    /// When the current group may leave.
    next: Time,
    /// The packets of the current group.
    group: u32,
    /// The packets of the current group that have not left yet.
    left: u32,
}

impl Calendar {
    pub(super) fn new(seed: Seed) -> Self {
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed.get()),
            interval_end: Time::ZERO,
            next: Time::ZERO,
            group: 0,
            left: 0,
        }
    }

    /// When the next packet may leave.
    pub(super) const fn next(&self) -> Time {
        self.next
    }

    /// Whether the next packet is the first of its group.
    pub(super) const fn is_at_beginning(&self) -> bool {
        self.left == self.group
    }

    /// Draws the time of the next group, of `group` packets, in the next interval.
    pub(super) fn draw(&mut self, now: Time, interval: Span, group: u32) {
        let begin = self
            .interval_end
            .max(now.saturating_sub(interval))
            .min(now + interval);
        self.interval_end = begin + interval;
        self.next = begin + interval.mul_f64(self.uniform());
        self.group = group.max(1);
        self.left = self.group;
    }

    /// Begins the calendar with an interval at `now`.
    pub(super) fn begin(&mut self, now: Time, interval: Span, group: u32) {
        self.interval_end = now;
        self.draw(now, interval, group);
    }

    /// Counts a sent packet. Returns whether it was the last of its group.
    pub(super) const fn on_sent(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0
    }

    /// Lets the next group leave at once, to retransmit after a loss.
    pub(super) fn release(&mut self, now: Time) {
        self.next = self.next.min(now);
    }

    /// A number in [0, 1), uniform on the multiples of 2⁻⁵³.
    fn uniform(&mut self) -> f64 {
        const SCALE: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.random.next_u64() >> 11) as f64 * SCALE
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    const INTERVAL: Span = Span::from_millis(10);

    /// Groups of two, each sent when it may.
    fn departures(seed: u64, groups: u64) -> Vec<Time> {
        let mut calendar = Calendar::new(Seed::new(seed));
        calendar.begin(Time::from_secs(1), INTERVAL, 2);
        let mut departures = Vec::new();
        for _ in 0..groups {
            let at = calendar.next();
            assert!(calendar.is_at_beginning());
            assert!(!calendar.on_sent());
            assert_eq!(calendar.next(), at, "the second follows at once");
            assert!(!calendar.is_at_beginning());
            assert!(calendar.on_sent());
            departures.push(at);
            calendar.draw(at, INTERVAL, 2);
        }
        departures
    }

    #[test]
    #[cfg_attr(miri, ignore = "too long for an interpreter")]
    fn each_departure_is_in_its_interval_and_all_are_uniform_in_the_long_run() {
        let groups = 100_000;
        let mut tenths = [0_u32; 10];
        for (interval, departure) in (0..).zip(departures(7, groups)) {
            let begin = Time::from_secs(1) + INTERVAL * interval;
            let offset = departure.since(begin).unwrap();
            assert!(offset < INTERVAL, "{interval}: {departure}");
            let tenth = usize::try_from(offset.as_nanos() * 10 / INTERVAL.as_nanos()).unwrap();
            tenths[tenth] += 1;
        }
        // Chi-square with nine degrees of freedom: 27.9 is exceeded once in a thousand.
        let expected = groups as f64 / 10.0;
        let chi: f64 = tenths
            .iter()
            .map(|count| f64::from(*count) - expected)
            .map(|excess| excess * excess / expected)
            .sum();
        assert!(chi < 27.9, "{chi}: {tenths:?}");
    }

    #[test]
    fn the_seed_alone_decides() {
        assert_eq!(departures(3, 100), departures(3, 100));
        assert_ne!(departures(3, 100), departures(4, 100));
    }

    #[test]
    fn at_most_one_interval_is_made_up_for() {
        let mut calendar = Calendar::new(Seed::new(1));
        calendar.begin(Time::ZERO, INTERVAL, 2);
        let late = Time::from_secs(5);
        calendar.draw(late, INTERVAL, 2);
        assert!(calendar.next() >= late.saturating_sub(INTERVAL));
        assert!(calendar.next() < late);
        for _ in 0..3 {
            calendar.draw(late, INTERVAL, 2);
        }
        assert!(calendar.next() <= late + INTERVAL * 2);
        assert!(
            calendar.next() >= late + INTERVAL,
            "one interval after the other"
        );
    }

    #[test]
    fn a_group_that_is_released_does_not_wait() {
        let mut calendar = Calendar::new(Seed::new(1));
        calendar.begin(Time::from_secs(1), INTERVAL, 2);
        assert!(calendar.next() > Time::from_secs(1));
        calendar.release(Time::from_secs(1));
        assert_eq!(calendar.next(), Time::from_secs(1));
        calendar.release(Time::from_secs(2));
        assert_eq!(calendar.next(), Time::from_secs(1));
    }
}
