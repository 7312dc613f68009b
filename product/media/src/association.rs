//! The program association table of a stream, from all of its sections.

use std::collections::BTreeSet;

use crate::latest::LatestTables;
use crate::psi::{self, Version};
use crate::work;

/// What the PAT in force names: the numbers of the programs, or the PIDs of their maps.
#[derive(Debug, Default)]
pub(crate) struct Association {
    /// The number of each section, and what it names.
    sections: LatestTables<(u8, Vec<u16>)>,
    /// What these sections name, each with the number of the section.
    named: BTreeSet<(u16, u8)>,
    /// What counts as named until all sections have come, such as what replaced sections named.
    expected: BTreeSet<u16>,
}

impl Association {
    /// Adds a section of the PAT that names these. Once all sections have come, returns what none
    /// of them names any more.
    pub(crate) fn add(&mut self, section: &[u8], names: Vec<u16>) -> Vec<u16> {
        let [.., number] = psi::key(section);
        let last = Version::of(section).map_or(number, |version| version.last);
        if number > last {
            return Vec::new();
        }
        let added: Vec<(u16, u8)> = names.iter().map(|&name| (name, number)).collect();
        let (replaced, _) = self.sections.insert(psi::PAT, section, (number, names));
        for (number, names) in replaced {
            work::count(names.len());
            for name in names {
                self.named.remove(&(name, number));
                self.expected.insert(name);
            }
        }
        self.named.extend(added);
        let all = usize::from(last) + 1;
        if self.sections.count(psi::PAT, all) < all {
            return Vec::new();
        }
        let expected = core::mem::take(&mut self.expected);
        let is_gone = |name: &u16| !self.names(*name);
        expected.into_iter().filter(is_gone).collect()
    }

    /// Adds a name that counts until all sections have come.
    pub(crate) fn expect(&mut self, name: u16) {
        self.expected.insert(name);
    }

    /// Whether the PAT names it, or did so while not all sections of the next one have come.
    pub(crate) fn has(&self, name: u16) -> bool {
        self.names(name) || self.expected.contains(&name)
    }

    fn names(&self, name: u16) -> bool {
        let sections = (name, 0)..=(name, u8::MAX);
        self.named.range(sections).next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A section of the PAT with this version and number, and the number of the last one.
    fn section(version: u8, [number, last]: [u8; 2]) -> Vec<u8> {
        let mut section = psi::write_pat(0x100);
        section[5] |= version << 1;
        section[6..8].copy_from_slice(&[number, last]);
        section
    }

    #[test]
    fn a_name_is_gone_once_all_sections_without_it_have_come() {
        let mut association = Association::default();
        association.expect(8);
        assert!(association.has(8));
        let mut add = |version, position, names: &[u16]| {
            let gone = association.add(&section(version, position), names.to_vec());
            let has: Vec<u16> = (0..9).filter(|name| association.has(*name)).collect();
            (gone, has)
        };
        let none = Vec::new;
        assert_eq!(add(0, [0, 1], &[1, 2]), (none(), vec![1, 2, 8]));
        assert_eq!(add(0, [0, 1], &[1, 2]), (none(), vec![1, 2, 8]));
        assert_eq!(add(0, [1, 1], &[2, 3]), (vec![8], vec![1, 2, 3]));
        // A section changes, in this version and in the next one.
        assert_eq!(add(0, [0, 1], &[4]), (vec![1], vec![2, 3, 4]));
        assert_eq!(add(1, [1, 1], &[4]), (none(), vec![2, 3, 4]));
        assert_eq!(add(1, [1, 1], &[5]), (none(), vec![2, 3, 4, 5]));
        assert_eq!(add(1, [2, 1], &[6]), (none(), vec![2, 3, 4, 5]));
        assert_eq!(add(1, [0, 1], &[3]), (vec![2, 4], vec![3, 5]));
        // The next version has fewer sections.
        assert_eq!(add(2, [0, 0], &[3, 6]), (vec![5], vec![3, 6]));
    }

    #[test]
    fn a_section_costs_no_more_than_those_that_it_replaces() {
        let mut association = Association::default();
        for number in 0..=u8::MAX {
            let first = 250 * u16::from(number);
            let names = (first..first + 250).collect();
            association.add(&section(0, [number, u8::MAX]), names);
        }
        let steps = work::of(|| {
            let gone = association.add(&section(0, [7, u8::MAX]), vec![1_750]);
            assert_eq!(gone, (1_751..2_000).collect::<Vec<_>>());
        });
        // Its own 250 names, and the count of the sections.
        assert!((250..600).contains(&steps), "{steps}");
        let steps = work::of(|| {
            let gone = association.add(&section(1, [0, 0]), vec![5]);
            assert_eq!(gone.len(), 250 * 255);
        });
        assert!((63_751..64_600).contains(&steps), "{steps}");
        assert!(association.has(5) && !association.has(6));
    }
}
