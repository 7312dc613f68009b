//! PIE against a literal RFC 8033, and against numbers worked out by hand.

use std::collections::VecDeque;

use comity_link::{
    AnalyticLink, ConfigError, DropCause, Limit, LinkConfig, Outcome, Packet, PieConfig, Queue,
    QueuedLink, Random,
};
use comity_units::{DataSize, Rate, Seed, Span, Time};
use proptest::prelude::*;

/// 4 Mb/s: a byte takes 2,000 ns.
const NANOS_PER_BYTE: u64 = 2_000;

fn link(pie: PieConfig) -> QueuedLink<usize> {
    let config = LinkConfig {
        queue: Queue::Pie(pie),
        ..LinkConfig::new(Rate::from_mbps(4), Span::ZERO)
    };
    QueuedLink::new(&config, Seed::new(3)).unwrap()
}

const fn packet(bytes: u32) -> Packet {
    Packet {
        bytes,
        ecn_capable: false,
        flow: 0,
    }
}

/// The decisions for a host, by packet number.
fn run(link: &mut QueuedLink<usize>, offers: &[(Time, Packet)]) -> Vec<Outcome> {
    let mut outcomes = vec![None; offers.len()];
    for (token, &(now, packet)) in offers.iter().enumerate() {
        if let Err(cause) = link.offer(now, packet, token) {
            outcomes[token] = Some(Outcome::Dropped(cause));
        }
    }
    while let Some(wakeup) = link.next_wakeup() {
        while let Some(decision) = link.poll(wakeup) {
            assert_eq!(outcomes[decision.token].replace(decision.outcome), None);
        }
    }
    outcomes
        .into_iter()
        .map(|outcome| outcome.expect("a packet did not come back"))
        .collect()
}

/// A 1,000 B packet each millisecond at 4 Mb/s (2 ms each): packet k leaves the queue at 2k ms
/// after a delay of k ms. At the n-th update, 15n ms, the last one to have left is the largest k
/// with 2k < 15n, hence delays of 7, 14, 22, 29, 37, 44, 52, 59, 67 and 74 ms. With α = 0.125 and β
/// = 1.25 the steps are, before scaling,
///
/// ```text
/// 0.125 · (7 − 15) + 1.25 · (7 − 0)     =  7.75   ms · Hz, 1/2048
/// 0.125 · (14 − 15) + 1.25 · (14 − 7)   =  8.625           1/512
/// 0.125 · (22 − 15) + 1.25 · (22 − 14)  = 10.875           1/128
/// 0.125 · 14 + 1.25 · 7                 = 10.5             1/32
/// 0.125 · 22 + 1.25 · 8                 = 12.75            1/32
/// 0.125 · 29 + 1.25 · 7                 = 12.375           1/32
/// 0.125 · 37 + 1.25 · 8                 = 14.625           1/8
/// 0.125 · 44 + 1.25 · 7                 = 14.25            1/8
/// 0.125 · 52 + 1.25 · 8                 = 16.5             1/8
/// 0.125 · 59 + 1.25 · 7                 = 16.125           1/8
/// ```
#[test]
fn the_drop_probability_of_a_constant_overload_worked_by_hand() {
    let mut link = link(PieConfig::default());
    let expected = [
        3.784_179_7e-6,
        2.062_988_3e-5,
        1.055_908_2e-4,
        4.337_158_2e-4,
        8.321_533_2e-4,
        1.218_872_07e-3,
        3.046_997_07e-3,
        4.828_247_07e-3,
        6.890_747_07e-3,
        8.906_372_07e-3,
    ];
    let mut offered = 0;
    for (n, expected) in (1..).zip(expected) {
        let update = Time::from_millis(15 * n);
        while Time::from_millis(offered) < update {
            let token = offered as usize;
            // The burst allowance lasts for ten updates.
            assert_eq!(
                link.offer(Time::from_millis(offered), packet(1_000), token),
                Ok(())
            );
            offered += 1;
        }
        let got = link.drop_probability(update).unwrap();
        assert!(
            (got - expected).abs() < 1e-10,
            "update {n}: {got}, not {expected}"
        );
    }
}

/// Twice the link's capacity: half of the packets must be dropped, and the delay stays at the
/// target. While the drop probability climbs, the delay exceeds it.
#[test]
fn a_constant_overload_is_held_at_the_target() {
    for target in [15, 40] {
        let mut link = link(PieConfig {
            target: Span::from_millis(target),
            ..PieConfig::default()
        });
        let offers: Vec<(Time, Packet)> = (0..60_000)
            .map(|k| (Time::from_millis(k), packet(1_000)))
            .collect();
        let outcomes = run(&mut link, &offers);
        let late = offers.iter().zip(&outcomes).skip(30_000);
        let waits: Vec<f64> = late
            .filter_map(|((at, _), outcome)| match outcome {
                Outcome::Carried(passage) => Some(passage.start.since(*at)?.as_secs_f64()),
                _ => None,
            })
            .collect();
        let mean = waits.iter().sum::<f64>() / waits.len() as f64 * 1e3;
        assert!(
            (mean / target as f64 - 1.0).abs() < 0.2,
            "{mean} ms for {target} ms"
        );
        // The link is busy for all of the 30 s, at 2 ms a packet.
        assert!((14_900..=15_030).contains(&waits.len()), "{}", waits.len());
        let full = Outcome::Dropped(DropCause::QueueFull);
        assert!(outcomes.iter().all(|outcome| *outcome != full));
    }
}

/// After the queue has drained, each update subtracts α · target and 2 % of the rest, until the
/// drop probability is zero and a burst passes again.
#[test]
fn quiet_ends_the_drops_and_brings_the_burst_allowance_back() {
    let mut link = link(PieConfig::default());
    let burst = |link: &mut QueuedLink<usize>, from: u64, count: u64| {
        let mut dropped = 0;
        for k in 0..count {
            let offered = link.offer(Time::from_millis(from + k), packet(1_000), 0);
            dropped += u32::from(offered.is_err());
        }
        dropped
    };
    assert!(burst(&mut link, 0, 5_000) > 1_000);
    while let Some(wakeup) = link.next_wakeup() {
        while link.poll(wakeup).is_some() {}
    }
    // 6 s are a multiple of the update interval; the queue has been empty for more than two
    // updates.
    let mut probability = link.drop_probability(Time::from_millis(6_000)).unwrap();
    assert!(probability > 0.1, "{probability}");
    for update in 401..410 {
        let expected = (probability - 0.125 * 0.015) * 0.98;
        probability = link
            .drop_probability(Time::from_millis(15 * update))
            .unwrap();
        assert!(
            (probability - expected).abs() < 1e-12,
            "{probability}, not {expected}"
        );
    }
    // Although the drop probability is not zero, three packets pass: two of them may wait.
    assert!(link.drop_probability(Time::from_millis(6_300)).unwrap() > 0.01);
    assert_eq!(burst(&mut link, 6_300, 3), 0);
    // 140 ms of overload after a long quiet period: nothing is dropped.
    assert_eq!(link.drop_probability(Time::from_secs(100)), Some(0.0));
    assert_eq!(burst(&mut link, 100_000, 140), 0);
}

/// A twentieth above the link's capacity, which marks do not reduce: the drop probability finally
/// exceeds a tenth.
#[test]
fn marks_replace_drops_below_a_tenth() {
    let offers: Vec<(Time, Packet)> = (0..10_000)
        .map(|k| {
            let capable = Packet {
                ecn_capable: true,
                ..packet(1_000)
            };
            (Time::from_micros(1_900 * k), capable)
        })
        .collect();
    let outcomes = run(
        &mut link(PieConfig {
            ecn: true,
            ..PieConfig::default()
        }),
        &offers,
    );
    let is_marked = |outcome: &Outcome| matches!(outcome, Outcome::Carried(p) if p.marked);
    let is_dropped = |outcome: &Outcome| *outcome == Outcome::Dropped(DropCause::EarlyDrop);
    let first_drop = outcomes.iter().position(is_dropped).unwrap();
    let marks = outcomes[..first_drop].iter().filter(|o| is_marked(o));
    let marks = marks.count();
    // 722 packets at a drop probability that climbs to a tenth, about a twentieth on average.
    assert!(
        (5..60).contains(&marks),
        "{marks} marks before drop {first_drop}"
    );
    let outcomes = run(&mut link(PieConfig::default()), &offers);
    assert!(!outcomes.iter().any(is_marked));
}

#[test]
fn an_analytic_link_refuses() {
    let config = LinkConfig {
        queue: Queue::Pie(PieConfig::default()),
        ..LinkConfig::new(Rate::from_mbps(4), Span::ZERO)
    };
    let error = AnalyticLink::new(&config, Seed::new(0)).unwrap_err();
    assert_eq!(error, ConfigError::NeedsQueuedLink);
}

/// RFC 8033 literally, with a timer that fires at every update, and Linux's step at 250 ms.
struct Literal {
    config: PieConfig,
    queue: VecDeque<(usize, u64, u32)>,
    current_qdelay: f64,
    qdelay_old: f64,
    drop_prob: f64,
    accu_prob: f64,
    burst_allowance: u64,
    random: Random,
    in_service: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Early,
    Full,
    Sent { start: u64, marked: bool },
}

impl Literal {
    fn target(&self) -> f64 {
        self.config.target.as_secs_f64()
    }

    fn on_timer(&mut self) {
        let mut p = self.config.alpha * (self.current_qdelay - self.target())
            + self.config.beta * (self.current_qdelay - self.qdelay_old);
        p /= match self.drop_prob {
            low if low < 0.000_001 => 2_048.0,
            low if low < 0.000_01 => 512.0,
            low if low < 0.000_1 => 128.0,
            low if low < 0.001 => 32.0,
            low if low < 0.01 => 8.0,
            low if low < 0.1 => 2.0,
            _ => 1.0,
        };
        if self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        if self.current_qdelay > 0.25 {
            p += 0.02;
        }
        self.drop_prob += p;
        if self.current_qdelay == 0.0 && self.qdelay_old == 0.0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        let update = self.config.update_interval.as_nanos();
        self.burst_allowance -= update.min(self.burst_allowance);
        let half = self.target() / 2.0;
        if self.drop_prob == 0.0 && self.current_qdelay < half && self.qdelay_old < half {
            self.burst_allowance = self.config.max_burst.as_nanos();
        }
        self.qdelay_old = self.current_qdelay;
    }

    /// Returns whether the packet is marked, if it is accepted.
    fn enqueue(&mut self, now: u64, number: usize, packet: Packet) -> Result<bool, Fate> {
        let held = self
            .queue
            .iter()
            .map(|waiting| waiting.2)
            .chain(self.in_service);
        let is_full = match self.config.limit {
            Limit::Unlimited => false,
            Limit::Packets(limit) => held.count() >= limit as usize,
            Limit::Bytes(limit) => held.sum::<u32>() + packet.bytes > limit.get() as u32,
        };
        if is_full {
            self.accu_prob = 0.0;
            return Err(Fate::Full);
        }
        let mut marked = false;
        if self.burst_allowance == 0 && self.drop_early() {
            self.accu_prob = 0.0;
            marked = self.config.ecn && packet.ecn_capable && self.drop_prob < 0.1;
            if !marked {
                return Err(Fate::Early);
            }
        }
        self.queue.push_back((number, now, packet.bytes));
        Ok(marked)
    }

    fn drop_early(&mut self) -> bool {
        let waiting: u64 = self.queue.iter().map(|waiting| u64::from(waiting.2)).sum();
        if self.qdelay_old < self.target() / 2.0 && self.drop_prob < 0.2 {
            return false;
        }
        if waiting <= 2 * self.config.mean_packet.get() {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < 0.85 {
            return false;
        }
        if self.accu_prob >= 8.5 {
            return true;
        }
        self.random.uniform() < self.drop_prob
    }

    /// At one instant, an update precedes a departure, which precedes offers.
    fn run(mut self, offers: &[(Time, Packet)], end: u64) -> (Vec<Fate>, f64) {
        let mut fates = vec![Fate::Full; offers.len()];
        let mut marks = vec![false; offers.len()];
        let (mut next, mut free_at, mut timer) = (0, 0, self.config.update_interval.as_nanos());
        loop {
            let offer = offers.get(next).map_or(u64::MAX, |(at, _)| at.as_nanos());
            let departure = if self.in_service.is_some() {
                free_at
            } else {
                u64::MAX
            };
            let now = offer.min(departure).min(timer);
            if now > end {
                return (fates, self.drop_prob);
            }
            if now == timer {
                self.on_timer();
                timer += self.config.update_interval.as_nanos();
                continue;
            }
            if now == departure {
                self.in_service = None;
            } else {
                match self.enqueue(now, next, offers[next].1) {
                    Ok(marked) => marks[next] = marked,
                    Err(fate) => fates[next] = fate,
                }
                next += 1;
            }
            if self.in_service.is_none()
                && let Some((number, since, bytes)) = self.queue.pop_front()
            {
                self.current_qdelay = if self.queue.is_empty() {
                    0.0
                } else {
                    (now - since) as f64 / 1e9
                };
                fates[number] = Fate::Sent {
                    start: now,
                    marked: marks[number],
                };
                self.in_service = Some(bytes);
                free_at = now + u64::from(bytes) * NANOS_PER_BYTE;
            }
        }
    }
}

/// Loads that rise and fall around the rate of the link, with pauses.
fn offers() -> impl Strategy<Value = Vec<(Time, Packet)>> {
    let pause = prop_oneof![3 => Just(0), 1 => 0..900_000_000_u64];
    let phase = (
        pause,
        300_000..4_000_000_u64,
        1..600_usize,
        100..1_500_u32,
        any::<bool>(),
    );
    prop::collection::vec(phase, 1..8).prop_map(|phases| {
        let mut now = 1;
        let mut offers = Vec::new();
        for (pause, gap, count, bytes, ecn_capable) in phases {
            now += pause;
            for _ in 0..count {
                let packet = Packet {
                    ecn_capable,
                    ..packet(bytes)
                };
                offers.push((Time::from_nanos(now), packet));
                now += gap;
            }
        }
        offers
    })
}

fn configs() -> impl Strategy<Value = PieConfig> {
    let limit = prop_oneof![
        Just(Limit::Unlimited),
        (2_u32..200).prop_map(Limit::Packets),
        (3_000_u64..200_000).prop_map(|bytes| Limit::Bytes(DataSize::new(bytes))),
    ];
    (
        limit,
        1_u64..40,
        1_u64..40,
        0_u64..200,
        any::<bool>(),
        100_u64..2_000,
    )
        .prop_map(|(limit, target, update, burst, ecn, mean)| PieConfig {
            target: Span::from_millis(target),
            update_interval: Span::from_millis(update),
            limit,
            max_burst: Span::from_millis(burst),
            ecn,
            mean_packet: DataSize::new(mean),
            ..PieConfig::default()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn agrees_with_the_literal_reading(pie in configs(), offers in offers(), seed: u64) {
        let seed = Seed::new(seed);
        let config = LinkConfig {
            queue: Queue::Pie(pie.clone()),
            ..LinkConfig::new(Rate::from_mbps(4), Span::ZERO)
        };
        let literal = Literal {
            queue: VecDeque::new(),
            current_qdelay: 0.0,
            qdelay_old: 0.0,
            drop_prob: 0.0,
            accu_prob: 0.0,
            burst_allowance: pie.max_burst.as_nanos(),
            random: Random::new(seed.derive("pie")),
            in_service: None,
            config: pie,
        };
        let end = Time::from_secs(30);
        let (expected, probability) = literal.run(&offers, end.as_nanos());
        let mut link = QueuedLink::new(&config, seed).unwrap();
        let outcomes = run(&mut link, &offers);
        for (number, (outcome, expected)) in outcomes.iter().zip(expected).enumerate() {
            let fate = match outcome {
                Outcome::Carried(passage) => Fate::Sent {
                    start: passage.start.as_nanos(),
                    marked: passage.marked,
                },
                Outcome::Dropped(DropCause::EarlyDrop) => Fate::Early,
                Outcome::Dropped(DropCause::QueueFull) => Fate::Full,
                other => panic!("{other:?}"),
            };
            prop_assert_eq!(fate, expected, "packet {}", number);
        }
        let got = link.drop_probability(end).unwrap();
        prop_assert!((got - probability).abs() < 1e-12, "{} and {}", got, probability);
    }
}
