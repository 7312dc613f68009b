//! One module for each verb.

mod claims;
mod demo;
mod doctor;
mod emulate;
mod keygen;
mod lab;
mod list;
mod mtu;
mod progress;
mod sim;
pub(crate) mod stream;

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::{Cli, Command, Sim};

/// Why a command ends with another code than 0. What went wrong has been said by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// What was asked for could not be done.
    Failed,
    /// The command line or a scenario is wrong.
    Usage,
    /// The interrupt key was pressed.
    Interrupted,
    /// There was no connection, or none any more.
    Unconnected,
    /// It was done, but not as exactly as it has to be.
    Overloaded,
    /// The two ends do not agree on who may talk to whom.
    Refused,
    /// An address to listen on is not to be had.
    Taken,
    /// A file could not be opened, or has nothing in it.
    Unopened,
}

impl From<Failure> for ExitCode {
    fn from(failure: Failure) -> Self {
        Self::from(match failure {
            Failure::Failed => 1,
            Failure::Usage => 2,
            Failure::Overloaded | Failure::Unconnected => 3,
            Failure::Refused => 4,
            Failure::Taken => 5,
            Failure::Unopened => 6,
            // 128 and the number of SIGINT, as shells have it.
            Failure::Interrupted => 130,
        })
    }
}

pub(crate) fn dispatch(cli: Cli) -> ExitCode {
    let done = match cli.command {
        Command::Demo(args) => demo::demo(&args),
        Command::Send(args) => stream::send(&args),
        Command::Recv(args) => stream::recv(&args),
        Command::Relay(args) => stream::relay(&args),
        Command::Sim(Sim::Run(args)) => sim::run::run(&args),
        Command::Sim(Sim::List(args)) => sim::list::list(&args),
        Command::Sim(Sim::Schema(args)) => sim::schema::schema(&args),
        Command::Sim(Sim::Trace(args)) => sim::trace::trace(&args),
        Command::Lab(args) => lab::lab(args),
        Command::Claims(args) => claims::claims(&args),
        Command::Emulate(args) => emulate::emulate(&args),
        Command::Keygen(args) => keygen::keygen(&args),
        Command::List(args) => list::list(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "comity", &mut script);
            print(&script)
        }
        Command::Man { dir } => std::fs::create_dir_all(&dir)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), &dir))
            .map_err(|error| complain(&format!("cannot write to {}: {error}", dir.display()))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.into(),
    }
}

/// Writes to the standard output. A reader that has gone away, such as `head`, has seen enough.
pub(crate) fn print(text: impl AsRef<[u8]>) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(complain(&format!("cannot print: {error}"))),
    }
}

/// Says what went wrong.
pub(crate) fn complain(message: &dyn Display) -> Failure {
    say(&format!("error: {message}"));
    Failure::Failed
}

/// Writes a line to the standard error; when even that fails there is nobody to tell.
pub(crate) fn say(message: &str) {
    let _ = writeln!(io::stderr().lock(), "{message}");
}

/// Whether the standard error shows colours.
pub(crate) fn has_colours() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
