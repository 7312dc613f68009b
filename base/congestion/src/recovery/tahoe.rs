//! Tahoe: fast retransmit, then slow start from one segment.

use super::guard::{Count, Guard};
use super::interface::{Advance, CLOCKED, Duplicate, Reaction, Recovery, Reduce, Resend};
use crate::TimeoutRepair;

/// The third duplicate acknowledgement sets the window to one segment. All outstanding data is then
/// retransmitted in slow start.
///
/// Source: Jacobson 1988; Fall and Floyd 1996, section 2. Differs from 4.3BSD-Tahoe in: the guard
/// against several fast retransmits for one window is a setting (Floyd 1994).
#[derive(Clone, Debug)]
pub struct Tahoe {
    guard: Guard,
}

impl Tahoe {
    /// Creates a recovery that reacts to `threshold` duplicates, and with `bugfix` only once per
    /// window.
    pub const fn new(threshold: u8, bugfix: bool) -> Self {
        Self {
            guard: Guard::new(threshold, bugfix),
        }
    }
}

impl Recovery for Tahoe {
    fn on_duplicate(&mut self, event: &Duplicate) -> Reaction {
        match self.guard.count() {
            Count::Below => Reaction {
                release: true,
                ..Reaction::default()
            },
            Count::Reached if self.guard.admit(event.una, event.max) => Reaction {
                reduce: Reduce::Restart,
                resend: Resend::Everything,
                restart_timer: true,
                ..Reaction::default()
            },
            Count::Reached | Count::Beyond => Reaction::default(),
        }
    }

    fn on_advance(&mut self, _event: &Advance) -> Reaction {
        self.guard.duplicates = 0;
        CLOCKED
    }

    fn on_timeout(&mut self, max: u64, repair: TimeoutRepair) -> Resend {
        self.guard.recover = max;
        repair.into()
    }

    fn is_recovering(&self) -> bool {
        false
    }

    fn is_quiet(&self) -> bool {
        self.guard.duplicates == 0
    }

    fn inflation(&self) -> i64 {
        0
    }
}
