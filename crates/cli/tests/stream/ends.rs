//! How the verbs end, and what they tell meanwhile.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;

use super::*;

#[test]
fn mistakes_are_named_with_what_to_do() {
    const USAGE: i32 = 2;
    const UNOPENED: i32 = 6;
    let folder = Folder::new();
    let (clip, empty) = (clip(), folder.path("empty"));
    let clip = clip.to_str().unwrap();
    fs::write(&empty, b"").unwrap();
    let bad_key = folder.path("bad.key");
    fs::write(&bad_key, "no key").unwrap();
    let here = "comity://127.0.0.1:9?insecure=1";
    let with_key = format!("comity://:0?key={bad_key}");
    let (missing, nowhere) = (folder.path("no/out.ts"), folder.path("no"));
    let kept = folder.path("out.ts");
    let listener = format!("comity://127.0.0.1:0?mode=listener&{SECRET}");
    let cases: [(i32, &[&str], &[&str]); 15] = [
        (
            UNOPENED,
            &["send", "nosuch.ts", here],
            &["cannot open nosuch.ts", "check its name"],
        ),
        (UNOPENED, &["send", ".", here], &["folder"]),
        (
            UNOPENED,
            &["recv", here, &kept, "--gaps", &missing],
            &["cannot open", "there is no folder", &nowhere],
        ),
        (
            UNOPENED,
            &["recv", &listener, &missing],
            &["cannot open", "there is no folder", &nowhere],
        ),
        (
            USAGE,
            &["send", "-", here, "--deadlines", "group"],
            &["--deadlines: is group", "expected it with a file"],
        ),
        (
            USAGE,
            &["relay", here, &kept, "--deadlines", "group"],
            &["--deadlines: is group", "comity://127.0.0.1:9 gives"],
        ),
        (UNOPENED, &["relay", &empty, "/dev/null"], &["is empty"]),
        (
            USAGE,
            &["send", clip, "srtt://h:9"],
            &["there is no scheme \"srtt\""],
        ),
        (
            USAGE,
            &["send", clip, "comity://h:9?latensy=1"],
            &["latensy", "did you mean \"latency\"?"],
        ),
        (
            USAGE,
            &["send", clip, "comity://127.0.0.1:9"],
            &["no credentials", "passphrase=", "--insecure"],
        ),
        (
            USAGE,
            &["send", clip, "udp://127.0.0.1:9"],
            &["expected comity://", "comity relay"],
        ),
        (
            USAGE,
            &["send", clip, "comity://h:9?passphrase=short"],
            &["passphrase: "],
        ),
        (
            USAGE,
            &["recv", "file.ts", "out.ts"],
            &["expected comity://"],
        ),
        (
            USAGE,
            &["recv", &with_key, "out.ts"],
            &["holds no key", "comity keygen"],
        ),
        (
            USAGE,
            &["relay", "udp://127.0.0.1:9", "out.ts"],
            &["udp://:5000"],
        ),
    ];
    for (code, args, parts) in cases {
        let said = ends(code, args);
        for part in parts {
            assert!(said.contains(part), "{args:?}: {part:?} is not in {said}");
        }
        assert!(
            !said.contains("passphrase=short"),
            "secrets are not repeated"
        );
    }
}

#[test]
fn connections_that_cannot_be_made_say_why() {
    let clip = clip();
    let clip = clip.to_str().unwrap();
    let here = format!("comity://127.0.0.1:0?mode=listener&{SECRET}");
    let mut receiver = Running::start(&["recv", &here, "/dev/null"]);
    let port = receiver.port();
    let wrong = format!("comity://127.0.0.1:{port}?passphrase=wrong horse battery");
    let said = ends(4, &["send", clip, &wrong]);
    assert!(said.contains("the same passphrase"), "{said}");
    let unprotected = format!("comity://127.0.0.1:{port}");
    let said = ends(4, &["send", clip, &unprotected, "--insecure"]);
    assert!(
        said.contains("INSECURE") && said.contains("both ends need the same kind"),
        "{said}"
    );
    let taken = format!("comity://127.0.0.1:{port}?mode=listener&{SECRET}");
    let said = ends(5, &["recv", &taken, "/dev/null"]);
    assert!(
        said.contains("is in use") && said.contains("ss -lunp"),
        "{said}"
    );
    let foreign = format!("comity://192.0.2.1:{port}?mode=listener&{SECRET}");
    let said = ends(5, &["recv", &foreign, "/dev/null"]);
    assert!(
        said.contains("no address of this host") && said.contains("ip addr"),
        "{said}"
    );
    receiver.interrupt();
    receiver.end(0);
    let said = ends(
        3,
        &[
            "send",
            clip,
            &format!("{unprotected}?conntimeo=300ms"),
            "--insecure",
        ],
    );
    assert!(said.contains("listener"), "{said}");
}

#[test]
fn a_secret_key_is_neither_public_nor_open_to_others() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let (secret, public) = (folder.path("a.key"), folder.path("a.pub"));
    let output = command(&["keygen", &secret]).output().unwrap();
    checked(0, &output);
    fs::write(&public, &output.stdout).unwrap();
    let listen = |key: &str, allow: &str| {
        let uri = format!("comity://127.0.0.1:0?mode=listener&key={key}&allow={allow}");
        ends(2, &["recv", &uri, "/dev/null"])
    };
    let said = listen(&public, &public);
    assert!(said.contains("a.pub: holds no key: a public key"), "{said}");
    let said = listen(&secret, &secret);
    assert!(
        said.contains("a.key:1: a secret key, expected a public"),
        "{said}"
    );
    assert!(!said.contains("others can read"), "{said}");
    let shared = fs::Permissions::from_mode(0o640);
    fs::set_permissions(&secret, shared).unwrap();
    let said = listen(&secret, &secret);
    assert!(
        said.contains("others can read") && said.contains("(mode 640); chmod 600"),
        "{said}"
    );
    let peer = fs::read_to_string(&secret).unwrap();
    let uri = format!("comity://127.0.0.1:9?key={secret}&peerkey={}", peer.trim());
    let said = ends(2, &["send", clip().to_str().unwrap(), &uri]);
    assert!(
        said.contains("peerkey: ") && said.contains("a secret key"),
        "{said}"
    );
    assert!(
        !said.contains(peer.trim()),
        "secrets are not repeated: {said}"
    );
}

#[test]
fn a_key_that_is_not_on_the_list_is_refused() {
    let folder = Folder::new();
    let mut public = Vec::new();
    for name in ["listener", "guest", "stranger"] {
        let output = command(&["keygen", &folder.path(name)]).output().unwrap();
        checked(0, &output);
        public.push(String::from_utf8(output.stdout).unwrap().trim().to_owned());
    }
    fs::write(folder.path("allowed"), format!("{} # guest\n", public[1])).unwrap();
    let (own, list) = (folder.path("listener"), folder.path("allowed"));
    let mut receiver = Running::start(&[
        "recv",
        &format!("comity://127.0.0.1:0?mode=listener&key={own}&allow={list}"),
        &folder.path("out.ts"),
    ]);
    let port = receiver.port();
    let clip = clip();
    let call = |key: &str, listener: &str| {
        format!(
            "comity://127.0.0.1:{port}?key={}&peerkey={listener}",
            folder.path(key)
        )
    };
    let send =
        |uri: &str| command(&["send", clip.to_str().unwrap(), uri, "--speed", "20"]).output();
    let said = checked(4, &send(&call("stranger", &public[0])).unwrap());
    assert!(said.contains("allow=.. list"), "{said}");
    checked(0, &send(&call("guest", &public[0])).unwrap());
    receiver.end(0);
    assert!(folder.read("out.ts").len() > 100_000);
}

#[test]
fn either_end_may_be_stopped_and_keeps_what_it_has() {
    let clip = clip();
    let original = elementary_streams(&fs::read(&clip).unwrap());
    for signal in [Signal::INT, Signal::TERM] {
        for receiver_stops in [true, false] {
            let folder = Folder::new();
            let mut receiver = Running::start(&[
                "recv",
                &format!("comity://127.0.0.1:0?mode=listener&{SECRET}"),
                &folder.path("out.ts"),
            ]);
            let uri = format!("comity://127.0.0.1:{}?latency=1s&{SECRET}", receiver.port());
            let mut sender = Running::start(&[
                "send",
                clip.to_str().unwrap(),
                &uri,
                "--speed",
                "2",
                "--reconnect",
                "no",
            ]);
            sender.event("connected");
            for _ in 0..2 {
                receiver.event("statistics");
            }
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
            let arrived = received["input"]["totals"]["sectionsOnTime"]
                .as_u64()
                .unwrap();
            let tables = received["passed"]["whole"]["table"]["sections"]
                .as_u64()
                .unwrap();
            assert!(units > 20 && arrived < 310, "{units} units of {arrived}");
            if !receiver_stops {
                // What the sender had given is delivered, to the last one.
                assert_eq!(units + tables, arrived);
                assert_eq!(sent["output"]["totals"]["sectionsAcknowledged"], arrived);
            }
        }
    }
}

#[test]
fn json_stands_in_the_place_of_status_lines() {
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

#[test]
fn a_full_disk_is_told_to_both_ends() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let clip = clip();
    let mut receiver = Running::start(&["recv", &format!("comity://:0?{SECRET}"), "/dev/full"]);
    let target = format!("comity://127.0.0.1:{}?{SECRET}", receiver.port());
    let said = ends(
        3,
        &["send", clip.to_str().unwrap(), &target, "--reconnect", "no"],
    );
    assert!(
        said.contains("cannot write on to /dev/full"),
        "the receiver's reason: {said}"
    );
    let (_, said) = receiver.end(1);
    assert!(
        said.contains("what was written is kept") && said.contains("Make room"),
        "{said}"
    );
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let clip = clip();
    let mut sender = Running::start(&[
        "send",
        clip.to_str().unwrap(),
        &format!("comity://:0?latency=50ms&{SECRET}"),
    ]);
    let from = format!("comity://127.0.0.1:{}?{SECRET}", sender.port());
    let mut receiver = command(&["recv", &from, "-", "-q"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut start = [0; 188];
    receiver
        .stdout
        .take()
        .unwrap()
        .read_exact(&mut start)
        .unwrap();
    assert_eq!(start[0], 0x47);
    let output = receiver.wait_with_output().unwrap();
    assert_eq!(checked(0, &output), "");
    sender.interrupt();
    sender.end(0);
}

#[test]
fn prometheus_is_answered() {
    let clip = clip();
    let mut receiver = Running::start(&["recv", &format!("comity://:0?{SECRET}"), "/dev/null"]);
    let target = format!("comity://127.0.0.1:{}?{SECRET}", receiver.port());
    let mut sender = Running::start(&[
        "send",
        clip.to_str().unwrap(),
        &target,
        "--metrics-bind",
        "127.0.0.1:0",
        "--speed",
        "5",
    ]);
    let note = sender.event("note")["message"].clone();
    let address = note
        .as_str()
        .unwrap()
        .strip_prefix("metrics at http://")
        .unwrap();
    let address = address.strip_suffix("/metrics").unwrap().to_owned();
    sender.event("statistics");
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    for name in [
        "comity_connections{side=\"output\"} 1",
        "comity_sent_bytes_total{side=\"output\"} ",
        "comity_sections_sent_total{fate=\"arrived\"} ",
        "comity_round_trip_seconds{side=\"output\",peer=\"127.0.0.1:",
    ] {
        assert!(answer.contains(name), "{name} is not in\n{answer}");
    }
    sender.end(0);
    receiver.end(0);
}
