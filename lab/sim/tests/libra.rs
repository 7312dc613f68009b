//! TCP Libra over simulated networks: its closed form, equal rates, its estimate of the capacity.

use crate::common;

use std::f64::consts::PI;

use comity_congestion::recovery::RecoveryConfig;
use comity_congestion::table::{Parameters, Value};
use comity_link::{DelayProfile, Limit, Loss, LossModel, LossPlace, Queue, RedConfig};
use comity_sim::metrics::jain;
use comity_sim::network::{NodeId, TransportSpec, Workload};
use comity_sim::report::RunReport;
use comity_sim::{FlowEvent, Observer, RunOptions, run, run_observed};
use comity_tcp::{Config, DelayedAck};
use comity_units::{DataSize, Rate, Seed, Span, Time};

/// Libra on NewReno as in ns-2, segments of 1500 bytes on the wire.
fn libra(parameters: &[(&str, Value)], controller: &str, config: Config) -> TransportSpec {
    let mut spec = common::ns2_tcp(config, RecoveryConfig::NEW_RENO, 1_500, 100_000);
    if let TransportSpec::Tcp(tcp) = &mut spec {
        tcp.controller = controller.into();
        tcp.parameters = Parameters::new();
        for (name, value) in parameters {
            tcp.parameters.insert(name, value.clone());
        }
    }
    spec
}

fn given(rate: Rate) -> Vec<(&'static str, Value)> {
    vec![
        ("capacity", Value::Rate(rate)),
        ("memory", Value::Span(Span::MAX)),
    ]
}

fn simulate(builder: &common::Builder, seed: u64) -> RunReport {
    run(&builder.network, Seed::new(seed), &RunOptions::default()).unwrap()
}

/// Links of `rate` from every second node to the next, with these round trips, each with a flow.
fn disjoint(seconds: u64, round_trips: &[u64], loss: f64) -> common::Builder {
    let mut builder = common::Builder::new(seconds, 100);
    for milliseconds in round_trips {
        let a = builder.node(&format!("a{milliseconds}"));
        let b = builder.node(&format!("b{milliseconds}"));
        let delay = Span::from_micros(milliseconds * 500);
        let mut link = common::link_config(Rate::from_mbps(100), delay, Limit::Unlimited);
        let reverse = link.clone();
        link.losses = vec![Loss {
            model: LossModel::Bernoulli(loss),
            place: LossPlace::AfterTransmission,
        }];
        builder.link(a, b, link);
        builder.link(b, a, reverse);
    }
    builder
}

/// The mean rate in segments per second with independent losses of probability p for each segment.
///
/// Counted in segments, v = window² / 2 grows by α · RT² / (RT + A) =: a for each, and a loss
/// multiplies it by q = (1 − d)², with d = B / (2 (RT + A)). Its stationary distribution is that of
/// (a / p) · Σ q^k E_k with exponential E_k, whose moments obey M(s) = M(s − 1) · (a / p) · s / (1
/// − q^s), and therefore
///
/// ```text
/// rate = 1 / (RT · E[1 / window]) = √(2 a / (π p)) / RT · Π (1 − q^k) / (1 − q^(k − 1/2))
/// ```
///
/// With a = 1 and d = 1/2 this is TCP's 1.31 / (RT √p).
fn closed_form(alpha: f64, a: f64, b: f64, round_trip: f64, loss: f64) -> f64 {
    let growth = alpha * round_trip * round_trip / (round_trip + a);
    let left = 1.0 - b / (2.0 * (round_trip + a));
    // q^(k − 1/2) is left^(2 k − 1).
    let product: f64 = (1..200)
        .map(|k| {
            let odd: f64 = (1..2 * k).map(|_| left).product();
            (1.0 - odd * left) / (1.0 - odd)
        })
        .product();
    (2.0 * growth / (PI * loss)).sqrt() / round_trip * product
}

#[test]
fn the_closed_form_knows_the_constant_of_tcp() {
    // a = 1 needs α · RT² = RT + A, and d = 1/2 an RT that is negligible beside A = B.
    let rate = closed_form(1e6 * (1.0 + 1e-3), 1.0, 1.0 + 1e-3, 1e-3, 1e-2);
    assert!((rate * 1e-3 * 0.1 - 1.3098).abs() < 1e-3, "{rate}");
}

/// Growth and reduction balance at the same rate for every round trip.
#[test]
fn round_trips_from_30_to_180_ms_have_the_rate_of_the_closed_form() {
    let (loss, capacity) = (5e-4, 100);
    let round_trips = [30, 90, 180];
    let mut builder = disjoint(1_000, &round_trips, loss);
    for at in 0..3 {
        // Y = 0: without a queue, the extremes of the round trip are those of the first and the
        // second packet of a pair.
        let mut parameters = given(Rate::from_mbps(capacity));
        parameters.push(("y", Value::Number(0.0)));
        let spec = libra(&parameters, "libra", Config::NS2_2_35);
        builder.flow(
            "libra",
            (NodeId(2 * at), NodeId(2 * at + 1)),
            spec,
            Workload::Greedy,
        );
    }
    let report = simulate(&builder, 1);
    let mut rates = Vec::new();
    for (milliseconds, flow) in round_trips.iter().zip(&report.flows) {
        let found = flow.goodput_bps / 8.0 / 1_460.0;
        let round_trip = *milliseconds as f64 / 1_000.0;
        let expected = closed_form(2.0 * capacity as f64, 1.0, 1.0, round_trip, loss);
        let ratio = found / expected;
        assert!(
            (0.88..1.08).contains(&ratio),
            "{milliseconds} ms: {found} for {expected}"
        );
        rates.push(found);
    }
    // The closed form itself is 5 % lower at 180 ms than at 30 ms: 1 / √(RT + A) and a smaller
    // reduction.
    assert!(jain(&rates).unwrap() > 0.99, "{rates:?}");
}

/// Two pairs of flows with round trips of 20 and 180 ms over 20 Mb/s. Random early detection drops
/// at random. With drop-tail, the phases at which packets find the queue full decide for few flows.
fn dumbbell(seconds: u64, controller: &str, parameters: &[(&str, Value)]) -> common::Builder {
    let mut builder = common::Builder::new(seconds, seconds / 2);
    let (left, right) = (builder.node("left"), builder.node("right"));
    let delay = Span::from_millis(5);
    let mut bottleneck = common::link_config(Rate::from_mbps(20), delay, Limit::Unlimited);
    builder.link(right, left, bottleneck.clone());
    bottleneck.queue = Queue::Red(RedConfig {
        limit: Limit::Packets(100),
        min_threshold: 10.0,
        max_threshold: 50.0,
        ..RedConfig::default()
    });
    builder.link(left, right, bottleneck);
    for (number, delay) in [5, 5, 85, 85].into_iter().enumerate() {
        let source = builder.node(&format!("source{number}"));
        let access = common::link_config(
            Rate::from_mbps(1_000),
            Span::from_millis(delay),
            Limit::Unlimited,
        );
        builder.duplex(source, left, &access);
        let spec = libra(parameters, controller, Config::NS2_2_35);
        builder.flow("flow", (source, right), spec, Workload::Greedy);
    }
    builder
}

#[test]
fn flows_of_different_round_trips_converge_to_equal_rates() {
    let index = |builder: &common::Builder| {
        let report = simulate(builder, 3);
        let rates: Vec<f64> = report.flows.iter().map(|flow| flow.goodput_bps).collect();
        let total: f64 = rates.iter().sum();
        assert!(total > 16e6, "{rates:?}");
        jain(&rates).unwrap()
    };
    let fair = index(&dumbbell(400, "libra", &given(Rate::from_mbps(20))));
    let estimated = index(&dumbbell(400, "libra", &[]));
    let reno = index(&dumbbell(400, "reno", &[]));
    assert!(fair > 0.95, "{fair} {estimated} {reno}");
    assert!(estimated > 0.95, "{fair} {estimated} {reno}");
    assert!(reno < 0.75, "{fair} {estimated} {reno}");
}

/// A single flow, with receivers that acknowledge every, every second or every fourth segment. Four
/// pairs are needed. The more segments an ACK covers, the fewer groups have two ACKs, which is one
/// in four with four segments: at 1 Mb/s, 83 segments a second.
#[test]
fn the_capacity_is_found_within_the_first_round_trips() {
    for rate in [
        Rate::from_mbps(1),
        Rate::from_mbps(10),
        Rate::from_mbps(1_000),
    ] {
        for segments in [1, 2, 4] {
            let mut builder = common::Builder::new(u64::from(segments), 0);
            let (a, b) = (builder.node("a"), builder.node("b"));
            let link = common::link_config(rate, Span::from_millis(20), Limit::Packets(100));
            builder.duplex(a, b, &link);
            let config = Config {
                delayed_ack: (segments > 1).then_some(DelayedAck {
                    segments,
                    timeout: Span::from_millis(40),
                    quick: 0,
                }),
                ..Config::NS2_2_35
            };
            let mut spec = libra(&[], "libra", config);
            if let TransportSpec::Tcp(tcp) = &mut spec {
                tcp.initial_window = DataSize::new(10 * 1_460);
            }
            builder.flow("libra", (a, b), spec, Workload::Greedy).start =
                comity_sim::network::Start::default();
            let report = simulate(&builder, 1);
            let found = report.flows[0].capacity_bps.unwrap_or(0) as f64;
            let ratio = found / rate.as_bps() as f64;
            assert!((0.99..1.01).contains(&ratio), "{rate} {segments}: {found}");
        }
    }
}

/// A handshake and one round trip of 180 ms: the receiver's clock is observed from the handshake
/// on, and therefore measures the first flight.
#[test]
fn with_timestamps_the_first_flight_measures_the_capacity() {
    let rate = Rate::from_mbps(100);
    let mut builder = common::Builder::new(1, 0);
    builder.network.duration = Span::from_millis(400);
    let (a, b) = (builder.node("a"), builder.node("b"));
    let link = common::link_config(rate, Span::from_millis(90), Limit::Packets(100));
    builder.duplex(a, b, &link);
    let mut spec = libra(&[], "libra", Config::MODERN);
    if let TransportSpec::Tcp(tcp) = &mut spec {
        tcp.initial_window = DataSize::new(10 * 1_460);
    }
    builder.flow("libra", (a, b), spec, Workload::Greedy).start =
        comity_sim::network::Start::default();
    let found = simulate(&builder, 1).flows[0].capacity_bps.unwrap_or(0) as f64;
    let ratio = found / rate.as_bps() as f64;
    assert!((0.99..1.01).contains(&ratio), "{found}");
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_does_not() {
    let builder = dumbbell(10, "libra", &[]);
    let fingerprint = |seed| simulate(&builder, seed).fingerprint;
    assert_eq!(fingerprint(1), fingerprint(1));
    assert_ne!(fingerprint(1), fingerprint(2));
}

/// Two flows over 20 Mb/s with random early detection, with these round trips beside the
/// bottleneck's 10 ms. The second begins at this time and with a window of this many segments.
fn two_flows(
    round_trips: [u64; 2],
    late: u64,
    window: u64,
    parameters: &[(&str, Value)],
) -> common::Builder {
    let mut builder = dumbbell(600, "libra", parameters);
    builder.network.warmup = Span::from_secs(350);
    builder.network.flows.drain(2..);
    for (link, delay) in builder.network.links.iter_mut().skip(2).zip([
        round_trips[0],
        round_trips[0],
        round_trips[1],
        round_trips[1],
    ]) {
        let delay = Span::from_micros(500 * delay);
        link.config.delay = DelayProfile::Constant(delay);
    }
    let second = &mut builder.network.flows[1];
    second.start.at = Time::from_secs(late);
    if let TransportSpec::Tcp(tcp) = &mut second.transport {
        tcp.initial_window = DataSize::new(window * 1_460);
    }
    builder
}

/// Any start: a flow that begins on a full link, one that begins with a full link's worth of
/// segments at once, and both of them with another round trip.
#[test]
fn two_flows_converge_to_equal_rates_from_any_start() {
    let given = given(Rate::from_mbps(20));
    for (round_trips, late, window) in [
        ([20, 20], 0, 2),
        ([20, 20], 200, 2),
        ([20, 20], 200, 200),
        ([20, 180], 200, 2),
        ([180, 20], 200, 2),
        ([180, 20], 200, 200),
    ] {
        for parameters in [&given[..], &[]] {
            let rates: Vec<f64> = simulate(&two_flows(round_trips, late, window, parameters), 3)
                .flows
                .iter()
                .map(|flow| flow.goodput_bps / 1e6)
                .collect();
            let name = format!(
                "{round_trips:?} {late} {window} {}: {rates:?}",
                parameters.len()
            );
            assert!(rates[0] + rates[1] > 15.0, "{name}");
            let ratio = rates[0] / rates[1];
            assert!((0.6..1.0 / 0.6).contains(&ratio), "{name}");
        }
    }
}

/// Counts the losses detected after a moment.
#[derive(Default)]
struct Losses {
    from: Time,
    before: u64,
    now: u64,
}

impl Observer for Losses {
    fn on_flow(&mut self, _: u32, event: &FlowEvent<'_>) {
        if let Some(state) = event.state {
            if event.now < self.from {
                self.before = state.fast_retransmits;
            }
            self.now = state.fast_retransmits;
        }
    }
}

/// Losses in the last 300 s of 500 s of a single flow over 10 Mb/s. Its forward and reverse delays
/// in milliseconds change at 100 s. X is ten times its default, so the flow's cycle takes a tenth
/// of the time.
fn losses_after(delays: [u64; 2], memory: Span) -> u64 {
    let mut builder = common::Builder::new(500, 200);
    let (a, b) = (builder.node("a"), builder.node("b"));
    let rate = Rate::from_mbps(10);
    let mut link = common::link_config(rate, Span::ZERO, Limit::Packets(100));
    let [before, after] = delays.map(Span::from_millis);
    link.delay = DelayProfile::Steps(vec![(Time::ZERO, before), (Time::from_secs(100), after)]);
    builder.duplex(a, b, &link);
    let parameters = [
        ("capacity", Value::Rate(rate)),
        ("x", Value::Number(20.0)),
        ("memory", Value::Span(memory)),
    ];
    let spec = libra(&parameters, "libra", Config::MODERN);
    builder.flow("libra", (a, b), spec, Workload::Greedy);
    let mut losses = Losses {
        from: Time::from_secs(200),
        ..Losses::default()
    };
    let options = RunOptions::default();
    let report = run_observed(&builder.network, Seed::new(1), &options, &mut losses).unwrap();
    assert!(report.flows[0].goodput_bps > 9e6, "{:?}", report.flows[0]);
    losses.now - losses.before
}

/// From a round trip of 20 ms to one of 120 ms and back. With a memory, the flow behaves on the new
/// route as one that never knew another. Without it, the recorded minimum round trip is too short
/// for the longer route. The flow then takes an empty queue for a half-full one, grows too slowly
/// and loses less often. The recorded maximum is too long for the shorter route: the flow takes a
/// full queue for a third of one, and loses more often.
#[test]
fn the_extremes_of_the_round_trip_survive_a_change_of_the_route() {
    let memory = Span::from_secs(30);
    for (before, after, forgetful) in [(10, 60, 0.4..0.85), (60, 10, 1.2..3.0)] {
        let always = losses_after([after, after], memory);
        let learnt = losses_after([before, after], memory);
        let stuck = losses_after([before, after], Span::MAX);
        assert!(always >= 20, "{always}");
        let ratio = |of: u64| of as f64 / always as f64;
        assert!(
            (0.85..1.15).contains(&ratio(learnt)),
            "{before} to {after} ms: {learnt} for {always}"
        );
        assert!(
            forgetful.contains(&ratio(stuck)),
            "{before} to {after} ms: {stuck} for {always}"
        );
    }
}
