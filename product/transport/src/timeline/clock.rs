//! Maps the sender's clock onto the receiver's.
//!
//! Every packet carries its departure time on the sender's clock. Arrival minus departure is the
//! offset between the clocks plus the one-way delay. The minimum in a window contains no queueing
//! delay, so the map follows the path and not the queue.
//!
//! ```text
//! d        = arrival − departure
//! level(t) = min over the window of (dᵢ + drift · (t − tᵢ))
//! offset   → level − base,   at most `slew` per second          base: half of the least round trip
//! local    = sender + offset
//! ```
//!
//! The map also keeps the jitter between successive packets, without a correction for drift:
//!
//! ```text
//! J ← J + (|dᵢ − dᵢ₋₁| − J) / 16        in the order of arrival, from J = 0
//! ```
//!
//! * **Drift** is the slope of the lower convex hull of the minima at the middle of the history.
//!   This line lies below all points, so a queue that comes and goes does not tilt it.
//! * **A shorter path** lowers the level at once. **A longer path** raises it once the whole window
//!   lies above the old level: until then it could be a queue. Both steps are removed from the
//!   history of the drift.
//!
//! * **A jump of a clock** does not change the path: the host of the clock was suspended, or its
//!   virtual machine paused. At any queueing delay, no packet arrives before its departure, and no
//!   packet takes longer than the round trip that it ends. With O for the offset of the clocks:
//!
//!   ```text
//!   d − round trip  ≤  O  ≤  d
//!   ```
//!
//!   If the offset in use violates this by more than `jump`, for 8 packets or two round trips in a
//!   row, the map computes it again at once from the last of them. A single wrong departure has no
//!   effect.
//!
//! Source: S. B. Moon, P. Skelly, D. Towsley, "Estimation and removal of clock skew from network
//! delay measurements", IEEE INFOCOM 1999 (the line below all points that is nearest to them); RFC
//! 3550, sections 6.4.1 and A.8 (the interarrival jitter J, in fixed point).
//!
//! Differs from the source in:
//! 1. The minimum of a bucket represents all its packets, which bounds memory.
//! 2. Steps of the path are removed, and a slope too steep for a clock counts as a queue.
//!
//! Limits: an end that receives in one direction only cannot distinguish drift from a queue that
//! grows for minutes, more slowly than `max_drift_ppm`, and is never empty.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use comity_units::{Span, Time};

/// How a [`ClockMap`] filters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The length of a bucket, which keeps one minimum; at least 1 ms.
    pub bucket: Span,
    /// Buckets in the window of the level, at least 1.
    pub window: usize,
    /// Buckets in the history of the drift.
    pub history: usize,
    /// The minimum number of buckets that determine a drift.
    pub min_history: usize,
    /// The maximum change of the offset per second, apart from drift.
    pub slew: Span,
    /// The minimum change of the level that counts as a step of the path and not as noise.
    pub step: Span,
    /// The largest slope that counts as drift, in parts per million.
    pub max_drift_ppm: u32,
    /// The minimum violation of the bounds from packets and round trips after which the offset is
    /// computed again.
    pub jump: Span,
}

impl Default for Config {
    /// Buckets of 2 s; a window of 16 s and a history of 5 minutes; 10 ms per second; 300 ppm; 100
    /// ms.
    fn default() -> Self {
        Self {
            bucket: Span::from_secs(2),
            window: 8,
            history: 150,
            min_history: 10,
            slew: Span::from_millis(10),
            step: Span::from_millis(3),
            max_drift_ppm: 300,
            jump: Span::from_millis(100),
        }
    }
}

/// The minimum offset of one bucket, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    number: u64,
    /// When the minimum arrived.
    at: i64,
    least: i64,
}

/// Maps the sender's clock onto the receiver's. Until a packet has arrived, both clocks count as
/// equal.
#[derive(Clone, Debug)]
pub struct ClockMap {
    config: Config,
    /// The oldest first; the last is still filling.
    buckets: VecDeque<Bucket>,
    /// The growth of the offset, in nanoseconds per nanosecond.
    slope: f64,
    has_slope: bool,
    /// The latest packet: its arrival, and its departure unwrapped, in microseconds.
    latest: Option<(Time, i64)>,
    /// The bucket in which the path last became shorter.
    shortened_in: Option<u64>,
    /// `d` of the latest packet.
    latest_offset: i64,
    /// The interarrival jitter, in sixteenths of a nanosecond.
    jitter_sixteenths: u64,
    base: Option<i64>,
    /// The offset in use.
    offset: i64,
    /// The number of consecutive packets that arrived before their departure by this offset, and of
    /// consecutive round trips that were shorter than the one-way delay of their last packet.
    early: u32,
    late: u32,
}

const EARLY_PACKETS: u32 = 8;
const LATE_ROUND_TRIPS: u32 = 2;

impl Default for ClockMap {
    fn default() -> Self {
        Self::new(Config::default())
    }
}

impl ClockMap {
    /// A map without packets.
    pub const fn new(config: Config) -> Self {
        Self {
            config,
            buckets: VecDeque::new(),
            slope: 0.0,
            has_slope: false,
            latest: None,
            shortened_in: None,
            latest_offset: 0,
            jitter_sixteenths: 0,
            base: None,
            offset: 0,
            early: 0,
            late: 0,
        }
    }

    /// Sets the delay of the path without queues: half of the minimum round-trip time, because one
    /// end cannot measure the one-way delay. The first value takes effect at once, later ones by
    /// slewing.
    pub fn set_base_one_way(&mut self, span: Span) {
        let base = i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
        if self.base.is_none() && self.latest.is_some() {
            self.offset = self.offset.saturating_sub(base);
        }
        self.base = Some(base);
    }

    /// Records the arrival of a packet that left at `departure` on the sender's clock, in
    /// microseconds modulo 2^32.
    pub fn on_arrival(&mut self, now: Time, departure: u32) {
        let departure = self.unwrap(now, departure);
        let arrival = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        let offset = arrival.saturating_sub(departure.saturating_mul(1_000));
        let offset_before = core::mem::replace(&mut self.latest_offset, offset);
        let Some((before, _)) = self.latest.replace((now, departure)) else {
            self.push(arrival, offset);
            self.offset = offset.saturating_sub(self.base.unwrap_or(0));
            return;
        };
        let leak = self.jitter_sixteenths.saturating_add(8) / 16;
        self.jitter_sixteenths = self
            .jitter_sixteenths
            .saturating_add(offset.abs_diff(offset_before))
            .saturating_sub(leak);
        let is_early = offset < self.offset.saturating_sub(self.jump());
        self.early = if is_early { self.early + 1 } else { 0 };
        if self.early >= EARLY_PACKETS {
            return self.anchor(arrival, offset);
        }
        let level = self.take_in(arrival, offset);
        let passed = now.saturating_since(before);
        // The offset moves with time: packets that arrive together move it once.
        if passed.is_zero() {
            return;
        }
        let target = level.saturating_sub(self.base.unwrap_or(0));
        let drifted = self
            .offset
            .saturating_add(self.drift_over(passed.as_nanos() as i64));
        let slew = self.config.slew.mul_f64(passed.as_secs_f64()).as_nanos() as i64;
        self.offset = drifted.saturating_add(target.saturating_sub(drifted).clamp(-slew, slew));
    }

    /// Records that the latest packet, which arrived at `now`, ended a round trip of this length.
    /// The length includes the delay of the acknowledgement.
    pub fn on_round_trip(&mut self, now: Time, round_trip: Span) {
        let Some((arrival, _)) = self.latest.filter(|&(arrival, _)| arrival == now) else {
            return;
        };
        let round_trip = i64::try_from(round_trip.as_nanos()).unwrap_or(i64::MAX);
        let least = self.latest_offset.saturating_sub(round_trip);
        let is_late = least > self.offset.saturating_add(self.jump());
        self.late = if is_late { self.late + 1 } else { 0 };
        if self.late >= LATE_ROUND_TRIPS {
            // All time beyond twice the base may be queueing delay in this direction.
            let base = self.base.unwrap_or(0).min(round_trip / 2);
            let queue = round_trip.saturating_sub(base.saturating_mul(2));
            let arrival = i64::try_from(arrival.as_nanos()).unwrap_or(i64::MAX);
            self.anchor(arrival, self.latest_offset.saturating_sub(queue));
        }
    }

    fn jump(&self) -> i64 {
        i64::try_from(self.config.jump.as_nanos()).unwrap_or(i64::MAX)
    }

    /// Restarts the map at this level. Keeps the drift, because the rates of the clocks are
    /// unchanged.
    fn anchor(&mut self, at: i64, level: i64) {
        self.buckets.clear();
        self.shortened_in = None;
        (self.early, self.late) = (0, 0);
        self.push(at, level);
        self.offset = level.saturating_sub(self.base.unwrap_or(0));
    }

    /// Restores the departure whose low half was sent: the value nearest to the one that the local
    /// clock predicts. It is not negative, since no packet leaves before the sender's clock begins.
    /// So every local time from now on has a time on that clock.
    fn unwrap(&self, now: Time, departure: u32) -> i64 {
        let Some((arrival, last)) = self.latest else {
            return i64::from(departure);
        };
        let passed = i64::try_from(now.saturating_since(arrival).as_micros()).unwrap_or(i64::MAX);
        let expected = last.saturating_add(passed);
        // Modulo 2^32 on purpose: the signed distance between the low halves.
        let ahead = departure.wrapping_sub(expected as u32) as i32;
        expected.saturating_add(i64::from(ahead)).max(0)
    }

    fn push(&mut self, at: i64, least: i64) {
        let width = self.config.bucket.as_nanos().max(1_000_000);
        self.buckets.push_back(Bucket {
            number: at as u64 / width,
            at,
            least,
        });
    }

    /// Adds an offset to the minima. Returns the new level.
    fn take_in(&mut self, at: i64, offset: i64) -> i64 {
        let step = i64::try_from(self.config.step.as_nanos()).unwrap_or(i64::MAX);
        let level = self.level(at);
        let width = self.config.bucket.as_nanos().max(1_000_000);
        let number = at as u64 / width;
        let changes = |last: &Bucket| last.number < number || offset < last.least.max(level);
        if !self.buckets.back().is_none_or(changes) {
            return level;
        }
        let window = self.config.window.max(1);
        if self.buckets.back().is_some_and(|last| last.number < number) {
            self.push(at, offset);
            if self.buckets.len() > self.config.history.max(window) {
                self.buckets.pop_front();
            }
            let raised = self.level(at).saturating_sub(level);
            if raised > step {
                let old = self.buckets.len().saturating_sub(window);
                for bucket in self.buckets.iter_mut().take(old) {
                    bucket.least = bucket.least.saturating_add(raised);
                }
            }
            self.fit();
        } else if let Some(last) = self.buckets.back_mut()
            && offset < last.least
        {
            (last.at, last.least) = (at, offset);
        }
        let lowered = level.saturating_sub(offset);
        // Queueing delays the first packets of a shorter path, too. The rest of their step is
        // removed as well.
        let is_recent = self
            .shortened_in
            .is_some_and(|bucket| number <= bucket.saturating_add(1));
        if lowered > step || (is_recent && lowered > 0) {
            if lowered > step {
                self.shortened_in = Some(number);
            }
            let old = self.buckets.len().saturating_sub(1);
            for bucket in self.buckets.iter_mut().take(old) {
                bucket.least = bucket.least.saturating_sub(lowered);
            }
        }
        self.level(at)
    }

    /// The minimum offset of the window, moved to the present by the drift.
    fn level(&self, now: i64) -> i64 {
        let window = self.buckets.iter().rev().take(self.config.window.max(1));
        window
            .map(|bucket| {
                let drift = self.drift_over(now.saturating_sub(bucket.at));
                bucket.least.saturating_add(drift)
            })
            .min()
            .unwrap_or(0)
    }

    fn drift_over(&self, nanos: i64) -> i64 {
        (self.slope * nanos as f64) as i64
    }

    /// Fits the slope to the full buckets.
    fn fit(&mut self) {
        let full = self.buckets.len().saturating_sub(1);
        if full < self.config.min_history.max(2) {
            return;
        }
        let Some(&origin) = self.buckets.front() else {
            return;
        };
        let points: Vec<(f64, f64)> = self
            .buckets
            .iter()
            .take(full)
            .map(|bucket| {
                let at = bucket.at.saturating_sub(origin.at) as f64;
                (at, bucket.least.saturating_sub(origin.least) as f64)
            })
            .collect();
        let Some(slope) = slope_below(&points) else {
            return;
        };
        let most = f64::from(self.config.max_drift_ppm) / 1e6;
        if !(-most..=most).contains(&slope) {
            return;
        }
        if self.has_slope {
            self.slope += (slope - self.slope) / 4.0;
        } else {
            self.slope = slope;
            self.has_slope = true;
        }
    }

    /// The local time at which the sender's clock shows `sender`. [`Time::MAX`] stays
    /// [`Time::MAX`].
    pub fn to_local(&self, sender: Time) -> Time {
        if sender.is_never() {
            return sender;
        }
        let offset = Span::from_nanos(self.offset.unsigned_abs());
        if self.offset < 0 {
            sender.saturating_sub(offset)
        } else {
            sender + offset
        }
    }

    /// The time of the sender's clock at `local`, a time of this end.
    pub fn to_sender(&self, local: Time) -> Time {
        let offset = Span::from_nanos(self.offset.unsigned_abs());
        if self.offset < 0 {
            local + offset
        } else {
            local.saturating_sub(offset)
        }
    }

    /// How much faster the sender's clock runs than this end's, in parts per million.
    pub fn drift_ppm(&self) -> f64 {
        -self.slope * 1e6
    }

    /// The queueing delay of the latest packet: its transit time above the minimum of the window.
    pub fn queueing(&self) -> Span {
        let Some((now, _)) = self.latest else {
            return Span::ZERO;
        };
        let level = self.level(i64::try_from(now.as_nanos()).unwrap_or(i64::MAX));
        let beyond = self.latest_offset.saturating_sub(level);
        Span::from_nanos(u64::try_from(beyond).unwrap_or(0))
    }

    /// The mean difference of the transit times of successive packets, over about 16 of them: the
    /// interarrival jitter of RFC 3550, section 6.4.1. Zero until two packets have arrived.
    pub const fn jitter(&self) -> Span {
        Span::from_nanos(self.jitter_sixteenths / 16)
    }

    /// The one-way delay of the latest packet, under the assumption that the propagation delay is
    /// half of the minimum round-trip time.
    pub fn one_way(&self) -> Span {
        let base = self.base.unwrap_or(0);
        self.queueing() + Span::from_nanos(u64::try_from(base).unwrap_or(0))
    }
}

/// The slope of the lower convex hull at the mean abscissa of the points, whose abscissas ascend.
/// It is the slope of the line below all points that is nearest to them.
fn slope_below(points: &[(f64, f64)]) -> Option<f64> {
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for &(x, y) in points {
        while let [.., (x0, y0), (x1, y1)] = hull.as_slice()
            && (y1 - y0) * (x - x1) >= (y - y1) * (x1 - x0)
        {
            hull.pop();
        }
        hull.push((x, y));
    }
    let mean = points.iter().map(|&(x, _)| x).sum::<f64>() / points.len() as f64;
    hull.windows(2).find_map(|edge| match edge {
        &[(x0, y0), (x1, y1)] if x1 >= mean && x1 > x0 => Some((y1 - y0) / (x1 - x0)),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
