//! Loss models, jitter and duplication: statistics within stated bounds, and exact properties.

use comity_link::{
    AnalyticLink, DropCause, Jitter, Limit, LinkConfig, LinkSeed, Loss, LossModel, LossPlace,
    Outcome, Packet, Passage, Queue, QueuedLink, Random,
};
use comity_units::{DataSize, Rate, Seed, Span, Time};
use proptest::prelude::*;

const PACKET: Packet = Packet {
    bytes: 125,
    ecn_capable: false,
    flow: 0,
};

/// 1 Gb/s: a packet takes 1 us.
fn config(losses: Vec<Loss>) -> LinkConfig {
    LinkConfig {
        losses,
        ..LinkConfig::new(Rate::from_mbps(1_000), Span::from_millis(1))
    }
}

fn before(model: LossModel) -> Loss {
    Loss {
        model,
        place: LossPlace::BeforeQueue,
    }
}

fn after(model: LossModel) -> Loss {
    Loss {
        model,
        place: LossPlace::AfterTransmission,
    }
}

/// The outcomes of packets offered at a constant interval.
fn outcomes(
    config: &LinkConfig,
    seed: impl Into<LinkSeed>,
    count: u64,
    apart: Span,
) -> Vec<Outcome> {
    let mut link = AnalyticLink::new(config, seed).unwrap();
    (0..count)
        .map(|number| link.offer(Time::ZERO + apart * number, PACKET))
        .collect()
}

const fn is_loss(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Dropped(DropCause::Loss)
            | Outcome::Lost {
                cause: DropCause::Loss,
                ..
            }
    )
}

fn share(outcomes: &[Outcome]) -> f64 {
    outcomes.iter().filter(|outcome| is_loss(outcome)).count() as f64 / outcomes.len() as f64
}

/// Within four standard errors of a share of n independent packets, √(p·(1 − p)/n).
#[test]
fn independent_losses_have_their_share() {
    const COUNT: u64 = 400_000;
    for (p, seed) in [(0.001, 1), (0.02, 2), (0.5, 3)] {
        for loss in [
            before(LossModel::Bernoulli(p)),
            after(LossModel::Bernoulli(p)),
        ] {
            let got = share(&outcomes(
                &config(vec![loss]),
                Seed::new(seed),
                COUNT,
                Span::ZERO,
            ));
            let error = (p * (1.0 - p) / COUNT as f64).sqrt();
            assert!((got - p).abs() < 4.0 * error, "{p}: {got}");
        }
    }
}

/// The stationary share of the bad state is g/(g + b). Successive packets are correlated by λ = 1 −
/// g − b, which widens the standard error of the share by √((1 + λ)/(1 − λ)). A burst (a stay in a
/// bad state that loses everything) is geometric with mean 1/b and standard deviation √(1 − b)/b.
#[test]
fn gilbert_elliott_has_its_share_and_its_bursts() {
    const COUNT: u64 = 1_000_000;
    for (g, b, seed) in [(0.01, 0.25, 4), (0.05, 0.5, 5), (0.002, 0.1, 6)] {
        let model = LossModel::GilbertElliott {
            p_good_to_bad: g,
            p_bad_to_good: b,
            loss_good: 0.0,
            loss_bad: 1.0,
        };
        let got = outcomes(
            &config(vec![before(model)]),
            Seed::new(seed),
            COUNT,
            Span::ZERO,
        );
        let bad = g / (g + b);
        let lambda: f64 = 1.0 - g - b;
        let widening = ((1.0 + lambda) / (1.0 - lambda)).sqrt();
        let error = (bad * (1.0 - bad) / COUNT as f64).sqrt() * widening;
        let losses = share(&got);
        assert!(
            (losses - bad).abs() < 4.0 * error,
            "{g} {b}: share {losses}, not {bad}"
        );
        assert!(error < 0.05 * bad, "the bound is meaningless");

        let lost: Vec<bool> = got.iter().map(is_loss).collect();
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        let length = lost.iter().filter(|lost| **lost).count() as f64 / bursts;
        let error = (1.0 - b).sqrt() / b / bursts.sqrt();
        assert!(
            (length - 1.0 / b).abs() < 4.0 * error,
            "{g} {b}: bursts of {length}"
        );
    }
}

/// Losses in both states: π_good · loss_good + π_bad · loss_bad.
#[test]
fn gilbert_elliott_loses_in_both_states() {
    let model = LossModel::GilbertElliott {
        p_good_to_bad: 0.3,
        p_bad_to_good: 0.2,
        loss_good: 0.1,
        loss_bad: 0.6,
    };
    let got = share(&outcomes(
        &config(vec![before(model)]),
        Seed::new(7),
        500_000,
        Span::ZERO,
    ));
    // 0.4 · 0.1 + 0.6 · 0.6 = 0.4. The correlation λ = 0.5 of the states at most triples the
    // variance.
    let bound = 4.0 * (0.4 * 0.6 * 3.0 / 500_000_f64).sqrt();
    assert!((got - 0.4).abs() < bound, "{got}");
}

/// The share of on time over a run of length T has the standard deviation √(2·π_on·π_off /
/// ((1/m_on + 1/m_off)·T)); the number of losses in it is that share times the drop rate.
#[test]
fn on_and_off_have_their_shares_of_time() {
    const COUNT: u64 = 1_000_000;
    let apart = Span::from_micros(500);
    for (on, off, drop_on, seed) in [(1.0, 1.0, 1.0, 8), (0.05, 0.2, 1.0, 9), (1.0, 1.0, 0.3, 10)] {
        let model = LossModel::OnOff {
            mean_on: Span::from_secs_f64(on),
            mean_off: Span::from_secs_f64(off),
            drop_on,
            drop_off: 0.0,
            start_on: false,
            shared: None,
        };
        for loss in [before(model.clone()), after(model)] {
            let got = share(&outcomes(
                &config(vec![loss]),
                Seed::new(seed),
                COUNT,
                apart,
            ));
            let expected = on / (on + off);
            let time = apart.as_secs_f64() * COUNT as f64;
            let stddev =
                (2.0 * expected * (1.0 - expected) / ((1.0 / on + 1.0 / off) * time)).sqrt();
            let bound = 4.0 * drop_on * stddev + 4.0 * (0.25 / COUNT as f64).sqrt();
            assert!(
                (got - drop_on * expected).abs() < bound,
                "{on} {off}: {got}"
            );
            assert!(bound < 0.3 * drop_on * expected, "the bound is meaningless");
        }
    }
}

/// On/off losses with both means one second, of a process that both directions share or not.
fn phases(drop_on: f64, shared: Option<u32>) -> LinkConfig {
    config(vec![before(LossModel::OnOff {
        mean_on: Span::from_secs(1),
        mean_off: Span::from_secs(1),
        drop_on,
        drop_off: 0.0,
        start_on: true,
        shared,
    })])
}

/// The seeds of both directions of a pair of links.
fn both_ways(run: Seed) -> [LinkSeed; 2] {
    let pair = run.derive("forward");
    [pair, run.derive("reverse")].map(|own| LinkSeed { own, pair })
}

/// The share of on time has the standard deviation of the test above. A packet is lost while on by
/// a draw of its own direction: both packets of one instant are lost with p² of the shared on time,
/// and with the square of p times the share if each direction has states of its own.
#[test]
fn both_directions_lose_their_share_in_the_same_phases() {
    const COUNT: u64 = 400_000;
    let apart = Span::from_millis(10);
    let seconds = apart.as_secs_f64() * COUNT as f64;
    let stddev = (0.5 * 0.5 * 2.0 / (2.0 * seconds)).sqrt();
    for p in [1.0, 0.5] {
        for (shared, expected) in [(Some(0), p * p / 2.0), (None, p * p / 4.0)] {
            let config = phases(p, shared);
            let [forward, reverse] =
                both_ways(Seed::new(15)).map(|seed| outcomes(&config, seed, COUNT, apart));
            let bound = 4.0 * p * stddev + 4.0 * (0.25 / COUNT as f64).sqrt();
            for got in [share(&forward), share(&reverse)] {
                assert!((got - p / 2.0).abs() < bound, "{p} {shared:?}: {got}");
            }
            let pairs = forward.iter().zip(&reverse);
            let both = pairs.filter(|(a, b)| is_loss(a) && is_loss(b)).count();
            let both = both as f64 / COUNT as f64;
            assert!((both - expected).abs() < bound, "{p} {shared:?}: {both}");
            assert!(bound < p * p / 8.0, "the bound is meaningless");
        }
    }
}

/// The process of the forward direction is the same with and without a direction to share it with.
#[test]
fn sharing_changes_nothing_in_the_forward_direction() {
    let [forward, _] = both_ways(Seed::new(16));
    let of = |shared| outcomes(&phases(0.4, shared), forward, 20_000, Span::from_millis(5));
    assert_eq!(of(Some(0)), of(None));
    assert_ne!(of(Some(1)), of(None), "another process");
}

/// Numbers count every offered packet, also those that the queue refuses.
#[test]
fn a_list_names_offered_packets() {
    let config = LinkConfig {
        queue: Queue::DropTail(Limit::Packets(2)),
        ..config(vec![
            before(LossModel::Packets(vec![1])),
            after(LossModel::Packets(vec![5, 3, 2])),
        ])
    };
    // All at once: 0 enters, 1 is lost before the queue, 2 enters and is lost on the wire, 3 and 4
    // find the queue full. After 2 us the link is free for 5 and 6.
    let mut link = AnalyticLink::new(&config, Seed::new(0)).unwrap();
    let at = |micros| Time::from_micros(micros);
    let got: Vec<Outcome> = [0, 0, 0, 0, 0, 2, 2]
        .iter()
        .map(|&now| link.offer(at(now), PACKET))
        .collect();
    assert!(matches!(got[0], Outcome::Carried(_)));
    assert_eq!(got[1], Outcome::Dropped(DropCause::Loss));
    let lost = |start, end| Outcome::Lost {
        start: at(start),
        departure: at(end),
        cause: DropCause::Loss,
    };
    assert_eq!(got[2], lost(1, 2), "a loss on the wire uses the link");
    assert_eq!(
        got[3],
        Outcome::Dropped(DropCause::QueueFull),
        "listed, but never on the wire"
    );
    assert_eq!(got[4], Outcome::Dropped(DropCause::QueueFull));
    assert_eq!(got[5], lost(2, 3));
    assert!(matches!(got[6], Outcome::Carried(_)));
}

#[test]
fn another_model_leaves_the_streams_of_the_first_unchanged() {
    let bernoulli = before(LossModel::Bernoulli(0.1));
    let alone = outcomes(
        &config(vec![bernoulli.clone()]),
        Seed::new(11),
        10_000,
        Span::ZERO,
    );
    let both = config(vec![bernoulli, before(LossModel::Bernoulli(0.1))]);
    let both = outcomes(&both, Seed::new(11), 10_000, Span::ZERO);
    assert!(
        alone
            .iter()
            .zip(&both)
            .all(|(alone, both)| !is_loss(alone) || is_loss(both))
    );
    let added = share(&both) - share(&alone);
    // The second hits a tenth of the nine tenths that the first spares.
    assert!(
        (added - 0.09).abs() < 4.0 * (0.09_f64 * 0.91 / 10_000.0).sqrt(),
        "{added}"
    );
}

#[test]
fn one_seed_gives_one_run_and_names_are_independent() {
    let model = LossModel::Bernoulli(0.5);
    let config = LinkConfig {
        jitter: Jitter::Normal {
            mean: Span::from_millis(1),
            stddev: Span::from_millis(1),
            reorder: true,
        },
        duplication: 0.3,
        ..config(vec![before(model.clone()), after(model)])
    };
    let run = Seed::new(12);
    let of = |name| outcomes(&config, run.derive(name), 20_000, Span::from_micros(10));
    assert_eq!(of("link/a"), of("link/a"));
    // Two independent coins agree half of the time: standard error 1/(2·√n) = 0.0035.
    let (a, b) = (of("link/a"), of("link/b"));
    let agree = a
        .iter()
        .zip(&b)
        .filter(|(a, b)| is_loss(a) == is_loss(b))
        .count();
    // Lost with 3/4: agreement 9/16 + 1/16.
    let agree = agree as f64 / 20_000.0;
    assert!(
        (agree - 0.625).abs() < 4.0 * (0.625_f64 * 0.375 / 20_000.0).sqrt(),
        "{agree}"
    );
}

fn passages(outcomes: &[Outcome]) -> Vec<Passage> {
    outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Carried(passage) => Some(*passage),
            _ => None,
        })
        .collect()
}

/// Extra delays have the mean of their distribution, within four standard errors.
#[test]
fn jitter_has_its_mean() {
    const COUNT: u64 = 200_000;
    let ms = Span::from_millis;
    // A normal draw truncated at zero, mean 2 and standard deviation 1: 2·Φ(2) + φ(2) = 2.00849.
    // A half-normal draw of standard deviation 2 and at most 2:
    // 2·2·( φ(0) − φ(1) ) + 2·2·( 1 − Φ(1) ) = 1.26251, and its variance is 0.470.
    for (jitter, mean, stddev) in [
        (
            Jitter::Uniform {
                max: ms(6),
                reorder: true,
            },
            3.0,
            6.0 / 12_f64.sqrt(),
        ),
        (
            Jitter::Exponential {
                mean: ms(2),
                reorder: true,
            },
            2.0,
            2.0,
        ),
        (
            Jitter::Normal {
                mean: ms(2),
                stddev: ms(1),
                reorder: true,
            },
            2.00849,
            1.0,
        ),
        (
            Jitter::HalfNormal {
                stddev: ms(2),
                max: ms(2),
                reorder: true,
            },
            1.26251,
            0.686,
        ),
    ] {
        let config = LinkConfig {
            jitter,
            ..config(vec![])
        };
        let passages = passages(&outcomes(
            &config,
            Seed::new(13),
            COUNT,
            Span::from_micros(1),
        ));
        let extra = |passage: &Passage| {
            let propagated = passage.departure + Span::from_millis(1);
            passage
                .arrival
                .since(propagated)
                .expect("jitter only delays")
                .as_secs_f64()
                * 1e3
        };
        let got = passages.iter().map(extra).sum::<f64>() / COUNT as f64;
        assert!(
            (got - mean).abs() < 4.0 * stddev / (COUNT as f64).sqrt(),
            "{jitter:?}: {got}"
        );
        let overtaken = passages
            .windows(2)
            .filter(|pair| pair[1].arrival < pair[0].arrival)
            .count();
        assert!(overtaken > 50_000, "{jitter:?}: {overtaken}");
    }
}

#[test]
fn duplicates_are_as_frequent_as_configured_and_never_first() {
    let jitter = Jitter::Uniform {
        max: Span::from_millis(1),
        reorder: true,
    };
    let config = LinkConfig {
        jitter,
        duplication: 0.25,
        ..config(vec![])
    };
    assert!(
        !AnalyticLink::new(&config, Seed::new(0))
            .unwrap()
            .keeps_order()
    );
    let passages = passages(&outcomes(
        &config,
        Seed::new(14),
        100_000,
        Span::from_micros(1),
    ));
    let copies: Vec<_> = passages
        .iter()
        .filter(|passage| passage.duplicate.is_some())
        .collect();
    let share = copies.len() as f64 / 100_000.0;
    assert!(
        (share - 0.25).abs() < 4.0 * (0.25_f64 * 0.75 / 100_000.0).sqrt(),
        "{share}"
    );
    assert!(
        copies
            .iter()
            .all(|passage| passage.duplicate >= Some(passage.arrival))
    );
    assert!(
        copies
            .iter()
            .any(|passage| passage.duplicate > Some(passage.arrival))
    );
}

fn any_jitter() -> impl Strategy<Value = Jitter> {
    let nanos = || (0..3_000_000_u64).prop_map(Span::from_nanos);
    prop_oneof![
        Just(Jitter::None),
        (nanos(), any::<bool>()).prop_map(|(max, reorder)| Jitter::Uniform { max, reorder }),
        (nanos(), any::<bool>()).prop_map(|(mean, reorder)| Jitter::Exponential { mean, reorder }),
        (nanos(), nanos(), any::<bool>()).prop_map(|(mean, stddev, reorder)| Jitter::Normal {
            mean,
            stddev,
            reorder
        }),
        (nanos(), nanos(), any::<bool>()).prop_map(|(stddev, max, reorder)| Jitter::HalfNormal {
            stddev,
            max,
            reorder
        }),
    ]
}

fn any_loss() -> impl Strategy<Value = Loss> {
    let model = prop_oneof![
        (0.0..0.5).prop_map(LossModel::Bernoulli),
        (0.0..=1.0, 0.0..=1.0, 0.0..0.2, 0.0..=1.0).prop_map(
            |(p_good_to_bad, p_bad_to_good, loss_good, loss_bad)| LossModel::GilbertElliott {
                p_good_to_bad,
                p_bad_to_good,
                loss_good,
                loss_bad,
            }
        ),
        (
            1..5_000_000_u64,
            1..5_000_000_u64,
            0.0..=1.0,
            any::<bool>(),
            prop::option::of(0..3_u32),
        )
            .prop_map(|(on, off, drop_on, start_on, shared)| LossModel::OnOff {
                mean_on: Span::from_nanos(on),
                mean_off: Span::from_nanos(off),
                drop_on,
                drop_off: 0.0,
                start_on,
                shared,
            }),
        (0..5_000_000_u64, 1..5_000_000_u64).prop_map(|(at, lasts)| LossModel::Outage {
            at: Time::from_nanos(at),
            lasts: Span::from_nanos(lasts),
        }),
        prop::collection::vec(0..100_u64, 0..10).prop_map(LossModel::Packets),
    ];
    (model, any::<bool>()).prop_map(|(model, is_before)| {
        let place = if is_before {
            LossPlace::BeforeQueue
        } else {
            LossPlace::AfterTransmission
        };
        Loss { model, place }
    })
}

fn any_config() -> impl Strategy<Value = LinkConfig> {
    let limit = prop_oneof![Just(Limit::Unlimited), (1..20_u32).prop_map(Limit::Packets)];
    (
        100..100_000_u64,
        limit,
        prop::collection::vec(any_loss(), 0..3),
        any_jitter(),
        0.0..0.5,
        prop::option::weighted(0.3, (1..1_600_u64).prop_map(DataSize::new)),
    )
        .prop_map(
            |(kbps, limit, losses, jitter, duplication, mtu)| LinkConfig {
                mtu,
                queue: Queue::DropTail(limit),
                losses,
                jitter,
                duplication,
                ..LinkConfig::new(Rate::from_kbps(kbps), Span::from_micros(700))
            },
        )
}

/// An oversized packet uses no room in the queue and no loss model sees it, but it has a number. Of
/// the packets 0 to 3, 1 is too large, 2 is lost by its number, and 3 is the second that finds
/// room.
#[test]
fn oversized_packets_are_dropped_first() {
    let config = LinkConfig {
        mtu: Some(DataSize::new(1_400)),
        queue: Queue::DropTail(Limit::Packets(2)),
        ..config(vec![before(LossModel::Packets(vec![1, 2]))])
    };
    let mut link = AnalyticLink::new(&config, Seed::new(1)).unwrap();
    let mut queued = QueuedLink::new(&config, Seed::new(1)).unwrap();
    let drops = [None, Some(DropCause::TooLarge), Some(DropCause::Loss), None];
    for (token, (bytes, drop)) in [1_400, 1_401, 1_400, 60].into_iter().zip(drops).enumerate() {
        let packet = Packet { bytes, ..PACKET };
        let found = match link.offer(Time::ZERO, packet) {
            Outcome::Dropped(cause) => Some(cause),
            Outcome::Carried(_) => None,
            Outcome::Lost { .. } => panic!("nothing is lost on the wire"),
        };
        assert_eq!((token, found), (token, drop));
        assert_eq!(queued.offer(Time::ZERO, packet, token).err(), drop);
    }
}

/// Packets of 1 us every 10 us. An outage at the queue uses the time of the offer, and one on the
/// wire the departure, 1 us later.
#[test]
fn an_outage_loses_all_packets_during_it() {
    let outage = LossModel::Outage {
        at: Time::from_micros(30),
        lasts: Span::from_micros(20),
    };
    for (loss, expected) in [
        (before(outage.clone()), vec![3, 4]),
        (after(outage), vec![3, 4]),
        (
            after(LossModel::Outage {
                at: Time::from_micros(31),
                lasts: Span::from_micros(20),
            }),
            vec![3, 4],
        ),
        (
            after(LossModel::Outage {
                at: Time::from_micros(32),
                lasts: Span::from_nanos(19_001),
            }),
            vec![4, 5],
        ),
    ] {
        let outcomes = outcomes(&config(vec![loss]), Seed::new(1), 8, Span::from_micros(10));
        let lost: Vec<usize> = (0..8).filter(|&at| is_loss(&outcomes[at])).collect();
        assert_eq!(lost, expected);
    }
}

/// The times at which a shared process of number 0 changes its state, from on to off first, as the
/// documentation of the model has it.
fn changes(pair: Seed, mean: Span, until: Time) -> Vec<Time> {
    let mut random = Random::new(pair.derive("loss/0").derive("states"));
    let mut changes = vec![];
    let mut at = Time::ZERO;
    while at < until {
        let stay = random.exponential(mean.as_nanos() as f64) as u64;
        at += Span::from_nanos(stay.max(1));
        changes.push(at);
    }
    changes
}

proptest! {
    /// A packet of either direction is lost exactly while the shared process is on, whatever else
    /// passes in either direction, and a second run with the seed has the same outcomes.
    #[test]
    fn an_error_phase_hits_both_directions(
        forward in prop::collection::btree_set(0..30_000_u64, 1..200),
        reverse in prop::collection::btree_set(0..30_000_u64, 1..200),
        seed: u64,
    ) {
        let run = Seed::new(seed);
        let seeds = both_ways(run);
        let changes = changes(seeds[0].pair, Span::from_secs(1), Time::from_secs(31));
        for (seed, millis) in seeds.into_iter().zip([forward, reverse]) {
            let pass = || -> Vec<Outcome> {
                let mut link = AnalyticLink::new(&phases(1.0, Some(0)), seed).unwrap();
                let offer = |&at| link.offer(Time::from_millis(at), PACKET);
                millis.iter().map(offer).collect()
            };
            let got = pass();
            for (&at, outcome) in millis.iter().zip(&got) {
                let changed = changes.partition_point(|&change| change <= Time::from_millis(at));
                prop_assert_eq!(is_loss(outcome), changed % 2 == 0, "at {} ms", at);
            }
            prop_assert_eq!(pass(), got);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// First in, first out; arrivals in order where promised; every packet accounted for once; and
    /// a queued link, polled late, decides the same about every packet.
    #[test]
    fn order_conservation_and_agreement(
        config in any_config(),
        gaps in prop::collection::vec((0..2_000_000_u64, 0..1_500_u32), 1..100),
        seed: u64,
    ) {
        let seed = Seed::new(seed);
        let mut link = AnalyticLink::new(&config, seed).unwrap();
        let mut queued = QueuedLink::new(&config, seed).unwrap();
        let (mut now, mut last_departure, mut last_arrival) = (Time::ZERO, Time::ZERO, Time::ZERO);
        let mut got = vec![None; gaps.len()];
        let mut expected = Vec::new();
        let mut served_refused = 0;
        for (token, &(gap, bytes)) in gaps.iter().enumerate() {
            now += Span::from_nanos(gap);
            let packet = Packet { bytes, ecn_capable: false, flow: 0 };
            let outcome = link.offer(now, packet);
            expected.push(Some(outcome));
            let is_too_large = config.mtu.is_some_and(|mtu| u64::from(bytes) > mtu.get());
            prop_assert_eq!(outcome == Outcome::Dropped(DropCause::TooLarge), is_too_large);
            let passed = match outcome {
                Outcome::Carried(Passage { start, departure, arrival, duplicate, .. }) => {
                    prop_assert!(arrival >= departure + Span::from_micros(700));
                    let last = duplicate.unwrap_or(arrival);
                    prop_assert!(last >= arrival);
                    if link.keeps_order() {
                        prop_assert!(arrival >= last_arrival);
                        last_arrival = last;
                    }
                    Some((start, departure))
                }
                Outcome::Lost { start, departure, .. } => Some((start, departure)),
                Outcome::Dropped(_) => None,
            };
            if let Some((start, departure)) = passed {
                prop_assert_eq!(start, now.max(last_departure), "work-conserving");
                prop_assert!(departure >= start);
                last_departure = departure;
            }
            if let Err(cause) = queued.offer(now, packet, token) {
                got[token] = Some(Outcome::Dropped(cause));
                served_refused += 1;
            }
        }
        let mut handed_back = 0;
        while let Some(back) = queued.poll(last_departure) {
            prop_assert_eq!(got[back.token].replace(back.outcome), None);
            handed_back += 1;
        }
        prop_assert_eq!(handed_back + served_refused, gaps.len());
        prop_assert_eq!(queued.next_wakeup(), None);
        prop_assert_eq!(got, expected);
        prop_assert_eq!(link.keeps_order(), queued.keeps_order());
    }
}
