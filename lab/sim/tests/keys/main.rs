//! Every key of a scenario changes a run, or is refused where it would not.
//!
//! The schema lists the keys. Each has a row in [`rows`], with a scenario in which it matters and
//! two of its values, or a reason in [`WITHOUT_EFFECT`]. The parameters of controllers have a test
//! of their own, `parameters`.

mod contradictions;
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use comity_sim::report::RunReport;
use comity_sim::scenario::reference::json_schema;
use comity_sim::scenario::{Files, Reading, Scenario, simulate};
use rayon::prelude::*;
use serde_json::Value;

use rows::Row;

/// Two flows over a bottleneck.
const BASE: &str = r#"
    scenario = { name = "x", duration = "10s" }
    [topology]
    kind = "dumbbell"
    bottleneck = { rate = "4Mbps", delay = "15ms", queue = 12 }
    [[flow]]
    group = "a"
    count = 2
    start = { spread = "50ms" }
"#;

/// What may happen to the flows on the way. A key has to make a difference in one of these.
const PATHS: [&[&str]; 6] = [
    &[],
    &["topology.bottleneck.losses=[{ model = 'bernoulli', probability = 0.02 }]"],
    &["topology.bottleneck.jitter={ kind = 'uniform', max = '20ms', reorder = true }"],
    &["topology.bottleneck.losses=[{ model = 'outage', at = '1s', lasts = '5s' }]"],
    &["topology.bottleneck.reverse={ losses = [{ model = 'bernoulli', probability = 0.2 }] }"],
    &[
        "topology.bottleneck.duplication=0.05",
        "topology.bottleneck.queue=4",
    ],
];

/// Keys that no result depends on, and why.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("a_scenario.scenario", "a table of keys"),
    ("a_scenario.topology", "a table of keys"),
    ("a_scenario.flow", "a list of tables"),
    ("a_scenario.sweep", "a list of tables"),
    ("scenario.name", "a name"),
    ("scenario.description", "a text for readers"),
    (
        "scenario.max_runs",
        "a limit: a scenario that exceeds it is refused",
    ),
    (
        "topology(graph).nodes",
        "names; a link to a node that is not listed is refused",
    ),
    (
        "a_trace.format",
        "a file has one format, and is refused in the other",
    ),
    ("seeds.first", "chooses seeds, which name runs"),
    ("seeds.count", "chooses seeds, which name runs"),
    ("flow.group", "a name"),
    (
        "flow(command).sender",
        "only the lab runs programs; the simulator refuses them",
    ),
    (
        "flow(command).receiver",
        "only the lab runs programs; the simulator refuses them",
    ),
    (
        "flow(tcp).stack",
        "chooses between stacks of the lab, as its description says",
    ),
    (
        "flow(tcp).initial_sequence",
        "sequence numbers are relative; it shows in captures",
    ),
    (
        "flow(tcp).time_wait",
        "receivers never close, so that no end of a simulated flow comes to TIME-WAIT",
    ),
    (
        "flow(tcp).parameters",
        "each has a test of its own: `parameters`",
    ),
    (
        "flow(sections).parameters",
        "each has a test of its own: `parameters`",
    ),
    (
        "sweep.parameter",
        "sweeps name runs: see `overrides` and `scenario_files`",
    ),
    ("sweep.name", "a name"),
    ("sweep.values", "sweeps name runs"),
    ("sweep.range", "sweeps name runs"),
    ("sweep.zip", "sweeps name runs"),
    ("a_range_of_values.from", "sweeps name runs"),
    ("a_range_of_values.to", "sweeps name runs"),
    ("a_range_of_values.step", "sweeps name runs"),
    ("a_range_of_values.factor", "sweeps name runs"),
];

struct Traces;

impl Files for Traces {
    fn read(&self, path: &Path) -> io::Result<String> {
        match path.to_str() {
            Some("a.up") => Ok("1\n2\n3\n".into()),
            Some("b.up") => Ok("1\n5\n9\n".into()),
            Some("steps.txt") => Ok("0s, 1Mbps\n2s, 3Mbps\n".into()),
            Some("a.sizes") => Ok("1000,0\n90000,1\n".into()),
            Some("b.sizes") => Ok("5000,0.5\n20000,1\n".into()),
            Some("a.tmix") => Ok("S 0 1 1 1\nI 0 0 500\nA 0 0 30000\n\
                S 300000 1 1 2\nI 0 0 2000\nA 0 0 9000\n"
                .into()),
            Some("b.tmix") => Ok("SEQ 0 1 1 1\n> 1\n< 2\nSEQ 1 1 1 2\n> 3\n< 4\n".into()),
            Some("a.csv") => Ok("0,9000,I\n0.04,2000,P\n0.08,1000,B\n".into()),
            Some("b.csv") => Ok("0,5000,I\n0.04,4000,P\n".into()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

fn read(set: &[&str]) -> Result<Scenario, String> {
    let reading = Reading {
        set: set.iter().map(|text| (*text).to_owned()).collect(),
        ..Reading::default()
    };
    Scenario::parse("x.toml", BASE, Traces, &reading).map_err(|error| error.to_string())
}

/// All that a run measured. Names, costs and what a report repeats of the scenario do not count.
fn outcome(report: &RunReport) -> String {
    let mut flows = report.flows.clone();
    for flow in &mut flows {
        for text in [&mut flow.name, &mut flow.group, &mut flow.kind] {
            text.clear();
        }
    }
    let mut links = report.links.clone();
    for link in &mut links {
        link.name.clear();
    }
    let series = report
        .series
        .as_ref()
        .map(|series| (&series.flows, &series.links));
    let convergence = report.convergence("a");
    format!(
        "{} {flows:?} {links:?} {series:?} {convergence:?}",
        report.fingerprint
    )
}

fn run(scenario: &Scenario) -> String {
    let run = &scenario.runs()[0];
    let (network, settings) = scenario.prepare(run);
    outcome(&simulate(&network, run, &settings).unwrap())
}

/// Why the row does not hold; `None` if it does.
fn fault(row: &Row) -> Option<String> {
    let mut refusal = None;
    for path in PATHS {
        let with = |value: &str| -> Result<Scenario, String> {
            let own = format!("{}{}={value}", row.at, row.key);
            let set: Vec<&str> = path.iter().chain(row.with).copied().collect();
            read(&[&set[..], &[own.as_str()]].concat())
        };
        match (with(row.values[0]), with(row.values[1])) {
            (Ok(first), Ok(second)) => {
                if run(&first) != run(&second) {
                    return None;
                }
            }
            // Another path may contradict the row.
            (Err(error), _) | (_, Err(error)) => refusal = refusal.or(Some(error)),
        }
    }
    Some(match refusal {
        Some(refusal) => format!(
            "{}: no effect on any path that is allowed: {refusal}",
            row.id()
        ),
        None => format!("{}: no effect on any path", row.id()),
    })
}

/// The keys of the schema, as `table.key`, or as `table(tag).key` for keys of an alternative. A key
/// of all alternatives may be known in either way.
fn schema_keys(known: &BTreeSet<String>) -> BTreeSet<String> {
    let schema = json_schema();
    let mut keys = BTreeSet::new();
    let mut tables: Vec<(String, &Value)> = vec![("a_scenario".into(), &schema)];
    let definitions = schema["$defs"].as_object().unwrap();
    tables.extend(
        definitions
            .iter()
            .map(|(name, table)| (name.clone(), table)),
    );
    for (name, table) in tables {
        let Some(alternatives) = table["oneOf"].as_array() else {
            let properties = table["properties"].as_object().unwrap();
            keys.extend(properties.keys().map(|key| format!("{name}.{key}")));
            continue;
        };
        let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for alternative in alternatives {
            let properties = alternative["properties"].as_object().unwrap();
            let tag = properties.iter().find_map(|(key, value)| {
                let value = value["const"].as_str()?;
                let is_tag = ["kind", "transport", "model"].contains(&key.as_str());
                is_tag.then_some((key.as_str(), value))
            });
            let (tag, value) = tag.unwrap();
            for key in properties.keys().filter(|key| *key != tag) {
                found.entry(key).or_default().push(value);
            }
        }
        for (key, tags) in found {
            let shared = format!("{name}.{key}");
            match tags.len() == alternatives.len() && known.contains(&shared) {
                true => drop(keys.insert(shared)),
                false => keys.extend(tags.iter().map(|tag| format!("{name}({tag}).{key}"))),
            }
        }
    }
    keys
}

#[test]
fn every_key_has_a_row_or_a_reason() {
    let rows = rows::rows();
    let mut known: BTreeSet<String> = rows.iter().map(Row::id).collect();
    for (key, _) in WITHOUT_EFFECT {
        assert!(known.insert((*key).into()), "{key} has a row and a reason");
    }
    let keys = schema_keys(&known);
    let missing: Vec<_> = keys.difference(&known).collect();
    let unknown: Vec<_> = known.difference(&keys).collect();
    assert!(missing.is_empty(), "keys without a row: {missing:#?}");
    assert!(unknown.is_empty(), "rows without a key: {unknown:#?}");
}

#[test]
fn every_key_changes_a_run() {
    let rows = rows::rows();
    let faults: Vec<String> = rows.par_iter().filter_map(fault).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Keys that have no effect beside others are refused there, by their name.
#[test]
fn keys_without_effect_are_refused() {
    let mut faults = Vec::new();
    for (set, key) in contradictions::CONTRADICTIONS {
        match read(set) {
            Ok(_) => faults.push(format!("{set:?} was accepted")),
            Err(error) if !error.contains(key) => {
                faults.push(format!("{set:?}: {key} is not in {error}"));
            }
            Err(_) => {}
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
