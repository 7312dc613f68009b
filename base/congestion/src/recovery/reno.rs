//! Reno: fast recovery until the first new acknowledgement.

use super::guard::{Count, Guard};
use super::interface::{Advance, CLOCKED, Duplicate, Reaction, Recovery, Reduce, Resend};
use crate::TimeoutRepair;

/// The third duplicate acknowledgement retransmits the first outstanding segment and halves the
/// window. Each further duplicate inflates the window by one segment, and the first new
/// acknowledgement ends the inflation.
///
/// Source: RFC 2001, section 4; RFC 5681, section 3.2. Several losses in one window are detected
/// one after the other, each by a fast retransmit of its own or, with `bugfix`, by a timeout.
/// NewReno avoids that.
#[derive(Clone, Debug)]
pub struct Reno {
    pub(super) guard: Guard,
    pub(super) inflation: i64,
    recovering: bool,
}

impl Reno {
    /// Creates a recovery that reacts to `threshold` duplicates, and with `bugfix` only once per
    /// window.
    pub const fn new(threshold: u8, bugfix: bool) -> Self {
        Self {
            guard: Guard::new(threshold, bugfix),
            inflation: 0,
            recovering: false,
        }
    }
}

impl Recovery for Reno {
    fn on_duplicate(&mut self, event: &Duplicate) -> Reaction {
        match self.guard.count() {
            Count::Below => Reaction {
                release: true,
                ..Reaction::default()
            },
            Count::Reached if self.guard.admit(event.una, event.max) => {
                self.recovering = true;
                self.inflation = i64::from(self.guard.threshold) * i64::from(event.mss);
                Reaction {
                    reduce: Reduce::Halve,
                    resend: Resend::First,
                    restart_timer: true,
                    ..Reaction::default()
                }
            }
            Count::Beyond if self.recovering => {
                self.inflation += i64::from(event.mss);
                Reaction::default()
            }
            Count::Reached | Count::Beyond => Reaction::default(),
        }
    }

    fn on_advance(&mut self, _event: &Advance) -> Reaction {
        self.guard.duplicates = 0;
        self.inflation = 0;
        let recovered = core::mem::take(&mut self.recovering);
        Reaction {
            recovered,
            ..CLOCKED
        }
    }

    fn on_timeout(&mut self, max: u64, repair: TimeoutRepair) -> Resend {
        self.guard.duplicates = 0;
        self.guard.recover = max;
        self.inflation = 0;
        self.recovering = false;
        repair.into()
    }

    fn is_recovering(&self) -> bool {
        self.recovering
    }

    fn is_quiet(&self) -> bool {
        self.guard.duplicates == 0 && !self.recovering
    }

    fn inflation(&self) -> i64 {
        self.inflation
    }
}
