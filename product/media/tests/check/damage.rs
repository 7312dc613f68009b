//! Streams of the multiplexer, damaged by hand: each fault is found, as often as it was made, and
//! no other.

use comity_media::check::{Checker, Indicator, Jumped, Report, Timing};
use comity_units::Time;

use super::multiplex::{
    AUDIO, MAP, Multiplex, PACKETS, Packet, RATE, SECONDS, VIDEO, What, crc, section,
};
use super::{check, check_live, found, is_near};

/// The time of seven packets, in nanoseconds.
const DATAGRAM: u64 = 7 * 188 * 8 * 1_000_000_000 / RATE;

fn clean() -> Vec<u8> {
    Multiplex::default().bytes()
}

fn pid(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[1] & 0x1f, packet[2]])
}

/// The places of the packets of a PID, without those that begin a table or have a clock reference.
fn plain(bytes: &[u8], wanted: u16) -> Vec<usize> {
    let is_plain = |packet: &[u8]| pid(packet) == wanted && packet[1] & 0x40 == 0;
    let offsets = (0..bytes.len()).step_by(188);
    offsets
        .filter(|&at| is_plain(&bytes[at..]) && bytes[at + 3] & 0x20 == 0)
        .collect()
}

/// Damages the `count` packets of a PID that lie evenly among all of its plain ones.
fn damaged(wanted: u16, count: usize, damage: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut bytes = clean();
    let offsets = plain(&bytes, wanted);
    for number in 0..count {
        let at = offsets[(number + 1) * offsets.len() / (count + 2)];
        damage(&mut bytes[at..at + 188]);
    }
    bytes
}

/// The same, without these packets.
fn without(wanted: u16, count: usize) -> Vec<u8> {
    let bytes = damaged(wanted, count, |packet| packet[0] = 0);
    let packets = bytes.chunks(188).filter(|packet| packet[0] == 0x47);
    packets.collect::<Vec<_>>().concat()
}

#[test]
fn a_right_stream_has_no_error_and_the_intervals_that_it_was_made_with() {
    let bytes = clean();
    let report = check(&bytes);
    assert_eq!(found(&report.errors), []);
    assert_eq!((report.packets, report.skipped_bytes), (PACKETS, 0));
    assert_eq!(report.packet_bytes, Some(188));
    let rate = report.rate.unwrap().as_bps();
    assert!(rate.abs_diff(RATE) < 20, "{rate}");
    assert!(is_near(
        report.duration.unwrap(),
        SECONDS * 1_000_000,
        1_600
    ));
    assert_eq!(report.is_constant_rate, Some(true));
    let nulls = bytes.chunks(188).filter(|packet| pid(packet) == 0x1fff);
    assert_eq!(report.null_packets, nulls.count() as u64);
    // What is due waits for its turn: a packet takes 752 us.
    let [program] = &report.programs[..] else {
        panic!("{:?}", report.programs);
    };
    assert_eq!((program.number, program.map_pid), (1, MAP));
    assert_eq!(program.clock_pid, Some(VIDEO));
    assert_eq!(program.pids, [VIDEO, AUDIO]);
    let [clock] = &report.clocks[..] else {
        panic!("{:?}", report.clocks);
    };
    assert_eq!((clock.pid, &clock.programs[..]), (VIDEO, &[1][..]));
    let streams: Vec<_> = report
        .pids
        .iter()
        .map(|pid| (pid.pid, pid.kind.name))
        .collect();
    let expected = [
        (0, "PAT"),
        (0x11, "SDT, BAT"),
        (VIDEO, "H.264 video"),
        (AUDIO, "AAC audio"),
        (MAP, "PMT"),
        (0x1fff, "null packets"),
    ];
    assert_eq!(streams, expected);
    for (intervals, millis) in [
        (report.pat, 100),
        (program.map, 200),
        (clock.intervals, 20),
        (report.pids[2].stamps, 40),
        (report.pids[3].stamps, 24),
    ] {
        assert_eq!(intervals.count + 1, (SECONDS * 1_000).div_ceil(millis));
        assert!(
            is_near(intervals.mean(), millis * 1_000, 30),
            "{intervals:?}"
        );
        assert!(
            is_near(intervals.min, millis * 1_000, 5_000),
            "{intervals:?}"
        );
        assert!(
            is_near(intervals.max, millis * 1_000, 5_000),
            "{intervals:?}"
        );
        assert!(intervals.min < intervals.mean() && intervals.mean() < intervals.max);
    }
    let accuracy = clock.accuracy.as_ref().unwrap();
    assert_eq!(accuracy.count, clock.intervals.count + 1);
    // A tick has 37 ns.
    assert!(
        accuracy.min_ns >= -37 && accuracy.max_ns <= 37,
        "{accuracy:?}"
    );
    assert!(accuracy.min_ns < 0 && accuracy.max_ns > 0, "{accuracy:?}");
    let sum: u64 = report.pids.iter().map(|pid| pid.packets).sum();
    assert_eq!(sum, PACKETS);
    let rates: u64 = { report.pids.iter() }
        .map(|pid| pid.rate.unwrap().as_bps())
        .sum();
    assert!(rates.abs_diff(RATE) < 100, "{rates}");
    assert_eq!((report.jump_count, clock.jitter.as_ref()), (0, None));
}

#[test]
fn other_distances_of_packets_change_nothing_else() {
    let bytes = clean();
    let expected = check(&bytes);
    for (stride, before, behind) in [(192, 4, 0), (204, 0, 16)] {
        let around = |packet: &[u8]| [&vec![7; before][..], packet, &vec![9; behind]].concat();
        let wide: Vec<u8> = bytes.chunks(188).flat_map(around).collect();
        let report = check(&wide);
        assert_eq!(report.packet_bytes, Some(stride));
        let packet_bytes = expected.packet_bytes;
        assert_eq!(
            Report {
                packet_bytes,
                ..report
            },
            expected
        );
    }
}

#[test]
fn missing_packets_are_errors_of_their_pid() {
    for count in [1, 23] {
        let report = check(&without(VIDEO, count));
        let expected = count as u64;
        let errors = found(&report.errors);
        assert_eq!(errors, [(Indicator::ContinuityCountError, expected)]);
        let pid = report.pids.iter().find(|pid| pid.pid == VIDEO).unwrap();
        assert_eq!(
            (pid.continuity_errors, pid.missing_packets),
            (expected, expected)
        );
        assert_eq!(report.packets, PACKETS - expected);
    }
    // Null packets have no counter: that they are missing shows in the clock alone, by 752 us each.
    let report = check(&without(0x1fff, 50));
    let errors = found(&report.errors);
    let [(Indicator::PcrAccuracyError, inaccurate)] = errors[..] else {
        panic!("{errors:?}");
    };
    assert!(inaccurate > 100, "{inaccurate}");
}

#[test]
fn packets_may_be_doubled_and_not_trebled() {
    for copies in [1, 2, 3] {
        let bytes = damaged(VIDEO, 9, |packet| packet[0] = 0);
        let mut copied = Vec::new();
        for packet in bytes.chunks(188) {
            let repaired = [&[0x47], &packet[1..]].concat();
            copied.extend(repaired.repeat(if packet[0] == 0 { copies } else { 1 }));
        }
        let errors = check(&copied).errors;
        let expected = if copies < 3 { 0 } else { 9 };
        assert_eq!(errors.of(Indicator::ContinuityCountError).count, expected);
    }
}

#[test]
fn marked_packets_are_transport_errors_and_nothing_else() {
    for wanted in [VIDEO, 0x1fff] {
        let report = check(&damaged(wanted, 17, |packet| packet[1] |= 0x80));
        assert_eq!(found(&report.errors), [(Indicator::TransportError, 17)]);
        let pid = report.pids.iter().find(|pid| pid.pid == wanted).unwrap();
        assert_eq!(pid.transport_errors, 17);
    }
}

#[test]
fn scrambled_packets_are_counted_and_need_a_cat() {
    let mut bytes = damaged(VIDEO, 100, |packet| packet[3] |= 0x80);
    let report = check(&bytes);
    assert_eq!(found(&report.errors), [(Indicator::CatError, 1)]);
    assert_eq!(report.scrambled_packets, 100);
    let mut packet = Packet {
        pid: 1,
        begins: true,
        ..Packet::default()
    };
    packet.payload = [&[0][..], &section(1, 0xffff, &[])].concat();
    packet.write(&mut Default::default(), &mut bytes);
    assert_eq!(found(&check(&bytes).errors), []);
    // Another table in its place.
    let mut packet = Packet {
        pid: 1,
        begins: true,
        ..Packet::default()
    };
    packet.payload = [&[0][..], &section(2, 7, &[0, 0, 0xf0, 0])].concat();
    packet.write(&mut [(1, 1)].into(), &mut bytes);
    assert_eq!(found(&check(&bytes).errors), [(Indicator::CatError, 1)]);
}

#[test]
fn a_table_with_a_flipped_bit_has_a_wrong_crc() {
    for (wanted, name) in [(0, "PAT"), (MAP, "PMT"), (0x11, "SDT")] {
        let mut bytes = clean();
        let begins = |bytes: &[u8], at: usize| pid(&bytes[at..]) == wanted;
        let offsets = (0..bytes.len()).step_by(188);
        let offsets: Vec<usize> = offsets.filter(|&at| begins(&bytes, at)).collect();
        for &at in [offsets[3], offsets[9], offsets[15]].iter() {
            bytes[at + 14] ^= 0x10;
        }
        let report = check(&bytes);
        assert_eq!(found(&report.errors), [(Indicator::CrcError, 3)], "{name}");
    }
}

#[test]
fn what_pauses_is_late_once() {
    use Indicator::*;
    type Found = [(Indicator, u64)];
    let late: [(What, u64, &Found); 6] = [
        (What::Pat, 1_200, &[(PatError, 1)]),
        (What::Map, 1_200, &[(PmtError, 1)]),
        (
            What::Clock,
            250,
            &[(PcrRepetitionError, 1), (PcrDiscontinuityIndicatorError, 1)],
        ),
        (What::Picture, 1_200, &[(PtsError, 1)]),
        (What::Sound, 6_000, &[(PidError, 1), (PtsError, 1)]),
        (What::Services, 3_000, &[(SdtActualError, 1)]),
    ];
    for (what, millis, expected) in late {
        let report = check(&Multiplex::pause(what, 3_000..3_000 + millis).bytes());
        assert_eq!(found(&report.errors), expected, "{what:?}");
        let [(indicator, _), ..] = *expected else {
            panic!("an error is expected");
        };
        let first = report.errors.of(indicator).first.unwrap();
        let end = Time::from_millis(3_000 + millis);
        let behind = first.saturating_since(end).as_millis();
        assert!(first >= end && behind <= 500, "{what:?}: {first}");
        assert_eq!(report.jump_count, 0, "{what:?}");
        // Half of the limit is allowed.
        let short = match what {
            What::Pat => 250,
            What::Map => 150,
            What::Clock => 60,
            What::Picture | What::Sound => 350,
            What::Services => 1_000,
        };
        let report = check(&Multiplex::pause(what, 3_000..3_000 + short).bytes());
        assert_eq!(found(&report.errors), [], "{what:?}");
    }
}

#[test]
fn what_never_comes_or_stops_is_late_once() {
    use Indicator::*;
    let whole = || 0..SECONDS * 1_000;
    let report = check(&Multiplex::pause(What::Map, whole()).bytes());
    // Without a map nothing names the streams.
    assert_eq!(found(&report.errors), [(PmtError, 1), (UnreferencedPid, 2)]);
    let report = check(&Multiplex::pause(What::Sound, whole()).bytes());
    assert_eq!(found(&report.errors), [(PidError, 1)]);
    let report = check(&Multiplex::pause(What::Sound, 3_000..SECONDS * 1_000).bytes());
    assert_eq!(found(&report.errors), [(PidError, 1), (PtsError, 1)]);
    // Without a clock no time is known.
    let report = check(&Multiplex::pause(What::Clock, whole()).bytes());
    assert_eq!((found(&report.errors), report.rate), (vec![], None));
    assert_eq!((report.is_constant_rate, report.pat.count), (None, 0));
}

#[test]
fn a_wrong_table_on_a_pid_is_an_error() {
    let multiplex = Multiplex {
        wrong_tables: vec![5, 50],
        ..Multiplex::default()
    };
    let report = check(&multiplex.bytes());
    assert_eq!(found(&report.errors), [(Indicator::PatError, 2)]);
}

/// ISO/IEC 13818-1 allows PIDs from 0x10 on, and early stations of ATSC used those that DVB gave
/// its tables.
#[test]
fn a_program_may_use_the_pids_of_dvb_tables() {
    let multiplex = Multiplex::pause(What::Services, 0..u64::MAX);
    for pids in [[0x10, 0x11, 0x14], [0x14, 0x12, 0x10]] {
        let report = check(&multiplex.bytes_on(pids));
        assert_eq!(found(&report.errors), [], "{pids:x?}");
        let kind = |wanted: u16| {
            let pid = report.pids.iter().find(|pid| pid.pid == wanted).unwrap();
            (pid.kind.name, pid.stamps.count > 100)
        };
        let expected = [("PMT", false), ("H.264 video", true), ("AAC audio", true)];
        assert_eq!(pids.map(kind), expected, "{pids:x?}");
    }
    // On the same PIDs, tables of another kind are still errors.
    let mut wrong = multiplex.bytes();
    for packet in wrong.chunks_mut(188).filter(|packet| pid(packet) == MAP) {
        (packet[1], packet[2]) = (0x40, 0x11);
    }
    let errors = found(&check(&wrong).errors);
    assert!(
        errors
            .iter()
            .any(|(error, count)| { *error == Indicator::SdtActualError && *count > 50 })
    );
}

#[test]
fn a_pid_that_no_table_names_is_unreferenced() {
    let bytes = clean();
    let mut more = Vec::new();
    let mut counters = Default::default();
    for (number, packet) in bytes.chunks(188).enumerate() {
        match (pid(packet) == 0x1fff, number % 5) {
            (true, 0) => {
                let stray = 0x200 + (number as u16 / 5) % 2;
                Packet {
                    pid: stray,
                    ..Packet::default()
                }
                .write(&mut counters, &mut more);
            }
            _ => more.extend(packet),
        }
    }
    let report = check(&more);
    assert_eq!(found(&report.errors), [(Indicator::UnreferencedPid, 2)]);
    assert_eq!(report.pids[4].kind.name, "unreferenced");
}

#[test]
fn jumps_of_the_clock_are_listed_and_need_a_mark() {
    const SECOND: i64 = 27_000_000;
    for (ticks, is_marked) in [
        (3 * SECOND, false),
        (3 * SECOND, true),
        (-SECOND / 2, false),
    ] {
        let multiplex = Multiplex {
            clock_jump: Some((6_000, ticks, is_marked)),
            ..Multiplex::default()
        };
        let bytes = multiplex.bytes();
        for report in [
            check(&bytes),
            check_live(&bytes, |number| number * DATAGRAM),
        ] {
            let expected: &[_] = match is_marked {
                true => &[],
                false => &[(Indicator::PcrDiscontinuityIndicatorError, 1)],
            };
            assert_eq!(found(&report.errors), expected);
            assert_eq!(report.jump_count, 1);
            let jump = report.jumps[0];
            assert_eq!(
                (jump.pid, jump.of, jump.is_marked),
                (VIDEO, Jumped::Pcr, is_marked)
            );
            let wrong = jump.step_ns - ticks * 1_000 / 27;
            assert!(wrong.abs() < 6_000_000, "{wrong}");
            let at = jump.time.unwrap().as_nanos() / 1_000_000;
            assert!((6_000..6_030).contains(&at), "{at}");
            // No interval is longer for it.
            assert!(is_near(
                report.duration.unwrap(),
                SECONDS * 1_000_000,
                9_000
            ));
        }
    }
}

#[test]
fn jumps_of_time_stamps_are_listed() {
    for (ticks, jumps) in [(90_000, 2), (-9_000, 2), (45_000, 0)] {
        let multiplex = Multiplex {
            stamp_jump: Some((6_000, ticks)),
            ..Multiplex::default()
        };
        let report = check(&multiplex.bytes());
        assert_eq!(found(&report.errors), []);
        assert_eq!(report.jump_count, jumps, "{ticks}");
        assert!(report.jumps.iter().all(|jump| {
            let wrong = jump.step_ns - ticks * 100_000 / 9;
            jump.of == Jumped::Dts && wrong.abs() < 6_000_000
        }));
    }
}

#[test]
fn clock_references_that_are_off_are_inaccurate() {
    for (ticks, expected) in [(27, 5), (-27, 5), (10, 0)] {
        let multiplex = Multiplex {
            inexact: (1..=5).map(|number| (100 * number, ticks)).collect(),
            ..Multiplex::default()
        };
        let report = check(&multiplex.bytes());
        let errors = report.errors.of(Indicator::PcrAccuracyError);
        assert_eq!(errors.count, expected);
        let accuracy = report.clocks[0].accuracy.as_ref().unwrap();
        let largest = accuracy.max_ns.max(-accuracy.min_ns);
        let made = ticks.abs() * 1_000 / 27 * 32 / 33;
        assert!((largest - made).abs() <= 40, "{largest} of {made}");
    }
    // Missing bytes do not move the clock.
    let report = check(&without(VIDEO, 40));
    assert_eq!(report.errors.of(Indicator::PcrAccuracyError).count, 0);
    assert_eq!(report.is_constant_rate, Some(true));
}

#[test]
fn without_null_packets_the_rate_varies_and_no_accuracy_is_known() {
    let bytes = clean();
    // Seconds with many pictures and with few.
    let is_kept = |(number, packet): &(usize, &[u8])| {
        let is_filling = pid(packet) == 0x1fff || packet[3] & 0x20 == 0 && packet[1] & 0x40 == 0;
        !is_filling || number % 250 < 100
    };
    let packets = bytes.chunks(188).enumerate().filter(is_kept);
    let fewer: Vec<u8> = packets.flat_map(|(_, packet)| packet.to_vec()).collect();
    let report = check(&fewer);
    assert_eq!(report.is_constant_rate, Some(false));
    assert_eq!(report.errors.of(Indicator::PcrAccuracyError).count, 0);
    assert_eq!(report.clocks[0].accuracy, None);
}

#[test]
fn lost_sync_is_counted() {
    use Indicator::*;
    let bytes = clean();
    let nulls = plain(&bytes, 0x1fff);
    let middle = nulls[nulls.len() / 2];
    // One sync byte.
    let mut one = bytes.clone();
    one[middle] = 0x11;
    assert_eq!(found(&check(&one).errors), [(SyncByteError, 1)]);
    // Bytes between packets.
    let more = [&bytes[..middle], &[0x11; 50], &bytes[middle..]].concat();
    let report = check(&more);
    assert_eq!(found(&report.errors), [(TsSyncLoss, 1), (SyncByteError, 2)]);
    assert_eq!((report.packets, report.skipped_bytes), (PACKETS, 50));
    // The rest of a null packet.
    let less = [&bytes[..middle + 20], &bytes[middle + 188..]].concat();
    let errors = found(&check(&less).errors);
    // The packet that is cut swallows the beginning of the next one.
    assert!(
        errors.starts_with(&[(TsSyncLoss, 1), (SyncByteError, 2)]),
        "{errors:?}"
    );
    let report = check(&less);
    assert_eq!(report.packets + 1, PACKETS);
    assert_eq!(report.skipped_bytes, 20);
}

#[test]
fn a_live_stream_that_stops_is_late() {
    use Indicator::*;
    let bytes = clean();
    let mut checker = Checker::new(Timing::Arrival);
    for (number, datagram) in (0..).zip(bytes.chunks(1_316)) {
        checker.push_arrived(datagram, Time::from_nanos(number * DATAGRAM));
    }
    checker.finish();
    let end = checker.report();
    assert_eq!(found(&end.errors), []);
    let second = Time::from_secs(SECONDS + 1);
    checker.wait(second);
    let expected = [
        (PatError, 1),
        (PmtError, 1),
        (PcrRepetitionError, 1),
        (PtsError, 2),
    ];
    assert_eq!(found(&checker.report().errors), expected);
    assert_eq!(checker.report().errors.of(PatError).last, Some(second));
    // The rate is that of the packets.
    assert_eq!(checker.report().rate, end.rate);
    // A stored stream is over when it ends.
    let mut stored = Checker::new(Timing::Clock);
    stored.push(&bytes);
    stored.finish();
    stored.wait(second);
    assert_eq!(found(&stored.report().errors), []);
}

#[test]
fn a_program_that_the_pat_replaces_is_forgotten() {
    let entry = |number: u8, pid: u8| [0, number, 0xe0, pid];
    let mut bytes = Vec::new();
    let mut counters = Default::default();
    for entries in [
        [entry(0, 0x10), entry(1, 0x41), entry(2, 0x42)].concat(),
        [entry(0, 0x10), entry(1, 0x41), entry(3, 0x43)].concat(),
        [entry(0, 0x10), entry(3, 0x44)].concat(),
    ] {
        let mut packet = Packet {
            begins: true,
            ..Packet::default()
        };
        packet.payload = [&[0][..], &section(0, 1, &entries)].concat();
        packet.write(&mut counters, &mut bytes);
    }
    let mut live = Checker::new(Timing::Arrival);
    live.push(&bytes);
    live.finish();
    let report = live.report();
    let programs: Vec<_> = { report.programs.iter() }
        .map(|program| (program.number, program.map_pid))
        .collect();
    assert_eq!(programs, [(3, 0x44)]);
    let kinds: Vec<_> = { report.pids.iter() }
        .map(|pid| (pid.pid, pid.kind.name))
        .filter(|(pid, _)| *pid > 0x20)
        .collect();
    let expected = [
        (0x41, "unreferenced"),
        (0x42, "unreferenced"),
        (0x43, "unreferenced"),
        (0x44, "PMT"),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn a_program_that_a_pat_of_two_sections_no_longer_names_is_forgotten() {
    let mut bytes = Vec::new();
    let mut counters = Default::default();
    for (number, programs) in [(0, [1, 2]), (1, [3, 4]), (0, [1, 5]), (1, [3, 6])] {
        let entries = programs.map(|program| [0, program, 0xe0, 0x40 + program]);
        let mut table = section(0, 1, &entries.concat());
        (table[6], table[7]) = (number, 1);
        let end = table.len() - 4;
        let sum = crc(&table[..end]);
        table[end..].copy_from_slice(&sum.to_be_bytes());
        let packet = Packet {
            begins: true,
            payload: [&[0][..], &table].concat(),
            ..Packet::default()
        };
        packet.write(&mut counters, &mut bytes);
    }
    let named = |bytes: &[u8]| {
        let mut live = Checker::new(Timing::Arrival);
        live.push(bytes);
        live.finish();
        let programs = live.report().programs;
        let numbers = programs.iter().map(|program| program.number);
        numbers.collect::<Vec<_>>()
    };
    assert_eq!(named(&bytes[..2 * 188]), [1, 2, 3, 4]);
    assert_eq!(named(&bytes), [1, 3, 5, 6]);
}

/// An encoder takes over that has its pictures on the PID of the other's map.
#[test]
fn a_pid_that_had_a_map_may_have_pictures() {
    const NEXT: u16 = 0x1001;
    let multiplex = Multiplex::default();
    let first = multiplex.bytes();
    let then = multiplex.bytes_on([NEXT, MAP, AUDIO]);
    // It takes over with its PAT.
    let half = first.len() / 188 / 2 * 188;
    let begins = |at: &usize| pid(&then[*at..]) == 0 && then[*at + 1] & 0x40 != 0;
    let at = (half..then.len()).step_by(188).find(begins).unwrap();
    let mut bytes = [&first[..at], &then[at..]].concat();
    let mut counters = std::collections::BTreeMap::new();
    for (index, packet) in bytes.chunks_mut(188).enumerate() {
        let counter: &mut u8 = counters.entry(pid(packet)).or_default();
        packet[3] = packet[3] & 0xf0 | *counter;
        *counter = (*counter + 1) % 16;
        // Its pictures have bytes like those of tables.
        if index * 188 > at && pid(packet) == MAP && packet[1] & 0x40 == 0 && packet[3] & 0x20 == 0
        {
            let tables = [0x42, 0xf0, 0x08].into_iter().cycle();
            packet[4..]
                .iter_mut()
                .zip(tables)
                .for_each(|(byte, of)| *byte = of);
        }
    }
    let report = check_live(&bytes, |number| number * DATAGRAM);
    // The PID of the first pictures has no name any more.
    let errors = found(&report.errors);
    assert_eq!(errors, [(Indicator::UnreferencedPid, 1)]);
    let of = |wanted: u16| {
        let found = report.pids.iter().find(|found| found.pid == wanted);
        found.unwrap()
    };
    assert_eq!(of(MAP).kind.name, "H.264 video");
    assert_eq!(of(NEXT).kind.name, "PMT");
    // Pictures come each 40 ms, for six seconds.
    assert!((140..=150).contains(&of(MAP).stamps.count), "{:?}", of(MAP));
}

#[test]
fn a_live_stream_is_measured_by_its_arrival() {
    let bytes = clean();
    let even = check_live(&bytes, |number| number * DATAGRAM);
    assert_eq!(found(&even.errors), []);
    assert!(is_near(even.duration.unwrap(), SECONDS * 1_000_000, 6_000));
    assert!(is_near(even.clocks[0].intervals.mean(), 20_000, 60));
    // Seven packets arrive at once: references are up to 5.3 ms early.
    let jitter = even.clocks[0].jitter.as_ref().unwrap();
    let range = jitter.max_ns - jitter.min_ns;
    assert!((4_000_000..7_000_000).contains(&range), "{range}");
    // A window of 10 ms has two datagrams of 5.264 ms, and one of 40 ms has eight.
    let peaks: Vec<u64> = even.peaks.iter().map(|peak| peak.rate.as_bps()).collect();
    assert_eq!(peaks, [10_528_000, 2_105_600, 2_105_600]);

    // The path stalls for 600 ms, and catches up at once.
    let stalled = check_live(&bytes, |number| {
        let at = number * DATAGRAM;
        match at {
            3_000_000_000..3_600_000_000 => 3_600_000_000,
            _ => at,
        }
    });
    let expected = [
        (Indicator::PatError, 1),
        (Indicator::PmtError, 1),
        (Indicator::PcrRepetitionError, 1),
    ];
    assert_eq!(found(&stalled.errors), expected);
    assert_eq!(stalled.jump_count, 0);
    assert!(stalled.peaks[1].rate.as_bps() > 100_000_000);
}
