//! BBR version 1, as in Linux.

use comity_units::{DataSize, Rate, Seed, Span, Time};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::aggregation::Aggregation;
use super::filter::MaxFilter;
use super::output::Output;
use super::policer::{Policer, Progress, Verdict};
use super::{FULL_GROWTH, FULL_ROUNDS, MIN_WINDOW, NOMINAL_RTT, ProbeRtt, Rounds, Totals, rate};
use crate::{
    Ack, Controller, Decision, Event, Loss, LossCause, Needs, Phase, RateSample, Sent, Timeout,
};

/// The configuration of [`Bbr`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BbrConfig {
    /// The payload of a full segment.
    pub mss: DataSize,
    /// The window before the first acknowledgement.
    pub initial_window: DataSize,
    /// The window never rises above this.
    pub max_window: DataSize,
    /// The seed of the random phase at which the gain cycle begins.
    pub seed: Seed,
    /// The window in ProbeBW, in bandwidth-delay products; at least 1.
    pub cwnd_gain: f64,
    /// The age at which the minimum round trip expires and the flow enters ProbeRTT.
    pub min_rtt_window: Span,
    /// The minimum duration of ProbeRTT.
    pub probe_rtt_time: Span,
    /// Whether the window makes room for aggregated acknowledgements.
    pub aggregation: bool,
    /// Whether the flow detects policers.
    pub policer: bool,
}

impl BbrConfig {
    /// The defaults of Linux.
    pub const fn linux(mss: DataSize) -> Self {
        Self {
            mss,
            initial_window: DataSize::new(mss.get().saturating_mul(10)),
            max_window: DataSize::MAX,
            seed: Seed::new(0),
            cwnd_gain: 2.0,
            min_rtt_window: Span::from_secs(10),
            probe_rtt_time: Span::from_millis(200),
            aggregation: true,
            policer: true,
        }
    }
}

/// Paces at the measured bandwidth, and limits the data in flight to two bandwidth-delay products.
///
/// ```text
/// bw      = max( delivery-rate samples of 10 rounds )      without lower, application-limited ones
/// min_rtt = min( round trips of 10 s )
/// pacing  = 0.99 · gain · bw
/// cwnd    = gain · bw · min_rtt + 3 bursts, rounded up to an even number of segments, at least 4
///
/// Startup    gains 2.887, 2.887   until bw has grown by less than 25 % in three rounds
/// Drain      gains 0.344, 2.887   until one bw · min_rtt is in flight
/// ProbeBW    gains c, 2           c = 1.25, 0.75, then six times 1; each for a min_rtt
/// ProbeRTT   gains 1, cwnd = 4    every 10 s without a lower round trip, for 200 ms and a round
/// ```
///
/// Losses do not change bandwidth or round trip. In the first round of a fast recovery the flow
/// follows packet conservation. In the next round the window grows, and after the recovery it has
/// its former size. If the acknowledgement that ends a recovery begins another, the window
/// continues to grow. A timeout sets the window to one segment.
///
/// Source: Linux, net/ipv4/tcp_bbr.c (`bbr`, version 1), and N. Cardwell and others, "BBR:
/// congestion-based congestion control", ACM Queue 14 (2016).
///
/// Differs from the source in: 1. real numbers replace fixed-point numbers and clock ticks of a
/// millisecond or more; 2. amounts are bytes over the segment size, so a small packet counts as
/// such; 3. losses detected by a timer count with the next acknowledgement; 4. this controller
/// recognises samples that ProbeRTT lowered, where Linux marks them at the socket; 5. a burst is
/// 1/1024 s of the rate, at least two segments, even if the transport sends no bursts: the window
/// still has room for three; 6. a minimum round trip below 16 ms does not make bursts larger.
#[derive(Clone, Debug)]
pub struct Bbr {
    config: BbrConfig,
    random: Xoshiro256PlusPlus,
    output: Output,
    mode: Mode,
    cycle: usize,
    cycle_began: Time,
    rounds: Rounds,
    bandwidth: MaxFilter,
    /// The minimum round trip.
    min_rtt: Option<Span>,
    /// When the minimum round trip was measured.
    min_rtt_at: Option<Time>,
    probe_rtt: ProbeRtt,
    full: FullBandwidth,
    /// cwnd, in segments.
    window: f64,
    /// cwnd before a recovery or ProbeRTT, in segments.
    prior_window: f64,
    repair: Repair,
    /// Whether the flow follows packet conservation.
    is_conserving: bool,
    policer: Policer,
    aggregation: Aggregation,
    is_restarting: bool,
    has_seen_rtt: bool,
    totals: Totals,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// Whether the flow has filled the path in Startup.
#[derive(Clone, Copy, Debug, Default)]
struct FullBandwidth {
    is_reached: bool,
    bandwidth: f64,
    rounds: u32,
}

/// The loss recovery at the last acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    Nothing,
    /// A fast recovery.
    Loss,
    Timeout,
}

/// 2/ln 2, in the 256ths of Linux: the minimum gain that doubles the rate each round trip.
const HIGH_GAIN: f64 = 739.0 / 256.0;
const DRAIN_GAIN: f64 = 88.0 / 256.0;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The gain cycle begins in any phase except the one with 0.75.
const STARTING_PHASES: u64 = 7;
const BANDWIDTH_ROUNDS: u64 = 10;
/// The window before the first round trip, in segments.
const UNMEASURED_WINDOW: f64 = 10.0;
/// The most room for aggregated acknowledgements, in seconds of the bandwidth.
const MAX_EXCESS_SECONDS: f64 = 0.1;

impl Bbr {
    /// Creates the controller of a flow that has sent nothing yet.
    pub fn new(config: BbrConfig) -> Self {
        let mut output = Output::new(config.mss);
        output.begin(config.initial_window.get() as f64, NOMINAL_RTT, HIGH_GAIN);
        let segments = |amount| crate::controllers::segments(amount, config.mss);
        Self {
            config,
            random: Xoshiro256PlusPlus::seed_from_u64(config.seed.get()),
            output,
            mode: Mode::Startup,
            cycle: 0,
            cycle_began: Time::ZERO,
            rounds: Rounds::default(),
            bandwidth: MaxFilter::new(BANDWIDTH_ROUNDS),
            min_rtt: None,
            min_rtt_at: None,
            probe_rtt: ProbeRtt::default(),
            full: FullBandwidth::default(),
            window: segments(config.initial_window)
                .min(segments(config.max_window))
                .max(1.0),
            prior_window: 0.0,
            repair: Repair::Nothing,
            is_conserving: false,
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            is_restarting: false,
            has_seen_rtt: false,
            totals: Totals::default(),
        }
    }

    /// The bandwidth of the path, in bytes per second; zero before the first sample.
    fn estimate(&self) -> f64 {
        self.policer
            .bandwidth()
            .unwrap_or_else(|| self.bandwidth.max())
    }

    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBw if self.policer.bandwidth().is_some() => 1.0,
            Mode::ProbeBw => CYCLE.get(self.cycle).copied().unwrap_or(1.0),
            Mode::ProbeRtt => 1.0,
        }
    }

    const fn cwnd_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBw => self.config.cwnd_gain,
            Mode::ProbeRtt => 1.0,
        }
    }

    fn segments(&self, amount: DataSize) -> f64 {
        amount.get() as f64 / self.output.mss
    }

    /// `gain` bandwidth-delay products, in whole segments.
    fn products(&self, bandwidth: f64, gain: f64) -> f64 {
        match self.min_rtt {
            None => UNMEASURED_WINDOW,
            Some(rtt) => libm::ceil(gain * bandwidth * rtt.as_secs_f64() / self.output.mss),
        }
    }

    /// Adds room for the hosts: three bursts, and an even number for delayed acknowledgements.
    fn with_bursts(&self, segments: f64) -> f64 {
        let even = libm::ceil((segments + 3.0 * self.output.burst()) / 2.0) * 2.0;
        let is_probing = self.mode == Mode::ProbeBw && self.cycle == 0;
        even + if is_probing { 2.0 } else { 0.0 }
    }

    fn target(&self, gain: f64) -> f64 {
        self.with_bursts(self.products(self.bandwidth.max(), gain))
    }

    /// The segments in the network when the next burst leaves.
    fn in_network(&self, now: Time, in_flight: DataSize) -> f64 {
        let delivered = self.output.delivered_by_next(now, self.estimate()) / self.output.mss;
        let burst = if self.pacing_gain() > 1.0 {
            self.output.burst()
        } else {
            0.0
        };
        (self.segments(in_flight) + burst - libm::floor(delivered)).max(0.0)
    }

    fn update_bandwidth(&mut self, now: Time, sample: &RateSample) {
        self.rounds.began = false;
        if !sample.has_rate() {
            return;
        }
        if self.rounds.on_sample(sample) {
            self.is_conserving = false;
        }
        let app_limited = self.probe_rtt.is_limited(sample);
        self.look_for_policer(now, sample.newly_lost > DataSize::ZERO, app_limited);
        let rate = rate(sample);
        if !app_limited || rate >= self.bandwidth.max() {
            self.bandwidth.update(self.rounds.count, rate);
        }
    }

    fn look_for_policer(&mut self, now: Time, has_loss: bool, app_limited: bool) {
        if !self.config.policer {
            return;
        }
        let verdict = self.policer.on_ack(&Progress {
            now,
            delivered: self.totals.delivered,
            lost: self.totals.lost,
            has_loss,
            round_began: self.rounds.began,
            app_limited,
            is_cycling: self.mode == Mode::ProbeBw,
        });
        if verdict == Verdict::Over {
            self.enter_probe_bw(now);
        }
    }

    fn update_aggregation(&mut self, now: Time, sample: &RateSample) {
        if self.config.aggregation && sample.has_rate() && sample.newly_delivered > DataSize::ZERO {
            self.aggregation.on_ack(
                now,
                sample.newly_delivered.get() as f64,
                self.estimate(),
                self.window * self.output.mss,
                self.rounds.began,
            );
        }
    }

    fn update_cycle(&mut self, now: Time, sample: &RateSample) {
        if self.mode == Mode::ProbeBw && self.is_next_phase_due(now, sample) {
            self.advance_cycle(now);
        }
    }

    fn is_next_phase_due(&self, now: Time, sample: &RateSample) -> bool {
        let lasted = now.saturating_since(self.cycle_began);
        let is_full_length = self.min_rtt.is_some_and(|rtt| lasted > rtt);
        let gain = self.pacing_gain();
        let in_network = self.in_network(now, sample.prior_in_flight);
        if gain > 1.0 {
            // A path with a short queue never holds the target, so a loss ends the phase too.
            is_full_length
                && (sample.newly_lost > DataSize::ZERO || in_network >= self.target(gain))
        } else if gain < 1.0 {
            is_full_length || in_network <= self.target(1.0)
        } else {
            is_full_length
        }
    }

    fn advance_cycle(&mut self, now: Time) {
        self.cycle = (self.cycle + 1) % CYCLE.len();
        self.cycle_began = now;
    }

    fn enter_probe_bw(&mut self, now: Time) {
        self.mode = Mode::ProbeBw;
        let draw = ((self.random.next_u64() >> 32) * STARTING_PHASES) >> 32;
        self.cycle = CYCLE.len() - 1 - draw as usize;
        self.advance_cycle(now);
    }

    fn check_full_bandwidth(&mut self, sample: &RateSample) {
        if self.full.is_reached || !self.rounds.began || self.probe_rtt.is_limited(sample) {
            return;
        }
        let bandwidth = self.bandwidth.max();
        if bandwidth >= FULL_GROWTH * self.full.bandwidth {
            self.full.bandwidth = bandwidth;
            self.full.rounds = 0;
        } else {
            self.full.rounds += 1;
            self.full.is_reached = self.full.rounds >= FULL_ROUNDS;
        }
    }

    fn check_drain(&mut self, now: Time, sample: &RateSample) {
        if self.mode == Mode::Startup && self.full.is_reached {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && self.in_network(now, sample.in_flight) <= self.target(1.0) {
            self.enter_probe_bw(now);
        }
    }

    fn update_min_rtt(&mut self, now: Time, sample: &RateSample) {
        let measured_at = *self.min_rtt_at.get_or_insert(now);
        let is_expired = now > measured_at + self.config.min_rtt_window;
        if let Some(rtt) = sample.rtt
            && (is_expired || self.min_rtt.is_none_or(|least| rtt <= least))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = Some(now);
        }
        if is_expired && !self.is_restarting && self.mode != Mode::ProbeRtt {
            self.save_window();
            self.mode = Mode::ProbeRtt;
            self.probe_rtt = ProbeRtt::begin(self.totals.delivered);
        }
        if self.mode == Mode::ProbeRtt {
            self.go_on_with_probe_rtt(now, sample);
        }
        if sample.has_rate() {
            self.is_restarting = false;
        }
    }

    fn go_on_with_probe_rtt(&mut self, now: Time, sample: &RateSample) {
        let (most, time) = (MIN_WINDOW * self.output.mss, self.config.probe_rtt_time);
        let probe = &mut self.probe_rtt;
        if probe.on_sample(now, sample, most, time, &mut self.rounds) {
            self.check_probe_rtt_done(now);
        }
    }

    fn check_probe_rtt_done(&mut self, now: Time) {
        if !self.probe_rtt.is_over(now) {
            return;
        }
        self.min_rtt_at = Some(now);
        self.window = self.window.max(self.prior_window);
        if self.full.is_reached {
            self.enter_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// Saves the window, to restore it after a recovery or ProbeRTT.
    fn save_window(&mut self) {
        let is_good = self.repair == Repair::Nothing && self.mode != Mode::ProbeRtt;
        self.prior_window = if is_good {
            self.window
        } else {
            self.prior_window.max(self.window)
        };
    }

    fn set_window(&mut self, ack: &Ack, sample: &RateSample) {
        let acked = self.segments(sample.newly_delivered);
        if acked > 0.0 {
            self.move_window(ack, sample, acked);
        }
        self.window = self
            .window
            .min(crate::controllers::segments(
                self.config.max_window,
                self.config.mss,
            ))
            .max(1.0);
        if self.mode == Mode::ProbeRtt {
            self.window = self.window.min(MIN_WINDOW);
        }
    }

    fn move_window(&mut self, ack: &Ack, sample: &RateSample, acked: f64) {
        // An acknowledgement releases at most twice the bytes that it covers: losses shrink the
        // window here, and slow start grows it below.
        let mut window = self.window;
        if sample.newly_lost > DataSize::ZERO {
            window = (window - self.segments(sample.newly_lost)).max(1.0);
        }
        let in_use = self.segments(sample.in_flight) + acked;
        let before = self.repair;
        self.repair = match before {
            _ if !ack.in_recovery => Repair::Nothing,
            Repair::Timeout => Repair::Timeout,
            Repair::Nothing | Repair::Loss => Repair::Loss,
        };
        // If an acknowledgement ends one recovery and begins another, the recovery continues.
        if self.repair == Repair::Loss && before == Repair::Nothing {
            self.is_conserving = true;
            self.rounds.end = self.totals.delivered;
            window = in_use;
        } else if before != Repair::Nothing && self.repair == Repair::Nothing {
            self.is_conserving = false;
            window = window.max(self.prior_window);
        }
        if self.is_conserving {
            self.window = window.max(in_use);
            return;
        }
        let mut target = self.products(self.estimate(), self.cwnd_gain());
        if self.full.is_reached {
            target += self.room_for_aggregation();
        }
        let target = self.with_bursts(target);
        if self.full.is_reached {
            window = (window + acked).min(target);
        } else if window < target || self.totals.delivered < self.config.initial_window.get() {
            window += acked;
        }
        self.window = window.max(MIN_WINDOW);
    }

    /// Room for aggregated acknowledgements, in segments.
    fn room_for_aggregation(&self) -> f64 {
        let mss = self.output.mss;
        let most = libm::floor(self.estimate() * MAX_EXCESS_SECONDS / mss);
        self.aggregation.segments(mss).min(most)
    }

    fn take_first_rtt(&mut self, rtt: Option<Span>) {
        if let (false, Some(rtt)) = (self.has_seen_rtt, rtt) {
            self.has_seen_rtt = true;
            let window = self.window * self.output.mss;
            self.output.begin(window, rtt, HIGH_GAIN);
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        let Some(sample) = &ack.sample else {
            // The handshake may measure a round trip before any delivery.
            self.take_first_rtt(ack.rtt);
            if let (None, Some(rtt)) = (self.min_rtt, ack.rtt) {
                self.min_rtt = Some(rtt);
                self.min_rtt_at = Some(ack.now);
            }
            return;
        };
        self.totals = Totals {
            delivered: sample.total_delivered.get(),
            lost: sample.total_lost.get(),
        };
        self.update_bandwidth(ack.now, sample);
        self.update_aggregation(ack.now, sample);
        self.update_cycle(ack.now, sample);
        self.check_full_bandwidth(sample);
        self.check_drain(ack.now, sample);
        self.update_min_rtt(ack.now, sample);
        self.take_first_rtt(sample.rtt);
        let (bandwidth, gain) = (self.estimate(), self.pacing_gain());
        self.output.set(bandwidth, gain, self.full.is_reached);
        self.set_window(ack, sample);
    }

    fn on_sent(&mut self, sent: &Sent) {
        let is_first = sent.in_flight <= sent.payload;
        if is_first && (self.output.ran_dry || self.mode == Mode::ProbeRtt) {
            self.is_restarting = true;
            self.aggregation.restart(sent.now);
            match self.mode {
                Mode::ProbeBw => self.output.set(self.estimate(), 1.0, self.full.is_reached),
                Mode::ProbeRtt => self.check_probe_rtt_done(sent.now),
                Mode::Startup | Mode::Drain => {}
            }
        }
        self.output.on_sent(sent);
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.cause != LossCause::Mark {
            self.save_window();
        }
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        self.save_window();
        self.window = 1.0;
        self.repair = Repair::Timeout;
        self.full.bandwidth = 0.0;
        self.rounds.began = true;
        self.look_for_policer(timeout.now, true, false);
    }

    fn on_spurious_loss(&mut self) {
        self.full.bandwidth = 0.0;
        self.full.rounds = 0;
        self.policer.reset();
    }
}

impl Controller for Bbr {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Sent(sent) => self.on_sent(sent),
            Event::Ack(ack) => self.on_ack(ack),
            Event::Loss(loss) => self.on_loss(loss),
            Event::Timeout(timeout) => self.on_timeout(timeout),
            Event::SpuriousLoss { .. } => self.on_spurious_loss(),
            _ => {}
        }
    }

    fn decision(&self) -> Decision {
        Decision {
            window: DataSize::new((self.window * self.output.mss) as u64).max(self.config.mss),
            pacing: self.output.pacing(),
            phase: match self.mode {
                Mode::Startup => Phase::SlowStart,
                Mode::ProbeBw if self.pacing_gain() == 1.0 => Phase::Steady,
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
        let bandwidth = self.estimate();
        (bandwidth > 0.0).then(|| Rate::from_bps_f64(bandwidth * 8.0))
    }
}
