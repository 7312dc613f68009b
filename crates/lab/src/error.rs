//! Why there is no lab, or no longer.

use std::io;

use comity_sim::network::NetworkError;

/// Why there is no lab, or no longer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Parts are missing.
    #[error("the lab cannot run here: {}", .0.join("; "))]
    Missing(Vec<String>),
    /// The network of the scenario cannot be built.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A setting that the lab cannot give to a flow.
    #[error("flow {flow:?}: {reason}")]
    Flow {
        /// Its name.
        flow: String,
        /// The requested value and the possible ones.
        reason: String,
    },
    /// There is no link of this name to capture at.
    #[error("there is no link {name:?} to capture at; expected one of: {known}")]
    UnknownLink {
        /// The name.
        name: String,
        /// The names of the links.
        known: String,
    },
    /// A link or a file is captured at or into twice.
    #[error("cannot capture link {link:?} into {}: expected each link and each file only once", .file.display())]
    Capture {
        /// The link.
        link: String,
        /// The file.
        file: std::path::PathBuf,
    },
    /// The system refused something.
    #[error("{purpose}: {reason}")]
    System {
        /// What it was needed for.
        purpose: String,
        /// What the system says.
        reason: io::Error,
    },
    /// A tool of the system failed.
    #[error("`{command}` failed: {message}")]
    Tool {
        /// The command.
        command: String,
        /// What it said.
        message: String,
    },
    /// The run was interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Whether the scenario or the command line is wrong, rather than the host.
    pub const fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Network(_) | Self::Flow { .. } | Self::UnknownLink { .. } | Self::Capture { .. }
        )
    }

    /// What [`io::Error`]s become that stand in the way of `purpose`.
    pub(crate) fn system<E: Into<io::Error>>(purpose: impl Into<String>) -> impl FnOnce(E) -> Self {
        let purpose = purpose.into();
        move |reason| Self::System {
            purpose,
            reason: reason.into(),
        }
    }
}
