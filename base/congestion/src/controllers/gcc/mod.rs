//! GCC, Google's congestion control for real-time communication: the delay of packets and their
//! losses set a rate. It is the controller of WebRTC.
//!
//! ```text
//!  departures,      groups        m(i)          signal           A = estimate by delay
//!  arrivals ──▶ pre-filter ──▶ filter ──▶ detector ──▶ state machine ──┐
//!                 (5.2)         (5.3)       (5.4)          (5.5)       ├──▶ rate = min( A, A_s )
//!  losses ─────────────────────────────────────────▶ A_s (6) ──────────┘
//! ```
//!
//! `Groups` merges packets and measures by how much the delay changes between groups,
//! `ArrivalFilter` removes the noise, `Detector` decides whether the path is over-used, and
//! `ByDelay` and `by_losses` set the rate.
//!
//! Source: draft-ietf-rmcat-gcc-02, with both controls at the sender (section 3). Constants that it
//! leaves open are those of libwebrtc or of pion's `interceptor`, as the code says.
//!
//! Differs from the draft in: 1. the receiver acknowledges each packet, where the draft's reports
//! once a frame or at least every 100 ms; the arrival of a packet is unknown if its acknowledgement
//! is lost; 2. packets leave one by one at the rate, where section 4 sends at once what the rate
//! allows in 5 ms; 3. the detector compares min(i, 60) · m(i) with its threshold, as libwebrtc and
//! pion do ([`GccConfig::deltas`]). m(i) is the growth of the queue in one group: at twice the
//! capacity a group 5 ms after another adds 5 ms, which is below the minimum threshold; 4. the
//! detector compares with the threshold before it adapts, and a time above 100 ms between groups
//! counts as 100 ms, as in libwebrtc and pion; 5. packets join a group by their arrival for at most
//! 100 ms, as in libwebrtc; 6. an outlier below the estimate is limited as one above it, as in
//! libwebrtc; 7. the limit of 1.5 · R bounds growth and does not lower the estimate, and over-use
//! does not raise it, as in libwebrtc; 8. L(j) is the size on the wire, because the rate is one on
//! the wire; 9. the rate control runs at the end of a group, once in a response time and at once
//! when over-use begins; 10. A_s begins at the rate in use: if A_s grew above that rate, a loss
//! would not lower the rate. It is updated every [`GccConfig::loss_interval`], not at each
//! acknowledgement. 11. a group that ends with a pause of T changes no estimate: R is out of date.
//!
//! Not in the draft, and left out: the probes by which libwebrtc finds the capacity at the start, a
//! reaction to silence, and one to marks (section 9).

mod detector;
mod filter;
mod groups;
mod rate_control;
mod received_rate;

use comity_units::{DataSize, PacketNumber, Rate, Span, Time};

use self::detector::{Detector, Usage};
use self::filter::ArrivalFilter;
use self::groups::Groups;
use self::rate_control::{ByDelay, REACTION_TIME, State, by_losses};
use self::received_rate::ReceivedRate;
use super::arrivals::{Arrivals, Totals};
use crate::{Ack, Arrived, Controller, Decision, Event, Needs, Pacing, Phase};

/// The configuration of [`Gcc`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GccConfig {
    /// The most that may be in flight.
    pub max_window: DataSize,
    /// The rate before the first acknowledgement, limited to the minimum and the maximum.
    pub initial_rate: Rate,
    /// The minimum rate, above zero.
    pub min_rate: Rate,
    /// The maximum rate, at least the minimum.
    pub max_rate: Rate,
    /// χ: the weight of a residual in the variance of the noise, at 30 groups in a second.
    pub chi: f64,
    /// The detector multiplies m(i) by the number of groups, up to this. 1 in the draft.
    pub deltas: u32,
    /// β: the factor on the received rate at over-use.
    pub beta: f64,
    /// T: the time over which the received rate is measured.
    pub window: Span,
    /// The time from one report of losses to the next.
    pub loss_interval: Span,
}

/// The sender of GCC, described in [the module](crate::controllers::gcc).
#[derive(Clone, Debug)]
pub struct Gcc {
    config: GccConfig,
    arrivals: Arrivals,
    received: ReceivedRate,
    groups: Groups,
    filter: ArrivalFilter,
    detector: Detector,
    by_delay: ByDelay,
    /// A_s, in bit/s.
    by_losses: f64,
    /// The last round trip.
    rtt: Span,
    /// When the last packet was acknowledged whose arrival is known.
    acked_at: Time,
    /// When the control by delay runs next.
    update_at: Time,
    /// When the losses count next.
    report_at: Time,
    /// The counts at the last report.
    reported: Totals,
}

impl Gcc {
    /// Creates the controller of a flow that has sent nothing yet.
    pub fn new(config: GccConfig) -> Self {
        let initial = config
            .initial_rate
            .min(config.max_rate)
            .max(config.min_rate)
            .as_bps() as f64;
        Self {
            arrivals: Arrivals::default(),
            received: ReceivedRate::new(config.window),
            groups: Groups::default(),
            filter: ArrivalFilter::new(config.chi),
            detector: Detector::new(config.deltas),
            by_delay: ByDelay::new(config.beta, initial),
            by_losses: initial,
            rtt: Span::ZERO,
            acked_at: Time::ZERO,
            update_at: Time::ZERO,
            report_at: Time::ZERO,
            reported: Totals::default(),
            config,
        }
    }

    /// The rate: the smaller one of both estimates.
    pub fn rate(&self) -> Rate {
        Rate::from_bps_f64(self.by_delay.estimate().min(self.by_losses))
    }

    fn limits(&self) -> (f64, f64) {
        let [min, max] = [self.config.min_rate, self.config.max_rate].map(|it| it.as_bps() as f64);
        (min, max)
    }

    fn on_packet_acked(&mut self, now: Time, number: PacketNumber, arrived: Option<Arrived>) {
        let Some(packet) = self.arrivals.on_acked(number) else {
            return;
        };
        let arrived_at = arrived.map(|arrived| arrived.at);
        let group = arrived_at.and_then(|at| self.groups.on_packet(packet.sent_at, at));
        if let Some(group) = group {
            let mean = self.filter.on_variation(&group);
            let usage = self.detector.on_mean(mean, &group);
            let begins = usage == Usage::Over && self.by_delay.state() != State::Decrease;
            if begins || now >= self.update_at {
                self.control(now, usage);
            }
        }
        // The group ended before this packet, so the rate at its end does not include it.
        self.received.on_arrival(packet.size, arrived_at);
        if arrived_at.is_some() {
            self.acked_at = now;
        }
    }

    /// Runs the control by delay.
    fn control(&mut self, now: Time, usage: Usage) {
        // Without an arrival in the last T, the received rate of that time is unknown.
        let is_paused = now.saturating_since(self.acked_at) >= self.config.window;
        let received = self.received.rate().filter(|_| !is_paused);
        self.by_delay.update(now, usage, received, self.rtt);
        let (min, max) = self.limits();
        self.by_delay.limit(min, max);
        self.update_at = now + REACTION_TIME + self.rtt;
    }

    /// Runs the control by losses.
    fn report(&mut self, now: Time) {
        let totals = self.arrivals.totals();
        let Some(lost) = totals.lost_since(&self.reported) else {
            return;
        };
        self.reported = totals;
        self.report_at = now + self.config.loss_interval;
        let (min, _) = self.limits();
        let in_use = self.by_losses.min(self.by_delay.estimate());
        self.by_losses = by_losses(in_use, lost).max(min);
    }

    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.rtt = rtt;
        }
        if ack.now >= self.report_at {
            self.report(ack.now);
        }
    }
}

impl Controller for Gcc {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Sent(sent) => self.arrivals.on_sent(sent),
            Event::PacketAcked {
                now,
                number,
                arrived_at,
            } => self.on_packet_acked(now, number, arrived_at),
            Event::Ack(ack) => self.on_ack(ack),
            _ => {}
        }
    }

    fn decision(&self) -> Decision {
        Decision {
            window: self.config.max_window,
            pacing: Pacing::Rate(self.rate()),
            target: Some(self.rate()),
            phase: match self.by_delay.state() {
                State::Hold => Phase::Steady,
                State::Increase => Phase::CongestionAvoidance,
                State::Decrease => Phase::Probing,
            },
            ..Decision::default()
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            packet_numbers: true,
            ..Needs::default()
        }
    }
}

#[cfg(test)]
mod tests;
