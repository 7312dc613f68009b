//! Probes of a closed window and notices of a jump, for a sender that only the peer can unblock.

use comity_units::{Span, Time};

use super::super::config::Config;
use super::stream::{Outgoing, Stream};
use super::transfer::Transfer;

/// The persist timer (RFC 9293, section 3.8.6.1).
#[derive(Debug)]
pub(super) struct Persistence {
    /// When it expires; [`Time::MAX`] while it is off.
    pub(super) at: Time,
    /// How often its time was doubled.
    exponent: u8,
    /// A probe or a notice is due now.
    pub(super) is_due: bool,
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

    const fn end(&mut self) {
        self.at = Time::MAX;
        self.exponent = 0;
    }

    fn arm(&mut self, now: Time, timeout: Span, longest: Span) {
        self.at = now + (timeout * (1 << self.exponent)).min(longest);
    }

    /// Handles an expiry: doubles the interval to the next one.
    pub(super) fn on_expiry(&mut self) {
        self.is_due = true;
        self.exponent = (self.exponent + 1).min(6);
        self.at = Time::MAX;
    }
}

impl Transfer {
    /// Starts the timer if only the peer's window holds data back and nothing outstanding could
    /// cause the peer to open it.
    pub(super) fn persist(&mut self, stream: &Stream, now: Time, config: &Config) {
        if self.waits(stream) && self.persistence.is_off() {
            let timeout = self.clock.rtt.timeout(&config.rtt);
            self.persistence.arm(now, timeout, config.rtt.max_timeout);
        }
    }

    /// Whether only a probe can make progress.
    fn waits(&self, stream: &Stream) -> bool {
        let waits_for_window =
            stream.next < stream.stream_end() && self.window >= stream.peer_window;
        let nothing_under_way = !stream.has_outstanding() || stream.next == stream.lowest_current();
        waits_for_window && nothing_under_way || stream.needs_notice()
    }

    /// The peer's window opened.
    pub(super) const fn end_persistence(&mut self) {
        self.persistence.end();
    }

    /// Handles an acknowledgement of a time-lined stream; `is_news` if it confirmed more than any
    /// before.
    #[inline]
    pub(super) fn review_persistence(
        &mut self,
        stream: &Stream,
        now: Time,
        is_news: bool,
        config: &Config,
    ) {
        // The peer responded: a remaining notice concerns a later jump and is sent at once.
        if !self.persistence.is_off() && (!self.waits(stream) || is_news && stream.needs_notice()) {
            self.persistence.end();
        }
        self.notify(stream, now, config);
    }

    /// Sends a segment without payload if no other segment could report a jump to the peer.
    #[inline]
    pub(super) fn notify(&mut self, stream: &Stream, now: Time, config: &Config) {
        if self.persistence.is_off() && stream.needs_notice() {
            self.persistence.is_due = true;
            self.persist(stream, now, config);
        }
    }

    /// The segment to send when the persist timer expires: any data that fits into the window,
    /// however little (the override timeout of RFC 9293, section 3.8.6.2.1), or a probe without
    /// data into a closed one.
    pub(super) fn probe_segment(
        &mut self,
        stream: &mut Stream,
        now: Time,
        config: &Config,
    ) -> Option<Outgoing> {
        if stream.lowest_current() < stream.next && stream.has_outstanding() {
            return None;
        }
        let whole = stream.segment_at(stream.next, stream.stream_end(), config);
        let length = u64::from(whole.length).min(self.room_at(stream, stream.next)) as u32;
        if length > 0 {
            return self.sent(
                stream,
                now,
                Outgoing {
                    length,
                    fin: whole.fin && length == whole.length,
                    ..whole
                },
                config,
            );
        }
        // An old number makes the peer acknowledge it.
        let question = Outgoing::nothing_at(stream.una.saturating_sub(1));
        if stream.needs_notice()
            && let Some(line) = &mut stream.line
        {
            line.statistics.notices += 1;
        }
        self.sent(stream, now, question, config)
    }
}
