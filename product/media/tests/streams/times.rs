//! Times that are missing, stand still, jump or wrap.

use std::collections::BTreeMap;

use comity_media::{
    Event, FrameType, Header, MediaSection, Notice, PACKET, ReadError, Reader, ReaderConfig, Times,
    TsWriter, Unit, WriterConfig,
};
use comity_units::{Span, Time};

use crate::{CLIP, outcome_of, part, read};

const VIDEO: u16 = 0x100;
const AUDIO: u16 = 0x101;
const FRAME: u64 = 3_600;
const WRAP: u64 = 1 << 33;

/// The bytes of a picture: a delimiter and one slice of an IDR picture, padded.
fn picture(length: usize) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x65, 0x88];
    bytes.resize(length, 0x55);
    bytes
}

/// 25 pictures a second of this length, each followed by an audio packet, in the form of the
/// writer. `stamp` gives the decoding time of the n-th, which the clock references follow.
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

/// Changes the head of each PES packet of these streams. The function receives the packet's number
/// in its stream.
pub(crate) fn with_heads(stream: &mut [u8], pids: &[u16], mut change: impl FnMut(u64, &mut [u8])) {
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

/// Removes the time stamps, and pads the packet instead.
pub(crate) fn unstamp(_: u64, head: &mut [u8]) {
    head[7] &= 0x3f;
    let length = usize::from(head[8]);
    head[9..9 + length].fill(0xff);
}

/// Removes the clock references.
pub(crate) fn without_references(mut stream: Vec<u8>) -> Vec<u8> {
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

/// Checks that times go back at most as far as streams are apart, that at most `burst` bytes have
/// one time, and that the times last as long as they should.
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

const TEN_SECONDS: (Span, Span) = (Span::from_millis(9_700), Span::from_millis(10_300));

/// Neither time stamps nor clock references advance: they are missing, stand still, run backwards,
/// or alternate by an hour.
#[test]
fn a_source_without_advancing_times_is_refused() {
    let hour = 3_600 * 90_000;
    type Stamp = Box<dyn Fn(u64) -> Option<u64>>;
    let stamps: [(&str, Stamp); 4] = [
        ("none", Box::new(|_| None)),
        ("constant", Box::new(|_| Some(90_000))),
        (
            "backwards",
            Box::new(|number| Some(10 * WRAP + 90_000 - number * FRAME)),
        ),
        (
            "to and fro",
            Box::new(move |number| Some(number % 2 * hour)),
        ),
    ];
    for (name, stamp) in stamps {
        let stream = without_references(generated(450, 20_000, stamp));
        let (events, outcome) = outcome_of(ReaderConfig::default(), [&stream[..]]);
        let Err(ReadError::NoTime { at }) = outcome else {
            panic!("{name}: {outcome:?}")
        };
        assert!((8 << 20..9 << 20).contains(&at), "{name}: {at}");
        assert_eq!(at % PACKET as u64, 0);
        let pieces = outcome_of(ReaderConfig::default(), stream.chunks(1_316));
        assert!(pieces == (events.clone(), outcome), "{name}");
        // The earlier output is returned, and a shorter stream is not refused.
        let (sections, _) = part(events);
        assert!(sections.len() > 2 * 400, "{name}: {}", sections.len());
        assert!(
            sections
                .iter()
                .all(|section| section.source_time == Time::ZERO)
        );
        let (_, notices) = read(&stream[..8 << 20]);
        let Some(Notice::Untimed { bytes }) = notices.last() else {
            panic!("{name}: {notices:?}")
        };
        assert!((8 << 19..=8 << 20).contains(bytes), "{name}: {bytes}");
    }
    assert_eq!(
        ReadError::NoTime { at: 188 }.to_string(),
        "transport stream, byte 188: found no time stamp (PTS) and no advancing clock reference (PCR) in the \
         last 8388608 bytes of its streams; expected one every 700 ms"
    );
}

#[test]
fn clock_references_set_the_time_if_stamps_are_missing() {
    let good = generated(250, 5_000, |number| Some(90_000 + number * FRAME));
    let mut stream = good.clone();
    with_heads(&mut stream, &[VIDEO, AUDIO], unstamp);
    let (sections, notices) = units(&stream);
    assert_eq!((sections.len(), notices), (500, vec![]));
    // A quarter of a second has one time; afterwards each reference has its own.
    assert_paced(&sections, 50_000, TEN_SECONDS);
    // If only one stream lacks stamps, the others set the time.
    let mut stream = good;
    with_heads(&mut stream, &[AUDIO], unstamp);
    let (sections, notices) = units(&stream);
    assert_eq!((sections.len(), notices), (500, vec![]));
    assert_paced(&sections, 12_000, TEN_SECONDS);
}

/// Half a minute would be a jump without the clock references.
#[test]
fn times_that_reappear_are_followed_again() {
    let mut stream = generated(1_000, 1_000, |number| Some(90_000 + number * FRAME));
    with_heads(&mut stream, &[VIDEO, AUDIO], |number, head| {
        if (100..850).contains(&number) {
            unstamp(number, head);
        }
    });
    let (sections, notices) = units(&stream);
    assert_eq!(notices, []);
    let video: Vec<_> = { sections.iter() }
        .filter(|section| section.stream == 1)
        .collect();
    for (number, section) in (0..).zip(&video) {
        let exact = Time::from_millis(number * 40);
        let apart = section.source_time.saturating_since(exact)
            + exact.saturating_since(section.source_time);
        let most = match (100..850).contains(&number) {
            true => Span::from_millis(400),
            false => Span::ZERO,
        };
        assert!(apart <= most, "{number}: {}", section.source_time);
    }
}

#[test]
fn times_continue_over_a_jump_of_an_hour_and_a_wrap() {
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

/// A picture ends with the beginning of the next one, which never arrives if a program ends before
/// the others.
#[test]
fn the_last_picture_of_a_stream_is_returned_while_others_continue() {
    let mut begun = 0;
    let stream: Vec<u8> = generated(100, 1_000, |number| Some(90_000 + number * FRAME))
        .chunks(PACKET)
        .filter(|packet| {
            let is_video = packet[1] & 0x1f == 1 && packet[2] == 0;
            begun += u32::from(is_video && packet[1] & 0x40 != 0);
            !is_video || begun <= 5
        })
        .flatten()
        .copied()
        .collect();
    let mut reader = Reader::new(ReaderConfig::default());
    let (mut reached, mut given) = (Time::ZERO, Vec::new());
    for packet in stream.chunks(PACKET) {
        reader.push(packet).expect("a stream");
        while let Some(event) = reader.poll() {
            let Event::Section(section) = event else {
                panic!("{event:?}")
            };
            if section.stream == 1 {
                given.push((section.source_time, reached));
            }
            reached = reached.max(section.source_time);
        }
    }
    // Each with the next one, and the fifth a second later, before the end.
    let [.., (_, fourth), (time, fifth)] = given[..] else {
        panic!("{given:?}")
    };
    assert_eq!((given.len(), time), (5, Time::from_millis(160)));
    assert!(fourth <= Time::from_millis(160), "{fourth}");
    let expected = Time::from_millis(1_120)..=Time::from_millis(1_480);
    assert!(expected.contains(&fifth), "{fifth}");
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
    let scrambled = [VIDEO, AUDIO].map(|pid| Notice::Scrambled { pid });
    assert_eq!(notices, scrambled);
    assert_paced(&sections, 40_000, TEN_SECONDS);
}

#[test]
fn slices_of_a_live_source_follow_their_arrival() {
    let mut reader = Reader::new(ReaderConfig::default());
    let mut arrival = Time::from_secs(3);
    // 1 Mb/s, a quarter of the assumed rate of a file.
    for _ in 0..1_000 {
        reader
            .push_arrived(&[0x11; 1_250], arrival)
            .expect("bytes of any kind");
        arrival += Span::from_millis(10);
    }
    reader.finish().expect("as above");
    let events: Vec<Event> = std::iter::from_fn(|| reader.poll()).collect();
    let (mut sections, _) = part(events);
    for section in &mut sections {
        section.source_time = Time::ZERO + section.source_time.saturating_since(Time::from_secs(3));
    }
    assert_paced(&sections, 4_000, TEN_SECONDS);
}

/// Data without time stamps follow the clock of their program, however rare the stamps are.
#[test]
fn data_without_stamps_follow_the_clock_of_their_program() {
    for every in [1, 5, 12] {
        let mut stream = generated(100, 300, |number| Some(number * FRAME));
        with_heads(&mut stream, &[VIDEO], |number, head| {
            if number % every > 0 {
                unstamp(number, head);
            }
        });
        with_heads(&mut stream, &[AUDIO], unstamp);
        let (sections, _) = units(&stream);
        let data = sections.iter().filter(|section| section.stream == 2);
        let times: Vec<Time> = data.map(|section| section.source_time).collect();
        assert_eq!(times.len(), 100);
        for (number, time) in times.iter().enumerate() {
            let shown = Time::from_millis(40 * number as u64);
            // The clock references are up to 90 ms apart.
            let (late, early) = (time.saturating_since(shown), shown.saturating_since(*time));
            assert!(
                late <= Span::from_millis(40) && early <= Span::from_millis(130),
                "{every}: {number} at {time}"
            );
        }
    }
}
