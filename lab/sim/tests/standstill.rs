//! Links without any delay, and sources that nothing else would limit.

use crate::common;

use comity_congestion::recovery::RecoveryConfig;
use comity_link::{DelayProfile, Jitter, LinkConfig, RateProfile};
use comity_sim::network::{
    CbrSpacing, DatagramSpec, FlowError, Headers, Network, NetworkError, ReadSizes, Reader, Start,
    TimelineSpec, TransportSpec, Workload,
};
use comity_sim::{RunOptions, run};
use comity_tcp::Config;
use comity_units::{DataSize, Rate, Seed, Span, Time};

/// Two nodes and a flow between them that starts at once and lasts a tenth of a second.
fn network(
    forward: LinkConfig,
    reverse: LinkConfig,
    transport: TransportSpec,
    workload: Workload,
) -> Network {
    let mut builder = common::Builder::new(1, 0);
    let ends = (builder.node("a"), builder.node("b"));
    builder.link(ends.0, ends.1, forward);
    builder.link(ends.1, ends.0, reverse);
    builder.flow("it", ends, transport, workload).start = Start::default();
    let mut network = builder.network;
    network.duration = Span::from_millis(100);
    network
}

fn tcp(headers: u32) -> TransportSpec {
    let mut tcp = common::ns2_tcp(Config::NS2_2_35, RecoveryConfig::NEW_RENO, 1_000, 20);
    if let TransportSpec::Tcp(tcp) = &mut tcp {
        tcp.headers = Headers::Fixed {
            bytes: headers,
            per_sack_block: 0,
        };
    }
    tcp
}

/// Why a network is refused, by a run and by the network itself.
fn refusal(network: &Network) -> Option<NetworkError> {
    let refusal = run(network, Seed::new(1), &RunOptions::default()).err();
    assert_eq!(network.validate().err(), refusal);
    refusal
}

fn of_rate(rate: Rate) -> LinkConfig {
    LinkConfig {
        rate: RateProfile::Constant(rate),
        ..LinkConfig::default()
    }
}

fn of_delay(delay: DelayProfile) -> LinkConfig {
    LinkConfig {
        delay,
        ..LinkConfig::default()
    }
}

#[test]
fn a_greedy_flow_without_any_delay_or_rate_is_refused() {
    let free = LinkConfig::default();
    let gone = of_delay(DelayProfile::Steps(vec![
        (Time::ZERO, Span::from_millis(1)),
        (Time::from_millis(50), Span::ZERO),
    ]));
    let expected = Some(NetworkError::Flow {
        flow: "it0".to_owned(),
        error: FlowError::Standstill,
    });
    for (forward, reverse, headers) in [
        (free.clone(), free.clone(), 40),
        // From the fiftieth millisecond on, the delay is zero.
        (gone.clone(), free.clone(), 40),
        (free.clone(), gone, 40),
        // A rate does not delay packets without a size.
        (free, of_rate(Rate::from_mbps(1)), 0),
    ] {
        let network = network(forward, reverse, tcp(headers), Workload::Greedy);
        assert_eq!(refusal(&network), expected);
    }
}

#[test]
fn one_rate_or_delay_on_the_path_lets_time_advance() {
    let free = LinkConfig::default();
    let jitter = LinkConfig {
        jitter: Jitter::Uniform {
            max: Span::from_millis(10),
            reorder: false,
        },
        ..LinkConfig::default()
    };
    for (forward, reverse, headers) in [
        (of_rate(Rate::from_mbps(10)), free.clone(), 0),
        (of_rate(Rate::ZERO), free.clone(), 40),
        (free.clone(), of_rate(Rate::from_mbps(1)), 40),
        (
            of_delay(DelayProfile::Constant(Span::from_millis(1))),
            free.clone(),
            40,
        ),
        (
            free.clone(),
            of_delay(DelayProfile::Constant(Span::from_millis(1))),
            0,
        ),
        (free, jitter, 40),
    ] {
        let network = network(forward, reverse, tcp(headers), Workload::Greedy);
        assert_eq!(refusal(&network), None);
    }
}

/// A source with an end, or with a calendar, is delivered completely at the instant of its
/// submission.
#[test]
fn finite_sources_need_no_time_on_the_path() {
    let free = LinkConfig::default;
    let calendar = Workload::Cbr {
        spacing: CbrSpacing::Interval(Span::from_millis(10)),
        jitter: 0.0,
    };
    let file = Workload::File(DataSize::new(96_000));
    let datagrams = TransportSpec::Datagram(DatagramSpec {
        wire: DataSize::new(1_000),
    });
    for (transport, workload, delivered) in [
        (tcp(40), file, 96_000),
        (tcp(40), calendar.clone(), 9_600),
        (datagrams, calendar, 10_000),
    ] {
        let network = network(free(), free(), transport, workload);
        let report = run(&network, Seed::new(1), &RunOptions::default()).unwrap();
        let found = report.flows[0].delivered_bytes;
        // The calendar's eleventh packet belongs to the run's last instant.
        assert!(
            (delivered..=delivered + 1_000).contains(&found),
            "{found} bytes where {delivered} were given"
        );
    }
}

#[test]
fn repetition_without_an_interval_is_refused() {
    let link = || of_rate(Rate::from_mbps(1));
    let reason = |network: &Network| match refusal(network) {
        Some(NetworkError::Flow { error, .. }) => error,
        other => panic!("{other:?}"),
    };
    let bucket = Workload::TokenBucket {
        depth: DataSize::new(1_000),
        refill: DataSize::new(1_000),
        interval: Span::ZERO,
    };
    let datagrams = TransportSpec::Datagram(DatagramSpec {
        wire: DataSize::new(1_000),
    });
    for transport in [tcp(40), datagrams] {
        let network = network(link(), link(), transport, bucket.clone());
        assert_eq!(reason(&network), FlowError::RefillInterval);
    }
    let mut reads = network(link(), link(), tcp(40), Workload::Greedy);
    reads.flows[0].reader = Reader::Playback {
        sizes: ReadSizes::Equal(DataSize::new(1_000)),
        interval: Span::ZERO,
        delay: Span::ZERO,
        buffer: DataSize::ZERO,
    };
    assert_eq!(reason(&reads), FlowError::ReadInterval);
    let mut reports = network(link(), link(), tcp(40), Workload::Greedy);
    if let TransportSpec::Tcp(tcp) = &mut reports.flows[0].transport {
        tcp.timeline = Some(TimelineSpec {
            section: DataSize::new(1_000),
            deadline: Span::from_millis(100),
            feedback: Some(Span::ZERO),
        });
    }
    assert_eq!(reason(&reports), FlowError::ReportInterval);
}
