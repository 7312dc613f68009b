//! Intervals between occurrences.

use comity_units::{Span, Time};

/// Intervals between consecutive occurrences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Intervals {
    /// The number of intervals.
    pub count: u64,
    /// The shortest interval.
    pub min: Span,
    /// The longest interval.
    pub max: Span,
    /// The sum of all intervals.
    pub sum: Span,
}

impl Intervals {
    /// The mean; zero if there are no intervals.
    pub fn mean(&self) -> Span {
        self.sum / self.count.max(1)
    }

    fn add(&mut self, interval: Span) {
        self.min = match self.count {
            0 => interval,
            _ => self.min.min(interval),
        };
        self.max = self.max.max(interval);
        self.sum += interval;
        self.count += 1;
    }
}

/// An event that should recur.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repetition {
    /// The time of the latest occurrence, or since when one is expected.
    since: Option<Time>,
    has_occurred: bool,
    pub(super) intervals: Intervals,
}

impl Repetition {
    /// Expects an occurrence from now on, if it did not before.
    pub(super) fn expect(&mut self, now: Option<Time>) {
        self.since = self.since.or(now);
    }

    /// Expects no occurrence until further notice.
    pub(super) const fn pause(&mut self) {
        self.since = None;
        self.has_occurred = false;
    }

    /// Records an occurrence. Returns whether more than `limit` has passed since the previous one,
    /// or since one is expected.
    pub(super) fn occur(&mut self, now: Option<Time>, limit: Span) -> bool {
        let Some(now) = now else { return false };
        let is_late = self.is_late(Some(now), limit);
        if let Some(since) = self.since.filter(|_| self.has_occurred) {
            self.intervals.add(now.saturating_since(since));
        }
        self.since = Some(now);
        self.has_occurred = true;
        is_late
    }

    /// Whether it has been absent for more than `limit`.
    pub(super) fn is_late(&self, now: Option<Time>, limit: Span) -> bool {
        let passed = now.zip(self.since);
        passed.is_some_and(|(now, since)| now.saturating_since(since) > limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Option<Time> {
        Some(Time::from_millis(millis))
    }

    #[test]
    fn an_interval_is_late_behind_its_limit() {
        let limit = Span::from_millis(100);
        let mut table = Repetition::default();
        assert!(!table.is_late(at(9_000), limit), "nothing is expected yet");
        table.expect(at(1_000));
        table.expect(at(5_000));
        assert!(!table.is_late(at(1_100), limit) && table.is_late(at(1_101), limit));
        assert!(table.occur(at(1_200), limit));
        assert_eq!(table.intervals, Intervals::default());
        assert!(!table.occur(at(1_300), limit));
        assert!(table.occur(at(1_401), limit));
        assert!(!table.occur(None, limit));
        let intervals = table.intervals;
        assert_eq!(
            (intervals.count, intervals.mean()),
            (2, Span::from_micros(100_500))
        );
        assert_eq!(
            (intervals.min, intervals.max),
            (limit, Span::from_millis(101))
        );
        table.pause();
        assert!(!table.is_late(at(9_000), limit));
        assert!(!table.occur(at(9_000), limit));
        assert_eq!(table.intervals.count, 2);
    }
}
