//! The rate of [`Config::max_rate`](super::Config::max_rate), which no packet exceeds.

use comity_congestion::{Pacer, Pacing};
use comity_units::{DataSize, Rate, Span, Time};

/// Spaces packets by the maximum rate of the application, whatever their path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ceiling {
    /// [`Rate::MAX`] for none.
    rate: Rate,
    pacer: Pacer,
}

impl Ceiling {
    pub(super) fn new(rate: Rate) -> Self {
        Self {
            rate,
            pacer: Pacer::default(),
        }
    }

    /// The rate, if the application set one.
    pub(super) fn rate(&self) -> Option<Rate> {
        (self.rate < Rate::MAX).then_some(self.rate)
    }

    /// When a packet may leave if the controller releases it at `released`.
    pub(super) fn release_at(&self, released: Time) -> Time {
        self.rate().map_or(released, |rate| {
            released.max(self.pacer.release_at(Pacing::Rate(rate)))
        })
    }

    /// A packet of `wire` bytes left. The next packet waits for as long as the rate needs for these
    /// bytes.
    pub(super) fn on_sent(&mut self, now: Time, wire: u64) {
        if let Some(rate) = self.rate() {
            // It compensates for a late timer, but not for a pause.
            let wire = DataSize::new(wire);
            let quantum = wire + rate.amount_in(Span::from_millis(1));
            self.pacer
                .on_sent(now, wire, Pacing::Rate(rate), Rate::MAX, quantum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(1);

    #[test]
    fn packets_are_spaced_by_the_rate() {
        let mut ceiling = Ceiling::new(Rate::from_mbps(8));
        assert_eq!(ceiling.release_at(NOW), NOW);
        ceiling.on_sent(NOW, 1_000);
        assert_eq!(ceiling.release_at(NOW), NOW + Span::from_millis(1));
        // A packet that the controller holds back for longer leaves no sooner.
        let later = NOW + Span::from_millis(5);
        assert_eq!(ceiling.release_at(later), later);
    }

    #[test]
    fn a_pause_saves_at_most_a_millisecond() {
        let mut ceiling = Ceiling::new(Rate::from_mbps(8));
        ceiling.on_sent(NOW, 1_000);
        let later = NOW + Span::from_secs(1);
        ceiling.on_sent(later, 1_000);
        assert_eq!(ceiling.release_at(later), later);
        ceiling.on_sent(later, 1_000);
        assert_eq!(ceiling.release_at(later), later + Span::from_millis(1));
    }

    #[test]
    fn without_a_limit_no_packet_waits() {
        let mut ceiling = Ceiling::new(Rate::MAX);
        ceiling.on_sent(NOW, 1_000);
        assert_eq!((ceiling.rate(), ceiling.release_at(NOW)), (None, NOW));
    }
}
