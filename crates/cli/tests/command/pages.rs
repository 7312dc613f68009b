//! What the command tells of itself and of the scenarios.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::{ends, out, root};

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
