//! The links of the simulator in real time: a UDP proxy that needs no privileges.
//!
//! An [`Emulator`] listens on an address and forwards packets to a target, over a link of
//! [`comity_link`]. The answers of the target return over another link to their caller. Rates,
//! delays, queues, losses, jitter, duplication and traces are those of the simulator, drawn from
//! the same named random streams: if packets arrive at the same times, their fates are the same.
//!
//! An emulator is sometimes late, because no processor is always free. It reports how late: it
//! compares every release with the time that the link planned ([`Timing`]), and reports each sign
//! that it could not keep up as an [`Overload`]. Its memory is bounded ([`Limits`]).
//!
//! - [`Lane`] is the pure part: a link and the packets on it.
//! - [`Emulator`], [`Handle`] and [`Stopper`] run two of them between sockets, on Linux.
//!
//! It does not emulate sizes above that of one UDP datagram, fragmentation, or the time that the
//! host needs before packets reach the emulator and after they leave it.
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
