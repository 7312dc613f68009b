//! HyStart++: the end of slow start before the first loss.

mod linux;

pub(super) use linux::LinuxHyStart;

use comity_units::{DataSize, Span};

use crate::Ack;

/// Measures the round-trip times of a slow start, and decides how fast the window may grow.
///
/// ```text
///                 minimum of the round ≥ minimum of the round before + threshold
///   Exponential ──────────────────────────────────────────────────────▶ Conservative
///        ▲                                                                   │  │
///        └──────────── minimum of the round < minimum at the change ─────────┘  │
///                                                                5 rounds later ▼
///                                                                             Over
///   threshold = clamp(minimum of the round before / 8, 4 ms, 16 ms), with 8 samples in a round
/// ```
///
/// Source: RFC 9406 (HyStart++), section 4.
///
/// Differs from RFC 9406 in: 1. amounts, not sequence numbers, end a round: it ends when one byte
/// more than the flight at its beginning is acknowledged, because events have no sequence numbers.
/// Both rules agree until the first loss, which ends the slow start.
#[derive(Clone, Copy, Debug)]
pub struct HyStart {
    ramp: Ramp,
    /// The bytes to be acknowledged until the round ends.
    outstanding: DataSize,
    last_round_min: Option<Span>,
    round_min: Option<Span>,
    samples: u32,
    /// The minimum at the change to the conservative ramp.
    baseline: Span,
    conservative_rounds: u32,
}

/// How the window of a slow start may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ramp {
    /// By the acknowledged data.
    Exponential,
    /// By a quarter of the acknowledged data.
    Conservative,
    /// Not at all: congestion avoidance begins.
    Over,
}

impl HyStart {
    const MIN_RTT_THRESHOLD: Span = Span::from_millis(4);
    const MAX_RTT_THRESHOLD: Span = Span::from_millis(16);
    const MIN_RTT_DIVISOR: u64 = 8;
    const SAMPLES: u32 = 8;
    const CONSERVATIVE_ROUNDS: u32 = 5;
    /// The divisor of the growth on the conservative ramp.
    pub const GROWTH_DIVISOR: f64 = 4.0;
    /// The most segments by which one acknowledgement may open an unpaced window.
    pub const LIMIT: f64 = 8.0;

    /// Creates the state before the first acknowledgement.
    pub const fn new() -> Self {
        Self {
            ramp: Ramp::Exponential,
            outstanding: DataSize::ZERO,
            last_round_min: None,
            round_min: None,
            samples: 0,
            baseline: Span::MAX,
            conservative_rounds: 0,
        }
    }

    /// Takes an acknowledgement of the slow start. Returns how the window may grow on it.
    pub fn on_ack(&mut self, ack: &Ack) -> Ramp {
        if let Some(rtt) = ack.rtt {
            self.round_min = Some(self.round_min.map_or(rtt, |min| min.min(rtt)));
            self.samples = self.samples.saturating_add(1);
        }
        self.judge();
        if ack.acked < self.outstanding {
            self.outstanding -= ack.acked;
        } else {
            self.begin_round(ack.in_flight);
        }
        self.ramp
    }

    /// How the window may grow.
    pub const fn ramp(&self) -> Ramp {
        self.ramp
    }

    fn judge(&mut self) {
        let (Some(round), true) = (self.round_min, self.samples >= Self::SAMPLES) else {
            return;
        };
        match self.ramp {
            Ramp::Exponential => {
                let Some(last) = self.last_round_min else {
                    return;
                };
                let threshold = (last / Self::MIN_RTT_DIVISOR)
                    .min(Self::MAX_RTT_THRESHOLD)
                    .max(Self::MIN_RTT_THRESHOLD);
                if round >= last + threshold {
                    self.ramp = Ramp::Conservative;
                    self.baseline = round;
                    self.conservative_rounds = 0;
                }
            }
            Ramp::Conservative if round < self.baseline => {
                self.ramp = Ramp::Exponential;
                self.baseline = Span::MAX;
            }
            Ramp::Conservative | Ramp::Over => {}
        }
    }

    fn begin_round(&mut self, in_flight: DataSize) {
        if self.ramp == Ramp::Conservative {
            self.conservative_rounds += 1;
            if self.conservative_rounds >= Self::CONSERVATIVE_ROUNDS {
                self.ramp = Ramp::Over;
            }
        }
        self.outstanding = in_flight + DataSize::new(1);
        self.last_round_min = self.round_min;
        self.round_min = None;
        self.samples = 0;
    }
}

impl Default for HyStart {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_units::Time;

    const MSS: u64 = 1_000;

    /// Acknowledges a round of `packets` segments with the round-trip time `rtt_ms`, and keeps as
    /// many in flight. Returns the ramp after each.
    fn round(hystart: &mut HyStart, packets: u64, rtt_ms: u64) -> [Ramp; 16] {
        let mut ramps = [hystart.ramp(); 16];
        for slot in ramps.iter_mut().take(packets as usize) {
            *slot = hystart.on_ack(&Ack {
                now: Time::ZERO,
                acked: DataSize::new(MSS),
                rtt: Some(Span::from_millis(rtt_ms)),
                in_flight: DataSize::new((packets - 1) * MSS),
                app_limited: false,
                in_recovery: false,
                marked: 0,
                packets: 1,
                sample: None,
            });
        }
        ramps
    }

    #[test]
    fn a_rise_of_an_eighth_at_the_eighth_sample_slows_the_start_and_five_rounds_end_it() {
        // 100 ms / 8 = 12.5 ms lies between 4 and 16: 112 ms is no rise, 113 ms is one.
        let mut hystart = HyStart::new();
        round(&mut hystart, 1, 100);
        round(&mut hystart, 10, 100);
        assert!(
            round(&mut hystart, 10, 112)[..10]
                .iter()
                .all(|ramp| *ramp == Ramp::Exponential)
        );

        let mut hystart = HyStart::new();
        round(&mut hystart, 1, 100);
        round(&mut hystart, 10, 100);
        let ramps = round(&mut hystart, 10, 113);
        // The first of the ten acknowledgements is the last one of the previous round. So the
        // eighth sample of this round is the ninth acknowledgement.
        assert_eq!(ramps[..8], [Ramp::Exponential; 8]);
        assert_eq!(ramps[8..10], [Ramp::Conservative; 2]);
        for _ in 0..4 {
            assert_eq!(round(&mut hystart, 10, 113)[9], Ramp::Conservative);
        }
        assert_eq!(round(&mut hystart, 10, 113)[9], Ramp::Over);
    }

    #[test]
    fn a_fall_below_the_baseline_resumes_the_start() {
        let mut hystart = HyStart::new();
        round(&mut hystart, 1, 100);
        round(&mut hystart, 10, 100);
        assert_eq!(round(&mut hystart, 10, 120)[9], Ramp::Conservative);
        // An equal time is not shorter.
        assert_eq!(round(&mut hystart, 10, 120)[9], Ramp::Conservative);
        assert_eq!(round(&mut hystart, 12, 119)[11], Ramp::Exponential);
    }

    #[test]
    fn the_threshold_is_four_to_sixteen_milliseconds() {
        for (base, no_rise, rise) in [(8, 11, 12), (400, 415, 416)] {
            let after = |rtt| {
                let mut hystart = HyStart::new();
                round(&mut hystart, 1, base);
                round(&mut hystart, 10, base);
                round(&mut hystart, 10, rtt)[9]
            };
            assert_eq!(
                after(no_rise),
                Ramp::Exponential,
                "{base} ms to {no_rise} ms"
            );
            assert_eq!(after(rise), Ramp::Conservative, "{base} ms to {rise} ms");
        }
    }

    #[test]
    fn seven_samples_are_too_few() {
        let mut hystart = HyStart::new();
        round(&mut hystart, 1, 100);
        for _ in 0..6 {
            assert!(
                round(&mut hystart, 7, 100)[..7]
                    .iter()
                    .all(|ramp| *ramp == Ramp::Exponential)
            );
            assert!(
                round(&mut hystart, 7, 300)[..7]
                    .iter()
                    .all(|ramp| *ramp == Ramp::Exponential)
            );
        }
    }
}
