//! The events of a connection for its owner.

use alloc::string::String;
use core::fmt;

use comity_units::{PacketNumber, Rate};

use crate::timeline::{Outcome, inbox};
use crate::wire::{CloseCode, DecodeError};

/// The rates at which the application should submit, in bytes of sections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The bitrate for an encoder. As far as this end knows, the path carries all of it.
    pub rate: Rate,
    /// The rate up to which a sender that sheds should submit sections, at least `rate`. The
    /// connection drops the least important sections that do not fit. `None` while nothing limits
    /// them yet: in slow start nothing is shed.
    pub offer: Option<Rate>,
}

/// An event for the owner of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection is over. Always the last event.
    Closed(CloseReason),
    /// The outcome of a section of this end.
    Outcome(Outcome),
    /// The target bitrate has changed.
    TargetBitrate(Target),
    /// The size of packets that the path carries has changed. It begins with
    /// [`Config::payload`](super::Config::payload).
    PathSize {
        /// The protected payload of a full packet from now on, in bytes.
        payload: u32,
        /// The maximum.
        most: u32,
    },
}

/// A packet that was declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// Its number.
    pub number: PacketNumber,
    /// Its protected payload in bytes; 0 if it was not ACK-eliciting.
    pub payload: u32,
    /// Whether a timer declared the loss, and not the acknowledgement of later packets.
    pub by_delay: bool,
}

/// The two frames by which an end proves that it receives packets at an address. The owner of the
/// connection knows the addresses, and sends and answers these frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathFrame {
    /// Requests the same 8 bytes.
    Challenge([u8; 8]),
    /// Returns them.
    Response([u8; 8]),
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// No packet arrived for the idle timeout.
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
        /// The peer's code.
        code: CloseCode,
        /// The peer's reason.
        reason: String,
    },
    /// The peer violated the protocol.
    Violation(Violation),
}

/// A violation of the protocol by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// It acknowledged a packet that never left.
    AcknowledgedUnsent {
        /// The packet's number.
        number: PacketNumber,
    },
    /// It acknowledged packets that it had not received: it does not know their tokens.
    AcknowledgedUnseen {
        /// The largest acknowledged number.
        number: PacketNumber,
    },
    /// A report of its meter contradicts its acknowledgements.
    FalseReport,
    /// A payload cannot be read.
    Malformed(DecodeError),
    /// Sections contradict each other or exceed the limits.
    Sections(inbox::Violation),
}

impl Violation {
    /// Whether the peer's feedback was knowingly false, or a guess.
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
