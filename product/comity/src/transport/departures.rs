//! How late paced packets leave.

use comity_units::{Span, Time};
use hdrhistogram::Histogram;

use crate::statistics::Pacing;

/// The maximum number of planned departures of packets that have not left: more than a batch has.
const MAX_PLANNED: usize = 256;

/// The largest pacing error in the histogram, in ns.
const LONGEST_ERROR: u64 = 10_000_000_000;

/// The planned departures of polled packets that have not left yet, and the delays of earlier ones.
#[derive(Debug, Default)]
pub(super) struct Departures {
    planned: Vec<Time>,
    errors: Option<Box<Histogram<u32>>>,
}

impl Departures {
    /// Records the planned departure of a polled packet; `None` if pacing did not hold it back.
    pub(super) fn plan(&mut self, at: Option<Time>) {
        if self.planned.len() < MAX_PLANNED {
            self.planned.extend(at);
        }
    }

    /// Whether paced packets were polled and have not left.
    pub(super) fn are_planned(&self) -> bool {
        !self.planned.is_empty()
    }

    /// Records the delays of the polled packets, which have just left.
    pub(super) fn on_sent(&mut self, now: Time) {
        for planned in self.planned.drain(..) {
            let error = now.saturating_since(planned).as_nanos();
            let histogram = self.errors.get_or_insert_with(|| {
                let new = Histogram::new_with_bounds(1_000, LONGEST_ERROR, 2);
                Box::new(new.expect("the bounds are in order, and the digits few"))
            });
            histogram.saturating_record(error);
        }
    }

    /// Forgets the polled packets: they will not be sent.
    pub(super) fn forget(&mut self) {
        self.planned.clear();
    }

    /// The distribution of the delays so far.
    pub(super) fn errors(&self) -> Pacing {
        let Some(histogram) = &self.errors else {
            return Pacing::default();
        };
        let us = |nanos: u64| Span::from_nanos(nanos).as_secs_f64() * 1e6;
        Pacing {
            packets: histogram.len(),
            mean_us: histogram.mean() / 1e3,
            p50_us: us(histogram.value_at_quantile(0.5)),
            p99_us: us(histogram.value_at_quantile(0.99)),
            p999_us: us(histogram.value_at_quantile(0.999)),
            max_us: us(histogram.max()),
        }
    }
}
