//! `comity claims` as people and scripts meet it.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::{ends, out, said};

const SCENARIO: &str = r#"
[scenario]
name = "alone"
duration = "5s"
seeds = { count = 2 }

[topology]
kind = "dumbbell"
bottleneck = { rate = "1Mbps", delay = "10ms" }

[[flow]]
group = "steady"
transport = "datagram"
packet = "1000B"
start = { spread = "1s" }
workload = { kind = "cbr", rate = "200kbps" }
"#;

/// A folder with one claim, whose check is `holds` with `more` behind it.
fn folder(holds: &str, more: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    let system = folder.path().join("some");
    fs::create_dir(&system).unwrap();
    fs::write(system.join("alone.toml"), SCENARIO).unwrap();
    let claims = format!(
        r#"
[[claim]]
id = "all-arrives"
says = "what is sent arrives"
scenario = "alone.toml"
measure = [{{ name = "loss", is = "sum(flow.steady.dropped_packets) / sum(flow.steady.sent_packets)" }}]
check = [{{ says = "loss", holds = "{holds}", paper = 0.25{more} }}]

[[claim]]
id = "some-day"
says = "more to come"
missing = "nobody wrote it"
"#
    );
    fs::write(system.join("claims.toml"), claims).unwrap();
    folder
}

fn dir(folder: &TempDir) -> &str {
    folder.path().to_str().unwrap()
}

#[test]
fn a_claim_that_holds_is_printed_with_what_the_paper_has() {
    let folder = folder("loss <= 0.5", "");
    let text = out(&ends(0, &["claims", "--dir", dir(&folder)]));
    let line = text
        .lines()
        .find(|line| line.trim_start().starts_with("loss"))
        .unwrap();
    let cells: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(
        cells,
        ["loss", "0.25", "0", "0", "<=", "0.5", "holds"],
        "{text}"
    );
    assert!(
        text.contains("2 claims: 1 hold, 1 are not reproduced yet (quick form"),
        "{text}"
    );
}

#[test]
fn only_what_fails_unexpectedly_ends_with_one() {
    let surprise = folder("loss > 0.5", "");
    let text = out(&ends(1, &["claims", "some", "--dir", dir(&surprise)]));
    assert!(text.contains("1 fail unexpectedly"), "{text}");
    let known = folder(
        "loss > 0.5",
        ", expected = 'fails', reason = 'the link is wide'",
    );
    let text = out(&ends(0, &["claims", "all-arrives", "--dir", dir(&known)]));
    assert!(
        text.contains("fails") && text.contains("the link is wide"),
        "{text}"
    );
    assert!(text.contains("1 claim: 0 hold, 1 fail as known"), "{text}");
    assert!(
        text.contains("1 check judged: 0 hold, 1 fail as known, 0 fail unexpectedly"),
        "{text}"
    );
    let better = folder(
        "loss <= 0.5",
        ", expected = 'fails', reason = 'the link is narrow'",
    );
    let text = out(&ends(0, &["claims", "--dir", dir(&better)]));
    assert!(
        text.contains("1 check was known to fail and held"),
        "{text}"
    );
}

#[test]
fn the_document_says_the_same() {
    let folder = folder("loss <= 0.5", "");
    let parsed = |args: &[&str]| -> Value {
        let args = [args, &["--json", "--dir", dir(&folder)]].concat();
        serde_json::from_slice(&ends(0, &args).stdout).unwrap()
    };
    let document = parsed(&["claims", "--full", "--jobs", "2"]);
    assert_eq!(document["format"], "comity-claims/1");
    assert_eq!(document["form"], "full");
    assert_eq!(document["counts"]["hold"], 1);
    let row = &document["claims"][0]["checks"][0]["rows"][0];
    assert_eq!(
        (&row["value"], &row["paper"]),
        (&Value::from(0.0), &Value::from(0.25))
    );
    assert_eq!(row["interval"]["method"], "jackknife");
    assert_eq!(row["bounds"][0]["relation"], "<=");
    assert_eq!(document["claims"][1]["missing"], "nobody wrote it");
    let list = parsed(&["claims", "--list"]);
    assert_eq!(list["claims"][0]["runs"], 2);
    let file = list["claims"][0]["scenarios"][0].as_str().unwrap();
    assert_eq!(Path::new(file), folder.path().join("some/alone.toml"));
}

#[test]
fn what_is_not_there_is_told() {
    let folder = folder("lost <= 0.5", "");
    let text = said(&ends(2, &["claims", "--dir", dir(&folder)]));
    assert!(
        text.contains("called `lost`") && text.contains("claims.toml:7:"),
        "{text}"
    );
    let text = said(&ends(2, &["claims", "--dir", "nowhere"]));
    assert!(text.contains("nowhere cannot be read"), "{text}");
    let text = said(&ends(2, &["claims", "psp-fig7-singel", "--list"]));
    assert!(text.contains("did you mean `psp-fig7-single`?"), "{text}");
    let text = out(&ends(0, &["claims", "packet_spacing", "--list"]));
    assert!(
        text.contains("psp-fig7-single") && !text.contains("libra"),
        "{text}"
    );
}
