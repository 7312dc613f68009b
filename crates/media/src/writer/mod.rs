//! From sections to a transport stream.

mod clock;
mod config;
mod packet;
mod tables;

use std::collections::{BTreeMap, BTreeSet};

use crate::header::{Header, HeaderError, PACKET, Times, Unit};
use crate::psi;
use clock::{Clock, Step};
pub use config::WriterConfig;
use packet::{Field, Packetiser};
use tables::Tables;

/// Counters of a writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriterStatistics {
    /// Access units.
    pub units: u64,
    /// Transport packets, without copied ones.
    pub packets: u64,
    /// Places where the clock jumped.
    pub discontinuities: u64,
    /// Late units: the stream's clock had already passed their decoding time.
    pub late_units: u64,
    /// Units of the old clock that arrived after a jump. They are written without time stamps,
    /// which a player would interpret on the new clock, and follow the previous unit of their
    /// stream.
    pub unstamped_units: u64,
}

/// Writes sections as a transport stream: whole access units, tables and clock references at their
/// intervals, and continuity counters without a gap.
///
/// Copied packets, [`Header::Packets`], keep the clock references that they carry. The writer then
/// makes none for their program until a unit arrives on their PID.
///
/// A missing section leaves no trace: its packets are not counted, and the clock continues over it.
/// A player sees a stream without that unit.
///
/// Units that arrive before any table wait (up to 4 MiB, or to the end), because a player cannot
/// read a stream that begins without tables. If no table arrives, the writer makes plain ones from
/// the units.
///
/// Sources other than transport streams, [`Header::Raw`] and [`Header::Picture`], are copied. The
/// first payload decides between the two groups, and later payloads of the other group are refused.
/// A transport stream therefore has whole packets throughout.
#[derive(Debug)]
pub struct TsWriter {
    config: WriterConfig,
    packetiser: Packetiser,
    tables: Tables,
    /// By the PID of the map.
    programs: BTreeMap<u16, Program>,
    /// The map's PID of each stream.
    streams: BTreeMap<u16, u16>,
    held: Vec<(Unit, Vec<u8>)>,
    held_bytes: usize,
    /// Whether the payloads so far belong to a transport stream.
    is_transport: Option<bool>,
    statistics: WriterStatistics,
}

#[derive(Debug)]
struct Program {
    clock_pid: u16,
    clock: Clock,
    whose: Whose,
}

/// Whose clock references a program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// The writer's, made from the decoding times.
    Own,
    /// The source's, in copied packets.
    Source,
    /// The writer's again, but none written since.
    OwnAgain,
}

/// The maximum of bytes that wait for tables.
const HELD: usize = 4 << 20;
/// The overhead of a waiting unit beside its bytes.
const HELD_EACH: usize = 64;
/// The PID for the map of a program without one.
const MADE_UP_MAP: u16 = 0x1000;
/// The PID value of a program without a clock.
const NO_PID: u16 = 0x1fff;

impl TsWriter {
    /// Creates a writer at the beginning of a stream.
    pub fn new(config: WriterConfig) -> Self {
        Self {
            config,
            packetiser: Packetiser::default(),
            tables: Tables::default(),
            programs: BTreeMap::new(),
            streams: BTreeMap::new(),
            held: Vec::new(),
            held_bytes: 0,
            is_transport: None,
            statistics: WriterStatistics::default(),
        }
    }

    /// Writes a section's payload, appending to `out`: whole transport packets, unless the source
    /// is no transport stream.
    ///
    /// # Errors
    /// A [`HeaderError`] if the payload is malformed, or of the other group. Nothing of it is
    /// written then, and the stream stays valid.
    pub fn write(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), HeaderError> {
        let (header, rest) = Header::decode(payload)?;
        let is_transport = !matches!(header, Header::Raw | Header::Picture(_));
        if *self.is_transport.get_or_insert(is_transport) != is_transport {
            return Err(HeaderError::Mixed);
        }
        match header {
            Header::Raw | Header::Picture(_) => out.extend(rest),
            Header::Packets => {
                let from = out.len();
                out.extend(rest);
                self.follow_clocks(out.get_mut(from..).unwrap_or_default());
            }
            Header::Table { pid, repeated } => self.table(pid, repeated, rest, out),
            Header::Unit(unit) if self.is_known(unit.pid) => self.unit(&unit, rest, out),
            Header::Unit(unit) => {
                self.held_bytes += rest.len() + HELD_EACH;
                self.held.push((unit, rest.to_vec()));
                if self.held_bytes > HELD {
                    self.release(true, out);
                }
            }
        }
        Ok(())
    }

    /// Leaves the clock of a program to copied packets that carry its references, because two
    /// series would contradict each other. The first is marked as a jump if it follows the writer's
    /// own references.
    fn follow_clocks(&mut self, packets: &mut [u8]) {
        for packet in packets.as_chunks_mut::<PACKET>().0 {
            let has_reference = packet[3] & 0x20 != 0 && packet[4] >= 7 && packet[5] & 0x10 != 0;
            if !has_reference {
                continue;
            }
            let pid = u16::from_be_bytes([packet[1] & 0x1f, packet[2]]);
            for program in self.programs.values_mut() {
                if program.clock_pid == pid && program.whose != Whose::Source {
                    program.whose = Whose::Source;
                    if program.clock.has_begun() {
                        packet[5] |= 0x80;
                        self.statistics.discontinuities += 1;
                    }
                }
            }
        }
    }

    /// Writes the waiting units. The stream can end here, or continue.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.release(true, out);
    }

    /// Whether units wait for tables.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// The streams whose units wait for tables.
    pub fn held_streams(&self) -> BTreeSet<u16> {
        self.held.iter().map(|(unit, _)| unit.pid).collect()
    }

    /// The counters so far.
    pub fn statistics(&self) -> WriterStatistics {
        WriterStatistics {
            packets: self.packetiser.packets(),
            ..self.statistics
        }
    }

    /// Whether the tables describe this stream.
    fn is_known(&self, pid: u16) -> bool {
        self.tables.has_programs() && self.streams.contains_key(&pid)
    }

    fn table(&mut self, pid: u16, repeated: bool, section: &[u8], out: &mut Vec<u8>) {
        let is_map = self.tables.names_map(pid);
        let is_due = !repeated || self.tables.remember(pid, section);
        if pid == psi::PAT {
            // Maps that arrived before their PAT are read now.
            for map_pid in psi::programs(section).into_iter().flatten() {
                for map in self.tables.on(map_pid) {
                    self.learn(map_pid, &map);
                }
            }
        } else if is_map {
            self.learn(pid, section);
        }
        // Before the first PAT, other tables are useless to a player: they are repeated after it.
        if is_due && (self.tables.has_programs() || !repeated) {
            self.packetiser.section(pid, section, out);
        }
        self.release(false, out);
    }

    fn learn(&mut self, map_pid: u16, section: &[u8]) {
        let Some(map) = psi::program_map(section) else {
            return;
        };
        for &(pid, _) in &map.streams {
            self.streams.insert(pid, map_pid);
        }
        let lead = self.config.lead;
        self.programs
            .entry(map_pid)
            .and_modify(|program| program.clock_pid = map.clock_pid)
            .or_insert_with(|| Program {
                clock_pid: map.clock_pid,
                clock: Clock::new(lead),
                whose: Whose::Own,
            });
    }

    /// Writes the waiting units whose streams are known; all of them, with made-up tables, if
    /// `force`.
    fn release(&mut self, force: bool, out: &mut Vec<u8>) {
        if force && self.held.iter().any(|(unit, _)| !self.is_known(unit.pid)) {
            self.make_up_tables();
        }
        if self.held.iter().any(|(unit, _)| self.is_known(unit.pid)) {
            for (unit, bytes) in core::mem::take(&mut self.held) {
                if self.is_known(unit.pid) {
                    self.held_bytes -= bytes.len() + HELD_EACH;
                    self.unit(&unit, &bytes, out);
                } else {
                    self.held.push((unit, bytes));
                }
            }
        }
        if force {
            // A map has no room for this many streams: real sources never have hundreds.
            self.held.clear();
            self.held_bytes = 0;
        }
    }

    /// Makes a program of the waiting units' unknown streams, beside the known programs.
    fn make_up_tables(&mut self) {
        let mut streams: Vec<(u16, u8)> = Vec::new();
        for (unit, _) in &self.held {
            let is_new = streams.iter().all(|&(pid, _)| pid != unit.pid);
            if is_new && !self.is_known(unit.pid) {
                streams.push((unit.pid, unit.stream_type));
            }
        }
        let video = self.held.iter().find(|(unit, _)| unit.frame.is_picture());
        let clock_pid = video
            .or(self.held.first())
            .map_or(NO_PID, |(unit, _)| unit.pid);
        // A free PID: streams are far fewer than PIDs.
        let taken = |pid: u16| {
            self.streams.contains_key(&pid) || streams.iter().any(|&(stream, _)| stream == pid)
        };
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
        let map_pid = self.streams.get(&unit.pid).copied();
        let Some((map_pid, program)) =
            map_pid.and_then(|pid| self.programs.get_mut(&pid).map(|program| (pid, program)))
        else {
            return;
        };
        // A clock on its own PID, or none: the clock then uses packets without payload.
        let clock_pid = if program.clock_pid == NO_PID {
            unit.pid
        } else {
            program.clock_pid
        };
        let mut steps = Vec::new();
        let mut unit = *unit;
        if let Some(stamp) = unit.times.decoding() {
            let clock = &mut program.clock;
            let mark = unit.discontinuity;
            if let Some(due) = clock.advance(unit.pid, stamp, mark, self.config.interval) {
                steps = due;
                self.statistics.late_units += u64::from(clock.is_late(stamp));
            } else {
                unit.times = Times::None;
                self.statistics.unstamped_units += 1;
            }
        }
        let now = program.clock.now();
        let mut field = Field {
            random_access: unit.random_access,
            ..Field::default()
        };
        if clock_pid == unit.pid && program.whose == Whose::Source {
            program.whose = Whose::OwnAgain;
        }
        let whose = &mut program.whose;
        let last = steps.len().saturating_sub(1);
        let is_entry = unit.random_access && unit.frame.is_picture();
        for (index, mut step) in steps.into_iter().enumerate() {
            // Before each reference, so that tables are as frequent on the stream's clock.
            self.tables
                .repeat(map_pid, step.at, &self.config, &mut self.packetiser, out);
            if *whose == Whose::Source {
                continue;
            }
            step.discontinuity |= *whose == Whose::OwnAgain;
            *whose = Whose::Own;
            self.statistics.discontinuities += u64::from(step.discontinuity);
            if index == last && clock_pid == unit.pid {
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
        if is_entry || !self.tables.has_begun(map_pid) {
            self.tables.begin(map_pid, now, &mut self.packetiser, out);
        }
        self.packetiser.unit(&unit, field, bytes, out);
        self.statistics.units += 1;
    }
}
