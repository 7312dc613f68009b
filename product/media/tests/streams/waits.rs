//! Live sources with a PID whose units take long to arrive, or never end: nothing waits for them.

use bytes::Bytes;
use comity_media::{FrameType, Header, PACKET, Times, Unit};
use comity_units::{Span, Time};
use proptest::prelude::*;

use crate::layouts::{restore_all, sections};
use crate::live::{LATENCY, MORE, Source};
use crate::remux::crc;
use crate::{CLIP, cases};

const MAP: u16 = 0x1000;
const VIDEO: u16 = 256;
const EXTRA: u16 = 0x200;
const NULL: u16 = 0x1fff;

fn pid(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[1] & 0x1f, packet[2]])
}

/// Lists one more stream of this type in the map.
pub(crate) fn with_stream(stream: &mut [u8], extra: u16, stream_type: u8) {
    for packet in stream
        .chunks_mut(PACKET)
        .filter(|packet| pid(packet) == MAP)
    {
        let end = 5 + 3 + usize::from(packet[7]) - 4;
        let [high, low] = (0xe000 | extra).to_be_bytes();
        packet[end..end + 5].copy_from_slice(&[stream_type, high, low, 0xf0, 0]);
        packet[7] += 5;
        let sum = crc(&packet[5..end + 5]);
        packet[end + 5..end + 9].copy_from_slice(&sum.to_be_bytes());
    }
}

/// A packet of 184 bytes of payload.
pub(crate) fn packet(pid: u16, counter: usize, begins: bool, payload: &[u8]) -> [u8; PACKET] {
    let mut packet = [0xff; PACKET];
    let [high, low] = pid.to_be_bytes();
    let begins = if begins { 0x40 } else { 0 };
    packet[..4].copy_from_slice(&[0x47, high | begins, low, 0x10 | (counter % 16) as u8]);
    packet[4..4 + payload.len()].copy_from_slice(payload);
    packet
}

/// Replaces null packets, at least so far apart, by those that this returns for their number.
pub(crate) fn replaced(
    source: &mut Source,
    apart: Span,
    with: impl Fn(usize) -> Option<[u8; PACKET]>,
) -> usize {
    let (mut next, mut number) = (Time::from_millis(1_000), 0);
    let packets = source.stream.chunks_mut(PACKET).zip(&source.arrivals);
    for (packet, &arrival) in packets {
        if pid(packet) == NULL && arrival >= next {
            if let Some(bytes) = with(number) {
                packet.copy_from_slice(&bytes);
            }
            number += 1;
            next = next.max(arrival) + apart;
        }
    }
    number
}

/// A PES packet of private data that states a length, and its first bytes.
fn pes(stream_id: u8, length: u16) -> Vec<u8> {
    let [high, low] = length.to_be_bytes();
    let mut start = vec![0, 0, 1, stream_id, high, low, 0x80, 0, 0];
    start.resize(184, 0x33);
    start
}

type Row = (
    &'static str,
    u8,
    u16,
    Span,
    fn(usize) -> Option<[u8; PACKET]>,
);

/// A section of 4,090 bytes in 23 packets, without a CRC.
fn long_section(number: usize) -> Option<[u8; PACKET]> {
    let is_first = number.is_multiple_of(23);
    let mut payload = [(number % 200) as u8; 184];
    if is_first {
        payload[..4].copy_from_slice(&[0, 0x50, 0x4f, 0xf7]);
    }
    if number % 23 == 22 {
        payload[10..].fill(0xff);
    }
    Some(packet(0x12, number, is_first, &payload))
}

const ROWS: [Row; 9] = [
    ("T2-MI", 0x06, EXTRA, Span::from_millis(9), |number| {
        let payload = [(number * 7 % 251) as u8; 184];
        Some(packet(EXTRA, number, number.is_multiple_of(3), &payload))
    }),
    (
        "sections of another type",
        0x90,
        EXTRA,
        Span::from_millis(30),
        |number| {
            let mut payload = [0xff; 184];
            payload[..9].copy_from_slice(&[0, 0x91, 0x30, 5, 1, 2, 3, 4, number as u8]);
            Some(packet(EXTRA, number, true, &payload))
        },
    ),
    ("padding", 0x06, EXTRA, Span::from_millis(50), |number| {
        Some(packet(EXTRA, number, true, &pes(0xbe, 178)))
    }),
    (
        "first packet lost",
        0x06,
        EXTRA,
        Span::from_millis(200),
        |number| {
            let is_first = number.is_multiple_of(4);
            let payload = if is_first {
                pes(0xbd, 730)
            } else {
                vec![0x33; 184]
            };
            (number != 8).then(|| packet(EXTRA, number, is_first, &payload))
        },
    ),
    (
        "second packet lost",
        0x06,
        EXTRA,
        Span::from_millis(3),
        |number| {
            let is_first = number.is_multiple_of(4);
            let payload = if is_first {
                pes(0xbd, 730)
            } else {
                vec![0x33; 184]
            };
            let is_lost = number == 9 || number > 40 && number < 800;
            (!is_lost).then(|| packet(EXTRA, number, is_first, &payload))
        },
    ),
    (
        "scrambled within",
        0x06,
        EXTRA,
        Span::from_millis(10),
        |number| {
            let is_first = number.is_multiple_of(50);
            let payload = if is_first {
                pes(0xbd, 9_194)
            } else {
                vec![0x33; 184]
            };
            let mut packet = packet(EXTRA, number, is_first, &payload);
            packet[3] |= if number > 20 { 0x80 } else { 0 };
            Some(packet)
        },
    ),
    (
        "sections at 150 kb/s",
        0x05,
        0x1ff0,
        Span::from_millis(9),
        long_section,
    ),
    (
        "sections at 20 kb/s",
        0x05,
        0x1ff0,
        Span::from_millis(70),
        long_section,
    ),
    (
        "network synchronisation",
        0x05,
        0x1ff0,
        Span::from_millis(500),
        |number| {
            let payload = [0x55; 184];
            Some(packet(0x15, number, true, &payload))
        },
    ),
];

/// Packets of other PIDs leave by their arrival, whatever the units of one PID do.
#[test]
fn no_pid_holds_up_the_others() {
    for (name, stream_type, extra, apart, with) in ROWS {
        let mut source = Source::multiplex();
        with_stream(&mut source.stream, extra, stream_type);
        source.is_damaged = name.ends_with("lost");
        assert!(replaced(&mut source, apart, with) > 10, "{name}");
        source.check_within(name, MORE);
    }
}

/// A multiplex spreads the packets of each PES packet of sound over its duration.
#[test]
fn sound_at_a_constant_rate_holds_up_nothing() {
    const SOUND: u16 = 257;
    let mut source = Source::multiplex();
    let is = |packet: &[u8], wanted: u16| pid(packet) == wanted;
    let packets: Vec<Vec<u8>> = source.stream.chunks(PACKET).map(<[u8]>::to_vec).collect();
    let sound = packets.iter().filter(|packet| is(packet, SOUND));
    let mut sound: std::collections::VecDeque<_> = sound.cloned().collect();
    let apart = packets.len() / sound.len();
    let null = packets.iter().find(|packet| is(packet, NULL)).unwrap();
    let mut due = 0;
    let mut spread = Vec::new();
    for (index, packet) in packets.iter().enumerate() {
        let is_free = is(packet, SOUND) || is(packet, NULL);
        due += usize::from(index % apart == 0);
        let next = if due > 0 && is_free {
            sound.pop_front()
        } else {
            None
        };
        due -= usize::from(next.is_some());
        let other = if is_free { null } else { packet };
        spread.extend(next.unwrap_or_else(|| other.clone()));
    }
    source.stream = spread;
    let (sections, _) = source.read();
    let frames = sections.iter().filter(|(_, section)| section.stream == 2);
    assert!(frames.count() > 400);
    // Frames are known at once, so that nothing is sent twice.
    let carried = sections
        .iter()
        .filter(|(_, section)| section.stream >= 0x3ffc);
    let carried = carried.filter(|(_, section)| section.stream != 0x3fff);
    let carried: usize = carried.map(|(_, section)| section.payload.len()).sum();
    assert!(carried < 10 * PACKET, "{carried}");
    assert_eq!(source.check_within("sound", MORE), []);
}

/// A picture that arrives slowly, or whose end only a later one shows.
#[test]
fn a_slow_picture_holds_up_the_others_for_a_limited_time() {
    // With a packet in each datagram, every 7 ms, 17 kB take 650 ms. A still picture takes 60 ms,
    // and the next one comes 2 s later.
    for (name, of, every) in [("17 kB", 93, 93), ("still pictures", 9, 285)] {
        let picture = |number: usize| {
            let (index, at) = (number / every, number % every);
            let stamp = 90_000 + (632 * every * index) as u32;
            let mut payload = vec![];
            if at == 0 {
                payload = vec![0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5, 0x21];
                payload.extend(&(stamp >> 14 | 1).to_be_bytes()[2..]);
                payload.extend(&(stamp << 1 | 1).to_be_bytes()[2..]);
                // A delimiter, and a slice of a key picture.
                payload.extend([0, 0, 0, 1, 9, 0x10, 0, 0, 1, 0x65, 0x88, 0x84]);
            }
            payload.resize(184, (index % 200) as u8 + 7);
            let sent = index * of + at;
            (at < of).then(|| packet(EXTRA, sent, at == 0, &payload))
        };
        let mut source = Source::multiplex_with(3);
        with_stream(&mut source.stream, EXTRA, 0x1b);
        replaced(&mut source, Span::from_millis(7), picture);
        let (sections, _) = source.read();
        let stream = { sections.iter() }.filter(|(_, section)| section.stream == 3);
        let pictures: Vec<_> = stream.map(|(_, section)| section).collect();
        assert!(pictures.len() >= 4, "{name}");
        assert!(pictures.iter().all(|of| of.frame == FrameType::Key));
        // What waits for 500 ms is carried, and no more.
        let carried = sections
            .iter()
            .filter(|(_, section)| section.stream == 0x3ffe);
        let carried: usize = carried.map(|(_, section)| section.payload.len()).sum();
        let sent: usize = pictures.iter().map(|section| section.payload.len()).sum();
        let share = carried as f64 / sent as f64;
        let expected = if of == every { 0.15..0.45 } else { 0.9..1.3 };
        assert!(expected.contains(&share), "{name}: {share}");
        // The network has three quarters of the latency for each layout behind that.
        let most = Span::from_millis(500 + 225 + 30).saturating_sub(LATENCY);
        source.check_within(name, most);
        let (delays, _) = source.delays();
        let left = source.arrivals.iter().zip(&delays);
        let left: Vec<Time> = left.map(|(came, delay)| *came + *delay).collect();
        let settled = left.windows(2).filter(|pair| pair[0] > Time::from_secs(7));
        let gaps = settled.map(|pair| pair[1].saturating_since(pair[0]));
        let longest = gaps.max().unwrap();
        assert!(longest <= Span::from_millis(50), "{name}: {longest}");
    }
}

/// Units whose packets were carried whole at the sender, because they took long to arrive.
#[test]
fn sections_that_no_layout_names_leave_the_others_as_they_are() {
    let unit = Header::Unit(Unit {
        pid: 0x200,
        stream_type: 0x06,
        stream_id: 0xbd,
        frame: FrameType::Opaque,
        times: Times::None,
        random_access: false,
        discontinuity: false,
        aligned: false,
    });
    let mut payload = Vec::new();
    unit.encode(&mut payload);
    payload.extend([7; 30]);
    let payload = Bytes::from(payload);
    let mut number = 0;
    let items = sections(CLIP).into_iter().flat_map(|section| {
        let named = (section.stream, section.number, Some(section.payload));
        let unnamed = (0..12).map(|_| {
            number += 1;
            (7, number, Some(payload.clone()))
        });
        unnamed.chain([named]).collect::<Vec<_>>()
    });
    let (out, statistics) = restore_all(items);
    assert!(number > 2 * 4_096);
    assert_eq!(statistics.remultiplexed_sections, 0);
    assert!(out == CLIP);
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Missing,
    /// So many packets, from this one on.
    Scrambled(usize),
    OnPid(u16),
    Begins,
    Marked,
    Filled(u8),
}

fn fault() -> impl Strategy<Value = Fault> {
    let pids = [0, 0x12, 0x15, VIDEO, 257, EXTRA, MAP];
    prop_oneof![
        Just(Fault::Missing),
        (1_usize..200).prop_map(Fault::Scrambled),
        prop::sample::select(pids.to_vec()).prop_map(Fault::OnPid),
        Just(Fault::Begins),
        Just(Fault::Marked),
        any::<u8>().prop_map(Fault::Filled),
    ]
}

proptest! {
    #![proptest_config(cases(32))]

    /// A damaged live source comes out as it was, and in time. A damaged picture may end only when
    /// later ones begin, or after a second.
    #[test]
    fn faults_of_a_live_source_delay_nothing(
        faults in prop::collection::vec((0_usize..9_000, fault()), 0..40),
        row in 0_usize..ROWS.len(),
    ) {
        let mut source = Source::multiplex();
        let (_, stream_type, extra, apart, with) = ROWS[row];
        with_stream(&mut source.stream, extra, stream_type);
        replaced(&mut source, apart, with);
        source.is_damaged = true;
        let mut most = Span::from_millis(100);
        for &(at, fault) in &faults {
            let count = source.arrivals.len();
            let at = at % count;
            let packet = &mut source.stream[at * PACKET..(at + 1) * PACKET];
            if pid(packet) == VIDEO || matches!(fault, Fault::OnPid(VIDEO)) {
                most = Span::from_millis(1_200);
            }
            match fault {
                Fault::Missing => {
                    source.stream.drain(at * PACKET..(at + 1) * PACKET);
                    source.arrivals.pop();
                }
                Fault::Scrambled(length) => {
                    let of = pid(packet);
                    let rest = source.stream.chunks_mut(PACKET).skip(at).take(length);
                    rest.filter(|packet| pid(packet) == of).for_each(|packet| packet[3] |= 0x80);
                }
                Fault::OnPid(pid) => packet[1..3].copy_from_slice(&pid.to_be_bytes()),
                Fault::Begins => packet[1] ^= 0x40,
                Fault::Marked => packet[1] |= 0x80,
                Fault::Filled(byte) => packet[8..].fill(byte),
            }
        }
        let (delays, _) = source.delays();
        let longest = delays.iter().max().copied().unwrap_or(Span::ZERO);
        prop_assert!(longest <= LATENCY + most, "{}", longest);
    }
}
