//! Records which sections are in each piece that the thread writes.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use comity_stream::Missing;

/// Counters of the pieces that the thread has written.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pieces: AtomicU64,
    bytes: Arc<AtomicU64>,
}

impl Taken {
    /// Counts a completely written piece of this length.
    pub(super) fn add(&self, length: usize) {
        self.bytes.fetch_add(length as u64, Ordering::Relaxed);
        // A thread that sees this count also sees the bytes.
        self.pieces.fetch_add(1, Ordering::Release);
    }

    fn pieces(&self) -> u64 {
        self.pieces.load(Ordering::Acquire)
    }

    /// The number of bytes in completely written pieces.
    pub(super) fn bytes(&self) -> Arc<AtomicU64> {
        self.bytes.clone()
    }
}

/// The maximum number of remembered sections that have produced no bytes yet, both of those that
/// the writer may hold and of those for the next piece. A table produces none until the unit after
/// it is written. If no unit follows, the oldest sections are forgotten.
const MAX_SILENT: usize = 4_096;

/// A section, with the PID of its stream.
type Entry = (Option<u16>, Missing);

/// The submitted sections that the thread may not have written yet: those in waiting pieces, and
/// those that the media writer holds.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Sections that are in no piece yet, with the stream whose tables they may wait for.
    open: VecDeque<Entry>,
    /// Sections of the next piece.
    next: VecDeque<Missing>,
    /// The sections of the submitted pieces, by the number of the piece.
    given: VecDeque<(u64, VecDeque<Missing>)>,
    pieces: u64,
    /// The counters of the thread.
    pub(super) written: Arc<Taken>,
    pub(super) has_failed: bool,
}

impl Ledger {
    /// Records a submitted section of the stream with this PID.
    pub(super) fn add(&mut self, pid: Option<u16>, section: Missing) {
        self.open.push_back((pid, section));
        if self.open.len() > MAX_SILENT {
            self.open.pop_front();
        }
    }

    /// Assigns sections whose streams are not held to the next piece.
    pub(super) fn assign(&mut self, held: &BTreeSet<u16>) {
        let is_held = |(pid, _): &Entry| pid.is_some_and(|pid| held.contains(&pid));
        let open = core::mem::take(&mut self.open);
        let (held, next): (VecDeque<_>, VecDeque<_>) = open.into_iter().partition(is_held);
        self.open = held;
        self.next
            .extend(next.into_iter().map(|(_, section)| section));
    }

    /// Keeps these sections for the next piece, because the writer has produced no bytes.
    pub(super) fn keep(&mut self) {
        let surplus = self.next.len().saturating_sub(MAX_SILENT);
        self.next.drain(..surplus);
    }

    /// Records that the next piece goes to the thread.
    pub(super) fn give(&mut self) {
        let written = self.written.pieces();
        while self
            .given
            .front()
            .is_some_and(|(piece, _)| *piece < written)
        {
            self.given.pop_front();
        }
        let sections = core::mem::take(&mut self.next);
        self.given.push_back((self.pieces, sections));
        self.pieces += 1;
    }

    /// Takes the unwritten sections.
    pub(super) fn take(&mut self) -> Vec<Missing> {
        let written = self.written.pieces();
        let given = core::mem::take(&mut self.given);
        let unwritten = given.into_iter().filter(|(piece, _)| *piece >= written);
        let mut sections: Vec<Missing> = unwritten.flat_map(|(_, sections)| sections).collect();
        sections.extend(self.next.drain(..));
        sections.extend(self.open.drain(..).map(|(_, section)| section));
        sections
    }
}

#[cfg(test)]
mod tests {
    use comity::{SectionId, StreamId};
    use comity_stream::MissingReason;

    use super::*;

    fn section(number: u64) -> Missing {
        Missing {
            stream: StreamId(1),
            id: SectionId(number),
            count: 1,
            kind: None,
            reason: MissingReason::Unwritten,
            length: Some(1),
            missing_bytes: Some(1),
            source_time: None,
        }
    }

    #[test]
    fn sections_that_wait_for_tables_are_in_the_next_piece() {
        let mut ledger = Ledger::default();
        let written = ledger.written.clone();
        // Two streams wait for tables. The tables of the first stream arrive, then a section that
        // produces no bytes yet.
        for (number, pid) in [(0, 256), (1, 257), (2, 256)] {
            ledger.add(Some(pid), section(number));
        }
        ledger.add(None, section(3));
        ledger.assign(&BTreeSet::from([257]));
        ledger.give();
        ledger.add(None, section(4));
        ledger.assign(&BTreeSet::from([257]));
        ledger.keep();
        ledger.add(Some(256), section(5));
        ledger.assign(&BTreeSet::from([257]));
        ledger.give();
        written.add(188);
        let numbers = |sections: Vec<Missing>| -> Vec<u64> {
            sections.iter().map(|section| section.id.0).collect()
        };
        assert_eq!(numbers(ledger.take()), [4, 5, 1]);
        assert_eq!(numbers(ledger.take()), [] as [u64; 0]);
    }

    #[test]
    fn written_sections_are_forgotten() {
        let mut ledger = Ledger::default();
        for number in 0..100 {
            ledger.add(None, section(number));
            ledger.assign(&BTreeSet::new());
            ledger.give();
            assert!(ledger.given.len() <= 2);
            ledger.written.add(1);
        }
    }

    #[test]
    fn sections_without_bytes_are_bounded() {
        let mut ledger = Ledger::default();
        for number in 0..2 * MAX_SILENT as u64 {
            ledger.add(None, section(number));
            ledger.assign(&BTreeSet::new());
            ledger.keep();
        }
        let kept = ledger.take();
        assert_eq!(kept.len(), MAX_SILENT);
        assert_eq!(kept[0].id.0, MAX_SILENT as u64);
    }

    /// While the writer holds something, no section is assigned to a piece.
    #[test]
    fn sections_that_may_be_held_are_bounded() {
        let mut ledger = Ledger::default();
        for number in 0..2 * MAX_SILENT as u64 {
            ledger.add(Some(256), section(number));
        }
        let kept = ledger.take();
        assert_eq!(kept.len(), MAX_SILENT);
        assert_eq!(kept[0].id.0, MAX_SILENT as u64);
    }
}
