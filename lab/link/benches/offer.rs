//! The cost of offering a packet, by kind of link.
//!
//! Each link carries the same load: packets at 90 % of its rate, in groups of four, so that the
//! link is sometimes queued and sometimes idle.

use std::hint::black_box;

use comity_link::{
    AnalyticLink, DeliveryTrace, Limit, LinkConfig, Loss, LossModel, LossPlace, Outcome, Packet,
    Queue, QueuedLink, RateProfile, RedConfig,
};
use comity_units::{DataSize, Rate, Seed, Span, Time};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// 155 Mb/s: a packet of 1,500 B takes 77.419 us.
const RATE: Rate = Rate::from_mbps(155);
/// Four packets in this time are 90 % of the rate.
const BUNCH: Span = Span::from_nanos(344_086);
/// Packets in one measured run.
const PACKETS: u64 = 10_000;

fn plain() -> LinkConfig {
    LinkConfig::new(RATE, Span::from_millis(10))
}

fn links() -> Vec<(&'static str, LinkConfig)> {
    let lossy = |model| LinkConfig {
        losses: vec![Loss {
            model,
            place: LossPlace::AfterTransmission,
        }],
        ..plain()
    };
    // 13 opportunities a millisecond are 156 Mb/s.
    let trace = DeliveryTrace::new((0..130_000).map(|index| index / 13)).expect("a valid trace");
    let steps = (0..100).map(|second| (Time::from_secs(second), RATE.mul_f64(1.0 + second as f64)));
    vec![
        ("plain", plain()),
        (
            "packet limit",
            LinkConfig {
                queue: Queue::DropTail(Limit::Packets(100)),
                ..plain()
            },
        ),
        (
            "byte limit",
            LinkConfig {
                queue: Queue::DropTail(Limit::Bytes(DataSize::new(150_000))),
                ..plain()
            },
        ),
        (
            "red",
            LinkConfig {
                queue: Queue::Red(RedConfig::default()),
                ..plain()
            },
        ),
        ("bernoulli", lossy(LossModel::Bernoulli(0.01))),
        (
            "gilbert-elliott",
            lossy(LossModel::GilbertElliott {
                p_good_to_bad: 0.01,
                p_bad_to_good: 0.3,
                loss_good: 0.0,
                loss_bad: 0.5,
            }),
        ),
        (
            "rate steps",
            LinkConfig {
                rate: RateProfile::Steps(steps.collect()),
                ..plain()
            },
        ),
        (
            "delivery trace",
            LinkConfig {
                rate: RateProfile::Deliveries(trace),
                ..plain()
            },
        ),
    ]
}

/// Offers packets from `now` on, of each of the `sizes` in turn; returns the time after them.
fn offer(link: &mut AnalyticLink, mut now: Time, sizes: [u32; 2]) -> Time {
    for _ in 0..PACKETS / 4 {
        for bytes in [sizes[0], sizes[1], sizes[0], sizes[1]] {
            let packet = Packet {
                bytes,
                ecn_capable: false,
                flow: 0,
            };
            if let Outcome::Carried(passage) = link.offer(now, black_box(packet)) {
                black_box(passage.arrival);
            }
        }
        now += BUNCH;
    }
    now
}

fn analytic(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("analytic");
    group.throughput(Throughput::Elements(PACKETS));
    let mut measure = |name: &str, config: &LinkConfig, sizes: [u32; 2]| {
        let mut link = AnalyticLink::new(config, Seed::new(1)).expect("a valid link");
        let mut now = Time::ZERO;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                now = offer(&mut link, now, sizes);
            });
        });
    };
    for (name, config) in links() {
        measure(name, &config, [1_500, 1_500]);
    }
    measure("plain, two sizes", &plain(), [1_500, 40]);
    group.finish();
}

fn queued(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("queued");
    group.throughput(Throughput::Elements(PACKETS));
    let codel = Queue::CoDel(comity_link::CodelConfig::default());
    for (name, config) in [
        ("plain", plain()),
        (
            "controlled delay",
            LinkConfig {
                queue: codel,
                ..plain()
            },
        ),
    ] {
        let mut link = QueuedLink::new(&config, Seed::new(1)).expect("a valid link");
        let mut now = Time::ZERO;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for number in 0..PACKETS as u32 {
                    let packet = Packet {
                        bytes: 1_500,
                        ecn_capable: false,
                        flow: 0,
                    };
                    let _ = black_box(link.offer(now, black_box(packet), number));
                    if number % 4 == 3 {
                        now += BUNCH;
                        while let Some(decision) = link.poll(now) {
                            black_box(decision);
                        }
                    }
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, analytic, queued);
criterion_main!(benches);
