//! Transfers: the random sizes of short flows, and the connections of a trace.

mod sizes;
mod tmix;

use std::fmt;

pub use sizes::Sizes;
pub use tmix::{TraceConnection, parse_tmix};

/// The largest transfer, in bytes: 1 PiB.
const LARGEST: u64 = 1 << 50;

/// What is wrong with a file of sizes or of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransfersError {
    /// The line, from 1.
    pub line: usize,
    /// The text found.
    pub found: String,
    /// The expected form.
    pub expected: &'static str,
}

impl fmt::Display for TransfersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            found,
            expected,
        } = self;
        write!(f, "line {line}: {found}; expected {expected}")
    }
}

impl std::error::Error for TransfersError {}

/// A line of a file that is neither empty nor a comment, with its number from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..)
        .zip(text.lines().map(str::trim))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// The number of the last line, for errors about a missing end.
fn last_line(text: &str) -> usize {
    text.lines().count().max(1)
}
