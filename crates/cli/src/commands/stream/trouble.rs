//! What ends a verb before its time.

use std::fmt;
use std::io;
use std::path::Path;

use comity::session::CallError;
use comity::{BindError, ConnectError};

use crate::commands::Failure;

/// What went wrong, in words that say what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) failure: Failure,
    pub(crate) message: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Trouble {
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self {
            failure: Failure::Failed,
            message: message.into(),
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            failure: Failure::Usage,
            message: message.into(),
        }
    }

    pub(crate) fn unconnected(message: impl Into<String>) -> Self {
        Self {
            failure: Failure::Unconnected,
            message: message.into(),
        }
    }

    /// A file of the user's could not be opened: its name is wrong, or what it is.
    pub(crate) fn open(path: &Path, error: &io::Error) -> Self {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let hint = match (error.kind(), folder) {
            (io::ErrorKind::NotFound, Some(folder)) if !folder.exists() => {
                format!("; there is no folder {}", folder.display())
            }
            (io::ErrorKind::NotFound, _) => "; check its name".into(),
            (io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem, _) => {
                "; this user may not: see ls -ld of it and of its folder, or take another place"
                    .into()
            }
            (io::ErrorKind::IsADirectory, _) => "; name a file in it".into(),
            _ => String::new(),
        };
        Self::unopened(format!("cannot open {}: {error}{hint}", path.display()))
    }

    /// A file cannot be used as it is.
    pub(crate) fn unopened(message: impl Into<String>) -> Self {
        Self {
            failure: Failure::Unopened,
            message: message.into(),
        }
    }

    /// Something was not written.
    pub(crate) fn write(place: &str, error: &io::Error) -> Self {
        Self::failed(match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => format!(
                "cannot write on to {place}: {error}; what was written is kept. Make room, or write to another disk"
            ),
            _ => format!("cannot write on to {place}: {error}; what was written is kept"),
        })
    }

    /// An address to listen on is not to be had.
    pub(crate) fn taken(message: impl Into<String>) -> Self {
        Self {
            failure: Failure::Taken,
            message: message.into(),
        }
    }

    pub(crate) fn bind(error: &BindError) -> Self {
        match error {
            BindError::InUse { address } => Self::taken(format!(
                "{error}; choose another, or see who has it with: ss -lunp 'sport = :{}'",
                address.port()
            )),
            BindError::NotHere { .. } => Self::taken(format!(
                "{error}; leave the host out to listen on all of its addresses, or see them with: ip addr"
            )),
            BindError::NotPermitted { .. } => Self::taken(error.to_string()),
            BindError::Config(_) => Self::usage(error.to_string()),
            _ => Self::failed(error.to_string()),
        }
    }

    pub(crate) fn connect(error: &ConnectError) -> Self {
        let hint = match error {
            ConnectError::Call(CallError::NoAnswer { .. }) => {
                "; is the listener running, and does a firewall let UDP through? --reconnect always keeps calling"
            }
            ConnectError::Unreachable { .. } => {
                "; check host and port, and that the listener is running. --reconnect always keeps calling"
            }
            ConnectError::Call(CallError::Passphrase { .. }) => {
                "; give both ends the same passphrase=.."
            }
            ConnectError::Call(CallError::StaticKey { .. }) => {
                "; put this key on the listener's allow=.. list, and the listener's into peerkey=.."
            }
            ConnectError::Call(CallError::Busy { .. }) => {
                ": it serves another caller. --reconnect always keeps calling until that one is done"
            }
            ConnectError::Call(CallError::Pattern { .. }) => {
                "; both ends need the same kind: a passphrase, keys, or --insecure"
            }
            ConnectError::Bind(error) => return Self::bind(error),
            ConnectError::Config(_) => return Self::usage(error.to_string()),
            _ => "",
        };
        Self {
            failure: match error {
                ConnectError::Call(
                    CallError::Passphrase { .. }
                    | CallError::StaticKey { .. }
                    | CallError::Pattern { .. },
                ) => Failure::Refused,
                _ => Failure::Unconnected,
            },
            message: format!("{error}{hint}"),
        }
    }
}

/// Whether calling again could help.
pub(crate) fn may_pass(error: &ConnectError) -> bool {
    match error {
        ConnectError::Call(error) => {
            matches!(error, CallError::NoAnswer { .. } | CallError::Busy { .. })
        }
        ConnectError::Unreachable { .. } | ConnectError::Closed(_) => true,
        _ => false,
    }
}
