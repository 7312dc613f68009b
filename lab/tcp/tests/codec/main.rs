//! TCP headers against bytes worked out by hand from the RFCs, and round trips.

mod properties;
mod reading;
mod writing;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;

use comity_tcp::checksum::{Checksum, PseudoHeader};
use comity_tcp::codec::{
    DecodeError, Decoded, EncodeError, MAX_HEADER, Ports, decode, decode_unverified, encode,
    encoded_length,
};
use comity_tcp::timeline::SeqUpdate;
use comity_tcp::{Flags, Options, SackBlock, SackBlocks, Segment, Timestamps, Wave};
use comity_units::SeqNo;

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

/// One's complement sum of the words: pseudo header 1431, ports c050, sequence 0406, offset, flags
/// and window 19af2, options 5c34. Together 2cfad, folded cfaf, complement 3050.
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
            ..Options::default()
        },
        ..Segment::default()
    }
}

/// The header of a data segment of a time-lined stream, as in docs/protocol/tcp-options.md.
const SEQ_UPDATE: [u8; 28] = [
    0xc0, 0x00, 0x00, 0x50, // 49152 to 80
    0x00, 0x0a, 0xae, 0x60, // sequence 700000
    0x00, 0x00, 0x00, 0x01, // acknowledgement 1
    0x70, 0x10, 0x3a, 0x98, // seven words, ACK, window 15000
    0x00, 0x00, 0x00, 0x00, // checksum (not verified here), urgent pointer
    0xfd, 0x08, 0x54, 0x4c, // experiment, 8 bytes, "TL"
    0x00, 0x0a, 0xae, 0x60, // expected: 700000
];

/// The same with a void from 650000 to 700000, in a stream whose receiver expects 640000.
const SEQ_UPDATE_AND_VOID: [u8; 36] = [
    0xc0, 0x00, 0x00, 0x50, //
    0x00, 0x0a, 0xae, 0x60, //
    0x00, 0x00, 0x00, 0x01, //
    0x90, 0x10, 0x3a, 0x98, // nine words
    0x00, 0x00, 0x00, 0x00, //
    0xfd, 0x10, 0x54, 0x4c, // experiment, 16 bytes, "TL"
    0x00, 0x09, 0xc4, 0x00, // expected: 640000
    0x00, 0x09, 0xeb, 0x10, // void from 650000
    0x00, 0x0a, 0xae, 0x60, // to 700000
];

fn seq_update(update: SeqUpdate) -> Segment {
    Segment {
        sequence: SeqNo::new(700_000),
        acknowledgement: SeqNo::new(1),
        window: 15_000,
        flags: Flags::ACK,
        options: Options {
            seq_update: Some(update),
            ..Options::default()
        },
        ..Segment::default()
    }
}

fn with_void() -> SeqUpdate {
    SeqUpdate {
        expected: SeqNo::new(640_000),
        void_start: SeqNo::new(650_000),
        void_end: SeqNo::new(700_000),
    }
}

#[test]
fn seq_update_matches_the_protocol() {
    let short = SeqUpdate::to(SeqNo::new(700_000));
    for (bytes, update) in [
        (&SEQ_UPDATE[..], short),
        (&SEQ_UPDATE_AND_VOID[..], with_void()),
    ] {
        let segment = seq_update(update);
        let read = decode_unverified(bytes).unwrap();
        assert_eq!(read.segment, segment);
        assert_eq!(read.skipped_options, 0);
        let mut buffer = [0; MAX_HEADER];
        let sum = Checksum::new();
        let length = encode(&segment, read.ports, &TO_SERVER, sum, &mut buffer).unwrap();
        assert_eq!(length, bytes.len());
        assert_eq!(segment.header_length() as usize, length);
        assert_eq!(buffer[..16], bytes[..16]);
        assert_eq!(buffer[20..length], bytes[20..]);
    }
}

#[test]
fn other_forms_of_seq_update_are_refused_and_other_experiments_skipped() {
    let with_option = |option: &[u8]| {
        let mut bytes = SEQ_UPDATE[..20].to_vec();
        bytes.extend(option);
        while !bytes.len().is_multiple_of(4) {
            bytes.push(0);
        }
        bytes[12] = (bytes.len() as u8 / 4) << 4;
        decode_unverified(&bytes)
    };
    for length in [4, 5, 7, 12, 20] {
        let mut option = vec![0; usize::from(length)];
        option[..4].copy_from_slice(&[0xfd, length, 0x54, 0x4c]);
        assert_eq!(
            with_option(&option),
            Err(DecodeError::OptionWrongLength {
                kind: 253,
                length,
                offset: 20
            })
        );
    }
    let mut empty = SEQ_UPDATE_AND_VOID[20..].to_vec();
    empty.copy_within(8..12, 12);
    let number = SeqNo::new(650_000);
    assert_eq!(
        with_option(&empty),
        Err(DecodeError::Void {
            start: number,
            end: number,
            offset: 20
        })
    );
    let twice = [&SEQ_UPDATE[20..], &SEQ_UPDATE[20..]].concat();
    assert_eq!(
        with_option(&twice),
        Err(DecodeError::DuplicateOption {
            kind: 253,
            offset: 28
        })
    );
    let other = with_option(&[0xfd, 0x08, 0x54, 0x4d, 0, 0, 0, 0]).unwrap();
    assert_eq!(
        (other.skipped_options, other.segment.options.seq_update),
        (1, None)
    );
    let reversed = SeqUpdate {
        void_start: SeqNo::new(700_000),
        void_end: SeqNo::new(650_000),
        ..with_void()
    };
    let mut buffer = [0; MAX_HEADER];
    assert_eq!(
        encode(
            &seq_update(reversed),
            Ports::default(),
            &TO_SERVER,
            Checksum::new(),
            &mut buffer
        ),
        Err(EncodeError::Void {
            start: reversed.void_start,
            end: reversed.void_end
        })
    );
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

/// The options of TCP-Real on a segment with payload and acknowledgement, as in
/// docs/protocol/tcp-options.md.
const REAL_OPTIONS: [u8; 12] = [
    254, 4, 0x00, 0x18, // TCP_REAL: level 24
    254, 8, 0xff, 0xff, 0x00, 0x30, 0x00, 0x2f, // segment 47 of the 48 of wave 65535
];

fn real_options() -> Options {
    Options {
        level: NonZeroU16::new(24),
        wave: NonZeroU16::new(48).map(|segments| Wave {
            wave: 65_535,
            segments,
            position: 47,
        }),
        ..Options::default()
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
        ecn: comity_congestion::Ecn::NotCapable,
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
