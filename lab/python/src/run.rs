//! Runs on all processors.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use comity_sim::metrics;
use comity_sim::network::Network;
use comity_sim::results::CompletedRun;
use comity_sim::results::store::{RunStore, StoreError};
use comity_sim::scenario::{Execution, Run, RunSettings, Scenario, execute, simulate_stoppable};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::controller::{self, Controllers};

/// The mean of independent values, and half of its 95 % confidence interval if there are several.
#[pyfunction]
pub(crate) fn mean_with_interval(values: Vec<f64>) -> PyResult<(f64, Option<f64>)> {
    match metrics::mean_with_interval(&values) {
        Ok(estimate) => Ok((estimate.mean, estimate.half_width)),
        Err(error) => Err(PyValueError::new_err(error.to_string())),
    }
}

/// Number, seed and reason of a run that failed, and the exception of a controller of Python.
pub(crate) type Failure = (usize, u64, String, Option<PyErr>);

/// How the runs of a sweep are done.
pub(crate) struct Options<'a> {
    pub(crate) controllers: &'a Arc<Controllers>,
    pub(crate) threads: Option<NonZeroUsize>,
    pub(crate) packets: bool,
    pub(crate) stop: &'a AtomicBool,
}

/// Does runs, and stores each as it ends. Returns those that failed.
pub(crate) fn run_all(
    scenario: &Scenario,
    runs: &[Run],
    store: &RunStore,
    options: &Options<'_>,
    on_finished: impl FnMut(usize),
) -> Result<Vec<Failure>, StoreError> {
    let execution = Execution {
        jobs: options.threads,
        cancel: Some(options.stop),
        ..Execution::of(runs.len())
    };
    let (mut failures, mut unstored) = (Vec::new(), None);
    // Whoever sets `stop` knows that runs are missing.
    let _interrupted = execute(
        scenario,
        runs,
        &execution,
        |network, run, settings| {
            let run = (network, run, settings);
            let completed = simulate(scenario, run, options).map_err(Ended::Failed)?;
            store.add(completed).map_err(|error| {
                // Without room for them, other runs would be done in vain.
                options.stop.store(true, Ordering::Relaxed);
                Ended::Unstored(error)
            })
        },
        on_finished,
        |outcome| match outcome.report {
            Ok(()) => {}
            Err(Ended::Failed((reason, exception))) => {
                let (number, seed) = (outcome.run.number, outcome.run.seed.get());
                failures.push((number, seed, reason, exception));
            }
            Err(Ended::Unstored(error)) => unstored = Some(error),
        },
    );
    store.sync()?;
    unstored.map_or(Ok(failures), Err)
}

/// Why a run failed, and the exception of a controller of Python.
type Reason = (String, Option<PyErr>);

/// Why a run is not in the store.
enum Ended {
    Failed(Reason),
    Unstored(StoreError),
}

/// Simulates a run. One that panics fails alone, and Python has printed the place.
pub(crate) fn simulate(
    scenario: &Scenario,
    (network, run, settings): (&Network, &Run, &RunSettings),
    options: &Options<'_>,
) -> Result<CompletedRun, Reason> {
    let custom = controller::Run::new(options.controllers);
    let simulate = || {
        simulate_stoppable(
            network,
            run,
            settings,
            options.packets,
            &custom,
            options.stop,
        )
    };
    let simulate = || comity::parts::contain(simulate);
    let report = match options.controllers.is_empty() {
        true => simulate(),
        // Python keeps its state of this thread until the run ends.
        false => Python::attach(|py| py.detach(simulate)),
    };
    match report {
        Some(Ok(report)) => Ok(scenario.completed(run, report)),
        Some(Err(stopped)) => Err((stopped.to_string(), custom.take_exception())),
        None => Err(("the simulator panicked; please report this".into(), None)),
    }
}
