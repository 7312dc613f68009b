//! What a connection tells its owner.

use alloc::string::String;
use core::fmt;

use comity_units::{PacketNumber, Rate};

use crate::timeline::{Outcome, inbox};
use crate::wire::{CloseCode, DecodeError};

/// What the application may send, in bytes of sections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// What an encoder should be set to: it all arrives, as far as this end knows.
    pub rate: Rate,
    /// The rate up to which a sender that sheds should submit sections. The connection drops the
    /// least important sections that do not fit. No less than `rate`.
    pub offer: Rate,
}

/// What happened, for the owner of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection is over. Always the last event.
    Closed(CloseReason),
    /// What became of a section of this end.
    Outcome(Outcome),
    /// What the application may send has changed.
    TargetBitrate(Target),
    /// It was found out how large packets may be on the path, and that is not what it was: at
    /// first, [`Config::payload`](super::Config::payload).
    PathSize {
        /// The protected payload of a full packet from now on, in bytes.
        payload: u32,
        /// The most that it may be.
        most: u32,
    },
}

/// A packet that was declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// Its number.
    pub number: PacketNumber,
    /// Its protected payload in bytes; 0 for one that elicited no ACK.
    pub payload: u32,
    /// Whether a timer declared the loss, rather than the acknowledgement of later packets.
    pub by_delay: bool,
}

/// The two frames with which an end proves that it receives at an address. Who owns the connection,
/// and knows addresses, asks and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathFrame {
    /// Asks for the same 8 bytes.
    Challenge([u8; 8]),
    /// Gives them.
    Response([u8; 8]),
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Nothing came from the peer for the idle timeout.
    Idle,
    /// This end closed it.
    Local {
        /// The code for the peer.
        code: CloseCode,
        /// The reason for the peer, in words.
        reason: String,
    },
    /// The peer closed it.
    Peer {
        /// The code that it gave.
        code: CloseCode,
        /// Its words.
        reason: String,
    },
    /// The peer broke the rules.
    Violation(Violation),
}

/// What a peer must not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// It acknowledged a packet that never left.
    AcknowledgedUnsent {
        /// The packet's number.
        number: PacketNumber,
    },
    /// It acknowledged packets that it had not got: it does not know their tokens.
    AcknowledgedUnseen {
        /// The largest number that it acknowledged.
        number: PacketNumber,
    },
    /// Its report of what arrived contradicts its acknowledgements.
    FalseReport,
    /// A payload cannot be read.
    Malformed(DecodeError),
    /// Sections contradict each other or exceed the limits.
    Sections(inbox::Violation),
}

impl Violation {
    /// Whether the peer said of what arrived what it knew to be false, or could not know.
    pub const fn is_false_feedback(&self) -> bool {
        matches!(
            self,
            Self::AcknowledgedUnsent { .. } | Self::AcknowledgedUnseen { .. } | Self::FalseReport
        )
    }

    /// The code for the peer.
    pub const fn code(&self) -> CloseCode {
        match self {
            Self::AcknowledgedUnsent { .. }
            | Self::AcknowledgedUnseen { .. }
            | Self::FalseReport => CloseCode::OPTIMISTIC_ACK,
            Self::Malformed(error) => error.code(),
            Self::Sections(
                inbox::Violation::TooManyBytes { .. }
                | inbox::Violation::TooManyFragments { .. }
                | inbox::Violation::TooManyRecords { .. },
            ) => CloseCode::FLOW_CONTROL,
            Self::Sections(
                inbox::Violation::TooManySections { .. } | inbox::Violation::TooManyStreams { .. },
            ) => CloseCode::SECTION_LIMIT,
            Self::Sections(_) => CloseCode::SECTION_STATE,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AcknowledgedUnsent { number } => write!(
                f,
                "the peer acknowledged packet {number}, which was never sent"
            ),
            Self::AcknowledgedUnseen { number } => write!(
                f,
                "the peer acknowledged packets up to {number} that it had not received"
            ),
            Self::FalseReport => {
                f.write_str("the peer's report of what arrived contradicts its acknowledgements")
            }
            Self::Malformed(error) => write!(f, "the peer sent what cannot be read: {error}"),
            Self::Sections(violation) => violation.fmt(f),
        }
    }
}

impl core::error::Error for Violation {}
