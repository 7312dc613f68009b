//! The received packet numbers.

use comity_units::PacketNumber;

/// Why a packet number is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stale {
    /// A packet with this number was accepted before.
    Repeated,
    /// The number is below those that the window covers.
    TooOld,
}

/// A sliding window over the accepted packet numbers.
///
/// The window always covers the highest number and at least `64 · (WORDS − 1)` numbers below it. A
/// ring of words stores the numbers. It is cleared as the window moves, so a step of any size costs
/// at most one write per word.
///
/// Source: the anti-replay algorithm without bit shifting, RFC 6479. Differs from the source in:
/// 1. Numbers have 64 bits and start at 0.
/// 2. Check and update are two steps, since a number may be accepted only after its packet has
///    proved to be authentic.
#[derive(Clone, Debug)]
pub struct ReplayWindow<const WORDS: usize> {
    words: [u64; WORDS],
    /// One more than the highest accepted number; 0 if there is none.
    end: u64,
}

impl<const WORDS: usize> ReplayWindow<WORDS> {
    /// The number of packet numbers, up to the highest one, that the window always covers.
    pub const REACH: u64 = 64 * (WORDS as u64 - 1) + 1;

    /// A window without accepted numbers.
    pub const fn new() -> Self {
        const { assert!(WORDS >= 2, "one word is cleared while the others remember") };
        Self {
            words: [0; WORDS],
            end: 0,
        }
    }

    /// The highest accepted number.
    pub fn highest(&self) -> Option<PacketNumber> {
        self.end.checked_sub(1).map(PacketNumber::new)
    }

    /// Whether a packet with this number may still be accepted.
    ///
    /// # Errors
    ///
    /// [`Stale::Repeated`] and [`Stale::TooOld`].
    pub fn check(&self, number: PacketNumber) -> Result<(), Stale> {
        let number = number.get();
        if number >= self.end {
            return Ok(());
        }
        if number / 64 + WORDS as u64 <= (self.end - 1) / 64 {
            return Err(Stale::TooOld);
        }
        if self.words[Self::slot(number)] & Self::bit(number) == 0 {
            Ok(())
        } else {
            Err(Stale::Repeated)
        }
    }

    /// Marks this number as accepted.
    ///
    /// # Errors
    ///
    /// As [`Self::check`], without any effect.
    pub fn take(&mut self, number: PacketNumber) -> Result<(), Stale> {
        self.check(number)?;
        let number = number.get();
        if number >= self.end {
            // The word of the previous highest number holds numbers that stay in the window.
            let newest = self.end.checked_sub(1).map_or(0, |highest| highest / 64);
            let passed = (number / 64 - newest).min(WORDS as u64);
            for word in 0..passed {
                self.words[((number / 64 - word) % WORDS as u64) as usize] = 0;
            }
            self.end = number.saturating_add(1);
        }
        self.words[Self::slot(number)] |= Self::bit(number);
        Ok(())
    }

    const fn slot(number: u64) -> usize {
        (number / 64 % WORDS as u64) as usize
    }

    const fn bit(number: u64) -> u64 {
        1 << (number % 64)
    }
}

impl<const WORDS: usize> Default for ReplayWindow<WORDS> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const fn number(value: u64) -> PacketNumber {
        PacketNumber::new(value)
    }

    #[test]
    fn the_replay_window_covers_exactly_its_reach() {
        // Two words cover at least 65 numbers: with the highest at 128, word 1 (64 to 127) is kept.
        let mut window = ReplayWindow::<2>::new();
        assert_eq!(ReplayWindow::<2>::REACH, 65);
        window.take(number(128)).unwrap();
        assert_eq!(window.check(number(64)), Ok(()));
        assert_eq!(window.check(number(63)), Err(Stale::TooOld));
        assert_eq!(window.take(number(128)), Err(Stale::Repeated));
        window.take(number(64)).unwrap();
        assert_eq!(window.take(number(64)), Err(Stale::Repeated));
        assert_eq!(window.highest(), Some(number(128)));
    }

    #[test]
    fn far_jumps_forget_no_number_inside_the_window() {
        let mut window = ReplayWindow::<4>::new();
        assert_eq!(window.highest(), None);
        for step in [0, 1, 63, 64, 1 << 40, (1 << 40) + 300, u64::MAX - 1] {
            window.take(number(step)).unwrap();
            assert_eq!(window.take(number(step)), Err(Stale::Repeated));
        }
        assert_eq!(window.check(number(1 << 40)), Err(Stale::TooOld));
    }

    #[test]
    fn every_short_sequence_agrees_with_the_rule() {
        agrees_on_every_short_sequence::<2>();
        // A window of four words moves by some of them, and keeps the others.
        agrees_on_every_short_sequence::<4>();
    }

    /// Compares every sequence of five of these numbers with the rule itself: a number is too old
    /// if its word is `WORDS` or more below that of the highest one, and repeated if it was
    /// accepted.
    fn agrees_on_every_short_sequence<const WORDS: usize>() {
        const LENGTH: u32 = 5;
        const NUMBERS: [u64; 14] = [
            0,
            1,
            63,
            64,
            65,
            127,
            128,
            191,
            192,
            256,
            (1 << 40) + 63,
            (1 << 40) + 64,
            u64::MAX - 64,
            u64::MAX - 1,
        ];
        for sequence in 0..NUMBERS.len().pow(LENGTH) {
            let mut window = ReplayWindow::<WORDS>::new();
            let mut accepted: Vec<u64> = Vec::new();
            let mut rest = sequence;
            for _ in 0..LENGTH {
                let value = NUMBERS[rest % NUMBERS.len()];
                rest /= NUMBERS.len();
                let highest = accepted.iter().max();
                let expected = if highest.is_some_and(|highest| {
                    value / 64 <= highest / 64 && highest / 64 - value / 64 >= WORDS as u64
                }) {
                    Err(Stale::TooOld)
                } else if accepted.contains(&value) {
                    Err(Stale::Repeated)
                } else {
                    Ok(())
                };
                assert_eq!(
                    window.check(number(value)),
                    expected,
                    "{accepted:?}, {value}"
                );
                assert_eq!(window.take(number(value)), expected);
                if expected.is_ok() {
                    accepted.push(value);
                }
            }
        }
    }

    proptest! {
        /// Compares the window with a set of all accepted numbers.
        #[test]
        fn agrees_with_a_set(
            start in prop_oneof![Just(0_u64), Just(u64::MAX - 20_000), 0..u64::MAX / 2],
            steps in prop::collection::vec((0..3_u8, 0..600_u64), 1..400),
        ) {
            let mut window = ReplayWindow::<4>::new();
            let mut taken = BTreeSet::new();
            let mut highest = start;
            for (kind, distance) in steps {
                let value = match kind {
                    0 => highest + distance % 20,
                    1 => highest.saturating_sub(distance),
                    _ => highest.saturating_sub(distance % 90),
                };
                let by_the_set = if taken.contains(&value) { Err(Stale::Repeated) } else { Ok(()) };
                let behind = taken.last().map_or(0, |last: &u64| last.saturating_sub(value));
                let expected = window.check(number(value));
                if behind < ReplayWindow::<4>::REACH {
                    prop_assert_eq!(expected, by_the_set);
                } else if behind >= 4 * 64 {
                    prop_assert_eq!(expected, Err(Stale::TooOld));
                } else {
                    prop_assert!(expected == by_the_set || expected == Err(Stale::TooOld));
                }
                prop_assert_eq!(window.take(number(value)), expected);
                if expected.is_ok() {
                    taken.insert(value);
                    highest = highest.max(value);
                }
            }
            prop_assert_eq!(window.highest().map(PacketNumber::get), taken.last().copied());
        }
    }
}
