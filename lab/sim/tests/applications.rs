//! Token buckets and playback readers against literal models that step through time.

use crate::common;

use comity_congestion::recovery::RecoveryConfig;
use comity_link::{Limit, Loss, LossModel, LossPlace};
use comity_sim::network::{
    DatagramSpec, FlowSpec, Network, NodeId, ReadSizes, Reader, Start, TransportSpec, Workload,
};
use comity_sim::{Body, FlowEvent, FlowEventKind, Observer, RunOptions, run, run_observed};
use comity_tcp::Config;
use comity_units::{DataSize, Rate, Seed, Span, Time};

/// The payload of a segment and the size of a packet.
const CHUNK: u64 = 960;

/// Records when payload leaves the source, and when it is delivered.
#[derive(Default)]
struct Watch {
    sent: Vec<u64>,
    delivered: Vec<(u64, u64)>,
}

impl Observer for Watch {
    fn on_flow(&mut self, _: u32, event: &FlowEvent<'_>) {
        let now = event.now.as_nanos();
        match event.kind {
            FlowEventKind::Sent(packet) if !event.at_destination => match packet.body {
                Body::Tcp(segment) if segment.payload == 0 => {}
                _ => self.sent.push(now),
            },
            FlowEventKind::Delivered(bytes) => self.delivered.push((now, bytes)),
            _ => {}
        }
    }
}

/// One flow from node 0 to node 1 over a link of `rate` and 10 ms.
fn network(
    rate: Rate,
    losses: Vec<Loss>,
    transport: TransportSpec,
    workload: Workload,
    adapt: impl FnOnce(&mut FlowSpec),
) -> Network {
    let mut builder = common::Builder::new(10, 0);
    let (a, b) = (builder.node("a"), builder.node("b"));
    let plain = common::link_config(rate, Span::from_millis(10), Limit::Unlimited);
    let mut forward = plain.clone();
    forward.losses = losses;
    builder.link(a, b, forward);
    builder.link(b, a, plain);
    let flow = builder.flow("flow", (NodeId(0), NodeId(1)), transport, workload);
    flow.start = Start {
        at: Time::from_millis(3),
        ..Start::default()
    };
    adapt(flow);
    builder.network
}

/// TCP with a window that never limits it.
fn unhindered() -> TransportSpec {
    let config = Config {
        handshake: false,
        ..Config::NS2_2_35
    };
    let mut transport = common::ns2_tcp(config, RecoveryConfig::NEW_RENO, 1_000, 100_000);
    if let TransportSpec::Tcp(tcp) = &mut transport {
        tcp.initial_window = DataSize::new(100_000 * CHUNK);
    }
    transport
}

fn watch(network: &Network) -> Watch {
    let mut watch = Watch::default();
    let options = RunOptions { collapse: false };
    run_observed(network, Seed::new(1), &options, &mut watch).unwrap();
    watch
}

/// A bucket that is full at 3 ms, millisecond by millisecond: the refill, then the departures.
fn bucket(depth: u64, refill: u64, interval_ms: u64, stop_ms: u64) -> Vec<u64> {
    let mut tokens = depth;
    let mut sent = Vec::new();
    for ms in 3..=10_000 {
        if ms > 3 && (ms - 3) % interval_ms == 0 {
            tokens = depth.min(tokens + refill);
        }
        while ms < stop_ms && tokens >= CHUNK {
            tokens -= CHUNK;
            sent.push(ms * 1_000_000);
        }
    }
    sent
}

#[test]
fn a_token_bucket_sends_when_a_literal_one_does() {
    let datagrams = TransportSpec::Datagram(DatagramSpec {
        wire: DataSize::new(CHUNK),
    });
    // Refills of less than a packet, more than one, exactly one, the maximum, and a rare one.
    for (depth, refill, interval_ms) in [
        (5_000, 100, 7),
        (5_000, 2_500, 40),
        (960, 960, 10),
        (10_000, 10_000, 100),
        (30_000, 7, 1_000),
    ] {
        for stop_ms in [u64::MAX, 4_321] {
            let expected = bucket(depth, refill, interval_ms, stop_ms);
            let workload = Workload::TokenBucket {
                depth: DataSize::new(depth),
                refill: DataSize::new(refill),
                interval: Span::from_millis(interval_ms),
            };
            for transport in [unhindered(), datagrams.clone()] {
                let name = format!("{depth} {refill} {interval_ms} {stop_ms} {transport:?}");
                let rate = Rate::from_mbps(1_000);
                let network = network(rate, Vec::new(), transport, workload.clone(), |flow| {
                    flow.stop = (stop_ms < u64::MAX).then(|| Time::from_millis(stop_ms));
                });
                assert_eq!(watch(&network).sent, expected, "{name}");
                let report = run(&network, Seed::new(1), &RunOptions::default()).unwrap();
                let packets = expected.len() as u64;
                assert_eq!(report.flows[0].sent_packets, packets, "{name}");
                assert_eq!(report.flows[0].tokens_used_bytes, packets * CHUNK, "{name}");
            }
        }
    }
}

/// A window of four segments leaves most tokens in the bucket: a segment takes 7.68 ms, so 960
/// bytes of the 30,000 refilled every 100 ms. When the source stops, 30,000 tokens remain and
/// acknowledgements continue to arrive. Nothing more leaves, and only the departed bytes used
/// tokens.
#[test]
fn tokens_left_after_the_source_stops_are_worthless() {
    let config = Config {
        handshake: false,
        ..Config::NS2_2_35
    };
    let mut transport = common::ns2_tcp(config, RecoveryConfig::NEW_RENO, 1_000, 4);
    if let TransportSpec::Tcp(tcp) = &mut transport {
        tcp.initial_window = DataSize::new(4 * CHUNK);
    }
    let workload = Workload::TokenBucket {
        depth: DataSize::new(30_000),
        refill: DataSize::new(30_000),
        interval: Span::from_millis(100),
    };
    let network = network(
        Rate::from_mbps(1),
        Vec::new(),
        transport,
        workload,
        |flow| {
            flow.stop = Some(Time::from_millis(4_321));
        },
    );
    let Watch { sent, delivered } = watch(&network);
    let last = sent.iter().max().unwrap() / 1_000_000;
    assert!((4_280..4_321).contains(&last), "{last}");
    // A round trip of 20 ms and a transmission are less than the time of four of those, so the link
    // never idles.
    assert!((520..=545).contains(&sent.len()), "{}", sent.len());
    let bytes = sent.len() as u64 * CHUNK;
    assert_eq!(delivered.iter().map(|(_, bytes)| bytes).sum::<u64>(), bytes);
    let report = run(&network, Seed::new(1), &RunOptions::default()).unwrap();
    assert_eq!(report.flows[0].tokens_used_bytes, bytes);
}

/// The results of a reader that reads a fixed amount at fixed times from the first byte on.
fn playback(
    delivered: &[(u64, u64)],
    bytes: u64,
    interval: u64,
    delay: u64,
    warmup: u64,
) -> (u64, u64) {
    let first = delivered[0].0;
    let (mut taken, mut reads, mut satisfied) = (0, 0, 0);
    let mut at = first + delay;
    while at < 10_000_000_000 {
        let arrived: u64 = delivered
            .iter()
            .filter(|(time, _)| *time < at)
            .map(|(_, bytes)| bytes)
            .sum();
        let finds = arrived - taken >= bytes;
        if finds {
            taken += bytes;
        }
        if at >= warmup {
            reads += 1;
            satisfied += u64::from(finds);
        }
        at += interval;
    }
    (reads, satisfied)
}

#[test]
fn a_playback_reader_finds_the_delivered_bytes() {
    let losses = vec![Loss {
        model: LossModel::Bernoulli(0.03),
        place: LossPlace::AfterTransmission,
    }];
    let config = Config {
        handshake: true,
        ..Config::NS2_2_35
    };
    // The path carries some 1 Mb/s; reads of 0.4, 0.8 and 1.6 Mb/s, at times when no packet
    // arrives.
    let mut shares = Vec::new();
    for (bytes, delay) in [(5_000, 0), (10_000, 500), (20_000, 2_000)] {
        for warmup_ms in [0, 3_000] {
            let (interval, delay) = (100_000_007, delay * 1_000_000 + 13);
            let transport = common::ns2_tcp(config, RecoveryConfig::NEW_RENO, 1_000, 60);
            let mut network = network(
                Rate::from_mbps(1),
                losses.clone(),
                transport,
                Workload::Greedy,
                |flow| {
                    flow.reader = Reader::Playback {
                        sizes: ReadSizes::Equal(DataSize::new(bytes)),
                        interval: Span::from_nanos(interval),
                        delay: Span::from_nanos(delay),
                        buffer: DataSize::ZERO,
                    };
                },
            );
            network.warmup = Span::from_millis(warmup_ms);
            let delivered = watch(&network).delivered;
            let expected = playback(&delivered, bytes, interval, delay, warmup_ms * 1_000_000);
            let report = run(&network, Seed::new(1), &RunOptions::default()).unwrap();
            let found = report.flows[0].playback.unwrap();
            assert_eq!((found.reads, found.satisfied), expected, "{bytes}");
            shares.push(expected.1 as f64 / expected.0 as f64);
        }
    }
    // Some readers find nearly everything and some do not: the comparison is not of zeros.
    assert!(shares[0] > 0.9, "{shares:?}");
    assert!((0.1..0.9).contains(&shares[4]), "{shares:?}");
}
