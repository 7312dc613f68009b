//! The reference window of SCReAMv2.

use comity_units::Time;

use super::queue_delay::QueueDelay;

/// The reference window, reduced by congestion and increased by acknowledgements.
///
/// ```text
/// near     = ( 8 · (w − w_i) / w_i )²                         within [0.1, 1]
/// far      = max( 1, s_rtt / VIRTUAL_RTT )
///
/// lost       w = 0.7 · w
/// marked     w = 0.8 · w                                      classic ECN
///            w = (1 − b) · w,  b = α / 2 / far                L4S
///            b = b · max( 1/4, near )                         L4S, if qdelay < target / 4
///            first w = min( w, the most in flight in the last round trip )
///                                                             L4S, if the last reaction is older
///                                                             than 100 · max( VIRTUAL_RTT, s_rtt )
/// delayed    w = (1 − v / 2 / far) · w
///            v = (qdelay_avg − target / 2) / (target / 2)     up to 1
///
/// acked      w += bytes · MSS / w · min( 1, s_rtt / VIRTUAL_RTT ) · max( 1/4, near ) · grow
///            grow = 1 + 0.02 · w / MSS · calm · near
///            calm = time since the last loss or mark / (100 · max( VIRTUAL_RTT, s_rtt ))
///                                                             up to 1
///            if w stays below MSS + 1.5 · the most in flight in two round trips
///
/// α          + (marked share − α) / 8                         if that share is at least α
///            − α / 128                                        else
///                                                             once in 10 ms or a round trip
/// ```
///
/// w_i is the window at the first reaction after it grew. Two reactions are at least min(
/// VIRTUAL_RTT, s_rtt ) apart. A loss counts before a mark, and a mark before the delay. Bytes of
/// marked packets do not count as acknowledged.
///
/// Source: draft-ietf-ccwg-rfc8298bis-screamv2-01, sections 4.2.1.3, 4.2.2.1 and 4.2.2.2.
#[derive(Clone, Debug)]
pub(super) struct ReferenceWindow {
    /// MSS, in bytes.
    mss: f64,
    is_l4s: bool,
    /// `ref_wnd`, in bytes.
    window: f64,
    /// `ref_wnd_i`, in bytes.
    inflection: f64,
    may_move_inflection: bool,
    /// When the last loss or mark was reported.
    congested_at: Option<Time>,
    reacted_at: Option<Time>,
    /// Since the last reaction.
    is_lost: bool,
    /// Since the last reaction.
    is_marked: bool,
    marks: Marks,
    flight: MostInFlight,
}

/// The contents of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Feedback {
    /// When it arrived.
    pub(super) now: Time,
    /// The bytes that it acknowledges.
    pub(super) acked: f64,
    /// The packets that it acknowledges.
    pub(super) packets: u32,
    /// How many of these were marked.
    pub(super) marked: u32,
    /// `s_rtt`, in seconds.
    pub(super) rtt: f64,
}

impl ReferenceWindow {
    pub(super) fn new(mss: f64, is_l4s: bool) -> Self {
        Self {
            mss,
            is_l4s,
            window: MIN_WINDOW.max(mss),
            inflection: 1.0,
            may_move_inflection: true,
            congested_at: None,
            reacted_at: None,
            is_lost: false,
            is_marked: false,
            marks: Marks::default(),
            flight: MostInFlight::default(),
        }
    }

    /// The reference window, in bytes.
    pub(super) const fn get(&self) -> f64 {
        self.window
    }

    /// `ref_wnd_ratio`.
    pub(super) fn ratio(&self) -> f64 {
        (self.mss / self.window).min(1.0)
    }

    /// Takes the bytes in flight.
    pub(super) fn on_flight(&mut self, now: Time, bytes: f64, rtt: f64) {
        self.flight.on_flight(now, bytes, rtt);
    }

    /// A packet was lost.
    pub(super) const fn on_loss(&mut self) {
        self.is_lost = true;
    }

    /// Reduces and increases the window. It may grow only if it `may_grow`.
    pub(super) fn on_feedback(
        &mut self,
        feedback: &Feedback,
        delay: &QueueDelay,
        target: f64,
        may_grow: bool,
    ) {
        self.marks.on_feedback(feedback);
        self.is_marked |= feedback.marked > 0;
        let near = self.nearness();
        if self.is_lost || self.is_marked {
            self.congested_at = Some(feedback.now);
        }
        self.reduce(feedback, delay, target, near);
        if may_grow {
            self.increase(feedback, near);
        }
    }

    /// `scl_t`: how far the window is from its size at the last congestion.
    fn nearness(&self) -> f64 {
        let distance = 8.0 * (self.window - self.inflection) / self.inflection;
        (distance * distance).clamp(0.1, 1.0)
    }

    fn reduce(&mut self, feedback: &Feedback, delay: &QueueDelay, target: f64, near: f64) {
        let Feedback { now, rtt, .. } = *feedback;
        let since = seconds_since(self.reacted_at, now);
        let excess = (delay.average() - target / 2.0) / (target / 2.0);
        let is_delayed = excess > 0.0;
        if since < rtt.min(VIRTUAL_RTT) || !(self.is_lost || self.is_marked || is_delayed) {
            return;
        }
        if self.may_move_inflection {
            self.inflection = self.window;
            self.may_move_inflection = false;
        }
        let far = (rtt / VIRTUAL_RTT).max(1.0);
        if self.is_lost {
            self.window *= LOSS_FACTOR;
        } else if self.is_marked && self.is_l4s {
            let mut backoff = self.marks.alpha / 2.0 / far;
            if delay.latest() < target / 4.0 {
                backoff *= near.max(0.25);
            }
            if since > CALM_ROUNDS * rtt.max(VIRTUAL_RTT) {
                self.window = self.window.min(self.flight.before);
            }
            self.window *= 1.0 - backoff;
        } else if self.is_marked {
            self.window *= MARK_FACTOR;
        } else {
            self.window *= 1.0 - excess.min(1.0) / 2.0 / far;
        }
        self.window = self.window.max(MIN_WINDOW).max(self.mss);
        self.reacted_at = Some(now);
        (self.is_lost, self.is_marked) = (false, false);
    }

    fn increase(&mut self, feedback: &Feedback, near: f64) {
        let Feedback { now, rtt, .. } = *feedback;
        let unmarked = f64::from(feedback.packets.saturating_sub(feedback.marked));
        let acked = feedback.acked * unmarked / f64::from(feedback.packets.max(1));
        let calm = seconds_since(self.congested_at, now) / (CALM_ROUNDS * rtt.max(VIRTUAL_RTT));
        let grow = 1.0 + GROWTH * self.window / self.mss * calm.clamp(0.0, 1.0) * near;
        let increment = acked * self.ratio() * (rtt / VIRTUAL_RTT).min(1.0) * near.max(0.25) * grow;
        let most = self.mss + HEADROOM * self.flight.most();
        if increment > 0.0 && self.window + increment <= most {
            self.window += increment;
            self.may_move_inflection = true;
        }
    }
}

/// The share of marked packets, `l4s_alpha`.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    alpha: f64,
    packets: u32,
    marked: u32,
    updated_at: Option<Time>,
}

impl Marks {
    fn on_feedback(&mut self, feedback: &Feedback) {
        self.packets = self.packets.saturating_add(feedback.packets);
        self.marked = self.marked.saturating_add(feedback.marked);
        let since = seconds_since(self.updated_at, feedback.now);
        if since < feedback.rtt.min(MARKS_INTERVAL) || self.packets == 0 {
            return;
        }
        let share = (f64::from(self.marked) / f64::from(self.packets)).min(1.0);
        self.alpha = if share >= self.alpha {
            MARKS_UP * share + (1.0 - MARKS_UP) * self.alpha
        } else {
            (1.0 - MARKS_DOWN) * self.alpha
        };
        (self.packets, self.marked, self.updated_at) = (0, 0, Some(feedback.now));
    }
}

/// The most bytes in flight in this round trip and in the one before.
#[derive(Clone, Copy, Debug, Default)]
struct MostInFlight {
    current: f64,
    before: f64,
    began_at: Time,
}

impl MostInFlight {
    fn on_flight(&mut self, now: Time, bytes: f64, rtt: f64) {
        if now.saturating_since(self.began_at).as_secs_f64() >= rtt {
            (self.before, self.current, self.began_at) = (self.current, 0.0, now);
        }
        self.current = self.current.max(bytes);
    }

    fn most(&self) -> f64 {
        self.current.max(self.before)
    }
}

/// The time since an event, in seconds; infinite if there was none.
fn seconds_since(event: Option<Time>, now: Time) -> f64 {
    event.map_or(f64::INFINITY, |at| now.saturating_since(at).as_secs_f64())
}

/// VIRTUAL_RTT, in seconds.
pub(super) const VIRTUAL_RTT: f64 = 0.025;

/// MIN_REF_WND, in bytes.
const MIN_WINDOW: f64 = 3_000.0;

/// BETA_LOSS.
const LOSS_FACTOR: f64 = 0.7;

/// BETA_ECN.
const MARK_FACTOR: f64 = 0.8;

/// MUL_INCREASE_FACTOR.
const GROWTH: f64 = 0.02;

/// BYTES_IN_FLIGHT_HEAD_ROOM.
const HEADROOM: f64 = 1.5;

/// POST_CONGESTION_DELAY_RTT.
const CALM_ROUNDS: f64 = 100.0;

/// The interval between updates of `l4s_alpha`, in seconds.
const MARKS_INTERVAL: f64 = 0.01;

/// L4S_AVG_G_UP.
const MARKS_UP: f64 = 1.0 / 8.0;

/// L4S_AVG_G_DOWN.
const MARKS_DOWN: f64 = 1.0 / 128.0;

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: f64 = 0.05;

    const fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// A window of 10,000 bytes with 20,000 in flight, in segments of 1,000.
    fn window(is_l4s: bool) -> ReferenceWindow {
        let mut window = ReferenceWindow::new(1_000.0, is_l4s);
        window.window = 10_000.0;
        window.on_flight(Time::ZERO, 20_000.0, RTT);
        window
    }

    fn feedback(now: u64, packets: u32, marked: u32) -> Feedback {
        Feedback {
            now: at(now),
            acked: 1_000.0 * f64::from(packets),
            packets,
            marked,
            rtt: RTT,
        }
    }

    /// A queueing delay whose average and last value are this, in milliseconds.
    fn delay(millis: u64) -> QueueDelay {
        let mut delay = QueueDelay::default();
        delay.on_arrival(at(0), at(0), at(0));
        for step in 1..400 {
            delay.on_arrival(at(step), at(0), at(millis));
            delay.average_at(at(step), 0.0);
        }
        delay
    }

    fn near(found: f64, expected: f64) {
        assert!(
            (found / expected - 1.0).abs() < 1e-6,
            "{found}, not {expected}"
        );
    }

    /// By hand: a segment is a tenth of the window. Without congestion so far the increment is
    /// 1000 · 0.1 · (1 + 0.02 · 10) = 120. At an RTT of 10 ms it is 10/25 of that.
    #[test]
    fn an_acknowledged_segment_opens_the_window() {
        let mut slow = window(false);
        slow.on_feedback(&feedback(1_000, 1, 0), &delay(0), 0.06, true);
        near(slow.get(), 10_120.0);
        let mut fast = window(false);
        let short = Feedback {
            rtt: 0.01,
            ..feedback(1_000, 1, 0)
        };
        fast.on_feedback(&short, &delay(0), 0.06, true);
        near(fast.get(), 10_048.0);
    }

    /// The window may grow up to 1,000 + 1.5 · 6,000 = 10,000.
    #[test]
    fn the_window_grows_only_with_what_is_in_flight_and_if_it_may() {
        let mut idle = window(false);
        idle.flight = MostInFlight::default();
        idle.on_flight(at(1_000), 6_000.0, RTT);
        idle.on_feedback(&feedback(1_000, 1, 0), &delay(0), 0.06, true);
        assert_eq!(idle.get(), 10_000.0);
        idle.on_flight(at(1_000), 6_081.0, RTT);
        idle.on_feedback(&feedback(1_000, 1, 0), &delay(0), 0.06, true);
        near(idle.get(), 10_120.0);
        let mut full = window(false);
        full.on_feedback(&feedback(1_000, 1, 0), &delay(0), 0.06, false);
        assert_eq!(full.get(), 10_000.0);
    }

    /// By hand: a loss leaves 7,000. `near` is then (8 · 0.3)², at most 1. The next segment adds
    /// 1000/7000 of itself, and no multiplicative part right after the loss: 142.857. After 50
    /// round trips, 2.5 s, that part is half of 0.02 · 7: 0.07.
    #[test]
    fn a_loss_takes_three_tenths_and_growth_is_slow_after_it() {
        for (later, factor) in [(0, 1.0), (2_500, 1.07), (60_000, 1.14)] {
            let mut window = window(false);
            window.on_loss();
            window.on_feedback(&feedback(1_000, 0, 0), &delay(0), 0.06, true);
            near(window.get(), 7_000.0);
            window.on_feedback(&feedback(1_000 + later, 1, 0), &delay(0), 0.06, true);
            near(window.get(), 7_000.0 + 1_000.0 / 7.0 * factor);
        }
    }

    #[test]
    fn reactions_are_a_virtual_round_trip_apart_and_none_is_forgotten() {
        let mut window = window(false);
        let mut lose = |now, expected: f64| {
            window.on_loss();
            window.on_feedback(&feedback(now, 0, 0), &delay(0), 0.06, false);
            near(window.get(), expected);
        };
        lose(1_000, 7_000.0);
        lose(1_024, 7_000.0);
        lose(1_025, 4_900.0);
        window.on_feedback(&feedback(1_060, 0, 0), &delay(0), 0.06, false);
        near(window.get(), 4_900.0);
        for now in 2..100 {
            window.on_loss();
            window.on_feedback(&feedback(1_000 * now, 0, 0), &delay(0), 0.06, false);
        }
        assert_eq!(window.get(), MIN_WINDOW);
    }

    #[test]
    fn a_mark_takes_a_fifth_with_classic_ecn_and_a_loss_counts_before_it() {
        let mut marked = window(false);
        marked.on_feedback(&feedback(1_000, 1, 1), &delay(0), 0.06, true);
        near(marked.get(), 8_000.0);
        let mut both = window(false);
        both.on_loss();
        both.on_feedback(&feedback(1_000, 1, 1), &delay(0), 0.06, true);
        near(both.get(), 7_000.0);
    }

    /// By hand: half of the packets are marked, α = 1/16. At an RTT of 50 ms, twice the virtual
    /// one, the window loses α/2/2 = 1/64. There was no congestion before, so the window first
    /// falls to the flight of the previous round trip, 9,000: 8859.375.
    #[test]
    fn with_l4s_the_share_of_marks_counts() {
        let mut window = window(true);
        window.flight.before = 9_000.0;
        window.on_feedback(&feedback(1_000, 4, 2), &delay(0), 0.06, false);
        near(window.get(), 9_000.0 * 63.0 / 64.0);
        near(window.marks.alpha, 1.0 / 16.0);
        // Without marks α falls by 1/128 every 10 ms.
        window.on_feedback(&feedback(1_009, 4, 0), &delay(0), 0.06, false);
        near(window.marks.alpha, 1.0 / 16.0);
        window.on_feedback(&feedback(1_010, 4, 0), &delay(0), 0.06, false);
        near(window.marks.alpha, 127.0 / 2_048.0);
    }

    /// By hand: 45 ms are half way from 30 to 60 ms. At an RTT of 50 ms the window loses
    /// 0.5/2/2 = 1/8, and above 60 ms a quarter.
    #[test]
    fn the_delay_counts_from_half_of_its_target_on() {
        for (millis, expected) in [(29, 10_000.0), (45, 8_750.0), (60, 7_500.0), (90, 7_500.0)] {
            let mut window = window(false);
            window.on_feedback(&feedback(1_000, 0, 0), &delay(millis), 0.06, true);
            near(window.get(), expected);
            assert!(window.congested_at.is_none(), "no loss and no mark");
        }
    }

    /// The reference window of Ericsson's implementation in its published trace
    /// `examples/trace-dualpi-50Mbps-25ms-nol4s.txt` (repository EricssonResearch/scream, of 9 May
    /// 2025) from 0.5 to 2 s, before any congestion: time, reference window in bytes and
    /// transmitted rate in bit/s. Its segments have 1,212 bytes, its round trip 25 ms. The rate
    /// between two lines is interpolated. It is an average, so it lags a little.
    #[test]
    fn the_window_grows_as_in_a_published_trace() {
        let trace = [
            (0.5025, 19_308.0, 2_004_539.0),
            (0.7532, 27_780.0, 4_242_376.0),
            (1.0021, 39_131.0, 6_842_818.0),
            (1.2537, 51_938.0, 10_156_936.0),
            (1.5016, 67_214.0, 13_925_498.0),
            (1.7532, 87_579.0, 18_256_718.0),
            (2.0029, 113_277.0, 23_956_076.0),
        ];
        let mut window = ReferenceWindow::new(1_212.0, false);
        window.window = trace[0].1;
        for pair in trace.windows(2) {
            let [(from, _, slow), (to, expected, fast)] = [pair[0], pair[1]];
            for step in 0..100 {
                let share = (f64::from(step) + 0.5) / 100.0;
                let time: f64 = from + (to - from) * share;
                let now = Time::from_nanos((time * 1e9) as u64);
                window.on_flight(now, 1e9, 0.025);
                let step = Feedback {
                    now,
                    acked: (slow + (fast - slow) * share) / 8.0 * (to - from) / 100.0,
                    packets: 1,
                    marked: 0,
                    rtt: 0.025,
                };
                window.on_feedback(&step, &delay(0), 0.06, true);
            }
            let share = window.get() / expected;
            assert!(
                (0.92..1.02).contains(&share),
                "{to} s: {share} of the trace"
            );
        }
    }
}
