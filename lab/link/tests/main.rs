//! The tests of the crate's public interface, in one program: it links once, and its tests run
//! beside one another.

mod closed_forms;
mod codel;
mod fq_codel;
mod losses;
mod oracle;
mod pie;
mod red_ns2;
mod traces;
