//! What a sender does when only the peer can make something happen: probes of a closed window, and
//! notices of a jump.

use comity_units::{Span, Time};

use super::super::config::Config;
use super::stream::{Outgoing, Stream};
use super::transfer::Transfer;

/// The persist timer (RFC 9293, section 3.8.6.1).
#[derive(Debug)]
pub(super) struct Persistence {
    /// When it expires; [`Time::MAX`] while it does not run.
    pub(super) at: Time,
    /// How often its time was doubled.
    exponent: u8,
    /// A probe or a notice is to leave now.
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

    /// It expired: what it waits for is asked again, ever more rarely.
    pub(super) fn on_expiry(&mut self) {
        self.is_due = true;
        self.exponent = (self.exponent + 1).min(6);
        self.at = Time::MAX;
    }
}

impl Transfer {
    /// Sees to it that something happens when only the peer's window holds data back and nothing is
    /// on its way whose answer could open it.
    pub(super) fn persist(&mut self, stream: &Stream, now: Time, config: &Config) {
        if self.waits(stream) && self.persistence.is_off() {
            let timeout = self.clock.rtt.timeout(&config.rtt);
            self.persistence.arm(now, timeout, config.rtt.max_timeout);
        }
    }

    /// Whether only a probe will make something happen.
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

    /// An acknowledgement of a time-lined stream was taken in; `is_news` when it confirmed more
    /// than any before.
    #[inline]
    pub(super) fn review_persistence(
        &mut self,
        stream: &Stream,
        now: Time,
        is_news: bool,
        config: &Config,
    ) {
        // An answer: what is still to be told is a younger jump, and waits for nothing.
        if !self.persistence.is_off() && (!self.waits(stream) || is_news && stream.needs_notice()) {
            self.persistence.end();
        }
        self.notify(stream, now, config);
    }

    /// Has a segment without payload sent when nothing else could tell the peer of a jump.
    #[inline]
    pub(super) fn notify(&mut self, stream: &Stream, now: Time, config: &Config) {
        if self.persistence.is_off() && stream.needs_notice() {
            self.persistence.is_due = true;
            self.persist(stream, now, config);
        }
    }

    /// What leaves when the persist timer expires: what fits into the window, however little (the
    /// override timeout of RFC 9293, section 3.8.6.2.1), and into a closed one nothing but a
    /// question.
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
        // An old number, so that it is answered.
        let question = Outgoing::nothing_at(stream.una.saturating_sub(1));
        if stream.needs_notice()
            && let Some(line) = &mut stream.line
        {
            line.statistics.notices += 1;
        }
        self.sent(stream, now, question, config)
    }
}
