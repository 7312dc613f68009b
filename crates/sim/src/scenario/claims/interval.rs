//! How sure something is that was calculated from means over seeds.
//!
//! A quantity θ is a function of the samples that seeds gave. Leaving out one seed after the other
//! shows how much it hangs on each:
//!
//! ```text
//! V = Σ_s (n_s − 1)/n_s · Σ_i (θ_(−i) − θ̄_s)²,     θ_(−i) without seed i of sample s
//! θ ± t · sqrt(V),     t = t_{0.975, ν},     ν = V² / Σ_s V_s²/(n_s − 1)
//! ```
//!
//! Of a mean this is Student's interval exactly; of a ratio of means it is the interval of the
//! delta method, and unlike the percentiles of a bootstrap it keeps what it promises when there are
//! five seeds (a test here counts both). Runs of one seed are left out together wherever they were
//! ran, since what a seed decides is shared by them. Where a little change can turn the result
//! over, as with the place of a maximum or a rank correlation, leaving one out says nothing: there
//! the interval goes from the 2.5th to the 97.5th percentile of 999 bootstrap resamples of the
//! seeds.
//!
//! Source: Tukey (1958) for the jackknife, Satterthwaite (1946) for ν, Efron (1979) for the
//! bootstrap.

use crate::metrics::student_t_975;

/// Where a value is, with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Whether it comes from resampling; from Student's t otherwise.
    pub is_bootstrap: bool,
}

impl Interval {
    const fn around(value: f64, half: f64) -> Self {
        Self {
            low: value - half,
            high: value + half,
            is_bootstrap: false,
        }
    }
}

/// How many resamples a bootstrap takes.
const RESAMPLES: usize = 999;

/// How often each seed of each sample counts.
pub(super) type Weights = Vec<Vec<f64>>;

/// The intervals of several quantities that are calculated from the same samples.
///
/// * `sizes`: how many seeds each sample has.
/// * `used`: for each quantity, which samples it is calculated from.
/// * `calculate`: the quantities under weights, always as many as `full`, which is the result when
///   all seeds count once.
///
/// A quantity has no interval when a sample that it is calculated from has one seed only, or when
/// it has no value under some weights.
pub(super) fn intervals(
    sizes: &[usize],
    used: &[bool],
    full: &[f64],
    is_smooth: bool,
    mut calculate: impl FnMut(&Weights) -> Vec<f64>,
) -> Vec<Option<Interval>> {
    let is_single = sizes
        .iter()
        .zip(used)
        .any(|(&size, &used)| used && size < 2);
    if is_single || full.is_empty() {
        return vec![None; full.len()];
    }
    let ones: Weights = sizes.iter().map(|&size| vec![1.0; size]).collect();
    if is_smooth {
        jackknife(sizes, used, full, &ones, &mut calculate)
    } else {
        bootstrap(&ones, full, &mut calculate)
    }
}

fn jackknife(
    sizes: &[usize],
    used: &[bool],
    full: &[f64],
    ones: &Weights,
    calculate: &mut impl FnMut(&Weights) -> Vec<f64>,
) -> Vec<Option<Interval>> {
    let mut variances = vec![0.0; full.len()];
    let mut squares = vec![0.0; full.len()];
    for (sample, (&size, _)) in sizes
        .iter()
        .zip(used)
        .enumerate()
        .filter(|(_, (_, used))| **used)
    {
        let left_out: Vec<Vec<f64>> = (0..size)
            .map(|seed| {
                let mut weights = ones.clone();
                if let Some(weight) = weights.get_mut(sample).and_then(|of| of.get_mut(seed)) {
                    *weight = 0.0;
                }
                calculate(&weights)
            })
            .collect();
        let n = size as f64;
        for (index, (variance, square)) in variances.iter_mut().zip(&mut squares).enumerate() {
            let values = || left_out.iter().filter_map(|values| values.get(index));
            let mean = values().sum::<f64>() / n;
            let sum: f64 = values().map(|value| (value - mean) * (value - mean)).sum();
            let part = (n - 1.0) / n * sum;
            *variance += part;
            *square += part * part / (n - 1.0);
        }
    }
    let each = full.iter().zip(variances.iter().zip(&squares));
    each.map(|(&value, (&variance, &square))| {
        if !(value.is_finite() && variance.is_finite()) {
            return None;
        }
        // Means of equal numbers differ in their last bits.
        if variance.sqrt() <= 1e-12 * value.abs() || square == 0.0 {
            return Some(Interval::around(value, 0.0));
        }
        // A hair below a whole number is that number: of one sample ν is n − 1.
        let freedom = (variance * variance / square + 1e-6).floor().max(1.0);
        let half = student_t_975(freedom as usize) * variance.sqrt();
        Some(Interval::around(value, half))
    })
    .collect()
}

fn bootstrap(
    ones: &Weights,
    full: &[f64],
    calculate: &mut impl FnMut(&Weights) -> Vec<f64>,
) -> Vec<Option<Interval>> {
    let mut draws = Draws(0x636f_6d69_7479);
    let mut resampled: Vec<Vec<f64>> = vec![Vec::with_capacity(RESAMPLES); full.len()];
    for _ in 0..RESAMPLES {
        let weights: Weights = ones
            .iter()
            .map(|of| {
                let mut weights = vec![0.0; of.len()];
                for _ in 0..of.len() {
                    let drawn = draws.below(of.len() as u64) as usize;
                    if let Some(weight) = weights.get_mut(drawn) {
                        *weight += 1.0;
                    }
                }
                weights
            })
            .collect();
        for (values, value) in resampled.iter_mut().zip(calculate(&weights)) {
            values.push(value);
        }
    }
    resampled
        .into_iter()
        .map(|mut values| {
            values.sort_by(f64::total_cmp);
            // Of 999 in order these are the numbers 25 and 975.
            let (low, high) = (*values.get(24)?, *values.get(974)?);
            let is_whole = values.iter().all(|value| value.is_finite());
            is_whole.then_some(Interval {
                low,
                high,
                is_bootstrap: true,
            })
        })
        .collect()
}

/// SplitMix64, for resampling alone: always the same draws.
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        // The bias of a product with a limit below 2^32 is below 2^-32.
        ((u128::from(z) * u128::from(limit)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::mean_with_interval;

    fn weighted(values: &[f64], weights: &[f64]) -> f64 {
        let sum: f64 = values.iter().zip(weights).map(|(x, w)| x * w).sum();
        sum / weights.iter().sum::<f64>()
    }

    fn half(interval: Option<Interval>) -> f64 {
        let interval = interval.unwrap();
        (interval.high - interval.low) / 2.0
    }

    #[test]
    fn of_a_mean_it_is_students_interval() {
        let values = [2.0, 4.0, 4.0, 4.0, 6.0];
        let got = intervals(&[5], &[true], &[4.0], true, |w| {
            vec![weighted(&values, &w[0])]
        });
        let expected = mean_with_interval(&values).unwrap().half_width.unwrap();
        assert!((half(got[0]) - expected).abs() < 1e-9);
    }

    #[test]
    fn two_samples_add_their_variances() {
        // Means 2 and 20 of (1, 2, 3) and (18, 22): variances 1/3 and 8/2 = 4, their sum 13/3;
        // ν = (13/3)² / ((1/3)²/2 + 4²/1) = 1.1695, so t with one degree of freedom.
        let (a, b) = ([1.0, 2.0, 3.0], [18.0, 22.0]);
        let got = intervals(&[3, 2], &[true, true], &[18.0], true, |w| {
            vec![weighted(&b, &w[1]) - weighted(&a, &w[0])]
        });
        assert!((half(got[0]) - 12.706_205 * (13.0_f64 / 3.0).sqrt()).abs() < 1e-5);
    }

    #[test]
    fn what_no_seed_can_say_has_no_interval() {
        let one = intervals(&[1], &[true], &[3.0], true, |_| vec![3.0]);
        assert_eq!(one, [None]);
        // A sample of one seed that is not used does not matter.
        let other = intervals(&[2, 1], &[true, false], &[3.0], true, |_| vec![3.0]);
        assert_eq!(half(other[0]), 0.0);
        let broken = intervals(&[2], &[true], &[3.0], true, |_| vec![f64::NAN]);
        assert_eq!(broken, [None]);
    }

    #[test]
    fn the_place_of_a_maximum_has_the_places_that_resamples_have() {
        // Seeds 1 to 4 say 10, seed 5 alone says 50: the mean of a resample is above 20 when seed 5
        // was drawn at least twice, in about a quarter of them.
        let values = [10.0, 10.0, 10.0, 10.0, 50.0];
        let place = |w: &Weights| {
            vec![if weighted(&values, &w[0]) > 20.0 {
                2.0
            } else {
                1.0
            }]
        };
        let got = intervals(&[5], &[true], &[1.0], false, place)[0].unwrap();
        assert_eq!((got.low, got.high, got.is_bootstrap), (1.0, 2.0, true));
        let steady = intervals(&[5], &[true], &[7.0], false, |_| vec![7.0])[0].unwrap();
        assert_eq!((steady.low, steady.high), (7.0, 7.0));
    }

    /// The reason for not resampling ratios, which a few seeds make too sure of themselves.
    #[test]
    fn of_a_ratio_of_five_it_covers_the_truth_and_percentiles_do_not() {
        let mut draws = Draws(1);
        let mut normal = || {
            (0..12)
                .map(|_| draws.below(1 << 40) as f64 / (1_u64 << 40) as f64)
                .sum::<f64>()
                - 6.0
        };
        let (mut jackknifed, mut resampled) = (0, 0);
        const TRIALS: usize = 600;
        for _ in 0..TRIALS {
            let a: Vec<f64> = (0..5).map(|_| 300.0 + 30.0 * normal()).collect();
            let b: Vec<f64> = (0..5).map(|_| 100.0 + 10.0 * normal()).collect();
            let ratio = |w: &Weights| vec![weighted(&a, &w[0]) / weighted(&b, &w[0])];
            let full = ratio(&vec![vec![1.0; 5]]);
            let covers = |smooth| {
                let got = intervals(&[5], &[true], &full, smooth, ratio)[0].unwrap();
                got.low <= 3.0 && 3.0 <= got.high
            };
            jackknifed += usize::from(covers(true));
            resampled += usize::from(covers(false));
        }
        let share = |count: usize| count as f64 / TRIALS as f64;
        // The share of 600 trials has a standard deviation of 0.9 % around 95 %.
        assert!(
            (0.92..=0.98).contains(&share(jackknifed)),
            "{}",
            share(jackknifed)
        );
        assert!(
            (0.70..=0.90).contains(&share(resampled)),
            "{}",
            share(resampled)
        );
    }
}
