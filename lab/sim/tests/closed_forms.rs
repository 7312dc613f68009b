//! Runs with a known result, worked out by hand or from a formula.

use crate::common;

use comity_congestion::recovery::RecoveryConfig;
use comity_link::{Limit, LinkConfig, Loss, LossModel, LossPlace, RateProfile};
use comity_sim::network::{
    CbrSpacing, DatagramSpec, Network, NodeId, Start, TransportSpec, Workload,
};
use comity_sim::report::RunReport;
use comity_sim::{RunOptions, run};
use comity_tcp::Config;
use comity_units::{DataSize, Rate, Seed, Span, Time};

fn simulate(network: &Network, seed: u64) -> RunReport {
    run(network, Seed::new(seed), &RunOptions::default()).unwrap()
}

/// Two nodes, with a link of `rate` and `delay` in each direction.
fn pair(seconds: u64, forward: LinkConfig, reverse: LinkConfig) -> common::Builder {
    let mut builder = common::Builder::new(seconds, 0);
    let (a, b) = (builder.node("a"), builder.node("b"));
    builder.link(a, b, forward);
    builder.link(b, a, reverse);
    builder
}

/// The two nodes of a [`pair`].
const ENDS: (NodeId, NodeId) = (NodeId(0), NodeId(1));

/// TCP of segments of 1000 bytes on the wire, 960 of them payload, from a window of one segment.
fn tcp(window: u64, has_handshake: bool) -> TransportSpec {
    let config = Config {
        handshake: has_handshake,
        ..Config::NS2_2_35
    };
    let mut tcp = common::ns2_tcp(config, RecoveryConfig::NEW_RENO, 1_000, window);
    if let TransportSpec::Tcp(tcp) = &mut tcp {
        tcp.initial_window = DataSize::new(960);
    }
    tcp
}

/// 15 segments by slow start, one, two, four, then eight. At 8 Mb/s a segment takes 1 ms, a header
/// 0.04 ms; 50 ms in each direction.
///
/// ```text
/// SYN, forward and reverse 2 · 50.04 = 100.08 ms
/// rounds of 1, 2 and 4: each begins with the first acknowledgement of the one before, a round trip later
///                                                 3 · (51 + 50.04)    = 303.12 ms
/// round of 8: two segments for each acknowledgement, 1 ms apart, which queue and leave without a
/// gap;
/// the last of them arrives after                  8 · 1 + 50          =  58 ms
/// and is acknowledged after                       50.04               =  50.04 ms
///                                                                       511.24 ms
/// ```
///
/// The last segment carries the FIN, and its acknowledgement is the last one.
#[test]
fn a_file_takes_as_long_as_slow_start_by_rounds() {
    let link = common::link_config(Rate::from_mbps(8), Span::from_millis(50), Limit::Unlimited);
    for (has_handshake, micros) in [(true, 511_240), (false, 411_160)] {
        let mut builder = pair(5, link.clone(), link.clone());
        let workload = Workload::File(DataSize::new(15 * 960));
        builder
            .flow("tcp", ENDS, tcp(1_000, has_handshake), workload)
            .start = Start::default();
        let report = simulate(&builder.network, 1);
        let flow = &report.flows[0];
        assert_eq!(flow.finished, Some(Time::from_micros(micros)));
        assert_eq!(
            (flow.retransmitted_packets, flow.delivered_bytes),
            (0, 15 * 960)
        );
        // 15 segments, and with a handshake the SYN; the first segment acknowledges the SYN-ACK.
        assert_eq!(flow.sent_packets, 15 + u64::from(has_handshake));
    }
}

/// At its maximum, one window crosses per round trip: W · 960 bytes every 1 + 50 + 0.04 + 50 ms, as
/// long as the window is smaller than the capacity in that time.
#[test]
fn a_clamped_window_gives_window_over_round_trip() {
    let link = common::link_config(Rate::from_mbps(8), Span::from_millis(50), Limit::Unlimited);
    for window in [1, 7, 40, 101, 102, 200] {
        let mut builder = pair(61, link.clone(), link.clone());
        builder.network.warmup = Span::from_secs(11);
        builder.flow("tcp", ENDS, tcp(window, true), Workload::Greedy);
        let report = simulate(&builder.network, 1);
        let round_trip = 0.101_04;
        let expected = (window as f64 / round_trip).min(1_000.0) * 50.0;
        let delivered = report.flows[0].delivered_bytes as f64 / 960.0;
        // Up to one window more or less at each end of the interval.
        assert!(
            (delivered - expected).abs() <= window.min(101) as f64 + 1.0,
            "window {window}: {delivered}, not {expected}"
        );
        assert_eq!(report.flows[0].retransmitted_packets, 0);
        let rtt = report.flows[0].mean_rtt_s.unwrap();
        // Beyond the capacity of the path, the rest of the window queues: W segments at 1 ms each.
        let expected = round_trip.max(window as f64 * 0.001);
        assert!(
            (rtt - expected).abs() < 1e-6,
            "window {window}: round trip {rtt}, not {expected}"
        );
    }
}

/// 10 Mb/s of 1000-byte packets into 8 Mb/s with room for 20. A packet arrives every 0.8 ms and
/// takes 1 ms, so the queue gains one packet for every five arrivals. The first drop occurs when
/// the 21st place would be needed; afterwards every fifth is dropped.
///
/// ```text
/// packets offered in 10 s, the first at 0 and the last at 10 s:         12,501
/// served by t: one each ms from 0 on, 10,000 by 10 s; then 20 are queued
/// dropped: 12,501 − 10,000 − 20 = 2,481
/// ```
#[test]
fn constant_rate_into_a_drop_tail_queue_loses_an_exact_number() {
    let slow = common::link_config(Rate::from_mbps(8), Span::from_millis(5), Limit::Packets(20));
    let mut builder = pair(10, slow.clone(), slow);
    let workload = Workload::Cbr {
        spacing: CbrSpacing::Rate(Rate::from_mbps(10)),
        jitter: 0.0,
    };
    let datagram = TransportSpec::Datagram(DatagramSpec {
        wire: DataSize::new(1_000),
    });
    builder.flow("cbr", ENDS, datagram, workload).start = Start::default();
    let report = simulate(&builder.network, 1);
    let link = &report.links[0];
    assert_eq!(link.offered_packets, 12_501);
    assert_eq!(link.dropped_full, 2_481);
    // Departures of the last 5 ms are in flight: the packets of 9.996 to 10 s; one leaves at 9.995
    // and arrives just in time.
    assert_eq!(
        (
            link.delivered_packets,
            link.in_flight_at_end,
            link.queued_at_end
        ),
        (9_995, 5, 20)
    );
    assert_eq!(report.flows[0].dropped_packets, 2_481);
}

/// Packets of 1500 bytes leave a millisecond apart, varied by a share j of it, through a link that
/// is never busy. Gaps are uniform between 1 − j/2 and 1 + j/2 ms, so their mean is 1 ms and their
/// standard deviation j / √12 ms. The millisecond is the time of a packet at 12 Mb/s, an interval,
/// or a gap after the 0.12 ms of a packet at the link's 100 Mb/s. The bounds are four standard
/// errors of 100,000 gaps: of the mean σ / √n, of the standard deviation σ · √(0.8 / 4n), because a
/// uniform distribution's fourth moment is 1.8 σ⁴.
#[test]
fn jitter_spreads_the_gaps_of_a_constant_rate_evenly() {
    let spacings = [
        CbrSpacing::Rate(Rate::from_mbps(12)),
        CbrSpacing::Interval(Span::from_millis(1)),
        CbrSpacing::Gap(Span::from_micros(880)),
    ];
    for (spacing, jitter) in spacings.into_iter().zip([1.0, 0.4, 0.4]) {
        let link = common::link_config(
            Rate::from_mbps(100),
            Span::from_millis(5),
            Limit::Packets(20),
        );
        let mut builder = pair(100, link.clone(), link);
        let datagram = TransportSpec::Datagram(DatagramSpec {
            wire: DataSize::new(1_500),
        });
        let workload = Workload::Cbr { spacing, jitter };
        builder.flow("cbr", ENDS, datagram, workload).start = Start::default();
        let report = simulate(&builder.network, 1);
        let gaps = &report.flows[0].arrival_spacing;
        assert!((99_800..100_200).contains(&gaps.count), "{}", gaps.count);
        let stddev = jitter * 1e-3 / 12_f64.sqrt();
        let root = (gaps.count as f64).sqrt();
        assert!((gaps.mean - 1e-3).abs() < 4.0 * stddev / root, "{gaps:?}");
        let error = stddev * 0.2_f64.sqrt() / root;
        assert!((gaps.stddev - stddev).abs() < 4.0 * error, "{gaps:?}");
        // No gap lies outside, and some lie within a hundredth of either end. A packet takes 0.12
        // ms, less than the shortest gap, so none queues.
        let (least, most) = (1e-3 * (1.0 - jitter / 2.0), 1e-3 * (1.0 + jitter / 2.0));
        let edge = 1e-5 * jitter;
        assert!((least - 2e-9..least + edge).contains(&gaps.min), "{gaps:?}");
        assert!((most - edge..most + 2e-9).contains(&gaps.max), "{gaps:?}");
    }
}

/// M/D/1: Poisson arrivals, a fixed service time S, load ρ. Pollaczek and Khinchine: the mean
/// queueing delay is
///
/// ```text
/// W = ρ · S / (2 · (1 − ρ))
/// ```
///
/// Consecutive delays are correlated, so n of them carry less information than n independent draws.
/// The variance of their mean is about (c_a² + c_s²)³ / 2 · S² / ((1 − ρ)⁴ · n) in heavy traffic
/// (Whitt 1989), and less in light traffic. With c_a = 1 for Poisson arrivals and c_s = 0 for a
/// fixed service, four standard errors are 4 · S · √(1 / 2n) / (1 − ρ)².
#[test]
fn poisson_arrivals_wait_as_pollaczek_and_khinchine_predict() {
    let service = 0.001;
    for load in [0.3, 0.5, 0.7, 0.85] {
        let slow = common::link_config(Rate::from_mbps(8), Span::from_millis(5), Limit::Unlimited);
        let mut builder = pair(1_000, slow.clone(), slow);
        let workload = Workload::Poisson {
            rate: Rate::from_bps_f64(8e6 * load),
        };
        let datagram = TransportSpec::Datagram(DatagramSpec {
            wire: DataSize::new(1_000),
        });
        builder.flow("poisson", ENDS, datagram, workload).start = Start::default();
        let report = simulate(&builder.network, 1);
        let link = &report.links[0];
        let customers = link.offered_packets as f64;
        let expected = load * service / (2.0 * (1.0 - load));
        let bound = 4.0 * service * (0.5 / customers).sqrt() / ((1.0 - load) * (1.0 - load));
        assert!(
            bound < 0.1 * expected,
            "load {load}: the sample is large enough"
        );
        let wait = link.queueing_delay.mean;
        assert!(
            (wait - expected).abs() < bound,
            "load {load}: {wait}, not {expected} ± {bound}"
        );
        // Little: the mean number in the system is the arrival rate times the mean time in it.
        let held = customers / 1_000.0 * (wait + service);
        assert!(
            (link.mean_queue_packets / held - 1.0).abs() < 1e-3,
            "{} against {held}",
            link.mean_queue_packets
        );
        let utilisation = link.utilisation.unwrap();
        assert!(
            (utilisation - load).abs() < 4.0 * (load * service / 1_000.0).sqrt(),
            "{utilisation}"
        );
        // On a path without other queues, the link's queueing delay is the only variable part of a
        // packet's delay.
        let delay = report.flows[0].delay.mean;
        assert!((delay - (wait + service + 0.005)).abs() < 1e-6, "{delay}");
    }
}

/// The square-root formula: with a packet in every 1/p lost and every packet acknowledged
///
/// ```text
/// rate = MSS / RTT · √(3 / (2 · p))
/// ```
///
/// Mathis et al. 1997 derive it for losses at regular distances. Random losses spread the windows,
/// which raises the mean, and sometimes cause a timeout, which lowers it. The band is 0.8 to 1.1 of
/// the formula, for a recovery that avoids timeouts where possible. With p four times as large, the
/// rate is half.
#[test]
fn throughput_follows_the_square_root_of_the_loss() {
    let rate_at = |loss: f64| {
        let mut forward = common::link_config(
            Rate::from_mbps(1_000),
            Span::from_millis(50),
            Limit::Unlimited,
        );
        let reverse = forward.clone();
        forward.losses.push(Loss {
            model: LossModel::Bernoulli(loss),
            place: LossPlace::BeforeQueue,
        });
        let mut builder = pair(1_000, forward, reverse);
        builder.network.warmup = Span::from_secs(50);
        let config = Config {
            delayed_ack: None,
            limited_transmit: true,
            ..Config::NS2_2_35
        };
        let tcp = common::ns2_tcp(config, RecoveryConfig::SACK, 1_000, 10_000);
        builder.flow("tcp", ENDS, tcp, Workload::Greedy);
        let report = simulate(&builder.network, 1);
        (
            report.flows[0].goodput_bps,
            report.flows[0].mean_rtt_s.unwrap(),
        )
    };
    let model = |loss: f64, rtt: f64| 960.0 * 8.0 / rtt * (1.5 / loss).sqrt();
    let mut ratios = Vec::new();
    for loss in [0.000_25, 0.001, 0.004] {
        let (rate, rtt) = rate_at(loss);
        // The links are fast: a round trip is the propagation, 8 µs of transmission, and a burst's
        // queueing delay.
        assert!((0.1..0.101).contains(&rtt), "{rtt}");
        ratios.push(rate / model(loss, rtt));
    }
    for ratio in &ratios {
        assert!((0.8..1.1).contains(ratio), "{ratios:?} of the formula");
    }
    // Half the rate for four times the loss, each within 15 % over two steps.
    for step in ratios.windows(2) {
        assert!((step[0] / step[1] - 1.0).abs() < 0.15, "{ratios:?}");
    }
}

/// A link that loses a share of packets while on, and is on for a share of the time: the losses are
/// the product.
#[test]
fn an_on_off_link_loses_its_share() {
    for (on, off, drop_on) in [(1_000, 1_000, 0.2), (300, 900, 0.5), (2_000, 500, 1.0)] {
        let mut forward =
            common::link_config(Rate::from_mbps(8), Span::from_millis(5), Limit::Unlimited);
        let reverse = forward.clone();
        let model = LossModel::OnOff {
            mean_on: Span::from_millis(on),
            mean_off: Span::from_millis(off),
            drop_on,
            drop_off: 0.0,
            start_on: true,
            shared: None,
        };
        forward.losses.push(Loss {
            model,
            place: LossPlace::AfterTransmission,
        });
        let seconds = 4_000;
        let mut builder = pair(seconds, forward, reverse);
        let workload = Workload::Cbr {
            spacing: CbrSpacing::Rate(Rate::from_kbps(800)),
            jitter: 0.0,
        };
        let datagram = TransportSpec::Datagram(DatagramSpec {
            wire: DataSize::new(1_000),
        });
        builder.flow("cbr", ENDS, datagram, workload).start = Start::default();
        let report = simulate(&builder.network, 1);
        let lost = report.links[0].lost as f64 / report.links[0].offered_packets as f64;
        let (on, off) = (on as f64 / 1e3, off as f64 / 1e3);
        let share = on / (on + off);
        // A renewal process of exponential periods: over T, the share of time on has the variance 2
        // · on² · off² / ((on + off)³ · T). The draws for single packets add p (1 − p) / n.
        let both = on + off;
        let of_time = 2.0 * on * on * off * off / (both * both * both * seconds as f64);
        let of_packets = share * drop_on / report.links[0].offered_packets as f64;
        let bound = 4.0 * (drop_on * drop_on * of_time + of_packets).sqrt();
        assert!(bound < 0.1 * share * drop_on, "the sample is large enough");
        assert!(
            (lost - share * drop_on).abs() < bound,
            "{lost}, not {} ± {bound}",
            share * drop_on
        );
    }
}

/// A link without capacity before the end has no utilisation.
#[test]
fn a_link_without_capacity_has_no_utilisation() {
    let reverse = common::link_config(Rate::from_mbps(8), Span::from_millis(1), Limit::Unlimited);
    let shut_at = Time::from_millis(1);
    let forward = LinkConfig {
        rate: RateProfile::Steps(vec![
            (shut_at, Rate::ZERO),
            (Time::from_secs(9), Rate::from_mbps(8)),
        ]),
        ..reverse.clone()
    };
    let builder = pair(5, forward, reverse);
    let report = simulate(&builder.network, 1);
    assert_eq!(report.links[0].utilisation, None);
    assert_eq!(report.links[1].utilisation, Some(0.0));
}
