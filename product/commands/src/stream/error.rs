//! The errors that end `send`, `recv` and `relay`.

use std::io;
use std::path::Path;

use comity::causes::CallError;
use comity::{BindError, ConnectError};

use crate::mtu::Mtu;
use crate::{Failure, files};

/// An error with a message that says what to do next. Each variant has an exit code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A read or write failed.
    #[error("{0}")]
    Failed(String),
    /// The command line, a URI or a key file is wrong.
    #[error("{0}")]
    Usage(String),
    /// A file is unusable.
    #[error("{0}")]
    Unopened(String),
    /// An address to listen on is in use, or does not belong to this host.
    #[error("{0}")]
    Taken(String),
    /// A second request to stop ended the program at once.
    #[error(
        "interrupted again: ended at once; --gaps lists what was sent or received and is not passed on"
    )]
    Abandoned,
    /// The orderly end took too long.
    #[error(
        "interrupted, and not done within linger: --gaps lists what was sent or received and is not passed on"
    )]
    Late,
    /// A listener ended before anybody called.
    #[error("nobody called")]
    Uncalled,
    /// A connection failed, or could not be made.
    #[error("{0}{hint}", hint = hint(.0))]
    Stream(comity_stream::Error),
}

impl From<comity_stream::Error> for Error {
    fn from(error: comity_stream::Error) -> Self {
        match error {
            comity_stream::Error::Host(error) => match error.downcast() {
                Ok(own) => *own,
                Err(other) => Self::Failed(other.to_string()),
            },
            error => Self::Stream(error),
        }
    }
}

impl From<Error> for comity_stream::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Stream(error) => error,
            error => Self::host(error),
        }
    }
}

impl Error {
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    pub(crate) fn unopened(message: impl Into<String>) -> Self {
        Self::Unopened(message.into())
    }

    pub(crate) fn taken(message: impl Into<String>) -> Self {
        Self::Taken(message.into())
    }

    /// A file cannot be opened because of its name or kind.
    pub(crate) fn open(path: &Path, error: &io::Error) -> Self {
        Self::Unopened(files::unopened(path, error))
    }

    /// A write failed.
    pub(crate) fn write(target: &str, error: &io::Error) -> Self {
        let hint = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                ". Make room, or write to another disk"
            }
            _ => "",
        };
        Self::Failed(format!(
            "cannot write to {target}: {error}; the data written so far is kept{hint}"
        ))
    }

    /// The exit code.
    pub(crate) fn failure(&self) -> Failure {
        use comity_stream::Error as Stream;
        match self {
            Self::Failed(_) => Failure::Failed,
            Self::Usage(_) => Failure::Usage,
            Self::Unopened(_) => Failure::Unopened,
            Self::Taken(_) => Failure::Taken,
            Self::Abandoned | Self::Late => Failure::Interrupted,
            Self::Uncalled => Failure::Unconnected,
            Self::Stream(Stream::Bind(error)) => of_bind(error),
            Self::Stream(Stream::Call { error, .. }) => match &**error {
                ConnectError::Bind(error) => of_bind(error),
                ConnectError::Config(_) => Failure::Usage,
                ConnectError::Call(
                    CallError::Passphrase { .. }
                    | CallError::SharedKey { .. }
                    | CallError::StaticKey { .. }
                    | CallError::Stream { .. }
                    | CallError::Refused { .. },
                ) => Failure::Refused,
                _ => Failure::Unconnected,
            },
            Self::Stream(error) if error.is_unconnected() => Failure::Unconnected,
            Self::Stream(_) => Failure::Failed,
        }
    }
}

fn of_bind(error: &BindError) -> Failure {
    match error {
        BindError::InUse { .. } | BindError::NotHere { .. } | BindError::NotPermitted { .. } => {
            Failure::Taken
        }
        BindError::Config(_) => Failure::Usage,
        _ => Failure::Failed,
    }
}

/// Advice for an error of the library, as a continuation of its message.
pub(crate) fn hint(error: &comity_stream::Error) -> String {
    use comity_stream::Error as Stream;
    match error {
        Stream::Bind(error) => bind_hint(error),
        Stream::LookUp { .. } | Stream::NoAddress { .. } => "; check the name, or use the address".into(),
        Stream::Lost(_) => "; use --reconnect lost to retry".into(),
        Stream::Call { address, error } => match &**error {
            ConnectError::Bind(error) => bind_hint(error),
            ConnectError::Unreachable { .. } => {
                "; check host and port, and that the listener is running. --reconnect always keeps calling".into()
            }
            ConnectError::Call(error) => {
                let narrow = match error {
                    CallError::NoAnswer { .. } => Mtu::towards(*address).and_then(Mtu::too_small),
                    _ => None,
                };
                let hint = call_hint(error);
                match narrow {
                    None => hint.into(),
                    Some(mtu) => format!(
                        "{hint}. The route carries packets of {} bytes, but the first packets of a connection have {first}: \
                         find the interface with ip route get {address}, and set its MTU to {first} or more",
                        mtu.bytes,
                        address = address.ip(),
                        first = mtu.first(),
                    ),
                }
            }
            _ => String::new(),
        },
        _ => String::new(),
    }
}

fn bind_hint(error: &BindError) -> String {
    match error {
        BindError::InUse { address } => format!(
            "; choose another, or find its owner with: ss -lunp 'sport = :{}'",
            address.port()
        ),
        BindError::NotHere { .. } => {
            "; leave the host out to listen on all addresses, or list them with: ip addr".into()
        }
        _ => String::new(),
    }
}

fn call_hint(error: &CallError) -> &'static str {
    match error {
        CallError::NoAnswer { .. } => {
            "; is the listener running, and does a firewall let UDP through? --reconnect always keeps calling"
        }
        CallError::Passphrase { .. } | CallError::SharedKey { .. } | CallError::Refused { .. } => {
            "; give both ends the same passphrase=.., each other's public keys, or --insecure"
        }
        CallError::StaticKey { .. } => {
            "; put this key on the listener's allow=.. list, and the listener's key into peerkey=.."
        }
        CallError::Stream { own, .. } if own.is_empty() => {
            ". Give both ends the same streamid, or leave it out to get the stream that is there"
        }
        CallError::Stream { .. } => {
            ". Ask for that stream, or leave streamid out to get whatever is there"
        }
        CallError::Busy { .. } => {
            "; it serves another caller. --reconnect always keeps calling until that caller is done"
        }
        _ => "",
    }
}
