//! Reasons for which the kernel has no Libra.

use std::io;
use std::path::PathBuf;

/// Why Libra cannot be loaded, read or removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The host lacks something.
    #[error("the kernel cannot run Libra here: {}", .0.join("; "))]
    Missing(Vec<String>),
    /// Libra is loaded already.
    #[error("libra is loaded already; `comity kernel unload libra` removes it")]
    Loaded,
    /// Libra is not loaded.
    #[error("libra is not loaded; `comity kernel load libra` loads it")]
    NotLoaded,
    /// A parameter is out of range.
    #[error("{0}")]
    Parameters(String),
    /// Somebody else's controller has the name.
    #[error("the kernel has a controller called libra that `comity kernel load` did not register")]
    Registered,
    /// The kernel or libbpf refused.
    #[error("the kernel refused to {purpose}: {reason}")]
    Kernel {
        /// What was requested.
        purpose: String,
        /// The message, with the verifier's last lines.
        reason: String,
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
    /// The kernel's program has another form than this one reads.
    #[error(
        "libra was loaded by another version of comity ({0}); unload it with that version, or load it again"
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
