//! NewReno: fast recovery until everything sent before it is acknowledged.

use super::{Advance, Duplicate, Reaction, Recovery, Reduce, Reno, Resend};

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
    /// Everything but partial acknowledgements.
    reno: Reno,
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
            reno: Reno::new(threshold, careful),
            timer_restarted: false,
            impatient,
            deflate_window,
        }
    }

    /// An acknowledgement that leaves some of what was sent before the recovery unacknowledged.
    fn on_partial(&mut self, event: &Advance) -> Reaction {
        let acked = i64::try_from(event.to - event.from).unwrap_or(i64::MAX);
        let mss = i64::from(event.mss);
        let inflation = &mut self.reno.inflation;
        let mut deflate = 0;
        if self.deflate_window && *inflation <= acked {
            deflate = (acked - *inflation).unsigned_abs();
            *inflation = mss;
        } else {
            *inflation = inflation.saturating_sub(acked).saturating_add(mss);
        }
        let restart_timer = !self.impatient || !self.timer_restarted;
        self.timer_restarted = true;
        Reaction {
            resend: Resend::First,
            restart_timer,
            partial: true,
            deflate,
            ..Reaction::default()
        }
    }
}

impl Recovery for NewReno {
    fn on_duplicate(&mut self, event: &Duplicate) -> Reaction {
        let reaction = self.reno.on_duplicate(event);
        if reaction.reduce != Reduce::No {
            self.timer_restarted = false;
        }
        reaction
    }

    fn on_advance(&mut self, event: &Advance) -> Reaction {
        if self.reno.is_recovering() && event.to < self.reno.guard.recover {
            self.on_partial(event)
        } else {
            self.reno.on_advance(event)
        }
    }

    fn on_timeout(&mut self, max: u64) {
        self.reno.on_timeout(max);
    }

    fn is_recovering(&self) -> bool {
        self.reno.is_recovering()
    }

    fn is_quiet(&self) -> bool {
        self.reno.is_quiet()
    }

    fn inflation(&self) -> i64 {
        self.reno.inflation
    }

    fn burst_limit(&self) -> Option<u32> {
        self.is_recovering().then_some(2)
    }
}
