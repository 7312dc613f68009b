//! The two rate controls of GCC: one by delay, one by losses.

use comity_units::{Span, Time};

use super::detector::Usage;
use super::groups::millis;

/// The state of the control by delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Waits until queues have drained.
    Hold,
    /// No congestion is detected.
    Increase,
    /// Congestion is detected.
    Decrease,
}

impl State {
    /// The state after a signal (the table of section 5.5).
    const fn after(self, usage: Usage) -> Self {
        match (usage, self) {
            (Usage::Over, _) => Self::Decrease,
            (Usage::Normal, Self::Decrease) | (Usage::Under, _) => Self::Hold,
            (Usage::Normal, Self::Hold | Self::Increase) => Self::Increase,
        }
    }
}

/// The estimate of the available bandwidth by the delay, A.
///
/// ```text
/// increase, far    A(i) = A(i−1) · 1.08^min( elapsed / 1 s, 1 )
/// increase, near   A(i) = A(i−1) + max( 1000 bit/s, 0.5 · min( elapsed / response, 1 ) · packet )
///                  up to 1.5 · R
/// decrease         A(i) = β · R
/// hold             A(i) = A(i−1)
///
/// near      R is within three standard deviations of the average of R in earlier decreases;
///           above them, that average is forgotten
/// response  100 ms + RTT
/// packet    the size in bits of the packets of a frame at A(i−1), of 30 frames in a second and
///           packets of 1200 bytes at most
/// ```
///
/// R is the rate at which packets arrive. Source: draft-ietf-rmcat-gcc-02, section 5.5.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByDelay {
    /// β.
    beta: f64,
    /// A, in bit/s.
    estimate: f64,
    state: State,
    /// R in earlier decreases.
    decreases: Option<Average>,
    updated_at: Option<Time>,
}

impl ByDelay {
    pub(super) const fn new(beta: f64, initial: f64) -> Self {
        Self {
            beta,
            estimate: initial,
            state: State::Increase,
            decreases: None,
            updated_at: None,
        }
    }

    pub(super) const fn estimate(&self) -> f64 {
        self.estimate
    }

    pub(super) const fn state(&self) -> State {
        self.state
    }

    /// Takes the current signal, and R in bit/s, if it is known.
    pub(super) fn update(&mut self, now: Time, usage: Usage, received: Option<f64>, rtt: Span) {
        self.state = self.state.after(usage);
        let elapsed = self
            .updated_at
            .replace(now)
            .map_or(Span::ZERO, |before| now.saturating_since(before));
        let Some(received) = received else {
            return;
        };
        match self.state {
            State::Hold => {}
            State::Increase => {
                let grown = match self.is_near(received) {
                    true => self.estimate + additive(self.estimate, elapsed, rtt),
                    false => self.estimate * multiplicative(elapsed),
                };
                self.estimate = grown.min((GROWTH_LIMIT * received).max(self.estimate));
            }
            State::Decrease => {
                self.estimate = self.estimate.min(self.beta * received);
                match &mut self.decreases {
                    Some(average) => average.update(received),
                    None => self.decreases = Some(Average::new(received)),
                }
            }
        }
    }

    /// Keeps the estimate within these limits.
    pub(super) fn limit(&mut self, min: f64, max: f64) {
        self.estimate = self.estimate.min(max).max(min);
    }

    /// Whether R is close to the average of earlier decreases. Forgets that average if R is above.
    fn is_near(&mut self, received: f64) -> bool {
        let Some(average) = self.decreases else {
            return false;
        };
        let distance = received - average.mean;
        let close = 3.0 * average.stddev();
        if distance > close {
            self.decreases = None;
        }
        distance.abs() <= close
    }
}

/// The growth of `estimate` by at most half a packet in a response time.
fn additive(estimate: f64, elapsed: Span, rtt: Span) -> f64 {
    let response = millis(REACTION_TIME) + millis(rtt);
    let alpha = 0.5 * (millis(elapsed) / response).min(1.0);
    let frame = estimate / 30.0;
    let packet = frame / libm::ceil(frame / (1_200.0 * 8.0)).max(1.0);
    (alpha * packet).max(1_000.0)
}

/// The factor of growth by at most 8 % in a second.
fn multiplicative(elapsed: Span) -> f64 {
    libm::pow(1.08, elapsed.as_secs_f64().min(1.0))
}

/// An exponential moving average and the variance around it.
///
/// ```text
/// mean     = 0.95 · mean + 0.05 · R                                           [kb/s]
/// variance = 0.95 · variance + 0.05 · (mean − R)² / mean                      [kb/s]
///            within [0.4, 2.5], at first 0.4
/// σ        = √(variance · mean)
/// ```
///
/// The draft specifies only the factor. The rest is as in libwebrtc (`LinkCapacityEstimator`): with
/// a variance of zero after the first decrease, no R would ever be close.
#[derive(Clone, Copy, Debug)]
struct Average {
    /// In bit/s.
    mean: f64,
    /// In bit/s.
    variance: f64,
}

impl Average {
    const fn new(first: f64) -> Self {
        Self {
            mean: first,
            variance: MIN_VARIANCE,
        }
    }

    fn update(&mut self, sample: f64) {
        self.mean = SMOOTHING * self.mean + (1.0 - SMOOTHING) * sample;
        let error = self.mean - sample;
        let variance = error * error / self.mean.max(1_000.0);
        self.variance = (SMOOTHING * self.variance + (1.0 - SMOOTHING) * variance)
            .clamp(MIN_VARIANCE, MAX_VARIANCE);
    }

    fn stddev(&self) -> f64 {
        libm::sqrt(self.variance * self.mean)
    }
}

/// The estimate of the available bandwidth by losses, A_s.
///
/// ```text
/// A_s(i) = 1.05 · A_s(i−1)               p < 2 %
///          A_s(i−1)                      2 % ≤ p ≤ 10 %
///          A_s(i−1) · (1 − 0.5 · p)      p > 10 %
/// ```
///
/// p is the share of packets that were lost since the last report. Source: draft-ietf-rmcat-gcc-02,
/// section 6.
pub(super) fn by_losses(estimate: f64, lost: f64) -> f64 {
    if lost < 0.02 {
        1.05 * estimate
    } else if lost > 0.1 {
        estimate * (1.0 - 0.5 * lost)
    } else {
        estimate
    }
}

/// The reaction time of estimator and detector. The response time is this and a round trip.
pub(super) const REACTION_TIME: Span = Span::from_millis(100);

/// How far the estimate may grow above R.
const GROWTH_LIMIT: f64 = 1.5;

/// The smoothing factor of [`Average`].
const SMOOTHING: f64 = 0.95;

const MIN_VARIANCE: f64 = 400.0;

const MAX_VARIANCE: f64 = 2_500.0;

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(50);

    const fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// A control with this estimate that was updated at zero.
    fn control(estimate: f64) -> ByDelay {
        let mut control = ByDelay::new(0.85, estimate);
        control.update(Time::ZERO, Usage::Normal, Some(estimate), RTT);
        assert_eq!(control.estimate(), estimate);
        control
    }

    #[test]
    fn the_states_follow_the_table() {
        use State::{Decrease, Hold, Increase};
        for (usage, [hold, increase, decrease]) in [
            (Usage::Over, [Decrease, Decrease, Decrease]),
            (Usage::Normal, [Increase, Increase, Hold]),
            (Usage::Under, [Hold, Hold, Hold]),
        ] {
            assert_eq!(Hold.after(usage), hold);
            assert_eq!(Increase.after(usage), increase);
            assert_eq!(Decrease.after(usage), decrease);
        }
    }

    /// 1.08^0.25 = 1.0194265, and never more than 1.08 at once.
    #[test]
    fn far_from_convergence_the_estimate_grows_by_eight_percent_in_a_second() {
        for (elapsed, expected) in [
            (250, 1_019_426.5),
            (1_000, 1_080_000.0),
            (9_000, 1_080_000.0),
        ] {
            let mut control = control(1e6);
            control.update(at(elapsed), Usage::Normal, Some(1e6), RTT);
            let found = control.estimate();
            assert!((found - expected).abs() < 0.1, "{elapsed}: {found}");
        }
    }

    #[test]
    fn growth_ends_at_one_and_a_half_of_what_arrives_and_nothing_is_taken_back() {
        for (received, expected) in [(700e3, 1_050e3), (600e3, 1e6), (1.0, 1e6)] {
            let mut control = control(1e6);
            control.update(at(1_000), Usage::Normal, Some(received), RTT);
            assert_eq!(control.estimate(), expected, "{received}");
        }
        let mut control = control(1e6);
        control.update(at(1_000), Usage::Normal, None, RTT);
        assert_eq!(control.estimate(), 1e6, "nothing has arrived");
    }

    /// By hand, at 1 Mb/s: a frame has 33,333 bits in 4 packets of 8,333. After 150 ms, which is
    /// the response time at an RTT of 50 ms, the estimate grows by half of that: 4,167 bit/s. After
    /// 75 ms it grows by 2,083, and after 15 ms by 1,000, the least.
    #[test]
    fn close_to_convergence_the_estimate_grows_by_half_a_packet_in_a_response_time() {
        for (elapsed, expected) in [
            (150, 4_166.667),
            (75, 2_083.333),
            (15, 1_000.0),
            (900, 4_166.667),
        ] {
            let mut control = control(1e6);
            control.decreases = Some(Average::new(1e6));
            control.update(at(elapsed), Usage::Normal, Some(1e6), RTT);
            let found = control.estimate() - 1e6;
            assert!((found - expected).abs() < 0.01, "{elapsed}: {found}");
        }
        // One packet in a frame: 240 kb/s are 8,000 bits in a frame.
        assert!((additive(240e3, Span::from_secs(1), RTT) - 4_000.0).abs() < 1e-9);
        assert_eq!(additive(0.0, Span::from_secs(1), RTT), 1_000.0);
    }

    /// At 1 Mb/s the standard deviation is √(0.4 · 1000) = 20 kb/s: 60 kb/s are close.
    #[test]
    fn what_is_close_depends_on_the_variance_and_more_than_that_is_news() {
        for (received, is_near, is_kept) in [
            (1e6, true, true),
            (1.059e6, true, true),
            (1.061e6, false, false),
            (0.941e6, true, true),
            (0.939e6, false, true),
        ] {
            let mut control = control(1e6);
            control.decreases = Some(Average::new(1e6));
            assert_eq!(control.is_near(received), is_near, "{received}");
            assert_eq!(control.decreases.is_some(), is_kept, "{received}");
        }
    }

    /// By hand, in kb/s: 1000 and then 900 give 0.95 · 1000 + 0.05 · 900 = 995, and
    /// 0.95 · 0.4 + 0.05 · 95² / 995 = 0.833518.
    #[test]
    fn the_average_of_decreases_moves_slowly() {
        let mut control = control(2e6);
        for (time, received, estimate) in [(100, 1e6, 850e3), (200, 900e3, 765e3)] {
            control.update(at(time), Usage::Over, Some(received), RTT);
            assert_eq!(control.state(), State::Decrease);
            assert!((control.estimate() - estimate).abs() < 1e-6);
        }
        let average = control.decreases.unwrap();
        assert!((average.mean - 995e3).abs() < 1e-6);
        assert!((average.variance - 833.517_6).abs() < 1e-3, "{average:?}");
        let mut wild = Average::new(1e6);
        for _ in 0..100 {
            wild.update(10e6);
            wild.update(0.0);
        }
        assert_eq!(wild.variance, MAX_VARIANCE);
    }

    #[test]
    fn over_use_never_raises_the_estimate_and_a_hold_keeps_it() {
        let mut control = control(1e6);
        // The arriving packets were sent before the last decrease.
        control.update(at(100), Usage::Over, Some(5e6), RTT);
        assert_eq!(control.estimate(), 1e6);
        control.update(at(200), Usage::Over, Some(1e6), RTT);
        assert_eq!(control.estimate(), 850e3);
        for (time, usage, state) in [
            (300, Usage::Under, State::Hold),
            (400, Usage::Under, State::Hold),
            (500, Usage::Over, State::Decrease),
            (600, Usage::Normal, State::Hold),
        ] {
            control.update(at(time), usage, Some(1e6), RTT);
            assert_eq!(control.state(), state);
            assert_eq!(control.estimate(), 850e3);
        }
    }

    #[test]
    fn losses_below_two_percent_raise_and_above_ten_percent_lower() {
        for (lost, expected) in [
            (0.0, 1.05),
            (0.019, 1.05),
            (0.02, 1.0),
            (0.1, 1.0),
            (0.2, 0.9),
            (1.0, 0.5),
        ] {
            assert!((by_losses(1.0, lost) - expected).abs() < 1e-12, "{lost}");
        }
    }
}
