//! The commands that simulate, emulate and measure, and the demonstration.
//!
//! Without the feature `laboratory`, only the demonstration is here: it is built in a short time.

pub mod args;
mod demo;
#[cfg(feature = "laboratory")]
mod emulate;
#[cfg(feature = "laboratory")]
mod figures;
#[cfg(feature = "laboratory")]
mod kernel;
#[cfg(feature = "laboratory")]
mod lab;
#[cfg(feature = "laboratory")]
pub mod list;
#[cfg(feature = "laboratory")]
mod picture;
#[cfg(feature = "laboratory")]
mod plot;
#[cfg(feature = "laboratory")]
mod progress;
#[cfg(feature = "laboratory")]
mod results;
#[cfg(feature = "laboratory")]
mod sim;
#[cfg(feature = "laboratory")]
mod tcp;

use comity_commands::{Failure, clock, complain, files, numbers, print, say, status_line};
#[cfg(feature = "laboratory")]
use comity_commands::{Stop, has_colours, interrupt, tables};

pub use demo::demo;
#[cfg(feature = "laboratory")]
pub use {
    emulate::emulate,
    kernel::kernel,
    lab::lab,
    picture::{Picture, Plotter},
    plot::plot,
    results::results,
    sim::sim,
    tcp::tcp,
};
