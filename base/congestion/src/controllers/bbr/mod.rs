//! BBR: a rate and a window from a model of the path, versions 1 and 3.

mod aggregation;
mod filter;
mod output;
mod policer;
#[cfg(test)]
mod tests;
mod version1;
mod version3;

use comity_units::{Span, Time};

pub use version1::{Bbr, BbrConfig};
pub use version3::{Bbr3, Bbr3Config};

use crate::RateSample;

/// Round trips, counted by packets.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    count: u64,
    /// The round ends with the acknowledgement of a packet that left at or after this delivered
    /// count.
    end: u64,
    /// Whether the current acknowledgement began a round.
    began: bool,
}

impl Rounds {
    /// Takes a sample. Returns whether it began a round.
    fn on_sample(&mut self, sample: &RateSample) -> bool {
        self.began = sample.prior_delivered.get() >= self.end;
        if self.began {
            self.end = sample.total_delivered.get();
            self.count += 1;
        }
        self.began
    }
}

/// ProbeRTT. During it, too little is in flight to measure the bandwidth.
#[derive(Clone, Copy, Debug, Default)]
struct ProbeRtt {
    done_at: Option<Time>,
    round_done: bool,
    /// Packets that left at a delivered count in this range give low samples because of ProbeRTT.
    low_samples: Option<(u64, u64)>,
}

impl ProbeRtt {
    /// Whether a sample is low because of the application or ProbeRTT.
    fn is_limited(&self, sample: &RateSample) -> bool {
        let left_at = sample.prior_delivered.get();
        let is_low = |(from, to): (u64, u64)| (from..=to).contains(&left_at);
        sample.app_limited || self.low_samples.is_some_and(is_low)
    }

    /// Begins ProbeRTT at this count of delivered bytes.
    const fn begin(delivered: u64) -> Self {
        Self {
            done_at: None,
            round_done: false,
            low_samples: Some((delivered, delivered)),
        }
    }

    /// Takes a sample. ProbeRTT lasts for `time` and one round, counted from when at most `most`
    /// bytes are in flight. Returns whether that round is over.
    fn on_sample(
        &mut self,
        now: Time,
        sample: &RateSample,
        most: f64,
        time: Span,
        rounds: &mut Rounds,
    ) -> bool {
        let (delivered, in_flight) = (sample.total_delivered.get(), sample.in_flight.get());
        if let Some((_, to)) = &mut self.low_samples {
            *to = delivered.saturating_add(in_flight);
        }
        if self.done_at.is_some() {
            self.round_done |= rounds.began;
            return self.round_done;
        }
        if in_flight as f64 <= most {
            self.done_at = Some(now + time);
            rounds.end = delivered;
        }
        false
    }

    fn is_over(&self, now: Time) -> bool {
        self.done_at.is_some_and(|done_at| now > done_at)
    }
}

/// The minimum window, in segments.
const MIN_WINDOW: f64 = 4.0;

/// The path is full when the bandwidth grows by less than this factor for [`FULL_ROUNDS`].
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;

/// The assumed round trip before the first measurement.
const NOMINAL_RTT: Span = Span::from_millis(1);

/// The rate of a sample in bytes per second; zero if it has none.
fn rate(sample: &RateSample) -> f64 {
    if sample.has_rate() {
        sample.delivered.get() as f64 / sample.interval.as_secs_f64()
    } else {
        0.0
    }
}

/// Bytes delivered and lost in all, at the last acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    delivered: u64,
    lost: u64,
}
