//! CUBIC against a literal reading of RFC 9438.

use comity_congestion::controllers::{Cubic, CubicConfig};
use comity_congestion::{Controller, Event, Loss, LossCause};
use comity_units::{DataSize, Span, Time};
use proptest::prelude::*;

use crate::reference::{ack, loss, timeout};

const MSS: DataSize = DataSize::new(1_000);
const C: f64 = 0.4;
const BETA: f64 = 0.7;

/// The variables of section 4.1.2, in segments and seconds, with the names of the text.
#[derive(Clone, Debug)]
#[allow(non_snake_case, reason = "the names of the RFC")]
struct Rfc9438 {
    RTT: Option<f64>,
    cwnd: f64,
    ssthresh: f64,
    cwnd_prior: f64,
    W_max: Option<f64>,
    K: f64,
    cwnd_epoch: f64,
    W_est: f64,
    in_avoidance: bool,
    first_stage_after_timeout: bool,
    t_epoch: f64,
    /// All acknowledgements: when, and whether the application limited the flow.
    history: Vec<(f64, bool)>,
    undo: Option<Box<Self>>,
}

/// The cube root by halving an interval: no function of a library.
fn cube_root(value: f64) -> f64 {
    let (mut low, mut high) = (-1e4, 1e4);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if middle * middle * middle < value {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

#[allow(non_snake_case, reason = "the names of the RFC")]
impl Rfc9438 {
    fn new(cwnd: f64, ssthresh: f64) -> Self {
        Self {
            RTT: None,
            cwnd,
            ssthresh,
            cwnd_prior: 0.0,
            W_max: None,
            K: 0.0,
            cwnd_epoch: 0.0,
            W_est: 0.0,
            in_avoidance: false,
            first_stage_after_timeout: false,
            t_epoch: 0.0,
            history: Vec::new(),
            undo: None,
        }
    }

    /// "The elapsed time t MUST NOT include periods during which cwnd has not been updated due to
    /// application-limited behavior."
    fn t(&self) -> f64 {
        self.history
            .windows(2)
            .filter(|pair| !pair[0].1 && pair[0].0 >= self.t_epoch)
            .map(|pair| pair[1].0 - pair[0].0)
            .sum()
    }

    fn W_cubic(&self, t: f64) -> f64 {
        C * (t - self.K) * (t - self.K) * (t - self.K) + self.W_max.unwrap_or(0.0)
    }

    fn on_new_ack(&mut self, now: f64, rtt: f64, limited: bool) {
        self.RTT = Some(
            self.RTT
                .map_or(rtt, |smoothed| 7.0 / 8.0 * smoothed + rtt / 8.0),
        );
        let RTT = self.RTT.unwrap_or(rtt);
        self.history.push((now, limited));
        if limited {
            return;
        }
        if self.cwnd < self.ssthresh {
            // Section 4.10. Departure 5: it ends at the threshold.
            self.cwnd = (self.cwnd + 1.0).min(self.ssthresh);
            return;
        }
        if !self.in_avoidance {
            self.in_avoidance = true;
            self.t_epoch = now;
            self.cwnd_epoch = self.cwnd;
            self.W_est = self.cwnd_epoch;
            match self.W_max {
                Some(W_max) if !self.first_stage_after_timeout => {
                    self.K = cube_root((W_max - self.cwnd_epoch) / C);
                }
                // Section 4.8, and 4.10 where W_max is undefined.
                undefined => {
                    if undefined.is_none() {
                        self.cwnd_prior = self.cwnd;
                    }
                    self.K = 0.0;
                    self.W_max = Some(self.cwnd);
                }
            }
            self.first_stage_after_timeout = false;
        }
        let t = self.t();

        // Figure 4.
        let alpha = if self.W_est >= self.cwnd_prior {
            1.0
        } else {
            3.0 * (1.0 - BETA) / (1.0 + BETA)
        };
        let segments_acked = 1.0;
        self.W_est += alpha * (segments_acked / self.cwnd);

        if self.W_cubic(t) < self.W_est {
            // Departure 2: the larger of the two.
            self.cwnd = self.cwnd.max(self.W_est);
            return;
        }
        let ahead = self.W_cubic(t + RTT);
        let target = if ahead < self.cwnd {
            self.cwnd
        } else if ahead > 1.5 * self.cwnd {
            1.5 * self.cwnd
        } else {
            ahead
        };
        self.cwnd += (target - self.cwnd) / self.cwnd;
    }

    fn congestion(&mut self, flight_size: f64) {
        // Section 4.7.
        self.W_max = Some(match self.W_max {
            Some(W_max) if self.cwnd < W_max => self.cwnd * (1.0 + BETA) / 2.0,
            _ => self.cwnd,
        });
        // Figure 5; departure 3: no more than cwnd.
        self.ssthresh = flight_size.min(self.cwnd) * BETA;
        self.cwnd_prior = self.cwnd;
        self.in_avoidance = false;
        self.first_stage_after_timeout = false;
    }

    fn on_loss(&mut self, flight_size: f64, mark: bool) {
        let undo = Self {
            undo: None,
            ..self.clone()
        };
        self.congestion(flight_size);
        self.cwnd = self.ssthresh.max(if mark { 1.0 } else { 2.0 });
        self.ssthresh = self.ssthresh.max(2.0);
        self.undo = Some(Box::new(undo));
    }

    fn on_timeout(&mut self, flight_size: f64, first: bool) {
        if first {
            self.congestion(flight_size);
            self.ssthresh = self.ssthresh.max(2.0);
        }
        self.cwnd = 1.0;
        self.in_avoidance = false;
        self.first_stage_after_timeout = true;
        self.undo = None;
    }

    /// Section 4.9.2.
    fn on_spurious_loss(&mut self) {
        if let Some(undo) = self.undo.take()
            && self.cwnd < self.cwnd_prior
        {
            let history = std::mem::take(&mut self.history);
            *self = Self {
                RTT: self.RTT,
                history,
                ..*undo
            };
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Acks { count: u16, apart: Span, rtt: Span },
    Limited { count: u8, apart: Span },
    Loss { flight: f64, mark: bool },
    Spurious,
    Timeouts { count: u8 },
}

fn event() -> impl Strategy<Value = Step> {
    let nanos = |range: std::ops::Range<u64>| range.prop_map(Span::from_nanos);
    prop_oneof![
        8 => (1u16..400, nanos(1..20_000_000), nanos(1_000_000..400_000_000))
            .prop_map(|(count, apart, rtt)| Step::Acks { count, apart, rtt }),
        1 => (1u8..5, nanos(1..9_000_000_000))
            .prop_map(|(count, apart)| Step::Limited { count, apart }),
        2 => (0.5f64..1.2, any::<bool>()).prop_map(|(flight, mark)| Step::Loss { flight, mark }),
        1 => Just(Step::Spurious),
        1 => (1u8..3).prop_map(|count| Step::Timeouts { count }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn follows_the_text(
        initial in 1u64..50,
        ssthresh in prop::option::of(2u64..200),
        events in prop::collection::vec(event(), 1..30),
    ) {
        let mut controller = Cubic::new(CubicConfig {
            initial_window: MSS * initial,
            initial_ssthresh: ssthresh.map_or(DataSize::MAX, |segments| MSS * segments),
            hystart: false,
            ..CubicConfig::rfc9438(MSS)
        });
        let mut reading =
            Rfc9438::new(initial as f64, ssthresh.map_or(f64::INFINITY, |segments| segments as f64));
        let mut now = Time::from_secs(10);
        let mut rtt = Span::from_millis(100);
        for event in events {
            // In whole bytes, as the transport has it.
            let share = |part: f64, window: f64| DataSize::new((window * part * 1_000.0) as u64);
            match event {
                Step::Acks { count, apart, rtt: sample } => {
                    rtt = sample;
                    for _ in 0..count {
                        now += apart;
                        controller.on_event(Event::Ack(&ack(now, MSS, rtt, MSS * 10)));
                        reading.on_new_ack(now.as_secs_f64(), rtt.as_secs_f64(), false);
                    }
                }
                Step::Limited { count, apart } => {
                    for _ in 0..count {
                        now += apart;
                        let mut limited = ack(now, MSS, rtt, MSS);
                        limited.app_limited = true;
                        controller.on_event(Event::Ack(&limited));
                        reading.on_new_ack(now.as_secs_f64(), rtt.as_secs_f64(), true);
                    }
                }
                Step::Loss { flight, mark } => {
                    let flight = share(flight, reading.cwnd);
                    let cause = if mark { LossCause::Mark } else { LossCause::Reordering };
                    controller.on_event(Event::Loss(&Loss { cause, ..loss(now, flight, flight) }));
                    reading.on_loss(flight.get() as f64 / 1_000.0, mark);
                }
                Step::Spurious => {
                    controller.on_event(Event::SpuriousLoss { now });
                    reading.on_spurious_loss();
                }
                Step::Timeouts { count } => {
                    for consecutive in 1..=u32::from(count) {
                        let flight = share(1.0, reading.cwnd);
                        controller.on_event(Event::Timeout(&timeout(now, flight, flight, consecutive)));
                        reading.on_timeout(flight.get() as f64 / 1_000.0, consecutive == 1);
                    }
                }
            }
            for (name, found, expected) in
                [("cwnd", controller.window(), reading.cwnd), ("ssthresh", controller.ssthresh(), reading.ssthresh)]
            {
                let close = found == expected || (found - expected).abs() <= 1e-6 * expected;
                prop_assert!(close, "{event:?}: {name} is {found} instead of {expected}; {reading:?}");
            }
        }
    }
}

/// The two agree also where the curve rules: 20 s at 100 ms bring a window of 288 back and beyond.
#[test]
fn both_pass_the_plateau_after_six_seconds() {
    let mut controller = Cubic::new(CubicConfig {
        initial_window: MSS * 288,
        ..CubicConfig::rfc9438(MSS)
    });
    let mut reading = Rfc9438::new(288.0, f64::INFINITY);
    let mut now = Time::from_secs(1);
    controller.on_event(Event::Loss(&loss(now, MSS * 288, MSS * 288)));
    reading.on_loss(288.0, false);
    let start = now;
    let mut passed = None;
    while now < start + Span::from_secs(9) {
        now += Span::from_micros(400);
        controller.on_event(Event::Ack(&ack(
            now,
            MSS,
            Span::from_millis(100),
            MSS * 200,
        )));
        reading.on_new_ack(now.as_secs_f64(), 0.1, false);
        assert!((controller.window() - reading.cwnd).abs() < 1e-6);
        if controller.window() >= 288.0 && passed.is_none() {
            passed = Some(now.saturating_since(start).as_secs_f64());
        }
    }
    // The window runs after the curve of one round trip ahead, and reaches 288 about when it does.
    assert!(
        passed.is_some_and(|passed| (5.5..6.5).contains(&passed)),
        "passed at {passed:?} s"
    );
    // W(9) = 0.4 · 27 + 288 = 298.8, a round trip ahead 299.9.
    assert!(
        (298.0..300.0).contains(&controller.window()),
        "{}",
        controller.window()
    );
}
