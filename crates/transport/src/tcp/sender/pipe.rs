//! What may be sent while a SACK recovery runs: the pipe decides instead of the window.

use comity_units::Time;

use super::super::config::Config;
use super::{Outgoing, Sender, goes_by_scoreboard};

impl Sender {
    /// On the way back from a timeout, moves `next` over what arrived. Returns how many bytes below `next`
    /// the peer holds, which are not in the network, and where the bytes that it misses end.
    pub(super) fn pass_over_arrived(&mut self, config: &Config) -> (u64, u64) {
        let Some(board) = &self.scoreboard else {
            return (0, u64::MAX);
        };
        if self.next >= self.max || !goes_by_scoreboard(config) {
            return (0, u64::MAX);
        }
        let (start, end) = board.missing(self.next);
        self.next = start;
        if start < self.max {
            (board.acknowledged_below(start), end)
        } else {
            (0, u64::MAX)
        }
    }

    /// `NextSeg()` of RFC 6675, section 4, under the pipe of its section 5, step C.
    pub(super) fn next_by_scoreboard(&mut self, now: Time, config: &Config) -> Option<Outgoing> {
        let threshold = config.recovery.duplicate_threshold;
        let Some(board) = &self.scoreboard else {
            return self.next_in_window(now, config);
        };
        let pipe = board.pipe(self.una, self.max, config.mss, threshold);
        if pipe + u64::from(config.mss) > self.window {
            return None;
        }
        let hole = board.hole(board.retransmitted.max(self.una));
        let lost_below = board.lost_below(config.mss, threshold);
        let rescued = board.rescued;
        // Rule 1: the first hole that is known to be lost.
        if let Some((start, end)) = hole
            && start < lost_below
        {
            return Some(self.resend_hole(start, end, config));
        }
        // Rule 2: new data.
        let fresh = self.segment_at(self.max, self.stream_end(), config);
        if !fresh.is_empty() && fresh.end_of_data() <= self.una + self.peer_window {
            return Some(fresh);
        }
        // Rule 3: the first hole, lost or not.
        if let Some((start, end)) = hole {
            return Some(self.resend_hole(start, end, config));
        }
        // Rule 4: once, the last segment outstanding, to have its acknowledgement drive the recovery. Only
        // when it is not acknowledged; the RFC would also repeat once more what was sent again just now.
        if !rescued && board.highest().is_none_or(|highest| highest < self.max) {
            let start = self.max.saturating_sub(u64::from(config.mss)).max(self.una);
            if let Some(board) = &mut self.scoreboard {
                board.rescued = true;
            }
            return Some(self.segment_at(start, self.max, config));
        }
        None
    }

    /// Holes first, then new data, while fewer segments are counted in the pipe than the window holds.
    pub(super) fn next_by_counter(&mut self, now: Time, config: &Config) -> Option<Outgoing> {
        let Some(board) = &self.scoreboard else {
            return self.next_in_window(now, config);
        };
        if board.begins || board.counter >= (self.window / u64::from(config.mss)) as i64 {
            return None;
        }
        let hole = board.hole(board.retransmitted.max(self.una));
        let edge = self.una + self.peer_window;
        let outgoing = match hole {
            Some((start, end)) if start + u64::from(config.mss) <= edge => {
                self.resend_hole(start, end, config)
            }
            Some(_) => return None,
            None => {
                let fresh = self.segment_at(self.max, self.stream_end(), config);
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

    fn resend_hole(&mut self, start: u64, end: u64, config: &Config) -> Outgoing {
        let outgoing = self.segment_at(start, end, config);
        if let Some(board) = &mut self.scoreboard {
            board.retransmitted = outgoing.end();
        }
        outgoing
    }
}
