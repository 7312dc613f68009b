//! Groups of segments that a host hands to its network interface at once.

use comity_congestion::Pacing;
use comity_units::Span;

use super::super::codec::data_header_length;
use super::super::config::Config;
use super::super::segment::IP_HEADER;
use super::stream::Stream;
use super::transfer::Transfer;

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
    /// The last segment ended a group of several.
    pub(super) is_over: bool,
}

/// The most bytes that a host hands over at once.
const MOST: u64 = 64 << 10;

impl Group {
    /// Ends the group: the next segment begins another.
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

    /// A segment left again.
    pub(super) const fn on_sent_again(&mut self) {
        self.length = 0;
        self.is_over = false;
    }
}

impl Transfer {
    /// How many segments leave as one.
    fn group_size(&self, config: &Config) -> u64 {
        let mss = u64::from(config.mss);
        let decision = self.controller.decision();
        let bytes = match decision.pacing {
            Pacing::Bursts { size, .. } => {
                let header =
                    IP_HEADER as usize + data_header_length(config.timestamps, false, false);
                size.get() / (mss + header as u64) * mss
            }
            _ => {
                let is_far = |threshold: u64| self.window < threshold / 2;
                let is_fast = decision
                    .ssthresh
                    .is_some_and(|ssthresh| is_far(ssthresh.get()));
                let tenths = if is_fast { 20 } else { 12 };
                let smoothed = self
                    .clock
                    .rtt
                    .smoothed(&config.rtt)
                    .unwrap_or(Span::from_millis(1));
                let nanos = u128::from(smoothed.as_nanos().max(1));
                let rate = u128::from(self.window) * tenths * 100_000_000 / nanos;
                u64::try_from(rate >> 10).unwrap_or(u64::MAX).max(2 * mss)
            }
        };
        (bytes.min(MOST).min(self.window / 2) / mss).max(1)
    }

    /// Records that a segment left, new or retransmitted.
    pub(super) fn note_group(&mut self, stream: &Stream, is_new: bool, config: &Config) {
        let Some(flight) = self.flight.as_ref().filter(|_| config.segmentation_offload) else {
            return;
        };
        if !is_new {
            self.group.on_sent_again();
            return;
        }
        let mss = u64::from(config.mss);
        let follows = flight.pipe(stream.in_flight()) + mss <= flight.window(self.window)
            && stream.max < stream.stream_end();
        let mut group = core::mem::take(&mut self.group);
        group.on_sent(|| self.group_size(config), follows);
        self.group = group;
    }
}
