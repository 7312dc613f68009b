//! TCP-friendly rate control.

mod meter;
mod received;

use comity_units::{Bytes, Rate, Span, Time};

use crate::equation::throughput_with_timeout;
use crate::{Ack, Controller, Decision, Event, Feedback, Pacing, Phase, Report, Sent, Tag};
pub use meter::TfrcMeter;
use received::ReceivedRates;

/// How a [`Tfrc`] and its [`TfrcMeter`] are set up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TfrcConfig {
    /// The payload of a full packet: `s`, without headers.
    pub mss: Bytes,
    /// What may leave in the first round trip at the most.
    pub initial_window: Bytes,
    /// What may be in flight at the most.
    pub max_window: Bytes,
    /// `q`: how much of the round-trip time stays when it is measured anew.
    pub rtt_memory: f64,
    /// Whether the rate follows the square root of the round-trip time (section 4.5).
    pub damping: bool,
    /// `t_RTO` of the equation, in round trips.
    pub timeout: f64,
    /// Whether it may grow by no more than a packet in a round trip once there was a loss, as in
    /// ns-2.
    pub gradual: bool,
    /// The shortest time after which silence halves the rate, in round trips.
    pub patience: f64,
    /// What arrives limits the rate to no less than so many packets in a round trip.
    pub min_limit: f64,
    /// Whether it is the variant for small packets (RFC 4828).
    pub small_packets: bool,
    /// What headers weigh, for small packets.
    pub header: Bytes,
    /// The receiver: so many packets after a missing one make it lost.
    pub duplicate_threshold: u32,
    /// The receiver: over how many loss intervals the mean is taken.
    pub memory: usize,
    /// The receiver: whether the past counts for less in a long interval without losses.
    pub discounting: bool,
    /// The receiver: to which share of its weight at the least.
    pub min_discount: f64,
}

impl TfrcConfig {
    /// The packet size in the equation: that of a large packet where small ones shall get the rate
    /// of large ones.
    fn equation_size(&self) -> Bytes {
        if self.small_packets {
            SMALL_PACKETS_SIZE
        } else {
            self.mss
        }
    }

    /// How much of the equation's rate is left for payload where packets carry `payload` bytes of
    /// it.
    fn payload_share(&self, payload: f64) -> f64 {
        if self.small_packets && payload > 0.0 {
            payload / (payload + self.header.get() as f64)
        } else {
            1.0
        }
    }
}

/// Sends at the rate that TCP would have under the same loss event rate.
///
/// The receiver ([`TfrcMeter`]) measures the loss event rate `p` and what arrives, `X_recv`, and
/// reports once in a round trip and at once for a new loss event. With each report:
///
/// ```text
/// R         = q · R + (1 − q) · sample                               q = rtt_memory = 0.9
/// limit     = 2 · max X_recv of two round trips
///             where less was sent than allowed: the largest so far counts; after a new loss half of it, and
///             no more than it or 0.85 · X_recv, without the factor of 2
/// p = 0:      once in R:  X = max( min(2 · X, limit), W_init / R )    W_init = min(4 s, max(2 s, 4380 bytes))
/// p > 0:      X = max( min(X(p), limit), s / 64 s )
/// silence:    after max(4 R, 2 s / X) with the X before, 2 s at the beginning: half of X, or of limit, whichever ruled;
///             where no data left meanwhile, not below the recover rate W_init / R
/// X_inst    = X · mean √R / √(sample)                                weight 0.9 in the mean (damping)
/// ```
///
/// `X(p)` is [`throughput`](crate::equation::throughput). Packets are spaced by their size over
/// `X_inst`.
///
/// With `small_packets` (RFC 4828) the equation takes packets of 1460 bytes whatever is sent, what
/// headers weigh comes off, packets leave 10 ms apart at the least, and the receiver counts single
/// losses in short intervals.
///
/// ns-2 2.35 is older than RFC 5348 and differs from it: it takes `t_RTO` from a coarse clock,
/// grows by one packet in a round trip (`gradual`), lets what arrives limit the rate to no less
/// than one (`min_limit`), halves after 2 R of silence (`patience`), takes one later packet for
/// proof of a loss (`duplicate_threshold`), opens a loss event only where its sender has had a
/// report since the last one, so that a hole is one event however long it lasts (twice the rate at
/// less than a packet in a round trip), keeps 0.95 of the round-trip time (`rtt_memory`), discounts
/// the past to no less than a half as RFC 3448 did (`min_discount`), and raises the rate of slow
/// start packet by packet.
///
/// Source: RFC 5348, sections 4.1 to 4.6; RFC 4828, section 4.
///
/// Differs from the RFCs in: 1. round trips are those that the transport measures, sequence numbers
/// travel in [`Tag::Numbered`]; 2. the transport says of acknowledged packets whether their
/// interval was data-limited, not the two times of section 8.2.1; 3. `s` is the full packet, not a
/// mean; sizes on the wire are those of late, so that the pacer spaces packets by payload; 4. the
/// first window is no larger than what the flow was set up with; 5. an idle flow that silence does
/// not slow down is not woken until it sends again; 6. the transport lets a packet, or what a
/// millisecond lets out, leave early (`t_gran` of section 4.6); 7. of the two ways in which section
/// 4.3 lets the sender learn of a loss event in a data-limited interval it has the one, that `p`
/// rises: reports hold what section 3.2.2 names and no event of its own, so that one that ends an
/// interval longer than the mean, and leaves `p` as it was, does not count there.
#[derive(Clone, Debug)]
pub struct Tfrc {
    config: TfrcConfig,
    rtt: Option<Span>,
    /// The mean of √R, and the last √R over it, which damps.
    root: f64,
    damped_by: f64,
    /// `X`, in bytes of payload per second.
    rate: f64,
    /// The rate of the equation; infinite while `p` is 0.
    by_equation: f64,
    /// `p`.
    losses: f64,
    received: ReceivedRates,
    /// `tld`: when the rate was doubled last.
    doubled_at: Time,
    /// When a report came last.
    reported_at: Option<Time>,
    /// Whether anything acknowledged since the last report had been held back by this controller.
    was_used: bool,
    /// Whether something left since the timer of silence was set.
    was_busy: bool,
    silent_at: Option<Time>,
    number: u32,
    /// Whether the packet that leaves next has a number.
    is_numbered: bool,
    /// Means of what packets weigh.
    payload: f64,
    overhead: f64,
    decision: Decision,
}

impl Tfrc {
    /// A flow that has sent nothing yet.
    pub fn new(config: TfrcConfig) -> Self {
        let payload = config.mss.get().max(1) as f64;
        let mut controller = Self {
            config,
            rtt: None,
            root: 0.0,
            damped_by: 1.0,
            // Section 4.2: a packet in a second until a round trip is known.
            rate: payload,
            by_equation: f64::INFINITY,
            losses: 0.0,
            received: ReceivedRates::new(Time::ZERO),
            doubled_at: Time::ZERO,
            reported_at: None,
            was_used: false,
            was_busy: false,
            silent_at: None,
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

    /// `s / t_mbi`.
    fn least(&self) -> f64 {
        self.size() / LONGEST_SPACING
    }

    /// `W_init / R`, in bytes per second.
    fn initial(&self, rtt: Span) -> f64 {
        let window = (2.0 * self.size()).max(4_380.0).min(4.0 * self.size());
        let window = window.min(self.config.initial_window.get() as f64);
        window / rtt.as_secs_f64()
    }

    fn decide(&mut self) {
        let rate = (self.rate * self.damped_by).max(self.least());
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

    /// Section 4.2: the first round trip is known.
    fn begin(&mut self, now: Time, rtt: Span) {
        self.rtt = Some(rtt);
        self.root = libm::sqrt(rtt.as_secs_f64());
        self.received = ReceivedRates::new(now);
        self.rate = self.initial(rtt);
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

    /// `X_Bps`.
    fn equation(&self, rtt: Span) -> f64 {
        if self.losses <= 0.0 {
            return f64::INFINITY;
        }
        let size = self.config.equation_size();
        let rate = throughput_with_timeout(size, rtt, self.losses, self.config.timeout);
        rate.as_bps() as f64 / 8.0 * self.config.payload_share(self.payload)
    }

    /// Step 4 of section 4.3, given what limits.
    fn allow(&mut self, now: Time, rtt: Span, limit: f64) {
        if self.losses > 0.0 {
            let mut rate = self.by_equation.min(limit);
            if self.config.gradual && rate > self.rate && self.reported_at.is_some() {
                let since = self
                    .reported_at
                    .map_or(Span::ZERO, |at| now.saturating_since(at));
                let trips = (since.as_secs_f64() / rtt.as_secs_f64()).min(2.0);
                rate = rate.min(self.rate + trips * self.size() / rtt.as_secs_f64());
            }
            self.rate = rate.max(self.least());
        } else if now.saturating_since(self.doubled_at) >= rtt {
            self.rate = (2.0 * self.rate).min(limit).max(self.initial(rtt));
            self.doubled_at = now;
        }
    }

    fn on_report(&mut self, now: Time, losses: f64, received: f64, sample: Option<Span>) {
        let Some(sample) = sample.or(self.rtt) else {
            return;
        };
        let rtt = self.measure(now, sample);
        let has_more_losses = losses > self.losses;
        let had_losses = self.losses > 0.0;
        self.losses = losses.clamp(0.0, 1.0);
        self.by_equation = self.equation(rtt);
        // Nothing was measured yet if no arrival was reported: that interval limits
        // nothing.
        let limit = if self.was_used || received <= 0.0 {
            self.received.update(now, received, rtt);
            2.0 * self.received.most()
        } else if has_more_losses {
            self.received.halve();
            self.received.maximize(now, 0.85 * received);
            self.received.most()
        } else {
            self.received.maximize(now, received);
            2.0 * self.received.most()
        };
        let least = self.config.min_limit * self.size() / rtt.as_secs_f64();
        let limit = limit.max(least);
        // Step 3: with the rate of before.
        let patience = self.patience();
        if self.config.gradual && !had_losses && self.losses > 0.0 {
            // The end of slow start: what the equation says, at once.
            self.rate = f64::INFINITY;
        }
        self.allow(now, rtt, limit);
        self.reported_at = Some(now);
        self.was_used = false;
        self.decide();
        self.arm(now, patience);
    }

    /// How long silence lasts before it counts, at the rate and the round trip of now.
    fn patience(&self) -> Span {
        let packets = 2.0 * self.size() / self.rate;
        let least = self
            .rtt
            .map_or(INITIAL_PATIENCE, |rtt| rtt.mul_f64(self.config.patience));
        least.max(Span::from_secs_f64(packets))
    }

    /// Sets the timer of silence.
    fn arm(&mut self, now: Time, patience: Span) {
        self.was_busy = false;
        self.silent_at = Some(now + patience);
    }

    /// Section 4.4: nothing was heard for too long.
    fn on_silence(&mut self, now: Time) {
        let is_idle = !self.was_busy;
        let Some(rtt) = self.rtt.filter(|_| self.reported_at.is_some()) else {
            if !is_idle {
                self.rate = (self.rate / 2.0).max(self.least());
            }
            return;
        };
        let recover = self.initial(rtt);
        let most = self.received.most();
        let is_slow = if self.losses > 0.0 {
            most < recover
        } else {
            self.rate < 2.0 * recover
        };
        if is_idle && is_slow {
            return;
        }
        if self.losses <= 0.0 {
            self.rate = (self.rate / 2.0).max(self.least());
            return;
        }
        let limit = if self.by_equation > 2.0 * most {
            most
        } else {
            self.by_equation / 2.0
        };
        let limit = limit.max(self.least());
        self.received.replace(now, limit / 2.0);
        self.rate = self.by_equation.min(limit).max(self.least());
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.was_used |= !ack.app_limited;
        if self.rtt.is_none()
            && let Some(rtt) = ack.rtt
        {
            self.begin(ack.now, rtt.max(MIN_ROUND_TRIP));
            self.decide();
            self.arm(ack.now, self.patience());
        }
    }

    fn on_sent(&mut self, sent: &Sent) {
        // The receiver reports packets with numbers. One without, a sign of life or a probe, is no
        // use of the rate: the silence after it tells of nothing.
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
        if self.silent_at.is_none() {
            self.arm(sent.now, self.patience());
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
        if self.silent_at.is_none_or(|at| now < at) {
            return;
        }
        let before = self.rate;
        let was_idle = !self.was_busy;
        self.on_silence(now);
        self.decide();
        if was_idle && self.rate >= before {
            self.silent_at = None;
        } else {
            self.arm(now, self.patience());
        }
    }
}

impl Controller for Tfrc {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Sent(sent) => self.on_sent(sent),
            Event::Ack(ack) => self.on_ack(ack),
            Event::Feedback(feedback) => self.on_feedback(feedback),
            Event::Wakeup(now) => self.on_wakeup(now),
            _ => {}
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
            wakeup: self.silent_at,
            ..self.decision
        }
    }
}

/// `t_mbi`: a packet in so many seconds at the least.
const LONGEST_SPACING: f64 = 64.0;

/// Section 4.2: the timer of silence before a round trip is known.
const INITIAL_PATIENCE: Span = Span::from_secs(2);

/// No round trip is taken to be shorter.
const MIN_ROUND_TRIP: Span = Span::from_micros(1);

/// `q2` of section 4.5.
const ROOT_MEMORY: f64 = 0.9;

/// How much a packet counts in the means of what packets weigh.
const SIZE_SHARE: f64 = 1.0 / 16.0;

/// `s` of the equation for small packets (RFC 4828, section 4.1).
const SMALL_PACKETS_SIZE: Bytes = Bytes::new(1_460);

/// Small packets leave so far apart at the least, in seconds (RFC 4828, section 4.3).
const SMALL_PACKETS_SPACING: f64 = 0.01;

#[cfg(test)]
mod tests;
