//! Measures of fairness.

use super::{Error, check, mean, ratio};

/// The bits of a double that hold its power of two.
const EXPONENT: u64 = 0x7ff0_0000_0000_0000;

/// Jain's fairness index: 1 if all flows have the same throughput, 1/n if one flow has everything.
///
/// ```text
/// J = (Σ x)² / (n Σ x²)
/// ```
///
/// # Errors
/// [`Error::TooFew`] without values, [`Error::Invalid`], [`Error::AllZero`].
///
/// Source: Jain, Chiu and Hawe, DEC-TR-301 (1984).
pub fn jain(throughputs: &[f64]) -> Result<f64, Error> {
    check(throughputs, 1)?;
    let largest = throughputs.iter().copied().fold(0.0, f64::max);
    if largest == 0.0 {
        return Err(Error::AllZero);
    }
    // Division by the power of two at or below the largest value is exact, and keeps all squares in
    // the range of a double.
    let power = f64::from_bits(largest.to_bits() & EXPONENT).max(f64::MIN_POSITIVE);
    let scaled: Vec<f64> = throughputs.iter().map(|x| x / power).collect();
    let sum: f64 = scaled.iter().sum();
    let squares: f64 = scaled.iter().map(|x| x * x).sum();
    Ok((sum * sum / (scaled.len() as f64 * squares)).min(1.0))
}

/// The friendliness ratio: the mean of one group over the mean of the other. 1 is friendly; above 1
/// the first group takes more than its share.
///
/// ```text
/// F = mean(T_tested) / mean(T_tcp)
/// ```
///
/// Infinite if only the TCP flows have no throughput.
///
/// # Errors
/// [`Error::TooFew`] when a group is empty, [`Error::Invalid`] (the index counts within its group),
/// [`Error::AllZero`].
///
/// Source: TLTCP, section 6.2.
pub fn friendliness(tested: &[f64], tcp: &[f64]) -> Result<f64, Error> {
    check(tested, 1)?;
    check(tcp, 1)?;
    ratio(mean(tested), mean(tcp))
}

/// The friendliness ratio of flows of one kind, for the best and the worst division into halves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Baseline {
    /// The odd-ranked flows against the even-ranked: at least 1.
    pub best: f64,
    /// The higher half against the lower half: at least `best`.
    pub worst: f64,
}

/// The friendliness ratio of flows of one kind among themselves: the two extremes over the choice
/// of the tested half.
///
/// ```text
/// x_1 ≤ x_2 ≤ … ≤ x_n,  n even
/// F_worst = mean(x_{n/2+1} … x_n) / mean(x_1 … x_{n/2})
/// F_best  = max(o, e) / min(o, e),  o = mean(x_1, x_3, …), e = mean(x_2, x_4, …)
/// ```
///
/// A ratio whose divisor alone is zero is infinite: the lower half of the flows has no throughput.
///
/// # Errors
/// [`Error::TooFew`] for fewer than two flows, [`Error::Odd`], [`Error::Invalid`],
/// [`Error::AllZero`].
///
/// Source: TLTCP, section 6.2. Differs from the source in: 1. the sentence on F_worst names "the
/// N/2 lowest bandwidth flows" on both sides of the ratio; this follows the formula,
/// max_{n/2}/min_{n/2}, with the highest flows in the numerator. 2. the source calls F_best "the
/// best possible F"; the division into odd and even ranks is nearly, but not always, the most equal
/// one.
pub fn baseline(throughputs: &[f64]) -> Result<Baseline, Error> {
    check(throughputs, 2)?;
    if throughputs.len() % 2 == 1 {
        return Err(Error::Odd {
            count: throughputs.len(),
        });
    }
    let mut sorted = throughputs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (lowest, highest) = sorted.split_at(sorted.len() / 2);
    let odd = mean(&sorted.iter().copied().step_by(2).collect::<Vec<_>>());
    let even = mean(
        &sorted
            .iter()
            .copied()
            .skip(1)
            .step_by(2)
            .collect::<Vec<_>>(),
    );
    Ok(Baseline {
        best: ratio(odd.max(even), odd.min(even))?,
        worst: ratio(mean(highest), mean(lowest))?,
    })
}

/// The separation index: the maximum throughput over the minimum. S_MIX over flows of both kinds,
/// S_TCP over TCP flows alone.
///
/// ```text
/// S = max x / min x
/// ```
///
/// Infinite if a flow has no throughput, and another one has some.
///
/// # Errors
/// [`Error::TooFew`] without values, [`Error::Invalid`], [`Error::AllZero`].
///
/// Source: TLTCP, section 6.2. Differs from the source in: 1. the source writes "the ratio of the
/// maximum observed bandwidth" without a divisor. The measure that it cites and its figures (1 is
/// ideal) imply the minimum.
pub fn max_min_ratio(throughputs: &[f64]) -> Result<f64, Error> {
    check(throughputs, 1)?;
    let largest = throughputs.iter().copied().fold(0.0, f64::max);
    let least = throughputs.iter().copied().fold(f64::INFINITY, f64::min);
    ratio(largest, least)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(got: f64, expected: f64) {
        assert!(
            (got / expected - 1.0).abs() < 1e-12,
            "{got} is not {expected}"
        );
    }

    #[test]
    fn four_flows_by_hand() {
        // Sorted 1 2 3 6: halves 4.5 and 1.5; odd ranks (1 + 3) / 2 = 2, even ranks (2 + 6) / 2
        // = 4.
        let flows = [3.0, 1.0, 6.0, 2.0];
        let Baseline { best, worst } = baseline(&flows).unwrap();
        close(best, 2.0);
        close(worst, 3.0);
        close(max_min_ratio(&flows).unwrap(), 6.0);
        // (12)² / (4 · 50)
        close(jain(&flows).unwrap(), 0.72);
        close(friendliness(&flows[..2], &flows[2..]).unwrap(), 0.5);
    }

    #[test]
    fn one_flow_that_takes_everything() {
        let flows = [0.0, 0.0, 0.0, 8.0];
        close(jain(&flows).unwrap(), 0.25);
        assert_eq!(max_min_ratio(&flows), Ok(f64::INFINITY));
        assert_eq!(
            baseline(&flows),
            Ok(Baseline {
                best: f64::INFINITY,
                worst: f64::INFINITY
            })
        );
        assert_eq!(friendliness(&[1.0], &[0.0]), Ok(f64::INFINITY));
        assert_eq!(friendliness(&[0.0], &[1.0]), Ok(0.0));
    }

    #[test]
    fn the_largest_doubles_do_not_overflow() {
        close(jain(&[f64::MAX / 4.0; 2]).unwrap(), 1.0);
        close(jain(&[f64::MIN_POSITIVE, 0.0]).unwrap(), 0.5);
        assert_eq!(jain(&[f64::MAX, f64::MAX]), Ok(1.0));
    }

    #[test]
    fn what_has_no_answer_says_why() {
        assert_eq!(
            jain(&[]),
            Err(Error::TooFew {
                count: 0,
                needed: 1
            })
        );
        assert_eq!(
            baseline(&[]),
            Err(Error::TooFew {
                count: 0,
                needed: 2
            })
        );
        assert_eq!(baseline(&[1.0, 2.0, 3.0]), Err(Error::Odd { count: 3 }));
        assert_eq!(
            max_min_ratio(&[]),
            Err(Error::TooFew {
                count: 0,
                needed: 1
            })
        );
        assert_eq!(
            friendliness(&[1.0], &[]),
            Err(Error::TooFew {
                count: 0,
                needed: 1
            })
        );
        let zeros = [0.0; 4];
        assert_eq!(jain(&zeros), Err(Error::AllZero));
        assert_eq!(baseline(&zeros), Err(Error::AllZero));
        assert_eq!(max_min_ratio(&zeros), Err(Error::AllZero));
        assert_eq!(friendliness(&zeros, &zeros), Err(Error::AllZero));
        assert_eq!(
            jain(&[1.0, -2.0]),
            Err(Error::Invalid {
                index: 1,
                value: -2.0
            })
        );
        assert!(matches!(
            baseline(&[f64::NAN, 1.0]),
            Err(Error::Invalid { index: 0, .. })
        ));
        assert_eq!(
            Error::Odd { count: 3 }.to_string(),
            "3 flows are given, and halves need an even number"
        );
    }

    /// Every division into halves, by the definition of "worst".
    fn worst_by_enumeration(flows: &[f64]) -> f64 {
        let half = flows.len() / 2;
        (0_u32..1 << flows.len())
            .filter(|set| set.count_ones() as usize == half)
            .map(|set| {
                let side = |chosen: bool| -> f64 {
                    let on_side = |i: &usize| (set >> i & 1 == 1) == chosen;
                    (0..flows.len()).filter(on_side).map(|i| flows[i]).sum()
                };
                side(true) / side(false)
            })
            .fold(0.0, f64::max)
    }

    proptest! {
        #[test]
        fn worst_is_the_worst_of_all_divisions(half in 1_usize..5, seed in prop::collection::vec(0.1..100.0, 10)) {
            let flows = &seed[..2 * half];
            let got = baseline(flows).unwrap();
            let expected = worst_by_enumeration(flows);
            prop_assert!((got.worst / expected - 1.0).abs() < 1e-9);
            prop_assert!(1.0 <= got.best && got.best <= got.worst * (1.0 + 1e-12));
            prop_assert!(got.worst <= max_min_ratio(flows).unwrap() * (1.0 + 1e-12));
        }

        #[test]
        fn jain_is_between_one_nth_and_one_and_has_no_unit(
            flows in prop::collection::vec(0.1..100.0, 1..20), unit in 0.001..1000.0,
        ) {
            let index = jain(&flows).unwrap();
            prop_assert!(index <= 1.0 && index >= 1.0 / flows.len() as f64 - 1e-12);
            let scaled: Vec<f64> = flows.iter().map(|x| x * unit).collect();
            prop_assert!((jain(&scaled).unwrap() - index).abs() < 1e-12);
        }
    }
}
