use mpeg2ts_reader::mpegts_crc;

use super::*;

/// A section of this table and extension, with its number and that of the last one.
fn section(table: u8, extension: u16, [number, last]: [u8; 2], body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len() + 9).unwrap();
    let mut section = vec![table];
    section.extend((0xb000 | length).to_be_bytes());
    section.extend(extension.to_be_bytes());
    section.extend([0xc1, number, last]);
    section.extend(body);
    section.extend(mpegts_crc::sum32(&section).to_be_bytes());
    section
}

/// A source with these programs: the PID of each map, its clock's, and those of its streams.
fn demux(programs: &[(u16, u16, Vec<u16>)]) -> (Demux, VecDeque<Event>) {
    let mut events = VecDeque::new();
    let mut demux = Demux::new(ReaderConfig::default(), None, &mut events);
    for (number, programs) in (0..).zip(programs.chunks(253)) {
        let entries = programs
            .iter()
            .map(|&(pid, ..)| [pid.to_be_bytes(); 2].concat());
        let body = entries.collect::<Vec<_>>().concat();
        demux.table(
            psi::PAT,
            false,
            &section(0, 1, [number, 255], &body),
            &mut events,
        );
    }
    for (pid, clock, streams) in programs {
        let mut body = [clock.to_be_bytes(), [0xf0, 0]].concat();
        for stream in streams {
            body.push(0x06);
            body.extend(stream.to_be_bytes());
            body.extend([0xf0, 0]);
        }
        demux.table(*pid, false, &section(2, *pid, [0, 0], &body), &mut events);
    }
    (demux, events)
}

/// The packet with this number on its PID: a PES packet of private data with this time stamp.
fn stamped(pid: u16, number: usize, millis: u64) -> [u8; PACKET] {
    let mut packet = [0xff; PACKET];
    let [high, low] = (0x4000 | pid).to_be_bytes();
    packet[..4].copy_from_slice(&[0x47, high, low, 0x10 | (number % 16) as u8]);
    let stamp = crate::pes::stamps(crate::header::Times::Presentation(90 * millis)).1;
    packet[4..13].copy_from_slice(&[0, 0, 1, 0xbd, 0, 100, 0x80, 0x80, 5]);
    packet[13..18].copy_from_slice(&stamp);
    packet
}

#[test]
fn a_clock_reference_is_read_for_a_limited_number_of_programs() {
    const CLOCK: u16 = 0x1ffe;
    let shared = (0x20..0x20 + 1_000).map(|pid| (pid, CLOCK, Vec::new()));
    let (mut demux, mut events) = demux(&shared.collect::<Vec<_>>());
    assert_eq!(demux.clocks.len(), 1_000);
    let mut packet = [0xff; PACKET];
    packet[..12].copy_from_slice(&[0x47, 0x1f, 0xfe, 0x20, 183, 0x10, 0, 0, 1, 0, 0x7e, 0]);
    let steps = work::of(|| {
        demux
            .framed(Framed::Packet(&packet, 0), &mut events)
            .unwrap();
    });
    assert_eq!(steps, MAX_FOLLOWING);
    // A program with another clock makes room for one.
    for clock in [CLOCK - 1, CLOCK] {
        let body = [clock.to_be_bytes(), [0xf0, 0]].concat();
        demux.table(0x20, false, &section(2, 0x20, [0, 0], &body), &mut events);
        let followers = demux.references.get(&CLOCK).map(BTreeSet::len);
        assert_eq!(followers, Some(MAX_FOLLOWING - usize::from(clock != CLOCK)));
    }
}

/// Thousands of streams, and times that make a check of all of them due with each packet.
#[test]
fn checks_of_silent_streams_cost_a_limited_number_of_steps() {
    const PACKETS: usize = 2_000;
    let streams = |program: u16| (0..200).map(|of| 0x50 + 200 * program + of).collect();
    let programs = (0..40).map(|program| (0x20 + program, 0x50, streams(program)));
    let (mut demux, mut events) = demux(&programs.collect::<Vec<_>>());
    assert!(demux.roles.len() > 8_000);
    let steps = work::of(|| {
        for number in 0..PACKETS {
            let packet = stamped(0x50, number, 200 * number as u64);
            let framed = Framed::Packet(&packet, (number * PACKET) as u64);
            demux.framed(framed, &mut events).unwrap();
        }
    });
    // The payload of each packet is copied, too.
    let most = (LOOKED_AT + PACKET) * PACKETS + 8_100;
    assert!((8_000..most).contains(&steps), "{steps}");
    // The time is that of the latest stamp, as the clock of its program has it.
    let clocks = demux.clocks.values().map(ProgramClock::now);
    assert_eq!(Some(demux.now()), clocks.max());
    assert!(demux.now() >= Time::from_millis(200 * (PACKETS as u64 - 2)));
}
