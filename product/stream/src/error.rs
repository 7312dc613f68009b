//! Why a relay ends with an error.

use std::io;
use std::net::SocketAddr;

use comity::causes::CallError;
use comity::uri::Host;
use comity::{BindError, CloseReason, ConnectError};

/// Why a relay, a dialer, or one of a relay's ends gave up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A socket to listen on cannot be opened.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A host has no address.
    #[error("{host} has no IP address")]
    NoAddress {
        /// The host.
        host: Host,
    },
    /// The address of a host cannot be looked up.
    #[error("cannot look up {host}: {reason}")]
    LookUp {
        /// The host.
        host: Host,
        /// The system's error.
        reason: io::Error,
    },
    /// A call failed.
    #[error("{error}")]
    Call {
        /// The address that was called.
        address: SocketAddr,
        /// Why it failed.
        error: Box<ConnectError>,
    },
    /// A connection was lost, and the policy is not to redial.
    #[error("the connection was lost: {0}")]
    Lost(CloseReason),
    /// A connection was lost while the last sections were on their way.
    #[error("the connection to {peer} was lost before all sections had arrived: {end}")]
    Unfinished {
        /// The receiver.
        peer: SocketAddr,
        /// Why the connection ended.
        end: CloseReason,
    },
    /// A receiver did not confirm the end in time, so the last sections may not have arrived.
    #[error("{peer} did not confirm the end in time; {in_doubt} sections may not have arrived")]
    Unconfirmed {
        /// The receiver.
        peer: SocketAddr,
        /// The sections that it has not confirmed.
        in_doubt: u64,
    },
    /// The receivers confirmed the end, but no section arrived.
    #[error("nothing arrived: none of {submitted} sections was confirmed by a receiver")]
    NothingArrived {
        /// The sections that were submitted.
        submitted: u64,
    },
    /// The source ended while a lost connection was being redialled.
    #[error("the connection was lost and not re-established before the input ended")]
    NotRedialled,
    /// The source ended before any peer was connected.
    #[error("the input ended before a connection was established")]
    NeverConnected,
    /// The relay was stopped before a listener answered its call.
    #[error("stopped before a listener answered the call")]
    Unanswered,
    /// The endpoint of a listener was closed.
    #[error("the endpoint was closed")]
    EndpointClosed,
    /// A task of the runtime failed.
    #[error("a task ended early: {0}")]
    Task(#[from] tokio::task::JoinError),
    /// A source or a sink of the host failed.
    #[error(transparent)]
    Host(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// The error of a host's own source or sink.
    pub fn host(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Host(error.into())
    }

    /// The reason for the peer. It contains neither paths of this host nor errors of its system.
    pub(crate) const fn for_peer(&self) -> &'static str {
        match self {
            Self::Host(_) | Self::Task(_) => "the output failed",
            _ if self.is_unconnected() => "the next hop is not connected",
            _ => "the relay failed",
        }
    }

    /// Whether another call could succeed. A refusal that is not proven may be forged.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::NoAddress { .. } | Self::LookUp { .. } => true,
            Self::Call { error, .. } => match &**error {
                ConnectError::Call(error) => {
                    !error.is_proven() || matches!(error, CallError::Busy { .. })
                }
                ConnectError::Unreachable { .. } | ConnectError::Closed(_) => true,
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether the called host reported that nothing listens at the port.
    pub(crate) fn is_refused_port(&self) -> bool {
        let Self::Call { error, .. } = self else {
            return false;
        };
        matches!(&**error, ConnectError::Unreachable { reason, .. }
            if reason.kind() == io::ErrorKind::ConnectionRefused)
    }

    /// Whether the connection was lost, or there was none.
    pub const fn is_unconnected(&self) -> bool {
        matches!(
            self,
            Self::NoAddress { .. }
                | Self::LookUp { .. }
                | Self::Lost(_)
                | Self::Unfinished { .. }
                | Self::Unconfirmed { .. }
                | Self::NothingArrived { .. }
                | Self::NotRedialled
                | Self::NeverConnected
                | Self::Unanswered
        )
    }
}
