//! Growth laws: how the window moves.

mod cubic;
mod fixed;
mod hystart;
mod limited;
mod reno;
mod vegas;

pub use cubic::{Cubic, CubicConfig};
pub use fixed::Fixed;
pub use hystart::{HyStart, Ramp};
pub use limited::Limited;
pub use reno::{DecreaseBasis, Increase, Reno, RenoConfig, Rounding};
pub use vegas::{Vegas, VegasConfig};
