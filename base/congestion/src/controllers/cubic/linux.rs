//! CUBIC in the whole numbers of Linux.

use comity_units::{DataSize, Span, Time};

use super::super::hystart::LinuxHyStart;
use super::CubicConfig;
use crate::rtt::SmoothedRtt;
use crate::{Ack, Controller, Decision, Event, Idle, Loss, Phase, Sent, Timeout};

/// CUBIC as Linux computes it: windows are whole segments, and `count` acknowledged segments make
/// the window grow by one.
///
/// ```text
/// t      = now − t_epoch + RTT_min            K = ∛((W_max − cwnd) / C), 0 where W_max ≤ cwnd
/// target = W_origin + C · (t − K)³            W_origin = max(W_max, cwnd at t_epoch)       [segments, s]
/// count  = cwnd / (target − cwnd)             100 · cwnd where target ≤ cwnd; at most 20 before the first loss
/// W_est  += 1 for each (15 / 8) · cwnd acknowledged segments, from cwnd at t_epoch on
/// count  = min(count, cwnd / (W_est − cwnd))  where W_est > cwnd
/// cwnd   += 1 for each max(count, 2) acknowledged segments
///
/// loss:     W_max = cwnd, or cwnd · (1 + β) / 2 where cwnd < W_max;  ssthresh = cwnd = max(β · cwnd, 2)
/// timeout:  ssthresh the same, cwnd = 1, and everything else is forgotten
/// ```
///
/// All quotients are rounded down. Slow start counts every acknowledged segment and ends at the
/// first loss, or earlier by the rules of `LinuxHyStart`. While the window does not change, the
/// count is computed at most once in 1/32 s.
///
/// Two differences from [`Cubic`](super::Cubic) show on the network. The estimate of Reno's window
/// always grows by 0.53 segments per round trip, while that of RFC 9438 grows by one from
/// `cwnd_prior` on. And a loss reduces the window, not the flight.
///
/// Source: Linux 6, `net/ipv4/tcp_cubic.c`, whose constants and rules are used, not its code; Ha,
/// Rhee and Xu, "CUBIC: A new TCP-friendly high-speed TCP variant", 2008.
///
/// Differs from Linux in: 1. time is not in jiffies, and the cube and its root are not
/// approximated; 2. the factor of `W_est`, rounded to eighths as in Linux, is computed for any
/// `β`; 3. the controller has a maximum window.
#[derive(Clone, Debug)]
pub struct LinuxCubic {
    mss: DataSize,
    max_window: u32,
    /// `C` in segments / s³.
    aggressiveness: f64,
    /// β in 1/1024.
    beta: u64,
    fast_convergence: bool,
    hystart: Option<LinuxHyStart>,
    /// In nanoseconds.
    rtt: SmoothedRtt,
    min_rtt: Option<Span>,
    window: u32,
    ssthresh: u32,
    /// Acknowledged segments since the window last grew.
    counted: u32,
    curve: Curve,
    /// When the last segment left.
    sent_at: Option<Time>,
    /// Window and threshold before the last reduction, while it can still be undone.
    before: Option<(u32, u32)>,
}

/// The curve along which the window grows.
#[derive(Clone, Copy, Debug, Default)]
struct Curve {
    /// W_max; 0 before the first loss.
    plateau: u32,
    /// t_epoch; `None` until avoidance begins.
    epoch: Option<Time>,
    origin: u32,
    /// K in seconds.
    inflection: f64,
    /// How many acknowledged segments make the window grow by one, and when and for which window
    /// that was computed.
    count: u32,
    computed: Option<(Time, u32)>,
    /// W_est, and the acknowledged segments since it last grew.
    reno: u32,
    reno_counted: u32,
}

/// How long a count is used while the window does not change.
const COUNT_LIFE: Span = Span::from_micros(31_250);
/// Without a plateau the window grows by at least a twentieth per round trip.
const MAX_FIRST_COUNT: u32 = 20;

impl LinuxCubic {
    /// Creates the controller of a flow that has sent nothing yet. A loss always reduces the
    /// window, whatever `config.decrease_basis`.
    pub fn new(config: CubicConfig) -> Self {
        let segments = |amount: DataSize| {
            u32::try_from(amount.get() / config.mss.get().max(1)).unwrap_or(u32::MAX)
        };
        let max_window = segments(config.max_window).max(1);
        Self {
            mss: config.mss,
            max_window,
            aggressiveness: config.aggressiveness,
            beta: libm::round(config.beta * BETA_SCALE as f64) as u64,
            fast_convergence: config.fast_convergence,
            hystart: config.hystart.then(LinuxHyStart::default),
            rtt: SmoothedRtt::default(),
            min_rtt: None,
            window: segments(config.initial_window).clamp(1, max_window),
            ssthresh: segments(config.initial_ssthresh),
            counted: 0,
            curve: Curve::default(),
            sent_at: None,
            before: None,
        }
    }

    /// The congestion window in segments.
    pub const fn window(&self) -> u32 {
        self.window
    }

    const fn in_slow_start(&self) -> bool {
        self.window < self.ssthresh
    }

    /// Takes the round trip that an acknowledgement measured.
    fn on_sample(&mut self, ack: &Ack, rtt: Span) {
        self.rtt.on_sample(rtt.as_nanos());
        let is_after_loss = self
            .curve
            .epoch
            .is_some_and(|epoch| ack.now.saturating_since(epoch) < Span::from_secs(1));
        if is_after_loss {
            return;
        }
        let min = self.min_rtt.map_or(rtt, |min| min.min(rtt));
        self.min_rtt = Some(min);
        let in_slow_start = self.in_slow_start();
        let bytes = u64::from(self.window).saturating_mul(self.mss.get());
        // Slow start sends twice a window per round trip.
        let rate = (2 * u128::from(bytes) * 1_000_000_000) / u128::from(self.rtt.ticks().max(1));
        if let Some(hystart) = &mut self.hystart
            && in_slow_start
            && hystart.on_ack(
                ack,
                rtt,
                min,
                self.window,
                u64::try_from(rate).unwrap_or(u64::MAX),
            )
        {
            self.ssthresh = self.window;
        }
    }

    /// Computes for how many acknowledged segments the window grows by one.
    fn count(&mut self, now: Time, acked: u32) -> u32 {
        let window = self.window;
        let curve = &mut self.curve;
        curve.reno_counted = curve.reno_counted.saturating_add(acked);
        let is_fresh =
            |(at, of): (Time, u32)| of == window && now.saturating_since(at) <= COUNT_LIFE;
        if curve.computed.is_some_and(is_fresh) {
            return curve.count;
        }
        curve.computed = Some((now, window));
        let epoch = *curve.epoch.get_or_insert_with(|| {
            curve.reno_counted = acked;
            curve.reno = window;
            curve.origin = curve.plateau.max(window);
            let below = curve.origin - window;
            curve.inflection = libm::cbrt(f64::from(below) / self.aggressiveness);
            now
        });
        let elapsed = now.saturating_since(epoch) + self.min_rtt.unwrap_or(Span::ZERO);
        let offset = elapsed.as_secs_f64() - curve.inflection;
        let rise = libm::floor(self.aggressiveness * libm::fabs(offset * offset * offset));
        let target = f64::from(curve.origin) + if offset < 0.0 { -rise } else { rise };
        let window = f64::from(window);
        // Casts saturate: a target far above gives 0, which the last line raises.
        let mut count = if target > window {
            (window / (target - window)) as u32
        } else {
            self.window.saturating_mul(100)
        };
        if curve.plateau == 0 {
            count = count.min(MAX_FIRST_COUNT);
        }
        let per_segment = ((u64::from(self.window) * friendliness(self.beta)) >> 3) as u32;
        // A division, not a loop, because the peer decides how many segments an acknowledgement
        // covers.
        let step = per_segment.max(1);
        let steps = curve
            .reno_counted
            .saturating_sub(per_segment)
            .div_ceil(step);
        curve.reno_counted -= steps * step;
        curve.reno = curve.reno.saturating_add(steps);
        if curve.reno > self.window {
            count = count.min(self.window / (curve.reno - self.window));
        }
        curve.count = count.max(2);
        curve.count
    }

    /// Saves window and threshold, and returns the new threshold.
    fn reduce(&mut self) -> u32 {
        let window = u64::from(self.window);
        self.before = Some((self.window, self.ssthresh));
        let curve = &mut self.curve;
        curve.epoch = None;
        curve.computed = None;
        curve.plateau = if self.fast_convergence && self.window < curve.plateau {
            (window * (BETA_SCALE + self.beta) / (2 * BETA_SCALE)) as u32
        } else {
            self.window
        };
        ((window * self.beta / BETA_SCALE) as u32).max(2)
    }
}

/// The unit of β is 1 over this.
const BETA_SCALE: u64 = 1_024;

/// In eighths, how many windows of acknowledged segments make `W_est` grow by one segment:
/// `8 · (1 + β) / (3 · (1 − β))`, rounded down.
const fn friendliness(beta: u64) -> u64 {
    let rest = if beta < BETA_SCALE {
        BETA_SCALE - beta
    } else {
        1
    };
    8 * (BETA_SCALE + beta) / 3 / rest
}

impl LinuxCubic {
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.on_sample(ack, rtt);
        }
        if ack.in_recovery || ack.app_limited {
            return;
        }
        let mut acked = ack.packets;
        if self.in_slow_start() {
            let window = self.window.saturating_add(acked).min(self.ssthresh);
            acked -= window - self.window;
            self.window = window.min(self.max_window);
            if acked == 0 {
                return;
            }
        }
        let count = self.count(ack.now, acked);
        if self.counted >= count {
            self.counted = 0;
            self.window = self.window.saturating_add(1);
        }
        self.counted = self.counted.saturating_add(acked);
        self.window = self.window.saturating_add(self.counted / count);
        self.counted %= count;
        self.window = self.window.min(self.max_window);
    }

    fn on_sent(&mut self, sent: &Sent) {
        // Time without data in flight does not count on the curve.
        if sent.in_flight <= sent.payload
            && let (Some(epoch), Some(before)) = (&mut self.curve.epoch, self.sent_at)
        {
            *epoch = (*epoch + sent.now.saturating_since(before)).min(sent.now);
        }
        self.sent_at = Some(sent.now);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.ssthresh = self.reduce();
        self.window = if loss.restart { 1 } else { self.ssthresh };
        self.counted = 0;
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        if timeout.consecutive <= 1 {
            self.ssthresh = self.reduce();
        }
        self.curve = Curve::default();
        self.min_rtt = None;
        if let Some(hystart) = &mut self.hystart {
            *hystart = LinuxHyStart::default();
        }
        self.window = 1;
        self.counted = 0;
    }

    fn on_spurious_loss(&mut self) {
        if let Some((window, ssthresh)) = self.before.take() {
            self.window = self.window.max(window);
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
    }

    fn on_idle(&mut self, idle: &Idle) {
        let halvings = idle.halvings();
        let mss = self.mss.get().max(1);
        let floor = u32::try_from(idle.initial_window.get() / mss).unwrap_or(u32::MAX);
        self.ssthresh = self.ssthresh.max(self.window / 2 + self.window / 4);
        let halved = self.window.checked_shr(halvings).unwrap_or(0);
        self.window = halved.max(floor.min(self.window));
    }
}

impl Controller for LinuxCubic {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Sent(sent) => self.on_sent(sent),
            Event::Ack(ack) => self.on_ack(ack),
            Event::Loss(loss) => self.on_loss(loss),
            Event::Timeout(timeout) => self.on_timeout(timeout),
            Event::SpuriousLoss { .. } => self.on_spurious_loss(),
            Event::Idle(idle) => self.on_idle(idle),
            _ => {}
        }
    }

    fn decision(&self) -> Decision {
        let bytes = |segments: u32| match segments {
            u32::MAX => DataSize::MAX,
            segments => DataSize::new(u64::from(segments).saturating_mul(self.mss.get())),
        };
        Decision {
            window: bytes(self.window),
            ssthresh: Some(bytes(self.ssthresh)),
            phase: if self.in_slow_start() {
                Phase::SlowStart
            } else {
                Phase::CongestionAvoidance
            },
            ..Decision::default()
        }
    }
}

#[cfg(test)]
mod tests;
