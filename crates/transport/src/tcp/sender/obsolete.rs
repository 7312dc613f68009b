//! What a time-lined sender does where TCP would send obsolete data again.

use comity_units::Time;

use super::super::config::Config;
use super::stream::{Outgoing, Stream};
use super::transfer::Transfer;

impl Transfer {
    /// The lifetime timer expired, or a deadline passed before the timer was looked at.
    pub(super) fn on_lifetime(&mut self, stream: &mut Stream, now: Time, config: &Config) {
        let standing = stream.standing();
        if let Some(line) = &mut stream.line {
            let moved = line.on_lifetime(now, standing);
            (stream.next, stream.end) = (moved.next, moved.end);
        }
        self.notify(stream, now, config);
    }

    /// Passes over unsent data whose time is over.
    pub(super) fn discard_stale(&mut self, stream: &mut Stream, now: Time, config: &Config) {
        if stream
            .line
            .as_ref()
            .is_some_and(|line| line.lifetime() <= now)
        {
            self.on_lifetime(stream, now, config);
        }
        // What is behind may be over as well while the now oldest data is current.
        let standing = stream.standing();
        if let Some(line) = &mut stream.line {
            stream.end = line.discard_stale(now, standing);
        }
        self.notify(stream, now, config);
    }

    /// Takes everything outstanding for lost: sends again from the lowest place that is worth it.
    pub(super) fn go_back(&mut self, stream: &mut Stream) {
        stream.next = stream.lowest_current();
        if let Some(line) = &mut stream.line
            && line.is_obsolete(stream.una)
        {
            line.give_up_obsolete(stream.una);
            // Where nothing current is missing, windows need not open for the answer, and sending
            // goes on behind it.
            let missing = match &self.scoreboard {
                Some(board) => board.missing(stream.next).0,
                None => stream.next,
            };
            if missing >= stream.max {
                stream.next = stream.max;
                self.resend_first = true;
            }
        }
    }

    /// The answer to the loss of `[start, end)`, of which one segment is meant, where that is
    /// obsolete: the lowest unacknowledged current packet, sent before (a pseudo-retransmission) or
    /// not; without any, a segment that carries `seq_update` alone. `None` where it is not
    /// obsolete.
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
            self.clock.on_sent_again(from, again.end());
            if let Some(line) = &mut stream.line {
                line.on_pseudo_retransmission(again.end());
            }
            return Some(again);
        }
        let fresh = stream.segment_at(stream.max, stream.stream_end(), config);
        let peer_edge = self.peer_edge(stream);
        let line = stream.line.as_mut()?;
        // With the answer the peer learns that the lost is missing.
        let made_up = lost_end - start - line.count_free(start, lost_end);
        if !fresh.is_empty() && fresh.end_of_data() <= peer_edge.saturating_add(made_up) {
            line.on_replacement((start, lost_end), fresh.end());
            return Some(fresh);
        }
        line.statistics.notices += 1;
        Some(Outgoing::nothing_at(stream.max))
    }
}
