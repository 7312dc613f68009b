//! One input for every receiver that calls.

use std::io::Write;
use std::os::fd::AsFd;
use std::process::{ChildStdin, Stdio};

use super::*;

/// The PID of the clip's pictures.
const VIDEO: u16 = 256;

/// A sender with a pipe as its input that serves every caller.
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

    /// Starts a receiver that calls and writes to `out`. Returns when it is connected.
    fn receiver(&mut self, out: &str) -> Running {
        let receiver = Running::start(&["recv", &self.from, out]);
        self.sender.event("connected");
        receiver
    }

    /// Starts a receiver that calls once and whose output is never read. Returns when it is
    /// connected.
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

    /// Writes the first bytes to the pipe. Returns when `leaving` bytes have been sent, the copies
    /// for all receivers together.
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

/// Pseudorandom bytes.
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
    // The numbers of repeated tables and of layouts depend on the arrival times.
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

/// The sender may drop sections here, but not in the next test.
pub(super) fn a_receiver_that_leaves_costs_the_others_no_live_media() {
    a_receiver_leaves("latency=20s&deliver=early&drop=expired&");
}

pub(super) fn a_receiver_that_leaves_costs_the_others_no_part_of_a_file() {
    a_receiver_leaves("latency=100ms&reliability=full&");
}

/// One of two receivers leaves in the middle; the other one receives everything.
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
            // The output begins with a sequence parameter set, so it depends on no earlier picture.
            let has_parameters = units[0].windows(4).any(|start| start == [0, 0, 1, 0x67]);
            assert!(has_parameters, "{:x?}", &units[0][..32]);
        }
        // It contains all units since the receiver joined, and none from before.
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

/// With `reliability=full` no section may be dropped, so a receiver whose reader stalls is
/// disconnected: here after the mebibyte that waits for it, the buffer of its connection, and its
/// own buffer. The other receiver must not be as far behind in the first round trips, when either
/// of them may be ahead.
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
    // The sections that waited for the stalled receiver are counted as unsent.
    let unsent = sent["output"]["unsent"]["no_room"].as_u64();
    assert!(unsent.is_some_and(|sections| sections > 0), "{sent}");
    let output = asleep.wait_with_output().unwrap();
    let said = checked(3, &output);
    assert!(said.contains("too far behind other receivers"), "{said}");
    // The output of the stalled receiver is the beginning of the input.
    assert!(!output.stdout.is_empty() && bytes.starts_with(&output.stdout));
}

/// A single receiver is never behind another one, so the sender waits for its reader. A second
/// receiver is served at once.
pub(super) fn the_only_receiver_sets_the_pace_until_another_arrives() {
    let folder = Folder::new();
    let bytes = noise(3_000_000);
    let mut copying = Copying::start("latency=100ms&reliability=full&sndbuf=64KiB&rcvbuf=64KiB&");
    let asleep = copying.sleeper();
    let pipe = copying.pipe.as_fd().try_clone_to_owned().unwrap();
    let given = bytes.clone();
    let feeding = thread::spawn(move || fs::File::from(pipe).write_all(&given));
    // All buffers are full, and the receiver is still connected.
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

/// Each verb refuses options that have no effect on its input or output.
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
    // Where the options have an effect they are accepted: here the run fails only because nobody
    // calls the listener.
    for args in [
        ["send", clip, listener, "--all", "--no-shed", "--speed", "2"].as_slice(),
        &["relay", listener, listener, "--all", "--no-shed"],
    ] {
        let said = ends(3, &[args, &["--duration", "10ms", "--quiet"]].concat());
        assert_eq!(said, "error: nobody called\n");
    }
}
