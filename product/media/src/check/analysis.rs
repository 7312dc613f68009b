//! Finds errors and intervals in packets with times.

use std::collections::{BTreeMap, BTreeSet};

use comity_units::{Rate, Span, Time};
use mpeg2ts_reader::pes::{PesContents, PesHeader, PtsDts};

use super::continuity::Continuity;
use super::indicator::{Errors, Indicator};
use super::interval::Repetition;
use super::kind::Kind;
use super::packet::{Facts, clock_step};
use super::pid::{ATSC, Clock, NULL, Pid};
use super::report::{self, Jump, Jumped, Report};
use super::stored::Item;
use super::tables::{self, PatEntry};
use crate::association::Association;
use crate::header::PACKET;
use crate::pes::is_pes;
use crate::psi::Gatherer;
use crate::timeline::{difference, ticks};

/// The time of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Its arrival, for a live stream.
    Arrival,
    /// Its position between the surrounding clock references, for a stored stream.
    Clock,
}

/// The limits of TR 101 290.
const TABLES: Span = Span::from_millis(500);
const STREAMS: Span = Span::from_secs(5);
const REFERENCES: Span = Span::from_millis(100);
const STAMPS: Span = Span::from_millis(700);
const NETWORK: Span = Span::from_secs(10);
const SERVICES: Span = Span::from_secs(2);
const DATE: Span = Span::from_secs(30);

/// The range in which a clock reference may advance, in ticks of 27 MHz.
const STEPS: core::ops::RangeInclusive<i64> = 0..=2_700_000;
/// The maximum number of programs and clocks.
const MAX_PROGRAMS: usize = 1_024;
const MAX_CLOCKS: usize = 512;
/// The maximum number of listed jumps.
const MAX_JUMPS: usize = 100;

/// A program in the PAT.
#[derive(Debug)]
struct Program {
    map_pid: u16,
    map: Repetition,
    /// The last four bytes of its latest map.
    crc: Option<[u8; 4]>,
    clock_pid: Option<u16>,
    /// The PIDs in its map.
    pids: BTreeSet<u16>,
}

/// The state of a check.
#[derive(Debug)]
pub(super) struct Analysis {
    timing: Timing,
    now: Option<Time>,
    /// The times of the first and the last packet with a time, and the number of such packets.
    first: Option<Time>,
    last: Option<Time>,
    timed: u64,
    packets: u64,
    skipped: u64,
    nulls: u64,
    scrambled: u64,
    /// The number of the present run. Bytes without a gap are one run.
    run: u64,
    errors: Errors,
    pids: BTreeMap<u16, Pid>,
    /// The number of PIDs with a clock.
    clocks: usize,
    programs: BTreeMap<u16, Program>,
    /// The numbers of the programs in force.
    association: Association,
    pat: Repetition,
    nit: Repetition,
    sdt: Repetition,
    tdt: Repetition,
    has_cat: bool,
    jump_count: u64,
    jumps: Vec<Jump>,
}

impl Analysis {
    pub(super) fn new(timing: Timing) -> Self {
        Self {
            timing,
            now: None,
            first: None,
            last: None,
            timed: 0,
            packets: 0,
            skipped: 0,
            nulls: 0,
            scrambled: 0,
            run: 0,
            errors: Errors::default(),
            pids: BTreeMap::new(),
            clocks: 0,
            programs: BTreeMap::new(),
            association: Association::default(),
            pat: Repetition::default(),
            nit: Repetition::default(),
            sdt: Repetition::default(),
            tdt: Repetition::default(),
            has_cat: false,
            jump_count: 0,
            jumps: Vec::new(),
        }
    }

    /// Processes the next part of the stream.
    pub(super) fn push(&mut self, now: Option<Time>, item: &Item) {
        self.now = now;
        match item {
            Item::Packet(bytes) => {
                if let Some(facts) = Facts::of(bytes) {
                    self.packet(&facts, bytes);
                }
            }
            Item::SyncByteError => self.fail(Indicator::SyncByteError),
            Item::SyncLoss => self.fail(Indicator::TsSyncLoss),
            Item::Skipped(bytes) => {
                self.skipped += bytes;
                self.run += 1;
            }
        }
    }

    /// Records that nothing arrived until `now`.
    pub(super) fn wait(&mut self, now: Time) {
        self.now = self.now.max(Some(now));
    }

    /// The time of the latest part.
    pub(super) const fn now(&self) -> Option<Time> {
        self.now
    }

    fn fail(&mut self, indicator: Indicator) {
        self.errors.add(indicator, self.now);
    }

    fn packet(&mut self, facts: &Facts<'_>, bytes: &[u8; PACKET]) {
        let now = self.now;
        self.packets += 1;
        if let Some(now) = now {
            self.first.get_or_insert(now);
            self.last = Some(now);
            self.timed += 1;
        }
        self.pat.expect(now);
        if facts.is_erroneous {
            self.errors.add(Indicator::TransportError, now);
            // The PID of the packet may be wrong too.
            if let Some(pid) = self.pids.get_mut(&facts.pid) {
                pid.packets += 1;
                pid.transport_errors += 1;
                pid.counter.forget();
                pid.gatherer.iter_mut().for_each(|gatherer| {
                    gatherer.reset();
                });
            }
            return;
        }
        let pid = self.pids.entry(facts.pid);
        let pid = pid.or_insert_with(|| Pid::new(facts.pid));
        pid.packets += 1;
        if facts.pid == NULL {
            self.nulls += 1;
            return;
        }
        if pid.on_packet(now) {
            self.errors.add(Indicator::UnreferencedPid, now);
        }
        if pid.is_awaited() && pid.seen.occur(now, STREAMS) {
            self.errors.add(Indicator::PidError, now);
        }
        if facts.is_scrambled {
            pid.scrambled += 1;
            self.scrambled += 1;
            if facts.pid == 0 {
                self.errors.add(Indicator::PatError, now);
            } else if pid.is_map {
                self.errors.add(Indicator::PmtError, now);
            }
        }
        match pid.counter.follow(facts, bytes) {
            Continuity::Right => {}
            Continuity::Copy => return,
            Continuity::Wrong { missing } => {
                pid.continuity_errors += 1;
                pid.missing_packets += missing;
                pid.gatherer.iter_mut().for_each(|gatherer| {
                    gatherer.reset();
                });
                self.run += 1;
                self.errors.add(Indicator::ContinuityCountError, now);
            }
        }
        if let Some(clock) = facts.clock {
            self.clock(facts.pid, clock, facts.discontinuity);
        }
        self.payload(facts);
    }

    fn payload(&mut self, facts: &Facts<'_>) {
        let Some(pid) = self.pids.get_mut(&facts.pid) else {
            return;
        };
        if facts.is_scrambled {
            pid.stamps.pause();
            pid.decoding = None;
            return;
        }
        let Some(payload) = facts.payload else {
            return;
        };
        if facts.begins && is_pes(payload) {
            // No table begins like this, even if no map has come yet.
            pid.give_to_program();
        }
        if let Some(gatherer) = &mut pid.gatherer {
            let mut sections = Vec::new();
            gatherer.gather(payload, facts.begins, |section| sections.push(section));
            for section in sections {
                self.section(facts.pid, section);
            }
        } else if facts.begins
            && let Some((presentation, decoding)) = stamps(payload)
        {
            self.stamp(facts.pid, presentation.is_some(), decoding);
        }
    }

    /// Processes a clock reference, in ticks of 27 MHz.
    fn clock(&mut self, number: u16, clock: u64, is_marked: bool) {
        let (now, run, position) = (self.now, self.run, self.packets);
        let Some(pid) = self.pids.get_mut(&number) else {
            return;
        };
        let is_used = !pid.clock_of.is_empty();
        let Some(state) = with_clock(pid, &mut self.clocks) else {
            return;
        };
        let mut jump = None;
        let mut is_outside = false;
        let mut step = 0;
        if let Some((latest, when)) = state.latest {
            step = clock_step(latest, clock);
            is_outside = !STEPS.contains(&step);
            let step_ns = i64::try_from(i128::from(step) * 1_000 / 27).unwrap_or(i64::MAX);
            let beyond = step_ns.saturating_sub(passed(when, now));
            let is_jump = beyond.unsigned_abs() > REFERENCES.as_nanos();
            jump = (is_outside && is_jump).then_some(beyond);
        }
        state.latest = Some((clock, now));
        let is_late = state.seen.occur(now, REFERENCES);
        if is_marked || jump.is_some() {
            state.by_bytes.restart();
            state.by_arrival.restart();
        } else {
            state.ticks = state.ticks.saturating_add(step);
        }
        if core::mem::replace(&mut state.run, run) != run {
            state.by_bytes.restart();
        }
        let nanos = state.ticks as f64 * 1_000.0 / 27.0;
        state.by_bytes.push(saturated(position), nanos);
        if let (Timing::Arrival, Some(now)) = (self.timing, now) {
            state.by_arrival.push(saturated(now.as_nanos()), nanos);
        }
        if is_used && is_late {
            self.fail(Indicator::PcrRepetitionError);
        }
        if is_used && is_outside && !is_marked {
            self.fail(Indicator::PcrDiscontinuityIndicatorError);
        }
        if let Some(step_ns) = jump {
            self.jump(number, Jumped::Pcr, step_ns, is_marked);
        }
    }

    /// Processes the time stamps of a PES packet, with the decoding time in ticks of 90 kHz.
    fn stamp(&mut self, number: u16, has_presentation: bool, decoding: Option<u64>) {
        let now = self.now;
        let Some(pid) = self.pids.get_mut(&number) else {
            return;
        };
        let is_timed = pid.kind.is_timed && !pid.programs.is_empty();
        if has_presentation && pid.stamps.occur(now, STAMPS) && is_timed {
            self.errors.add(Indicator::PtsError, now);
        }
        let Some(decoding) = decoding else { return };
        let latest = pid.decoding.replace((decoding, now));
        let Some((latest, when)) = latest.filter(|_| is_timed) else {
            return;
        };
        let step = difference(decoding, latest);
        let step_ns =
            saturated(ticks(step.unsigned_abs()).as_nanos()).saturating_mul(step.signum());
        let beyond = step_ns.saturating_sub(passed(when, now));
        if step < 0 || beyond > saturated(STAMPS.as_nanos()) {
            self.jump(number, Jumped::Dts, beyond, false);
        }
    }

    fn jump(&mut self, pid: u16, of: Jumped, step_ns: i64, is_marked: bool) {
        self.jump_count += 1;
        if self.jumps.len() < MAX_JUMPS {
            self.jumps.push(Jump {
                time: self.now,
                pid,
                of,
                step_ns,
                is_marked,
            });
        }
    }

    /// Processes a section of a table. An `Err` is a damaged section.
    fn section(&mut self, pid: u16, section: Result<Vec<u8>, Vec<u8>>) {
        let (section, is_damaged) = match section {
            Ok(section) => {
                let is_damaged = tables::is_damaged(&section);
                (section, is_damaged)
            }
            Err(section) => (section, true),
        };
        let Some(&table) = section.first() else {
            return;
        };
        if is_damaged {
            if tables::has_checked_crc(table) {
                self.fail(Indicator::CrcError);
            }
            return;
        }
        let now = self.now;
        let has_dvb = self.pids.get(&pid).is_some_and(Pid::is_of_dvb);
        let fixed = Some(pid).filter(|pid| has_dvb || !(0x10..0x20).contains(pid));
        let is_wrong = match (fixed.unwrap_or(NULL), table) {
            (0x00, tables::PAT) => {
                if let Some(entries) = tables::pat(&section) {
                    self.programs(&entries);
                    let numbers = entries.iter().map(|entry| entry.number).collect();
                    for number in self.association.add(&section, numbers) {
                        self.forget(number);
                    }
                }
                self.pat.occur(now, TABLES)
            }
            (0x01, tables::CAT) => {
                self.has_cat = true;
                for pid in tables::rights(&section) {
                    self.name(pid, Kind::RIGHTS);
                }
                false
            }
            (0x10, tables::NIT) => self.nit.occur(now, NETWORK),
            (0x11, tables::SDT) => self.sdt.occur(now, SERVICES),
            (0x14, tables::TDT) => self.tdt.occur(now, DATE),
            // The tables of the other network, other services, bouquets, stuffing, and the offset
            // of local time.
            (0x10, 0x41) | (0x11, 0x46 | 0x4a) | (0x10 | 0x11 | 0x14, 0x72) | (0x14, 0x73) => false,
            // The PAT has not come yet.
            (0x10 | 0x11 | 0x14, tables::PMT) if self.programs.is_empty() => false,
            (0x00 | 0x01 | 0x10 | 0x11 | 0x14, _) => true,
            (ATSC, _) => {
                for pid in tables::guides(&section) {
                    self.name(pid, Kind::ATSC);
                }
                false
            }
            (_, tables::PMT) => self.map(pid, &section),
            _ => false,
        };
        if is_wrong {
            self.fail(match fixed.unwrap_or(NULL) {
                0x00 => Indicator::PatError,
                0x01 => Indicator::CatError,
                0x10 => Indicator::NitActualError,
                0x11 => Indicator::SdtActualError,
                0x14 => Indicator::TdtError,
                _ => Indicator::PmtError,
            });
        }
    }

    /// Records that a table other than a map names a PID.
    fn name(&mut self, number: u16, kind: Kind) {
        let pid = self.pids.entry(number);
        let pid = pid.or_insert_with(|| Pid::new(number));
        pid.name(kind);
        pid.is_named = true;
    }

    /// Processes the programs of a section of the PAT.
    fn programs(&mut self, entries: &[PatEntry]) {
        let now = self.now;
        for (number, pid) in entries.iter().map(|entry| (entry.number, entry.pid)) {
            if number == 0 {
                self.name(pid, Kind::NETWORK);
                continue;
            }
            let known = self.programs.get(&number).map(|program| program.map_pid);
            if known == Some(pid) || known.is_none() && self.programs.len() >= MAX_PROGRAMS {
                continue;
            }
            self.forget(number);
            let mut map = Repetition::default();
            map.expect(now);
            let program = Program {
                map_pid: pid,
                map,
                crc: None,
                clock_pid: None,
                pids: BTreeSet::new(),
            };
            self.programs.insert(number, program);
            let pid = self.pids.entry(pid).or_insert_with(|| Pid::new(pid));
            pid.give_to_program();
            pid.is_map = true;
            pid.name(Kind::PMT);
            pid.gatherer.get_or_insert_with(Gatherer::default);
        }
    }

    /// Removes a program that the PAT no longer names.
    fn forget(&mut self, number: u16) {
        let Some(program) = self.programs.remove(&number) else {
            return;
        };
        let is_map = |other: &Program| other.map_pid == program.map_pid;
        let stays = self.programs.values().any(is_map);
        if let Some(pid) = self.pids.get_mut(&program.map_pid) {
            pid.is_map = stays;
            if !stays && !pid.is_named {
                pid.gatherer = None;
            }
            pid.unname(number, self.now);
        }
        for pid in &program.pids {
            if let Some(pid) = self.pids.get_mut(pid) {
                pid.unname(number, self.now);
            }
        }
    }

    /// Processes the map of a program. Returns whether it is late.
    fn map(&mut self, map_pid: u16, section: &[u8]) -> bool {
        let now = self.now;
        let Some(map) = tables::program_map(section) else {
            return false;
        };
        let program = self.programs.get_mut(&map.number);
        let Some(program) = program.filter(|program| program.map_pid == map_pid) else {
            return false;
        };
        let is_late = program.map.occur(now, TABLES);
        let crc = section.last_chunk::<4>().copied();
        if core::mem::replace(&mut program.crc, crc) == crc {
            return is_late;
        }
        program.clock_pid = (map.clock_pid != NULL).then_some(map.clock_pid);
        let streams = map.streams.iter().map(|&(pid, ..)| pid);
        let named = streams
            .chain(program.clock_pid)
            .chain(map.keys.iter().copied());
        let before = core::mem::replace(&mut program.pids, named.collect());
        let (pids, clock_pid) = (program.pids.clone(), program.clock_pid);
        for pid in before {
            if let Some(pid) = self.pids.get_mut(&pid) {
                pid.unname(map.number, now);
            }
        }
        for (number, stream_type, kind) in map.streams {
            let pid = self.pids.entry(number);
            let pid = pid.or_insert_with(|| Pid::new(number));
            pid.give_to_program();
            pid.stream_type = Some(stream_type);
            pid.name(kind);
        }
        for number in pids {
            let pid = self.pids.entry(number);
            let pid = pid.or_insert_with(|| Pid::new(number));
            pid.give_to_program();
            pid.programs.insert(map.number);
            if clock_pid == Some(number) {
                pid.name(Kind::CLOCK);
                pid.clock_of.insert(map.number);
                if let Some(clock) = with_clock(pid, &mut self.clocks) {
                    clock.seen.expect(now);
                }
            }
            // PIDs that are neither streams nor the clock carry the keys.
            pid.name(Kind::KEYS);
            pid.seen.expect(now);
        }
        is_late
    }

    /// All errors, including those that are still in progress.
    fn errors(&self) -> Errors {
        let now = self.now;
        let mut errors = self.errors;
        let mut add = |indicator, count| errors.add_many(indicator, now, count);
        for (repetition, limit, indicator) in [
            (&self.pat, TABLES, Indicator::PatError),
            (&self.nit, NETWORK, Indicator::NitActualError),
            (&self.sdt, SERVICES, Indicator::SdtActualError),
            (&self.tdt, DATE, Indicator::TdtError),
        ] {
            add(indicator, u64::from(repetition.is_late(now, limit)));
        }
        for program in self.programs.values() {
            add(
                Indicator::PmtError,
                u64::from(program.map.is_late(now, TABLES)),
            );
        }
        for pid in self.pids.values() {
            let is_timed = pid.kind.is_timed && !pid.programs.is_empty();
            let is_absent = pid.is_awaited() && pid.seen.is_late(now, STREAMS);
            add(Indicator::PidError, u64::from(is_absent));
            let lacks_stamps = is_timed && pid.stamps.is_late(now, STAMPS);
            add(Indicator::PtsError, u64::from(lacks_stamps));
            add(Indicator::UnreferencedPid, u64::from(pid.is_overdue(now)));
            if let Some(clock) = pid.clock.as_ref().filter(|_| !pid.clock_of.is_empty()) {
                let lacks_references = clock.seen.is_late(now, REFERENCES);
                add(Indicator::PcrRepetitionError, u64::from(lacks_references));
            }
        }
        let lacks_cat = self.scrambled > 0 && !self.has_cat;
        add(Indicator::CatError, u64::from(lacks_cat));
        errors
    }

    /// The results so far.
    pub(super) fn report(&self) -> Report {
        let duration = self.first.zip(self.last);
        let duration = duration.map(|(first, last)| last.saturating_since(first));
        let duration = duration.filter(|duration| !duration.is_zero());
        let rate = |packets: u64| {
            let bits = packets as f64 * PACKET as f64 * 8.0;
            // There is one interval less than there are packets between the first and the last.
            let share = self.timed.saturating_sub(1) as f64 / self.timed.max(1) as f64;
            Some(Rate::from_bps_f64(bits * share / duration?.as_secs_f64()))
        };
        let clocks = self.clocks();
        let accurate = clocks
            .iter()
            .filter(|(clock, _)| !clock.programs.is_empty());
        let accuracies = accurate.filter_map(|(clock, _)| clock.accuracy.as_ref());
        let inaccurate = accuracies.map(|accuracy| accuracy.over_500_ns).sum();
        let mut errors = self.errors();
        errors.add_many(Indicator::PcrAccuracyError, None, inaccurate);
        let evenness = clocks
            .iter()
            .filter_map(|(clock, is_even)| Some((clock.intervals.count, (*is_even)?)));
        Report {
            packet_bytes: None,
            packets: self.packets,
            skipped_bytes: self.skipped,
            null_packets: self.nulls,
            scrambled_packets: self.scrambled,
            duration,
            rate: rate(self.timed),
            // The clock with the most references decides.
            is_constant_rate: evenness.max().map(|(_, is_even)| is_even),
            peaks: Vec::new(),
            errors,
            pat: self.pat.intervals,
            programs: self.programs.iter().map(of_program).collect(),
            clocks: clocks.into_iter().map(|(clock, _)| clock).collect(),
            pids: { self.pids.iter() }
                .map(|(&number, pid)| of_pid(number, pid, rate(pid.packets)))
                .collect(),
            jump_count: self.jump_count,
            jumps: self.jumps.clone(),
        }
    }

    /// The clocks, and, for each, whether the rate is even by its references.
    fn clocks(&self) -> Vec<(report::Clock, Option<bool>)> {
        let with_clock = self.pids.iter().filter_map(|(&number, pid)| {
            let clock = pid.clock.as_deref();
            let clock = clock.filter(|clock| clock.latest.is_some())?;
            Some((number, pid, clock))
        });
        let of_clock = |(number, pid, clock): (u16, &Pid, &Clock)| {
            let (mut by_bytes, mut by_arrival) = (clock.by_bytes.clone(), clock.by_arrival.clone());
            by_bytes.restart();
            by_arrival.restart();
            // If there are no null packets, a rate that is only nearly even does not count as
            // constant.
            let is_even = by_bytes.is_even(self.nulls == 0);
            let clock = report::Clock {
                pid: number,
                programs: pid.clock_of.iter().copied().collect(),
                intervals: clock.seen.intervals,
                accuracy: (is_even == Some(true)).then_some(by_bytes.offsets),
                jitter: (self.timing == Timing::Arrival).then_some(by_arrival.offsets),
            };
            (clock, is_even)
        };
        with_clock.map(of_clock).collect()
    }
}

/// The clock of a PID. The number of clocks is limited.
fn with_clock<'a>(pid: &'a mut Pid, count: &mut usize) -> Option<&'a mut Clock> {
    if pid.clock.is_none() && *count < MAX_CLOCKS {
        *count += 1;
        pid.clock = Some(Box::default());
    }
    pid.clock.as_deref_mut()
}

fn of_program((&number, program): (&u16, &Program)) -> report::Program {
    report::Program {
        number,
        map_pid: program.map_pid,
        clock_pid: program.clock_pid,
        map: program.map.intervals,
        pids: program.pids.iter().copied().collect(),
    }
}

fn of_pid(number: u16, pid: &Pid, rate: Option<Rate>) -> report::Pid {
    report::Pid {
        pid: number,
        kind: pid.kind,
        stream_type: pid.stream_type,
        programs: pid.programs.iter().copied().collect(),
        packets: pid.packets,
        rate,
        scrambled_packets: pid.scrambled,
        continuity_errors: pid.continuity_errors,
        missing_packets: pid.missing_packets,
        transport_errors: pid.transport_errors,
        stamps: pid.stamps.intervals,
    }
}

/// The time stamps of a PES packet that begins in this payload: PTS, and DTS or, without one, PTS.
fn stamps(payload: &[u8]) -> Option<(Option<u64>, Option<u64>)> {
    let PesContents::Parsed(contents) = PesHeader::from_bytes(payload)?.contents() else {
        return None;
    };
    Some(match contents?.pts_dts() {
        Ok(PtsDts::PtsOnly(Ok(pts))) => (Some(pts.value()), Some(pts.value())),
        Ok(PtsDts::Both {
            pts: Ok(pts),
            dts: Ok(dts),
        }) => (Some(pts.value()), Some(dts.value())),
        _ => (None, None),
    })
}

/// The nanoseconds from one time to another; zero if a time is unknown.
fn passed(from: Option<Time>, to: Option<Time>) -> i64 {
    let passed = from.zip(to).map(|(from, to)| to.saturating_since(from));
    saturated(passed.unwrap_or(Span::ZERO).as_nanos())
}

fn saturated(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
