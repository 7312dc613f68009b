//! Controllers of the program around the simulator, and runs in steps.

use std::sync::Mutex;

use comity_congestion::table::{Parameters, Setup, Value, find};
use comity_sim::scenario::{
    NoFiles, Reading, Scenario, Simulation, Stopped, simulate, simulate_stoppable,
};
use comity_sim::{CustomController, CustomControllers, NoControllers};
use comity_units::{DataSize, Time};
use std::sync::atomic::{AtomicBool, Ordering};

const TEXT: &str = r#"
    [scenario]
    name = "custom"
    duration = "10s"
    [topology]
    kind = "dumbbell"
    bottleneck = { rate = "2Mbps", delay = "20ms", queue = 15 }
    access = { rate = "10Mbps", delay = "2ms" }
    [[flow]]
    group = "tcp"
    controller = "mine"
    parameters = { gain = 2, fast = true, mode = "steep" }
    start = { spread = "1s" }
    [[flow]]
    group = "sections"
    transport = "sections"
    controller = "mine"
    workload = { kind = "greedy" }
"#;

/// Builds the built-in `reno` under another name, and records its arguments.
#[derive(Default)]
struct Mine {
    seen: Mutex<Vec<(Setup, Parameters)>>,
    has_failed: AtomicBool,
}

impl CustomControllers for Mine {
    fn build(
        &self,
        name: &str,
        setup: &Setup,
        parameters: &Parameters,
    ) -> Option<CustomController> {
        if name != "mine" {
            return None;
        }
        self.seen.lock().unwrap().push((*setup, parameters.clone()));
        let reno = find("reno").unwrap().build(setup, &Parameters::new());
        Some(reno.map_err(|error| error.to_string()))
    }

    fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }
}

/// Refuses every flow.
struct Refuses;

impl CustomControllers for Refuses {
    fn build(&self, _: &str, _: &Setup, _: &Parameters) -> Option<CustomController> {
        Some(Err("not today".into()))
    }
}

fn reading() -> Reading {
    Reading {
        controllers: vec!["mine".into()],
        ..Reading::default()
    }
}

fn read(text: &str, reading: &Reading) -> Result<Scenario, String> {
    Scenario::parse("x.toml", text, NoFiles, reading).map_err(|problems| problems.to_string())
}

/// The scenario with the built-in controller.
fn built_in() -> String {
    let rounding = r#"parameters = { increase = "per_byte", decrease_basis = "flight",
        rounding = "exact", undo = false }"#;
    TEXT.replace("\"mine\"", "\"reno\"").replace(
        r#"parameters = { gain = 2, fast = true, mode = "steep" }"#,
        &rounding.replace('\n', " "),
    )
}

fn fingerprint(
    scenario: &Scenario,
    custom: &impl CustomControllers,
    stop: bool,
) -> Result<u64, Stopped> {
    let run = &scenario.runs()[0];
    let (network, settings) = scenario.prepare(run);
    let stop = AtomicBool::new(stop);
    simulate_stoppable(&network, run, &settings, false, custom, &stop)
        .map(|report| report.fingerprint)
}

#[test]
fn a_custom_controller_runs_as_a_built_in_one() {
    let scenario = read(TEXT, &reading()).unwrap();
    let mine = Mine::default();
    let found = fingerprint(&scenario, &mine, false).unwrap();
    let theirs = read(&built_in(), &Reading::default()).unwrap();
    assert_eq!(found, fingerprint(&theirs, &NoControllers, false).unwrap());
    let other = read(&TEXT.replace("= 15", "= 16"), &reading()).unwrap();
    assert_ne!(found, fingerprint(&other, &mine, false).unwrap());

    let seen = mine.seen.lock().unwrap();
    let (tcp, sections) = (&seen[0], &seen[1]);
    assert_eq!(tcp.1.get("gain"), Some(&Value::Number(2.0)));
    assert_eq!(tcp.1.get("fast"), Some(&Value::Flag(true)));
    assert_eq!(tcp.1.get("mode"), Some(&Value::Text("steep".into())));
    assert_eq!(sections.1, Parameters::new());
    assert_eq!(tcp.0.max_window, DataSize::MAX);
    assert_ne!(tcp.0.seed, sections.0.seed);
}

#[test]
fn a_controller_that_fails_ends_its_run() {
    let scenario = read(TEXT, &reading()).unwrap();
    let failed = Mine::default();
    failed.has_failed.store(true, Ordering::Relaxed);
    assert_eq!(
        fingerprint(&scenario, &failed, false),
        Err(Stopped::Requested)
    );
    assert_eq!(
        fingerprint(&scenario, &Mine::default(), true),
        Err(Stopped::Requested)
    );
    let refused = fingerprint(&scenario, &Refuses, false).unwrap_err();
    assert_eq!(refused.to_string(), "flow \"tcp-0\": not today");
    let unknown = fingerprint(&scenario, &NoControllers, false).unwrap_err();
    assert!(
        unknown
            .to_string()
            .contains("there is no controller \"mine\""),
        "{unknown}"
    );
}

#[test]
fn names_and_parameters_are_checked_when_the_scenario_is_read() {
    let unknown = read(TEXT, &Reading::default()).unwrap_err();
    assert!(unknown.contains("mine"), "{unknown}");
    let taken = Reading {
        controllers: vec!["cubic".into()],
        ..Reading::default()
    };
    let taken = read(TEXT, &taken).unwrap_err();
    assert!(
        taken.contains("`cubic` is a controller of Comity"),
        "{taken}"
    );
    let nested = read(&TEXT.replace("gain = 2", "gain = [2]"), &reading()).unwrap_err();
    assert!(
        nested.contains("a number, true, false or a text"),
        "{nested}"
    );
    let mut set = reading();
    set.set = vec!["flow.tcp.parameters.gain=0.5".into()];
    let mine = Mine::default();
    fingerprint(&read(TEXT, &set).unwrap(), &mine, false).unwrap();
    let seen = mine.seen.lock().unwrap();
    assert_eq!(seen[0].1.get("gain"), Some(&Value::Number(0.5)));
}

#[test]
fn an_unknown_parameter_of_a_built_in_controller_is_found_in_overrides_and_sweeps() {
    let text = TEXT.replace("\"mine\"", "\"cubic\"").replace(
        r#"parameters = { gain = 2, fast = true, mode = "steep" }"#,
        "",
    );
    for set in [
        "flow.tcp.parameters.bata=0.5",
        "flow.tcp.parameters.gain=0.5",
    ] {
        let reading = Reading {
            set: vec![set.into()],
            ..Reading::default()
        };
        let error = read(&text, &reading).unwrap_err();
        let name = set.split(['.', '=']).nth(3).unwrap();
        assert!(error.contains(name) && error.contains("beta"), "{error}");
    }
    let sweep = "[[sweep]]\nparameter = \"flow.tcp.parameters.bata\"\nvalues = [0.5, 0.6]";
    let error = read(&format!("{text}\n{sweep}"), &Reading::default()).unwrap_err();
    assert!(error.contains("did you mean `beta`?"), "{error}");
}

#[test]
fn pauses_change_nothing() {
    let scenario = read(TEXT, &reading()).unwrap();
    let run = &scenario.runs()[0];
    let (network, settings) = scenario.prepare(run);
    let whole = fingerprint(&scenario, &Mine::default(), false).unwrap();
    let mine = Mine::default();
    let mut simulation = Simulation::new(network.clone(), run, settings, false, &mine).unwrap();
    for step in 0..1_234 {
        simulation.run_until(Time::from_micros(step * 7_919));
    }
    assert_eq!(simulation.finish().fingerprint, whole);
    // A run that was never paused, one with another seed, and one that failed.
    let once = Simulation::new(network.clone(), run, settings, false, &mine).unwrap();
    assert_eq!(once.finish().fingerprint, whole);
    let other = scenario.runs()[0].clone();
    let other = comity_sim::scenario::Run {
        seed: comity_units::Seed::new(99),
        ..other
    };
    let simulation = Simulation::new(network.clone(), &other, settings, false, &mine).unwrap();
    assert_ne!(simulation.finish().fingerprint, whole);
    mine.has_failed.store(true, Ordering::Relaxed);
    let simulation = Simulation::new(network, run, settings, false, &mine).unwrap();
    assert_eq!(simulation.finish().links[0].carried_bytes, 0);
}

#[test]
fn a_stepped_run_has_the_records_of_a_whole_one() {
    let text = TEXT.replace("\"mine\"", "\"cubic\"").replace(
        r#"parameters = { gain = 2, fast = true, mode = "steep" }"#,
        "",
    );
    let text = text.replace("duration = \"10s\"", "duration = \"10s\"\nbins = \"500ms\"");
    let scenario = read(&text, &Reading::default()).unwrap();
    let run = &scenario.runs()[0];
    let (network, settings) = scenario.prepare(run);
    let whole = simulate(&network, run, &settings).unwrap();
    let mut simulation = Simulation::new(network, run, settings, true, NoControllers).unwrap();
    simulation.run_until(Time::from_secs(3));
    let report = simulation.finish();
    assert!(report.packets.is_some());
    assert!(report.series.is_some());
    assert_eq!(report.flows, whole.flows);
}
