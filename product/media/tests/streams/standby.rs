//! Live sources that begin without a programme, or have little but null packets.

use comity_media::{Event, MediaSection, Notice, PACKET, Reader, ReaderConfig, WriterStatistics};
use comity_units::{Span, Time};

use crate::layouts::restore_all;
use crate::remux::{map, pat};
use crate::{CLIP, H264};

const MAP: u16 = 0x1000;
const CLOCK: u16 = 0x100;

fn null() -> Vec<u8> {
    [&[0x47, 0x1f, 0xff, 0x10][..], &[0xff; 184]].concat()
}

/// A packet with a section, as in the payload of a table.
fn packet(pid: u16, counter: u64, table: &[u8]) -> Vec<u8> {
    let [high, low] = (0x4000 | pid).to_be_bytes();
    let counter = 0x10 | (counter % 16) as u8;
    // Behind the media header of four bytes.
    let mut packet = [&[0x47, high, low, counter, 0][..], &table[4..]].concat();
    packet.resize(PACKET, 0xff);
    packet
}

/// A packet with a clock reference and nothing else.
fn clock(ticks: u64) -> Vec<u8> {
    let bits = (ticks / 300) << 15 | 0x7e00 | (ticks % 300);
    let [high, low] = CLOCK.to_be_bytes();
    let mut packet = vec![0x47, high, low, 0x20, 183, 0x10];
    packet.extend(&bits.to_be_bytes()[2..]);
    packet.resize(PACKET, 0xff);
    packet
}

/// What a reader makes of pieces that arrive so far apart.
fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>, apart: Span) -> Vec<(Time, Event)> {
    let mut reader = Reader::new(ReaderConfig {
        layouts: true,
        ..ReaderConfig::default()
    });
    let (mut events, mut now) = (Vec::new(), Time::from_secs(5));
    for piece in pieces {
        reader.push_arrived(piece, now).unwrap();
        events.extend(std::iter::from_fn(|| reader.poll()).map(|event| (now, event)));
        now += apart;
    }
    reader.finish().unwrap();
    events.extend(std::iter::from_fn(|| reader.poll()).map(|event| (now, event)));
    events
}

fn parted(events: Vec<(Time, Event)>) -> (Vec<MediaSection>, Vec<Notice>) {
    crate::part(events.into_iter().map(|(_, event)| event).collect())
}

fn restored(sections: &[MediaSection]) -> (Vec<u8>, WriterStatistics) {
    restore_all({ sections.iter() }.map(|section| {
        let payload = Some(section.payload.clone());
        (section.stream, section.number, payload)
    }))
}

/// An encoder in standby sends null packets, and perhaps a PAT whose programme has no map. Later it
/// sends the programme.
#[test]
fn a_programme_that_begins_late_is_read_and_what_precedes_it_does_not_wait() {
    let nameless = packet(0, 0, &pat(&[MAP]));
    for before in [vec![], nameless.repeat(3), null(), packet(0, 0, &pat(&[]))] {
        let stream = [&before[..], &null().repeat(4_200), CLIP].concat();
        let events = read(stream.chunks(7 * PACKET), Span::from_millis(1));
        let is_section = |event: &Event| matches!(event, Event::Section(_));
        let first = events.iter().filter(|(_, event)| is_section(event)).nth(1);
        let after = first.unwrap().0.saturating_since(Time::from_secs(5));
        assert!(after <= Span::from_millis(100), "{after}");
        let (sections, notices) = parted(events);
        assert_eq!(notices, []);
        let pictures = sections.iter().filter(|section| section.frame.is_picture());
        assert_eq!(pictures.count(), 250);
        assert!(restored(&sections).0 == stream);
    }
}

#[test]
fn a_stray_datagram_does_not_decide_the_format() {
    let mut reader = Reader::new(ReaderConfig {
        layouts: true,
        ..ReaderConfig::default()
    });
    let mut now = Time::from_secs(1);
    reader.push_arrived(b"hello", now).unwrap();
    for _ in 0..10 {
        now += Span::from_secs(1);
        reader.on_silence(now).unwrap();
    }
    let mut events = Vec::new();
    for datagram in H264.chunks(PACKET) {
        now += Span::from_millis(2);
        reader.push_arrived(datagram, now).unwrap();
        events.extend(std::iter::from_fn(|| reader.poll()));
    }
    reader.finish().unwrap();
    events.extend(std::iter::from_fn(|| reader.poll()));
    let (sections, notices) = crate::part(events);
    assert_eq!(notices, [Notice::LostSync { skipped: 5 }]);
    assert!(restored(&sections).0 == [b"hello", H264].concat());
}

/// The sender knows the bounds of its receivers, and stays within them.
#[test]
fn a_multiplex_in_standby_comes_out_as_it_was() {
    // 38 Mb/s for 18 s: null packets, and tables every 100 ms.
    let mut nulls = Vec::new();
    for number in 0..180 {
        nulls.extend(packet(0, number, &pat(&[MAP])));
        nulls.extend(packet(MAP, number, &map(MAP, CLOCK, CLOCK)));
        nulls.extend(null().repeat(2_500));
    }
    // Clock references and repeated tables alone.
    let mut clocks = Vec::new();
    for number in 0..4_000 {
        clocks.extend(packet(0, number, &pat(&[MAP])));
        clocks.extend(packet(MAP, number, &map(MAP, CLOCK, CLOCK)));
        for reference in 8 * number..8 * (number + 1) {
            clocks.extend(clock(540_000 * reference));
        }
    }
    for (stream, apart) in [(nulls, 277), (clocks, 5_000)] {
        let events = read(stream.chunks(7 * PACKET), Span::from_micros(apart));
        let (sections, notices) = parted(events);
        let is_of_map = |notice: &Notice| matches!(notice, Notice::UnsupportedCodec { .. });
        assert!(notices.iter().all(is_of_map), "{notices:?}");
        let sent: usize = sections.iter().map(|section| section.payload.len()).sum();
        let (out, statistics) = restored(&sections);
        assert_eq!(statistics.omitted, 0);
        assert!(out == stream, "{} of {} bytes", out.len(), stream.len());
        // Carried packets come on top of the layouts.
        assert!(sent * 6 < stream.len(), "{sent} of {}", stream.len());
    }
}
