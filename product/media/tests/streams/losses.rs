//! A multiplex of constant rate over a lossy path, judged by the checker of transport streams.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use comity_media::check::{Checker, Indicator, Report, Timing};
use comity_media::{
    Event, Header, MediaSection, PACKET, Reader, ReaderConfig, TsWriter, WriterConfig,
};
use comity_units::{Span, Time};
use proptest::prelude::*;

use crate::layouts::{
    at_constant_rate, check_counters, content, packets, payload, pid, restore, restore_all,
    sections,
};
use crate::live::Source;
use crate::sound::{delivered, frames};
use crate::waits::{replaced, with_stream};
use crate::{CLIP, H264, MPEG2, cases, events_of};

const LAYOUTS: u16 = 0x3fff;
/// How long a packet takes at 1.5 Mb/s.
const PACKET_NS: i64 = 1_002_700;

fn check(stream: &[u8]) -> Report {
    let mut checker = Checker::new(Timing::Clock);
    checker.push(stream);
    checker.finish();
    checker.report()
}

/// How far clock references are off, in nanoseconds, at most.
fn inexact(report: &Report) -> i64 {
    let accuracy = report.clocks[0].accuracy.as_ref().expect("a constant rate");
    accuracy.max_ns.max(-accuracy.min_ns)
}

proptest! {
    #![proptest_config(cases(24))]

    /// One of twenty sections is missing: clock references stay in their places, and no counter
    /// jumps unannounced. Behind a missing layout, announcements may come before the null packet
    /// that they replace.
    #[test]
    fn clocks_and_counters_are_right_whatever_is_missing(
        which in 0_usize..3,
        loses_layouts in any::<bool>(),
        lost in prop::collection::vec(0_u32..20, 1_500),
    ) {
        let source = at_constant_rate([H264, MPEG2, CLIP][which], 1);
        let config = ReaderConfig { layouts: true, ..ReaderConfig::default() };
        let mut writer = TsWriter::new(WriterConfig::default());
        let mut out = Vec::new();
        // The first sections say what the stream is.
        for (at, event) in events_of(config, [&source[..]]).into_iter().enumerate() {
            if let Event::Section(section) = event {
                let may_be_lost = at > 40 && (loses_layouts || section.stream != LAYOUTS);
                let is_lost = may_be_lost && lost[at % lost.len()] == 0;
                let (stream, number) = (section.stream, section.number);
                match is_lost {
                    true => writer.miss(stream, number, 1, &mut out),
                    false => writer
                        .write_section(stream, number, &section.payload, &mut out)
                        .expect("a section of the reader"),
                }
            }
        }
        writer.finish(&mut out);
        let (before, after) = (check(&source), check(&out));
        prop_assert!(before.pids.iter().all(|pid| pid.continuity_errors == 0));
        for pid in &after.pids {
            prop_assert_eq!(pid.continuity_errors, 0, "PID {}", pid.pid);
        }
        prop_assert_eq!(after.errors.of(Indicator::ContinuityCountError).count, 0);
        let more = if loses_layouts { 3 * PACKET_NS } else { 0 };
        prop_assert!(inexact(&after) <= inexact(&before) + 500 + more, "{} ns", inexact(&after));
    }
}

/// The pictures of a stream that has one in each PES packet.
fn seen(stream: &[u8], video: u16) -> Vec<Vec<u8>> {
    let mut pictures: Vec<Vec<u8>> = Vec::new();
    for packet in packets(stream) {
        let data = payload(packet);
        if pid(packet) != video || data.is_empty() {
            continue;
        }
        if packet[1] & 0x40 != 0 {
            pictures.push(data[9 + usize::from(data[8])..].to_vec());
        } else if let Some(picture) = pictures.last_mut() {
            picture.extend(data);
        }
    }
    pictures
}

proptest! {
    #![proptest_config(cases(96))]

    /// Beside missing layouts and in an outage, whatever arrives whole is written whole, once, and
    /// in its order; also if layouts arrive before the sections that they name.
    #[test]
    fn what_arrives_is_written_whatever_layouts_are_missing(
        layouts in prop::collection::vec(0_u32..4, 1_000),
        outage in 0_u64..400,
        length in 0_u64..100,
        early in 0_usize..4,
    ) {
        let (video, sound) = (0x100, 0x101);
        let sections = sections(CLIP);
        let mut items = Vec::new();
        for (at, section) in (1..).zip(&sections) {
            let is_layout = section.stream == LAYOUTS;
            // The first sections say what the stream is.
            let is_lost = at > 40
                && ((is_layout && layouts[section.number as usize % layouts.len()] == 0)
                    || (outage..outage + length).contains(&at));
            let index = match is_layout && at > 40 {
                true => items.len() - early,
                false => items.len(),
            };
            items.insert(index, (section, !is_lost));
        }
        let (out, _) = restore_all(items.iter().map(|&(section, arrives)| {
            let payload = arrives.then(|| section.payload.clone());
            (section.stream, section.number, payload)
        }));
        let arrived = |pid: u16| -> Vec<Vec<u8>> {
            let units = items.iter().filter(|(_, arrives)| *arrives);
            let units = units.filter_map(|(section, _)| match Header::decode(&section.payload) {
                Ok((Header::Unit(unit), content)) if unit.pid == pid => Some(content.to_vec()),
                _ => None,
            });
            units.collect()
        };
        let found = seen(&out, video);
        let expected = arrived(video);
        prop_assert!(found == expected, "{} pictures, {} arrived", found.len(), expected.len());
        let found = frames(&delivered(&out, sound));
        let expected = arrived(sound).into_iter().collect();
        prop_assert!(found == expected, "{:?}", found.symmetric_difference(&expected).count());
        check_counters(&out, "clip");
    }
}

/// A source was silent within a picture, and a receiver joins then: no layout that it gets orders
/// the beginning of the picture.
#[test]
fn a_picture_is_whole_whose_beginning_only_an_earlier_layout_orders() {
    let video = 0x100;
    let config = ReaderConfig {
        layouts: true,
        ..ReaderConfig::default()
    };
    let mut reader = Reader::new(config);
    let datagrams: Vec<&[u8]> = CLIP.chunks(7 * 188).collect();
    let mut checked = 0;
    for silent in (20..datagrams.len() as u64 / 2).step_by(9) {
        let (mut tables, mut since) = (Vec::new(), Vec::new());
        for (at, datagram) in (0..).zip(&datagrams) {
            let now = Time::from_millis(5 * at + if at > silent { 500 } else { 0 });
            reader
                .push_arrived(datagram, now)
                .expect("a transport stream");
            if at == silent {
                let later = now + Span::from_millis(100);
                reader.on_silence(later).expect("a transport stream");
            }
            for event in std::iter::from_fn(|| reader.poll()) {
                if let Event::Section(section) = event {
                    match at > silent {
                        true => since.push(section),
                        false if section.stream == 0 => tables.push(section),
                        false => {}
                    }
                }
            }
        }
        reader.finish().expect("a transport stream");
        since.extend(
            std::iter::from_fn(|| reader.poll()).filter_map(|event| match event {
                Event::Section(section) => Some(section),
                Event::Notice(_) | Event::Missing(_) => None,
            }),
        );
        let mut numbers: BTreeMap<u16, u64> = BTreeMap::new();
        let arrived: Vec<_> = { tables.iter().chain(&since) }
            .map(|section| {
                let next = numbers.entry(section.stream).or_default();
                *next += 1;
                (section.stream, *next - 1, Some(section.payload.clone()))
            })
            .collect();
        let (out, _) = restore_all(arrived);
        let expected: Vec<Vec<u8>> = { since.iter() }
            .filter_map(|section| match Header::decode(&section.payload) {
                Ok((Header::Unit(unit), content)) if unit.pid == video => Some(content.to_vec()),
                _ => None,
            })
            .collect();
        let found = seen(&out, video);
        assert!(
            found == expected,
            "{silent}: {} of {}",
            found.len(),
            expected.len()
        );
        check_counters(&out, "clip");
        checked += 1;
    }
    assert!(checked > 10, "{checked}");
}

/// The PID of a stream of [`numbered`] packets.
const EXTRA: u16 = 0x200;

/// A packet of a stream with four packets to a PES packet. Each four bytes of content are a number,
/// one more than those before. A layout cannot describe the packet with the index `odd` in its PES
/// packet: its stuffing is zeros.
fn numbered(number: usize, odd: Option<usize>) -> [u8; PACKET] {
    let words_at = |index: usize| match index {
        _ if odd == Some(index) => 25,
        0 => 43,
        _ => 46,
    };
    let each: usize = (0..4).map(words_at).sum();
    let (unit, index) = (number / 4, number % 4);
    let before: usize = (0..index).map(words_at).sum();
    let mut payload = Vec::new();
    if index == 0 {
        let length = u16::try_from(6 + 4 * each).expect("a short PES packet");
        let [high, low] = length.to_be_bytes();
        payload.extend([0, 0, 1, 0xbd, high, low, 0x80, 0, 3, 0xff, 0xff, 0xff]);
    }
    for word in 0..words_at(index) {
        let word = 0x5000_0000 + (unit * each + before + word) as u32;
        payload.extend(word.to_be_bytes());
    }
    let start = PACKET - payload.len();
    let begins = if index == 0 { 0x40 } else { 0 };
    let [high, low] = EXTRA.to_be_bytes();
    let control = if start > 4 { 0x30 } else { 0x10 };
    let mut packet = [0; PACKET];
    packet[..4].copy_from_slice(&[0x47, begins | high, low, control | (number % 16) as u8]);
    if start > 4 {
        packet[4] = (start - 5) as u8;
    }
    packet[start..].copy_from_slice(&payload);
    packet
}

/// The numbers in the contents of these packets.
fn words(stream: &[u8]) -> Vec<u32> {
    let own = packets(stream).into_iter().filter(|own| pid(own) == EXTRA);
    let bytes: Vec<u8> = own.flat_map(content).copied().collect();
    let (words, rest) = bytes.as_chunks::<4>();
    assert!(rest.is_empty(), "{} bytes", bytes.len());
    words.iter().copied().map(u32::from_be_bytes).collect()
}

/// Live sources, and the sections that a sender makes of them. The packets of a unit take too long
/// to be described, or a layout cannot describe one of them.
static NUMBERED: LazyLock<[(Vec<u8>, Vec<MediaSection>); 4]> = LazyLock::new(|| {
    let ways = [(100, None), (10, Some(0)), (10, Some(1)), (10, Some(3))];
    ways.map(|(apart, odd)| {
        let mut source = Source::multiplex();
        with_stream(&mut source.stream, EXTRA, 0x06);
        let apart = Span::from_millis(apart);
        let count = replaced(&mut source, apart, |number| Some(numbered(number, odd)));
        let sections: Vec<MediaSection> = { source.read().0.into_iter() }
            .map(|(_, section)| section)
            .collect();
        let carried = sections.iter().filter(|section| section.stream == 0x3ffe);
        let carried: usize = carried.map(|section| section.payload.len() / PACKET).sum();
        let expected = if odd.is_some() { count / 4 } else { count };
        assert!(count > 40 && carried + 4 > expected, "{odd:?}: {carried}");
        assert!(restore(&sections, |_| true).0 == source.stream, "{odd:?}");
        (source.stream, sections)
    })
});

proptest! {
    #![proptest_config(cases(48))]

    /// Whatever layouts are missing, no byte of a unit in carried packets is written twice, or out
    /// of order. Only the bytes that a missing layout had in a carried packet may be missing, if
    /// the unit arrives too late to be written in order.
    #[test]
    fn units_in_carried_packets_are_written_once(
        way in 0_usize..NUMBERED.len(),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 1..20),
    ) {
        let (stream, sections) = &NUMBERED[way];
        // The first sections say what the stream is.
        let layouts = sections.iter().skip(40).filter(|section| section.stream == LAYOUTS);
        let layouts: Vec<u64> = layouts.map(|section| section.number).collect();
        let lost: BTreeSet<u64> = lost.iter().map(|lost| *lost.get(&layouts)).collect();
        let (out, _) = restore(sections, |section| {
            section.stream != LAYOUTS || !lost.contains(&section.number)
        });
        check_counters(&out, "numbered");
        let found = words(&out);
        let twice = found.windows(2).find(|pair| pair[0] >= pair[1]);
        prop_assert_eq!(twice, None);
        let found: BTreeSet<u32> = found.into_iter().collect();
        let all: BTreeSet<u32> = words(stream).into_iter().collect();
        prop_assert!(found.is_subset(&all));
        let own = packets(stream).into_iter().filter(|own| pid(own) == EXTRA);
        let missing = own.filter(|own| words(own).iter().any(|word| !found.contains(word)));
        // Packets that take too long are further apart than a layout lasts.
        let most = if way == 0 { lost.len() } else { 0 };
        let missing = missing.count();
        prop_assert!(missing <= most, "{} packets, {:?}", missing, lost);
    }
}
