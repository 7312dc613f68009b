//! What may leave beyond the average rate, and which sections may take it.

use comity_units::{Span, Time};

use super::section::Importance;

/// The account of a token bucket as sections see it.
///
/// Everything may spend what is saved. What matters more may overdraw the account:
///
/// ```text
/// overdraft(importance) = depth                                                    for the highest of late
///                         depth / 2 · (importance − lowest) / (highest − lowest)   between
///                         0                                                        for the lowest of late, and below
/// ```
///
/// so that a key picture finds room in an account that the pictures before it have emptied, and those that
/// others are predicted from find more than those that nothing needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savings {
    /// Bytes in the account; below zero when it is overdrawn.
    pub level: i64,
    /// By how much it may be overdrawn.
    pub depth: u64,
    /// The range of importances of late.
    pub importances: (Importance, Importance),
}

impl Savings {
    /// How many bytes a section of this importance could spend at once; none if not above zero.
    pub fn available(&self, importance: Importance) -> i64 {
        let (lowest, highest) = self.importances;
        let overdraft = if importance >= highest {
            self.depth
        } else {
            let above = u128::from(importance.0.saturating_sub(lowest.0));
            let range = u128::from(highest.0.saturating_sub(lowest.0)).max(1);
            u64::try_from(u128::from(self.depth) * above / (2 * range)).unwrap_or(u64::MAX)
        };
        let overdraft = i64::try_from(overdraft).unwrap_or(i64::MAX);
        self.level.saturating_add(overdraft)
    }

    /// Whether a section of this importance may leave now.
    pub fn allow(&self, importance: Importance) -> bool {
        self.level > 0 || self.available(importance) > 0
    }
}

/// The least and the most important of the sections of the last seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Importances {
    /// Of the current window of [`MEMORY`] and of the one before.
    windows: [Option<(Importance, Importance)>; 2],
    began_at: Time,
}

impl Importances {
    /// A section came into being.
    pub(super) fn on_section(&mut self, now: Time, importance: Importance) {
        let age = now.saturating_since(self.began_at);
        if age > MEMORY {
            let before = if age > MEMORY * 2 {
                None
            } else {
                self.windows[0]
            };
            self.windows = [None, before];
            self.began_at = now;
        }
        let (lowest, highest) = self.windows[0].unwrap_or((importance, importance));
        self.windows[0] = Some((lowest.min(importance), highest.max(importance)));
    }

    /// The range, if there were sections.
    pub(super) fn range(&self) -> (Importance, Importance) {
        match self.windows {
            [Some((low, high)), Some((lower, higher))] => (low.min(lower), high.max(higher)),
            [Some(range), None] | [None, Some(range)] => range,
            [None, None] => (Importance(0), Importance(u8::MAX)),
        }
    }
}

/// Groups of pictures begin about once a second, at the most every ten.
const MEMORY: Span = Span::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_more_finds_more() {
        let savings = |level| Savings {
            level,
            depth: 1_000,
            importances: (Importance(10), Importance(110)),
        };
        let available = |level, importance| savings(level).available(Importance(importance));
        assert_eq!(available(0, 110), 1_000);
        assert_eq!(available(0, 200), 1_000);
        assert_eq!(available(0, 60), 250, "half of the way up");
        assert_eq!(available(0, 10), 0);
        assert_eq!(available(0, 3), 0);
        assert_eq!(available(-300, 60), -50);
        assert!(!savings(-300).allow(Importance(60)));
        assert!(savings(-300).allow(Importance(110)));
        assert!(savings(1).allow(Importance(10)));
        assert!(!savings(0).allow(Importance(10)));
    }

    #[test]
    fn the_only_importance_that_there_is_is_the_highest() {
        let savings = Savings {
            level: 0,
            depth: 1_000,
            importances: (Importance(7), Importance(7)),
        };
        assert_eq!(savings.available(Importance(7)), 1_000);
    }

    #[test]
    fn the_range_forgets_what_is_long_ago() {
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
