//! Skipped segments, which test the peer's acknowledgements. [`super::skips`] keeps the record.
//!
//! Occasionally the sender skips a segment of new data. The segment counts as sent, but it is held
//! back until the recovery would retransmit it. Then it leaves for the first time. To the peer this
//! is a loss like any other. A peer that hides losses acknowledges the segment before it left,
//! which no honest peer can do. The sender knows that nothing was lost, so it reports the loss
//! neither to the controller nor to the recovery.
//!
//! ```text
//! P(skip)  = 1 / max(D, 6 · W, 64 · min(W, 2 · W − R), 16 · W)
//! D        = 64 if a window of data without deadlines waits, 256 otherwise
//! W        = the window that the flow can use
//! R        = the window of the peer, or the send buffer if it is smaller, all in segments
//! 2 W > R  : a hole holds up the flow, because neither of them moves
//! 16 W     : for a controller that needs acknowledgements in order, which a hole interrupts
//! ```
//!
//! A keyed hash of the offset decides, so the peer cannot predict which segments are tests. After a
//! skipped segment, the next is skipped with a probability of 1/2, to detect a peer that hides only
//! larger holes. A recovery that counts duplicates repairs one hole per round trip. It has one test
//! at a time, of one segment.
//!
//! A peer can also claim that a retransmission was unnecessary, which undoes a reduction of the
//! window. The sender cannot verify that. It undoes at most half of the reductions for this reason,
//! beyond the first eight.
//!
//! The same setting closes two other ways to inflate a window (Savage and others, 1999):
//! acknowledgements of parts of segments count once the segment is complete, and duplicates inflate
//! a window to at most four times its size.
//!
//! A segment is skipped only if enough segments follow it to reveal the hole: three, or eight if
//! duplicates are counted. It is not skipped if it has a FIN, or after a timeout until the peer
//! responds. Data with deadlines is skipped only if the repair, which may need four round trips and
//! 200 ms, cannot miss one.
//!
//! Source: Sherwood, Bhattacharjee and Braud, "Misbehaving TCP receivers can cause Internet-wide
//! congestion collapse", CCS 2005, section 5 (randomly skipped segments); Savage and others, "TCP
//! congestion control with a misbehaving receiver", CCR 29(5), 1999. Differs from the former in: 1.
//! the congestion window does not change, and the recovery decides when the segment leaves; 2. the
//! probability follows the window.

use comity_congestion::{Ack, Event};
use comity_units::{DataSize, Span, Time};

use super::super::config::Config;
use super::super::segment::Flags;
use super::stream::{Acknowledgement, Outgoing, Stream};
use super::transfer::Transfer;

/// The mean distance of tests in segments, while more than a window of data is waiting and
/// otherwise.
const DISTANCE_IN_BULK: u64 = 64;
const DISTANCE: u64 = 256;
/// The minimum mean distance in windows. After a hole, the receiver acknowledges every segment for
/// a round trip.
const DISTANCE_IN_WINDOWS: u64 = 6;
/// The same if a hole stalls the flow for a round trip.
const DISTANCE_OF_STALLS: u64 = 64;
/// The same for a controller that needs acknowledgements in order.
const DISTANCE_OF_HOLES: u64 = 16;
/// The number of following segments that reveal the hole to a time-based recovery, and to one that
/// counts duplicates.
const FOLLOWING: u64 = 3;
const FOLLOWING_DUPLICATES: u64 = 8;
/// The maximum inflated window, in windows. With an honest receiver it is two: the window is
/// halved, and duplicates count the data that had been in flight.
const MAX_INFLATION: u64 = 4;
/// The expected maximum duration of a repair in round trips, and the allowance for their growth.
const REPAIR: u64 = 4;
const REPAIR_SLACK: Span = Span::from_millis(200);

impl Transfer {
    /// Whether an acknowledgement is false: it covers a segment that has not left.
    pub(super) fn is_false(&mut self, stream: &Stream, ack: &Acknowledgement<'_>) -> bool {
        let Some(skips) = &mut self.skips else {
            return false;
        };
        let (current, una, max) = (stream.lowest_current(), stream.una, stream.max);
        skips.on_acknowledgement(ack, current, una, max)
    }

    /// Decides whether to hold back the segment that was just recorded as sent. The stream had been
    /// sent up to `before`.
    pub(super) fn skip_segment(
        &mut self,
        stream: &Stream,
        before: u64,
        outgoing: Outgoing,
        now: Time,
        config: &Config,
    ) -> bool {
        if outgoing.start != before || outgoing.length == 0 || outgoing.fin {
            return false;
        }
        let distance = self.distance(stream, now, config);
        let (Some(skips), Some(distance)) = (&mut self.skips, distance) else {
            return false;
        };
        if !skips.draws(before, distance) {
            return false;
        }
        skips.skip((before, outgoing.end()), self.flight.is_none());
        if let Some(flight) = &mut self.flight {
            flight.skip_last();
        }
        self.statistics.skipped += 1;
        true
    }

    /// The mean distance of tests for a segment that leaves now; `None` if it cannot be a test.
    fn distance(&self, stream: &Stream, now: Time, config: &Config) -> Option<u64> {
        let skips = self.skips.as_ref()?;
        let upcoming = skips.upcoming;
        let mss = u64::from(config.mss);
        let (may_test, following) = match &self.flight {
            Some(flight) => (flight.probe.end.is_none(), FOLLOWING * mss),
            None => {
                let following = FOLLOWING_DUPLICATES * mss;
                // Without a tail loss probe, a window that closes now would end in a timeout.
                let has_room = self.room_at(stream, stream.max) >= following;
                (has_room && !skips.has_open(), following)
            }
        };
        let smoothed = self.clock.rtt.smoothed(&config.rtt)?;
        let repaired_at = now + smoothed * REPAIR + REPAIR_SLACK;
        let line = stream.line.as_ref();
        let is_in_time =
            repaired_at < upcoming.due && line.is_none_or(|line| line.is_quiet(repaired_at));
        let reports_reduction = self.marks.of_last().1.contains(Flags::CWR);
        if !may_test
            || !is_in_time
            || reports_reduction
            || config.metered
            || stream.una == 0
            || stream.expiries > 0
        {
            return None;
        }
        let waiting = stream
            .end
            .saturating_sub(stream.max)
            .saturating_add(upcoming.waiting);
        let peer = stream.peer_window.min(upcoming.buffer);
        let usable = self.control.window().min(peer);
        let window = usable.min(stream.in_flight() + waiting);
        if waiting.min(window) < following {
            return None;
        }
        let is_bulk = waiting >= usable && line.is_none() && upcoming.due.is_never();
        let stall = (2 * window).saturating_sub(peer).min(window);
        let in_windows = match self.answers {
            Some(_) => DISTANCE_OF_HOLES,
            None => DISTANCE_IN_WINDOWS,
        };
        let base = if is_bulk { DISTANCE_IN_BULK } else { DISTANCE };
        let least = (in_windows * window).max(DISTANCE_OF_STALLS * stall);
        Some(base.max(least / mss))
    }

    /// Handles a duplicate acknowledgement for a recovery that counts them. Returns whether a test
    /// caused it. The test then leaves, if there were enough duplicates, and the window does not
    /// change.
    pub(super) fn on_duplicate_of_test(
        &mut self,
        stream: &mut Stream,
        now: Time,
        config: &Config,
    ) -> bool {
        if self.repair.is_recovering() {
            return false;
        }
        let threshold = config.recovery.duplicate_threshold;
        let board = self.scoreboard.as_ref().filter(|_| config.sack);
        let arrived = board.map(|board| board.acknowledged_below(stream.max));
        let is_lost =
            board.is_some_and(|board| board.lost_below(config.mss, threshold) > stream.una);
        let Some(skips) = &mut self.skips else {
            return false;
        };
        let Some(duplicates) = skips.on_duplicate(stream.una, arrived, config.mss) else {
            return false;
        };
        let news = skips.take_news(self.control.window());
        if (is_lost || duplicates >= u32::from(threshold)) && skips.take_answer() {
            self.repair.resend_first();
            self.restart_timer(stream, now);
        }
        if news > 0 && self.delivery.is_none() {
            // A hole that the sender caused itself must not delay the growth of the window.
            let in_flight = stream.in_flight();
            self.control.report(Event::Ack(&Ack {
                now,
                acked: DataSize::new(news),
                rtt: None,
                in_flight: DataSize::new(in_flight),
                app_limited: in_flight + u64::from(config.mss) <= self.control.window(),
                in_recovery: false,
                marked: 0,
                packets: (news / u64::from(config.mss)).max(1) as u32,
                sample: None,
            }));
        }
        true
    }

    /// The bytes of an advance that were not reported to the controller yet.
    pub(super) fn take_unreported(&mut self, acked: u64) -> u64 {
        let skips = self.skips.as_mut();
        skips.map_or(acked, |skips| skips.take_unreported(acked))
    }

    /// Whether to undo a reduction because the peer claims that nothing was lost.
    pub(super) fn believes_in_undo(&mut self) -> bool {
        let reductions = self.statistics.fast_retransmits + self.statistics.timeouts;
        let skips = self.skips.as_mut();
        skips.is_none_or(|skips| skips.believes_in_undo(reductions))
    }

    /// The acknowledged bytes to report to the controller.
    pub(super) fn count_whole(&mut self, bytes: u64, least: u64) -> u64 {
        let skips = self.skips.as_mut();
        skips.map_or(bytes, |skips| skips.count_whole(bytes, least))
    }

    /// The inflated window, up to the limit for duplicates: a receiver may repeat them endlessly.
    pub(super) fn limit_inflation(&self, inflated: u64) -> u64 {
        match self.skips {
            Some(_) => inflated.min(self.control.window().saturating_mul(MAX_INFLATION)),
            None => inflated,
        }
    }

    /// The bytes that arrived after an open test.
    #[inline]
    pub(super) fn test_inflation(&self) -> u64 {
        let skips = self.skips.as_ref();
        skips.map_or(0, |skips| skips.inflation().min(self.control.window()))
    }
}
