//! Runs of scenarios: tables, documents, stored results, and errors in files and words.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::{SMALL, ends, out, root, said, small};

#[test]
fn a_run_prints_a_table_for_people() {
    let (_folder, file) = small();
    let text = out(&ends(0, &["sim", "run", &file]));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "small: Two kinds of flows");
    for word in [
        "queue",
        "group",
        "flows",
        "goodput",
        "±95%",
        "min",
        "max",
        "Jain",
        "loss",
        "retransmitted",
        "timeouts",
        "delay ms",
    ] {
        assert!(lines[2].contains(word), "{word} is not in {}", lines[2]);
    }
    let words = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>();
    assert_eq!(words(3)[..3], ["5", "tcp", "2"]);
    assert_eq!(words(4)[..3], ["5", "udp", "1"]);
    assert_eq!(words(5)[..4], ["10", "packets", "tcp", "2"]);
    // With several flows, the index is a number. With one flow there is none.
    let end = lines[2].split("Jain").next().unwrap().chars().count() + "Jain".len();
    let jain = |line: usize| {
        let row: String = lines[line].chars().take(end).collect();
        row.split_whitespace().last().unwrap().to_owned()
    };
    assert!(
        jain(3).starts_with("0.") || jain(3) == "1.0000",
        "{}",
        jain(3)
    );
    assert_eq!(jain(4), "-");
    assert!(text.contains("bottleneck.reverse"));
    assert!(
        !text.contains("tcp-0.source"),
        "links of hosts are not shown"
    );
    assert!(text.contains("4 runs, "));
    let one = out(&ends(
        0,
        &["sim", "run", &file, "--seed", "3", "--set", "sweep=[]"],
    ));
    assert!(!one.contains("±95%"), "one run has no interval");
    assert!(one.lines().last().unwrap().starts_with("fingerprint "));
    assert_eq!(out(&ends(0, &["sim", "run", &file, "--quiet"])), "");
}

/// The share of reads that found their data is shown for flows with a reader, and the warm-up if
/// there is one.
#[test]
fn readers_and_the_warmup_are_mentioned_if_present() {
    let (_folder, file) = small();
    let plain = out(&ends(0, &["sim", "run", &file]));
    assert!(!plain.contains("reads in time") && !plain.contains("warm-up"));
    let reader = "flow.tcp.reader={ kind = \"playback\", bytes = \"1B\", interval = \"100ms\" }";
    let text = out(&ends(
        0,
        &[
            "sim",
            "run",
            &file,
            "--set",
            reader,
            "--set",
            "scenario.warmup=500ms",
        ],
    ));
    assert!(text.contains("reads in time"), "{text}");
    let words = |line: usize| {
        text.lines()
            .nth(line)
            .unwrap()
            .split_whitespace()
            .collect::<Vec<_>>()
    };
    // One byte is always available, so this reader never stalls. Datagrams have no reader.
    assert!(
        words(3).ends_with(&["100.0%", "0.064", "0.000", "0.000"]),
        "{text}"
    );
    assert!(words(4).ends_with(&["-", "-", "-", "-"]), "{text}");
    assert!(text.contains("from the end of its warm-up"), "{text}");
}

/// Flows that ended have a mean completion time, and those that did not are counted.
#[test]
fn flows_that_did_not_end_are_counted() {
    let (_folder, file) = small();
    let run = |size: &str, extra: &[&str]| {
        let workload = format!("flow.tcp.workload={{ kind = \"file\", size = \"{size}\" }}");
        let mut args = vec!["sim", "run", &file, "--seed", "3", "--set", &workload];
        args.extend(extra);
        out(&ends(0, &args))
    };
    let text = run("10kB", &[]);
    assert!(text.contains("done after s"), "{text}");
    assert!(!text.contains("unfinished"), "{text}");
    let text = run("1GB", &[]);
    assert!(!text.contains("done after s"), "{text}");
    assert!(text.contains("unfinished"), "{text}");
    for (size, completed, unfinished) in [("10kB", 2, 0), ("1GB", 0, 2)] {
        let document: Value = serde_json::from_str(&run(size, &["--json"])).unwrap();
        let groups = &document["points"][0]["groups"];
        assert_eq!(groups[0]["completed_flows"], completed);
        assert_eq!(groups[0]["unfinished_flows"], unfinished);
        assert_eq!(groups[0]["completion_s"].is_null(), completed == 0);
        // Datagrams of constant rate have no end.
        assert_eq!(groups[1]["unfinished_flows"], 0);
    }
}

/// Every key of the document is described, and none is described that is not there.
#[test]
fn the_json_document_matches_its_page() {
    fn collect(value: &Value, keys: &mut BTreeSet<String>) {
        match value {
            Value::Object(entries) => {
                for (key, value) in entries {
                    keys.insert(key.clone());
                    if key != "axes" {
                        collect(value, keys);
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, keys)),
            _ => {}
        }
    }
    let (_folder, file) = small();
    let video = "[[flow]]\ngroup = \"video\"\ntransport = \"sections\"\n\
                 workload = { kind = \"video\", rate = \"200kbps\", fps = 25, group = 25 }\n";
    fs::write(&file, format!("{SMALL}{video}")).unwrap();
    let document: Value =
        serde_json::from_slice(&ends(0, &["sim", "run", &file, "--json"]).stdout).unwrap();
    let mut keys = BTreeSet::new();
    collect(&document, &mut keys);
    let page = fs::read_to_string(root().join("docs/reference/run-json.md")).unwrap();
    let described: BTreeSet<String> = page
        .split('`')
        .skip(1)
        .step_by(2)
        .flat_map(|code| code.split('.'))
        .map(Into::into)
        .collect();
    for key in &keys {
        assert!(described.contains(key), "{key} is not described");
    }
    for word in page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .flat_map(|line| {
            line.split('|')
                .nth(1)
                .unwrap_or_default()
                .split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
        })
    {
        for key in word.split('.') {
            assert!(keys.contains(key), "{key} is described and not there");
        }
    }
    assert_eq!(document["format"], "comity-sim-run/2");
    let points = document["points"].as_array().unwrap();
    assert_eq!(points[0]["axes"]["queue"], 5);
    assert_eq!(points[1]["axes"]["queue"], "10 packets");
    assert_eq!(points[0]["runs"].as_array().unwrap().len(), 2);
    let sum = |key: &str| -> u64 {
        let runs = points
            .iter()
            .flat_map(|point| point["runs"].as_array().unwrap());
        runs.map(|run| run[key].as_u64().unwrap()).sum()
    };
    assert_eq!(document["totals"]["packet_hops"], sum("packet_hops"));
    assert_eq!(document["totals"]["events"], sum("events"));
    assert!(sum("packet_hops") > 1_000);
}

/// The results are equal to the last digit for any number of threads.
#[test]
fn the_number_of_threads_does_not_change_results() {
    let (_folder, file) = small();
    let document = |jobs: &str| {
        let output = ends(0, &["sim", "run", &file, "--json", "--jobs", jobs]);
        let mut document: Value = serde_json::from_slice(&output.stdout).unwrap();
        document["totals"]["wall_seconds"] = Value::Null;
        document
    };
    assert_eq!(document("1"), document("4"));
}

#[test]
fn results_are_stored_in_every_format() {
    let (folder, file) = small();
    for (name, expected) in [("out.csv", "flows.csv"), ("out", "flows.parquet")] {
        let path = folder.path().join(name);
        ends(
            0,
            &[
                "sim",
                "run",
                &file,
                "--quiet",
                "--out",
                path.to_str().unwrap(),
            ],
        );
        assert!(path.join(expected).is_file(), "{name}/{expected}");
    }
    let path = folder.path().join("out.json");
    ends(
        0,
        &[
            "sim",
            "run",
            &file,
            "--quiet",
            "--out",
            path.to_str().unwrap(),
        ],
    );
    let stored: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(stored["metadata"]["scenario_name"], "small");
    assert_eq!(stored["tables"]["runs"].as_array().unwrap().len(), 4);
    let flows = fs::read_to_string(folder.path().join("out.csv/flows.csv")).unwrap();
    assert_eq!(flows.lines().count(), 1 + 4 * 3);
    assert!(flows.lines().next().unwrap().contains("axis.queue"));
    let path = folder.path().join("bins.csv");
    let out = path.to_str().unwrap();
    ends(
        0,
        &[
            "sim",
            "run",
            &file,
            "-q",
            "-o",
            out,
            "--set",
            "scenario.bins=1ms",
        ],
    );
    let series = fs::read_to_string(path.join("flow_series.csv")).unwrap();
    assert!(!series.contains(&u64::MAX.to_string()), "an empty cell");
    let args = ["sim", "run", &file, "-q", "--seed", "1", "-o", out];
    let refused = said(&ends(2, &args));
    assert!(
        refused.contains("bins.csv.runs holds 4 runs of another sweep"),
        "{refused}"
    );
    assert!(
        path.join("flow_series.csv").is_file(),
        "it is left as it is"
    );
    ends(0, &[&args[..], &["--force"]].concat());
    assert!(
        !path.join("flow_series.csv").exists(),
        "replaced by results without bins"
    );
    let one_file = folder.path().join("one.parquet");
    let args = ["sim", "run", &file, "-q", "-o", one_file.to_str().unwrap()];
    let refused = said(&ends(2, &args));
    assert!(
        refused.contains("a folder with a file for each"),
        "{refused}"
    );
    let nowhere = folder.path().join("no/such/folder/out.json");
    let output = ends(
        1,
        &[
            "sim",
            "run",
            &file,
            "--quiet",
            "--out",
            nowhere.to_str().unwrap(),
        ],
    );
    assert!(
        said(&output).contains("expected an existing directory"),
        "{}",
        said(&output)
    );
}

/// Equal flows count as fair from some bin on with a wide tolerance, and never with a tolerance of
/// zero.
#[test]
fn the_time_to_fair_shares_is_shown_if_a_criterion_is_set() {
    let (_folder, file) = small();
    let text = |tolerance: &str, extra: &[&str]| {
        let criterion = format!("scenario.convergence.tolerance={tolerance}");
        let mut args = vec!["sim", "run", &file, "--set", "scenario.bins=500ms"];
        args.extend(["--set", "scenario.convergence.hold=1s", "--set", &criterion]);
        args.extend(extra);
        out(&ends(0, &args))
    };
    assert!(!out(&ends(0, &["sim", "run", &file])).contains("fair after s"));
    let never = text("0.0", &[]);
    assert!(
        never.contains("fair after s") && never.contains("never"),
        "{never}"
    );
    let document: Value = serde_json::from_str(&text("0.99", &["--json"])).unwrap();
    let groups = &document["points"][0]["groups"];
    let time = groups[0]["convergence_s"]["mean"].as_f64().unwrap();
    assert!((0.0..4.0).contains(&time), "{time}");
    assert_eq!(groups[0]["convergence_s"]["count"], 2);
    assert!(
        groups[1]["convergence_s"].is_null(),
        "one flow shares with nobody"
    );
}

#[test]
fn mistakes_end_with_code_2_and_a_reason() {
    let (folder, file) = small();
    let wrong = folder.path().join("wrong.toml");
    fs::write(
        &wrong,
        SMALL
            .replace("duration", "durtion")
            .replace("count = 2\n\n[[flow]]", "count = -2\n\n[[flow]]"),
    )
    .unwrap();
    let output = ends(2, &["sim", "run", wrong.to_str().unwrap()]);
    assert!(
        said(&output).contains("did you mean `duration`?"),
        "{}",
        said(&output)
    );
    assert!(
        said(&output).contains("wrong.toml:5:1"),
        "{}",
        said(&output)
    );
    assert_eq!(out(&output), "");
    for (args, expected) in [
        (
            vec!["sim", "run", &file, "--set", "flow.tcp.cout=3"],
            "did you mean \"count\"?",
        ),
        (
            vec!["sim", "run", &file, "--seeds", "3-1"],
            "goes backwards",
        ),
        (
            vec!["sim", "run", &file, "--seed", "1", "--seeds", "2"],
            "cannot be used with",
        ),
        (
            vec!["sim", "run", &file, "--jobs", "0"],
            "invalid value '0' for '--jobs <N>': expected a whole number from 1",
        ),
        (
            vec!["sim", "run", &file, "--seed", "x"],
            "invalid value 'x' for '--seed <N>': expected a whole number from 0 to",
        ),
        (
            vec!["sim", "run", &file, "--seeds", "1-3,2"],
            "seed 2 is listed twice",
        ),
        (
            vec!["sim", "run", &file, "--set", "scenario.seeds=[4,4]"],
            "a seed is listed twice",
        ),
        (
            vec!["sim", "run", &file, "--out", "results.xml"],
            "cannot store results as .xml; expected .csv, .json or no extension (Parquet)",
        ),
        (
            vec!["sim", "trace", &file, "--csv", "-", "--pcapng", "-"],
            "expected only one trace for standard output (-)",
        ),
        (vec!["sim", "run"], "required arguments were not provided"),
        (
            vec!["sim", "rum", &file],
            "similar subcommand exists: 'run'",
        ),
        (
            vec!["sim", "run", &file, "--jsn"],
            "similar argument exists: '--json'",
        ),
        (
            vec!["sim", "trace", &file],
            "required arguments were not provided",
        ),
        (
            vec!["sim", "trace", &file, "--csv", "x.csv", "--run", "99"],
            "there is no run 99; expected 0 to 3",
        ),
        (
            vec!["sim", "trace", &file, "--csv", "x.csv", "--link", "nolink"],
            "there is no link \"nolink\"; there are bottleneck, ",
        ),
        (
            vec!["sim", "trace", &file, "--csv", "x.csv", "--flow", "tcp-9"],
            "there is no flow \"tcp-9\"; there are tcp-0, tcp-1, udp-0",
        ),
        (vec![], "Usage: comity <COMMAND>"),
    ] {
        let output = ends(2, &args);
        let text = said(&output);
        assert!(
            text.contains(expected),
            "comity {}:\n{text}",
            args.join(" ")
        );
    }
}
