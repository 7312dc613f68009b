//! `comity tcp` beside the kernel's TCP, in a network namespace that ends with the test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use nix::sched::{CloneFlags, unshare};
use serde_json::Value;

use super::{Bench, can_run};

/// The host behind the device, and the kernel's address on it.
const HOST: [&str; 4] = ["--address", "10.77.0.2", "--kernel", "10.77.0.1/24"];

/// Runs `work` on a thread in a new namespace. Programs that it starts are in there too.
fn in_namespace(work: impl FnOnce(&Bench) + Send) {
    if !can_run() {
        return;
    }
    let bench = Bench::new("");
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            let up = Command::new("ip")
                .args(["link", "set", "lo", "up"])
                .status();
            assert!(up.unwrap().success());
            work(&bench);
        });
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Starts the command. Returns after it has printed `word`.
fn start(bench: &Bench, args: &[&str], word: &str) -> Child {
    let mut child = bench
        .comity(args)
        .args(HOST)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.next().expect("it says something").unwrap();
    assert!(line.contains(word), "{line}");
    child
}

/// The JSON documents of a command that succeeded.
fn documents(child: Child) -> Vec<Value> {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}: {text}", output.status);
    let parse = |line| serde_json::from_str(line).unwrap();
    text.lines().map(parse).collect()
}

fn content() -> Vec<u8> {
    (0..3_000_000_u32).map(|at| ((at * 7) >> 3) as u8).collect()
}

#[test]
fn a_file_is_served_to_every_kernel_connection() {
    in_namespace(|bench| {
        std::fs::write(bench.path("file"), content()).unwrap();
        let args = [
            "tcp", "serve", "file", "--port", "8000", "--count", "2", "--json",
        ];
        let child = start(bench, &args, "serving at 10.77.0.2:8000");
        for _ in 0..2 {
            let mut stream = TcpStream::connect("10.77.0.2:8000").unwrap();
            let mut copy = Vec::new();
            stream.read_to_end(&mut copy).unwrap();
            assert!(copy == content(), "{} bytes", copy.len());
        }
        for document in documents(child) {
            assert_eq!(document["sent_bytes"], 3_000_000);
            assert_eq!(document["error"], Value::Null);
        }
    });
}

#[test]
fn a_file_is_sent_to_a_kernel_listener() {
    in_namespace(|bench| {
        std::fs::write(bench.path("file"), content()).unwrap();
        let listener = TcpListener::bind("0.0.0.0:9000").unwrap();
        let child = bench
            .comity(&["tcp", "send", "file", "10.77.0.1:9000", "--json"])
            .args(HOST)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut stream, peer) = listener.accept().unwrap();
        assert_eq!(peer.ip().to_string(), "10.77.0.2");
        let mut copy = Vec::new();
        stream.read_to_end(&mut copy).unwrap();
        assert!(copy == content(), "{} bytes", copy.len());
        drop(stream);
        let documents = documents(child);
        assert_eq!(documents.len(), 1);
        assert_eq!(documents[0]["sent_bytes"], 3_000_000);
    });
}

#[test]
fn a_proxy_forwards_both_directions_and_half_closes() {
    in_namespace(|bench| {
        let listener = TcpListener::bind("0.0.0.0:7000").unwrap();
        let child = start(
            bench,
            &[
                "tcp",
                "proxy",
                ":8080",
                "10.77.0.1:7000",
                "--count",
                "1",
                "--json",
            ],
            "forwarding",
        );
        let mut inside = TcpStream::connect("127.0.0.1:8080").unwrap();
        let (mut outside, peer) = listener.accept().unwrap();
        assert_eq!(peer.ip().to_string(), "10.77.0.2");
        inside.write_all(b"question").unwrap();
        inside.shutdown(Shutdown::Write).unwrap();
        let mut text = String::new();
        outside.read_to_string(&mut text).unwrap();
        outside.write_all(b" and answer").unwrap();
        drop(outside);
        inside.read_to_string(&mut text).unwrap();
        assert_eq!(text, "question and answer");
        let documents = documents(child);
        assert_eq!(
            (&documents[0]["sent_bytes"], &documents[0]["received_bytes"]),
            (&8.into(), &11.into())
        );
    });
}

#[test]
fn failures_have_their_exit_codes() {
    in_namespace(|bench| {
        std::fs::write(bench.path("file"), "short").unwrap();
        let cases: [(&[&str], i32, &str); 9] = [
            (
                &["stream", "file", "10.77.0.1:9"],
                1,
                "expected an elementary stream",
            ),
            (
                &["stream", "absent", "10.77.0.1:9"],
                6,
                "cannot open absent",
            ),
            (
                &["receive", "file", "--port", "9"],
                6,
                "--overwrite replaces it",
            ),
            (&["receive", "-", "--port", "9", "--json"], 2, "cannot both"),
            (&["send", "file", "10.77.0.1:9"], 3, "connection refused"),
            (&["send", "absent", "10.77.0.1:9"], 6, "cannot open absent"),
            (
                &["send", "file", "10.77.0.1:9", "--cc", "cubik"],
                2,
                "cubic",
            ),
            (&["send", "file", "10.77.0.1:9", "--mtu", "100"], 2, "576"),
            (&["proxy", "192.0.2.1:80", "10.77.0.1:9"], 5, "192.0.2.1:80"),
        ];
        for (args, code, words) in cases {
            let output = bench
                .comity(&["tcp"])
                .args(args)
                .args(HOST)
                .output()
                .unwrap();
            let text = super::said(&output);
            assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
            assert!(text.contains(words), "{args:?}: {text}");
        }
    });
}

/// Makes 6 s of MPEG-1 video at 1.5 Mb/s, in groups of 15 pictures with two B pictures between the
/// others. Returns `None` without ffmpeg.
fn film(bench: &Bench) -> Option<u64> {
    let make = Command::new("ffmpeg")
        .args("-v error -f lavfi -i testsrc2=size=352x240:rate=25 -t 6".split(' '))
        .args("-c:v mpeg1video -g 15 -bf 2 -b:v 1500k -maxrate 1500k -bufsize 1000k".split(' '))
        .args(["-f", "mpeg1video"])
        .arg(bench.path("film.m1v"))
        .status();
    if make.is_err() {
        let is_needed = std::env::var_os("COMITY_NEED_FFMPEG").is_some();
        assert!(
            !is_needed,
            "COMITY_NEED_FFMPEG is set, and ffmpeg is missing"
        );
        super::print_line("skipped, ffmpeg is missing");
        return None;
    }
    assert!(make.unwrap().success());
    Some(decoded(bench, "film.m1v"))
}

/// The number of pictures that ffmpeg decodes from a file without any error.
fn decoded(bench: &Bench, file: &str) -> u64 {
    let output = Command::new("ffmpeg")
        .args(["-v", "error", "-xerror", "-err_detect", "explode", "-i"])
        .arg(bench.path(file))
        .args("-fps_mode passthrough -f framemd5 -".split(' '))
        .output()
        .unwrap();
    assert!(output.status.success(), "{file}: {}", super::said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter(|line| !line.starts_with('#')).count() as u64
}

fn sum(counts: &Value) -> u64 {
    let counts = counts.as_object().unwrap().values();
    counts.map(|count| count.as_u64().unwrap()).sum()
}

#[test]
fn video_that_arrives_on_time_is_decoded() {
    in_namespace(|bench| {
        let Some(pictures) = film(bench) else { return };
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        for (rate, copy) in [("100mbit", "whole.m1v"), ("800kbit", "part.m1v")] {
            let player = start(
                bench,
                &["tcp", "receive", copy, "--port", "9000", "--json"],
                "waiting at 10.77.0.2:9000",
            );
            let shape =
                format!("qdisc add dev comity0 root tbf rate {rate} burst 6kb latency 150ms");
            let shaped = Command::new("tc").args(shape.split(' ')).status();
            assert!(shaped.unwrap().success());
            let sender = bench
                .comity(&["tcp", "stream", "film.m1v", "10.77.0.2:9000", "--json"])
                .args(["--latency", "1s", "--tun", "comity1"])
                .args(["--address", "10.78.0.2", "--kernel", "10.78.0.1/24"])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let sent = documents(sender).pop().unwrap();
            let kept = documents(player).pop().unwrap();
            assert_eq!(
                (&sent["delivery"], &kept["delivery"]),
                (&"timelined".into(), &"timelined".into())
            );
            assert_eq!(sent["has_feedback"], true);
            let submitted = sum(&sent["submitted"]);
            assert_eq!(submitted + sum(&sent["not_submitted"]), pictures);
            let settled = &kept["sections"];
            // Absent sections at the end are unknown to the player.
            assert!(sum(settled) <= submitted, "{sent} {kept}");
            let written = sum(&kept["written"]);
            assert_eq!(
                settled["on_time"],
                written + kept["undecodable"].as_u64().unwrap()
            );
            assert_eq!(decoded(bench, copy), written, "{kept}");
            if copy == "whole.m1v" {
                assert_eq!(written, pictures, "{sent} {kept}");
                let read = |name| std::fs::read(bench.path(name)).unwrap();
                assert!(read(copy) == read("film.m1v"));
            } else {
                assert!(
                    written < pictures && kept["written"]["i"].as_u64() > Some(3),
                    "{kept}"
                );
                assert!(sum(&sent["not_submitted"]) > 0, "{sent}");
            }
        }
    });
}

#[test]
fn a_plain_receiver_gets_a_video_of_whole_pictures() {
    in_namespace(|bench| {
        let Some(pictures) = film(bench) else { return };
        let listener = TcpListener::bind("0.0.0.0:9000").unwrap();
        let child = bench
            .comity(&[
                "tcp",
                "stream",
                "film.m1v",
                "10.77.0.1:9000",
                "--raw",
                "--json",
            ])
            .args(HOST)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut copy = Vec::new();
        stream.read_to_end(&mut copy).unwrap();
        drop(stream);
        std::fs::write(bench.path("copy.m1v"), copy).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert!(
            super::said(&output).contains("not time-lined"),
            "the fallback is announced"
        );
        let sent: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(sent["delivery"], "plain");
        let sections = &sent["sections"];
        let arrived = sections["on_time"].as_u64().unwrap() + sections["late"].as_u64().unwrap();
        assert_eq!(decoded(bench, "copy.m1v"), arrived, "{sent}");
        assert_eq!(arrived, pictures, "{sent}");
    });
}
