//! Rank correlation.

use super::{Error, mean};

/// The ranks of values, from 1; equal values share the mean of their ranks.
///
/// # Errors
/// [`Error::Invalid`] when a value is not finite.
pub fn ranks(values: &[f64]) -> Result<Vec<f64>, Error> {
    if let Some(index) = values.iter().position(|value| !value.is_finite()) {
        return Err(Error::Invalid {
            index,
            value: values[index],
        });
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0;
    for tied in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = below as f64 + (tied.len() + 1) as f64 / 2.0;
        for &at in tied {
            ranks[at] = rank;
        }
        below += tied.len();
    }
    Ok(ranks)
}

/// Spearman's rank correlation: 1 if `right` always grows with `left`, −1 if it always falls, and
/// near 0 if neither.
///
/// ```text
/// ρ = Σ (a_i − ā)(b_i − b̄) / sqrt( Σ (a_i − ā)² · Σ (b_i − b̄)² ),   a, b the ranks
/// ```
///
/// # Errors
/// [`Error::Unequal`], [`Error::TooFew`] for fewer than two pairs, [`Error::Constant`],
/// [`Error::Invalid`].
///
/// Source: Spearman (1904), with mean ranks for ties.
pub fn spearman(left: &[f64], right: &[f64]) -> Result<f64, Error> {
    if left.len() != right.len() {
        return Err(Error::Unequal {
            left: left.len(),
            right: right.len(),
        });
    }
    if left.len() < 2 {
        return Err(Error::TooFew {
            count: left.len(),
            needed: 2,
        });
    }
    let (a, b) = (ranks(left)?, ranks(right)?);
    let (mean_a, mean_b) = (mean(&a), mean(&b));
    let sum = |terms: fn(f64, f64) -> f64| -> f64 {
        a.iter()
            .zip(&b)
            .map(|(a, b)| terms(a - mean_a, b - mean_b))
            .sum()
    };
    let spread = sum(|a, _| a * a) * sum(|_, b| b * b);
    if spread == 0.0 {
        return Err(Error::Constant);
    }
    Ok(sum(|a, b| a * b) / spread.sqrt())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ties_share_their_ranks() {
        assert_eq!(
            ranks(&[30.0, 10.0, 30.0, 20.0, 30.0]),
            Ok(vec![4.0, 1.0, 4.0, 2.0, 4.0])
        );
        // The two zeros of IEEE 754 are one value.
        assert_eq!(ranks(&[0.0, -0.0]), Ok(vec![1.5, 1.5]));
    }

    #[test]
    fn correlations_agree_with_published_ones() {
        // Without ties: 1 − 6 Σd² / (n(n² − 1)), Σd² = 194 for these ten.
        let left = [
            106.0, 100.0, 86.0, 101.0, 99.0, 103.0, 97.0, 113.0, 112.0, 110.0,
        ];
        let right = [7.0, 27.0, 2.0, 50.0, 28.0, 29.0, 20.0, 12.0, 6.0, 17.0];
        assert!((spearman(&left, &right).unwrap() + 29.0 / 165.0).abs() < 1e-14);
        // Ranks 1 2.5 2.5 4 5 and 2 1 3.5 3.5 5: 7.25 / sqrt(9.5 · 9.5).
        let tied = spearman(&[1.0, 2.0, 2.0, 4.0, 5.0], &[3.0, 1.0, 4.0, 4.0, 9.0]).unwrap();
        assert!((tied - 7.25 / 9.5).abs() < 1e-14);
    }

    #[test]
    fn what_has_no_answer_says_why() {
        assert_eq!(
            spearman(&[1.0], &[1.0]),
            Err(Error::TooFew {
                count: 1,
                needed: 2
            })
        );
        assert_eq!(
            spearman(&[1.0, 2.0], &[1.0]),
            Err(Error::Unequal { left: 2, right: 1 })
        );
        assert_eq!(spearman(&[1.0, 1.0], &[1.0, 2.0]), Err(Error::Constant));
        assert!(matches!(
            ranks(&[f64::NAN]),
            Err(Error::Invalid { index: 0, .. })
        ));
    }

    proptest! {
        #[test]
        fn only_the_order_matters(values in prop::collection::vec(-100.0..100.0, 2..30)) {
            prop_assume!(values.iter().any(|v| *v != values[0]));
            let cubes: Vec<f64> = values.iter().map(|v| v * v * v).collect();
            let negated: Vec<f64> = values.iter().map(|v| -v).collect();
            prop_assert!((spearman(&values, &cubes).unwrap() - 1.0).abs() < 1e-12);
            prop_assert!((spearman(&values, &negated).unwrap() + 1.0).abs() < 1e-12);
        }
    }
}
