//! The Rate Adaptation Protocol (RAP).

mod history;

use comity_units::{DataSize, PacketNumber, Rate, Span, Time};

use crate::{Ack, Controller, Decision, Event, Loss, LossCause, Needs, Pacing, Phase, Sent};
use history::History;

/// The configuration of [`Rap`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RapConfig {
    /// The payload of a full packet.
    pub mss: DataSize,
    /// The most that may be in flight.
    pub max_window: DataSize,
    /// α: the increase in each round trip, in packets per round trip.
    pub increase: f64,
    /// β: the factor on the rate at a loss event.
    pub decrease: f64,
    /// δ: the weight of a measurement in the smoothed round trip and its variation.
    pub rtt_gain: f64,
    /// μ: the factor on the smoothed round trip in the timeout.
    pub timeout_rtts: f64,
    /// φ: the factor on the variation in the timeout.
    pub timeout_variations: f64,
    /// Whether the gap is scaled by the short-term over the long-term round trip.
    pub fine_grain: bool,
    /// The weight of a measurement in the short-term round trip.
    pub short_gain: f64,
    /// The weight of a measurement in the long-term round trip.
    pub long_gain: f64,
    /// The rate grows only if at least this share of it was used.
    pub used_share: f64,
}

/// Additive increase and multiplicative decrease of a rate, clocked by time, not by
/// acknowledgements.
///
/// ```text
/// sample        SRTT += δ · (sample − SRTT)        Var += δ · (|sample − SRTT| − Var)        δ = rtt_gain
///               first: SRTT = IPG = sample
/// every SRTT    IPG = IPG · SRTT / (SRTT + α · IPG)         one more packet per round trip for α = 1
/// loss event    IPG = IPG / β                               the next step follows one SRTT later
/// lost          three later packets arrived, or the timeout
/// timeout       μ · SRTT + φ · Var after the oldest packet in flight left; it is a loss event
/// gap           IPG, or with fine_grain IPG · FRTT / XRTT
/// ```
///
/// IPG is the inter-packet gap, from start to start, in seconds. All losses of packets that left
/// before the reaction to a loss belong to the same cluster and are ignored. RAP has no slow start:
/// the first packets leave at one per second until an acknowledgement arrives, then at one per
/// round trip.
///
/// The receiver acknowledges each packet ([`EveryPacket`](crate::controllers::EveryPacket)), as in
/// the paper. The timeout is little longer than a round trip, so delayed acknowledgements would
/// cause timeouts.
///
/// Source: Rejaie, Handley and Estrin, "RAP: An End-to-end Rate-based Congestion Control Mechanism
/// for Realtime Streams in the Internet", INFOCOM 1999. The constants are those of ns-2 2.35, whose
/// agent produced the reference rows. This controller detects losses by these rules, from the
/// packets that the transport reports as arrived. It ignores the transport's own loss detection
/// (RFC 9002), except a mark, which is a loss event as in RFC 3168.
///
/// Differs from the paper and ns-2 in: 1. every arrival counts, in any order, where the receiver of
/// the paper reports only the last hole; 2. an unused rate does not grow (`used_share`), and an
/// idle flow's clock restarts with its next packet; 3. ns-2 checks the timer when a packet is due,
/// and skips that packet if it finds a loss; 4. in ns-2 all agents of a run share one flag of the
/// first measurement, so all but one of them approach the round trip from 2 s, by halves; 5. the
/// next packet leaves by the current gap, where ns-2's leaves by the gap at the packet before it,
/// so one more packet leaves right after a reaction; 6. ns-2 declares a packet lost when a number
/// three above its own arrives, whatever is missing between them; 7. without an acknowledgement,
/// ns-2's second packet leaves 2 s after the first, and its clock of round trips runs from the
/// start.
#[derive(Clone, Debug)]
pub struct Rap {
    config: RapConfig,
    /// The measured round trip, in seconds; `None` before the first sample.
    round_trip: Option<RoundTrip>,
    /// The gap between starts of packets, in seconds.
    gap: f64,
    /// When the flow last reacted to a loss event.
    reacted_at: Option<Time>,
    /// When the next increase is due.
    step_at: Option<Time>,
    /// The packets since the last reaction.
    history: History,
    /// When the last acknowledgement arrived.
    acked_at: Time,
    /// Packets since the last increase.
    sent: u32,
    has_lost: bool,
    /// The size of a full packet on the wire.
    wire: DataSize,
    decision: Decision,
}

#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    smoothed: f64,
    variation: f64,
    short: f64,
    long: f64,
}

impl Rap {
    /// Creates the controller of a flow that has sent nothing yet.
    pub fn new(config: RapConfig) -> Self {
        let mut controller = Self {
            config,
            round_trip: None,
            gap: INITIAL_GAP,
            reacted_at: None,
            step_at: None,
            history: History::default(),
            acked_at: Time::ZERO,
            sent: 0,
            has_lost: false,
            wire: config.mss,
            decision: Decision {
                window: config.max_window,
                ..Decision::default()
            },
        };
        controller.decide();
        controller
    }

    fn smoothed(&self) -> f64 {
        self.round_trip
            .map_or(INITIAL_ROUND_TRIP, |trip| trip.smoothed)
    }

    fn timeout(&self) -> Span {
        let timeout = self.round_trip.map_or(INITIAL_ROUND_TRIP, |trip| {
            self.config.timeout_rtts * trip.smoothed
                + self.config.timeout_variations * trip.variation
        });
        Span::from_secs_f64(timeout).max(MIN_TIME)
    }

    /// When the oldest packet in flight times out. It may already be due if an acknowledgement has
    /// shortened the timeout.
    fn timeout_at(&self) -> Option<Time> {
        let left_at = self.history.oldest()?;
        Some((left_at + self.timeout()).max(self.acked_at))
    }

    fn decide(&mut self) {
        let feedback = match self.round_trip {
            Some(trip) if self.config.fine_grain => trip.short / trip.long,
            _ => 1.0,
        };
        let gap = (self.gap * feedback).clamp(MIN_GAP, MAX_GAP);
        let rate = Rate::from_bps_f64(self.wire.get() as f64 * 8.0 / gap);
        self.decision.pacing = Pacing::Rate(rate.max(Rate::from_bps(1)));
        self.decision.phase = if self.has_lost {
            Phase::CongestionAvoidance
        } else {
            Phase::SlowStart
        };
    }

    fn measure(&mut self, now: Time, sample: f64) {
        let Some(trip) = &mut self.round_trip else {
            self.round_trip = Some(RoundTrip {
                smoothed: sample,
                variation: 0.0,
                short: sample,
                long: sample,
            });
            self.gap = sample.clamp(MIN_GAP, MAX_GAP);
            self.await_step(now);
            return;
        };
        let config = &self.config;
        let difference = sample - trip.smoothed;
        trip.smoothed += config.rtt_gain * difference;
        trip.variation += config.rtt_gain * (difference.abs() - trip.variation);
        trip.short += config.short_gain * (sample - trip.short);
        trip.long += config.long_gain * (sample - trip.long);
    }

    fn await_step(&mut self, now: Time) {
        let smoothed = Span::from_secs_f64(self.smoothed()).max(MIN_TIME);
        self.step_at = Some(now + smoothed);
        self.sent = 0;
    }

    /// Increases the rate after one SRTT without a loss.
    fn step(&mut self, now: Time) {
        let smoothed = self.smoothed();
        let is_used = f64::from(self.sent) * self.gap >= self.config.used_share * smoothed;
        if is_used && self.round_trip.is_some() {
            self.gap *= smoothed / (smoothed + self.config.increase * self.gap);
            self.gap = self.gap.max(MIN_GAP);
        }
        if self.sent == 0 {
            // The next packet restarts the clock.
            self.step_at = None;
        } else {
            self.await_step(now);
        }
    }

    fn react(&mut self, now: Time) {
        self.gap = (self.gap / self.config.decrease).min(MAX_GAP);
        self.reacted_at = Some(now);
        self.has_lost = true;
        // Packets in flight belong to the same cluster.
        self.history.clear();
        self.await_step(now);
        self.decide();
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.acked_at = ack.now;
        if let Some(rtt) = ack.rtt {
            self.measure(ack.now, rtt.max(MIN_TIME).as_secs_f64());
        }
        if self.history.arrived_after_oldest() >= LATER_PACKETS {
            self.react(ack.now);
        }
        self.decide();
    }

    fn on_packet_acked(&mut self, number: PacketNumber) {
        self.history.on_arrived(number);
    }

    /// Reacts to a mark. This controller detects losses by its own rules.
    fn on_loss(&mut self, loss: &Loss) {
        let is_cluster = self.reacted_at.is_some_and(|at| loss.sent_at <= at);
        if loss.cause == LossCause::Mark && !is_cluster {
            self.react(loss.now);
        }
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.sent = self.sent.saturating_add(1);
        if sent.wire > self.wire {
            self.wire = sent.wire;
            self.decide();
        }
        self.history.on_sent(sent.now, sent.number);
        if self.step_at.is_none() && self.round_trip.is_some() {
            self.await_step(sent.now);
            self.sent = 1;
        }
    }

    fn on_wakeup(&mut self, now: Time) {
        if self.timeout_at().is_some_and(|at| at <= now) {
            self.react(now);
        }
        if self.step_at.is_some_and(|at| at <= now) {
            self.step(now);
            self.decide();
        }
    }
}

impl Controller for Rap {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Sent(sent) => self.on_sent(sent),
            Event::PacketAcked { number, .. } => self.on_packet_acked(number),
            Event::Ack(ack) => self.on_ack(ack),
            Event::Loss(loss) => self.on_loss(loss),
            Event::Wakeup(now) => self.on_wakeup(now),
            _ => {}
        }
    }

    fn decision(&self) -> Decision {
        let times = [self.step_at, self.timeout_at()];
        Decision {
            wakeup: times.into_iter().flatten().min(),
            ..self.decision
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            packet_numbers: true,
            ..Needs::default()
        }
    }
}

/// The number of later packets that prove a loss.
const LATER_PACKETS: usize = 3;

/// The assumed round trip before the first sample, in seconds.
const INITIAL_ROUND_TRIP: f64 = 2.0;

/// The gap before the first acknowledgement, in seconds: one step from the initial round trip.
const INITIAL_GAP: f64 = 1.0;

/// The shortest gap, in seconds.
const MIN_GAP: f64 = 1e-9;

/// The longest gap, in seconds.
const MAX_GAP: f64 = 64.0;

/// The shortest step and timeout, so that time advances.
const MIN_TIME: Span = Span::from_micros(1);

#[cfg(test)]
mod tests;
