//! Detects that a live source is silent.

use std::time::{Duration, Instant};

use comity_units::{Span, Time, TwoWindows};

/// The minimum time without bytes that counts as silence. Intervals between pictures are 40 ms.
const SHORTEST: Span = Span::from_millis(60);
/// The minimum silence, as a multiple of the longest usual pause.
const LONGER: u64 = 2;
/// The longest pause that counts as usual.
const LONGEST_USUAL: Span = Span::from_millis(250);
/// The pauses of the last one to two windows of this length count.
const WINDOW: Span = Span::from_secs(10);

/// Detects pauses of a live source. During a pause, the last unit is complete and waits for no more
/// data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    began: Instant,
    came: Option<Instant>,
    pauses: TwoWindows<Span>,
    is_over: bool,
}

impl Silence {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            began: now,
            came: None,
            pauses: TwoWindows::default(),
            is_over: true,
        }
    }

    /// Records that bytes arrived.
    pub(super) fn on_bytes(&mut self, now: Instant) {
        let pause = self
            .came
            .map(|came| now.saturating_duration_since(came).into());
        if let Some(pause) = pause.filter(|pause| *pause <= LONGEST_USUAL) {
            let at = Time::ZERO + now.saturating_duration_since(self.began).into();
            self.pauses.raise(at, WINDOW, pause);
        }
        self.came = Some(now);
        self.is_over = false;
    }

    /// When the silence begins if no bytes arrive; `None` if it has already begun.
    pub(super) fn begins_at(&self) -> Option<Instant> {
        let after = SHORTEST.max(self.pauses.most() * LONGER);
        let begins = self.came.map(|came| came + Duration::from(after));
        begins.filter(|_| !self.is_over)
    }

    /// Records that the silence has begun.
    pub(super) fn on_silence(&mut self) {
        self.is_over = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;

    #[test]
    fn a_source_is_silent_after_twice_its_usual_pause() {
        let begin = now();
        let at = |millis| begin + Duration::from_millis(millis);
        let mut silence = Silence::new(begin);
        assert_eq!(silence.begins_at(), None);
        for picture in 0..100 {
            silence.on_bytes(at(picture * 40));
            let after = if picture == 0 { 60 } else { 80 };
            assert_eq!(silence.begins_at(), Some(at(picture * 40 + after)));
        }
        silence.on_silence();
        assert_eq!(silence.begins_at(), None, "once");
        // A pause of 2 s, and then a datagram every 160 ms.
        for datagram in 0..200 {
            let came = 6_000 + datagram * 160;
            silence.on_bytes(at(came));
            let after = if datagram == 0 { 80 } else { 320 };
            assert_eq!(silence.begins_at(), Some(at(came + after)));
        }
        // The pause is long ago and no longer counts.
        for picture in 0..1_000 {
            silence.on_bytes(at(38_000 + picture * 40));
        }
        assert_eq!(silence.begins_at(), Some(at(38_000 + 999 * 40 + 80)));
    }
}
