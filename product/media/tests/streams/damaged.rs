//! Sources with missing packets, packets marked as wrong, and PES packets of wrong lengths.

use std::collections::BTreeMap;

use comity_media::{
    Damaged, Event, Header, Importance, MediaSection, Notice, PACKET, ReaderConfig, TsWriter,
    WriterConfig, is_layouts,
};
use proptest::prelude::*;

use crate::{CLIP, H264, H265, MPEG2, cases, events_of, part, read, whole_units, write};

const VECTORS: [&[u8]; 4] = [H264, H265, MPEG2, CLIP];

fn pid(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[1] & 0x1f, packet[2]])
}

/// What a player makes of the packets of one PID: the payloads of its PES packets. They go on up to
/// the next one if they have more bytes than they say. Packets behind one that has all of its bytes
/// belong to none.
fn elementary(stream: &[u8], of: u16) -> Vec<u8> {
    let (mut out, mut header) = (Vec::new(), Vec::new());
    // How much of the PES packet is still to come; `None` within its header or outside of any.
    let (mut left, mut is_header) = (None::<usize>, false);
    for packet in stream.chunks(PACKET).filter(|packet| pid(packet) == of) {
        if packet[3] & 0x10 == 0 {
            continue;
        }
        let at = if packet[3] & 0x20 == 0 {
            4
        } else {
            5 + usize::from(packet[4])
        };
        let mut payload = packet[at..].to_vec();
        if packet[1] & 0x40 != 0 {
            (is_header, left) = (true, None);
            header.clear();
        }
        if is_header {
            header.extend(&payload);
            let length = 9 + header.get(8).copied().map_or(0, usize::from);
            if header.len() < length {
                continue;
            }
            payload = header.split_off(length);
            let said = usize::from(u16::from_be_bytes([header[4], header[5]])) + 6;
            is_header = false;
            left = header
                .starts_with(&[0, 0, 1])
                .then_some(match said > length {
                    true => said - length,
                    false => usize::MAX,
                });
        }
        let Some(room) = left else { continue };
        out.extend(&payload);
        left = match room.checked_sub(payload.len()) {
            Some(0) => None,
            Some(rest) => Some(rest),
            None => Some(usize::MAX),
        };
    }
    out
}

/// What the sections hold of a PID.
fn held(sections: &[MediaSection], of: u16) -> Vec<u8> {
    let units = sections
        .iter()
        .map(|section| Header::decode(&section.payload).unwrap());
    let of_pid = units.filter_map(|(header, bytes)| match header {
        Header::Unit(unit) if unit.pid == of => Some(bytes),
        _ => None,
    });
    of_pid.flatten().copied().collect()
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Missing,
    Marked,
    Overwritten,
}

fn with_faults(stream: &[u8], faults: &BTreeMap<usize, Fault>) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, packet) in stream.chunks(PACKET).enumerate() {
        let mut packet = packet.to_vec();
        // The tables come first, and are whole.
        let is_video = matches!(pid(&packet), 0x100 | 0x101) && number > 8;
        match faults.get(&number).filter(|_| is_video) {
            Some(Fault::Missing) => continue,
            Some(Fault::Marked) => packet[1] |= 0x80,
            // Without a header of a PES packet, which no player reads alike.
            Some(Fault::Overwritten) if packet[1] & 0x40 == 0 => {
                packet[1] |= 0x80;
                packet[100..180].fill(0x5a);
            }
            _ => {}
        }
        out.extend(packet);
    }
    out
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        3 => Just(Fault::Missing),
        1 => Just(Fault::Marked),
        1 => Just(Fault::Overwritten),
    ]
}

proptest! {
    #![proptest_config(cases(48))]

    /// A player finds the same bytes of pictures and sound in the sections, and in the new stream
    /// that is written from them.
    #[test]
    fn nothing_that_a_player_reads_is_left_out(
        which in 0_usize..4,
        faults in prop::collection::btree_map(0_usize..1_500, fault(), 0..40),
    ) {
        let stream = with_faults(VECTORS[which], &faults);
        let events = events_of(ReaderConfig::default(), [&stream[..]]);
        let (sections, _) = part(events);
        let copy = write(&sections);
        for pid in [0x100, 0x101] {
            let expected = elementary(&stream, pid);
            prop_assert!(held(&sections, pid) == expected, "{}", pid);
            prop_assert!(elementary(&copy, pid) == expected, "{}", pid);
        }
        // Damage is known, and nothing else is called damaged.
        let (whole, _) = read(VECTORS[which]);
        let content = |section: &MediaSection| {
            let (_, content) = Header::decode(&section.payload).unwrap();
            content.to_vec()
        };
        let known = |section: &MediaSection| {
            let same = whole.iter().any(|other| other.payload == section.payload);
            // What is missing before a picture, such as parameter sets, is a damaged section.
            let before = sections.iter().find(|before| {
                (before.stream, before.number + 1) == (section.stream, section.number)
            });
            let is_rest = before.is_some_and(|before| before.is_damaged) && {
                let own = content(section);
                whole.iter().any(|other| content(other).ends_with(&own))
            };
            same || is_rest
        };
        // Behind the last unit of a stream, nothing shows that its end is missing.
        let last: BTreeMap<u16, u64> = { sections.iter() }
            .map(|section| (section.stream, section.number))
            .collect();
        for section in sections.iter().filter(|section| section.frame.is_picture()) {
            let is_known = section.is_damaged || known(section);
            let is_last = last.get(&section.stream) == Some(&section.number);
            prop_assert!(is_known || is_last, "{:?}", section.number);
            let usual = Importance::of(section.frame, section.position).0;
            let expected = if section.is_damaged { usual / 2 } else { usual };
            prop_assert_eq!(section.importance.0, expected);
        }
        if faults.is_empty() {
            prop_assert!(sections.iter().all(|section| !section.is_damaged));
        }
    }
}

/// A damaged unit is sent, or is missing, and layouts of the others are the same.
#[test]
fn damaged_units_are_left_out_on_request() {
    let packets: Vec<&[u8]> = H264.chunks(PACKET).collect();
    let faults = (60..400)
        .step_by(31)
        .flat_map(|at| [(at, true), (at, false)]);
    for (lost, is_missing) in faults {
        let stream = match is_missing {
            true => [&packets[..lost], &packets[lost + 1..]].concat().concat(),
            // Marked as wrong: it is no missing section of its own.
            false => {
                let mut stream = H264.to_vec();
                stream[lost * PACKET + 1] |= 0x80;
                stream
            }
        };
        let [passed, dropped] = [Damaged::Pass, Damaged::Drop].map(|damaged| {
            let config = ReaderConfig {
                damaged,
                layouts: true,
                ..whole_units()
            };
            events_of(config, [&stream[..]])
        });
        let notices = |events: &[Event]| {
            let is_notice = |event: &&Event| matches!(event, Event::Notice(_));
            events.iter().filter(is_notice).cloned().collect::<Vec<_>>()
        };
        assert_eq!(notices(&passed), notices(&dropped), "{lost}");
        let missing = dropped.iter().filter_map(|event| match event {
            Event::Missing(missing) => Some((missing.stream, missing.number)),
            _ => None,
        });
        let missing: Vec<_> = missing.collect();
        let damaged = passed.iter().filter_map(|event| match event {
            Event::Section(section) if section.is_damaged => Some((section.stream, section.number)),
            _ => None,
        });
        let damaged: Vec<_> = damaged.collect();
        assert_eq!(missing, damaged, "{lost}");
        assert!((1..=3).contains(&missing.len()), "{lost}: {missing:?}");
        // All packets of whole units come out as they were. One that such a unit shares with a
        // damaged one is filled up.
        let mut writer = TsWriter::new(WriterConfig::default());
        let mut out = Vec::new();
        for event in &dropped {
            match event {
                Event::Section(section) => {
                    let (stream, number) = (section.stream, section.number);
                    writer
                        .write_section(stream, number, &section.payload, &mut out)
                        .expect("a section of the reader");
                }
                Event::Missing(missing) => writer.miss(missing.stream, missing.number, 1, &mut out),
                Event::Notice(_) => {}
            }
        }
        writer.finish(&mut out);
        let own = |stream: &[u8]| -> Vec<Vec<u8>> {
            let of_media = |packet: &&[u8]| pid(packet) >= 0x100 && packet[3] & 0x10 != 0;
            stream
                .chunks(PACKET)
                .filter(of_media)
                .map(<[u8]>::to_vec)
                .collect()
        };
        let (given, kept) = (own(&stream), own(&out));
        let (same, filled): (Vec<_>, Vec<_>) =
            kept.iter().partition(|packet| given.contains(packet));
        assert!(filled.iter().all(|packet| packet[3] & 0x20 != 0), "{lost}");
        assert!(
            filled.len() <= 2 * missing.len() + 1,
            "{lost}: {}",
            filled.len()
        );
        assert!(same.len() < given.len(), "{lost}");
        assert!(
            kept.len() + 60 > given.len(),
            "{lost}: {} of {}",
            kept.len(),
            given.len()
        );
        let (sections, _) = part(passed);
        assert_eq!(
            sections.iter().filter(|section| section.is_damaged).count(),
            damaged.len()
        );
    }
}

/// A packet may come twice (ISO/IEC 13818-1 2.4.3.3). One of a unit that is left out is left out
/// both times, without a number of its own.
#[test]
fn a_duplicate_is_left_out_with_its_unit() {
    let packets: Vec<&[u8]> = H264.chunks(PACKET).collect();
    let read = |stream: &[u8]| {
        let config = ReaderConfig {
            layouts: true,
            ..whole_units()
        };
        let (mut writer, mut out) = (TsWriter::new(WriterConfig::default()), Vec::new());
        let mut numbers = Vec::new();
        for event in events_of(config, [stream]) {
            let (stream, number, is_sent) = match event {
                Event::Section(section) => {
                    let (stream, number) = (section.stream, section.number);
                    writer
                        .write_section(stream, number, &section.payload, &mut out)
                        .expect("a section of the reader");
                    (stream, number, true)
                }
                Event::Missing(missing) => {
                    writer.miss(missing.stream, missing.number, 1, &mut out);
                    (missing.stream, missing.number, false)
                }
                Event::Notice(_) => continue,
            };
            if !is_layouts(stream) {
                numbers.push((stream, number, is_sent));
            }
        }
        writer.finish(&mut out);
        (numbers, out)
    };
    let mut tried = 0;
    for lost in (60..400).step_by(7) {
        let of_same = |at: &usize| pid(packets[*at]) == pid(packets[lost]);
        let next = (lost + 1..).find(of_same).expect("a longer stream");
        if pid(packets[lost]) < 0x100 || packets[next][1] & 0x40 != 0 {
            continue;
        }
        let before = [&packets[..lost], &packets[lost + 1..=next]].concat();
        let once = [&before[..], &packets[next + 1..]].concat().concat();
        let twice = [&before[..], &packets[next..]].concat().concat();
        let (once, twice) = (read(&once), read(&twice));
        if once.1.chunks(PACKET).all(|packet| packet != packets[next]) {
            assert_eq!(once.0, twice.0, "{lost}");
            assert!(once.1 == twice.1, "{lost}");
            tried += 1;
        }
    }
    assert!(tried > 15, "{tried}");
}

/// Lengths of PES packets are those of their bytes, whatever they say.
#[test]
fn wrong_lengths_change_nothing_and_are_reported_once() {
    let (whole, _) = read(CLIP);
    for change in [
        |length: u16| length / 2,
        |length| length + 100,
        |_| 0,
        |_| 1,
    ] {
        let mut stream = CLIP.to_vec();
        let mut is_changed = false;
        for packet in stream.chunks_mut(PACKET) {
            let at = if packet[3] & 0x20 == 0 {
                4
            } else {
                5 + usize::from(packet[4])
            };
            if pid(packet) == 0x101 && packet[1] & 0x40 != 0 {
                let length = u16::from_be_bytes([packet[at + 4], packet[at + 5]]);
                packet[at + 4..at + 6].copy_from_slice(&change(length).to_be_bytes());
                is_changed |= change(length) > 8;
            }
        }
        let (sections, notices) = read(&stream);
        let expected = [Notice::WrongLength { pid: 0x101 }];
        assert_eq!(notices, expected[..usize::from(is_changed)]);
        assert_eq!(held(&sections, 0x101), held(&whole, 0x101));
        assert!(sections.iter().all(|section| !section.is_damaged));
        assert_eq!(sections.len(), whole.len());
    }
}

/// Counters that never count are no duplicates.
#[test]
fn counters_that_stand_still_lose_nothing() {
    let mut stream = H264.to_vec();
    stream
        .chunks_mut(PACKET)
        .filter(|packet| pid(packet) >= 0x100)
        .for_each(|packet| {
            packet[3] &= 0xf0;
        });
    let (sections, _) = read(&stream);
    for pid in [0x100, 0x101] {
        assert_eq!(held(&sections, pid), elementary(H264, pid));
    }
}
