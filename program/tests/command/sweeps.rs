//! Sweeps that are interrupted, divided and continued.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::{ends, root, said, small};

/// The arguments of a sweep of 60 runs into a folder.
fn sweep<'a>(file: &'a str, path: &'a str) -> Vec<&'a str> {
    let words = "sim run FILE --seeds 1-30 --set scenario.bins=1s --jobs 2 -q --out PATH";
    let word = |word| match word {
        "FILE" => file,
        "PATH" => path,
        word => word,
    };
    words.split(' ').map(word).collect()
}

fn start(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_comity"))
        .args(args)
        .current_dir(root())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The files of a folder of tables, with their bytes.
fn tables(at: &Path) -> Vec<(String, Vec<u8>)> {
    let mut tables: Vec<_> = fs::read_dir(at)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    tables.sort();
    tables
}

/// A sweep that is killed at any time, repeatedly, ends with the same bytes as an uninterrupted
/// one.
#[test]
fn a_killed_sweep_resumes_to_identical_results() {
    let (folder, file) = small();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (whole, killed) = (path("whole"), path("killed"));
    ends(0, &sweep(&file, &whole));
    let journals = folder.path().join("killed.runs");
    let stored = || -> u64 {
        let entries = fs::read_dir(&journals).into_iter().flatten().flatten();
        // The description is renamed when it is whole; journals keep their names.
        let journals = entries.filter(|entry| entry.path().extension() == Some("journal".as_ref()));
        journals.map(|entry| entry.metadata().unwrap().len()).sum()
    };
    let mut kills = 0;
    let mut before = 0;
    loop {
        let mut child = start(&sweep(&file, &killed));
        // Every process stores something before it is killed.
        let is_over = loop {
            if child.try_wait().unwrap().is_some() {
                break true;
            }
            if stored() > before + 40_000 {
                child.kill().unwrap();
                break false;
            }
            std::thread::yield_now();
        };
        let output = child.wait_with_output().unwrap();
        if is_over {
            assert_eq!(output.status.code(), Some(0), "{}", said(&output));
            let message = said(&output);
            assert!(
                message.contains(" of 60 runs are already stored in "),
                "{message}"
            );
            break;
        }
        kills += 1;
        before = stored();
    }
    assert!(kills > 0, "the sweep was killed");
    assert_eq!(tables(Path::new(&killed)), tables(Path::new(&whole)));
    // A further call has nothing to do and prints the same table.
    let again = said(&ends(0, &sweep(&file, &killed)));
    assert!(
        again.starts_with("60 of 60 runs are already stored in "),
        "{again}"
    );
    assert_eq!(tables(Path::new(&killed)), tables(Path::new(&whole)));
}

#[test]
fn concurrent_shards_and_processes_give_identical_results() {
    let (folder, file) = small();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (whole, parts, twice) = (path("whole"), path("parts"), path("twice"));
    ends(0, &sweep(&file, &whole));
    let expected = tables(Path::new(&whole));

    let both = [start(&sweep(&file, &twice)), start(&sweep(&file, &twice))];
    for child in both {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    }
    assert_eq!(tables(Path::new(&twice)), expected);

    let shard = |shard| [&sweep(&file, &parts)[..], &["--shard", shard]].concat();
    let mut children: Vec<_> = ["1/3", "2/3"].map(|part| start(&shard(part))).into();
    for child in children.drain(..) {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(
            said(&output).contains("stored 20 runs in "),
            "{}",
            said(&output)
        );
    }
    assert!(!Path::new(&parts).exists(), "a shard makes no tables");
    let merge = ["results", "merge", &parts, "--out", &parts];
    let missing = said(&ends(1, &merge));
    assert!(
        missing.contains("20 of 60 runs are missing: 2, 5, 8, "),
        "{missing}"
    );
    ends(0, &[&merge[..], &["--partial"]].concat());
    ends(0, &shard("3/3"));
    let exists = said(&ends(2, &merge));
    assert!(
        exists.contains("parts exists; expected a new path"),
        "{exists}"
    );
    ends(0, &[&merge[..], &["--force"]].concat());
    assert_eq!(tables(Path::new(&parts)), expected);
    let nowhere = said(&ends(
        6,
        &["results", "merge", &path("no"), "--out", &path("x")],
    ));
    assert!(nowhere.contains("no.runs"), "{nowhere}");
}

/// Without randomness all seeds give the same run.
#[test]
fn seeds_that_change_nothing_are_mentioned() {
    let (_folder, file) = small();
    let args = ["sim", "run", &file, "-q"];
    let warned = said(&ends(0, &args));
    assert!(
        warned.contains("the seeds change nothing at 2 of 2 points"),
        "{warned}"
    );
    let random = [&args[..], &["--set", "flow.tcp.start.spread=100ms"]].concat();
    assert_eq!(said(&ends(0, &random)), "");
    let one = [&args[..], &["--seed", "1"]].concat();
    assert_eq!(said(&ends(0, &one)), "", "one seed gives no interval");
}

/// Stored runs are reused under different overrides with the same meaning, and refused under
/// others.
#[test]
fn another_sweep_does_not_overwrite_results() {
    let (folder, file) = small();
    let path = folder.path().join("out.json").to_str().unwrap().to_owned();
    let args = ["sim", "run", &file, "-q", "--out", &path];
    ends(0, &args);
    let other = [&args[..], &["--set", "flow.tcp.count=3"]].concat();
    let refused = said(&ends(2, &other));
    assert!(
        refused.contains("out.json.runs holds 4 runs of another sweep"),
        "{refused}"
    );
    ends(0, &[&other[..], &["--force"]].concat());
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"scenario_set\":\"flow.tcp.count=3\""));
}

/// 6 MiB do not fill a path of 1 Gb/s and 200 ms. With a larger window there is no message.
#[test]
fn a_limiting_receive_window_is_mentioned() {
    let (_folder, file) = small();
    let words = "sim run FILE -q --seed 1 --set sweep=[] --set flow.tcp.count=1 \
                 --set topology.bottleneck.rate=1Gbps --set topology.bottleneck.delay=98ms \
                 --set topology.bottleneck.queue=20000 --set topology.access.rate=10Gbps \
                 --set scenario.duration=20s --set scenario.warmup=5s";
    let args: Vec<_> = words
        .split_whitespace()
        .map(|word| if word == "FILE" { &file } else { word })
        .collect();
    let said_of = |args: &[&str]| said(&ends(0, args));
    let note = said_of(&args);
    assert!(
        note.contains("the receive window of tcp limits it"),
        "{note}"
    );
    assert_eq!(
        said_of(&[&args[..], &["--set", "flow.tcp.rwnd=64MiB"]].concat()),
        ""
    );
}

/// A value for a swept key replaces those of the axis, and an invalid one is refused.
#[test]
fn a_value_for_a_swept_key_is_never_ignored() {
    let (folder, file) = small();
    let run = |code, set: &str| ends(code, &["sim", "run", &file, "--set", set]);
    let output = run(0, "topology.bottleneck.queue=7");
    let error_text = said(&output);
    assert!(
        error_text.contains(
            "note: `topology.bottleneck.queue` = 7 replaces the 2 values of the axis \"queue\""
        ),
        "{error_text}"
    );
    let table = crate::out(&output);
    let row = table.lines().nth(3).unwrap();
    assert!(row.starts_with("7 "), "{table}");
    let point = |value| {
        [
            "sim",
            "run",
            &file,
            "--set",
            "topology.bottleneck.queue=7",
            "--point",
            value,
        ]
    };
    ends(0, &point("queue=7"));
    let error_text = said(&ends(2, &point("queue=5")));
    assert!(
        error_text.contains("the axis queue has no value 5; expected one of 7"),
        "{error_text}"
    );
    let error_text = said(&run(2, "topology.bottleneck.queue=banana"));
    assert!(
        error_text.contains("--set topology.bottleneck.queue:1:1") && error_text.contains("banana"),
        "{error_text}"
    );
    let error_text = said(&run(
        2,
        "topology.bottleneck={ rate = \"1Mbps\", delay = \"1ms\", queue = 7 }",
    ));
    assert!(
        error_text.contains("the axis \"queue\" of the sweep sets it as well"),
        "{error_text}"
    );
    let trace = folder.path().join("x.csv").to_str().unwrap().to_owned();
    let words = [
        "sim",
        "trace",
        &file,
        "--set",
        "topology.bottleneck.queue=x",
        "--csv",
        &trace,
    ];
    ends(2, &words);
}

/// Shards have no tables yet, but their runs are kept.
#[test]
fn another_sweep_does_not_overwrite_shards() {
    let (folder, file) = small();
    let path = folder.path().join("parts").to_str().unwrap().to_owned();
    let shard = |set: &str| {
        let words = [
            "sim", "run", &file, "-q", "--out", &path, "--shard", "1/2", "--set", set,
        ];
        words.map(str::to_owned)
    };
    let run = |code, set: &str, more: &[&str]| {
        let words = shard(set);
        let words: Vec<&str> = words
            .iter()
            .map(String::as_str)
            .chain(more.iter().copied())
            .collect();
        said(&ends(code, &words))
    };
    run(0, "scenario.duration=2s", &[]);
    let refused = run(2, "scenario.duration=3s", &[]);
    for part in [
        "parts.runs holds 2 runs of another sweep, of \"small\" by `comity sim run",
        "scenario.duration=2s",
        "expected the scenario",
        "--force",
    ] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    run(0, "scenario.duration=3s", &["--force"]);
}
