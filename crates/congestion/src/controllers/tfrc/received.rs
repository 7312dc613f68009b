//! What the receiver said it got: the set that limits the sender.

use alloc::vec::Vec;

use comity_units::{Span, Time};

/// `X_recv_set`: receive rates of the last two round trips, in bytes per second.
///
/// Source: RFC 5348, sections 4.2 to 4.4.
#[derive(Clone, Debug)]
pub(super) struct ReceivedRates {
    /// Rates with the times of their reports; the first is infinite until the flow has been
    /// measured.
    rates: Vec<(f64, Time)>,
}

impl ReceivedRates {
    /// Nothing is known, and nothing limits.
    pub(super) fn new(now: Time) -> Self {
        Self {
            rates: alloc::vec![(f64::INFINITY, now)],
        }
    }

    /// The largest.
    pub(super) fn most(&self) -> f64 {
        let rates = self.rates.iter().map(|(rate, _)| *rate);
        rates.fold(0.0, f64::max)
    }

    /// `Update X_recv_set`: adds a rate and leaves out what is older than two round trips.
    pub(super) fn update(&mut self, now: Time, rate: f64, rtt: Span) {
        self.rates.push((rate, now));
        self.rates
            .retain(|(_, told_at)| now.saturating_since(*told_at) <= rtt * 2);
        if self.rates.len() > MOST {
            self.rates.remove(0);
        }
    }

    /// `Maximize X_recv_set`: keeps nothing but the largest that was measured, as if it had been
    /// reported now. The rate of an application that had little to send says nothing of the path.
    pub(super) fn maximize(&mut self, now: Time, rate: f64) {
        let told = self.rates.iter().map(|(told, _)| *told);
        let most = told.filter(|told| told.is_finite()).fold(rate, f64::max);
        self.replace(now, most);
    }

    /// Halves every rate.
    pub(super) fn halve(&mut self) {
        for (rate, _) in &mut self.rates {
            *rate /= 2.0;
        }
    }

    /// Nothing but this.
    pub(super) fn replace(&mut self, now: Time, rate: f64) {
        self.rates.clear();
        self.rates.push((rate, now));
    }
}

/// Reports come once in a round trip, and at once for a loss event: a peer that sends more makes no
/// set grow.
const MOST: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_procedures_by_hand() {
        let rtt = Span::from_millis(100);
        let at = Time::from_millis;
        let mut set = ReceivedRates::new(at(0));
        assert_eq!(set.most(), f64::INFINITY);
        set.update(at(100), 10.0, rtt);
        assert_eq!(set.most(), f64::INFINITY);
        // Two round trips later the infinite one is gone, the first measured one a moment after.
        set.update(at(201), 30.0, rtt);
        assert_eq!(set.most(), 30.0);
        set.update(at(401), 20.0, rtt);
        assert_eq!(set.most(), 30.0);
        set.update(at(402), 20.0, rtt);
        assert_eq!(set.most(), 20.0);
        set.halve();
        assert_eq!(set.most(), 10.0);
        // The largest stays as long as it is confirmed in time.
        set.maximize(at(500), 4.0);
        assert_eq!(set.most(), 10.0);
        set.update(at(700), 4.0, rtt);
        assert_eq!(set.most(), 10.0);
        set.update(at(701), 4.0, rtt);
        assert_eq!(set.most(), 4.0);
        // Infinity is no measurement.
        let mut set = ReceivedRates::new(at(0));
        set.maximize(at(1), 7.0);
        assert_eq!(set.most(), 7.0);
    }

    #[test]
    fn a_peer_that_reports_too_often_takes_no_memory() {
        let mut set = ReceivedRates::new(Time::ZERO);
        for rate in 0..1_000_u32 {
            set.update(Time::from_micros(1), f64::from(rate), Span::from_secs(1));
        }
        assert_eq!(set.rates.len(), MOST);
        assert_eq!(set.most(), 999.0);
    }
}
