//! Runs a scenario on all processors.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use comity_sim::metrics;
use comity_sim::scenario::{Execution, Folder, Reading, Scenario, execute, simulate_stoppable};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::controller::{self, Controllers};
use crate::errors;
use crate::results::Results;

/// The mean of independent values, and half of its 95 % confidence interval if there are several.
#[pyfunction]
pub(crate) fn mean_with_interval(values: Vec<f64>) -> PyResult<(f64, Option<f64>)> {
    match metrics::mean_with_interval(&values) {
        Ok(estimate) => Ok((estimate.mean, estimate.half_width)),
        Err(error) => Err(PyValueError::new_err(error.to_string())),
    }
}

/// How often the interrupt key is looked at and progress is reported.
const TICK: Duration = Duration::from_millis(100);

/// Runs the scenario of a file (`text` is `None`) or of a text that is reported under the name
/// `path`. Calls `progress` with the numbers of finished and of all runs.
#[pyfunction]
#[pyo3(signature = (path, text, folder, set, seeds, controllers, threads, packets, command, progress))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn run(
    py: Python<'_>,
    path: PathBuf,
    text: Option<&str>,
    folder: PathBuf,
    set: Vec<String>,
    seeds: Option<Vec<u64>>,
    controllers: Controllers,
    threads: Option<NonZeroUsize>,
    packets: bool,
    command: String,
    progress: Option<Py<PyAny>>,
) -> PyResult<Results> {
    let reading = Reading {
        set,
        seeds,
        controllers: controllers.keys().cloned().collect(),
        ..Reading::default()
    };
    let scenario = read(py, &path, text, folder, &reading)?;
    let controllers = Arc::new(controllers);
    let runs = scenario.runs();
    let stop = AtomicBool::new(false);
    let done = AtomicUsize::new(0);
    let execution = Execution {
        jobs: threads,
        cancel: Some(&stop),
        ..Execution::of(runs.len())
    };
    let simulate = || {
        let (mut completed, mut failures) = (Vec::new(), Vec::new());
        let end = execute(
            &scenario,
            &runs,
            &execution,
            |network, run, settings| {
                let custom = controller::Run::new(&controllers);
                let simulate =
                    || simulate_stoppable(network, run, settings, packets, &custom, &stop);
                let report = match controllers.is_empty() {
                    true => simulate(),
                    // Python keeps its state of this thread until the run ends.
                    false => Python::attach(|py| py.detach(simulate)),
                };
                report.map_err(|stopped| Box::new((stopped, custom.take_exception())))
            },
            |finished| done.store(finished, Ordering::Relaxed),
            |outcome| match outcome.report {
                Ok(report) => completed.push(scenario.completed(outcome.run, report)),
                Err(failure) => {
                    let (stopped, exception) = *failure;
                    let (number, seed) = (outcome.run.number, outcome.run.seed.get());
                    failures.push((number, seed, stopped.to_string(), exception));
                }
            },
        );
        (end, completed, failures)
    };
    let watch = || {
        Python::attach(|py| {
            py.check_signals()?;
            match &progress {
                Some(progress) => progress
                    .call1(py, (done.load(Ordering::Relaxed), runs.len()))
                    .map(drop),
                None => Ok(()),
            }
        })
    };
    let ((end, completed, failures), interrupt) = py.detach(|| {
        std::thread::scope(|scope| {
            let (ended, end) = mpsc::channel::<()>();
            let worker = scope.spawn(|| {
                // Dropped at the end, or when this thread panics.
                let _ended = ended;
                simulate()
            });
            let mut interrupt = None;
            while end.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if interrupt.is_none()
                    && let Err(error) = watch()
                {
                    stop.store(true, Ordering::Relaxed);
                    interrupt = Some(error);
                }
            }
            match worker.join() {
                Ok(outcome) => (outcome, interrupt),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    });
    if let Some(interrupt) = interrupt {
        return Err(interrupt);
    }
    // A key pressed during the last tick is still Python's to report.
    watch()?;
    debug_assert_eq!(end, Ok(()), "only `stop` cancels");
    let results = Results {
        set: scenario.results(command, completed),
    };
    if failures.is_empty() {
        return Ok(results);
    }
    let message = format!("{} of {} runs failed", failures.len(), runs.len());
    let results = Py::new(py, results)?.into_any();
    Err(errors::runs(message, failures, results))
}

/// Reads the scenario of a file (`text` is `None`) or of a text.
pub(crate) fn read(
    py: Python<'_>,
    path: &Path,
    text: Option<&str>,
    folder: PathBuf,
    reading: &Reading,
) -> PyResult<Scenario> {
    let scenario = py.detach(|| match text {
        None => Scenario::load(path, reading),
        Some(text) => Scenario::parse(&path.display().to_string(), text, Folder(folder), reading),
    });
    let scenario = scenario.map_err(|problems| errors::scenario(py, &problems))?;
    match scenario.needs_lab() {
        Some(reason) => Err(errors::unfit(format!("{} {reason}", path.display()))),
        None => Ok(scenario),
    }
}
