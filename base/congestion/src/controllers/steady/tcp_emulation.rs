//! The windows that TCP flows would have under the congestion episodes of this path.

use comity_units::{DataSize, Rate, Span, Time};

/// Emulates the windows of a CUBIC and a Reno flow that react once to each congestion episode,
/// whatever this flow sends.
///
/// ```text
/// CUBIC    at an episode   W_max = window, or window · (1 + 0.7) / 2 if window < W_max
///                          window = 0.7 · window
///          in between      window = max( 0.4 · (t − K)³ + W_max, W_est ),  K = ∛( (W_max − window) / 0.4 )
///                          W_est grows by 9/17 segment each round trip, by one from W_max on
/// Reno     at an episode   window = window / 2
///          in between      window grows by one segment each round trip
/// average  of c · CUBIC + (1 − c) · Reno, exponentially weighted over 3 s
/// newcomer in between      all windows grow by a quarter each round trip while the queue is drained
///          at an episode   average = 3/4 · average, the mean of Reno's window from 1/2 to 1
/// rate     = average / srtt · cycle / ( cycle + 4 · srtt · risk )
/// cycle    mean time between the last eight episodes, exponentially weighted; at least the time
///          since the last one and one round trip
/// risk     min( 1, 2 · srtt / cycle ) · small
/// small    1 up to an average of 3 segments, 0 from 16 on, linear in between
/// ```
///
/// Windows are in segments, and `t` is the time since the last episode in seconds.
///
/// **Why episodes.** TCP's throughput equation counts losses. A paced flow loses a different number
/// of packets than an ACK-clocked flow: at a full queue, a packet of the latter arrives just after
/// one of its own packets has left. So the equation gives a wrong share for a paced flow. Episodes
/// are the same for all flows at a queue.
///
/// **CUBIC or Reno.** In deep queues on long paths a CUBIC flow has several times the window of a
/// Reno flow under the same episodes. The shape of the queue's growth gives the share `c` of CUBIC
/// ([`super::cubic_share::CubicShare`]). If only some of the other flows back off in an episode,
/// the emulated windows back off in part ([`super::backoff_share::BackoffShare`]).
///
/// **Newcomers.** The first episodes of a flow come in its own slow start, or in a queue that other
/// flows have just filled. They show little of its share, and on a long path TCP's windows would
/// need half a minute to find it. A flow is a newcomer until its first episode after eight round
/// trips.
///
/// **Timeouts.** The last factor of the rate is the part of the time without timeouts. A TCP flow
/// waits for its timer in two cases: its retransmission is lost, in another episode within two
/// round trips, or too few packets follow a lost one to reveal the loss. Without this factor, eight
/// and more flows of this controller keep small windows full, and lose two to four times as much as
/// TCP flows would.
///
/// Source: RFC 9438, sections 4.2 to 4.7, for CUBIC; RFC 5681, section 3.1, for Reno; RFC 9406,
/// section 4.2, for the growth of a newcomer (conservative slow start: a quarter of slow start's);
/// RFC 5348, section 3.1, for a timer of four round trips. Differs from these in: 1. the windows do
/// not depend on what is sent, but never exceed what is in use ([`TcpEmulation::cap`]); 2. at the
/// first episode they are what was delivered, half of what a slow start has sent; 3. the risk of a
/// timeout is below that of Padhye et al. (SIGCOMM 1998), min( 1, 3 / window ), because Linux
/// repairs most losses without a timeout (RFC 8985).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TcpEmulation {
    windows: Option<EmulatedWindows>,
    /// The windows before the last episode, to undo it.
    before: Option<EmulatedWindows>,
}

#[derive(Clone, Copy, Debug)]
struct EmulatedWindows {
    /// In segments, as are all windows below.
    cubic: f64,
    reno: f64,
    /// The window before the last decrease.
    peak: f64,
    /// `W_est` of CUBIC.
    estimate: f64,
    /// The window after the last decrease, and the time of the decrease.
    origin: f64,
    origin_at: Time,
    average: f64,
    updated_at: Time,
    /// When the last episode began.
    episode_at: Time,
    /// The mean time between episodes; `None` after a single one.
    cycle: Option<Span>,
    /// For how many round trips the flow has been a newcomer; `None` once it is established.
    newcomer: Option<f64>,
}

impl TcpEmulation {
    /// Reacts to a congestion episode. Before it, `carried` bytes were delivered in a round trip.
    pub(super) fn on_episode(&mut self, now: Time, carried: DataSize) {
        self.before = self.windows;
        self.windows = Some(match self.windows {
            None => EmulatedWindows::beginning(now, segments(carried)),
            Some(windows) => windows.decreased(now),
        });
    }

    pub(super) fn undo_episode(&mut self) {
        self.windows = self.before;
    }

    /// Reports that only these parts of the CUBIC and Reno flows backed off at the last episode.
    /// The windows regain the rest of their reduction.
    pub(super) fn soften(&mut self, cubic: f64, reno: f64) {
        if let (Some(windows), Some(before)) = (&mut self.windows, &self.before) {
            let back = (1.0 - cubic) * (1.0 - DECREASE) * before.cubic;
            windows.cubic += back;
            windows.origin += back;
            windows.estimate += back;
            windows.peak = windows.peak.max(windows.origin);
            windows.reno += (1.0 - reno) / 2.0 * before.reno;
        }
    }

    /// Grows the windows for the time since the last call. `cubic_share` is CUBIC's weight in the
    /// average; `has_drained` says whether the queue has drained since the last episode.
    pub(super) fn grow(&mut self, now: Time, rtt: Span, cubic_share: f64, has_drained: bool) {
        if let Some(windows) = &mut self.windows {
            windows.grow(now, rtt, cubic_share, has_drained);
        }
    }

    /// Limits the windows to the bytes in use per round trip.
    pub(super) fn cap(&mut self, now: Time, used: DataSize) {
        let segments = segments(used);
        if let Some(windows) = &mut self.windows {
            windows.reno = windows.reno.min(segments);
            windows.average = windows.average.min(segments);
            if windows.cubic > segments {
                windows.restart(now, segments);
                windows.estimate = windows.estimate.min(segments);
            }
        }
    }

    /// The average window in segments; zero before the first episode.
    pub(super) fn segments(&self) -> f64 {
        self.windows.map_or(0.0, |windows| windows.average)
    }

    /// The average rate; `None` before the first episode.
    pub(super) fn rate(&self, rtt: Span) -> Option<Rate> {
        let windows = self.windows?;
        Some(Rate::of(SEGMENT, rtt).mul_f64(windows.average * windows.time_without_timeouts(rtt)))
    }
}

impl EmulatedWindows {
    const fn beginning(now: Time, carried: f64) -> Self {
        Self {
            cubic: carried,
            reno: carried,
            peak: carried,
            estimate: carried,
            origin: carried,
            origin_at: now,
            average: carried,
            updated_at: now,
            episode_at: now,
            cycle: None,
            newcomer: Some(0.0),
        }
    }

    /// Restarts CUBIC's curve at this window.
    const fn restart(&mut self, now: Time, window: f64) {
        self.cubic = window;
        self.peak = window;
        self.origin = window;
        self.origin_at = now;
    }

    fn decreased(self, now: Time) -> Self {
        let peak = if self.cubic < self.peak {
            self.cubic * (1.0 + DECREASE) / 2.0
        } else {
            self.cubic
        };
        let cubic = (self.cubic * DECREASE).max(MIN_WINDOW);
        let since = now.saturating_since(self.episode_at);
        Self {
            episode_at: now,
            cycle: Some(match self.cycle {
                None => since,
                Some(mean) => mean.saturating_sub(mean / CYCLES) + since / CYCLES,
            }),
            cubic,
            reno: (self.reno / 2.0).max(MIN_WINDOW),
            peak,
            estimate: cubic,
            origin: cubic,
            origin_at: now,
            average: match self.newcomer {
                Some(_) => self.average * NEWCOMER_AVERAGE,
                None => self.average,
            },
            newcomer: self.newcomer.filter(|&rounds| rounds <= NEWCOMER_ROUNDS),
            ..self
        }
    }

    /// The part of the time in which the flow does not wait for its retransmission timer.
    fn time_without_timeouts(&self, rtt: Span) -> f64 {
        let Some(mean) = self.cycle else {
            return 1.0;
        };
        let open = self.updated_at.saturating_since(self.episode_at);
        let cycle = mean.max(open).max(rtt).as_secs_f64();
        let rtt = rtt.as_secs_f64();
        let small = ((LARGE_WINDOW - self.average) / (LARGE_WINDOW - SMALL_WINDOW)).clamp(0.0, 1.0);
        let risk = (RETRANSMISSION * rtt / cycle).min(1.0) * small;
        cycle / (cycle + TIMEOUT * rtt * risk)
    }

    fn grow(&mut self, now: Time, rtt: Span, cubic_share: f64, has_drained: bool) {
        let elapsed = now.saturating_since(self.updated_at);
        self.updated_at = now;
        let rounds = elapsed.as_secs_f64() / rtt.as_secs_f64();
        let newcomer = self.cubic * (1.0 + NEWCOMER_GROWTH * rounds);
        self.reno += rounds;
        self.estimate += rounds
            * if self.estimate < self.peak {
                FRIENDLY
            } else {
                1.0
            };
        let rise = (self.peak - self.origin).max(0.0);
        let inflection = libm::cbrt(rise / SCALE);
        let since = now.saturating_since(self.origin_at).as_secs_f64() - inflection;
        let curve = self.peak.max(self.origin) + SCALE * since * since * since;
        // CUBIC grows by at most half of its window in a round trip.
        let most = self.cubic * (1.0 + 0.5 * rounds);
        self.cubic = curve.min(most).max(self.estimate).max(self.origin);
        let part = 1.0 - libm::exp(-elapsed.as_secs_f64() / MEMORY.as_secs_f64());
        let window = self.reno + cubic_share * (self.cubic - self.reno);
        self.average += part * (window - self.average);
        if let Some(been) = &mut self.newcomer {
            *been += rounds;
            if has_drained && newcomer > self.cubic {
                self.restart(now, newcomer);
                self.estimate = newcomer;
                self.reno = self.reno.max(newcomer);
                self.average = self.average.max(newcomer);
            }
        }
    }
}

/// Bytes as segments, at least the minimum window.
fn segments(bytes: DataSize) -> f64 {
    (bytes.get() as f64 / SEGMENT.get() as f64).max(MIN_WINDOW)
}

/// The part of its window by which a CUBIC flow backs off: 1 − β (RFC 9438, section 4.6).
pub(super) const CUBIC_BACKOFF: f64 = 0.3;

/// β of CUBIC.
pub(super) const DECREASE: f64 = 1.0 - CUBIC_BACKOFF;

/// C of CUBIC, in segments per cubic second.
const SCALE: f64 = 0.4;

/// 3 · (1 − β) / (1 + β): with this increase and β, the average window equals Reno's.
const FRIENDLY: f64 = 9.0 / 17.0;

/// The minimum window, in segments.
const MIN_WINDOW: f64 = 2.0;

/// Up to this average window, in segments, each episode that meets a retransmission costs a
/// timeout.
const SMALL_WINDOW: f64 = 3.0;

/// From this average window on, no episode costs a timeout.
const LARGE_WINDOW: f64 = 16.0;

/// The time until a retransmission is acknowledged, in round trips.
const RETRANSMISSION: f64 = 2.0;

/// The retransmission timeout, in round trips.
const TIMEOUT: f64 = 4.0;

/// The number of episodes in the mean time between them.
const CYCLES: u64 = 8;

/// The payload of a full segment of TCP with time stamps on a path of 1,500 bytes.
const SEGMENT: DataSize = DataSize::new(1_448);

/// The part of its window by which a newcomer grows each round trip.
const NEWCOMER_GROWTH: f64 = 0.25;

/// A flow stops being a newcomer at its first episode after this many round trips.
const NEWCOMER_ROUNDS: f64 = 8.0;

/// The average of a newcomer at an episode, as a part of its window.
const NEWCOMER_AVERAGE: f64 = 0.75;

/// The time constant of the average: several episodes of a shared path.
const MEMORY: Span = Span::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(100);

    fn of(segments: u64) -> DataSize {
        SEGMENT * segments
    }

    /// Windows after `millis` of growth in steps of 10 ms from `from`.
    fn grown(emulation: &mut TcpEmulation, from: u64, millis: u64) -> EmulatedWindows {
        for step in 1..=millis / 10 {
            emulation.grow(Time::from_millis(from + step * 10), RTT, 0.5, false);
        }
        emulation.windows.unwrap()
    }

    fn near(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 0.01 * expected
    }

    #[test]
    fn there_is_no_share_before_an_episode() {
        let mut emulation = TcpEmulation::default();
        emulation.grow(Time::from_secs(1), RTT, 0.5, false);
        emulation.cap(Time::from_secs(1), of(5));
        assert_eq!(emulation.rate(RTT), None);
        emulation.on_episode(Time::from_secs(1), of(20));
        // 20 segments of 1,448 bytes in 100 ms.
        assert_eq!(emulation.rate(RTT), Some(Rate::from_bps(2_316_800)));
        emulation.undo_episode();
        assert_eq!(emulation.rate(RTT), None);
    }

    /// A flow after two episodes with 20 segments, and a second of growth.
    fn newcomer(has_drained: bool) -> TcpEmulation {
        let mut emulation = TcpEmulation::default();
        emulation.on_episode(Time::ZERO, of(20));
        emulation.on_episode(Time::ZERO, of(20));
        for step in 1..=100 {
            emulation.grow(Time::from_millis(step * 10), RTT, 0.5, has_drained);
        }
        emulation
    }

    #[test]
    fn a_newcomer_grows_by_a_quarter_each_round_trip_while_the_queue_has_drained() {
        // 0.7 · 20 segments grow a hundred times by 0.025: 14 · 11.81.
        let grown = newcomer(true).windows.unwrap();
        assert!(near(grown.cubic, 165.4), "{grown:?}");
        assert!(
            near(grown.reno, 165.4) && near(grown.average, 165.4),
            "{grown:?}"
        );
        let full = newcomer(false).windows.unwrap();
        assert!((14.0..21.0).contains(&full.cubic), "{full:?}");
        // It is still a newcomer at an episode after eight round trips, and no longer after nine.
        let mut emulation = newcomer(true);
        let before = emulation.windows.unwrap();
        assert!(
            before.newcomer.is_some_and(|rounds| near(rounds, 10.0)),
            "{before:?}"
        );
        for rounds in [8.0, 8.1] {
            let mut emulation = emulation;
            emulation.windows = Some(EmulatedWindows {
                newcomer: Some(rounds),
                ..before
            });
            emulation.on_episode(Time::from_secs(1), of(20));
            let lost = emulation.windows.unwrap();
            assert!(near(lost.average, 124.1), "165.4 · 3/4: {lost:?}");
            assert_eq!(lost.newcomer.is_some(), rounds == 8.0);
        }
        emulation.on_episode(Time::from_secs(1), of(20));
        let lost = emulation.windows.unwrap();
        emulation.grow(Time::from_millis(1_100), RTT, 0.5, true);
        let later = emulation.windows.unwrap();
        assert!(later.cubic < lost.cubic * 1.1, "{later:?}");
    }

    #[test]
    fn only_small_windows_lose_time_to_timeouts() {
        // Episodes every 200 ms. A timer of four round trips of 100 ms takes 400 ms.
        for (average, left) in [
            (2.0, 1.0 / 3.0),
            (3.0, 1.0 / 3.0),
            (9.5, 0.5),
            (16.0, 1.0),
            (40.0, 1.0),
        ] {
            let mut emulation = TcpEmulation::default();
            for episode in 0..50 {
                emulation.on_episode(Time::from_millis(episode * 200), of(20));
            }
            let windows = emulation.windows.as_mut().unwrap();
            windows.average = average;
            windows.updated_at = windows.episode_at;
            let rate = emulation.rate(RTT).unwrap().as_bps() as f64;
            let expected = average * left * 115_840.0;
            assert!(near(rate, expected), "{average}: {rate} for {expected}");
        }
    }

    #[test]
    fn the_cycle_is_the_mean_of_the_last_episodes_or_what_has_passed_since_the_last() {
        let mut emulation = TcpEmulation::default();
        emulation.on_episode(Time::ZERO, of(3));
        assert_eq!(
            emulation.windows.unwrap().time_without_timeouts(RTT),
            1.0,
            "one episode"
        );
        emulation.on_episode(Time::from_millis(800), of(3));
        assert_eq!(
            emulation.windows.unwrap().cycle,
            Some(Span::from_millis(800))
        );
        emulation.on_episode(Time::from_millis(1_000), of(3));
        let windows = emulation.windows.as_mut().unwrap();
        assert_eq!(
            windows.cycle,
            Some(Span::from_millis(725)),
            "800 · 7/8 + 200/8"
        );
        windows.average = 3.0;
        // With a timer of 400 ms, the risk is 200 in 725, and 200 in 1,600.
        assert!(near(windows.time_without_timeouts(RTT), 725.0 / 835.3));
        windows.updated_at = Time::from_millis(2_600);
        assert!(near(windows.time_without_timeouts(RTT), 1_600.0 / 1_650.0));
        // An episode lasts at least a round trip.
        windows.updated_at = windows.episode_at;
        let long = Span::from_secs(1);
        assert!(near(windows.time_without_timeouts(long), 0.2));
    }

    #[test]
    fn reno_halves_and_grows_by_a_segment_each_round_trip() {
        let mut emulation = TcpEmulation::default();
        emulation.on_episode(Time::ZERO, of(40));
        emulation.on_episode(Time::ZERO, of(40));
        assert_eq!(emulation.windows.unwrap().reno, 20.0);
        assert!(near(grown(&mut emulation, 0, 1_500).reno, 35.0));
    }

    #[test]
    fn cubic_is_back_at_its_peak_after_k_and_grows_beyond_it() {
        let mut emulation = TcpEmulation::default();
        emulation.on_episode(Time::ZERO, of(100));
        emulation.on_episode(Time::ZERO, of(100));
        let windows = emulation.windows.unwrap();
        assert_eq!((windows.cubic, windows.peak), (70.0, 100.0));
        // K = ∛(30 / 0.4) = 4.217 s. W_est is 70 + 42.17 · 9/17 = 92.3 by then.
        let back = grown(&mut emulation, 0, 4_220);
        assert!(near(back.cubic, 100.0), "{back:?}");
        // Four seconds later: 100 + 0.4 · 64.
        let later = grown(&mut emulation, 4_220, 4_000);
        assert!(near(later.cubic, 125.6), "{later:?}");
        // At half of K: 100 − 0.4 · 2.108³.
        let mut again = TcpEmulation::default();
        again.on_episode(Time::ZERO, of(100));
        again.on_episode(Time::ZERO, of(100));
        let half = grown(&mut again, 0, 2_110);
        assert!(near(half.cubic, 96.25), "{half:?}");
    }

    #[test]
    fn a_second_episode_below_the_peak_gives_room_to_others() {
        let mut emulation = TcpEmulation::default();
        emulation.on_episode(Time::ZERO, of(100));
        emulation.on_episode(Time::ZERO, of(100));
        emulation.on_episode(Time::ZERO, of(100));
        let windows = emulation.windows.unwrap();
        assert!(near(windows.cubic, 49.0), "{windows:?}");
        assert!(near(windows.peak, 59.5), "70 · 1.7 / 2: {windows:?}");
    }

    #[test]
    fn episodes_at_equal_intervals_give_the_weighted_mean_of_both_averages() {
        // One every 2 s, 20 round trips. Reno has 1.5 · 20 segments on average. CUBIC has as much
        // by its additive increase, and more because it grows by one segment beyond W_max.
        for share in [0.0, 0.5, 1.0] {
            let mut emulation = TcpEmulation::default();
            emulation.on_episode(Time::ZERO, of(60));
            let (mut sums, mut count) = ([0.0; 3], 0.0);
            for episode in 0..40_u64 {
                let began = episode * 2_000;
                emulation.on_episode(Time::from_millis(began), of(0));
                for step in 1..=200 {
                    emulation.grow(Time::from_millis(began + step * 10), RTT, share, false);
                    if episode >= 20 {
                        let windows = emulation.windows.unwrap();
                        sums[0] += windows.reno;
                        sums[1] += windows.cubic;
                        sums[2] += windows.average;
                        count += 1.0;
                    }
                }
            }
            let [reno, cubic, average] = sums.map(|sum| sum / count);
            assert!(near(reno, 30.0), "{reno}");
            assert!((32.0..40.0).contains(&cubic), "{cubic}");
            let expected = reno + share * (cubic - reno);
            assert!(near(average, expected), "{average} of {expected}");
        }
    }

    #[test]
    fn an_episode_in_which_few_flows_backed_off_takes_less() {
        let mut emulation = TcpEmulation::default();
        emulation.on_episode(Time::ZERO, of(100));
        emulation.on_episode(Time::ZERO, of(100));
        emulation.soften(1.0, 1.0);
        let windows = emulation.windows.unwrap();
        assert_eq!((windows.cubic, windows.reno), (70.0, 50.0));
        emulation.on_episode(Time::ZERO, of(100));
        emulation.soften(0.5, 0.25);
        let windows = emulation.windows.unwrap();
        assert!(near(windows.cubic, 59.5), "70 · (1 − 0.3 / 2): {windows:?}");
        assert!(near(windows.origin, 59.5), "{windows:?}");
        assert!(near(windows.reno, 43.75), "50 · (1 − 0.5 / 4): {windows:?}");
        emulation.undo_episode();
        assert_eq!(emulation.windows.unwrap().cubic, 70.0);
    }

    #[test]
    fn unused_windows_do_not_grow() {
        let mut emulation = TcpEmulation::default();
        emulation.on_episode(Time::ZERO, of(10));
        for step in 1..=10_000_u64 {
            let now = Time::from_millis(step * 10);
            emulation.grow(now, RTT, 0.5, false);
            emulation.cap(now, of(30));
        }
        let windows = emulation.windows.unwrap();
        assert_eq!((windows.cubic, windows.reno), (30.0, 30.0));
        assert!(near(windows.average, 30.0), "{windows:?}");
    }
}
