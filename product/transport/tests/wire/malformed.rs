//! Invalid packets, and the error for each.

use comity_congestion::{Report, Tag};
use comity_transport::timeline::Reason;
use comity_transport::wire::frame::{
    Close, Content, Credit, Data, Dropped, Floor, Frame, Framing, Section, SectionHeader, decode,
};
use comity_transport::wire::header::{
    self, Accept, Answer, Confirm, ConnectionId, Initial, Pattern, Retry,
    encode_version_negotiation,
};
use comity_transport::wire::limits::MAX_SECTION_COUNT;
use comity_transport::wire::parameters::Parameters;
use comity_transport::wire::{CloseCode, DecodeError, varint};
use comity_units::{Rate, Span, Time};

use crate::wire::bytes;

/// The error in a payload with these frames after a departure of 4 bytes.
fn error_in(frames: &str, content: Content) -> DecodeError {
    let payload = bytes(&format!("00000000 {frames}"));
    let mut read = decode(&payload, content)
        .expect("the payload has a frame")
        .frames;
    let error = read.find_map(Result::err);
    assert_eq!(read.next(), None, "nothing follows an error");
    error.unwrap_or_else(|| panic!("{frames} was read without an error"))
}

#[test]
fn payloads() {
    for (payload, sentence) in [
        ("", "byte 0, payload, departure: found 0 bytes, expected 4"),
        (
            "000000",
            "byte 0, payload, departure: found 3 bytes, expected 4",
        ),
        (
            "00000000",
            "byte 4, payload, frame type: found 0 bytes, expected 1",
        ),
    ] {
        let error = decode(&bytes(payload), Content::Present).unwrap_err();
        assert_eq!(error.to_string(), sentence);
        assert_eq!(error.code(), CloseCode::FRAME_ENCODING);
    }
}

#[test]
fn frames() {
    for (frames, sentence) in [
        // Ack: largest, delay, arrival, count, ranges.
        (
            "02",
            "byte 5, Ack frame, largest: found 0 bytes, expected 1",
        ),
        (
            "01 02 40",
            "byte 6, Ack frame, largest: found 1 bytes, expected 2",
        ),
        (
            "02 05 c020000000000000 00000000 00 00",
            "byte 6, Ack frame, delay: found 9007199254740992, expected 0 to 9007199254740991",
        ),
        (
            "02 05 00 0000",
            "byte 7, Ack frame, arrival: found 2 bytes, expected 4",
        ),
        (
            "02 05 00 00000000 4080 00",
            "byte 11, Ack frame, range count: found 128, expected 0 to 127",
        ),
        (
            "02 05 00 00000000 00 06",
            "byte 12, Ack frame, range: found 6, expected 0 to 5",
        ),
        (
            "02 05 00 00000000 01 04 00 00",
            "byte 11, Ack frame, range count: found 1, expected 0",
        ),
        (
            "02 05 00 00000000 01 03 01 00",
            "byte 13, Ack frame, gap: found 1, expected 0",
        ),
        (
            "02 09 00 00000000 01 03 01 04",
            "byte 14, Ack frame, range: found 4, expected 0 to 3",
        ),
        (
            "02 09 00 00000000 01 03 01",
            "byte 14, Ack frame, range: found 0 bytes, expected 1",
        ),
        (
            "03 09 00 00000000 00 00 01 02",
            "byte 15, Ack frame, ce: found 0 bytes, expected 1",
        ),
        // Section: stream, section, floor, offset, total, source time, deadline, importance, needs.
        (
            "24 80010000 00 00 00 01 00 00 00 00 ff",
            "byte 5, Section frame, stream: found 65536, expected 0 to 65535",
        ),
        (
            "24 00 ffffffffffffffff 00 00 01 00 00 00 00 ff",
            "byte 6, Section frame, section: found 4611686018427387903, expected 0 to \
             281474976710654",
        ),
        (
            "20 00 05 06 00 01 00 00 ff",
            "byte 7, Section frame, floor: found 6, expected 0 to 5",
        ),
        (
            "20 00 05",
            "byte 7, Section frame, floor: found 0 bytes, expected 1",
        ),
        (
            "24 00 00 00 01 01 00 00 00 00 ff",
            "byte 8, Section frame, offset: found 1, expected 0",
        ),
        (
            "24 00 00 00 00 84000001 00 00 00 00 ff",
            "byte 9, Section frame, total: found 67108865, expected 1 to 67108864",
        ),
        (
            "24 00 00 00 00 00 00 00 00 00 ff",
            "byte 9, Section frame, total: found 0, expected 1 to 67108864",
        ),
        (
            "25 00 00 00 00 00 00 01 00 00 00",
            "byte 9, Section frame, total: found 0, expected 1 to 67108864",
        ),
        (
            "24 00 00 00 00 01 c020000000000000 00 00 00 ff",
            "byte 10, Section frame, source time: found 9007199254740992, expected 0 to \
             9007199254740991",
        ),
        (
            "24 00 00 00 00 01 00 c020000000000000 00 00 ff",
            "byte 11, Section frame, deadline: found 9007199254740992, expected 0 to \
             9007199254740991",
        ),
        (
            "28 00 00 00 00 01 00 c000083126e978d6 ff",
            "byte 11, Section frame, deadline: found 9007199254742, expected 0 to \
             9007199254741",
        ),
        (
            "24 00 00 00 00 01 00 00",
            "byte 12, Section frame, importance: found 0 bytes, expected 1",
        ),
        (
            "24 00 05 00 00 01 00 00 00 06 ff",
            "byte 13, Section frame, needs: found 6, expected 0 to 5",
        ),
        (
            "24 00 00 00 00 01 00 00 00 00",
            "byte 14, Section frame, data: found 0, expected 1",
        ),
        (
            "20 00 00 00 00 01 00 00",
            "byte 12, Section frame, data: found 0, expected 1",
        ),
        (
            "24 00 00 00 00 01 00 00 00 00 ff ff",
            "byte 14, Section frame, data: found 2, expected 1",
        ),
        (
            "25 00 00 00 00 09 00 00 00 00 00",
            "byte 14, Section frame, length: found 0, expected 1 to 9",
        ),
        (
            "25 00 00 00 05 09 00 00 00 00 05 ff ff ff ff ff",
            "byte 14, Section frame, length: found 5, expected 1 to 4",
        ),
        (
            "25 00 00 00 00 09 00 00 00 00 05 ff ff",
            "byte 15, Section frame, data: found 2 bytes, expected 5",
        ),
        (
            "08 01",
            "byte 6, Floor frame, floor: found 0 bytes, expected 1",
        ),
        (
            "08 01 c001000000000000",
            "byte 6, Floor frame, floor: found 281474976710656, expected 0 to 281474976710655",
        ),
        (
            "09 00 00 05",
            "byte 7, Drop frame, reason: found 0x5, expected a known value",
        ),
        (
            "09 00 ffffffffffffffff 00",
            "byte 6, Drop frame, section: found 4611686018427387903, expected 0 to 281474976710654",
        ),
        (
            "09 00 00",
            "byte 7, Drop frame, reason: found 0 bytes, expected 1",
        ),
        (
            "0a 00 00",
            "byte 6, Credit frame, sections: found 0, expected 1 to 65536",
        ),
        (
            "0b 00",
            "byte 5, Tag frame, kind: found 0x0, expected a known value",
        ),
        (
            "0b 01 0000 0000 0000",
            "byte 8, Tag frame, segments: found 0, expected 1 to 65535",
        ),
        (
            "0b 01 0000 0002 0003",
            "byte 10, Tag frame, position: found 3, expected 1 to 2",
        ),
        (
            "0c 04",
            "byte 5, Feedback frame, kind: found 0x4, expected a known value",
        ),
        (
            "0c 01 0000",
            "byte 6, Feedback frame, level: found 0, expected 1 to 65535",
        ),
        (
            // The number after 1, and NaN and -0 have larger bits still.
            "0c 02 3ff0000000000001 00",
            "byte 6, Feedback frame, loss event rate (its bits): found 4607182418800017409, \
             expected 0 to 4607182418800017408",
        ),
        (
            "0d 00 00 00 00 00 00 00 00 00 00 00 80000000 01 f7359401",
            "byte 21, payload, frame type: found 0xf7, expected a known value",
        ),
        (
            "0d 00 00 00 00 00 00 00 00 00 00 00 c000000077359401",
            "byte 16, ReceiverReport frame, clock drift: found 2000000001, expected 0 to 2000000000",
        ),
        (
            "0e 0102",
            "byte 5, PathChallenge frame, challenge: found 2 bytes, expected 8",
        ),
        (
            "0f",
            "byte 5, PathResponse frame, challenge: found 0 bytes, expected 8",
        ),
        (
            "10 00 02 61",
            "byte 7, Close frame, reason: found 1 bytes, expected 2",
        ),
        (
            "10 00 02 61 ff",
            "byte 7, Close frame, reason: found a byte that is not UTF-8 at 1, expected text",
        ),
        (
            "11 00",
            "byte 6, End frame, sections: found 0 bytes, expected 1",
        ),
        (
            "11 00 c001000000000000",
            "byte 6, End frame, sections: found 281474976710656, expected 0 to 281474976710655",
        ),
    ] {
        assert_eq!(error_in(frames, Content::Present).to_string(), sentence);
    }
    let unknown = error_in("00 01 13", Content::Present);
    assert_eq!(
        unknown.to_string(),
        "byte 6, payload, frame type: found 0x13, expected a known value"
    );
    assert_eq!(unknown.code(), CloseCode::UNKNOWN_FRAME);
    // The neighbours of assigned types.
    for kind in [0x04, 0x05, 0x06, 0x07, 0x1f, 0x40] {
        let frame = format!("{kind:02x} 00 00 00 01 00 00 00 00 ff");
        let error = error_in(&frame, Content::Present);
        let expected =
            format!("byte 4, payload, frame type: found {kind:#x}, expected a known value");
        assert_eq!(error.to_string(), expected);
    }
    // Only the type of a frame is unknown in that sense, not the kind of a Tag or of Feedback, nor
    // the reason of a Drop.
    for (frame, field) in [
        ("0b 04", "kind"),
        ("0c 00", "kind"),
        ("09 00 00 05", "reason"),
    ] {
        let error = error_in(frame, Content::Present);
        assert_eq!(
            (error.field, error.code()),
            (field, CloseCode::FRAME_ENCODING)
        );
    }
    let truncated = error_in("02", Content::Present);
    assert_eq!(truncated.code(), CloseCode::FRAME_ENCODING);
    for (rate, name) in [("7ff8000000000000", "NaN"), ("8000000000000000", "-0")] {
        let error = error_in(&format!("0c 02 {rate} 00"), Content::Present);
        assert_eq!(error.field, "loss event rate (its bits)", "{name}");
    }
}

#[test]
fn elided_sections_have_a_length() {
    for (frame, sentence) in [
        (
            "20 00 00 00 00 01 00 00",
            "byte 12, Section frame, length: found 0 bytes, expected 1",
        ),
        (
            "20 00 00 00 00 01 00 00 02",
            "byte 12, Section frame, length: found 2, expected 1",
        ),
        (
            "21 00 00 00 00 01 00 00 02",
            "byte 12, Section frame, length: found 2, expected 1",
        ),
        (
            // Data that extends to the end leaves no room for the Ping frame.
            "20 00 00 00 00 01 00 00 01 01",
            "byte 13, Section frame, data: found 1 bytes after the end, expected none",
        ),
    ] {
        assert_eq!(error_in(frame, Content::Elided).to_string(), sentence);
    }
}

#[test]
fn datagrams() {
    let padded = |start: &str| {
        let mut datagram = bytes(start);
        datagram.resize(1_200, 0);
        datagram
    };
    let mut dirty = padded("10 00000002 0000000000000001 00 00 0001 ff");
    dirty[1_000] = 7;
    for (datagram, sentence) in [
        (vec![], "byte 0, datagram, kind: found 0 bytes, expected 1"),
        (
            bytes("00"),
            "byte 0, datagram, kind: found 0x0, expected a known value",
        ),
        (
            bytes("9f"),
            "byte 0, datagram, kind: found 0x9, expected a known value",
        ),
        (
            bytes("61 00"),
            "byte 0, Confirm packet, flags: found 1, expected 0",
        ),
        (
            bytes("60 02 07"),
            "byte 2, Confirm packet, ticket: found 1 bytes, expected 2",
        ),
        (
            bytes("80 0000000000000001 00"),
            "byte 9, Reset packet, token: found 1 bytes, expected 16",
        ),
        (
            bytes("80 0000000000000001 00000000000000000000000000000000 00"),
            "byte 25, Reset packet, end: found 1 bytes after the end, expected none",
        ),
        (
            bytes("70 0000000000000001"),
            "byte 9, Accept packet, message length: found 0, expected 1 to 928",
        ),
        (
            vec![0; 65_508],
            "byte 0, datagram, size: found 65508, expected 1 to 65507",
        ),
        (
            padded("11"),
            "byte 0, Initial packet, flags: found 1, expected 0",
        ),
        (
            bytes("10 00000002"),
            "byte 0, Initial packet, size: found 5, expected 1200 to 65507",
        ),
        (
            padded("10 00000002 0000000000000001 04"),
            "byte 13, Initial packet, pattern: found 0x4, expected a known value",
        ),
        (
            padded("10 00000002 0000000000000001 00 00 03a1"),
            "byte 15, Initial packet, message length: found 929, expected 0 to 928",
        ),
        (
            dirty,
            "byte 1000, Initial packet, padding: found 7, expected 0",
        ),
        (
            bytes("20 00000003 0000000000000001 01 ff"),
            "byte 1, Retry packet, version: found 3, expected 2",
        ),
        (
            bytes("20 00000002 0000000000000001 00"),
            "byte 13, Retry packet, cookie length: found 0, expected 1 to 255",
        ),
        (
            bytes("20 00000002 0000000000000001 02 ff"),
            "byte 14, Retry packet, cookie: found 1 bytes, expected 2",
        ),
        (
            bytes("20 00000002 0000000000000001 01 ff ff"),
            "byte 15, Retry packet, end: found 1 bytes after the end, expected none",
        ),
        (
            bytes("30 00000002 0000000000000001 01 ff"),
            "byte 15, Answer packet, message length: found 0, expected 1 to 928",
        ),
        (
            bytes("40 0000000000000001 000000"),
            "byte 9, Data packet, number: found 3 bytes, expected 4",
        ),
        (
            bytes("40 0000000000000001 00000001"),
            "byte 13, Data packet, sealed payload: found 0 bytes, expected 1",
        ),
        (
            bytes("50 0000000000000001"),
            "byte 9, VersionNegotiation packet, version count: found 0, expected 1 to 16",
        ),
        (
            bytes("50 0000000000000001 00000001 0000"),
            "byte 13, VersionNegotiation packet, version: found 2 bytes, expected 4",
        ),
    ] {
        let error = header::decode(&datagram).unwrap_err();
        assert_eq!(error.to_string(), sentence);
    }
}

#[test]
fn parameters() {
    let many: String = (0..65).map(|id| format!("80001{id:03x} 00 ")).collect();
    let long = format!("4100 4385 {}", "00".repeat(901));
    for (list, sentence) in [
        (
            "01",
            "byte 1, transport parameters, latency: found 0 bytes, expected 1",
        ),
        (
            "01 00",
            "byte 2, transport parameters, latency: found 0 bytes, expected 1",
        ),
        (
            "01 02 05",
            "byte 1, transport parameters, latency: found 2, expected 1",
        ),
        (
            "02 01 03",
            "byte 2, transport parameters, reliability: found 3, expected 0 to 2",
        ),
        (
            "03 01 02",
            "byte 2, transport parameters, deliver: found 2, expected 0 to 1",
        ),
        (
            "04 02 44af",
            "byte 2, transport parameters, largest datagram: found 1199, expected 1200 to 65507",
        ),
        (
            "07 01 00",
            "byte 2, transport parameters, open sections: found 0, expected 1 to 65536",
        ),
        (
            "08 04 81000001",
            "byte 2, transport parameters, largest ACK delay: found 16777217, expected 0 to 16777216",
        ),
        (
            "0a 00",
            "byte 1, transport parameters, meter: found 0, expected 1 to 64",
        ),
        (
            "0a 02 61",
            "byte 2, transport parameters, meter: found 1 bytes, expected 2",
        ),
        (
            "0c 01 80",
            "byte 2, transport parameters, controller: found a byte that is not UTF-8 at 0, \
             expected text",
        ),
        (
            "0b 01 00 0b 01 00",
            "byte 3, transport parameters, id: found 11, expected more than 11",
        ),
        (
            "40ff 00 02 01 00",
            "byte 3, transport parameters, id: found 2, expected more than 255",
        ),
        (
            "40ff 05 00",
            "byte 3, transport parameters, unknown parameter: found 1 bytes, expected 5",
        ),
        (
            &many,
            "byte 320, transport parameters, count: found 65, expected 0 to 64",
        ),
        (
            &long,
            "byte 0, transport parameters, size: found 905, expected 0 to 875",
        ),
    ] {
        let error = Parameters::decode(&bytes(list)).unwrap_err();
        assert_eq!(error.to_string(), sentence);
        assert_eq!(error.code(), CloseCode::TRANSPORT_PARAMETER);
    }
}

const HEADER: SectionHeader = SectionHeader {
    stream: 0,
    section: 4,
    floor: 1,
    offset: 0,
    total: 10,
    source_time: Time::from_micros(100),
    deadline: Time::MAX,
    importance: 0,
    needs: None,
    is_retransmission: false,
};

fn section(header: SectionHeader) -> Frame<'static> {
    Frame::Section(Section {
        header,
        framing: Framing::Length,
        data: Data::Bytes(&[1, 2]),
    })
}

#[test]
fn values_that_no_reader_accepts_are_not_written() {
    let long = "x".repeat(256);
    for (frame, sentence) in [
        (
            Frame::Floor(Floor {
                stream: 0,
                floor: MAX_SECTION_COUNT + 1,
            }),
            "Floor frame, floor: found 281474976710656, expected 0 to 281474976710655",
        ),
        (
            section(SectionHeader {
                offset: 9,
                ..HEADER
            }),
            "Section frame, data: found 2, expected 1",
        ),
        (
            section(SectionHeader {
                offset: 10,
                ..HEADER
            }),
            "Section frame, offset: found 10, expected 0 to 9",
        ),
        (
            section(SectionHeader {
                total: 67_108_865,
                ..HEADER
            }),
            "Section frame, total: found 67108865, expected 1 to 67108864",
        ),
        (
            section(SectionHeader {
                offset: 0,
                total: 0,
                ..HEADER
            }),
            "Section frame, total: found 0, expected 1 to 67108864",
        ),
        (
            section(SectionHeader {
                deadline: Time::from_micros(99),
                ..HEADER
            }),
            "Section frame, deadline: found 99, expected 100 to 9007199254741090",
        ),
        (
            section(SectionHeader {
                needs: Some(4),
                ..HEADER
            }),
            "Section frame, needs: found 4, expected more than 4",
        ),
        (
            section(SectionHeader { floor: 5, ..HEADER }),
            "Section frame, floor: found 5, expected 0 to 4",
        ),
        (
            Frame::Dropped(Dropped {
                stream: 0,
                section: varint::MAX,
                reason: Reason::Expired,
            }),
            "Drop frame, section: found 4611686018427387903, expected 0 to 281474976710654",
        ),
        (
            Frame::Credit(Credit {
                bytes: 0,
                sections: 65_537,
            }),
            "Credit frame, sections: found 65537, expected 1 to 65536",
        ),
        (
            Frame::Tag(Tag::None),
            "Tag frame, kind: found 0x0, expected a known value",
        ),
        (
            Frame::Tag(Tag::Round {
                round: 0,
                rtt: Span::MAX,
            }),
            "Tag frame, round-trip time: found 18446744073709551, expected 0 to 9007199254740991",
        ),
        (
            Frame::Tag(Tag::Numbered {
                number: 0,
                rtt: Span::MAX,
            }),
            "Tag frame, round-trip time: found 18446744073709551, expected 0 to 9007199254740991",
        ),
        (
            Frame::Feedback(Report::None),
            "Feedback frame, kind: found 0x0, expected a known value",
        ),
        (
            Frame::Feedback(Report::LossEvents {
                rate: 0.0,
                received: Rate::MAX,
            }),
            "Feedback frame, receive rate: found 18446744073709551615, expected 0 to \
             4611686018427387903",
        ),
        (
            Frame::Close(Close {
                code: CloseCode::DONE,
                reason: &long,
            }),
            "Close frame, reason length: found 256, expected 0 to 255",
        ),
    ] {
        let mut out = vec![0xaa];
        assert_eq!(frame.encode(&mut out).unwrap_err().to_string(), sentence);
        assert_eq!(out, [0xaa], "nothing is left behind");
    }
    for rate in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        let received = Rate::ZERO;
        let frame = Frame::Feedback(Report::LossEvents { rate, received });
        let error = frame.encode(&mut vec![]).unwrap_err();
        assert_eq!(error.field, "loss event rate (its bits)", "{rate}");
    }
}

#[test]
fn headers_that_no_reader_accepts_are_not_written() {
    let (long_cookie, long_message) = ([1; 256], [1; 929]);
    let id = ConnectionId::new(1);
    let initial = Initial {
        source: id,
        pattern: Pattern::Insecure,
        cookie: &[],
        message: &[1],
    };
    let mut out = vec![];
    let errors = [
        Initial {
            cookie: &long_cookie,
            ..initial
        }
        .encode(&mut out),
        Initial {
            message: &long_message,
            ..initial
        }
        .encode(&mut out),
        Retry {
            destination: id,
            cookie: &[],
        }
        .encode(&mut out),
        Answer {
            destination: id,
            ticket: &[],
            message: &long_message,
        }
        .encode(&mut out),
        Answer {
            destination: id,
            ticket: &long_cookie,
            message: &[1],
        }
        .encode(&mut out),
        Confirm {
            ticket: &long_cookie,
            message: &[],
        }
        .encode(&mut out),
        Confirm {
            ticket: &[],
            message: &long_message,
        }
        .encode(&mut out),
        Accept {
            destination: id,
            message: &[],
        }
        .encode(&mut out),
        encode_version_negotiation(id, &[1; 17], &mut out),
    ];
    let sentences = errors.map(|error| error.unwrap_err().to_string());
    assert_eq!(
        sentences,
        [
            "Initial packet, cookie length: found 256, expected 0 to 255",
            "Initial packet, message length: found 929, expected 0 to 928",
            "Retry packet, cookie length: found 0, expected 1 to 255",
            "Answer packet, message length: found 929, expected 1 to 928",
            "Answer packet, ticket length: found 256, expected 0 to 255",
            "Confirm packet, ticket length: found 256, expected 0 to 255",
            "Confirm packet, message length: found 929, expected 0 to 928",
            "Accept packet, message length: found 0, expected 1 to 928",
            "VersionNegotiation packet, version count: found 17, expected 1 to 16",
        ]
    );
    let too_long = Parameters {
        stream_name: Some("x".repeat(513)),
        ..Parameters::default()
    };
    let error = too_long.encode(&mut out).unwrap_err();
    assert_eq!(
        error.to_string(),
        "transport parameters, stream name: found 513, expected 1 to 512"
    );
    assert!(out.is_empty());
}
