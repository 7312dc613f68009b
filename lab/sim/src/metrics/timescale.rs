//! The smoothness of a flow and the similarity of two flows, by time scale.

use comity_units::Span;

use super::{Error, check, mean, ratio};

/// Turns bytes per bin into bit/s.
///
/// # Errors
/// [`Error::NotWholeBins`] when the bin is empty.
pub fn rates(bytes: &[u64], bin: Span) -> Result<Vec<f64>, Error> {
    if bin.is_zero() {
        return Err(Error::NotWholeBins { scale: bin, bin });
    }
    let seconds = bin.as_secs_f64();
    Ok(bytes
        .iter()
        .map(|&bytes| bytes as f64 * 8.0 / seconds)
        .collect())
}

/// The means over longer bins of `scale`, without the incomplete bin at the end.
///
/// # Errors
/// [`Error::NotWholeBins`] unless `scale` is a positive multiple of `bin`; [`Error::TooFew`] if no
/// longer bin is complete; [`Error::Invalid`].
pub fn rebin(values: &[f64], bin: Span, scale: Span) -> Result<Vec<f64>, Error> {
    let whole =
        !bin.is_zero() && !scale.is_zero() && scale.as_nanos().is_multiple_of(bin.as_nanos());
    if !whole {
        return Err(Error::NotWholeBins { scale, bin });
    }
    let factor = usize::try_from(scale.as_nanos() / bin.as_nanos()).unwrap_or(usize::MAX);
    check(values, factor)?;
    Ok(values.chunks_exact(factor).map(mean).collect())
}

/// The coefficient of variation: the standard deviation over the mean. 0 is perfectly smooth.
///
/// ```text
/// CoV = sqrt( (1/n) Σ (R_i − R̄)² ) / R̄
/// ```
///
/// # Errors
/// [`Error::TooFew`] without values, [`Error::Invalid`], [`Error::AllZero`].
///
/// Source: Floyd, Handley, Padhye and Widmer, "Equation-Based Congestion Control for Unicast
/// Applications", SIGCOMM 2000, section 4.1.
pub fn coefficient_of_variation(rates: &[f64]) -> Result<f64, Error> {
    check(rates, 1)?;
    let mean = mean(rates);
    let variance = rates.iter().map(|r| (r - mean) * (r - mean)).sum::<f64>() / rates.len() as f64;
    ratio(variance.sqrt(), mean)
}

/// The coefficient of variation of the mean rates over each of several time scales.
///
/// # Errors
/// As [`rebin`] and [`coefficient_of_variation`].
pub fn variation_over_scales(rates: &[f64], bin: Span, scales: &[Span]) -> Result<Vec<f64>, Error> {
    scales
        .iter()
        .map(|&scale| coefficient_of_variation(&rebin(rates, bin, scale)?))
        .collect()
}

/// The equivalence ratio of two flows: 1 if they have the same rate in every bin, 0 if never both
/// send in the same bin.
///
/// ```text
/// e(t) = min( R_a(t) / R_b(t), R_b(t) / R_a(t) )     where R_a(t) > 0 or R_b(t) > 0
/// e    = mean of e(t) over those t
/// ```
///
/// # Errors
/// [`Error::Unequal`], [`Error::TooFew`] without values, [`Error::Invalid`], [`Error::AllZero`]
/// if neither flow ever sends.
///
/// Source: as [`coefficient_of_variation`].
pub fn equivalence(a: &[f64], b: &[f64]) -> Result<f64, Error> {
    if a.len() != b.len() {
        return Err(Error::Unequal {
            left: a.len(),
            right: b.len(),
        });
    }
    check(a, 1)?;
    check(b, 1)?;
    let ratios: Vec<f64> = a
        .iter()
        .zip(b)
        .filter(|&(&a, &b)| a > 0.0 || b > 0.0)
        .map(|(a, b)| a.min(*b) / a.max(*b))
        .collect();
    if ratios.is_empty() {
        Err(Error::AllZero)
    } else {
        Ok(mean(&ratios))
    }
}

/// The equivalence ratio of two flows over each of several time scales.
///
/// # Errors
/// As [`rebin`] and [`equivalence`].
pub fn equivalence_over_scales(
    a: &[f64],
    b: &[f64],
    bin: Span,
    scales: &[Span],
) -> Result<Vec<f64>, Error> {
    scales
        .iter()
        .map(|&scale| equivalence(&rebin(a, bin, scale)?, &rebin(b, bin, scale)?))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BIN: Span = Span::from_millis(100);

    #[test]
    fn bytes_become_bits_per_second() {
        assert_eq!(rates(&[12_500, 0], BIN), Ok(vec![1e6, 0.0]));
        assert!(matches!(
            rates(&[1], Span::ZERO),
            Err(Error::NotWholeBins { .. })
        ));
    }

    #[test]
    fn an_alternating_flow_is_rough_at_one_scale_and_smooth_at_twice_it() {
        // 0 4 0 4: mean 2, standard deviation 2. Over two bins it is 2 2.
        let flow = [0.0, 4.0, 0.0, 4.0];
        assert_eq!(
            variation_over_scales(&flow, BIN, &[BIN, BIN * 2, BIN * 4]),
            Ok(vec![1.0, 0.0, 0.0])
        );
        // 1 2 3: mean 2, standard deviation sqrt(2/3).
        let got = coefficient_of_variation(&[1.0, 2.0, 3.0]).unwrap();
        assert!((got - (2.0_f64 / 3.0).sqrt() / 2.0).abs() < 1e-15);
    }

    #[test]
    fn equivalence_by_hand() {
        // 1/2, 1, skipped (both silent), 0: mean 0.5.
        let a = [1.0, 3.0, 0.0, 5.0];
        let b = [2.0, 3.0, 0.0, 0.0];
        assert_eq!(equivalence(&a, &b), Ok(0.5));
        // Over two bins: 2 against 2.5, 2.5 against 0.
        assert_eq!(
            equivalence_over_scales(&a, &b, BIN, &[BIN * 2]),
            Ok(vec![0.4])
        );
        // Two flows that take turns are equal only at a long time scale.
        let turns = ([4.0, 0.0, 4.0, 0.0], [0.0, 4.0, 0.0, 4.0]);
        assert_eq!(
            equivalence_over_scales(&turns.0, &turns.1, BIN, &[BIN, BIN * 2]),
            Ok(vec![0.0, 1.0])
        );
    }

    #[test]
    fn a_rest_that_fills_no_bin_is_left_out() {
        assert_eq!(rebin(&[1.0, 3.0, 100.0], BIN, BIN * 2), Ok(vec![2.0]));
        assert_eq!(
            rebin(&[1.0], BIN, BIN * 2),
            Err(Error::TooFew {
                count: 1,
                needed: 2
            })
        );
    }

    #[test]
    fn what_has_no_answer_says_why() {
        let odd = Span::from_millis(150);
        assert_eq!(
            rebin(&[1.0, 2.0], BIN, odd).unwrap_err().to_string(),
            "the time scale 150ms is not a whole number of bins of 100ms"
        );
        assert!(rebin(&[1.0], BIN, Span::ZERO).is_err() && rebin(&[1.0], Span::ZERO, BIN).is_err());
        assert_eq!(
            equivalence(&[1.0], &[]),
            Err(Error::Unequal { left: 1, right: 0 })
        );
        assert_eq!(equivalence(&[0.0], &[0.0]), Err(Error::AllZero));
        assert_eq!(coefficient_of_variation(&[0.0, 0.0]), Err(Error::AllZero));
        assert_eq!(
            coefficient_of_variation(&[]),
            Err(Error::TooFew {
                count: 0,
                needed: 1
            })
        );
    }

    proptest! {
        #[test]
        fn rebinning_keeps_the_mean(values in prop::collection::vec(0.0..1e6, 12)) {
            for factor in [1, 2, 3, 4, 6, 12] {
                let longer = rebin(&values, BIN, BIN * factor).unwrap();
                prop_assert!((mean(&longer) - mean(&values)).abs() < 1e-6);
            }
        }

        #[test]
        fn equivalence_is_symmetric_and_one_with_itself(
            pairs in prop::collection::vec((0.0..10.0, 0.1..10.0), 1..20),
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let e = equivalence(&a, &b).unwrap();
            prop_assert!((0.0..=1.0).contains(&e));
            prop_assert_eq!(equivalence(&b, &a), Ok(e));
            prop_assert_eq!(equivalence(&b, &b), Ok(1.0));
        }
    }
}
