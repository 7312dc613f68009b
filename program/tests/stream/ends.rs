//! How the verbs end, and what they report until then.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// The stream of tables.
const TABLES: u64 = 0;

pub(super) fn a_second_caller_is_refused_as_busy() {
    let clip = clip();
    let clip = clip.to_str().unwrap();
    let folder = Folder::new();
    let mut receiver = Running::start(&[
        "recv",
        &format!("comity://127.0.0.1:0?mode=listener&{EARLY}&{SECRET}"),
        &folder.path("out.ts"),
    ]);
    let port = receiver.port();
    let uri = format!("comity://127.0.0.1:{port}?{UNHURRIED}&{SECRET}");
    // The first sender stays connected while its input is open.
    let mut first = Running::fed(&["send", "-", &uri]);
    receiver.event("connected");
    let list = folder.path("list");
    // A busy machine needs time to answer.
    let hasty = format!("comity://127.0.0.1:{port}?conntimeo=3s&{KEY}");
    let said = ends(3, &["send", clip, &hasty, "--gaps", &list]);
    assert!(said.contains("serves another caller"), "{said}");
    assert!(!said.contains("connected with"), "{said}");
    let refused = receiver.event("refused");
    assert_eq!(refused["reason"], "busy");
    assert!(
        refused["address"]
            .as_str()
            .unwrap()
            .starts_with("127.0.0.1:")
    );
    // With `--reconnect always` the sender does not give up.
    let mut patient = Running::start(&["send", clip, &hasty, "--reconnect", "always"]);
    let note = patient.event("note")["message"].clone();
    assert!(
        note.as_str().unwrap().contains("serves another caller"),
        "{note}"
    );
    patient.interrupt();
    let (_, said) = patient.end(3);
    assert!(
        said.contains("stopped before a listener answered"),
        "{said}"
    );
    first.feed(&fs::read(clip).unwrap());
    let (sent, _) = first.end(0);
    let (received, said) = receiver.end(0);
    assert!(said.contains("rejected 127.0.0.1:"), "{said}");
    assert!(received["input"]["refused"]["busy"].as_u64().unwrap() >= 2);
    assert_eq!(received["input"]["totals"]["connections"], 1);
    let (sent, received) = (&sent["output"]["totals"], &received["input"]["totals"]);
    assert_eq!(sent["sectionsAcknowledged"], received["sectionsOnTime"]);
    assert_eq!(sent["sectionsAcknowledged"], sent["sectionsSubmitted"]);
    assert_eq!(sent["peerSectionsOnTime"], received["sectionsOnTime"]);
    assert_eq!(received["pktRcvLoss"], 0);
}

pub(super) fn either_end_may_be_stopped_without_losing_data() {
    let clip = clip();
    let original = elementary_streams(&fs::read(&clip).unwrap());
    // In the first case, sections are written at their deadlines.
    for (signal, latency, deliver) in [
        (Signal::INT, "latency=3s", "deliver=paced"),
        (Signal::TERM, UNHURRIED, EARLY),
    ] {
        for receiver_stops in [true, false] {
            let folder = Folder::new();
            let mut receiver = Running::start(&[
                "recv",
                &format!("comity://127.0.0.1:0?mode=listener&{deliver}&{SECRET}"),
                &folder.path("out.ts"),
                "--remux",
                "--gaps",
                &folder.path("received.gaps"),
            ]);
            let uri = format!("comity://127.0.0.1:{}?{latency}&{SECRET}", receiver.port());
            let sender = Running::start(&[
                "send",
                clip.to_str().unwrap(),
                &uri,
                "--reconnect",
                "no",
                "--gaps",
                &folder.path("sent.gaps"),
            ]);
            receiver.statistics_when(|statistics| arrived(statistics) > 60);
            let (sent, received) = if receiver_stops {
                receiver.signal(signal);
                let (received, said) = receiver.end(0);
                assert!(said.contains("interrupted"), "{said}");
                let (sent, said) = sender.end(3);
                assert!(said.contains("closed by the peer"), "{said}");
                (sent, received)
            } else {
                sender.signal(signal);
                let (sent, _) = sender.end(0);
                (sent, receiver.end(0).0)
            };
            let written = elementary_streams(&folder.read("out.ts"));
            let mut units = 0;
            for (pid, found) in &written {
                assert_eq!(*found, original[pid][..found.len()], "PID {pid}");
                units += found.len() as u64;
            }
            let arrived = arrived(&received);
            let tables = received["passed"]["whole"]["table"]["sections"]
                .as_u64()
                .unwrap();
            assert!(
                units > 20 && arrived < SECTIONS,
                "{units} units of {arrived}"
            );
            // Every section that arrived is written, and the sender counts no other section as
            // arrived.
            assert_eq!(units + tables, arrived);
            let count = |name: &str| sent["output"]["totals"][name].as_u64().unwrap();
            let lists = [folder.listed("sent.gaps"), folder.listed("received.gaps")];
            if receiver_stops {
                let acknowledged = count("sectionsAcknowledged");
                assert!(acknowledged <= arrived, "{acknowledged} of {arrived}");
                // The sender lists all other sections. The receiver's list is a part of that list.
                let [unsent, missing] = &lists;
                // At the source, number 0 of the tables is the announcement of layouts, which this
                // receiver does not get.
                let at_source = |&(stream, section): &(u64, u64)| {
                    (stream, section + u64::from(stream == TABLES))
                };
                let missing: BTreeSet<_> = missing.iter().map(at_source).collect();
                let given = count("sectionsSubmitted");
                let never_given = sent["output"]["unsent"].as_object().unwrap().values();
                let never_given: u64 = never_given.map(|count| count.as_u64().unwrap()).sum();
                assert_eq!(acknowledged + unsent.len() as u64, given + never_given);
                assert!(
                    missing.is_subset(unsent),
                    "{:?} are not all among {unsent:?}",
                    folder.gaps("received.gaps").into_values()
                );
                assert!(!unsent.is_empty(), "some came after the stop");
            } else {
                assert_eq!(count("sectionsAcknowledged"), arrived);
                assert_eq!(lists, [BTreeSet::new(), BTreeSet::new()]);
            }
        }
    }
}

/// Simultaneous signals count as one request to end: `timeout` and service managers signal a
/// program and its group, and terminals hang up.
pub(super) fn simultaneous_signals_are_one_request() {
    let clip = clip();
    let original = elementary_streams(&fs::read(&clip).unwrap());
    for signals in [
        &[Signal::TERM, Signal::TERM][..],
        &[Signal::INT, Signal::TERM],
        &[Signal::HUP, Signal::INT],
        &[
            Signal::PIPE,
            Signal::INT,
            Signal::INT,
            Signal::TERM,
            Signal::HUP,
        ],
    ] {
        let folder = Folder::new();
        let mut receiver = Running::start(&[
            "recv",
            &format!("comity://127.0.0.1:0?mode=listener&{SECRET}"),
            &folder.path("out.ts"),
            "--remux",
        ]);
        let uri = format!("comity://127.0.0.1:{}?latency=3s&{SECRET}", receiver.port());
        let sender = Running::start(&["send", clip.to_str().unwrap(), &uri, "--reconnect", "no"]);
        receiver.statistics_when(|statistics| arrived(statistics) > 60);
        for signal in signals {
            receiver.signal(*signal);
        }
        let (received, said) = receiver.end(0);
        assert!(
            said.contains("interrupted: finishing in good order"),
            "{said}"
        );
        assert!(!said.contains("again: "), "{said}");
        let written = elementary_streams(&folder.read("out.ts"));
        let mut units = 0;
        for (pid, found) in &written {
            assert_eq!(*found, original[pid][..found.len()], "PID {pid}");
            units += found.len() as u64;
        }
        let tables = received["passed"]["whole"]["table"]["sections"].as_u64();
        assert_eq!(units + tables.unwrap(), arrived(&received), "{signals:?}");
        sender.end(3);
    }
}

/// Under `nohup` and `trap "" HUP`, a receiver outlives its terminal.
pub(super) fn an_ignored_hangup_ends_nothing() {
    let clip = clip();
    let folder = Folder::new();
    let mut shell = Command::new("sh");
    let receive = [
        "recv",
        &format!("comity://127.0.0.1:0?mode=listener&{SECRET}"),
        &folder.path("out.ts"),
    ];
    let own = command(&receive);
    shell
        .args(["-c", "trap '' HUP; exec \"$0\" \"$@\" --json"])
        .arg(own.get_program())
        .args(own.get_args());
    for (name, value) in own.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    let mut receiver = Running::spawn(&mut shell);
    let uri = format!(
        "comity://127.0.0.1:{}?{UNHURRIED}&{SECRET}",
        receiver.port()
    );
    receiver.signal(Signal::HUP);
    // It takes another sender afterwards.
    let sender = Running::start(&["send", clip.to_str().unwrap(), &uri, "--speed", "10"]);
    sender.end(0);
    let (_, said) = receiver.end(0);
    assert!(!said.contains("interrupted"), "{said}");
    assert!(folder.read("out.ts") == fs::read(&clip).unwrap());
}

/// After a second, later request the receiver no longer waits for a stalled reader. It lists the
/// sections that the reader did not get.
pub(super) fn a_second_stop_ends_at_once_and_lists_unwritten_sections() {
    let folder = Folder::new();
    let mut sender = Running::fed(&[
        "send",
        "-",
        &format!("comity://127.0.0.1:0?mode=listener&reliability=full&{SECRET}"),
    ]);
    let uri = format!("comity://127.0.0.1:{}?rcvbuf=256KiB&{KEY}", sender.port());
    let receiver = command(&["recv", &uri, "-", "--gaps", &folder.path("gaps")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _watch = watch(&receiver);
    sender.feed(&vec![7; 1 << 20]);
    // The receiver's buffers are full: its output is never read.
    sender.stalls("output", "sectionsAcknowledged");
    let mut receiver = receiver;
    let pid = Pid::from_child(&receiver);
    while receiver.try_wait().unwrap().is_none() {
        let _ = kill_process(pid, Signal::INT);
        thread::yield_now();
    }
    let output = receiver.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted again: ended at once"), "{said}");
    let gaps = String::from_utf8(folder.read("gaps")).unwrap();
    assert!(gaps.contains("\"reason\":\"unwritten\""), "{gaps}");
}

/// The one-way delay exceeds the latency. The receiver confirms the end.
pub(super) fn a_run_without_arrivals_is_a_failure() {
    let settings = format!("latency=20ms&{SECRET}");
    let mut receiver = Running::start(&["recv", &format!("comity://:0?{settings}"), "/dev/null"]);
    let to = format!("127.0.0.1:{}", receiver.port());
    let path = ["emulate", "--listen", "127.0.0.1:0", "--to", &to];
    let mut path = Running::start(&[&path[..], &["--delay", "200ms"]].concat());
    let target = format!("comity://127.0.0.1:{}?{settings}", path.port());
    let mut sender = Running::fed(&["send", "-", &target]);
    // By then, both ends know the round-trip time.
    receiver.statistics_when(|statistics| {
        statistics["input"]["connections"][0]["statistics"]["path"]["msRTT"].is_number()
    });
    // Text has no media times that would extend its deadlines: it is due as soon as it is read.
    sender.feed(&b"no picture begins in this line\n".repeat(4_000));
    let (sent, said) = sender.end(3);
    let totals = &sent["output"]["totals"];
    let submitted = totals["sectionsSubmitted"].as_u64().unwrap();
    assert!(submitted > 0, "{totals}");
    assert_eq!(totals["sectionsAcknowledged"], 0);
    let expected = format!("nothing arrived: none of {submitted} sections");
    assert!(said.contains(&expected), "{said}");
    receiver.end(0);
    path.interrupt();
}

/// After seven seconds no packet from the receiver arrives any more, so the sender cannot know
/// which sections arrived.
pub(super) fn an_unconfirmed_end_is_a_failure() {
    let folder = Folder::new();
    let receiver_uri = format!("comity://:0?{SECRET}");
    let (out, gaps) = (folder.path("out.ts"), folder.path("gaps.jsonl"));
    let mut receiver = Running::start(&["recv", &receiver_uri, &out, "--gaps", &gaps]);
    let to = format!("127.0.0.1:{}", receiver.port());
    let path = ["emulate", "--listen", "127.0.0.1:0", "--to", &to];
    let faults = ["--delay", "5ms", "--down-outage", "7s+240s"];
    let mut path = Running::start(&[&path[..], &faults[..]].concat());
    // The sender waits for the end for the default time, and longer for a silent peer.
    let settings = format!("latency=500ms&peeridletimeo=60s&{PATIENT}&{KEY}");
    let target = format!("comity://127.0.0.1:{}?{settings}", path.port());
    let clip = clip();
    let args = ["send", clip.to_str().unwrap(), &target];
    let (sent, said) = Running::start(&args).end(3);
    assert!(said.contains("did not confirm the end in time"), "{said}");
    let totals = &sent["output"]["totals"];
    let in_doubt: u64 = said
        .split_once("in time; ")
        .and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok())
        .unwrap();
    let acknowledged = totals["sectionsAcknowledged"].as_u64().unwrap();
    assert!(
        in_doubt > 0 && acknowledged + in_doubt <= SECTIONS,
        "{said}"
    );
    // The receiver does not wait for another caller, and lists the sections that it never learned
    // of.
    let (received, said) = receiver.end(0);
    assert!(said.contains("not confirmed in time"), "{said}");
    path.interrupt();
    let listed = folder.listed("gaps.jsonl");
    assert_eq!(sent["output"]["totals"]["sectionsSubmitted"], SECTIONS);
    assert_eq!(arrived(&received) + listed.len() as u64, SECTIONS);
    assert!(!listed.is_empty(), "no window opens without answers");
}

pub(super) fn json_replaces_status_lines() {
    let folder = Folder::new();
    let out = folder.path("out.ts");
    let mut receiver = Running::start(&["recv", &format!("comity://:0?{SECRET}"), &out]);
    let uri = format!("comity://127.0.0.1:{}?{SECRET}", receiver.port());
    let sender = Running::start(&[
        "send",
        clip().to_str().unwrap(),
        &uri,
        "--speed",
        "10",
        "--statsfreq",
        "200ms",
    ]);
    let (_, said) = sender.end(0);
    assert!(!said.contains("Mb/s"), "{said}");
    receiver.end(0);
}

pub(super) fn a_full_disk_is_reported_at_both_ends() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let clip = clip();
    let folder = Folder::new();
    let gaps = folder.path("gaps.jsonl");
    let from = format!("comity://:0?{SECRET}");
    let mut receiver = Running::start(&["recv", &from, "/dev/full", "--gaps", &gaps]);
    let target = format!("comity://127.0.0.1:{}?{SECRET}", receiver.port());
    let said = ends(
        3,
        &["send", clip.to_str().unwrap(), &target, "--reconnect", "no"],
    );
    // The sender learns that the output failed, but nothing about the receiver's disk.
    assert!(said.contains("the output failed"), "{said}");
    assert!(
        !said.contains("/dev/full") && !said.contains("space"),
        "{said}"
    );
    let (end, said) = receiver.end(1);
    assert!(
        said.contains("the data written so far is kept") && said.contains("Make room"),
        "{said}"
    );
    // The output is empty, so the list has every section, tables included.
    assert_eq!(end["output"]["bytes"], 0);
    assert_eq!(end["passed"]["whole"], serde_json::json!({}), "{end}");
    let gaps = folder.gaps("gaps.jsonl");
    assert_eq!(
        gaps.get(&(0, 0)).map(|gap| &gap["reason"]),
        Some(&"unwritten".into()),
        "{gaps:?}"
    );
}

pub(super) fn sections_without_disk_space_are_in_the_list_of_gaps() {
    let folder = Folder::new();
    let (out, gaps) = (folder.path("out.ts"), folder.path("gaps.jsonl"));
    let from = format!("comity://:0?{SECRET}");
    // The limit of 200 blocks of 512 bytes is not a whole number of packets. Writes beyond it fail.
    let mut receiver = Running::spawn(
        Command::new("sh")
            .envs(SECRET_VALUE)
            .args(["-c", "ulimit -f 200; exec \"$0\" \"$@\""])
            .args([env!("CARGO_BIN_EXE_comity"), "recv", &from, &out])
            .args(["--gaps", &gaps, "--json", "--remux"])
            .stdin(Stdio::null()),
    );
    let target = format!("comity://127.0.0.1:{}?latency=3s&{SECRET}", receiver.port());
    // Everything arrives before the first sections are written, and the sender is still connected.
    let mut sender = Running::fed(&["send", "-", &target, "--reconnect", "no"]);
    sender.feed(&fs::read(clip()).unwrap());
    let (end, said) = receiver.end(1);
    assert!(said.contains("the data written so far is kept"), "{said}");
    let (_, said) = sender.end(3);
    assert!(said.contains("the output failed"), "{said}");

    // The file has the first whole sections of each stream, and the list has all others that
    // arrived.
    let file = folder.read("out.ts");
    assert!((90_000..=102_400).contains(&file.len()), "{}", file.len());
    assert_eq!(end["output"]["bytes"], file.len());
    let (written, sent) = (
        elementary_streams(&file),
        elementary_streams(&fs::read(clip()).unwrap()),
    );
    let gaps = folder.gaps("gaps.jsonl");
    for (stream, pid) in [(1, 0x100), (2, 0x101)] {
        let units = &written[&pid];
        assert_eq!(units[..], sent[&pid][..units.len()], "PID {pid}");
        let unwritten: Vec<u64> = gaps
            .iter()
            .filter(|((of, _), gap)| *of == stream && gap["reason"] == "unwritten")
            .map(|((_, section), _)| *section)
            .collect();
        assert!(!unwritten.is_empty());
        let first = units.len() as u64;
        let all: Vec<u64> = (first..first + unwritten.len() as u64).collect();
        assert_eq!(unwritten, all, "stream {stream}");
    }
    let sum = |counts: &Value, of: &dyn Fn(&Value) -> u64| -> u64 {
        counts.as_object().unwrap().values().map(of).sum()
    };
    let whole = sum(&end["passed"]["whole"], &|count| {
        count["sections"].as_u64().unwrap()
    });
    let missing = sum(&end["passed"]["gaps"], &|count| count.as_u64().unwrap());
    assert_eq!(missing, folder.listed("gaps.jsonl").len() as u64);
    let totals = &end["input"]["totals"];
    let received: u64 = ["sectionsOnTime", "sectionsLate", "gaps"]
        .map(|key| totals[key].as_u64().unwrap_or(0))
        .iter()
        .sum();
    assert_eq!(whole + missing, received, "{totals}");
}

pub(super) fn a_closed_reader_ends_the_command_without_an_error() {
    let clip = clip();
    let folder = Folder::new();
    let gaps = folder.path("gaps.jsonl");
    let mut sender = Running::start(&[
        "send",
        clip.to_str().unwrap(),
        &format!("comity://:0?latency=50ms&{SECRET}"),
    ]);
    let from = format!("comity://127.0.0.1:{}?{SECRET}", sender.port());
    let mut receiver = command(&["recv", &from, "-", "--gaps", &gaps, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut start = vec![0; 188 * 400];
    receiver
        .stdout
        .take()
        .unwrap()
        .read_exact(&mut start)
        .unwrap();
    assert_eq!(start[0], 0x47);
    let output = receiver.wait_with_output().unwrap();
    let said = checked(0, &output);
    let end: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    sender.interrupt();
    sender.end(0);
    // Sections that arrived but were never read are in the list.
    let count = |counts: &Value, of: &dyn Fn(&Value) -> Option<u64>| -> u64 {
        let counts = counts.as_object().unwrap().values();
        counts.map(|count| of(count).unwrap()).sum()
    };
    let whole = count(&end["passed"]["whole"], &|count| count["sections"].as_u64());
    let missing = count(&end["passed"]["gaps"], &Value::as_u64);
    let list = String::from_utf8(folder.read("gaps.jsonl")).unwrap();
    assert!(missing > 0 && whole > 0, "{end}");
    assert_eq!(folder.listed("gaps.jsonl").len() as u64, missing, "{list}");
    assert!(list.contains("\"unwritten\""), "{list}");
    let totals = &end["input"]["totals"];
    let received = ["sectionsOnTime", "sectionsLate", "sectionsGap"].map(|of| totals[of].as_u64());
    assert_eq!(Some(whole + missing), received.into_iter().sum(), "{end}");
}

/// The media matters more than the list: only the exit code and a message show that the list is
/// incomplete.
pub(super) fn a_failing_list_of_gaps_does_not_end_the_stream() {
    let folder = Folder::new();
    let (source, out) = (folder.path("in.ts"), folder.path("out.ts"));
    let mut stream = std::fs::read(clip()).unwrap();
    for packet in stream.chunks_mut(188).skip(300).step_by(150) {
        packet[1] |= 0x80;
    }
    std::fs::write(&source, &stream).unwrap();
    let from = format!("comity://:0?{EARLY}&{SECRET}");
    let mut receiver = Running::start(&["recv", &from, &out, "--gaps", "/dev/full"]);
    let target = format!(
        "comity://127.0.0.1:{}?{UNHURRIED}&{SECRET}",
        receiver.port()
    );
    let options = ["--speed", "5", "--damaged", "drop"];
    let sender = Running::start(&[&["send", &source, &target][..], &options].concat());
    let (summary, _) = sender.end(0);
    let (end, said) = receiver.end(1);
    assert!(
        said.contains("warning: --gaps: cannot write to /dev/full"),
        "{said}"
    );
    assert_eq!(said.matches("warning: --gaps").count(), 1, "{said}");
    assert_eq!(end["passed"]["whole"], summary["passed"]["whole"]);
}

pub(super) fn prometheus_gets_metrics() {
    let clip = clip();
    let mut receiver = Running::start(&["recv", &format!("comity://:0?{SECRET}"), "/dev/null"]);
    let target = format!("comity://127.0.0.1:{}?{SECRET}", receiver.port());
    let mut sender = Running::start(&[
        "send",
        clip.to_str().unwrap(),
        &target,
        "--metrics-bind",
        "127.0.0.1:0",
    ]);
    let note = sender.event("note")["message"].clone();
    let address = note
        .as_str()
        .unwrap()
        .strip_prefix("metrics at http://")
        .unwrap();
    let address = address.strip_suffix("/metrics").unwrap().to_owned();
    sender.event("connected");
    sender.event("statistics");
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    for name in [
        "comity_connections{side=\"output\"} 1",
        "comity_sent_bytes_total{side=\"output\"} ",
        "comity_sections_sent_total{fate=\"arrived\"} ",
        "comity_sections_reported_total{fate=\"on_time\"} ",
        "comity_packets_missing{side=\"output\"} 0",
        "comity_transport_packets_total{side=\"input\"} ",
        "comity_transport_errors_total{side=\"input\",indicator=\"Continuity_count_error\"} 0",
        "comity_round_trip_seconds{side=\"output\",peer=\"127.0.0.1:",
    ] {
        assert!(answer.contains(name), "{name} is not in\n{answer}");
    }
    sender.end(0);
    receiver.end(0);
}

/// The soft limit is 1: with 0 the system would still start a program for core dumps.
pub(super) fn processes_with_secrets_write_no_core_dumps() {
    let uri = format!("comity://127.0.0.1:0?mode=listener&{SECRET}");
    let mut receiver = Running::start(&["recv", &uri, "/dev/null", "--duration", "10s"]);
    receiver.event("listening");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", receiver.child.id())).unwrap();
    let core = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max core file size"));
    let words: Vec<_> = core.unwrap().split_whitespace().collect();
    let (soft, hard) = (words[0], words[1]);
    assert!(soft == "1" || hard == "0", "{limits}");
}

/// A controller without retransmissions causes a note that names the alternatives.
pub(super) fn a_controller_without_retransmissions_causes_a_warning() {
    let clip = clip();
    let notes = |settings: &str| {
        let uri = format!("comity://127.0.0.1:0?mode=listener&{settings}&{SECRET}");
        let args = [
            "send",
            clip.to_str().unwrap(),
            &uri,
            "--duration",
            "10ms",
            "--json",
        ];
        let output = command(&args).output().unwrap();
        checked(3, &output);
        let out = String::from_utf8(output.stdout).unwrap();
        let objects = out.lines().map(|line| serde_json::from_str(line).unwrap());
        let notes = objects.filter(|object: &Value| object["event"] == "note");
        let messages = notes.map(|note| note["message"].as_str().unwrap().to_owned());
        messages.collect::<Vec<_>>()
    };
    for cc in ["iftp", "psp"] {
        let notes = notes(&format!("cc={cc}"));
        assert_eq!(notes.len(), 1, "{notes:?}");
        for part in [
            &format!("cc={cc}"),
            "not retransmitted",
            "reliability=timeline",
        ] {
            assert!(notes[0].contains(part), "{notes:?}");
        }
    }
    for settings in [
        "cc=iftp&reliability=timeline",
        "cc=cubic&reliability=none",
        "cc=rap",
    ] {
        assert_eq!(notes(settings), [""; 0], "{settings}");
    }
}
