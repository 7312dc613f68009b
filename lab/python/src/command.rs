//! The `comity` command.

use std::ffi::OsString;
use std::path::PathBuf;

use comity_cli::Picture;
use pyo3::prelude::*;

/// Runs the command with these words, the name of the program first, and returns its exit code.
/// `plot` draws a picture: results, kind, output, dark, run, and what to draw alone; it returns an
/// exit code too.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, words: Vec<OsString>, plot: Py<PyAny>) -> u8 {
    let draw = |picture: &Picture| {
        Python::attach(|py| {
            let Picture {
                results,
                kind,
                out,
                dark,
                run,
                only,
            } = picture;
            let paths: (&PathBuf, &PathBuf) = (results, out);
            let code = plot
                .call1(py, (paths.0, kind, paths.1, *dark, *run, only.clone()))
                .and_then(|code| code.extract(py));
            code.unwrap_or_else(|error: PyErr| {
                error.print(py);
                1
            })
        })
    };
    py.detach(|| comity_cli::run_with_plotter(words, &draw))
}
