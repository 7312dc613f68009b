//! TFRC's receiver: loss events, loss intervals, and when to report.
//!
//! Left out: history discounting (RFC 5348, section 5.5, optional) and the sender's rate.

use std::collections::VecDeque;

use comity_congestion::{Arrival, Meter, Report, Tag};
use comity_units::{Bytes, PacketNumber, Rate, Span, Time};

/// RFC 5348, section 5.4.
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// NDUPACK: so many packets after a missing one make it a lost one.
const LATER_PACKETS: usize = 3;

#[derive(Debug, Default)]
struct LossIntervalMeter {
    rtt: Span,
    round: u32,
    /// What arrived lately, ordered by number: enough to see three packets after any hole.
    recent: Vec<(u64, Time)>,
    /// The first number of the open interval and the time at which its loss event began.
    event: Option<(u64, Time)>,
    first: Option<u64>,
    /// Closed intervals, the newest first.
    intervals: VecDeque<f64>,
    packet: Bytes,
    /// What arrived since the last report of a round.
    received: Bytes,
    since: Time,
    rate: Option<Rate>,
    due: Option<Time>,
}

impl LossIntervalMeter {
    /// Section 5.1: holes with three packets after them, the oldest first, with interpolated times.
    fn take_losses(&mut self) -> Vec<(u64, Time)> {
        let mut losses = Vec::new();
        while self.recent.len() > LATER_PACKETS {
            let ((before, at_before), (after, at_after)) = (self.recent[0], self.recent[1]);
            for missing in before + 1..after {
                let share = (missing - before) as f64 / (after - before) as f64;
                let elapsed = at_after.saturating_since(at_before);
                losses.push((missing, at_before + elapsed.mul_f64(share)));
            }
            self.recent.remove(0);
        }
        losses
    }

    /// Section 5.2: losses within a round-trip time of the first belong to one event.
    fn on_lost(&mut self, number: u64, at: Time) {
        match self.event {
            Some((_, began)) if at <= began + self.rtt => return,
            Some((start, _)) => self.intervals.push_front((number - start) as f64),
            None => self.intervals.push_front(self.first_interval()),
        }
        self.intervals.truncate(WEIGHTS.len());
        self.event = Some((number, at));
        // A new loss event is reported at once (section 6.2, step 3).
        self.due = Some(at);
    }

    /// Section 6.3.1: the interval at which the throughput equation gives what was received.
    fn first_interval(&self) -> f64 {
        let received = self.measured(self.since + self.rtt).as_bps() as f64 / 8.0;
        let (mut low, mut high) = (1.0f64, 1e9f64);
        for _ in 0..100 {
            let middle = (low * high).sqrt();
            if throughput(self.packet, self.rtt, 1.0 / middle) < received {
                low = middle;
            } else {
                high = middle;
            }
        }
        (low * high).sqrt()
    }

    fn measured(&self, now: Time) -> Rate {
        self.rate
            .unwrap_or_else(|| Rate::of(self.received, now.saturating_since(self.since)))
    }

    /// Section 5.4: the weighted mean with or without the open interval, whichever is larger.
    fn loss_event_rate(&self) -> f64 {
        let (Some((start, _)), Some((highest, _))) = (self.event, self.recent.last()) else {
            return 0.0;
        };
        let open = (highest - start + 1) as f64;
        let weighted = |intervals: &mut dyn Iterator<Item = f64>| -> f64 {
            intervals
                .zip(WEIGHTS)
                .map(|(interval, weight)| interval * weight)
                .sum()
        };
        let closed = self.intervals.iter().copied();
        let count = self.intervals.len();
        let without = weighted(&mut closed.clone());
        let with = weighted(&mut std::iter::once(open).chain(closed).take(count));
        let total: f64 = WEIGHTS.iter().take(count).sum();
        total / with.max(without)
    }
}

/// Section 3.1 with b = 1 and t_RTO = 4 R, in bytes per second.
fn throughput(packet: Bytes, rtt: Span, p: f64) -> f64 {
    let rtt = rtt.as_secs_f64();
    let root = (2.0 * p / 3.0).sqrt();
    let timeouts = 4.0 * rtt * (3.0 * (3.0 * p / 8.0).sqrt()) * p * (1.0 + 32.0 * p * p);
    packet.get() as f64 / (rtt * root + timeouts)
}

impl Meter for LossIntervalMeter {
    fn on_arrival(&mut self, arrival: &Arrival) {
        if let Tag::Round { round, rtt } = arrival.tag {
            (self.round, self.rtt) = (round, rtt);
        }
        if self.first.is_none() {
            self.first = Some(arrival.number.get());
            self.since = arrival.now;
            self.due = Some(arrival.now);
        }
        self.packet = arrival.payload;
        self.received += arrival.payload;
        let place = self
            .recent
            .partition_point(|(number, _)| *number < arrival.number.get());
        self.recent
            .insert(place, (arrival.number.get(), arrival.now));
        for (number, at) in self.take_losses() {
            self.on_lost(number, at);
        }
        let next_round = self.since + self.rtt;
        self.due = Some(
            self.due
                .unwrap_or(next_round)
                .min(next_round)
                .max(arrival.now),
        );
    }

    fn report(&mut self, now: Time) -> Report {
        Report::LossEvents {
            rate: self.loss_event_rate(),
            received: self.measured(now),
        }
    }

    fn wakeup(&self) -> Option<Time> {
        self.due
    }

    fn on_wakeup(&mut self, now: Time) {
        if now >= self.since + self.rtt {
            self.rate = Some(Rate::of(self.received, now.saturating_since(self.since)));
            self.received = Bytes::ZERO;
            self.since = now;
        }
        self.due = None;
    }
}

/// A stream of 1000 B packets every 10 ms under a round-trip time of 100 ms, from which `lost` are missing;
/// the transport asks for a report whenever the meter wants one.
fn stream(count: u64, lost: impl Fn(u64) -> bool) -> (LossIntervalMeter, Vec<(Time, Report)>) {
    let mut meter = LossIntervalMeter::default();
    let mut reports = Vec::new();
    for number in (0..count).filter(|number| !lost(*number)) {
        let now = Time::from_millis(1_000 + number * 10);
        meter.on_arrival(&Arrival {
            now,
            number: PacketNumber::new(number),
            payload: Bytes::new(1_000),
            wire: Bytes::new(1_040),
            marked: false,
            tag: Tag::Round {
                round: (number / 10) as u32,
                rtt: Span::from_millis(100),
            },
        });
        while let Some(at) = meter.wakeup().filter(|at| *at <= now) {
            meter.on_wakeup(at.max(now));
            reports.push((now, meter.report(now)));
        }
    }
    (meter, reports)
}

fn rate(meter: &mut dyn Meter) -> f64 {
    match meter.report(Time::from_secs(100)) {
        Report::LossEvents { rate, .. } => rate,
        other => panic!("{other:?}"),
    }
}

/// Every hundredth packet is lost, 1 s apart: all intervals are 100 and p = 1 %. Nine events close eight
/// intervals, which push the first, made up one out.
#[test]
fn even_losses_give_their_own_rate() {
    let (mut meter, _) = stream(1_050, |number| number % 100 == 50);
    assert!(
        (rate(&mut meter) - 0.01).abs() < 1e-12,
        "{}",
        rate(&mut meter)
    );
}

/// Two losses 50 ms apart are one event, two that are 110 ms apart are two: the second closes an interval
/// of 11 packets, and the ones after it are 89.
#[test]
fn losses_of_one_round_trip_are_one_event() {
    let (mut meter, _) = stream(1_050, |number| matches!(number % 100, 50 | 55));
    assert!((rate(&mut meter) - 0.01).abs() < 1e-12);
    let (mut meter, _) = stream(1_050, |number| matches!(number % 100, 50 | 61));
    // Newest first: the open one of 89 from 961 on (to 1049), then 11, 89, 11, 89, 11, 89, 11, 89.
    let closed = 11.0 + 89.0 + 11.0 + 89.0 + 0.8 * 11.0 + 0.6 * 89.0 + 0.4 * 11.0 + 0.2 * 89.0;
    let open = 89.0 + 11.0 + 89.0 + 11.0 + 0.8 * 89.0 + 0.6 * 11.0 + 0.4 * 89.0 + 0.2 * 11.0;
    assert!(open > closed);
    assert!(
        (rate(&mut meter) - 6.0 / open).abs() < 1e-12,
        "{}",
        rate(&mut meter)
    );
}

/// Section 5.4 with intervals of 100, the oldest of 200. Right after the last loss the open interval of 5
/// does not count: (100 · 5.8 + 200 · 0.2) / 6; 500 packets later it does: (500 + 100 · 5) / 6.
#[test]
fn the_open_interval_counts_only_when_it_helps() {
    let lost = |number: u64| number == 50 || ((250..=950).contains(&number) && number % 100 == 50);
    let (mut meter, _) = stream(955, lost);
    assert!(
        (rate(&mut meter) - 6.0 / 620.0).abs() < 1e-12,
        "{}",
        rate(&mut meter)
    );
    let (mut meter, _) = stream(1_450, lost);
    assert!(
        (rate(&mut meter) - 6.0 / 1_000.0).abs() < 1e-12,
        "{}",
        rate(&mut meter)
    );
}

/// The first interval is that of the throughput equation: 100 packets of 1000 B a second.
#[test]
fn the_first_loss_stands_for_the_rate_until_then() {
    let (mut meter, _) = stream(60, |number| number == 50);
    let p = rate(&mut meter);
    let back = throughput(Bytes::new(1_000), Span::from_millis(100), p);
    assert!(
        (back / 100_000.0 - 1.0).abs() < 0.12,
        "{back} B/s for p = {p}"
    );
    assert!(
        (0.005..0.02).contains(&p),
        "√(3/2p) / R is 100 packets a second for p = 1.5 %: {p}"
    );
}

/// A report for the first packet, one in each round trip, and one at once for a loss event: the loss of
/// 50 is known with 53, at 1530 ms.
#[test]
fn reports_come_once_in_a_round_trip_and_at_once_for_a_loss() {
    let (_, reports) = stream(100, |number| number == 50);
    let times: Vec<u64> = reports
        .iter()
        .map(|(at, _)| at.as_nanos() / 1_000_000)
        .collect();
    assert_eq!(
        times,
        [
            1_000, 1_100, 1_200, 1_300, 1_400, 1_510, 1_530, 1_610, 1_710, 1_810, 1_910
        ]
    );
    let Some((_, Report::LossEvents { rate, received })) = reports.get(4) else {
        panic!()
    };
    assert_eq!(*rate, 0.0);
    assert_eq!(
        *received,
        Rate::from_kbps(800),
        "10 packets of 1000 B in 100 ms"
    );
}
