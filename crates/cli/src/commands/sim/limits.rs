//! Flows that a default of the preset limits, and not the network.

use std::collections::BTreeSet;

use comity_sim::network::{Network, TransportSpec, Workload};
use comity_sim::report::RunReport;
use comity_transport::tcp::Config;

/// The groups with a flow that fills the preset's receive window all the time.
pub(super) fn limited_by_rwnd(network: &Network, report: &RunReport) -> BTreeSet<String> {
    let default = Config::default().receive_buffer;
    let flows = network.flows.iter().zip(&report.flows);
    flows
        .filter(|(spec, flow)| {
            let TransportSpec::Tcp(tcp) = &spec.transport else {
                return false;
            };
            // What arrives within a round trip is at most the window.
            let arrives = flow.goodput_bps / 8.0 * flow.mean_rtt_s.unwrap_or(0.0);
            tcp.config.receive_buffer == default
                && matches!(spec.workload, Workload::Greedy)
                && arrives > 0.9 * default.get() as f64
        })
        .map(|(_, flow)| flow.group.clone())
        .collect()
}
