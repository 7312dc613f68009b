//! The written stream: complete, valid, and equal to the original for ffmpeg.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use comity_media::{
    DeadlineRule, FrameType, Header, MediaSection, Notice, PACKET, ReaderConfig, Shedder,
    ShedderConfig, TsWriter, WriterConfig,
};
use comity_units::{Rate, Time};

use crate::{CLIP, H264, H265, MPEG1, MPEG2, events_of, part, read, tools, ts, write};

const VECTORS: [(&str, &[u8]); 4] = [
    ("h264", H264),
    ("h265", H265),
    ("mpeg2", MPEG2),
    ("clip", CLIP),
];

/// The payloads of each stream, concatenated.
fn elementary_streams(sections: &[MediaSection]) -> BTreeMap<u16, Vec<u8>> {
    let mut streams: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
    for section in sections
        .iter()
        .filter(|section| section.frame != FrameType::Table)
    {
        streams
            .entry(section.stream)
            .or_default()
            .extend(&section.payload);
    }
    streams
}

#[test]
fn a_copy_is_read_like_the_original() {
    for (name, stream) in VECTORS {
        let (original, _) = read(stream);
        let copy = write(&original);
        assert_eq!(ts::check(&copy, 0x1000, 0x100), 0, "{name}");
        let (again, notices) = read(&copy);
        assert_eq!(notices, [], "{name}");
        assert_eq!(
            elementary_streams(&again),
            elementary_streams(&original),
            "{name}"
        );
        let units = |sections: &[MediaSection]| {
            sections
                .iter()
                .filter(|section| section.stream > 0)
                .cloned()
                .collect::<Vec<_>>()
        };
        let key = |section: &MediaSection| (section.stream, section.number);
        let (mut again, mut original) = (units(&again), units(&original));
        again.sort_by_key(key);
        original.sort_by_key(key);
        assert_eq!(again, original, "{name}: times, types, needs");
        // The overhead of a muxer: less than a tenth above ffmpeg's. ffmpeg puts up to 16 audio
        // frames into one PES packet. Here each frame begins a packet and stuffs its last one,
        // which costs half a packet on average.
        let sound = { original.iter() }.filter(|section| section.frame == FrameType::Audio);
        let filled_up = sound.count() * PACKET / 2;
        assert!(
            copy.len() < stream.len() + stream.len() / 10 + filled_up,
            "{name}: {}",
            copy.len()
        );
    }
    let (sections, _) = read(MPEG1);
    assert_eq!(
        write(&sections),
        MPEG1,
        "an elementary stream is written as it is"
    );
}

/// The sections without some of the video, and without their dependents.
fn without(
    sections: &[MediaSection],
    mut drop: impl FnMut(&MediaSection) -> bool,
) -> Vec<MediaSection> {
    let mut gone = BTreeSet::new();
    let mut kept = Vec::new();
    for section in sections {
        let orphan = section
            .needs
            .is_some_and(|needed| gone.contains(&(section.stream, needed)));
        if orphan || (section.frame.is_picture() && drop(section)) {
            gone.insert((section.stream, section.number));
        } else {
            kept.push(section.clone());
        }
    }
    kept
}

/// A name, and whether a picture is lost.
type Loss = (&'static str, fn(&MediaSection) -> bool);

/// Ways to lose part of a stream: no B, no P after the second of a group, one group, half a second.
fn losses() -> [Loss; 4] {
    [
        ("no B", |section| {
            matches!(section.frame, FrameType::Bidirectional { .. })
        }),
        ("few P", |section| section.position > 2),
        ("no second group", |section| {
            (Time::from_millis(500)..Time::from_millis(1_100)).contains(&section.source_time)
        }),
        ("some", |section| {
            !section.frame.is_intra() && section.number % 5 == 3
        }),
    ]
}

#[test]
fn a_loss_leaves_no_broken_packet() {
    for (name, stream) in VECTORS {
        let (sections, _) = read(stream);
        for (loss, drop) in losses() {
            let kept = without(&sections, drop);
            assert!(kept.len() < sections.len(), "{name}, {loss}");
            let copy = write(&kept);
            ts::check(&copy, 0x1000, 0x100);
            let (again, notices) = read(&copy);
            assert_eq!(notices, [], "{name}, {loss}");
            assert_eq!(
                elementary_streams(&again),
                elementary_streams(&kept),
                "{name}, {loss}"
            );
        }
    }
}

#[test]
fn a_jump_of_the_clock_is_announced_and_read_again() {
    // The clip followed by itself: its times go back by more than ten seconds.
    let both = [CLIP, H264, CLIP].concat();
    let (sections, notices) = read(&both);
    // Counters restart as well, so a loss there is undetectable.
    let jumps = notices
        .iter()
        .filter(|notice| matches!(notice, Notice::Discontinuity { .. }))
        .count();
    assert_eq!(jumps, 2, "{notices:?}");
    let last = sections
        .iter()
        .map(|section| section.source_time)
        .max()
        .expect("sections");
    assert!(
        (Time::from_secs(21)..Time::from_secs(23)).contains(&last),
        "{last}"
    );
    let copy = write(&sections);
    assert_eq!(ts::check(&copy, 0x1000, 0x100), 2);
}

/// A file followed by itself: if the packets before the splice had stuffing, nothing is missing and
/// nothing is reported.
#[test]
fn a_splice_costs_no_unit() {
    for (name, stream) in VECTORS {
        let (once, _) = read(stream);
        let (twice, notices) = read(&[stream, stream].concat());
        let units = |sections: &[MediaSection]| {
            { sections.iter() }
                .filter(|section| section.stream > 0)
                .count()
        };
        let damaged = |notice: &&Notice| matches!(notice, Notice::Damaged { .. });
        let damaged = notices.iter().filter(damaged).count();
        // If the last packet is full, the end of its picture is unknown.
        assert_eq!(units(&twice) + damaged, 2 * units(&once), "{name}");
        if matches!(name, "h264" | "clip") {
            assert_eq!(damaged, 0, "{name}: {notices:?}");
        }
        let (leads, without) = ts::leads(&write(&twice));
        assert_eq!(
            (leads.len(), without),
            (units(&twice), 0),
            "{name}: {notices:?}"
        );
        assert!(
            leads.iter().all(|lead| (0..180_000).contains(lead)),
            "{name}"
        );
    }
}

/// An audio frame after the jump is on the old clock, and the new clock would place it wrongly.
#[test]
fn a_unit_of_the_clock_before_a_jump_is_written_without_its_stamp() {
    let (sections, _) = read(&[CLIP, CLIP].concat());
    let is_jump = |section: &MediaSection| matches!(Header::decode(&section.payload), Ok((Header::Unit(unit), _)) if unit.discontinuity);
    let jump = sections.iter().position(is_jump).expect("a jump");
    let mut before = sections[..jump].iter();
    let sound = before.rposition(|section| section.frame == FrameType::Audio);
    let sound = sound.expect("sound before it");
    let mut late = sections.clone();
    late[sound..=jump].rotate_left(1);
    assert_eq!(late[jump], sections[sound]);
    let mut writer = TsWriter::new(WriterConfig::default());
    let mut copy = Vec::new();
    for section in &late {
        writer
            .write(&section.payload, &mut copy)
            .expect("a payload");
    }
    let statistics = writer.statistics();
    assert_eq!((statistics.unstamped_units, statistics.late_units), (1, 0));
    let (leads, without) = ts::leads(&copy);
    assert_eq!(without, 1);
    assert!(leads.iter().all(|lead| (0..180_000).contains(lead)));
    // Its content is unchanged.
    let of_sound = |sections: &[MediaSection]| -> usize {
        { sections.iter() }
            .filter(|section| section.frame == FrameType::Audio)
            .count()
    };
    assert_eq!(of_sound(&read(&copy).0), of_sound(&sections));
}

/// The clip with the video packets of this range scrambled, by their headers.
fn scrambled(from: usize, to: usize) -> Vec<u8> {
    let mut stream = CLIP.to_vec();
    for packet in stream.chunks_mut(PACKET).take(to).skip(from) {
        if packet[1] & 0x1f == 1 && packet[2] == 0 && packet[3] & 0x10 != 0 {
            packet[3] |= 0x80;
        }
    }
    stream
}

/// The video carries the clip's clock references. Scrambled packets keep them.
#[test]
fn a_scrambled_stream_keeps_its_clock_and_gets_no_second_one() {
    let packets = CLIP.len() / PACKET;
    for (from, to, jumps) in [(0, packets, 0), (packets / 3, packets / 2, 2)] {
        let mut copy = write(&read(&scrambled(from, to)).0);
        for packet in copy.chunks_mut(PACKET) {
            packet[3] &= 0x3f;
        }
        let (mut last, mut marked, mut references) = (0, 0, 0);
        for packet in ts::packets(&copy) {
            let Some(clock) = packet.clock else { continue };
            references += 1;
            marked += usize::from(packet.discontinuity);
            if !packet.discontinuity {
                let apart = clock.checked_sub(last);
                let is_next = apart.is_some_and(|apart| last == 0 || apart <= 2_700_000);
                assert!(is_next, "{from}: {clock} behind {last}");
            }
            last = clock;
        }
        assert_eq!(marked, jumps, "{from}");
        // At least ten a second, of ten seconds.
        assert!(references >= 100, "{from}: {references}");
    }
}

#[test]
fn units_without_tables_get_plain_ones() {
    let (sections, _) = read(H264);
    let units: Vec<_> = sections
        .iter()
        .filter(|section| section.stream > 0)
        .cloned()
        .collect();
    let copy = write(&units);
    ts::check(&copy, 0x1000, 0x100);
    let (again, notices) = read(&copy);
    assert_eq!(notices, []);
    assert_eq!(elementary_streams(&again), elementary_streams(&units));
    // Units wait for tables that arrive after them.
    let late: Vec<_> = units[..5].iter().chain(&sections).cloned().collect();
    let mut writer = TsWriter::new(WriterConfig::default());
    let mut out = Vec::new();
    for section in &late[..5] {
        writer
            .write(&section.payload, &mut out)
            .expect("a payload of the reader");
    }
    assert_eq!(out, []);
    for section in &late[5..] {
        writer
            .write(&section.payload, &mut out)
            .expect("a payload of the reader");
    }
    assert_eq!(
        writer.statistics().units,
        u64::try_from(units.len() + 5).expect("few")
    );
    assert_eq!(
        writer.statistics().packets,
        u64::try_from(out.len() / 188).expect("few")
    );
    assert!(writer.write(&[0x77], &mut out).is_err());
}

#[test]
fn stored_groups_are_due_together() {
    let config = ReaderConfig {
        deadlines: DeadlineRule::Group,
        ..ReaderConfig::default()
    };
    let (sections, _) = part(events_of(config, [MPEG1]));
    let (each, _) = read(MPEG1);
    // Groups of 12: the n-th one begins at 480 n ms, and its I picture is shown 40 ms or, after two
    // B pictures, 120 ms later.
    for (section, single) in sections.iter().zip(&each) {
        let due = section.source_time + section.deadline;
        if section.frame.is_intra() {
            assert_eq!(section.source_time, single.source_time);
            let reordering = if section.number == 0 { 40 } else { 120 };
            assert_eq!(
                due,
                single.source_time + comity_units::Span::from_millis(reordering)
            );
        } else if let (Some(needed), FrameType::Predicted { .. }) = (section.needs, section.frame) {
            let needed = sections
                .iter()
                .find(|other| other.number == needed)
                .expect("earlier");
            assert_eq!(due, needed.source_time + needed.deadline);
        } else {
            assert!(due <= single.source_time + comity_units::Span::from_millis(120));
        }
    }
}

#[test]
fn the_clip_is_shed_to_the_target() {
    let (sections, _) = read(CLIP);
    let rate_of = |sections: &[MediaSection]| {
        let bytes: usize = sections
            .iter()
            .filter(|section| section.source_time >= Time::from_secs(3))
            .map(|section| section.payload.len())
            .sum();
        bytes as u64 * 8 / 7
    };
    let source = rate_of(&sections);
    for percent in [90, 75, 60] {
        let target = source * percent / 100;
        let config = ShedderConfig {
            headroom: 1.0,
            ..ShedderConfig::default()
        };
        let mut shedder = Shedder::new(config);
        shedder.retarget(Time::ZERO, Rate::from_bps(target), None);
        let kept: Vec<_> = sections
            .iter()
            .filter(|section| shedder.offer(&section.to_frame()).is_ok())
            .cloned()
            .collect();
        let rate = rate_of(&kept);
        // At most a twentieth above the target, and not needlessly below: P pictures are dropped in
        // steps of one position in the group.
        assert!(
            rate < target + target / 20,
            "{percent} %: {rate} of {target} b/s"
        );
        assert!(
            rate > target - target / 5,
            "{percent} %: {rate} of {target} b/s"
        );
        let count = |sections: &[MediaSection], frame| {
            sections
                .iter()
                .filter(|section| section.frame == frame)
                .count()
        };
        for stays in [FrameType::Key, FrameType::Audio, FrameType::Table] {
            assert_eq!(count(&kept, stays), count(&sections, stays));
        }
        ts::check(&write(&kept), 0x1000, 0x100);
    }
}

/// What ffmpeg prints of a stream; `None` if it is absent.
fn ffmpeg(stream: &[u8], before: &[&str], behind: &[&str]) -> Option<(String, String)> {
    let folder = tempfile::tempdir().expect("a folder for the stream");
    let file = folder.path().join("stream.ts");
    std::fs::write(&file, stream).expect("room for the stream");
    run("ffmpeg", &file, before, behind)
}

fn run(tool: &str, file: &Path, before: &[&str], behind: &[&str]) -> Option<(String, String)> {
    let mut command = Command::new(tool);
    command
        .args(["-hide_banner", "-nostdin"])
        .args(before)
        .arg("-i")
        .arg(file)
        .args(behind);
    let output = tools::run(&mut command)?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Some((text(output.stdout), text(output.stderr)))
}

/// Stream, times, length and digest of each packet that ffmpeg finds, and its messages.
fn digests(stream: &[u8]) -> Option<(Vec<String>, String)> {
    let copied = ["-map", "0", "-c", "copy", "-f", "framemd5", "-"];
    let (text, complaints) = ffmpeg(stream, &["-loglevel", "warning", "-copyts"], &copied)?;
    let mut packets: Vec<_> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            // The duration is the distance to the next frame, which may have been dropped; the
            // fields after the digest concern the container.
            let fields: Vec<_> = line.split(',').map(str::trim).collect();
            [&fields[..3], &fields[4..6]].concat().join(" ")
        })
        .collect();
    packets.sort();
    Some((packets, complaints))
}

#[test]
fn ffmpeg_finds_the_same_frames_in_a_copy() {
    for (name, stream) in VECTORS {
        let Some((original, _)) = digests(stream) else {
            return;
        };
        let (copy, complaints) = digests(&write(&read(stream).0)).expect("ffmpeg ran a moment ago");
        assert!(original.len() >= 50);
        assert_eq!(copy, original, "{name}");
        assert_eq!(complaints, "", "{name}");
    }
}

#[test]
fn ffmpeg_reads_the_rest_after_losses() {
    for (name, stream) in VECTORS {
        let (sections, _) = read(stream);
        for (loss, drop) in losses() {
            let kept = without(&sections, drop);
            let copy = write(&kept);
            let Some((original, _)) = digests(stream) else {
                return;
            };
            let (left, complaints) = digests(&copy).expect("ffmpeg ran a moment ago");
            // Each frame is one of the original, with its times, and only the dropped ones are
            // missing.
            let mut original = original.into_iter();
            // ffmpeg moves a zero before a start code from one unit of H.265 to another.
            let fields = if name == "h265" { 3 } else { 5 };
            let cut = |frame: &String| frame.split(' ').take(fields).collect::<Vec<_>>().join(" ");
            for frame in &left {
                assert!(
                    original.any(|other| cut(&other) == cut(frame)),
                    "{name}, {loss}: {frame}"
                );
            }
            let pictures = |sections: &[MediaSection]| {
                sections
                    .iter()
                    .filter(|section| section.frame.is_picture())
                    .count()
            };
            let video = left.iter().filter(|frame| frame.starts_with('0')).count();
            assert_eq!(video, pictures(&kept), "{name}, {loss}");
            assert_eq!(complaints, "", "{name}, {loss}");
        }
    }
}

#[test]
fn ffmpeg_decodes_the_rest_after_shedding() {
    // Frames without dependents are disposable in every stream. The clip has closed groups, and its
    // P pictures refer to I and P pictures only, so more can be dropped. In other streams, a P
    // picture may also refer to an earlier B picture.
    let disposable: Loss = ("disposable", |section| {
        section.frame == FrameType::Bidirectional { referenced: false }
    });
    let of_all = VECTORS
        .iter()
        .map(|&(name, stream)| (name, stream, disposable));
    let of_clip = losses().into_iter().map(|loss| ("clip", CLIP, loss));
    for (name, stream, (loss, drop)) in of_all.chain(of_clip) {
        let copy = write(&without(&read(stream).0, drop));
        let decoded = ["-map", "0:v", "-f", "rawvideo", "-y", "/dev/null"];
        let Some((_, complaints)) = ffmpeg(&copy, &["-loglevel", "error"], &decoded) else {
            return;
        };
        assert_eq!(complaints, "", "{name}, {loss}");
    }
}
