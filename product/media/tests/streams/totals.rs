//! Sources and sections that are made to take memory, or to fill a disk.

use comity_media::{
    Event, FrameType, Header, MediaSection, Notice, Output, PACKET, Reader, ReaderConfig, Times,
    TsWriter, Unit, WriterConfig,
};
use comity_units::DataSize;

use crate::layouts::restore_all;
use crate::remux::{crc, map, pat, table};
use crate::{CLIP, events_of};

const MAP: u16 = 0x1000;
const FIRST: u16 = 0x100;
const HONEST: u16 = 0x90;

/// Packets with a counter for each PID.
#[derive(Default)]
struct Multiplexer {
    counters: std::collections::BTreeMap<u16, u8>,
    bytes: Vec<u8>,
}

impl Multiplexer {
    fn packet(&mut self, pid: u16, begins: bool, payload: &[u8]) {
        let counter = self.counters.entry(pid).or_default();
        let flag = if begins { 0x4000 } else { 0 };
        self.bytes.push(0x47);
        self.bytes.extend((flag | pid).to_be_bytes());
        let stuffing = 184 - payload.len();
        self.bytes
            .push(0x10 | *counter | if stuffing > 0 { 0x20 } else { 0 });
        *counter = (*counter + 1) % 16;
        if stuffing > 0 {
            self.bytes.push(u8::try_from(stuffing - 1).unwrap());
            let field = [0].into_iter().chain(std::iter::repeat(0xff));
            self.bytes.extend(field.take(stuffing - 1));
        }
        self.bytes.extend(payload);
    }

    fn section(&mut self, pid: u16, section: &[u8]) {
        let mut payload = vec![0];
        payload.extend(section);
        payload.resize(184, 0xff);
        self.packet(pid, true, &payload);
    }

    /// PAT and the map of a program with private data on these PIDs.
    fn tables(&mut self, pids: impl Iterator<Item = u16>) {
        let pat = [0, 1, 0xe0 | (MAP >> 8) as u8, MAP as u8];
        self.section(0, &long(0x00, &pat));
        let mut body = vec![0xff, 0xff, 0xf0, 0];
        for pid in pids {
            body.push(0x06);
            body.extend((0xe000 | pid).to_be_bytes());
            body.extend([0xf0, 0]);
        }
        self.section(MAP, &long(0x02, &body));
    }
}

fn long(id: u8, body: &[u8]) -> Vec<u8> {
    let length = u8::try_from(body.len() + 9).unwrap();
    let mut section = vec![id, 0xb0, length, 0, 1, 0xc1, 0, 0];
    section.extend(body);
    section.extend(crc(&section).to_be_bytes());
    section
}

/// Units that never end, on many PIDs, beside a stream whose units do.
#[test]
fn open_units_take_no_more_than_their_budget() {
    const STREAMS: u16 = 30;
    let config = ReaderConfig {
        open_units: DataSize::new(1 << 20),
        longest_unit: DataSize::new(256 << 10),
        ..ReaderConfig::default()
    };
    let mut source = Multiplexer::default();
    source.tables((FIRST..FIRST + STREAMS).chain([HONEST]));
    // A PES packet that does not say its length, without a time stamp.
    let mut begins = vec![0, 0, 1, 0xbd, 0, 0, 0x80, 0, 0];
    begins.resize(184, 1);
    // One of 30 bytes.
    let mut whole = vec![0, 0, 1, 0xbd, 0, 33, 0x80, 0, 0];
    whole.resize(39, 2);
    for pid in FIRST..FIRST + STREAMS {
        source.packet(pid, true, &begins);
    }
    let rounds = 400;
    for _ in 0..rounds {
        for pid in FIRST..FIRST + STREAMS {
            source.packet(pid, false, &[1; 184]);
        }
        source.packet(HONEST, true, &whole);
    }
    let mut reader = Reader::new(config);
    let (mut honest, mut given_up) = (0, 0);
    reader.push(&source.bytes).unwrap();
    while let Some(event) = reader.poll() {
        match event {
            Event::Section(section) if section.payload.ends_with(&[2; 30]) => honest += 1,
            Event::Notice(Notice::Oversized { bytes, .. }) => given_up += bytes,
            _ => {}
        }
    }
    assert_eq!(honest, rounds);
    // What is open comes at the end.
    reader.finish().unwrap();
    let rest: usize = std::iter::from_fn(|| reader.poll())
        .filter_map(|event| match event {
            Event::Section(section) if section.stream > 0 => Some(section.payload.len()),
            _ => None,
        })
        .sum();
    let open = usize::from(STREAMS) * rounds * 184;
    assert!(open > 2 << 20);
    assert!((700 << 10..(1 << 20) + 2_000).contains(&rest), "{rest}");
    assert!(given_up as usize > open / 4, "{given_up}");
    // With room for all, each is whole.
    let usual = events_of(ReaderConfig::default(), [&source.bytes[..]]);
    let all: usize = { usual.iter() }
        .filter_map(|event| match event {
            Event::Section(section) if section.stream > 0 => Some(section.payload.len()),
            Event::Notice(Notice::Oversized { .. }) => panic!("there is room"),
            _ => None,
        })
        .sum();
    assert!(all > open, "{all}");
}

/// Times that jump ahead make tables due again and again.
#[test]
fn tables_that_come_again_are_bounded_by_what_came_in() {
    let mut writer = TsWriter::new(WriterConfig {
        output: Output::Remultiplexed,
        ..WriterConfig::default()
    });
    let (mut came, mut out) = (0, Vec::new());
    let mut take = |writer: &mut TsWriter, payload: &[u8]| {
        came += payload.len();
        writer.write(payload, &mut out).unwrap();
    };
    take(&mut writer, &pat(&[MAP]));
    take(&mut writer, &map(MAP, FIRST, FIRST));
    for id in 0..200 {
        take(&mut writer, &table(0x11, id, &[id; 200]));
    }
    for number in 0..2_000 {
        let header = Header::Unit(Unit {
            pid: FIRST,
            stream_type: 0x1b,
            stream_id: 0xe0,
            frame: FrameType::Key,
            times: Times::Presentation(number * 800_000),
            random_access: true,
            discontinuity: false,
            aligned: true,
        });
        let mut payload = Vec::new();
        header.encode(&mut payload);
        payload.extend([9; 10]);
        take(&mut writer, &payload);
    }
    // A packet for each of the units and tables comes on top.
    let most = 16 * came + (1 << 20) + 2_400 * PACKET;
    assert!((1 << 20..most).contains(&out.len()), "{}", out.len());
    assert!(writer.statistics().omitted > 0);
}

/// What the reader makes of a stream with many packets of one kind, and the layouts among it.
fn with_layouts(source: &[u8]) -> Vec<MediaSection> {
    let config = ReaderConfig {
        layouts: true,
        ..ReaderConfig::default()
    };
    crate::part(events_of(config, [source])).0
}

/// A hostile sender repeats a layout that orders thousands of packets.
#[test]
fn layouts_that_come_again_are_bounded_by_what_came_in() {
    const LAYOUTS: u16 = 0x3fff;
    let mut null = vec![0x47, 0x1f, 0xff, 0x10];
    null.resize(PACKET, 0xff);
    for (is_null, times, most) in [(true, 300, (64 << 20, 256)), (false, 20, (1 << 20, 16))] {
        let mut source = Multiplexer::default();
        source.tables([FIRST].into_iter());
        for _ in 0..9_000 {
            match is_null {
                true => source.bytes.extend(&null),
                false => source.tables([FIRST].into_iter()),
            }
        }
        let sections = with_layouts(&source.bytes);
        let (whole, statistics) = restore_all({ sections.iter() }.map(|section| {
            (
                section.stream,
                section.number,
                Some(section.payload.clone()),
            )
        }));
        if is_null {
            assert_eq!(whole.len(), source.bytes.len());
            assert_eq!(statistics.omitted, 0);
        }
        let layouts = sections.iter().filter(|section| section.stream == LAYOUTS);
        let layout =
            layouts.max_by_key(|layout| layout.payload.len() < 4_000 && layout.number == 1);
        let layout = layout.unwrap();
        let last = sections.iter().map(|section| section.number).max().unwrap();
        let again = (0..times).map(|more| (LAYOUTS, last + 1 + more, Some(layout.payload.clone())));
        let all = { sections.iter() }
            .filter(|section| section.stream != LAYOUTS || section.number <= layout.number)
            .map(|section| {
                (
                    section.stream,
                    section.number,
                    Some(section.payload.clone()),
                )
            })
            .chain(again);
        let all: Vec<_> = all.collect();
        let came: usize = all
            .iter()
            .flat_map(|(.., payload)| payload)
            .map(|p| p.len())
            .sum();
        let (out, statistics) = restore_all(all);
        let (burst, factor) = most;
        let most = burst + factor * came + source.bytes.len();
        assert!((burst..most).contains(&out.len()), "{} {most}", out.len());
        assert!(statistics.omitted > 0);
    }
}

/// A layout has at most 256 PIDs, and a stream any number.
#[test]
fn a_stream_of_hundreds_of_pids_is_restored() {
    let mut source = Multiplexer::default();
    source.tables([FIRST].into_iter());
    for _ in 0..5 {
        for pid in 0x400..0x400 + 600 {
            source.packet(pid, false, &[7; 184]);
        }
    }
    let sections = with_layouts(&source.bytes);
    let (whole, statistics) = restore_all({ sections.iter() }.map(|section| {
        (
            section.stream,
            section.number,
            Some(section.payload.clone()),
        )
    }));
    assert!(whole == source.bytes, "{} bytes", whole.len());
    assert_eq!(statistics.remultiplexed_sections, 0);
}

#[test]
fn an_honest_stream_is_far_from_the_bounds() {
    for output in [Output::Whole, Output::Remultiplexed] {
        let mut writer = TsWriter::new(WriterConfig {
            output,
            ..WriterConfig::default()
        });
        let mut out = Vec::new();
        for section in with_layouts(CLIP) {
            let MediaSection { stream, number, .. } = section;
            writer
                .write_section(stream, number, &section.payload, &mut out)
                .unwrap();
        }
        writer.finish(&mut out);
        assert!(out.len() * 10 > CLIP.len() * 9);
        assert_eq!(writer.statistics().omitted, 0);
    }
}
