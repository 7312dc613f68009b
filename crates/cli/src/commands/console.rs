//! Exit codes, and lines on the standard output and error.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

/// Why a command ends with another code than 0. What went wrong has been said by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// What was requested could not be done.
    Failed,
    /// The command line or a scenario is wrong.
    Usage,
    /// The interrupt key was pressed.
    Interrupted,
    /// There was no connection, or none any more.
    Unconnected,
    /// It was done, but not as exactly as it has to be.
    Overloaded,
    /// The stream that was checked has faults.
    Faulty,
    /// The two ends do not agree on who may talk to whom.
    Refused,
    /// An address to listen on is not to be had.
    Taken,
    /// A file could not be opened, or has nothing in it.
    Unopened,
}

impl From<Failure> for u8 {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Failed => 1,
            Failure::Usage => 2,
            Failure::Overloaded | Failure::Unconnected | Failure::Faulty => 3,
            Failure::Refused => 4,
            Failure::Taken => 5,
            Failure::Unopened => 6,
            // 128 and the number of SIGINT, as shells have it.
            Failure::Interrupted => 130,
        }
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
