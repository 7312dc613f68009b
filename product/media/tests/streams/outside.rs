//! Bytes of a transport stream that are in no packet: garbage, and those of longer packets.

use std::collections::BTreeSet;

use comity_media::{Event, Notice, PACKET, ReaderConfig, TsWriter, WriterConfig};
use proptest::prelude::*;

use crate::{CLIP, H264, H265, MPEG2, cases, events_of};

fn read(stream: &[u8]) -> Vec<Event> {
    let config = ReaderConfig {
        layouts: true,
        ..ReaderConfig::default()
    };
    events_of(config, [stream])
}

/// Writes the sections, without those of these streams and numbers.
fn written(events: &[Event], outside: bool, lost: &BTreeSet<(u16, u64)>) -> Vec<u8> {
    let mut writer = TsWriter::new(WriterConfig {
        outside,
        ..WriterConfig::default()
    });
    let mut out = Vec::new();
    for event in events {
        match event {
            Event::Section(section) if !lost.contains(&(section.stream, section.number)) => writer
                .write_section(section.stream, section.number, &section.payload, &mut out)
                .expect("a section of the reader"),
            Event::Section(section) => writer.miss(section.stream, section.number, 1, &mut out),
            Event::Missing(missing) => writer.miss(missing.stream, missing.number, 1, &mut out),
            Event::Notice(_) => {}
        }
    }
    writer.finish(&mut out);
    out
}

/// A linear congruential generator modulo 2^64.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    (0..length).map(next).collect()
}

/// Packets of 192 bytes, with time stamps of 27 MHz before them, or of 204 with bytes behind them.
fn longer(stream: &[u8], length: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, packet) in (0..).zip(stream.chunks(PACKET)) {
        match length {
            192 => {
                let stamp: u32 = number * 7_331 + number % 3;
                out.extend(stamp.to_be_bytes());
                out.extend(packet);
            }
            204 => {
                out.extend(packet);
                out.extend(noise(16, u64::from(number)));
            }
            _ => out.extend(packet),
        }
    }
    out
}

#[derive(Clone, Debug)]
enum Change {
    Inserted { at: usize, length: usize },
    Overwritten { at: usize, length: usize },
    Removed { at: usize, length: usize },
}

fn change() -> impl Strategy<Value = Change> {
    let location = || (any::<usize>(), 1_usize..900);
    prop_oneof![
        location().prop_map(|(at, length)| Change::Inserted { at, length }),
        location().prop_map(|(at, length)| Change::Overwritten { at, length }),
        location().prop_map(|(at, length)| Change::Removed { at, length }),
    ]
}

fn changed(stream: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut stream = stream.to_vec();
    for (seed, change) in (0..).zip(changes) {
        let (Change::Inserted { at, length }
        | Change::Overwritten { at, length }
        | Change::Removed { at, length }) = *change;
        let at = at % stream.len();
        let end = (at + length).min(stream.len());
        match change {
            Change::Inserted { .. } => drop(stream.splice(at..at, noise(length, seed))),
            Change::Overwritten { .. } => stream[at..end].copy_from_slice(&noise(end - at, seed)),
            Change::Removed { .. } => drop(stream.drain(at..end)),
        }
    }
    stream
}

proptest! {
    #![proptest_config(cases(64))]

    /// Whatever lies between packets, before the first and behind the last one, comes out.
    #[test]
    fn any_bytes_come_out_as_they_were(
        which in 0_usize..3,
        length in prop::sample::select(vec![188_usize, 192, 204]),
        changes in prop::collection::vec(change(), 0..12),
    ) {
        let whole = longer([H264, H265, MPEG2][which], length);
        let stream = changed(&whole, &changes);
        let events = read(&stream);
        let out = written(&events, true, &BTreeSet::new());
        prop_assert!(out == stream, "{} of {} bytes", out.len(), stream.len());
        let packets = written(&events, false, &BTreeSet::new());
        prop_assert!(packets.len().is_multiple_of(PACKET));
        prop_assert!(packets.chunks(PACKET).all(|packet| packet[0] == 0x47));
    }
}

#[test]
fn longer_packets_stay_so_where_sections_are_missing() {
    let stream = longer(CLIP, 192);
    let events = read(&stream);
    let is_reported = |event: &Event| *event == Event::Notice(Notice::PacketsApart { bytes: 192 });
    assert!(events.iter().any(is_reported));
    // Pictures, sound, and a layout: what it would have ordered is written by the writer itself.
    let lost = [(1, 30), (1, 31), (2, 70), (0x3fff, 20), (0x3fff, 21)].into();
    let out = written(&events, true, &lost);
    assert!(out.len().is_multiple_of(192) && out.len() > stream.len() * 9 / 10);
    assert!(out.chunks(192).all(|packet| packet[4] == 0x47));
    let known: BTreeSet<&[u8]> = stream.chunks(192).collect();
    let same = out
        .chunks(192)
        .filter(|packet| known.contains(packet))
        .count();
    assert!(same * 10 > known.len() * 9 && same < known.len());
    // A receiver that wants whole packets gets those of the stream without the time stamps.
    assert!(written(&events, false, &BTreeSet::new()) == CLIP);
}
