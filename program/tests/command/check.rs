//! `comity check`: a file, a pipe and datagrams.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{comity, ends, out, root, said};

const VECTOR: &str = "product/media/tests/vectors/h264.ts";

fn vector() -> Vec<u8> {
    fs::read(root().join(VECTOR)).unwrap()
}

fn counts(document: &Value) -> Vec<(&str, u64)> {
    let errors = document["errors"].as_array().unwrap().iter();
    let counts = errors.map(|error| (error["name"].as_str().unwrap(), error["count"].as_u64()));
    let found = counts.filter_map(|(name, count)| Some((name, count.filter(|count| *count > 0)?)));
    found.collect()
}

#[test]
fn faults_of_a_file_are_reported() {
    let output = ends(0, &["check", VECTOR]);
    let text = out(&output);
    for part in [
        "times by the clock of the stream",
        "priority 1: 0\npriority 2: 0\n",
        "H.264 video",
    ] {
        assert!(text.contains(part), "{part:?}: {text}");
    }
    assert_eq!(said(&output), "");

    let mut damaged = vector();
    damaged.drain(60 * 188..61 * 188);
    damaged[80 * 188 + 1] |= 0x80;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.ts");
    fs::write(&path, &damaged).unwrap();
    let path = path.to_str().unwrap();
    let text = out(&ends(3, &["check", path]));
    assert!(
        text.contains("1.4 Continuity_count_error: 1, at "),
        "{text}"
    );
    assert!(text.contains("2.1 Transport_error: 1, at "), "{text}");

    let document = out(&ends(3, &["check", path, "--json"]));
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["format"], "comity-check/1");
    assert_eq!(document["times"], "pcr");
    assert_eq!(document["packets"], damaged.len() / 188);
    let expected = [("Continuity_count_error", 1), ("Transport_error", 1)];
    assert_eq!(counts(&document), expected);
    assert_eq!(document["priority_1_errors"], 1);
    assert_eq!(document["clocks"][0]["jitter"], Value::Null);
}

/// The page names every key.
#[test]
fn the_page_has_the_keys_of_the_document() {
    let page = fs::read_to_string(root().join("docs/reference/check.md")).unwrap();
    let document = out(&comity(&["check", VECTOR, "--json"]));
    let document: Value = serde_json::from_str(&document).unwrap();
    let mut keys = Vec::new();
    let mut rest = vec![&document];
    while let Some(value) = rest.pop() {
        rest.extend(value.as_array().into_iter().flatten());
        for (key, value) in value.as_object().into_iter().flatten() {
            keys.push(key);
            rest.push(value);
        }
    }
    assert!(keys.len() > 50);
    for key in keys {
        assert!(page.contains(&format!("`{key}`")), "{key}");
    }
    for error in document["errors"].as_array().unwrap() {
        let (name, clause) = (&error["name"], &error["clause"]);
        let row = format!(
            "| `{}` | {} |",
            name.as_str().unwrap(),
            clause.as_str().unwrap()
        );
        assert!(page.contains(&row), "{row}");
    }
}

#[test]
fn a_pipe_is_read_to_its_end() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_comity"))
        .args(["check", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&vector()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["packets"], vector().len() / 188);
}

#[test]
fn mistakes_are_named() {
    for (code, args, part) in [
        (6, &["check", "absent.ts"][..], "check its name"),
        (6, &["check", "Cargo.toml"], "no transport packet"),
        (2, &["check", VECTOR, "--for", "1s"], "ends by itself"),
        (2, &["check", "comity://:9"], "comity recv"),
        (2, &["check", "udp://name:5000"], "names a host to send to"),
        (
            5,
            &["check", "udp://192.0.2.1:5000"],
            "is not an address of this host",
        ),
        (
            6,
            &["check", "udp://@127.0.0.1:0", "--for", "1ms"],
            "in 0 bytes",
        ),
    ] {
        let said = said(&ends(code, args));
        assert!(said.contains(part), "{part:?}: {said}");
    }
}

/// Stops a listening checker with the interrupt key. Returns its code and its report.
fn live(scheme: &str, datagrams: impl Iterator<Item = Vec<u8>>) -> (Option<i32>, Value) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_comity"))
        .args(["check", &format!("{scheme}://@127.0.0.1:0"), "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let address = line
        .strip_prefix("listening on ")
        .expect("an address")
        .trim();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for datagram in datagrams {
        socket.send_to(&datagram, address).unwrap();
    }
    let rest = thread::spawn(move || lines.read_to_string(&mut String::new()));
    // Datagrams that wait in the socket are still read.
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    rest.join().unwrap().unwrap();
    (
        output.status.code(),
        serde_json::from_slice(&output.stdout).unwrap(),
    )
}

#[test]
fn datagrams_are_checked_until_the_stop() {
    let bytes = vector();
    let (_, document) = live("udp", bytes.chunks(1_316).map(<[u8]>::to_vec));
    assert_eq!(document["times"], "arrival");
    assert_eq!(document["packets"], bytes.len() / 188);
    assert_eq!(document["peaks"].as_array().unwrap().len(), 3);
    assert_eq!(document["rtp"], Value::Null);
    let is_continuity = |(name, _): &(&str, u64)| *name == "Continuity_count_error";
    assert!(!counts(&document).iter().any(is_continuity), "{document}");

    // The third RTP packet is missing.
    let header = |number: u16| [&[0x80, 33][..], &number.to_be_bytes(), &[0; 8]].concat();
    let packets = (0..).zip(bytes.chunks(1_316));
    let packets = packets.filter(|(number, _)| *number != 2);
    let packets = packets.map(|(number, media)| [header(number), media.to_vec()].concat());
    let (code, document) = live("rtp", packets);
    assert_eq!(code, Some(3));
    assert_eq!(document["packets"], bytes.len() / 188 - 7);
    assert_eq!(document["rtp"]["missing_packets"], 1);
    assert!(counts(&document).iter().any(is_continuity), "{document}");
}
