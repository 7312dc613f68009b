//! Traces of runs.

use std::fs;
use std::path::Path;

use crate::{ends, out, root, said, small};

#[test]
fn a_trace_is_written_to_every_file() {
    let (folder, file) = small();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (pcapng, qlog, csv) = (path("x.pcapng"), path("x.sqlog"), path("x.csv"));
    ends(
        0,
        &[
            "sim",
            "trace",
            &file,
            "--run",
            "1",
            "--pcapng",
            &pcapng,
            "--qlog",
            &qlog,
            "--csv",
            &csv,
            "--link",
            "bottleneck",
        ],
    );
    assert_eq!(
        fs::read(&pcapng).unwrap()[..4],
        [0x0a, 0x0d, 0x0d, 0x0a],
        "a section header block"
    );
    for flow in ["tcp-0", "tcp-1", "udp-0"] {
        let log = fs::read_to_string(path(&format!("x.{flow}.sqlog"))).unwrap();
        assert!(log.contains("transport:packet_sent"), "{flow}");
    }
    let events = fs::read_to_string(&csv).unwrap();
    assert!(events.starts_with("time_ns,place,event,flow,"));
    assert!(events.contains(",bottleneck,carried,udp-0,forward,1500,"));
    assert!(
        !events.contains(",bottleneck.reverse,"),
        "this link was not asked for"
    );
    assert!(
        !events.contains(&u64::MAX.to_string()),
        "no slow-start threshold is an empty cell"
    );
    // The standard output gets the same bytes, and no file is named "-".
    let output = ends(
        0,
        &[
            "sim",
            "trace",
            &file,
            "--run",
            "1",
            "--csv",
            "-",
            "--link",
            "bottleneck",
        ],
    );
    assert_eq!(out(&output), events);
    assert_eq!(said(&output), "");
    assert!(!root().join("-").exists());
    // A single flow needs no name in the file name.
    ends(
        0,
        &[
            "sim",
            "trace",
            &file,
            "--qlog",
            &path("one.sqlog"),
            "--flow",
            "tcp-1",
        ],
    );
    assert!(Path::new(&path("one.sqlog")).is_file());
    // A trace that cannot be written leaves no file.
    ends(
        1,
        &[
            "sim",
            "trace",
            &file,
            "--csv",
            &path("y.csv"),
            "--pcapng",
            &path("no/folder/x.pcapng"),
        ],
    );
    let left: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("partial") || name.starts_with("y."))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

/// Axis values and a seed select a run, and a capture has a side of the link.
#[test]
fn a_trace_takes_a_point_a_seed_and_a_side() {
    let (folder, file) = small();
    let trace = |args: &[&str]| {
        let random = "flow.tcp.start.spread=100ms";
        let first = ["sim", "trace", &file, "--csv", "-", "--set", random];
        out(&ends(0, &[&first[..], args].concat()))
    };
    let by_number = trace(&["--run", "3"]);
    assert_eq!(
        trace(&["--point", "queue=10 packets", "--seed", "2"]),
        by_number
    );
    assert_ne!(trace(&["--point", "queue=5", "--seed", "2"]), by_number);
    assert_eq!(
        trace(&["--point", "queue=5", "--seed", "2"]),
        trace(&["--run", "1"])
    );
    assert_ne!(trace(&["--seed", "77"]), trace(&["--seed", "78"]));
    for (args, expected) in [
        (
            ["--point", "quue=5"],
            "the sweep has no axis \"quue\"; did you mean \"queue\"?",
        ),
        (
            ["--point", "queue=6"],
            "the axis queue has no value 6; expected one of 5, \"10 packets\"",
        ),
        (
            ["--point", "5"],
            "\"5\" is not a point; expected AXIS=VALUE",
        ),
    ] {
        let refused = said(&ends(
            2,
            &[&["sim", "trace", &file, "--csv", "-"], &args[..]].concat(),
        ));
        assert!(refused.contains(expected), "{refused}");
    }
    let size = |side: &str| {
        let path = folder.path().join(side);
        let path = path.to_str().unwrap();
        let args = [
            "sim",
            "trace",
            &file,
            "--link",
            "bottleneck",
            "--capture",
            side,
            "--pcapng",
            path,
        ];
        ends(0, &args);
        fs::metadata(path).unwrap().len()
    };
    let (before, after, both) = (size("before"), size("after"), size("both"));
    assert!(before > after, "dropped packets are not after the link");
    assert!(both > before && both < before + after);
}
