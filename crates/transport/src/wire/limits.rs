//! What a packet may hold at most, each with its reason. `docs/protocol/core.md` lists them too.

use super::varint;

/// The version of the protocol that this crate speaks.
pub const VERSION: u32 = 1;

/// The least size of a datagram with an Initial packet, in bytes.
///
/// An answer is never longer, so a forged source address gains nothing; and every path of the
/// Internet carries datagrams of this size (RFC 9000, section 14).
pub const MIN_INITIAL: usize = 1_200;

/// The largest datagram, in bytes: what UDP over IPv4 carries (65,535 less 20 and 8 bytes of
/// headers).
pub const MAX_DATAGRAM: usize = 65_507;

/// The header of a Data packet, in bytes: what stands before the protected payload.
pub const DATA_HEADER: usize = 13;

/// The authentication tag at the end of a sealed packet, in bytes (ChaCha20-Poly1305 and AES-GCM
/// alike).
pub const TAG: usize = 16;

/// What protection adds to the payload of a Data packet: its header and the tag, in bytes.
pub const SEALING: u32 = (DATA_HEADER + TAG) as u32;

/// What the headers of UDP and IPv4 add to a datagram, in bytes.
pub const UDP_IPV4: u32 = 8 + 20;

/// What the headers of UDP and IPv6 add to a datagram, in bytes.
pub const UDP_IPV6: u32 = 8 + 40;

/// The largest datagram that an end accepts unless it says otherwise, in bytes: it fits a packet of
/// 1,500 bytes, Ethernet's, under IPv6.
pub const DEFAULT_DATAGRAM: u16 = 1_500 - UDP_IPV6 as u16;

/// The departure in front of the frames of every payload, in bytes.
pub const DEPARTURE: usize = 4;

/// The longest cookie, in bytes: its length is one byte.
pub const MAX_COOKIE: usize = 255;

/// What an Initial packet has beside the cookie and the handshake message, in bytes.
pub(super) const INITIAL_FIXED: usize = 17;

/// The longest handshake message, in bytes: with it and the longest cookie an Initial packet has
/// exactly [`MIN_INITIAL`] bytes, so a handshake passes wherever the protocol does.
pub const MAX_HANDSHAKE: usize = MIN_INITIAL - INITIAL_FIXED - MAX_COOKIE;

/// The most versions that a VersionNegotiation packet lists. More than anybody speaks at once.
pub const MAX_VERSIONS: usize = 16;

/// What the first message of the Noise pattern IK has beside its payload, in bytes: a public key,
/// an encrypted public key with its tag, and a tag.
const NOISE_IK: usize = 32 + (32 + TAG) + TAG;

/// What stands before the transport parameters in the payload of the first message, in bytes: the
/// cipher, a count, and one version of four bytes.
const HANDSHAKE_PAYLOAD: usize = 1 + 1 + 4;

/// The longest list of transport parameters, in bytes: what is left of a handshake message of the
/// pattern IK, the longest one.
pub const MAX_PARAMETERS: usize = MAX_HANDSHAKE - NOISE_IK - HANDSHAKE_PAYLOAD;

/// The most transport parameters, known and unknown together. Room for five times those that exist,
/// and a bound on the work that an unauthenticated peer can cause.
pub const MAX_PARAMETER_COUNT: usize = 64;

/// The longest stream identifier among the transport parameters, in bytes of UTF-8: SRT's limit.
pub const MAX_STREAM_NAME: usize = 512;

/// The longest name of a controller or of a meter, in bytes of UTF-8. The names of the table are
/// short.
pub const MAX_NAME: usize = 64;

/// The longest list of a meter's parameters, in bytes of UTF-8: those of today's meters take less,
/// all together.
pub const MAX_METER_PARAMETERS: usize = 256;

/// The largest packet number: it is written as a varint in ACK frames.
pub const MAX_PACKET_NUMBER: u64 = varint::MAX;

/// The most ranges of packet numbers in an ACK frame. With more gaps than that, the oldest ranges
/// have been told by many ACKs before; 128 ranges take about 260 bytes and bound the work per
/// packet.
pub const MAX_ACK_RANGES: usize = 128;

/// The longest section, in bytes: 64 MiB, several times the largest coded picture in use. What a
/// receiver holds of them at once is bounded by the credit that it gives.
pub const MAX_SECTION: u32 = 1 << 26;

/// The importance of a section whose frames name none: that of a section for which the application
/// chose none.
pub const DEFAULT_IMPORTANCE: u8 = 0;

/// The highest section number of a stream: below the largest varint, so that the floor and the
/// number of sections, which lie one above it, can be written.
pub const MAX_SECTION_ID: u64 = varint::MAX - 1;

/// The most open sections that a receiver can offer. Each costs it a record even before data
/// arrives.
pub const MAX_OPEN_SECTIONS: u64 = 1 << 16;

/// The largest time and span, in microseconds: 2^53 - 1, or 285 years. The sum of two of them still
/// is a [`Time`](comity_units::Time) other than "never".
pub const MAX_TIME_US: u64 = (1 << 53) - 1;

/// The longest reason of a Close frame, in bytes of UTF-8: its length is one byte.
pub const MAX_REASON: usize = 255;

/// The largest clock drift that can be reported, in parts per billion either way: a clock that
/// stands still or runs at twice the speed.
pub const MAX_DRIFT_PPB: i64 = 1_000_000_000;

const _: () = assert!(MAX_TIME_US * 2 < u64::MAX / 1_000);
const _: () = assert!(INITIAL_FIXED + MAX_COOKIE + MAX_HANDSHAKE == MIN_INITIAL);
