//! Makes layouts from packets and from the sections that contain their bytes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use comity_frames::{FrameType, Importance};
use comity_units::{Span, Time};

use super::format;
use super::lane::{Found, Lane};
use super::model::{
    CARRIED, DAMAGED, LAYOUTS, Layout, MAX_PACKETS, MAX_PIDS, Made, Null, Packet, Run, SCRAMBLED,
    STEP_SHIFT, SectionRef,
};
use super::packet::{self, CLOCK_WRAP, Parts};
use crate::allowance::Expected;
use crate::header::{Header, PACKET};
use crate::section::{Event, MediaSection, MissingUnit};

/// A layout covers at least `SHORT` and `FEW` packets other than null packets, or else `LONG` or
/// the maximum number of packets. A layout costs as much as the headers of a few packets.
const SHORT: Span = Span::from_millis(20);
const FEW: usize = 32;
const LONG: Span = Span::from_millis(80);

/// How long packets of a stored source wait for the sections of their bytes, and how many may wait.
/// Beyond these limits, they are carried whole.
const PATIENCE: Span = Span::from_secs(3);
const MAX_PENDING: usize = 65_536;

/// How long the packets of a live source wait for sections other than pictures: as long as a layout
/// lasts. Then they are carried whole, and their bytes are sent twice.
const BRIEF: Span = LONG;

/// The same for pictures, and for large units. At a low constant rate, many key pictures take 150
/// to 500 ms, and a shorter limit would send them twice. A receiver spaces its datagrams evenly if
/// they are late at times by no more than this.
const SLOW: Span = Span::from_millis(500);

/// A unit with more waiting bytes than this is worth waiting for, up to [`SLOW`]: it arrives at
/// 0.8 Mb/s or more, as pictures of unknown kinds do and sound does not.
const LARGE: u64 = 8 << 10;

/// A layout ends when it has this many bytes outside of packets.
const MUCH_OUTSIDE: usize = 64 << 10;

/// The maximum number of carried packets in a section, which limits the cost of losing one.
const MAX_CARRIED: usize = 64;

/// The sections that are made from a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Usage {
    /// None. If the packet is carried, it is carried in this stream.
    None { carried_in: u16 },
    /// None: the packet is a copy of its stream's previous packet.
    Duplicate,
    /// Access units, such as pictures. If `is_open`, more of the last one may follow.
    Units { are_pictures: bool, is_open: bool },
    /// Tables. The last `held` bytes of the packet belong to an incomplete one. If the packet is
    /// carried, it is carried in this stream.
    Tables { held: usize, carried_in: u16 },
}

impl Usage {
    const fn are_pictures(self) -> bool {
        matches!(
            self,
            Self::Units {
                are_pictures: true,
                ..
            }
        )
    }
}

/// An access unit that is not sent: its number in the stream, and the payload that it would have
/// had.
#[derive(Debug)]
pub(crate) struct DroppedUnit {
    pub(crate) stream: u16,
    pub(crate) number: u64,
    pub(crate) payload: Bytes,
}

/// A packet that waits for its sections.
#[derive(Debug)]
struct Pending {
    bytes: [u8; PACKET],
    usage: Usage,
    parts: Option<Parts>,
    /// The range of its bytes in its lane, and the number of header bytes before them in the
    /// packet.
    from: u64,
    to: u64,
    prefix: usize,
    since: Time,
    /// The bytes of the source before the packet that belong to no packet.
    outside: Vec<u8>,
}

/// A packet whose sections are known.
#[derive(Debug)]
enum Ready {
    Described(Packet),
    Whole {
        bytes: [u8; PACKET],
        pid: u16,
        carried_in: u16,
        /// Whether the section is sent, rather than reported as missing.
        is_sent: bool,
    },
}

/// Describes the packets of a transport stream by the sections that a reader makes of them.
///
/// It compares the bytes of each packet with those of the sections, and reassembles the packet. If
/// the result differs from the packet, the packet is carried whole, in a section of such packets.
/// Layouts are therefore exact, whatever the reader dropped.
#[derive(Debug, Default)]
pub(crate) struct Arranger {
    pending: VecDeque<Pending>,
    lanes: BTreeMap<u16, Lane>,
    /// The PIDs whose latest packet contains parts of units that are not sent.
    unsent: BTreeSet<u16>,
    /// The sections of the present packet.
    found: Vec<(u16, Found)>,
    /// When the most recently found sections began to arrive: their stream, number and time.
    begun: Vec<(u16, u16, Time)>,
    /// The bytes outside of packets before the next packet.
    outside: Vec<u8>,
    ready: Vec<Ready>,
    /// The bytes outside of packets before the ready packets, and their number.
    ready_outside: BTreeMap<usize, Vec<u8>>,
    outside_bytes: usize,
    /// The number of ready packets other than null packets.
    filled: usize,
    /// Their PIDs.
    pids: BTreeSet<u16>,
    /// When the first and the last ready packet arrived.
    began: Option<Time>,
    ended: Time,
    /// The earliest source time of the sections that begin in the ready packets.
    due: Option<Time>,
    /// The source time of the latest layout.
    latest: Time,
    /// The arrival of the latest bytes of a live source.
    arrival: Option<Time>,
    rate: RateMeter,
    expected: Expected,
    index: u64,
    /// The next number in each stream.
    numbers: BTreeMap<u16, u64>,
}

impl Arranger {
    /// Announces layouts, as the first section of the tables. From then on, a receiver waits for
    /// layouts.
    pub(crate) fn announce(&mut self, events: &mut VecDeque<Event>) {
        self.latest = self.arrival.unwrap_or(self.latest);
        self.layout(super::model::TABLES, &Layout::default(), events);
    }

    /// Sets the arrival time of the next bytes of a live source.
    pub(crate) const fn arrive(&mut self, arrival: Option<Time>) {
        self.arrival = arrival;
    }

    /// Handles a silence of a live source: packets no longer wait for others.
    pub(crate) fn on_silence(&mut self, events: &mut VecDeque<Event>) {
        self.describe_all(events);
        if self.began.is_some() {
            self.cut(false, events);
        }
    }

    /// Handles a break that is as long as a reader searches. In a live source it may never end, so
    /// its bytes do not wait for a packet.
    pub(crate) fn on_long_break(&mut self, events: &mut VecDeque<Event>) {
        let Some(arrival) = self.arrival else { return };
        self.describe_all(events);
        self.ended = self.ended.max(arrival);
        let outside = core::mem::take(&mut self.outside);
        self.add_outside(outside);
        self.cut(false, events);
    }

    /// Describes all waiting packets. Their sections must have been added.
    fn describe_all(&mut self, events: &mut VecDeque<Event>) {
        self.find();
        while let Some(pending) = self.pending.pop_front() {
            self.describe(pending);
            if self.is_full() {
                self.cut(false, events);
            }
        }
    }

    /// Adds a table of this PID that ends in the next packet, or an equal table that was sent
    /// before, with the number and the payload of its section.
    pub(crate) fn table(&mut self, pid: u16, number: u64, payload: &Bytes, source_time: Time) {
        if let Ok((Header::Table { .. }, content)) = Header::decode(payload) {
            let found = Found {
                section: SectionRef::new(super::model::TABLES, number, payload, content.len()),
                unit: None,
                content: payload.slice_ref(content),
                source_time,
                is_sent: true,
            };
            self.found.push((pid, found));
        }
    }

    /// Adds the access units among these events, and the `dropped` units that the events report as
    /// missing.
    pub(crate) fn units<'a>(
        &mut self,
        events: impl Iterator<Item = &'a Event>,
        dropped: &[DroppedUnit],
    ) {
        for event in events {
            let (stream, number, source_time, payload) = match event {
                Event::Section(section) => {
                    let MediaSection { stream, number, .. } = *section;
                    self.expected.0.earn(section.payload.len());
                    (stream, number, section.source_time, Some(&section.payload))
                }
                Event::Missing(missing) => {
                    let is_it = |unit: &&DroppedUnit| {
                        (unit.stream, unit.number) == (missing.stream, missing.number)
                    };
                    let payload = dropped.iter().find(is_it).map(|unit| &unit.payload);
                    (missing.stream, missing.number, missing.source_time, payload)
                }
                Event::Notice(_) => continue,
            };
            if let Some(payload) = payload
                && let Ok((Header::Unit(unit), content)) = Header::decode(payload)
            {
                let found = Found {
                    section: SectionRef::new(stream, number, payload, content.len()),
                    unit: Some(unit),
                    content: payload.slice_ref(content),
                    source_time,
                    is_sent: matches!(event, Event::Section(_)),
                };
                self.found.push((unit.pid, found));
            }
        }
    }

    /// Adds bytes of the source that belong to no packet.
    pub(crate) fn outside(&mut self, bytes: &[u8]) {
        self.outside.extend(bytes);
    }

    /// Adds a packet of the source, then locates the sections that were added before it.
    pub(crate) fn packet(&mut self, bytes: &[u8; PACKET], usage: Usage, now: Time) {
        let parts = Parts::of(bytes);
        let mut pending = Pending {
            bytes: *bytes,
            usage,
            parts,
            from: 0,
            to: 0,
            prefix: 0,
            since: now,
            outside: core::mem::take(&mut self.outside),
        };
        if let Some(parts) = &parts {
            if let Some(clock) = parts.clock(bytes) {
                self.rate.on_clock(self.index, parts.pid, clock);
            }
            let payload = parts.payload(bytes);
            pending.prefix = match usage {
                Usage::None { .. } | Usage::Duplicate => payload.len(),
                Usage::Tables { .. } => usize::from(parts.begins),
                Usage::Units { .. } if parts.begins => {
                    packet::pes_header_length(payload).unwrap_or(0)
                }
                Usage::Units { .. } => 0,
            };
            let own = payload.get(pending.prefix..).unwrap_or_default();
            if !own.is_empty() {
                let lane = self.lanes.entry(parts.pid).or_default();
                if parts.begins {
                    lane.try_again(now);
                }
                pending.from = lane.end();
                lane.push(own, now);
                pending.to = lane.end();
            }
        }
        self.index += 1;
        self.pending.push_back(pending);
        self.find();
        let unknown = match usage {
            Usage::Tables { held, .. } => held as u64,
            Usage::Units { is_open: false, .. } => 0,
            Usage::Units { .. } | Usage::None { .. } | Usage::Duplicate => return,
        };
        if let Some(lane) = parts.and_then(|parts| self.lanes.get_mut(&parts.pid)) {
            lane.know(lane.end().saturating_sub(unknown));
        }
    }

    /// Locates the added sections in the bytes of their PIDs.
    fn find(&mut self) {
        for (pid, found) in core::mem::take(&mut self.found) {
            let section = found.section;
            let lane = self.lanes.get_mut(&pid);
            if let Some(begun) = lane.and_then(|lane| lane.find(found)) {
                self.begun.push((section.stream, section.number, begun));
            }
        }
    }

    /// Sets the source times of a live source's sections to the arrival of their first packet. This
    /// concerns those of the events whose sections were located since the last call.
    pub(crate) fn date<'a>(&mut self, events: impl Iterator<Item = &'a mut Event>) {
        let begun = core::mem::take(&mut self.begun);
        if self.arrival.is_none() || begun.is_empty() {
            return;
        }
        for event in events {
            let (stream, number) = match event {
                Event::Section(section) => (section.stream, section.number),
                Event::Missing(missing) => (missing.stream, missing.number),
                Event::Notice(_) => continue,
            };
            let name = (stream, (number & 0xffff) as u16);
            let found = begun.iter().find(|&&(own, low, _)| (own, low) == name);
            if let Some(&(.., when)) = found {
                event.set_source_time(when);
            }
        }
    }

    /// Returns layouts of the packets whose sections are known.
    pub(crate) fn settle(&mut self, now: Time, events: &mut VecDeque<Event>) {
        while let Some(front) = self.pending.front() {
            let is_live = self.arrival.is_some();
            let is_late = now.saturating_since(front.since) >= self.patience(front);
            let lane = { front.parts }.and_then(|parts| self.lanes.get_mut(&parts.pid));
            if let Some(lane) = lane.filter(|lane| front.from < front.to && lane.known() < front.to)
            {
                if is_late && is_live && !front.usage.are_pictures() {
                    lane.slow_down(now);
                }
                if !is_late && !lane.is_slow() && self.pending.len() <= MAX_PENDING {
                    break;
                }
            }
            if let Some(pending) = self.pending.pop_front() {
                self.describe(pending);
            }
            let began = self.began.unwrap_or(self.ended);
            let lasted = self.ended.saturating_since(began);
            let is_enough = lasted >= SHORT && self.filled >= FEW;
            if is_enough || lasted >= LONG || self.is_full() {
                self.cut(false, events);
            }
        }
        // The packets of a live source wait no longer.
        let waits = self.began.map(|began| now.saturating_since(began));
        if self.arrival.is_some() && waits.is_some_and(|waits| waits >= SHORT) {
            self.cut(false, events);
        }
    }

    /// Whether a layout of the ready packets has no room for more.
    fn is_full(&self) -> bool {
        self.ready.len() >= MAX_PACKETS
            || self.pids.len() >= MAX_PIDS
            || self.outside_bytes >= MUCH_OUTSIDE
    }

    /// How long a packet waits for its sections.
    fn patience(&self, of: &Pending) -> Span {
        let is_large = |lane: &Lane| lane.end() - of.from > LARGE;
        match self.arrival.is_some() {
            false => PATIENCE,
            true if of.usage.are_pictures() || self.lane(of).is_some_and(is_large) => SLOW,
            true => BRIEF,
        }
    }

    /// When the packets of a live source have to be [settled](Self::settle), if nothing arrives
    /// before.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        self.arrival?;
        let first = { self.pending.front() }.map(|front| front.since + self.patience(front));
        let began = self.began.map(|began| began + SHORT);
        first.into_iter().chain(began).min()
    }

    /// Returns the layout of the remaining packets. Their sections must have been added.
    pub(crate) fn finish(&mut self, events: &mut VecDeque<Event>) {
        self.describe_all(events);
        let outside = core::mem::take(&mut self.outside);
        self.add_outside(outside);
        self.cut(true, events);
    }

    fn add_outside(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.outside_bytes += bytes.len();
            self.ready_outside.insert(self.ready.len(), bytes);
        }
    }

    fn describe(&mut self, mut pending: Pending) {
        let is_left_out = self.follow_unsent(&pending);
        if is_left_out && self.rate.step().is_none() {
            // Nothing replaces the packet, and the bytes before it are dropped too.
            return;
        }
        let outside = core::mem::take(&mut pending.outside);
        self.add_outside(outside);
        let pending = &pending;
        let is_described = match packet::null(&pending.bytes) {
            _ if is_left_out => Some(Packet::Null(Null::PLAIN)),
            // A packet that is carried whole pays for many that are not.
            Some(null) => {
                let is_allowed = self.expected.0.spend_null();
                is_allowed.then_some(Packet::Null(null))
            }
            None => {
                let made = self.made(pending, &pending.bytes);
                let made = made.filter(|made| {
                    let is_new = |run: &Run| run.section.stream != super::model::TABLES;
                    made.runs.iter().any(is_new) || self.expected.0.spend_repeat()
                });
                made.or_else(|| self.left_out(pending)).map(Packet::Made)
            }
        };
        self.began.get_or_insert(pending.since);
        self.ended = self.ended.max(pending.since);
        self.filled += usize::from(!matches!(is_described, Some(Packet::Null(_))));
        let ready = match is_described {
            Some(packet) => Ready::Described(packet),
            None => {
                let [_, high, low, ..] = pending.bytes;
                Ready::Whole {
                    bytes: pending.bytes,
                    pid: u16::from_be_bytes([high & 0x1f, low]),
                    carried_in: match pending.usage {
                        Usage::None { carried_in } | Usage::Tables { carried_in, .. } => carried_in,
                        Usage::Units { .. } if !self.is_understood(pending) => DAMAGED,
                        Usage::Duplicate => DAMAGED,
                        Usage::Units { .. } => CARRIED,
                    },
                    is_sent: self.is_sent(pending),
                }
            }
        };
        self.pids.extend(match &ready {
            Ready::Described(Packet::Null(_)) => None,
            Ready::Described(packet) => Some(packet.pid()),
            Ready::Whole { pid, .. } => Some(*pid),
        });
        self.ready.push(ready);
        if let Some(lane) = { pending.parts }.and_then(|parts| self.lanes.get_mut(&parts.pid))
            && pending.to > pending.from
        {
            lane.pass(pending.to);
        }
    }

    /// Whether the packet is omitted, because it is a copy of one with parts of units that are not
    /// sent.
    fn follow_unsent(&mut self, pending: &Pending) -> bool {
        let Some(parts) = pending.parts.filter(|parts| parts.has_payload) else {
            return false;
        };
        match pending.usage {
            Usage::Duplicate => return self.unsent.contains(&parts.pid),
            Usage::Units { .. } if !self.is_sent(pending) => self.unsent.insert(parts.pid),
            _ => self.unsent.remove(&parts.pid),
        };
        false
    }

    fn lane(&self, pending: &Pending) -> Option<&Lane> {
        self.lanes.get(&pending.parts?.pid)
    }

    /// Whether no byte of the packet may be wrong, and none is known to be in no section. The
    /// sections of a slow lane are not located.
    fn is_understood(&self, pending: &Pending) -> bool {
        let is_within = |lane: &Lane| {
            let runs = lane.runs(pending.from, pending.to);
            let length: usize = runs.iter().map(Run::len).sum();
            let is_known = !lane.is_slow() && lane.known() >= pending.to;
            !is_known || length as u64 == pending.to - pending.from
        };
        { pending.parts }.is_some_and(|parts| !parts.has_error)
            && self.lane(pending).is_none_or(is_within)
    }

    /// Whether all sections with bytes in the packet are sent.
    fn is_sent(&self, pending: &Pending) -> bool {
        let lane = self.lane(pending);
        lane.is_none_or(|lane| lane.is_sent(pending.from, pending.to))
    }

    /// Describes a packet that is marked as wrong and contains only parts of units that are not
    /// sent. It is described without the mark and without a clock reference. No receiver
    /// reassembles it, and it needs no missing section of its own.
    fn left_out(&mut self, pending: &Pending) -> Option<Made> {
        let lane = self.lane(pending)?;
        let runs = lane.runs(pending.from, pending.to);
        let mut found = runs.iter().map(|run| lane.section(run));
        if runs.is_empty() || found.any(|found| found.is_none_or(|found| found.is_sent)) {
            return None;
        }
        let mut made = self.made(pending, &packet::without_error(&pending.bytes))?;
        if let Some(field) = &mut made.field {
            (field.clock, field.flags) = (None, field.flags & !packet::CLOCK);
        }
        Some(made)
    }

    /// The description of the packet by parts of sections, if it reproduces these bytes.
    fn made(&mut self, pending: &Pending, bytes: &[u8; PACKET]) -> Option<Made> {
        let parts = pending.parts?;
        let is_carried =
            matches!(pending.usage, Usage::None { .. } | Usage::Duplicate) && parts.has_payload;
        if is_carried {
            return None;
        }
        let none = Lane::default();
        let lane = self.lanes.get(&parts.pid).unwrap_or(&none);
        let runs = lane.runs(pending.from, pending.to);
        let first = { runs.iter().filter(|run| run.from == 0) }
            .filter_map(|run| lane.section(run))
            .next();
        let unit = first.and_then(|found| found.unit.as_ref());
        let content = |run: &Run| {
            let range = run.from as usize..run.to as usize;
            lane.section(run)?.content.get(range)
        };
        let is_table = matches!(pending.usage, Usage::Tables { .. });
        let prefix = (pending.prefix, is_table);
        let made = packet::take_apart(bytes, prefix, runs, unit, content)?;
        if let Some(first) = first {
            let due = self.due.unwrap_or(first.source_time);
            self.due = Some(due.min(first.source_time));
        }
        Some(made)
    }

    /// Returns a layout, after the sections with the packets that it carries whole.
    fn cut(&mut self, is_last: bool, events: &mut VecDeque<Event>) {
        let due = self.due.take().unwrap_or(self.ended);
        let began = self.began.take().filter(|_| self.arrival.is_some());
        self.latest = self.latest.max(began.unwrap_or(due));
        let step = self.rate.step();
        let lasted = began.filter(|_| step.is_none()).map(|began| {
            let lasted = self.ended.saturating_since(began).as_millis();
            u8::try_from(lasted).unwrap_or(u8::MAX)
        });
        self.filled = 0;
        self.pids.clear();
        let ready = core::mem::take(&mut self.ready);
        let mut carried = self.carry(&ready, events);
        let packets = ready
            .into_iter()
            .enumerate()
            .map(|(at, ready)| match ready {
                Ready::Described(packet) => Some(packet),
                Ready::Whole { bytes, pid, .. } => Some(Packet::Whole {
                    pid,
                    counter: bytes[3] & 0x0f,
                    run: carried.remove(&at)?,
                }),
            });
        let layout = Layout {
            step,
            lasted,
            is_last,
            packets: packets.flatten().collect(),
            outside: core::mem::take(&mut self.ready_outside),
        };
        self.outside_bytes = 0;
        self.layout(LAYOUTS, &layout, events);
    }

    fn layout(&mut self, stream: u16, layout: &Layout, events: &mut VecDeque<Event>) {
        let mut payload = Vec::new();
        Header::Layout.encode(&mut payload);
        payload.extend(format::encode(layout));
        self.section(stream, payload, events);
    }

    /// Returns the sections with the packets that are carried whole, PID by PID, and the position
    /// of each packet in them.
    fn carry(&mut self, ready: &[Ready], events: &mut VecDeque<Event>) -> BTreeMap<usize, Run> {
        let mut whole = Vec::new();
        for (at, ready) in ready.iter().enumerate() {
            if let Ready::Whole {
                bytes,
                pid,
                carried_in,
                is_sent,
            } = ready
            {
                whole.push(((*carried_in, *is_sent), *pid, at, bytes));
            }
        }
        whole.sort_by_key(|&(carried_in, pid, at, _)| (carried_in, pid, at));
        let mut runs = BTreeMap::new();
        for carried_in in [CARRIED, SCRAMBLED, DAMAGED]
            .map(|stream| [(stream, false), (stream, true)])
            .concat()
        {
            let (stream, is_sent) = carried_in;
            let packets: Vec<_> = { whole.iter() }
                .filter(|(own, ..)| *own == carried_in)
                .collect();
            for packets in packets.chunks(MAX_CARRIED) {
                let mut payload = Vec::with_capacity(1 + packets.len() * PACKET);
                Header::Packets.encode(&mut payload);
                for (.., bytes) in packets {
                    payload.extend(*bytes);
                }
                let number = self.numbers.get(&stream).copied().unwrap_or(0);
                let length = packets.len() * PACKET;
                let section = SectionRef::new(stream, number, &payload, length);
                for ((.., at, _), from) in packets.iter().zip((0_u32..).step_by(PACKET)) {
                    let to = from + PACKET as u32;
                    runs.insert(*at, Run { section, from, to });
                }
                match is_sent {
                    true => self.section(stream, payload, events),
                    false => self.miss(stream, events),
                }
            }
        }
        runs
    }

    fn miss(&mut self, stream: u16, events: &mut VecDeque<Event>) {
        let next = self.numbers.entry(stream).or_insert(0);
        events.push_back(Event::Missing(MissingUnit {
            stream,
            number: *next,
            source_time: self.latest,
        }));
        *next += 1;
    }

    fn section(&mut self, stream: u16, payload: Vec<u8>, events: &mut VecDeque<Event>) {
        let (frame, like) = match stream {
            CARRIED => (FrameType::Slice, FrameType::Opaque),
            SCRAMBLED | DAMAGED => (FrameType::Slice, FrameType::Slice),
            _ => (FrameType::Layout, FrameType::Layout),
        };
        self.expected.0.earn(payload.len());
        let next = self.numbers.entry(stream).or_insert(0);
        events.push_back(Event::Section(MediaSection {
            stream,
            number: *next,
            source_time: self.latest,
            deadline: Span::ZERO,
            importance: Importance::of(like, 0),
            is_damaged: false,
            frame,
            position: 0,
            needs: None,
            is_bound: false,
            payload: payload.into(),
        }));
        *next += 1;
    }
}

/// Measures whether the clock references of a multiplex advance evenly with its packets, and how
/// fast.
#[derive(Debug, Default)]
struct RateMeter {
    /// The PID of the references, and the packet number and the value of the latest one.
    latest: Option<(u16, u64, u64)>,
    /// The even stretch up to the latest reference: its references, packets and ticks.
    references: u32,
    packets: u64,
    ticks: u64,
}

/// The tolerance for a reference, in ticks of 27 MHz: twice that of ISO/IEC 13818-1 2.4.2.2.
const TOLERANCE: u64 = 27;
/// After this many consecutive even references, the rate counts as constant.
const EVEN: u32 = 5;
/// After this many packets without a reference, another PID may carry the references.
const SILENT: u64 = 10_000;
/// Two references that are further apart than this do not belong together, in ticks.
const APART: u64 = 27_000_000;

impl RateMeter {
    fn on_clock(&mut self, index: u64, pid: u16, clock: u64) {
        let Some((own, last_index, last)) = self.latest else {
            self.latest = Some((pid, index, clock));
            return;
        };
        let packets = index - last_index;
        if own != pid && packets < SILENT {
            return;
        }
        self.latest = Some((pid, index, clock));
        let ticks = (clock + CLOCK_WRAP - last) % CLOCK_WRAP;
        let expected = match self.packets {
            0 => Some(ticks),
            _ => u64::try_from(
                u128::from(self.ticks) * u128::from(packets) / u128::from(self.packets),
            )
            .ok(),
        };
        let is_even = expected.is_some_and(|expected| expected.abs_diff(ticks) <= TOLERANCE);
        if own != pid || ticks == 0 || ticks > APART {
            (self.references, self.packets, self.ticks) = (0, 0, 0);
        } else if is_even {
            self.references = self.references.saturating_add(1);
            self.packets += packets;
            self.ticks += ticks;
        } else {
            (self.references, self.packets, self.ticks) = (1, packets, ticks);
        }
    }

    fn step(&self) -> Option<u32> {
        let is_constant = self.references >= EVEN && self.packets > 0;
        let step = (u128::from(self.ticks) << STEP_SHIFT) / u128::from(self.packets.max(1));
        is_constant.then(|| u32::try_from(step).ok())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_rate_is_known_and_a_variable_one_is_not() {
        // 1.5 Mb/s: 27,072 ticks per packet, references rounded and up to 13 ticks off.
        let mut rate = RateMeter::default();
        for reference in 0..40_u64 {
            let index = 20 * reference + reference % 3;
            let off = reference * 7 % 13;
            rate.on_clock(
                index,
                256,
                (CLOCK_WRAP - 9_000_000 + 27_072 * index + off) % CLOCK_WRAP,
            );
            // The clock of another program has no effect.
            rate.on_clock(index + 1, 300, 5_000_000 * reference);
            assert_eq!(rate.step().is_some(), reference >= 5, "{reference}");
        }
        let step = rate.step().expect("constant");
        assert!(
            step.abs_diff(27_072 << STEP_SHIFT) < 1 << STEP_SHIFT,
            "{step}"
        );
        // A jump starts the measurement again.
        rate.on_clock(900, 256, 5);
        assert_eq!(rate.step(), None);
        // Packets that arrive as pictures need them.
        let mut rate = RateMeter::default();
        for reference in 0..40_u64 {
            let index = 20 * reference + reference * reference % 7;
            rate.on_clock(index, 256, 1_000_000 * reference);
            assert_eq!(rate.step(), None, "{reference}");
        }
    }
}
