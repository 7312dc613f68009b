//! The losses that acknowledgements show, whatever the receiver reports.

use comity_units::{Span, Time};

use crate::LossIntervals;

/// The loss intervals of a flow, and the highest rate of its acknowledgements.
#[derive(Clone, Debug)]
pub(super) struct ShownLosses {
    intervals: LossIntervals,
    /// The bytes acknowledged since this time, for at most about a round trip.
    since: Option<Time>,
    bytes: f64,
    /// The highest rate over a round trip, in bytes per second.
    most: f64,
}

impl ShownLosses {
    /// A flow without acknowledgements.
    pub(super) fn new(memory: usize) -> Self {
        Self {
            intervals: LossIntervals::new(memory),
            since: None,
            bytes: 0.0,
            most: 0.0,
        }
    }

    /// This many bytes in `segments` were acknowledged.
    pub(super) fn on_acked(&mut self, now: Time, rtt: Span, bytes: f64, segments: f64) {
        self.intervals.on_acked(segments);
        let since = *self.since.get_or_insert(now);
        let elapsed = now.saturating_since(since);
        if elapsed >= rtt && !elapsed.is_zero() {
            self.most = self.most.max(self.bytes / elapsed.as_secs_f64());
            (self.since, self.bytes) = (Some(now), 0.0);
        }
        self.bytes += bytes;
    }

    /// A loss event began. `first` is the length of the interval before the first event.
    pub(super) fn on_loss(&mut self, first: f64) {
        self.intervals.on_event(|| first);
    }

    /// The highest rate of acknowledgements over a round trip, in bytes per second.
    pub(super) const fn most(&self) -> f64 {
        self.most
    }

    /// The loss event rate; zero before the first event.
    pub(super) fn rate(&self) -> f64 {
        self.intervals.rate().unwrap_or(0.0)
    }
}
