//! Two flows of one controller over one bottleneck, from any start.

use crate::common;

use comity_congestion::recovery::RecoveryConfig;
use comity_congestion::table::{Parameters, Value};
use comity_link::{Jitter, Limit, LinkConfig, Queue};
use comity_sim::network::{Headers, TcpSpec, TimelineSpec, TransportSpec, Workload};
use comity_sim::report::RunReport;
use comity_sim::{RunOptions, run};
use comity_tcp::Config;
use comity_tcp::timeline::TimelineConfig;
use comity_units::{DataSize, Rate, Seed, Span, Time};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};

use common::Builder;

const MSS: u64 = 1_448;

/// Two flows and their bottleneck.
#[derive(Clone, Copy, Debug)]
struct Scene {
    kbps: u64,
    round_trip: Span,
    /// The buffer, as a share of the path's capacity.
    buffer: f64,
    /// The initial window of each, in segments.
    windows: [u64; 2],
    /// The share of the run before the second flow begins.
    late: f64,
    seed: u64,
}

fn scenes() -> impl Strategy<Value = Scene> {
    (
        0.0..1.0_f64,
        10_u64..80,
        0.4..1.5_f64,
        [1_u64..60, 1_u64..60],
        prop_oneof![1 => Just(0.0), 3 => 0.0..0.25_f64],
        any::<u64>(),
    )
        .prop_map(|(rate, millis, buffer, windows, late, seed)| Scene {
            kbps: (1_000.0 * libm::pow(50.0, rate)) as u64,
            round_trip: Span::from_millis(millis),
            buffer,
            windows,
            late,
            seed,
        })
}

impl Scene {
    /// The capacity of the path in packets.
    fn held(&self) -> f64 {
        self.kbps as f64 * self.round_trip.as_secs_f64() / 12.0
    }

    fn queue(&self) -> u32 {
        ((self.held() * self.buffer) as u32).max(10)
    }

    /// How long a window takes to grow by half of a flow's share of path and queue, at a packet per
    /// round trip.
    fn climb(&self) -> Span {
        let packets = self.held() + f64::from(self.queue());
        let round_trip = packets * 12.0 / self.kbps as f64;
        Span::from_secs_f64(packets / 4.0 * round_trip)
    }

    /// Runs the two flows for this time, measured over the last half.
    fn simulate(&self, transport: &TransportSpec, lasting: Span) -> RunReport {
        let mut builder = Builder::new(1, 0);
        builder.network.duration = lasting;
        builder.network.warmup = lasting / 2;
        let (left, right) = (builder.node("left"), builder.node("right"));
        let rate = Rate::from_kbps(self.kbps);
        let bottleneck = LinkConfig {
            queue: Queue::DropTail(Limit::Packets(self.queue())),
            ..LinkConfig::new(rate, self.round_trip / 4)
        };
        builder.link(left, right, bottleneck);
        builder.link(right, left, LinkConfig::new(rate, self.round_trip / 2));
        // Drop-tail and two equal clocks would lock: packets leave their hosts up to a transmission
        // time early or late.
        let access = LinkConfig {
            jitter: Jitter::Uniform {
                max: rate.transmission_time(DataSize::new(1_500)),
                reorder: false,
            },
            ..LinkConfig::new(Rate::from_mbps(1_000), self.round_trip / 4)
        };
        for (number, window) in self.windows.into_iter().enumerate() {
            let source = builder.node(&format!("source{number}"));
            builder.link(source, left, access.clone());
            builder.link(
                left,
                source,
                LinkConfig::new(Rate::from_mbps(1_000), Span::ZERO),
            );
            let mut transport = transport.clone();
            match &mut transport {
                TransportSpec::Tcp(tcp) => tcp.initial_window = DataSize::new(window * MSS),
                TransportSpec::Sections(spec) => {
                    spec.initial_window = DataSize::new(window * u64::from(spec.config.payload));
                }
                other => unreachable!("{other:?}"),
            }
            let flow = builder.flow("flow", (source, right), transport, Workload::Greedy);
            flow.start.spread = Span::ZERO;
            flow.start.at = Time::ZERO + lasting.mul_f64(self.late * number as f64);
        }
        let seed = Seed::new(self.seed);
        run(&builder.network, seed, &RunOptions::default()).expect("the network is sound")
    }
}

fn tcp(controller: &str, recovery: RecoveryConfig) -> TransportSpec {
    TransportSpec::Tcp(TcpSpec {
        config: Config {
            mss: MSS as u32,
            receive_buffer: DataSize::new(4_000_000),
            recovery,
            ..Config::MODERN
        },
        controller: controller.into(),
        parameters: Parameters::new(),
        initial_window: DataSize::ZERO,
        initial_ssthresh: None,
        headers: Headers::Real,
        timeline: None,
        stack: comity_sim::network::Stack::Kernel,
    })
}

fn time_lined(recovery: RecoveryConfig, blind_spot: bool) -> TransportSpec {
    let mut transport = tcp("reno", recovery);
    if let TransportSpec::Tcp(tcp) = &mut transport {
        tcp.config.timeline = Some(TimelineConfig {
            blind_spot,
            ..TimelineConfig::PAPER
        });
        tcp.timeline = Some(TimelineSpec {
            section: DataSize::new(100 * MSS),
            deadline: Span::from_secs(1),
            feedback: None,
        });
    }
    transport
}

fn spacing(is_damped: bool, scale: &'static str) -> TransportSpec {
    let mut transport = common::sections("psp");
    if let TransportSpec::Sections(spec) = &mut transport {
        let scale = Value::Text(scale.into());
        spec.parameters = Parameters::new()
            .with("damped", Value::Flag(is_damped))
            .with("scale", scale);
    }
    transport
}

/// Steps of the rate, with rounds of the present round trip, which is equal for both flows.
fn spacing_by_the_rate(scene: &Scene, is_damped: bool) -> TransportSpec {
    let mut transport = spacing(is_damped, "rate");
    if let TransportSpec::Sections(spec) = &mut transport {
        let parameters = std::mem::take(&mut spec.parameters);
        spec.parameters = parameters
            .with("dynamic_rtt", Value::Flag(true))
            .with("jitter", Value::Number(1.0))
            .with("link", Value::Rate(Rate::from_kbps(scene.kbps)));
    }
    transport
}

/// The ratio of the first flow's rate to the second's, and the utilisation of the bottleneck by
/// both.
fn shares(scene: &Scene, transport: &TransportSpec, climbs: f64) -> (f64, f64) {
    let lasting = scene.climb().mul_f64(climbs).max(Span::from_secs(40));
    let report = scene.simulate(transport, lasting);
    let [first, second] = [0, 1].map(|flow: usize| report.flows[flow].throughput_bps);
    (first / second, (first + second) / (scene.kbps as f64 * 1e3))
}

/// Controllers that bring two flows to equal shares from any start: neither has two and a half
/// times the rate of the other. One start in about a hundred leaves two Reno flows a factor of 2.1
/// apart for the whole run.
fn assert_shared(
    scene: &Scene,
    name: &str,
    transport: &TransportSpec,
    climbs: f64,
) -> Result<(), TestCaseError> {
    let (ratio, used) = shares(scene, transport, climbs);
    prop_assert!((0.4..2.5).contains(&ratio), "{name}: {ratio}");
    prop_assert!((0.75..1.01).contains(&used), "{name}: {used}");
    Ok(())
}

fn window_controllers() -> impl Strategy<Value = (&'static str, TransportSpec)> {
    prop::sample::select(vec![
        ("reno", tcp("reno", RecoveryConfig::SACK)),
        ("tahoe", tcp("reno", RecoveryConfig::TAHOE)),
        ("cubic", tcp("cubic", RecoveryConfig::SACK)),
        ("tltcp", time_lined(RecoveryConfig::NEW_RENO, false)),
    ])
}

fn rate_controllers() -> impl Strategy<Value = (&'static str, TransportSpec)> {
    let names = ["rap", "iftp", "tfrc", "steady"];
    prop::sample::select(names.map(|name| (name, common::sections(name))).to_vec())
}

/// Controllers that do not bring two flows together, for documented reasons.
fn stubborn_controllers() -> impl Strategy<Value = (&'static str, TransportSpec)> {
    let names = ["libra", "vegas", "real"];
    prop::sample::select(
        names
            .map(|name| (name, tcp(name, RecoveryConfig::SACK)))
            .to_vec(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        // Long runs, so only a few: fixed ones, because otherwise one start in a hundred would
        // decide.
        rng_seed: RngSeed::Fixed(1),
        max_shrink_iters: 20,
        ..ProptestConfig::default()
    })]

    #[test]
    fn windows_become_equal_from_any_start(scene in scenes(), (name, transport) in window_controllers()) {
        assert_shared(&scene, name, &transport, 20.0)?;
    }

    /// They keep the link busy, and no flow starves.
    #[test]
    fn controllers_that_do_not_share_leave_something_to_each(scene in scenes(), (name, transport) in stubborn_controllers()) {
        let (ratio, used) = shares(&scene, &transport, 20.0);
        prop_assert!((0.02..50.0).contains(&ratio), "{name}: {ratio}");
        prop_assert!((0.1..1.01).contains(&used), "{name}: {used}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 8,
        failure_persistence: None,
        // Long runs, so only a few: fixed ones, because otherwise one start in a hundred would
        // decide.
        rng_seed: RngSeed::Fixed(1),
        max_shrink_iters: 8,
        ..ProptestConfig::default()
    })]

    #[test]
    fn rates_become_equal_from_any_start(scene in scenes(), (name, transport) in rate_controllers()) {
        assert_shared(&scene, name, &transport, 10.0)?;
    }

    /// Section 2.1: "this ensures that at least one packet is sent every RTT", which two agents
    /// with fixed steps guarantee. A round trip measured behind a full queue is longer, and half of
    /// the packets may be lost.
    #[test]
    fn a_spaced_flow_keeps_a_packet_in_a_round_trip(scene in scenes(), is_damped in any::<bool>()) {
        let report = scene.simulate(&spacing(is_damped, "fixed"), Span::from_secs(40));
        let packets = scene.held() + f64::from(scene.queue());
        let longest = packets * 12e3 / (scene.kbps as f64 * 1e3) + 12e3 / 1e8;
        for flow in &report.flows {
            let least = 12e3 / longest;
            prop_assert!(flow.throughput_bps > 0.4 * least, "{} of {least}", flow.throughput_bps);
        }
    }

    /// A loss keeps the ratio of two rates, and √n moves it towards that of their rounds, which is
    /// one.
    #[test]
    fn steps_of_the_rate_become_equal_from_any_start(scene in scenes(), is_damped in any::<bool>()) {
        let transport = spacing_by_the_rate(&scene, is_damped);
        assert_shared(&scene, if is_damped { "damped" } else { "ad hoc" }, &transport, 10.0)?;
    }

    /// Rounds of the minimum round trip are equal for both flows too, even if the late one measured
    /// its first behind a queue.
    #[test]
    fn steps_of_the_rate_with_the_least_round_trip_become_equal_from_any_start(scene in scenes(), is_damped in any::<bool>()) {
        let transport = spacing(is_damped, "rate");
        assert_shared(&scene, if is_damped { "damped" } else { "ad hoc" }, &transport, 10.0)?;
    }
}

/// The reverse for the other controllers: of a few fixed starts, they leave at least one pair this
/// far apart.
#[test]
fn controllers_that_do_not_share_leave_some_starts_far_apart() {
    let sack = RecoveryConfig::SACK;
    for (name, transport, starts, apart) in [
        ("libra", tcp("libra", sack), 12, 1.9..5.0),
        ("vegas", tcp("vegas", sack), 12, 2.2..30.0),
        ("real", tcp("real", sack), 12, 2.0..10.0),
        ("damped", spacing(true, "fixed"), 5, 10.0..400.0),
        ("ad hoc", spacing(false, "fixed"), 5, 10.0..400.0),
    ] {
        let mut runner = TestRunner::deterministic();
        let furthest = (0..starts)
            .map(|_| {
                let scene = scenes().new_tree(&mut runner).expect("nothing is refused");
                let (ratio, _) = shares(&scene.current(), &transport, 10.0);
                ratio.max(1.0 / ratio)
            })
            .fold(1.0, f64::max);
        assert!(apart.contains(&furthest), "{name}: {furthest}");
    }
}

/// A late flow that measures its first round trip behind the queue of the other. Rounds fixed at
/// that length gave it a ninth of the other's rate with damping, and a seventh without. Here
/// neither flow has twice the rate of the other.
#[test]
fn a_late_flow_that_meets_a_queue_gets_its_share_with_steps_of_the_rate() {
    let mut runner = TestRunner::deterministic();
    let mut draw = || scenes().new_tree(&mut runner).expect("nothing is refused");
    draw();
    let scene = draw().current();
    assert!(0.0 < scene.late && scene.late < 0.05, "{scene:?}");
    for is_damped in [true, false] {
        let (ratio, used) = shares(&scene, &spacing(is_damped, "rate"), 10.0);
        assert!((0.5..2.0).contains(&ratio), "damped {is_damped}: {ratio}");
        assert!((0.85..1.01).contains(&used), "damped {is_damped}: {used}");
    }
}

/// 24 fixed scenes: the median of the ratios is within a tenth of one, and no flow has more than
/// one and a half times the rate of the other.
///
/// One ratio varies because it depends on a few tens of losses, which hit either flow by chance.
/// The median of 24 varies by a fifth of that. A bias of a tenth towards the first or the second
/// flow is therefore visible.
fn assert_even(name: &str, transport: &TransportSpec, climbs: f64) {
    let mut runner = TestRunner::deterministic();
    let mut ratios = Vec::new();
    for _ in 0..24 {
        let scene = scenes().new_tree(&mut runner).expect("nothing is refused");
        let scene = scene.current();
        let (ratio, used) = shares(&scene, transport, climbs);
        assert!(
            (0.65..1.55).contains(&ratio),
            "{name}: {ratio} in {scene:?}"
        );
        assert!((0.75..1.01).contains(&used), "{name}: {used} in {scene:?}");
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    let median = f64::midpoint(ratios[11], ratios[12]);
    assert!((0.9..1.1).contains(&median), "{name}: {median}");
}

/// Measured: a median of 0.96, between 0.78 and 1.26.
#[test]
fn two_iftp_flows_are_even() {
    assert_even("iftp", &common::sections("iftp"), 10.0);
}

/// Over Reno and with the blind spot. Measured: a median of 0.99, between 0.75 and 1.29.
#[test]
fn two_time_lined_flows_of_the_paper_are_even() {
    assert_even("tltcp", &time_lined(RecoveryConfig::RENO, true), 20.0);
}
