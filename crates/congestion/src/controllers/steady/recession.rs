//! How far the queue recedes after an episode: which part of the flows has backed off.

use comity_units::Span;

use super::evidence::LONGEST_WAITING;
use super::shadow::GIVEN_WAY;

/// The smoothed round trip behind an episode, from its crest down to its trough.
///
/// ```text
/// depth     = 2 · ( crest − trough )                   the smoothed round trip shows less than there was
/// part of β = depth / min( (1 − β) · crest, crest − least round trip of all ),  at most 1
/// ```
///
/// Behind a full queue the sum of all windows is the round trip times the rate of the link. If
/// every flow backed off to β of its window, the round trip would shrink to β of itself, or until
/// the queue is empty. If it shrinks by less, only a part of the flows has lost packets, and a flow
/// among them backs off in the same part of such episodes.
///
/// The trough is known once half of the depth has been regained.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recession {
    /// The longest round trip, and the shortest since; `None` when nothing is measured.
    open: Option<(Span, Span)>,
}

impl Recession {
    /// An episode of others begins at this round trip.
    pub(super) const fn begin(&mut self, rtt: Span) {
        self.open = Some((rtt, rtt));
    }

    /// The rest of the recession is not measured: this flow backs off itself.
    pub(super) const fn end(&mut self) {
        self.open = None;
    }

    /// The smoothed round trip is `rtt`, on a path of this least one. When the trough is known: the
    /// parts of the flows that have given way if they do so as CUBIC does, and if they do so as
    /// Reno does.
    pub(super) fn on_round_trip(&mut self, rtt: Span, min: Span) -> Option<(f64, f64)> {
        let (crest, trough) = match self.open? {
            (crest, trough) if rtt <= crest => (crest, trough.min(rtt)),
            _ => (rtt, rtt),
        };
        self.open = Some((crest, trough));
        let depth = crest.saturating_sub(trough);
        if depth < LONGEST_WAITING || rtt < trough + depth / 2 {
            return None;
        }
        self.open = None;
        let depth = SMOOTHED * depth.as_secs_f64();
        let queue = crest.saturating_sub(min).as_secs_f64();
        let part = |given_way: f64| (depth / (given_way * crest.as_secs_f64()).min(queue)).min(1.0);
        Some((part(GIVEN_WAY), part(GIVEN_WAY_RENO)))
    }
}

/// The factor by which a recession is deeper than the smoothed round trip shows.
const SMOOTHED: f64 = 2.0;

/// The part of its window by which a Reno flow backs off (RFC 5681, section 3.1).
const GIVEN_WAY_RENO: f64 = 0.5;

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const MIN: Span = Span::from_millis(40);

    fn measured(begin: u64, millis: &[u64]) -> Vec<(usize, i32, i32)> {
        let mut recession = Recession::default();
        recession.begin(Span::from_millis(begin));
        let percent = |part: f64| libm::round(part * 100.0) as i32;
        (0..millis.len())
            .filter_map(|at| {
                let rtt = Span::from_millis(millis[at]);
                let (cubic, reno) = recession.on_round_trip(rtt, MIN)?;
                Some((at, percent(cubic), percent(reno)))
            })
            .collect()
    }

    #[test]
    fn the_parts_follow_from_how_far_the_round_trip_recedes() {
        // 2 · 10 ms of 0.3 and 0.5 times 200 ms; known when 5 ms are regained, and once.
        let found = measured(195, &[200, 195, 190, 194, 195, 190, 200]);
        assert_eq!(found, [(4, 33, 20)]);
        // 2 · 40 ms of 60 and 100 ms: all CUBIC flows, or four fifths of Reno flows.
        assert_eq!(measured(200, &[160, 180]), [(1, 100, 80)]);
    }

    #[test]
    fn no_more_than_the_queue_can_recede() {
        // Of 60 ms of round trip the queue is 20: 2 · 8 ms of 18 and of 20 ms.
        assert_eq!(measured(60, &[52, 56]), [(1, 89, 80)]);
    }

    #[test]
    fn a_crest_may_follow_the_beginning_and_a_ripple_tells_nothing() {
        assert_eq!(measured(180, &[190, 200, 190, 195]), [(3, 33, 20)]);
        assert_eq!(measured(200, &[198, 200, 198, 200]), []);
        let mut ended = Recession::default();
        ended.begin(Span::from_millis(200));
        ended.end();
        assert_eq!(ended.on_round_trip(Span::from_millis(100), MIN), None);
        assert_eq!(ended.on_round_trip(Span::from_millis(190), MIN), None);
    }
}
