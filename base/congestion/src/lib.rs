//! Congestion control as pure state machines.
//!
//! A [`Controller`] decides how much and how fast one flow may send. It takes [`Event`]s that carry
//! the time, and returns one [`Decision`]. It has no access to a connection, a clock or a packet,
//! so the same code runs in the simulator, at a socket and in a unit test.
//!
//! Two more interfaces complete an algorithm:
//!
//! * [`Recovery`]: how a byte-sequence transport finds and repairs losses (Tahoe, Reno, NewReno,
//!   SACK, RACK). Any controller works with any of them.
//! * [`Meter`]: the receiver's half, if an algorithm has one. It sees each arrival with the [`Tag`]
//!   of the sender's controller, and answers with a [`Report`].
//!
//! [`RttEstimator`] is that of RFC 6298, and [`DeliveryRate`] measures the rate samples of BBR. All
//! transports use both. [`table`] lists every controller by name, for the command line, scenario
//! files, bindings and tests.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bucket;
mod controller;
pub mod controllers;
mod delivery_rate;
mod ecn;
pub mod equation;
mod event;
mod loss_intervals;
mod meter;
mod pacer;
mod ranges;
pub mod recovery;
mod rtt;
mod size_search;
pub mod table;

pub use bucket::TokenBucket;
pub use controller::{Controller, Decision, LossHistory, Needs, Pacing, Phase, TimeoutRepair};
pub use delivery_rate::{DeliveryRate, Departure, PacketLoss, RateSample};
pub use ecn::Ecn;
pub use event::{Ack, Arrived, Event, Feedback, Idle, InOrderAck, Loss, LossCause, Sent, Timeout};
pub use loss_intervals::LossIntervals;
pub use meter::{Arrival, Meter, Report, Tag};
pub use pacer::Pacer;
pub use ranges::{Position, Ranges};
pub use recovery::{AnyRecovery, Recovery};
pub use rtt::{RttConfig, RttEstimator};
pub use size_search::{SEARCH_INTERVAL, SizeSearch};
