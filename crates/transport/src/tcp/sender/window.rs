//! What the windows say, which is all there is to say for most segments.

use comity_congestion::recovery::Recovery;
use comity_units::Time;

use super::super::config::Config;
use super::stream::{Outgoing, Stream};
use super::transfer::Transfer;

/// What a glance at the windows shows.
pub(super) enum Glance {
    /// There is nothing to send, or no room for it.
    Nothing,
    /// This leaves.
    Segment(Outgoing),
    /// More than the windows has to be asked.
    Unclear,
}

impl Transfer {
    /// The congestion window with inflation.
    fn inflated_window(&self) -> u64 {
        if self.is_quiet {
            self.window
        } else {
            self.window.saturating_add_signed(self.recovery.inflation())
        }
    }

    /// The window in force: congestion window with inflation, cut by the peer's.
    pub(super) fn usable_window(&self, stream: &Stream) -> u64 {
        self.inflated_window().min(stream.peer_window)
    }

    /// The offset after the last byte that the peer's window takes. What was given up and arrived
    /// after all takes room there.
    #[inline]
    pub(super) fn peer_edge(&self, stream: &Stream) -> u64 {
        let edge = stream.peer_edge();
        match (&stream.line, &self.scoreboard) {
            (Some(line), Some(board)) => {
                let arrived =
                    line.count_not_missing(stream.una, |place| board.acknowledged_below(place));
                edge.saturating_sub(arrived)
            }
            _ => edge,
        }
    }

    /// How much the peer's window takes from `start` on.
    pub(super) fn room_at(&self, stream: &Stream, start: u64) -> u64 {
        self.peer_edge(stream).saturating_sub(start)
    }

    /// The offset after the last byte that both windows take, when the peer holds `arrived` of what
    /// is outstanding.
    fn edge(&self, stream: &Stream, arrived: u64) -> u64 {
        let window = self.inflated_window().saturating_add(arrived);
        stream
            .base()
            .saturating_add(window)
            .min(self.peer_edge(stream))
    }

    /// The offset up to which limited transmit may go: RFC 3042 counts from the window as it is
    /// when the segment leaves, which the report that came with the duplicate may have made
    /// smaller.
    fn released_edge(&self, stream: &Stream, config: &Config) -> u64 {
        let allowance = u64::from(self.released) * u64::from(config.mss);
        let edge = stream.base().saturating_add(self.window);
        edge.saturating_add(allowance).min(self.peer_edge(stream))
    }

    /// Whether the window might let something pass: on the way back from a timeout, that takes a
    /// look at what arrived.
    pub(super) fn window_is_open(&self, stream: &Stream) -> bool {
        (stream.next < stream.stream_end() && stream.next < self.edge(stream, 0))
            || self.resend_first
            || stream.next < stream.max
    }

    /// Whether something could leave if the pacer let it. A recovery that counts a pipe may send
    /// whatever the window says.
    pub(super) fn is_held_by_pacer(&self, stream: &Stream, now: Time) -> bool {
        self.pace
            .as_ref()
            .is_some_and(|pace| pace.release_at() > now)
            && (self.window_is_open(stream) || self.is_recovering())
    }

    /// Whether everything was sent and nothing is to be retransmitted.
    #[inline]
    pub(super) fn is_idle(&self, stream: &Stream) -> bool {
        stream.next >= stream.stream_end()
            && self.is_quiet
            && !(self.resend_first | self.persistence.is_due)
    }

    /// Reads the windows where nothing else has a say. It does not change anything, and
    /// [`Transfer::poll_with_care`] would not either where it says "nothing".
    #[inline]
    pub(super) fn glance(&self, stream: &Stream, now: Time, config: &Config) -> Glance {
        let windows_decide = self.is_quiet
            && !(self.resend_first | self.persistence.is_due)
            && !self.may_release
            && self.pace.is_none()
            && config.max_burst.is_none()
            && stream.line.as_ref().is_none_or(|line| line.is_quiet(now))
            && stream.next == stream.max;
        if !windows_decide {
            return Glance::Unclear;
        }
        let peer_edge = self.peer_edge(stream);
        let edge = stream.base().saturating_add(self.window).min(peer_edge);
        if stream.next < edge || stream.next >= stream.end {
            let outgoing = stream.segment_at(stream.next, stream.stream_end(), config);
            if outgoing.is_empty() && stream.needs_notice() {
                return Glance::Unclear;
            }
            if outgoing.is_empty() {
                return Glance::Nothing;
            }
            if outgoing.end_of_data() <= edge {
                return Glance::Segment(outgoing);
            }
        }
        // A part of a segment may fit into the peer's window, and a window that stays closed is to
        // be probed.
        let room = peer_edge.saturating_sub(stream.next);
        let is_partial = room > 0 && room >= stream.peer_window_max / 2;
        let is_held = self.window < stream.peer_window;
        if is_held || stream.lowest_current() < stream.next && !is_partial {
            return Glance::Nothing;
        }
        Glance::Unclear
    }

    /// Whether [`Transfer::poll_with_care`] might have something: a quick look that is right
    /// whenever it says no.
    #[inline]
    pub(super) fn may_have_something(&self, stream: &Stream) -> bool {
        self.window_is_open(stream)
            || !self.is_quiet
            || self.persistence.is_due
            || stream.next < stream.stream_end() && stream.peer_window < self.window
    }

    /// The next segment that the window lets pass, new or on the way back from a timeout.
    pub(super) fn next_in_window(
        &mut self,
        stream: &mut Stream,
        now: Time,
        config: &Config,
    ) -> Option<Outgoing> {
        let (arrived, missing_end) = self.pass_over_arrived(stream, config);
        let edge = self.edge(stream, arrived);
        let limit = stream.stream_end().min(missing_end);
        let outgoing = stream.segment_at(stream.next, limit, config);
        if outgoing.is_empty() {
            return None;
        }
        if outgoing.end_of_data() <= edge {
            return Some(outgoing);
        }
        if self.may_release && outgoing.end_of_data() <= self.released_edge(stream, config) {
            self.may_release = false;
            return Some(outgoing);
        }
        // What was sent before has fitted, and leaves again however little it is: new data alone is
        // held back until it is worth a segment, and nothing else may be under way whose answer
        // would open the window.
        let again = stream.segment_at(stream.next, stream.max.min(limit), config);
        if !again.is_empty() && again.end_of_data() <= edge {
            return Some(again);
        }
        self.partial_into_peer_window(stream, now, outgoing, config)
    }

    /// New data, as far as a congestion window of `window` and the peer's let it pass.
    pub(super) fn next_within(
        &mut self,
        stream: &Stream,
        now: Time,
        window: u64,
        config: &Config,
    ) -> Option<Outgoing> {
        let edge = stream.base().saturating_add(window);
        let outgoing = stream.segment_at(stream.max, stream.stream_end(), config);
        if outgoing.is_empty() {
            return None;
        }
        if outgoing.end_of_data() <= edge.min(self.peer_edge(stream)) {
            return Some(outgoing);
        }
        self.partial_into_peer_window(stream, now, outgoing, config)
    }

    /// A segment cut down to the peer's window, where that is worth it or nothing else would move.
    ///
    /// RFC 9293, 3.8.6.2.1: to avoid the silly window syndrome, less than a full segment leaves
    /// only when it is at least half of the largest window that the peer ever offered.
    fn partial_into_peer_window(
        &mut self,
        stream: &Stream,
        now: Time,
        outgoing: Outgoing,
        config: &Config,
    ) -> Option<Outgoing> {
        if self.window < stream.peer_window {
            return None;
        }
        let room = self.room_at(stream, outgoing.start);
        if room > 0 && room >= stream.peer_window_max / 2 && room < u64::from(outgoing.length) {
            return Some(Outgoing {
                length: room as u32,
                fin: false,
                ..outgoing
            });
        }
        self.persist(stream, now, config);
        None
    }
}
