//! Measures of a path: loss, delay and jitter.

use super::Error;
use crate::report::Summary;

/// The share of the offered packets that did not arrive.
///
/// # Errors
/// [`Error::AllZero`] when none were offered; [`Error::Invalid`] when more were lost than offered.
pub fn loss_ratio(lost: u64, offered: u64) -> Result<f64, Error> {
    match offered {
        0 if lost == 0 => Err(Error::AllZero),
        _ if lost > offered => Err(Error::Invalid {
            index: 0,
            value: lost as f64,
        }),
        _ => Ok(lost as f64 / offered as f64),
    }
}

/// The exact summary of delays in seconds: mean, standard deviation (the jitter of the
/// packet-spacing papers) and nearest-rank percentiles. Zeros when empty.
///
/// ```text
/// stddev² = (1/n) Σ (d − mean)²,   p_q = d_(⌈q n⌉) in increasing order
/// ```
///
/// # Errors
/// [`Error::Invalid`] when a delay is negative or not finite.
pub fn summary(delays: &[f64]) -> Result<Summary, Error> {
    super::check(delays, 0)?;
    let mut sorted = delays.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else {
        return Ok(Summary::default());
    };
    let count = sorted.len() as f64;
    let mean = super::mean(&sorted);
    let variance = sorted.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / count;
    let percentile = |share: f64| {
        let rank = (share * count).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or(max)
    };
    Ok(Summary {
        count: sorted.len() as u64,
        mean,
        stddev: variance.sqrt(),
        min,
        max,
        median: percentile(0.5),
        p95: percentile(0.95),
        p99: percentile(0.99),
    })
}

/// The interarrival jitter as RTP receivers estimate it, after the last packet, in the unit of the
/// delays.
///
/// ```text
/// J_0 = 0,   J_i = J_{i−1} + (|d_i − d_{i−1}| − J_{i−1}) / 16
/// ```
///
/// * `delays`: one-way delays in the order of arrival. A constant offset between the clocks
///   cancels.
///
/// # Errors
/// [`Error::TooFew`] for fewer than two packets; [`Error::Invalid`] when a delay is not finite.
///
/// Source: RFC 3550, section 6.4.1.
pub fn interarrival_jitter(delays: &[f64]) -> Result<f64, Error> {
    if delays.len() < 2 {
        return Err(Error::TooFew {
            count: delays.len(),
            needed: 2,
        });
    }
    if let Some(index) = delays.iter().position(|delay| !delay.is_finite()) {
        return Err(Error::Invalid {
            index,
            value: delays[index],
        });
    }
    Ok(delays.windows(2).fold(0.0, |jitter, pair| {
        jitter + ((pair[1] - pair[0]).abs() - jitter) / 16.0
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_by_hand() {
        assert_eq!(loss_ratio(3, 12), Ok(0.25));
        assert_eq!(loss_ratio(0, 5), Ok(0.0));
        assert_eq!(loss_ratio(0, 0), Err(Error::AllZero));
        assert_eq!(
            loss_ratio(6, 5),
            Err(Error::Invalid {
                index: 0,
                value: 6.0
            })
        );
    }

    #[test]
    fn summaries_by_hand() {
        // 1 to 20: mean 10.5, variance (20² − 1)/12 = 33.25.
        let delays: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        let got = summary(&delays).unwrap();
        assert_eq!(
            (got.count, got.mean, got.min, got.max),
            (20, 10.5, 1.0, 20.0)
        );
        assert!((got.stddev - 33.25_f64.sqrt()).abs() < 1e-14);
        assert_eq!((got.median, got.p95, got.p99), (10.0, 19.0, 20.0));
        assert_eq!(summary(&[]), Ok(Summary::default()));
        assert!(summary(&[-1.0]).is_err());
    }

    #[test]
    fn jitter_by_hand() {
        // Differences 16, 0, 32: 1, then 15/16, then 15/16 + (32 − 15/16)/16.
        let got = interarrival_jitter(&[100.0, 116.0, 116.0, 84.0]).unwrap();
        assert!((got - (0.9375 + (32.0 - 0.9375) / 16.0)).abs() < 1e-14);
        // The jitter approaches a constant difference, and a clock's offset has no effect.
        let ramp: Vec<f64> = (0..400).map(|i| f64::from(i) * 3.0 - 1e3).collect();
        assert!((interarrival_jitter(&ramp).unwrap() - 3.0).abs() < 1e-9);
        assert_eq!(
            interarrival_jitter(&[1.0]),
            Err(Error::TooFew {
                count: 1,
                needed: 2
            })
        );
    }
}
