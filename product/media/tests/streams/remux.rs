//! New streams of sources with unusual clocks, tables and headers.

use std::collections::BTreeMap;

use bytes::Bytes;
use comity_media::{FrameType, Header, HeaderError, PACKET, Times, TsWriter, Unit, WriterConfig};

use crate::ts::{self, Packet};

const PAT: u16 = 0;
const SDT: u16 = 0x11;
const MAPS: [u16; 2] = [0x1000, 0x1001];
const NO_CLOCK: u16 = 0x1fff;

/// CRC-32/MPEG-2, bit by bit.
pub(crate) fn crc(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0xffff_ffff, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << 24, |crc, _| {
            crc << 1 ^ if crc >> 31 == 1 { 0x04c1_1db7 } else { 0 }
        })
    })
}

/// The payload of a section with a table.
pub(crate) fn table(pid: u16, id: u8, body: &[u8]) -> Vec<u8> {
    table_of(pid, id, [1, 0, 0, 0], body)
}

/// The same with this extension, version, number and last number.
fn table_of(pid: u16, id: u8, [extension, version, number, last]: [u8; 4], body: &[u8]) -> Vec<u8> {
    let mut section = vec![
        id,
        0xb0,
        u8::try_from(body.len() + 9).unwrap(),
        0,
        extension,
        0xc1 | version << 1,
        number,
        last,
    ];
    section.extend(body);
    section.extend(crc(&section).to_be_bytes());
    let mut payload = Vec::new();
    let repeated = true;
    Header::Table { pid, repeated }.encode(&mut payload);
    payload.extend(section);
    payload
}

pub(crate) fn pat(maps: &[u16]) -> Vec<u8> {
    pat_of(1, maps)
}

/// The PAT of this transport stream.
fn pat_of(stream: u8, maps: &[u16]) -> Vec<u8> {
    let programs = maps.iter().zip(1_u8..);
    let body: Vec<u8> = programs
        .flat_map(|(map, number)| [&[0, number][..], &(0xe000 | map).to_be_bytes()].concat())
        .collect();
    table_of(PAT, 0, [stream, 0, 0, 0], &body)
}

/// The map of a program of H.264, MPEG audio and private data, on PIDs from `first` on.
pub(crate) fn map(pid: u16, clock: u16, first: u16) -> Vec<u8> {
    let mut body = (0xe000 | clock).to_be_bytes().to_vec();
    body.extend([0xf0, 0]);
    for (kind, pid) in [0x1b, 0x03, 0x06].into_iter().zip(first..) {
        body.push(kind);
        body.extend((0xe000 | pid).to_be_bytes());
        body.extend([0xf0, 0]);
    }
    table(pid, 2, &body)
}

fn unit(pid: u16, stream_id: u8, stamp: u64, bytes: &[u8]) -> Vec<u8> {
    let is_picture = stream_id == 0xe0;
    let mut payload = Vec::new();
    Header::Unit(Unit {
        pid,
        stream_type: if is_picture { 0x1b } else { 0x06 },
        stream_id,
        frame: match is_picture {
            true => FrameType::Predicted { referenced: true },
            false => FrameType::Opaque,
        },
        times: Times::Presentation(stamp),
        random_access: false,
        discontinuity: false,
        aligned: true,
    })
    .encode(&mut payload);
    payload.extend(bytes);
    payload
}

fn write(payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = TsWriter::new(WriterConfig::default());
    let mut out = Vec::new();
    for payload in payloads {
        writer.write(payload, &mut out).unwrap();
    }
    writer.finish(&mut out);
    out
}

/// How often a table begins on each PID.
fn begins(packets: &[Packet]) -> BTreeMap<u16, usize> {
    let mut count = BTreeMap::new();
    for packet in packets.iter().filter(|packet| packet.begins) {
        *count.entry(packet.pid).or_default() += 1;
    }
    count
}

#[test]
fn a_program_without_clock_references_gets_none_and_its_tables_repeat() {
    let mut payloads = vec![pat(&MAPS[..1]), map(MAPS[0], NO_CLOCK, 0x100)];
    for frame in 0..50 {
        payloads.push(unit(0x100, 0xe0, 3_600 * frame, &[7; 1_000]));
        payloads.push(unit(0x101, 0xc0, 3_600 * frame, &[8; 300]));
    }
    let packets = ts::packets(&write(&payloads));
    assert!(packets.iter().all(|packet| packet.clock.is_none()));
    let count = begins(&packets);
    assert_eq!((count[&0x100], count[&0x101]), (50, 50));
    // Two seconds, every 80 ms: as often as in a program with references.
    assert!((20..=30).contains(&count[&PAT]), "{count:?}");
    assert_eq!(count[&PAT], count[&MAPS[0]]);
}

#[test]
fn programs_that_share_a_clock_have_one() {
    let mut payloads = vec![pat(&MAPS)];
    payloads.push(map(MAPS[0], 0x100, 0x100));
    payloads.push(map(MAPS[1], 0x100, 0x200));
    for frame in 0..100 {
        // The second one is 600 ms behind the first in its stamps.
        payloads.push(unit(0x100, 0xe0, 3_600 * (frame + 15), &[7; 1_000]));
        payloads.push(unit(0x200, 0xe0, 3_600 * frame, &[8; 1_000]));
    }
    let packets = ts::packets(&write(&payloads));
    let clocks: Vec<u64> = { packets.iter() }
        .filter_map(|packet| {
            assert!(packet.clock.is_none() || packet.pid == 0x100);
            packet.clock
        })
        .collect();
    assert!(clocks.len() >= 40);
    for pair in clocks.windows(2) {
        let step = (pair[1] + (1_u64 << 33) * 300 - pair[0]) % ((1_u64 << 33) * 300);
        assert!(step <= 2_700_000, "{} to {}", pair[0], pair[1]);
    }
    assert!(packets.iter().all(|packet| !packet.discontinuity));
    let count = begins(&packets);
    for pid in MAPS {
        assert!((40..=60).contains(&count[&pid]), "{count:?}");
    }
}

/// Scrambled packets of the stream 0x100; every tenth has a clock reference 40 ms on.
fn scrambled(first: u64, has_clock: bool) -> Vec<u8> {
    let mut payload = Vec::new();
    Header::Packets.encode(&mut payload);
    for number in first..first + 10 {
        let mut packet = [0x5a; PACKET];
        packet[..4].copy_from_slice(&[0x47, 1, 0, 0x90 | (number % 16) as u8]);
        if has_clock && number % 10 == 0 {
            packet[3] |= 0x20;
            packet[4..6].copy_from_slice(&[7, 0x10]);
            let clock = (number / 10 * 3_600) << 15 | 0x7e00;
            packet[6..12].copy_from_slice(&clock.to_be_bytes()[2..]);
        }
        payload.extend(packet);
    }
    payload
}

#[test]
fn tables_of_a_program_that_is_scrambled_repeat() {
    for has_clock in [true, false] {
        let tables = [
            table(SDT, 0x42, &[0, 1, 0xff]),
            pat(&MAPS[..1]),
            map(MAPS[0], if has_clock { 0x100 } else { NO_CLOCK }, 0x100),
        ];
        let (mut payloads, mut sent) = (Vec::new(), Vec::new());
        for run in 0..100 {
            // The sender repeats its tables every 400 ms.
            if run % 10 == 0 {
                payloads.extend(tables.clone());
            }
            let packets = scrambled(10 * run, has_clock);
            sent.extend(packets[1..].to_vec());
            payloads.push(packets);
        }
        let out = write(&payloads);
        let is_scrambled = |packet: &&[u8]| packet[3] & 0xc0 != 0;
        let (copied, own): (Vec<&[u8]>, Vec<&[u8]>) = out.chunks(PACKET).partition(is_scrambled);
        assert_eq!(copied.concat(), sent);
        let count = begins(&ts::packets(&own.concat()));
        let expected = match has_clock {
            // Every 80 ms, and twice a second.
            true => [(PAT, 45..=55), (MAPS[0], 45..=55), (SDT, 7..=12)],
            // As they come, but for the second time, which may be by chance.
            false => [(PAT, 8..=10), (MAPS[0], 8..=10), (SDT, 8..=10)],
        };
        for (pid, range) in expected {
            assert!(range.contains(&count[&pid]), "{has_clock}: {count:?}");
        }
    }
}

#[test]
fn headers_of_teletext_fill_whole_packets() {
    // EBU teletext, a line of EN 301 775, subtitles, an identifier without lines, a length that
    // does not fill packets, and another stream.
    for (stream_id, identifier, length, expected) in [
        (0xbd, 0x10, 139, 0x24),
        (0xbd, 0x1f, 184 * 3 - 45, 0x24),
        (0xbd, 0x99, 139, 0x24),
        (0xbd, 0x20, 139, 5),
        (0xbd, 0x10, 140, 5),
        (0xc0, 0x10, 139, 5),
    ] {
        let mut bytes = vec![0x2c; length];
        bytes[0] = identifier;
        let payloads = [
            pat(&MAPS[..1]),
            map(MAPS[0], 0x100, 0x100),
            unit(0x102, stream_id, 90_000, &bytes),
        ];
        let out = write(&payloads);
        let mut payload = Vec::new();
        for packet in out
            .chunks(PACKET)
            .filter(|packet| packet[1..3] == [0x41, 2] || packet[1..3] == [1, 2])
        {
            let from = if packet[3] & 0x20 == 0 {
                4
            } else {
                5 + usize::from(packet[4])
            };
            payload.extend(&packet[from..]);
        }
        assert_eq!(payload[..4], [0, 0, 1, stream_id]);
        let rest = usize::from(u16::from_be_bytes([payload[4], payload[5]]));
        assert_eq!(payload.len(), 6 + rest);
        assert_eq!(payload[6..9], [0x84, 0x80, expected], "{identifier:#x}");
        // The stamp of one second, stuffing, and what it was.
        assert_eq!(payload[9..14], [0x21, 0, 5, 0xbf, 0x21]);
        let start = 9 + usize::from(expected);
        assert!(payload[14..start].iter().all(|byte| *byte == 0xff));
        assert_eq!(payload[start..], bytes);
        assert_eq!(payload.len() % 184 == 0, expected == 0x24, "{length}");
    }
}

/// The extension and the number of each table that begins in a packet of this PID.
fn tables_on(stream: &[u8], pid: u16) -> Vec<(u8, u8)> {
    let is_it = |packet: &&[u8]| {
        packet[1] & 0x40 != 0 && u16::from_be_bytes([packet[1] & 0x1f, packet[2]]) == pid
    };
    let packets = stream.chunks(PACKET).filter(is_it);
    packets.map(|packet| (packet[9], packet[11])).collect()
}

/// A backup encoder with its own transport_stream_id, maps and services takes over.
#[test]
fn after_a_failover_only_the_new_tables_are_written() {
    let sdt = |fields, name: u8| table_of(SDT, 0x42, fields, &[0xff, name, 0xff]);
    let mut payloads = vec![
        pat_of(1, &MAPS[..1]),
        map(MAPS[0], 0x100, 0x100),
        sdt([1, 0, 0, 1], 1),
        sdt([1, 0, 1, 1], 2),
    ];
    for frame in 0..100 {
        if frame == 50 {
            payloads.push(pat_of(2, &MAPS[1..]));
            payloads.push(map(MAPS[1], 0x100, 0x100));
            payloads.push(sdt([2, 0, 0, 0], 3));
        }
        payloads.push(unit(0x100, 0xe0, 3_600 * frame, &[7; 1_000]));
    }
    let out = write(&payloads);
    let pats = tables_on(&out, PAT);
    let first = pats.iter().position(|&(stream, _)| stream == 2).unwrap();
    assert!(pats[..first].iter().all(|&(stream, _)| stream == 1) && first >= 10);
    assert!(pats[first..].iter().all(|&(stream, _)| stream == 2) && pats.len() >= first + 10);
    // The table of services had two sections, and has one.
    let services = tables_on(&out, SDT);
    let first = services
        .iter()
        .position(|&(stream, _)| stream == 2)
        .unwrap();
    assert!(services[..first].contains(&(1, 0)) && services[..first].contains(&(1, 1)));
    assert!(services[first..].iter().all(|&table| table == (2, 0)));
    assert!(services.len() >= first + 3, "{services:?}");
    // The map of the program that is gone is not written any more.
    let at = |pid: u16| {
        let is_it = move |packet: &&Packet| packet.pid == pid;
        let packets = ts::packets(&out);
        let last = packets.iter().rposition(|packet| is_it(&packet));
        (last.unwrap(), packets.len())
    };
    let ((old, _), (new, all)) = (at(MAPS[0]), at(MAPS[1]));
    assert!(
        old < all * 6 / 10 && new > all * 9 / 10,
        "{old} {new} {all}"
    );
}

#[test]
fn maps_of_two_programs_on_a_pid_and_an_announced_table_replace_nothing() {
    let body = |first: u16| {
        let mut body = (0xe000 | first).to_be_bytes().to_vec();
        body.extend([0xf0, 0, 0x1b]);
        body.extend((0xe000 | first).to_be_bytes());
        body.extend([0xf0, 0]);
        body
    };
    let map = |program: u8, first| table_of(MAPS[0], 2, [program, 0, 0, 0], &body(first));
    let mut next = pat_of(3, &MAPS[1..]);
    // Valid later, with its checksum.
    let header = next.len() - 4 - 12;
    next[header + 5] &= 0xfe;
    let end = next.len() - 4;
    let sum = crc(&next[header..end]);
    next[end..].copy_from_slice(&sum.to_be_bytes());
    let mut payloads = vec![pat(&[MAPS[0], MAPS[0]]), map(1, 0x100), map(2, 0x200), next];
    for frame in 0..50 {
        payloads.push(unit(0x100, 0xe0, 3_600 * frame, &[7; 1_000]));
        payloads.push(unit(0x200, 0xe0, 3_600 * frame, &[8; 1_000]));
    }
    let out = write(&payloads);
    let maps = tables_on(&out, MAPS[0]);
    for program in [1, 2] {
        let count = maps.iter().filter(|&&(own, _)| own == program).count();
        assert!(count >= 10, "{maps:?}");
    }
    let pats = tables_on(&out, PAT);
    let announced = pats.iter().filter(|&&(stream, _)| stream == 3).count();
    assert!(announced == 1 && pats.len() >= 10, "{pats:?}");
}

/// A sender is restarted with `--opaque`, and then without it.
#[test]
fn another_connection_may_bring_another_kind_of_source() {
    let raw = |bytes: &[u8]| {
        let mut payload = Vec::new();
        Header::Raw.encode(&mut payload);
        payload.extend(bytes);
        Bytes::from(payload)
    };
    let tables = [pat(&MAPS[..1]), map(MAPS[0], 0x100, 0x100)].map(Bytes::from);
    let picture = Bytes::from(unit(0x100, 0xe0, 3_600, &[7; 1_000]));
    for is_first_lost in [false, true] {
        let mut writer = TsWriter::new(WriterConfig::default());
        let mut out = Vec::new();
        for number in 0..3 {
            let bytes = raw(b"bytes");
            assert_eq!(writer.write_section(0, number, &bytes, &mut out), Ok(()));
        }
        // In the same connection it is refused.
        let mixed = Err(HeaderError::Mixed);
        assert_eq!(writer.write_section(0, 3, &tables[0], &mut out), mixed);
        assert_eq!(writer.write_section(1, 0, &picture, &mut out), mixed);
        assert_eq!(out, b"bytesbytesbytes");
        let mut packets = Vec::new();
        let mut number = 0;
        if is_first_lost {
            writer.miss(0, 0, 1, &mut packets);
            number = 1;
        }
        for table in &tables {
            assert_eq!(writer.write_section(0, number, table, &mut packets), Ok(()));
            number += 1;
        }
        assert_eq!(writer.write_section(1, 0, &picture, &mut packets), Ok(()));
        assert_eq!(
            writer.write_section(0, number, &raw(b"x"), &mut packets),
            mixed
        );
        let before = writer.statistics().packets;
        let bytes = raw(b"bytes");
        assert_eq!(writer.write_section(0, 0, &bytes, &mut packets), Ok(()));
        writer.finish(&mut packets);
        assert!(packets.ends_with(b"bytes"));
        packets.truncate(packets.len() - 5);
        let units = ts::packets(&packets);
        assert!(units.iter().any(|packet| packet.pid == 0x100));
        let statistics = writer.statistics();
        assert_eq!(
            (statistics.units, statistics.packets),
            (1, units.len() as u64)
        );
        assert!(before <= statistics.packets);
    }
}
