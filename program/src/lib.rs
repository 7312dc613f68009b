//! The `comity` command, for the program of that name and for the Python package.

mod args;
mod dispatch;
#[cfg(test)]
mod exit_codes;
mod list;

use std::ffi::{OsStr, OsString};

use clap::Parser;
use comity::credentials::StaticKey;
use comity::uri::parts::without_secrets;
use comity_commands::interrupt;

#[cfg(feature = "laboratory")]
pub use comity_lab_commands::{Picture, Plotter};

/// Runs the command with these words, the program's name first, and returns its exit code. Ends the
/// process instead if the words are wrong or request help.
pub fn run(words: impl IntoIterator<Item = OsString>) -> u8 {
    dispatch::dispatch(parse(words).command)
}

/// Runs the command as [`run`] does. `comity plot` draws with `plotter`.
#[cfg(feature = "laboratory")]
pub fn run_with_plotter(words: impl IntoIterator<Item = OsString>, plotter: Plotter<'_>) -> u8 {
    match parse(words).command {
        args::Command::Plot(args) => comity_lab_commands::plot(args, Some(plotter)),
        command => dispatch::dispatch(command),
    }
}

/// Prepares the process, and parses the words.
fn parse(words: impl IntoIterator<Item = OsString>) -> args::Cli {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        // Without the panicking thread or task, the rest would wait forever or appear to succeed.
        if !comity::parts::contains_panic() {
            std::process::abort();
        }
    }));
    interrupt::block_signals();
    let words: Vec<OsString> = words.into_iter().collect();
    args::Cli::try_parse_from(&words).unwrap_or_else(|error| {
        // The message repeats the wrong words, and one of them may contain a secret.
        let shown = words.iter().map(|word| without_secret(word));
        let error = args::Cli::try_parse_from(shown).err().unwrap_or(error);
        error.exit()
    })
}

/// A word of the command line without secrets, for a message.
fn without_secret(word: &OsStr) -> OsString {
    match word.to_str() {
        Some(text) if text.contains(StaticKey::MARK) => "***".into(),
        Some(text) if text.contains("://") || text.contains("passphrase") => {
            without_secrets(text).into()
        }
        _ => word.into(),
    }
}
