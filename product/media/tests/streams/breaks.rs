//! Transport streams with a break: the dropped data, the continuation, and the refused streams.

use comity_media::{
    Event, Header, MediaSection, Notice, PACKET, ReadError, Reader, ReaderConfig, TsWriter, Unit,
    WriterConfig,
};
use comity_units::{Span, Time};
use proptest::prelude::*;

use crate::times::generated;
use crate::{CLIP, H264, H265, MPEG2, cases, outcome_of, part, read, read_whole, write};

/// The search range for a packet, in bytes.
const SEARCHED: usize = 1 << 20;

/// Bytes without any packet: none of them is a sync byte.
fn text(length: usize) -> Vec<u8> {
    let line = b"no packet begins in this line, nor in the next one\n";
    line.iter().copied().cycle().take(length).collect()
}

/// Random bytes, sync bytes among them: a linear congruential generator modulo 2^64.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    core::iter::repeat_with(next).take(length).collect()
}

fn left_out(notices: &[Notice]) -> u64 {
    let bytes = notices.iter().map(|notice| match notice {
        Notice::LostSync { skipped } => *skipped,
        _ => 0,
    });
    bytes.sum()
}

/// The units of elementary streams, without their positions and discontinuity flags.
fn units(sections: &[MediaSection]) -> Vec<(Unit, &[u8])> {
    let headers = sections
        .iter()
        .map(|section| Header::decode(&section.payload));
    headers
        .filter_map(|header| match header.expect("of the reader") {
            (Header::Unit(unit), bytes) => {
                let discontinuity = false;
                Some((
                    Unit {
                        discontinuity,
                        ..unit
                    },
                    bytes,
                ))
            }
            _ => None,
        })
        .collect()
}

/// Sections of stream 0 never go back in time, and their numbers are complete.
fn check_order(sections: &[MediaSection]) {
    let tables = sections.iter().filter(|section| section.stream == 0);
    let mut last = Time::ZERO;
    for (number, section) in (0..).zip(tables) {
        assert_eq!(section.number, number);
        assert!(section.source_time >= last, "{last} before {section:?}");
        last = section.source_time;
    }
}

/// Bytes between two packets are dropped and counted, with at most one unit of each stream.
#[test]
fn a_stretch_of_garbage_is_skipped_and_the_streams_continue() {
    let (whole, _) = read_whole(CLIP);
    let (start, end) = CLIP.split_at(1_500 * PACKET);
    let rare_syncs = |length| {
        let mut bytes = text(length);
        bytes
            .iter_mut()
            .skip(500)
            .step_by(189)
            .for_each(|byte| *byte = 0x47);
        bytes
    };
    for (kind, junk) in [
        ("zeros", vec![0; 200_000]),
        ("text", text(200_000)),
        ("one sync byte in a packet's length", rare_syncs(200_000)),
        ("as much as is searched", text(SEARCHED)),
    ] {
        let (sections, notices) = read_whole(&[start, &junk, end].concat());
        let damaged = |notice: &&Notice| matches!(notice, Notice::Damaged { .. });
        let (damaged, others): (Vec<&Notice>, Vec<_>) = notices.iter().partition(damaged);
        let skipped = junk.len() as u64;
        assert_eq!(others, [&Notice::LostSync { skipped }], "{kind}");
        let (left, all) = (units(&sections), units(&whole));
        assert!(left.iter().all(|unit| all.contains(unit)), "{kind}");
        assert_eq!(all.len() - left.len(), damaged.len(), "{kind}");
        assert!((1..=2).contains(&damaged.len()), "{kind}");
        check_order(&sections);
        // The times of the remaining units are unchanged.
        let times = |sections: &[MediaSection]| -> Vec<_> {
            let units = sections.iter().filter(|section| section.stream > 0);
            units
                .map(|section| (section.payload.clone(), section.source_time))
                .collect()
        };
        let all = times(&whole);
        assert!(times(&sections).iter().all(|unit| all.contains(unit)));
        crate::ts::check(&write(&sections), 0x1000, 0x100);
    }
}

/// Insertions shorter than the range of the continuity counters cost nothing. Longer ones cost a
/// unit, because packets may be missing.
#[test]
fn a_stretch_within_counter_range_costs_nothing_if_nothing_is_missing() {
    let (start, end) = CLIP.split_at(1_500 * PACKET);
    for (length, is_whole) in [(16 * PACKET - 1, true), (16 * PACKET, false)] {
        let (sections, notices) = read(&[start, &text(length), end].concat());
        assert_eq!(left_out(&notices), length as u64);
        assert_eq!(sections == read(CLIP).0, is_whole, "{length}");
    }
}

/// A longer stretch without a packet is refused, with its position; the earlier data is returned.
#[test]
fn a_stream_without_packets_for_too_long_is_refused() {
    let at = 1_500 * PACKET;
    let (start, end) = CLIP.split_at(at);
    let (alone, _) = read(start);
    for junk in [text(SEARCHED + 1), text(3_000_000), vec![0; SEARCHED + 500]] {
        let error = ReadError::NoPacket {
            at: at as u64,
            found: junk[0],
        };
        let stream = [start, &junk, end].concat();
        let whole = outcome_of(ReaderConfig::default(), [&stream[..]]);
        assert_eq!(whole.1, Err(error));
        let pieces = outcome_of(ReaderConfig::default(), stream.chunks(1_316));
        assert!(pieces == whole);
        let (sections, _) = part(whole.0);
        let (given, all) = (units(&sections), units(&alone));
        // Incomplete units may have been cut.
        assert!(given.len() + 2 >= all.len() && all.starts_with(&given));
    }
    let error = ReadError::NoPacket {
        at: at as u64,
        found: b'n',
    };
    assert_eq!(
        error.to_string(),
        "transport stream, byte 282000: found 0x6e and no packet in the next 1048576 bytes; \
         expected the sync byte 0x47 at the beginning of each packet"
    );
}

/// A live source may have anything for any time: a byte carrier goes on, and so does the reader.
#[test]
fn a_live_source_goes_on_behind_any_length_without_packets() {
    for (length, reports) in [(1_200_000, 2), (5 << 20, 5)] {
        let stream = [CLIP, &text(length), CLIP].concat();
        let mut reader = Reader::new(ReaderConfig {
            layouts: true,
            ..ReaderConfig::default()
        });
        let mut writer = TsWriter::new(WriterConfig::default());
        let (mut out, mut notices, mut pictures) = (Vec::new(), Vec::new(), [0, 0]);
        let (mut read, mut now) = (0, Time::ZERO);
        for piece in stream.chunks(7 * PACKET) {
            now += Span::from_millis(1);
            reader.push_arrived(piece, now).expect("a live source");
            read += piece.len();
            let is_behind = usize::from(read > CLIP.len() + length);
            for event in core::iter::from_fn(|| reader.poll()) {
                match event {
                    Event::Section(section) => {
                        pictures[is_behind] += usize::from(section.frame.is_picture());
                        let MediaSection { stream, number, .. } = section;
                        let written =
                            writer.write_section(stream, number, &section.payload, &mut out);
                        written.expect("of the reader");
                    }
                    Event::Notice(notice) => notices.push(notice),
                    Event::Missing(missing) => {
                        writer.miss(missing.stream, missing.number, 1, &mut out);
                    }
                }
            }
            // The break does not wait for its end.
            assert!(
                read - out.len() < SEARCHED + 200_000,
                "{}",
                read - out.len()
            );
        }
        assert_eq!(left_out(&notices), length as u64);
        let is_lost = |notice: &&Notice| matches!(notice, Notice::LostSync { .. });
        assert_eq!(notices.iter().filter(is_lost).count(), reports);
        reader.finish().expect("a live source");
        for event in core::iter::from_fn(|| reader.poll()) {
            if let Event::Section(section) = event {
                let MediaSection { stream, number, .. } = section;
                let written = writer.write_section(stream, number, &section.payload, &mut out);
                written.expect("of the reader");
            }
        }
        writer.finish(&mut out);
        assert!(out == stream, "{} of {} bytes", out.len(), stream.len());
        assert!(
            pictures[0].abs_diff(pictures[1]) <= 2 && pictures[0] > 200,
            "{pictures:?}"
        );
    }
}

/// After an error, the reader stays in that state until the source ends.
#[test]
fn an_error_is_returned_until_the_end() {
    let mut reader = Reader::new(ReaderConfig::default());
    reader.push(&CLIP[..100_000]).expect("a clip");
    let error = reader.push(&text(2_000_000)).expect_err("text");
    assert_eq!(reader.push(CLIP), Err(error));
    assert_eq!(reader.finish(), Err(error));
    while reader.poll().is_some() {}
    assert_eq!(reader.push(CLIP), Ok(()));
    assert_eq!(reader.finish(), Ok(()));
    let again: Vec<Event> = core::iter::from_fn(|| reader.poll()).collect();
    assert_eq!(part(again), read(CLIP));
}

/// A file cut within a packet loses an unknown part of a unit without a length. If the packet
/// before had stuffing, the picture was complete.
#[test]
fn a_cut_within_a_packet_costs_the_incomplete_units() {
    let (whole, _) = read_whole(CLIP);
    let known = units(&whole);
    let mut ended = 0;
    for packets in 1_480..1_520 {
        for length in [1, 3, 77, 187] {
            let (sections, notices) = read_whole(&CLIP[..packets * PACKET + length]);
            assert_eq!(left_out(&notices), length as u64);
            let left = units(&sections);
            let cut: Vec<_> = left.iter().filter(|unit| !known.contains(unit)).collect();
            assert!(cut.is_empty(), "{packets}: {cut:?}");
            let damaged = |notice: &&Notice| matches!(notice, Notice::Damaged { .. });
            let damaged = notices.iter().filter(damaged).count();
            // A file that ends between packets is assumed to end with the picture.
            let before = read_whole(&CLIP[..packets * PACKET]).0;
            let open = units(&before).len() - left.len();
            let of_video = |packet: &&[u8]| packet[1] & 0x1f == 1 && packet[2] == 0;
            let last = CLIP[..packets * PACKET].chunks(PACKET).rfind(of_video);
            // No references follow stuffing here: the last byte of the field decides.
            let is_filled = last.is_some_and(|packet| {
                packet[3] & 0x20 > 0 && packet[4] != 7 && packet[4 + usize::from(packet[4])] == 0xff
            });
            assert_eq!(open, usize::from(!is_filled), "{packets}");
            assert!(
                (open..=open + 1).contains(&damaged),
                "{packets}: {notices:?}"
            );
            ended += usize::from(is_filled);
        }
    }
    // After 13 of these packets, no picture is incomplete.
    assert_eq!(ended, 13 * 4);
}

/// Data before and after an overwritten stretch is read unchanged.
#[test]
fn an_overwritten_stretch_costs_the_units_in_it() {
    let (whole, _) = read_whole(CLIP);
    for (begin, length, seed) in [
        (300_007, 150_000, 1),
        (200_000, 60_013, 2),
        (188 * 900, 188 * 320, 3),
    ] {
        let kinds = [noise(length, seed), vec![0; length], text(length)];
        for junk in kinds {
            let mut stream = CLIP.to_vec();
            stream[begin..begin + length].copy_from_slice(&junk);
            let (sections, notices) = read_whole(&stream);
            let skipped = left_out(&notices) as usize;
            // The break begins and ends within a packet, which belongs to it.
            assert_eq!(skipped % PACKET, 0);
            assert!(skipped + 4 * PACKET > length && skipped < length + 4 * PACKET);
            check_order(&sections);
            // Later pictures are complete: all that begin two units after the break are present.
            let (left, all) = (units(&sections), units(&whole));
            assert!(left.iter().all(|unit| all.contains(unit)));
            let (kept, _) = read_whole(&CLIP[..begin - begin % PACKET]);
            let (again, _) = read_whole(&CLIP[(begin + length).next_multiple_of(PACKET)..]);
            let behind = units(&again).len();
            assert!(
                left.len() + 4 >= units(&kept).len() + behind,
                "{}",
                left.len()
            );
        }
    }
}

/// Data with a sync byte in every position is packets, whatever their content.
#[test]
fn sync_bytes_alone_are_packets_of_an_unreferenced_stream() {
    let (start, end) = CLIP.split_at(1_500 * PACKET);
    let (whole, _) = read_whole(CLIP);
    for length in [200 * PACKET, 200 * PACKET + 77] {
        let (sections, notices) = read_whole(&[start, &vec![0x47; length], end].concat());
        let unknown = Notice::Unreferenced { pid: 0x747 };
        assert!(notices.contains(&unknown), "{notices:?}");
        assert_eq!(left_out(&notices) % PACKET as u64, (length % PACKET) as u64);
        assert!(left_out(&notices) < 2 * PACKET as u64);
        // All of it is reported, as packets or as skipped bytes, except for packets that end with
        // the stream's own bytes.
        let Some(Notice::UnreferencedInAll { streams: 1, bytes }) = notices.last() else {
            panic!("{notices:?}")
        };
        let reported = bytes + left_out(&notices);
        let most = (length + PACKET) as u64;
        assert!((length as u64..=most).contains(&reported), "{reported}");
        let (left, all) = (units(&sections), units(&whole));
        assert!(left.iter().all(|unit| all.contains(unit)));
        assert!(
            left.len() + 3 >= all.len(),
            "{} of {}",
            left.len(),
            all.len()
        );
    }
}

/// If the time stamps jump at a break, the times continue from the last one.
#[test]
fn after_a_break_with_a_jump_times_never_go_back() {
    // Four seconds at 1.2 Mb/s, then four others with a clock three hours off.
    let stamps = |first: u64| generated(100, 5_000, move |number| Some(first + 3_600 * number));
    let (start, other) = (stamps(90_000), stamps(3 * 3_600 * 90_000));
    let (sections, notices) = read(&[&start, &text(300_000), &other[..]].concat());
    let is_jump = |notice: &Notice| matches!(notice, Notice::Discontinuity { .. });
    assert!(notices.iter().any(is_jump), "{notices:?}");
    check_order(&sections);
    let video: Vec<_> = sections
        .iter()
        .filter(|section| section.stream == 1)
        .collect();
    assert!(video.is_sorted_by_key(|section| section.source_time));
    let last = video.last().expect("pictures").source_time;
    assert!(
        (Time::from_millis(7_700)..=Time::from_secs(8)).contains(&last),
        "{last}"
    );
    let longest = { video.windows(2) }
        .map(|pair| pair[1].source_time.saturating_since(pair[0].source_time))
        .max();
    assert!(longest.is_some_and(|longest| longest <= Span::from_millis(120)));
}

#[test]
fn a_break_before_the_tables_is_skipped() {
    let is_media = |packet: &&[u8]| packet[1] & 0x1f == 1;
    let media: Vec<u8> = { CLIP.chunks(PACKET).filter(is_media).take(20) }
        .flatten()
        .copied()
        .collect();
    let (sections, notices) = read(&[&media[..], &text(50_000), CLIP].concat());
    assert_eq!(left_out(&notices), 50_000);
    assert!(!notices.contains(&Notice::UnknownFormat), "{notices:?}");
    assert!(units(&sections).len() + 3 > units(&read(CLIP).0).len());
    crate::ts::check(&write(&sections), 0x1000, 0x100);
}

#[test]
fn packets_at_wider_strides_are_extracted() {
    for (stride, before) in [(192, 4), (204, 0)] {
        let spread: Vec<u8> = CLIP
            .chunks(PACKET)
            .zip(0_u32..)
            .flat_map(|(packet, count)| {
                let (front, behind) = (count.to_be_bytes(), noise(16, u64::from(count)));
                [
                    &front[..before],
                    packet,
                    &behind[..stride - PACKET - before],
                ]
                .concat()
            })
            .collect();
        let (sections, notices) = read(&spread);
        assert_eq!(
            notices,
            [Notice::PacketsApart {
                bytes: stride as u64
            }]
        );
        assert_eq!(sections, read(CLIP).0);
        // A break of them as well.
        let at = 1_500 * stride;
        let (sections, notices) = read(&[&spread[..at], &text(50_000), &spread[at..]].concat());
        let skipped = left_out(&notices);
        assert!(
            (50_000 - before..=50_000 + before).contains(&(skipped as usize)),
            "{skipped}"
        );
        assert!(units(&sections).len() + 2 >= units(&read(CLIP).0).len());
    }
}

/// An AVI or MP4 file may hold MPEG-2 video, but its container precedes the first sequence header.
#[test]
fn a_later_sequence_header_does_not_make_an_elementary_stream() {
    let stream = [&b"RIFF and what a container begins with"[..], crate::MPEG1].concat();
    let (sections, notices) = read(&stream);
    assert_eq!(notices, [Notice::UnknownFormat]);
    assert_eq!(write(&sections), stream);
}

proptest! {
    #![proptest_config(cases(24))]

    /// Every byte of a transport stream is in a packet or counted, however the stream is split.
    #[test]
    fn every_byte_of_a_broken_stream_is_accounted_for(
        which in 0_usize..4,
        breaks in prop::collection::vec((any::<usize>(), 0_usize..30_000, 0_usize..4, any::<bool>()), 1..4),
        lengths in prop::collection::vec(1_usize..3_000, 1..8),
    ) {
        // The beginning identifies the format.
        let mut stream = [H264, H265, MPEG2, &CLIP[..40_000]][which].to_vec();
        let mut seed = 7;
        for (at, length, kind, is_inserted) in breaks {
            seed += 1;
            let junk = match kind {
                0 => noise(length, seed),
                1 => vec![0; length],
                2 => vec![0x47; length],
                _ => text(length),
            };
            let begin = 10 * PACKET + at % (stream.len() - 10 * PACKET);
            let end = if is_inserted { begin } else { (begin + length).min(stream.len()) };
            stream.splice(begin..end, junk);
        }
        let whole = outcome_of(ReaderConfig::default(), [&stream[..]]);
        let mut rest = &stream[..];
        let pieces = lengths.iter().cycle().map_while(|&length| {
            let (piece, behind) = rest.split_at(length.min(rest.len()));
            rest = behind;
            (!piece.is_empty()).then_some(piece)
        });
        prop_assert!(outcome_of(ReaderConfig::default(), pieces) == whole);
        prop_assert_eq!(whole.1, Ok(()));
        let (sections, notices) = part(whole.0);
        let packets = (stream.len() as u64).checked_sub(left_out(&notices));
        prop_assert_eq!(packets.map(|bytes| bytes % PACKET as u64), Some(0));
        check_order(&sections);
        write(&sections);
    }
}
