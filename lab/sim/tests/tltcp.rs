//! Time-lined TCP in the simulator: figure 5 of the paper, and frames with the deadlines of its
//! section 4.

use crate::common;

use std::path::Path;
use std::sync::Arc;

use comity_congestion::recovery::RecoveryConfig;
use comity_frames::FrameType;
use comity_sim::frames::Frame;
use comity_sim::network::{Network, TimelineSpec, TransportSpec, Workload};
use comity_sim::report::{RunReport, TimelineReport};
use comity_sim::scenario::{Reading, Scenario};
use comity_sim::{Body, FlowEvent, FlowEventKind, Observer, RunOptions, run, run_observed};
use comity_tcp::Config;
use comity_tcp::timeline::TimelineConfig;
use comity_units::{DataSize, Rate, Seed, Span, Time};

const MSS: u64 = 1_460;
/// The packets of a section, as in the paper.
const PACKETS: u64 = 467;

/// Table 1 with two flows; the first is time-lined.
fn beside_tcp(seconds: u64, timeline: TimelineSpec) -> Network {
    let plain = common::ns2_tcp(Config::NS2_2000, RecoveryConfig::RENO, 1_500, 10);
    let mut network = common::table1(2, &plain, seconds, Span::from_millis(20));
    let TransportSpec::Tcp(tcp) = &mut network.flows[0].transport else {
        unreachable!("the flows are TCP")
    };
    tcp.config.timeline = Some(TimelineConfig::PAPER);
    tcp.timeline = Some(timeline);
    network.warmup = Span::ZERO;
    network
}

fn greedy(deadline: Span) -> TimelineSpec {
    TimelineSpec {
        section: DataSize::new(PACKETS * MSS),
        deadline,
        feedback: None,
    }
}

/// The numbers of the first flow's packets, with the time in nanoseconds.
#[derive(Default)]
struct Sent(Vec<(u64, u64)>);

impl Observer for Sent {
    fn on_flow(&mut self, flow: u32, event: &FlowEvent<'_>) {
        if let FlowEventKind::Sent(packet) = event.kind
            && let Body::Tcp(segment) = packet.body
            && flow == 0
            && segment.payload > 0
        {
            let offset = u64::from(segment.sequence.get()) - 1;
            assert_eq!(offset % MSS, 0, "sections are whole packets");
            self.0.push((event.now.as_nanos(), offset / MSS));
        }
    }
}

fn timeline(report: &RunReport) -> TimelineReport {
    report.flows[0]
        .timeline
        .expect("the first flow is time-lined")
}

/// The scenario of the figure with each of its seeds.
#[test]
fn figure_5_each_deadline_leads_to_the_next_multiple_of_467() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/tltcp/fig05_jumps.toml");
    let scenario =
        Scenario::load(&file, &Reading::default()).unwrap_or_else(|problems| panic!("{problems}"));
    let runs = scenario.runs();
    assert_eq!(runs.len(), 5);
    for point in runs {
        let network = scenario.prepare(&point).0;
        let mut sent = Sent::default();
        let report = run_observed(&network, point.seed, &RunOptions::default(), &mut sent).unwrap();
        each_deadline_leads_to_the_next_multiple(&report, &sent);
    }
}

fn each_deadline_leads_to_the_next_multiple(report: &RunReport, sent: &Sent) {
    let start = report.flows[0].started.as_nanos();
    let mut jumps = Vec::new();
    for pair in sent.0.windows(2) {
        let [(_, before), (at, number)] = [pair[0], pair[1]];
        if number != before + 1 {
            assert_eq!(number % PACKETS, 0, "a jump to {number} at {at}");
            jumps.push((number / PACKETS, at));
        }
    }
    let sections: Vec<u64> = jumps.iter().map(|jump| jump.0).collect();
    assert_eq!(sections, (1..=sections.len() as u64).collect::<Vec<_>>());
    assert!((13..=14).contains(&sections.len()), "{sections:?}");
    for (section, at) in jumps {
        let late = at - start - section * 1_000_000_000;
        // The next packet leaves with the next acknowledgement, at the latest when the two windows,
        // of ten packets and 80 ms each, have passed.
        assert!(
            late < 170_000_000,
            "section {section} begins {late} ns late"
        );
    }
    // About 900 packets in 14 s each, and nearly the same for both.
    let packets = |flow: usize| report.flows[flow].delivered_bytes / MSS;
    for flow in [0, 1] {
        assert!((810..=990).contains(&packets(flow)), "{}", packets(flow));
    }
    assert!(packets(0).abs_diff(packets(1)) * 20 <= packets(1));
    let timeline = timeline(report);
    assert_eq!(timeline.jumps, sections.len() as u64);
    assert!(timeline.gaps >= 13 && timeline.gap_bytes >= timeline.discarded_bytes * 12 / 13);
}

#[test]
fn without_deadlines_a_time_lined_flow_sends_as_tcp() {
    let sent_by = |network: &Network| {
        let mut sent = Sent::default();
        let report =
            run_observed(network, Seed::new(3), &RunOptions::default(), &mut sent).unwrap();
        assert!(report.flows[0].delivered_bytes > 500 * MSS);
        sent.0
    };
    let mine = beside_tcp(10, greedy(Span::from_secs(1_000)));
    let mut plain = mine.clone();
    plain.flows[0] = comity_sim::network::FlowSpec {
        name: mine.flows[0].name.clone(),
        source: mine.flows[0].source,
        destination: mine.flows[0].destination,
        ..mine.flows[1].clone()
    };
    assert_eq!(sent_by(&mine), sent_by(&plain));
}

#[test]
fn sections_that_expire_before_the_handshake_ends_are_dropped() {
    let life = Span::from_millis(10);
    let mut network = beside_tcp(
        5,
        TimelineSpec {
            section: DataSize::new(20 * MSS),
            ..greedy(life)
        },
    );
    for flow in &mut network.flows {
        let TransportSpec::Tcp(tcp) = &mut flow.transport else {
            unreachable!("the flows are TCP")
        };
        tcp.config.handshake = true;
    }
    let report = run(&network, Seed::new(1), &RunOptions::default()).unwrap();
    let timeline = timeline(&report);
    let [mine, tcp] = [0, 1].map(|flow| report.flows[flow].delivered_bytes);
    // The handshake takes at least 48 ms: sections 0 to 3 have expired by then.
    assert!(timeline.left_out >= 3, "{timeline:?}");
    assert!(mine * 4 > tcp * 3, "{mine} {tcp}");
    assert!(timeline.given + timeline.left_out <= 502, "{timeline:?}");
}

#[test]
fn the_reader_learns_of_every_section_even_without_later_arrivals() {
    for kbps in [60, 100, 200] {
        let report = video(kbps, None);
        let settled = report.in_time + report.late + report.broken;
        assert!(report.broken > 100, "{report:?}");
        assert_eq!(settled, report.given, "{report:?}");
    }
}

#[test]
fn two_time_lined_flows_converge_to_equal_shares() {
    let cases = [
        (500, true, [0, 20]),
        (500, false, [0, 20]),
        (2_500, true, [0, 20]),
        (2_500, false, [0, 20]),
        (2_500, true, [60, 0]),
        (2_500, true, [0, 0]),
    ];
    for (deadline, blind_spot, starts) in cases {
        let queue = 20;
        let case = format!("{deadline} ms, blind spot {blind_spot}, {starts:?}");
        let life = Span::from_millis(deadline);
        let mut network = beside_tcp(400, greedy(life));
        let window = 40;
        let plain = common::ns2_tcp(Config::NS2_2000, RecoveryConfig::RENO, 1_500, window);
        for (flow, start) in network.flows.iter_mut().zip(starts) {
            flow.transport = plain.clone();
            let TransportSpec::Tcp(tcp) = &mut flow.transport else {
                unreachable!("the flows are TCP")
            };
            tcp.config.timeline = Some(TimelineConfig {
                blind_spot,
                ..TimelineConfig::PAPER
            });
            tcp.timeline = Some(greedy(life));
            flow.start.at = Time::from_secs(start);
        }
        network.links[0].config.queue =
            comity_link::Queue::DropTail(comity_link::Limit::Packets(queue));
        network.warmup = Span::from_secs(100);
        let report = run(&network, Seed::new(1), &RunOptions::default()).unwrap();
        let [first, second] = [0, 1].map(|flow| report.flows[flow].delivered_bytes as f64);
        let losses = report.flows[0].dropped_packets + report.flows[1].dropped_packets;
        assert!(losses > 20, "{case}: {losses}");
        let ratio = first / second;
        assert!((0.7..1.4).contains(&ratio), "{case}: {ratio}");
        // The two fill the link.
        let rate = (first + second) * 8.0 / 300.0;
        assert!(rate > 1.1e6, "{case}: {rate}");
    }
}

/// 20 s of groups of nine, I B B P B B P B B in stream order, at 25 frames a second.
fn frames() -> Arc<[Frame]> {
    let kinds = [
        (FrameType::Key, 9_000),
        (FrameType::Bidirectional { referenced: false }, 2_000),
        (FrameType::Bidirectional { referenced: false }, 2_000),
        (FrameType::Predicted { referenced: true }, 5_000),
        (FrameType::Bidirectional { referenced: false }, 2_000),
        (FrameType::Bidirectional { referenced: false }, 2_000),
        (FrameType::Predicted { referenced: true }, 5_000),
        (FrameType::Bidirectional { referenced: false }, 2_000),
        (FrameType::Bidirectional { referenced: false }, 2_000),
    ];
    (0..500)
        .map(|number| {
            let (kind, bytes) = kinds[number % kinds.len()];
            Frame {
                at: Span::from_millis(40 * number as u64),
                bytes,
                frame_type: kind,
            }
        })
        .collect()
}

fn video(kbps: u64, feedback: Option<Span>) -> TimelineReport {
    timeline(&run_video(kbps, feedback, true))
}

fn run_video(kbps: u64, feedback: Option<Span>, drops_expired: bool) -> RunReport {
    let mut network = beside_tcp(
        25,
        TimelineSpec {
            section: DataSize::new(1),
            deadline: Span::from_secs(2),
            feedback,
        },
    );
    network.flows.truncate(1);
    network.flows[0].workload = Workload::Frames(frames());
    for link in &mut network.links[..1] {
        link.config.rate = comity_link::RateProfile::Constant(Rate::from_kbps(kbps));
    }
    if !drops_expired && let TransportSpec::Tcp(tcp) = &mut network.flows[0].transport {
        tcp.config.timeline = None;
    }
    run(&network, Seed::new(1), &RunOptions::default()).unwrap()
}

#[test]
fn plain_tcp_sends_every_frame_and_is_judged_by_the_same_deadlines() {
    let plain = run_video(550, None, false);
    assert!(!plain.flows[0].kind.contains("timeline"));
    let (sent, dropping) = (timeline(&plain), video(550, None));
    assert_eq!((sent.broken, sent.jumps, sent.discarded_bytes), (0, 0, 0));
    // The last frames are still in the queue when the run ends.
    assert!(
        (450..=500).contains(&(sent.in_time + sent.late)),
        "{sent:?}"
    );
    assert!(sent.in_time < dropping.in_time, "{sent:?} {dropping:?}");
    // Each frame is later than the one before, until none is in time any more.
    assert!(sent.late > 100, "{sent:?}");
    let enough = timeline(&run_video(1_500, None, false));
    assert_eq!((enough.in_time, enough.given), (500, 500));
}

#[test]
fn with_enough_bandwidth_every_frame_is_in_time_and_with_less_the_last_of_a_group_go_first() {
    let enough = video(1_500, None);
    assert_eq!((enough.in_time, enough.given), (500, 500));
    assert_eq!((enough.jumps, enough.gaps), (0, 0));
    // 31,000 bytes in each 0.36 s are 690 kb/s.
    let little = video(550, None);
    assert_eq!(little.given, 500);
    assert!(little.jumps > 5 && little.broken > 50, "{little:?}");
    assert_eq!(
        little.in_time + little.late + little.broken,
        500,
        "{little:?}"
    );
    let share = |in_time: u64, of: u64| in_time as f64 / of as f64;
    let intra = share(little.intra_in_time, 56);
    let rest = share(little.in_time - little.intra_in_time, 444);
    assert!(intra > 1.5 * rest, "{little:?}");
}

#[test]
fn feedback_leaves_out_b_frames_then_p_frames_and_never_i_frames() {
    let without = video(400, None);
    let with = video(400, Some(Span::from_secs(1)));
    assert!(with.left_out > 100, "{with:?}");
    assert!(with.given >= 56, "every intra frame is submitted: {with:?}");
    assert!(
        with.intra_in_time >= without.intra_in_time,
        "{with:?} {without:?}"
    );
    assert!(
        with.broken + with.late < (without.broken + without.late) / 2,
        "{with:?} {without:?}"
    );
    // I and P frames use 422 kb/s of the 690. If these fit, only the 333 B frames
    // are dropped, each about half of the time.
    let some = video(550, Some(Span::from_secs(1)));
    assert!((50..=333).contains(&some.left_out), "{some:?}");
    // Enough for all: nothing is dropped.
    assert_eq!(video(1_500, Some(Span::from_secs(1))).left_out, 0);
}
