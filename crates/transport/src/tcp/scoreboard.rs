//! What the peer acknowledged selectively, and what follows for sending.

use super::ranges::Ranges;

/// The sender's scoreboard: which bytes above the cumulative acknowledgement have arrived.
///
/// Kept as sorted ranges, so that its cost is that of the number of holes and not of the window.
/// Source: RFC 6675, sections 3 and 4; the names of its procedures are given at each method.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    /// What was acknowledged.
    ranges: Ranges,
    /// `HighRxt`: the offset after the highest byte retransmitted in this recovery.
    pub(super) retransmitted: u64,
    /// `RescueRxt`: the offset that the acknowledgement has to pass before the last segment may be
    /// retransmitted because nothing else can be: the end of the first segment that this recovery
    /// sent again, and [`u64::MAX`] once that was done.
    rescue_after: Option<u64>,
    /// The pipe in segments, where it is counted instead of computed.
    pub(super) counter: i64,
    /// The recovery began with the acknowledgement that is being dealt with. With the counted pipe
    /// nothing but the first hole is sent in answer to it.
    pub(super) begins: bool,
}

impl Scoreboard {
    /// `Update()`: takes in one block; whether it said anything new.
    pub(super) fn insert(&mut self, start: u64, end: u64) -> bool {
        self.ranges.insert(start, end, ())
    }

    /// Forgets what the cumulative acknowledgement covers.
    pub(super) fn advance(&mut self, una: u64) {
        self.ranges.drop_below(una);
        self.retransmitted = self.retransmitted.max(una);
    }

    /// Ends with a timeout what belongs to a recovery, and keeps what arrived, unless the peer
    /// reneged.
    ///
    /// RFC 2018, section 8, asks to forget everything, since the peer may have dropped what it had
    /// acknowledged selectively. One that did shows it: its cumulative acknowledgement stops where
    /// a range begins. Without that proof the ranges hold, as erratum 1610 and RFC 6675, section
    /// 5.1, allow.
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

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.ranges.clear();
        self.retransmitted = 0;
        self.rescue_after = None;
        self.counter = 0;
    }

    pub(super) fn heap_memory(&self) -> usize {
        self.ranges.heap_memory()
    }

    /// Begins a recovery at `una`.
    pub(super) fn begin_recovery(&mut self, una: u64) {
        self.retransmitted = una;
        self.rescue_after = None;
        self.begins = true;
    }

    /// The first segment that is missing was answered for.
    pub(super) fn on_first_resent(&mut self, end: u64) {
        self.retransmitted = self.retransmitted.max(end);
        self.rescue_after.get_or_insert(self.retransmitted);
    }

    /// Whether rule 4 of `NextSeg()` may still be used, and that what this recovery sent first does
    /// not fail to arrive.
    pub(super) fn may_rescue(&self, una: u64) -> bool {
        self.rescue_after.is_none_or(|after| una > after)
    }

    /// The last segment was retransmitted.
    pub(super) const fn on_rescued(&mut self) {
        self.rescue_after = Some(u64::MAX);
    }

    /// The offset after the highest selectively acknowledged byte.
    pub(super) fn highest(&self) -> Option<u64> {
        self.ranges.as_slice().last().map(|&(_, end, ())| end)
    }

    /// The first bytes at or after `from` that are not known to have arrived, `[start, end)`.
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

    /// `SetPipe()`: the bytes between `una` and `max` that are thought to be in the network.
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

    /// `IsLost()` of RFC 6675, section 4, as it is written: byte by byte.
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
        /// The ranges say what a table of bytes says: `Update()`, `IsLost()`, `SetPipe()`, and the
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
    fn blocks_merge_and_say_whether_they_are_news() {
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
        // Unacknowledged: 60 bytes, lost of them 30, nothing retransmitted.
        assert_eq!(board.pipe(0, 100, 10, 3), 30);
        assert_eq!(board.hole(0), Some((0, 20)));
        assert_eq!(board.hole(20), Some((30, 40)));
        assert_eq!(board.hole(40), None);
        // Segment 0 retransmitted: it is in the pipe once more.
        board.retransmitted = 10;
        assert_eq!(board.pipe(0, 100, 10, 3), 40);
        // 0 and 1 acknowledged: 70..100 and the lost 30..40 remain.
        board.advance(30);
        assert_eq!(board.pipe(30, 100, 10, 3), 30);
    }

    #[test]
    fn two_segments_above_are_not_enough() {
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
