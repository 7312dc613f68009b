//! What a hostile peer sends: payloads of Data packets without their departure.

use std::collections::BTreeMap;

use clap::ValueEnum;
use comity_transport::wire::frame::PROOF_MASK;
use comity_transport::wire::limits::{MAX_SECTION, MAX_SECTION_ID, MAX_TIME_US};
use comity_transport::wire::varint;
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
    heard: BTreeMap<u64, u8>,
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

/// An Ack frame for all packets up to `largest`.
fn ack(largest: u64) -> Vec<u8> {
    let mut out = frame(ACK, &[largest, 0]);
    out.extend([0; 4]);
    put(&mut out, &[0, largest]);
    out
}

/// A Section frame without a deadline: section `number` of `stream`, `data` at `offset`.
fn section(stream: u64, number: u64, offset: u64, total: u64, data: &[u8]) -> Vec<u8> {
    let length = data.len() as u64;
    let numbers = [stream, number, 0, offset, total, 0, 0, length];
    let mut out = frame(SECTION | HAS_LENGTH, &numbers);
    out.extend(data);
    out
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
            heard: BTreeMap::new(),
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
            Name::AllAcked | Name::HiddenLoss => u64::MAX,
            Name::Silent => 0,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.step >= self.steps()
    }

    /// Whether so many packets leave that the other end would lose them at its socket.
    pub(crate) fn is_paced(&self) -> bool {
        self.name == Name::Fragments
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
            Name::EarlyAck => ack(largest? + 1_000),
            Name::AllAcked => {
                let largest = largest.filter(|_| largest > self.acked)?;
                self.acked = Some(largest);
                ack(largest)
            }
            Name::HiddenLoss => {
                let largest = largest.filter(|_| largest > self.acked)?;
                self.acked = Some(largest);
                self.proved()
            }
            Name::Random => self.random(),
            Name::Fragments => return Some(self.fragments()),
        };
        self.step += 1;
        Some(payload)
    }

    /// A packet came, with this token.
    pub(crate) fn on_packet(&mut self, number: u64, token: u8) {
        if self.name != Name::HiddenLoss {
            return;
        }
        let is_lost = self.heard.len() % 20 == 19;
        // Once the peer has accepted a guess, it is as good as the token.
        let token = match is_lost {
            true => self.random.next_u64() as u8,
            false => token,
        };
        self.frames += u64::from(is_lost);
        self.heard.insert(number, token & PROOF_MASK);
    }

    /// An Ack frame with a proof for the newest packets that were sent.
    fn proved(&self) -> Vec<u8> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        let mut proof = 0;
        for (&number, token) in self.heard.iter().rev() {
            let is_full = ranges.len() == 60;
            match ranges.last_mut() {
                Some((first, _)) if *first == number + 1 => *first = number,
                _ if is_full => break,
                _ => ranges.push((number, number)),
            }
            proof ^= token;
        }
        let Some(&(first, last)) = ranges.first() else {
            return Vec::new();
        };
        let mut out = frame(PROVED_ACK | proof << 1, &[last, 0]);
        out.extend([0; 4]);
        put(&mut out, &[ranges.len() as u64 - 1, last - first]);
        for pair in ranges.windows(2) {
            let (above, (first, last)) = (pair[0].0, pair[1]);
            put(&mut out, &[above - last - 2, last - first]);
        }
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
