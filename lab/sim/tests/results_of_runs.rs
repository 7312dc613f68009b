//! Results of real runs, from the engine to the file.

use crate::common;

use std::fs;
use std::path::Path;

use comity_congestion::recovery::RecoveryConfig;
use comity_sim::results::{CompletedRun, Format, ResultSet, ScenarioInfo, compare, write};
use comity_sim::{RunOptions, metrics, run};
use comity_tcp::Config;
use comity_units::{Seed, Span};

/// Four flows over the TLTCP paper's Table 1 network for 20 s, from each of these seeds.
fn simulate(seeds: &[u64]) -> ResultSet {
    let recovery = RecoveryConfig::by_name("reno").expect("it is in the table");
    let transport = common::ns2_tcp(Config::default(), recovery, 1_500, 20);
    let network = common::table1(4, &transport, 20, Span::from_millis(20));
    let one = |&seed: &u64| CompletedRun {
        number: seed as usize - 1,
        scenario_hash: 0x0123_4567_89ab_cdef,
        axes: Vec::new(),
        seed: Seed::new(seed),
        report: run(&network, Seed::new(seed), &RunOptions::default()).expect("it can be run"),
    };
    ResultSet {
        scenario: ScenarioInfo {
            name: "table 1".into(),
            text: String::new(),
            set: Vec::new(),
        },
        command: String::new(),
        runs: seeds.iter().map(one).collect(),
    }
}

#[test]
fn runs_of_one_seed_are_one_file_and_of_two_seeds_two() {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("of_runs");
    let _ = fs::remove_dir_all(&home);
    fs::create_dir_all(&home).unwrap();
    let bytes = |set: &ResultSet, name: &str| {
        write(set, Format::Parquet, &home.join(name)).unwrap();
        fs::read(home.join(name).join("flows.parquet")).unwrap()
    };
    let (once, again, other) = (simulate(&[1, 2]), simulate(&[1, 2]), simulate(&[1, 3]));
    assert_eq!(bytes(&once, "once"), bytes(&again, "again"));
    assert_ne!(bytes(&once, "once"), bytes(&other, "other"));

    assert!(compare(&once, &again, 0.0).unwrap().is_same());
    let differing = compare(&once, &other, 0.0).unwrap();
    assert_eq!((differing.matched, differing.differences.len()), (1, 0));
    assert_eq!(differing.only_left[0].seed, Seed::new(2));
    assert_eq!(differing.only_right[0].seed, Seed::new(3));
}

#[test]
fn a_clamped_window_shares_a_loss_free_bottleneck() {
    // Four windows of 20 packets fill the path but never the queue of 400: nothing is lost, and the
    // bottleneck is busy all the time.
    let set = simulate(&[1]);
    let report = &set.runs[0].report;
    let throughputs: Vec<f64> = report
        .flows
        .iter()
        .map(|flow| flow.throughput_bps)
        .collect();
    let total: f64 = throughputs.iter().sum();
    assert!((total / 1.5e6 - 1.0).abs() < 0.01, "{total}");
    let index = metrics::jain(&throughputs).unwrap();
    assert!((0.999..=1.0).contains(&index), "{index}");
    let sent = report.flows[0].sent_packets;
    let dropped = report.flows[0].dropped_packets;
    assert_eq!(metrics::loss_ratio(dropped, sent), Ok(0.0));
    // 80 packets of 8 ms each are 640 ms; the path itself has 24 ms, and the rest is queued.
    let delay = report.flows[0].delay;
    assert!((0.55..0.66).contains(&delay.median), "{delay:?}");
    assert!(delay.min <= delay.median && delay.median <= delay.p95 && delay.p99 <= delay.max);
    assert!((delay.mean / delay.median - 1.0).abs() < 0.05, "{delay:?}");
}
