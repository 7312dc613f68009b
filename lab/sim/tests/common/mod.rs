//! The networks of the reference runs, as plain data.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses its own part, as a private module"
)]

use comity_congestion::recovery::RecoveryConfig;
use comity_congestion::table::{Parameters, Value};
use comity_link::{DelayProfile, Jitter, Limit, LinkConfig, Queue, RateProfile};
use comity_sim::network::{
    CbrSpacing, DatagramSpec, FlowSpec, Headers, LinkSpec, Network, NodeId, Reader, SectionsSpec,
    Start, TcpSpec, TransportSpec, Workload,
};
use comity_tcp::Config;
use comity_transport::datagram;
use comity_transport::timeline::Reliability;
use comity_units::{DataSize, Rate, Span};

pub fn link_config(rate: Rate, delay: Span, limit: Limit) -> LinkConfig {
    LinkConfig {
        rate: RateProfile::Constant(rate),
        delay: DelayProfile::Constant(delay),
        mtu: None,
        queue: Queue::DropTail(limit),
        losses: Vec::new(),
        jitter: Jitter::None,
        duplication: 0.0,
    }
}

/// Collects nodes, links and flows.
pub struct Builder {
    pub network: Network,
}

impl Builder {
    pub fn new(seconds: u64, warmup: u64) -> Self {
        Self {
            network: Network {
                nodes: Vec::new(),
                links: Vec::new(),
                flows: Vec::new(),
                duration: Span::from_secs(seconds),
                warmup: Span::from_secs(warmup),
            },
        }
    }

    pub fn node(&mut self, name: &str) -> NodeId {
        self.network.nodes.push(name.to_owned());
        NodeId(self.network.nodes.len() as u32 - 1)
    }

    pub fn link(&mut self, from: NodeId, to: NodeId, config: LinkConfig) -> usize {
        let name = |node: NodeId| self.network.nodes[node.0 as usize].clone();
        let name = format!("{}->{}", name(from), name(to));
        self.network.links.push(LinkSpec {
            name,
            from,
            to,
            config,
        });
        self.network.links.len() - 1
    }

    pub fn duplex(&mut self, a: NodeId, b: NodeId, config: &LinkConfig) {
        self.link(a, b, config.clone());
        self.link(b, a, config.clone());
    }

    pub fn flow(
        &mut self,
        group: &str,
        ends: (NodeId, NodeId),
        transport: TransportSpec,
        workload: Workload,
    ) -> &mut FlowSpec {
        let name = format!("{group}{}", self.network.flows.len());
        self.network.flows.push(FlowSpec {
            name,
            group: group.to_owned(),
            source: ends.0,
            destination: ends.1,
            transport,
            workload,
            reader: Reader::Immediate,
            start: Start {
                spread: Span::from_secs(1),
                ..Start::default()
            },
            stop: None,
        });
        self.network.flows.last_mut().unwrap()
    }
}

/// ns-2's TCP: `wire` bytes for a full segment, a window of `window` segments.
pub fn ns2_tcp(config: Config, recovery: RecoveryConfig, wire: u32, window: u64) -> TransportSpec {
    let mss = wire - 40;
    let segment = u64::from(mss);
    let is_old = !config.handshake;
    let parameters = Parameters::new()
        .with("increase", Value::Text("per_ack".into()))
        .with("decrease_basis", Value::Text("window".into()))
        .with(
            "rounding",
            Value::Text(if is_old { "both" } else { "threshold" }.into()),
        )
        .with("grow_when_limited", Value::Flag(true));
    let sack = recovery.name() == "sack";
    TransportSpec::Tcp(TcpSpec {
        config: Config {
            mss,
            receive_buffer: DataSize::new(segment * window),
            recovery,
            sack,
            ..config
        },
        controller: "reno".into(),
        parameters,
        initial_window: DataSize::new(if is_old { segment } else { 2 * segment }),
        initial_ssthresh: None,
        headers: Headers::Fixed {
            bytes: 40,
            per_sack_block: 8,
        },
        timeline: None,
        stack: comity_sim::network::Stack::Kernel,
    })
}

/// Sections as ns-2's rate-based agents send them: each packet is acknowledged, nothing is
/// retransmitted, and neither keep-alives nor ECN are in use.
pub fn sections(controller: &str) -> TransportSpec {
    let config = datagram::Config {
        reliability: Reliability::None,
        ack_frequency: 1,
        ack_delay: Span::ZERO,
        ecn: false,
        keep_alive: Span::from_secs(600),
        idle_timeout: Span::from_secs(600),
        send_buffer: 1_000_000,
        ..datagram::Config::default()
    };
    TransportSpec::Sections(SectionsSpec {
        acknowledgement: None,
        shed: true,
        config,
        controller: controller.to_owned(),
        parameters: Parameters::new(),
        initial_window: DataSize::new(u64::from(config.payload) * 10),
        latency: None,
        section: DataSize::new(140_000),
    })
}

/// The Table 1 network of the TLTCP paper with `flows` equal flows.
pub fn table1(flows: usize, transport: &TransportSpec, seconds: u64, delay: Span) -> Network {
    let mut builder = Builder::new(seconds, 50.min(seconds / 2));
    let (left, right) = (builder.node("r1"), builder.node("r2"));
    let bottleneck = Rate::from_kbps(1_500);
    builder.link(
        left,
        right,
        link_config(bottleneck, delay, Limit::Packets(400)),
    );
    builder.link(
        right,
        left,
        link_config(bottleneck, delay, Limit::Packets(100_000)),
    );
    let access = link_config(
        Rate::from_mbps(10),
        Span::from_millis(2),
        Limit::Packets(1_000),
    );
    for index in 0..flows {
        let source = builder.node(&format!("s{index}"));
        let sink = builder.node(&format!("d{index}"));
        builder.duplex(source, left, &access);
        builder.duplex(right, sink, &access);
        builder.flow("tcp", (source, sink), transport.clone(), Workload::Greedy);
    }
    builder.network
}

/// The packet-spacing network: constant-rate senders and TCP senders into one gateway.
pub fn packet_spacing(
    cbr: usize,
    tcp: usize,
    gap: Span,
    transport: &TransportSpec,
    seconds: u64,
) -> Network {
    let mut builder = Builder::new(seconds, 0);
    let (gateway, sink) = (builder.node("gateway"), builder.node("sink"));
    let backbone = |limit| link_config(Rate::from_mbps(155), Span::from_millis(40), limit);
    builder.link(gateway, sink, backbone(Limit::Packets(10)));
    builder.link(sink, gateway, backbone(Limit::Packets(100_000)));
    let access = link_config(
        Rate::from_mbps(100),
        Span::from_millis(2),
        Limit::Packets(100_000),
    );
    for index in 0..cbr + tcp {
        let source = builder.node(&format!("s{index}"));
        builder.duplex(source, gateway, &access);
        if index < cbr {
            let datagram = TransportSpec::Datagram(DatagramSpec {
                wire: DataSize::new(1_500),
            });
            let workload = Workload::Cbr {
                spacing: CbrSpacing::Gap(gap),
                jitter: 0.0,
            };
            builder.flow("cbr", (source, sink), datagram, workload);
        } else {
            builder.flow("tcp", (source, sink), transport.clone(), Workload::Greedy);
        }
    }
    builder.network
}

/// `flows` greedy TCP flows through one 10 Gb/s bottleneck, between 100 shared hosts on each side.
///
/// The hosts are 1 to 50 ms away, so round trips range from 14 to 210 ms; the bottleneck queue
/// holds 50 ms. Current TCP: SACK, timestamps, delayed acknowledgements, CUBIC; flows start over
/// the first fifth of the run.
pub fn crowd(flows: usize, millis: u64) -> Network {
    const HOSTS: usize = 100;
    let mut builder = Builder::new(1, 0);
    builder.network.duration = Span::from_millis(millis);
    let (left, right) = (builder.node("left"), builder.node("right"));
    let rate = Rate::from_mbps(10_000);
    let bottleneck = |limit| link_config(rate, Span::from_millis(5), limit);
    builder.link(
        left,
        right,
        bottleneck(Limit::Bytes(rate.amount_in(Span::from_millis(50)))),
    );
    builder.link(right, left, bottleneck(Limit::Unlimited));
    let mut sides = [Vec::new(), Vec::new()];
    for (index, side, gateway) in (0..HOSTS).flat_map(|host| [(host, 0, left), (host, 1, right)]) {
        let host = builder.node(&format!("{}{index}", ["source", "sink"][side]));
        let delay = Span::from_micros(1_000 + index as u64 * 490);
        builder.duplex(host, gateway, &link_config(rate, delay, Limit::Unlimited));
        sides[side].push(host);
    }
    for index in 0..flows {
        let (source, sink) = (
            sides[0][index % HOSTS],
            sides[1][(index / HOSTS + index * 37) % HOSTS],
        );
        let tcp = TcpSpec {
            config: Config::MODERN,
            controller: "cubic".into(),
            parameters: Parameters::new(),
            initial_window: DataSize::new(10 * 1_448),
            initial_ssthresh: None,
            headers: Headers::Real,
            timeline: None,
            stack: comity_sim::network::Stack::Kernel,
        };
        let start = Start {
            spread: Span::from_millis(millis / 5),
            ..Start::default()
        };
        builder
            .flow(
                "tcp",
                (source, sink),
                TransportSpec::Tcp(tcp),
                Workload::Greedy,
            )
            .start = start;
    }
    builder.network
}
