//! The sections that may borrow from the token bucket, and how much.

use comity_units::{Span, Time, TwoWindows};

use super::section::Importance;

/// The state of a token bucket. Every section may spend tokens; a more important one may put the
/// bucket into debt ([`Borrowing`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// The tokens, in bytes; below zero while the bucket is in debt.
    pub level: i64,
    /// The largest debt.
    pub depth: u64,
}

impl Tokens {
    /// The bytes that a section with this borrowing could spend at once. It may spend nothing
    /// unless this is positive.
    pub fn available(&self, borrowing: Borrowing) -> i64 {
        let share = u128::from(self.depth) * u128::from(borrowing.0) / u128::from(Borrowing::ALL.0);
        self.level
            .saturating_add(i64::try_from(share).unwrap_or(i64::MAX))
    }

    /// Whether such a section may leave now.
    pub fn allow(&self, borrowing: Borrowing) -> bool {
        self.available(borrowing) > 0
    }
}

/// The debt into which a section may put a token bucket, in thousandths of its depth.
///
/// ```text
/// borrowing(importance) = 1                                                    for the recent highest of its stream
///                         4/5 · (importance − lowest) / (highest − lowest)     between
///                         0                                                    for the lowest, and below
///
/// b + max(0, 4/5 − b) · sent / length                  for a begun section, with b from above
/// ```
///
/// A key picture thus finds tokens after earlier pictures have emptied the bucket, and a reference
/// picture finds more than one that no other needs. A begun section borrows more: without its last
/// packets, or a repair, the bytes that were sent are wasted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Borrowing(u16);

impl Borrowing {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// The whole depth.
    pub const ALL: Self = Self(1_000);

    /// The share of the depth that is not reserved for the highest importance.
    pub(super) const SHARED: Self = Self(800);

    /// The borrowing of a section after `sent` of its `length` bytes have left.
    pub(super) fn begun(self, sent: u32, length: u32) -> Self {
        let missing = u64::from(Self::SHARED.0.saturating_sub(self.0));
        let more = missing * u64::from(sent.min(length)) / u64::from(length.max(1));
        Self(self.0 + u16::try_from(more).unwrap_or(0))
    }

    /// The borrowing of a section of this importance, in a stream with importances from `lowest` to
    /// `highest`.
    pub fn of(importance: Importance, lowest: Importance, highest: Importance) -> Self {
        if importance >= highest {
            return Self::ALL;
        }
        let above = u32::from(importance.0.saturating_sub(lowest.0));
        let range = u32::from(highest.0.saturating_sub(lowest.0)).max(1);
        Self(u16::try_from(u32::from(Self::SHARED.0) * above / range).unwrap_or(Self::ALL.0))
    }
}

/// The minimum and maximum importance of the sections in the last seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Importances {
    windows: TwoWindows<Option<(Importance, Importance)>>,
}

impl Importances {
    pub(super) fn on_section(&mut self, now: Time, importance: Importance) {
        self.windows.turn(now, MEMORY);
        let (lowest, highest) = self.windows.current.unwrap_or((importance, importance));
        self.windows.current = Some((lowest.min(importance), highest.max(importance)));
    }

    /// The range; all importances if there were no sections.
    pub(super) fn range(&self) -> (Importance, Importance) {
        match (self.windows.current, self.windows.before) {
            (Some((low, high)), Some((lower, higher))) => (low.min(lower), high.max(higher)),
            (Some(range), None) | (None, Some(range)) => range,
            (None, None) => (Importance(0), Importance(u8::MAX)),
        }
    }
}

/// Two windows cover 5 to 10 s. Groups of pictures begin about once a second, and at least every
/// ten seconds.
const MEMORY: Span = Span::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_important_sections_may_borrow_more() {
        let available = |level, importance| {
            let (lowest, highest) = (Importance(10), Importance(110));
            let tokens = Tokens {
                level,
                depth: 1_000,
            };
            tokens.available(Borrowing::of(Importance(importance), lowest, highest))
        };
        assert_eq!(available(0, 110), 1_000);
        assert_eq!(available(0, 200), 1_000);
        assert_eq!(available(0, 60), 400, "half of the way up");
        assert_eq!(available(0, 10), 0);
        assert_eq!(available(0, 3), 0);
        assert_eq!(available(-450, 60), -50);
        assert_eq!(available(i64::MIN, 110), i64::MIN + 1_000);
        let widest = Borrowing::of(Importance(254), Importance(0), Importance(u8::MAX));
        assert_eq!(widest, Borrowing(796));
    }

    #[test]
    fn a_begun_section_may_borrow_more() {
        let begun = |own, sent| Borrowing(own).begun(sent, 1_000);
        assert_eq!(begun(0, 0), Borrowing::NONE);
        assert_eq!(
            begun(0, 500),
            Borrowing(400),
            "half of the way to four fifths"
        );
        assert_eq!(begun(400, 500), Borrowing(600));
        assert_eq!(begun(400, 1_000), Borrowing::SHARED);
        assert_eq!(begun(1_000, 500), Borrowing::ALL);
    }

    #[test]
    fn a_single_importance_counts_as_the_highest() {
        let only = Importance(7);
        assert_eq!(Borrowing::of(only, only, only), Borrowing::ALL);
    }

    #[test]
    fn the_range_of_importances_forgets_old_sections() {
        let mut importances = Importances::default();
        assert_eq!(importances.range(), (Importance(0), Importance(255)));
        importances.on_section(Time::from_secs(1), Importance(200));
        importances.on_section(Time::from_secs(2), Importance(9));
        assert_eq!(importances.range(), (Importance(9), Importance(200)));
        importances.on_section(Time::from_secs(7), Importance(50));
        assert_eq!(importances.range(), (Importance(9), Importance(200)));
        importances.on_section(Time::from_secs(13), Importance(60));
        assert_eq!(importances.range(), (Importance(50), Importance(60)));
        importances.on_section(Time::from_secs(60), Importance(1));
        assert_eq!(importances.range(), (Importance(1), Importance(1)));
    }
}
