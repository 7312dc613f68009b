//! One section at the sender.

use alloc::vec::Vec;
use core::ops::Range;

use comity_congestion::Ranges;
use comity_units::{Span, Time};

use super::{ByteCounters, Fate};
use crate::timeline::feasible::Work;
use crate::timeline::section::{Meta, Reason, Reliability, SectionId, StreamId};
use crate::timeline::tokens::Borrowing;

/// A section, by its stream and its number.
pub(super) type Key = (StreamId, SectionId);

/// The progress of a section.
///
/// ```text
/// Live ──(deadline, all sent, nothing lost)──▶ Overdue ──(a piece is lost)──▶ Dropped(Expired)
///   └──(deadline, dependency, infeasible, …)──▶ Dropped(reason)
/// ```
/// A section leaves the outbox when it is acknowledged completely, or when it is dropped and
/// nothing of it is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It may still be sent.
    Live,
    /// Its deadline has passed while all of it was in flight: it may still have arrived in time.
    Overdue,
    /// Nothing more of it is sent.
    Dropped(Reason),
}

/// A section and the state of its bytes.
#[derive(Clone, Debug)]
pub(super) struct Entry<P> {
    pub(super) meta: Meta,
    /// `None` once nothing of it can be sent any more.
    pub(super) payload: Option<P>,
    pub(super) stage: Stage,
    /// The time by which it should arrive: its deadline, or earlier by the time of a repair.
    pub(super) due: Time,
    /// The debt that its importance permits.
    pub(super) borrowing: Borrowing,
    /// Whether it has the highest importance of its stream, and a lower one exists.
    pub(super) stands_out: bool,
    /// The position in the order of submission, over all streams.
    pub(super) order: u64,
    /// The offset below which all bytes were handed out at least once.
    pub(super) sent: u32,
    pub(super) acked: Ranges<u32>,
    /// Sent, lost, and neither retransmitted nor acknowledged.
    pub(super) lost: Ranges<u32>,
    /// Bytes with a duplicate transmission, or retransmitted although the first transmission may
    /// have arrived. The loss of one of the two does not count.
    pub(super) twice: Vec<Range<u32>>,
    /// Later sections that need this one.
    pub(super) dependents: Vec<SectionId>,
    pub(super) reliability: Reliability,
}

impl<P> Entry<P> {
    /// The debt that it may cause now.
    pub(super) fn borrowing(&self) -> Borrowing {
        self.borrowing.begun(self.sent, self.meta.length)
    }

    /// Whether it may still be sent, and none of it was.
    pub(super) fn waits_to_begin(&self) -> bool {
        self.stage == Stage::Live && self.sent == 0
    }

    /// Bytes that were never handed out.
    pub(super) const fn unsent(&self) -> u32 {
        self.meta.length - self.sent
    }

    /// Bytes in flight, as far as is known.
    pub(super) const fn in_flight(&self) -> u32 {
        self.sent - self.acked.total() - self.lost.total()
    }

    /// Bytes that wait to be handed out.
    pub(super) fn left(&self) -> u32 {
        match self.stage {
            Stage::Live => self.unsent() + self.to_repeat(),
            Stage::Overdue | Stage::Dropped(_) => 0,
        }
    }

    /// The remaining work of a section with a deadline, for a plan, without its dependency. If none
    /// of it has left, the plan assumes that it has to arrive `reserve` before its deadline, but
    /// uses at most half of its spare time for that.
    pub(super) fn work(&self, reserve: Span, one_way: Span) -> Work {
        let deadline = self.meta.deadline;
        let time = deadline.saturating_since(self.meta.source_time);
        let reserve = match self.sent {
            0 => reserve.min(time.saturating_sub(one_way) / 2),
            _ => Span::ZERO,
        };
        Work {
            left: u64::from(self.left()),
            deadline: deadline.saturating_sub(reserve),
            importance: self.meta.importance,
            borrowing: self.borrowing(),
            needs: None,
        }
    }

    /// Whether its lost bytes are retransmitted. If so, it has no outcome before all of it is
    /// acknowledged.
    pub(super) fn is_repaired(&self) -> bool {
        self.stage == Stage::Live && self.reliability != Reliability::None
    }

    /// Bytes that wait to be handed out again.
    pub(super) fn to_repeat(&self) -> u32 {
        match self.reliability {
            Reliability::None => 0,
            Reliability::Full | Reliability::Timeline => self.lost.total(),
        }
    }

    /// Its outcome, once it is final.
    pub(super) fn fate(&self) -> Option<Fate> {
        if self.acked.total() == self.meta.length {
            return Some(Fate::Acknowledged);
        }
        if self.in_flight() > 0 {
            return None;
        }
        match self.stage {
            Stage::Live if self.left() == 0 => Some(Fate::Lost),
            Stage::Live => None,
            Stage::Overdue => Some(Fate::ExpiredInNetwork),
            Stage::Dropped(Reason::Expired) if self.unsent() == 0 => Some(Fate::ExpiredInNetwork),
            Stage::Dropped(reason) => Some(Fate::Dropped(reason)),
        }
    }

    /// The range of a chunk, without bytes that were never handed out.
    pub(super) fn handed_out(&self, range: &Range<u32>) -> Range<u32> {
        let end = range.end.min(self.sent);
        range.start.min(end)..end
    }

    pub(super) fn on_acked(&mut self, range: &Range<u32>) {
        let range = self.handed_out(range);
        self.lost.remove(range.clone());
        self.acked.insert(range, ());
    }

    /// Marks the unacknowledged part of the range as lost.
    pub(super) fn on_lost(&mut self, range: &Range<u32>) {
        if let Some(index) = self.twice.iter().position(|twice| twice == range) {
            self.twice.swap_remove(index);
            return;
        }
        self.miss(range);
    }

    /// Marks the unacknowledged part of the range as lost, although it may still arrive. The next
    /// loss of this part does not count.
    pub(super) fn on_doubted(&mut self, range: &Range<u32>) {
        self.miss(range);
        self.twice.push(range.clone());
    }

    fn miss(&mut self, range: &Range<u32>) {
        for missing in self.acked.missing(self.handed_out(range)) {
            self.lost.insert(missing, ());
        }
    }

    /// The contribution of this section to the byte counters, except to `submitted`.
    pub(super) fn tally(&self) -> ByteCounters {
        let (unsent, lost) = (u64::from(self.unsent()), u64::from(self.lost.total()));
        let mut bytes = ByteCounters {
            in_flight: u64::from(self.in_flight()),
            acknowledged: u64::from(self.acked.total()),
            ..ByteCounters::default()
        };
        match self.stage {
            Stage::Live if self.reliability == Reliability::None => {
                bytes.queued = unsent;
                bytes.lost = lost;
            }
            Stage::Live => bytes.queued = unsent + lost,
            Stage::Overdue => bytes.expired_in_network = lost,
            // A shed section is skipped and has no bytes.
            Stage::Dropped(Reason::Cancelled | Reason::Shed) => bytes.cancelled = unsent + lost,
            Stage::Dropped(Reason::Dependency) => bytes.dependency = unsent + lost,
            Stage::Dropped(Reason::Expired) => {
                bytes.expired_unsent = unsent;
                bytes.expired_in_network = lost;
            }
            Stage::Dropped(Reason::Infeasible) => bytes.infeasible = unsent + lost,
        }
        bytes
    }

    /// Its position in the order of sending.
    pub(super) const fn urgency(&self) -> Urgency {
        Urgency {
            due: self.due,
            unimportance: u8::MAX - self.meta.importance.0,
            order: self.order,
        }
    }
}

/// The order in which sections are sent, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Urgency {
    /// [`Time::MAX`] comes last.
    pub(super) due: Time,
    pub(super) unimportance: u8,
    pub(super) order: u64,
}
