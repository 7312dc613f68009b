//! Why a lab cannot start, or has ended.

use std::io;

use comity_sim::network::NetworkError;

/// Why a lab cannot start, or has ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The host lacks requirements.
    #[error("the lab cannot run here: {}", .0.join("; "))]
    Missing(Vec<String>),
    /// The network of the scenario cannot be built.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The lab cannot apply a setting to a flow.
    #[error("flow {flow:?}: {reason}")]
    Flow {
        /// Its name.
        flow: String,
        /// The requested value and the possible ones.
        reason: String,
    },
    /// No link has this name.
    #[error("there is no link {name:?} to capture at; expected one of: {known}")]
    UnknownLink {
        /// The name.
        name: String,
        /// The names of the links.
        known: String,
    },
    /// Two captures share a link or a file.
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
        /// Its purpose.
        purpose: String,
        /// The system's error.
        reason: io::Error,
    },
    /// A tool of the system failed.
    #[error("`{command}` failed: {message}")]
    Tool {
        /// The command.
        command: String,
        /// Its message.
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

    /// Converts [`io::Error`]s, with the purpose that failed.
    pub(crate) fn system<E: Into<io::Error>>(purpose: impl Into<String>) -> impl FnOnce(E) -> Self {
        let purpose = purpose.into();
        move |reason| Self::System {
            purpose,
            reason: reason.into(),
        }
    }
}
