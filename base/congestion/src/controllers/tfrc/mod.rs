//! TCP-friendly rate control (TFRC).

mod meter;
mod receive_rates;
mod shown;

use comity_units::{DataSize, Rate, Span, Time};

use crate::equation::{loss_event_rate_with_timeout, throughput_with_timeout};
use crate::{
    Ack, Controller, Decision, Event, Feedback, LossHistory, Needs, Pacing, Phase, Report, Sent,
    Tag,
};
pub use meter::TfrcMeter;
use receive_rates::ReceiveRateSet;
use shown::ShownLosses;

/// The configuration of [`Tfrc`] and [`TfrcMeter`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TfrcConfig {
    /// `s`: the payload of a full packet, without headers.
    pub mss: DataSize,
    /// The most that may leave in the first round trip.
    pub initial_window: DataSize,
    /// The most that may be in flight.
    pub max_window: DataSize,
    /// `q`: the weight of the smoothed round trip against a new sample.
    pub rtt_memory: f64,
    /// Whether the rate follows the square root of the round-trip time (section 4.5).
    pub damping: bool,
    /// `t_RTO` of the equation, in round trips.
    pub timeout: f64,
    /// Whether the rate grows by at most one packet per round trip after the first loss, as in
    /// ns-2.
    pub gradual: bool,
    /// The minimum of the no-feedback timer, in round trips.
    pub patience: f64,
    /// The minimum of the limit by the receive rate, in packets per round trip.
    pub min_limit: f64,
    /// Whether this is TFRC-SP, the variant for small packets (RFC 4828).
    pub small_packets: bool,
    /// The size of the headers, for small packets.
    pub header: DataSize,
    /// Receiver: a packet is lost after this many later packets.
    pub duplicate_threshold: u32,
    /// Receiver: the number of loss intervals in the mean.
    pub memory: usize,
    /// Receiver: whether a long interval without losses discounts the older ones.
    pub discounting: bool,
    /// Receiver: the minimum of the discount factor.
    pub min_discount: f64,
}

impl TfrcConfig {
    /// The packet size in the equation. Small packets use that of large ones, to get their rate.
    fn equation_size(&self) -> DataSize {
        if self.small_packets {
            SMALL_PACKETS_SIZE
        } else {
            self.mss
        }
    }

    /// The part of the equation's rate for payload, with `payload` bytes in a packet.
    fn payload_share(&self, payload: f64) -> f64 {
        if self.small_packets && payload > 0.0 {
            payload / (payload + self.header.get() as f64)
        } else {
            1.0
        }
    }
}

/// Sends at the rate of TCP under the same loss event rate.
///
/// The receiver ([`TfrcMeter`]) measures the loss event rate `p` and the receive rate `X_recv`. It
/// reports once per round trip, and at once after a new loss event. With each report:
///
/// ```text
/// R         = q · R + (1 − q) · sample                               q = rtt_memory = 0.9
/// limit     = 2 · max X_recv of two round trips
///             data-limited: 2 · the largest X_recv so far; after a new loss event, the larger of half
///             that maximum and 0.85 · X_recv
/// p = 0:      once in R:  X = max( min(2 · X, limit), W_init / R )   W_init = min(4 s, max(2 s, 4380 bytes))
/// p > 0:      X = max( min(X(p), limit), s / 64 s )
/// no feedback for max(4 R, 2 s / X), with the old X, initially 2 s:
/// p = 0:      half of X, unless the flow was idle and X < 2 · W_init / R
/// p > 0:      half of min(X(p), limit), unless the flow was idle and limit < 2 · W_init / R
/// X_inst    = X · mean √R / √sample                                  weight 0.9 in the mean (damping)
/// ```
///
/// `X(p)` is [`throughput`](crate::equation::throughput), `s` the packet size. Rates are in bytes
/// per second. Packets are spaced by their size over `X_inst`.
///
/// With `small_packets` (RFC 4828) the equation uses packets of 1460 bytes whatever is sent, and
/// the headers are subtracted. Packets leave at least 10 ms apart, and the receiver counts single
/// losses in short intervals.
///
/// ns-2 2.35 predates RFC 5348, and differs from it in:
/// * `t_RTO` comes from a coarse clock.
/// * The rate grows by one packet per round trip (`gradual`), in slow start packet by packet.
/// * The limit by the receive rate is at least one packet per round trip (`min_limit`).
/// * The no-feedback timer is 2 R (`patience`).
/// * One later packet proves a loss (`duplicate_threshold`).
/// * A loss event begins only after the sender has received a report since the last one. So one
///   hole is one event however long it lasts, which doubles the rate below one packet per round
///   trip.
/// * The smoothed round trip has a weight of 0.95 (`rtt_memory`).
/// * The discount factor is at least 1/2, as in RFC 3448 (`min_discount`).
///
/// Source: RFC 5348, sections 4.1 to 4.6; RFC 4828, section 4.
///
/// Differs from the RFCs in: 1. the transport measures round trips, and sequence numbers travel in
/// [`Tag::Numbered`]; 2. the transport reports whether acknowledged packets were data-limited, in
/// place of the two times of section 8.2.1; 3. `s` is the full packet, not a mean; sizes on the
/// wire are recent means, so the pacer spaces packets by payload; 4. the first window is at most
/// the configured one; 5. an idle flow that the no-feedback timer does not slow down is not woken
/// until it sends again; 6. the transport may send a packet, or a millisecond's packets, early
/// (`t_gran` of section 4.6); 7. in a data-limited interval the sender recognises a loss event by a
/// higher `p` only: reports contain what section 3.2.2 names, without the separate signal of
/// section 4.3. A loss event that ends an interval longer than the mean, and leaves `p` as it was,
/// does not count there; 8. a reported loss event rate counts as at least a quarter of the rate
/// that acknowledgements show, from the first loss event on, so a receiver gains little by a false
/// report.
#[derive(Clone, Debug)]
pub struct Tfrc {
    config: TfrcConfig,
    rtt: Option<Span>,
    /// The mean of √R.
    root: f64,
    /// The damping factor: mean √R over the last √R.
    damped_by: f64,
    /// `X`: the allowed rate, in bytes of payload per second.
    rate: f64,
    /// The rate of the equation; infinite while `p` is 0.
    by_equation: f64,
    /// `p`: the loss event rate.
    losses: f64,
    shown: ShownLosses,
    received: ReceiveRateSet,
    /// `tld`: when the rate was last doubled.
    doubled_at: Time,
    /// When the last report arrived.
    reported_at: Option<Time>,
    /// Whether this controller limited any packet acknowledged since the last report.
    was_used: bool,
    /// Whether a packet left since the no-feedback timer was set.
    was_busy: bool,
    /// When the no-feedback timer expires.
    no_feedback_at: Option<Time>,
    number: u32,
    /// Whether the next packet has a number.
    is_numbered: bool,
    /// The mean payload and overhead of recent packets, in bytes.
    payload: f64,
    overhead: f64,
    decision: Decision,
}

impl Tfrc {
    /// Creates the controller of a flow that has sent nothing yet.
    pub fn new(config: TfrcConfig) -> Self {
        let payload = config.mss.get().max(1) as f64;
        let mut controller = Self {
            config,
            rtt: None,
            root: 0.0,
            damped_by: 1.0,
            // Section 4.2: one packet per second until a round trip is known.
            rate: payload,
            by_equation: f64::INFINITY,
            losses: 0.0,
            shown: ShownLosses::new(config.memory),
            received: ReceiveRateSet::new(Time::ZERO),
            doubled_at: Time::ZERO,
            reported_at: None,
            was_used: false,
            was_busy: false,
            no_feedback_at: None,
            number: 0,
            is_numbered: false,
            payload,
            overhead: 0.0,
            decision: Decision {
                window: config.max_window,
                ..Decision::default()
            },
        };
        controller.decide();
        controller
    }

    /// `s`, in bytes.
    fn size(&self) -> f64 {
        self.config.mss.get().max(1) as f64
    }

    /// `s / t_mbi`: the minimum rate.
    fn min_rate(&self) -> f64 {
        self.size() / MAX_SPACING
    }

    /// `W_init / R`, in bytes per second.
    fn initial_rate(&self, rtt: Span) -> f64 {
        let window = (2.0 * self.size()).max(4_380.0).min(4.0 * self.size());
        let window = window.min(self.config.initial_window.get() as f64);
        window / rtt.as_secs_f64()
    }

    fn decide(&mut self) {
        let rate = (self.rate * self.damped_by).max(self.min_rate());
        let wire = self.payload + self.overhead;
        let mut rate = rate * wire / self.payload;
        if self.config.small_packets {
            rate = rate.min(wire / SMALL_PACKETS_SPACING);
        }
        let rate = Rate::from_bps_f64(rate * 8.0).max(Rate::from_bps(1));
        self.decision.pacing = Pacing::Rate(rate);
        self.decision.phase = if self.losses > 0.0 {
            Phase::CongestionAvoidance
        } else {
            Phase::SlowStart
        };
    }

    /// Section 4.2: the first round trip sets the rate.
    fn begin(&mut self, now: Time, rtt: Span) {
        self.rtt = Some(rtt);
        self.root = libm::sqrt(rtt.as_secs_f64());
        self.received = ReceiveRateSet::new(now);
        self.rate = self.initial_rate(rtt);
        self.doubled_at = now;
    }

    /// Steps 1, 2 and 5 of section 4.3.
    fn measure(&mut self, now: Time, sample: Span) -> Span {
        let sample = sample.max(MIN_ROUND_TRIP);
        let Some(rtt) = self.rtt else {
            self.begin(now, sample);
            return sample;
        };
        let q = self.config.rtt_memory;
        let rtt = (rtt.mul_f64(q) + sample.mul_f64(1.0 - q)).max(MIN_ROUND_TRIP);
        self.rtt = Some(rtt);
        let root = libm::sqrt(sample.as_secs_f64());
        self.root = ROOT_MEMORY * self.root + (1.0 - ROOT_MEMORY) * root;
        if self.config.damping {
            self.damped_by = self.root / root;
        }
        rtt
    }

    /// `X_Bps`: the rate of the equation.
    fn equation(&self, rtt: Span) -> f64 {
        if self.losses <= 0.0 {
            return f64::INFINITY;
        }
        let size = self.config.equation_size();
        let rate = throughput_with_timeout(size, rtt, self.losses, self.config.timeout);
        rate.as_bps() as f64 / 8.0 * self.config.payload_share(self.payload)
    }

    /// Step 4 of section 4.3, with the limit by the receive rate.
    fn update_rate(&mut self, now: Time, rtt: Span, limit: f64) {
        if self.losses > 0.0 {
            let mut rate = self.by_equation.min(limit);
            if self.config.gradual && rate > self.rate && self.reported_at.is_some() {
                let since = self
                    .reported_at
                    .map_or(Span::ZERO, |at| now.saturating_since(at));
                let trips = (since.as_secs_f64() / rtt.as_secs_f64()).min(2.0);
                rate = rate.min(self.rate + trips * self.size() / rtt.as_secs_f64());
            }
            self.rate = rate.max(self.min_rate());
        } else if now.saturating_since(self.doubled_at) >= rtt {
            self.rate = (2.0 * self.rate).min(limit).max(self.initial_rate(rtt));
            self.doubled_at = now;
        }
    }

    /// The interval before the first loss event: that with which the equation gives the highest
    /// rate so far, as the receiver computes it (section 6.3.1).
    fn first_interval(&self) -> f64 {
        let rtt = self.rtt.unwrap_or(MIN_ROUND_TRIP);
        let least = self.size() / 2.0 / rtt.as_secs_f64();
        let rate = self.shown.most().max(least) / self.config.payload_share(self.payload);
        let (size, timeout) = (self.config.equation_size(), self.config.timeout);
        let rate = Rate::from_bps((rate * 8.0) as u64);
        1.0 / loss_event_rate_with_timeout(size, rtt, rate, timeout)
    }

    fn on_report(&mut self, now: Time, losses: f64, received: f64, sample: Option<Span>) {
        let Some(sample) = sample.or(self.rtt) else {
            return;
        };
        let rtt = self.measure(now, sample);
        let has_more_losses = losses > self.losses;
        let had_losses = self.losses > 0.0;
        // A correct meter reports at least as many events, but may group them differently.
        let shown = self.shown.rate() / GROUPING;
        self.losses = losses.max(shown).clamp(0.0, 1.0);
        self.by_equation = self.equation(rtt);
        // A report without arrivals measured nothing, so it limits nothing.
        let limit = if self.was_used || received <= 0.0 {
            self.received.update(now, received, rtt);
            2.0 * self.received.max()
        } else if has_more_losses {
            self.received.halve();
            self.received.maximize(now, 0.85 * received);
            self.received.max()
        } else {
            self.received.maximize(now, received);
            2.0 * self.received.max()
        };
        let least = self.config.min_limit * self.size() / rtt.as_secs_f64();
        let limit = limit.max(least);
        // Step 3, with the old rate.
        let no_feedback_time = self.no_feedback_time();
        if self.config.gradual && !had_losses && self.losses > 0.0 {
            // The end of slow start: the rate of the equation applies at once.
            self.rate = f64::INFINITY;
        }
        self.update_rate(now, rtt, limit);
        self.reported_at = Some(now);
        self.was_used = false;
        self.decide();
        self.arm_no_feedback_timer(now, no_feedback_time);
    }

    /// The duration of the no-feedback timer at the current rate and round trip.
    fn no_feedback_time(&self) -> Span {
        let packets = 2.0 * self.size() / self.rate;
        let least = self
            .rtt
            .map_or(INITIAL_NO_FEEDBACK, |rtt| rtt.mul_f64(self.config.patience));
        least.max(Span::from_secs_f64(packets))
    }

    fn arm_no_feedback_timer(&mut self, now: Time, duration: Span) {
        self.was_busy = false;
        self.no_feedback_at = Some(now + duration);
    }

    /// Section 4.4: the no-feedback timer has expired.
    fn on_no_feedback(&mut self, now: Time) {
        let is_idle = !self.was_busy;
        let Some(rtt) = self.rtt.filter(|_| self.reported_at.is_some()) else {
            if !is_idle {
                self.rate = (self.rate / 2.0).max(self.min_rate());
            }
            return;
        };
        let recover = self.initial_rate(rtt);
        let most = self.received.max();
        let is_slow = if self.losses > 0.0 {
            most < recover
        } else {
            self.rate < 2.0 * recover
        };
        if is_idle && is_slow {
            return;
        }
        if self.losses <= 0.0 {
            self.rate = (self.rate / 2.0).max(self.min_rate());
            return;
        }
        let limit = if self.by_equation > 2.0 * most {
            most
        } else {
            self.by_equation / 2.0
        };
        let limit = limit.max(self.min_rate());
        self.received.replace(now, limit / 2.0);
        self.rate = self.by_equation.min(limit).max(self.min_rate());
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.was_used |= !ack.app_limited;
        let bytes = ack.acked.get() as f64;
        let segments = match self.config.small_packets {
            true => f64::from(ack.packets),
            false => bytes / self.size(),
        };
        if self.rtt.is_none()
            && let Some(rtt) = ack.rtt
        {
            self.begin(ack.now, rtt.max(MIN_ROUND_TRIP));
            self.decide();
            self.arm_no_feedback_timer(ack.now, self.no_feedback_time());
        }
        let rtt = self.rtt.unwrap_or(MIN_ROUND_TRIP);
        self.shown.on_acked(ack.now, rtt, bytes, segments);
    }

    fn on_sent(&mut self, sent: &Sent) {
        // The receiver reports only packets with numbers. After a keep-alive or a probe, which has
        // none, missing feedback shows nothing.
        if !core::mem::take(&mut self.is_numbered) {
            return;
        }
        self.was_busy = true;
        let payload = sent.payload.get() as f64;
        let overhead = sent.wire.saturating_sub(sent.payload).get() as f64;
        if payload > 0.0 {
            let share = if self.overhead == 0.0 {
                1.0
            } else {
                SIZE_SHARE
            };
            self.overhead += (overhead - self.overhead) * share;
            self.payload += (payload - self.payload) * share;
            self.decide();
        }
        if self.no_feedback_at.is_none() {
            self.arm_no_feedback_timer(sent.now, self.no_feedback_time());
            self.was_busy = true;
        }
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        if let Report::LossEvents { rate, received } = feedback.report {
            let received = received.as_bps() as f64 / 8.0;
            self.on_report(feedback.now, *rate, received, feedback.rtt);
        }
    }

    fn on_wakeup(&mut self, now: Time) {
        if self.no_feedback_at.is_none_or(|at| now < at) {
            return;
        }
        let before = self.rate;
        let was_idle = !self.was_busy;
        self.on_no_feedback(now);
        self.decide();
        if was_idle && self.rate >= before {
            self.no_feedback_at = None;
        } else {
            self.arm_no_feedback_timer(now, self.no_feedback_time());
        }
    }
}

impl Controller for Tfrc {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Sent(sent) => self.on_sent(sent),
            Event::Ack(ack) => self.on_ack(ack),
            Event::Loss(_) => {
                let first = self.first_interval();
                self.shown.on_loss(first);
            }
            Event::Feedback(feedback) => self.on_feedback(feedback),
            Event::Wakeup(now) => self.on_wakeup(now),
            _ => {}
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            losses: LossHistory {
                threshold: self.config.duplicate_threshold as usize,
                memory: self.config.memory,
            },
            ..Needs::default()
        }
    }

    fn upcoming_tag(&self) -> Tag {
        Tag::Numbered {
            number: self.number,
            rtt: self.rtt.unwrap_or(Span::ZERO),
        }
    }

    fn tag(&mut self, _now: Time) -> Tag {
        let tag = self.upcoming_tag();
        self.number = self.number.wrapping_add(1);
        self.is_numbered = true;
        tag
    }

    fn decision(&self) -> Decision {
        Decision {
            wakeup: self.no_feedback_at,
            ..self.decision
        }
    }
}

/// A reported loss event rate counts as at least the one that acknowledgements show, divided by
/// this.
const GROUPING: f64 = 4.0;

/// `t_mbi`: the longest time between packets, in seconds.
const MAX_SPACING: f64 = 64.0;

/// Section 4.2: the no-feedback timer before a round trip is known.
const INITIAL_NO_FEEDBACK: Span = Span::from_secs(2);

/// The lower bound of a measured round trip.
const MIN_ROUND_TRIP: Span = Span::from_micros(1);

/// `q2` of section 4.5.
const ROOT_MEMORY: f64 = 0.9;

/// The weight of a packet in the mean sizes.
const SIZE_SHARE: f64 = 1.0 / 16.0;

/// `s` of the equation for small packets (RFC 4828, section 4.1).
const SMALL_PACKETS_SIZE: DataSize = DataSize::new(1_460);

/// The minimum time between small packets, in seconds (RFC 4828, section 4.3).
const SMALL_PACKETS_SPACING: f64 = 0.01;

#[cfg(test)]
mod tests;
