//! Closed pipes and interrupts.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use crate::{root, said, small};

/// A reader that closes the pipe, such as `head`, causes no error.
#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_comity"))
        .args(["sim", "schema"])
        .current_dir(root())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// The interrupt key ends a long run at once, and earlier tables stay as they were.
#[cfg(unix)]
#[test]
fn an_interrupt_leaves_earlier_tables() {
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
            "--force",
            "--out",
        ])
        .arg(&path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = interrupt(child);
    assert!(
        said.starts_with("interrupted: 0 of 4000 runs are stored in "),
        "{said}"
    );
    assert!(
        said.ends_with("out.json.runs; the same command without --force continues\n"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "before");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

/// An interrupt also ends a long trace, and no unfinished file remains.
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

/// A stopped listener reports that nobody called. The stop itself is no error.
#[cfg(unix)]
#[test]
fn a_stopped_listener_reports_that_nobody_called() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_comity"))
        .args(["recv", "comity://:0", "/dev/null", "--insecure"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("listening on ") {
        assert_ne!(lines.read_line(&mut said).unwrap(), 0, "{said}");
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    lines.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{said}");
    assert!(said.ends_with("nobody called\n"), "{said}");
}

/// Presses the interrupt key, which must end the command with 130. Returns its messages.
#[cfg(unix)]
fn interrupt(child: std::process::Child) -> String {
    // Waits until the command handles the signal, as `/proc` shows. It does so before the first
    // run.
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
