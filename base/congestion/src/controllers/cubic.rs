//! CUBIC: a window that is a cubic function of the time since the last congestion.

mod linux;

pub use linux::LinuxCubic;

use comity_units::{DataSize, Span, Time};

use super::{DecreaseBasis, HyStart, Ramp};
use crate::rtt::SmoothedRtt;
use crate::{Ack, Controller, Decision, Event, Idle, Loss, LossCause, Phase, Sent, Timeout};

/// The configuration of [`Cubic`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicConfig {
    /// The payload of a full segment.
    pub mss: DataSize,
    /// The window before the first acknowledgement.
    pub initial_window: DataSize,
    /// The slow-start threshold before the first loss.
    pub initial_ssthresh: DataSize,
    /// The maximum window.
    pub max_window: DataSize,
    /// `C`, the steepness of the curve, in segments/s³; above 0.
    pub aggressiveness: f64,
    /// `β_cubic`, the part of the window that is left after a loss; between 0 and 1.
    pub beta: f64,
    /// Whether a loss below the last plateau lowers the next plateau further (fast convergence).
    pub fast_convergence: bool,
    /// The quantity that a loss multiplies by `β`.
    pub decrease_basis: DecreaseBasis,
    /// Whether rising round-trip times may end the first slow start before a loss.
    pub hystart: bool,
}

impl CubicConfig {
    /// The values that RFC 9438 recommends.
    pub const fn rfc9438(mss: DataSize) -> Self {
        Self {
            mss,
            initial_window: DataSize::new(mss.get().saturating_mul(10)),
            initial_ssthresh: DataSize::MAX,
            max_window: DataSize::MAX,
            aggressiveness: 0.4,
            beta: 0.7,
            fast_convergence: true,
            decrease_basis: DecreaseBasis::Flight,
            hystart: true,
        }
    }
}

/// A window that is a cubic function of the time since the last congestion, and grows at least as
/// Reno's.
///
/// ```text
/// W_cubic(t) = C · (t − K)³ + W_max        K = ∛((W_max − cwnd_epoch) / C)     [segments, s]
/// W_est     += α · acked / cwnd            α = 3 · (1 − β) / (1 + β), and 1 from cwnd_prior on
/// target     = clamp(W_cubic(t + RTT), cwnd, 1.5 · cwnd)
///
/// slow start:   cwnd += acked
/// avoidance:    cwnd  = max(cwnd, W_est)                    where W_cubic(t) < W_est
///               cwnd += acked · (target − cwnd) / cwnd      elsewhere
/// loss:         W_max = cwnd, or cwnd · (1 + β) / 2 where cwnd < W_max;  cwnd_prior = cwnd
///               ssthresh = max(β · flight, 2),  cwnd = ssthresh;  on a mark cwnd = max(β · flight, 1)
/// timeout:      the same with cwnd = 1; the next avoidance begins with W_max = cwnd and K = 0
/// ```
///
/// `t` is the time since the first acknowledgement in congestion avoidance after the loss, without
/// the time in which the application limits the flow or nothing is in flight. Before the first
/// loss, slow start is that of [`HyStart`] (RFC 9406). After it, slow start is that of RFC 5681
/// with byte counting (RFC 3465).
///
/// Source: RFC 9438, section 4.
///
/// Differs from RFC 9438 in: 1. in avoidance an acknowledgement counts as the segments that it
/// covers, up to the target. The RFC adds `(target − cwnd) / cwnd` for each acknowledgement, which
/// is the same if every segment is acknowledged, and half as fast with delayed acknowledgements; 2.
/// in the Reno-friendly region the window is the larger of `cwnd` and `W_est`, so an
/// acknowledgement cannot lower it; 3. the flight at a loss counts as `cwnd` at most, because RFC
/// 5681 (section 3.2, step 2) excludes segments sent by limited transmit; 4. a spurious loss is
/// undone (section 4.9.2), a spurious timeout is not (section 4.9.1 refers to RFC 4015, in which
/// the transport restores the flight before the timeout); 5. slow start stops exactly at the
/// threshold, and an acknowledgement of more than a window counts as one window.
#[derive(Clone, Debug)]
pub struct Cubic {
    mss: DataSize,
    max_window: DataSize,
    aggressiveness: f64,
    beta: f64,
    fast_convergence: bool,
    decrease_basis: DecreaseBasis,
    /// In nanoseconds.
    rtt: SmoothedRtt,
    state: State,
    past: Past,
    /// When the application began to limit the flow; [`Time::MAX`] while it does not.
    limited_since: Time,
    /// [`Time::MAX`] before the first.
    last_ack: Time,
}

/// The past of a flow. A loss ends the first slow start for good, so a flow has only one of these.
#[derive(Clone, Copy, Debug)]
enum Past {
    /// The first slow start, observed by HyStart.
    FirstSlowStart(HyStart),
    /// A loss, which may turn out to be spurious.
    Loss(State),
    /// Neither.
    Closed,
}

/// The state that a loss changes, and that a spurious loss restores.
#[derive(Clone, Copy, Debug)]
struct State {
    /// cwnd in segments.
    window: f64,
    /// ssthresh in segments.
    ssthresh: f64,
    /// `cwnd_prior`: cwnd when the threshold was last set.
    prior: f64,
    /// W_max in segments; zero before the first loss.
    plateau: f64,
    stage: Stage,
}

/// Whether congestion avoidance has begun since the last congestion.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Avoidance(Epoch),
    Before {
        /// Whether avoidance begins with W_max = cwnd and K = 0: before the first loss and after a
        /// timeout.
        begins_flat: bool,
        /// Whether a timeout began this slow start. An acknowledgement then counts as one segment
        /// at most (RFC 3465).
        after_timeout: bool,
    },
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// `t_epoch`, moved by the time that does not count.
    start: Time,
    /// K in seconds.
    inflection: f64,
    /// W_est in segments.
    reno: f64,
}

impl Cubic {
    /// Creates the controller of a flow that has sent nothing yet.
    pub fn new(config: CubicConfig) -> Self {
        let segments = |amount| super::segments(amount, config.mss);
        Self {
            mss: config.mss,
            max_window: config.max_window,
            aggressiveness: config.aggressiveness,
            beta: config.beta,
            fast_convergence: config.fast_convergence,
            decrease_basis: config.decrease_basis,
            rtt: SmoothedRtt::default(),
            past: if config.hystart {
                Past::FirstSlowStart(HyStart::new())
            } else {
                Past::Closed
            },
            state: State {
                window: segments(config.initial_window)
                    .min(segments(config.max_window))
                    .max(1.0),
                ssthresh: segments(config.initial_ssthresh),
                prior: 0.0,
                plateau: 0.0,
                stage: Stage::Before {
                    begins_flat: true,
                    after_timeout: false,
                },
            },
            limited_since: Time::MAX,
            last_ack: Time::MAX,
        }
    }

    /// The congestion window in segments.
    pub const fn window(&self) -> f64 {
        self.state.window
    }

    /// The slow-start threshold in segments.
    pub const fn ssthresh(&self) -> f64 {
        self.state.ssthresh
    }

    fn segments(&self, amount: DataSize) -> f64 {
        super::segments(amount, self.mss)
    }

    fn slow_start(&mut self, ack: &Ack) {
        let covered = self.segments(ack.acked);
        let ramp = match &mut self.past {
            Past::FirstSlowStart(hystart) => Some(hystart.on_ack(ack)),
            Past::Loss(_) | Past::Closed => None,
        };
        let grown = match (ramp, self.state.stage) {
            (Some(Ramp::Exponential), _) => covered.min(HyStart::LIMIT),
            (Some(Ramp::Conservative), _) => covered.min(HyStart::LIMIT) / HyStart::GROWTH_DIVISOR,
            (Some(Ramp::Over), _) => {
                self.state.ssthresh = self.state.window;
                0.0
            }
            (
                None,
                Stage::Before {
                    after_timeout: true,
                    ..
                },
            ) => covered.min(1.0),
            (None, _) => covered.min(2.0),
        };
        self.state.window = (self.state.window + grown).min(self.state.ssthresh);
    }

    /// Begins a stage of congestion avoidance at the current window.
    fn begin_epoch(&mut self, now: Time) -> Epoch {
        let state = &mut self.state;
        if let Stage::Before {
            begins_flat: true, ..
        } = state.stage
        {
            state.plateau = state.window;
        }
        if state.prior == 0.0 {
            state.prior = state.window;
        }
        Epoch {
            start: now,
            inflection: libm::cbrt((state.plateau - state.window) / self.aggressiveness),
            reno: state.window,
        }
    }

    fn curve(&self, epoch: &Epoch, elapsed: f64) -> f64 {
        let offset = elapsed - epoch.inflection;
        self.aggressiveness * (offset * offset * offset) + self.state.plateau
    }

    fn avoid_congestion(&mut self, ack: &Ack) {
        let mut epoch = match self.state.stage {
            Stage::Avoidance(epoch) => epoch,
            Stage::Before { .. } => self.begin_epoch(ack.now),
        };
        let window = self.state.window;
        let covered = self.segments(ack.acked).min(window);
        let alpha = if epoch.reno >= self.state.prior {
            1.0
        } else {
            3.0 * (1.0 - self.beta) / (1.0 + self.beta)
        };
        epoch.reno += alpha * covered / window;

        let elapsed = ack.now.saturating_since(epoch.start).as_secs_f64();
        self.state.window = if self.curve(&epoch, elapsed) < epoch.reno {
            window.max(epoch.reno)
        } else {
            let rtt = Span::from_nanos(self.rtt.ticks()).as_secs_f64();
            let target = self
                .curve(&epoch, elapsed + rtt)
                .clamp(window, 1.5 * window);
            window + (target - window) * covered / window
        };
        self.state.stage = Stage::Avoidance(epoch);
    }

    /// Excludes `span` from the time of the stage, and of the stage before the loss.
    #[cold]
    #[inline(never)]
    fn skip(&mut self, span: Span) {
        let before_loss = match &mut self.past {
            Past::Loss(state) => Some(state),
            Past::FirstSlowStart(_) | Past::Closed => None,
        };
        for state in core::iter::once(&mut self.state).chain(before_loss) {
            if let Stage::Avoidance(epoch) = &mut state.stage {
                epoch.start += span;
            }
        }
    }

    /// β times the window in use, in segments; stores the plateau.
    fn reduce(&mut self, in_flight: DataSize, window: DataSize) -> f64 {
        let state = &mut self.state;
        state.plateau = if self.fast_convergence && state.window < state.plateau {
            state.window * (1.0 + self.beta) / 2.0
        } else {
            state.window
        };
        state.prior = state.window;
        let basis = match self.decrease_basis {
            DecreaseBasis::Flight => in_flight,
            DecreaseBasis::Window => window,
        };
        self.segments(basis).min(self.state.window) * self.beta
    }

    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.rtt.on_sample(rtt.as_nanos());
        }
        self.last_ack = ack.now;
        if ack.in_recovery {
            return;
        }
        if ack.app_limited {
            self.limited_since = self.limited_since.min(ack.now);
            return;
        }
        if !self.limited_since.is_never() {
            self.skip(ack.now.saturating_since(self.limited_since));
            self.limited_since = Time::MAX;
        }
        if self.state.window < self.state.ssthresh {
            self.slow_start(ack);
        } else {
            self.avoid_congestion(ack);
        }
        if self.max_window != DataSize::MAX {
            self.state.window = self
                .state
                .window
                .min(self.segments(self.max_window))
                .max(1.0);
        }
    }

    fn on_sent(&mut self, sent: &Sent) {
        // The first packet after a pause: the flow was idle since the last acknowledgement.
        if sent.in_flight <= sent.payload
            && self.limited_since.is_never()
            && !self.last_ack.is_never()
        {
            self.skip(sent.now.saturating_since(self.last_ack));
            self.last_ack = sent.now;
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.past = Past::Loss(self.state);
        let reduced = self.reduce(loss.in_flight, loss.window);
        self.state.stage = Stage::Before {
            begins_flat: false,
            after_timeout: false,
        };
        self.state.ssthresh = reduced.max(2.0);
        self.state.window = match loss.cause {
            _ if loss.restart => 1.0,
            LossCause::Mark => reduced.max(1.0),
            _ => self.state.ssthresh,
        };
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        // At a second expiry for the same data the window is one segment, which shows nothing about
        // the network. RFC 5681, section 3.1, then keeps the threshold.
        if timeout.consecutive <= 1 {
            self.state.ssthresh = self.reduce(timeout.in_flight, timeout.window).max(2.0);
        }
        self.past = Past::Closed;
        self.state.stage = Stage::Before {
            begins_flat: true,
            after_timeout: true,
        };
        self.state.window = 1.0;
    }

    fn on_spurious_loss(&mut self) {
        let Past::Loss(before) = self.past else {
            return;
        };
        self.past = Past::Closed;
        if self.state.window < self.state.prior {
            self.state = before;
        }
    }

    fn on_idle(&mut self, idle: &Idle) {
        let floor = self.segments(idle.initial_window);
        let state = &mut self.state;
        state.ssthresh = state.ssthresh.max(0.75 * state.window);
        let halved = libm::ldexp(state.window, -(idle.halvings().min(64) as i32));
        state.window = halved.max(floor.min(state.window));
        // The estimate of Reno's window restarts too. Otherwise the window would jump back to it.
        if let Stage::Avoidance(epoch) = &mut state.stage {
            epoch.reno = epoch.reno.min(state.window);
        }
    }
}

impl Controller for Cubic {
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
        let bytes = |segments: f64| DataSize::new((segments * self.mss.get() as f64) as u64);
        Decision {
            window: bytes(self.state.window),
            ssthresh: Some(bytes(self.state.ssthresh)),
            phase: if self.state.window < self.state.ssthresh {
                Phase::SlowStart
            } else {
                Phase::CongestionAvoidance
            },
            ..Decision::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: DataSize = DataSize::new(1_000);

    fn ack(at_ms: u64, segments: u64) -> Ack {
        Ack {
            now: Time::from_millis(at_ms),
            acked: MSS * segments,
            rtt: Some(Span::from_millis(100)),
            in_flight: MSS * 10,
            app_limited: false,
            in_recovery: false,
            marked: 0,
            packets: segments as u32,
            sample: None,
        }
    }

    fn loss(at_ms: u64, segments: u64, cause: LossCause) -> Loss {
        Loss {
            now: Time::from_millis(at_ms),
            sent_at: Time::from_millis(at_ms),
            lost: MSS,
            in_flight: MSS * segments,
            window: MSS * segments,
            cause,
            restart: false,
        }
    }

    fn timeout(at_ms: u64, segments: u64, consecutive: u32) -> Timeout {
        Timeout {
            now: Time::from_millis(at_ms),
            in_flight: MSS * segments,
            window: MSS * segments,
            consecutive,
            duplicate_seen: false,
        }
    }

    /// A flow in slow start with a window of `segments`.
    fn at_window(segments: u64) -> Cubic {
        Cubic::new(CubicConfig {
            initial_window: MSS * segments,
            hystart: false,
            ..CubicConfig::rfc9438(MSS)
        })
    }

    fn epoch(cubic: &Cubic) -> Option<Epoch> {
        match cubic.state.stage {
            Stage::Avoidance(epoch) => Some(epoch),
            Stage::Before { .. } => None,
        }
    }

    /// `W_max − cwnd_epoch = 0.3 · W_max`, so `K³ = 0.75 · W_max`: W_max = 288 gives K = ∛216 = 6
    /// s, and the curve has whole numbers at whole seconds.
    #[test]
    fn curve_by_hand() {
        let mut cubic = at_window(288);
        cubic.on_loss(&loss(0, 288, LossCause::Reordering));
        assert!((cubic.window() - 201.6).abs() < 1e-9, "0.7 · 288");
        assert_eq!(cubic.window(), cubic.ssthresh());
        let epoch = cubic.begin_epoch(Time::ZERO);
        assert!((epoch.inflection - 6.0).abs() < 1e-12);
        for (seconds, window) in [
            (0.0, 201.6),
            (1.0, 238.0),
            (3.0, 277.2),
            (5.0, 287.6),
            (6.0, 288.0),
            (7.0, 288.4),
            (11.0, 338.0),
        ] {
            let curve = cubic.curve(&epoch, seconds);
            assert!(
                (curve - window).abs() < 1e-9,
                "W({seconds}) = {curve}, by hand {window}"
            );
        }
    }

    /// At t = 0.9 s with an RTT of 0.1 s the target is W(1) = 238 segments.
    #[test]
    fn an_acknowledged_segment_moves_by_its_share_of_the_way_to_the_target() {
        let mut cubic = at_window(288);
        cubic.on_loss(&loss(0, 288, LossCause::Reordering));
        // The stage begins with the first acknowledgement. W(0) is the window itself, and the
        // estimate of Reno's window is 9/17 of 1/cwnd above it.
        cubic.on_ack(&ack(1_000, 1));
        let first = 201.6 + 9.0 / 17.0 / 201.6;
        assert!(
            (cubic.window() - first).abs() < 1e-9,
            "{} is not {first}",
            cubic.window()
        );
        cubic.on_ack(&ack(1_900, 1));
        let second = first + (238.0 - first) / first;
        assert!(
            (cubic.window() - second).abs() < 1e-9,
            "{} is not {second}",
            cubic.window()
        );
        // Two acknowledged segments move the window twice as far, and a whole window moves it to
        // the target.
        cubic.on_ack(&ack(1_900, 2));
        let third = second + 2.0 * (238.0 - second) / second;
        assert!((cubic.window() - third).abs() < 1e-9);
        cubic.on_ack(&ack(1_900, 1_000));
        assert!((cubic.window() - 238.0).abs() < 1e-9);
    }

    #[test]
    fn target_is_at_most_half_a_window_away() {
        let mut cubic = at_window(288);
        cubic.on_loss(&loss(0, 288, LossCause::Reordering));
        cubic.on_ack(&ack(0, 1));
        let before = cubic.window();
        // After a minute the curve is at 0.4 · 54.1³ + 288 > 60,000 segments. The target is
        // bounded.
        cubic.on_ack(&ack(60_000, 1));
        assert!(
            (cubic.window() - (before + 0.5)).abs() < 1e-9,
            "half a window over a window of segments"
        );
    }

    /// A window of 4 segments: K = ∛(0.3 · 4 / 0.4) = ∛3 s, while Reno's estimate gains
    /// α = 3 · 0.3 / 1.7 = 9 / 17 a round trip, and one segment a round trip from 4 on.
    #[test]
    fn small_windows_follow_reno() {
        let mut cubic = at_window(4);
        cubic.on_loss(&loss(0, 4, LossCause::Reordering));
        assert!((cubic.window() - 2.8).abs() < 1e-12);
        let alpha = 9.0 / 17.0;
        let mut estimate = 2.8;
        let mut window = 2.8;
        for round in 1..=3 {
            estimate += if estimate >= 4.0 { 1.0 } else { alpha } * 1.0 / window;
            cubic.on_ack(&ack(round * 10, 1));
            assert!(
                (cubic.window() - estimate).abs() < 1e-9,
                "round {round}: {}",
                cubic.window()
            );
            window = estimate;
        }
        while cubic.window() < 4.0 {
            cubic.on_ack(&ack(40, 1));
        }
        let before = cubic.window();
        cubic.on_ack(&ack(41, 1));
        assert!(
            (cubic.window() - (before + 1.0 / before)).abs() < 1e-9,
            "Reno's own slope above cwnd_prior"
        );
    }

    #[test]
    fn fast_convergence_gives_up_more_below_the_last_plateau() {
        for (fast, plateau) in [(true, 100.0 * 0.7 * 0.85), (false, 70.0)] {
            let config = CubicConfig {
                initial_window: MSS * 100,
                fast_convergence: fast,
                ..CubicConfig::rfc9438(MSS)
            };
            let mut cubic = Cubic::new(config);
            cubic.on_loss(&loss(0, 100, LossCause::Reordering));
            assert_eq!(cubic.state.plateau, 100.0);
            cubic.on_loss(&loss(200, 70, LossCause::Reordering));
            let found = cubic.state.plateau;
            assert!((found - plateau).abs() < 1e-9, "{found} is not {plateau}");
            assert!((cubic.window() - 49.0).abs() < 1e-9);
        }
    }

    #[test]
    fn a_loss_keeps_two_segments_and_a_mark_one() {
        let mut cubic = at_window(2);
        cubic.on_loss(&loss(0, 2, LossCause::Reordering));
        assert_eq!((cubic.window(), cubic.ssthresh()), (2.0, 2.0));
        let mut cubic = at_window(2);
        cubic.on_loss(&loss(0, 2, LossCause::Mark));
        assert!((cubic.window() - 1.4).abs() < 1e-12);
        assert_eq!(cubic.ssthresh(), 2.0);
        cubic.on_loss(&loss(0, 1, LossCause::Mark));
        assert_eq!((cubic.window(), cubic.ssthresh()), (1.0, 2.0));
    }

    #[test]
    fn after_a_timeout_the_curve_begins_at_its_inflection() {
        let mut cubic = at_window(100);
        cubic.on_timeout(&timeout(0, 100, 1));
        assert_eq!(cubic.window(), 1.0);
        assert!((cubic.ssthresh() - 70.0).abs() < 1e-9);
        cubic.on_timeout(&timeout(1_000, 1, 2));
        assert!(
            (cubic.ssthresh() - 70.0).abs() < 1e-9,
            "a second expiry says nothing new"
        );
        // Each acknowledgement counts as one segment, so 69 of them reach the threshold.
        for _ in 0..68 {
            cubic.on_ack(&ack(2_000, 2));
        }
        assert_eq!(cubic.window(), 69.0);
        assert_eq!(cubic.decision().phase, Phase::SlowStart);
        cubic.on_ack(&ack(2_000, 2));
        assert_eq!(cubic.decision().phase, Phase::CongestionAvoidance);
        cubic.on_ack(&ack(2_000, 1));
        let epoch = epoch(&cubic).unwrap();
        assert_eq!(
            (epoch.inflection, epoch.start),
            (0.0, Time::from_millis(2_000))
        );
        assert!((cubic.state.plateau - 70.0).abs() < 1e-9);
        // K = 0: W(5) = 0.4 · 125 + 70 = 120.
        assert!((cubic.curve(&epoch, 5.0) - 120.0).abs() < 1e-9);
    }

    #[test]
    fn time_stands_still_while_the_application_limits_and_while_nothing_is_in_flight() {
        let mut cubic = at_window(288);
        cubic.on_loss(&loss(0, 288, LossCause::Reordering));
        cubic.on_ack(&ack(0, 1));
        cubic.on_ack(&Ack {
            app_limited: true,
            ..ack(500, 1)
        });
        let frozen = cubic.window();
        cubic.on_ack(&Ack {
            app_limited: true,
            ..ack(40_000, 1)
        });
        assert_eq!(cubic.window(), frozen, "no growth without evidence");
        cubic.on_ack(&ack(60_400, 1));
        // 0.5 s counted; the target is W(0.6) = 288 − 0.4 · 5.4³ = 225.0144.
        let expected = frozen + (288.0 - 0.4 * 157.464 - frozen) / frozen;
        assert!(
            (cubic.window() - expected).abs() < 1e-9,
            "{} is not {expected}",
            cubic.window()
        );

        let before = cubic.window();
        cubic.on_sent(&Sent {
            now: Time::from_millis(160_400),
            payload: MSS,
            wire: MSS,
            number: comity_units::PacketNumber::ZERO,
            in_flight: MSS,
            app_limited: false,
        });
        cubic.on_ack(&ack(160_500, 1));
        let expected = before + (288.0 - 0.4 * 5.3 * 5.3 * 5.3 - before) / before;
        assert!(
            (cubic.window() - expected).abs() < 1e-9,
            "0.6 s counted: {}",
            cubic.window()
        );
    }

    #[test]
    fn a_spurious_loss_is_undone_once_and_not_after_the_window_has_come_back() {
        let mut cubic = at_window(288);
        cubic.on_loss(&loss(0, 288, LossCause::Reordering));
        cubic.on_ack(&ack(100, 1));
        let before = cubic.window();
        cubic.on_loss(&loss(200, 201, LossCause::Reordering));
        assert!(cubic.window() < 142.0);
        cubic.on_spurious_loss();
        assert_eq!(cubic.window(), before);
        assert_eq!(
            epoch(&cubic).map(|epoch| epoch.start),
            Some(Time::from_millis(100))
        );
        cubic.on_spurious_loss();
        assert_eq!(cubic.window(), before);

        cubic.on_loss(&loss(300, 201, LossCause::Reordering));
        let (reduced, prior) = (cubic.window(), cubic.state.prior);
        cubic.on_ack(&ack(400, 1));
        while cubic.window() < prior {
            cubic.on_ack(&ack(60_000, 100));
        }
        let back = cubic.window();
        cubic.on_spurious_loss();
        assert!(cubic.window() == back && back > reduced);
    }

    /// The application limits the flow for ten seconds between a loss and the report that it was
    /// spurious. The restored stage does not count them either.
    #[test]
    fn an_undone_loss_does_not_bring_limited_time_back() {
        let mut cubic = at_window(288);
        cubic.on_loss(&loss(0, 288, LossCause::Reordering));
        cubic.on_ack(&ack(1_000, 1));
        cubic.on_loss(&loss(2_000, 201, LossCause::Reordering));
        cubic.on_ack(&Ack {
            app_limited: true,
            ..ack(3_000, 1)
        });
        cubic.on_ack(&ack(13_000, 1));
        cubic.on_spurious_loss();
        let start = epoch(&cubic).map(|epoch| epoch.start);
        assert_eq!(start, Some(Time::from_millis(11_000)));
    }

    #[test]
    fn hystart_ends_the_first_slow_start_and_the_window_is_limited() {
        let mut cubic = Cubic::new(CubicConfig {
            max_window: MSS * 64,
            ..CubicConfig::rfc9438(MSS)
        });
        for _ in 0..40 {
            cubic.on_ack(&ack(100, 1));
        }
        assert_eq!(cubic.window(), 50.0);
        let slow = Ack {
            rtt: Some(Span::from_millis(200)),
            ..ack(200, 1)
        };
        for _ in 0..200 {
            cubic.on_ack(&slow);
        }
        assert_eq!(cubic.decision().phase, Phase::CongestionAvoidance);
        assert!(cubic.window() > 50.0 && cubic.window() <= 64.0);
        for at in 0..1_000 {
            cubic.on_ack(&ack(1_000 + at * 100, 10));
        }
        assert_eq!(cubic.decision().window, MSS * 64);
    }
}
