//! The `comity` command.

mod args;
mod commands;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    commands::dispatch(args::Cli::parse())
}
