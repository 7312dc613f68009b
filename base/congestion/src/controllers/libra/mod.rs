//! TCP Libra: a window whose growth depends on the round-trip time, for equal rates at any RTT.
//!
//! ```text
//! acknowledgement:  window += 1/window · α · RTT² / (RTT + A)           [segments]
//! three duplicates: window −= window · B / (2 · (RTT + A)),  ssthresh = window
//! timeout:          ssthresh = window / 2,  window = 1                               (figure 2)
//!
//! α = X · C · e^(−Y · β)                                  C in Mb/s, RTT in seconds  (1)
//! β = (RTT − RTT_min) / (RTT_max − RTT_min)                                          (2)
//! ```
//!
//! Growth and reduction balance where `window² = 2 · α · RTT² / (B · p)` at a loss rate of p: the
//! rate `window / RTT = √(2 α / (B p))` does not depend on the RTT. The window opens by up to `α ·
//! RTT² / (RTT + A)` segments in a round trip. This grows with the capacity, so the same share of
//! any link takes the same time to reach.
//!
//! Until the queue of a path has filled once, small effects set the extremes in (2), such as the
//! position of a packet in its pair. β is then arbitrary, until a full queue sets RTT_max. With the
//! defaults the window still grows by at least e^(−Y), an eighth, of its full growth.
//!
//! **Burstiness control.** The round trip is divided into as many intervals as half the window has
//! packets. In each interval a pair of packets leaves at a random time, the second right after the
//! first ([`Pacing::At`]). In slow start there are twice as many intervals, because the window
//! doubles while they pass, and the window limits the flow, not the calendar. Before the first
//! round trip is known nothing is paced. A loss, a timeout and each acknowledgement in a recovery
//! let the next group leave at once. Later retransmissions follow the calendar.
//!
//! **Capacity.** C is configured, or `Capacity` estimates it from the pairs. Before the first pair
//! the window grows as TCP's, by one segment in a round trip. After it the capacity is known or
//! unknown. It is unknown if the pairs may be wrong: with fewer than four, on links that deliver in
//! time slots, if other traffic comes between most pairs, or if the reverse path may have
//! compressed the ACKs. The window then grows by (1) with the rate of the mean dispersion as C, and
//! by one segment in a round trip at most. [`Controller::capacity`] returns `None`.
//!
//! **Sharing.** Behind a queue that drops early and at random, flows reach equal rates from any
//! start (`lab/sim/tests/libra.rs`). Behind a drop-tail queue they need not, because each flow
//! has its own extremes in (2), and its own estimate of C. A flow that begins behind the queue of
//! another takes that queue for a part of the path, so its β is lower at the same queue. One flow
//! may keep several times the rate of the other (`lab/sim/tests/sharing.rs`).
//!
//! Source: Marfia, Palazzi, Pau, Gerla, Sanadidi and Roccetti, Mobimedia 2007, sections 3 and 4.
//!
//! Differs from the paper in: 1. if all round trips were equal, or none was measured, β = 0/0 is 0,
//! and a loss reduces the window as at RTT = 0: by B / 2A, half of it with the defaults; 2. slow
//! start, which figure 2 leaves to TCP, is NewReno's: one segment for each acknowledged one while
//! the window is below the threshold; 3. an acknowledgement is worth no more than that in
//! congestion avoidance either, which only matters to windows below `α · RTT² / (RTT + A)`; 4.
//! window and threshold have floors of one and two segments, and a second timeout in a row leaves
//! the threshold as it is (RFC 5681); 5. the window does not grow during a recovery or while the
//! application sends less than it allows; 6. RTT_min and RTT_max expire after one to two lengths of
//! `memory` (`RttRange`); 7. receivers that acknowledge every f-th packet get groups of f + 1
//! packets while the capacity is estimated, because pairs would not show it; 8. a pair waits until
//! the window has room for both, if two pairs are in flight whose acknowledgements will make room;
//! 9. while the capacity is unknown the window grows by one segment in a round trip, or by less if
//! the mean dispersion says less; 10. the exceptions from the calendar
//! described above: slow start, the first round trip and losses; 11. an acknowledgement counts once
//! or for as many segments as it covers (`increase`), where the paper's receivers answer each; 12.
//! if the recovery requests it, as Tahoe's does, a loss sets the window to one segment and the
//! threshold to the reduced window.

mod calendar;
mod capacity;
mod range;

use comity_units::{DataSize, Rate, Seed, Span, Time};

use super::Increase;
use crate::{
    Ack, Controller, Decision, Event, InOrderAck, Loss, Needs, Pacing, Phase, Sent, Timeout,
};
use calendar::Calendar;
use capacity::Capacity;
use range::RttRange;

/// The configuration of [`Libra`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LibraConfig {
    /// The payload of a full segment.
    pub mss: DataSize,
    /// The window before the first acknowledgement.
    pub initial_window: DataSize,
    /// The slow-start threshold before the first loss.
    pub initial_ssthresh: DataSize,
    /// The maximum window.
    pub max_window: DataSize,
    /// A in seconds, above zero: flows with round trips well below it get equal rates.
    pub a: f64,
    /// B in seconds: the reduction of the window by a loss.
    pub b: f64,
    /// X in segments per second for each Mb/s of capacity: how fast the window grows.
    pub x: f64,
    /// Y: the slowdown of the growth by a full queue.
    pub y: f64,
    /// C; `None` to estimate it.
    pub capacity: Option<Rate>,
    /// The growth for an acknowledgement.
    pub increase: Increase,
    /// Whether packets leave in pairs at random times (burstiness control).
    pub pairs: bool,
    /// After one to two of these times, round trips and pairs expire; [`Span::MAX`] for never.
    pub memory: Span,
    /// The seed of the random times.
    pub seed: Seed,
}

/// The sender of TCP Libra, described in [the module](crate::controllers::libra).
#[derive(Clone, Debug)]
pub struct Libra {
    config: LibraConfig,
    /// In segments.
    window: f64,
    /// In segments.
    ssthresh: f64,
    /// The last round trip.
    rtt: Option<Span>,
    /// The smoothed round trip, for the calendar.
    smoothed: Span,
    range: RttRange,
    capacity: Option<Capacity>,
    calendar: Calendar,
    /// The mean number of packets that an acknowledgement covers.
    covered: f64,
    /// The latest time until which the next group waits for room in the window.
    held_until: Time,
    in_recovery: bool,
    /// The bytes that were outstanding at the last timeout and are not acknowledged yet. On the
    /// byte-sequence transport they count as in flight, but need not be in the network.
    retransmitted: DataSize,
}

impl Libra {
    /// Creates the controller of a flow that has sent nothing yet.
    pub fn new(config: LibraConfig) -> Self {
        let mut controller = Self {
            window: 0.0,
            ssthresh: super::segments(config.initial_ssthresh, config.mss),
            rtt: None,
            smoothed: Span::ZERO,
            range: RttRange::new(config.memory),
            capacity: config
                .capacity
                .is_none()
                .then(|| Capacity::new(config.memory)),
            calendar: Calendar::new(config.seed.derive("libra")),
            covered: 1.0,
            held_until: Time::ZERO,
            in_recovery: false,
            retransmitted: DataSize::ZERO,
            config,
        };
        controller.set_window(super::segments(config.initial_window, config.mss));
        controller
    }

    /// The congestion window in segments.
    pub const fn window(&self) -> f64 {
        self.window
    }

    /// The slow-start threshold in segments.
    pub const fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// The growth of the window in a round trip, in segments: α · RTT² / (RTT + A).
    fn growth(&self, rtt: Span) -> f64 {
        let Some((capacity, is_exact)) = self.known_capacity() else {
            return 1.0;
        };
        let exponent = -self.config.y * self.range.share(rtt);
        let alpha = self.config.x * capacity.as_mbps_f64() * libm::exp(exponent);
        let rtt = rtt.as_secs_f64();
        let growth = alpha * rtt * rtt / (rtt + self.config.a);
        if is_exact { growth } else { growth.min(1.0) }
    }

    /// C, and whether it is exact: configured or confirmed. Otherwise C is the rate of the mean
    /// dispersion.
    fn known_capacity(&self) -> Option<(Rate, bool)> {
        if let Some(configured) = self.config.capacity {
            return Some((configured, true));
        }
        let estimate = self.capacity.as_ref()?.estimate()?;
        Some((estimate.rate, estimate.is_confirmed))
    }

    fn set_window(&mut self, segments: f64) {
        let most = super::segments(self.config.max_window, self.config.mss);
        self.window = segments.min(most).max(1.0);
    }

    fn is_slow_start(&self) -> bool {
        self.window < self.ssthresh
    }

    fn grow(&mut self, ack: &Ack) {
        let covered = ack.acked.get() as f64 / self.config.mss.get().max(1) as f64;
        let slow_start = self.is_slow_start();
        let segments = match self.config.increase {
            Increase::PerAck => 1.0,
            Increase::PerByte { limit } if slow_start => covered.min(f64::from(limit)),
            Increase::PerByte { .. } | Increase::PerSegment => covered,
        };
        let step = match self.rtt {
            _ if slow_start => 1.0,
            Some(rtt) => (self.growth(rtt) / self.window).min(1.0),
            None => 0.0,
        };
        self.set_window(self.window + step * segments);
    }

    /// The number of packets in the next group.
    fn group(&self) -> u32 {
        let room = self.window.min(f64::from(u16::MAX)) as u32;
        let wanted = match &self.capacity {
            None => 2,
            // The average stays below MAX_COVERED.
            Some(_) => 1 + libm::round(self.covered) as u32,
        };
        // At least two groups fit into the window. Otherwise each would wait for the ACKs of the
        // one before.
        wanted.min(room / 2).max(2)
    }

    fn interval(&self) -> Span {
        let rounds = if self.is_slow_start() { 2.0 } else { 1.0 };
        let intervals = (rounds * self.window / f64::from(self.group())).max(1.0);
        self.smoothed.mul_f64(1.0 / intervals)
    }

    const fn is_paced(&self) -> bool {
        self.config.pairs && self.rtt.is_some()
    }

    /// Decides whether the next group waits for room in the window.
    fn hold(&mut self, now: Time, in_flight: DataSize) {
        let group = self.group();
        let flying = super::segments(in_flight, self.config.mss);
        let needed = f64::from(group);
        let waits = self.is_paced()
            && !self.in_recovery
            && self.retransmitted == DataSize::ZERO
            && self.calendar.is_at_beginning()
            && flying >= needed * 2.0
            && flying + needed > self.window;
        self.held_until = if waits {
            now + self.smoothed
        } else {
            Time::ZERO
        };
    }

    fn take_in(&mut self, now: Time, rtt: Span) {
        // An upper bound, so that a wrong measurement does not stop the calendar.
        let rtt = rtt.min(Span::from_secs(120));
        let is_first = self.rtt.is_none();
        self.rtt = Some(rtt);
        self.range.on_sample(now, rtt);
        self.smoothed = if is_first {
            rtt
        } else {
            self.smoothed.mul_f64(0.875) + rtt / 8
        };
        if is_first {
            self.calendar.begin(now, self.interval(), self.group());
        }
    }

    /// Lets the next group leave at once: after a loss, fewer ACKs than packets will arrive.
    fn release(&mut self, now: Time) {
        self.calendar.release(now);
        self.held_until = Time::ZERO;
    }

    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.take_in(ack.now, rtt);
        }
        self.in_recovery = ack.in_recovery;
        self.retransmitted = self.retransmitted.saturating_sub(ack.acked);
        if ack.in_recovery {
            self.release(ack.now);
            return;
        }
        let covered = f64::from(ack.packets).min(MAX_COVERED);
        self.covered += (covered - self.covered) / 8.0;
        if !ack.app_limited {
            self.grow(ack);
        }
        self.hold(ack.now, ack.in_flight);
    }

    fn on_loss(&mut self, loss: &Loss) {
        let rtt = self.rtt.map_or(0.0, Span::as_secs_f64);
        let lost = self.config.b / (2.0 * (rtt + self.config.a));
        self.set_window(self.window * (1.0 - lost));
        self.ssthresh = self.window.max(2.0);
        if loss.restart {
            self.window = 1.0;
        }
        self.in_recovery = true;
        self.release(loss.now);
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        if timeout.consecutive <= 1 {
            self.ssthresh = (self.window / 2.0).max(2.0);
        }
        self.window = 1.0;
        self.in_recovery = false;
        self.retransmitted = timeout.in_flight;
        self.release(timeout.now);
    }

    fn on_in_order_ack(&mut self, answered: &InOrderAck) {
        if let Some(capacity) = &mut self.capacity {
            capacity.on_in_order_ack(answered);
        }
    }

    fn on_sent(&mut self, sent: &Sent) {
        let is_paced = self.is_paced();
        if let Some(capacity) = &mut self.capacity {
            let begins = is_paced && self.calendar.is_at_beginning();
            capacity.on_sent(sent, begins);
        }
        if is_paced && self.calendar.on_sent() {
            self.calendar.draw(sent.now, self.interval(), self.group());
        }
        self.hold(sent.now, sent.in_flight);
    }

    fn on_recovered(&mut self) {
        self.in_recovery = false;
    }

    fn on_deflate(&mut self, amount: DataSize) {
        self.set_window(self.window - super::segments(amount, self.config.mss));
    }
}

impl Controller for Libra {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Sent(sent) => self.on_sent(sent),
            Event::InOrderAck(ack) => self.on_in_order_ack(ack),
            Event::Ack(ack) => self.on_ack(ack),
            Event::Loss(loss) => self.on_loss(loss),
            Event::Recovered => self.on_recovered(),
            Event::Deflated(amount) => self.on_deflate(amount),
            Event::Timeout(timeout) => self.on_timeout(timeout),
            _ => {}
        }
    }

    fn decision(&self) -> Decision {
        let mss = self.config.mss.get() as f64;
        Decision {
            window: DataSize::new((self.window * mss) as u64).max(self.config.mss),
            pacing: if self.is_paced() {
                Pacing::At(self.calendar.next().max(self.held_until))
            } else {
                Pacing::Unpaced
            },
            ssthresh: Some(DataSize::new((self.ssthresh * mss) as u64)),
            phase: if self.is_slow_start() {
                Phase::SlowStart
            } else {
                Phase::CongestionAvoidance
            },
            ..Decision::default()
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            in_order_acks: self.capacity.is_some(),
            ..Needs::default()
        }
    }

    /// C, configured or estimated; `None` if no estimate is confirmed.
    fn capacity(&self) -> Option<Rate> {
        let (rate, is_exact) = self.known_capacity()?;
        is_exact.then_some(rate)
    }
}

/// An acknowledgement of more packets than this follows lost ACKs, and does not show how many
/// packets the receiver acknowledges at once.
const MAX_COVERED: f64 = 8.0;

#[cfg(test)]
mod tests;
