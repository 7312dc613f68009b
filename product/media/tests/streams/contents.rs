//! PIDs whose content is not what their stream type says.

use std::collections::BTreeSet;

use comity_media::{
    Event, FrameType, Header, Importance, MediaSection, Notice, PACKET, Reader, ReaderConfig,
};
use comity_units::{Span, Time};

use crate::layouts::{at_constant_rate, pid, restore};
use crate::remux::{crc, map, pat};
use crate::units::unit;
use crate::waits::{packet, with_stream};
use crate::{CLIP, events_of};

const EXTRA: u16 = 0x200;
const MAP: u16 = 0x1000;
const VIDEO: u16 = 256;
const SOUND: u16 = 257;

/// What a reader makes of a stream, which comes out as it was.
fn read(stream: &[u8]) -> (Vec<MediaSection>, Vec<Notice>) {
    let config = ReaderConfig {
        layouts: true,
        ..ReaderConfig::default()
    };
    let events = events_of(config, [stream]);
    let missing = |event: &&Event| matches!(event, Event::Missing(_));
    assert_eq!(events.iter().find(missing), None);
    let (sections, notices) = crate::part(events);
    assert!(restore(&sections, |_| true).0 == stream);
    (sections, notices)
}

/// The clip with a packet of this kind behind every tenth, and a stream of this type in its map.
fn with(stream_type: u8, extra: u16, make: impl Fn(usize) -> [u8; PACKET]) -> Vec<u8> {
    let mut stream = CLIP.to_vec();
    with_stream(&mut stream, extra, stream_type);
    let mut out = Vec::new();
    for (index, packet) in stream.chunks(PACKET).enumerate() {
        out.extend(packet);
        if index % 10 == 9 {
            out.extend(make(index / 10));
        }
    }
    out
}

/// A linear congruential generator modulo 2^64.
fn noise(seed: usize) -> Vec<u8> {
    let mut state = seed as u64;
    let next = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    (0..184).map(next).collect()
}

const fn unknown(pid: u16, stream_type: u8) -> Notice {
    Notice::UnsupportedCodec { pid, stream_type }
}

#[test]
fn data_without_pes_packets_are_no_damage() {
    // T2-MI and ULE begin with a pointer; sections of a type that is not known.
    for stream_type in [0x06, 0x90] {
        let stream = with(stream_type, EXTRA, |number| {
            let mut payload = noise(number);
            payload[0] = (number % 180) as u8;
            packet(EXTRA, number, number.is_multiple_of(3), &payload)
        });
        let (sections, notices) = read(&stream);
        assert_eq!(notices, [unknown(EXTRA, stream_type)]);
        // As important as other packets of no elementary stream.
        let carried = sections
            .iter()
            .filter(|section| section.frame == FrameType::Slice);
        assert!(carried.into_iter().all(|section| section.stream == 0x3ffe));
    }
}

#[test]
fn what_is_no_section_is_no_table() {
    let tables = |sections: &[MediaSection]| {
        let tables = sections.iter().filter(|section| section.stream == 0);
        tables
            .map(|table| table.payload.clone())
            .collect::<BTreeSet<_>>()
    };
    // Scrambled private sections.
    let stream = with(0x05, EXTRA, |number| {
        let mut payload = noise(number);
        payload[0] = 0;
        let mut packet = packet(EXTRA, number, number.is_multiple_of(3), &payload);
        packet[3] |= 0x80;
        packet
    });
    let (sections, notices) = read(&stream);
    assert_eq!(notices, [Notice::Scrambled { pid: EXTRA }]);
    // The announcement, and the tables of the clip: with its longer map.
    assert_eq!(tables(&sections).len(), tables(&read(CLIP).0).len());
    // DVB's network synchronisation.
    let stream = with(0x05, EXTRA, |number| {
        packet(0x15, number, true, &noise(number)[..20])
    });
    let (sections, notices) = read(&stream);
    assert_eq!(
        (tables(&sections).len(), notices),
        (tables(&read(CLIP).0).len(), vec![])
    );
    // Sound of M2TS with the stream type of SCTE 35.
    let stream = with(0x86, EXTRA, |number| {
        let start = [
            &[0, 0, 1, 0xfd, 0, 178, 0x80, 0, 0][..],
            &noise(number)[9..],
        ]
        .concat();
        packet(EXTRA, number, true, &start)
    });
    let (sections, notices) = read(&stream);
    assert_eq!(notices, [unknown(EXTRA, 0x86)]);
    let of_it = sections
        .iter()
        .filter(|section| section.frame == FrameType::Opaque);
    assert_eq!(of_it.count(), CLIP.len() / PACKET / 10);
}

/// Teletext, subtitles and sound that the map describes need no warning; pictures do.
#[test]
fn private_data_that_the_map_describes_are_not_unknown() {
    let described = |descriptor: &[u8]| {
        let mut stream = CLIP.to_vec();
        with_stream(&mut stream, EXTRA, 0x06);
        for packet in stream
            .chunks_mut(PACKET)
            .filter(|packet| pid(packet) == MAP)
        {
            let end = 5 + 3 + usize::from(packet[7]) - 4;
            packet[end..end + descriptor.len()].copy_from_slice(descriptor);
            packet[end - 1] = descriptor.len() as u8;
            packet[7] += descriptor.len() as u8;
            let end = end + descriptor.len();
            let sum = crc(&packet[5..end]);
            packet[end..end + 4].copy_from_slice(&sum.to_be_bytes());
        }
        read(&stream).1
    };
    assert_eq!(described(&[0x56, 5, b'd', b'e', b'u', 9, 0]), []);
    assert_eq!(described(&[0x6a, 1, 0]), []);
    for other in [&b"\x05\x04AV01"[..], &[0x52, 1, 7]] {
        assert_eq!(described(other), [unknown(EXTRA, 0x06)]);
    }
}

/// The packet with other PIDs, in the tables too.
fn moved(packet: &[u8], from: &[u16], to: &[u16]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    let index = from.iter().position(|from| *from == pid(&packet));
    if let Some(to) = index.map(|index| to[index]) {
        packet[1] = packet[1] & 0xe0 | (to >> 8) as u8;
        packet[2] = to as u8;
    }
    if packet[1] & 0x40 != 0 && (packet[5] == 0 || packet[5] == 2) && packet[6] == 0xb0 {
        let end = 5 + 3 + usize::from(packet[7]) - 4;
        for at in 13..end - 1 {
            let old = u16::from_be_bytes([packet[at] & 0x1f, packet[at + 1]]);
            let index = from.iter().position(|from| *from == old);
            // Lengths in a map look like its own PID.
            let index = index.filter(|_| old != MAP || packet[5] == 0);
            if let Some(to) = index.map(|index| to[index])
                && packet[at] & 0xe0 == 0xe0
            {
                packet[at..at + 2].copy_from_slice(&(0xe000 | to).to_be_bytes());
            }
        }
        // The next version.
        packet[10] = packet[10].wrapping_add(2) & 0x3f | 0xc1;
        let sum = crc(&packet[5..end]);
        packet[end..end + 4].copy_from_slice(&sum.to_be_bytes());
    }
    packet
}

/// The clip with its map, pictures and sound on these PIDs.
fn clip_on(pids: [u16; 3]) -> Vec<u8> {
    let packets = CLIP.chunks(PACKET);
    packets
        .flat_map(|packet| moved(packet, &[MAP, VIDEO, SOUND], &pids))
        .collect()
}

/// The map of a programme moves to the PID on which another had its sound, and old stations of
/// ATSC use the PIDs of DVB's tables.
#[test]
fn pids_change_their_roles() {
    let pictures = |stream: &[u8]| {
        let (sections, notices) = read(stream);
        // However often a PID changes, its units are in one stream.
        let units = sections.iter().map(|section| (section.stream, section));
        let units = units.filter(|(stream, _)| (1..0x3ffc).contains(stream));
        let names: BTreeSet<(u16, u16)> = units
            .map(|(stream, section)| (unit(section).0.pid, stream))
            .collect();
        let pids: BTreeSet<u16> = names.iter().map(|(pid, _)| *pid).collect();
        assert_eq!(names.len(), pids.len(), "{names:?}");
        let pictures = sections.iter().filter(|section| section.frame.is_picture());
        let sound = sections
            .iter()
            .filter(|section| section.frame == FrameType::Audio);
        (pictures.count(), sound.count(), notices)
    };
    let other = clip_on([SOUND, 0x300, 0x301]);
    let (first, second, notices) = pictures(&[CLIP, &other].concat());
    assert_eq!((first, second), (500, 940), "{notices:?}");
    // An encoder takes over that has its pictures on the PID of the other's map, and changes again.
    let taken = clip_on([VIDEO, 0x300, 0x301]);
    let (first, second, notices) = pictures(&[&taken, CLIP].concat());
    assert_eq!((first, second), (500, 940), "{notices:?}");
    let is_damage = |notice: &Notice| matches!(notice, Notice::Damaged { .. });
    assert!(!notices.iter().any(is_damage), "{notices:?}");
    let (first, second, _) = pictures(&[&taken, CLIP, &taken, CLIP].concat());
    assert_eq!((first, second), (1_000, 1_880));
    // Its first map is lost, and its pictures are no tables.
    let packets = CLIP.chunks(PACKET);
    let map = packets.clone().position(|packet| pid(packet) == MAP);
    let rest = packets.enumerate().filter(|(index, _)| Some(*index) != map);
    let rest: Vec<u8> = rest.flat_map(|(_, packet)| packet.to_vec()).collect();
    let (first, _, notices) = pictures(&[taken, rest].concat());
    assert!((490..500).contains(&first), "{first}");
    assert!(!notices.iter().any(is_damage), "{notices:?}");
    let atsc: Vec<u8> = CLIP
        .chunks(PACKET)
        .filter(|packet| pid(packet) != 0x11)
        .flat_map(|packet| moved(packet, &[MAP, VIDEO, SOUND], &[0x10, 0x11, 0x14]))
        .collect();
    assert_eq!(pictures(&atsc), (250, 470, vec![]));
}

/// Packets of good pictures whose form no layout describes are as important as their pictures.
#[test]
fn pictures_in_an_unusual_form_are_no_damage() {
    const DAMAGED: u16 = 0x3ffc;
    const OTHERS: u16 = 0x3ffe;
    // The reserved bits of clock references are 0, though the standard sets them.
    let mut stream = at_constant_rate(CLIP, 1);
    let (mut unusual, mut marked) = (0, 0);
    for (index, packet) in stream.chunks_mut(PACKET).enumerate() {
        let has_clock = packet[3] & 0x20 != 0 && packet[4] > 0 && packet[5] & 0x10 != 0;
        if pid(packet) == VIDEO && has_clock {
            packet[10] &= 0x81;
            unusual += 1;
        } else if pid(packet) == VIDEO && index % 100 == 0 {
            packet[1] |= 0x80;
            marked += 1;
        }
    }
    assert!(unusual > 100 && marked > 10);
    let (sections, _) = read(&stream);
    let carried = |stream: u16, importance: u8| {
        let of_it = sections.iter().filter(|section| section.stream == stream);
        let packets = of_it.map(|section| {
            assert_eq!(section.importance, Importance(importance));
            section.payload.len() / PACKET
        });
        packets.sum::<usize>()
    };
    assert_eq!(
        (carried(OTHERS, 230), carried(DAMAGED, 80)),
        (unusual, marked)
    );
}

/// Carousels and schedules come again, and enhancements need their pictures.
#[test]
fn what_pictures_do_not_need_is_less_important() {
    let table = |id: u8, number: usize| {
        let mut table = vec![
            0,
            id,
            0xb0,
            0x10,
            0,
            1,
            0xc1,
            0,
            0,
            number as u8,
            1,
            2,
            3,
            4,
            5,
            6,
        ];
        let sum = crc(&table[1..]);
        table.extend(sum.to_be_bytes());
        table
    };
    let importance = |stream_type: u8, extra: u16, id: u8| {
        let stream = with(stream_type, 0x200, |number| {
            packet(extra, number, true, &table(id, number))
        });
        let (sections, notices) = read(&stream);
        assert_eq!(notices, []);
        let mut found = BTreeSet::new();
        for section in sections.iter().filter(|section| section.stream == 0) {
            let header = Header::decode(&section.payload).unwrap().0;
            let of_it = matches!(header, Header::Table { pid, .. } if pid == extra);
            let Importance(importance) = section.importance;
            assert!(of_it || importance == 255);
            found.extend(of_it.then_some(importance));
        }
        found.into_iter().collect::<Vec<_>>()
    };
    for (stream_type, pid, id, expected) in [
        (0x0b, EXTRA, 0x3c, 40),
        (0x05, EXTRA, 0x74, 40),
        (0x86, EXTRA, 0xfc, 255),
        (0x86, 0x12, 0x4e, 255),
        (0x86, 0x12, 0x50, 40),
        (0x86, 0x12, 0x6f, 40),
        (0x86, 0x11, 0x42, 255),
        (0x86, 0x14, 0x73, 255),
    ] {
        let found = importance(stream_type, pid, id);
        assert_eq!(found, [expected], "{stream_type:#x}, {id:#x}");
    }
    let data = |number: usize| {
        let start = [0, 0, 1, 0xe0, 0, 178, 0x80, 0, 0];
        let payload = [&start[..], &noise(number)[9..]].concat();
        packet(EXTRA, number, true, &payload)
    };
    for (stream_type, expected) in [(0x20, 25), (0x1f, 25), (0x25, 25), (0x33, 230)] {
        let (sections, _) = read(&with(stream_type, EXTRA, data));
        let of_it = sections.iter().filter(|section| section.stream == 3);
        let found: BTreeSet<u8> = of_it.map(|section| section.importance.0).collect();
        assert_eq!(found, BTreeSet::from([expected]), "{stream_type:#x}");
    }
}

/// A pipe is paced by the times in it, whatever PIDs they are on.
#[test]
fn the_times_of_a_pipe_go_on_on_other_pids() {
    let other = clip_on([0x1001, 0x300, 0x301]);
    // Another picture is shown beside the first one, from the middle on.
    let mut beside = CLIP.to_vec();
    with_stream(&mut beside, EXTRA, 0x1b);
    let half = beside.len() / PACKET / 2;
    let beside: Vec<u8> = { beside.chunks(PACKET).enumerate() }
        .flat_map(|(index, packet)| {
            let copy = match pid(packet) == VIDEO && index > half {
                true => moved(packet, &[VIDEO], &[EXTRA]),
                false => Vec::new(),
            };
            [packet, &copy].concat()
        })
        .collect();
    for (stream, clips) in [
        (CLIP.to_vec(), 1),
        (beside, 1),
        ([CLIP, &other].concat(), 2),
        ([CLIP, &other, CLIP, &other].concat(), 4),
    ] {
        let mut reader = Reader::new(ReaderConfig::default());
        let mut latest = Span::ZERO;
        // All of it at once: 64 KiB have a second.
        for piece in stream.chunks(64 << 10) {
            reader.push_arrived(piece, Time::from_secs(1)).unwrap();
            let progress = reader.progress();
            let step = progress.saturating_sub(latest);
            assert!(step <= Span::from_secs(2), "{step}");
            assert!(progress >= latest);
            latest = progress;
        }
        // Up to a piece counts only in part where the PIDs change.
        assert!(latest >= Span::from_secs(9 * clips), "{clips}: {latest}");
        assert!(
            latest <= Span::from_millis(10_050 * clips),
            "{clips}: {latest}"
        );
    }
}

/// One program lists the sound of another as sound of another type.
#[test]
fn a_stream_has_the_type_of_the_first_program_that_names_it() {
    const SECOND: u16 = 0x1001;
    let mut stream = Vec::new();
    let mut maps = 0;
    for packet in CLIP.chunks(PACKET) {
        match pid(packet) {
            0 => {
                let table = pat(&[MAP, SECOND]);
                let counter = usize::from(packet[3] & 0x0f);
                // Behind the media header of four bytes.
                let table = [&[0][..], &table[4..]].concat();
                stream.extend(crate::waits::packet(0, counter, true, &table));
            }
            MAP => {
                stream.extend(packet);
                let table = [&[0][..], &map(SECOND, VIDEO, VIDEO)[4..]].concat();
                stream.extend(crate::waits::packet(SECOND, maps, true, &table));
                maps += 1;
            }
            _ => stream.extend(packet),
        }
    }
    assert!(maps > 50);
    let (sections, notices) = read(&stream);
    assert_eq!(notices, [unknown(VIDEO + 2, 0x06)]);
    let count = |is_it: fn(FrameType) -> bool| {
        let frames = sections.iter().map(|section| section.frame);
        frames.filter(|frame| is_it(*frame)).count()
    };
    let is_sound = |frame: FrameType| frame == FrameType::Audio;
    assert_eq!((count(FrameType::is_picture), count(is_sound)), (250, 470));
}

/// The first start of a stream decides whether it has PES packets, unless it was damaged.
#[test]
fn a_damaged_first_start_does_not_hide_pes_packets() {
    let stream = with(0x06, EXTRA, |number| {
        let mut payload = [
            &[0, 0, 1, 0xbd, 0, 178, 0x80, 0, 0][..],
            &noise(number)[9..],
        ]
        .concat();
        payload[2] ^= u8::from(number == 0);
        packet(EXTRA, number, true, &payload)
    });
    let (sections, notices) = read(&stream);
    assert_eq!(notices, [unknown(EXTRA, 0x06)]);
    let units = sections.iter().filter(|section| section.stream == 3);
    // The damaged one, and two before it is clear that it was.
    assert_eq!(units.count(), CLIP.len() / PACKET / 10 - 3);
}

/// A splicer may mark the first packet of a PES packet. A mark within one explains no gap.
#[test]
fn a_mark_within_a_picture_hides_no_missing_packet() {
    let mut stream = CLIP.to_vec();
    let within = |packet: &&mut [u8]| pid(packet) == VIDEO && packet[1] & 0x40 == 0;
    let next = stream.chunks_mut(PACKET).filter(within).nth(100).unwrap();
    // Its first bytes give room for an adaptation field.
    next[3] |= 0x20;
    next.copy_within(4..PACKET - 2, 6);
    next[4..6].copy_from_slice(&[1, 0x80]);
    let mut packets: Vec<_> = stream.chunks(PACKET).collect();
    let marked =
        |packet: &&[u8]| pid(packet) == VIDEO && packet[3] & 0x20 != 0 && packet[5] == 0x80;
    let at = packets.iter().position(marked).unwrap();
    let before = packets[..at]
        .iter()
        .rposition(|packet| pid(packet) == VIDEO)
        .unwrap();
    packets.remove(before);
    let (sections, notices) = read(&packets.concat());
    assert_eq!(notices, [Notice::Damaged { pid: VIDEO }]);
    let damaged = sections.iter().filter(|section| section.is_damaged);
    assert_eq!(damaged.count(), 1);
}

/// Some systems of conditional access leave the packets with PES headers clear.
#[test]
fn clear_headers_before_scrambled_packets_are_no_wrong_lengths() {
    for scrambled in [SOUND, VIDEO] {
        let mut stream = CLIP.to_vec();
        for packet in stream.chunks_mut(PACKET) {
            let is_it = pid(packet) == scrambled && packet[1] & 0x40 == 0;
            packet[3] |= if is_it { 0x80 } else { 0 };
        }
        let (_, notices) = read(&stream);
        assert_eq!(notices, [Notice::Scrambled { pid: scrambled }]);
    }
}
