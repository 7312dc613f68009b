//! What holds in every network: packets are conserved, links keep order, windows bound what is in flight, and
//! a run depends on nothing but its network and seed.

mod common;

use std::collections::BTreeMap;

use comity_congestion::recovery::RecoveryConfig;
use comity_congestion::table::Parameters;
use comity_link::{
    CodelConfig, DelayProfile, DeliveryTrace, Jitter, Limit, LinkConfig, Loss, LossModel,
    LossPlace, Queue, RateProfile, RedConfig,
};
use comity_sim::frames::{Frame, FrameKind, Video};
use comity_sim::network::{
    CbrSpacing, DatagramSpec, FlowSpec, Headers, LinkSpec, Network, NodeId, Reader, SectionsSpec,
    Start, TcpSpec, TransportSpec, Workload,
};
use comity_sim::report::{Cost, FlowReport, RunReport};
use comity_sim::{
    Body, Fate, FlowEvent, FlowEventKind, LinkEvent, Observer, RunOptions, run, run_observed,
};
use comity_transport::datagram;
use comity_transport::tcp::{Config, DelayedAck};
use comity_transport::timeline::{Deliver, DropPolicy, Reliability};
use comity_units::{Bytes, Rate, Seed, Span, Time};
use proptest::prelude::*;

// ---------------------------------------------------------------- random networks

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::Unlimited),
        (1u32..40).prop_map(Limit::Packets),
        (400u64..40_000).prop_map(|bytes| Limit::Bytes(Bytes::new(bytes))),
    ]
}

fn rate() -> impl Strategy<Value = RateProfile> {
    let constant = (200u64..20_000).prop_map(|kbps| RateProfile::Constant(Rate::from_kbps(kbps)));
    let steps = prop::collection::vec((1u64..400, 0u64..8_000), 1..5).prop_map(|parts| {
        let mut at = Time::ZERO;
        let step = |(later, kbps)| {
            at += Span::from_millis(later);
            (at, Rate::from_kbps(kbps))
        };
        let mut steps: Vec<_> = parts.into_iter().map(step).collect();
        // A link that stops for good would only be dull.
        steps.push((Time::from_secs(2), Rate::from_mbps(3)));
        steps.dedup_by_key(|step| step.0);
        RateProfile::Steps(steps)
    });
    let trace = prop::collection::vec(0u32..6, 3..20).prop_map(|gaps| {
        let mut at = 1;
        let times = gaps.into_iter().map(|gap| {
            at += gap;
            at
        });
        RateProfile::Deliveries(DeliveryTrace::new(times.collect::<Vec<_>>()).unwrap())
    });
    prop_oneof![6 => constant, 1 => Just(RateProfile::Unlimited), 2 => steps, 1 => trace]
}

fn delay() -> impl Strategy<Value = DelayProfile> {
    let span = || (0u64..40_000).prop_map(Span::from_micros);
    let steps = (span(), span(), span()).prop_map(|(a, b, c)| {
        DelayProfile::Steps(vec![
            (Time::ZERO, a),
            (Time::from_millis(500), b),
            (Time::from_millis(900), c),
        ])
    });
    prop_oneof![4 => span().prop_map(DelayProfile::Constant), 1 => steps]
}

fn queue() -> impl Strategy<Value = Queue> {
    let red = (
        2.0f64..5.0,
        6.0f64..20.0,
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(low, high, gentle, wait, ecn)| {
            Queue::Red(RedConfig {
                min_threshold: low,
                max_threshold: high,
                weight: 0.05,
                gentle,
                wait,
                ecn,
                ..RedConfig::default()
            })
        });
    let codel = (1u64..20, 2u32..60, any::<bool>()).prop_map(|(target, limit, ecn)| {
        Queue::CoDel(CodelConfig {
            target: Span::from_millis(target),
            limit: Limit::Packets(limit),
            ecn,
            ..CodelConfig::default()
        })
    });
    prop_oneof![5 => limit().prop_map(Queue::DropTail), 1 => red, 1 => codel]
}

fn loss() -> impl Strategy<Value = Loss> {
    let model = prop_oneof![
        (0.0f64..0.2).prop_map(LossModel::Bernoulli),
        (0.0f64..0.2, 0.05f64..1.0, 0.0f64..0.05, 0.0f64..1.0).prop_map(
            |(p_good_to_bad, p_bad_to_good, loss_good, loss_bad)| LossModel::GilbertElliott {
                p_good_to_bad,
                p_bad_to_good,
                loss_good,
                loss_bad,
            }
        ),
        (1u64..500, 1u64..500, 0.0f64..1.0, any::<bool>()).prop_map(
            |(on, off, drop_on, start_on)| {
                LossModel::OnOff {
                    mean_on: Span::from_millis(on),
                    mean_off: Span::from_millis(off),
                    drop_on,
                    drop_off: 0.0,
                    start_on,
                }
            }
        ),
        prop::collection::vec(0u64..60, 0..6).prop_map(LossModel::Packets),
    ];
    let place = prop_oneof![
        Just(LossPlace::AfterTransmission),
        Just(LossPlace::BeforeQueue)
    ];
    (model, place).prop_map(|(model, place)| Loss { model, place })
}

fn jitter() -> impl Strategy<Value = Jitter> {
    let span = || (0u64..8_000).prop_map(Span::from_micros);
    prop_oneof![
        5 => Just(Jitter::None),
        1 => (span(), any::<bool>()).prop_map(|(mean, reorder)| Jitter::Exponential { mean, reorder }),
        1 => (span(), any::<bool>()).prop_map(|(max, reorder)| Jitter::Uniform { max, reorder }),
        1 => (span(), span(), any::<bool>())
            .prop_map(|(mean, deviation, reorder)| Jitter::Normal { mean, deviation, reorder }),
    ]
}

fn link() -> impl Strategy<Value = LinkConfig> {
    let losses = prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(loss(), 1..3)];
    let duplication = prop_oneof![4 => Just(0.0), 1 => 0.0f64..0.3];
    (rate(), delay(), queue(), losses, jitter(), duplication).prop_map(
        |(rate, delay, queue, losses, jitter, duplication)| {
            // Without a rate no queue forms, which random early detection refuses.
            let queue = match (queue, &rate) {
                (Queue::Red(_), RateProfile::Unlimited) => Queue::DropTail(Limit::Packets(5)),
                (queue, _) => queue,
            };
            LinkConfig {
                rate,
                delay,
                queue,
                losses,
                jitter,
                duplication,
            }
        },
    )
}

fn tcp() -> impl Strategy<Value = TransportSpec> {
    let recovery = prop::sample::select(vec!["tahoe", "reno", "newreno", "sack"]);
    let controller = prop::sample::select(vec!["reno", "cubic", "vegas"]);
    let preset = prop::sample::select(vec![Config::MODERN, Config::NS2_2_35, Config::NS2_2000]);
    let real_headers = any::<bool>();
    (
        recovery,
        controller,
        preset,
        100u32..1_461,
        1u64..60,
        real_headers,
        any::<bool>(),
    )
        .prop_map(
            |(recovery, controller, preset, mss, window, real_headers, is_delayed)| {
                let mut config = preset;
                config.mss = mss;
                config.receive_buffer = Bytes::new(u64::from(mss) * window);
                config.recovery = RecoveryConfig::by_name(recovery).unwrap();
                config.sack = recovery == "sack";
                config.delayed_ack = is_delayed.then_some(DelayedAck {
                    segments: 2,
                    timeout: Span::from_millis(40),
                });
                TransportSpec::Tcp(TcpSpec {
                    config,
                    controller: controller.to_owned(),
                    parameters: Parameters::new(),
                    initial_window: Bytes::new(2 * u64::from(mss)),
                    initial_ssthresh: None,
                    headers: if real_headers {
                        Headers::Real
                    } else {
                        Headers::Fixed {
                            bytes: 40,
                            per_sack_block: 8,
                        }
                    },
                })
            },
        )
}

/// Workloads that datagrams and TCP both know.
fn emission() -> impl Strategy<Value = Workload> {
    let kbps = || (50u64..4_000).prop_map(Rate::from_kbps);
    let millis = |range| Strategy::prop_map(range, Span::from_millis);
    prop_oneof![
        (kbps(), 0.0f64..1.0).prop_map(|(rate, jitter)| Workload::Cbr {
            spacing: CbrSpacing::Rate(rate),
            jitter
        }),
        (1u64..30).prop_map(|gap| Workload::Cbr {
            spacing: CbrSpacing::Gap(Span::from_millis(gap)),
            jitter: 0.0
        }),
        (1u64..30).prop_map(|gap| Workload::Cbr {
            spacing: CbrSpacing::Interval(Span::from_millis(gap)),
            jitter: 0.0
        }),
        (kbps(), millis(1u64..400), millis(0u64..400)).prop_map(|(rate, mean_on, mean_off)| {
            Workload::OnOff {
                rate,
                mean_on,
                mean_off,
            }
        }),
        (1_000u64..20_000, 100u64..5_000, millis(1u64..100)).prop_map(
            |(depth, refill, interval)| {
                Workload::TokenBucket {
                    depth: Bytes::new(depth),
                    refill: Bytes::new(refill),
                    interval,
                }
            }
        ),
        kbps().prop_map(|rate| Workload::Poisson { rate }),
    ]
}

/// Workloads of sections.
fn sections_workload() -> impl Strategy<Value = Workload> {
    let kbps = || (50u64..4_000).prop_map(Rate::from_kbps);
    let video = (5.0f64..120.0, kbps(), 1u32..40, 0u32..5, 0.0f64..1.0).prop_map(
        |(fps, rate, group, b_frames, variation)| {
            Workload::Video(Video {
                fps,
                rate,
                group,
                b_frames,
                ratio: [5.0, 2.0, 1.0],
                variation,
            })
        },
    );
    let kind = prop::sample::select(vec![
        FrameKind::Intra,
        FrameKind::Predicted,
        FrameKind::Bidirectional,
        FrameKind::Other,
    ]);
    let frames = prop::collection::vec((0u64..60, 1u32..20_000, kind), 1..40).prop_map(|frames| {
        let mut at = Span::ZERO;
        let frame = |(later, bytes, kind)| {
            at += Span::from_millis(later);
            Frame { at, bytes, kind }
        };
        Workload::Frames(frames.into_iter().map(frame).collect())
    });
    prop_oneof![
        3 => video,
        1 => frames,
        1 => Just(Workload::Greedy),
        1 => kbps().prop_map(|rate| Workload::Poisson { rate }),
        1 => (1u64..30).prop_map(|gap| Workload::Cbr {
            spacing: CbrSpacing::Interval(Span::from_millis(gap)),
            jitter: 0.3
        }),
    ]
}

/// The deadline transport in any of its modes.
fn sections() -> impl Strategy<Value = TransportSpec> {
    let modes = (
        prop::sample::select(vec![
            Reliability::Timeline,
            Reliability::Timeline,
            Reliability::None,
            Reliability::Full,
        ]),
        prop::sample::select(vec![
            DropPolicy::Infeasible,
            DropPolicy::Expired,
            DropPolicy::Never,
        ]),
        prop::sample::select(vec![Deliver::Paced, Deliver::Early]),
        any::<bool>(),
        any::<bool>(),
    );
    // Without any window a greedy source whose sections expire would send without an end.
    let controller = prop::sample::select(vec!["reno", "cubic", "vegas"]);
    let latency = prop::option::weighted(0.8, (1u64..400).prop_map(Span::from_millis));
    let sizes = (600u32..3_000, 400u64..5_000, 5_000u64..60_000);
    (modes, controller, latency, sizes).prop_map(
        |(
            (reliability, drop, deliver, ecn, pace_windows),
            controller,
            latency,
            (payload, section, buffer),
        )| {
            TransportSpec::Sections(SectionsSpec {
                config: datagram::Config {
                    reliability,
                    drop,
                    deliver,
                    payload,
                    ecn,
                    pace_windows,
                    send_buffer: buffer,
                    idle_timeout: Span::from_millis(700),
                    ..datagram::Config::default()
                },
                controller: controller.to_owned(),
                parameters: Parameters::new(),
                initial_window: Bytes::new(u64::from(payload) * 10),
                latency,
                section: Bytes::new(section),
            })
        },
    )
}

/// Source, steps to the destination, spread of the start and stop in milliseconds.
type Ends = (usize, usize, u64, Option<u64>);

type What = (TransportSpec, Workload, Reader);

fn flow() -> impl Strategy<Value = What> {
    let datagram = (40u64..1_501, emission()).prop_map(|(wire, workload)| {
        (
            TransportSpec::Datagram(DatagramSpec {
                wire: Bytes::new(wire),
            }),
            workload,
            Reader::Immediate,
        )
    });
    let workload = prop_oneof![
        3 => Just(Workload::Greedy),
        2 => (0u64..200_000).prop_map(|bytes| Workload::File(Bytes::new(bytes))),
        2 => emission(),
    ];
    let reader = prop_oneof![
        3 => Just(Reader::Immediate),
        1 => (1u64..5_000, 1u64..80, 0u64..500).prop_map(|(bytes, interval, delay)| Reader::Playback {
            bytes: Bytes::new(bytes),
            interval: Span::from_millis(interval),
            delay: Span::from_millis(delay),
        }),
    ];
    let sections = (sections(), sections_workload())
        .prop_map(|(transport, workload)| (transport, workload, Reader::Immediate));
    prop_oneof![2 => datagram, 4 => (tcp(), workload, reader), 3 => sections]
}

/// Up to six nodes on a ring of links both ways, and chords.
fn network() -> impl Strategy<Value = Network> {
    (2usize..7).prop_flat_map(|nodes| {
        let ring = prop::collection::vec(link(), 2 * nodes);
        let chords = prop::collection::vec((0..nodes, 1..nodes, link()), 0..4);
        let ends = (
            0..nodes,
            1..nodes,
            0u64..400,
            prop::option::weighted(0.3, 300u64..1_500),
        );
        let flows = prop::collection::vec((ends, flow()), 1..7);
        (Just(nodes), ring, chords, flows, 600u64..2_000, 0u64..500).prop_map(
            |(nodes, ring, chords, flows, duration, warmup)| {
                let mut links: Vec<LinkSpec> = Vec::new();
                let mut add = |from: usize, to: usize, config| {
                    let name = format!("{}: {from}->{to}", links.len());
                    links.push(LinkSpec {
                        name,
                        from: NodeId(from as u32),
                        to: NodeId(to as u32),
                        config,
                    });
                };
                for (index, config) in ring.into_iter().enumerate() {
                    let (a, b) = (index / 2, (index / 2 + 1) % nodes);
                    let (from, to) = if index % 2 == 0 { (a, b) } else { (b, a) };
                    add(from, to, config);
                }
                for (from, step, config) in chords {
                    add(from, (from + step) % nodes, config);
                }
                let flow = |(index, (ends, what)): (usize, (Ends, What))| {
                    let ((source, step, start, stop), (transport, workload, reader)) = (ends, what);
                    FlowSpec {
                        name: format!("flow {index}"),
                        group: "all".to_owned(),
                        source: NodeId(source as u32),
                        destination: NodeId(((source + step) % nodes) as u32),
                        transport,
                        workload,
                        reader,
                        start: Start {
                            at: Time::ZERO,
                            spread: Span::from_millis(start),
                        },
                        stop: stop.map(Time::from_millis),
                    }
                };
                Network {
                    nodes: (0..nodes).map(|node| format!("node {node}")).collect(),
                    links,
                    flows: flows.into_iter().enumerate().map(flow).collect(),
                    duration: Span::from_millis(duration),
                    warmup: Span::from_millis(warmup),
                }
            },
        )
    })
}

// ---------------------------------------------------------------- what a run shows

/// When what happened, with the number or sequence number of the packet.
type Happening = (Time, &'static str, u64);

/// All that an observer sees, by entity.
#[derive(Debug, Default, PartialEq)]
struct Record {
    /// For each link: what was offered when, by which flow, and what became of it.
    links: BTreeMap<u32, Vec<(Time, u32, Fate)>>,
    /// For each endpoint: when what happened, with the number or sequence number of the packet.
    ends: BTreeMap<(u32, bool), Vec<Happening>>,
    /// For each flow: packets received at the source.
    returned: BTreeMap<u32, u64>,
    /// For each flow: the most that its sender had outstanding.
    most_in_flight: BTreeMap<u32, u64>,
    /// For each flow: how far into its stream it has sent.
    sent_up_to: BTreeMap<u32, u64>,
    delivered: BTreeMap<u32, u64>,
}

impl Observer for Record {
    fn on_link(&mut self, link: u32, event: &LinkEvent<'_>) {
        self.links
            .entry(link)
            .or_default()
            .push((event.offered_at, event.packet.flow, event.fate));
    }

    fn on_flow(&mut self, flow: u32, event: &FlowEvent<'_>) {
        let number = |body: &Body| match body {
            Body::Datagram(number) => *number,
            Body::Sections(packet) => packet.number.get(),
            Body::Tcp(segment) => {
                u64::from(segment.sequence.get()) << 32 | u64::from(segment.acknowledgement.get())
            }
        };
        let (what, number) = match event.kind {
            FlowEventKind::Sent(packet) => ("sent", number(&packet.body)),
            FlowEventKind::Received(packet) => ("received", number(&packet.body)),
            FlowEventKind::Timer => ("timer", 0),
            FlowEventKind::Delivered(bytes) => ("delivered", bytes),
        };
        if what != "timer" {
            let end = self.ends.entry((flow, event.at_destination)).or_default();
            end.push((event.now, what, number));
        }
        match event.kind {
            FlowEventKind::Received(_) if !event.at_destination => {
                *self.returned.entry(flow).or_default() += 1;
            }
            FlowEventKind::Delivered(bytes) => *self.delivered.entry(flow).or_default() += bytes,
            FlowEventKind::Sent(packet) if !event.at_destination => {
                if let Body::Tcp(segment) = packet.body
                    && segment.payload > 0
                {
                    // These runs are far too short for sequence numbers to wrap; number 0 is the SYN's.
                    let end = u64::from(segment.sequence.get()) - 1 + u64::from(segment.payload);
                    let up_to = self.sent_up_to.entry(flow).or_default();
                    *up_to = end.max(*up_to);
                }
            }
            _ => {}
        }
        if let Some(state) = event.state {
            let most = self.most_in_flight.entry(flow).or_default();
            *most = state.in_flight.max(*most);
        }
    }
}

fn keeps_order(config: &LinkConfig) -> bool {
    match config.jitter {
        Jitter::None => true,
        Jitter::Exponential { reorder, .. }
        | Jitter::Normal { reorder, .. }
        | Jitter::Uniform { reorder, .. } => !reorder,
    }
}

/// What a run gave, without what it cost.
fn result(mut report: RunReport) -> RunReport {
    report.cost = Cost {
        packet_hops: report.cost.packet_hops,
        ..Cost::default()
    };
    report
}

fn check_conservation(
    network: &Network,
    report: &RunReport,
    record: &Record,
) -> Result<(), TestCaseError> {
    for link in &report.links {
        let came_in = link.offered_packets + link.duplicated;
        let went = link.delivered_packets + link.dropped_full + link.dropped_early + link.lost;
        prop_assert_eq!(
            came_in,
            went + link.queued_at_end + link.in_flight_at_end,
            "{:?}",
            link
        );
    }
    for (index, (spec, flow)) in network.flows.iter().zip(&report.flows).enumerate() {
        let index = index as u32;
        let returned = record.returned.get(&index).copied().unwrap_or(0);
        let came_in = flow.sent_packets + flow.returned_packets + flow.duplicated_packets;
        let went = flow.received_packets + returned + flow.dropped_packets + flow.in_flight_at_end;
        prop_assert_eq!(came_in, went, "{:?}", flow);

        let delivered = record.delivered.get(&index).copied().unwrap_or(0);
        prop_assert_eq!(delivered, flow.delivered_bytes_total);
        prop_assert!(flow.delivered_bytes <= flow.delivered_bytes_total);
        if let TransportSpec::Sections(_) = &spec.transport {
            check_sections(spec, flow)?;
        }
        let TransportSpec::Tcp(tcp) = &spec.transport else {
            continue;
        };
        let sent = record.sent_up_to.get(&index).copied().unwrap_or(0);
        prop_assert!(
            delivered <= sent,
            "delivered {} of {} bytes sent",
            delivered,
            sent
        );
        if let Workload::File(bytes) = spec.workload {
            prop_assert!(sent <= bytes.get());
            if flow.finished.is_some() && spec.stop.is_none() {
                prop_assert_eq!(delivered, bytes.get());
            }
        }
        let most = record.most_in_flight.get(&index).copied().unwrap_or(0);
        // The FIN takes a sequence number beyond the window's last byte.
        let bound = tcp.config.receive_buffer.get() + 1;
        prop_assert!(
            most <= bound,
            "{} bytes in flight, a receive buffer of {}",
            most,
            bound - 1
        );
    }
    Ok(())
}

/// Every section that was submitted has one fate.
fn check_sections(spec: &FlowSpec, flow: &FlowReport) -> Result<(), TestCaseError> {
    let TransportSpec::Sections(settings) = &spec.transport else {
        return Ok(());
    };
    let report = flow.sections.as_ref().expect("a report of the sections");
    let fates = report.on_time + report.late + report.gaps.sum() + report.open;
    prop_assert_eq!(report.submitted, fates, "{:?}", report);
    prop_assert!(report.decodable <= report.on_time);
    let kinds = [report.intra, report.predicted, report.bidirectional];
    for kind in kinds {
        prop_assert!(kind.decodable <= kind.on_time && kind.on_time <= kind.submitted);
    }
    let of_frames: u64 = kinds.iter().map(|kind| kind.submitted).sum();
    match spec.workload {
        Workload::Video(_) => prop_assert_eq!(of_frames, report.submitted),
        Workload::Frames(_) => {}
        _ => prop_assert_eq!(of_frames, 0),
    }
    let config = &settings.config;
    let enforces = config.drop != DropPolicy::Never && config.reliability != Reliability::Full;
    if enforces || settings.latency.is_none() {
        prop_assert_eq!(report.late_bytes, 0);
    }
    prop_assert_eq!(report.age.count, report.on_time + report.late);
    Ok(())
}

fn check_order(network: &Network, record: &Record) -> Result<(), TestCaseError> {
    for (link, events) in &record.links {
        let spec = &network.links[*link as usize];
        let carried = events.iter().filter_map(|&(offered, _, fate)| match fate {
            Fate::Carried {
                departure, arrival, ..
            } => Some((offered, departure, arrival)),
            _ => None,
        });
        let carried: Vec<_> = carried.collect();
        for pair in carried.windows(2) {
            let ((offered, departure, arrival), next) = (pair[0], pair[1]);
            prop_assert!(
                offered <= next.0,
                "{}: {:?} offered before {:?}",
                spec.name,
                next,
                pair[0]
            );
            prop_assert!(
                departure <= next.1,
                "{}: {:?} departs before {:?}",
                spec.name,
                next,
                pair[0]
            );
            if keeps_order(&spec.config) {
                prop_assert!(
                    arrival <= next.2,
                    "{}: {:?} arrives before {:?}",
                    spec.name,
                    next,
                    pair[0]
                );
            }
        }
        for (offered, departure, arrival) in carried {
            prop_assert!(offered <= departure && departure <= arrival);
        }
    }
    for (end, events) in &record.ends {
        for pair in events.windows(2) {
            prop_assert!(
                pair[0].0 <= pair[1].0,
                "{:?}: {:?} before {:?}",
                end,
                pair[1],
                pair[0]
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    #[test]
    fn packets_are_conserved_in_order_and_within_windows(network in network(), seed in any::<u64>()) {
        let mut record = Record::default();
        let seed = Seed::new(seed);
        let report = run_observed(&network, seed, &RunOptions { collapse: false }, &mut record).unwrap();
        check_conservation(&network, &report, &record)?;
        check_order(&network, &record)?;
    }

    #[test]
    fn computing_ahead_changes_nothing(network in network(), seed in any::<u64>()) {
        let seed = Seed::new(seed);
        let play = |collapse| {
            let mut record = Record::default();
            let report = run_observed(&network, seed, &RunOptions { collapse }, &mut record).unwrap();
            (report, record)
        };
        let ((in_turn, in_turn_record), (ahead, ahead_record)) = (play(false), play(true));
        check_conservation(&network, &ahead, &ahead_record)?;
        check_order(&network, &ahead_record)?;
        for (end, events) in &in_turn_record.ends {
            let other = &ahead_record.ends[end];
            let at = events.iter().zip(other).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(events.get(at), other.get(at), "event {} of end {:?}", at, end);
        }
        for (link, events) in &in_turn_record.links {
            let other = &ahead_record.links[link];
            let at = events.iter().zip(other).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(events.get(at), other.get(at), "packet {} of link {}", at, link);
        }
        prop_assert_eq!(in_turn.fingerprint, ahead.fingerprint);
        prop_assert_eq!(result(in_turn), result(ahead));
    }

    #[test]
    fn looking_on_changes_nothing(network in network(), seed in any::<u64>()) {
        let seed = Seed::new(seed);
        let mut record = Record::default();
        let seen = run_observed(&network, seed, &RunOptions::default(), &mut record).unwrap();
        prop_assert_eq!(seen, run(&network, seed, &RunOptions::default()).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn a_run_is_the_same_on_every_thread(network in network(), seed in any::<u64>()) {
        let seed = Seed::new(seed);
        let alone = run(&network, seed, &RunOptions::default()).unwrap();
        let play = || run(&network, seed, &RunOptions::default()).unwrap();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(play)).collect();
            for thread in threads {
                assert_eq!(thread.join().unwrap(), alone);
            }
        });
    }

    /// Two islands: what happens on one has no part in what happens on the other.
    #[test]
    fn a_flow_elsewhere_leaves_every_other_number_alone(here in network(), there in network(), seed in any::<u64>()) {
        let seed = Seed::new(seed);
        let alone = run(&here, seed, &RunOptions::default()).unwrap();
        let mut both = here.clone();
        let shift = |node: NodeId| NodeId(node.0 + here.nodes.len() as u32);
        both.nodes.extend(there.nodes.iter().map(|name| format!("there {name}")));
        // In front of ours, so that every index changes and only the names stay.
        let links = there.links.into_iter().map(|link| LinkSpec {
            name: format!("there {}", link.name),
            from: shift(link.from),
            to: shift(link.to),
            ..link
        });
        let (links, ours) = (links.collect::<Vec<_>>(), both.links);
        let elsewhere = links.len();
        both.links = links.into_iter().chain(ours).collect();
        both.flows.extend(there.flows.into_iter().map(|flow| FlowSpec {
            name: format!("there {}", flow.name),
            source: shift(flow.source),
            destination: shift(flow.destination),
            ..flow
        }));
        let together = run(&both, seed, &RunOptions::default()).unwrap();
        prop_assert_eq!(&together.links[elsewhere..], &alone.links[..]);
        prop_assert_eq!(&together.flows[..alone.flows.len()], &alone.flows[..]);
    }
}

// ---------------------------------------------------------------- random numbers

/// A datagram flow over a link with `losses`, and TCP flows that share the access but not that link.
fn lossy(losses: Vec<Loss>, others: usize) -> Network {
    let mut builder = common::Builder::new(20, 0);
    let (a, b, c) = (builder.node("a"), builder.node("b"), builder.node("c"));
    let clean = common::link_config(Rate::from_mbps(100), Span::from_millis(3), Limit::Unlimited);
    builder.link(
        a,
        b,
        LinkConfig {
            losses,
            ..clean.clone()
        },
    );
    builder.link(b, a, clean.clone());
    builder.duplex(a, c, &clean);
    let datagram = TransportSpec::Datagram(DatagramSpec {
        wire: Bytes::new(500),
    });
    let workload = Workload::Poisson {
        rate: Rate::from_kbps(800),
    };
    builder.flow("probe", (a, b), datagram, workload);
    for _ in 0..others {
        let tcp = common::ns2_tcp(Config::NS2_2_35, RecoveryConfig::RENO, 1_000, 10);
        builder.flow("other", (a, c), tcp, Workload::Greedy);
    }
    builder.network
}

/// Which packets of the probe were lost, by their number.
fn fates(network: &Network, seed: u64) -> Vec<(Time, bool)> {
    let mut record = Record::default();
    run_observed(
        network,
        Seed::new(seed),
        &RunOptions::default(),
        &mut record,
    )
    .unwrap();
    let fate = |&(at, _, fate): &(Time, u32, Fate)| (at, matches!(fate, Fate::Carried { .. }));
    record.links[&0].iter().map(fate).collect()
}

#[test]
fn a_link_draws_the_same_losses_whoever_else_is_there() {
    let models = [
        LossModel::Bernoulli(0.1),
        LossModel::GilbertElliott {
            p_good_to_bad: 0.02,
            p_bad_to_good: 0.2,
            loss_good: 0.0,
            loss_bad: 0.7,
        },
        LossModel::OnOff {
            mean_on: Span::from_secs(1),
            mean_off: Span::from_secs(1),
            drop_on: 0.3,
            drop_off: 0.0,
            start_on: true,
        },
    ];
    for model in models {
        let losses = vec![Loss {
            model: model.clone(),
            place: LossPlace::BeforeQueue,
        }];
        let alone = fates(&lossy(losses.clone(), 0), 7);
        assert!(alone.len() > 3_000, "{model:?}");
        assert_eq!(fates(&lossy(losses.clone(), 3), 7), alone, "{model:?}");
        assert_ne!(
            fates(&lossy(losses, 0), 8),
            alone,
            "{model:?}: another seed"
        );
        let lost = alone.iter().filter(|(_, is_carried)| !is_carried).count();
        assert!(
            (100..900).contains(&lost),
            "{model:?}: {lost} of {} lost",
            alone.len()
        );
    }
}

#[test]
fn every_random_part_of_a_network_follows_the_seed() {
    let base = || lossy(Vec::new(), 2);
    let differs = |name: &str, change: &dyn Fn(&mut Network)| {
        let mut network = base();
        // Without the randomness of starts and of the Poisson source nothing random is left.
        for flow in &mut network.flows {
            flow.start.spread = Span::ZERO;
        }
        network.flows[0].workload = Workload::Cbr {
            spacing: CbrSpacing::Rate(Rate::from_kbps(800)),
            jitter: 0.0,
        };
        let run = |network: &Network, seed| {
            run(network, Seed::new(seed), &RunOptions::default())
                .unwrap()
                .fingerprint
        };
        assert_eq!(
            run(&network, 1),
            run(&network, 2),
            "nothing is random without {name}"
        );
        change(&mut network);
        assert_ne!(run(&network, 1), run(&network, 2), "{name}");
        assert_eq!(run(&network, 1), run(&network, 1), "{name}");
    };
    let rate = Rate::from_kbps(800);
    differs("starts", &|network| {
        network.flows[1].start.spread = Span::from_secs(1);
    });
    differs("Poisson arrivals", &|network| {
        network.flows[0].workload = Workload::Poisson { rate }
    });
    differs("jitter of a source", &|network| {
        network.flows[0].workload = Workload::Cbr {
            spacing: CbrSpacing::Rate(rate),
            jitter: 0.5,
        };
    });
    differs("spells", &|network| {
        let (mean_on, mean_off) = (Span::from_millis(100), Span::from_millis(100));
        network.flows[0].workload = Workload::OnOff {
            rate,
            mean_on,
            mean_off,
        };
    });
    differs("jitter of a link", &|network| {
        network.links[0].config.jitter = Jitter::Uniform {
            max: Span::from_millis(2),
            reorder: true,
        };
    });
    differs("copies", &|network| {
        network.links[0].config.duplication = 0.1;
    });
    differs("losses", &|network| {
        let loss = Loss {
            model: LossModel::Bernoulli(0.1),
            place: LossPlace::AfterTransmission,
        };
        network.links[0].config.losses.push(loss);
    });
}
