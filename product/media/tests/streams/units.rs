//! Units at unusual positions in PES packets.

use comity_media::{FrameType, Header, MediaSection, Notice, Times, TsWriter, Unit, WriterConfig};
use comity_units::{Span, Time};

use crate::{CLIP, H264, H265, MPEG2, read, ts};

/// The unit of a section, and its bytes.
pub(crate) fn unit(section: &MediaSection) -> (Unit, &[u8]) {
    match Header::decode(&section.payload).unwrap() {
        (Header::Unit(unit), bytes) => (unit, bytes),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn of_stream(stream: &[u8], number: u16) -> Vec<MediaSection> {
    let mut sections = read(stream).0;
    sections.retain(|section| section.stream == number);
    sections
}

/// The bytes of these units in PES packets of `size` bytes each, with the time stamp of the first
/// unit that begins in each, if one does. Of each unit: whether it is the first one that begins in
/// its packet, and its bytes. A zero that ends a packet before `00 00 01` is not the next unit's.
fn repacked(
    tables: &[MediaSection],
    units: &[MediaSection],
    size: usize,
) -> (Vec<u8>, Vec<(bool, Vec<u8>)>) {
    let mut writer = TsWriter::new(WriterConfig::default());
    let mut out = Vec::new();
    for table in tables {
        writer.write(&table.payload, &mut out).unwrap();
    }
    let mut bytes = Vec::new();
    let mut begins = Vec::new();
    for section in units {
        let (_, own) = unit(section);
        let is_split = own.starts_with(&[0, 0, 0, 1]) && (bytes.len() + 1).is_multiple_of(size);
        begins.push(bytes.len() + usize::from(is_split));
        bytes.extend(own);
    }
    let mut is_first = vec![false; units.len()];
    for (index, part) in bytes.chunks(size).enumerate() {
        let range = index * size..(index + 1) * size;
        let first = begins.iter().position(|begin| range.contains(begin));
        let mut header = unit(&units[first.unwrap_or(0)]).0;
        header.aligned = first.is_some_and(|first| begins[first] == range.start);
        match first {
            Some(first) => is_first[first] = true,
            None => (header.times, header.random_access) = (Times::None, false),
        }
        let mut payload = Vec::new();
        Header::Unit(header).encode(&mut payload);
        payload.extend(part);
        writer.write(&payload, &mut out).unwrap();
    }
    writer.finish(&mut out);
    begins.push(bytes.len());
    let own = begins
        .windows(2)
        .map(|ends| bytes[ends[0]..ends[1]].to_vec());
    (out, is_first.into_iter().zip(own).collect())
}

const SIZES: [usize; 9] = [150, 184, 700, 1_001, 1_500, 3_000, 7_001, 20_000, 65_000];

#[test]
fn pictures_are_the_same_wherever_pes_packets_begin() {
    for (name, stream) in [
        ("h264", H264),
        ("h265", H265),
        ("mpeg2", MPEG2),
        ("clip", CLIP),
    ] {
        let (tables, units) = (of_stream(stream, 0), of_stream(stream, 1));
        // A packet that ends after the first bytes of the sixth unit, or right before it.
        let five: usize = units[..5].iter().map(|section| unit(section).1.len()).sum();
        for size in { SIZES.into_iter() }.chain((0..6).map(|bytes| five + bytes)) {
            let (again, is_first) = repacked(&tables, &units, size);
            let (mut found, notices) = read(&again);
            found.retain(|section| section.stream == 1);
            assert_eq!(notices, [], "{name}, {size}");
            assert_eq!(found.len(), units.len(), "{name}, {size}");
            let mut stamps = 0;
            for ((found, original), (is_first, expected)) in found.iter().zip(&units).zip(&is_first)
            {
                let is_first = *is_first;
                let what = format!("{name}, {size}, {}", original.number);
                let ((seen, bytes), (sent, _)) = (unit(found), unit(original));
                assert!(bytes == expected, "{what}");
                assert_eq!(found.frame, original.frame, "{what}");
                let times = if is_first { sent.times } else { Times::None };
                assert_eq!(seen.times, times, "{what}");
                assert_eq!(found.needs.is_some(), original.needs.is_some(), "{what}");
                stamps += u32::from(is_first);
                // Pictures between two stamps are 40 ms apart, once one interval is known.
                if is_first || stamps >= 2 {
                    assert_eq!(found.source_time, original.source_time, "{what}");
                }
            }
            let copy = crate::write(&read(&again).0);
            ts::check(&copy, 0x1000, 0x100);
        }
    }
}

#[test]
fn frames_of_sound_are_the_same_wherever_pes_packets_begin() {
    for (name, stream) in [("h264", H264), ("mpeg2", MPEG2), ("clip", CLIP)] {
        let (tables, units) = (of_stream(stream, 0), of_stream(stream, 2));
        for size in SIZES {
            let (again, _) = repacked(&tables, &units, size);
            let (mut found, notices) = read(&again);
            found.retain(|section| section.stream == 2);
            assert_eq!(notices, [], "{name}, {size}");
            assert_eq!(found.len(), units.len(), "{name}, {size}");
            for (found, original) in found.iter().zip(&units) {
                let ((seen, bytes), (sent, expected)) = (unit(found), unit(original));
                assert!(bytes == expected, "{name}, {size}, {}", original.number);
                assert_eq!(
                    (seen.times, seen.frame),
                    (sent.times, sent.frame),
                    "{name}, {size}"
                );
                let first = units[0].source_time.saturating_since(Time::ZERO);
                let source_time = original.source_time.saturating_since(Time::ZERO + first);
                let apart = source_time.abs_diff(found.source_time.saturating_since(Time::ZERO));
                assert!(apart <= Span::from_nanos(1), "{name}, {size}, {apart}");
            }
        }
    }
}

#[test]
fn audio_outside_of_frames_stays_whole_and_is_reported_once() {
    let (tables, units) = (of_stream(H264, 0), of_stream(H264, 2));
    let mut writer = TsWriter::new(WriterConfig::default());
    let mut out = Vec::new();
    for table in &tables {
        writer.write(&table.payload, &mut out).unwrap();
    }
    let rest = [0x55; 40];
    for (index, three) in units.chunks(3).take(10).enumerate() {
        let mut payload = Vec::new();
        Header::Unit(unit(&three[0]).0).encode(&mut payload);
        payload.extend(three.iter().flat_map(|section| unit(section).1));
        match index {
            // Data after the frames, or only such data.
            4 | 6 => payload.extend(rest),
            5 => {
                payload.clear();
                Header::Unit(unit(&three[0]).0).encode(&mut payload);
                payload.extend(rest);
            }
            _ => {}
        }
        writer.write(&payload, &mut out).unwrap();
    }
    writer.finish(&mut out);
    let (found, notices) = read(&out);
    assert_eq!(notices, [Notice::NoFrames { pid: 0x101 }]);
    let found: Vec<_> = found.iter().filter(|section| section.stream == 2).collect();
    let odd: Vec<_> = (0..)
        .zip(&found)
        .filter(|(_, section)| unit(section).1 == rest)
        .collect();
    let indices: Vec<usize> = odd.iter().map(|&(at, _)| at).collect();
    assert_eq!(indices, [15, 16, 20]);
    assert_eq!(found.len(), 9 * 3 + 3);
    assert!(
        found
            .iter()
            .all(|section| section.frame == FrameType::Audio)
    );
    // A unit that is a whole PES packet keeps its time stamp; one after frames has the time at
    // which they end.
    assert_eq!(unit(odd[1].1).0.times, unit(&units[15]).0.times);
    assert_eq!(unit(odd[2].1).0.times, unit(&units[21]).0.times);
}
