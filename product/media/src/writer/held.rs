//! Units that wait for tables.

use std::collections::{BTreeMap, BTreeSet};

use crate::header::Unit;
use crate::work;

/// The maximum number of bytes that wait for tables.
pub(super) const HELD: usize = 4 << 20;
/// The overhead of a waiting unit in addition to its bytes.
const HELD_EACH: usize = 64;

/// A unit and its bytes.
pub(super) type HeldUnit = (Unit, Vec<u8>);

/// Units that wait for tables, by PID, each with its number in the order of arrival.
#[derive(Debug, Default)]
pub(super) struct Held {
    units: BTreeMap<u16, Vec<(u64, HeldUnit)>>,
    /// The PIDs of waiting units that a map has named.
    named: BTreeSet<u16>,
    arrivals: u64,
    bytes: usize,
}

impl Held {
    /// Keeps a unit. `is_named` is whether a map has named its PID. Returns whether there was room.
    pub(super) fn push(&mut self, unit: Unit, bytes: &[u8], is_named: bool) -> bool {
        let units = self.units.entry(unit.pid).or_default();
        units.push((self.arrivals, (unit, bytes.to_vec())));
        self.arrivals += 1;
        self.bytes += bytes.len() + HELD_EACH;
        if is_named {
            self.named.insert(unit.pid);
        }
        self.bytes <= HELD
    }

    /// Records that a map names this PID.
    pub(super) fn name(&mut self, pid: u16) {
        if self.units.contains_key(&pid) {
            self.named.insert(pid);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// The PIDs of the waiting units.
    pub(super) fn pids(&self) -> impl Iterator<Item = u16> {
        self.units.keys().copied()
    }

    /// Takes the units whose PIDs a map has named, in the order of arrival.
    pub(super) fn take_named(&mut self) -> Vec<HeldUnit> {
        let named = core::mem::take(&mut self.named);
        let units: Vec<_> = { named.iter() }
            .filter_map(|pid| self.units.remove(pid))
            .flatten()
            .collect();
        let lengths = units.iter().map(|(_, (_, bytes))| bytes.len() + HELD_EACH);
        self.bytes -= lengths.sum::<usize>();
        in_order(units)
    }

    /// Takes all units, in the order of arrival.
    pub(super) fn take(&mut self) -> Vec<HeldUnit> {
        let Self { units, .. } = core::mem::take(self);
        in_order(units.into_values().flatten().collect())
    }
}

fn in_order(mut units: Vec<(u64, HeldUnit)>) -> Vec<HeldUnit> {
    work::count(units.len());
    units.sort_by_key(|&(arrival, _)| arrival);
    units.into_iter().map(|(_, unit)| unit).collect()
}
