//! Whole networks against ns-2 2.35, as distributions over seeds.
//!
//! The two simulators draw different random numbers, and phases dominate networks of drop-tail
//! queues. One seed proves nothing, and the same seed is not the same run. Each network therefore
//! runs from several seeds in both, and the test compares the two means of each quantity:
//!
//! ```text
//! |m₁ − m₂| ≤ 4 · √(s₁²/n₁ + s₂²/n₂) + r
//! ```
//!
//! with the means m, the standard deviations s over n seeds each, and the resolution r of the
//! quantity (a packet or two, or a stated share). With the 6 to 40 seeds used here, an equal
//! quantity fails about once in a thousand; a shift of twice the bound passes as rarely. The test
//! is two-sided. The vectors are those of `vectors/ns2`.

use crate::common;

use std::fmt::Write as _;

use comity_congestion::recovery::RecoveryConfig;
use comity_link::{Limit, Loss, LossModel, LossPlace};
use comity_sim::network::{Network, Start, TransportSpec, Workload};
use comity_sim::report::{FlowReport, RunReport};
use comity_sim::{RunOptions, run};
use comity_tcp::Config;
use comity_units::{DataSize, Rate, Seed, Span};

/// The rows of a vector file that begin with `name`, as numbers.
fn rows(text: &str, name: &str) -> Vec<Vec<f64>> {
    let prefix = if name.is_empty() {
        String::new()
    } else {
        format!("{name} ")
    };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let rows: Vec<Vec<f64>> = lines
        .filter_map(|line| line.strip_prefix(&prefix))
        .map(|line| line.split(' ').map(|word| word.parse().unwrap()).collect())
        .collect();
    assert!(!rows.is_empty(), "no rows of {name:?} in the vectors");
    rows
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The variance of the mean of `values`.
fn variance_of_mean(values: &[f64]) -> f64 {
    let (mean, n) = (mean(values), values.len() as f64);
    values
        .iter()
        .map(|value| (value - mean) * (value - mean))
        .sum::<f64>()
        / (n - 1.0)
        / n
}

/// Jain's index: (Σx)² / (n · Σx²).
fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    sum * sum / (values.len() as f64 * values.iter().map(|value| value * value).sum::<f64>())
}

/// The mean of the upper half over the mean of the lower half.
fn halves(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let (low, high) = values.split_at(values.len() / 2);
    mean(high) / mean(low)
}

/// Collects comparisons and reports at the end which failed.
#[derive(Default)]
struct Comparison {
    table: String,
    failures: String,
}

impl Comparison {
    /// Compares one quantity's values from ns-2 with those of the simulator.
    fn hold(
        &mut self,
        network: &str,
        quantity: &str,
        theirs: &[f64],
        ours: &[f64],
        resolution: f64,
    ) {
        let difference = mean(ours) - mean(theirs);
        let error = (variance_of_mean(theirs) + variance_of_mean(ours)).sqrt();
        let allowed = 4.0 * error + resolution;
        let line = format!(
            "{network:20} {quantity:16} ns-2 {:12.3} ± {:.3} ours {:12.3} ± {:.3} difference {difference:10.3} allowed {allowed:10.3}",
            mean(theirs),
            variance_of_mean(theirs).sqrt(),
            mean(ours),
            variance_of_mean(ours).sqrt(),
        );
        writeln!(self.table, "{line}").unwrap();
        if difference.abs() > allowed {
            writeln!(self.failures, "{line}").unwrap();
        }
    }

    fn finish(self) {
        if std::env::var_os("SHOW_TABLES").is_some() {
            #[allow(
                clippy::print_stderr,
                reason = "asked for by the environment, for the documentation"
            )]
            {
                eprint!("{}", self.table);
            }
        }
        assert!(
            self.failures.is_empty(),
            "beyond chance:\n{}\nall:\n{}",
            self.failures,
            self.table
        );
    }
}

/// Runs a network from seeds 1 to `count`, on two threads.
fn simulate(network: &Network, count: u64) -> Vec<RunReport> {
    let one = |seed| run(network, Seed::new(seed), &RunOptions::default()).unwrap();
    std::thread::scope(|scope| {
        let odd = scope.spawn(move || (1..=count).step_by(2).map(one).collect::<Vec<_>>());
        let mut all: Vec<_> = (2..=count).step_by(2).map(one).collect();
        all.extend(odd.join().unwrap());
        all
    })
}

fn column(rows: &[Vec<f64>], at: usize) -> Vec<f64> {
    rows.iter().map(|row| row[at]).collect()
}

fn sum_of(report: &RunReport, value: impl Fn(&FlowReport) -> u64) -> f64 {
    report.flows.iter().map(value).sum::<u64>() as f64
}

fn recovery(name: &str) -> RecoveryConfig {
    RecoveryConfig::by_name(name).unwrap().as_in_ns2()
}

// ---------------------------------------------------------------- one bottleneck

/// Drops, retransmissions and fairness of greedy flows against rows of `dumbbell.tcl`.
fn hold_dumbbell(
    comparison: &mut Comparison,
    name: &str,
    theirs: &[Vec<f64>],
    ours: &[RunReport],
    wire: f64,
) {
    // A row: seed, drops, drops after the warm-up, sent, retransmitted, delivered by each flow.
    let ours: Vec<Vec<f64>> = ours
        .iter()
        .map(|report| {
            let drops: u64 = report.links.iter().map(|link| link.dropped_full).sum();
            let mut row = vec![
                report.seed.get() as f64,
                drops as f64,
                report.links[0].dropped_measured as f64,
            ];
            row.push(sum_of(report, |flow| flow.sent_packets));
            row.push(sum_of(report, |flow| flow.retransmitted_packets));
            row.extend(
                report
                    .flows
                    .iter()
                    .map(|flow| flow.delivered_wire_bytes as f64 / wire),
            );
            row
        })
        .collect();
    let mut hold = |quantity: &str, resolution, value: &dyn Fn(&[f64]) -> f64| {
        let all = |rows: &[Vec<f64>]| rows.iter().map(|row| value(row)).collect::<Vec<_>>();
        comparison.hold(name, quantity, &all(theirs), &all(&ours), resolution);
    };
    hold("drops", 2.0, &|row| row[1]);
    hold("drops after", 2.0, &|row| row[2]);
    hold("retransmitted", 2.0, &|row| row[4]);
    hold("delivered", 3.0, &|row| row[5..].iter().sum());
    hold("fairness", 0.002, &|row| jain(&row[5..]));
    hold("upper / lower", 0.01, &|row| halves(&row[5..]));
}

#[test]
fn greedy_flows_on_the_dumbbell_lose_and_share_as_in_ns2() {
    let vectors = include_str!("../../../vectors/ns2/dumbbell.txt");
    let mut comparison = Comparison::default();
    for variant in ["tahoe", "reno", "newreno", "sack"] {
        for (flows, window) in [(50, 10), (30, 20), (30, 80)] {
            let name = format!("{variant}-{flows}-{window}");
            let tcp = common::ns2_tcp(Config::NS2_2_35, recovery(variant), 1_500, window);
            let ours = simulate(&common::table1(flows, &tcp, 500, Span::from_millis(20)), 8);
            hold_dumbbell(
                &mut comparison,
                &name,
                &rows(vectors, &name),
                &ours,
                1_500.0,
            );
        }
    }
    comparison.finish();
}

/// With few outstanding segments nothing is ever dropped. Runs then differ by at most a packet or
/// two for each flow.
#[test]
fn clamped_windows_on_the_dumbbell_lose_nothing() {
    let vectors = include_str!("../../../vectors/ns2/dumbbell.txt");
    let networks = [
        ("reno-2-10", 2, 10, 20),
        ("reno-40-10", 40, 10, 20),
        ("reno-30-5", 30, 5, 20),
        ("reno-30-10-1ms", 30, 10, 1),
        ("reno-30-10-100ms", 30, 10, 100),
    ];
    for (name, flows, window, delay) in networks {
        let tcp = common::ns2_tcp(Config::NS2_2_35, recovery("reno"), 1_500, window);
        let ours = simulate(
            &common::table1(flows, &tcp, 500, Span::from_millis(delay)),
            3,
        );
        let theirs = rows(vectors, name);
        assert!(theirs.iter().all(|row| row[1] == 0.0), "{name}");
        for (report, row) in ours.iter().zip(&theirs) {
            assert_eq!(
                report
                    .links
                    .iter()
                    .map(|link| link.dropped_full)
                    .sum::<u64>(),
                0,
                "{name}"
            );
            // The bottleneck is busy from the start of the first flows, some time in the first
            // second: 125 packets.
            let sent = sum_of(report, |flow| flow.sent_packets);
            let bound = 125.0 + 2.0 * flows as f64;
            assert!(
                (sent - row[3]).abs() <= bound,
                "{name}: {sent} sent, ns-2 {}",
                row[3]
            );
            let delivered = sum_of(report, |flow| flow.delivered_wire_bytes / 1_500);
            let expected: f64 = row[5..].iter().sum();
            assert!(
                (delivered - expected).abs() <= flows as f64,
                "{name}: {delivered}, ns-2 {expected}"
            );
            let each: Vec<f64> = report
                .flows
                .iter()
                .map(|flow| flow.delivered_wire_bytes as f64)
                .collect();
            // The last flow to start may miss one window in the queue's cycle: 10 of 1,400 packets.
            assert!(jain(&each) > 0.9999, "{name}: {}", jain(&each));
        }
    }
}

/// Four greedy flows through 1 Mb/s, as in the network of IFTP: 20 ms, access of 10 Mb/s and 5 ms.
#[test]
fn four_flows_lose_and_share_as_in_ns2() {
    let vectors = include_str!("../../../vectors/ns2/four_flows.txt");
    let mut comparison = Comparison::default();
    for buffer in [20, 100, 150] {
        let name = format!("buffer-{buffer}");
        let mut builder = common::Builder::new(120, 0);
        let (left, right) = (builder.node("left"), builder.node("right"));
        let (rate, delay) = (Rate::from_mbps(1), Span::from_millis(20));
        builder.link(
            left,
            right,
            common::link_config(rate, delay, Limit::Packets(buffer)),
        );
        builder.link(
            right,
            left,
            common::link_config(rate, delay, Limit::Unlimited),
        );
        let access = common::link_config(
            Rate::from_mbps(10),
            Span::from_millis(5),
            Limit::Packets(1_000),
        );
        for index in 0..4 {
            let (source, sink) = (
                builder.node(&format!("s{index}")),
                builder.node(&format!("d{index}")),
            );
            builder.duplex(source, left, &access);
            builder.duplex(right, sink, &access);
            let tcp = common::ns2_tcp(Config::NS2_2_35, recovery("reno"), 1_000, 50);
            builder.flow("tcp", (source, sink), tcp, Workload::Greedy);
        }
        hold_dumbbell(
            &mut comparison,
            &name,
            &rows(vectors, &name),
            &simulate(&builder.network, 16),
            1_000.0,
        );
    }
    comparison.finish();
}

/// 16 SACK TCP and 16 of the controller through the Table 1 network, with a separate access delay
/// for every flow, spread evenly from 1 to 9 ms.
fn beside_sack(controller: &str, buffer: u32, seed: u64) -> Network {
    let mut builder = common::Builder::new(500, 50);
    let (left, right) = (builder.node("left"), builder.node("right"));
    let link = |limit| common::link_config(Rate::from_kbps(1_500), Span::from_millis(20), limit);
    builder.link(left, right, link(Limit::Packets(buffer)));
    builder.link(right, left, link(Limit::Packets(100_000)));
    for index in 0..32 {
        let source = builder.node(&format!("s{index}"));
        let sink = builder.node(&format!("d{index}"));
        // Multiples of the golden ratio leave no gap, for any number of flows.
        let fraction = ((seed * 32 + index) as f64 * 0.618_033_988_75).fract();
        let delay = Span::from_secs_f64(0.001 + 0.008 * fraction);
        let access = common::link_config(Rate::from_mbps(10), delay, Limit::Packets(1_000));
        builder.duplex(source, left, &access);
        builder.duplex(right, sink, &access);
        let (group, transport) = if index < 16 {
            let tcp = common::ns2_tcp(Config::NS2_2_35, recovery("sack"), 1_500, 1_000);
            ("tcp", tcp)
        } else {
            let mut sections = common::sections(controller);
            if let TransportSpec::Sections(spec) = &mut sections {
                spec.config.payload = 1_460;
            }
            (controller, sections)
        };
        builder.flow(group, (source, sink), transport, Workload::Greedy);
    }
    builder.network
}

/// RAP and TFRC beside as many SACK TCP. With one delay for all flows the phases decide
/// (docs/results/rap-tfrc.md), so every flow has a different delay here, in both simulators.
#[test]
fn rap_and_tfrc_share_with_sack_as_in_ns2() {
    let vectors = include_str!("../../../vectors/ns2/peers.txt");
    let mut comparison = Comparison::default();
    for controller in ["rap", "tfrc"] {
        for buffer in [400, 50] {
            let name = format!("{controller}-{buffer}");
            // A row: seed, mean rate of TCP, mean rate of the others, drops.
            let theirs: Vec<f64> = rows(vectors, &name)
                .iter()
                .map(|row| row[2] / (row[1] + row[2]))
                .collect();
            let ours: Vec<f64> = (1..=10)
                .map(|seed| {
                    let network = beside_sack(controller, buffer, seed);
                    let report = run(&network, Seed::new(seed), &RunOptions::default()).unwrap();
                    let (tcp, others) = report.flows.split_at(16);
                    let sum = |flows: &[FlowReport]| {
                        flows.iter().map(|flow| flow.throughput_bps).sum::<f64>()
                    };
                    sum(others) / (sum(tcp) + sum(others))
                })
                .collect();
            comparison.hold(&name, "share of others", &theirs, &ours, 0.01);
        }
    }
    comparison.finish();
}

// ---------------------------------------------------------------- several bottlenecks

#[test]
fn the_parking_lot_is_shared_as_in_ns2() {
    let mut builder = common::Builder::new(100, 0);
    let hops: Vec<_> = (0..5)
        .map(|index| builder.node(&format!("hop{index}")))
        .collect();
    let hop = common::link_config(
        Rate::from_mbps(100),
        Span::from_millis(10),
        Limit::Packets(83),
    );
    let mut bottlenecks = Vec::new();
    for pair in hops.windows(2) {
        bottlenecks.push(builder.link(pair[0], pair[1], hop.clone()));
        builder.link(pair[1], pair[0], hop.clone());
    }
    let flows = [(0, 4, 25_000), (0, 4, 25_000), (0, 4, 2_500), (0, 4, 2_500)];
    let short = (0..4).map(|index| (index, index + 1, 2_500));
    for (index, (first, last, micros)) in flows.into_iter().chain(short).enumerate() {
        let (source, sink) = (
            builder.node(&format!("s{index}")),
            builder.node(&format!("d{index}")),
        );
        let access = common::link_config(
            Rate::from_mbps(1_000),
            Span::from_micros(micros),
            Limit::Unlimited,
        );
        builder.duplex(source, hops[first], &access);
        builder.duplex(hops[last], sink, &access);
        let tcp = common::ns2_tcp(Config::NS2_2_35, recovery("newreno"), 1_500, 100_000);
        builder.flow("tcp", (source, sink), tcp, Workload::Greedy);
    }
    // A row: seed, bytes acknowledged by each flow, drops at each link.
    let ours: Vec<Vec<f64>> = simulate(&builder.network, 8)
        .iter()
        .map(|report| {
            let delivered = report
                .flows
                .iter()
                .map(|flow| flow.delivered_bytes as f64 / 1_460.0);
            let drops = bottlenecks
                .iter()
                .map(|&link| report.links[link].dropped_full as f64);
            [report.seed.get() as f64]
                .into_iter()
                .chain(delivered)
                .chain(drops)
                .collect()
        })
        .collect();
    let theirs = rows(include_str!("../../../vectors/ns2/parking_lot.txt"), "");
    let mut comparison = Comparison::default();
    let mut hold = |quantity: &str, resolution, columns: std::ops::Range<usize>| {
        let all = |rows: &[Vec<f64>]| {
            rows.iter()
                .map(|row| mean(&row[columns.clone()]))
                .collect::<Vec<_>>()
        };
        comparison.hold(
            "parking lot",
            quantity,
            &all(&theirs),
            &all(&ours),
            resolution,
        );
    };
    hold("long", 50.0, 1..3);
    hold("medium", 100.0, 3..5);
    hold("short", 500.0, 5..9);
    hold("drops", 5.0, 9..13);
    comparison.finish();
}

// ---------------------------------------------------------------- constant rates

#[test]
fn spaced_packets_pass_and_drop_as_in_ns2() {
    let vectors = include_str!("../../../vectors/ns2/packet_spacing.txt");
    let mut comparison = Comparison::default();
    let simulate = |gap, tcp, jitter, seeds| -> Vec<Vec<f64>> {
        let transport = common::ns2_tcp(Config::NS2_2_35, recovery("reno"), 1_500, 20);
        let mut network = common::packet_spacing(16, tcp, Span::from_micros(gap), &transport, 20);
        for flow in &mut network.flows {
            if let Workload::Cbr { jitter: share, .. } = &mut flow.workload {
                *share = jitter;
            }
        }
        // A row: seed, passed, dropped, received by each constant-rate flow, received by each TCP
        // flow.
        let row = |report: &RunReport| {
            let gateway = &report.links[0];
            let left = gateway.offered_packets - gateway.dropped_full - gateway.queued_at_end;
            let mut row = vec![
                report.seed.get() as f64,
                left as f64,
                gateway.dropped_full as f64,
            ];
            row.extend(
                report
                    .flows
                    .iter()
                    .map(|flow| flow.delivered_wire_bytes as f64 / 1_500.0),
            );
            row
        };
        simulate(&network, seeds).iter().map(row).collect()
    };
    for tcp in [0, 16] {
        for gap in [0, 200, 1_000, 2_000, 5_000] {
            let name = format!("gap-{gap}-tcp-{tcp}");
            let (theirs, ours) = (rows(vectors, &name), simulate(gap, tcp, 1.0, 6));
            let mut hold = |quantity: &str, share: f64, value: &dyn Fn(&[f64]) -> f64| {
                let all = |rows: &[Vec<f64>]| rows.iter().map(|row| value(row)).collect::<Vec<_>>();
                let theirs = all(&theirs);
                let resolution = 2.0 + share * mean(&theirs).abs();
                comparison.hold(&name, quantity, &theirs, &all(&ours), resolution);
            };
            hold("passed", 0.001, &|row| row[1]);
            hold("dropped", 0.002, &|row| row[2]);
            hold("spread", 0.02, &|row| {
                let flows = &row[3..19];
                (variance_of_mean(flows) * flows.len() as f64).sqrt()
            });
            if tcp > 0 {
                hold("tcp", 0.005, &|row| mean(&row[19..]));
            }
        }
    }
    // Exactly periodic senders lock into a pattern: some lose most packets, others none. The total
    // loss is the excess over the capacity, in any pattern.
    let (theirs, ours) = (
        rows(vectors, "periodic-1000-tcp-0"),
        simulate(1_000, 0, 0.0, 3),
    );
    for (quantity, at, share) in [("passed", 1, 0.005), ("dropped", 2, 0.02)] {
        let theirs = column(&theirs, at);
        let resolution = share * mean(&theirs);
        comparison.hold(
            "periodic",
            quantity,
            &theirs,
            &column(&ours, at),
            resolution,
        );
    }
    comparison.finish();
}

// ---------------------------------------------------------------- errors

/// A file of 5 MB over a link that loses packets while it is on, for periods of a second on
/// average.
fn over_errors(variant: &str, loss: f64, is_forward: bool) -> Network {
    let mut config = Config::NS2_2000;
    config.rtt.tick = Span::from_millis(500);
    config.rtt.min_timeout = Span::from_secs(1);
    let tcp = common::ns2_tcp(config, recovery(variant), 1_500, 24);
    let mut builder = common::Builder::new(4_000, 0);
    let (a, b) = (builder.node("a"), builder.node("b"));
    let (rate, delay) = (Rate::from_kbps(1_900), Span::from_millis(15));
    let mut forward = common::link_config(rate, delay, Limit::Packets(10));
    let mut reverse = common::link_config(rate, delay, Limit::Packets(10_000));
    if loss > 0.0 {
        let model = LossModel::OnOff {
            mean_on: Span::from_secs(1),
            mean_off: Span::from_secs(1),
            drop_on: loss,
            drop_off: 0.0,
            start_on: true,
            shared: None,
        };
        let way = if is_forward {
            &mut forward
        } else {
            &mut reverse
        };
        way.losses.push(Loss {
            model,
            place: LossPlace::AfterTransmission,
        });
    }
    builder.link(a, b, forward);
    builder.link(b, a, reverse);
    builder
        .flow(
            "tcp",
            (a, b),
            tcp,
            Workload::File(DataSize::new(3_591 * 1_460)),
        )
        .start = Start::default();
    builder.network
}

#[test]
fn a_file_over_a_link_that_is_on_and_off_takes_as_long_as_in_ns2() {
    let vectors = include_str!("../../../vectors/ns2/on_off.txt");
    let mut comparison = Comparison::default();
    let mut hold = |variant: &str, is_forward: bool, loss: f64| {
        let name = format!(
            "{variant} {} {loss}",
            if is_forward { "forth" } else { "back" }
        );
        let theirs = rows(vectors, &name);
        // A row: seed, seconds, sent, retransmitted, timeouts, drops at the queue.
        let row = |report: &RunReport| {
            let flow = &report.flows[0];
            let finished = flow.finished.expect("the file arrives").as_secs_f64();
            let [sent, again] = [flow.sent_packets, flow.retransmitted_packets].map(|n| n as f64);
            // ns-2's monitor of the queue also counts the losses of the error model behind it.
            let drops = (report.links[0].dropped_full + report.links[0].lost) as f64;
            vec![
                report.seed.get() as f64,
                finished,
                sent,
                again,
                flow.timeouts as f64,
                drops,
            ]
        };
        let ours: Vec<Vec<f64>> = simulate(&over_errors(variant, loss, is_forward), 40)
            .iter()
            .map(row)
            .collect();
        // Times are long-tailed, because timeouts double: their logarithms are not.
        let logarithms =
            |rows: &[Vec<f64>]| rows.iter().map(|row| libm::log(row[1])).collect::<Vec<_>>();
        comparison.hold(
            &name,
            "ln seconds",
            &logarithms(&theirs),
            &logarithms(&ours),
            0.005,
        );
        for (quantity, at) in [("retransmitted", 3), ("timeouts", 4), ("drops", 5)] {
            comparison.hold(
                &name,
                quantity,
                &column(&theirs, at),
                &column(&ours, at),
                0.5,
            );
        }
    };
    for variant in ["tahoe", "reno", "newreno"] {
        for loss in [0.05, 0.2, 0.5] {
            hold(variant, true, loss);
        }
    }
    for loss in [0.2, 0.5] {
        hold("reno", false, loss);
    }
    comparison.finish();
}

#[test]
fn the_same_file_without_errors_takes_exactly_as_long_as_in_ns2() {
    let vectors = include_str!("../../../vectors/ns2/on_off.txt");
    for variant in ["tahoe", "reno", "newreno"] {
        let theirs = &rows(vectors, &format!("{variant} forth 0"))[0];
        let report = &simulate(&over_errors(variant, 0.0, true), 1)[0];
        let flow = &report.flows[0];
        let ours = [
            flow.retransmitted_packets,
            flow.timeouts,
            report.links[0].dropped_full,
        ]
        .map(|n| n as f64);
        assert_eq!(
            ours[..],
            theirs[3..],
            "{variant}: retransmitted, timeouts, drops"
        );
        let finished = flow.completion_time().unwrap().as_secs_f64();
        assert!(
            (finished - theirs[1]).abs() < 2e-6,
            "{variant}: {finished}, ns-2 {}",
            theirs[1]
        );
    }
}
