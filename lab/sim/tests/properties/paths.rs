//! Random links.

use comity_link::{
    CodelConfig, DelayProfile, DeliveryTrace, FqCodelConfig, Jitter, Limit, LinkConfig, Loss,
    LossModel, LossPlace, PieConfig, Queue, RateProfile, RedConfig,
};
use comity_units::{DataSize, Rate, Span, Time};
use proptest::prelude::*;

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::Unlimited),
        (1u32..40).prop_map(Limit::Packets),
        (400u64..40_000).prop_map(|bytes| Limit::Bytes(DataSize::new(bytes))),
    ]
}

fn rate() -> impl Strategy<Value = RateProfile> {
    let constant = (200u64..20_000).prop_map(|kbps| RateProfile::Constant(Rate::from_kbps(kbps)));
    let steps = prop::collection::vec((1u64..400, 0u64..8_000), 1..5).prop_map(|parts| {
        let mut at = Time::ZERO;
        let step = |(later, kbps)| {
            at += Span::from_millis(later);
            (at, Rate::from_kbps(kbps))
        };
        let mut steps: Vec<_> = parts.into_iter().map(step).collect();
        // A link that stops for good would test nothing.
        steps.push((Time::from_secs(2), Rate::from_mbps(3)));
        steps.dedup_by_key(|step| step.0);
        RateProfile::Steps(steps)
    });
    let trace = prop::collection::vec(0u32..6, 3..20).prop_map(|gaps| {
        let mut at = 1;
        let times = gaps.into_iter().map(|gap| {
            at += gap;
            at
        });
        RateProfile::Deliveries(DeliveryTrace::new(times.collect::<Vec<_>>()).unwrap())
    });
    prop_oneof![6 => constant, 1 => Just(RateProfile::Unlimited), 2 => steps, 1 => trace]
}

fn delay() -> impl Strategy<Value = DelayProfile> {
    let span = || (0u64..40_000).prop_map(Span::from_micros);
    let steps = (span(), span(), span()).prop_map(|(a, b, c)| {
        DelayProfile::Steps(vec![
            (Time::ZERO, a),
            (Time::from_millis(500), b),
            (Time::from_millis(900), c),
        ])
    });
    prop_oneof![4 => span().prop_map(DelayProfile::Constant), 1 => steps]
}

fn queue() -> impl Strategy<Value = Queue> {
    let red = (
        2.0f64..5.0,
        6.0f64..20.0,
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(low, high, gentle, wait, ecn)| {
            Queue::Red(RedConfig {
                min_threshold: low,
                max_threshold: high,
                weight: 0.05,
                gentle,
                wait,
                ecn,
                ..RedConfig::default()
            })
        });
    let codel = (1u64..20, 2u32..60, any::<bool>()).prop_map(|(target, limit, ecn)| {
        Queue::CoDel(CodelConfig {
            target: Span::from_millis(target),
            limit: Limit::Packets(limit),
            ecn,
            ..CodelConfig::default()
        })
    });
    let fq_codel = (1u64..20, limit(), any::<bool>(), 1u32..8, 200u64..3_000).prop_map(
        |(target, limit, ecn, queues, quantum)| {
            Queue::FqCodel(FqCodelConfig {
                target: Span::from_millis(target),
                limit,
                ecn,
                queues,
                quantum: DataSize::new(quantum),
                ..FqCodelConfig::default()
            })
        },
    );
    let pie = (1u64..20, limit(), any::<bool>()).prop_map(|(target, limit, ecn)| {
        Queue::Pie(PieConfig {
            target: Span::from_millis(target),
            limit,
            ecn,
            max_burst: Span::from_millis(30),
            ..PieConfig::default()
        })
    });
    prop_oneof![
        5 => limit().prop_map(Queue::DropTail),
        1 => red,
        1 => codel,
        1 => fq_codel,
        1 => pie,
    ]
}

fn loss() -> impl Strategy<Value = Loss> {
    let model = prop_oneof![
        (0.0f64..0.2).prop_map(LossModel::Bernoulli),
        (0.0f64..0.2, 0.05f64..1.0, 0.0f64..0.05, 0.0f64..1.0).prop_map(
            |(p_good_to_bad, p_bad_to_good, loss_good, loss_bad)| LossModel::GilbertElliott {
                p_good_to_bad,
                p_bad_to_good,
                loss_good,
                loss_bad,
            }
        ),
        (1u64..500, 1u64..500, 0.0f64..1.0, any::<bool>()).prop_map(
            |(on, off, drop_on, start_on)| {
                LossModel::OnOff {
                    mean_on: Span::from_millis(on),
                    mean_off: Span::from_millis(off),
                    drop_on,
                    drop_off: 0.0,
                    start_on,
                    shared: None,
                }
            }
        ),
        prop::collection::vec(0u64..60, 0..6).prop_map(LossModel::Packets),
    ];
    let place = prop_oneof![
        Just(LossPlace::AfterTransmission),
        Just(LossPlace::BeforeQueue)
    ];
    (model, place).prop_map(|(model, place)| Loss { model, place })
}

fn jitter() -> impl Strategy<Value = Jitter> {
    let span = || (0u64..8_000).prop_map(Span::from_micros);
    prop_oneof![
        5 => Just(Jitter::None),
        1 => (span(), any::<bool>()).prop_map(|(mean, reorder)| Jitter::Exponential { mean, reorder }),
        1 => (span(), any::<bool>()).prop_map(|(max, reorder)| Jitter::Uniform { max, reorder }),
        1 => (span(), span(), any::<bool>())
            .prop_map(|(mean, stddev, reorder)| Jitter::Normal { mean, stddev, reorder }),
        1 => (span(), span(), any::<bool>())
            .prop_map(|(stddev, max, reorder)| Jitter::HalfNormal { stddev, max, reorder }),
    ]
}

pub(crate) fn link() -> impl Strategy<Value = LinkConfig> {
    let losses = prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(loss(), 1..3)];
    let duplication = prop_oneof![4 => Just(0.0), 1 => 0.0f64..0.3];
    // Smaller or larger than the wire size of some flows' full packets and acknowledgements.
    let mtu = prop::option::weighted(0.2, (30u64..2_000).prop_map(DataSize::new));
    (rate(), delay(), mtu, queue(), losses, jitter(), duplication).prop_map(
        |(rate, delay, mtu, queue, losses, jitter, duplication)| {
            // Without a rate no queue builds up, and random early detection refuses that.
            let queue = match (queue, &rate) {
                (Queue::Red(_), RateProfile::Unlimited) => Queue::DropTail(Limit::Packets(5)),
                (queue, _) => queue,
            };
            LinkConfig {
                rate,
                delay,
                mtu,
                queue,
                losses,
                jitter,
                duplication,
            }
        },
    )
}
