//! What a time-lined flow costs beside the flow that it would be without deadlines: the same network, once with two
//! TLTCP flows and once with two Reno flows. The aim is a ratio of at most 1.3.

#[path = "../tests/common/mod.rs"]
mod common;

use comity_congestion::recovery::RecoveryConfig;
use comity_sim::network::{Network, TimelineSpec, TransportSpec};
use comity_sim::{RunOptions, run};
use comity_transport::tcp::Config;
use comity_transport::tcp::timeline::TimelineConfig;
use comity_units::{Bytes, Seed, Span};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Table 1 of the TLTCP paper with two flows for 500 s: sections of 467 packets, as in its figure 5.
fn network(deadline: Option<Span>) -> Network {
    let mut flow = common::ns2_tcp(Config::NS2_2000, RecoveryConfig::RENO, 1_500, 10);
    if let (TransportSpec::Tcp(tcp), Some(deadline)) = (&mut flow, deadline) {
        tcp.config.timeline = Some(TimelineConfig::PAPER);
        tcp.timeline = Some(TimelineSpec {
            section: Bytes::new(467 * 1_460),
            deadline,
            feedback: None,
        });
    }
    common::table1(2, &flow, 500, Span::from_millis(20))
}

fn flows(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("timeline");
    let kinds = [
        ("reno", None),
        ("tltcp, deadline 1 s", Some(Span::from_secs(1))),
        ("tltcp, deadline 5 s", Some(Span::from_secs(5))),
    ];
    for (name, deadline) in kinds {
        let network = network(deadline);
        let play =
            || run(&network, Seed::new(1), &RunOptions::default()).expect("the network is sound");
        group.throughput(Throughput::Elements(play().cost.packet_hops));
        group.bench_function(name, |bencher| bencher.iter(play));
    }
    group.finish();
}

criterion_group!(benches, flows);
criterion_main!(benches);
