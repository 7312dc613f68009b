//! The timestamps option (RFC 7323).

use comity_units::{Span, Time};

/// How long a timestamp can be distinguished from an older one: less than half of the clock's
/// period (RFC 7323, section 5.5).
const TIMESTAMP_LIFE: Span = Span::from_secs(30 * 60);

/// The timestamp clock. With ticks of a microsecond it wraps after 71 minutes.
pub(super) fn timestamp(now: Time, tick: Span) -> u32 {
    // Zero means "no echo" in practice, so the clock starts at one.
    ((now.as_nanos() / tick.as_nanos().max(1)) as u32).wrapping_add(1)
}

/// The peer's timestamp that the next segment echoes (TS.Recent of RFC 7323).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentTimestamp {
    pub(super) value: u32,
    arrived: Time,
}

impl RecentTimestamp {
    pub(super) fn new(now: Time, value: u32) -> Self {
        Self {
            value,
            arrived: now,
        }
    }

    /// Whether a segment with the timestamp `value` is an old duplicate (RFC 7323, section 5).
    pub(super) fn is_stale(&self, now: Time, value: u32) -> bool {
        let age = value.wrapping_sub(self.value) as i32;
        age < 0 && now.saturating_since(self.arrived) < TIMESTAMP_LIFE
    }
}
