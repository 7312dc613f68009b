//! The kinds of packets and of frames.

use core::fmt;

/// The kinds of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PacketKind {
    /// The first packet of a connection.
    Initial = 1,
    /// The listener requires its cookie first.
    Retry = 2,
    /// The listener's half of the handshake.
    Answer = 3,
    /// Everything after the handshake.
    Data = 4,
    /// The listener does not support the version.
    VersionNegotiation = 5,
    /// The caller's proof, with its transport parameters.
    Confirm = 6,
    /// The listener's proof, with its transport parameters.
    Accept = 7,
    /// The listener has no such connection.
    Reset = 8,
}

impl PacketKind {
    /// The first byte of such a packet, without flags.
    pub(super) const fn first_byte(self) -> u8 {
        (self as u8) << 4
    }
}

impl fmt::Display for PacketKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Initial => "Initial",
            Self::Retry => "Retry",
            Self::Answer => "Answer",
            Self::Data => "Data",
            Self::VersionNegotiation => "VersionNegotiation",
            Self::Confirm => "Confirm",
            Self::Accept => "Accept",
            Self::Reset => "Reset",
        })
    }
}

/// The kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// Zero bytes.
    Padding,
    /// Requests an acknowledgement.
    Ping,
    /// Which packets arrived.
    Ack,
    /// Bytes of a section.
    Section,
    /// All sections below it are obsolete.
    Floor,
    /// The rest of a section will not arrive.
    Dropped,
    /// The limit of data in flight.
    Credit,
    /// The controller's mark on a packet.
    Tag,
    /// The meter's report to the controller.
    Feedback,
    /// The receiver's statistics.
    ReceiverReport,
    /// Requests the same bytes in a response.
    PathChallenge,
    /// The bytes of a PathChallenge.
    PathResponse,
    /// The connection ends.
    Close,
    /// A stream has no more sections.
    End,
    /// The peer's credit holds sections back.
    Blocked,
}

impl FrameKind {
    /// Whether a packet with this frame requires an acknowledgement.
    ///
    /// Other frames do not, because two idle peers would acknowledge each other's acknowledgements
    /// for ever.
    #[must_use]
    pub const fn is_ack_eliciting(self) -> bool {
        match self {
            Self::Padding
            | Self::Ack
            | Self::Tag
            | Self::Feedback
            | Self::ReceiverReport
            | Self::Close => false,
            Self::Ping
            | Self::Section
            | Self::Floor
            | Self::Dropped
            | Self::Credit
            | Self::PathChallenge
            | Self::PathResponse
            | Self::End
            | Self::Blocked => true,
        }
    }
}

impl fmt::Display for FrameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Padding => "Padding",
            Self::Ping => "Ping",
            Self::Ack => "Ack",
            Self::Section => "Section",
            Self::Floor => "Floor",
            Self::Dropped => "Drop",
            Self::Credit => "Credit",
            Self::Tag => "Tag",
            Self::Feedback => "Feedback",
            Self::ReceiverReport => "ReceiverReport",
            Self::PathChallenge => "PathChallenge",
            Self::PathResponse => "PathResponse",
            Self::Close => "Close",
            Self::End => "End",
            Self::Blocked => "Blocked",
        })
    }
}
