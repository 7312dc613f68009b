//! Short flows: random arrivals and sizes, connections of a trace, and how long the flows take.

use std::io;
use std::num::NonZeroUsize;
use std::path::Path;

use comity_sim::host::{file_size, plans};
use comity_sim::network::{Network, Start};
use comity_sim::report::{FlowReport, RunReport};
use comity_sim::scenario::{Execution, Files, NoFiles, Reading, Scenario, execute, simulate};
use comity_units::{DataSize, Seed, Span, Time};

/// Short flows of 30 kB on average, 20 a second, beside one long flow.
fn scenario(count: u32, keys: &str) -> Scenario {
    let text = format!(
        "[scenario]\n\
         name = \"x\"\n\
         duration = \"30s\"\n\
         warmup = \"5s\"\n\
         seeds = [1, 2, 3]\n\
         [topology]\n\
         kind = \"dumbbell\"\n\
         bottleneck = {{ rate = \"20Mbps\", delay = \"10ms\", queue = 100 }}\n\
         [[flow]]\n\
         group = \"long\"\n\
         [[flow]]\n\
         group = \"short\"\n\
         count = {count}\n\
         start = {{ at = \"1s\", arrivals = \"50ms\" }}\n\
         workload = {{ kind = \"file\", size = {{ kind = \"pareto\", mean = \"30kB\", max = \"3MB\" }} }}\n\
         {keys}\n"
    );
    Scenario::parse("x.toml", &text, NoFiles, &Reading::default()).unwrap()
}

fn first(scenario: &Scenario) -> (Network, RunReport) {
    let run = &scenario.runs()[0];
    let (network, settings) = scenario.prepare(run);
    let report = simulate(&network, run, &settings).unwrap();
    (network, report)
}

fn starts(network: &Network, seed: u64) -> Vec<Time> {
    let plans = plans(network, Seed::new(seed)).unwrap();
    plans.iter().map(|plan| plan.started_at).collect()
}

#[test]
fn arrivals_are_a_poisson_process() {
    let scenario = scenario(20_000, "");
    let (network, _) = scenario.prepare(&scenario.runs()[0]);
    let starts = starts(&network, 1);
    assert_eq!(starts[0], Time::ZERO, "the long flow does not wait");
    assert!(starts[1] > Time::from_secs(1));
    let intervals: Vec<f64> = starts[1..]
        .windows(2)
        .map(|pair| pair[1].since(pair[0]).unwrap().as_secs_f64() / 0.05)
        .collect();
    let n = intervals.len() as f64;
    let mean = intervals.iter().sum::<f64>() / n;
    assert!((mean - 1.0).abs() < 5.0 / n.sqrt(), "{mean}");
    // Exponential: P(x > 1) = 1/e, and the next interval does not depend on this one.
    let share = |chosen: &[f64]| {
        let long = chosen.iter().filter(|interval| **interval > 1.0).count();
        long as f64 / chosen.len() as f64
    };
    let expected = libm::exp(-1.0);
    let error = |n: f64| 5.0 * (expected * (1.0 - expected) / n).sqrt();
    assert!((share(&intervals) - expected).abs() < error(n));
    let after_long: Vec<f64> = intervals
        .windows(2)
        .filter(|pair| pair[0] > 1.0)
        .map(|pair| pair[1])
        .collect();
    assert!((share(&after_long) - expected).abs() < error(after_long.len() as f64));
}

#[test]
fn arrivals_of_two_groups_do_not_depend_on_each_other() {
    let scenario = scenario(10, "");
    let (mut network, _) = scenario.prepare(&scenario.runs()[0]);
    let before = starts(&network, 1);
    assert_ne!(before, starts(&network, 2));
    // From the sixth flow on, another process begins at 3 s.
    for flow in &mut network.flows[6..] {
        flow.start = Start {
            at: Time::from_secs(3),
            ..flow.start
        };
    }
    let after = starts(&network, 1);
    assert_eq!(before[..6], after[..6]);
    let moved = |at: usize| after[at].since(Time::from_secs(3)).unwrap();
    let interval = |at: usize| before[at].since(before[at - 1]).unwrap();
    assert_eq!(moved(6), interval(6));
    assert_eq!(moved(7), interval(6) + interval(7));
}

#[test]
fn short_flows_have_completion_times_and_the_others_are_counted() {
    let (network, report) = first(&scenario(1_000, ""));
    let plans = plans(&network, report.seed).unwrap();
    let (mut completed, mut arrived) = (0, 0);
    for ((spec, flow), plan) in network.flows.iter().zip(&report.flows).zip(&plans).skip(1) {
        assert_eq!(flow.started, plan.started_at);
        let size = file_size(spec, report.seed).unwrap();
        assert_eq!(flow.size_bytes, Some(size.get()));
        assert!(size <= DataSize::new(3_000_000));
        match flow.completion_time() {
            Some(time) => {
                completed += 1;
                assert_eq!(flow.delivered_bytes_total, size.get());
                // At least two round trips of 20 ms: the handshake, and the data.
                assert!(time >= Span::from_millis(40), "{time}");
                let rate = size.bits() as f64 / time.as_secs_f64();
                assert!(rate < 20e6, "{rate}");
            }
            None => assert!(flow.delivered_bytes_total <= size.get()),
        }
        if flow.started < Time::from_secs(30) {
            arrived += 1;
        } else {
            assert_eq!(flow.sent_packets, 0);
        }
        let is_measured = flow.started >= Time::from_secs(5) && flow.started < Time::from_secs(30);
        assert_eq!(report.is_measured_transfer(flow), is_measured);
    }
    // 29 s with 20 arrivals a second: five standard deviations are 120.
    assert!((460..700).contains(&arrived), "{arrived}");
    assert!(completed > arrived * 9 / 10, "{completed} of {arrived}");
    assert!(!report.is_measured_transfer(&report.flows[0]));
    assert_eq!(report.flows[0].completion_time(), None);
}

#[test]
fn a_stopped_flow_has_no_completion_time() {
    let (_, report) = first(&scenario(1_000, "stop = \"10s\""));
    let short = &report.flows[1..];
    let stopped = |flow: &&FlowReport| flow.completion_time().is_none();
    let cut = short
        .iter()
        .filter(stopped)
        .filter(|it| it.sent_packets > 0);
    // Those that had data left at 10 s, and what was sent of them may be acknowledged.
    assert!((1..100).contains(&cut.clone().count()));
    for flow in cut {
        assert!(flow.delivered_bytes_total < flow.size_bytes.unwrap());
    }
    for flow in short.iter().filter(|it| it.started >= Time::from_secs(10)) {
        assert_eq!(flow.sent_packets, 0);
        assert!(!report.is_measured_transfer(flow));
    }
}

#[test]
fn runs_do_not_depend_on_the_number_of_threads() {
    let scenario = scenario(300, "");
    let runs = scenario.runs();
    let reports = |jobs: usize| {
        let execution = Execution {
            jobs: NonZeroUsize::new(jobs),
            longest_first: false,
            cancel: None,
        };
        let mut reports = Vec::new();
        execute(
            &scenario,
            &runs,
            &execution,
            simulate,
            |_| {},
            |outcome| reports.push(outcome.report.unwrap()),
        )
        .unwrap();
        reports
    };
    let one = reports(1);
    assert_eq!(one.len(), 3);
    assert_eq!(one, reports(3));
    assert_ne!(one[0].fingerprint, one[1].fingerprint);
}

struct Trace(&'static str);

impl Files for Trace {
    fn read(&self, _: &Path) -> io::Result<String> {
        Ok(self.0.into())
    }
}

/// Three connections of a trace, with 50 ms each way at 8 Mb/s, in segments of 1000 bytes on the
/// wire, 960 of them payload, from a window of one segment. A segment takes 1 ms, a header 0.04 ms:
///
/// ```text
/// handshake                                        2 · 50.04               = 100.08 ms
/// round of one segment                             51 + 50.04              = 101.04 ms
/// one segment: 100.08 + 101.04                                             = 201.12 ms
/// 15 segments: 100.08 + 3 · 101.04 + 8 · 1 + 50 + 50.04                    = 511.24 ms
/// ```
#[test]
fn connections_of_a_trace_take_as_long_as_slow_start_by_rounds() {
    let trace = "SEQ 250000 1 1 1\nw 1 1\nr 1\nl 0 0\n> 14400\nt 5000000\n< 960\n\
        SEQ 1000000 1 1 2\n> 77\n\
        SEQ 2000000 2 1 3\n> 7\nt 9\n< 4800\nt 800000\n> 9\nt 5\n< 9600\n";
    for (sender, keys, expected) in [
        ("acceptor", "", &[(500, 201_120), (4_000, 511_240)][..]),
        ("acceptor", "count = 1", &[(500, 201_120)]),
        ("initiator", "count = 1", &[(500, 511_240)]),
    ] {
        let text = format!(
            "[scenario]\n\
             name = \"x\"\n\
             duration = \"5s\"\n\
             [topology]\n\
             kind = \"dumbbell\"\n\
             bottleneck = {{ rate = \"8Mbps\", delay = \"50ms\", queue = \"unlimited\" }}\n\
             [[flow]]\n\
             group = \"trace\"\n\
             preset = \"ns2-2.35\"\n\
             packet = \"1000B\"\n\
             initial_window = 1\n\
             rwnd = 1000\n\
             workload = {{ kind = \"tmix\", file = \"x\", sender = \"{sender}\", scale = 2 }}\n\
             {keys}\n"
        );
        let scenario = Scenario::parse("x.toml", &text, Trace(trace), &Reading::default()).unwrap();
        let (_, report) = first(&scenario);
        let found: Vec<_> = report
            .flows
            .iter()
            .map(|flow| {
                let took = flow.completion_time().map(Span::as_micros);
                (flow.started.since(Time::ZERO).unwrap().as_millis(), took)
            })
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|&(at, took)| (at, Some(took)))
            .collect();
        assert_eq!(found, expected, "{sender} {keys}");
    }
}

/// A group of many short flows keeps a bounded memory for each, ended or not.
#[test]
fn ten_thousand_short_flows_have_a_bounded_memory() {
    let text = "[scenario]\n\
        name = \"x\"\n\
        duration = \"10s\"\n\
        [topology]\n\
        kind = \"dumbbell\"\n\
        bottleneck = { rate = \"1Gbps\", delay = \"10ms\", queue = 1000 }\n\
        [[flow]]\n\
        group = \"short\"\n\
        count = 10_000\n\
        start = { arrivals = \"900us\" }\n\
        preset = \"modern\"\n\
        controller = \"cubic\"\n\
        workload = { kind = \"file\", size = { kind = \"pareto\", mean = \"10kB\", max = \"1MB\" } }\n";
    let scenario = Scenario::parse("x.toml", text, NoFiles, &Reading::default()).unwrap();
    let (_, report) = first(&scenario);
    let ended = report
        .flows
        .iter()
        .filter(|it| it.completion_time().is_some());
    assert!(ended.count() > 9_900);
    let each = report.cost.memory_bytes / 10_000;
    assert!((1_000..4_000).contains(&each), "{each} bytes a flow");
}
