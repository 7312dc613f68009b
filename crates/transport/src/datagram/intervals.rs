//! The intervals of a connection's reports and measurements.

use comity_units::Span;

/// From one receiver report to the next, when there is something to acknowledge.
pub(super) const REPORT_WITH_ACK: Span = Span::from_millis(90);

/// From one receiver report to the next, when there is nothing to acknowledge. Sections that come
/// every 100 ms must not cost two packets each, so this is longer.
pub(super) const REPORT_ALONE: Span = Span::from_millis(125);

/// The interval between round-trip measurements of an end that only receives.
pub(super) const MEASURE_INTERVAL: Span = Span::from_millis(500);
