//! Other programs, which the tests compare with.

use std::process::{Command, Output};

/// What a program prints that must succeed; `None` with a message if it is absent. With
/// `COMITY_NEED_FFMPEG` in the environment, as in CI, that fails, because a skipped test proves
/// nothing.
#[expect(
    clippy::print_stderr,
    reason = "that a test was skipped has to be seen"
)]
pub(crate) fn run(command: &mut Command) -> Option<Output> {
    match command.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{said}");
            Some(output)
        }
        Err(error) => {
            let name = command.get_program().display();
            let is_strict = std::env::var_os("COMITY_NEED_FFMPEG").is_some();
            assert!(!is_strict, "{name} cannot be run here ({error})");
            eprintln!("skipped: {name} cannot be run here ({error})");
            None
        }
    }
}
