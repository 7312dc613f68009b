//! Whether a loss is congestion or random.

use alloc::collections::VecDeque;

use comity_units::{DataSize, Span, Time};

use super::loss_ratio::{LossRatio, PERIOD, SHORT_PERIOD};
use super::rate_dependence::RateDependence;

/// Distinguishes losses at a full queue from random losses.
///
/// The neighbours of a packet that a full queue drops had longer round trips than nearly all other
/// packets. The neighbours of a packet that is lost at random had round trips like those of any
/// other packet. So for each loss event the classifier computes the ranks, between 0 and 1, of the
/// round trips before and after it among those of the last seconds:
///
/// ```text
/// rank      = fraction of round trips that are shorter + half the fraction of equal ones
///             (equal: within minimum round trip / 256)
/// mean rank = mean rank + ( (rank before + rank after) / 2 − mean rank ) / 4      initially 1/2
/// random    = mean rank < 3/4  and  queueing delay ≤ 3 ms  and  loss ratio < bound
///             and the losses since the last period are not surely over `random_loss` (`LossRatio`)
/// ```
///
/// | losses depend on the rate (`RateDependence`) | queueing delay: above the minimum | bound |
/// |---|---|---|
/// | no | the least of the last one to two round trips | `random_loss` |
/// | unknown | the larger of those before and after | min( `random_loss`, 1/10 ) |
/// | yes | | 0 |
///
/// A loss is random only if all four conditions hold. The rank reveals a short queue, and the
/// queueing delay a standing queue. The bound reveals a policer and a queue of a few packets, which
/// drop without a delay; the last condition reveals them before a period has ended. A loss without
/// a timed neighbour is congestion.
///
/// The least of many round trips ignores the jitter of a radio link. But a flow that begins at a
/// full queue takes that queue for a part of the path. So the least counts only if losses do not
/// depend on the rate.
///
/// One in a number of acknowledgements gives a sample, not one in a span of time. Packets of a
/// burst queue behind one another, and more of them are lost because there are more of them.
///
/// The minimum round trip does not expire: after a change of route to a longer path, every loss is
/// congestion.
///
/// Source: none for the rank. The bound on the queueing delay is the idea of TCP Veno (Fu and Liew,
/// IEEE JSAC 21(2), 2003), whose bound is three packets in the queue.
#[derive(Clone, Debug)]
pub(super) struct LossClassifier {
    /// Sampled round trips of the last seconds.
    samples: VecDeque<Span>,
    sampling: Sampling,
    min: Option<Span>,
    recent: RecentMinimum,
    mean_rank: f64,
    loss_ratio: LossRatio,
    /// Bytes lost so far.
    lost: u64,
    /// Of these, bytes with a verdict.
    judged: u64,
    /// Of these, bytes lost to congestion.
    congested: u64,
    congestion_ratio: LossRatio,
    rate_dependence: RateDependence,
    /// From this loss ratio on, no loss is random.
    random_loss: f64,
    /// The payload of a full packet.
    mss: DataSize,
}

impl LossClassifier {
    /// Creates a classifier without measurements. No loss is random if `random_loss` is zero.
    pub(super) fn new(random_loss: f64, mss: DataSize) -> Self {
        Self {
            samples: VecDeque::new(),
            sampling: Sampling::new(),
            min: None,
            recent: RecentMinimum::default(),
            mean_rank: 0.5,
            loss_ratio: LossRatio::new(PERIOD),
            lost: 0,
            judged: 0,
            congested: 0,
            congestion_ratio: LossRatio::new(SHORT_PERIOD),
            rate_dependence: RateDependence::default(),
            random_loss,
            mss,
        }
    }

    /// The minimum round trip of the connection.
    pub(super) const fn min(&self) -> Option<Span> {
        self.min
    }

    /// The weight of rules for few losses: 1 up to a mean ratio of 0.08 of bytes lost to
    /// congestion, 0 from 0.16 on, linear in between.
    pub(super) fn few_losses(&self) -> f64 {
        let weight = (HIGH_LOSS - self.congestion_ratio.mean()) / (HIGH_LOSS - LOW_LOSS);
        weight.clamp(0.0, 1.0)
    }

    /// Takes a measured round trip.
    pub(super) fn on_round_trip(&mut self, now: Time, rtt: Span) {
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        self.recent.on_round_trip(now, rtt);
        if !self.sampling.takes(now) {
            return;
        }
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(rtt);
    }

    /// Takes a packet that leaves, and the bytes sent before it.
    pub(super) fn on_sent(&mut self, now: Time, sent: u64, rtt: Span) {
        self.rate_dependence.on_sent(now, sent, rtt);
    }

    /// Takes the bytes sent and acknowledged since the beginning, and those in flight.
    pub(super) fn on_progress(&mut self, now: Time, sent: u64, acked: u64, in_flight: u64) {
        let lost = sent.saturating_sub(acked.saturating_add(in_flight));
        let settled = acked.saturating_add(lost);
        self.lost = lost;
        self.loss_ratio.on_progress(now, settled, lost);
        self.congestion_ratio
            .on_progress(now, settled, self.congested);
        self.rate_dependence.on_progress(sent, lost, in_flight);
    }

    /// How much longer this round trip is than the minimum.
    pub(super) fn queueing(&self, rtt: Span) -> Span {
        rtt.saturating_sub(self.min.unwrap_or(rtt))
    }

    /// Whether neither of these round trips shows a queue; `false` if one is missing.
    pub(super) fn is_unqueued(&self, before: Option<Span>, after: Option<Span>) -> bool {
        let both = before.zip(after);
        both.is_some_and(|(before, after)| self.queueing(before.max(after)) <= SHORT_QUEUE)
    }

    /// Takes a verdict: whether the losses since the last verdict are congestion. A connection
    /// reports only the first loss of an episode, so the rest of the episode is judged with the
    /// next one.
    pub(super) const fn on_verdict(&mut self, is_congestion: bool) {
        if is_congestion {
            let lost = self.lost.saturating_sub(self.judged);
            self.congested = self.congested.saturating_add(lost);
        }
        self.judged = self.lost;
    }

    /// The fraction of recently settled bytes that arrived: the smaller one of this period and the
    /// last.
    pub(super) fn arrival_ratio(&self) -> f64 {
        1.0 - self.loss_ratio.last().max(self.loss_ratio.so_far())
    }

    /// Whether a loss event between the round trips `before` and `after` is random.
    pub(super) fn is_random(&mut self, before: Option<Span>, after: Option<Span>) -> bool {
        let Some((before, after)) = before.or(after).zip(after.or(before)) else {
            return false;
        };
        let Some(min) = self.min else {
            return false;
        };
        let rank = (self.rank(before, min) + self.rank(after, min)) / 2.0;
        self.mean_rank += (rank - self.mean_rank) / 4.0;
        let (rtt, bound) = match self.rate_dependence.verdict(self.mss) {
            Some(true) => return false,
            Some(false) => (self.recent.min(), self.random_loss),
            None => (
                before.max(after),
                self.random_loss.min(UNPROVED_RANDOM_LOSS),
            ),
        };
        self.mean_rank < CONGESTED_RANK
            && rtt.saturating_sub(min) <= SHORT_QUEUE
            && self.loss_ratio.last() < bound
            && !self.loss_ratio.is_surely_over(self.random_loss, self.mss)
    }

    fn rank(&self, rtt: Span, min: Span) -> f64 {
        if self.samples.is_empty() {
            return 0.5;
        }
        let (mut below, mut equal) = (0_u32, 0_u32);
        for sample in &self.samples {
            if sample.abs_diff(rtt) <= min / 256 {
                equal += 1;
            } else if *sample < rtt {
                below += 1;
            }
        }
        (f64::from(below) + f64::from(equal) / 2.0) / self.samples.len() as f64
    }
}

/// The least round trip among those of the last one to two round trips.
#[derive(Clone, Copy, Debug, Default)]
struct RecentMinimum {
    /// When the current round trip began.
    began_at: Time,
    current: Span,
    last: Span,
}

impl RecentMinimum {
    fn on_round_trip(&mut self, now: Time, rtt: Span) {
        if now.saturating_since(self.began_at) >= rtt {
            (self.last, self.current, self.began_at) = (self.current, rtt, now);
        } else {
            self.current = self.current.min(rtt);
        }
    }

    fn min(&self) -> Span {
        self.last.min(self.current)
    }
}

/// Takes one measurement in `stride`, so that [`SAMPLES`] of them cover [`SAMPLED_TIME`].
#[derive(Clone, Copy, Debug)]
struct Sampling {
    /// One in this many is taken.
    stride: u32,
    /// Measurements since the last one taken.
    skipped: u32,
    /// Measurements in the current period, and when it began.
    count: u32,
    began_at: Time,
}

impl Sampling {
    const fn new() -> Self {
        Self {
            stride: 1,
            skipped: 0,
            count: 0,
            began_at: Time::ZERO,
        }
    }

    /// Whether a measurement at `now` is taken.
    fn takes(&mut self, now: Time) -> bool {
        self.count = self.count.saturating_add(1);
        if now.saturating_since(self.began_at) >= SAMPLED_TIME {
            self.stride = (self.count / SAMPLES as u32).max(1);
            (self.count, self.began_at) = (0, now);
        }
        self.skipped = self.skipped.saturating_add(1);
        let takes = self.skipped >= self.stride;
        if takes {
            self.skipped = 0;
        }
        takes
    }
}

/// The number of round trips in which a rank is taken.
const SAMPLES: usize = 128;

/// The time that the samples cover: a few saw-teeth of TCP.
const SAMPLED_TIME: Span = Span::from_secs(5);

/// The neighbours of drops at a full queue have ranks near 1, others near 1/2 on average.
const CONGESTED_RANK: f64 = 0.75;

/// A queueing delay that a few packets of other flows cause on a link of some megabits per second.
///
/// Flows that begin at a full queue take it for a part of the path. If this were an eighth of the
/// round trip, eight such flows would not back off, and one packet in ten would be lost.
pub(super) const SHORT_QUEUE: Span = Span::from_millis(3);

/// While it is unknown whether losses depend on the rate, every loss is congestion from this loss
/// ratio on.
const UNPROVED_RANDOM_LOSS: f64 = 0.1;

/// Up to this ratio of bytes lost to congestion, [`LossClassifier::few_losses`] is 1. Beside BBR,
/// which does not back off, the ratio is about 0.04.
const LOW_LOSS: f64 = 0.08;

/// From this ratio on, it is 0: flows that wait for one another would overload the path.
const HIGH_LOSS: f64 = 0.16;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const MSS: DataSize = DataSize::new(1_000);

    fn classifier(samples: impl Iterator<Item = u64>) -> LossClassifier {
        let mut classifier = LossClassifier::new(0.3, MSS);
        for (at, millis) in samples.enumerate() {
            classifier.on_round_trip(Time::from_millis(at as u64 * 40), Span::from_millis(millis));
        }
        classifier
    }

    #[test]
    fn losses_at_the_top_of_a_short_queue_are_congestion() {
        // 3 ms of queue over 40 ms of path: the queueing delay alone would not show it.
        let mut classifier = classifier((0..100).map(|at| 40 + at % 4));
        let verdicts: Vec<bool> = (0..6)
            .map(|_| classifier.is_random(Some(Span::from_millis(43)), None))
            .collect();
        // Ranks of 0.875: the mean is 0.594, 0.664, 0.717, 0.756, ...
        assert_eq!(verdicts, [true, true, true, false, false, false]);
    }

    #[test]
    fn losses_anywhere_in_a_short_queue_are_random() {
        let mut classifier = classifier((0..100).map(|at| 40 + at % 4));
        for at in 0..100_u64 {
            let neighbour = Span::from_millis(40 + at * 7 % 4);
            assert!(
                classifier.is_random(Some(neighbour), Some(neighbour)),
                "{at}"
            );
        }
    }

    #[test]
    fn losses_in_a_standing_queue_are_congestion_wherever_they_rank() {
        let mut classifier = classifier((0..100).map(|at| if at == 0 { 40 } else { 60 + at % 5 }));
        for at in 0..100_u64 {
            assert!(!classifier.is_random(Some(Span::from_millis(60 + at * 7 % 5)), None));
        }
        assert!(!classifier.is_random(None, None), "no neighbour is timed");
    }

    /// A flow that began at a full queue takes most of the queue for a part of the path.
    #[test]
    fn losses_a_little_above_the_least_round_trip_of_a_full_queue_are_congestion() {
        let mut classifier = classifier((0..100).map(|at| 118 + at % 8));
        for at in 0..100_u64 {
            let neighbour = Span::from_millis(122 + at % 4);
            assert!(
                !classifier.is_random(Some(neighbour), Some(neighbour)),
                "{at}"
            );
        }
    }

    #[test]
    fn losses_are_few_up_to_a_recent_ratio_of_a_twelfth_by_congestion() {
        let mut classifier = LossClassifier::new(0.3, MSS);
        assert_eq!(classifier.few_losses(), 1.0);
        let (mut sent, mut lost) = (0, 0);
        let mut periods = |count: u32, share: u64, is_congestion: bool| {
            for _ in 0..count {
                (sent, lost) = (sent + PERIOD, lost + PERIOD * share / 100);
                classifier.on_progress(Time::ZERO, sent, sent - lost, 0);
                classifier.on_verdict(is_congestion);
            }
            classifier.few_losses()
        };
        assert_eq!(periods(50, 25, false), 1.0, "random losses do not count");
        assert_eq!(periods(50, 8, true), 1.0);
        assert!((periods(50, 12, true) - 0.5).abs() < 0.01);
        assert_eq!(periods(50, 17, true), 0.0);
        // The losses before the last verdict count in the period after it. So the mean is 0.17 ·
        // (3/4)³ = 0.072 after three periods without a loss.
        assert!(periods(3, 0, true) < 1.0);
        assert_eq!(periods(1, 0, true), 1.0);
    }

    #[test]
    fn losses_that_no_random_process_explains_are_congestion_before_a_period_ends() {
        // Of twenty packets: 0.3 and three standard errors of 0.102 are 12.1 packets.
        for (lost, expected) in [(12_000, true), (13_000, false)] {
            let mut classifier = classifier((0..100).map(|at| 40 + at % 3));
            classifier.on_progress(Time::ZERO, 20_000, 20_000 - lost, 0);
            let is_random = classifier.is_random(Some(Span::from_millis(41)), None);
            assert_eq!(is_random, expected, "{lost} of 20,000");
            assert_eq!(classifier.arrival_ratio(), 1.0 - lost as f64 / 20_000.0);
        }
    }

    #[test]
    fn what_arrived_is_known_behind_the_end_of_a_period() {
        let mut classifier = LossClassifier::new(0.3, MSS);
        classifier.on_progress(Time::ZERO, PERIOD, PERIOD / 10, 0);
        assert!((classifier.arrival_ratio() - 0.1).abs() < 1e-9);
    }

    #[test]
    fn more_than_a_tenth_is_congestion_where_the_rate_does_not_vary() {
        for (lost, expected) in [(19_000, true), (21_000, false)] {
            let mut classifier = classifier((0..100).map(|at| 40 + at % 3));
            classifier.on_progress(Time::ZERO, 200_000, 200_000 - lost, 0);
            assert_eq!(
                classifier.is_random(Some(Span::from_millis(41)), None),
                expected,
                "{lost} of 200,000"
            );
        }
    }

    /// Sends 20 packets in each window of 40 ms, 60 in every tenth, and loses what `lost` says.
    /// Round trips vary by `jitter` milliseconds.
    fn uneven(random_loss: f64, jitter: u64, lost: impl Fn(u64) -> u64) -> LossClassifier {
        let mut classifier = LossClassifier::new(random_loss, MSS);
        let (mut sent, mut gone) = (0, 0);
        for window in 0..400_u64 {
            let now = Time::from_millis(window * 40);
            for at in 0..4 {
                let rtt = Span::from_millis(40 + (window + at) * 3 % (jitter + 1));
                classifier.on_round_trip(now + Span::from_millis(at * 10), rtt);
            }
            classifier.on_sent(now, sent, Span::from_millis(40));
            classifier.on_progress(now, sent, sent - gone, 0);
            let packets = if window % 10 == 0 { 60 } else { 20 };
            sent += packets * MSS.get();
            gone += lost(packets) * MSS.get();
        }
        classifier
    }

    #[test]
    fn an_equal_share_of_every_window_is_random_up_to_the_configured_share() {
        let between = Some(Span::from_millis(41));
        assert!(uneven(0.3, 2, |packets| packets / 5).is_random(between, None));
        assert!(!uneven(0.15, 2, |packets| packets / 5).is_random(between, None));
        assert!(
            !uneven(0.0, 2, |_| 0).is_random(between, None),
            "none is random"
        );
    }

    #[test]
    fn what_exceeds_a_rate_is_congestion_however_little_it_is() {
        let between = Some(Span::from_millis(41));
        // 10 of 240 packets are lost, all in the windows of 60.
        let mut classifier = uneven(0.3, 2, |packets| packets.saturating_sub(50));
        assert!(!classifier.is_random(between, None));
        // The same share of both.
        let mut classifier = uneven(0.3, 2, |packets| packets / 20);
        assert!(classifier.is_random(between, None));
    }

    #[test]
    fn jitter_hides_no_random_loss_once_losses_are_known_not_to_depend_on_the_rate() {
        let (early, late) = (Some(Span::from_millis(42)), Some(Span::from_millis(46)));
        let mut classifier = uneven(0.3, 10, |packets| packets / 5);
        assert!(
            classifier.is_random(late, early),
            "the least of the last round trips is 40 ms"
        );
        // Whether losses depend on the rate is unknown.
        let mut classifier = self::classifier((0..400).map(|at| 40 + at * 3 % 11));
        assert!(!classifier.is_random(late, early));
        assert!(classifier.is_random(early, early));
    }
}
