//! States and gains on acknowledgements by hand.

extern crate std;

use std::vec::Vec;

use comity_units::{DataSize, PacketNumber, Span, Time};

use super::{Bbr, Bbr3, Bbr3Config, BbrConfig};
use crate::{
    Ack, Controller, DeliveryRate, Departure, Event, Loss, LossCause, Pacing, Phase, Sent, Timeout,
};

const MSS: u64 = 1_000;
const RTT: Span = Span::from_millis(100);

/// A path that carries one segment in a millisecond, with a round trip of 100 ms. The flow sends as
/// window and pacing allow, and every segment is acknowledged.
struct Path<C> {
    flow: C,
    rate: DeliveryRate,
    now: Time,
    flight: Vec<Departure>,
    /// When the path is free again, and when the pacing allows the next segment.
    free_at: Time,
    next: Time,
    number: u64,
}

impl<C: Controller> Path<C> {
    fn new(flow: C) -> Self {
        Self {
            flow,
            rate: DeliveryRate::new(Time::ZERO),
            now: Time::ZERO,
            flight: Vec::new(),
            free_at: Time::ZERO,
            next: Time::ZERO,
            number: 0,
        }
    }

    fn in_flight(&self) -> u64 {
        self.flight.len() as u64 * MSS
    }

    /// The handshake measures 100 ms, less than the round trip of any segment.
    fn shake_hands(&mut self) {
        self.now = Time::ZERO + RTT;
        self.flow.on_event(Event::Ack(&Ack {
            now: self.now,
            acked: DataSize::ZERO,
            rtt: Some(RTT),
            in_flight: DataSize::ZERO,
            app_limited: false,
            in_recovery: false,
            marked: 0,
            packets: 0,
            sample: None,
        }));
    }

    /// A segment leaves.
    fn send(&mut self) {
        let in_flight = self.in_flight() + MSS;
        let departure = self
            .rate
            .on_sent(self.now, in_flight, self.flight.is_empty());
        self.flight.push(departure);
        self.number += 1;
        self.flow.on_event(Event::Sent(&Sent {
            now: self.now,
            payload: DataSize::new(MSS),
            wire: DataSize::new(MSS),
            number: PacketNumber::new(self.number),
            in_flight: DataSize::new(in_flight),
            app_limited: false,
        }));
    }

    /// When the oldest segment in flight is acknowledged.
    fn due(&self) -> Option<Time> {
        let left_at = self.flight.first()?.sent_at();
        Some(self.free_at.max(left_at + RTT) + Span::from_millis(1))
    }

    /// Sends all that may leave before the next acknowledgement, which then arrives.
    fn step(&mut self, in_recovery: bool) {
        while self.in_flight() + MSS <= self.flow.decision().window.get() {
            let at = self.now.max(self.next);
            if self.due().is_some_and(|due| due <= at) {
                break;
            }
            self.now = at;
            self.send();
            let seconds = 8.0 * MSS as f64 / pacing(&self.flow).0;
            self.next = at + Span::from_secs_f64(seconds);
        }
        self.acknowledge(in_recovery);
    }

    /// The oldest segment in flight is acknowledged.
    fn acknowledge(&mut self, in_recovery: bool) {
        let prior = self.in_flight();
        self.now = self.due().unwrap();
        self.free_at = self.now;
        let departure = self.flight.remove(0);
        self.rate.on_delivered(self.now, &departure, MSS, false);
        let sample = self.rate.sample(self.now, prior, self.in_flight());
        self.flow.on_event(Event::Ack(&Ack {
            now: self.now,
            acked: DataSize::new(MSS),
            rtt: sample.rtt,
            in_flight: sample.in_flight,
            app_limited: false,
            in_recovery,
            marked: 0,
            packets: 1,
            sample: Some(sample),
        }));
    }

    /// Runs until a condition holds. Returns the number of acknowledgements.
    fn run_until(&mut self, most: u32, reached: impl Fn(&C) -> bool) -> u32 {
        for count in 0..most {
            if reached(&self.flow) {
                return count;
            }
            self.step(false);
        }
        panic!("not reached: {:?}", self.flow);
    }

    fn lose(&mut self, segments: usize) {
        for departure in self.flight.drain(..segments) {
            let loss = self.rate.on_lost(&departure, MSS);
            self.flow.on_event(Event::PacketLost {
                now: self.now,
                loss: &loss,
            });
        }
        self.flow.on_event(Event::Loss(&Loss {
            now: self.now,
            sent_at: self.now,
            lost: DataSize::new(segments as u64 * MSS),
            in_flight: DataSize::new(self.in_flight()),
            window: self.flow.decision().window,
            cause: LossCause::Reordering,
            restart: false,
        }));
    }
}

fn linux() -> Path<Bbr> {
    Path::new(Bbr::new(BbrConfig::linux(DataSize::new(MSS))))
}

/// The gain in hundredths, to the nearest twentieth, on a path of 8 Mb/s.
fn gain(flow: &impl Controller) -> u32 {
    (pacing(flow).0 / (0.99 * 8e6) * 20.0).round() as u32 * 5
}

/// The pacing rate in bits a second, and the burst in bytes.
fn pacing(flow: &impl Controller) -> (f64, u64) {
    match flow.decision().pacing {
        Pacing::Bursts { rate, size } => (rate.as_bps() as f64, size.get()),
        other => panic!("{other:?}"),
    }
}

fn assert_near(found: f64, expected: f64) {
    assert!(
        (found / expected - 1.0).abs() < 0.01,
        "{found} is not {expected}"
    );
}

/// Ten segments in a millisecond before a round trip is known, and then in that round trip: 0.99 ·
/// 2.885 · 10,000 bytes / 0.1 s.
#[test]
fn the_first_rate_is_the_initial_window_in_the_round_trip_of_the_handshake() {
    let mut path = linux();
    assert_near(pacing(&path.flow).0, 0.99 * 2.885 * 8e4 / 1e-3);
    path.shake_hands();
    let (rate, burst) = pacing(&path.flow);
    assert_near(rate, 0.99 * 2.885 * 8e4 / 0.1);
    assert_eq!(
        burst,
        2 * MSS,
        "two segments, because 2.3 Mb/s are 279 bytes in 1/1024 s"
    );
    assert_eq!(path.flow.decision().window, DataSize::new(10 * MSS));
    assert_eq!(path.flow.decision().phase, Phase::SlowStart);
}

/// The path carries 8 Mb/s. Startup paces at 2.885 times the measured bandwidth and doubles the
/// window in each round. Three rounds after the bandwidth stops growing, the flow drains at the
/// inverse gain, and then cycles through the eight gains.
#[test]
fn startup_ends_when_the_bandwidth_stands_and_drain_when_a_product_is_in_flight() {
    let mut path = linux();
    path.shake_hands();
    path.run_until(10_000, |flow| flow.decision().phase != Phase::SlowStart);
    let (rate, _) = pacing(&path.flow);
    assert_near(rate, 0.99 * 8e6 / 2.885);
    // In five rounds the window doubled from ten segments to those that fill the path and its
    // queue. The gain bounds the window.
    let window = path.flow.decision().window.get();
    assert!((200 * MSS..=600 * MSS).contains(&window), "{window}");
    assert!(
        path.flow
            .capacity()
            .is_some_and(|rate| (rate.as_bps() as f64 / 8e6 - 1.0).abs() < 0.01)
    );
    path.run_until(2_000, |flow| gain(flow) != 35);
    // 100 ms · 1 segment/ms, 6 for the bursts, and those delivered until the next burst leaves.
    let drained = path.in_flight() / MSS;
    assert!((104..=110).contains(&drained), "{drained}");
}

#[test]
#[cfg_attr(miri, ignore = "too long for an interpreter")]
fn the_cycle_has_eight_gains_each_for_a_round_trip_and_begins_anywhere_but_in_the_second() {
    let mut starts = Vec::new();
    for seed in 0..40 {
        let config = BbrConfig {
            seed: comity_units::Seed::new(seed).derive("cycle"),
            ..BbrConfig::linux(DataSize::new(MSS))
        };
        let mut path = Path::new(Bbr::new(config));
        path.run_until(10_000, |flow| {
            flow.decision().phase != Phase::SlowStart && pacing(flow).0 > 0.7 * 8e6
        });
        starts.push(gain(&path.flow));
    }
    assert!(starts.contains(&125) && starts.contains(&100), "{starts:?}");
    assert!(!starts.contains(&75), "{starts:?}");

    // The times at which the gain changes, in round trips: a phase of 1.25, one of 0.75, and six of
    // 1.
    let mut path = linux();
    path.run_until(10_000, |flow| {
        flow.decision().phase != Phase::SlowStart && pacing(flow).0 > 0.7 * 8e6
    });
    let mut changes = Vec::new();
    let mut last = 0;
    for _ in 0..4_000 {
        path.step(false);
        let now = gain(&path.flow);
        if now != last {
            changes.push((path.now, now));
            last = now;
        }
    }
    let up = changes.iter().position(|(_, gain)| *gain == 125).unwrap();
    let [first, second, third, fourth] = changes[up..up + 4] else {
        panic!("{changes:?}");
    };
    assert_eq!([second.1, third.1, fourth.1], [75, 100, 125], "{changes:?}");
    let cruise = fourth.0.saturating_since(third.0);
    assert!((600..=630).contains(&cruise.as_millis()), "{cruise:?}");
    assert!(second.0.saturating_since(first.0) > RTT);
}

/// A steady flow has 2 · 100 segments, 6 for three bursts of two; ProbeRTT leaves 4 for 200 ms.
#[test]
#[cfg_attr(miri, ignore = "too long for an interpreter")]
fn every_ten_seconds_four_segments_are_left_for_a_while() {
    let mut path = linux();
    path.shake_hands();
    path.run_until(10_000, |flow| flow.decision().window.get() > 180 * MSS);
    let low = |flow: &Bbr| flow.decision().window.get() <= 4 * MSS;
    path.run_until(40_000, low);
    let began = path.now;
    assert!((10.0..10.6).contains(&began.as_secs_f64()), "{began}");
    assert_near(pacing(&path.flow).0, 0.99 * 8e6);
    path.run_until(10_000, |flow| !low(flow));
    let lasted = path.now.saturating_since(began);
    assert!((200..=600).contains(&lasted.as_millis()), "{lasted:?}");
    // The delivery rate of four segments in flight did not become the bandwidth.
    assert_near(path.flow.capacity().unwrap().as_bps() as f64, 8e6);
}

/// Thirty of the segments in flight are lost. In the first round as many segments leave as arrive.
/// Then the window grows by what is acknowledged. After the recovery it has its former size.
#[test]
fn a_recovery_conserves_packets_for_a_round_and_restores_the_window() {
    let mut path = linux();
    path.run_until(20_000, |flow| flow.decision().phase == Phase::Steady);
    for _ in 0..300 {
        path.step(false);
    }
    let before = path.flow.decision().window;
    path.lose(30);
    assert_eq!(
        path.flow.decision().window,
        before,
        "a loss alone changes nothing"
    );
    let left = path.in_flight();
    path.acknowledge(true);
    assert_eq!(
        path.flow.decision().window,
        DataSize::new(left),
        "what arrived may leave"
    );
    for _ in 0..20 {
        path.step(true);
        assert_eq!(path.flow.decision().window, DataSize::new(left));
    }
    // A round later it grows by one segment for each acknowledged one.
    while path.flow.decision().window == DataSize::new(left) {
        path.step(true);
    }
    let climbing = path.flow.decision().window;
    assert_eq!(climbing, DataSize::new(left + MSS));
    // If the acknowledgement that ends this recovery begins another, the window continues to grow:
    // one segment less for the loss, and one more for each acknowledged one.
    path.lose(1);
    for _ in 0..20 {
        path.step(true);
    }
    assert_eq!(path.flow.decision().window, DataSize::new(left + 20 * MSS));
    path.step(false);
    let restored = path.flow.decision().window.get() as f64 / before.get() as f64;
    // The aggregation that Startup measured has expired meanwhile.
    assert!((0.95..1.03).contains(&restored), "{restored}");
}

#[test]
fn a_timeout_leaves_a_segment_and_keeps_the_bandwidth() {
    let mut path = linux();
    path.run_until(20_000, |flow| flow.decision().phase == Phase::Steady);
    let before = path.flow.decision().window;
    path.flow.on_event(Event::Timeout(&Timeout {
        now: path.now,
        in_flight: DataSize::new(path.in_flight()),
        window: before,
        consecutive: 1,
        duplicate_seen: false,
    }));
    assert_eq!(path.flow.decision().window, DataSize::new(MSS));
    assert_near(path.flow.capacity().unwrap().as_bps() as f64, 8e6);
    path.step(true);
    assert_eq!(
        path.flow.decision().window,
        DataSize::new(4 * MSS),
        "four at least"
    );
    path.step(true);
    assert_eq!(path.flow.decision().window, DataSize::new(5 * MSS));
    path.step(false);
    let restored = path.flow.decision().window.get() as f64 / before.get() as f64;
    assert!((0.97..1.03).contains(&restored), "{restored}");
}

fn draft() -> Path<Bbr3> {
    Path::new(Bbr3::new(Bbr3Config::draft(DataSize::new(MSS))))
}

/// The phases by their gains, and the window of Up: at most 2.25 · 101 segments and two more.
#[test]
fn version_3_cruises_for_two_to_three_seconds_and_probes() {
    let mut path = draft();
    path.run_until(10_000, |flow| flow.decision().phase != Phase::SlowStart);
    assert_eq!(gain(&path.flow), 50, "it drains at half of the rate");
    path.run_until(10_000, |flow| gain(flow) == 100);
    let cruise = path.now;
    path.run_until(10_000, |flow| gain(flow) == 125);
    // Two to three seconds since Down began, and a round of Refill; 63 rounds would be longer.
    let waited = path.now.saturating_since(cruise).as_secs_f64();
    assert!((1.5..3.5).contains(&waited), "{waited}");
    let window = path.flow.decision().window.get() / MSS;
    path.run_until(10_000, |flow| gain(flow) == 90);
    assert!((195..=235).contains(&window), "{window}");
}

#[test]
fn version_3_leaves_half_a_product_every_five_seconds() {
    let mut path = draft();
    path.run_until(10_000, |flow| flow.decision().phase == Phase::Steady);
    let low = |flow: &Bbr3| flow.decision().window.get() <= 52 * MSS;
    path.run_until(40_000, low);
    let began = path.now;
    assert!((5.0..5.8).contains(&began.as_secs_f64()), "{began}");
    let window = path.flow.decision().window.get() / MSS;
    assert!((49..=51).contains(&window), "{window}: half of 101");
    path.run_until(10_000, |flow| !low(flow));
    let lasted = path.now.saturating_since(began);
    assert!((200..=500).contains(&lasted.as_millis()), "{lasted:?}");
    path.run_until(40_000, low);
    let next = path.now.saturating_since(began).as_secs_f64();
    assert!((5.2..5.9).contains(&next), "{next}");
}

/// In Cruise, a round with losses lowers bandwidth and flight to what was delivered, but at most to
/// 0.7 of their values. If the path delivers as before, the bandwidth stays, and the flight equals
/// the data delivered in a round trip.
#[test]
fn version_3_gives_way_to_losses_while_it_cruises() {
    let mut path = draft();
    path.run_until(10_000, |flow| flow.decision().phase == Phase::Steady);
    for _ in 0..300 {
        path.step(false);
    }
    let before = path.flow.decision().window;
    path.lose(10);
    for _ in 0..250 {
        path.step(true);
    }
    let after = path.flow.decision().window;
    let left = after.get() as f64 / before.get() as f64;
    assert!((0.65..0.97).contains(&left), "{before:?} to {after:?}");
    assert_near(path.flow.capacity().unwrap().as_bps() as f64, 8e6);
    // Refill removes the bounds.
    path.run_until(10_000, |flow| gain(flow) == 125);
    assert!(path.flow.decision().window.get() as f64 > 0.95 * before.get() as f64);
}

/// In Up, losses of more than 2 % of the flight bound it there, and end the probe.
#[test]
fn version_3_remembers_how_much_was_too_much() {
    let mut path = draft();
    path.run_until(10_000, |flow| flow.decision().phase == Phase::Steady);
    path.run_until(10_000, |flow| gain(flow) == 125);
    for _ in 0..150 {
        path.step(false);
    }
    assert_eq!(gain(&path.flow), 125);
    let flight = path.in_flight();
    path.lose(2);
    path.step(true);
    assert_eq!(gain(&path.flow), 125, "two of 120 are few");
    path.lose(4);
    path.step(true);
    assert_eq!(gain(&path.flow), 90);
    // At most what was in flight then, until the next probe.
    path.run_until(2_000, |flow| {
        assert!(flow.decision().window.get() <= flight);
        flow.decision().phase == Phase::Steady
    });
    // Cruise leaves 15 % of the bound to other flows.
    let cruising = path.flow.decision().window.get() as f64 / flight as f64;
    assert!((0.65..=0.851).contains(&cruising), "{cruising}");
}

/// Six acknowledgements with losses end Startup, if more than 2 % is lost in a round of a recovery.
#[test]
fn version_3_leaves_startup_when_losses_are_many() {
    let mut path = draft();
    path.run_until(10_000, |flow| flow.decision().window.get() > 80 * MSS);
    assert_eq!(path.flow.decision().phase, Phase::SlowStart);
    let mut acks = 0;
    while path.flow.decision().phase == Phase::SlowStart {
        if acks % 10 == 0 && path.in_flight() > 10 * MSS {
            path.lose(1);
        }
        path.step(true);
        acks += 1;
        assert!(acks < 600, "{:?}", path.flow);
    }
    assert!(acks >= 50, "{acks}");
    let state = std::format!("{:?}", path.flow);
    let now = state.split("undo:").next().unwrap();
    assert!(!now.contains("inflight_longterm: inf"), "{state}");
}
