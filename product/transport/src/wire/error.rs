//! Decoding and encoding errors, and close codes.

use core::error::Error;
use core::fmt;

use super::kinds::{FrameKind, PacketKind};

/// Which part of a packet a field belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The datagram as a whole.
    Datagram,
    /// The unprotected fields of a packet of this kind.
    Packet(PacketKind),
    /// The protected payload as a whole.
    Payload,
    /// A frame inside the payload.
    Frame(FrameKind),
    /// The transport parameters.
    Parameters,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Datagram => f.write_str("datagram"),
            Self::Packet(kind) => write!(f, "{kind} packet"),
            Self::Payload => f.write_str("payload"),
            Self::Frame(kind) => write!(f, "{kind} frame"),
            Self::Parameters => f.write_str("transport parameters"),
        }
    }
}

/// The fault of a field: the value found and the value expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// An identifier does not exceed its predecessor.
    NotAscending {
        /// The identifier.
        value: u64,
        /// The one before it.
        previous: u64,
    },
    /// Text is not UTF-8.
    NotUtf8 {
        /// The length of its valid part in bytes.
        valid_up_to: usize,
    },
    /// A number is out of range.
    OutOfRange {
        /// The number.
        value: u64,
        /// The minimum.
        least: u64,
        /// The maximum.
        most: u64,
    },
    /// Bytes remain after the end.
    Trailing {
        /// How many.
        count: usize,
    },
    /// The bytes end inside a field.
    Truncated {
        /// How many bytes the field has.
        needed: usize,
        /// The number of bytes.
        available: usize,
    },
    /// A number has no assigned meaning.
    Unknown {
        /// The number.
        value: u64,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAscending { value, previous } => {
                write!(f, "found {value}, expected more than {previous}")
            }
            Self::NotUtf8 { valid_up_to } => {
                write!(
                    f,
                    "found a byte that is not UTF-8 at {valid_up_to}, expected text"
                )
            }
            Self::OutOfRange { value, least, most } if least == most => {
                write!(f, "found {value}, expected {least}")
            }
            Self::OutOfRange { value, least, most } => {
                write!(f, "found {value}, expected {least} to {most}")
            }
            Self::Trailing { count } => {
                write!(f, "found {count} bytes after the end, expected none")
            }
            Self::Truncated { needed, available } => {
                write!(f, "found {available} bytes, expected {needed}")
            }
            Self::Unknown { value } => write!(f, "found {value:#x}, expected a known value"),
        }
    }
}

/// Why bytes are not a valid packet, payload or list of transport parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The offset of the field in bytes from the start of the input: the datagram, the payload (its
    /// departure included) or the list of parameters.
    pub offset: usize,
    /// The part that contains the field.
    pub part: Part,
    /// The field.
    pub field: &'static str,
    /// The fault.
    pub problem: Problem,
}

impl DecodeError {
    /// The code for closing the connection because of this error.
    ///
    /// Errors in a [`Part::Datagram`] or [`Part::Packet`] close nothing. Data that is not
    /// authenticated yet may come from anybody and is dropped.
    #[must_use]
    pub const fn code(&self) -> CloseCode {
        match (self.part, self.problem) {
            (Part::Parameters, _) => CloseCode::TRANSPORT_PARAMETER,
            (Part::Payload, Problem::Unknown { .. }) => CloseCode::UNKNOWN_FRAME,
            _ => CloseCode::FRAME_ENCODING,
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            offset,
            part,
            field,
            problem,
        } = self;
        write!(f, "byte {offset}, {part}, {field}: {problem}")
    }
}

impl Error for DecodeError {}

/// Why a value is not written: no reader would accept it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodeError {
    /// The part that contains the field.
    pub part: Part,
    /// The field.
    pub field: &'static str,
    /// The fault.
    pub problem: Problem,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}: {}", self.part, self.field, self.problem)
    }
}

impl Error for EncodeError {}

/// The reason in a Close frame.
///
/// Codes from [`CloseCode::APPLICATION`] on belong to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CloseCode(u64);

impl CloseCode {
    /// The application is done, without an error.
    pub const DONE: Self = Self(0x00);
    /// The closing peer failed.
    pub const INTERNAL: Self = Self(0x01);
    /// A frame is truncated, or a value in it is out of range.
    pub const FRAME_ENCODING: Self = Self(0x02);
    /// A frame of unknown type.
    pub const UNKNOWN_FRAME: Self = Self(0x03);
    /// A transport parameter is malformed, out of range or duplicate.
    pub const TRANSPORT_PARAMETER: Self = Self(0x04);
    /// More section bytes than the credit allows. Reserved: a receiver without room leaves a packet
    /// unacknowledged instead, because its Credit frame may have been lost.
    pub const FLOW_CONTROL: Self = Self(0x05);
    /// More open sections than allowed.
    pub const SECTION_LIMIT: Self = Self(0x06);
    /// Frames contradict each other about a section or a stream.
    pub const SECTION_STATE: Self = Self(0x07);
    /// An acknowledgement of a packet that was never sent, or did not arrive.
    pub const OPTIMISTIC_ACK: Self = Self(0x08);
    /// Any other breach of the protocol.
    pub const PROTOCOL: Self = Self(0x09);
    /// The handshake or the protection failed, provably because of the peer.
    pub const CRYPTO: Self = Self(0x0a);
    /// The listener refuses this connection.
    pub const REFUSED: Self = Self(0x0b);
    /// The endpoint is shutting down.
    pub const SHUTDOWN: Self = Self(0x0c);
    /// The first code that belongs to the application.
    pub const APPLICATION: Self = Self(0x100);

    /// The code with this number.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The meaning of the code in words; `None` for codes unknown to this version.
    #[must_use]
    pub const fn meaning(self) -> Option<&'static str> {
        Some(match self {
            Self::DONE => "done",
            Self::INTERNAL => "internal error",
            Self::FRAME_ENCODING => "malformed frame",
            Self::UNKNOWN_FRAME => "unknown frame",
            Self::TRANSPORT_PARAMETER => "bad transport parameter",
            Self::FLOW_CONTROL => "more bytes than the credit allows",
            Self::SECTION_LIMIT => "more open sections than allowed",
            Self::SECTION_STATE => "contradictory sections",
            Self::OPTIMISTIC_ACK => {
                "acknowledgement of a packet that was never sent, or did not arrive"
            }
            Self::PROTOCOL => "breach of the protocol",
            Self::CRYPTO => "handshake or protection failed",
            Self::REFUSED => "refused",
            Self::SHUTDOWN => "shutting down",
            Self(value) if value >= Self::APPLICATION.0 => "closed by the application",
            Self(_) => return None,
        })
    }
}

impl fmt::Display for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.meaning() {
            Some(meaning) => write!(f, "{meaning} ({:#x})", self.0),
            None => write!(f, "unknown code {:#x}", self.0),
        }
    }
}
