//! The header of a PES packet: ISO/IEC 13818-1, 2.4.3.6.

use crate::header::Times;

/// Whether a PES packet of this stream has flags and time stamps (table 2-21 lists the exceptions).
pub(crate) const fn has_fields(stream_id: u8) -> bool {
    !matches!(
        stream_id,
        0xbc | 0xbe | 0xbf | 0xf0 | 0xf1 | 0xf2 | 0xf8 | 0xff
    )
}

/// PTS_DTS_flags in their place, and the stamps.
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

/// Three, fifteen and fifteen bits, each followed by a one, after four bits that identify the
/// stamp.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_have_the_bits_of_the_standard() {
        assert_eq!(timestamp(2, 0x1_ffff_ffff), [0x2f, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(timestamp(3, 90_000), [0x31, 0x00, 0x05, 0xbf, 0x21]);
    }
}
