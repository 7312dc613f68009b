//! A run that Python steps through.

use std::sync::{Arc, Mutex, PoisonError};

use comity_sim::scenario;
use pyo3::prelude::*;

use crate::controller::{self, time};
use crate::errors;
use crate::results::Results;
use crate::scenario::Scenario;

/// A run that pauses at chosen times.
#[pyclass(module = "comity._comity")]
pub(crate) struct Simulation {
    scenario: Arc<scenario::Scenario>,
    run: scenario::Run,
    custom: controller::Run,
    /// `None` once the run is finished. Nobody waits for the lock; it makes the class shareable.
    simulation: Mutex<Option<scenario::Simulation<controller::Run>>>,
}

#[pymethods]
impl Simulation {
    /// Begins the one run of a scenario.
    #[new]
    fn new(py: Python<'_>, scenario: &Scenario, packets: bool) -> PyResult<Self> {
        let Scenario {
            name,
            scenario,
            controllers,
        } = scenario;
        let scenario = Arc::clone(scenario);
        let runs = scenario.runs();
        let [run] = runs.as_slice() else {
            return Err(errors::unfit(format!(
                "{name} has {} runs; expected one seed, and no sweep",
                runs.len()
            )));
        };
        let run = run.clone();
        let custom = controller::Run::new(controllers);
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
        let until = time("time_s", time_s);
        let until = until.map_err(|error| errors::unfit(error.value(py).to_string()))?;
        let simulation = self.simulation.get_mut();
        let simulation = simulation.unwrap_or_else(PoisonError::into_inner).as_mut();
        let simulation = simulation.ok_or_else(errors::finished)?;
        py.detach(|| simulation.run_until(until));
        self.custom.take_exception().map_or(Ok(()), Err)
    }

    /// Runs the rest, and returns the results.
    fn finish(&mut self, py: Python<'_>, command: String) -> PyResult<Results> {
        let simulation = self.simulation.get_mut();
        let simulation = simulation.unwrap_or_else(PoisonError::into_inner).take();
        let simulation = simulation.ok_or_else(errors::finished)?;
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
