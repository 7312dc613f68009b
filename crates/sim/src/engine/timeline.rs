//! Time-lined TCP in a flow: what gives its sections, and what became of them.

use std::collections::VecDeque;

use comity_transport::tcp::Connection;
use comity_transport::tcp::timeline::Piece;
use comity_units::{Span, Time};

use super::sections::Producer;
use crate::frames::FrameKind;
use crate::network::TimelineSpec;
use crate::report::TimelineReport;

/// The source and the reader of a time-lined flow.
///
/// A greedy source always has a section ready behind the one that is being sent: section k, from 0, is over
/// k + 1 lifetimes after the start, and a section that was sent early is followed by the next at once. A section
/// that comes into being at a time is over one lifetime later. Frames have the deadlines of section 4 of the
/// TLTCP paper: an intra frame and the predicted ones up to the next share one, a lifetime after the intra frame
/// came into being; a bidirectional one has that of the earlier of the two frames that stand before it in the
/// order of sending, which are those that it is made of.
#[derive(Debug)]
pub(super) struct TimelineFlow {
    producer: Producer,
    life: Span,
    start: Time,
    /// Sections that the reader is not past.
    open: VecDeque<Given>,
    /// The bytes given so far.
    given: u64,
    /// The deadlines of the last two frames that others are made of, the later one last.
    references: [Time; 2],
    selection: Option<Selection>,
    has_stopped: bool,
    pub(super) counts: TimelineReport,
}

/// A section that was given.
#[derive(Clone, Copy, Debug)]
struct Given {
    end: u64,
    deadline: Time,
    kind: FrameKind,
    has_gap: bool,
}

/// Which frames the source gives (section 4): all, intra and predicted ones, or intra ones alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    Intra,
    IntraAndPredicted,
    All,
}

impl Mode {
    const fn takes(self, kind: FrameKind) -> bool {
        match kind {
            FrameKind::Bidirectional => matches!(self, Self::All),
            FrameKind::Predicted => !matches!(self, Self::Intra),
            FrameKind::Intra | FrameKind::Other => true,
        }
    }

    const fn less(self) -> Self {
        match self {
            Self::All => Self::IntraAndPredicted,
            _ => Self::Intra,
        }
    }

    const fn more(self) -> Self {
        match self {
            Self::Intra => Self::IntraAndPredicted,
            _ => Self::All,
        }
    }
}

/// The choice of frames by what the reader says of those that it had in time.
///
/// The reader reports at every interval. A share below [`TOO_FEW`] takes one kind of frame away, and
/// [`CALM`] intervals in a row without a frame missed bring it back; the paper leaves the rule to the application.
#[derive(Debug)]
struct Selection {
    interval: Span,
    next_report: Time,
    mode: Mode,
    in_time: u64,
    missed: u64,
    calm: u32,
}

const TOO_FEW: f64 = 0.95;
const CALM: u32 = 5;

impl Selection {
    fn report(&mut self, now: Time) {
        while self.next_report <= now {
            self.next_report += self.interval;
            let settled = self.in_time + self.missed;
            if settled > 0 && (self.in_time as f64) < TOO_FEW * settled as f64 {
                self.mode = self.mode.less();
                self.calm = 0;
            } else if settled > 0 && self.missed == 0 {
                self.calm += 1;
                if self.calm >= CALM {
                    self.mode = self.mode.more();
                    self.calm = 0;
                }
            }
            (self.in_time, self.missed) = (0, 0);
        }
    }
}

impl TimelineFlow {
    pub(super) fn new(producer: Producer, spec: &TimelineSpec, start: Time) -> Self {
        let selection = spec.feedback.map(|interval| Selection {
            interval,
            next_report: start + interval,
            mode: Mode::All,
            in_time: 0,
            missed: 0,
            calm: 0,
        });
        Self {
            producer,
            life: spec.deadline,
            start,
            open: VecDeque::new(),
            given: 0,
            references: [Time::MAX; 2],
            selection,
            has_stopped: false,
            counts: TimelineReport::default(),
        }
    }

    /// Whether nothing but packets and timers makes it act.
    pub(super) const fn is_greedy(&self) -> bool {
        matches!(self.producer, Producer::Greedy(_))
    }

    /// When a section comes into being next; [`Time::MAX`] for never, or whenever there is room.
    pub(super) fn next_emission(&self) -> Time {
        self.producer.peek()
    }

    pub(super) fn stop(&mut self) {
        self.has_stopped = true;
    }

    /// Sees to it that a greedy source has a whole section ready.
    pub(super) fn fill(&mut self, connection: &mut Connection) {
        let Producer::Greedy(bytes) = self.producer else {
            return;
        };
        while !self.has_stopped && connection.unsent() < u64::from(bytes) {
            let deadline = self.start + self.life * (self.counts.given + 1);
            if !self.give(connection, bytes, deadline, FrameKind::Other) {
                return;
            }
        }
    }

    /// Gives all sections that have come into being by `now`. Returns when the next one will.
    pub(super) fn produce(&mut self, now: Time, connection: &mut Connection) -> Time {
        if let Some(selection) = &mut self.selection {
            selection.report(now);
        }
        while self.producer.peek() <= now
            && let Some((bytes, kind)) = self.producer.next()
        {
            let own = now + self.life;
            let [earlier, later] = self.references;
            let deadline = match kind {
                FrameKind::Intra | FrameKind::Other => own,
                FrameKind::Predicted => later,
                FrameKind::Bidirectional => earlier,
            };
            if matches!(kind, FrameKind::Intra | FrameKind::Predicted) {
                self.references = [later, deadline];
            }
            let is_taken = self
                .selection
                .as_ref()
                .is_none_or(|selection| selection.mode.takes(kind));
            if is_taken {
                self.give(connection, bytes, deadline.min(own), kind);
            } else {
                self.counts.left_out += 1;
            }
        }
        self.producer.peek()
    }

    fn give(
        &mut self,
        connection: &mut Connection,
        bytes: u32,
        deadline: Time,
        kind: FrameKind,
    ) -> bool {
        let is_taken = connection.write_section(u64::from(bytes), deadline).is_ok();
        if is_taken {
            self.given += u64::from(bytes);
            self.counts.given += 1;
            self.open.push_back(Given {
                end: self.given,
                deadline,
                kind,
                has_gap: false,
            });
        } else {
            self.counts.refused += 1;
        }
        is_taken
    }

    /// The reader takes what is there.
    pub(super) fn read(&mut self, now: Time, sink: &mut Connection) {
        while let Some(piece) = sink.read_piece(u64::MAX) {
            let (Piece::Data { offset, length } | Piece::Gap { offset, length }) = piece;
            let is_gap = matches!(piece, Piece::Gap { .. });
            let end = offset + length;
            while let Some(section) = self.open.front_mut() {
                section.has_gap |= is_gap;
                if section.end > end {
                    break;
                }
                let section = *section;
                self.open.pop_front();
                self.settle(now, section);
                // A piece that ends with a section says nothing of the next.
                if section.end == end {
                    break;
                }
            }
        }
    }

    fn settle(&mut self, now: Time, section: Given) {
        let is_in_time = !section.has_gap && now <= section.deadline;
        let counts = &mut self.counts;
        match (section.has_gap, is_in_time) {
            (true, _) => counts.broken += 1,
            (false, true) => counts.in_time += 1,
            (false, false) => counts.late += 1,
        }
        let of_kind = match section.kind {
            FrameKind::Intra => &mut counts.intra_in_time,
            FrameKind::Predicted => &mut counts.predicted_in_time,
            FrameKind::Bidirectional => &mut counts.bidirectional_in_time,
            FrameKind::Other => &mut counts.other_in_time,
        };
        *of_kind += u64::from(is_in_time);
        if let Some(selection) = &mut self.selection {
            selection.in_time += u64::from(is_in_time);
            selection.missed += u64::from(!is_in_time);
        }
    }

    /// What became of the sections, and what the two ends counted.
    pub(super) fn report(&self, source: &Connection, sink: &Connection) -> TimelineReport {
        let sent = source.timeline_statistics().unwrap_or_default();
        let missing = sink.gap_statistics();
        TimelineReport {
            expired: sent.expired,
            jumps: sent.jumps,
            discarded_bytes: sent.discarded_bytes,
            obsolete_bytes: sent.obsolete_bytes,
            pseudo_retransmissions: sent.pseudo_retransmissions,
            replacements: sent.replacements,
            notices: sent.notices,
            gaps: missing.gaps,
            gap_bytes: missing.bytes,
            ..self.counts
        }
    }

    pub(super) fn heap_memory(&self) -> usize {
        size_of::<Self>() + self.open.capacity() * size_of::<Given>()
    }
}
