//! The runs of a sweep, stored as they end.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use comity_sim::results::store::{self, RunStore};
use comity_sim::results::{self, Format, LimitedByReceiveWindow, ResultSet, SeedsWithoutEffect};
use comity_sim::scenario;
use pyo3::prelude::*;

use crate::controller::Controllers;
use crate::errors;
use crate::results::Results;
use crate::run::{Failure, Options, run_all};
use crate::scenario::{Scenario, WORLD};
use crate::watch::watched;

/// The runs of a sweep that are done, on the disk or in memory.
#[pyclass(frozen, module = "comity._comity")]
pub(crate) struct Store {
    scenario: Arc<scenario::Scenario>,
    controllers: Arc<Controllers>,
    store: RunStore,
    out: Option<(PathBuf, Format)>,
}

#[pymethods]
impl Store {
    /// Opens the store of the results at `out`, or one in memory.
    #[new]
    #[pyo3(signature = (scenario, command, out, force))]
    fn open(
        py: Python<'_>,
        scenario: &Scenario,
        command: String,
        out: Option<PathBuf>,
        force: bool,
    ) -> PyResult<Self> {
        let controllers = scenario.controllers.clone();
        let scenario = scenario.scenario.clone();
        let out = match out {
            Some(out) => {
                let format = Format::of(&out).map_err(|error| errors::results(&error))?;
                Some((out, format))
            }
            None => None,
        };
        let store = py.detach(|| {
            let sweep = scenario.sweep(WORLD, command);
            match &out {
                Some((path, _)) => RunStore::open(path, sweep, force),
                None => Ok(RunStore::in_memory(sweep)),
            }
        });
        Ok(Self {
            scenario,
            controllers,
            store: store.map_err(|error| errors::store(&error))?,
            out,
        })
    }

    /// Those of these runs that are not done.
    fn missing(&self, mut numbers: Vec<usize>) -> Vec<usize> {
        numbers.retain(|number| !self.store.has(*number));
        numbers
    }

    /// Does those of these runs that are not done, on several threads, and returns which failed.
    /// Calls `progress` with the numbers of finished and of all runs.
    #[pyo3(signature = (numbers, threads, packets, progress))]
    fn run(
        &self,
        py: Python<'_>,
        numbers: Vec<usize>,
        threads: Option<NonZeroUsize>,
        packets: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Vec<Failure>> {
        let all = numbers.len();
        let missing: BTreeSet<usize> = self.missing(numbers).into_iter().collect();
        let mut runs = self.scenario.runs();
        runs.retain(|run| missing.contains(&run.number));
        let found = all - runs.len();
        let done = AtomicUsize::new(found);
        let stop = AtomicBool::new(false);
        let options = Options {
            controllers: &self.controllers,
            threads,
            packets,
            stop: &stop,
        };
        let work = || {
            run_all(&self.scenario, &runs, &self.store, &options, |finished| {
                done.store(found + finished, Ordering::Relaxed);
            })
        };
        let tick = |py: Python<'_>| match &progress {
            Some(progress) => progress
                .call1(py, (done.load(Ordering::Relaxed), all))
                .map(drop),
            None => Ok(()),
        };
        watched(py, &stop, work, tick)?.map_err(|error| errors::store(&error))
    }

    /// Stores a run that another process did.
    fn add(&self, py: Python<'_>, record: &[u8]) -> PyResult<()> {
        py.detach(|| self.store.add_record(record))
            .map_err(|error| errors::store(&error))
    }

    /// The results of these runs, and what a reader of them has to know. With `tables`, the tables
    /// of all stored runs are written.
    fn finish(
        &self,
        py: Python<'_>,
        numbers: Vec<usize>,
        tables: bool,
    ) -> PyResult<(Results, Vec<String>)> {
        let done = py.detach(|| {
            self.store.sync()?;
            let mut set = self.store.take_results();
            if let Some((path, format)) = &self.out
                && tables
                && !set.runs.is_empty()
            {
                results::write(&set, *format, path)?;
            }
            let chosen: BTreeSet<usize> = numbers.into_iter().collect();
            set.runs.retain(|run| chosen.contains(&run.number));
            let warnings = self.warnings(&set);
            Ok((set, warnings))
        });
        let (set, warnings) = done.map_err(|error| errors::store(&error))?;
        Ok((Results { set }, warnings))
    }
}

impl Store {
    fn warnings(&self, set: &ResultSet) -> Vec<String> {
        let mut seeds = SeedsWithoutEffect::default();
        let mut windows = LimitedByReceiveWindow::default();
        let runs = self.scenario.runs();
        for done in &set.runs {
            if let Some(run) = runs.get(done.number) {
                seeds.add(run.point, &done.report);
                windows.add(&self.scenario, run, &done.report);
            }
        }
        seeds.warning().into_iter().chain(windows.notes()).collect()
    }
}

/// The runs of several stores of one sweep, and the numbers of those that no store has.
#[pyfunction]
pub(crate) fn merge(py: Python<'_>, stores: Vec<PathBuf>) -> PyResult<(Results, Vec<usize>)> {
    let merged = py.detach(|| store::merge(&stores));
    let merged = merged.map_err(|error| errors::store(&error))?;
    Ok((Results { set: merged.set }, merged.missing))
}
