//! TCP Libra: its parameters and the live state of its flows.

mod flow;
mod parameters;

pub use flow::{Flow, flows};
pub use parameters::Parameters;
