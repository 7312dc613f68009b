//! Why the kernel does not accept or have a controller.

use std::io;
use std::path::PathBuf;

use crate::controller::Controller;

/// Why a controller cannot be loaded, read or removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The host lacks requirements.
    #[error("the kernel cannot run {controller} here: {}", missing.join("; "))]
    Missing {
        /// The controller.
        controller: Controller,
        /// The missing requirements, each with advice.
        missing: Vec<String>,
    },
    /// The controller is loaded already.
    #[error("{0} is loaded already; `comity kernel unload {0}` removes it")]
    Loaded(Controller),
    /// The controller is not loaded.
    #[error("{0} is not loaded; `comity kernel load {0}` loads it")]
    NotLoaded(Controller),
    /// A parameter is out of range.
    #[error("{0}")]
    Parameters(String),
    /// A controller of another program has the name.
    #[error("the kernel has a controller called {0} that `comity kernel load` did not register")]
    Registered(Controller),
    /// A folder is not a cgroup of version 2.
    #[error("{} is no cgroup of version 2: {advice}", .folder.display())]
    Cgroup {
        /// The folder.
        folder: PathBuf,
        /// What was expected.
        advice: String,
    },
    /// The kernel or libbpf refused.
    #[error("the kernel refused to {purpose}: {reason}")]
    Kernel {
        /// What was requested.
        purpose: String,
        /// The message, with the verifier's last lines.
        reason: String,
    },
    /// Another user made the folder, or can change it.
    #[error(
        "{} is {found}; expected a folder of root that nobody else can write to. Find out who made it, and remove it",
        .path.display()
    )]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// What was found there.
        found: String,
    },
    /// A file of the kernel cannot be used.
    #[error("cannot {purpose} {}: {reason}", .file.display())]
    File {
        /// What was requested.
        purpose: &'static str,
        /// The file.
        file: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// The program in the kernel has a form that this version cannot read.
    #[error(
        "the controller was loaded by another version of comity ({0}); unload it with that version, or load it again"
    )]
    Form(String),
}

impl Error {
    pub(crate) fn file(
        purpose: &'static str,
        file: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let file = file.into();
        move |reason| Self::File {
            purpose,
            file,
            reason,
        }
    }
}
