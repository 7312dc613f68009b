//! What the path can carry for the application: the target bitrate.

use comity_units::{Bytes, Rate, Span, Time};

use super::carried::{Carried, Passage};

/// Smooths what the congestion controller allows into one rate that an encoder can follow, and that the path carries.
///
/// ```text
/// allowed  = window / srtt, or the pacing rate of laws that have one
/// average  = average + (1 − e^(−elapsed / τ)) · (allowed − average)          τ = 1 s
///            max( average, allowed ) in slow start
/// carried  = what the path was seen to carry                                 (`Carried`)
/// target   = min( average, carried ) · share of the payload in what is sent · (1 − loss)
/// ```
///
/// A law may allow more than the path carries until something is lost. Whoever sent that would fill the queue before
/// each of its own bursts.
///
/// Slow start doubles what is allowed in each round trip: an average over a second would be far behind it, and an
/// application that believed it would leave out what the path carries.
///
/// A change is announced when it is worth an encoder's trouble: at once when the target falls by an eighth
/// below the one announced last, and after a second when it has risen by an eighth above it all that time, in slow
/// start at once. Between the two nothing is announced, so that the saw-tooth of additive increase does not shake the
/// encoder.
#[derive(Clone, Debug)]
pub(super) struct TargetBitrate {
    /// The smoothed allowed rate in bit/s; zero before the first.
    average: f64,
    updated_at: Time,
    announced: Rate,
    /// Since when the target has been well above the announced one.
    above_since: Option<Time>,
    /// The smoothed share of lost bytes.
    loss: f64,
    /// The smoothed share of section payload in what is sent.
    payload: f64,
    carried: Carried,
}

impl TargetBitrate {
    pub(super) fn new() -> Self {
        Self {
            average: 0.0,
            updated_at: Time::ZERO,
            announced: Rate::ZERO,
            above_since: None,
            loss: 0.0,
            payload: 1.0,
            carried: Carried::default(),
        }
    }

    /// What the controller allows now: `window` in a round trip of `rtt`, or `pacing`.
    pub(super) fn allowed(window: Bytes, rtt: Option<Span>, pacing: Option<Rate>) -> Option<Rate> {
        let by_window = match (window, rtt) {
            (Bytes::MAX, _) | (_, None) => None,
            (window, Some(rtt)) => Some(Rate::of(window, rtt)),
        };
        match (by_window, pacing) {
            (Some(window), Some(pacing)) => Some(window.min(pacing)),
            (window, pacing) => window.or(pacing),
        }
    }

    /// Takes in what the controller allows at `now`, and whether that is in slow start.
    pub(super) fn on_allowed(&mut self, now: Time, allowed: Rate, is_slow_start: bool) {
        let allowed = allowed.as_bps() as f64;
        if self.average == 0.0 || is_slow_start && allowed > self.average {
            self.average = allowed;
        } else {
            let elapsed = now.saturating_since(self.updated_at);
            self.average += weight(elapsed, SMOOTHING) * (allowed - self.average);
        }
        self.updated_at = now;
    }

    /// Takes in the fate of packets: so many bytes arrived, so many were lost.
    pub(super) fn on_fates(&mut self, arrived: u64, lost: u64) {
        let all = arrived + lost;
        if all > 0 {
            let part = (all as f64 / LOSS_MEMORY).min(1.0);
            self.loss += part * (lost as f64 / all as f64 - self.loss);
        }
    }

    /// Takes in a packet that left: `payload` bytes of sections in `wire` bytes.
    pub(super) fn on_sent(&mut self, payload: u64, wire: u64) {
        if payload > 0 && wire > 0 {
            self.payload += (payload as f64 / wire as f64 - self.payload) / 64.0;
        }
    }

    /// Takes in how packets came through; `least` is the least round trip.
    pub(super) fn on_passage(&mut self, now: Time, passage: &Passage, least: Span) {
        self.carried.on_sample(now, passage, least);
    }

    /// What the law allows for sections on the average; `None` before anything is known.
    pub(super) fn allowance(&self) -> Option<Rate> {
        (self.average > 0.0).then(|| self.net(Rate::from_bps_f64(self.average)))
    }

    /// The rate that sections may have now; `None` before anything is known.
    pub(super) fn current(&self) -> Option<Rate> {
        let carried = self.carried.rate().map(|rate| self.net(rate));
        match (self.allowance(), carried) {
            (Some(allowed), Some(carried)) => Some(allowed.min(carried)),
            (allowed, carried) => allowed.or(carried),
        }
    }

    /// Whether somebody follows the target, and only the law still says how far.
    pub(super) fn is_followed(&self) -> bool {
        self.average > 0.0 || self.announced > Rate::ZERO && self.carried.rate().is_none()
    }

    /// What bytes of sections at this rate are on the wire, with their headers.
    pub(super) fn gross(&self, sections: Rate) -> Rate {
        sections.mul_f64(1.0 / self.payload.max(0.1))
    }

    /// The share of lost bytes, in thousandths.
    pub(super) fn lost_permille(&self) -> u32 {
        (self.loss * 1_000.0) as u32
    }

    /// What is left of a rate on the wire for sections, without headers and repairs.
    pub(super) fn net(&self, wire: Rate) -> Rate {
        wire.mul_f64(self.payload * (1.0 - self.loss))
    }

    /// A change that is worth announcing, if there is one at `now`, in slow start or not.
    pub(super) fn poll(&mut self, now: Time, is_slow_start: bool) -> Option<Rate> {
        let current = self.current()?;
        let (new, old) = (current.as_bps() as f64, self.announced.as_bps() as f64);
        let is_above = new > old * (1.0 + STEP);
        if !is_above {
            self.above_since = None;
        }
        let has_fallen = new < old * (1.0 - STEP);
        let has_risen = is_above && {
            let since = *self.above_since.get_or_insert(now);
            self.announced == Rate::ZERO || is_slow_start || now.saturating_since(since) >= PATIENCE
        };
        if !has_fallen && !has_risen {
            return None;
        }
        self.announced = current;
        self.above_since = None;
        Some(current)
    }
}

/// `1 − e^(−elapsed / τ)`.
fn weight(elapsed: Span, constant: Span) -> f64 {
    1.0 - libm::exp(-(elapsed.as_secs_f64() / constant.as_secs_f64()))
}

/// τ: several round trips of a long path, a few frames of video.
const SMOOTHING: Span = Span::from_secs(1);

/// How long a rise has to last before it is announced.
const PATIENCE: Span = Span::from_secs(1);

/// The least change that is announced.
const STEP: f64 = 0.125;

/// The loss share is an average over about so many bytes.
const LOSS_MEMORY: f64 = 1_000_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn mbps(value: u64) -> Rate {
        Rate::from_mbps(value)
    }

    #[test]
    fn what_is_allowed_is_the_window_per_round_trip_or_the_pacing_rate() {
        let rtt = Some(Span::from_millis(40));
        let window = Bytes::new(20_000);
        assert_eq!(TargetBitrate::allowed(window, rtt, None), Some(mbps(4)));
        assert_eq!(
            TargetBitrate::allowed(window, rtt, Some(mbps(3))),
            Some(mbps(3))
        );
        assert_eq!(
            TargetBitrate::allowed(Bytes::MAX, rtt, Some(mbps(3))),
            Some(mbps(3))
        );
        assert_eq!(TargetBitrate::allowed(window, None, None), None);
    }

    #[test]
    fn falls_are_announced_at_once_and_rises_when_they_last() {
        let mut target = TargetBitrate::new();
        assert_eq!(target.poll(Time::ZERO, false), None);
        target.on_allowed(Time::ZERO, mbps(8), false);
        assert_eq!(target.poll(Time::ZERO, false), Some(mbps(8)));
        // After ln 2 seconds at 4 Mb/s the average is 6 Mb/s.
        let later = Time::ZERO + Span::from_secs_f64(core::f64::consts::LN_2);
        target.on_allowed(later, mbps(4), false);
        let announced = target.poll(later, false).map_or(0, Rate::as_bps);
        assert!((5_999_990..6_000_010).contains(&announced), "{announced}");
        // A rise to 7.5 Mb/s and more is told a second after it began.
        for (millis, expected) in [(0, false), (990, false), (1_001, true)] {
            let now = Time::from_secs(20) + Span::from_millis(millis);
            target.on_allowed(now, mbps(9), false);
            assert_eq!(target.poll(now, false).is_some(), expected, "{millis}");
        }
    }

    #[test]
    fn slow_start_is_followed_upward_at_once_and_downward_as_ever() {
        let mut target = TargetBitrate::new();
        target.on_allowed(Time::ZERO, Rate::from_kbps(300), false);
        for (millis, allowed) in [(20, 600), (40, 1_200), (60, 2_400)] {
            target.on_allowed(Time::from_millis(millis), Rate::from_kbps(allowed), true);
            assert_eq!(
                target.poll(Time::from_millis(millis), true),
                Some(Rate::from_kbps(allowed))
            );
        }
        // A second later e⁻¹ of the difference is left.
        target.on_allowed(Time::from_millis(1_060), Rate::from_kbps(400), true);
        let current = target.current().map_or(0, Rate::as_bps);
        assert!((1_135_700..1_135_800).contains(&current), "{current}");
    }

    #[test]
    fn a_saw_tooth_is_not_announced() {
        // Additive increase between 3 and 4 Mb/s with a period of one second.
        let mut target = TargetBitrate::new();
        target.on_allowed(Time::ZERO, Rate::from_kbps(3_500), false);
        assert!(target.poll(Time::ZERO, false).is_some());
        for step in 1..2_000_u64 {
            let now = Time::from_millis(step * 10);
            target.on_allowed(now, Rate::from_kbps(3_000 + step % 100 * 10), false);
            assert_eq!(target.poll(now, false), None, "at {now}");
        }
    }

    #[test]
    fn it_is_no_more_than_the_path_was_seen_to_carry() {
        let mut target = TargetBitrate::new();
        // 10,000 bytes left over 20 ms and came through over 40 ms.
        let held = Passage {
            delivered: Bytes::new(10_000),
            sending: Span::from_millis(20),
            interval: Span::from_millis(40),
            delay: Span::ZERO,
        };
        let least = Span::from_millis(30);
        target.on_passage(Time::ZERO, &held, least);
        assert_eq!(target.allowance(), None, "the law has said nothing");
        assert_eq!(target.poll(Time::ZERO, true), Some(mbps(2)));
        assert!(!target.is_followed());
        target.on_allowed(Time::ZERO, mbps(4), false);
        assert_eq!(target.allowance(), Some(mbps(4)));
        assert_eq!(target.current(), Some(mbps(2)));
        // As long as it is remembered, whatever the law allows; then the law alone counts.
        let later = Time::from_secs(11);
        let free = Passage {
            sending: held.interval,
            ..held
        };
        target.on_passage(later, &free, least);
        assert_eq!(target.current(), Some(mbps(4)));
        target.on_passage(later, &held, least);
        target.on_allowed(later + Span::from_secs(60), mbps(1), false);
        assert_eq!(target.current(), Some(mbps(1)));
    }

    #[test]
    fn once_followed_the_law_takes_over_from_a_path_that_is_forgotten() {
        let mut target = TargetBitrate::new();
        assert!(!target.is_followed());
        let held = Passage {
            delivered: Bytes::new(10_000),
            sending: Span::from_millis(20),
            interval: Span::from_millis(40),
            delay: Span::ZERO,
        };
        target.on_passage(Time::ZERO, &held, Span::ZERO);
        assert_eq!(target.poll(Time::ZERO, true), Some(mbps(2)));
        let free = Passage {
            sending: held.interval,
            ..held
        };
        target.on_passage(Time::from_secs(11), &free, Span::ZERO);
        assert_eq!(target.current(), None);
        assert!(target.is_followed(), "2 Mb/s were announced");
    }

    #[test]
    fn overhead_and_losses_are_taken_off() {
        let mut target = TargetBitrate::new();
        target.on_allowed(Time::ZERO, mbps(10), false);
        for _ in 0..2_000 {
            target.on_sent(900, 1_000);
            target.on_fates(9_500, 500);
        }
        let current = target.current().map_or(0.0, Rate::as_mbps_f64);
        assert!((current - 10.0 * 0.9 * 0.95).abs() < 0.01, "{current}");
    }
}
