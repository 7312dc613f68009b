//! Both links against a queue that is run nanosecond by nanosecond.
//!
//! The oracle shares no code with the crate. It has a list of waiting packets, and a wire that does
//! as much work in every nanosecond as its rate allows and passes the rest of that nanosecond to
//! the next packet in line. Random early detection is Floyd and Jacobson's figure 2 with the
//! amendments that the crate lists; the average decays in a loop, one typical packet at a time.

use std::collections::VecDeque;

use comity_link::{
    AnalyticLink, DropCause, Limit, LinkConfig, Outcome, Packet, Passage, Queue, QueuedLink,
    Random, RateProfile, RedConfig, RedUnit,
};
use comity_units::{DataSize, Rate, Seed, Span, Time};
use proptest::prelude::*;

/// Bits per second that move one byte in a nanosecond.
const BYTE_PER_NANO: u64 = 8_000_000_000;

/// The nanosecond by which everything that ever leaves has left: 350 packets of 290 bytes at the
/// least rate, an eighth of a byte a nanosecond, take 812,000 behind offers over at most 210,000.
const HORIZON: u64 = 1_100_000;

#[derive(Clone, Debug, PartialEq)]
enum Fate {
    Dropped(DropCause),
    Sent {
        start: Time,
        departure: Time,
        marked: bool,
    },
}

struct InLine {
    index: usize,
    bytes: u32,
    work: u128,
    start: Option<u64>,
    marked: bool,
}

struct Oracle<'a> {
    rates: &'a [(u64, u64)],
    limit: Limit,
    red: Option<LiteralRed>,
    line: VecDeque<InLine>,
    fates: Vec<Fate>,
    idle_since: u64,
}

impl Oracle<'_> {
    fn rate(&self, at: u64) -> u64 {
        let holding = self.rates.iter().rev().find(|(from, _)| *from <= at);
        holding.unwrap_or(&self.rates[0]).1
    }

    fn run(mut self, offers: &[(u64, Packet)]) -> (Vec<Fate>, Option<f64>) {
        let mut next = 0;
        for now in 0..HORIZON {
            while next < offers.len() && offers[next].0 == now {
                self.offer(next, now, offers[next].1);
                next += 1;
            }
            self.tick(now);
            if next == offers.len() && self.line.is_empty() {
                break;
            }
        }
        for waiting in self.line {
            self.fates[waiting.index] = Fate::Sent {
                start: waiting.start.map_or(Time::MAX, Time::from_nanos),
                departure: Time::MAX,
                marked: waiting.marked,
            };
        }
        (self.fates, self.red.map(|red| red.avg))
    }

    fn offer(&mut self, index: usize, now: u64, packet: Packet) {
        let mut marked = false;
        let full = match self.limit {
            Limit::Unlimited => false,
            Limit::Packets(limit) => self.line.len() + 1 > limit as usize,
            Limit::Bytes(limit) => {
                let held: u64 = self.line.iter().map(|p| u64::from(p.bytes)).sum();
                held + u64::from(packet.bytes) > limit.get()
            }
        };
        let rate = self.rate(now);
        if let Some(red) = &mut self.red {
            let waiting: Vec<u32> = self.line.iter().skip(1).map(|p| p.bytes).collect();
            let idle = self.line.is_empty().then(|| now - self.idle_since);
            let hit = red.arrival(&waiting, idle, rate, packet);
            if hit == Some(true) {
                self.fates.push(Fate::Dropped(DropCause::EarlyDrop));
                return;
            }
            marked = hit == Some(false);
            if full {
                red.count = 0;
                red.count_bytes = 0;
            }
        }
        if full {
            self.fates.push(Fate::Dropped(DropCause::QueueFull));
            return;
        }
        let start = self.line.is_empty().then_some(now);
        let work = u128::from(packet.bytes) * u128::from(BYTE_PER_NANO);
        self.line.push_back(InLine {
            index,
            bytes: packet.bytes,
            work,
            start,
            marked,
        });
        // Replaced when it leaves.
        self.fates.push(Fate::Dropped(DropCause::Loss));
    }

    fn tick(&mut self, now: u64) {
        let mut can_do = u128::from(self.rate(now));
        while let Some(first) = self.line.front_mut() {
            if first.work > can_do {
                first.work -= can_do;
                return;
            }
            can_do -= first.work;
            let start = Time::from_nanos(first.start.unwrap());
            let departure = Time::from_nanos(now + 1);
            self.fates[first.index] = Fate::Sent {
                start,
                departure,
                marked: first.marked,
            };
            self.line.pop_front();
            self.idle_since = now + 1;
            if let Some(next) = self.line.front_mut() {
                next.start = Some(now + 1);
            }
        }
    }
}

struct LiteralRed {
    config: RedConfig,
    avg: f64,
    count: i64,
    count_bytes: u64,
    old: bool,
    random: Random,
}

impl LiteralRed {
    /// `Some(true)` drops, `Some(false)` marks.
    fn arrival(
        &mut self,
        waiting: &[u32],
        idle: Option<u64>,
        rate: u64,
        packet: Packet,
    ) -> Option<bool> {
        let c = &self.config;
        let mean = c.mean_packet.get();
        let in_bytes = c.unit == RedUnit::Bytes;
        let scale = if in_bytes { mean as f64 } else { 1.0 };
        let (min_th, max_th) = (c.min_threshold * scale, c.max_threshold * scale);
        let q = if in_bytes {
            waiting.iter().sum::<u32>() as f64
        } else {
            waiting.len() as f64
        };

        if let Some(idle) = idle {
            let m = u128::from(rate) * u128::from(idle)
                / (u128::from(mean) * u128::from(BYTE_PER_NANO));
            for _ in 0..m {
                self.avg *= 1.0 - c.weight;
            }
        }
        self.avg = (1.0 - c.weight) * self.avg + c.weight * q;
        self.count += 1;
        self.count_bytes += u64::from(packet.bytes);

        if self.avg < min_th || q <= 1.0 {
            self.old = false;
            return None;
        }
        if self.avg >= if c.gentle { 2.0 * max_th } else { max_th } {
            self.count = 0;
            self.count_bytes = 0;
            return Some(true);
        }
        if !self.old {
            self.old = true;
            self.count = 1;
            self.count_bytes = u64::from(packet.bytes);
            return None;
        }
        let p_b = if self.avg < max_th {
            c.max_probability * (self.avg - min_th) / (max_th - min_th)
        } else {
            c.max_probability + (1.0 - c.max_probability) * (self.avg - max_th) / max_th
        };
        let count = if in_bytes {
            (self.count_bytes / mean) as f64
        } else {
            self.count as f64
        };
        let mut p_a = if c.wait {
            if count * p_b < 1.0 {
                0.0
            } else {
                p_b / (2.0 - count * p_b)
            }
        } else {
            p_b / (1.0 - count * p_b)
        };
        let is_overdue = count * p_b >= if c.wait { 2.0 } else { 1.0 };
        if is_overdue || !(0.0..=1.0).contains(&p_a) {
            p_a = 1.0;
        }
        if in_bytes && p_a < 1.0 {
            p_a = p_a * f64::from(packet.bytes) / mean as f64;
        }
        if self.random.uniform() < p_a {
            self.count = 0;
            self.count_bytes = 0;
            return Some(!(c.ecn && packet.ecn_capable));
        }
        None
    }
}

fn fate(outcome: Outcome) -> Fate {
    match outcome {
        Outcome::Carried(Passage {
            start,
            departure,
            arrival,
            marked,
            duplicate,
        }) => {
            assert_eq!(arrival, departure + Span::from_nanos(17));
            assert_eq!(duplicate, None);
            Fate::Sent {
                start,
                departure,
                marked,
            }
        }
        Outcome::Dropped(cause) => Fate::Dropped(cause),
        Outcome::Lost { .. } => panic!("no loss model, and yet {outcome:?}"),
    }
}

/// Runs a queued link, with every wake-up or only with the next offer.
fn queued(
    link: &mut QueuedLink<usize>,
    offers: &[(u64, Packet)],
    changes: &[(u64, u64)],
    punctual: bool,
) -> Vec<Fate> {
    // A packet that never leaves keeps this value; the host does not know its start.
    let never = Fate::Sent {
        start: Time::MAX,
        departure: Time::MAX,
        marked: false,
    };
    let mut fates = vec![never; offers.len()];
    let mut collect = |link: &mut QueuedLink<usize>, now: Time| {
        while let Some(decision) = link.poll(now) {
            fates[decision.token] = fate(decision.outcome);
        }
    };
    let mut refused = Vec::new();
    let mut changes = changes.iter().peekable();
    let last = (
        HORIZON,
        Packet {
            bytes: 0,
            ecn_capable: false,
            flow: 0,
        },
    );
    for (token, &(at, packet)) in offers.iter().chain([&last]).enumerate() {
        while let Some((time, rate)) = changes.next_if(|(time, _)| *time <= at) {
            link.set_rate(Time::from_nanos(*time), Rate::from_bps(*rate));
        }
        let now = Time::from_nanos(at);
        while punctual && let Some(wakeup) = link.next_wakeup().filter(|wakeup| *wakeup <= now) {
            collect(link, wakeup);
        }
        if token == offers.len() {
            collect(link, now);
        } else if let Err(cause) = link.offer(now, packet, token) {
            refused.push((token, cause));
        }
    }
    for (token, cause) in refused {
        fates[token] = Fate::Dropped(cause);
    }
    fates
}

fn assert_same(expected: &[Fate], got: &[Fate]) {
    for (index, (expected, got)) in expected.iter().zip(got).enumerate() {
        assert_eq!(expected, got, "packet {index}");
    }
    assert_eq!(expected.len(), got.len());
}

/// The fates without the parts that a host of a queued link cannot know of packets that never
/// leave.
fn without_never(fates: &[Fate]) -> Vec<Fate> {
    let blank = |fate: &Fate| match fate {
        Fate::Sent { departure, .. } if departure.is_never() => Fate::Sent {
            start: Time::MAX,
            departure: Time::MAX,
            marked: false,
        },
        other => other.clone(),
    };
    fates.iter().map(blank).collect()
}

fn offers() -> impl Strategy<Value = Vec<(u64, Packet)>> {
    let offer = (
        prop_oneof![Just(0), 0..40_u64, 0..600_u64],
        1..300_u32,
        any::<bool>(),
    );
    prop::collection::vec(offer, 1..100).prop_map(|offers| {
        let mut now = 0;
        let timed = |(gap, bytes, ecn_capable)| {
            now += gap;
            (
                now,
                Packet {
                    bytes,
                    ecn_capable,
                    flow: 0,
                },
            )
        };
        offers.into_iter().map(timed).collect()
    })
}

/// From an eighth of a byte to 16 bytes a nanosecond, without common multiples.
fn rate() -> impl Strategy<Value = u64> {
    BYTE_PER_NANO / 8..BYTE_PER_NANO * 16
}

fn rates() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let step = (1..2_000_u64, prop_oneof![4 => rate(), 1 => Just(0)]);
    (0..50_u64, rate(), prop::collection::vec(step, 0..12)).prop_map(|(first, rate, steps)| {
        let mut now = first;
        let mut rates = vec![(first, rate)];
        for (gap, rate) in steps {
            now += gap;
            rates.push((now, rate));
        }
        rates
    })
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::Unlimited),
        (1..12_u32).prop_map(Limit::Packets),
        (300..3_000_u64).prop_map(|bytes| Limit::Bytes(DataSize::new(bytes))),
    ]
}

fn red() -> impl Strategy<Value = RedConfig> {
    (
        limit(),
        1.0..4.0_f64,
        0.5..6.0_f64,
        0.01..0.5_f64,
        0.01..0.6_f64,
        any::<[bool; 4]>(),
    )
        .prop_map(
            |(limit, min, more, max_p, weight, [gentle, ecn, wait, in_bytes])| RedConfig {
                limit,
                min_threshold: min,
                max_threshold: min + more,
                max_probability: max_p,
                weight,
                gentle,
                ecn,
                mean_packet: DataSize::new(100),
                unit: if in_bytes {
                    RedUnit::Bytes
                } else {
                    RedUnit::Packets
                },
                wait,
            },
        )
}

fn check(rates: &[(u64, u64)], queue: Queue, offers: &[(u64, Packet)], punctual: bool) {
    let seed = Seed::new(5);
    let (limit, red) = match &queue {
        Queue::DropTail(limit) => (*limit, None),
        Queue::Red(red) => (red.limit, Some(red.clone())),
        Queue::CoDel(_) | Queue::FqCodel(_) | Queue::Pie(_) => unreachable!("not generated"),
    };
    let red = red.map(|config| LiteralRed {
        config,
        avg: 0.0,
        count: 0,
        count_bytes: 0,
        old: false,
        random: Random::new(seed.derive("red")),
    });
    let oracle = Oracle {
        rates,
        limit,
        red,
        line: VecDeque::new(),
        fates: Vec::new(),
        idle_since: 0,
    };
    let (expected, average) = oracle.run(offers);

    let steps: Vec<(Time, Rate)> = rates
        .iter()
        .map(|&(at, rate)| (Time::from_nanos(at), Rate::from_bps(rate)))
        .collect();
    let base = LinkConfig {
        queue,
        ..LinkConfig::new(steps[0].1, Span::from_nanos(17))
    };
    let stepped = LinkConfig {
        rate: RateProfile::Steps(steps.clone()),
        ..base.clone()
    };

    let mut analytic = vec![stepped.clone()];
    if steps.len() == 1 {
        analytic.push(base.clone());
    }
    for (config, tries_another) in analytic.iter().flat_map(|c| [(c, false), (c, true)]) {
        let mut link = AnalyticLink::new(config, seed).unwrap();
        let got: Vec<Fate> = offers
            .iter()
            .map(|&(at, packet)| {
                let now = Time::from_nanos(at);
                let another = tries_another
                    .then(|| link.offer_another(now, packet.bytes))
                    .flatten();
                fate(another.map_or_else(|| link.offer(now, packet), Outcome::Carried))
            })
            .collect();
        assert_same(&expected, &got);
        assert_eq!(link.average_queue().is_some(), average.is_some());
        if let (Some(expected), Some(got)) = (average, link.average_queue()) {
            assert!(
                (expected - got).abs() <= 1e-9 * expected.max(1.0),
                "{expected} {got}"
            );
        }
    }

    let expected = without_never(&expected);
    let mut link = QueuedLink::new(&stepped, seed).unwrap();
    assert_same(&expected, &queued(&mut link, offers, &[], punctual));
    // The same steps, each set at its time.
    let mut link = QueuedLink::new(&base, seed).unwrap();
    assert_same(&expected, &queued(&mut link, offers, &rates[1..], punctual));
}

/// Runs of packets of one size, which make a link switch between counting by its clock and by its
/// records.
fn offers_in_runs() -> impl Strategy<Value = Vec<(u64, Packet)>> {
    let run = (
        prop::sample::select(vec![1_u32, 40, 150, 290]),
        prop::collection::vec(prop_oneof![Just(0), 0..40_u64, 0..600_u64], 1..30),
    );
    prop::collection::vec(run, 1..12).prop_map(|runs| {
        let mut now = 0;
        let mut offers = Vec::new();
        for (bytes, gaps) in runs {
            for gap in gaps {
                now += gap;
                offers.push((
                    now,
                    Packet {
                        bytes,
                        ecn_capable: false,
                        flow: 0,
                    },
                ));
            }
        }
        offers
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn runs_of_one_size_into_drop_tail(
        rate in prop_oneof![9 => rate(), 1 => Just(0)],
        limit in limit(),
        offers in offers_in_runs(),
        punctual: bool,
    ) {
        check(&[(0, rate)], Queue::DropTail(limit), &offers, punctual);
    }

    #[test]
    fn constant_rate_drop_tail(
        rate in rate(), limit in limit(), offers in offers(), punctual: bool
    ) {
        check(&[(0, rate)], Queue::DropTail(limit), &offers, punctual);
    }

    #[test]
    fn stepped_rate_drop_tail(
        rates in rates(), limit in limit(), offers in offers(), punctual: bool
    ) {
        check(&rates, Queue::DropTail(limit), &offers, punctual);
    }

    #[test]
    fn stepped_rate_random_early_detection(
        rates in rates(), red in red(), offers in offers(), punctual: bool
    ) {
        check(&rates, Queue::Red(red), &offers, punctual);
    }
}

/// Random configurations might all stay below the thresholds: this one does not.
#[test]
fn random_early_detection_is_tested() {
    let red = RedConfig {
        limit: Limit::Packets(30),
        min_threshold: 3.0,
        max_threshold: 9.0,
        weight: 0.05,
        ecn: true,
        mean_packet: DataSize::new(100),
        ..RedConfig::default()
    };
    let packet = |index: u64| Packet {
        bytes: 100,
        ecn_capable: index.is_multiple_of(2),
        flow: 0,
    };
    let offers: Vec<(u64, Packet)> = (0..1_500)
        .map(|index| (index * 83, packet(index)))
        .collect();
    let config = LinkConfig {
        queue: Queue::Red(red.clone()),
        ..LinkConfig::new(Rate::from_bps(BYTE_PER_NANO), Span::from_nanos(17))
    };
    let mut link = AnalyticLink::new(&config, Seed::new(5)).unwrap();
    let fates: Vec<Fate> = offers
        .iter()
        .map(|&(at, packet)| fate(link.offer(Time::from_nanos(at), packet)))
        .collect();
    let count = |wanted: &dyn Fn(&Fate) -> bool| fates.iter().filter(|fate| wanted(fate)).count();
    let early = count(&|fate| *fate == Fate::Dropped(DropCause::EarlyDrop));
    let marked = count(&|fate| matches!(fate, Fate::Sent { marked: true, .. }));
    assert!(
        early > 50 && marked > 50,
        "{early} dropped, {marked} marked"
    );
    check(&[(0, BYTE_PER_NANO)], Queue::Red(red), &offers, true);
}
