//! One-way network links as pure state machines.
//!
//! A link accepts packets and computes whether and when they arrive. It has a rate, constant or
//! over time, a propagation delay, a queue (drop-tail, RED, CoDel, FQ-CoDel, PIE), losses, jitter
//! and duplication, all described by one [`LinkConfig`]. Time comes in as an argument. Randomness
//! comes from a [`Seed`](comity_units::Seed), with one stream for each model, named below the seed
//! of the link. The two links of a pair may share the states of on/off losses ([`LinkSeed`]).
//!
//! ```text
//! offer ─► MTU ─► losses before the queue ─► queue ─► transmission ─► losses on the wire ─► delay,
//! jitter, duplicate ─► arrival
//!   Dropped(TooLarge)  Dropped(Loss)   Dropped(QueueFull)               Lost                            Carried
//!                                      Dropped(EarlyDrop)
//! ```
//!
//! Hosts create a [`Link`] from a description. It is one of two kinds, depending on its queue:
//!
//! - [`AnalyticLink`] decides everything at the offer of a packet. It needs no event for the end of
//!   a transmission and spends a few nanoseconds on a packet.
//! - [`QueuedLink`] keeps packets in a real queue and needs a wake-up when one leaves. CoDel,
//!   FQ-CoDel and PIE need it, and hosts that change rate and delay at run time.
//!
//! Where both are possible, their outcomes are equal. Times are exact: transmission times are
//! integers with their remainders, so rounding errors do not accumulate. A time is rounded up to a
//! whole nanosecond only when it is reported. At one instant, departures precede offers: a packet
//! that leaves makes room for one offered at the same time.
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
pub use random::{LinkSeed, Random};
pub use trace::{
    DeliveryTrace, MAX_STEPS, TraceError, TraceErrorKind, parse_delay_steps, parse_mahimahi,
    parse_steps,
};
pub use waiting::Decision;
