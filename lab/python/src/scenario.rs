//! Scenarios, and single runs of them for executors.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use comity_sim::results::store::record;
use comity_sim::scenario::{self, Folder, Portable, Reading, Run, Shard};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::controller::Controllers;
use crate::errors;
use crate::run::{Options, simulate};
use crate::watch::watched;

/// The world of all runs, as their ids have it.
pub(crate) const WORLD: &str = "sim";

/// A scenario whose points are valid.
#[pyclass(frozen, module = "comity._comity")]
pub(crate) struct Scenario {
    /// The name under which problems are reported.
    pub(crate) name: String,
    pub(crate) scenario: Arc<scenario::Scenario>,
    pub(crate) controllers: Arc<Controllers>,
}

/// A run as another process did it: its record, or why it failed.
#[derive(IntoPyObject)]
pub(crate) enum Ended {
    Record(Py<PyBytes>),
    Reason(String),
}

/// Name, text, files with their contents, overrides and seeds of a scenario.
type Parts = (String, String, Vec<(String, String)>, Vec<String>, Vec<u64>);

#[pymethods]
impl Scenario {
    /// Reads a file (`text` is `None`) or a text that is reported under the name `path`.
    #[new]
    #[pyo3(signature = (path, text, folder, set, seeds, controllers))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        text: Option<&str>,
        folder: PathBuf,
        set: Vec<String>,
        seeds: Option<Vec<u64>>,
        controllers: Controllers,
    ) -> PyResult<Self> {
        let reading = Reading {
            set,
            seeds,
            controllers: controllers.keys().cloned().collect(),
            ..Reading::default()
        };
        let name = path.display().to_string();
        let scenario = py.detach(|| match text {
            None => scenario::Scenario::load(&path, &reading),
            Some(text) => scenario::Scenario::parse(&name, text, Folder(folder), &reading),
        });
        let scenario = scenario.map_err(|problems| errors::scenario(py, &problems))?;
        if let Some(reason) = scenario.needs_lab() {
            return Err(errors::unfit(format!("{name} {reason}")));
        }
        Ok(Self {
            name,
            scenario: Arc::new(scenario),
            controllers: Arc::new(controllers),
        })
    }

    /// Reads the parts of a scenario in another process.
    #[staticmethod]
    fn from_parts(
        py: Python<'_>,
        name: String,
        text: String,
        files: Vec<(String, String)>,
        set: Vec<String>,
        seeds: Vec<u64>,
    ) -> PyResult<Self> {
        let portable = Portable {
            name: name.clone(),
            text,
            files: files.into_iter().collect::<BTreeMap<_, _>>(),
            set,
            seeds,
        };
        let scenario = py.detach(|| portable.scenario());
        let scenario = scenario.map_err(|problems| errors::scenario(py, &problems))?;
        Ok(Self {
            name,
            scenario: Arc::new(scenario),
            controllers: Arc::default(),
        })
    }

    /// The parts of the scenario for another process.
    fn parts(&self) -> PyResult<Parts> {
        let Portable {
            name,
            text,
            files,
            set,
            seeds,
        } = self.scenario.portable()?;
        Ok((name, text, files.into_iter().collect(), set, seeds))
    }

    /// What overrides do to the sweep.
    fn notes(&self) -> Vec<String> {
        self.scenario.notes().to_vec()
    }

    /// The numbers of the runs at these points, such as `queue=60`, that belong to a shard such as
    /// `3/16`.
    #[pyo3(signature = (points, shard))]
    fn choose(&self, points: Vec<String>, shard: Option<&str>) -> PyResult<Vec<usize>> {
        let shard = shard.map(|part| {
            let shard = part.parse::<Shard>();
            shard.map_err(|error| errors::unfit(format!("shard is {part}; {error}")))
        });
        let runs = self.scenario.choose(&points, shard.transpose()?);
        let runs = runs.map_err(|error| errors::unfit(error.to_string()))?;
        Ok(runs.iter().map(|run| run.number).collect())
    }

    /// The seed of the run with this number.
    fn seed(&self, number: usize) -> Option<u64> {
        let runs = self.scenario.runs();
        runs.get(number).map(|run| run.seed.get())
    }

    /// Does the runs with these numbers, one after the other.
    fn simulate(&self, py: Python<'_>, numbers: Vec<usize>) -> PyResult<Vec<(usize, Ended)>> {
        let stop = AtomicBool::new(false);
        let options = Options {
            controllers: &self.controllers,
            threads: None,
            packets: false,
            stop: &stop,
        };
        let runs = self.scenario.runs();
        let work = || -> Vec<_> {
            let chosen = numbers.iter().filter_map(|number| runs.get(*number));
            let simulated = |run: &Run| {
                let (network, settings) = self.scenario.prepare(run);
                let completed = simulate(&self.scenario, (&network, run, &settings), &options)
                    .map_err(|(reason, _)| reason)?;
                record(self.scenario.run_id(run, WORLD), &completed)
                    .map_err(|error| error.to_string())
            };
            chosen.map(|run| (run.number, simulated(run))).collect()
        };
        let ended = watched(py, &stop, work, |_| Ok(()))?;
        let for_python = |(number, ended): (usize, Result<Vec<u8>, String>)| match ended {
            Ok(record) => (number, Ended::Record(PyBytes::new(py, &record).unbind())),
            Err(reason) => (number, Ended::Reason(reason)),
        };
        Ok(ended.into_iter().map(for_python).collect())
    }
}
