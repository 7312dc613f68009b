//! The header of a PES packet: ISO/IEC 13818-1, 2.4.3.6.

use crate::header::Times;

/// The stream identifier of padding.
pub(crate) const PADDING: u8 = 0xbe;

/// The header of a PES packet, as far as a reader needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PesHeader {
    pub(crate) stream_id: u8,
    /// The length of the whole PES packet; `None` if it is unspecified or ends within the header.
    pub(crate) length: Option<usize>,
    /// The length of the header.
    pub(crate) size: usize,
    pub(crate) times: Times,
    pub(crate) aligned: bool,
    pub(crate) scrambled: bool,
}

impl PesHeader {
    /// Reads a header; `None` if the bytes are not a header, or it is incomplete. Bits with a
    /// constant value are not checked, as in players.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let &[0, 0, 1, stream_id, high, low, ref fields @ ..] = bytes else {
            return None;
        };
        let length = 6 + usize::from(u16::from_be_bytes([high, low]));
        let mut header = Self {
            stream_id,
            length: None,
            size: 6,
            times: Times::None,
            aligned: false,
            scrambled: false,
        };
        if has_fields(stream_id) {
            let &[first, second, data, ref fields @ ..] = fields else {
                return None;
            };
            let fields = fields.get(..usize::from(data))?;
            header.size += 3 + fields.len();
            header.aligned = first & 0x04 != 0;
            header.scrambled = first & 0x30 != 0;
            header.times = match (second >> 6, fields.first_chunk(), fields.get(5..)) {
                (2, Some(pts), _) => Times::Presentation(read_stamp(pts)),
                (3, Some(pts), Some(rest)) => Times::Both {
                    presentation: read_stamp(pts),
                    decoding: read_stamp(rest.first_chunk()?),
                },
                _ => Times::None,
            };
        }
        header.length = (length > header.size).then_some(length);
        Some(header)
    }
}

/// Whether the payload of a packet begins a PES packet.
pub(crate) fn is_pes(payload: &[u8]) -> bool {
    payload.starts_with(&[0, 0, 1])
}

/// Whether a PES packet of this stream has flags and time stamps (table 2-21 lists the exceptions).
pub(crate) const fn has_fields(stream_id: u8) -> bool {
    !matches!(
        stream_id,
        0xbc | 0xbe | 0xbf | 0xf0 | 0xf1 | 0xf2 | 0xf8 | 0xff
    )
}

/// `PTS_DTS_flags` at its position in the byte, and the time stamps.
pub(crate) fn stamps(times: Times) -> (u8, Vec<u8>) {
    match times {
        Times::None => (0, Vec::new()),
        Times::Presentation(pts) => (0x80, timestamp(0x2, pts).to_vec()),
        Times::Both {
            presentation,
            decoding,
        } => (
            0xc0,
            [timestamp(0x3, presentation), timestamp(0x1, decoding)].concat(),
        ),
    }
}

/// Four bits that identify the time stamp, then three, fifteen and fifteen bits of it, each
/// followed by a one.
fn timestamp(which: u8, stamp: u64) -> [u8; 5] {
    let bits = |shift: u32, mask: u64| u8::try_from(stamp >> shift & mask).unwrap_or(0);
    [
        which << 4 | bits(30, 0x07) << 1 | 1,
        bits(22, 0xff),
        bits(15, 0x7f) << 1 | 1,
        bits(7, 0xff),
        bits(0, 0x7f) << 1 | 1,
    ]
}

fn read_stamp(bytes: &[u8; 5]) -> u64 {
    let [first, second, third, fourth, fifth] = bytes.map(u64::from);
    (first >> 1 & 0x07) << 30 | second << 22 | (third >> 1) << 15 | fourth << 7 | fifth >> 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_whatever_stands_in_them() {
        let stamps = [0x31, 0x00, 0x05, 0xbf, 0x21, 0x11, 0x00, 0x05, 0xbf, 0x21];
        let whole = [
            &[0, 0, 1, 0xe0, 1, 0, 0xb4, 0xc0, 12][..],
            &stamps,
            &[0xff; 9],
        ]
        .concat();
        let header = PesHeader::read(&whole).expect("whole");
        assert_eq!(
            header,
            PesHeader {
                stream_id: 0xe0,
                length: Some(262),
                size: 21,
                times: Times::Both {
                    presentation: 90_000,
                    decoding: 90_000
                },
                aligned: true,
                scrambled: true,
            }
        );
        assert_eq!(PesHeader::read(&whole[..20]), None);
        // A length that ends within the header is invalid, and zero is unspecified.
        for length in [0, 14, 15] {
            let bytes = [&whole[..5], &[length], &whole[6..]].concat();
            let bytes = [&bytes[..4], &[0], &bytes[5..]].concat();
            let expected = (length > 14).then_some(6 + usize::from(length));
            let header = PesHeader::read(&bytes).expect("whole");
            assert_eq!(header.length, expected.filter(|&length| length > 21));
        }
        // Time stamps for which the header has no room.
        let short = [0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 0, 7];
        let header = PesHeader::read(&short).expect("whole");
        assert_eq!((header.size, header.times), (9, Times::None));
        // A stream without fields.
        let plain = PesHeader::read(&[0, 0, 1, PADDING, 0, 9, 1]).expect("whole");
        assert_eq!((plain.size, plain.length), (6, Some(15)));
    }

    #[test]
    fn stamps_have_the_bits_of_the_standard() {
        assert_eq!(timestamp(2, 0x1_ffff_ffff), [0x2f, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(timestamp(3, 90_000), [0x31, 0x00, 0x05, 0xbf, 0x21]);
    }
}
