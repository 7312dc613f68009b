//! The scenario files of the repository are valid and describe the intended networks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use comity_congestion::table::{TABLE, Value};
use comity_link::{DelayProfile, Limit, Queue, RateProfile};
use comity_sim::network::{FlowSpec, Headers, Network, TcpSpec, TransportSpec};
use comity_sim::scenario::{NoFiles, Reading, Scenario, simulate};
use comity_tcp::Config;
use comity_transport::timeline::Reliability;
use comity_units::{DataSize, Rate, Span};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn load(path: &str) -> Scenario {
    Scenario::load(&root().join(path), &Reading::default())
        .unwrap_or_else(|problems| panic!("{path}:\n{problems}"))
}

fn first(scenario: &Scenario) -> Network {
    scenario.prepare(&scenario.runs()[0]).0
}

fn tcp(flow: &FlowSpec) -> &TcpSpec {
    match &flow.transport {
        TransportSpec::Tcp(spec) => spec,
        _ => panic!("{} is no TCP flow", flow.name),
    }
}

#[test]
fn every_file_reads_and_has_its_runs() {
    for (path, runs) in [
        ("experiments/aqm/queues.toml", 5 * 5),
        ("experiments/kernel/fair.toml", 3),
        ("experiments/kernel/friendly.toml", 3),
        ("experiments/kernel/one.toml", 4),
        ("experiments/kernel/real-handoff.toml", 2 * 6 * 3),
        ("experiments/kernel/real-losses.toml", 2 * 24 * 3),
        ("experiments/kernel/real-one.toml", 2 * 5 * 5),
        ("experiments/kernel/video.toml", 3),
        ("experiments/deadline/contended.toml", 2 * 8 * 5),
        ("experiments/deadline/contended_sections.toml", 2 * 6 * 5),
        ("experiments/deadline/lossy.toml", 6 * 3 * 5),
        ("experiments/deadline/among_themselves.toml", 2 * 4 * 3 * 5),
        ("experiments/deadline/newcomer.toml", 2 * 4 * 5),
        ("experiments/deadline/friendly.toml", 2 * 10 * 4 * 5),
        ("experiments/lab/kernel.toml", 1),
        ("experiments/lab/contended.toml", 1),
        ("experiments/lab/iperf.toml", 1),
        ("experiments/demo/dumbbell.toml", 2 * 5),
        ("experiments/reference/drops.toml", 5 * 5 * 2 * 2),
        ("experiments/reference/dumbbell_delay.toml", 2 * 5),
        ("experiments/reference/dumbbell_flows.toml", 4 * 4 * 5),
        ("experiments/reference/dumbbell_window.toml", 3 * 3 * 5),
        ("experiments/reference/iftp_network_tcp.toml", 3 * 5),
        ("experiments/reference/on_off_errors.toml", 2 * 4 * 3 * 10),
        ("experiments/reference/packet_spacing.toml", 5 * 3 * 2),
        ("experiments/reference/parking_lot.toml", 5),
        ("experiments/rfc8867/case51_single.toml", 14 * 2 * 2 * 2 * 5),
        ("experiments/rfc8867/case52_multiple.toml", 14 * 2 * 5),
        ("experiments/rfc8867/case53_feedback.toml", 14 * 3 * 5),
        ("experiments/rfc8867/case54_competing.toml", 14 * 5),
        ("experiments/rfc8867/case55_round_trips.toml", 14 * 5),
        ("experiments/rfc8867/case56_long_tcp.toml", 14 * 4 * 2 * 5),
        ("experiments/rfc8867/case57_short_tcp.toml", 14 * 4 * 5),
        ("experiments/rfc8867/case58_pause.toml", 14 * 5),
        ("experiments/rfc8867/case63_bottlenecks.toml", 14 * 5),
        ("experiments/rfc9743/bottlenecks.toml", 14 * 4 * 3),
        ("experiments/rfc9743/buffers.toml", 14 * 5 * 3),
        ("experiments/rfc9743/changes.toml", 14 * 3 * 3),
        ("experiments/rfc9743/collapse.toml", 14 * 3),
        ("experiments/rfc9743/impaired.toml", 14 * 6 * 3),
        ("experiments/rfc9743/no_feedback.toml", 14 * 3),
        ("experiments/rfc9743/queues.toml", 14 * 3 * 8 * 3),
        ("experiments/rfc9743/real_time.toml", 14 * 2 * 3),
        ("experiments/rfc9743/reverse.toml", 14 * 4 * 3),
        ("experiments/rfc9743/rivals.toml", 14 * 4 * 5 * 3),
        ("experiments/rfc9743/satellite.toml", 14 * 2 * 4 * 3),
        ("experiments/rfc9743/short_flows.toml", 14 * 2 * 3),
        ("experiments/short_flows/beside.toml", 3 * 5),
        ("experiments/tltcp/lab_fairness.toml", 4 * 3),
        ("experiments/tltcp/lab_video.toml", 6 * 3),
        ("experiments/libra/capacity.toml", 3 * 5 * 4 * 3 * 2),
        ("experiments/libra/capacity_shared.toml", 3 * 3 * 3 * 2 * 10),
        ("experiments/libra/capacity_slots.toml", 3 * 3 * 20),
        ("experiments/peers/media.toml", 5 * 2 * 5),
        ("experiments/worlds/comity-greedy.toml", 12 * 3 * 5),
        ("experiments/worlds/comity-networks.toml", 18 * 5),
        ("experiments/worlds/comity-reno.toml", 4 * 2 * 5),
        ("experiments/worlds/comity-video.toml", 10 * 3 * 5),
        ("experiments/worlds/phase.toml", 2 * 3 * 5),
        ("experiments/worlds/tcp-bbr.toml", 8 * 10),
        ("experiments/worlds/tcp-corners.toml", 3 * 10),
        ("experiments/worlds/tcp-loss.toml", 2 * 3 * 10),
        ("experiments/worlds/tcp-mixed.toml", 2 * 10),
        ("experiments/worlds/tcp-number.toml", 2 * 4 * 10),
        ("experiments/worlds/tcp-queue.toml", 2 * 7 * 10),
        ("experiments/worlds/tcp-rate.toml", 4 * 10),
        ("experiments/worlds/tcp-rtt.toml", 2 * 3 * 10),
        ("benches/race/dumbbell.toml", 1),
        ("benches/race/spacing.toml", 1),
    ] {
        assert_eq!(load(path).runs().len(), runs, "{path}");
    }
}

/// A new controller is a subject of both suites, without anybody who remembers.
#[test]
fn the_suites_have_every_controller_that_can_carry_video() {
    let all: BTreeSet<String> = TABLE
        .iter()
        .map(|row| row.name.to_owned())
        // No congestion control.
        .filter(|name| name != "fixed")
        .collect();
    let mut files = 0;
    for folder in ["experiments/rfc8867", "experiments/rfc9743"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let name = path.file_name().unwrap().to_str().unwrap();
            let scenario = load(&format!("{folder}/{name}"));
            let subjects: BTreeSet<String> = scenario
                .runs()
                .iter()
                .map(|run| run.values[0].to_string())
                .collect();
            assert_eq!(subjects, all, "{folder}/{name}");
            files += 1;
        }
    }
    assert_eq!(files, 9 + 12);
}

/// The propagation delay from a flow's source to its destination, over the links by name.
fn delay(network: &Network, names: &[&str]) -> Span {
    names
        .iter()
        .map(|name| {
            let link = network.links.iter().find(|link| link.name == *name);
            match link
                .unwrap_or_else(|| panic!("no link {name}"))
                .config
                .delay
            {
                DelayProfile::Constant(delay) => delay,
                DelayProfile::Steps(_) => panic!("{name} has steps"),
            }
        })
        .sum()
}

/// The round trips of the Libra paper's figure 3: 180, 90 and 30 ms.
#[test]
fn the_parking_lot_has_the_round_trips_of_its_paper() {
    let network = first(&load("experiments/reference/parking_lot.toml"));
    let groups: Vec<_> = network
        .flows
        .iter()
        .map(|flow| flow.group.as_str())
        .collect();
    assert_eq!(
        groups,
        [
            "long", "long", "medium", "medium", "short", "short", "short", "short"
        ]
    );
    let all = ["link-1", "link-2", "link-3", "link-4"];
    for (flow, links, one_way) in [
        ("long-1", &all[..], 90),
        ("medium-0", &all[..], 45),
        ("short-0", &all[..1], 15),
        ("short-3", &all[3..], 15),
    ] {
        let (source, destination) = (format!("{flow}.source"), format!("{flow}.destination"));
        let mut path = vec![source.as_str()];
        path.extend(links);
        path.push(&destination);
        assert_eq!(delay(&network, &path), Span::from_millis(one_way), "{flow}");
        // The links meet: each begins where the one before ends.
        let mut at = network
            .flows
            .iter()
            .find(|spec| spec.name == flow)
            .unwrap()
            .source;
        for name in path {
            let link = network.links.iter().find(|link| link.name == name).unwrap();
            assert_eq!(link.from, at, "{flow} at {name}");
            at = link.to;
        }
        let spec = network.flows.iter().find(|spec| spec.name == flow).unwrap();
        assert_eq!(at, spec.destination);
    }
    let backbone = &network.links[0].config;
    assert_eq!(backbone.rate, RateProfile::Constant(Rate::from_mbps(100)));
    assert_eq!(backbone.queue, Queue::DropTail(Limit::Packets(83)));
}

#[test]
fn the_dumbbell_is_that_of_table_1() {
    let network = first(&load("experiments/demo/dumbbell.toml"));
    assert_eq!(network.flows.len(), 30);
    assert_eq!(network.links.len(), 2 + 30 * 4);
    assert_eq!(network.nodes.len(), 2 + 30 * 2);
    let link = |name: &str| {
        &network
            .links
            .iter()
            .find(|link| link.name == name)
            .unwrap()
            .config
    };
    assert_eq!(
        link("bottleneck").queue,
        Queue::DropTail(Limit::Packets(400))
    );
    assert_eq!(
        link("bottleneck.reverse").queue,
        Queue::DropTail(Limit::Packets(100_000))
    );
    assert_eq!(link("bottleneck.reverse").rate, link("bottleneck").rate);
    assert_eq!(
        link("tcp-29.destination.reverse").rate,
        RateProfile::Constant(Rate::from_mbps(10))
    );
    let spec = tcp(&network.flows[0]);
    assert_eq!(spec.config.mss, 1_460);
    assert_eq!(spec.config.receive_buffer, DataSize::new(14_600));
    assert_eq!(
        spec.headers,
        Headers::Fixed {
            bytes: 40,
            per_sack_block: 8
        }
    );
}

#[test]
fn receivers_without_links_of_their_own_sit_on_the_router() {
    let network = first(&load("experiments/reference/packet_spacing.toml"));
    let right = network
        .nodes
        .iter()
        .position(|node| node == "right")
        .unwrap();
    assert_eq!(network.flows.len(), 16, "the first point has no TCP flows");
    for flow in &network.flows {
        assert_eq!(flow.destination.0 as usize, right);
    }
    assert_eq!(network.links.len(), 2 + 16 * 2);
}

/// A scenario with one flow of these settings.
fn flow(settings: &str) -> FlowSpec {
    let text = format!(
        r#"
        scenario = {{ name = "x", duration = "1s" }}
        [topology]
        kind = "dumbbell"
        bottleneck = {{ rate = "1Mbps", delay = "1ms" }}
        [[flow]]
        group = "tcp"
        {settings}
        "#
    );
    let scenario = Scenario::parse("x.toml", &text, NoFiles, &Reading::default())
        .unwrap_or_else(|problems| panic!("{settings}:\n{problems}"));
    first(&scenario).flows.remove(0)
}

#[test]
fn presets_are_those_of_the_transport() {
    let words = |spec: &TcpSpec| -> Vec<(String, Value)> {
        let pairs = spec.parameters.iter();
        pairs
            .map(|(name, value)| (name.to_owned(), value.clone()))
            .collect()
    };
    let like_ns2 = |rounding: &'static str| {
        vec![
            ("decrease_basis".to_owned(), Value::Text("window".into())),
            ("grow_when_limited".to_owned(), Value::Flag(true)),
            ("increase".to_owned(), Value::Text("per_ack".into())),
            ("rounding".to_owned(), Value::Text(rounding.into())),
        ]
    };

    let modern = flow("preset = \"modern\"");
    assert_eq!(modern, flow(""), "modern is the default");
    let modern = tcp(&modern);
    assert_eq!(modern.config, Config::MODERN);
    assert_eq!(modern.headers, Headers::Real);
    assert_eq!(modern.initial_window, DataSize::new(14_480));
    assert_eq!(modern.initial_ssthresh, Some(DataSize::MAX));
    assert_eq!(modern.controller, "cubic");
    let like_linux = [
        ("decrease_basis", Value::Text("window".into())),
        ("variant", Value::Text("linux".into())),
    ];
    assert_eq!(
        words(modern),
        like_linux.map(|(name, value)| (name.to_owned(), value))
    );
    let reno = flow("controller = \"reno\"");
    let like_linux = [
        ("decrease_basis", Value::Text("window".into())),
        ("increase", Value::Text("per_segment".into())),
        ("rounding", Value::Text("both".into())),
        ("undo", Value::Flag(true)),
    ];
    assert_eq!(
        words(tcp(&reno)),
        like_linux.map(|(name, value)| (name.to_owned(), value))
    );
    let libra = flow("controller = \"libra\"");
    assert_eq!(
        words(tcp(&libra)),
        [],
        "settings without a counterpart in Linux keep their defaults"
    );

    let release = flow("preset = \"ns2-2.35\"");
    let release = tcp(&release);
    assert_eq!(release.config, Config::NS2_2_35);
    assert_eq!(
        release.headers,
        Headers::Fixed {
            bytes: 40,
            per_sack_block: 8
        }
    );
    assert_eq!(release.initial_window, DataSize::new(2_920));
    assert_eq!(release.initial_ssthresh, None);
    assert_eq!(release.controller, "reno");
    assert_eq!(words(release), like_ns2("threshold"));

    let era = flow("preset = \"ns2-2000\"");
    let era = tcp(&era);
    assert_eq!(era.config, Config::NS2_2000);
    assert_eq!(era.initial_window, DataSize::new(1_460));
    assert_eq!(words(era), like_ns2("both"));
}

/// Every key of a TCP flow replaces the preset's value, and nothing else.
#[test]
fn every_key_replaces_its_own_setting() {
    use comity_congestion::RttConfig;
    use comity_congestion::recovery::{RecoveryConfig, RecoveryKind};
    use comity_tcp::DelayedAck;
    use comity_units::SeqNo;

    let base = Config::NS2_2_35;
    let rtt = RttConfig::NS2_2_35;
    for (settings, expected) in [
        (
            "packet = \"1000B\"",
            Config {
                mss: 960,
                receive_buffer: DataSize::new(19_200),
                ..base
            },
        ),
        (
            "mss = \"1000B\"",
            Config {
                mss: 1_000,
                receive_buffer: DataSize::new(20_000),
                ..base
            },
        ),
        (
            "rwnd = \"64KiB\"",
            Config {
                receive_buffer: DataSize::new(65_536),
                ..base
            },
        ),
        (
            "rwnd = \"7 packets\"",
            Config {
                receive_buffer: DataSize::new(10_220),
                ..base
            },
        ),
        (
            "headers = \"100B\"",
            Config {
                mss: 1_400,
                receive_buffer: DataSize::new(28_000),
                ..base
            },
        ),
        ("headers = \"real\"", base),
        (
            "headers = \"real\"\ntimestamps = true",
            Config {
                mss: 1_448,
                receive_buffer: DataSize::new(28_960),
                timestamps: true,
                ..base
            },
        ),
        (
            "recovery = \"tahoe\"",
            Config {
                recovery: RecoveryConfig::TAHOE,
                ..base
            },
        ),
        (
            "recovery = \"newreno\"",
            Config {
                recovery: RecoveryConfig::NEW_RENO_NS2,
                ..base
            },
        ),
        (
            "recovery = \"newreno\"\ndeflate_window = false",
            Config {
                recovery: RecoveryConfig::NEW_RENO,
                ..base
            },
        ),
        (
            "recovery = \"sack\"",
            Config {
                recovery: RecoveryConfig::SACK_NS2,
                sack: true,
                ..base
            },
        ),
        (
            "recovery = \"sack\"\npipe = \"scoreboard\"",
            Config {
                recovery: RecoveryConfig::SACK,
                sack: true,
                ..base
            },
        ),
        ("sack = true", Config { sack: true, ..base }),
        (
            "duplicate_threshold = 5\nbugfix = false",
            Config {
                recovery: RecoveryConfig {
                    duplicate_threshold: 5,
                    bugfix: false,
                    ..RecoveryConfig::RENO
                },
                ..base
            },
        ),
        (
            "delayed_ack = true",
            Config {
                delayed_ack: Some(DelayedAck {
                    segments: 2,
                    timeout: Span::from_millis(40),
                    quick: 0,
                }),
                ..base
            },
        ),
        (
            "recovery = \"rack\"\nprr = false",
            Config {
                recovery: RecoveryConfig {
                    kind: RecoveryKind::Rack {
                        probe: true,
                        proportional: false,
                        undo: true,
                    },
                    ..RecoveryConfig::RACK
                },
                sack: true,
                ..base
            },
        ),
        (
            "recovery = \"rack\"\ntail_loss_probe = false\nundo = false",
            Config {
                recovery: RecoveryConfig {
                    kind: RecoveryKind::Rack {
                        probe: false,
                        proportional: true,
                        undo: false,
                    },
                    ..RecoveryConfig::RACK
                },
                sack: true,
                ..base
            },
        ),
        (
            "sack = true\nduplicate_sack = true",
            Config {
                sack: true,
                duplicate_sack: true,
                ..base
            },
        ),
        ("ecn = true", Config { ecn: true, ..base }),
        (
            "restart_after_idle = true",
            Config {
                restart_after_idle: true,
                ..base
            },
        ),
        (
            "delayed_ack = { quick = 7 }",
            Config {
                delayed_ack: Some(DelayedAck {
                    segments: 2,
                    timeout: Span::from_millis(40),
                    quick: 7,
                }),
                ..base
            },
        ),
        (
            "delayed_ack = { segments = 4, timeout = \"200ms\" }",
            Config {
                delayed_ack: Some(DelayedAck {
                    segments: 4,
                    timeout: Span::from_millis(200),
                    quick: 0,
                }),
                ..base
            },
        ),
        (
            "delayed_ack = \"bsd\"",
            Config {
                delayed_ack: Some(DelayedAck {
                    segments: 2,
                    timeout: Span::from_millis(200),
                    quick: 0,
                }),
                ..base
            },
        ),
        (
            "rto = \"bsd\"",
            Config {
                rtt: RttConfig {
                    tick: Span::from_millis(500),
                    phase: Span::ZERO,
                    granularity: Span::ZERO,
                    initial_timeout: Span::from_secs(6),
                    min_timeout: Span::from_secs(1),
                    max_timeout: Span::from_secs(64),
                    max_doublings: 6,
                    floor_before_backoff: false,
                    forget_after_backoff: true,
                },
                ..base
            },
        ),
        (
            "rto = \"rfc6298\"",
            Config {
                rtt: RttConfig::RFC6298,
                ..base
            },
        ),
        (
            "window_scaling = false",
            Config {
                window_scaling: false,
                ..base
            },
        ),
        (
            "limited_transmit = false",
            Config {
                limited_transmit: false,
                ..base
            },
        ),
        (
            "handshake = false",
            Config {
                handshake: false,
                ..base
            },
        ),
        (
            "initial_sequence = 4294967295",
            Config {
                initial_sequence: SeqNo::new(u32::MAX),
                ..base
            },
        ),
        (
            "restart_timer_before_sample = true",
            Config {
                restart_timer_before_sample: true,
                ..base
            },
        ),
        (
            "time_wait = \"1s\"",
            Config {
                time_wait: Span::from_secs(1),
                ..base
            },
        ),
        (
            "give_up_after = 15",
            Config {
                give_up_after: std::num::NonZeroU32::new(15),
                ..base
            },
        ),
        (
            "max_burst = 3",
            Config {
                max_burst: Some(3),
                ..base
            },
        ),
        (
            "rto = { tick = \"500ms\", min_timeout = \"1s\", floor_before_backoff = false }",
            Config {
                rtt: RttConfig {
                    tick: Span::from_millis(500),
                    min_timeout: Span::from_secs(1),
                    floor_before_backoff: false,
                    ..rtt
                },
                ..base
            },
        ),
        (
            "rto = { phase = \"3ms\", granularity = \"2ms\", initial_timeout = \"4s\", \
             max_timeout = \"9s\", forget_after_backoff = false }",
            Config {
                rtt: RttConfig {
                    phase: Span::from_millis(3),
                    granularity: Span::from_millis(2),
                    initial_timeout: Span::from_secs(4),
                    max_timeout: Span::from_secs(9),
                    forget_after_backoff: false,
                    ..rtt
                },
                ..base
            },
        ),
    ] {
        let flow = flow(&format!("preset = \"ns2-2.35\"\n{settings}"));
        assert_eq!(tcp(&flow).config, expected, "{settings}");
    }
    let flow = flow(
        "preset = \"ns2-2.35\"\ninitial_window = 4\nssthresh = \"50kB\"\ncontroller = \"vegas\"\n\
         parameters = { alpha = 2, whole_segments = false }",
    );
    let spec = tcp(&flow);
    assert_eq!(spec.initial_window, DataSize::new(5_840));
    assert_eq!(spec.initial_ssthresh, Some(DataSize::new(50_000)));
    assert_eq!(spec.parameters.get("alpha"), Some(&Value::Number(2.0)));
    assert_eq!(
        spec.parameters.get("whole_segments"),
        Some(&Value::Flag(false))
    );
}

#[test]
fn shared_hosts_are_used_in_turn() {
    let text = r#"
        scenario = { name = "x", duration = "1s" }
        [topology]
        kind = "dumbbell"
        pairs = 2
        bottleneck = { rate = "1Mbps", delay = "1ms" }
        access = { rate = "1Mbps", delay = "1ms" }
        [[flow]]
        group = "a"
        count = 3
        [[flow]]
        group = "b"
        from = "s1"
        to = "d0"
    "#;
    let scenario = Scenario::parse("x.toml", text, NoFiles, &Reading::default()).unwrap();
    let network = first(&scenario);
    let ends: Vec<_> = network
        .flows
        .iter()
        .map(|flow| {
            let name = |node: comity_sim::network::NodeId| network.nodes[node.0 as usize].as_str();
            (name(flow.source), name(flow.destination))
        })
        .collect();
    assert_eq!(
        ends,
        [("s0", "d0"), ("s1", "d1"), ("s0", "d0"), ("s1", "d0")]
    );
}

/// Beside the propagation, a round trip has the transmission of a packet and an acknowledgement.
#[test]
fn flows_of_a_group_have_round_trips_of_their_own() {
    let text = r#"
        scenario = { name = "x", duration = "3s" }
        [topology]
        kind = "dumbbell"
        bottleneck = { rate = "10Mbps", delay = "10ms" }
        access = { rate = "100Mbps", delay = "1ms" }
        [[flow]]
        group = "a"
        count = 3
        access_delays = ["2ms", "40ms"]
        rwnd = 2
    "#;
    let scenario = Scenario::parse("x.toml", text, NoFiles, &Reading::default()).unwrap();
    let run = &scenario.runs()[0];
    let (network, settings) = scenario.prepare(run);
    let report = simulate(&network, run, &settings).unwrap();
    for (flow, delay_ms) in report.flows.iter().zip([2.0, 40.0, 2.0]) {
        let transmissions_ms = flow.min_rtt_s.unwrap() * 1e3 - 2.0 * (delay_ms + 10.0 + 1.0);
        assert!(
            (0.05..3.0).contains(&transmissions_ms),
            "{}: {transmissions_ms} ms",
            flow.name
        );
    }
}

/// Absent keys have the values of the controller's paper.
#[test]
fn controllers_whose_papers_retransmit_nothing_retransmit_nothing() {
    let reliability = |keys: &str| {
        let flow = flow(&format!("transport = \"sections\"\n{keys}"));
        match flow.transport {
            TransportSpec::Sections(spec) => spec.config.reliability,
            other => panic!("{other:?} has no sections"),
        }
    };
    for (controller, usual) in [
        ("steady", Reliability::Timeline),
        ("rap", Reliability::Timeline),
        ("iftp", Reliability::None),
        ("psp", Reliability::None),
    ] {
        let keys = format!("controller = \"{controller}\"");
        assert_eq!(reliability(&keys), usual, "{controller}");
        for (word, said) in [
            ("timeline", Reliability::Timeline),
            ("none", Reliability::None),
            ("full", Reliability::Full),
        ] {
            let keys = format!("{keys}\nreliability = \"{word}\"");
            assert_eq!(reliability(&keys), said, "{controller}");
        }
    }
    assert_eq!(reliability(""), Reliability::Timeline);
}
