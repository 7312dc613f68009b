//! Layouts: the stream that comes out is the stream that went in.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use comity_media::{
    Event, FrameType, Header, HeaderError, MediaSection, Notice, Output, PACKET, Reader,
    ReaderConfig, TsWriter, WriterConfig, WriterStatistics, named_sections, section_name,
};
use comity_units::Time;
use proptest::prelude::*;

use crate::{CLIP, H264, H265, MPEG2, cases, events_of, tools, write};

const VECTORS: [(&str, &[u8]); 4] = [
    ("h264", H264),
    ("h265", H265),
    ("mpeg2", MPEG2),
    ("clip", CLIP),
];
const LAYOUTS: u16 = 0x3fff;
/// Carried packets.
const CARRIED: [u16; 3] = [0x3ffe, 0x3ffd, 0x3ffc];
const NULL: u16 = 0x1fff;
/// Ticks of 27 MHz for a packet at 1.5 Mb/s, and a fraction.
const STEP: f64 = 188.0 * 8.0 * 18.0 + 0.37;

const WITH_LAYOUTS: fn() -> ReaderConfig = || ReaderConfig {
    layouts: true,
    ..ReaderConfig::default()
};

fn read(stream: &[u8]) -> (Vec<MediaSection>, Vec<Notice>) {
    crate::part(events_of(WITH_LAYOUTS(), [stream]))
}

pub(crate) fn sections(stream: &[u8]) -> Vec<MediaSection> {
    read(stream).0
}

/// Writes these sections; `None` stands for one that is missing.
pub(crate) fn restore_all(
    items: impl IntoIterator<Item = (u16, u64, Option<bytes::Bytes>)>,
) -> (Vec<u8>, WriterStatistics) {
    let mut writer = TsWriter::new(WriterConfig::default());
    let mut out = Vec::new();
    for (stream, number, payload) in items {
        match payload {
            Some(payload) => writer
                .write_section(stream, number, &payload, &mut out)
                .expect("a section of the reader"),
            None => writer.miss(stream, number, 1, &mut out),
        }
    }
    writer.finish(&mut out);
    assert!(!writer.is_holding());
    (out, writer.statistics())
}

/// Writes the sections that arrive; the others are reported as missing.
pub(crate) fn restore(
    sections: &[MediaSection],
    arrives: impl Fn(&MediaSection) -> bool,
) -> (Vec<u8>, WriterStatistics) {
    restore_all(sections.iter().map(|section| {
        let payload = arrives(section).then(|| section.payload.clone());
        (section.stream, section.number, payload)
    }))
}

pub(crate) fn packets(stream: &[u8]) -> Vec<&[u8]> {
    assert_eq!(stream.len() % PACKET, 0);
    stream.chunks(PACKET).collect()
}

pub(crate) fn pid(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[1] & 0x1f, packet[2]])
}

fn has_payload(packet: &[u8]) -> bool {
    packet[3] & 0x10 != 0
}

pub(crate) fn payload(packet: &[u8]) -> &[u8] {
    match packet[3] & 0x30 {
        0x10 => &packet[4..],
        0x30 => &packet[5 + usize::from(packet[4])..],
        _ => &[],
    }
}

/// The payload behind a PES header.
pub(crate) fn content(packet: &[u8]) -> &[u8] {
    match payload(packet) {
        data if packet[1] & 0x40 != 0 => &data[9 + usize::from(data[8])..],
        data => data,
    }
}

fn has_clock(packet: &[u8]) -> bool {
    packet[3] & 0x20 != 0 && packet[4] > 0 && packet[5] & 0x10 != 0
}

fn is_announced(packet: &[u8]) -> bool {
    packet[3] & 0x20 != 0 && packet[4] > 0 && packet[5] & 0x80 != 0
}

/// The packets that have bytes of each unit, by looking for the units in what PES packets hold.
fn owners(stream: &[u8], sections: &[MediaSection]) -> BTreeMap<(u16, u64), BTreeSet<usize>> {
    let mut owners = BTreeMap::new();
    let mut streams: BTreeMap<u16, (Vec<u8>, Vec<usize>)> = BTreeMap::new();
    for (index, packet) in packets(stream).into_iter().enumerate() {
        let mut data = payload(packet);
        if packet[1] & 0x40 != 0 && data.starts_with(&[0, 0, 1]) {
            data = &data[9 + usize::from(data[8])..];
        }
        let (bytes, at) = streams.entry(pid(packet)).or_default();
        bytes.extend(data);
        at.resize(bytes.len(), index);
    }
    let mut cursors: BTreeMap<u16, usize> = BTreeMap::new();
    for section in sections {
        let Ok((Header::Unit(unit), content)) = Header::decode(&section.payload) else {
            continue;
        };
        let (bytes, at) = &streams[&unit.pid];
        let from = cursors.entry(unit.pid).or_default();
        assert!(bytes[*from..].starts_with(content));
        let to = *from + content.len();
        let of = at[*from..to].iter().copied().collect();
        owners.insert((section.stream, section.number), of);
        *from = to;
    }
    owners
}

/// Checks that the counter of each PID advances with its payloads, except where that is announced.
pub(crate) fn check_counters(stream: &[u8], name: &str) {
    let mut counters: BTreeMap<u16, u8> = BTreeMap::new();
    for (index, packet) in packets(stream).into_iter().enumerate() {
        let (pid, counter) = (pid(packet), packet[3] & 0x0f);
        if pid == NULL {
            continue;
        }
        if let Some(last) = counters.insert(pid, counter)
            && !is_announced(packet)
        {
            let expected = (last + u8::from(has_payload(packet))) & 0x0f;
            assert_eq!(counter, expected, "{name}: packet {index} of PID {pid:#x}");
        }
    }
}

/// A multiplex of constant rate: the packets of a stream and null packets between them, the clock
/// references by their place.
pub(crate) fn at_constant_rate(stream: &[u8], nulls_each: usize) -> Vec<u8> {
    let null = [&[0x47, 0x1f, 0xff, 0x10][..], &[0xff; 184]].concat();
    let mut out = Vec::new();
    let mut state = 1_u64;
    for packet in packets(stream) {
        let index = out.len() / PACKET;
        let mut packet = packet.to_vec();
        if has_clock(&packet) {
            let clock = 27_000_000 + (STEP * index as f64) as u64;
            let bits = (clock / 300) << 15 | 0x7e00 | (clock % 300);
            packet[6..12].copy_from_slice(&bits.to_be_bytes()[2..]);
        }
        out.extend(packet);
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let nulls = (state >> 33) as usize % (2 * nulls_each + 1);
        out.extend(null.repeat(nulls));
    }
    out
}

fn bytes_of(sections: &[MediaSection], is_it: impl Fn(&MediaSection) -> bool) -> usize {
    { sections.iter() }
        .filter(|section| is_it(section))
        .map(|section| section.payload.len())
        .sum()
}

pub(crate) fn is_layout(section: &MediaSection) -> bool {
    Header::decode(&section.payload).is_ok_and(|(header, _)| header == Header::Layout)
}

/// What the transport takes for a section beside its payload, at least.
pub(crate) const SECTION: usize = 20;

#[test]
fn a_stream_comes_out_as_it_was_for_a_thirtieth_more() {
    for (name, stream) in VECTORS {
        let sections = sections(stream);
        let (out, statistics) = restore(&sections, |_| true);
        assert!(out == stream, "{name}");
        assert_eq!(
            statistics.restored_packets,
            (stream.len() / PACKET) as u64,
            "{name}"
        );
        assert_eq!(statistics.packets, 0, "{name}");
        // Everything was understood: no packet is carried whole.
        let carried = { sections.iter() }.filter(|section| CARRIED.contains(&section.stream));
        assert_eq!(carried.count(), 0, "{name}");
        let layouts = sections.iter().filter(|section| is_layout(section)).count();
        let more = bytes_of(&sections, is_layout) + SECTION * layouts;
        let others = sections.len() - layouts;
        let today = bytes_of(&sections, |section| !is_layout(section)) + SECTION * others;
        assert!(
            (today / 300..today / 33).contains(&more),
            "{name}: {more} of {today}"
        );
    }
}

#[test]
fn the_same_bytes_give_the_same_layouts_however_they_are_cut() {
    let whole = events_of(WITH_LAYOUTS(), [H264]);
    for length in [1, 97, 1_316, 40_000] {
        assert_eq!(events_of(WITH_LAYOUTS(), H264.chunks(length)), whole);
    }
}

/// Units and tables are the same with and without layouts. A receiver that does not use layouts
/// writes the same.
#[test]
fn layouts_change_nothing_else() {
    for (name, stream) in VECTORS {
        let (with, notices) = read(stream);
        let (without, expected) = crate::read(stream);
        assert_eq!(notices, expected, "{name}");
        let others: Vec<_> = { with.iter() }
            .filter(|section| !is_layout(section))
            .cloned()
            .map(|section| match section.stream {
                // The announcement is the first table.
                0 => MediaSection {
                    number: section.number - 1,
                    ..section
                },
                _ => section,
            })
            .collect();
        assert_eq!(others, without, "{name}");
        assert_eq!(write(&with), write(&without), "{name}");
        let mut writer = TsWriter::new(WriterConfig {
            output: Output::Remultiplexed,
            ..WriterConfig::default()
        });
        let mut out = Vec::new();
        for section in &with {
            writer
                .write_section(section.stream, section.number, &section.payload, &mut out)
                .expect("a section of the reader");
        }
        writer.finish(&mut out);
        assert_eq!(out, write(&without), "{name}");
        // Without layouts, a writer does the same.
        assert_eq!(restore(&without, |_| true).0, out, "{name}");
    }
}

/// Null packets between bursts of others, as multiplexers write them.
#[test]
fn null_packets_cost_less_than_a_bit() {
    let null = [&[0x47, 0x1f, 0xff, 0x10][..], &[0xff; 184]].concat();
    let plain = sections(CLIP);
    let cost = |sections: &[MediaSection]| bytes_of(sections, is_layout);
    for each in [2, 4, 8] {
        let mut stream = Vec::new();
        for (burst, packets) in (0_usize..).zip(CLIP.chunks(8 * PACKET)) {
            stream.extend(packets);
            stream.extend(null.repeat(8 * each + burst * burst % 5));
        }
        let sections = sections(&stream);
        assert!(restore(&sections, |_| true).0 == stream);
        let nulls = (stream.len() - CLIP.len()) / PACKET;
        let more = cost(&sections) - cost(&plain);
        assert!(
            more > 0 && more * 8 < nulls,
            "{each}: {more} bytes for {nulls}"
        );
    }
}

/// A multiplex of 1.5 Mb/s that ffmpeg made; `None` if ffmpeg is absent.
fn multiplex_of_ffmpeg() -> Option<Vec<u8>> {
    let arguments = "-hide_banner -nostdin -loglevel error -f lavfi -i testsrc2=size=320x180:rate=25:duration=8 \
        -f lavfi -i sine=frequency=440:sample_rate=48000:duration=8 -c:v mpeg2video -b:v 400k -g 25 -bf 2 \
        -c:a mp2 -b:a 96k -muxrate 1500k -f mpegts -";
    let output = tools::run(Command::new("ffmpeg").args(arguments.split_whitespace()))?;
    Some(output.stdout)
}

#[test]
fn a_multiplex_of_ffmpeg_comes_out_as_it_was_without_the_cost_of_its_null_packets() {
    let Some(stream) = multiplex_of_ffmpeg() else {
        return;
    };
    let sections = sections(&stream);
    let (out, statistics) = restore(&sections, |_| true);
    assert!(out == stream, "{} of {}", out.len(), stream.len());
    assert_eq!(statistics.restored_packets, (stream.len() / PACKET) as u64);
    let nulls = packets(&stream)
        .iter()
        .filter(|packet| pid(packet) == NULL)
        .count();
    assert!(nulls * 2 > stream.len() / PACKET, "{nulls}");
    let layouts = bytes_of(&sections, is_layout);
    let carried = bytes_of(&sections, |section| CARRIED.contains(&section.stream));
    assert_eq!(carried, 0);
    // For everything that they say.
    let filled = stream.len() - nulls * PACKET;
    assert!(layouts * 60 < filled, "{layouts} bytes for {filled}");
    // Without null packets, they are shorter by a bit for each at most.
    let without: Vec<u8> = { packets(&stream).into_iter() }
        .filter(|packet| pid(packet) != NULL)
        .flatten()
        .copied()
        .collect();
    let plain = bytes_of(&self::sections(&without), is_layout);
    assert!(
        layouts * 8 < plain * 8 + nulls,
        "{layouts} and {plain} bytes, {nulls} nulls"
    );
}

/// The sections that have bytes in each packet.
fn by_packet(owners: &BTreeMap<(u16, u64), BTreeSet<usize>>) -> BTreeMap<usize, Vec<(u16, u64)>> {
    let mut by_packet: BTreeMap<usize, Vec<(u16, u64)>> = BTreeMap::new();
    for (section, packets) in owners {
        for packet in packets {
            by_packet.entry(*packet).or_default().push(*section);
        }
    }
    by_packet
}

/// In a multiplex of constant rate, a packet whose sections are all missing becomes a null packet,
/// or one without sections. One that shares its bytes with a section that is there keeps these. All
/// others stay where they were, as they were.
#[test]
fn a_missing_section_costs_its_bytes_alone() {
    let mut all_shared = 0;
    for (name, stream) in VECTORS {
        let constant = at_constant_rate(stream, 1);
        let sections = sections(&constant);
        let owners = by_packet(&owners(&constant, &sections));
        for modulus in [5, 23] {
            // The first clock references do not show the rate yet.
            let lost: BTreeSet<(u16, u64)> = { sections.iter() }
                .filter(|section| {
                    section.stream > 0
                        && !is_layout(section)
                        && section.source_time > Time::from_secs(1)
                        && section.number % modulus == 3
                })
                .map(|section| (section.stream, section.number))
                .collect();
            let (out, statistics) = restore(&sections, |section| {
                !lost.contains(&(section.stream, section.number))
            });
            assert_eq!(out.len(), constant.len(), "{name}");
            let (mut replaced, mut announced, mut shared) = (0, 0, 0);
            for (index, (was, is)) in packets(&constant)
                .into_iter()
                .zip(packets(&out))
                .enumerate()
            {
                let all = owners.get(&index).map_or(&[][..], |owners| &owners[..]);
                let missing = all.iter().filter(|owner| lost.contains(owner)).count();
                if missing == 0 {
                    assert_eq!(was, is, "{name}, packet {index}");
                    continue;
                }
                if missing < all.len() {
                    shared += 1;
                    assert_eq!(pid(was), pid(is), "{name}, packet {index}");
                    // The bytes of the source's packet, less some.
                    let mut bytes = content(was).iter();
                    let is_left = |byte| bytes.any(|other| other == byte);
                    assert!(content(is).iter().all(is_left), "{name}, packet {index}");
                    assert!((1..content(was).len()).contains(&content(is).len()));
                    continue;
                }
                replaced += 1;
                announced += usize::from(is_announced(is));
                if has_clock(was) {
                    assert_eq!(pid(was), pid(is), "{index}");
                    assert_eq!(was[6..12], is[6..12], "the reference in packet {index}");
                } else {
                    let is_of = pid(is) == pid(was) && is_announced(is);
                    assert!(pid(is) == NULL || is_of, "{name}, packet {index}");
                }
                // A PES header alone.
                assert!(
                    pid(is) == NULL || payload(is).len() < 20,
                    "{name}, packet {index}"
                );
            }
            assert_eq!(statistics.replaced_packets, replaced, "{name}");
            assert!(announced > 0 && announced as u64 <= replaced);
            all_shared += shared;
            check_counters(&out, name);
        }
    }
    assert!(all_shared > 20, "{all_shared}");
}

/// Without a constant rate, the packets of a missing section are left out, except clock references
/// and announcements.
#[test]
fn a_missing_section_leaves_no_holes_at_a_variable_rate() {
    for (name, stream) in VECTORS {
        let sections = sections(stream);
        let owners = owners(stream, &sections);
        let is_lost =
            |section: &MediaSection| section.frame.is_picture() && section.number % 7 == 3;
        let lost: BTreeSet<usize> = { sections.iter().filter(|section| is_lost(section)) }
            .flat_map(|section| &owners[&(section.stream, section.number)])
            .copied()
            .collect();
        let (out, statistics) = restore(&sections, |section| !is_lost(section));
        let replaced = statistics.replaced_packets as usize;
        assert!(replaced > 0 && replaced < lost.len(), "{name}");
        let kept: Vec<&[u8]> = { packets(stream).into_iter().enumerate() }
            .filter(|(index, _)| !lost.contains(index))
            .map(|(_, packet)| packet)
            .collect();
        let mut left = packets(&out);
        left.retain(|packet| has_payload(packet));
        let mut expected = kept;
        expected.retain(|packet| has_payload(packet));
        assert!(left == expected, "{name}");
        let clocks = |stream: &[u8]| -> Vec<Vec<u8>> {
            { packets(stream).into_iter() }
                .filter(|packet| has_clock(packet))
                .map(|packet| packet[6..12].to_vec())
                .collect()
        };
        assert_eq!(clocks(&out), clocks(stream), "{name}");
        check_counters(&out, name);
    }
}

/// A missing table costs its packets and those that repeat it, until the reader sends it anew. An
/// equal table that came before stands in for it.
#[test]
fn a_missing_table_costs_its_packets_until_the_next_one() {
    let sections = sections(CLIP);
    let tables = sections
        .iter()
        .filter(|section| section.stream == 0)
        .count() as u64;
    assert!(tables > 30);
    for (lost, max_missing) in [(1..12, 60), (12..15, 0), (tables - 3..tables, 0)] {
        let arrives =
            |section: &MediaSection| section.stream > 0 || !lost.contains(&section.number);
        let (out, _) = restore(&sections, arrives);
        let of_table = |packet: &[u8]| matches!(pid(packet), 0 | 0x11 | 0x1000);
        let count = |stream: &[u8]| {
            let all = packets(stream).into_iter();
            all.filter(|packet| of_table(packet) && has_payload(packet))
                .count()
        };
        let missing = count(CLIP) - count(&out);
        assert!(
            (max_missing / 4..=max_missing).contains(&missing),
            "{missing}"
        );
        let others = |stream: &[u8]| -> Vec<Vec<u8>> {
            { packets(stream).into_iter() }
                .filter(|packet| !of_table(packet))
                .map(|packet| packet.to_vec())
                .collect()
        };
        assert!(others(&out) == others(CLIP));
        check_counters(&out, "clip");
    }
}

/// Sections and layouts come in the order of their streams alone.
#[test]
fn the_order_of_arrival_does_not_matter() {
    let sections = sections(CLIP);
    for (layouts_late, video_late) in [(40, 0), (0, 40), (3, 7)] {
        let mut items: Vec<_> = sections.iter().enumerate().collect();
        items.sort_by_key(|&(index, section)| {
            index
                + match section.stream {
                    LAYOUTS if section.number > 0 => layouts_late,
                    1 => video_late,
                    _ => 0,
                }
        });
        let items = items.into_iter();
        let (out, _) = restore_all(items.map(|(_, section)| {
            let payload = Some(section.payload.clone());
            (section.stream, section.number, payload)
        }));
        assert!(out == CLIP, "{layouts_late}, {video_late}");
    }
}

/// Without a layout, its sections are written as they are without layouts. Then the packets are
/// those of the source again.
#[test]
fn a_missing_layout_costs_no_unit() {
    for (name, stream) in VECTORS {
        let sections = sections(stream);
        let last = sections.iter().filter(|section| is_layout(section)).count() as u64 - 1;
        let layout = |number: u64| {
            let mut layouts = sections.iter().filter(|section| section.stream == LAYOUTS);
            layouts.find(|layout| layout.number == number)
        };
        let names = |number: u64, unit: &MediaSection| {
            let name = section_name(unit.stream, &unit.payload).unwrap();
            layout(number).is_some_and(|layout| named_sections(&layout.payload).contains(&name))
        };
        let is_unit = |section: &&MediaSection| (1..CARRIED[2]).contains(&section.stream);
        let has_own = |number: u64| {
            let mut units = sections.iter().filter(is_unit);
            units.any(|unit| names(number, unit) && !names(number - 1, unit))
        };
        // The last layout may be empty.
        let last_own = (1..last).rfind(|&number| has_own(number));
        assert!(last_own >= Some(last - 2), "{name}");
        for lost in [1, 2, last / 2].into_iter().chain(last_own) {
            let is_lost = |section: &MediaSection| is_layout(section) && section.number == lost;
            let (out, statistics) = restore(&sections, |section| !is_lost(section));
            assert!(statistics.remultiplexed_sections > 0, "{name}, {lost}");
            check_counters(&out, name);
            // What was restored before and after it is the beginning and the end.
            let same = |a: &[u8], b: &[u8]| {
                let pairs = packets(a).into_iter().zip(packets(b));
                pairs.take_while(|(a, b)| a == b).count()
            };
            let reversed = |stream: &[u8]| {
                packets(stream)
                    .into_iter()
                    .rev()
                    .collect::<Vec<_>>()
                    .concat()
            };
            let begin = same(&out, stream);
            let end = same(&reversed(&out), &reversed(stream));
            let all = stream.len() / PACKET;
            assert!(
                begin + end > all / 2 && begin + end < all,
                "{name}, {lost}: {begin} {end} of {all}"
            );
            let units = |stream: &[u8]| -> Vec<(FrameType, usize)> {
                let (sections, _) = crate::read(stream);
                { sections.iter() }
                    .filter(|section| section.stream == 1)
                    .map(|section| (section.frame, section.payload.len()))
                    .collect()
            };
            let (left, all) = (units(&out), units(stream));
            assert!(
                left.len() + 2 >= all.len(),
                "{name}, {lost}: {} of {}",
                left.len(),
                all.len()
            );
        }
    }
}

/// A late receiver counts from zero and lacks the earlier tables.
#[test]
fn a_late_receiver_restores_the_rest_of_the_stream() {
    let sections = sections(CLIP);
    for skipped in [1, 100, 333, 700] {
        let mut numbers: BTreeMap<u16, u64> = BTreeMap::new();
        let items = sections[skipped..].iter().map(|section| {
            let next = numbers.entry(section.stream).or_default();
            *next += 1;
            (section.stream, *next - 1, Some(section.payload.clone()))
        });
        let (out, statistics) = restore_all(items.collect::<Vec<_>>());
        assert!(statistics.restored_packets > 300, "{skipped}");
        let end = |stream: &[u8]| stream[stream.len() - 300 * PACKET..].to_vec();
        assert!(end(&out) == end(CLIP), "{skipped}");
        check_counters(&out, "clip");
    }
}

/// A receiver that misses the announcement begins with a new stream, until the first layout.
#[test]
fn a_missing_announcement_costs_the_first_packets() {
    for (name, stream) in VECTORS {
        let sections = sections(stream);
        assert!(is_layout(&sections[0]) && sections[0].stream == 0, "{name}");
        let arrives = |section: &MediaSection| (section.stream, section.number) != (0, 0);
        let (out, statistics) = restore(&sections, arrives);
        assert!(statistics.packets > 0, "{name}");
        let half = stream.len() / PACKET / 2 * PACKET;
        assert!(out.ends_with(&stream[half..]), "{name}");
        check_counters(&out, name);
    }
}

/// Numbers that begin anew are those of another connection, to the same source or to another one.
#[test]
fn a_connection_that_begins_anew_goes_on() {
    let clip = sections(CLIP);
    let (first, second) = clip.split_at(500);
    let mut numbers: BTreeMap<u16, u64> = BTreeMap::new();
    let before = first.iter().map(|section| {
        (
            section.stream,
            section.number,
            Some(section.payload.clone()),
        )
    });
    let behind = second.iter().map(|section| {
        let next = numbers.entry(section.stream).or_default();
        *next += 1;
        (section.stream, *next - 1, Some(section.payload.clone()))
    });
    let items: Vec<_> = before.chain(behind).collect();
    let (out, _) = restore_all(items);
    let end = |stream: &[u8]| stream[stream.len() - 300 * PACKET..].to_vec();
    assert!(end(&out) == end(CLIP));
    assert!(out[..1_000 * PACKET] == CLIP[..1_000 * PACKET]);
    check_counters(&out, "clip");
}

#[test]
fn a_malformed_layout_is_refused() {
    let mut writer = TsWriter::new(WriterConfig::default());
    let mut out = Vec::new();
    let layouts = sections(H264).into_iter().filter(is_layout);
    for (number, layout) in (0..).zip(layouts) {
        // More than it needs.
        let longer = [&layout.payload[..], &[0xff; 8]].concat();
        let refused = writer.write_section(LAYOUTS, number, &longer.into(), &mut out);
        assert_eq!(refused, Err(HeaderError::Layout));
    }
    writer.finish(&mut out);
    assert_eq!(out, []);
}

/// A change to a packet, by its kind, place and value.
type Change = (u8, usize, u8);

/// A stream with packets changed, in ways that a multiplexer or a bad path may have.
fn changed(stream: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut all: Vec<Vec<u8>> = packets(stream).into_iter().map(<[u8]>::to_vec).collect();
    for &(kind, at, value) in changes {
        let at = at % all.len();
        let noise = |salt: u8| {
            (0..184_u8)
                .map(|byte| byte.wrapping_mul(value | 1) ^ salt)
                .collect::<Vec<u8>>()
        };
        match kind % 14 {
            // Lost, repeated, swapped.
            0 => drop(all.remove(at)),
            1 => all.insert(at, all[at].clone()),
            2 => all.swap(at, (at + 1 + usize::from(value)) % (at + 1)),
            // An error is marked, or not.
            3 => all[at][1] |= 0x80,
            4 => all[at][4 + usize::from(value) % 184] ^= value,
            // Priority, another counter, scrambled.
            5 => all[at][1] ^= 0x20,
            6 => all[at][3] ^= value & 0x0f,
            7 => all[at][3] |= value & 0xc0,
            // A PID of no table, table PIDs that nothing is known of, a null packet with content.
            8 => all.insert(
                at,
                [&[0x47, value & 0x5f, value, 0x10][..], &noise(3)].concat(),
            ),
            9 => all.insert(
                at,
                [&[0x47, 0x40, value & 0x1f, 0x10, 0][..], &noise(9)[..183]].concat(),
            ),
            10 => all.insert(
                at,
                [&[0x47, 0x1f, 0xff, 0x10 | value & 0x0f][..], &noise(7)].concat(),
            ),
            11 => all.insert(
                at,
                [&[0x47, 0x1f, 0xff, 0x10 | value & 0x0f][..], &[value; 184]].concat(),
            ),
            // A field alone, with anything in it.
            12 => {
                let mut field =
                    [&[0x47, 1, value & 1, 0x20, 183][..], &noise(value)[..183]].concat();
                field[5] = value;
                all.insert(at, field);
            }
            // Private data before the payload, and stuffing of another value.
            _ => {
                let length = 2 + value % 100;
                let packet = &mut all[at];
                packet[3] |= 0x30;
                packet[4] = length;
                packet[5] = 0x02;
                packet[6] = value % 3;
            }
        }
    }
    all.concat()
}

proptest! {
    #![proptest_config(cases(48))]

    /// Whatever the packets are, they come out as they were; and if sections are missing, those
    /// that come out are packets of the source in their order.
    #[test]
    fn any_packets_come_out_as_they_were(
        which in 0_usize..3,
        nulls in 0_usize..2,
        changes in prop::collection::vec((any::<u8>(), any::<usize>(), any::<u8>()), 0..60),
        // Without the announcement, which is the first, new packets come at the beginning.
        lost in prop::collection::btree_set((0_u16..3, 1_u64..100), 0..12),
    ) {
        let stream = changed(&at_constant_rate([H264, H265, MPEG2][which], nulls), &changes);
        let sections = sections(&stream);
        let (out, statistics) = restore(&sections, |_| true);
        prop_assert!(out == stream, "{} of {} bytes", out.len(), stream.len());
        prop_assert_eq!(statistics.replaced_packets, 0);
        let is_lost = |section: &MediaSection| lost.contains(&(section.stream, section.number));
        let (out, statistics) = restore(&sections, |section| !is_lost(section));
        let known: BTreeSet<&[u8]> = packets(&stream).into_iter().collect();
        for packet in packets(&out) {
            let is_replacement = pid(packet) == NULL || !has_payload(packet);
            // A packet that two sections share keeps the bytes of the one that arrives.
            let is_part = packet[3] & 0x30 == 0x30;
            prop_assert!(known.contains(packet) || is_replacement || is_part);
        }
        let written = statistics.restored_packets + statistics.replaced_packets;
        prop_assert_eq!(written, (out.len() / PACKET) as u64);
        prop_assert!(out.len() <= stream.len());
    }
}

/// Behind a missing layout, null packets restore the places of the clock references.
#[test]
fn a_missing_layout_leaves_the_rate_as_it_was() {
    for stream in [H264, MPEG2] {
        let stream = at_constant_rate(stream, 2);
        let sections = sections(&stream);
        let clocks = |stream: &[u8]| -> Vec<(usize, Vec<u8>)> {
            let all = packets(stream).into_iter().enumerate();
            let clocks = all.filter(|(_, packet)| has_clock(packet) && has_payload(packet));
            clocks.map(|(at, packet)| (at, packet.to_vec())).collect()
        };
        let known = clocks(&stream);
        let layouts = sections.iter().filter(|section| is_layout(section)).count() as u64;
        for lost in 10..layouts - 10 {
            let is_lost =
                |section: &MediaSection| section.stream == LAYOUTS && section.number == lost;
            let (out, statistics) = restore(&sections, |section| !is_lost(section));
            assert!(statistics.replaced_packets > 0, "{lost}");
            assert_eq!(out.len(), stream.len(), "{lost}");
            let found = clocks(&out);
            assert!(found.iter().all(|clock| known.contains(clock)), "{lost}");
            assert!(found.len() + 4 > known.len(), "{lost}");
            check_counters(&out, "a lost layout");
        }
    }
}

/// An opaque source is not looked into: each datagram is a section, and all come out as they were.
#[test]
fn an_opaque_source_is_carried_datagram_by_datagram() {
    let config = ReaderConfig {
        opaque: true,
        layouts: true,
        ..ReaderConfig::default()
    };
    let mut reader = Reader::new(config);
    let mut sections = Vec::new();
    for (index, datagram) in (0..).zip(CLIP.chunks(1_316)) {
        let arrival = Time::from_millis(7_000 + 3 * index);
        reader.push_arrived(datagram, arrival).expect("bytes");
        let Some(Event::Section(section)) = reader.poll() else {
            panic!("a section for datagram {index}");
        };
        assert_eq!(reader.poll(), None);
        assert_eq!(section.source_time, arrival);
        let (header, content) = Header::decode(&section.payload).expect("a header");
        assert_eq!((header, content), (Header::Raw, datagram));
        sections.push(section);
    }
    reader.finish().expect("bytes");
    assert_eq!(reader.poll(), None);
    assert!(restore(&sections, |_| true).0 == CLIP);
    // A file is cut at the assumed rate, and its format is not reported.
    let (sections, notices) = crate::part(events_of(config, [CLIP]));
    assert_eq!(notices, []);
    assert!(sections.len() > 50 && sections.iter().all(|section| section.stream == 0));
    assert!(restore(&sections, |_| true).0 == CLIP);
}
