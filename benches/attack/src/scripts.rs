//! What a hostile peer sends: payloads of Data packets without their departure.

use std::collections::BTreeMap;

use clap::ValueEnum;
use comity_transport::wire::frame::PROOF_MASK;
use comity_transport::wire::limits::{MAX_SECTION, MAX_SECTION_ID, MAX_TIME_US};
use comity_transport::wire::{Stamp, varint};
use comity_units::{Span, Time};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const ACK: u8 = 0x02;
const PROVED_ACK: u8 = 0x30;
const FLOOR: u8 = 0x08;
const DROP: u8 = 0x09;
const CREDIT: u8 = 0x0a;
const FEEDBACK: u8 = 0x0c;
const RECEIVER_REPORT: u8 = 0x0d;
const PATH_CHALLENGE: u8 = 0x0e;
const CLOSE: u8 = 0x10;
const END: u8 = 0x11;
const SECTION: u8 = 0x20;
const HAS_LENGTH: u8 = 0x01;
const APPLICATION: u64 = 0x100;

/// The room for frames that every path has: the smallest full packet.
const PAYLOAD: usize = 1_150;
const STREAMS: u64 = 64;
/// Sections of one stream, and of how many bytes: with all streams 16 MiB.
const SECTIONS: u64 = 64;
const TOTAL: u64 = 4_096;
/// Pieces of a section that do not touch: every second byte.
const PIECES: u64 = TOTAL / 2;
/// Whole sections that are sent without credit, how long each is, and the bytes of a packet.
const FILLED: u64 = 16;
const LONG: u64 = 1 << 20;
const PIECE: u64 = 1 << 10;
/// Tables of a program beside its map, and units.
const TABLES: u8 = 200;
const UNITS: u64 = 2_000;
/// A rate in bits per second at which less arrives than does.
const MODEST: u64 = 100_000;
/// Ranges of an Ack frame, and those frames in a packet, if there are many.
const RANGES: usize = 100;
const ACKS: usize = 5;
const CHALLENGES: u64 = 1_000;
/// How far a clock is set back, the number of challenges after that, and how long the section of
/// that clock may take.
const SET_BACK: Span = Span::from_secs(1_800);
const CHALLENGED: u64 = 20;
const DUE_US: u64 = 1_500_000;
/// Packets of each extreme kind.
const EXTREMES: u64 = 50;
const RANDOM_PACKETS: u64 = 16;
/// Clears the screen, sets the title of the window, and forges a line.
pub(crate) const ESCAPES: &str = "\x1b[2J\x1b]0;owned\x07\r\nwarning: all is well\u{202e}";

/// The scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Name {
    /// One packet of 64 Floor frames, each 2^20 further
    Floors,
    /// One packet with a floor of 5,000
    Floor,
    /// A complete section, for a path that has to stay in use
    Section,
    /// Sections of 16 MiB in pieces of one byte that do not touch
    Fragments,
    /// Frames with extreme values; each connection has another one
    Extreme,
    /// Random frames, and genuine ones with some bytes changed
    Random,
    /// A Close frame whose reason has control characters
    Close,
    /// Acknowledges all packets up to the latest, those too that never were
    AllAcked,
    /// Acknowledges packets that were not sent yet
    EarlyAck,
    /// Drops one packet in 20, and acknowledges all that were sent with a guess of their proof
    HiddenLoss,
    /// Acknowledges truly, and counts more packets than came
    FalseCount,
    /// Drops one packet in 20 and says so, but reports no loss event
    NoLossEvents,
    /// Drops one packet in 20, and says so
    Lossy,
    /// Drops every second packet, says so, and acknowledges the others with many Ack frames
    ManyAcks,
    /// A thousand packets with a challenge
    Challenges,
    /// A section in two halves, and a clock that is set back by half an hour between them
    FalseClock,
    /// Sends 16 MiB of whole sections, whatever the credit
    Fill,
    /// A section that is due in an hour, and a Close
    FarDeadline,
    /// Media of a program with many tables, whose times jump ahead with each unit
    Tables,
    /// Nothing
    Silent,
}

/// A script under way.
pub(crate) struct Script {
    name: Name,
    connection: u64,
    step: u64,
    acked: Option<u64>,
    frames: u64,
    /// The packets that were sent, with the tokens that the peer believes in.
    arrived: BTreeMap<u64, u8>,
    received: u64,
    round: Option<u32>,
    random: Xoshiro256PlusPlus,
}

fn put(out: &mut Vec<u8>, numbers: &[u64]) {
    for &number in numbers {
        varint::encode(number, out).expect("numbers of scripts are below 2^62");
    }
}

fn frame(kind: u8, numbers: &[u64]) -> Vec<u8> {
    let mut out = vec![kind];
    put(&mut out, numbers);
    out
}

/// An Ack frame of this kind for ranges of packets, the highest first.
fn ack(kind: u8, ranges: &[(u64, u64)]) -> Vec<u8> {
    let Some(&(first, last)) = ranges.first() else {
        return Vec::new();
    };
    let mut out = frame(kind, &[last, 0]);
    out.extend([0; 4]);
    put(&mut out, &[ranges.len() as u64 - 1, last - first]);
    for pair in ranges.windows(2) {
        let (above, (first, last)) = (pair[0].0, pair[1]);
        put(&mut out, &[above - last - 2, last - first]);
    }
    out
}

/// Adds the next lower packet; `false` if that takes another range than the `most` that fit.
fn add(ranges: &mut Vec<(u64, u64)>, number: u64, most: usize) -> bool {
    let is_full = ranges.len() == most;
    match ranges.last_mut() {
        Some((first, _)) if *first == number + 1 => *first = number,
        _ if is_full => return false,
        _ => ranges.push((number, number)),
    }
    true
}

/// A Section frame without a deadline: section `number` of `stream`, `data` at `offset`.
fn section(stream: u64, number: u64, offset: u64, total: u64, data: &[u8]) -> Vec<u8> {
    let length = data.len() as u64;
    let numbers = [stream, number, 0, offset, total, 0, 0, length];
    let mut out = frame(SECTION | HAS_LENGTH, &numbers);
    out.extend(data);
    out
}

/// A section of one byte that is due in an hour.
fn far() -> Vec<u8> {
    let mut out = frame(SECTION | HAS_LENGTH, &[0, 0, 0, 0, 1]);
    put(&mut out, &[0, 1 + 3_600_000_000, 1]);
    out.push(7);
    out
}

/// One of two bytes of a section that is due [`DUE_US`] after the first, by the false clock.
fn half(offset: u64) -> Vec<u8> {
    let mut out = frame(SECTION | HAS_LENGTH, &[0, 0, 0, offset, 2]);
    // The clock of a peer begins at 1 s.
    let source_us = 1_000_000 + SET_BACK.as_micros();
    put(&mut out, &[source_us, 1 + DUE_US, 1]);
    out.push(7);
    out
}

fn challenge(step: u64) -> Vec<u8> {
    [&[PATH_CHALLENGE][..], &step.to_be_bytes()].concat()
}

/// CRC-32/MPEG-2.
fn crc(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |value, &byte| {
        (0..8).fold(value ^ u32::from(byte) << 24, |value, _| {
            let poly = if value >> 31 == 1 { 0x04c1_1db7 } else { 0 };
            value << 1 ^ poly
        })
    })
}

/// A table with its media header.
fn table(pid: u16, id: u8, body: &[u8]) -> Vec<u8> {
    let mut table = vec![id, 0xb0, body.len() as u8 + 9, 0, 1, 0xc1, 0, 0];
    table.extend(body);
    table.extend(crc(&table).to_be_bytes());
    [&[0x12, 1][..], &pid.to_be_bytes(), &table].concat()
}

/// The sections of [`Name::Tables`], as docs/protocol/media.md has them.
fn media(step: u64) -> Vec<u8> {
    const MAP: u16 = 0x1000;
    const PID: u16 = 0x100;
    let tables = 2 + u64::from(TABLES);
    let payload = match step {
        0 => table(0, 0, &[&[0, 1][..], &(0xe000 | MAP).to_be_bytes()].concat()),
        1 => {
            let pid = (0xe000 | PID).to_be_bytes();
            let body = [&pid[..], &[0xf0, 0, 0x1b], &pid, &[0xf0, 0]].concat();
            table(MAP, 2, &body)
        }
        step if step < tables => table(0x11, step as u8, &[step as u8; 200]),
        step => {
            let stamp = (step - tables) * 800_000;
            // A key picture with a PTS, aligned.
            let mut unit = vec![0x11, 0x15, 0x01, 0x00, 0x1b, 0xe0, 1];
            unit.extend(&stamp.to_be_bytes()[3..]);
            unit.extend([9; 10]);
            let total = unit.len() as u64;
            return section(1, step - tables, 0, total, &unit);
        }
    };
    section(0, step, 0, payload.len() as u64, &payload)
}

fn close(code: u64, reason: &str) -> Vec<u8> {
    let mut out = frame(CLOSE, &[code]);
    out.push(reason.len() as u8);
    out.extend(reason.as_bytes());
    out
}

/// Frames at the edge of what the format allows, by what they stretch.
fn extreme(kind: u64, step: u64) -> Vec<u8> {
    let far = MAX_SECTION_ID;
    match kind {
        0 => (0..STREAMS)
            .flat_map(|stream| frame(FLOOR, &[stream, far]))
            .collect(),
        1 => (0..STREAMS)
            .flat_map(|stream| frame(END, &[stream, far]))
            .collect(),
        2 => (0..100)
            .flat_map(|at| [frame(DROP, &[0, at * 10 + step]), vec![0]].concat())
            .collect(),
        3 => frame(CREDIT, &[0, 1]),
        4 => frame(CREDIT, &[(1 << 62) - 1, 65_536]),
        // A section as long as the format allows, and its last byte first.
        5 => section(0, step, MAX_SECTION as u64 - 1, MAX_SECTION as u64, &[7]),
        6 => {
            let mut out = frame(SECTION | HAS_LENGTH, &[0, step, 0, 0, 1]);
            put(&mut out, &[MAX_TIME_US, MAX_TIME_US, 1]);
            out.push(7);
            out
        }
        7 => {
            // Counters at their ends, and a clock that stands still.
            let mut out = frame(RECEIVER_REPORT, &[(1 << 62) - 1; 7]);
            put(&mut out, &[1 << 53, 1 << 53, 1 << 52, (1 << 62) - 1]);
            put(&mut out, &[2_000_000_000]);
            out
        }
        8 => [vec![FEEDBACK, 1], vec![0xff; 2]].concat(),
        9 => (0..120)
            .flat_map(|at| [&[PATH_CHALLENGE][..], &[at as u8; 8]].concat())
            .collect(),
        10 => vec![0; PAYLOAD],
        // The most ranges that an Ack may have, of packets long since acknowledged or never sent.
        _ => {
            let mut out = frame(ACK, &[300 + step, 0]);
            out.extend([0; 4]);
            put(&mut out, &[127, 0]);
            for _ in 0..127 {
                put(&mut out, &[0, 0]);
            }
            out
        }
    }
}

impl Script {
    pub(crate) fn named(name: Name, connection: u64) -> Self {
        Self {
            name,
            connection,
            step: 0,
            acked: None,
            frames: 0,
            arrived: BTreeMap::new(),
            received: 0,
            round: None,
            random: Xoshiro256PlusPlus::seed_from_u64(connection),
        }
    }

    pub(crate) fn silent() -> Self {
        Self::named(Name::Silent, 0)
    }

    /// The number of frames so far, where that is the point.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    fn steps(&self) -> u64 {
        match self.name {
            Name::Floors | Name::Floor | Name::Section | Name::Close => 1,
            Name::EarlyAck => 1,
            Name::Fragments => STREAMS * SECTIONS * PIECES,
            Name::Extreme => EXTREMES,
            Name::Random => RANDOM_PACKETS,
            Name::AllAcked | Name::HiddenLoss | Name::FalseCount | Name::NoLossEvents => u64::MAX,
            Name::Lossy | Name::ManyAcks => u64::MAX,
            Name::Challenges => CHALLENGES,
            Name::FalseClock => CHALLENGED + 2,
            Name::Fill => FILLED * LONG / PIECE,
            Name::FarDeadline => 2,
            Name::Tables => 2 + u64::from(TABLES) + UNITS,
            Name::Silent => 0,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.step >= self.steps()
    }

    /// Whether so many packets leave that the other end would lose them at its socket.
    pub(crate) fn is_paced(&self) -> bool {
        matches!(self.name, Name::Fragments | Name::Fill | Name::Tables)
    }

    /// The time between two of its packets, if that matters.
    pub(crate) fn interval(&self) -> Span {
        match self.name {
            Name::ManyAcks | Name::Challenges => Span::from_millis(1),
            Name::FalseClock => Span::from_millis(50),
            _ => Span::ZERO,
        }
    }

    /// The departure that the next packet states.
    pub(crate) fn departure(&self, now: Time) -> Stamp {
        match (self.name, self.step) {
            (Name::FalseClock, 0) => Stamp::of(now + SET_BACK),
            (Name::FalseClock, _) => Stamp::of(now),
            _ => Stamp::from_micros(0),
        }
    }

    /// The next payload. `largest` is the highest number that came from the peer.
    pub(crate) fn next(&mut self, largest: Option<u64>) -> Option<Vec<u8>> {
        if self.is_done() {
            return None;
        }
        let step = self.step;
        let payload = match self.name {
            Name::Silent => return None,
            Name::Floors => (1..=64)
                .flat_map(|at| frame(FLOOR, &[0, at << 20]))
                .collect(),
            Name::Floor => frame(FLOOR, &[0, 5_000]),
            Name::Section => section(0, 0, 0, 4, b"abcd"),
            Name::Close => close(APPLICATION, ESCAPES),
            Name::Extreme => extreme(self.connection % 12, step),
            Name::EarlyAck => ack(ACK, &[(0, largest? + 1_000)]),
            Name::AllAcked => {
                let largest = largest.filter(|_| largest > self.acked)?;
                self.acked = Some(largest);
                ack(ACK, &[(0, largest)])
            }
            Name::HiddenLoss | Name::FalseCount | Name::NoLossEvents | Name::Lossy => {
                let largest = largest.filter(|_| largest > self.acked)?;
                self.acked = Some(largest);
                [self.proved(), self.report()].concat()
            }
            Name::ManyAcks => self.many_acks()?,
            Name::Challenges => challenge(step),
            Name::FalseClock => match step {
                0 => half(0),
                step if step <= CHALLENGED => [self.proved(), challenge(step)].concat(),
                _ => half(1),
            },
            Name::Fill => {
                let (number, piece) = (step / (LONG / PIECE), step % (LONG / PIECE));
                section(0, number, piece * PIECE, LONG, &[7; PIECE as usize])
            }
            Name::FarDeadline => match step {
                0 => far(),
                _ => close(APPLICATION, ""),
            },
            Name::Tables => media(step),
            Name::Random => self.random(),
            Name::Fragments => return Some(self.fragments()),
        };
        self.step += 1;
        Some(payload)
    }

    /// A packet came, with this token.
    pub(crate) fn on_packet(&mut self, number: u64, token: u8) {
        // One packet in so many is lost.
        let (is_hidden, one_in) = match self.name {
            Name::HiddenLoss => (true, 20),
            Name::NoLossEvents | Name::Lossy => (false, 20),
            Name::ManyAcks => (false, 2),
            Name::FalseCount | Name::FalseClock => (false, u64::MAX),
            _ => return,
        };
        self.received += 1;
        let is_lost = self.received.is_multiple_of(one_in);
        if is_lost && !is_hidden {
            return;
        }
        // Once the peer has accepted a guess, it is as good as the token.
        let token = match is_lost {
            true => self.random.next_u64() as u8,
            false => token,
        };
        self.frames += u64::from(is_lost);
        self.arrived.insert(number, token & PROOF_MASK);
    }

    /// An Ack frame with a proof for the newest packets that were sent.
    fn proved(&self) -> Vec<u8> {
        let mut ranges = Vec::new();
        let mut proof = 0;
        for (&number, token) in self.arrived.iter().rev() {
            if !add(&mut ranges, number, 60) {
                break;
            }
            proof ^= token;
        }
        ack(PROVED_ACK | proof << 1, &ranges)
    }

    /// Ack frames with many ranges, in turn for all packets that arrived.
    fn many_acks(&mut self) -> Option<Vec<u8>> {
        let arrived: Vec<u64> = self.arrived.keys().rev().copied().collect();
        let parts: Vec<&[u64]> = arrived.chunks(RANGES).collect();
        let mut out = Vec::new();
        for _ in 0..ACKS {
            let part = parts.get(self.frames as usize % parts.len().max(1))?;
            let mut ranges = Vec::new();
            for &number in *part {
                add(&mut ranges, number, RANGES);
            }
            out.extend(ack(ACK, &ranges));
            self.frames += 1;
        }
        Some(out)
    }

    /// A packet has the tag of this round.
    pub(crate) fn on_round(&mut self, round: u32) {
        self.round = Some(round);
    }

    /// A Feedback frame that is not true.
    fn report(&mut self) -> Vec<u8> {
        let out = match (self.name, self.round) {
            (Name::FalseCount, Some(round)) => {
                let mut out = vec![FEEDBACK, 3];
                out.extend(round.to_be_bytes());
                out.extend(100_000_u32.to_be_bytes());
                out
            }
            (Name::NoLossEvents, _) => {
                let mut out = vec![FEEDBACK, 2];
                out.extend(0_f64.to_bits().to_be_bytes());
                put(&mut out, &[MODEST]);
                out
            }
            _ => return Vec::new(),
        };
        self.frames += 1;
        out
    }

    fn fragments(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        while out.len() < PAYLOAD && !self.is_done() {
            let (piece, rest) = (self.step % PIECES, self.step / PIECES);
            let (number, stream) = (rest % SECTIONS, rest / SECTIONS);
            out.extend(section(stream, number, 2 * piece, TOTAL, &[7]));
            self.step += 1;
            self.frames += 1;
        }
        out
    }

    fn random(&mut self) -> Vec<u8> {
        let mut payload = match self.random.next_u64() % 3 {
            0 => {
                let mut noise = vec![0; 1 + self.random.next_u64() as usize % PAYLOAD];
                self.random.fill_bytes(&mut noise);
                return noise;
            }
            1 => extreme(self.random.next_u64() % 12, self.step),
            _ => section(
                self.random.next_u64() % STREAMS,
                self.step,
                0,
                8,
                b"deadline",
            ),
        };
        for _ in 0..=self.random.next_u64() % 3 {
            let at = self.random.next_u64() as usize % payload.len();
            payload[at] = self.random.next_u64() as u8;
        }
        payload
    }
}
