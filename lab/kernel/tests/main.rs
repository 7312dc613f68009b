//! The arithmetic of the programs against the simulator's controllers, and the programs in the
//! kernel.

mod arithmetic;
mod loading;

use std::io::Write as _;

/// Says something to whoever runs the tests, also when they pass.
fn print_line(text: &str) {
    // Nobody may be listening.
    let _ = writeln!(std::io::stderr(), "kernel tests: {text}");
}
