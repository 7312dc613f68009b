//! From tables to a network.

mod flow;
mod graph;
mod hosts;
mod library;
mod link;
mod preset;
mod sections;
mod sizes;
mod topology;
mod transfers;

use std::collections::BTreeMap;

use comity_link::DelayProfile;

use super::problem::{Problem, ProblemKind, Unfit};
use super::schema::Context;
use super::settings::RunSettings;
use super::source::SourceSpan;
use super::tables::ScenarioFile;
use super::tables::flow::FlowTable;
use crate::engine::{check_times, check_ways};
use crate::metrics::Convergence;
use crate::network::{Network, NetworkError};
use graph::{Graph, Requested};
pub(super) use library::Library;
pub use library::Limits;
pub(super) use link::duplex;
pub use preset::linux_parameters;

/// The limit of time series in one run: bins times flows and links.
const MAX_SERIES: u64 = 100_000_000;

/// Reports why a network is impossible, at the link or group of flows to correct.
fn report(
    file: &ScenarioFile,
    error: NetworkError,
    link_spans: &BTreeMap<String, Option<SourceSpan>>,
    group_of: impl Fn(&str) -> usize,
    cx: &mut Context<'_>,
) {
    match error {
        NetworkError::Flow { flow, error } => {
            let written = &file.flow[group_of(&flow)].written;
            cx.report_at(written, "", ProblemKind::Flow { error });
        }
        NetworkError::NoPacketFits { ref link, .. } => {
            let written = file.topology.written();
            let key = link.strip_suffix(".reverse").unwrap_or(link);
            let key = if written.has(key) { key } else { "" };
            let span = link_spans.get(link).copied().flatten();
            cx.problems.push(Problem::new(
                span.or(written.span_of(key)),
                &written.path_of(key),
                ProblemKind::Network { error },
            ));
        }
        error => {
            let kind = ProblemKind::Network { error };
            cx.report_at(&file.scenario.written, "", kind);
        }
    }
}

/// Sets the delays of the links of hosts, so that the base round trips are the requested ones;
/// `None` only after a report.
fn set_rtts<'f>(
    network: &mut Network,
    requested: &[Requested],
    table_of: impl Fn(usize) -> &'f FlowTable,
    cx: &mut Context<'_>,
) -> Option<()> {
    if requested.is_empty() {
        return Some(());
    }
    let reported = cx.problems.len();
    let mut blamed = None;
    // The links of the hosts have no delay yet, and their nodes no other link, so the paths do not
    // change.
    let rest_of = network.base_rtts();
    for &Requested { rtt, flow, link } in requested {
        let rest = rest_of.get(flow).copied().flatten().unwrap_or_default();
        let Some(missing) = rtt.checked_sub(rest) else {
            let written = &table_of(flow).written;
            // Reports a path once, because the flows of a group share it.
            if blamed.replace(written.path_of("")) != Some(written.path_of("")) {
                cx.report_at(written, "rtt", ProblemKind::RttTooShort { rtt, rest });
            }
            continue;
        };
        let forward = missing / 2;
        for (link, delay) in [(link, forward), (link + 1, missing.saturating_sub(forward))] {
            if let Some(link) = network.links.get_mut(link) {
                link.config.delay = DelayProfile::Constant(delay);
            }
        }
    }
    (cx.problems.len() == reported).then_some(())
}

/// The network of the tables, and the settings of the run; `None` only after a report.
pub(super) fn build(
    file: &ScenarioFile,
    library: &Library,
    limits: &Limits,
    cx: &mut Context<'_>,
) -> Option<(Network, RunSettings)> {
    debug_assert!(
        file.sweep.is_none(),
        "the axes are taken out before a point is read"
    );
    let reported = cx.problems.len();
    let scenario = &file.scenario;
    let mut network = Network {
        nodes: Vec::new(),
        links: Vec::new(),
        flows: Vec::new(),
        duration: scenario.duration,
        warmup: scenario.warmup,
    };
    if let Err(error) = check_times(&network) {
        cx.report_at(&scenario.written, "warmup", ProblemKind::Network { error });
    }
    let mut graph = Graph::default();
    let mut first_flows = Vec::with_capacity(file.flow.len());
    let core = topology::build(&file.topology, &mut graph, library, limits, cx);
    if let Some(core) = &core {
        for table in &file.flow {
            first_flows.push(graph.flows.len());
            flow::build(table, scenario, core, &mut graph, library, limits, cx);
        }
    }
    if let Some(bins) = scenario.bins {
        let things = (graph.flows.len() + graph.links.len()) as u64;
        let count = scenario.duration.as_nanos().div_ceil(bins.as_nanos());
        if count.saturating_mul(things) > MAX_SERIES {
            cx.report_at(
                &scenario.written,
                "bins",
                ProblemKind::Unfit {
                    reason: Unfit::BinsTooShort,
                },
            );
        }
    }
    if scenario.convergence.is_some() && scenario.bins.is_none() {
        cx.report_at(
            &scenario.written,
            "convergence",
            ProblemKind::Needs { other: "bins" },
        );
    }
    if cx.problems.len() > reported {
        return None;
    }
    let link_spans = graph.link_spans;
    network.nodes = graph.nodes;
    network.links = graph.links;
    network.flows = graph.flows;
    let group_of = |flow: usize| {
        let group = first_flows.partition_point(|&first| first <= flow);
        group.saturating_sub(1)
    };
    let table_of = |flow: usize| &file.flow[group_of(flow)];
    set_rtts(&mut network, &graph.rtts, table_of, cx)?;
    if let Err(error) = check_ways(&network) {
        let group_of = |name: &str| {
            let mut flows = network.flows.iter();
            flows.position(|flow| flow.name == name).map_or(0, group_of)
        };
        report(file, error, &link_spans, group_of, cx);
        return None;
    }
    let settings = RunSettings {
        bins: scenario.bins,
        convergence: scenario.convergence.as_ref().map(|table| Convergence {
            tolerance: table.tolerance,
            hold: table.hold,
        }),
        backbone: core?.backbone,
    };
    Some((network, settings))
}
