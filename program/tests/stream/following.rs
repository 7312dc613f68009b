//! An encoder that follows the target bitrate of the sender.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;

use super::*;

/// Writes a script by another process: a child of another test that has not called exec yet could
/// hold this file open, and such a file cannot be executed.
fn script(path: &str, text: &str) {
    let written = Command::new("sh")
        .args([
            "-c",
            "printf '%s\\n' '#!/bin/sh' \"$2\" > \"$1\" && chmod 755 \"$1\"",
            "-",
        ])
        .args([path, text])
        .status();
    assert!(written.unwrap().success());
}

/// The text of a file, once it has a whole line.
fn line_of(path: &str) -> String {
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        if text.ends_with('\n') {
            return text.trim().to_owned();
        }
        thread::yield_now();
    }
}

/// The program gets the update that the other outputs have. It hangs, is ended and named, and all
/// media arrive.
pub(super) fn a_program_gets_the_bitrate_and_may_hang() {
    let folder = Folder::new();
    let [program, said, socket, out] =
        ["program", "said", "socket", "out.ts"].map(|name| folder.path(name));
    script(
        &program,
        &format!("echo $$ $1 $COMITY_TEST_SECRET > {said}.new; mv {said}.new {said}; sleep 1000"),
    );
    let mut receiver = Running::start(&["recv", &format!("comity://:0?{EARLY}&{SECRET}"), &out]);
    let to = format!(
        "comity://127.0.0.1:{}?{UNHURRIED}&{SECRET}&encmin=200kbps&encmax=4Mbps",
        receiver.port()
    );
    let mut sender = Running::start(&[
        "send",
        clip().to_str().unwrap(),
        &to,
        "--on-target-bitrate",
        &program,
        "--target-bitrate-socket",
        &socket,
    ]);
    let update = sender.event("encoder");
    let bps = update["bpsEncoder"].as_u64().unwrap();
    assert!((200_000..=4_000_000).contains(&bps), "{update}");
    assert!(update["bpsTarget"].as_u64().unwrap() > bps, "{update}");
    let mut line = String::new();
    let connected = UnixStream::connect(&socket).unwrap();
    BufReader::new(connected).read_line(&mut line).unwrap();
    let read: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(read["event"], "encoder");
    // Its process, and the bitrate; the secret is not in its environment.
    let found = line_of(&said);
    let (pid, rest) = found.split_once(' ').unwrap();
    assert_eq!(rest, bps.to_string());
    let warning = sender.event("warning");
    let message = warning["message"].as_str().unwrap();
    assert!(
        message.contains("--on-target-bitrate") && message.contains("took longer than 5 s"),
        "{message}"
    );
    let (sent, _) = sender.end(0);
    let (received, _) = receiver.end(0);
    assert!(!Path::new("/proc").join(pid).exists());
    assert!(!Path::new(&socket).exists());
    assert_eq!(sent["output"]["totals"]["sectionsAcknowledged"], SECTIONS);
    assert_eq!(arrived(&received), SECTIONS);
    assert!(folder.read("out.ts") == fs::read(clip()).unwrap());
}

pub(super) fn an_encoder_without_its_highest_bitrate_is_refused() {
    let folder = Folder::new();
    let program = folder.path("program");
    script(&program, "");
    let clip = clip();
    let clip = clip.to_str().unwrap();
    let refused = |code, keys: &str, options: &[&str]| {
        let to = format!("comity://:0?{SECRET}{keys}");
        ends(code, &[&["send", clip, &to], options].concat())
    };
    let both = "&encmax=4Mbps";
    for (code, keys, options, words) in [
        (
            2,
            "",
            &["--on-target-bitrate", &program][..],
            "expected encmax in the URI",
        ),
        (
            2,
            "",
            &["--target-bitrate-socket", "s"],
            "expected encmax in the URI",
        ),
        (
            2,
            "&encmax=1Mbps&encmin=2Mbps",
            &["--on-target-bitrate", &program],
            "encmin up to encmax",
        ),
        (
            2,
            both,
            &["--on-target-bitrate", &program, "--all"],
            "several receivers",
        ),
        (
            6,
            both,
            &["--on-target-bitrate", "./no-program"],
            "no executable file",
        ),
        (6, both, &["--target-bitrate-socket", clip], "is no socket"),
    ] {
        let said = refused(code, keys, options);
        assert!(said.contains(words), "{said}");
    }
}
