//! One request to end is enough, whatever an input, an output or a peer does: without it, each of
//! these would wait for ever.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// Signals it once, and takes what it prints; its code and what was said.
fn stopped(child: Child) -> (Option<i32>, String) {
    let _watch = watch(&child);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// The standard output is a pipe that nobody reads.
pub(super) fn a_reader_that_never_reads_does_not_hold_up_the_end() {
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

/// The receiver is stopped by its debugger, as it were, and the sender may wait for an hour.
pub(super) fn a_peer_that_never_answers_does_not_hold_up_the_end() {
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

/// All of it is due an hour after the sender has gone.
pub(super) fn deadlines_of_a_sender_that_is_gone_are_not_waited_for() {
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
    // The next caller has its place.
    let (received, _) = receiver.end(0);
    assert_eq!(arrived(&received), SECTIONS);
    assert_eq!(folder.read("out.ts"), fs::read(clip).unwrap());
}

/// Datagrams that are no media, as fast as they go.
pub(super) fn garbage_does_not_hold_up_the_end() {
    for scheme in ["udp", "rtp"] {
        for verb in ["relay", "check"] {
            let port = {
                let free = UdpSocket::bind("127.0.0.1:0").unwrap();
                free.local_addr().unwrap().port()
            };
            let from = format!("{scheme}://127.0.0.1:{port}");
            let args = match verb {
                "relay" => vec!["relay", &from, "/dev/null", "--quiet"],
                _ => vec!["check", &from, "--quiet"],
            };
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
                    // Nobody listens before and after.
                    let _ = socket.send_to(&garbage, ("127.0.0.1", port));
                }
            });
            let child = command(&args)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let place = format!("/proc/{}/net/udp", child.id());
            let local = format!("0100007F:{port:04X}");
            while !fs::read_to_string(&place).unwrap().contains(&local) {
                thread::yield_now();
            }
            let (code, said) = stopped(child);
            is_over.store(true, Ordering::Relaxed);
            flood.join().unwrap();
            // It may not have set its handler yet.
            assert!(
                matches!(code, Some(0 | 1 | 6) | None),
                "{verb} {code:?}: {said}"
            );
        }
    }
}

/// A pipe to which nobody writes, and a call that nobody answers.
pub(super) fn an_input_that_never_comes_does_not_hold_up_the_end() {
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
        let mut child = command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Held open.
        let input = child.stdin.take();
        let handled = format!("/proc/{}/status", child.id());
        // SIGTERM is the 15th signal: it has a handler.
        let is_handled = |status: &str| {
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
            caught & (1 << 14) != 0
        };
        while !is_handled(&fs::read_to_string(&handled).unwrap()) {
            thread::yield_now();
        }
        let (code, said) = stopped(child);
        drop(input);
        assert!(code.is_some(), "{args:?}: {said}");
    }
}

/// Whoever reads an address may stop the program at once.
pub(super) fn a_stop_right_behind_an_address_ends_it_in_good_order() {
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
            let mut child = command(args)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let _watch = watch(&child);
            // Held open.
            let input = child.stdin.take();
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
