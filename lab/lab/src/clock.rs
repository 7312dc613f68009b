//! The clock that all parts of a lab share: nanoseconds since the start, on `CLOCK_MONOTONIC`.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use comity_units::{Span, Time};
use rustix::time::{ClockId, clock_gettime};

/// Time since the start of a lab. All processes of this host share its origin.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin_ns: u64,
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // The monotonic clock is never negative.
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

impl Clock {
    /// A clock that reaches zero after `lead`.
    pub(crate) fn starting_in(lead: Span) -> Self {
        Self {
            origin_ns: monotonic_ns() + lead.as_nanos(),
        }
    }

    /// A clock with the origin of another process.
    pub const fn with_origin(origin_ns: u64) -> Self {
        Self { origin_ns }
    }

    /// The origin in nanoseconds of `CLOCK_MONOTONIC`.
    pub const fn origin_ns(self) -> u64 {
        self.origin_ns
    }

    /// The present time; zero before the start.
    pub fn now(self) -> Time {
        Time::from_nanos(monotonic_ns().saturating_sub(self.origin_ns))
    }

    /// The time until `time`; zero if it has passed.
    pub(crate) fn until(self, time: Time) -> Duration {
        let at = self.origin_ns.saturating_add(time.as_nanos());
        Duration::from_nanos(at.saturating_sub(monotonic_ns()))
    }

    /// `time` as an instant.
    #[allow(clippy::disallowed_methods, reason = "this is a real-time host")]
    pub(crate) fn instant(self, time: Time) -> Instant {
        let (now, at) = (monotonic_ns(), self.origin_ns + time.as_nanos());
        let instant = Instant::now();
        match at.checked_sub(now) {
            Some(ahead) => instant + Duration::from_nanos(ahead),
            None => instant - Duration::from_nanos(now - at),
        }
    }

    /// An instant as a time; zero before the start.
    #[allow(clippy::disallowed_methods, reason = "this is a real-time host")]
    pub(crate) fn time(self, instant: Instant) -> Time {
        let (now_ns, now) = (monotonic_ns(), Instant::now());
        let at = match now.checked_duration_since(instant) {
            Some(ago) => now_ns.saturating_sub(Span::from(ago).as_nanos()),
            None => now_ns + Span::from(instant.saturating_duration_since(now)).as_nanos(),
        };
        Time::from_nanos(at.saturating_sub(self.origin_ns))
    }
}

/// The clock of a run that can be cancelled. After that, its time is [`Time::MAX`], and all waits
/// end.
#[derive(Clone, Debug)]
pub(crate) struct RunClock {
    clock: Clock,
    off: Arc<(Mutex<bool>, Condvar)>,
}

impl RunClock {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            off: Arc::default(),
        }
    }

    /// The clock itself, which is never cancelled.
    pub(crate) const fn clock(&self) -> Clock {
        self.clock
    }

    /// The present time; zero before the start, [`Time::MAX`] after cancellation.
    pub(crate) fn now(&self) -> Time {
        if self.is_off() {
            Time::MAX
        } else {
            self.clock.now()
        }
    }

    pub(crate) fn is_off(&self) -> bool {
        *self.off.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all waits of the run.
    pub(crate) fn call_off(&self) {
        let (off, called) = &*self.off;
        *off.lock().unwrap_or_else(PoisonError::into_inner) = true;
        called.notify_all();
    }

    /// Waits until `time`, or until the run is cancelled.
    pub(crate) fn wait_until(&self, time: Time) {
        let (off, called) = &*self.off;
        let mut is_off = off.lock().unwrap_or_else(PoisonError::into_inner);
        while !*is_off {
            let left = self.clock.until(time);
            if left.is_zero() {
                return;
            }
            is_off = match called.wait_timeout(is_off, left) {
                Ok((guard, _)) => guard,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_called_off_is_over_for_all_who_wait() {
        let clock = RunClock::new(Clock::starting_in(Span::from_secs(3_600)));
        assert_eq!(clock.now(), Time::ZERO, "zero before the start");
        let waiting = {
            let clock = clock.clone();
            std::thread::spawn(move || clock.wait_until(Time::ZERO + Span::from_secs(3_600)))
        };
        clock.call_off();
        waiting.join().unwrap();
        assert_eq!(clock.now(), Time::MAX);
    }
}
