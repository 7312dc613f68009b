//! The queueing delay that SCReAMv2 measures, and the target of that delay.

use alloc::collections::VecDeque;

use comity_units::{Span, Time};

/// The queueing delay, from the one-way delays of packets.
///
/// ```text
/// qdelay      = one-way delay − the least one-way delay of the last ten minutes
/// qdelay_avg  = qdelay                                    if that is less
///               1/4 · qdelay + 3/4 · qdelay_avg           else, once in min( VIRTUAL_RTT, s_rtt )
/// ```
///
/// Source: draft-ietf-ccwg-rfc8298bis-screamv2-01, section 4.2.1.4; RFC 6817 for the least delay.
#[derive(Clone, Debug, Default)]
pub(super) struct QueueDelay {
    /// The least one-way delay of each of the last minutes, in nanoseconds.
    minutes: VecDeque<i64>,
    minute_began_at: Time,
    /// In seconds.
    latest: f64,
    /// In seconds.
    average: f64,
    averaged_at: Option<Time>,
}

impl QueueDelay {
    /// A packet that left at `sent_at` arrived at `arrived_at`, on the clock of the receiver.
    pub(super) fn on_arrival(&mut self, now: Time, sent_at: Time, arrived_at: Time) {
        // The clocks have different origins, so only differences of delays have a meaning.
        let delay = arrived_at.as_nanos().wrapping_sub(sent_at.as_nanos()) as i64;
        let is_new = now.saturating_since(self.minute_began_at) >= MINUTE;
        match self.minutes.back_mut().filter(|_| !is_new) {
            Some(least) => *least = delay.min(*least),
            None => {
                if self.minutes.len() >= MINUTES {
                    self.minutes.pop_front();
                }
                self.minutes.push_back(delay);
                self.minute_began_at = now;
            }
        }
        let base = self.minutes.iter().copied().min().unwrap_or(delay);
        self.latest = delay.saturating_sub(base) as f64 * 1e-9;
    }

    /// Updates the average, once in `interval` seconds.
    pub(super) fn average_at(&mut self, now: Time, interval: f64) {
        let is_due = self
            .averaged_at
            .is_none_or(|at| now.saturating_since(at).as_secs_f64() >= interval);
        if is_due {
            self.averaged_at = Some(now);
            self.average = if self.latest < self.average {
                self.latest
            } else {
                GAIN * self.latest + (1.0 - GAIN) * self.average
            };
        }
    }

    /// The queueing delay of the last packet whose arrival is known, in seconds.
    pub(super) const fn latest(&self) -> f64 {
        self.latest
    }

    /// In seconds.
    pub(super) const fn average(&self) -> f64 {
        self.average
    }
}

/// The target of the queueing delay, which rises beside flows that fill the queue.
///
/// ```text
/// x        qdelay / low, once in 50 ms
/// new      (mean of the last 50 x + √var) · low                 var: variance of the last 200 x
/// target   1.5 · new                                            loss event rate > 0.002
///          new                                                  else, if var < 0.2
///          max( target / 2, new ) if new < low, else 0.9 · target          else
///          within [low, 0.4 s]
/// ```
///
/// The loss event rate is the share of round trips with a loss. Source:
/// draft-ietf-ccwg-rfc8298bis-screamv2-01, section 4.5.4. The interval of samples and the average
/// of the loss event rate, which the draft leaves open, are those of Ericsson's implementation
/// (`kSlowUpdateInterval_ntp`, 0.98).
#[derive(Clone, Debug)]
pub(super) struct DelayTarget {
    /// QDELAY_TARGET_LO, in seconds.
    low: f64,
    adapts: bool,
    /// In seconds.
    target: f64,
    samples: VecDeque<f64>,
    sampled_at: Option<Time>,
    loss_event_rate: f64,
    has_lost: bool,
    round_began_at: Time,
}

impl DelayTarget {
    /// Creates a target of `low` seconds, which stays constant unless it `adapts`.
    pub(super) const fn new(low: f64, adapts: bool) -> Self {
        Self {
            low,
            adapts,
            target: low,
            samples: VecDeque::new(),
            sampled_at: None,
            loss_event_rate: 0.0,
            has_lost: false,
            round_began_at: Time::ZERO,
        }
    }

    /// The target, in seconds.
    pub(super) const fn get(&self) -> f64 {
        self.target
    }

    /// A packet was lost.
    pub(super) const fn on_loss(&mut self) {
        self.has_lost = true;
    }

    /// Takes the queueing delay, in seconds. A round trip takes `rtt` seconds.
    pub(super) fn on_delay(&mut self, now: Time, delay: f64, rtt: f64) {
        if now.saturating_since(self.round_began_at).as_secs_f64() > rtt {
            let lost = if self.has_lost { 1.0 } else { 0.0 };
            self.loss_event_rate += (lost - self.loss_event_rate) * LOSS_GAIN;
            (self.has_lost, self.round_began_at) = (false, now);
        }
        let is_due = self
            .sampled_at
            .is_none_or(|at| now.saturating_since(at) >= SAMPLE_INTERVAL);
        if !self.adapts || !is_due {
            return;
        }
        self.sampled_at = Some(now);
        if self.samples.len() >= LONG_HISTORY {
            self.samples.pop_front();
        }
        self.samples.push_back(delay / self.low);
        let (_, variance) = moments(&self.samples, LONG_HISTORY);
        let (mean, _) = moments(&self.samples, SHORT_HISTORY);
        let new = (mean + libm::sqrt(variance)) * self.low;
        let target = if self.loss_event_rate > LOSS_THRESHOLD {
            1.5 * new
        } else if variance < LOW_VARIANCE {
            new
        } else if new < self.low {
            new.max(self.target * 0.5)
        } else {
            self.target * 0.9
        };
        self.target = target.min(HIGH).max(self.low);
    }
}

/// The mean and the variance of the newest `count` samples.
fn moments(samples: &VecDeque<f64>, count: usize) -> (f64, f64) {
    let newest = || samples.iter().rev().take(count);
    let number = newest().count().max(1) as f64;
    let mean = newest().sum::<f64>() / number;
    let squares: f64 = newest()
        .map(|sample| (sample - mean) * (sample - mean))
        .sum();
    (mean, squares / number)
}

const MINUTE: Span = Span::from_secs(60);

/// BASE_HISTORY of RFC 6817.
const MINUTES: usize = 10;

/// QDELAY_AVG_G.
const GAIN: f64 = 0.25;

/// QDELAY_TARGET_HI, in seconds.
const HIGH: f64 = 0.4;

const SAMPLE_INTERVAL: Span = Span::from_millis(50);

const LONG_HISTORY: usize = 200;

const SHORT_HISTORY: usize = 50;

const LOSS_GAIN: f64 = 0.02;

const LOSS_THRESHOLD: f64 = 0.002;

const LOW_VARIANCE: f64 = 0.2;

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// A packet arrives at `now`. The receiver's clock began when the sender's was at 100 s.
    fn arrive(delay: &mut QueueDelay, now: u64, one_way: u64) -> f64 {
        let sent_at = at(100_000 + now - one_way);
        delay.on_arrival(at(100_000 + now), sent_at, at(now));
        delay.latest() * 1e3
    }

    #[test]
    fn the_delay_is_that_above_the_least_of_ten_minutes() {
        let mut delay = QueueDelay::default();
        let mut near = |now, one_way, expected: f64| {
            let found = arrive(&mut delay, now, one_way);
            assert!((found - expected).abs() < 1e-6, "{now}: {found}");
        };
        near(1_000, 50, 0.0);
        near(2_000, 80, 30.0);
        near(3_000, 40, 0.0);
        near(4_000, 80, 40.0);
        // The minute of 40 ms began at 1,000 ms. It is one of the last ten until 601,000 ms.
        for minute in 1..10 {
            near(1_000 + 60_000 * minute, 70, 30.0);
        }
        near(600_999, 70, 30.0);
        near(601_000, 70, 0.0);
    }

    /// By hand: 0.25 · 40 = 10, 0.25 · 40 + 0.75 · 10 = 17.5; 12 is less than the average, which
    /// becomes 12 at once.
    #[test]
    fn the_average_rises_slowly_and_falls_at_once() {
        let mut delay = QueueDelay::default();
        arrive(&mut delay, 1_000, 50);
        for (now, one_way, expected) in [
            (1_100, 90, 10.0),
            (1_110, 190, 10.0),
            (1_125, 90, 17.5),
            (1_150, 62, 12.0),
        ] {
            arrive(&mut delay, now, one_way);
            delay.average_at(at(now), 0.025);
            let found = delay.average() * 1e3;
            assert!((found - expected).abs() < 1e-6, "{now}: {found}");
        }
    }

    /// Reports a delay in seconds for this many samples.
    fn repeat(target: &mut DelayTarget, from: u64, samples: u64, delay: f64) -> f64 {
        for sample in 0..samples {
            target.on_delay(at(from + 50 * sample), delay, 0.1);
        }
        target.get()
    }

    #[test]
    fn a_steady_delay_becomes_the_target_within_its_limits() {
        let mut target = DelayTarget::new(0.06, true);
        assert_eq!(repeat(&mut target, 0, 300, 0.01), 0.06);
        // Most samples of the long history are still low: the variance of x is above 0.2.
        let rising = repeat(&mut target, 15_000, 100, 0.15);
        assert_eq!(rising, 0.06, "the variance is high");
        let steady = repeat(&mut target, 20_000, 200, 0.15);
        assert!((steady - 0.15).abs() < 1e-9, "{steady}");
        assert_eq!(repeat(&mut target, 40_000, 400, 0.9), 0.4);
        let mut fixed = DelayTarget::new(0.06, false);
        assert_eq!(repeat(&mut fixed, 0, 400, 0.15), 0.06);
    }

    /// By hand, without variance: a loss in each of 4 round trips gives 1 − 0.98^4 = 0.078.
    #[test]
    fn losses_raise_the_target_to_half_as_much_again() {
        let mut target = DelayTarget::new(0.06, true);
        repeat(&mut target, 0, 200, 0.1);
        for round in 0..4 {
            target.on_loss();
            target.on_delay(at(10_100 + 200 * round), 0.1, 0.1);
        }
        assert!((target.loss_event_rate - 0.077_632).abs() < 1e-5);
        assert!((target.get() - 0.15).abs() < 1e-9, "{}", target.get());
    }
}
