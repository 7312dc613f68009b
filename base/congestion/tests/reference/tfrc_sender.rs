//! TFRC's sender against RFC 5348, sections 4.2 to 4.5, line by line, in bytes and seconds.

use comity_congestion::table::{self, Parameters, Setup, Value};
use comity_congestion::{Controller, Event, Feedback, Pacing, Report};
use comity_units::{DataSize, Rate, Span, Time};
use proptest::prelude::*;

use crate::reference::sent;

const S: f64 = 1_000.0;
const T_MBI: f64 = 64.0;
const Q: f64 = 0.9;
const Q2: f64 = 0.9;

#[derive(Default)]
struct Literal {
    r: Option<f64>,
    r_sqmean: f64,
    r_sample: f64,
    x: f64,
    x_bps: f64,
    p: f64,
    tld: f64,
    x_recv_set: Vec<(f64, f64)>,
    has_feedback: bool,
    nofeedback_at: f64,
    sent_since_timer: bool,
}

impl Literal {
    fn first_packet(&mut self, now: f64) {
        self.x = S;
        self.nofeedback_at = now + 2.0;
        self.sent_since_timer = true;
    }

    fn initial_rate(&self) -> f64 {
        (4.0 * S).min((2.0 * S).max(4380.0)) / self.r.unwrap()
    }

    fn equation(&self) -> f64 {
        let (r, p) = (self.r.unwrap(), self.p);
        let t_rto = 4.0 * r;
        S / (r * (2.0 * p / 3.0).sqrt()
            + t_rto * (3.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p)))
    }

    fn max_set(&self) -> f64 {
        self.x_recv_set
            .iter()
            .fold(0.0, |most, item| most.max(item.0))
    }

    fn maximize(&mut self, now: f64, x_recv: f64) {
        self.x_recv_set.push((x_recv, now));
        self.x_recv_set.retain(|item| item.0 != f64::INFINITY);
        let largest = self.max_set();
        self.x_recv_set = vec![(largest, now)];
    }

    fn step_4(&mut self, now: f64, recv_limit: f64) {
        if self.p > 0.0 {
            self.x_bps = self.equation();
            self.x = self.x_bps.min(recv_limit).max(S / T_MBI);
        } else if now - self.tld >= self.r.unwrap() - 1e-9 {
            self.x = (2.0 * self.x).min(recv_limit).max(self.initial_rate());
            self.tld = now;
        }
    }

    fn feedback(&mut self, now: f64, r_sample: f64, p: f64, x_recv: f64, data_limited: bool) {
        self.r_sample = r_sample;
        match self.r {
            None => {
                self.r = Some(r_sample);
                self.r_sqmean = r_sample.sqrt();
                self.x = self.initial_rate();
                self.tld = now;
                self.x_recv_set = vec![(f64::INFINITY, now)];
            }
            Some(r) => {
                self.r = Some(Q * r + (1.0 - Q) * r_sample);
                self.r_sqmean = Q2 * self.r_sqmean + (1.0 - Q2) * r_sample.sqrt();
            }
        }
        let p_before = self.p;
        self.p = p;
        let recv_limit = if data_limited && x_recv > 0.0 {
            if p > p_before {
                for item in &mut self.x_recv_set {
                    item.0 *= 0.5;
                }
                self.maximize(now, 0.85 * x_recv);
                self.max_set()
            } else {
                self.maximize(now, x_recv);
                2.0 * self.max_set()
            }
        } else {
            self.x_recv_set.push((x_recv, now));
            let r = self.r.unwrap();
            self.x_recv_set
                .retain(|item| now - item.1 <= 2.0 * r + 1e-9);
            2.0 * self.max_set()
        };
        // Step 3 stands before step 4.
        let rto = self.rto();
        self.step_4(now, recv_limit);
        self.has_feedback = true;
        self.set_timer(now, rto);
    }

    fn rto(&self) -> f64 {
        self.r.map_or(2.0, |r| 4.0 * r).max(2.0 * S / self.x)
    }

    fn set_timer(&mut self, now: f64, rto: f64) {
        self.nofeedback_at = now + rto;
        self.sent_since_timer = false;
    }

    fn nofeedback(&mut self, now: f64) {
        let idle = !self.sent_since_timer;
        if !self.has_feedback {
            if !idle {
                self.x = (self.x / 2.0).max(S / T_MBI);
            }
        } else {
            let x_recv = self.max_set();
            let recover_rate = self.initial_rate();
            if ((self.p > 0.0 && x_recv < recover_rate)
                || (self.p == 0.0 && self.x < 2.0 * recover_rate))
                && idle
            {
                // Don't halve.
            } else if self.p == 0.0 {
                self.x = (self.x / 2.0).max(S / T_MBI);
            } else if self.x_bps > 2.0 * x_recv {
                self.update_limits(now, x_recv);
            } else {
                self.update_limits(now, self.x_bps / 2.0);
            }
        }
        self.set_timer(now, self.rto());
    }

    fn update_limits(&mut self, now: f64, mut timer_limit: f64) {
        if timer_limit < S / T_MBI {
            timer_limit = S / T_MBI;
        }
        self.x_recv_set = vec![(timer_limit / 2.0, now)];
        let limit = 2.0 * self.max_set();
        self.step_4(now, limit);
    }

    fn x_inst(&self) -> f64 {
        if self.r.is_none() {
            return self.x;
        }
        (self.x * self.r_sqmean / self.r_sample.sqrt()).max(S / T_MBI)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Feedback {
        rtt_ms: u64,
        p: f64,
        x_recv: u64,
        data_limited: bool,
    },
    Send,
    Silence,
}

fn step() -> impl Strategy<Value = Step> {
    let p = prop_oneof![2 => Just(0.0), 5 => 0.000_1..0.3f64];
    prop_oneof![
        8 => (5u64..400, p, 0u64..2_000_000, prop::bool::weighted(0.3)).prop_map(
            |(rtt_ms, p, x_recv, data_limited)| Step::Feedback { rtt_ms, p, x_recv, data_limited }
        ),
        4 => Just(Step::Send),
        2 => Just(Step::Silence),
    ]
}

fn rate(controller: &dyn Controller) -> f64 {
    match controller.decision().pacing {
        Pacing::Rate(rate) => rate.as_bps() as f64 / 8.0,
        other => panic!("{other:?}"),
    }
}

fn send(controller: &mut dyn Controller, now: Time) {
    controller.tag(now);
    controller.on_event(Event::Sent(&sent(
        now,
        DataSize::new(1_000),
        0,
        DataSize::new(1_000),
    )));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_rate_is_that_of_the_rfc(steps in prop::collection::vec((step(), 1u64..500), 1..60)) {
        let parameters = Parameters::new().with("damping", Value::Flag(true));
        let setup = Setup::new(DataSize::new(1_000));
        let mut controller = table::find("tfrc").unwrap().build(&setup, &parameters).unwrap();
        let mut literal = Literal::default();
        let mut now = Time::from_secs(1);
        let seconds = |time: Time| time.as_secs_f64();
        send(&mut *controller, now);
        literal.first_packet(seconds(now));
        for (step, wait_ms) in steps {
            now += Span::from_millis(wait_ms);
            match step {
                Step::Feedback { rtt_ms, p, x_recv, data_limited } => {
                    // A loss event rate never goes back to zero.
                    let p = if literal.p > 0.0 { p.max(0.000_1) } else { p };
                    let rtt = Span::from_millis(rtt_ms);
                    controller.on_event(Event::Ack(&super::ack_limited(now, rtt, data_limited)));
                    controller.on_event(Event::Feedback(&Feedback {
                        now,
                        report: &Report::LossEvents { rate: p, received: Rate::from_bps(x_recv * 8) },
                        rtt: Some(rtt),
                    }));
                    literal.feedback(seconds(now), rtt.as_secs_f64(), p, x_recv as f64, data_limited);
                }
                Step::Send => {
                    // After an idle time that changed nothing the controller's timer begins with
                    // the next packet.
                    let asleep = controller.decision().wakeup.is_none();
                    send(&mut *controller, now);
                    if asleep {
                        literal.set_timer(seconds(now), literal.rto());
                    }
                    literal.sent_since_timer = true;
                }
                Step::Silence => {
                    let Some(due) = controller.decision().wakeup else { continue };
                    // The controller's equation gives whole bits per second.
                    prop_assert!((seconds(due) / literal.nofeedback_at - 1.0).abs() < 1e-3,
                        "timer at {due}, expected {}", literal.nofeedback_at);
                    now = now.max(due);
                    controller.on_event(Event::Wakeup(now));
                    literal.nofeedback(seconds(now));
                }
            }
            let (found, expected) = (rate(&*controller), literal.x_inst());
            prop_assert!((found - expected).abs() <= expected * 1e-3 + 1.0, "{found}, expected {expected}");
        }
    }
}
