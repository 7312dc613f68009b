//! Multiplexes with more streams than a connection carries.

use std::collections::BTreeSet;

use comity_media::{FrameType, MediaSection, Notice, PACKET, ReaderConfig};

use crate::events_of;
use crate::layouts::restore;
use crate::remux::{crc, pat};
use crate::waits::packet;

const MAP: u16 = 0x1000;
const FIRST: u16 = 0x100;
const FRAMES: u16 = 40;
const CARRIED: u16 = 0x3ffe;

/// The packets of a map of AC-3 on PIDs from `FIRST` on.
fn map(streams: u16, counter: usize) -> Vec<u8> {
    let mut section = vec![2, 0, 0, 0, 1, 0xc1, 0, 0, 0xe1, 0, 0xf0, 0];
    for pid in FIRST..FIRST + streams {
        section.push(0x81);
        section.extend((0xe000 | pid).to_be_bytes());
        section.extend([0xf0, 0]);
    }
    let length = 0xb000 | (section.len() as u16 + 4 - 3);
    section[1..3].copy_from_slice(&length.to_be_bytes());
    section.extend(crc(&section).to_be_bytes());
    section.insert(0, 0);
    let parts = section.chunks(184).zip(counter..);
    { parts.enumerate() }
        .flat_map(|(at, (part, counter))| packet(MAP, counter, at == 0, part))
        .collect()
}

/// A frame of sound that fills a packet.
fn sound(pid: u16, frame: u16) -> [u8; PACKET] {
    let stamp = 90_000 + 2_160 * u32::from(frame);
    let mut payload = vec![0, 0, 1, 0xbd, 0, 178, 0x80, 0x80, 5, 0x21];
    payload.extend((stamp >> 14 | 1).to_be_bytes()[2..].iter());
    payload.extend((stamp << 1 | 1).to_be_bytes()[2..].iter());
    payload.resize(184, (pid * 7 + frame) as u8);
    packet(pid, usize::from(frame), true, &payload)
}

fn radio(streams: u16) -> Vec<u8> {
    let mut out = Vec::new();
    for frame in 0..FRAMES {
        if frame % 10 == 0 {
            let counter = usize::from(frame / 10);
            // Behind the media header of four bytes.
            out.extend(packet(
                0,
                counter,
                true,
                &[&[0][..], &pat(&[MAP])[4..]].concat(),
            ));
            let parts = map(streams, 0).len() / PACKET;
            out.extend(map(streams, counter * parts));
        }
        out.extend((FIRST..FIRST + streams).flat_map(|pid| sound(pid, frame)));
    }
    out
}

/// The limit of a connection on the page of the protocol.
fn limit() -> usize {
    let page = include_str!("../../../../docs/protocol/core.md");
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| streams | "));
    let limits: Vec<usize> = rows
        .map(|row| row.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(limits.len(), 1);
    limits[0]
}

/// The packets of the streams beyond the limit are carried, so that all of them come out.
#[test]
fn streams_beyond_the_limit_of_a_connection_are_carried_whole() {
    let config = ReaderConfig {
        layouts: true,
        ..ReaderConfig::default()
    };
    // Beside the elementary streams: tables, layouts, and three of carried packets.
    let most = u16::try_from(limit() - 5).unwrap();
    for streams in [1, most, most + 1, most + 11] {
        let stream = radio(streams);
        let (sections, notices) = crate::part(events_of(config, [&stream[..]]));
        let used: BTreeSet<u16> = sections.iter().map(|section| section.stream).collect();
        let own = streams.min(most);
        let mut expected: BTreeSet<u16> = (0..=own).chain([0x3fff]).collect();
        expected.extend((streams > most).then_some(CARRIED));
        assert_eq!(used, expected, "{streams}");
        let said = Notice::TooManyStreams {
            pid: FIRST + most,
            most,
        };
        let said: Vec<_> = (streams > most).then_some(said).into_iter().collect();
        assert_eq!(notices, said, "{streams}");
        let is_sound = |section: &&MediaSection| section.frame == FrameType::Audio;
        let frames = sections.iter().filter(is_sound).count();
        assert_eq!(frames, usize::from(own * FRAMES), "{streams}");
        let carried = sections.iter().filter(|section| section.stream == CARRIED);
        let carried: usize = carried.map(|section| section.payload.len() / PACKET).sum();
        assert_eq!(carried, usize::from((streams - own) * FRAMES), "{streams}");
        assert!(restore(&sections, |_| true).0 == stream, "{streams}");
    }
}
