//! R: the rate at which packets arrive.

use alloc::collections::VecDeque;

use comity_units::{DataSize, Span, Time};

/// Measures what arrived in the last T seconds.
///
/// ```text
/// R = 1/T · Σ L(j)                of the packets j that arrived in the last T
/// ```
///
/// Until T has passed since the first arrival, T is the time since then. Source:
/// draft-ietf-rmcat-gcc-02, section 5.5.
#[derive(Clone, Debug)]
pub(super) struct ReceivedRate {
    /// T.
    window: Span,
    /// The times of arrivals in the window, and the bytes that arrived then.
    arrivals: VecDeque<(Time, u64)>,
    /// The sum of these sizes.
    amount: u64,
    /// The size of packets that arrived at an unknown time, since the last known one.
    untimed: u64,
    first_at: Option<Time>,
}

/// The maximum number of times in the window: those of full packets at 100 Mb/s. Further arrivals
/// count with the latest of them.
const MAX_ARRIVALS: usize = 4_096;

impl ReceivedRate {
    pub(super) const fn new(window: Span) -> Self {
        Self {
            window,
            arrivals: VecDeque::new(),
            amount: 0,
            untimed: 0,
            first_at: None,
        }
    }

    /// A packet arrived, at `arrived_at` on the clock of the receiver. Without a time it counts as
    /// arrived with the next one that has a time.
    pub(super) fn on_arrival(&mut self, size: DataSize, arrived_at: Option<Time>) {
        self.untimed = self.untimed.saturating_add(size.get());
        let Some(arrived_at) = arrived_at else {
            return;
        };
        let size = core::mem::take(&mut self.untimed);
        let Some(first_at) = self.first_at else {
            // The first packet began to arrive before any known time.
            self.first_at = Some(arrived_at);
            return;
        };
        let newest = self.arrivals.back().map_or(first_at, |(at, _)| *at);
        let arrived_at = arrived_at.max(newest);
        while let Some(&(at, size)) = self.arrivals.front()
            && at + self.window <= arrived_at
        {
            self.arrivals.pop_front();
            self.amount = self.amount.saturating_sub(size);
        }
        let is_full = self.arrivals.len() >= MAX_ARRIVALS;
        match self.arrivals.back_mut() {
            // One entry for each time, and a bounded number of them: a peer whose clock hardly
            // moves costs no memory.
            Some((at, amount)) if *at == arrived_at || is_full => {
                *amount = amount.saturating_add(size);
            }
            _ => self.arrivals.push_back((arrived_at, size)),
        }
        self.amount = self.amount.saturating_add(size);
    }

    /// R at the last arrival, in bit/s. Returns `None` before the second arrival.
    pub(super) fn rate(&self) -> Option<f64> {
        let (newest, _) = self.arrivals.back()?;
        let elapsed = newest.saturating_since(self.first_at?).min(self.window);
        (!elapsed.is_zero()).then(|| self.amount as f64 * 8.0 / elapsed.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clock of the receiver advances by a microsecond with each packet.
    #[test]
    fn a_clock_that_hardly_moves_costs_bounded_memory() {
        let mut received = ReceivedRate::new(Span::from_millis(500));
        for arrival in 0..10_000 {
            let at = Time::from_micros(1_000_000 + arrival);
            received.on_arrival(DataSize::new(1_000), Some(at));
        }
        assert_eq!(received.arrivals.len(), MAX_ARRIVALS);
        assert_eq!(received.amount, 9_999 * 1_000, "all but the first");
        let later = Time::from_micros(1_000_000 + 600_000);
        received.on_arrival(DataSize::new(1_000), Some(later));
        assert_eq!((received.arrivals.len(), received.amount), (1, 1_000));
    }

    #[test]
    fn what_arrived_in_the_window_counts() {
        let mut received = ReceivedRate::new(Span::from_millis(500));
        let mut arrive = |at: Option<u64>| {
            received.on_arrival(DataSize::new(1_000), at.map(Time::from_millis));
            received.rate()
        };
        assert_eq!(arrive(Some(10_000)), None);
        assert_eq!(arrive(Some(10_000)), None, "no time has passed");
        // Two packets in 100 ms after the first one.
        assert_eq!(arrive(Some(10_100)), Some(160_000.0));
        // An acknowledgement was lost: 4,000 bytes in 400 ms.
        assert_eq!(arrive(None), Some(160_000.0));
        assert_eq!(arrive(Some(10_400)), Some(80_000.0));
        // The arrival at 10,100 is 500 ms old: 3,000 bytes in 500 ms.
        assert_eq!(arrive(Some(10_600)), Some(48_000.0));
        assert_eq!(arrive(Some(20_000)), Some(16_000.0), "after a pause");
    }

    #[test]
    fn a_clock_that_stands_still_takes_no_memory() {
        let mut received = ReceivedRate::new(Span::from_millis(500));
        for at in [0, 100, 100, 100] {
            received.on_arrival(DataSize::new(1_000), Some(Time::from_millis(at)));
        }
        assert_eq!(received.arrivals, [(Time::from_millis(100), 3_000)]);
        assert_eq!(received.rate(), Some(240_000.0));
        // 500 ms later they leave the window together.
        received.on_arrival(DataSize::new(1_000), Some(Time::from_millis(600)));
        assert_eq!(received.rate(), Some(16_000.0));
    }
}
