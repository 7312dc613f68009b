//! The command as people and scripts meet it: what it prints, what it writes, how it ends.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn comity(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_comity"))
        .args(args)
        .current_dir(root())
        .output()
        .unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Runs the command, which has to end with `code`.
fn ends(code: i32, args: &[&str]) -> Output {
    let output = comity(args);
    assert_eq!(
        output.status.code(),
        Some(code),
        "comity {}\n{}{}",
        args.join(" "),
        out(&output),
        said(&output)
    );
    output
}

const SMALL: &str = r#"
[scenario]
name = "small"
description = "Two kinds of flows"
duration = "5s"
seeds = { count = 2 }

[topology]
kind = "dumbbell"
bottleneck = { rate = "1Mbps", delay = "10ms", queue = 10 }
access = { rate = "10Mbps", delay = "2ms" }

[[flow]]
group = "tcp"
count = 2

[[flow]]
group = "udp"
transport = "datagram"
workload = { kind = "cbr", rate = "100kbps" }

[[sweep]]
name = "queue"
parameter = "topology.bottleneck.queue"
values = [5, "10 packets"]
"#;

/// A folder with a scenario file in it.
fn small() -> (TempDir, String) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("small.toml");
    fs::write(&file, SMALL).unwrap();
    let path = file.to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn a_run_prints_a_table_for_people() {
    let (_folder, file) = small();
    let text = out(&ends(0, &["sim", "run", &file]));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "small: Two kinds of flows");
    for word in [
        "queue", "group", "flows", "goodput", "±95%", "min", "max", "Jain", "loss", "resent",
        "timeouts", "delay ms",
    ] {
        assert!(lines[2].contains(word), "{word} is not in {}", lines[2]);
    }
    let words = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>();
    assert_eq!(words(3)[..3], ["5", "tcp", "2"]);
    assert_eq!(words(4)[..3], ["5", "udp", "1"]);
    assert_eq!(words(5)[..4], ["10", "packets", "tcp", "2"]);
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

/// A reader's share of reads that found their data is shown where there is a reader, and a warm-up is where
/// there is one.
#[test]
fn readers_and_the_warmup_are_mentioned_where_they_are() {
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
    // One byte is always there; datagrams have no reader.
    assert_eq!(words(3).last(), Some(&"100.0%"), "{text}");
    assert_eq!(words(4).last(), Some(&"-"), "{text}");
    assert!(text.contains("from the end of its warm-up"), "{text}");
}

/// Every key of the document is described, and none is described that is not there.
#[test]
fn the_json_document_is_the_one_described() {
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
    let page = fs::read_to_string(root().join("docs/run-json.md")).unwrap();
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
    assert_eq!(document["format"], "comity-sim-run/1");
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

/// The same numbers for any number of threads, to the last digit.
#[test]
fn threads_change_nothing() {
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
    for (name, expected) in [
        ("out.csv", "flows.csv"),
        ("out", "flows.parquet"),
        ("out.parquet", "runs.parquet"),
    ] {
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

/// Equal flows are fair from some bin on with a wide tolerance, and never with none.
#[test]
fn the_time_to_fair_shares_is_shown_where_a_criterion_is_given() {
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
fn mistakes_end_with_2_and_say_what_is_wrong() {
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
            vec!["sim", "run", "nowhere.toml"],
            "`nowhere.toml` cannot be read",
        ),
        #[cfg(unix)]
        (
            vec!["sim", "run", "/dev/zero"],
            "`/dev/zero` cannot be read: it is longer than 16777216 bytes",
        ),
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
            "2 is given twice",
        ),
        (
            vec!["sim", "run", &file, "--set", "scenario.seeds=[4,4]"],
            "a seed is given twice",
        ),
        (
            vec!["sim", "run", &file, "--out", "results.xml"],
            "no results are stored as .xml; expected .parquet, .csv, .json or a name without ending",
        ),
        (
            vec!["sim", "trace", &file, "--csv", "-", "--pcapng", "-"],
            "the standard output (-) can take one trace only",
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
        (
            vec!["sim", "list", "no/such/folder"],
            "cannot list no/such/folder",
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

#[test]
fn a_trace_is_written_to_every_file() {
    let (folder, file) = small();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (pcapng, qlog, csv) = (path("x.pcapng"), path("x.sqlog"), path("x.csv"));
    ends(
        0,
        &[
            "sim",
            "trace",
            &file,
            "--run",
            "1",
            "--pcapng",
            &pcapng,
            "--qlog",
            &qlog,
            "--csv",
            &csv,
            "--link",
            "bottleneck",
        ],
    );
    assert_eq!(
        fs::read(&pcapng).unwrap()[..4],
        [0x0a, 0x0d, 0x0d, 0x0a],
        "a section header block"
    );
    for flow in ["tcp-0", "tcp-1", "udp-0"] {
        let log = fs::read_to_string(path(&format!("x.{flow}.sqlog"))).unwrap();
        assert!(log.contains("transport:packet_sent"), "{flow}");
    }
    let events = fs::read_to_string(&csv).unwrap();
    assert!(events.starts_with("time_ns,place,event,flow,"));
    assert!(events.contains(",bottleneck,carried,udp-0,forth,1500,"));
    assert!(
        !events.contains(",bottleneck.reverse,"),
        "this link was not asked for"
    );
    assert!(
        !events.contains(&u64::MAX.to_string()),
        "no slow-start threshold is an empty cell"
    );
    // To the standard output goes the same, and no file is called so.
    let output = ends(
        0,
        &[
            "sim",
            "trace",
            &file,
            "--run",
            "1",
            "--csv",
            "-",
            "--link",
            "bottleneck",
        ],
    );
    assert_eq!(out(&output), events);
    assert_eq!(said(&output), "");
    assert!(!root().join("-").exists());
    // A single flow needs no name in the file's.
    ends(
        0,
        &[
            "sim",
            "trace",
            &file,
            "--qlog",
            &path("one.sqlog"),
            "--flow",
            "tcp-1",
        ],
    );
    assert!(Path::new(&path("one.sqlog")).is_file());
    // What cannot be written leaves nothing behind.
    ends(
        1,
        &[
            "sim",
            "trace",
            &file,
            "--csv",
            &path("y.csv"),
            "--pcapng",
            &path("no/folder/x.pcapng"),
        ],
    );
    let left: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("partial") || name.starts_with("y."))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn scenarios_are_listed() {
    let text = out(&ends(0, &["sim", "list"]));
    assert!(text.lines().next().unwrap().starts_with("file"));
    let demo = text
        .lines()
        .find(|line| line.starts_with("experiments/demo/dumbbell.toml"))
        .unwrap();
    assert!(
        demo.contains("demo-dumbbell") && demo.contains("10"),
        "{demo}"
    );
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("a.toml"), "[scenario]\nname = 1\n").unwrap();
    fs::write(
        folder.path().join("Cargo.toml"),
        "[package]\nname = \"x\"\n",
    )
    .unwrap();
    let dir = folder.path().to_str().unwrap();
    let text = out(&ends(0, &["sim", "list", dir]));
    assert!(text.contains("does not read"), "{text}");
    assert!(!text.contains("Cargo.toml"), "{text}");
    let document: Value =
        serde_json::from_slice(&ends(0, &["sim", "list", "--json"]).stdout).unwrap();
    let scenarios = document["scenarios"].as_array().unwrap();
    let flows = scenarios
        .iter()
        .find(|entry| entry["name"] == "dumbbell_flows")
        .unwrap();
    assert_eq!(flows["runs"], 80);
}

#[test]
fn the_reference_is_printed() {
    let page = fs::read_to_string(root().join("docs/scenario.md")).unwrap();
    assert_eq!(out(&ends(0, &["sim", "schema"])), page);
    let schema: Value =
        serde_json::from_slice(&ends(0, &["sim", "schema", "--json"]).stdout).unwrap();
    assert_eq!(schema["title"], "Comity scenario");
}

#[test]
fn help_completions_and_manual() {
    for (args, words) in [
        (
            vec!["--help"],
            vec!["Examples:", "sim", "completions", "man"],
        ),
        (
            vec!["sim", "--help"],
            vec!["run", "list", "schema", "trace"],
        ),
        (
            vec!["sim", "run", "--help"],
            vec![
                "Exit codes:",
                "Examples:",
                "--out",
                "--jobs",
                "--seeds",
                "--set",
                "--quiet",
            ],
        ),
        (
            vec!["sim", "trace", "--help"],
            vec![
                "Examples:",
                "--pcapng",
                "--qlog",
                "--csv",
                "--link",
                "--flow",
            ],
        ),
    ] {
        let text = out(&ends(0, &args));
        for word in words {
            assert!(
                text.contains(word),
                "comity {}: no {word} in\n{text}",
                args.join(" ")
            );
        }
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(out(&ends(0, &["completions", shell])).contains("comity"));
    }
    let folder = TempDir::new().unwrap();
    let dir = folder.path().join("man1");
    ends(0, &["man", dir.to_str().unwrap()]);
    let page = fs::read_to_string(dir.join("comity-sim-run.1")).unwrap();
    assert!(page.contains(".TH"), "{page}");
}

/// A reader that goes away, such as `head`, is no failure.
#[test]
fn a_closed_pipe_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_comity"))
        .args(["sim", "schema"])
        .current_dir(root())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// The interrupt key ends a long run at once, and earlier results stay as they were.
#[cfg(unix)]
#[test]
fn an_interrupt_stores_nothing() {
    let (folder, file) = small();
    let path = folder.path().join("out.json");
    fs::write(&path, "before").unwrap();
    // An hour of simulated time for each of 4000 runs.
    let child = Command::new(env!("CARGO_BIN_EXE_comity"))
        .args([
            "sim",
            "run",
            &file,
            "--seeds",
            "1-2000",
            "--set",
            "scenario.duration=1h",
            "--out",
        ])
        .arg(&path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(interrupt(child), "interrupted: no results were stored\n");
    assert_eq!(fs::read_to_string(&path).unwrap(), "before");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

/// So does it end a long trace, and nothing unfinished is left.
#[cfg(unix)]
#[test]
fn an_interrupted_trace_leaves_nothing() {
    let (folder, file) = small();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("events.csv"), "before").unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_comity"))
        .args(["sim", "trace", &file, "--set", "scenario.duration=1000h"])
        .args(["--csv", &path("events.csv"), "--qlog", &path("flow.qlog")])
        .args(["--pcapng", &path("link.pcapng")])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(interrupt(child), "interrupted: no trace was written\n");
    assert_eq!(fs::read_to_string(path("events.csv")).unwrap(), "before");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

/// Presses the interrupt key, which ends the command with 130. Returns what it said.
#[cfg(unix)]
fn interrupt(child: std::process::Child) -> String {
    // The handler of the key is there before the first run is; `/proc` tells when.
    let caught = || {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .is_some_and(|mask| mask & (1 << 1) != 0)
    };
    while !caught() {
        std::thread::yield_now();
    }
    let pressed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(pressed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    said(&output)
}

/// A port of the loopback interface where nobody listens.
fn free_port() -> u16 {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

#[test]
fn the_emulator_carries_packets_and_accounts_for_them() {
    use std::io::{BufRead, BufReader, Read};
    use std::net::UdpSocket;
    use std::time::Duration;

    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    let patience = Some(Duration::from_secs(10));
    target.set_read_timeout(patience).unwrap();
    let to = target.local_addr().unwrap().to_string();
    let mut child = Command::new(env!("CARGO_BIN_EXE_comity"))
        .args(["emulate", "--listen", ":0", "--to", &to])
        .args(["--delay", "1ms", "--up-rate", "8Mbps", "--json"])
        // Whether this machine is busy is not what is tested.
        .args(["--late", "60s", "--duration", "1s"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    lines.read_line(&mut first).unwrap();
    let listening: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(listening["event"], "listening");
    let address = listening["address"].as_str().unwrap();
    let caller = UdpSocket::bind("127.0.0.1:0").unwrap();
    caller.set_read_timeout(patience).unwrap();
    let mut buffer = [0; 100];
    for _ in 0..10 {
        caller.send_to(b"question", address).unwrap();
        let (length, from) = target.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"question");
        target.send_to(b"answer", from).unwrap();
        assert_eq!(caller.recv(&mut buffer).unwrap(), 6);
    }
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success(), "{rest}");
    let report: Value = serde_json::from_str(rest.trim()).unwrap();
    assert_eq!(report["event"], "report");
    assert_eq!(report["overload"], serde_json::json!([]));
    for (way, bytes) in [("forward", 36), ("backward", 34)] {
        let way = &report[way];
        assert_eq!(way["arrived"]["packets"], 10, "{way}");
        assert_eq!(way["released"]["bytes"], 10 * bytes, "{way}");
        assert_eq!(way["timing"]["count"], 10, "{way}");
        let bars = way["timing_histogram"].as_array().unwrap();
        let counts = bars.iter().map(|bar| bar["count"].as_u64().unwrap());
        assert_eq!(counts.sum::<u64>(), 10);
    }
}

#[test]
fn an_emulator_that_cannot_work_is_refused_with_the_reason() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let free = format!("127.0.0.1:{}", free_port());
    let refused = |args: &[&str], reasons: &[&str]| {
        let args: Vec<_> = ["emulate"].iter().chain(args).copied().collect();
        let said = said(&ends(2, &args));
        for reason in reasons {
            assert!(said.contains(reason), "{reason} is not in:\n{said}");
        }
    };
    refused(
        &["--listen", &free, "--to", &free],
        &["the address to listen on"],
    );
    refused(
        &["--listen", ":0", "--to", "nowhere"],
        &["cannot resolve", "host:port"],
    );
    refused(
        &["--listen", ":0", "--to", "127.0.0.1:0"],
        &["cannot reach 127.0.0.1:0"],
    );
    refused(
        &["--listen", ":0", "--to", &free, "--rate", "0bps"],
        &["--rate", "0bps"],
    );
    refused(
        &["--listen", ":0", "--to", &free, "--up-delay", "soon"],
        &["--up-delay", "soon"],
    );
    refused(
        &["--listen", ":0", "--to", &free, "--loss", "200%"],
        &["200%", "100%"],
    );
    refused(
        &["--listen", ":0", "--to", &free, "--config", "none.toml"],
        &["none.toml"],
    );
    refused(
        &["--listen", ":0", "--to", &free, "--trace", "none.trace"],
        &["none.trace"],
    );
    let said = said(&ends(5, &["emulate", "--listen", &address, "--to", &free]));
    for reason in ["cannot listen on", &address, "ss -lunp"] {
        assert!(said.contains(reason), "{reason} is not in:\n{said}");
    }
}
