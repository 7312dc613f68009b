//! Transport protocols as pure state machines.
//!
//! Time and packets come in as arguments; packets, events and the next wake-up come out. [`tcp`]
//! carries a byte sequence in TCP segments with real headers and options. [`datagram`] carries
//! sections with deadlines in packets of the [`wire`] format. [`timeline`] decides which bytes of
//! which section to send and until when, and reassembles them.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bucket;
pub mod checksum;
pub mod datagram;
mod ecn;
mod keyed_hash;
mod pacer;
mod size_search;
pub mod tcp;
pub mod timeline;
pub mod wire;

pub use bucket::TokenBucket;
pub use ecn::Ecn;
pub use pacer::Pacer;
pub use size_search::{SEARCH_INTERVAL, SizeSearch};
