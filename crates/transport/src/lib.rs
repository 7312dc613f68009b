//! Transport protocols as pure state machines.
//!
//! Time and packets come in as arguments; packets, events and the next wake-up come out. [`tcp`] carries
//! a byte sequence in TCP segments with real headers and options. [`wire`] is the format of the packets
//! that carry sections with deadlines over UDP.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod checksum;
mod pacer;
pub mod tcp;
pub mod wire;

pub use pacer::Pacer;
