//! The same elementary stream, cut into PES packets and transport packets anywhere: start codes,
//! headers and sync words are split.

use std::collections::BTreeSet;

use comity_media::{Entry, MediaSection, PACKET, Times, Unit};
use proptest::prelude::*;

use crate::units::{of_stream, unit};
use crate::{CLIP, H264, H265, MPEG2, cases, read};

const VIDEO: u16 = 0x100;
/// Streams; of the long one, some seconds.
fn streams() -> [(&'static str, &'static [u8]); 4] {
    let clip = &CLIP[..2_000 * PACKET];
    [
        ("h264", H264),
        ("h265", H265),
        ("mpeg2", MPEG2),
        ("clip", clip),
    ]
}

/// A stream is cut near the beginnings of so many of its first units.
const UNITS: usize = 24;

/// What fills up a transport packet with less than 184 bytes of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filling {
    Stuffing,
    /// Private data: a PES packet ends with stuffing only.
    Private,
    /// Stuffing, behind a packet of nothing but an adaptation field.
    Alone,
}

/// Where a stream is cut. Positions count from the beginning of a unit, or are thousandths of the
/// stream.
#[derive(Clone, Debug)]
struct Cuts {
    /// Ends of PES packets.
    near: Vec<(usize, i64)>,
    anywhere: Vec<usize>,
    /// Ends of transport packets.
    packets: Vec<(usize, i64)>,
    /// How many bytes of each PES header are in the first transport packet.
    head: usize,
    /// Whether PES packets say their length.
    is_bounded: bool,
    fillings: Vec<Filling>,
}

fn cuts() -> impl Strategy<Value = Cuts> {
    let near = || prop::collection::vec((1..UNITS, -6_i64..12), 0..24);
    let filling = prop_oneof![
        Just(Filling::Stuffing),
        Just(Filling::Private),
        Just(Filling::Alone),
    ];
    (
        near(),
        prop::collection::vec(0_usize..1_000, 0..24),
        near(),
        prop_oneof![Just(PACKET), 1_usize..24],
        any::<bool>(),
        prop::collection::vec(filling, 1..5),
    )
        .prop_map(
            |(near, anywhere, packets, head, is_bounded, fillings)| Cuts {
                near,
                anywhere,
                packets,
                head,
                is_bounded,
                fillings,
            },
        )
}

/// ISO/IEC 13818-1, 2.4.3.6: three, fifteen and fifteen bits, each followed by a one.
fn stamp(which: u8, stamp: u64) -> [u8; 5] {
    [
        which << 4 | (stamp >> 29) as u8 & 0x0e | 1,
        (stamp >> 22) as u8,
        (stamp >> 14) as u8 | 1,
        (stamp >> 7) as u8,
        (stamp << 1) as u8 | 1,
    ]
}

fn pes_header(stream_id: u8, times: Times, length: Option<usize>) -> Vec<u8> {
    let (flags, stamps) = match times {
        Times::None => (0, Vec::new()),
        Times::Presentation(pts) => (0x80, stamp(2, pts).to_vec()),
        Times::Both {
            presentation,
            decoding,
        } => (0xc0, [stamp(3, presentation), stamp(1, decoding)].concat()),
    };
    let length = length.map_or(0, |length| length + 3 + stamps.len());
    let length = u16::try_from(length).unwrap_or(0).to_be_bytes();
    let rest = [0x80, flags, stamps.len() as u8];
    [&[0, 0, 1, stream_id][..], &length, &rest, &stamps].concat()
}

/// Writes the transport packets of one PID.
struct Muxer {
    pid: u16,
    counter: u8,
    fillings: std::iter::Cycle<std::vec::IntoIter<Filling>>,
    out: Vec<u8>,
}

impl Muxer {
    fn packet(&mut self, begins: bool, payload: &[u8]) {
        let filling = match payload.len() {
            184 => None,
            _ => self.fillings.next(),
        };
        let head = |begins: bool, control: u8| {
            let high = u8::from(begins) << 6 | (self.pid >> 8) as u8;
            [0x47, high, self.pid as u8, control]
        };
        if filling == Some(Filling::Alone) {
            self.out
                .extend(head(false, 0x20 | self.counter.wrapping_sub(1) & 0x0f));
            self.out.extend([183, 0]);
            self.out.extend([0xff; 182]);
        }
        let field = filling.map_or(0, |_| 184 - payload.len());
        let control = if field > 0 { 0x30 } else { 0x10 };
        self.out.extend(head(begins, control | self.counter));
        self.counter = (self.counter + 1) % 16;
        if field > 0 {
            self.out.push((field - 1) as u8);
        }
        if field > 1 {
            let data = (filling == Some(Filling::Private)).then(|| field.checked_sub(3));
            match data.flatten() {
                Some(data) => {
                    self.out.extend([0x02, data as u8]);
                    self.out.extend(vec![0; data]);
                }
                None => {
                    self.out.push(0);
                    self.out.extend(vec![0xff; field - 2]);
                }
            }
        }
        self.out.extend(payload);
    }
}

/// The stream of these units behind the tables of `stream`, cut; and of each unit whether it is the
/// first one that begins in its PES packet, and its bytes.
///
/// The zero before `00 00 01` is the unit's, unless it ends a PES packet.
fn muxed(stream: &[u8], units: &[MediaSection], cuts: &Cuts) -> (Vec<u8>, Vec<(bool, Vec<u8>)>) {
    let (mut bytes, mut begins) = (Vec::new(), Vec::new());
    for section in units {
        begins.push(bytes.len());
        bytes.extend(unit(section).1);
    }
    let near = |&(unit, offset): &(usize, i64)| {
        let begin = begins[unit % begins.len()] as i64;
        (begin + offset).clamp(1, bytes.len() as i64) as usize
    };
    let thousandths = cuts.anywhere.iter().map(|part| part * bytes.len() / 1_000);
    let mut ends: BTreeSet<usize> = cuts.near.iter().map(near).chain(thousandths).collect();
    // From the beginning on, units do not end with their PES packets.
    ends.extend([begins[1] / 2, bytes.len()]);
    ends.remove(&0);
    // A PES packet has a length of 16 bits.
    ends.extend((1..=bytes.len() / 60_000).map(|part| part * 60_000));
    let packets: BTreeSet<usize> = cuts.packets.iter().map(near).collect();
    for begin in &mut begins {
        let own = &bytes[*begin..];
        *begin += usize::from(own.starts_with(&[0, 0, 0, 1]) && ends.contains(&(*begin + 1)));
    }

    let own = unit(&units[0]).0;
    // PAT and PMT, which fit a packet each.
    let is_table = |packet: &&[u8]| matches!((packet[1] & 0x1f, packet[2]), (0 | 0x10, 0));
    let tables = stream.chunks(PACKET).filter(is_table).take(2);
    let mut muxer = Muxer {
        pid: own.pid,
        counter: 0,
        fillings: cuts.fillings.clone().into_iter().cycle(),
        out: tables.flatten().copied().collect(),
    };
    let mut is_first = vec![false; units.len()];
    let mut from = 0;
    for to in ends {
        let first = begins.iter().position(|begin| (from..to).contains(begin));
        let times = first.map_or(Times::None, |first| unit(&units[first]).0.times);
        if let Some(first) = first {
            is_first[first] = true;
        }
        let length = cuts.is_bounded.then_some(to - from);
        let header = pes_header(own.stream_id, times, length);
        let inside = packets.range(from + 1..to);
        let mut parts: BTreeSet<usize> = inside.map(|at| header.len() + at - from).collect();
        let whole = [&header, &bytes[from..to]].concat();
        parts.extend([cuts.head.min(whole.len()), whole.len()]);
        let mut at = 0;
        for end in parts {
            while at < end {
                let next = end.min(at + 184);
                muxer.packet(at == 0, &whole[at..next]);
                at = next;
            }
        }
        from = to;
    }
    begins.push(bytes.len());
    let own = begins
        .windows(2)
        .map(|ends| bytes[ends[0]..ends[1]].to_vec());
    (muxer.out, is_first.into_iter().zip(own).collect())
}

/// The sections of the only stream that has packets.
fn sections(stream: &[u8]) -> Vec<MediaSection> {
    let (mut sections, notices) = read(stream);
    assert_eq!(notices, []);
    sections.retain(|section| section.stream > 0);
    sections
}

fn check(name: &str, stream: &[u8], number: u16, cuts: &Cuts) {
    let mut units = of_stream(stream, number);
    units.truncate(2 * UNITS);
    let (again, expected) = muxed(stream, &units, cuts);
    let found = sections(&again);
    let lengths = |sections: &[MediaSection]| -> Vec<usize> {
        sections
            .iter()
            .map(|section| unit(section).1.len())
            .collect()
    };
    assert_eq!(found.len(), units.len(), "{name}: {:?}", lengths(&found));
    for ((found, original), (is_first, bytes)) in found.iter().zip(&units).zip(&expected) {
        let what = format!("{name}, {}", original.number);
        let ((seen, own), (sent, _)): ((Unit, _), _) = (unit(found), unit(original));
        assert!(own == bytes, "{what}");
        assert_eq!(found.frame, original.frame, "{what}");
        assert_eq!(found.needs.is_some(), original.needs.is_some(), "{what}");
        assert_eq!(
            Entry::of(&found.payload),
            Entry::of(&original.payload),
            "{what}"
        );
        // The times of sound follow from its samples.
        let has_time = *is_first || sent.pid != VIDEO;
        let times = if has_time { sent.times } else { Times::None };
        assert_eq!(seen.times, times, "{what}");
    }
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn units_are_the_same_wherever_packets_end(which in 0_usize..4, cuts in cuts()) {
        let (name, stream) = streams()[which];
        check(name, stream, 1, &cuts);
        if name != "h265" {
            check(name, stream, 2, &cuts);
        }
    }
}

/// Each first part of a start code and its unit type, over the end of a PES packet and over that of
/// a transport packet.
#[test]
fn a_start_code_may_be_split_anywhere() {
    for (name, stream) in streams() {
        for offset in -2..9 {
            for is_bounded in [false, true] {
                let all = (1..UNITS).map(|unit| (unit, offset)).collect();
                let cuts = Cuts {
                    near: Vec::new(),
                    anywhere: Vec::new(),
                    packets: Vec::new(),
                    head: PACKET,
                    is_bounded,
                    fillings: vec![Filling::Stuffing],
                };
                let name = format!("{name}, {offset}, {is_bounded}");
                let near = Cuts {
                    near: Vec::clone(&all),
                    ..cuts.clone()
                };
                check(&name, stream, 1, &near);
                let packets = Cuts {
                    packets: all,
                    anywhere: (0..1_000).step_by(90).collect(),
                    ..cuts
                };
                check(&name, stream, 1, &packets);
            }
        }
    }
}

/// Eleven PES packets without stuffing inside, and one with it before the unit that begins there.
#[test]
fn a_time_stamp_belongs_to_what_begins_behind_stuffing() {
    let whole = Cuts {
        near: (2..13).map(|unit| (unit, 40)).collect(),
        anywhere: Vec::new(),
        packets: vec![(12, 0)],
        head: PACKET,
        is_bounded: false,
        fillings: vec![Filling::Stuffing],
    };
    for (name, stream) in streams() {
        check(name, stream, 1, &whole);
    }
}

/// The first eight pictures have a PES packet each, which says its length. Later ones have two.
/// Nothing shows that of the first of these; it shows how the others are.
#[test]
fn a_picture_may_have_two_pes_packets_behind_others_that_had_one() {
    let units: Vec<MediaSection> = of_stream(MPEG2, 1).into_iter().take(UNITS).collect();
    let mut begins = vec![0];
    for section in &units {
        begins.push(begins[begins.len() - 1] + unit(section).1.len());
    }
    let mut muxer = Muxer {
        pid: VIDEO,
        counter: 0,
        fillings: vec![Filling::Stuffing].into_iter().cycle(),
        out: MPEG2[PACKET..3 * PACKET].to_vec(),
    };
    for (at, section) in units.iter().enumerate() {
        let (own, bytes) = unit(section);
        let (first, second) = bytes.split_at(if at < 10 {
            bytes.len()
        } else {
            bytes.len() / 2
        });
        for (part, times) in [(first, own.times), (second, Times::None)] {
            let header = pes_header(own.stream_id, times, Some(part.len()));
            let whole = [&header, part].concat();
            for (at, payload) in whole.chunks(184).enumerate().filter(|_| !part.is_empty()) {
                muxer.packet(at == 0, payload);
            }
        }
    }
    let found = sections(&muxer.out);
    let lengths: Vec<usize> = found.iter().map(|section| unit(section).1.len()).collect();
    let mut expected: Vec<usize> = begins.windows(2).map(|ends| ends[1] - ends[0]).collect();
    let cut = expected[10] / 2;
    expected.splice(10..11, [cut, expected[10] - cut]);
    assert_eq!(lengths, expected);
}
