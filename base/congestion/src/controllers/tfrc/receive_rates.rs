//! `X_recv_set`: the reported receive rates that limit the sender.

use alloc::vec::Vec;

use comity_units::{Span, Time};

/// `X_recv_set`: receive rates of the last two round trips, in bytes per second.
///
/// Source: RFC 5348, sections 4.2 to 4.4.
#[derive(Clone, Debug)]
pub(super) struct ReceiveRateSet {
    /// Rates with the times of their reports. The first is infinite until a report replaces it.
    rates: Vec<(f64, Time)>,
}

impl ReceiveRateSet {
    /// Creates a set that limits nothing.
    pub(super) fn new(now: Time) -> Self {
        Self {
            rates: alloc::vec![(f64::INFINITY, now)],
        }
    }

    /// The largest rate.
    pub(super) fn max(&self) -> f64 {
        let rates = self.rates.iter().map(|(rate, _)| *rate);
        rates.fold(0.0, f64::max)
    }

    /// `Update X_recv_set`: adds a rate and removes those older than two round trips.
    pub(super) fn update(&mut self, now: Time, rate: f64, rtt: Span) {
        self.rates.push((rate, now));
        self.rates
            .retain(|(_, reported_at)| now.saturating_since(*reported_at) <= rtt * 2);
        if self.rates.len() > MAX_RATES {
            self.rates.remove(0);
        }
    }

    /// `Maximize X_recv_set`: keeps only the largest measured rate, as if it was reported now. The
    /// rate of a data-limited interval shows nothing about the path.
    pub(super) fn maximize(&mut self, now: Time, rate: f64) {
        let reported = self.rates.iter().map(|(reported, _)| *reported);
        let most = reported
            .filter(|reported| reported.is_finite())
            .fold(rate, f64::max);
        self.replace(now, most);
    }

    /// Halves every rate.
    pub(super) fn halve(&mut self) {
        for (rate, _) in &mut self.rates {
            *rate /= 2.0;
        }
    }

    pub(super) fn replace(&mut self, now: Time, rate: f64) {
        self.rates.clear();
        self.rates.push((rate, now));
    }
}

/// The most rates in the set. A peer that reports too often cannot make it grow.
const MAX_RATES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_procedures_by_hand() {
        let rtt = Span::from_millis(100);
        let at = Time::from_millis;
        let mut set = ReceiveRateSet::new(at(0));
        assert_eq!(set.max(), f64::INFINITY);
        set.update(at(100), 10.0, rtt);
        assert_eq!(set.max(), f64::INFINITY);
        // Two round trips later the infinite rate is gone, and a moment later the first measured
        // one.
        set.update(at(201), 30.0, rtt);
        assert_eq!(set.max(), 30.0);
        set.update(at(401), 20.0, rtt);
        assert_eq!(set.max(), 30.0);
        set.update(at(402), 20.0, rtt);
        assert_eq!(set.max(), 20.0);
        set.halve();
        assert_eq!(set.max(), 10.0);
        // The largest stays as long as it is confirmed in time.
        set.maximize(at(500), 4.0);
        assert_eq!(set.max(), 10.0);
        set.update(at(700), 4.0, rtt);
        assert_eq!(set.max(), 10.0);
        set.update(at(701), 4.0, rtt);
        assert_eq!(set.max(), 4.0);
        // Infinity does not count as a measurement.
        let mut set = ReceiveRateSet::new(at(0));
        set.maximize(at(1), 7.0);
        assert_eq!(set.max(), 7.0);
    }

    #[test]
    fn a_peer_that_reports_too_often_takes_no_memory() {
        let mut set = ReceiveRateSet::new(Time::ZERO);
        for rate in 0..1_000_u32 {
            set.update(Time::from_micros(1), f64::from(rate), Span::from_secs(1));
        }
        assert_eq!(set.rates.len(), MAX_RATES);
        assert_eq!(set.max(), 999.0);
    }
}
