//! The clock of an endpoint.

use std::time::{Duration, Instant};

use comity_units::{Span, Time};

/// The range of the clock before its start: media may be older than the endpoint.
const BEFORE: Span = Span::from_secs(24 * 3_600);

/// Maps [`Instant`]s to [`Time`]s and back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    #[allow(clippy::disallowed_methods, reason = "this is a real-time host")]
    pub(crate) fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    #[allow(clippy::disallowed_methods, reason = "this is a real-time host")]
    pub(crate) fn now(self) -> Time {
        self.time(Instant::now())
    }

    /// The reading of the clock at `instant`.
    pub(crate) fn time(self, instant: Instant) -> Time {
        let zero = Time::ZERO + BEFORE;
        match instant.checked_duration_since(self.origin) {
            Some(after) => zero + Span::from(after),
            None => zero.saturating_sub(Span::from(self.origin.duration_since(instant))),
        }
    }

    /// The instant at which the clock shows `time`; `None` for never, and for times that the
    /// system's clock cannot show.
    pub(crate) fn instant(self, time: Time) -> Option<Instant> {
        if time.is_never() {
            return None;
        }
        let zero = Time::ZERO + BEFORE;
        match time.since(zero) {
            Some(after) => self.origin.checked_add(Duration::from(after)),
            None => self
                .origin
                .checked_sub(Duration::from(zero.saturating_since(time))),
        }
    }

    /// As [`Self::instant`], with the start of the clock for times that cannot be shown.
    pub(crate) fn instant_or_origin(self, time: Time) -> Instant {
        self.instant(time).unwrap_or(self.origin)
    }

    /// The start of the clock.
    pub(crate) const fn origin(self) -> Instant {
        self.origin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_and_times_map_onto_each_other_on_both_sides_of_the_origin() {
        let clock = Clock::start();
        let later = clock.origin + Duration::from_millis(1_500);
        assert_eq!(
            clock.time(later),
            Time::ZERO + BEFORE + Span::from_millis(1_500)
        );
        assert_eq!(clock.instant(clock.time(later)), Some(later));
        if let Some(earlier) = clock.origin.checked_sub(Duration::from_millis(20)) {
            assert_eq!(
                clock.time(earlier),
                Time::from_millis(24 * 3_600 * 1_000 - 20)
            );
            assert_eq!(clock.instant(clock.time(earlier)), Some(earlier));
        }
        assert_eq!(clock.instant(Time::MAX), None);
    }
}
