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

mod bottleneck;
mod clip;
mod command;
mod metrics;
mod network;
mod plot;
mod recording;
mod report;
mod srt;
#[cfg(test)]
mod starting;
mod summary;
mod tcp;
mod thumbnails;
mod viewer;

pub use command::demo;
