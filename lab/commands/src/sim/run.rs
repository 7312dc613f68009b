//! `comity sim run`

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use comity_sim::network::Network;
use comity_sim::report::RunReport;
use comity_sim::results::store::RunStore;
use comity_sim::results::{self, LimitedByReceiveWindow, SeedsWithoutEffect};
use comity_sim::scenario::{Execution, Interrupted, Run, RunSettings, Scenario, execute, simulate};

use super::super::progress::{OnInterrupt, RunReporter, follow};
use super::super::results::refused;
use super::super::tables::plural;
use super::super::{Failure, complain, print, say};
use super::load::{choose_runs, load};
use super::summary::Summary;
use crate::args;
use crate::clock::now;

pub(crate) fn run(args: &args::Run) -> Result<(), Failure> {
    let scenario = Arc::new(load(&args.reading, args.printing.seeds())?);
    if let Some(reason) = scenario.needs_lab() {
        complain(&format!("{} {reason}", args.reading.file.display()));
        return Err(Failure::Usage);
    }
    let runs = choose_runs(&scenario, &args.point, args.shard)?;
    let job = Job {
        world: "sim",
        reading: &args.reading,
        printing: &args.printing,
        on_interrupt: OnInterrupt::Leave(None),
        runs: runs.len(),
        is_shard: args.shard.is_some(),
    };
    let simulation = |store| simulation(&scenario, runs, store, args.jobs);
    job.execute(&scenario, simulation)
}

/// The runs of a scenario that a command executes, in the simulator or in the lab.
pub(crate) struct Job<'a> {
    pub(crate) world: &'static str,
    pub(crate) reading: &'a args::Reading,
    pub(crate) printing: &'a args::Printing,
    pub(crate) on_interrupt: OnInterrupt<'a>,
    pub(crate) runs: usize,
    pub(crate) is_shard: bool,
}

impl Job<'_> {
    /// Executes the runs, and prints and stores the results.
    pub(crate) fn execute<W>(
        &self,
        scenario: &Arc<Scenario>,
        work: impl FnOnce(Option<Arc<RunStore>>) -> W,
    ) -> Result<(), Failure>
    where
        W: FnOnce(
                &'static AtomicBool,
                &RunReporter<Outcome, Result<(), Interrupted>>,
            ) -> Result<(), Interrupted>
            + Send
            + 'static,
    {
        let printing = self.printing;
        let store = self.open(scenario)?.map(Arc::new);
        let began = now();
        let mut summary = Summary::default();
        let mut seeds = SeedsWithoutEffect::default();
        let mut limited = LimitedByReceiveWindow::default();
        let (mut done, mut failed) = (0, 0);
        let mut is_trusted = true;
        let end = follow(
            (self.runs, printing.quiet),
            self.on_interrupt,
            work(store.clone()),
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
                        seeds.add(run.point, &measured.report);
                        limited.add(scenario, &run, &measured.report);
                        summary.add(&run, &measured.report, measured.backbone);
                        done += 1;
                    }
                    Err(reason) => {
                        failed += 1;
                        say(&reason);
                    }
                }
            },
        );
        if let Some(store) = &store {
            store.sync().map_err(|error| complain(&error))?;
        }
        if !matches!(end, Ok(Ok(()))) {
            let is_over = matches!(end, Ok(_) | Err(Failure::Interrupted));
            if is_over {
                say(&self.interrupted(store.as_deref()));
            }
            return Err(end.err().unwrap_or(Failure::Interrupted));
        }
        let wall_seconds = began.elapsed().as_secs_f64();
        if let (Some(store), Some(out)) = (&store, &printing.out) {
            if self.is_shard {
                let (folder, path) = (store.folder().display(), out.path.display());
                let (stored, all) = (store.stored(), store.len());
                let next = match stored < all {
                    true => "once it has all shards, this makes tables",
                    false => "this makes tables",
                };
                say(&format!(
                    "stored {} in {folder}, which has {stored} of {all}; {next}: comity results merge {path} --out {path}",
                    plural(done, "run")
                ));
            } else if done > 0 {
                results::write(&store.results(), out.format, &out.path)
                    .map_err(|error| complain(&error))?;
            }
        }
        if let Some(warning) = seeds.warning() {
            say(&format!("warning: {warning}"));
        }
        for note in limited.notes() {
            say(&format!("note: {note}"));
        }
        if done > 0 && printing.json {
            print(format!("{:#}\n", summary.json(scenario, wall_seconds)))?;
        } else if done > 0 && !printing.quiet {
            // The time does not include runs of an earlier command.
            let has_stored = store.as_ref().is_some_and(|store| store.found() > 0);
            print(summary.text(scenario, (!has_stored).then_some(wall_seconds)))?;
        }
        if failed > 0 {
            let others = match &printing.out {
                Some(_) if done > 0 => "; the results of the others are stored",
                _ => "",
            };
            complain(&format!("{failed} of {} runs failed{others}", self.runs));
            return Err(Failure::Failed);
        }
        if is_trusted {
            Ok(())
        } else {
            Err(Failure::Overloaded)
        }
    }

    /// Opens the store beside the results, if results are to be stored.
    fn open(&self, scenario: &Scenario) -> Result<Option<RunStore>, Failure> {
        let Some(out) = &self.printing.out else {
            return Ok(None);
        };
        let sweep = scenario.sweep(self.world, self.command());
        let store = RunStore::open(&out.path, sweep, self.printing.force)
            .map_err(|error| refused(&error))?;
        if store.found() > 0 {
            say(&format!(
                "{} of {} runs are already stored in {}; --force repeats them",
                store.found(),
                scenario.run_count(),
                store.folder().display()
            ));
        }
        Ok(Some(store))
    }

    fn interrupted(&self, store: Option<&RunStore>) -> String {
        match store {
            None => "interrupted: no results were stored".into(),
            Some(store) => format!(
                "interrupted: {} of {} runs are stored in {}; the same command{} continues",
                store.stored(),
                store.len(),
                store.folder().display(),
                if self.printing.force {
                    " without --force"
                } else {
                    ""
                }
            ),
        }
    }

    /// The command in shell syntax, without options that do not change results.
    fn command(&self) -> String {
        let file = self.reading.file.to_string_lossy();
        let mut words = vec![
            "comity".into(),
            self.world.into(),
            "run".into(),
            quoted(&file),
        ];
        for set in &self.reading.set {
            words.extend(["--set".into(), quoted(set)]);
        }
        if let Some(seeds) = self.printing.seeds() {
            let seeds: Vec<_> = seeds.iter().map(u64::to_string).collect();
            words.extend(["--seeds".into(), seeds.join(",")]);
        }
        words.join(" ")
    }
}

/// A word in shell syntax.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A completed run.
pub(crate) struct Measured {
    pub(crate) report: RunReport,
    /// The number of links in the topology itself.
    pub(crate) backbone: usize,
    /// Errors of single flows, and reasons to doubt the results.
    pub(crate) complaints: Vec<String>,
}

/// The result of a run, or why it failed.
pub(crate) type Outcome = (Run, Result<Measured, String>);

/// Simulates these runs of a scenario in order. Each is stored when it ends.
fn simulation(
    scenario: &Arc<Scenario>,
    runs: Vec<Run>,
    store: Option<Arc<RunStore>>,
    jobs: Option<NonZeroUsize>,
) -> impl FnOnce(
    &'static AtomicBool,
    &RunReporter<Outcome, Result<(), Interrupted>>,
) -> Result<(), Interrupted>
+ Send
+ 'static {
    let scenario = scenario.clone();
    move |cancel, reporter| {
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
                let stored = store.as_ref().and_then(|store| store.get(run.number));
                let mut complaints = Vec::new();
                let report = match stored {
                    Some(stored) => stored.report,
                    None => {
                        let report = simulate_alone(network, run, settings)?;
                        if let Some(store) = &store {
                            let completed = scenario.completed(run, report.clone());
                            complaints.extend(store.add(completed).err().map(|e| e.to_string()));
                        }
                        report
                    }
                };
                Ok(Measured {
                    report,
                    backbone: settings.backbone,
                    complaints,
                })
            },
            |done| reporter.finished(done),
            |outcome| reporter.news((outcome.run.clone(), outcome.report)),
        )
    }
}

/// Simulates a run. If it panics, only this run fails; the panic hook has reported the location.
fn simulate_alone(
    network: &Network,
    run: &Run,
    settings: &RunSettings,
) -> Result<RunReport, String> {
    comity::parts::contain(|| simulate(network, run, settings))
        .ok_or("the simulator panicked; please report this")?
        .map_err(|error| error.to_string())
}
