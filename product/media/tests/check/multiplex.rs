//! A multiplexer whose every number is known: one program with pictures and sound, at a constant
//! rate. It shares nothing with the tested code.

use core::ops::Range;

/// A packet takes no whole number of ticks.
pub(crate) const RATE: u64 = 1_999_000;
pub(crate) const SECONDS: u64 = 12;
pub(crate) const PACKETS: u64 = RATE * SECONDS / (188 * 8);
pub(crate) const MAP: u16 = 0x1000;
pub(crate) const VIDEO: u16 = 0x100;
pub(crate) const AUDIO: u16 = 0x101;
const NULL: u16 = 0x1fff;

/// What recurs, with its interval in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    Pat = 100,
    Map = 200,
    Clock = 20,
    Picture = 40,
    Sound = 24,
    Services = 500,
}

const ALL: [What; 6] = [
    What::Pat,
    What::Map,
    What::Clock,
    What::Picture,
    What::Sound,
    What::Services,
];

/// The place of the clock among them.
const CLOCK: usize = 2;

/// A stream, and where it departs from a right one.
#[derive(Default)]
pub(crate) struct Multiplex {
    /// What does not occur between these times, in milliseconds.
    pub(crate) pauses: Vec<(What, Range<u64>)>,
    /// What is added to clock references from this time on, in milliseconds and ticks, and whether
    /// the first one is marked.
    pub(crate) clock_jump: Option<(u64, i64, bool)>,
    /// The same for time stamps, in milliseconds and ticks of 90 kHz.
    pub(crate) stamp_jump: Option<(u64, i64)>,
    /// What is added to the clock references with these numbers, in ticks.
    pub(crate) inexact: Vec<(u64, i64)>,
    /// Tables in the place of the PAT with these numbers.
    pub(crate) wrong_tables: Vec<u64>,
}

impl Multiplex {
    pub(crate) fn pause(what: What, at: Range<u64>) -> Self {
        Self {
            pauses: vec![(what, at)],
            ..Self::default()
        }
    }

    /// The bytes of the stream.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.bytes_on([MAP, VIDEO, AUDIO])
    }

    /// The bytes of the stream with its map, pictures and sound on these PIDs.
    pub(crate) fn bytes_on(&self, [map, video, audio]: [u16; 3]) -> Vec<u8> {
        let mut counters = std::collections::BTreeMap::new();
        let mut next = ALL.map(|_| 0_u64);
        let mut occurred = ALL.map(|_| 0_u64);
        let mut is_marked = false;
        let mut out = Vec::new();
        for number in 0..PACKETS {
            let micros = number * 188 * 8 * 1_000_000 / RATE;
            // The clock has packets of its own, behind all else.
            let due = (0..ALL.len()).find(|&index| micros >= next[index] && index != CLOCK);
            let clock_is_due = micros >= next[CLOCK];
            let mut take = |index: usize| {
                next[index] += ALL[index] as u64 * 1_000;
                occurred[index] += 1;
                let millis = micros / 1_000;
                let mut pauses = self.pauses.iter();
                let is_paused =
                    pauses.any(|(what, at)| *what == ALL[index] && at.contains(&millis));
                (!is_paused).then_some(occurred[index] - 1)
            };
            let mut packet = Packet::default();
            match due.map(|index| (ALL[index], take(index))) {
                Some((What::Pat, Some(count))) => {
                    let table = if self.wrong_tables.contains(&count) {
                        0x42
                    } else {
                        0
                    };
                    let pid = (0xe000 | map).to_be_bytes();
                    packet.table(0, &section(table, 1, &[0, 1, pid[0], pid[1]]));
                }
                Some((What::Map, Some(_))) => {
                    let [video, audio] = [video, audio].map(|pid| (0xe000 | pid).to_be_bytes());
                    let mut body = vec![video[0], video[1], 0xf0, 0];
                    body.extend([0x1b, video[0], video[1], 0xf0, 0]);
                    body.extend([0x0f, audio[0], audio[1], 0xf0, 0]);
                    packet.table(map, &section(2, 1, &body));
                }
                Some((What::Services, Some(_))) => {
                    packet.table(0x11, &section(0x42, 1, &[0, 1, 0xff]));
                }
                Some((What::Sound, Some(_))) => packet.unit(audio, 0xc0, self.stamp(micros)),
                Some((What::Picture, Some(_))) => packet.unit(video, 0xe0, self.stamp(micros)),
                None if clock_is_due => {
                    packet.pid = video;
                    if let Some(count) = take(CLOCK) {
                        let clock = number * 188 * 8 * 27_000_000 / RATE;
                        let mut clock = clock as i64 + 27_000_000;
                        for (_, ticks) in self.inexact.iter().filter(|(at, _)| *at == count) {
                            clock += ticks;
                        }
                        if let Some((at, ticks, marks)) = self.clock_jump
                            && micros / 1_000 >= at
                        {
                            clock += ticks;
                            packet.is_marked = marks && !is_marked;
                            is_marked = true;
                        }
                        packet.clock = Some(clock as u64);
                    }
                }
                None if number % 3 > 0 => packet.pid = video,
                _ => packet.pid = NULL,
            }
            packet.write(&mut counters, &mut out);
        }
        out
    }

    fn stamp(&self, micros: u64) -> u64 {
        let jump = self.stamp_jump.filter(|(at, _)| micros / 1_000 >= *at);
        let stamp = 180_000 + (micros * 9 / 100) as i64;
        (stamp + jump.map_or(0, |(_, ticks)| ticks)) as u64
    }
}

#[derive(Default)]
pub(crate) struct Packet {
    pub(crate) pid: u16,
    pub(crate) begins: bool,
    pub(crate) is_marked: bool,
    pub(crate) clock: Option<u64>,
    pub(crate) payload: Vec<u8>,
}

impl Packet {
    fn table(&mut self, pid: u16, section: &[u8]) {
        self.pid = pid;
        self.begins = true;
        self.payload = [&[0][..], section].concat();
    }

    fn unit(&mut self, pid: u16, stream_id: u8, stamp: u64) {
        self.pid = pid;
        self.begins = true;
        // 3 bits, 15 and 15, each with a marker behind it.
        let middle = ((stamp >> 15 & 0x7fff) << 1 | 1) as u16;
        let low = ((stamp & 0x7fff) << 1 | 1) as u16;
        let high = 0x20 | ((stamp >> 30 & 7) << 1 | 1) as u8;
        self.payload = vec![0, 0, 1, stream_id, 0, 0, 0x80, 0x80, 5, high];
        self.payload.extend(middle.to_be_bytes());
        self.payload.extend(low.to_be_bytes());
    }

    /// Writes it with the next counter of its PID.
    pub(crate) fn write(
        self,
        counters: &mut std::collections::BTreeMap<u16, u8>,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        let begins = if self.begins { 0x40 } else { 0 };
        out.extend([0x47, (self.pid >> 8) as u8 | begins, self.pid as u8]);
        let counter = counters.entry(self.pid).or_insert(0);
        match self.clock {
            None => out.push(0x10 | *counter),
            Some(clock) => {
                let bits = (clock / 300) << 15 | 0x7e00 | (clock % 300);
                out.extend([0x30 | *counter, 7, if self.is_marked { 0x90 } else { 0x10 }]);
                out.extend(&bits.to_be_bytes()[2..]);
            }
        }
        *counter = (*counter + 1) % 16;
        out.extend(self.payload);
        out.resize(start + 188, 0xff);
    }
}

/// A section of a table.
pub(crate) fn section(table: u8, extension: u16, body: &[u8]) -> Vec<u8> {
    let length = body.len() as u16 + 9;
    let mut section = vec![table];
    section.extend((0xb000 | length).to_be_bytes());
    section.extend(extension.to_be_bytes());
    section.extend([0xc1, 0, 0]);
    section.extend(body);
    section.extend(crc(&section).to_be_bytes());
    section
}

/// ISO/IEC 13818-1, annex A: bit by bit.
pub(crate) fn crc(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        for bit in (0..8).rev() {
            let is_set = (crc >> 31) ^ u32::from(byte >> bit & 1) == 1;
            crc = crc << 1 ^ if is_set { 0x04c1_1db7 } else { 0 };
        }
    }
    crc
}
