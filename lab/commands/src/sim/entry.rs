//! A group of flows or a link at one point of a sweep.

use std::collections::BTreeMap;

use comity_sim::metrics::{self, Estimate};
use comity_sim::report::{LinkReport, RunReport};
use comity_sim::results::Measures;
use serde_json::{Value, json};

/// A group or a link, with a value of each measure for each run that has one.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    /// The number of flows.
    pub(super) flows: u64,
    /// The number of runs in which the time to equal shares was measured.
    pub(super) sought: usize,
    /// The number of flows, over all runs, that started in measured time and ended.
    pub(super) completed: u64,
    /// The number of flows, over all runs, that started in measured time, have an end and did not
    /// reach it.
    pub(super) unfinished: u64,
    values: BTreeMap<&'static str, Vec<f64>>,
}

impl Entry {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            flows: 0,
            sought: 0,
            completed: 0,
            unfinished: 0,
            values: BTreeMap::new(),
        }
    }

    /// Adds the group of another run.
    pub(super) fn add_group(&mut self, report: &RunReport, group: &Measures<'_>) {
        self.flows = self.flows.max(group.flows);
        let criterion = report.series.as_ref().and_then(|series| series.convergence);
        self.sought += usize::from(criterion.is_some() && group.flows > 1);
        self.completed += group.completion.count;
        self.unfinished += group.unfinished.unwrap_or(0);
        self.add(group.values());
    }

    /// Adds the link of another run.
    pub(super) fn add_link(&mut self, link: &LinkReport) {
        let delay = link.queueing_delay;
        self.add([
            ("utilisation", link.utilisation),
            ("mean_queue_packets", Some(link.mean_queue_packets)),
            ("dropped_packets", Some(link.dropped_measured as f64)),
            ("queueing_delay_s", (delay.count > 0).then_some(delay.mean)),
        ]);
    }

    fn add(&mut self, values: impl IntoIterator<Item = (&'static str, Option<f64>)>) {
        for (measure, value) in values {
            self.values.entry(measure).or_default().extend(value);
        }
    }

    /// The measures with these values, one for each run that has one.
    pub(super) fn measures(&self) -> impl Iterator<Item = &'static str> {
        self.values.keys().copied()
    }

    pub(super) fn values(&self, measure: &str) -> &[f64] {
        self.values.get(measure).map_or(&[], Vec::as_slice)
    }

    /// Whether some run has a value.
    pub(super) fn has(&self, measure: &str) -> bool {
        !self.values(measure).is_empty()
    }

    /// The mean over the runs, with its confidence interval.
    pub(super) fn estimate(&self, measure: &str) -> Option<Estimate> {
        metrics::mean_with_interval(self.values(measure)).ok()
    }

    pub(super) fn mean(&self, measure: &str) -> Option<f64> {
        Some(self.estimate(measure)?.mean)
    }

    pub(super) fn least(&self, measure: &str) -> Option<f64> {
        self.values(measure).iter().copied().reduce(f64::min)
    }

    pub(super) fn most(&self, measure: &str) -> Option<f64> {
        self.values(measure).iter().copied().reduce(f64::max)
    }

    /// The estimate as JSON, described in `docs/reference/run-json.md`.
    pub(super) fn estimate_json(&self, measure: &str) -> Value {
        match self.estimate(measure) {
            Some(Estimate {
                mean,
                half_width,
                count,
            }) => json!({ "mean": mean, "half_width": half_width, "count": count }),
            None => Value::Null,
        }
    }
}
