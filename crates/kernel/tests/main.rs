//! The arithmetic of the program against the simulator's Libra, and the program in the kernel.

mod arithmetic;
mod loading;

use std::io::Write as _;

/// Says something to whoever runs the tests, also when they pass.
fn tell(text: &str) {
    // Nobody may be listening.
    let _ = writeln!(std::io::stderr(), "kernel tests: {text}");
}
