//! Times that are missing, stand still, jump, run backwards or wrap.

use std::collections::BTreeMap;

use comity_media::{
    Event, Found, FrameType, Header, MediaSection, Notice, PACKET, Reader, ReaderConfig,
    TimeSource, Times, TsWriter, Unit, WriterConfig,
};
use comity_units::{Rate, Span, Time};

use crate::{CLIP, events_of, part, read};

const MAP: u16 = 0x1000;
const VIDEO: u16 = 0x100;
const AUDIO: u16 = 0x101;
const FRAME: u64 = 3_600;
const WRAP: u64 = 1 << 33;
const RATE: Rate = Rate::from_mbps(4);

/// The bytes of a picture: a delimiter and one slice of an IDR picture, filled up.
fn picture(length: usize) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x65, 0x88];
    bytes.resize(length, 0x55);
    bytes
}

/// 25 pictures a second of this length, with a packet of sound behind each, as the writer makes them. `stamp` gives
/// the decoding time of the n-th, which the clock references follow.
pub(crate) fn generated(
    pictures: u64,
    length: usize,
    stamp: impl Fn(u64) -> Option<u64>,
) -> Vec<u8> {
    let mut writer = TsWriter::new(WriterConfig::default());
    let mut out = Vec::new();
    for number in 0..pictures {
        for (pid, stream_type, stream_id, frame, bytes) in [
            (VIDEO, 0x1b, 0xe0, FrameType::Key, picture(length)),
            (AUDIO, 0x0f, 0xc0, FrameType::Audio, vec![0xff; 100]),
        ] {
            let times = match stamp(number) {
                Some(stamp) => Times::Presentation(stamp % WRAP),
                None => Times::None,
            };
            let unit = Unit {
                pid,
                stream_type,
                stream_id,
                frame,
                times,
                random_access: frame == FrameType::Key,
                discontinuity: false,
                aligned: true,
            };
            let mut payload = Vec::new();
            Header::Unit(unit).encode(&mut payload);
            payload.extend(bytes);
            writer.write(&payload, &mut out).unwrap();
        }
    }
    writer.finish(&mut out);
    out
}

/// Does something to the head of each PES packet of these streams, which is their number among those of their stream.
fn with_heads(stream: &mut [u8], pids: &[u16], mut change: impl FnMut(u64, &mut [u8])) {
    let mut numbers: BTreeMap<u16, u64> = BTreeMap::new();
    for packet in stream.chunks_mut(PACKET) {
        let pid = u16::from_be_bytes([packet[1] & 0x1f, packet[2]]);
        if packet[1] & 0x40 == 0 || !pids.contains(&pid) {
            continue;
        }
        let start = match packet[3] & 0x20 {
            0 => 4,
            _ => 5 + usize::from(packet[4]),
        };
        let number = numbers.entry(pid).or_default();
        change(*number, &mut packet[start..]);
        *number += 1;
    }
}

/// Takes the time stamps away, and fills up what they took.
fn unstamp(_: u64, head: &mut [u8]) {
    head[7] &= 0x3f;
    let length = usize::from(head[8]);
    head[9..9 + length].fill(0xff);
}

/// Takes the clock references away.
fn without_references(mut stream: Vec<u8>) -> Vec<u8> {
    for packet in stream.chunks_mut(PACKET) {
        if packet[3] & 0x20 != 0 && packet[4] > 0 && packet[5] & 0x10 != 0 {
            packet[5] &= !0x10;
            packet[6..12].fill(0xff);
        }
    }
    stream
}

/// The sections with media, and notices.
fn units(stream: &[u8]) -> (Vec<MediaSection>, Vec<Notice>) {
    let (mut sections, notices) = read(stream);
    sections.retain(|section| section.stream > 0);
    (sections, notices)
}

fn untimed(found: Found, by: TimeSource) -> Notice {
    Notice::Untimed {
        pid: MAP,
        found,
        by,
    }
}

/// Checks that times never go back by more than streams lie apart, that no more than `burst` bytes have one time, and
/// that they last as long as they should.
fn assert_paced(sections: &[MediaSection], burst: usize, lasts: (Span, Span)) {
    let mut at: BTreeMap<Time, usize> = BTreeMap::new();
    for section in sections {
        *at.entry(section.source_time).or_default() += section.payload.len();
    }
    let most = at.values().max().copied().unwrap_or(0);
    assert!(most <= burst, "{most} bytes at one time");
    let last = sections.last().expect("sections").source_time;
    assert!(
        (Time::ZERO + lasts.0..=Time::ZERO + lasts.1).contains(&last),
        "{last}"
    );
}

/// As long as these bytes take at 4 Mb/s, more or less the first quarter of a second and a picture.
fn by_rate(stream: &[u8]) -> (Span, Span) {
    let lasts = RATE.transmission_time(comity_units::Bytes::new(stream.len() as u64));
    let slack = Span::from_millis(300);
    (lasts.saturating_sub(slack), lasts + slack)
}

const TEN_SECONDS: (Span, Span) = (Span::from_millis(9_700), Span::from_millis(10_300));
/// A quarter of a second at 4 Mb/s, and a picture.
const BURST: usize = 150_000;

#[test]
fn what_has_no_times_goes_by_the_assumed_rate() {
    let stream = without_references(generated(250, 5_000, |_| None));
    let (sections, notices) = units(&stream);
    assert_eq!(sections.len(), 500);
    assert_eq!(notices, [untimed(Found::Missing, TimeSource::Rate(RATE))]);
    assert_paced(&sections, BURST, by_rate(&stream));
    // At another rate, it lasts as long as that one says.
    let config = ReaderConfig {
        assumed_rate: Rate::from_mbps(1),
        ..ReaderConfig::default()
    };
    let (sections, _) = part(events_of(config, [&stream[..]]));
    let last = sections.last().expect("sections").source_time;
    let expected =
        Rate::from_mbps(1).transmission_time(comity_units::Bytes::new(stream.len() as u64));
    assert!(
        last + Span::from_millis(300) >= Time::ZERO + expected,
        "{last}"
    );
}

#[test]
fn constant_times_and_references_count_as_none() {
    // The writer's references follow the stamps: they stand still as well.
    let stream = generated(250, 5_000, |_| Some(90_000));
    let (sections, notices) = units(&stream);
    assert_eq!(notices, [untimed(Found::Still, TimeSource::Rate(RATE))]);
    assert_paced(&sections, BURST, by_rate(&stream));
}

#[test]
fn clock_references_tell_the_time_where_stamps_are_missing_or_stand_still() {
    let good = generated(250, 5_000, |number| Some(90_000 + number * FRAME));
    for (found, change) in [
        (Found::Missing, unstamp as fn(u64, &mut [u8])),
        (Found::Still, |_, head| {
            head[9..14].copy_from_slice(&[0x21, 0, 1, 0, 1]);
        }),
        // Backwards, by 40 ms each; below zero they wrap.
        (Found::Still, |number, head| {
            let stamp = (WRAP + 90_000 - number * FRAME) % WRAP;
            head[9] = 0x21 | (stamp >> 29) as u8 & 0x0e;
            head[10] = (stamp >> 22) as u8;
            head[11] = (stamp >> 14) as u8 | 1;
            head[12] = (stamp >> 7) as u8;
            head[13] = (stamp << 1) as u8 | 1;
        }),
    ] {
        let mut stream = good.clone();
        with_heads(&mut stream, &[VIDEO, AUDIO], change);
        let (sections, mut notices) = units(&stream);
        notices.retain(|notice| !matches!(notice, Notice::Discontinuity { .. }));
        assert_eq!(notices, [untimed(found, TimeSource::ClockReference)]);
        assert_eq!(sections.len(), 500);
        assert_paced(&sections, 80_000, TEN_SECONDS);
    }
}

#[test]
fn times_that_run_backwards_are_no_times() {
    let backwards = |number: u64| Some(10 * WRAP + 90_000 - number * FRAME);
    let stream = without_references(generated(500, 5_000, backwards));
    let (sections, mut notices) = units(&stream);
    // Each ten seconds of them look like another clock.
    notices.retain(|notice| !matches!(notice, Notice::Discontinuity { .. }));
    assert_eq!(notices, [untimed(Found::Still, TimeSource::Rate(RATE))]);
    assert_paced(&sections, BURST, by_rate(&stream));
}

#[test]
fn a_jump_of_an_hour_and_a_wrap_are_gone_over() {
    let hour = 3_600 * 90_000;
    for (jumps, stamp) in [
        (
            true,
            Box::new(move |number: u64| Some(number * FRAME + number / 100 * hour))
                as Box<dyn Fn(u64) -> Option<u64>>,
        ),
        (
            true,
            Box::new(move |number: u64| Some(2 * WRAP + number * FRAME - number / 100 * hour)),
        ),
        (
            false,
            Box::new(|number: u64| Some(WRAP - 125 * FRAME + number * FRAME)),
        ),
    ] {
        let stream = generated(250, 5_000, stamp);
        let (sections, notices) = units(&stream);
        assert_eq!(!notices.is_empty(), jumps);
        assert!(
            notices
                .iter()
                .all(|notice| matches!(notice, Notice::Discontinuity { .. })),
            "{notices:?}"
        );
        assert_paced(&sections, 25_000, TEN_SECONDS);
    }
}

#[test]
fn an_hour_to_and_fro_with_every_unit_is_no_time() {
    let hour = 3_600 * 90_000;
    let stream = without_references(generated(250, 5_000, |number| Some(number % 2 * hour)));
    let (sections, mut notices) = units(&stream);
    notices.retain(|notice| !matches!(notice, Notice::Discontinuity { .. }));
    assert_eq!(notices, [untimed(Found::Still, TimeSource::Rate(RATE))]);
    assert_paced(&sections, BURST, by_rate(&stream));
}

#[test]
fn what_is_live_and_has_no_times_goes_by_its_arrival() {
    let stream = without_references(generated(250, 5_000, |_| None));
    let mut reader = Reader::new(ReaderConfig::default());
    let (mut arrival, mut shares) = (Time::from_secs(7), Vec::new());
    // Ten seconds, in pieces of 10 ms.
    let piece = stream.len().div_ceil(1_000);
    for bytes in stream.chunks(piece) {
        reader.push_arrived(bytes, arrival);
        while let Some(event) = reader.poll() {
            match event {
                Event::Section(section) if section.stream > 0 => {
                    shares.push(arrival.saturating_since(section.source_time));
                }
                Event::Section(_) | Event::Missing(_) => {}
                Event::Notice(notice) => {
                    assert_eq!(notice, untimed(Found::Missing, TimeSource::Arrival));
                    shares.clear();
                }
            }
        }
        arrival += Span::from_millis(10);
    }
    // From the notice on, each is as far behind its arrival as the others.
    assert!(shares.len() > 450, "{}", shares.len());
    assert!(shares.iter().max() == shares.iter().min(), "{shares:?}");
}

#[test]
fn times_that_come_back_are_gone_by_again() {
    let mut stream = without_references(generated(500, 5_000, |number| Some(number * FRAME)));
    with_heads(&mut stream, &[VIDEO, AUDIO], |number, head| {
        if (100..250).contains(&number) {
            unstamp(number, head);
        }
    });
    let (sections, notices) = units(&stream);
    assert_eq!(
        notices,
        [
            untimed(Found::Missing, TimeSource::Rate(RATE)),
            Notice::TimedAgain { pid: MAP }
        ]
    );
    // 4 s and 9 s by the stamps, but for the second until they are believed; 6 s by the rate, which is four times
    // that of the stream.
    let video: Vec<_> = sections
        .iter()
        .filter(|section| section.stream == 1)
        .collect();
    assert_eq!(video[99].source_time, Time::from_millis(99 * 40));
    for pair in video[300..].windows(2) {
        assert_eq!(
            pair[1].source_time.saturating_since(pair[0].source_time),
            Span::from_millis(40)
        );
    }
    assert!(video.is_sorted_by_key(|section| section.source_time));
}

#[test]
fn a_stream_whose_times_stand_goes_by_the_others() {
    let mut stream = generated(250, 5_000, |number| Some(90_000 + number * FRAME));
    with_heads(&mut stream, &[AUDIO], |_, head| {
        head[9..14].copy_from_slice(&[0x21, 0, 5, 0xbf, 0x21]);
    });
    let (sections, notices) = units(&stream);
    assert_eq!(
        notices,
        [Notice::Untimed {
            pid: AUDIO,
            found: Found::Still,
            by: TimeSource::OtherStreams,
        }]
    );
    for stream in [1, 2] {
        let of_it: Vec<_> = sections
            .iter()
            .filter(|section| section.stream == stream)
            .cloned()
            .collect();
        assert_paced(&of_it, 25_000, TEN_SECONDS);
    }
}

#[test]
fn a_scrambled_program_is_timed_too() {
    let mut stream = CLIP.to_vec();
    for packet in stream.chunks_mut(PACKET) {
        if matches!(
            u16::from_be_bytes([packet[1] & 0x1f, packet[2]]),
            VIDEO | AUDIO
        ) {
            packet[3] |= 0x80;
        }
    }
    let (sections, notices) = units(&stream);
    assert!(
        notices.contains(&untimed(Found::Missing, TimeSource::ClockReference)),
        "{notices:?}"
    );
    assert_paced(&sections, 40_000, TEN_SECONDS);
    let (sections, notices) = units(&without_references(stream.clone()));
    assert!(
        notices.contains(&untimed(Found::Missing, TimeSource::Rate(RATE))),
        "{notices:?}"
    );
    assert_paced(&sections, BURST, by_rate(&stream));
}

#[test]
fn slices_leave_clock_references_that_stand_still() {
    // No table, and a reference that is always the same.
    let mut stream = generated(250, 5_000, |_| Some(90_000));
    for packet in stream.chunks_mut(PACKET) {
        if packet[1] & 0x1f == 0 && packet[2] == 0 {
            packet[1] |= 0x1f;
            packet[2] = 0xff;
        }
    }
    let (sections, notices) = read(&stream);
    assert!(
        matches!(notices[0], Notice::NoProgram { .. }),
        "{notices:?}"
    );
    assert_eq!(
        notices[1..],
        [Notice::Untimed {
            pid: VIDEO,
            found: Found::Still,
            by: TimeSource::Rate(RATE),
        }]
    );
    assert_paced(&sections, BURST, by_rate(&stream));
}

#[test]
fn slices_of_a_live_source_go_by_their_arrival() {
    let mut reader = Reader::new(ReaderConfig::default());
    let mut arrival = Time::from_secs(3);
    // 1 Mb/s, a quarter of what a file is taken to have.
    for _ in 0..1_000 {
        reader.push_arrived(&[0x11; 1_250], arrival);
        arrival += Span::from_millis(10);
    }
    reader.finish();
    let events: Vec<Event> = std::iter::from_fn(|| reader.poll()).collect();
    let (sections, _) = part(events);
    assert_paced(&sections, 4_000, TEN_SECONDS);
}
