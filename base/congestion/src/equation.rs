//! TCP's throughput equation.

use comity_units::{DataSize, Rate, Span};

/// The rate of a TCP flow with segments of `segment` bytes, a round trip of `rtt` and a loss event
/// rate of `p` (loss events per segment).
///
/// ```text
///                         8 · segment
/// X = ───────────────────────────────────────────────── bit/s
///     R·√(2p/3) + 4R · 3·√(3p/8) · p · (1 + 32·p²)
/// ```
///
/// [`Rate::MAX`] without losses or without a round trip.
///
/// Source: RFC 5348, section 3.1, with `b = 1` and `t_RTO = 4R`; after Padhye, Firoiu, Towsley and
/// Kurose, SIGCOMM 1998.
pub fn throughput(segment: DataSize, rtt: Span, p: f64) -> Rate {
    throughput_with_timeout(segment, rtt, p, USUAL_TIMEOUT)
}

/// [`throughput`] with a retransmission timeout of `timeout` round trips instead of four.
pub fn throughput_with_timeout(segment: DataSize, rtt: Span, p: f64, timeout: f64) -> Rate {
    let rounds = segments_per_round_trip(p, timeout);
    let seconds = rtt.as_secs_f64();
    if !rounds.is_finite() || seconds <= 0.0 {
        return Rate::MAX;
    }
    Rate::from_bps_f64(segment.get() as f64 * 8.0 * rounds / seconds)
}

/// The loss event rate at which [`throughput`] is `rate`: its inverse, by bisection to one part in
/// a million.
///
/// The result is between `10⁻¹²` and 1.
///
/// Source: RFC 5348, section 6.3.1, which computes the first loss interval this way, so that the
/// first loss does not change the rate.
pub fn loss_event_rate(segment: DataSize, rtt: Span, rate: Rate) -> f64 {
    loss_event_rate_with_timeout(segment, rtt, rate, USUAL_TIMEOUT)
}

/// [`loss_event_rate`] with a retransmission timeout of `timeout` round trips instead of four: the
/// inverse of [`throughput_with_timeout`].
pub fn loss_event_rate_with_timeout(segment: DataSize, rtt: Span, rate: Rate, timeout: f64) -> f64 {
    let (mut low, mut high) = (MIN_RATE, 1.0);
    // The equation falls with p. Forty halvings of the twelve decades leave less than a millionth.
    for _ in 0..40 {
        let middle = libm::sqrt(low * high);
        if throughput_with_timeout(segment, rtt, middle, timeout) > rate {
            low = middle;
        } else {
            high = middle;
        }
    }
    libm::sqrt(low * high)
}

/// The throughput in segments per round trip, with a timeout in round trips; infinite without
/// losses.
fn segments_per_round_trip(p: f64, timeout: f64) -> f64 {
    let p = p.clamp(0.0, 1.0);
    let repairs = libm::sqrt(2.0 * p / 3.0);
    let timeouts = timeout * 3.0 * libm::sqrt(3.0 * p / 8.0) * p * (1.0 + 32.0 * p * p);
    1.0 / (repairs + timeouts)
}

/// RFC 5348, section 3.1: `t_RTO = 4R`.
const USUAL_TIMEOUT: f64 = 4.0;

/// The lower bound of the inverse: one loss event in 10¹² segments.
const MIN_RATE: f64 = 1e-12;

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: DataSize = DataSize::new(1_000);
    const RTT: Span = Span::from_millis(100);

    #[test]
    fn by_hand() {
        // p = 0.01: √(0.02/3) = 0.0816497; 12 · √0.00375 · 0.01 · 1.0032 = 0.0073721; 1 / 0.0890218
        // = 11.2332 segments in 100 ms, 898,656 bit/s.
        let rate = throughput(SEGMENT, RTT, 0.01).as_bps();
        assert!((898_600..898_700).contains(&rate), "{rate}");
        // p = 1: √(2/3) = 0.816497; 12 · √0.375 · 33 = 242.5 (timeouts in a row): 0.0041098
        // segments.
        let rate = throughput(SEGMENT, RTT, 1.0).as_bps();
        assert!((325..333).contains(&rate), "{rate}");
        // A timeout of one round trip instead of four: 1 / (0.0816497 + 0.0018430) = 11.9771
        // segments.
        let rate = throughput_with_timeout(SEGMENT, RTT, 0.01, 1.0).as_bps();
        assert!((958_100..958_220).contains(&rate), "{rate}");
        assert_eq!(throughput(SEGMENT, RTT, 0.0), Rate::MAX);
        assert_eq!(throughput(SEGMENT, Span::ZERO, 0.01), Rate::MAX);
    }

    #[test]
    fn the_inverse_gives_the_rate_back() {
        for kbps in [10, 100, 1_000, 10_000, 1_000_000] {
            let rate = Rate::from_kbps(kbps);
            let p = loss_event_rate(SEGMENT, RTT, rate);
            let back = throughput(SEGMENT, RTT, p).as_bps() as f64;
            let asked = rate.as_bps() as f64;
            assert!((back / asked - 1.0).abs() < 1e-4, "{kbps} kb/s: {back}");
            let p = loss_event_rate_with_timeout(SEGMENT, RTT, rate, 1.0);
            let back = throughput_with_timeout(SEGMENT, RTT, p, 1.0).as_bps() as f64;
            assert!((back / asked - 1.0).abs() < 1e-4, "{kbps} kb/s: {back}");
        }
    }
}
