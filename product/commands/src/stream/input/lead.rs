//! How far a live source that can be held back is ahead of its own time stamps.

use std::time::{Duration, Instant};

use comity_units::Span;

/// The lead, in seconds, above which the source is held back. Time stamps are uneven, and may jump
/// by less than the threshold for jumps.
const MAX_LEAD: f64 = 0.5;
/// The maximum lag that counts after a pause, in seconds. A source is not held back while it
/// catches up with this lag.
const MAX_LAG: f64 = 10.0;
/// The maximum rate of the time stamps relative to this host's clock, since clocks differ.
const FASTEST: f64 = 1.01;

/// Distinguishes a source in real time from one that delivers as fast as it is read, such as a file
/// through a pipe.
///
/// A source in real time is never far ahead of its own time stamps. Any other source is held back
/// to its time stamps, like a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lead {
    at: Instant,
    progress: Span,
    /// The lead in seconds at that moment.
    lead: f64,
}

impl Lead {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            at: now,
            progress: Span::ZERO,
            lead: 0.0,
        }
    }

    /// Records the progress of the source's time stamps.
    pub(super) fn advance(&mut self, now: Instant, progress: Span) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        let gained = progress.saturating_sub(self.progress).as_secs_f64();
        let lead = (self.lead - FASTEST * passed).max(-MAX_LAG) + gained;
        *self = Self {
            at: now,
            progress,
            lead,
        };
    }

    /// The time until which the source is held back.
    pub(super) fn holds_until(&self) -> Option<Instant> {
        let too_far = (self.lead - MAX_LEAD) / FASTEST;
        (too_far > 0.0).then(|| self.at + Duration::from_secs_f64(too_far))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;

    /// The delay of each piece of 40 ms from a source that offers them at these times; both in
    /// milliseconds.
    fn held(offered: impl Iterator<Item = f64>) -> Vec<f64> {
        let begin = now();
        let mut lead = Lead::new(begin);
        let mut free = begin;
        let piece = |(number, offer): (u32, f64)| {
            let offered = begin + Duration::from_secs_f64(offer / 1e3);
            let taken = lead.holds_until().unwrap_or(begin).max(offered).max(free);
            free = taken;
            lead.advance(taken, Span::from_millis(40) * u64::from(number + 1));
            (taken - offered).as_secs_f64() * 1e3
        };
        (0..).zip(offered).map(piece).collect()
    }

    #[test]
    fn a_real_time_source_is_never_held_back() {
        let even = (0..100_000).map(|number| 40.0 * f64::from(number));
        let fast = even.clone().map(|time| time * 0.995);
        // The source pauses for 5 s each minute, and then delivers the backlog.
        let pausing = even.clone().map(|time| {
            let within = time % 60_000.0;
            if within < 5_000.0 {
                time - within + 5_000.0
            } else {
                time
            }
        });
        for late in [held(even), held(fast), held(pausing)] {
            assert!(late.iter().all(|&late| late == 0.0));
        }
    }

    #[test]
    fn a_source_faster_than_its_times_is_held_back_to_them() {
        let late = held((0..2_500).map(|_| 0.0));
        for (number, late) in late.iter().enumerate() {
            let at_pace = (40.0 * number as f64 - 500.0).max(0.0) / 1.01;
            assert!((late - at_pace).abs() < 41.0, "{number}: {late}");
        }
        // At twice the rate of its time stamps.
        let late = held((0..2_500).map(|number| 20.0 * f64::from(number)));
        let last = 20.0 * 2_499.0;
        assert!((late[2_499] - (2.0 * last - 500.0) / 1.01 + last).abs() < 41.0);
    }
}
