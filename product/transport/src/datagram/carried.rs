//! The observed capacity of the path: the delivery rate of packets that left at a higher rate.

use comity_units::{DataSize, Rate, Span, Time, TwoWindows};

/// The delivery of packets, as an acknowledgement reports it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    /// The acknowledged bytes.
    pub(super) delivered: DataSize,
    /// The time in which they left.
    pub(super) sending: Span,
    /// The time in which they were acknowledged, or in which they left if that took longer.
    pub(super) interval: Span,
    /// How long the peer delayed the acknowledgement.
    pub(super) delay: Span,
    /// The queueing delay of the newest packet: its round trip less the minimum round trip.
    pub(super) queued: Span,
    /// The size of a full packet.
    pub(super) packet: DataSize,
}

/// The delivery rate of a path that held packets back.
///
/// ```text
/// sample  = delivered / interval,  interval = max( sending, answering )            of an acknowledgement
/// held    = most of the samples of the last 5 to 10 s
///           with interval − delay > 1.5 · sending                                  delay: of the acknowledgement
///           and queued ≥ (interval − delay − sending) / 2                          queued: the newest packet's
/// any     = max( held, most of (delivered − packet) / interval of the others )     packet: a full one
/// carried = any      if held ≥ 0.95 · any
///           unknown  otherwise
/// ```
///
/// The capacity of a path may fall. The estimate forgets all samples before the last 0.1 to 0.2 s
/// if `held ≥ 0.95 · any` holds for these last samples alone, and their `any` is below 4/5 of the
/// `any` above. Here, a held sample counts only if all its packets met a queue of 5 ms or more. The
/// intervals of other samples contain a pause of the source.
///
/// If the path does not limit a flow, packets arrive at the rate at which they left. This is the
/// rate of the application or of the controller, and says nothing about the capacity. Through a
/// queue that other flows fill, a burst gets only a share of the capacity, but arrives faster than
/// the average rate of its flow. Through a queue that the flow alone fills, all packets arrive at
/// the capacity of the path, at any rate of departure.
///
/// After an outage, packets have also taken long to arrive, but the newest packet has met no queue.
/// Losses (`Lost::silence`) cannot reveal such an outage, because packets that were delayed and
/// not lost have the same times.
///
/// In any interval, a path delivers at most its rate times the interval plus one packet. A sample
/// that was not held therefore disproves a limit only if it exceeds the limit by more than one
/// packet.
///
/// Only samples that begin with an acknowledgement count. At any capacity, the acknowledgements of
/// the first packets after a pause take a round trip longer than the departures. Samples over less
/// than the minimum round trip do not count, because acknowledgements arrive in bursts.
///
/// Source: the delivery rate of N. Cardwell, Y. Cheng, S. H. Yeganeh and others, "BBR:
/// congestion-based congestion control", ACM Queue 14 (2016), and its windowed maximum.
///
/// Differs from the source in: 1. the times of a sample decide whether it measures the path, and
/// not whether the application had more to send: an application that follows its target rate never
/// has more; 2. a sample that does not measure the path disproves lower samples that do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Carried {
    seen: Samples,
    /// The samples of the last 0.1 to 0.2 s, which reveal a fall of the capacity.
    recent: Samples,
    /// Since when every acknowledged packet has met a queue.
    queued_since: Option<Time>,
}

/// The maxima of the samples in a window of time.
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    any: TwoWindows<Rate>,
    held: TwoWindows<Rate>,
}

impl Samples {
    fn raise(&mut self, now: Time, memory: Span, any: Rate, held: Rate) {
        self.any.raise(now, memory, any);
        self.held.raise(now, memory, held);
    }

    /// The capacity of the path, if the samples have shown its limit.
    fn limit(&self) -> Option<Rate> {
        let (any, held) = (self.any.most(), self.held.most());
        (held > Rate::ZERO && held >= any.mul_f64(AGREED)).then_some(any)
    }
}

impl Carried {
    /// The newest packet acknowledged at `now` had the queueing delay `queued`.
    pub(super) fn on_queued(&mut self, now: Time, queued: Span) {
        self.queued_since = (queued >= MIN_QUEUE).then(|| self.queued_since.unwrap_or(now));
    }

    /// An acknowledgement at `now` reports this sample. `least` is the minimum round trip.
    pub(super) fn on_sample(&mut self, now: Time, sample: &Passage, least: Span) {
        if sample.interval.is_zero() || sample.interval < least {
            return;
        }
        let rate = Rate::of(sample.delivered, sample.interval);
        let under_way = sample.interval.saturating_sub(sample.delay);
        let longer = under_way.saturating_sub(sample.sending);
        let is_held = under_way > sample.sending.mul_f64(HELD) && sample.queued >= longer / 2;
        let certain = sample.delivered.saturating_sub(sample.packet);
        let (rate, held) = match is_held {
            true => (rate, rate),
            false => (Rate::of(certain, sample.interval), Rate::ZERO),
        };
        self.seen.raise(now, MEMORY, rate, held);
        let is_busy = { self.queued_since }.is_some_and(|since| since + sample.interval <= now);
        let held = if is_busy { held } else { Rate::ZERO };
        self.recent.raise(now, RECENT, rate, held);
        // One window alone may be one sample.
        if let Some(limit) = self.recent.limit()
            && self.recent.any.before > Rate::ZERO
            && limit < self.seen.any.most().mul_f64(NARROWER)
        {
            self.seen = Samples::default();
            self.seen.raise(now, MEMORY, limit, self.recent.held.most());
        }
    }

    /// The capacity of the path, if recent samples have shown its limit.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.seen.limit()
    }
}

/// The longest usual interval between key frames: the largest bursts measure the path best.
const MEMORY: Span = Span::from_secs(5);

/// The time after which samples reveal that the capacity has fallen: longer than a stall of a radio
/// link, and shorter than the time in which a queue overflows.
const RECENT: Span = Span::from_millis(100);

/// The minimum queueing delay of a busy path.
const MIN_QUEUE: Span = Span::from_millis(5);

/// A path has become narrower if its capacity is below this part of the former capacity.
const NARROWER: f64 = 0.8;

/// A sample is held if its packets took this many times longer to arrive than to leave. The queue
/// of a greedy competing flow grows by less while a smooth flow passes.
const HELD: f64 = 1.5;

/// The part of the maximum that held samples have to reach. It is below 1, because acknowledgements
/// do not arrive evenly.
const AGREED: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RTT: Span = Span::from_millis(40);

    fn kbps(value: u64) -> Rate {
        Rate::from_kbps(value)
    }

    /// A sample at this rate, whose packets left over `sending` and arrived over `answering`
    /// milliseconds.
    fn sample(carried: &mut Carried, at_ms: u64, rate: Rate, sending: u64, answering: u64) {
        let interval = Span::from_millis(sending.max(answering));
        let passage = Passage {
            delivered: rate.amount_in(interval),
            sending: Span::from_millis(sending),
            interval,
            delay: Span::ZERO,
            queued: Span::from_millis(answering.saturating_sub(sending)),
            packet: DataSize::ZERO,
        };
        carried.on_queued(Time::from_millis(at_ms), passage.queued);
        carried.on_sample(Time::from_millis(at_ms), &passage, RTT);
    }

    #[test]
    fn a_burst_that_is_held_back_tells_the_rate_of_the_path() {
        let mut carried = Carried::default();
        assert_eq!(carried.rate(), None);
        sample(&mut carried, 0, kbps(1_500), 80, 81);
        assert_eq!(carried.rate(), None, "as fast as it left");
        sample(&mut carried, 100, kbps(2_000), 80, 120);
        assert_eq!(carried.rate(), None, "hardly slower");
        sample(&mut carried, 200, kbps(2_000), 80, 121);
        assert_eq!(carried.rate(), Some(kbps(2_000)));
        // Less that was not held back changes nothing, and a little more is within what
        // acknowledgements vary.
        sample(&mut carried, 300, kbps(1_000), 80, 80);
        sample(&mut carried, 400, kbps(2_100), 80, 80);
        assert_eq!(carried.rate(), Some(kbps(2_100)));
        // Clearly more that was not held back disproves it; still more that was held back is the
        // limit.
        sample(&mut carried, 500, kbps(2_200), 80, 80);
        assert_eq!(carried.rate(), None);
        sample(&mut carried, 600, kbps(3_000), 80, 160);
        assert_eq!(carried.rate(), Some(kbps(3_000)));
    }

    #[test]
    fn what_takes_less_than_a_round_trip_says_nothing() {
        let mut carried = Carried::default();
        sample(&mut carried, 0, kbps(9_000), 10, 39);
        assert_eq!(carried.rate(), None);
        sample(&mut carried, 1, kbps(2_000), 10, 40);
        assert_eq!(carried.rate(), Some(kbps(2_000)));
    }

    #[test]
    fn an_answer_that_the_peer_held_back_is_not_held_by_the_path() {
        for (delay, expected) in [(30, Some(kbps(2_000))), (40, None)] {
            let mut carried = Carried::default();
            let passage = Passage {
                delivered: DataSize::new(25_000),
                sending: Span::from_millis(40),
                interval: Span::from_millis(100),
                delay: Span::from_millis(delay),
                queued: Span::from_millis(60 - delay),
                packet: DataSize::ZERO,
            };
            carried.on_sample(Time::ZERO, &passage, RTT);
            assert_eq!(carried.rate(), expected, "{delay} ms");
        }
    }

    /// 2 s until the answer. The newest packet waited for a part of them.
    #[test]
    fn an_outage_is_no_narrow_path() {
        for (queued, expected) in [(990, Some(kbps(100))), (980, None), (0, None)] {
            let mut carried = Carried::default();
            let passage = Passage {
                delivered: DataSize::new(25_000),
                sending: Span::from_millis(20),
                interval: Span::from_secs(2),
                delay: Span::ZERO,
                queued: Span::from_millis(queued),
                packet: DataSize::ZERO,
            };
            carried.on_sample(Time::ZERO, &passage, RTT);
            assert_eq!(carried.rate(), expected, "{queued} ms");
        }
    }

    #[test]
    fn it_is_forgotten_when_nothing_is_held_back_any_more() {
        let mut carried = Carried::default();
        for at in 0..200_u64 {
            let (sending, answering) = if at < 50 { (40, 80) } else { (80, 80) };
            sample(&mut carried, at * 100, kbps(2_000), sending, answering);
            match at * 100 {
                ..=9_900 => assert_eq!(carried.rate(), Some(kbps(2_000)), "{at}"),
                15_000.. => assert_eq!(carried.rate(), None, "{at}"),
                _ => {}
            }
        }
    }

    #[test]
    fn a_path_that_becomes_narrower_is_found_out_within_a_fifth_of_a_second() {
        let mut carried = Carried::default();
        for at in 0..20 {
            sample(&mut carried, at * 20, kbps(4_000), 40, 80);
        }
        // From 400 ms on it carries a quarter.
        for at in 20..40 {
            sample(&mut carried, at * 20, kbps(1_000), 40, 160);
            match at * 20 {
                ..=500 => assert_eq!(carried.rate(), Some(kbps(4_000)), "{at}"),
                600.. => assert_eq!(carried.rate(), Some(kbps(1_000)), "{at}"),
                _ => {}
            }
        }
        // It carries more again, as soon as more is sent.
        sample(&mut carried, 800, kbps(2_000), 80, 80);
        assert_eq!(carried.rate(), None);
    }

    #[test]
    fn less_for_a_moment_is_no_narrower_path() {
        // A sample that was not held in between, and one alone after a pause.
        for times in [&[400_u64, 420, 440, 460][..], &[800]] {
            let mut carried = Carried::default();
            for at in 0..20 {
                sample(&mut carried, at * 20, kbps(4_000), 40, 80);
            }
            for &at in times {
                sample(&mut carried, at, kbps(1_000), 40, 160);
            }
            let last = times.last().map_or(0, |at| at + 20);
            sample(&mut carried, last, kbps(3_500), 40, 41);
            assert_eq!(carried.rate(), Some(kbps(4_000)), "{times:?}");
        }
    }

    proptest! {
        /// A path of `capacity` without other flows. Whatever the flow sends, the estimate is the
        /// maximum recent delivery rate, and it is known once data left at twice the rate. Whole
        /// bytes make a difference of a kb/s.
        #[test]
        fn it_is_the_most_that_came_through(
            capacity in 500_u64..10_000,
            sent in prop::collection::vec((100_u64..20_000, 40_u64..400), 1..80),
        ) {
            let mut carried = Carried::default();
            let mut most = 0;
            for (at, (offered, sending)) in (0..).zip(sent) {
                let through = offered.min(capacity);
                sample(&mut carried, at * 50, kbps(through), sending, sending * offered / through);
                most = most.max(through);
                let found = carried.rate().map(|rate| rate.as_bps().div_ceil(1_000));
                prop_assert!(found.is_none_or(|rate| rate.abs_diff(most) <= 1), "{:?}, not {}", found, most);
                if offered >= 2 * capacity {
                    prop_assert!(found.is_some());
                }
            }
        }
    }
}
