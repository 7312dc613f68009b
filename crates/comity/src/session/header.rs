//! What stands in front of the protection, as bytes.
//!
//! Nothing here is authenticated yet: the reader checks lengths and passes slices on.

use super::ConnectionId;

/// The version of the protocol that is spoken here.
pub const VERSION: u32 = 1;
/// The least length of a datagram with an Initial, and of one that is answered with other versions.
pub const LEAST_INITIAL: usize = 1200;
/// Bytes in front of the protected payload of a Data packet.
pub const DATA_HEADER: usize = 13;
/// The most bytes of a cookie that a caller carries back.
pub const MOST_COOKIE: usize = 64;

const INITIAL: u8 = 1;
const RETRY: u8 = 2;
const ANSWER: u8 = 3;
const DATA: u8 = 4;
const VERSION_NEGOTIATION: u8 = 5;

/// A packet whose header has been read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Packet<'a> {
    Initial(Initial<'a>),
    /// An Initial of a version that is not spoken here: only its sender's id is known.
    OtherVersion { source: ConnectionId },
    Retry {
        version: u32,
        destination: ConnectionId,
        cookie: &'a [u8],
    },
    Answer {
        version: u32,
        destination: ConnectionId,
        source: u64,
        message: &'a [u8],
    },
    Data {
        key_phase: bool,
        connection: ConnectionId,
        number: u32,
    },
    VersionNegotiation {
        destination: ConnectionId,
        versions: Vec<u32>,
    },
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Initial<'a> {
    pub(super) source: ConnectionId,
    pub(super) pattern: u8,
    pub(super) cookie: &'a [u8],
    pub(super) message: &'a [u8],
}

/// The most versions that are read from a negotiation.
const MOST_VERSIONS: usize = 16;

/// Reads the header of `datagram`; `None` when it is none.
pub(super) fn read(datagram: &[u8]) -> Option<Packet<'_>> {
    let mut rest = Reader(datagram);
    let first = rest.u8()?;
    let flags = first & 0x0f;
    if flags & !u8::from(first >> 4 == DATA) != 0 {
        return None;
    }
    match first >> 4 {
        INITIAL => {
            if datagram.len() < LEAST_INITIAL {
                return None;
            }
            let version = rest.u32()?;
            let source = rest.connection()?;
            if version != VERSION {
                return Some(Packet::OtherVersion { source });
            }
            let pattern = rest.u8()?;
            let cookie_length = rest.u8()?.into();
            let cookie = rest.bytes(cookie_length)?;
            let message_length = rest.u16()?.into();
            let message = rest.bytes(message_length)?;
            if cookie.len() > MOST_COOKIE || rest.0.iter().any(|&padding| padding != 0) {
                return None;
            }
            Some(Packet::Initial(Initial {
                source,
                pattern,
                cookie,
                message,
            }))
        }
        RETRY => {
            let version = rest.u32()?;
            let destination = rest.connection()?;
            let length = rest.u8()?.into();
            let cookie = rest.last(length)?;
            (1..=MOST_COOKIE).contains(&cookie.len()).then_some(Packet::Retry {
                version,
                destination,
                cookie,
            })
        }
        ANSWER => {
            let version = rest.u32()?;
            let destination = rest.connection()?;
            let source = rest.u64()?;
            let length = rest.u16()?.into();
            Some(Packet::Answer {
                version,
                destination,
                source,
                message: rest.last(length)?,
            })
        }
        DATA => Some(Packet::Data {
            key_phase: flags & 1 != 0,
            connection: rest.connection()?,
            number: rest.u32()?,
        }),
        VERSION_NEGOTIATION => {
            let destination = rest.connection()?;
            let (versions, []) = rest.0.as_chunks::<4>() else {
                return None;
            };
            (1..=MOST_VERSIONS)
                .contains(&versions.len())
                .then(|| Packet::VersionNegotiation {
                    destination,
                    versions: versions.iter().map(|&bytes| u32::from_be_bytes(bytes)).collect(),
                })
        }
        _ => None,
    }
}

pub(super) fn write_initial(out: &mut Vec<u8>, initial: &Initial<'_>) {
    let start = out.len();
    out.push(INITIAL << 4);
    out.extend(VERSION.to_be_bytes());
    out.extend(initial.source.0.to_be_bytes());
    out.push(initial.pattern);
    out.push(initial.cookie.len() as u8);
    out.extend(initial.cookie);
    out.extend((initial.message.len() as u16).to_be_bytes());
    out.extend(initial.message);
    out.resize(out.len().max(start + LEAST_INITIAL), 0);
}

pub(super) fn write_retry(out: &mut Vec<u8>, destination: ConnectionId, cookie: &[u8]) {
    out.push(RETRY << 4);
    out.extend(VERSION.to_be_bytes());
    out.extend(destination.0.to_be_bytes());
    out.push(cookie.len() as u8);
    out.extend(cookie);
}

pub(super) fn write_answer(
    out: &mut Vec<u8>,
    destination: ConnectionId,
    source: u64,
    message: &[u8],
) {
    out.push(ANSWER << 4);
    out.extend(VERSION.to_be_bytes());
    out.extend(destination.0.to_be_bytes());
    out.extend(source.to_be_bytes());
    out.extend((message.len() as u16).to_be_bytes());
    out.extend(message);
}

pub(super) fn write_versions(out: &mut Vec<u8>, destination: ConnectionId) {
    out.push(VERSION_NEGOTIATION << 4);
    out.extend(destination.0.to_be_bytes());
    out.extend(VERSION.to_be_bytes());
}

/// The header of a Data packet.
pub(super) fn data(key_phase: bool, connection: ConnectionId, number: u64) -> [u8; DATA_HEADER] {
    let mut header = [0; DATA_HEADER];
    header[0] = DATA << 4 | u8::from(key_phase);
    header[1..9].copy_from_slice(&connection.0.to_be_bytes());
    header[9..].copy_from_slice(&(number as u32).to_be_bytes());
    header
}

/// The 64-bit number nearest to `expected` whose low half is `low`.
///
/// Source: RFC 9000, appendix A.3, with 32 bits sent always.
pub(super) fn restore(expected: u64, low: u32) -> u64 {
    const HALF: u64 = 1 << 31;
    let candidate = (expected & !u64::from(u32::MAX)) | u64::from(low);
    if candidate.saturating_add(HALF) <= expected {
        candidate.checked_add(1 << 32).unwrap_or(candidate)
    } else if candidate > expected.saturating_add(HALF) {
        candidate.checked_sub(1 << 32).unwrap_or(candidate)
    } else {
        candidate
    }
}

/// Takes fields from the front; `None` past the end.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (&bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(bytes)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn connection(&mut self) -> Option<ConnectionId> {
        self.u64().and_then(ConnectionId::from_wire)
    }

    /// The rest, which has to be of this length.
    fn last(self, length: usize) -> Option<&'a [u8]> {
        (self.0.len() == length).then_some(self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: ConnectionId = ConnectionId(0x0102_0304_0506_0708);

    #[test]
    fn headers_are_read_back() {
        let initial = Initial {
            source: ID,
            pattern: 1,
            cookie: &[9; 21],
            message: &[7; 48],
        };
        let mut out = Vec::new();
        write_initial(&mut out, &initial);
        assert_eq!(out.len(), LEAST_INITIAL);
        assert_eq!(read(&out), Some(Packet::Initial(initial)));
        assert_eq!(read(&out[..LEAST_INITIAL - 1]), None);
        *out.last_mut().unwrap() = 1;
        assert_eq!(read(&out), None, "padding is zero");

        out.clear();
        write_answer(&mut out, ID, 5, b"noise");
        let hand = [
            &[0x30, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8][..],
            &[0, 0, 0, 0, 0, 0, 0, 5, 0, 5],
            b"noise",
        ];
        assert_eq!(out, hand.concat());
        assert!(matches!(read(&out), Some(Packet::Answer { source: 5, message: b"noise", .. })));

        out.clear();
        write_retry(&mut out, ID, &[3; 4]);
        assert!(matches!(read(&out), Some(Packet::Retry { cookie: [3, 3, 3, 3], .. })));
        assert_eq!(read(&out[..out.len() - 1]), None);

        out.clear();
        write_versions(&mut out, ID);
        let versions = vec![VERSION];
        let expected = Packet::VersionNegotiation { destination: ID, versions };
        assert_eq!(read(&out), Some(expected));

        let header = data(true, ID, 0x1_0000_0002);
        let expected = Packet::Data { key_phase: true, connection: ID, number: 2 };
        assert_eq!(read(&header), Some(expected));
        assert_eq!(read(&header[..12]), None);
    }

    #[test]
    fn a_number_is_restored_across_the_wrap() {
        assert_eq!(restore(0, 0), 0);
        assert_eq!(restore(0xffff_ffff, 0), 0x1_0000_0000);
        assert_eq!(restore(0x1_0000_0000, 0xffff_ffff), 0xffff_ffff);
        assert_eq!(restore(0x1_0000_0000, 0x7fff_ffff), 0x1_7fff_ffff);
        assert_eq!(restore(3, 0xffff_fffe), 0xffff_fffe, "there is nothing below zero");
    }

    proptest! {
        #[test]
        fn numbers_within_half_the_range_are_restored(expected in 0..u64::MAX / 2, ahead in -0x7fff_0000..0x7fff_0000_i64) {
            let number = expected.saturating_add_signed(ahead);
            prop_assert_eq!(restore(expected, number as u32), number);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..1400)) {
            let _ = read(&bytes);
        }
    }
}
