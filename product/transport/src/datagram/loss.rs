//! Loss detection and the probe timeout (RFC 9002).

use comity_congestion::{RttConfig, RttEstimator};
use comity_units::{Span, Time, TwoWindows};

/// The timers of loss detection (RFC 9002, section 6), and the observed reordering of the path.
///
/// ```text
/// lost        largest acknowledged − number ≥ threshold, or
///             sent before now − max( 9/8 · max(srtt, latest), patience ), and a later packet is acknowledged
/// patience    9/8 of the longest recent round trip of a packet that had been declared lost, at most 2 · srtt
/// probe       last sent + max( min( (srtt + max(4 · variation, 1 ms)) · 2^count, 2 s ), 5/4 · srtt )
///             + the peer's acknowledgement delay
/// ```
///
/// Differs from RFC 9002 in: 1. the packet threshold grows with the observed reordering, up to
/// [`MAX_THRESHOLD`], and so does the time threshold, which RACK (RFC 8985, section 6.2) also lets
/// grow by up to a second round trip; 2. one probe for each expiry, not two; 3. the first
/// [`STEADY_PROBES`] probes of a connection that finishes do not back off. It has nothing new to
/// send, and its application waits for the end. RFC 8085, section 3.1.3, allows every sender a
/// small packet in each round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossDetection {
    rtt: RttEstimator,
    config: RttConfig,
    /// The peer's largest acknowledgement delay.
    ack_delay: Span,
    threshold: u64,
    /// The longest round-trip time of packets that had been declared lost and arrived, within the
    /// current window of [`LATENESS_MEMORY`] and the previous one.
    lateness: TwoWindows<Span>,
    /// When the next packet is declared lost by time.
    pub(super) due_at: Time,
    /// When the last ACK-eliciting packet left; [`Time::MAX`] if none is in flight.
    last_sent_at: Time,
    /// Consecutive expiries of the probe timer.
    pub(super) expiries: u32,
    /// Whether the connection has no new data to send any more.
    is_finishing: bool,
}

impl LossDetection {
    pub(super) fn new(ack_delay: Span) -> Self {
        let config = RttConfig {
            initial_timeout: Span::from_millis(500),
            min_timeout: Span::from_millis(2),
            max_timeout: Span::from_secs(2),
            ..RttConfig::RFC6298
        };
        Self {
            rtt: RttEstimator::new(&config),
            config,
            ack_delay,
            threshold: MIN_THRESHOLD,
            lateness: TwoWindows::default(),
            due_at: Time::MAX,
            last_sent_at: Time::MAX,
            expiries: 0,
            is_finishing: false,
        }
    }

    /// No new data follows: ends the back-off.
    pub(super) fn finish(&mut self) {
        self.is_finishing = true;
        self.rtt.end_backoff();
    }

    pub(super) const fn is_finishing(&self) -> bool {
        self.is_finishing
    }

    pub(super) const fn threshold(&self) -> u64 {
        self.threshold
    }

    pub(super) fn smoothed(&self) -> Option<Span> {
        self.rtt.smoothed(&self.config)
    }

    pub(super) fn variation(&self) -> Span {
        self.rtt.variation(&self.config)
    }

    pub(super) fn latest(&self) -> Option<Span> {
        self.rtt.latest()
    }

    pub(super) fn min(&self) -> Option<Span> {
        self.rtt.min()
    }

    /// The largest newly acknowledged packet left at `sent_at`. The peer reports that it
    /// acknowledged the packet `delay` after its arrival. Returns the sample.
    pub(super) fn on_sample(&mut self, sent_at: Time, now: Time, delay: Span) -> Span {
        // A false delay cannot make the path appear shorter than it ever was. RFC 9002, section
        // 5.3, would use such a sample with the delay included. An end that only receives has few
        // samples without a delay, so its estimate would stay too high.
        let delay = delay.min(self.ack_delay);
        let raw = now.saturating_since(sent_at);
        let adjusted = match self.rtt.min() {
            Some(least) => raw.saturating_sub(delay).max(least.min(raw)),
            None => raw,
        };
        let begin = Time::from_nanos(now.as_nanos().saturating_sub(adjusted.as_nanos()));
        self.rtt.on_sample(&self.config, begin, now);
        self.lateness.turn(now, LATENESS_MEMORY);
        adjusted
    }

    /// An ACK-eliciting packet left.
    pub(super) fn on_sent(&mut self, now: Time) {
        self.last_sent_at = now;
    }

    /// A packet was newly acknowledged; `in_flight` says whether other packets are in flight.
    pub(super) fn on_progress(&mut self, in_flight: bool) {
        self.expiries = 0;
        self.rtt.end_backoff();
        if !in_flight {
            self.last_sent_at = Time::MAX;
        }
    }

    /// A packet that had been declared lost arrived after `packets` later packets. It had left at
    /// `sent_at`.
    pub(super) fn on_reordering(&mut self, now: Time, packets: u64, sent_at: Time) {
        self.threshold = self.threshold.max(packets + 1).min(MAX_THRESHOLD);
        let late = now.saturating_since(sent_at);
        self.lateness.raise(now, LATENESS_MEMORY, late);
    }

    /// The time threshold for a packet when a later one is acknowledged.
    pub(super) fn delay(&self) -> Span {
        let rtt = match (self.smoothed(), self.latest()) {
            (Some(smoothed), Some(latest)) => smoothed.max(latest),
            _ => self.config.initial_timeout,
        };
        let late = self.lateness.most();
        let patience = (late + late / 8).min(self.smoothed().unwrap_or(rtt) * 2);
        (rtt + rtt / 8).max(patience).max(Span::from_millis(1))
    }

    /// The probe timeout without back-off, the unit of "three probe timeouts".
    pub(super) fn base_timeout(&self) -> Span {
        let mut rtt = self.rtt;
        rtt.end_backoff();
        rtt.timeout(&self.config) + self.ack_delay
    }

    /// How long to remember lost packets, which may still arrive: three probe timeouts. Of the
    /// peer's acknowledgement delay, at most [`MAX_REMEMBERED_DELAY`] counts.
    pub(super) fn memory(&self) -> Span {
        let delay = self.ack_delay.min(MAX_REMEMBERED_DELAY);
        (self.base_timeout().saturating_sub(self.ack_delay) + delay) * 3
    }

    /// When the probe timer expires.
    pub(super) fn probe_at(&self) -> Time {
        if self.last_sent_at.is_never() {
            return Time::MAX;
        }
        self.last_sent_at + self.timeout() + self.ack_delay
    }

    /// The timeout with back-off, up to the maximum. It is never below a round trip, since no
    /// acknowledgement can arrive earlier.
    fn timeout(&self) -> Span {
        let least = self.smoothed().map_or(Span::ZERO, |rtt| rtt + rtt / 4);
        self.rtt.timeout(&self.config).max(least)
    }

    /// The probe timer expired.
    pub(super) fn on_probe(&mut self, now: Time) {
        self.expiries += 1;
        if !self.is_finishing || self.expiries > STEADY_PROBES {
            self.rtt.back_off(&self.config);
        }
        self.last_sent_at = now;
    }

    /// The path has changed: all measurements are invalid.
    pub(super) fn on_new_path(&mut self) {
        self.rtt = RttEstimator::new(&self.config);
        self.threshold = MIN_THRESHOLD;
        self.lateness = TwoWindows::default();
        self.expiries = 0;
    }
}

/// `kPacketThreshold` of RFC 9002: three later packets, as three duplicate acknowledgements in TCP.
pub(super) const MIN_THRESHOLD: u64 = 3;

/// The maximum part of the peer's acknowledgement delay for which lost packets are remembered.
const MAX_REMEMBERED_DELAY: Span = Span::from_secs(1);

/// The number of consecutive probes that do not back off when a connection finishes.
pub(super) const STEADY_PROBES: u32 = 8;

/// After this time without reordering, or at most twice this time, the path counts as one that does
/// not reorder packets.
pub(super) const LATENESS_MEMORY: Span = Span::from_secs(10);

/// The maximum packet threshold. Beyond it, late repairs cost more than unnecessary repairs.
pub(super) const MAX_THRESHOLD: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_probes_while_finishing_do_not_back_off() {
        let mut loss = LossDetection::new(Span::from_millis(10));
        loss.on_sample(Time::ZERO, Time::from_millis(100), Span::ZERO);
        loss.on_sent(Time::from_millis(100));
        loss.on_probe(loss.probe_at());
        loss.finish();
        let mut spans = alloc::vec::Vec::new();
        let mut before = loss.probe_at();
        for _ in 0..=STEADY_PROBES {
            loss.on_probe(before);
            spans.push(loss.probe_at().saturating_since(before).as_millis());
            before = loss.probe_at();
        }
        // srtt + 4 · variation + the delay of an acknowledgement; finally, twice the first part.
        assert_eq!(
            spans,
            [310, 310, 310, 310, 310, 310, 310, 610, 610 * 2 - 10]
        );
    }

    #[test]
    fn the_probe_timer_by_hand() {
        let mut loss = LossDetection::new(Span::from_millis(10));
        assert_eq!(loss.probe_at(), Time::MAX);
        loss.on_sent(Time::from_millis(100));
        assert_eq!(
            loss.probe_at(),
            Time::from_millis(610),
            "500 + 10 ms before any sample"
        );
        // srtt = 40 ms, variation = 20 ms: 40 + 4 · 20 + 10 = 130 ms.
        loss.on_sample(Time::from_millis(100), Time::from_millis(140), Span::ZERO);
        loss.on_progress(true);
        assert_eq!(loss.probe_at(), Time::from_millis(230));
        assert_eq!(loss.delay(), Span::from_millis(45));
        loss.on_probe(Time::from_millis(230));
        assert_eq!(loss.probe_at(), Time::from_millis(230 + 240 + 10));
        assert_eq!(loss.base_timeout(), Span::from_millis(130));
        loss.on_progress(false);
        assert_eq!(loss.probe_at(), Time::MAX);
    }

    #[test]
    fn the_timeout_is_never_below_a_round_trip() {
        let mut loss = LossDetection::new(Span::ZERO);
        for round in 0..50 {
            let sent_at = Time::from_secs(round * 10);
            loss.on_sample(sent_at, sent_at + Span::from_secs(3), Span::ZERO);
        }
        loss.on_sent(Time::from_secs(600));
        let timeout = loss.probe_at().saturating_since(Time::from_secs(600));
        assert_eq!(timeout, Span::from_millis(3_750));
    }

    #[test]
    fn the_peers_delay_is_subtracted_down_to_the_minimum_round_trip() {
        let mut loss = LossDetection::new(Span::from_millis(10));
        let sample = |loss: &mut LossDetection, rtt, delay| {
            let now = Time::from_secs(1);
            let sent_at = now.saturating_sub(Span::from_millis(rtt));
            loss.on_sample(sent_at, now, Span::from_millis(delay))
                .as_millis()
        };
        assert_eq!(
            sample(&mut loss, 40, 5),
            40,
            "the first sample is taken whole"
        );
        assert_eq!(sample(&mut loss, 48, 5), 43);
        assert_eq!(
            sample(&mut loss, 42, 5),
            40,
            "37 ms would be less than ever seen"
        );
        assert_eq!(sample(&mut loss, 30, 5), 30, "a shorter round trip");
        assert_eq!(
            sample(&mut loss, 90, 60),
            80,
            "no more than the agreed delay"
        );
    }

    #[test]
    fn reordering_raises_the_threshold() {
        let mut loss = LossDetection::new(Span::ZERO);
        let now = Time::from_secs(1);
        loss.on_reordering(now, 1, now);
        assert_eq!(loss.threshold(), 3);
        loss.on_reordering(now, 9, now);
        assert_eq!(loss.threshold(), 10);
        loss.on_reordering(now, 1_000, now);
        assert_eq!(loss.threshold(), MAX_THRESHOLD);
    }

    #[test]
    fn late_packets_raise_the_time_threshold_for_a_while() {
        let mut loss = LossDetection::new(Span::ZERO);
        let sample = |loss: &mut LossDetection, now: Time| {
            loss.on_sample(now.saturating_sub(Span::from_millis(40)), now, Span::ZERO);
        };
        sample(&mut loss, Time::from_secs(1));
        assert_eq!(loss.delay(), Span::from_millis(45));
        // It was declared lost after 45 ms and arrived after 56: 63 ms from now on.
        let late = Time::from_secs(2);
        loss.on_reordering(late, 1, late.saturating_sub(Span::from_millis(56)));
        assert_eq!(loss.delay(), Span::from_millis(63));
        // At most a second round trip.
        loss.on_reordering(late, 1, late.saturating_sub(Span::from_millis(700)));
        assert_eq!(loss.delay(), Span::from_millis(80));
        // A sample twenty seconds later ends it.
        sample(&mut loss, Time::from_secs(23));
        assert_eq!(loss.delay(), Span::from_millis(45));
    }
}
