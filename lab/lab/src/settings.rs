//! The settings of a run, apart from its network.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use comity_sim::scenario::RunSettings;

use crate::child::Role;

/// Creates the command that runs one end of a flow of sections, with
/// [`endpoint::run`](crate::endpoint::run).
pub type EndpointCommand<'a> = dyn Fn(&EndpointCall) -> Command + Sync + 'a;

/// The arguments of an endpoint process, apart from the scenario.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EndpointCall {
    /// The flow, as an index into the network.
    pub flow: usize,
    /// The end.
    pub role: Role,
    /// The origin of the lab's clock, in nanoseconds of `CLOCK_MONOTONIC`.
    pub origin_ns: u64,
    /// The address of the destination.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// The qlog file to write, if any. The process reads its key from the standard input, as 64
    /// hexadecimal digits.
    pub qlog: Option<PathBuf>,
}

/// The settings of a run, apart from its network.
#[derive(Default)]
pub struct Settings<'a> {
    /// The settings shared with the simulator: bins and convergence.
    pub run: RunSettings,
    /// Creates the processes of flows of sections; `None` if there are none.
    pub endpoint: Option<&'a EndpointCommand<'a>>,
    /// The captures: a link and a file each.
    pub captures: Vec<(String, PathBuf)>,
    /// The folder for qlog files of Comity's endpoints.
    pub qlog: Option<PathBuf>,
    /// The folder for programs' output.
    pub logs: Option<PathBuf>,
    /// Ends the run early.
    pub stop: Option<&'a AtomicBool>,
}

impl std::fmt::Debug for Settings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("run", &self.run)
            .field("captures", &self.captures)
            .finish_non_exhaustive()
    }
}
