//! TCP headers against bytes worked out by hand from the RFCs, and against themselves.

mod properties;
mod reading;
mod writing;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;

use comity_transport::checksum::{Checksum, PseudoHeader};
use comity_transport::tcp::codec::{Decoded, Ports, decode, encode, encoded_length};
use comity_transport::tcp::{Flags, Options, SackBlock, SackBlocks, Segment, Timestamps, Wave};
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
            ..Options::default()
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

/// The options of TCP-Real on a segment with payload that also acknowledges, as docs/protocol.md has them.
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
