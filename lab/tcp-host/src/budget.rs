//! Limits the rate of answers.

use comity_units::{Span, Time};

/// The period over which answers are counted.
const PERIOD: Span = Span::from_secs(1);

/// Counts answers in periods of one second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Budget {
    since: Time,
    used: u32,
}

impl Budget {
    /// Counts one more answer if it is within `limit` per second. Returns whether it is.
    pub(crate) fn take(&mut self, now: Time, limit: u32) -> bool {
        if now.saturating_since(self.since) >= PERIOD {
            (self.since, self.used) = (now, 0);
        }
        let is_within = self.used < limit;
        self.used += u32::from(is_within);
        is_within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_its_own_answers() {
        let mut budget = Budget::default();
        let mut count = |at_ms| {
            let now = Time::from_millis(at_ms);
            (0..10).filter(|_| budget.take(now, 3)).count()
        };
        assert_eq!(
            (count(10), count(999), count(1_000), count(1_999)),
            (3, 0, 3, 0)
        );
    }
}
