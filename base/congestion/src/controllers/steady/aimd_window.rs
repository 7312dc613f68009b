//! The window of TCP's additive increase and multiplicative decrease, for a flow with few losses.

use comity_units::{DataSize, Rate, Span, Time};

/// A window of additive increase and multiplicative decrease (AIMD) under this flow's loss events.
///
/// ```text
/// at the first event   window = segments delivered in one round trip
/// at each later event  window = window / 2, at least one segment
/// in between           window grows by one segment each round trip, up to what is in use
/// ```
///
/// The first losses of a flow come in quick succession, in its own slow start or in that of its
/// rivals. A mean over loss intervals contains them until as many intervals have passed, which may
/// take half a minute. The window of TCP recovers within a few seconds.
///
/// The window in use is the larger of the initial window and twice the maximum receive rate in a
/// round trip. A source of little data has never tested whether the path carries more. Without this
/// bound, halving its window would have no effect.
///
/// Source: RFC 5681, section 3.1, for increase and decrease; RFC 7661 for the bound. The delivered
/// segments are half of those sent, as at the end of a slow start that doubles.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AimdWindow {
    /// In segments; zero before the first loss event.
    window: f64,
    /// The window before the last event.
    before: f64,
    grown_at: Time,
}

impl AimdWindow {
    /// Reacts to a loss event. Before it, `carried` segments were delivered in a round trip.
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

    /// Undoes the last event. After the first event, the window is zero again.
    pub(super) fn undo_event(&mut self) {
        self.window = if self.before > 0.0 {
            self.window.max(self.before)
        } else {
            0.0
        };
    }

    /// Grows the window for the time since the last call.
    pub(super) fn grow(&mut self, now: Time, rtt: Span) {
        if self.window > 0.0 {
            let elapsed = now.saturating_since(self.grown_at);
            self.window += elapsed.as_secs_f64() / rtt.as_secs_f64();
        }
        self.grown_at = now;
    }

    /// Limits the window to the `segments` in use, and to one segment at least.
    pub(super) fn cap(&mut self, segments: f64) {
        self.window = self.window.min(segments.max(1.0));
    }

    pub(super) fn rate(&self, mss: DataSize, rtt: Span) -> Rate {
        Rate::of(mss, rtt).mul_f64(self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: DataSize = DataSize::new(1_000);
    const RTT: Span = Span::from_millis(100);

    fn segments(aimd: &AimdWindow) -> f64 {
        aimd.rate(MSS, RTT).as_bps() as f64 / 80_000.0
    }

    #[test]
    fn it_halves_and_grows_by_a_segment_each_round_trip() {
        let mut aimd = AimdWindow::default();
        aimd.grow(Time::from_secs(1), RTT);
        assert_eq!(segments(&aimd), 0.0, "nothing before the first event");
        aimd.on_event(Time::from_secs(1), 10.0);
        assert_eq!(segments(&aimd), 10.0);
        aimd.grow(Time::from_millis(1_250), RTT);
        assert!((segments(&aimd) - 12.5).abs() < 1e-3);
        aimd.grow(Time::from_millis(1_600), RTT);
        assert!((segments(&aimd) - 16.0).abs() < 1e-3);
        aimd.on_event(Time::from_millis(1_600), 99.0);
        assert!((segments(&aimd) - 8.0).abs() < 1e-3);
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut aimd = AimdWindow::default();
        aimd.cap(12.0);
        assert_eq!(segments(&aimd), 0.0, "nothing before the first event");
        aimd.on_event(Time::ZERO, 10.0);
        aimd.cap(12.0);
        assert_eq!(segments(&aimd), 10.0);
        aimd.grow(Time::from_secs(60), RTT);
        aimd.cap(12.0);
        assert_eq!(segments(&aimd), 12.0);
        aimd.cap(0.0);
        assert_eq!(segments(&aimd), 1.0);
    }

    #[test]
    fn an_undone_event_restores_the_window_and_a_halved_one_keeps_a_segment() {
        let mut aimd = AimdWindow::default();
        aimd.on_event(Time::ZERO, 9.0);
        aimd.undo_event();
        assert_eq!(segments(&aimd), 0.0, "no event");
        aimd.on_event(Time::ZERO, 4.0);
        assert_eq!(segments(&aimd), 4.0);
        aimd.on_event(Time::ZERO, 4.0);
        aimd.undo_event();
        assert_eq!(segments(&aimd), 4.0);
        for _ in 0..9 {
            aimd.on_event(Time::ZERO, 4.0);
        }
        assert_eq!(segments(&aimd), 1.0);
    }
}
