//! A listener's reply to a caller that it refuses.
//!
//! A caller that has proved nothing learns nothing: its Answer has no ticket, and a message that is
//! the same for all of them. Nothing protects it, so a caller believes it only when no
//! genuine answer follows. A caller that has proved itself learns the reason in message 4.

/// The message of an Answer that refuses.
pub(super) const NOT_ACCEPTED: [u8; 1] = [1];

/// Why a listener does not take a caller that has proved itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Refused {
    /// There are as many connections as the listener takes.
    Busy = 1,
    /// The transport parameters were not accepted.
    Parameters = 2,
}

impl Refused {
    pub(super) const fn from_wire(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Busy),
            2 => Some(Self::Parameters),
            _ => None,
        }
    }
}
