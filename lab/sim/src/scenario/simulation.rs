//! A run in steps.

use comity_units::{Seed, Time};

use super::execute::{Records, UntilFailure, records, with_records};
use super::{Run, RunSettings};
use crate::custom::CustomControllers;
use crate::engine::{Engine, RunOptions};
use crate::network::{Network, NetworkError};
use crate::report::RunReport;

/// A run that pauses at chosen times. Pauses do not change its report.
///
/// Events are handled in the order of their times. So a controller has received all of its events
/// before a pause, and none of those after it.
///
/// ```
/// use comity_sim::NoControllers;
/// use comity_sim::scenario::{NoFiles, Reading, Scenario, Simulation, simulate};
/// use comity_units::Time;
///
/// let text = r#"
///     [scenario]
///     name = "one"
///     duration = "2s"
///     [topology]
///     kind = "dumbbell"
///     bottleneck = { rate = "1Mbps", delay = "10ms", queue = 20 }
///     access = { rate = "10Mbps", delay = "1ms" }
///     [[flow]]
///     group = "tcp"
/// "#;
/// let scenario = Scenario::parse("one.toml", text, NoFiles, &Reading::default())?;
/// let run = &scenario.runs()[0];
/// let (network, settings) = scenario.prepare(run);
/// let whole = simulate(&network, run, &settings)?;
///
/// let mut simulation = Simulation::new(network, run, settings, false, NoControllers)?;
/// simulation.run_until(Time::from_millis(500));
/// simulation.run_until(Time::from_millis(501));
/// assert_eq!(simulation.finish().fingerprint, whole.fingerprint);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Simulation<C> {
    engine: Engine<(UntilFailure<C>, Records)>,
    network: Network,
    seed: Seed,
    settings: RunSettings,
}

impl<C> std::fmt::Debug for Simulation<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulation")
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

impl<C: CustomControllers + Clone> Simulation<C> {
    /// Creates a run at its beginning. It records every packet if `packets` is true.
    ///
    /// # Errors
    /// The engine's error about the network. A network from a valid scenario has none, unless a
    /// custom controller cannot be built.
    pub fn new(
        network: Network,
        run: &Run,
        settings: RunSettings,
        packets: bool,
        custom: C,
    ) -> Result<Self, NetworkError> {
        // Endpoints may not act ahead of a pause.
        let options = RunOptions { collapse: false };
        let records = records(&network, &settings, packets);
        let observer = (UntilFailure(custom.clone()), records);
        Ok(Self {
            engine: Engine::build(&network, run.seed, &options, &custom, observer)?,
            network,
            seed: run.seed,
            settings,
        })
    }

    /// Handles all events before `time`. A run whose custom controller failed does not continue.
    pub fn run_until(&mut self, time: Time) {
        self.engine.run_until(time);
    }

    /// Runs the rest, and reports.
    pub fn finish(mut self) -> RunReport {
        self.engine.run_until(Time::MAX);
        let (report, (_, records)) = self.engine.finish(&self.network, self.seed);
        with_records(report, records, &self.settings)
    }
}
