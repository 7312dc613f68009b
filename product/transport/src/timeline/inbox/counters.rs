//! Counters of the outcomes of received bytes and sections.

use comity_units::{Span, Time};

use super::GapReason;
use crate::counters;
use crate::timeline::section::Reason;

/// The receiver's counters.
///
/// ```text
/// received = delivered + partial + duplicate + late + held        [bytes]
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes of sections in all packets.
    pub received: u64,
    /// Bytes of complete sections.
    pub delivered: u64,
    /// Received bytes of sections that became gaps.
    pub partial: u64,
    /// Duplicate bytes.
    pub duplicate: u64,
    /// Bytes that arrived after their section had become a gap.
    pub late: u64,
    /// Bytes of unsettled sections.
    pub held: u64,
    /// Sections that were complete by their deadline.
    pub on_time: u64,
    /// Sections that were complete after their deadline.
    pub complete_late: u64,
    /// Sections that became gaps.
    pub gaps: GapCounters,
    /// How early or late sections were complete.
    pub slack: Slack,
}

impl Counters {
    /// The sum of the parts; equals [`Counters::received`].
    pub const fn sum(&self) -> u64 {
        self.delivered + self.partial + self.duplicate + self.late + self.held
    }
}

counters! {
    /// Gaps by reason.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct GapCounters {
        /// The connection ended.
        pub closed: u64 = "closed", Counter, Count;
        /// The sender abandoned them without a reason.
        pub obsolete: u64 = "obsolete", Counter, Count;
        /// The deadline passed.
        pub overdue: u64 = "overdue", Counter, Count;
        /// The sender's application withdrew them.
        pub cancelled: u64 = "cancelled", Counter, Count;
        /// A section that they needed was abandoned.
        pub dependency: u64 = "dependency", Counter, Count;
        /// They expired at the sender.
        pub expired: u64 = "expired", Counter, Count;
        /// They could not have arrived in time.
        pub infeasible: u64 = "infeasible", Counter, Count;
        /// They were shed to fit the rate.
        pub shed: u64 = "shed", Counter, Count;
    }
}

impl GapCounters {
    /// All gaps.
    pub const fn sum(&self) -> u64 {
        self.closed
            + self.obsolete
            + self.overdue
            + self.cancelled
            + self.dependency
            + self.expired
            + self.infeasible
            + self.shed
    }

    pub(super) const fn add(&mut self, reason: GapReason, sections: u64) {
        *match reason {
            GapReason::Closed => &mut self.closed,
            GapReason::Obsolete => &mut self.obsolete,
            GapReason::Overdue => &mut self.overdue,
            GapReason::Dropped(Reason::Cancelled) => &mut self.cancelled,
            GapReason::Dropped(Reason::Dependency) => &mut self.dependency,
            GapReason::Dropped(Reason::Expired) => &mut self.expired,
            GapReason::Dropped(Reason::Infeasible) => &mut self.infeasible,
            GapReason::Dropped(Reason::Shed) => &mut self.shed,
        } += sections;
    }
}

/// Deadline minus completion of the sections that were completed and have a deadline.
///
/// Bin k of the histograms counts slack (or lateness) in [2^k, 2^(k+1)) ms. Bin 0 also counts less
/// than 1 ms, and the last bin everything beyond it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slack {
    /// Sections complete by their deadline.
    pub early: [u64; Self::BINS],
    /// Sections complete after it.
    pub late: [u64; Self::BINS],
    /// The sum of the slack of the early ones, saturating.
    pub early_total: Span,
    /// The sum of the lateness of the late ones, saturating.
    pub late_total: Span,
}

impl Slack {
    /// Bins of each histogram.
    pub const BINS: usize = 12;

    pub(super) fn record(&mut self, deadline: Time, completed: Time) {
        let (bins, total, span) = match deadline.since(completed) {
            Some(span) => (&mut self.early, &mut self.early_total, span),
            None => (
                &mut self.late,
                &mut self.late_total,
                completed.saturating_since(deadline),
            ),
        };
        *total += span;
        let bin = span.as_millis().checked_ilog2().unwrap_or(0) as usize;
        if let Some(count) = bins.get_mut(bin.min(Self::BINS - 1)) {
            *count += 1;
        }
    }

    /// Sections recorded.
    pub fn count(&self) -> u64 {
        self.early.iter().chain(&self.late).sum()
    }

    /// A lower bound of the quantile: at least this share of the sections had this slack. Rounded
    /// down to powers of two of a millisecond; zero if fewer sections were early.
    pub fn at_least(&self, share: f64) -> Span {
        let wanted = share * self.count() as f64;
        let mut above = 0;
        for (bin, count) in self.early.iter().enumerate().rev() {
            above += count;
            if above as f64 >= wanted {
                return Span::from_millis(if bin == 0 { 0 } else { 1 << bin });
            }
        }
        Span::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_falls_into_bins_of_powers_of_two() {
        let mut slack = Slack::default();
        let deadline = Time::from_millis(10_000);
        for millis in [0, 1, 2, 3, 4, 7, 8, 9_000] {
            slack.record(deadline, deadline.saturating_sub(Span::from_millis(millis)));
        }
        slack.record(deadline, deadline + Span::from_millis(5));
        assert_eq!(slack.early, [2, 2, 2, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(slack.late, [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(slack.count(), 9);
        assert_eq!(slack.early_total, Span::from_millis(9_025));
        assert_eq!(slack.late_total, Span::from_millis(5));
        // Four of nine had at least 4 ms, one had at least 2,048 ms; one was late.
        assert_eq!(slack.at_least(4.0 / 9.0), Span::from_millis(4));
        assert_eq!(slack.at_least(0.1), Span::from_millis(2_048));
        assert_eq!(slack.at_least(1.0), Span::ZERO);
    }
}
