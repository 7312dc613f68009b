//! Scenarios that the lab refuses, and its messages.

use std::process::Command;

use crate::{Bench, can_run, said};

const SMALL: &str = r#"
[scenario]
name = "small"
duration = "1s"
seeds = [1]

[topology]
kind = "dumbbell"
bottleneck = { rate = "8Mbps", delay = "5ms", queue = 60 }

[[flow]]
group = "tcp"

[[flow]]
group = "video"
transport = "sections"
workload = { kind = "cbr", rate = "1Mbps" }
"#;

/// Each message names the flow or the link, the request and the expectation. It comes before any
/// run.
#[test]
fn unsupported_scenarios_are_refused_before_the_first_run() {
    if !can_run() {
        return;
    }
    let bench = Bench::new(SMALL);
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["--set", "flow.tcp.controller=steady"],
            &["flow \"tcp-0\"", "\"steady\"", "expected one of", "cubic"],
        ),
        (
            &["--set", "flow.tcp.timeline={ deadline = '1s' }"],
            &["flow \"tcp-0\"", "`timeline`", "expected"],
        ),
        (
            &["--set", "flow.tcp.recovery=newreno"],
            &["flow \"tcp-0\"", "`recovery`", "expected"],
        ),
        (
            &["--set", "flow.tcp.initial_window=2"],
            &["flow \"tcp-0\"", "`initial_window`", "expected"],
        ),
        (
            &[
                "--set",
                "flow.tcp.stack=comity",
                "--set",
                "flow.tcp.handshake=false",
            ],
            &["flow \"tcp-0\"", "Comity's TCP", "`handshake`", "expected"],
        ),
        (
            &[
                "--set",
                "flow.tcp.workload={ kind = 'token_bucket', depth = '1kB', refill = '1kB', interval = '1s' }",
            ],
            &["flow \"tcp-0\"", "token_bucket", "expected greedy"],
        ),
        (
            &["--set", "flow.video.overhead=40B"],
            &["flow \"video-0\"", "`overhead`", "leave it out"],
        ),
        (
            &["--pcapng", "nowhere=x.pcapng"],
            &["\"nowhere\"", "expected one of: ", "bottleneck"],
        ),
        (
            &["--pcapng", "bottleneck=x", "--pcapng", "bottleneck=y"],
            &[
                "\"bottleneck\"",
                "expected each link and each file only once",
            ],
        ),
        (&["--pcapng", "bottleneck"], &["expected LINK=FILE"]),
    ];
    for (args, parts) in cases {
        let output = bench
            .comity(&["lab", "run", "flow.toml"])
            .args(*args)
            .output()
            .unwrap();
        let text = said(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        for part in *parts {
            assert!(text.contains(part), "{args:?}: no {part} in {text}");
        }
    }
    let files = std::fs::read_dir(bench.path("")).unwrap().count();
    assert_eq!(files, 1, "nothing was written beside the scenario");
}

/// Without root, a message says what to do.
#[test]
fn without_root_the_lab_lists_missing_requirements() {
    let bench = Bench::new(SMALL);
    let program = env!("CARGO_BIN_EXE_comity");
    let nobody = |args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--clear-groups", "--", program]);
        command.args(args).current_dir("/").output()
    };
    // The test is skipped if it cannot change to the user `nobody`, or if that user cannot read the
    // program.
    match nobody(&["--version"]) {
        Ok(version) if version.status.success() => {}
        _ => return,
    }
    let file = bench.path("flow.toml");
    let file = file.to_str().unwrap();
    for args in [&["lab", "check"][..], &["lab", "run", file]] {
        let output = nobody(args).unwrap();
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {text}");
        assert!(
            text.contains("need root: run it with sudo"),
            "{args:?}: {text}"
        );
    }
}
