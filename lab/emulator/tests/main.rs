//! The tests of the crate's public interface, in one program: it links once, and its tests run
//! beside one another.

mod loopback;
mod plan;
