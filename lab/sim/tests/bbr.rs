//! BBR in networks where its behaviour is known.

use comity_sim::report::RunReport;
use comity_sim::scenario::{NoFiles, Reading, Scenario, simulate};

/// Greedy flows with these controllers over one bottleneck, with bins of 100 ms; measured after
/// `warmup`.
fn run(bottleneck: &str, duration: &str, warmup: &str, seed: u64, flows: &[&str]) -> RunReport {
    let mut text = format!(
        r#"
        [scenario]
        name = "bbr"
        duration = "{duration}"
        warmup = "{warmup}"
        bins = "100ms"
        seeds = [{seed}]
        [topology]
        kind = "dumbbell"
        bottleneck = {{ {bottleneck} }}
        access = {{ rate = "1Gbps", delay = "0ms" }}
        "#
    );
    for (index, flow) in flows.iter().enumerate() {
        let (controller, transport) = match flow.strip_suffix(" of sections") {
            Some(controller) => (controller, "sections"),
            None => (*flow, "tcp"),
        };
        text += &format!("[[flow]]\ngroup = \"flow{index}\"\n");
        text += &format!("controller = \"{controller}\"\ntransport = \"{transport}\"\n");
    }
    let scenario = Scenario::parse("bbr.toml", &text, NoFiles, &Reading::default());
    let scenario = scenario.unwrap_or_else(|problems| panic!("{problems}"));
    let run = scenario.runs()[0].clone();
    let (network, settings) = scenario.prepare(&run);
    simulate(&network, &run, &settings).unwrap()
}

/// The rates of the flows in Mb/s on the wire.
fn rates(report: &RunReport) -> Vec<f64> {
    let flows = report.flows.iter();
    flows.map(|flow| flow.throughput_bps / 1e6).collect()
}

const SLOW: &str = r#"rate = "8Mbps", delay = "20ms", queue = 60"#;

/// 8 Mb/s and 40 ms: the path holds 26.7 packets.
#[test]
fn one_flow_fills_the_path_and_hardly_the_queue() {
    for controller in ["bbr", "bbr3"] {
        let report = run(SLOW, "60s", "10s", 1, &[controller]);
        let rate = rates(&report)[0];
        assert!((7.6..=8.0).contains(&rate), "{controller}: {rate}");
        let queue = report.links[0].mean_queue_packets;
        assert!((1.0..26.7).contains(&queue), "{controller}: {queue}");
        let longest = report.series.as_ref().unwrap().links[0]
            .max_queue_packets
            .iter()
            .skip(100)
            .max()
            .copied();
        assert!(longest < Some(41), "{controller}: {longest:?}");
        assert_eq!(report.flows[0].timeouts, 0);
    }
}

/// The same with sections, acknowledged packet by packet.
#[test]
fn a_flow_of_sections_fills_the_path() {
    for controller in ["bbr", "bbr3"] {
        let flow = format!("{controller} of sections");
        let report = run(SLOW, "60s", "10s", 1, &[&flow]);
        let rate = rates(&report)[0];
        assert!((7.5..=8.0).contains(&rate), "{controller}: {rate}");
        let queue = report.links[0].mean_queue_packets;
        assert!((0.5..30.0).contains(&queue), "{controller}: {queue}");
    }
}

/// When the window was cut to four segments for a round-trip measurement, in tenths of a second.
fn probes(report: &RunReport, most: u64) -> Vec<usize> {
    let windows = &report.series.as_ref().unwrap().flows[0].cwnd_bytes;
    let low = |at: usize| windows[at] <= most;
    (1..windows.len())
        .filter(|&at| low(at) && !low(at - 1))
        .collect()
}

#[test]
fn the_round_trip_is_measured_every_ten_seconds() {
    let report = run(SLOW, "60s", "10s", 1, &["bbr"]);
    let probes = probes(&report, 4 * 1_448);
    assert!((4..=5).contains(&probes.len()), "{probes:?}");
    for pair in probes.windows(2) {
        let distance = pair[1] - pair[0];
        assert!((100..=106).contains(&distance), "{probes:?}");
    }
}

#[test]
fn two_flows_share() {
    for controller in ["bbr", "bbr3"] {
        for seed in 1..=3 {
            let report = run(SLOW, "120s", "30s", seed, &[controller, controller]);
            let rates = rates(&report);
            let sum = rates[0] + rates[1];
            assert!((7.6..=8.0).contains(&sum), "{controller}: {rates:?}");
            let share = rates[0] / sum;
            assert!((0.3..0.7).contains(&share), "{controller}: {rates:?}");
        }
    }
}

/// 20 Mb/s, 20 ms and 40 packets, slightly more than the path holds: a flow of Linux gets 1.6
/// shares there.
#[test]
fn beside_cubic_behind_a_short_queue_version_1_takes_more() {
    for seed in 1..=3 {
        let bottleneck = r#"rate = "20Mbps", delay = "10ms", queue = 40"#;
        let report = run(bottleneck, "60s", "10s", seed, &["bbr", "cubic"]);
        let rates = rates(&report);
        let sum = rates[0] + rates[1];
        assert!((18.5..=20.0).contains(&sum), "{rates:?}");
        let share = rates[0] / (sum / 2.0);
        assert!((1.2..1.9).contains(&share), "{share}");
    }
}

#[test]
fn random_losses_do_not_slow_it_down() {
    let bottleneck = r#"rate = "8Mbps", delay = "20ms", queue = 60, losses = [{ model = "bernoulli", probability = 0.02 }]"#;
    for (controller, low, high) in [("bbr", 0.9, 1.0), ("cubic", 0.05, 0.5)] {
        let report = run(bottleneck, "60s", "10s", 1, &[controller]);
        // Lost packets are not delivered.
        let share = rates(&report)[0] / (8.0 * 0.98);
        assert!((low..=high).contains(&share), "{controller}: {share}");
    }
}
