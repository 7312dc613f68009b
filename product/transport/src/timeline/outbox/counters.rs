//! Counters of the outcomes of submitted bytes and sections.

use super::Fate;
use crate::counters;
use crate::timeline::section::Reason;

counters! {
    /// Bytes by outcome. Every byte counts in exactly one of the parts at any time:
    ///
    /// ```text
    /// submitted = acknowledged + expired_unsent + expired_in_network + lost
    ///           + infeasible + dependency + cancelled + queued + in_flight
    /// ```
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ByteCounters {
        /// All accepted bytes.
        pub submitted: u64 = "submitted", Counter, Bytes;
        /// Waiting for their first transmission or for a retransmission.
        pub queued: u64 = "queued", Gauge, Bytes;
        /// Sent, without an acknowledgement or loss so far.
        pub in_flight: u64 = "in_flight", Gauge, Bytes;
        /// Arrived.
        pub acknowledged: u64 = "acknowledged", Counter, Bytes;
        /// The deadline passed before they were sent.
        pub expired_unsent: u64 = "expired_unsent", Counter, Bytes;
        /// Sent and never acknowledged, and the deadline has passed.
        pub expired_in_network: u64 = "expired_in_network", Gauge, Bytes;
        /// Lost and not retransmitted, with `reliability=none`.
        pub lost: u64 = "lost", Gauge, Bytes;
        /// Given up because they could not have arrived in time.
        pub infeasible: u64 = "infeasible", Gauge, Bytes;
        /// Given up with a section that they needed.
        pub dependency: u64 = "dependency", Gauge, Bytes;
        /// Withdrawn by the application.
        pub cancelled: u64 = "cancelled", Gauge, Bytes;
    }
}

impl ByteCounters {
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

counters! {
    /// Sections by outcome: `submitted` is the sum of all others. Skipped numbers count as sections
    /// without bytes.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SectionCounters {
        /// All sections with a number.
        pub submitted: u64 = "submitted", Counter, Count;
        /// Without an outcome so far.
        pub open: u64 = "open", Gauge, Count;
        /// Arrived whole.
        pub acknowledged: u64 = "acknowledged", Counter, Count;
        /// The deadline passed before all was sent.
        pub expired_unsent: u64 = "expired_unsent", Counter, Count;
        /// All was sent, not all was acknowledged, and the deadline has passed.
        pub expired_in_network: u64 = "expired_in_network", Counter, Count;
        /// Partly lost and not retransmitted.
        pub lost: u64 = "lost", Counter, Count;
        /// Could not have arrived in time.
        pub infeasible: u64 = "infeasible", Counter, Count;
        /// Needed a section that was abandoned.
        pub dependency: u64 = "dependency", Counter, Count;
        /// Shed by the application to fit the rate.
        pub shed: u64 = "shed", Counter, Count;
        /// Withdrawn by the application.
        pub cancelled: u64 = "cancelled", Counter, Count;
    }
}

impl SectionCounters {
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
