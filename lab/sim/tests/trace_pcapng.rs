//! Captures, as bytes worked out by hand, as parsed by a literal reader of the format, and as
//! parsed by tshark.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::Command;

use comity_sim::trace::pcapng::{
    Capture, InterfaceDescription, PacketKind, PacketRecord, PcapngError, PcapngWriter,
};
use comity_sim::trace::{flow_ports, node_address};
use comity_tcp::codec::EncodeError;
use comity_tcp::{Flags, Options, SackBlock, SackBlocks, Segment, Timestamps};
use comity_units::{Rate, SeqNo, Time};
use etherparse::{Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

const LINKS: [InterfaceDescription<'static>; 2] = [
    InterfaceDescription {
        name: "bottleneck",
        description: "client to server",
        rate: Some(Rate::from_mbps(10)),
    },
    InterfaceDescription {
        name: "return",
        description: "",
        rate: None,
    },
];

fn tcp(segment: &Segment, wire_bytes: u32) -> PacketRecord<'_> {
    PacketRecord {
        source: node_address(0).unwrap().into(),
        destination: node_address(1).unwrap().into(),
        ports: flow_ports(0).unwrap(),
        kind: PacketKind::Tcp(segment),
        wire_bytes,
        comment: None,
        dropped_before: 0,
    }
}

fn backwards(record: PacketRecord<'_>) -> PacketRecord<'_> {
    PacketRecord {
        source: record.destination,
        destination: record.source,
        ports: record.ports.reversed(),
        ..record
    }
}

fn udp(payload: u32, wire_bytes: u32) -> PacketRecord<'static> {
    PacketRecord {
        source: CLIENT,
        destination: SERVER,
        ports: flow_ports(1).unwrap(),
        kind: PacketKind::Udp { payload },
        wire_bytes,
        comment: None,
        dropped_before: 0,
    }
}

/// Two packets: an acknowledgement after 1 s and 1 ns, and a datagram that is dropped after 2³² ns.
#[test]
fn two_packets_by_hand() {
    let link = InterfaceDescription {
        name: "up",
        description: "",
        rate: None,
    };
    let mut writer = PcapngWriter::new(Vec::new(), &[link]).unwrap();
    let ack = Segment {
        sequence: SeqNo::new(1),
        acknowledgement: SeqNo::new(2),
        window: 0x0200,
        flags: Flags::ACK,
        ..Segment::default()
    };
    writer
        .packet(0, Time::from_nanos(1_000_000_001), &tcp(&ack, 40))
        .unwrap();
    let dropped = PacketRecord {
        comment: Some("dropped: queue full"),
        ..udp(1472, 1500)
    };
    writer
        .packet(0, Time::from_nanos(1 << 32), &dropped)
        .unwrap();
    let bytes = writer.finish().unwrap();

    #[rustfmt::skip]
    let expected: &[&[u8]] = &[
        // Section header block of 44 bytes, version 1.0, of unknown length.
        &[0x0a, 0x0d, 0x0d, 0x0a, 44, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0], &[0xff; 8],
        &[4, 0, 6, 0], b"comity", &[0, 0], &[0, 0, 0, 0], &[44, 0, 0, 0],
        // Interface description block of 40 bytes, link type 101, no snapshot length.
        &[1, 0, 0, 0, 40, 0, 0, 0, 101, 0, 0, 0, 0, 0, 0, 0],
        &[2, 0, 2, 0], b"up", &[0, 0], &[9, 0, 1, 0, 9, 0, 0, 0], &[0, 0, 0, 0], &[40, 0, 0, 0],
        // Enhanced packet block of 72 bytes: interface 0, 0x3b9aca01 ns, 40 bytes of 40.
        &[6, 0, 0, 0, 72, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0xca, 0x9a, 0x3b],
        &[40, 0, 0, 0, 40, 0, 0, 0],
        &[0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0x26, 0xce, 10, 0, 0, 1, 10, 0, 0, 2],
        // TCP: 141d + c000 + 7530 + 0001 + 0002 + 5010 + 0200 = 19b60, folded 9b61, complement
        // 649e.
        &[0xc0, 0, 0x75, 0x30, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 2, 0, 0x64, 0x9e, 0, 0],
        &[72, 0, 0, 0],
        // Enhanced packet block of 88 bytes: interface 0, 2³² ns, 28 bytes of 1500.
        &[6, 0, 0, 0, 88, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
        &[28, 0, 0, 0, 0xdc, 5, 0, 0],
        // IP: 4500 + 05dc + 4000 + 4011 + 0a00 + 0001 + 0a00 + 0002 = def0, complement 210f.
        &[0x45, 0, 5, 0xdc, 0, 0, 0x40, 0, 64, 17, 0x21, 0x0f, 10, 0, 0, 1, 10, 0, 0, 2],
        // UDP: 19dc + c001 + 7530 + 05c8 = 154d5, folded 54d6, complement ab29.
        &[0xc0, 1, 0x75, 0x30, 0x05, 0xc8, 0xab, 0x29],
        &[1, 0, 19, 0], b"dropped: queue full", &[0], &[0, 0, 0, 0], &[88, 0, 0, 0],
    ];
    assert_eq!(bytes, expected.concat());
}

fn timestamps(value: u32, echo: u32) -> Options {
    Options {
        timestamps: Some(Timestamps { value, echo }),
        ..Options::default()
    }
}

/// A handshake, four data segments (one is dropped), the ACK that reveals the loss, a segment with
/// ns-2's header sizes, a datagram, and a segment between IPv6 addresses.
fn sample(capture: Capture) -> Vec<u8> {
    let mut writer = PcapngWriter::new(Vec::new(), &LINKS)
        .unwrap()
        .keeping(capture);
    let syn_options = |value, echo| Options {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        ..timestamps(value, echo)
    };
    let syn = Segment {
        sequence: SeqNo::new(999),
        window: 64_240,
        flags: Flags::SYN,
        options: syn_options(1, 0),
        ..Segment::default()
    };
    writer
        .packet(0, Time::from_nanos(1), &tcp(&syn, 60))
        .unwrap();
    let syn_ack = Segment {
        sequence: SeqNo::new(4_999),
        acknowledgement: SeqNo::new(1_000),
        flags: Flags::SYN | Flags::ACK,
        options: syn_options(2, 1),
        ..syn
    };
    writer
        .packet(1, Time::from_millis(20), &backwards(tcp(&syn_ack, 60)))
        .unwrap();
    let mut data = Segment {
        sequence: SeqNo::new(1_000),
        acknowledgement: SeqNo::new(5_000),
        payload: 0,
        window: 502,
        flags: Flags::ACK,
        options: timestamps(3, 2),
        ..Segment::default()
    };
    writer
        .packet(0, Time::from_millis(40), &tcp(&data, 52))
        .unwrap();
    data.payload = 1448;
    for at in 0..4u32 {
        data.sequence = SeqNo::new(1_000 + 1448 * at);
        let comment = (at == 1).then_some("dropped: queue full");
        let now = Time::from_nanos(41_000_000 + 1_200_123 * u64::from(at));
        writer
            .packet(
                0,
                now,
                &PacketRecord {
                    comment,
                    ..tcp(&data, 1500)
                },
            )
            .unwrap();
    }
    let mut sack = SackBlocks::EMPTY;
    sack.push(SackBlock {
        start: SeqNo::new(3_896),
        end: SeqNo::new(6_792),
    });
    let ack = Segment {
        sequence: SeqNo::new(5_000),
        acknowledgement: SeqNo::new(2_448),
        window: 64_000,
        flags: Flags::ACK | Flags::ECE,
        options: Options {
            sack,
            ..timestamps(5, 3)
        },
        ..Segment::default()
    };
    writer
        .packet(1, Time::from_millis(70), &backwards(tcp(&ack, 64)))
        .unwrap();
    // ns-2 counts 40 bytes for all headers: the frame cannot be smaller than their 52.
    data.sequence = SeqNo::new(6_792);
    data.payload = 1000;
    writer
        .packet(0, Time::from_secs(2), &tcp(&data, 1040))
        .unwrap();
    // A link layer with 18 bytes beyond IP: a trailer.
    data.sequence = SeqNo::new(7_792);
    writer
        .packet(0, Time::from_secs(3), &tcp(&data, 1070))
        .unwrap();
    writer
        .packet(0, Time::from_secs(4), &udp(1316, 1344))
        .unwrap();
    let v6 = PacketRecord {
        source: IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1)),
        destination: IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2)),
        ..tcp(&data, 1072)
    };
    writer.packet(0, Time::from_secs(5), &v6).unwrap();
    writer.finish().unwrap()
}

/// A packet as parsed by a reader of the format.
struct Captured {
    interface: u32,
    nanos: u64,
    original: u32,
    frame: Vec<u8>,
    comment: Option<String>,
}

/// Parses the blocks of a little-endian file, by the text of the draft.
fn read_blocks(mut bytes: &[u8]) -> (Vec<String>, Vec<Captured>) {
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let half = |bytes: &[u8], at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap());
    let option_list = |mut options: &[u8]| {
        let mut found = Vec::new();
        while !options.is_empty() {
            let (code, length) = (half(options, 0), usize::from(half(options, 2)));
            if code == 0 {
                assert_eq!((length, options.len()), (0, 4), "the list ends the block");
                break;
            }
            found.push((code, options[4..4 + length].to_vec()));
            options = &options[4 + length.next_multiple_of(4)..];
        }
        found
    };
    let (mut interfaces, mut packets) = (Vec::new(), Vec::new());
    let mut first = true;
    while !bytes.is_empty() {
        let length = word(bytes, 4) as usize;
        assert_eq!(length % 4, 0);
        assert_eq!(
            word(bytes, length - 4) as usize,
            length,
            "both lengths agree"
        );
        let (kind, body) = (word(bytes, 0), &bytes[8..length - 4]);
        assert_eq!(first, kind == 0x0a0d_0d0a, "one section, at the beginning");
        first = false;
        match kind {
            0x0a0d_0d0a => assert_eq!(word(body, 0), 0x1a2b_3c4d),
            1 => {
                assert_eq!(half(body, 0), 101);
                let options = option_list(&body[8..]);
                assert!(options.contains(&(9, vec![9])), "nanoseconds");
                let name = options.iter().find(|(code, _)| *code == 2).unwrap();
                interfaces.push(String::from_utf8(name.1.clone()).unwrap());
            }
            6 => {
                let captured = word(body, 12) as usize;
                let options = option_list(&body[20 + captured.next_multiple_of(4)..]);
                packets.push(Captured {
                    interface: word(body, 0),
                    nanos: u64::from(word(body, 4)) << 32 | u64::from(word(body, 8)),
                    original: word(body, 16),
                    frame: body[20..20 + captured].to_vec(),
                    comment: options
                        .into_iter()
                        .find(|(code, _)| *code == 1)
                        .map(|(_, text)| String::from_utf8(text).unwrap()),
                });
            }
            other => panic!("block type {other}"),
        }
        bytes = &bytes[length..];
    }
    (interfaces, packets)
}

#[test]
fn an_independent_reader_finds_every_field() {
    let (interfaces, packets) = read_blocks(&sample(Capture::Headers));
    assert_eq!(interfaces, ["bottleneck", "return"]);
    assert_eq!(packets.len(), 12);
    let zeros = [0; 1500];

    let captured: Vec<_> = packets
        .iter()
        .map(|it| (it.interface, it.nanos, it.original))
        .collect();
    assert_eq!(
        captured,
        [
            (0, 1, 60),
            (1, 20_000_000, 60),
            (0, 40_000_000, 52),
            (0, 41_000_000, 1500),
            (0, 42_200_123, 1500),
            (0, 43_400_246, 1500),
            (0, 44_600_369, 1500),
            (1, 70_000_000, 64),
            (0, 2_000_000_000, 1052),
            (0, 3_000_000_000, 1070),
            (0, 4_000_000_000, 1344),
            (0, 5_000_000_000, 1072),
        ]
    );
    let comments: Vec<_> = packets.iter().map(|it| it.comment.as_deref()).collect();
    assert_eq!(comments[4], Some("dropped: queue full"));
    assert_eq!(comments.iter().flatten().count(), 1);

    for (at, packet) in packets.iter().enumerate().take(10) {
        let (ip, rest) = Ipv4Header::from_slice(&packet.frame).unwrap();
        let (tcp, rest) = TcpHeader::from_slice(rest).unwrap();
        assert!(rest.is_empty(), "headers only");
        assert_eq!(ip.header_checksum, ip.calc_header_checksum(), "{at}");
        let payload = usize::from(ip.total_len) - packet.frame.len();
        let checksum = tcp.calc_checksum_ipv4(&ip, &zeros[..payload]).unwrap();
        assert_eq!(tcp.checksum, checksum, "{at}");
        assert_eq!(
            payload,
            [0, 0, 0, 1448, 1448, 1448, 1448, 0, 1000, 1000][at]
        );
        let forward = packet.interface == 0;
        let ports = if forward {
            (49_152, 30_000)
        } else {
            (30_000, 49_152)
        };
        assert_eq!((tcp.source_port, tcp.destination_port), ports);
        assert_eq!(
            ip.source,
            if forward {
                [10, 0, 0, 1]
            } else {
                [10, 0, 0, 2]
            }
        );
    }

    let tcp_of = |at: usize| TcpHeader::from_slice(&packets[at].frame[20..]).unwrap().0;
    let syn = tcp_of(0);
    assert!(syn.syn && !syn.ack && syn.window_size == 64_240 && syn.sequence_number == 999);
    let options: Vec<_> = syn.options_iterator().map(Result::unwrap).collect();
    assert_eq!(
        options,
        [
            TcpOptionElement::MaximumSegmentSize(1460),
            TcpOptionElement::SelectiveAcknowledgementPermitted,
            TcpOptionElement::Timestamp(1, 0),
            TcpOptionElement::Noop,
            TcpOptionElement::WindowScale(7),
        ]
    );
    let ack = tcp_of(7);
    assert!(ack.ack && ack.ece && !ack.cwr && !ack.syn && !ack.psh);
    assert_eq!(
        (ack.sequence_number, ack.acknowledgment_number),
        (5_000, 2_448)
    );
    let sack = TcpOptionElement::SelectiveAcknowledgement((3_896, 6_792), [None; 3]);
    assert!(
        ack.options_iterator()
            .any(|option| option == Ok(sack.clone()))
    );

    let (ip, rest) = Ipv4Header::from_slice(&packets[10].frame).unwrap();
    let (udp, rest) = UdpHeader::from_slice(rest).unwrap();
    assert!(rest.is_empty());
    assert_eq!((ip.total_len, udp.length), (1344, 1324));
    assert_eq!((udp.source_port, udp.destination_port), (49_153, 30_000));
    assert_eq!(
        udp.checksum,
        udp.calc_checksum_ipv4(&ip, &zeros[..1316]).unwrap()
    );

    let (ip, rest) = etherparse::Ipv6Header::from_slice(&packets[11].frame).unwrap();
    let (tcp, _) = TcpHeader::from_slice(rest).unwrap();
    assert_eq!(ip.payload_length, 32 + 1000);
    assert_eq!(
        tcp.checksum,
        tcp.calc_checksum_ipv6(&ip, &zeros[..1000]).unwrap()
    );
}

#[test]
fn a_whole_capture_has_the_payload_as_zeros() {
    let (_, headers) = read_blocks(&sample(Capture::Headers));
    let (_, whole) = read_blocks(&sample(Capture::Whole));
    for (short, long) in headers.iter().zip(&whole) {
        let (front, payload) = long.frame.split_at(short.frame.len());
        assert_eq!(front, short.frame);
        assert!(payload.iter().all(|&byte| byte == 0));
        assert_eq!((short.nanos, short.original), (long.nanos, long.original));
    }
    let lengths: Vec<_> = whole.iter().map(|it| it.frame.len()).collect();
    assert_eq!(
        lengths,
        [
            60, 60, 52, 1500, 1500, 1500, 1500, 64, 1052, 1052, 1344, 1072
        ]
    );
}

#[test]
fn a_refused_packet_leaves_no_trace() {
    let mut writer = PcapngWriter::new(Vec::new(), &LINKS).unwrap();
    let segment = Segment {
        flags: Flags::ACK,
        ..Segment::default()
    };
    let good = tcp(&segment, 40);

    let error = writer.packet(2, Time::ZERO, &good).unwrap_err();
    assert!(matches!(
        error,
        PcapngError::Interface {
            interface: 2,
            count: 2
        }
    ));
    let mixed = PacketRecord {
        destination: Ipv6Addr::LOCALHOST.into(),
        ..good
    };
    let error = writer.packet(0, Time::ZERO, &mixed).unwrap_err();
    assert_eq!(
        error.to_string(),
        "packet from 10.0.0.1 to ::1: expected addresses of one family"
    );
    let error = writer.packet(0, Time::ZERO, &udp(65_508, 40)).unwrap_err();
    assert!(matches!(error, PcapngError::TooLong { bytes: 65_536 }));
    let shifted = Options {
        window_scale: Some(15),
        ..Options::default()
    };
    let unwritable = Segment {
        options: shifted,
        ..segment
    };
    let error = writer
        .packet(0, Time::ZERO, &tcp(&unwritable, 40))
        .unwrap_err();
    assert!(matches!(
        error,
        PcapngError::Header(EncodeError::WindowScale { shift: 15 })
    ));
    let novel = "x".repeat(65_536);
    let chatty = PacketRecord {
        comment: Some(&novel),
        ..good
    };
    let error = writer.packet(0, Time::ZERO, &chatty).unwrap_err();
    assert!(matches!(error, PcapngError::TextTooLong { length: 65_536 }));

    writer.packet(1, Time::ZERO, &udp(65_507, 40)).unwrap();
    let (_, packets) = read_blocks(&writer.finish().unwrap());
    assert_eq!(packets.len(), 1);
    assert_eq!(packets[0].original, 65_535);
}

/// The rows that tshark prints for a capture, or `None` if tshark is not installed.
fn tshark(name: &str, capture: &[u8], fields: &[&str]) -> Option<Vec<String>> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&file, capture).unwrap();
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields", "-E", "separator=|"]);
    for preference in [
        "tcp.check_checksum",
        "udp.check_checksum",
        "ip.check_checksum",
    ] {
        command.args(["-o", &format!("{preference}:TRUE")]);
    }
    command.args(["-o", "tcp.relative_sequence_numbers:FALSE"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = match command.arg("-r").arg(&file).output() {
        Ok(output) => output,
        Err(error) => {
            #[allow(clippy::print_stderr, reason = "a skipped test says why")]
            {
                eprintln!("skipped: tshark cannot be started: {error}");
            }
            return None;
        }
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    Some(
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect(),
    )
}

#[test]
fn tshark_sees_the_same_packets() {
    let fields = [
        "frame.interface_name",
        "frame.time_epoch",
        "frame.cap_len",
        "frame.len",
        "ip.len",
        "tcp.srcport",
        "tcp.dstport",
        "tcp.seq_raw",
        "tcp.ack_raw",
        "tcp.flags",
        "tcp.len",
        "tcp.window_size_value",
        "frame.comment",
    ];
    let Some(rows) = tshark("fields.pcapng", &sample(Capture::Headers), &fields) else {
        return;
    };
    assert_eq!(
        rows,
        [
            "bottleneck|0.000000001|60|60|60|49152|30000|999|0|0x0002|0|64240|",
            "return|0.020000000|60|60|60|30000|49152|4999|1000|0x0012|0|64240|",
            "bottleneck|0.040000000|52|52|52|49152|30000|1000|5000|0x0010|0|502|",
            "bottleneck|0.041000000|52|1500|1500|49152|30000|1000|5000|0x0010|1448|502|",
            "bottleneck|0.042200123|52|1500|1500|49152|30000|2448|5000|0x0010|1448|502|dropped: queue full",
            "bottleneck|0.043400246|52|1500|1500|49152|30000|3896|5000|0x0010|1448|502|",
            "bottleneck|0.044600369|52|1500|1500|49152|30000|5344|5000|0x0010|1448|502|",
            "return|0.070000000|64|64|64|30000|49152|5000|2448|0x0050|0|64000|",
            "bottleneck|2.000000000|52|1052|1052|49152|30000|6792|5000|0x0010|1000|502|",
            "bottleneck|3.000000000|52|1070|1052|49152|30000|7792|5000|0x0010|1000|502|",
            "bottleneck|4.000000000|28|1344|1344||||||||",
            "bottleneck|5.000000000|72|1072||49152|30000|7792|5000|0x0010|1000|502|",
        ]
    );

    let fields = [
        "tcp.options.mss_val",
        "tcp.options.wscale.shift",
        "tcp.options.sack_perm",
        "tcp.options.timestamp.tsval",
        "tcp.options.timestamp.tsecr",
        "tcp.options.sack_le",
        "tcp.options.sack_re",
    ];
    let options = tshark("options.pcapng", &sample(Capture::Headers), &fields).unwrap();
    assert_eq!(
        options[0].split('|').take(2).collect::<Vec<_>>(),
        ["1460", "7"]
    );
    assert_eq!(
        options[0].split('|').skip(3).collect::<Vec<_>>(),
        ["1", "0", "", ""]
    );
    assert_ne!(options[0].split('|').nth(2), Some(""), "SACK permitted");
    assert_eq!(options[3], "|||3|2||");
    assert_eq!(options[7], "|||5|3|3896|6792");
}

#[test]
fn tshark_verifies_every_checksum_and_sees_no_gap() {
    let fields = [
        "ip.checksum.status",
        "tcp.checksum.status",
        "udp.checksum.status",
        "_ws.malformed",
        "tcp.analysis.lost_segment",
        "tcp.analysis.retransmission",
        "tcp.analysis.flags",
    ];
    // Sizes that followed the wire instead of the payload would show as lost and retransmitted
    // segments. 1 is good, 2 is unverified: a header alone does not verify a payload.
    let Some(whole) = tshark("whole.pcapng", &sample(Capture::Whole), &fields) else {
        return;
    };
    let mut expected = vec!["1|1|||||"; 10];
    expected.extend(["1||1||||", "|1|||||"]);
    assert_eq!(whole, expected);
    let headers = tshark("headers.pcapng", &sample(Capture::Headers), &fields[..4]).unwrap();
    let mut expected = ["1|1||"; 10];
    expected[3..7].fill("1|2||");
    expected[8..].fill("1|2||");
    assert_eq!(headers[..10], expected);
    assert_eq!(headers[10..], ["1||2|", "|2||"]);
}
