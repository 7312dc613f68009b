//! Two ends and a path between them, in virtual time.

use std::collections::BTreeMap;
use std::fmt;

use comity_tcp::timeline::Piece;
use comity_tcp::{Connection, Flags, Options, Segment};
use comity_units::{DataSize, Rate, SeqNo, Span, Time};

use super::notation::render;

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The first end.
    A,
    /// The second end.
    B,
}

impl Side {
    /// The other end.
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    const fn index(self) -> usize {
        self as usize
    }
}

/// The path's treatment of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives after the path's delay.
    Arrives,
    /// It arrives this much later: later segments may overtake it.
    Late(Span),
    /// It is lost.
    Lost,
    /// It arrives, and a duplicate of it this much later.
    Twice(Span),
    /// It arrives without its options, as after a middlebox that removes them; a SYN keeps them.
    Stripped,
}

/// Decides the fate of the segment with this index.
type Judge = Box<dyn FnMut(u32, &Segment) -> Fate>;

/// Changes a segment on its way.
type Rewrite = Box<dyn FnMut(&mut Segment)>;

/// A path in one direction.
pub struct Path {
    delay: Span,
    rate: Option<Rate>,
    judge: Judge,
    rewrite: Option<Rewrite>,
    judged: u32,
    idle_at: Time,
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Path")
            .field("delay", &self.delay)
            .field("judged", &self.judged)
            .finish_non_exhaustive()
    }
}

impl Path {
    /// A path on which every segment takes `delay`.
    pub fn new(delay: Span) -> Self {
        Self::judged_by(delay, |_, _| Fate::Arrives)
    }

    /// A path on which `judge` decides the fate of each segment; segments are counted from 0.
    pub fn judged_by(delay: Span, judge: impl FnMut(u32, &Segment) -> Fate + 'static) -> Self {
        Self {
            delay,
            rate: None,
            judge: Box::new(judge),
            rewrite: None,
            judged: 0,
            idle_at: Time::ZERO,
        }
    }

    /// A path that loses the segments with these sequence numbers and payload once each.
    pub fn losing(delay: Span, sequences: &[u32]) -> Self {
        let mut pending = sequences.to_vec();
        Self::judged_by(delay, move |_, segment| {
            let hit = pending
                .iter()
                .position(|&sequence| segment.payload > 0 && segment.sequence.get() == sequence);
            match hit {
                Some(at) => {
                    pending.swap_remove(at);
                    Fate::Lost
                }
                None => Fate::Arrives,
            }
        })
    }

    /// A path that applies a list of disturbances, and then delivers everything.
    pub fn chaotic(delay: Span, chaos: Chaos) -> Self {
        Self::judged_by(delay, move |index, _| {
            let fate = chaos.0.get(index as usize);
            fate.copied().unwrap_or(Fate::Arrives)
        })
    }

    /// Adds a transmission time: payload and 40 bytes at `rate`, and an unlimited queue.
    #[must_use]
    pub fn with_rate(self, rate: Rate) -> Self {
        Self {
            rate: Some(rate),
            ..self
        }
    }

    /// Adds a change of each segment, such as that of an end that lies.
    #[must_use]
    pub fn rewritten_by(self, rewrite: impl FnMut(&mut Segment) + 'static) -> Self {
        Self {
            rewrite: Some(Box::new(rewrite)),
            ..self
        }
    }

    /// When the transmissions of a segment that leaves at `now` arrive.
    fn arrivals(&mut self, now: Time, segment: &Segment) -> (Fate, Vec<Time>) {
        let fate = (self.judge)(self.judged, segment);
        self.judged += 1;
        let on_wire = self.rate.map_or(Span::ZERO, |rate| {
            rate.transmission_time(DataSize::new(u64::from(segment.payload) + 40))
        });
        self.idle_at = self.idle_at.max(now) + on_wire;
        let at = self.idle_at + self.delay;
        let arrivals = match fate {
            Fate::Arrives | Fate::Stripped => vec![at],
            Fate::Late(more) => vec![at + more],
            Fate::Lost => vec![],
            Fate::Twice(more) => vec![at, at + more],
        };
        (fate, arrivals)
    }
}

/// Disturbances of the first segments of a path, one for each. They are finite, so everything
/// arrives in the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chaos(pub Vec<Fate>);

/// A segment that left an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it left.
    pub at: Time,
    /// The end that sent it.
    pub from: Side,
    /// The segment.
    pub segment: Segment,
    /// Its fate.
    pub fate: Fate,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            at,
            from,
            segment,
            fate,
        } = self;
        write!(f, "{at} {from:?} {}", render(segment))?;
        match fate {
            Fate::Arrives => Ok(()),
            fate => write!(f, "  [{fate:?}]"),
        }
    }
}

/// The highest window edge that was offered to an end, parsed from the wire independently of the
/// end's code.
#[derive(Clone, Copy, Debug)]
struct Offered {
    edge: SeqNo,
    /// The shift of windows on the wire in bits.
    scale: u8,
    is_known: bool,
}

/// Two connections, a path in each direction, and a clock that jumps from event to event.
///
/// While it runs, it checks invariants of every transmission with any configuration:
/// * no payload exceeds the highest window edge that ever reached its sender. In a time-lined
///   stream, windows exclude jumps, so its test must check this;
/// * the window edge that an end offers moves left by less than a unit of its scale;
/// * no unsent data is acknowledged;
/// * no timer repeatedly requests a wake-up at the same moment.
#[derive(Debug)]
pub struct Pair {
    ends: [Connection; 2],
    paths: [Path; 2],
    now: Time,
    in_network: BTreeMap<(Time, u64), (Side, Segment)>,
    sent: u64,
    /// Whether the applications read arriving data at once.
    reads: [bool; 2],
    /// The pieces that they read.
    pieces: [Vec<Piece>; 2],
    offered_to: [Offered; 2],
    /// The highest edge on the wire of each end.
    offered_by: [Option<SeqNo>; 2],
    /// The number after the highest one that each end sent.
    highest: [Option<SeqNo>; 2],
    records: Vec<Record>,
    on_step: Option<fn(&Connection, &Record)>,
}

/// This many steps at one moment are a loop.
const MAX_STEPS_AT_ONCE: u32 = 10_000;

impl Pair {
    /// Joins two ends, `forward` from `a` to `b` and `back` from `b` to `a`.
    pub fn new(a: Connection, b: Connection, forward: Path, back: Path) -> Self {
        // Without a handshake, both ends have each other's buffer size from the beginning.
        let born = |end: &Connection, other: &Connection| {
            let config = other.config();
            let buffer = config.receive_buffer.get();
            let scale = if config.window_scaling {
                (0..14)
                    .find(|scale| buffer >> scale <= 65_535)
                    .unwrap_or(14)
            } else {
                0
            };
            let unit = 1 << scale;
            let window = buffer.div_ceil(unit).min(65_535) * unit;
            Offered {
                edge: end.config().initial_sequence + 1 + window as u32,
                scale,
                is_known: end.is_synchronized(),
            }
        };
        Self {
            offered_to: [born(&a, &b), born(&b, &a)],
            ends: [a, b],
            paths: [forward, back],
            now: Time::ZERO,
            in_network: BTreeMap::new(),
            sent: 0,
            reads: [true; 2],
            pieces: [Vec::new(), Vec::new()],
            offered_by: [None; 2],
            highest: [None; 2],
            records: Vec::new(),
            on_step: None,
        }
    }

    /// The clock.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The end at `side`.
    pub fn end(&self, side: Side) -> &Connection {
        &self.ends[side.index()]
    }

    /// Whether the application at `side` reads arriving data at once (the default) or not at all.
    pub fn set_reads(&mut self, side: Side, reads: bool) {
        self.reads[side.index()] = reads;
    }

    /// The pieces that the application at `side` read, in order.
    pub fn pieces(&self, side: Side) -> &[Piece] {
        &self.pieces[side.index()]
    }

    /// Calls `check` after each transmission with the sending end and the segment.
    pub fn check_each(&mut self, check: fn(&Connection, &Record)) {
        self.on_step = Some(check);
    }

    /// Lets the application at `side` act now.
    pub fn call<R>(&mut self, side: Side, act: impl FnOnce(&mut Connection) -> R) -> R {
        let result = act(&mut self.ends[side.index()]);
        self.pump(side);
        result
    }

    /// A forged segment reaches `side` now.
    pub fn forge(&mut self, side: Side, segment: &Segment) {
        self.arrive(side, segment);
    }

    /// All transmissions so far.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The payload segments of `from`, as milliseconds and segment number, counted from 1 in
    /// segments of `mss`.
    pub fn sent_segments(&self, from: Side, mss: u32) -> Vec<(u64, u32)> {
        let first = self.end(from).config().initial_sequence + 1;
        self.records
            .iter()
            .filter(|record| record.from == from && record.segment.payload > 0)
            .map(|record| {
                let offset = record.segment.sequence.distance_from(first).unsigned_abs();
                (record.at.as_nanos() / 1_000_000, offset / mss + 1)
            })
            .collect()
    }

    /// The payload segments of `from`, grouped by departure time: `(ms, segments)`.
    pub fn flights(&self, from: Side, mss: u32) -> Vec<(u64, Vec<u32>)> {
        let mut flights: Vec<(u64, Vec<u32>)> = Vec::new();
        for (at, segment) in self.sent_segments(from, mss) {
            match flights.last_mut() {
                Some((last, segments)) if *last == at => segments.push(segment),
                _ => flights.push((at, vec![segment])),
            }
        }
        flights
    }

    /// Runs until nothing is in flight and no timer is set, or until the next event would be after
    /// `until`. Returns whether the pair is idle.
    pub fn drive(&mut self, until: Time) -> bool {
        self.pump(Side::A);
        self.pump(Side::B);
        let mut steps_at_once = 0;
        loop {
            let arrival = self.in_network.keys().next().copied();
            let timer = |side: Side| (self.end(side).next_timer().max(self.now), side);
            let (timer_at, timer_side) = timer(Side::A).min(timer(Side::B));
            let next = arrival.map_or(Time::MAX, |(at, _)| at).min(timer_at);
            if next.is_never() {
                return true;
            }
            if next > until {
                self.now = self.now.max(until);
                return false;
            }
            steps_at_once = if next > self.now {
                0
            } else {
                steps_at_once + 1
            };
            assert!(
                steps_at_once < MAX_STEPS_AT_ONCE,
                "events without end at {next}\n{}",
                self.transcript()
            );
            self.now = next;
            match arrival {
                Some(key) if key.0 <= timer_at => {
                    if let Some((side, segment)) = self.in_network.remove(&key) {
                        self.arrive(side, &segment);
                    }
                }
                _ => {
                    self.ends[timer_side.index()].on_timer(next);
                    self.pump(timer_side);
                }
            }
        }
    }

    /// The last transmissions, one a line.
    pub fn transcript(&self) -> String {
        let skip = self.records.len().saturating_sub(60);
        self.records
            .iter()
            .skip(skip)
            .map(|record| format!("{record}\n"))
            .collect()
    }

    fn arrive(&mut self, side: Side, segment: &Segment) {
        self.note_offer_to(side, segment);
        let now = self.now;
        let end = &mut self.ends[side.index()];
        end.on_segment(now, segment);
        if self.reads[side.index()] {
            let read = core::iter::from_fn(|| end.read_piece(u64::MAX));
            self.pieces[side.index()].extend(read);
        }
        self.pump(side);
    }

    fn pump(&mut self, side: Side) {
        let now = self.now;
        let mut count = 0;
        while let Some(segment) = self.ends[side.index()].poll_transmit(now) {
            count += 1;
            assert!(
                count < MAX_STEPS_AT_ONCE,
                "segments without end at {now}\n{}",
                self.transcript()
            );
            self.check_sent(side, &segment);
            let (fate, arrivals) = self.paths[side.index()].arrivals(now, &segment);
            let mut arriving = segment;
            if fate == Fate::Stripped && !segment.flags.contains(Flags::SYN) {
                arriving.options = Options::default();
            }
            if let Some(rewrite) = &mut self.paths[side.index()].rewrite {
                rewrite(&mut arriving);
            }
            for at in arrivals {
                self.sent += 1;
                self.in_network
                    .insert((at, self.sent), (side.other(), arriving));
            }
            let record = Record {
                at: now,
                from: side,
                segment,
                fate,
            };
            self.records.push(record);
            if let Some(check) = self.on_step {
                check(self.end(side), &record);
            }
        }
    }

    /// Parses the window that the peer offers from a segment that arrives at `side`.
    fn note_offer_to(&mut self, side: Side, segment: &Segment) {
        let is_syn = segment.flags.contains(Flags::SYN);
        let is_scaled = self.end(side).config().window_scaling;
        let offered = &mut self.offered_to[side.index()];
        if is_syn {
            offered.scale = if is_scaled {
                segment.options.window_scale.unwrap_or(0)
            } else {
                0
            };
        }
        if segment.flags.contains(Flags::ACK) {
            let scale = if is_syn { 0 } else { offered.scale };
            let edge = segment.acknowledgement + (u32::from(segment.window) << scale);
            offered.edge = if offered.is_known {
                offered.edge.latest(edge)
            } else {
                edge
            };
            offered.is_known = true;
        }
    }

    fn check_sent(&mut self, side: Side, segment: &Segment) {
        let offered = self.offered_to[side.index()];
        let payload_end = segment.sequence + segment.payload;
        assert!(
            segment.payload == 0
                || segment.options.seq_update.is_some()
                || (offered.is_known && !payload_end.follows(offered.edge)),
            "{} {side:?} sends {} beyond the edge {}\n{}",
            self.now,
            render(segment),
            offered.edge,
            self.transcript()
        );
        if segment.flags.contains(Flags::RST) {
            return;
        }
        // Bytes skipped by a jump count as sent.
        let end = match segment.options.seq_update {
            Some(update) => segment.sequence_end().latest(update.expected),
            None => segment.sequence_end(),
        };
        let highest = &mut self.highest[side.index()];
        *highest = Some(highest.map_or(end, |highest| highest.latest(end)));
        if !segment.flags.contains(Flags::ACK) {
            return;
        }
        let peers = self.highest[side.other().index()]
            .unwrap_or(self.end(side.other()).config().initial_sequence + 1);
        assert!(
            !segment.acknowledgement.follows(peers),
            "{} {side:?} acknowledges what was never sent: {}\n{}",
            self.now,
            render(segment),
            self.transcript()
        );
        let scale = if segment.flags.contains(Flags::SYN) {
            0
        } else {
            self.offered_to[side.other().index()].scale
        };
        let edge = segment.acknowledgement + (u32::from(segment.window) << scale);
        let before = self.offered_by[side.index()];
        let rounding = (1 << scale) - 1;
        assert!(
            before.is_none_or(|before| !edge.precedes(before.back(rounding))),
            "{} {side:?} takes back its window: {} after {before:?}\n{}",
            self.now,
            render(segment),
            self.transcript()
        );
        self.offered_by[side.index()] = Some(before.map_or(edge, |before| before.latest(edge)));
    }
}
