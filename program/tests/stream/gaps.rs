//! The counts and lists of a verb cover everything that it read, however it ends.

use std::io::{Read, Write};
use std::process::Stdio;

use super::*;

/// The number of sections that passed, of all kinds.
fn passed(end: &Value) -> u64 {
    let whole = end["passed"]["whole"].as_object().unwrap();
    let counts = whole.values().map(|count| count["sections"].as_u64());
    counts.map(Option::unwrap).sum()
}

fn total(end: &Value, side: &str, name: &str) -> u64 {
    end[side]["totals"][name].as_u64().unwrap()
}

fn unsent(end: &Value, reason: &str) -> u64 {
    end["output"]["unsent"][reason].as_u64().unwrap()
}

/// When both ends are stopped, the receiver waits for its reader and the sender for the receiver.
/// The sections that wait at the receiver are written, and those that wait at the sender are
/// listed.
pub(super) fn a_section_waiting_for_room_at_the_stop_is_written_or_listed() {
    let folder = Folder::new();
    let settings = "latency=100ms&reliability=full&sndbuf=64KiB&rcvbuf=256KiB";
    let here = format!("comity://:0?{settings}&{SECRET}");
    let list = folder.path("sent.gaps");
    let send = [
        "send",
        "-",
        &here,
        "--json",
        "--reconnect",
        "no",
        "--gaps",
        &list,
    ];
    let mut sender = Running::spawn(command(&send).stdin(Stdio::piped()));
    let from = format!("comity://127.0.0.1:{}?{settings}&{SECRET}", sender.port());
    let mut receiver = command(&["recv", &from, "-", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The input is no video, so each 20 ms are one section. It goes on as long as the sender reads.
    let words = |of: std::ops::Range<u32>| -> Vec<u8> {
        of.flat_map(|word| word.wrapping_mul(2_654_435_761).to_be_bytes())
            .collect()
    };
    let mut pipe = sender.child.stdin.take().unwrap();
    let feeding = thread::spawn(move || {
        let mut pieces = (0_u32..).map(|piece| words(piece * 4_096..(piece + 1) * 4_096));
        pieces.find_map(|piece| pipe.write_all(&piece).err())
    });
    sender.stalls("output", "sectionsSubmitted");
    sender.interrupt();
    kill_process(Pid::from_child(&receiver), Signal::INT).unwrap();
    let mut written = Vec::new();
    let mut stdout = receiver.stdout.take().unwrap();
    stdout.read_to_end(&mut written).unwrap();
    let said = checked(0, &receiver.wait_with_output().unwrap());
    let received: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    // Either end may be done first.
    let (sent, code, said) = sender.ended();
    assert!([Some(0), Some(3)].contains(&code), "{code:?}: {said}");
    // The thread ends with the sender.
    feeding.join().unwrap();

    assert_eq!(passed(&received), arrived(&received), "{received}");
    assert_eq!(received["output"]["bytes"], written.len());
    assert!(written.len() > 100_000, "{} bytes", written.len());
    let last = u32::try_from(written.len() / 4 + 1).unwrap();
    assert!(words(0..last).starts_with(&written), "without a hole");

    let acknowledged = total(&sent, "output", "sectionsAcknowledged");
    assert!(acknowledged <= passed(&received), "{sent} {received}");
    let listed = folder.listed("sent.gaps").len() as u64;
    assert_eq!(passed(&sent), acknowledged + listed, "{sent}");
    let unsent = unsent(&sent, "no_room") + unsent(&sent, "unconnected");
    assert!(unsent > 0, "{sent}");
    let submitted = total(&sent, "output", "sectionsSubmitted");
    assert_eq!(passed(&sent), submitted + unsent, "{sent}");
}

/// The second hop carries less than the source. A relay lists the sections that it received and
/// that did not arrive behind it, and the counts of the three programs agree.
pub(super) fn a_relay_lists_sections_that_did_not_arrive_behind_it() {
    let folder = Folder::new();
    let (clip, list) = (clip(), folder.path("relay.gaps"));
    let here = format!("comity://:0?{SECRET}");
    let mut receiver = Running::start(&["recv", &here, &folder.path("out.ts")]);
    let to = format!("127.0.0.1:{}", receiver.port());
    let path = ["emulate", "--listen", "127.0.0.1:0", "--to", &to];
    let slow = ["--delay", "10ms", "--rate", "300kbps"];
    let mut path = Running::start(&[&path[..], &slow[..]].concat());
    let next = format!("comity://127.0.0.1:{}?latency=300ms&{SECRET}", path.port());
    let mut relay = Running::start(&["relay", &here, &next, "--gaps", &list]);
    let target = format!("comity://127.0.0.1:{}?latency=300ms&{SECRET}", relay.port());
    let sender = ["send", clip.to_str().unwrap(), &target, "--speed", "2"];
    let (sent, _) = Running::start(&sender).end(0);
    let (relayed, _) = relay.end(0);
    let (received, _) = receiver.end(0);
    path.interrupt();

    let gaps = |end: &Value| -> u64 {
        let gaps = end["passed"]["gaps"].as_object().unwrap();
        gaps.values().map(|count| count.as_u64().unwrap()).sum()
    };
    let submitted = total(&sent, "output", "sectionsSubmitted");
    assert_eq!(passed(&relayed) + gaps(&relayed), submitted, "{relayed}");
    let went_on = total(&relayed, "output", "sectionsSubmitted");
    assert_eq!(passed(&received) + gaps(&received), went_on, "{received}");
    let arrived = total(&relayed, "output", "sectionsAcknowledged");
    let listed = folder.listed("relay.gaps").len() as u64;
    assert_eq!(
        listed,
        gaps(&relayed) + passed(&relayed) - arrived,
        "{relayed}"
    );
    assert!(listed > gaps(&relayed) + 50, "{relayed}");
    // A section that becomes whole after its deadline was already reported as a gap.
    assert!(passed(&received) <= arrived, "{received} {relayed}");
}

/// Checks the counts and the list of a relay without a connection at its output.
fn assert_all_unconnected(relayed: &Value, list: &BTreeSet<(u64, u64)>) {
    let arrived = arrived(relayed);
    assert!(arrived > 0, "{relayed}");
    assert_eq!(passed(relayed), arrived, "{relayed}");
    assert_eq!(unsent(relayed, "unconnected"), arrived, "{relayed}");
    let gaps = relayed["passed"]["gaps"].as_object().unwrap();
    let gaps: u64 = gaps.values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(list.len() as u64, arrived + gaps, "{relayed}");
}

pub(super) fn a_relay_stopped_before_connecting_lists_its_sections() {
    let folder = Folder::new();
    let (clip, list) = (clip(), folder.path("relay.gaps"));
    let here = format!("comity://:0?{SECRET}");
    let relay = ["relay", &here, &here, "--add-latency", "60s"];
    let mut relay = Running::start(&[&relay[..], &["--gaps", &list]].concat());
    let target = format!("comity://127.0.0.1:{}?latency=1s&{SECRET}", relay.port());
    let sender = ["send", clip.to_str().unwrap(), &target, "--speed", "2"];
    let sender = Running::start(&[&sender[..], &["--reconnect", "no"]].concat());
    relay.statistics_when(|statistics| arrived(statistics) > 0);
    relay.interrupt();
    let (relayed, _) = relay.end(0);
    sender.end(3);
    assert_all_unconnected(&relayed, &folder.listed("relay.gaps"));
}

pub(super) fn a_relay_that_cannot_connect_lists_its_sections() {
    let folder = Folder::new();
    let (clip, list) = (clip(), folder.path("relay.gaps"));
    let here = format!("comity://:0?{SECRET}");
    // The relay gives up only after several seconds, in which sections arrive.
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = nobody.local_addr().unwrap().port();
    let next = format!("comity://127.0.0.1:{port}?conntimeo=8s&{KEY}");
    let relay = ["relay", &here, &next, "--add-latency", "60s"];
    let mut relay = Running::start(&[&relay[..], &["--gaps", &list]].concat());
    let target = format!("comity://127.0.0.1:{}?latency=1s&{SECRET}", relay.port());
    let sender = ["send", clip.to_str().unwrap(), &target];
    let sender = Running::start(&[&sender[..], &["--reconnect", "no"]].concat());
    let (relayed, _) = relay.end(3);
    let (_, said) = sender.end(3);
    assert!(said.contains("closed by the peer"), "{said}");
    assert_all_unconnected(&relayed, &folder.listed("relay.gaps"));
}

/// On a lossy path, most output packets are those of the source. The others carry clock references,
/// announce gaps, or are stuffing. Only a missing layout causes other new packets.
pub(super) fn a_lossy_path_costs_only_lost_packets() {
    let folder = Folder::new();
    let (clip, out, gaps) = (clip(), folder.path("out.ts"), folder.path("gaps.jsonl"));
    let receiver_uri = format!("comity://:0?{SECRET}");
    let mut receiver = Running::start(&["recv", &receiver_uri, &out, "--gaps", &gaps]);
    let to = format!("127.0.0.1:{}", receiver.port());
    let path = ["emulate", "--listen", "127.0.0.1:0", "--to", &to];
    let faults = ["--delay", "60ms", "--loss", "5%", "--seed", "5"];
    let mut path = Running::start(&[&path[..], &faults[..]].concat());
    let target = format!(
        "comity://127.0.0.1:{}?latency=100ms&drop=expired&{SECRET}",
        path.port()
    );
    Running::start(&["send", clip.to_str().unwrap(), &target, "--speed", "4"]).end(0);
    receiver.end(0);
    path.interrupt();
    let lost = folder.listed("gaps.jsonl");
    let layouts = lost.iter().filter(|(stream, _)| *stream == 0x3fff).count();
    assert!(!lost.is_empty(), "repairs are too late");
    let (written, source) = (folder.read("out.ts"), fs::read(clip).unwrap());
    let known: BTreeSet<&[u8]> = source.chunks(188).collect();
    let (whole, others): (Vec<_>, Vec<_>) =
        { written.chunks(188) }.partition(|packet| known.contains(packet));
    assert!(
        whole.len() * 2 > known.len(),
        "{} of {}",
        whole.len(),
        known.len()
    );
    let made = others.iter().filter(|packet| packet[3] & 0x20 == 0).count();
    assert!(made == 0 || layouts > 0, "{made} new packets");
}
