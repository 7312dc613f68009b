//! The record of skipped segments, and their evidence about an acknowledgement.

use alloc::collections::VecDeque;

use comity_units::{KeyedHash, Seed, Time};

use super::stream::Acknowledgement;

/// The data that an application is about to submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upcoming {
    /// The bytes that it will submit as the window permits.
    pub waiting: u64,
    /// When its first unacknowledged data becomes useless; [`Time::MAX`] for never.
    pub due: Time,
    /// The maximum number of unacknowledged bytes that the host holds.
    pub buffer: u64,
}

/// After a skipped segment, one in this many is skipped as well.
const RUN: u64 = 2;
/// The number of reductions that are undone unconditionally.
const UNDONE: u32 = 8;

/// The tests of a sender.
#[derive(Debug)]
pub(super) struct Skips {
    hash: KeyedHash,
    /// The segments that count as sent but are held back, in the order of the stream.
    held: VecDeque<(u64, u64)>,
    /// The test of a recovery that counts duplicates, until it is acknowledged.
    open: Option<(u64, u64)>,
    /// Whether the open test, or its replacement, was sent.
    is_answered: bool,
    /// The duplicates that the open test caused, and the bytes that arrived after it.
    duplicates: u32,
    inflation: u64,
    /// The number of these bytes that were reported to the controller.
    reported: u64,
    /// Reductions that were undone.
    undone: u32,
    /// Acknowledged bytes of segments that are not acknowledged in full.
    partial: u64,
    pub(super) upcoming: Upcoming,
    is_contradicted: bool,
}

impl Skips {
    pub(super) const fn new(seed: Seed) -> Self {
        Self {
            hash: KeyedHash::new(seed),
            held: VecDeque::new(),
            open: None,
            is_answered: false,
            duplicates: 0,
            inflation: 0,
            reported: 0,
            undone: 0,
            partial: 0,
            upcoming: Upcoming {
                waiting: 0,
                due: Time::MAX,
                buffer: u64::MAX,
            },
            is_contradicted: false,
        }
    }

    /// Whether the peer acknowledged a segment before it left.
    pub(super) const fn is_contradicted(&self) -> bool {
        self.is_contradicted
    }

    /// Whether any byte of a range has not left.
    pub(super) fn holds(&self, start: u64, end: u64) -> bool {
        let overlaps = |held: &(u64, u64)| held.0 < end && start < held.1;
        self.held.iter().any(overlaps)
    }

    /// Records that a range leaves; returns whether any byte of it had been skipped.
    pub(super) fn on_left(&mut self, start: u64, end: u64) -> bool {
        if self.held.back().is_none_or(|last| last.1 <= start) {
            return false;
        }
        let before = self.held.len();
        self.held.retain(|held| held.1 <= start || end <= held.0);
        self.held.len() < before
    }

    /// Whether to skip the segment at the offset `start`, with this mean distance between tests.
    pub(super) fn draws(&self, start: u64, distance: u64) -> bool {
        let is_behind = self.held.back().is_some_and(|last| last.1 == start);
        let one_in = if is_behind { RUN } else { distance };
        self.hash.of(start).is_multiple_of(one_in)
    }

    /// Records that a segment is skipped. `is_counted`: whether duplicates reveal the hole.
    pub(super) fn skip(&mut self, range: (u64, u64), is_counted: bool) {
        self.held.push_back(range);
        if is_counted {
            self.open = Some(range);
            self.is_answered = false;
        }
    }

    /// Whether a test is unacknowledged for which duplicates are counted.
    pub(super) const fn has_open(&self) -> bool {
        self.open.is_some()
    }

    /// Handles a duplicate acknowledgement of `una`, after which `arrived` bytes arrived, or one
    /// segment of `mss` bytes for each duplicate. Returns the number of duplicates that a test
    /// caused; `None` if none caused it.
    pub(super) fn on_duplicate(&mut self, una: u64, arrived: Option<u64>, mss: u32) -> Option<u32> {
        self.open.filter(|&(start, _)| start == una)?;
        self.duplicates = self.duplicates.saturating_add(1);
        let counted = u64::from(self.duplicates) * u64::from(mss);
        self.inflation = arrived.unwrap_or(counted);
        Some(self.duplicates)
    }

    /// The bytes after the open test that were not reported to the controller yet, at most `limit`
    /// in total.
    pub(super) fn take_news(&mut self, limit: u64) -> u64 {
        let news = self.inflation.min(limit).saturating_sub(self.reported);
        self.reported += news;
        news
    }

    /// The bytes of an advance by `acked` that were not reported to the controller yet.
    pub(super) fn take_unreported(&mut self, acked: u64) -> u64 {
        acked.saturating_sub(core::mem::take(&mut self.reported))
    }

    /// Whether the open test leaves now, for the first time. It, or its replacement, leaves once.
    pub(super) fn take_answer(&mut self) -> bool {
        let is_here = self.open.is_some_and(|(start, end)| self.holds(start, end));
        is_here && !core::mem::replace(&mut self.is_answered, true)
    }

    /// The bytes that arrived after the open test. They have left the network, and make room for
    /// the same amount.
    #[inline]
    pub(super) const fn inflation(&self) -> u64 {
        self.inflation
    }

    /// The acknowledged bytes that count for the growth of the window, when `bytes` more are
    /// acknowledged and whole segments have at least `least` bytes. Otherwise a receiver could
    /// split its acknowledgements to inflate the window.
    pub(super) const fn count_whole(&mut self, bytes: u64, least: u64) -> u64 {
        self.partial += bytes;
        if self.partial < least {
            return 0;
        }
        core::mem::replace(&mut self.partial, 0)
    }

    /// Whether to undo one of `reductions` reductions because the peer claims that nothing was
    /// lost.
    pub(super) fn believes_in_undo(&mut self, reductions: u32) -> bool {
        let is_believed = self.undone < UNDONE.max(reductions / 2);
        self.undone += u32::from(is_believed);
        is_believed
    }

    /// Handles the advance of the acknowledgement to `una`. Returns the bytes that never left: the
    /// peer may pass over abandoned data.
    pub(super) fn on_advance(&mut self, una: u64) -> u64 {
        self.forget_duplicates();
        let mut abandoned = 0;
        while let Some(&(start, end)) = self.held.front()
            && end <= una
        {
            self.held.pop_front();
            abandoned += end - start;
        }
        self.open = self.open.filter(|&(_, end)| una < end);
        abandoned
    }

    /// Resets the duplicates, because the acknowledgement advances or everything outstanding counts
    /// as lost.
    pub(super) const fn forget_duplicates(&mut self) {
        self.duplicates = 0;
        self.inflation = 0;
    }

    /// Processes an acknowledgement. Returns whether it, or an earlier one, was false. For the
    /// arguments, see `contradicts`.
    pub(super) fn on_acknowledgement(
        &mut self,
        ack: &Acknowledgement<'_>,
        current: u64,
        una: u64,
        max: u64,
    ) -> bool {
        self.is_contradicted |= self.contradicts(ack, current, una, max);
        self.is_contradicted
    }

    /// Whether an acknowledgement covers a segment from the offset `current` on that has not left;
    /// the peer may pass over earlier data. Blocks outside of the data in flight are old, duplicate
    /// or damaged, and prove nothing.
    fn contradicts(&self, ack: &Acknowledgement<'_>, current: u64, una: u64, max: u64) -> bool {
        let una = una.max(ack.offset);
        let is_covered = |held: &(u64, u64)| {
            let is_sacked = |&(start, end): &(u64, u64)| {
                una <= start && end <= max && start < held.1.min(end) && held.0 < end
            };
            ack.offset > held.0 || ack.sacked.iter().any(is_sacked)
        };
        let mut held = self.held.iter().filter(|held| held.0 >= current);
        held.any(is_covered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack<'a>(offset: u64, sacked: &'a [(u64, u64)]) -> Acknowledgement<'a> {
        Acknowledgement {
            offset,
            wire: offset,
            window: 1_000,
            sacked,
            echoed: None,
            duplicate: None,
            has_echo: false,
            peer_clock: None,
            is_pure: true,
        }
    }

    #[test]
    fn only_unsent_bytes_contradict_an_acknowledgement() {
        let mut skips = Skips::new(Seed::new(1));
        skips.held.extend([(101, 201), (301, 401)]);
        let is_false = |skips: &Skips, offset, sacked: &[(u64, u64)]| {
            skips.contradicts(&ack(offset, sacked), 1, 1, 1_001)
        };
        assert!(!is_false(&skips, 101, &[]));
        assert!(is_false(&skips, 102, &[]) && is_false(&skips, 1_001, &[]));
        assert!(!is_false(&skips, 101, &[(201, 301), (401, 1_001)]));
        assert!(is_false(&skips, 101, &[(201, 302)]));
        assert!(is_false(&skips, 1, &[(51, 102)]));
        // Blocks that a middlebox with another view of the numbers might produce.
        for block in [(301, 1_002), (0, 400), (400, 301), (2_000, 3_000)] {
            assert!(!is_false(&skips, 1, &[block]), "{block:?}");
        }
        let passed = ack(102, &[]);
        assert!(!skips.contradicts(&passed, 201, 1, 1_001), "abandoned");
        assert!(!skips.on_left(1, 101) && !skips.on_left(201, 301) && !skips.on_left(401, 501));
        assert!(skips.on_left(150, 160), "a part of it");
        assert!(!is_false(&skips, 301, &[]) && is_false(&skips, 302, &[]));
        assert!(skips.on_left(301, 401));
        assert!(!is_false(&skips, 1_001, &[]));
    }

    #[test]
    fn tests_have_their_mean_distance_and_half_are_followed_by_another() {
        let mut skips = Skips::new(Seed::new(7));
        let (mut tests, mut longer) = (0_u32, 0_u32);
        for segment in 0..100_000 {
            let start = 1 + 1_448 * segment;
            let is_behind = skips.held.back().is_some_and(|last| last.1 == start);
            if skips.draws(start, 100) {
                skips.skip((start, start + 1_448), false);
                tests += u32::from(!is_behind);
                longer += u32::from(is_behind);
            }
        }
        // 100,000 / 101 tests, and one more skipped segment after each on average (geometric
        // distribution). Four standard deviations.
        assert!((864..1_116).contains(&tests), "{tests}");
        assert!((longer.abs_diff(tests)) < 180, "{longer} of {tests}");
    }

    #[test]
    fn the_open_test_leaves_once() {
        let mut skips = Skips::new(Seed::new(7));
        assert_eq!(skips.on_duplicate(101, None, 100), None);
        skips.skip((101, 201), true);
        assert_eq!(skips.on_duplicate(1, None, 100), None, "another hole");
        assert_eq!(skips.on_duplicate(101, None, 100), Some(1));
        assert_eq!(skips.on_duplicate(101, Some(700), 100), Some(2));
        assert_eq!(skips.inflation(), 700);
        assert!(skips.take_answer() && !skips.take_answer());
        assert_eq!(skips.on_advance(150), 0);
        assert!(skips.has_open() && skips.inflation() == 0);
        assert_eq!(skips.on_advance(201), 100, "it never left");
        assert!(!skips.has_open() && skips.held.is_empty());
    }

    #[test]
    fn partly_acknowledged_segments_count_when_complete() {
        let mut skips = Skips::new(Seed::new(7));
        let counted = [1, 98, 1, 250, 50].map(|bytes| skips.count_whole(bytes, 100));
        assert_eq!(counted, [0, 0, 100, 250, 0]);
    }

    #[test]
    fn half_of_the_reductions_may_be_undone_beyond_the_first_eight() {
        let mut skips = Skips::new(Seed::new(7));
        let undone = (1..=100).filter(|reductions| skips.believes_in_undo(*reductions));
        assert_eq!(undone.count(), 50);
        let mut skips = Skips::new(Seed::new(7));
        assert!((1..=8).all(|reductions| skips.believes_in_undo(reductions)));
    }
}
