//! Groups of segments that leave the host as one large segment.

use comity_congestion::{Decision, Pacing};
use comity_units::Span;

use super::super::codec::data_header_length;
use super::super::config::Config;
use super::super::segment::IP_HEADER;

/// New segments that leave together. The network interface splits one large segment into them, and
/// only the last has the PSH flag. A segment that leaves alone has none.
///
/// ```text
/// size = min( max(rate · 1 s / 1024, 2 · MSS), 64 KiB, cwnd / 2 )     whole segments, at least one
/// rate = 2 · cwnd / SRTT below half of the slow-start threshold, 1.2 · cwnd / SRTT elsewhere
/// ```
///
/// A controller that paces in bursts sets their size.
///
/// Source: Linux 6, `net/ipv4/tcp_output.c` (`tcp_tso_autosize`, `tcp_cwnd_test` and
/// `__tcp_transmit_skb`).
///
/// Differs from Linux in: 1. retransmitted segments are alone; 2. round trips below 16 ms do not
/// make groups larger; 3. a group does not wait for an acknowledgement that would let it grow.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// How many segments left, and how many may leave.
    length: u64,
    size: u64,
    /// Whether the last segment ended a group of several.
    is_over: bool,
}

/// The maximum size of a group in bytes.
const MAX_SIZE: u64 = 64 << 10;

impl Group {
    /// Ends the group: the next segment begins another.
    #[inline]
    pub(super) const fn end(&mut self) {
        self.length = 0;
    }

    /// Records that a new segment left. `size` runs only at the beginning of a group; another
    /// segment `follows` if the group has room.
    pub(super) fn on_sent(&mut self, size: impl FnOnce() -> u64, follows: bool) {
        if self.length == 0 {
            self.size = size();
        }
        self.length += 1;
        let is_full = self.length >= self.size || !follows;
        self.is_over = is_full && self.length > 1;
        if is_full {
            self.length = 0;
        }
    }

    pub(super) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Records a retransmitted segment: it leaves alone.
    pub(super) const fn on_retransmitted(&mut self) {
        self.length = 0;
        self.is_over = false;
    }
}

/// How many segments leave as one under a controller's decision.
///
/// * `window`: the congestion window that the sender applies.
/// * `smoothed`: the round-trip time.
pub(super) fn size(
    decision: &Decision,
    window: u64,
    smoothed: Option<Span>,
    config: &Config,
) -> u64 {
    let mss = u64::from(config.mss);
    let bytes = match decision.pacing {
        Pacing::Bursts { size, .. } => {
            let header = IP_HEADER as usize + data_header_length(config.timestamps, false, false);
            size.get() / (mss + header as u64) * mss
        }
        _ => {
            let is_fast = decision
                .ssthresh
                .is_some_and(|threshold| window < threshold.get() / 2);
            let tenths = if is_fast { 20 } else { 12 };
            let smoothed = smoothed.unwrap_or(Span::from_millis(1));
            let nanos = u128::from(smoothed.as_nanos().max(1));
            let rate = u128::from(window) * tenths * 100_000_000 / nanos;
            u64::try_from(rate >> 10).unwrap_or(u64::MAX).max(2 * mss)
        }
    };
    (bytes.min(MAX_SIZE).min(window / 2) / mss).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_units::{DataSize, Rate};

    #[test]
    fn a_group_ends_when_it_is_full_or_nothing_follows() {
        let mut group = Group::default();
        let mut send = |follows| {
            group.on_sent(|| 3, follows);
            group.is_over()
        };
        assert_eq!([send(true), send(true), send(true)], [false, false, true]);
        assert_eq!([send(true), send(false)], [false, true]);
        assert!(!send(false), "a segment that leaves alone is no group");
        assert!(!send(true));
        group.on_retransmitted();
        assert!(!group.is_over());
        group.on_sent(|| 2, true);
        assert!(!group.is_over(), "it began another group");
    }

    #[test]
    fn the_size_follows_the_rate_and_the_burst_of_the_controller() {
        let config = Config {
            mss: 1_000,
            timestamps: false,
            ..Config::default()
        };
        let size_of = |window: u64, ssthresh: Option<u64>, pacing| {
            let decision = Decision {
                ssthresh: ssthresh.map(DataSize::new),
                pacing,
                ..Decision::default()
            };
            size(&decision, window, Some(Span::from_millis(10)), &config)
        };
        let unpaced = |window, ssthresh| size_of(window, ssthresh, Pacing::Unpaced);
        // 1.2 · 100 kB / 10 ms = 12 MB/s: 11,718 bytes in 1/1024 s.
        assert_eq!(unpaced(100_000, None), 11);
        assert_eq!(unpaced(100_000, Some(200_000)), 11);
        // Below half of the threshold twice the window: 20 MB/s.
        assert_eq!(unpaced(100_000, Some(200_002)), 19);
        assert_eq!(unpaced(10_000, None), 2, "two at least");
        assert_eq!(unpaced(3_000, None), 1, "half the window");
        assert_eq!(unpaced(10_000_000, None), 65);
        let bursts = Pacing::Bursts {
            rate: Rate::MAX,
            size: DataSize::new(5 * 1_040),
        };
        assert_eq!(size_of(100_000, None, bursts), 5);
    }
}
