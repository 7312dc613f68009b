//! The arrival-time filter of GCC: a Kalman filter over the variation of the delay.

use alloc::collections::VecDeque;

use super::groups::{Variation, millis};

/// Estimates by how much the delay grows from group to group.
///
/// ```text
/// z(i)     = d(i) − m(i−1)
/// f_max    = max 1 / (T(j) − T(j−1))                   of the last K groups j
/// α        = (1 − χ)^(30 / (1000 · f_max))
/// var_v(i) = max( α · var_v(i−1) + (1 − α) · z(i)², 1 )     |z| here at most 3 · √var_v(i−1)
/// k(i)     = (e(i−1) + q) / (var_v(i) + e(i−1) + q)
/// m(i)     = m(i−1) + z(i) · k(i)
/// e(i)     = (1 − k(i)) · (e(i−1) + q)
/// ```
///
/// Times are milliseconds. Source: draft-ietf-rmcat-gcc-02, section 5.3.
#[derive(Clone, Debug)]
pub(super) struct ArrivalFilter {
    /// χ.
    chi: f64,
    kalman: Kalman,
    /// var_v.
    noise: f64,
    /// T(j) − T(j−1) of the last K groups.
    periods: VecDeque<f64>,
}

impl ArrivalFilter {
    pub(super) const fn new(chi: f64) -> Self {
        Self {
            chi,
            kalman: Kalman {
                mean: 0.0,
                error: INITIAL_ERROR,
            },
            noise: INITIAL_NOISE,
            periods: VecDeque::new(),
        }
    }

    /// Takes d(i), and returns m(i).
    pub(super) fn on_variation(&mut self, variation: &Variation) -> f64 {
        let delay = variation.delay();
        if self.periods.len() >= GROUPS {
            self.periods.pop_front();
        }
        self.periods.push_back(millis(variation.inter_departure));
        let shortest = self.periods.iter().copied().fold(f64::INFINITY, f64::min);
        let kept = libm::pow(1.0 - self.chi, 30.0 * shortest / 1_000.0);
        let largest = 3.0 * libm::sqrt(self.noise);
        let residual = (delay - self.kalman.mean).clamp(-largest, largest);
        let noise = kept * self.noise + (1.0 - kept) * residual * residual;
        self.noise = noise.max(1.0);
        self.kalman.update(delay, PROCESS_NOISE, self.noise)
    }
}

/// A Kalman filter of a value that is measured directly.
#[derive(Clone, Copy, Debug)]
struct Kalman {
    /// m.
    mean: f64,
    /// e.
    error: f64,
}

impl Kalman {
    /// Takes a measurement whose noise has the variance `noise`. The value itself has changed since
    /// the last one, with the variance `process`. Returns the estimate.
    fn update(&mut self, sample: f64, process: f64, noise: f64) -> f64 {
        let error = self.error + process;
        let gain = error / (noise + error);
        self.mean += (sample - self.mean) * gain;
        self.error = (1.0 - gain) * error;
        self.mean
    }
}

/// q (Table 1).
const PROCESS_NOISE: f64 = 1e-3;

/// e(0) (Table 1).
const INITIAL_ERROR: f64 = 0.1;

/// var_v(0), which the draft leaves open: that of libwebrtc (`initial_var_noise`).
const INITIAL_NOISE: f64 = 50.0;

/// K, which the draft leaves open: that of libwebrtc (`kMinFramePeriodHistoryLength`).
const GROUPS: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;
    use comity_units::{Span, Time};

    fn variation(inter_arrival: u64, inter_departure: u64) -> Variation {
        Variation {
            arrived_at: Time::ZERO,
            inter_arrival: Span::from_micros(inter_arrival),
            inter_departure: Span::from_micros(inter_departure),
        }
    }

    /// A published example of the recursion: the temperature of a liquid (kalmanfilter.net, with
    /// q = 0.15 and a variance of 0.01), as in the tests of pion's GCC.
    #[test]
    fn the_recursion_follows_a_published_example() {
        let mut kalman = Kalman {
            mean: 10.0,
            error: 10_000.0,
        };
        for (measured, expected) in [
            (50.45, 50.449_959),
            (50.967, 50.936_547),
            (51.6, 51.560_411),
            (52.106, 52.073_24),
            (52.492, 52.466_566),
            (52.819, 52.797_787),
            (53.433, 53.395_303),
            (54.007, 53.970_236),
            (54.523, 54.489_652),
            (54.99, 54.960_137),
        ] {
            let found = kalman.update(measured, 0.15, 0.01);
            // pion rounds residuals down to a microsecond.
            assert!((found - expected).abs() < 1e-3, "{found}, not {expected}");
        }
    }

    /// By hand, with χ = 0.1. Groups leave 20 ms and then 10 ms apart, d = 8 and d = −4.
    ///
    /// ```text
    /// α = 0.9^0.6 = 0.938740    var = 0.938740 · 50 + 0.061260 · 64 = 50.857634
    /// k = 0.101 / 50.958634 = 0.00198200    m = 0.01585600    e = 0.998018 · 0.101 = 0.10079982
    /// α = 0.9^0.3 = 0.968886    z = −4.01585600    z² = 16.127099
    /// var = 0.968886 · 50.857634 + 0.031114 · 16.127099 = 49.777034
    /// k = 0.10179982 / 49.87883382 = 0.00204094    m = 0.01585600 − 0.00819612 = 0.00765988
    /// ```
    #[test]
    fn the_estimate_follows_the_equations() {
        let mut filter = ArrivalFilter::new(0.1);
        let first = filter.on_variation(&variation(28_000, 20_000));
        assert!((filter.noise - 50.857_634).abs() < 1e-5, "{}", filter.noise);
        assert!((first - 0.015_856_0).abs() < 1e-7, "{first}");
        let second = filter.on_variation(&variation(6_000, 10_000));
        assert!((filter.noise - 49.777_034).abs() < 1e-5, "{}", filter.noise);
        assert!((second - 0.007_659_9).abs() < 1e-6, "{second}");
    }

    /// d = ±1000 counts as ±3 · √50 = ±21.2132, whose square is 450.
    #[test]
    fn an_outlier_counts_less_in_the_noise_and_in_full_in_the_estimate() {
        for sign in [1.0, -1.0] {
            let mut filter = ArrivalFilter::new(0.1);
            let (arrival, departure) = if sign > 0.0 { (1_020, 20) } else { (20, 1_020) };
            let found = filter.on_variation(&variation(arrival * 1_000, departure * 1_000));
            let kept = libm::pow(0.9, 0.03 * departure as f64);
            let noise = kept * 50.0 + (1.0 - kept) * 450.0;
            assert!((filter.noise - noise).abs() < 1e-6, "{}", filter.noise);
            let expected = sign * 1_000.0 * 0.101 / (noise + 0.101);
            assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
        }
    }

    /// Without noise var_v falls to 1. The gain then settles at the root of k² = q · (1 − k), which
    /// is 0.03113.
    #[test]
    fn the_noise_has_a_floor_and_the_gain_settles() {
        let mut filter = ArrivalFilter::new(0.1);
        for _ in 0..5_000 {
            filter.on_variation(&variation(20_000, 20_000));
        }
        assert_eq!(filter.noise, 1.0);
        assert_eq!(filter.kalman.mean, 0.0);
        let gain = filter.on_variation(&variation(21_000, 20_000));
        assert!((gain - 0.031_13).abs() < 1e-5, "{gain}");
    }
}
