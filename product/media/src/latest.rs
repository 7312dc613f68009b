//! The latest version of each repeated table.

use core::ops::Bound::{self, Excluded, Included};
use std::collections::BTreeMap;

use crate::psi::{self, Version};
use crate::work;

/// The maximum number of remembered sections of tables, more than any real stream has.
const MAX_TABLES: usize = 1_024;

/// A PID and the identity of a section on it: table, extension and section number.
type Key = (u16, [u8; 4]);

/// The latest version of each repeated table, with a value for each section. It has at most 1,024
/// sections.
///
/// All sections of a table with one extension have one version, because a section with another
/// version replaces them. A new section is therefore compared with no more sections than it
/// replaces, and three others.
#[derive(Clone, Debug)]
pub struct LatestTables<T> {
    /// With the version, unless the section has the short syntax.
    sections: BTreeMap<Key, (Option<u8>, T)>,
}

impl<T> Default for LatestTables<T> {
    fn default() -> Self {
        Self {
            sections: BTreeMap::new(),
        }
    }
}

impl<T> LatestTables<T> {
    /// Adds a section that is valid now, instead of those that it makes obsolete. Returns the
    /// values of these, and whether there was room for the new section.
    pub fn insert(&mut self, pid: u16, section: &[u8], value: T) -> (Vec<T>, bool) {
        let key = (pid, psi::key(section));
        let obsolete = self.obsolete(pid, section).into_iter().chain([key]);
        let replaced: Vec<T> = obsolete
            .filter_map(|key| self.sections.remove(&key))
            .map(|(_, value)| value)
            .collect();
        let has_room = self.sections.len() < MAX_TABLES;
        if has_room {
            let version = Version::of(section).map(|version| version.version);
            self.sections.insert(key, (version, value));
        }
        (replaced, has_room)
    }

    /// The sections that another one makes obsolete: those of the same table with another version,
    /// or behind its last section. PAT and CAT, and NIT and SDT of the stream itself, have one
    /// extension at a time, such as the identifier of the transport stream.
    fn obsolete(&self, pid: u16, section: &[u8]) -> Vec<Key> {
        let Some(new) = Version::of(section) else {
            return Vec::new();
        };
        let key = |[high, low]: [u8; 2], number: u8| (pid, [new.table, high, low, number]);
        let (first, last) = (key(new.extension, 0), key(new.extension, u8::MAX));
        // A section of the short syntax may precede those with a version.
        let mut known = self.sections.range(first..=last).take(2);
        let is_new = known.any(|(_, (version, _))| version.is_some_and(|old| old != new.version));
        let surplus = match is_new {
            true => Some(first),
            false => { new.last.checked_add(1) }.map(|number| key(new.extension, number)),
        };
        let mut ranges: Vec<(Bound<Key>, Bound<Key>)> = Vec::new();
        ranges.extend(surplus.map(|from| (Included(from), Included(last))));
        if matches!(new.table, 0x00 | 0x01 | 0x40 | 0x42) {
            ranges.push((Included(key([0; 2], 0)), Excluded(first)));
            ranges.push((Excluded(last), Included(key([u8::MAX; 2], u8::MAX))));
        }
        { ranges.into_iter() }
            .flat_map(|range| self.sections.range(range))
            .inspect(|_| work::count(1))
            .filter(|(_, (version, _))| version.is_some())
            .map(|(key, _)| *key)
            .collect()
    }

    /// The values of all sections, by PID and identity.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.sections.values().map(|(_, value)| value)
    }

    /// The value of a section.
    pub(crate) fn get_mut(&mut self, pid: u16, key: [u8; 4]) -> Option<&mut T> {
        let (_, value) = self.sections.get_mut(&(pid, key))?;
        Some(value)
    }

    /// The number of sections on a PID, but at most this many.
    pub(crate) fn count(&self, pid: u16, most: usize) -> usize {
        let sections = self.sections.range((pid, [0; 4])..=(pid, [u8::MAX; 4]));
        sections.take(most).inspect(|_| work::count(1)).count()
    }

    /// The sections on a PID.
    pub(crate) fn on_mut(&mut self, pid: u16) -> impl Iterator<Item = &mut T> {
        let all = (pid, [0; 4])..=(pid, [u8::MAX; 4]);
        self.sections.range_mut(all).map(|(_, (_, value))| value)
    }

    /// Whether there are sections of a table with this extension.
    pub(crate) fn has(&self, pid: u16, table: u8, extension: u16) -> bool {
        self.sections
            .range(of_table(pid, table, extension))
            .next()
            .is_some()
    }

    /// Removes the sections of a table with this extension.
    pub(crate) fn remove(&mut self, pid: u16, table: u8, extension: u16) {
        let sections = self.sections.range(of_table(pid, table, extension));
        let keys: Vec<Key> = sections.map(|(key, _)| *key).collect();
        for key in keys {
            self.sections.remove(&key);
        }
    }
}

fn of_table(pid: u16, table: u8, extension: u16) -> core::ops::RangeInclusive<Key> {
    let [high, low] = extension.to_be_bytes();
    (pid, [table, high, low, 0])..=(pid, [table, high, low, u8::MAX])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table, extension, version, number, last number.
    fn section([table, extension, version, number, last]: [u8; 5]) -> Vec<u8> {
        let version = 0xc1 | version << 1;
        vec![table, 0xb0, 9, 0, extension, version, number, last]
    }

    #[test]
    fn a_new_version_replaces_all_sections_of_the_one_before() {
        for (new, old, expected) in [
            ([0x42, 1, 2, 0, 0], [0x42, 1, 1, 1, 1], true),
            ([0x42, 1, 1, 0, 0], [0x42, 1, 1, 1, 1], true),
            ([0x42, 1, 1, 0, 1], [0x42, 1, 1, 1, 1], false),
            ([0x42, 2, 1, 0, 0], [0x42, 1, 1, 0, 0], true),
            ([0x42, 1, 1, 0, 0], [0x42, 2, 1, 0, 0], true),
            ([0x42, 1, 1, 0, 255], [0x42, 1, 1, 255, 255], false),
            // Another stream's SDT, and maps of several programs on a PID.
            ([0x46, 2, 1, 0, 0], [0x46, 1, 1, 0, 0], false),
            ([0x46, 1, 2, 0, 0], [0x46, 1, 1, 0, 0], true),
            ([0x02, 2, 2, 0, 0], [0x02, 1, 1, 0, 0], false),
            ([0x00, 2, 1, 0, 0], [0x00, 1, 1, 0, 0], true),
            ([0x00, 2, 1, 0, 0], [0x42, 1, 1, 0, 0], false),
        ] {
            let mut tables = LatestTables::default();
            assert_eq!(tables.insert(7, &section(old), old), (Vec::new(), true));
            // On another PID.
            assert_eq!(tables.insert(8, &section(new), new), (Vec::new(), true));
            let replaced = if expected { vec![old] } else { Vec::new() };
            assert_eq!(tables.insert(7, &section(new), new), (replaced, true));
            // Without a version, nothing is obsolete but the same section.
            let mut short = section(old);
            short[1] &= 0x7f;
            let mut tables = LatestTables::default();
            tables.insert(7, &short, old);
            assert_eq!(tables.insert(7, &section(new), new), (Vec::new(), true));
        }
    }

    #[test]
    fn a_section_is_compared_with_no_more_than_it_replaces() {
        // 1,024 sections of four tables, and then new contents of each.
        let mut tables = LatestTables::default();
        let each = |extension| (0..=255).map(move |number| [0x46, extension, 1, number, 255]);
        let all: Vec<[u8; 5]> = (0..4).flat_map(each).collect();
        for of in &all {
            assert!(tables.insert(7, &section(*of), ()).1);
        }
        assert!(
            !tables.insert(8, &section(all[0]), ()).1,
            "there is no room"
        );
        let steps = work::of(|| {
            for of in &all {
                assert_eq!(tables.insert(7, &section(*of), ()), (vec![()], true));
            }
        });
        assert_eq!(steps, 0);
        // The sections behind the last one, and then all of an old version.
        let steps = work::of(|| {
            let (replaced, _) = tables.insert(7, &section([0x46, 0, 1, 0, 99]), ());
            assert_eq!(replaced.len(), 157);
            let (replaced, _) = tables.insert(7, &section([0x46, 1, 2, 0, 99]), ());
            assert_eq!(replaced.len(), 256);
        });
        assert_eq!(steps, 156 + 256);
    }
}
