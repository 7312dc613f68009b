//! How a time-lined sender replaces the retransmission of obsolete data.

use comity_units::Time;

use super::super::config::Config;
use super::stream::{Outgoing, Stream};
use super::transfer::Transfer;

impl Transfer {
    /// Handles an expiry of the lifetime timer, or of a deadline that passed before the timer was
    /// read.
    pub(super) fn on_lifetime(&mut self, stream: &mut Stream, now: Time, config: &Config) {
        let standing = stream.standing();
        if let Some(line) = &mut stream.line {
            let moved = line.on_lifetime(now, standing);
            (stream.next, stream.end) = (moved.next, moved.end);
        }
        self.notify(stream, now, config);
    }

    /// Passes over unsent data that has expired.
    pub(super) fn discard_stale(&mut self, stream: &mut Stream, now: Time, config: &Config) {
        if stream
            .line
            .as_ref()
            .is_some_and(|line| line.lifetime() <= now)
        {
            self.on_lifetime(stream, now, config);
        }
        // Later data may have expired as well while the new oldest data is current.
        let standing = stream.standing();
        if let Some(line) = &mut stream.line {
            stream.end = line.discard_stale(now, standing);
        }
        self.notify(stream, now, config);
    }

    /// Marks everything outstanding as lost: retransmits from the lowest current offset.
    pub(super) fn go_back(&mut self, stream: &mut Stream) {
        stream.next = stream.lowest_current();
        if let Some(line) = &mut stream.line
            && line.is_obsolete(stream.una)
        {
            line.abandon_obsolete(stream.una);
            // If no current data is missing, windows need not open for the retransmission, and
            // sending continues behind it.
            let missing = match &self.scoreboard {
                Some(board) => board.missing(stream.next).0,
                None => stream.next,
            };
            if missing >= stream.max {
                stream.next = stream.max;
                self.repair.resend_first();
            }
        }
    }

    /// The packet to send in response to the loss of the obsolete range `[start, end)`, which was
    /// one segment. It is the lowest unacknowledged current packet, either sent before (a
    /// pseudo-retransmission) or new. Without any, it is a segment that carries `seq_update` alone.
    /// `None` if the range is not obsolete.
    pub(super) fn answer_obsolete(
        &mut self,
        stream: &mut Stream,
        start: u64,
        end: u64,
        config: &Config,
    ) -> Option<Outgoing> {
        let line = stream.line.as_mut()?;
        if !line.is_obsolete(start) {
            return None;
        }
        let lost_end = end
            .min(start + u64::from(config.mss))
            .min(line.lowest_current(start));
        line.on_obsolete_loss(stream.una, lost_end);
        let mut from = line.substitute(self.scoreboard.is_some());
        let mut limit = stream.max;
        if let Some(board) = &mut self.scoreboard {
            board.retransmitted = board.retransmitted.max(lost_end);
            let (missing, missing_end) = board.missing(from);
            from = missing;
            limit = limit.min(missing_end);
        }
        if from < stream.max {
            let again = stream.segment_at(from, limit, config);
            self.clock.on_retransmitted(from, again.end());
            if let Some(line) = &mut stream.line {
                line.on_pseudo_retransmission(again.end());
            }
            return Some(again);
        }
        let fresh = stream.segment_at(stream.max, stream.stream_end(), config);
        let peer_edge = self.peer_edge(stream);
        let line = stream.line.as_mut()?;
        // This packet reports the lost data as missing to the peer.
        let made_up = lost_end - start - line.count_free(start, lost_end);
        if !fresh.is_empty() && fresh.end_of_data() <= peer_edge.saturating_add(made_up) {
            line.on_replacement((start, lost_end), fresh.end());
            return Some(fresh);
        }
        line.statistics.notices += 1;
        Some(Outgoing::nothing_at(stream.max))
    }
}
