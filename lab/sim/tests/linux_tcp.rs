//! The preset "modern" beside Linux flows, and ECN marks on TCP.

use comity_sim::report::{LinkReport, RunReport};
use comity_sim::scenario::{NoFiles, Reading, Scenario};
use comity_sim::{RunOptions, run};

/// The reports of greedy flows over 8 Mb/s, 20 ms in each direction, with this queue, from second
/// 10 to 60.
fn simulate(queue: &str, seeds: u64, flows: &[(&str, u32)], settings: &str) -> Vec<RunReport> {
    let groups: String = flows
        .iter()
        .map(|(controller, count)| {
            format!(
                "[[flow]]\ngroup = \"{controller}\"\ncount = {count}\ncontroller = \"{controller}\"\n\
                 start = {{ spread = \"300ms\" }}\n{settings}\n"
            )
        })
        .collect();
    let text = format!(
        "[scenario]\nname = \"x\"\nduration = \"60s\"\nwarmup = \"10s\"\n\
         seeds = {{ first = 1, count = {seeds} }}\n\
         [topology]\nkind = \"dumbbell\"\naccess = \"none\"\n\
         bottleneck = {{ rate = \"8Mbps\", delay = \"20ms\", queue = {queue}, reverse = {{ queue = 1000 }} }}\n{groups}"
    );
    let scenario = Scenario::parse("x.toml", &text, NoFiles, &Reading::default());
    let scenario = scenario.unwrap_or_else(|problems| panic!("{problems}"));
    scenario
        .runs()
        .iter()
        .map(|it| {
            let (network, _) = scenario.prepare(it);
            run(&network, it.seed, &RunOptions::default()).expect("it can be run")
        })
        .collect()
}

fn bottleneck(report: &RunReport) -> &LinkReport {
    report
        .links
        .iter()
        .find(|link| link.name == "bottleneck")
        .expect("a dumbbell has one")
}

/// Means over the runs: queueing delay in milliseconds, and drops of a thousand packets.
fn queue_and_drops(reports: &[RunReport]) -> (f64, f64) {
    let count = reports.len() as f64;
    let mean = |of: &dyn Fn(&LinkReport) -> f64| {
        reports
            .iter()
            .map(|report| of(bottleneck(report)))
            .sum::<f64>()
            / count
    };
    let wait = mean(&|link| link.queueing_delay.mean * 1_000.0);
    let drops = mean(&|link| {
        link.dropped_measured as f64 / (link.carried_bytes as f64 / 1_500.0) * 1_000.0
    });
    (wait, drops)
}

/// Linux 6.18 between network namespaces, seconds 10 to 60 (docs/results/linux-tcp.md): the mean
/// queueing delay within a twentieth, and drops within a third, of the nearer of two runs.
#[test]
fn greedy_flows_queue_and_lose_as_those_of_linux() {
    for (flows, wait, drops) in [
        (&[("cubic", 1)][..], (73.5, 73.5), (0.51, 0.51)),
        (&[("reno", 1)], (58.9, 58.9), (0.51, 0.51)),
        (&[("cubic", 1), ("reno", 1)], (70.0, 70.0), (1.6, 1.6)),
        (&[("cubic", 4)], (78.0, 78.0), (4.3, 4.6)),
        (&[("reno", 4)], (64.0, 66.0), (6.5, 6.5)),
    ] {
        let found = queue_and_drops(&simulate("60", 3, flows, ""));
        let (low, high) = (wait.0 * 0.95, wait.1 * 1.05);
        assert!((low..=high).contains(&found.0), "{flows:?}: {found:?}");
        let (low, high) = (drops.0 * 0.67, drops.1 * 1.33);
        assert!((low..=high).contains(&found.1), "{flows:?}: {found:?}");
    }
}

#[test]
fn a_marking_queue_drops_nothing_of_ecn_capable_flows() {
    const CODEL: &str = "{ kind = \"codel\", ecn = true, limit = 200 }";
    for marks in [true, false] {
        let settings = format!("ecn = {marks}");
        for report in simulate(CODEL, 2, &[("cubic", 2), ("reno", 2)], &settings) {
            let link = bottleneck(&report);
            let dropped = link.dropped_full + link.dropped_early;
            let retransmitted: u64 = report
                .flows
                .iter()
                .map(|flow| flow.retransmitted_packets)
                .sum();
            assert!(
                link.utilisation.is_some_and(|share| share > 0.97),
                "{link:?}"
            );
            // The queue signals some 400 times in a minute, by mark or drop; the beginning may fill
            // it.
            if marks {
                assert!((100..2_000).contains(&link.marked), "{link:?}");
                assert!(
                    dropped == 0 && retransmitted == 0,
                    "{dropped} dropped, {retransmitted} retransmitted"
                );
            } else {
                assert!((100..2_000).contains(&dropped), "{link:?}");
                assert_eq!(link.marked, 0);
                // The last drop of each flow may not be retransmitted yet when the run ends.
                assert!(
                    retransmitted + 4 >= dropped,
                    "{dropped} dropped, {retransmitted} retransmitted"
                );
            }
        }
    }
}
