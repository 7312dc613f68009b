//! The unprotected part of a packet.
//!
//! ```text
//! first byte: kind in the high 4 bits, flags of that kind in the low 4 bits
//!
//! Initial             0x10, version : u32, source : u64, pattern : u8,
//!                     cookie length : u8, cookie, message length : u16, message,
//!                     zeros up to MIN_INITIAL bytes at least
//! Retry               0x20, version : u32, destination : u64, cookie length : u8, cookie
//! Answer              0x30, version : u32, destination : u64, ticket length : u8, ticket, message
//! Data                0x40 + key phase, destination : u64, number : u32, sealed payload;
//!                     the flags and the number are masked
//! VersionNegotiation  0x50, destination : u64, version : u32, version : u32, ...
//! Confirm             0x60, ticket length : u8, ticket, message
//! Accept              0x70, destination : u64, message
//! Reset               0x80, source : u64, token
//! ```
//!
//! The receiver of packets chooses the connection identifier that they carry as their destination.
//! In every version, an Initial packet begins with the same 13 bytes, and a VersionNegotiation
//! packet has this format. Any of these bytes may come from anybody: packets that [`decode`]
//! refuses are dropped without a response.

use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;

use super::cursor::{Reader, Writer, within};
use super::limits::{
    DATA_HEADER, MAX_COOKIE, MAX_DATAGRAM, MAX_HANDSHAKE, MAX_TICKET, MAX_VERSIONS, MIN_INITIAL,
    RESET, RESET_TOKEN, VERSION,
};
use super::{DecodeError, EncodeError, Part, Problem};

pub use super::kinds::PacketKind;

/// Identifies a connection at the endpoint that chose it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u64);

impl ConnectionId {
    /// The identifier with this number.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectionId({self})")
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// How two peers authenticate each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Pattern {
    /// No authentication: no keys, no protection.
    Insecure = 0,
    /// Noise NNpsk0: by a shared random key.
    NNpsk0 = 1,
    /// Noise IK: by static keys; the initiator knows the listener's in advance.
    IK = 2,
    /// CPace: by a shared passphrase.
    CPace = 3,
}

impl Pattern {
    const fn from_wire(value: u8) -> Option<Self> {
        Some(match value {
            0 => Self::Insecure,
            1 => Self::NNpsk0,
            2 => Self::IK,
            3 => Self::CPace,
            _ => return None,
        })
    }
}

/// The first packet of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Initial<'a> {
    /// The connection identifier that the caller chose for its packets.
    pub source: ConnectionId,
    /// The handshake.
    pub pattern: Pattern,
    /// The cookie of the preceding Retry packet; empty in the first attempt.
    pub cookie: &'a [u8],
    /// The first message of the handshake, at most [`MAX_HANDSHAKE`] bytes; empty in the first
    /// attempt, because it depends on the cookie.
    pub message: &'a [u8],
}

/// The listener requires its cookie before it does any work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry<'a> {
    /// The source of the Initial packet.
    pub destination: ConnectionId,
    /// The cookie, not empty.
    pub cookie: &'a [u8],
}

/// The listener's half of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The source of the Initial packet.
    pub destination: ConnectionId,
    /// Data that the caller returns in the Confirm packet, at most [`MAX_TICKET`] bytes; empty if
    /// the listener refuses the caller.
    pub ticket: &'a [u8],
    /// The second message of the handshake, at least 1 and at most [`MAX_HANDSHAKE`] bytes.
    pub message: &'a [u8],
}

/// The caller's proof that it has the keys, with its transport parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirm<'a> {
    /// The ticket of the Answer, at most [`MAX_TICKET`] bytes.
    pub ticket: &'a [u8],
    /// The third message of the handshake, at most [`MAX_HANDSHAKE`] bytes.
    pub message: &'a [u8],
}

/// The listener's proof that it has the keys, with its transport parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept<'a> {
    /// The source of the Initial packet.
    pub destination: ConnectionId,
    /// The fourth message of the handshake, at least 1 and at most [`MAX_HANDSHAKE`] bytes.
    pub message: &'a [u8],
}

/// The listener has no connection with the identifier of a Data packet, for example after a
/// restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    /// The destination of the Data packet.
    pub source: ConnectionId,
    /// The token of that connection.
    pub token: [u8; RESET_TOKEN],
}

/// The header of every packet after the handshake, which the sealing authenticates.
///
/// On the wire, the flags and the number of a protected packet are masked. Until the mask is
/// removed, only the destination has a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Changes with every key update.
    pub key_phase: bool,
    /// The connection identifier that the receiver chose.
    pub destination: ConnectionId,
    /// The low half of the packet number; see [`number`](super::number).
    pub number: u32,
}

/// A decoded packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// The first packet of a connection.
    Initial(Initial<'a>),
    /// The first packet of a connection in an unsupported version, large enough for a response.
    UnknownVersion {
        /// The version.
        version: u32,
        /// The connection identifier that the caller chose for its packets.
        source: ConnectionId,
    },
    /// The listener requires its cookie first.
    Retry(Retry<'a>),
    /// The listener's half of the handshake.
    Answer(Answer<'a>),
    /// Everything after the handshake.
    Data {
        /// The header.
        header: Data,
        /// The header's bytes, which the sealing authenticates.
        associated: &'a [u8],
        /// The sealed payload, with the tag at its end. Not empty.
        sealed: &'a [u8],
    },
    /// The listener does not support the version.
    VersionNegotiation {
        /// The source of the Initial packet.
        destination: ConnectionId,
        /// The supported versions.
        versions: Versions<'a>,
    },
    /// The caller's proof.
    Confirm(Confirm<'a>),
    /// The listener's proof.
    Accept(Accept<'a>),
    /// The listener has no such connection.
    Reset(Reset),
}

/// The versions that a listener supports, in order of preference: at least one, at most
/// [`MAX_VERSIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions<'a>(&'a [u8]);

impl Versions<'_> {
    /// The versions.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| u32::from_be_bytes(*bytes))
    }
}

/// The destination of a datagram that is a Data packet, meaningless for other packets; `None` if
/// the datagram is too short for one.
#[must_use]
pub fn destination(datagram: &[u8]) -> Option<ConnectionId> {
    let bytes = datagram.get(1..)?.first_chunk()?;
    Some(ConnectionId(u64::from_be_bytes(*bytes)))
}

/// Reads a datagram.
///
/// # Errors
/// [`DecodeError`] for data that is not a packet of this version, which the caller drops. Never
/// panics.
pub fn decode(datagram: &[u8]) -> Result<Packet<'_>, DecodeError> {
    let mut input = Reader::new(datagram, Part::Datagram);
    if datagram.len() > MAX_DATAGRAM {
        let problem = Problem::OutOfRange {
            value: datagram.len() as u64,
            least: 1,
            most: MAX_DATAGRAM as u64,
        };
        return Err(input.error("size", problem));
    }
    let first = input.u8("kind")?;
    let kind = match first >> 4 {
        1 => PacketKind::Initial,
        2 => PacketKind::Retry,
        3 => PacketKind::Answer,
        4 => PacketKind::Data,
        5 => PacketKind::VersionNegotiation,
        6 => PacketKind::Confirm,
        7 => PacketKind::Accept,
        8 => PacketKind::Reset,
        value => {
            let value = u64::from(value);
            return Err(input.error_at(0, "kind", Problem::Unknown { value }));
        }
    };
    input.enter(Part::Packet(kind));
    let flags = u64::from(first & 0x0f);
    // The flags of a Data packet are masked.
    let known = if kind == PacketKind::Data { 0x0f } else { 0 };
    within(flags, 0..=known).map_err(|problem| input.error_at(0, "flags", problem))?;
    match kind {
        PacketKind::Initial => read_initial(&mut input, datagram.len()),
        PacketKind::Retry => {
            known_version(&mut input)?;
            let destination = ConnectionId(input.u64("destination")?);
            let cookie = read_cookie(&mut input, 1)?;
            input.end("end")?;
            Ok(Packet::Retry(Retry {
                destination,
                cookie,
            }))
        }
        PacketKind::Answer => {
            known_version(&mut input)?;
            let destination = ConnectionId(input.u64("destination")?);
            let length = input.u8_in("ticket length", TICKET_LENGTHS)?;
            Ok(Packet::Answer(Answer {
                destination,
                ticket: input.bytes("ticket", usize::from(length))?,
                message: last_message(&mut input, MESSAGE_LENGTHS)?,
            }))
        }
        PacketKind::Data => {
            let destination = ConnectionId(input.u64("destination")?);
            let number = input.u32("number")?;
            let header = Data {
                key_phase: first & KEY_PHASE != 0,
                destination,
                number,
            };
            match datagram.split_at_checked(DATA_HEADER) {
                Some((associated, sealed)) if !sealed.is_empty() => Ok(Packet::Data {
                    header,
                    associated,
                    sealed,
                }),
                _ => {
                    let problem = Problem::Truncated {
                        needed: 1,
                        available: 0,
                    };
                    Err(input.error("sealed payload", problem))
                }
            }
        }
        PacketKind::VersionNegotiation => {
            let destination = ConnectionId(input.u64("destination")?);
            let rest = input.rest();
            let count = rest.len().div_ceil(4);
            within(count as u64, 1..=MAX_VERSIONS as u64)
                .map_err(|problem| input.error("version count", problem))?;
            for _ in 0..count {
                input.u32("version")?;
            }
            Ok(Packet::VersionNegotiation {
                destination,
                versions: Versions(rest),
            })
        }
        PacketKind::Confirm => {
            let length = input.u8_in("ticket length", TICKET_LENGTHS)?;
            Ok(Packet::Confirm(Confirm {
                ticket: input.bytes("ticket", usize::from(length))?,
                message: last_message(&mut input, ANY_MESSAGE_LENGTHS)?,
            }))
        }
        PacketKind::Accept => Ok(Packet::Accept(Accept {
            destination: ConnectionId(input.u64("destination")?),
            message: last_message(&mut input, MESSAGE_LENGTHS)?,
        })),
        PacketKind::Reset => {
            let source = ConnectionId(input.u64("source")?);
            let mut token = [0; RESET_TOKEN];
            for (byte, read) in token.iter_mut().zip(input.bytes("token", RESET_TOKEN)?) {
                *byte = *read;
            }
            input.end("end")?;
            Ok(Packet::Reset(Reset { source, token }))
        }
    }
}

/// A handshake message that reaches to the end of the packet.
fn last_message<'a>(
    input: &mut Reader<'a>,
    lengths: RangeInclusive<u64>,
) -> Result<&'a [u8], DecodeError> {
    let length = input.rest().len();
    within(length as u64, lengths).map_err(|problem| input.error("message length", problem))?;
    input.bytes("message", length)
}

const KEY_PHASE: u8 = 1;
const MESSAGE_LENGTHS: RangeInclusive<u64> = 1..=MAX_HANDSHAKE as u64;
/// For Initial packets, whose first attempt has no message, and for Confirm packets, whose list of
/// transport parameters may be empty.
const ANY_MESSAGE_LENGTHS: RangeInclusive<u64> = 0..=MAX_HANDSHAKE as u64;
const TICKET_LENGTHS: RangeInclusive<u64> = 0..=MAX_TICKET as u64;

fn read_initial<'a>(input: &mut Reader<'a>, size: usize) -> Result<Packet<'a>, DecodeError> {
    if size < MIN_INITIAL {
        let problem = Problem::OutOfRange {
            value: size as u64,
            least: MIN_INITIAL as u64,
            most: MAX_DATAGRAM as u64,
        };
        return Err(input.error_at(0, "size", problem));
    }
    let version = input.u32("version")?;
    let source = ConnectionId(input.u64("source")?);
    if version != VERSION {
        return Ok(Packet::UnknownVersion { version, source });
    }
    let start = input.offset();
    let pattern = input.u8("pattern")?;
    let Some(pattern) = Pattern::from_wire(pattern) else {
        let value = u64::from(pattern);
        return Err(input.error_at(start, "pattern", Problem::Unknown { value }));
    };
    let cookie = read_cookie(input, 0)?;
    let length = input.u16_in("message length", ANY_MESSAGE_LENGTHS)?;
    let message = input.bytes("message", usize::from(length))?;
    // If padding could hold any value, a later version could not assign a meaning to it.
    if let Some(distance) = input.rest().iter().position(|&byte| byte != 0) {
        let value = input.rest().get(distance).copied().map_or(0, u64::from);
        let problem = Problem::OutOfRange {
            value,
            least: 0,
            most: 0,
        };
        return Err(input.error_at(input.offset() + distance, "padding", problem));
    }
    Ok(Packet::Initial(Initial {
        source,
        pattern,
        cookie,
        message,
    }))
}

fn known_version(input: &mut Reader<'_>) -> Result<(), DecodeError> {
    let start = input.offset();
    let version = u64::from(input.u32("version")?);
    within(version, u64::from(VERSION)..=u64::from(VERSION))
        .map(|_| ())
        .map_err(|problem| input.error_at(start, "version", problem))
}

fn read_cookie<'a>(input: &mut Reader<'a>, least: u64) -> Result<&'a [u8], DecodeError> {
    let length = input.u8_in("cookie length", least..=MAX_COOKIE as u64)?;
    input.bytes("cookie", usize::from(length))
}

impl Initial<'_> {
    /// Appends the packet, padded to [`MIN_INITIAL`] bytes.
    ///
    /// # Errors
    /// [`EncodeError`] for a cookie or message that is too long; nothing is appended then.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let end = out.len().saturating_add(MIN_INITIAL);
        let mut writer = writer(out, PacketKind::Initial);
        let cookie = writer.check("cookie length", self.cookie.len() as u64, COOKIE_LENGTHS)?;
        let length = self.message.len() as u64;
        let length = writer.check("message length", length, ANY_MESSAGE_LENGTHS)?;
        writer.u8(PacketKind::Initial.first_byte());
        writer.u32(VERSION);
        writer.u64(self.source.get());
        writer.u8(self.pattern as u8);
        writer.u8(cookie as u8);
        writer.bytes(self.cookie);
        writer.u16(length as u16);
        writer.bytes(self.message);
        out.resize(end, 0);
        Ok(())
    }
}

const COOKIE_LENGTHS: RangeInclusive<u64> = 0..=MAX_COOKIE as u64;

impl Retry<'_> {
    /// Appends the packet.
    ///
    /// # Errors
    /// [`EncodeError`] for a cookie that is empty or too long; nothing is appended then.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let mut writer = writer(out, PacketKind::Retry);
        let length = self.cookie.len() as u64;
        let length = writer.check("cookie length", length, 1..=MAX_COOKIE as u64)?;
        writer.u8(PacketKind::Retry.first_byte());
        writer.u32(VERSION);
        writer.u64(self.destination.get());
        writer.u8(length as u8);
        writer.bytes(self.cookie);
        Ok(())
    }
}

impl Answer<'_> {
    /// Appends the packet.
    ///
    /// # Errors
    /// [`EncodeError`] for a message that is empty or too long, or a ticket that is too long;
    /// nothing is appended then.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let mut writer = writer(out, PacketKind::Answer);
        let length = self.ticket.len() as u64;
        let length = writer.check("ticket length", length, TICKET_LENGTHS)?;
        writer.check("message length", self.message.len() as u64, MESSAGE_LENGTHS)?;
        writer.u8(PacketKind::Answer.first_byte());
        writer.u32(VERSION);
        writer.u64(self.destination.get());
        writer.u8(length as u8);
        writer.bytes(self.ticket);
        writer.bytes(self.message);
        Ok(())
    }
}

impl Confirm<'_> {
    /// Appends the packet.
    ///
    /// # Errors
    /// [`EncodeError`] for a ticket or message that is too long; nothing is appended then.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let mut writer = writer(out, PacketKind::Confirm);
        let length = self.ticket.len() as u64;
        let length = writer.check("ticket length", length, TICKET_LENGTHS)?;
        let message = self.message.len() as u64;
        writer.check("message length", message, ANY_MESSAGE_LENGTHS)?;
        writer.u8(PacketKind::Confirm.first_byte());
        writer.u8(length as u8);
        writer.bytes(self.ticket);
        writer.bytes(self.message);
        Ok(())
    }
}

impl Accept<'_> {
    /// Appends the packet.
    ///
    /// # Errors
    /// [`EncodeError`] for a message that is empty or too long; nothing is appended then.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let mut writer = writer(out, PacketKind::Accept);
        writer.check("message length", self.message.len() as u64, MESSAGE_LENGTHS)?;
        writer.u8(PacketKind::Accept.first_byte());
        writer.u64(self.destination.get());
        writer.bytes(self.message);
        Ok(())
    }
}

impl Reset {
    /// The packet, [`RESET`] bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(RESET);
        let mut writer = writer(&mut out, PacketKind::Reset);
        writer.u8(PacketKind::Reset.first_byte());
        writer.u64(self.source.get());
        writer.bytes(&self.token);
        out
    }
}

impl Data {
    /// The header, [`DATA_HEADER`] bytes. The sealed payload follows it.
    #[must_use]
    pub const fn encode(&self) -> [u8; DATA_HEADER] {
        let [c0, c1, c2, c3, c4, c5, c6, c7] = self.destination.get().to_be_bytes();
        let [n0, n1, n2, n3] = self.number.to_be_bytes();
        let first = PacketKind::Data.first_byte() | self.key_phase as u8;
        [first, c0, c1, c2, c3, c4, c5, c6, c7, n0, n1, n2, n3]
    }
}

/// Appends a VersionNegotiation packet.
///
/// * `destination`: the source identifier of the Initial packet.
/// * `versions`: the supported versions in order of preference; at least one, at most
///   [`MAX_VERSIONS`].
///
/// # Errors
/// [`EncodeError`] for another number of versions; nothing is appended then.
pub fn encode_version_negotiation(
    destination: ConnectionId,
    versions: &[u32],
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let mut writer = writer(out, PacketKind::VersionNegotiation);
    let count = versions.len() as u64;
    writer.check("version count", count, 1..=MAX_VERSIONS as u64)?;
    writer.u8(PacketKind::VersionNegotiation.first_byte());
    writer.u64(destination.get());
    for version in versions {
        writer.u32(*version);
    }
    Ok(())
}

const fn writer(out: &mut Vec<u8>, kind: PacketKind) -> Writer<'_, Vec<u8>> {
    Writer::new(out, Part::Packet(kind))
}
