//! Errors. Each message contains the setting or object, its value and what was expected.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use comity_congestion::table::{ParameterError, UnknownController};
use comity_transport::datagram::Violation;
use comity_transport::timeline::outbox::ArgumentError;
use comity_transport::wire::CloseCode;
use thiserror::Error;

use crate::printable::Printable;
use crate::session::{CallError, CredentialError};
use crate::uri::error::UriError;

/// Why a configuration is invalid.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A text is not a `comity://` URI.
    #[error(transparent)]
    Uri(#[from] UriError),
    /// A setting has an invalid value.
    #[error("{setting}: is {found}; expected {expected}")]
    Value {
        /// The setting, as in [`Settings`](crate::Settings).
        setting: &'static str,
        /// The value that was set.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// A file of keys or with a passphrase cannot be read.
    #[error("cannot open {}: {reason}", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// An environment variable holds no passphrase.
    #[error("environment variable {name}: {problem}")]
    Environment {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// A file holds no valid key or passphrase.
    #[error("{}{problem}", .path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// What is wrong, and in which line.
        problem: String,
    },
    /// Neither a passphrase nor a key is set, and the configuration does not allow an insecure
    /// connection.
    #[error(
        "credentials: none set; expected a passphrase, a pre-shared key or a static key, or an explicit insecure"
    )]
    NoCredentials,
    /// More than one kind of credentials is set.
    #[error("credentials: both {first} and {second} are set; expected only one of them")]
    TwoCredentials {
        /// One of them.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A passphrase or a key is invalid.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// A caller with a static key lacks the listener's public key, or a listener with a static key
    /// the list of accepted callers.
    #[error("static key: {missing} is missing; it is needed to {purpose}")]
    StaticKeyIncomplete {
        /// What is missing.
        missing: &'static str,
        /// What it is for.
        purpose: &'static str,
    },
    /// There is no such controller.
    #[error("cc: {0}")]
    UnknownController(#[from] UnknownController),
    /// A parameter of the controller is invalid.
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
        /// The maximum length in bytes.
        max: usize,
    },
}

/// Why an endpoint could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// Another program uses the port.
    #[error("{address} is in use; expected a port that no other program listens on")]
    InUse {
        /// The requested address.
        address: SocketAddr,
    },
    /// The address does not belong to this host.
    #[error("{address} is not an address of this host")]
    NotHere {
        /// The requested address.
        address: SocketAddr,
    },
    /// The port is reserved for privileged programs.
    #[error("{address}: this user may not open this port; expected 1024 or above")]
    NotPermitted {
        /// The requested address.
        address: SocketAddr,
    },
    /// The configuration does not suit a listening endpoint.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system refused for another reason.
    #[error("{address}: {purpose}: {reason}")]
    System {
        /// The requested address.
        address: SocketAddr,
        /// The step that failed.
        purpose: &'static str,
        /// The system's error.
        reason: io::Error,
    },
}

/// Why a connection could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The call failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The network reports that it cannot reach the address, or that nobody listens there.
    #[error("{address}: cannot be reached: {reason}")]
    Unreachable {
        /// The called address.
        address: SocketAddr,
        /// The system's error.
        reason: io::Error,
    },
    /// The endpoint for the call could not be opened.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The configuration does not suit a call.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The connection was closed before it could be used.
    #[error("the connection was closed before it was established: {0}")]
    Closed(CloseReason),
    /// The endpoint was closed before the call ended.
    #[error("the endpoint was closed")]
    EndpointClosed,
}

/// Why a connection does not accept a section, a skipped number or the end of a stream.
///
/// [`Argument`](Self::Argument) and [`Finishing`](Self::Finishing) are due to the caller,
/// [`Full`](Self::Full) to the buffers of both ends, and [`Closed`](Self::Closed) to the peer, the
/// path or this end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The call is invalid.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// The send buffer has no room now, or the endpoint has no memory
    /// ([`max_memory`](crate::ConfigBuilder::max_memory)). Only
    /// [`try_send`](crate::Connection::try_send) returns it.
    #[error(
        "send buffer: {held_bytes} bytes in {held_sections} sections, or those of other connections, leave no room for {length} more bytes; wait until they drain"
    )]
    Full {
        /// The bytes in the send buffer.
        held_bytes: u64,
        /// The sections in the send buffer.
        held_sections: u32,
        /// The length of the section.
        length: usize,
    },
    /// The connection is being finished: nothing more is accepted.
    #[error("the connection is finishing; open another one to send more")]
    Finishing,
    /// The connection is closed.
    #[error("the connection is closed: {0}")]
    Closed(CloseReason),
}

/// Why a connection is closed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// No packet arrived from the peer within the idle timeout.
    #[error("no packet from the peer for {} ms", .after.as_millis())]
    Idle {
        /// The idle timeout.
        after: Duration,
    },
    /// This end closed the connection.
    #[error("closed by this end: {}", said(*.code, .reason))]
    Local {
        /// The code that this end sent.
        code: CloseCode,
        /// The reason that this end sent.
        reason: String,
    },
    /// The peer closed the connection.
    #[error("closed by the peer: {}", said(*.code, .reason))]
    Peer {
        /// The peer's code.
        code: CloseCode,
        /// The peer's reason.
        reason: String,
    },
    /// The peer violated the protocol.
    #[error("closed because {0}")]
    Violation(Violation),
    /// The session ended: its keys became unusable, one of the ends was restarted, or this end had
    /// an internal error.
    #[error("{0}")]
    Session(crate::session::Closed),
    /// The endpoint's thread has ended.
    #[error("the endpoint was shut down")]
    EndpointClosed,
}

impl CloseReason {
    /// Whether one of the ends closed the connection without an error, with [`CloseCode::DONE`].
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
        format!("{meaning} ({})", Printable(reason))
    }
}
