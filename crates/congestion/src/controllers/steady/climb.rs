//! What TCP would have by now, as long as too few losses are known for an average.

use comity_units::{Bytes, Rate, Span, Time};

/// The window of additive increase and multiplicative decrease, under the loss events of this flow.
///
/// ```text
/// at the first event   window = what was carried in a round trip
/// at each later event  window = window / 2, one segment at least
/// in between           window + 1 segment each round trip, up to what has been used
/// ```
///
/// The first losses of a flow come in its own slow start or in that of its rivals, one soon after
/// another. An average over loss intervals remembers such a beginning until as many intervals as it
/// spans have passed, which may take half a minute; TCP has climbed back in a few seconds.
///
/// Used is the faster of twice the most that was delivered of late and the initial window in a
/// round trip: a source of little data has never tried whether there is more, and later
/// losses would halve it in vain.
///
/// Source: RFC 5681, section 3.1, for the increase and the decrease, and RFC 7661 for the bound.
/// What was carried is half of what was sent, as at the end of a slow start that doubles.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Climb {
    /// In segments; zero before the first event.
    window: f64,
    /// What it was before the last event.
    before: f64,
    grown_at: Time,
}

impl Climb {
    /// A loss event that counts; `carried` segments in a round trip were delivered before it.
    pub(super) fn on_event(&mut self, now: Time, carried: f64) {
        self.before = self.window;
        self.grown_at = now;
        self.window = if self.window > 0.0 {
            self.window / 2.0
        } else {
            carried
        }
        .max(1.0);
    }

    /// The last event did not happen. If it was the first, there was none yet.
    pub(super) fn undo_event(&mut self) {
        self.window = if self.before > 0.0 {
            self.window.max(self.before)
        } else {
            0.0
        };
    }

    /// Time has passed.
    pub(super) fn grow(&mut self, now: Time, rtt: Span) {
        if self.window > 0.0 {
            let elapsed = now.saturating_since(self.grown_at);
            self.window += elapsed.as_secs_f64() / rtt.as_secs_f64();
        }
        self.grown_at = now;
    }

    /// No more than so many segments, and one at least: what is not used does not grow.
    pub(super) fn cap(&mut self, segments: f64) {
        self.window = self.window.min(segments.max(1.0));
    }

    pub(super) fn rate(&self, mss: Bytes, rtt: Span) -> Rate {
        Rate::of(mss, rtt).mul_f64(self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1_000);
    const RTT: Span = Span::from_millis(100);

    fn segments(climb: &Climb) -> f64 {
        climb.rate(MSS, RTT).as_bps() as f64 / 80_000.0
    }

    #[test]
    fn it_halves_and_climbs_by_a_segment_each_round_trip() {
        let mut climb = Climb::default();
        climb.grow(Time::from_secs(1), RTT);
        assert_eq!(segments(&climb), 0.0, "nothing before the first event");
        climb.on_event(Time::from_secs(1), 10.0);
        assert_eq!(segments(&climb), 10.0);
        climb.grow(Time::from_millis(1_250), RTT);
        assert!((segments(&climb) - 12.5).abs() < 1e-3);
        climb.grow(Time::from_millis(1_600), RTT);
        assert!((segments(&climb) - 16.0).abs() < 1e-3);
        climb.on_event(Time::from_millis(1_600), 99.0);
        assert!((segments(&climb) - 8.0).abs() < 1e-3);
    }

    #[test]
    fn what_is_not_used_does_not_grow() {
        let mut climb = Climb::default();
        climb.cap(12.0);
        assert_eq!(segments(&climb), 0.0, "nothing before the first event");
        climb.on_event(Time::ZERO, 10.0);
        climb.cap(12.0);
        assert_eq!(segments(&climb), 10.0);
        climb.grow(Time::from_secs(60), RTT);
        climb.cap(12.0);
        assert_eq!(segments(&climb), 12.0);
        climb.cap(0.0);
        assert_eq!(segments(&climb), 1.0);
    }

    #[test]
    fn an_undone_event_gives_the_window_back_and_a_halved_one_keeps_a_segment() {
        let mut climb = Climb::default();
        climb.on_event(Time::ZERO, 9.0);
        climb.undo_event();
        assert_eq!(segments(&climb), 0.0, "as if there had been none");
        climb.on_event(Time::ZERO, 4.0);
        assert_eq!(segments(&climb), 4.0);
        climb.on_event(Time::ZERO, 4.0);
        climb.undo_event();
        assert_eq!(segments(&climb), 4.0);
        for _ in 0..9 {
            climb.on_event(Time::ZERO, 4.0);
        }
        assert_eq!(segments(&climb), 1.0);
    }
}
