//! Results as other programs read them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use comity_sim::metrics::Convergence;
use comity_sim::report::{
    Cost, FlowReport, FlowSeries, LinkReport, LinkSeries, RunReport, Series, Summary,
};
use comity_sim::results::{
    AxisValue, CompletedRun, Format, ResultSet, ScenarioInfo, WriteError, write,
};
use comity_units::{Seed, Span, Time};
use parquet::basic::Compression;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};

/// A new directory of its own for each test.
pub(super) fn scratch(test: &str) -> PathBuf {
    let at = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&at);
    fs::create_dir_all(&at).unwrap();
    at
}

#[expect(clippy::print_stderr, reason = "a test that did nothing has to say so")]
pub(super) fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

fn flow(name: &str, group: &str, throughput_bps: f64) -> FlowReport {
    FlowReport {
        name: name.into(),
        group: group.into(),
        kind: "reno newreno".into(),
        started: Time::from_millis(250),
        delivered_bytes: 1_000_000,
        goodput_bps: throughput_bps * 0.96,
        throughput_bps,
        sent_packets: 100,
        acks: 90,
        dropped_packets: 10,
        ..FlowReport::default()
    }
}

/// Two runs: everything present and everything absent.
pub(super) fn two_runs() -> ResultSet {
    let mut first = flow("a, \"quoted\"\nand ß", "tltcp", 3e6);
    first.finished = Some(Time::from_nanos(12_345_678_901));
    first.srtt_s = Some(0.1);
    first.cwnd_bytes = Some(30_000);
    first.delay = Summary {
        count: 4,
        mean: 0.05,
        stddev: 0.001,
        min: 0.02,
        max: 0.08,
        median: 0.05,
        p95: 0.079,
        p99: 0.08,
    };
    let link = LinkReport {
        name: "r1-r2".into(),
        offered_packets: 110,
        dropped_full: 10,
        utilisation: Some(0.875),
        mean_queue_packets: 1.5,
        ..LinkReport::default()
    };
    let series = Series {
        bin: Span::from_millis(100),
        flows: vec![
            FlowSeries {
                delivered_bytes: vec![1, 2, 3],
                srtt_ns: vec![7, 8],
                ..Default::default()
            },
            FlowSeries {
                delivered_bytes: vec![4, 5, 6],
                ..Default::default()
            },
        ],
        links: vec![LinkSeries {
            carried_bytes: vec![9, 10],
            ..Default::default()
        }],
        convergence: None,
    };
    let report = RunReport {
        world: comity_sim::report::World::default(),
        seed: Seed::new(i64::MAX as u64),
        fingerprint: 0xfedc_ba98_7654_3210,
        duration: Span::from_secs(500),
        warmup: Span::from_secs(50),
        flows: vec![first, flow("b", "tcp", 1e6)],
        links: vec![link],
        cost: Cost {
            events: 1_000,
            packet_hops: 600,
            peak_packets: 40,
            memory_bytes: 4_096,
        },
        series: Some(series),
        packets: None,
    };
    let mut bare = report.clone();
    bare.fingerprint = 1;
    bare.series = None;
    bare.flows = vec![flow("a", "tcp", 0.0)];
    bare.links.clear();
    let axes = |window, controller: &str, loss| {
        vec![
            ("flow.window".to_owned(), AxisValue::Integer(window)),
            (
                "flow.controller".to_owned(),
                AxisValue::Text(controller.into()),
            ),
            ("link.loss".to_owned(), loss),
        ]
    };
    ResultSet {
        scenario: ScenarioInfo {
            name: "table 1".into(),
            text: "# Table 1\nname = \"table 1\"\n".into(),
            set: Vec::new(),
        },
        command: "comity run table1.toml".into(),
        runs: vec![
            CompletedRun {
                number: 0,
                scenario_hash: 0x0123_4567_89ab_cdef,
                axes: axes(-10, "reno", AxisValue::Number(0.5)),
                seed: Seed::new(i64::MAX as u64),
                report,
            },
            CompletedRun {
                number: 1,
                scenario_hash: 0x0123_4567_89ab_cdef,
                axes: axes(20, "cubic", AxisValue::Integer(1)),
                seed: Seed::new(2),
                report: bare,
            },
        ],
    }
}

/// The rows of a Parquet file by the names of its columns.
pub(super) fn read_parquet(path: &Path) -> Vec<BTreeMap<String, Field>> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let by_name = |row: Row| {
        row.get_column_iter()
            .map(|(n, f)| (n.clone(), f.clone()))
            .collect()
    };
    reader
        .get_row_iter(None)
        .unwrap()
        .map(|row| by_name(row.unwrap()))
        .collect()
}

pub(super) fn text(text: &str) -> Field {
    Field::Str(text.into())
}

/// One flow that ended; one that was stopped, one that went on, one that started in the warm-up,
/// and one that would have started after the end of the run.
#[test]
fn groups_have_the_completion_times_of_measured_time_and_count_the_unfinished_flows() {
    let mut set = two_runs();
    set.runs.truncate(1);
    set.runs[0].report.series = None;
    let transfer = |start_ms: u64, took_ms: Option<u64>, delivered| FlowReport {
        started: Time::from_millis(start_ms),
        finished: took_ms.map(|took| Time::from_millis(start_ms + took)),
        size_bytes: Some(1_000),
        delivered_bytes_total: delivered,
        sent_packets: u64::from(start_ms < 500_000),
        ..flow("x", "short", 0.0)
    };
    set.runs[0].report.flows = vec![
        transfer(60_000, Some(1_500), 1_000),
        transfer(61_000, Some(1_000), 999),
        transfer(499_999, None, 1_000),
        transfer(49_999, Some(10), 1_000),
        transfer(500_000, None, 0),
        flow("y", "long", 0.0),
    ];
    let path = scratch("completion").join("out");
    write(&set, Format::Parquet, &path).unwrap();
    let groups = read_parquet(&path.join("groups.parquet"));
    let of = |group: usize, column: &str| groups[group][column].clone();
    assert_eq!(of(0, "group"), text("short"));
    assert_eq!(of(0, "completion_count"), Field::Long(1));
    assert_eq!(of(0, "completion_mean_s"), Field::Double(1.5));
    assert_eq!(of(0, "completion_max_s"), Field::Double(1.5));
    assert_eq!(of(0, "unfinished_flows"), Field::Long(2));
    assert_eq!(of(1, "completion_mean_s"), Field::Null);
    assert_eq!(of(1, "unfinished_flows"), Field::Null);
    let flows = read_parquet(&path.join("flows.parquet"));
    let times: Vec<_> = flows
        .iter()
        .map(|row| row["completion_s"].clone())
        .collect();
    let expected = [
        Field::Double(1.5),
        Field::Null,
        Field::Null,
        Field::Double(0.01),
    ];
    assert_eq!(times[..4], expected);
    assert_eq!(times[4..], [Field::Null, Field::Null]);
    assert_eq!(flows[0]["size_bytes"], Field::Long(1_000));
    assert_eq!(flows[5]["size_bytes"], Field::Null);
}

#[test]
fn parquet_holds_the_values_with_their_types() {
    let home = scratch("parquet");
    let path = home.join("out");
    write(&two_runs(), Format::Parquet, &path).unwrap();

    let runs = read_parquet(&path.join("runs.parquet"));
    assert_eq!(runs.len(), 2);
    let first = &runs[0];
    assert_eq!(first["scenario"], text("table 1"));
    assert_eq!(first["seed"], Field::Long(i64::MAX));
    assert_eq!(first["fingerprint"], text("fedcba9876543210"));
    assert_eq!(first["duration_ns"], Field::Long(500_000_000_000));
    assert_eq!(first["axis.flow.window"], Field::Long(-10));
    assert_eq!(first["axis.flow.controller"], text("reno"));
    assert_eq!(first["throughput_bps"], Field::Double(4e6));
    assert_eq!(first["mean_throughput_bps"], Field::Double(2e6));
    // (4)² / (2 · 10); 3 over 1.
    assert_eq!(first["jain"], Field::Double(0.8));
    for ratio in ["f_best", "f_worst", "max_min_ratio"] {
        assert_eq!(first[ratio], Field::Double(3.0), "{ratio}");
    }
    assert_eq!(first["loss_ratio"], Field::Double(20.0 / 380.0));
    assert_eq!(first["mean_delay_s"], Field::Double(0.05));
    assert_eq!(first["max_utilisation"], Field::Double(0.875));
    assert_eq!(first["packet_hops"], Field::Long(600));
    // Whole numbers among numbers are numbers.
    assert_eq!(
        runs.iter()
            .map(|run| &run["axis.link.loss"])
            .collect::<Vec<_>>(),
        [&Field::Double(0.5), &Field::Double(1.0)]
    );
    // A single flow without throughput, delays or links: nothing to compare.
    for absent in [
        "jain",
        "f_best",
        "max_min_ratio",
        "mean_delay_s",
        "max_delay_s",
        "max_utilisation",
    ] {
        assert_eq!(runs[1][absent], Field::Null, "{absent}");
    }

    let groups = read_parquet(&path.join("groups.parquet"));
    let friendliness: Vec<_> = groups
        .iter()
        .map(|g| (&g["group"], &g["friendliness"]))
        .collect();
    let expected = [
        (&text("tltcp"), &Field::Double(3.0)),
        (&text("tcp"), &Field::Double(1.0 / 3.0)),
        (&text("tcp"), &Field::Null),
    ];
    assert_eq!(friendliness, expected);

    let flows = read_parquet(&path.join("flows.parquet"));
    assert_eq!(flows.len(), 3);
    assert_eq!(flows[0]["flow"], text("a, \"quoted\"\nand ß"));
    assert_eq!(flows[0]["finished_ns"], Field::Long(12_345_678_901));
    assert_eq!(flows[0]["delay_p95_s"], Field::Double(0.079));
    assert_eq!(
        (&flows[1]["run"], &flows[1]["index"]),
        (&Field::Long(0), &Field::Long(1))
    );
    assert_eq!(flows[2]["run"], Field::Long(1));
    assert_eq!(flows[2]["axis.flow.controller"], text("cubic"));
    for absent in ["finished_ns", "srtt_s", "cwnd_bytes", "delay_mean_s"] {
        assert_eq!(flows[1][absent], Field::Null, "{absent}");
    }
    assert_eq!(flows[1]["delay_count"], Field::Long(0));

    let links = read_parquet(&path.join("links.parquet"));
    assert_eq!(links.len(), 1);
    assert_eq!(links[0]["dropped_full_packets"], Field::Long(10));

    let series = read_parquet(&path.join("flow_series.parquet"));
    let bins: Vec<_> = series
        .iter()
        .map(|bin| {
            (
                &bin["flow"],
                &bin["bin_start_ns"],
                &bin["delivered_bytes"],
                &bin["srtt_ns"],
            )
        })
        .collect();
    assert_eq!(bins.len(), 6);
    assert_eq!(bins[1].1, &Field::Long(100_000_000));
    assert_eq!((bins[1].2, bins[1].3), (&Field::Long(2), &Field::Long(8)));
    assert_eq!(bins[2].3, &Field::Null);
    assert_eq!((bins[5].0, bins[5].2), (&text("b"), &Field::Long(6)));
    assert_eq!(read_parquet(&path.join("link_series.parquet")).len(), 2);
}

/// Bins of a second, measured from 1.5 to 10.5 s: eight whole ones, of 1 and 3 bytes in turn. The
/// mean is 2 and the standard deviation 1; over two bins the variation is zero, and five fit only
/// once.
#[test]
fn the_variation_of_goodput_depends_on_the_time_scale() {
    let mut set = two_runs();
    set.runs.truncate(1);
    let report = &mut set.runs[0].report;
    report.warmup = Span::from_millis(1_500);
    report.duration = Span::from_millis(10_500);
    report.flows[0].name = "a".into();
    let series = report.series.as_mut().unwrap();
    series.bin = Span::from_secs(1);
    series.flows[0].delivered_bytes = vec![9, 9, 1, 3, 1, 3, 1, 3, 1, 3, 9];
    // Absent bins are zero: three of eight bins hold 4.
    series.flows[1].delivered_bytes = vec![0, 0, 4, 4, 4];
    let path = scratch("variation").join("out");
    write(&set, Format::Csv, &path).unwrap();
    let table = fs::read_to_string(path.join("flow_variation.csv")).unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(1)
        .map(|line| line.rsplit(',').collect())
        .collect();
    let found: Vec<(&str, &str, f64)> = rows
        .iter()
        .map(|row| (row[2], row[1], row[0].parse().unwrap()))
        .collect();
    let second = (5.0_f64 / 3.0).sqrt();
    // Pairs of 8, 4, 0 and 0: a mean of 3, and a variance of (25 + 1 + 9 + 9) / 4 = 11.
    let pairs = 11.0_f64.sqrt() / 3.0;
    let expected = [
        ("1000000000", "8", 0.5),
        ("2000000000", "4", 0.0),
        ("1000000000", "8", second),
        ("2000000000", "4", pairs),
    ];
    assert_eq!(found.len(), expected.len(), "{table}");
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!((found.0, found.1), (expected.0, expected.1), "{table}");
        assert!((found.2 - expected.2).abs() < 1e-12, "{table}");
    }
}

/// Two flows, the second from 1.5 s on. From the bin at 2 s on they get 9 and 11, then 12 and 8,
/// then 10 and 10 three times: within a tenth of the mean from 4 s on, 2.5 s after the second
/// began.
#[test]
fn a_group_converges_so_long_after_its_last_start() {
    let mut set = two_runs();
    let report = &mut set.runs[0].report;
    for (flow, start) in report.flows.iter_mut().zip([0, 1_500]) {
        flow.group = "pair".into();
        flow.started = Time::from_millis(start);
    }
    let series = report.series.as_mut().unwrap();
    series.bin = Span::from_secs(1);
    series.flows[0].delivered_bytes = vec![10, 10, 9, 12, 10, 10, 10];
    series.flows[1].delivered_bytes = vec![10, 10, 11, 8, 10, 10, 10];
    let found = |report: &mut RunReport, hold, tolerance| {
        let series = report.series.as_mut().unwrap();
        series.convergence = Some(Convergence {
            tolerance,
            hold: Span::from_secs(hold),
        });
        report.convergence("pair")
    };
    assert_eq!(report.convergence("pair"), None, "nobody asked");
    assert_eq!(found(report, 4, 0.1), None);
    assert_eq!(found(report, 1, 0.1), Some(Span::from_millis(500)));
    assert_eq!(found(report, 5, 0.2), Some(Span::from_millis(500)));
    assert_eq!(found(report, 2, 0.1), Some(Span::from_millis(2_500)));
    assert_eq!(report.convergence("another"), None);

    let path = scratch("convergence").join("out");
    write(&set, Format::Csv, &path).unwrap();
    let mut reader = csv::Reader::from_path(path.join("groups.csv")).unwrap();
    let names = reader.headers().unwrap().clone();
    let at = names.iter().position(|name| name == "convergence_s");
    let values: Vec<String> = reader
        .records()
        .map(|record| record.unwrap()[at.unwrap()].to_owned())
        .collect();
    assert_eq!(values[0], "2.5");
    assert!(values[1..].iter().all(String::is_empty), "{values:?}");
}

#[test]
fn parquet_states_its_origin() {
    let home = scratch("provenance");
    let path = home.join("out");
    let set = two_runs();
    write(&set, Format::Parquet, &path).unwrap();
    let reader = SerializedFileReader::new(File::open(path.join("runs.parquet")).unwrap()).unwrap();
    let file = reader.metadata().file_metadata();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        file.created_by(),
        Some(&*format!("comity version {version}"))
    );
    let entries: BTreeMap<_, _> = file
        .key_value_metadata()
        .unwrap()
        .iter()
        .map(|entry| (entry.key.as_str(), entry.value.as_deref().unwrap()))
        .collect();
    assert_eq!(entries["comity.scenario_text"], set.scenario.text);
    assert_eq!(entries["comity.command"], "comity run table1.toml");
    assert_eq!(entries["comity.version"], version);
    assert_eq!(entries["comity.schema_version"], "3");
    assert_eq!(entries["comity.table"], "runs");
    let units: BTreeMap<String, String> = serde_json::from_str(entries["comity.units"]).unwrap();
    let schema = file.schema_descr();
    assert_eq!(units.len(), schema.num_columns());
    for (column, unit) in [
        ("duration_ns", "ns"),
        ("goodput_bps", "bit/s"),
        ("mean_delay_s", "s"),
        ("memory_bytes", "B"),
        ("sent_packets", "packets"),
        ("jain", "1"),
        ("axis.flow.window", "as in the scenario"),
    ] {
        assert_eq!(units[column], unit, "{column}");
    }
    let seed = schema
        .columns()
        .iter()
        .find(|column| column.name() == "seed")
        .unwrap();
    assert_eq!(
        seed.logical_type_ref(),
        None,
        "counts are plain signed numbers"
    );
    let chunk = reader.metadata().row_group(0).column(0);
    assert_eq!(chunk.compression(), Compression::SNAPPY);
}

#[test]
fn csv_and_json_hold_the_same_as_parquet() {
    let home = scratch("formats");
    let (columns, separated, json) = (home.join("p"), home.join("c"), home.join("out.json"));
    let set = two_runs();
    write(&set, Format::Parquet, &columns).unwrap();
    write(&set, Format::Csv, &separated).unwrap();
    write(&set, Format::Json, &json).unwrap();
    let document: serde_json::Value = serde_json::from_reader(File::open(&json).unwrap()).unwrap();
    let metadata: serde_json::Value =
        serde_json::from_reader(File::open(separated.join("metadata.json")).unwrap()).unwrap();
    assert_eq!(document["metadata"], metadata);
    assert_eq!(metadata["scenario_text"], set.scenario.text.as_str());
    assert_eq!(metadata["units"]["links"]["queueing_delay_p99_s"], "s");

    let mut cells = 0;
    for table in [
        "runs",
        "groups",
        "flows",
        "links",
        "flow_series",
        "link_series",
        "flow_variation",
    ] {
        let expected = read_parquet(&columns.join(format!("{table}.parquet")));
        let mut reader = csv::Reader::from_path(separated.join(format!("{table}.csv"))).unwrap();
        let names = reader.headers().unwrap().clone();
        let records: Vec<_> = reader.records().map(|record| record.unwrap()).collect();
        let objects = document["tables"][table].as_array().unwrap();
        assert_eq!(
            (records.len(), objects.len()),
            (expected.len(), expected.len()),
            "{table}"
        );
        for ((row, record), object) in expected.iter().zip(&records).zip(objects) {
            assert_eq!(
                (names.len(), object.as_object().unwrap().len()),
                (row.len(), row.len())
            );
            for (at, name) in names.iter().enumerate() {
                let (field, shown, value) = (&row[name], &record[at], &object[name]);
                match field {
                    Field::Null => assert!(shown.is_empty() && value.is_null(), "{name}"),
                    Field::Long(number) => {
                        assert_eq!(
                            (shown.parse(), value.as_i64()),
                            (Ok(*number), Some(*number))
                        );
                    }
                    Field::Double(number) => {
                        assert_eq!(
                            (shown.parse(), value.as_f64()),
                            (Ok(*number), Some(*number))
                        );
                    }
                    Field::Str(text) => {
                        assert_eq!(
                            (shown, value.as_str()),
                            (text.as_str(), Some(text.as_str()))
                        );
                    }
                    other => panic!("{name} is {other:?}"),
                }
                cells += 1;
            }
        }
    }
    assert!(cells > 300, "{cells}");
}

#[test]
fn a_starved_half_is_infinite_which_json_cannot_express() {
    let home = scratch("infinite");
    let mut set = two_runs();
    set.runs.truncate(1);
    set.runs[0].report.flows[1].throughput_bps = 0.0;
    write(&set, Format::Parquet, &home.join("p")).unwrap();
    write(&set, Format::Json, &home.join("out.json")).unwrap();
    write(&set, Format::Csv, &home.join("c")).unwrap();
    let runs = read_parquet(&home.join("p/runs.parquet"));
    assert_eq!(runs[0]["max_min_ratio"], Field::Double(f64::INFINITY));
    let document: serde_json::Value =
        serde_json::from_reader(File::open(home.join("out.json")).unwrap()).unwrap();
    assert!(document["tables"]["runs"][0]["max_min_ratio"].is_null());
    let mut reader = csv::Reader::from_path(home.join("c/runs.csv")).unwrap();
    let at = reader
        .headers()
        .unwrap()
        .iter()
        .position(|name| name == "max_min_ratio")
        .unwrap();
    assert_eq!(&reader.records().next().unwrap().unwrap()[at], "inf");
}

#[test]
fn the_same_results_give_the_same_bytes() {
    let home = scratch("deterministic");
    let tree = |name: &str, format| -> BTreeMap<PathBuf, Vec<u8>> {
        let path = home.join(name);
        write(&two_runs(), format, &path).unwrap();
        if path.is_file() {
            return BTreeMap::from([(PathBuf::new(), fs::read(path).unwrap())]);
        }
        fs::read_dir(&path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|file| {
                (
                    file.strip_prefix(&path).unwrap().into(),
                    fs::read(&file).unwrap(),
                )
            })
            .collect()
    };
    for (format, files) in [(Format::Parquet, 9), (Format::Csv, 10), (Format::Json, 1)] {
        let (one, other) = (tree("one", format), tree("other", format));
        assert_eq!(one.len(), files, "{format:?}");
        assert_eq!(one, other, "{format:?}");
        let needle = home.to_str().unwrap().as_bytes();
        for (file, bytes) in &one {
            assert!(
                !bytes.windows(needle.len()).any(|part| part == needle),
                "{file:?}"
            );
        }
        // The next format has another kind of file at its path.
        for name in ["one", "other"] {
            let path = home.join(name);
            if path.is_dir() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            }
            .unwrap();
        }
    }
}

#[test]
fn no_runs_are_tables_without_rows() {
    let home = scratch("empty");
    let mut set = two_runs();
    set.runs.clear();
    write(&set, Format::Parquet, &home.join("p")).unwrap();
    write(&set, Format::Csv, &home.join("c")).unwrap();
    write(&set, Format::Json, &home.join("out.json")).unwrap();
    assert_eq!(read_parquet(&home.join("p/flows.parquet")), Vec::new());
    assert!(!home.join("p/flow_series.parquet").exists());
    let flows = fs::read_to_string(home.join("c/flows.csv")).unwrap();
    assert!(flows.starts_with("run,seed,index,flow,group,kind,") && flows.lines().count() == 1);
    let document: serde_json::Value =
        serde_json::from_reader(File::open(home.join("out.json")).unwrap()).unwrap();
    assert_eq!(document["tables"]["runs"], serde_json::json!([]));
}

#[test]
fn an_unwritable_path_is_named_with_the_reason() {
    let home = scratch("errors");
    let set = two_runs();
    let fail = |format, path: &Path| {
        let error = write(&set, format, path).unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains(path.to_str().unwrap()), "{shown}");
        error
    };
    for format in [Format::Parquet, Format::Csv, Format::Json] {
        let nowhere = home.join("no/such/folder");
        assert!(matches!(
            fail(format, &nowhere),
            WriteError::NoDirectory { .. }
        ));
        let below_a_file = home.join("plain");
        fs::write(&below_a_file, "text").unwrap();
        let error = fail(format, &below_a_file.join("out"));
        assert!(matches!(error, WriteError::NoDirectory { .. }), "{error:?}");
    }
    let plain = home.join("plain");
    let error = fail(Format::Parquet, &plain);
    assert!(
        matches!(
            error,
            WriteError::Occupied {
                expected: "a directory",
                ..
            }
        ),
        "{error:?}"
    );
    assert_eq!(fs::read_to_string(&plain).unwrap(), "text");

    let mine = home.join("mine");
    fs::create_dir(&mine).unwrap();
    fs::write(mine.join("thesis.tex"), "precious").unwrap();
    let error = fail(Format::Csv, &mine);
    assert!(
        matches!(&error, WriteError::NotResults { found, .. } if found == Path::new("thesis.tex"))
    );
    assert!(matches!(
        fail(Format::Json, &mine),
        WriteError::Occupied {
            expected: "a file",
            ..
        }
    ));
    assert_eq!(
        fs::read_to_string(mine.join("thesis.tex")).unwrap(),
        "precious"
    );
    assert!(matches!(
        fail(Format::Csv, Path::new("/")),
        WriteError::NotResults { .. } | WriteError::Occupied { .. }
    ));

    let mut names: Vec<_> = fs::read_dir(&home)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["mine", "plain"]);
}

#[cfg(unix)]
#[test]
fn a_directory_without_permission_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let home = scratch("permission");
    fs::set_permissions(&home, fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(home.join("probe"), "").is_ok() {
        skip("this user may write to directories without permission");
        return;
    }
    let error = write(&two_runs(), Format::Parquet, &home.join("out")).unwrap_err();
    assert!(matches!(error, WriteError::Unwritable { .. }), "{error:?}");
    assert!(
        error
            .to_string()
            .contains("expected permission to write in")
    );
}
