//! Vegas against a reading of the paper with packets, sequence numbers and a bottleneck.

use std::collections::VecDeque;

use comity_congestion::controllers::{Vegas, VegasConfig};
use comity_congestion::{Controller, Event};
use comity_units::{DataSize, Span, Time};
use proptest::prelude::*;

use crate::reference::{ack, loss, sent, timeout};

const MSS: DataSize = DataSize::new(1_000);

/// Brakmo and Peterson 1995, section III, stated in packets: the round is over when the
/// distinguished packet is acknowledged.
#[derive(Debug)]
struct Reading {
    cwnd: f64,
    ssthresh: f64,
    base_rtt: u64,
    /// The distinguished packet: the first that is sent after the round began.
    distinguished: u64,
    /// In nanoseconds.
    rtts: Vec<u64>,
    next: u64,
    acked: u64,
    grow: f64,
    every_other: bool,
    whole_segments: bool,
}

impl Reading {
    fn on_ack(&mut self, newest: u64, rtt: u64) {
        let outstanding_before = self.next - self.acked;
        let count = newest + 1 - self.acked;
        self.acked = newest + 1;
        if newest >= self.distinguished {
            let mean = match self.rtts.len() {
                0 => rtt,
                samples => self.rtts.iter().sum::<u64>() / samples as u64,
            };
            // What was sent from the distinguished packet on, while it was under way.
            let sent = self.next - self.distinguished;
            if mean < self.base_rtt || sent <= 1 {
                self.base_rtt = mean;
            }
            let window_size = (outstanding_before as f64).min(self.cwnd);
            // (window_size / base_rtt − sent / mean) · base_rtt, without rounding where the two
            // agree.
            let mut diff = window_size - sent as f64 * (self.base_rtt as f64 / mean as f64);
            if self.whole_segments {
                diff = (diff + 0.5).floor();
            }
            self.decide(diff);
            self.distinguished = self.next;
            self.rtts.clear();
        }
        if self.cwnd < self.ssthresh || self.grow < 1.0 {
            // Linear growth spreads one segment over the window that it began with, ack by ack.
            let step = if self.grow == 1.0 {
                1.0
            } else if self.grow > 0.0 {
                1.0 / self.cwnd
            } else {
                0.0
            };
            self.cwnd += step * count as f64;
        }
        self.base_rtt = self.base_rtt.min(rtt);
        self.rtts.push(rtt);
    }

    fn decide(&mut self, diff: f64) {
        let (alpha, beta, gamma) = (1.0, 3.0, 1.0);
        if self.cwnd < self.ssthresh {
            self.every_other = !self.every_other;
            self.grow = 0.0;
            if self.every_other && diff > gamma {
                self.ssthresh = 2.0;
                self.cwnd = (self.cwnd - self.cwnd / 8.0).max(2.0);
            } else if self.every_other {
                self.grow = 1.0;
            }
        } else if diff > beta {
            self.cwnd = (self.cwnd - 1.0).max(2.0);
            self.grow = 0.0;
        } else {
            self.grow = if diff < alpha { 0.5 } else { 0.0 };
        }
    }

    fn on_loss(&mut self) {
        self.cwnd = (self.cwnd * 0.75).max(2.0);
        self.ssthresh = 2.0;
        self.grow = 0.0;
        self.distinguished = self.next;
        self.rtts.clear();
    }
}

/// A queue with one server and a delay: packet by packet, in order.
#[derive(Debug)]
struct Path {
    service: Span,
    delay: Span,
    free: Time,
    /// Number, sent, acknowledged at.
    flight: VecDeque<(u64, Time, Time)>,
}

impl Path {
    fn send(&mut self, number: u64, now: Time) {
        self.free = self.free.max(now) + self.service;
        self.flight.push_back((number, now, self.free + self.delay));
    }
}

struct Run {
    controller: Vegas,
    reading: Reading,
    path: Path,
    now: Time,
}

impl Run {
    fn new(service: Span, delay: Span, initial: u64, whole_segments: bool) -> Self {
        let config = VegasConfig {
            initial_window: MSS * initial,
            whole_segments,
            ..VegasConfig::ns2(MSS)
        };
        let mut run = Self {
            controller: Vegas::new(config),
            reading: Reading {
                cwnd: initial as f64,
                ssthresh: f64::INFINITY,
                base_rtt: u64::MAX,
                distinguished: 0,
                rtts: Vec::new(),
                next: 0,
                acked: 0,
                grow: 1.0,
                every_other: true,
                whole_segments,
            },
            path: Path {
                service,
                delay,
                free: Time::ZERO,
                flight: VecDeque::new(),
            },
            now: Time::from_secs(1),
        };
        run.fill();
        run
    }

    fn in_flight(&self) -> DataSize {
        MSS * self.path.flight.len() as u64
    }

    /// Sends what the window allows.
    fn fill(&mut self) {
        while self.in_flight() + MSS <= self.controller.decision().window {
            self.path.send(self.reading.next, self.now);
            self.reading.next += 1;
            self.controller.on_event(Event::Sent(&sent(
                self.now,
                MSS,
                self.reading.next - 1,
                self.in_flight(),
            )));
        }
    }

    /// The next `count` packets are acknowledged by one acknowledgement.
    fn acknowledge(&mut self, count: usize) {
        let count = count.min(self.path.flight.len());
        let Some((newest, sent, at)) = self.path.flight.drain(..count).next_back() else {
            return;
        };
        self.now = self.now.max(at);
        let rtt = self.now.saturating_since(sent);
        self.controller.on_event(Event::Ack(&ack(
            self.now,
            MSS * count as u64,
            rtt,
            self.in_flight(),
        )));
        self.reading.on_ack(newest, rtt.as_nanos());
        self.fill();
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Acks { count: u16, covers: u8 },
    Delay(Span),
    Loss,
    Timeout,
}

fn event() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1u16..300, 1u8..=2).prop_map(|(count, covers)| Step::Acks { count, covers }),
        2 => (0u64..50_000_000).prop_map(|nanos| Step::Delay(Span::from_nanos(nanos))),
        1 => Just(Step::Loss),
        1 => Just(Step::Timeout),
    ]
}

proptest! {
    #[test]
    fn follows_the_paper(
        service in 100_000u64..20_000_000,
        delay in 1_000_000u64..200_000_000,
        initial in 1u64..10,
        whole_segments in any::<bool>(),
        events in prop::collection::vec(event(), 1..25),
    ) {
        let (service, delay) = (Span::from_nanos(service), Span::from_nanos(delay));
        let mut run = Run::new(service, delay, initial, whole_segments);
        for event in events {
            match event {
                Step::Acks { count, covers } => {
                    for _ in 0..count {
                        run.acknowledge(usize::from(covers));
                        let (found, expected) = (run.controller.window(), run.reading.cwnd);
                        prop_assert!(
                            (found - expected).abs() <= 1e-6 * expected,
                            "{event:?}: {found} instead of {expected}; {:?}",
                            run.reading
                        );
                    }
                }
                Step::Delay(span) => run.path.delay = span,
                Step::Loss => {
                    let (flight, window) = (run.in_flight(), run.controller.decision().window);
                    // The controller takes the window that the transport reports, in whole bytes.
                    run.reading.cwnd = window.get() as f64 / 1_000.0;
                    run.controller.on_event(Event::Loss(&loss(run.now, flight, window)));
                    run.reading.on_loss();
                }
                Step::Timeout => {
                    // Go-back-N: all that was in flight is sent anew.
                    let (flight, window) = (run.in_flight(), run.controller.decision().window);
                    run.controller.on_event(Event::Timeout(&timeout(run.now, flight, window, 1)));
                    run.path.flight.clear();
                    let reading = &mut run.reading;
                    reading.ssthresh = (window.get() as f64 / 2_000.0).max(2.0);
                    reading.cwnd = 2.0;
                    reading.grow = 1.0;
                    reading.acked = reading.next;
                    reading.distinguished = reading.next;
                    reading.rtts.clear();
                    run.fill();
                }
            }
        }
    }
}

/// What Vegas is for: alone on a path of 10 ms a segment and 100 ms, it comes to rest with one to
/// three segments waiting, so with a window of 11 (the segment in service and ten on the way) and
/// those.
#[test]
fn rests_with_one_to_three_segments_waiting() {
    let mut run = Run::new(Span::from_millis(10), Span::from_millis(100), 1, false);
    for _ in 0..3_000 {
        run.acknowledge(1);
    }
    let rest = run.controller.window();
    let waiting = rest.floor() - 11.0;
    assert!((1.0..=3.0).contains(&waiting), "{waiting} segments wait");
    assert_eq!(run.controller.base_rtt(), Some(Span::from_millis(110)));
    for _ in 0..500 {
        run.acknowledge(1);
        assert_eq!(run.controller.window(), rest, "it rests");
    }
}
