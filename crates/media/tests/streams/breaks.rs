//! Transport streams that break midway: which bytes are left out, which are given as they are, and where the streams go on.

use comity_media::{
    Event, FrameType, Header, MediaSection, Notice, PACKET, Reader, ReaderConfig, TsWriter, Unit,
    WriterConfig,
};
use comity_units::{Span, Time};
use proptest::prelude::*;

use crate::times::generated;
use crate::{CLIP, H264, H265, MPEG2, events_of, part, read, write};

/// What is held of a break, and left out when packets are found within it.
const HELD: usize = 64 * PACKET;

/// Bytes in which no packet is found. Their rhythm is none: no byte is the one that packets begin with.
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

fn raw(section: &MediaSection) -> Option<&[u8]> {
    match Header::decode(&section.payload) {
        Ok((Header::Raw, bytes)) => Some(bytes),
        _ => None,
    }
}

fn raw_bytes(sections: &[MediaSection]) -> Vec<u8> {
    sections.iter().filter_map(raw).flatten().copied().collect()
}

fn left_out(notices: &[Notice]) -> u64 {
    let bytes = notices.iter().map(|notice| match notice {
        Notice::LostSync { skipped } => *skipped,
        _ => 0,
    });
    bytes.sum()
}

/// The units of elementary streams, apart from where they stand and whether the clock jumped there.
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

/// Sections of stream 0 never go back in time, and their numbers have no holes.
fn check_order(sections: &[MediaSection]) {
    let tables = sections.iter().filter(|section| section.stream == 0);
    let mut last = Time::ZERO;
    for (number, section) in (0..).zip(tables) {
        assert_eq!(section.number, number);
        assert!(section.source_time >= last, "{last} before {section:?}");
        last = section.source_time;
    }
}

/// Bytes between two packets, so many that they are given: no byte of the stream or of the break is missing.
#[test]
fn a_long_break_is_given_in_its_place_and_the_streams_go_on_behind_it() {
    let (whole, _) = read(CLIP);
    let at = 1_500 * PACKET;
    let (start, end) = CLIP.split_at(at);
    let kinds: [(&str, Vec<u8>); 3] = [
        ("zeros", vec![0; 200_000]),
        ("text", text(200_000)),
        ("one sync byte in a packet's length", {
            let mut bytes = text(200_000);
            bytes
                .iter_mut()
                .skip(500)
                .step_by(189)
                .for_each(|byte| *byte = 0x47);
            bytes
        }),
    ];
    for (kind, junk) in kinds {
        let (sections, notices) = read(&[start, &junk, end].concat());
        assert_eq!(raw_bytes(&sections), junk, "{kind}");
        assert_eq!(left_out(&notices), 0, "{kind}");
        let damaged = |notice: &&Notice| matches!(notice, Notice::Damaged { .. });
        // The stamps behind the break go on as if it were not there: it lasts three seconds.
        let is_jump = |notice: &Notice| matches!(notice, Notice::Discontinuity { .. });
        assert_eq!(notices.iter().filter(|notice| is_jump(notice)).count(), 1);
        let notices: Vec<_> = notices
            .into_iter()
            .filter(|notice| !is_jump(notice))
            .collect();
        let (damaged, others): (Vec<&Notice>, Vec<_>) = notices.iter().partition(damaged);
        let bytes = junk.len() as u64;
        assert_eq!(
            others,
            [&Notice::NoPackets, &Notice::PacketsAgain { bytes }],
            "{kind}"
        );
        // A unit of each of the two streams is left out at the most, and told.
        let (left, all) = (units(&sections), units(&whole));
        assert!(left.iter().all(|unit| all.contains(unit)), "{kind}");
        assert_eq!(all.len() - left.len(), damaged.len(), "{kind}");
        assert!((1..=2).contains(&damaged.len()), "{kind}");
        check_order(&sections);
        // Before the first slice stands what is read of the packets before, and behind the last all that is read behind.
        let first = sections.iter().position(|section| raw(section).is_some());
        let (before, behind) = sections.split_at(first.expect("slices"));
        let (alone, _) = part({
            let mut reader = Reader::new(ReaderConfig::default());
            reader.push(start);
            core::iter::from_fn(|| reader.poll()).collect()
        });
        assert_eq!(before, alone, "{kind}");
        let slices = behind.iter().take_while(|section| raw(section).is_some());
        assert!(
            behind[slices.count()..]
                .iter()
                .all(|section| raw(section).is_none())
        );
        // The receiver's stream has the bytes in that place, in packets of no stream.
        let mut writer = TsWriter::new(WriterConfig::default());
        let mut prefix = Vec::new();
        for section in before {
            writer
                .write(&section.payload, &mut prefix)
                .expect("of the reader");
        }
        let copy = write(&sections);
        assert!(copy.starts_with(&prefix), "{kind}");
        let (null, from) = null_packets(&copy);
        assert_eq!(from, prefix.len(), "{kind}");
        assert_eq!(null, filled(&sections), "{kind}");
        crate::ts::check(&copy, 0x1000, 0x100);
    }
}

/// What the packets of PID 8,191 hold, which stand in a row; and where the first of them begins.
fn null_packets(stream: &[u8]) -> (Vec<u8>, usize) {
    let is_null = |packet: &&[u8]| packet[..4].starts_with(&[0x47, 0x1f, 0xff]);
    let packets = || stream.chunks(PACKET);
    let first = packets().position(|packet| is_null(&packet));
    let first = first.expect("null packets");
    let run = packets().skip(first).take_while(is_null);
    assert_eq!(run.clone().count(), packets().filter(is_null).count());
    // The standard lets them have no adaptation field.
    assert!(run.clone().all(|packet| packet[3] & 0xf0 == 0x10));
    (
        run.flat_map(|packet| &packet[4..]).copied().collect(),
        first * PACKET,
    )
}

/// The bytes of the slices as packets without a header hold them: 184 in each, the last of a slice filled up.
fn filled(sections: &[MediaSection]) -> Vec<u8> {
    let slices = sections.iter().filter_map(raw).map(|bytes| {
        let mut bytes = bytes.to_vec();
        bytes.resize(bytes.len().next_multiple_of(184), 0xff);
        bytes
    });
    slices.flatten().collect()
}

/// In the order in which a receiver that keeps deadlines gives them: by those, then by stream and number
/// (`docs/protocol.md`).
fn delivered(sections: &[MediaSection]) -> Vec<MediaSection> {
    let mut sections = sections.to_vec();
    sections.sort_by_key(|section| {
        let due = section.source_time + section.deadline;
        (due, section.stream, section.number)
    });
    sections
}

/// A rate that varies: the slices of a break last as if the bytes were those of the stream before. Where the stamps behind
/// say that they lasted up to half a second less, units keep their time, between slices; where they say more than that, or
/// that the bytes lasted longer, no unit comes before the last slice. What is written is whole in every case.
#[test]
fn units_behind_a_break_keep_their_times_beside_slices_of_half_a_second() {
    // Six seconds of about 0.9 Mb/s.
    let start = generated(150, 4_000, |number| Some(90_000 + 3_600 * number));
    let junk = text(200_000);
    let estimated = junk.len() as f64 / start.len() as f64 * 6.0;
    for (shorter_by, is_between, is_jump) in [
        (-0.7, false, false),
        (0.1, true, false),
        (0.35, true, false),
        (0.7, false, true),
    ] {
        let gap = ((estimated - shorter_by) * 25.0).round() as u64;
        let resumed = 90_000 + 3_600 * (149 + gap);
        let end = generated(100, 20_000, move |number| Some(resumed + 3_600 * number));
        let (sections, notices) = read(&[&start, &junk, &end[..]].concat());
        let jumped = |notice: &Notice| matches!(notice, Notice::Discontinuity { .. });
        assert_eq!(notices.iter().any(jumped), is_jump, "{shorter_by}");
        let order = delivered(&sections);
        let is_slice = |section: &MediaSection| raw(section).is_some();
        let first = order.iter().position(is_slice).expect("slices");
        let last = order.iter().rposition(is_slice).expect("slices");
        let between: Vec<_> = order[first..last]
            .iter()
            .filter(|section| section.stream > 0)
            .collect();
        // What stands before the break comes before it, but for what has the time of its first slice.
        let begin = order[first].source_time;
        let end = order[last].source_time;
        let is_behind = |section: &&&MediaSection| section.source_time > begin;
        let behind = between.iter().filter(is_behind).count();
        assert!(between.len() - behind <= 2, "{shorter_by}");
        assert_eq!(behind > 0, is_between, "{shorter_by}: {behind}");
        let earliest = between
            .iter()
            .copied()
            .filter(|section| is_behind(&section));
        if let Some(earliest) = earliest.map(|section| section.source_time).min() {
            let before = end.saturating_since(earliest).as_secs_f64();
            assert!((before - shorter_by).abs() < 0.1, "{before} s");
        }
        let in_order = |sections: &[MediaSection]| {
            let slices = sections.iter().filter_map(raw);
            slices.flatten().copied().collect::<Vec<_>>()
        };
        assert_eq!(in_order(&order), junk, "{shorter_by}");
        // Pictures that lie between slices are whole all the same.
        let copy = write(&order);
        // The stamps themselves go forward.
        assert_eq!(crate::ts::check(&copy, 0x1000, 0x100), 0, "{shorter_by}");
        let (again, complaints) = read(&copy);
        let damaged = |notice: &Notice| matches!(notice, Notice::Damaged { .. });
        assert!(!complaints.iter().any(damaged), "{complaints:?}");
        for pid in [0x100, 0x101] {
            let of = |sections| -> Vec<_> {
                let units: Vec<(Unit, &[u8])> = units(sections);
                { units.into_iter() }
                    .filter(|(unit, _)| unit.pid == pid)
                    .collect()
            };
            assert_eq!(of(&again), of(&order), "{shorter_by}");
        }
    }
}

/// Where a file was cut within a packet, nobody knows how much of a unit without a length is missing; but where the packet
/// before was filled up, the picture had ended with it.
#[test]
fn a_cut_within_a_packet_costs_the_units_that_were_not_over() {
    let (whole, _) = read(CLIP);
    let known = units(&whole);
    let mut ended = 0;
    for packets in 1_480..1_520 {
        for length in [1, 3, 77, 187] {
            let (sections, notices) = read(&CLIP[..packets * PACKET + length]);
            assert_eq!(left_out(&notices), length as u64);
            let left = units(&sections);
            let cut: Vec<_> = left.iter().filter(|unit| !known.contains(unit)).collect();
            assert!(cut.is_empty(), "{packets}: {cut:?}");
            let damaged = |notice: &&Notice| matches!(notice, Notice::Damaged { .. });
            let damaged = notices.iter().filter(damaged).count();
            // A file that ends between packets is taken to end with the picture.
            let before = read(&CLIP[..packets * PACKET]).0;
            let open = units(&before).len() - left.len();
            let of_video = |packet: &&[u8]| packet[1] & 0x1f == 1 && packet[2] == 0;
            let last = CLIP[..packets * PACKET].chunks(PACKET).rfind(of_video);
            // No references stand behind filling here: the field's last byte tells.
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
    // Behind 13 of these packets no picture is open.
    assert_eq!(ended, 13 * 4);
}

/// A stretch of the stream is overwritten: what lies before and behind is read as it was.
#[test]
fn what_is_overwritten_costs_the_units_in_it() {
    let (whole, _) = read(CLIP);
    for (begin, length, seed) in [
        (300_007, 150_000, 1),
        (200_000, 60_013, 2),
        (188 * 900, 188 * 320, 3),
    ] {
        let kinds = [noise(length, seed), vec![0; length], text(length)];
        for junk in kinds {
            let mut stream = CLIP.to_vec();
            stream[begin..begin + length].copy_from_slice(&junk);
            let (sections, notices) = read(&stream);
            let raw = raw_bytes(&sections);
            // Packets, left out, or given; the break ends and begins within a packet, which belongs to it.
            assert_eq!(
                (stream.len() - raw.len()) as u64 % PACKET as u64,
                left_out(&notices) % PACKET as u64
            );
            assert!(raw.len() + left_out(&notices) as usize + 4 * PACKET > length);
            assert!(raw.len() + (left_out(&notices) as usize) < length + 4 * PACKET);
            assert!(raw.len() + HELD > length);
            let given = stream.windows(raw.len()).any(|bytes| bytes == raw);
            assert!(given, "in one piece, as it was");
            check_order(&sections);
            // The pictures behind are whole again: all that begin two units behind the break are there.
            let (left, all) = (units(&sections), units(&whole));
            assert!(left.iter().all(|unit| all.contains(unit)));
            let (kept, _) = read(&CLIP[..begin - begin % PACKET]);
            let (again, _) = read(&CLIP[(begin + length).next_multiple_of(PACKET)..]);
            let behind = units(&again).len();
            assert!(
                left.len() + 4 >= units(&kept).len() + behind,
                "{}",
                left.len()
            );
        }
    }
}

/// What has a sync byte in every place is packets, whatever they hold.
#[test]
fn sync_bytes_alone_are_packets_of_a_stream_that_nobody_names() {
    let (start, end) = CLIP.split_at(1_500 * PACKET);
    let (whole, _) = read(CLIP);
    for length in [200 * PACKET, 200 * PACKET + 77] {
        let (sections, notices) = read(&[start, &vec![0x47; length], end].concat());
        let unknown = Notice::Unreferenced { pid: 0x747 };
        assert!(notices.contains(&unknown), "{notices:?}");
        assert!(raw_bytes(&sections).is_empty());
        assert_eq!(left_out(&notices) % PACKET as u64, (length % PACKET) as u64);
        assert!(left_out(&notices) < 2 * PACKET as u64);
        // All of it is told, as packets or as bytes without, but for those that end with the stream's own bytes.
        let Some(Notice::UnreferencedInAll { streams: 1, bytes }) = notices.last() else {
            panic!("{notices:?}")
        };
        let told = bytes + left_out(&notices);
        let most = (length + PACKET) as u64;
        assert!((length as u64..=most).contains(&told), "{told}");
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

#[test]
fn a_break_lasts_as_long_as_so_many_bytes_of_the_stream_did() {
    // 66.8 kB a second, ten seconds long.
    let rate = CLIP.len() as f64 / 10.0;
    let (start, end) = CLIP.split_at(1_500 * PACKET);
    let (sections, _) = read(&[start, &text(200_000), end].concat());
    let slices: Vec<_> = sections
        .iter()
        .filter(|section| raw(section).is_some())
        .collect();
    let before = sections.iter().take_while(|section| raw(section).is_none());
    let now = before
        .map(|section| section.source_time)
        .max()
        .expect("units");
    assert_eq!(
        slices[0].source_time, now,
        "from where the program has come to"
    );
    let length = slices
        .last()
        .expect("slices")
        .source_time
        .saturating_since(now);
    let expected = 200_000.0 / rate;
    assert!(
        (length.as_secs_f64() / expected - 1.0).abs() < 0.15,
        "{length:?}, not {expected} s"
    );
    assert!(
        slices
            .iter()
            .all(|slice| slice.deadline == Span::ZERO && slice.frame == FrameType::Slice)
    );
    // What stands behind it is not due before it, but for what the streams are apart.
    let end = slices.last().expect("slices").source_time;
    let behind = sections
        .iter()
        .skip_while(|section| raw(section).is_none())
        .filter(|section| section.stream > 0);
    let first = behind.map(|section| section.source_time).min();
    let least = Time::ZERO + end.saturating_since(Time::from_secs(1));
    assert!(
        first.is_some_and(|first| first >= least),
        "{first:?}, {end}"
    );
}

/// When the time stamps jump over a break, what follows is there when the break has gone by.
#[test]
fn behind_a_break_with_a_jump_nothing_lies_in_the_past() {
    // Four seconds of 1.2 Mb/s, then four others by a clock that is three hours off.
    let stamps = |first: u64| generated(100, 5_000, move |number| Some(first + 3_600 * number));
    let (start, other) = (stamps(90_000), stamps(3 * 3_600 * 90_000));
    let (sections, notices) = read(&[&start, &text(300_000), &other[..]].concat());
    let is_jump = |notice: &Notice| matches!(notice, Notice::Discontinuity { .. });
    assert!(notices.iter().any(is_jump), "{notices:?}");
    let last = sections
        .iter()
        .rposition(|section| raw(section).is_some())
        .expect("slices");
    let (before, behind) = sections.split_at(last + 1);
    let end = before[last].source_time;
    // 300 kB take two seconds and more at that rate.
    assert!(
        (Time::from_millis(5_500)..Time::from_millis(6_500)).contains(&end),
        "{end}"
    );
    assert!(behind.iter().all(|section| section.source_time >= end));
    let longest = behind
        .iter()
        .map(|section| section.source_time.saturating_since(end))
        .max();
    assert!(
        longest.is_some_and(|longest| longest < Span::from_millis(4_200)),
        "{longest:?}"
    );
}

#[test]
fn a_live_break_goes_by_when_it_arrives() {
    let mut reader = Reader::new(ReaderConfig::default());
    let mut now = Time::from_secs(50);
    let stream = [
        &CLIP[..1_000 * PACKET],
        &text(100_000),
        &CLIP[1_000 * PACKET..],
    ]
    .concat();
    for piece in stream.chunks(1_316) {
        reader.push_arrived(piece, now);
        now += Span::from_millis(20);
    }
    reader.finish();
    let (sections, _) = part(core::iter::from_fn(|| reader.poll()).collect());
    assert_eq!(raw_bytes(&sections), text(100_000));
    let times: Vec<_> = sections
        .iter()
        .filter(|section| raw(section).is_some())
        .map(|slice| slice.source_time)
        .collect();
    // The first 12 kB wait for packets; the other 88 kB take 67 pieces of 20 ms.
    let length = times.last().expect("slices").saturating_since(times[0]);
    assert!(
        (Span::from_millis(1_280)..=Span::from_millis(1_360)).contains(&length),
        "{length:?}"
    );
    check_order(&sections);
}

#[test]
fn a_break_before_the_tables_and_one_without_any_lose_nothing() {
    let without: Vec<u8> = CLIP
        .chunks(PACKET)
        .filter(|packet| packet[1] & 0x1f != 0 || packet[2] != 0)
        .flatten()
        .copied()
        .collect();
    // No program ever: packets and bytes come out as they went in.
    let stream = [
        &without[..1_000 * PACKET],
        &text(50_000),
        &without[1_000 * PACKET..],
    ]
    .concat();
    for stream in [
        &stream[..],
        &[&stream[..], &without[..], &text(50_000)].concat(),
    ] {
        let (sections, notices) = read(stream);
        assert_eq!(write(&sections), stream);
        assert!(
            notices.contains(&Notice::PacketsAgain { bytes: 50_000 }),
            "{notices:?}"
        );
        check_order(&sections);
        assert!(sections.iter().all(|section| section.stream == 0));
    }
    // A program whose tables come behind the break, but for one that is no table of programs.
    let (sections, notices) = read(&[&without[..20 * PACKET], &text(50_000), CLIP].concat());
    crate::ts::check(&write(&sections), 0x1000, 0x100);
    // And without any.
    let is_media = |packet: &&[u8]| packet[1] & 0x1f == 1;
    let media: Vec<u8> = { CLIP.chunks(PACKET).filter(is_media).take(20) }
        .flatten()
        .copied()
        .collect();
    let (sections, others) = read(&[&media[..], &text(50_000), CLIP].concat());
    assert_eq!(others, notices);
    assert_eq!(raw_bytes(&sections), text(50_000));
    assert!(!notices.contains(&Notice::UnknownFormat), "{notices:?}");
    assert!(units(&sections).len() + 3 > units(&read(CLIP).0).len());
    // The writer cannot know yet that there will be packets: they begin where packets of 188 bytes do.
    let copy = write(&sections);
    let (before, packets) = copy.split_at(50_000_usize.next_multiple_of(PACKET));
    assert!(before.starts_with(&text(50_000)));
    assert!(before[50_000..].iter().all(|&byte| byte == 0xff));
    crate::ts::check(packets, 0x1000, 0x100);
}

#[test]
fn packets_that_stand_further_apart_are_taken_out() {
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
        let given = raw_bytes(&sections);
        assert!(given.starts_with(&text(50_000)[4..]) || given.starts_with(&text(50_000)));
        assert!(given.len() <= 50_000 + before);
        assert!(
            notices
                .iter()
                .any(|notice| matches!(notice, Notice::PacketsAgain { .. }))
        );
        assert!(units(&sections).len() + 2 >= units(&read(CLIP).0).len());
    }
}

/// An AVI or MP4 file may hold MPEG-2 video: what stands before its first sequence header is what it is read by.
#[test]
fn a_sequence_header_further_on_does_not_make_an_elementary_stream() {
    let stream = [&b"RIFF and what a container begins with"[..], crate::MPEG1].concat();
    let (sections, notices) = read(&stream);
    assert_eq!(notices, [Notice::UnknownFormat]);
    assert_eq!(write(&sections), stream);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Of a transport stream, every byte is in a packet, left out and told, or in a slice; and the same ones however the
    /// stream is cut.
    #[test]
    fn every_byte_of_a_broken_stream_is_accounted_for(
        which in 0_usize..4,
        breaks in prop::collection::vec((any::<usize>(), 0_usize..30_000, 0_usize..4, any::<bool>()), 1..4),
        lengths in prop::collection::vec(1_usize..3_000, 1..8),
    ) {
        // The beginning says what the source is.
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
        let whole = events_of(ReaderConfig::default(), [&stream[..]]);
        let mut rest = &stream[..];
        let pieces = lengths.iter().cycle().map_while(|&length| {
            let (piece, behind) = rest.split_at(length.min(rest.len()));
            rest = behind;
            (!piece.is_empty()).then_some(piece)
        });
        prop_assert!(events_of(ReaderConfig::default(), pieces) == whole);
        // Slices between two notices are one stretch of the stream, as long as the second one says.
        let (mut stretch, mut from) = (Vec::new(), 0);
        let mut check = |stretch: &mut Vec<u8>, told: Option<u64>| {
            if told.is_some_and(|bytes| bytes != stretch.len() as u64) {
                return false;
            }
            let found = stretch.is_empty()
                || stream[from..].windows(stretch.len()).position(|bytes| bytes == stretch).is_some_and(|at| {
                    from += at + stretch.len();
                    true
                });
            stretch.clear();
            found
        };
        for event in &whole {
            match event {
                Event::Section(section) => stretch.extend(raw(section).unwrap_or_default()),
                Event::Notice(Notice::PacketsAgain { bytes }) => {
                    prop_assert!(*bytes > HELD as u64);
                    prop_assert!(check(&mut stretch, Some(*bytes)));
                }
                Event::Notice(_) | Event::Missing(_) => {}
            }
        }
        prop_assert!(check(&mut stretch, None));
        let (sections, notices) = part(whole);
        let gone = raw_bytes(&sections).len() as u64 + left_out(&notices);
        prop_assert_eq!((stream.len() as u64 - gone) % PACKET as u64, 0);
        check_order(&sections);
        let begun = notices.iter().filter(|notice| **notice == Notice::NoPackets).count();
        let ended = notices.iter().filter(|notice| matches!(notice, Notice::PacketsAgain { .. })).count();
        prop_assert!(begun == ended || begun == ended + 1);
        write(&sections);
    }
}
