//! The dissector for Wireshark, on packets that a proxy records between two commands.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::*;

/// The ports in captures.
const CALLER: u16 = 40_000;
const LISTENER: u16 = 9_000;

/// A packet with its ports in the capture.
type Recorded = (u16, u16, Vec<u8>);

/// A proxy between a caller and a listener that records every datagram.
struct Recorder {
    address: SocketAddr,
    packets: Arc<Mutex<Vec<Recorded>>>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Recorder {
    fn start(listener: u16) -> Self {
        let bound = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let interval = Some(Duration::from_millis(50));
            socket.set_read_timeout(interval).unwrap();
            Arc::new(socket)
        };
        let (front, back) = (bound(), bound());
        back.connect(("127.0.0.1", listener)).unwrap();
        let mut recorder = Self {
            address: front.local_addr().unwrap(),
            packets: Arc::default(),
            is_over: Arc::default(),
            threads: Vec::new(),
        };
        let caller = Arc::new(Mutex::new(None));
        let (to, from) = (back.clone(), caller.clone());
        recorder.forward(front.clone(), (CALLER, LISTENER), move |packet, address| {
            *from.lock().unwrap() = Some(address);
            let _ = to.send(packet);
        });
        recorder.forward(back, (LISTENER, CALLER), move |packet, _| {
            if let Some(caller) = *caller.lock().unwrap() {
                let _ = front.send_to(packet, caller);
            }
        });
        recorder
    }

    fn forward(
        &mut self,
        socket: Arc<UdpSocket>,
        (source, destination): (u16, u16),
        send: impl Fn(&[u8], SocketAddr) + Send + 'static,
    ) {
        let (packets, is_over) = (self.packets.clone(), self.is_over.clone());
        self.threads.push(thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            while !is_over.load(Ordering::Relaxed) {
                match socket.recv_from(&mut buffer) {
                    Ok((length, address)) => {
                        let packet = buffer[..length].to_vec();
                        packets.lock().unwrap().push((source, destination, packet));
                        send(&buffer[..length], address);
                    }
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                    // A time limit, or a signal.
                    Err(_) => {}
                }
            }
        }));
    }

    fn end(self) -> Vec<Recorded> {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
        std::mem::take(&mut self.packets.lock().unwrap())
    }
}

/// Writes a capture: the format of libpcap with IPv4 packets, one in each microsecond.
fn capture(path: &str, packets: &[Recorded]) {
    let mut file = Vec::new();
    for number in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 228] {
        file.extend(number.to_le_bytes());
    }
    for (at, (source, destination, payload)) in (0_u32..).zip(packets) {
        let length = payload.len() as u16;
        let mut packet = vec![0x45, 0];
        packet.extend((28 + length).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        for number in [*source, *destination, 8 + length, 0] {
            packet.extend(number.to_be_bytes());
        }
        packet.extend(payload);
        for number in [
            at / 1_000_000,
            at % 1_000_000,
            packet.len() as u32,
            packet.len() as u32,
        ] {
            file.extend(number.to_le_bytes());
        }
        file.extend(packet);
    }
    fs::write(path, file).unwrap();
}

/// The values of these fields in each packet, as tshark prints them. `None` if there is no tshark.
fn dissected(path: &str, keys: &str, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/wireshark/comity.lua");
    let mut command = Command::new("tshark");
    command
        .args(["-X", &format!("lua_script:{}", script.display())])
        .args(["-o", &format!("comity.keylog:{keys}")])
        .args(["-d", &format!("udp.port=={LISTENER},comity")])
        .args(["-r", path, "-T", "fields", "-E", "separator=;"])
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let output = tool(&mut command)?.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let values = |line: &str| line.split(';').map(ToOwned::to_owned).collect();
    Some(printed.lines().map(values).collect())
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = { text.bytes() }.filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).unwrap());
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

/// An Initial packet that ends after `head`, padded.
fn initial(head: &str) -> Vec<u8> {
    let mut packet = hex(head);
    packet.resize(1_200, 0);
    packet
}

/// Sends a packet to a listener, and returns the reply.
fn replied(listener: u16, packet: &[u8]) -> Vec<u8> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    socket.send_to(packet, ("127.0.0.1", listener)).unwrap();
    let mut buffer = [0; 2_000];
    let length = socket.recv(&mut buffer).unwrap();
    buffer[..length].to_vec()
}

/// Each packet type of a connection, and with the key log each frame of its Data packets.
pub(super) fn the_dissector_shows_every_packet_and_decrypts_with_the_key_log() {
    let folder = Folder::new();
    let [out, keys, none, pcap] =
        ["out.ts", "keys", "none", "all.pcap"].map(|name| folder.path(name));
    let listening = format!("comity://127.0.0.1:0?mode=listener&{EARLY}&{SECRET}");
    let mut receiver = Running::start(&["recv", &listening, &out]);
    let port = receiver.port();
    // A version that nobody has, and a connection that does not exist.
    let unknown = initial("10 00000063 0102030405060708");
    let versions = replied(port, &unknown);
    let lost = [&hex("40 a1a2a3a4a5a6a7a8 00000000")[..], &[7; 200]].concat();
    let reset = replied(port, &lost);
    let recorder = Recorder::start(port);
    let to = format!("comity://{}?{UNHURRIED}&{SECRET}", recorder.address);
    let sender = Running::start(&[
        "send",
        clip().to_str().unwrap(),
        &to,
        "--speed",
        "4",
        "--keylog",
        &keys,
    ]);
    let (sent, _) = sender.end(0);
    receiver.end(0);
    let mut packets = recorder.end();
    for (sent, reply) in [(unknown, versions), (lost, reset)] {
        packets.push((CALLER + 1, LISTENER, sent));
        packets.push((LISTENER, CALLER + 1, reply));
    }
    capture(&pcap, &packets);
    let mode = fs::metadata(&keys).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let fields = [
        "comity.type",
        "comity.frame",
        "comity.sealed",
        "comity.malformed",
    ];
    let Some(shown) = dissected(&pcap, &keys, &fields) else {
        return;
    };
    assert_eq!(shown.len(), packets.len());
    let types: BTreeSet<&str> = shown.iter().map(|packet| &*packet[0]).collect();
    let every = ["1", "2", "3", "4", "5", "6", "7", "8"];
    assert_eq!(types, BTreeSet::from(every));
    let bad: Vec<_> = shown
        .iter()
        .filter(|packet| !packet[3].is_empty())
        .collect();
    assert_eq!(bad, [&[""; 0]; 0], "malformed");
    // All but the one of no connection.
    let is_sealed = |packet: &&Vec<String>| !packet[2].is_empty();
    assert_eq!(shown.iter().filter(is_sealed).count(), 1);
    let frames = shown.iter().flat_map(|packet| packet[1].split(','));
    let frames: BTreeSet<&str> = frames.collect();
    for frame in [
        "Ack",
        "Section",
        "ReceiverReport",
        "End",
        "Close",
        "Ping",
        "Padding",
    ] {
        assert!(frames.contains(frame), "{frame}: {frames:?}");
    }
    // Every section that was sent is there, by stream and number.
    let fields = [
        "comity.frame.stream",
        "comity.frame.section",
        "comity.frame",
    ];
    let Some(shown) = dissected(&pcap, &keys, &fields) else {
        return;
    };
    let mut sections = BTreeSet::new();
    for packet in &shown {
        let frames: Vec<_> = packet[2].split(',').collect();
        if frames
            .iter()
            .all(|frame| ["Ack", "Section", "Ping", "Padding"].contains(frame))
        {
            let [streams, numbers] = [0, 1].map(|at: usize| packet[at].split(','));
            sections.extend(
                streams
                    .zip(numbers)
                    .filter(|(stream, _)| !stream.is_empty()),
            );
        }
    }
    let submitted = sent["output"]["totals"]["sectionsSubmitted"].as_u64();
    assert_eq!(submitted, Some(SECTIONS));
    // Those beside another frame with a stream, such as End, are left out.
    let found = sections.len() as u64;
    assert!((SECTIONS - 10..=SECTIONS).contains(&found), "{found}");

    // Without the keys, no Data packet of a connection has frames.
    let fields = ["comity.type", "comity.frame", "comity.sealed"];
    let Some(shown) = dissected(&pcap, &none, &fields) else {
        return;
    };
    let data: Vec<_> = shown.iter().filter(|packet| packet[0] == "4").collect();
    assert!(data.len() > 100, "{}", data.len());
    assert!(
        data.iter()
            .all(|packet| packet[1].is_empty() && !packet[2].is_empty())
    );
}

/// Every frame type, in packets of an insecure connection that were written by hand from
/// docs/protocol/core.md, and the packet of docs/protocol/handshake.md with ChaCha20-Poly1305.
pub(super) fn the_dissector_shows_every_frame() {
    let folder = Folder::new();
    let [pcap, keys] = ["frames.pcap", "keys"].map(|name| folder.path(name));
    let data = |number: u32, frames: &str| {
        let head = format!("40 1122334455667788 {number:08x} 000f4240");
        (CALLER, LISTENER, [hex(&head), hex(frames)].concat())
    };
    let cases: [(&str, &str, &str); 14] = [
        ("01", "Ping", ""),
        ("00 00 00", "Padding", ""),
        ("02 28 40fa 000f3e58 01 03 01 0a", "Ack", "40"),
        ("33 28 40fa 000f3e58 00 03 05 00 01", "Ack", "40"),
        ("08 02 07", "Floor", "2"),
        ("09 01 09 03", "Drop", "1"),
        ("0a 80100000 4400", "Credit", ""),
        (
            "0b 01 0005 0003 0001 0b 02 00000007 44b0 0b 03 00000001 00",
            "Tag,Tag,Tag",
            "",
        ),
        (
            "0c 01 0001 0c 02 3f847ae147ae147b 801e8480 0c 03 00000001 00000002",
            "Feedback,Feedback,Feedback",
            "",
        ),
        (
            "0d 05 04 01 00 44b0 06 00 03 02 01 00 04",
            "ReceiverReport",
            "",
        ),
        (
            "0e 0102030405060708 0f 0102030405060708",
            "PathChallenge,PathResponse",
            "",
        ),
        ("10 4100 03 627965", "Close", ""),
        ("11 01 0a 12", "End,Blocked", "1"),
        (
            "2d 01 09 02 44b0 5388 800dbba0 4079 c8 01 04 deadbeef 22 01 08 01 00 03 800d396b 00 616263",
            "Section,Section",
            "1,1",
        ),
    ];
    let mut packets = vec![(
        CALLER,
        LISTENER,
        initial("10 00000002 0102030405060708 00 00 0000"),
    )];
    packets.extend(
        (0..)
            .zip(cases)
            .map(|(number, (frames, ..))| data(number, frames)),
    );
    packets.push(data(99, "13"));
    packets.extend(SEALED.map(|(packet, _)| (CALLER + 1, LISTENER, hex(packet))));
    capture(&pcap, &packets);
    let secret = "aa410669bb9cd497baf8ac7fa802870ca23c4f0f056b0569b1eacd9c6d0e4f58";
    let other = "0".repeat(64);
    fs::write(
        &keys,
        format!("COMITY2 2 0102030405060708 1112131415161718 {secret} {other}\n"),
    )
    .unwrap();
    let fields = [
        "comity.frame",
        "comity.frame.stream",
        "comity.frame.largest",
        "comity.malformed",
        "comity.departure",
        "comity.number",
        "comity.phase",
    ];
    let Some(shown) = dissected(&pcap, &keys, &fields) else {
        return;
    };
    for ((number, (bytes, frames, first)), packet) in (0..).zip(cases).zip(&shown[1..]) {
        assert_eq!(packet[0], frames, "{bytes}");
        assert_eq!([&*packet[1], &*packet[2]].concat(), first, "{bytes}");
        assert!(packet[3].is_empty(), "{bytes}: {packet:?}");
        let expected = format!("1000000 {number} 0");
        assert_eq!(packet[4..].join(" "), expected, "{bytes}");
    }
    let [unknown, sealed @ ..] = &shown[cases.len() + 1..] else {
        panic!("{shown:?}")
    };
    assert!(!unknown[3].is_empty(), "no frame has this type");
    let expected = SEALED.map(|(_, shown)| shown.to_owned());
    let sealed: Vec<_> = sealed.iter().map(|packet| packet[4..].join(" ")).collect();
    assert_eq!(sealed, expected);
}

/// Packets that `product/comity/tests/peer/peer.py` sealed, which shares no code with the project,
/// with their departures, numbers and key phases. The first is that of docs/protocol/handshake.md,
/// whose payload is the text "deadline". The next has phase 1 and the identifier id(1), then comes
/// a late packet of phase 0, and one of phase 2.
const SEALED: [(&str, &str); 4] = [
    (
        "481112131415161718f251ec723a12fcc4543ac11966d10e54895d9c518221abb30f51bb58",
        "1684365668 0 0",
    ),
    (
        "452e57627f6a3ebc2c4682c3902589dbb05bcc36a4743ef6cd7e9c9e358e147ad447",
        "1007 7 1",
    ),
    (
        "411112131415161718320ebaf7d54cb402af6a9c98e046b8a2bb473992f02a2c63f0",
        "1003 3 0",
    ),
    (
        "4e2e57627f6a3ebc2c09a86efc3af26139be97df50d7bd544d4484919689b6da6661",
        "1009 9 0",
    ),
];

/// A key log has one line for each connection, replaces no file, and follows no link.
pub(super) fn a_key_log_is_kept_and_only_its_owner_reads_it() {
    let folder = Folder::new();
    let [keys, link, out] = ["keys", "link", "out.ts"].map(|name| folder.path(name));
    std::os::unix::fs::symlink(&keys, &link).unwrap();
    let to = format!("comity://:0?{SECRET}");
    let said = ends(6, &["recv", &to, &out, "--keylog", &link]);
    assert!(said.contains("is a symbolic link"), "{said}");
    assert!(!Path::new(&keys).exists());
    let stopped = |options: &[&str]| {
        let arguments = ["recv", &to, &out, "--keylog", &keys, "--duration", "10ms"];
        // Nobody calls.
        ends(3, &[&arguments[..], options].concat())
    };
    let said = stopped(&[]);
    assert!(
        said.contains("whoever reads") && said.contains("can decrypt"),
        "{said}"
    );
    fs::write(&keys, "COMITY2 ..\n").unwrap();
    let said = ends(6, &["recv", &to, &out, "--keylog", &keys]);
    assert!(said.contains("keys exists"), "{said}");
    assert_eq!(folder.read("keys"), b"COMITY2 ..\n");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o644)).unwrap();
    stopped(&["--overwrite"]);
    assert_eq!(folder.read("keys"), b"");
    let mode = fs::metadata(&keys).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let said = ends(2, &["relay", "udp://:0", "-", "--keylog", &keys]);
    assert!(said.contains("--keylog: applies to connections"), "{said}");
}
