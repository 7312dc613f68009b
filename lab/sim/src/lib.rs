//! A fast, deterministic packet simulator for transport protocols.
//!
//! A [`network::Network`] describes nodes, one-way links and flows as plain data. [`run`] runs it
//! from a seed in virtual time and returns a [`report::RunReport`]. The protocols are the state
//! machines of `comity-transport`, and the links are those of `comity-link`, so the simulator runs
//! the deployed code. A [`scenario::Scenario`] describes a network and its sweep as text.

mod custom;
pub mod frames;
pub mod histogram;
pub mod ledger;
pub mod metrics;
pub mod network;
pub mod packet_recorder;
pub mod packets;
pub mod report;
pub mod results;
pub mod scenario;
pub mod series;
pub mod transfers;

pub mod trace;
mod words;

mod engine;

pub use custom::{CustomController, CustomControllers, NoControllers};
pub use engine::host;
pub use engine::{
    Body, Fate, FlowEvent, FlowEventKind, LinkEvent, NullObserver, Observer, Packet, RunOptions,
    SectionEvent, SectionPacket, SenderState, run, run_observed,
};
