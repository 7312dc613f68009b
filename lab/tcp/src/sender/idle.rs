//! Restarts after idle time.

use comity_units::{Span, Time};

/// Recognises a window that is outdated because the sender was idle.
#[derive(Debug)]
pub(super) struct IdleRestart {
    /// The last departure of data; [`Time::MAX`] before the first.
    sent_at: Time,
    initial_window: u64,
}

impl IdleRestart {
    pub(super) const fn new(initial_window: u64) -> Self {
        Self {
            sent_at: Time::MAX,
            initial_window,
        }
    }

    pub(super) const fn initial_window(&self) -> u64 {
        self.initial_window
    }

    /// Records a departure of data, or a restart, which counts as one.
    #[inline]
    pub(super) const fn on_sent(&mut self, now: Time) {
        self.sent_at = now;
    }

    /// The time since the last departure, if it exceeds `timeout`.
    #[inline]
    pub(super) fn pause(&self, now: Time, timeout: Span) -> Option<Span> {
        if self.sent_at.is_never() {
            return None;
        }
        let pause = now.saturating_since(self.sent_at);
        (pause > timeout).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_begins_with_a_departure_and_exceeds_the_timeout() {
        let timeout = Span::from_millis(200);
        let mut idle = IdleRestart::new(10_000);
        assert_eq!(idle.pause(Time::from_secs(9), timeout), None);
        idle.on_sent(Time::from_secs(1));
        assert_eq!(idle.pause(Time::from_millis(1_200), timeout), None);
        assert_eq!(
            idle.pause(Time::from_millis(1_201), timeout),
            Some(Span::from_millis(201))
        );
    }
}
