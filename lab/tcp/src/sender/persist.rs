//! Probes of a closed window and notices of a jump, for a sender that only the peer can unblock.

use comity_units::{Span, Time};

use super::super::config::Config;
use super::clock::Clock;
use super::stream::Stream;

/// The persist timer (RFC 9293, section 3.8.6.1).
#[derive(Debug)]
pub(super) struct Persistence {
    /// When it expires; [`Time::MAX`] while it is off.
    at: Time,
    /// How often its time was doubled.
    exponent: u8,
    /// Whether a probe or a notice is due now.
    is_due: bool,
}

impl Persistence {
    pub(super) const OFF: Self = Self {
        at: Time::MAX,
        exponent: 0,
        is_due: false,
    };

    const fn is_off(&self) -> bool {
        self.at.is_never()
    }

    #[inline]
    pub(super) const fn at(&self) -> Time {
        self.at
    }

    #[inline]
    pub(super) const fn is_due(&self) -> bool {
        self.is_due
    }

    /// Whether a probe or a notice leaves now. It leaves once.
    #[inline]
    pub(super) const fn take_due(&mut self) -> bool {
        core::mem::replace(&mut self.is_due, false)
    }

    /// Stops the timer, because the peer's window opened.
    #[inline]
    pub(super) const fn end(&mut self) {
        self.at = Time::MAX;
        self.exponent = 0;
    }

    fn arm(&mut self, now: Time, timeout: Span, longest: Span) {
        self.at = now + (timeout * (1 << self.exponent)).min(longest);
    }

    /// Starts the timer if only the peer's window holds data back and nothing outstanding could
    /// cause the peer to open it. `window` is the congestion window.
    pub(super) fn start(
        &mut self,
        stream: &Stream,
        now: Time,
        window: u64,
        clock: &Clock,
        config: &Config,
    ) {
        if needs_probe(stream, window) && self.is_off() {
            self.arm(now, clock.rtt.timeout(&config.rtt), config.rtt.max_timeout);
        }
    }

    /// Handles an acknowledgement of a time-lined stream; `is_news` if it confirmed more than any
    /// before.
    #[inline]
    pub(super) fn review(&mut self, stream: &Stream, window: u64, is_news: bool) {
        // The peer responded: a remaining notice concerns a later jump and is sent at once.
        if !self.is_off() && (!needs_probe(stream, window) || is_news && stream.needs_notice()) {
            self.end();
        }
    }

    /// Makes a segment without payload due if no other segment could report a jump to the peer.
    #[inline]
    pub(super) fn notify(
        &mut self,
        stream: &Stream,
        now: Time,
        window: u64,
        clock: &Clock,
        config: &Config,
    ) {
        if self.is_off() && stream.needs_notice() {
            self.is_due = true;
            self.start(stream, now, window, clock, config);
        }
    }

    /// Handles an expiry: doubles the interval to the next one.
    pub(super) fn on_expiry(&mut self) {
        self.is_due = true;
        self.exponent = (self.exponent + 1).min(6);
        self.at = Time::MAX;
    }
}

/// Whether only a probe can make progress.
fn needs_probe(stream: &Stream, window: u64) -> bool {
    let waits_for_window = stream.next < stream.stream_end() && window >= stream.peer_window;
    let nothing_under_way = !stream.has_outstanding() || stream.next == stream.lowest_current();
    // A timeout releases the data that the window holds.
    waits_for_window && nothing_under_way && !stream.holds_any() || stream.needs_notice()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data of 1,000 bytes waits for the peer's window.
    fn blocked(peer_window: u64) -> Stream {
        let mut stream = Stream::new();
        stream.establish(1, peer_window);
        stream.end = 1_001;
        stream
    }

    #[test]
    fn probes_leave_at_doubled_intervals_until_the_window_opens() {
        let config = Config::default();
        let clock = Clock::new(&config);
        let (stream, mut persistence) = (blocked(0), Persistence::OFF);
        let timeout = clock.rtt.timeout(&config.rtt);
        let mut now = Time::from_secs(1);
        for exponent in [0, 1, 2, 3, 4, 5, 6, 6] {
            persistence.start(&stream, now, 10_000, &clock, &config);
            let interval = (timeout * (1 << exponent)).min(config.rtt.max_timeout);
            assert_eq!(persistence.at(), now + interval, "{exponent}");
            persistence.start(&stream, now + timeout / 2, 10_000, &clock, &config);
            assert_eq!(persistence.at(), now + interval, "it runs already");
            assert!(!persistence.is_due());
            now = persistence.at();
            persistence.on_expiry();
            assert!(persistence.at().is_never());
            assert!(persistence.take_due() && !persistence.take_due());
        }
        persistence.end();
        persistence.start(&stream, now, 10_000, &clock, &config);
        assert_eq!(persistence.at(), now + timeout);
    }

    #[test]
    fn the_timer_stays_off_while_something_else_makes_progress() {
        let config = Config::default();
        let clock = Clock::new(&config);
        let starts = |stream: &Stream, window| {
            let mut persistence = Persistence::OFF;
            persistence.start(stream, Time::ZERO, window, &clock, &config);
            !persistence.at().is_never()
        };
        assert!(starts(&blocked(100), 100));
        assert!(
            !starts(&blocked(101), 100),
            "the congestion window is smaller"
        );
        let mut stream = blocked(100);
        (stream.next, stream.max) = (101, 101);
        assert!(!starts(&stream, 10_000), "an acknowledgement will come");
        stream.next = 1;
        assert!(
            starts(&stream, 10_000),
            "everything outstanding counts as lost"
        );
        stream.end = 1;
        assert!(!starts(&stream, 10_000), "nothing waits");
    }
}
