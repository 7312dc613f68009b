//! The `comity` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    comity_cli::run(std::env::args_os()).into()
}
