//! The times at which a source emits: an endless sequence.

use comity_link::Random;
use comity_units::{Rate, Span, Time};

use crate::network::Workload;

/// The times at which a source emits, one after the other.
#[derive(Debug)]
pub(super) struct Schedule {
    pattern: Pattern,
    next: Time,
    random: Random,
}

#[derive(Debug)]
enum Pattern {
    Regular {
        interval: Interval,
        jitter: f64,
    },
    OnOff {
        interval: Interval,
        mean_on: f64,
        mean_off: f64,
        on_until: Time,
    },
    Poisson {
        mean: f64,
    },
}

/// An interval that need not be a whole number of nanoseconds: `whole + remainder / divisor`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    whole: Span,
    remainder: u64,
    divisor: u64,
    carried: u64,
}

impl Interval {
    pub(super) fn exact(span: Span) -> Self {
        Self {
            whole: span,
            remainder: 0,
            divisor: 1,
            carried: 0,
        }
    }

    /// The time between packets of `bytes` at `rate`, which must not be zero.
    pub(super) fn of_rate(bytes: u64, rate: Rate) -> Self {
        let bits = u128::from(bytes) * 8_000_000_000;
        let rate = u128::from(rate.as_bps().max(1));
        Self {
            whole: Span::from_nanos((bits / rate) as u64),
            remainder: (bits % rate) as u64,
            divisor: rate as u64,
            carried: 0,
        }
    }

    fn as_nanos_f64(&self) -> f64 {
        self.whole.as_nanos() as f64 + self.remainder as f64 / self.divisor as f64
    }

    fn after(&mut self, time: Time) -> Time {
        self.carried += self.remainder;
        let mut next = time + self.whole;
        if self.carried >= self.divisor {
            self.carried -= self.divisor;
            next += Span::from_nanos(1);
        }
        next
    }
}

impl Schedule {
    /// The schedule of a workload that has one. `interval` is the time between its packets while it
    /// sends.
    pub(super) fn new(
        workload: &Workload,
        interval: Interval,
        start: Time,
        random: Random,
    ) -> Option<Self> {
        let pattern = match *workload {
            Workload::Cbr { jitter, .. } => Pattern::Regular { interval, jitter },
            Workload::OnOff {
                mean_on, mean_off, ..
            } => Pattern::OnOff {
                interval,
                mean_on: mean_on.as_nanos() as f64,
                mean_off: mean_off.as_nanos() as f64,
                on_until: Time::ZERO,
            },
            Workload::Poisson { .. } => Pattern::Poisson {
                mean: interval.as_nanos_f64(),
            },
            Workload::Greedy
            | Workload::File(_)
            | Workload::RandomFile(_)
            | Workload::TokenBucket { .. }
            | Workload::Video(_)
            | Workload::Encoder(_)
            | Workload::Frames(_) => return None,
        };
        let mut schedule = Self {
            pattern,
            next: start,
            random,
        };
        schedule.begin(start);
        Some(schedule)
    }

    fn begin(&mut self, start: Time) {
        let random = &mut self.random;
        match &mut self.pattern {
            Pattern::Regular { .. } => {}
            Pattern::OnOff {
                mean_on, on_until, ..
            } => {
                *on_until = start + nanos(random.exponential(*mean_on));
            }
            Pattern::Poisson { mean } => self.next = start + nanos(random.exponential(*mean)),
        }
    }

    /// The next time of emission.
    pub(super) fn peek(&self) -> Time {
        self.next
    }

    /// Advances to the next emission.
    pub(super) fn advance(&mut self) {
        let random = &mut self.random;
        match &mut self.pattern {
            Pattern::Regular { interval, jitter } if *jitter == 0.0 => {
                self.next = interval.after(self.next);
            }
            Pattern::Regular { interval, jitter } => {
                let factor = 1.0 + *jitter * (random.uniform() - 0.5);
                self.next += nanos(interval.as_nanos_f64() * factor);
            }
            Pattern::OnOff {
                interval,
                mean_on,
                mean_off,
                on_until,
            } => {
                let mut next = interval.after(self.next);
                while next > *on_until {
                    next = *on_until + nanos(random.exponential(*mean_off));
                    *on_until = next + nanos(random.exponential(*mean_on));
                }
                self.next = next;
            }
            Pattern::Poisson { mean } => self.next += nanos(random.exponential(*mean)),
        }
    }
}

fn nanos(value: f64) -> Span {
    Span::from_nanos((value + 0.5) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::CbrSpacing;
    use comity_units::Seed;

    fn times(workload: &Workload, interval: Interval, count: usize) -> Vec<Time> {
        let random = Random::new(Seed::new(3));
        let mut schedule = Schedule::new(workload, interval, Time::ZERO, random).unwrap();
        (0..count)
            .map(|_| {
                let time = schedule.peek();
                schedule.advance();
                time
            })
            .collect()
    }

    #[test]
    fn constant_rate_does_not_drift() {
        // 1500 B at 155 Mb/s: 77,419.35... ns. After 155,000 packets exactly 12 s.
        let rate = Rate::from_mbps(155);
        let workload = Workload::Cbr {
            spacing: CbrSpacing::Rate(rate),
            jitter: 0.0,
        };
        let all = times(&workload, Interval::of_rate(1_500, rate), 155_001);
        assert_eq!(all[1], Time::from_nanos(77_419));
        assert_eq!(all[155_000], Time::from_secs(12));
    }

    #[test]
    fn jitter_is_uniform_around_the_interval() {
        let rate = Rate::from_mbps(12);
        for jitter in [1.0, 0.4] {
            let workload = Workload::Cbr {
                spacing: CbrSpacing::Rate(rate),
                jitter,
            };
            let all = times(&workload, Interval::of_rate(1_500, rate), 100_001);
            let gaps = all.windows(2);
            let gaps: Vec<f64> = gaps
                .map(|pair| pair[1].since(pair[0]).unwrap().as_secs_f64() * 1e3)
                .collect();
            let (least, most) = (1.0 - jitter / 2.0, 1.0 + jitter / 2.0);
            assert!(
                gaps.iter()
                    .all(|gap| (least - 1e-6..most + 1e-6).contains(gap))
            );
            // Kolmogorov-Smirnov test: the largest distance to the uniform distribution exceeds
            // 1.95 / √n in one run of a thousand.
            let mut sorted = gaps;
            sorted.sort_by(f64::total_cmp);
            let count = sorted.len() as f64;
            let distances = sorted.iter().enumerate().map(|(rank, gap)| {
                let expected = (gap - least) / jitter;
                (expected - rank as f64 / count).abs()
            });
            let distance = distances.fold(0.0, f64::max);
            assert!(distance < 1.95 / count.sqrt(), "{jitter}: {distance}");
        }
    }

    #[test]
    fn poisson_has_its_mean_and_its_spread() {
        let rate = Rate::from_mbps(12);
        let workload = Workload::Poisson { rate };
        let all = times(&workload, Interval::of_rate(1_500, rate), 100_001);
        // Mean 1 ms; the mean of 100,000 exponentials is within 1.3 % with 99.99 % confidence.
        let mean = all[100_000].as_secs_f64() / 100_000.0;
        assert!((0.000_987..0.001_013).contains(&mean), "{mean}");
        let gaps = all
            .windows(2)
            .map(|pair| pair[1].since(pair[0]).unwrap().as_secs_f64());
        let short = gaps.filter(|gap| *gap < 0.001).count() as f64 / 100_000.0;
        assert!(
            (short - 0.632).abs() < 0.007,
            "1 - 1/e of the gaps are below the mean, not {short}"
        );
    }

    #[test]
    fn on_off_is_on_for_its_share_of_the_time() {
        let rate = Rate::from_mbps(12);
        let (mean_on, mean_off) = (Span::from_millis(100), Span::from_millis(300));
        let workload = Workload::OnOff {
            rate,
            mean_on,
            mean_off,
        };
        let all = times(&workload, Interval::of_rate(1_500, rate), 200_000);
        let rate = 200_000.0 / all[199_999].as_secs_f64();
        // A quarter of 1,000 packets/s, about 2,000 cycles: a standard error near 3 %.
        assert!((220.0..285.0).contains(&rate), "{rate}");
    }
}
