//! The configuration of a call, and its errors.

use std::net::SocketAddr;

use comity_transport::wire::limits::{MAX_PARAMETERS, VERSION};
use comity_units::Span;
use thiserror::Error;

use super::protection::{Cipher, KeyLimits};
use super::{CallerCredentials, PublicKey};
use crate::key_log::KeyLog;

/// The configuration of a caller.
#[derive(Clone, Debug)]
pub struct CallerConfig {
    /// The caller's credentials, and how it recognises the listener.
    pub credentials: CallerCredentials,
    /// The transport's parameters, at most [`MAX_PARAMETERS`] bytes.
    pub parameters: Vec<u8>,
    /// The cipher that is fast on this machine.
    pub cipher: Cipher,
    /// When keys change.
    pub key_limits: KeyLimits,
    /// The caller gives up after this time without an answer.
    pub timeout: Span,
    /// The first retransmission timeout of a message. Each further timeout is 1.5 times as long.
    pub first_resend: Span,
    /// The maximum retransmission timeout.
    pub longest_resend: Span,
    /// Where the secrets of connections are written; nowhere by default.
    pub key_log: Option<KeyLog>,
}

/// The minimum retransmission timeout of a message. An answer within this time belongs to the first
/// packet, and so measures the round trip.
pub(super) const MIN_RESEND: Span = Span::from_millis(250);

/// The default time without an answer after which a caller gives up.
pub(crate) const CALL_TIMEOUT: Span = Span::from_secs(3);

impl CallerConfig {
    /// Gives up after 3 s; retransmits after 250 ms, then 375 ms, then every 500 ms.
    pub fn new(credentials: CallerCredentials, parameters: Vec<u8>) -> Self {
        Self {
            credentials,
            parameters,
            cipher: Cipher::of_this_machine(),
            key_limits: KeyLimits::default(),
            timeout: CALL_TIMEOUT,
            first_resend: MIN_RESEND,
            longest_resend: Span::from_millis(500),
            key_log: None,
        }
    }
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CallError {
    /// No answer arrived that the listener could have sent.
    #[error(
        "{address}: no answer within {within}; expected a listener there, and UDP to pass in both directions"
    )]
    NoAnswer {
        /// The called address.
        address: SocketAddr,
        /// The time limit.
        within: Span,
    },
    /// The call was refused, as by a listener with another passphrase or without one.
    #[error(
        "{address}: refused the call, as with a wrong passphrase; or the listener expects a key or no protection, \
         or somebody on the path forged the refusal"
    )]
    Passphrase {
        /// The called address.
        address: SocketAddr,
    },
    /// The call was refused, as by a listener with another key or without one.
    #[error(
        "{address}: refused the call, as with a wrong key; or the listener expects a passphrase or no protection, \
         or somebody on the path forged the refusal"
    )]
    SharedKey {
        /// The called address.
        address: SocketAddr,
    },
    /// The listener does not accept this caller's key, or has another key than the expected one.
    #[error(
        "{address}: refused the call; expected a listener with the key {listener} and with {own} on its list, \
         unless somebody on the path forged the refusal"
    )]
    StaticKey {
        /// The called address.
        address: SocketAddr,
        /// This caller's key.
        own: PublicKey,
        /// The expected key of the listener.
        listener: PublicKey,
    },
    /// The listener does not accept unprotected connections.
    #[error(
        "{address}: refused the call; expected a passphrase or a key, because the listener has one, \
         unless somebody on the path forged the refusal"
    )]
    Refused {
        /// The called address.
        address: SocketAddr,
    },
    /// The listener supports only other versions.
    #[error(
        "{address}: does not support protocol version {VERSION}; expected version {theirs}, \
         unless somebody on the path forged the answer"
    )]
    Version {
        /// The called address.
        address: SocketAddr,
        /// The highest version that it supports.
        theirs: u32,
    },
    /// The listener has no room for more connections.
    #[error("{address}: has reached its limit of connections")]
    Busy {
        /// The called address.
        address: SocketAddr,
    },
    /// One end does not understand or accept the other's transport parameters.
    #[error("{address}: one end did not accept the other's transport parameters")]
    Parameters {
        /// The called address.
        address: SocketAddr,
    },
    /// The listener's stream is not the requested one, or has no name.
    #[error("{address}: {}", other_stream(.requested, .own))]
    Stream {
        /// The called address.
        address: SocketAddr,
        /// The stream that this end requested.
        requested: String,
        /// The stream of the listener; empty if it has no name.
        own: String,
    },
    /// The parameters in the configuration are too long.
    #[error("parameters: {0} bytes; expected at most {MAX_PARAMETERS}")]
    ParametersLong(usize),
}

impl CallError {
    /// Whether the listener proved itself before it reported the error, or the error is local.
    /// Anybody on the path can cause the other errors.
    pub const fn is_proven(&self) -> bool {
        match self {
            Self::Busy { .. }
            | Self::Parameters { .. }
            | Self::Stream { .. }
            | Self::ParametersLong(_) => true,
            Self::NoAnswer { .. }
            | Self::Passphrase { .. }
            | Self::SharedKey { .. }
            | Self::StaticKey { .. }
            | Self::Refused { .. }
            | Self::Version { .. } => false,
        }
    }
}

fn other_stream(requested: &str, own: &str) -> String {
    match own {
        "" => format!("has no stream {requested:?}; it has no streamid"),
        own => format!("has no stream {requested:?}; its streamid is {own:?}"),
    }
}
