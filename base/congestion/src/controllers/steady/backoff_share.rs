//! The part of the flows that backed off in a congestion episode.

use comity_units::Span;

use super::loss_classifier::SHORT_QUEUE;
use super::tcp_emulation::CUBIC_BACKOFF;

/// Estimates the part of the flows that backed off, from how far the smoothed round trip falls.
///
/// ```text
/// fall = 2 · ( crest − trough )                 smoothing hides half of the fall
/// part = fall / min( (1 − β) · crest, crest − minimum round trip ),  at most 1
/// ```
///
/// At a full queue, the sum of all windows is the round trip times the rate of the link. If every
/// flow backed off to β of its window, the round trip would fall to β of itself, or until the queue
/// is empty. A smaller fall means that only some flows lost packets. An average flow among them
/// would back off in the same part of such episodes.
///
/// The trough is known once the round trip has regained half of the fall.
///
/// Source: none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BackoffShare {
    /// Crest and trough of the current measurement; `None` between measurements.
    open: Option<(Span, Span)>,
}

impl BackoffShare {
    /// Begins a measurement: an episode of other flows began at the round trip `rtt`.
    pub(super) const fn begin(&mut self, rtt: Span) {
        self.open = Some((rtt, rtt));
    }

    /// Ends the measurement, because this flow backs off itself.
    pub(super) const fn end(&mut self) {
        self.open = None;
    }

    /// Takes the smoothed round trip `rtt` on a path whose minimum is `min`.
    ///
    /// Returns the part of the flows that backed off, once the trough is known: first if they back
    /// off as CUBIC does, then if they back off as Reno does.
    pub(super) fn on_round_trip(&mut self, rtt: Span, min: Span) -> Option<(f64, f64)> {
        let (crest, trough) = match self.open? {
            (crest, trough) if rtt <= crest => (crest, trough.min(rtt)),
            _ => (rtt, rtt),
        };
        self.open = Some((crest, trough));
        let depth = crest.saturating_sub(trough);
        if depth < SHORT_QUEUE || rtt < trough + depth / 2 {
            return None;
        }
        self.open = None;
        let depth = SMOOTHED * depth.as_secs_f64();
        let queue = crest.saturating_sub(min).as_secs_f64();
        let part = |backoff: f64| (depth / (backoff * crest.as_secs_f64()).min(queue)).min(1.0);
        Some((part(CUBIC_BACKOFF), part(RENO_BACKOFF)))
    }
}

/// The round trip falls by this factor more than the smoothed round trip.
const SMOOTHED: f64 = 2.0;

/// The part of its window by which a Reno flow backs off (RFC 5681, section 3.1).
const RENO_BACKOFF: f64 = 0.5;

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const MIN: Span = Span::from_millis(40);

    fn measured(begin: u64, millis: &[u64]) -> Vec<(usize, i32, i32)> {
        let mut share = BackoffShare::default();
        share.begin(Span::from_millis(begin));
        let percent = |part: f64| libm::round(part * 100.0) as i32;
        (0..millis.len())
            .filter_map(|at| {
                let rtt = Span::from_millis(millis[at]);
                let (cubic, reno) = share.on_round_trip(rtt, MIN)?;
                Some((at, percent(cubic), percent(reno)))
            })
            .collect()
    }

    #[test]
    fn the_parts_follow_from_how_far_the_round_trip_recedes() {
        // 2 · 10 ms of 0.3 and 0.5 times 200 ms; known once, when 5 ms are regained.
        let found = measured(195, &[200, 195, 190, 194, 195, 190, 200]);
        assert_eq!(found, [(4, 33, 20)]);
        // 2 · 40 ms of 60 and 100 ms: all CUBIC flows, or four fifths of Reno flows.
        assert_eq!(measured(200, &[160, 180]), [(1, 100, 80)]);
    }

    #[test]
    fn no_more_than_the_queue_can_recede() {
        // Of a round trip of 60 ms, the queue is 20 ms: 2 · 8 ms of 18 and of 20 ms.
        assert_eq!(measured(60, &[52, 56]), [(1, 89, 80)]);
    }

    #[test]
    fn a_crest_may_follow_the_beginning_and_a_ripple_is_ignored() {
        assert_eq!(measured(180, &[190, 200, 190, 195]), [(3, 33, 20)]);
        assert_eq!(measured(200, &[198, 200, 198, 200]), []);
        let mut ended = BackoffShare::default();
        ended.begin(Span::from_millis(200));
        ended.end();
        assert_eq!(ended.on_round_trip(Span::from_millis(100), MIN), None);
        assert_eq!(ended.on_round_trip(Span::from_millis(190), MIN), None);
    }
}
