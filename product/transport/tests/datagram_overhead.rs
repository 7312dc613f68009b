//! The overhead of a packet, to the byte.

use bytes::Bytes as Buffer;
use comity_congestion::{Controller, Decision, Ecn, Event, Pacing, Phase, Tag};
use comity_transport::datagram::{Config, Connection};
use comity_transport::timeline::{
    Elided, Importance, Outgoing, Payload, Reliability, SectionId, StreamId,
};
use comity_transport::wire::frame::{self, Content, Data, Frame, Framing, Section};
use comity_units::{DataSize, Span, Time};

/// Sends everything at once, each packet with this tag.
#[derive(Debug)]
struct Tagging(Tag);

impl Controller for Tagging {
    fn on_event(&mut self, _event: Event<'_>) {}

    fn upcoming_tag(&self) -> Tag {
        self.0
    }

    fn tag(&mut self, _: Time) -> Tag {
        self.0
    }

    fn decision(&self) -> Decision {
        Decision {
            window: DataSize::MAX,
            pacing: Pacing::Unpaced,
            phase: Phase::CongestionAvoidance,
            ..Decision::default()
        }
    }
}

trait Media: Payload {
    fn of_length(length: u32) -> Self;
}

impl Media for Buffer {
    fn of_length(length: u32) -> Self {
        vec![7; length as usize].into()
    }
}

impl Media for Elided {
    fn of_length(length: u32) -> Self {
        Self(length)
    }
}

const NOW: Time = Time::from_secs(1);

fn end<P: Media>(tag: Tag, pad: bool) -> Connection<P> {
    let config = Config {
        reliability: Reliability::None,
        pad,
        pace_windows: false,
        ..Config::default()
    };
    let controller = Box::new(Tagging(tag));
    Connection::new(config, config.ack_delay, controller, None, Time::ZERO).unwrap()
}

/// A packet with one piece of a section: its size, the bytes of the piece, its framing, and the
/// tag.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Packet {
    size: u32,
    piece: usize,
    framing: Framing,
    tag: Tag,
    padding: usize,
}

fn read(size: u32, payload: &[u8], content: Content) -> Packet {
    let mut packet = Packet {
        size,
        piece: 0,
        framing: Framing::Length,
        tag: Tag::None,
        padding: 0,
    };
    for frame in frame::decode(payload, content).unwrap().frames {
        match frame.unwrap() {
            Frame::Section(Section { framing, data, .. }) => {
                assert_eq!(packet.piece, 0, "one piece");
                assert_eq!(matches!(data, Data::Elided(_)), content == Content::Elided);
                (packet.piece, packet.framing) = (data.len(), framing);
            }
            Frame::Tag(tag) => packet.tag = tag,
            Frame::Padding { length } => packet.padding = length,
            other => panic!("{other:?}"),
        }
    }
    packet
}

/// The packets of sections with these lengths and a deadline of 120 ms. Both ends count the same
/// bytes.
fn packets<P: Media>(tag: Tag, pad: bool, importance: u8, lengths: &[u32]) -> Vec<Packet> {
    let content = if P::ELIDED {
        Content::Elided
    } else {
        Content::Present
    };
    let (mut sender, mut receiver) = (end::<P>(tag, pad), end::<P>(tag, pad));
    for &length in lengths {
        let section = Outgoing {
            stream: StreamId(1),
            importance: Importance(importance),
            source_time: NOW,
            deadline: NOW + Span::from_millis(120),
            needs: None,
            payload: P::of_length(length),
        };
        sender.submit(NOW, section).unwrap();
    }
    let (mut sent, mut out) = (Vec::new(), Vec::new());
    while let Some(transmit) = sender.poll_transmit(NOW, &mut out) {
        assert!(P::ELIDED || out.len() == transmit.payload as usize);
        sent.push(read(transmit.payload, &out, content));
        receiver
            .on_packet(NOW, transmit.number, Ecn::NotCapable, &out)
            .unwrap();
        out.clear();
    }
    let sizes: u64 = sent.iter().map(|packet| u64::from(packet.size)).sum();
    let overhead = u64::from(Config::default().overhead) * sent.len() as u64;
    assert_eq!(sender.statistics().sent.wire_bytes, sizes + overhead);
    assert_eq!(receiver.statistics().received.wire_bytes, sizes + overhead);
    assert_eq!(
        receiver.statistics().inbox.received,
        lengths.iter().map(|&length| u64::from(length)).sum::<u64>()
    );
    sent
}

/// Departure; type, stream, section, floor, total of two bytes, source time of four, deadline of
/// two.
const LEAST: usize = 4 + (1 + 1 + 1 + 1 + 2 + 4 + 2);

const WAVE: Tag = Tag::Wave {
    wave: 7,
    segments: 2,
    position: 1,
};

const fn numbered(rtt: Span) -> Tag {
    Tag::Numbered { number: 1, rtt }
}

/// A section of 15,000 bytes fills packets of 1,423 bytes to the last byte, whatever the tag.
fn section_fills_packets<P: Media>() {
    for (tag, room) in [
        (Tag::None, 0),
        (WAVE, 8),
        (numbered(Span::ZERO), 7),
        (numbered(Span::from_millis(10)), 8),
        (numbered(Span::from_millis(40)), 10),
    ] {
        // A packet with a tag cannot end with data.
        let (framing, length) = match tag {
            Tag::None => (Framing::ToEnd, 0),
            _ => (Framing::Length, 2),
        };
        let sent = packets::<P>(tag, false, 0, &[15_000]);
        let mut offset = 0;
        for (index, packet) in sent.iter().enumerate() {
            let beside = LEAST + if offset == 0 { 1 } else { 2 } + length + room;
            let piece = (1_423 - beside).min(15_000 - offset);
            assert_eq!(
                *packet,
                Packet {
                    size: (beside + piece) as u32,
                    piece,
                    framing,
                    tag,
                    padding: 0,
                },
                "packet {index} with {tag:?}"
            );
            offset += piece;
        }
        assert_eq!((sent.len(), offset), (11, 15_000));
        assert!(sent[..10].iter().all(|packet| packet.size == 1_423));
    }
}

#[test]
fn a_section_fills_packets_to_the_last_byte() {
    section_fills_packets::<Buffer>();
}

#[test]
fn an_elided_section_takes_as_much_as_a_real_one() {
    section_fills_packets::<Elided>();
    for length in 1..2_900 {
        for pad in [false, true] {
            assert_eq!(
                packets::<Elided>(Tag::None, pad, 0, &[length]),
                packets::<Buffer>(Tag::None, pad, 0, &[length]),
                "{length} bytes"
            );
        }
    }
}

/// An importance adds two bytes: itself, and the absence of a dependency.
#[test]
fn an_importance_takes_two_bytes() {
    let plain = packets::<Buffer>(Tag::None, false, 0, &[15_000]);
    let important = packets::<Buffer>(Tag::None, false, 9, &[15_000]);
    for (plain, important) in plain.iter().zip(&important).take(10) {
        assert_eq!(plain.size, important.size);
        assert_eq!(plain.piece, important.piece + 2);
    }
}

/// No piece is cut to make room for its length: a piece that fits without a length uses one packet.
/// The rest of a padded packet, in front of the data, is padding.
#[test]
fn a_section_that_just_fits_has_no_length() {
    // Sections of less than 16,384 bytes and at least 64; the offset is one byte.
    let most = 1_423 - LEAST - 1;
    for short in 0..70 {
        let sent = packets::<Buffer>(Tag::None, false, 0, &[(most - short) as u32]);
        let expected = Packet {
            size: (1_423 - short) as u32,
            piece: most - short,
            framing: Framing::ToEnd,
            tag: Tag::None,
            padding: 0,
        };
        assert_eq!(sent, [expected]);
        let padded = packets::<Buffer>(Tag::None, true, 0, &[(most - short) as u32]);
        let expected = Packet {
            size: 1_423,
            padding: short,
            ..expected
        };
        assert_eq!(padded, [expected]);
    }
    assert_eq!(
        packets::<Buffer>(Tag::None, false, 0, &[most as u32 + 1]).len(),
        2
    );
    // With a tag, the packet is padded after it.
    let sent = packets::<Buffer>(WAVE, true, 0, &[1_000]);
    let beside = LEAST + 1 + 2 + 8;
    assert_eq!(
        sent,
        [Packet {
            size: 1_423,
            piece: 1_000,
            framing: Framing::Length,
            tag: WAVE,
            padding: 1_423 - beside - 1_000,
        }]
    );
}

/// Two sections share a packet: the first one has a length, and the second one fills the rest.
#[test]
fn only_the_last_piece_of_a_packet_has_no_length() {
    let mut sender = end::<Buffer>(Tag::None, false);
    for length in [500, 2_000] {
        let section = Outgoing {
            stream: StreamId(1),
            importance: Importance::default(),
            source_time: NOW,
            deadline: NOW + Span::from_millis(120),
            needs: None,
            payload: Buffer::from(vec![7; length]),
        };
        sender.submit(NOW, section).unwrap();
    }
    let mut out = Vec::new();
    let sent = sender.poll_transmit(NOW, &mut out).unwrap();
    assert_eq!((sent.payload, out.len()), (1_423, 1_423));
    let frames = frame::decode(&out, Content::Present).unwrap().frames;
    let pieces: Vec<_> = frames
        .map(|frame| match frame.unwrap() {
            Frame::Section(section) => {
                let header = section.header;
                // Both sections are still live.
                assert_eq!((header.floor, header.importance), (0, 0));
                (
                    SectionId(header.section),
                    section.data.len(),
                    section.framing,
                )
            }
            other => panic!("{other:?}"),
        })
        .collect();
    // After the departure, two headers of 13 bytes, the first of them with a length of two.
    let rest = 1_423 - 4 - 13 - 2 - 500 - 13;
    assert_eq!(
        pieces,
        [
            (SectionId(0), 500, Framing::Length),
            (SectionId(1), rest, Framing::ToEnd)
        ]
    );
}
