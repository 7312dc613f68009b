//! Growth laws: how the window moves.

mod reno;

pub use reno::{DecreaseBasis, Increase, Reno, RenoConfig, Rounding};
