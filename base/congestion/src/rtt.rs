//! Smoothed round-trip time and retransmission timeout.

use comity_units::{Span, Time};

/// How round-trip times are measured and turned into a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttConfig {
    /// The resolution of round trips. One nanosecond is exact; BSD and the simulations of the
    /// papers' time used 100 ms or 500 ms.
    pub tick: Span,
    /// The phase of the clock: ticks are at `phase + n · tick`. A round trip counts as the number
    /// of ticks in it, so its beginning matters. Without effect when the tick is 1 ns.
    pub phase: Span,
    /// `G` of RFC 6298: the lower bound of `4 · RTTVAR` in the timeout.
    pub granularity: Span,
    /// The timeout before the first measurement: 1 s in RFC 6298, 3 s or 6 s before.
    pub initial_timeout: Span,
    /// The minimum timeout: 1 s in RFC 6298, 200 ms in Linux and ns-2.35, none in earlier ns-2.
    pub min_timeout: Span,
    /// The maximum timeout, back-off included.
    pub max_timeout: Span,
    /// The maximum number of doublings in a row: 6 in BSD and early ns-2. In RFC 6298 only
    /// `max_timeout` limits them.
    pub max_doublings: u8,
    /// Whether the floor is applied before the back-off multiplies (RFC 6298 with its clamp at step
    /// 2.4) or to the product.
    pub floor_before_backoff: bool,
    /// Whether four or more back-offs in a row move the smoothed time into the variation. BSD does
    /// so because the route may have changed.
    pub forget_after_backoff: bool,
}

impl RttConfig {
    /// RFC 6298: a minimum and an initial timeout of 1 s, and a maximum of 60 s.
    pub const RFC6298: Self = Self {
        tick: Span::from_nanos(1),
        phase: Span::ZERO,
        granularity: Span::from_millis(1),
        initial_timeout: Span::from_secs(1),
        min_timeout: Span::from_secs(1),
        max_timeout: Span::from_secs(60),
        max_doublings: MAX_DOUBLINGS,
        floor_before_backoff: true,
        forget_after_backoff: false,
    };

    /// Linux: RFC 6298 with a timeout of at least the smoothed time and 200 ms, and at most 120 s.
    pub const LINUX: Self = Self {
        granularity: Span::from_millis(200),
        min_timeout: Span::from_millis(200),
        max_timeout: Span::from_secs(120),
        ..Self::RFC6298
    };

    /// ns-2.35's defaults: ticks of 10 ms, a minimum of 200 ms before the back-off.
    pub const NS2_2_35: Self = Self {
        tick: Span::from_millis(10),
        phase: Span::ZERO,
        granularity: Span::ZERO,
        initial_timeout: Span::from_secs(3),
        min_timeout: Span::from_millis(200),
        max_timeout: Span::from_secs(60),
        max_doublings: MAX_DOUBLINGS,
        floor_before_backoff: true,
        forget_after_backoff: true,
    };

    /// ns-2 as the papers of 1999 to 2001 used it: ticks of 100 ms and a minimum of two ticks.
    pub const NS2_2000: Self = Self {
        tick: Span::from_millis(100),
        phase: Span::ZERO,
        granularity: Span::ZERO,
        initial_timeout: Span::from_secs(6),
        min_timeout: Span::ZERO,
        max_timeout: Span::from_secs(100_000),
        max_doublings: 6,
        floor_before_backoff: false,
        forget_after_backoff: true,
    };

    /// 4.4BSD, whose TCP many systems of the 1990s adopted: ticks of 500 ms, at least 1 s, at most
    /// 64 s (`PR_SLOWHZ`, `TCPTV_MIN` and `TCPTV_REXMTMAX` of tcp_timer.h; Stevens, TCP/IP
    /// Illustrated 2, chapter 25). Differs in: the timer expires at its time, not at the next tick.
    pub const BSD: Self = Self {
        tick: Span::from_millis(500),
        min_timeout: Span::from_secs(1),
        max_timeout: Span::from_secs(64),
        ..Self::NS2_2000
    };

    /// The first tick at or after a time.
    #[must_use]
    pub fn next_tick(&self, at: Time) -> Time {
        match self.since_tick(at) {
            0 => at,
            past => at
                .checked_add(Span::from_nanos(self.tick.as_nanos() - past))
                .unwrap_or(Time::MAX),
        }
    }

    /// The nanoseconds from the last tick to a time.
    fn since_tick(&self, at: Time) -> u64 {
        let tick = self.tick.as_nanos().max(1);
        let shift = tick - self.phase.as_nanos() % tick;
        at.as_nanos().wrapping_add(shift) % tick
    }
}

impl Default for RttConfig {
    fn default() -> Self {
        Self::RFC6298
    }
}

/// Smooths round-trip times and derives the retransmission timeout.
///
/// ```text
/// δ      = R' − SRTT
/// SRTT   = SRTT + δ / 8
/// RTTVAR = RTTVAR + (|δ| − RTTVAR) / 4
/// RTO    = clamp(SRTT + max(G, 4 · RTTVAR)) · backoff
/// ```
///
/// Source: RFC 6298, section 2, in the integer arithmetic of Jacobson 1988 (appendix A): both
/// averages are kept scaled by 8 and by 4 and are rounded down, in units of [`RttConfig::tick`].
/// With a tick of 1 ns the rounding is below any effect; with the ticks of the papers' time it
/// reproduces BSD and ns-2.
///
/// Differs from RFC 6298 in: 1. one δ serves both updates, as in Jacobson's code; the RFC updates
/// RTTVAR first, with the old SRTT, which has the same result; 2. a timeout is at least two ticks
/// if a tick is longer than 1 ns, as in ns-2 and BSD, because a timer of one tick may expire at
/// once.
#[derive(Clone, Copy, Debug)]
pub struct RttEstimator {
    smoothed: SmoothedRtt,
    /// 4 · RTTVAR in ticks.
    variation_by_4: u64,
    /// SRTT + 4 · RTTVAR, before floor and back-off.
    unclamped: Span,
    latest: Span,
    min: Span,
    backoff_exponent: u8,
    has_sample: bool,
}

/// The smoothed round-trip time alone: `SRTT` of [`RttEstimator`], in ticks that the caller
/// chooses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SmoothedRtt {
    /// 8 · SRTT; zero before the first sample.
    ticks_by_8: u64,
}

impl SmoothedRtt {
    /// Takes a round trip in ticks.
    pub(crate) fn on_sample(&mut self, ticks: u64) {
        let ticks = ticks.clamp(1, LONGEST_SAMPLE);
        self.ticks_by_8 = if self.ticks_by_8 == 0 {
            ticks << 3
        } else {
            (self.ticks_by_8 + ticks)
                .saturating_sub(self.ticks())
                .max(1)
        };
    }

    /// The smoothed time in ticks; zero before the first sample.
    pub(crate) const fn ticks(self) -> u64 {
        self.ticks_by_8 >> 3
    }

    const fn is_empty(self) -> bool {
        self.ticks_by_8 == 0
    }
}

/// After this many doublings every timeout is at its maximum.
const MAX_DOUBLINGS: u8 = 32;

/// The maximum of a sample, 2⁵⁶ ticks, so that the scaled averages do not overflow.
const LONGEST_SAMPLE: u64 = 1 << 56;

impl RttEstimator {
    /// An estimator without measurements.
    pub const fn new(config: &RttConfig) -> Self {
        Self {
            smoothed: SmoothedRtt { ticks_by_8: 0 },
            variation_by_4: 0,
            unclamped: config.initial_timeout,
            latest: Span::ZERO,
            min: Span::MAX,
            backoff_exponent: 0,
            has_sample: false,
        }
    }

    /// Takes the round trip of a packet sent at `sent_at` and acknowledged at `now`.
    ///
    /// The caller applies Karn's rule: no samples from retransmitted packets, unless a timestamp
    /// shows which transmission was acknowledged.
    pub fn on_sample(&mut self, config: &RttConfig, sent_at: Time, now: Time) {
        let elapsed = now.saturating_since(sent_at);
        self.latest = elapsed;
        self.min = self.min.min(elapsed);
        self.has_sample = true;

        let tick = config.tick.as_nanos().max(1);
        let measured = if tick == 1 {
            elapsed.as_nanos()
        } else {
            let since_tick = config.since_tick(sent_at);
            since_tick.saturating_add(elapsed.as_nanos()) / tick
        }
        .clamp(1, LONGEST_SAMPLE);

        if self.smoothed.is_empty() {
            self.variation_by_4 = measured << 1;
        } else {
            let difference = measured.abs_diff(self.smoothed.ticks());
            let variation = self.variation_by_4 >> 2;
            self.variation_by_4 = (self.variation_by_4 + difference)
                .saturating_sub(variation)
                .max(1);
        }
        self.smoothed.on_sample(measured);
        let floor = config.granularity.as_nanos() / tick;
        let ticks = (self.smoothed.ticks_by_8 + (self.variation_by_4.max(floor) << 3)) >> 3;
        self.unclamped = Span::from_nanos(ticks.saturating_mul(tick));
    }

    /// The timeout to arm now, back-off included.
    pub fn timeout(&self, config: &RttConfig) -> Span {
        let factor = 1u64 << self.backoff_exponent;
        let two_ticks = if config.tick.as_nanos() > 1 {
            config.tick * 2
        } else {
            Span::ZERO
        };
        let timeout = if config.floor_before_backoff {
            self.unclamped.max(config.min_timeout) * factor
        } else {
            (self.unclamped * factor).max(config.min_timeout)
        };
        timeout.min(config.max_timeout).max(two_ticks)
    }

    /// The timer expired: the next timeout is twice as long (RFC 6298, section 5.5).
    pub fn back_off(&mut self, config: &RttConfig) {
        self.backoff_exponent =
            (self.backoff_exponent + 1).min(config.max_doublings.min(MAX_DOUBLINGS));
        if config.forget_after_backoff && self.backoff_exponent > 3 {
            self.variation_by_4 += self.smoothed.ticks();
            self.smoothed = SmoothedRtt::default();
        }
    }

    /// Data that was sent once was acknowledged, which ends the back-off (Karn's algorithm).
    pub fn end_backoff(&mut self) {
        self.backoff_exponent = 0;
    }

    /// The number of doublings in force.
    pub const fn backoff_exponent(&self) -> u8 {
        self.backoff_exponent
    }

    /// The smoothed round-trip time; `None` before the first sample.
    pub fn smoothed(&self, config: &RttConfig) -> Option<Span> {
        (!self.smoothed.is_empty()).then(|| {
            let tick = config.tick.as_nanos().max(1);
            Span::from_nanos(self.smoothed.ticks().saturating_mul(tick))
        })
    }

    /// The mean deviation of the round-trip time.
    pub fn variation(&self, config: &RttConfig) -> Span {
        Span::from_nanos((self.variation_by_4 >> 2).saturating_mul(config.tick.as_nanos().max(1)))
    }

    /// The last sample, unrounded.
    pub fn latest(&self) -> Option<Span> {
        self.has_sample.then_some(self.latest)
    }

    /// The least sample so far, unrounded.
    pub fn min(&self) -> Option<Span> {
        self.has_sample.then_some(self.min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(estimator: &mut RttEstimator, config: &RttConfig, at_ms: u64, rtt_ms: u64) {
        let sent = Time::from_millis(at_ms);
        estimator.on_sample(config, sent, sent + Span::from_millis(rtt_ms));
    }

    #[test]
    fn the_next_tick_is_at_or_after_a_time() {
        let config = RttConfig {
            tick: Span::from_millis(100),
            phase: Span::from_millis(230),
            ..RttConfig::RFC6298
        };
        for (at, tick) in [
            (0, 30),
            (29, 30),
            (30, 30),
            (31, 130),
            (130, 130),
            (999, 1_030),
        ] {
            assert_eq!(
                config.next_tick(Time::from_millis(at)),
                Time::from_millis(tick),
                "{at}"
            );
        }
        assert_eq!(config.next_tick(Time::MAX), Time::MAX);
        let exact = RttConfig::RFC6298;
        assert_eq!(exact.next_tick(Time::from_nanos(7)), Time::from_nanos(7));
    }

    #[test]
    fn first_and_second_sample_by_hand() {
        // RFC 6298, 2.2: SRTT = R = 800 ms, RTTVAR = R/2 = 400 ms, RTO = 800 + 4 * 400 = 2400 ms.
        let config = RttConfig::RFC6298;
        let mut rtt = RttEstimator::new(&config);
        assert_eq!(rtt.timeout(&config), Span::from_secs(1));
        sample(&mut rtt, &config, 0, 800);
        assert_eq!(rtt.smoothed(&config), Some(Span::from_millis(800)));
        assert_eq!(rtt.variation(&config), Span::from_millis(400));
        assert_eq!(rtt.timeout(&config), Span::from_millis(2_400));
        // 2.3 with R' = 1600 ms: RTTVAR = 3/4 * 400 + 1/4 * 800 = 500; SRTT = 7/8 * 800 + 200
        // = 900.
        sample(&mut rtt, &config, 1_000, 1_600);
        assert_eq!(rtt.smoothed(&config), Some(Span::from_millis(900)));
        assert_eq!(rtt.variation(&config), Span::from_millis(500));
        assert_eq!(rtt.timeout(&config), Span::from_millis(2_900));
        assert_eq!(rtt.min(), Some(Span::from_millis(800)));
    }

    #[test]
    fn floor_back_off_and_ceiling() {
        let config = RttConfig::RFC6298;
        let mut rtt = RttEstimator::new(&config);
        sample(&mut rtt, &config, 0, 10);
        assert_eq!(
            rtt.timeout(&config),
            Span::from_secs(1),
            "10 + 20 ms is below the floor"
        );
        for expected in [2, 4, 8, 16, 32, 60, 60] {
            rtt.back_off(&config);
            assert_eq!(rtt.timeout(&config), Span::from_secs(expected));
        }
        rtt.end_backoff();
        assert_eq!(rtt.timeout(&config), Span::from_secs(1));
    }

    #[test]
    fn coarse_ticks_count_the_edges_that_pass() {
        // Ticks of 100 ms: a round trip of 210 ms that begins 95 ms into a tick contains three tick
        // edges, and one that begins at an edge contains two.
        let config = RttConfig::NS2_2000;
        let mut rtt = RttEstimator::new(&config);
        sample(&mut rtt, &config, 95, 210);
        assert_eq!(rtt.smoothed(&config), Some(Span::from_millis(300)));
        let mut rtt = RttEstimator::new(&config);
        sample(&mut rtt, &config, 100, 210);
        assert_eq!(rtt.smoothed(&config), Some(Span::from_millis(200)));
        // 2 ticks: SRTT 8*2 = 16, RTTVAR 2*2 = 4, RTO = (16 + 4*8) / 8 = 6 ticks.
        assert_eq!(rtt.timeout(&config), Span::from_millis(600));
    }

    #[test]
    fn floor_is_applied_where_the_configuration_says() {
        let after = RttConfig {
            floor_before_backoff: false,
            ..RttConfig::RFC6298
        };
        let mut rtt = RttEstimator::new(&after);
        sample(&mut rtt, &after, 0, 100);
        rtt.back_off(&after);
        assert_eq!(
            rtt.timeout(&after),
            Span::from_secs(1),
            "2 * 300 ms is below the floor"
        );
        assert_eq!(
            rtt.timeout(&RttConfig::RFC6298),
            Span::from_secs(2),
            "the floor doubles"
        );
    }
}
