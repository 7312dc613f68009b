//! The event in the queue for an endpoint's timer.

use comity_units::{Span, Time};

/// The time of the queued event for an endpoint's timer. A timer that moves later keeps its event.
///
/// An endpoint may request a time that has passed, for example with a late pacer. Its turn then
/// comes after the current event, at the same instant. If it has already had a turn at this
/// instant, the next turn comes [`SOONEST`] later, so that time advances.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alarm {
    queued_for: Time,
    rang_at: Time,
}

/// The time from one turn to the next of an endpoint that requests a turn at once.
const SOONEST: Span = Span::from_micros(1);

impl Alarm {
    pub(super) const fn new() -> Self {
        Self {
            queued_for: Time::MAX,
            rang_at: Time::MAX,
        }
    }

    /// Removes the event at `now`. Returns whether it is the timer's current event.
    pub(super) fn take(&mut self, now: Time) -> bool {
        let is_meant = self.queued_for == now;
        if is_meant {
            self.queued_for = Time::MAX;
        }
        is_meant
    }

    /// Records that the endpoint has its turn.
    pub(super) fn ring(&mut self, now: Time) {
        self.rang_at = now;
    }

    /// Requests a turn at `due`. Returns when to queue an event, unless one comes early enough.
    #[inline]
    pub(super) fn set(&mut self, now: Time, due: Time) -> Option<Time> {
        if due >= self.queued_for {
            return None;
        }
        let due = if due > now {
            due
        } else if self.rang_at == now {
            now + SOONEST
        } else {
            now
        };
        self.queued_for = due;
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_that_moves_later_needs_no_event() {
        let mut alarm = Alarm::new();
        let (now, early, late) = (Time::ZERO, Time::from_millis(1), Time::from_millis(2));
        assert_eq!(alarm.set(now, late), Some(late));
        assert_eq!(alarm.set(now, early), Some(early));
        assert_eq!(alarm.set(now, late), None);
        assert!(!alarm.take(late));
        assert!(alarm.take(early));
        assert!(!alarm.take(early));
    }

    #[test]
    fn what_is_late_has_one_turn_at_an_instant_and_the_next_one_later() {
        let mut alarm = Alarm::new();
        let now = Time::from_millis(5);
        assert_eq!(alarm.set(now, Time::ZERO), Some(now));
        assert!(alarm.take(now));
        alarm.ring(now);
        assert_eq!(alarm.set(now, Time::ZERO), Some(now + SOONEST));
        assert!(alarm.take(now + SOONEST));
        // A request for a later time gets its event at that time.
        let soon = now + Span::from_nanos(1);
        assert_eq!(alarm.set(now, soon), Some(soon));
    }
}
