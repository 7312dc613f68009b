//! A plain parser of the transport stream's syntax (ISO/IEC 13818-1, 2.4.3), independent of the
//! tested code.

use std::collections::BTreeMap;

/// The contents of a packet.
pub(crate) struct Packet {
    pub(crate) pid: u16,
    pub(crate) begins: bool,
    pub(crate) counter: u8,
    pub(crate) has_payload: bool,
    pub(crate) discontinuity: bool,
    pub(crate) random_access: bool,
    /// In ticks of 27 MHz.
    pub(crate) clock: Option<u64>,
    /// The stamp of a PES packet that begins here, in ticks of 90 kHz.
    pub(crate) presentation: Option<u64>,
}

pub(crate) fn packets(stream: &[u8]) -> Vec<Packet> {
    assert_eq!(stream.len() % 188, 0, "whole packets");
    stream
        .chunks(188)
        .map(|bytes| {
            assert_eq!(bytes[0], 0x47);
            assert_eq!(bytes[1] & 0x80, 0, "no error is signalled");
            assert_eq!(bytes[3] & 0xc0, 0, "nothing is scrambled");
            let field_length = usize::from(bytes[4]);
            let has_payload = bytes[3] & 0x10 != 0;
            let field = if bytes[3] & 0x20 != 0 && field_length > 0 {
                assert!(field_length <= if has_payload { 182 } else { 183 });
                &bytes[5..5 + field_length]
            } else {
                &[0][..]
            };
            let clock = (field[0] & 0x10 != 0).then(|| {
                let bits = field[1..7]
                    .iter()
                    .fold(0_u64, |bits, &byte| bits << 8 | u64::from(byte));
                (bits >> 15) * 300 + (bits & 0x1ff)
            });
            let payload = match bytes[3] & 0x20 {
                0 => &bytes[4..],
                _ => &bytes[5 + field_length..],
            };
            // The optional header of a PES packet, 2.4.3.6, and its PTS_DTS_flags.
            let is_unit = bytes[1] & 0x40 != 0 && payload.starts_with(&[0, 0, 1]);
            let has_header = is_unit && has_optional_header(payload[3]);
            let presentation = (has_header && payload[7] & 0x80 != 0).then(|| {
                let bits = |at: usize, mask: u8| u64::from(payload[at] & mask) >> 1;
                let (high, middle, low) = (bits(9, 0x0e), bits(11, 0xfe), bits(13, 0xfe));
                high << 30
                    | u64::from(payload[10]) << 22
                    | middle << 15
                    | u64::from(payload[12]) << 7
                    | low
            });
            Packet {
                pid: u16::from_be_bytes([bytes[1] & 0x1f, bytes[2]]),
                begins: bytes[1] & 0x40 != 0,
                counter: bytes[3] & 0x0f,
                has_payload,
                discontinuity: field[0] & 0x80 != 0,
                random_access: field[0] & 0x40 != 0,
                clock,
                presentation,
            }
        })
        .collect()
}

/// Stream identifiers whose PES packets have no optional header, 2.4.3.7 and table 2-22.
pub(crate) const WITHOUT_OPTIONAL_HEADER: [u8; 8] = [
    0xbc, // program_stream_map
    0xbe, // padding_stream
    0xbf, // private_stream_2
    0xf0, // ECM_stream
    0xf1, // EMM_stream
    0xf2, // DSMCC_stream
    0xf8, // ITU-T Rec. H.222.1 type E
    0xff, // program_stream_directory
];

/// Whether flags and time stamps follow the length of a PES packet.
pub(crate) fn has_optional_header(stream_id: u8) -> bool {
    !WITHOUT_OPTIONAL_HEADER.contains(&stream_id)
}

/// The distance of each time stamp from the last clock reference before it, in ticks of 90 kHz; and
/// the number of units without one.
pub(crate) fn leads(stream: &[u8]) -> (Vec<i64>, usize) {
    let (mut leads, mut without, mut clock) = (Vec::new(), 0, None);
    for packet in packets(stream) {
        clock = packet.clock.or(clock);
        let is_unit = packet.begins && packet.pid >= 0x100 && packet.pid != 0x1000;
        match (packet.presentation, clock) {
            (Some(stamp), Some(clock)) => leads.push(stamp as i64 - (clock / 300) as i64),
            _ => without += usize::from(is_unit),
        }
    }
    (leads, without)
}

/// The arrival of each packet by the clock reference at or after it, in ticks of 27 MHz, and the
/// stretch between clock jumps that contains it.
fn arrivals(packets: &[Packet]) -> Vec<(usize, u64)> {
    let (mut arrivals, mut stretch, mut last) = (Vec::new(), 0, 0);
    for (index, packet) in packets.iter().enumerate() {
        if let Some(clock) = packet.clock {
            stretch += usize::from(packet.discontinuity);
            arrivals.resize(index + 1, (stretch, clock));
            last = clock;
        }
    }
    arrivals.resize(packets.len(), (stretch, last));
    arrivals
}

/// Checks the rules of the standard: counters, clock references at most 100 ms apart and never
/// backwards, tables as often and before each entry point. Returns the number of clock jumps.
pub(crate) fn check(stream: &[u8], map_pid: u16, clock_pid: u16) -> usize {
    let packets = packets(stream);
    let arrivals = arrivals(&packets);
    let mut counters: BTreeMap<u16, u8> = BTreeMap::new();
    let mut last_clock = None;
    let mut last_tables = [None::<usize>; 2];
    let mut units_since_tables = usize::MAX;
    for (index, packet) in packets.iter().enumerate() {
        if packet.has_payload {
            if let Some(last) = counters.insert(packet.pid, packet.counter) {
                assert_eq!(
                    packet.counter,
                    (last + 1) % 16,
                    "PID {:#x}, packet {index}",
                    packet.pid
                );
            }
        } else {
            assert_eq!(
                counters.get(&packet.pid).copied().unwrap_or(15),
                packet.counter
            );
        }
        if let Some(clock) = packet.clock {
            assert_eq!(packet.pid, clock_pid);
            if let Some(last) = last_clock.filter(|_| !packet.discontinuity) {
                assert!(clock >= last, "the clock goes back at packet {index}");
                assert!(
                    clock - last <= 2_700_000,
                    "{} ms without clock",
                    (clock - last) / 27_000
                );
            }
            last_clock = Some(clock);
        }
        for (table, pid) in [0, map_pid].into_iter().enumerate() {
            if packet.pid == pid && packet.begins {
                let last = last_tables[table].replace(index).map(|last| arrivals[last]);
                if let Some((_, last)) = last.filter(|last| last.0 == arrivals[index].0) {
                    let gap = arrivals[index].1.saturating_sub(last) / 27_000;
                    assert!(
                        gap <= 100,
                        "{gap} ms without table {pid:#x}, packet {index}"
                    );
                }
                units_since_tables = 0;
            }
        }
        if packet.pid == clock_pid && packet.begins {
            units_since_tables = units_since_tables.saturating_add(1);
            if packet.random_access {
                assert_eq!(
                    units_since_tables, 1,
                    "tables stand before the entry point at {index}"
                );
            }
        }
    }
    assert!(last_tables.iter().all(Option::is_some));
    packets
        .iter()
        .filter(|packet| packet.discontinuity && packet.clock.is_some())
        .count()
}
