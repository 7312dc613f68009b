//! The highest rates of arrival.

use std::collections::VecDeque;

use comity_units::{DataSize, Rate, Span, Time};

/// The windows over which peaks are measured.
const WINDOWS: [Span; 3] = [
    Span::from_millis(1),
    Span::from_millis(10),
    Span::from_millis(40),
];
/// The number of arrivals remembered for a window: 40 ms of datagrams at 10 Gb/s and more.
const MAX_ARRIVALS: usize = 1 << 16;

/// The highest rate over a window of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// The length of the window.
    pub window: Span,
    /// The highest rate.
    pub rate: Rate,
}

/// Measures the highest rates.
#[derive(Debug, Default)]
pub(super) struct Peaks([Window; WINDOWS.len()]);

#[derive(Debug, Default)]
struct Window {
    arrivals: VecDeque<(Time, u64)>,
    bytes: u64,
    max: u64,
}

impl Peaks {
    pub(super) fn arrive(&mut self, now: Time, bytes: usize) {
        for (window, span) in self.0.iter_mut().zip(WINDOWS) {
            window.arrive(now, bytes as u64, span);
        }
    }

    pub(super) fn peaks(&self) -> Vec<Peak> {
        let windows = self.0.iter().zip(WINDOWS);
        let peak = |(window, span): (&Window, _)| Peak {
            window: span,
            rate: Rate::of(DataSize::new(window.max), span),
        };
        windows.map(peak).collect()
    }
}

impl Window {
    fn arrive(&mut self, now: Time, bytes: u64, span: Span) {
        match self.arrivals.back_mut() {
            Some((latest, more)) if *latest >= now => *more += bytes,
            _ => self.arrivals.push_back((now, bytes)),
        }
        self.bytes += bytes;
        while let Some(&(time, bytes)) = self.arrivals.front()
            && (now.saturating_since(time) >= span || self.arrivals.len() > MAX_ARRIVALS)
        {
            self.arrivals.pop_front();
            self.bytes -= bytes;
        }
        self.max = self.max.max(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_over_their_windows() {
        let mut peaks = Peaks::default();
        // 1,000 bytes each millisecond, and once five times as many.
        for millis in 0..200 {
            for _ in 0..if millis == 100 { 5 } else { 1 } {
                peaks.arrive(Time::from_millis(millis), 1_000);
            }
        }
        let rates: Vec<u64> = peaks
            .peaks()
            .iter()
            .map(|peak| peak.rate.as_bps())
            .collect();
        assert_eq!(rates, [40_000_000, 14 * 800_000, 44 * 200_000]);
    }
}
