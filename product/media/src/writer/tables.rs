//! The repeated tables, and when each one is due.

use std::collections::BTreeMap;

use super::clock::in_ticks;
use super::config::WriterConfig;
use super::packet::Packetiser;
use crate::allowance::Allowance;
use crate::psi;

/// The maximum number of remembered tables, more than any real stream has. Further tables are
/// written only once.
const REMEMBERED: usize = 1024;

/// The last version of each repeated table.
#[derive(Debug, Default)]
pub(super) struct Tables {
    sections: BTreeMap<(u16, [u8; 4]), Repeated>,
    /// When the tables of each program were last written, by the PID of its map.
    written: BTreeMap<u16, Written>,
    maps: Vec<u16>,
}

/// A table, and how often it has arrived since it was last repeated.
#[derive(Debug)]
struct Repeated {
    section: Vec<u8>,
    arrivals: u8,
}

/// The allowance for repetitions.
pub(super) struct Room<'a> {
    pub(super) allowance: &'a mut Allowance,
    /// The number of omitted repetitions.
    pub(super) omitted: &'a mut u64,
}

impl Room<'_> {
    /// Writes a table, if the allowance suffices.
    fn section(
        &mut self,
        pid: u16,
        section: &[u8],
        packetiser: &mut Packetiser,
        out: &mut Vec<u8>,
    ) {
        match self.allowance.spend(Packetiser::length(section)) {
            true => packetiser.section(pid, section, out),
            false => *self.omitted += 1,
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
        let key = (pid, psi::key(section));
        let is_known = self.sections.contains_key(&key);
        if let Some(known) = self.sections.get_mut(&key)
            && known.section == section
        {
            known.arrivals = known.arrivals.saturating_add(1);
            return known.arrivals >= UNREPEATED;
        }
        self.sections
            .retain(|(of, _), old| *of != pid || !psi::replaces(section, &old.section));
        if self.sections.len() < REMEMBERED || is_known {
            let section = section.to_vec();
            self.sections.insert(
                key,
                Repeated {
                    section,
                    arrivals: 0,
                },
            );
        }
        if pid == psi::PAT {
            self.list_programs(section);
        }
        true
    }

    /// Reads the PAT after this section of it. Drops the maps of programs that it no longer has, if
    /// all of its sections have come.
    fn list_programs(&mut self, section: &[u8]) {
        let sections = self.on(psi::PAT);
        let programs: Vec<(u16, u16)> = { sections.iter() }
            .filter_map(|section| psi::numbered_programs(section))
            .flatten()
            .collect();
        self.maps = programs.iter().map(|&(_, pid)| pid).collect();
        if section.get(7).map(|&last| usize::from(last) + 1) == Some(sections.len()) {
            self.sections.retain(|&(pid, _), table| {
                let is_known = |number| programs.contains(&(number, pid));
                psi::program_number(&table.section).is_none_or(is_known)
            });
        }
    }

    pub(super) fn has_programs(&self) -> bool {
        !self.maps.is_empty()
    }

    pub(super) fn names_map(&self, pid: u16) -> bool {
        self.maps.contains(&pid)
    }

    /// The sections of one PID.
    pub(super) fn on(&self, pid: u16) -> Vec<Vec<u8>> {
        let all = (pid, [0; 4])..=(pid, [0xff; 4]);
        self.sections
            .range(all)
            .map(|(_, repeated)| repeated.section.clone())
            .collect()
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
            let all = (pid, [0; 4])..=(pid, [0xff; 4]);
            for (_, table) in self.sections.range_mut(all) {
                table.arrivals = 0;
                room.section(pid, &table.section, packetiser, out);
            }
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
        for (&(pid, _), table) in &mut self.sections {
            if pid != psi::PAT && !self.maps.contains(&pid) {
                table.arrivals = 0;
                room.section(pid, &table.section, packetiser, out);
            }
        }
        if let Some(written) = self.written.get_mut(&map_pid) {
            written.others = now;
        }
    }
}
