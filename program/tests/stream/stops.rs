//! One request to end is enough in every state of an input, an output or a peer. Without it, each
//! of these runs would wait for ever.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{ChildStdin, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// Sends one SIGTERM. Returns the code and the messages.
fn stopped(child: Child) -> (Option<i32>, String) {
    let _watch = watch(&child);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// Starts it with an open input that is never written.
fn without_input(args: &[&str]) -> (Child, Option<ChildStdin>) {
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input = child.stdin.take();
    (child, input)
}

/// Waits until the program has a handler for SIGTERM, the 15th signal.
fn handles(child: &mut Child) {
    let status = format!("/proc/{}/status", child.id());
    let is_handled = |status: &str| {
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
        caught & (1 << 14) != 0
    };
    while !is_handled(&fs::read_to_string(&status).unwrap()) {
        assert_eq!(child.try_wait().unwrap(), None, "it ended");
        thread::yield_now();
    }
}

/// The standard output is a pipe that nobody reads.
pub(super) fn a_stuck_reader_does_not_delay_the_end() {
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
    sender.feed(&vec![7; 1 << 20]);
    sender.stalls("output", "sectionsAcknowledged");
    let mut receiver = receiver;
    let pipe = receiver.stdout.take();
    let (code, said) = stopped(receiver);
    drop(pipe);
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("not done within linger"), "{said}");
    let gaps = String::from_utf8(folder.read("gaps")).unwrap();
    assert!(gaps.contains("\"reason\":\"unwritten\""), "{gaps}");
}

/// The receiver is stopped as by a debugger, and the sender may wait for an hour.
pub(super) fn a_silent_peer_does_not_delay_the_end() {
    let settings = "reliability=full&peeridletimeo=3600s";
    let mut receiver = Running::start(&[
        "recv",
        &format!("comity://127.0.0.1:0?mode=listener&peeridletimeo=3600s&{KEY}"),
        "/dev/null",
    ]);
    let uri = format!("comity://127.0.0.1:{}?{settings}&{KEY}", receiver.port());
    let folder = Folder::new();
    let gaps = folder.path("gaps");
    let mut sender = Running::fed(&["send", "-", &uri, "--gaps", &gaps]);
    sender.feed(&[7; 1 << 16]);
    receiver.statistics_when(|statistics| arrived(statistics) > 0);
    receiver.signal(Signal::STOP);
    sender.feed(&vec![7; 1 << 18]);
    sender.statistics_when(|statistics| {
        let totals = &statistics["output"]["totals"];
        totals["sectionsSubmitted"].as_u64() > totals["sectionsAcknowledged"].as_u64()
    });
    sender.signal(Signal::TERM);
    let (_, code, said) = sender.ended();
    assert!(matches!(code, Some(0 | 3 | 130)), "{code:?} {said}");
    let gaps = String::from_utf8(folder.read("gaps")).unwrap();
    assert!(gaps.lines().count() > 0, "what was not confirmed is named");
}

/// All sections are due an hour after the sender has gone.
pub(super) fn deadlines_of_a_lost_sender_do_not_delay_the_end() {
    let folder = Folder::new();
    let mut receiver = Running::start(&[
        "recv",
        &format!("comity://127.0.0.1:0?mode=listener&{KEY}"),
        &folder.path("out.ts"),
    ]);
    let uri = format!(
        "comity://127.0.0.1:{}?latency=3600s&{SECRET}",
        receiver.port()
    );
    let clip = clip();
    let sender = Running::start(&["send", clip.to_str().unwrap(), &uri, "--speed", "20"]);
    sender.end(0);
    // The receiver ends at once, without waiting for the deadlines.
    let (received, _) = receiver.end(0);
    assert_eq!(arrived(&received), SECTIONS);
    assert_eq!(folder.read("out.ts"), fs::read(clip).unwrap());
}

/// Datagrams without media, as fast as possible.
pub(super) fn garbage_does_not_delay_the_end() {
    for scheme in ["udp", "rtp"] {
        for verb in ["relay", "check"] {
            let from = format!("{scheme}://@127.0.0.1:0");
            let mut args = vec![verb, &from];
            args.extend((verb == "relay").then_some("/dev/null"));
            let mut child = command(&args)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            // The first line of output has the port.
            let mut said = BufReader::new(child.stderr.take().unwrap());
            let mut first = String::new();
            said.read_line(&mut first).unwrap();
            let port: u16 = { first.trim().rsplit_once(':') }
                .and_then(|(_, port)| port.parse().ok())
                .unwrap_or_else(|| panic!("{verb}: {first}"));
            let is_over = Arc::new(AtomicBool::new(false));
            let ends = is_over.clone();
            let flood = thread::spawn(move || {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                let mut garbage = [0x47; 1_316];
                let mut number = 1_u64;
                while !ends.load(Ordering::Relaxed) {
                    for byte in &mut garbage {
                        number = number.wrapping_mul(6_364_136_223_846_793_005) + 1;
                        *byte = (number >> 56) as u8;
                    }
                    // After the end, sending fails.
                    let _ = socket.send_to(&garbage, ("127.0.0.1", port));
                }
            });
            handles(&mut child);
            let (code, _) = stopped(child);
            is_over.store(true, Ordering::Relaxed);
            flood.join().unwrap();
            let mut rest = String::new();
            said.read_to_string(&mut rest).unwrap();
            // Some garbage counts as media with faults (code 3).
            assert!(
                matches!(code, Some(0 | 1 | 3 | 6)),
                "{verb} {code:?}: {rest}"
            );
            assert!(rest.lines().count() < 20, "{verb}: {rest}");
        }
    }
}

/// A pipe that is never written, and a call without an answer.
pub(super) fn an_input_without_data_does_not_delay_the_end() {
    for args in [
        &["check", "-"][..],
        &["relay", "-", "/dev/null"],
        &[
            "send",
            "-",
            "comity://127.0.0.1:9?insecure=1&conntimeo=3600s",
            "--reconnect",
            "always",
        ],
        &[
            "recv",
            "comity://127.0.0.1:0?mode=listener&insecure=1",
            "/dev/null",
        ],
        &["emulate", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:9"],
    ] {
        let (mut child, input) = without_input(args);
        handles(&mut child);
        let (code, said) = stopped(child);
        drop(input);
        assert!(code.is_some(), "{args:?}: {said}");
    }
}

/// A program that has printed its address may be stopped at once.
pub(super) fn a_stop_right_after_listening_ends_orderly() {
    let listener = "comity://127.0.0.1:0?mode=listener&insecure=1";
    let metrics = ["--metrics-bind", "127.0.0.1:0"];
    for (args, line) in [
        (&["recv", listener, "/dev/null"][..], "listening on "),
        (&["send", "-", listener], "listening on "),
        (&["relay", listener, listener], "listening on "),
        (
            &["recv", listener, "/dev/null", metrics[0], metrics[1]],
            "metrics at ",
        ),
        (
            &["emulate", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:9"],
            "listening on ",
        ),
    ] {
        for signal in [Signal::TERM, Signal::INT].repeat(4) {
            let (mut child, input) = without_input(args);
            let _watch = watch(&child);
            let mut lines = BufReader::new(child.stderr.take().unwrap());
            let mut said = String::new();
            while !said.contains(line) {
                let length = lines.read_line(&mut said).unwrap();
                assert!(length > 0, "{args:?}: {said}");
            }
            kill_process(Pid::from_child(&child), signal).unwrap();
            lines.read_to_string(&mut said).unwrap();
            let code = child.wait().unwrap().code();
            drop(input);
            assert_eq!(code, Some(0), "{args:?}, {signal:?}: {said}");
        }
    }
}
