//! The over-use detector of GCC: the growth of the delay against a threshold that adapts.

use comity_units::{Span, Time};

use super::groups::{Variation, millis};

/// The state of the path that its delay shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Usage {
    /// Its queue does not change.
    #[default]
    Normal,
    /// Its queue grows.
    Over,
    /// Its queue drains.
    Under,
}

/// Decides whether the path is over-used.
///
/// ```text
/// x(i)  = min( i, deltas ) · m(i)
/// over    x(i) > γ(i−1) for overuse_time at least, and m(i) ≥ m(i−1)
/// under   x(i) < −γ(i−1)
/// γ(i)  = γ(i−1) + (t(i) − t(i−1)) · K · (|x(i)| − γ(i−1))      within [6, 600]
/// K     = K_d if |x(i)| < γ(i−1), else K_u
///         0   if |x(i)| − γ(i−1) > 15
/// ```
///
/// Times are milliseconds, and γ is `del_var_th`. Source: draft-ietf-rmcat-gcc-02, section 5.4.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detector {
    max_deltas: u32,
    /// min( i, deltas ).
    deltas: u32,
    /// γ.
    threshold: f64,
    /// m(i−1).
    mean: f64,
    /// Since when all groups have been above the threshold.
    above_since: Option<Time>,
}

impl Detector {
    pub(super) const fn new(max_deltas: u32) -> Self {
        Self {
            max_deltas,
            deltas: 0,
            threshold: INITIAL_THRESHOLD,
            mean: 0.0,
            above_since: None,
        }
    }

    /// Takes m(i) of a group.
    pub(super) fn on_mean(&mut self, mean: f64, group: &Variation) -> Usage {
        self.deltas = self.deltas.saturating_add(1).min(self.max_deltas);
        let growth = f64::from(self.deltas) * mean;
        let usage = if growth > self.threshold {
            let since = *self.above_since.get_or_insert(group.arrived_at);
            let lasts = group.arrived_at.saturating_since(since) >= OVERUSE_TIME;
            match lasts && mean >= self.mean {
                true => Usage::Over,
                false => Usage::Normal,
            }
        } else {
            self.above_since = None;
            match growth < -self.threshold {
                true => Usage::Under,
                false => Usage::Normal,
            }
        };
        self.mean = mean;
        self.adapt(growth.abs(), group.inter_arrival);
        usage
    }

    fn adapt(&mut self, growth: f64, elapsed: Span) {
        let distance = growth - self.threshold;
        if distance > MAX_DISTANCE {
            return;
        }
        let gain = if distance < 0.0 { GAIN_DOWN } else { GAIN_UP };
        let step = millis(elapsed.min(LONGEST_STEP)) * gain * distance;
        self.threshold = (self.threshold + step).clamp(MIN_THRESHOLD, MAX_THRESHOLD);
    }
}

/// `overuse_time_th` (Table 1).
const OVERUSE_TIME: Span = Span::from_millis(10);

/// `del_var_th(0)` (Table 1).
const INITIAL_THRESHOLD: f64 = 12.5;

const MIN_THRESHOLD: f64 = 6.0;

const MAX_THRESHOLD: f64 = 600.0;

/// K_u (Table 1), in 1/ms.
const GAIN_UP: f64 = 0.01;

/// K_d (Table 1), in 1/ms.
const GAIN_DOWN: f64 = 0.000_18;

/// A value further above the threshold does not change it.
const MAX_DISTANCE: f64 = 15.0;

/// The maximum of t(i) − t(i−1), as in libwebrtc and pion. For longer times, K_u times the time is
/// above 1, and a pause moves the threshold to one of its limits.
const LONGEST_STEP: Span = Span::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    /// A detector whose groups arrive 20 ms apart from the beginning.
    struct Bench(Detector, u64);

    impl Bench {
        const fn new(deltas: u32) -> Self {
            Self(Detector::new(deltas), 0)
        }

        fn after(&mut self, mean: f64, inter_arrival: u64) -> Usage {
            self.1 += inter_arrival;
            let group = Variation {
                arrived_at: Time::from_millis(self.1),
                inter_arrival: Span::from_millis(inter_arrival),
                inter_departure: Span::from_millis(20),
            };
            self.0.on_mean(mean, &group)
        }

        fn threshold(&self) -> f64 {
            self.0.threshold
        }
    }

    #[test]
    fn over_use_lasts_and_does_not_fall() {
        let mut bench = Bench::new(1);
        for (mean, apart, expected) in [
            (0.0, 20, Usage::Normal),
            (40.0, 20, Usage::Normal),
            (40.0, 9, Usage::Normal),
            (40.0, 1, Usage::Over),
            (39.0, 20, Usage::Normal),
            (39.5, 20, Usage::Over),
            (5.0, 20, Usage::Normal),
            (40.0, 20, Usage::Normal),
            (-40.0, 20, Usage::Under),
            (-5.0, 20, Usage::Normal),
        ] {
            assert_eq!(bench.after(mean, apart), expected, "{mean} at {}", bench.1);
        }
    }

    /// By hand: 12.5 + 20 · 0.01 · (20 − 12.5) = 14; 14 + 20 · 0.00018 · (4 − 14) = 13.964; the
    /// same for −4; 29.1 is more than 15 above 13.928 and changes nothing; 28 changes it by 0.2 ·
    /// 14.072.
    #[test]
    fn the_threshold_follows_its_equation() {
        let mut bench = Bench::new(1);
        for (mean, expected) in [
            (20.0, 14.0),
            (4.0, 13.964),
            (-4.0, 13.928_129_6),
            (29.1, 13.928_129_6),
            (-29.1, 13.928_129_6),
            (28.0, 16.742_503_68),
        ] {
            bench.after(mean, 20);
            let found = bench.threshold();
            assert!((found - expected).abs() < 1e-9, "{mean}: {found}");
        }
    }

    #[test]
    fn the_threshold_stays_in_its_range_and_on_its_side_of_the_value() {
        let mut bench = Bench::new(1);
        for _ in 0..1_000 {
            bench.after(0.0, 20);
        }
        assert_eq!(bench.threshold(), 6.0);
        // A pause of a minute counts as 100 ms: the threshold becomes the value, not more.
        bench.after(16.0, 60_000);
        assert_eq!(bench.threshold(), 16.0);
        let mut mean = 16.0;
        for _ in 0..100 {
            mean += 14.0;
            bench.after(mean, 100);
        }
        assert_eq!(bench.threshold(), 600.0);
    }

    /// The first value counts once, the second twice, up to `deltas` times.
    #[test]
    fn the_value_counts_by_the_number_of_groups() {
        let mut bench = Bench::new(3);
        // 4.3, 8.6 and 12.9, above 12.5, whose threshold falls a little; at the fourth for 20 ms.
        for expected in [Usage::Normal, Usage::Normal, Usage::Normal, Usage::Over] {
            assert_eq!(bench.after(4.3, 20), expected, "{}", bench.1);
        }
        let mut letter = Bench::new(1);
        for _ in 0..100 {
            assert_eq!(letter.after(4.3, 20), Usage::Normal);
        }
    }
}
