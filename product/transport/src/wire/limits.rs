//! The limits of packets, each with its reason. `docs/protocol/core.md` lists them too.

use super::varint;

/// The version of the protocol in this crate.
pub const VERSION: u32 = 2;

/// The minimum size of a datagram with an Initial packet, in bytes.
///
/// A response is never longer, so a forged source address gains nothing. Every Internet path
/// carries datagrams of this size (RFC 9000, section 14).
pub const MIN_INITIAL: usize = 1_200;

/// The largest datagram, in bytes: the limit of UDP over IPv4 (65,535 less 20 and 8 bytes of
/// headers).
pub const MAX_DATAGRAM: usize = 65_507;

/// The header of a Data packet, in bytes, before the protected payload.
pub const DATA_HEADER: usize = 13;

/// The authentication tag at the end of a sealed packet, in bytes (ChaCha20-Poly1305 and AES-GCM
/// alike).
pub const TAG: usize = 16;

/// The overhead of protection for a Data packet: its header and the tag, in bytes.
pub const SEALING: u32 = (DATA_HEADER + TAG) as u32;

/// The headers of UDP and IPv4, in bytes.
pub const UDP_IPV4: u32 = 8 + 20;

/// The headers of UDP and IPv6, in bytes.
pub const UDP_IPV6: u32 = 8 + 40;

/// The largest datagram that an end accepts by default, in bytes: it fits an Ethernet packet of
/// 1,500 bytes with IPv6.
pub const DEFAULT_DATAGRAM: u16 = 1_500 - UDP_IPV6 as u16;

/// The departure before the frames of every payload, in bytes.
pub const DEPARTURE: usize = 4;

/// The longest cookie, in bytes: its length is one byte.
pub const MAX_COOKIE: usize = 255;

/// The fields of an Initial packet beside the cookie and the handshake message, in bytes.
pub(super) const INITIAL_FIXED: usize = 17;

/// The longest handshake message, in bytes. With the longest cookie it fills an Initial packet of
/// exactly [`MIN_INITIAL`] bytes, so a handshake passes wherever the protocol does.
pub const MAX_HANDSHAKE: usize = MIN_INITIAL - INITIAL_FIXED - MAX_COOKIE;

/// The maximum number of versions in a VersionNegotiation packet, more than any implementation
/// supports at once.
pub const MAX_VERSIONS: usize = 16;

/// The longest ticket in an Answer and a Confirm packet, in bytes: its length is one byte.
pub const MAX_TICKET: usize = 255;

/// The token in a Reset packet, in bytes: too long to guess. It ends a connection whose state the
/// listener has lost.
pub const RESET_TOKEN: usize = 16;

/// The size of a Reset packet, in bytes. An endpoint sends it only in response to a longer packet,
/// so that no two endpoints answer each other without end.
pub const RESET: usize = 1 + 8 + RESET_TOKEN;

/// The fields before the transport parameters in the fourth message of the handshake, in bytes: a
/// nonce, a status, a connection identifier and its reset token.
const ACCEPT_PAYLOAD: usize = 12 + 1 + 8 + RESET_TOKEN;

/// The longest list of transport parameters, in bytes: the rest of the fourth handshake message,
/// the longest one that has parameters.
pub const MAX_PARAMETERS: usize = MAX_HANDSHAKE - ACCEPT_PAYLOAD - TAG;

/// The maximum number of transport parameters, known and unknown together. It allows five times the
/// existing ones, and bounds the work that an unauthenticated peer can cause.
pub const MAX_PARAMETER_COUNT: usize = 64;

/// The longest stream identifier among the transport parameters, in bytes of UTF-8: SRT's limit.
pub const MAX_STREAM_NAME: usize = 512;

/// The longest name of a controller or of a meter, in bytes of UTF-8. The names of the table are
/// short.
pub const MAX_NAME: usize = 64;

/// The longest list of a meter's parameters, in bytes of UTF-8. The parameters of all present
/// meters together are shorter.
pub const MAX_METER_PARAMETERS: usize = 256;

/// The largest packet number, because ACK frames encode it as a varint.
pub const MAX_PACKET_NUMBER: u64 = varint::MAX;

/// The maximum number of packet number ranges in an ACK frame. With more gaps, many earlier ACKs
/// have reported the oldest ranges. 128 ranges need about 260 bytes and bound the work per packet.
pub const MAX_ACK_RANGES: usize = 128;

/// The longest section, in bytes: 64 MiB, several times the largest coded picture in use. A
/// receiver's credit bounds how much it holds at once.
pub const MAX_SECTION: u32 = 1 << 26;

/// The importance of a section if neither its frames nor the application state one.
pub const DEFAULT_IMPORTANCE: u8 = 0;

/// The highest section number of a stream. At a million sections a second, it lasts for nine years.
/// Counts of sections over many streams and connections fit into 64 bits, however many sections
/// peers claim to have skipped.
pub const MAX_SECTION_ID: u64 = (1 << 48) - 2;

/// The largest number of sections of a stream, and the highest floor.
pub const MAX_SECTION_COUNT: u64 = MAX_SECTION_ID + 1;

/// The maximum number of open sections that a receiver can offer. Each costs it a record even
/// before data arrives.
pub const MAX_OPEN_SECTIONS: u64 = 1 << 16;

/// The largest time and span, in microseconds: 2^53 - 1, or 285 years. The sum of two of them is
/// still a [`Time`](comity_units::Time) other than "never".
pub const MAX_TIME_US: u64 = (1 << 53) - 1;

/// The longest reason of a Close frame, in bytes of UTF-8: its length is one byte.
pub const MAX_REASON: usize = 255;

/// The largest clock drift in a report, in parts per billion in either direction: a clock that
/// stands still or runs at twice the speed.
pub const MAX_DRIFT_PPB: i64 = 1_000_000_000;

const _: () = assert!(MAX_TIME_US * 2 < u64::MAX / 1_000);
const _: () = assert!(INITIAL_FIXED + MAX_COOKIE + MAX_HANDSHAKE == MIN_INITIAL);
