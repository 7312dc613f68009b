//! The `comity` command, for the program of that name and for the Python package.

mod args;
mod clock;
mod commands;
#[cfg(feature = "demo")]
mod demo;
mod numbers;
mod picture;

use std::ffi::{OsStr, OsString};

use clap::Parser;
use comity::session::StaticKey;
use comity::uri::parts::without_secrets;
use nix::sys::signal::{SigSet, Signal};

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
    block_file_size_signal();
    let words: Vec<OsString> = words.into_iter().collect();
    let parsed = args::Cli::try_parse_from(&words).unwrap_or_else(|error| {
        // The message repeats the words that are wrong, and one of them may be or have a secret.
        let shown = words.iter().map(|word| without_secret(word));
        let error = args::Cli::try_parse_from(shown).err().unwrap_or(error);
        error.exit()
    });
    commands::dispatch(parsed, plotter)
}

/// A write beyond the limit of file sizes fails instead of ending the program without a summary.
/// All threads that begin later do as this one.
fn block_file_size_signal() {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGXFSZ);
    // It fails only for signals that do not exist.
    let _ = signals.thread_block();
}

/// A word of the command line as a message may show it.
fn without_secret(word: &OsStr) -> OsString {
    match word.to_str() {
        Some(text) if text.contains(StaticKey::MARK) => "***".into(),
        Some(text) if text.contains("://") || text.contains("passphrase") => {
            without_secrets(text).into()
        }
        _ => word.into(),
    }
}
