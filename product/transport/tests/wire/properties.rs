//! Round trips, detection of truncation, and absence of panics.

use comity_transport::wire::frame::{
    self, Ack, AckRanges, Content, Data, Frame, Framing, Section, decode,
};
use comity_transport::wire::header::{
    self, Accept, Answer, Confirm, ConnectionId, Initial, Packet, Pattern, Retry,
    encode_version_negotiation,
};
use comity_transport::wire::limits::{
    DATA_HEADER, MAX_HANDSHAKE, MAX_TIME_US, MAX_VERSIONS, MIN_INITIAL, VERSION,
};
use comity_transport::wire::parameters::{Deliver, Parameters, Reliability};
use comity_transport::wire::{Stamp, varint};
use comity_units::Span;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::wire::recipe::{Recipe, ack_ranges, number, recipe, section_header, span};

/// A payload of the frames, up to the first that must be last, and those frames. Consecutive
/// padding becomes one frame.
pub(crate) fn written(departure: u32, recipes: &[Recipe]) -> (Vec<u8>, Vec<Frame<'_>>) {
    let mut payload = Vec::new();
    frame::encode_departure(Stamp::from_micros(departure), &mut payload);
    let mut frames: Vec<Frame<'_>> = Vec::new();
    for recipe in recipes {
        let frame = recipe.frame();
        let before = payload.len();
        frame
            .encode(&mut payload)
            .expect("every recipe can be written");
        assert_eq!(payload.len() - before, frame.size(), "{frame:?}");
        match (frames.last_mut(), frame) {
            (Some(Frame::Padding { length }), Frame::Padding { length: more }) => *length += more,
            _ => frames.push(frame),
        }
        if recipe.is_last() {
            break;
        }
    }
    (payload, frames)
}

fn optional_text(most: usize) -> impl Strategy<Value = Option<String>> {
    proptest::option::of(vec("[a-zé ]", 1..=most / 2).prop_map(|characters| characters.concat()))
}

pub(crate) fn parameters() -> impl Strategy<Value = Parameters> {
    use proptest::sample::select;
    let modes = (
        select(&[Reliability::Timeline, Reliability::None, Reliability::Full][..]),
        select(&[Deliver::Early, Deliver::Paced][..]),
        any::<bool>(),
    );
    let limits = (
        MIN_INITIAL as u16..=65_507,
        number(varint::MAX),
        1..=65_536_u32,
        0..=1_u64 << 24,
    );
    (
        span(),
        modes,
        limits,
        number(MAX_TIME_US / 1_000),
        optional_text(512),
        optional_text(64),
        optional_text(64),
        (optional_text(64), number(varint::MAX), any::<bool>()),
    )
        .prop_map(
            |(
                latency,
                modes,
                limits,
                idle,
                stream_name,
                meter,
                controller,
                (meter_parameters, features, proofs),
            )| {
                let (reliability, deliver, ecn) = modes;
                let (max_datagram, initial_credit, max_open_sections, ack_delay) = limits;
                Parameters {
                    latency,
                    reliability,
                    deliver,
                    max_datagram,
                    idle_timeout: Span::from_millis(idle),
                    initial_credit,
                    max_open_sections,
                    max_ack_delay: Span::from_micros(ack_delay),
                    stream_name,
                    meter,
                    ecn,
                    controller,
                    meter_parameters,
                    features,
                    proofs,
                }
            },
        )
}

proptest! {
    #[test]
    fn frames_round_trip(
        departure in any::<u32>(), recipes in vec(recipe(), 1..8),
    ) {
        let (payload, expected) = written(departure, &recipes);
        let read = decode(&payload, Content::Present).expect("the payload has frames");
        prop_assert_eq!(read.departure.as_micros(), departure);
        let frames: Result<Vec<_>, _> = read.frames.collect();
        prop_assert_eq!(frames, Ok(expected));
    }

    #[test]
    fn a_cut_payload_is_an_error_or_a_shorter_payload(recipes in vec(recipe(), 1..4)) {
        let (payload, expected) = written(7, &recipes);
        for end in 0..payload.len() {
            let Ok(read) = decode(&payload[..end], Content::Present) else {
                prop_assert!(end <= 4);
                continue;
            };
            let mut again = payload[..4].to_vec();
            let mut whole = 0;
            let mut is_cut = false;
            for frame in read.frames {
                match frame {
                    Ok(frame) => {
                        frame.encode(&mut again).expect("decoded values can be encoded");
                        whole += 1;
                    }
                    Err(error) => {
                        prop_assert!(error.offset <= end, "{}", error);
                        is_cut = true;
                    }
                }
            }
            prop_assert!(whole <= expected.len());
            prop_assert!(payload.starts_with(&again));
            // Without an error, every byte belonged to a frame.
            prop_assert!(is_cut || again.len() == end);
        }
    }

    #[test]
    fn any_decodable_bytes_are_encoded_identically(
        payload in vec(prop_oneof![4 => 0..0x14_u8, 1 => 0x20..0x30_u8, 1 => any::<u8>()], 0..200), elided in any::<bool>(),
    ) {
        let content = if elided { Content::Elided } else { Content::Present };
        let Ok(read) = decode(&payload, content) else { return Ok(()) };
        for frame in read.frames {
            let Ok(frame) = frame else { break };
            let mut bytes = vec![0; 4];
            frame.encode(&mut bytes).expect("decoded values can be encoded");
            let again = decode(&bytes, content).expect("the payload has a frame").frames;
            let again: Result<Vec<_>, _> = again.collect();
            prop_assert_eq!(again, Ok(vec![frame]));
        }
    }

    #[test]
    fn elided_data_count_towards_sizes(header in section_header(), length in any::<u32>()) {
        let left = header.total - header.offset;
        let length = length % left + 1;
        let content = Content::Elided;
        for framing in [Framing::Length, Framing::ToEnd] {
            let elided = Frame::Section(Section { header, framing, data: Data::Elided(length) });
            let mut payload = vec![0; 4];
            elided.encode(&mut payload).expect("the header is valid");
            // As large as the frame with its data.
            prop_assert_eq!(elided.size(), header.size(length, framing) + length as usize);
            prop_assert_eq!(elided.size(), payload.len() - 4 + framing.elided(length));
            let mut front = vec![0; 4];
            header.encode(length, framing, content, &mut front).expect("the header is valid");
            prop_assert_eq!(&front, &payload);
            // With or without the bit, the frame contains the length.
            let with_length = header.size(length, Framing::Length);
            prop_assert_eq!(payload.len() - 4, with_length);
            let mut expected = vec![elided];
            if framing == Framing::Length {
                Frame::Ping.encode(&mut payload).expect("a ping has no values");
                expected.push(Frame::Ping);
            }
            let frames: Result<Vec<_>, _> =
                decode(&payload, content).expect("the payload has frames").frames.collect();
            prop_assert_eq!(frames, Ok(expected));
        }
    }

    #[test]
    fn as_much_data_fits_as_a_search_finds(header in section_header(), room in 0..70_000_usize) {
        for framing in [Framing::Length, Framing::ToEnd] {
            let left = header.total - header.offset;
            let fits = |length: u32| header.size(length, framing) + length as usize <= room;
            let most = match header.fitting(room, framing) {
                None => {
                    prop_assert!(!fits(1));
                    continue;
                }
                Some(most) => most,
            };
            prop_assert!(fits(most) && most <= left);
            prop_assert!(most == left || !fits(most + 1), "{} of {} in {}", most, left, room);
        }
    }

    #[test]
    fn as_many_ranges_fit_as_a_search_finds(ranges in ack_ranges(), room in 0..400_usize) {
        let ack = Ack {
            ranges: AckRanges::new(&ranges).expect("the ranges descend"),
            delay: Span::from_micros(1_000),
            arrival: Stamp::from_micros(5),
            ecn: None,
            proof: None,
        };
        let with = |count| Ack { ranges: AckRanges::new(&ranges[..count]).unwrap(), ..ack };
        let expected = (1..=ranges.len()).rev().map(with).find(|ack| Frame::Ack(*ack).size() <= room);
        prop_assert_eq!(ack.fitting(room), expected);
    }

    #[test]
    fn a_header_is_read_back(
        id in any::<u64>(), other in any::<u64>(), number in any::<u32>(), key_phase in any::<bool>(),
        pattern in proptest::sample::select(&[Pattern::Insecure, Pattern::NNpsk0, Pattern::IK, Pattern::CPace][..]),
        cookie in vec(any::<u8>(), 1..=255), ticket in vec(any::<u8>(), 0..=255), message in vec(any::<u8>(), 1..=MAX_HANDSHAKE),
        versions in vec(any::<u32>(), 1..=MAX_VERSIONS),
    ) {
        let (destination, source) = (ConnectionId::new(id), ConnectionId::new(other));

        let initial = Initial { source, pattern, cookie: &cookie, message: &message };
        let mut datagram = Vec::new();
        initial.encode(&mut datagram).expect("within the limits");
        prop_assert_eq!(datagram.len(), MIN_INITIAL);
        prop_assert_eq!(header::decode(&datagram), Ok(Packet::Initial(initial)));
        for end in 0..datagram.len() {
            prop_assert!(header::decode(&datagram[..end]).is_err());
        }
        datagram[4] ^= 0xff;
        let version = VERSION ^ 0xff;
        prop_assert_eq!(header::decode(&datagram), Ok(Packet::UnknownVersion { version, source }));

        let retry = Retry { destination, cookie: &cookie };
        let mut datagram = Vec::new();
        retry.encode(&mut datagram).expect("within the limits");
        prop_assert_eq!(header::decode(&datagram), Ok(Packet::Retry(retry)));
        for end in 0..datagram.len() {
            prop_assert!(header::decode(&datagram[..end]).is_err());
        }

        let answer = Answer { destination, ticket: &ticket, message: &message };
        let mut datagram = Vec::new();
        answer.encode(&mut datagram).expect("within the limits");
        prop_assert_eq!(header::decode(&datagram), Ok(Packet::Answer(answer)));
        for end in 0..datagram.len() {
            // The message extends to the end, so a truncated datagram has a truncated message.
            let cut = header::decode(&datagram[..end]);
            prop_assert_eq!(cut.is_ok(), end > 14 + ticket.len());
        }

        let confirm = Confirm { ticket: &ticket, message: &message };
        let mut datagram = Vec::new();
        confirm.encode(&mut datagram).expect("within the limits");
        prop_assert_eq!(header::decode(&datagram), Ok(Packet::Confirm(confirm)));
        for end in 0..datagram.len() {
            let cut = header::decode(&datagram[..end]);
            prop_assert_eq!(cut.is_ok(), end >= 2 + ticket.len());
        }

        let accept = Accept { destination, message: &message };
        let mut datagram = Vec::new();
        accept.encode(&mut datagram).expect("within the limits");
        prop_assert_eq!(header::decode(&datagram), Ok(Packet::Accept(accept)));
        for end in 0..datagram.len() {
            let cut = header::decode(&datagram[..end]);
            prop_assert_eq!(cut.is_ok(), end > 9);
        }

        let data = header::Data { key_phase, destination, number };
        let mut datagram = data.encode().to_vec();
        prop_assert!(header::decode(&datagram).is_err());
        datagram.extend_from_slice(&message);
        prop_assert_eq!(header::decode(&datagram), Ok(Packet::Data {
            header: data, associated: &datagram[..DATA_HEADER], sealed: &message,
        }));

        let mut datagram = Vec::new();
        encode_version_negotiation(destination, &versions, &mut datagram).expect("within the limits");
        let Ok(Packet::VersionNegotiation { destination: read, versions: listed }) =
            header::decode(&datagram) else { panic!("{datagram:?}") };
        prop_assert_eq!(read, destination);
        prop_assert_eq!(listed.iter().collect::<Vec<_>>(), versions);
        for end in 0..datagram.len() {
            prop_assert_eq!(header::decode(&datagram[..end]).is_ok(), end > 9 && end % 4 == 1);
        }
    }

    #[test]
    fn any_datagram_is_read_without_panic(
        first in prop_oneof![Just(0x10), Just(0x20), Just(0x30), Just(0x40), Just(0x50), any::<u8>()],
        mut rest in vec(any::<u8>(), 0..1_400),
    ) {
        rest.insert(0, first);
        let _ = header::decode(&rest);
        if let Some(version) = rest.get_mut(1..5) {
            version.copy_from_slice(&VERSION.to_be_bytes());
        }
        let _ = header::decode(&rest);
    }

    #[test]
    fn parameters_are_read_back(parameters in parameters()) {
        let mut list = vec![];
        match parameters.encode(&mut list) {
            Ok(()) => prop_assert_eq!(Parameters::decode(&list), Ok(parameters)),
            Err(error) => {
                prop_assert_eq!(error.field, "size");
                prop_assert!(list.is_empty());
            }
        }
        for end in 0..list.len() {
            // Cut between two parameters, the list is a shorter list.
            let _ = Parameters::decode(&list[..end]);
        }
    }

    #[test]
    fn any_list_is_read_without_panic(list in vec(0..0x20_u8, 0..60)) {
        if let Ok(parameters) = Parameters::decode(&list) {
            let mut again = vec![];
            parameters.encode(&mut again).expect("decoded values can be encoded");
            prop_assert_eq!(Parameters::decode(&again), Ok(parameters));
        }
    }
}
