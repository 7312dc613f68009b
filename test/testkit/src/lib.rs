//! Pairs, packet scripts and oracles for the tests of Comity.

pub mod conformance;
pub mod datagram;
pub mod liar;
pub mod memory;
pub mod meters;
pub mod page;
pub mod paths;
pub mod tcp;
pub mod tracked;
