//! The settings of a run beside its network.

use comity_units::Span;

use crate::metrics::Convergence;

/// The settings of a run beside its network.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct RunSettings {
    /// The length of the bins of values over time; `None` for no such values.
    pub bins: Option<Span>,
    /// When a group of flows counts as having converged; `None` when nobody asks.
    pub convergence: Option<Convergence>,
    /// How many links, from the first of the network, are the topology's own; those behind are the
    /// links of hosts.
    pub backbone: usize,
}
