//! The one clock of both ends.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`, which all network namespaces of a host share.
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux always has this clock");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// Sleeps until a time of the common clock.
pub async fn sleep_until(time_ns: u64) {
    let left = time_ns.saturating_sub(now_ns());
    tokio::time::sleep(Duration::from_nanos(left)).await;
}
