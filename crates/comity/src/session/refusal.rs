//! A listener's reply to a caller that it refuses.
//!
//! A refusal is an Answer whose source connection is 0. Nothing protects it, so a caller believes
//! it only if no genuine answer follows. It reveals no more than silence would: a wrong passphrase,
//! an unlisted key and noise get the same reply.

use super::{ConnectionId, Pattern};

/// The connection id that no end chooses: the source of an Answer that refuses.
pub(super) const NOBODY: ConnectionId = ConnectionId::new(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The first message does not prove the credentials.
    NotAccepted,
    /// The listener requires this pattern.
    OtherPattern(Pattern),
    /// The listener has no room for more connections.
    Busy,
    /// The listener does not accept the transport parameters.
    Parameters,
}

impl Reason {
    pub(super) fn write(self) -> Vec<u8> {
        match self {
            Self::NotAccepted => vec![1],
            Self::OtherPattern(pattern) => vec![2, pattern as u8],
            Self::Busy => vec![3],
            Self::Parameters => vec![4],
        }
    }

    pub(super) fn read(message: &[u8]) -> Option<Self> {
        match *message {
            [1] => Some(Self::NotAccepted),
            [2, 0] => Some(Self::OtherPattern(Pattern::Insecure)),
            [2, 1] => Some(Self::OtherPattern(Pattern::NNpsk0)),
            [2, 2] => Some(Self::OtherPattern(Pattern::IK)),
            [3] => Some(Self::Busy),
            [4] => Some(Self::Parameters),
            _ => None,
        }
    }
}
