//! Transport of sections with deadlines, as pure state machines.
//!
//! Time and packets come in as arguments; packets, events and the next wake-up come out.
//! [`datagram`] carries sections with deadlines in packets of the [`wire`] format. [`timeline`]
//! chooses the bytes to send, drops sections that are out of time, and reassembles sections.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod counter;
pub mod datagram;
pub mod timeline;
pub mod wire;
