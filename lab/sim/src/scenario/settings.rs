//! The settings of a run beside its network.

use comity_units::Span;

use crate::metrics::Convergence;

/// The settings of a run beside its network.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct RunSettings {
    /// The length of the bins of time series; `None` for no time series.
    pub bins: Option<Span>,
    /// When a group of flows counts as converged; `None` if convergence is not measured.
    pub convergence: Option<Convergence>,
    /// How many links of the network, from the first, belong to the topology. The links of hosts
    /// follow.
    pub backbone: usize,
}
