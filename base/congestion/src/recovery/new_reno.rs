//! NewReno: fast recovery until everything sent before it is acknowledged.

use super::guard::Count;
use super::interface::{Advance, Duplicate, Reaction, Recovery, Reduce, Resend};
use super::reno::Reno;
use crate::TimeoutRepair;

/// Like Reno, but with partial acknowledgements: those that do not cover all data sent before the
/// loss was detected. Each shows the next hole, which is retransmitted at once. So one hole is
/// repaired per round trip, and the window is halved once.
///
/// ```text
/// partial acknowledgement of d bytes:  inflation += mss − d      (RFC 6582, section 3.2, step 5)
/// ```
///
/// Source: RFC 6582. Differs in: 1. the inflation is a value of its own, not part of the congestion
/// window; the usable window is the same; 2. on a full acknowledgement the controller decides the
/// congestion window (the RFC's option 2, `ssthresh`), without the limit to the flight size, as in
/// ns-2. Inflation lets new data leave during the recovery, so the flight is near `ssthresh` unless
/// the window was small. The other measure of the RFC against bursts, a limit on the data that one
/// acknowledgement releases, is the transport's `max_burst`; 3. at most two new segments leave per
/// acknowledgement while recovering, as in ns-2; 4. an advance without a retransmission
/// ([`Advance::is_repair`]) shows no hole: if the receiver skips bytes, the packets after them
/// arrive one by one, and one retransmission for each would exceed the window. The next hole then
/// needs as many duplicates as the first. Such an advance reduces the inflation by its bytes, down
/// to zero, and restarts the timer as any other advance does (RFC 6298, section 5, rule 5.3).
#[derive(Clone, Debug)]
pub struct NewReno {
    /// Everything but partial acknowledgements.
    reno: Reno,
    timer_restarted: bool,
    impatient: bool,
    deflate_window: bool,
    /// Whether the latest advance was no repair, so it is unknown whether another hole exists.
    is_searching: bool,
}

impl NewReno {
    /// Creates a recovery that reacts to `threshold` duplicates, and with `bugfix` only once per
    /// window. With `impatient`, only the first partial acknowledgement restarts the timer. With
    /// `deflate_window`, the congestion window loses what is deflated beyond the inflation.
    pub const fn new(threshold: u8, bugfix: bool, impatient: bool, deflate_window: bool) -> Self {
        Self {
            reno: Reno::new(threshold, bugfix),
            timer_restarted: false,
            impatient,
            deflate_window,
            is_searching: false,
        }
    }

    /// Reacts to an acknowledgement of data that was in flight after abandoned bytes.
    fn on_passed(&mut self, event: &Advance) -> Reaction {
        let acked = i64::try_from(event.acked).unwrap_or(i64::MAX);
        self.is_searching = true;
        self.reno.guard.duplicates = 0;
        self.reno.inflation = self.reno.inflation.saturating_sub(acked).max(0);
        Reaction {
            restart_timer: true,
            partial: true,
            ..Reaction::default()
        }
    }

    /// Reacts to a duplicate while no hole is known.
    fn on_search(&mut self, event: &Duplicate) -> Reaction {
        self.reno.inflation += i64::from(event.mss);
        if !matches!(self.reno.guard.count(), Count::Reached) {
            return Reaction::default();
        }
        self.is_searching = false;
        Reaction {
            resend: Resend::First,
            restart_timer: true,
            ..Reaction::default()
        }
    }

    /// Reacts to an acknowledgement that does not cover all data sent before the recovery.
    fn on_partial(&mut self, event: &Advance) -> Reaction {
        let acked = i64::try_from(event.acked).unwrap_or(i64::MAX);
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
        if self.is_searching {
            return self.on_search(event);
        }
        let reaction = self.reno.on_duplicate(event);
        if reaction.reduce != Reduce::No {
            self.timer_restarted = false;
        }
        reaction
    }

    fn on_advance(&mut self, event: &Advance) -> Reaction {
        let is_partial = self.reno.is_recovering() && event.to < self.reno.guard.recover;
        if is_partial && !event.is_repair {
            return self.on_passed(event);
        }
        self.is_searching = false;
        if is_partial {
            self.on_partial(event)
        } else {
            self.reno.on_advance(event)
        }
    }

    fn on_timeout(&mut self, max: u64, repair: TimeoutRepair) -> Resend {
        self.is_searching = false;
        self.reno.on_timeout(max, repair)
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

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 100;

    fn duplicate(una: u64) -> Duplicate {
        Duplicate {
            una,
            max: 1_001,
            mss: MSS,
            first_is_lost: false,
        }
    }

    fn advance(from: u64, to: u64, is_repair: bool) -> Advance {
        Advance {
            to,
            acked: to - from,
            mss: MSS,
            is_repair,
        }
    }

    /// Ten packets are in flight, the first is lost, and four duplicates show that four arrived.
    fn recovering() -> NewReno {
        let mut recovery = NewReno::new(3, false, false, false);
        let resends = [1, 1, 1, 1].map(|una| recovery.on_duplicate(&duplicate(una)).resend);
        assert_eq!(
            resends,
            [
                Resend::Nothing,
                Resend::Nothing,
                Resend::First,
                Resend::Nothing
            ]
        );
        assert_eq!(recovery.inflation(), 400);
        recovery
    }

    #[test]
    fn what_answers_a_retransmission_names_the_next_hole() {
        let mut recovery = recovering();
        let reaction = recovery.on_advance(&advance(1, 301, true));
        assert_eq!((reaction.resend, reaction.partial), (Resend::First, true));
        assert_eq!(recovery.inflation(), 400 - 300 + 100);
    }

    #[test]
    fn packets_behind_a_jump_name_no_hole_until_duplicates_do() {
        let mut recovery = recovering();
        // The jump acknowledges the lost packet and the four that had arrived after it.
        for (from, to) in [(1, 501), (501, 601), (601, 701)] {
            let reaction = recovery.on_advance(&advance(from, to, false));
            assert_eq!((reaction.resend, reaction.partial), (Resend::Nothing, true));
            assert!(!reaction.grow && !reaction.recovered);
            assert_eq!(recovery.inflation(), 0, "all that had left is acknowledged");
        }
        // The packet at 701 is lost as well. Three duplicates show that, and the window is not
        // halved again.
        let reactions = [701, 701, 701].map(|una| recovery.on_duplicate(&duplicate(una)));
        let resends = reactions.map(|reaction| reaction.resend);
        assert_eq!(resends, [Resend::Nothing, Resend::Nothing, Resend::First]);
        assert!(
            reactions
                .iter()
                .all(|reaction| reaction.reduce == Reduce::No)
        );
        assert_eq!(recovery.inflation(), 300);
        let reaction = recovery.on_advance(&advance(701, 1_001, true));
        assert!(reaction.recovered && !recovery.is_recovering());
    }
}
