//! BBR: a rate and a window from a model of the path, versions 1 and 3.

mod aggregation;
mod filter;
mod output;
mod policer;
#[cfg(test)]
mod tests;
mod version1;
mod version3;

use comity_units::Time;

pub use version1::{Bbr, BbrConfig};
pub use version3::{Bbr3, Bbr3Config};

use crate::RateSample;

/// Round trips, counted by packets.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    count: u64,
    /// The round ends when a packet is acknowledged that left after so much was delivered.
    end: u64,
    /// The acknowledgement that is being dealt with began one.
    began: bool,
}

impl Rounds {
    /// Takes in a sample; tells whether it began a round.
    fn on_sample(&mut self, sample: &RateSample) -> bool {
        self.began = sample.prior_delivered.get() >= self.end;
        if self.began {
            self.end = sample.total_delivered.get();
            self.count += 1;
        }
        self.began
    }
}

/// ProbeRTT: while it lasts, too little is in flight to measure a bandwidth.
#[derive(Clone, Copy, Debug, Default)]
struct ProbeRtt {
    done_at: Option<Time>,
    round_done: bool,
    /// Packets that left when this much was delivered were too few to measure a bandwidth, from and up to.
    low_samples: Option<(u64, u64)>,
}

impl ProbeRtt {
    /// Whether a sample is low for want of packets.
    fn is_limited(&self, sample: &RateSample) -> bool {
        let left_at = sample.prior_delivered.get();
        let is_low = |(from, to): (u64, u64)| (from..=to).contains(&left_at);
        sample.app_limited || self.low_samples.is_some_and(is_low)
    }

    /// Begins when so much was delivered.
    const fn begin(delivered: u64) -> Self {
        Self {
            done_at: None,
            round_done: false,
            low_samples: Some((delivered, delivered)),
        }
    }
}

/// What was delivered and lost when the last acknowledgement came.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    delivered: u64,
    lost: u64,
}
