//! What a time-lined flow costs beside the flow that it would be without deadlines: the same
//! network, once with two TLTCP flows and once with two flows of the recovery below it. The aim is
//! a ratio of at most 1.3.
//!
//! Instructions are what counts on a machine that others share; `docs/results/simulator-cost.md`
//! says how they are counted.

#[path = "../tests/common/mod.rs"]
mod common;

use comity_congestion::recovery::RecoveryConfig;
use comity_link::{Limit, Queue};
use comity_sim::network::{Network, TimelineSpec, TransportSpec};
use comity_sim::{RunOptions, run};
use comity_tcp::Config;
use comity_tcp::timeline::TimelineConfig;
use comity_units::{DataSize, Seed, Span};
use criterion::{Criterion, criterion_group, criterion_main};

/// Sections of so many packets, each worth sending for so long, with or without the paper's blind
/// spot.
#[derive(Clone, Copy)]
struct Deadlines {
    packets: u64,
    deadline: Span,
    blind_spot: bool,
}

impl Deadlines {
    const fn new(packets: u64, millis: u64) -> Self {
        Self {
            packets,
            deadline: Span::from_millis(millis),
            blind_spot: true,
        }
    }

    const fn with_every_loss_seen(self) -> Self {
        Self {
            blind_spot: false,
            ..self
        }
    }
}

/// Table 1 of the TLTCP paper with two flows for 500 s.
fn network(recovery: RecoveryConfig, window: u64, deadlines: Option<Deadlines>) -> Network {
    let mut flow = common::ns2_tcp(Config::NS2_2000, recovery, 1_500, window);
    if let (TransportSpec::Tcp(tcp), Some(deadlines)) = (&mut flow, deadlines) {
        tcp.config.timeline = Some(TimelineConfig {
            blind_spot: deadlines.blind_spot,
            ..TimelineConfig::PAPER
        });
        tcp.timeline = Some(TimelineSpec {
            section: DataSize::new(deadlines.packets * 1_460),
            deadline: deadlines.deadline,
            feedback: None,
        });
    }
    common::table1(2, &flow, 500, Span::from_millis(20))
}

/// The same with windows of 40 packets before a queue of 20, so that packets are lost.
fn lossy(recovery: RecoveryConfig, deadlines: Option<Deadlines>) -> Network {
    let mut network = network(recovery, 40, deadlines);
    network.links[0].config.queue = Queue::DropTail(Limit::Packets(20));
    network
}

fn flows(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("timeline");
    // As in the paper's figure 5.
    let long = |millis| Some(Deadlines::new(467, millis));
    let short = Some(Deadlines::new(47, 100));
    // Hardly more than a packet leaves for each.
    let shortest = Some(Deadlines::new(10, 20));
    let seen = Some(Deadlines::new(467, 1_000).with_every_loss_seen());
    let reno = RecoveryConfig::RENO;
    let sack = RecoveryConfig::SACK;
    let networks = [
        ("reno", network(reno, 10, None)),
        ("tltcp, deadline 5 s", network(reno, 10, long(5_000))),
        ("tltcp, deadline 1 s", network(reno, 10, long(1_000))),
        ("tltcp, deadline 500 ms", network(reno, 10, long(500))),
        ("tltcp, 68 kB in 100 ms", network(reno, 10, short)),
        ("tltcp, 15 kB in 20 ms", network(reno, 10, shortest)),
        ("losses, reno", lossy(reno, None)),
        ("losses, tltcp", lossy(reno, long(1_000))),
        ("losses, sack", lossy(sack, None)),
        ("losses, tltcp over sack", lossy(sack, long(1_000))),
        (
            "losses, tltcp over sack, every loss seen",
            lossy(sack, seen),
        ),
    ];
    for (name, network) in &networks {
        let simulate =
            || run(network, Seed::new(1), &RunOptions::default()).expect("the network is sound");
        group.bench_function(*name, |bencher| bencher.iter(simulate));
    }
    group.finish();
}

criterion_group!(benches, flows);
criterion_main!(benches);
