//! What it costs to store the results of a large sweep: a million rows of flows in each format.

use std::fs;
use std::path::Path;

use comity_sim::report::{Cost, FlowReport, RunReport, Summary};
use comity_sim::results::{AxisValue, CompletedRun, Format, ResultSet, ScenarioInfo, write};
use comity_units::{Seed, Span, Time};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const RUNS: u64 = 1_000;
const FLOWS: u64 = 1_000;

fn flow(run: u64, number: u64) -> FlowReport {
    // Digits without a pattern, as measured values have.
    let value = Seed::new(run).index(number).get();
    let share = (value >> 11) as f64 / (1_u64 << 53) as f64;
    let packets = 1_000 + value % 5_000;
    FlowReport {
        name: format!("flow {number}"),
        group: if number.is_multiple_of(2) {
            "tcp"
        } else {
            "tltcp"
        }
        .to_owned(),
        kind: "reno newreno".to_owned(),
        started: Time::from_nanos(value % 1_000_000_000),
        delivered_bytes: packets * 1_460,
        delivered_wire_bytes: packets * 1_500,
        goodput_bps: share * 1e6,
        throughput_bps: share * 1.03e6,
        sent_packets: packets + 10,
        sent_wire_bytes: (packets + 10) * 1_500,
        received_packets: packets,
        acks: packets,
        delay: Summary {
            count: packets,
            mean: share,
            stddev: share / 7.0,
            min: share / 10.0,
            max: share * 2.0,
            median: share,
            p95: share * 1.5,
            p99: share * 1.9,
        },
        srtt_s: Some(share / 3.0),
        cwnd_bytes: Some(packets * 10),
        ..FlowReport::default()
    }
}

fn sweep() -> ResultSet {
    let run = |number: u64| CompletedRun {
        number: number as usize,
        scenario_hash: 0x0123_4567_89ab_cdef,
        axes: vec![(
            "flow.window".to_owned(),
            AxisValue::Integer(number.cast_signed() % 40),
        )],
        seed: Seed::new(number),
        report: RunReport {
            world: comity_sim::report::World::default(),
            seed: Seed::new(number),
            fingerprint: Seed::new(number).index(0).get(),
            duration: Span::from_secs(500),
            warmup: Span::from_secs(50),
            flows: (0..FLOWS)
                .map(|flow_number| flow(number, flow_number))
                .collect(),
            links: Vec::new(),
            cost: Cost::default(),
            series: None,
            packets: None,
        },
    };
    ResultSet {
        scenario: ScenarioInfo {
            name: "sweep".to_owned(),
            text: "[sweep]".to_owned(),
            set: Vec::new(),
        },
        command: "comity run sweep.toml".to_owned(),
        runs: (0..RUNS).map(run).collect(),
    }
}

fn store(criterion: &mut Criterion) {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench");
    fs::create_dir_all(&home).expect("the target directory can be written");
    let set = sweep();
    let mut group = criterion.benchmark_group("a million flows");
    group.throughput(Throughput::Elements(RUNS * FLOWS));
    group.sample_size(10);
    for (name, format) in [
        ("parquet", Format::Parquet),
        ("csv", Format::Csv),
        ("json", Format::Json),
    ] {
        let path = home.join(name);
        group.bench_function(name, |bench| {
            bench.iter(|| write(&set, format, &path).expect("there is room for the results"));
        });
    }
    group.finish();
    fs::remove_dir_all(&home).expect("they can be removed again");
}

criterion_group!(benches, store);
criterion_main!(benches);
