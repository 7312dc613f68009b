//! Transport protocols as pure state machines.
//!
//! Time and packets come in as arguments; packets, events and the next wake-up come out. [`tcp`] carries
//! a byte sequence in TCP segments with real headers and options.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod checksum;
mod pacer;
pub mod tcp;

pub use pacer::Pacer;
