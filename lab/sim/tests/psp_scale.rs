//! Packet spacing with steps that scale with the rate, on the networks of
//! experiments/packet_spacing/scale.toml: from 100 kb/s to 10 Gb/s.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use comity_sim::report::{FlowReport, RunReport};
use comity_sim::scenario::{Reading, Run, Scenario};
use comity_sim::{RunOptions, run};
use comity_units::Seed;

/// The utilisation of the bottleneck, the loss rate in each direction as the command reports it,
/// and Jain's index of the two agents.
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
            / sum(|flow| (flow.sent_packets + flow.acks) as f64),
        jain: rates * rates / (report.flows.len() as f64 * squares),
    }
}

fn load(file: &str) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/packet_spacing");
    Scenario::load(&folder.join(file), &Reading::default())
        .unwrap_or_else(|problems| panic!("{problems}"))
}

/// The values of a run on these axes.
fn values_of<const N: usize>(scenario: &Scenario, run: &Run, names: [&str; N]) -> [String; N] {
    names.map(|name| {
        let axes = scenario.axes();
        let axis = axes.iter().position(|axis| *axis == name);
        run.values[axis.expect("the axis is there")].to_string()
    })
}

/// The outcome of each run whose point `is_wanted`, by the values of rate, scale and `dynamic_rtt`.
fn simulate(is_wanted: impl Fn(&str, &str, &str) -> bool) -> BTreeMap<[String; 3], Outcome> {
    let scenario = load("scale.toml");
    let mut found = BTreeMap::new();
    for point in scenario.runs() {
        let values = values_of(&scenario, &point, ["rate", "scale", "dynamic_rtt"]);
        let [rate, scale, dynamic] = &values;
        if !is_wanted(rate, scale, dynamic) || found.contains_key(&values) {
            continue;
        }
        let network = scenario.prepare(&point).0;
        let report =
            run(&network, Seed::new(1), &RunOptions::default()).expect("the network is sound");
        found.insert(values, outcome(&report));
    }
    found
}

/// The utilisation of the bottleneck with two agents that are reduced together, if a queue of 100
/// packets is a small part of a round trip.
///
/// An increase adds √n/4 to the n packets of a round trip, which adds an eighth to √n for every n.
/// √n therefore grows evenly between decreases. In units of the link's rate, the rate is 1 + h when
/// the queue of Q packets is full, with h = √(m√n · Q/6) / (mn) for m agents. The excess over one
/// is not carried: as the root moves from s = √((1 − d)(1 + h)) to t = √(1 + h), the mean is ((1 −
/// s³) / 3 + t − 1) / (t − s). The decrease d is min(1/4, RTT / least · n^(−1/4)) with the queue
/// full. By hand:
///
/// ```text
/// 100 Mb/s, 84 ms:  n =   368  RTT / least = 1.136  d = 0.25    h = 0.0344  s = 0.8808  t = 1.0170  0.900
///   1 Gb/s, 84 ms:  n = 3,676  RTT / least = 1.014  d = 0.1302  h = 0.0061  s = 0.9355  t = 1.0031  0.940
///  10 Gb/s,  8 ms:  n = 3,501  RTT / least = 1.014  d = 0.1319  h = 0.0063  s = 0.9347  t = 1.0032  0.939
/// ```
///
/// A decrease of a quarter each time would give 0.900, 0.877 and 0.877.
fn sawtooth(bps: f64, round_trip: f64) -> f64 {
    let (agents, queue, bits) = (2.0, 100.0, 11_424.0);
    let n = bps * round_trip / bits / agents;
    let longer = 1.0 + queue * bits / bps / round_trip;
    let decrease = (longer * libm::pow(n, -0.25)).min(0.25);
    let above = (agents * n.sqrt() * queue / 6.0).sqrt() / (agents * n);
    let top = (1.0 + above).sqrt();
    let bottom = ((1.0 - decrease) * (1.0 + above)).sqrt();
    ((1.0 - bottom * bottom * bottom) / 3.0 + (top - 1.0)) / (top - bottom)
}

fn near(share: f64) -> Range<f64> {
    share - 0.015..share + 0.015
}

/// The results of scaled steps with the base round trip at every rate but 1 Gb/s, for the duration
/// in the file. The share of the link follows [`sawtooth`] from 100 Mb/s on. The loss is within a
/// fifth of that in experiments/packet_spacing/scale.toml, and within half for the fewest packets.
/// A run of 1 Gb/s takes longer than all others together, and tests nothing that 10 Gb/s does not.
#[test]
fn steps_that_go_with_the_rate_fill_and_share_links_of_every_rate() {
    let found =
        simulate(|rate, scale, dynamic| rate != "1Gbps" && scale == "rate" && dynamic == "false");
    assert_eq!(found.len(), 5);
    for (rate, used, lost) in [
        // Packets queued at the start of the measurement are carried in it.
        ("100kbps", 0.97..1.01, 0.018..0.054),
        ("1Mbps", 0.97..1.01, 0.036..0.056),
        ("10Mbps", 0.95..1.01, 0.013..0.021),
        ("100Mbps", near(sawtooth(1e8, 0.084)), 0.0036..0.0056),
        // A queue of 100 packets is a small part of a round trip here, and most losses occur at the
        // start.
        ("10Gbps", near(sawtooth(1e10, 0.008)), 0.0029..0.0044),
    ] {
        let outcome = found[&[rate, "rate", "false"].map(String::from)];
        assert!(used.contains(&outcome.used), "{rate}: {outcome:?}");
        assert!(lost.contains(&outcome.lost), "{rate}: {outcome:?}");
        assert!(outcome.jain > 0.95, "{rate}: {outcome:?}");
    }
}

/// How much more scaled steps lose than fixed ones of 50 us and 2 us, which are negligible when a
/// packet takes 114 ms or 11 ms. They lose less everywhere except at 1 Mb/s and 10 Mb/s with the
/// base round trip, where fixed steps leave a tenth and a sixth of the link unused.
#[test]
fn steps_that_go_with_the_rate_lose_less_than_fixed_ones_or_use_more() {
    let found = simulate(|rate, _, _| !matches!(rate, "1Gbps" | "10Gbps"));
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

/// The network of experiments/packet_spacing/scale_late.toml at 100 Mb/s, with rounds of the
/// minimum round trip. The late flow is at most a factor of two ahead or behind, and the
/// utilisation follows [`sawtooth`].
#[test]
fn a_late_flow_gets_its_share_of_100_mbps() {
    let scenario = load("scale_late.toml");
    let axes = ["rate", "damped", "dynamic_rtt"];
    let wanted = ["100Mbps", "true", "false"];
    let point = scenario
        .runs()
        .into_iter()
        .find(|point| values_of(&scenario, point, axes) == wanted)
        .expect("the point is there");
    let network = scenario.prepare(&point).0;
    let report = run(&network, Seed::new(1), &RunOptions::default()).expect("the network is sound");
    let [first, late] = [0, 1].map(|flow: usize| report.flows[flow].throughput_bps);
    assert!((0.5..2.0).contains(&(first / late)), "{first} {late}");
    let used = outcome(&report).used;
    assert!(near(sawtooth(1e8, 0.084)).contains(&used), "{used}");
}
