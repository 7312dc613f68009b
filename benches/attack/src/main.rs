//! `attack`: strangers and hostile peers on loopback, and honest callers beside them.
//!
//! `attack.py` runs it against the command and prints what the command made of it. Each subcommand
//! prints JSON, one object per line.

mod callers;
mod flood;
mod guesses;
mod peer;
mod relay;
mod result;
mod scripts;
mod strangers;

use std::process::ExitCode;

use clap::Parser;

/// Attacks a listener of Comity on loopback.
#[derive(Parser)]
enum Command {
    /// Strangers send packets of one kind from many addresses
    Flood(flood::Arguments),
    /// Strangers call with passphrases that they guess
    Guess(guesses::Arguments),
    /// A listener guesses passphrases of its callers
    Listen(guesses::Listening),
    /// Honest callers connect, one after the other
    Call(callers::Arguments),
    /// Forwards, records, changes and replays packets
    Relay(relay::Arguments),
    /// A peer that has the passphrase sends what a script says
    Peer(peer::Arguments),
}

fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::Flood(arguments) => flood::run(&arguments),
        Command::Guess(arguments) => guesses::run(&arguments),
        Command::Listen(arguments) => guesses::listen(&arguments),
        Command::Call(arguments) => callers::run(&arguments),
        Command::Relay(arguments) => relay::run(&arguments),
        Command::Peer(arguments) => peer::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("attack: {error}");
            ExitCode::FAILURE
        }
    }
}
