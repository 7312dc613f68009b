//! Tables in memory, with packets and distributions.

use std::sync::atomic::AtomicBool;

use comity_sim::NoControllers;
use comity_sim::report::RunReport;
use comity_sim::results::{
    AxisValue, ColumnarTable, ColumnarValues, CompletedRun, ResultSet, ScenarioInfo, table,
};
use comity_sim::scenario::{NoFiles, Reading, Scenario, Stopped, simulate, simulate_stoppable};

const TEXT: &str = r#"
    [scenario]
    name = "narrow"
    duration = "20s"
    warmup = "2s"
    bins = "1s"

    [topology]
    kind = "dumbbell"
    bottleneck = { rate = "2Mbps", delay = "20ms", queue = 10 }
    access = { rate = "10Mbps", delay = "2ms" }

    [[flow]]
    group = "tcp"
    count = 2
"#;

fn simulated(packets: bool, stop: bool) -> Result<RunReport, Stopped> {
    let scenario = Scenario::parse("narrow", TEXT, NoFiles, &Reading::default()).unwrap();
    let run = &scenario.runs()[0];
    let (network, settings) = scenario.prepare(run);
    simulate_stoppable(
        &network,
        run,
        &settings,
        packets,
        &NoControllers,
        &AtomicBool::new(stop),
    )
}

fn set(report: RunReport, axis: AxisValue) -> ResultSet {
    ResultSet {
        scenario: ScenarioInfo {
            name: "narrow".into(),
            text: TEXT.into(),
            set: Vec::new(),
        },
        command: String::new(),
        runs: vec![CompletedRun {
            number: 0,
            scenario_hash: 1,
            axes: vec![("queue".into(), axis)],
            seed: report.seed,
            report,
        }],
    }
}

fn values<'t>(table: &'t ColumnarTable, name: &str) -> &'t ColumnarValues {
    let column = table.columns.iter().find(|column| column.name == name);
    &column
        .unwrap_or_else(|| panic!("{name} in {}", table.name))
        .values
}

fn integers<'t>(table: &'t ColumnarTable, name: &str) -> &'t [i64] {
    match values(table, name) {
        ColumnarValues::Integer(values) => values,
        other => panic!("{name}: {other:?}"),
    }
}

fn texts<'t>(table: &'t ColumnarTable, name: &str) -> Vec<&'t str> {
    match values(table, name) {
        ColumnarValues::Text { offsets, bytes } => offsets
            .windows(2)
            .map(|pair| std::str::from_utf8(&bytes[pair[0] as usize..pair[1] as usize]).unwrap())
            .collect(),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn observers_change_nothing_and_a_stopped_run_has_no_report() {
    let scenario = Scenario::parse("narrow", TEXT, NoFiles, &Reading::default()).unwrap();
    let run = &scenario.runs()[0];
    let (network, settings) = scenario.prepare(run);
    let plain = simulate(&network, run, &settings).unwrap();
    let observed = simulated(true, false).unwrap();
    assert!(observed.packets.is_some());
    assert_eq!(
        RunReport {
            packets: None,
            ..observed
        },
        plain
    );
    assert_eq!(simulated(false, true), Err(Stopped::Requested));
    assert_eq!(simulated(true, true), Err(Stopped::Requested));
}

#[test]
fn every_table_has_axes_and_seed_and_only_filled_columns() {
    let set = set(simulated(true, false).unwrap(), AxisValue::Integer(10));
    for (name, _) in comity_sim::results::TABLES {
        let Some(table) = table(&set, name).unwrap() else {
            assert_eq!(name, "sections");
            continue;
        };
        assert!(table.rows > 0, "{name}");
        assert!(
            integers(&table, "run").iter().all(|run| *run == 0),
            "{name}"
        );
        assert!(
            integers(&table, "axis.queue")
                .iter()
                .all(|value| *value == 10)
        );
        assert!(integers(&table, "seed").iter().all(|seed| *seed == 1));
        for column in &table.columns {
            let rows = match &column.values {
                ColumnarValues::Boolean(values) => values.len(),
                ColumnarValues::Integer(values) => values.len(),
                ColumnarValues::Number(values) => values.len(),
                ColumnarValues::Text { offsets, .. } => offsets.len() - 1,
            };
            assert_eq!(rows, table.rows, "{name}.{}", column.name);
            assert!(!column.meaning.is_empty(), "{name}.{}", column.name);
            let validity = column.validity.as_ref();
            assert!(validity.is_none_or(|rows| rows.contains(&true) && rows.contains(&false)));
        }
        assert!(
            !table
                .columns
                .iter()
                .any(|column| column.name.starts_with("sections_"))
        );
    }
    assert_eq!(table(&set, "nothing").unwrap(), None);
}

#[test]
fn histograms_agree_with_the_numbers_of_the_run() {
    let report = simulated(false, false).unwrap();
    let set = set(report.clone(), AxisValue::Boolean(true));
    let delays = table(&set, "delay_histogram").unwrap().unwrap();
    let (flows, counts) = (integers(&delays, "index"), integers(&delays, "count"));
    let (ColumnarValues::Number(shares), ColumnarValues::Number(ends)) =
        (values(&delays, "cumulative_share"), values(&delays, "to_s"))
    else {
        panic!("numbers");
    };
    for (index, flow) in report.flows.iter().enumerate() {
        let rows: Vec<usize> = (0..delays.rows)
            .filter(|&row| flows[row] == index as i64)
            .collect();
        let count: i64 = rows.iter().map(|&row| counts[row]).sum();
        assert_eq!(count, flow.delay.count as i64);
        assert_eq!(rows.last().map(|&row| shares[row]), Some(1.0));
        // The median lies in the first bin that reaches one half.
        let half = rows.iter().find(|&&row| shares[row] >= 0.5).unwrap();
        assert!((ends[*half] / flow.delay.median - 1.0).abs() < 0.02);
        let max = ends[*rows.last().unwrap()];
        assert!(max > flow.delay.max && max < flow.delay.max * 1.017);
    }
    let queue = table(&set, "queueing_delay_histogram").unwrap().unwrap();
    let total: i64 = integers(&queue, "count").iter().sum();
    let expected: u64 = report
        .links
        .iter()
        .map(|link| link.queueing_delay.count)
        .sum();
    assert_eq!(total, expected as i64);
}

#[test]
fn packets_are_those_that_links_and_flows_count() {
    let report = simulated(true, false).unwrap();
    let set = set(report.clone(), AxisValue::Number(0.5));
    let packets = table(&set, "packets").unwrap().unwrap();
    let (links, fates) = (texts(&packets, "link"), texts(&packets, "fate"));
    for link in &report.links {
        let of_link = || (0..packets.rows).filter(|&row| links[row] == link.name);
        assert_eq!(
            of_link().count() as u64,
            link.offered_packets,
            "{}",
            link.name
        );
        let dropped = of_link()
            .filter(|&row| fates[row] == "dropped_full")
            .count();
        assert_eq!(dropped as u64, link.dropped_full, "{}", link.name);
    }
    assert!(report.links.iter().any(|link| link.dropped_full > 0));
    let offered = integers(&packets, "offered_ns");
    assert!(offered.is_sorted());

    // What a sender repeats, the first link of its path carries again.
    let flows = texts(&packets, "flow");
    let column = |name: &str| packets.columns.iter().find(|column| column.name == name);
    let ColumnarValues::Boolean(again) = &column("is_retransmission").unwrap().values else {
        panic!("booleans");
    };
    let sequences = integers(&packets, "sequence");
    for flow in &report.flows {
        let first = (0..packets.rows)
            .find(|&row| flows[row] == flow.name)
            .unwrap();
        let sent: Vec<usize> = (0..packets.rows)
            .filter(|&row| flows[row] == flow.name && links[row] == links[first])
            .collect();
        assert_eq!(sent.len() as u64, flow.sent_packets);
        let retransmitted = sent.iter().filter(|&&row| again[row]).count();
        assert_eq!(
            retransmitted as u64, flow.retransmitted_packets,
            "{}",
            flow.name
        );
        let highest = sent.iter().map(|&row| sequences[row]).max().unwrap();
        assert!(highest as u64 >= flow.delivered_bytes_total);
    }
}
