//! The phases of ProbeBW: down, cruise, refill, up.

use comity_units::{Span, Time};
use rand_xoshiro::rand_core::Rng;

use super::super::rate;
use super::cycle::Feedback;
use super::model::{Bbr3, State};
use crate::RateSample;

/// The most rounds between probes. A Reno flow with n segments in flight would probe after n
/// rounds.
const MAX_RENO_ROUNDS: f64 = 63.0;
const MIN_WAIT: Span = Span::from_secs(2);
const MAX_UP_ROUNDS: u32 = 30;

impl Bbr3 {
    pub(super) fn update_cycle(&mut self, now: Time, sample: &RateSample) {
        if !self.full.is_reached || self.adapt_longterm(sample) {
            return;
        }
        if self.state == State::Up && self.is_time_to_go_down(sample) {
            self.cycle.was_too_high = false;
            self.start_down(now);
            return;
        }
        match self.state {
            State::Down if self.is_time_to_probe(now) => self.start_refill(),
            State::Down if self.is_time_to_cruise(sample) => self.state = State::Cruise,
            State::Cruise if self.is_time_to_probe(now) => self.start_refill(),
            State::Refill if self.rounds.began => {
                self.cycle.is_probe_sample = true;
                self.start_up(sample);
            }
            _ => {}
        }
    }

    /// Adapts the long-term bound. Returns whether that changed the state.
    fn adapt_longterm(&mut self, sample: &RateSample) -> bool {
        if self.rounds.began {
            match self.cycle.feedback {
                Feedback::Starting => self.cycle.feedback = Feedback::Probe,
                Feedback::Stopping => {
                    self.cycle.is_probe_sample = false;
                    self.cycle.feedback = Feedback::Nothing;
                    if self.state.is_probe_bw() {
                        if !self.probe_rtt.is_limited(sample) {
                            self.max_bandwidth = [self.max_bandwidth[1], 0.0];
                        }
                        if self.cycle.was_cautious && !self.cycle.was_too_high {
                            self.start_refill();
                            return true;
                        }
                    }
                }
                _ => {}
            }
        }
        let bound = self.bounds.inflight_longterm;
        if bound.is_finite() && !self.is_too_high(sample.lost, sample.sent_in_flight) {
            self.bounds.inflight_longterm = bound.max(sample.sent_in_flight.get() as f64);
            if self.state == State::Up {
                self.raise_longterm(sample);
            }
        }
        false
    }

    /// Raises the bound by a segment for each part of a window, a part that halves in each round.
    fn raise_longterm(&mut self, sample: &RateSample) {
        if !self.is_window_limited() || self.window < self.bounds.inflight_longterm {
            return;
        }
        self.cycle.up_acked += sample.newly_delivered.get() as f64;
        let share = self.cycle.acked_per_segment;
        if self.cycle.up_acked >= share {
            let segments = libm::floor(self.cycle.up_acked / share);
            self.cycle.up_acked -= segments * share;
            self.bounds.inflight_longterm += segments * self.output.mss;
        }
        if self.rounds.began {
            self.raise_slope();
        }
    }

    fn raise_slope(&mut self) {
        let growth = f64::from(1_u32 << self.cycle.up_rounds);
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(MAX_UP_ROUNDS);
        self.cycle.acked_per_segment = (self.window / growth).max(self.output.mss);
    }

    fn is_time_to_probe(&self, now: Time) -> bool {
        let reno_rounds = self.target_inflight() / self.output.mss;
        now > self.cycle.began + self.cycle.wait
            || f64::from(self.cycle.rounds) >= reno_rounds.min(MAX_RENO_ROUNDS)
    }

    fn is_time_to_cruise(&self, sample: &RateSample) -> bool {
        let in_flight = sample.in_flight.get() as f64;
        in_flight <= self.inflight_with_headroom()
            && in_flight <= self.with_bursts(self.product(self.max_bandwidth()))
    }

    fn is_time_to_go_down(&mut self, sample: &RateSample) -> bool {
        let bound = self.bounds.inflight_longterm;
        if self.cycle.was_too_high && sample.in_flight.get() as f64 >= bound {
            self.cycle.was_cautious = true;
            return true;
        }
        if self.is_window_limited() && self.window >= bound {
            // The bound limits the flow, not the path.
            self.full.reset(rate(sample));
            return false;
        }
        self.full.is_now
    }

    /// Reacts to too many losses: more is in flight than the path carries.
    pub(super) fn on_too_high(&mut self, now: Time, inflight: f64, app_limited: bool) {
        self.cycle.was_too_high = true;
        self.cycle.is_probe_sample = false;
        if !app_limited {
            let least = self.target_inflight() * self.config.beta;
            self.bounds.inflight_longterm = inflight.max(least);
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(now);
        }
    }

    pub(super) fn start_down(&mut self, now: Time) {
        self.bounds.reset_signals();
        self.cycle.acked_per_segment = f64::INFINITY;
        let draw = self.random.next_u64();
        self.cycle.rounds = u32::from(draw & 1 == 1);
        self.cycle.wait = MIN_WAIT + Span::from_micros((draw >> 1) % 1_000_000);
        self.cycle.began = now;
        self.cycle.stop_probing();
        self.start_round();
        self.state = State::Down;
    }

    pub(super) fn start_refill(&mut self) {
        self.bounds.end_shortterm();
        self.cycle.up_rounds = 0;
        self.cycle.up_acked = 0.0;
        self.cycle.was_cautious = false;
        self.cycle.feedback = Feedback::Refilling;
        self.start_round();
        self.state = State::Refill;
    }

    fn start_up(&mut self, sample: &RateSample) {
        self.cycle.feedback = Feedback::Starting;
        self.start_round();
        self.full.reset(rate(sample));
        self.state = State::Up;
        self.raise_slope();
    }
}
