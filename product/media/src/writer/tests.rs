use comity_frames::FrameType;

use super::*;

/// A section of this table and extension, with its number and that of the last one.
fn section(table: u8, extension: u16, [number, last]: [u8; 2], body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len() + 9).unwrap();
    let mut section = vec![table];
    section.extend((0xb000 | length).to_be_bytes());
    section.extend(extension.to_be_bytes());
    section.extend([0xc1, number, last]);
    section.extend(body);
    section.extend(mpeg2ts_reader::mpegts_crc::sum32(&section).to_be_bytes());
    section
}

fn pat(numbers: [u8; 2], programs: impl IntoIterator<Item = (u16, u16)>) -> Vec<u8> {
    let programs = programs.into_iter();
    let entries = programs.map(|(number, pid)| [number.to_be_bytes(), pid.to_be_bytes()].concat());
    section(0, 1, numbers, &entries.collect::<Vec<_>>().concat())
}

fn map(number: u16, clock_pid: u16, pids: impl IntoIterator<Item = u16>) -> Vec<u8> {
    let mut body = [clock_pid.to_be_bytes(), [0xf0, 0]].concat();
    for pid in pids {
        body.push(0x1b);
        body.extend(pid.to_be_bytes());
        body.extend([0xf0, 0]);
    }
    section(2, number, [0, 0], &body)
}

fn write_table(writer: &mut TsWriter, pid: u16, section: &[u8], out: &mut Vec<u8>) {
    let mut payload = Vec::new();
    let repeated = true;
    Header::Table { pid, repeated }.encode(&mut payload);
    payload.extend(section);
    writer.write(&payload, out).unwrap();
}

/// A unit with this time stamp, and these bytes.
fn unit(pid: u16, stamp: u64, bytes: &[u8]) -> Vec<u8> {
    let header = Header::Unit(Unit {
        pid,
        stream_type: 0x1b,
        stream_id: 0xe0,
        frame: FrameType::Key,
        times: Times::Presentation(stamp),
        random_access: true,
        discontinuity: false,
        aligned: false,
    });
    let mut payload = Vec::new();
    header.encode(&mut payload);
    payload.extend(bytes);
    payload
}

/// As many maps on one PID as are remembered, and a PAT that names the PID again and again.
#[test]
fn a_pat_has_each_map_read_once() {
    const MAPS: u16 = 1_023;
    const STREAMS: u16 = 201;
    let (mut writer, mut out) = (TsWriter::new(WriterConfig::default()), Vec::new());
    for number in 0..MAPS {
        let map = map(number + 1, 0x1ffe, 0x200..0x200 + STREAMS);
        assert_eq!(map.len(), 1_021);
        write_table(&mut writer, 0x100, &map, &mut out);
    }
    // The second section of the PAT never comes, so that no map is dropped.
    let named = 253;
    let pat = pat([0, 1], (1..=named).map(|number| (number, 0x100)));
    assert_eq!(pat.len(), 1_024);
    let steps = work::of(|| write_table(&mut writer, 0, &pat, &mut out));
    let most = usize::from(named * STREAMS);
    assert!((most..most + 1_000).contains(&steps), "{steps}");
    for _ in 0..10 {
        let steps = work::of(|| write_table(&mut writer, 0, &pat, &mut out));
        assert_eq!(steps, 0);
    }
    assert!(writer.is_known(0x200) && !writer.is_known(0x200 + STREAMS));
}

/// The PAT with the most programs, and a section of it that changes.
#[test]
fn a_changed_section_of_the_pat_costs_no_more_than_its_programs() {
    let pid_of = |number: u16| 0x20 + number % 8_000;
    let (mut writer, mut out) = (TsWriter::new(WriterConfig::default()), Vec::new());
    for section in 0..=255 {
        let first = 1 + 253 * u16::from(section);
        let programs = (first..first + 253).map(|number| (number, pid_of(number)));
        write_table(&mut writer, 0, &pat([section, 255], programs), &mut out);
    }
    // As many maps as there is room for, of programs in the last sections.
    for number in 64_000..64_768 {
        let map = map(number, 0x1ffe, [0x1ffe]);
        write_table(&mut writer, pid_of(number), &map, &mut out);
    }
    for number in 0..10 {
        let one = pat([0, 255], [(65_000 + number, 0x1ffd)]);
        let steps = work::of(|| write_table(&mut writer, 0, &one, &mut out));
        // The first one replaces 253 programs. The PAT is complete after each.
        let programs = if number == 0 { 254 } else { 2 };
        assert_eq!(steps, programs + 256);
    }
    // A PAT of another version without the rest has no other program.
    let mut other = pat([0, 0], [(64_000, pid_of(64_000))]);
    other.truncate(other.len() - 4);
    other[5] ^= 2;
    other.extend(mpeg2ts_reader::mpegts_crc::sum32(&other).to_be_bytes());
    write_table(&mut writer, 0, &other, &mut out);
    assert!(writer.tables.names_map(pid_of(64_000)));
    assert!(!writer.tables.names_map(pid_of(64_001)));
}

/// Thousands of programs with one clock, and times that make the tables of all of them due.
#[test]
fn steps_of_a_clock_cost_no_more_than_the_tables_that_they_write() {
    const UNITS: usize = 1_000;
    let (mut writer, mut out) = (TsWriter::new(WriterConfig::default()), Vec::new());
    let pids = |section: u8| (0..253).map(move |of| 0x20 + 253 * u16::from(section) + of);
    for section in 0..=31 {
        let programs = pids(section).map(|pid| (pid, pid));
        write_table(&mut writer, 0, &pat([section, 31], programs), &mut out);
    }
    for pid in (0..=31).flat_map(pids) {
        write_table(&mut writer, pid, &map(pid, 0x1ffe, [0x1ffe]), &mut out);
    }
    assert_eq!(writer.programs.len(), 8_096);
    out.clear();
    let mut came = 0;
    let steps = work::of(|| {
        for number in 0..UNITS {
            let unit = unit(0x1ffe, 54_000 * number as u64, &[9; 10]);
            came += unit.len();
            writer.write(&unit, &mut out).unwrap();
        }
    });
    let tables = ((1 << 20) + 16 * came) / PACKET;
    assert!(steps < 2 * tables + 10 * UNITS, "{steps}");
    assert!(out.len() > 1 << 20, "{}", out.len());
    assert!(writer.statistics().omitted > 0);
}

/// As many units as may wait for tables, and tables that name none of them.
#[test]
fn tables_beside_waiting_units_release_only_those_that_they_name() {
    const UNITS: usize = 50_000;
    let (mut writer, mut out) = (TsWriter::new(WriterConfig::default()), Vec::new());
    for number in 0..UNITS {
        let pid = 0x200 + (number % 2) as u16;
        let bytes = (number as u32).to_be_bytes();
        writer.write(&unit(pid, 0, &bytes), &mut out).unwrap();
    }
    write_table(&mut writer, 0, &pat([0, 0], [(1, 0x100)]), &mut out);
    let steps = work::of(|| {
        for pid in 0x300..0x700 {
            write_table(&mut writer, 0x100, &map(1, pid, [pid]), &mut out);
        }
    });
    assert!((0x400..0x4000).contains(&steps), "{steps}");
    assert_eq!(writer.held_streams(), BTreeSet::from([0x200, 0x201]));
    // The units of both PIDs come in the order in which they arrived.
    out.clear();
    write_table(&mut writer, 0x100, &map(1, 0x200, [0x200, 0x201]), &mut out);
    assert!(!writer.is_holding());
    let (packets, _) = out.as_chunks::<PACKET>();
    let numbers = { packets.iter() }
        .filter(|packet| packet[1] & 0x40 != 0 && matches!(pid_of(packet), 0x200 | 0x201))
        .map(|packet| u32::from_be_bytes(*packet.last_chunk().unwrap()));
    assert!(numbers.eq(0..UNITS as u32));
}
