//! Counters of the outcomes of submitted bytes and sections.

use super::Fate;
use crate::timeline::section::Reason;

/// Bytes by outcome. Every byte counts in exactly one of the parts at any time:
///
/// ```text
/// submitted = acknowledged + expired_unsent + expired_in_network + lost
///           + infeasible + dependency + cancelled + queued + in_flight
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteCounters {
    /// All accepted bytes.
    pub submitted: u64,
    /// Waiting for their first transmission or for a retransmission.
    pub queued: u64,
    /// Sent, without an acknowledgement or loss so far.
    pub in_flight: u64,
    /// Arrived.
    pub acknowledged: u64,
    /// The deadline passed before they were sent.
    pub expired_unsent: u64,
    /// Sent and never acknowledged, and the deadline has passed.
    pub expired_in_network: u64,
    /// Lost and not retransmitted ([`Reliability::None`](super::super::Reliability::None)).
    pub lost: u64,
    /// Given up because they could not have arrived in time.
    pub infeasible: u64,
    /// Given up with a section that they needed.
    pub dependency: u64,
    /// Withdrawn by the application.
    pub cancelled: u64,
}

impl ByteCounters {
    /// All entries with their names, for printing.
    pub const fn entries(&self) -> [(&'static str, u64); 10] {
        [
            ("submitted", self.submitted),
            ("queued", self.queued),
            ("in_flight", self.in_flight),
            ("acknowledged", self.acknowledged),
            ("expired_unsent", self.expired_unsent),
            ("expired_in_network", self.expired_in_network),
            ("lost", self.lost),
            ("infeasible", self.infeasible),
            ("dependency", self.dependency),
            ("cancelled", self.cancelled),
        ]
    }

    /// The sum of the parts; equals [`ByteCounters::submitted`].
    pub const fn sum(&self) -> u64 {
        self.queued
            + self.in_flight
            + self.acknowledged
            + self.expired_unsent
            + self.expired_in_network
            + self.lost
            + self.infeasible
            + self.dependency
            + self.cancelled
    }

    /// Replaces the previous contribution of a section by the present one.
    pub(super) fn replace(&mut self, before: Self, after: Self) {
        let moved = |total: &mut u64, before: u64, after: u64| *total = *total - before + after;
        moved(&mut self.queued, before.queued, after.queued);
        moved(&mut self.in_flight, before.in_flight, after.in_flight);
        moved(
            &mut self.acknowledged,
            before.acknowledged,
            after.acknowledged,
        );
        moved(
            &mut self.expired_unsent,
            before.expired_unsent,
            after.expired_unsent,
        );
        moved(
            &mut self.expired_in_network,
            before.expired_in_network,
            after.expired_in_network,
        );
        moved(&mut self.lost, before.lost, after.lost);
        moved(&mut self.infeasible, before.infeasible, after.infeasible);
        moved(&mut self.dependency, before.dependency, after.dependency);
        moved(&mut self.cancelled, before.cancelled, after.cancelled);
    }
}

/// Sections by outcome: `submitted` is the sum of all others. Skipped numbers count as sections
/// without bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SectionCounters {
    /// All sections with a number.
    pub submitted: u64,
    /// Without an outcome so far.
    pub open: u64,
    /// Arrived whole.
    pub acknowledged: u64,
    /// The deadline passed before all was sent.
    pub expired_unsent: u64,
    /// All was sent, not all was acknowledged, and the deadline has passed.
    pub expired_in_network: u64,
    /// Partly lost and not retransmitted.
    pub lost: u64,
    /// Could not have arrived in time.
    pub infeasible: u64,
    /// Needed a section that was abandoned.
    pub dependency: u64,
    /// Shed by the application to fit the rate.
    pub shed: u64,
    /// Withdrawn by the application.
    pub cancelled: u64,
}

impl SectionCounters {
    /// All entries with their names, for printing.
    pub const fn entries(&self) -> [(&'static str, u64); 10] {
        [
            ("submitted", self.submitted),
            ("open", self.open),
            ("acknowledged", self.acknowledged),
            ("expired_unsent", self.expired_unsent),
            ("expired_in_network", self.expired_in_network),
            ("lost", self.lost),
            ("infeasible", self.infeasible),
            ("dependency", self.dependency),
            ("shed", self.shed),
            ("cancelled", self.cancelled),
        ]
    }

    /// The sum of the parts; equals [`SectionCounters::submitted`].
    pub const fn sum(&self) -> u64 {
        self.open
            + self.acknowledged
            + self.expired_unsent
            + self.expired_in_network
            + self.lost
            + self.infeasible
            + self.dependency
            + self.shed
            + self.cancelled
    }
}

impl SectionCounters {
    /// Counts the outcome of an open section.
    pub(super) fn settle(&mut self, fate: Fate) {
        self.open -= 1;
        *self.settled(fate) += 1;
    }

    /// Counts skipped numbers, with this reason.
    pub(super) fn skip(&mut self, reason: Reason, count: u64) {
        self.submitted += count;
        *self.settled(Fate::Dropped(reason)) += count;
    }

    const fn settled(&mut self, fate: Fate) -> &mut u64 {
        match fate {
            Fate::Acknowledged => &mut self.acknowledged,
            Fate::Dropped(Reason::Cancelled) => &mut self.cancelled,
            Fate::Dropped(Reason::Dependency) => &mut self.dependency,
            Fate::Dropped(Reason::Expired) => &mut self.expired_unsent,
            Fate::Dropped(Reason::Infeasible) => &mut self.infeasible,
            Fate::Dropped(Reason::Shed) => &mut self.shed,
            Fate::ExpiredInNetwork => &mut self.expired_in_network,
            Fate::Lost => &mut self.lost,
        }
    }
}

/// The sender's counters of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// In bytes.
    pub bytes: ByteCounters,
    /// In sections.
    pub sections: SectionCounters,
    /// Bytes handed out for the first time.
    pub sent: u64,
    /// Bytes handed out again after a loss.
    pub sent_again: u64,
    /// Bytes handed out at or after their deadline: zero unless nothing is ever dropped.
    pub sent_late: u64,
    /// Abandoned sections whose bytes all turned out to have arrived.
    pub given_up_but_arrived: u64,
}
