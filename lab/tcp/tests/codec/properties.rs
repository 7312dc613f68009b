//! Every segment decodes to its original, and arbitrary bytes are decoded or refused.

use std::num::NonZeroU16;

use comity_tcp::checksum::{Checksum, PROTOCOL_TCP, PseudoHeader};
use comity_tcp::codec::{
    EncodeError, MAX_HEADER, MIN_HEADER, Ports, data_header_length, decode, decode_unverified,
    encode, encoded_length, sack_room,
};
use comity_tcp::timeline::SeqUpdate;
use comity_tcp::{Flags, Options, SackBlock, SackBlocks, Segment, Timestamps, Wave};
use comity_units::SeqNo;
use proptest::prelude::*;

use super::TO_SERVER;
use super::reading::with_options;

/// RFC 1071 literally: sixteen bits at a time, folding the carry after each.
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
        level in any::<u16>(),
        wave in proptest::option::of((any::<u16>(), 1u16.., any::<u16>())),
        update in proptest::option::of((any::<[u32; 2]>(), 0u32..0x8000_0000)),
    ) -> Options {
        let mut options = Options {
            mss,
            window_scale,
            sack_permitted,
            timestamps: timestamps.map(|(value, echo)| Timestamps { value, echo }),
            sack: SackBlocks::EMPTY,
            level: NonZeroU16::new(level),
            wave: wave.and_then(|(wave, segments, number)| {
                let position = 1 + number % segments;
                NonZeroU16::new(segments).map(|segments| Wave { wave, segments, position })
            }),
            seq_update: update.map(|([expected, start], length)| {
                let expected = SeqNo::new(expected);
                let void_start = if length > 0 { SeqNo::new(start) } else { expected };
                SeqUpdate { expected, void_start, void_end: void_start + length }
            }),
        };
        // The options of a SYN exclude those of data: all together would not fit.
        if options.mss.is_some() || options.window_scale.is_some() || options.sack_permitted {
            (options.level, options.wave) = (None, None);
        }
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
            ecn: comity_congestion::Ecn::NotCapable,
        }
    }
}

/// Decoded bytes can be encoded and decode to the same segment, unless they were packed more
/// densely than the encoder's groups.
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
        prop_assert_eq!(segment.header_length() as usize, length);
        prop_assert_eq!(segment.options.length() as usize, length - MIN_HEADER);
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

proptest! {
    /// The computed length adds the length of each option; the codec writes the whole header.
    #[test]
    fn a_data_header_is_as_long_as_it_is_written(timestamps: bool, in_wave: bool, timelined: bool) {
        let wave = Wave { wave: 1, segments: NonZeroU16::MIN, position: 1 };
        let options = Options {
            timestamps: timestamps.then(Timestamps::default),
            wave: in_wave.then_some(wave),
            seq_update: timelined.then(|| SeqUpdate::to(SeqNo::new(7))),
            ..Options::default()
        };
        let segment = Segment { options, ..Segment::default() };
        let mut buffer = [0; MAX_HEADER];
        let length = encode(&segment, Ports::default(), &TO_SERVER, Checksum::new(), &mut buffer);
        prop_assert_eq!(length, Ok(data_header_length(timestamps, in_wave, timelined)));
    }
}
