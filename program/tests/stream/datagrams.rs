//! Media without a connection: bare datagrams and RTP.

use std::fs;
use std::net::UdpSocket;
use std::time::Duration;

use super::*;

pub(super) fn datagrams_and_rtp_carry_the_stream_too() {
    let clip = clip();
    for scheme in ["udp", "rtp"] {
        let folder = Folder::new();
        let out = folder.path("out.ts");
        let mut receiver = Running::start(&["relay", &format!("{scheme}://@127.0.0.1:0"), &out]);
        let target = format!("{scheme}://127.0.0.1:{}", receiver.port());
        ends(
            0,
            &[
                "relay",
                clip.to_str().unwrap(),
                &target,
                // Datagrams have no flow control, so the socket's buffer must last while the
                // machine is busy.
                "--speed",
                "2",
                "-q",
            ],
        );
        receiver.interrupt();
        let (summary, said) = receiver.end(0);
        assert!(said.contains("interrupted"), "{said}");
        assert_eq!(
            summary["passed"]["whole"]["key"]["sections"], 10,
            "{summary}"
        );
        let written = folder.read("out.ts");
        assert_same_media(&written, &fs::read(&clip).unwrap());
    }
}

/// Whether a relay that listens on `listen` receives datagrams sent to `host`.
fn arrives(listen: &str, host: &str) -> bool {
    let folder = Folder::new();
    let mut receiver = Running::start(&["relay", listen, &folder.path("out.ts")]);
    let target = format!("udp://{host}:{}", receiver.port());
    let clip = clip();
    ends(
        0,
        &[
            "relay",
            clip.to_str().unwrap(),
            &target,
            "--speed",
            "20",
            "-q",
        ],
    );
    receiver.interrupt();
    let (summary, _) = receiver.end(0);
    summary["passed"]["whole"]["key"].is_object()
}

#[expect(
    clippy::print_stderr,
    reason = "that a test was skipped has to be seen"
)]
pub(super) fn a_port_is_open_for_both_families_and_an_address_for_its_own() {
    if UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("skipped: this host has no IPv6");
        return;
    }
    for (listen, host, expected) in [
        ("udp://:0", "127.0.0.1", true),
        ("udp://:0", "[::1]", true),
        ("udp://@[::1]:0", "[::1]", true),
        ("udp://:0?bind=127.0.0.1", "127.0.0.1", true),
        ("udp://:0?bind=[::1]", "[::1]", true),
        ("udp://:0?bind=127.0.0.1", "[::1]", false),
        ("udp://@[::1]:0", "127.0.0.1", false),
    ] {
        assert_eq!(arrives(listen, host), expected, "{listen} from {host}");
    }
}

/// The last picture of a source that stops arrives at its own end, without the beginning of another
/// picture.
pub(super) fn the_last_picture_is_sent_without_a_successor() {
    let folder = Folder::new();
    let mut receiver = Running::start(&[
        "recv",
        &format!("comity://:0?{EARLY}&{SECRET}"),
        &folder.path("out.ts"),
    ]);
    let target = format!(
        "comity://127.0.0.1:{}?{UNHURRIED}&{SECRET}",
        receiver.port()
    );
    let mut relay = Running::start(&["send", "udp://@127.0.0.1:0", &target]);
    let source = format!("udp://127.0.0.1:{}", relay.port());
    // The sender reads no datagrams before it is connected.
    relay.event("connected");
    let clip = clip();
    let clip = clip.to_str().unwrap();
    ends(0, &["relay", clip, &source, "--speed", "2", "-q"]);
    let pictures = |object: &Value| -> u64 {
        let count = |kind: &&str| object["passed"]["whole"][*kind]["sections"].as_u64();
        ["key", "P", "B"].iter().filter_map(count).sum()
    };
    // This holds before the sender is stopped.
    receiver.statistics_when(|statistics| pictures(statistics) == 250);
    relay.interrupt();
    relay.end(0);
    let (received, _) = receiver.end(0);
    assert_eq!(pictures(&received), 250, "{received}");
}

/// An error names the other payload type and the option that accepts it. With that option, a stream
/// arrives whole although its first packets are reordered.
pub(super) fn another_rtp_type_is_accepted_on_request_from_its_first_packet() {
    let clip = fs::read(clip()).unwrap();
    // One second of the clip, in whole packets.
    let media = &clip[..clip.len() / 10 / 1_316 * 1_316];
    let mut packets: Vec<Vec<u8>> = { media.chunks(1_316).zip(0_u16..) }
        .map(|(media, number)| {
            let number = number.wrapping_sub(6).to_be_bytes();
            [
                &[0x80, 96, number[0], number[1], 0, 0, 0, 0, 0, 0, 0, 7],
                media,
            ]
            .concat()
        })
        .collect();
    packets.swap(0, 1);
    for (query, is_taken) in [("?pt=96", true), ("", false), ("?pt=97", false)] {
        let folder = Folder::new();
        let listen = format!("rtp://@127.0.0.1:0{query}");
        let mut receiver = Running::start(&["relay", &listen, &folder.path("out.ts")]);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", receiver.port())).unwrap();
        for packet in &packets {
            socket.send(packet).unwrap();
        }
        match is_taken {
            true => drop(receiver.statistics_when(|statistics| {
                statistics["input"]["bytes"].as_u64() == Some(media.len() as u64)
            })),
            false => {
                let warning = receiver.event("warning")["message"].clone();
                let message = warning.as_str().unwrap();
                assert!(message.contains("rtp://..?pt=96"), "{message}");
            }
        }
        receiver.interrupt();
        let (_, said) = receiver.end(0);
        match is_taken {
            true => assert!(folder.read("out.ts") == media, "{said}"),
            false => assert!(folder.read("out.ts").is_empty(), "{said}"),
        }
    }
}

pub(super) fn rtp_carries_only_transport_streams() {
    let folder = Folder::new();
    let text = folder.path("text");
    fs::write(&text, "Nobody can play this.\n".repeat(4_000)).unwrap();
    let video = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../product/media/tests/vectors/mpeg1.m1v"
    );
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(1)))
        .unwrap();
    let port = socket.local_addr().unwrap().port();
    for source in [text.as_str(), video] {
        let target = format!("rtp://127.0.0.1:{port}");
        let said = ends(1, &["relay", source, &target, "--speed", "50"]);
        assert!(said.contains("is no transport stream"), "{said}");
        assert!(said.contains("-f mpegts"), "{said}");
        assert!(socket.recv(&mut [0; 2_000]).is_err(), "{source}");
        let target = format!("udp://127.0.0.1:{port}");
        ends(0, &["relay", source, &target, "--speed", "50", "-q"]);
        assert!(socket.recv(&mut [0; 2_000]).is_ok(), "{source}");
        while socket.recv(&mut [0; 2_000]).is_ok() {}
    }
}
