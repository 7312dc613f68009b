//! Instants as nanoseconds of `CLOCK_MONOTONIC`.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// What `CLOCK_MONOTONIC` shows. Not by rustix, whose vDSO ends a process under valgrind.
fn read() -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is valid. The call fails for unknown clocks alone.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[expect(clippy::disallowed_methods, reason = "this is a real-time host")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// One moment by both clocks. `Instant` is this clock on Linux, but does not show its number.
static BASE: LazyLock<(Instant, i64)> = LazyLock::new(|| (now(), read()));

/// The instant of a time; `None` if it cannot be represented.
pub(crate) fn instant(nanos: i64) -> Option<Instant> {
    let (base, zero) = *BASE;
    let distance = Duration::from_nanos(nanos.abs_diff(zero));
    match nanos >= zero {
        true => base.checked_add(distance),
        false => base.checked_sub(distance),
    }
}

/// The time of an instant.
pub(crate) fn nanos(instant: Instant) -> i64 {
    let (base, zero) = *BASE;
    let whole = |distance: Duration| i64::try_from(distance.as_nanos()).unwrap_or(i64::MAX);
    match instant.checked_duration_since(base) {
        Some(after) => zero.saturating_add(whole(after)),
        None => zero.saturating_sub(whole(base.saturating_duration_since(instant))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_converts_back_to_itself() {
        let now = now();
        for (instant_of, expected) in [
            (now, nanos(now)),
            (now + Duration::from_secs(5), nanos(now) + 5_000_000_000),
        ] {
            assert_eq!(nanos(instant_of), expected);
            assert_eq!(instant(expected), Some(instant_of));
        }
        let before = nanos(now) - 1_000;
        assert_eq!(nanos(instant(before).unwrap()), before);
        assert!(nanos(now) <= read());
    }
}
