//! Why runs cannot be stored or read.

use std::io;
use std::path::{Path, PathBuf};

use super::super::error::WriteError;

/// Why runs cannot be stored or read.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// Stores describe different sweeps.
    Different {
        /// The first store.
        first: PathBuf,
        /// The second store.
        second: PathBuf,
    },
    /// The path of the results exists, and has no store.
    Exists {
        /// The place of the results.
        path: PathBuf,
    },
    /// A run of another process does not belong to the sweep, or is incomplete.
    Foreign,
    /// There is no store.
    NoStore {
        /// Where it was expected.
        path: PathBuf,
    },
    /// The description of a store cannot be read.
    Unreadable {
        /// The description.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The store holds runs that the sweep does not have.
    WouldLose {
        /// The folder of the store.
        folder: PathBuf,
        /// How many runs would be lost.
        runs: usize,
        /// The name of their scenario.
        scenario: String,
        /// The command that made them.
        command: String,
    },
    /// The store cannot be written or read.
    Write(WriteError),
}

impl StoreError {
    /// Whether the runs can be stored if earlier ones may be removed.
    pub const fn is_refusal_to_replace(&self) -> bool {
        matches!(self, Self::Exists { .. } | Self::WouldLose { .. })
    }

    pub(super) fn new(path: &Path, error: io::Error) -> Self {
        Self::Write(WriteError::io(path, error))
    }
}

impl From<WriteError> for StoreError {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Different { first, second } => write!(
                f,
                "{} and {} store runs of different sweeps; expected one scenario, one list of \
                 seeds and one version",
                first.display(),
                second.display()
            ),
            Self::Exists { path } => write!(f, "{} exists; expected a new path", path.display()),
            Self::Foreign => f.write_str(
                "a run comes from another scenario, seed or version; expected the same version of \
                 Comity everywhere",
            ),
            Self::NoStore { path } => {
                write!(f, "no runs are stored at {}", path.display())
            }
            Self::Unreadable { path, reason } => {
                write!(f, "cannot read {}: {reason}", path.display())
            }
            Self::WouldLose {
                folder,
                runs,
                scenario,
                command,
            } => write!(
                f,
                "{} holds {runs} {} of another sweep, of \"{scenario}\" by `{command}`, which this \
                 sweep does not have; expected the scenario, the overrides, the seeds, the files and the version \
                 of Comity that made them, or a new path",
                folder.display(),
                if *runs == 1 { "run" } else { "runs" }
            ),
            Self::Write(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Write(error) => Some(error),
            _ => None,
        }
    }
}
