//! Confidence intervals of means over seeds.

use super::Error;

/// A mean with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the interval: the true mean is in `mean ± half_width` with 95 %
    /// confidence, if the values are independent and nearly normally distributed. `None` for a
    /// single value.
    pub half_width: Option<f64>,
    /// How many values.
    pub count: usize,
}

/// The mean of independent values, such as one number from each seed, with its 95 % confidence
/// interval.
///
/// ```text
/// mean ± t · s / sqrt(n),   s² = Σ (x − mean)² / (n − 1),   t = t_{0.975, n − 1}
/// ```
///
/// # Errors
/// [`Error::TooFew`] without values; [`Error::Invalid`] if one is not finite. Values may be
/// negative.
///
/// Source: Student (1908).
pub fn mean_with_interval(values: &[f64]) -> Result<Estimate, Error> {
    if values.is_empty() {
        return Err(Error::TooFew {
            count: 0,
            needed: 1,
        });
    }
    if let Some(index) = values.iter().position(|value| !value.is_finite()) {
        return Err(Error::Invalid {
            index,
            value: values[index],
        });
    }
    let count = values.len();
    let mean = super::mean(values);
    let half_width = (count > 1).then(|| {
        let freedom = count - 1;
        let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
        student_t_975(freedom) * (squares / freedom as f64 / count as f64).sqrt()
    });
    Ok(Estimate {
        mean,
        half_width,
        count,
    })
}

/// The 97.5 % quantile of Student's t distribution: two-sided 95 %. Infinite for zero degrees of
/// freedom.
///
/// A table up to 30 degrees, and beyond that the expansion in 1/ν around the normal quantile z,
/// whose error is below 1e-6 there.
///
/// ```text
/// t = z + (z³ + z)/(4ν) + (5z⁵ + 16z³ + 3z)/(96ν²) + (3z⁷ + 19z⁵ + 17z³ − 15z)/(384ν³)
///       + (79z⁹ + 776z⁷ + 1482z⁵ − 1920z³ − 945z)/(92160ν⁴)
/// ```
///
/// Source: Abramowitz and Stegun, table 26.10 and equation 26.7.5.
#[must_use]
pub fn student_t_975(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004,
        2.262_157, 2.228_139, 2.200_985, 2.178_813, 2.160_369, 2.144_787, 2.131_450, 2.119_905,
        2.109_816, 2.100_922, 2.093_024, 2.085_963, 2.079_614, 2.073_873, 2.068_658, 2.063_899,
        2.059_539, 2.055_529, 2.051_831, 2.048_407, 2.045_230, 2.042_272,
    ];
    const Z: f64 = 1.959_963_984_540_054;
    if freedom == 0 {
        return f64::INFINITY;
    }
    if let Some(&t) = TABLE.get(freedom - 1) {
        return t;
    }
    let by = 1.0 / freedom as f64;
    let square = Z * Z;
    // Horner's scheme in z², innermost power first; each polynomial has one more factor z outside.
    let first = (square + 1.0) / 4.0;
    let second = ((5.0 * square + 16.0) * square + 3.0) / 96.0;
    let third = (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0;
    let fourth = ((((79.0 * square + 776.0) * square + 1482.0) * square - 1920.0) * square - 945.0)
        / 92160.0;
    Z * (1.0 + by * (first + by * (second + by * (third + by * fourth))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_seeds_by_hand() {
        // 2 4 4 4 6: mean 4, s² = 8/4 = 2, t(4) = 2.776445, half width 2.776445 · sqrt(2/5).
        let got = mean_with_interval(&[2.0, 4.0, 4.0, 4.0, 6.0]).unwrap();
        assert_eq!((got.mean, got.count), (4.0, 5));
        assert!((got.half_width.unwrap() - 1.755_978).abs() < 1e-5);
    }

    #[test]
    fn quantiles_agree_with_published_ones() {
        // From an independent library.
        for (freedom, expected) in [
            (31, 2.039_513_446_396_408),
            (40, 2.021_075_390_306_273),
            (60, 2.000_297_822_014_26),
            (120, 1.979_930_405_082_44),
            (1_000, 1.962_339_080_826_408),
            (100_000, 1.959_987_707_534_61),
        ] {
            assert!(
                (student_t_975(freedom) - expected).abs() < 1e-6,
                "{freedom}"
            );
        }
        // For one degree t is tan(0.475 π), for two 0.95 sqrt(2 / (1 − 0.95²)).
        assert!((student_t_975(1) - 12.706_204_736).abs() < 1e-6);
        assert!((student_t_975(2) - 0.95 * (2.0_f64 / (1.0 - 0.9025)).sqrt()).abs() < 1e-6);
        for freedom in 0..200 {
            assert!(
                student_t_975(freedom) > student_t_975(freedom + 1),
                "{freedom}"
            );
        }
    }

    #[test]
    fn the_interval_covers_the_truth_nineteen_times_in_twenty() {
        // Sums of twelve uniforms are nearly normal; over 20,000 samples of five, the share has a
        // standard deviation of 0.15 % around 95 %.
        let mut state = 1_u64;
        let mut uniform = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut covered = 0;
        for _ in 0..20_000 {
            let sample: Vec<f64> = (0..5)
                .map(|_| (0..12).map(|_| uniform()).sum::<f64>())
                .collect();
            let got = mean_with_interval(&sample).unwrap();
            covered += u32::from((got.mean - 6.0).abs() <= got.half_width.unwrap());
        }
        let share = f64::from(covered) / 20_000.0;
        assert!((0.944..=0.956).contains(&share), "{share}");
    }

    #[test]
    fn one_value_has_no_interval_and_none_has_no_mean() {
        let one = mean_with_interval(&[-3.0]).unwrap();
        assert_eq!((one.mean, one.half_width), (-3.0, None));
        assert_eq!(
            mean_with_interval(&[]),
            Err(Error::TooFew {
                count: 0,
                needed: 1
            })
        );
        assert!(matches!(
            mean_with_interval(&[1.0, f64::NAN]),
            Err(Error::Invalid { index: 1, .. })
        ));
        assert_eq!(mean_with_interval(&[7.0; 9]).unwrap().half_width, Some(0.0));
    }
}
