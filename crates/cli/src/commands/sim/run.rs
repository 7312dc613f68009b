//! `comity sim run`

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use comity_sim::report::RunReport;
use comity_sim::results::{self, CompletedRun, ResultSet, ScenarioInfo};
use comity_sim::scenario::{Execution, Interrupted, Run, Scenario, execute, simulate};

use super::super::progress::{OnInterrupt, Teller, follow};
use super::super::{Failure, complain, print, say};
use super::load;
use super::summary::Summary;
use crate::args;
use crate::clock::now;

/// Up to how many runs the longest go first. Among many the last ones matter little, and reports
/// that are done before their turn would pile up.
const FEW: usize = 1_000;

const INTERRUPTED: &str = "interrupted: no results were stored";

pub(crate) fn run(args: &args::Run) -> Result<(), Failure> {
    let scenario = Arc::new(load(&args.reading, args.printing.seeds())?);
    if scenario.is_for_lab() {
        complain(&format!(
            "{} has flows with transport = \"command\", and the simulator runs no programs; \
             expected `comity lab run`, or other transports",
            args.reading.file.display()
        ));
        return Err(Failure::Usage);
    }
    let simulation = simulation(&scenario, args.jobs);
    let on_interrupt = OnInterrupt::Leave(Some(INTERRUPTED));
    run_all(&scenario, &args.printing, on_interrupt, simulation)
}

/// Does all runs of a scenario, whoever does them, and prints and stores what comes out.
pub(crate) fn run_all(
    scenario: &Arc<Scenario>,
    printing: &args::Printing,
    on_interrupt: OnInterrupt<'_>,
    simulation: impl FnOnce(
        &'static AtomicBool,
        &Teller<Outcome, Result<(), Interrupted>>,
    ) -> Result<(), Interrupted>
    + Send
    + 'static,
) -> Result<(), Failure> {
    if let Some(out) = printing.out.as_ref().filter(|_| !printing.force)
        && has_something(&out.path)
    {
        complain(&format!(
            "{} exists; expected a new path, or --force to replace the results there",
            out.path.display()
        ));
        return Err(Failure::Usage);
    }
    let began = now();
    let mut summary = Summary::default();
    let mut completed = Vec::new();
    let mut failed = 0;
    let mut is_trusted = true;
    let axes: Vec<String> = scenario.axes().iter().map(|axis| (*axis).into()).collect();
    let end = follow(
        (scenario.run_count(), printing.quiet),
        on_interrupt,
        simulation,
        |(run, outcome), progress| {
            let say = |message: &str| {
                progress.pause(|| {
                    complain(&format!(
                        "run {} (seed {}): {message}",
                        run.number,
                        run.seed.get()
                    ));
                });
            };
            match outcome {
                Ok(measured) => {
                    for complaint in &measured.complaints {
                        say(complaint);
                    }
                    let lateness = measured.report.world.lateness();
                    is_trusted &= lateness.is_none_or(|lateness| lateness.is_trusted);
                    summary.add(&run, &measured.report, measured.backbone);
                    if printing.out.is_some() {
                        completed.push(complete(&axes, &run, measured.report));
                    }
                }
                Err(reason) => {
                    failed += 1;
                    say(&reason);
                }
            }
        },
    )?;
    if end.is_err() {
        say(INTERRUPTED);
        return Err(Failure::Interrupted);
    }
    let wall_seconds = began.elapsed().as_secs_f64();
    if failed > 0 {
        complain(&format!("{failed} of {} runs failed", scenario.run_count()));
        return Err(Failure::Failed);
    }
    if let Some(out) = &printing.out {
        store(scenario, completed, out)?;
    }
    if printing.json {
        print(format!("{:#}\n", summary.json(scenario, wall_seconds)))?;
    } else if !printing.quiet {
        print(summary.text(scenario, wall_seconds))?;
    }
    if is_trusted {
        Ok(())
    } else {
        Err(Failure::Overloaded)
    }
}

/// A run that was done.
pub(crate) struct Measured {
    pub(crate) report: RunReport,
    /// The number of links of the topology itself.
    pub(crate) backbone: usize,
    /// What went wrong with single flows, or makes the results doubtful.
    pub(crate) complaints: Vec<String>,
}

/// What comes out of a run, or why it failed.
pub(crate) type Outcome = (Run, Result<Measured, String>);

/// Runs the runs of a scenario in order.
fn simulation(
    scenario: &Arc<Scenario>,
    jobs: Option<NonZeroUsize>,
) -> impl FnOnce(
    &'static AtomicBool,
    &Teller<Outcome, Result<(), Interrupted>>,
) -> Result<(), Interrupted>
+ Send
+ 'static {
    let scenario = scenario.clone();
    move |cancel, teller| {
        let runs = scenario.runs();
        let execution = Execution {
            jobs,
            longest_first: runs.len() <= FEW,
            cancel: Some(cancel),
        };
        execute(
            &scenario,
            &runs,
            &execution,
            |network, run, settings| {
                simulate(network, run, settings)
                    .map(|report| Measured {
                        report,
                        backbone: settings.backbone,
                        complaints: Vec::new(),
                    })
                    .map_err(|error| error.to_string())
            },
            |done| teller.finished(done),
            |outcome| teller.news((outcome.run.clone(), outcome.report)),
        )
    }
}

/// Whether there is anything at a path but an empty folder.
fn has_something(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.exists(),
    }
}

fn complete(axes: &[String], run: &Run, report: RunReport) -> CompletedRun {
    CompletedRun {
        axes: axes
            .iter()
            .cloned()
            .zip(run.values.iter().cloned())
            .collect(),
        seed: run.seed,
        report,
    }
}

fn store(scenario: &Scenario, runs: Vec<CompletedRun>, out: &args::Out) -> Result<(), Failure> {
    let set = ResultSet {
        scenario: ScenarioInfo {
            name: scenario.name().into(),
            text: scenario.text().into(),
        },
        command: command(),
        runs,
    };
    results::write(&set, out.format, &out.path).map_err(|error| complain(&error))
}

/// The command as a shell would take it.
fn command() -> String {
    let words: Vec<String> = std::env::args_os()
        .enumerate()
        .map(|(index, word)| {
            let word = word.to_string_lossy();
            if index == 0 {
                // Where the program lies on this machine is nobody's business.
                return "comity".into();
            }
            let is_plain = |c: char| c.is_alphanumeric() || "-_./=,:+@%".contains(c);
            if !word.is_empty() && word.chars().all(is_plain) {
                word.into_owned()
            } else {
                format!("'{}'", word.replace('\'', r"'\''"))
            }
        })
        .collect();
    words.join(" ")
}
