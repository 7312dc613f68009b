//! The congestion controller of a path: its inputs, its decision, and the departures that follow
//! from it.

use alloc::boxed::Box;

use comity_congestion::{
    Ack, Arrived, Controller, Decision, Event, Feedback, InOrderAck, Loss, LossCause, Needs, Pacer,
    Pacing, PacketLoss, Phase, Sent, Tag, Timeout,
};
use comity_units::{DataSize, PacketNumber, Rate, Span, Time, TwoWindows};

use super::bucket_pace::{BucketPace, PacingGain};
use super::episode::{Episode, Progress};
use crate::timeline::Tokens;
use crate::wire::Stamp;

/// The sampling period of RFC 7661: several round trips, and at least a second.
const PEAK_MEMORY: Span = Span::from_secs(1);

/// The gain of a paced window, which must leave before the acknowledgements of its round trip.
const PACING_GAIN: f64 = 1.25;
/// The gain in slow start, in which the window doubles every round trip.
const SLOW_START_GAIN: f64 = 2.0;

/// A controller, its last decision, and the pacer and token bucket that apply it.
///
/// The decision changes only in [`Congestion::obey`]. A group of events changes it once, at the end
/// of the group. The comment of each `on_` method says whether it changes the decision.
#[derive(Debug)]
pub(super) struct Congestion {
    controller: Box<dyn Controller>,
    decision: Decision,
    /// Whether to spread windows over the round-trip time if the controller does not pace.
    paces_windows: bool,
    pacer: Pacer,
    bucket: BucketPace,
    episode: Episode,
    /// The maximum in flight during the last one to two seconds. The application need not have used
    /// it continuously to prove that the path carries it (`pipeACK` of RFC 7661, section 4.2).
    peak: TwoWindows<u64>,
    /// The number of the next packet when the window, or the pacer of a controller without one,
    /// last held data back.
    limited_before: Option<PacketNumber>,
    /// The last arrival that the peer reported, on its clock.
    arrived_at: Option<Time>,
}

/// A token bucket as set by the controller ([`Pacing::Bucket`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    pub(super) rate: Rate,
    pub(super) peak: Rate,
    pub(super) depth: DataSize,
    pub(super) fair: Rate,
    pub(super) proven: Rate,
}

/// Losses or marks that were detected together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signal {
    /// The departure time of the newest of these packets.
    pub(super) sent_at: Time,
    /// The lost payload.
    pub(super) lost: u64,
    /// The payload in flight before.
    pub(super) in_flight: u64,
    pub(super) cause: LossCause,
}

impl Congestion {
    pub(super) fn new(controller: Box<dyn Controller>, paces_windows: bool) -> Self {
        Self {
            decision: controller.decision(),
            controller,
            paces_windows,
            pacer: Pacer::default(),
            bucket: BucketPace::default(),
            episode: Episode::default(),
            peak: TwoWindows::default(),
            limited_before: None,
            arrived_at: None,
        }
    }

    /// The path has changed: measurements of the old path are invalid. `last_tag` is the last tag
    /// that left.
    pub(super) fn on_new_path(
        &mut self,
        now: Time,
        mut controller: Box<dyn Controller>,
        last_tag: Tag,
    ) {
        controller.on_event(Event::PathChange(last_tag));
        *self = Self::new(controller, self.paces_windows);
        self.episode = Episode::from(now);
    }

    /// Applies the controller's decision.
    pub(super) fn obey(&mut self) {
        self.decision = self.controller.decision();
    }

    // ---------------------------------------------------------------- what it decided

    /// The signals that the controller needs.
    pub(super) fn needs(&self) -> Needs {
        self.controller.needs()
    }

    /// The capacity of the bottleneck, if the controller knows or estimates it.
    pub(super) fn capacity(&self) -> Option<Rate> {
        self.controller.capacity()
    }

    /// [`DataSize::MAX`] while only the pacing limits the flow.
    pub(super) const fn window(&self) -> DataSize {
        self.decision.window
    }

    /// The target bitrate that the controller sets itself. `None` if it follows from the window or
    /// the pacing rate.
    pub(super) const fn target(&self) -> Option<Rate> {
        self.decision.target
    }

    pub(super) const fn ssthresh(&self) -> Option<DataSize> {
        self.decision.ssthresh
    }

    pub(super) const fn phase(&self) -> Phase {
        self.decision.phase
    }

    pub(super) fn is_slow_start(&self) -> bool {
        self.decision.phase == Phase::SlowStart
    }

    /// When [`Congestion::on_timer`] is next due.
    pub(super) fn next_timer(&self) -> Time {
        self.decision.wakeup.unwrap_or(Time::MAX)
    }

    /// When the probe timer expires that is due at `at`: not before the controller's own timeout.
    pub(super) fn probe_at(&self, at: Time) -> Time {
        self.decision
            .no_feedback_deadline
            .map_or(at, |deadline| at.max(deadline))
    }

    /// Whether the window has room for another packet of `size` bytes.
    pub(super) const fn has_window(&self, in_flight: u64, size: u64) -> bool {
        in_flight == 0 || in_flight.saturating_add(size) <= self.decision.window.get()
    }

    /// Whether the controller sets when each packet leaves.
    pub(super) const fn times_departures(&self) -> bool {
        matches!(self.decision.pacing, Pacing::Gap(_) | Pacing::At(_))
    }

    /// Whether the controller itself paces.
    pub(super) fn is_paced(&self) -> bool {
        self.decision.pacing != Pacing::Unpaced
    }

    /// The pacing: that of the controller, or its window over the round-trip time `rtt`.
    pub(super) fn pacing(&self, rtt: Option<Span>) -> Pacing {
        match (self.decision.pacing, rtt) {
            (Pacing::Unpaced, Some(rtt))
                if self.paces_windows && self.decision.window != DataSize::MAX =>
            {
                let gain = match self.is_slow_start() {
                    true => SLOW_START_GAIN,
                    false => PACING_GAIN,
                };
                Pacing::Rate(Rate::of(self.decision.window, rtt).mul_f64(gain))
            }
            // The rates may have changed since the pace was set, or no pace is set yet.
            (Pacing::Bucket { rate, peak, .. }, _) => Pacing::Rate(self.bucket.pace(rate, peak)),
            // Packets leave one by one. The quantum bounds the burst after a late timer.
            (Pacing::Bursts { rate, .. }, _) => Pacing::Rate(rate),
            (pacing, _) => pacing,
        }
    }

    /// The mean pacing rate, if packets are paced. `packet` is the wire size of a full packet.
    pub(super) fn pacing_rate(&self, rtt: Option<Span>, packet: DataSize) -> Option<Rate> {
        if let Some(bucket) = self.bucket() {
            return Some(bucket.rate);
        }
        match self.pacing(rtt) {
            Pacing::Rate(rate) => Some(rate),
            Pacing::Gap(gap) => Some(Rate::of(packet, gap)),
            _ => None,
        }
    }

    /// When the pacer releases the next packet.
    pub(super) fn released_at(&self, rtt: Option<Span>) -> Time {
        self.pacer.release_at(self.pacing(rtt))
    }

    // ---------------------------------------------------------------- its token bucket

    /// The token bucket, for controllers with one.
    pub(super) const fn bucket(&self) -> Option<Bucket> {
        match self.decision.pacing {
            Pacing::Bucket {
                rate,
                peak,
                depth,
                fair,
                proven,
            } => Some(Bucket {
                rate,
                peak,
                depth,
                fair,
                proven,
            }),
            _ => None,
        }
    }

    /// The tokens in the bucket.
    pub(super) fn tokens(&self) -> Option<Tokens> {
        self.bucket().map(|bucket| self.bucket.tokens(bucket.depth))
    }

    /// When the bucket will contain `missing` more tokens.
    pub(super) fn filled_by(&self, bucket: &Bucket, missing: DataSize) -> Time {
        self.bucket.filled_by(bucket.rate, missing)
    }

    /// Fills the bucket up to now.
    pub(super) fn fill(&mut self, now: Time) {
        self.bucket.fill(now, self.decision.pacing);
    }

    /// The queue has changed, so the pace of its bursts is out of date.
    pub(super) const fn on_queue_changed(&mut self) {
        self.bucket.on_queue_changed();
    }

    /// Whether the pace of bursts must be computed again.
    pub(super) fn needs_pace(&self, now: Time) -> bool {
        self.bucket().is_some() && self.bucket.is_stale(now)
    }

    /// Sets the pace of bursts from the rate that the queue needs.
    pub(super) fn set_pace(&mut self, now: Time, needed: Rate, gain: PacingGain) {
        if let Some(Bucket { rate, peak, .. }) = self.bucket() {
            self.bucket.set_pace(now, needed, gain, rate, peak);
        }
    }

    // ---------------------------------------------------------------- departures

    /// Data wait to be sent. Records whether the controller holds them back: `has_window` says
    /// whether the window has room, and `is_held` whether the pacer or the token bucket holds the
    /// packet `next` back.
    pub(super) fn on_attempt(&mut self, next: PacketNumber, has_window: bool, is_held: bool) {
        // A pacer that spreads the window imposes no limit of its own. A pacer of a controller
        // without a window does.
        let is_unlimited = self.decision.window == DataSize::MAX;
        let has_calendar = is_unlimited || matches!(self.decision.pacing, Pacing::At(_));
        if (!has_window && !is_unlimited) || (is_held && has_calendar) {
            self.limited_before = Some(next);
        }
    }

    /// Whether the flow sent less than the controller allowed when the packet `least` and later
    /// packets left.
    pub(super) fn was_app_limited(&self, least: Option<PacketNumber>) -> bool {
        match (self.limited_before, least) {
            (Some(limited_before), Some(least)) => least >= limited_before,
            _ => true,
        }
    }

    /// `in_flight` bytes are in flight now.
    pub(super) fn on_flight(&mut self, now: Time, in_flight: u64) {
        self.peak.raise(now, PEAK_MEMORY, in_flight);
    }

    /// An ACK-eliciting packet leaves. `packet` is the wire size of a full packet.
    pub(super) fn on_sent(&mut self, sent: &Sent, rtt: Option<Span>, packet: DataSize) {
        let pacing = self.pacing(rtt);
        let quantum = quantum(pacing, packet);
        self.pacer
            .on_sent(sent.now, sent.wire, pacing, Rate::MAX, quantum);
        self.bucket.charge(sent.payload);
        self.controller.on_event(Event::Sent(sent));
        self.obey();
    }

    /// The application has no more data to send. Changes no decision.
    pub(super) fn on_app_limited(&mut self) {
        self.controller.on_event(Event::AppLimited);
    }

    /// The tag of the next packet with data, for the receiver's half of the controller.
    pub(super) fn tag(&mut self, now: Time) -> Tag {
        self.controller.tag(now)
    }

    /// A tag of the same length as the next one.
    pub(super) fn upcoming_tag(&self) -> Tag {
        self.controller.upcoming_tag()
    }

    // ---------------------------------------------------------------- answers

    /// The receiver's half of the controller reported.
    pub(super) fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.controller.on_event(Event::Feedback(feedback));
        self.obey();
    }

    /// Packets with these departure times arrived after they had been declared lost. The controller
    /// undoes its reaction if all losses of the episode were spurious.
    pub(super) fn on_late(&mut self, now: Time, sent_at: &[Time]) {
        if self.episode.on_late(sent_at) {
            self.controller.on_event(Event::SpuriousLoss { now });
            self.obey();
        }
    }

    /// The departure time of the newest packet acknowledged so far.
    pub(super) const fn acknowledged_sent_at(&self) -> Time {
        self.episode.acknowledged_sent_at()
    }

    /// The newest packet of an acknowledgement left at `sent_at`. Returns the departure time of the
    /// newest packet acknowledged before it.
    pub(super) fn on_acknowledged(&mut self, sent_at: Time) -> Time {
        self.episode.on_acknowledged(sent_at)
    }

    /// The time of arrival with this stamp of the peer's clock, which wraps.
    pub(super) fn arrival(&mut self, stamp: Stamp) -> Arrived {
        let at = self
            .arrived_at
            .and_then(|last| stamp.near(last))
            .unwrap_or(Time::from_micros(stamp.as_micros().into()));
        self.arrived_at = Some(at);
        Arrived {
            at,
            tick: Span::from_micros(1),
        }
    }

    /// An acknowledgement names these packets, and the arrival of the packet with the largest
    /// number. Changes no decision before the events that follow.
    pub(super) fn on_packets_acked(
        &mut self,
        now: Time,
        numbers: &[PacketNumber],
        (largest, arrived): (PacketNumber, Arrived),
    ) {
        for &number in numbers {
            self.controller.on_event(Event::PacketAcked {
                now,
                number,
                arrived_at: (number == largest).then_some(arrived),
            });
        }
    }

    /// A packet was acknowledged at once and in order. Changes no decision before
    /// [`Congestion::on_ack`].
    pub(super) fn on_in_order_ack(&mut self, ack: &InOrderAck) {
        if self.needs().in_order_acks {
            self.controller.on_event(Event::InOrderAck(ack));
        }
    }

    /// The newest packet of an acknowledgement left at `sent_at`. Ends the recovery if this was
    /// after the last reaction. Returns whether the recovery continues. Changes no decision before
    /// [`Congestion::on_ack`].
    pub(super) fn on_progress(&mut self, sent_at: Time) -> bool {
        let progress = self.episode.on_progress(sent_at);
        if progress == Progress::Recovered {
            self.controller.on_event(Event::Recovered);
        }
        progress == Progress::Repairing
    }

    /// Packets were acknowledged.
    pub(super) fn on_ack(&mut self, ack: &Ack) {
        self.controller.on_event(Event::Ack(ack));
        self.obey();
    }

    /// The controller's own timer may have expired.
    pub(super) fn on_timer(&mut self, now: Time) {
        if self.next_timer() <= now {
            self.controller.on_event(Event::Wakeup(now));
            self.obey();
        }
    }

    // ---------------------------------------------------------------- losses

    /// Packets were lost, inside or outside of an episode. Changes no decision by itself.
    pub(super) fn on_packets_lost(&mut self, now: Time, losses: &[PacketLoss]) {
        if self.needs().rate_samples {
            for loss in losses {
                self.controller.on_event(Event::PacketLost { now, loss });
            }
        }
    }

    /// The path lost or marked packets. Returns whether this begins an episode. The controller gets
    /// each episode as one loss.
    ///
    /// The maximum in flight of the last seconds counts as in flight. Otherwise a loss in a pause
    /// would cut the window of a bursty application to almost nothing (RFC 7661, section 4.4).
    pub(super) fn on_signal(&mut self, now: Time, signal: &Signal) -> bool {
        if !self.episode.is_over_for(signal.sent_at) {
            return false;
        }
        let window = self.decision.window;
        let proved = DataSize::new(self.peak.most()).min(window);
        self.episode.begin(now);
        self.controller.on_event(Event::Loss(&Loss {
            now,
            sent_at: signal.sent_at,
            lost: DataSize::new(signal.lost),
            in_flight: DataSize::new(signal.in_flight).max(proved),
            window,
            cause: signal.cause,
            restart: false,
        }));
        self.obey();
        true
    }

    /// Packets with these departure times were lost. Called after [`Congestion::on_signal`] for
    /// them.
    pub(super) fn on_lost(&mut self, sent_at: &[Time]) {
        self.episode.on_lost(sent_at);
    }

    /// Whether any packet was lost or marked on this path.
    pub(super) const fn has_lost(&self) -> bool {
        self.episode.has_begun()
    }

    /// The path carried nothing for so long that its measurements are out of date (RFC 9002,
    /// section 7.6).
    pub(super) fn on_persistent_congestion(&mut self, now: Time, in_flight: u64) {
        self.controller.on_event(Event::Timeout(&Timeout {
            now,
            in_flight: DataSize::new(in_flight),
            window: self.decision.window,
            consecutive: 1,
            duplicate_seen: false,
        }));
        self.obey();
    }
}

/// The burst that may leave at once after a pause: one packet, plus the packets that the pacer
/// releases in a millisecond, and at least one of these. A timer may be late by a millisecond.
fn quantum(pacing: Pacing, packet: DataSize) -> DataSize {
    match pacing {
        Pacing::Rate(rate) => packet + rate.amount_in(Span::from_millis(1)).max(packet),
        _ => packet * 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(1);
    const RTT: Span = Span::from_millis(100);
    const PACKET: DataSize = DataSize::new(1_000);

    /// Counts events in its window, and stores the bytes in flight at the last loss as its
    /// slow-start threshold.
    #[derive(Debug)]
    struct Counter(Decision);

    impl Controller for Counter {
        fn on_event(&mut self, event: Event<'_>) {
            self.0.window = DataSize::new(self.0.window.get().saturating_add(1));
            if let Event::Loss(loss) = event {
                self.0.ssthresh = Some(loss.in_flight);
            }
        }

        fn decision(&self) -> Decision {
            self.0
        }
    }

    fn congestion(window: u64, pacing: Pacing) -> Congestion {
        let decision = Decision {
            window: DataSize::new(window),
            pacing,
            ..Decision::default()
        };
        Congestion::new(Box::new(Counter(decision)), true)
    }

    fn signal(sent_at: Time, in_flight: u64) -> Signal {
        Signal {
            sent_at,
            lost: 1_000,
            in_flight,
            cause: LossCause::Reordering,
        }
    }

    #[test]
    fn a_decision_holds_until_the_last_event_of_a_group() {
        let mut congestion = congestion(10_000, Pacing::Unpaced);
        let numbers = [PacketNumber::ZERO, PacketNumber::new(1)];
        let arrived = congestion.arrival(Stamp::of(NOW));
        congestion.on_packets_acked(NOW, &numbers, (numbers[1], arrived));
        congestion.on_app_limited();
        assert_eq!(congestion.window(), DataSize::new(10_000));
        congestion.obey();
        assert_eq!(congestion.window(), DataSize::new(10_003));
    }

    #[test]
    fn the_clock_of_the_peer_runs_on_where_its_stamps_wrap() {
        let mut congestion = congestion(10_000, Pacing::Unpaced);
        let wrap = 1 << 32;
        for micros in [
            wrap - 7_000,
            wrap - 1,
            wrap + 3,
            wrap - 2,
            wrap + 2_000_000_000,
        ] {
            let at = congestion.arrival(Stamp::of(Time::from_micros(micros))).at;
            assert_eq!(at, Time::from_micros(micros));
        }
    }

    #[test]
    fn a_window_is_spread_over_the_round_trip() {
        let congestion = congestion(10_000, Pacing::Unpaced);
        assert_eq!(congestion.pacing(None), Pacing::Unpaced);
        // 10 kB in 100 ms, times two in slow start.
        let rate = Rate::from_kbps(1_600);
        assert_eq!(congestion.pacing(Some(RTT)), Pacing::Rate(rate));
        assert_eq!(congestion.pacing_rate(Some(RTT), PACKET), Some(rate));
        assert!(!congestion.is_paced());
    }

    #[test]
    fn the_window_admits_whole_packets_and_at_least_one() {
        let congestion = congestion(2_000, Pacing::Unpaced);
        assert!(congestion.has_window(1_000, 1_000));
        assert!(!congestion.has_window(1_001, 1_000));
        assert!(congestion.has_window(0, 3_000));
    }

    #[test]
    fn a_loss_in_a_pause_counts_what_was_in_flight_before() {
        let mut congestion = congestion(10_000, Pacing::Unpaced);
        congestion.on_flight(NOW, 8_000);
        congestion.on_flight(NOW, 1_000);
        assert!(congestion.on_signal(NOW, &signal(NOW, 1_000)));
        assert_eq!(congestion.ssthresh(), Some(DataSize::new(8_000)));
        // A packet that left before the reaction is no new signal.
        assert!(!congestion.on_signal(NOW + RTT, &signal(NOW, 9_000)));
        assert_eq!(congestion.ssthresh(), Some(DataSize::new(8_000)));
        // The maximum in flight is forgotten after two seconds.
        let later = NOW + Span::from_secs(3);
        congestion.on_flight(later, 500);
        assert!(congestion.on_signal(later, &signal(later, 700)));
        assert_eq!(congestion.ssthresh(), Some(DataSize::new(700)));
    }

    #[test]
    fn a_flow_is_limited_only_if_the_controller_holds_it_back() {
        let (first, later) = (PacketNumber::new(7), PacketNumber::new(9));
        let mut windowed = congestion(10_000, Pacing::Unpaced);
        windowed.on_attempt(first, true, true);
        assert!(windowed.was_app_limited(Some(PacketNumber::ZERO)), "spread");
        windowed.on_attempt(later, false, false);
        assert!(!windowed.was_app_limited(Some(first)));
        assert!(windowed.was_app_limited(Some(later)));

        let mut paced = congestion(u64::MAX, Pacing::Rate(Rate::from_mbps(1)));
        paced.on_attempt(later, true, true);
        assert!(!paced.was_app_limited(Some(first)));
    }

    #[test]
    fn the_pacer_keeps_packets_apart() {
        let mut congestion = congestion(u64::MAX, Pacing::Rate(Rate::from_mbps(8)));
        assert_eq!(congestion.released_at(None), Time::ZERO);
        congestion.on_sent(
            &Sent {
                now: NOW,
                payload: DataSize::new(950),
                wire: PACKET,
                number: PacketNumber::ZERO,
                in_flight: DataSize::new(950),
                app_limited: false,
            },
            None,
            PACKET,
        );
        assert_eq!(congestion.released_at(None), NOW + Span::from_millis(1));
    }

    #[test]
    fn a_new_path_resets_the_state() {
        let mut congestion = congestion(10_000, Pacing::Unpaced);
        congestion.on_flight(NOW, 8_000);
        congestion.on_attempt(PacketNumber::new(5), false, false);
        congestion.on_signal(NOW, &signal(NOW, 1_000));
        let controller = Box::new(Counter(Decision::default()));
        congestion.on_new_path(NOW + RTT, controller, Tag::None);
        assert!(!congestion.has_lost());
        assert!(congestion.was_app_limited(Some(PacketNumber::ZERO)));
        assert_eq!(congestion.acknowledged_sent_at(), NOW + RTT);
        assert!(congestion.on_signal(NOW + RTT, &signal(NOW, 1_000)));
        assert_eq!(congestion.ssthresh(), Some(DataSize::new(1_000)));
    }
}
