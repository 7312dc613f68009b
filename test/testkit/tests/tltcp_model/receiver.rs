//! The receiver of section 5.3.

use std::collections::{BTreeSet, VecDeque};

use super::Update;

/// Answers every packet.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) expected: u32,
    /// Numbers that arrived or were named as a void.
    pub(super) known: BTreeSet<u32>,
    pub(super) out: VecDeque<u32>,
    /// The number that arrived last.
    pub(super) latest: u32,
}

impl Receiver {
    pub(super) fn on_packet(&mut self, number: u32, update: Option<Update>) {
        if let Some(update) = update {
            self.expected = self.expected.max(update.expected);
            if let Some((start, end)) = update.void {
                self.known.extend(start..end);
            }
        }
        self.known.insert(number);
        self.latest = number;
        while self.known.contains(&self.expected) {
            self.expected += 1;
        }
        self.out.push_back(self.expected);
    }

    /// The requirements of RFC 2018, section 4, for the blocks of an acknowledgement that leaves
    /// now.
    pub(super) fn check_blocks(&self, blocks: &[(u32, u32)]) {
        for (at, &(start, end)) in blocks.iter().enumerate() {
            assert!(self.expected < start && start < end, "{blocks:?}");
            assert!(
                (start..end).all(|it| self.known.contains(&it)),
                "{blocks:?}"
            );
            let is_whole = !self.known.contains(&(start - 1)) && !self.known.contains(&end);
            assert!(
                is_whole && !blocks[..at].contains(&(start, end)),
                "{blocks:?}"
            );
        }
        let first = blocks.first();
        let is_latest = |&(start, end): &(u32, u32)| (start..end).contains(&self.latest);
        assert!(
            self.latest <= self.expected || first.is_some_and(is_latest),
            "{self:?} says {blocks:?}"
        );
    }
}
