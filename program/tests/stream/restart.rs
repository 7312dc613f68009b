//! Ends that are killed and come back at once.

use rustix::process::Signal;

use std::fs;

use super::{EARLY, Folder, Running, SECRET, UNHURRIED, clip};

/// The answer to the sender's next packet shows that the receiver no longer knows the connection,
/// and the sender calls the new receiver.
pub(super) fn a_killed_receiver_is_called_again_at_once() {
    let folder = Folder::new();
    let clip = fs::read(clip()).unwrap();
    let (before, after) = clip.split_at(clip.len() / 2);
    let listener = format!("comity://127.0.0.1:0?mode=listener&{EARLY}&{SECRET}");
    let mut first = Running::start(&["recv", &listener, "/dev/null"]);
    let port = first.port();
    let uri = format!("comity://127.0.0.1:{port}?{UNHURRIED}&{SECRET}");
    let mut sender = Running::fed(&["send", "-", &uri]);
    sender.event("connected");
    first.signal(Signal::KILL);
    drop(first);
    let listener = format!("comity://127.0.0.1:{port}?mode=listener&{EARLY}&{SECRET}");
    let second = Running::start(&["recv", &listener, &folder.path("out.ts")]);
    // For a minute, only an answer to a packet can show that the first receiver is gone.
    sender.feed(before);
    // The receiver must know the connection before it is killed.
    sender.event("connected");
    sender.feed(after);
    let (sent, said) = sender.end(0);
    assert!(said.contains("it was restarted"), "{said}");
    assert_eq!(sent["output"]["totals"]["connections"], 2);
    let (received, _) = second.end(0);
    let whole = &received["input"]["totals"]["sectionsOnTime"];
    assert!(whole.as_u64().unwrap() > 100, "{received}");
}

/// The receiver serves one sender at a time. A restarted sender replaces its own dead connection.
pub(super) fn a_killed_sender_is_served_again_at_once() {
    let listener = format!("comity://127.0.0.1:0?mode=listener&{SECRET}");
    let mut receiver = Running::start(&["recv", &listener, "/dev/null"]);
    let uri = format!("comity://127.0.0.1:{}?{SECRET}", receiver.port());
    let first = Running::start(&["send", clip().to_str().unwrap(), &uri]);
    receiver.event("connected");
    first.signal(Signal::KILL);
    drop(first);
    // This is within the minute of silence that would end the first connection.
    let second = Running::start(&["send", clip().to_str().unwrap(), &uri, "--speed", "10"]);
    receiver.event("connected");
    second.end(0);
    let (received, said) = receiver.end(0);
    assert!(said.contains("has opened a new connection"), "{said}");
    assert_eq!(received["input"]["totals"]["connections"], 2);
}
