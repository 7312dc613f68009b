//! One-way network links as pure state machines.
//!
//! A link takes packets at given times and says when, and whether, they arrive. It has a rate,
//! constant or over time, a propagation delay, a queue (drop-tail, RED, CoDel, FQ-CoDel, PIE),
//! losses, jitter and duplication, all described by one [`LinkConfig`]. Time comes in as an
//! argument; randomness comes from a [`Seed`](comity_units::Seed), one stream for each model, named
//! below the link's own.
//!
//! ```text
//! offer ─► MTU ─► losses on the way in ─► queue ─► transmission ─► losses on the wire ─► delay, jitter, copy ─► arrival
//!   Dropped(TooLarge)  Dropped(Loss)   Dropped(QueueFull)               Lost                            Carried
//!                                      Dropped(EarlyDrop)
//! ```
//!
//! Hosts make a [`Link`] of a description; it is one of two kinds, by what its queue needs:
//!
//! - [`AnalyticLink`] decides everything when a packet is handed over: no event for the end of a
//!   transmission, a few nanoseconds a packet.
//! - [`QueuedLink`] keeps packets in a real queue and has to be woken when one leaves: for CoDel,
//!   FQ-CoDel and PIE, and for hosts that change rate and delay while running.
//!
//! Where both can do the same they give the same outcomes. Times are exact: transmission times are
//! kept as integers with their remainders, so that no rounding adds up, and a time is rounded up to
//! a whole nanosecond only when it is reported. At one instant departures come before offers: a
//! packet that leaves at a time has made room for one offered at that time.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod analytic;
mod clock;
mod codel;
mod config;
mod error;
mod far_end;
mod fq_codel;
mod link;
mod loss;
mod outcome;
mod pie;
mod profile;
mod queue;
mod queued;
mod random;
mod red;
mod ring;
mod trace;
mod waiting;

pub use analytic::AnalyticLink;
pub use config::{DelayProfile, Jitter, LinkConfig, Loss, LossModel, LossPlace, RateProfile};
pub use error::ConfigError;
pub use link::Link;
pub use outcome::{Backlog, DropCause, Outcome, Packet, Passage};
pub use queue::{CodelConfig, FqCodelConfig, Limit, PieConfig, Queue, RedConfig, RedUnit};
pub use queued::QueuedLink;
pub use random::Random;
pub use trace::{
    DeliveryTrace, MAX_STEPS, TraceError, TraceErrorKind, parse_delay_steps, parse_mahimahi,
    parse_steps,
};
pub use waiting::Decision;
