//! An encoder that follows the target bitrate of its connection.

use comity_sim::host::{Source, plans};
use comity_sim::report::RunReport;
use comity_sim::scenario::{NoFiles, Reading, Scenario, simulate};
use comity_units::{Rate, Seed};

/// An encoder of 150 kb/s to 6 Mb/s for 40 s, with a path of its own.
fn scenario(rate: &str, queue: u32, latency: &str, keys: &str) -> Scenario {
    let link = format!("{{ rate = {rate}, delay = \"20ms\", queue = {queue} }}");
    let keys = format!(", max_rate = \"6Mbps\"{keys}");
    with(&link, latency, &keys, "steady")
}

fn with(link: &str, latency: &str, keys: &str, controller: &str) -> Scenario {
    let text = format!(
        "[scenario]\n\
         name = \"x\"\n\
         duration = \"40s\"\n\
         bins = \"1s\"\n\
         [topology]\n\
         kind = \"dumbbell\"\n\
         bottleneck = {link}\n\
         [[flow]]\n\
         group = \"video\"\n\
         transport = \"sections\"\n\
         controller = \"{controller}\"\n\
         latency = \"{latency}\"\n\
         workload = {{ kind = \"encoder\"{keys} }}\n"
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

/// The share of the sections with an outcome that were on time.
fn on_time(report: &RunReport) -> f64 {
    let sections = report.flows[0].sections.as_ref().unwrap();
    sections.on_time as f64 / (sections.submitted - sections.open) as f64
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
        assert!(
            (0.75..1.05).contains(&(rate / carried)),
            "{rate} of {carried}"
        );
        // The first seconds of narrow paths included, in which the encoder has its maximum rate.
        let on_time = on_time(&report);
        assert!(on_time > 0.9, "{carried}: {on_time}");
    }
}

/// In slow start, the target is twice what the flow has used, so that an encoder that begins low
/// finds what the path carries: 500 kb/s become 3.4 Mb/s in three steps of 0.5 s and the reaction.
#[test]
fn an_encoder_that_begins_low_does_not_stay_there() {
    for controller in ["cubic", "steady", "libra", "tfrc", "rap"] {
        let scenario = with(
            "{ rate = \"4Mbps\", delay = \"20ms\", queue = 60 }",
            "400ms",
            ", max_rate = \"6Mbps\", initial_rate = \"500kbps\"",
            controller,
        );
        let report = run_of(&scenario);
        let first = delivered(&report, 0, 1);
        assert!((0.2..0.8).contains(&first), "{controller}: {first}");
        let rate = delivered(&report, 5, 10);
        assert!((2.5..3.85).contains(&rate), "{controller}: {rate}");
        let on_time = on_time(&report);
        assert!(on_time > 0.97, "{controller}: {on_time}");
    }
}

/// A first key frame of 30 Mb/s does not arrive in time at the initial rate, and nothing that needs
/// it is sent. What was tried is enough for a target.
#[test]
fn an_encoder_that_begins_too_high_does_not_stay_there() {
    for controller in ["cubic", "tfrc"] {
        let scenario = with(
            "{ rate = \"50Mbps\", delay = \"50ms\", queue = 400 }",
            "400ms",
            ", max_rate = \"30Mbps\"",
            controller,
        );
        let report = run_of(&scenario);
        let rate = delivered(&report, 10, 39);
        assert!((20.0..32.0).contains(&rate), "{controller}: {rate}");
    }
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
