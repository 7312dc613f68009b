//! What a listener tells a caller that it does not take.
//!
//! A refusal is an Answer whose source connection is 0. Nothing protects it, so a caller believes
//! it only when no genuine answer follows. It tells no more than silence would: whoever holds a
//! wrong passphrase, a key that is not on the list, or sends noise, gets the same one.

use super::{ConnectionId, Pattern};

/// The connection id that nobody chooses: the source of an Answer that refuses.
pub(super) const NOBODY: ConnectionId = ConnectionId::new(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The first message does not prove what it should.
    NotAccepted,
    /// The listener wants this pattern.
    OtherPattern(Pattern),
    /// There are as many connections as the listener takes.
    Busy,
    /// The transport parameters were not accepted.
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
