//! Whether the queue has drained since the last congestion episode.

use comity_units::Span;

/// The round trips since the last congestion episode began.
///
/// ```text
/// full     = the round trip when the episode began − least round trip of all
/// drained  : a round trip since was shorter than that by full / 4 or more
/// ```
///
/// A flow that sends evenly does not shorten the queue at once when it loses packets, and rivals that lost none keep it
/// full. Losses until it drains belong to the same episode: a TCP flow in its place would have reacted once. On a path
/// without a queue every round trip counts as drained.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drain {
    /// The round trip when the episode began.
    began_with: Option<Span>,
    least: Option<Span>,
}

impl Drain {
    /// An episode begins; `rtt` is the latest round trip.
    pub(super) const fn begin(&mut self, rtt: Option<Span>) {
        self.began_with = rtt;
        self.least = None;
    }

    /// A round trip was measured.
    pub(super) fn on_round_trip(&mut self, rtt: Span) {
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
    }

    /// Whether the queue is still about as full as at the beginning of the episode, on a path of this least round trip.
    pub(super) fn is_full(&self, min: Option<Span>) -> bool {
        let (Some(full), Some(least), Some(min)) = (self.began_with, self.least, min) else {
            return false;
        };
        least + full.saturating_sub(min) / 4 > full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: Option<Span> = Some(Span::from_millis(40));

    fn after(millis: &[u64]) -> Drain {
        let mut drain = Drain::default();
        drain.begin(Some(Span::from_millis(120)));
        for &rtt in millis {
            drain.on_round_trip(Span::from_millis(rtt));
        }
        drain
    }

    #[test]
    fn a_queue_of_80_ms_has_drained_when_20_of_them_are_gone() {
        assert!(after(&[125, 101]).is_full(MIN));
        assert!(!after(&[125, 100, 125]).is_full(MIN));
    }

    #[test]
    fn without_a_queue_or_a_measurement_nothing_is_full() {
        assert!(!after(&[]).is_full(MIN));
        assert!(!after(&[125]).is_full(None));
        assert!(!after(&[120]).is_full(Some(Span::from_millis(120))));
        assert!(!Drain::default().is_full(MIN));
    }
}
