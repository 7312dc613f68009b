//! The pure part in virtual time, against the links themselves.

use comity_emulator::{Lane, Release};
use comity_link::{
    AnalyticLink, CodelConfig, FqCodelConfig, Jitter, Limit, LinkConfig, Loss, LossModel,
    LossPlace, Outcome, Packet, PieConfig, Queue, QueuedLink,
};
use comity_units::{DataSize, Rate, Seed, Span, Time};
use proptest::prelude::*;

const PLENTY: DataSize = DataSize::new(1 << 30);

const fn packet(bytes: u32) -> Packet {
    Packet {
        bytes,
        ecn_capable: false,
        flow: 0,
    }
}

fn drain<T: Clone>(lane: &mut Lane<T>, until: Time) -> Vec<Release<T>> {
    std::iter::from_fn(|| lane.release(until)).collect()
}

#[test]
fn packets_leave_when_the_hand_worked_link_says() {
    // 1000 bytes at 8 Mb/s take 1 ms; then 20 ms of delay; the queue has room for two.
    let config = LinkConfig {
        queue: Queue::DropTail(Limit::Packets(2)),
        ..LinkConfig::new(Rate::from_mbps(8), Span::from_millis(20))
    };
    let mut lane = Lane::new(&config, Seed::new(1), PLENTY).unwrap();
    for name in ["a", "b", "c"] {
        lane.offer(Time::ZERO, packet(1_000), name);
    }
    lane.offer(Time::from_millis(1), packet(500), "d");
    assert_eq!(lane.next_due(), Some(Time::from_millis(21)));
    assert_eq!(
        lane.release(Time::from_nanos(20_999_999)),
        None,
        "too early"
    );
    let left: Vec<_> = drain(&mut lane, Time::from_secs(1))
        .into_iter()
        .map(|release| (release.item, release.due.as_nanos() / 1_000))
        .collect();
    assert_eq!(left, [("a", 21_000), ("b", 22_000), ("d", 22_500)]);
    let counts = lane.counts();
    assert_eq!(counts.arrived.packets, 4);
    assert_eq!(
        counts.dropped_full.packets, 1,
        "the queue was full when c arrived"
    );
    assert_eq!(counts.released.bytes, DataSize::new(2_500));
    assert_eq!(counts.held().packets, 0);
    assert_eq!(lane.held(), DataSize::ZERO);
    assert_eq!(lane.next_due(), None);
}

#[test]
fn late_news_count_from_the_last_moment_that_is_settled() {
    let config = LinkConfig::new(Rate::from_mbps(8), Span::ZERO);
    let mut lane = Lane::new(&config, Seed::new(1), PLENTY)
        .unwrap()
        .recording(2);
    lane.offer(Time::from_millis(5), packet(1_000), ());
    lane.offer(Time::from_millis(3), packet(1_000), ());
    let times: Vec<_> = lane.record().iter().map(|record| record.at).collect();
    assert_eq!(times, [Time::from_millis(5); 2]);
    assert_eq!(drain(&mut lane, Time::from_millis(7)).len(), 2);
}

#[test]
fn memory_is_bounded_whatever_comes() {
    let memory = DataSize::new(100_000);
    let still = LinkConfig::new(Rate::from_bps(1), Span::ZERO);
    let lossy = LinkConfig {
        losses: vec![Loss {
            model: LossModel::Bernoulli(1.0),
            place: LossPlace::AfterTransmission,
        }],
        queue: Queue::DropTail(Limit::Packets(1_000_000_000)),
        ..still.clone()
    };
    let codel = LinkConfig {
        queue: Queue::CoDel(CodelConfig {
            limit: Limit::Unlimited,
            ..CodelConfig::default()
        }),
        ..still.clone()
    };
    for config in [still, lossy, codel] {
        let mut lane = Lane::new(&config, Seed::new(1), memory).unwrap();
        for number in 0..10_000 {
            lane.offer(Time::from_nanos(number), packet(number as u32 % 1_500), ());
            assert!(lane.held() <= memory);
        }
        let counts = lane.counts();
        assert!(
            counts.dropped_memory.packets > 9_000,
            "{config:?}: {counts:?}"
        );
        assert!(
            counts.dropped_memory.packets < 10_000,
            "{config:?}: {counts:?}"
        );
    }
}

#[test]
fn what_can_never_arrive_stays_held_and_is_never_due() {
    let config = LinkConfig {
        rate: comity_link::RateProfile::Steps(vec![
            (Time::ZERO, Rate::from_mbps(8)),
            (Time::from_secs(1), Rate::ZERO),
        ]),
        ..LinkConfig::default()
    };
    let mut lane = Lane::new(&config, Seed::new(1), PLENTY).unwrap();
    lane.offer(Time::from_secs(2), packet(1_000), ());
    assert_eq!(lane.next_due(), None);
    assert_eq!(lane.release(Time::MAX), None);
    assert_eq!(lane.counts().held().packets, 1);
}

fn configs() -> impl Strategy<Value = LinkConfig> {
    let jitter = prop_oneof![
        Just(Jitter::None),
        any::<bool>().prop_map(|reorder| Jitter::Uniform {
            max: Span::from_millis(7),
            reorder,
        }),
        any::<bool>().prop_map(|reorder| Jitter::Exponential {
            mean: Span::from_millis(3),
            reorder,
        }),
    ];
    let queue = prop_oneof![
        Just(Queue::DropTail(Limit::Unlimited)),
        (1_u32..20).prop_map(|packets| Queue::DropTail(Limit::Packets(packets))),
        (1_u64..20_000).prop_map(|bytes| Queue::DropTail(Limit::Bytes(DataSize::new(bytes)))),
        Just(Queue::Red(comity_link::RedConfig::default())),
        Just(Queue::CoDel(CodelConfig::default())),
        (1_u32..20).prop_map(|packets| Queue::FqCodel(FqCodelConfig {
            limit: Limit::Packets(packets),
            ..FqCodelConfig::default()
        })),
        Just(Queue::Pie(PieConfig::default())),
    ];
    (
        100_u64..20_000,
        0_u64..50,
        queue,
        jitter,
        0.0..0.3_f64,
        0.0..0.3_f64,
    )
        .prop_map(
            |(kbps, delay, queue, jitter, loss, duplication)| LinkConfig {
                queue,
                jitter,
                duplication,
                losses: vec![
                    Loss {
                        model: LossModel::Bernoulli(loss),
                        place: LossPlace::AfterTransmission,
                    },
                    Loss {
                        model: LossModel::Bernoulli(loss / 3.0),
                        place: LossPlace::BeforeQueue,
                    },
                ],
                ..LinkConfig::new(Rate::from_kbps(kbps), Span::from_millis(delay))
            },
        )
}

/// The decisions of a bare link of `comity-link` on these packets. For each packet that arrives:
/// its number, its arrival, and whether it is a duplicate, in any order.
fn expected(config: &LinkConfig, seed: Seed, offers: &[(Time, u32)]) -> Vec<(usize, Time, bool)> {
    let mut outcomes: Vec<Option<Outcome>> = vec![None; offers.len()];
    if matches!(
        config.queue,
        Queue::CoDel(_) | Queue::FqCodel(_) | Queue::Pie(_)
    ) {
        let mut link = QueuedLink::new(config, seed).unwrap();
        for (number, &(at, bytes)) in offers.iter().enumerate() {
            if let Err(cause) = link.offer(at, packet(bytes), number) {
                outcomes[number] = Some(Outcome::Dropped(cause));
            }
        }
        while let Some(at) = link.next_wakeup() {
            while let Some(decision) = link.poll(at) {
                outcomes[decision.token] = Some(decision.outcome);
            }
        }
    } else {
        let mut link = AnalyticLink::new(config, seed).unwrap();
        for (number, &(at, bytes)) in offers.iter().enumerate() {
            outcomes[number] = Some(link.offer(at, packet(bytes)));
        }
    }
    let mut arrivals = Vec::new();
    for (number, outcome) in outcomes.into_iter().enumerate() {
        if let Outcome::Carried(passage) = outcome.expect("every fate is decided in the end") {
            arrivals.push((number, passage.arrival, false));
            arrivals.extend(passage.duplicate.map(|due| (number, due, true)));
        }
    }
    arrivals
}

proptest! {
    #[test]
    fn a_lane_is_its_link(
        config in configs(),
        seed in any::<u64>(),
        gaps in prop::collection::vec((0_u64..5_000_000, 40_u32..1_500), 1..200),
        looks in prop::collection::vec(0_u64..5_000_000, 200),
    ) {
        let seed = Seed::new(seed);
        let mut at = Time::ZERO;
        let offers: Vec<_> = gaps
            .iter()
            .map(|&(gap, bytes)| {
                at += Span::from_nanos(gap);
                (at, bytes)
            })
            .collect();
        let mut lane = Lane::new(&config, seed, PLENTY).unwrap().recording(usize::MAX);
        let mut releases = Vec::new();
        for (number, (&(at, bytes), &look)) in offers.iter().zip(&looks).enumerate() {
            lane.offer(at, packet(bytes), number);
            let next = offers.get(number + 1).map_or(Time::MAX, |&(at, _)| at);
            let now = (at + Span::from_nanos(look)).min(next);
            let released = drain(&mut lane, now);
            for release in &released {
                prop_assert!(release.due <= now, "released early");
            }
            releases.extend(released);
        }
        while let Some(due) = lane.next_due() {
            releases.extend(drain(&mut lane, due));
        }
        let mut found: Vec<_> = releases
            .iter()
            .map(|release| (release.item, release.due, release.is_copy))
            .collect();
        prop_assert!(found.is_sorted_by_key(|&(_, due, _)| due), "released out of turn");
        let mut expected = expected(&config, seed, &offers);
        found.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
        let counts = lane.counts();
        prop_assert_eq!(counts.held(), comity_emulator::Tally::default());
        prop_assert_eq!(counts.arrived.packets, offers.len() as u64);
        let originals = releases.iter().filter(|release| !release.is_copy).count();
        prop_assert_eq!(counts.released.packets, originals as u64);
        prop_assert_eq!(counts.copies.packets, (releases.len() - originals) as u64);
        prop_assert_eq!(lane.held(), DataSize::ZERO);
    }
}
