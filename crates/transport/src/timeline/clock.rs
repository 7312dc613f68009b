//! Maps the sender's clock onto the receiver's.

use comity_units::{Span, Time};

/// The sender's clock as the receiver sees it.
#[derive(Clone, Debug)]
pub struct ClockMap {}

#[allow(unused_variables, missing_docs, clippy::unimplemented)]
impl ClockMap {
    pub fn new() -> Self { unimplemented!() }
    /// Half of the least round trip: the least one-way delay itself cannot be seen.
    pub fn set_base_one_way(&mut self, span: Span) { unimplemented!() }
    pub fn on_arrival(&mut self, now: Time, departure_micros: u32) { unimplemented!() }
    pub fn to_local(&self, sender: Time) -> Time { unimplemented!() }
    /// Drift of the sender's clock against ours in parts per million; negative when the sender's is slow.
    pub fn drift_ppm(&self) -> f64 { unimplemented!() }
    /// How long the last packet took beyond the least of the window, and base_one_way on top.
    pub fn one_way_latest(&self) -> Span { unimplemented!() }
    pub fn one_way_least(&self) -> Span { unimplemented!() }
}
