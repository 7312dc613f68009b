//! `comity demo` from the outside: real sockets for three seconds, and no assertion that depends on
//! the load of the machine.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn demo(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_comity"))
        .arg("demo")
        .args(args)
        .output()
        .unwrap()
}

fn number(document: &Value, pointer: &str) -> f64 {
    let value = document.pointer(pointer);
    value
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("{pointer} is not in {document:#}"))
}

#[test]
fn a_short_demonstration_accounts_for_everything() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("demo.html");
    let picture = folder.path().join("demo.svg");
    let output = demo(&[
        "--duration",
        "3s",
        "--flows",
        "2",
        "--json",
        "--report",
        &report.to_string_lossy(),
        "--picture",
        &picture.to_string_lossy(),
    ]);
    let said = String::from_utf8_lossy(&output.stderr);
    // A busy machine is no failure: the document and the exit code report it.
    let document: Value = serde_json::from_slice(&output.stdout).expect(&said);
    let overload = document.pointer("/emulator/overload").unwrap();
    let is_overloaded = overload.as_array().is_some_and(|signs| !signs.is_empty());
    let expected = if is_overloaded { 3 } else { 0 };
    assert_eq!(output.status.code(), Some(expected), "{said}");

    // Four copies of three seconds at 25 pictures a second. Each begins up to three quarters of a
    // second after the one before.
    let sent = number(&document, "/pictures/sent");
    assert!((250.0..=300.0).contains(&sent), "{sent}");
    let of = |name: &str| number(&document, &format!("/sections/{name}"));
    let reported = of("on_time") + of("late") + of("gaps");
    assert_eq!(of("unreported"), 0.0);
    assert_eq!(of("sent"), reported);
    let kinds = document
        .pointer("/kinds")
        .and_then(Value::as_array)
        .unwrap();
    let by_kind: f64 = kinds.iter().map(|kind| number(kind, "/sent")).sum();
    assert_eq!(by_kind, of("sent"));
    assert_eq!(number(&document, "/bytes_after_deadline"), 0.0);
    assert_ne!(document.pointer("/cipher"), Some(&"nothing".into()));

    let flows = document
        .pointer("/flows")
        .and_then(Value::as_array)
        .unwrap();
    assert_eq!(flows.len(), 3);
    let shares: f64 = flows.iter().map(|flow| number(flow, "/share")).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    let rates: f64 = flows.iter().map(|flow| number(flow, "/mbps")).sum();
    let capacity = number(&document, "/setup/rate_mbps");
    // At most what the bottleneck lets through, and what waited in it when counting began.
    assert!(
        rates > 0.0 && rates < capacity * 1.1,
        "{rates} of {capacity}"
    );
    let jain = number(&document, "/jain");
    assert!((1.0 / 3.0..=1.0).contains(&jain), "{jain}");

    let transports = document.pointer("/transports").and_then(Value::as_array);
    let transports = transports.unwrap();
    let names: Vec<_> = transports.iter().map(|one| one["name"].as_str()).collect();
    assert_eq!(names, [Some("Comity"), Some("SRT"), Some("TCP, simulated")]);
    // SRT may be missing here, or the machine may be too busy.
    assert!(transports[0]["failure"].is_null() && transports[2]["failure"].is_null());
    for one in transports.iter().filter(|one| one["failure"].is_null()) {
        let seen = number(one, "/pictures");
        assert_eq!(seen, sent, "{one}");
        let shown = number(one, "/shown_in_time");
        assert_eq!(shown == sent, number(one, "/freezes") == 0.0, "{one}");
    }

    let page = std::fs::read_to_string(&report).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert_eq!(page.contains("Do not trust"), is_overloaded);
    let picture = std::fs::read_to_string(&picture).unwrap();
    assert!(picture.starts_with("<svg xmlns=") && picture.contains("deadline"));
}

#[test]
fn unplayable_files_are_refused_with_the_reason() {
    for (args, part) in [
        (&["--cc", "rino"][..], "did you mean \"reno\"?"),
        (
            &["--flows", "1", "--rivals", "cubik", "--no-report"][..],
            "did you mean \"cubic\"?",
        ),
        (
            &["--rate", "0bps", "--no-report"][..],
            "expected a rate above zero",
        ),
        (&["--duration", "0s"][..], "expected 1s to 600s"),
        (&["--loss", "200%"][..], "is not a share"),
        (&["--latency", "0ms"][..], "latency"),
        (&["--copies", "17"][..], "17"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_comity"))
            .current_dir(folder.path())
            .arg("demo")
            .args(args)
            .output()
            .unwrap();
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 0, "no report of nothing: {args:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(part), "{args:?}: {said}");
        assert!(!said.contains("Sending"), "{args:?}: {said}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn a_users_video_is_sent_once() {
    let clip = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../experiments/demo/clip/clip.ts"
    );
    let options = [
        "--flows",
        "0",
        "--duration",
        "2s",
        "--json",
        "--no-report",
        "--only-comity",
    ];
    let output = demo(&[&["--clip", clip], &options[..]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("clip.ts, about 0.5"), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).expect(&said);
    assert_eq!(document.pointer("/setup/clip"), Some(&clip.into()));
    assert_eq!(number(&document, "/setup/copies"), 1.0);
    assert_eq!(number(&document, "/pictures/sent"), 50.0);
    let transports = document.pointer("/transports").and_then(Value::as_array);
    let left_out = transports
        .unwrap()
        .iter()
        .filter(|one| one["failure"] == "--only-comity leaves it out" && one["pictures"].is_null());
    assert_eq!(left_out.count(), 2);

    for (file, code, part) in [
        ("no such file.ts", 6, "cannot open no such file.ts"),
        (env!("CARGO_MANIFEST_DIR"), 6, "cannot open"),
        (
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
            1,
            "has no pictures; expected a transport stream",
        ),
    ] {
        let output = demo(&[&["--clip", file], &options[..]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(part) && !said.contains("Sending"), "{said}");
    }
}

#[test]
fn an_unwritable_report_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none");
    for (file, part) in [
        (folder.path().to_owned(), "name a file in it".to_owned()),
        (
            missing.join("demo.html"),
            format!("make its folder first: mkdir -p {}", missing.display()),
        ),
    ] {
        let output = demo(&["--report", &file.to_string_lossy()]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("cannot write") && said.contains(&part),
            "{said}"
        );
        assert!(!said.contains("on time"), "{said}");
    }
    assert!(!missing.exists());
}

/// The results of an unfinished run are printed; files stay as they were.
#[cfg(unix)]
#[test]
fn an_interrupted_demo_prints_results_and_keeps_files() {
    let folder = tempfile::tempdir().unwrap();
    let (report, picture) = (folder.path().join("a.html"), folder.path().join("b.svg"));
    std::fs::write(&report, "an earlier page").unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_comity"))
        .args(["demo", "--duration", "600s", "--json", "--flows", "0"])
        .args([std::ffi::OsStr::new("--report"), report.as_ref()])
        .args([std::ffi::OsStr::new("--picture"), picture.as_ref()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    // The video is running.
    while !said.contains(" on time | ") {
        assert_ne!(lines.read_line(&mut said).unwrap(), 0, "{said}");
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    lines.read_to_string(&mut said).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("of 600 s, and no file was written"), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).expect(&said);
    assert!(document["report"].is_null());
    assert!((0.1..600.0).contains(&number(&document, "/length_s")));
    for other in [1, 2] {
        let reason = &document["transports"][other]["failure"];
        assert_eq!(reason, "the demo was interrupted");
    }
    assert_eq!(std::fs::read_to_string(&report).unwrap(), "an earlier page");
    assert!(!picture.exists());
}
