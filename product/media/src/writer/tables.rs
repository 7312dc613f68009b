//! The repeated tables, and when each one is due.

use std::collections::{BTreeMap, BTreeSet};

use super::clock::in_ticks;
use super::config::WriterConfig;
use super::packet::Packetiser;
use crate::allowance::Allowance;
use crate::latest::LatestTables;
use crate::{psi, work};

/// The last version of each repeated table. Further tables are written only once.
#[derive(Debug, Default)]
pub(super) struct Tables {
    sections: LatestTables<Repeated>,
    /// The programs in the PAT: the PID of the map, the number of the program, and the number of
    /// the section of the PAT.
    programs: BTreeSet<(u16, u16, u8)>,
    /// The programs with a remembered map that the PAT does not name, by PID and number.
    unnamed: BTreeSet<(u16, u16)>,
    /// The PIDs of remembered tables that are neither the PAT nor on the PID of a map.
    others: BTreeSet<u16>,
    /// When the tables of each program were last written, by the PID of its map.
    written: BTreeMap<u16, Written>,
}

/// A table, and how often it has arrived since it was last repeated.
#[derive(Debug)]
struct Repeated {
    section: Vec<u8>,
    arrivals: u8,
    /// Whether the streams of this program map are known.
    is_read: bool,
}

/// The allowance for repetitions.
pub(super) struct Room<'a> {
    pub(super) allowance: &'a mut Allowance,
    /// The number of times that the allowance did not suffice.
    pub(super) omitted: &'a mut u64,
    /// Whether the allowance did not suffice. No further table is then written with this room.
    pub(super) is_spent: bool,
}

impl Room<'_> {
    /// Writes tables, until the allowance does not suffice.
    fn write<'a>(
        &mut self,
        pid: u16,
        tables: impl Iterator<Item = &'a mut Repeated>,
        packetiser: &mut Packetiser,
        out: &mut Vec<u8>,
    ) {
        for table in tables {
            work::count(1);
            self.is_spent =
                self.is_spent || !self.allowance.spend(Packetiser::length(&table.section));
            if self.is_spent {
                *self.omitted += 1;
                return;
            }
            table.arrivals = 0;
            packetiser.section(pid, &table.section, out);
        }
    }
}

/// If an unchanged table arrives this often without a repetition, no clock repeats it. It is then
/// written when it arrives.
const UNREPEATED: u8 = 2;

#[derive(Clone, Copy, Debug)]
struct Written {
    /// The position of the packetiser at the last PAT and map.
    programs: u64,
    /// When the other tables were last written.
    others: u64,
}

impl Tables {
    /// Remembers a table for repetition, instead of those that it replaces. Returns whether it is
    /// to be written now.
    pub(super) fn remember(&mut self, pid: u16, section: &[u8]) -> bool {
        if psi::is_next(section) {
            return true;
        }
        if let Some(known) = self.sections.get_mut(pid, psi::key(section))
            && known.section == section
        {
            known.arrivals = known.arrivals.saturating_add(1);
            return known.arrivals >= UNREPEATED;
        }
        let table = Repeated {
            section: section.to_vec(),
            arrivals: 0,
            is_read: self.names_map(pid),
        };
        let (replaced, has_room) = self.sections.insert(pid, section, table);
        if has_room
            && let Some(number) = psi::program_number(section)
            && !self.names_program(pid, number)
        {
            self.unnamed.insert((pid, number));
        }
        self.note_others(pid);
        if pid == psi::PAT {
            let old = replaced.iter().map(|table| table.section.as_slice());
            self.list_programs(old, section, has_room);
        }
        true
    }

    /// Lists the programs of a section of the PAT instead of those of the sections that it
    /// replaces. Drops the maps of programs that the PAT no longer has, if all of its sections have
    /// come.
    fn list_programs<'a>(
        &mut self,
        replaced: impl Iterator<Item = &'a [u8]>,
        section: &[u8],
        has_room: bool,
    ) {
        let mut changed = BTreeSet::new();
        for (program, number) in replaced.flat_map(programs) {
            self.programs.remove(&(program.0, program.1, number));
            changed.insert(program);
        }
        for (program, number) in programs(section).filter(|_| has_room) {
            self.programs.insert((program.0, program.1, number));
            changed.insert(program);
        }
        for (pid, number) in changed {
            work::count(1);
            if self.names_program(pid, number) {
                self.unnamed.remove(&(pid, number));
            } else if self.sections.has(pid, psi::PROGRAM_MAP, number) {
                self.unnamed.insert((pid, number));
            }
            self.note_others(pid);
        }
        let all = section.get(7).map(|&last| usize::from(last) + 1);
        if all.is_some_and(|all| self.sections.count(psi::PAT, all + 1) == all) {
            for (pid, number) in core::mem::take(&mut self.unnamed) {
                work::count(1);
                self.sections.remove(pid, psi::PROGRAM_MAP, number);
                self.note_others(pid);
            }
        }
    }

    /// Records whether the tables on this PID are repeated as other tables than PAT and maps.
    fn note_others(&mut self, pid: u16) {
        let is_other = pid != psi::PAT && !self.names_map(pid) && self.sections.count(pid, 1) > 0;
        match is_other {
            true => self.others.insert(pid),
            false => self.others.remove(&pid),
        };
    }

    /// The maps that arrived before this section of the PAT named their programs, each once.
    pub(super) fn unread_maps(&mut self, pat: &[u8]) -> Vec<(u16, Vec<u8>)> {
        programs(pat)
            .filter_map(|((pid, number), _)| {
                let [high, low] = number.to_be_bytes();
                // The map of a program is one section (ISO/IEC 13818-1, 2.4.4.9).
                let map = self
                    .sections
                    .get_mut(pid, [psi::PROGRAM_MAP, high, low, 0])?;
                let is_unread = !core::mem::replace(&mut map.is_read, true);
                is_unread.then(|| (pid, map.section.clone()))
            })
            .collect()
    }

    pub(super) fn has_programs(&self) -> bool {
        !self.programs.is_empty()
    }

    pub(super) fn names_map(&self, pid: u16) -> bool {
        let all = (pid, 0, 0)..=(pid, u16::MAX, u8::MAX);
        self.programs.range(all).next().is_some()
    }

    fn names_program(&self, pid: u16, number: u16) -> bool {
        let all = (pid, number, 0)..=(pid, number, u8::MAX);
        self.programs.range(all).next().is_some()
    }

    /// Writes the tables that accompany a clock reference: PAT and map always, other tables when
    /// due.
    pub(super) fn repeat(
        &mut self,
        map_pid: u16,
        now: u64,
        config: &WriterConfig,
        packetiser: &mut Packetiser,
        room: &mut Room<'_>,
        out: &mut Vec<u8>,
    ) {
        work::count(1);
        let others = self.written.get(&map_pid).map(|written| written.others);
        let interval = in_ticks(config.table_interval);
        if others.is_some_and(|others| now.saturating_sub(others) >= interval) {
            self.write_others(map_pid, now, packetiser, room, out);
        }
        self.begin(map_pid, now, packetiser, room, out);
    }

    /// Whether a program's tables have been written.
    pub(super) fn has_begun(&self, map_pid: u16) -> bool {
        self.written.contains_key(&map_pid)
    }

    /// Writes the tables that a player needs to start here.
    pub(super) fn begin(
        &mut self,
        map_pid: u16,
        now: u64,
        packetiser: &mut Packetiser,
        room: &mut Room<'_>,
        out: &mut Vec<u8>,
    ) {
        let written = self.written.get(&map_pid).map(|written| written.programs);
        if written.is_none() {
            self.written.insert(
                map_pid,
                Written {
                    programs: u64::MAX,
                    others: now,
                },
            );
            self.write_others(map_pid, now, packetiser, room, out);
        }
        // Avoids writing them twice in a row.
        if written != Some(packetiser.position()) {
            self.write_programs(map_pid, packetiser, room, out);
        }
    }

    fn write_programs(
        &mut self,
        map_pid: u16,
        packetiser: &mut Packetiser,
        room: &mut Room<'_>,
        out: &mut Vec<u8>,
    ) {
        for pid in [psi::PAT, map_pid] {
            room.write(pid, self.sections.on_mut(pid), packetiser, out);
        }
        if let Some(written) = self.written.get_mut(&map_pid) {
            written.programs = packetiser.position();
        }
    }

    fn write_others(
        &mut self,
        map_pid: u16,
        now: u64,
        packetiser: &mut Packetiser,
        room: &mut Room<'_>,
        out: &mut Vec<u8>,
    ) {
        for &pid in &self.others {
            if room.is_spent {
                break;
            }
            room.write(pid, self.sections.on_mut(pid), packetiser, out);
        }
        if let Some(written) = self.written.get_mut(&map_pid) {
            written.others = now;
        }
    }
}

/// The programs of a section of the PAT: the PID of the map and the number of each, and the number
/// of the section.
fn programs(section: &[u8]) -> impl Iterator<Item = ((u16, u16), u8)> {
    let [.., of] = psi::key(section);
    let programs = psi::numbered_programs(section).into_iter().flatten();
    programs.map(move |(number, pid)| ((pid, number), of))
}
