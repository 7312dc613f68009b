//! Detects that a disk or a reader is slower than the arriving data.

use std::time::{Duration, Instant};

/// The duration of an observation.
const WINDOW: Duration = Duration::from_secs(5);
/// The minimum share of that time in which data waits for the output, in percent.
const MIN_SHARE: u32 = 80;
/// The minimum number of waits. A disk that stalls once causes one wait.
const MIN_WAITS: u32 = 10;
/// Shorter waits do not count, because they include waking the writing thread.
const SHORT: Duration = Duration::from_millis(1);
/// The minimum growth of the delay between two observations. If a reader began late and now reads
/// at the pace of the source, the delay is constant.
const MIN_GROWTH: Duration = Duration::from_millis(250);

/// Distinguishes an output that continuously falls behind from one that stalls occasionally.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlowOutput {
    since: Instant,
    waited: Duration,
    waits: u32,
    bytes: u64,
    /// The minimum delay of a section in this observation, and in the previous one if the output
    /// was behind then.
    delay: Option<Duration>,
    delay_before: Option<Duration>,
    has_warned: bool,
}

impl SlowOutput {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            since: now,
            waited: Duration::ZERO,
            waits: 0,
            bytes: 0,
            delay: None,
            delay_before: None,
            has_warned: false,
        }
    }

    /// Records the age of a submitted section.
    pub(super) fn on_section(&mut self, age: Duration) {
        self.delay = Some(self.delay.map_or(age, |least| least.min(age)));
    }

    /// Records that bytes waited for room from `came` to `now`. If the output is too slow, returns
    /// its rate in Mb/s, once.
    pub(super) fn on_room(&mut self, came: Instant, now: Instant, bytes: u64) -> Option<f64> {
        let wait = now.saturating_duration_since(came);
        if wait >= SHORT {
            self.waited += wait;
            self.waits += 1;
        }
        self.bytes += bytes;
        let lasted = now.saturating_duration_since(self.since);
        if lasted < WINDOW {
            return None;
        }
        let grows = |(now, before): (Duration, Duration)| now >= before + MIN_GROWTH;
        let is_behind = self.waits >= MIN_WAITS && self.waited * 100 >= lasted * MIN_SHARE;
        let delay = self.delay.filter(|_| is_behind);
        let is_slow = delay.zip(self.delay_before).is_some_and(grows);
        let rate = self.bytes as f64 * 8e-6 / lasted.as_secs_f64();
        let has_warned = self.has_warned;
        *self = Self {
            delay_before: delay,
            has_warned: has_warned || is_slow,
            ..Self::new(now)
        };
        (is_slow && !has_warned).then_some(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;

    /// When an output is detected as slow, in seconds, and its rate. A piece of 10,000 bytes
    /// arrives every 40 ms (2 Mb/s), or when there is room for it. `room` is the time, in
    /// milliseconds, from accepting a piece until there is room again, as a function of time.
    fn judged(seconds: f64, room: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        let start = now();
        let at = |millis: f64| start + Duration::from_secs_f64(millis / 1e3);
        let mut output = SlowOutput::new(start);
        let (mut free, mut found) = (0.0_f64, Vec::new());
        for piece in 0..(seconds * 25.0) as u32 {
            let source = 40.0 * f64::from(piece);
            let taken = free.max(source);
            free = taken + room(taken);
            output.on_section(at(taken) - at(source));
            let rate = output.on_room(at(taken), at(free), 10_000);
            found.extend(rate.map(|rate| (free / 1e3, rate)));
        }
        found
    }

    #[test]
    fn a_reader_that_falls_behind_is_reported_once() {
        // The output accepts a piece every 100 ms.
        let found = judged(60.0, |_| 100.0);
        let [(at, rate)] = found[..] else {
            panic!("{found:?}")
        };
        assert!((10.0..10.3).contains(&at), "{at}");
        assert!((rate - 0.8).abs() < 0.02, "{rate}");
        // An output that becomes slow later.
        let found = judged(60.0, |taken| if taken < 20_000.0 { 0.0 } else { 50.0 });
        assert!(
            matches!(found[..], [(at, _)] if (30.0..36.0).contains(&at)),
            "{found:?}"
        );
    }

    #[test]
    fn a_disk_that_stalls_and_a_reader_that_began_late_are_not_slow() {
        assert_eq!(judged(60.0, |_| 0.0), []);
        // One write takes 8 s; the data that arrived in that time is then written at once.
        let once = |taken: f64| match (10_000.0..10_040.0).contains(&taken) {
            true => 8_000.0,
            false => 0.5,
        };
        assert_eq!(judged(60.0, once), []);
        // A disk that flushes for one second in every five.
        let flushing = |taken: f64| if taken % 5_000.0 < 40.0 { 1_000.0 } else { 0.5 };
        assert_eq!(judged(60.0, flushing), []);
        // An output with little spare capacity.
        assert_eq!(judged(60.0, |_| 38.0), []);
        // A player that begins after 20 s, and then shows a picture every 40 ms.
        let player = |taken: f64| if taken < 40.0 { 20_000.0 } else { 40.0 };
        assert_eq!(judged(60.0, player), []);
    }
}
