//! Files that cannot be opened, and words of other tools: one exit code, and advice.

use std::fs;

use comity_testkit::tracked;
use serde_json::Value;
use tempfile::TempDir;

use crate::{ends, out, root, said, small};

/// Every verb that reads a file ends with code 6 and names the file and a remedy.
#[test]
fn unopenable_files_end_with_the_same_code() {
    let folder = TempDir::new().unwrap();
    let missing = folder.path().join("no/such");
    let missing = missing.to_str().unwrap();
    for args in [
        &["sim", "run", missing][..],
        &["sim", "trace", missing, "--csv", "-"],
        &["sim", "list", missing],
        &["results", "merge", missing, "--out", "x"],
        &["demo", "--clip", missing, "--no-report"],
        &["check", missing],
        &["send", missing, "comity://127.0.0.1:9", "--insecure"],
        &["keygen", "--public", missing],
        &[
            "emulate",
            "--listen",
            ":0",
            "--to",
            "127.0.0.1:9",
            "--config",
            missing,
        ],
    ] {
        let text = said(&ends(6, args));
        assert!(!text.contains("mkdir"), "{args:?}: {text}");
        assert!(
            text.starts_with("error: ") && text.contains(missing),
            "{args:?}: {text}"
        );
    }
}

#[test]
fn a_scenario_that_is_not_text_is_reported() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("film.ts");
    fs::write(&file, [0x47, 0xff, 0xfe, 0x00]).unwrap();
    let file = file.to_str().unwrap();
    let text = said(&ends(6, &["sim", "run", "nowhere.toml"]));
    assert!(text.contains("`nowhere.toml` cannot be read"), "{text}");
    #[cfg(unix)]
    {
        let text = said(&ends(6, &["sim", "run", "/dev/zero"]));
        let expected = "`/dev/zero` cannot be read: it is longer than 16777216 bytes";
        assert!(text.contains(expected), "{text}");
    }
    let text = said(&ends(6, &["sim", "run", file]));
    assert!(text.contains("it is not text"), "{text}");
    assert!(text.contains("expected a scenario in TOML"), "{text}");
    let text = said(&ends(
        2,
        &[
            "emulate",
            "--listen",
            ":0",
            "--to",
            "127.0.0.1:9",
            "--config",
            file,
        ],
    ));
    assert!(
        text.contains("expected the keys of a link in TOML"),
        "{text}"
    );
}

#[test]
fn advice_fits_the_verb() {
    let text = said(&ends(2, &["check", "http://host/a.ts"]));
    assert!(
        text.contains("| comity check -") && !text.contains("comity send"),
        "{text}"
    );
    let text = said(&ends(2, &["check", "srt://host:1"]));
    assert!(
        text.contains("srt-live-transmit") && text.contains("| comity check -"),
        "{text}"
    );
    let sent = [
        "send",
        "http://host/a.ts",
        "comity://127.0.0.1:9",
        "--insecure",
    ];
    let text = said(&ends(2, &sent));
    assert!(text.contains("| comity send -"), "{text}");
    let text = said(&ends(
        2,
        &[
            "emulate",
            "--listen",
            ":0",
            "--to",
            "127.0.0.1:9",
            "--rate",
            "8Mbit",
        ],
    ));
    assert!(text.contains("did you mean Mbit/s?"), "{text}");
}

#[test]
fn a_controller_that_cannot_drive_tcp_is_neither_offered_nor_accepted() {
    let send = [
        "tcp",
        "send",
        "a.ts",
        "10.0.0.1:9",
        "--address",
        "10.0.0.2",
        "--cc",
        "iftp",
    ];
    let text = said(&ends(2, &send));
    assert!(
        text.contains("iftp cannot drive TCP; expected one of "),
        "{text}"
    );
    assert!(text.contains("cubic"), "{text}");
    let script = out(&ends(0, &["completions", "bash"]));
    let of_tcp = script
        .rsplit("comity__subcmd__tcp__subcmd__send)")
        .next()
        .unwrap();
    let of_tcp = of_tcp
        .split("--cc)")
        .nth(1)
        .unwrap()
        .lines()
        .nth(1)
        .unwrap();
    assert!(
        of_tcp.contains("libra") && !of_tcp.contains("iftp"),
        "{of_tcp}"
    );
}

#[test]
fn a_shard_reports_the_remaining_runs() {
    let (folder, file) = small();
    let path = folder.path().join("parts");
    let path = path.to_str().unwrap();
    let shard = |which| ["sim", "run", &file, "-q", "--out", path, "--shard", which];
    let first = said(&ends(0, &shard("1/2")));
    assert!(
        first.contains("which has 2 of 4; once it has all shards"),
        "{first}"
    );
    let second = said(&ends(0, &shard("2/2")));
    let merge = format!("comity results merge {path} --out {path}");
    assert!(
        second.contains("which has 4 of 4; this makes tables"),
        "{second}"
    );
    assert!(second.contains(&merge), "{second}");
}

/// Programs that read JSON get the error, on whichever stream the objects are.
#[test]
fn failures_are_json_objects() {
    let folder = TempDir::new().unwrap();
    let missing = folder.path().join("none.ts");
    let missing = missing.to_str().unwrap();
    let to = "comity://127.0.0.1:9";
    let failed = ends(6, &["send", missing, to, "--insecure", "--json"]);
    let object: Value = serde_json::from_str(&out(&failed)).unwrap();
    assert_eq!(
        (&object["event"], &object["code"]),
        (&"error".into(), &6.into())
    );
    assert!(object["message"].as_str().unwrap().contains(missing));
    assert!(said(&failed).starts_with("error: "));
    // The standard output carries the media.
    let failed = ends(2, &["recv", "comity://:0?latency=never", "-", "--json"]);
    assert_eq!(out(&failed), "");
    let object: Value = serde_json::from_str(&said(&failed)).unwrap();
    assert_eq!(
        (&object["event"], &object["code"]),
        (&"error".into(), &2.into())
    );
}

/// `sudo` does not find commands in a home folder, so every example has the whole path.
#[test]
fn no_example_runs_the_command_as_root_by_its_name_alone() {
    let mut found = Vec::new();
    for path in tracked::files(&root(), &["md", "rs"]) {
        if path.ends_with("refusals.rs") || path.ends_with("CHANGELOG.md") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        found.extend(text.contains("sudo comity ").then_some(path));
    }
    assert!(found.is_empty(), "{found:?}");
}
