//! The reader's description of each frame, compared with ffprobe's (`vectors/make.sh`).

use comity_media::{FrameType, Header, MediaSection, Notice, Times, TsWriter, Unit, WriterConfig};
use comity_units::{Span, Time};

use crate::{CLIP, H264, H265, MPEG1, MPEG2, read};

const B: FrameType = FrameType::Bidirectional { referenced: false };
const REFERENCED_B: FrameType = FrameType::Bidirectional { referenced: true };
const P: FrameType = FrameType::Predicted { referenced: true };

fn rows(csv: &str) -> impl Iterator<Item = Vec<&str>> {
    csv.lines().skip(1).map(|line| line.split(',').collect())
}

fn letter(frame: FrameType) -> &'static str {
    match frame {
        FrameType::Key | FrameType::Intra => "I",
        FrameType::Predicted { .. } => "P",
        FrameType::Bidirectional { .. } => "B",
        other => panic!("{other:?} is no picture"),
    }
}

fn pictures(sections: &[MediaSection]) -> Vec<&MediaSection> {
    sections
        .iter()
        .filter(|section| section.frame.is_picture())
        .collect()
}

/// Presentation and decoding time of a unit, and the length of the data after its header.
fn unit(section: &MediaSection) -> (u64, u64, u64) {
    let (header, rest) = Header::decode(&section.payload).expect("a payload of the reader");
    let Header::Unit(unit) = header else {
        panic!("{header:?}")
    };
    assert_eq!(unit.frame, section.frame);
    let presentation = unit
        .times
        .presentation()
        .expect("ffmpeg gives each unit a time");
    if let Times::Both {
        presentation,
        decoding,
    } = unit.times
    {
        assert!(presentation > decoding);
    }
    (
        presentation,
        unit.times.decoding().expect("as above"),
        rest.len() as u64,
    )
}

fn check(stream: &[u8], frames: &str, packets: &str) -> Vec<MediaSection> {
    let (sections, notices) = read(stream);
    assert_eq!(notices, []);
    let pictures = pictures(&sections);

    let seen: Vec<_> = pictures.iter().map(|section| unit(section)).collect();
    let number = |field: &str| field.parse::<u64>().expect("a number");
    let expected: Vec<_> = rows(packets)
        .filter(|row| row[0] == "0")
        .map(|row| (number(row[1]), number(row[2]), number(row[3])))
        .collect();
    let times = |units: &[(u64, u64, u64)]| -> Vec<_> {
        units.iter().map(|&(pts, dts, _)| (pts, dts)).collect()
    };
    assert_eq!(
        times(&seen),
        times(&expected),
        "times of each unit, in the order of the file"
    );
    // ffprobe counts the first zero of a start code to the unit before it.
    for (seen, expected) in seen.iter().zip(&expected) {
        assert!(seen.2.abs_diff(expected.2) <= 1, "{seen:?} {expected:?}");
    }
    let bytes = |units: &[(u64, u64, u64)]| units.iter().map(|unit| unit.2).sum::<u64>();
    assert_eq!(bytes(&seen), bytes(&expected));
    let keys = rows(packets)
        .filter(|row| row[0] == "0")
        .map(|row| row[4] == "1");
    for (section, key) in pictures.iter().zip(keys) {
        assert_eq!(
            section.frame == FrameType::Key,
            key,
            "number {}",
            section.number
        );
    }

    // Each frame of sound, to the byte.
    let sound = { sections.iter() }.filter(|section| section.frame == FrameType::Audio);
    let sound: Vec<_> = sound
        .map(|section| {
            let (presentation, decoding, length) = unit(section);
            assert_eq!(section.needs, None);
            let ticks = decoding - unit(pictures[0]).1;
            assert_eq!(section.source_time, Time::from_nanos(ticks * 100_000 / 9));
            (presentation, decoding, length)
        })
        .collect();
    let expected: Vec<_> = rows(packets)
        .filter(|row| row[0] == "1")
        .map(|row| (number(row[1]), number(row[2]), number(row[3])))
        .collect();
    assert_eq!(sound, expected);

    let mut shown: Vec<_> = pictures
        .iter()
        .map(|section| (unit(section).0.to_string(), letter(section.frame)))
        .collect();
    shown.sort();
    let expected: Vec<_> = rows(frames)
        .map(|row| (row[1].to_owned(), row[0]))
        .collect();
    assert_eq!(
        shown, expected,
        "type of each frame, in the order of presentation"
    );

    let first = unit(pictures[0]).1;
    for section in &pictures {
        let ticks = unit(section).1 - first;
        assert_eq!(section.source_time, Time::from_micros(ticks / 9 * 100));
        assert_eq!(section.deadline, Span::ZERO);
        if let Some(needed) = section.needs {
            let needed = pictures
                .iter()
                .find(|other| other.number == needed)
                .expect("earlier");
            assert!(needed.number < section.number && needed.frame.is_reference());
            assert!(needed.importance > section.importance || needed.frame == section.frame);
        }
        assert_eq!(section.needs.is_none(), section.frame.is_intra());
    }
    sections
}

#[test]
fn h264_is_read_as_ffprobe_reads_it() {
    let sections = check(
        H264,
        include_str!("../vectors/h264.csv"),
        include_str!("../vectors/h264.packets.csv"),
    );
    // x264 with three B pictures uses the middle one as a reference: half as many as the others,
    // except if a closed group ends early.
    let count = |frame| {
        sections
            .iter()
            .filter(|section| section.frame == frame)
            .count()
    };
    let pictures = pictures(&sections);
    assert!(count(REFERENCED_B) >= 10 && count(B) >= 2 * count(REFERENCED_B) - 4);
    // Group: I P Br b b P Br b b P Br b b.
    let frames: Vec<_> = pictures
        .iter()
        .take(9)
        .map(|section| section.frame)
        .collect();
    assert_eq!(
        frames,
        [FrameType::Key, P, REFERENCED_B, B, B, P, REFERENCED_B, B, B]
    );
    let needs: Vec<_> = pictures
        .iter()
        .take(9)
        .map(|section| section.needs)
        .collect();
    assert_eq!(
        needs,
        [
            None,
            Some(0),
            Some(1),
            Some(2),
            Some(2),
            Some(1),
            Some(5),
            Some(6),
            Some(6)
        ]
    );
    let importance: Vec<_> = pictures
        .iter()
        .take(9)
        .map(|section| section.importance.0)
        .collect();
    assert_eq!(importance, [200, 189, 60, 20, 20, 188, 60, 20, 20]);
    // Audio: 96 frames of 1024 samples at 48 kHz in 2 s, minus the encoder's own delay.
    assert!((93..=96).contains(&count(FrameType::Audio)));
    assert!(
        sections
            .iter()
            .any(|section| section.frame == FrameType::Table)
    );
}

#[test]
fn h265_is_read_as_ffprobe_reads_it() {
    let sections = check(
        H265,
        include_str!("../vectors/h265.csv"),
        include_str!("../vectors/h265.packets.csv"),
    );
    // Open groups: the second clean random access picture has leading pictures that depend on it.
    let pictures = pictures(&sections);
    let entry = pictures
        .iter()
        .rposition(|section| section.frame == FrameType::Key);
    let entry = entry.expect("three groups");
    let leading = pictures[entry + 1];
    assert!(
        unit(leading).0 < unit(pictures[entry]).0,
        "presented before the entry point"
    );
    assert_eq!(leading.needs, Some(pictures[entry].number));
    let count = |frame| {
        pictures
            .iter()
            .filter(|section| section.frame == frame)
            .count()
    };
    assert!(count(REFERENCED_B) >= 8 && count(B) >= 2 * count(REFERENCED_B) - 4);
}

#[test]
fn mpeg2_is_read_as_ffprobe_reads_it() {
    let sections = check(
        MPEG2,
        include_str!("../vectors/mpeg2.csv"),
        include_str!("../vectors/mpeg2.packets.csv"),
    );
    assert!(sections.iter().all(|section| section.frame != REFERENCED_B));
    assert!(
        sections
            .iter()
            .any(|section| section.frame == FrameType::Audio)
    );
}

#[test]
fn an_elementary_stream_is_read_as_ffprobe_reads_it() {
    let (sections, notices) = read(MPEG1);
    assert_eq!(notices, []);
    // ffprobe lists the frames in presentation order, with their position in the file.
    let mut expected: Vec<_> = rows(include_str!("../vectors/mpeg1.csv"))
        .map(|row| (row[2].parse::<u64>().expect("a number"), row[0]))
        .collect();
    let shown: Vec<_> = expected.iter().map(|&(coded, _)| coded).collect();
    expected.sort_unstable();
    let seen: Vec<_> = sections
        .iter()
        .map(|section| (section.number, letter(section.frame)))
        .collect();
    assert_eq!(seen, expected);
    let sizes: Vec<_> = rows(include_str!("../vectors/mpeg1.packets.csv"))
        .map(|row| row[3].parse::<usize>().expect("a number"))
        .collect();
    let seen: Vec<_> = sections
        .iter()
        .map(|section| {
            Header::decode(&section.payload)
                .expect("of the reader")
                .1
                .len()
        })
        .collect();
    assert_eq!(seen, sizes);
    for section in &sections {
        assert_eq!(section.source_time, Time::from_millis(40 * section.number));
        if section.frame == B {
            // The later of its references: the I or P picture before it in the file and shown after
            // it.
            let at = shown
                .iter()
                .position(|&coded| coded == section.number)
                .expect("all are shown");
            let next = shown[at..].iter().copied().find(|&coded| {
                sections
                    .iter()
                    .any(|other| other.number == coded && other.frame != B)
            });
            assert_eq!(section.needs, next, "number {}", section.number);
        }
    }
}

#[test]
fn the_clip_has_its_expected_properties() {
    let (sections, notices) = read(CLIP);
    assert_eq!(notices, []);
    let pictures = pictures(&sections);
    assert_eq!(pictures.len(), 250);
    let keys: Vec<_> = pictures
        .iter()
        .filter(|section| section.frame == FrameType::Key)
        .map(|section| section.source_time)
        .collect();
    assert_eq!(keys, (0..10).map(Time::from_secs).collect::<Vec<_>>());
    assert!(CLIP.len() < 1 << 20);
    assert!(
        !notices
            .iter()
            .any(|notice| matches!(notice, Notice::UnsupportedCodec { .. }))
    );
    // 1,024 samples at 48 kHz in each.
    let sound = { sections.iter() }.filter(|section| section.frame == FrameType::Audio);
    assert_eq!(sound.count(), 470);
}

/// An access unit of H.265: a delimiter and the first slice of a picture.
fn h265(nal_type: u8, slice: u8, presentation: u64, decoding: u64) -> Vec<u8> {
    let mut payload = Vec::new();
    Header::Unit(Unit {
        pid: 256,
        stream_type: 0x24,
        stream_id: 0xe0,
        frame: FrameType::Opaque,
        times: Times::Both {
            presentation: 3_600 * presentation,
            decoding: 3_600 * decoding,
        },
        random_access: nal_type == 19,
        discontinuity: false,
        aligned: true,
    })
    .encode(&mut payload);
    payload.extend([0, 0, 0, 1, 35 << 1, 1, 0x50]);
    payload.extend([0, 0, 1, nal_type << 1, 1, slice, 0x80]);
    payload.extend([7; 300]);
    payload
}

/// Some encoders write the P pictures of H.265 as B slices that refer to the past alone.
#[test]
fn b_slices_that_refer_to_the_past_make_a_predicted_picture() {
    // IDR; then slice_type 0 (B) of a picture that others need, and of one that none does.
    let (key, needed, alone) = ((19, 0xb0), (1, 0xe0), (0, 0xe0));
    let low_delay = [(key, 0), (needed, 1), (needed, 2), (needed, 3), (key, 4)];
    // I0 B4 b2 b1 b3: b2 is presented before the picture that it needs.
    let pyramid = [(key, 0), (needed, 4), (needed, 2), (alone, 1), (alone, 3)];
    for (pictures, expected) in [
        (
            low_delay,
            [
                (FrameType::Key, None, 200),
                (P, Some(0), 189),
                (P, Some(1), 188),
                (P, Some(2), 187),
                (FrameType::Key, None, 200),
            ],
        ),
        (
            pyramid,
            [
                (FrameType::Key, None, 200),
                (P, Some(0), 189),
                (REFERENCED_B, Some(1), 60),
                (B, Some(2), 20),
                (B, Some(2), 20),
            ],
        ),
    ] {
        let mut writer = TsWriter::new(WriterConfig::default());
        let mut stream = Vec::new();
        for (((nal_type, slice), presentation), decoding) in pictures.into_iter().zip(10..) {
            let payload = h265(nal_type, slice, presentation + 15, decoding);
            writer.write(&payload, &mut stream).unwrap();
        }
        writer.finish(&mut stream);
        let (sections, notices) = read(&stream);
        assert_eq!(notices, []);
        let found: Vec<_> = pictures_of(&sections);
        assert_eq!(found, expected);
    }
}

/// The type, the dependency and the importance of each picture. Its header says the same type.
fn pictures_of(sections: &[MediaSection]) -> Vec<(FrameType, Option<u64>, u8)> {
    let described = pictures(sections).into_iter().map(|section| {
        unit(section);
        (section.frame, section.needs, section.importance.0)
    });
    described.collect()
}
