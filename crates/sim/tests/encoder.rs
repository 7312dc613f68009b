//! An encoder that follows the target bitrate of its connection.

use comity_sim::host::{Source, plans};
use comity_sim::report::RunReport;
use comity_sim::scenario::{NoFiles, Reading, Scenario, simulate};
use comity_units::{Rate, Seed};

/// An encoder of 150 kb/s to 6 Mb/s for 40 s, with a path of its own.
fn scenario(rate: &str, queue: u32, latency: &str, keys: &str) -> Scenario {
    let text = format!(
        "[scenario]\n\
         name = \"x\"\n\
         duration = \"40s\"\n\
         bins = \"1s\"\n\
         [topology]\n\
         kind = \"dumbbell\"\n\
         bottleneck = {{ rate = {rate}, delay = \"20ms\", queue = {queue} }}\n\
         [[flow]]\n\
         group = \"video\"\n\
         transport = \"sections\"\n\
         latency = \"{latency}\"\n\
         workload = {{ kind = \"encoder\", max_rate = \"6Mbps\"{keys} }}\n"
    );
    Scenario::parse("x.toml", &text, NoFiles, &Reading::default()).unwrap()
}

fn report(rate: &str, keys: &str) -> RunReport {
    run_of(&scenario(rate, 60, "200ms", keys))
}

fn run_of(scenario: &Scenario) -> RunReport {
    let run = &scenario.runs()[0];
    let (network, settings) = scenario.prepare(run);
    simulate(&network, run, &settings).unwrap()
}

/// The mean delivered rate from second `from` to second `to`, in Mb/s.
fn delivered(report: &RunReport, from: usize, to: usize) -> f64 {
    let bins = &report.series.as_ref().unwrap().flows[0].delivered_bytes[from..to];
    bins.iter().sum::<u64>() as f64 * 8e-6 / (to - from) as f64
}

#[test]
fn the_encoder_takes_what_the_path_carries_within_its_range() {
    // 1,423 of 1,480 bytes of a packet are payload, so 2 Mb/s carry 1.92, and 10 Mb/s more than
    // the encoder has.
    for (rate, carried) in [
        ("\"2Mbps\"", 1.92),
        ("\"4Mbps\"", 3.85),
        ("\"10Mbps\"", 6.0),
    ] {
        let report = report(rate, "");
        let rate = delivered(&report, 10, 39);
        let sections = report.flows[0].sections.as_ref().unwrap();
        assert!(
            (0.75..1.05).contains(&(rate / carried)),
            "{rate} of {carried}"
        );
        // The first seconds of narrow paths included, in which the encoder has its maximum rate.
        let on_time = sections.on_time as f64 / (sections.submitted - sections.open) as f64;
        assert!(on_time > 0.9, "{carried}: {on_time}");
    }
}

/// Slow start tells nothing of the path while the source leaves its window unused.
#[test]
fn an_encoder_that_never_fills_the_path_keeps_its_initial_rate() {
    let report = report("\"4Mbps\"", ", initial_rate = \"500kbps\"");
    let sections = report.flows[0].sections.as_ref().unwrap();
    assert_eq!(sections.target_bitrate_bps, None);
    let rate = delivered(&report, 10, 39);
    assert!((0.49..0.51).contains(&rate), "{rate}");
}

/// After the path falls to a quarter, about half of what it carries is on time.
#[test]
fn the_encoder_follows_a_path_that_changes() {
    let steps = "[{ at = \"0s\", rate = \"4Mbps\" }, { at = \"15s\", rate = \"1Mbps\" }, \
                 { at = \"25s\", rate = \"4Mbps\" }]";
    let report = run_of(&scenario(steps, 20, "400ms", ""));
    for (from, to, carried, least) in [
        (10, 15, 3.85, 0.75),
        (17, 25, 0.96, 0.3),
        (34, 39, 3.85, 0.75),
    ] {
        let rate = delivered(&report, from, to);
        assert!(
            (least..1.02).contains(&(rate / carried)),
            "{from} s to {to} s: {rate} of {carried}"
        );
    }
}

#[test]
fn a_pause_sends_nothing_and_ends() {
    let report = report(
        "\"4Mbps\"",
        ", pauses = [{ at = \"15s\", lasts = \"10s\" }]",
    );
    assert!(delivered(&report, 10, 15) > 2.5);
    assert_eq!(delivered(&report, 16, 25), 0.0);
    assert!(delivered(&report, 30, 39) > 2.5);
}

#[test]
fn one_seed_gives_one_run() {
    let [first, again] = [(); 2].map(|()| report("\"2Mbps\"", "").fingerprint);
    assert_eq!(first, again);
    let other = report("\"2Mbps\"", ", size_scale = 0.151").fingerprint;
    assert_ne!(first, other);
}

/// The lab asks the same source, with the target of a real connection.
#[test]
fn the_source_of_a_host_has_the_frames_of_the_simulator() {
    // The rate is fixed, so that targets change nothing.
    let scenario = scenario("\"4Mbps\"", 60, "200ms", ", min_rate = \"6Mbps\"");
    let run = &scenario.runs()[0];
    let (network, settings) = scenario.prepare(run);
    let plan = &plans(&network, run.seed).unwrap()[0];
    let mut source = Source::new(&network, 0, run.seed, plan.started_at).unwrap();
    let (mut frames, mut bytes) = (0, 0);
    while source.peek() <= plan.stopped_at {
        let target = Some(Rate::from_kbps(frames));
        bytes += source.next_frame(source.peek(), target).unwrap().size.get();
        frames += 1;
    }
    let report = simulate(&network, run, &settings).unwrap();
    let sections = report.flows[0].sections.as_ref().unwrap();
    assert_eq!(
        sections.submitted + sections.refused + sections.shed,
        frames
    );
    let all = &sections.bytes;
    assert_eq!(all.submitted + all.refused + all.shed, bytes);
    // 40 s at 6 Mb/s and 30 frames a second.
    assert!((1_180..1_230).contains(&frames), "{frames}");
    let mut first = [run.seed, Seed::new(9)].map(|seed| {
        let mut source = Source::new(&network, 0, seed, plan.started_at).unwrap();
        source.next_frame(plan.started_at, None).unwrap().size
    });
    first.sort_unstable();
    assert!(first[0] < first[1], "seeds have sizes of their own");
}
