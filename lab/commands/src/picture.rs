//! The request of `comity plot` to the drawing code.

use std::path::PathBuf;

/// A picture to draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The stored results.
    pub results: PathBuf,
    /// The kind of picture.
    pub kind: String,
    /// The file to write. Its extension is the format.
    pub out: PathBuf,
    /// Whether the background is dark.
    pub dark: bool,
    /// The run to draw, for kinds that draw one run.
    pub run: Option<u64>,
    /// The flows, groups or links to draw; empty for all.
    pub only: Vec<String>,
}

/// Draws a picture and returns the exit code. Pictures are drawn in Python, so only the command of
/// the Python package has a plotter.
pub type Plotter<'p> = &'p dyn Fn(&Picture) -> u8;
