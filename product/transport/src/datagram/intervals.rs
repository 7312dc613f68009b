//! The intervals of a connection's reports and measurements.

use comity_units::Span;

/// The interval between receiver reports if there is something to acknowledge.
pub(super) const REPORT_WITH_ACK: Span = Span::from_millis(90);

/// The interval between receiver reports if there is nothing to acknowledge. It is longer, so that
/// sections every 100 ms do not cost two packets each.
pub(super) const REPORT_ALONE: Span = Span::from_millis(125);

/// The interval between round-trip measurements of an end that only receives.
pub(super) const MEASURE_INTERVAL: Span = Span::from_millis(500);
