//! TCP-Real in the simulator: its slow start, the shares of flows, and the datagram transport.

use crate::common;

use comity_congestion::recovery::RecoveryConfig;
use comity_congestion::table::{Parameters, Value};
use comity_link::{Limit, LinkConfig, Queue};
use comity_sim::network::{Network, SectionsSpec, Start, TransportSpec, Workload};
use comity_sim::report::FlowReport;
use comity_sim::{RunOptions, run};
use comity_tcp::Config;
use comity_transport::datagram;
use comity_units::{DataSize, Rate, Seed, Span};

use common::{Builder, link_config, ns2_tcp};

fn parameters(opening: &str) -> Parameters {
    Parameters::new().with("opening", Value::Text(opening.to_owned().into()))
}

fn real(window: u64, opening: &str) -> TransportSpec {
    let mut transport = ns2_tcp(Config::NS2_2000, RecoveryConfig::RENO, 1_500, window);
    if let TransportSpec::Tcp(tcp) = &mut transport {
        tcp.controller = "real".into();
        tcp.parameters = parameters(opening);
    }
    transport
}

/// The paper's 15 ms network for 60 s; the last 30 s are measured.
fn flows(transports: &[TransportSpec], queue: u32, seed: u64) -> Vec<FlowReport> {
    let mut builder = Builder::new(60, 30);
    let (a, b) = (builder.node("a"), builder.node("b"));
    let link = link_config(
        Rate::from_kbps(1_900),
        Span::from_millis(15),
        Limit::Packets(queue),
    );
    builder.duplex(a, b, &link);
    for transport in transports {
        builder.flow("real", (a, b), transport.clone(), Workload::Greedy);
    }
    simulate(&builder.network, seed)
}

fn simulate(network: &Network, seed: u64) -> Vec<FlowReport> {
    run(network, Seed::new(seed), &RunOptions::default())
        .unwrap()
        .flows
}

/// Half of the 12 levels that fit into a window of 24 are 12 segments, more than the 5.8 that the
/// path holds: 1.9 Mb/s minus the headers are 1,849 kb/s. By figure 1 alone the level stays at the
/// first for ever. That is two segments of 1,460 bytes in a round trip of 30 ms, 6.316 ms for each
/// of them (the second waits for the first) and 0.168 ms for the acknowledgement: 640 kb/s.
#[test]
fn slow_start_finds_the_path_and_figure_1_alone_does_not() {
    let opened = &flows(&[real(24, "slow_start")], 50, 1)[0];
    assert!(
        (opened.goodput_bps / 1.849e6 - 1.0).abs() < 0.005,
        "{}",
        opened.goodput_bps
    );
    assert_eq!(opened.cwnd_bytes, Some(12 * 1_460));
    assert_eq!((opened.dropped_packets, opened.timeouts), (0, 0));
    let stuck = &flows(&[real(24, "figure")], 50, 1)[0];
    assert_eq!(stuck.cwnd_bytes, Some(2 * 1_460));
    assert!(
        (stuck.goodput_bps / 640e3 - 1.0).abs() < 0.01,
        "{}",
        stuck.goodput_bps
    );
}

/// Rates are constant while a queue keeps the bottleneck busy, and therefore levels are too. Two
/// equal flows start within a second. If the second starts in the middle of a wave of the first,
/// the first falls to half of its level and stays there; otherwise they stay equal. In either case
/// the shares stay those of the windows.
#[test]
fn flows_keep_their_initial_shares() {
    let ratios: Vec<f64> = (1..=6)
        .map(|seed| {
            let both = flows(&[real(24, "slow_start"), real(24, "slow_start")], 50, seed);
            let window = |of: &FlowReport| of.cwnd_bytes.unwrap() as f64;
            for flow in &both {
                assert_eq!(flow.mean_cwnd_bytes, Some(window(flow)), "it moved");
            }
            let windows = window(&both[0]) / window(&both[1]);
            let ratio = both[0].goodput_bps / both[1].goodput_bps;
            assert!(
                (ratio / windows - 1.0).abs() < 0.02,
                "{ratio} with windows {windows}"
            );
            ratio
        })
        .collect();
    let furthest = ratios
        .iter()
        .map(|ratio| ratio.max(1.0 / ratio))
        .fold(1.0, f64::max);
    assert!((1.9..2.1).contains(&furthest), "{ratios:?}");
    assert!(
        ratios.iter().any(|ratio| (ratio - 1.0).abs() < 0.02),
        "{ratios:?}"
    );
}

/// Two flows with unequal starts over the paper's 15 ms network. The first has access links with
/// this extra delay in milliseconds in each direction. The second begins at this time and with this
/// many segments. The last 60 s of 120, and the last 30.
fn unlike(more: u64, late: u64, window: u64, seed: u64) -> [Vec<FlowReport>; 2] {
    [60, 90].map(|warmup| {
        let mut builder = Builder::new(120, warmup);
        let (a, b) = (builder.node("a"), builder.node("b"));
        let slow = Rate::from_kbps(1_900);
        let link = link_config(slow, Span::from_millis(15), Limit::Packets(50));
        builder.duplex(a, b, &link);
        let far = builder.node("far");
        let access = link_config(
            Rate::from_mbps(1_000),
            Span::from_millis(more),
            Limit::Unlimited,
        );
        builder.duplex(far, a, &access);
        let mut transport = real(24, "slow_start");
        builder.flow("real", (far, b), transport.clone(), Workload::Greedy);
        if let TransportSpec::Tcp(tcp) = &mut transport {
            tcp.initial_window = DataSize::new(window * 1_460);
        }
        let second = builder.flow("real", (a, b), transport, Workload::Greedy);
        second.start.at = comity_units::Time::from_secs(late);
        simulate(&builder.network, seed)
    })
}

/// A late flow, one with a full window at once, one with a longer path: the windows after a minute
/// stay as they are, and shares are the windows over the round trips. No flow starves, and few get
/// a fair share.
#[test]
fn flows_that_begin_unlike_do_not_converge_either() {
    let mut ratios = Vec::new();
    for (more, late, window) in [
        (0, 20, 1),
        (0, 20, 24),
        (0, 0, 24),
        (50, 0, 1),
        (50, 20, 24),
    ] {
        for seed in 1..=3 {
            let [minute, end] = unlike(more, late, window, seed);
            let name = format!("{more} {late} {window} {seed}");
            for flow in minute.iter().chain(&end) {
                let stays = flow.cwnd_bytes.map(|bytes| bytes as f64);
                assert_eq!(flow.mean_cwnd_bytes, stays, "{name}: it moved");
            }
            let ratio = |of: &[FlowReport]| of[0].goodput_bps / of[1].goodput_bps;
            assert!((ratio(&end) / ratio(&minute) - 1.0).abs() < 0.02, "{name}");
            let over_round_trip = |at: usize| {
                let flow: &FlowReport = &minute[at];
                flow.mean_cwnd_bytes.unwrap() / flow.mean_rtt_s.unwrap()
            };
            let expected = over_round_trip(0) / over_round_trip(1);
            let found = ratio(&minute);
            assert!(
                (found / expected - 1.0).abs() < 0.15,
                "{name}: {found} {expected}"
            );
            ratios.push(found);
        }
    }
    ratios.sort_by(f64::total_cmp);
    assert!((0.1..0.25).contains(&ratios[0]), "{ratios:?}");
    assert!((0.3..0.6).contains(&ratios[ratios.len() / 2]), "{ratios:?}");
    assert!(
        (0.95..1.05).contains(&ratios[ratios.len() - 1]),
        "{ratios:?}"
    );
}

/// The same meter on the datagram transport. The initial window of ten packets is level 5, less
/// than half of a link of 6 Mb/s with 40 ms of round trip; higher levels fill the link.
#[test]
fn levels_rule_the_datagram_transport_too() {
    let goodput = |max_level| {
        let mut builder = Builder::new(20, 5);
        let (a, b) = (builder.node("a"), builder.node("b"));
        let link = LinkConfig {
            queue: Queue::DropTail(Limit::Packets(60)),
            ..LinkConfig::new(Rate::from_mbps(6), Span::from_millis(20))
        };
        builder.duplex(a, b, &link);
        let config = datagram::Config::default();
        let spec = SectionsSpec {
            controller: "real".to_owned(),
            parameters: Parameters::new().with("max_level", Value::Number(max_level)),
            initial_window: DataSize::new(u64::from(config.payload) * 10),
            latency: None,
            section: DataSize::new(1_200),
            acknowledgement: None,
            shed: true,
            config,
        };
        let flow = builder.flow(
            "real",
            (a, b),
            TransportSpec::Sections(spec),
            Workload::Greedy,
        );
        flow.start = Start::default();
        simulate(&builder.network, 1)[0].throughput_bps
    };
    let (opened, held) = (goodput(24.0), goodput(5.0));
    // At most the whole link, and a packet that straddles the end of the measurement.
    assert!((5.4e6..6.001e6).contains(&opened), "{opened}");
    assert!((2.0e6..3.2e6).contains(&held), "{held}");
}
