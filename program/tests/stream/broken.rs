//! Broken input and input without video: the messages, and the arrivals.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{
    EARLY, Folder, Running, SECRET, UNHURRIED, arrived, assert_same_media, checked, clip, command,
    elementary_streams, ends, tool,
};

const PACKET: usize = 188;

/// Bytes without the beginning of a packet and without stuffing.
fn text(length: usize) -> Vec<u8> {
    let line = b"no packet begins in this line, nor in the next one\n";
    line.iter().copied().cycle().take(length).collect()
}

/// The clip with `length` bytes of text after its first 1,500 packets, in the middle of a picture.
fn interrupted(length: usize) -> Vec<u8> {
    let clip = fs::read(clip()).unwrap();
    let (start, end) = clip.split_at(1_500 * PACKET);
    [start, &text(length), end].concat()
}

/// The last reports of both ends, the sender's messages, and the written bytes.
struct Carried {
    sent: Value,
    received: Value,
    said: String,
    written: Vec<u8>,
    listed: usize,
}

/// Sends a file at ten times its speed over a path without losses. The receiver waits for late
/// sections, so anything missing has another cause.
fn carried(source: &[u8]) -> Carried {
    let folder = Folder::new();
    let [input, out, gaps] = ["in", "out", "gaps.jsonl"].map(|name| folder.path(name));
    fs::write(&input, source).unwrap();
    let settings = format!("latency=1s&reliability=full&{SECRET}");
    let receiver_uri = format!("comity://:0?{settings}");
    let mut receiver = Running::start(&["recv", &receiver_uri, &out, "--gaps", &gaps]);
    let target = format!("comity://127.0.0.1:{}?{settings}", receiver.port());
    let sender = Running::start(&["send", &input, &target, "--speed", "10"]);
    let (sent, said) = sender.end(0);
    let (received, _) = receiver.end(0);
    let carried = Carried {
        sent,
        received,
        said,
        written: folder.read("out"),
        listed: folder.listed("gaps.jsonl").len(),
    };
    // The receiver lists exactly the sections that are incomplete at the source.
    let at_source = carried.sent["passed"]["gaps"]["source"]
        .as_u64()
        .unwrap_or(0);
    assert_eq!(carried.listed as u64, at_source, "{}", carried.received);
    assert_eq!(
        carried.received["passed"]["whole"],
        carried.sent["passed"]["whole"]
    );
    carried
}

/// The number of slice sections that passed, and the number of source bytes in them: each section
/// has a header of one byte.
fn slices(end: &Value) -> (u64, u64) {
    let count = &end["passed"]["whole"]["slice"];
    let number = |name: &str| count[name].as_u64().unwrap();
    let sections = number("sections");
    (sections, number("bytes") - sections)
}

/// Checks that the received units are, byte for byte, a subsequence of the sent ones. Returns how
/// many units of each stream are missing.
fn missing(received: &[u8], sent: &[u8]) -> BTreeMap<u16, usize> {
    let (received, sent) = (elementary_streams(received), elementary_streams(sent));
    let missing = sent.iter().map(|(pid, units)| {
        let found = &received[pid];
        let mut rest = units.iter();
        let is_known = |unit: &Vec<u8>| rest.any(|other| other == unit);
        assert!(found.iter().all(is_known), "PID {pid}");
        (*pid, units.len() - found.len())
    });
    missing.collect()
}

/// Counts video packets and frames with ffprobe. If `COMITY_NEED_FFMPEG` is set, as in CI, ffprobe
/// is required: a passing test does not show what it skipped.
fn probed(stream: &[u8]) -> Option<(usize, usize)> {
    let folder = Folder::new();
    let file = folder.path("stream.ts");
    fs::write(&file, stream).unwrap();
    let mut probe = Command::new("ffprobe");
    probe
        .args(["-v", "fatal", "-count_packets", "-count_frames"])
        .args(["-select_streams", "v:0", "-of", "csv=p=0"])
        .args(["-show_entries", "stream=nb_read_packets,nb_read_frames"])
        .arg(&file)
        .stdout(Stdio::piped());
    let output = tool(&mut probe)?.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // ffprobe repeats the line for the program of the stream.
    let first = text.lines().next().unwrap_or_default();
    let (frames, packets) = first.trim_end_matches(',').split_once(',').unwrap();
    Some((packets.parse().unwrap(), frames.parse().unwrap()))
}

pub(super) fn garbage_within_the_stream_is_carried_and_reported() {
    let source = interrupted(200_000);
    let Carried {
        sent,
        said,
        written,
        ..
    } = carried(&source);
    let notice = "lost sync: 200000 bytes are in no packet";
    assert!(said.contains(notice), "{said}");
    // The units around the garbage are carried and listed as damaged, and nothing is missing.
    let damaged = sent["passed"]["gaps"]["damaged"].as_u64();
    assert!((Some(1)..=Some(2)).contains(&damaged), "{sent}");
    assert!(sent["passed"]["gaps"]["source"].is_null(), "{sent}");
    assert!(written == source);
}

/// With losses on the path as well, every section is whole or listed.
pub(super) fn units_that_garbage_cuts_and_a_lossy_path_loses_are_listed() {
    let folder = Folder::new();
    let [input, out, gaps] = ["in.ts", "out.ts", "gaps.jsonl"].map(|name| folder.path(name));
    fs::write(&input, interrupted(100_000)).unwrap();
    let receiver_uri = format!("comity://:0?{SECRET}");
    let mut receiver = Running::start(&["recv", &receiver_uri, &out, "--gaps", &gaps, "--remux"]);
    let to = format!("127.0.0.1:{}", receiver.port());
    let path = ["emulate", "--listen", "127.0.0.1:0", "--to", &to];
    let faults = ["--delay", "60ms", "--loss", "10%", "--seed", "5"];
    let mut path = Running::start(&[&path[..], &faults[..]].concat());
    let target = format!(
        "comity://127.0.0.1:{}?latency=100ms&drop=expired&{SECRET}",
        path.port()
    );
    let sender = Running::start(&["send", &input, &target, "--speed", "4"]);
    let (sent, _) = sender.end(0);
    let (received, _) = receiver.end(0);
    path.interrupt();
    let listed = folder.listed("gaps.jsonl");
    assert!(!listed.is_empty(), "repairs are too late");
    let whole = arrived(&received);
    let submitted = &sent["output"]["totals"]["sectionsSubmitted"];
    assert_eq!(whole + listed.len() as u64, submitted.as_u64().unwrap());
    let written = folder.read("out.ts");
    missing(&written, &fs::read(clip()).unwrap());
}

/// Input that is no longer a transport stream ends the sending with an error that names the byte.
/// Everything before that byte arrives.
pub(super) fn a_stream_that_becomes_unreadable_is_carried_up_to_there() {
    let folder = Folder::new();
    let [input, out] = ["in.ts", "out.ts"].map(|name| folder.path(name));
    fs::write(&input, interrupted(2_000_000)).unwrap();
    let settings = format!("latency=1s&reliability=full&{SECRET}");
    let mut receiver = Running::start(&["recv", &format!("comity://:0?{settings}"), &out]);
    let target = format!("comity://127.0.0.1:{}?{settings}", receiver.port());
    let sender = Running::start(&["send", &input, &target, "--speed", "10"]);
    let (sent, said) = sender.end(1);
    let notice = "cannot read the rest of the input: transport stream, byte 282000: found 0x6e and no packet";
    assert!(said.contains(notice), "{said}");
    let (received, _) = receiver.end(0);
    assert_eq!(received["passed"]["whole"], sent["passed"]["whole"]);
    // The bytes that the search for a packet covered are written too.
    let written = folder.read("out.ts");
    assert!(interrupted(2_000_000).starts_with(&written));
    assert!(
        written.len() > 1_500 * PACKET + (1 << 20),
        "{}",
        written.len()
    );
}

pub(super) fn garbage_before_the_stream_is_carried_and_reported() {
    let clip = fs::read(clip()).unwrap();
    let Carried { said, written, .. } = carried(&[text(30_000), clip.clone()].concat());
    let notice = "lost sync: 30000 bytes are in no packet";
    assert!(said.contains(notice), "{said}");
    assert!(written.starts_with(&text(30_000)));
    assert_same_media(&written[30_000..], &clip);
    let pictures = elementary_streams(&clip)[&0x100].len();
    if let Some(probed) = probed(&written) {
        assert_eq!(probed, (pictures, pictures));
    }
}

/// Every byte of an unknown format arrives. A format is unknown if its first video comes after the
/// searched bytes, or never.
pub(super) fn unknown_data_arrives_unchanged() {
    let numbers =
        (0..100_000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes());
    let hidden = [text(100_000), fs::read(clip()).unwrap()].concat();
    for source in [numbers.collect(), hidden] {
        let Carried {
            sent,
            received,
            said,
            written,
            ..
        } = carried(&source);
        assert!(
            said.contains("unknown container; sent as raw bytes"),
            "{said}"
        );
        assert!(written == source, "{} bytes", written.len());
        assert_eq!(slices(&sent).1, source.len() as u64, "{sent}");
        assert_eq!(received["output"]["bytes"], source.len());
    }
}

pub(super) fn a_stream_cut_within_a_packet_arrives_unchanged() {
    let clip = fs::read(clip()).unwrap();
    let cut = &clip[..1_500 * PACKET + 77];
    let Carried { said, written, .. } = carried(cut);
    assert!(said.contains("77 bytes are in no packet"), "{said}");
    // The units that the cut damaged are reported, and their packets are carried.
    let notice = said
        .matches("part of an access unit or a table is missing")
        .count();
    assert!((1..=2).contains(&notice), "{said}");
    assert!(written == cut);
}

pub(super) fn an_empty_file_is_refused_before_the_call() {
    let folder = Folder::new();
    let [empty, out] = ["empty", "out.ts"].map(|name| folder.path(name));
    fs::write(&empty, b"").unwrap();
    fs::write(&out, b"before").unwrap();
    let from = format!("comity://:0?{SECRET}");
    let said = ends(6, &["recv", &from, &out]);
    assert!(
        said.contains("out.ts exists") && said.contains("--overwrite"),
        "{said}"
    );
    let mut receiver = Running::start(&["recv", &from, &out, "--overwrite"]);
    let target = format!("comity://127.0.0.1:{}?{SECRET}", receiver.port());
    let said = ends(6, &["send", &empty, &target]);
    assert!(said.contains("is empty; expected media"), "{said}");
    assert!(!said.contains("connected"), "{said}");
    // A pipe is known to be empty only at its end.
    let mut pipe = command(&["send", "-", &target]);
    let said = checked(6, &pipe.stdin(Stdio::null()).output().unwrap());
    assert!(said.contains("the standard input: is empty"), "{said}");
    receiver.interrupt();
    let (received, _) = receiver.end(0);
    assert_eq!(received["output"]["bytes"], 0, "{received}");
    assert_eq!(folder.read("out.ts"), b"before");
}

/// A unit that is damaged at the source arrives and is in the sender's list. If it is dropped, it
/// has its own number, so both lists name it.
pub(super) fn units_damaged_at_the_source_are_in_both_lists() {
    damaged_units_are_listed("pass");
    damaged_units_are_listed("drop");
}

fn damaged_units_are_listed(rule: &str) {
    let reason = if rule == "pass" { "damaged" } else { "source" };
    let folder = Folder::new();
    let (source, out) = (folder.path("in.ts"), folder.path("out.ts"));
    let (sent, received) = (folder.path("sent.jsonl"), folder.path("received.jsonl"));
    // Every 150th packet has an error: the transport error indicator of ISO/IEC 13818-1 2.4.3.3.
    let mut stream = fs::read(clip()).unwrap();
    let mut marked = 0;
    for packet in stream.chunks_mut(188).skip(300).step_by(150) {
        packet[1] |= 0x80;
        marked += 1;
    }
    fs::write(&source, &stream).unwrap();
    let from = format!("comity://:0?{EARLY}&{SECRET}");
    let mut receiver = Running::start(&["recv", &from, &out, "--gaps", &received]);
    let target = format!(
        "comity://127.0.0.1:{}?{UNHURRIED}&{SECRET}",
        receiver.port()
    );
    let options = ["--gaps", &sent, "--speed", "5", "--damaged", rule];
    let sender = Running::start(&[&["send", &source, &target][..], &options].concat());
    let (summary, said) = sender.end(0);
    let (end, _) = receiver.end(0);
    // The sender's input shows these faults and none from the path.
    let transport = &summary["input"]["transport"];
    assert_eq!(transport["packets"], stream.len() / 188);
    assert_eq!(transport["errors"]["Transport_error"], marked);
    assert_eq!(transport["errors"]["TS_sync_loss"], 0);
    assert!(
        end["output"]["transport"]["packets"].as_u64() > Some(1_000),
        "{end}"
    );
    let notice = summary["passed"]["notices"]["damage"].as_u64().unwrap();
    let named = summary["passed"]["gaps"][reason].as_u64().unwrap();
    assert!((5..=notice).contains(&named), "{summary}");
    assert!(
        said.contains("is missing from the input, or marked as wrong there"),
        "{said}"
    );
    let list = |path: &str, reason: &str| -> Vec<(u64, u64)> {
        let gaps = folder.gaps(path);
        for gap in gaps.values() {
            assert_eq!(gap["reason"], reason, "{gap}");
            assert_eq!(gap["type"].is_null(), rule == "drop", "{gap}");
        }
        gaps.into_keys().collect()
    };
    let (sent, received) = (
        list("sent.jsonl", reason),
        list("received.jsonl", "cancelled"),
    );
    match rule {
        "pass" => {
            assert_eq!((sent.len() as u64, received), (named, vec![]));
            assert!(folder.read("out.ts") == stream);
        }
        // The packets with an error are parts of these units and not sections of their own.
        _ => {
            assert_eq!((sent.len() as u64, &sent), (named, &received));
            assert!(sent.iter().all(|&(stream, _)| stream < 100), "{sent:?}");
        }
    }
    // All other sections arrived whole.
    let whole = |object: &Value| -> u64 {
        let counts = object["passed"]["whole"].as_object().unwrap();
        { counts.values() }
            .map(|count| count["sections"].as_u64().unwrap())
            .sum()
    };
    assert_eq!(whole(&end), whole(&summary));
}
