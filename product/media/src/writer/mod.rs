//! Writes sections as a transport stream.

mod clock;
mod config;
mod held;
mod numbers;
mod packet;
mod tables;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use comity_units::Span;

use crate::allowance::Allowance;
use crate::check::packet::Facts;
use crate::header::{Header, HeaderError, PACKET, Times, Unit};
use crate::layout::{self, Action, Arrived, Restorer, Resume};
use crate::{psi, work};
use clock::{Clock, Copied, Step};
pub use config::{Output, WriterConfig};
use held::{HELD, Held, HeldUnit};
use numbers::FirstNumbers;
use packet::{Field, Packetiser};
use tables::{Room, Tables};

/// Counters of a writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriterStatistics {
    /// The number of access units.
    pub units: u64,
    /// The number of transport packets that the writer made, without copied and restored packets.
    pub packets: u64,
    /// The number of transport packets of the source that were restored byte for byte.
    pub restored_packets: u64,
    /// The number of packets that replace packets with missing sections.
    pub replaced_packets: u64,
    /// The number of sections that were written without their layout.
    pub remultiplexed_sections: u64,
    /// The number of jumps of the clock.
    pub discontinuities: u64,
    /// The number of units whose decoding time the stream's clock had already passed.
    pub late_units: u64,
    /// The number of units of the old clock that arrived after a jump. They are written after the
    /// previous unit of their stream, without time stamps, which a player would interpret on the
    /// new clock.
    pub unstamped_units: u64,
    /// How often the writer omitted a packet or the rest of the tables of a repetition, because the
    /// input was too small for them.
    pub omitted: u64,
}

/// Writes sections as a transport stream.
///
/// Layouts among the sections describe the packets of the source, and
/// [`write_section`](Self::write_section) restores the packets, byte for byte. If a section is
/// missing, its packets are missing too; in a multiplex of constant rate, null packets replace
/// them. Their clock references are kept, and a packet without payload announces the gap in the
/// counters.
///
/// Without layouts, or without the layout of a section, the writer makes a new stream: whole access
/// units, tables and clock references at their intervals, and continuity counters without a gap.
///
/// Copied packets, [`Header::Packets`], keep their clock references. The writer then makes none for
/// their program until a unit arrives on their PID.
///
/// In a new stream, a missing section leaves no gap: its packets are not counted, and the clock
/// continues. A player sees a stream without that unit. If the times jump, or advance by more than
/// a second without a similar step before, the clock is marked as discontinuous.
///
/// Units that arrive before any table wait (up to 4 MiB, or to the end), because a player cannot
/// read a stream that begins without tables. If no table arrives, the writer makes minimal tables
/// from the units.
///
/// The output is bounded by the input. Packets that repeat earlier output, such as those of tables
/// and clock references, are limited to sixteen times the input plus 1 MiB. Null packets are
/// limited to 256 times the input plus 64 MiB.
///
/// Sources other than transport streams, [`Header::Raw`] and [`Header::Picture`], are copied. The
/// first payload selects one of the two groups, and later payloads of the other group are refused.
/// A transport stream therefore consists of whole packets. Another connection, with which the
/// numbers of stream 0 begin anew, may bring the other group.
#[derive(Debug)]
pub struct TsWriter {
    config: WriterConfig,
    packetiser: Packetiser,
    tables: Tables,
    /// The clock of each program, by the PID of its map.
    programs: BTreeMap<u16, ClockId>,
    clocks: BTreeMap<ClockId, References>,
    /// The PID of each stream's map.
    streams: BTreeMap<u16, u16>,
    held: Held,
    /// Whether the payloads so far belong to a transport stream.
    is_transport: Option<bool>,
    numbers: FirstNumbers,
    restorer: Restorer,
    /// Whether layouts may still be announced.
    is_undecided: bool,
    /// The latest restored clock reference of each PID, and the number of its packet.
    restored_clocks: BTreeMap<u16, (u64, u64)>,
    /// The number of written packets, and the number of packets that the writer added to a constant
    /// rate.
    written: u64,
    excess: u64,
    /// Whether the rate was constant at the latest missing layout.
    is_constant: bool,
    /// The bytes before the latest packet, if they make it a packet of 192 or 204 bytes, and
    /// whether they are those of the next packet.
    beside: Vec<u8>,
    is_beside_next: bool,
    /// The PIDs whose counters may jump before their next packet.
    interrupted: BTreeSet<u16>,
    /// How many bytes of repeated tables and of clock references may be written.
    repeats: Allowance,
    statistics: WriterStatistics,
}

/// The clock of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ClockId {
    /// The clock of the references on this PID, which programs may share.
    Pid(u16),
    /// The program with this map has no clock references.
    None(u16),
}

impl ClockId {
    const fn new(map_pid: u16, clock_pid: u16) -> Self {
        match clock_pid {
            NO_PID => Self::None(map_pid),
            pid => Self::Pid(pid),
        }
    }
}

/// The clock of one or more programs.
#[derive(Debug)]
struct References {
    clock: Clock,
    whose: Whose,
    copied: Copied,
    /// The programs with this clock, by the PIDs of their maps.
    programs: BTreeSet<u16>,
}

/// The origin of a program's clock references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// The writer makes them from the decoding times.
    Own,
    /// They are those of the source, in copied packets.
    Source,
    /// The writer makes them again, but has written none since.
    OwnAgain,
}

/// The PID for the map of a program without one.
const MADE_UP_MAP: u16 = 0x1000;
/// The PID value of a program without a clock, and the PID of null packets.
const NO_PID: u16 = 0x1fff;

/// Whether these bytes make a packet one of 192 or 204 bytes.
const fn is_of_packets(bytes: &[u8]) -> bool {
    bytes.len() == 4 || bytes.len() == 16
}

/// Whether this is a payload of a transport stream.
const fn is_transport(header: &Header) -> bool {
    !matches!(header, Header::Raw | Header::Picture(_))
}

fn pid_of(packet: &[u8; PACKET]) -> u16 {
    u16::from_be_bytes([packet[1] & 0x1f, packet[2]])
}

impl TsWriter {
    /// Creates a writer at the beginning of a stream.
    pub fn new(config: WriterConfig) -> Self {
        Self {
            config,
            packetiser: Packetiser::default(),
            tables: Tables::default(),
            programs: BTreeMap::new(),
            clocks: BTreeMap::new(),
            streams: BTreeMap::new(),
            held: Held::default(),
            is_transport: None,
            numbers: FirstNumbers::default(),
            restorer: Restorer::default(),
            is_undecided: true,
            restored_clocks: BTreeMap::new(),
            written: 0,
            excess: 0,
            is_constant: false,
            beside: Vec::new(),
            is_beside_next: false,
            interrupted: BTreeSet::new(),
            repeats: Allowance::REPEATS,
            statistics: WriterStatistics::default(),
        }
    }

    /// Adds the section with this number in its stream, as counted by the receiver, and appends the
    /// packets that can now be written to `out`.
    ///
    /// Each number is passed once, here or to [`miss`](Self::miss). Numbers that restart are those
    /// of another connection.
    ///
    /// # Errors
    /// Like [`write`](Self::write), and if a layout is malformed.
    pub fn write_section(
        &mut self,
        stream: u16,
        number: u64,
        payload: &Bytes,
        out: &mut Vec<u8>,
    ) -> Result<(), HeaderError> {
        let (header, rest) = Header::decode(payload)?;
        if stream == layout::TABLES && self.numbers.may_begin(number) && self.is_other(&header) {
            self.begin_anew(out);
        }
        self.check_group(&header)?;
        if stream == layout::TABLES {
            self.numbers.write(number);
        }
        self.repeats.earn(payload.len());
        self.restorer.earn(payload.len());
        let is_media = matches!(header, Header::Raw | Header::Picture(_));
        if is_media {
            self.write_alone(&header, rest, out);
            return Ok(());
        }
        if self.config.output == Output::Remultiplexed {
            if !layout::is_restored_alone(stream) {
                self.write_alone(&header, rest, out);
            }
            return Ok(());
        }
        let mut actions = Vec::new();
        let is_announcement = header == Header::Layout && stream == layout::TABLES;
        if is_announcement {
            self.is_undecided = false;
            self.restorer.expect();
            // The tables before the announcement are those that a late receiver gets.
            self.interrupted = self.packetiser.pids();
        } else if header == Header::Layout {
            self.is_undecided = false;
            let layout = layout::decode(rest).ok_or(HeaderError::Layout)?;
            if !self.restorer.is_on() {
                // Units that wait for tables arrived too early to be understood.
                self.held = Held::default();
                self.interrupted = self.packetiser.pids();
            }
            self.restorer.layout(number, layout, &mut actions);
        } else {
            let arrived = Arrived {
                stream,
                number,
                payload: payload.clone(),
                header: payload.len() - rest.len(),
                unit: match header {
                    Header::Unit(unit) => Some(unit),
                    _ => None,
                },
            };
            // An announcement is the first section of the tables.
            if stream == layout::TABLES || self.restorer.held() > HELD {
                self.decide(&mut actions);
            }
            if self.is_undecided {
                self.restorer.keep(&arrived, &mut actions);
            } else if self.restorer.is_on() {
                self.restorer.section(&arrived, &mut actions);
                if let Header::Table { pid, repeated } = header {
                    self.learn_table(pid, repeated, rest);
                }
            } else {
                self.act(core::mem::take(&mut actions), out);
                self.restorer.remember(&arrived, &mut actions);
                if !layout::is_restored_alone(stream) {
                    self.write_alone(&header, rest, out);
                }
            }
        }
        self.act(actions, out);
        Ok(())
    }

    /// The arrival spacing, at a live source, of the most recently written packets; `None` if it is
    /// unknown.
    pub fn spacing(&self) -> Option<Span> {
        self.restorer.spacing()
    }

    /// Records that `count` sections from `first` on will not arrive. Appends the packets that
    /// waited for them to `out`.
    pub fn miss(&mut self, stream: u16, first: u64, count: u64, out: &mut Vec<u8>) {
        let mut actions = Vec::new();
        self.restorer.miss(stream, first, count, &mut actions);
        if stream == layout::TABLES {
            self.numbers.miss(first);
            self.decide(&mut actions);
        }
        self.act(actions, out);
    }

    /// Stops waiting for an announcement of layouts.
    fn decide(&mut self, actions: &mut Vec<Action>) {
        if core::mem::take(&mut self.is_undecided) {
            self.restorer.release(actions);
        }
    }

    fn act(&mut self, actions: Vec<Action>, out: &mut Vec<u8>) {
        for action in actions {
            let from = out.len();
            match action {
                Action::Outside(bytes) if self.config.outside => {
                    out.extend(&bytes);
                    self.beside = bytes;
                    self.is_beside_next = true;
                    self.beside
                        .truncate(if is_of_packets(&self.beside) { 16 } else { 0 });
                }
                Action::Outside(_) => {}
                Action::Packet(packet) => {
                    self.statistics.restored_packets += 1;
                    self.restore(&packet, out);
                }
                Action::Replacement(mut packet) => {
                    self.statistics.replaced_packets += 1;
                    let is_field = packet[3] & 0x30 == 0x20 && packet[5] & 0x80 == 0;
                    if let Some(last) = self.packetiser.counter(pid_of(&packet))
                        && is_field
                    {
                        packet[3] = 0x20 | last;
                    }
                    self.restore(&packet, out);
                }
                Action::Remultiplex(stream, payload) => {
                    let is_on = u64::from(self.restorer.is_on());
                    self.statistics.remultiplexed_sections += is_on;
                    match Header::decode(&payload) {
                        // A unit without tables would be written out of order.
                        Ok((Header::Unit(unit), _))
                            if self.restorer.is_on() && !self.is_known(unit.pid) => {}
                        Ok((header, rest)) if !layout::is_restored_alone(stream) => {
                            self.write_alone(&header, rest, out);
                        }
                        _ => {}
                    }
                    self.insert(from, out);
                }
                Action::Continue(pid, bytes) => {
                    self.packetiser.go_on(pid, &bytes, out);
                    self.insert(from, out);
                }
                Action::Resume(resume) => self.resume(&resume, out),
                Action::Break => self.interrupted = self.packetiser.pids(),
            }
        }
    }

    /// Counts the packets that the writer inserted from this position of `out` on.
    fn insert(&mut self, from: usize, out: &mut Vec<u8>) {
        let packets = ((out.len() - from) / PACKET) as u64;
        self.written += packets;
        self.excess += if self.is_constant { packets } else { 0 };
        self.lengthen(from, out);
    }

    /// Continues after a missing layout in a multiplex of constant rate: announces the jumps of
    /// counters, and writes null packets for the other missing packets.
    fn resume(&mut self, resume: &Resume, out: &mut Vec<u8>) {
        let from = out.len();
        for (&pid, &counter) in &resume.counters {
            self.announce(pid, counter, out);
        }
        self.lengthen(from, out);
        (self.excess, self.is_constant) = (0, true);
        let Some(&(clock, number)) = self.restored_clocks.get(&resume.pid) else {
            return;
        };
        let from = out.len();
        for _ in 0..resume.nulls(clock, self.written - number) {
            if !self.restorer.spend_null() {
                break;
            }
            out.extend(layout::null_packet(layout::Null::PLAIN));
            self.written += 1;
            self.statistics.replaced_packets += 1;
        }
        self.lengthen(from, out);
    }

    /// Before a packet with this counter, announces that the counter of its PID jumps, if it does.
    fn announce(&mut self, pid: u16, counter: u8, out: &mut Vec<u8>) {
        let before = counter.wrapping_sub(1) & 0x0f;
        let last = self.packetiser.counter(pid);
        if self.interrupted.remove(&pid) && last.is_some_and(|last| last != before) {
            out.extend(layout::without_payload(pid, before, true, None));
            self.packetiser.follow(pid, before);
            self.written += 1;
            self.excess += u64::from(self.is_constant);
        }
    }

    /// Extends the writer's own packets from this position of `out` on to the size of the source's
    /// packets.
    fn lengthen(&self, from: usize, out: &mut Vec<u8>) {
        if self.beside.is_empty() {
            return;
        }
        let own = out.split_off(from);
        for packet in own.chunks(PACKET) {
            out.extend(self.beside.iter().chain(packet));
        }
    }

    /// Writes a packet of the source. If the writer's own packets precede it, the first packet with
    /// a payload on each PID announces the jump of the counter.
    fn restore(&mut self, packet: &[u8; PACKET], out: &mut Vec<u8>) {
        let pid = pid_of(packet);
        if !core::mem::take(&mut self.is_beside_next) {
            self.beside.clear();
        }
        if pid != NO_PID {
            let (has_payload, counter) = (packet[3] & 0x10 != 0, packet[3] & 0x0f);
            if has_payload {
                let from = out.len();
                self.announce(pid, counter, out);
                let announcement = out.split_off(from);
                if !announcement.is_empty() {
                    out.extend(announcement.iter().chain(&self.beside));
                }
            }
            self.packetiser.follow(pid, counter);
        } else if self.excess > 0 && self.beside.is_empty() {
            // A packet of the writer's own has replaced this null packet.
            self.excess -= 1;
            return;
        }
        if let Some(clock) = layout::read_clock_of(packet) {
            self.restored_clocks.insert(pid, (clock, self.written));
        }
        self.written += 1;
        out.extend(packet);
    }

    /// The first payload decides whether the stream is a transport stream.
    fn check_group(&mut self, header: &Header) -> Result<(), HeaderError> {
        if self.is_other(header) {
            return Err(HeaderError::Mixed);
        }
        self.is_transport = Some(is_transport(header));
        Ok(())
    }

    /// Whether this payload and those before it are of different groups.
    fn is_other(&self, header: &Header) -> bool {
        { self.is_transport }.is_some_and(|present| present != is_transport(header))
    }

    /// Ends the stream of a connection: another one brings another group.
    fn begin_anew(&mut self, out: &mut Vec<u8>) {
        self.finish(out);
        *self = Self {
            statistics: self.statistics(),
            ..Self::new(self.config)
        };
    }

    /// Appends a section's payload to `out` without layouts. For a transport stream, these are
    /// whole packets.
    ///
    /// # Errors
    /// A [`HeaderError`] if the payload is malformed, or of the other group. Nothing of it is then
    /// written, and the stream stays valid.
    pub fn write(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), HeaderError> {
        let (header, rest) = Header::decode(payload)?;
        self.check_group(&header)?;
        self.repeats.earn(payload.len());
        self.write_alone(&header, rest, out);
        Ok(())
    }

    fn write_alone(&mut self, header: &Header, rest: &[u8], out: &mut Vec<u8>) {
        match *header {
            Header::Layout => {}
            Header::Raw | Header::Picture(_) => out.extend(rest),
            Header::Packets => {
                for packet in rest.as_chunks::<PACKET>().0 {
                    self.copy(*packet, out);
                }
            }
            Header::Table { pid, repeated } => self.table(pid, repeated, rest, out),
            Header::Unit(unit) if self.is_known(unit.pid) => self.unit(&unit, rest, out),
            Header::Unit(unit) => {
                let is_named = self.streams.contains_key(&unit.pid);
                if !self.held.push(unit, rest, is_named) {
                    self.release_all(out);
                }
            }
        }
    }

    /// Copies a packet. If copied packets carry the clock references of a program, the writer makes
    /// none for it, because two series would contradict each other. If a copied reference follows
    /// the writer's own, it is marked as a jump. Tables are repeated with copied references as with
    /// the writer's own.
    fn copy(&mut self, mut packet: [u8; PACKET], out: &mut Vec<u8>) {
        let facts = Facts::of(&packet);
        let clock = facts.and_then(|facts| Some((ClockId::Pid(facts.pid), facts.clock?)));
        if let Some((id, clock)) = clock
            && let Some(references) = self.clocks.get_mut(&id)
        {
            if core::mem::replace(&mut references.whose, Whose::Source) != Whose::Source
                && references.clock.has_begun()
            {
                packet[5] |= 0x80;
                self.statistics.discontinuities += 1;
            }
            let is_due = references.copied.advance(clock / 300, self.config.interval);
            let now = references.copied.now();
            // Between restored packets, only the tables of the source are written.
            if is_due && self.tables.has_programs() && !self.restorer.is_on() {
                self.repeat_tables(id, now, out);
            }
        }
        self.packetiser.on_copied();
        out.extend(packet);
    }

    /// Repeats the tables of all programs with this clock, as far as the allowance suffices.
    /// Returns whether it did.
    fn repeat_tables(&mut self, clock: ClockId, now: u64, out: &mut Vec<u8>) -> bool {
        let mut room = Room {
            allowance: &mut self.repeats,
            omitted: &mut self.statistics.omitted,
            is_spent: false,
        };
        let programs = self.clocks.get(&clock).map(|clock| &clock.programs);
        for &map_pid in programs.into_iter().flatten() {
            if room.is_spent {
                break;
            }
            self.tables.repeat(
                map_pid,
                now,
                &self.config,
                &mut self.packetiser,
                &mut room,
                out,
            );
        }
        !room.is_spent
    }

    /// Writes everything that waits: for tables, for layouts, or for sections. The stream may end
    /// here or continue.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let mut actions = Vec::new();
        self.restorer.finish(&mut actions);
        self.act(actions, out);
        self.release_all(out);
    }

    /// Whether sections wait.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty() || self.restorer.is_holding()
    }

    /// The PIDs of the units that wait for tables or for layouts.
    pub fn held_streams(&self) -> BTreeSet<u16> {
        let mut pids = self.restorer.held_pids();
        pids.extend(self.held.pids());
        pids
    }

    /// The counters so far.
    pub fn statistics(&self) -> WriterStatistics {
        WriterStatistics {
            packets: self.statistics.packets + self.packetiser.packets(),
            omitted: self.statistics.omitted + self.restorer.omitted(),
            ..self.statistics
        }
    }

    /// Whether the tables describe this stream.
    fn is_known(&self, pid: u16) -> bool {
        self.tables.has_programs() && self.streams.contains_key(&pid)
    }

    fn table(&mut self, pid: u16, repeated: bool, section: &[u8], out: &mut Vec<u8>) {
        let is_due = self.learn_table(pid, repeated, section);
        // Before the first PAT, other tables are useless to a player. They are repeated after it.
        if is_due && (self.tables.has_programs() || !repeated) {
            self.packetiser.section(pid, section, out);
        }
        if self.tables.has_programs() {
            for (unit, bytes) in self.held.take_named() {
                self.unit(&unit, &bytes, out);
            }
        }
    }

    /// Processes a table. Returns whether it is to be written now.
    fn learn_table(&mut self, pid: u16, repeated: bool, section: &[u8]) -> bool {
        let is_map = self.tables.names_map(pid);
        let is_due = !repeated || self.tables.remember(pid, section);
        if pid == psi::PAT {
            for (map_pid, map) in self.tables.unread_maps(section) {
                self.learn(map_pid, &map);
            }
        } else if is_map {
            self.learn(pid, section);
        }
        is_due
    }

    fn learn(&mut self, map_pid: u16, section: &[u8]) {
        let Some(map) = psi::program_map(section) else {
            return;
        };
        for &(pid, _) in &map.streams {
            work::count(1);
            self.streams.insert(pid, map_pid);
            self.held.name(pid);
        }
        let id = ClockId::new(map_pid, map.clock_pid);
        let mut moved = None;
        if let Some(last) = self.programs.insert(map_pid, id)
            && last != id
            && let Some(references) = self.clocks.get_mut(&last)
        {
            references.programs.remove(&map_pid);
            if references.programs.is_empty() && !self.clocks.contains_key(&id) {
                // The same clock on another PID.
                moved = self.clocks.remove(&last);
            }
        }
        let lead = self.config.lead;
        let references = self.clocks.entry(id).or_insert_with(|| {
            moved.unwrap_or_else(|| References {
                clock: Clock::new(lead),
                whose: Whose::Own,
                copied: Copied::default(),
                programs: BTreeSet::new(),
            })
        });
        references.programs.insert(map_pid);
    }

    /// Writes all waiting units, with tables made from the units whose streams are unknown.
    fn release_all(&mut self, out: &mut Vec<u8>) {
        let held = self.held.take();
        if held.iter().any(|(unit, _)| !self.is_known(unit.pid)) {
            self.make_up_tables(&held);
        }
        for (unit, bytes) in held {
            // A map has no room for hundreds of streams. Real sources never have as many.
            if self.is_known(unit.pid) {
                self.unit(&unit, &bytes, out);
            }
        }
    }

    /// Makes a program from the unknown streams of these units, in addition to the known programs.
    fn make_up_tables(&mut self, held: &[HeldUnit]) {
        let mut streams: Vec<(u16, u8)> = Vec::new();
        let mut seen = BTreeSet::new();
        for (unit, _) in held {
            if !self.is_known(unit.pid) && seen.insert(unit.pid) {
                streams.push((unit.pid, unit.stream_type));
            }
        }
        let video = held.iter().find(|(unit, _)| unit.frame.is_picture());
        let clock_pid = video.or(held.first()).map_or(NO_PID, |(unit, _)| unit.pid);
        // A free PID: streams are far fewer than PIDs.
        let taken = |pid: u16| self.streams.contains_key(&pid) || seen.contains(&pid);
        let map_pid = (MADE_UP_MAP..NO_PID)
            .find(|&pid| !taken(pid))
            .unwrap_or(MADE_UP_MAP);
        // A map has room for 1012 bytes, five for each stream.
        streams.truncate(200);
        let map = psi::write_program_map(&psi::ProgramMap { clock_pid, streams });
        if !self.tables.has_programs() {
            self.tables.remember(psi::PAT, &psi::write_pat(map_pid));
        }
        self.tables.remember(map_pid, &map);
        self.learn(map_pid, &map);
    }

    fn unit(&mut self, unit: &Unit, bytes: &[u8], out: &mut Vec<u8>) {
        let Some(map_pid) = self.streams.get(&unit.pid).copied() else {
            return;
        };
        let Some(id) = self.programs.get(&map_pid).copied() else {
            return;
        };
        let Some(references) = self.clocks.get_mut(&id) else {
            return;
        };
        let mut steps = Vec::new();
        let mut unit = *unit;
        // Between restored packets, the clock is that of the source.
        let own = { unit.times.decoding() }.filter(|_| !self.restorer.is_on());
        if let Some(stamp) = own {
            let clock = &mut references.clock;
            let mark = unit.discontinuity;
            if let Some(due) = clock.advance(unit.pid, stamp, mark, self.config.interval) {
                steps = due;
                self.statistics.late_units += u64::from(clock.is_late(stamp));
            } else {
                unit.times = Times::None;
                self.statistics.unstamped_units += 1;
            }
        }
        let now = references.clock.now();
        let mut field = Field {
            random_access: unit.random_access,
            ..Field::default()
        };
        if id == ClockId::Pid(unit.pid) && references.whose == Whose::Source {
            references.whose = Whose::OwnAgain;
        }
        let mut whose = references.whose;
        let last = steps.len().saturating_sub(1);
        let is_entry = unit.random_access && unit.frame.is_picture();
        let mut has_room = true;
        for (index, mut step) in steps.into_iter().enumerate() {
            if !has_room && index < last {
                self.statistics.omitted += 1;
                continue;
            }
            // Tables precede each reference, so that they are as frequent on the stream's clock.
            has_room = self.repeat_tables(id, step.at, out);
            let ClockId::Pid(clock_pid) = id else {
                continue;
            };
            if whose == Whose::Source {
                continue;
            }
            let is_own = index == last && clock_pid == unit.pid;
            if !is_own && !self.repeats.spend(PACKET) {
                self.statistics.omitted += 1;
                continue;
            }
            step.discontinuity |= whose == Whose::OwnAgain;
            whose = Whose::Own;
            self.statistics.discontinuities += u64::from(step.discontinuity);
            if is_own {
                field.clock = Some(step.clock);
                field.discontinuity = step.discontinuity;
            } else {
                let Step {
                    clock,
                    discontinuity,
                    ..
                } = step;
                let alone = Field {
                    clock: Some(clock),
                    discontinuity,
                    random_access: false,
                };
                self.packetiser.field(clock_pid, alone, out);
            }
        }
        if let Some(references) = self.clocks.get_mut(&id) {
            references.whose = whose;
        }
        if is_entry || !self.tables.has_begun(map_pid) {
            let mut room = Room {
                allowance: &mut self.repeats,
                omitted: &mut self.statistics.omitted,
                is_spent: false,
            };
            self.tables
                .begin(map_pid, now, &mut self.packetiser, &mut room, out);
        }
        self.packetiser.unit(&unit, field, bytes, out);
        self.statistics.units += 1;
    }
}

#[cfg(test)]
mod tests;
