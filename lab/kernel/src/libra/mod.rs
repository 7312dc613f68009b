//! TCP Libra: its parameters and the live state of its flows.

mod destination;
mod flow;
mod parameters;

pub use destination::Destination;
pub use flow::{Flow, flows};
pub use parameters::Parameters;
