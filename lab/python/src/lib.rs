//! The extension module of the Python package: `comity._comity`.
//!
//! It translates arguments, errors and tables, and decides nothing. Its Python side, with types and
//! documentation, is python/comity.

#![expect(
    clippy::needless_pass_by_value,
    reason = "PyO3 hands arguments over by value"
)]

mod command;
mod controller;
mod errors;
mod quantity;
mod results;
mod run;
mod scenario;
mod simulation;
mod store;
mod table;
mod watch;

/// The extension module.
#[pyo3::pymodule(gil_used = false)]
mod _comity {
    #[pymodule_export]
    use crate::command::command;
    #[pymodule_export]
    use crate::controller::{
        Ack, Controller, Idle, InOrderAck, Loss, Pacing, PacketAcked, PacketLost, RateSample, Sent,
        Setup, Timeout,
    };
    #[pymodule_export]
    use crate::quantity::quantity;
    #[pymodule_export]
    use crate::results::Results;
    #[pymodule_export]
    use crate::run::mean_with_interval;
    #[pymodule_export]
    use crate::scenario::Scenario;
    #[pymodule_export]
    use crate::simulation::Simulation;
    #[pymodule_export]
    use crate::store::{Store, merge};
    #[pymodule_export]
    use crate::table::Table;

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    /// Rises when the same scenario and seed give other results.
    #[pymodule_export]
    const ENGINE_VERSION: u32 = comity_sim::results::ENGINE_VERSION;
}
