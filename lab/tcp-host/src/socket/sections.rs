//! Sections between the application and the state machine.

use comity_tcp::Upcoming;
use comity_tcp::timeline::DeadlineClock;
use comity_units::{Span, Time};

use super::Socket;
use crate::error::StreamError;
use crate::framing::{HEADER, Header};
use crate::ledger::Ledger;
use crate::queue::Queue;
use crate::section::{Delivery, Framing, Section, SectionStatistics};
use crate::sections::Content;

/// The maximum number of bytes that are numbered at once for a peer that is not time-lined.
const MAX_PART: u64 = 64 << 10;

impl Socket {
    /// Whether the host offered time-lined TCP, but the peer does not support it.
    pub(crate) fn is_fallback(&self) -> bool {
        self.sections.is_offered() && self.delivery() == Some(Delivery::Plain)
    }

    /// Ends the writing side after everything that was submitted.
    pub(crate) fn shutdown(&mut self) {
        match self.sections.is_waiting() {
            true => self.sections.is_closing = true,
            false => self.tcp.close(),
        }
    }

    /// Whether the peer has acknowledged everything that was submitted and not omitted.
    pub(crate) fn is_all_acknowledged(&self) -> bool {
        self.tcp.is_all_acknowledged() && !self.sections.is_waiting()
    }

    /// How the connection delivers sections; `None` before the handshake is complete.
    pub(crate) fn delivery(&self) -> Option<Delivery> {
        self.is_connected
            .then(|| match self.tcp.config().timeline.is_some() {
                true => Delivery::Timelined,
                false => Delivery::Plain,
            })
    }

    pub(crate) fn section_statistics(&self) -> SectionStatistics {
        let unsent_bytes = self.tcp.unsent();
        match &self.sections.content {
            Content::Bytes => SectionStatistics::default(),
            Content::Plain(queue) => SectionStatistics {
                unsent_bytes: unsent_bytes + queue.held() as u64,
                ..queue.statistics()
            },
            Content::Timelined(ledger) => {
                let timeline = self.tcp.timeline_statistics();
                SectionStatistics {
                    unsent_bytes,
                    left_out_bytes: timeline.map_or(0, |timeline| timeline.discarded_bytes),
                    ..ledger.statistics()
                }
            }
        }
    }

    /// Submits a whole section, if the send buffer has room for it.
    pub(crate) fn submit(&mut self, section: &Section<'_>) -> Result<(), StreamError> {
        let delivery = self.delivery().ok_or(StreamError::WouldBlock)?;
        let header = match self.sections.framing {
            Framing::None => 0,
            Framing::Header => HEADER,
        };
        let bytes = section.bytes.len();
        if bytes == 0 {
            return Err(StreamError::Empty);
        }
        let limit = self
            .send
            .limit()
            .min(u32::MAX as usize)
            .saturating_sub(header);
        if bytes > limit {
            return Err(StreamError::TooLarge { bytes, limit });
        }
        let due_us = self.sections.due_us(section.deadline);
        let framing = self.sections.framing;
        if let Content::Bytes = self.sections.content {
            self.sections.content = match delivery {
                Delivery::Timelined => Content::Timelined(Box::new(Ledger::new())),
                Delivery::Plain => Content::Plain(Box::new(Queue::new(framing))),
            };
        }
        match &mut self.sections.content {
            Content::Bytes => Ok(()),
            Content::Plain(queue) => {
                if self.send.room() < queue.held() + bytes {
                    return Err(StreamError::WouldBlock);
                }
                queue.push(section, due_us);
                Ok(())
            }
            Content::Timelined(ledger) => {
                let length = header + bytes;
                if self.send.room() < length {
                    return Err(StreamError::WouldBlock);
                }
                // Sequence numbers cannot express more. Acknowledgements make room.
                self.tcp
                    .write_section(length as u64, section.deadline)
                    .map_err(|_| StreamError::WouldBlock)?;
                let start = self.send.end();
                if header > 0 {
                    let header = Header {
                        part_length: bytes as u32,
                        // The payload begins at offset 1.
                        position: start - 1,
                        number: ledger.next_number(),
                        section_length: bytes as u32,
                        part_offset: 0,
                        due_us,
                    };
                    self.send.append(&header.encode());
                }
                self.send.append(section.bytes);
                ledger.push(start, self.send.end(), bytes, section.deadline);
                Ok(())
            }
        }
    }

    /// Gives sequence numbers to waiting sections, as far as the window permits sending them. Fewer
    /// than two segments are numbered ahead of it.
    pub(crate) fn number_sections(&mut self, now: Time) {
        let margin = self.plain_margin();
        let Content::Plain(queue) = &mut self.sections.content else {
            return;
        };
        let mss = u64::from(self.tcp.config().mss);
        queue.expire(now + margin);
        while self.tcp.unsent() < mss {
            let window = self.tcp.congestion_window().min(self.tcp.peer_window());
            let ahead = self.tcp.in_flight() + self.tcp.unsent();
            let room = window.saturating_sub(ahead).clamp(mss, MAX_PART);
            let Some(bytes) = queue.next(room as usize, self.send.end()) else {
                break;
            };
            self.send.append(&bytes);
            self.tcp.write(bytes.len() as u64);
        }
        if self.sections.is_closing && queue.is_empty() {
            self.sections.is_closing = false;
            self.tcp.close();
        }
    }

    /// The facts that the state machine needs about data without sequence numbers.
    pub(crate) fn upcoming(&self) -> Upcoming {
        let (waiting, due) = match &self.sections.content {
            Content::Plain(queue) => (queue.held() as u64, queue.first_due()),
            // The application has more data than fits into the buffer.
            _ if self.wants_room => (u64::from(u32::MAX), Time::MAX),
            _ => (0, Time::MAX),
        };
        Upcoming {
            waiting,
            due,
            buffer: self.send.limit() as u64,
        }
    }

    /// Records the fates of sections. Returns whether some that waited have expired.
    pub(crate) fn settle_sections(&mut self, now: Time) -> bool {
        let margin = self.plain_margin();
        match &mut self.sections.content {
            Content::Bytes => false,
            Content::Timelined(ledger) => {
                let by = now + self.tcp.deadline_margin();
                ledger.update(by, self.tcp.acknowledged_to(), self.tcp.sent_to());
                false
            }
            Content::Plain(queue) => {
                queue.on_sent(now, self.tcp.sent_to());
                queue.on_acknowledged(now, self.tcp.acknowledged_to());
                queue.expire(now + margin)
            }
        }
    }

    /// How much earlier than its deadline a section without a number expires.
    fn plain_margin(&self) -> Span {
        let clock = self.sections.timeline.map(|timeline| timeline.clock);
        let rtt = match clock {
            Some(DeadlineClock::Receiver) => self
                .tcp
                .rtt()
                .and_then(|rtt| rtt.smoothed(&self.tcp.config().rtt)),
            _ => None,
        };
        rtt.unwrap_or(Span::ZERO) / 2
    }
}
