//! Statistics over the runs of a point.

use comity_sim::metrics;
use serde_json::{Value, json};

pub(super) fn mean(values: &[f64]) -> Option<f64> {
    metrics::mean_with_interval(values)
        .ok()
        .map(|estimate| estimate.mean)
}

/// The mean of the values, with the half-width of its confidence interval.
pub(super) fn estimate(values: &[f64]) -> Value {
    match metrics::mean_with_interval(values) {
        Ok(estimate) => json!({
            "mean": estimate.mean,
            "half_width": estimate.half_width,
            "count": estimate.count,
        }),
        Err(_) => Value::Null,
    }
}

pub(super) fn least(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::min)
}

pub(super) fn most(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}
