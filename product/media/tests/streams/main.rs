//! Whole streams: the test vectors, read, written, broken and compared with other tools.

mod breaks;
mod contents;
mod cuts;
mod damaged;
mod faults;
mod layouts;
mod live;
mod losses;
mod many;
mod outside;
mod page;
mod remux;
mod roundtrip;
mod sound;
mod standby;
mod times;
#[path = "../tools/mod.rs"]
mod tools;
mod totals;
mod ts;
mod units;
mod vectors;
mod waits;

use comity_media::{
    Damaged, Event, MediaSection, Notice, ReadError, Reader, ReaderConfig, TsWriter, WriterConfig,
};
use proptest::prelude::ProptestConfig;

const H264: &[u8] = include_bytes!("../vectors/h264.ts");
const H265: &[u8] = include_bytes!("../vectors/h265.ts");
const MPEG2: &[u8] = include_bytes!("../vectors/mpeg2.ts");
const MPEG1: &[u8] = include_bytes!("../vectors/mpeg1.m1v");
const CLIP: &[u8] = include_bytes!("../../../../experiments/demo/clip/clip.ts");

/// So many cases, or as many as `PROPTEST_CASES` in the environment says.
fn cases(usual: u32) -> ProptestConfig {
    let config = ProptestConfig::default();
    let is_set = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig {
        cases: if is_set { config.cases } else { usual },
        ..config
    }
}

/// The reader's output for these pieces, and how the reading ended.
fn outcome_of<'a>(
    config: ReaderConfig,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Event>, Result<(), ReadError>) {
    let mut reader = Reader::new(config);
    let mut events = Vec::new();
    let mut outcome = Ok(());
    for piece in pieces {
        outcome = reader.push(piece);
        events.extend(core::iter::from_fn(|| reader.poll()));
        if outcome.is_err() {
            break;
        }
    }
    let outcome = outcome.and_then(|()| reader.finish());
    events.extend(core::iter::from_fn(|| reader.poll()));
    (events, outcome)
}

fn events_of<'a>(config: ReaderConfig, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
    let (events, outcome) = outcome_of(config, pieces);
    assert_eq!(outcome, Ok(()));
    events
}

fn read(bytes: &[u8]) -> (Vec<MediaSection>, Vec<Notice>) {
    part(events_of(ReaderConfig::default(), [bytes]))
}

/// A reader that leaves out damaged units.
fn whole_units() -> ReaderConfig {
    ReaderConfig {
        damaged: Damaged::Drop,
        ..ReaderConfig::default()
    }
}

fn read_whole(bytes: &[u8]) -> (Vec<MediaSection>, Vec<Notice>) {
    part(events_of(whole_units(), [bytes]))
}

fn part(events: Vec<Event>) -> (Vec<MediaSection>, Vec<Notice>) {
    let (mut sections, mut notices) = (Vec::new(), Vec::new());
    for event in events {
        match event {
            Event::Section(section) => sections.push(section),
            Event::Notice(notice) => notices.push(notice),
            Event::Missing(_) => {}
        }
    }
    (sections, notices)
}

fn write<'a>(sections: impl IntoIterator<Item = &'a MediaSection>) -> Vec<u8> {
    let mut writer = TsWriter::new(WriterConfig::default());
    let mut out = Vec::new();
    for section in sections {
        writer
            .write(&section.payload, &mut out)
            .expect("a payload of the reader");
    }
    writer.finish(&mut out);
    out
}
