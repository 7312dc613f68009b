//! The fates of sections for a time-lined peer.

use std::collections::VecDeque;

use comity_units::Time;

use crate::section::SectionStatistics;

/// A section whose fate is open, in stream offsets.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u64,
    end: u64,
    deadline: Time,
}

/// Sections in order, until they are acknowledged or expire.
#[derive(Debug)]
pub(crate) struct Ledger {
    open: VecDeque<Entry>,
    /// The earliest of their deadlines; [`Time::MAX`] for none.
    earliest: Time,
    statistics: SectionStatistics,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self {
            open: VecDeque::new(),
            earliest: Time::MAX,
            statistics: SectionStatistics::default(),
        }
    }

    pub(crate) fn statistics(&self) -> SectionStatistics {
        SectionStatistics {
            open: self.open.len() as u64,
            ..self.statistics
        }
    }

    /// The number of the next section.
    pub(crate) const fn next_number(&self) -> u64 {
        self.statistics.submitted
    }

    /// Adds a section of `content` bytes that occupies `[start, end)` with its header.
    pub(crate) fn push(&mut self, start: u64, end: u64, content: usize, deadline: Time) {
        self.open.push_back(Entry {
            start,
            end,
            deadline,
        });
        self.earliest = self.earliest.min(deadline);
        self.statistics.submitted += 1;
        self.statistics.submitted_bytes += content as u64;
        self.statistics.header_bytes += (end - start) - content as u64;
    }

    /// Updates the fates: every byte below `acknowledged` was acknowledged, and every byte below
    /// `sent_to` was sent. Sections with a deadline up to `now` expire.
    pub(crate) fn update(&mut self, now: Time, acknowledged: u64, sent_to: u64) {
        // An expired section was removed at its deadline, so this one was on time.
        while self
            .open
            .front()
            .is_some_and(|entry| entry.end <= acknowledged)
        {
            self.open.pop_front();
            self.statistics.on_time += 1;
        }
        if self.earliest > now {
            return;
        }
        self.earliest = Time::MAX;
        let (earliest, statistics) = (&mut self.earliest, &mut self.statistics);
        self.open.retain(|entry| {
            if entry.deadline > now {
                *earliest = entry.deadline.min(*earliest);
                return true;
            }
            match entry.start < sent_to {
                true => statistics.cut += 1,
                false => statistics.left_out += 1,
            }
            false
        });
    }
}
