//! Whether the flows at the queue grow as CUBIC or as Reno.

use comity_units::{Span, Time};

/// Estimates the share of CUBIC from the shape of the queue's growth, from a trough of the round
/// trip to the peak at which the next congestion episode begins.
///
/// ```text
/// fullness = ( time average of the round trip − trough ) / ( peak − trough )
/// mean     = mean + ( fullness − mean ) / 8                      initially 0.6
/// CUBIC    = 3/5 + 2/5 · ( mean − 0.53 ) / ( 0.6 − 0.53 )        from 3/5 to 1
/// ```
///
/// The window of a Reno flow grows by one segment each round trip. The queue then grows evenly, and
/// its mean fullness is 1/2. A CUBIC flow regains seven eighths of its reduction in the first half
/// of the time, so the mean fullness is 3/4. Flows that back off in turns blur the difference. In
/// the simulator the mean is 0.44 to 0.56 with Reno and 0.57 to 0.64 with CUBIC, where queue and
/// path are long enough for their windows to differ. On shorter ones the measure cannot distinguish
/// them, and does not have to.
///
/// CUBIC is the default of most hosts. So a flow begins with CUBIC's window, and CUBIC has three
/// fifths at least, whatever the shape. A source that pauses between its frames blurs the shape
/// itself; then the mean stays as it is.
///
/// Source: none for the measure; RFC 5681, section 3.1, and RFC 9438, section 4.2, for the windows.
#[derive(Clone, Copy, Debug)]
pub(super) struct CubicShare {
    trough: Option<Point>,
    peak: Point,
    /// The integral of the round trip over time, from the trough to `until`, in square seconds.
    area: f64,
    until: Time,
    mean: f64,
    /// Whether the source has paused since the last episode.
    has_paused: bool,
}

/// A round trip, its time, and the integral at that time.
#[derive(Clone, Copy, Debug)]
struct Point {
    at: Time,
    rtt: Span,
    area: f64,
}

impl CubicShare {
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

    /// Takes the smoothed round trip `rtt`.
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

    /// The source has nothing to send. The current growth then shows the source's bursts, and does
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

    /// A congestion episode begins, which ends the growth of the queue.
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
    pub(super) fn value(&self) -> f64 {
        let shape = (self.mean - EVEN) / (CONCAVE - EVEN);
        MIN_SHARE + (1.0 - MIN_SHARE) * shape.clamp(0.0, 1.0)
    }
}

/// A smaller growth shows single packets of other flows, not their windows.
const MIN_RISE: Span = Span::from_millis(6);

/// The highest mean fullness with Reno flows only.
const EVEN: f64 = 0.53;

/// The lowest mean fullness with CUBIC flows only.
const CONCAVE: f64 = 0.6;

/// The minimum share of CUBIC.
const MIN_SHARE: f64 = 0.6;

/// The number of episodes in the mean. The fullness of one has a standard deviation of 0.06 to 0.1.
const MEMORY: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Episodes 4 s apart, with round trips of 100 ms · (1 + `above(t)`), `t` from 0 to 1.
    fn after(episodes: u64, above: impl Fn(f64) -> f64) -> CubicShare {
        let mut rise = CubicShare::new();
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
    fn an_even_growth_is_renos_and_a_concave_one_is_cubics() {
        let even = after(100, |part| part);
        assert!((even.mean - 0.5).abs() < 0.01, "{even:?}");
        assert_eq!(even.value(), MIN_SHARE);
        // The window of CUBIC from W_max · β back to W_max.
        let concave = after(100, |part| 1.0 - (1.0 - part) * (1.0 - part) * (1.0 - part));
        assert!((concave.mean - 0.75).abs() < 0.01, "{concave:?}");
        assert_eq!(concave.value(), 1.0);
    }

    #[test]
    fn it_begins_with_cubic_and_changes_over_some_episodes() {
        assert_eq!(CubicShare::new().value(), 1.0);
        // 0.6 and 0.588 above the trough: 1 − 0.4 · 0.0125 / 0.07.
        let once = after(1, |part| part).value();
        assert!((once - 0.929).abs() < 0.01, "{once}");
        assert_eq!(after(20, |part| part).value(), MIN_SHARE);
    }

    #[test]
    fn a_growth_with_a_pause_does_not_count() {
        let mut rise = CubicShare::new();
        for (pauses, counts) in [(true, false), (false, true)] {
            let before = rise.mean;
            for step in 0..400_u64 {
                let rtt = Span::from_millis(100 + step / 4);
                rise.on_round_trip(Time::from_millis(step * 10), rtt);
                if pauses && step == 7 {
                    rise.on_pause();
                }
            }
            rise.on_episode();
            assert_eq!(rise.mean < before, counts, "{pauses}");
        }
    }

    #[test]
    fn a_small_growth_and_the_time_before_the_trough_do_not_count() {
        let fresh = CubicShare::new().mean;
        assert_eq!(after(9, |part| part * 0.05).mean, fresh, "5 ms");
        assert!(after(9, |part| part * 0.07).mean < fresh, "7 ms");
        // The queue recedes for half of the time, and rises evenly in the other half.
        let receding = after(100, |part| (part * 2.0 - 1.0).abs());
        assert!((receding.mean - 0.5).abs() < 0.01, "{receding:?}");
        assert_eq!(after(9, |part| 1.0 - part).mean, fresh, "it never rises");
    }
}
