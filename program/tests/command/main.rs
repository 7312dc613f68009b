//! The command as users and scripts see it: its output, its files and its exit codes.

mod check;
mod emulate;
mod kernel;
mod pages;
mod refusals;
mod runs;
mod signals;
mod sweeps;
mod traces;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
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

/// Runs the command, which must end with `code`.
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
