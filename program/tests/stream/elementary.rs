//! A simple reader of transport streams: the oracle for media that `comity` carried.

use std::collections::{BTreeMap, BTreeSet};

/// The elementary streams of a transport stream by PID, by ISO/IEC 13818-1 section 2.4: the PES
/// packets of payload units without their headers, and for sound the frames.
pub(crate) fn elementary_streams(bytes: &[u8]) -> BTreeMap<u16, Vec<Vec<u8>>> {
    let mut streams: BTreeMap<u16, Vec<Vec<u8>>> = BTreeMap::new();
    let mut sound = BTreeSet::new();
    let mut counters = BTreeMap::new();
    assert_eq!(bytes.len() % 188, 0, "whole packets");
    for packet in bytes.chunks(188) {
        assert_eq!(packet[0], 0x47);
        let pid = u16::from_be_bytes([packet[1] & 0x1f, packet[2]]);
        let (has_field, has_payload) = (packet[3] & 0x20 != 0, packet[3] & 0x10 != 0);
        let counter = packet[3] & 0x0f;
        if !has_payload {
            // A discontinuity announces that the counter continues behind this one.
            if packet[4] > 0 && packet[5] & 0x80 != 0 {
                counters.insert(pid, counter);
            }
            continue;
        }
        if let Some(before) = counters.insert(pid, counter) {
            assert_eq!(counter, (before + 1) & 0x0f, "a hole in PID {pid}");
        }
        let start = if has_field {
            5 + usize::from(packet[4])
        } else {
            4
        };
        let payload = &packet[start..];
        let begins = packet[1] & 0x40 != 0;
        if begins && payload.starts_with(&[0, 0, 1]) {
            let header = 9 + usize::from(payload[8]);
            // The unit keeps the header with its time stamps, without its length field.
            let mut unit = payload[9..header].to_vec();
            unit.extend(&payload[header..]);
            if payload[3] & 0xe0 == 0xc0 {
                sound.insert(pid);
                let has_time = payload[7] & 0x80 != 0;
                let stamp = if has_time { &payload[9..14] } else { &[0; 5] };
                unit = [stamp, &payload[header..]].concat();
            }
            streams.entry(pid).or_default().push(unit);
        } else if let Some(units) = streams.get_mut(&pid) {
            units.last_mut().unwrap().extend(payload);
        }
    }
    for pid in sound {
        let units = streams.get_mut(&pid).unwrap();
        *units = units.iter().flat_map(|packet| frames(packet)).collect();
    }
    streams
}

/// The AAC frames at 48 kHz in a PES packet, which begins with its time stamp. Each returned frame
/// follows its own time stamp. The last frame may be cut.
fn frames(packet: &[u8]) -> Vec<Vec<u8>> {
    let (stamp, mut rest) = packet.split_at(5);
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|at: usize| u64::from(stamp[at]));
    let mut time = (a >> 1 & 7) << 30 | b << 22 | (c >> 1) << 15 | d << 7 | e >> 1;
    let mut found = Vec::new();
    while rest.len() >= 6 {
        assert_eq!(
            (rest[0], rest[1] & 0xf6, rest[2] >> 2 & 15),
            (0xff, 0xf0, 3)
        );
        let length =
            usize::from(rest[3] & 3) << 11 | usize::from(rest[4]) << 3 | usize::from(rest[5] >> 5);
        let (frame, behind) = rest.split_at(length.min(rest.len()));
        found.push([&time.to_be_bytes()[..], frame].concat());
        (time, rest) = (time + 1_920, behind);
    }
    if !rest.is_empty() {
        found.push(rest.to_vec());
    }
    found
}
