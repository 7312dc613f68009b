//! `comity sim run`

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use comity_sim::report::RunReport;
use comity_sim::results::{self, CompletedRun};
use comity_sim::scenario::{Execution, Interrupted, Run, Scenario, execute, simulate};

use super::super::progress::{OnInterrupt, Teller, follow};
use super::super::{Failure, complain, print, say};
use super::load;
use super::summary::Summary;
use crate::args;
use crate::clock::now;

const INTERRUPTED: &str = "interrupted: no results were stored";

pub(crate) fn run(args: &args::Run) -> Result<(), Failure> {
    let scenario = Arc::new(load(&args.reading, args.printing.seeds())?);
    if let Some(reason) = scenario.needs_lab() {
        complain(&format!("{} {reason}", args.reading.file.display()));
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
                        completed.push(scenario.completed(&run, measured.report));
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
            cancel: Some(cancel),
            ..Execution::of(runs.len())
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

fn store(scenario: &Scenario, runs: Vec<CompletedRun>, out: &args::Out) -> Result<(), Failure> {
    let set = scenario.results(crate::words::command(), runs);
    results::write(&set, out.format, &out.path).map_err(|error| complain(&error))
}
