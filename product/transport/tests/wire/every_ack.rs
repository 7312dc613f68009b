//! Acknowledged ranges, exhaustively: every small set of packets, and every small frame.

use comity_transport::wire::Stamp;
use comity_transport::wire::frame::{self, Ack, AckRange, AckRanges, Content, Frame};
use comity_units::{PacketNumber, Span};

/// Departure stamp of a payload: the value does not matter here.
const DEPARTURE: [u8; 4] = [0; 4];

/// The packets of the only frame, from the newest to the oldest range; `None` if it is refused.
fn read(payload: &[u8]) -> Option<Vec<(u64, u64)>> {
    let payload = frame::decode(payload, Content::Present).ok()?;
    let mut frames = payload.frames;
    let Some(Ok(Frame::Ack(ack))) = frames.next() else {
        return None;
    };
    assert!(frames.next().is_none());
    let ends = |range: AckRange| (range.first.get(), range.last.get());
    let ranges: Vec<_> = ack.ranges.iter().map(ends).collect();
    assert_eq!(ranges.len(), ack.ranges.len());
    assert_eq!(ranges[0].1, ack.ranges.largest().get());
    Some(ranges)
}

#[test]
fn every_set_of_twelve_packets_round_trips() {
    for set in 1_u32..1 << 12 {
        let mut ranges: Vec<AckRange> = Vec::new();
        for number in (0..12).rev().filter(|number| set >> number & 1 == 1) {
            let number = PacketNumber::new(number);
            match ranges.last_mut() {
                Some(range) if range.first == number.next() => range.first = number,
                _ => ranges.push(AckRange {
                    first: number,
                    last: number,
                }),
            }
        }
        let ack = Ack {
            ranges: AckRanges::new(&ranges).expect("they descend"),
            delay: Span::ZERO,
            arrival: Stamp::from_micros(0),
            ecn: None,
            proof: None,
        };
        let mut payload = DEPARTURE.to_vec();
        Frame::Ack(ack)
            .encode(&mut payload)
            .expect("within the limits");
        let found = read(&payload).expect("it was just written");
        let numbers = found.into_iter().flat_map(|(first, last)| first..=last);
        assert_eq!(numbers.map(|number| 1 << number).sum::<u32>(), set);
    }
}

/// The ranges by RFC 9000, section 19.3.1, for a largest number, a first range, and pairs of gap
/// and range; `None` if a number would be negative.
fn by_the_rfc(largest: i64, numbers: &[i64]) -> Option<Vec<(u64, u64)>> {
    let mut ranges = Vec::new();
    let mut last = largest;
    for (at, &number) in numbers.iter().enumerate() {
        if at % 2 == 1 {
            let (first, _) = *ranges.last()?;
            last = first as i64 - number - 2;
        } else {
            let first = last - number;
            if first < 0 || last < 0 {
                return None;
            }
            ranges.push((first as u64, last as u64));
        }
    }
    Some(ranges)
}

#[test]
fn every_small_frame_is_read_as_the_rfc_says() {
    const NUMBERS: u64 = 6;
    let mut read_ones = 0;
    for largest in 0..12_u8 {
        for pairs in 0..=2_u8 {
            let count = 1 + 2 * u32::from(pairs);
            for digits in 0..NUMBERS.pow(count) {
                let digit = |at: u32| (digits / NUMBERS.pow(at) % NUMBERS) as u8;
                let numbers: Vec<u8> = (0..count).map(digit).collect();
                // Type, largest number, delay, arrival, count.
                let head = [2, largest, 0, 0, 0, 0, 0, pairs];
                let payload = [&DEPARTURE, &head[..], &numbers].concat();
                let wide: Vec<i64> = numbers.iter().map(|&number| number.into()).collect();
                let expected = by_the_rfc(largest.into(), &wide);
                assert_eq!(read(&payload), expected, "{payload:?}");
                read_ones += u32::from(expected.is_some());
            }
        }
    }
    assert!(read_ones > 1_000);
}
