//! Libra against figure 2 of its paper, read line by line.

use comity_congestion::controllers::{Increase, Libra, LibraConfig};
use comity_congestion::{Controller, Event, Pacing};
use comity_units::{DataSize, Rate, Seed, Span, Time};
use proptest::prelude::*;

use crate::reference::{ack, loss, sent, timeout};

const MSS: DataSize = DataSize::new(1_000);

/// Figure 2 with (1) and (2). Every round trip ever seen is kept, and the extremes are looked up
/// anew.
#[derive(Debug)]
struct Figure2 {
    window: f64,
    ssthresh: f64,
    rtts: Vec<f64>,
    a: f64,
    b: f64,
    x: f64,
    y: f64,
    c: f64,
}

impl Figure2 {
    fn rtt(&self) -> Option<f64> {
        self.rtts.last().copied()
    }

    fn alpha(&self, rtt: f64) -> f64 {
        let rtt_min = self.rtts.iter().copied().fold(f64::INFINITY, f64::min);
        let rtt_max = self.rtts.iter().copied().fold(0.0, f64::max);
        let beta = if rtt_max == rtt_min {
            0.0
        } else {
            (rtt - rtt_min) / (rtt_max - rtt_min)
        };
        self.x * self.c * libm::exp(-self.y * beta)
    }

    fn an_ack_is_successfully_received(&mut self) {
        if self.window < self.ssthresh {
            // Stevens, TCP/IP Illustrated, volume 1, 20.6.
            self.window += 1.0;
        } else if let Some(rtt) = self.rtt() {
            let step = 1.0 / self.window * self.alpha(rtt) * (rtt * rtt) / (rtt + self.a);
            self.window += step.min(1.0);
        }
    }

    fn three_dupacks_are_received(&mut self) {
        let rtt = self.rtt().unwrap_or(0.0);
        self.window -= self.window * self.b / (2.0 * (rtt + self.a));
        self.window = self.window.max(1.0);
        self.ssthresh = self.window.max(2.0);
    }

    fn timeout_expires(&mut self) {
        self.ssthresh = (self.window / 2.0).max(2.0);
        self.window = 1.0;
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Ack(Option<Span>),
    Dupacks,
    Timeout,
}

fn event() -> impl Strategy<Value = Step> {
    let rtt = prop::option::weighted(
        0.7,
        (1_000_000u64..2_000_000_000).prop_map(Span::from_nanos),
    );
    prop_oneof![
        40 => rtt.prop_map(Step::Ack),
        2 => Just(Step::Dupacks),
        1 => Just(Step::Timeout),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_step_is_that_of_figure_2(
        events in prop::collection::vec(event(), 1..400),
        (a, b, x, y) in (0.01f64..5.0, 0.0f64..5.0, 0.0f64..10.0, 0.0f64..5.0),
        mbps in 1u64..10_000,
        (initial, ssthresh) in (1u64..50, 1u64..200),
    ) {
        let mut reading = Figure2 {
            window: initial as f64,
            ssthresh: ssthresh as f64,
            rtts: Vec::new(),
            a, b, x, y,
            c: mbps as f64,
        };
        let mut controller = Libra::new(LibraConfig {
            mss: MSS,
            initial_window: MSS * initial,
            initial_ssthresh: MSS * ssthresh,
            max_window: DataSize::MAX,
            a, b, x, y,
            capacity: Some(Rate::from_mbps(mbps)),
            increase: Increase::PerAck,
            pairs: true,
            memory: Span::MAX,
            seed: Seed::new(mbps),
        });
        for (at, event) in (1..).zip(events) {
            let now = Time::from_secs(at);
            match event {
                Step::Ack(rtt) => {
                    reading.rtts.extend(rtt.map(Span::as_secs_f64));
                    reading.an_ack_is_successfully_received();
                    let mut event = ack(now, MSS, Span::ZERO, DataSize::ZERO);
                    event.rtt = rtt;
                    controller.on_event(Event::Ack(&event));
                }
                Step::Dupacks => {
                    reading.three_dupacks_are_received();
                    controller.on_event(Event::Loss(&loss(now, MSS * 10, MSS * 10)));
                }
                Step::Timeout => {
                    reading.timeout_expires();
                    controller.on_event(Event::Timeout(&timeout(now, MSS * 10, MSS * 10, 1)));
                }
            }
            let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-9;
            prop_assert!(near(controller.window(), reading.window), "{} {reading:?}", controller.window());
            prop_assert!(near(controller.ssthresh(), reading.ssthresh), "{} {reading:?}", controller.ssthresh());
        }
    }

    /// Whatever happens: a window of at least a segment, and times that are not before the packet
    /// nor further off than two intervals.
    #[test]
    fn the_calendar_never_runs_away(
        steps in prop::collection::vec((0u64..200_000_000, 1_000_000u64..500_000_000, 1u64..40), 1..300),
        seed in any::<u64>(),
    ) {
        let mut controller = Libra::new(LibraConfig {
            mss: MSS,
            initial_window: MSS * 10,
            initial_ssthresh: MSS * 20,
            max_window: DataSize::MAX,
            a: 1.0, b: 1.0, x: 2.0, y: 2.0,
            capacity: None,
            increase: Increase::PerByte { limit: 2 },
            pairs: true,
            memory: Span::from_secs(60),
            seed: Seed::new(seed),
        });
        let (mut now, mut number, mut longest) = (Time::from_secs(1), 0, Span::ZERO);
        for (wait, rtt, in_flight) in steps {
            now += Span::from_nanos(wait);
            longest = longest.max(Span::from_nanos(rtt));
            controller.on_event(Event::Ack(&ack(now, MSS, Span::from_nanos(rtt), MSS * in_flight)));
            let Pacing::At(at) = controller.decision().pacing else {
                return Err(TestCaseError::fail("not paced"));
            };
            prop_assert!(controller.window() >= 1.0 && controller.window().is_finite());
            prop_assert!(at <= now + longest * 2, "{at} is far from {now}");
            now = now.max(at);
            number += 1;
            controller.on_event(Event::Sent(&sent(now, MSS, number, MSS * in_flight)));
        }
    }
}
