//! The demonstration of `comity demo`: video with deadlines beside greedy flows through one
//! emulated bottleneck.
//!
//! ```text
//! Clip ─► plan ─┐
//!               ├─► network::run ─► Recording ─► Metrics ─► text, JSON
//! Setup ────────┘   (sockets)           └──────────┴───────► report: charts ─► HTML
//! ```
//!
//! Only `network` uses sockets and clocks. Everything after it is a function of the
//! [`recording::Recording`].

pub(crate) mod clip;
pub(crate) mod metrics;
pub(crate) mod network;
pub(crate) mod plot;
pub(crate) mod recording;
pub(crate) mod report;
#[cfg(test)]
mod starting;
pub(crate) mod summary;
