//! The time until flows share equally.

use comity_units::{Span, Time};
use serde::{Deserialize, Serialize};

use super::{Error, check};
use crate::words;

/// When a set of flows counts as having converged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Convergence {
    /// The maximum distance of each flow from the fair share, as a part of that share.
    pub tolerance: f64,
    /// How long the flows have to stay there, rounded up to whole bins, and at least one bin.
    #[serde(with = "words")]
    pub hold: Span,
}

/// The start of the first interval of length `hold` in which every flow stays near its fair share.
/// Only bins that start at or after `from` count, for example the time at which the last flow
/// joined. `None` if there is no such interval.
///
/// ```text
/// fair(t) = (1/n) Σ x_i(t)
/// t*      = min t ≥ from : |x_i(u) − fair(u)| ≤ δ · fair(u)  for every i and every bin u in [t, t + hold)
/// ```
///
/// A bin without any data is not near any share. For two flows this is the δ-fair convergence of
/// RFC 5166, with shares of (1 + δ)/2 and (1 − δ)/2.
///
/// * `flows`: the throughput of each flow in each bin, in any one unit, all equally long.
/// * `bin`: the length of a bin; the first starts at zero.
///
/// # Errors
/// [`Error::TooFew`] for fewer than two flows or no bin, [`Error::Unequal`], [`Error::Invalid`]
/// (also for the tolerance), [`Error::NotWholeBins`] when the bin is empty.
///
/// Source: RFC 5166, section 2.5, after Bansal, Balakrishnan, Floyd and Shenker, SIGCOMM 2001,
/// section 4.3. Differs from the source in: 1. any number of flows instead of two. 2. the flows
/// have to stay near the fair share for `hold`, because the share of a bin may be fair by chance
/// long before flows have converged.
pub fn convergence_time<S: AsRef<[f64]>>(
    flows: &[S],
    bin: Span,
    from: Time,
    criterion: Convergence,
) -> Result<Option<Time>, Error> {
    let Convergence { tolerance, hold } = criterion;
    if flows.len() < 2 {
        return Err(Error::TooFew {
            count: flows.len(),
            needed: 2,
        });
    }
    if bin.is_zero() {
        return Err(Error::NotWholeBins { scale: hold, bin });
    }
    check(&[tolerance], 1)?;
    let bins = flows[0].as_ref().len();
    for flow in flows {
        let flow = flow.as_ref();
        if flow.len() != bins {
            return Err(Error::Unequal {
                left: bins,
                right: flow.len(),
            });
        }
        check(flow, 1)?;
    }
    let is_fair = |at: usize| {
        let total: f64 = flows.iter().map(|flow| flow.as_ref()[at]).sum();
        let fair = total / flows.len() as f64;
        fair > 0.0
            && flows
                .iter()
                .all(|flow| (flow.as_ref()[at] - fair).abs() <= tolerance * fair)
    };
    let needed = hold.as_nanos().div_ceil(bin.as_nanos()).max(1);
    let first = from.as_nanos().div_ceil(bin.as_nanos());
    let mut held = 0;
    for at in usize::try_from(first).unwrap_or(usize::MAX)..bins {
        held = if is_fair(at) { held + 1 } else { 0 };
        if held == needed {
            return Ok(Some(Time::ZERO + bin * (at as u64 + 1 - needed)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Span = Span::from_secs(1);

    fn within(percent: u32, hold: u64) -> Convergence {
        Convergence {
            tolerance: f64::from(percent) / 100.0,
            hold: Span::from_secs(hold),
        }
    }

    #[test]
    fn two_flows_by_hand() {
        // Fair is 5. A crossing at 2 s, then within 20 % (4 to 6) from 4 s on.
        let flows = [
            [10.0, 8.0, 5.0, 7.0, 6.0, 5.5, 5.0],
            [0.0, 2.0, 5.0, 3.0, 4.0, 4.5, 5.0],
        ];
        let at =
            |percent, hold| convergence_time(&flows, SECOND, Time::ZERO, within(percent, hold));
        assert_eq!(at(20, 1), Ok(Some(Time::from_secs(2))));
        assert_eq!(at(20, 2), Ok(Some(Time::from_secs(4))));
        assert_eq!(at(20, 3), Ok(Some(Time::from_secs(4))));
        assert_eq!(at(20, 4), Ok(None));
        assert_eq!(at(19, 2), Ok(Some(Time::from_secs(5))));
        assert_eq!(at(100, 0), Ok(Some(Time::ZERO)));
    }

    #[test]
    fn looking_begins_at_from_and_holds_round_up() {
        let flows = [[1.0; 6], [1.0; 6]];
        let at = |millis, hold| {
            let criterion = Convergence {
                tolerance: 0.0,
                hold: Span::from_millis(hold),
            };
            convergence_time(&flows, SECOND, Time::from_millis(millis), criterion)
        };
        assert_eq!(at(1_000, 1_000), Ok(Some(Time::from_secs(1))));
        assert_eq!(at(1_001, 1_001), Ok(Some(Time::from_secs(2))));
        assert_eq!(at(4_001, 1_001), Ok(None));
        assert_eq!(at(99_000, 1), Ok(None));
    }

    #[test]
    fn silence_is_not_fairness() {
        let flows = [[0.0, 0.0, 2.0], [0.0, 0.0, 2.0]];
        assert_eq!(
            convergence_time(&flows, SECOND, Time::ZERO, within(10, 1)),
            Ok(Some(Time::from_secs(2)))
        );
    }

    #[test]
    fn three_flows_are_fair_together_or_not_at_all() {
        // 4 4 1 has a mean of 3; 3 3 3 is fair.
        let flows = [[4.0, 3.0], [4.0, 3.0], [1.0, 3.0]];
        assert_eq!(
            convergence_time(&flows, SECOND, Time::ZERO, within(34, 1)),
            Ok(Some(Time::from_secs(1)))
        );
    }

    #[test]
    fn what_has_no_answer_says_why() {
        let some = within(10, 1);
        let one = convergence_time(&[[1.0]], SECOND, Time::ZERO, some);
        assert_eq!(
            one,
            Err(Error::TooFew {
                count: 1,
                needed: 2
            })
        );
        let uneven = convergence_time(&[vec![1.0], vec![1.0, 2.0]], SECOND, Time::ZERO, some);
        assert_eq!(uneven, Err(Error::Unequal { left: 1, right: 2 }));
        let empty = convergence_time(&[vec![], vec![]], SECOND, Time::ZERO, some);
        assert_eq!(
            empty,
            Err(Error::TooFew {
                count: 0,
                needed: 1
            })
        );
        assert!(convergence_time(&[[1.0], [1.0]], Span::ZERO, Time::ZERO, some).is_err());
        let negative = Convergence {
            tolerance: -0.1,
            ..some
        };
        assert!(convergence_time(&[[1.0], [1.0]], SECOND, Time::ZERO, negative).is_err());
    }
}
