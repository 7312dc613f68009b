//! The sending rules of a SACK recovery: the pipe decides instead of the window.

use comity_units::Time;

use super::super::config::Config;
use super::acknowledgement::goes_by_scoreboard;
use super::stream::{Outgoing, Stream};
use super::transfer::Transfer;

impl Transfer {
    /// During the recovery from a timeout, moves `next` over data that arrived. Returns how many
    /// bytes below `next` the peer holds, which are not in the network, and the end of the bytes
    /// that it misses.
    pub(super) fn pass_over_arrived(&self, stream: &mut Stream, config: &Config) -> (u64, u64) {
        let Some(board) = &self.scoreboard else {
            return (0, u64::MAX);
        };
        if stream.next >= stream.max || !goes_by_scoreboard(config) {
            return (0, u64::MAX);
        }
        let (start, end) = board.missing(stream.next);
        stream.next = start;
        if start < stream.max {
            let free = match &stream.line {
                None => 0,
                Some(line) => line.count_free_arrived(stream.una, u64::MAX, |offset| {
                    board.acknowledged_below(offset)
                }),
            };
            (board.acknowledged_below(start) - free, end)
        } else {
            (0, u64::MAX)
        }
    }

    /// `NextSeg()` of RFC 6675, section 4, under the pipe of its section 5, step C.
    pub(super) fn next_by_scoreboard(
        &mut self,
        stream: &mut Stream,
        now: Time,
        config: &Config,
    ) -> Option<Outgoing> {
        let threshold = config.recovery.duplicate_threshold;
        let Some(board) = &self.scoreboard else {
            return self.next_in_window(stream, now, config);
        };
        // A replaced packet was retransmitted as its replacement, which counts for itself.
        let replaced = stream.line.as_ref().map_or(0, |line| {
            let (una, end) = (stream.una, board.retransmitted);
            let arrived =
                line.count_free_arrived(una, end, |offset| board.acknowledged_below(offset));
            line.count_free(una, end) - arrived
        });
        let pipe = board
            .pipe(stream.una, stream.max, config.mss, threshold)
            .saturating_sub(replaced);
        if pipe + u64::from(config.mss) > self.control.window() {
            return None;
        }
        let hole = board.hole(board.retransmitted.max(stream.una));
        let lost_below = board.lost_below(config.mss, threshold);
        let may_rescue = board.may_rescue(stream.una);
        // Rule 1: the first hole that is known to be lost.
        if let Some((start, end)) = hole
            && start < lost_below
        {
            return Some(self.resend_hole(stream, start, end, config));
        }
        // Rule 2: new data.
        let fresh = stream.segment_at(stream.max, stream.stream_end(), config);
        if !fresh.is_empty() && fresh.end_of_data() <= self.peer_edge(stream) {
            return Some(fresh);
        }
        // Rule 3: the first hole, lost or not.
        if let Some((start, end)) = hole {
            return Some(self.resend_hole(stream, start, end, config));
        }
        // Rule 4: once, the last outstanding segment, because its acknowledgement drives the
        // recovery. It applies only while that segment is unacknowledged; the RFC would also
        // retransmit the last retransmission.
        if may_rescue && board.highest().is_none_or(|highest| highest < stream.max) {
            let start = stream
                .max
                .saturating_sub(u64::from(config.mss))
                .max(stream.lowest_current());
            if start >= stream.max {
                return None;
            }
            if let Some(board) = &mut self.scoreboard {
                board.on_rescued();
            }
            return Some(stream.segment_at(start, stream.max, config));
        }
        None
    }

    /// Holes first, then new data, while the counted pipe has fewer segments than the window.
    pub(super) fn next_by_counter(
        &mut self,
        stream: &mut Stream,
        now: Time,
        config: &Config,
    ) -> Option<Outgoing> {
        let Some(board) = &self.scoreboard else {
            return self.next_in_window(stream, now, config);
        };
        if board.begins || board.counter >= (self.control.window() / u64::from(config.mss)) as i64 {
            return None;
        }
        let hole = board.hole(board.retransmitted.max(stream.una));
        let edge = self.peer_edge(stream);
        let outgoing = match hole {
            Some((start, end)) if start + u64::from(config.mss) <= edge => {
                self.resend_hole(stream, start, end, config)
            }
            Some(_) => return None,
            None => {
                let fresh = stream.segment_at(stream.max, stream.stream_end(), config);
                if fresh.is_empty() || fresh.end_of_data() > edge {
                    return None;
                }
                fresh
            }
        };
        if let Some(board) = &mut self.scoreboard {
            board.counter += 1;
        }
        Some(outgoing)
    }

    fn resend_hole(
        &mut self,
        stream: &mut Stream,
        start: u64,
        end: u64,
        config: &Config,
    ) -> Outgoing {
        if let Some(outgoing) = self.answer_obsolete(stream, start, end, config) {
            return outgoing;
        }
        let outgoing = stream.segment_at(start, end, config);
        if let Some(line) = &mut stream.line {
            line.on_retransmitted(outgoing.end());
        }
        if let Some(board) = &mut self.scoreboard {
            board.retransmitted = outgoing.end();
        }
        outgoing
    }
}
