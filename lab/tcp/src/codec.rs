//! TCP headers as bytes: the edge between a [`Segment`] and the wire.
//!
//! [`decode`] accepts only unambiguous headers, and [`encode`] writes only headers that [`decode`]
//! accepts. Decoding an encoded segment therefore returns the same segment. The codec checks form
//! alone; the state machine checks meaning, such as an MSS outside a SYN or an acknowledgement
//! beyond the window.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |          source port          |       destination port        |
//! +-------------------------------+-------------------------------+
//! |                        sequence number                        |
//! +---------------------------------------------------------------+
//! |                     acknowledgement number                    |
//! +-------+-------+---------------+-------------------------------+
//! | words |   0   |     flags     |            window             |
//! +-------+-------+---------------+-------------------------------+
//! |           checksum            |        urgent pointer         |
//! +-------------------------------+-------------------------------+
//! |              options, in groups of whole words                |
//! +---------------------------------------------------------------+
//! ```
//!
//! Options appear in the groups that Linux writes, in this order. Each group is a whole number of
//! 32-bit words, and absent options write nothing:
//!
//! | group | bytes | when |
//! |---|---|---|
//! | MSS | 4 | [`Options::mss`] |
//! | SACK-permitted, timestamps | 4 or 12 | both; alone, each has two NOPs in front |
//! | NOP, window scale | 4 | [`Options::window_scale`] |
//! | TCP_REAL | 4 | [`Options::level`] |
//! | wave | 8 | [`Options::wave`] |
//! | `seq_update` | 8 or 16 | [`Options::seq_update`] |
//! | NOP, NOP, SACK | 4 + 8 n | n ≥ 1 blocks |
//!
//! Without SACK blocks, the groups take at most 20 of the 40 bytes on a plain connection. TCP-Real
//! adds up to 12 bytes and a time-lined stream up to 16; [`encode`] refuses more than 40. The
//! remaining space limits the number of SACK blocks ([`sack_room`]); [`encode`] refuses more:
//!
//! | bytes of the other groups | for example | SACK blocks |
//! |---|---|---|
//! | 0, 4 | none; window scale | 4 |
//! | 8, 12 | timestamps; `seq_update`; MSS, SACK-permitted and window scale | 3 |
//! | 16, 20 | timestamps and MSS, TCP_REAL or `seq_update`; the full set of a SYN | 2 |
//! | 24, 28 | timestamps, TCP_REAL and wave; timestamps and `seq_update` with a void | 1 |
//! | 32 to 40 | timestamps, TCP_REAL, wave and `seq_update` | none |
//!
//! A peer that omits the NOPs fits more blocks. [`decode`] reads such a header, but [`encode`] may
//! refuse to write it.
//!
//! Source: RFC 9293, section 3.1 (header, MSS); RFC 7323 (window scale, timestamps); RFC 2018
//! (SACK).
//!
//! Differs from the source in: 1. the urgent pointer is ignored and written as zero (RFC 6093
//! advises against it); 2. the four reserved bits are ignored and written as zero; 3. a duplicate
//! option, or a SACK block that is empty or reversed, makes the segment invalid, where the RFCs are
//! silent: two readers must not be able to choose different meanings; 4. segments over 65,535 bytes
//! (RFC 2675) are refused.
//!
//! # Options of TCP-Real
//!
//! Both have the experimental kind 254 and differ in their length. The paper fixes the length and
//! the content of the first option (section 2.2), which leaves no room for an experiment identifier
//! (RFC 6994). `docs/protocol/tcp-options.md` has their bytes.
//!
//! | option | length | value | carried by |
//! |---|---|---|---|
//! | TCP_REAL | 4 | next wave level, from 1 | acknowledgements, data included |
//! | wave | 8 | number of the wave, its segments, which of them this is, from 1 | segments with payload |
//!
//! # Experimental options
//!
//! Experiments share the kinds 253 and 254. An experiment identifier of 16 bits distinguishes them
//! (RFC 6994): `kind, length, ExID, value`. An option with another identifier counts as skipped.
//!
//! | option | kind | ExID | length | value | carried by |
//! |---|---|---|---|---|---|
//! | `seq_update` | 253 | 0x544C "TL" | 8 | the lowest number that may still come | every segment of a time-lined stream |
//! | with a void | 253 | 0x544C "TL" | 16 | the same, the first number of the void and the number after the void | segments behind a void |
//!
//! A further experiment needs one `Option` field of [`Options`], one arm in the reader and one
//! group of the writer. A value of whole words needs no padding. [`sack_room`] accounts for the
//! other groups.

mod error;
mod format;
mod length;
mod options;

use core::ops::Range;

use comity_congestion::Ecn;
use comity_units::SeqNo;

#[cfg(doc)]
use super::segment::Options;
use super::segment::{Flags, Segment};
use crate::checksum::{Checksum, PROTOCOL_TCP, PseudoHeader};

use self::format::Out;
pub use error::{DecodeError, EncodeError};
pub use format::{MAX_HEADER, MAX_SEGMENT, MAX_WINDOW_SCALE, MIN_HEADER};
pub use length::{data_header_length, encoded_length, sack_room};

/// The ports of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Ports {
    /// The port of the sender.
    pub source: u16,
    /// The port of the receiver.
    pub destination: u16,
}

impl Ports {
    /// The ports of the reverse direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
        }
    }
}

/// A decoded segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Its ports.
    pub ports: Ports,
    /// Its fields and the options that Comity knows.
    pub segment: Segment,
    /// The range of the payload in the input; the header precedes it.
    pub payload: Range<usize>,
    /// How many options were skipped because their kind is unknown.
    pub skipped_options: u8,
    /// Whether the window scale was above [`MAX_WINDOW_SCALE`] and was clamped to it. RFC 7323
    /// (section 2.3) requires that, together with a log message.
    pub window_scale_clamped: bool,
}

/// Reads a segment and verifies its checksum.
///
/// * `bytes`: the whole segment, from the first byte of its header to the last of its payload.
/// * `addresses`: the addresses that the segment travelled between.
///
/// # Errors
/// [`DecodeError`], with the position in the header, the value found and the value expected. Never
/// panics.
pub fn decode(bytes: &[u8], addresses: &PseudoHeader) -> Result<Decoded, DecodeError> {
    let header = fixed_header(bytes)?;
    let length = u16::try_from(bytes.len()).map_err(|_| DecodeError::TooLong {
        length: bytes.len(),
    })?;
    let sum = addresses.sum(PROTOCOL_TCP, length).then(bytes);
    if !sum.is_intact() {
        let found = header.checksum;
        let without_field = sum.folded().to_be_bytes();
        let expected = Checksum::new()
            .then(&without_field)
            .then(&(!found).to_be_bytes())
            .finish();
        return Err(DecodeError::Checksum { found, expected });
    }
    read(&header, bytes)
}

/// Reads a segment whose checksum is already verified, for example by the network card.
///
/// # Errors
/// As [`decode`], except for the checksum.
pub fn decode_unverified(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    if bytes.len() > MAX_SEGMENT {
        return Err(DecodeError::TooLong {
            length: bytes.len(),
        });
    }
    read(&fixed_header(bytes)?, bytes)
}

/// Writes the header of a segment, its checksum included, and returns the header's length in bytes.
///
/// * `addresses`: the addresses that the segment will travel between.
/// * `payload`: the sum over the [`Segment::payload`] bytes that will follow the header. The sum of
///   zeros is [`Checksum::new`], which also serves where payload is only counted.
/// * `buffer`: receives the header at its start; the rest stays unchanged. On an error the whole
///   buffer stays unchanged.
///
/// # Errors
/// [`EncodeError`] if the buffer is too small, or if [`decode`] would refuse the segment.
pub fn encode(
    segment: &Segment,
    ports: Ports,
    addresses: &PseudoHeader,
    payload: Checksum,
    buffer: &mut [u8],
) -> Result<usize, EncodeError> {
    options::check(&segment.options)?;
    let length = encoded_length(segment);
    let total = u64::from(segment.payload) + length as u64;
    let whole = u16::try_from(total).map_err(|_| EncodeError::TooLong { length: total })?;
    let available = buffer.len();
    let header = buffer
        .get_mut(..length)
        .ok_or(EncodeError::BufferTooSmall {
            needed: length,
            available,
        })?;

    let mut out = Out(&mut *header);
    out.put(ports.source.to_be_bytes());
    out.put(ports.destination.to_be_bytes());
    out.put(segment.sequence.get().to_be_bytes());
    out.put(segment.acknowledgement.get().to_be_bytes());
    out.put([(length as u8 / 4) << 4, segment.flags.bits()]);
    out.put(segment.window.to_be_bytes());
    out.put([0; 4]);
    options::write(&segment.options, &mut out);

    let sum = addresses
        .sum(PROTOCOL_TCP, whole)
        .then(header)
        .followed_by(payload);
    if let Some(field) = header.get_mut(CHECKSUM) {
        field.copy_from_slice(&sum.finish().to_be_bytes());
    }
    Ok(length)
}

/// The bytes of the checksum in the header.
const CHECKSUM: Range<usize> = 16..18;

/// The part that every header has.
struct FixedHeader {
    ports: Ports,
    sequence: SeqNo,
    acknowledgement: SeqNo,
    words: u8,
    flags: Flags,
    window: u16,
    checksum: u16,
}

fn fixed_header(bytes: &[u8]) -> Result<FixedHeader, DecodeError> {
    let Some((header, _)) = bytes.split_first_chunk::<MIN_HEADER>() else {
        return Err(DecodeError::HeaderTruncated {
            available: bytes.len(),
        });
    };
    let [
        s0,
        s1,
        d0,
        d1,
        q0,
        q1,
        q2,
        q3,
        a0,
        a1,
        a2,
        a3,
        offset,
        flags,
        w0,
        w1,
        c0,
        c1,
        _,
        _,
    ] = *header;
    Ok(FixedHeader {
        ports: Ports {
            source: u16::from_be_bytes([s0, s1]),
            destination: u16::from_be_bytes([d0, d1]),
        },
        sequence: SeqNo::new(u32::from_be_bytes([q0, q1, q2, q3])),
        acknowledgement: SeqNo::new(u32::from_be_bytes([a0, a1, a2, a3])),
        words: offset >> 4,
        flags: Flags::from_bits(flags),
        window: u16::from_be_bytes([w0, w1]),
        checksum: u16::from_be_bytes([c0, c1]),
    })
}

/// Reads the part after the fixed header. `bytes` are at most [`MAX_SEGMENT`].
fn read(header: &FixedHeader, bytes: &[u8]) -> Result<Decoded, DecodeError> {
    let length = usize::from(header.words) * 4;
    if length < MIN_HEADER {
        return Err(DecodeError::DataOffsetTooSmall {
            words: header.words,
        });
    }
    let available = bytes.len();
    let options = bytes
        .get(MIN_HEADER..length)
        .ok_or(DecodeError::DataOffsetBeyondBuffer {
            header: length,
            available,
        })?;
    let options = options::read(options)?;
    Ok(Decoded {
        ports: header.ports,
        segment: Segment {
            sequence: header.sequence,
            acknowledgement: header.acknowledgement,
            payload: (available - length) as u32,
            window: header.window,
            flags: header.flags,
            options: options.known,
            ecn: Ecn::NotCapable,
        },
        payload: length..available,
        skipped_options: options.skipped,
        window_scale_clamped: options.window_scale_clamped,
    })
}
