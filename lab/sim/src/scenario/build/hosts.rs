//! From flow tables to hosts, their links, and the ends of flows.

use comity_link::{DelayProfile, LinkConfig};
use comity_units::Span;

use super::super::kinds::Template;
use super::super::problem::{ProblemKind, Unfit};
use super::super::schema::Context;
use super::super::tables::flow::FlowTable;
use super::super::tables::link::DelayValue;
use super::super::tables::topology::Access;
use super::graph::{Graph, Requested, Taken};
use super::library::Library;
use super::topology::{AccessLink, Core, Ends, access_link, find_node, report_taken};
use crate::network::{FlowSpec, NodeId};

/// The link of the flow's own host, `None` if the flow has no `access`. With `rtt`, the link has no
/// delay yet.
pub(super) fn own_access(
    table: &FlowTable,
    library: &Library,
    cx: &mut Context<'_>,
) -> Option<Option<AccessLink>> {
    let excludes = || ProblemKind::Excludes { other: "rtt" };
    if table.rtt.is_some() && table.access_delays.is_some() {
        cx.report_at(&table.written, "access_delays", excludes());
    }
    let access = table.access.as_ref()?;
    if table.rtt.is_none() {
        return Some(access_link(access, library, cx));
    }
    let Access::Link(link) = access else {
        cx.report_at(&table.written, "access", excludes());
        return Some(None);
    };
    let mut link = link.clone();
    let reverse = link.reverse.iter_mut();
    for way in std::iter::once(&mut link.forward).chain(reverse) {
        if way.delay.is_some() {
            cx.report_at(&way.written, "delay", excludes());
        }
        way.delay = Some(DelayValue::Constant(Span::ZERO));
    }
    Some(access_link(&Access::Link(link), library, cx))
}

/// A link whose directions both have this delay.
fn delayed((forward, reverse): &(LinkConfig, LinkConfig), delay: Span) -> (LinkConfig, LinkConfig) {
    let with = |config: &LinkConfig| LinkConfig {
        delay: DelayProfile::Constant(delay),
        ..config.clone()
    };
    (with(forward), with(reverse))
}

/// The time of the flow with this number, from a list of times for the flows in turn.
fn turn(times: Option<&[Span]>, index: u32) -> Option<Span> {
    let times = times?;
    times
        .get((index as usize).checked_rem(times.len())?)
        .copied()
}

/// Connects the flows of one group to the network.
pub(super) struct Hosts<'t> {
    pub(super) table: &'t FlowTable,
    pub(super) core: &'t Core,
    pub(super) access: &'t AccessLink,
    pub(super) access_to: &'t AccessLink,
}

impl Hosts<'_> {
    /// Adds one flow. An error has been reported already.
    pub(super) fn add(
        &self,
        index: u32,
        name: &str,
        prototype: &FlowSpec,
        graph: &mut Graph,
        cx: &mut Context<'_>,
    ) -> Result<(), ()> {
        let written = &self.table.written;
        let (from, to) = self.routers(index, graph, cx)?;
        let (source, destination) = (graph.name(from).to_owned(), graph.name(to).to_owned());
        if from == to && (self.access.is_none() || self.access_to.is_none()) {
            let key = if written.has("to") { "to" } else { "from" };
            cx.report_at(
                written,
                key,
                ProblemKind::FlowToItself {
                    flow: name.into(),
                    node: source,
                },
            );
            return Err(());
        }
        for (key, (start, start_name), (end, end_name)) in [
            ("to", (from, &source), (to, &destination)),
            ("from", (to, &destination), (from, &source)),
        ] {
            if !self.core.reach.leads(start, end) {
                let key = if written.has(key) { key } else { "" };
                cx.report_at(
                    written,
                    key,
                    ProblemKind::Unreachable {
                        flow: name.into(),
                        from: start_name.clone(),
                        to: end_name.clone(),
                    },
                );
                return Err(());
            }
        }
        let key = if written.has("name") { "name" } else { "group" };
        let mut attach = || -> Result<FlowSpec, Taken> {
            let span = written.span_of(key);
            graph.claim_flow(name, span)?;
            let mut flow = prototype.clone();
            flow.name = name.into();
            flow.source = match self.access {
                None => from,
                Some(configs) => {
                    let host = format!("{name}.source");
                    let node = graph.add_node(&host, span)?;
                    if let Some(rtt) = turn(self.table.rtt.as_ref().map(|it| &it.0[..]), index) {
                        graph.rtts.push(Requested {
                            rtt,
                            flow: graph.flows.len(),
                            link: graph.links.len(),
                        });
                    }
                    match self.delay(index) {
                        None => graph.add_duplex(&host, (node, from), configs, span)?,
                        Some(delay) => {
                            let configs = delayed(configs, delay);
                            graph.add_duplex(&host, (node, from), &configs, span)?;
                        }
                    }
                    node
                }
            };
            flow.destination = match self.access_to {
                None => to,
                Some(configs) => {
                    let host = format!("{name}.destination");
                    let node = graph.add_node(&host, span)?;
                    graph.add_duplex(&host, (to, node), configs, span)?;
                    node
                }
            };
            Ok(flow)
        };
        match attach() {
            Ok(flow) => {
                graph.flows.push(flow);
                Ok(())
            }
            Err(taken) => {
                report_taken(cx, written, key, taken);
                Err(())
            }
        }
    }

    /// The delay of the flow's own access link, if it differs from that of the group. With `rtt`,
    /// it is set later.
    fn delay(&self, index: u32) -> Option<Span> {
        match &self.table.rtt {
            Some(_) => Some(Span::ZERO),
            None => turn(self.table.access_delays.as_deref(), index),
        }
    }

    /// The nodes of the topology at the ends of the flow.
    fn routers(
        &self,
        index: u32,
        graph: &mut Graph,
        cx: &mut Context<'_>,
    ) -> Result<(NodeId, NodeId), ()> {
        let (table, written) = (self.table, &self.table.written);
        let automatic = match &self.core.ends {
            Ends::Unknown => None,
            Ends::Routers(left, right) => Some((*left, *right)),
            Ends::Pairs(pairs) => {
                let pair = pairs
                    .get(graph.hosted as usize % pairs.len().max(1))
                    .copied();
                if table.from.is_none() && table.to.is_none() {
                    graph.hosted += 1;
                }
                pair
            }
        };
        let mut end = |template: &Option<Template>, key, automatic: Option<NodeId>| match template {
            Some(template) => {
                let Some(name) = template.expand(index) else {
                    cx.report_at(written, key, Unfit::IndexBelowZero.into());
                    return None;
                };
                find_node(graph, &name, written, key, cx)
            }
            None => {
                if automatic.is_none() {
                    cx.report_at(written, key, Unfit::EndsMissing.into());
                }
                automatic
            }
        };
        let from = end(&table.from, "from", automatic.map(|(from, _)| from));
        let to = end(&table.to, "to", automatic.map(|(_, to)| to));
        from.zip(to).ok_or(())
    }
}
