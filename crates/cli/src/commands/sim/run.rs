//! `comity sim run`

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use comity_sim::report::RunReport;
use comity_sim::results::{self, CompletedRun, ResultSet, ScenarioInfo};
use comity_sim::scenario::{Execution, Interrupted, Run, Scenario, execute, play};

use super::super::progress::{Progress, now, on_interrupt};
use super::super::{Failure, complain, print, say};
use super::load;
use super::summary::Summary;
use crate::args;

/// Up to how many runs the longest go first. Among many the last ones matter little, and reports that are
/// done before their turn would pile up.
const FEW: usize = 1_000;

/// What the thread that looks after the runs, or the interrupt key, says.
enum Message {
    /// So many runs are done.
    Finished(usize),
    /// The outcome of the next run in order, with the number of links of the topology itself.
    Outcome(Run, Box<Result<(RunReport, usize), String>>),
    /// There are no more.
    End(Result<(), Interrupted>),
    Interrupt,
}

pub(crate) fn run(args: &args::Run) -> Result<(), Failure> {
    let seeds = match (&args.seed, &args.seeds) {
        (Some(seed), _) => Some(vec![*seed]),
        (None, seeds) => seeds.as_ref().map(|seeds| seeds.0.clone()),
    };
    let scenario = Arc::new(load(&args.reading, seeds)?);
    let began = now();
    let mut summary = Summary::default();
    let mut completed = Vec::new();
    let mut failed = 0;
    let axes: Vec<String> = scenario.axes().iter().map(|axis| (*axis).into()).collect();
    let messages = start(&scenario, args);
    let progress = Progress::new(scenario.run_count(), args.quiet);
    loop {
        match messages.recv_timeout(Duration::from_millis(200)) {
            Err(RecvTimeoutError::Timeout) => progress.tick(),
            Ok(Message::Finished(done)) => progress.set(done),
            Ok(Message::Outcome(run, outcome)) => match *outcome {
                Ok((report, backbone)) => {
                    summary.add(&run, &report, backbone);
                    if args.out.is_some() {
                        completed.push(complete(&axes, &run, report));
                    }
                }
                Err(reason) => {
                    failed += 1;
                    progress.pause(|| {
                        complain(&format!(
                            "run {} (seed {}): {reason}",
                            run.number,
                            run.seed.get()
                        ));
                    });
                }
            },
            Ok(Message::End(Ok(()))) => break,
            Ok(Message::End(Err(_)) | Message::Interrupt) => {
                progress.clear();
                say("interrupted: no results were stored");
                return Err(Failure::Interrupted);
            }
            // The thread is gone without a word: it panicked, and said so.
            Err(RecvTimeoutError::Disconnected) => return Err(Failure::Failed),
        }
    }
    let wall_seconds = began.elapsed().as_secs_f64();
    progress.clear();
    if failed > 0 {
        complain(&format!("{failed} of {} runs failed", scenario.run_count()));
        return Err(Failure::Failed);
    }
    if let Some(out) = &args.out {
        store(&scenario, completed, out)?;
    }
    if args.json {
        print(format!("{:#}\n", summary.json(&scenario, wall_seconds)))
    } else if args.quiet {
        Ok(())
    } else {
        print(summary.text(&scenario, wall_seconds))
    }
}

/// Plays the runs on other threads, so that an interrupt need not wait for those under way.
fn start(scenario: &Arc<Scenario>, args: &args::Run) -> mpsc::Receiver<Message> {
    let (sender, receiver) = mpsc::channel();
    let interrupt = sender.clone();
    let cancel = on_interrupt(move || interrupt.send(Message::Interrupt).is_ok());
    let scenario = scenario.clone();
    let jobs = args.jobs;
    std::thread::spawn(move || {
        let runs = scenario.runs();
        let execution = Execution {
            jobs,
            longest_first: runs.len() <= FEW,
            cancel: Some(cancel),
        };
        // A message that nobody takes belongs to an execution that was interrupted.
        let end = execute(
            &scenario,
            &runs,
            &execution,
            |network, run, settings| {
                play(network, run, settings)
                    .map(|report| (report, settings.backbone))
                    .map_err(|error| error.to_string())
            },
            |done| drop(sender.send(Message::Finished(done))),
            |outcome| {
                let message = Message::Outcome(outcome.run.clone(), Box::new(outcome.report));
                drop(sender.send(message));
            },
        );
        drop(sender.send(Message::End(end)));
    });
    receiver
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
