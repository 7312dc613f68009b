//! The windowed maximum.

/// The maximum over a window, kept in three values.
///
/// The filter keeps the best value, the best of those after it, and the best of those after that.
/// When the first leaves the window, the others move up. After a quarter and a half of the window
/// without a larger value, the second and the third are renewed, so the maximum falls in steps of
/// at most a quarter of the window.
///
/// Source: K. Nichols' windowed filter, as Linux has it (lib/win_minmax.c).
#[derive(Clone, Copy, Debug)]
pub(super) struct MaxFilter {
    window: u64,
    best: [Entry; 3],
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u64,
    value: f64,
}

impl MaxFilter {
    /// Creates a filter over `window` rounds, with a maximum of zero.
    pub(super) const fn new(window: u64) -> Self {
        Self {
            window,
            best: [Entry { at: 0, value: 0.0 }; 3],
        }
    }

    /// Sets the length of the window, in rounds.
    pub(super) const fn set_window(&mut self, window: u64) {
        self.window = window;
    }

    /// The largest value of the window.
    pub(super) const fn max(&self) -> f64 {
        let [first, ..] = self.best;
        first.value
    }

    /// Takes a value of the round `at`; rounds do not decrease.
    pub(super) fn update(&mut self, at: u64, value: f64) {
        let new = Entry { at, value };
        let [first, second, third] = self.best;
        if value >= first.value || at - third.at > self.window {
            self.best = [new; 3];
            return;
        }
        self.best = if value >= second.value {
            [first, new, new]
        } else if value >= third.value {
            [first, second, new]
        } else {
            [first, second, third]
        };
        self.age(new);
    }

    fn age(&mut self, new: Entry) {
        let [first, second, third] = self.best;
        let elapsed = new.at - first.at;
        self.best = if elapsed > self.window {
            if new.at - second.at > self.window {
                [third, new, new]
            } else {
                [second, third, new]
            }
        } else if second.at == first.at && elapsed > self.window / 4 {
            [first, new, new]
        } else if third.at == second.at && elapsed > self.window / 2 {
            [first, second, new]
        } else {
            self.best
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_maximum_lasts_for_the_window_and_falls_to_what_came_after_it() {
        let mut filter = MaxFilter::new(10);
        filter.update(1, 100.0);
        for round in 2..=11 {
            filter.update(round, 60.0);
            assert_eq!(filter.max(), 100.0, "round {round}");
        }
        filter.update(12, 60.0);
        assert_eq!(filter.max(), 60.0);
        filter.update(12, 70.0);
        assert_eq!(filter.max(), 70.0);
    }

    proptest! {
        /// Never more than the maximum of the window, and never less than that of its last quarter.
        #[test]
        fn it_lies_between_the_maxima_of_the_window_and_of_its_end(
            values in prop::collection::vec((0_u64..3, 1_u32..1_000), 1..200),
        ) {
            let mut filter = MaxFilter::new(10);
            let (mut round, mut seen) = (0, std::vec::Vec::new());
            for (step, value) in values {
                round += step;
                let value = f64::from(value);
                seen.push((round, value));
                filter.update(round, value);
                let most = |window: u64| {
                    let late = seen.iter().filter(|(at, _)| round - at <= window);
                    late.fold(0.0_f64, |most, (_, value)| most.max(*value))
                };
                prop_assert!(filter.max() <= most(10), "{} > {}", filter.max(), most(10));
                prop_assert!(filter.max() >= most(2), "{} < {}", filter.max(), most(2));
            }
        }
    }

    extern crate std;
}
