//! Transport packets to the sections of their streams.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use comity_units::{Bytes, Rate, Span, Time};
use mpeg2ts_reader::packet::{AdaptationField, Packet};

use super::ReaderConfig;
use super::cadence::Cadence;
use super::pes::{Assembler, Fault, Interrupted, Marks, Part, Whole};
use super::slices::{Slicer, payload};
use super::tempo::{Progress, Tempo, Timed, Yardstick};
use crate::codec::{Carriage, Codec, ExtraSliceBits, carriage, classify};
use crate::header::{Header, PACKET, Times, Unit};
use crate::psi::{self, Gatherer};
use crate::section::{Event, MediaSection, MissingUnit, Notice};
use crate::timeline::{difference, ticks};
use comity_frames::{Arrival, FrameType, Group, Importance, Place};

const STUFFING: u16 = 0x1fff;
/// Where ATSC has its tables; DVB has them below 0x20.
const ATSC_TABLES: u16 = 0x1ffb;
/// Tables whose sections are compared with the last ones, at most: beyond, each is sent as it comes.
const REMEMBERED: usize = 1024;
/// Packets of a scrambled stream in one section, at most.
const SCRAMBLED_PACKETS: usize = 64;

/// What a packet identifier is for.
#[derive(Debug)]
enum Role {
    Tables {
        gatherer: Gatherer,
        counter: Counter,
    },
    Stream(Box<Stream>),
    Unreferenced,
}

/// Sees what is missing, and what came twice, from the continuity counter.
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
    progress: Progress,
    cadence: Cadence,
    extra: ExtraSliceBits,
    next_section: u64,
    /// Packets of it that are scrambled, and since when they wait.
    scrambled: Vec<u8>,
    scrambled_since: Time,
    has_told_scrambled: bool,
}

/// The streams and tables of the programs, from whole packets.
#[derive(Debug)]
pub(super) struct Demux {
    config: ReaderConfig,
    longest: usize,
    roles: BTreeMap<u16, Role>,
    /// The clock of each program, by the PID of its map.
    clocks: BTreeMap<u16, Tempo>,
    /// The maps of the programs whose clock references these PIDs carry.
    references: BTreeMap<u16, BTreeSet<u16>>,
    yardstick: Yardstick,
    next_table: u64,
    /// No section of stream 0 is there before this.
    tables_since: Time,
    /// What is cut from a break between packets while it lasts, and how long that is.
    broken: Option<(Slicer, u64)>,
    /// Packets that no program names: of how many streams they were told, and how many there were.
    unreferenced: (u64, u64),
    next_stream: u16,
    /// What was sent last of each table that is repeated, and when.
    tables: BTreeMap<(u16, [u8; 4]), (Vec<u8>, Time)>,
}

impl Demux {
    pub(super) fn new(config: ReaderConfig) -> Self {
        Self {
            config,
            longest: usize::try_from(config.longest_unit.get()).unwrap_or(usize::MAX),
            roles: BTreeMap::new(),
            clocks: BTreeMap::new(),
            references: BTreeMap::new(),
            yardstick: Yardstick::default(),
            next_table: 0,
            tables_since: Time::ZERO,
            broken: None,
            unreferenced: (0, 0),
            next_stream: 1,
            tables: BTreeMap::new(),
        }
    }

    pub(super) fn packet(
        &mut self,
        bytes: &[u8; PACKET],
        arrival: Option<Time>,
        events: &mut VecDeque<Event>,
    ) {
        self.end_break(events);
        self.yardstick.bytes += PACKET as u64;
        self.yardstick.arrival = arrival;
        let Some(packet) = Packet::try_new(bytes) else {
            return;
        };
        let pid = u16::from(packet.pid());
        if pid == STUFFING || packet.transport_error_indicator() {
            // What a damaged packet held shows as a gap in its stream's counter.
            return;
        }
        let field = packet.adaptation_field();
        if let Some(Ok(reference)) = field.as_ref().map(AdaptationField::pcr) {
            for program in self.references.get(&pid).into_iter().flatten() {
                if let Some(clock) = self.clocks.get_mut(program) {
                    let stamp = reference.base();
                    clock.references.on_reference(stamp, self.yardstick);
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
        let role = self.roles.entry(pid).or_insert_with(|| {
            if pid < 0x20 || pid == ATSC_TABLES {
                Role::Tables {
                    gatherer: Gatherer::default(),
                    counter: Counter::default(),
                }
            } else {
                events.push_back(Event::Notice(Notice::Unreferenced { pid }));
                self.unreferenced.0 += 1;
                Role::Unreferenced
            }
        });
        self.unreferenced.1 += u64::from(matches!(role, Role::Unreferenced));
        let Some(payload) = packet.payload() else {
            return;
        };
        let begins = packet.payload_unit_start_indicator();
        match role {
            Role::Unreferenced => {}
            Role::Tables { gatherer, counter } => {
                let mut damaged = match counter.next(&packet, announced) {
                    Continuity::Next => false,
                    Continuity::Again => return,
                    Continuity::Broken => gatherer.reset(),
                };
                let (sections, malformed) = gatherer.push(payload, begins);
                damaged |= malformed;
                if damaged {
                    events.push_back(Event::Notice(Notice::Damaged { pid }));
                }
                for section in sections {
                    self.table(pid, &section, events);
                }
            }
            Role::Stream(stream) => {
                let Some(clock) = self.clocks.get_mut(&stream.program) else {
                    return;
                };
                let mut output = Output {
                    clock,
                    events,
                    config: &self.config,
                    yardstick: &self.yardstick,
                };
                match stream.counter.next(&packet, announced) {
                    Continuity::Next => {}
                    Continuity::Again => return,
                    Continuity::Broken => stream.interrupt(begins, &mut output),
                }
                if packet.transport_scrambling_control().is_scrambled() {
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
            }
        }
    }

    /// Takes the next bytes of a break between packets, for as long as it lasts.
    pub(super) fn raw(
        &mut self,
        bytes: &[u8],
        arrival: Option<Time>,
        events: &mut VecDeque<Event>,
    ) {
        let (mut slicer, length) = match self.broken.take() {
            Some(broken) => broken,
            None => {
                self.interrupt(events);
                events.push_back(Event::Notice(Notice::NoPackets));
                let now = self.now().max(self.tables_since);
                let rate = self.average(now);
                let number = self.next_table;
                (Slicer::of_break(&self.config, number, now, rate), 0)
            }
        };
        slicer.push(bytes, arrival, events);
        self.yardstick.bytes += bytes.len() as u64;
        self.yardstick.arrival = arrival;
        self.broken = Some((slicer, length + bytes.len() as u64));
    }

    /// Goes on with packets, where the slices of a break have come to.
    fn end_break(&mut self, events: &mut VecDeque<Event>) {
        let Some((mut slicer, bytes)) = self.broken.take() else {
            return;
        };
        slicer.finish(events);
        self.next_table = slicer.next_number();
        self.tables_since = slicer.now();
        for clock in self.clocks.values_mut() {
            clock.resume_at(self.tables_since, &self.yardstick);
        }
        events.push_back(Event::Notice(Notice::PacketsAgain { bytes }));
    }

    /// Leaves out what a break has cut: so long a one may have taken a number of packets that continuity counters do not
    /// see.
    fn interrupt(&mut self, events: &mut VecDeque<Event>) {
        for (&pid, role) in &mut self.roles {
            match role {
                Role::Unreferenced => {}
                Role::Tables { gatherer, counter } => {
                    if gatherer.reset() {
                        *counter = Counter::default();
                        events.push_back(Event::Notice(Notice::Damaged { pid }));
                    }
                }
                Role::Stream(stream) => {
                    let Some(clock) = self.clocks.get_mut(&stream.program) else {
                        continue;
                    };
                    let mut output = Output {
                        clock,
                        events,
                        config: &self.config,
                        yardstick: &self.yardstick,
                    };
                    stream.flush_scrambled(&mut output);
                    if stream.assembler.is_within() {
                        stream.counter = Counter::default();
                        stream.interrupt(false, &mut output);
                    }
                }
            }
        }
    }

    /// The rate of the source so far, when it has lasted for a second: the assumed one before.
    fn average(&self, now: Time) -> Rate {
        let lasted = now.saturating_since(Time::ZERO);
        match lasted >= Span::from_secs(1) {
            true => Rate::of(Bytes::new(self.yardstick.bytes), lasted),
            false => self.config.assumed_rate,
        }
    }

    /// Gives what is held: nothing follows, of which the beginning of a packet may have been left out.
    pub(super) fn finish(&mut self, is_cut: bool, events: &mut VecDeque<Event>) {
        if let Some((slicer, _)) = &mut self.broken {
            slicer.finish(events);
        }
        for role in self.roles.values_mut() {
            let Role::Stream(stream) = role else { continue };
            let Some(clock) = self.clocks.get_mut(&stream.program) else {
                continue;
            };
            let mut output = Output {
                clock,
                events,
                config: &self.config,
                yardstick: &self.yardstick,
            };
            if is_cut && stream.assembler.is_within_packet() {
                stream.interrupt(false, &mut output);
            }
            stream.finish(&mut output);
        }
        let (streams, packets) = self.unreferenced;
        if streams > 0 {
            events.push_back(Event::Notice(Notice::UnreferencedInAll {
                streams,
                bytes: packets * PACKET as u64,
            }));
        }
    }

    pub(super) fn learn_program(&mut self, pid: u16) {
        let rate = self.config.assumed_rate;
        self.clocks
            .entry(pid)
            .or_insert_with(|| Tempo::new(pid, rate));
        let tables = || Role::Tables {
            gatherer: Gatherer::default(),
            counter: Counter::default(),
        };
        let role = self.roles.entry(pid).or_insert_with(tables);
        if matches!(role, Role::Unreferenced) {
            *role = tables();
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
            let codec = match carriage {
                Carriage::Known(codec) => Some(codec),
                Carriage::Opaque | Carriage::Tables => None,
            };
            match self.roles.get_mut(&pid) {
                Some(Role::Stream(stream)) if stream.stream_type == stream_type => continue,
                Some(Role::Stream(stream)) => {
                    if let Some(clock) = self.clocks.get_mut(&stream.program) {
                        let mut output = Output {
                            clock,
                            events,
                            config: &self.config,
                            yardstick: &self.yardstick,
                        };
                        stream.finish(&mut output);
                    }
                    stream.stream_type = stream_type;
                    stream.codec = codec;
                    stream.group.reset();
                }
                Some(Role::Tables { .. }) => continue,
                Some(Role::Unreferenced) | None if carriage == Carriage::Tables => {
                    let (gatherer, counter) = Default::default();
                    self.roles.insert(pid, Role::Tables { gatherer, counter });
                    continue;
                }
                Some(Role::Unreferenced) | None => {
                    let stream = Stream {
                        pid,
                        number: self.next_stream,
                        stream_type,
                        codec,
                        program,
                        assembler: Assembler::default(),
                        counter: Counter::default(),
                        group: Group::new(self.config.deadlines),
                        progress: Progress::default(),
                        cadence: Cadence::default(),
                        extra: ExtraSliceBits::default(),
                        next_section: 0,
                        scrambled: Vec::new(),
                        scrambled_since: Time::ZERO,
                        has_told_scrambled: false,
                    };
                    // There are at most 2^13 PIDs.
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
        let times = self.clocks.values().map(|clock| clock.now(&self.yardstick));
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
            Some(clock) => clock.now(&self.yardstick),
            None => self.now(),
        };
        let now = now.max(self.tables_since);
        // PAT, CAT, NIT and SDT, and the maps. Other tables are events or carousels that time themselves.
        let repeated = matches!(pid, 0x00 | 0x01 | 0x10 | 0x11) || self.clocks.contains_key(&pid);
        if repeated {
            let key = (pid, psi::key(section));
            let has_room = self.tables.len() < REMEMBERED;
            match self.tables.get_mut(&key) {
                Some((sent, when)) => {
                    let is_fresh = now.saturating_since(*when) < self.config.table_refresh;
                    if sent == section && is_fresh {
                        return;
                    }
                    *sent = section.to_vec();
                    *when = now;
                }
                None if has_room => {
                    self.tables.insert(key, (section.to_vec(), now));
                }
                None => {}
            }
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
            payload: payload(Header::Table { pid, repeated }, section),
        }));
        self.next_table += 1;
    }
}

/// Whether a packet has filling in its adaptation field, ISO/IEC 13818-1 2.4.3.5: more bytes than what it says to be there.
fn is_filled_up(packet: &[u8; PACKET]) -> bool {
    if packet[3] & 0x20 == 0 {
        return false;
    }
    let length = usize::from(packet[4]);
    let Some(field) = packet.get(5..5 + length) else {
        return false;
    };
    let Some((&flags, rest)) = field.split_first() else {
        // A field of one byte is filling.
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

/// Where the units of a stream go, and what they are timed by.
struct Output<'a> {
    clock: &'a mut Tempo,
    events: &'a mut VecDeque<Event>,
    config: &'a ReaderConfig,
    yardstick: &'a Yardstick,
}

impl Output<'_> {
    /// When a unit of the stream with this PID is there.
    fn place(&mut self, stream: (u16, &mut Progress), stamp: Option<u64>) -> Timed {
        let events = &mut *self.events;
        self.clock.place(stream, stamp, self.yardstick, |notice| {
            events.push_back(Event::Notice(notice));
        })
    }
}

impl Stream {
    fn push(&mut self, part: Part<'_>, longest: usize, output: &mut Output<'_>) {
        let mut units = Vec::new();
        self.assembler
            .push(self.codec, part, longest, &mut |unit| units.push(unit));
        self.give(units, output);
    }

    fn finish(&mut self, output: &mut Output<'_>) {
        let mut units = Vec::new();
        self.assembler
            .finish(self.codec, &mut |unit| units.push(unit));
        self.give(units, output);
        self.flush_scrambled(output);
    }

    /// Something is missing, behind which a PES packet `begins` or one goes on.
    fn interrupt(&mut self, begins: bool, output: &mut Output<'_>) {
        let mut units = Vec::new();
        let interrupted = self
            .assembler
            .interrupt(self.codec, begins, &mut |unit| units.push(unit));
        if interrupted == Interrupted::Unit {
            units.push(Err(Fault::Damaged));
        }
        self.give(units, output);
        if interrupted == Interrupted::Nothing {
            self.cadence = Cadence::default();
            let pid = self.pid;
            output
                .events
                .push_back(Event::Notice(Notice::Break { pid }));
        }
    }

    /// Gives a number to a unit that is left out.
    fn miss(&mut self, output: &mut Output<'_>) {
        output.events.push_back(Event::Missing(MissingUnit {
            stream: self.number,
            number: self.next_section,
            source_time: output.clock.now(output.yardstick),
        }));
        self.next_section += 1;
    }

    fn give(&mut self, units: Vec<Result<Whole, Fault>>, output: &mut Output<'_>) {
        let pid = self.pid;
        for unit in units {
            match unit {
                Ok(unit) => self.unit(&unit, output),
                Err(Fault::NoFrame) => {
                    output
                        .events
                        .push_back(Event::Notice(Notice::NoFrames { pid }));
                }
                Err(Fault::Damaged) => {
                    self.cadence = Cadence::default();
                    output
                        .events
                        .push_back(Event::Notice(Notice::Damaged { pid }));
                    self.miss(output);
                }
                Err(Fault::Oversized(bytes)) => {
                    output
                        .events
                        .push_back(Event::Notice(Notice::Oversized { pid, bytes }));
                    self.miss(output);
                }
            }
        }
    }

    fn unit(&mut self, unit: &Whole, output: &mut Output<'_>) {
        if unit.bytes.is_empty() {
            return;
        }
        let (frame, pid) = match self.codec.filter(|_| !unit.scrambled) {
            Some(codec) => {
                let random_access = unit.marks.random_access;
                let frame = classify(codec, &unit.bytes, random_access, &mut self.extra);
                // Delimiters, messages and filling alone are headers too.
                (frame.unwrap_or(FrameType::Parameters), self.pid)
            }
            None => (FrameType::Opaque, self.pid),
        };
        if unit.scrambled {
            self.tell_scrambled(output);
        }
        let stamp = match self.codec {
            Some(Codec::Mpeg2 | Codec::H264 | Codec::H265) if !unit.scrambled => {
                self.cadence.place(unit.times.decoding(), unit.follows)
            }
            _ => unit.times.decoding(),
        };
        let timed = output.place((self.pid, &mut self.progress), stamp);
        if timed.is_jump {
            output
                .events
                .push_back(Event::Notice(Notice::Discontinuity { pid }));
        }
        let discontinuity = timed.is_jump || unit.marks.discontinuity;
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
            } if timed.by_stamp => {
                ticks(u64::try_from(difference(presentation, decoding)).unwrap_or(0))
            }
            _ => Span::ZERO,
        };
        let place = self.group.place(Arrival {
            number: self.next_section,
            frame_type: frame,
            presentation: unit.times.presentation(),
            source_time: timed.time,
            reordering,
        });
        self.section(
            frame,
            place,
            payload(Header::Unit(header), &unit.bytes),
            output,
        );
    }

    fn section(
        &mut self,
        frame: FrameType,
        place: Place,
        payload: bytes::Bytes,
        output: &mut Output<'_>,
    ) {
        let position = if frame.is_picture() {
            place.position
        } else {
            0
        };
        output.events.push_back(Event::Section(MediaSection {
            stream: self.number,
            number: self.next_section,
            source_time: place.source_time,
            deadline: place.deadline,
            importance: Importance::of(frame, position),
            frame,
            position,
            needs: place.needs,
            payload,
        }));
        self.next_section += 1;
    }

    fn tell_scrambled(&mut self, output: &mut Output<'_>) {
        if !core::mem::replace(&mut self.has_told_scrambled, true) {
            output
                .events
                .push_back(Event::Notice(Notice::Scrambled { pid: self.pid }));
        }
    }

    fn keep_scrambled(&mut self, packet: &[u8; PACKET], output: &mut Output<'_>) {
        self.tell_scrambled(output);
        // What is scrambled has no time stamps that can be read.
        let now = output.place((self.pid, &mut self.progress), None).time;
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
            source_time: self.scrambled_since,
            deadline: Span::ZERO,
        };
        self.section(
            FrameType::Slice,
            place,
            payload(Header::Packets, &packets),
            output,
        );
    }
}
