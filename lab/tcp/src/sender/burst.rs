//! How many segments one event releases.

/// The segments sent since the last event, for the burst limits.
#[derive(Debug, Default)]
pub(super) struct Burst {
    sent: u32,
    /// Whether the pacer alone has held a segment back since the last event.
    held_by_pacer: bool,
}

impl Burst {
    /// Begins a burst: a segment of the peer arrived, or the application acted.
    #[inline]
    pub(super) const fn begin(&mut self) {
        self.sent = 0;
        self.held_by_pacer = false;
    }

    /// Handles a timer. Most timers reveal nothing about the path: neither a deadline nor a delayed
    /// acknowledgement makes room for segments that a burst limit held back. The end of a pacer's
    /// pause and the controller's wake-up begin a burst.
    #[inline]
    pub(super) const fn on_timer(&mut self, is_wakeup_due: bool) {
        if self.held_by_pacer || is_wakeup_due {
            self.sent = 0;
        }
        self.held_by_pacer = false;
    }

    /// Begins a burst for the segments of a recovery timer that expired.
    pub(super) const fn on_expiry(&mut self) {
        self.sent = 0;
    }

    #[inline]
    pub(super) const fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// Whether a limit, if any, holds the next segment back.
    pub(super) fn is_full(&self, limit: Option<u32>) -> bool {
        limit.is_some_and(|limit| self.sent >= limit)
    }

    pub(super) const fn set_held_by_pacer(&mut self, is_held: bool) {
        self.held_by_pacer = is_held;
    }

    #[inline]
    pub(super) const fn is_held_by_pacer(&self) -> bool {
        self.held_by_pacer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Burst {
        let mut burst = Burst::default();
        burst.on_sent();
        assert!(!burst.is_full(Some(2)) && !burst.is_full(None));
        burst.on_sent();
        assert!(burst.is_full(Some(2)) && !burst.is_full(None));
        burst
    }

    #[test]
    fn only_timers_about_the_path_begin_a_burst() {
        let mut burst = full();
        burst.on_timer(false);
        assert!(burst.is_full(Some(2)));
        burst.on_timer(true);
        assert!(!burst.is_full(Some(2)), "the controller's wake-up");
        let mut burst = full();
        burst.set_held_by_pacer(true);
        burst.on_timer(false);
        assert!(!burst.is_full(Some(2)) && !burst.is_held_by_pacer());
        let mut burst = full();
        burst.on_expiry();
        assert!(!burst.is_full(Some(2)));
        let mut burst = full();
        burst.begin();
        assert!(!burst.is_full(Some(2)));
    }
}
