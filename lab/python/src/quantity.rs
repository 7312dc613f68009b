//! Numbers with units.

use comity_units::{DataSize, Rate, Span};
use pyo3::prelude::*;

/// The number of a quantity: seconds, bit/s or bytes; `None` if the text is no quantity.
#[pyfunction]
pub(crate) fn quantity(text: &str) -> Option<f64> {
    let span = text.parse().ok().map(Span::as_secs_f64);
    let rate = || text.parse().ok().map(|rate: Rate| rate.as_bps() as f64);
    let bytes = || text.parse().ok().map(|bytes: DataSize| bytes.get() as f64);
    span.or_else(rate).or_else(bytes)
}
