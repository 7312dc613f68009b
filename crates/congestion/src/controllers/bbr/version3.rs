//! Version 3, as its draft has it.

mod bounds;
mod cycle;

use comity_units::{Bytes, Rate, Seed, Span, Time};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use self::bounds::Bounds;
use self::cycle::Cycle;
use super::aggregation::Epoch;
use super::filter::MaxFilter;
use super::output::Output;
use super::{FULL_GROWTH, FULL_ROUNDS, MIN_WINDOW, NOMINAL_RTT, ProbeRtt, Rounds, Totals, rate};
use crate::{
    Ack, Controller, Decision, Event, Loss, LossCause, Needs, PacketLoss, Phase, RateSample, Sent,
};

/// Settings of [`Bbr3`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bbr3Config {
    /// The payload of a full segment.
    pub mss: Bytes,
    /// The window before the first acknowledgement.
    pub initial_window: Bytes,
    /// The window never rises above this.
    pub max_window: Bytes,
    /// When the flow probes for bandwidth.
    pub seed: Seed,
    /// The share of losses in a round trip beyond which the flow holds too much in flight.
    pub loss_threshold: f64,
    /// What is left at the least of bandwidth and flight after a round trip with losses.
    pub beta: f64,
    /// What part of the flight is left to others, where losses bound it.
    pub headroom: f64,
    /// How long a least round trip may be old before ProbeRTT.
    pub probe_rtt_interval: Span,
}

impl Bbr3Config {
    /// The values of the draft.
    pub const fn draft(mss: Bytes) -> Self {
        Self {
            mss,
            initial_window: Bytes::new(mss.get().saturating_mul(10)),
            max_window: Bytes::MAX,
            seed: Seed::new(0),
            loss_threshold: 0.02,
            beta: 0.7,
            headroom: 0.15,
            probe_rtt_interval: Span::from_secs(5),
        }
    }
}

/// Version 1's model of the path with bounds that losses set, and rarer, shorter probes.
///
/// ```text
/// bw      = min( max( delivery-rate samples of two cycles ), bw_shortterm )
/// pacing  = 0.99 · gain · bw
/// cwnd    = gain · bw · min_rtt + excess of acknowledgements,
///           at most inflight_longterm (less 15 % in Cruise and ProbeRTT) and inflight_shortterm
///
/// Startup         2.77, 2     until bw has grown by less than 25 % in three rounds, or 6 losses and 2 % in a round
/// Drain           0.5,  2     until bw · min_rtt is in flight
/// ProbeBW Down    0.9,  2     until that, and the headroom, are free
/// ProbeBW Cruise  1,    2     for 2 to 3 s, or as many rounds as segments are in flight, 63 at the most
/// ProbeBW Refill  1,    2     for a round
/// ProbeBW Up      1.25, 2.25  until bw stands, or losses exceed 2 % of the flight
/// ProbeRTT        1,    0.5   every 5 s without a lower round trip, for 200 ms and a round
///
/// losses while probing    inflight_longterm = max( flight at the loss, 0.7 · bw · min_rtt )
/// losses elsewhere        bw_shortterm       = max( bw of the round, 0.7 · bw_shortterm ),
///                         inflight_shortterm likewise; both end with Refill
/// ```
///
/// Source: draft-ietf-ccwg-bbr-06.
///
/// Differs from the source in: 1. congestion marks are ignored: the draft has no reaction to
/// them; 2. all transports are taken to tell of each loss, as SACK does; 3. discontiguous losses in
/// Startup are counted by the acknowledgements that show them; 4. the flow counts as limited by its
/// window when that held a packet back in this round or the one before.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    config: Bbr3Config,
    random: Xoshiro256PlusPlus,
    output: Output,
    state: State,
    rounds: Rounds,
    /// The largest sample of the cycle before and of this one.
    max_bandwidth: [f64; 2],
    /// What of that holds now, in bytes a second.
    bandwidth: f64,
    bounds: Bounds,
    cycle: Cycle,
    epoch: Epoch,
    excess: MaxFilter,
    full: FullBandwidth,
    drain_began: u64,
    min_rtt: MinRtt,
    probe_rtt: ProbeRtt,
    /// cwnd in bytes, and what it was before a recovery or ProbeRTT.
    window: f64,
    prior_window: f64,
    is_recovering: bool,
    /// Whether the window held a packet back in this round, and in the one before.
    limited: [bool; 2],
    undo: Undo,
    is_restarting: bool,
    has_seen_rtt: bool,
    totals: Totals,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    const fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    const fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => STARTUP_GAIN,
            Self::Drain => 0.5,
            Self::Down => 0.9,
            Self::Up => 1.25,
            Self::Cruise | Self::Refill | Self::ProbeRtt => 1.0,
        }
    }

    const fn cwnd_gain(self) -> f64 {
        match self {
            Self::Up => 2.25,
            Self::ProbeRtt => 0.5,
            _ => 2.0,
        }
    }
}

/// Whether the path was filled: ever, and in the probe that goes on.
#[derive(Clone, Copy, Debug, Default)]
struct FullBandwidth {
    is_reached: bool,
    is_now: bool,
    bandwidth: f64,
    rounds: u32,
}

impl FullBandwidth {
    /// Begins anew at a bandwidth.
    fn reset(&mut self, bandwidth: f64) {
        *self = Self {
            is_reached: self.is_reached,
            bandwidth,
            ..Self::default()
        };
    }
}

/// The least round trip, and the one of the shorter interval that schedules ProbeRTT.
#[derive(Clone, Copy, Debug, Default)]
struct MinRtt {
    least: Option<(Span, Time)>,
    recent: Option<(Span, Time)>,
    is_expired: bool,
}

/// What a recovery that proves spurious gives back.
#[derive(Clone, Copy, Debug, Default)]
struct Undo {
    state: Option<State>,
    bounds: Bounds,
}

const STARTUP_GAIN: f64 = 2.77;
const FULL_LOSSES: u32 = 6;
const DRAIN_ROUNDS: u64 = 3;
const EXCESS_ROUNDS: u64 = 10;
const MIN_RTT_WINDOW: Span = Span::from_secs(10);
const PROBE_RTT_TIME: Span = Span::from_millis(200);

impl Bbr3 {
    /// A flow that has not sent yet.
    pub fn new(config: Bbr3Config) -> Self {
        let mut output = Output::new(config.mss);
        let initial = config.initial_window.get() as f64;
        output.begin(initial, NOMINAL_RTT, STARTUP_GAIN);
        Self {
            config,
            random: Xoshiro256PlusPlus::seed_from_u64(config.seed.get()),
            output,
            state: State::Startup,
            rounds: Rounds::default(),
            max_bandwidth: [0.0; 2],
            bandwidth: 0.0,
            bounds: Bounds::default(),
            cycle: Cycle::default(),
            epoch: Epoch::default(),
            excess: MaxFilter::new(1),
            full: FullBandwidth::default(),
            drain_began: 0,
            min_rtt: MinRtt::default(),
            probe_rtt: ProbeRtt::default(),
            window: initial.min(config.max_window.get() as f64),
            prior_window: 0.0,
            is_recovering: false,
            limited: [false; 2],
            undo: Undo::default(),
            is_restarting: false,
            has_seen_rtt: false,
            totals: Totals::default(),
        }
    }

    fn max_bandwidth(&self) -> f64 {
        let [before, current] = self.max_bandwidth;
        before.max(current)
    }

    fn min_window(&self) -> f64 {
        MIN_WINDOW * self.output.mss
    }

    /// The product of a bandwidth and the least round trip.
    fn product(&self, bandwidth: f64) -> f64 {
        match self.min_rtt.least {
            None => self.config.initial_window.get() as f64,
            Some((rtt, _)) => bandwidth * rtt.as_secs_f64(),
        }
    }

    /// Makes room for what the hosts at both ends hold.
    fn with_bursts(&self, inflight: f64) -> f64 {
        let bursts = 3.0 * self.output.burst() * self.output.mss;
        let probe = match self.state {
            State::Up => 2.0 * self.output.mss,
            _ => 0.0,
        };
        inflight.max(bursts).max(self.min_window()) + probe
    }

    /// Our part of the path, unless congestion cut the window.
    fn target_inflight(&self) -> f64 {
        self.product(self.bandwidth).min(self.window)
    }

    /// Whether the window is what holds the flow back.
    fn is_window_limited(&self) -> bool {
        self.limited.contains(&true)
    }

    fn start_round(&mut self) {
        self.rounds.end = self.totals.delivered;
    }

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

    /// Losses in a round of a recovery may say that the path is full before the bandwidth does.
    fn check_startup_losses(&mut self, sample: &RateSample) {
        self.bounds.losses_in_round += u32::from(sample.newly_lost > Bytes::ZERO);
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

    fn save_window(&mut self) {
        let is_good = !self.is_recovering && self.state != State::ProbeRtt;
        self.prior_window = if is_good {
            self.window
        } else {
            self.prior_window.max(self.window)
        };
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
            window: Bytes::new(self.window as u64).max(self.config.mss),
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
