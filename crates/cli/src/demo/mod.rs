//! The demonstration of `comity demo`: video with deadlines beside greedy flows through one
//! emulated bottleneck, and the same video over other transports.
//!
//! ```text
//! Clip ─► plan ─┐
//!               ├─► network::run ─► Recording ─► Metrics ─► text, JSON
//! Setup ────────┘   srt, tcp            └─► Viewing ──┴───► report: charts ─► HTML
//! ```
//!
//! `network` and `srt` run through the emulated link of `bottleneck`. They use sockets and clocks,
//! and `tcp` simulates. Everything after them is a function of the [`recording::Recording`].

pub(crate) mod bottleneck;
pub(crate) mod clip;
pub(crate) mod metrics;
pub(crate) mod network;
pub(crate) mod plot;
pub(crate) mod recording;
pub(crate) mod report;
mod srt;
#[cfg(test)]
mod starting;
pub(crate) mod summary;
mod tcp;
mod thumbnails;
pub(crate) mod viewer;
