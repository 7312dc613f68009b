//! NewReno: fast recovery until everything sent before it is acknowledged.

use super::{Advance, CLOCKED, Count, Duplicate, Guard, Reaction, Recovery, Reduce, Resend};

/// Like Reno, but an acknowledgement that does not cover all data sent before the loss was found (a partial
/// one) names the next hole, which is sent again at once: one hole per round trip, one halving per window.
///
/// ```text
/// partial acknowledgement of d bytes:  inflation += mss − d      (RFC 6582, section 3.2, step 5)
/// ```
///
/// Source: RFC 6582. Differs in: 1. the inflation is kept apart from the congestion window, which is the same
/// window; 2. on a full acknowledgement the congestion window is what the growth law says it is (the
/// RFC's option 2, `ssthresh`), without the limit to the flight size, as in ns-2: inflation has kept new data
/// flowing, so that the flight is near `ssthresh` unless the window was small, and the RFC's other means
/// against bursts, a limit on what one acknowledgement releases, is the transport's `max_burst`; 3. at most
/// two new segments leave per acknowledgement while recovering, as in ns-2.
#[derive(Clone, Debug)]
pub struct NewReno {
    guard: Guard,
    inflation: i64,
    recovering: bool,
    timer_restarted: bool,
    impatient: bool,
    deflate_window: bool,
}

impl NewReno {
    /// A recovery that reacts to `threshold` duplicates, and only once per window if `careful`; if
    /// `impatient`, the timer keeps running after the first partial acknowledgement; if `deflate_window`,
    /// deflation beyond the inflation stays.
    pub const fn new(threshold: u8, careful: bool, impatient: bool, deflate_window: bool) -> Self {
        Self {
            guard: Guard::new(threshold, careful),
            inflation: 0,
            recovering: false,
            timer_restarted: false,
            impatient,
            deflate_window,
        }
    }
}

impl Recovery for NewReno {
    fn on_duplicate(&mut self, event: &Duplicate) -> Reaction {
        match self.guard.count() {
            Count::Below => Reaction {
                release: true,
                ..Reaction::default()
            },
            Count::Reached if self.guard.admit(event.una, event.max) => {
                self.recovering = true;
                self.timer_restarted = false;
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

    fn on_advance(&mut self, event: &Advance) -> Reaction {
        if self.recovering && event.to < self.guard.recover {
            let acked = i64::try_from(event.to - event.from).unwrap_or(i64::MAX);
            let mss = i64::from(event.mss);
            let mut deflate = 0;
            if self.deflate_window && self.inflation <= acked {
                deflate = (acked - self.inflation).unsigned_abs();
                self.inflation = mss;
            } else {
                self.inflation = self.inflation.saturating_sub(acked).saturating_add(mss);
            }
            let restart_timer = !self.impatient || !self.timer_restarted;
            self.timer_restarted = true;
            return Reaction {
                resend: Resend::First,
                restart_timer,
                partial: true,
                deflate,
                ..Reaction::default()
            };
        }
        self.guard.duplicates = 0;
        self.inflation = 0;
        let recovered = core::mem::take(&mut self.recovering);
        Reaction {
            recovered,
            ..CLOCKED
        }
    }

    fn on_timeout(&mut self, max: u64) {
        self.guard.duplicates = 0;
        self.guard.recover = max;
        self.inflation = 0;
        self.recovering = false;
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

    fn burst_limit(&self) -> Option<u32> {
        self.recovering.then_some(2)
    }
}
