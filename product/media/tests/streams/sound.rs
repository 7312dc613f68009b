//! Frames of sound that share a PES packet, beside frames that are missing.

use std::collections::{BTreeMap, BTreeSet};

use comity_media::{Header, MediaSection};

use crate::CLIP;
use crate::layouts::{
    check_counters, is_layout, packets, payload, pid, restore, restore_all, sections,
};

/// The frames of AAC at 48 kHz that a decoder finds, each with the time that the last PES header
/// gives it.
pub(crate) fn delivered(stream: &[u8], sound: u16) -> BTreeSet<(u64, Vec<u8>)> {
    let mut pes: Vec<(u64, Vec<u8>)> = Vec::new();
    for packet in packets(stream) {
        let data = payload(packet);
        if pid(packet) != sound || data.is_empty() {
            continue;
        }
        if packet[1] & 0x40 != 0 {
            let stamp: Vec<u64> = data[9..14].iter().map(|&byte| u64::from(byte)).collect();
            let time = (stamp[0] >> 1 & 7) << 30
                | stamp[1] << 22
                | (stamp[2] >> 1) << 15
                | stamp[3] << 7
                | stamp[4] >> 1;
            pes.push((time, data[9 + usize::from(data[8])..].to_vec()));
        } else if let Some((_, bytes)) = pes.last_mut() {
            bytes.extend(data);
        }
    }
    let mut frames = BTreeSet::new();
    for (mut time, bytes) in pes {
        assert!(!bytes.is_empty(), "a header of nothing");
        let mut rest = &bytes[..];
        while let [0xff, 0xf1, _, high, middle, low, ..] = *rest {
            let length =
                usize::from(high & 3) << 11 | usize::from(middle) << 3 | usize::from(low >> 5);
            let (frame, behind) = rest.split_at(length.min(rest.len()));
            frames.insert((time, frame.to_vec()));
            (time, rest) = (time + 1_920, behind);
        }
        assert!(rest.len() < 6, "no frame: {:02x?}", &rest[..6]);
    }
    frames
}

pub(crate) fn frames(of: &BTreeSet<(u64, Vec<u8>)>) -> BTreeSet<Vec<u8>> {
    of.iter().map(|(_, frame)| frame.clone()).collect()
}

/// Several frames of sound share a PES packet. Those that arrive are heard, and nearly all at their
/// times.
#[test]
fn arrived_sound_is_delivered_whatever_else_is_missing() {
    let sections = sections(CLIP);
    let units: Vec<_> = { sections.iter() }
        .filter_map(|section| match Header::decode(&section.payload) {
            Ok((Header::Unit(unit), content)) if unit.stream_type == 0x0f => {
                let time = unit.times.presentation().expect("a time stamp");
                Some((section, unit.pid, (time, content.to_vec())))
            }
            _ => None,
        })
        .collect();
    let pid = units[0].1;
    assert_eq!(
        delivered(CLIP, pid),
        units.iter().map(|(.., frame)| frame.clone()).collect()
    );
    for pattern in [2, 3, 5, 7, 11, 13] {
        for phase in 0..pattern {
            let is_lost = |section: &MediaSection| {
                section.stream == units[0].0.stream && section.number % pattern == phase
            };
            let (out, _) = restore(&sections, |section| !is_lost(section));
            let expected: BTreeSet<_> = { units.iter() }
                .filter(|(section, ..)| !is_lost(section))
                .map(|(.., frame)| frame.clone())
                .collect();
            let found = delivered(&out, pid);
            assert!(frames(&expected) == frames(&found), "{pattern}, {phase}");
            // Where less is missing before a frame than a PES header takes, it has none of its own.
            let wrong = found.difference(&expected).count();
            assert!(wrong * 4 < expected.len(), "{wrong} of {}", expected.len());
            check_counters(&out, "clip");
        }
    }
}

/// A receiver that comes in the middle of a PES packet, or to which a layout is missing, writes no
/// bytes that a decoder takes for what they are not.
#[test]
fn sound_begins_with_a_frame_whatever_was_before() {
    let clip = sections(CLIP);
    let sound = 0x101;
    let all = delivered(CLIP, sound);
    let known = frames(&all);
    for split in (20..clip.len() - 300).step_by(7) {
        let mut numbers: BTreeMap<u16, u64> = BTreeMap::new();
        let joined = clip[split..].iter().map(|section| {
            let next = numbers.entry(section.stream).or_default();
            *next += 1;
            (section.stream, *next - 1, Some(section.payload.clone()))
        });
        let (out, _) = restore_all(joined.collect::<Vec<_>>());
        let found = delivered(&out, sound);
        assert!(found.is_subset(&all), "from {split}");
        assert!(found.len() > 50);
        check_counters(&out, "clip");
        let (out, _) = restore(&clip, |section| {
            !is_layout(section) || section.number % 5 != split as u64 % 5
        });
        let found = frames(&delivered(&out, sound));
        assert!(found == known, "a layout is missing at {split}");
    }
}
