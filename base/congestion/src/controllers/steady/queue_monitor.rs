//! Whether the queue has drained since a congestion episode, and whether other flows backed off.

use comity_units::{DataSize, Span};

use super::loss_classifier::SHORT_QUEUE;

/// Follows the round trips since this flow last found the queue full.
///
/// ```text
/// full     = the round trip when the episode began
/// queue    = full − minimum round trip
/// fall     = queue / 4
/// drained  : since the episode, a round trip was shorter than full by one fall or more
/// refilled : after that, one was within fall / 3 of full
/// receded  : after that, one was shorter than the longest in between by one fall or more
/// ```
///
/// **Drained.** A paced flow does not shorten the queue at once when it loses packets, and rivals
/// without a loss keep the queue full. Losses until the queue drains belong to the same episode: a
/// TCP flow would have reacted once. On a path without a queue every round trip counts as drained.
///
/// **Receded.** A queue that has refilled, and recedes without a loss of this flow, shows an
/// episode of other flows: they lost packets and backed off. It does not count if this flow paused,
/// that is, if its bytes in flight fell below three quarters of those at the longest round trip. A
/// full queue drops paced packets less often than those of flows that acknowledgements clock. If a
/// quarter of the queue holds only a few packets, single packets of other flows make as much of a
/// difference, and no episode is reported.
///
/// **The other direction.** A queue of acknowledgements lengthens the round trip, too. This flow
/// loses nothing in the episodes of that queue. So episodes of others count only while at least a
/// quarter of all episodes cost this flow a packet. That fraction is a third to nine tenths beside
/// 1 to 16 CUBIC or Reno flows, and less than a fifth if they send in the other direction.
///
/// ```text
/// alone = alone + ( 1 − alone ) / 8  at an episode of others,  7/8 · alone  at an own loss
/// counts: alone ≤ 3/4
/// ```
///
/// **Latecomers.** A latecomer to a queue that never empties has seen only its upper part. It would
/// take small variations for episodes, and count twice as many as the flows that it meets. So a
/// larger fall is necessary if the queue is at least 15 ms, more than
/// [CoDel](https://www.rfc-editor.org/rfc/rfc8289) keeps, and less than a quarter of the round
/// trip:
///
/// ```text
/// fall     = max( queue / 4, full / 12 · min( 1, in flight / 22,400 bytes ) )
/// ```
///
/// The queue shrinks by about `full / 12` when one of four equal CUBIC flows backs off. A flow with
/// less in flight shares the queue with more flows, and each of them matters less. For the growth
/// of a newcomer ([`TcpEmulation`](super::tcp_emulation::TcpEmulation)) a quarter is enough.
///
/// Source: none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueueMonitor {
    /// The round trip when the episode began.
    began_with: Option<Span>,
    least: Option<Span>,
    /// The longest round trip since the queue refilled.
    longest: Option<Span>,
    /// The bytes in flight at the longest round trip.
    flight_then: DataSize,
    /// The bytes in flight at the latest round trip.
    flight: DataSize,
    /// The fraction of the last episodes in which only others lost packets.
    others_alone: f64,
}

/// The shortest queue for which a flow may be a latecomer: 10 packets at 8 Mb/s.
const LATECOMER_QUEUE: Span = Span::from_millis(15);
/// From these bytes in flight on, a latecomer needs the whole fall: 16 packets of 1,400 bytes.
const LATECOMER_FLIGHT: DataSize = DataSize::new(22_400);

/// The weight of an episode in the fraction of those of others.
const EPISODE_WEIGHT: f64 = 1.0 / 8.0;
/// Above this fraction, the other flows do not share the queue of this flow's data.
const MAX_OTHERS_ALONE: f64 = 0.75;

impl QueueMonitor {
    /// An episode begins with a loss of this flow; `rtt` is the latest round trip.
    pub(super) const fn begin(&mut self, rtt: Option<Span>) {
        self.others_alone -= self.others_alone * EPISODE_WEIGHT;
        self.began_with = rtt;
        self.least = None;
        self.longest = None;
    }

    /// Takes a round trip measured with `flight` bytes in flight, on a path whose minimum is `min`.
    /// Returns whether the queue receded, that is, whether other flows backed off.
    pub(super) fn on_round_trip(&mut self, rtt: Span, min: Option<Span>, flight: DataSize) -> bool {
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        self.flight = flight;
        let (Some(full), Some(min)) = (self.began_with, min) else {
            return false;
        };
        if quarter(full, min) < SHORT_QUEUE || self.is_standing(Some(min)) {
            return false;
        }
        let fall = self.fall(full, min);
        if rtt + fall / 3 > full || self.longest.is_some() {
            if self.longest.is_none_or(|longest| longest <= rtt) {
                (self.longest, self.flight_then) = (Some(rtt), flight);
            }
            if self.longest.is_some_and(|longest| rtt + fall <= longest) {
                self.longest = None;
                return flight * 4 >= self.flight_then * 3;
            }
        }
        false
    }

    /// Takes an episode of others, and returns whether it counts for this flow.
    pub(super) fn on_episode_of_others(&mut self) -> bool {
        self.others_alone += (1.0 - self.others_alone) * EPISODE_WEIGHT;
        self.others_alone <= MAX_OTHERS_ALONE
    }

    /// Whether the queue has not drained since the episode began. A loss then belongs to it.
    pub(super) fn is_standing(&self, min: Option<Span>) -> bool {
        self.stands(min, |full, min| self.fall(full, min))
    }

    /// Whether the queue is still at least three quarters as long as when the episode began.
    pub(super) fn is_full(&self, min: Option<Span>) -> bool {
        self.stands(min, quarter)
    }

    /// Whether no round trip since the episode began was shorter by `by(full, min)` or more.
    fn stands(&self, min: Option<Span>, by: impl Fn(Span, Span) -> Span) -> bool {
        let (Some(full), Some(least), Some(min)) = (self.began_with, self.least, min) else {
            return false;
        };
        least + by(full, min) > full
    }

    /// By how much the round trip falls when the queue has drained or receded.
    fn fall(&self, full: Span, min: Span) -> Span {
        let queue = full.saturating_sub(min);
        if queue < LATECOMER_QUEUE || queue * 4 >= full {
            return quarter(full, min);
        }
        let others = self.flight.get() as f64 / LATECOMER_FLIGHT.get() as f64;
        quarter(full, min).max((full / 12).mul_f64(others.min(1.0)))
    }
}

/// A quarter of the queueing delay.
fn quarter(full: Span, min: Span) -> Span {
    full.saturating_sub(min) / 4
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const MIN: Option<Span> = Some(Span::from_millis(40));
    const FLIGHT: DataSize = DataSize::new(40_000);

    fn after(millis: &[u64]) -> QueueMonitor {
        let mut queue = QueueMonitor::default();
        queue.begin(Some(Span::from_millis(120)));
        for &rtt in millis {
            queue.on_round_trip(Span::from_millis(rtt), MIN, FLIGHT);
        }
        queue
    }

    /// Which of these round trips show that other flows backed off, after an episode at `full` ms.
    fn receding(full: u64, millis: &[u64]) -> Vec<usize> {
        let mut queue = after(&[]);
        queue.begin(Some(Span::from_millis(full)));
        (0..millis.len())
            .filter(|&at| queue.on_round_trip(Span::from_millis(millis[at]), MIN, FLIGHT))
            .collect()
    }

    #[test]
    fn a_queue_of_80_ms_has_drained_when_20_of_them_are_gone() {
        assert!(after(&[125, 101]).is_full(MIN));
        assert!(!after(&[125, 100, 125]).is_full(MIN));
    }

    #[test]
    fn a_queue_that_refills_and_recedes_is_an_episode_of_others() {
        // Drained at 100 ms, refilled above 113.3 ms, receded by 20 ms from the longest.
        assert_eq!(receding(120, &[119, 100, 114, 118, 99, 98]), [5]);
        assert_eq!(receding(120, &[100, 114, 130, 111, 110, 118, 98]), [4, 6]);
        // The flow's own episode lasts until the queue has drained. A queue that has not refilled
        // does not recede.
        assert_eq!(receding(120, &[119, 125, 101]), []);
        assert_eq!(receding(120, &[100, 113, 60]), []);
        // A queue of 12 ms is four packets of other flows. A shorter queue shows nothing.
        assert_eq!(receding(52, &[49, 52, 49]), [2]);
        assert_eq!(receding(51, &[45, 51, 45]), []);
    }

    #[test]
    fn a_queue_that_recedes_during_a_pause_of_this_flow_is_ignored() {
        for (left, is_episode) in [(29_999, false), (30_000, true)] {
            let mut queue = after(&[100, 120]);
            let left = DataSize::new(left);
            let found = queue.on_round_trip(Span::from_millis(100), MIN, left);
            assert_eq!(found, is_episode, "{left} in flight");
        }
    }

    #[test]
    fn episodes_of_others_stop_counting_where_this_flow_never_loses() {
        let mut queue = QueueMonitor::default();
        // 1 − (7/8)¹⁰ = 0.74, 1 − (7/8)¹¹ = 0.77.
        let counted = (0..20).filter(|_| queue.on_episode_of_others()).count();
        assert_eq!(counted, 10);
        // 0.93 · (7/8)² = 0.71 after two own losses, and 0.75 after one more of others.
        queue.begin(None);
        assert!(!queue.clone().on_episode_of_others());
        queue.begin(None);
        assert!(queue.on_episode_of_others());
        // Every third episode costs this flow a packet, so all of them count.
        let mut queue = QueueMonitor::default();
        for _ in 0..100 {
            assert!(queue.on_episode_of_others() && queue.on_episode_of_others());
            queue.begin(None);
        }
    }

    #[test]
    fn a_latecomer_waits_for_a_twelfth_of_the_round_trip() {
        const FULL: u64 = 132;
        let is_standing = |min: u64, rtt: u64, flight: u64| {
            let mut queue = QueueMonitor::default();
            queue.begin(Some(Span::from_millis(FULL)));
            let min = Some(Span::from_millis(min));
            queue.on_round_trip(Span::from_millis(rtt), min, DataSize::new(flight));
            queue.is_standing(min)
        };
        // The flow has seen 28 ms of the queue: a quarter is 7 ms, and a twelfth of the round trip
        // is 11 ms.
        assert!(is_standing(104, 122, 22_400) && !is_standing(104, 121, 22_400));
        // With half as much in flight, half of that counts, and a quarter of the queue is more.
        assert!(is_standing(104, 126, 11_200) && !is_standing(104, 125, 11_200));
        // If it has seen 33 ms, a quarter of the round trip, or less than CoDel keeps, a quarter
        // counts.
        assert!(!is_standing(99, 123, 22_400));
        assert!(is_standing(118, 129, 22_400) && !is_standing(118, 128, 22_400));
    }

    #[test]
    fn without_a_queue_or_a_measurement_nothing_is_full() {
        assert!(!after(&[]).is_full(MIN));
        assert!(!after(&[125]).is_full(None));
        assert!(!after(&[120]).is_full(Some(Span::from_millis(120))));
        assert!(!QueueMonitor::default().is_full(MIN));
    }
}
