//! Rate-based controllers in a network: against the throughput equation under random loss, against
//! themselves, and in place of TCP.

use crate::common;

use comity_congestion::equation::throughput;
use comity_congestion::table::{Parameters, Value};
use comity_link::{Limit, LinkConfig, Loss, LossModel, LossPlace, Queue};
use comity_sim::network::{Network, Start, TransportSpec, Workload};
use comity_sim::report::RunReport;
use comity_sim::{RunOptions, run};
use comity_units::{DataSize, Rate, Seed, Span, Time};

use common::Builder;

fn network(seconds: u64, there: LinkConfig, controllers: &[&str]) -> Network {
    let mut builder = Builder::new(seconds, seconds / 4);
    let (a, b) = (builder.node("a"), builder.node("b"));
    let reverse = LinkConfig {
        losses: Vec::new(),
        ..there.clone()
    };
    builder.link(a, b, there);
    builder.link(b, a, reverse);
    for (index, controller) in controllers.iter().enumerate() {
        let flow = builder.flow(
            "flow",
            (a, b),
            common::sections(controller),
            Workload::Greedy,
        );
        flow.start = Start {
            at: Time::from_secs(index as u64 * 5),
            ..Start::default()
        };
    }
    builder.network
}

fn simulate(network: &Network, seed: u64) -> RunReport {
    run(network, Seed::new(seed), &RunOptions::default()).unwrap()
}

/// With N packets in a round trip, a loss event begins with a loss and includes the losses of a
/// round trip: p / (1 + N p) events for each packet. The mean interval applies where it raises the
/// rate, and the rate is concave in the interval. The result is slightly above or below X(p):
/// within a fifth.
#[test]
fn under_random_loss_the_rate_is_that_of_the_equation() {
    let rtt = Span::from_millis(100);
    let segment = DataSize::new(1_423);
    for loss in [0.003, 0.01, 0.03, 0.1] {
        let there = LinkConfig {
            losses: vec![Loss {
                model: LossModel::Bernoulli(loss),
                place: LossPlace::AfterTransmission,
            }],
            ..LinkConfig::new(Rate::from_mbps(100), Span::from_millis(50))
        };
        let network = network(400, there, &["tfrc"]);
        let sent = |seed| {
            let report = simulate(&network, seed);
            // Without headers, and with the lost packets.
            report.flows[0].throughput_bps * 1_423.0 / 1_480.0 / (1.0 - loss)
        };
        let mean = (1..=3).map(sent).sum::<f64>() / 3.0;
        let packets = mean / 8.0 / 1_423.0 * rtt.as_secs_f64();
        let events = loss / (1.0 + packets * loss);
        let expected = throughput(segment, rtt, events).as_bps() as f64;
        let ratio = mean / expected;
        assert!(
            (0.8..1.2).contains(&ratio),
            "{loss}: {mean} of {expected}, {ratio}"
        );
    }
}

/// The same flow in ns-2, with a clock and minimum timeout that make its equation equal the RFC's.
/// RAP's and TFRC's rates agree within an eighth from one loss in a thousand packets to one in
/// five.
#[test]
fn under_random_loss_rap_and_tfrc_match_ns2() {
    let vectors = include_str!("../../../vectors/ns2/random_loss.txt");
    for controller in ["rap", "tfrc"] {
        for loss in [0.001, 0.01, 0.03, 0.1, 0.2] {
            let name = format!("{controller}-{loss} ");
            let rows = vectors.lines().filter_map(|line| line.strip_prefix(&name));
            let theirs: Vec<f64> = rows
                .map(|row| row.split(' ').nth(1).unwrap().parse().unwrap())
                .collect();
            let theirs = theirs.iter().sum::<f64>() / theirs.len() as f64;
            let there = LinkConfig {
                losses: vec![Loss {
                    model: LossModel::Bernoulli(loss),
                    place: LossPlace::AfterTransmission,
                }],
                ..LinkConfig::new(Rate::from_mbps(100), Span::from_millis(50))
            };
            let mut network = network(400, there, &[controller]);
            let TransportSpec::Sections(sections) = &mut network.flows[0].transport else {
                panic!()
            };
            // A packet of 1,500 bytes has 57 bytes of headers.
            sections.config.payload = 1_443;
            let sent = |seed| {
                let flow = &simulate(&network, seed).flows[0];
                flow.throughput_bps / 8.0 / 1_500.0 / (1.0 - loss)
            };
            let ours = (1..=3).map(sent).sum::<f64>() / 3.0;
            let ratio = ours / theirs;
            assert!(
                (0.875..1.125).contains(&ratio),
                "{controller} at {loss}: {ours} packets a second, {theirs} in ns-2"
            );
        }
    }
}

fn slow_link() -> LinkConfig {
    LinkConfig {
        queue: Queue::DropTail(Limit::Packets(60)),
        ..LinkConfig::new(Rate::from_mbps(4), Span::from_millis(20))
    }
}

/// The share of the first of two flows with this controller in the 150 s after the first 50, in
/// each of three runs. The second flow starts this many seconds later.
fn shares(controller: &str, parameters: &Parameters, later: u64) -> Vec<f64> {
    let mut network = network(200, slow_link(), &[controller, controller]);
    network.flows[1].start.at = Time::from_secs(later);
    for flow in &mut network.flows {
        let TransportSpec::Sections(sections) = &mut flow.transport else {
            panic!()
        };
        sections.parameters = parameters.clone();
    }
    let share = |seed| {
        let report = simulate(&network, seed);
        let [one, other] = [0, 1].map(|flow: usize| report.flows[flow].throughput_bps);
        let both = one + other;
        assert!((3.4e6..4.01e6).contains(&both), "{controller}: {both}");
        one / both
    };
    (1..=3).map(share).collect()
}

/// Whatever the first one has when the second starts: in every run, and equally on average.
#[test]
fn two_flows_come_to_equal_shares() {
    let steps = Parameters::new().with("scale", Value::Text("rate".into()));
    let steps = steps
        .with("link", Value::Rate(Rate::from_mbps(4)))
        .with("jitter", Value::Number(1.0))
        .with("dynamic_rtt", Value::Flag(true));
    let usual = Parameters::new();
    for (controller, parameters) in [
        ("tfrc", &usual),
        ("rap", &usual),
        ("iftp", &usual),
        ("psp", &steps),
    ] {
        for later in [0, 20] {
            let shares = shares(controller, parameters, later);
            let is_even = |share: &f64| (0.35..0.65).contains(share);
            assert!(
                shares.iter().all(is_even),
                "{controller}, {later} s later: {shares:?}"
            );
            let mean = shares.iter().sum::<f64>() / 3.0;
            assert!(
                (0.4..0.6).contains(&mean),
                "{controller}, {later} s later: {shares:?}"
            );
        }
    }
}

/// Fixed steps do not bring flows together: two flows keep their initial spacings except for
/// chance. The test therefore requires only that neither starves.
#[test]
fn two_flows_with_fixed_steps_both_live() {
    let fixed = Parameters::new()
        .with("link", Value::Rate(Rate::from_mbps(4)))
        .with("first", Value::Span(Span::from_millis(2)))
        .with("step", Value::Span(Span::from_micros(80)))
        .with("jitter", Value::Number(1.0));
    for later in [0, 20] {
        let shares = shares("psp", &fixed, later);
        let lives = |share: &f64| (0.1..0.9).contains(share);
        assert!(shares.iter().all(lives), "{later} s later: {shares:?}");
    }
}

/// The end of slow start: a queue of 60 packets and a path of 14 are full when the rate is twice
/// the link's. Part of the packets sent in the round trip until the report is lost. Afterwards the
/// rate is the receive rate. An unbounded first interval would double that for eight further loss
/// events, and lose ten times as many.
#[test]
fn after_the_first_loss_event_the_rate_is_the_receive_rate() {
    let mut network = network(4, slow_link(), &["tfrc"]);
    network.warmup = Span::ZERO;
    network.flows[0].start = Start::default();
    for seed in 1..=3 {
        let report = simulate(&network, seed);
        let (flow, link) = (&report.flows[0], &report.links[0]);
        assert!(
            (1..=75).contains(&link.dropped_full),
            "{seed}: {}",
            link.dropped_full
        );
        // It does not stand still either: a second packet leaves when the first is acknowledged,
        // not a second later.
        assert!(
            (2.2e6..4.01e6).contains(&flow.throughput_bps),
            "{seed}: {}",
            flow.throughput_bps
        );
    }
}

#[test]
fn tcp_refuses_a_controller_for_sections() {
    let mut builder = Builder::new(1, 0);
    let (a, b) = (builder.node("a"), builder.node("b"));
    builder.duplex(
        a,
        b,
        &LinkConfig::new(Rate::from_mbps(4), Span::from_millis(20)),
    );
    let tcp = common::ns2_tcp(
        comity_tcp::Config::NS2_2_35,
        comity_congestion::recovery::RecoveryConfig::by_name("sack").unwrap(),
        1_500,
        20,
    );
    let TransportSpec::Tcp(mut tcp) = tcp else {
        panic!()
    };
    tcp.controller = "tfrc".into();
    tcp.parameters = Parameters::new();
    builder.flow("tcp", (a, b), TransportSpec::Tcp(tcp), Workload::Greedy);
    let error = run(&builder.network, Seed::new(1), &RunOptions::default()).unwrap_err();
    assert!(
        error.to_string().contains("works only with sections"),
        "{error}"
    );
}
