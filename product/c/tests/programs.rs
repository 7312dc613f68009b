//! The examples over loopback, and a program that calls every function wrongly.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};

use super::built;

/// No test here is about a deadline: a busy machine may take its time.
const UNHURRIED: &str = "insecure&latency=20s&linger=1min&peeridletimeo=1min&deliver=early";

/// The address in the first line that a listener prints.
fn address(said: &mut impl BufRead) -> String {
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let address = line.trim_end().strip_prefix("listening at ");
    address.unwrap_or_else(|| panic!("{line:?}")).to_owned()
}

fn uri(address: &str) -> String {
    format!("comity://{address}?{UNHURRIED}")
}

fn succeed(program: &Path, arguments: &[&str]) -> String {
    let output = built::running(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", program.display());
    String::from_utf8(output.stdout).unwrap()
}

fn rest(mut from: impl Read) -> String {
    let mut text = String::new();
    from.read_to_string(&mut text).unwrap();
    text
}

fn end(mut child: Child) {
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn sections_arrive() {
    let Some(program) = built::program("examples/sections.c") else {
        return;
    };
    let mut receiver = built::running(&program)
        .args(["receive", &uri("127.0.0.1:0")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(receiver.stdout.take().unwrap());
    let address = address(&mut said);
    let sent = succeed(&program, &["send", &uri(&address), "30"]);
    // The deadlines of the example are shorter than a stall of a busy machine can be.
    let (arrived, _) = sent.split_once(" of 30 arrived").unwrap();
    let arrived: u64 = arrived.parse().unwrap();
    let said = rest(said);
    let (whole, counted) = said
        .trim_end()
        .lines()
        .last()
        .unwrap()
        .split_once(' ')
        .unwrap();
    let whole: u64 = whole.parse().unwrap();
    let missing: u64 = counted.rsplit(' ').nth(1).unwrap().parse().unwrap();
    assert!(arrived <= whole && whole + missing == 30, "{sent}{said}");
    if whole == 30 {
        // Three key frames of 40,000 bytes and 27 others of 13,000.
        assert!(counted.contains("of 471000 bytes"), "{said}");
    }
    end(receiver);
}

#[test]
fn one_thread_serves_several_senders() {
    let programs = ["examples/server.c", "examples/sections.c"].map(built::program);
    let [Some(server), Some(sender)] = programs else {
        return;
    };
    let mut server = built::running(&server)
        .args([&uri("127.0.0.1:0"), "3"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(server.stdout.take().unwrap());
    let address = address(&mut said);
    let senders: Vec<Child> = ["a", "b", "c"]
        .iter()
        .map(|name| {
            let uri = format!("{}&streamid={name}", uri(&address));
            let mut command = built::running(&sender);
            command
                .args(["send", &uri, "20"])
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    senders.into_iter().for_each(end);
    let said = rest(said);
    for name in ["a", "b", "c"] {
        let line = said
            .lines()
            .find(|line| line.contains(&format!(" {name}: ")));
        let numbers = line.unwrap_or_else(|| panic!("{said}")).split(' ');
        let numbers = numbers.filter_map(|word| word.parse::<u64>().ok());
        assert_eq!(numbers.sum::<u64>(), 20, "{said}");
    }
    // Each sender exits as soon as its connection is closed, and the server knows.
    assert_eq!(rest(server.stderr.take().unwrap()), "");
    end(server);
}

#[test]
fn a_transport_stream_arrives_byte_for_byte() {
    let Some(program) = built::program("examples/media.c") else {
        return;
    };
    let film = include_bytes!("../../media/tests/vectors/h264.ts");
    let (input, output) = (
        built::write("input.ts", film),
        built::write("output.ts", &[]),
    );
    let mut receiver = built::running(&program)
        .args(["receive", &uri("127.0.0.1:0")])
        .stdout(File::create(&output).unwrap())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(receiver.stderr.take().unwrap());
    let address = address(&mut said);
    let sender = built::running(&program)
        .args(["send", &uri(&address)])
        .stdin(File::open(&input).unwrap())
        .spawn();
    end(sender.unwrap());
    end(receiver);
    assert!(fs::read(output).unwrap() == film, "{}", rest(said));
}

#[test]
fn libraries_of_ffmpeg_read_and_write() {
    let packages = ["libavformat", "libavcodec", "libavutil"];
    let Some(program) = built::program_with("examples/avio.c", &packages) else {
        return;
    };
    let mut receiver = built::running(&program)
        .args(["receive", &uri("127.0.0.1:0")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(receiver.stdout.take().unwrap());
    let address = address(&mut said);
    let film = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../media/tests/vectors/h264.ts"
    );
    succeed(&program, &["send", &uri(&address), film]);
    assert_eq!(rest(said), "2 streams, 145 packets\n");
    end(receiver);
}

#[test]
fn an_encoder_follows_the_target() {
    let programs = (
        built::program_with("examples/encoder.c", &["libavcodec", "libavutil"]),
        built::program("examples/sections.c"),
    );
    let (Some(encoder), Some(receiver)) = programs else {
        return;
    };
    let mut receiver = built::running(&receiver)
        .args(["receive", &uri("127.0.0.1:0")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(receiver.stdout.take().unwrap());
    let address = address(&mut said);
    // The connection allows 2 Mb/s, and 5 % are head room. The encoder begins at 0.5 Mb/s.
    let uri = format!("{}&maxbw=2Mbps", uri(&address));
    let sent = succeed(&encoder, &[&uri, "75"]);
    let rates: Vec<f64> = sent
        .lines()
        .filter_map(|line| {
            line.split_once("encoder ")?
                .1
                .split(' ')
                .next()?
                .parse()
                .ok()
        })
        .collect();
    assert_eq!(rates.len(), 3, "{sent}");
    let is_bounded = |rate: &f64| (0.2..=1.9).contains(rate);
    assert!(rates.iter().all(is_bounded) && rates[2] != 0.5, "{sent}");
    let bytes = sent.lines().last().unwrap();
    let said = rest(said);
    assert!(
        said.contains(&format!("75 sections of {bytes}, 0 missing")),
        "{sent}{said}"
    );
    end(receiver);
}

#[test]
fn wrong_calls_are_errors() {
    if let Some(program) = built::program("tests/edges.c") {
        succeed(&program, &[]);
    }
}
