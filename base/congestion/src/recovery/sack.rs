//! SACK: selective acknowledgements show which segments to retransmit, and an estimate of the pipe
//! shows when.

use super::guard::{Count, Guard};
use super::interface::{Advance, CLOCKED, Duplicate, PipeRule, Reaction, Recovery, Reduce, Resend};
use crate::TimeoutRepair;

/// The third duplicate acknowledgement, or a scoreboard that proves the first segment lost, halves
/// the window and retransmits the first segment. Until everything sent before is acknowledged, the
/// transport fills holes and sends new data as the pipe allows.
///
/// Source: RFC 6675, section 5; Fall and Floyd 1996, section 3 for [`PipeRule::Counter`]. A partial
/// acknowledgement without a retransmission ([`Advance::is_repair`]) lowers that counter by one
/// packet instead of two. The transport keeps the scoreboard and the pipe.
#[derive(Clone, Debug)]
pub struct Sack {
    guard: Guard,
    recovering: bool,
    /// Whether no advance followed the last timeout. Duplicates then belong to the earlier flight.
    after_timeout: bool,
    pipe: PipeRule,
}

impl Sack {
    /// Creates a recovery that reacts to `threshold` duplicates, and with `bugfix` only once per
    /// window.
    pub const fn new(threshold: u8, bugfix: bool, pipe: PipeRule) -> Self {
        Self {
            guard: Guard::new(threshold, bugfix),
            recovering: false,
            after_timeout: false,
            pipe,
        }
    }
}

impl Sack {
    /// Whether the acknowledgement allows another recovery: from the recovery point on (RFC 6675,
    /// section 5.1), or only beyond it (ns-2, and `recover` of NewReno).
    fn admit(&mut self, event: &Duplicate) -> bool {
        let una = match self.pipe {
            PipeRule::Scoreboard => event.una.saturating_add(1),
            PipeRule::Counter => event.una,
        };
        self.guard.admit(una, event.max)
    }
}

impl Recovery for Sack {
    fn on_duplicate(&mut self, event: &Duplicate) -> Reaction {
        if self.after_timeout {
            return Reaction::default();
        }
        let proven = self.pipe == PipeRule::Scoreboard && event.first_is_lost && !self.recovering;
        match self.guard.count() {
            Count::Below if !proven => Reaction {
                release: true,
                ..Reaction::default()
            },
            Count::Beyond if !proven => Reaction::default(),
            Count::Below | Count::Reached | Count::Beyond => {
                if self.recovering || !self.admit(event) {
                    return Reaction::default();
                }
                self.guard.duplicates = self.guard.duplicates.max(u32::from(self.guard.threshold));
                self.recovering = true;
                Reaction {
                    reduce: Reduce::Halve,
                    resend: Resend::First,
                    restart_timer: true,
                    ..Reaction::default()
                }
            }
        }
    }

    fn on_advance(&mut self, event: &Advance) -> Reaction {
        self.after_timeout = false;
        if self.recovering && event.to < self.guard.recover {
            return Reaction {
                restart_timer: true,
                partial: true,
                ..Reaction::default()
            };
        }
        self.guard.duplicates = 0;
        let recovered = core::mem::take(&mut self.recovering);
        // ns-2 clears the recovery point when the recovery ends.
        if recovered && self.pipe == PipeRule::Counter {
            self.guard.recover = 0;
        }
        Reaction {
            recovered,
            grow: !recovered,
            ..CLOCKED
        }
    }

    fn on_timeout(&mut self, max: u64, repair: TimeoutRepair) -> Resend {
        self.guard.duplicates = 0;
        self.guard.recover = max;
        self.recovering = false;
        self.after_timeout = true;
        repair.into()
    }

    fn is_recovering(&self) -> bool {
        self.recovering
    }

    fn is_quiet(&self) -> bool {
        self.guard.duplicates == 0 && !self.recovering && !self.after_timeout
    }

    fn inflation(&self) -> i64 {
        0
    }

    fn pipe_rule(&self) -> Option<PipeRule> {
        self.recovering.then_some(self.pipe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A timeout with 1000 bytes outstanding, an advance to `una`, and three duplicates there.
    fn reacts_after_timeout(pipe: PipeRule, una: u64) -> bool {
        let mut sack = Sack::new(3, true, pipe);
        let _ = sack.on_timeout(1_000, TimeoutRepair::GoBackN);
        let _ = sack.on_advance(&Advance {
            to: una,
            acked: una - 1,
            mss: 100,
            is_repair: true,
        });
        let duplicate = Duplicate {
            una,
            max: 2_000,
            mss: 100,
            first_is_lost: true,
        };
        (0..3).any(|_| sack.on_duplicate(&duplicate).reduce == Reduce::Halve)
    }

    #[test]
    fn after_a_timeout_the_recovery_point_has_to_be_reached() {
        for (pipe, at_the_point) in [(PipeRule::Scoreboard, true), (PipeRule::Counter, false)] {
            assert!(!reacts_after_timeout(pipe, 999));
            assert_eq!(reacts_after_timeout(pipe, 1_000), at_the_point);
            assert!(reacts_after_timeout(pipe, 1_001));
        }
    }

    #[test]
    fn an_acknowledgement_that_ends_a_recovery_allows_the_next() {
        for pipe in [PipeRule::Scoreboard, PipeRule::Counter] {
            let mut sack = Sack::new(3, true, pipe);
            let duplicate = |una, max| Duplicate {
                una,
                max,
                mss: 100,
                first_is_lost: true,
            };
            for _ in 0..3 {
                let _ = sack.on_duplicate(&duplicate(1, 1_000));
            }
            assert!(sack.is_recovering());
            let advance = |from, to| Advance {
                to,
                acked: to - from,
                mss: 100,
                is_repair: true,
            };
            assert!(sack.on_advance(&advance(1, 999)).partial);
            assert!(sack.on_advance(&advance(999, 1_000)).recovered);
            for _ in 0..3 {
                let _ = sack.on_duplicate(&duplicate(1_000, 2_000));
            }
            assert!(sack.is_recovering());
        }
    }
}
