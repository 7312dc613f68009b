//! Input that is cut, broken, unknown or hostile.

use comity_media::{
    Event, FrameType, Header, HeaderError, Notice, PACKET, ReadError, Reader, ReaderConfig, Times,
    TsWriter, Unit, WriterConfig,
};
use comity_units::{DataSize, Rate, Span, Time};
use proptest::prelude::*;

use crate::{
    CLIP, H264, H265, MPEG1, MPEG2, cases, events_of, outcome_of, part, read, ts, whole_units,
    write,
};

/// Splits a stream into pieces of these lengths, cyclically.
fn pieces<'a>(stream: &'a [u8], lengths: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = stream;
    lengths.iter().cycle().map_while(move |&length| {
        let (piece, behind) = rest.split_at(length.min(rest.len()));
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}

/// A stream with a few bytes changed and a stretch cut out.
fn broken(stream: &[u8], changes: &[(usize, u8)], cut: (usize, usize)) -> Vec<u8> {
    let mut stream = stream.to_vec();
    for &(at, byte) in changes {
        let length = stream.len();
        stream[at % length] = byte;
    }
    let begin = cut.0 % stream.len();
    let end = (begin + cut.1).min(stream.len());
    stream.drain(begin..end);
    stream
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn the_same_bytes_give_the_same_events_however_they_are_cut(
        which in 0_usize..5,
        lengths in prop::collection::vec(1_usize..3_000, 1..8),
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 0..6),
        cut in (any::<usize>(), 0_usize..3_000),
        longest in 2_000_u64..40_000,
    ) {
        let stream = broken([H264, H265, MPEG2, MPEG1, &CLIP[7..70_000]][which], &changes, cut);
        let config = ReaderConfig { longest_unit: DataSize::new(longest), ..ReaderConfig::default() };
        let whole = outcome_of(config, [&stream[..]]);
        prop_assert!(outcome_of(config, pieces(&stream, &lengths)) == whole);
        let (whole, outcome) = whole;
        let is_refused = matches!(outcome, Err(ReadError::NoPicture { .. }));
        prop_assert!(outcome.is_ok() || which == 3 && is_refused, "{:?}", outcome);
        // Understood data can be written, and each number belongs to a section or to a missing one.
        let mut next = std::collections::BTreeMap::new();
        for event in &whole {
            let (stream, number, needs) = match event {
                Event::Section(section) => (section.stream, section.number, section.needs),
                Event::Missing(missing) => (missing.stream, missing.number, None),
                Event::Notice(_) => continue,
            };
            let expected = next.entry(stream).or_insert(0);
            prop_assert_eq!(number, *expected);
            prop_assert!(needs.is_none_or(|needed| needed < number));
            *expected += 1;
        }
        let (sections, _) = part(whole);
        write(&sections);
    }
}

#[test]
fn single_bytes_are_enough() {
    let start = &H264[..30_000];
    let whole = events_of(ReaderConfig::default(), [start]);
    assert!(whole.len() > 10);
    assert_eq!(events_of(ReaderConfig::default(), start.chunks(1)), whole);
}

#[test]
fn lost_packets_cost_their_units() {
    let packets: Vec<&[u8]> = H264.chunks(PACKET).collect();
    let (whole, _) = read(H264);
    let is_filled = |packet: &[u8]| {
        packet[3] & 0x20 > 0 && packet[4] != 7 && packet[4 + usize::from(packet[4])] == 0xff
    };
    for lost in (8..packets.len()).step_by(7) {
        let stream = [&packets[..lost], &packets[lost + 1..]].concat().concat();
        let pid = u16::from_be_bytes([packets[lost][1] & 0x1f, packets[lost][2]]);
        let events = events_of(whole_units(), [&stream[..]]);
        let missing = { events.iter() }.filter(|event| matches!(event, Event::Missing(_)));
        let named = missing.count();
        let (sections, notices) = part(events);
        let goes_on = packets[lost + 1..]
            .iter()
            .any(|packet| packet[1..3] == [packets[lost][1] & 0x1f, packets[lost][2]]);
        // The loss of a stream's last packet is undetectable.
        if (pid != 0x100 && pid != 0x101) || !goes_on {
            continue;
        }
        // It was a unit of its own, or part of a longer unit, which is reported by its number.
        let is_alone = packets[lost][1] & 0x40 > 0 && is_filled(packets[lost]);
        let notice = match is_alone && named == 0 {
            true => Notice::Break { pid },
            false => Notice::Damaged { pid },
        };
        assert_eq!(notices, std::slice::from_ref(&notice), "packet {lost}");
        assert_eq!(named, usize::from(notice == Notice::Damaged { pid }));
        // One unit is missing, or two if both the end of one and the beginning of another were in
        // the packet; the rest is unchanged.
        let units = |sections: &[comity_media::MediaSection]| {
            let units = sections.iter().filter(|section| section.stream > 0);
            // Frames of sound behind the loss have no time stamps.
            units
                .map(|section| Header::decode(&section.payload).unwrap().1.to_vec())
                .collect::<Vec<_>>()
        };
        let (left, all) = (units(&sections), units(&whole));
        assert!(left.iter().all(|unit| all.contains(unit)), "packet {lost}");
        // An audio loss costs the rest of the PES packet, up to 16 frames.
        let most = if pid == 0x100 { 2 } else { 16 };
        let missing = all.len() - left.len();
        assert!((1..=most).contains(&missing), "packet {lost}: {missing}");
    }
}

#[test]
fn duplicate_packets_and_garbage_between_packets_change_nothing() {
    let doubled: Vec<u8> = H264
        .chunks(PACKET)
        .flat_map(|packet| [packet, packet].concat())
        .collect();
    assert_eq!(read(&doubled), read(H264));
    let (start, end) = H264.split_at(200 * PACKET);
    let (sections, notices) = read(&[start, &[0; 1_000], end].concat());
    assert_eq!(notices, [Notice::LostSync { skipped: 1_000 }]);
    assert_eq!(sections, read(H264).0);
    // A stream that begins in the middle of a packet.
    let (sections, notices) = read(&CLIP[1_000..]);
    assert_eq!(notices.first(), Some(&Notice::LostSync { skipped: 128 }));
    assert!(sections.len() > 300);
}

/// A transport stream without tables is raw bytes, and so is text that resembles a packet.
#[test]
fn a_stream_without_program_is_sent_as_raw_bytes() {
    let without: Vec<u8> = CLIP
        .chunks(PACKET)
        .filter(|packet| packet[1] & 0x1f != 0 || packet[2] != 0)
        .flatten()
        .copied()
        .collect();
    // The whole search range, too, and bytes after it.
    let more = [&without[..], &without, &[9; 3_000_000]].concat();
    for stream in [&without[..], &more, &[b'G'; 300]] {
        let whole = events_of(ReaderConfig::default(), [stream]);
        assert_eq!(
            events_of(ReaderConfig::default(), stream.chunks(1_316)),
            whole
        );
        let (sections, notices) = part(whole);
        assert_eq!(notices, [Notice::UnknownFormat]);
        let is_slice = |section: &comity_media::MediaSection| section.frame == FrameType::Slice;
        assert!(sections.iter().all(is_slice));
        assert!(write(&sections) == stream, "and written as it was");
    }
}

/// The first payload determines the format of the stream.
#[test]
fn bytes_and_packets_are_not_mixed_in_one_stream() {
    let (bytes, _) = read(&[9; 1_000]);
    let (units, _) = read(CLIP);
    for (first, second) in [(&bytes[0], &units[0]), (&units[0], &bytes[0])] {
        let mut writer = TsWriter::new(WriterConfig::default());
        let mut out = Vec::new();
        assert_eq!(writer.write(&first.payload, &mut out), Ok(()));
        let length = out.len();
        assert_eq!(
            writer.write(&second.payload, &mut out),
            Err(HeaderError::Mixed)
        );
        assert_eq!(out.len(), length);
        assert_eq!(writer.write(&first.payload, &mut out), Ok(()));
    }
}

/// The beginning determines the format: it may be as broken as the rest.
#[test]
fn a_broken_beginning_is_dropped_and_the_rest_is_read() {
    let units = |stream: &[u8]| {
        let (sections, notices) = read(stream);
        let of_kind = |kind: fn(FrameType) -> bool| {
            sections
                .iter()
                .filter(|section| kind(section.frame))
                .count()
        };
        (
            of_kind(|kind| !matches!(kind, FrameType::Slice | FrameType::Table)),
            of_kind(|kind| kind == FrameType::Slice),
            notices,
        )
    };
    let (whole, slices, _) = units(CLIP);
    assert_eq!(slices, 0);
    for damaged in 0..8 {
        let mut stream = CLIP.to_vec();
        stream[damaged * PACKET] = 0;
        let (found, slices, notices) = units(&stream);
        assert_eq!(slices, 0, "packet {damaged}");
        assert!(!notices.contains(&Notice::UnknownFormat));
        // Without the tables at the beginning, no unit is understood before the next ones arrive.
        assert!(
            found < whole + 1 && found + 40 > whole,
            "{damaged}: {found} of {whole}"
        );
    }
    for junk in [1, 187, 188, 189, 1_500, 20_000, 60_000] {
        let mut stream: Vec<u8> = (0..junk)
            .map(|at: u64| ((at * at) >> 3) as u8 & 0x3f)
            .collect();
        stream.extend_from_slice(CLIP);
        let (found, slices, notices) = units(&stream);
        assert_eq!((found, slices), (whole, 0), "{junk} bytes in front");
        assert!(
            notices.contains(&Notice::LostSync { skipped: junk }),
            "{notices:?}"
        );
    }
}

/// A source that does not resemble a transport stream within 64 kB, or half the duration of a
/// slice, is none.
#[test]
fn an_unknown_source_is_decided_in_time() {
    let stream = vec![9; 100_000];
    let mut reader = Reader::new(ReaderConfig::default());
    reader.push(&stream[..65_535]).unwrap();
    assert_eq!(reader.poll(), None);
    reader.push(&stream[..1]).unwrap();
    assert_eq!(reader.poll(), Some(Event::Notice(Notice::UnknownFormat)));
    let mut live = Reader::new(ReaderConfig::default());
    live.push_arrived(&stream[..2_000], Time::from_millis(1_000))
        .unwrap();
    live.push_arrived(&stream[..2_000], Time::from_millis(1_009))
        .unwrap();
    assert_eq!(live.poll(), None);
    live.push_arrived(&stream[..1], Time::from_millis(1_010))
        .unwrap();
    assert_eq!(live.poll(), Some(Event::Notice(Notice::UnknownFormat)));
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn random_bytes_are_no_transport_stream(
        noise in prop::collection::vec(any::<u8>(), 600..70_000),
        first in 0_u8..0x47,
    ) {
        // Noise resembles a packet once in 256.
        let noise = [&[first][..], &noise].concat();
        let (sections, notices) = read(&noise);
        prop_assert_eq!(notices, [Notice::UnknownFormat]);
        prop_assert_eq!(write(&sections), noise);
    }
}

#[test]
fn an_unknown_source_is_cut_at_the_assumed_rate() {
    let noise: Vec<u8> = (0..100_000_u64)
        .map(|at| ((at * at) >> 3) as u8 & 0x3f)
        .collect();
    let config = ReaderConfig {
        assumed_rate: Rate::from_mbps(1),
        ..ReaderConfig::default()
    };
    let (sections, notices) = part(events_of(config, [&noise[..]]));
    assert_eq!(notices, [Notice::UnknownFormat]);
    assert_eq!(write(&sections), noise);
    // 20 ms at 1 Mb/s are 2500 bytes: forty slices.
    assert_eq!(sections.len(), 40);
    for (index, section) in (0..).zip(&sections) {
        assert_eq!(section.source_time, Time::from_millis(20 * index));
        assert_eq!(section.deadline, Span::ZERO);
    }
    // A sequence header and nothing more.
    let config = ReaderConfig {
        longest_unit: DataSize::new(5_000),
        ..config
    };
    let empty = [&[0, 0, 1, 0xb3][..], &[9; 20_000]].concat();
    for length in [3_000, 20_004] {
        let (sections, notices) = part(events_of(config, [&empty[..length]]));
        assert_eq!(notices, [Notice::UnknownFormat]);
        assert_eq!(write(&sections), &empty[..length]);
    }
}

/// Video that stops being readable is refused.
#[test]
fn video_that_breaks_off_is_refused() {
    let config = ReaderConfig {
        longest_unit: DataSize::new(100_000),
        ..ReaderConfig::default()
    };
    let (whole, _) = read(MPEG1);
    let (last, before) = whole.split_last().expect("fifty pictures");
    let length = |section: &comity_media::MediaSection| -> usize {
        Header::decode(&section.payload)
            .expect("of the reader")
            .1
            .len()
    };
    let at = (MPEG1.len() - length(last)) as u64;
    let stream = [MPEG1, &[0, 0, 1, 0xb8][..], &[9; 200_000]].concat();
    let outcome = outcome_of(config, [&stream[..]]);
    assert!(outcome_of(config, stream.chunks(77)) == outcome);
    let bytes = 100_000;
    assert_eq!(outcome.1, Err(ReadError::NoPicture { at, bytes }));
    assert_eq!(part(outcome.0), (before.to_vec(), vec![]));
    assert_eq!(
        ReadError::NoPicture { at: 5, bytes }.to_string(),
        "MPEG video, byte 5: found no end of a picture in the next 100000 bytes; expected one"
    );
}

/// The clip with a change in every packet of one PID.
fn changed(pid: u16, change: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut stream = CLIP.to_vec();
    for packet in stream.chunks_mut(PACKET) {
        if u16::from_be_bytes([packet[1] & 0x1f, packet[2]]) == pid {
            change(packet);
        }
    }
    stream
}

#[test]
fn a_packet_that_is_marked_as_wrong_does_not_make_a_stream_scrambled() {
    let packets = CLIP.chunks(PACKET);
    let is_audio = |packet: &[u8]| packet[1] & 0x1f == 1 && packet[2] == 1;
    let audio: Vec<usize> = { packets.enumerate() }
        .filter(|(_, packet)| is_audio(packet))
        .map(|(at, _)| at * PACKET)
        .collect();
    let mut stream = CLIP.to_vec();
    let at = audio[audio.len() / 2];
    stream[at + 3] |= 0x80;
    for layouts in [false, true] {
        let config = ReaderConfig {
            layouts,
            ..ReaderConfig::default()
        };
        let is_scrambled = |stream: &[u8]| {
            let (_, notices) = part(events_of(config, [stream]));
            notices.contains(&Notice::Scrambled { pid: 0x101 })
        };
        assert!(is_scrambled(&stream));
        let mut marked = stream.clone();
        marked[at + 1] |= 0x80;
        assert!(!is_scrambled(&marked));
    }
}

#[test]
fn a_scrambled_stream_is_copied() {
    let stream = changed(0x101, |packet| packet[3] |= 0x80);
    let (sections, notices) = read(&stream);
    assert_eq!(notices, [Notice::Scrambled { pid: 0x101 }]);
    let packets = |stream: &[u8]| {
        let scrambled = stream.chunks(PACKET).filter(|packet| packet[3] & 0xc0 != 0);
        scrambled.map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    let copy = write(&sections);
    assert_eq!(packets(&copy), packets(&stream));
    assert!(packets(&copy).len() > 100);
    let pictures = sections
        .iter()
        .filter(|section| section.frame.is_picture())
        .count();
    assert_eq!(pictures, 250, "the picture is not scrambled");
}

/// The clip with a different audio stream type in each map, and corrected checksums.
fn with_sound_of_type(stream_type: u8) -> Vec<u8> {
    changed(0x1000, |packet| {
        let section = &mut packet[5..];
        let length = 3 + usize::from(section[2]);
        let at = section[..length]
            .windows(3)
            .position(|bytes| bytes == [0x0f, 0xe1, 0x01]);
        section[at.expect("AAC on PID 0x101")] = stream_type;
        let mut crc = u32::MAX;
        for &byte in &section[..length - 4] {
            for bit in (0..8).rev() {
                let top = crc >> 31 ^ u32::from(byte >> bit & 1);
                crc = crc << 1 ^ if top == 1 { 0x04c1_1db7 } else { 0 };
            }
        }
        section[length - 4..length].copy_from_slice(&crc.to_be_bytes());
    })
}

#[test]
fn streams_of_unknown_frames_are_carried_whole() {
    let (original, _) = read(CLIP);
    let bytes = |sections: &[comity_media::MediaSection], frame: FrameType| {
        let of_it = sections.iter().filter(|section| section.frame == frame);
        of_it
            .flat_map(|section| {
                Header::decode(&section.payload)
                    .expect("of the reader")
                    .1
                    .to_vec()
            })
            .collect::<Vec<_>>()
    };
    // Private data; AC-3 and E-AC-3, which are known audio types.
    for (stream_type, frame) in [
        (0x06, FrameType::Opaque),
        (0x81, FrameType::Audio),
        (0x87, FrameType::Audio),
    ] {
        let (sections, notices) = read(&with_sound_of_type(stream_type));
        let unknown = Notice::UnsupportedCodec {
            pid: 0x101,
            stream_type,
        };
        let expected = (frame == FrameType::Opaque).then_some(unknown);
        assert_eq!(notices, expected.into_iter().collect::<Vec<_>>());
        // A section for each of its 30 PES packets.
        let packets = { sections.iter() }.filter(|section| section.frame == frame);
        assert_eq!(packets.count(), 30, "{stream_type:#x}");
        assert_eq!(
            bytes(&sections, frame),
            bytes(&original, FrameType::Audio),
            "{stream_type:#x}"
        );
        ts::check(&write(&sections), 0x1000, 0x100);
    }
}

#[test]
fn memory_stays_bounded_when_a_unit_never_ends() {
    // A stream with one endless unit: all of its packets but the first one, repeated.
    let config = ReaderConfig {
        longest_unit: DataSize::new(50_000),
        ..ReaderConfig::default()
    };
    let mut reader = Reader::new(config);
    reader.push(&H264[..10 * PACKET]).unwrap();
    let mut packet = [0xab; PACKET];
    let mut oversized = 0;
    let video = H264[..10 * PACKET]
        .chunks(PACKET)
        .rfind(|packet| packet[2] == 0 && packet[1] & 0x1f == 1);
    let mut counter = video.expect("video within the first ten packets")[3];
    for _ in 0..1_000 {
        counter = counter.wrapping_add(1) & 0x0f;
        packet[..4].copy_from_slice(&[0x47, 0x01, 0x00, 0x10 | counter]);
        reader.push(&packet).unwrap();
        while let Some(event) = reader.poll() {
            if let Event::Notice(Notice::Oversized { pid, bytes }) = event {
                assert_eq!(pid, 0x100);
                assert!((50_001..50_400).contains(&bytes), "{bytes}");
                oversized += 1;
            }
        }
    }
    assert_eq!(oversized, 1);
}

/// The payload of a section with an access unit.
fn section(unit: Unit, bytes: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    Header::Unit(unit).encode(&mut payload);
    payload.extend(bytes);
    payload
}

/// Table 2-22 lists streams whose PES packets have no flags and no time stamps: these are the first
/// and the last.
#[test]
fn units_of_streams_without_time_stamps_are_written_whole() {
    for stream_id in [0xbc, 0xff] {
        // The bytes occupy the position of the flags in a packet with time stamps: all of them set.
        for bytes in [&[0][..], &[0xff; 30]] {
            let unit = Unit {
                pid: 0x100,
                stream_type: 0,
                stream_id,
                frame: FrameType::Key,
                times: Times::Presentation(90_000),
                random_access: false,
                discontinuity: true,
                aligned: true,
            };
            let mut writer = TsWriter::new(WriterConfig::default());
            let mut out = Vec::new();
            assert_eq!(writer.write(&section(unit, bytes), &mut out), Ok(()));
            writer.finish(&mut out);
            let length = u8::try_from(bytes.len()).expect("a short unit");
            let whole = [&[0, 0, 1, stream_id, 0, length], bytes].concat();
            assert!(out.ends_with(&whole), "stream {stream_id:#x}");
            let packets = ts::packets(&out);
            let units: Vec<_> = packets
                .iter()
                .filter(|packet| packet.pid == 0x100)
                .collect();
            assert_eq!(units.len(), 1);
            assert!(units[0].begins && units[0].presentation.is_none());
        }
    }
}

/// Any unit with a header; streams without time stamps are as frequent as others.
fn units() -> impl Strategy<Value = Unit> {
    use FrameType::{Audio, Bidirectional, Intra, Key, Opaque, Parameters, Predicted};
    let frames = [
        Key,
        Intra,
        Predicted { referenced: true },
        Bidirectional { referenced: false },
        Audio,
        Parameters,
        Opaque,
    ];
    let stamp = 0_u64..1 << 33;
    let times = prop_oneof![
        Just(Times::None),
        stamp.clone().prop_map(Times::Presentation),
        (stamp.clone(), stamp).prop_map(|(presentation, decoding)| Times::Both {
            presentation,
            decoding
        }),
    ];
    let without_stamps = prop::sample::select(ts::WITHOUT_OPTIONAL_HEADER.to_vec());
    // Few PIDs, so that several units share a stream; or any.
    let pid = prop_oneof![0x0ffe_u16..0x1002, 0x10_u16..0x1fff];
    (
        (pid, any::<u8>(), prop_oneof![without_stamps, any::<u8>()]),
        (prop::sample::select(frames.to_vec()), times),
        any::<[bool; 3]>(),
    )
        .prop_map(|((pid, stream_type, stream_id), (frame, times), marks)| {
            let [random_access, discontinuity, aligned] = marks;
            Unit {
                pid,
                stream_type,
                stream_id,
                frame,
                times,
                random_access,
                discontinuity,
                aligned,
            }
        })
}

proptest! {
    #[test]
    fn a_writer_takes_every_unit_and_keeps_their_order(
        units in prop::collection::vec((units(), prop::collection::vec(any::<u8>(), 1..300)), 1..20),
    ) {
        let mut writer = TsWriter::new(WriterConfig::default());
        let mut out = Vec::new();
        for (unit, bytes) in &units {
            prop_assert_eq!(writer.write(&section(*unit, bytes), &mut out), Ok(()));
        }
        writer.finish(&mut out);
        // Tables are on PID 0, and on the first free one from 0x1000.
        let is_unit = |pid: u16| units.iter().any(|(unit, _)| unit.pid == pid);
        let written: Vec<_> = ts::packets(&out)
            .into_iter()
            .filter(|packet| packet.begins && is_unit(packet.pid))
            .collect();
        prop_assert_eq!(written.len(), units.len());
        let mut unstamped = 0;
        for (packet, (unit, _)) in written.iter().zip(&units) {
            prop_assert_eq!(packet.pid, unit.pid);
            let stamp = unit.times.presentation();
            let stamp = stamp.filter(|_| ts::has_optional_header(unit.stream_id));
            if packet.presentation != stamp {
                prop_assert_eq!(packet.presentation, None);
                unstamped += 1;
            }
        }
        prop_assert!(unstamped <= writer.statistics().unstamped_units);
    }

    #[test]
    fn a_writer_takes_or_refuses_whatever_comes(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..20),
    ) {
        let mut writer = TsWriter::new(WriterConfig::default());
        let mut out = Vec::new();
        for mut payload in payloads {
            // Mostly valid unit headers, so that the writer produces packets.
            for (at, known, least) in [(0, 0, 0x11), (1, 0x1d, 0), (2, 0x1f, 0), (6, 0x07, 1)] {
                if let Some(byte) = payload.get_mut(at) {
                    *byte = (*byte & known) + least;
                }
            }
            let before = out.len();
            if writer.write(&payload, &mut out).is_err() {
                prop_assert_eq!(out.len(), before);
            }
        }
        writer.finish(&mut out);
        ts::packets(&out);
    }
}
