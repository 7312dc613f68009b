//! The `comity` command.

mod args;
mod clock;
mod commands;
mod demo;
mod numbers;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    commands::dispatch(args::Cli::parse())
}
