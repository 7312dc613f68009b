//! Frames, headers and parameters as bytes worked out by hand.

use comity_congestion::{Report, Tag};
use comity_transport::timeline::{Importance, Reason};
use comity_transport::wire::frame::{
    Ack, AckRange, AckRanges, AckRangesError, Close, Content, Credit, Data, Dropped, EcnCounts,
    End, Floor, Frame, FrameKind, Framing, ReceiverReport, Section, SectionHeader, decode,
};
use comity_transport::wire::header::{
    self, Accept, Answer, Confirm, ConnectionId, Initial, Packet, Pattern, Reset, Retry,
    encode_version_negotiation,
};
use comity_transport::wire::limits::{DEFAULT_IMPORTANCE, MAX_TIME_US};
use comity_transport::wire::parameters::{Deliver, Parameters, Reliability};
use comity_transport::wire::{CloseCode, Stamp};
use comity_units::{PacketNumber, Rate, Span, Time};

use crate::wire::bytes;

const fn range(first: u64, last: u64) -> AckRange {
    AckRange {
        first: PacketNumber::new(first),
        last: PacketNumber::new(last),
    }
}

fn is_written_and_read_as(frame: Frame<'_>, hexadecimal: &str) {
    let expected = bytes(hexadecimal);
    let mut payload = bytes("00 00 00 00");
    frame
        .encode(&mut payload)
        .expect("the frame can be written");
    assert_eq!(payload[4..], expected, "{frame:?}");
    assert_eq!(frame.size(), expected.len(), "{frame:?}");
    let frames: Vec<_> = decode(&payload, Content::Present)
        .expect("the payload has a frame")
        .frames
        .collect();
    assert_eq!(frames, [Ok(frame)]);
}

#[test]
fn small_frames() {
    is_written_and_read_as(Frame::Padding { length: 3 }, "00 00 00");
    is_written_and_read_as(Frame::Ping, "01");
    is_written_and_read_as(Frame::Blocked, "12");
    let floor = Floor {
        stream: 300,
        floor: 64,
    };
    is_written_and_read_as(Frame::Floor(floor), "08 412c 4040");
    let dropped = Dropped {
        stream: 2,
        section: 9,
        reason: Reason::Shed,
    };
    is_written_and_read_as(Frame::Dropped(dropped), "09 02 09 03");
    let credit = Credit {
        bytes: 1 << 30,
        sections: 65_536,
    };
    is_written_and_read_as(Frame::Credit(credit), "0a c000000040000000 80010000");
    is_written_and_read_as(
        Frame::PathChallenge([1, 2, 3, 4, 5, 6, 7, 8]),
        "0e 0102030405060708",
    );
    is_written_and_read_as(Frame::PathResponse([0; 8]), "0f 0000000000000000");
    let close = Close {
        code: CloseCode::APPLICATION,
        reason: "bye",
    };
    is_written_and_read_as(Frame::Close(close), "10 4100 03 627965");
    let end = End {
        stream: 0,
        sections: 12,
    };
    is_written_and_read_as(Frame::End(end), "11 00 0c");
}

#[test]
fn tags_and_reports_of_controllers_and_meters() {
    let wave = Tag::Wave {
        wave: 0x1234,
        segments: 40,
        position: 40,
    };
    is_written_and_read_as(Frame::Tag(wave), "0b 01 1234 0028 0028");
    let round = Tag::Round {
        round: 7,
        rtt: Span::from_millis(40),
    };
    is_written_and_read_as(Frame::Tag(round), "0b 02 00000007 80009c40");
    let numbered = Tag::Numbered {
        number: 0xfeed_0001,
        rtt: Span::from_millis(40),
    };
    is_written_and_read_as(Frame::Tag(numbered), "0b 03 feed0001 80009c40");
    is_written_and_read_as(Frame::Feedback(Report::Wave { level: 24 }), "0c 01 0018");
    let loss_events = Report::LossEvents {
        rate: 0.5,
        received: Rate::from_mbps(1),
    };
    is_written_and_read_as(
        Frame::Feedback(loss_events),
        "0c 02 3fe0000000000000 800f4240",
    );
    let count = Report::Count {
        round: 1,
        packets: 2,
    };
    is_written_and_read_as(Frame::Feedback(count), "0c 03 00000001 00000002");
    let report = ReceiverReport {
        complete: 1,
        on_time: 2,
        late: 3,
        with_gaps: 4,
        bytes: 5,
        packets: 6,
        duplicates: 7,
        one_way_latest_us: -1,
        one_way_least_us: 32,
        jitter: Span::from_micros(9),
        buffered: 10,
        drift_ppb: -50_000,
    };
    is_written_and_read_as(
        Frame::ReceiverReport(report),
        "0d 01 02 03 04 05 06 07 01 4040 09 0a 8001869f",
    );
}

#[test]
fn acknowledgements() {
    let ranges = [range(0, 0)];
    let ack = Ack {
        ranges: AckRanges::new(&ranges).unwrap(),
        delay: Span::ZERO,
        arrival: Stamp::from_micros(0x0102_0304),
        ecn: None,
        proof: None,
    };
    is_written_and_read_as(Frame::Ack(ack), "02 00 00 01020304 00 00");
    for (proof, written) in [(0, "30"), (5, "3a"), (7, "3e")] {
        let written = format!("{written} 00 00 01020304 00 00");
        let proof = Some(proof);
        is_written_and_read_as(Frame::Ack(Ack { proof, ..ack }), &written);
    }
    let proof = Some(8);
    assert!(
        Frame::Ack(Ack { proof, ..ack })
            .encode(&mut vec![])
            .is_err()
    );
    // Down to packet 0: 9 to 10, 7 missing twice (7 and 8), 5 to 6, 1 to 4 missing, 0.
    let ranges = [range(9, 10), range(5, 6), range(0, 0)];
    let ack = Ack {
        ranges: AckRanges::new(&ranges).unwrap(),
        delay: Span::from_micros(1),
        arrival: Stamp::from_micros(2),
        ecn: Some(EcnCounts {
            ect0: 3,
            ect1: 4,
            ce: 64,
        }),
        proof: None,
    };
    let written = " 0a 01 00000002 02 01 01 01 03 00 03 04 4040";
    is_written_and_read_as(Frame::Ack(ack), &format!("03{written}"));
    let proof = Some(7);
    is_written_and_read_as(Frame::Ack(Ack { proof, ..ack }), &format!("3f{written}"));
    assert_eq!(ack.ranges.len(), 3);
    assert_eq!(ack.ranges.largest().get(), 10);
    assert!(ack.ranges.newest(2).iter().eq([range(9, 10), range(5, 6)]));
    assert_eq!(ack.ranges.newest(0).len(), 1);
}

#[test]
fn ranges_that_no_frame_can_express_are_refused() {
    assert_eq!(AckRanges::new(&[]), Err(AckRangesError::Empty));
    for (ranges, index) in [
        ([range(5, 4), range(0, 1)], 0),
        // Adjacent, so one range.
        ([range(5, 6), range(3, 4)], 1),
        ([range(5, 6), range(8, 9)], 1),
        ([range(0, 6), range(0, 0)], 1),
    ] {
        let range = ranges[index];
        let refused = AckRanges::new(&ranges);
        assert_eq!(refused, Err(AckRangesError::NotDescending { index, range }));
    }
    let many: Vec<_> = (0..129).rev().map(|n| range(3 * n, 3 * n)).collect();
    let refused = AckRanges::new(&many).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "ranges to acknowledge: found 129, expected at most 128"
    );
    assert_eq!(AckRanges::new(&many[..128]).unwrap().len(), 128);
}

#[test]
fn sections() {
    let header = SectionHeader {
        stream: 0,
        section: 0,
        floor: 0,
        offset: 0,
        total: 1,
        source_time: Time::ZERO,
        deadline: Time::ZERO,
        importance: 0,
        needs: None,
        is_retransmission: false,
    };
    let least = Section {
        header,
        framing: Framing::ToEnd,
        data: Data::Bytes(&[7]),
    };
    // The deadline equals the source time: 1, not 0.
    is_written_and_read_as(Frame::Section(least), "28 00 00 00 00 01 00 01 07");
    let least = Section {
        framing: Framing::Length,
        ..least
    };
    is_written_and_read_as(Frame::Section(least), "29 00 00 00 00 01 00 01 01 07");

    // Times are rounded down.
    let rounded = SectionHeader {
        total: 2,
        source_time: Time::from_nanos(5_999),
        deadline: Time::from_nanos(7_999),
        ..header
    };
    let mut out = vec![];
    let present = Content::Present;
    rounded
        .encode(2, Framing::Length, present, &mut out)
        .unwrap();
    assert_eq!(out, bytes("21 00 00 00 00 02 05 03 02"));
    assert_eq!(rounded.fitting(11, Framing::Length), Some(2));
    assert_eq!(rounded.fitting(10, Framing::Length), Some(1));
    assert_eq!(rounded.fitting(9, Framing::Length), None);
    assert_eq!(rounded.fitting(9, Framing::ToEnd), Some(1));
    assert_eq!(header.fitting(9, Framing::ToEnd), Some(1));
    assert_eq!(header.fitting(8, Framing::ToEnd), None);
    // 63 bytes have a length of one byte, and 64 one of two: in 74 bytes only 63 fit, in 75 64.
    let large = SectionHeader {
        total: 16_383,
        ..header
    };
    assert_eq!(large.size(63, Framing::Length), 10);
    assert_eq!(
        [73, 74, 75].map(|room| large.fitting(room, Framing::Length)),
        [Some(63), Some(63), Some(64)]
    );
}

/// Each form of a section frame as a writer chooses it: the shortest equivalent.
#[test]
fn sections_are_written_in_the_shortest_form() {
    let header = SectionHeader {
        stream: 1,
        section: 9,
        floor: 7,
        offset: 0,
        total: 3,
        source_time: Time::from_micros(5),
        deadline: Time::MAX,
        importance: 0,
        needs: None,
        is_retransmission: false,
    };
    let after = |micros: u64| Time::from_micros(5 + micros);
    let cases = [
        (header, "20 01 09 02 00 03 05 00"),
        (
            SectionHeader {
                floor: 9,
                is_retransmission: true,
                ..header
            },
            "22 01 09 00 00 03 05 00",
        ),
        (
            SectionHeader {
                floor: 0,
                importance: 1,
                ..header
            },
            "24 01 09 09 00 03 05 00 01 00",
        ),
        // Importance 0 is written if the section has a dependency.
        (
            SectionHeader {
                needs: Some(8),
                ..header
            },
            "24 01 09 02 00 03 05 00 00 01",
        ),
        (
            SectionHeader {
                deadline: after(999),
                ..header
            },
            "20 01 09 02 00 03 05 43e8",
        ),
        (
            SectionHeader {
                deadline: after(1_000),
                ..header
            },
            "28 01 09 02 00 03 05 02",
        ),
        (
            SectionHeader {
                deadline: after(120_000),
                importance: 200,
                needs: Some(0),
                is_retransmission: true,
                ..header
            },
            "2e 01 09 02 00 03 05 4079 c8 09",
        ),
    ];
    for (header, front) in cases {
        let to_end = Section {
            header,
            framing: Framing::ToEnd,
            data: Data::Bytes(b"abc"),
        };
        is_written_and_read_as(Frame::Section(to_end), &format!("{front} 616263"));
        let with_length = Section {
            framing: Framing::Length,
            ..to_end
        };
        let kind = u8::from_str_radix(&front[..2], 16).unwrap() | 1;
        let expected = format!("{kind:02x}{} 03 616263", &front[2..]);
        is_written_and_read_as(Frame::Section(with_length), &expected);
    }
}

/// A reader accepts the longer forms, too, with the same result.
#[test]
fn longer_forms_of_sections_are_equivalent() {
    let read = |hexadecimal: &str| {
        let payload = bytes(&format!("00 00 00 00 {hexadecimal}"));
        let frames = decode(&payload, Content::Present).expect("the payload has a frame");
        let frames: Vec<_> = frames.frames.collect();
        let [Ok(Frame::Section(section))] = frames[..] else {
            panic!("{frames:?}")
        };
        section.header
    };
    for (short, long) in [
        // No deadline.
        ("20 01 09 02 00 03 05 00 ff", "28 01 09 02 00 03 05 00 ff"),
        // 120 ms, in milliseconds and in microseconds.
        (
            "28 01 09 02 00 03 05 4079 ff",
            "20 01 09 02 00 03 05 8001d4c1 ff",
        ),
        // The default importance of a section.
        (
            "20 01 09 02 00 03 05 00 ff",
            "24 01 09 02 00 03 05 00 00 00 ff",
        ),
    ] {
        assert_eq!(read(short), read(long));
    }
    // The largest deadline in milliseconds is within the largest in microseconds.
    let largest = read("28 01 09 02 00 03 00 c000083126e978d5 ff");
    let milliseconds = (MAX_TIME_US - 1) / 1_000;
    assert_eq!(largest.deadline, Time::from_micros(milliseconds * 1_000));
    assert_eq!(Importance::default(), Importance(DEFAULT_IMPORTANCE));
}

#[test]
fn frames_determine_whether_a_packet_is_ack_eliciting() {
    use FrameKind as Kind;
    let not_acknowledged = [
        Kind::Padding,
        Kind::Ack,
        Kind::Tag,
        Kind::Feedback,
        Kind::ReceiverReport,
        Kind::Close,
    ];
    assert!(not_acknowledged.iter().all(|kind| !kind.is_ack_eliciting()));
    assert!(Kind::Section.is_ack_eliciting() && Kind::Ping.is_ack_eliciting());
}

#[test]
fn reasons_are_cut_between_characters() {
    let long = "é".repeat(200);
    let close = Close::new(CloseCode::DONE, &long);
    assert_eq!(close.reason.len(), 254);
    assert!(long.starts_with(close.reason));
    assert_eq!(Close::new(CloseCode::DONE, "short").reason, "short");
}

#[test]
fn headers() {
    let source = ConnectionId::new(0x0102_0304_0506_0708);
    let destination = ConnectionId::new(0xff);
    let mut datagram = vec![];
    let initial = Initial {
        source,
        pattern: Pattern::IK,
        cookie: b"ck",
        message: b"hello",
    };
    initial.encode(&mut datagram).unwrap();
    let mut expected = bytes("10 00000002 0102030405060708 02 02 636b 0005 68656c6c6f");
    expected.resize(1_200, 0);
    assert_eq!(datagram, expected);
    // A longer datagram has longer padding.
    datagram.resize(1_452, 0);
    assert_eq!(header::decode(&datagram), Ok(Packet::Initial(initial)));

    let mut datagram = vec![];
    let cookie = b"ck";
    Retry {
        destination,
        cookie,
    }
    .encode(&mut datagram)
    .unwrap();
    assert_eq!(datagram, bytes("20 00000002 00000000000000ff 02 636b"));

    let mut datagram = vec![];
    let answer = Answer {
        destination,
        ticket: &[7, 8],
        message: &[9],
    };
    answer.encode(&mut datagram).unwrap();
    assert_eq!(datagram, bytes("30 00000002 00000000000000ff 02 0708 09"));

    let mut datagram = vec![];
    let confirm = Confirm {
        ticket: &[7, 8],
        message: &[],
    };
    confirm.encode(&mut datagram).unwrap();
    assert_eq!(datagram, bytes("60 02 0708"));

    let mut datagram = vec![];
    let accept = Accept {
        destination,
        message: &[9],
    };
    accept.encode(&mut datagram).unwrap();
    assert_eq!(datagram, bytes("70 00000000000000ff 09"));

    let reset = Reset {
        source,
        token: [7; 16],
    };
    let expected = bytes("80 0102030405060708 07070707070707070707070707070707");
    assert_eq!(reset.encode(), expected);
    assert_eq!(header::decode(&expected), Ok(Packet::Reset(reset)));

    let data = header::Data {
        key_phase: true,
        destination: source,
        number: 0x0a0b_0c0d,
    };
    assert_eq!(data.encode()[..], bytes("41 0102030405060708 0a0b0c0d"));

    let mut datagram = vec![];
    encode_version_negotiation(destination, &[1, 0xaabb_ccdd], &mut datagram).unwrap();
    assert_eq!(datagram, bytes("50 00000000000000ff 00000001 aabbccdd"));
    assert_eq!(source.to_string(), "0102030405060708");
}

#[test]
fn parameters() {
    let mut list = vec![];
    Parameters::default().encode(&mut list).unwrap();
    let defaults = bytes(
        "01 04 8001d4c0  # 120,000 us
         02 01 00
         03 01 00
         04 02 45ac      # 1,452 bytes
         05 02 5388      # 5,000 ms
         06 04 80800000  # 8 MiB
         07 02 4400      # 1,024
         08 02 6710      # 10,000 us
         0b 01 00",
    );
    assert_eq!(list, defaults);
    assert_eq!(Parameters::decode(&defaults), Ok(Parameters::default()));
    assert_eq!(Parameters::decode(&[]), Ok(Parameters::default()));

    let some = bytes(
        "02 01 02
         03 02 4001            # in two bytes
         09 04 c3a9 74c3       # cut below
         ",
    );
    // Half a character at the end.
    assert!(Parameters::decode(&some).is_err());
    let some = bytes(
        "02 01 02 03 02 4001 09 03 c3a974
         0a 04 74667263  0b 01 01  0c 04 74667263
         0d 03 613d31 0f 01 01
         40ff 03 010203        # unknown",
    );
    let expected = Parameters {
        reliability: Reliability::Full,
        deliver: Deliver::Paced,
        stream_name: Some("ét".into()),
        meter: Some("tfrc".into()),
        ecn: true,
        controller: Some("tfrc".into()),
        meter_parameters: Some("a=1".into()),
        features: 0,
        proofs: true,
        ..Parameters::default()
    };
    assert_eq!(Parameters::decode(&some), Ok(expected));
}
