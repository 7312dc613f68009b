//! One input to every receiver that calls.

use std::io::Write;
use std::os::fd::AsFd;
use std::process::{ChildStdin, Stdio};

use super::*;

/// The PID of the clip's pictures.
const VIDEO: u16 = 256;

/// A sender with a pipe for its input that serves everybody who calls.
struct Copying {
    sender: Running,
    pipe: ChildStdin,
    from: String,
}

impl Copying {
    fn start(settings: &str) -> Self {
        let here = format!("comity://:0?{settings}{SECRET}");
        let mut sender =
            Running::spawn(command(&["send", "-", &here, "--all", "--json"]).stdin(Stdio::piped()));
        let from = format!("comity://127.0.0.1:{}?{settings}{SECRET}", sender.port());
        let pipe = sender.child.stdin.take().unwrap();
        Self { sender, pipe, from }
    }

    /// Somebody who calls and writes to `out`; returns when there is a connection.
    fn receiver(&mut self, out: &str) -> Running {
        let receiver = Running::start(&["recv", &self.from, out]);
        self.sender.event("connected");
        receiver
    }

    /// Somebody who calls once and whose output nobody reads; returns when there is a connection.
    fn sleeper(&mut self) -> Child {
        let from = format!("{}&reconnect=0", self.from);
        let sleeper = command(&["recv", &from, "-"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        self.sender.event("connected");
        sleeper
    }

    /// Gives it the first bytes; returns when this many have left it, the copies of all receivers
    /// together.
    fn give(&mut self, bytes: &[u8], leaving: u64) {
        self.pipe.write_all(bytes).unwrap();
        while self.sender.event("statistics")["output"]["totals"]["byteSent"]
            .as_u64()
            .unwrap()
            < leaving
        {}
    }

    fn end(self) -> (Value, String) {
        drop(self.pipe);
        self.sender.end(0)
    }
}

/// Bytes without repetition from one thousand to the next.
fn noise(length: usize) -> Vec<u8> {
    let word = |at: usize| (at as u32 / 4).wrapping_mul(2_654_435_761).to_be_bytes()[at % 4];
    (0..length).map(word).collect()
}

pub(super) fn every_receiver_gets_the_same_stream() {
    let folder = Folder::new();
    let clip = fs::read(clip()).unwrap();
    let mut copying = Copying::start("latency=20s&deliver=early&drop=expired&");
    let receivers = ["first.ts", "second.ts"].map(|name| {
        let out = folder.path(name);
        (copying.receiver(&out), name)
    });
    copying.pipe.write_all(&clip).unwrap();
    let (sent, _) = copying.end();
    assert_eq!(sent["output"]["totals"]["connections"], 2);
    // How many tables are repeated, and how many layouts there are, depends on the arrivals.
    let totals = &sent["output"]["totals"];
    let submitted = totals["sectionsSubmitted"].as_u64().unwrap();
    let video_and_sound = 250 + 470;
    assert!(submitted > 2 * video_and_sound, "{sent}");
    assert_eq!(totals["sectionsAcknowledged"], submitted);
    for (receiver, name) in receivers {
        let (received, _) = receiver.end(0);
        assert_eq!(
            received["input"]["totals"]["sectionsOnTime"],
            submitted / 2,
            "{received}"
        );
        assert!(folder.read(name) == clip);
    }
}

/// Whether or not anything may be left out.
pub(super) fn a_receiver_that_leaves_costs_the_others_no_live_media() {
    a_receiver_leaves("latency=20s&deliver=early&drop=expired&");
}

pub(super) fn a_receiver_that_leaves_costs_the_others_no_part_of_a_file() {
    a_receiver_leaves("latency=100ms&reliability=full&");
}

/// One of two receivers goes in the middle; the other one gets everything.
fn a_receiver_leaves(settings: &str) {
    let folder = Folder::new();
    let clip = fs::read(clip()).unwrap();
    let (before, after) = clip.split_at(clip.len() / 2);
    let mut copying = Copying::start(settings);
    let stays = copying.receiver(&folder.path("stays.ts"));
    let leaves = copying.receiver(&folder.path("leaves.ts"));
    copying.give(before, 0);
    leaves.interrupt();
    leaves.end(0);
    copying.sender.event("disconnected");
    copying.pipe.write_all(after).unwrap();
    let (sent, _) = copying.end();
    assert_eq!(sent["output"]["totals"]["connections"], 2);
    stays.end(0);
    assert_same_media(&folder.read("stays.ts"), &clip);
}

pub(super) fn a_late_receiver_gets_the_stream_from_then_on() {
    let folder = Folder::new();
    let clip = fs::read(clip()).unwrap();
    let (before, after) = clip.split_at(clip.len() / 2);
    let mut copying = Copying::start("latency=100ms&reliability=full&");
    let early = copying.receiver(&folder.path("early.ts"));
    copying.give(before, before.len() as u64 / 2);
    let late = copying.receiver(&folder.path("late.ts"));
    copying.pipe.write_all(after).unwrap();
    let (sent, _) = copying.end();
    early.end(0);
    late.end(0);
    assert_same_media(&folder.read("early.ts"), &clip);
    let (written, original) = (folder.read("late.ts"), elementary_streams(&clip));
    for (pid, units) in elementary_streams(&written) {
        let all = &original[&pid];
        if pid == VIDEO {
            // It begins with a sequence parameter set: no picture before it is needed.
            let has_parameters = units[0].windows(4).any(|start| start == [0, 0, 1, 0x67]);
            assert!(has_parameters, "{:x?}", &units[0][..32]);
        }
        // It has the last ones, all that came in since, and nothing of what went before.
        assert!(all.ends_with(&units), "PID {pid}");
        assert!(
            (all.len() / 4..all.len() * 3 / 4).contains(&units.len()),
            "PID {pid}: {} of {}",
            units.len(),
            all.len()
        );
    }
    assert_eq!(
        sent["output"]["unsent"]["unconnected"], 0,
        "the input waits for the first receiver"
    );
}

/// With `reliability=full` nothing is left out, so one whose reader sleeps has to be left behind:
/// here after the mebibyte that waits for it, that of its connection, and what it holds itself. The
/// one that reads must not be as far behind in the first round trips, in which either may be ahead.
pub(super) fn a_stalled_receiver_does_not_delay_others() {
    let folder = Folder::new();
    let bytes = noise(6_000_000);
    let mut copying = Copying::start("latency=100ms&reliability=full&sndbuf=1MiB&rcvbuf=256KiB&");
    let awake = copying.receiver(&folder.path("awake"));
    let asleep = copying.sleeper();
    copying.pipe.write_all(&bytes).unwrap();
    let expected = "more than 1048576 bytes behind another receiver";
    while !copying.sender.event("warning")["message"]
        .as_str()
        .unwrap()
        .contains(expected)
    {}
    let lost = copying.sender.event("disconnected");
    assert!(
        lost["reason"].as_str().unwrap().contains("too far behind"),
        "{lost}"
    );
    let (sent, _) = copying.end();
    let (received, _) = awake.end(0);
    assert!(folder.read("awake") == bytes);
    assert_eq!(received["passed"]["gaps"], serde_json::json!({}));
    // What waited for it is counted: less than its place and one section.
    let unsent = sent["output"]["unsent"]["no_room"].as_u64();
    assert!(unsent.is_some_and(|sections| sections > 0), "{sent}");
    let output = asleep.wait_with_output().unwrap();
    let said = checked(3, &output);
    assert!(said.contains("too far behind other receivers"), "{said}");
    // Its output is the beginning of what was sent.
    assert!(!output.stdout.is_empty() && bytes.starts_with(&output.stdout));
}

/// Nobody is ahead of the only one: its reader is waited for, and somebody who comes meanwhile is
/// served at once.
pub(super) fn the_only_receiver_sets_the_pace_until_another_arrives() {
    let folder = Folder::new();
    let bytes = noise(3_000_000);
    let mut copying = Copying::start("latency=100ms&reliability=full&sndbuf=64KiB&rcvbuf=64KiB&");
    let asleep = copying.sleeper();
    let pipe = copying.pipe.as_fd().try_clone_to_owned().unwrap();
    let given = bytes.clone();
    let feeding = thread::spawn(move || fs::File::from(pipe).write_all(&given));
    // All its room is full, and it is still connected.
    copying.sender.stalls("output", "sectionsSubmitted");
    let awake = copying.receiver(&folder.path("awake"));
    copying.sender.event("disconnected");
    feeding.join().unwrap().unwrap();
    copying.end();
    awake.end(0);
    checked(3, &asleep.wait_with_output().unwrap());
    let written = folder.read("awake");
    assert!(bytes.ends_with(&written));
    assert!(
        (1_000_000..3_000_000).contains(&written.len()),
        "{} bytes",
        written.len()
    );
}

/// Options that a place has no use for are refused, whichever the verb, and not left aside.
pub(super) fn options_of_senders_are_refused_where_they_have_no_effect() {
    let folder = Folder::new();
    let file = folder.path("out");
    let clip = clip();
    let clip = clip.to_str().unwrap();
    let caller = &format!("comity://127.0.0.1:9?{SECRET}");
    let listener = &format!("comity://127.0.0.1:0?mode=listener&{SECRET}");
    for option in [
        ["--all"].as_slice(),
        &["--no-shed"],
        &["--speed", "2"],
        &["--input-rate", "1Mbps"],
        &["--deadlines", "each"],
    ] {
        let said = ends(2, &[&["recv", listener, &file], option].concat());
        let expected = format!("unexpected argument '{}' found", option[0]);
        assert!(said.contains(&expected), "{said}");
    }
    for (args, says) in [
        (
            ["send", clip, caller, "--all"].as_slice(),
            "--all: comity://127.0.0.1:9 calls one receiver",
        ),
        (
            &["relay", listener, caller, "--all"],
            "--all: comity://127.0.0.1:9 calls one receiver",
        ),
        (
            &["relay", listener, &file, "--all"],
            "has no callers; expected comity://:port",
        ),
        (
            &["relay", listener, &file, "--no-shed"],
            "gets every picture anyway; expected comity://host:port",
        ),
        (
            &["send", "-", listener, "--speed", "2"],
            "--speed: is for a file, and - sets the pace itself",
        ),
        (
            &["relay", listener, &file, "--speed", "1"],
            "--speed: is for a file, and comity://127.0.0.1:0",
        ),
    ] {
        let said = ends(2, args);
        assert!(said.contains(says), "{args:?}: {said}");
        assert!(!said.contains("horse"), "{said}");
    }
    assert!(!Path::new(&file).exists(), "it was refused before it began");
    // With a use for them, they are taken: here it is only the listener that nobody calls.
    for args in [
        ["send", clip, listener, "--all", "--no-shed", "--speed", "2"].as_slice(),
        &["relay", listener, listener, "--all", "--no-shed"],
    ] {
        let said = ends(3, &[args, &["--duration", "10ms", "--quiet"]].concat());
        assert_eq!(said, "error: nobody called\n");
    }
}
