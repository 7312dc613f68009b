//! Transport packets to the sections of their streams.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes as Payload;
use comity_units::{Span, Time};
use mpeg2ts_reader::packet::{AdaptationField, Packet};

use super::cadence::Cadence;
use super::config::ReaderConfig;
use super::error::{ReadError, STILL};
use super::framing::Framed;
use super::pes::{Assembler, Interrupted, Part};
use super::program::ProgramClock;
use super::slices::payload;
use super::unit::{Fault, Marks, Units, Whole};
use crate::codec::{Carriage, Class, Codec, ExtraSliceBits, carriage, classify};
use crate::header::{Header, PACKET, Times, Unit};
use crate::layout::{self, Arranger, Usage};
use crate::psi::{self, Gatherer};
use crate::section::{Event, MediaSection, MissingUnit, Notice};
use crate::timeline::{Mark, difference, ticks};
use comity_frames::{Arrival, DeadlineRule, FrameType, Group, Importance, Place};

const STUFFING: u16 = 0x1fff;
/// The PID of ATSC's tables; DVB has them below 0x20.
const ATSC_TABLES: u16 = 0x1ffb;
/// The maximum number of remembered table sections for comparison. Others are always sent.
const REMEMBERED: usize = 1024;
/// The maximum number of scrambled packets in one section.
const SCRAMBLED_PACKETS: usize = 64;
/// A source of this many bytes without any progress in time causes a notice.
const UNTIMED: u64 = 65_536;
/// After this many dropped bytes, continuity counters may have wrapped.
const COUNTED: u64 = 16 * PACKET as u64;
/// How long a stream may be silent, by the furthest of the clocks, before its last picture counts
/// as complete; also the interval of that check.
const SILENT: Span = Span::from_secs(1);
const LOOK: Span = Span::from_millis(100);

/// The use of a packet identifier.
#[derive(Debug)]
enum Role {
    Tables(Tables),
    Stream(Box<Stream>),
    Unreferenced,
}

/// The tables on one PID.
#[derive(Debug, Default)]
struct Tables {
    gatherer: Gatherer,
    counter: Counter,
}

/// Detects missing and duplicate packets from the continuity counter.
#[derive(Debug, Default)]
struct Counter(Option<u8>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Continuity {
    Next,
    Again,
    Broken,
}

impl Counter {
    fn next(&mut self, packet: &Packet<'_>, announced: bool) -> Continuity {
        let count = packet.continuity_counter().count();
        match self.0.replace(count) {
            None => Continuity::Next,
            Some(last) if (last + 1) % 16 == count => Continuity::Next,
            Some(last) if last == count && !announced => Continuity::Again,
            Some(_) if announced => Continuity::Next,
            Some(_) => Continuity::Broken,
        }
    }
}

/// One elementary stream.
#[derive(Debug)]
struct Stream {
    pid: u16,
    number: u16,
    stream_type: u8,
    codec: Option<Codec>,
    /// The PID of the map of its program.
    program: u16,
    assembler: Assembler,
    counter: Counter,
    group: Group,
    /// The latest time stamp.
    mark: Option<Mark>,
    cadence: Cadence,
    extra: ExtraSliceBits,
    next_section: u64,
    /// Its scrambled packets, and the time since which they wait.
    scrambled: Vec<u8>,
    scrambled_since: Time,
    has_told_scrambled: bool,
    /// Whether a packet arrived since the last check, and when one last had.
    is_heard: bool,
    heard: Time,
}

/// The streams and tables of the programs, from whole packets.
#[derive(Debug)]
pub(super) struct Demux {
    config: ReaderConfig,
    longest: usize,
    roles: BTreeMap<u16, Role>,
    /// The clock of each program, by the PID of its map.
    clocks: BTreeMap<u16, ProgramClock>,
    /// The maps of the programs whose clock references these PIDs carry.
    references: BTreeMap<u16, BTreeSet<u16>>,
    next_table: u64,
    /// Packets that belong to no program: the number of reported streams, and the total bytes.
    unreferenced: (u64, u64),
    next_stream: u16,
    /// The last sent version of each repeated table.
    tables: BTreeMap<(u16, [u8; 4]), SentTable>,
    /// The furthest time of the clocks, and the bytes of streams since.
    furthest: Time,
    still: u64,
    /// When silent streams were last searched for.
    looked: Time,
    is_cut: bool,
    arranger: Option<Box<Arranger>>,
}

/// A table that was sent: its number, its payload, and when it was.
#[derive(Debug)]
struct SentTable {
    number: u64,
    payload: Payload,
    when: Time,
}

impl Demux {
    pub(super) fn new(config: ReaderConfig, events: &mut VecDeque<Event>) -> Self {
        let mut arranger = config.layouts.then(Box::<Arranger>::default);
        if let Some(arranger) = &mut arranger {
            arranger.announce(events);
        }
        Self {
            config,
            arranger,
            longest: usize::try_from(config.longest_unit.get()).unwrap_or(usize::MAX),
            roles: BTreeMap::new(),
            clocks: BTreeMap::new(),
            references: BTreeMap::new(),
            // The announcement is one of them.
            next_table: u64::from(config.layouts),
            unreferenced: (0, 0),
            next_stream: 1,
            tables: BTreeMap::new(),
            furthest: Time::ZERO,
            still: 0,
            looked: Time::ZERO,
            is_cut: false,
        }
    }

    pub(super) fn framed(
        &mut self,
        framed: Framed<'_>,
        events: &mut VecDeque<Event>,
    ) -> Result<(), ReadError> {
        match framed {
            Framed::Packet(packet, at) => {
                let from = events.len();
                let now = self.now();
                let usage = self.packet(packet, at, events)?;
                if let Some(arranger) = &mut self.arranger {
                    arranger.units(events.range(from..));
                    arranger.packet(packet, usage, now);
                    arranger.settle(now, events);
                }
            }
            Framed::Lost(skipped) => {
                if skipped >= COUNTED {
                    let from = events.len();
                    self.interrupt(events);
                    if let Some(arranger) = &mut self.arranger {
                        arranger.units(events.range(from..));
                    }
                }
                events.push_back(Event::Notice(Notice::LostSync { skipped }));
            }
            Framed::Cut(skipped) => {
                self.is_cut = true;
                events.push_back(Event::Notice(Notice::LostSync { skipped }));
            }
        }
        Ok(())
    }

    /// Processes the packet at the source position `at`; returns the sections that have its bytes.
    fn packet(
        &mut self,
        bytes: &[u8; PACKET],
        at: u64,
        events: &mut VecDeque<Event>,
    ) -> Result<Usage, ReadError> {
        const UNUSED: Usage = Usage::None {
            carried_in: layout::CARRIED,
        };
        const OF_STREAM: Usage = Usage::None {
            carried_in: layout::DAMAGED,
        };
        const SCRAMBLED: Usage = Usage::None {
            carried_in: layout::SCRAMBLED,
        };
        let Some(packet) = Packet::try_new(bytes) else {
            return Ok(UNUSED);
        };
        let pid = u16::from(packet.pid());
        if pid == STUFFING || packet.transport_error_indicator() {
            // The counter of its stream reveals the content of a damaged packet as a gap.
            return Ok(UNUSED);
        }
        let field = packet.adaptation_field();
        if let Some(Ok(reference)) = field.as_ref().map(AdaptationField::pcr) {
            for program in self.references.get(&pid).into_iter().flatten() {
                if let Some(clock) = self.clocks.get_mut(program) {
                    clock.on_reference(reference.base());
                }
            }
        }
        let announced = field
            .as_ref()
            .is_some_and(|field| field.discontinuity_indicator());
        let marks = Marks {
            random_access: field
                .as_ref()
                .is_some_and(|field| field.random_access_indicator()),
            discontinuity: announced,
        };
        let is_clock = |programs: &BTreeSet<u16>| !programs.is_empty();
        let is_carried = self.arranger.is_some() || self.references.get(&pid).is_some_and(is_clock);
        let role = self.roles.entry(pid).or_insert_with(|| {
            if pid < 0x20 || pid == ATSC_TABLES {
                Role::Tables(Tables::default())
            } else if is_carried {
                Role::Unreferenced
            } else {
                events.push_back(Event::Notice(Notice::Unreferenced { pid }));
                self.unreferenced.0 += 1;
                Role::Unreferenced
            }
        });
        self.unreferenced.1 += u64::from(!is_carried && matches!(role, Role::Unreferenced));
        let Some(payload) = packet.payload() else {
            return Ok(UNUSED);
        };
        let begins = packet.payload_unit_start_indicator();
        match role {
            Role::Unreferenced => Ok(UNUSED),
            Role::Tables(Tables { gatherer, counter }) => {
                let mut damaged = match counter.next(&packet, announced) {
                    Continuity::Next => false,
                    Continuity::Again => return Ok(UNUSED),
                    Continuity::Broken => gatherer.reset(),
                };
                let (sections, malformed) = gatherer.push(payload, begins);
                let held = gatherer.held();
                damaged |= malformed;
                if damaged {
                    events.push_back(Event::Notice(Notice::Damaged { pid }));
                }
                for section in sections {
                    self.table(pid, &section, events);
                }
                Ok(Usage::Tables { held })
            }
            Role::Stream(stream) => {
                let Some(clock) = self.clocks.get_mut(&stream.program) else {
                    return Ok(OF_STREAM);
                };
                let mut output = Output {
                    clock,
                    events,
                    config: &self.config,
                };
                match stream.counter.next(&packet, announced) {
                    Continuity::Next => {}
                    Continuity::Again => return Ok(OF_STREAM),
                    Continuity::Broken => stream.interrupt(begins, &mut output),
                }
                stream.is_heard = true;
                let is_scrambled = packet.transport_scrambling_control().is_scrambled();
                if is_scrambled && self.arranger.is_some() {
                    // Layouts have sections of such packets.
                    stream.tell_scrambled(&mut output);
                } else if is_scrambled {
                    stream.keep_scrambled(bytes, &mut output);
                } else {
                    stream.flush_scrambled(&mut output);
                    let part = Part {
                        payload,
                        begins: begins.then_some(marks),
                        is_filled: is_filled_up(bytes),
                    };
                    stream.push(part, self.longest, &mut output);
                }
                self.go_on(at, events)?;
                Ok(match is_scrambled {
                    true => SCRAMBLED,
                    false => Usage::Units,
                })
            }
        }
    }

    /// Updates the progress of the source with a stream's packet at `at`. Completes the last
    /// pictures of silent streams while others continue; they would otherwise wait until the end of
    /// the source.
    fn go_on(&mut self, at: u64, events: &mut VecDeque<Event>) -> Result<(), ReadError> {
        let now = self.now();
        if now > self.furthest {
            (self.furthest, self.still) = (now, 0);
        }
        self.still += PACKET as u64;
        if self.still > STILL {
            return Err(ReadError::NoTime { at });
        }
        if now.saturating_since(self.looked) < LOOK {
            return Ok(());
        }
        self.looked = now;
        self.each_stream(events, |stream, output| {
            if core::mem::take(&mut stream.is_heard) {
                stream.heard = now;
            } else if now.saturating_since(stream.heard) >= SILENT {
                stream.give_up_waiting(output);
            }
        });
        Ok(())
    }

    /// Drops incomplete units at a break in the stream, which continuity counters need not reveal.
    pub(super) fn interrupt(&mut self, events: &mut VecDeque<Event>) {
        for (&pid, role) in &mut self.roles {
            if let Role::Tables(tables) = role
                && tables.gatherer.reset()
            {
                tables.counter = Counter::default();
                events.push_back(Event::Notice(Notice::Damaged { pid }));
            }
        }
        self.each_stream(events, |stream, output| {
            stream.flush_scrambled(output);
            if stream.assembler.is_within() {
                stream.counter = Counter::default();
                stream.interrupt(false, output);
            }
        });
    }

    /// Returns all waiting data at the end.
    pub(super) fn finish(&mut self, events: &mut VecDeque<Event>) {
        let is_cut = self.is_cut;
        let from = events.len();
        self.each_stream(events, |stream, output| {
            if is_cut && stream.assembler.is_within_packet() {
                stream.interrupt(false, output);
            }
            stream.finish(output);
        });
        if let Some(mut arranger) = self.arranger.take() {
            arranger.units(events.range(from..));
            arranger.finish(events);
        }
        let bytes = self.still;
        if self.now() == Time::ZERO && bytes >= UNTIMED {
            events.push_back(Event::Notice(Notice::Untimed { bytes }));
        }
        let (streams, packets) = self.unreferenced;
        if streams > 0 {
            events.push_back(Event::Notice(Notice::UnreferencedInAll {
                streams,
                bytes: packets * PACKET as u64,
            }));
        }
    }

    fn each_stream(
        &mut self,
        events: &mut VecDeque<Event>,
        mut act: impl FnMut(&mut Stream, &mut Output<'_>),
    ) {
        for role in self.roles.values_mut() {
            let Role::Stream(stream) = role else { continue };
            if let Some(clock) = self.clocks.get_mut(&stream.program) {
                let mut output = Output {
                    clock,
                    events,
                    config: &self.config,
                };
                act(stream, &mut output);
            }
        }
    }

    pub(super) fn learn_program(&mut self, pid: u16) {
        self.clocks.entry(pid).or_default();
        let role = self.roles.entry(pid).or_insert(Role::Unreferenced);
        if matches!(role, Role::Unreferenced) {
            *role = Role::Tables(Tables::default());
        }
    }

    pub(super) fn learn_streams(
        &mut self,
        program: u16,
        map: &psi::ProgramMap,
        events: &mut VecDeque<Event>,
    ) {
        for programs in self.references.values_mut() {
            programs.remove(&program);
        }
        self.references
            .entry(map.clock_pid)
            .or_default()
            .insert(program);
        for &(pid, stream_type) in &map.streams {
            if pid == STUFFING {
                continue;
            }
            let carriage = carriage(stream_type);
            match self.roles.get_mut(&pid) {
                Some(Role::Stream(stream)) if stream.stream_type == stream_type => continue,
                Some(Role::Stream(stream)) => {
                    if let Some(clock) = self.clocks.get_mut(&stream.program) {
                        let config = &self.config;
                        stream.finish(&mut Output {
                            clock,
                            events,
                            config,
                        });
                    }
                    stream.stream_type = stream_type;
                    stream.codec = codec(stream_type);
                    stream.group.reset();
                }
                Some(Role::Tables(_)) => continue,
                Some(Role::Unreferenced) | None if carriage == Carriage::Tables => {
                    self.roles.insert(pid, Role::Tables(Tables::default()));
                    continue;
                }
                Some(Role::Unreferenced) | None => {
                    let (number, rule) = (self.next_stream, self.config.deadlines);
                    let stream = Stream::new(pid, number, program, stream_type, rule);
                    // At most 2^13 PIDs exist.
                    self.next_stream += 1;
                    self.roles.insert(pid, Role::Stream(Box::new(stream)));
                }
            }
            if carriage == Carriage::Opaque {
                events.push_back(Event::Notice(Notice::UnsupportedCodec { pid, stream_type }));
            }
        }
    }

    /// The furthest of the clocks.
    fn now(&self) -> Time {
        let times = self.clocks.values().map(ProgramClock::now);
        times.max().unwrap_or(Time::ZERO)
    }

    fn table(&mut self, pid: u16, section: &[u8], events: &mut VecDeque<Event>) {
        if pid == psi::PAT {
            for program in psi::programs(section).into_iter().flatten() {
                self.learn_program(program);
            }
        } else if self.clocks.contains_key(&pid)
            && let Some(map) = psi::program_map(section)
        {
            self.learn_streams(pid, &map, events);
        }
        let now = match self.clocks.get(&pid) {
            Some(clock) => clock.now(),
            None => self.now(),
        };
        // PAT, CAT, NIT and SDT, and the maps. Other tables are events or carousels with their own
        // timing.
        let repeated = matches!(pid, 0x00 | 0x01 | 0x10 | 0x11) || self.clocks.contains_key(&pid);
        let payload = payload(Header::Table { pid, repeated }, section);
        if repeated {
            let key = (pid, psi::key(section));
            let last = self.tables.get(&key);
            if let Some(last) = last.filter(|last| last.payload == payload)
                && now.saturating_since(last.when) < self.config.table_refresh
            {
                if let Some(arranger) = &mut self.arranger {
                    arranger.table(pid, last.number, &payload, last.when);
                }
                return;
            }
            if last.is_some() || self.tables.len() < REMEMBERED {
                let sent = SentTable {
                    number: self.next_table,
                    payload: payload.clone(),
                    when: now,
                };
                self.tables.insert(key, sent);
            }
        }
        if let Some(arranger) = &mut self.arranger {
            arranger.table(pid, self.next_table, &payload, now);
        }
        events.push_back(Event::Section(MediaSection {
            stream: 0,
            number: self.next_table,
            source_time: now,
            deadline: Span::ZERO,
            importance: Importance::of(FrameType::Table, 0),
            frame: FrameType::Table,
            position: 0,
            needs: None,
            is_bound: false,
            payload,
        }));
        self.next_table += 1;
    }
}

/// Whether the adaptation field of a packet has stuffing, ISO/IEC 13818-1 2.4.3.5: more bytes than
/// its flags require.
fn is_filled_up(packet: &[u8; PACKET]) -> bool {
    if packet[3] & 0x20 == 0 {
        return false;
    }
    let length = usize::from(packet[4]);
    let Some(field) = packet.get(5..5 + length) else {
        return false;
    };
    let Some((&flags, rest)) = field.split_first() else {
        // A field of one byte is stuffing.
        return true;
    };
    let has = |bit: u8| usize::from(flags & bit != 0);
    let mut used = 6 * has(0x10) + 6 * has(0x08) + has(0x04);
    for bit in [0x02, 0x01] {
        if flags & bit != 0 {
            used += 1 + rest.get(used).copied().map_or(0, usize::from);
        }
    }
    used < rest.len()
}

/// The codec of this stream type, if it is known.
const fn codec(stream_type: u8) -> Option<Codec> {
    match carriage(stream_type) {
        Carriage::Known(codec) => Some(codec),
        Carriage::Opaque | Carriage::Tables => None,
    }
}

/// The destination of a stream's units, and the clock of their times.
struct Output<'a> {
    clock: &'a mut ProgramClock,
    events: &'a mut VecDeque<Event>,
    config: &'a ReaderConfig,
}

impl Output<'_> {
    fn tell(&mut self, notice: Notice) {
        self.events.push_back(Event::Notice(notice));
    }
}

impl Stream {
    /// Creates a stream without any data.
    fn new(pid: u16, number: u16, program: u16, stream_type: u8, rule: DeadlineRule) -> Self {
        Self {
            pid,
            number,
            stream_type,
            codec: codec(stream_type),
            program,
            assembler: Assembler::default(),
            counter: Counter::default(),
            group: Group::new(rule),
            mark: None,
            cadence: Cadence::default(),
            extra: ExtraSliceBits::default(),
            next_section: 0,
            scrambled: Vec::new(),
            scrambled_since: Time::ZERO,
            has_told_scrambled: false,
            is_heard: true,
            heard: Time::ZERO,
        }
    }

    fn push(&mut self, part: Part<'_>, longest: usize, output: &mut Output<'_>) {
        let mut units = Units::new();
        self.assembler.push(self.codec, part, longest, &mut units);
        self.give(units, output);
    }

    /// Handles the end of the source.
    fn finish(&mut self, output: &mut Output<'_>) {
        let mut units = Units::new();
        self.assembler.finish(self.codec, &mut units);
        self.give(units, output);
        self.flush_scrambled(output);
    }

    /// Handles a long silence of the stream.
    fn give_up_waiting(&mut self, output: &mut Output<'_>) {
        let mut units = Units::new();
        self.assembler.give_up_waiting(self.codec, &mut units);
        self.give(units, output);
        self.flush_scrambled(output);
    }

    /// Handles missing data, after which a PES packet `begins` or continues.
    fn interrupt(&mut self, begins: bool, output: &mut Output<'_>) {
        let mut units = Units::new();
        let interrupted = self.assembler.interrupt(self.codec, begins, &mut units);
        if interrupted == Interrupted::Unit {
            units.push(Err(Fault::Damaged));
        }
        self.give(units, output);
        if interrupted == Interrupted::Nothing {
            self.cadence = Cadence::default();
            output.tell(Notice::Break { pid: self.pid });
        }
    }

    /// Assigns a number to a dropped unit.
    fn miss(&mut self, output: &mut Output<'_>) {
        output.events.push_back(Event::Missing(MissingUnit {
            stream: self.number,
            number: self.next_section,
            source_time: output.clock.now(),
        }));
        self.next_section += 1;
    }

    fn give(&mut self, units: Units, output: &mut Output<'_>) {
        let pid = self.pid;
        for unit in units {
            match unit {
                Ok(unit) => self.unit(&unit, output),
                Err(Fault::NoFrame) => output.tell(Notice::NoFrames { pid }),
                Err(Fault::Damaged) => {
                    self.cadence = Cadence::default();
                    output.tell(Notice::Damaged { pid });
                    self.miss(output);
                }
                Err(Fault::Oversized(bytes)) => {
                    output.tell(Notice::Oversized { pid, bytes });
                    self.miss(output);
                }
            }
        }
    }

    fn unit(&mut self, unit: &Whole, output: &mut Output<'_>) {
        if unit.bytes.is_empty() {
            return;
        }
        let pid = self.pid;
        if unit.scrambled {
            self.tell_scrambled(output);
        }
        let codec = self.codec.filter(|_| !unit.scrambled);
        let Class {
            frame,
            begins_refresh,
        } = codec.map_or(Class::of(FrameType::Opaque), |codec| {
            let random_access = unit.marks.random_access;
            classify(codec, &unit.bytes, random_access, &mut self.extra)
        });
        let stamp = match codec {
            Some(Codec::Mpeg2 | Codec::H264 | Codec::H265) => {
                self.cadence.place(unit.times.decoding(), unit.follows)
            }
            _ => unit.times.decoding(),
        };
        let placed = stamp.map(|stamp| output.clock.place(stamp, self.mark));
        self.mark = placed.map(|placed| placed.mark).or(self.mark);
        let source_time =
            placed.map_or_else(|| output.clock.between_stamps(), |placed| placed.time);
        let is_jump = placed.is_some_and(|placed| placed.is_jump);
        if is_jump {
            output.tell(Notice::Discontinuity { pid });
        }
        let discontinuity = is_jump || unit.marks.discontinuity;
        if discontinuity {
            self.group.reset();
        }
        let header = Unit {
            pid,
            stream_type: self.stream_type,
            stream_id: unit.stream_id,
            frame,
            times: unit.times,
            random_access: unit.marks.random_access || frame == FrameType::Key,
            discontinuity,
            aligned: unit.aligned,
        };
        let reordering = match unit.times {
            Times::Both {
                presentation,
                decoding,
            } => ticks(u64::try_from(difference(presentation, decoding)).unwrap_or(0)),
            _ => Span::ZERO,
        };
        let place = self.group.place(Arrival {
            number: self.next_section,
            frame_type: frame,
            presentation: unit.times.presentation(),
            source_time,
            reordering,
            begins_refresh,
        });
        let payload = payload(Header::Unit(header), &unit.bytes);
        self.section(frame, place, payload, output);
    }

    fn section(
        &mut self,
        frame: FrameType,
        place: Place,
        payload: Payload,
        output: &mut Output<'_>,
    ) {
        let is_picture = frame.is_picture();
        let position = if is_picture { place.position } else { 0 };
        output.events.push_back(Event::Section(MediaSection {
            stream: self.number,
            number: self.next_section,
            source_time: place.source_time,
            deadline: place.deadline,
            importance: Importance::of(frame, position),
            frame,
            position,
            needs: place.needs,
            is_bound: place.is_bound,
            payload,
        }));
        self.next_section += 1;
    }

    fn tell_scrambled(&mut self, output: &mut Output<'_>) {
        if !core::mem::replace(&mut self.has_told_scrambled, true) {
            output.tell(Notice::Scrambled { pid: self.pid });
        }
    }

    fn keep_scrambled(&mut self, packet: &[u8; PACKET], output: &mut Output<'_>) {
        self.tell_scrambled(output);
        // Scrambled packets have no readable time stamps.
        let now = output.clock.between_stamps();
        let waited = now.saturating_since(self.scrambled_since);
        if waited >= output.config.slice {
            self.flush_scrambled(output);
        }
        if self.scrambled.is_empty() {
            self.scrambled_since = now;
        }
        self.scrambled.extend(packet);
        if self.scrambled.len() >= SCRAMBLED_PACKETS * PACKET {
            self.flush_scrambled(output);
        }
    }

    fn flush_scrambled(&mut self, output: &mut Output<'_>) {
        if self.scrambled.is_empty() {
            return;
        }
        let packets = core::mem::take(&mut self.scrambled);
        let place = Place {
            position: 0,
            needs: None,
            is_bound: false,
            source_time: self.scrambled_since,
            deadline: Span::ZERO,
        };
        let payload = payload(Header::Packets, &packets);
        self.section(FrameType::Slice, place, payload, output);
    }
}
