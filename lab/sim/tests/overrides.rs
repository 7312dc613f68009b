//! Overrides and the axes that set the same keys: nothing is ignored.

use comity_sim::results::AxisValue;
use comity_sim::scenario::{NoFiles, Reading, Scenario};

const TEXT: &str = r#"
    scenario = { name = "x", duration = "1s" }
    [topology]
    kind = "dumbbell"
    bottleneck = { rate = "1Mbps", delay = "1ms", queue = 20 }
    [[flow]]
    group = "a"
    [[flow]]
    group = "b"
    [[sweep]]
    name = "queue"
    parameter = "topology.bottleneck.queue"
    values = [5, 10, 15]
    [[sweep]]
    name = "window"
    parameter = ["flow.a.rwnd", "flow.b.rwnd"]
    values = [4, 6]
    zip = "z"
    [[sweep]]
    name = "controller"
    parameter = "flow.*.controller"
    values = ["reno", "cubic"]
    zip = "z"
"#;

fn read(text: &str, set: &[&str]) -> Result<Scenario, String> {
    let reading = Reading {
        set: set.iter().map(|set| (*set).into()).collect(),
        ..Reading::default()
    };
    Scenario::parse("x.toml", text, NoFiles, &reading).map_err(|error| error.to_string())
}

/// The values of all points, as text.
fn points(set: &[&str]) -> Vec<String> {
    let scenario = read(TEXT, set).unwrap_or_else(|error| panic!("{error}"));
    let values = |run: &comity_sim::scenario::Run| {
        let values: Vec<_> = run.values.iter().map(AxisValue::to_string).collect();
        values.join(" ")
    };
    scenario.runs().iter().map(values).collect()
}

#[test]
fn an_override_replaces_the_values_of_its_axis() {
    assert_eq!(points(&[]).len(), 6);
    let one = points(&["topology.bottleneck.queue=7"]);
    assert_eq!(one, ["7 4 reno", "7 6 cubic"]);
    let zipped = points(&["topology.bottleneck.queue=7", "flow.*.rwnd=9"]);
    assert_eq!(zipped, ["7 9 reno", "7 9 cubic"]);
    let whole_group = points(&["flow.*.rwnd=9", "flow.*.controller=bbr"]);
    assert_eq!(whole_group, ["5 9 bbr", "10 9 bbr", "15 9 bbr"]);
    let scenario = read(TEXT, &["topology.bottleneck.queue=7"]).unwrap();
    assert_eq!(
        scenario.notes(),
        ["`topology.bottleneck.queue` = 7 replaces the 3 values of the axis \"queue\""]
    );
    assert!(read(TEXT, &["flow.a.count=2"]).unwrap().notes().is_empty());
    // Runs have the new value.
    let (network, _) = scenario.prepare(&scenario.runs()[0]);
    assert!(format!("{:?}", network.links[0].config.queue).contains("Packets(7)"));
}

#[test]
fn an_override_that_an_axis_would_hide_is_refused() {
    for (set, expected) in [
        // Invalid values fail, whether the key is swept or not.
        (
            &["topology.bottleneck.queue=banana"][..],
            "`topology.bottleneck.queue` is a string, \"banana\"",
        ),
        (
            &["flow.*.controller=bananas"],
            "`flow.a.controller` cannot be \"bananas\"",
        ),
        (
            &["flow.a.rwnd=9"],
            "`flow.a.rwnd` is set, and the axis \"window\" of the sweep sets it as well",
        ),
        (
            &["flow.a.rwnd=9", "flow.b.rwnd=8"],
            "expected one value for all keys of the axis, flow.a.rwnd, flow.b.rwnd",
        ),
        (
            &["topology.bottleneck={ rate = \"1Mbps\", delay = \"1ms\", queue = 7 }"],
            "`topology.bottleneck` is set, and the axis \"queue\"",
        ),
        (
            &["flow.a.count=2", "flow.a.count=3"],
            "`flow.a.count` has no effect, because `flow.a.count` sets all its keys again",
        ),
        (
            &["flow.b.count=2", "flow.*.count=3"],
            "`flow.b.count` has no effect, because `flow.*.count` sets all its keys again",
        ),
    ] {
        let error = read(TEXT, set).unwrap_err();
        assert!(error.contains(expected), "{set:?}: {error}");
    }
    // Later overrides may replace a part of earlier ones, and tables may leave the swept key out.
    let parts = ["flow.*.count=3", "flow.b.count=2"];
    let table = ["topology.bottleneck={ rate = \"2Mbps\", delay = \"1ms\" }"];
    let same = ["flow.a.rwnd=9", "flow.b.rwnd=9"];
    for set in [&parts[..], &table, &same, &["sweep=[]", "flow.a.rwnd=9"]] {
        assert_eq!(read(TEXT, set).err(), None, "{set:?}");
    }
}

#[test]
fn an_axis_that_later_ones_hide_is_refused() {
    let text = TEXT.replace("\"flow.*.controller\"", "\"flow.a.controller\"");
    let all = "[[sweep]]\nname = \"all\"\nparameter = \"flow.*.controller\"\nvalues = [\"reno\"]\n";
    let error = read(&format!("{text}{all}"), &[]).unwrap_err();
    assert!(
        error.contains("`sweep.controller` has no effect, because `sweep.all` sets all its keys"),
        "{error}"
    );
    // The other way round, the later axis sets a part.
    let first = text.replacen("[[sweep]]", &format!("{all}[[sweep]]"), 1);
    assert_eq!(read(&first, &[]).err(), None);
}

#[test]
fn seeds_are_requested_once() {
    let read = |seeds| {
        let reading = Reading {
            set: vec!["scenario.seeds=[4, 5]".into()],
            seeds: Some(seeds),
            ..Reading::default()
        };
        Scenario::parse("x.toml", TEXT, NoFiles, &reading).map_err(|error| error.to_string())
    };
    let error = read(vec![1]).unwrap_err();
    assert!(
        error.contains("`scenario.seeds` has no effect beside the seeds"),
        "{error}"
    );
    // Workers get the seeds beside the overrides.
    let scenario = read(vec![4, 5]).unwrap();
    assert_eq!(
        scenario.portable().unwrap().scenario().unwrap().seeds(),
        [4, 5]
    );
}
