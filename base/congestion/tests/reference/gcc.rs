//! GCC against a literal reading of draft-ietf-rmcat-gcc-02, which computes groups, estimates and
//! thresholds anew from the list of all packets after each acknowledgement.

use std::collections::BTreeSet;

use comity_congestion::controllers::{Gcc, GccConfig};
use comity_congestion::{Arrived, Controller, Event};
use comity_units::{DataSize, PacketNumber, Rate, Span, Time};
use proptest::prelude::*;

use crate::reference::{ack, sent};

const SIZE: DataSize = DataSize::new(1_000);

/// How far the receiver's clock is ahead, in microseconds.
const AHEAD: u64 = 3_600_000_000;

/// One way without a queue, in microseconds.
const ONE_WAY: u64 = 20_000;

const CONFIG: GccConfig = GccConfig {
    max_window: DataSize::MAX,
    initial_rate: Rate::from_kbps(300),
    min_rate: Rate::from_kbps(30),
    max_rate: Rate::from_kbps(5_000),
    chi: 0.01,
    deltas: 60,
    beta: 0.85,
    window: Span::from_millis(500),
    loss_interval: Span::from_millis(200),
};

/// A packet of a script. Times are microseconds.
#[derive(Clone, Debug)]
struct Packet {
    /// After the one before it.
    gap: u64,
    /// How much more the path holds it than the one before.
    drift: i64,
    is_lost: bool,
    is_ack_lost: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Signal {
    Over,
    Normal,
    Under,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Hold,
    Increase,
    Decrease,
}

/// What the sender knows. All times of packets are microseconds, all others milliseconds.
#[derive(Debug)]
struct Literal {
    deltas: usize,
    /// Departure and arrival of packets whose arrival is known.
    timed: Vec<(u64, u64)>,
    /// All packets that arrived, in the order in which they were named: arrival, if known.
    named: Vec<Option<u64>>,
    /// The largest place in the order of departure that was named, plus one.
    expected: usize,
    a: f64,
    a_s: f64,
    state: State,
    average: Option<(f64, f64)>,
    updated: Option<f64>,
    update_at: f64,
    report_at: f64,
    reported: (usize, usize),
    rtt: f64,
    /// When the last packet was acknowledged whose arrival is known.
    acked: f64,
    /// The signals so far.
    counted: usize,
    /// How often each state was entered or kept.
    visits: [usize; 3],
}

impl Literal {
    fn new(deltas: usize) -> Self {
        Self {
            deltas,
            timed: Vec::new(),
            named: Vec::new(),
            expected: 0,
            a: 300e3,
            a_s: 300e3,
            state: State::Increase,
            average: None,
            updated: None,
            update_at: 0.0,
            report_at: 0.0,
            reported: (0, 0),
            rtt: 0.0,
            acked: 0.0,
            counted: 0,
            visits: [0; 3],
        }
    }

    /// Sections 5.1 and 5.2: the last packets of the groups that have ended.
    fn groups(&self) -> Vec<(u64, u64)> {
        let mut groups: Vec<Vec<(u64, u64)>> = Vec::new();
        for &(left, arrived) in &self.timed {
            let Some(group) = groups.last_mut() else {
                groups.push(vec![(left, arrived)]);
                continue;
            };
            let (first, last) = (group[0], group[group.len() - 1]);
            if left < last.0 || arrived < last.1 {
                continue;
            }
            let d = (arrived - last.1) as i64 - (left - last.0) as i64;
            let is_burst = left - first.0 <= 5_000;
            let is_outage = arrived - last.1 < 5_000 && d < 0 && arrived - first.1 < 100_000;
            match is_burst || is_outage {
                true => group.push((left, arrived)),
                false => groups.push(vec![(left, arrived)]),
            }
        }
        groups.pop();
        groups.iter().map(|group| group[group.len() - 1]).collect()
    }

    /// Sections 5.3 and 5.4: one signal for each group but the first.
    fn signals(&self) -> Vec<Signal> {
        let groups = self.groups();
        let (mut m, mut e, mut var) = (0.0_f64, 0.1_f64, 50.0_f64);
        let (mut gamma, mut above_since) = (12.5_f64, None);
        let mut signals = Vec::new();
        for i in 1..groups.len() {
            let ms = |later: u64, earlier: u64| (later - earlier) as f64 / 1e3;
            let inter_arrival = ms(groups[i].1, groups[i - 1].1);
            let inter_departure = ms(groups[i].0, groups[i - 1].0);
            let d = inter_arrival - inter_departure;
            let f_max = (1..=i)
                .rev()
                .take(60)
                .map(|j| 1.0 / ms(groups[j].0, groups[j - 1].0))
                .fold(0.0, f64::max);
            let alpha = libm::pow(1.0 - 0.01, 30.0 / (1_000.0 * f_max));
            let z = d - m;
            let bound = 3.0 * var.sqrt();
            let bounded = if z > bound {
                bound
            } else if z < -bound {
                -bound
            } else {
                z
            };
            var = (alpha * var + (1.0 - alpha) * bounded * bounded).max(1.0);
            let k = (e + 1e-3) / (var + (e + 1e-3));
            let before = m;
            m += z * k;
            e = (1.0 - k) * (e + 1e-3);

            let x = m * i.min(self.deltas) as f64;
            let mut signal = Signal::Normal;
            if x > gamma {
                let since = *above_since.get_or_insert(groups[i].1);
                if groups[i].1 - since >= 10_000 && m >= before {
                    signal = Signal::Over;
                }
            } else {
                above_since = None;
                if x < -gamma {
                    signal = Signal::Under;
                }
            }
            signals.push(signal);
            if x.abs() - gamma <= 15.0 {
                let k = if x.abs() < gamma { 0.000_18 } else { 0.01 };
                gamma += inter_arrival.min(100.0) * k * (x.abs() - gamma);
                gamma = gamma.clamp(6.0, 600.0);
            }
        }
        signals
    }

    /// R of section 5.5, in bit/s.
    fn received(&self) -> Option<f64> {
        let mut arrivals: Vec<(u64, f64)> = Vec::new();
        let mut bits = 0.0;
        for arrived in &self.named {
            bits += 8_000.0;
            if let Some(at) = arrived {
                let newest = arrivals.last().map_or(0, |last| last.0);
                arrivals.push(((*at).max(newest), bits));
                bits = 0.0;
            }
        }
        let (&(first, _), rest) = arrivals.split_first()?;
        let &(newest, _) = rest.last()?;
        let time = (newest - first).min(500_000);
        let of_window = rest.iter().filter(|(at, _)| at + 500_000 > newest);
        (time > 0).then(|| of_window.map(|(_, bits)| bits).sum::<f64>() * 1e6 / time as f64)
    }

    /// Section 5.5.
    fn control(&mut self, now: f64, signal: Signal) {
        self.state = match (signal, self.state) {
            (Signal::Over, _) => State::Decrease,
            (Signal::Normal, State::Decrease) => State::Hold,
            (Signal::Normal, _) => State::Increase,
            (Signal::Under, _) => State::Hold,
        };
        self.visits[self.state as usize] += 1;
        let elapsed = self.updated.map_or(0.0, |updated| now - updated);
        self.updated = Some(now);
        self.update_at = now + 100.0 + self.rtt;
        let Some(received) = self.received().filter(|_| now - self.acked < 500.0) else {
            return;
        };
        if self.state == State::Increase {
            let mut is_near = false;
            if let Some((mean, variance)) = self.average {
                let stddev = (variance * mean).sqrt();
                is_near = (received - mean).abs() <= 3.0 * stddev;
                if received > mean + 3.0 * stddev {
                    self.average = None;
                }
            }
            let grown = if is_near {
                let response = 100.0 + self.rtt;
                let alpha = 0.5 * (elapsed / response).min(1.0);
                let frame = self.a / 30.0;
                self.a + f64::max(1_000.0, alpha * frame / (frame / 9_600.0).ceil())
            } else {
                self.a * libm::pow(1.08, (elapsed / 1_000.0).min(1.0))
            };
            self.a = if grown > 1.5 * received {
                self.a.max(1.5 * received)
            } else {
                grown
            };
        }
        if self.state == State::Decrease {
            self.a = self.a.min(0.85 * received);
            self.average = Some(match self.average {
                None => (received, 400.0),
                Some((mean, variance)) => {
                    let mean = 0.95 * mean + 0.05 * received;
                    let new = (mean - received) * (mean - received) / mean.max(1_000.0);
                    (mean, (0.95 * variance + 0.05 * new).clamp(400.0, 2_500.0))
                }
            });
        }
        self.a = self.a.clamp(30e3, 5e6);
    }

    /// Section 6.
    fn report(&mut self, now: f64) {
        let expected = self.expected - self.reported.0;
        let arrived = self.named.len() - self.reported.1;
        if expected == 0 {
            return;
        }
        let p = (expected as f64 - arrived as f64).max(0.0) / expected as f64;
        self.reported = (self.expected, self.named.len());
        self.report_at = now + 200.0;
        self.a_s = self.a_s.min(self.a);
        if p > 0.1 {
            self.a_s *= 1.0 - 0.5 * p;
        } else if p < 0.02 {
            self.a_s *= 1.05;
        }
        self.a_s = self.a_s.max(30e3);
    }
}

/// Runs a script. Checks the rate after each acknowledgement; returns how often each state was met.
fn check(script: &[Packet], deltas: u32) -> Result<[usize; 3], TestCaseError> {
    let mut gcc = Gcc::new(GccConfig { deltas, ..CONFIG });
    let mut literal = Literal::new(deltas as usize);
    let mut departures = Vec::new();
    let mut arrivals = Vec::new();
    let (mut left, mut held) = (1_000_000, 0_i64);
    for (number, packet) in script.iter().enumerate() {
        left += packet.gap;
        held = (held + packet.drift).max(0);
        departures.push(left);
        if !packet.is_lost {
            arrivals.push((left + ONE_WAY + held as u64, number));
        }
    }
    arrivals.sort_unstable();
    let at = Time::from_micros;
    let mut to_send = departures.iter().enumerate().peekable();
    let (mut largest, mut unnamed) = (0, BTreeSet::new());
    for &(arrived, number) in &arrivals {
        largest = largest.max(number);
        unnamed.insert(number);
        if script[number].is_ack_lost {
            continue;
        }
        let now = arrived + ONE_WAY;
        while let Some((number, left)) = to_send.next_if(|(_, left)| **left <= now) {
            gcc.on_event(Event::Sent(&sent(at(*left), SIZE, number as u64, SIZE)));
        }
        let before = gcc.rate();
        let named = core::mem::take(&mut unnamed);
        let known = named
            .contains(&largest)
            .then(|| arrivals_of(&arrivals, largest));
        for number in &named {
            gcc.on_event(Event::PacketAcked {
                now: at(now),
                number: PacketNumber::new(*number as u64),
                arrived_at: known.filter(|_| *number == largest).map(|arrived| Arrived {
                    at: at(arrived + AHEAD),
                    tick: Span::from_micros(1),
                }),
            });
        }

        let now_ms = now as f64 / 1e3;
        let mut has_over_use = false;
        if let Some(arrived) = known {
            literal.timed.push((departures[largest], arrived));
            let signals = literal.signals();
            if signals.len() > literal.counted {
                literal.counted = signals.len();
                let signal = signals[signals.len() - 1];
                let begins = signal == Signal::Over && literal.state != State::Decrease;
                if begins || now_ms >= literal.update_at {
                    literal.control(now_ms, signal);
                    has_over_use = signal == Signal::Over;
                }
            }
        }
        if known.is_some() {
            literal.acked = now_ms;
        }
        for number in &named {
            literal.named.push(known.filter(|_| *number == largest));
            literal.expected = literal.expected.max(number + 1);
        }
        let delay_only = gcc.rate();
        prop_assert!(
            !has_over_use || delay_only <= before,
            "over-use raised {before}"
        );

        let rtt = known.map(|_| now - departures[largest]);
        literal.rtt = rtt.map_or(literal.rtt, |rtt| rtt as f64 / 1e3);
        if now_ms >= literal.report_at {
            literal.report(now_ms);
        }
        let event = comity_congestion::Ack {
            rtt: rtt.map(Span::from_micros),
            ..ack(at(now), SIZE, Span::ZERO, SIZE)
        };
        gcc.on_event(Event::Ack(&event));

        let (found, expected) = (gcc.rate().as_bps() as f64, literal.a.min(literal.a_s));
        prop_assert!(
            (found - expected).abs() <= 1.0 + 1e-6 * expected,
            "{found}, not {expected} at {now}"
        );
        prop_assert!((CONFIG.min_rate..=CONFIG.max_rate).contains(&gcc.rate()));
    }
    Ok(literal.visits)
}

/// When this packet arrived.
fn arrivals_of(arrivals: &[(u64, usize)], number: usize) -> u64 {
    arrivals
        .iter()
        .find(|arrival| arrival.1 == number)
        .map(|arrival| arrival.0)
        .expect("it arrived")
}

/// Packets among which the queue grows or drains at one pace.
fn phase() -> impl Strategy<Value = Vec<Packet>> {
    let gap = prop_oneof![50 => 0_u64..12_000, 1 => 400_000_u64..600_000];
    let packet = (gap, -1_000_i64..1_000, 0_u8..100, 0_u8..100);
    let packets = prop::collection::vec(packet, 1..60);
    (packets, -3_000_i64..3_000, 0_u8..30, 0_u8..30).prop_map(|(packets, drift, loss, ack_loss)| {
        let packet = |(gap, jitter, lost, ack_lost)| Packet {
            gap,
            drift: drift + jitter,
            is_lost: lost < loss,
            is_ack_lost: ack_lost < ack_loss,
        };
        packets.into_iter().map(packet).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_path_gives_the_rate_of_the_draft(
        phases in prop::collection::vec(phase(), 1..8),
        deltas in prop::sample::select(vec![60_u32, 1]),
    ) {
        check(&phases.concat(), deltas)?;
    }
}

/// The queue stays for 2 s, grows by 8 % of the time, stays, drains and stays.
#[test]
fn all_states_are_met() {
    let phases = [0, 800, 0, -800, 0].map(|drift| {
        let packet = Packet {
            gap: 10_000,
            drift,
            is_lost: false,
            is_ack_lost: false,
        };
        vec![packet; 200]
    });
    let visits = check(&phases.concat(), 60).unwrap();
    assert!(visits.iter().all(|visits| *visits > 2), "{visits:?}");
}
