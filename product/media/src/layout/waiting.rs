//! The sections that wait for layouts, by stream.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::action::Action;
use super::model::{Run, SectionRef, TABLES};
use crate::header::Unit;

/// The memory of a section, and of a packet in a layout, in addition to their bytes.
pub(super) const EACH: usize = 128;

#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) held: BTreeMap<u64, Held>,
    /// Runs of missing sections: the first number and the count.
    pub(super) gaps: BTreeMap<u64, u64>,
    pub(super) highest: Option<u64>,
    /// Sections up to this number are no longer needed.
    pub(super) done: Option<u64>,
    /// The number at the source minus the number here, modulo 2^16.
    pub(super) distance: Option<u16>,
    /// Whether a section was found at this distance since it was set.
    is_confirmed: bool,
    /// Whether a layout is missing before the next one that names a section of the stream.
    pub(super) has_gap: bool,
    /// Whether a layout has named a section of the stream.
    pub(super) has_begun: bool,
    /// The latest unit that is in carried packets. The output is past the sections before it.
    pub(super) carried: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Held {
    pub(super) payload: Bytes,
    pub(super) header: usize,
    pub(super) length: u32,
    pub(super) hash: u16,
    pub(super) unit: Option<Unit>,
    pub(super) arrival: u64,
    pub(super) state: State,
    /// The number of bytes written, as described parts or in carried packets.
    pub(super) written: usize,
    /// The position up to which bytes were written without a layout.
    pub(super) continued: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Fresh,
    Used,
    /// It was written without a layout.
    Remultiplexed,
}

/// The result of a search for a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    Here(u64),
    Missing,
    Unknown,
}

impl Held {
    pub(super) fn is(&self, section: &SectionRef) -> bool {
        (self.length, self.hash) == (section.length, section.hash)
    }

    pub(super) fn content(&self, run: &Run) -> Option<&[u8]> {
        let content = self.payload.get(self.header..)?;
        content.get(run.from as usize..run.to as usize)
    }

    /// The bytes behind those that are written.
    pub(super) fn rest(&self) -> &[u8] {
        let from = self.header + self.written;
        self.payload.get(from..).unwrap_or_default()
    }

    pub(super) fn cost(&self) -> usize {
        self.payload.len() + EACH
    }

    /// What to write if no layout describes its first `end` bytes.
    pub(super) fn remultiplex(&mut self, stream: u16, end: usize) -> Option<Action> {
        match self.state {
            State::Fresh if self.written == 0 => {
                self.state = State::Remultiplexed;
                Some(Action::Remultiplex(stream, self.payload.clone()))
            }
            State::Fresh | State::Used if self.written > 0 => {
                let from = self.header + self.written;
                let to = self.header.saturating_add(end).min(self.payload.len());
                let unit = self.unit.filter(|_| from < to)?;
                self.written = to - self.header;
                self.continued = self.written;
                Some(Action::Continue(unit.pid, self.payload.slice(from..to)))
            }
            State::Fresh | State::Used | State::Remultiplexed => None,
        }
    }
}

impl Stream {
    pub(super) fn is_gone(&self, number: u64) -> bool {
        let is_done = self.done.is_some_and(|done| number <= done);
        let gap = self.gaps.range(..=number).next_back();
        is_done || gap.is_some_and(|(&first, &count)| number - first < count)
    }

    /// Whether the number was seen before, so that this is another connection.
    pub(super) fn has_seen(&self, number: u64) -> bool {
        self.held.contains_key(&number) || self.is_gone(number)
    }

    pub(super) fn see(&mut self, number: u64) {
        self.highest = self.highest.max(Some(number));
    }

    /// The number of a section here, if the distance is known.
    pub(super) fn number_of(&self, section: &SectionRef) -> Option<i128> {
        let highest = self.highest?;
        let number = section.number.wrapping_sub(self.distance?);
        let step = number.wrapping_sub((highest & 0xffff) as u16) as i16;
        Some(i128::from(highest) + i128::from(step))
    }

    /// Finds a section, and the distance of the numbers.
    pub(super) fn find(&mut self, section: &SectionRef) -> Lookup {
        let number = self.number_of(section);
        let here = number.and_then(|number| u64::try_from(number).ok());
        if let Some(here) = here
            && self.held.get(&here).is_some_and(|held| held.is(section))
        {
            self.is_confirmed = true;
            return Lookup::Here(here);
        }
        let is_other = here.is_some_and(|here| self.held.contains_key(&here));
        // The source repeats its tables, so an equal table will do.
        if number.is_none() || is_other || section.stream == TABLES {
            let mut held = self.held.iter();
            if let Some((&here, _)) = held.find(|(_, held)| held.is(section)) {
                // An equal table that came earlier says nothing about the distance.
                if is_other || !self.is_confirmed {
                    self.distance = Some(section.number.wrapping_sub((here & 0xffff) as u16));
                    self.is_confirmed = false;
                }
                return Lookup::Here(here);
            }
        }
        match (number, here) {
            (Some(_), None) => Lookup::Missing,
            (Some(_), Some(here)) if is_other || self.is_gone(here) => Lookup::Missing,
            _ => Lookup::Unknown,
        }
    }

    /// The number of a section here, if it has arrived or is missing.
    pub(super) fn position_of(&mut self, section: &SectionRef) -> Option<u64> {
        match self.find(section) {
            Lookup::Here(number) => Some(number),
            Lookup::Missing => u64::try_from(self.number_of(section)?).ok(),
            Lookup::Unknown => None,
        }
    }

    /// Whether a layout may be missing before the next one. A receiver that joins gets the first
    /// section, but perhaps not the layout of its beginning.
    pub(super) fn may_have_gap(&self) -> bool {
        self.has_gap || !self.has_begun && self.distance.is_none_or(|distance| distance != 0)
    }

    /// Whether this part of a section was written without a layout.
    pub(super) fn is_written(&self, number: u64, run: &Run) -> bool {
        self.held.get(&number).is_some_and(|held| {
            held.state == State::Remultiplexed || (run.from as usize) < held.continued
        })
    }

    /// Whether the distance is known, so that it can be known of each section whether it will
    /// arrive.
    pub(super) const fn is_oriented(&self) -> bool {
        self.distance.is_some()
    }

    /// Drops all sections below this number. Returns their memory.
    pub(super) fn pass(&mut self, number: u64) -> usize {
        let kept = self.held.split_off(&number);
        let passed = core::mem::replace(&mut self.held, kept);
        self.gaps
            .retain(|&first, count| first.saturating_add(*count) > number);
        self.done = self.done.max(number.checked_sub(1));
        passed.values().map(Held::cost).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source sends equal tables again. One that has not arrived yet is not an earlier one.
    #[test]
    fn an_equal_table_does_not_change_the_distance() {
        let mut stream = Stream::default();
        let section =
            |number: u64, content: &'static [u8]| SectionRef::new(TABLES, number, content, 4);
        for (number, content) in [(0, b"one."), (1, b"two."), (2, b"one.")] {
            let held = Held {
                payload: Bytes::from_static(content),
                header: 0,
                length: 4,
                hash: section(number, content).hash,
                unit: None,
                arrival: number,
                state: State::Fresh,
                written: 0,
                continued: 0,
            };
            stream.see(number);
            stream.held.insert(number, held);
            assert_eq!(stream.find(&section(number, content)), Lookup::Here(number));
        }
        // The fourth one has not arrived, and the second one will do.
        assert_eq!(stream.find(&section(3, b"two.")), Lookup::Here(1));
        // The fifth one has not arrived, and none will do.
        assert_eq!(stream.find(&section(4, b"five")), Lookup::Unknown);
        stream.gaps.insert(4, 1);
        assert_eq!(stream.find(&section(4, b"five")), Lookup::Missing);
    }
}
