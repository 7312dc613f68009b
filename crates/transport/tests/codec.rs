//! TCP headers against bytes worked out by hand from the RFCs, and against themselves.

use std::net::{Ipv4Addr, Ipv6Addr};

use comity_transport::checksum::{Checksum, PROTOCOL_TCP, PseudoHeader};
use comity_transport::tcp::codec::{
    DecodeError, Decoded, EncodeError, MAX_HEADER, MAX_SEGMENT, MIN_HEADER, Ports, decode,
    decode_unverified, encode, encoded_length, sack_room,
};
use comity_transport::tcp::{Flags, Options, SackBlock, SackBlocks, Segment, Timestamps};
use comity_units::SeqNo;
use proptest::prelude::*;

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const TO_SERVER: PseudoHeader = PseudoHeader::V4 {
    source: CLIENT,
    destination: SERVER,
};
const TO_CLIENT: PseudoHeader = PseudoHeader::V4 {
    source: SERVER,
    destination: CLIENT,
};

fn blocks(edges: &[(u32, u32)]) -> SackBlocks {
    let mut blocks = SackBlocks::EMPTY;
    for &(start, end) in edges {
        assert!(blocks.push(SackBlock {
            start: SeqNo::new(start),
            end: SeqNo::new(end)
        }));
    }
    blocks
}

/// One's complement sum of the words: pseudo header 1431, ports c050, sequence 0406, offset, flags and
/// window 19af2, options 5c34. Together 2cfad, folded cfaf, complement 3050.
const SYN: [u8; 40] = [
    0xc0, 0x00, 0x00, 0x50, // 49152 to 80
    0x01, 0x02, 0x03, 0x04, // sequence
    0x00, 0x00, 0x00, 0x00, // acknowledgement
    0xa0, 0x02, 0xfa, 0xf0, // ten words, SYN, window 64240
    0x30, 0x50, 0x00, 0x00, // checksum, urgent pointer
    0x02, 0x04, 0x05, 0xb4, // MSS 1460
    0x04, 0x02, 0x08, 0x0a, // SACK-permitted, timestamps:
    0x11, 0x22, 0x33, 0x44, // value
    0x00, 0x00, 0x00, 0x00, // echo
    0x01, 0x03, 0x03, 0x07, // NOP, window scale 7
];

fn syn() -> Segment {
    Segment {
        sequence: SeqNo::new(0x0102_0304),
        window: 64_240,
        flags: Flags::SYN,
        options: Options {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps {
                value: 0x1122_3344,
                echo: 0,
            }),
            sack: SackBlocks::EMPTY,
        },
        ..Segment::default()
    }
}

/// Pseudo header 1445, then c050, 1618, 0407, f210, 090b, 0064, 4466, 061b, the blocks 1102 + 16b6,
/// 2102 + 2c6a, 1feff + 0010. Together 4a8e7, folded a8eb, complement 5714.
const SACK: [u8; 60] = [
    0x00, 0x50, 0xc0, 0x00, // 80 to 49152
    0x0a, 0x0b, 0x0c, 0x0d, // sequence
    0x01, 0x02, 0x03, 0x05, // acknowledgement
    0xf0, 0x10, 0x02, 0x00, // fifteen words, ACK, window 512
    0x57, 0x14, 0x00, 0x00, // checksum, urgent pointer
    0x01, 0x01, 0x08, 0x0a, // NOP, NOP, timestamps:
    0x00, 0x00, 0x00, 0x64, // value
    0x11, 0x22, 0x33, 0x44, // echo
    0x01, 0x01, 0x05, 0x1a, // NOP, NOP, SACK of three blocks:
    0x01, 0x02, 0x10, 0x00, 0x01, 0x02, 0x15, 0xb4, //
    0x01, 0x02, 0x20, 0x00, 0x01, 0x02, 0x2b, 0x68, //
    0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0x10, // across the wrap
];

fn sack() -> Segment {
    Segment {
        sequence: SeqNo::new(0x0a0b_0c0d),
        acknowledgement: SeqNo::new(0x0102_0305),
        window: 512,
        flags: Flags::ACK,
        options: Options {
            timestamps: Some(Timestamps {
                value: 100,
                echo: 0x1122_3344,
            }),
            sack: blocks(&[
                (0x0102_1000, 0x0102_15b4),
                (0x0102_2000, 0x0102_2b68),
                (0xffff_ff00, 0x0000_0010),
            ]),
            ..Options::default()
        },
        ..Segment::default()
    }
}

fn assert_vector(
    bytes: &[u8],
    segment: Segment,
    ports: Ports,
    addresses: &PseudoHeader,
    payload: &[u8],
) {
    let header = bytes.len() - payload.len();
    assert_eq!(
        decode(bytes, addresses),
        Ok(Decoded {
            ports,
            segment,
            payload: header..bytes.len(),
            skipped_options: 0,
            window_scale_clamped: false,
        })
    );
    assert_eq!(encoded_length(&segment), header);
    let mut buffer = [0xaa; 80];
    let sum = Checksum::new().then(payload);
    assert_eq!(
        encode(&segment, ports, addresses, sum, &mut buffer),
        Ok(header)
    );
    assert_eq!(buffer[..header], bytes[..header]);
    assert!(
        buffer[header..].iter().all(|&byte| byte == 0xaa),
        "wrote beyond the header"
    );
}

#[test]
fn a_syn_with_the_options_of_linux() {
    assert_vector(
        &SYN,
        syn(),
        Ports {
            source: 49_152,
            destination: 80,
        },
        &TO_SERVER,
        &[],
    );
}

#[test]
fn three_sack_blocks_beside_timestamps() {
    assert_vector(
        &SACK,
        sack(),
        Ports {
            source: 80,
            destination: 49_152,
        },
        &TO_CLIENT,
        &[],
    );
}

#[test]
fn an_odd_payload_between_ipv6_addresses() {
    // Pseudo header 5b92, ports 0bb8, numbers 0003, 5018 + ffff, payload 6162 + 6300.
    // Together 27bc6, folded 7bc8, complement 8437.
    let bytes = [
        0x03, 0xe8, 0x07, 0xd0, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
        0x02, // ports, numbers
        0x50, 0x18, 0xff, 0xff, 0x84, 0x37, 0x00, 0x00, // five words, PSH and ACK
        b'a', b'b', b'c',
    ];
    let segment = Segment {
        sequence: SeqNo::new(1),
        acknowledgement: SeqNo::new(2),
        payload: 3,
        window: 0xffff,
        flags: Flags::PSH | Flags::ACK,
        options: Options::default(),
    };
    let addresses = PseudoHeader::V6 {
        source: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
        destination: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
    };
    let ports = Ports {
        source: 1000,
        destination: 2000,
    };
    assert_vector(&bytes, segment, ports, &addresses, b"abc");
}

#[test]
fn options_alone_are_padded_to_whole_words() {
    let options_of = |options: Options| {
        let segment = Segment {
            options,
            ..Segment::default()
        };
        let mut buffer = [0; MAX_HEADER];
        let length = encode(
            &segment,
            Ports::default(),
            &TO_SERVER,
            Checksum::new(),
            &mut buffer,
        )
        .unwrap();
        buffer[MIN_HEADER..length].to_vec()
    };
    let none = Options::default();
    assert_eq!(options_of(none), []);
    assert_eq!(
        options_of(Options {
            mss: Some(0x0218),
            ..none
        }),
        [2, 4, 2, 0x18]
    );
    assert_eq!(
        options_of(Options {
            sack_permitted: true,
            ..none
        }),
        [1, 1, 4, 2]
    );
    assert_eq!(
        options_of(Options {
            window_scale: Some(14),
            ..none
        }),
        [1, 3, 3, 14]
    );
    assert_eq!(
        options_of(Options {
            timestamps: Some(Timestamps { value: 1, echo: 2 }),
            ..none
        }),
        [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]
    );
    assert_eq!(
        options_of(Options {
            sack: blocks(&[(3, 4)]),
            ..none
        }),
        [1, 1, 5, 10, 0, 0, 0, 3, 0, 0, 0, 4]
    );
    assert_eq!(
        options_of(Options {
            mss: Some(536),
            sack_permitted: true,
            window_scale: Some(0),
            ..none
        }),
        [2, 4, 2, 0x18, 1, 1, 4, 2, 1, 3, 3, 0]
    );
}

/// A header with these options, padded with zeros to whole words.
fn with_options(options: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; MIN_HEADER];
    bytes.extend_from_slice(options);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes[12] = (bytes.len() as u8 / 4) << 4;
    bytes
}

#[test]
fn options_of_others_are_read_in_any_layout() {
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
            sack: SackBlocks::EMPTY,
        }
    );

    // Behind the end of the list stands padding, whatever it holds.
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
fn a_window_scale_above_14_is_taken_as_14() {
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
fn malformed_headers_are_refused_with_their_place() {
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
        (&[1, 1, 1, 2], OptionLengthMissing { kind: 2, place: 23 }),
        (
            &[1, 253, 0, 1],
            OptionTooShort {
                kind: 253,
                length: 0,
                place: 21,
            },
        ),
        (
            &[8, 1, 1, 1],
            OptionTooShort {
                kind: 8,
                length: 1,
                place: 20,
            },
        ),
        (
            &[1, 2, 4, 5],
            OptionBeyondHeader {
                kind: 2,
                length: 4,
                place: 21,
                available: 3,
            },
        ),
        (
            &[99, 255, 0, 0],
            OptionBeyondHeader {
                kind: 99,
                length: 255,
                place: 20,
                available: 4,
            },
        ),
        (
            &[2, 3, 5, 1],
            OptionWrongLength {
                kind: 2,
                length: 3,
                place: 20,
            },
        ),
        (
            &[2, 5, 5, 1, 0],
            OptionWrongLength {
                kind: 2,
                length: 5,
                place: 20,
            },
        ),
        (
            &[3, 2, 1, 1],
            OptionWrongLength {
                kind: 3,
                length: 2,
                place: 20,
            },
        ),
        (
            &[1, 3, 4, 7, 0],
            OptionWrongLength {
                kind: 3,
                length: 4,
                place: 21,
            },
        ),
        (
            &[4, 3, 0, 1],
            OptionWrongLength {
                kind: 4,
                length: 3,
                place: 20,
            },
        ),
        (
            &[8, 9, 0, 0, 0, 0, 0, 0, 0, 1],
            OptionWrongLength {
                kind: 8,
                length: 9,
                place: 20,
            },
        ),
        (
            &[8, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            OptionWrongLength {
                kind: 8,
                length: 11,
                place: 20,
            },
        ),
        (
            &[5, 2, 1, 1],
            OptionWrongLength {
                kind: 5,
                length: 2,
                place: 20,
            },
        ),
        (
            &[5, 9, 0, 0, 0, 1, 0, 0, 0],
            OptionWrongLength {
                kind: 5,
                length: 9,
                place: 20,
            },
        ),
        (
            &[5, 11, 0, 0, 0, 1, 0, 0, 0, 2, 0],
            OptionWrongLength {
                kind: 5,
                length: 11,
                place: 20,
            },
        ),
        (
            &[5, 10, 0, 0, 0, 7, 0, 0, 0, 7],
            SackBlock {
                start: SeqNo::new(7),
                end: SeqNo::new(7),
                place: 20,
            },
        ),
        (
            &[1, 1, 5, 10, 0, 0, 0, 9, 0, 0, 0, 7],
            SackBlock {
                start: SeqNo::new(9),
                end: SeqNo::new(7),
                place: 22,
            },
        ),
        (
            &[2, 4, 5, 0, 2, 4, 5, 0],
            DuplicateOption { kind: 2, place: 24 },
        ),
        (
            &[3, 3, 1, 1, 3, 3, 1],
            DuplicateOption { kind: 3, place: 24 },
        ),
        (&[4, 2, 4, 2], DuplicateOption { kind: 4, place: 22 }),
        (
            &[5, 10, 0, 0, 0, 1, 0, 0, 0, 2, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2],
            DuplicateOption { kind: 5, place: 30 },
        ),
        (
            &[8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2],
            DuplicateOption { kind: 8, place: 30 },
        ),
    ];
    for (options, error) in cases {
        assert_eq!(
            decode_unverified(&with_options(options)),
            Err(*error),
            "{options:?}"
        );
    }
    // Five blocks take 42 bytes: no header is long enough.
    let five: Vec<u8> = [5, 42].into_iter().chain(0..38).collect();
    let error = OptionBeyondHeader {
        kind: 5,
        length: 42,
        place: 20,
        available: 40,
    };
    assert_eq!(decode_unverified(&with_options(&five)), Err(error));
}

#[test]
fn errors_say_place_value_and_expectation() {
    let error = decode_unverified(&with_options(&[1, 8, 9, 0, 0, 0, 0, 0, 0, 0])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "TCP header, byte 21: option kind 8 of 9 bytes, expected 10"
    );
    let error = decode(&SYN, &TO_CLIENT).map(|_| ());
    assert_eq!(error, Ok(()), "the sum does not see the direction");
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
fn every_flipped_bit_is_noticed() {
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

#[test]
fn segments_that_cannot_be_written() {
    let try_encode = |segment: &Segment, buffer: &mut [u8]| {
        encode(
            segment,
            Ports::default(),
            &TO_SERVER,
            Checksum::new(),
            buffer,
        )
    };
    let mut buffer = [0xaa; MAX_HEADER];
    let four = blocks(&[(1, 2), (3, 4), (5, 6), (7, 8)]);
    let mut segment = sack();

    let too_small = EncodeError::BufferTooSmall {
        needed: 60,
        available: 59,
    };
    assert_eq!(try_encode(&segment, &mut buffer[..59]), Err(too_small));
    segment.options.sack = four;
    assert_eq!(encoded_length(&segment), 68);
    let too_long = EncodeError::OptionsTooLong { length: 48 };
    assert_eq!(try_encode(&segment, &mut buffer), Err(too_long));
    segment.options.sack = blocks(&[(5, 5)]);
    let empty = EncodeError::SackBlock {
        start: SeqNo::new(5),
        end: SeqNo::new(5),
    };
    assert_eq!(try_encode(&segment, &mut buffer), Err(empty));
    segment.options.sack = SackBlocks::EMPTY;
    segment.options.window_scale = Some(15);
    assert_eq!(
        try_encode(&segment, &mut buffer),
        Err(EncodeError::WindowScale { shift: 15 })
    );
    segment.options.window_scale = None;
    segment.payload = 65_535 - 32 + 1;
    let over = EncodeError::TooLong { length: 65_536 };
    assert_eq!(try_encode(&segment, &mut buffer), Err(over));
    assert_eq!(
        buffer, [0xaa; MAX_HEADER],
        "a refused segment leaves the buffer alone"
    );
    segment.payload -= 1;
    assert_eq!(try_encode(&segment, &mut buffer), Ok(32));
}

#[test]
fn as_many_sack_blocks_fit_as_the_table_says() {
    let timestamps = Some(Timestamps::default());
    let none = Options::default();
    for (options, room) in [
        (none, 4),
        (
            Options {
                window_scale: Some(1),
                ..none
            },
            4,
        ),
        (
            Options {
                mss: Some(536),
                sack_permitted: true,
                ..none
            },
            3,
        ),
        (Options { timestamps, ..none }, 3),
        (
            Options {
                timestamps,
                sack_permitted: true,
                ..none
            },
            3,
        ),
        (
            Options {
                mss: Some(536),
                sack_permitted: true,
                window_scale: Some(1),
                ..none
            },
            3,
        ),
        (
            Options {
                timestamps,
                mss: Some(536),
                ..none
            },
            2,
        ),
        (syn().options, 2),
    ] {
        assert_eq!(sack_room(&options), room, "{options:?}");
        for count in 1..=4 {
            let mut sack = SackBlocks::EMPTY;
            (0..count).for_each(|at| {
                sack.push(SackBlock {
                    start: SeqNo::new(at * 2),
                    end: SeqNo::new(at * 2 + 1),
                });
            });
            let segment = Segment {
                options: Options { sack, ..options },
                ..Segment::default()
            };
            let mut buffer = [0; MAX_HEADER];
            let written = encode(
                &segment,
                Ports::default(),
                &TO_SERVER,
                Checksum::new(),
                &mut buffer,
            );
            assert_eq!(
                written.is_ok(),
                count as usize <= room,
                "{count} beside {options:?}"
            );
        }
    }
}

/// RFC 1071, word for word: sixteen bits at a time, the carry folded in after each.
fn slow_sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for word in bytes.chunks(2) {
        sum += u32::from(word[0]) << 8 | word.get(1).map_or(0, |&low| u32::from(low));
        if sum > 0xffff {
            sum -= 0xffff;
        }
    }
    sum as u16
}

prop_compose! {
    fn any_options()(
        mss in proptest::option::of(any::<u16>()),
        window_scale in proptest::option::of(0u8..=14),
        sack_permitted in any::<bool>(),
        timestamps in proptest::option::of((any::<u32>(), any::<u32>())),
        edges in proptest::collection::vec((any::<u32>(), 1u32..0x8000_0000), 0..=4),
    ) -> Options {
        let mut options = Options {
            mss,
            window_scale,
            sack_permitted,
            timestamps: timestamps.map(|(value, echo)| Timestamps { value, echo }),
            sack: SackBlocks::EMPTY,
        };
        for (start, length) in edges.into_iter().take(sack_room(&options)) {
            let start = SeqNo::new(start);
            options.sack.push(SackBlock { start, end: start + length });
        }
        options
    }
}

prop_compose! {
    fn any_segment()(
        sequence in any::<u32>(),
        acknowledgement in any::<u32>(),
        window in any::<u16>(),
        flags in any::<u8>(),
        options in any_options(),
    ) -> Segment {
        Segment {
            sequence: SeqNo::new(sequence),
            acknowledgement: SeqNo::new(acknowledgement),
            payload: 0,
            window,
            flags: Flags::from_bits(flags),
            options,
        }
    }
}

/// Whatever is read can be written and reads the same again, unless it was packed more densely than
/// the groups of the encoder.
fn assert_stable(bytes: &[u8]) {
    let Ok(first) = decode_unverified(bytes) else {
        return;
    };
    let mut again = [0; MAX_HEADER];
    let payload = Checksum::new().then(&bytes[first.payload.clone()]);
    match encode(&first.segment, first.ports, &TO_SERVER, payload, &mut again) {
        Ok(length) => {
            let mut whole = again[..length].to_vec();
            whole.extend_from_slice(&bytes[first.payload.clone()]);
            let second = decode(&whole, &TO_SERVER).unwrap();
            assert_eq!((second.ports, second.segment), (first.ports, first.segment));
            assert_eq!(second.payload, length..whole.len());
        }
        Err(EncodeError::OptionsTooLong { length }) => {
            assert!(length > 40 && encoded_length(&first.segment) == MIN_HEADER + length);
        }
        Err(EncodeError::TooLong { length }) => {
            assert!(
                length > 65_535
                    && length == (first.payload.len() + encoded_length(&first.segment)) as u64
            );
        }
        Err(error) => panic!("{error}"),
    }
}

proptest! {
    #[test]
    fn a_written_segment_reads_back(
        mut segment in any_segment(),
        source in any::<u16>(),
        destination in any::<u16>(),
        hosts in any::<[u32; 2]>(),
        payload in proptest::collection::vec(any::<u8>(), 0..1500),
    ) {
        segment.payload = payload.len() as u32;
        let ports = Ports { source, destination };
        let addresses =
            PseudoHeader::V4 { source: hosts[0].into(), destination: hosts[1].into() };
        let mut bytes = [0; MAX_HEADER];
        let length =
            encode(&segment, ports, &addresses, Checksum::new().then(&payload), &mut bytes).unwrap();
        prop_assert_eq!(length, encoded_length(&segment));
        prop_assert_eq!(length % 4, 0);
        let mut bytes = bytes[..length].to_vec();
        bytes.extend_from_slice(&payload);

        let read = decode(&bytes, &addresses).unwrap();
        prop_assert_eq!(read.segment, segment);
        prop_assert_eq!(read.ports, ports);
        prop_assert_eq!(&bytes[read.payload], &payload[..]);
        prop_assert_eq!(read.skipped_options, 0);

        let mut covered = Vec::new();
        covered.extend_from_slice(&hosts[0].to_be_bytes());
        covered.extend_from_slice(&hosts[1].to_be_bytes());
        covered.extend_from_slice(&[0, PROTOCOL_TCP]);
        covered.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
        covered.extend_from_slice(&bytes);
        prop_assert_eq!(slow_sum(&covered), 0xffff);
    }

    #[test]
    fn the_fast_sum_is_the_slow_sum(parts in proptest::collection::vec(
        proptest::collection::vec(any::<u8>(), 0..50), 0..5,
    )) {
        let sum = parts.iter().fold(Checksum::new(), |sum, part| sum.then(part));
        prop_assert_eq!(sum.folded(), slow_sum(&parts.concat()));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        let _ = decode(&bytes, &TO_SERVER);
        assert_stable(&bytes);
    }

    #[test]
    fn any_options_are_read_or_refused(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just(vec![0u8]), Just(vec![1]), Just(vec![4, 2]), Just(vec![2, 4, 5, 0xb4]),
                (0u8..=20).prop_map(|shift| vec![3, 3, shift]),
                any::<[u8; 8]>().prop_map(|stamps| [&[8, 10], &stamps[..]].concat()),
                any::<[u8; 8]>().prop_map(|block| [&[5, 10], &block[..]].concat()),
                any::<[u8; 16]>().prop_map(|block| [&[5, 18], &block[..]].concat()),
                any::<[u8; 24]>().prop_map(|block| [&[5, 26], &block[..]].concat()),
                (any::<u8>(), 0u8..12).prop_map(|(kind, length)| vec![kind, length]),
            ],
            0..8,
        ),
        payload in proptest::collection::vec(any::<u8>(), 0..9),
    ) {
        let mut options = pieces.concat();
        options.truncate(40);
        let mut bytes = with_options(&options);
        bytes.extend_from_slice(&payload);
        assert_stable(&bytes);
    }
}
