//! Video with deadlines beside greedy flows through one emulated bottleneck: what `comity demo`
//! shows.
//!
//! ```text
//! Clip ─► plan ─┐
//!               ├─► network::run ─► Recording ─► Account ─► words, JSON
//! Setup ────────┘   (sockets)           └──────────┴───────► report: charts ─► HTML
//! ```
//!
//! Only `network` knows sockets and clocks. What comes after it are functions of the
//! [`recording::Recording`].

pub(crate) mod account;
pub(crate) mod clip;
pub(crate) mod network;
pub(crate) mod plot;
pub(crate) mod recording;
pub(crate) mod report;
pub(crate) mod telling;
