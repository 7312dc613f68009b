//! Exit codes, and lines on the standard output and error.

use std::fmt::Display;
use std::io::IsTerminal as _;
use std::io::{self, Write};

/// Why a command ends with an exit code other than 0. The error has already been printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The requested work failed.
    Failed,
    /// The command line or a scenario is wrong.
    Usage,
    /// The interrupt key was pressed.
    Interrupted,
    /// There was no connection, or it was lost.
    Unconnected,
    /// The work was done, but not exactly enough.
    Overloaded,
    /// The checked stream has faults.
    Faulty,
    /// The two ends refuse each other.
    Refused,
    /// An address to listen on is unavailable.
    Taken,
    /// A file could not be opened, or is empty.
    Unopened,
}

impl From<Failure> for u8 {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Failed => 1,
            Failure::Usage => 2,
            Failure::Overloaded => 3,
            Failure::Unconnected | Failure::Faulty => 3,
            Failure::Refused => 4,
            Failure::Taken => 5,
            Failure::Unopened => 6,
            // 128 and the number of SIGINT, as in shells.
            Failure::Interrupted => 130,
        }
    }
}

/// Writes to the standard output. A reader that closes the pipe, such as `head`, is no error.
pub fn print(text: impl AsRef<[u8]>) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(complain(&format!("cannot print: {error}"))),
    }
}

/// Prints an error, and returns `Failure::Failed`.
pub fn complain(message: &dyn Display) -> Failure {
    say(&format!("error: {message}"));
    Failure::Failed
}

/// Writes a line to the standard error.
pub fn say(message: &str) {
    write_error(&format!("{message}\n"));
}

/// Writes to the standard error immediately, and ignores errors.
pub(crate) fn write_error(text: &str) {
    let mut error = io::stderr().lock();
    let _ = error
        .write_all(text.as_bytes())
        .and_then(|()| error.flush());
}

/// Clears the last line of a terminal, which has no line end.
pub(crate) const CLEAR_LINE: &str = "\r\x1b[K";

/// Replaces the last line of a terminal. A wrapped line cannot be replaced, so the text is cut
/// between fields, which are separated by two spaces.
pub(crate) fn overwrite(text: &str) {
    let width = rustix::termios::tcgetwinsize(io::stderr())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
        .unwrap_or(80);
    write_error(&format!("{CLEAR_LINE}{}", fitting(text, width)));
}

/// The fields that fit into a line.
fn fitting(text: &str, width: usize) -> &str {
    let ends = text.match_indices("  ").map(|(at, _)| at);
    let ends = ends.chain([text.len()]);
    let end = ends.take_while(|end| *end <= width).last().unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

/// Whether the standard error shows colours.
pub fn has_colours() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_cut_between_its_fields() {
        let text = "12.0 s  late 0  gaps 2";
        assert_eq!(fitting(text, 80), text);
        assert_eq!(fitting(text, 22), text);
        assert_eq!(fitting(text, 21), "12.0 s  late 0");
        assert_eq!(fitting(text, 14), "12.0 s  late 0");
        assert_eq!(fitting(text, 13), "12.0 s");
        assert_eq!(fitting(text, 3), "");
    }
}
