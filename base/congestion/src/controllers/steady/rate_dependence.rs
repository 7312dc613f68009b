//! Whether losses depend on the rate of this flow.

use alloc::collections::VecDeque;

use comity_units::{DataSize, Span, Time};

/// The slope of lost bytes over sent bytes, among windows of one round trip.
///
/// ```text
/// n, l   = bytes sent in a window, and bytes of them that were lost
/// p      = mean(l) / mean(n)              means over some 200 windows, exponentially weighted
/// slope  = cov(n, l) / var(n)
/// own    = (slope − p) / (1 − p)
/// error  = sqrt( p / (1 − p) · mss · mean(n) / (windows · var(n)) )
///
/// depends on the rate : own − 2 · error > 1/10
/// does not            : own + 2 · error ≤ 1/5
/// ```
///
/// A link with random losses loses the same fraction of every window: `own` is 0. A policer or a
/// full buffer drops the excess over its rate: `own` is this flow's share of the traffic, 1 if the
/// flow is alone. `error` is the standard error of `own` under random losses.
///
/// The rate of a video varies by itself, because its frames differ in size. A flow that sends
/// evenly has windows of one size, and its verdict is unknown.
///
/// A loss counts for the window whose bytes leave the flight next. Reordering moves some losses to
/// the next window.
///
/// Source: none. PCC (Dong et al., NSDI 2015) varies its rate on purpose and compares the losses.
#[derive(Clone, Debug, Default)]
pub(super) struct RateDependence {
    /// How many bytes had been sent at the end of each window that is in flight.
    ends: VecDeque<u64>,
    /// When the current window ends.
    ends_at: Time,
    /// How many bytes had been sent up to the end of the last window that has left the flight, and
    /// how many were lost then.
    settled: (u64, u64),
    /// How many windows the means cover.
    windows: f64,
    mean_sent: f64,
    mean_lost: f64,
    variance: f64,
    covariance: f64,
}

impl RateDependence {
    /// Takes a packet that leaves, and the bytes sent before it.
    pub(super) fn on_sent(&mut self, now: Time, sent: u64, rtt: Span) {
        if now >= self.ends_at {
            self.ends_at = now + rtt;
            if self.ends.len() < MAX_WINDOWS {
                self.ends.push_back(sent);
            }
        }
    }

    /// Takes the bytes sent and lost since the beginning, and those in flight.
    pub(super) fn on_progress(&mut self, sent: u64, lost: u64, in_flight: u64) {
        let left = sent.saturating_sub(in_flight);
        while let Some(&end) = self.ends.front().filter(|end| **end <= left) {
            self.ends.pop_front();
            let (sent_before, lost_before) = core::mem::replace(&mut self.settled, (end, lost));
            self.add(
                end.saturating_sub(sent_before) as f64,
                lost.saturating_sub(lost_before) as f64,
            );
        }
    }

    fn add(&mut self, sent: f64, lost: f64) {
        self.windows = (self.windows + 1.0).min(MEMORY);
        let weight = 1.0 / self.windows;
        let (more_sent, more_lost) = (sent - self.mean_sent, lost - self.mean_lost);
        self.mean_sent += weight * more_sent;
        self.mean_lost += weight * more_lost;
        let kept = 1.0 - weight;
        self.variance = kept * (self.variance + weight * more_sent * more_sent);
        self.covariance = kept * (self.covariance + weight * more_sent * more_lost);
    }

    /// Whether losses depend on how much this flow sends; `None` if that is unknown.
    pub(super) fn verdict(&self, mss: DataSize) -> Option<bool> {
        if self.windows < MIN_WINDOWS || self.variance <= 0.0 {
            return None;
        }
        let p = (self.mean_lost / self.mean_sent).clamp(0.0, LARGEST_LOSS);
        let own = (self.covariance / self.variance - p) / (1.0 - p);
        let spread = mss.get() as f64 * self.mean_sent / (self.windows * self.variance);
        let margin = 2.0 * libm::sqrt(p / (1.0 - p) * spread);
        if own - margin > DEPENDENT {
            Some(true)
        } else if own + margin <= INDEPENDENT {
            Some(false)
        } else {
            None
        }
    }
}

/// The number of windows in the means: ten seconds at a round trip of 50 ms.
const MEMORY: f64 = 200.0;

/// The minimum number of windows for a verdict.
const MIN_WINDOWS: f64 = 16.0;

/// Two or three windows are in flight. Beyond these, windows are merged.
const MAX_WINDOWS: usize = 64;

/// Losses depend on the rate if `own` is surely above this.
const DEPENDENT: f64 = 0.1;

/// Losses do not depend on the rate if `own` is surely not above this. With 1/10, too few flows of
/// 2 Mb/s have a verdict at a loss ratio of a fifth.
const INDEPENDENT: f64 = 0.2;

/// The maximum loss ratio, so that the quotients are finite.
const LARGEST_LOSS: f64 = 0.99;

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: DataSize = DataSize::new(1_000);
    const RTT: Span = Span::from_millis(50);

    /// Sends windows of (packets, lost packets), with three windows in flight.
    fn dependence(windows: impl Iterator<Item = (u64, u64)>) -> RateDependence {
        let mut dependence = RateDependence::default();
        let (mut sent, mut lost) = (0, 0);
        let mut in_flight = VecDeque::from([(0, 0); 3]);
        for (at, (packets, gone)) in windows.enumerate() {
            dependence.on_sent(Time::ZERO + RTT * at as u64, sent * MSS.get(), RTT);
            sent += packets;
            in_flight.push_back((packets, gone));
            lost += in_flight.pop_front().map_or(0, |(_, gone)| gone);
            let waiting: u64 = in_flight.iter().map(|(packets, _)| packets).sum();
            dependence.on_progress(sent * MSS.get(), lost * MSS.get(), waiting * MSS.get());
        }
        dependence
    }

    /// Pictures of five sizes.
    fn pictures() -> impl Iterator<Item = u64> {
        [50, 10, 15, 20, 10].into_iter().cycle().take(400)
    }

    #[test]
    fn the_same_share_of_every_window_does_not_depend_on_the_rate() {
        let dependence = dependence(pictures().map(|packets| (packets, packets / 5)));
        assert_eq!(dependence.verdict(MSS), Some(false));
        let slope = dependence.covariance / dependence.variance;
        assert!((slope - 0.2).abs() < 1e-9, "{slope}");
    }

    #[test]
    fn what_exceeds_a_rate_does() {
        let dependence =
            dependence(pictures().map(|packets| (packets, packets.saturating_sub(18))));
        assert_eq!(dependence.verdict(MSS), Some(true));
    }

    /// A link of 100 packets in a window, which drops the excess of this flow and others.
    #[test]
    fn a_small_share_of_an_overload_counts_as_random_losses() {
        for (others, expected) in [(110, Some(true)), (1_000, Some(false))] {
            let lost = |packets: u64| packets * (packets + others - 100) / (packets + others);
            let dependence = dependence(pictures().map(|packets| (packets, lost(packets))));
            assert_eq!(dependence.verdict(MSS), expected, "{others}");
        }
    }

    #[test]
    fn even_windows_and_few_windows_are_ignored() {
        let even = dependence((0..400).map(|_| (20, 4)));
        assert_eq!(even.verdict(MSS), None);
        let few = dependence(pictures().take(15).map(|packets| (packets, packets / 5)));
        assert_eq!(few.verdict(MSS), None);
        assert_eq!(RateDependence::default().verdict(MSS), None);
    }

    #[test]
    fn windows_in_flight_are_bounded() {
        let mut dependence = RateDependence::default();
        for at in 0..1_000_u64 {
            dependence.on_sent(Time::from_secs(at), at * 1_000, RTT);
        }
        assert_eq!(dependence.ends.len(), MAX_WINDOWS);
    }
}
