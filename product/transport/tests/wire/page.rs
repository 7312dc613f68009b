//! `docs/protocol/core.md` against the code.

use comity_transport::wire::frame::{
    self, Ack, AckRange, AckRanges, Content, Data, Floor, Frame, Framing, Section, SectionHeader,
};
use comity_transport::wire::header::{self, ConnectionId, Packet};
use comity_transport::wire::{CloseCode, Stamp, limits};
use comity_units::{PacketNumber, Span, Time};

use crate::wire::bytes;

const PAGE: &str = include_str!("../../../../docs/protocol/core.md");

/// The example of the page as values of the code.
fn example() -> (header::Data, Stamp, Vec<Frame<'static>>) {
    const RANGES: &[AckRange] = &[
        AckRange {
            first: PacketNumber::new(37),
            last: PacketNumber::new(40),
        },
        AckRange {
            first: PacketNumber::new(24),
            last: PacketNumber::new(34),
        },
    ];
    let header = header::Data {
        key_phase: false,
        destination: ConnectionId::new(0x1122_3344_5566_7788),
        number: 42,
    };
    let ack = Ack {
        ranges: AckRanges::new(RANGES).expect("the ranges descend"),
        delay: Span::from_micros(250),
        arrival: Stamp::from_micros(999_000),
        ecn: None,
        proof: None,
    };
    let floor = Floor {
        stream: 2,
        floor: 7,
    };
    let first = Section {
        header: SectionHeader {
            stream: 1,
            section: 9,
            floor: 7,
            offset: 1_200,
            total: 5_000,
            source_time: Time::from_micros(900_000),
            deadline: Time::from_micros(1_020_000),
            importance: 200,
            needs: Some(8),
            is_retransmission: false,
        },
        framing: Framing::Length,
        data: Data::Bytes(&[0xde, 0xad, 0xbe, 0xef]),
    };
    let second = Section {
        header: SectionHeader {
            stream: 1,
            section: 8,
            floor: 7,
            offset: 0,
            total: 3,
            source_time: Time::from_micros(866_667),
            deadline: Time::MAX,
            importance: 0,
            needs: None,
            is_retransmission: true,
        },
        framing: Framing::ToEnd,
        data: Data::Bytes(b"abc"),
    };
    let frames = vec![
        Frame::Ack(ack),
        Frame::Floor(floor),
        Frame::Section(first),
        Frame::Section(second),
    ];
    (header, Stamp::from_micros(1_000_000), frames)
}

#[test]
fn the_example_on_the_page_is_read_and_written() {
    let (_, after) = PAGE
        .split_once("```hex\n")
        .expect("the page has an example");
    let (block, _) = after.split_once("```").expect("the example ends");
    let on_the_page = bytes(block);
    let (header, departure, frames) = example();

    let Ok(Packet::Data {
        header: read,
        associated,
        sealed: payload,
    }) = header::decode(&on_the_page)
    else {
        panic!("the example is a Data packet")
    };
    assert_eq!(read, header);
    assert_eq!(associated, header.encode());
    assert_eq!(header::destination(&on_the_page), Some(header.destination));
    assert_eq!(header::destination(&on_the_page[..8]), None);
    let read = frame::decode(payload, Content::Present).expect("the payload has frames");
    assert_eq!(read.departure, departure);
    assert_eq!(
        read.frames.collect::<Result<Vec<_>, _>>(),
        Ok(frames.clone())
    );

    let mut written = header.encode().to_vec();
    frame::encode_departure(departure, &mut written);
    for frame in frames {
        frame
            .encode(&mut written)
            .expect("the example can be written");
    }
    assert_eq!(written, on_the_page);
}

/// The rows of the tables under a heading, as cells.
fn rows(heading: &str) -> Vec<Vec<&'static str>> {
    let (_, after) = PAGE
        .split_once(&format!("\n## {heading}\n"))
        .expect("the page has the heading");
    let section = after.split("\n## ").next().unwrap_or_default();
    section
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix('|'))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect()
}

#[test]
fn the_limits_on_the_page_are_those_of_the_code() {
    let expected: Vec<(String, u64)> = [
        ("MIN_INITIAL", limits::MIN_INITIAL as u64),
        ("MAX_DATAGRAM", limits::MAX_DATAGRAM as u64),
        ("DATA_HEADER", limits::DATA_HEADER as u64),
        ("TAG", limits::TAG as u64),
        ("DEPARTURE", limits::DEPARTURE as u64),
        ("MAX_COOKIE", limits::MAX_COOKIE as u64),
        ("MAX_TICKET", limits::MAX_TICKET as u64),
        ("MAX_HANDSHAKE", limits::MAX_HANDSHAKE as u64),
        ("MAX_VERSIONS", limits::MAX_VERSIONS as u64),
        ("MAX_PARAMETERS", limits::MAX_PARAMETERS as u64),
        ("MAX_PARAMETER_COUNT", limits::MAX_PARAMETER_COUNT as u64),
        ("MAX_STREAM_NAME", limits::MAX_STREAM_NAME as u64),
        ("MAX_NAME", limits::MAX_NAME as u64),
        ("MAX_METER_PARAMETERS", limits::MAX_METER_PARAMETERS as u64),
        ("MAX_PACKET_NUMBER", limits::MAX_PACKET_NUMBER),
        ("MAX_ACK_RANGES", limits::MAX_ACK_RANGES as u64),
        ("MAX_SECTION", u64::from(limits::MAX_SECTION)),
        ("MAX_SECTION_ID", limits::MAX_SECTION_ID),
        ("MAX_OPEN_SECTIONS", limits::MAX_OPEN_SECTIONS),
        ("MAX_TIME_US", limits::MAX_TIME_US),
        ("MAX_REASON", limits::MAX_REASON as u64),
        ("MAX_DRIFT_PPB", limits::MAX_DRIFT_PPB as u64),
    ]
    .map(|(name, value)| (format!("`{name}`"), value))
    .into();
    let on_the_page: Vec<(String, u64)> = rows("Limits")
        .into_iter()
        .skip(1)
        .map(|row| (row[0].to_owned(), row[1].parse().expect("a number")))
        .collect();
    assert_eq!(on_the_page, expected);
}

#[test]
fn the_codes_on_the_page_are_those_of_the_code() {
    let on_the_page = rows("Error codes");
    assert_eq!(on_the_page.len(), 1 + 14);
    for row in &on_the_page[1..] {
        let digits = row[0].strip_prefix("0x").expect("codes are hexadecimal");
        let code = CloseCode::new(u64::from_str_radix(digits, 16).expect("a number"));
        assert_eq!(code.meaning(), Some(row[2]), "{}", row[1]);
    }
    assert_eq!(CloseCode::new(0x0d).meaning(), None);
    assert_eq!(
        CloseCode::FRAME_ENCODING.to_string(),
        "malformed frame (0x2)"
    );
}
