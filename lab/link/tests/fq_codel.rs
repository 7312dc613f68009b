//! FQ-CoDel against a literal RFC 8290, and its guarantees: equal shares, sparse flows first.

use std::collections::{BTreeMap, VecDeque};

use comity_link::{
    AnalyticLink, ConfigError, DropCause, FqCodelConfig, Limit, LinkConfig, Loss, LossModel,
    LossPlace, Outcome, Packet, Queue, QueuedLink,
};
use comity_units::{DataSize, Rate, Seed, Span, Time};
use proptest::prelude::*;

/// 4 Mb/s: a byte takes 2,000 ns.
const NANOS_PER_BYTE: u64 = 2_000;

fn config(queue: Queue) -> LinkConfig {
    LinkConfig {
        queue,
        ..LinkConfig::new(Rate::from_mbps(4), Span::ZERO)
    }
}

fn link(fq_codel: FqCodelConfig) -> QueuedLink<usize> {
    QueuedLink::new(&config(Queue::FqCodel(fq_codel)), Seed::new(3)).unwrap()
}

const fn packet(flow: u64, bytes: u32) -> Packet {
    Packet {
        bytes,
        ecn_capable: false,
        flow,
    }
}

/// The decisions for a host, by packet number.
fn run(link: &mut QueuedLink<usize>, offers: &[(Time, Packet)]) -> Vec<Outcome> {
    let mut outcomes = vec![None; offers.len()];
    let mut set = |token: usize, outcome: Outcome| {
        assert_eq!(
            outcomes[token].replace(outcome),
            None,
            "packet {token} came back twice"
        );
    };
    for (token, &(now, packet)) in offers.iter().enumerate() {
        if let Err(cause) = link.offer(now, packet, token) {
            set(token, Outcome::Dropped(cause));
        }
    }
    while let Some(wakeup) = link.next_wakeup() {
        while let Some(decision) = link.poll(wakeup) {
            set(decision.token, decision.outcome);
        }
    }
    assert_eq!(link.backlog(Time::MAX).packets, Some(0));
    outcomes
        .into_iter()
        .map(|outcome| outcome.expect("a packet did not come back"))
        .collect()
}

/// Greedy senders, each with packets of one size at one rate.
fn constant_rates(senders: &[(u64, u32)], length: Span) -> Vec<(Time, Packet)> {
    let mut offers = Vec::new();
    for (flow, &(kbps, bytes)) in (0..).zip(senders) {
        let gap = u64::from(bytes) * 8_000_000 / kbps;
        let count = length.as_nanos() / gap;
        offers.extend((0..count).map(|k| (Time::from_nanos(k * gap + flow), packet(flow, bytes))));
    }
    offers.sort_by_key(|(at, _)| *at);
    offers
}

/// The bytes of each flow that left in the last third of the run.
fn late_bytes(offers: &[(Time, Packet)], outcomes: &[Outcome], length: Span) -> BTreeMap<u64, u64> {
    let watched = Time::ZERO + length / 3 * 2..Time::ZERO + length;
    let mut bytes = BTreeMap::new();
    for ((_, packet), outcome) in offers.iter().zip(outcomes) {
        if let Outcome::Carried(passage) = outcome
            && watched.contains(&passage.departure)
        {
            *bytes.entry(packet.flow).or_default() += u64::from(packet.bytes);
        }
    }
    bytes
}

#[test]
fn greedy_senders_of_different_rates_and_sizes_get_equal_shares() {
    let length = Span::from_secs(15);
    let senders = [
        (1_500, 1_500),
        (3_000, 300),
        (6_000, 1_000),
        (20_000, 1_500),
    ];
    let offers = constant_rates(&senders, length);
    let outcomes = run(&mut link(FqCodelConfig::default()), &offers);
    let shares = late_bytes(&offers, &outcomes, length);
    // A quarter of 4 Mb/s over 5 s; a quantum is 0.2 % of that.
    for (flow, bytes) in &shares {
        assert!(
            (*bytes as f64 / 625_000.0 - 1.0).abs() < 0.01,
            "{flow}: {shares:?}"
        );
    }
    assert_eq!(shares.len(), 4);

    // A drop-tail queue shares in proportion to the arrival rates instead.
    let drop_tail = config(Queue::DropTail(Limit::Packets(100)));
    let outcomes = run(
        &mut QueuedLink::new(&drop_tail, Seed::new(3)).unwrap(),
        &offers,
    );
    let shares = late_bytes(&offers, &outcomes, length);
    assert!(shares[&3] > 5 * shares[&0], "{shares:?}");
}

#[test]
fn two_flows_in_one_queue_share_its_turn() {
    let hash = Seed::new(3).derive("fq_codel");
    let is_in =
        |queue: u128| move |flow: &u64| (u128::from(hash.index(*flow).get()) * 2) >> 64 == queue;
    let together: Vec<u64> = (0..100).filter(is_in(0)).take(2).collect();
    let alone: Vec<u64> = (0..100).filter(is_in(1)).take(1).collect();
    let flows = [together[0], together[1], alone[0]];

    let length = Span::from_secs(15);
    let mut offers = constant_rates(&[(6_000, 1_000); 3], length);
    for (_, packet) in &mut offers {
        packet.flow = flows[packet.flow as usize];
    }
    let fq_codel = FqCodelConfig {
        queues: 2,
        ..FqCodelConfig::default()
    };
    let outcomes = run(&mut link(fq_codel), &offers);
    let shares = late_bytes(&offers, &outcomes, length);
    let total: u64 = shares.values().sum();
    let share = shares[&alone[0]] as f64 / total as f64;
    assert!((share - 0.5).abs() < 0.01, "{share}");
}

/// Five greedy flows, and three sparse ones that send 500 B each at one instant, every 50 ms. A
/// sparse packet waits for the packet in transmission, at most 1,500 B, and for the other new
/// flows, which have less than a quantum: 500 B each.
#[test]
fn sparse_flows_wait_for_other_new_flows_only() {
    let length = Span::from_secs(5);
    let mut offers = constant_rates(&[(4_000, 1_500); 5], length);
    for burst in 1..100 {
        let at = Time::from_millis(50 * burst);
        offers.extend((10..13).map(|flow| (at, packet(flow, 500))));
    }
    offers.sort_by_key(|(at, _)| *at);
    let waits = |outcomes: Vec<Outcome>| -> Vec<u64> {
        let sparse = offers
            .iter()
            .zip(outcomes)
            .filter(|((_, packet), _)| packet.flow >= 10);
        sparse
            .map(|((at, _), outcome)| match outcome {
                Outcome::Carried(passage) => passage.start.since(*at).unwrap().as_nanos(),
                other => panic!("{other:?}"),
            })
            .collect()
    };
    let waits = waits(run(&mut link(FqCodelConfig::default()), &offers));
    assert_eq!(waits.len(), 297);
    let bound = (1_500 + 2 * 500) * NANOS_PER_BYTE;
    let longest = *waits.iter().max().unwrap();
    assert!(longest <= bound, "{longest} ns, at most {bound}");
    assert!(longest > bound / 2, "{longest} ns: nothing was tested");
}

/// Eight packets of flow 0 and three of flow 1 at once, with room for ten. The last makes eleven.
/// Flow 0 has one packet in transmission and seven waiting. It loses half of its 7,000 B, which are
/// four packets.
#[test]
fn the_longest_queue_makes_room_from_its_head() {
    let offers: Vec<(Time, Packet)> = [0; 8]
        .into_iter()
        .chain([1; 3])
        .map(|flow| (Time::from_millis(1), packet(flow, 1_000)))
        .collect();
    for (drop_batch, victims) in [(64, vec![1, 2, 3, 4]), (3, vec![1, 2, 3]), (1, vec![1])] {
        let mut link = link(FqCodelConfig {
            limit: Limit::Packets(10),
            drop_batch,
            ..FqCodelConfig::default()
        });
        for (token, &(at, packet)) in offers.iter().enumerate() {
            assert_eq!(link.offer(at, packet, token), Ok(()));
        }
        // They are returned at once.
        let now = Time::from_millis(1);
        assert_eq!(link.next_wakeup(), Some(now));
        let mut dropped = Vec::new();
        while let Some(decision) = link.poll(now) {
            assert_eq!(decision.outcome, Outcome::Dropped(DropCause::QueueFull));
            dropped.push(decision.token);
        }
        assert_eq!(dropped, victims, "batches of {drop_batch}");
        assert_eq!(link.backlog(now).packets, Some(11 - dropped.len() as u32));
        assert_eq!(link.next_wakeup(), Some(Time::from_millis(3)));
    }
}

#[test]
fn a_packet_larger_than_the_limit_is_refused_and_costs_nobody_anything() {
    let mut link = link(FqCodelConfig {
        limit: Limit::Bytes(DataSize::new(3_000)),
        ..FqCodelConfig::default()
    });
    assert_eq!(link.offer(Time::ZERO, packet(0, 1_000), 0), Ok(()));
    assert_eq!(link.offer(Time::ZERO, packet(0, 1_000), 1), Ok(()));
    let refused = link.offer(Time::ZERO, packet(1, 3_001), 2);
    assert_eq!(refused, Err(DropCause::QueueFull));
    assert_eq!(link.backlog(Time::ZERO).packets, Some(2));
    assert_eq!(link.poll(Time::ZERO), None);
}

#[test]
fn ecn_capable_senders_lose_nothing_to_codel() {
    let length = Span::from_secs(5);
    let mut offers = constant_rates(&[(3_000, 1_000), (3_000, 1_000)], length);
    for (_, packet) in &mut offers {
        packet.ecn_capable = packet.flow == 0;
    }
    let count = |ecn: bool, flow: u64| {
        let fq_codel = FqCodelConfig {
            ecn,
            ..FqCodelConfig::default()
        };
        let outcomes = run(&mut link(fq_codel), &offers);
        let mut counts = (0, 0);
        for ((_, packet), outcome) in offers.iter().zip(outcomes) {
            match outcome {
                _ if packet.flow != flow => {}
                Outcome::Carried(passage) => counts.0 += u32::from(passage.marked),
                Outcome::Dropped(DropCause::EarlyDrop) => counts.1 += 1,
                other => panic!("{other:?}"),
            }
        }
        counts
    };
    let (marked, dropped) = count(true, 0);
    assert!(
        marked > 50 && dropped == 0,
        "{marked} marked, {dropped} dropped"
    );
    let (marked, dropped) = count(true, 1);
    assert!(
        marked == 0 && dropped > 50,
        "{marked} marked, {dropped} dropped"
    );
    let (marked, dropped) = count(false, 0);
    assert!(
        marked == 0 && dropped > 50,
        "{marked} marked, {dropped} dropped"
    );
}

/// Listed packets are lost although another flow overtakes them.
#[test]
fn listed_packets_are_lost_out_of_order() {
    let lossy = LinkConfig {
        losses: vec![Loss {
            model: LossModel::Packets(vec![2, 4]),
            place: LossPlace::AfterTransmission,
        }],
        ..config(Queue::FqCodel(FqCodelConfig::default()))
    };
    // Packet 4, of a new flow, leaves before packet 2.
    let offers = [0, 0, 0, 0, 1].map(|flow| (Time::from_millis(1), packet(flow, 1_500)));
    let outcomes = run(&mut QueuedLink::new(&lossy, Seed::new(3)).unwrap(), &offers);
    let lost: Vec<(usize, Time)> = (0..)
        .zip(&outcomes)
        .filter_map(|(number, outcome)| match outcome {
            Outcome::Lost { start, .. } => Some((number, *start)),
            _ => None,
        })
        .collect();
    assert_eq!(lost.len(), 2);
    assert_eq!((lost[0].0, lost[1].0), (2, 4));
    assert!(lost[1].1 < lost[0].1);
}

#[test]
fn an_analytic_link_refuses_and_names_the_alternative() {
    let queue = Queue::FqCodel(FqCodelConfig::default());
    let error = AnalyticLink::new(&config(queue), Seed::new(0)).unwrap_err();
    assert_eq!(error, ConfigError::NeedsQueuedLink);
    assert!(error.to_string().contains("queued link"), "{error}");
}

/// The scheduler of RFC 8290 and the CoDel of RFC 8289 literally: one map of queues, lists as plain
/// vectors, every count computed on demand.
struct Literal {
    config: FqCodelConfig,
    hash: Seed,
    queues: BTreeMap<u128, LiteralQueue>,
    new_queues: Vec<u128>,
    old_queues: Vec<u128>,
    in_service: Option<u32>,
    fates: Vec<Option<Fate>>,
}

#[derive(Default)]
struct LiteralQueue {
    packets: VecDeque<(usize, u64, u32)>,
    deficit: i64,
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Early,
    Full,
    Sent(u64),
}

impl Literal {
    fn limit(&self) -> u64 {
        match self.config.limit {
            Limit::Packets(limit) => limit.into(),
            Limit::Bytes(limit) => limit.get(),
            Limit::Unlimited => u64::MAX,
        }
    }

    /// The quantity under the limit.
    fn size(&self, bytes: u32) -> u64 {
        match self.config.limit {
            Limit::Bytes(_) => bytes.into(),
            Limit::Packets(_) | Limit::Unlimited => 1,
        }
    }

    fn waiting(&self) -> impl Iterator<Item = u32> {
        let queues = self.queues.values();
        queues.flat_map(|queue| queue.packets.iter().map(|packet| packet.2))
    }

    fn enqueue(&mut self, now: u64, number: usize, packet: Packet) {
        if self.size(packet.bytes) > self.limit() {
            self.fates[number] = Some(Fate::Full);
            return;
        }
        let hash = u128::from(self.hash.index(packet.flow).get());
        let index = (hash * u128::from(self.config.queues)) >> 64;
        let queue = self.queues.entry(index).or_default();
        queue.packets.push_back((number, now, packet.bytes));
        if !self.new_queues.contains(&index) && !self.old_queues.contains(&index) {
            self.new_queues.push(index);
            queue.deficit = self.config.quantum.get() as i64;
        }
        let held = |all: &Self| -> u64 {
            let packets = all.waiting().chain(all.in_service);
            packets.map(|bytes| all.size(bytes)).sum()
        };
        while held(self) > self.limit() {
            let bytes = |queue: &LiteralQueue| -> u64 {
                queue.packets.iter().map(|packet| u64::from(packet.2)).sum()
            };
            let most = self.queues.values().map(bytes).max().unwrap();
            let mut queues = self.queues.values_mut();
            let fat = queues.find(|queue| bytes(queue) == most).unwrap();
            let mut gone = 0;
            for _ in 0..self.config.drop_batch {
                let (number, _, bytes) = fat.packets.pop_front().unwrap();
                self.fates[number] = Some(Fate::Full);
                gone += u64::from(bytes);
                fat.count += 1;
                if gone >= most / 2 {
                    break;
                }
            }
        }
    }

    fn dequeue(&mut self, now: u64) -> Option<(usize, u32)> {
        loop {
            let is_new = !self.new_queues.is_empty();
            let list = if is_new {
                &mut self.new_queues
            } else {
                &mut self.old_queues
            };
            let index = *list.first()?;
            let queue = self.queues.get_mut(&index).unwrap();
            if queue.deficit <= 0 {
                queue.deficit += self.config.quantum.get() as i64;
                list.remove(0);
                self.old_queues.push(index);
                continue;
            }
            match self.codel(index, now) {
                Some((number, _, bytes)) => {
                    self.queues.get_mut(&index).unwrap().deficit -= i64::from(bytes);
                    return Some((number, bytes));
                }
                None if is_new => {
                    self.new_queues.remove(0);
                    self.old_queues.push(index);
                }
                None => {
                    self.old_queues.remove(0);
                }
            }
        }
    }

    fn dodequeue(&mut self, index: u128, now: u64) -> (Option<(usize, u64, u32)>, bool) {
        let (target, interval) = (
            self.config.target.as_nanos(),
            self.config.interval.as_nanos(),
        );
        let Some(packet) = self.queues.get_mut(&index).unwrap().packets.pop_front() else {
            self.queues.get_mut(&index).unwrap().first_above_time = 0;
            return (None, false);
        };
        let backlog: u64 = self.waiting().map(u64::from).sum();
        let queue = self.queues.get_mut(&index).unwrap();
        let mut ok_to_drop = false;
        if now - packet.1 < target || backlog <= self.config.mtu.get() {
            queue.first_above_time = 0;
        } else if queue.first_above_time == 0 {
            queue.first_above_time = now + interval;
        } else if now >= queue.first_above_time {
            ok_to_drop = true;
        }
        (Some(packet), ok_to_drop)
    }

    fn control_law(&self, t: u64, count: u32) -> u64 {
        t + (self.config.interval.as_nanos() as f64 / f64::from(count).sqrt()) as u64
    }

    fn codel(&mut self, index: u128, now: u64) -> Option<(usize, u64, u32)> {
        let (mut packet, mut ok_to_drop) = self.dodequeue(index, now);
        if self.queues[&index].dropping {
            if !ok_to_drop {
                self.queues.get_mut(&index).unwrap().dropping = false;
            }
            while self.queues[&index].dropping && now >= self.queues[&index].drop_next {
                self.fates[packet.unwrap().0] = Some(Fate::Early);
                self.queues.get_mut(&index).unwrap().count += 1;
                (packet, ok_to_drop) = self.dodequeue(index, now);
                let next =
                    self.control_law(self.queues[&index].drop_next, self.queues[&index].count);
                let queue = self.queues.get_mut(&index).unwrap();
                if ok_to_drop {
                    queue.drop_next = next;
                } else {
                    queue.dropping = false;
                }
            }
        } else if ok_to_drop {
            self.fates[packet.unwrap().0] = Some(Fate::Early);
            (packet, _) = self.dodequeue(index, now);
            let interval = self.config.interval.as_nanos();
            let queue = self.queues.get_mut(&index).unwrap();
            queue.dropping = true;
            let delta = queue.count - queue.lastcount;
            queue.count = 1;
            if delta > 1 && now.saturating_sub(queue.drop_next) < 16 * interval {
                queue.count = delta;
            }
            queue.lastcount = queue.count;
            let next = self.control_law(now, self.queues[&index].count);
            self.queues.get_mut(&index).unwrap().drop_next = next;
        }
        packet
    }

    /// A departure comes before an offer at the same time.
    fn run(mut self, offers: &[(Time, Packet)]) -> Vec<Fate> {
        let mut free_at = 0;
        let mut offers = (0..).zip(offers).peekable();
        loop {
            let now = if self.in_service.is_some() {
                while let Some((number, (at, packet))) =
                    offers.next_if(|(_, (at, _))| at.as_nanos() < free_at)
                {
                    self.enqueue(at.as_nanos(), number, *packet);
                }
                self.in_service = None;
                free_at
            } else if let Some((number, (at, packet))) = offers.next() {
                self.enqueue(at.as_nanos(), number, *packet);
                at.as_nanos()
            } else {
                break;
            };
            if let Some((number, bytes)) = self.dequeue(now) {
                self.fates[number] = Some(Fate::Sent(now));
                self.in_service = Some(bytes);
                free_at = now + u64::from(bytes) * NANOS_PER_BYTE;
            }
        }
        self.fates.into_iter().map(Option::unwrap).collect()
    }
}

/// Loads that rise and fall around the rate of the link, each phase of one flow among others.
fn offers() -> impl Strategy<Value = Vec<(Time, Packet)>> {
    let phase = (
        0..3_000_000_u64,
        300_000..6_000_000_u64,
        1..300_usize,
        100..1_600_u32,
        0..6_u64,
    );
    prop::collection::vec(phase, 1..10).prop_map(|phases| {
        let mut offers = Vec::new();
        let mut begin = 1;
        for (later, gap, count, bytes, flow) in phases {
            begin += later * 100;
            offers.extend(
                (0..count as u64).map(|k| (Time::from_nanos(begin + k * gap), packet(flow, bytes))),
            );
        }
        offers.sort_by_key(|(at, _)| *at);
        offers
    })
}

fn configs() -> impl Strategy<Value = FqCodelConfig> {
    let limit = prop_oneof![
        Just(Limit::Unlimited),
        (1_u32..60).prop_map(Limit::Packets),
        (1_000_u64..60_000).prop_map(|bytes| Limit::Bytes(DataSize::new(bytes))),
    ];
    (
        limit,
        1_u64..20,
        20_u64..200,
        1_u32..8,
        50_u64..4_000,
        1_u32..70,
    )
        .prop_map(
            |(limit, target, interval, queues, quantum, drop_batch)| FqCodelConfig {
                target: Span::from_millis(target),
                interval: Span::from_millis(interval),
                limit,
                ecn: false,
                mtu: DataSize::new(1_500),
                queues,
                quantum: DataSize::new(quantum),
                drop_batch,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn agrees_with_the_literal_reading(fq_codel in configs(), offers in offers(), seed: u64) {
        let seed = Seed::new(seed);
        let literal = Literal {
            config: fq_codel.clone(),
            hash: seed.derive("fq_codel"),
            queues: BTreeMap::new(),
            new_queues: Vec::new(),
            old_queues: Vec::new(),
            in_service: None,
            fates: vec![None; offers.len()],
        };
        let expected = literal.run(&offers);
        let mut link = QueuedLink::new(&config(Queue::FqCodel(fq_codel)), seed).unwrap();
        let outcomes = run(&mut link, &offers);
        let mut last: BTreeMap<u64, Time> = BTreeMap::new();
        for (number, (outcome, expected)) in outcomes.iter().zip(expected).enumerate() {
            let fate = match outcome {
                Outcome::Carried(passage) => Fate::Sent(passage.start.as_nanos()),
                Outcome::Dropped(DropCause::EarlyDrop) => Fate::Early,
                Outcome::Dropped(DropCause::QueueFull) => Fate::Full,
                other => panic!("{other:?}"),
            };
            prop_assert_eq!(fate, expected, "packet {} of {:?}", number, offers[number].1);
            // The packets of one flow stay in order.
            if let Outcome::Carried(passage) = outcome {
                let last = last.entry(offers[number].1.flow).or_default();
                prop_assert!(*last <= passage.start);
                *last = passage.departure;
            }
        }
    }
}
