//! What round trips tell of the queue: whether it has drained, and whether others have given way.

use comity_units::{Bytes, Span};

use super::evidence::LONGEST_WAITING;

/// The round trips since this flow last found the queue full.
///
/// ```text
/// full     = the round trip when the episode began − least round trip of all
/// drained  : a round trip since was shorter than that by full / 4 or more
/// refilled : behind that, one was shorter by less than full / 12
/// receded  : behind that, one was shorter by full / 4 or more than the longest in between
/// ```
///
/// A flow that sends evenly does not shorten the queue at once when it loses packets, and rivals
/// that lost none keep it full. Losses until it drains belong to the same episode: a TCP flow in
/// its place would have reacted once. On a path without a queue every round trip counts as drained.
///
/// A queue that has refilled and recedes without a loss of this flow is an episode of others: they
/// have lost packets and given way. Unless it was this flow that paused: less than three quarters
/// are in flight of what was at the longest. Behind a full queue, packets that leave evenly are
/// refused less often than those of flows that are clocked by acknowledgements. Where fewer than
/// some packets fit into a quarter of the queue, others in front make as much of a difference, and
/// nothing is said.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drain {
    /// The round trip when the episode began.
    began_with: Option<Span>,
    least: Option<Span>,
    /// The longest since the queue has refilled.
    longest: Option<Span>,
    /// What was in flight then.
    flight: Bytes,
}

impl Drain {
    /// An episode begins; `rtt` is the latest round trip.
    pub(super) const fn begin(&mut self, rtt: Option<Span>) {
        self.began_with = rtt;
        self.least = None;
        self.longest = None;
    }

    /// A round trip was measured with so much in flight, on a path of this least one: whether
    /// others have given way.
    pub(super) fn on_round_trip(&mut self, rtt: Span, min: Option<Span>, flight: Bytes) -> bool {
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        let (Some(full), Some(min)) = (self.began_with, min) else {
            return false;
        };
        let quarter = full.saturating_sub(min) / 4;
        if quarter < LONGEST_WAITING || self.is_full(Some(min)) {
            return false;
        }
        if rtt + quarter / 3 > full || self.longest.is_some() {
            if self.longest.is_none_or(|longest| longest <= rtt) {
                (self.longest, self.flight) = (Some(rtt), flight);
            }
            if self.longest.is_some_and(|longest| rtt + quarter <= longest) {
                self.longest = None;
                return flight * 4 >= self.flight * 3;
            }
        }
        false
    }

    /// Whether the queue is still about as full as at the beginning of the episode, on a path of
    /// this least round trip.
    pub(super) fn is_full(&self, min: Option<Span>) -> bool {
        let (Some(full), Some(least), Some(min)) = (self.began_with, self.least, min) else {
            return false;
        };
        least + full.saturating_sub(min) / 4 > full
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const MIN: Option<Span> = Some(Span::from_millis(40));
    const FLIGHT: Bytes = Bytes::new(40_000);

    fn after(millis: &[u64]) -> Drain {
        let mut drain = Drain::default();
        drain.begin(Some(Span::from_millis(120)));
        for &rtt in millis {
            drain.on_round_trip(Span::from_millis(rtt), MIN, FLIGHT);
        }
        drain
    }

    /// Which of these round trips show that others gave way, behind an episode at `full` ms.
    fn receding(full: u64, millis: &[u64]) -> Vec<usize> {
        let mut drain = after(&[]);
        drain.begin(Some(Span::from_millis(full)));
        (0..millis.len())
            .filter(|&at| drain.on_round_trip(Span::from_millis(millis[at]), MIN, FLIGHT))
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
        // Its own episode goes on until the queue has drained; and what has not refilled does not recede.
        assert_eq!(receding(120, &[119, 125, 101]), []);
        assert_eq!(receding(120, &[100, 113, 60]), []);
        // A queue of 12 ms is four packets of others; one of less tells nothing.
        assert_eq!(receding(52, &[49, 52, 49]), [2]);
        assert_eq!(receding(51, &[45, 51, 45]), []);
    }

    #[test]
    fn a_queue_that_recedes_because_this_flow_pauses_tells_nothing() {
        for (left, is_episode) in [(29_999, false), (30_000, true)] {
            let mut drain = after(&[100, 120]);
            let left = Bytes::new(left);
            let found = drain.on_round_trip(Span::from_millis(100), MIN, left);
            assert_eq!(found, is_episode, "{left} in flight");
        }
    }

    #[test]
    fn without_a_queue_or_a_measurement_nothing_is_full() {
        assert!(!after(&[]).is_full(MIN));
        assert!(!after(&[125]).is_full(None));
        assert!(!after(&[120]).is_full(Some(Span::from_millis(120))));
        assert!(!Drain::default().is_full(MIN));
    }
}
