//! The tests of the crate's public interface, in one program: it links once, and its tests run
//! beside one another.

mod documentation;
#[path = "reference/main.rs"]
mod reference;
