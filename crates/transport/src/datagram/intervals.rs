//! The intervals of a connection's reports and measurements.

use comity_units::Span;

/// The interval between receiver reports while sections arrive.
pub(super) const REPORT_INTERVAL: Span = Span::from_millis(100);

/// The interval between round-trip measurements of an end that only receives.
pub(super) const MEASURE_INTERVAL: Span = Span::from_millis(500);
