//! A listener's reply to a caller that it refuses.
//!
//! A caller that has proved nothing learns nothing: its Answer has no ticket, and the same message
//! for all reasons. That message is not protected, so a caller believes it only if no authentic
//! answer follows. A caller that has proved itself learns the reason in message 4.

use comity_transport::wire::limits::MAX_STREAM_NAME;

/// The message of an Answer that refuses a caller.
pub(super) const NOT_ACCEPTED: [u8; 1] = [1];

/// Why a listener refuses a caller that has proved itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The maximum number of connections is open.
    Busy,
    /// The transport parameters were not accepted.
    Parameters,
    /// The caller requests another stream than that of the listener. The name is empty if it has
    /// none.
    Stream { own: String },
}

impl Refused {
    /// The status of message 4, and the bytes that follow it.
    pub(super) fn to_wire(&self) -> (u8, &[u8]) {
        match self {
            Self::Busy => (1, &[]),
            Self::Parameters => (2, &[]),
            Self::Stream { own } => (3, own.as_bytes()),
        }
    }

    pub(super) fn from_wire(status: u8, rest: &[u8]) -> Option<Self> {
        match (status, rest) {
            (1, []) => Some(Self::Busy),
            (2, []) => Some(Self::Parameters),
            (3, own) if own.len() <= MAX_STREAM_NAME => {
                let own = std::str::from_utf8(own).ok()?.to_owned();
                Some(Self::Stream { own })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_reasons_round_trip_and_others_are_rejected() {
        let name = "é".repeat(MAX_STREAM_NAME / 2);
        for refused in [
            Refused::Busy,
            Refused::Parameters,
            Refused::Stream { own: String::new() },
            Refused::Stream { own: name },
        ] {
            let (status, rest) = refused.to_wire();
            assert_eq!(Refused::from_wire(status, rest), Some(refused.clone()));
        }
        let long = [b'a'; MAX_STREAM_NAME + 1];
        for (status, rest) in [
            (0, &b""[..]),
            (1, b"a"),
            (2, b"a"),
            (3, &[0xff]),
            (3, &long),
            (4, b""),
        ] {
            assert_eq!(Refused::from_wire(status, rest), None, "{status} {rest:?}");
        }
    }
}
