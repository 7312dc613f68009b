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

/// Looks for `words` in what `comity claims` says of a folder. It has to end with `code`.
fn told(folder: &TempDir, code: i32, args: &[&str], words: &[&str]) {
    let run = ends(code, &[&["claims", "--dir", dir(folder)], args].concat());
    let text = format!("{}{}", out(&run), said(&run));
    for word in words {
        assert!(text.contains(word), "{word:?} in\n{text}");
    }
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
    told(&surprise, 1, &["some"], &["1 fail unexpectedly"]);
    let known = folder(
        "loss > 0.5",
        ", expected = 'fails', reason = 'the link is wide'",
    );
    told(
        &known,
        0,
        &["all-arrives"],
        &[
            "fails, as known",
            "the link is wide",
            "1 claim: 0 hold, 1 fail as known",
            "1 check judged: 0 hold, 1 fail as known, 0 fail unexpectedly",
        ],
    );
    let better = folder(
        "loss <= 0.5",
        ", expected = 'fails', reason = 'the link is narrow'",
    );
    told(&better, 0, &[], &["1 check was known to fail and held"]);
}

#[test]
fn a_claim_that_is_judged_in_part_holds_in_part() {
    let whole = "all-arrives holds\n";
    let part = "all-arrives holds in part\n";
    for (further, said) in [
        ("shows = 'loss'", whole),
        ("shows = 'loss', paper = 0.5", part),
        ("holds = 'loss < 1', form = 'full'", part),
        (
            "holds = 'loss > 1', expected = 'fails', reason = 'why'",
            part,
        ),
        ("holds = 'loss > 1'", "all-arrives fails, unexpectedly\n"),
    ] {
        let more = format!(" }}, {{ says = 'further', {further}");
        let code = i32::from(said.contains("unexpectedly"));
        told(&folder("loss <= 0.5", &more), code, &[], &[said]);
    }
}

#[test]
fn a_value_that_is_shown_says_why_it_is_far_from_the_paper() {
    let far = " }, { says = 'further', shows = 'loss', paper = 0.5, reason = 'the link is wide'";
    told(
        &folder("loss <= 0.5", far),
        0,
        &[],
        &["  further: the link is wide\n"],
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
    assert_eq!(document["format"], "comity-claims/2");
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
    told(&folder, 2, &[], &["called `lost`", "claims.toml:7:"]);
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

/// Away from the project it says where the claims are.
#[test]
fn a_folder_that_is_not_there_is_told_with_the_option_that_names_it() {
    let said = said(&ends(2, &["claims", "--list", "--dir", "no/such/folder"]));
    assert!(
        said.contains("no/such/folder cannot be read") && said.contains("--dir names the folder"),
        "{said}"
    );
}
