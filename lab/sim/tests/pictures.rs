//! The picture comes back: what a drop policy makes of a short fault, of a start and of random
//! paths, beside the policy that drops at the deadline alone.

use std::ops::RangeInclusive;

use crate::common;

use comity_congestion::table::Parameters;
use comity_frames::FrameType;
use comity_link::{Limit, LinkConfig, Loss, LossModel, LossPlace, Queue, RateProfile};
use comity_sim::frames::{AdaptiveVideo, Frame, Video};
use comity_sim::network::{Network, SectionsSpec, Start, TransportSpec, Workload};
use comity_sim::report::SectionsReport;
use comity_sim::{RunOptions, run};
use comity_transport::datagram::Config;
use comity_transport::timeline::DropPolicy;
use comity_units::{DataSize, Rate, Seed, Span, Time};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use common::Builder;

/// A video on a path of its own.
#[derive(Clone, Debug)]
struct Case {
    /// The rate of the video and of the path in kb/s.
    video: u64,
    path: u64,
    fps: u32,
    /// Frames from one intra frame to the next.
    group: u32,
    b_frames: u32,
    /// How many times as large as a B frame an intra frame is.
    intra: f64,
    delay_ms: u64,
    latency_ms: u64,
    lost: f64,
    /// An outage both ways from 5 s on.
    outage_ms: u64,
    seed: u64,
}

/// 25 frames a second at 2 Mb/s through 1 Gb/s, 20 ms each way.
const CLEAN: Case = Case {
    video: 2_000,
    path: 1_000_000,
    fps: 25,
    group: 25,
    b_frames: 0,
    intra: 5.0,
    delay_ms: 20,
    latency_ms: 200,
    lost: 0.0,
    outage_ms: 0,
    seed: 1,
};

/// No intra frame after the first, and all frames of about the same size: gradual refresh.
const REFRESH: Case = Case {
    group: u32::MAX,
    intra: 1.0,
    ..CLEAN
};

impl Case {
    fn network(&self, drop: DropPolicy, shed: bool) -> Network {
        let mut builder = Builder::new(15, 0);
        let (a, b) = (builder.node("a"), builder.node("b"));
        let loss = |model| Loss {
            model,
            place: LossPlace::AfterTransmission,
        };
        let outage = loss(LossModel::Outage {
            at: Time::from_secs(5),
            lasts: Span::from_millis(self.outage_ms),
        });
        let mut outages = vec![outage];
        outages.retain(|_| self.outage_ms > 0);
        let packets = self.path * self.delay_ms / 4 / 1_480 + 40;
        let back = LinkConfig {
            queue: Queue::DropTail(Limit::Packets(
                u32::try_from(packets).expect("a short queue"),
            )),
            losses: outages.clone(),
            ..LinkConfig::new(Rate::from_kbps(self.path), Span::from_millis(self.delay_ms))
        };
        outages.push(loss(LossModel::Bernoulli(self.lost)));
        let there = LinkConfig {
            losses: outages,
            ..back.clone()
        };
        builder.link(a, b, there);
        builder.link(b, a, back);
        let config = Config {
            drop,
            ..Config::default()
        };
        let spec = SectionsSpec {
            initial_window: DataSize::new(u64::from(config.payload) * 10),
            config,
            controller: "steady".to_owned(),
            parameters: Parameters::new(),
            latency: Some(Span::from_millis(self.latency_ms)),
            section: DataSize::new(1_000),
            acknowledgement: None,
            shed,
        };
        let video = Workload::Video(Video {
            fps: f64::from(self.fps),
            rate: Rate::from_kbps(self.video),
            group: self.group,
            b_frames: self.b_frames,
            ratio: [self.intra, 1.0, 1.0],
            variation: 0.1,
        });
        let flow = builder.flow("video", (a, b), TransportSpec::Sections(spec), video);
        flow.start = Start::default();
        builder.network
    }

    fn run(&self, drop: DropPolicy, shed: bool) -> SectionsReport {
        let network = self.network(drop, shed);
        let report = run(&network, Seed::new(self.seed), &RunOptions::default());
        let flow = report.expect("the network is sound").flows.remove(0);
        flow.sections.expect("a flow of sections")
    }

    /// The frames that are missing, of 15 s.
    fn missing(&self) -> u64 {
        let report = self.run(DropPolicy::Infeasible, true);
        let all = report.submitted + report.shed + report.refused;
        assert_eq!(all, u64::from(self.fps) * 15 + 1);
        all - report.on_time - report.open
    }

    /// So many are missing, with each of five seeds.
    fn assert_missing(&self, frames: RangeInclusive<u64>) {
        for seed in 1..=5 {
            let case = Self {
                seed,
                ..self.clone()
            };
            let missing = case.missing();
            assert!(frames.contains(&missing), "{missing}: {case:?}");
        }
    }

    /// The frames that a viewer sees: those that can be decoded, or those on time of a stream that
    /// repairs itself or is shown damaged.
    fn shown(&self, drop: DropPolicy, shed: bool) -> u64 {
        let report = self.run(drop, shed);
        if self.group > 2 * self.fps {
            report.on_time
        } else {
            report.decodable
        }
    }
}

#[test]
fn a_clean_path_loses_nothing_from_a_cold_start() {
    // 20 Mb/s without an intra frame but the first, which takes 120 ms of the video's rate.
    let refresh = Case {
        video: 20_000,
        intra: 3.0,
        delay_ms: 30,
        ..REFRESH
    };
    // 50 Mb/s with an intra frame each second, and latencies of 6 round trips.
    let groups = Case {
        video: 50_000,
        latency_ms: 250,
        ..CLEAN
    };
    for case in [CLEAN, REFRESH, refresh, groups] {
        case.assert_missing(0..=0);
    }
}

/// What is submitted in the outage, except in its last `latency`, cannot arrive; a round trip more
/// is needed to find that out.
#[test]
fn an_outage_costs_little_more_than_itself() {
    for (case, outage_ms, frames) in [
        (REFRESH, 250, 1..=4),
        (REFRESH, 2_000, 45..=50),
        // Groups of 10 s.
        (
            Case {
                group: 250,
                ..CLEAN
            },
            250,
            1..=4,
        ),
        // The frame at 5 s is an intra frame, so its second is lost.
        (CLEAN, 600, 24..=25),
        // The latency is longer than the outage.
        (
            Case {
                latency_ms: 1_000,
                ..CLEAN
            },
            600,
            0..=0,
        ),
    ] {
        Case { outage_ms, ..case }.assert_missing(frames);
    }
}

/// A path of 4 Mb/s carries 1 Mb/s from 15 s on. Its queue then takes 0.7 s. An encoder that
/// follows the target bitrate loses little more than the second of the fall: a queue that is longer
/// than the latency has to drain, and a group of pictures is lost.
#[test]
fn an_encoder_follows_a_path_that_falls_to_a_quarter() {
    for seed in 1..=5 {
        let case = Case {
            path: 4_000,
            latency_ms: 400,
            seed,
            ..CLEAN
        };
        let mut network = case.network(DropPolicy::Infeasible, true);
        network.duration = Span::from_secs(40);
        let fall = vec![
            (Time::ZERO, Rate::from_mbps(4)),
            (Time::from_secs(15), Rate::from_mbps(1)),
        ];
        network.links[0].config.rate = RateProfile::Steps(fall);
        network.links[0].config.queue = Queue::DropTail(Limit::Packets(60));
        network.flows[0].workload = Workload::Encoder(AdaptiveVideo {
            min_rate: Rate::from_kbps(150),
            max_rate: Rate::from_mbps(8),
            initial_rate: Rate::from_mbps(8),
            reaction: Span::from_millis(200),
            fps: 30.0,
            group: 30,
            key_size: 3.24,
            burst: 8,
            abrupt: 0.5,
            size_scale: 0.15,
            interval_scale: 0.15,
            pauses: Vec::new(),
        });
        let report = run(&network, Seed::new(seed), &RunOptions::default());
        let flow = report.expect("the network is sound").flows.remove(0);
        let report = flow.sections.expect("a flow of sections");
        let all = report.submitted + report.shed + report.refused;
        let share = report.decodable as f64 / all as f64;
        assert!(share > 0.85, "{share}: {report:?}");
        // 60 and 25 Mb in all.
        let bytes = report.bytes.decodable;
        assert!((6_500_000..10_000_000).contains(&bytes), "{bytes}");
    }
}

/// Encoders of H.265 write P frames as B frames that refer to the past alone. A path that is a
/// little too narrow costs the same frames.
#[test]
fn p_frames_in_b_slices_are_shed_like_p_frames() {
    let shown = |others: FrameType| {
        let case = Case {
            path: 1_900,
            latency_ms: 400,
            ..CLEAN
        };
        let mut network = case.network(DropPolicy::Infeasible, true);
        // Groups of 250 kB: 2 Mb/s, with an I frame as large as five others.
        let frame = |number: u64| Frame {
            at: Span::from_millis(40 * number),
            bytes: if number.is_multiple_of(25) {
                43_100
            } else {
                8_620
            },
            frame_type: if number.is_multiple_of(25) {
                FrameType::Key
            } else {
                others
            },
        };
        network.flows[0].workload = Workload::Frames((0..375).map(frame).collect());
        let report = run(&network, Seed::new(1), &RunOptions::default());
        let flow = report.expect("the network is sound").flows.remove(0);
        let report = flow.sections.expect("a flow of sections");
        assert_eq!(report.submitted + report.shed + report.refused, 375);
        report.decodable
    };
    let as_b = shown(FrameType::Bidirectional { referenced: true });
    assert_eq!(as_b, shown(FrameType::Predicted { referenced: true }));
    assert!((250..370).contains(&as_b), "{as_b}");
}

#[test]
fn single_losses_do_not_end_a_stream_with_refresh() {
    let case = Case {
        lost: 0.02,
        delay_ms: 30,
        latency_ms: 120,
        ..REFRESH
    };
    // 7 packets a frame: one in eight has a loss, and 120 ms are hardly enough for a repair.
    case.assert_missing(1..=30);
}

fn case() -> impl Strategy<Value = Case> {
    let source = (
        500_u64..10_000,
        prop::sample::select(vec![25_u32, 30, 50, 60]),
        prop::sample::select(vec![1_u32, 2, 4, 20, 100]),
        prop::sample::select(vec![0_u32, 0, 2]),
        prop::sample::select(vec![1.0, 3.0, 5.0, 8.0]),
    );
    let path = (
        prop::sample::select(vec![0.7, 1.1, 2.0, 5.0, 50.0]),
        1_u64..60,
        prop::sample::select(vec![120_u64, 200, 300, 500, 1_000]),
        prop::sample::select(vec![0.0, 0.0, 0.002, 0.01, 0.05]),
        prop::sample::select(vec![0_u64, 0, 100, 250, 600, 2_000]),
    );
    (source, path, any::<u64>()).prop_map(|(source, path, seed)| {
        let (video, fps, halves, b_frames, intra) = source;
        let (ratio, delay_ms, latency_ms, lost, outage_ms) = path;
        Case {
            video,
            path: (video as f64 * ratio) as u64 + 200,
            fps,
            group: fps * halves / 2,
            b_frames,
            intra,
            delay_ms,
            latency_ms,
            lost,
            outage_ms,
            seed,
        }
    })
}

/// Over 200 random sources and paths, more is shown than with no policy but the deadline. With one
/// seed a single case says little: with other seeds the same policy shows more than 1 % less in 40
/// of 200 cases, although each is a sum over five seeds. Here no more than 20 show so much less,
/// few lose more than a second of 15, and none loses more than five. With twelve seeds each, four
/// cases lose more than chance explains (three standard errors). In the worst, 5 % of the packets
/// are lost and the latency leaves time for a single repair.
#[test]
fn importance_makes_streams_better() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut shown, mut without) = (0, 0);
    let (mut fewer, mut worse) = (0, 0);
    for _ in 0..200 {
        let case = case().new_tree(&mut runner).expect("a case").current();
        let policy = case.shown(DropPolicy::Infeasible, true);
        let none = case.shown(DropPolicy::Expired, false);
        (shown, without) = (shown + policy, without + none);
        let loses = |seconds: u32| policy + u64::from(seconds * case.fps) < none;
        fewer += u32::from(policy * 100 < none * 99);
        worse += u32::from(loses(1));
        assert!(!loses(5), "{policy} frames, {none} without: {case:?}");
    }
    assert!(shown > without, "{shown} frames, {without} without");
    assert!(fewer <= 20, "{fewer} of 200 cases show less");
    assert!(worse <= 4, "{worse} of 200 cases lose more than a second");
}
