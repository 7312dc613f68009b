//! A run that Python steps through.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use comity_sim::scenario::{self, Reading, Scenario};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::controller::{self, Controllers, time};
use crate::errors;
use crate::results::Results;
use crate::scenario::read;

/// A run that pauses at chosen times.
#[pyclass(module = "comity._comity")]
pub(crate) struct Simulation {
    scenario: Scenario,
    run: scenario::Run,
    custom: controller::Run,
    /// `None` once the run is finished. Nobody waits for the lock; it makes the class shareable.
    simulation: Mutex<Option<scenario::Simulation<controller::Run>>>,
}

#[pymethods]
impl Simulation {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        text: Option<&str>,
        folder: PathBuf,
        set: Vec<String>,
        seed: Option<u64>,
        controllers: Controllers,
        packets: bool,
    ) -> PyResult<Self> {
        let reading = Reading {
            set,
            seeds: seed.map(|seed| vec![seed]),
            controllers: controllers.keys().cloned().collect(),
            ..Reading::default()
        };
        let scenario = read(py, &path, text, folder, &reading)?;
        let runs = scenario.runs();
        let [run] = runs.as_slice() else {
            return Err(errors::unfit(format!(
                "{} has {} runs; expected one seed, and no sweep",
                path.display(),
                runs.len()
            )));
        };
        let run = run.clone();
        let custom = controller::Run::new(&Arc::new(controllers));
        let simulation = py.detach(|| {
            let (network, settings) = scenario.prepare(&run);
            scenario::Simulation::new(network, &run, settings, packets, custom.clone())
        });
        let simulation = simulation.map_err(|error| {
            let exception = custom.take_exception();
            exception.unwrap_or_else(|| errors::unfit(error.to_string()))
        })?;
        Ok(Self {
            scenario,
            run,
            custom,
            simulation: Mutex::new(Some(simulation)),
        })
    }

    /// Handles all events before a time in seconds.
    fn run_until(&mut self, py: Python<'_>, time_s: f64) -> PyResult<()> {
        let until = time("time_s", time_s)?;
        let simulation = self.simulation.get_mut();
        let simulation = simulation.unwrap_or_else(PoisonError::into_inner).as_mut();
        let simulation = simulation.ok_or_else(finished)?;
        py.detach(|| simulation.run_until(until));
        self.custom.take_exception().map_or(Ok(()), Err)
    }

    /// Runs the rest, and returns the results.
    fn finish(&mut self, py: Python<'_>, command: String) -> PyResult<Results> {
        let simulation = self.simulation.get_mut();
        let simulation = simulation.unwrap_or_else(PoisonError::into_inner).take();
        let simulation = simulation.ok_or_else(finished)?;
        let report = py.detach(|| simulation.finish());
        if let Some(exception) = self.custom.take_exception() {
            return Err(exception);
        }
        let completed = self.scenario.completed(&self.run, report);
        Ok(Results {
            set: self.scenario.results(command, vec![completed]),
        })
    }
}

fn finished() -> PyErr {
    PyRuntimeError::new_err("the simulation is finished")
}
