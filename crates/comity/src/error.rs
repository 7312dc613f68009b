//! What can go wrong, in words that say the place, the value and what was expected.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use comity_congestion::table::{ParameterError, UnknownController};
use comity_transport::datagram::Violation;
use comity_transport::wire::CloseCode;
use thiserror::Error;

use crate::section::{SectionId, StreamId};
use crate::session::{CallError, CredentialError};
use crate::uri::UriError;

/// Why a configuration is invalid.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A text is no `comity://` URI.
    #[error(transparent)]
    Uri(#[from] UriError),
    /// A setting has a value that it cannot have.
    #[error("{setting}: is {found}; expected {expected}")]
    Value {
        /// The setting, as in [`Settings`](crate::Settings).
        setting: &'static str,
        /// What was given.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// A file of keys cannot be read.
    #[error("cannot open {}: {reason}", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// A file holds no keys.
    #[error("{}{problem}", .path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// What is wrong, and in which line.
        problem: String,
    },
    /// Neither a passphrase nor a key was given, and nobody asked for an insecure connection.
    #[error(
        "credentials: none set; expected a passphrase, a pre-shared key or a static key, or an explicit insecure"
    )]
    NoCredentials,
    /// More than one kind of credentials was given.
    #[error("credentials: both {first} and {second} are set; expected only one of them")]
    TwoCredentials {
        /// The one.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A passphrase or a key is none.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// A static key needs the listener's public key to call, or a list of callers to listen.
    #[error("static key: {missing} is missing; it is needed to {purpose}")]
    StaticKeyIncomplete {
        /// What is missing.
        missing: &'static str,
        /// What for.
        purpose: &'static str,
    },
    /// There is no such controller.
    #[error("cc: {0}")]
    UnknownController(#[from] UnknownController),
    /// A parameter of the controller is none.
    #[error("cc={controller}: {reason}")]
    Controller {
        /// The controller.
        controller: &'static str,
        /// What is wrong.
        reason: ParameterError,
    },
    /// Texts are too long for the packet that carries them.
    #[error("{what}: {length} bytes; expected at most {max}")]
    Length {
        /// What they are.
        what: &'static str,
        /// Their length in bytes.
        length: usize,
        /// The most that they may have.
        max: usize,
    },
}

/// Why there is no endpoint.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// Another program has the port.
    #[error("{address} is in use; expected a port that no other program listens on")]
    InUse {
        /// Where the endpoint was to be.
        address: SocketAddr,
    },
    /// The address is none of this host's.
    #[error("{address} is not an address of this host")]
    NotHere {
        /// Where the endpoint was to be.
        address: SocketAddr,
    },
    /// The port is reserved for privileged programs.
    #[error("{address}: this user may not open this port; expected 1024 or above")]
    NotPermitted {
        /// Where the endpoint was to be.
        address: SocketAddr,
    },
    /// The configuration does not serve for an endpoint that listens.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system refused otherwise.
    #[error("{address}: {purpose}: {reason}")]
    System {
        /// Where the endpoint was to be.
        address: SocketAddr,
        /// What could not be done.
        purpose: &'static str,
        /// What the system says.
        reason: io::Error,
    },
}

/// Why there is no connection.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The listener or the way to it.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The network says that there is no way to the address, or nobody listens there.
    #[error("{address}: cannot be reached: {reason}")]
    Unreachable {
        /// Who was called.
        address: SocketAddr,
        /// What the system says.
        reason: io::Error,
    },
    /// The endpoint for the call could not be made.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The configuration does not serve for a call.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The connection was closed before it could be used.
    #[error("the connection was closed before it was established: {0}")]
    Closed(CloseReason),
    /// The endpoint was closed meanwhile.
    #[error("the endpoint was closed")]
    EndpointClosed,
}

/// Why a section was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// It has no bytes.
    #[error("{stream}: a section of 0 bytes was submitted; expected at least 1")]
    Empty {
        /// The stream it was meant for.
        stream: StreamId,
    },
    /// It has more bytes than a section can have, than may ever wait to be sent, or than the peer
    /// can hold.
    #[error("{stream}: a section of {length} bytes was submitted; expected at most {max}")]
    TooLong {
        /// The stream it was meant for.
        stream: StreamId,
        /// Its length in bytes.
        length: usize,
        /// The longest section that this connection carries.
        max: u64,
    },
    /// The stream is finished.
    #[error("{stream}: a section was submitted after the end of the stream")]
    StreamFinished {
        /// The stream it was meant for.
        stream: StreamId,
    },
    /// It needs itself or a later section.
    #[error("{stream}, {section}: depends on {needs}; expected an earlier section")]
    NeedsLater {
        /// The stream it was meant for.
        stream: StreamId,
        /// The number that it would have got.
        section: SectionId,
        /// What it says it needs.
        needs: SectionId,
    },
    /// There are as many streams as there may be.
    #[error("{stream}: too many streams; expected at most {max} in a connection")]
    TooManyStreams {
        /// The stream that was one too many.
        stream: StreamId,
        /// The limit.
        max: usize,
    },
    /// The connection is being finished: nothing more is accepted.
    #[error("the connection is finishing; open another one to send more")]
    Finishing,
    /// The connection is closed.
    #[error("the connection is closed: {0}")]
    Closed(CloseReason),
}

/// Why [`Connection::try_send`](crate::Connection::try_send) did not accept a section.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TrySendError {
    /// The send buffer has no room now.
    #[error(
        "send buffer: {held_bytes} bytes in {held_sections} sections leave no room for {length} more bytes; wait until it drains"
    )]
    Full {
        /// What waits, in bytes.
        held_bytes: u64,
        /// What waits, in sections.
        held_sections: u32,
        /// The length of the section.
        length: usize,
    },
    /// The section can never be sent.
    #[error(transparent)]
    Refused(#[from] SendError),
}

/// Why a stream accepts neither an end nor a skipped number.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The stream is finished already.
    #[error("{stream} is already finished")]
    Finished {
        /// The stream.
        stream: StreamId,
    },
    /// The connection has as many streams as it can have.
    #[error("{stream}: too many streams; expected at most {max} in a connection")]
    TooManyStreams {
        /// The stream that was one too many.
        stream: StreamId,
        /// The limit.
        max: usize,
    },
    /// The connection is being finished: nothing more is accepted.
    #[error("the connection is finishing; open another one to send more")]
    Finishing,
    /// The connection is closed.
    #[error("the connection is closed: {0}")]
    Closed(CloseReason),
}

impl From<StreamError> for SendError {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Finished { stream } => Self::StreamFinished { stream },
            StreamError::TooManyStreams { stream, max } => Self::TooManyStreams { stream, max },
            StreamError::Finishing => Self::Finishing,
            StreamError::Closed(reason) => Self::Closed(reason),
        }
    }
}

/// Why a connection is closed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// Nothing came from the peer any more.
    #[error("no packet from the peer for {} ms", .after.as_millis())]
    Idle {
        /// For how long.
        after: Duration,
    },
    /// This end closed it.
    #[error("closed by this end: {}", said(*.code, .reason))]
    Local {
        /// The code that the peer was told.
        code: CloseCode,
        /// What the peer was told in words.
        reason: String,
    },
    /// The peer closed it.
    #[error("closed by the peer: {}", said(*.code, .reason))]
    Peer {
        /// The code that it gave.
        code: CloseCode,
        /// Its words.
        reason: String,
    },
    /// The peer broke the rules.
    #[error("closed because {0}")]
    Violation(Violation),
    /// The keys could not be used any longer.
    #[error("{0}")]
    Keys(crate::session::Closed),
    /// The endpoint's thread is gone, with what it had.
    #[error("the endpoint was shut down")]
    EndpointClosed,
}

impl CloseReason {
    /// Whether one of the two ends was done, and nothing went wrong.
    pub fn is_clean(&self) -> bool {
        matches!(self, Self::Local { code, .. } | Self::Peer { code, .. } if *code == CloseCode::DONE)
    }
}

fn said(code: CloseCode, reason: &str) -> String {
    let meaning = code
        .meaning()
        .map_or_else(|| format!("code {:#x}", code.get()), str::to_owned);
    if reason.is_empty() {
        meaning
    } else {
        format!("{meaning} ({reason})")
    }
}
