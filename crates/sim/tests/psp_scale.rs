//! Packet spacing with steps that go with the rate, on the networks of experiments/packet_spacing/scale.toml: from
//! 100 kb/s to 10 Gb/s.

use std::collections::BTreeMap;
use std::path::Path;

use comity_sim::report::{FlowReport, RunReport};
use comity_sim::scenario::{Reading, Scenario};
use comity_sim::{RunOptions, run};
use comity_units::Seed;

/// Share of the bottleneck that is used, share of the packets either way that are lost, as the command tells it, and Jain's index of the two agents.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    used: f64,
    lost: f64,
    jain: f64,
}

fn outcome(report: &RunReport) -> Outcome {
    let sum = |of: fn(&FlowReport) -> f64| -> f64 { report.flows.iter().map(of).sum() };
    let rates = sum(|flow| flow.throughput_bps);
    let squares = sum(|flow| flow.throughput_bps * flow.throughput_bps);
    Outcome {
        used: report.links[0]
            .utilisation
            .expect("the bottleneck has a rate"),
        lost: sum(|flow| flow.dropped_packets as f64)
            / sum(|flow| (flow.sent_packets + flow.returned_packets) as f64),
        jain: rates * rates / (report.flows.len() as f64 * squares),
    }
}

/// What each run whose point `is_wanted` comes to, by the values of rate, scale and `dynamic_rtt`.
fn play(is_wanted: impl Fn(&str, &str, &str) -> bool) -> BTreeMap<[String; 3], Outcome> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/packet_spacing/scale.toml");
    let scenario =
        Scenario::load(&path, &Reading::default()).unwrap_or_else(|problems| panic!("{problems}"));
    let mut found = BTreeMap::new();
    for point in scenario.runs() {
        let value = |name: &str| {
            let axes = scenario.axes();
            let axis = axes.iter().position(|axis| *axis == name);
            point.values[axis.expect("the axis is there")].to_string()
        };
        let place = ["rate", "scale", "dynamic_rtt"].map(value);
        let [rate, scale, dynamic] = &place;
        if !is_wanted(rate, scale, dynamic) || found.contains_key(&place) {
            continue;
        }
        let network = scenario.prepare(&point).0;
        let report =
            run(&network, Seed::new(1), &RunOptions::default()).expect("the network is sound");
        found.insert(place, outcome(&report));
    }
    found
}

/// What the steps of the rate come to with the base round trip at every rate, each for as long as the file says: a fifth either way
/// of the loss that experiments/packet_spacing/scale.toml tells of, half for that of the fewest packets.
#[test]
fn steps_that_go_with_the_rate_fill_and_share_links_of_every_rate() {
    let found = play(|_, scale, dynamic| scale == "rate" && dynamic == "false");
    assert_eq!(found.len(), 6);
    for (rate, used, lost) in [
        // Packets that were queued when the measurement began are carried in it.
        ("100kbps", 0.97..1.01, 0.018..0.054),
        ("1Mbps", 0.97..1.01, 0.036..0.056),
        ("10Mbps", 0.95..1.01, 0.013..0.021),
        ("100Mbps", 0.85..0.93, 0.0034..0.0054),
        // A queue of 100 packets is little of a round trip here, and most is lost at the start.
        ("1Gbps", 0.82..0.91, 0.0019..0.0031),
        ("10Gbps", 0.82..0.91, 0.0031..0.0047),
    ] {
        let outcome = found[&[rate, "rate", "false"].map(String::from)];
        assert!(used.contains(&outcome.used), "{rate}: {outcome:?}");
        assert!(lost.contains(&outcome.lost), "{rate}: {outcome:?}");
        assert!(outcome.jain > 0.95, "{rate}: {outcome:?}");
    }
}

/// By how much more steps of the rate lose than fixed ones of 50 us and 2 us, which are next to nothing where a packet takes
/// 114 ms or 11 ms: less everywhere but at 1 Mb/s and 10 Mb/s with the base round trip, where fixed steps leave a tenth
/// and a sixth of the link unused.
#[test]
fn steps_that_go_with_the_rate_lose_less_than_fixed_ones_or_use_more() {
    let found = play(|rate, _, _| !matches!(rate, "1Gbps" | "10Gbps"));
    assert_eq!(found.len(), 16);
    for (rate, dynamic, ratio) in [
        ("100kbps", "false", 0.2..0.7),
        ("100kbps", "true", 0.03..0.15),
        ("1Mbps", "false", 2.0..3.5),
        ("1Mbps", "true", 0.6..1.0),
        ("10Mbps", "false", 1.0..1.6),
        ("10Mbps", "true", 0.6..1.0),
        ("100Mbps", "false", 0.3..0.6),
        ("100Mbps", "true", 0.3..0.6),
    ] {
        let of = |scale: &str| found[&[rate, scale, dynamic].map(String::from)];
        let (by_rate, fixed) = (of("rate"), of("fixed"));
        assert!(
            ratio.contains(&(by_rate.lost / fixed.lost)),
            "{rate}, {dynamic}: {by_rate:?} against {fixed:?}"
        );
        assert!(
            by_rate.used > fixed.used - 0.01,
            "{rate}, {dynamic}: {by_rate:?} against {fixed:?}"
        );
    }
}
