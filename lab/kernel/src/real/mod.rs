//! TCP-Real: its parameters and the live state of its sockets.

mod flow;
mod parameters;

pub use flow::{Flow, Meter, Sender, flows};
pub use parameters::{Fractions, Opening, Parameters};
