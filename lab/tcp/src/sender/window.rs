//! Sending by the windows alone, which decide most segments.

use comity_units::Time;

use super::super::config::Config;
use super::stream::{Outgoing, Stream};
use super::transfer::Transfer;

/// The result of reading the windows.
pub(super) enum Glance {
    /// Nothing to send, or no room for it.
    Nothing,
    /// This leaves.
    Segment(Outgoing),
    /// The windows alone cannot decide.
    Unclear,
}

impl Transfer {
    fn inflated_window(&self) -> u64 {
        let window = self.repair.inflated(self.control.window());
        self.limit_inflation(window.saturating_add(self.test_inflation()))
    }

    /// The effective window: the inflated congestion window, limited by the peer's.
    pub(super) fn usable_window(&self, stream: &Stream) -> u64 {
        self.inflated_window().min(stream.peer_window)
    }

    /// The offset after the last byte in the peer's window. Abandoned data that arrived uses room
    /// there.
    #[inline]
    pub(super) fn peer_edge(&self, stream: &Stream) -> u64 {
        let edge = stream.peer_edge();
        match (&stream.line, &self.scoreboard) {
            (Some(line), Some(board)) => {
                let arrived =
                    line.count_not_missing(stream.una, |offset| board.acknowledged_below(offset));
                edge.saturating_sub(arrived)
            }
            _ => edge,
        }
    }

    /// The room in the peer's window from `start` on.
    pub(super) fn room_at(&self, stream: &Stream, start: u64) -> u64 {
        self.peer_edge(stream).saturating_sub(start)
    }

    /// The offset after the last byte that both windows admit, if the peer holds `arrived` of the
    /// outstanding bytes.
    fn edge(&self, stream: &Stream, arrived: u64) -> u64 {
        let window = self.inflated_window().saturating_add(arrived);
        stream
            .base()
            .saturating_add(window)
            .min(self.peer_edge(stream))
    }

    /// The limit of limited transmit. RFC 3042 counts from the window at departure, which the
    /// report on the duplicate may have reduced.
    fn released_edge(&self, stream: &Stream, config: &Config) -> u64 {
        let allowance = self.limited_transmit.allowance(config.mss);
        let edge = stream.base().saturating_add(self.control.window());
        edge.saturating_add(allowance).min(self.peer_edge(stream))
    }

    /// Whether the window might admit a segment. The recovery from a timeout also has to pass over
    /// arrived data.
    pub(super) fn window_is_open(&self, stream: &Stream) -> bool {
        (stream.next < stream.stream_end() && stream.next < self.edge(stream, 0))
            || self.repair.resends_first()
            || stream.next < stream.max
    }

    /// Whether only the pacer holds a segment back. A recovery that counts a pipe may send
    /// regardless of the window.
    pub(super) fn is_held_by_pacer(&self, stream: &Stream, now: Time) -> bool {
        self.control.is_pacer_closed(now)
            && (self.window_is_open(stream) || self.repair.is_recovering())
    }

    /// Whether all data was sent and nothing awaits retransmission.
    #[inline]
    pub(super) fn is_idle(&self, stream: &Stream) -> bool {
        stream.next >= stream.stream_end()
            && self.repair.windows_decide()
            && !(self.repair.resends_first() | self.persistence.is_due())
    }

    /// Reads the windows if nothing else matters. It changes nothing. If it returns
    /// [`Glance::Nothing`], [`Transfer::poll_with_care`] would not change anything either.
    #[inline]
    pub(super) fn glance(&self, stream: &Stream, now: Time, config: &Config) -> Glance {
        let windows_decide = self.repair.windows_decide()
            && !(self.repair.resends_first() | self.persistence.is_due())
            && !self.limited_transmit.is_pending()
            && !self.control.has_pace()
            && config.max_burst.is_none()
            && stream.line.as_ref().is_none_or(|line| line.is_quiet(now))
            && stream.next == stream.max;
        if !windows_decide {
            return Glance::Unclear;
        }
        let peer_edge = self.peer_edge(stream);
        let edge = stream
            .base()
            .saturating_add(self.control.window())
            .saturating_add(self.test_inflation())
            .min(peer_edge);
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
        // Part of a segment may fit into the peer's window, and a closed window needs probes.
        let room = peer_edge.saturating_sub(stream.next);
        let is_partial = room > 0 && room >= stream.peer_window_max / 2;
        let is_held = self.control.window() < stream.peer_window;
        if is_held || stream.lowest_current() < stream.next && !is_partial {
            return Glance::Nothing;
        }
        Glance::Unclear
    }

    /// Whether [`Transfer::poll_with_care`] might return a segment. `false` is always right.
    #[inline]
    pub(super) fn may_have_something(&self, stream: &Stream) -> bool {
        self.window_is_open(stream)
            || !self.repair.windows_decide()
            || self.persistence.is_due()
            || stream.next < stream.stream_end() && stream.peer_window < self.control.window()
    }

    /// The next segment that the window admits, new or retransmitted after a timeout.
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
        if self.limited_transmit.is_pending()
            && outgoing.end_of_data() <= self.released_edge(stream, config)
        {
            self.limited_transmit.end();
            return Some(outgoing);
        }
        // Data that was sent before fitted into the window, so it is retransmitted however short it
        // is. Only new data waits for a full segment. Otherwise nothing might be outstanding whose
        // acknowledgement would open the window.
        let again = stream.segment_at(stream.next, stream.max.min(limit), config);
        if !again.is_empty() && again.end_of_data() <= edge {
            return Some(again);
        }
        self.partial_into_peer_window(stream, now, outgoing, config)
    }

    /// New data, as far as a congestion window of `window` and the peer's window admit it.
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

    /// A segment cut to the peer's window, if it is large enough or nothing else would make
    /// progress.
    ///
    /// RFC 9293, 3.8.6.2.1: to avoid the silly window syndrome, a partial segment leaves only if it
    /// is at least half of the peer's largest window so far.
    fn partial_into_peer_window(
        &mut self,
        stream: &Stream,
        now: Time,
        outgoing: Outgoing,
        config: &Config,
    ) -> Option<Outgoing> {
        if self.control.window() < stream.peer_window {
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
