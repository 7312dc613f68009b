//! Flows of sections: the report of the deadline transport in a run.

use crate::common;

use comity_congestion::table::Parameters;
use comity_link::{CodelConfig, Limit, LinkConfig, Loss, LossModel, LossPlace, Queue};
use comity_sim::frames::Video;
use comity_sim::network::{CbrSpacing, Network, SectionsSpec, Start, TransportSpec, Workload};
use comity_sim::report::{FlowReport, RunReport, SectionsReport};
use comity_sim::{RunOptions, run};
use comity_transport::datagram::Config;
use comity_transport::timeline::Reliability;
use comity_units::{DataSize, Rate, Seed, Span};

use common::Builder;

fn spec(latency: u64, config: Config) -> SectionsSpec {
    SectionsSpec {
        config,
        controller: "reno".to_owned(),
        parameters: Parameters::new(),
        initial_window: DataSize::new(u64::from(config.payload) * 10),
        latency: Some(Span::from_millis(latency)),
        section: DataSize::new(1_000),
        acknowledgement: None,
        shed: true,
    }
}

/// 20 ms, a drop-tail queue of 60 packets.
fn link(mbps: u64) -> LinkConfig {
    LinkConfig {
        queue: Queue::DropTail(Limit::Packets(60)),
        ..LinkConfig::new(Rate::from_mbps(mbps), Span::from_millis(20))
    }
}

fn video(kbps: u64) -> Workload {
    Workload::Video(Video {
        fps: 25.0,
        rate: Rate::from_kbps(kbps),
        group: 25,
        b_frames: 2,
        ratio: [5.0, 2.0, 1.0],
        variation: 0.0,
    })
}

/// One flow for 20 s; the last 15 are measured.
fn network(there: LinkConfig, spec: SectionsSpec, workload: Workload) -> Network {
    let mut builder = Builder::new(20, 5);
    let (a, b) = (builder.node("a"), builder.node("b"));
    let reverse = LinkConfig {
        losses: Vec::new(),
        ..there.clone()
    };
    builder.link(a, b, there);
    builder.link(b, a, reverse);
    let flow = builder.flow("video", (a, b), TransportSpec::Sections(spec), workload);
    flow.start = Start::default();
    builder.network
}

fn simulate(network: &Network) -> RunReport {
    run(network, Seed::new(1), &RunOptions::default()).unwrap()
}

fn only(report: &RunReport) -> (&FlowReport, &SectionsReport) {
    let flow = &report.flows[0];
    (flow, flow.sections.as_ref().unwrap())
}

#[test]
fn on_a_path_of_its_own_every_frame_is_on_time() {
    let report = simulate(&network(
        link(8),
        spec(120, Config::default()),
        video(4_000),
    ));
    let (flow, sections) = only(&report);
    // 25 frames/s for 15 s including those at either end; the last 120 ms are not due at the end.
    assert_eq!(sections.submitted, 376);
    assert_eq!(sections.on_time + sections.open, 376);
    assert!((3..=5).contains(&sections.open), "{}", sections.open);
    assert_eq!(sections.decodable, sections.on_time);
    let bytes = &sections.bytes;
    assert_eq!(bytes.decodable, bytes.submitted - bytes.open);
    // 15 s of 8 Mb/s, with 1,423 of 1,480 bytes as payload, exceed the 4 Mb/s of the source.
    assert_eq!(sections.equal_share_bytes, Some(14_422_297));
    assert_eq!(sections.carriable_bytes(), Some(bytes.decodable));
    assert_eq!(sections.intra.submitted, 16);
    assert_eq!(sections.predicted.submitted, 15 * 8);
    assert_eq!(sections.bidirectional.submitted, 15 * 16);
    assert_eq!(
        (
            sections.late_bytes,
            sections.retransmitted_bytes,
            sections.lost_packets
        ),
        (0, 0, 0)
    );
    assert!(
        (3.9e6..4.05e6).contains(&flow.goodput_bps),
        "{}",
        flow.goodput_bps
    );
    // At most 1,423 bytes of payload in packets of 1,480.
    let overhead = flow.throughput_bps / flow.goodput_bps;
    assert!((1.04..1.10).contains(&overhead), "{overhead}");
    assert_eq!(flow.kind, "reno/sections");
}

#[test]
fn an_equal_share_is_the_smallest_of_all_links() {
    let spec = spec(400, Config::default());
    let mut builder = Builder::new(20, 5);
    let (a, m, b) = (builder.node("a"), builder.node("m"), builder.node("b"));
    // The first link has 9 Mb/s for three flows, the second 8 for two, and the reverse one, which
    // acknowledgements use too, 2 for one.
    for (from, to, mbps) in [(a, m, 9), (m, b, 8), (b, m, 2), (m, a, 100)] {
        builder.link(from, to, link(mbps));
    }
    for (from, to) in [(a, b), (a, b), (a, m), (b, m)] {
        let transport = TransportSpec::Sections(spec.clone());
        builder.flow("video", (from, to), transport, video(4_000));
    }
    let report = simulate(&builder.network);
    let of = |flow: usize| report.flows[flow].sections.as_ref().unwrap();
    // Bits per second for 15 s, with 1,423 of 1,480 bytes as payload.
    let carried = |bps: u64| bps * 15 / 8 * 1_423 / 1_480;
    for (flow, bps) in [
        (0, 3_000_000),
        (1, 3_000_000),
        (2, 3_000_000),
        (3, 2_000_000),
    ] {
        assert_eq!(of(flow).equal_share_bytes, Some(carried(bps)), "{flow}");
        assert_eq!(of(flow).carriable_bytes(), Some(carried(bps)), "{flow}");
    }
}

#[test]
fn a_section_takes_its_transmission_and_propagation_time() {
    let workload = Workload::Cbr {
        spacing: CbrSpacing::Interval(Span::from_millis(20)),
        jitter: 0.0,
    };
    let report = simulate(&network(link(8), spec(100, Config::default()), workload));
    let (_, sections) = only(&report);
    assert_eq!(sections.submitted, 751);
    // 1,000 bytes, 57 around the payload and 4 of departure at 8 Mb/s take 1.061 ms, the frame's
    // header of 10 to 40 bytes up to 40 µs more, then 20 ms of propagation.
    let age = sections.age;
    assert!((0.021_07..0.021_11).contains(&age.min), "{age:?}");
    assert!((0.021_07..0.021_3).contains(&age.median), "{age:?}");
    let slack = sections.slack_median_s.unwrap();
    assert!((0.078_5..0.079_1).contains(&slack), "{slack}");
    assert!(sections.slack_p1_s.unwrap() <= slack);
}

#[test]
fn lost_bytes_are_retransmitted_in_time_unless_disabled() {
    let lossy = LinkConfig {
        losses: vec![Loss {
            model: LossModel::Bernoulli(0.05),
            place: LossPlace::AfterTransmission,
        }],
        ..link(20)
    };
    let config = |reliability| Config {
        reliability,
        ..Config::default()
    };
    let with = |reliability| {
        let spec = SectionsSpec {
            controller: "fixed".to_owned(),
            ..spec(200, config(reliability))
        };
        simulate(&network(lossy.clone(), spec, video(2_000)))
    };
    let timeline = with(Reliability::Timeline);
    let (_, sections) = only(&timeline);
    let due = sections.submitted - sections.open;
    assert!(sections.on_time as f64 > 0.995 * due as f64, "{sections:?}");
    assert!(sections.retransmitted_bytes > 100_000, "{sections:?}");
    assert_eq!(sections.late_bytes, 0);

    let none = with(Reliability::None);
    let (_, sections) = only(&none);
    let due = sections.submitted - sections.open;
    // Frames of 5, 10 and 24 packets are complete with 0.77, 0.60 and 0.29: 0.70 of them on
    // average.
    assert!((sections.on_time as f64) < 0.9 * due as f64, "{sections:?}");
    assert_eq!(sections.retransmitted_bytes, 0);
    assert!(sections.gaps.sum() > 30, "{sections:?}");
    assert!(sections.decodable < sections.on_time / 2, "{sections:?}");
}

#[test]
fn marks_reach_the_receiver_and_replace_losses() {
    let marking = LinkConfig {
        queue: Queue::CoDel(CodelConfig {
            ecn: true,
            ..CodelConfig::default()
        }),
        ..link(4)
    };
    let with = |ecn| {
        let config = Config {
            ecn,
            ..Config::default()
        };
        let spec = SectionsSpec {
            latency: None,
            ..spec(100, config)
        };
        simulate(&network(marking.clone(), spec, Workload::Greedy))
    };
    let marked = with(true);
    let (flow, sections) = only(&marked);
    // A mark is one cycle of Reno's sawtooth. Half of the 14 to 25 packets that fill the path and
    // CoDel's queue are regained at a packet per round trip of 42 to 70 ms, which takes 0.3 to 0.9
    // s of the 15.
    assert!((15..=50).contains(&sections.marked_packets), "{sections:?}");
    assert!(marked.links[0].marked >= sections.marked_packets);
    assert_eq!(sections.lost_packets, 0, "{sections:?}");
    assert!(
        (3.0e6..3.9e6).contains(&flow.goodput_bps),
        "{}",
        flow.goodput_bps
    );

    let dropped = with(false);
    let (_, sections) = only(&dropped);
    assert_eq!((sections.marked_packets, dropped.links[0].marked), (0, 0));
    assert!(sections.lost_packets > 15, "{sections:?}");
}

#[test]
fn a_frame_without_room_costs_its_dependents() {
    // An intra frame has 5 of 37 parts of a second's 500,000 bytes, 67,568, which exceeds the
    // buffer.
    let config = Config {
        send_buffer: 60_000,
        ..Config::default()
    };
    let report = simulate(&network(link(20), spec(200, config), video(4_000)));
    let (_, sections) = only(&report);
    // The others are submitted, and dropped because they depend on a skipped one.
    assert_eq!((sections.submitted, sections.refused), (360, 16));
    assert_eq!((sections.gaps.dependency, sections.on_time), (360, 0));
}

/// Infeasible sections are dropped at once. The peer learns of them as often as packets may leave
/// for that alone, however many sections are dropped.
#[test]
fn hopeless_sections_flood_nobody() {
    // A deadline of 10 ms on a path of 20 ms, and ten of them in a millisecond.
    let workload = Workload::Cbr {
        spacing: CbrSpacing::Interval(Span::from_micros(100)),
        jitter: 0.0,
    };
    let network = network(link(10), spec(10, Config::default()), workload);
    let report = simulate(&network);
    let (flow, sections) = only(&report);
    assert_eq!(sections.on_time, 0, "{sections:?}");
    // Twenty seconds with a packet in two milliseconds, plus the initial window.
    assert!(
        (9_000..10_020).contains(&flow.sent_packets),
        "{}",
        flow.sent_packets
    );
}
