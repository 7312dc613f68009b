//! The fast recovery of RFC 6582, section 3.2, literally.

use std::collections::BTreeSet;

use super::Sender;

/// The state of a NewReno recovery.
#[derive(Clone, Debug)]
pub(super) struct FastRecovery {
    /// The inflation of the window.
    pub(super) inflation: i64,
    /// Whether a partial acknowledgement has reset the retransmission timer.
    has_reset_timer: bool,
    /// Whether an acknowledgement has passed obsolete data.
    has_led_over_obsolete: bool,
    /// Packets that were lost and retransmitted unchanged.
    sent_again: BTreeSet<u32>,
    /// The duplicates since an acknowledgement that repaired nothing; `None` while the lowest hole
    /// is known.
    search: Option<u32>,
}

impl Sender {
    /// Steps 2 to 4: a duplicate.
    pub(super) fn on_new_reno_duplicate(&mut self) {
        let Some(recovery) = &mut self.fast_recovery else {
            if !self.is_third_duplicate() {
                return;
            }
            self.recovery_point = self.next;
            self.fast_recovery = Some(FastRecovery {
                inflation: 3,
                has_reset_timer: false,
                has_led_over_obsolete: false,
                sent_again: BTreeSet::new(),
                search: None,
            });
            self.report_loss();
            self.restart_timer();
            return self.answer_lowest();
        };
        recovery.inflation += 1;
        if let Some(duplicates) = &mut recovery.search {
            *duplicates += 1;
            if *duplicates == 3 {
                recovery.search = None;
                self.restart_timer();
                self.answer_lowest();
            }
        }
    }

    /// Step 5: whether an acknowledgement up to a number is partial.
    pub(super) fn is_partial_for_new_reno(&self, to: u32) -> bool {
        let point = self.recovery_point;
        let mut left = self.sent.range(to..);
        self.fast_recovery.is_some() && left.next().is_some_and(|&it| it < point)
    }

    /// Whether a partial acknowledgement that advances from a number answers a retransmission of
    /// this recovery.
    pub(super) fn is_repair(&mut self, from: u32) -> bool {
        let lowest = self.sent.range(from..).next().copied();
        let lowest_current = self.lowest_current;
        match (&mut self.fast_recovery, lowest) {
            // The receiver passes over nothing before its loss was answered.
            _ if !self.is_blind => true,
            (Some(recovery), Some(lowest)) => {
                let is_obsolete = lowest < lowest_current;
                recovery.has_led_over_obsolete |= is_obsolete;
                !is_obsolete
                    && (!recovery.has_led_over_obsolete || recovery.sent_again.contains(&lowest))
            }
            _ => true,
        }
    }

    /// Step 5: handles a partial acknowledgement of this many packets.
    pub(super) fn on_partial(&mut self, acked: i64, is_repair: bool) {
        let Some(recovery) = &mut self.fast_recovery else {
            return;
        };
        recovery.inflation -= acked;
        if !is_repair {
            recovery.inflation = recovery.inflation.max(0);
            recovery.search = Some(0);
            return self.restart_timer();
        }
        recovery.inflation += 1;
        recovery.search = None;
        let is_reset = !self.is_impatient || !recovery.has_reset_timer;
        recovery.has_reset_timer = true;
        if is_reset {
            self.restart_timer();
        }
        self.answer_lowest();
    }

    fn answer_lowest(&mut self) {
        self.lifetime_timer();
        self.discard_unsent();
        let Some(lost) = self.lowest_outstanding() else {
            return;
        };
        if lost >= self.lowest_current
            && let Some(recovery) = &mut self.fast_recovery
        {
            recovery.sent_again.insert(lost);
        }
        self.answer(lost);
    }
}
