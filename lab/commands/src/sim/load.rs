//! Reads the scenario of a command.

use comity_sim::scenario::{Problem, ProblemKind, Problems, Run, Scenario, Shard};

use crate::args;
use crate::{Failure, complain, has_colours, say};

/// Reads a scenario. Reports all of its errors, and the effect of --set on its sweep.
pub(crate) fn load(reading: &args::Reading, seeds: Option<Vec<u64>>) -> Result<Scenario, Failure> {
    let scenario = load_silently(reading, seeds)?;
    for note in scenario.notes() {
        say(&format!("note: {note}"));
    }
    Ok(scenario)
}

/// Like [`load`], without reports, for a part of a command whose main part has made them.
pub(crate) fn load_silently(
    reading: &args::Reading,
    seeds: Option<Vec<u64>>,
) -> Result<Scenario, Failure> {
    let options = comity_sim::scenario::Reading {
        set: reading.set.clone(),
        seeds,
        ..Default::default()
    };
    Scenario::load(&reading.file, &options).map_err(|problems| refuse(&problems))
}

fn refuse(problems: &Problems) -> Failure {
    say(&problems.render(has_colours()));
    if problems.count() > 1 {
        say(&format!("\nerror: {} problems", problems.count()));
    }
    let is_unreadable = |problem: &Problem| matches!(problem.kind, ProblemKind::Unreadable { .. });
    match problems.iter().any(is_unreadable) {
        true => Failure::Unopened,
        false => Failure::Usage,
    }
}

/// The runs at these points that belong to a shard. Fails if there are none.
pub(super) fn choose_runs(
    scenario: &Scenario,
    points: &[String],
    shard: Option<Shard>,
) -> Result<Vec<Run>, Failure> {
    scenario.choose(points, shard).map_err(|error| {
        complain(&error);
        Failure::Usage
    })
}
