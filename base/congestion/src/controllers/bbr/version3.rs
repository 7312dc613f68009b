//! BBR version 3, as in its draft.

mod bounds;
mod cycle;
mod losses;
mod model;
mod probe_bw;

use comity_units::{DataSize, Rate, Span, Time};

pub use self::model::{Bbr3, Bbr3Config};
use self::model::{STARTUP_GAIN, State};
use super::{FULL_GROWTH, FULL_ROUNDS, ProbeRtt, rate};
use crate::{
    Ack, Controller, Decision, Event, Loss, LossCause, Needs, PacketLoss, Phase, RateSample, Sent,
};

const FULL_LOSSES: u32 = 6;
const DRAIN_ROUNDS: u64 = 3;
const EXCESS_ROUNDS: u64 = 10;
const MIN_RTT_WINDOW: Span = Span::from_secs(10);
const PROBE_RTT_TIME: Span = Span::from_millis(200);

impl Bbr3 {
    fn update_bandwidth(&mut self, sample: &RateSample) {
        self.rounds.began = false;
        if !sample.has_rate() {
            return;
        }
        if self.rounds.on_sample(sample) {
            self.cycle.rounds += 1;
            self.limited = [self.limited[1], false];
        }
        let rate = rate(sample);
        if !self.probe_rtt.is_limited(sample) || rate >= self.max_bandwidth() {
            self.max_bandwidth[1] = self.max_bandwidth[1].max(rate);
        }
    }

    fn update_excess(&mut self, now: Time, sample: &RateSample) {
        let window = match self.full.is_reached {
            true => EXCESS_ROUNDS,
            false => 1,
        };
        let acked = sample.newly_delivered.get() as f64;
        let excess = self.epoch.on_ack(now, acked, self.bandwidth);
        self.excess.set_window(window);
        self.excess
            .update(self.rounds.count, excess.min(self.window));
    }

    fn check_full_bandwidth(&mut self, sample: &RateSample) {
        if self.full.is_now || !self.rounds.began || self.probe_rtt.is_limited(sample) {
            return;
        }
        let rate = rate(sample);
        if rate >= FULL_GROWTH * self.full.bandwidth {
            self.full.reset(rate);
            return;
        }
        self.full.rounds += 1;
        self.full.is_now = self.full.rounds >= FULL_ROUNDS;
        self.full.is_reached |= self.full.is_now;
    }

    fn check_startup(&mut self, sample: &RateSample) {
        if !self.full.is_reached {
            self.check_startup_losses(sample);
        }
        if self.state == State::Startup && self.full.is_reached {
            self.state = State::Drain;
            self.drain_began = self.rounds.count;
        }
    }

    /// Losses in a round of recovery may show a full path before the bandwidth does.
    fn check_startup_losses(&mut self, sample: &RateSample) {
        self.bounds.losses_in_round += u32::from(sample.newly_lost > DataSize::ZERO);
        if !self.bounds.round_began {
            return;
        }
        let is_lossy = self.is_recovering
            && self.bounds.losses_in_round >= FULL_LOSSES
            && self.is_too_high(sample.lost, sample.sent_in_flight);
        if is_lossy {
            self.undo.state = Some(State::Startup);
            self.full.is_reached = true;
            let safe = self.product(self.bandwidth);
            self.bounds.inflight_longterm = safe.max(self.bounds.inflight_latest);
        }
        self.bounds.losses_in_round = 0;
    }

    fn check_drain(&mut self, now: Time, sample: &RateSample) {
        if self.state != State::Drain {
            return;
        }
        let target = self.with_bursts(self.product(self.bandwidth));
        let is_drained = sample.in_flight.get() as f64 <= target;
        if is_drained || self.rounds.count > self.drain_began + DRAIN_ROUNDS {
            self.start_down(now);
        }
    }

    fn update_min_rtt(&mut self, now: Time, rtt: Option<Span>) {
        let (_, recent_at) = self.min_rtt.recent.unwrap_or((Span::MAX, now));
        self.min_rtt.is_expired = now > recent_at + self.config.probe_rtt_interval;
        let Some(rtt) = rtt else {
            return;
        };
        let is_expired = self.min_rtt.is_expired;
        let recent = match self.min_rtt.recent {
            Some(recent) if rtt >= recent.0 && !is_expired => recent,
            _ => (rtt, now),
        };
        self.min_rtt.recent = Some(recent);
        let is_newer = |(least, at): (Span, Time)| recent.0 < least || now > at + MIN_RTT_WINDOW;
        if self.min_rtt.least.is_none_or(is_newer) {
            self.min_rtt.least = Some(recent);
        }
    }

    fn check_probe_rtt(&mut self, now: Time, sample: &RateSample) {
        if self.state != State::ProbeRtt && self.min_rtt.is_expired && !self.is_restarting {
            self.save_window();
            self.state = State::ProbeRtt;
            self.probe_rtt = ProbeRtt::begin(self.totals.delivered);
            self.cycle.stop_probing();
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.go_on_with_probe_rtt(now, sample);
        }
        if sample.has_rate() {
            self.is_restarting = false;
        }
    }

    fn probe_rtt_window(&self) -> f64 {
        let half = State::ProbeRtt.cwnd_gain() * self.product(self.bandwidth);
        half.max(self.min_window())
    }

    fn go_on_with_probe_rtt(&mut self, now: Time, sample: &RateSample) {
        let most = self.probe_rtt_window();
        let probe = &mut self.probe_rtt;
        if probe.on_sample(now, sample, most, PROBE_RTT_TIME, &mut self.rounds) {
            self.check_probe_rtt_done(now);
        }
    }

    fn check_probe_rtt_done(&mut self, now: Time) {
        if !self.probe_rtt.is_over(now) {
            return;
        }
        if let Some((_, at)) = &mut self.min_rtt.recent {
            *at = now;
        }
        self.restore_window();
        self.bounds.end_shortterm();
        if self.full.is_reached {
            self.start_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }

    fn set_window(&mut self, sample: &RateSample) {
        let acked = sample.newly_delivered.get() as f64;
        let target = self.state.cwnd_gain() * self.product(self.bandwidth) + self.excess.max();
        let target = self.with_bursts(target);
        let is_new = self.totals.delivered < self.config.initial_window.get();
        if self.full.is_reached {
            self.window = (self.window + acked).min(target);
        } else if self.window < target || is_new {
            self.window += acked;
        }
        self.window = self.window.max(self.min_window());
        if self.state == State::ProbeRtt {
            self.window = self.window.min(self.probe_rtt_window());
        }
        let cap = match self.state {
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
            State::Down | State::Refill | State::Up => self.bounds.inflight_longterm,
        };
        let cap = cap.min(self.bounds.inflight_shortterm);
        self.window = self.window.min(cap.max(self.min_window()));
        self.limit_window();
    }

    fn limit_window(&mut self) {
        let most = self.config.max_window.get() as f64;
        self.window = self.window.min(most).max(self.output.mss);
    }

    fn take_first_rtt(&mut self, rtt: Option<Span>) {
        if let (false, Some(rtt)) = (self.has_seen_rtt, rtt) {
            self.has_seen_rtt = true;
            self.output.begin(self.window, rtt, STARTUP_GAIN);
        }
    }

    fn set_pacing(&mut self, gain: f64) {
        self.output.set(self.bandwidth, gain, self.full.is_reached);
    }

    fn on_ack(&mut self, ack: &Ack) {
        let Some(sample) = &ack.sample else {
            self.take_first_rtt(ack.rtt);
            self.update_min_rtt(ack.now, ack.rtt);
            return;
        };
        let now = ack.now;
        self.totals.delivered = sample.total_delivered.get();
        if self.is_recovering && !ack.in_recovery {
            self.restore_window();
        }
        self.is_recovering = ack.in_recovery;
        self.update_latest(sample);
        self.update_bandwidth(sample);
        self.adapt_lower_bounds();
        self.update_excess(now, sample);
        self.check_full_bandwidth(sample);
        self.check_startup(sample);
        self.check_drain(now, sample);
        self.update_cycle(now, sample);
        self.update_min_rtt(now, sample.rtt);
        self.check_probe_rtt(now, sample);
        self.advance_latest(sample);
        self.bandwidth = self.max_bandwidth().min(self.bounds.bandwidth_shortterm);
        self.take_first_rtt(sample.rtt);
        self.set_pacing(self.state.pacing_gain());
        self.set_window(sample);
    }

    fn on_packet_lost(&mut self, now: Time, loss: &PacketLoss) {
        self.note_loss(loss.total_delivered);
        if self.cycle.is_probe_sample && self.is_too_high(loss.lost, loss.sent_in_flight) {
            let inflight = self.inflight_at_loss(loss);
            self.on_too_high(now, inflight, loss.app_limited);
        }
    }

    fn on_sent(&mut self, sent: &Sent) {
        let is_first = sent.in_flight <= sent.payload;
        if is_first && (self.output.ran_dry || self.state == State::ProbeRtt) {
            self.is_restarting = true;
            self.epoch.restart(sent.now);
            if self.state.is_probe_bw() {
                self.set_pacing(1.0);
            } else if self.state == State::ProbeRtt {
                self.check_probe_rtt_done(sent.now);
            }
        }
        self.limited[1] |= sent.in_flight.get() as f64 + self.output.mss > self.window;
        self.output.on_sent(sent);
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.cause != LossCause::Mark {
            self.save_window();
            self.save_state();
        }
    }

    fn on_timeout(&mut self) {
        self.save_window();
        self.save_state();
        self.window = self.output.mss;
        self.is_recovering = true;
    }

    fn on_spurious_loss(&mut self) {
        self.restore_window();
        self.limit_window();
        self.full.reset(0.0);
        self.undo_bounds();
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full.is_reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if self.state != State::Up && self.state != State::ProbeRtt => {
                self.start_refill();
            }
            _ => {}
        }
    }
}

impl Controller for Bbr3 {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Sent(sent) => self.on_sent(sent),
            Event::PacketLost { now, loss } => self.on_packet_lost(now, loss),
            Event::Ack(ack) => self.on_ack(ack),
            Event::Loss(loss) => self.on_loss(loss),
            Event::Timeout(_) => self.on_timeout(),
            Event::SpuriousLoss { .. } => self.on_spurious_loss(),
            _ => {}
        }
    }

    fn decision(&self) -> Decision {
        Decision {
            window: DataSize::new(self.window as u64).max(self.config.mss),
            pacing: self.output.pacing(),
            phase: match self.state {
                State::Startup => Phase::SlowStart,
                State::Cruise | State::Refill => Phase::Steady,
                _ => Phase::Probing,
            },
            ..Decision::default()
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            rate_samples: true,
            ..Needs::default()
        }
    }

    fn capacity(&self) -> Option<Rate> {
        let bandwidth = self.max_bandwidth();
        (bandwidth > 0.0).then(|| Rate::from_bps_f64(bandwidth * 8.0))
    }
}
