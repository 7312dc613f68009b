//! Packet spacing with steps that go with the rate, on the networks of experiments/packet_spacing/scale.toml: from
//! 100 kb/s to 10 Gb/s, each for less time than there.

use std::collections::BTreeMap;
use std::path::Path;

use comity_sim::report::RunReport;
use comity_sim::scenario::{Reading, Scenario};
use comity_sim::{RunOptions, run};
use comity_units::{Seed, Span, Time};

/// Share of the bottleneck that is used, share of the packets that are lost, and Jain's index of the two agents.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    used: f64,
    lost: f64,
    jain: f64,
}

fn outcome(report: &RunReport) -> Outcome {
    let sum = |of: fn(&comity_sim::report::FlowReport) -> f64| -> f64 {
        report.flows.iter().map(of).sum()
    };
    let rates = sum(|flow| flow.throughput_bps);
    let squares = sum(|flow| flow.throughput_bps * flow.throughput_bps);
    Outcome {
        used: report.links[0]
            .utilisation
            .expect("the bottleneck has a rate"),
        lost: sum(|flow| flow.dropped_packets as f64) / sum(|flow| flow.sent_packets as f64),
        jain: rates * rates / (report.flows.len() as f64 * squares),
    }
}

/// What each run whose point `is_wanted` comes to, by the values of rate, scale and `dynamic_rtt`. It lasts as long as
/// `lasting` says for a rate.
fn play(
    is_wanted: impl Fn(&str, &str, &str) -> bool,
    lasting: impl Fn(&str) -> Span,
) -> BTreeMap<(String, String, String), Outcome> {
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
        let [rate, scale, dynamic] = ["rate", "scale", "dynamic_rtt"].map(value);
        if !is_wanted(&rate, &scale, &dynamic) {
            continue;
        }
        let mut network = scenario.prepare(&point).0;
        network.duration = lasting(&rate);
        network.warmup = network.duration / 2;
        for flow in &mut network.flows {
            flow.start.at = Time::ZERO;
            flow.start.spread = flow.start.spread.min(network.duration / 20);
        }
        let report =
            run(&network, Seed::new(1), &RunOptions::default()).expect("the network is sound");
        found.insert((rate, scale, dynamic), outcome(&report));
    }
    found
}

#[test]
fn steps_that_go_with_the_rate_fill_and_share_links_of_every_rate() {
    let lasting = |rate: &str| match rate {
        "1Gbps" => Span::from_secs(8),
        "10Gbps" => Span::from_millis(600),
        _ => Span::from_secs(40),
    };
    let found = play(
        |_, scale, dynamic| scale == "rate" && dynamic == "false",
        lasting,
    );
    assert_eq!(found.len(), 6);
    for (point, outcome) in found {
        let Outcome { used, lost, jain } = outcome;
        // Packets that were queued when the measurement began are carried in it.
        assert!((0.8..1.01).contains(&used), "{point:?} {outcome:?}");
        // Each halves its rate for a loss, and finds the next by losing: a report comes a queue of packets late.
        assert!(0.0 < lost && lost < 0.2, "{point:?} {outcome:?}");
        assert!(jain > 0.95, "{point:?} {outcome:?}");
    }
}

/// Fixed steps of 50 us and 2 us are next to nothing where a packet takes 114 ms or 11 ms.
#[test]
fn steps_that_go_with_the_rate_lose_less_than_fixed_ones_on_slow_links() {
    let is_slow = |rate: &str| matches!(rate, "100kbps" | "1Mbps");
    let found = play(
        |rate, _, dynamic| is_slow(rate) && dynamic == "true",
        |_| Span::from_secs(60),
    );
    for rate in ["100kbps", "1Mbps"] {
        let of = |scale: &str| found[&(rate.to_owned(), scale.to_owned(), "true".to_owned())];
        let (with_rate, fixed) = (of("rate"), of("fixed"));
        assert!(
            with_rate.lost < 0.6 * fixed.lost && with_rate.used > 0.95,
            "{rate}: {with_rate:?} against {fixed:?}"
        );
    }
}
