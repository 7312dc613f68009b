//! Vegas: a window that keeps a few segments waiting at the bottleneck.

use comity_units::{DataSize, Span, Time};

use crate::{Ack, Controller, Decision, Event, Loss, Phase, Sent, Timeout};

/// The configuration of [`Vegas`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VegasConfig {
    /// The payload of a full segment.
    pub mss: DataSize,
    /// The window before the first acknowledgement.
    pub initial_window: DataSize,
    /// The slow-start threshold before the first loss.
    pub initial_ssthresh: DataSize,
    /// The maximum window.
    pub max_window: DataSize,
    /// `α`: with fewer extra segments than this at the bottleneck, the window grows.
    pub alpha: f64,
    /// `β`: with more extra segments than this, the window shrinks.
    pub beta: f64,
    /// `γ`: with more extra segments than this, slow start ends.
    pub gamma: f64,
    /// Whether the extra segments are rounded to the nearest whole number before they are compared,
    /// as in ns-2. The paper compares them as they are.
    pub whole_segments: bool,
}

impl VegasConfig {
    /// ns-2's values: `α` 1, `β` 3, `γ` 1, in whole segments.
    pub const fn ns2(mss: DataSize) -> Self {
        Self {
            mss,
            initial_window: mss,
            initial_ssthresh: DataSize::MAX,
            max_window: DataSize::MAX,
            alpha: 1.0,
            beta: 3.0,
            gamma: 1.0,
            whole_segments: true,
        }
    }
}

/// Adjusts the window once per round trip, by the segments that wait at the bottleneck.
///
/// ```text
/// expected = cwnd / base_rtt                 base_rtt: the minimum round-trip time
/// actual   = sent in the round / rtt         rtt: the mean of the round's samples
/// diff     = (expected − actual) · base_rtt                                        [segments]
///
/// slow start, every other round:   diff > γ:  cwnd −= cwnd / 8 and avoidance begins
///                                  else:      cwnd += 1 per acknowledged segment for one round
/// avoidance, every round:          diff < α:  cwnd += 1 / cwnd per acknowledged segment
///                                  diff > β:  cwnd −= 1
/// loss:     cwnd = max(3/4 · window, 2), and avoidance begins  (Tahoe: cwnd = 1)
/// timeout:  ssthresh = max(window / 2, 2),  cwnd = 2
/// ```
///
/// `diff` does not reduce the window below two segments. A round begins with an acknowledgement,
/// and ends with the acknowledgement of the first segment sent after it. A round with a single
/// segment resets `base_rtt`, because it measures the empty path.
///
/// Two flows need not reach equal windows. Between α and β no window moves, so one flow may keep a
/// queue three times as long as the other's. A flow that begins behind the queue of another takes
/// that queue for a part of the path, and adds its own (`lab/sim/tests/sharing.rs`).
///
/// Source: L. S. Brakmo and L. L. Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global
/// Internet", IEEE JSAC 13(8), 1995, section III; details that it leaves open as in ns-2's
/// `tcp-vegas.cc`.
///
/// Differs from the source in: 1. the transport's recovery detects losses. Vegas' own detection (a
/// fine-grained timer that is checked at the first duplicate acknowledgement and at the two
/// acknowledgements after a retransmission) is left out; 2. so the deeper reduction for a segment
/// that is lost again (1/2 in ns-2) is left out too; 3. the window is a real number, where ns-2
/// rounds a reduced window down to whole segments; 4. `expected` is computed from the flight before
/// the acknowledgement, but at most from the window, so that stretched acknowledgements do not
/// count as a larger window; 5. the window does not grow while the application limits the flow,
/// where ns-2 checks whether the flight is within two segments of the window; 6. losses and
/// timeouts begin a new round.
#[derive(Clone, Debug)]
pub struct Vegas {
    config: VegasConfig,
    /// cwnd in segments.
    window: f64,
    /// ssthresh in segments, for slow start only.
    ssthresh: f64,
    base_rtt: Option<Span>,
    growth: Growth,
    /// Whether the next round of slow start decides. Every other round only lets the flight settle.
    decides: bool,
    round: Round,
}

/// The growth of the window for an acknowledged segment until the round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    /// One segment.
    Double,
    /// `1 / cwnd`.
    Linear,
    /// Nothing.
    None,
}

#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// The bytes in flight at the beginning that are not acknowledged yet. The round ends with the
    /// byte after them.
    outstanding: DataSize,
    began: Option<Time>,
    sent: DataSize,
    /// The sum of the samples, in nanoseconds, and their number.
    rtt_sum: u64,
    samples: u32,
}

impl Vegas {
    /// Creates the controller of a flow that has sent nothing yet.
    pub fn new(config: VegasConfig) -> Self {
        let segments = |amount| super::segments(amount, config.mss);
        Self {
            window: segments(config.initial_window)
                .min(segments(config.max_window))
                .max(1.0),
            ssthresh: segments(config.initial_ssthresh),
            base_rtt: None,
            growth: Growth::Double,
            decides: true,
            round: Round::default(),
            config,
        }
    }

    /// The congestion window in segments.
    pub const fn window(&self) -> f64 {
        self.window
    }

    /// The minimum round-trip time.
    pub const fn base_rtt(&self) -> Option<Span> {
        self.base_rtt
    }

    fn segments(&self, amount: DataSize) -> f64 {
        amount.get() as f64 / self.config.mss.get().max(1) as f64
    }

    /// The extra segments at the bottleneck over the round that `ack` ends.
    fn extra_segments(&mut self, ack: &Ack) -> Option<f64> {
        let rtt = match (
            self.round
                .rtt_sum
                .checked_div(u64::from(self.round.samples)),
            ack.rtt,
        ) {
            (Some(mean), _) => Span::from_nanos(mean),
            (None, Some(sample)) => sample,
            (None, None) => ack.now.since(self.round.began?)?,
        };
        if rtt.is_zero() {
            return None;
        }
        let alone = self.round.sent <= self.config.mss;
        let base = match self.base_rtt {
            Some(base) if base <= rtt && !alone => base,
            _ => rtt,
        };
        self.base_rtt = Some(base);
        let expected = self.segments(ack.in_flight + ack.acked).min(self.window);
        let ratio = base.as_nanos() as f64 / rtt.as_nanos() as f64;
        let actual = self.segments(self.round.sent) * ratio;
        let extra = expected - actual;
        Some(if self.config.whole_segments {
            libm::floor(extra + 0.5)
        } else {
            extra
        })
    }

    fn adjust(&mut self, extra: f64) {
        if self.window < self.ssthresh {
            self.decides = !self.decides;
            self.growth = if !self.decides {
                Growth::None
            } else if extra > self.config.gamma {
                self.ssthresh = 2.0;
                self.window = at_least_two(self.window, self.window * 7.0 / 8.0);
                Growth::None
            } else {
                Growth::Double
            };
        } else if extra > self.config.beta {
            self.window = at_least_two(self.window, self.window - 1.0);
            self.growth = Growth::None;
        } else if extra < self.config.alpha {
            self.growth = Growth::Linear;
        } else {
            self.growth = Growth::None;
        }
    }

    fn grow(&mut self, acked: DataSize) {
        let covered = self.segments(acked).min(self.window);
        self.window += match self.growth {
            Growth::Double if self.window < self.ssthresh => covered,
            Growth::Linear => covered / self.window,
            Growth::Double | Growth::None => 0.0,
        };
        if self.config.max_window != DataSize::MAX {
            self.window = self
                .window
                .min(self.segments(self.config.max_window))
                .max(1.0);
        }
    }

    fn begin_round(&mut self, in_flight: DataSize, now: Time) {
        self.round = Round {
            outstanding: in_flight + DataSize::new(1),
            began: Some(now),
            ..Round::default()
        };
    }
}

/// `reduced`, but at least two segments, and at most `window` if that is larger than two.
fn at_least_two(window: f64, reduced: f64) -> f64 {
    reduced.max(2.0).min(window.max(2.0))
}

impl Vegas {
    fn on_ack(&mut self, ack: &Ack) {
        if !ack.in_recovery {
            if ack.acked < self.round.outstanding {
                self.round.outstanding -= ack.acked;
            } else {
                if let Some(extra) = self.extra_segments(ack) {
                    self.adjust(extra);
                }
                self.begin_round(ack.in_flight, ack.now);
            }
            if !ack.app_limited {
                self.grow(ack.acked);
            }
        }
        if let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero()) {
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
            self.round.rtt_sum = self.round.rtt_sum.saturating_add(rtt.as_nanos());
            self.round.samples = self.round.samples.saturating_add(1);
        }
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.round.began.get_or_insert(sent.now);
        self.round.sent += sent.payload;
    }

    fn on_loss(&mut self, loss: &Loss) {
        let basis = self.segments(loss.window).min(self.window);
        self.window = if loss.restart {
            1.0
        } else {
            at_least_two(self.window, basis * 3.0 / 4.0)
        };
        self.ssthresh = 2.0;
        self.growth = Growth::None;
        self.begin_round(loss.in_flight.saturating_sub(loss.lost), loss.now);
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        let basis = self.segments(timeout.window).min(self.window);
        self.ssthresh = (basis / 2.0).max(2.0);
        self.window = 2.0;
        self.growth = Growth::Double;
        self.begin_round(DataSize::ZERO, timeout.now);
    }
}

impl Controller for Vegas {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Sent(sent) => self.on_sent(sent),
            Event::Ack(ack) => self.on_ack(ack),
            Event::Loss(loss) => self.on_loss(loss),
            Event::Timeout(timeout) => self.on_timeout(timeout),
            _ => {}
        }
    }

    fn decision(&self) -> Decision {
        let bytes = |segments: f64| DataSize::new((segments * self.config.mss.get() as f64) as u64);
        Decision {
            window: bytes(self.window),
            ssthresh: Some(bytes(self.ssthresh)),
            phase: match (self.window < self.ssthresh, self.growth) {
                (true, _) => Phase::SlowStart,
                (false, Growth::None) => Phase::Steady,
                (false, _) => Phase::CongestionAvoidance,
            },
            ..Decision::default()
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::LossCause;
    use comity_units::PacketNumber;

    const MSS: DataSize = DataSize::new(1_000);

    fn vegas(window: u64, ssthresh: u64) -> Vegas {
        Vegas::new(VegasConfig {
            initial_window: MSS * window,
            initial_ssthresh: MSS * ssthresh,
            ..VegasConfig::ns2(MSS)
        })
    }

    /// Sends and acknowledges `segments` one after another, with a full window in flight.
    fn clock(vegas: &mut Vegas, segments: u64, rtt_ms: u64) {
        for _ in 0..segments {
            let flight = DataSize::new((vegas.window() as u64).max(1) * 1_000);
            vegas.on_ack(&Ack {
                now: Time::from_millis(1),
                acked: MSS,
                rtt: Some(Span::from_millis(rtt_ms)),
                in_flight: flight - MSS,
                app_limited: false,
                in_recovery: false,
                marked: 0,
                packets: 1,
                sample: None,
            });
            send(vegas, 1);
        }
    }

    fn send(vegas: &mut Vegas, segments: u64) {
        for _ in 0..segments {
            vegas.on_sent(&Sent {
                now: Time::ZERO,
                payload: MSS,
                wire: MSS,
                number: PacketNumber::ZERO,
                in_flight: MSS,
                app_limited: false,
            });
        }
    }

    /// A steady flight of 12 segments, base 100 ms: diff = 12 · (1 − 100 / rtt).
    #[test]
    fn avoidance_by_hand() {
        let outcome = |rtt_ms, whole_segments| {
            let mut controller = vegas(12, 1);
            controller.config.whole_segments = whole_segments;
            send(&mut controller, 12);
            clock(&mut controller, 1, 100);
            (controller.window, controller.growth) = (12.0, Growth::None);
            (controller.round.rtt_sum, controller.round.samples) = (0, 0);
            clock(&mut controller, 11, rtt_ms);
            assert_eq!(
                (controller.window, controller.growth),
                (12.0, Growth::None),
                "the round is not over"
            );
            clock(&mut controller, 1, rtt_ms);
            (controller.window - 12.0, controller.growth)
        };
        // 0.35, 0.57, 1.09, 3.00, 3.43 and 4.00 segments.
        for (rtt_ms, exact, rounded) in [
            (103, Growth::Linear, Growth::Linear),
            (105, Growth::Linear, Growth::None),
            (110, Growth::None, Growth::None),
            (133, Growth::None, Growth::None),
        ] {
            let step = |growth| {
                if growth == Growth::Linear {
                    1.0 / 12.0
                } else {
                    0.0
                }
            };
            for (whole, growth) in [(false, exact), (true, rounded)] {
                let (change, found) = outcome(rtt_ms, whole);
                assert_eq!(found, growth, "{rtt_ms} ms");
                assert!(
                    (change - step(growth)).abs() < 1e-12,
                    "{rtt_ms} ms: {change}"
                );
            }
        }
        assert_eq!(
            outcome(140, false),
            (-1.0, Growth::None),
            "3.43 segments are more than 3"
        );
        assert_eq!(outcome(140, true), (0.0, Growth::None), "and round to 3");
        assert_eq!(outcome(150, true), (-1.0, Growth::None));
    }

    /// From one segment without a queue: in every other round each acknowledgement opens the window
    /// by a segment. A round ends with the acknowledgement of the first segment sent in it.
    #[test]
    fn slow_start_grows_every_other_round() {
        let mut controller = vegas(1, 1_000);
        send(&mut controller, 1);
        let mut flight = 1;
        let mut windows = std::vec::Vec::new();
        for _ in 0..24 {
            flight -= 1;
            controller.on_ack(&Ack {
                now: Time::from_millis(1),
                acked: MSS,
                rtt: Some(Span::from_millis(100)),
                in_flight: MSS * flight,
                app_limited: false,
                in_recovery: false,
                marked: 0,
                packets: 1,
                sample: None,
            });
            let window = controller.window() as u64;
            send(&mut controller, window - flight);
            flight = window;
            windows.push(window);
        }
        let by_hand = [
            1, 2, 2, 2, 3, 4, 4, 4, 4, 4, 5, 6, 7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 9, 10,
        ];
        assert_eq!(windows, by_hand);
    }

    #[test]
    fn slow_start_ends_by_an_eighth_when_a_segment_and_more_waits() {
        let mut controller = vegas(16, 1_000);
        controller.base_rtt = Some(Span::from_millis(100));
        controller.decides = false;
        send(&mut controller, 16);
        controller.round.outstanding = DataSize::new(1);
        controller.round.rtt_sum = 125_000_000;
        controller.round.samples = 1;
        // diff = 16 · (1 − 100/125) = 3.2 > γ.
        clock(&mut controller, 1, 125);
        assert_eq!(controller.window(), 14.0);
        assert_eq!(controller.decision().phase, Phase::Steady);
        assert_eq!(controller.decision().ssthresh, Some(MSS * 2));
    }

    #[test]
    fn losses_and_timeouts_by_hand() {
        let loss = |window: u64| Loss {
            now: Time::ZERO,
            sent_at: Time::ZERO,
            lost: MSS,
            in_flight: MSS * window,
            window: MSS * window,
            cause: LossCause::Reordering,
            restart: false,
        };
        for (window, after) in [(8, 6.0), (10, 7.5), (3, 2.25), (2, 2.0)] {
            let mut controller = vegas(window, 100);
            controller.on_loss(&loss(window));
            assert_eq!(controller.window(), after);
            assert_ne!(controller.decision().phase, Phase::SlowStart);
        }
        let mut controller = vegas(20, 100);
        controller.on_timeout(&Timeout {
            now: Time::ZERO,
            in_flight: MSS * 20,
            window: MSS * 20,
            consecutive: 1,
            duplicate_seen: false,
        });
        assert_eq!(controller.decision().window, MSS * 2);
        assert_eq!(controller.decision().ssthresh, Some(MSS * 10));
        assert_eq!(controller.decision().phase, Phase::SlowStart);
    }

    #[test]
    fn one_segment_alone_measures_the_path_anew() {
        let mut controller = vegas(1, 1);
        controller.base_rtt = Some(Span::from_millis(50));
        send(&mut controller, 1);
        clock(&mut controller, 2, 80);
        assert_eq!(controller.base_rtt(), Some(Span::from_millis(80)));
    }
}
