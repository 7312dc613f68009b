//! The `comity` command, for the program of that name and for the Python package.

mod args;
mod clock;
mod commands;
mod demo;
mod numbers;
mod picture;

use std::ffi::OsString;

use clap::Parser;

pub use picture::{Picture, Plotter};

/// Runs the command with these words, the name of the program first, and returns its exit code.
/// Ends the process instead where the words are wrong or ask for help.
pub fn run(words: impl IntoIterator<Item = OsString>, plotter: Option<Plotter<'_>>) -> u8 {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        // Without its thread or task, the rest would wait for ever, or end as if all were well.
        if !comity::contains_panic() {
            std::process::abort();
        }
    }));
    let words: Vec<OsString> = words.into_iter().collect();
    commands::dispatch(args::Cli::parse_from(words), plotter)
}
