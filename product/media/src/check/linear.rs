//! Measures the distance of points from the line through their neighbours.

use std::collections::VecDeque;

use hdrhistogram::Histogram;

/// The number of points of a line: about a second of clock references.
const WINDOW: usize = 33;
/// The minimum number of points of a line.
const MIN_WINDOW: usize = 5;
/// A stretch between two points is even, or exactly even, if its slope differs from that of its
/// line by at most this share.
const EVEN: f64 = 0.1;
const EXACT: f64 = 0.01;
/// One significant digit, which takes some kilobytes of memory.
const DIGITS: u8 = 1;
/// The limit of accuracy, in nanoseconds (TR 101 290, 2.4).
const LIMIT: u64 = 500;

/// Distances from the line, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Offsets {
    /// The number of points.
    pub count: u64,
    /// The lowest distance.
    pub min_ns: i64,
    /// The highest distance.
    pub max_ns: i64,
    /// The number of points whose distance exceeds 500 ns, in either direction.
    pub over_500_ns: u64,
    sizes: Histogram<u64>,
}

impl Default for Offsets {
    fn default() -> Self {
        Self {
            count: 0,
            min_ns: 0,
            max_ns: 0,
            over_500_ns: 0,
            sizes: Histogram::new(DIGITS).expect("a constant that is allowed"),
        }
    }
}

impl Offsets {
    /// The value that 99 % of the absolute distances do not exceed, rounded up by at most an
    /// eighth.
    pub fn p99_ns(&self) -> u64 {
        let largest = self.min_ns.unsigned_abs().max(self.max_ns.unsigned_abs());
        self.sizes.value_at_quantile(0.99).min(largest)
    }

    fn add(&mut self, nanos: f64) {
        // Values out of range saturate.
        let nanos = nanos.round() as i64;
        if self.count == 0 {
            (self.min_ns, self.max_ns) = (nanos, nanos);
        }
        self.min_ns = self.min_ns.min(nanos);
        self.max_ns = self.max_ns.max(nanos);
        self.over_500_ns += u64::from(nanos.unsigned_abs() > LIMIT);
        // This cannot fail, since the histogram grows to any size.
        let _ = self.sizes.record(nanos.unsigned_abs());
        self.count += 1;
    }
}

/// Measures points against the line through [`WINDOW`] points: the point in the middle, and at the
/// ends of a run also the others.
#[derive(Clone, Debug, Default)]
pub(super) struct Linear {
    points: VecDeque<Point>,
    /// The number of points that have been measured.
    measured: usize,
    pub(super) offsets: Offsets,
    /// The number of stretches between two points, and of those that are even and exactly even.
    stretches: u64,
    even: u64,
    exact: u64,
}

/// A clock reference, in nanoseconds, and its position, in bytes or nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Point {
    position: i64,
    clock: f64,
}

impl Linear {
    /// Adds the next point of the run. Positions increase.
    pub(super) fn push(&mut self, position: i64, clock: f64) {
        self.points.push_back(Point { position, clock });
        if self.points.len() > WINDOW {
            self.points.pop_front();
            self.measured = self.measured.saturating_sub(1);
        }
        if self.points.len() == WINDOW {
            self.measure(WINDOW / 2 + 1);
        }
    }

    /// Ends the run.
    pub(super) fn restart(&mut self) {
        if self.points.len() >= MIN_WINDOW {
            self.measure(self.points.len());
        }
        self.points.clear();
        self.measured = 0;
    }

    /// Whether nine of ten stretches are even, or exactly even; `None` if there are too few points.
    pub(super) fn is_even(&self, exactly: bool) -> Option<bool> {
        let even = if exactly { self.exact } else { self.even };
        (self.stretches > 0).then_some(10 * even >= 9 * self.stretches)
    }

    /// Measures the points before this index.
    fn measure(&mut self, up_to: usize) {
        let Some(line) = Line::through(&self.points) else {
            self.measured = up_to;
            return;
        };
        for index in self.measured..up_to {
            let Some(point) = self.points.get(index) else {
                break;
            };
            self.offsets.add(line.distance(point));
            let before = index
                .checked_sub(1)
                .and_then(|index| self.points.get(index));
            if let Some(before) = before {
                let slope =
                    (point.clock - before.clock) / (point.position - before.position) as f64;
                let wrong = (slope / line.slope - 1.0).abs();
                self.stretches += 1;
                self.even += u64::from(wrong <= EVEN);
                self.exact += u64::from(wrong <= EXACT);
            }
        }
        self.measured = up_to;
    }
}

/// The line of least squares.
struct Line {
    origin: Point,
    /// The means, relative to the origin.
    position: f64,
    clock: f64,
    slope: f64,
}

impl Line {
    fn through(points: &VecDeque<Point>) -> Option<Self> {
        let origin = *points.front()?;
        let count = points.len() as f64;
        // Relative positions are small, so their squares are exact enough.
        let from_origin = points.iter().map(|point| {
            let position = point.position.saturating_sub(origin.position) as f64;
            (position, point.clock - origin.clock)
        });
        let sums = from_origin.clone().fold((0.0, 0.0), |sums, point| {
            (sums.0 + point.0, sums.1 + point.1)
        });
        let (position, clock) = (sums.0 / count, sums.1 / count);
        let (mut covariance, mut variance) = (0.0, 0.0);
        for point in from_origin {
            covariance += (point.0 - position) * (point.1 - clock);
            variance += (point.0 - position) * (point.0 - position);
        }
        (variance > 0.0).then(|| Self {
            origin,
            position,
            clock,
            slope: covariance / variance,
        })
    }

    fn distance(&self, point: &Point) -> f64 {
        let position = point.position.saturating_sub(self.origin.position) as f64;
        let clock = point.clock - self.origin.clock;
        clock - (self.clock + self.slope * (position - self.position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points at every 100th position and every 20 ms, with these offsets.
    fn measured(count: i64, offset: impl Fn(i64) -> f64) -> Linear {
        let mut linear = Linear::default();
        for number in 0..count {
            linear.push(100 * number, 2e7 * number as f64 + offset(number));
        }
        linear.restart();
        linear
    }

    #[test]
    fn points_on_a_line_deviate_by_nothing() {
        for count in [5, 20, 33, 34, 500] {
            let linear = measured(count, |_| 0.0);
            let offsets = &linear.offsets;
            assert_eq!(offsets.count, count as u64);
            assert_eq!((offsets.min_ns, offsets.max_ns), (0, 0));
            assert_eq!((offsets.over_500_ns, offsets.p99_ns()), (0, 0));
            assert_eq!(linear.is_even(true), Some(true));
        }
        assert_eq!(measured(4, |_| 0.0).offsets.count, 0);
        assert_eq!(measured(4, |_| 0.0).is_even(false), None);
    }

    #[test]
    fn a_point_that_is_off_shows_32_of_33_parts_of_it() {
        let offsets = measured(500, |number| if number == 200 { 3_300.0 } else { 0.0 });
        let offsets = offsets.offsets;
        assert_eq!(offsets.max_ns, 3_200);
        // The other lines of the point show the rest.
        assert_eq!((offsets.min_ns, offsets.over_500_ns), (-100, 1));
        assert!((100..=112).contains(&offsets.p99_ns()));
    }

    #[test]
    fn a_clock_that_is_fast_does_not_deviate_and_one_that_jitters_does() {
        let fast = measured(500, |number| 1e5 * number as f64).offsets;
        assert_eq!((fast.min_ns, fast.max_ns), (0, 0));
        let jitter = measured(500, |number| if number % 2 == 0 { 600.0 } else { -600.0 });
        assert_eq!(jitter.offsets.over_500_ns, 500);
        assert!((550..=650).contains(&jitter.offsets.p99_ns()));
        assert_eq!(jitter.is_even(true), Some(true));
    }

    #[test]
    fn a_rate_that_varies_is_uneven() {
        let mut linear = Linear::default();
        let mut position = 0;
        for number in 0_i64..200 {
            position += if number % 3 == 0 { 300 } else { 100 };
            linear.push(position, 2e7 * number as f64);
        }
        linear.restart();
        assert_eq!(linear.is_even(false), Some(false));
        // Every stretch is off by 5 %.
        let nearly = measured(500, |number| if number % 2 == 0 { 5e5 } else { -5e5 });
        let is_even = [true, false].map(|exactly| nearly.is_even(exactly));
        assert_eq!(is_even, [Some(false), Some(true)]);
    }

    /// 99 values of one size, and one that is larger.
    #[test]
    fn sizes_are_rounded_up_by_an_eighth_at_most() {
        for size in (0..5_000).chain([i64::MAX / 3, i64::MAX / 2]) {
            let mut offsets = Offsets::default();
            for _ in 0..99 {
                offsets.add(-(size as f64));
            }
            offsets.add(i64::MAX as f64);
            let (size, found) = (offsets.min_ns.unsigned_abs(), offsets.p99_ns());
            assert!(found >= size && found - size <= size / 8, "{size}: {found}");
        }
    }
}
