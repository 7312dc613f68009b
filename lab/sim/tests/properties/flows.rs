//! Random flows, and networks of them on random links.

use comity_congestion::recovery::RecoveryConfig;
use comity_congestion::table::Parameters;
use comity_frames::FrameType;
use comity_sim::frames::{AdaptiveVideo, Frame, Pause, Video};
use comity_sim::network::{
    CbrSpacing, DatagramSpec, FlowSpec, Headers, LinkSpec, Network, NodeId, ReadSizes, Reader,
    SectionsSpec, Start, TcpSpec, TimelineSpec, TransportSpec, Workload,
};
use comity_sim::transfers::Sizes;
use comity_tcp::timeline::{DeadlineClock, TimelineConfig};
use comity_tcp::{Config, DelayedAck};
use comity_transport::datagram;
use comity_transport::timeline::{Deliver, DropPolicy, Reliability};
use comity_units::{DataSize, Rate, Span, Time};
use proptest::prelude::*;

use crate::properties::paths::link;

fn tcp() -> impl Strategy<Value = TransportSpec> {
    let recovery = prop::sample::select(vec!["tahoe", "reno", "newreno", "sack", "rack"]);
    let controller = prop::sample::select(vec![
        "reno", "cubic", "vegas", "real", "libra", "bbr", "bbr3",
    ]);
    let preset = prop::sample::select(vec![Config::MODERN, Config::NS2_2_35, Config::NS2_2000]);
    let real_headers = any::<bool>();
    (
        recovery,
        controller,
        preset,
        100u32..1_461,
        1u64..60,
        real_headers,
        any::<[bool; 2]>(),
    )
        .prop_map(
            |(recovery, controller, preset, mss, window, real_headers, [is_delayed, marks])| {
                let mut config = preset;
                config.mss = mss;
                config.receive_buffer = DataSize::new(u64::from(mss) * window);
                config.recovery = RecoveryConfig::by_name(recovery).unwrap();
                config.sack = matches!(recovery, "sack" | "rack");
                config.ecn = marks;
                config.delayed_ack = is_delayed.then_some(DelayedAck {
                    segments: 2,
                    timeout: Span::from_millis(40),
                    quick: if marks { 16 } else { 0 },
                });
                TransportSpec::Tcp(TcpSpec {
                    config,
                    controller: controller.to_owned(),
                    parameters: Parameters::new(),
                    initial_window: DataSize::new(2 * u64::from(mss)),
                    initial_ssthresh: None,
                    timeline: None,
                    stack: comity_sim::network::Stack::Kernel,
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

/// How a flow is time-lined: with and without the blind spot, by either clock.
fn timeline() -> impl Strategy<Value = (TimelineConfig, TimelineSpec)> {
    let millis = |range| Strategy::prop_map(range, Span::from_millis);
    (
        any::<[bool; 5]>(),
        1u64..30_000,
        millis(1u64..900),
        prop::option::of(millis(50u64..400)),
    )
        .prop_map(|(switches, section, deadline, feedback)| {
            let [
                blind_spot,
                holds_passed,
                at_receiver,
                samples_obsolete,
                lifetime_on_tick,
            ] = switches;
            let clock = match at_receiver {
                true => DeadlineClock::Receiver,
                false => DeadlineClock::Sender,
            };
            let section = DataSize::new(section);
            (
                TimelineConfig {
                    blind_spot,
                    holds_passed,
                    samples_obsolete,
                    lifetime_on_tick,
                    clock,
                },
                TimelineSpec {
                    section,
                    deadline,
                    feedback,
                },
            )
        })
}

/// TCP of any recovery and controller, with its stream in sections that have deadlines.
fn timelined() -> impl Strategy<Value = TransportSpec> {
    (tcp(), timeline()).prop_map(|(transport, (settings, sections))| match transport {
        TransportSpec::Tcp(mut tcp) => {
            tcp.config.timeline = Some(settings);
            tcp.timeline = Some(sections);
            TransportSpec::Tcp(tcp)
        }
        other => other,
    })
}

/// Workloads that both datagrams and TCP support.
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
                    depth: DataSize::new(depth),
                    refill: DataSize::new(refill),
                    interval,
                }
            }
        ),
        kbps().prop_map(|rate| Workload::Poisson { rate }),
    ]
}

/// An encoder that follows the target bitrate.
fn encoder() -> impl Strategy<Value = Workload> {
    let kbps = || (50u64..4_000).prop_map(Rate::from_kbps);
    let millis = |range| Strategy::prop_map(range, Span::from_millis);
    let pause = (0u64..2_000, millis(0u64..500)).prop_map(|(at, lasts)| Pause {
        at: Time::from_millis(at),
        lasts,
    });
    (
        (kbps(), kbps(), 5.0f64..120.0, 1u32..40, 1u32..12),
        (millis(0u64..500), 0.0f64..1.0, 0.0f64..0.5),
        prop::collection::vec(pause, 0..3),
    )
        .prop_map(
            |((min_rate, more, fps, group, burst), (reaction, abrupt, scale), pauses)| {
                Workload::Encoder(AdaptiveVideo {
                    min_rate,
                    max_rate: Rate::from_bps(min_rate.as_bps() + more.as_bps()),
                    initial_rate: min_rate,
                    reaction,
                    fps,
                    group,
                    key_size: f64::from(burst.min(group)).min(3.0),
                    burst,
                    abrupt,
                    size_scale: scale,
                    interval_scale: scale,
                    pauses,
                })
            },
        )
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
        FrameType::Key,
        FrameType::Predicted { referenced: true },
        FrameType::Bidirectional { referenced: false },
        FrameType::Slice,
    ]);
    let frames = prop::collection::vec((0u64..60, 1u32..20_000, kind), 1..40).prop_map(|frames| {
        let mut at = Span::ZERO;
        let frame = |(later, bytes, kind)| {
            at += Span::from_millis(later);
            Frame {
                at,
                bytes,
                frame_type: kind,
            }
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
    let controller = prop::sample::select(vec![
        "reno", "cubic", "bbr", "bbr3", "vegas", "real", "libra", "steady", "iftp", "psp", "rap",
        "tfrc", "gcc", "scream",
    ]);
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
                    // The peer's buffer bounds the data in flight on a path without rate or loss.
                    receive_buffer: 300_000,
                    idle_timeout: Span::from_millis(700),
                    ..datagram::Config::default()
                },
                controller: controller.to_owned(),
                parameters: Parameters::new(),
                initial_window: DataSize::new(u64::from(payload) * 10),
                latency,
                section: DataSize::new(section),
                acknowledgement: None,
                shed: true,
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
                wire: DataSize::new(wire),
            }),
            workload,
            Reader::Immediate,
        )
    });
    let workload = prop_oneof![
        3 => Just(Workload::Greedy),
        2 => (0u64..200_000).prop_map(|bytes| Workload::File(DataSize::new(bytes))),
        1 => (1u64..100_000, 1.01f64..3.0, 1u64..1_000_000).prop_map(|(mean, shape, beyond)| {
            let max = DataSize::new(mean + beyond);
            let sizes = Sizes::pareto(DataSize::new(mean), shape, max);
            Workload::RandomFile(sizes.expect("the mean is below the maximum"))
        }),
        2 => emission(),
    ];
    let reader = prop_oneof![
        3 => Just(Reader::Immediate),
        1 => (1u64..5_000, 1u64..80, 0u64..500, 0u64..8_000).prop_map(
            |(bytes, interval, delay, buffer)| Reader::Playback {
                sizes: ReadSizes::Equal(DataSize::new(bytes)),
                interval: Span::from_millis(interval),
                delay: Span::from_millis(delay),
                buffer: DataSize::new(buffer),
            }
        ),
    ];
    let sections = (
        sections(),
        prop_oneof![3 => sections_workload(), 1 => encoder()],
    )
        .prop_map(|(transport, workload)| (transport, workload, Reader::Immediate));
    let timelined = (timelined(), sections_workload())
        .prop_map(|(transport, workload)| (transport, workload, Reader::Immediate));
    prop_oneof![
        2 => datagram,
        4 => (tcp(), workload, reader),
        3 => timelined,
        3 => sections,
    ]
}

/// Up to six nodes on a ring of links in both directions, and chords.
pub(crate) fn network() -> impl Strategy<Value = Network> {
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
                        // A quarter of the flows arrive one after another.
                        start: if start % 4 == 0 {
                            Start {
                                arrivals: Some(Span::from_millis(200)),
                                ..Start::default()
                            }
                        } else {
                            Start {
                                spread: Span::from_millis(start),
                                ..Start::default()
                            }
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
