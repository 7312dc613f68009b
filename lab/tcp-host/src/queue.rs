//! Sections for a peer whose TCP is not time-lined. They get sequence numbers as late as possible.

use std::collections::VecDeque;

use comity_units::Time;

use crate::framing::{HEADER, Header};
use crate::section::{Framing, Section, SectionStatistics};

/// A section that has no sequence numbers yet, or only for a part of it.
#[derive(Debug)]
struct Waiting {
    number: u64,
    deadline: Time,
    due_us: u64,
    bytes: Vec<u8>,
    /// The number of bytes with a sequence number.
    numbered: usize,
}

/// A part of a section with sequence numbers, in stream offsets.
#[derive(Clone, Copy, Debug)]
struct Part {
    start: u64,
    end: u64,
    /// The number of bytes of content.
    content: u64,
    deadline: Time,
    is_last: bool,
}

/// Sections in order: those that wait, and those in flight.
///
/// A section that expires while it waits is omitted. Bytes with sequence numbers must arrive, so
/// the socket requests the next part only when the window permits sending it.
#[derive(Debug)]
pub(crate) struct Queue {
    framing: Framing,
    waiting: VecDeque<Waiting>,
    /// The number of bytes without a sequence number.
    held: usize,
    /// The parts that are not acknowledged.
    numbered: VecDeque<Part>,
    /// The number of these parts that were sent completely.
    sent: usize,
    /// The highest offset sent.
    sent_to: u64,
    statistics: SectionStatistics,
}

impl Queue {
    pub(crate) fn new(framing: Framing) -> Self {
        Self {
            framing,
            waiting: VecDeque::new(),
            held: 0,
            numbered: VecDeque::new(),
            sent: 0,
            sent_to: 0,
            statistics: SectionStatistics::default(),
        }
    }

    /// The number of bytes without a sequence number.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) const fn statistics(&self) -> SectionStatistics {
        let SectionStatistics {
            submitted,
            on_time,
            late,
            cut,
            left_out,
            ..
        } = self.statistics;
        SectionStatistics {
            open: submitted - on_time - late - cut - left_out,
            ..self.statistics
        }
    }

    /// Adds a section. Its header contains `due_us`.
    pub(crate) fn push(&mut self, section: &Section<'_>, due_us: u64) {
        self.held += section.bytes.len();
        self.waiting.push_back(Waiting {
            number: self.statistics.submitted,
            deadline: section.deadline,
            due_us,
            bytes: section.bytes.to_vec(),
            numbered: 0,
        });
        self.statistics.submitted += 1;
        self.statistics.submitted_bytes += section.bytes.len() as u64;
    }

    /// When the first section expires; [`Time::MAX`] for never.
    pub(crate) fn expires_at(&self) -> Time {
        let first = self.waiting.front();
        let first =
            first.filter(|section| self.framing == Framing::Header || section.numbered == 0);
        first.map_or(Time::MAX, |section| section.deadline)
    }

    /// The earliest deadline of a section that is not acknowledged; [`Time::MAX`] for none.
    pub(crate) fn first_due(&self) -> Time {
        let numbered = self.numbered.iter().map(|part| part.deadline);
        let waiting = self.waiting.iter().map(|section| section.deadline);
        numbered.chain(waiting).min().unwrap_or(Time::MAX)
    }

    /// Omits the sections at the front that have expired at `now`. Returns whether there were any.
    pub(crate) fn expire(&mut self, now: Time) -> bool {
        let before = self.waiting.len();
        while self.expires_at() <= now
            && let Some(section) = self.waiting.pop_front()
        {
            let left = section.bytes.len() - section.numbered;
            self.held -= left;
            self.statistics.left_out_bytes += left as u64;
            match section.numbered {
                0 => self.statistics.left_out += 1,
                _ => self.statistics.cut += 1,
            }
        }
        self.waiting.len() < before
    }

    /// The next bytes to number: a part of the first section, at the stream offset `start`. They
    /// are at most `room`, but contain at least one byte of content.
    pub(crate) fn next(&mut self, room: usize, start: u64) -> Option<Vec<u8>> {
        let section = self.waiting.front_mut()?;
        let header = match self.framing {
            Framing::None => 0,
            Framing::Header => HEADER,
        };
        let left = section.bytes.get(section.numbered..).unwrap_or_default();
        let length = left.len().min(room.saturating_sub(header).max(1));
        let mut bytes = Vec::with_capacity(header + length);
        if self.framing == Framing::Header {
            let header = Header {
                part_length: length as u32,
                // The payload begins at offset 1.
                position: start - 1,
                number: section.number,
                section_length: section.bytes.len() as u32,
                part_offset: section.numbered as u32,
                due_us: section.due_us,
            };
            bytes.extend(header.encode());
        }
        bytes.extend(left.get(..length).unwrap_or_default());
        self.held -= length;
        section.numbered += length;
        let is_last = section.numbered == section.bytes.len();
        self.numbered.push_back(Part {
            start,
            end: start + bytes.len() as u64,
            content: length as u64,
            deadline: section.deadline,
            is_last,
        });
        if is_last {
            self.waiting.pop_front();
        }
        self.statistics.header_bytes += header as u64;
        Some(bytes)
    }

    /// Records that every byte below the offset `sent_to` was sent at least once.
    pub(crate) fn on_sent(&mut self, now: Time, sent_to: u64) {
        while let Some(part) = self.numbered.get(self.sent) {
            if part.deadline <= now {
                let from = part.start.max(self.sent_to);
                self.statistics.sent_late_bytes += part.end.min(sent_to).saturating_sub(from);
            }
            if part.end > sent_to {
                break;
            }
            self.sent += 1;
        }
        self.sent_to = self.sent_to.max(sent_to);
    }

    /// Records that every byte below the offset `end` is acknowledged.
    pub(crate) fn on_acknowledged(&mut self, now: Time, end: u64) {
        while let Some(part) = self.numbered.front().copied()
            && part.end <= end
        {
            self.numbered.pop_front();
            self.sent = self.sent.saturating_sub(1);
            let is_late = part.deadline <= now;
            if is_late {
                self.statistics.acknowledged_late_bytes += part.content;
            }
            match (part.is_last, is_late) {
                (false, _) => {}
                (true, false) => self.statistics.on_time += 1,
                (true, true) => self.statistics.late += 1,
            }
        }
    }
}
