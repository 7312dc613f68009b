//! When a constant-rate link is free again, exactly.

use comity_units::{Rate, Time};

/// Work of one byte: 8 bits · 10⁹, so that a rate in bit/s performs `rate` units of work per
/// nanosecond.
pub(crate) const WORK_PER_BYTE: u64 = 8_000_000_000;

/// The virtual clock of a link: when it will have sent every packet offered so far.
///
/// Work is counted in bit · ns/s: a packet is `8·10⁹ · bytes` units, and a link of `rate` bit/s
/// performs `rate` units in each nanosecond. The exact end of the work lies in the nanosecond that
/// ends at `free_at`; `slack` is the work that still fits into that nanosecond. Both are integers,
/// so no rounding error accumulates:
///
/// ```text
/// exact end   = free_at − slack / rate,   0 ≤ slack < rate
/// work        = rate · whole + rest        (division kept for the size of the last packet)
/// free_at'    = max(now, free_at) + whole + (rest > slack)
/// slack'      = slack − rest  (mod rate)
/// ```
///
/// Slack is lost when the link idles, that is, when a packet arrives at or after `free_at`.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    free_at: Time,
    slack: u64,
    rate: u64,
    whole: u64,
    rest: u64,
    /// The size that `whole` and `rest` belong to.
    bytes: u32,
}

impl Clock {
    /// Creates a free link. [`Rate::MAX`] means no transmission time.
    pub(crate) const fn new(rate: Rate) -> Self {
        Self::free_since(rate, Time::ZERO)
    }

    /// Creates a link of this rate that has been free since `since`.
    pub(crate) const fn free_since(rate: Rate, since: Time) -> Self {
        Self {
            free_at: since,
            slack: 0,
            rate: rate.as_bps(),
            whole: 0,
            rest: 0,
            bytes: 0,
        }
    }

    pub(crate) const fn free_at(&self) -> Time {
        self.free_at
    }

    pub(crate) const fn rate(&self) -> Rate {
        Rate::from_bps(self.rate)
    }

    /// The work that still fits into the nanosecond before `free_at`.
    pub(crate) const fn slack(&self) -> u64 {
        self.slack
    }

    /// Sets the state directly, for profiles with a varying rate.
    pub(crate) fn set(&mut self, free_at: Time, slack: u64) {
        self.free_at = free_at;
        self.slack = slack;
    }

    /// When the service of a packet offered at `now` begins.
    #[inline]
    pub(crate) fn begin(&mut self, now: Time) -> Time {
        if now >= self.free_at {
            self.free_at = now;
            self.slack = 0;
        }
        self.free_at
    }

    /// Sends a packet after everything else; returns the departure of its last bit.
    #[inline]
    pub(crate) fn transmit(&mut self, bytes: u32) -> Time {
        if bytes != self.bytes {
            self.divide(bytes);
        }
        let spill = self.rest > self.slack;
        let end = self
            .free_at
            .as_nanos()
            .saturating_add(self.whole)
            .saturating_add(u64::from(spill));
        self.free_at = Time::from_nanos(end);
        self.slack = if spill {
            self.rate - (self.rest - self.slack)
        } else {
            self.slack - self.rest
        };
        self.free_at
    }

    /// The size of the last packet.
    #[inline]
    pub(crate) const fn size(&self) -> u32 {
        self.bytes
    }

    /// The service time of a packet of that size, rounded down to a nanosecond.
    pub(crate) const fn service(&self) -> u64 {
        self.whole
    }

    /// How long the link is busy from `now` on, in nanoseconds.
    #[inline]
    pub(crate) fn backlog(&self, now: Time) -> u64 {
        self.free_at.as_nanos().saturating_sub(now.as_nanos())
    }

    /// Prepares the division for packets of this size.
    pub(crate) fn prepare(&mut self, bytes: u32) {
        self.divide(bytes);
    }

    /// Sends one more packet of the last size, offered at `now`; returns the beginning and end of
    /// its service. `None`, without an effect, if the end lies beyond all time.
    #[inline]
    pub(crate) fn send_another(&mut self, now: Time) -> Option<(Time, Time)> {
        let (start, slack) = if now >= self.free_at {
            (now, 0)
        } else {
            (self.free_at, self.slack)
        };
        let (slack, spill) = slack.overflowing_sub(self.rest);
        let end = start
            .as_nanos()
            .checked_add(self.whole + u64::from(spill))?;
        self.free_at = Time::from_nanos(end);
        self.slack = if spill {
            slack.wrapping_add(self.rate)
        } else {
            slack
        };
        Some((start, self.free_at))
    }

    /// How many packets of the last size remain in a link that has sent no other size since it was
    /// idle. With `n` packets of `w` units of work each, the remaining work exceeds `n − 1` times
    /// `w`.
    pub(crate) fn packets_left(&self, now: Time) -> u64 {
        let left = self
            .capacity(now, self.free_at)
            .saturating_sub(u128::from(self.slack));
        u64::try_from(left.div_ceil(work_of(self.bytes).max(1))).unwrap_or(u64::MAX)
    }

    /// The departures of the last `count` packets, all of the last size and sent without a pause.
    pub(crate) fn last_departures(&self, count: u64) -> impl Iterator<Item = Time> {
        let each = work_of(self.bytes);
        let (free_at, slack, rate) = (self.free_at, u128::from(self.slack), self.rate);
        (0..count).rev().map(move |behind| {
            // The work after the packet, minus the unused part of the last nanosecond, lies before
            // the end.
            let after = (each * u128::from(behind)).saturating_add(slack);
            let earlier = match after.checked_div(u128::from(rate)) {
                Some(whole) => u64::try_from(whole).unwrap_or(u64::MAX),
                None => 0,
            };
            Time::from_nanos(free_at.as_nanos().saturating_sub(earlier))
        })
    }

    /// Performs `work` after everything else; returns its end.
    pub(crate) fn transmit_work(&mut self, work: u128) -> Time {
        let slack = u128::from(self.slack);
        if self.rate == u64::MAX {
            return self.free_at;
        }
        if work <= slack {
            // At most a `u64`, as a part of one.
            self.slack = (slack - work) as u64;
            return self.free_at;
        }
        let (whole, rest) = quotient(work - slack, self.rate);
        let spill = rest > 0;
        let end = self
            .free_at
            .as_nanos()
            .saturating_add(whole)
            .saturating_add(u64::from(spill));
        self.free_at = Time::from_nanos(end);
        self.slack = if spill { self.rate - rest } else { 0 };
        self.free_at
    }

    /// The work that fits between two points of time.
    pub(crate) fn capacity(&self, from: Time, to: Time) -> u128 {
        u128::from(self.rate) * u128::from(to.saturating_since(from).as_nanos())
    }

    #[cold]
    #[inline(never)]
    fn divide(&mut self, bytes: u32) {
        self.bytes = bytes;
        (self.whole, self.rest) = if self.rate == u64::MAX {
            (0, 0)
        } else {
            quotient(work_of(bytes), self.rate)
        };
    }
}

pub(crate) const fn work_of(bytes: u32) -> u128 {
    bytes as u128 * WORK_PER_BYTE as u128
}

/// `work / rate` as whole nanoseconds and remainder; "never" as (`u64::MAX`, 0).
pub(crate) fn quotient(work: u128, rate: u64) -> (u64, u64) {
    if let Ok(work) = u64::try_from(work) {
        return match (work.checked_div(rate), work.checked_rem(rate)) {
            (Some(whole), Some(rest)) => (whole, rest),
            _ if work == 0 => (0, 0),
            _ => (u64::MAX, 0),
        };
    }
    let divisor = u128::from(rate);
    match work.checked_div(divisor).map(u64::try_from) {
        // The rest is below a `u64` rate.
        Some(Ok(whole)) => (whole, (work % divisor) as u64),
        _ => (u64::MAX, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_units::DataSize;

    #[test]
    #[cfg_attr(miri, ignore = "too many frames for an interpreter")]
    fn a_million_frames_end_at_the_exact_time() {
        // 10⁶ · 12,000 bit / 155 Mb/s = 77.419354838709677... s, rounded up to a nanosecond.
        let mut clock = Clock::new(Rate::from_mbps(155));
        let mut last = Time::ZERO;
        for _ in 0..1_000_000 {
            clock.begin(Time::ZERO);
            last = clock.transmit(1_500);
        }
        assert_eq!(last, Time::from_nanos(77_419_354_839));
        let rounded = Rate::from_mbps(155).transmission_time(DataSize::new(1_500)) * 1_000_000;
        assert_eq!(
            rounded.as_nanos() - last.as_nanos(),
            645_161,
            "the error of rounding each"
        );
    }

    #[test]
    fn alternating_sizes_use_the_general_path_to_the_same_end() {
        let rate = Rate::from_bps(999_999_937);
        let (mut cached, mut general) = (Clock::new(rate), Clock::new(rate));
        for step in 0..10_000_u32 {
            let bytes = 40 + step * 7 % 1_461;
            assert_eq!(
                cached.transmit(bytes),
                general.transmit_work(work_of(bytes))
            );
            assert_eq!(cached.slack, general.slack);
        }
    }

    #[test]
    fn slack_is_lost_when_the_link_idles() {
        // 3 Gb/s: one byte takes 2 2/3 ns. Three in a row end at exactly 8 ns; with idle times
        // between them, each is rounded up separately.
        let mut clock = Clock::new(Rate::from_mbps(3_000));
        let ends: [Time; 3] = core::array::from_fn(|_| clock.transmit(1));
        assert_eq!(ends.map(Time::as_nanos), [3, 6, 8]);
        let mut clock = Clock::new(Rate::from_mbps(3_000));
        for now in [0, 3, 6] {
            assert_eq!(clock.begin(Time::from_nanos(now)), Time::from_nanos(now));
            assert_eq!(clock.transmit(1), Time::from_nanos(now + 3));
        }
    }

    #[test]
    fn a_dead_link_never_ends_and_an_unlimited_one_at_once() {
        let mut dead = Clock::new(Rate::ZERO);
        assert_eq!(dead.begin(Time::from_secs(1)), Time::from_secs(1));
        assert_eq!(dead.transmit(0), Time::from_secs(1), "nothing to send");
        assert!(dead.transmit(1).is_never());
        let mut unlimited = Clock::new(Rate::MAX);
        unlimited.begin(Time::from_secs(1));
        assert_eq!(unlimited.transmit(u32::MAX), Time::from_secs(1));
    }
}
