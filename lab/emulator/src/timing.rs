//! Measures how late packets are released.

use comity_units::{Span, Time};
use hdrhistogram::Histogram;

/// The distribution of the time between the planned and the actual release of packets, over a run.
///
/// A release is timed when the system call that sends it returns, so the error includes that call.
/// No packet is released early.
#[derive(Clone, Debug)]
pub struct Timing {
    errors: Histogram<u64>,
    late: u64,
    bound: Span,
    /// When the last stretch with late releases began, and the number of stretches.
    stretch: Option<Time>,
    stretches: u64,
}

/// A summary of the errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimingSummary {
    /// The number of releases.
    pub count: u64,
    /// The mean error.
    pub mean: Span,
    /// The median.
    pub p50: Span,
    /// The 99th percentile.
    pub p99: Span,
    /// The 99.9th percentile.
    pub p999: Span,
    /// The largest error.
    pub max: Span,
    /// The number of errors above the bound.
    pub late: u64,
    /// The number of stretches, of at most one second, that contain these errors: one if the host
    /// stalled once.
    pub late_stretches: u64,
}

impl Timing {
    /// Larger errors count as this.
    const MOST: Span = Span::from_secs(60);
    /// The maximum length of a stretch with late releases.
    const STRETCH: Span = Span::from_secs(1);

    /// Creates a distribution without releases. Releases later than `bound` will count as late.
    pub fn new(bound: Span) -> Self {
        let errors = Histogram::new_with_bounds(1, Self::MOST.as_nanos(), 2)
            .expect("the bounds are constants that fit together");
        Self {
            errors,
            late: 0,
            bound,
            stretch: None,
            stretches: 0,
        }
    }

    /// Records a packet that was due at `due` and released `error` later.
    pub fn record(&mut self, due: Time, error: Span) {
        self.errors.saturating_record(error.as_nanos());
        if error <= self.bound {
            return;
        }
        self.late += 1;
        let is_in = |begin: Time| due.saturating_since(begin) < Self::STRETCH;
        if !self.stretch.is_some_and(is_in) {
            self.stretch = Some(due);
            self.stretches += 1;
        }
    }

    /// A summary of the errors. Percentiles are exact to 1 %.
    pub fn summary(&self) -> TimingSummary {
        let at = |quantile| Span::from_nanos(self.errors.value_at_quantile(quantile));
        TimingSummary {
            count: self.errors.len(),
            mean: Span::from_nanos(self.errors.mean() as u64),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: Span::from_nanos(self.errors.max()),
            late: self.late,
            late_stretches: self.stretches,
        }
    }

    /// The histogram: for each bound, the number of errors up to it and above the previous bound.
    /// The last bound is the first that no error exceeds.
    pub fn histogram(&self) -> Vec<(Span, u64)> {
        let mut bars = Vec::new();
        let mut below = 0;
        for bound in Self::bounds() {
            if below >= self.errors.len() {
                break;
            }
            let until = self.errors.count_between(0, bound.as_nanos());
            bars.push((bound, until.saturating_sub(below)));
            below = until;
        }
        bars
    }

    /// 1, 2, 5, 10, ... µs up to 100 s.
    fn bounds() -> impl Iterator<Item = Span> {
        (0..9).flat_map(|decade| {
            let unit = 10_u64.pow(decade);
            [1, 2, 5].map(|step| Span::from_micros(step * unit))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_by_size_and_against_the_bound() {
        let mut timing = Timing::new(Span::from_millis(1));
        for micros in [1, 1, 3, 10, 400, 1_000, 1_001, 7_000] {
            timing.record(Time::ZERO, Span::from_micros(micros));
        }
        let summary = timing.summary();
        assert_eq!((summary.count, summary.late), (8, 2));
        // Exact to 1 %, the resolution of the histogram.
        let near = |found: Span, micros: u64| {
            found.abs_diff(Span::from_micros(micros)) <= Span::from_nanos(micros * 10 + 1)
        };
        assert!(near(summary.p50, 10), "{summary:?}");
        assert!(near(summary.max, 7_000), "{summary:?}");
        let bars = timing.histogram();
        assert_eq!(bars.iter().map(|(_, count)| count).sum::<u64>(), 8);
        assert_eq!(bars.first(), Some(&(Span::from_micros(1), 2)));
        assert_eq!(bars.last(), Some(&(Span::from_millis(10), 1)));
        assert!(Timing::new(Span::ZERO).histogram().is_empty());
    }

    #[test]
    fn late_packets_are_counted_by_the_seconds_that_have_them() {
        let stretches = |late: &dyn Fn(u64) -> bool| {
            let mut timing = Timing::new(Span::from_millis(1));
            for millis in 0..10_000 {
                let error = Span::from_millis(if late(millis) { 3 } else { 0 });
                timing.record(Time::from_millis(millis), error);
            }
            timing.summary().late_stretches
        };
        assert_eq!(stretches(&|_| false), 0);
        // One stall of 300 ms, across the border of a second.
        assert_eq!(stretches(&|millis| (2_900..3_200).contains(&millis)), 1);
        assert_eq!(stretches(&|millis| millis % 4_000 < 50), 3);
        assert_eq!(stretches(&|_| true), 10);
    }
}
