//! The estimator against RFC 6298 in real numbers, and against ns-2's integers.

use comity_congestion::{RttConfig, RttEstimator};
use comity_units::{Span, Time};
use proptest::prelude::*;

/// RFC 6298, sections 2.2 and 2.3, in seconds.
#[derive(Clone, Copy, Debug)]
struct Rfc6298 {
    srtt: f64,
    rttvar: f64,
}

impl Rfc6298 {
    fn first(sample: f64) -> Self {
        Self {
            srtt: sample,
            rttvar: sample / 2.0,
        }
    }

    fn then(self, sample: f64) -> Self {
        Self {
            rttvar: (1.0 - 0.25) * self.rttvar + 0.25 * (self.srtt - sample).abs(),
            srtt: (1.0 - 0.125) * self.srtt + 0.125 * sample,
        }
    }

    fn rto(self, config: &RttConfig) -> f64 {
        (self.srtt + config.granularity.as_secs_f64().max(4.0 * self.rttvar))
            .max(config.min_timeout.as_secs_f64())
            .min(config.max_timeout.as_secs_f64())
    }
}

/// How far a span of whole nanoseconds is from seconds, in nanoseconds.
fn apart(found: Span, expected: f64) -> f64 {
    (found.as_nanos() as f64 - expected * 1e9).abs()
}

proptest! {
    /// Both averages are rounded down at each step: SRTT is off by one nanosecond and RTTVAR, which
    /// takes the rounded SRTT in, by two, so the timeout by 1 + 4 · 2 nanoseconds; twice that for
    /// the real numbers.
    #[test]
    fn follows_the_text(samples in prop::collection::vec(1u64..3_000_000_000, 1..300)) {
        let configs = [
            RttConfig::RFC6298,
            RttConfig { min_timeout: Span::ZERO, granularity: Span::ZERO, ..RttConfig::RFC6298 },
        ];
        for config in configs {
            let mut estimator = RttEstimator::new(&config);
            let mut reading: Option<Rfc6298> = None;
            let mut now = Time::from_secs(5);
            for sample in &samples {
                let span = Span::from_nanos(*sample);
                estimator.on_sample(&config, now, now + span);
                now += span;
                let sample = span.as_secs_f64();
                let expected = reading.map_or_else(|| Rfc6298::first(sample), |reading| reading.then(sample));
                reading = Some(expected);
                let srtt = estimator.smoothed(&config).unwrap_or(Span::ZERO);
                prop_assert!(apart(srtt, expected.srtt) <= 2.0, "{srtt} for {expected:?}");
                let rttvar = estimator.variation(&config);
                prop_assert!(apart(rttvar, expected.rttvar) <= 4.0, "{rttvar} for {expected:?}");
                let rto = estimator.timeout(&config);
                prop_assert!(apart(rto, expected.rto(&config)) <= 18.0, "{rto} for {expected:?}");
            }
        }
    }
}

fn ticks(estimator: &mut RttEstimator, config: &RttConfig, ticks: u64) {
    // From edge to edge, whatever the phase.
    let sent = Time::ZERO + config.phase + config.tick * 50;
    estimator.on_sample(config, sent, sent + config.tick * ticks);
}

/// `t_srtt_` and `t_rttvar_` by hand, in ticks of 100 ms:
///
/// ```text
/// sample   t_srtt_                t_rttvar_                     rto = (8 · t_rttvar_ + t_srtt_) >> 3
///      2   2 << 3 = 16            2 << 1 = 4                    48 >> 3 = 6
///      4   δ = 4 − 2; 18          δ = 2 − 1; 5                  58 >> 3 = 7
///      1   δ = 1 − 2; 17          δ = 1 − 1; 5                  57 >> 3 = 7
///      9   δ = 9 − 2; 24          δ = 7 − 1; 11                 112 >> 3 = 14
/// ```
#[test]
fn ns2_of_2000_by_hand() {
    let config = RttConfig::NS2_2000;
    let mut rtt = RttEstimator::new(&config);
    assert_eq!(rtt.timeout(&config), Span::from_secs(6));
    for (sample, smoothed, variation, timeout) in
        [(2, 2, 1, 6), (4, 2, 1, 7), (1, 2, 1, 7), (9, 3, 2, 14)]
    {
        ticks(&mut rtt, &config, sample);
        assert_eq!(rtt.smoothed(&config), Some(config.tick * smoothed));
        assert_eq!(rtt.variation(&config), config.tick * variation);
        assert_eq!(rtt.timeout(&config), config.tick * timeout);
    }
    // The back-off doubles the last value; beyond eight-fold SRTT moves into RTTVAR: 11 + (24 >> 3)
    // = 14.
    for factor in [2, 4, 8, 16] {
        rtt.back_off(&config);
        assert_eq!(rtt.timeout(&config), config.tick * (14 * factor));
    }
    assert_eq!(rtt.smoothed(&config), None);
    assert_eq!(rtt.variation(&config), config.tick * 3, "14 >> 2");
    // The next sample is a first one: 3 << 3 = 24, 3 << 1 = 6, (48 + 24) >> 3 = 9.
    ticks(&mut rtt, &config, 3);
    assert_eq!(
        rtt.timeout(&config),
        config.tick * (9 * 16),
        "the back-off is in force until data is acked"
    );
    rtt.end_backoff();
    assert_eq!(rtt.timeout(&config), config.tick * 9);
}

/// ns-2.35 counts 10 ms and floors the timeout at 200 ms before it backs off. A sample of one tick:
/// 8, 2, (16 + 8) >> 3 = 3 ticks, below the floor; one of 40: 320, 80, (640 + 320) >> 3 = 120.
#[test]
fn ns2_2_35_by_hand() {
    let config = RttConfig::NS2_2_35;
    let mut rtt = RttEstimator::new(&config);
    assert_eq!(rtt.timeout(&config), Span::from_secs(3));
    ticks(&mut rtt, &config, 1);
    assert_eq!(rtt.timeout(&config), Span::from_millis(200));
    rtt.back_off(&config);
    assert_eq!(rtt.timeout(&config), Span::from_millis(400));
    let mut rtt = RttEstimator::new(&config);
    ticks(&mut rtt, &config, 40);
    assert_eq!(rtt.timeout(&config), Span::from_millis(1_200));
}

/// `boot_time_` moves the ticks: with edges at 30, 130, 230, .. ms, what is sent at 120 ms and
/// acknowledged at 240 ms sees two, what is sent at 140 ms and acknowledged at 220 ms none, which
/// counts as one.
#[test]
fn ticks_have_a_phase() {
    let config = RttConfig {
        phase: Span::from_millis(30),
        ..RttConfig::NS2_2000
    };
    for (sent, acked, counted) in [(120, 240, 2), (140, 220, 1), (130, 230, 1), (129, 230, 2)] {
        let mut rtt = RttEstimator::new(&config);
        rtt.on_sample(&config, Time::from_millis(sent), Time::from_millis(acked));
        assert_eq!(
            rtt.smoothed(&config),
            Some(config.tick * counted),
            "{sent} to {acked}"
        );
    }
}
