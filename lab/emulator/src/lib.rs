//! The links of the simulator on the real clock: a UDP proxy that needs no privileges.
//!
//! An [`Emulator`] listens on an address and forwards what it gets to a target, through a link of
//! [`comity_link`]; the target's answers go back through another link to the caller that they
//! belong to. Rates, delays, queues, losses, jitter, duplication and traces are those of the
//! simulator, drawn from the same named random streams: given the times at which packets arrive,
//! their fates are the same.
//!
//! An emulator is late now and then, because no processor is always free. It reports how late: it
//! compares every release with the time that the link planned ([`Timing`]), and reports each sign
//! that it could not keep up as an [`Overload`]. Its memory is bounded ([`Limits`]).
//!
//! - [`Lane`] is the pure part: a link and the packets on it.
//! - [`Emulator`], [`Handle`] and [`Stopper`] run two of them between sockets, on Linux.
//!
//! Not emulated: sizes above what one UDP datagram carries, fragmentation, and the time that the
//! host itself takes before packets reach the emulator and after they leave it.
#![forbid(unsafe_code)]

mod callers;
mod config;
mod counts;
mod plan;
mod report;
mod run;
mod socket;
mod timing;

pub use config::{Config, Direction, Error, Limits, resolve};
pub use counts::{PacketCounts, Tally};
pub use plan::{Lane, Record, Release};
pub use report::{Overload, Report, Statistics, Way};
pub use run::{Emulator, Handle, Stopper};
pub use timing::{Timing, TimingSummary};
