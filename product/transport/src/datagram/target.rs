//! The target bitrate: the rate that the path can carry for the application.

use comity_units::{DataSize, Rate, Span, Time};

use super::carried::{Carried, Passage};
use super::events::Target;
use super::used::Used;

/// Smooths the rate that the congestion controller allows into a rate that an encoder can follow,
/// and that the path carries.
///
/// ```text
/// allowed  = window / srtt, or the pacing rate, or the lower one if a controller has both
/// average  = average + (1 − e^(−elapsed / τ)) · (allowed − average)          τ = 1 s
///            max( average, allowed ) in slow start
///            the target of controllers that set one
/// carried  = the observed capacity of the path                               (`Carried`)
/// target   = min( average, 0.9 · carried, proven ) · share of the payload in what is sent · (1 − loss)
/// offer    = min( 1.6 · average, carried, ceiling ) · the same                ceiling: of the application
///            the ceiling alone while no section was late for lack of rate
/// target   = min( 2 · used, ceiling ) · the same,  no offer                   (`Used`)
///            in slow start before anything limits the flow
/// ```
///
/// A controller may allow more than the path carries until a packet is lost. A sender at that rate
/// would fill the queue before each of its own bursts.
///
/// `proven` is twice the rate that the flow has used. It does not bound the offer: a source whose
/// sections were all shed uses no rate, so it would be shed for ever.
///
/// The target is for an encoder: all of its output should arrive. The offer is for a source that
/// has more sections than fit and may shed some of them. Beside other flows, the allowed rate rises
/// and falls by more than half within seconds. A source that sheds down to the average cannot use a
/// higher rate when the controller allows one. If the controller allows less than the source
/// offers, the connection drops sections itself, the least important first and as late as possible.
///
/// Slow start doubles the allowed rate in each round trip. An average over a second would be much
/// too low, and an application that followed it would shed sections that the path carries. The rate
/// that slow start allows says nothing about the path, so the target is twice the rate that the
/// flow has used. Otherwise an encoder that begins at a low rate would stay there, because an
/// unused window does not grow. An encoder that begins so high that no frame arrives in time would
/// stay there, too.
///
/// Changes by more than an eighth of the announced rate are announced: a fall at once, and a rise
/// when it has lasted for a second. In slow start, and if the controller sets the target, a rise is
/// announced at once, too: such a controller has smoothed its target itself. Smaller changes are
/// not announced, so that the saw-tooth of additive increase does not disturb the encoder. The rule
/// applies to target and offer separately, and an announcement has both.
#[derive(Clone, Debug)]
pub(super) struct TargetBitrate {
    /// The smoothed allowed rate in bit/s; zero before the first.
    average: f64,
    updated_at: Time,
    /// The maximum rate of the application.
    ceiling: Rate,
    /// Whether sections were late lately because the rate was too low.
    is_short: bool,
    /// The rate up to which the flow has proven the path, with room to grow.
    proven: Rate,
    rate: Announced,
    offer: Announced,
    /// The smoothed share of lost bytes.
    loss: f64,
    /// The smoothed share of section payload in what is sent.
    payload: f64,
    carried: Carried,
    used: Used,
    is_slow_start: bool,
    /// Whether the average is the target that the controller sets.
    is_set: bool,
}

impl TargetBitrate {
    /// Whether this flow alone fills the queue, so that the capacity of the path is known.
    pub(super) fn is_alone(&self) -> bool {
        self.carried.rate().is_some()
    }

    pub(super) fn new(ceiling: Rate) -> Self {
        Self {
            average: 0.0,
            updated_at: Time::ZERO,
            ceiling,
            proven: Rate::MAX,
            is_short: true,
            rate: Announced::default(),
            offer: Announced::default(),
            loss: 0.0,
            payload: 1.0,
            carried: Carried::default(),
            used: Used::default(),
            is_slow_start: false,
            is_set: false,
        }
    }

    /// The rate that the controller allows now: `window` in a round trip of `rtt`, or `pacing`; the
    /// lower one if both are known.
    pub(super) fn allowed(
        window: DataSize,
        rtt: Option<Span>,
        pacing: Option<Rate>,
    ) -> Option<Rate> {
        let by_window = match (window, rtt) {
            (DataSize::MAX, _) | (_, None) => None,
            (window, Some(rtt)) => Some(Rate::of(window, rtt)),
        };
        match (by_window, pacing) {
            (Some(window), Some(pacing)) => Some(window.min(pacing)),
            (window, pacing) => window.or(pacing),
        }
    }

    /// The controller allows this rate at `now`, in slow start or not.
    pub(super) fn on_allowed(&mut self, now: Time, allowed: Rate, is_slow_start: bool) {
        let unlimited = Rate::MAX.as_bps() as f64;
        let allowed = allowed.as_bps() as f64;
        // No average has a meaning between a rate and none.
        let is_new = self.average == 0.0 || self.average >= unlimited || allowed >= unlimited;
        if is_new || is_slow_start && allowed > self.average {
            self.average = allowed;
        } else {
            let elapsed = now.saturating_since(self.updated_at);
            self.average += weight(elapsed, SMOOTHING) * (allowed - self.average);
        }
        self.updated_at = now;
    }

    /// The controller itself sets this target at `now`.
    pub(super) fn on_target(&mut self, now: Time, target: Rate) {
        self.is_set = true;
        self.average = target.as_bps() as f64;
        self.updated_at = now;
    }

    /// The flow has proven that the path carries this rate, which includes room to grow.
    pub(super) const fn on_proven(&mut self, proven: Rate) {
        self.proven = proven;
    }

    /// Sets whether recent sections were late because the rate was too low.
    pub(super) const fn on_shortage(&mut self, is_short: bool) {
        self.is_short = is_short;
    }

    /// At `now`, `arrived` bytes were acknowledged and `lost` bytes were declared lost.
    pub(super) fn on_fates(&mut self, now: Time, arrived: u64, lost: u64) {
        self.used.on_arrived(now, arrived);
        let all = arrived + lost;
        if all > 0 {
            let part = (all as f64 / LOSS_MEMORY).min(1.0);
            self.loss += part * (lost as f64 / all as f64 - self.loss);
        }
    }

    /// A packet left with `payload` bytes of sections in `wire` bytes.
    pub(super) fn on_sent(&mut self, payload: u64, wire: u64) {
        if payload > 0 && wire > 0 {
            self.payload += (payload as f64 / wire as f64 - self.payload) / 64.0;
        }
    }

    /// The newest packet acknowledged at `now` had the queueing delay `queued`.
    pub(super) fn on_queued(&mut self, now: Time, queued: Span) {
        self.carried.on_queued(now, queued);
    }

    /// An acknowledgement at `now` reports this sample; `least` is the minimum round trip.
    pub(super) fn on_passage(&mut self, now: Time, passage: &Passage, least: Span) {
        self.carried.on_sample(now, passage, least);
    }

    /// The average rate that the controller allows for sections; `None` before it is known.
    pub(super) fn allowance(&self) -> Option<Rate> {
        (self.average > 0.0).then(|| self.net(Rate::from_bps_f64(self.average)))
    }

    /// The target for sections now; `None` before any rate is known.
    pub(super) fn current(&self) -> Option<Rate> {
        let rate = match self.bounded(1.0, ENCODED) {
            Some(rate) => rate.min(self.proven),
            None => self.probe()?,
        };
        Some(self.net(rate))
    }

    /// The rate that an encoder tries in slow start, before anything limits the flow.
    fn probe(&self) -> Option<Rate> {
        let used = self.used.rate();
        let is_probing = self.is_slow_start && used > Rate::ZERO;
        is_probing.then(|| used.mul_f64(PROBE).min(self.ceiling))
    }

    /// The rate up to which a source should offer sections; `None` before anything limits them.
    fn offer(&self) -> Option<Rate> {
        let limit = self.bounded(OVERBOOKING, 1.0)?;
        let most = if self.is_short { limit } else { Rate::MAX };
        Some(self.net(most.min(self.ceiling)))
    }

    /// The average of the controller times `times`, and at most `part` of the capacity of the path,
    /// as a rate on the wire.
    fn bounded(&self, times: f64, part: f64) -> Option<Rate> {
        let average = (self.average > 0.0).then(|| Rate::from_bps_f64(self.average * times));
        let carried = self.carried.rate().map(|rate| rate.mul_f64(part));
        average.into_iter().chain(carried).min()
    }

    /// The rate on the wire of sections at this rate, headers included.
    pub(super) fn gross(&self, sections: Rate) -> Rate {
        sections.mul_f64(1.0 / self.payload.max(0.1))
    }

    /// The share of lost bytes, in thousandths.
    pub(super) fn lost_permille(&self) -> u32 {
        (self.loss * 1_000.0) as u32
    }

    /// The rate for sections within a rate on the wire, without headers and repairs.
    pub(super) fn net(&self, wire: Rate) -> Rate {
        wire.mul_f64(self.payload * (1.0 - self.loss))
    }

    /// The target to announce at `now`, in slow start or not; `None` if the changes are too small.
    pub(super) fn poll(&mut self, now: Time, is_slow_start: bool) -> Option<Target> {
        self.is_slow_start = is_slow_start;
        let at_once = is_slow_start || self.is_set;
        let target = Target {
            rate: self.current()?,
            offer: self.offer(),
        };
        let offer = target.offer.unwrap_or(Rate::ZERO);
        let is_news = [
            self.rate.is_news(now, target.rate, at_once),
            target.offer.is_some() && self.offer.is_news(now, offer, at_once),
        ];
        if !is_news.contains(&true) {
            return None;
        }
        self.rate = Announced::of(target.rate);
        self.offer = Announced::of(offer);
        Some(target)
    }
}

/// A rate that the application knows of.
#[derive(Clone, Copy, Debug, Default)]
struct Announced {
    /// The last announced rate; zero before the first.
    told: Rate,
    /// Since when the rate has been more than an eighth above that.
    above_since: Option<Time>,
}

impl Announced {
    const fn of(told: Rate) -> Self {
        Self {
            told,
            above_since: None,
        }
    }

    /// Whether to announce this rate now.
    fn is_news(&mut self, now: Time, new: Rate, at_once: bool) -> bool {
        let (new, old) = (new.as_bps() as f64, self.told.as_bps() as f64);
        if new <= old * (1.0 + STEP) {
            self.above_since = None;
            return new < old * (1.0 - STEP);
        }
        let since = *self.above_since.get_or_insert(now);
        self.told == Rate::ZERO || at_once || now.saturating_since(since) >= PATIENCE
    }
}

/// `1 − e^(−elapsed / τ)`.
fn weight(elapsed: Span, constant: Span) -> f64 {
    1.0 - libm::exp(-(elapsed.as_secs_f64() / constant.as_secs_f64()))
}

/// τ: several round trips of a long path, a few frames of video.
const SMOOTHING: Span = Span::from_secs(1);

/// How long a rise lasts before it is announced.
const PATIENCE: Span = Span::from_secs(1);

/// The offer as a multiple of the controller's average. A video of 4 Mb/s beside one to four TCP
/// flows through 8 Mb/s has the most frames on time and decodable with 1.4 to 1.6. That is 0.05 of
/// its share more than without shedding, and 0.1 to 0.2 more than with a multiple of 1. From 1.6
/// on, a video below its share loses nothing.
const OVERBOOKING: f64 = 1.6;

/// The part of a path's capacity that an encoder gets: its frames vary in size, and each byte above
/// the capacity waits in the queue.
const ENCODED: f64 = 0.9;

/// In slow start, the target as a multiple of the rate that the flow has used: slow start doubles
/// its rate, too.
const PROBE: f64 = 2.0;

/// The minimum change that is announced, as a part of the announced rate.
const STEP: f64 = 0.125;

/// The loss share is an average over about this many bytes.
const LOSS_MEMORY: f64 = 1_000_000.0;

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn mbps(value: u64) -> Rate {
        Rate::from_mbps(value)
    }

    fn rate(target: Option<Target>) -> Option<Rate> {
        target.map(|target| target.rate)
    }

    #[test]
    fn more_is_worth_offering_than_the_law_allows_on_the_average_but_not_than_the_path_carries() {
        let mut target = TargetBitrate::new(mbps(9));
        let mut poll = |allowed, at_ms, passage: Option<Passage>| {
            let now = Time::from_millis(at_ms);
            if let Some(passage) = passage {
                target.on_passage(now, &passage, Span::from_millis(30));
            }
            target.on_allowed(now, allowed, true);
            target
                .poll(now, true)
                .map(|target| (target.rate, target.offer))
        };
        let kbps = Rate::from_kbps;
        assert_eq!(poll(mbps(2), 0, None), Some((mbps(2), Some(kbps(3_200)))));
        assert_eq!(poll(mbps(5), 1, None), Some((mbps(5), Some(mbps(8)))));
        assert_eq!(poll(mbps(8), 2, None), Some((mbps(8), Some(mbps(9)))));
        // 35,000 bytes left over 20 ms and came through over 40 ms: 7 Mb/s.
        let held = Passage {
            delivered: DataSize::new(35_000),
            sending: Span::from_millis(20),
            interval: Span::from_millis(40),
            delay: Span::ZERO,
            queued: Span::from_millis(20),
            packet: DataSize::ZERO,
        };
        let limited = Some((kbps(6_300), Some(mbps(7))));
        assert_eq!(poll(mbps(8), 3, Some(held)), limited);
    }

    #[test]
    fn what_is_allowed_is_the_window_per_round_trip_or_the_pacing_rate() {
        let rtt = Some(Span::from_millis(40));
        let window = DataSize::new(20_000);
        assert_eq!(TargetBitrate::allowed(window, rtt, None), Some(mbps(4)));
        assert_eq!(
            TargetBitrate::allowed(window, rtt, Some(mbps(3))),
            Some(mbps(3))
        );
        assert_eq!(
            TargetBitrate::allowed(DataSize::MAX, rtt, Some(mbps(3))),
            Some(mbps(3))
        );
        assert_eq!(TargetBitrate::allowed(window, None, None), None);
    }

    #[test]
    fn what_a_controller_sets_is_no_average_and_announced_at_once() {
        let mut target = TargetBitrate::new(Rate::MAX);
        for (millis, set, expected) in [
            (0, 8, Some(8)),
            (10, 4, Some(4)),
            (20, 6, Some(6)),
            (30, 6, None),
        ] {
            let now = Time::from_millis(millis);
            target.on_target(now, mbps(set));
            assert_eq!(
                rate(target.poll(now, false)),
                expected.map(mbps),
                "{millis}"
            );
        }
    }

    #[test]
    fn falls_are_announced_at_once_and_rises_when_they_last() {
        let mut target = TargetBitrate::new(Rate::MAX);
        assert_eq!(target.poll(Time::ZERO, false), None);
        target.on_allowed(Time::ZERO, mbps(8), false);
        assert_eq!(rate(target.poll(Time::ZERO, false)), Some(mbps(8)));
        // After ln 2 seconds at 4 Mb/s the average is 6 Mb/s.
        let later = Time::ZERO + Span::from_secs_f64(core::f64::consts::LN_2);
        target.on_allowed(later, mbps(4), false);
        let announced = rate(target.poll(later, false)).map_or(0, Rate::as_bps);
        assert!((5_999_990..6_000_010).contains(&announced), "{announced}");
        // A rise to 7.5 Mb/s and more is reported a second after it began.
        for (millis, expected) in [(0, false), (990, false), (1_001, true)] {
            let now = Time::from_secs(20) + Span::from_millis(millis);
            target.on_allowed(now, mbps(9), false);
            assert_eq!(target.poll(now, false).is_some(), expected, "{millis}");
        }
    }

    #[test]
    fn slow_start_is_followed_upward_at_once_and_downward_as_ever() {
        let mut target = TargetBitrate::new(Rate::MAX);
        target.on_allowed(Time::ZERO, Rate::from_kbps(300), false);
        for (millis, allowed) in [(20, 600), (40, 1_200), (60, 2_400)] {
            target.on_allowed(Time::from_millis(millis), Rate::from_kbps(allowed), true);
            assert_eq!(
                rate(target.poll(Time::from_millis(millis), true)),
                Some(Rate::from_kbps(allowed))
            );
        }
        // A second later e⁻¹ of the difference is left.
        target.on_allowed(Time::from_millis(1_060), Rate::from_kbps(400), true);
        let current = target.current().map_or(0, Rate::as_bps);
        assert!((1_135_700..1_135_800).contains(&current), "{current}");
    }

    #[test]
    fn a_rate_is_not_averaged_with_none() {
        let mut target = TargetBitrate::new(Rate::MAX);
        target.on_proven(mbps(3));
        target.on_allowed(Time::ZERO, Rate::MAX, false);
        let polled = target.poll(Time::ZERO, false).unwrap();
        assert_eq!((polled.rate, polled.offer), (mbps(3), Some(Rate::MAX)));
        target.on_allowed(Time::from_millis(10), mbps(2), false);
        let polled = target.poll(Time::from_millis(10), false).unwrap();
        assert_eq!(
            (polled.rate, polled.offer),
            (mbps(2), Some(Rate::from_kbps(3_200)))
        );
    }

    #[test]
    fn in_slow_start_an_encoder_doubles_what_it_has_used_and_nothing_is_shed() {
        let mut target = TargetBitrate::new(mbps(10));
        let mut announced = Vec::new();
        for at in (0..=4_000).step_by(10) {
            let now = Time::from_millis(at);
            let used = announced.last().map_or(mbps(1), |(_, rate, _)| *rate);
            target.on_fates(now, used.amount_in(Span::from_millis(10)).get(), 0);
            if let Some(new) = target.poll(now, true) {
                announced.push((at, new.rate, new.offer));
            }
        }
        let expected = [
            (500, mbps(2), None),
            (1_000, mbps(4), None),
            (1_500, mbps(8), None),
        ];
        assert_eq!(announced[..3], expected);
        // The application lets no more through.
        assert_eq!(announced[3..], [(2_000, mbps(10), None)]);
        // What the controller allows is known after slow start, and less than what was tried.
        let now = Time::from_millis(4_010);
        target.on_allowed(now, mbps(5), false);
        let polled = target.poll(now, false).unwrap();
        assert_eq!((polled.rate, polled.offer), (mbps(5), Some(mbps(8))));
    }

    #[test]
    fn a_saw_tooth_is_not_announced() {
        // Additive increase between 3 and 4 Mb/s with a period of one second.
        let mut target = TargetBitrate::new(Rate::MAX);
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
        let mut target = TargetBitrate::new(Rate::MAX);
        // 10,000 bytes left over 20 ms and came through over 40 ms.
        let held = Passage {
            delivered: DataSize::new(10_000),
            sending: Span::from_millis(20),
            interval: Span::from_millis(40),
            delay: Span::ZERO,
            queued: Span::from_millis(20),
            packet: DataSize::ZERO,
        };
        let least = Span::from_millis(30);
        target.on_passage(Time::ZERO, &held, least);
        assert_eq!(target.allowance(), None, "nothing is allowed yet");
        let encoded = Rate::from_kbps(1_800);
        assert_eq!(rate(target.poll(Time::ZERO, true)), Some(encoded));
        assert_eq!(target.allowance(), None, "still nothing");
        target.on_allowed(Time::ZERO, mbps(4), false);
        assert_eq!(target.allowance(), Some(mbps(4)));
        assert_eq!(target.current(), Some(encoded));
        // As long as it is remembered, whatever the controller allows; then the controller alone
        // counts.
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
    fn overhead_and_losses_are_taken_off() {
        let mut target = TargetBitrate::new(Rate::MAX);
        target.on_allowed(Time::ZERO, mbps(10), false);
        for _ in 0..2_000 {
            target.on_sent(900, 1_000);
            target.on_fates(Time::ZERO, 9_500, 500);
        }
        let current = target.current().map_or(0.0, Rate::as_mbps_f64);
        assert!((current - 10.0 * 0.9 * 0.95).abs() < 0.01, "{current}");
    }
}
