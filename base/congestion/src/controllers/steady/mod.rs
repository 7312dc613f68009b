//! A controller for media: TCP's average rate, with a token bucket for bursts.

mod aimd_window;
mod backoff_share;
mod cubic_share;
mod first_flight;
mod loss_classifier;
mod loss_ratio;
mod queue_monitor;
mod rate_dependence;
mod receive_rate;
mod tcp_emulation;

use comity_units::{DataSize, Rate, Span, Time};

use crate::equation::{loss_event_rate, throughput};
use crate::{
    Ack, Controller, Decision, Event, Loss, LossCause, LossIntervals, Needs, Pacing, Phase, Sent,
    Timeout,
};
use aimd_window::AimdWindow;
use backoff_share::BackoffShare;
use cubic_share::CubicShare;
use first_flight::FirstFlight;
use loss_classifier::LossClassifier;
use queue_monitor::QueueMonitor;
use receive_rate::ReceiveRate;
use tcp_emulation::{DECREASE, TcpEmulation};

/// The configuration of [`Steady`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyConfig {
    /// The payload of a full segment.
    pub mss: DataSize,
    /// The payload that a flow sends in its first round trip, which is assumed to be 100 ms until
    /// one is measured.
    pub initial_window: DataSize,
    /// The most that may be in flight.
    pub max_window: DataSize,
    /// The number of loss intervals in the mean.
    pub memory: usize,
    /// The peak rate of a burst, as a multiple of the share.
    pub peak: f64,
    /// The depth of the token bucket and its largest debt, as time at the share.
    pub depth: Span,
    /// A loss within this many round trips of the last counted loss event belongs to that event.
    pub grouping: f64,
    /// Below this loss ratio, losses that neither a queue nor the flow's own rate causes do not
    /// count.
    pub random_loss: f64,
}

/// Sends at the average rate of TCP under the same losses, taken over one to two seconds.
///
/// ```text
/// share     = min( max( 9/10 · max( X(p, srtt), f · emulated ), f · aimd ), validated, slow_start ),
///             at least one segment in a second, or in a round trip if that is longer
/// f         = 1 up to a mean ratio of 0.08 of bytes that congestion lost, 0 from 0.16 on
/// validated = max( 2 · maximum receive rate of the last seconds, initial window / srtt )
/// aimd      : an AIMD window over srtt, until `memory` loss intervals are known; at most
///             validated (`AimdWindow`)
/// emulated  : the average rate of TCP flows that react once to each congestion episode
///             (`TcpEmulation`)
/// slow_start: initial window / srtt, doubled each round trip; half of the share when no feedback
///             arrives for max( 4 · srtt, time of two packets, 100 ms ), and again after each such
///             time, but at least one segment in 200 ms or a round trip; two segments per srtt
///             after persistent congestion, and at least that once feedback arrives again
/// bucket    : filled at the share; holds ± max( depth · share, initial window ); sends bursts at up
///             to min( peak · share, validated ), without feedback at the share, and up to validated
///             while a young flow probes; the first flight leaves at once
/// window    = max( 2 · initial window + 4 · acknowledged bytes, rate of the first flight · srtt )
///             until a young flow has grown or has its first loss event, unlimited later;
///             acknowledged bytes since its start or its last silence
/// ```
///
/// `X` is [`throughput`], and `p` is the mean rate of loss events ([`LossIntervals`]).
///
/// A window that halves and grows again has the same average, but it cannot carry a stream of
/// nearly that rate on time. The frames of a video also differ in size by a factor of five: for a
/// moment a source needs more than its share, and less for the rest of the second. The bucket
/// balances that. The transport decides which sections may borrow tokens.
///
/// **Grouping.** A loss within `grouping` round trips of the last loss event belongs to that event.
/// For a flow that does not halve its rate, the queue stays full until its rivals have reacted, and
/// a CUBIC flow, which backs off by three tenths, leaves the queue nearly full. While the queue has
/// not drained by a quarter (`QueueMonitor`), the event lasts for half of the emulated window in
/// round trips, at most one second. That time shrinks with `f`, down to one round trip.
///
/// **Episodes of others.** A queue may fill to the level at which this flow lost packets, and then
/// recede by a quarter without a loss or a pause of this flow. Other flows have lost packets and
/// backed off, so this counts as a loss event too (`QueueMonitor`). It counts only for the part of
/// the flows that backed off (`BackoffShare`). It does not count if this flow hardly ever loses a
/// packet itself, because the queue is then on the reverse path.
///
/// **Unused rate.** Neither the AIMD window nor a loss interval grows beyond the rate in use. While
/// the TCP-friendly rate is at or above `validated`, arriving packets lengthen no interval.
/// Otherwise minutes of little data would outweigh the losses of the seconds after them.
///
/// **After a loss.** In the round trip after a loss, `validated` is the maximum receive rate
/// itself, because a full queue cannot take the tokens of some seconds.
///
/// **Heavy losses.** `emulated` and `aimd` are windows that grow with time. TCP that loses every
/// sixth packet depends on its retransmission timer, and such windows would keep a path overloaded
/// (congestion collapse, RFC 9743, section 5.1.1). The equation has that timer, so it alone counts.
///
/// **Young flows.** (`Young`, `FirstFlight`) While nothing queues, the bursts of a young flow may
/// grow by a factor of four in each round trip. Up to the rate of the first flight they may take
/// three such steps at once. The share itself doubles, as in TCP. After a silence a flow is young
/// again.
///
/// **Outages.** Losses in a time without any feedback do not count if no queue stood before and
/// after it: the path was interrupted, not overloaded. The flow still restarts with slow start, up
/// to its former rate. The no-feedback timer detects such a time, because the flow must slow down
/// before the first of its packets is known to be lost.
///
/// **Random losses.** A loss event does not count if neither a queue nor the flow's own rate causes
/// it (`LossClassifier`), below a loss ratio of `random_loss`. An ECN mark always counts.
///
/// Source: TFRC (RFC 5348) for the equation, the loss history and the no-feedback timer. Differs
/// from it in: 1. the sender keeps the loss history, from acknowledgements; 2. the share is an
/// average with a token bucket, not a limit at each instant; 3. random losses do not count; 4. the
/// minimum is one segment a second, not one in 64 seconds; 5. no damping of oscillations (section
/// 4.5) and no history discounting; 6. an interval does not grow while the source uses less than
/// half of its allowed rate, in place of the rules for a loss after such a time (section 4.3); 7.
/// congestion episodes of other flows count.
#[derive(Clone, Debug)]
pub struct Steady {
    config: SteadyConfig,
    srtt: Option<Span>,
    latest: Option<Span>,
    intervals: LossIntervals,
    aimd: AimdWindow,
    emulation: TcpEmulation,
    cubic_share: CubicShare,
    backoff_share: BackoffShare,
    loss_classifier: LossClassifier,
    queue: QueueMonitor,
    receive_rate: ReceiveRate,
    /// The last loss, until the next round-trip time classifies it.
    pending: Option<PendingLoss>,
    /// When the last counted event was detected.
    counted_at: Option<Time>,
    /// `counted_at` and `queue` before the last counted event, to undo it.
    counted_before: (Option<Time>, QueueMonitor),
    /// One round trip after the last congestion loss, also one that joined an earlier event.
    recovering_until: Time,
    /// Whether the last acknowledgement arrived before `recovering_until`.
    is_recovering: bool,
    /// The losses of the last counted event, without spurious ones; zero once the event is final.
    counted_losses: u32,
    /// The average rate of the last decision.
    share: Rate,
    slow_start: Rate,
    slow_start_doubles_at: Time,
    young: Young,
    first_flight: FirstFlight,
    /// When the first acknowledgement arrived, or the first one after a silence, and how much was
    /// acknowledged before it.
    began: Option<(Time, u64)>,
    sent: u64,
    acked: u64,
    /// When the no-feedback timer expires. It runs only while data is in flight.
    no_feedback_at: Option<Time>,
    /// How often the no-feedback timer has expired in a row.
    no_feedback_count: u32,
    decision: Decision,
}

/// The stage of a flow's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Young {
    /// Nothing has queued or was lost so far.
    Probing,
    /// It doubles its rate, as TCP does.
    Doubling,
    /// The flow has lasted long enough.
    Grown,
}

/// A loss that is not classified yet as congestion or random.
#[derive(Clone, Copy, Debug)]
struct PendingLoss {
    at: Time,
    /// The last round trip measured before the loss.
    rtt: Option<Span>,
    /// The bytes in flight.
    flight: DataSize,
    /// Whether the path was silent before it was found.
    was_silent: bool,
}

impl Steady {
    /// Creates the controller of a flow that has sent nothing yet.
    pub fn new(config: SteadyConfig) -> Self {
        let mut controller = Self {
            config,
            srtt: None,
            latest: None,
            intervals: LossIntervals::new(config.memory),
            aimd: AimdWindow::default(),
            emulation: TcpEmulation::default(),
            cubic_share: CubicShare::new(),
            backoff_share: BackoffShare::default(),
            loss_classifier: LossClassifier::new(config.random_loss, config.mss),
            queue: QueueMonitor::default(),
            receive_rate: ReceiveRate::default(),
            pending: None,
            counted_at: None,
            counted_before: (None, QueueMonitor::default()),
            recovering_until: Time::ZERO,
            is_recovering: false,
            counted_losses: 0,
            share: Rate::ZERO,
            slow_start: Rate::of(config.initial_window, INITIAL_ROUND_TRIP),
            slow_start_doubles_at: Time::ZERO,
            young: Young::Probing,
            first_flight: FirstFlight::default(),
            began: None,
            sent: 0,
            acked: 0,
            no_feedback_at: None,
            no_feedback_count: 0,
            decision: Decision {
                window: config.max_window,
                ..Decision::default()
            },
        };
        controller.decide();
        controller.decision.window = controller.window();
        controller
    }

    fn round_trip(&self) -> Span {
        self.srtt.unwrap_or(INITIAL_ROUND_TRIP)
    }

    /// The minimum rate: one segment in a round trip or a second, whichever is longer.
    fn min_rate(&self) -> Rate {
        let spacing = self.round_trip().max(MAX_SPACING);
        Rate::of(self.config.mss, spacing).max(Rate::from_bps(1))
    }

    /// The rate after persistent congestion: two segments in a round trip.
    fn restart_rate(&self) -> Rate {
        Rate::of(self.config.mss, self.round_trip()).mul_f64(2.0)
    }

    /// The minimum rate while no feedback arrives. The first packet that arrives ends the silence,
    /// and a source of media cannot wait a second for it. While the window of a young flow is full,
    /// only probes leave.
    fn silent_rate(&self) -> Rate {
        Rate::of(self.config.mss, self.round_trip().max(SILENT_SPACING)).max(self.min_rate())
    }

    fn initial_rate(&self) -> Rate {
        Rate::of(self.config.initial_window, self.round_trip())
    }

    /// The rate of TCP under the losses so far; unlimited before the first loss event.
    fn tcp_friendly(&self) -> Rate {
        let Some(p) = self.intervals.rate() else {
            return Rate::MAX;
        };
        let (mss, rtt) = (self.config.mss, self.round_trip());
        let few_losses = self.loss_classifier.few_losses();
        let emulated = self.emulation.rate(rtt).unwrap_or(Rate::ZERO);
        let emulated = emulated.mul_f64(few_losses);
        let share = throughput(mss, rtt, p).max(emulated).mul_f64(RATE_FACTOR);
        if self.intervals.is_full() {
            share
        } else {
            share.max(self.aimd.rate(mss, rtt).mul_f64(few_losses))
        }
    }

    /// The rate that the path is known to carry, with room to grow: twice the maximum receive rate,
    /// and at least the initial rate. A faster burst would only fill a queue.
    ///
    /// The sender learns the receive rate two round trips after it began to send at that rate. A
    /// young flow doubles its rate in each round trip, as TCP does. So it may send at four times
    /// the receive rate, and from the first acknowledgement on at twice its initial rate. While
    /// nothing has queued, its bursts may grow by four in each round trip instead of two. Up to the
    /// rate of the first flight, they may take three of these steps at once.
    fn validated(&self) -> Rate {
        let initial = self.initial_rate();
        let most = self.receive_rate.most();
        match self.young {
            Young::Probing => {
                let one_step = match self.acked {
                    0 => initial,
                    _ => initial.mul_f64(FAST_GROWTH),
                };
                let least = self.first_flight_rate().max(one_step);
                most.mul_f64(FAST_GROWTH * FAST_GROWTH).max(least)
            }
            Young::Doubling => most.mul_f64(4.0).max(initial.mul_f64(2.0)),
            Young::Grown if self.is_recovering => most.max(initial),
            Young::Grown => most.mul_f64(2.0).max(initial),
        }
    }

    /// The most in flight. Until its first loss event a young flow has a window, as TCP has. A
    /// sender detects drops at a full queue one round trip later, and still later if the next
    /// packets are lost too.
    fn window(&self) -> DataSize {
        if self.young == Young::Grown || self.intervals.has_events() {
            return self.config.max_window;
        }
        let acked = self
            .acked
            .saturating_sub(self.began.map_or(0, |(_, acked)| acked));
        let begun = self.config.initial_window.get().saturating_mul(2);
        let grown = acked.saturating_mul(FAST_GROWTH as u64);
        DataSize::new(begun.saturating_add(grown))
            .max(self.first_flight_rate().amount_in(self.round_trip()))
            .max(self.config.mss)
            .min(self.config.max_window)
    }

    /// The rate at which the first flight arrived, up to three steps of growth.
    fn first_flight_rate(&self) -> Rate {
        let three_steps = self
            .initial_rate()
            .mul_f64(FAST_GROWTH * FAST_GROWTH * FAST_GROWTH);
        self.first_flight
            .rate()
            .unwrap_or(Rate::ZERO)
            .min(three_steps)
    }

    /// Updates the stage of the flow's start.
    fn grow_up(&mut self, now: Time, queued: Span) {
        let base = self.round_trip().saturating_sub(queued);
        let is_queued = queued > (base / 8).clamp(MIN_QUEUED, MAX_QUEUED);
        let young = self.config.initial_window * YOUNG_WINDOWS;
        let (began_at, acked) = *self.began.get_or_insert((now, 0));
        let is_young = self.acked.saturating_sub(acked) < young.get()
            || now < began_at + self.round_trip() * YOUNG_ROUND_TRIPS;
        self.young = match self.young {
            _ if !is_young => Young::Grown,
            Young::Probing if is_queued || self.counted_at > Some(began_at) => Young::Doubling,
            young => young,
        };
    }

    fn decide(&mut self) {
        let fair = self.tcp_friendly().max(self.min_rate());
        let validated = self.validated().max(self.min_rate());
        let share = fair.min(validated).min(self.slow_start);
        let share = share.max(self.min_rate());
        self.share = share;
        let peak = match self.young {
            // Without feedback, the effect of bursts on the path is unknown.
            _ if self.no_feedback_count > 0 => share,
            // The first flight leaves at once, as in TCP.
            _ if self.sent < self.config.initial_window.get() => Rate::MAX,
            Young::Probing => validated,
            Young::Doubling | Young::Grown => share.mul_f64(self.config.peak).min(validated),
        };
        let depth = share.amount_in(self.config.depth);
        self.decision.pacing = Pacing::Bucket {
            rate: share,
            peak,
            depth: depth.max(self.config.initial_window),
            fair,
            proven: validated,
        };
        self.decision.phase = match self.intervals.rate() {
            None => Phase::SlowStart,
            Some(_) => Phase::CongestionAvoidance,
        };
    }

    fn double_slow_start(&mut self, now: Time) {
        if now < self.slow_start_doubles_at {
            return;
        }
        self.slow_start_doubles_at = now + self.round_trip();
        let ceiling = self.tcp_friendly().min(self.validated());
        // No growth beyond the rates that limit the flow anyway.
        self.slow_start = self
            .slow_start
            .mul_f64(2.0)
            .min(ceiling.max(self.slow_start));
    }

    /// For how long after the last counted event a loss belongs to it.
    fn grouping_time(&self) -> Span {
        let rtt = self.round_trip();
        let grouped = rtt.mul_f64(self.config.grouping);
        if !self.queue.is_standing(self.loss_classifier.min()) {
            return grouped;
        }
        let cycle = rtt.mul_f64(self.emulation.segments() / 2.0);
        let patient = cycle.min(MAX_EPISODE).max(grouped);
        // Flows of this controller would otherwise wait for one another while the queue stays full.
        rtt + patient
            .saturating_sub(rtt)
            .mul_f64(self.loss_classifier.few_losses())
    }

    /// Counts a loss event with `flight` bytes in flight, unless it belongs to the last event.
    fn count_loss(&mut self, now: Time, flight: DataSize) {
        self.recovering_until = now + self.round_trip();
        self.is_recovering = true;
        if self.belongs_to_last_event(now) {
            self.counted_losses += u32::from(self.counted_losses > 0);
            return;
        }
        // The receive rate lags behind a rate that doubles. At the first event a flow keeps the
        // part of its flight that CUBIC keeps, or twice the part that arrived, if that is less.
        let doubling = match self.intervals.has_events() {
            true => Rate::ZERO,
            false => {
                let kept = (2.0 * self.loss_classifier.arrival_ratio()).min(DECREASE);
                Rate::of(flight, self.round_trip()).mul_f64(kept)
            }
        };
        self.on_episode(now, doubling);
        self.backoff_share.end();
        self.queue.begin(self.latest);
        self.counted_losses = 1;
    }

    /// Whether a loss detected now belongs to the last counted event.
    fn belongs_to_last_event(&self, now: Time) -> bool {
        self.counted_at
            .is_some_and(|at| now < at + self.grouping_time())
    }

    /// Reacts to a congestion episode. Before it, the path carried at least `carried`.
    fn on_episode(&mut self, now: Time, carried: Rate) {
        self.counted_before = (self.counted_at.replace(now), self.queue);
        let (mss, rtt) = (self.config.mss, self.round_trip());
        let latest = self.receive_rate.latest();
        let arrived = latest.max(self.receive_rate.most().mul_f64(0.5));
        let arrived = arrived.max(self.min_rate());
        self.intervals
            .on_event(|| 1.0 / loss_event_rate(mss, rtt, arrived));
        let carried = arrived.max(carried).amount_in(rtt);
        let segments = carried.get() as f64 / mss.get().max(1) as f64;
        self.aimd.on_event(now, segments);
        self.emulation.on_episode(now, carried);
        self.cubic_share.on_episode();
    }

    /// Estimates from the smoothed round trip how the other flows at the queue behave.
    fn observe_queue(&mut self, now: Time) {
        let rtt = self.round_trip();
        self.cubic_share.on_round_trip(now, rtt);
        let min = self.loss_classifier.min().unwrap_or(rtt);
        if let Some((cubic, reno)) = self.backoff_share.on_round_trip(rtt, min) {
            self.emulation.soften(cubic, reno);
        }
    }

    /// Classifies the pending loss; `after` is the first round trip measured after it.
    fn classify_pending(&mut self, after: Option<Span>) {
        let Some(episode) = self.pending.take() else {
            return;
        };
        let classifier = &mut self.loss_classifier;
        let is_outage = episode.was_silent && classifier.is_unqueued(episode.rtt, after);
        let is_congestion = !is_outage && !classifier.is_random(episode.rtt, after);
        classifier.on_verdict(is_congestion);
        if is_congestion {
            self.count_loss(episode.at, episode.flight);
        }
    }

    fn arm_no_feedback_timer(&mut self, now: Time, in_flight: DataSize) {
        let packets = self.share.transmission_time(self.config.mss) * 2;
        let patience = (self.round_trip() * 4).max(packets).max(MIN_NO_FEEDBACK);
        self.no_feedback_at = (in_flight > DataSize::ZERO).then(|| now + patience);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.acked = self.acked.saturating_add(ack.acked.get());
        // Data sent before this controller replaced another is acknowledged too.
        self.sent = self.sent.max(self.acked);
        let rtt = ack.rtt.map(|rtt| rtt.max(MIN_ROUND_TRIP));
        if let Some(rtt) = rtt {
            self.srtt = Some(match self.srtt {
                None => {
                    self.slow_start = Rate::of(self.config.initial_window, rtt);
                    rtt
                }
                Some(srtt) => srtt.saturating_sub(srtt / 8) + rtt / 8,
            });
            self.loss_classifier.on_round_trip(ack.now, rtt);
            let queued = self.loss_classifier.queueing(rtt);
            self.grow_up(ack.now, queued);
            self.observe_queue(ack.now);
            let others_backed_off =
                self.queue
                    .on_round_trip(rtt, self.loss_classifier.min(), ack.in_flight);
            if others_backed_off
                && !self.belongs_to_last_event(ack.now)
                && self.queue.on_episode_of_others()
            {
                self.on_episode(ack.now, Rate::ZERO);
                self.backoff_share.begin(self.round_trip());
                self.counted_losses = 0;
            }
        }
        self.is_recovering = ack.now < self.recovering_until;
        self.loss_classifier
            .on_progress(ack.now, self.sent, self.acked, ack.in_flight.get());
        self.classify_pending(rtt);
        self.latest = rtt.or(self.latest);
        let segments = ack.acked.get() as f64 / self.config.mss.get().max(1) as f64;
        // Packets without a loss show nothing about a rate that the source does not use.
        if self.tcp_friendly() < self.validated() {
            self.intervals.on_acked(segments);
        }
        self.receive_rate
            .on_acked(ack.now, ack.acked, self.round_trip());
        if core::mem::take(&mut self.no_feedback_count) > 0 {
            self.young = Young::Probing;
            self.began = Some((ack.now, self.acked));
            self.slow_start = self.slow_start.max(self.restart_rate());
        }
        self.aimd.grow(ack.now, self.round_trip());
        let has_drained = !self.queue.is_full(self.loss_classifier.min());
        let cubic_share = self.cubic_share.value();
        self.emulation
            .grow(ack.now, self.round_trip(), cubic_share, has_drained);
        let used = self.validated().amount_in(self.round_trip());
        self.aimd
            .cap(used.get() as f64 / self.config.mss.get().max(1) as f64);
        self.emulation.cap(ack.now, used);
        self.double_slow_start(ack.now);
        self.decide();
        self.decision.window = self.window();
        self.arm_no_feedback_timer(ack.now, ack.in_flight);
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.cause == LossCause::Mark {
            self.loss_classifier.on_verdict(true);
            self.count_loss(loss.now, loss.in_flight);
            // A late arrival cannot undo a mark.
            self.counted_losses = 0;
        } else {
            self.classify_pending(None);
            self.pending = Some(PendingLoss {
                at: loss.now,
                rtt: self.latest,
                flight: loss.in_flight,
                was_silent: self.no_feedback_count > 0,
            });
        }
        if loss.lost >= loss.in_flight {
            self.no_feedback_at = None;
        }
        self.decide();
    }

    fn on_spurious_loss(&mut self, now: Time) {
        // A later packet belongs to a later loss, which did not count.
        let recent = self.round_trip() * 2;
        let is_counted =
            self.counted_losses > 0 && self.counted_at.is_some_and(|at| now < at + recent);
        if self.pending.take().is_none() && is_counted {
            self.counted_losses -= 1;
            // The event is undone once all its packets have arrived.
            if self.counted_losses == 0 {
                self.intervals.undo_event();
                self.aimd.undo_event();
                self.emulation.undo_episode();
                (self.counted_at, self.queue) = self.counted_before;
            }
        }
        self.decide();
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        self.slow_start = self.restart_rate().min(self.slow_start);
        self.slow_start_doubles_at = timeout.now + self.round_trip();
        self.decide();
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.loss_classifier
            .on_sent(sent.now, self.sent, self.round_trip());
        self.sent = self.sent.saturating_add(sent.payload.get());
        if sent.app_limited {
            self.cubic_share.on_pause();
        }
        if self.acked == 0 {
            self.first_flight.on_sent();
            // The burst of the first flight may end with this packet.
            self.decide();
        }
        let is_first = sent.in_flight <= sent.payload;
        if is_first && self.receive_rate.is_old(sent.now) {
            self.receive_rate.restart(sent.now);
            self.decide();
        }
        if is_first || self.no_feedback_at.is_none() {
            self.arm_no_feedback_timer(sent.now, sent.in_flight);
        }
    }

    fn on_wakeup(&mut self, now: Time) {
        if self.no_feedback_at.is_some_and(|at| at <= now) {
            self.no_feedback_count = self.no_feedback_count.saturating_add(1);
            self.slow_start = self.share.mul_f64(0.5).max(self.silent_rate());
            self.slow_start_doubles_at = now + self.round_trip();
            self.decide();
            self.arm_no_feedback_timer(now, self.config.mss);
        }
    }
}

impl Controller for Steady {
    fn needs(&self) -> Needs {
        Needs {
            in_order_acks: self.young == Young::Probing,
            ..Needs::default()
        }
    }

    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Sent(sent) => self.on_sent(sent),
            Event::Ack(ack) => self.on_ack(ack),
            Event::Loss(loss) => self.on_loss(loss),
            Event::Timeout(timeout) => self.on_timeout(timeout),
            Event::InOrderAck(ack) => self.first_flight.on_in_order_ack(ack, self.config.mss),
            Event::SpuriousLoss { now } => self.on_spurious_loss(now),
            Event::Wakeup(now) => self.on_wakeup(now),
            _ => {}
        }
    }

    fn decision(&self) -> Decision {
        Decision {
            wakeup: self.no_feedback_at,
            ..self.decision
        }
    }
}

/// The longest time between two segments, if the round trip is not longer.
const MAX_SPACING: Span = Span::from_secs(1);

/// The longest congestion episode while the queue does not drain. An episode also ends after half
/// of the window in round trips, which is when a Reno flow has its next one. Longer episodes would
/// take more from TCP beside BBR, which does not back off, and flows of this controller would need
/// longer to share a deep queue.
const MAX_EPISODE: Span = Span::from_secs(1);

/// The time between two segments while no feedback arrives, if the round trip is not longer.
const SILENT_SPACING: Span = Span::from_millis(200);

/// A flow is young until this many initial windows are acknowledged, and this many round trips have
/// passed since the first acknowledgement.
const YOUNG_WINDOWS: u64 = 32;
const YOUNG_ROUND_TRIPS: u64 = 8;

/// The growth of the bursts of a young flow in a round trip, while nothing has queued: an eighth of
/// the round trip, within these limits, as in HyStart++ (RFC 9406, section 4.2).
const FAST_GROWTH: f64 = 4.0;
const MIN_QUEUED: Span = Span::from_millis(4);
const MAX_QUEUED: Span = Span::from_millis(16);

/// The factor on the rate of the equation and of the emulation. With 1, two greedy Reno flows keep
/// four fifths of an equal share, because paced packets meet a full queue less often.
const RATE_FACTOR: f64 = 0.9;

/// The shortest no-feedback time: a peer may delay acknowledgements by tens of milliseconds.
const MIN_NO_FEEDBACK: Span = Span::from_millis(100);

/// The lower bound of a measured round trip.
const MIN_ROUND_TRIP: Span = Span::from_micros(1);

/// The assumed round trip before the first measurement.
const INITIAL_ROUND_TRIP: Span = Span::from_millis(100);

#[cfg(test)]
mod tests;
