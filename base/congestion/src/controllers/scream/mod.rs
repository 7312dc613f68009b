//! SCReAMv2, the self-clocked rate adaptation for multimedia: a reference window that follows
//! losses, marks and the queueing delay, and a target for the encoder.
//!
//! ```text
//! window   3 · w                                             w: the reference window
//! target   8 · w / s_rtt · small / 1.2                       within [min_rate, max_rate]
//! small    1 − (MSS / w − 0.1)                               within [0.8, 1]
//! pacing   1.5 · max( 50 kb/s, target ) / relax
//! relax    1 − ( target / max_rate − 0.8 ) / 0.2             within [1/4, 1]
//! ```
//!
//! w (`ReferenceWindow`) opens by a segment in a round trip and by 2 % of it. It falls by three
//! tenths at a loss, by a fifth or by the share of marks at a mark, and by the queueing delay above
//! half of its target.
//!
//! Source: draft-ietf-ccwg-rfc8298bis-screamv2-01, sections 4.2 to 4.4 and 4.5.4. Constants that it
//! leaves open are those of Ericsson's implementation, as the code says.
//!
//! Differs from the draft in: 1. losses are found by the transport (RFC 9002), not by a reordering
//! window, and lost bytes do not count as acknowledged; 2. the bytes in flight are the transport's:
//! those that are neither acknowledged nor lost; 3. before the first round trip is measured,
//! packets leave at 1 Mb/s (the draft's first `pace_bitrate`) and there is no target; 4. a
//! persistent congestion of the transport (RFC 9002, section 7.6) counts as a loss; 5.
//! `last_congestion_detected_time` and similar times are "never" at first, not zero.
//!
//! Left out: `rate_adjust_factor` and `frame_size_dev` (4.4, suggested examples), because a
//! controller sees neither the queue of the source nor its frames; the compensation for packet
//! headers (4.4), because the transport subtracts all headers from the target; `REDUCE_JITTER`
//! (4.2.1.4, off in the draft), so that the window of the flow is always 3 · w; the compensation of
//! clock drift (4.5.1), because packets of one simulation have one clock; the conditional reactions
//! to losses and policers and to an undershoot (4.5.2 and 4.5.3, optional).

mod queue_delay;
mod window;

use comity_units::{DataSize, PacketNumber, Rate, Span, Time};

use self::queue_delay::{DelayTarget, QueueDelay};
use self::window::{Feedback, ReferenceWindow, VIRTUAL_RTT};
use super::arrivals::Arrivals;
use crate::{Ack, Arrived, Controller, Decision, Event, Needs, Pacing, Phase, Sent};

/// The configuration of [`Scream`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScreamConfig {
    /// The payload of a full packet.
    pub mss: DataSize,
    /// The most that may be in flight.
    pub max_window: DataSize,
    /// `TARGET_BITRATE_MIN`, above zero.
    pub min_rate: Rate,
    /// `TARGET_BITRATE_MAX`, at least the minimum.
    pub max_rate: Rate,
    /// `IS_L4S`: whether the share of marks counts, or a mark as in classic ECN.
    pub is_l4s: bool,
    /// `QDELAY_TARGET_LO`, above zero.
    pub delay_target: Span,
    /// Whether the target of the queueing delay rises beside flows that fill the queue.
    pub adapts_target: bool,
}

/// The sender of SCReAMv2, described in [the module](crate::controllers::scream).
#[derive(Clone, Debug)]
pub struct Scream {
    config: ScreamConfig,
    arrivals: Arrivals,
    delay: QueueDelay,
    target: DelayTarget,
    window: ReferenceWindow,
    /// `s_rtt`, in seconds.
    rtt: Option<f64>,
    /// `target_bitrate`, in bit/s.
    rate: Option<f64>,
}

impl Scream {
    /// Creates the controller of a flow that has sent nothing yet.
    pub fn new(config: ScreamConfig) -> Self {
        Self {
            arrivals: Arrivals::default(),
            delay: QueueDelay::default(),
            target: DelayTarget::new(config.delay_target.as_secs_f64(), config.adapts_target),
            window: ReferenceWindow::new(config.mss.get() as f64, config.is_l4s),
            rtt: None,
            rate: None,
            config,
        }
    }

    /// `ref_wnd`: the reference window.
    pub fn reference_window(&self) -> DataSize {
        DataSize::new(self.window.get() as u64)
    }

    fn rtt(&self) -> f64 {
        self.rtt.unwrap_or(VIRTUAL_RTT)
    }

    fn max_rate(&self) -> f64 {
        self.config.max_rate.as_bps() as f64
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.arrivals.on_sent(sent);
        let bytes = sent.in_flight.get() as f64;
        self.window.on_flight(sent.now, bytes, self.rtt());
    }

    fn on_packet_acked(&mut self, now: Time, number: PacketNumber, arrived: Option<Arrived>) {
        if let Some(packet) = self.arrivals.on_acked(number)
            && let Some(arrived) = arrived
        {
            self.delay.on_arrival(now, packet.sent_at, arrived.at);
        }
    }

    fn on_loss(&mut self) {
        self.window.on_loss();
        self.target.on_loss();
    }

    fn on_ack(&mut self, ack: &Ack) {
        if let Some(sample) = ack.rtt {
            let sample = sample.max(MIN_RTT).as_secs_f64();
            self.rtt = Some(match self.rtt {
                Some(rtt) => rtt + (sample - rtt) * RTT_GAIN,
                None => sample,
            });
        }
        let Some(rtt) = self.rtt else {
            return;
        };
        self.delay.average_at(ack.now, rtt.min(VIRTUAL_RTT));
        self.target.on_delay(ack.now, self.delay.latest(), rtt);
        let feedback = Feedback {
            now: ack.now,
            acked: ack.acked.get() as f64,
            packets: ack.packets,
            marked: ack.marked,
            rtt,
        };
        let may_grow = self.rate.is_none_or(|rate| rate < self.max_rate())
            && self.window.get() < self.config.max_window.get() as f64;
        self.window
            .on_feedback(&feedback, &self.delay, self.target.get(), may_grow);
        self.rate = Some(self.target_rate(rtt));
    }

    /// `target_bitrate`.
    fn target_rate(&self, rtt: f64) -> f64 {
        let small = 1.0 - (self.window.ratio() - 0.1).clamp(0.0, 0.2);
        let rate = small / RATE_MARGIN * 8.0 * self.window.get() / rtt;
        let min = self.config.min_rate.as_bps() as f64;
        rate.min(self.max_rate()).max(min)
    }

    /// `pace_bitrate`.
    fn pace(&self) -> f64 {
        let Some(rate) = self.rate else {
            return INITIAL_PACE;
        };
        let relax = 1.0 - (rate / self.max_rate() - RELAXED_FROM) / (1.0 - RELAXED_FROM);
        rate.max(MIN_PACE) * PACING_HEADROOM / relax.clamp(MIN_RELAX, 1.0)
    }
}

impl Controller for Scream {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Sent(sent) => self.on_sent(sent),
            Event::PacketAcked {
                now,
                number,
                arrived_at,
            } => self.on_packet_acked(now, number, arrived_at),
            Event::PacketLost { .. } | Event::Timeout(_) => self.on_loss(),
            Event::Ack(ack) => self.on_ack(ack),
            _ => {}
        }
    }

    fn decision(&self) -> Decision {
        let window = DataSize::new((self.window.get() * WINDOW_OVERHEAD) as u64);
        Decision {
            window: window.min(self.config.max_window),
            pacing: Pacing::Rate(Rate::from_bps_f64(self.pace())),
            target: self.rate.map(Rate::from_bps_f64),
            phase: Phase::CongestionAvoidance,
            ..Decision::default()
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            rate_samples: true,
            packet_numbers: true,
            ..Needs::default()
        }
    }
}

/// REF_WND_OVERHEAD_MAX, for a delay without jitter.
const WINDOW_OVERHEAD: f64 = 3.0;

/// The divisor of the target that leaves a part of the rate unused.
const RATE_MARGIN: f64 = 1.2;

/// The first `pace_bitrate`, in bit/s.
const INITIAL_PACE: f64 = 1e6;

/// RATE_PACE_MIN, in bit/s.
const MIN_PACE: f64 = 50e3;

/// PACKET_PACING_HEADROOM.
const PACING_HEADROOM: f64 = 1.5;

/// RELAXED_PACING_LIMIT_LOW.
const RELAXED_FROM: f64 = 0.8;

/// 1 / MAX_RELAXED_PACING_FACTOR.
const MIN_RELAX: f64 = 0.25;

/// The weight of a measurement in `s_rtt`, as in RFC 6298.
const RTT_GAIN: f64 = 1.0 / 8.0;

/// The shortest round trip, so that the target is finite.
const MIN_RTT: Span = Span::from_micros(1);

#[cfg(test)]
mod tests;
