//! Distributes transport packets to their streams and tables.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use comity_units::{Span, Time};
use mpeg2ts_reader::packet::{AdaptationField, Packet};

use super::config::ReaderConfig;
use super::counter::{Continuity, Counter};
use super::error::{ReadError, SEARCHED, STILL};
use super::framing::Framed;
use super::pes::Part;
use super::program::ProgramClock;
use super::slices::payload;
use super::steps::Steps;
use super::stream::{Output, Stream};
use super::tables::SentTables;
use super::unit::Marks;
use crate::association::Association;
use crate::check;
use crate::codec::{self, Carriage, Codec, carriage};
use crate::header::{Header, PACKET};
use crate::layout::{self, Arranger, DroppedUnit, Usage};
use crate::pes::is_pes;
use crate::psi::{self, Gatherer};
use crate::section::{Event, JumpedTimes, MediaSection, Notice};
use crate::work;
use comity_frames::{FrameType, Importance};

const STUFFING: u16 = 0x1fff;
/// The PID of ATSC tables. DVB uses PIDs below 0x20.
const ATSC_TABLES: u16 = 0x1ffb;
/// The PID of DVB's network synchronisation (EN 300 468 table 1), which has no sections.
const SYNCHRONISATION: u16 = 0x15;
/// A program may use the PIDs from this one on (ISO/IEC 13818-1 table 2-3), as in old ATSC streams.
const FREE: u16 = 0x10;
/// The PID of DVB's event information, and its tables that are a schedule (EN 300 468 table 2).
const EVENTS: u16 = 0x12;
const SCHEDULE: core::ops::RangeInclusive<u8> = 0x50..=0x6f;
/// The importance of tables that the source repeats for receivers that missed them: a schedule, and
/// the data of programs, such as carousels.
const CYCLIC: Importance = Importance(40);
/// A source of this many bytes without any progress in time causes a notice.
const UNTIMED: u64 = 65_536;
/// After this many dropped bytes, continuity counters may have wrapped.
const COUNTED: u64 = 16 * PACKET as u64;
/// The maximum number of programs that follow the clock references of one PID. The programs of a
/// multiplex rarely share any, and further ones follow their time stamps alone.
const MAX_FOLLOWING: usize = 256;
/// The maximum number of elementary streams with sections of their own. A connection has at most 64
/// streams, and five of them are the tables, the layouts and three kinds of carried packets.
const MAX_ELEMENTARY: usize = 59;
/// How long a stream may be silent, by the furthest of the clocks, before its last picture counts
/// as complete, and the interval of this check.
const SILENT: Span = Span::from_secs(1);
const LOOK: Span = Span::from_millis(100);
/// The number of PIDs for which a packet pays: this check of all PIDs waits for as many packets.
const LOOKED_AT: usize = 16;

/// The use of a packet identifier.
#[derive(Debug)]
enum Role {
    Tables(Box<Tables>),
    Stream(Box<Stream>),
    Unreferenced,
}

/// The tables on one PID.
#[derive(Debug, Default)]
struct Tables {
    gatherer: Gatherer,
    counter: Counter,
    /// The PID of the map that lists it, and its stream type there.
    listed: Option<(u16, u8)>,
    has_reported_scrambled: bool,
}

/// The streams and tables of all programs, from whole packets.
#[derive(Debug)]
pub(super) struct Demux {
    config: ReaderConfig,
    longest: usize,
    roles: BTreeMap<u16, Role>,
    /// The clock of each program, by the PID of its map.
    clocks: BTreeMap<u16, ProgramClock>,
    /// The furthest time of these clocks so far.
    time: Time,
    /// The PIDs of the maps in force.
    maps: Association,
    /// For each PID with clock references, the maps of the programs that use it.
    references: BTreeMap<u16, BTreeSet<u16>>,
    /// Packets that belong to no program: the number of reported streams, and the total bytes.
    unreferenced: (u64, u64),
    /// The PIDs that have had a stream, in the order of its number.
    elementary: Vec<u16>,
    /// The streams of PIDs that have tables now, for the case that the PIDs change again.
    resting: BTreeMap<u16, Box<Stream>>,
    has_reported_many: bool,
    tables: SentTables,
    /// The furthest time of the clocks, and the number of bytes of streams since.
    furthest: Time,
    still: u64,
    /// When silent streams were last looked for.
    looked: Time,
    /// The number of packets of streams since.
    unlooked: usize,
    is_cut: bool,
    arranger: Option<Box<Arranger>>,
    /// The arrival of the latest bytes of a live source.
    arrival: Option<Time>,
    /// The clock references of a live source, by their PIDs.
    reference_steps: BTreeMap<u16, Steps>,
    /// The progress of the source at its last determination.
    reached: Span,
    /// The latest units that were dropped because of the configuration.
    dropped: Vec<DroppedUnit>,
    /// The memory of all incomplete units, in bytes.
    open: usize,
}

impl Demux {
    /// Begins with bytes that arrived at `arrival`, for a live source.
    pub(super) fn new(
        config: ReaderConfig,
        arrival: Option<Time>,
        events: &mut VecDeque<Event>,
    ) -> Self {
        let mut arranger = config.layouts.then(Box::<Arranger>::default);
        if let Some(arranger) = &mut arranger {
            arranger.arrive(arrival);
            arranger.announce(events);
        }
        Self {
            config,
            arranger,
            longest: usize::try_from(config.longest_unit.get()).unwrap_or(usize::MAX),
            roles: BTreeMap::new(),
            clocks: BTreeMap::new(),
            time: Time::ZERO,
            maps: Association::default(),
            references: BTreeMap::new(),
            unreferenced: (0, 0),
            elementary: Vec::new(),
            resting: BTreeMap::new(),
            has_reported_many: false,
            // The announcement is the first section of the tables.
            tables: SentTables::new(u64::from(config.layouts)),
            furthest: Time::ZERO,
            still: 0,
            looked: Time::ZERO,
            unlooked: 0,
            is_cut: false,
            arrival,
            reference_steps: BTreeMap::new(),
            reached: Span::ZERO,
            dropped: Vec::new(),
            open: 0,
        }
    }

    /// Sets the arrival time of the next bytes of a live source. Its time follows its arrivals.
    pub(super) fn arrive(&mut self, arrival: Option<Time>) {
        self.arrival = arrival;
        if let Some(arranger) = &mut self.arranger {
            arranger.arrive(arrival);
        }
    }

    /// Handles a silence of a live source: packets no longer wait for the end of their units.
    pub(super) fn on_silence(&mut self, events: &mut VecDeque<Event>) {
        if let Some(arranger) = &mut self.arranger {
            arranger.on_silence(events);
        }
    }

    /// When a live source has to be [woken](Self::wake), if nothing arrives before.
    pub(super) fn next_wakeup(&self) -> Option<Time> {
        self.arranger.as_ref()?.next_wakeup()
    }

    /// Describes the packets of a live source that have waited until `now`.
    pub(super) fn wake(&mut self, now: Time, events: &mut VecDeque<Event>) {
        if let Some(arranger) = &mut self.arranger {
            arranger.settle(now, events);
        }
    }

    /// The progress of a live source's time stamps, without jumps.
    pub(super) fn progress(&mut self) -> Span {
        let streams = self.roles.values_mut().filter_map(|role| match role {
            Role::Stream(stream) => Some(&mut stream.steps),
            Role::Tables(_) | Role::Unreferenced => None,
        });
        let reached = self.reached;
        let all = streams.chain(self.reference_steps.values_mut());
        let furthest = all.map(|steps| steps.position(reached)).max();
        self.reached = reached.max(furthest.unwrap_or(Span::ZERO));
        self.reached
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
                self.arrange(from, events);
                if let Some(arranger) = &mut self.arranger {
                    arranger.packet(packet, usage, now);
                    arranger.date(events.range_mut(from..));
                    arranger.settle(now, events);
                }
            }
            Framed::Outside(bytes) => {
                if let Some(arranger) = &mut self.arranger {
                    arranger.outside(bytes);
                }
            }
            Framed::Lost(skipped) => {
                if skipped >= COUNTED {
                    let from = events.len();
                    self.interrupt(events);
                    self.arrange(from, events);
                }
                if let (true, Some(arranger)) = (skipped >= SEARCHED, &mut self.arranger) {
                    arranger.on_long_break(events);
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

    /// Passes the units among the events from `from` on to the arranger. Those of a live source get
    /// the arrival time of its latest bytes.
    fn arrange(&mut self, from: usize, events: &mut VecDeque<Event>) {
        if let Some(arrival) = self.arrival {
            for event in events.range_mut(from..) {
                event.set_source_time(arrival);
            }
        }
        if let Some(arranger) = &mut self.arranger {
            arranger.units(events.range(from..), &self.dropped);
        }
        self.dropped.clear();
    }

    /// Processes the packet at the source position `at`. Returns which sections contain its bytes.
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
        let is_suspect = packet.transport_error_indicator();
        if pid == STUFFING || is_suspect && !matches!(self.roles.get(&pid), Some(Role::Stream(_))) {
            // The counter of its table later shows the damaged packet as a gap.
            return Ok(UNUSED);
        }
        let field = packet.adaptation_field();
        if let Some(Ok(reference)) = field.as_ref().map(AdaptationField::pcr)
            && !is_suspect
        {
            for program in self.references.get(&pid).into_iter().flatten() {
                if let Some(clock) = self.clocks.get_mut(program) {
                    work::count(1);
                    clock.on_reference(reference.base());
                    self.time = self.time.max(clock.now());
                }
            }
            if let (Some(arrival), true) = (self.arrival, self.references.contains_key(&pid)) {
                let steps = self.reference_steps.entry(pid).or_default();
                if let Some(by) = steps.on_stamp(reference.base(), arrival) {
                    events.push_back(Event::Notice(Notice::Discontinuity {
                        pid,
                        times: JumpedTimes::References,
                        by,
                    }));
                }
            }
        }
        let announced =
            !is_suspect && { field.as_ref() }.is_some_and(|field| field.discontinuity_indicator());
        let marks = Marks {
            random_access: !is_suspect && { field.as_ref() }
                .is_some_and(|field| field.random_access_indicator()),
            discontinuity: announced,
        };
        let is_clock = |programs: &BTreeSet<u16>| !programs.is_empty();
        let is_carried = self.arranger.is_some() || self.references.get(&pid).is_some_and(is_clock);
        let begins = packet.payload_unit_start_indicator();
        // If a packet is marked as wrong, its header may be wrong too.
        let is_scrambled =
            packet.transport_scrambling_control().is_scrambled() && packet.payload().is_some();
        if let Some(payload) = packet.payload()
            && begins
            && !is_scrambled
            && !is_suspect
        {
            self.on_start(pid, payload, events);
        }
        let role = self.roles.entry(pid).or_insert_with(|| {
            if pid < 0x20 && pid != SYNCHRONISATION || pid == ATSC_TABLES {
                Role::Tables(Box::default())
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
        match role {
            Role::Unreferenced => Ok(UNUSED),
            Role::Tables(tables) => {
                let Tables {
                    gatherer, counter, ..
                } = &mut **tables;
                let mut damaged = match counter.next(bytes, announced) {
                    Continuity::Next => false,
                    Continuity::Again => return Ok(UNUSED),
                    Continuity::Broken => gatherer.reset(),
                };
                if is_scrambled {
                    gatherer.reset();
                    if !core::mem::replace(&mut tables.has_reported_scrambled, true) {
                        events.push_back(Event::Notice(Notice::Scrambled { pid }));
                    }
                    return Ok(SCRAMBLED);
                }
                let (sections, malformed) = gatherer.push(payload, begins);
                let held = gatherer.held();
                damaged |= malformed;
                if damaged {
                    events.push_back(Event::Notice(Notice::Damaged { pid }));
                }
                let is_data = { tables.listed }.is_some_and(|(_, of)| of != codec::SPLICES);
                for section in sections {
                    self.table(pid, is_data, &section, events);
                }
                let carried_in = match is_data {
                    true => layout::DAMAGED,
                    false => layout::CARRIED,
                };
                Ok(Usage::Tables { held, carried_in })
            }
            Role::Stream(stream) => {
                let Some(clock) = self.clocks.get_mut(&stream.program) else {
                    return Ok(OF_STREAM);
                };
                let mut output = Output {
                    clock,
                    events,
                    config: &self.config,
                    arrival: self.arrival,
                    dropped: &mut self.dropped,
                };
                let is_carried = stream.lacks_pes();
                match stream.counter.next(bytes, announced && begins) {
                    Continuity::Again => return Ok(Usage::Duplicate),
                    Continuity::Broken if !is_carried => stream.interrupt(begins, &mut output),
                    Continuity::Next | Continuity::Broken => {}
                }
                stream.has_packets = true;
                if is_scrambled && !is_suspect {
                    stream.report_scrambled(&mut output);
                    stream.end_clear(&mut output);
                }
                // With layouts, scrambled and carried packets have sections of their own.
                if (is_scrambled || is_carried) && self.arranger.is_none() {
                    stream.keep(bytes, &mut output);
                } else if !is_scrambled && !is_carried {
                    stream.flush_kept(&mut output);
                    let part = Part {
                        payload,
                        begins: begins.then_some(marks),
                        is_filled: is_filled_up(bytes),
                        is_suspect,
                    };
                    stream.push(part, self.longest, &mut output);
                }
                let are_pictures = stream.codec.is_some_and(Codec::has_pictures);
                let is_open = stream.assembler.is_within();
                self.time = self.time.max(output.clock.now());
                let memory = stream.memory();
                self.open = self.open - stream.counted + memory;
                stream.counted = memory;
                self.keep_within(events);
                self.go_on(at, events)?;
                Ok(match is_scrambled {
                    true => SCRAMBLED,
                    false if is_carried => UNUSED,
                    false => Usage::Units {
                        are_pictures,
                        is_open,
                    },
                })
            }
        }
    }

    /// Handles the payload of a clear packet with a start, which shows whether the PID has PES
    /// packets. Some stream types have several meanings: 0x86 is SCTE 35's, and sound in M2TS.
    fn on_start(&mut self, pid: u16, payload: &[u8], events: &mut VecDeque<Event>) {
        match self.roles.get_mut(&pid) {
            Some(Role::Stream(stream)) => stream.on_start(payload),
            Some(Role::Tables(tables)) if is_pes(payload) => {
                if let Some((program, stream_type)) = tables.listed
                    && self.add_stream(pid, program, stream_type, events)
                {
                    events.push_back(Event::Notice(Notice::UnsupportedCodec { pid, stream_type }));
                } else if self.clocks.contains_key(&pid) && !self.maps.has(pid) {
                    // It had a map, and the map that lists it as a stream has not come yet.
                    self.roles.insert(pid, Role::Unreferenced);
                }
            }
            Some(Role::Tables(_) | Role::Unreferenced) | None => {}
        }
    }

    /// Gives a PID a stream: the one that it had, or another if there is one more. Otherwise its
    /// packets are like those of no program. Returns whether it has a stream.
    fn add_stream(
        &mut self,
        pid: u16,
        program: u16,
        stream_type: u8,
        events: &mut VecDeque<Event>,
    ) -> bool {
        if let Some(mut stream) = self.resting.remove(&pid) {
            stream.begin_anew(program, stream_type);
            self.roles.insert(pid, Role::Stream(stream));
            return true;
        }
        if self.elementary.len() >= MAX_ELEMENTARY {
            self.roles.insert(pid, Role::Unreferenced);
            if !core::mem::replace(&mut self.has_reported_many, true) {
                let most = MAX_ELEMENTARY as u16;
                events.push_back(Event::Notice(Notice::TooManyStreams { pid, most }));
            }
            return false;
        }
        self.elementary.push(pid);
        let number = self.elementary.len() as u16;
        let stream = Stream::new(pid, number, program, stream_type, self.config.deadlines);
        self.roles.insert(pid, Role::Stream(Box::new(stream)));
        true
    }

    /// Drops the longest incomplete unit if all of them exceed the limit.
    fn keep_within(&mut self, events: &mut VecDeque<Event>) {
        let most = usize::try_from(self.config.open_units.get()).unwrap_or(usize::MAX);
        if self.open <= most {
            return;
        }
        let streams = self.roles.values().filter_map(|role| match role {
            Role::Stream(stream) => Some(stream.counted),
            Role::Tables(_) | Role::Unreferenced => None,
        });
        let longest = streams.max().unwrap_or(0);
        let mut has_given_up = false;
        self.each_stream(events, |stream, output| {
            if stream.counted == longest && !core::mem::replace(&mut has_given_up, true) {
                stream.give_up(output);
            }
        });
    }

    /// Updates the progress of the source with a stream's packet at `at`. While other streams
    /// continue, completes the last pictures of silent streams, which would otherwise wait until
    /// the end of the source.
    fn go_on(&mut self, at: u64, events: &mut VecDeque<Event>) -> Result<(), ReadError> {
        let now = self.now();
        if now > self.furthest {
            (self.furthest, self.still) = (now, 0);
        }
        self.still += PACKET as u64;
        if self.still > STILL && self.arrival.is_none() {
            return Err(ReadError::NoTime { at });
        }
        self.unlooked += 1;
        let is_paid = self.unlooked.saturating_mul(LOOKED_AT) >= self.roles.len();
        if !is_paid || now.saturating_since(self.looked) < LOOK {
            return Ok(());
        }
        (self.looked, self.unlooked) = (now, 0);
        self.each_stream(events, |stream, output| {
            if core::mem::take(&mut stream.has_packets) {
                stream.last_packet_at = now;
            } else if now.saturating_since(stream.last_packet_at) >= SILENT {
                stream.give_up_waiting(output);
            }
        });
        Ok(())
    }

    /// Drops incomplete units at a break in the stream, because continuity counters do not always
    /// show it.
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
            stream.flush_kept(output);
            if stream.assembler.is_within() {
                stream.counter = Counter::default();
                stream.interrupt(false, output);
            }
        });
    }

    /// Returns all waiting data at the end of the source.
    pub(super) fn finish(&mut self, events: &mut VecDeque<Event>) {
        let is_cut = self.is_cut;
        let from = events.len();
        self.each_stream(events, |stream, output| {
            if is_cut && stream.assembler.is_within_packet() {
                stream.interrupt(false, output);
            }
            stream.finish(output);
        });
        self.arrange(from, events);
        if let Some(mut arranger) = self.arranger.take() {
            arranger.finish(events);
            arranger.date(events.range_mut(from..));
        }
        let bytes = self.still;
        if self.now() == Time::ZERO && bytes >= UNTIMED && self.arrival.is_none() {
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
            work::count(1);
            let Role::Stream(stream) = role else { continue };
            if let Some(clock) = self.clocks.get_mut(&stream.program) {
                let mut output = Output {
                    clock,
                    events,
                    config: &self.config,
                    arrival: self.arrival,
                    dropped: &mut self.dropped,
                };
                act(stream, &mut output);
                self.time = self.time.max(output.clock.now());
            }
            let memory = stream.memory();
            self.open = self.open - stream.counted + memory;
            stream.counted = memory;
        }
    }

    /// Learns the PID of a program map. It may have had a stream of another program before.
    pub(super) fn learn_program(&mut self, pid: u16, events: &mut VecDeque<Event>) {
        self.clocks.entry(pid).or_default();
        self.maps.expect(pid);
        if let Some(Role::Stream(_)) = self.roles.get(&pid) {
            self.finish_stream(pid, events);
            if let Some(Role::Stream(stream)) = self.roles.remove(&pid) {
                self.resting.insert(pid, stream);
            }
        }
        let role = self.roles.entry(pid).or_insert(Role::Unreferenced);
        match role {
            Role::Tables(tables) => tables.listed = None,
            Role::Unreferenced | Role::Stream(_) => *role = Role::Tables(Box::default()),
        }
    }

    /// Returns the waiting data of a stream that ends, or whose type changes.
    fn finish_stream(&mut self, pid: u16, events: &mut VecDeque<Event>) {
        if let Some(Role::Stream(stream)) = self.roles.get_mut(&pid)
            && let Some(clock) = self.clocks.get_mut(&stream.program)
        {
            let mut output = Output {
                clock,
                events,
                config: &self.config,
                arrival: self.arrival,
                dropped: &mut self.dropped,
            };
            stream.finish(&mut output);
            self.time = self.time.max(output.clock.now());
            self.open -= core::mem::take(&mut stream.counted);
        }
    }

    /// Learns the streams of a program from a section of its map.
    pub(super) fn learn_streams(
        &mut self,
        program: u16,
        section: &[u8],
        events: &mut VecDeque<Event>,
    ) {
        let Some(map) = psi::program_map(section) else {
            return;
        };
        if let Some(clock) = self.clocks.get_mut(&program)
            && let Some(last) = clock.pid.replace(map.clock_pid)
            && let Some(programs) = self.references.get_mut(&last)
        {
            programs.remove(&program);
        }
        let programs = self.references.entry(map.clock_pid).or_default();
        if programs.len() < MAX_FOLLOWING {
            programs.insert(program);
        }
        for &pid in &self.elementary {
            if let Some(Role::Stream(stream)) = self.roles.get_mut(&pid)
                && stream.program == program
            {
                stream.is_named = map.streams.iter().any(|(named, _)| *named == pid);
            }
        }
        for &(pid, stream_type) in &map.streams {
            if pid == STUFFING {
                continue;
            }
            let carriage = carriage(stream_type);
            let is_reserved = pid < FREE || self.maps.has(pid);
            match self.roles.get_mut(&pid) {
                Some(Role::Stream(stream)) if stream.stream_type == stream_type => continue,
                // Another program names it too, with a type of its own.
                Some(Role::Stream(stream))
                    if stream.program != program
                        && stream.is_named
                        && self.maps.has(stream.program) =>
                {
                    continue;
                }
                Some(Role::Stream(_)) => {
                    self.finish_stream(pid, events);
                    if let Some(Role::Stream(stream)) = self.roles.get_mut(&pid) {
                        stream.change_type(stream_type);
                    }
                }
                Some(Role::Tables(_)) if is_reserved => continue,
                Some(Role::Tables(tables)) if carriage == Carriage::Tables => {
                    tables.listed = Some((program, stream_type));
                    continue;
                }
                Some(Role::Unreferenced) | None if carriage == Carriage::Tables => {
                    self.roles.insert(
                        pid,
                        Role::Tables(Box::new(Tables {
                            listed: Some((program, stream_type)),
                            ..Tables::default()
                        })),
                    );
                    continue;
                }
                Some(Role::Unreferenced | Role::Tables(_)) | None => {
                    if !self.add_stream(pid, program, stream_type, events) {
                        continue;
                    }
                }
            }
            if carriage == Carriage::Opaque && !check::names_private_data(section, pid) {
                events.push_back(Event::Notice(Notice::UnsupportedCodec { pid, stream_type }));
            }
        }
    }

    /// The latest arrival of a live source, or else the furthest time of the clocks.
    fn now(&self) -> Time {
        if let Some(arrival) = self.arrival {
            return arrival;
        }
        self.time
    }

    /// Processes a section of a table, or of a program's data if `is_data`.
    fn table(&mut self, pid: u16, is_data: bool, section: &[u8], events: &mut VecDeque<Event>) {
        if pid == psi::PAT {
            let programs = psi::programs(section).unwrap_or_default();
            for &program in &programs {
                self.learn_program(program, events);
            }
            self.maps.add(section, programs);
        } else if self.clocks.contains_key(&pid) {
            self.learn_streams(pid, section, events);
        }
        let now = match self.clocks.get(&pid) {
            Some(clock) if self.arrival.is_none() => clock.now(),
            _ => self.now(),
        };
        // PAT, CAT, NIT, SDT and the maps. Other tables are events or carousels with their own
        // timing.
        let repeated = matches!(pid, 0x00 | 0x01 | 0x10 | 0x11) || self.clocks.contains_key(&pid);
        let payload = payload(Header::Table { pid, repeated }, section);
        let key = repeated.then(|| (pid, psi::key(section)));
        let refresh = self.config.table_refresh;
        let (sent, is_new) = self.tables.find(key, &payload, now, refresh);
        if let Some(arranger) = &mut self.arranger {
            arranger.table(pid, sent.number, &payload, sent.when);
        }
        if !is_new {
            return;
        }
        let is_schedule = |table: &u8| pid == EVENTS && SCHEDULE.contains(table);
        let is_scheduled = section.first().is_some_and(is_schedule);
        events.push_back(Event::Section(MediaSection {
            stream: 0,
            number: sent.number,
            source_time: now,
            deadline: Span::ZERO,
            importance: match is_data && !repeated || is_scheduled {
                true => CYCLIC,
                false => Importance::of(FrameType::Table, 0),
            },
            is_damaged: false,
            frame: FrameType::Table,
            position: 0,
            needs: None,
            is_bound: false,
            payload,
        }));
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

#[cfg(test)]
mod tests;
