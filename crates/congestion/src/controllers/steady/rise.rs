//! Whether the queue fills between two episodes as CUBIC flows or as Reno flows fill it.

use comity_units::{Span, Time};

/// The shape of the round trips from a trough to the peak at which the next episode begins.
///
/// ```text
/// fullness = ( mean over time of the round trip − trough ) / ( peak − trough )
/// mean     = mean + ( fullness − mean ) / 8                      beginning at 0.6
/// CUBIC    = 3/5 + 2/5 · ( mean − 0.53 ) / ( 0.6 − 0.53 )       at least 3/5 and at most 1
/// ```
///
/// The window of a Reno flow grows by one segment in each round trip: the queue rises evenly, and
/// is half full in the mean. A CUBIC flow regains seven eighths of what it gave away in half of the
/// time that it takes to regain all: 3/4. Flows that back off in turns blur both: in the simulator
/// the mean is .44 to .56 with Reno and .57 to .64 with CUBIC, where queue and path are so long
/// that their windows differ. Where they are short, the measure does not tell them apart, and need
/// not.
///
/// CUBIC is the default of nearly all hosts: a flow begins with its window, and three fifths stand
/// for it whatever the shape. A source that pauses between its frames blurs the shape itself, and
/// keeps the mean that it has.
///
/// Source: none for the measure; the windows are those of RFC 5681, section 3.1, and RFC 9438,
/// section 4.2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rise {
    trough: Option<Point>,
    peak: Point,
    /// The integral over time of the round trip since the trough, in square seconds, up to `until`.
    area: f64,
    until: Time,
    mean: f64,
    /// Whether the source has paused since the last episode.
    has_paused: bool,
}

/// A round trip, when it was measured, and the integral up to it.
#[derive(Clone, Copy, Debug)]
struct Point {
    at: Time,
    rtt: Span,
    area: f64,
}

impl Rise {
    pub(super) const fn new() -> Self {
        Self {
            trough: None,
            peak: Point {
                at: Time::ZERO,
                rtt: Span::ZERO,
                area: 0.0,
            },
            area: 0.0,
            until: Time::ZERO,
            mean: CONCAVE,
            has_paused: false,
        }
    }

    /// The smoothed round trip is `rtt`.
    pub(super) fn on_round_trip(&mut self, now: Time, rtt: Span) {
        if self.trough.is_some_and(|trough| trough.rtt <= rtt) {
            let elapsed = now.saturating_since(self.until);
            self.area += rtt.as_secs_f64() * elapsed.as_secs_f64();
        } else {
            self.area = 0.0;
            let trough = self.point(now, rtt);
            (self.trough, self.peak) = (Some(trough), trough);
        }
        self.until = now;
        if rtt >= self.peak.rtt {
            self.peak = self.point(now, rtt);
        }
    }

    /// The source has nothing to send for a moment. Such a rise shows the source's bursts and does
    /// not count.
    pub(super) const fn on_pause(&mut self) {
        self.has_paused = true;
    }

    const fn point(&self, at: Time, rtt: Span) -> Point {
        Point {
            at,
            rtt,
            area: self.area,
        }
    }

    /// A congestion episode begins: the rise has ended.
    pub(super) fn on_episode(&mut self) {
        let has_paused = core::mem::take(&mut self.has_paused);
        let Some(trough) = self.trough.take() else {
            return;
        };
        let rise = self.peak.rtt.saturating_sub(trough.rtt);
        let lasted = self.peak.at.saturating_since(trough.at);
        if has_paused || rise < MIN_RISE || lasted == Span::ZERO {
            return;
        }
        let above = self.peak.area / lasted.as_secs_f64() - trough.rtt.as_secs_f64();
        self.mean += (above / rise.as_secs_f64() - self.mean) / MEMORY;
    }

    /// The weight of a CUBIC flow in the average window, from 3/5 to 1. A Reno flow has the rest.
    pub(super) fn cubic_share(&self) -> f64 {
        let shape = (self.mean - EVEN) / (CONCAVE - EVEN);
        LEAST + (1.0 - LEAST) * shape.clamp(0.0, 1.0)
    }
}

/// A queue that rises by less shows the packets of others, not their windows.
const MIN_RISE: Span = Span::from_millis(6);

/// The queue is no fuller than this in the mean where only Reno flows fill it.
const EVEN: f64 = 0.53;

/// The queue is at least this full in the mean where only CUBIC flows fill it.
const CONCAVE: f64 = 0.6;

/// The least share of CUBIC.
const LEAST: f64 = 0.6;

/// Over so many episodes the shape is averaged: that of one deviates by 0.06 to 0.1.
const MEMORY: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Episodes 4 s apart, with round trips of 100 ms and `above(t)` times 100 ms more, `t` from 0
    /// to 1.
    fn after(episodes: u64, above: impl Fn(f64) -> f64) -> Rise {
        let mut rise = Rise::new();
        for episode in 0..episodes {
            for step in 0..400_u64 {
                let part = f64::from(u32::try_from(step).unwrap()) / 399.0;
                let rtt = Span::from_secs_f64(0.1 + 0.1 * above(part));
                rise.on_round_trip(Time::from_millis(episode * 4_000 + step * 10), rtt);
            }
            rise.on_episode();
        }
        rise
    }

    #[test]
    fn an_even_rise_is_renos_and_a_concave_one_is_cubics() {
        let even = after(100, |part| part);
        assert!((even.mean - 0.5).abs() < 0.01, "{even:?}");
        assert_eq!(even.cubic_share(), LEAST);
        // The window of CUBIC from W_max · β back to W_max.
        let concave = after(100, |part| 1.0 - (1.0 - part) * (1.0 - part) * (1.0 - part));
        assert!((concave.mean - 0.75).abs() < 0.01, "{concave:?}");
        assert_eq!(concave.cubic_share(), 1.0);
    }

    #[test]
    fn it_begins_with_cubic_and_takes_some_episodes_to_change_its_mind() {
        assert_eq!(Rise::new().cubic_share(), 1.0);
        // 0.6 and 0.588 above the trough: 1 − 0.4 · 0.0125 / 0.07.
        let once = after(1, |part| part).cubic_share();
        assert!((once - 0.929).abs() < 0.01, "{once}");
        assert_eq!(after(20, |part| part).cubic_share(), LEAST);
    }

    #[test]
    fn a_rise_with_a_pause_in_it_tells_nothing() {
        let mut rise = Rise::new();
        for (pauses, tells) in [(true, false), (false, true)] {
            let before = rise.mean;
            for step in 0..400_u64 {
                let rtt = Span::from_millis(100 + step / 4);
                rise.on_round_trip(Time::from_millis(step * 10), rtt);
                if pauses && step == 7 {
                    rise.on_pause();
                }
            }
            rise.on_episode();
            assert_eq!(rise.mean < before, tells, "{pauses}");
        }
    }

    #[test]
    fn a_small_rise_and_what_comes_before_the_trough_tell_nothing() {
        let fresh = Rise::new().mean;
        assert_eq!(after(9, |part| part * 0.05).mean, fresh, "5 ms");
        assert!(after(9, |part| part * 0.07).mean < fresh, "7 ms");
        // The queue recedes for half of the time, and rises evenly in the other half.
        let receding = after(100, |part| (part * 2.0 - 1.0).abs());
        assert!((receding.mean - 0.5).abs() < 0.01, "{receding:?}");
        assert_eq!(after(9, |part| 1.0 - part).mean, fresh, "it never rises");
    }
}
