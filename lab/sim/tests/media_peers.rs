//! GCC and SCReAMv2 under an encoder that follows its target bitrate.

use comity_sim::report::RunReport;
use comity_sim::scenario::{NoFiles, Reading, Scenario, simulate};

/// An encoder of 150 kb/s to 6 Mb/s over 60 s, 50 ms one way, and what shares its path.
fn report(controller: &str, link: &str, others: &str, seed: usize) -> RunReport {
    let text = format!(
        "[scenario]\n\
         name = \"x\"\n\
         duration = \"60s\"\n\
         warmup = \"20s\"\n\
         bins = \"1s\"\n\
         seeds = {{ count = 3 }}\n\
         [topology]\n\
         kind = \"dumbbell\"\n\
         bottleneck = {{ delay = \"50ms\", {link}, reverse = {{ queue = 1000, jitter = \"6ms\" }} }}\n\
         [[flow]]\n\
         group = \"media\"\n\
         transport = \"sections\"\n\
         controller = \"{controller}\"\n\
         latency = \"400ms\"\n\
         workload = {{ kind = \"encoder\", max_rate = \"6Mbps\" }}\n\
         {others}"
    );
    let scenario = Scenario::parse("x.toml", &text, NoFiles, &Reading::default()).unwrap();
    let run = &scenario.runs()[seed];
    let (network, settings) = scenario.prepare(run);
    simulate(&network, run, &settings).unwrap()
}

/// The mean delivered rate of the media from second `from` to second `to`, in Mb/s.
fn delivered(report: &RunReport, from: usize, to: usize) -> f64 {
    let bins = &report.series.as_ref().unwrap().flows[0].delivered_bytes[from..to];
    bins.iter().sum::<u64>() as f64 * 8e-6 / (to - from) as f64
}

const STEADY: &str = "rate = \"4Mbps\", queue = 100";
const DOWNLOAD: &str =
    "[[flow]]\ngroup = \"tcp\"\ncontroller = \"cubic\"\nstart = { spread = \"1s\" }\n";

/// Both use most of a path of their own. A packet takes 53 ms to arrive. In the queue of 300 ms it
/// waits 1 ms with GCC and 13 ms with SCReAMv2, which tolerates up to 60 ms.
#[test]
fn alone_they_use_the_path_and_keep_its_queue_short() {
    for (controller, used, queued) in [
        ("gcc", 0.75..0.97, 0.000_2..0.005),
        ("scream", 0.7..0.9, 0.006..0.025),
    ] {
        for seed in 0..3 {
            let report = report(controller, STEADY, "", seed);
            // 1,423 of 1,480 bytes of a packet are payload.
            let share = delivered(&report, 30, 59) / 3.85;
            assert!(used.contains(&share), "{controller}: {share}");
            let wait = report.flows[0].delay.mean - 0.053;
            assert!(queued.contains(&wait), "{controller}: {wait} s");
        }
    }
}

/// The path falls to a quarter after 25 s and recovers after 40 s. GCC grows by 8 % in a second at
/// the most: from 300 kb/s to 2.05 Mb/s in 25 s, and by 3.2 times in 15 s.
#[test]
fn they_follow_a_path_that_changes() {
    let steps = "rate = [{ at = \"0s\", rate = \"4Mbps\" }, { at = \"25s\", rate = \"1Mbps\" }, \
                 { at = \"40s\", rate = \"4Mbps\" }], queue = 100";
    for (controller, expected) in [
        ("gcc", [1.0..2.05, 0.6..0.97, 1.0..2.7]),
        ("scream", [2.5..3.7, 0.45..0.97, 2.3..3.7]),
    ] {
        let report = report(controller, steps, "", 0);
        for ((from, to), expected) in [(20, 25), (28, 40), (50, 59)].into_iter().zip(expected) {
            let rate = delivered(&report, from, to);
            assert!(
                expected.contains(&rate),
                "{controller} from {from} s: {rate}"
            );
        }
    }
}

/// Beside a download that fills a queue of 300 ms they back off by its delay, and get next to
/// nothing. Comity's controller gets most of its half of 1.92 Mb/s.
#[test]
fn beside_a_download_that_fills_a_long_queue_they_back_off() {
    for (controller, expected) in [
        ("gcc", 0.005..0.4),
        ("scream", 0.02..0.3),
        ("steady", 1.0..1.7),
    ] {
        for seed in 0..3 {
            let report = report(controller, STEADY, DOWNLOAD, seed);
            let rate = delivered(&report, 20, 59);
            assert!(expected.contains(&rate), "{controller}: {rate}");
        }
    }
}
