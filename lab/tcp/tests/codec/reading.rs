//! Accepted input: any layout of options. Refused input: an error with its position.

use std::net::Ipv4Addr;

use comity_tcp::checksum::PseudoHeader;
use comity_tcp::codec::{DecodeError, MAX_SEGMENT, MIN_HEADER, decode, decode_unverified};
use comity_tcp::{Options, Timestamps};
use comity_units::SeqNo;

use super::{CLIENT, REAL_OPTIONS, SACK, SYN, TO_CLIENT, TO_SERVER, blocks, real_options};

/// A header with these options, padded with zeros to whole words.
pub(super) fn with_options(options: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; MIN_HEADER];
    bytes.extend_from_slice(options);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes[12] = (bytes.len() as u8 / 4) << 4;
    bytes
}

#[test]
fn options_are_read_in_any_layout() {
    let read = |options: &[u8]| decode_unverified(&with_options(options)).unwrap();

    let unaligned = read(&[
        8, 10, 0, 0, 0, 9, 0, 0, 0, 8, 1, 1, 1, 3, 3, 5, 4, 2, 2, 4, 5, 0xb4,
    ]);
    assert_eq!(
        unaligned.segment.options,
        Options {
            mss: Some(1460),
            window_scale: Some(5),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 9, echo: 8 }),
            ..Options::default()
        }
    );
    assert_eq!(read(&REAL_OPTIONS).segment.options, real_options());

    // Any bytes after the end of the list are padding.
    let ended = read(&[2, 4, 1, 0, 0, 8, 255, 9]);
    assert_eq!(
        ended.segment.options,
        Options {
            mss: Some(256),
            ..Options::default()
        }
    );

    // An experiment, an empty unknown option and a TCP fast open cookie around an MSS.
    let unknown = read(&[
        253, 8, 0x12, 0x34, 1, 2, 3, 4, 99, 2, 2, 4, 1, 0, 34, 6, 1, 2, 3, 4,
    ]);
    assert_eq!(
        unknown.segment.options,
        Options {
            mss: Some(256),
            ..Options::default()
        }
    );
    assert_eq!(unknown.skipped_options, 3);

    let four = read(&[
        5, 34, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 7,
        0, 0, 0, 8,
    ]);
    assert_eq!(
        four.segment.options.sack,
        blocks(&[(1, 2), (3, 4), (5, 6), (7, 8)])
    );
}

#[test]
fn a_window_scale_above_14_is_clamped_to_14() {
    for (shift, expected, clamped) in [
        (13, 13, false),
        (14, 14, false),
        (15, 14, true),
        (255, 14, true),
    ] {
        let read = decode_unverified(&with_options(&[3, 3, shift])).unwrap();
        assert_eq!(read.segment.options.window_scale, Some(expected));
        assert_eq!(read.window_scale_clamped, clamped, "{shift}");
    }
}

#[test]
fn the_urgent_pointer_and_the_reserved_bits_are_ignored() {
    let mut bytes = with_options(&[]);
    let plain = decode_unverified(&bytes).unwrap();
    bytes[12] |= 0x0f;
    bytes[18..20].fill(0xff);
    assert_eq!(decode_unverified(&bytes), Ok(plain));
}

#[test]
fn malformed_headers_are_refused_with_their_position() {
    use DecodeError::*;
    let header = |available: usize| decode_unverified(&SYN[..available]).unwrap_err();
    assert_eq!(header(0), HeaderTruncated { available: 0 });
    assert_eq!(header(19), HeaderTruncated { available: 19 });
    assert_eq!(
        header(39),
        DataOffsetBeyondBuffer {
            header: 40,
            available: 39
        }
    );
    let mut short = SYN;
    short[12] = 0x40;
    assert_eq!(
        decode_unverified(&short),
        Err(DataOffsetTooSmall { words: 4 })
    );
    let too_long = vec![0x50; MAX_SEGMENT + 1];
    assert_eq!(
        decode_unverified(&too_long),
        Err(TooLong { length: 65_536 })
    );
    assert_eq!(
        decode(&too_long, &TO_SERVER),
        Err(TooLong { length: 65_536 })
    );
    assert!(decode_unverified(&too_long[..MAX_SEGMENT]).is_ok());

    let cases: &[(&[u8], DecodeError)] = &[
        (
            &[1, 1, 1, 2],
            OptionLengthMissing {
                kind: 2,
                offset: 23,
            },
        ),
        (
            &[1, 253, 0, 1],
            OptionTooShort {
                kind: 253,
                length: 0,
                offset: 21,
            },
        ),
        (
            &[8, 1, 1, 1],
            OptionTooShort {
                kind: 8,
                length: 1,
                offset: 20,
            },
        ),
        (
            &[1, 2, 4, 5],
            OptionBeyondHeader {
                kind: 2,
                length: 4,
                offset: 21,
                available: 3,
            },
        ),
        (
            &[99, 255, 0, 0],
            OptionBeyondHeader {
                kind: 99,
                length: 255,
                offset: 20,
                available: 4,
            },
        ),
        (
            &[2, 3, 5, 1],
            OptionWrongLength {
                kind: 2,
                length: 3,
                offset: 20,
            },
        ),
        (
            &[2, 5, 5, 1, 0],
            OptionWrongLength {
                kind: 2,
                length: 5,
                offset: 20,
            },
        ),
        (
            &[3, 2, 1, 1],
            OptionWrongLength {
                kind: 3,
                length: 2,
                offset: 20,
            },
        ),
        (
            &[1, 3, 4, 7, 0],
            OptionWrongLength {
                kind: 3,
                length: 4,
                offset: 21,
            },
        ),
        (
            &[4, 3, 0, 1],
            OptionWrongLength {
                kind: 4,
                length: 3,
                offset: 20,
            },
        ),
        (
            &[8, 9, 0, 0, 0, 0, 0, 0, 0, 1],
            OptionWrongLength {
                kind: 8,
                length: 9,
                offset: 20,
            },
        ),
        (
            &[8, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            OptionWrongLength {
                kind: 8,
                length: 11,
                offset: 20,
            },
        ),
        (
            &[5, 2, 1, 1],
            OptionWrongLength {
                kind: 5,
                length: 2,
                offset: 20,
            },
        ),
        (
            &[5, 9, 0, 0, 0, 1, 0, 0, 0],
            OptionWrongLength {
                kind: 5,
                length: 9,
                offset: 20,
            },
        ),
        (
            &[5, 11, 0, 0, 0, 1, 0, 0, 0, 2, 0],
            OptionWrongLength {
                kind: 5,
                length: 11,
                offset: 20,
            },
        ),
        (
            &[5, 10, 0, 0, 0, 7, 0, 0, 0, 7],
            SackBlock {
                start: SeqNo::new(7),
                end: SeqNo::new(7),
                offset: 20,
            },
        ),
        (
            &[1, 1, 5, 10, 0, 0, 0, 9, 0, 0, 0, 7],
            SackBlock {
                start: SeqNo::new(9),
                end: SeqNo::new(7),
                offset: 22,
            },
        ),
        (&[254, 4, 0, 0], Level { offset: 20 }),
        (
            &[254, 6, 0, 1, 0, 1],
            OptionWrongLength {
                kind: 254,
                length: 6,
                offset: 20,
            },
        ),
        (
            &[1, 1, 254, 8, 0, 1, 0, 0, 0, 0],
            Wave {
                segments: 0,
                position: 0,
                offset: 22,
            },
        ),
        (
            &[254, 8, 0, 1, 0, 4, 0, 5],
            Wave {
                segments: 4,
                position: 5,
                offset: 20,
            },
        ),
        (
            &[254, 8, 0, 1, 0, 4, 0, 0],
            Wave {
                segments: 4,
                position: 0,
                offset: 20,
            },
        ),
        (
            &[254, 4, 0, 1, 254, 4, 0, 1],
            DuplicateOption {
                kind: 254,
                offset: 24,
            },
        ),
        (
            &[2, 4, 5, 0, 2, 4, 5, 0],
            DuplicateOption {
                kind: 2,
                offset: 24,
            },
        ),
        (
            &[3, 3, 1, 1, 3, 3, 1],
            DuplicateOption {
                kind: 3,
                offset: 24,
            },
        ),
        (
            &[4, 2, 4, 2],
            DuplicateOption {
                kind: 4,
                offset: 22,
            },
        ),
        (
            &[5, 10, 0, 0, 0, 1, 0, 0, 0, 2, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2],
            DuplicateOption {
                kind: 5,
                offset: 30,
            },
        ),
        (
            &[8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2],
            DuplicateOption {
                kind: 8,
                offset: 30,
            },
        ),
    ];
    for (options, error) in cases {
        assert_eq!(
            decode_unverified(&with_options(options)),
            Err(*error),
            "{options:?}"
        );
    }
    // Five blocks need 42 bytes: no header is long enough.
    let five: Vec<u8> = [5, 42].into_iter().chain(0..38).collect();
    let error = OptionBeyondHeader {
        kind: 5,
        length: 42,
        offset: 20,
        available: 40,
    };
    assert_eq!(decode_unverified(&with_options(&five)), Err(error));
}

#[test]
fn errors_state_position_value_and_expectation() {
    let error = decode_unverified(&with_options(&[1, 8, 9, 0, 0, 0, 0, 0, 0, 0])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "TCP header, byte 21: option kind 8 of 9 bytes, expected 10"
    );
    for (options, message) in [
        (
            &[254, 4, 0, 0][..],
            "TCP header, byte 20: wave level 0, expected at least 1",
        ),
        (
            &[254, 3, 0],
            "TCP header, byte 20: option kind 254 of 3 bytes, expected 4 or 8",
        ),
        (
            &[254, 8, 0, 1, 0, 4, 0, 5],
            "TCP header, byte 20: segment 5 of a wave of 4, expected one from 1 to the wave's last",
        ),
    ] {
        let error = decode_unverified(&with_options(options)).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let error = decode(&SYN, &TO_CLIENT).map(|_| ());
    assert_eq!(error, Ok(()), "the sum does not depend on the direction");
    let elsewhere = PseudoHeader::V4 {
        source: CLIENT,
        destination: Ipv4Addr::new(10, 0, 0, 3),
    };
    assert_eq!(
        decode(&SYN, &elsewhere).unwrap_err().to_string(),
        "TCP header, byte 16: checksum 0x3050, expected 0x304f"
    );
}

#[test]
fn every_flipped_bit_is_detected() {
    for bit in 0..SACK.len() * 8 {
        let mut bytes = SACK;
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(
            matches!(
                decode(&bytes, &TO_CLIENT),
                Err(DecodeError::Checksum { .. })
            ),
            "{bit}"
        );
    }
}
