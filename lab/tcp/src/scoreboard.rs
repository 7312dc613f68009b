//! Selective acknowledgements, and their consequences for sending.

use comity_congestion::Ranges;

/// The sender's scoreboard: which bytes above the cumulative acknowledgement have arrived.
///
/// It holds sorted ranges, so its cost grows with the number of holes and not with the window.
/// Source: RFC 6675, sections 3 and 4; each method names the procedure that it implements.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    /// The acknowledged ranges.
    ranges: Ranges<u64>,
    /// `HighRxt`: the offset after the highest byte retransmitted in this recovery.
    pub(super) retransmitted: u64,
    /// `RescueRxt`: once the acknowledgement passes this offset, the last segment may be
    /// retransmitted if no other can be. It is the end of the first segment that this recovery
    /// retransmitted, and [`u64::MAX`] after that rescue.
    rescue_after: Option<u64>,
    /// The pipe in segments, if it is counted instead of computed.
    pub(super) counter: i64,
    /// Whether the current acknowledgement began the recovery. With the counted pipe, only the
    /// first hole is sent in response to it.
    pub(super) begins: bool,
}

impl Scoreboard {
    /// `Update()`: adds one block; returns whether any of it was new.
    pub(super) fn insert(&mut self, start: u64, end: u64) -> bool {
        self.ranges.insert(start..end, ()) > 0
    }

    /// Removes the ranges that the cumulative acknowledgement covers.
    pub(super) fn advance(&mut self, una: u64) {
        self.ranges.drop_below(una);
        self.retransmitted = self.retransmitted.max(una);
    }

    /// Ends the recovery after a timeout, and keeps the ranges unless the peer reneged.
    ///
    /// RFC 2018, section 8, discards all ranges, because the peer may have dropped selectively
    /// acknowledged data. A peer that did so reveals it: its cumulative acknowledgement stops where
    /// a range begins. Without that evidence the ranges stay valid, as erratum 1610 and RFC 6675,
    /// section 5.1, allow.
    pub(super) fn on_timeout(&mut self, una: u64) {
        let reneged = self
            .ranges
            .as_slice()
            .first()
            .is_some_and(|&(start, ..)| start <= una);
        let ranges = core::mem::take(&mut self.ranges);
        self.clear();
        if !reneged {
            self.ranges = ranges;
        }
    }

    /// Removes all state.
    pub(super) fn clear(&mut self) {
        self.ranges.clear();
        self.retransmitted = 0;
        self.rescue_after = None;
        self.counter = 0;
    }

    pub(super) fn heap_memory(&self) -> usize {
        self.ranges.heap_memory()
    }

    pub(super) fn begin_recovery(&mut self, una: u64) {
        self.retransmitted = una;
        self.rescue_after = None;
        self.begins = true;
    }

    /// Records that the first missing segment was retransmitted.
    pub(super) fn on_first_retransmitted(&mut self, end: u64) {
        self.retransmitted = self.retransmitted.max(end);
        self.rescue_after.get_or_insert(self.retransmitted);
    }

    /// Whether rule 4 of `NextSeg()` is still available, and the first retransmission of this
    /// recovery has arrived.
    pub(super) fn may_rescue(&self, una: u64) -> bool {
        self.rescue_after.is_none_or(|after| una > after)
    }

    /// Records that the last segment was retransmitted.
    pub(super) const fn on_rescued(&mut self) {
        self.rescue_after = Some(u64::MAX);
    }

    /// The offset after the highest selectively acknowledged byte.
    pub(super) fn highest(&self) -> Option<u64> {
        self.ranges.as_slice().last().map(|&(_, end, ())| end)
    }

    /// The first bytes at or after `from` that are not acknowledged, `[start, end)`.
    pub(super) fn missing(&self, from: u64) -> (u64, u64) {
        match self.ranges.ending_after(from) {
            [(start, ..), ..] if from < *start => (from, *start),
            [(_, end, ()), behind @ ..] => (*end, behind.first().map_or(u64::MAX, |range| range.0)),
            [] => (from, u64::MAX),
        }
    }

    /// The bytes below `offset` that were acknowledged selectively.
    pub(super) fn acknowledged_below(&self, offset: u64) -> u64 {
        self.ranges.covered(0..offset)
    }

    /// `IsLost()`: every unacknowledged byte below the returned offset is lost, none above it is.
    ///
    /// A byte is lost when `threshold` separate ranges, or more than `threshold − 1` full segments,
    /// were acknowledged above it.
    pub(super) fn lost_below(&self, mss: u32, threshold: u8) -> u64 {
        let enough_bytes = u64::from(threshold.saturating_sub(1)) * u64::from(mss);
        let mut bytes = 0;
        for (ranges, &(start, end, ())) in self.ranges.as_slice().iter().rev().enumerate() {
            bytes += end - start;
            if bytes > enough_bytes || ranges + 1 >= usize::from(threshold) {
                return start;
            }
        }
        0
    }

    /// `SetPipe()`: the estimated number of bytes between `una` and `max` that are in the network.
    pub(super) fn pipe(&self, una: u64, max: u64, mss: u32, threshold: u8) -> u64 {
        let unacknowledged = |offset: u64| {
            let offset = offset.clamp(una, max);
            (offset - una) - self.acknowledged_below(offset)
        };
        unacknowledged(max) - unacknowledged(self.lost_below(mss, threshold))
            + unacknowledged(self.retransmitted)
    }

    /// The first hole at or after `from` that lies below the highest acknowledged byte.
    pub(super) fn hole(&self, from: u64) -> Option<(u64, u64)> {
        let mut start = from;
        for &(range_start, range_end, ()) in self.ranges.as_slice() {
            if start < range_start {
                return Some((start, range_start));
            }
            start = start.max(range_end);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    const BYTES: u64 = 150;
    const MSS: u32 = 10;

    /// `IsLost()` of RFC 6675, section 4, literally: byte by byte.
    fn is_lost(sacked: &[bool], at: usize, threshold: u8) -> bool {
        let above = sacked.get(at + 1..).unwrap_or(&[]);
        let bytes = above.iter().filter(|&&sacked| sacked).count() as u64;
        let mut sequences = 0;
        let mut inside = false;
        for &sacked in above {
            sequences += u64::from(sacked && !inside);
            inside = sacked;
        }
        sequences >= u64::from(threshold) || bytes > u64::from(threshold - 1) * u64::from(MSS)
    }

    proptest! {
        /// The ranges agree with a table of bytes: `Update()`, `IsLost()`, `SetPipe()`, and the
        /// holes.
        #[test]
        fn ranges_agree_with_bytes(
            blocks in prop::collection::vec((0..BYTES, 1_u64..40), 0..12),
            una in 0_u64..60,
            retransmitted in 0_u64..BYTES,
            threshold in 1_u8..5,
        ) {
            let mut board = Scoreboard::default();
            let mut sacked = vec![false; BYTES as usize];
            for (start, length) in blocks {
                let end = (start + length).min(BYTES);
                let range = &mut sacked[start as usize..end as usize];
                let news = range.iter().any(|&sacked| !sacked);
                range.fill(true);
                prop_assert_eq!(board.insert(start, end), news);
            }
            board.retransmitted = retransmitted;
            board.advance(una);
            sacked[..una as usize].fill(false);
            let retransmitted = retransmitted.max(una);

            let lost_below = board.lost_below(MSS, threshold);
            let mut pipe = 0;
            let mut hole = None;
            let highest = sacked.iter().rposition(|&sacked| sacked);
            prop_assert_eq!(board.highest(), highest.map(|at| at as u64 + 1));
            for at in una..BYTES {
                if sacked[at as usize] {
                    continue;
                }
                let lost = is_lost(&sacked, at as usize, threshold);
                prop_assert_eq!(at < lost_below, lost, "byte {}", at);
                pipe += u64::from(!lost) + u64::from(at < retransmitted);
                let is_below = highest.is_some_and(|highest| at < highest as u64);
                if hole.is_none() && at >= retransmitted && is_below {
                    hole = Some(at);
                }
            }
            prop_assert_eq!(board.pipe(una, BYTES, MSS, threshold), pipe);
            prop_assert_eq!(board.hole(retransmitted).map(|(start, _)| start), hole);

            let (start, end) = board.missing(retransmitted);
            let is_missing = |at: &u64| !sacked.get(*at as usize).copied().unwrap_or(false);
            prop_assert_eq!(start, (retransmitted..).find(is_missing).unwrap());
            let next = (start..BYTES).find(|at| !is_missing(at));
            prop_assert_eq!(end, next.unwrap_or(u64::MAX));
        }
    }

    #[test]
    fn blocks_merge_and_report_new_bytes() {
        let mut board = Scoreboard::default();
        assert!(board.insert(20, 30));
        assert!(!board.insert(20, 30));
        assert!(!board.insert(22, 28));
        assert!(board.insert(40, 50));
        assert!(board.insert(30, 35));
        assert_eq!(board.ranges.as_slice(), [(20, 35, ()), (40, 50, ())]);
        assert!(board.insert(10, 60));
        assert_eq!(board.ranges.as_slice(), [(10, 60, ())]);
        board.advance(15);
        assert_eq!(board.ranges.as_slice(), [(15, 60, ())]);
        board.advance(60);
        assert!(board.highest().is_none());
    }

    #[test]
    fn a_timeout_keeps_what_arrived_unless_the_peer_reneged() {
        let mut board = Scoreboard::default();
        board.insert(20, 30);
        board.retransmitted = 15;
        board.on_rescued();
        board.on_timeout(19);
        assert_eq!(board.ranges.as_slice(), [(20, 30, ())]);
        assert!(board.retransmitted == 0 && board.rescue_after.is_none());
        board.on_timeout(20);
        assert!(board.ranges.as_slice().is_empty());
    }

    #[test]
    fn pipe_by_hand() {
        // Ten segments of 10 bytes, 0 to 100. Segments 2, 4, 5 and 6 arrived.
        let mut board = Scoreboard::default();
        board.insert(20, 30);
        board.insert(40, 70);
        // Three segments (30 bytes > 2 * 10) above 40: 0, 1 and 3 are lost, 7, 8 and 9 are not.
        assert_eq!(board.lost_below(10, 3), 40);
        // 60 bytes are unacknowledged, 30 of them lost, none retransmitted.
        assert_eq!(board.pipe(0, 100, 10, 3), 30);
        assert_eq!(board.hole(0), Some((0, 20)));
        assert_eq!(board.hole(20), Some((30, 40)));
        assert_eq!(board.hole(40), None);
        // Segment 0 is retransmitted: it is in the pipe again.
        board.retransmitted = 10;
        assert_eq!(board.pipe(0, 100, 10, 3), 40);
        // 0 and 1 acknowledged: 70..100 and the lost 30..40 remain.
        board.advance(30);
        assert_eq!(board.pipe(30, 100, 10, 3), 30);
    }

    #[test]
    fn two_segments_above_a_hole_do_not_mark_it_lost() {
        let mut board = Scoreboard::default();
        board.insert(10, 30);
        assert_eq!(board.lost_below(10, 3), 0, "two full segments");
        board.insert(30, 31);
        assert_eq!(board.lost_below(10, 3), 10, "more than two full segments");
        let mut board = Scoreboard::default();
        for start in [10, 20, 30] {
            board.insert(start, start + 1);
        }
        assert_eq!(board.lost_below(10, 3), 10, "three separate ranges");
    }
}
