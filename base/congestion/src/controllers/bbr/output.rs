//! Pacing, for both versions.

use comity_units::{DataSize, Rate, Span, Time};

use crate::{Pacing, Sent};

/// The pacing rate and the size of bursts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    pub(super) mss: f64,
    /// The headers of a full packet: controllers count payload, pacers bytes on the wire.
    overhead: f64,
    /// Bytes of payload per second.
    pub(super) rate: f64,
    /// When the next burst may leave.
    next: Time,
    /// Whether the application had no data after the last packet.
    pub(super) ran_dry: bool,
}

/// The factor on the bandwidth in pacing: 1 % less, so that queues drain.
const MARGIN: f64 = 0.99;

/// Below this rate bursts are of one packet: 1.2 Mb/s, in bytes.
const SINGLE_PACKETS: f64 = 150_000.0;

/// The bursts per second: Linux shifts the bytes of a second by 10.
const BURSTS_PER_SECOND: f64 = 1_024.0;

/// The largest burst, as a host hands it to its network card.
const MAX_BURST: f64 = 65_536.0;

/// The minimum rate; a rate of zero would stop the flow.
const MIN_RATE: f64 = 1.0;

impl Output {
    pub(super) fn new(mss: DataSize) -> Self {
        Self {
            mss: mss.get() as f64,
            overhead: 0.0,
            rate: MIN_RATE,
            next: Time::ZERO,
            ran_dry: false,
        }
    }

    /// Sets the rate to a window per round trip, before the first rate sample.
    pub(super) fn begin(&mut self, window: f64, rtt: Span, gain: f64) {
        let nanos = rtt.as_nanos().max(1_000) as f64;
        self.rate = (gain * window * 1e9 / nanos * MARGIN).max(MIN_RATE);
    }

    /// Sets the rate to a bandwidth. Until the path has been full once, the rate only rises.
    pub(super) fn set(&mut self, bandwidth: f64, gain: f64, was_full: bool) {
        let rate = gain * bandwidth * MARGIN;
        if was_full || rate > self.rate {
            self.rate = rate.max(MIN_RATE);
        }
    }

    pub(super) fn on_sent(&mut self, sent: &Sent) {
        let payload = sent.payload.get() as f64;
        if payload >= self.mss {
            self.overhead = sent.wire.saturating_sub(sent.payload).get() as f64;
        }
        let pause = Span::from_secs_f64(payload / self.rate);
        self.next = self.next.max(sent.now) + pause;
        self.ran_dry = sent.app_limited;
    }

    /// A burst in segments.
    pub(super) fn burst(&self) -> f64 {
        let least = if self.rate < SINGLE_PACKETS { 1.0 } else { 2.0 };
        let bytes = (self.rate / BURSTS_PER_SECOND).min(MAX_BURST);
        libm::floor(bytes / self.mss).max(least)
    }

    /// The bytes that a flow of this bandwidth delivers until its next burst leaves.
    pub(super) fn delivered_by_next(&self, now: Time, bandwidth: f64) -> f64 {
        bandwidth * self.next.saturating_since(now).as_secs_f64()
    }

    pub(super) fn pacing(&self) -> Pacing {
        let packet = self.mss + self.overhead;
        Pacing::Bursts {
            rate: Rate::from_bps_f64((self.rate * 8.0 * packet / self.mss).max(8.0)),
            size: DataSize::new((self.burst() * packet) as u64),
        }
    }
}
