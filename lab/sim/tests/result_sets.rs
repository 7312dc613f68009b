//! Sets of results: axes, comparison, and the tables that Python reads.

use std::fs;
use std::process::Command;

use comity_sim::results::{AxisValue, Format, compare, write};
use comity_units::Seed;
use parquet::record::Field;

use super::results::{read_parquet, scratch, skip, text, two_runs};

#[test]
fn an_axis_with_two_values_in_a_run_is_refused() {
    let home = scratch("axes");
    let mut set = two_runs();
    set.runs[1]
        .axes
        .push(("link.loss".into(), AxisValue::Number(0.0)));
    let error = write(&set, Format::Json, &home.join("out.json")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a run has two values for the axis `link.loss`, expected one"
    );
    assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
}

#[test]
fn axes_take_the_type_that_fits_all_their_values() {
    let home = scratch("types");
    let mut set = two_runs();
    set.runs[0].axes = vec![
        ("flag".into(), AxisValue::Boolean(true)),
        ("mixed".into(), AxisValue::Integer(7)),
        ("once".into(), AxisValue::Integer(3)),
    ];
    set.runs[1].axes = vec![
        ("mixed".into(), AxisValue::Text("40ms".into())),
        ("flag".into(), AxisValue::Boolean(false)),
    ];
    write(&set, Format::Parquet, &home.join("out")).unwrap();
    let runs = read_parquet(&home.join("out/runs.parquet"));
    assert_eq!(
        (&runs[0]["axis.flag"], &runs[1]["axis.flag"]),
        (&Field::Bool(true), &Field::Bool(false))
    );
    assert_eq!(
        (&runs[0]["axis.mixed"], &runs[1]["axis.mixed"]),
        (&text("7"), &text("40ms"))
    );
    assert_eq!(
        (&runs[0]["axis.once"], &runs[1]["axis.once"]),
        (&Field::Long(3), &Field::Null)
    );
}

#[test]
fn comparing_finds_every_changed_value_and_every_missing_run() {
    let left = two_runs();
    assert!(compare(&left, &left, 0.0).unwrap().is_same());

    let mut right = left.clone();
    right.runs.reverse();
    let same = compare(&left, &right, 0.0).unwrap();
    assert!(same.is_same() && same.matched == 2, "{same:?}");

    right.runs[1].report.flows[0].timeouts = 3;
    right.runs[1].report.links[0].mean_queue_packets = 1.500_001;
    right.runs[1].report.fingerprint = 5;
    right.runs[1].report.flows[1].srtt_s = Some(0.2);
    let found = compare(&left, &right, 0.0).unwrap();
    let shown: Vec<String> = found.differences.iter().map(ToString::to_string).collect();
    let run = "flow.controller=reno flow.window=-10 link.loss=0.5 seed=9223372036854775807";
    assert_eq!(
        shown,
        [
            format!("{run}: runs[0].fingerprint is `fedcba9876543210` and `0000000000000005`"),
            format!("{run}: runs[0].timeouts is `0` and `3`"),
            format!("{run}: groups[0].timeouts is `0` and `3`"),
            format!("{run}: flows[0].timeouts is `0` and `3`"),
            format!("{run}: flows[1].srtt_s is `` and `0.2`"),
            format!("{run}: links[0].mean_queue_packets is `1.5` and `1.500001`"),
        ]
    );
    let tolerant = compare(&left, &right, 1e-6).unwrap();
    let columns: Vec<_> = tolerant
        .differences
        .iter()
        .map(|d| d.column.as_str())
        .collect();
    assert_eq!(columns, ["timeouts", "timeouts", "timeouts", "srtt_s"]);

    right.runs.pop();
    right.runs[0].seed = Seed::new(99);
    let missing = compare(&left, &right, 0.0).unwrap();
    let seeds = |keys: &[comity_sim::results::RunKey]| -> Vec<u64> {
        keys.iter().map(|key| key.seed.get()).collect()
    };
    assert_eq!(seeds(&missing.only_left), [i64::MAX as u64, 2]);
    assert_eq!(seeds(&missing.only_right), [99]);
    assert_eq!((missing.matched, missing.is_same()), (0, false));

    let mut shorter = left.clone();
    shorter.runs[0].report.flows.pop();
    let lost = compare(&left, &shorter, 0.0).unwrap();
    assert!(lost.differences.iter().any(|d| {
        (d.table, d.row, d.column.as_str(), d.right.as_str()) == ("flows", 1, "flow", "")
    }));
}

/// The contents of files of all three formats, as read by pyarrow and Python's standard library.
const READER: &str = include_str!("results.py");

#[test]
fn python_reads_the_same() {
    let home = scratch("python");
    let set = two_runs();
    write(&set, Format::Parquet, &home.join("p")).unwrap();
    write(&set, Format::Csv, &home.join("c")).unwrap();
    write(&set, Format::Json, &home.join("out.json")).unwrap();
    let python = |code: &str| {
        Command::new("python3")
            .args(["-c", code])
            .arg(&home)
            .output()
    };
    match python("import pyarrow.parquet") {
        Ok(output) if output.status.success() => {}
        _ => {
            skip("python3 with pyarrow is not installed");
            return;
        }
    }
    let output = python(READER).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.stdout, b"3 flows agree\n");
}
