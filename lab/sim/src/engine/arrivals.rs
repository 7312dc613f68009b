//! The spacing of a flow's arrivals.

use comity_units::Time;

use crate::histogram::Distribution;
use crate::report::Summary;

/// The times between one arrival and the next.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    last: Option<Time>,
    spacing: Distribution,
}

impl Arrivals {
    #[inline]
    pub(super) fn record(&mut self, now: Time) {
        if let Some(last) = self.last.replace(now) {
            self.spacing.record(now.saturating_since(last));
        }
    }

    pub(super) fn summary(&self) -> Summary {
        self.spacing.summary()
    }

    pub(super) fn memory(&self) -> usize {
        self.spacing.memory()
    }
}
