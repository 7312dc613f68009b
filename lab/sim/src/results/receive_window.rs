//! Flows that a default of the preset limits, not the network.

use std::collections::BTreeSet;

use comity_tcp::Config;

use crate::network::{TransportSpec, Workload};
use crate::report::{FlowReport, RunReport};
use crate::scenario::{Run, Scenario};

/// Finds the groups with a flow that always fills the preset's receive window.
#[derive(Debug, Default)]
pub struct LimitedByReceiveWindow(BTreeSet<String>);

impl LimitedByReceiveWindow {
    /// Adds a run of a scenario.
    pub fn add(&mut self, scenario: &Scenario, run: &Run, report: &RunReport) {
        // In the lab the kernel chooses the window.
        if report.world.lateness().is_some() {
            return;
        }
        let default = Config::default().receive_buffer;
        let is_new = |flow: &FlowReport| {
            // At most a window arrives in a round trip.
            let arrives = flow.goodput_bps / 8.0 * flow.mean_rtt_s.unwrap_or(0.0);
            arrives > 0.9 * default.get() as f64 && !self.0.contains(&flow.group)
        };
        if !report.flows.iter().any(is_new) {
            return;
        }
        let (network, _) = scenario.prepare(run);
        let flows = network.flows.iter().zip(&report.flows);
        let limited = flows.filter(|(spec, flow)| {
            let TransportSpec::Tcp(tcp) = &spec.transport else {
                return false;
            };
            is_new(flow)
                && tcp.config.receive_buffer == default
                && matches!(spec.workload, Workload::Greedy)
        });
        let limited: Vec<_> = limited.map(|(_, flow)| flow.group.clone()).collect();
        self.0.extend(limited);
    }

    /// A note on each group.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let default = Config::default().receive_buffer.get() >> 20;
        self.0.iter().map(move |group| {
            format!(
                "the receive window of {group} limits it, and not the network; \
                 set flow.{group}.rwnd for more than the preset's {default} MiB"
            )
        })
    }
}
