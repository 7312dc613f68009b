//! RACK: a segment is lost when a later one has arrived and enough time for reordering has passed.

use comity_units::{Span, Time};

use super::guard::Guard;
use super::interface::{Advance, CLOCKED, Duplicate, PipeRule, Reaction, Recovery, Reduce, Resend};
use crate::TimeoutRepair;

/// Loss recovery by the times at which segments were sent.
///
/// The transport keeps the departure time of each segment, and [`RackClock`] decides which segments
/// are lost. The transport reports the first lost segment as a duplicate acknowledgement that
/// proves a loss. The controller then reacts once. Until everything sent before the reaction is
/// acknowledged, the transport retransmits every lost segment. A segment that is still lost after
/// that was sent later, and begins the next recovery at once, as in Linux.
///
/// Source: RFC 8985; the phases are those of RFC 6675, section 5.
#[derive(Clone, Debug)]
pub struct Rack {
    guard: Guard,
    recovering: bool,
    /// Whether some data sent before the last timeout is not acknowledged.
    after_timeout: bool,
}

impl Rack {
    /// Creates the recovery of a flow without losses.
    pub const fn new() -> Self {
        Self {
            guard: Guard::new(1, true),
            recovering: false,
            after_timeout: false,
        }
    }
}

impl Default for Rack {
    fn default() -> Self {
        Self::new()
    }
}

impl Recovery for Rack {
    fn on_duplicate(&mut self, event: &Duplicate) -> Reaction {
        let is_new = event.first_is_lost && !self.recovering && !self.after_timeout;
        // Reaching the recovery point is enough for another reaction (RFC 6675, section 5.1).
        if !is_new || !self.guard.admit(event.una.saturating_add(1), event.max) {
            return Reaction::default();
        }
        self.recovering = true;
        Reaction {
            reduce: Reduce::Halve,
            restart_timer: true,
            ..Reaction::default()
        }
    }

    fn on_advance(&mut self, event: &Advance) -> Reaction {
        if self.recovering && event.to < self.guard.recover {
            return Reaction {
                restart_timer: true,
                partial: true,
                ..Reaction::default()
            };
        }
        self.after_timeout &= event.to < self.guard.recover;
        Reaction {
            recovered: core::mem::take(&mut self.recovering),
            ..CLOCKED
        }
    }

    fn on_timeout(&mut self, max: u64, _repair: TimeoutRepair) -> Resend {
        self.guard.recover = max;
        self.recovering = false;
        self.after_timeout = true;
        Resend::First
    }

    fn on_spurious(&mut self) {
        self.guard.recover = 0;
        self.recovering = false;
        self.after_timeout = false;
    }

    fn is_recovering(&self) -> bool {
        self.recovering
    }

    fn is_quiet(&self) -> bool {
        !self.recovering && !self.after_timeout
    }

    fn inflation(&self) -> i64 {
        0
    }

    fn pipe_rule(&self) -> Option<PipeRule> {
        None
    }
}

/// Decides by departure times which segments are lost.
///
/// ```text
/// newest   = the segment sent last of those delivered;  RTT = that of its delivery
/// lost     = sent before the newest, and sent_at + RTT + window ≤ now
/// window   = 0 if no reordering was seen, and a recovery runs or `duplicate_threshold` segments
///            were delivered out of order
///          = min(steps · RTT_min / 4, SRTT) otherwise
/// steps    = 1; one more for each round trip in which a duplicate was reported, for 16 recoveries
/// ```
///
/// Source: RFC 8985, section 6.2.
///
/// Differs from RFC 8985 in: 1. the order of transmissions decides which segment was sent before,
/// also for segments with the same departure time, for which the RFC compares sequence numbers; 2.
/// `RTT_min` is that of the connection, not of the last minutes.
#[derive(Clone, Copy, Debug)]
pub struct RackClock {
    /// The number of the newest delivered transmission.
    newest: u64,
    rtt: Span,
    /// The end of the highest segment delivered.
    highest: u64,
    has_reordering: bool,
    steps: u8,
    /// For how many more recoveries `steps` stays.
    persistence: u8,
    /// A duplicate counts again once this transmission is delivered.
    round: u64,
}

/// A segment that an acknowledgement reports as delivered for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Which transmission of the connection it was, counted from 1.
    pub number: u64,
    /// When this transmission left.
    pub sent_at: Time,
    /// The offset after its last byte.
    pub end: u64,
    /// Whether it was sent more than once.
    pub was_resent: bool,
}

/// The state of a segment that is not delivered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No later transmission has arrived.
    Unknown,
    /// The packet may still arrive within this time.
    Waits(Span),
    /// It is lost.
    Lost,
}

impl RackClock {
    const PERSISTENCE: u8 = 16;

    /// Before anything was delivered.
    pub const fn new() -> Self {
        Self {
            newest: 0,
            rtt: Span::ZERO,
            highest: 0,
            has_reordering: false,
            steps: 1,
            persistence: 0,
            round: 0,
        }
    }

    /// A segment was delivered. The segments of one acknowledgement are reported in the order of
    /// the stream.
    pub fn on_delivered(&mut self, segment: &Delivered, now: Time, min_rtt: Option<Span>) {
        if segment.end >= self.highest {
            self.highest = segment.end;
        } else if !segment.was_resent {
            self.has_reordering = true;
        }
        let rtt = now.saturating_since(segment.sent_at);
        // So early an acknowledgement is for the transmission before this one (RFC 8985, step 2).
        if segment.was_resent && min_rtt.is_none_or(|min| rtt < min) {
            return;
        }
        if segment.number > self.newest {
            self.newest = segment.number;
            self.rtt = rtt;
        }
    }

    /// The peer reports a segment that it received twice. `sent` is the number of transmissions so
    /// far.
    pub fn on_duplicate_reported(&mut self, sent: u64) {
        if self.newest >= self.round {
            self.round = sent;
            self.steps = self.steps.saturating_add(1);
            self.persistence = Self::PERSISTENCE;
        }
    }

    /// A recovery is over.
    pub fn on_recovered(&mut self) {
        self.persistence = self.persistence.saturating_sub(1);
        if self.persistence == 0 {
            self.steps = 1;
        }
    }

    /// The reordering window. `at_once` says whether a recovery runs, or enough segments arrived
    /// out of order to begin one.
    pub fn window(&self, at_once: bool, min_rtt: Option<Span>, smoothed: Option<Span>) -> Span {
        if at_once && !self.has_reordering {
            return Span::ZERO;
        }
        let quarter = min_rtt.unwrap_or(Span::ZERO) / 4;
        (quarter * u64::from(self.steps)).min(smoothed.unwrap_or(Span::MAX))
    }

    /// The state of the segment whose last transmission was `number`, at `sent_at`.
    pub fn judge(&self, number: u64, sent_at: Time, now: Time, window: Span) -> Verdict {
        if number >= self.newest {
            return Verdict::Unknown;
        }
        let due = sent_at + self.rtt + window;
        if due <= now {
            Verdict::Lost
        } else {
            Verdict::Waits(due.saturating_since(now))
        }
    }

    /// Whether segments of this connection were reordered.
    pub const fn has_reordering(&self) -> bool {
        self.has_reordering
    }
}

impl Default for RackClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: Option<Span> = Some(Span::from_millis(40));
    const SMOOTHED: Option<Span> = Some(Span::from_millis(60));

    fn delivered(number: u64, sent_ms: u64, end: u64, was_resent: bool) -> Delivered {
        Delivered {
            number,
            sent_at: Time::from_millis(sent_ms),
            end,
            was_resent,
        }
    }

    #[test]
    fn a_segment_waits_a_quarter_of_the_least_round_trip() {
        // RFC 8985, section 6.2, steps 2 to 5: the second of two segments sent at 0 and 1 ms
        // arrives at 50 ms; the first is lost at 0 + 49 + 10 ms.
        let mut clock = RackClock::new();
        clock.on_delivered(&delivered(2, 1, 200, false), Time::from_millis(50), MIN);
        let window = clock.window(false, MIN, SMOOTHED);
        assert_eq!(window, Span::from_millis(10));
        let first = |now| clock.judge(1, Time::ZERO, Time::from_millis(now), window);
        assert_eq!(first(50), Verdict::Waits(Span::from_millis(9)));
        assert_eq!(first(58), Verdict::Waits(Span::from_millis(1)));
        assert_eq!(first(59), Verdict::Lost);
        let third = clock.judge(3, Time::from_millis(2), Time::from_secs(9), window);
        assert_eq!(
            third,
            Verdict::Unknown,
            "nothing that left later has arrived"
        );
        // During a recovery the reordering window is zero, unless packets were reordered.
        let window = clock.window(true, MIN, SMOOTHED);
        assert_eq!(window, Span::ZERO);
        let now = Time::from_millis(50);
        assert_eq!(clock.judge(1, Time::ZERO, now, window), Verdict::Lost);
        clock.on_delivered(&delivered(1, 0, 100, false), Time::from_millis(51), MIN);
        assert!(clock.has_reordering());
        assert_eq!(clock.window(true, MIN, SMOOTHED), Span::from_millis(10));
    }

    #[test]
    fn an_answer_to_an_earlier_copy_is_no_measurement() {
        let mut clock = RackClock::new();
        clock.on_delivered(&delivered(7, 100, 100, true), Time::from_millis(139), MIN);
        assert_eq!(
            clock.judge(1, Time::ZERO, Time::from_secs(1), Span::ZERO),
            Verdict::Unknown
        );
        clock.on_delivered(&delivered(7, 100, 100, true), Time::from_millis(140), MIN);
        assert_eq!(
            clock.judge(1, Time::ZERO, Time::from_secs(1), Span::ZERO),
            Verdict::Lost
        );
    }

    #[test]
    fn duplicates_widen_the_window_once_a_round_trip_and_for_sixteen_recoveries() {
        let mut clock = RackClock::new();
        let window = |clock: &RackClock| clock.window(false, MIN, SMOOTHED).as_nanos() / 1_000_000;
        clock.on_duplicate_reported(10);
        clock.on_duplicate_reported(12);
        assert_eq!(window(&clock), 20, "the second is of the same round trip");
        clock.on_delivered(&delivered(10, 0, 100, false), Time::from_millis(50), MIN);
        clock.on_duplicate_reported(20);
        assert_eq!(window(&clock), 30);
        for number in [20, 21, 22, 23, 24, 25] {
            clock.on_delivered(
                &delivered(number, 0, 200, false),
                Time::from_millis(50),
                MIN,
            );
            clock.on_duplicate_reported(number + 1);
        }
        assert_eq!(window(&clock), 60, "the smoothed round trip is the ceiling");
        for _ in 0..15 {
            clock.on_recovered();
        }
        assert_eq!(window(&clock), 60);
        clock.on_recovered();
        assert_eq!(window(&clock), 10);
    }

    #[test]
    fn one_reaction_for_the_losses_of_one_window() {
        let mut rack = Rack::new();
        let lost = |una, max| Duplicate {
            una,
            max,
            mss: 100,
            first_is_lost: true,
        };
        let advance = |to| Advance {
            to,
            acked: 100,
            mss: 100,
            is_repair: true,
        };
        assert_eq!(rack.on_duplicate(&lost(1, 1_000)).reduce, Reduce::Halve);
        assert_eq!(rack.on_duplicate(&lost(1, 1_200)).reduce, Reduce::No);
        assert!(rack.on_advance(&advance(999)).partial);
        assert_eq!(rack.on_duplicate(&lost(999, 1_300)).reduce, Reduce::No);
        let end = rack.on_advance(&advance(1_000));
        assert!(end.recovered && end.grow && rack.is_quiet());
        assert_eq!(rack.on_duplicate(&lost(1_000, 1_400)).reduce, Reduce::Halve);
        // After a timeout, losses of what was sent before it cause no reaction.
        assert_eq!(
            rack.on_timeout(1_500, TimeoutRepair::GoBackN),
            Resend::First
        );
        assert_eq!(rack.on_duplicate(&lost(1_000, 1_600)).reduce, Reduce::No);
        assert!(!rack.on_advance(&advance(1_499)).recovered && !rack.is_quiet());
        assert!(rack.on_advance(&advance(1_500)).grow && rack.is_quiet());
        // After a spurious timeout, the next loss counts at once.
        let _ = rack.on_timeout(2_500, TimeoutRepair::GoBackN);
        rack.on_spurious();
        assert_eq!(rack.on_duplicate(&lost(1_600, 2_600)).reduce, Reduce::Halve);
    }
}
