//! The rate that a flow has used.

use comity_units::{DataSize, Rate, Span, Time};

/// The maximum rate at which packets arrived over half a second.
///
/// ```text
/// sample = bytes acknowledged / interval     interval: from one acknowledgement to the first one
///                                            that is 0.5 s later
/// used   = maximum of the samples
/// ```
///
/// Half a second contains enough pictures, so that a key frame among them adds no more than a few
/// tenths to the rate. If a pause makes an interval longer than a second, it is no sample.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    began_at: Option<Time>,
    bytes: u64,
    most: Rate,
}

impl Used {
    /// `bytes` were acknowledged at `now`.
    pub(super) fn on_arrived(&mut self, now: Time, bytes: u64) {
        let elapsed = { self.began_at }.map_or(Span::MAX, |at| now.saturating_since(at));
        if elapsed < INTERVAL {
            self.bytes += bytes;
            return;
        }
        if elapsed <= INTERVAL * 2 {
            let delivered = DataSize::new(self.bytes + bytes);
            self.most = self.most.max(Rate::of(delivered, elapsed));
        }
        self.began_at = Some(now);
        self.bytes = 0;
    }

    /// The maximum so far; zero before the first sample.
    pub(super) const fn rate(&self) -> Rate {
        self.most
    }
}

const INTERVAL: Span = Span::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    /// Acknowledges `bytes` every 10 ms, from one time to another.
    fn acknowledge(used: &mut Used, from_ms: u64, to_ms: u64, bytes: u64) {
        for at in (from_ms..to_ms).step_by(10) {
            used.on_arrived(Time::from_millis(at), bytes);
        }
    }

    #[test]
    fn it_is_the_maximum_over_half_a_second() {
        let mut used = Used::default();
        acknowledge(&mut used, 0, 500, 1_250);
        assert_eq!(used.rate(), Rate::ZERO, "not half a second yet");
        acknowledge(&mut used, 500, 1_010, 1_250);
        assert_eq!(used.rate(), Rate::from_mbps(1));
        acknowledge(&mut used, 1_010, 2_010, 5_000);
        assert_eq!(used.rate(), Rate::from_mbps(4));
        acknowledge(&mut used, 2_010, 9_000, 1_250);
        assert_eq!(used.rate(), Rate::from_mbps(4), "the most, not the last");
    }

    #[test]
    fn a_pause_is_no_low_rate_and_what_follows_it_no_high_one() {
        let mut used = Used::default();
        acknowledge(&mut used, 0, 300, 1_250);
        // After the pause, one acknowledgement of what had been under way.
        used.on_arrived(Time::from_millis(5_000), 1_000_000);
        assert_eq!(used.rate(), Rate::ZERO);
        acknowledge(&mut used, 5_010, 5_600, 1_250);
        assert_eq!(used.rate(), Rate::from_mbps(1));
    }
}
