//! Relays between a sender and a receiver.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use super::running::{Running, arrived};
use super::{EARLY, Folder, SECRET, SECTIONS, UNHURRIED, assert_same_media, clip};

/// Everything arrived whole, in order, over both hops.
fn assert_relayed(relayed: &Value, received: &Value) {
    let (came, went) = (&relayed["input"]["totals"], &relayed["output"]["totals"]);
    assert_eq!(came["sectionsOnTime"], SECTIONS, "{relayed}");
    assert_eq!(went["sectionsSubmitted"], SECTIONS, "{relayed}");
    assert_eq!(went["sectionsAcknowledged"], SECTIONS, "{relayed}");
    assert_eq!(
        received["input"]["totals"]["sectionsOnTime"], SECTIONS,
        "{received}"
    );
    assert_eq!(received["passed"]["gaps"], serde_json::json!({}));
}

pub(super) fn relays_keep_the_media_and_its_sections() {
    let folder = Folder::new();
    let (clip, out) = (clip(), folder.path("out.ts"));
    let mut receiver = Running::start(&["recv", &format!("comity://:0?{EARLY}&{SECRET}"), &out]);
    let next = format!(
        "comity://127.0.0.1:{}?drop=expired&{SECRET}",
        receiver.port()
    );
    let trace = folder.path("relay.sqlog");
    let here = format!("comity://:0?{SECRET}");
    let mut relay = Running::start(&["relay", &here, &next, "--qlog", &trace]);
    let target = format!("comity://127.0.0.1:{}?{UNHURRIED}&{SECRET}", relay.port());
    Running::start(&["send", clip.to_str().unwrap(), &target, "--speed", "10"]).end(0);
    let (relayed, said) = relay.end(0);
    let (received, _) = receiver.end(0);
    assert_relayed(&relayed, &received);
    assert_same_media(&folder.read("out.ts"), &fs::read(clip).unwrap());
    // The output keeps the deadlines of the input, so its latency setting is not used.
    let connected = said
        .lines()
        .filter(|line| line.starts_with("connected with "));
    let latencies: Vec<_> = connected.map(|line| line.contains(", latency ")).collect();
    assert_eq!(latencies.len(), 2, "{said}");
    assert_ne!(latencies[0], latencies[1], "{said}");
    // The relay writes one trace for each of its connections.
    let mut seen = BTreeMap::new();
    for name in ["relay.sqlog", "relay-2.sqlog"] {
        let text = String::from_utf8(folder.read(name)).unwrap();
        for record in text.split('\u{1e}').skip(2) {
            let event: Value = serde_json::from_str(record).unwrap();
            *seen
                .entry(event["name"].as_str().unwrap().to_owned())
                .or_insert(0) += 1;
        }
    }
    assert_eq!(seen["comity:section_delivered"], SECTIONS);
    assert_eq!(seen["comity:section_submitted"], SECTIONS);
    assert_eq!(seen["comity:connection_ended"], 2);
    assert!(!seen.contains_key("comity:records_omitted"));
    let packets = [&relayed["input"], &relayed["output"]]
        .map(|side| side["totals"]["pktSent"].as_u64().unwrap());
    // Closing sends a few more packets after the last count.
    let counted = packets[0] + packets[1];
    assert!(
        (counted..counted + 6).contains(&seen["transport:packet_sent"]),
        "{seen:?}"
    );
}

pub(super) fn a_relay_keeps_sections_until_a_receiver_connects() {
    let folder = Folder::new();
    let (clip, out) = (clip(), folder.path("out.ts"));
    let here = format!("comity://:0?{SECRET}");
    let mut relay = Running::start(&["relay", &here, &here, "--add-latency", "60s"]);
    let (input, output) = (relay.port(), relay.port());
    // The sender is done before anybody calls the output.
    let target = format!("comity://127.0.0.1:{input}?{UNHURRIED}&{SECRET}");
    Running::start(&["send", clip.to_str().unwrap(), &target, "--speed", "10"]).end(0);
    // Delivery at the deadlines would take two minutes.
    let from = format!("comity://127.0.0.1:{output}?{EARLY}&{SECRET}");
    let (received, _) = Running::start(&["recv", &from, &out]).end(0);
    let (relayed, _) = relay.end(0);
    assert_relayed(&relayed, &received);
    assert_same_media(&folder.read("out.ts"), &fs::read(clip).unwrap());
}

/// The second hop is slower than the first: most sections still wait when the sender is done.
pub(super) fn a_relay_stays_until_the_deadlines_of_its_sections() {
    let folder = Folder::new();
    let (clip, out) = (clip(), folder.path("out.ts"));
    let mut receiver = Running::start(&["recv", &format!("comity://:0?{EARLY}&{SECRET}"), &out]);
    let to = format!("127.0.0.1:{}", receiver.port());
    let mut path = Running::start(&[
        "emulate",
        "--listen",
        "127.0.0.1:0",
        "--to",
        &to,
        "--delay",
        "10ms",
        "--rate",
        "1Mbps",
    ]);
    let next = format!("comity://127.0.0.1:{}?drop=expired&{SECRET}", path.port());
    let mut relay = Running::start(&["relay", &format!("comity://:0?{SECRET}"), &next]);
    let target = format!("comity://127.0.0.1:{}?{UNHURRIED}&{SECRET}", relay.port());
    Running::start(&["send", clip.to_str().unwrap(), &target, "--speed", "10"]).end(0);
    let (relayed, _) = relay.end(0);
    let (received, _) = receiver.end(0);
    path.interrupt();
    assert_relayed(&relayed, &received);
    assert_same_media(&folder.read("out.ts"), &fs::read(clip).unwrap());
}

pub(super) fn what_did_not_reach_a_relay_is_in_the_list_of_the_last_receiver() {
    let folder = Folder::new();
    let (clip, out, gaps) = (clip(), folder.path("out.ts"), folder.path("gaps.jsonl"));
    let mut receiver = Running::start(&[
        "recv",
        &format!("comity://:0?{EARLY}&{SECRET}"),
        &out,
        "--gaps",
        &gaps,
    ]);
    let next = format!(
        "comity://127.0.0.1:{}?drop=expired&{SECRET}",
        receiver.port()
    );
    let mut relay = Running::start(&[
        "relay",
        &format!("comity://:0?{SECRET}"),
        &next,
        "--add-latency",
        "60s",
    ]);
    let to = format!("127.0.0.1:{}", relay.port());
    let mut path = Running::start(&[
        "emulate",
        "--listen",
        "127.0.0.1:0",
        "--to",
        &to,
        "--delay",
        "60ms",
        "--loss",
        "10%",
        "--seed",
        "3",
    ]);
    let target = format!(
        "comity://127.0.0.1:{}?latency=100ms&drop=expired&{SECRET}",
        path.port()
    );
    Running::start(&["send", clip.to_str().unwrap(), &target, "--speed", "4"]).end(0);
    let (relayed, _) = relay.end(0);
    let (received, _) = receiver.end(0);
    path.interrupt();
    for line in String::from_utf8(folder.read("gaps.jsonl"))
        .unwrap()
        .lines()
    {
        let gap: Value = serde_json::from_str(line).unwrap();
        assert!(["cancelled", "dependency"].contains(&gap["reason"].as_str().unwrap()));
    }
    let names = folder.listed("gaps.jsonl");
    let whole = arrived(&received);
    assert!(
        !names.is_empty(),
        "at 10 % loss, and with a round trip longer than the latency"
    );
    assert_eq!(
        whole + names.len() as u64,
        SECTIONS,
        "{received} after {relayed}"
    );
    // Only sections that arrived at the relay can have arrived behind it.
    let came = arrived(&relayed);
    assert!(whole <= came, "{whole} of {came}");
}
