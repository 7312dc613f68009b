//! The `comity` command.

mod args;
mod clock;
mod commands;
mod demo;
mod numbers;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        // Without its thread or task, the rest would wait for ever, or end as if all were well.
        if !comity::contains_panic() {
            std::process::abort();
        }
    }));
    commands::dispatch(args::Cli::parse())
}
