//! The timestamps option (RFC 7323).

use comity_units::{Span, Time};

use super::super::segment::Segment;
use super::Connection;

/// How long a timestamp can be distinguished from an older one: less than half of the clock's
/// period (RFC 7323, section 5.5).
const TIMESTAMP_LIFE: Span = Span::from_secs(30 * 60);

/// The timestamp clock. With ticks of a microsecond it wraps after 71 minutes.
pub(super) fn timestamp(now: Time, tick: Span) -> u32 {
    // Zero means "no echo" in practice, so the clock starts at one.
    ((now.as_nanos() / tick.as_nanos().max(1)) as u32).wrapping_add(1)
}

impl Connection {
    /// The timestamp of a segment, if both ends agreed on timestamps.
    pub(super) fn peer_clock(&self, segment: &Segment) -> Option<u32> {
        let timestamps = segment.options.timestamps;
        timestamps
            .filter(|_| self.config.timestamps)
            .map(|timestamps| timestamps.value)
    }

    /// RFC 7323, section 5: drops old duplicates by their timestamp.
    pub(super) fn admit_timestamps(&mut self, now: Time, segment: &Segment) -> bool {
        let Some(timestamps) = segment.options.timestamps else {
            // RFC 7323, 3.2: once agreed on, only resets may omit timestamps.
            return false;
        };
        let is_stale = self.is_stale(now, timestamps.value);
        self.receiver.ack_now |= is_stale;
        !is_stale
    }

    /// Stores the timestamp to echo. Only a segment whose acknowledgement was accepted gets here: a
    /// stranger who hits the window could otherwise make all of the peer's segments stale
    /// (CVE-2005-0356).
    pub(super) fn keep_timestamp(
        &mut self,
        now: Time,
        start: u64,
        is_old: bool,
        segment: &Segment,
    ) {
        if let Some(timestamps) = segment.options.timestamps
            && start <= self.last_ack_sent
            && !is_old
        {
            self.timestamp_recent = timestamps.value;
            self.timestamp_recent_at = now;
        }
    }

    /// Whether a timestamp is older than the one to be echoed (RFC 7323, section 5).
    pub(super) fn is_stale(&self, now: Time, value: u32) -> bool {
        let age = value.wrapping_sub(self.timestamp_recent) as i32;
        age < 0 && now.saturating_since(self.timestamp_recent_at) < TIMESTAMP_LIFE
    }
}
