//! The loss recovery, and the retransmission that it demands.

use comity_congestion::TimeoutRepair;
use comity_congestion::recovery::{
    Advance, AnyRecovery, Duplicate, PipeRule, Reaction, Recovery, RecoveryConfig, Resend,
};

/// The state of the loss recovery.
#[derive(Debug)]
pub(super) struct Repair {
    recovery: AnyRecovery,
    /// Whether the windows alone decide what to send: no duplicates arrived and no repair is in
    /// progress.
    windows_decide: bool,
    /// Whether the first outstanding segment leaves next, regardless of the window.
    resends_first: bool,
    /// Whether a duplicate arrived since the last advance, and since the last expiry of the
    /// retransmission timer.
    duplicate_seen: bool,
}

impl Repair {
    pub(super) fn new(config: RecoveryConfig) -> Self {
        let recovery = AnyRecovery::new(config);
        Self {
            windows_decide: recovery.is_quiet(),
            recovery,
            resends_first: false,
            duplicate_seen: false,
        }
    }

    /// Replaces the algorithm, at the end of the handshake.
    pub(super) fn set(&mut self, config: RecoveryConfig) {
        self.recovery = AnyRecovery::new(config);
        self.windows_decide = self.recovery.is_quiet();
    }

    /// Whether the recovery needs the time of each segment.
    pub(super) const fn is_by_time(&self) -> bool {
        matches!(self.recovery, AnyRecovery::Rack(_))
    }

    /// Whether the windows alone decide what to send.
    #[inline]
    pub(super) const fn windows_decide(&self) -> bool {
        self.windows_decide
    }

    /// Whether the recovery itself has nothing to repair. The record of a time-based recovery may
    /// still have.
    pub(super) fn is_quiet(&self) -> bool {
        self.recovery.is_quiet()
    }

    #[inline]
    pub(super) fn is_recovering(&self) -> bool {
        self.recovery.is_recovering()
    }

    pub(super) fn burst_limit(&self) -> Option<u32> {
        self.recovery.burst_limit()
    }

    pub(super) fn pipe_rule(&self) -> Option<PipeRule> {
        self.recovery.pipe_rule()
    }

    /// The congestion window `window` with the inflation of the recovery.
    #[inline]
    pub(super) fn inflated(&self, window: u64) -> u64 {
        if self.windows_decide {
            window
        } else {
            window.saturating_add_signed(self.recovery.inflation())
        }
    }

    /// Handles an advance of the cumulative acknowledgement. While the windows decide, the recovery
    /// need not be notified.
    #[inline]
    pub(super) fn on_advance(&mut self, advance: &Advance) -> Reaction {
        if self.windows_decide {
            return Reaction {
                grow: true,
                restart_timer: true,
                ..Reaction::default()
            };
        }
        let reaction = self.recovery.on_advance(advance);
        self.windows_decide = self.recovery.is_quiet();
        reaction
    }

    /// Handles a duplicate acknowledgement, or a loss that the clock detected.
    pub(super) fn on_duplicate(&mut self, duplicate: &Duplicate) -> Reaction {
        let reaction = self.recovery.on_duplicate(duplicate);
        self.windows_decide = self.recovery.is_quiet();
        reaction
    }

    /// Handles an expiry of the retransmission timer; `max` is the end of the data sent.
    pub(super) fn on_timeout(&mut self, max: u64, repair: TimeoutRepair) -> Resend {
        let resend = self.recovery.on_timeout(max, repair);
        self.windows_decide = self.recovery.is_quiet();
        self.duplicate_seen = false;
        self.resends_first = false;
        resend
    }

    /// Records that the last reduction was unnecessary.
    pub(super) fn on_spurious(&mut self) {
        self.recovery.on_spurious();
        self.windows_decide = self.recovery.is_quiet();
    }

    /// Ends the processing of an event. The record of segments in flight is a part of a time-based
    /// recovery.
    pub(super) fn settle(&mut self, is_record_quiet: bool) {
        self.windows_decide = self.recovery.is_quiet() && is_record_quiet;
    }

    #[inline]
    pub(super) const fn set_duplicate_seen(&mut self, is_seen: bool) {
        self.duplicate_seen = is_seen;
    }

    pub(super) const fn duplicate_seen(&self) -> bool {
        self.duplicate_seen
    }

    /// Makes the first outstanding segment leave next.
    pub(super) const fn resend_first(&mut self) {
        self.resends_first = true;
    }

    #[inline]
    pub(super) const fn resends_first(&self) -> bool {
        self.resends_first
    }

    /// Whether the first outstanding segment leaves now. It leaves once.
    pub(super) const fn take_first(&mut self) -> bool {
        core::mem::replace(&mut self.resends_first, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_congestion::recovery::Reduce;

    const DUPLICATE: Duplicate = Duplicate {
        una: 1,
        max: 10_001,
        mss: 1_000,
        first_is_lost: false,
    };

    const fn advance(to: u64) -> Advance {
        Advance {
            to,
            acked: 1_000,
            mss: 1_000,
            is_repair: true,
        }
    }

    #[test]
    fn a_recovery_ends_with_the_acknowledgement_of_everything_sent_before_it() {
        let mut repair = Repair::new(RecoveryConfig::NEW_RENO);
        assert!(repair.windows_decide());
        assert!(repair.on_advance(&advance(1)).grow);
        for _ in 0..2 {
            assert_eq!(repair.on_duplicate(&DUPLICATE).reduce, Reduce::No);
            assert!(!repair.windows_decide() && !repair.is_recovering());
        }
        let reaction = repair.on_duplicate(&DUPLICATE);
        assert_eq!(
            (reaction.reduce, reaction.resend),
            (Reduce::Halve, Resend::First)
        );
        assert!(repair.is_recovering());
        assert!(repair.inflated(5_000) > 5_000, "three segments have left");
        assert!(repair.on_advance(&advance(2_001)).partial);
        assert!(repair.on_advance(&advance(10_001)).recovered);
        assert!(repair.windows_decide() && !repair.is_recovering());
        assert_eq!(repair.inflated(5_000), 5_000);
    }

    #[test]
    fn the_first_segment_leaves_once_and_a_timeout_forgets_it() {
        let mut repair = Repair::new(RecoveryConfig::NEW_RENO);
        repair.resend_first();
        assert!(repair.take_first() && !repair.take_first());
        repair.resend_first();
        repair.set_duplicate_seen(true);
        repair.on_timeout(10_001, TimeoutRepair::GoBackN);
        assert!(!repair.resends_first() && !repair.duplicate_seen());
    }

    #[test]
    fn the_record_of_segments_is_a_part_of_a_time_based_recovery() {
        let mut repair = Repair::new(RecoveryConfig::RACK);
        assert!(repair.is_by_time() && repair.windows_decide());
        repair.settle(false);
        assert!(!repair.windows_decide() && repair.is_quiet());
        repair.settle(true);
        assert!(repair.windows_decide());
    }
}
