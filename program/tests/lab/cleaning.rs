//! A lab leaves nothing behind, however it ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::{Bench, can_run, comity, said};

/// Starts a lab with programs that run for hours, some in the background and some in their own
/// sessions. Each has `mark` among its arguments.
fn long_run(group: &str, mark: &str) -> (Bench, Child) {
    let scenario = format!(
        r#"
[scenario]
name = "long"
duration = "1h"
seeds = [1]

[topology]
kind = "dumbbell"
bottleneck = {{ rate = "8Mbps", delay = "5ms", queue = 60 }}

[[flow]]
group = "{group}"
transport = "command"
sender = "setsid sleep 3601.{mark} & sleep 3602.{mark} & sleep 3603.{mark}"
receiver = "sleep 3604.{mark}"

[[flow]]
group = "{group}-tcp"
"#
    );
    let bench = Bench::new(&scenario);
    let lab = bench
        .comity(&["lab", "run", "flow.toml"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    (bench, lab)
}

/// The sleeping programs with this mark.
fn processes(mark: &str) -> Vec<String> {
    let of = |entry: std::io::Result<fs::DirEntry>| {
        let words = fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        (words.starts_with("sleep ") && words.contains(mark)).then_some(words)
    };
    fs::read_dir("/proc").unwrap().filter_map(of).collect()
}

/// The namespaces of the flows of a group.
fn namespaces(group: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mark = format!("-{group}-");
    paths
        .filter(|path| path.to_string_lossy().contains(&mark))
        .collect()
}

/// Waits until the condition holds.
#[allow(
    clippy::disallowed_methods,
    reason = "it looks at processes and namespaces of the system, which tell nobody when they change"
)]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("ten seconds went by without: {what}");
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// The configuration of the host's own network.
fn own_network() -> Vec<String> {
    let output_of = |tool: &str, args: &[&str]| match Command::new(tool).args(args).output() {
        Ok(output) => format!(
            "{tool} {args:?}: {}",
            String::from_utf8_lossy(&output.stdout)
        ),
        Err(_) => format!("no {tool}"),
    };
    let mut all = vec![
        output_of("ip", &["-o", "link"]),
        output_of("ip", &["-br", "address"]),
        output_of("ip", &["-4", "route", "show", "table", "all"]),
        output_of("ip", &["-6", "route", "show", "table", "all"]),
        output_of("ip", &["rule"]),
        output_of("iptables-save", &[]),
        output_of("nft", &["list", "ruleset"]),
    ];
    let mut folders = vec![PathBuf::from("/proc/sys/net")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if !is_counter(&path) {
                // Some settings can only be written.
                let value = fs::read_to_string(&path).unwrap_or_default();
                all.push(format!("{}: {value}", path.display()));
            }
        }
    }
    all.sort();
    all
}

/// Whether a file is a counter rather than a setting.
fn is_counter(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with("_count") || name.ends_with("_nr")
}

/// A killed lab leaves namespaces and programs. The next start or `comity lab clean` ends and
/// removes them. The host's own network does not change.
#[test]
fn remains_of_a_killed_lab_are_removed() {
    if !can_run() {
        return;
    }
    let before = own_network();
    let mark = format!("1{}", std::process::id());
    let (_bench, mut lab) = long_run("killed", &mark);
    until("four programs", || processes(&mark).len() == 4);
    assert_eq!(namespaces("killed").len(), 4, "two ends of two flows");
    assert_eq!(own_network(), before);
    send(&lab, Signal::KILL);
    lab.wait().unwrap();
    let clean = comity(&["lab", "clean"]).output().unwrap();
    assert!(clean.status.success(), "{}", said(&clean));
    let text = String::from_utf8_lossy(&clean.stdout);
    // Another test's lab may have removed them first.
    assert!(text.ends_with("network namespaces removed\n"), "{text}");
    assert_eq!(processes(&mark), [""; 0]);
    assert_eq!(namespaces("killed"), [""; 0].map(PathBuf::from));
    assert_eq!(own_network(), before);
}

/// After SIGINT or SIGTERM a lab removes everything that it made, and its exit code reports the
/// signal.
#[test]
fn an_interrupted_lab_leaves_nothing() {
    if !can_run() {
        return;
    }
    for (signal, group) in [(Signal::INT, "pressed"), (Signal::TERM, "ended")] {
        let mark = format!("2{}", std::process::id());
        let (_bench, lab) = long_run(group, &mark);
        until("four programs", || processes(&mark).len() == 4);
        send(&lab, signal);
        let output = lab.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", said(&output));
        let said = said(&output);
        assert!(
            said.ends_with("interrupted: no results were stored\n"),
            "{said}"
        );
        assert_eq!(processes(&mark), [""; 0]);
        assert_eq!(namespaces(group), [""; 0].map(PathBuf::from));
    }
}
